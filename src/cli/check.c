/* nacre check: what the policy says about programs, without running them. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/say.h"
#include "base/text.h"
#include "cli/check.h"
#include "cli/policies.h"
#include "kernel/fence.h"
#include "kernel/filter.h"
#include "kernel/privilege.h"
#include "policy/bounds.h"
#include "policy/json.h"

#define FILES_MAX 256

static struct nc_check args;

static const struct nc_option options[] = {
	{.name = "json", .help = "Print one JSON object (docs/policy.md)", .flag = &args.json},
	{.name = "lang",
		.value = "LANGUAGE",
		.help = "The language, where the name does not tell",
		.text = &args.lang},
	{.name = "policy",
		.value = "NAME|FILE",
		.help = "standard (the usual one), strict, audit or one of yours",
		.text = &args.policy},
	{.name = "sarif", .help = "Print a SARIF 2.1 log", .flag = &args.sarif},
	{.name = "tenant",
		.value = "NAME",
		.help = "With the policy's overrides for this tenant",
		.text = &args.tenant},
	{0},
};

/* A program to check. */
struct source {
	const char *name;
	char *text;
	size_t size;
	enum nc_language language;
};

struct sources {
	struct source *list;
	size_t count;
};

static void sources_done(struct sources *sources)
{
	for (size_t i = 0; sources->list && i < sources->count; i++)
		free(sources->list[i].text);
	free(sources->list);
}

/* Reads a program; of one that is too large, one byte more than is analysed. */
static int read_source(struct source *source, struct nacre_err *err)
{
	cleanup_close int opened = -EBADF;
	int fd = STDIN_FILENO;
	char quoted[NC_TEXT_QUOTED_MAX];
	ssize_t size;

	if (!nc_streq(source->name, "-")) {
		opened = fd = open(source->name, O_RDONLY | O_CLOEXEC | O_NOCTTY);
		if (fd < 0)
			return nc_err_errno(err, -errno, "%s", nc_text_quote(quoted, source->name));
	}
	source->text = malloc(NC_SOURCE_MAX + 1);
	if (!source->text)
		return nc_err_set(err, -ENOMEM, "Out of memory");
	size = nc_fd_read_upto(fd, source->text, NC_SOURCE_MAX + 1);
	if (size < 0)
		return nc_err_errno(err, (int)size, "%s", nc_text_quote(quoted, source->name));
	source->size = (size_t)size;
	return 0;
}

static int find_language(struct source *source, const char *lang, struct nacre_err *err)
{
	char quoted[NC_TEXT_QUOTED_MAX];

	if (lang)
		source->language = nc_policy_parse_language(lang);
	else
		source->language =
			nc_policy_guess_language(source->name, source->text, source->size);
	if (source->language >= 0)
		return 0;
	if (lang)
		return nc_err_set(err, -EINVAL, "Unknown language %s", nc_text_quote(quoted, lang));
	return nc_err_set(err, -EINVAL,
		"%s: neither its name nor its first line tells the language: name it with --lang",
		nc_text_quote(quoted, source->name));
}

static int read_sources(
	struct sources *sources, const char *lang, int n_words, char **words, struct nacre_err *err)
{
	int r = 0;

	sources->list = calloc((size_t)n_words, sizeof(*sources->list));
	if (!sources->list)
		return nc_err_set(err, -ENOMEM, "Out of memory");
	sources->count = (size_t)n_words;
	for (size_t i = 0; r == 0 && i < sources->count; i++) {
		struct source *source = &sources->list[i];

		source->name = words[i];
		r = read_source(source, err);
		if (r == 0)
			r = find_language(source, lang, err);
		if (r == 0) {
			/* most programs are small, and many may be named */
			char *shorter = realloc(source->text, source->size + 1);

			source->text = shorter ? shorter : source->text;
		}
	}
	return r;
}

/*
 * All is read: what remains is parsing, which is where hostile text could do harm. We become what a
 * worker is: no privilege, no files, and only the system calls that bytes are moved with.
 */
static int give_up_rights(struct nacre_err *err)
{
	bool ranges = false;
	int r = nc_privilege_ranges(&ranges, err);

	/* the host's root under another number has nothing that it could become */
	if (r == -EPERM)
		r = 0;
	if (r == 0)
		r = nc_privilege_drop(ranges);
	if (r == 0)
		r = nc_fence_all();
	if (r >= 0)
		r = nc_filter_load(NC_FILTER_WORKER, NULL);
	return r < 0 ? nc_err_errno(err, r, "Give up rights") : 0;
}

/* The line of a finding, and a caret below it. */
static void print_line(const struct source *source, const struct nc_finding *finding)
{
	const char *begin = source->text + finding->offset, *end = begin;
	const char *last = source->text + source->size;
	size_t before, marked;
	char line[200];

	while (begin > source->text && begin[-1] != '\n')
		begin--;
	while (end < last && *end != '\n')
		end++;
	if (end - begin > (ssize_t)sizeof(line) || begin == end)
		return;
	fputs("    ", stdout);
	for (size_t i = 0; i < (size_t)(end - begin); i++)
		line[i] = (char)(begin[i] == '\t' ? ' ' : begin[i]);
	nc_show(stdout, line, (size_t)(end - begin));
	before = finding->column - 1;
	marked = finding->line == finding->end_line ? finding->end_column - finding->column : 1;
	nc_say(stdout, "\n    %*s^", (int)before, "");
	for (size_t i = 1; i < marked; i++)
		putchar('~');
	putchar('\n');
}

