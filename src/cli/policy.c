/* nacre policy: list, show, check, compare and try out policies. */
#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "base/say.h"
#include "base/text.h"
#include "cli/check.h"
#include "cli/policies.h"

#define FILES_MAX 256

static bool arg_json;
static const char *arg_tenant;
static struct nc_check test_args;

static const struct nc_option json_options[] = {
	{.name = "json", .help = "Print one JSON object", .flag = &arg_json},
	{0},
};

static const struct nc_option tenant_options[] = {
	{.name = "json", .help = "Print one JSON object", .flag = &arg_json},
	{.name = "tenant",
		.value = "NAME",
		.help = "With the overrides for this tenant",
		.text = &arg_tenant},
	{0},
};

static const struct nc_option test_options[] = {
	{.name = "json", .help = "Print one JSON object (docs/policy.md)", .flag = &test_args.json},
	{.name = "lang",
		.value = "LANGUAGE",
		.help = "The language, where the name does not tell",
		.text = &test_args.lang},
	{.name = "tenant",
		.value = "NAME",
		.help = "With the overrides for this tenant",
		.text = &test_args.tenant},
	{0},
};

struct summary {
	struct nc_buf *out;
	char last[32]; /* the top key that was named last */
};

static int name_top_key(
	void *context, const char *path, const struct nc_field *field, const struct nc_value *value)
{
	struct summary *summary = context;
	size_t size = strcspn(path, ".");

	(void)field;
	if (!value->given || nc_streq(path, "inherits") || size >= sizeof(summary->last) ||
		(strncmp(summary->last, path, size) == 0 && !summary->last[size]))
		return 0;
	nc_buf_addf(summary->out, "%s%.*s", summary->last[0] ? ", " : "; sets ", (int)size, path);
	memcpy(summary->last, path, size);
	summary->last[size] = '\0';
	return 0;
}

/* "inherits strict; sets mode, python, limits": what stands in a file. */
static void summarise(const struct nc_policies_config *file, struct nc_buf *out)
{
	struct summary summary = {.out = out};

	nc_buf_addf(out, "inherits %s",
		nc_policy_profiles[file->inherits.given ? file->inherits.number
							: NC_PROFILE_STRICT]);
	(void)nc_schema_visit(nc_policy_file_fields, file, name_top_key, &summary);
}

static int list_one(const char *name, const char *origin, const char *summary, json_t *list)
{
	if (list)
		return json_array_append_new(list, json_pack("{s:s, s:s, s:s}", "name", name,
							   "origin", origin, "summary", summary)) <
				       0
			       ? -ENOMEM
			       : 0;
	nc_say(stdout, "%-16s %s\n%-16s %s\n", name, summary, "", origin);
	return 0;
}

static int list_shipped(json_t *list)
{
	static const char *const summaries[NC_PROFILE_MAX] = {
		[NC_PROFILE_STANDARD] = "scores and routes; refuses what is critical",
		[NC_PROFILE_STRICT] = "refuses also what its lists forbid, and what does not parse",
		[NC_PROFILE_AUDIT] = "reports everything, refuses nothing",
	};
	int r = 0;

	for (size_t i = 0; r == 0 && i < NC_PROFILE_MAX; i++)
		r = list_one(nc_profile_names[i], "built in", summaries[i], list);
	return r;
}

static int list_file(struct nc_book *book, const char *name, json_t *list)
{
	nc_buf_cleanup struct nc_buf summary = NC_BUF(1024);
	struct nacre_err fault = {0};
	const char *path;

	if (nc_book_add(book, name, &fault) < 0)
		return list_one(name, "cannot be read", fault.message, list);
	path = nc_book_path(book, name);
	if (!path) /* a shipped profile wins over a file of its name */
		return list_one(name, "not used: the name is taken", "", list);
	summarise(nc_book_file(book, name), &summary);
	return list_one(name, path, nc_buf_text(&summary), list);
}

static int run_list(const struct nc_cli *cli, int n_words, char **words, struct nacre_err *err)
{
	cleanup_json json_t *list = arg_json ? json_array() : NULL;
	cleanup_book struct nc_book *book = NULL;
	char **names = NULL;
	size_t count = 0;
	int r = nc_book_new(cli->config, &book);

	(void)n_words;
	(void)words;
	if (r == 0)
		r = nc_book_names(cli->config, &names, &count);
	if (r == 0)
		r = list_shipped(list);
	for (size_t i = 0; i < count; i++) {
		if (r == 0)
			r = list_file(book, names[i], list);
		free(names[i]);
	}
	free(names);
	if (r == 0 && arg_json)
		r = nc_json_print(stdout,
			json_pack("{s:s, s:s, s:O}", "schema", "nacre.policies/1", "usual",
				nc_book_usual(book), "policies", list),
			true);
	return r < 0 ? nc_err_errno(err, r, "List the policies") : NC_EXIT_OK;
}

