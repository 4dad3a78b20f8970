/* Reading JSON objects by tables. */
#include "engine/reader.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

_Static_assert(NC_REQUEST_NAME_MAX == 64, "the messages say 64");

static const char *describe(char out[static NC_TEXT_QUOTED_MAX], json_t *value)
{
	switch (json_typeof(value)) {
	case JSON_STRING:
		return nc_text_quote(out, json_string_value(value));
	case JSON_INTEGER:
		(void)snprintf(
			out, NC_TEXT_QUOTED_MAX, "%lld", (long long)json_integer_value(value));
		return out;
	case JSON_REAL:
		(void)snprintf(out, NC_TEXT_QUOTED_MAX, "%.15g", json_real_value(value));
		return out;
	case JSON_OBJECT:
		return json_object_size(value) > 0 ? "an object" : "an empty object";
	case JSON_ARRAY:
		return json_array_size(value) > 0 ? "a list" : "an empty list";
	case JSON_TRUE:
		return "true";
	case JSON_FALSE:
		return "false";
	case JSON_NULL:
	default:
		return "null";
	}
}

void nc_refuse(const struct nc_cursor *c, const char *expected)
{
	char found[NC_TEXT_QUOTED_MAX];

	nc_fault(c, "found %s, expected %s", describe(found, c->value), expected);
}

void nc_refuse_name(const struct nc_cursor *c, const char *name, const char *expected)
{
	const struct nc_place at = {.parent = c->at, .key = name};
	char quoted[NC_TEXT_QUOTED_MAX];

	nc_faults_add(c->reading->faults, &at, "found the name %s, expected %s",
		nc_text_quote(quoted, name), expected);
}

void *nc_read_allocate(const struct nc_cursor *c, size_t count, size_t size)
{
	void *memory = calloc(count + 1, size);

	if (!memory)
		c->reading->error = -ENOMEM;
	return memory;
}

/* What would be left out of the list is not looked for: some thousand times it takes long. */
static void refuse_unknown(const struct nc_cursor *c, const struct nc_rule *rules)
{
	struct nc_nearest nearest = {.word = c->at->key};

	for (; rules->name && c->reading->faults->count < NC_REQUEST_FAULTS_MAX; rules++)
		nc_nearest_offer(&nearest, rules->name);
	if (nearest.best)
		nc_fault(c, "found an unknown field; did you mean '%s'?", nearest.best);
	else
		nc_fault(c, "found an unknown field");
}

void nc_read_members(const struct nc_cursor *c, const struct nc_rule *rules, void *base)
{
	const char *key;
	json_t *value;

	if (!json_is_object(c->value)) {
		nc_refuse(c, "an object");
		return;
	}
	json_object_foreach(c->value, key, value)
	{
		const struct nc_place at = {.parent = c->at, .key = key};
		struct nc_cursor member = {.reading = c->reading, .at = &at, .value = value};
		const struct nc_rule *rule = rules;

		while (rule->name && !nc_streq(rule->name, key))
			rule++;
		member.rule = rule;
		member.target = (char *)base + rule->offset;
		if (rule->name)
			rule->read(&member);
		else
			refuse_unknown(&member, rules);
	}
}

void nc_read_bool(const struct nc_cursor *c)
{
	if (json_is_boolean(c->value))
		*(bool *)c->target = json_is_true(c->value);
	else
		nc_refuse(c, "true or false");
}

/* 30 and 30.0 are whole; 30.5, -1 and "30" are not. */
static bool whole_number(json_t *value, uint64_t *ret_number)
{
	double real = json_number_value(value);

	if (!json_is_number(value) || !(real >= 0) || real >= 0x1p63 ||
		real != (double)(uint64_t)real)
		return false;
	*ret_number = json_is_integer(value) ? (uint64_t)json_integer_value(value) : (uint64_t)real;
	return true;
}

static bool whole_in_range(const struct nc_cursor *c, uint64_t *ret_number)
{
	const struct nc_rule *rule = c->rule;
	char expected[96];

	if (whole_number(c->value, ret_number) && *ret_number >= rule->min &&
		*ret_number <= rule->max)
		return true;
	(void)snprintf(expected, sizeof(expected), "a whole number from %llu to %llu",
		(unsigned long long)rule->min, (unsigned long long)rule->max);
	nc_refuse(c, expected);
	return false;
}

void nc_read_whole(const struct nc_cursor *c)
{
	struct nc_request_limit *limit = c->target;
	uint64_t number;

	if (whole_in_range(c, &number))
		*limit = (struct nc_request_limit){number * c->rule->unit, true};
}

void nc_read_priority(const struct nc_cursor *c)
{
	uint64_t number;

	if (whole_in_range(c, &number))
		*(unsigned int *)c->target = (unsigned int)number;
}

