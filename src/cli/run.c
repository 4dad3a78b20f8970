/* nacre run: a program in a fresh box, by its language. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/say.h"
#include "base/state.h"
#include "base/text.h"
#include "box/store.h"
#include "cli/answer_json.h"
#include "cli/cli.h"
#include "cli/gather.h"
#include "cli/order.h"
#include "cli/outbox.h"
#include "cli/outlet.h"
#include "cli/recording.h"
#include "cli/remote.h"
#include "engine/binds.h"
#include "engine/engine.h"
#include "engine/environment.h"
#include "engine/installer.h"
#include "engine/network.h"
#include "kernel/fence.h"
#include "kernel/filter.h"
#include "kernel/privilege.h"
#include "policy/book.h"
#include "tier/launch.h"
#include "watch/record.h"

static bool arg_cache, arg_json;
static const char *arg_code, *arg_lang, *arg_net, *arg_out, *arg_packages, *arg_policy,
	*arg_request;
static struct nc_words arg_allow, arg_input, arg_file, arg_capture;
static struct nc_order_args args;
/* what --bind names here, and what the request calls it */
static struct nc_order arg_binds;
static struct nc_binds binds;
/* of the tier that was named, if the spawner is not its holder */
static struct nc_holder_set holders;

static const struct nc_option options[] = {
	{.name = "allow",
		.value = "HOST[:PORT]",
		.help = "A host that it may reach; repeatable",
		.words = &arg_allow},
	{.name = "bind",
		.value = "SRC[:DST][:rw]",
		.help = "Show a file or directory; with --server a name; repeatable",
		.words = &args.bind},
	{.name = "cache", .help = "Answer an equal request from the cache", .flag = &arg_cache},
	{.name = "capture",
		.value = "GLOB",
		.help = "Bring files back, into --out, else where you are; repeatable",
		.words = &arg_capture},
	{.name = "code",
		.letter = 'c',
		.value = "CODE",
		.help = "The program, instead of a file",
		.text = &arg_code},
	NC_OPTION_CPU_TIME(args),
	NC_OPTION_CPUS(args),
	NC_OPTION_DISK(args),
	NC_OPTION_ENV(args),
	{.name = "file",
		.value = "SRC[:DST]",
		.help = "Put a file or a directory into the workspace; repeatable",
		.words = &arg_file},
	NC_OPTION_FILES(args),
	NC_OPTION_INODES(args),
	{.name = "input",
		.value = "LINE",
		.help = "A line of its input; repeatable",
		.words = &arg_input},
	{.name = "json", .help = "Print one JSON object, the reply", .flag = &arg_json},
	{.name = "lang",
		.value = "LANGUAGE",
		.help = "The language; else it is told from name and content",
		.text = &arg_lang},
	NC_OPTION_MEMORY(args),
	{.name = "net",
		.value = "MODE",
		.help = "none (the usual), or allowlist: hosts of --allow, or the policy's",
		.text = &arg_net},
	{.name = "out",
		.value = "DIR",
		.help = "Write captured files into this directory",
		.text = &arg_out},
	NC_OPTION_OUTPUT(args),
	{.name = "packages",
		.value = "A,B",
		.help = "Packages that the program needs",
		.text = &arg_packages},
	NC_OPTION_PIDS(args),
	{.name = "policy",
		.value = "NAME|FILE",
		.help = "standard (the usual one), strict, audit or one of yours",
		.text = &arg_policy},
	{.name = "request",
		.value = "FILE",
		.help = "A whole request in JSON, instead of all this",
		.text = &arg_request},
	NC_OPTION_TIER(args),
	NC_OPTION_TIMEOUT(args),
	{.name = "user",
		.value = "USER",
		.help = "Whose it is in the box: sandbox or root",
		.text = &args.user},
	{.name = "writable-root",
		.help = "Its root can be written to, within --disk",
		.flag = &args.writable_root},
	{0},
};

