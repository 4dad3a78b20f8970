/*
 * Reading JSON objects by tables. A table names the members of an object: reader, place in a
 * struct, range. A reader that meets a fault writes it down and goes on, so that the caller learns
 * of all of them at once.
 */
#ifndef NC_READER_H
#define NC_READER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/cut.h"
#include "engine/faults.h"

/* A list of texts; words[count] is NULL. */
struct nc_request_words {
	const char **words;
	size_t count;
};

/* Variables, labels. */
struct nc_request_pair {
	const char *name;
	const char *value;
};

struct nc_request_pairs {
	struct nc_request_pair *pair;
	size_t count;
};

/* A limit that the caller names is hard: what cannot be enforced is refused. Others are defaults.
 */
struct nc_request_limit {
	uint64_t value;
	bool given;
};

/* What is the same for all values of one reading. */
struct nc_reading {
	struct nc_faults *faults;
	int error;		    /* 0, -ENOMEM or -EIO */
	const struct nc_cuts *cuts; /* what stands for texts that are elsewhere; NULL: none do */
};

/* One value to be read. */
struct nc_cursor {
	struct nc_reading *reading;
	const struct nc_place *at;
	const struct nc_rule *rule; /* NULL for elements */
	json_t *value;
	void *target;
};

struct nc_rule {
	const char *name; /* NULL closes a table */
	void (*read)(const struct nc_cursor *c);
	size_t offset;	   /* of the target in its struct */
	uint64_t min, max; /* of numbers */
	uint64_t unit;	   /* one of the caller's is so many of ours */
	bool single;	   /* stands beside `code`, not beside `steps` */
};

#define nc_fault(c, ...) nc_faults_add((c)->reading->faults, (c)->at, __VA_ARGS__)

/* "found -1, expected ...". */
void nc_refuse(const struct nc_cursor *c, const char *expected);

/* The same for a member whose name is wrong. */
void nc_refuse_name(const struct nc_cursor *c, const char *name, const char *expected);

/* calloc of one more, so that a list has its last NULL and is never NULL itself. */
void *nc_read_allocate(const struct nc_cursor *c, size_t count, size_t size);

/* Reads the members of an object into the struct at base; unknown ones are faults. */
void nc_read_members(const struct nc_cursor *c, const struct nc_rule *rules, void *base);

void nc_read_bool(const struct nc_cursor *c);	  /* bool */
void nc_read_whole(const struct nc_cursor *c);	  /* struct nc_request_limit, in units */
void nc_read_milli(const struct nc_cursor *c);	  /* the same, in thousandths */
void nc_read_priority(const struct nc_cursor *c); /* unsigned int */

/* The text, or NULL with a fault. Borrows from the value, as all texts here. */
const char *nc_read_text(const struct nc_cursor *c);

/* Letters, digits and others, a letter or digit first, at most NC_REQUEST_NAME_MAX. */
bool nc_is_request_name(const char *text, const char *others);

/* Such a name with ".", "_" and "-", or NULL with a fault. */
const char *nc_read_name(const struct nc_cursor *c);

/* The index of the text among names, or -EINVAL with a fault that lists them. */
int nc_read_choice(const struct nc_cursor *c, const char *const *names, size_t count);

/* What a list holds. */
struct nc_list {
	const char *noun;
	size_t count_max;
	size_t size_max; /* of all, each with its end; 0: the elements have their own maximum */
	bool (*is_good)(const char *text); /* NULL: any text is */
	const char *expected;
};

/* Into struct nc_request_words. */
void nc_read_words(const struct nc_cursor *c, const struct nc_list *list);

/* Into struct nc_request_pairs. Whether it was an object of at most max members. */
bool nc_read_pairs(const struct nc_cursor *c, const char *noun, size_t max);

#endif
