/* The security manager's static analysis: its entry points. */
#include "policy/policy.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "policy/bounds.h"
#include "policy/lists.h"
#include "policy/report.h"
#include "policy/risk.h"
#include "policy/scan.h"

const char *const nc_policy_language_names[NC_LANGUAGE_MAX] = {
	[NC_PYTHON] = "python",
	[NC_JAVASCRIPT] = "javascript",
	[NC_TYPESCRIPT] = "typescript",
	[NC_SHELL] = "shell",
	[NC_GO] = "go",
	[NC_RUST] = "rust",
	[NC_C] = "c",
	[NC_CPP] = "cpp",
};

/* What a language is called otherwise: by people, by the endings of files, by interpreters. */
static const struct {
	const char *name;
	enum nc_language language;
} other_names[] = {
	{"py", NC_PYTHON},
	{"pyw", NC_PYTHON},
	{"pyi", NC_PYTHON},
	{"python3", NC_PYTHON},
	{"js", NC_JAVASCRIPT},
	{"cjs", NC_JAVASCRIPT},
	{"mjs", NC_JAVASCRIPT},
	{"jsx", NC_JAVASCRIPT},
	{"node", NC_JAVASCRIPT},
	{"nodejs", NC_JAVASCRIPT},
	{"ts", NC_TYPESCRIPT},
	{"mts", NC_TYPESCRIPT},
	{"cts", NC_TYPESCRIPT},
	{"sh", NC_SHELL},
	{"bash", NC_SHELL},
	{"dash", NC_SHELL},
	{"ksh", NC_SHELL},
	{"zsh", NC_SHELL},
	{"golang", NC_GO},
	{"rs", NC_RUST},
	{"h", NC_C},
	{"cc", NC_CPP},
	{"cxx", NC_CPP},
	{"c++", NC_CPP},
	{"hpp", NC_CPP},
	{"java", NC_C},
};

enum nc_language nc_policy_parse_language(const char *name)
{
	for (enum nc_language i = 0; i < NC_LANGUAGE_MAX; i++)
		if (nc_streq(nc_policy_language_names[i], name))
			return i;
	for (size_t i = 0; i < sizeof(other_names) / sizeof(other_names[0]); i++)
		if (nc_streq(other_names[i].name, name))
			return other_names[i].language;
	return NC_LANGUAGE_INVALID;
}

/* The interpreter of "#!/usr/bin/env -S python3.11 -u": its name without path and version. */
static enum nc_language guess_from_first_line(const char *text, size_t size)
{
	char line[128] = "";
	const char *word = line;

	if (size < 2 || text[0] != '#' || text[1] != '!')
		return NC_LANGUAGE_INVALID;
	for (size_t i = 2; i < size && i < sizeof(line) && text[i] != '\n'; i++)
		line[i - 2] = text[i];
	while (*word) {
		char name[32] = "";
		size_t length = strcspn(word, " \t\r");
		const char *slash = memrchr(word, '/', length);
		const char *base = slash ? slash + 1 : word;
		size_t end = (size_t)(word + length - base);

		if (end < sizeof(name))
			memcpy(name, base, end);
		if (*name && *name != '-' && !nc_streq(name, "env")) {
			name[strcspn(name, "0123456789.")] = '\0';
			return nc_policy_parse_language(name);
		}
		word += length;
		word += strspn(word, " \t\r");
	}
	return NC_LANGUAGE_INVALID;
}

enum nc_language nc_policy_guess_language(const char *name, const char *text, size_t size)
{
	const char *ending = strrchr(name, '.');
	enum nc_language language = NC_LANGUAGE_INVALID;

	if (ending && !strchr(ending, '/'))
		language = nc_policy_parse_language(ending + 1);
	return language >= 0 ? language : guess_from_first_line(text, size);
}

static bool has_lists(const struct nc_policy_lists *lists)
{
	return lists->forbidden_imports || lists->forbidden_functions ||
	       lists->forbidden_commands || lists->forbidden_patterns || lists->allowed_imports ||
	       lists->allowed_functions || lists->allowed_commands;
}

int nc_policy_new(const struct nc_policy_options *options, struct nc_policy **ret_policy)
{
	struct nc_policy *policy;

	if (options->profile < 0 || options->profile >= NC_PROFILE_MAX)
		return -EINVAL;
	policy = calloc(1, sizeof(*policy));
	if (!policy)
		return -ENOMEM;
	nc_scale_init(&policy->scale, options);
	for (size_t i = 0; i < NC_LANGUAGE_MAX; i++) {
		policy->lists[i] = options->lists[i];
		if (options->profile == NC_PROFILE_STRICT && !has_lists(&policy->lists[i]))
			policy->lists[i] = nc_lists_built_in[i];
	}
	*ret_policy = policy;
	return 0;
}

void nc_policy_free(struct nc_policy *policy)
{
	if (policy)
		nc_arena_done(&policy->memory);
	free(policy);
}

int nc_policy_analyse(struct nc_policy *policy, enum nc_language language, const char *text,
	size_t size, struct nc_report **ret_report)
{
	cleanup_report struct nc_report *report = NULL;
	int r;

	if (language < 0 || language >= NC_LANGUAGE_MAX)
		return -EINVAL;
	report = calloc(1, sizeof(*report));
	if (!report)
		return -ENOMEM;
	r = nc_report_open(report, &policy->scale, size > 0 ? text : "", size);
	if (r < 0)
		return r;
	if (size > NC_SOURCE_MAX)
		report->cut = true;
	else
		r = nc_scan_run(policy, language, report);
	if (r == 0)
		r = nc_report_close(report);
	if (r < 0)
		return r;
	*ret_report = take_ptr(report);
	return 0;
}

bool nc_policy_refuses(const struct nc_policy *policy, enum nc_rule_id rule)
{
	return nc_scale_refuses(&policy->scale, rule);
}

const struct nc_policy_lists *nc_policy_lists(
	const struct nc_policy *policy, enum nc_language language)
{
	return &policy->lists[language];
}
