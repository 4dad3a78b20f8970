/* The least policy that lets a program do what it needs. */
#include "policy/suggest.h"

#include <string.h>

#include "base/json.h"
#include "base/limits.h"
#include "base/place.h"
#include "base/text.h"
#include "config/host.h"
#include "policy/alone.h"

/* What a suggestion is made of; complete is for what had to be left out. */
struct suggestion {
	const struct nc_report *report;
	const struct nc_needs *needs;
	bool complete;
};

/* Appends a word that a policy file can hold. */
static int add_word(struct suggestion *suggestion, json_t *list, const char *word)
{
	if (json_array_size(list) >= NC_CONFIG_LIST_MAX || strlen(word) > NC_CONFIG_TEXT_MAX ||
		!*word) {
		suggestion->complete = false;
		return 0;
	}
	return json_array_append_new(list, nc_json_text(word, strlen(word)));
}

static json_t *imports_json(struct suggestion *suggestion)
{
	cleanup_json json_t *list = json_array();
	size_t count;
	const struct nc_import *import = nc_report_imports(suggestion->report, &count);

	for (size_t i = 0; list && i < count; i++)
		if (add_word(suggestion, list, import[i].name) < 0)
			return NULL;
	return take_ptr(list);
}

static json_t *commands_json(struct suggestion *suggestion)
{
	cleanup_json json_t *list = json_array();

	for (const char *const *word = suggestion->needs->commands; list && *word; word++)
		if (add_word(suggestion, list, *word) < 0)
			return NULL;
	return take_ptr(list);
}

/* Hosts as a policy wants them: in lower case, and nothing that is none. */
static json_t *hosts_json(struct suggestion *suggestion)
{
	cleanup_json json_t *list = json_array();

	for (const char *const *word = suggestion->needs->hosts; list && *word; word++) {
		char host[256] = "";
		size_t size = strlen(*word);

		for (size_t i = 0; i < size && size < sizeof(host); i++)
			host[i] = (char)((*word)[i] >= 'A' && (*word)[i] <= 'Z' ? (*word)[i] | 0x20
										: (*word)[i]);
		if (!nc_host_is_pattern(host))
			suggestion->complete = false;
		else if (add_word(suggestion, list, host) < 0)
			return NULL;
	}
	return take_ptr(list);
}

/* Whether every box has it, or none may. */
static bool is_in_every_box(const char *path)
{
	static const char *const places[] = {"/bin", "/dev", "/etc", "/lib", "/lib64", "/proc",
		"/sbin", "/sys", "/tmp", "/usr", NC_BOX_WORKSPACE};

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		const char *rest = nc_text_after(path, places[i]);

		if (rest && (*rest == '\0' || *rest == '/'))
			return true;
	}
	return path[1] == '\0';
}

static json_t *binds_json(struct suggestion *suggestion)
{
	cleanup_json json_t *list = json_array();

	for (const char *const *word = suggestion->needs->paths; list && *word; word++)
		if ((*word)[0] == '/' && !is_in_every_box(*word) &&
			add_word(suggestion, list, *word) < 0)
			return NULL;
	return take_ptr(list);
}

static json_t *policy_json(struct suggestion *suggestion, enum nc_language language)
{
	const struct nc_needs *needs = suggestion->needs;
	json_t *policy = json_pack("{s:s, s:{s:s, s:s}, s:{s:o}, s:{s:o}, s:{}}", "inherits",
		"standard", "severities", "policy.import", "critical", "policy.command", "critical",
		"shell", "allowed_commands", commands_json(suggestion), "network", "allow",
		hosts_json(suggestion), "limits");
	int r = policy ? 0 : -1;

	if (r == 0 && language != NC_SHELL)
		r = json_object_set_new(policy, nc_policy_language_names[language],
			json_pack("{s:o}", "allowed_imports", imports_json(suggestion)));
	/* one process of 16 threads, where it starts no other */
	if (r == 0 && !needs->subprocess && suggestion->complete)
		r = json_object_set_new(
			json_object_get(policy, "limits"), "max_processes", json_integer(1));
	if (r == 0)
		return policy;
	json_decref(policy);
	return NULL;
}

json_t *nc_suggest_json(const struct nc_report *report, enum nc_language language)
{
	const struct nc_needs *needs = nc_report_needs(report);
	struct suggestion suggestion = {
		.report = report, .needs = needs, .complete = nc_report_is_whole(report)};
	json_t *policy, *binds;

	if (nc_report_verdict(report) == NC_VERDICT_REFUSE)
		return json_null();
	policy = policy_json(&suggestion, language);
	binds = binds_json(&suggestion);
	return json_pack("{s:o, s:o, s:b}", "policy", policy, "binds", binds, "complete",
		suggestion.complete);
}