static int read_all(
	const char *name, size_t max, char **ret_text, size_t *ret_size, struct nacre_err *err)
{
	cleanup_close int opened = -EBADF;
	char quoted[NC_TEXT_QUOTED_MAX];
	int r, fd = STDIN_FILENO;

	if (!nc_streq(name, "-"))
		fd = opened = open(name, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	r = fd < 0 ? -errno : nc_fd_read_all(fd, max, ret_text, ret_size);
	if (r == -EFBIG)
		return nc_err_set(
			err, r, "%s: more than %zu bytes", nc_text_quote(quoted, name), max);
	return r < 0 ? nc_err_errno(err, r, "%s", nc_text_quote(quoted, name)) : 0;
}

static json_t *words_json(char *const *words, size_t count)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < count; i++)
		(void)json_array_append_new(list, json_string(words[i]));
	if (json_array_size(list) == count)
		return list;
	json_decref(list);
	return NULL;
}

static json_t *env_json(void)
{
	json_t *object = json_object();

	for (size_t i = 0; object && i < args.env.count; i++) {
		const char *equals = strchrnul(args.env.words[i], '=');

		(void)json_object_setn_new_nocheck(object, args.env.words[i],
			(size_t)(equals - args.env.words[i]),
			json_string(*equals ? equals + 1 : ""));
	}
	return object;
}

/* Names: of a daemon's operator, or those that ours have by their number. */
static json_t *binds_json(void)
{
	json_t *list = json_array();

	for (size_t i = 0; i < args.bind.count; i++)
		(void)json_array_append_new(list,
			json_string(binds.count > 0 ? binds.bind[i].name : args.bind.words[i]));
	return list;
}

/* With the caller's rights, before they are given up. */
static int open_binds(struct nacre_err *err)
{
	const struct nc_exec_spec *exec = &arg_binds.run.exec;
	int r = 0;

	arg_binds.run.image_fd = -EBADF;
	for (size_t i = 0; r == 0 && i < args.bind.count; i++)
		r = nc_order_bind(args.bind.words[i], &arg_binds, err);
	for (; r == 0 && binds.count < exec->n_binds; binds.count++) {
		struct nc_bind *bind = &binds.bind[binds.count];

		(void)snprintf(bind->name, sizeof(bind->name), "bind%u", binds.count + 1);
		bind->writable = exec->binds[binds.count].writable;
		memcpy(bind->target, exec->binds[binds.count].target, sizeof(bind->target));
	}
	return r;
}

static json_t *packages_json(void)
{
	json_t *list = json_array();
	cleanup_free char *copy = strdup(arg_packages);
	char *rest = copy, *word;

	while (list && copy && (word = strsep(&rest, ",")))
		(void)json_array_append_new(list, json_string(word));
	return list;
}

/* A member that is there only if it was asked for. */
static int set(json_t *request, const char *name, json_t *value)
{
	return json_object_set_new(request, name, value);
}

