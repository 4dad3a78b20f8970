/*
 * What a program printed on one stream: its head and its tail stay at hand, the whole goes into a
 * file in memory as far as a second limit allows.
 */
#ifndef NC_OUTPUT_H
#define NC_OUTPUT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

struct nc_output {
	size_t inline_max; /* bytes that the text holds, half of them from the end */
	bool no_whole;	   /* set after the init: what is in neither half is gone */
	struct nc_buf head;
	char *tail; /* a ring of the last inline_max / 2 bytes behind the head; or NULL */
	uint64_t bytes;
	int whole_fd; /* everything, once it is more than the head; or -EBADF */
	int error;    /* why whole_fd does not have it all; -EFBIG: more than a blob may have */
};

void nc_output_init(struct nc_output *output, size_t inline_max);
void nc_output_done(struct nc_output *output);

void nc_output_add(struct nc_output *output, const char *data, size_t size);

/* The memory that it takes here. */
size_t nc_output_held(const struct nc_output *output);

/* Nothing follows: whether everything is there, in the head or in whole_fd, which is sealed then.
 */
bool nc_output_seal(struct nc_output *output);

/* Whether the text leaves something out. */
bool nc_output_is_cut(const struct nc_output *output);

/* Head and tail with a line between that says how much is missing, never cut within a character. */
int nc_output_text(const struct nc_output *output, struct nc_buf *ret_text);
json_t *nc_output_json(const struct nc_output *output);

/*
 * Sets `name` to the text; if that is not UTF-8, so that characters were replaced in it, also
 * `name`_base64 to its bytes. -ENOMEM.
 */
int nc_output_set(const struct nc_output *output, json_t *object, const char *name);

#endif
