/* Texts that are put together from others. */
#include "policy/texts.h"

#include <stdio.h>
#include <string.h>

#include "policy/decode.h"
#include "policy/eval.h"

uint32_t nc_texts_decode(struct nc_scan *scan, const struct nc_datum *from,
	ssize_t (*decode)(const char *text, size_t size, char *out), bool hides)
{
	char *out;
	ssize_t size;

	if (!nc_datum_is_plain(from))
		return 0;
	out = nc_arena_alloc(&scan->arena, (size_t)from->size + 1);
	if (!out)
		return 0;
	size = decode(from->text, from->size, out);
	return size < 0 ? 0 : nc_datum_derive(&scan->data, out, (size_t)size, from, hides);
}

uint32_t nc_texts_join(struct nc_scan *scan, const struct nc_datum *separator, uint32_t number)
{
	const struct nc_datum *list = nc_datum(&scan->data, number);
	uint32_t all = nc_datum_text(&scan->data, "", 0);
	uint32_t between = nc_datum_add(&scan->data, *separator);

	if (list->kind == NC_DATUM_TEXT && separator->size == 0)
		return number;
	if (list->kind != NC_DATUM_LIST)
		return 0;
	for (uint32_t i = 0; all && i < list->size; i++) {
		if (i > 0 && separator->size > 0)
			all = nc_datum_concat(&scan->data, all, between);
		all = nc_datum_concat(&scan->data, all, list->items[i]);
	}
	return all;
}

uint32_t nc_texts_characters(struct nc_scan *scan, const struct nc_datum *list)
{
	char *out;
	size_t used = 0;

	if (list->kind != NC_DATUM_LIST || list->size == 0)
		return 0;
	out = nc_arena_alloc(&scan->arena, (size_t)list->size * 4 + 1);
	for (uint32_t i = 0; out && i < list->size; i++) {
		const struct nc_datum *item = nc_datum(&scan->data, list->items[i]);

		if (item->kind != NC_DATUM_NUMBER)
			return 0;
		used += nc_decode_code_point(item->number, out + used);
	}
	return out ? nc_datum_derive(&scan->data, out, used, list, true) : 0;
}

uint32_t nc_texts_split(
	struct nc_scan *scan, const struct nc_datum *text, const struct nc_datum *separator)
{
	uint32_t items[NC_ARGUMENTS_MAX], count = 0;
	const char *at = text->text, *end = text->text + text->size;
	const char *blank = separator && separator->kind == NC_DATUM_TEXT ? separator->text : " ";
	size_t size = separator && separator->kind == NC_DATUM_TEXT ? separator->size : 1;

	if (text->kind != NC_DATUM_TEXT || size == 0)
		return 0;
	while (at <= end) {
		const char *next = memmem(at, (size_t)(end - at), blank, size);
		size_t length = (size_t)((next ? next : end) - at);

		if (count == NC_ARGUMENTS_MAX)
			return 0;
		if (length > 0 || separator)
			items[count++] = nc_datum_derive(&scan->data, at, length, text, false);
		if (!next)
			break;
		at = next + size;
	}
	return nc_datum_list(&scan->data, NC_DATUM_LIST, items, count);
}

uint32_t nc_texts_repeat(struct nc_scan *scan, uint32_t text, int64_t times)
{
	uint32_t all = nc_datum_text(&scan->data, "", 0);

	if (times < 0 || times > 1024)
		return 0;
	for (int64_t i = 0; all && i < times; i++)
		all = nc_datum_concat(&scan->data, all, text);
	return all;
}

uint32_t nc_texts_of(struct nc_scan *scan, uint32_t number)
{
	const struct nc_datum *datum = nc_datum(&scan->data, number);
	char digits[24];
	int size;

	if (datum->kind != NC_DATUM_NUMBER)
		return datum->kind == NC_DATUM_TEXT ? number : 0;
	size = snprintf(digits, sizeof(digits), "%lld", (long long)datum->number);
	return nc_datum_text(
		&scan->data, nc_arena_text(&scan->arena, digits, (size_t)size), (size_t)size);
}

/* The i-th of what is formatted: an item of a list, or the only one. */
static uint32_t format_item(const struct nc_scan *scan, uint32_t values, uint32_t i)
{
	const struct nc_datum *list = nc_datum(&scan->data, values);

	if (list->kind == NC_DATUM_LIST)
		return i < list->size ? list->items[i] : 0;
	return i == 0 ? values : 0;
}

uint32_t nc_texts_percent(struct nc_scan *scan, const struct nc_datum *format, uint32_t values)
{
	uint32_t all = nc_datum_text(&scan->data, "", 0), next = 0;

	for (uint32_t i = 0; all && i < format->size;) {
		const char *at = memchr(format->text + i, '%', format->size - i);
		uint32_t plain = at ? (uint32_t)(at - format->text) - i : format->size - i;

		all = nc_datum_concat(
			&scan->data, all, nc_datum_text(&scan->data, format->text + i, plain));
		i += plain + 1;
		if (!at || i >= format->size)
			break;
		if (format->text[i] == '%')
			all = nc_datum_concat(&scan->data, all, nc_datum_text(&scan->data, "%", 1));
		else
			all = nc_datum_concat(&scan->data, all,
				nc_texts_of(scan, format_item(scan, values, next++)));
		i++;
	}
	return all;
}

uint32_t nc_texts_replace(struct nc_scan *scan, const struct nc_datum *text,
	const struct nc_datum *old, const struct nc_datum *fresh)
{
	uint32_t all = nc_datum_text(&scan->data, "", 0);
	const char *at = text->text, *end = text->text + text->size;

	if (!nc_datum_is_plain(text) || !nc_datum_is_plain(old) || !nc_datum_is_plain(fresh) ||
		old->size == 0)
		return 0;
	while (all && at < end) {
		const char *found = memmem(at, (size_t)(end - at), old->text, old->size);
		size_t plain = (size_t)((found ? found : end) - at);

		all = nc_datum_concat(&scan->data, all, nc_datum_text(&scan->data, at, plain));
		if (!found)
			break;
		all = nc_datum_concat(
			&scan->data, all, nc_datum_text(&scan->data, fresh->text, fresh->size));
		at = found + old->size;
	}
	return all;
}

uint32_t nc_texts_path(struct nc_scan *scan, const struct nc_call *call)
{
	uint32_t all = nc_eval_argument_number(scan, call, 0);
	uint32_t slash = nc_datum_text(&scan->data, "/", 1);

	for (uint32_t i = 1; i < call->count; i++) {
		all = nc_datum_concat(&scan->data, all, slash);
		all = nc_datum_concat(&scan->data, all, nc_eval_argument_number(scan, call, i));
	}
	return all;
}
