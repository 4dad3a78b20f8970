/*
 * YAML text into values, guided by a table of fields.
 *
 * libyaml's events are followed with the table in hand, so that the depth of recursion is the
 * table's, never the text's. Everything that could make two readers of a file disagree is refused:
 * unknown and repeated keys, anchors, aliases, tags, a second document, empty values.
 */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "base/text.h"
#include "config/scalar.h"
#include "config/schema.h"

/* Keys in one table; a bit of `seen` each. */
#define FIELDS_MAX 64

struct reader {
	yaml_parser_t parser;
	yaml_event_t event; /* the current one; owned */
	const char *file;
	const char *text;
	struct nacre_err *err;
	char path[160]; /* dotted keys down to where we are; "" at the top */
};

static unsigned int line_of(const struct reader *reader)
{
	return (unsigned int)reader->event.start_mark.line + 1;
}

/* "file:line: path: " for a message about the current event. */
static int fault_at(struct reader *reader, unsigned int line, const char *text)
{
	return nc_err_set(reader->err, -EINVAL, "%s:%u: %s%s%s", reader->file, line, reader->path,
		*reader->path ? ": " : "", text);
}

static int fault(struct reader *reader, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static int fault(struct reader *reader, const char *format, ...)
{
	char text[NACRE_ERR_MESSAGE_MAX];
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	return fault_at(reader, line_of(reader), text);
}

/* libyaml gives a mark for grammar errors and only a byte offset for bad encoding. */
static int yaml_fault(struct reader *reader)
{
	const yaml_parser_t *parser = &reader->parser;
	unsigned int line = (unsigned int)parser->problem_mark.line + 1;
	char text[NACRE_ERR_MESSAGE_MAX];

	if (parser->error == YAML_MEMORY_ERROR)
		return nc_err_set(
			reader->err, -ENOMEM, "Out of memory while reading %s", reader->file);
	if (parser->error == YAML_READER_ERROR) {
		line = 1;
		for (size_t i = 0; i < parser->problem_offset && reader->text[i]; i++)
			line += reader->text[i] == '\n';
	}
	(void)snprintf(text, sizeof(text), "not valid YAML: %s",
		parser->problem ? parser->problem : "unknown fault");
	reader->path[0] = '\0';
	return fault_at(reader, line, text);
}

static int next(struct reader *reader)
{
	const yaml_event_t *event = &reader->event;
	bool decorated = false;

	yaml_event_delete(&reader->event);
	if (!yaml_parser_parse(&reader->parser, &reader->event))
		return yaml_fault(reader);
	if (event->type == YAML_ALIAS_EVENT)
		decorated = true;
	else if (event->type == YAML_SCALAR_EVENT)
		decorated = event->data.scalar.anchor || event->data.scalar.tag;
	else if (event->type == YAML_SEQUENCE_START_EVENT)
		decorated = event->data.sequence_start.anchor || event->data.sequence_start.tag;
	else if (event->type == YAML_MAPPING_START_EVENT)
		decorated = event->data.mapping_start.anchor || event->data.mapping_start.tag;
	if (decorated)
		return fault(reader, "found an anchor, alias or tag, expected plain values");
	/* "8\0x" must not read as 8 */
	if (event->type == YAML_SCALAR_EVENT &&
		memchr(event->data.scalar.value, '\0', event->data.scalar.length))
		return fault(reader, "found a NUL character, expected text");
	return 0;
}

static const char *scalar_text(const struct reader *reader)
{
	return (const char *)reader->event.data.scalar.value;
}

/* An unquoted value with nothing in it, as in "key:" and the end of the line. */
static bool is_nothing(const struct reader *reader)
{
	return reader->event.type == YAML_SCALAR_EVENT &&
	       reader->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
	       reader->event.data.scalar.length == 0;
}

/* What stands there, for "found ...". */
static const char *found(const struct reader *reader, char out[static NC_TEXT_QUOTED_MAX])
{
	if (reader->event.type == YAML_SEQUENCE_START_EVENT)
		return "a list";
	if (reader->event.type == YAML_MAPPING_START_EVENT)
		return "keys and values";
	return is_nothing(reader) ? "nothing" : nc_text_quote(out, scalar_text(reader));
}

static int read_scalar(struct reader *reader, const struct nc_field *field, struct nc_value *value)
{
	nc_buf_cleanup struct nc_buf expected = NC_BUF(512);
	const yaml_event_t *event = &reader->event;
	char quoted[NC_TEXT_QUOTED_MAX];
	bool is_text = event->type == YAML_SCALAR_EVENT;
	bool is_bare = is_text && event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
	const char *hint = "";

	if (is_text && field->type != NC_FIELD_CHOICE && !is_bare) {
		hint = " without quotes";
		is_text = false;
	}
	if (is_text && nc_scalar_read(field, scalar_text(reader), &value->number) == 0) {
		value->given = true;
		value->line = line_of(reader);
		return 0;
	}
	nc_scalar_expected(field, &expected);
	return fault(reader, "found %s, expected %s%s", found(reader, quoted),
		nc_buf_text(&expected), hint);
}

static int append_word(struct reader *reader, const struct nc_field *field, struct nc_value *value)
{
	char quoted[NC_TEXT_QUOTED_MAX];
	size_t length;
	char **grown, *word;

	if (reader->event.type != YAML_SCALAR_EVENT || reader->event.data.scalar.length == 0)
		return fault(reader, "found %s, expected a word", found(reader, quoted));
	length = reader->event.data.scalar.length;
	if (length > NC_CONFIG_TEXT_MAX)
		return fault(
			reader, "found %zu bytes, expected at most %u", length, NC_CONFIG_TEXT_MAX);
	if (field->is_word && !field->is_word(scalar_text(reader)))
		return fault(
			reader, "found %s, expected %s", found(reader, quoted), field->expected);
	if (value->n_list == NC_CONFIG_LIST_MAX)
		return fault(reader, "found more than %u entries", NC_CONFIG_LIST_MAX);
	grown = reallocarray(value->list, value->n_list + 2, sizeof(*grown));
	if (!grown)
		return nc_err_set(reader->err, -ENOMEM, "Out of memory");
	value->list = grown;
	word = strdup(scalar_text(reader));
	if (!word)
		return nc_err_set(reader->err, -ENOMEM, "Out of memory");
	value->list[value->n_list++] = word;
	value->list[value->n_list] = NULL;
	return 0;
}

static int read_list(struct reader *reader, const struct nc_field *field, struct nc_value *value)
{
	char quoted[NC_TEXT_QUOTED_MAX];
	int r;

	if (reader->event.type != YAML_SEQUENCE_START_EVENT)
		return fault(reader, "found %s, expected a list%s", found(reader, quoted),
			is_nothing(reader) ? " (write [] for an empty one)" : "");
	value->given = true;
	value->line = line_of(reader);
	for (;;) {
		r = next(reader);
		if (r < 0 || reader->event.type == YAML_SEQUENCE_END_EVENT)
			return r;
		r = append_word(reader, field, value);
		if (r < 0)
			return r;
	}
}

static int read_word(struct reader *reader, const struct nc_field *field, struct nc_value *value)
{
	char quoted[NC_TEXT_QUOTED_MAX];

	if (field->type == NC_FIELD_PATH &&
		(reader->event.type != YAML_SCALAR_EVENT || scalar_text(reader)[0] != '/'))
		return fault(reader, "found %s, expected an absolute path", found(reader, quoted));
	value->given = true;
	value->line = line_of(reader);
	return append_word(reader, field, value);
}

static int unknown_key(struct reader *reader, const struct nc_field *fields)
{
	char quoted[NC_TEXT_QUOTED_MAX];
	nc_buf_cleanup struct nc_buf known = NC_BUF(512);
	struct nc_nearest nearest = {.word = scalar_text(reader)};
	bool first = true;

	for (; fields->type != NC_FIELD_END; fields++) {
		nc_nearest_offer(&nearest, fields->name);
		nc_buf_addf(&known, "%s%s", first ? "" : ", ", fields->name);
		first = false;
	}
	nc_text_quote(quoted, scalar_text(reader));
	if (nearest.best)
		return fault(
			reader, "found unknown key %s, did you mean '%s'?", quoted, nearest.best);
	return fault(reader, "found unknown key %s, expected one of: %s%s", quoted,
		nc_buf_text(&known), known.error < 0 ? ", ..." : "");
}

static const struct nc_field *find_field(const struct nc_field *fields, const char *name)
{
	for (; fields->type != NC_FIELD_END; fields++)
		if (nc_streq(fields->name, name))
			return fields;
	return NULL;
}

static int read_group(struct reader *reader, const struct nc_field *fields, void *values);

/* Makes room for one more; what is there can be freed at any time. */
static int append_entry(struct reader *reader, const struct nc_field *field, struct nc_map *map)
{
	struct nc_map_entry *grown, *entry;

	grown = reallocarray(map->entries, map->count + 1, sizeof(*grown));
	if (!grown)
		return nc_err_set(reader->err, -ENOMEM, "Out of memory");
	map->entries = grown;
	entry = &map->entries[map->count++];
	*entry = (struct nc_map_entry){.name = strdup(scalar_text(reader)),
		.line = line_of(reader),
		.values = calloc(1, field->size)};
	return entry->name && entry->values ? 0 : nc_err_set(reader->err, -ENOMEM, "Out of memory");
}

static int read_entry(struct reader *reader, const struct nc_field *field, struct nc_map *map)
{
	size_t path_size = strlen(reader->path);
	char quoted[NC_TEXT_QUOTED_MAX];
	int r;

	if (reader->event.type != YAML_SCALAR_EVENT || !field->is_word(scalar_text(reader)))
		return fault(
			reader, "found %s, expected %s", found(reader, quoted), field->expected);
	(void)snprintf(reader->path + path_size, sizeof(reader->path) - path_size, ".%s",
		scalar_text(reader));
	for (size_t i = 0; i < map->count; i++)
		if (nc_streq(map->entries[i].name, scalar_text(reader)))
			return fault(reader,
				"found a second time, expected once (first in line %u)",
				map->entries[i].line);
	if (map->count == NC_CONFIG_MAP_MAX)
		return fault(reader, "found more than %u entries", NC_CONFIG_MAP_MAX);
	r = append_entry(reader, field, map);
	if (r == 0)
		r = next(reader);
	if (r == 0)
		r = read_group(reader, field->fields, map->entries[map->count - 1].values);
	if (r == 0)
		reader->path[path_size] = '\0';
	return r;
}

static int read_map(struct reader *reader, const struct nc_field *field, struct nc_map *map)
{
	char quoted[NC_TEXT_QUOTED_MAX];
	int r;

	if (reader->event.type != YAML_MAPPING_START_EVENT)
		return fault(reader, "found %s, expected names with keys and values below them",
			found(reader, quoted));
	for (;;) {
		r = next(reader);
		if (r < 0 || reader->event.type == YAML_MAPPING_END_EVENT)
			return r;
		r = read_entry(reader, field, map);
		if (r < 0)
			return r;
	}
}

static int read_value(struct reader *reader, const struct nc_field *field, void *values)
{
	void *at = (char *)values + field->offset;
	int r = next(reader);

	if (r < 0)
		return r;
	if (field->type == NC_FIELD_GROUP)
		return read_group(reader, field->fields, at);
	if (field->type == NC_FIELD_LIST)
		return read_list(reader, field, at);
	if (field->type == NC_FIELD_MAP)
		return read_map(reader, field, at);
	if (field->type == NC_FIELD_PATH || field->type == NC_FIELD_WORD)
		return read_word(reader, field, at);
	return read_scalar(reader, field, at);
}

/* Reads keys and values up to the end of the mapping whose start is the current event. */
static int read_group(struct reader *reader, const struct nc_field *fields, void *values)
{
	size_t path_size = strlen(reader->path);
	unsigned int seen_line[FIELDS_MAX] = {0};
	char quoted[NC_TEXT_QUOTED_MAX];

	if (reader->event.type != YAML_MAPPING_START_EVENT)
		return fault(reader, "found %s, expected keys and values", found(reader, quoted));
	for (;;) {
		const struct nc_field *field;
		unsigned int *seen;
		int r = next(reader);

		if (r < 0 || reader->event.type == YAML_MAPPING_END_EVENT)
			return r;
		if (reader->event.type != YAML_SCALAR_EVENT)
			return fault(reader, "found %s, expected a key", found(reader, quoted));
		field = find_field(fields, scalar_text(reader));
		if (!field)
			return unknown_key(reader, fields);
		assert(field - fields < FIELDS_MAX);
		(void)snprintf(reader->path + path_size, sizeof(reader->path) - path_size, "%s%s",
			path_size > 0 ? "." : "", field->name);
		seen = &seen_line[field - fields];
		if (*seen > 0)
			return fault(reader,
				"found a second time, expected once (first in line %u)", *seen);
		*seen = line_of(reader);
		r = read_value(reader, field, values);
		if (r < 0)
			return r;
		reader->path[path_size] = '\0';
	}
}

/* A stream of one document, or of none: an empty file changes nothing. */
static int read_stream(struct reader *reader, const struct nc_field *fields, void *values)
{
	int r = next(reader);

	assert(r < 0 || reader->event.type == YAML_STREAM_START_EVENT);
	if (r == 0)
		r = next(reader);
	if (r < 0 || reader->event.type == YAML_STREAM_END_EVENT)
		return r;
	r = next(reader); /* behind the start of the document */
	/* a document with nothing but "---" and comments is a scalar with nothing in it */
	if (r == 0 && !is_nothing(reader))
		r = read_group(reader, fields, values);
	if (r == 0)
		r = next(reader); /* the end of the document */
	if (r == 0)
		r = next(reader);
	if (r == 0 && reader->event.type != YAML_STREAM_END_EVENT)
		r = fault(reader, "found a second document, expected one");
	return r;
}

int nc_schema_read(const struct nc_field *fields, void *values, const char *file, const char *text,
	size_t size, struct nacre_err *err)
{
	struct reader reader = {.file = file, .text = text, .err = err};
	int r;

	if (!yaml_parser_initialize(&reader.parser))
		return nc_err_set(err, -ENOMEM, "Out of memory");
	yaml_parser_set_input_string(&reader.parser, (const unsigned char *)text, size);
	r = read_stream(&reader, fields, values);
	yaml_event_delete(&reader.event);
	yaml_parser_delete(&reader.parser);
	return r;
}
