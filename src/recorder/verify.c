/* Holds a journal against the key that it began with. */
#include "recorder/verify.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/path.h"
#include "recorder/segment.h"

/*
 * Keys of missing lines that are derived in all, some minutes' worth: numbers in the files may be
 * an attacker's, who must not keep us busy for ever.
 */
#define SKIPS_MAX 1000000000ULL

const char *const nc_damage_names[] = {
	[NC_DAMAGE_CHANGED] = "changed",
	[NC_DAMAGE_MISSING] = "missing",
	[NC_DAMAGE_ORDER] = "order",
	[NC_DAMAGE_FORKED] = "forked",
	[NC_DAMAGE_CUT] = "cut",
	[NC_DAMAGE_KEY] = "key",
	[NC_DAMAGE_KIND_MAX] = NULL,
};

struct walk {
	struct nc_reader reader;
	struct nc_link link; /* what the next line must follow upon */
	bool last_known;     /* whether link.last is to be believed */
	uint64_t skips;	     /* keys that were derived for lines that are not there */
	uint64_t forgiven;   /* damaged lines: so many numbers may be missing without a word */
	struct nc_link key;  /* the key file */
	struct nc_place key_place;
	int key_error;
	bool key_met; /* the chain came by the place of the key file, and it fits */
	unsigned char first_prev[NC_SHA256_SIZE];
	bool anchored; /* a later line says that what was before the first one is retired */
	const struct nc_receipt *head;
	struct nc_verdict verdict;
	void (*report)(void *context, const struct nc_damage *damage);
	void *context;
};

__attribute__((format(printf, 4, 5))) static void damage(
	struct walk *walk, enum nc_damage_kind kind, uint64_t seq, const char *format, ...)
{
	struct nc_damage found = {.kind = kind, .seq = seq};
	va_list arguments;

	if (kind != NC_DAMAGE_CUT && kind != NC_DAMAGE_KEY) {
		found.segment = nc_reader_segment(&walk->reader);
		found.line = walk->reader.line;
	}
	va_start(arguments, format);
	(void)vsnprintf(found.text, sizeof(found.text), format, arguments);
	va_end(arguments);
	walk->verdict.damages++;
	walk->report(walk->context, &found);
}

/* The key file must be what the chain arrives at. */
static void meet_key(struct walk *walk)
{
	if (walk->key_error < 0 || walk->link.seq != walk->key.seq || walk->key_met)
		return;
	walk->key_met = true;
	if (!nc_sha256_equal(walk->link.key, walk->key.key))
		damage(walk, NC_DAMAGE_KEY, walk->key.seq, "The key file is not of this journal");
	else if (walk->last_known && !nc_sha256_equal(walk->link.last, walk->key.last))
		damage(walk, NC_DAMAGE_FORKED, walk->key.seq - 1,
			"Line %" PRIu64 " is another than the one that the key file goes on from",
			walk->key.seq - 1);
}

static bool says_retired(const char *line, size_t size)
{
	static const char mark[] =
		",\"from\":\"recorder\",\"kind\":\"audit\",\"event\":\"retired\",";

	return memmem(line, size < 256 ? size : 256, mark, sizeof(mark) - 1) != NULL;
}

/* A line, known to be good, may tell that what stood in front of the first one is retired. */
static void look_for_anchor(struct walk *walk, const char *line, size_t size)
{
	cleanup_json json_t *value = NULL;
	unsigned char hash[NC_SHA256_SIZE];
	struct nacre_err err = {0};
	const json_t *body;
	const char *text;

	if (!says_retired(line, size) || nc_json_parse(line, size, &value, &err) < 0)
		return;
	body = json_object_get(value, "body");
	text = json_string_value(json_object_get(body, "last_hash"));
	if (text && strlen(text) == 2 * NC_SHA256_SIZE && nc_sha256_parse(text, hash) == 0 &&
		json_integer_value(json_object_get(body, "last_seq")) + 1 ==
			(json_int_t)walk->verdict.first_seq &&
		nc_sha256_equal(hash, walk->first_prev))
		walk->anchored = true;
}

static void accept(struct walk *walk, const char *line, size_t size)
{
	struct nc_verdict *verdict = &walk->verdict;

	nc_link_step(&walk->link, line, size);
	walk->last_known = true;
	verdict->lines++;
	verdict->last.seq = walk->link.seq - 1;
	memcpy(verdict->last.hash, walk->link.last, NC_SHA256_SIZE);
	if (walk->head && walk->head->seq == verdict->last.seq &&
		!nc_sha256_equal(walk->head->hash, verdict->last.hash))
		damage(walk, NC_DAMAGE_FORKED, verdict->last.seq,
			"Line %" PRIu64 " is another than the exported head", verdict->last.seq);
	if (verdict->first_seq > 1)
		look_for_anchor(walk, line, size);
	meet_key(walk);
}

/* The line has the number that is expected. */
static void take_expected(
	struct walk *walk, const char *line, size_t size, const struct nc_line_parts *parts)
{
	if (!nc_line_is_signed(line, parts, walk->link.key)) {
		damage(walk, NC_DAMAGE_CHANGED, parts->seq, "Line %" PRIu64 " has been changed",
			parts->seq);
		nc_link_skip(&walk->link);
		walk->last_known = false;
		meet_key(walk);
		return;
	}
	if (walk->last_known && !nc_sha256_equal(parts->prev, walk->link.last))
		damage(walk, NC_DAMAGE_FORKED, parts->seq,
			"Line %" PRIu64 " follows upon another line than the one before it",
			parts->seq);
	accept(walk, line, size);
}