static int show_value(
	void *context, const char *path, const struct nc_field *field, const struct nc_value *value)
{
	nc_buf_cleanup struct nc_buf text = NC_BUF(4U * 1024 * 1024);
	json_t *values = context;

	if (!value->given)
		return 0;
	if (values)
		return json_array_append_new(
			       values, json_pack("{s:s, s:o, s:s?, s:i}", "key", path, "value",
					       nc_value_json(field, value), "file", value->file,
					       "line", (int)value->line)) < 0
			       ? -ENOMEM
			       : 0;
	nc_value_text(field, value, &text);
	if (text.error < 0)
		return text.error;
	if (value->file)
		nc_say(stdout, "  %-38s %-12s %s:%u\n", path, nc_buf_text(&text), value->file,
			value->line);
	else
		nc_say(stdout, "  %-38s %-12s built in\n", path, nc_buf_text(&text));
	return 0;
}

static int run_show(const struct nc_cli *cli, int n_words, char **words, struct nacre_err *err)
{
	cleanup_json json_t *values = arg_json ? json_array() : NULL;
	cleanup_book struct nc_book *book = NULL;
	const struct nc_terms *terms = NULL;
	int r = nc_policy_open(cli, n_words > 0 ? words[0] : NULL, arg_tenant, &book, &terms, err);

	if (r < 0)
		return r;
	if (!arg_json)
		nc_say(stdout, "Policy %s, which stands on %s%s%s\n", terms->policy,
			nc_profile_names[terms->profile], *terms->tenant ? ", for tenant " : "",
			terms->tenant);
	r = nc_schema_visit(nc_policy_value_fields, &terms->values, show_value, values);
	if (r == 0 && arg_json)
		r = nc_json_print(stdout,
			json_pack("{s:s, s:s, s:s, s:s, s:O}", "schema", "nacre.policy/1", "policy",
				terms->policy, "inherits", nc_profile_names[terms->profile],
				"tenant", terms->tenant, "values", values),
			true);
	return r < 0 ? nc_err_errno(err, r, "Show the policy") : NC_EXIT_OK;
}

/* One file; its fault, if it has one, goes to the list or to standard error. */
static int check_file(const char *path, json_t *faults, bool *ret_bad)
{
	struct nc_policies_config file = {0};
	struct nacre_err fault = {0};
	char quoted[NC_TEXT_QUOTED_MAX];
	int r = nc_schema_load(nc_policy_file_fields, &file, path, &fault);

	if (r == -ENOENT)
		r = nc_err_errno(&fault, r, "%s", nc_text_quote(quoted, path));
	if (r == 0 && !faults)
		nc_say(stdout, "%s: good\n", path);
	nc_schema_done(nc_policy_file_fields, &file);
	if (r == 0)
		return 0;
	*ret_bad = true;
	if (!faults)
		nc_say(stderr, "%s\n", fault.message);
	else if (json_array_append_new(faults, nc_json_text(fault.message, strlen(fault.message))))
		return -ENOMEM;
	return 0;
}

static int run_check(const struct nc_cli *cli, int n_words, char **words, struct nacre_err *err)
{
	cleanup_json json_t *faults = arg_json ? json_array() : NULL;
	bool bad = false;
	int r = 0;

	(void)cli;
	if (n_words == 0)
		return nc_err_set(err, -EINVAL, "Name a policy file");
	for (int i = 0; r == 0 && i < n_words; i++)
		r = check_file(words[i], faults, &bad);
	if (r == 0 && arg_json)
		r = nc_json_print(
			stdout, json_pack("{s:b, s:O}", "ok", !bad, "faults", faults), true);
	if (r < 0)
		return nc_err_errno(err, r, "Check");
	return bad ? NC_EXIT_FAULTS : NC_EXIT_OK;
}

/* What diff carries from leaf to leaf. */
struct comparison {
	const struct nc_terms *left, *right;
	json_t *differences; /* NULL: print text */
	bool differ;
};

static json_t *side_json(const struct nc_field *field, const struct nc_value *value)
{
	return value->given ? nc_value_json(field, value) : json_null();
}

static int compare_value(
	void *context, const char *path, const struct nc_field *field, const struct nc_value *left)
{
	nc_buf_cleanup struct nc_buf before = NC_BUF(4U * 1024 * 1024);
	nc_buf_cleanup struct nc_buf after = NC_BUF(4U * 1024 * 1024);
	struct comparison *comparison = context;
	size_t offset = (size_t)((const char *)left - (const char *)&comparison->left->values);
	const struct nc_value *right =
		(const void *)((const char *)&comparison->right->values + offset);

	nc_buf_adds(&before, left->given ? "" : "not set");
	nc_buf_adds(&after, right->given ? "" : "not set");
	if (left->given)
		nc_value_text(field, left, &before);
	if (right->given)
		nc_value_text(field, right, &after);
	if (before.error < 0 || after.error < 0)
		return -ENOMEM;
	if (nc_streq(nc_buf_text(&before), nc_buf_text(&after)))
		return 0;
	comparison->differ = true;
	if (!comparison->differences) {
		nc_say(stdout, "%s: %s -> %s\n", path, nc_buf_text(&before), nc_buf_text(&after));
		return 0;
	}
	return json_array_append_new(comparison->differences,
		       json_pack("{s:s, s:o, s:o}", "key", path, "left", side_json(field, left),
			       "right", side_json(field, right))) < 0
		       ? -ENOMEM
		       : 0;
}

