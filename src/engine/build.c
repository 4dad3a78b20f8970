/*
 * How programs get their packages.
 *
 * Theory of operation: an environment that is there is used. Else a box asks the interpreter
 * whether the image has all of them. Else whoever gets the lock has a box install them into a
 * staging directory, and others who want the same look again every now and then. The box is
 * shown the staging directory to write, and to read the place that packages come from; or it
 * reaches the hosts of the configured index, through a door, and nothing else. What it says about
 * itself goes into the lock file of the environment, but only in the form expected.
 */
#include "engine/build.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/text.h"
#include "box/outcome.h"
#include "config/host.h"
#include "egress/client.h"
#include "engine/access.h"
#include "engine/installer.h"
#include "runtime/runtime.h"
#include "tier/settle.h"

#define MB (1024ULL * 1024)

/* How often somebody who waits for another's build looks whether it has come. */
#define LOOK_MS 100U
/* What a box may print: the report of some thousand packages, and what the installer says. */
#define REPORT_MAX (1U << 20)
#define SAID_MAX (256U * 1024)
#define PACKAGES_MAX 4096U

/* Of the boxes; the disk has to be added to the memory, in which it is. */
static const struct nc_box_limits install_limits = {.memory_bytes = 1024 * MB,
	.cpu_milli = 4000,
	.wall_ms = 600000,
	.pids = 256,
	.open_files = 1024};
static const struct nc_box_limits probe_limits = {.memory_bytes = 256 * MB,
	.cpu_milli = 1000,
	.wall_ms = 30000,
	.pids = 32,
	.open_files = 256};
/* The installer's own copies and its temporary files, beside what it installs. */
#define INSTALL_EXTRA (64 * MB)
#define PROBE_DISK (16 * MB)

enum step {
	STEP_LOOK,
	STEP_PROBE,
	STEP_INSTALL,
};

struct nc_build {
	struct nc_build_spec spec;
	const struct nc_installer *installer;
	char key[NC_KEY_SIZE];
	char shared_key[NC_KEY_SIZE]; /* of the operator's, which everybody may use */
	enum step step;
	bool cancelled, broken; /* there is one of this name that cannot be used */
	bool at_work;		/* nc_build_worked() follows */
	uint64_t deadline_ns;	/* for another's build */
	uv_timer_t *timer;
	struct nc_command *command;
	struct nc_exec_spec exec;
	struct nc_word_list argv, env;
	struct nc_buf report, said;
	struct nc_staging stage; /* dir_fd -EBADF: there is none */
	int layer_fd, lock_fd;
	json_t *answer;			 /* of a box */
	json_t *lock;			 /* of what is to be kept */
	struct nc_access *reach;	 /* while it installs from an index */
	char (*hosts)[NC_URL_HOST_SIZE]; /* of the index */
	struct nc_build_result result;
};

static void close_timer(uv_handle_t *handle)
{
	free(handle);
}

static void build_free(struct nc_build *build)
{
	(void)nc_fd_close(build->stage.dir_fd); /* it is swept if it is there still */
	nc_environment_unlock(build->spec.environments, build->key, build->lock_fd);
	(void)nc_fd_close(build->layer_fd);
	nc_environment_close(&build->result.environment);
	uv_close((uv_handle_t *)build->timer, close_timer);
	nc_buf_done(&build->argv.buf);
	nc_buf_done(&build->env.buf);
	nc_buf_done(&build->report);
	nc_buf_done(&build->said);
	json_decref(build->answer);
	json_decref(build->lock);
	nc_access_free(build->reach);
	free(build->hosts);
	free(build);
}

static void conclude(struct nc_build *build)
{
	struct nc_build_result *result = &build->result;

	result->said = nc_buf_text(&build->said);
	result->said_size = build->said.size;
	build->spec.done(build->spec.context, result);
	build_free(build);
}

/* Trees of many thousand files are nothing for the loop: they are kept and removed aside. */
static void finish(struct nc_build *build)
{
	if (build->stage.dir_fd < 0) {
		conclude(build);
		return;
	}
	build->at_work = true;
	if (build->spec.aside) {
		build->spec.aside(build->spec.context);
		return;
	}
	nc_build_work(build);
	nc_build_worked(build);
}