/* The command line as a request, which is then held against the same rules as any other. */
static int compose(json_t *request, json_t *files, const char *file, char **words, size_t n_words,
	const char *code, size_t code_size, struct nacre_err *err)
{
	int r = 0;

	for (size_t i = 0; i < args.env.count; i++)
		if (args.env.words[i][0] == '=' || !strchr(args.env.words[i], '='))
			r = nc_err_set(err, -EINVAL, "Option '--env': expected NAME=VALUE");
	if (arg_net && !nc_streq(arg_net, "none") && !nc_streq(arg_net, "allowlist"))
		r = nc_err_set(err, -EINVAL, "Option '--net': expected none or allowlist");
	else if (arg_net && nc_streq(arg_net, "none") && arg_allow.count > 0)
		r = nc_err_set(err, -EINVAL, "Option '--allow': not with --net none");
	for (size_t i = 0; r == 0 && i < arg_file.count; i++)
		r = nc_gather(files, arg_file.words[i], err);
	if (r < 0)
		return r;
	r |= json_object_set(request, "files", files);
	r |= set(request, "code", json_stringn(code, code_size));
	if (r < 0)
		return nc_err_set(err, -EINVAL, "The program is not UTF-8");
	r |= set(request, "args", words_json(words, n_words));
	r |= set(request, "env", env_json());
	r |= set(request, "inputs",
		words_json((char *const *)(uintptr_t)arg_input.words, arg_input.count));
	r |= set(request, "capture",
		words_json((char *const *)(uintptr_t)arg_capture.words, arg_capture.count));
	r |= set(request, "binds", binds_json());
	r |= set(request, "cache", json_boolean(arg_cache));
	if (file && !nc_streq(file, "-"))
		r |= set(request, "file",
			json_string(strrchr(file, '/') ? strrchr(file, '/') + 1 : file));
	if (arg_lang)
		r |= set(request, "language", json_string(arg_lang));
	/* a request never names a file: what stands here is then what is usual */
	if (arg_policy && !nc_book_is_path(arg_policy))
		r |= set(request, "policy", json_string(arg_policy));
	if (args.tier)
		r |= set(request, "tier", json_string(args.tier));
	if (args.user)
		r |= set(request, "user", json_string(args.user));
	if (args.writable_root)
		r |= set(request, "writable_root", json_true());
	if (arg_packages)
		r |= set(request, "packages", packages_json());
	if (arg_net && !nc_streq(arg_net, "none"))
		r |= set(request, "network_access", json_true());
	if (arg_allow.count > 0)
		r |= set(request, "network",
			json_pack("{s:o}", "allow",
				words_json((char *const *)(uintptr_t)arg_allow.words,
					arg_allow.count)));
	return r < 0 ? nc_err_set(err, -EINVAL, "Words of the command line are not UTF-8") : 0;
}

/* Which option a fault of the request is about. */
static const char *option_of(const char *pointer)
{
	static const char *const names[][2] = {{"/language", "--lang"}, {"/args", "ARGUMENT"},
		{"/inputs", "--input"}, {"/files", "--file"}, {"/env", "--env"},
		{"/capture", "--capture"}, {"/binds", "--bind"}, {"/packages", "--packages"},
		{"/policy", "--policy"}, {"/tier", "--tier"}, {"/code", "CODE"},
		{"/network/allow", "--allow"}, {"/user", "--user"}};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!arg_request && nc_text_after(pointer, names[i][0]))
			return names[i][1];
	return *pointer ? pointer : "The request";
}

static int parse(const char *text, size_t size, struct nc_request *request, struct nacre_err *err)
{
	static struct nc_faults faults;
	int r = nc_request_parse(text, size, request, &faults);

	if (r != -EINVAL)
		return r < 0 ? nc_err_errno(err, r, "Read the request") : 0;
	for (size_t i = 1; i < faults.count; i++)
		nc_say(stderr, "nacre run: %s: %s\n", option_of(faults.fault[i].pointer),
			faults.fault[i].message);
	return nc_err_set(
		err, r, "%s: %s", option_of(faults.fault[0].pointer), faults.fault[0].message);
}

static void name_limit(struct nc_request_limit *limit, const char *given, uint64_t value)
{
	if (given)
		*limit = (struct nc_request_limit){.value = value, .given = true};
}

static int read_limits(struct nc_request_limits *limits, struct nacre_err *err)
{
	struct nc_box_limits named = {0};
	uint64_t output = 0;
	int r = nc_order_limits(&args, &named, &output, err);

	name_limit(&limits->memory_bytes, args.memory, named.memory_bytes);
	name_limit(&limits->cpu_milli, args.cpus, named.cpu_milli);
	name_limit(&limits->cpu_time_ms, args.cpu_time, named.cpu_time_ms);
	name_limit(&limits->wall_ms, args.timeout, named.wall_ms);
	name_limit(&limits->processes, args.pids, named.pids);
	name_limit(&limits->disk_bytes, args.disk, named.disk_bytes);
	name_limit(&limits->inodes, args.inodes, named.inodes);
	name_limit(&limits->open_files, args.files, named.open_files);
	name_limit(&limits->output_bytes, args.output, output);
	return r;
}

