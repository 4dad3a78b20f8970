/* One value of a configuration field, from text and back. */
#include "config/scalar.h"

#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>

#include "base/parse.h"
#include "base/text.h"

static int read_choice(const struct nc_field *field, const char *text, uint64_t *ret_number)
{
	for (size_t i = 0; field->choices[i]; i++) {
		if (nc_streq(field->choices[i], text)) {
			*ret_number = i;
			return 0;
		}
	}
	return -EINVAL;
}

int nc_scalar_read(const struct nc_field *field, const char *text, uint64_t *ret_number)
{
	switch (field->type) {
	case NC_FIELD_WHOLE:
		return nc_parse_u64(text, field->min, field->max, ret_number);
	case NC_FIELD_MILLI:
		return nc_parse_milli(text, field->min, field->max, ret_number);
	case NC_FIELD_CHOICE:
		return read_choice(field, text, ret_number);
	case NC_FIELD_END:
	case NC_FIELD_GROUP:
	case NC_FIELD_LIST:
	case NC_FIELD_MAP:
	case NC_FIELD_PATH:
	case NC_FIELD_WORD:
		break;
	}
	assert(false); /* not for groups, lists and paths */
	return -EINVAL;
}

static void write_milli(uint64_t thousandths, struct nc_buf *out)
{
	unsigned int part = (unsigned int)(thousandths % 1000);
	int digits = 3;

	nc_buf_addf(out, "%" PRIu64, thousandths / 1000);
	if (part == 0)
		return;
	for (; part % 10 == 0; part /= 10)
		digits--;
	nc_buf_addf(out, ".%0*u", digits, part);
}

void nc_scalar_write(const struct nc_field *field, uint64_t number, struct nc_buf *out)
{
	if (field->type == NC_FIELD_CHOICE)
		nc_buf_adds(out, field->choices[number]);
	else if (field->type == NC_FIELD_MILLI)
		write_milli(number, out);
	else
		nc_buf_addf(out, "%" PRIu64, number);
}

void nc_scalar_expected(const struct nc_field *field, struct nc_buf *out)
{
	if (field->type == NC_FIELD_CHOICE) {
		nc_buf_adds(out, "one of: ");
		for (size_t i = 0; field->choices[i]; i++)
			nc_buf_addf(out, "%s%s", i > 0 ? ", " : "", field->choices[i]);
		return;
	}
	nc_buf_adds(out, field->type == NC_FIELD_MILLI ? "a number from " : "a whole number from ");
	nc_scalar_write(field, field->min, out);
	nc_buf_adds(out, " to ");
	nc_scalar_write(field, field->max, out);
	if (field->type == NC_FIELD_MILLI)
		nc_buf_adds(out, " with at most three decimals");
}