static void print_findings(const struct source *source, const struct nc_report *report, bool color)
{
	static const char *const codes[NC_SEVERITY_MAX] = {
		"\033[36m", "\033[33m", "\033[31m", "\033[1;31m"};
	size_t count;
	const struct nc_finding *finding = nc_report_findings(report, &count);

	for (size_t i = 0; i < count; i++, finding++) {
		nc_say(stdout, "%s:%u:%u: ", source->name, finding->line, finding->column);
		printf("%s%s%s: ", color ? codes[finding->severity] : "",
			nc_severity_names[finding->severity], color ? "\033[0m" : "");
		nc_say(stdout, "%s", finding->why);
		if (*finding->object) {
			fputs(": ", stdout);
			nc_show_line(stdout, finding->object, strlen(finding->object));
		}
		if (*finding->within)
			nc_say(stdout, " (%s)", finding->within);
		nc_say(stdout, " [%s]\n", finding->rule);
		print_line(source, finding);
		nc_say(stdout, "    instead: %s\n", finding->remedy);
	}
}

static void print_verdict(const struct source *source, const struct nc_report *report)
{
	static const char *const verdicts[NC_VERDICT_MAX] = {
		[NC_VERDICT_ALLOW] = "allowed in any tier",
		[NC_VERDICT_CONTAINER] = "allowed in the container tier",
		[NC_VERDICT_MICROVM] = "allowed in a microvm, or a container where there is none",
		[NC_VERDICT_REFUSE] = "refused",
	};
	size_t count;
	const struct nc_points *points = nc_report_points(report, &count);

	nc_say(stdout, "%s: %s: risk %s", source->name, verdicts[nc_report_verdict(report)],
		nc_severity_names[nc_report_risk(report)]);
	for (size_t i = 0; i < count; i++)
		nc_say(stdout, "%s%s %u", i == 0 ? " = " : " + ", points[i].rule, points[i].points);
	putchar('\n');
}

/* What is collected for --json and --sarif; both NULL for text. */
struct output {
	json_t *files;
	json_t *sarif;
	bool color;
};

static int write_report(
	struct output *output, const struct source *source, const struct nc_report *report)
{
	if (output->sarif)
		return nc_sarif_add(output->sarif, report, source->name);
	if (output->files)
		return json_array_append_new(output->files,
			       nc_report_json(report, source->name, source->language)) < 0
			       ? -ENOMEM
			       : 0;
	print_findings(source, report, output->color);
	print_verdict(source, report);
	return 0;
}

/* Checks all; sets *ret_refused if any is refused. */
static int check_all(struct nc_policy *policy, const struct sources *sources, struct output *output,
	bool *ret_refused)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < sources->count; i++) {
		const struct source *source = &sources->list[i];
		cleanup_report struct nc_report *report = NULL;

		r = nc_policy_analyse(
			policy, source->language, source->text, source->size, &report);
		if (r == 0)
			r = write_report(output, source, report);
		if (r == 0 && nc_report_verdict(report) == NC_VERDICT_REFUSE)
			*ret_refused = true;
	}
	return r;
}

static int finish(struct output *output, const struct nc_terms *terms, bool refused)
{
	if (output->sarif)
		return nc_json_print(stdout, take_ptr(output->sarif), true);
	if (output->files)
		return nc_json_print(stdout,
			json_pack("{s:s, s:s, s:s, s:b, s:o}", "schema", "nacre.check/1", "policy",
				terms->policy, "tenant", terms->tenant, "refused", refused, "files",
				take_ptr(output->files)),
			true);
	return 0;
}

static int judge(const struct nc_cli *cli, const struct nc_check *check,
	const struct nc_terms *terms, const struct sources *sources, bool *ret_refused)
{
	struct output output = {.color = cli->color};
	int r;

	if (check->sarif)
		output.sarif = nc_sarif_new(NACRE_VERSION);
	else if (check->json)
		output.files = json_array();
	if ((check->sarif && !output.sarif) || (check->json && !check->sarif && !output.files))
		return -ENOMEM;
	r = check_all(terms->analyser, sources, &output, ret_refused);
	if (r == 0)
		r = finish(&output, terms, *ret_refused);
	json_decref(output.sarif);
	json_decref(output.files);
	return r;
}

int nc_check_files(const struct nc_cli *cli, const struct nc_check *check, int n_words,
	char **words, struct nacre_err *err)
{
	nc_cleanup(sources_done) struct sources sources = {0};
	cleanup_book struct nc_book *book = NULL;
	const struct nc_terms *terms;
	bool refused = false;
	int r;

	if (n_words == 0)
		return nc_err_set(err, -EINVAL, "Name a file, or - for standard input");
	r = nc_policy_open(cli, check->policy, check->tenant, &book, &terms, err);
	if (r == 0)
		r = read_sources(&sources, check->lang, n_words, words, err);
	if (r == 0)
		r = give_up_rights(err);
	if (r < 0)
		return r;
	r = judge(cli, check, terms, &sources, &refused);
	if (r < 0)
		return nc_err_errno(err, r, "Check");
	return refused ? NC_EXIT_FAULTS : NC_EXIT_OK;
}

static int run(const struct nc_cli *cli, int n_words, char **words, struct nacre_err *err)
{
	return nc_check_files(cli, &args, n_words, words, err);
}

const struct nc_verb nc_verb_check = {
	.name = "check",
	.summary = "Say what the policy thinks of programs",
	.arguments = "FILE...",
	.details = "Parses programs without running them, and prints what they would do: findings\n"
		   "with their lines, the risk, and whether the policy refuses them. Exits with 1\n"
		   "if it refuses any. - stands for standard input.",
	.example = "nacre check --policy strict script.py",
	.options = options,
	.max_words = FILES_MAX,
	.run = run,
};
