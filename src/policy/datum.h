/*
 * What the analysis knows about an expression: a constant, or the name of a thing outside of the
 * program. Data are immutable and numbered; number 0 is "nothing known". Functions that make one
 * return 0 when there is no room, which is noted in the arena or in data->error.
 */
#ifndef NC_DATUM_H
#define NC_DATUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "policy/arena.h"
#include "policy/bounds.h"

enum nc_datum_kind {
	NC_DATUM_NONE,
	NC_DATUM_TEXT,
	NC_DATUM_NUMBER,
	/* "os.system": a module, a function, or the result of calling one: "socket.socket()" */
	NC_DATUM_NAME,
	NC_DATUM_LIST,
	NC_DATUM_DICT, /* keys and values in turn */
	NC_DATUM_OWN,  /* a function or class of the program itself */
};

struct nc_datum {
	uint8_t kind;	/* enum nc_datum_kind */
	bool partial;	/* TEXT: NC_HOLE stands for what is not known */
	bool built;	/* put together from pieces */
	bool too_long;	/* TEXT: only its beginning is known; it is partial, too */
	bool decoded;	/* went through a decoder: base64, hex, rot13, character codes */
	uint32_t other; /* what it may be instead; 0: nothing else */
	uint32_t size;	/* bytes of text, or number of items */
	union {
		const char *text; /* with a NUL behind only if it was put together */
		int64_t number;
		const uint32_t *items;
	};
};

/* What stands in a text for a part that is not known; a shell reads it as some variable. */
#define NC_HOLE "$_"
#define NC_HOLE_SIZE 2

/* Data stand in blocks, so that pointers to them stay valid while there come more. */
#define NC_DATA_BLOCK_BITS 12
#define NC_DATA_BLOCK (1U << NC_DATA_BLOCK_BITS)

struct nc_data {
	struct nc_arena *arena;
	struct nc_datum *blocks[NC_DATA_MAX / NC_DATA_BLOCK];
	uint32_t count; /* number 0 is nothing */
	int error;
};

/* 0 or -ENOMEM. */
int nc_data_init(struct nc_data *data, struct nc_arena *arena);
void nc_data_done(struct nc_data *data);

static inline const struct nc_datum *nc_datum(const struct nc_data *data, uint32_t number)
{
	return &data->blocks[number >> NC_DATA_BLOCK_BITS][number & (NC_DATA_BLOCK - 1)];
}

/* A copy of a datum under a number of its own. */
uint32_t nc_datum_add(struct nc_data *data, struct nc_datum datum);

/* The text is borrowed: it must live as long as the data. */
uint32_t nc_datum_text(struct nc_data *data, const char *text, size_t size);
uint32_t nc_datum_name(struct nc_data *data, const char *text, size_t size);
uint32_t nc_datum_number(struct nc_data *data, int64_t number);
uint32_t nc_datum_own(struct nc_data *data);

/* Copies the numbers of the items. */
uint32_t nc_datum_list(
	struct nc_data *data, enum nc_datum_kind kind, const uint32_t *items, uint32_t count);

/* "a" and "b" to the name "a.b"; 0 if it gets too long. */
uint32_t nc_datum_member(
	struct nc_data *data, const struct nc_datum *object, const char *name, size_t size);

/* "f" to the name "f()"; 0 if it gets too long. */
uint32_t nc_datum_result(struct nc_data *data, const struct nc_datum *function);

/* Both texts together; a side that is not known becomes a hole. 0 if neither is known. */
uint32_t nc_datum_concat(struct nc_data *data, uint32_t left, uint32_t right);

/* A text that was made from those of other data, whose marks it takes over. */
uint32_t nc_datum_derive(struct nc_data *data, const char *text, size_t size,
	const struct nc_datum *from, bool decoded);

/*
 * One datum that is any of several: copies, each with the next as its alternative. The numbers must
 * not have alternatives of their own, or these are lost. 0 for none.
 */
uint32_t nc_datum_any(struct nc_data *data, const uint32_t *numbers, uint32_t count);

static inline bool nc_datum_is_plain(const struct nc_datum *datum)
{
	return datum->kind == NC_DATUM_TEXT && !datum->partial;
}

/* Here, since there are many comparisons with words whose length the compiler then knows. */
static inline bool nc_datum_equals(const struct nc_datum *datum, const char *word)
{
	return datum->size == strlen(word) && memcmp(datum->text, word, datum->size) == 0;
}

/* Whether it is a text, wholly known, that equals word; or a name that does. */
static inline bool nc_datum_is_text(const struct nc_datum *datum, const char *word)
{
	return nc_datum_is_plain(datum) && nc_datum_equals(datum, word);
}

static inline bool nc_datum_is_name(const struct nc_datum *datum, const char *word)
{
	return datum->kind == NC_DATUM_NAME && nc_datum_equals(datum, word);
}

#endif