/* What a request says itself cannot be said beside it: it would not hold. */
static int refuse_beside_request(struct nacre_err *err)
{
	static const char *const allowed[] = {"json", "out", "request"};

	for (const struct nc_option *option = options; option->name; option++) {
		bool given = option->flag   ? *option->flag
			     : option->text ? *option->text != NULL
					    : option->words->count > 0;

		for (size_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++)
			given = given && !nc_streq(option->name, allowed[i]);
		/* a request can name no file */
		if (given && (option->text != &arg_policy || !nc_book_is_path(arg_policy)))
			return nc_err_set(err, -EINVAL,
				"Option '--%s': not beside --request, which has the program and "
				"all else in it",
				option->name);
	}
	return 0;
}

static int read_request(
	int n_words, char **words, struct nc_request *request, struct nacre_err *err)
{
	cleanup_json json_t *source = json_object(), *files = json_object();
	cleanup_free char *text = NULL, *composed = NULL, *name = NULL;
	const char *file = arg_code ? NULL : n_words > 0 ? words[0] : NULL;
	size_t size = arg_code ? strlen(arg_code) : 0, skip = file ? 1 : 0;
	int r;

	if (!source || !files)
		return nc_err_errno(err, -ENOMEM, "Read the request");
	if (arg_request) {
		r = n_words > 0
			    ? nc_err_set(err, -EINVAL,
				      "Option '--request': it has the program and all else in it")
			    : refuse_beside_request(err);
		if (r == 0)
			r = read_all(arg_request, NC_REQUEST_SIZE_MAX, &text, &size, err);
		if (r == 0)
			r = parse(text, size, request, err);
		return r == 0 && arg_policy && *request->policy
			       ? nc_err_set(err, -EINVAL,
					 "Option '--policy': the request names a policy itself")
			       : r;
	}
	if (!arg_code && !file)
		return nc_err_set(err, -EINVAL,
			"Name a program: nacre run FILE, nacre run -c CODE, or - for standard "
			"input");
	if (file) {
		r = nc_streq(file, "-") ? -ENOTDIR
					: nc_gather_program(files, file, &name, &text, &size, err);
		if (r == -ENOTDIR)
			r = read_all(file, NC_REQUEST_CODE_MAX, &text, &size, err);
		if (r < 0)
			return r;
	}
	r = compose(source, files, name ? name : file, words + skip, (size_t)n_words - skip,
		arg_code ? arg_code : text, size, err);
	composed = r == 0 ? json_dumps(source, JSON_COMPACT) : NULL;
	if (r == 0)
		r = composed ? parse(composed, strlen(composed), request, err)
			     : nc_err_errno(err, -ENOMEM, "Read the request");
	if (r == 0)
		r = read_limits(&request->limits, err);
	return r;
}

/* Policies are read now, while files can be. */
static int read_policies(const struct nc_config *config, const struct nc_request *request,
	struct nc_book **ret_book, struct nacre_err *err)
{
	const char *word = arg_policy ? arg_policy : request->policy;
	int r = nc_book_new(config, ret_book);

	if (r < 0)
		return nc_err_errno(err, r, "Read the policy");
	if (*word)
		r = nc_book_add(*ret_book, word, err);
	return r < 0 ? nc_err_wrap(err, "%s", option_of("/policy")) : 0;
}

/*
 * The program's input, through a descriptor of our own: the loop makes it non-blocking, which must
 * not change the caller's.
 */
