/*
 * Replies that may be given again.
 *
 * Equal are requests whose every field is equal but for the names (id, labels), the
 * priority and how the reply is delivered; for the same interpreters and limits. A tenant never
 * gets what another has asked for. The policy is asked anew each time. What read the caller's own
 * standard input or could reach the network, failed, or printed what a reply cannot hold is not
 * kept.
 */
#include "engine/results.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "engine/keep.h"
#include "engine/owner.h"

#define KIND "results"
/* A reply: two streams, and files that may be as large again in base64. */
#define RESULT_MAX (4U * NC_INLINE_MAX + 2U * NC_TAKEN_MAX)

bool nc_results_wants(const struct nc_execution *execution)
{
	return execution->request.cache && execution->input_fd < 0 && !execution->reach &&
	       execution->request.binds.count == 0 &&
	       nc_engine_setup(execution->engine)->cache_fd >= 0;
}

/* Contents that are not in the request's JSON, by their digests; no file is written like that. */
static void name_contents(json_t *source, const struct nc_request_files *files)
{
	json_t *named = json_copy(json_object_get(source, "files"));

	for (size_t i = 0; named && i < files->count; i++)
		if (files->file[i].cut)
			(void)json_object_set_new(named, files->file[i].path,
				json_pack("[sb]", files->file[i].cut_digest,
					files->file[i].executable));
	if (named)
		(void)json_object_set_new(source, "files", named);
}

static void make_key(struct nc_execution *execution)
{
	static const char *const names[] = {"id", "labels", "priority", "stream", "cache"};
	json_t *source = json_copy(execution->request.source);
	struct nc_digest *digest = nc_owner_digest(NC_STORE_REPLIES, execution->request.tenant);
	char *text = NULL;

	for (size_t i = 0; source && i < sizeof(names) / sizeof(names[0]); i++)
		(void)json_object_del(source, names[i]);
	if (source)
		name_contents(source, &execution->request.files);
	text = source ? json_dumps(source, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
	json_decref(source);
	nc_digest_text(digest, NACRE_VERSION);
	nc_digest_text(digest, text ? text : "");
	nc_digest_add(digest, &execution->limits, sizeof(execution->limits));
	nc_digest_add(digest, &execution->output_max, sizeof(execution->output_max));
	nc_digest_text(digest, nc_tier_names[execution->tier]);
	for (size_t i = 0; i < execution->request.n_steps; i++)
		nc_digest_program(digest, execution->step[i].runtime->version_argv[0]);
	nc_digest_end(digest, execution->result_key);
	if (!text)
		execution->result_key[0] = '\0';
	free(text);
}

void nc_results_find(struct nc_execution *execution)
{
	cleanup_free char *text = NULL;
	cleanup_json json_t *reply = NULL;
	struct nacre_err ignored = {0};
	size_t size;

	make_key(execution);
	if (nc_keep_read(nc_engine_setup(execution->engine)->cache_fd, KIND, execution->result_key,
		    RESULT_MAX, &text, &size) < 0 ||
		nc_json_parse(text, size, &reply, &ignored) < 0)
		return;
	if (json_object_set_new(reply, "cached", json_true()) < 0 ||
		json_object_set_new(reply, "id", nc_execution_name(execution)) < 0 ||
		json_object_set_new(reply, "labels", nc_execution_labels(execution)) < 0)
		return;
	execution->kept = take_ptr(reply);
}

/* Whether a reply has all that was printed, byte by byte. */
static bool is_whole(const struct nc_output *output)
{
	nc_buf_cleanup struct nc_buf text = NC_BUF(2 * NC_INLINE_MAX);

	if (nc_output_is_cut(output) || nc_output_text(output, &text) < 0)
		return false;
	for (size_t i = 0, n; i < text.size; i += n) {
		n = nc_text_utf8(text.data + i, text.size - i);
		if (n == 0)
			return false;
	}
	return true;
}

void nc_results_keep(const struct nc_execution *execution, const json_t *reply)
{
	cleanup_free char *text = NULL;

	if (!nc_results_wants(execution) || !*execution->result_key ||
		!nc_streq(json_string_value(json_object_get(reply, "status")), "success"))
		return;
	for (size_t i = 0; i < execution->request.n_steps; i++)
		for (enum nc_stream j = 0; j < NC_STREAM_MAX; j++)
			if (!is_whole(&execution->step[i].output[j]))
				return;
	text = json_dumps(reply, JSON_COMPACT);
	if (text)
		nc_keep_write(nc_engine_setup(execution->engine)->cache_fd, KIND,
			execution->result_key, text, strlen(text));
}
