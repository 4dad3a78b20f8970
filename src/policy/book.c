/* The policies that this process knows. */
#include "policy/book.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/id.h"
#include "base/limits.h"
#include "base/text.h"
#include "policy/lists.h"
#include "policy/risk.h"
#include "policy/threat.h"

#define ENDING ".yaml"
#define DIRECTORY "policies"

/* A policy that was read from a file. */
struct entry {
	char *word;
	char *path;
	struct nc_policies_config file;
	struct entry *next;
};

struct terms {
	struct nc_terms terms;
	struct terms *next;
};

struct nc_book {
	const struct nc_config *config;
	char *site; /* what origins call security_policies.yaml */
	struct entry *entries;
	size_t n_entries;
	struct terms *terms; /* as they were asked for */
};

_Static_assert(NC_POLICY_LEVELS == NC_SEVERITY_MAX, "policy files name every level of risk");

static void entry_free(struct entry *entry)
{
	if (!entry)
		return;
	nc_schema_done(nc_policy_file_fields, &entry->file);
	free(entry->word);
	free(entry->path);
	free(entry);
}

int nc_book_new(const struct nc_config *config, struct nc_book **ret_book)
{
	struct nc_book *book = calloc(1, sizeof(*book));

	if (!book)
		return -ENOMEM;
	book->config = config;
	if (config->dir && asprintf(&book->site, "%s/%s", config->dir,
				   nc_config_file_names[NC_CONFIG_POLICIES]) < 0) {
		free(book);
		return -ENOMEM;
	}
	*ret_book = book;
	return 0;
}

void nc_book_free(struct nc_book *book)
{
	if (!book)
		return;
	for (struct entry *entry = book->entries, *next; entry; entry = next) {
		next = entry->next;
		entry_free(entry);
	}
	for (struct terms *terms = book->terms, *next; terms; terms = next) {
		next = terms->next;
		nc_policy_free(terms->terms.analyser);
		free(terms);
	}
	free(book->site);
	free(book);
}

bool nc_book_is_path(const char *word)
{
	size_t size = strlen(word);

	return strchr(word, '/') ||
	       (size > strlen(ENDING) && nc_streq(word + size - strlen(ENDING), ENDING));
}

static const struct entry *find_entry(const struct nc_book *book, const char *word)
{
	const struct entry *entry = book->entries;

	while (entry && !nc_streq(entry->word, word))
		entry = entry->next;
	return entry;
}

static int unknown(const struct nc_book *book, const char *word, struct nacre_err *err)
{
	nc_buf_cleanup struct nc_buf known = NC_BUF(512);
	struct nc_nearest nearest = {.word = word};
	char quoted[NC_TEXT_QUOTED_MAX];

	for (size_t i = 0; i < NC_PROFILE_MAX; i++) {
		nc_nearest_offer(&nearest, nc_profile_names[i]);
		nc_buf_addf(&known, "%s%s", i > 0 ? ", " : "", nc_profile_names[i]);
	}
	for (const struct entry *entry = book->entries; entry; entry = entry->next) {
		if (nc_book_is_path(entry->word))
			continue;
		nc_nearest_offer(&nearest, entry->word);
		nc_buf_addf(&known, ", %s", entry->word);
	}
	nc_text_quote(quoted, word);
	if (nearest.best)
		return nc_err_set(err, -EINVAL, "Unknown policy %s, did you mean '%s'?", quoted,
			nearest.best);
	return nc_err_set(
		err, -EINVAL, "Unknown policy %s: there are %s", quoted, nc_buf_text(&known));
}

/* The file that a word stands for; NULL with 0: it can be none. */
static int find_path(const struct nc_book *book, const char *word, char **ret_path)
{
	*ret_path = NULL;
	if (nc_book_is_path(word))
		*ret_path = strdup(word);
	else if (!book->config->dir || !*word || word[0] == '.')
		return 0;
	else if (asprintf(ret_path, "%s/" DIRECTORY "/%s" ENDING, book->config->dir, word) < 0)
		*ret_path = NULL;
	return *ret_path ? 0 : -ENOMEM;
}

int nc_book_add(struct nc_book *book, const char *word, struct nacre_err *err)
{
	struct entry *entry;
	char quoted[NC_TEXT_QUOTED_MAX];
	int r;

	if (nc_profile_parse(word) >= 0 || find_entry(book, word))
		return 0;
	if (book->n_entries == NC_POLICIES_MAX)
		return nc_err_set(err, -E2BIG, "More than %u policies", NC_POLICIES_MAX);
	entry = calloc(1, sizeof(*entry));
	r = entry ? find_path(book, word, &entry->path) : -ENOMEM;
	if (r == 0 && entry->path)
		r = nc_schema_load(nc_policy_file_fields, &entry->file, entry->path, err);
	if (r == 0 && entry->path)
		entry->word = strdup(word);
	if (r == 0 && entry->word) {
		entry->next = book->entries;
		book->entries = entry;
		book->n_entries++;
		return 0;
	}
	if (r == -ENOENT && nc_book_is_path(word))
		r = nc_err_errno(err, r, "%s", nc_text_quote(quoted, word));
	else if (r == -ENOENT || (r == 0 && !entry->path))
		r = unknown(book, word, err);
	else if (r == 0 || r == -ENOMEM)
		r = nc_err_set(err, -ENOMEM, "Out of memory");
	entry_free(entry);
	return r;
}