/* Fails with the message in result.err. */
static void fail(struct nc_build *build, const char *status)
{
	build->result.status = status;
	finish(build);
}

static void report_progress(struct nc_build *build, const char *verb)
{
	const char *language = nc_runtimes[build->spec.language]->name;
	char text[128];

	if (build->spec.n_packages > 0)
		(void)snprintf(text, sizeof(text), "%s %zu package%s for %s ...", verb,
			build->spec.n_packages, build->spec.n_packages == 1 ? "" : "s", language);
	else
		(void)snprintf(
			text, sizeof(text), "%s the build cache of %s, once ...", verb, language);
	if (build->spec.progress)
		build->spec.progress(build->spec.context, text);
}

static const char *source_path(const struct nc_build *build)
{
	const struct nc_environments *all = build->spec.environments;

	return nc_environments_have_index(all, build->spec.language)
		       ? all->source[build->spec.language].config->index.list[0]
		       : all->source[build->spec.language].path;
}

static void use(struct nc_build *build, bool built)
{
	build->result.built = built;
	build->result.packages = json_object_get(build->result.environment.lock, "packages");
	conclude(build);
}

/* Whether a text of a box has the form of a name, version or file, and no more. */
static bool is_plain(const json_t *value)
{
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				      "0123456789._+!~@/-";
	const char *text = json_string_value(value);

	return text && *text && strlen(text) <= NC_NAME_MAX &&
	       strspn(text, allowed) == json_string_length(value);
}

static bool is_package(const json_t *package, bool installed)
{
	const json_t *digest = json_object_get(package, "sha256");

	if (!is_plain(json_object_get(package, "name")) ||
		!is_plain(json_object_get(package, "version")))
		return false;
	return !installed ||
	       (is_plain(json_object_get(package, "file")) && is_plain(digest) &&
		       json_string_length(digest) == NC_KEY_SIZE - 1 &&
		       strspn(json_string_value(digest), "0123456789abcdef") == NC_KEY_SIZE - 1);
}

/* Reads the report of a box: -EBADMSG if it is none. */
static int read_answer(struct nc_build *build)
{
	struct nacre_err ignored = {0};
	const json_t *packages;

	json_decref(take_ptr(build->answer));
	if (build->report.error < 0 || nc_json_parse(nc_buf_text(&build->report),
					       build->report.size, &build->answer, &ignored) < 0)
		return -EBADMSG;
	if (json_object_get(build->answer, "lacks"))
		return 0;
	packages = json_object_get(build->answer, "packages");
	if (!is_plain(json_object_get(build->answer, "interpreter")) ||
		(!json_is_array(packages) && !json_is_null(packages)) ||
		json_array_size(packages) > PACKAGES_MAX)
		return -EBADMSG;
	for (size_t i = 0; i < json_array_size(packages); i++)
		if (!is_package(json_array_get(packages, i), build->step == STEP_INSTALL))
			return -EBADMSG;
	return 0;
}

static void on_printed(void *context, enum nc_stream stream, const char *data, size_t size)
{
	struct nc_build *build = context;
	struct nc_buf *buf = stream == NC_STREAM_OUTPUT ? &build->report : &build->said;

	/* more than a report is none; of what is said the beginning is kept */
	if (stream == NC_STREAM_ERROR && size > buf->max - buf->size)
		size = buf->max - buf->size;
	nc_buf_add(buf, data, size);
}

static void look(struct nc_build *build);
static void install(struct nc_build *build);

/* What the source lacks: the box says so, and that must be a name, for we say it again. */
static void fail_for_lack(struct nc_build *build)
{
	const char *name = json_string_value(json_object_get(build->answer, "lacks"));
	char quoted[NC_TEXT_QUOTED_MAX], path[NC_TEXT_QUOTED_MAX];

	bool online = nc_environments_have_index(build->spec.environments, build->spec.language);

	nc_err_set(&build->result.err, -ENOENT,
		"packages: the %s %s has no %s, or no version of it that fits; packages are "
		"installed from there alone (%s)",
		online ? "index" : build->installer->source_noun,
		nc_text_quote(path, source_path(build)),
		name ? nc_text_quote(quoted, name) : "such package",
		online ? build->installer->index_key : build->installer->source_key);
	fail(build, "error");
}

