/* One value of a configuration field, from text and back. */
#ifndef NC_SCALAR_H
#define NC_SCALAR_H

#include "base/buf.h"
#include "config/schema.h"

/* Reads text as the field wants it. -EINVAL or -ERANGE: it does not fit. Not for lists. */
int nc_scalar_read(const struct nc_field *field, const char *text, uint64_t *ret_number);

/* Writes number as it would stand in a file: "512", "0.5", "debug". */
void nc_scalar_write(const struct nc_field *field, uint64_t number, struct nc_buf *out);

/* Says what the field wants: "a whole number from 1 to 1024", "one of: error, warning". */
void nc_scalar_expected(const struct nc_field *field, struct nc_buf *out);

#endif
