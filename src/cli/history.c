/* nacre history: what was run, and what became of it. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/hash.h"
#include "base/parse.h"
#include "base/say.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/past.h"
#include "engine/past_denials.h"
#include "recorder/blob.h"
#include "watch/history.h"
#include "watch/recorder.h"

#define LIMIT_BUILT_IN "100"

static bool arg_json;
static const char *arg_since;
static const char *arg_status;
static const char *arg_lang;
static const char *arg_limit = LIMIT_BUILT_IN;

static const struct nc_option options[] = {
	{.name = "json", .help = "Print one JSON object", .flag = &arg_json},
	{.name = "lang", .value = "LANGUAGE", .help = "Only that language", .text = &arg_lang},
	{.name = "limit",
		.value = "N",
		.help = "At most so many, the newest; built in: " LIMIT_BUILT_IN,
		.text = &arg_limit},
	{.name = "since",
		.value = "TIME",
		.help = "Not older than: 2h, 3d, 2026-11-16, 2026-11-16T03:00:00Z",
		.text = &arg_since},
	{.name = "status", .value = "STATUS", .help = "Only that status", .text = &arg_status},
	{0},
};

/* The blobs that an execution may have, and what show calls them. */
static const struct {
	const char *key;
	const char *name;
} blobs[] = {
	{"code_sha256", "code"},
	{"stdout_sha256", "stdout"},
	{"stderr_sha256", "stderr"},
};

/* Opens index and journal, gives up all rights, and reads what is new. */
static int open_history(
	struct nc_past *past, struct nc_history **ret_history, struct nacre_err *err)
{
	int r = nc_past_open(past, err);

	if (r == 0)
		r = nc_history_open(past->state_fd, past->history_fd, ret_history, err);
	if (r == 0)
		r = nc_history_lock_in(past->history_fd, err);
	return r < 0 ? r : nc_history_update(*ret_history, err);
}

static void print_row(const json_t *row)
{
	char time[NC_PAST_TEXT_SIZE], id[NC_PAST_TEXT_SIZE], status[NC_PAST_TEXT_SIZE];
	char language[NC_PAST_TEXT_SIZE], tier[NC_PAST_TEXT_SIZE], wall[NC_PAST_TEXT_SIZE];

	nc_say(stdout, "%-19.19s  %-35s  %-14s %-10s %-9s %8s\n", nc_past_text(row, "time", time),
		nc_past_text(row, "id", id), nc_past_text(row, "status", status),
		nc_past_text(row, "language", language), nc_past_text(row, "tier", tier),
		nc_past_text(row, "wall_seconds", wall));
}

static int list(struct nc_history *history, struct nacre_err *err)
{
	struct nc_history_filter filter = {.status = arg_status, .language = arg_lang};
	cleanup_json json_t *rows = NULL;
	char since[NC_CLOCK_STAMP_NS_SIZE];
	int r = nc_parse_u64(arg_limit, 1, 1000000, &filter.limit);

	if (r < 0)
		return nc_err_set(
			err, -EINVAL, "Option '--limit' takes a number from 1 to 1000000");
	if (arg_since) {
		r = nc_past_since(arg_since, since, err);
		filter.since = since;
	}
	if (r == 0)
		r = nc_history_list(history, &filter, &rows, err);
	if (r < 0)
		return r;
	(void)nc_past_denials(rows); /* or they say less */
	if (arg_json && nc_json_print(stdout, json_pack("{s:O}", "executions", rows), true) < 0)
		return nc_err_set(err, -EIO, "Write the answer");
	for (size_t i = 0; !arg_json && i < json_array_size(rows); i++)
		print_row(json_array_get(rows, i));
	return 0;
}

/* Reads the blob that row names under key. Its state: kept, none, gone or damaged. */
static const char *read_blob(const struct nc_past *past, const json_t *row, const char *key,
	char **ret_data, size_t *ret_size)
{
	const char *hex = json_string_value(json_object_get(row, key));
	unsigned char digest[NC_SHA256_SIZE];
	int r;

	if (!hex || strlen(hex) != 2 * NC_SHA256_SIZE || nc_sha256_parse(hex, digest) < 0)
		return "none";
	r = nc_blob_read(past->history_fd, digest, ret_data, ret_size);
	return r == 0 ? "kept" : r == -ENOENT ? "gone" : "damaged";
}

