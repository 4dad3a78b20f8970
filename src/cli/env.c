/*
 * nacre env: environments, which are packages that programs need, installed once.
 *
 * All verbs open the store with the caller's rights and then leave all privilege; build is the only
 * one with a box, in which everything foreign is read.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/parse.h"
#include "base/say.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/outlet.h"
#include "engine/build.h"
#include "engine/installer.h"
#include "engine/network.h"
#include "engine/package.h"
#include "kernel/fence.h"
#include "kernel/filter.h"
#include "kernel/privilege.h"
#include "runtime/runtime.h"
#include "tier/poll.h"

/* How much of a key people have to write, and how much they are shown. */
#define KEY_LEAST 4U
#define KEY_SHOWN 12

static bool arg_json, arg_verbose;
static const char *arg_lang = "python", *arg_unused;

static const struct nc_option build_options[] = {
	{.name = "json", .help = "Print one JSON object", .flag = &arg_json},
	{.name = "lang",
		.value = "LANGUAGE",
		.help = "python (built in), javascript; or go for its build cache",
		.text = &arg_lang},
	{.name = "verbose", .help = "Print what the installer says", .flag = &arg_verbose},
	{0},
};

static const struct nc_option list_options[] = {
	{.name = "json", .help = "Print one JSON object", .flag = &arg_json},
	{0},
};

static const struct nc_option prune_options[] = {
	{.name = "unused",
		.value = "TIME",
		.help = "Remove what was not used for so long, such as 720h",
		.text = &arg_unused},
	{0},
};

/* One build and its outcome. */
struct task {
	uv_loop_t loop;
	uv_signal_t signals[2];
	struct nc_build *build;
	struct nacre_err err;
	json_t *answer;
};

static void on_progress(void *context, const char *text)
{
	(void)context;
	nc_say(stderr, "nacre env: %s\n", text);
}

static json_t *describe(const struct nc_build_result *result)
{
	const struct nc_environment *environment = &result->environment;

	return json_pack("{s:s?, s:s, s:O}", "environment",
		environment->dir_fd >= 0 ? environment->key : NULL, "state",
		result->built		   ? "built"
		: environment->dir_fd >= 0 ? "reused"
					   : "in the image",
		"packages", result->packages);
}

/* The installer's words hold names that strangers chose: a terminal is not to obey them. */
static void print_said(const char *text, size_t size)
{
	for (size_t i = 0, n; i < size; i += n) {
		n = nc_text_utf8(text + i, size - i);
		if (n > 2 || (n == 2 && (text[i] != '\xc2' || (text[i + 1] & 0x60) != 0)) ||
			(n == 1 &&
				((text[i] >= ' ' && text[i] != 0x7f) || strchr("\n\t", text[i]))))
			(void)fwrite(text + i, 1, n, stderr);
		else
			(void)fputc('?', stderr);
		n = n > 0 ? n : 1;
	}
}

static void on_done(void *context, struct nc_build_result *result)
{
	struct task *task = context;

	task->build = NULL;
	if (result->said_size > 0 && (arg_verbose || result->status))
		print_said(result->said, result->said_size);
	if (result->status)
		task->err = result->err;
	else
		task->answer = describe(result);
	uv_stop(&task->loop);
}

static void on_signal(uv_signal_t *handle, int number)
{
	struct task *task = handle->data;

	(void)number;
	if (task->build)
		nc_build_cancel(task->build);
}

/* The signals that end us: what was begun is removed first. */
static int catch_signals(struct task *task)
{
	static const int numbers[] = {SIGINT, SIGTERM};
	int r = 0;

	for (size_t i = 0; r == 0 && i < 2; i++) {
		task->signals[i].data = task;
		r = uv_signal_init(&task->loop, &task->signals[i]);
		if (r == 0)
			r = uv_signal_start(&task->signals[i], on_signal, numbers[i]);
	}
	return r;
}

/* Shuts us into the store; without a box nothing foreign is read, and nothing more is needed. */
static int lock_in(const struct nc_environments *all, struct nacre_err *err)
{
	int abi = nc_fence_stores(&all->store_fd, 1);
	int r;

	if (abi < 0)
		return nc_err_errno(err, abi, "Restrict ourselves");
	nc_environment_sweep(all);
	r = nc_filter_load(NC_FILTER_WORKER, NULL);
	return r < 0 ? nc_err_errno(err, r, "Restrict ourselves") : abi;
}

static void say(const char *text)
{
	nc_say(stderr, "nacre env: %s\n", text);
}