/* A number with decimals, kept in thousandths. */
void nc_read_milli(const struct nc_cursor *c)
{
	struct nc_request_limit *limit = c->target;
	const struct nc_rule *rule = c->rule;
	double milli = json_number_value(c->value) * 1000;
	char expected[96];

	if (json_is_number(c->value) && milli >= (double)rule->min && milli <= (double)rule->max) {
		*limit = (struct nc_request_limit){(uint64_t)(milli + 0.5), true};
		return;
	}
	(void)snprintf(expected, sizeof(expected), "a number from %g to %g",
		(double)rule->min / 1000, (double)rule->max / 1000);
	nc_refuse(c, expected);
}

const char *nc_read_text(const struct nc_cursor *c)
{
	if (!json_is_string(c->value))
		nc_refuse(c, "text");
	return json_string_value(c->value);
}

bool nc_is_request_name(const char *text, const char *others)
{
	size_t size = strlen(text);

	for (size_t i = 0; i < size; i++) {
		bool alnum = isascii((unsigned char)text[i]) && isalnum((unsigned char)text[i]);

		if (!alnum && (i == 0 || !strchr(others, text[i])))
			return false;
	}
	return size > 0 && size <= NC_REQUEST_NAME_MAX;
}

const char *nc_read_name(const struct nc_cursor *c)
{
	const char *text = json_string_value(c->value);

	if (text && nc_is_request_name(text, "._-"))
		return text;
	nc_refuse(c, "1 to 64 letters, digits, '.', '_' and '-', a letter or digit first");
	return NULL;
}

int nc_read_choice(const struct nc_cursor *c, const char *const *names, size_t count)
{
	nc_buf_cleanup struct nc_buf expected = NC_BUF(NC_FAULT_MESSAGE_SIZE);
	const char *text = json_string_value(c->value);
	struct nc_nearest nearest = {.word = text ? text : ""};

	nc_buf_adds(&expected, "one of ");
	for (size_t i = 0; i < count; i++) {
		if (text && nc_streq(names[i], text))
			return (int)i;
		nc_nearest_offer(&nearest, names[i]);
		nc_buf_addf(&expected, "%s%s", i > 0 ? ", " : "", names[i]);
	}
	if (nearest.best)
		nc_buf_addf(&expected, "; did you mean '%s'?", nearest.best);
	nc_refuse(c, nc_buf_text(&expected));
	return -EINVAL;
}

void nc_read_words(const struct nc_cursor *c, const struct nc_list *list)
{
	struct nc_request_words *words = c->target;
	size_t total = 0, index;
	json_t *value;

	if (!json_is_array(c->value)) {
		nc_refuse(c, "a list of texts");
		return;
	}
	if (json_array_size(c->value) > list->count_max) {
		nc_fault(c, "found %zu %s, expected at most %zu", json_array_size(c->value),
			list->noun, list->count_max);
		return;
	}
	words->words = nc_read_allocate(c, json_array_size(c->value), sizeof(*words->words));
	if (!words->words)
		return;
	json_array_foreach(c->value, index, value)
	{
		const struct nc_place at = {.parent = c->at, .index = index};
		const struct nc_cursor element = {.reading = c->reading, .at = &at, .value = value};
		const char *text = nc_read_text(&element);

		if (!text)
			continue;
		if (list->is_good && !list->is_good(text))
			nc_refuse(&element, list->expected);
		total += json_string_length(value) + 1;
		words->words[words->count++] = text;
	}
	if (list->size_max > 0 && total > list->size_max)
		nc_fault(c, "found %zu bytes of %s, expected at most %zu", total, list->noun,
			list->size_max);
}

bool nc_read_pairs(const struct nc_cursor *c, const char *noun, size_t max)
{
	struct nc_request_pairs *pairs = c->target;
	const char *key;
	json_t *value;

	if (!json_is_object(c->value)) {
		nc_refuse(c, "an object of texts");
		return false;
	}
	if (json_object_size(c->value) > max) {
		nc_fault(c, "found %zu %s, expected at most %zu", json_object_size(c->value), noun,
			max);
		return false;
	}
	pairs->pair = nc_read_allocate(c, json_object_size(c->value), sizeof(*pairs->pair));
	if (!pairs->pair)
		return false;
	json_object_foreach(c->value, key, value)
	{
		const struct nc_place at = {.parent = c->at, .key = key};
		const struct nc_cursor member = {.reading = c->reading, .at = &at, .value = value};
		const char *text = nc_read_text(&member);

		if (text)
			pairs->pair[pairs->count++] = (struct nc_request_pair){key, text};
	}
	return true;
}