const char *nc_book_usual(const struct nc_book *book)
{
	const struct nc_value *inherits = &book->config->policies.inherits;

	return nc_profile_names[inherits->given ? inherits->number : NC_PROFILE_STANDARD];
}

const char *nc_book_path(const struct nc_book *book, const char *word)
{
	const struct entry *entry = find_entry(book, word);

	return entry ? entry->path : NULL;
}

const struct nc_policies_config *nc_book_file(const struct nc_book *book, const char *word)
{
	const struct entry *entry = find_entry(book, word);

	return entry ? &entry->file : NULL;
}

static void set_number(struct nc_value *value, uint64_t number)
{
	*value = (struct nc_value){.given = true, .number = number};
}

/* The list is ours and constant; nobody frees the values of terms. */
static void set_list(struct nc_value *value, const char *const *list)
{
	if (!list)
		return;
	*value = (struct nc_value){.given = true, .list = (char **)(uintptr_t)list};
	while (list[value->n_list])
		value->n_list++;
}

/* What a shipped profile says. */
static void set_profile(struct nc_policy_values *values, enum nc_profile profile)
{
	set_number(&values->mode, profile == NC_PROFILE_AUDIT ? NC_MODE_AUDIT : NC_MODE_ENFORCE);
	set_number(
		&values->hooks, profile == NC_PROFILE_STRICT ? NC_HOOKS_ENFORCE : NC_HOOKS_REPORT);
	set_number(&values->decoys, 0);
	set_number(&values->sandbox.root, profile != NC_PROFILE_STRICT);
	set_number(&values->sandbox.writable_root, profile != NC_PROFILE_STRICT);
	for (enum nc_rule_id rule = 1; rule < NC_RULE_MAX; rule++)
		set_number(&values->severity[rule], nc_rules[rule].severity);
	for (enum nc_severity level = 0; level < NC_SEVERITY_MAX; level++)
		set_number(&values->risk[level], nc_verdicts_built_in[level]);
	for (enum nc_signal signal = 0; signal < NC_SIGNAL_MAX; signal++)
		set_number(&values->alert[signal], nc_threat_thresholds[signal]);
	for (enum nc_severity level = 0; level < NC_SEVERITY_MAX; level++)
		set_number(&values->respond[level], NC_RESPOND_REPORT);
	for (size_t i = 0; profile == NC_PROFILE_STRICT && i < NC_LANGUAGE_MAX; i++) {
		const struct nc_policy_lists *from = &nc_lists_built_in[i];
		struct nc_language_policy *to = &values->language[i];

		set_list(&to->forbidden_imports, from->forbidden_imports);
		set_list(&to->forbidden_functions, from->forbidden_functions);
		set_list(&to->forbidden_commands, from->forbidden_commands);
		set_list(&to->forbidden_patterns, from->forbidden_patterns);
	}
}

/* NULL: the policy has no such list. */
static const char *const *list_of(const struct nc_value *value)
{
	static const char *const nothing[] = {NULL};

	if (!value->given)
		return NULL;
	return value->list ? (const char *const *)value->list : nothing;
}

static int make_analyser(struct nc_terms *terms)
{
	const struct nc_policy_values *values = &terms->values;
	struct nc_policy_options options = {.profile = terms->profile};
	enum nc_severity severities[NC_RULE_MAX] = {0};
	enum nc_verdict verdicts[NC_SEVERITY_MAX];

	if (values->mode.number == NC_MODE_AUDIT)
		options.profile = NC_PROFILE_AUDIT;
	else if (terms->profile == NC_PROFILE_AUDIT)
		options.profile = NC_PROFILE_STANDARD;
	for (size_t i = 0; i < NC_LANGUAGE_MAX; i++) {
		const struct nc_language_policy *from = &values->language[i];

		options.lists[i] = (struct nc_policy_lists){
			.forbidden_imports = list_of(&from->forbidden_imports),
			.forbidden_functions = list_of(&from->forbidden_functions),
			.forbidden_commands = list_of(&from->forbidden_commands),
			.forbidden_patterns = list_of(&from->forbidden_patterns),
			.allowed_imports = list_of(&from->allowed_imports),
			.allowed_functions = list_of(&from->allowed_functions),
			.allowed_commands = list_of(&from->allowed_commands)};
	}
	for (enum nc_rule_id rule = 1; rule < NC_RULE_MAX; rule++)
		severities[rule] = (enum nc_severity)values->severity[rule].number;
	for (enum nc_severity level = 0; level < NC_SEVERITY_MAX; level++)
		verdicts[level] = (enum nc_verdict)values->risk[level].number;
	options.severities = severities;
	options.verdicts = verdicts;
	return nc_policy_new(&options, &terms->analyser);
}

