/* A policy that a command line names, and how its values are shown. */
#include "cli/policies.h"

#include <errno.h>

#include "base/json.h"
#include "config/scalar.h"

int nc_policy_open(const struct nc_cli *cli, const char *word, const char *tenant,
	struct nc_book **ret_book, const struct nc_terms **ret_terms, struct nacre_err *err)
{
	cleanup_book struct nc_book *book = NULL;
	int r = nc_book_new(cli->config, &book);

	if (r < 0)
		return nc_err_errno(err, r, "Read the policy");
	if (!word)
		word = nc_book_usual(book);
	r = nc_book_add(book, word, err);
	if (r == 0)
		r = nc_book_terms(book, word, tenant ? tenant : "", ret_terms, err);
	if (r == 0)
		*ret_book = take_ptr(book);
	return r;
}

void nc_value_text(const struct nc_field *field, const struct nc_value *value, struct nc_buf *out)
{
	if (field->type == NC_FIELD_PATH || field->type == NC_FIELD_WORD) {
		nc_buf_adds(out, value->n_list > 0 ? value->list[0] : "none");
		return;
	}
	if (field->type != NC_FIELD_LIST) {
		nc_scalar_write(field, value->number, out);
		return;
	}
	nc_buf_adds(out, "[");
	for (size_t i = 0; i < value->n_list; i++) {
		nc_buf_adds(out, i > 0 ? ", " : "");
		/* YAML can say what a terminal obeys */
		for (const char *c = value->list[i]; *c; c++)
			nc_buf_add(out, (unsigned char)*c < ' ' || *c == 0x7f ? "?" : c, 1);
	}
	nc_buf_adds(out, "]");
}

static json_t *list_json(const struct nc_value *value)
{
	cleanup_json json_t *list = json_array();

	for (size_t i = 0; list && i < value->n_list; i++)
		if (json_array_append_new(
			    list, nc_json_text(value->list[i], strlen(value->list[i]))) < 0)
			return NULL;
	return take_ptr(list);
}

json_t *nc_value_json(const struct nc_field *field, const struct nc_value *value)
{
	if (field->type == NC_FIELD_WHOLE)
		return json_integer((json_int_t)value->number);
	if (field->type == NC_FIELD_MILLI)
		return json_real((double)value->number / 1000);
	if (field->type == NC_FIELD_CHOICE)
		return json_string(field->choices[value->number]);
	if (field->type == NC_FIELD_PATH || field->type == NC_FIELD_WORD)
		return value->n_list > 0 ? json_string(value->list[0]) : json_null();
	return list_json(value);
}
