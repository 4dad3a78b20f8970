/* Hostile bytes as a stream of errors with records of a hook in it, in pieces of a size that they
 * choose: what passes, and what is taken out, does not depend on it. */
#include "fuzz.h"

#include <assert.h>
#include <string.h>

#include "policy/hooks.h"

static void gather(void *context, const char *data, size_t size)
{
	nc_buf_add(context, data, size);
}

static void take_all(struct nc_hook_reader *reader, const char *data, size_t size, size_t piece,
	struct nc_buf *out)
{
	nc_hook_reader_init(reader, "00000000000000000000000000000000");
	for (size_t at = 0; at < size; at += piece)
		nc_hook_reader_add(
			reader, data + at, size - at < piece ? size - at : piece, gather, out);
	nc_hook_reader_end(reader, gather, out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	nc_buf_cleanup struct nc_buf whole = NC_BUF(1U << 20), pieces = NC_BUF(1U << 20);
	struct nc_hook_reader first, second;

	if (size == 0)
		return 0;
	take_all(&first, (const char *)data + 1, size - 1, size, &whole);
	take_all(&second, (const char *)data + 1, size - 1, data[0] % 16 + 1U, &pieces);
	assert(whole.size == pieces.size && whole.size <= size - 1);
	assert(whole.size == 0 || memcmp(whole.data, pieces.data, whole.size) == 0);
	assert(first.n_records == second.n_records && first.n_records <= NC_HOOK_RECORDS_MAX);
	for (size_t i = 0; i < first.n_records; i++) {
		const struct nc_hook_record *record = &first.records[i];

		assert(record->rule > NC_RULE_NONE && record->rule < NC_RULE_MAX);
		assert(record->count > 0 && strlen(record->object) <= NC_HOOK_FIELD_MAX);
		for (const char *at = record->object; *at; at++)
			assert((unsigned char)*at >= ' ');
	}
	return 0;
}