static int open_input(const char *file)
{
	int fd;

	/* what is kept must not depend on what nobody knows */
	if (arg_input.count > 0 || arg_cache || (file && nc_streq(file, "-")))
		return -EBADF;
	fd = open("/proc/self/fd/0", O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	return fd < 0 ? nc_fd_dup(STDIN_FILENO) : fd;
}

/* One run and its outcome. */
struct task {
	uv_loop_t loop;
	json_t *reply;
	bool done;
};

static void on_printed(void *context, enum nc_stream stream, const char *data, size_t size)
{
	(void)context;
	/* a reader that leaves ends us as it ends any filter */
	if (nc_fd_write_all(stream == NC_STREAM_OUTPUT ? STDOUT_FILENO : STDERR_FILENO, data,
		    size) == -EPIPE) {
		(void)signal(SIGPIPE, SIG_DFL);
		(void)raise(SIGPIPE);
	}
}

static void on_progress(void *context, const char *text)
{
	(void)context;
	nc_say(stderr, "nacre run: %s\n", text);
}

static void on_done(void *context, json_t *reply, struct nc_buf *text)
{
	struct task *task = context;

	(void)text;
	task->reply = reply;
	task->done = true;
	uv_stop(&task->loop);
}

static void say(const char *text)
{
	nc_say(stderr, "nacre run: %s\n", text);
}

/* The unprivileged half. */
static int run_as_worker(struct nc_holder *holder, const struct nc_config *config,
	struct nc_book *policies, struct nc_request *request, int input_fd, int cache_fd,
	int state_fd, const struct nc_environments *environments, struct nc_record *record,
	int egress_fd, struct task *task, struct nacre_err *err)
{
	const struct nc_listener listener = {.context = task,
		.printed = arg_json ? NULL : on_printed,
		.progress = arg_json ? NULL : on_progress,
		.done = on_done};
	const int stores[] = {cache_fd, environments->store_fd};
	struct nc_network *network = NULL;
	struct nc_engine_setup setup = {.loop = &task->loop,
		.holder = holder,
		.config = config,
		.policies = policies,
		.policy = arg_policy && nc_book_is_path(arg_policy) ? arg_policy : NULL,
		.cache_fd = cache_fd,
		.record = record->fd >= 0 ? record : NULL,
		.state_fd = state_fd,
		.say = say,
		.environments = environments->store_fd >= 0 ? environments : NULL,
		.max_running = 1,
		.max_queued = 1};
	struct nc_execution *execution;
	struct nc_engine *engine = NULL;
	int abi, r;

	abi = nc_fence_stores(stores, sizeof(stores) / sizeof(stores[0]));
	if (setup.environments)
		nc_environment_sweep(setup.environments);
	r = abi < 0 ? abi : nc_filter_load(NC_FILTER_WORKER, NULL);
	if (r == 0)
		r = uv_loop_init(&task->loop);
	if (r < 0)
		return nc_err_errno(err, r, "Restrict ourselves");
	(void)signal(SIGPIPE, SIG_IGN);
	r = nc_holder_connect(holder, err);
	if (r < 0)
		return r;
	nc_holders_join(holder, &holders, NC_HOLDER_PATIENCE_MS);
	if (egress_fd >= 0 && nc_network_new(&task->loop, egress_fd, &network, err) < 0)
		return err->code;
	if (network)
		(void)nc_network_trust(network, nc_outlet_trusted()); /* or without them */
	setup.network = network;
	setup.binds = &binds;
	r = nc_engine_new(&setup, &engine);
	if (r < 0)
		return nc_err_errno(err, r, "Begin the engine");
	r = nc_engine_submit(engine, request, NULL, input_fd, &listener, &execution, err);
	if (r == 0)
		(void)uv_run(&task->loop, UV_RUN_DEFAULT);
	nc_engine_free(engine);
	nc_network_free(network);
	(void)uv_run(&task->loop, UV_RUN_DEFAULT); /* closes what is closing */
	if (r == 0 && !task->reply)
		return nc_err_errno(err, -ENOMEM, "Make the reply");
	return r;
}

static const char *text_of(const json_t *reply, const char *name)
{
	const char *text = json_string_value(json_object_get(reply, name));

	return text ? text : "";
}

/* What a person needs to know beside the program's own words. */
static void explain(const json_t *reply)
{
	const char *status = text_of(reply, "status"), *error = text_of(reply, "error");
	const json_t *diagnostic = json_object_get(reply, "diagnostic");
	const json_t *alerts = json_object_get(reply, "alerts");

	if (nc_streq(text_of(diagnostic, "phase"), "compile"))
		nc_say(stderr, "%s", text_of(reply, "stderr"));
	else if (!nc_streq(status, "success") && !nc_streq(status, "error"))
		nc_say(stderr, "nacre run: %s: %s\n", status, error);
	else if (nc_streq(status, "error") && json_is_null(json_object_get(reply, "exit_code")))
		nc_say(stderr, "nacre run: %s\n", error);
	nc_answer_denials("run", json_object_get(reply, "denials"), error);
	for (size_t i = 0; i < json_array_size(alerts); i++) {
		const json_t *alert = json_array_get(alerts, i);

		nc_say(stderr, "nacre run: Alert: %s: %s [%s]\n", text_of(alert, "severity"),
			text_of(alert, "reason"), text_of(alert, "id"));
	}
}

/* Files that matched and did not come, and why. */
static void explain_skipped(const json_t *reply)
{
	const json_t *skipped = json_object_get(reply, "files_skipped");
	const char *reason = text_of(reply, "files_reason");

	for (size_t i = 0; i < json_array_size(skipped); i++) {
		const json_t *file = json_array_get(skipped, i);
		char quoted[NC_TEXT_QUOTED_MAX];

		nc_say(stderr, "nacre run: Not captured: %s: %s\n",
			nc_text_quote(quoted, text_of(file, "path")), text_of(file, "reason"));
	}
	if (*reason)
		nc_say(stderr, "nacre run: Not all files were captured: %s\n", reason);
}

/* What was printed when the reply was made. */
static void print_kept(const json_t *reply)
{
	const json_t *output = json_object_get(reply, "output");
	const json_t *error = json_object_get(reply, "stderr");

	if (!json_is_true(json_object_get(reply, "cached")))
		return;
	on_printed(NULL, NC_STREAM_OUTPUT, json_string_value(output), json_string_length(output));
	on_printed(NULL, NC_STREAM_ERROR, json_string_value(error), json_string_length(error));
}

static int exit_code(const json_t *reply)
{
	const json_t *code = json_object_get(reply, "exit_code");
	const json_t *ended_by = json_object_get(reply, "signal");
	const char *status = text_of(reply, "status");

	if (nc_streq(status, "timeout"))
		return 124;
	if (nc_streq(status, "blocked"))
		return 126;
	if (json_is_integer(ended_by))
		return 128 + (int)json_integer_value(ended_by);
	if (json_is_integer(code))
		return (int)json_integer_value(code);
	return nc_streq(status, "error") ? 127 : NC_EXIT_SELF;
}

/* What the command line says about limits, as a request says it. */
static int add_limits(json_t *source, const struct nc_request_limits *limits)
{
	const struct {
		const char *name;
		const struct nc_request_limit *limit;
		uint64_t unit; /* 0: thousandths */
	} names[] = {
		{"memory_mb", &limits->memory_bytes, 1 << 20},
		{"cpu_cores", &limits->cpu_milli, 0},
		{"cpu_time_seconds", &limits->cpu_time_ms, 0},
		{"execution_time_seconds", &limits->wall_ms, 0},
		{"max_processes", &limits->processes, 1},
		{"disk_mb", &limits->disk_bytes, 1 << 20},
		{"inodes", &limits->inodes, 1},
		{"open_files", &limits->open_files, 1},
		{"output_bytes", &limits->output_bytes, 1},
	};
	json_t *object = json_object();
	int r = 0;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		uint64_t value = names[i].limit->value, unit = names[i].unit;

		if (names[i].limit->given)
			r |= json_object_set_new(object, names[i].name,
				unit ? json_integer((json_int_t)((value + unit - 1) / unit))
				     : json_real((double)value / 1000));
	}
	return r | json_object_set_new(source, "limits", object);
}