/* The last line that says something. */
static void fail_for_words(struct nc_build *build)
{
	char line[NC_TEXT_QUOTED_MAX], quoted[NC_TEXT_QUOTED_MAX];
	const char *text = nc_buf_text(&build->said), *end = text + build->said.size, *begin;

	while (end > text && strchr(" \r\n\t", end[-1]))
		end--;
	begin = end;
	while (begin > text && begin[-1] != '\n')
		begin--;
	(void)snprintf(line, sizeof(line), "%.*s", (int)(end - begin), begin);
	nc_err_set(&build->result.err, -EIO, "packages: they cannot be installed: %s",
		*line ? nc_text_quote(quoted, line) : "no reason was given");
	fail(build, "error");
}

static void fail_for_end(struct nc_build *build, const struct nc_box_end *end)
{
	const struct nc_environments *all = build->spec.environments;
	bool by_itself = end->cause == NC_CAUSE_EXIT && end->signal == 0;

	if (end->hit & (NC_HIT_DISK | NC_HIT_INODES) || end->cause == NC_CAUSE_MEMORY ||
		(by_itself && end->code == NC_INSTALL_FULL)) {
		nc_err_set(&build->result.err, -EFBIG,
			"packages: they take more than %llu MB, which is the most of an "
			"environment",
			(unsigned long long)(nc_environments_each(all) / MB));
		fail(build, "error");
	} else if (by_itself && end->code == NC_INSTALL_NO_ROOM) {
		nc_err_set(&build->result.err, -ENOSPC,
			"packages: the disk that environments are kept on is full (%s); free some "
			"space there, or set NACRE_STATE to another one",
			nc_errno_text(ENOSPC));
		fail(build, "error");
	} else if (end->cause == NC_CAUSE_WALL) {
		nc_err_set(&build->result.err, -ETIMEDOUT,
			"packages: not installed after %llu seconds",
			(unsigned long long)(install_limits.wall_ms / 1000));
		fail(build, "timeout");
	} else if (by_itself && end->code == NC_INSTALL_MISSING) {
		nc_err_set(&build->result.err, -ENOENT,
			"packages: the image has nothing to install them with: %s",
			build->installer->fix);
		fail(build, "error");
	} else if (by_itself && end->code == NC_INSTALL_LACKS && read_answer(build) == 0) {
		fail_for_lack(build);
	} else {
		fail_for_words(build);
	}
}

static json_t *make_lock(const struct nc_build *build)
{
	char built[NC_CLOCK_STAMP_SIZE];
	json_t *asked = json_array();

	for (size_t i = 0; asked && i < build->spec.n_packages; i++)
		(void)json_array_append_new(asked, json_string(build->spec.packages[i]));
	nc_clock_stamp(built);
	return json_pack("{s:s, s:s, s:o, s:O, s:O, s:s?, s:s}", "language",
		nc_runtimes[build->spec.language]->name, "tenant",
		build->spec.n_packages > 0 ? build->spec.tenant : "", "asked", asked, "packages",
		json_object_get(build->answer, "packages"), "interpreter",
		json_object_get(build->answer, "interpreter"), "source", source_path(build),
		"built", built);
}

static void keep(struct nc_build *build)
{
	const struct nc_environments *all = build->spec.environments;
	struct nacre_err *err = &build->result.err;
	struct nacre_err ignored = {0};
	int r;

	if (build->broken)
		(void)nc_environment_remove(all, build->key, &ignored); /* or it has no name */
	r = nc_environment_keep(all, &build->stage, build->key, build->lock, err);
	if (r == 0) {
		r = nc_environment_open(all, build->key, &build->result.environment);
		if (r < 0)
			nc_err_errno(err, r, "Open the environment");
	}
	if (r < 0)
		build->result.status = r == -EFBIG || r == -ENOSPC ? "error" : "internal_error";
}

void nc_build_work(struct nc_build *build)
{
	if (build->lock)
		keep(build);
	(void)nc_staging_close(build->spec.environments->store_fd, false, &build->stage);
}

void nc_build_worked(struct nc_build *build)
{
	if (build->cancelled && !build->result.status) {
		nc_err_set(&build->result.err, -ECANCELED, "It was cancelled");
		build->result.status = "cancelled";
	}
	if (build->lock && !build->result.status)
		use(build, true);
	else
		conclude(build);
}