static void merge(struct nc_terms *terms, const void *values, const char *file)
{
	if (values)
		nc_schema_merge(nc_policy_value_fields, &terms->values, values, file);
}

static int make_terms(struct nc_book *book, const struct entry *entry, enum nc_profile profile,
	const char *tenant, struct terms **ret_terms)
{
	const struct nc_policies_config *site = &book->config->policies;
	struct terms *fresh = calloc(1, sizeof(*fresh));
	struct nc_terms *terms = &fresh->terms;
	int r;

	if (!fresh)
		return -ENOMEM;
	terms->policy = entry ? entry->word : nc_profile_names[profile];
	terms->tenant = tenant;
	terms->profile = profile;
	set_profile(&terms->values, profile);
	merge(terms, &site->all, book->site);
	merge(terms, entry ? &entry->file.all : NULL, entry ? entry->path : NULL);
	merge(terms, nc_map_find(&site->tenants, tenant), book->site);
	if (entry)
		merge(terms, nc_map_find(&entry->file.tenants, tenant), entry->path);
	r = nc_random(&terms->number, sizeof(terms->number));
	if (r == 0)
		r = make_analyser(terms);
	if (r < 0) {
		free(fresh);
		return r;
	}
	*ret_terms = fresh;
	return 0;
}

/* The name as a file of ours has it, or "" if none says anything about this tenant. */
static const char *known_tenant(
	const struct nc_book *book, const struct entry *entry, const char *tenant)
{
	const struct nc_map *maps[] = {
		&book->config->policies.tenants, entry ? &entry->file.tenants : NULL};

	for (size_t i = 0; i < 2; i++)
		for (size_t j = 0; maps[i] && j < maps[i]->count; j++)
			if (nc_streq(maps[i]->entries[j].name, tenant))
				return maps[i]->entries[j].name;
	return "";
}

int nc_book_terms(struct nc_book *book, const char *policy, const char *tenant,
	const struct nc_terms **ret_terms, struct nacre_err *err)
{
	const struct entry *entry = find_entry(book, policy);
	enum nc_profile profile = nc_profile_parse(policy);
	struct terms *terms = book->terms;
	int r;

	if (entry)
		/* what a file forbids is forbidden, unless it says that it wants less */
		profile = entry->file.inherits.given ? (enum nc_profile)entry->file.inherits.number
						     : NC_PROFILE_STRICT;
	else if (profile < 0)
		return unknown(book, policy, err);
	tenant = known_tenant(book, entry, tenant);
	while (terms &&
		!(nc_streq(terms->terms.policy, policy) && nc_streq(terms->terms.tenant, tenant)))
		terms = terms->next;
	if (!terms) {
		r = make_terms(book, entry, profile, tenant, &terms);
		if (r < 0)
			return nc_err_errno(err, r, "Prepare the policy");
		terms->next = book->terms;
		book->terms = terms;
	}
	*ret_terms = &terms->terms;
	return 0;
}

int nc_book_add_all(struct nc_book *book, struct nacre_err *err)
{
	char **names = NULL;
	size_t count = 0;
	int r = nc_book_names(book->config, &names, &count);

	if (r < 0)
		return nc_err_errno(err, r, "Read the policies");
	for (size_t i = 0; i < count; i++) {
		if (r == 0)
			r = nc_book_add(book, names[i], err);
		free(names[i]);
	}
	free(names);
	return r;
}

static int by_name(const void *left, const void *right)
{
	return strcmp(*(char *const *)left, *(char *const *)right);
}

int nc_book_names(const struct nc_config *config, char ***ret_names, size_t *ret_count)
{
	cleanup_free char *path = NULL;
	char **names = calloc(NC_POLICIES_MAX, sizeof(*names));
	struct dirent *found;
	size_t count = 0;
	DIR *directory = NULL;

	if (!names)
		return -ENOMEM;
	if (config->dir && asprintf(&path, "%s/" DIRECTORY, config->dir) >= 0)
		directory = opendir(path);
	while (directory && count < NC_POLICIES_MAX && (found = readdir(directory))) {
		size_t size = strlen(found->d_name);

		if (found->d_name[0] == '.' || !nc_book_is_path(found->d_name))
			continue;
		names[count] = strndup(found->d_name, size - strlen(ENDING));
		if (names[count])
			count++;
	}
	if (directory)
		(void)closedir(directory);
	qsort(names, count, sizeof(*names), by_name);
	*ret_names = names;
	*ret_count = count;
	return 0;
}