/* Standard input as lines of the request, if it is none of a person's. */
static int add_input(json_t *source, struct nacre_err *err)
{
	cleanup_free char *text = NULL;
	cleanup_json json_t *lines = json_array();
	size_t size = 0;
	int r = read_all("-", NC_REQUEST_INPUTS_SIZE_MAX, &text, &size, err);

	for (char *at = text, *next; r == 0 && at && *at; at = next) {
		size_t length = strcspn(at, "\n");

		next = at + length + (at[length] == '\n');
		if (json_array_append_new(lines, json_stringn(at, length)) < 0)
			r = nc_err_set(err, -EINVAL, "Standard input is not UTF-8");
	}
	if (r == 0 && json_object_set(source, "inputs", lines) < 0)
		r = nc_err_set(err, -ENOMEM, "Out of memory");
	return r;
}

/* By a daemon, which has policies, packages and a history of its own. */
static int run_there(const char *url, const struct nc_request *request, const char *file,
	json_t **ret_reply, struct nacre_err *err)
{
	const struct nc_remote_listener listener = {
		.printed = arg_json ? NULL : on_printed, .progress = arg_json ? NULL : on_progress};
	bool ranges = false;
	int r = nc_privilege_ranges(&ranges, err);

	if (r < 0)
		return r;
	if (arg_policy && nc_book_is_path(arg_policy))
		return nc_err_set(err, -EINVAL,
			"Option '--policy': a daemon knows policies by name, not files of yours");
	if (!arg_request) {
		if (add_limits(request->source, &request->limits) < 0)
			return nc_err_set(err, -ENOMEM, "Out of memory");
		if (arg_input.count == 0 && !arg_cache && !(file && nc_streq(file, "-")) &&
			!isatty(STDIN_FILENO))
			r = add_input(request->source, err);
	}
	/* what a stranger's machine answers is not read as root */
	if (r == 0 && nc_privilege_drop(ranges) < 0)
		r = nc_err_set(err, -EPERM, "Drop privileges");
	return r < 0 ? r : nc_remote_execute(url, request->source, &listener, ret_reply, err);
}

