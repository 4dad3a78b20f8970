/*
 * The shape of a configuration file as a table. One table of fields gives the built-in values, the
 * parser with its checks and messages, and the listing of effective values.
 *
 * The values live in plain structs whose members are struct nc_value (leaves) or further structs
 * (groups); a field says at which offset.
 */
#ifndef NC_SCHEMA_H
#define NC_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum nc_field_type {
	NC_FIELD_END, /* closes a table */
	NC_FIELD_GROUP,
	NC_FIELD_WHOLE, /* a whole number from min to max */
	NC_FIELD_MILLI, /* a decimal number, kept in thousandths; min and max are thousandths too */
	NC_FIELD_CHOICE, /* one of the words in choices; the number is its index */
	NC_FIELD_LIST,	 /* a list of words */
	NC_FIELD_PATH,	 /* an absolute path, kept as a list of one; none is built in */
	NC_FIELD_WORD,	 /* one word, kept in the same way */
	NC_FIELD_MAP,	 /* groups by names of the file's own; at the offset is a struct nc_map */
};

struct nc_value {
	bool given;	   /* somebody set it: the file, or the built-in value */
	bool inherited;	   /* the value was taken over from a more general key */
	unsigned int line; /* where in the file; 0: built in */
	const char *file;  /* of a merged value: the file that it is from; borrowed */
	uint64_t number;   /* WHOLE, MILLI, CHOICE */
	char **list;	   /* LIST, PATH, WORD: owned, NULL-terminated; NULL when empty */
	size_t n_list;
};

/* Groups of the same fields, each with a name. */
struct nc_map_entry {
	char *name;
	unsigned int line;
	void *values; /* of the field's size */
};

struct nc_map {
	struct nc_map_entry *entries;
	size_t count;
};

struct nc_field {
	const char *name;
	enum nc_field_type type;
	size_t offset;	    /* of the struct nc_value, or of the group's struct */
	const char *preset; /* the built-in value, written as in a file; NULL: none */
	uint64_t min, max;
	const char *const *choices;    /* NULL-terminated */
	const struct nc_field *fields; /* GROUP, MAP */
	size_t size;		       /* MAP: of the struct that fields describe */
	/* LIST, WORD: words, MAP: names; NULL: any will do. expected says which will. */
	bool (*is_word)(const char *word);
	const char *expected;
};

/* Sets the built-in values. values is zeroed memory of the struct that fields describe. */
void nc_schema_preset(const struct nc_field *fields, void *values);

/*
 * Reads YAML text over the values that are there. file is what messages call it. On failure, which
 * is -EINVAL with "file:line: key: what was found, what was expected" or -ENOMEM, values may be
 * changed in part but can still be freed.
 */
int nc_schema_read(const struct nc_field *fields, void *values, const char *file, const char *text,
	size_t size, struct nacre_err *err);

/*
 * The same from a file: -ENOENT without a message if there is none; -EPERM for one that everybody
 * may write, which decides nothing here.
 */
int nc_schema_load(
	const struct nc_field *fields, void *values, const char *path, struct nacre_err *err);

/* Calls visit for every leaf in the order of the table, with its dotted path, until it fails. */
int nc_schema_visit(const struct nc_field *fields, const void *values,
	int (*visit)(void *context, const char *path, const struct nc_field *field,
		const struct nc_value *value),
	void *context);

/*
 * Puts every leaf that is given in upper over that of values, noting the file. values then borrows
 * the lists of upper: it is not for nc_schema_done. Maps are passed over.
 */
void nc_schema_merge(
	const struct nc_field *fields, void *values, const void *upper, const char *file);

/* The values of the name in a map, or NULL. */
const void *nc_map_find(const struct nc_map *map, const char *name);

/* Frees what the values own and zeroes them. */
void nc_schema_done(const struct nc_field *fields, void *values);

#endif
