/* nacre audit: holds the journal against its key, exports its head, prints its lines. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "base/fd.h"
#include "base/parse.h"
#include "base/path.h"
#include "base/say.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/past.h"
#include "recorder/segment.h"
#include "recorder/verify.h"
#include "watch/recorder.h"

/* Damages that --json lists; all are counted. */
#define LISTED_MAX 1000U

static bool arg_json;
static const char *arg_key;
static const char *arg_head;
static const char *arg_kind;
static const char *arg_since;

static const struct nc_option verify_options[] = {
	{.name = "head",
		.value = "SEQ:HASH",
		.help = "A head that was exported: it must be there still",
		.text = &arg_head},
	{.name = "json", .help = "Print one JSON object", .flag = &arg_json},
	{.name = "key",
		.value = "FILE",
		.help = "The verify.key, if it was moved",
		.text = &arg_key},
	{0},
};

static const struct nc_option log_options[] = {
	{.name = "json", .help = "Print the lines as they are", .flag = &arg_json},
	{.name = "kind",
		.value = "KIND",
		.help = "Only execution, security, performance or audit",
		.text = &arg_kind},
	{.name = "since",
		.value = "TIME",
		.help = "Not older than: 2h, 3d, 2026-11-16, 2026-11-16T03:00:00Z",
		.text = &arg_since},
	{0},
};

/* "12:<64 digits>" */
static int parse_head(const char *text, struct nc_receipt *ret_head, struct nacre_err *err)
{
	const char *colon = strchr(text, ':');
	char number[24] = "", quoted[NC_TEXT_QUOTED_MAX];
	int r = -EINVAL;

	if (colon && (size_t)(colon - text) < sizeof(number) &&
		strlen(colon + 1) == 2 * NC_SHA256_SIZE) {
		memcpy(number, text, (size_t)(colon - text));
		r = nc_parse_u64(number, 0, INT64_MAX, &ret_head->seq);
		if (r == 0)
			r = nc_sha256_parse(colon + 1, ret_head->hash);
	}
	return r < 0 ? nc_err_set(err, -EINVAL, "Head %s: not as nacre audit head prints it",
			       nc_text_quote(quoted, text))
		     : 0;
}

static void report(void *context, const struct nc_damage *damage)
{
	json_t *list = context;
	char name[NC_SEGMENT_NAME_SIZE] = "";

	if (damage->segment > 0)
		nc_segment_name(damage->segment, name);
	if (!list) {
		if (damage->segment > 0)
			nc_say(stdout, "%s:%" PRIu64 ": ", name, damage->line);
		nc_say(stdout, "%s\n", damage->text);
	} else if (json_array_size(list) < LISTED_MAX) {
		(void)json_array_append_new(
			list, json_pack("{s:s, s:s?, s:I, s:I, s:s}", "kind",
				      nc_damage_names[damage->kind], "file", name[0] ? name : NULL,
				      "line", (json_int_t)damage->line, "seq",
				      (json_int_t)damage->seq, "text", damage->text));
	}
}

static void write_head(char *out, size_t size, const struct nc_receipt *head)
{
	char hex[NC_SHA256_HEX_SIZE];

	nc_sha256_hex(head->hash, hex);
	(void)snprintf(out, size, "%" PRIu64 ":%s", head->seq, hex);
}

