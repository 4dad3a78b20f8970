/* A policy that a command line names, and how its values are shown. */
#ifndef NC_POLICIES_H
#define NC_POLICIES_H

#include <jansson.h>

#include "base/buf.h"
#include "cli/cli.h"
#include "policy/book.h"

/*
 * Reads a policy by name or file (NULL: the usual one) and works out its terms for the tenant
 * (NULL: nobody in particular), which belong to the book.
 */
int nc_policy_open(const struct nc_cli *cli, const char *word, const char *tenant,
	struct nc_book **ret_book, const struct nc_terms **ret_terms, struct nacre_err *err);

/* A value as it would stand in a file, and as JSON (NULL: out of memory). */
void nc_value_text(const struct nc_field *field, const struct nc_value *value, struct nc_buf *out);
json_t *nc_value_json(const struct nc_field *field, const struct nc_value *value);

#endif