static int run_diff(const struct nc_cli *cli, int n_words, char **words, struct nacre_err *err)
{
	cleanup_json json_t *differences = arg_json ? json_array() : NULL;
	cleanup_book struct nc_book *left_book = NULL, *right_book = NULL;
	struct comparison comparison = {.differences = differences};
	int r;

	if (n_words != 2)
		return nc_err_set(err, -EINVAL, "Name two policies");
	r = nc_policy_open(cli, words[0], arg_tenant, &left_book, &comparison.left, err);
	if (r == 0)
		r = nc_policy_open(cli, words[1], arg_tenant, &right_book, &comparison.right, err);
	if (r < 0)
		return r;
	/* what the lists come to is no value of its own */
	if (comparison.left->profile != comparison.right->profile && !arg_json)
		nc_say(stdout, "inherits: %s -> %s\n", nc_profile_names[comparison.left->profile],
			nc_profile_names[comparison.right->profile]);
	comparison.differ = comparison.left->profile != comparison.right->profile;
	r = nc_schema_visit(
		nc_policy_value_fields, &comparison.left->values, compare_value, &comparison);
	if (r == 0 && arg_json)
		r = nc_json_print(stdout,
			json_pack("{s:s, s:{s:s, s:s}, s:{s:s, s:s}, s:O}", "schema",
				"nacre.policy-diff/1", "left", "policy", comparison.left->policy,
				"inherits", nc_profile_names[comparison.left->profile], "right",
				"policy", comparison.right->policy, "inherits",
				nc_profile_names[comparison.right->profile], "differences",
				differences),
			true);
	if (r < 0)
		return nc_err_errno(err, r, "Compare the policies");
	return comparison.differ ? NC_EXIT_FAULTS : NC_EXIT_OK;
}

static int run_test(const struct nc_cli *cli, int n_words, char **words, struct nacre_err *err)
{
	if (n_words < 2)
		return nc_err_set(err, -EINVAL, "Name a policy and programs to try it on");
	test_args.policy = words[0];
	return nc_check_files(cli, &test_args, n_words - 1, words + 1, err);
}

static const struct nc_verb list_verb = {
	.name = "list",
	.summary = "List the policies that can be named",
	.arguments = "",
	.details = "Names, where they come from, and what they set.",
	.example = "nacre policy list",
	.options = json_options,
	.run = run_list,
};

static const struct nc_verb show_verb = {
	.name = "show",
	.summary = "Print what a policy comes to",
	.arguments = "[NAME|FILE]",
	.details = "Every value that is in force under it, with the file and line that it is from.",
	.example = "nacre policy show strict",
	.options = tenant_options,
	.max_words = 1,
	.run = run_show,
};

static const struct nc_verb check_verb = {
	.name = "check",
	.summary = "Check policy files",
	.arguments = "FILE...",
	.details = "Prints the first fault of each with its line. Exits with 1 if there is any.",
	.example = "nacre policy check lenient.yaml",
	.options = json_options,
	.max_words = FILES_MAX,
	.without_config = true,
	.run = run_check,
};

static const struct nc_verb diff_verb = {
	.name = "diff",
	.summary = "Compare two policies",
	.arguments = "NAME|FILE NAME|FILE",
	.details = "Prints the values that differ. Exits with 1 if any do.",
	.example = "nacre policy diff standard strict",
	.options = tenant_options,
	.max_words = 2,
	.run = run_diff,
};

static const struct nc_verb test_verb = {
	.name = "test",
	.summary = "Try a policy on programs, without running them",
	.arguments = "NAME|FILE SAMPLE...",
	.details = "Prints findings, risk and verdict for each, as nacre check does. Exits with 1\n"
		   "if any is refused.",
	.example = "nacre policy test strict script.py",
	.options = test_options,
	.max_words = FILES_MAX,
	.run = run_test,
};

static const struct nc_verb *const verbs[] = {
	&list_verb, &show_verb, &check_verb, &diff_verb, &test_verb, NULL};

const struct nc_verb nc_verb_policy = {
	.name = "policy",
	.summary = "List, show, check and try out policies",
	.arguments = "VERB",
	.details = "A policy says what programs may do, and in what they run (docs/policy.md).",
	.example = "nacre policy show strict",
	.verbs = verbs,
};