static int add_blobs(const struct nc_past *past, json_t *row)
{
	json_t *states = json_object();
	int r = 0;

	for (size_t i = 0; i < sizeof(blobs) / sizeof(blobs[0]); i++) {
		cleanup_free char *data = NULL;
		size_t size = 0;
		const char *state = read_blob(past, row, blobs[i].key, &data, &size);

		r |= json_object_set_new(states, blobs[i].name, json_string(state));
		r |= data ? nc_json_set_bytes(row, blobs[i].name, data, size)
			  : json_object_set_new(row, blobs[i].name, json_null());
	}
	r |= json_object_set_new(row, "kept", states);
	return r < 0 ? -ENOMEM : 0;
}

/* What a stranger's program printed: its escape sequences are not for anybody's terminal. */
static void print_foreign(const char *data, size_t size)
{
	nc_show(stdout, data, size);
	if (data && size > 0 && data[size - 1] != '\n')
		putchar('\n');
}

static void print_execution(const struct nc_past *past, const json_t *row)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)(uintptr_t)row, key, value)
	{
		/* escaped to ASCII: keys and values are a stranger's */
		cleanup_free char *text =
			json_dumps(value, JSON_ENCODE_ANY | JSON_ENSURE_ASCII | JSON_COMPACT |
						  JSON_REAL_PRECISION(15));
		cleanup_json json_t *name = json_string(key);
		cleanup_free char *shown = json_dumps(name, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);

		if (text && shown)
			nc_say(stdout, "%-22.*s %s\n", (int)strlen(shown) - 2, shown + 1, text);
	}
	for (size_t i = 0; i < sizeof(blobs) / sizeof(blobs[0]); i++) {
		cleanup_free char *data = NULL;
		size_t size = 0;
		const char *state = read_blob(past, row, blobs[i].key, &data, &size);

		if (nc_streq(state, "none"))
			continue;
		nc_say(stdout, "--- %s%s%s\n", blobs[i].name, data ? "" : ": ", data ? "" : state);
		print_foreign(data, size);
	}
}

static int show(const struct nc_past *past, struct nc_history *history, const char *id,
	struct nacre_err *err)
{
	cleanup_json json_t *rows = NULL;
	int r = nc_history_find(history, id, &rows, err);

	(void)nc_past_denials(rows); /* or they say less */
	for (size_t i = 0; r == 0 && i < json_array_size(rows); i++) {
		json_t *row = json_array_get(rows, i);

		if (!arg_json)
			print_execution(past, row);
		else if (add_blobs(past, row) < 0)
			r = nc_err_set(err, -ENOMEM, "Out of memory");
	}
	if (r == 0 && arg_json &&
		nc_json_print(stdout, json_pack("{s:O}", "executions", rows), true) < 0)
		r = nc_err_set(err, -EIO, "Write the answer");
	return r;
}

static int run_history(const struct nc_cli *cli, int n_words, char **words, struct nacre_err *err)
{
	cleanup_past struct nc_past past = NC_PAST_CLOSED;
	cleanup_history struct nc_history *history = NULL;
	int r;

	(void)cli;
	if (n_words > 0 && (n_words != 2 || !nc_streq(words[0], "show")))
		return nc_err_set(err, -EINVAL, "Name the execution: nacre history show ID");
	r = open_history(&past, &history, err);
	if (r == 0)
		r = n_words > 0 ? show(&past, history, words[1], err) : list(history, err);
	return r < 0 ? r : NC_EXIT_OK;
}

const struct nc_verb nc_verb_history = {
	.name = "history",
	.summary = "Show what was run, and what became of it",
	.arguments = "[show ID]",
	.details =
		"Lists executions, newest first: time, id, status, language, tier, seconds. With\n"
		"show: all that was recorded of one, with its code and its output.",
	.example = "nacre history --since 2h --status timeout",
	.options = options,
	.max_words = 2,
	.run = run_history,
};