static int print_verdict(
	const struct nc_verdict *verdict, const json_t *damages, struct nacre_err *err)
{
	char head[24 + NC_SHA256_HEX_SIZE];

	write_head(head, sizeof(head), &verdict->last);
	if (damages) {
		json_t *answer = json_pack("{s:b, s:I, s:I, s:I, s:s, s:I, s:I, s:O}", "ok",
			verdict->damages == 0, "lines", (json_int_t)verdict->lines, "first_seq",
			(json_int_t)verdict->first_seq, "retired", (json_int_t)verdict->retired,
			"head", head, "unfinished_bytes", (json_int_t)verdict->unfinished_bytes,
			"n_damages", (json_int_t)verdict->damages, "damages", damages);

		return nc_json_print(stdout, answer, true) < 0
			       ? nc_err_set(err, -EIO, "Write the answer")
			       : 0;
	}
	if (verdict->retired > 0)
		nc_say(stdout, "Lines 1 to %" PRIu64 " were retired\n", verdict->retired);
	if (verdict->unfinished_bytes > 0)
		nc_say(stdout, "%" PRIu64 " bytes at the end are an append that is not finished\n",
			verdict->unfinished_bytes);
	if (verdict->damages > 0)
		nc_say(stdout,
			"The journal is damaged: %" PRIu64 " found, %" PRIu64 " lines are good\n",
			verdict->damages, verdict->lines);
	else
		nc_say(stdout, "The journal is good: %" PRIu64 " lines, head %s\n", verdict->lines,
			head);
	return 0;
}

static int run_verify(const struct nc_cli *cli, int n_words, char **words, struct nacre_err *err)
{
	cleanup_past struct nc_past past = NC_PAST_CLOSED;
	cleanup_json json_t *damages = arg_json ? json_array() : NULL;
	struct nc_verdict verdict;
	struct nc_receipt head = {0};
	unsigned char key[NC_SHA256_SIZE];
	int r = arg_head ? parse_head(arg_head, &head, err) : 0;

	(void)cli;
	(void)n_words;
	(void)words;
	if (r == 0)
		r = nc_past_open(&past, err);
	if (r == 0)
		r = nc_history_key(past.state_fd, arg_key, key, err);
	if (r == 0)
		r = nc_history_lock_in(past.history_fd, err);
	if (r < 0)
		return r;
	r = nc_verify(past.history_fd, key, arg_head ? &head : NULL, report, damages, &verdict);
	explicit_bzero(key, sizeof(key));
	if (r < 0)
		return nc_err_errno(err, r, "Read the journal");
	r = print_verdict(&verdict, damages, err);
	return r < 0 ? r : verdict.damages > 0 ? NC_EXIT_FAULTS : NC_EXIT_OK;
}

static int run_head(const struct nc_cli *cli, int n_words, char **words, struct nacre_err *err)
{
	cleanup_past struct nc_past past = NC_PAST_CLOSED;
	char text[24 + NC_SHA256_HEX_SIZE];
	struct nc_receipt head;
	struct nc_place place;
	struct nc_link link;
	int r = nc_past_open(&past, err);

	(void)cli;
	(void)n_words;
	(void)words;
	if (r < 0)
		return r;
	r = nc_journal_read_key(past.history_fd, &link, &place);
	if (r < 0)
		return nc_err_errno(err, r, "Read the key of the journal");
	head.seq = link.seq - 1;
	memcpy(head.hash, link.last, sizeof(head.hash));
	explicit_bzero(&link, sizeof(link));
	write_head(text, sizeof(text), &head);
	nc_say(stdout, "%s\n", text);
	return NC_EXIT_OK;
}

static bool is_wanted(const json_t *line, const char *since)
{
	const char *kind = json_string_value(json_object_get(line, "kind"));
	const char *time = json_string_value(json_object_get(line, "time"));

	return kind && time && (!arg_kind || nc_streq(kind, arg_kind)) &&
	       (!since || strcmp(time, since) >= 0);
}

static void print_line(const json_t *line, const char *text, size_t size)
{
	static const char *const keys[] = {"time", "kind", "from", "event", "id"};
	static const int widths[] = {30, 11, 8, 12, 3};
	char word[NC_PAST_TEXT_SIZE];
	cleanup_free char *body = NULL;

	if (arg_json) {
		nc_say(stdout, "%.*s\n", (int)size, text);
		return;
	}
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		nc_say(stdout, "%-*s ", widths[i], nc_past_text(line, keys[i], word));
	body = json_dumps(json_object_get(line, "body"), JSON_COMPACT | JSON_ENSURE_ASCII);
	nc_say(stdout, "%s\n", body ? body : "-");
}