static int build_as_worker(struct task *task, struct nc_build_spec *spec, struct nc_holder *holder,
	int egress_fd, struct nacre_err *err)
{
	struct nc_hub *hub = NULL;
	const int abi = lock_in(spec->environments, err);
	int r;

	if (abi < 0)
		return abi;
	(void)signal(SIGPIPE, SIG_IGN);
	r = nc_holder_connect(holder, err);
	if (r < 0)
		return r;
	r = uv_loop_init(&task->loop);
	if (r == 0)
		r = catch_signals(task);
	if (r == 0)
		r = nc_hub_new(nc_loop_of_uv(&task->loop), holder, &hub);
	if (r == 0 && egress_fd >= 0) {
		r = nc_network_new(&task->loop, egress_fd, &spec->network, err);
		if (r < 0)
			return r;
	}
	spec->hub = hub;
	spec->holder = holder;
	spec->loop = &task->loop;
	if (r == 0)
		r = nc_build_start(spec, &task->build);
	if (r < 0)
		return nc_err_errno(err, r, "Begin");
	(void)uv_run(&task->loop, UV_RUN_DEFAULT);
	nc_hub_free(hub);
	nc_network_free(spec->network);
	*err = task->err;
	return err->code < 0 ? err->code : task->answer ? 0 : nc_err_errno(err, -ENOMEM, "Answer");
}

static int check_packages(
	enum nc_language language, int n_words, char **words, struct nacre_err *err)
{
	char quoted[NC_TEXT_QUOTED_MAX];

	if (n_words == 0 && language >= 0 && nc_warmer_of(language))
		return 0;
	if (language < 0 || !nc_installer_of(language))
		return nc_err_set(err, -EINVAL,
			"Option '--lang': packages are installed for python and javascript; go has "
			"a build cache, without any");
	if (n_words == 0)
		return nc_err_set(err, -EINVAL, "Name packages: nacre env build PACKAGE...");
	for (int i = 0; i < n_words; i++)
		if (!nc_package_is_name(words[i]) || !nc_installer_takes(language, words[i]))
			return nc_err_set(err, -EINVAL, "%s: not a package of %s",
				nc_text_quote(quoted, words[i]), nc_runtimes[language]->name);
	return 0;
}

static void print_built(const json_t *answer)
{
	const char *key = json_string_value(json_object_get(answer, "environment"));
	const json_t *packages = json_object_get(answer, "packages");

	nc_say(stdout, "%.*s %s:%s", key ? KEY_SHOWN : 4, key ? key : "None",
		json_string_value(json_object_get(answer, "state")),
		json_array_size(packages) == 0 ? " build cache" : "");
	for (size_t i = 0; i < json_array_size(packages); i++) {
		const json_t *package = json_array_get(packages, i);

		nc_say(stdout, " %s %s%s", json_string_value(json_object_get(package, "name")),
			json_string_value(json_object_get(package, "version")),
			i + 1 < json_array_size(packages) ? "," : "");
	}
	fputs("\n", stdout);
}

static int run_build(const struct nc_cli *cli, int n_words, char **words, struct nacre_err *err)
{
	const struct nc_holder_setup setup = {.ready = 1};
	cleanup_holder struct nc_holder holder = {.fd = -EBADF};
	cleanup_environments struct nc_environments all = {0};
	cleanup_json json_t *answer = NULL;
	struct nc_build_spec spec = {.environments = &all,
		.tenant = "",
		.language = nc_language_parse(arg_lang),
		.packages = (const char *const *)(uintptr_t)words,
		.n_packages = (size_t)n_words,
		.progress = on_progress,
		.done = on_done};
	static struct task task;
	bool ranges;
	int r, egress_fd = -EBADF;

	nc_environments_init(&all);
	spec.context = &task;
	r = check_packages(spec.language, n_words, words, err);
	if (r == 0)
		r = nc_privilege_ranges(&ranges, err);
	if (r == 0)
		r = nc_environments_open(&all, cli->config, true, ranges, err);
	if (r == 0)
		r = nc_environments_open_source(&all, cli->config, err);
	if (r == 0 && nc_environments_have_index(&all, spec.language))
		egress_fd = nc_outlet_start(say);
	if (r == 0)
		r = nc_holder_start(&holder, &setup, err);
	if (r == 0)
		r = build_as_worker(&task, &spec, &holder, egress_fd, err);
	answer = task.answer;
	if (r < 0)
		return r;
	if (arg_json && nc_json_print(stdout, json_incref(answer), true) < 0)
		return nc_err_set(err, -EIO, "Write the answer");
	if (!arg_json)
		print_built(answer);
	return NC_EXIT_OK;
}

/* For a verb that needs no box. -ENOENT: there is no store, and so no environment. */
static int enter_store(
	struct nc_environments *all, const struct nc_config *config, struct nacre_err *err)
{
	bool ranges;
	int r = nc_privilege_ranges(&ranges, err);

	nc_environments_init(all);
	if (r == 0)
		r = nc_environments_open(all, config, false, ranges, err);
	if (r < 0)
		return r;
	r = nc_privilege_drop(ranges);
	if (r < 0)
		return nc_err_errno(err, r, "Drop privileges");
	r = lock_in(all, err);
	return r < 0 ? r : 0;
}