/* The line has a later number: those between are gone, if it is a line at all. */
static void take_later(
	struct walk *walk, const char *line, size_t size, const struct nc_line_parts *parts)
{
	uint64_t first = walk->link.seq, missing = parts->seq - first;
	struct nc_link link = walk->link;
	bool is_first = walk->verdict.lines == 0 && walk->verdict.damages == 0;

	if (missing <= SKIPS_MAX - walk->skips) {
		walk->skips += missing;
		while (link.seq < parts->seq)
			nc_link_skip(&link);
	}
	if (link.seq != parts->seq || !nc_line_is_signed(line, parts, link.key)) {
		damage(walk, NC_DAMAGE_CHANGED, first, "This line has been changed, or put here");
		walk->forgiven++;
		return;
	}
	if (is_first) {
		walk->verdict.first_seq = parts->seq;
		memcpy(walk->first_prev, parts->prev, sizeof(walk->first_prev));
	} else if (missing > walk->forgiven) {
		damage(walk, NC_DAMAGE_MISSING, first,
			"Lines %" PRIu64 " to %" PRIu64 " are missing in front of this one", first,
			parts->seq - 1);
	}
	walk->forgiven = 0;
	while (walk->link.seq < parts->seq) {
		nc_link_skip(&walk->link);
		walk->last_known = false;
		meet_key(walk);
	}
	accept(walk, line, size);
}

static bool is_unfinished(const struct walk *walk)
{
	return walk->reader.cut && walk->key_error == 0 &&
	       nc_reader_segment(&walk->reader) == walk->key_place.segment &&
	       walk->reader.line_from >= walk->key_place.offset;
}

static void take_line(struct walk *walk, const char *line, size_t size)
{
	struct nc_line_parts parts;

	if (is_unfinished(walk)) {
		walk->verdict.unfinished_bytes += size;
	} else if (walk->reader.cut || nc_line_split(line, size, &parts) < 0) {
		damage(walk, NC_DAMAGE_CHANGED, walk->link.seq, "This is not a line of a journal");
		walk->forgiven++;
	} else if (parts.seq == walk->link.seq) {
		walk->forgiven = 0;
		take_expected(walk, line, size, &parts);
	} else if (parts.seq > walk->link.seq) {
		take_later(walk, line, size, &parts);
	} else {
		damage(walk, NC_DAMAGE_ORDER, parts.seq,
			"Line %" PRIu64 " stands here again, or too late", parts.seq);
	}
}

/* Behind the last line: what should have been there? */
static void look_at_end(struct walk *walk)
{
	const struct nc_verdict *verdict = &walk->verdict;

	if (walk->key_error < 0)
		damage(walk, NC_DAMAGE_KEY, 0, "The key file is gone or damaged");
	else if (walk->key.seq > walk->link.seq)
		damage(walk, NC_DAMAGE_CUT, walk->link.seq,
			"Lines %" PRIu64 " to %" PRIu64 " were written and are missing at the end",
			walk->link.seq, walk->key.seq - 1);
	else if (!walk->key_met)
		damage(walk, NC_DAMAGE_KEY, walk->key.seq, "The key file is not of this journal");
	if (walk->head && walk->head->seq > verdict->last.seq)
		damage(walk, NC_DAMAGE_CUT, verdict->last.seq + 1,
			"The exported head is line %" PRIu64 ", and the journal ends with %" PRIu64,
			walk->head->seq, verdict->last.seq);
	if (verdict->first_seq > 1 && !walk->anchored)
		damage(walk, NC_DAMAGE_MISSING, 1,
			"Lines 1 to %" PRIu64 " are gone, and no line says that they were retired",
			verdict->first_seq - 1);
	else if (verdict->first_seq > 1)
		walk->verdict.retired = verdict->first_seq - 1;
}

int nc_verify(int history_fd, const unsigned char key[static NC_SHA256_SIZE],
	const struct nc_receipt *head,
	void (*report)(void *context, const struct nc_damage *damage), void *context,
	struct nc_verdict *ret_verdict)
{
	struct walk walk = {.reader = NC_READER_CLOSED,
		.last_known = true,
		.head = head,
		.verdict = {.first_seq = 1},
		.report = report,
		.context = context};
	cleanup_close int journal_fd =
		nc_path_open(history_fd, "journal", O_RDONLY | O_DIRECTORY, 0);
	const char *line;
	size_t size;
	int r = journal_fd < 0 ? journal_fd : 0;

	nc_link_first(&walk.link, key);
	/* before the lines: those that are added while we read may be more, never fewer */
	walk.key_error = nc_journal_read_key(history_fd, &walk.key, &walk.key_place);
	meet_key(&walk);
	if (r == 0)
		r = nc_reader_open(&walk.reader, journal_fd, 0, 0);
	while (r >= 0 && (r = nc_reader_next(&walk.reader, &line, &size)) > 0)
		take_line(&walk, line, size);
	if (r >= 0) {
		look_at_end(&walk);
		*ret_verdict = walk.verdict;
	}
	nc_reader_done(&walk.reader);
	explicit_bzero(&walk, sizeof(walk));
	return r < 0 ? r : 0;
}
