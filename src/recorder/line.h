/*
 * One line of the journal, and the chain that binds it to the one before:
 *
 *	{"seq":7,"time":"...","run":"...","from":"worker","kind":"execution","event":"finish",
 *	 "id":"ex_...","body":{...},"prev":"<64 digits>","mac":"<64 digits>"}
 *
 * prev is the SHA-256 of the line before, without its newline; mac is HMAC-SHA-256 over all that
 * stands in front of `,"mac":`, with a key of which each line has its own. A key gives all later
 * ones, and no earlier one.
 */
#ifndef NC_LINE_H
#define NC_LINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/hash.h"

/* The four kinds of records. */
enum nc_record_kind {
	NC_RECORD_EXECUTION,
	NC_RECORD_SECURITY,
	NC_RECORD_PERFORMANCE,
	NC_RECORD_AUDIT,
	NC_RECORD_KIND_MAX,
};

/* Their names; NULL-terminated. */
extern const char *const nc_record_kind_names[];

/* Who said what a line says. */
enum nc_record_source {
	NC_FROM_WORKER,
	NC_FROM_SPAWNER,
	NC_FROM_RECORDER,
	NC_RECORD_SOURCE_MAX,
};

/* What a line says. Texts are plain: no quotes, backslashes or control characters. */
struct nc_entry {
	enum nc_record_source from;
	enum nc_record_kind kind;
	const char *event;
	const char *id; /* of the execution; "" for none */
	const char *body;
	size_t body_size; /* a JSON object on one line, checked by who hands it over */
	bool is_end;	  /* of something that was begun: it may use the reserve */
};

/* The place behind the last line: what the next one is made with. */
struct nc_link {
	uint64_t seq;			    /* of the next line; the first is 1 */
	unsigned char key[NC_SHA256_SIZE];  /* of the next line */
	unsigned char last[NC_SHA256_SIZE]; /* hash of the line before; zeros: there is none */
};

/* The link in front of the first line. */
void nc_link_first(struct nc_link *link, const unsigned char key[static NC_SHA256_SIZE]);

/* Steps over a line of size bytes, newline not counted. The key of it is gone then. */
void nc_link_step(struct nc_link *link, const char *line, size_t size);

/* Steps over a line that is not there. */
void nc_link_skip(struct nc_link *link);

/* Appends the next line with its newline. run names the recorder that writes it. */
void nc_line_add(struct nc_buf *out, const struct nc_link *link, const char *run,
	const struct nc_entry *entry);

/* Whether text may be an id or an event: 1 to NC_RECORD_ID_MAX letters, digits, '_', '.' and '-'.
 */
bool nc_line_text_ok(const char *text);

/* Whether a line of size bytes tells of that event and execution; its body is not looked at. */
bool nc_line_is_about(const char *line, size_t size, const char *event, const char *id);

/* Whether a line says exactly that, whenever and whoever wrote it. */
bool nc_line_is(const char *line, size_t size, const struct nc_entry *entry);

/* What the chain needs of a line. */
struct nc_line_parts {
	uint64_t seq;
	unsigned char prev[NC_SHA256_SIZE];
	unsigned char mac[NC_SHA256_SIZE];
	size_t signed_size;
};

/* Takes a line of size bytes (no newline) apart. -EBADMSG: it has not the form of one. */
int nc_line_split(const char *line, size_t size, struct nc_line_parts *ret_parts);

/* Whether it was made with that key. */
bool nc_line_is_signed(const char *line, const struct nc_line_parts *parts,
	const unsigned char key[static NC_SHA256_SIZE]);

/* Whether it is exactly the next line of the chain. */
bool nc_line_follows(const struct nc_link *link, const char *line, size_t size);

#endif