static json_t *entry_json(const struct nc_environment_entry *entry)
{
	char used[32] = "";
	struct tm parts;

	(void)strftime(
		used, sizeof(used), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&entry->used.tv_sec, &parts));
	return json_pack("{s:s, s:I, s:s, s:O?, s:O?, s:O?}", "key", entry->key, "bytes",
		(json_int_t)entry->bytes, "used", used, "tenant",
		json_object_get(entry->lock, "tenant"), "language",
		json_object_get(entry->lock, "language"), "asked",
		json_object_get(entry->lock, "asked"));
}

static int add_entry(void *context, const struct nc_environment_entry *entry)
{
	return json_array_append_new(context, entry_json(entry)) < 0 ? -ENOMEM : 0;
}

static void print_entry(const json_t *entry)
{
	const json_t *asked = json_object_get(entry, "asked");
	const char *language = json_string_value(json_object_get(entry, "language"));

	nc_say(stdout, "%.*s  %-10s %8.1f MB  %s ", KEY_SHOWN,
		json_string_value(json_object_get(entry, "key")), language ? language : "broken",
		(double)json_integer_value(json_object_get(entry, "bytes")) / (1 << 20),
		json_string_value(json_object_get(entry, "used")));
	for (size_t i = 0; i < json_array_size(asked); i++)
		nc_say(stdout, " %s", json_string_value(json_array_get(asked, i)));
	fputs(language && json_array_size(asked) == 0 ? " (build cache)\n" : "\n", stdout);
}

static int run_list(const struct nc_cli *cli, int n_words, char **words, struct nacre_err *err)
{
	cleanup_environments struct nc_environments all;
	cleanup_json json_t *list = json_array();
	int r = enter_store(&all, cli->config, err);

	(void)n_words;
	(void)words;
	if (r == 0) {
		r = nc_environment_visit(&all, add_entry, list);
		if (r < 0)
			nc_err_errno(err, r, "List the environments");
	}
	if (r < 0 && r != -ENOENT)
		return r;
	for (size_t i = 0; !arg_json && i < json_array_size(list); i++)
		print_entry(json_array_get(list, i));
	if (arg_json && nc_json_print(stdout, json_pack("{s:O}", "environments", list), true) < 0)
		return nc_err_set(err, -EIO, "Write the answer");
	return NC_EXIT_OK;
}

/* What a word of the command line means: the one key that begins so. */
struct search {
	const char *word;
	char key[NC_KEY_SIZE];
	size_t found;
};

static int compare(void *context, const struct nc_environment_entry *entry)
{
	struct search *search = context;

	if (nc_text_after(entry->key, search->word)) {
		search->found++;
		(void)snprintf(search->key, sizeof(search->key), "%s", entry->key);
	}
	return 0;
}

static int find_key(const struct nc_environments *all, const char *word,
	char key[static NC_KEY_SIZE], struct nacre_err *err)
{
	struct search search = {.word = word};
	char quoted[NC_TEXT_QUOTED_MAX];
	int r = 0;

	if (strlen(word) < KEY_LEAST)
		return nc_err_set(err, -EINVAL, "%s: at least %u letters of a key are needed",
			nc_text_quote(quoted, word), KEY_LEAST);
	if (all->store_fd >= 0)
		r = nc_environment_visit(all, compare, &search);
	if (r < 0)
		return nc_err_errno(err, r, "Look at the environments");
	if (search.found != 1)
		return nc_err_set(err, -ENOENT, "%s: %s environment begins with it",
			nc_text_quote(quoted, word), search.found ? "more than one" : "no");
	memcpy(key, search.key, NC_KEY_SIZE);
	return 0;
}

static int run_show(const struct nc_cli *cli, int n_words, char **words, struct nacre_err *err)
{
	cleanup_environments struct nc_environments all;
	nc_cleanup(nc_environment_close) struct nc_environment environment;
	char key[NC_KEY_SIZE];
	int r = enter_store(&all, cli->config, err);

	nc_environment_init(&environment);
	if (r < 0 && r != -ENOENT)
		return r;
	if (n_words != 1)
		return nc_err_set(err, -EINVAL, "Name an environment: nacre env show KEY");
	r = find_key(&all, words[0], key, err);
	if (r < 0)
		return r;
	r = nc_environment_open(&all, key, &environment);
	if (r == 0)
		r = json_object_set_new(environment.lock, "key", json_string(key));
	if (r == 0)
		r = nc_json_print(stdout, json_incref(environment.lock), true);
	return r < 0 ? nc_err_errno(err, r, "Show the environment %.12s", key) : NC_EXIT_OK;
}