static void take_probe(struct nc_build *build)
{
	json_t *packages = json_object_get(build->answer, "packages");

	if (!json_is_array(packages)) {
		install(build);
		return;
	}
	build->result.packages = packages;
	finish(build);
}

static void on_started(void *context, uint64_t birth_ns, int door_fd)
{
	struct nc_build *build = context;
	struct nacre_err err = {0};

	(void)birth_ns;
	/* without the door the installer finds nobody, and says so */
	if (door_fd >= 0 && nc_access_open(build->reach, build->exec.id, door_fd, &err) < 0)
		(void)nc_command_cancel(build->command);
}

static void on_ended(void *context, const struct nc_box_end *end, uint64_t output_bytes,
	const struct nacre_err *failure)
{
	struct nc_build *build = context;
	bool good = !failure && nc_streq(nc_outcome_status(end), "success");

	(void)output_bytes;
	build->command = NULL;
	if (build->cancelled) {
		nc_err_set(&build->result.err, -ECANCELED, "It was cancelled");
		fail(build, "cancelled");
	} else if (failure && end->fail == NC_FAIL_PROGRAM) {
		nc_err_set(&build->result.err, -ENOENT, "%s cannot be run in this image: %s",
			build->installer->interpreter, nc_runtimes[build->spec.language]->fix);
		fail(build, "error");
	} else if (failure) {
		nc_err_set(&build->result.err, failure->code, "The box could not be made: %s",
			failure->message);
		fail(build, "internal_error");
	} else if (!good) {
		fail_for_end(build, end);
	} else if (read_answer(build) < 0) {
		nc_err_set(&build->result.err, -EBADMSG,
			"packages: the installer's box gave no report that can be read");
		fail(build, "error");
	} else if (build->step == STEP_PROBE) {
		take_probe(build);
	} else {
		build->lock = make_lock(build);
		if (build->lock) {
			finish(build);
			return;
		}
		nc_err_errno(&build->result.err, -ENOMEM, "Keep the environment");
		fail(build, "internal_error");
	}
}

/* Proxies and certificates for whoever goes through the door, and where to go. */
static void add_index_words(const struct nc_build *build, struct nc_buf *words)
{
	static const char certificates[] = "/etc/ssl/certs/ca-certificates.crt";
	const struct nc_value *index =
		&build->spec.environments->source[build->spec.language].config->index;

	nc_buf_adds(words, "NACRE_INDEX=");
	for (size_t i = 0; i < index->n_list; i++)
		nc_buf_addf(words, "%s%s", i > 0 ? " " : "", index->list[i]);
	nc_buf_addf(words, "%cPIP_CERT=%s%cNODE_EXTRA_CA_CERTS=%s%c", '\0', certificates, '\0',
		certificates, '\0');
	for (const char *const *proxy = nc_egress_variables(); *proxy; proxy++)
		nc_buf_add(words, *proxy, strlen(*proxy) + 1);
}

static void fill_env(struct nc_build *build)
{
	nc_buf_cleanup struct nc_buf words = NC_BUF(64U * 1024);
	const char *list[64] = {NULL}, *word;
	size_t n = 0, ignored;

	if (build->reach && build->step == STEP_INSTALL)
		add_index_words(build, &words);
	else if (build->spec.n_packages == 0) /* as its compiler has it, or it warms in vain */
		(void)nc_runtime_argv(nc_runtimes[build->spec.language]->compile.env, "",
			"/tmp/warm", NULL, 0, &words, &ignored);
	for (word = nc_buf_text(&words);
		word < nc_buf_text(&words) + words.size && n + 1 < sizeof(list) / sizeof(list[0]);
		word += strlen(word) + 1)
		list[n++] = word;
	nc_env_fill(&build->env,
		&(struct nc_env_place){
			.workspace = NC_BOX_WORKSPACE, .temporary = NC_BOX_TEMPORARY},
		list);
}

static void fill_words(struct nc_build *build, const char *program)
{
	nc_buf_done(&build->argv.buf);
	nc_buf_done(&build->env.buf);
	build->argv = build->env = (struct nc_word_list)NC_WORD_LIST;
	for (const char *const *word = build->installer->words; *word; word++)
		nc_word_add(&build->argv, *word);
	nc_word_add(&build->argv, program);
	for (size_t i = 0; i < build->spec.n_packages; i++)
		nc_word_add(&build->argv, build->spec.packages[i]);
	fill_env(build);
}

