/*
 * What is wrong with a request: all of it, not the first fault, each with the place in the JSON. A
 * place is a chain of frames on the stack of whoever walks the JSON, so that only a fault costs the
 * making of its pointer.
 */
#ifndef NC_FAULTS_H
#define NC_FAULTS_H

#include <jansson.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/limits.h"

/* What is longer is cut with "...": keys are foreign. */
#define NC_FAULT_POINTER_SIZE 192
#define NC_FAULT_MESSAGE_SIZE 384

struct nc_fault {
	char pointer[NC_FAULT_POINTER_SIZE]; /* RFC 6901; "" is the whole request */
	char message[NC_FAULT_MESSAGE_SIZE]; /* "found -1, expected ..." */
};

struct nc_faults {
	struct nc_fault fault[NC_REQUEST_FAULTS_MAX];
	size_t count;
	size_t left_out; /* found after the list was full */
};

/* A member or an element; NULL stands for the whole. */
struct nc_place {
	const struct nc_place *parent;
	const char *key; /* NULL: an element */
	size_t index;
};

void nc_faults_add(struct nc_faults *faults, const struct nc_place *place, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* A list of {"pointer", "message"}, with a last one that counts what was left out. NULL: no memory.
 */
json_t *nc_faults_json(const struct nc_faults *faults);

/* One line per fault, for people: "/limits/memory_mb: found ...". */
void nc_faults_text(const struct nc_faults *faults, struct nc_buf *out);

#endif