static int run_remove(const struct nc_cli *cli, int n_words, char **words, struct nacre_err *err)
{
	cleanup_environments struct nc_environments all;
	char key[NC_KEY_SIZE];
	int r = enter_store(&all, cli->config, err);

	if (r == -ENOENT)
		r = 0; /* then none is found */
	if (r == 0 && n_words == 0)
		return nc_err_set(err, -EINVAL, "Name environments: nacre env remove KEY...");
	for (int i = 0; r == 0 && i < n_words; i++) {
		r = find_key(&all, words[i], key, err);
		if (r == 0)
			r = nc_environment_remove(&all, key, err);
	}
	return r < 0 ? r : NC_EXIT_OK;
}

struct prune {
	const struct nc_environments *all;
	time_t before; /* what was used last before that goes */
};

static int prune_entry(void *context, const struct nc_environment_entry *entry)
{
	const struct prune *prune = context;
	struct nacre_err err = {0};

	if (entry->used.tv_sec < prune->before &&
		nc_environment_remove(prune->all, entry->key, &err) < 0)
		nc_say(stderr, "nacre env: %s\n", err.message);
	return 0;
}

static int run_prune(const struct nc_cli *cli, int n_words, char **words, struct nacre_err *err)
{
	cleanup_environments struct nc_environments all;
	struct prune prune = {.all = &all};
	char quoted[NC_TEXT_QUOTED_MAX];
	uint64_t unused_ns = 0;
	int r;

	(void)n_words;
	(void)words;
	if (arg_unused && nc_parse_duration(arg_unused, &unused_ns) < 0)
		return nc_err_set(err, -EINVAL,
			"Option '--unused': found %s, expected a time such as 720h",
			nc_text_quote(quoted, arg_unused));
	r = enter_store(&all, cli->config, err);
	if (r == -ENOENT)
		return NC_EXIT_OK;
	if (r < 0)
		return r;
	prune.before = time(NULL) - (time_t)(unused_ns / 1000000000);
	if (arg_unused) {
		r = nc_environment_visit(&all, prune_entry, &prune);
		if (r < 0)
			return nc_err_errno(err, r, "Look at the environments");
	}
	r = nc_environment_make_room(&all, "", 0, err);
	return r < 0 ? r : NC_EXIT_OK;
}

static const struct nc_verb build_verb = {
	.name = "build",
	.summary = "Install packages into an environment",
	.arguments = "PACKAGE...",
	.details =
		"Installs the packages and what they need, in a box that reaches nothing but the\n"
		"index that packages.python.index or packages.javascript.registry of nacre.yaml\n"
		"names; or that has no network, from the directory of packages.python.wheels or\n"
		"packages.javascript.tarballs. What is there already, or in the image, is not\n"
		"installed again.",
	.example = "nacre env build requests 'numpy>=1.24'",
	.options = build_options,
	.max_words = 64,
	.run = run_build,
};

static const struct nc_verb list_verb = {
	.name = "list",
	.summary = "List the environments",
	.arguments = "",
	.details = "Prints the key, language, size, time of last use and packages of each; those "
		   "that\n"
		   "were not used for longest come first, and go first.",
	.example = "nacre env list --json",
	.options = list_options,
	.run = run_list,
};

static const struct nc_verb show_verb = {
	.name = "show",
	.summary = "Print the lock file of an environment",
	.arguments = "KEY",
	.details = "Prints what was asked for, and every package in it with version, file and "
		   "SHA-256.\n"
		   "The first letters of the key are enough.",
	.example = "nacre env show 3f8a",
	.max_words = 1,
	.run = run_show,
};

static const struct nc_verb remove_verb = {
	.name = "remove",
	.summary = "Remove environments",
	.arguments = "KEY...",
	.details = "Removes environments that nobody uses now. They are built again when they are "
		   "needed.",
	.example = "nacre env remove 3f8a",
	.max_words = 64,
	.run = run_remove,
};

static const struct nc_verb prune_verb = {
	.name = "prune",
	.summary = "Remove environments that are not needed",
	.arguments = "",
	.details = "Removes what was not used for longest until environments.max_mb is kept, and "
		   "what\n"
		   "builds that were killed have left.",
	.example = "nacre env prune --unused 720h",
	.options = prune_options,
	.run = run_prune,
};

static const struct nc_verb *const verbs[] = {
	&build_verb, &list_verb, &show_verb, &remove_verb, &prune_verb, NULL};

const struct nc_verb nc_verb_env = {
	.name = "env",
	.summary = "Build, list or remove environments of packages",
	.arguments = "VERB",
	.details =
		"An environment is a set of packages that programs need beside what the image "
		"has,\n"
		"installed once and shown to boxes read-only: nacre run --packages A,B. They are\n"
		"kept in environments below $NACRE_STATE, /var/lib/nacre (root) or\n"
		"~/.local/share/nacre.",
	.example = "nacre env build requests",
	.verbs = verbs,
};