/* Orders a box that runs the program; on_ended() follows if this is 0. */
static int order_box(struct nc_build *build, const char *program,
	const struct nc_box_limits *limits, uint64_t disk_bytes, struct nacre_err *err)
{
	struct nc_command_spec spec = {.image_fd = -EBADF,
		.input_fd = -EBADF,
		.output_max = UINT64_MAX,
		.context = build,
		.started = on_started,
		.printed = on_printed,
		.ended = on_ended};
	struct nc_wish wish = {.names = NULL};
	struct nc_exec_spec *exec = &build->exec;
	int source_fd = build->spec.environments->source[build->spec.language].fd;
	int r;

	*exec = (struct nc_exec_spec){.id = nc_hub_box_id(build->spec.hub, NC_TIER_CONTAINER),
		.limits = *limits,
		.tier = NC_TIER_CONTAINER};
	exec->limits.disk_bytes = disk_bytes;
	exec->limits.inodes = disk_bytes / 4096 + 1024;
	exec->limits.memory_bytes += disk_bytes;
	memcpy(wish.floor, nc_strength_floor, sizeof(wish.floor));
	r = nc_settle(build->spec.holder, &wish, exec, err);
	if (r < 0)
		return r;
	if (build->step == STEP_INSTALL) {
		exec->n_layers = source_fd >= 0 ? 2 : 1;
		exec->layer_writable[0] = true;
		spec.layer_fd[0] = build->layer_fd;
		spec.layer_fd[1] = source_fd;
		exec->door = build->reach;
	}
	fill_words(build, program);
	if (build->argv.buf.error < 0 || build->env.buf.error < 0)
		return nc_err_errno(err, -ENOMEM, "Order a box");
	exec->argv = nc_word_view(&build->argv);
	exec->env = nc_word_view(&build->env);
	spec.exec = exec;
	nc_buf_done(&build->report);
	nc_buf_done(&build->said);
	build->report = (struct nc_buf)NC_BUF(REPORT_MAX);
	build->said = (struct nc_buf)NC_BUF(SAID_MAX);
	return nc_hub_start(build->spec.hub, &spec, &build->command, err);
}