/* The outcome, for people or programs; the exit code. */
static int finish(json_t *reply, int outbox_fd, struct nacre_err *err)
{
	int r = 0, code = exit_code(reply);

	if (!arg_json) {
		print_kept(reply);
		explain(reply);
		explain_skipped(reply);
	}
	if (outbox_fd >= 0 && json_object_size(json_object_get(reply, "files")) > 0)
		r = nc_outbox_put(outbox_fd, reply, err);
	if (arg_json && r < 0) { /* the reply is the object that is printed */
		nc_say(stderr, "nacre run: %s\n", err->message);
		*err = (struct nacre_err){0};
		r = 0;
		code = NC_EXIT_SELF;
	}
	if (arg_json && nc_json_print(stdout, reply, true) < 0)
		return nc_err_set(err, -EIO, "Write the reply");
	return r < 0 ? r : code;
}

/* Whether one of its steps is in a language whose compiler has a cache, or may be. */
static bool may_want_warmth(const struct nc_request *request)
{
	for (size_t i = 0; i < request->n_steps; i++)
		if (request->step[i].language < 0 || nc_warmer_of(request->step[i].language))
			return true;
	return false;
}

/* For packages there must be a place; a compiler without a place for its cache takes longer. */
static int open_environments(struct nc_environments *all, const struct nc_config *config,
	const struct nc_request *request, bool ranges, struct nacre_err *err)
{
	struct nacre_err ignored = {0};
	int r;

	if (request->packages.count == 0) {
		if (may_want_warmth(request))
			(void)nc_environments_open(all, config, true, ranges, &ignored);
		return 0;
	}
	r = nc_environments_open(all, config, true, ranges, err);
	return r < 0 ? r : nc_environments_open_source(all, config, err);
}

