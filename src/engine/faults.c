/* The list of faults of a request. */
#include "engine/faults.h"

#include <stdarg.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"

/* Cuts text, which has been truncated to its buffer, at a whole character and marks that. */
static void mark_cut(char *text, size_t size)
{
	static const char mark[] = "...";
	size_t end = size - sizeof(mark);

	while (end > 0 && ((unsigned char)text[end] & 0xc0) == 0x80)
		end--;
	memcpy(text + end, mark, sizeof(mark));
}

/* Appends what of the piece fits; whether all of it did. */
static bool append(char *out, size_t *used, const char *piece, size_t size)
{
	size_t room = NC_FAULT_POINTER_SIZE - 1 - *used;
	size_t taken = size < room ? size : room;

	memcpy(out + *used, piece, taken);
	*used += taken;
	return taken == size;
}

static bool append_key(char *out, size_t *used, const char *key)
{
	bool fits = true;

	for (; fits && *key; key++) {
		if (*key == '~')
			fits = append(out, used, "~0", 2);
		else if (*key == '/')
			fits = append(out, used, "~1", 2);
		else
			fits = append(out, used, key, 1);
	}
	return fits;
}

static bool append_place(char *out, size_t *used, const struct nc_place *place)
{
	char index[32];

	if (!place)
		return true;
	if (!append_place(out, used, place->parent) || !append(out, used, "/", 1))
		return false;
	if (place->key)
		return append_key(out, used, place->key);
	return append(
		out, used, index, (size_t)snprintf(index, sizeof(index), "%zu", place->index));
}

void nc_faults_add(struct nc_faults *faults, const struct nc_place *place, const char *format, ...)
{
	struct nc_fault *fault;
	size_t used = 0;
	va_list args;
	int length;

	if (faults->count == NC_REQUEST_FAULTS_MAX) {
		faults->left_out++;
		return;
	}
	fault = &faults->fault[faults->count++];
	if (append_place(fault->pointer, &used, place))
		fault->pointer[used] = '\0';
	else
		mark_cut(fault->pointer, sizeof(fault->pointer));
	va_start(args, format);
	length = vsnprintf(fault->message, sizeof(fault->message), format, args);
	va_end(args);
	if (length < 0 || (size_t)length >= sizeof(fault->message))
		mark_cut(fault->message, sizeof(fault->message));
}

json_t *nc_faults_json(const struct nc_faults *faults)
{
	cleanup_json json_t *list = json_array();

	for (size_t i = 0; list && i < faults->count; i++) {
		const struct nc_fault *fault = &faults->fault[i];

		if (json_array_append_new(list, json_pack("{s:s, s:s}", "pointer", fault->pointer,
							"message", fault->message)) < 0)
			return NULL;
	}
	if (list && faults->left_out > 0) {
		char more[64];

		(void)snprintf(more, sizeof(more), "and %zu more faults", faults->left_out);
		if (json_array_append_new(
			    list, json_pack("{s:s, s:s}", "pointer", "", "message", more)) < 0)
			return NULL;
	}
	return take_ptr(list);
}

void nc_faults_text(const struct nc_faults *faults, struct nc_buf *out)
{
	for (size_t i = 0; i < faults->count; i++) {
		const struct nc_fault *fault = &faults->fault[i];
		char quoted[NC_TEXT_QUOTED_MAX];
		size_t size = strlen(nc_text_quote(quoted, fault->pointer));

		/* keys are foreign and may hold what a terminal obeys; messages are made with care
		 */
		if (fault->pointer[0] == '\0')
			nc_buf_addf(out, "%s\n", fault->message);
		else
			nc_buf_addf(out, "%.*s: %s\n", (int)size - 2, quoted + 1, fault->message);
	}
	if (faults->left_out > 0)
		nc_buf_addf(out, "and %zu more faults\n", faults->left_out);
}