static int open_stage(struct nc_build *build, struct nacre_err *err)
{
	int store_fd = build->spec.environments->store_fd;
	cleanup_close int root_fd = -EBADF;
	int r = nc_staging_open(store_fd, false, &build->stage, err);

	if (r < 0)
		return r;
	root_fd = nc_staging_root(&build->stage, false, err);
	if (root_fd < 0)
		return root_fd;
	/* to read: the spawner takes no mere path descriptor */
	if (mkdirat(root_fd, "layer", 0755) == 0)
		build->layer_fd =
			openat(root_fd, "layer", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return build->layer_fd < 0 ? nc_err_errno(err, -errno, "Make a layer") : 0;
}

/* The hosts of the index are the operator's choice, wherever they are. */
static int open_index(struct nc_build *build, struct nacre_err *err)
{
	const struct nc_packages_config *config =
		build->spec.environments->source[build->spec.language].config;
	const char *hosts[NC_EGRESS_RULES_MAX];
	size_t n = 0;

	if (!nc_environments_have_index(build->spec.environments, build->spec.language))
		return 0;
	build->hosts = calloc(config->index.n_list, sizeof(*build->hosts));
	if (!build->hosts)
		return nc_err_errno(err, -ENOMEM, "Reach the index");
	for (size_t i = 0; i < config->index.n_list && n < NC_EGRESS_RULES_MAX; i++) {
		if (nc_url_host(config->index.list[i], build->hosts[i]) == 0)
			hosts[n++] = build->hosts[i];
	}
	for (size_t i = 0; i < config->hosts.n_list && n < NC_EGRESS_RULES_MAX; i++)
		hosts[n++] = config->hosts.list[i];
	return nc_access_new_for(build->spec.network, hosts, n, &build->reach, err);
}

static void on_timer(uv_timer_t *timer)
{
	look(timer->data);
}

static void look_later(struct nc_build *build, unsigned int ms)
{
	build->step = STEP_LOOK;
	(void)uv_timer_start(build->timer, on_timer, ms, 0); /* fails for a NULL callback only */
}

/* Who has the lock installs; others look whether he is done. */
static void install(struct nc_build *build)
{
	const struct nc_environments *all = build->spec.environments;
	struct nacre_err *err = &build->result.err;
	int r;

	if (build->installer->source_key &&
		!nc_environments_have_source(all, build->spec.language)) {
		nc_err_set(err, -ENOENT,
			"packages: not all of them are in the image, and there is no place to "
			"install them from: set %s in nacre.yaml to a %s, or %s to an index",
			build->installer->source_key, build->installer->source_noun,
			build->installer->index_key);
		fail(build, "blocked");
		return;
	}
	r = build->lock_fd = nc_environment_lock(all, build->key);
	if (r == -EAGAIN && nc_clock_ns() < build->deadline_ns) {
		look_later(build, LOOK_MS);
		return;
	}
	/* he may have been done with it before we got the lock */
	if (r >= 0 && nc_environment_open(all, build->key, &build->result.environment) == 0) {
		use(build, false);
		return;
	}
	if (r < 0) {
		nc_err_errno(err, r,
			r == -EAGAIN ? "packages: another has been installing them for too long"
				     : "Lock the environment");
	} else {
		build->step = STEP_INSTALL;
		report_progress(build, build->spec.n_packages > 0 ? "installing" : "filling");
		r = open_stage(build, err);
		if (r == 0)
			r = open_index(build, err);
	}
	if (r >= 0)
		r = order_box(build, build->installer->install, &install_limits,
			2 * nc_environments_each(all) + INSTALL_EXTRA, err);
	if (r < 0)
		fail(build, r == -EAGAIN ? "timeout" : "internal_error");
}

static void look(struct nc_build *build)
{
	const struct nc_environments *all = build->spec.environments;
	bool again = build->deadline_ns > 0;
	int r;

	if (build->cancelled) {
		nc_err_set(&build->result.err, -ECANCELED, "It was cancelled");
		fail(build, "cancelled");
		return;
	}
	if (nc_environment_open(all, build->shared_key, &build->result.environment) == 0) {
		use(build, false);
		return;
	}
	r = nc_environment_open(all, build->key, &build->result.environment);
	if (r == 0) {
		use(build, false);
		return;
	}
	build->broken = r != -ENOENT;
	build->deadline_ns =
		again ? build->deadline_ns
		      : nc_clock_ns() + install_limits.wall_ms * NC_NS_PER_MS + NC_NS_PER_S;
	if (again || !build->installer->probe) {
		install(build);
		return;
	}
	build->step = STEP_PROBE;
	r = order_box(
		build, build->installer->probe, &probe_limits, PROBE_DISK, &build->result.err);
	if (r < 0)
		fail(build, "internal_error");
}

int nc_build_start(const struct nc_build_spec *spec, struct nc_build **ret_build)
{
	struct nc_build *build = calloc(1, sizeof(*build));
	uv_timer_t *timer = calloc(1, sizeof(*timer));

	if (!build || !timer) {
		free(build);
		free(timer);
		return -ENOMEM;
	}
	*build = (struct nc_build){.spec = *spec,
		.installer = spec->n_packages > 0 ? nc_installer_of(spec->language)
						  : nc_warmer_of(spec->language),
		.timer = timer,
		.stage = {.dir_fd = -EBADF},
		.layer_fd = -EBADF,
		.lock_fd = -EBADF};
	nc_environment_init(&build->result.environment);
	nc_environment_key(spec->environments, spec->tenant, spec->language, spec->packages,
		spec->n_packages, build->key);
	nc_environment_key(spec->environments, "", spec->language, spec->packages, spec->n_packages,
		build->shared_key);
	timer->data = build;
	(void)uv_timer_init(spec->loop, timer); /* cannot fail */
	look_later(build, 0);
	*ret_build = build;
	return 0;
}

void nc_build_drop(struct nc_build *build)
{
	if (!build)
		return;
	assert(!build->command);
	build_free(build);
}

void nc_build_cancel(struct nc_build *build)
{
	build->cancelled = true;
	if (build->command)
		(void)nc_command_cancel(build->command);
	else if (!build->at_work)
		look_later(build, 0);
}