static int run(const struct nc_cli *cli, int n_words, char **words, struct nacre_err *err)
{
	struct nc_holder_setup setup = {.ready = 1, .witness_fd = -EBADF};
	cleanup_record struct nc_record record = {.fd = -EBADF};
	cleanup_holder struct nc_holder holder = {.fd = -EBADF};
	cleanup_request struct nc_request request = {0};
	cleanup_book struct nc_book *policies = NULL;
	cleanup_close int input_fd = -EBADF, cache_fd = -EBADF, outbox_fd = -EBADF;
	cleanup_close int state_fd = -EBADF;
	cleanup_environments struct nc_environments environments;
	struct nacre_err ignored = {0};
	static struct task task;
	bool ranges = false;
	int record_fd, egress_fd = -EBADF, r;

	nc_environments_init(&environments);
	r = cli->server ? 0 : open_binds(err);
	if (r < 0)
		return r;
	setup.binds = arg_binds.bind_fd;
	setup.n_binds = arg_binds.n_bind_fds;
	r = read_request(n_words, words, &request, err);
	request.network.trusted = true;
	/* before anything is given up; for programs the reply has them */
	if (r == 0 && request.capture.count > 0 && (arg_out || !arg_json))
		r = outbox_fd = nc_outbox_start(arg_out, err);
	if (r > 0)
		r = 0;
	if (r == 0 && cli->server) {
		r = run_there(cli->server, &request, arg_code || arg_request ? NULL : words[0],
			&task.reply, err);
		return r < 0 ? r : finish(task.reply, outbox_fd, err);
	}
	if (r == 0)
		r = read_policies(cli->config, &request, &policies, err);
	if (r == 0)
		r = nc_privilege_ranges(&ranges, err);
	if (r == 0)
		r = open_environments(&environments, cli->config, &request, ranges, err);
	if (r < 0)
		return r;
	input_fd = open_input(arg_request ? "-" : arg_code ? NULL : words[0]);
	/* without a place for it nothing is kept, and all is compiled each time */
	cache_fd = nc_store_open("cache", true, ranges, &ignored);
	record_fd = nc_recording_start(cli->config, say, &setup.witness_fd);
	state_fd = nc_state_open(NULL, false, &ignored);
	if (request.network.mode > NC_NETWORK_NONE || request.network.access ||
		request.network.allow.count > 0 || request.packages.count > 0)
		egress_fd = nc_outlet_start(say);
	r = nc_holders_begin(&holders, request.tier, ranges, err);
	if (r == 0)
		r = nc_holder_start(&holder, &setup, err);
	(void)nc_fd_close(setup.witness_fd);
	if (r == 0 && record_fd >= 0 && nc_record_start(&record, record_fd, &ignored) < 0)
		say(ignored.message);
	if (r == 0)
		r = run_as_worker(&holder, cli->config, policies, &request, input_fd, cache_fd,
			state_fd, &environments, &record, egress_fd, &task, err);
	return r < 0 ? r : finish(task.reply, outbox_fd, err);
}

const struct nc_verb nc_verb_run = {
	.name = "run",
	.summary = "Run a program in a fresh box",
	.arguments = "FILE|DIR|-c CODE|- [ARGUMENT...]",
	.details =
		"Tells the language, asks the policy, compiles where that is needed, and runs\n"
		"the program in a box of its own. Its input and output are passed through, and\n"
		"its exit status is ours. - reads the program from standard input. Of a directory\n"
		"the file called main is the program, and all others are put beside it.",
	.example = "nacre run --timeout 10s --json -c 'print(6 * 7)'",
	.options = options,
	.max_words = 4096,
	.takes_server = true,
	.is_command = true,
	.run = run,
};