static int print_lines(int journal_fd, const char *since)
{
	cleanup_reader struct nc_reader reader = NC_READER_CLOSED;
	const char *text;
	size_t size;
	int r = nc_reader_open(&reader, journal_fd, 0, 0);

	while (r >= 0 && (r = nc_reader_next(&reader, &text, &size)) > 0) {
		cleanup_json json_t *line = NULL;
		struct nacre_err ignored = {0};

		/* what is no line is for verify to tell */
		if (!reader.cut && nc_json_parse(text, size, &line, &ignored) == 0 &&
			is_wanted(line, since))
			print_line(line, text, size);
	}
	return r;
}

static int check_kind(struct nacre_err *err)
{
	char quoted[NC_TEXT_QUOTED_MAX];

	for (size_t i = 0; arg_kind && nc_record_kind_names[i]; i++)
		if (nc_streq(arg_kind, nc_record_kind_names[i]))
			return 0;
	return !arg_kind ? 0
			 : nc_err_set(err, -EINVAL,
				   "Kind %s: not one of execution, security, performance, audit",
				   nc_text_quote(quoted, arg_kind));
}

static int run_log(const struct nc_cli *cli, int n_words, char **words, struct nacre_err *err)
{
	cleanup_past struct nc_past past = NC_PAST_CLOSED;
	cleanup_close int journal_fd = -EBADF;
	char since[NC_CLOCK_STAMP_NS_SIZE];
	int r = check_kind(err);

	(void)cli;
	(void)n_words;
	(void)words;
	if (r == 0 && arg_since)
		r = nc_past_since(arg_since, since, err);
	if (r == 0)
		r = nc_past_open(&past, err);
	if (r == 0)
		r = nc_history_lock_in(past.history_fd, err);
	if (r < 0)
		return r;
	r = journal_fd = nc_path_open(past.history_fd, "journal", O_RDONLY | O_DIRECTORY, 0);
	if (r >= 0)
		r = print_lines(journal_fd, arg_since ? since : NULL);
	return r < 0 ? nc_err_errno(err, r, "Read the journal") : NC_EXIT_OK;
}

static const struct nc_verb verify_verb = {
	.name = "verify",
	.summary = "Find any line of the journal that was changed, removed, moved or put in",
	.arguments = "",
	.details =
		"Holds every line against the key that the journal began with (verify.key in the\n"
		"state directory; better kept elsewhere). Exits with 1 if anything is wrong.",
	.example = "nacre audit verify --key /media/usb/verify.key",
	.options = verify_options,
	.run = run_verify,
};

static const struct nc_verb head_verb = {
	.name = "head",
	.summary = "Print the head of the journal, to be kept elsewhere",
	.arguments = "",
	.details = "Prints the number and the hash of the last line. Kept on another machine, it\n"
		   "proves by nacre audit verify --head that the journal was not cut behind it.",
	.example = "nacre audit head",
	.run = run_head,
};

static const struct nc_verb log_verb = {
	.name = "log",
	.summary = "Print the lines of the journal",
	.arguments = "",
	.details =
		"Prints time, kind, source, event, execution and body of each line, oldest first.",
	.example = "nacre audit log --kind security --since 1d",
	.options = log_options,
	.run = run_log,
};

static const struct nc_verb *const verbs[] = {&verify_verb, &head_verb, &log_verb, NULL};

const struct nc_verb nc_verb_audit = {
	.name = "audit",
	.summary = "Verify, export or print the journal",
	.arguments = "VERB",
	.details = "The journal has one line per event, chained with a key that is replaced after\n"
		   "each line, so that nobody can rewrite what was written before he came.",
	.example = "nacre audit verify",
	.verbs = verbs,
};
