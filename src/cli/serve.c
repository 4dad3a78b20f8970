/*
 * nacre serve: the daemon.
 *
 * All that needs rights is opened before the spawner is split off, and what is left then answers
 * clients with no right but to those descriptors. When that dies the spawner starts it again, with
 * the same descriptors as heirs; it reads its configuration anew, meets those who work beside it
 * (server/keeper.h), and goes on with the sandboxes that it finds in the ledger.
 */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/state.h"
#include "base/text.h"
#include "box/image.h"
#include "box/store.h"
#include "cli/cli.h"
#include "cli/heirs.h"
#include "cli/outlet.h"
#include "cli/respawn.h"
#include "cli/serve_aides.h"
#include "cli/service_manager.h"
#include "cli/start.h"
#include "cli/upgrade.h"
#include "engine/binds.h"
#include "engine/ledger.h"
#include "engine/sandbox.h"
#include "kernel/fence.h"
#include "kernel/filter.h"
#include "kernel/privilege.h"
#include "server/certificate.h"
#include "server/listen.h"
#include "server/server.h"
#include "server/tally.h"
#include "server/tls.h"
#include "tier/launch.h"

#define LISTEN_BUILT_IN "127.0.0.1:7070"
#define LISTENERS_MAX 8
#define SANDBOXES_MAX 2000
/* For an address that is in use. */
#define LISTEN_WAIT_NS (10 * NC_NS_PER_S)
#define LISTEN_PAUSE_NS (50 * 1000 * 1000)
/* For the spawner, above the most that draining may take. */
#define PATIENCE_S 4000
#define HEAD_MS 10000
#define GREETING_MS 2000
#define BODY_MS 60000
#define IDLE_MS 60000
/* What the next worker is told of the configuration. */
#define FOUND_VARIABLE "NACRE_FOUND"
/* The process that the service manager knows. */
#define MAIN_VARIABLE "NACRE_MAIN"
#define BINDS_VARIABLE "NACRE_SERVE_BINDS"
#define BINDS_TEXT_MAX (NC_BOX_BINDS_MAX * (NC_BOX_DIR_MAX + NC_REQUEST_NAME_MAX + 8U))

static struct nc_start_args args;
static struct nc_words arg_listen;
static const char *arg_state, *arg_certificate, *arg_key;
static bool arg_insecure, arg_no_respawn, arg_no_warm, arg_speaks;

static const struct nc_option options[] = {
	NC_OPTION_ALL_CPUS(args),
	{.name = "insecure",
		.help = "Listen for other machines without keys or without TLS",
		.flag = &arg_insecure},
	{.name = "listen",
		.value = "ADDRESS",
		.help = "Where to listen; built in: " LISTEN_BUILT_IN "; repeatable",
		.words = &arg_listen},
	NC_OPTION_MAX_QUEUED(args),
	NC_OPTION_MAX_RUNNING(args),
	NC_OPTION_ALL_MEMORY(args),
	NC_OPTION_NO_CACHE(args),
	{.name = "no-respawn",
		.help = "End when the spawner is killed, instead of beginning anew",
		.flag = &arg_no_respawn},
	{.name = "no-warm",
		.help = "Keep neither interpreters nor boxes ready; see also serve.yaml",
		.flag = &arg_no_warm},
	{.name = "speaks",
		.help = "Print which versions of messages this executable speaks, and end",
		.flag = &arg_speaks},
	{.name = "state",
		.value = "DIR",
		.help = "Where everything is kept, instead of NACRE_STATE",
		.text = &arg_state},
	{.name = "tls-cert",
		.value = "FILE",
		.help = "Certificate chain, in PEM",
		.text = &arg_certificate},
	{.name = "tls-key", .value = "FILE", .help = "Its key, in PEM", .text = &arg_key},
	{0},
};

/* What was opened with the caller's rights. */
struct opened {
	int listen_fd[LISTENERS_MAX];
	size_t n_listen_fds;
	bool all_local;
	int serve_fd, state_fd, image_store_fd, snapshots_fd, registry_fd, tally_fd;
	int config_fd;			 /* or -EBADF: there is no configuration */
	int guard_fd;			 /* of our parent, if that is ours too; or -EBADF */
	struct nc_upgrade upgrade;	 /* the same: with that; else next[1] alone, or nothing */
	struct nc_keeper keeper;	 /* where each worker meets those beside it */
	int memory_fd, inbox_fd, tls_fd; /* for the next worker: the ledger, certificate and key */
	struct nc_tls *tls;
	struct nc_manager manager;
	struct nc_binds binds;
	int bind_fd[NC_BOX_BINDS_MAX]; /* those of binds, until the spawner has them */
};

static void say(const char *text)
{
	nc_log(NC_LOG_WARNING, text);
}

static int choose_state(struct nacre_err *err)
{
	cleanup_free char *path = NULL;

	if (!arg_state)
		return 0;
	if (arg_state[0] != '/' && asprintf(&path, "%s/%s", getenv("PWD") ?: ".", arg_state) < 0) {
		path = NULL;
		return nc_err_set(err, -ENOMEM, "Out of memory");
	}
	return setenv("NACRE_STATE", path ? path : arg_state, 1) < 0
		       ? nc_err_errno(err, -errno, "Set NACRE_STATE")
		       : 0;
}

/*
 * The address may be that of a daemon which was killed: its sockets stay for as long as it takes
 * those that it leaves behind to end.
 */
static int listen_on(const char *address, bool *ret_local, struct nacre_err *err)
{
	const struct timespec pause = {.tv_nsec = LISTEN_PAUSE_NS};
	uint64_t until = nc_clock_ns() + LISTEN_WAIT_NS;
	bool said = false;
	int r;

	while ((r = nc_listen_open(address, ret_local, err)) == -EADDRINUSE &&
		nc_clock_ns() < until) {
		if (!said)
			say("The address is in use: waiting for whoever has it to end");
		said = true;
		(void)nanosleep(&pause, NULL);
	}
	return r;
}

static int open_listeners(struct opened *opened, struct nacre_err *err)
{
	bool local;
	int r;

	opened->all_local = true;
	r = nc_manager_sockets(&opened->manager, opened->listen_fd, LISTENERS_MAX, err);
	if (r < 0)
		return r;
	opened->n_listen_fds = (size_t)r;
	for (size_t i = 0; i < opened->n_listen_fds; i++)
		opened->all_local = opened->all_local && nc_listen_is_local(opened->listen_fd[i]);
	if (opened->n_listen_fds == 0 && arg_listen.count == 0)
		arg_listen.words[arg_listen.count++] = LISTEN_BUILT_IN;
	for (size_t i = 0; i < arg_listen.count; i++) {
		if (opened->n_listen_fds == LISTENERS_MAX)
			return nc_err_set(err, -EINVAL, "At most %d sockets listen", LISTENERS_MAX);
		r = listen_on(arg_listen.words[i], &local, err);
		if (r < 0)
			return r;
		opened->listen_fd[opened->n_listen_fds++] = r;
		opened->all_local = opened->all_local && local;
	}
	return 0;
}

/*
 * Which sandboxes there are: one daemon's alone, since it takes those that it does not know for
 * lost. All that descend from us share the lock.
 */
static int open_registry(struct opened *opened, struct nacre_err *err)
{
	const struct timespec pause = {.tv_nsec = LISTEN_PAUSE_NS};
	const uint64_t until = nc_clock_ns() + LISTEN_WAIT_NS;
	bool ranges;
	int r = nc_privilege_ranges(&ranges, err);

	if (r == 0)
		r = opened->registry_fd = nc_store_open("sandboxes", true, ranges, err);
	if (r < 0)
		return r;
	while (flock(opened->registry_fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK)
			return nc_err_errno(err, -errno, "Lock the records of sandboxes");
		if (nc_clock_ns() >= until)
			return nc_err_set(err, -EBUSY,
				"Another daemon has this state directory: name one for this with "
				"--state");
		(void)nanosleep(&pause, NULL); /* one that was killed takes a moment to end */
	}
	return 0;
}

/* Certificate and key as they are now, for whoever cannot read the files any more. */
static int copy_tls(struct nacre_err *err)
{
	cleanup_close int certificate_fd = open(arg_certificate, O_RDONLY | O_CLOEXEC);
	cleanup_close int key_fd = open(arg_key, O_RDONLY | O_CLOEXEC);
	int r = certificate_fd < 0 || key_fd < 0 ? -errno
						 : nc_certificate_copy(certificate_fd, key_fd);

	return r < 0 ? nc_err_errno(err, r, "Copy the certificate and its key") : r;
}

static int open_tls(struct opened *opened, struct nacre_err *err)
{
	int r;

	if (!arg_certificate)
		return 0;
	r = nc_tls_load(arg_certificate, arg_key, &opened->tls, err);
	if (r == 0)
		r = opened->tls_fd = copy_tls(err);
	return r < 0 ? r : 0;
}

/* Whoever can be reached by others has keys and TLS, or it was said twice that he has not. */
static int check_exposure(const struct opened *opened, struct nacre_err *err)
{
	cleanup_keys struct nc_keys keys = {0};
	int r = nc_keys_read(opened->serve_fd, &keys, err);

	if (r < 0 || opened->all_local || arg_insecure)
		return r;
	if (keys.count == 0)
		return nc_err_set(err, -EPERM,
			"Other machines could ask without a key: make one with nacre key create, "
			"or say --insecure too");
	if (!opened->tls)
		return nc_err_set(err, -EPERM,
			"Keys would go over the network in clear: name --tls-cert and --tls-key, "
			"or say --insecure too");
	return 0;
}

static int open_all(struct opened *opened, struct nc_start *start, const struct nc_config *config,
	struct nacre_err *err)
{
	const struct nc_certificate_paths tls = {arg_certificate, arg_key};
	struct nacre_err ignored = {0};
	int r = opened->serve_fd = nc_keys_dir(NULL, true, err);

	if (r >= 0)
		r = opened->state_fd = nc_state_open(NULL, false, err);
	if (r >= 0) {
		r = opened->tally_fd = nc_tally_open(opened->serve_fd);
		if (r < 0)
			(void)nc_err_errno(err, r, "Open serve/tally in the state directory");
	}
	if (r >= 0 && config->dir)
		opened->config_fd = open(config->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (r >= 0 && !arg_certificate != !arg_key)
		r = nc_err_set(err, -EINVAL, "--tls-cert and --tls-key come together");
	/* it forks, so before any secret */
	if (r >= 0)
		r = nc_serve_aides_start(config, arg_certificate ? &tls : NULL, opened->serve_fd,
			opened->guard_fd, start->ranges, say, &opened->keeper,
			&start->setup.witness_fd, err);
	if (r < 0)
		return r;
	r = nc_binds_open(&config->serve, &opened->binds, opened->bind_fd, err);
	if (r < 0)
		return r;
	start->setup.binds = opened->bind_fd;
	start->setup.n_binds = opened->binds.count;
	opened->image_store_fd = nc_image_store_open(false, start->ranges, &ignored);
	opened->snapshots_fd = nc_store_open("snapshots", true, start->ranges, err);
	if (opened->snapshots_fd < 0)
		return opened->snapshots_fd;
	r = nc_manager_open(&opened->manager, err);
	if (r == 0)
		r = open_tls(opened, err);
	if (r == 0 && nc_ledger_make(&opened->memory_fd, &opened->inbox_fd) < 0)
		say("No memory for a ledger: sandboxes will not outlive a daemon that dies");
	return r < 0 ? r : check_exposure(opened, err);
}

/* ---- from worker to worker ---- */

/* The next one has all that this one has, but for what it reads or makes itself. */
static void bequeath(const struct opened *opened, struct nc_heirs *heirs)
{
	nc_heirs_add(heirs, "memory", opened->memory_fd);
	nc_heirs_add(heirs, "inbox", opened->inbox_fd);
	nc_heirs_add(heirs, "serve", opened->serve_fd);
	nc_heirs_add(heirs, "state", opened->state_fd);
	nc_heirs_add(heirs, "tally", opened->tally_fd);
	nc_heirs_add(heirs, "images", opened->image_store_fd);
	nc_heirs_add(heirs, "snapshots", opened->snapshots_fd);
	nc_heirs_add(heirs, "sandboxes", opened->registry_fd);
	nc_heirs_add(heirs, "config", opened->config_fd);
	for (size_t i = 0; i < NC_AIDE_MAX; i++)
		if (opened->keeper.place_fd[i] >= 0)
			nc_heirs_add(
				heirs, nc_aide_name((enum nc_aide)i), opened->keeper.place_fd[i]);
	nc_heirs_add(heirs, "keeper", opened->keeper.page_fd);
	nc_heirs_add(heirs, "life", opened->keeper.life_fd);
	nc_heirs_add(heirs, "manager", opened->manager.fd);
	nc_heirs_add(heirs, "tls", opened->tls_fd);
	nc_upgrade_bequeath(&opened->upgrade, heirs);
	for (size_t i = 0; i < opened->n_listen_fds; i++)
		nc_heirs_add(heirs, "listen", opened->listen_fd[i]);
}

/* The command that starts it again: what it listens on and where its state is, it inherits. */
static char *const *again(bool has_config)
{
	static char *words[16];
	static char name[] = "nacre", config[] = "--config", here[] = ".", verb[] = "serve",
		    insecure[] = "--insecure", no_cache[] = "--no-cache", no_warm[] = "--no-warm",
		    running[] = "--max-running", queued[] = "--max-queued", memory[] = "--memory",
		    cpus[] = "--cpus";
	const struct {
		char *option;
		const char *value;
	} values[] = {{running, args.running}, {queued, args.queued}, {memory, args.memory},
		{cpus, args.cpus}};
	size_t n = 0;

	words[n++] = name;
	if (has_config) {
		words[n++] = config;
		words[n++] = here;
	}
	words[n++] = verb;
	if (arg_insecure)
		words[n++] = insecure;
	if (args.no_cache)
		words[n++] = no_cache;
	if (arg_no_warm)
		words[n++] = no_warm;
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		if (!values[i].value)
			continue;
		words[n++] = values[i].option;
		words[n++] = (char *)(uintptr_t)values[i].value;
	}
	return words;
}

/* Which files of the configuration there are, one digit each. */
static void list_found(const struct nc_config *config, char out[static NC_CONFIG_FILE_COUNT + 1])
{
	for (size_t i = 0; i < NC_CONFIG_FILE_COUNT; i++)
		out[i] = config->found[i] ? '1' : '0';
	out[NC_CONFIG_FILE_COUNT] = '\0';
}

/*
 * A directory that was moved away under us looks like one without rules: whoever is started again
 * does not go on without files that the first one had.
 */
static int check_found(const struct nc_config *config, struct nacre_err *err)
{
	const char *before = getenv(FOUND_VARIABLE);
	char now[NC_CONFIG_FILE_COUNT + 1];

	list_found(config, now);
	for (size_t i = 0; before && before[i] && i < NC_CONFIG_FILE_COUNT; i++)
		if (before[i] == '1' && now[i] != '1')
			return nc_err_set(err, -ENOENT,
				"%s has gone from the configuration: start the daemon anew",
				nc_config_file_names[i]);
	return 0;
}

/* Takes up what the worker before has left. */
static int take_up(struct opened *opened, struct nc_heirs *heirs, struct nacre_err *err)
{
	char path[32];
	int fd;

	opened->memory_fd = nc_heirs_take(heirs, "memory");
	opened->inbox_fd = nc_heirs_take(heirs, "inbox");
	opened->serve_fd = nc_heirs_take(heirs, "serve");
	opened->state_fd = nc_heirs_take(heirs, "state");
	opened->tally_fd = nc_heirs_take(heirs, "tally");
	opened->image_store_fd = nc_heirs_take(heirs, "images");
	opened->snapshots_fd = nc_heirs_take(heirs, "snapshots");
	opened->registry_fd = nc_heirs_take(heirs, "sandboxes");
	opened->config_fd = nc_heirs_take(heirs, "config");
	opened->manager.fd = nc_heirs_take(heirs, "manager");
	opened->upgrade.next[1] = nc_heirs_take(heirs, "next");
	while ((fd = nc_heirs_take(heirs, "listen")) >= 0 && opened->n_listen_fds < LISTENERS_MAX)
		opened->listen_fd[opened->n_listen_fds++] = fd;
	for (size_t i = 0; i < NC_AIDE_MAX; i++)
		opened->keeper.place_fd[i] =
			i < NC_AIDE_HOLDER || nc_tier_program((unsigned int)i - NC_AIDE_HOLDER + 1)
				? nc_heirs_take(heirs, nc_aide_name((enum nc_aide)i))
				: -EBADF;
	opened->keeper.page_fd = nc_heirs_take(heirs, "keeper");
	opened->keeper.life_fd = nc_heirs_take(heirs, "life");
	opened->tls_fd = nc_heirs_take(heirs, "tls");
	if (opened->tls_fd < 0)
		return 0;
	fd = nc_certificate_recall(opened->keeper.place_fd[NC_AIDE_CERTIFIER]);
	if (fd >= 0) { /* read again since the start */
		(void)nc_fd_close(opened->tls_fd);
		opened->tls_fd = fd;
	}
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", opened->tls_fd);
	return nc_tls_load(path, path, &opened->tls, err);
}

/* ---- the unprivileged half ---- */

struct daemon {
	uv_loop_t loop;
	uv_signal_t signals[3];
	struct nc_server *server;
	const struct nc_manager *manager;
	struct nc_upgrade_watch upgrade;
};

static void reload(struct daemon *daemon)
{
	struct nacre_err err = {0};

	nc_manager_tell(daemon->manager, "RELOADING=1");
	if (nc_server_reload(daemon->server, &err) < 0)
		nc_log(NC_LOG_ERROR, "The configuration is bad, keeping the old one",
			NC_LOG_TEXT("reason", err.message));
	else
		nc_log(NC_LOG_INFO, "The configuration was read again");
	if (daemon->server->certificates)
		nc_certificates_renew(daemon->server->certificates);
	nc_manager_tell(daemon->manager, "READY=1");
}

static void on_signal(uv_signal_t *handle, int number)
{
	struct daemon *daemon = handle->data;

	if (number == SIGHUP) {
		reload(daemon);
	} else if (daemon->server->drains) { /* the second time: at once */
		nc_sandboxes_end(daemon->server->sandboxes, true);
		uv_stop(&daemon->loop);
	} else {
		nc_manager_tell(daemon->manager, "STOPPING=1");
		nc_server_drain(daemon->server);
	}
}

static void on_stopped(void *context)
{
	struct daemon *daemon = context;

	uv_stop(&daemon->loop);
}

static void on_leave(void *context)
{
	struct daemon *daemon = context;

	nc_server_leave(daemon->server);
}

static void on_stays(void *context)
{
	struct daemon *daemon = context;

	nc_upgrade_stay(&daemon->upgrade, "Executions have run for longer than drain_seconds");
}

/*
 * The spawner begins the next worker, which goes on where we are: nothing is to be taken down, and
 * to let a command go would end its input.
 */
_Noreturn static void leave(struct daemon *daemon)
{
	nc_sandboxes_leave(daemon->server->sandboxes);
	_exit(NC_EXIT_SELF);
}

static void watch_signals(struct daemon *daemon)
{
	static const int numbers[] = {SIGHUP, SIGINT, SIGTERM};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		(void)uv_signal_init(&daemon->loop, &daemon->signals[i]);
		daemon->signals[i].data = daemon;
		(void)uv_signal_start(&daemon->signals[i], on_signal, numbers[i]);
		uv_unref((uv_handle_t *)&daemon->signals[i]);
	}
	(void)signal(SIGPIPE, SIG_IGN);
}

static void announce(const struct opened *opened)
{
	for (size_t i = 0; i < opened->n_listen_fds; i++) {
		char name[NC_LISTEN_NAME_SIZE];

		nc_listen_name(opened->listen_fd[i], name);
		nc_log(NC_LOG_INFO, "Listening", NC_LOG_TEXT("address", name),
			NC_LOG_TEXT("scheme", opened->tls ? "https" : "http"),
			NC_LOG_INT("pid", getpid()));
	}
}

static int serve(struct daemon *daemon, struct nc_start *start, const struct opened *opened,
	const struct nc_config *config, struct nc_engine_setup *setup, struct nacre_err *err)
{
	struct nc_server_setup server = {.loop = &daemon->loop,
		.config = config,
		.policies = start->policies,
		.config_dir = opened->config_fd >= 0 ? "." : NULL,
		.environments = setup->environments,
		.image_store_fd = opened->image_store_fd,
		.state_fd = opened->state_fd,
		.spool_fd = start->cache_fd,
		.statm_fd = daemon->manager->statm_fd,
		.serve_fd = opened->serve_fd,
		.tally_fd = opened->tally_fd,
		.snapshots_fd = opened->snapshots_fd,
		.archive_fd = nc_serve_aides_call(&opened->keeper, NC_AIDE_ARCHIVE),
		.courier_fd = nc_serve_aides_call(&opened->keeper, NC_AIDE_COURIER),
		.exporter_fd = nc_serve_aides_call(&opened->keeper, NC_AIDE_EXPORTER),
		.certifier_fd = nc_serve_aides_call(&opened->keeper, NC_AIDE_CERTIFIER),
		.keeper = opened->keeper,
		.listen_fds = opened->listen_fd,
		.n_listen_fds = opened->n_listen_fds,
		.tls = opened->tls,
		.max_running = start->running,
		.max_queued = start->queued,
		.memory_bytes = start->memory_bytes,
		.insecure = arg_insecure,
		.head_ms = HEAD_MS,
		.body_ms = BODY_MS,
		.idle_ms = IDLE_MS,
		.context = daemon,
		.stopped = on_stopped,
		.stays = on_stays};
	struct nc_sandboxes_setup sandboxes = {.image_store_fd = opened->image_store_fd,
		.max = SANDBOXES_MAX,
		.max_each = SANDBOXES_MAX,
		.memory_fd = opened->memory_fd,
		.inbox_fd = opened->inbox_fd,
		.registry_fd = opened->registry_fd};
	struct nc_engine *engine = NULL;
	int r = nc_engine_new(setup, &engine);

	if (r < 0)
		return nc_err_errno(err, r, "Begin the engine");
	server.engine = engine;
	sandboxes.engine = engine;
	r = nc_sandboxes_new(&sandboxes, &server.sandboxes);
	r = r < 0 ? nc_err_errno(err, r, "Begin the sandboxes")
		  : nc_server_new(&server, &daemon->server, err);
	if (r == 0 && nc_sandboxes_count(server.sandboxes) > 0)
		nc_log(NC_LOG_INFO, "Sandboxes of the daemon before go on",
			NC_LOG_INT("sandboxes", (int64_t)nc_sandboxes_count(server.sandboxes)));
	if (r == 0) {
		watch_signals(daemon);
		announce(opened);
		nc_manager_ready(daemon->manager);
		nc_upgrade_up(&daemon->upgrade);
		nc_upgrade_watch(&daemon->upgrade, &daemon->loop);
		(void)uv_run(&daemon->loop, UV_RUN_DEFAULT);
		if (daemon->server->leaves)
			leave(daemon);
	}
	nc_engine_stop(engine);
	nc_sandboxes_free(server.sandboxes);
	nc_engine_free(engine);
	nc_start_end_network(start);
	nc_server_free(daemon->server);
	for (int i = 0; i < 4; i++) /* closes what is closing */
		(void)uv_run(&daemon->loop, UV_RUN_NOWAIT);
	return r;
}

static void nothing(uv_work_t *work)
{
	(void)work;
}

/* A program of this size, and what is made of it, is mapped by itself. */
#define MAPPED_MIN (256 * 1024)
_Static_assert(MAPPED_MIN <= NC_MAPPED_MIN, "what is moved without a copy is mapped by itself");

/*
 * What is large goes back to the system when it is freed. By default free() raises both thresholds
 * up to 64 MiB, and each thread has an arena of its own: what one large request took stays for
 * long.
 */
static void give_large_back(void)
{
	(void)mallopt(M_ARENA_MAX, 2); /* the loop's, and one for all threads */
	(void)mallopt(M_MMAP_THRESHOLD, MAPPED_MIN);
	(void)mallopt(M_TRIM_THRESHOLD, 4 * 1024 * 1024);
}

/*
 * The threads that wait for disks and read and write what is large: begun while there can be more,
 * behind the fence, which they could not be put behind later. libuv starts all of them at once.
 */
static int start_threads(uv_loop_t *loop)
{
	static uv_work_t first;
	int r = setenv("UV_THREADPOOL_SIZE", "3", 1) < 0
			? -errno
			: uv_queue_work(loop, &first, nothing, NULL);

	if (r == 0)
		(void)uv_run(loop, UV_RUN_DEFAULT);
	return r;
}

/* Those beside the spawner; who hangs is waited for no longer than this. */
static void join_holders(struct nc_start *start, const struct opened *opened)
{
	static struct nc_holder_set holders;

	for (size_t i = 0; i < NC_TIER_HOLDERS_MAX; i++)
		holders.fd[i] =
			nc_serve_aides_call(&opened->keeper, (enum nc_aide)(NC_AIDE_HOLDER + i));
	nc_holders_join(&start->holder, &holders, GREETING_MS);
}

static int run_as_worker(struct nc_start *start, struct opened *opened,
	const struct nc_config *config, struct nacre_err *err)
{
	static struct daemon daemon;
	const int stores[] = {start->cache_fd, start->environments.store_fd, opened->snapshots_fd,
		opened->registry_fd};
	const int readable[] = {opened->config_fd, opened->serve_fd, opened->image_store_fd};
	struct nc_engine_setup setup;
	int abi, r;

	give_large_back();
	/* who has died comes back, and finds us waiting */
	start->record_fd = nc_serve_aides_call(&opened->keeper, NC_AIDE_RECORDER);
	start->egress_fd = nc_serve_aides_call(&opened->keeper, NC_AIDE_EGRESS);
	nc_start_recording(start);
	nc_outlet_read_trusted();
	setup = nc_start_engine(start, config);
	/* the spawner's death is ours, but not before those who wait were told */
	(void)prctl(PR_SET_PDEATHSIG, 0);
	/* the way there may be closed to who we are now */
	if (opened->config_fd >= 0 && fchdir(opened->config_fd) < 0)
		nc_log(NC_LOG_WARNING, "The configuration cannot be read again",
			NC_LOG_TEXT("reason", nc_errno_text(errno)));
	opened->manager.statm_fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	daemon.manager = &opened->manager;
	daemon.upgrade = (struct nc_upgrade_watch){
		.fd = opened->upgrade.next[1], .leave = on_leave, .context = &daemon};
	setup.loop = &daemon.loop;
	setup.threads = true;
	setup.warm = !arg_no_warm;
	setup.state_fd = opened->state_fd;
	setup.meminfo_fd = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
	abi = nc_fence_server(stores, sizeof(stores) / sizeof(stores[0]), readable,
		sizeof(readable) / sizeof(readable[0]));
	if (setup.environments)
		nc_environment_sweep(setup.environments);
	r = abi < 0 ? abi : uv_loop_init(&daemon.loop);
	if (r == 0)
		r = start_threads(&daemon.loop);
	if (r == 0)
		r = nc_filter_load(NC_FILTER_SERVER, NULL); /* for all threads */
	if (r < 0)
		return nc_err_errno(err, r, "Restrict ourselves");
	nc_start_network(start, &daemon.loop);
	setup.network = start->network;
	setup.binds = &opened->binds;
	r = nc_holder_connect(&start->holder, err);
	if (r == 0)
		join_holders(start, opened);
	return r < 0 ? r : serve(&daemon, start, opened, config, &setup, err);
}

/* Opens everything and becomes the first worker. */
static int begin(struct nc_start *start, struct opened *opened, const struct nc_config *config,
	struct nacre_err *err)
{
	struct nc_heirs heirs = {0};
	nc_buf_cleanup struct nc_buf binds = NC_BUF(BINDS_TEXT_MAX);
	char found[NC_CONFIG_FILE_COUNT + 1], pid[16];
	int r = nc_start_open(start, &args, config, err);

	if (r == 0)
		r = open_all(opened, start, config, err);
	if (r < 0)
		return r;
	bequeath(opened, &heirs);
	nc_start_bequeath(start, &heirs);
	r = nc_heirs_announce(&heirs, err);
	list_found(config, found);
	(void)snprintf(pid, sizeof(pid), "%d", (int)opened->manager.pid);
	nc_binds_write(&opened->binds, &binds);
	if (r == 0 && (setenv(FOUND_VARIABLE, found, 1) < 0 || setenv(MAIN_VARIABLE, pid, 1) < 0 ||
			      setenv(BINDS_VARIABLE, nc_buf_text(&binds), 1) < 0))
		r = nc_err_set(err, -ENOMEM, "Out of memory");
	/* the way there may be closed to the next, and the spawner is where it is begun */
	if (r == 0 && opened->config_fd >= 0 && fchdir(opened->config_fd) < 0)
		r = nc_err_errno(err, -errno, "Enter the configuration");
	if (arg_no_warm || config->serve.warm.number == NC_WARM_NOTHING)
		start->setup.ready = 0;
	start->setup.patience_s = PATIENCE_S;
	start->setup.heirs = heirs.fd;
	start->setup.n_heirs = heirs.count;
	start->setup.again = again(opened->config_fd >= 0);
	if (r == 0)
		r = nc_start_split(start, err);
	start->setup.heirs = NULL; /* they are ours */
	for (uint32_t i = 0; i < opened->binds.count; i++)
		opened->bind_fd[i] = nc_fd_close(opened->bind_fd[i]); /* the spawner has them */
	return r;
}

static int run(const struct nc_cli *cli, int n_words, char **words, struct nacre_err *err)
{
	cleanup_start struct nc_start start;
	struct nc_heirs heirs;
	struct opened opened = {.serve_fd = -EBADF,
		.state_fd = -EBADF,
		.tally_fd = -EBADF,
		.image_store_fd = -EBADF,
		.snapshots_fd = -EBADF,
		.registry_fd = -EBADF,
		.config_fd = -EBADF,
		.guard_fd = -EBADF,
		.memory_fd = -EBADF,
		.inbox_fd = -EBADF,
		.tls_fd = -EBADF,
		.upgrade = {.next = {-EBADF, -EBADF}, .now = {-EBADF, -EBADF}, .exe_fd = -EBADF},
		.manager = {.fd = -EBADF, .statm_fd = -EBADF}};
	int code, r;

	(void)n_words, (void)words;
	nc_start_init(&start, say);
	if (arg_speaks)
		return nc_upgrade_speak();
	start.kept = true;
	nc_server_log(cli->config);
	if (nc_heirs_find(&heirs)) {
		uint64_t pid = 0;

		(void)nc_parse_u64(getenv(MAIN_VARIABLE) ?: "", 1, INT32_MAX, &pid);
		opened.manager.pid = (pid_t)pid;
		/* in the order in which the spawner has them, whatever the file says by now */
		if (nc_binds_read(getenv(BINDS_VARIABLE) ?: "", &opened.binds) < 0)
			opened.binds = (struct nc_binds){0};
		if (nc_upgrade_is_new())
			nc_log(NC_LOG_INFO, "A new version of the daemon begins",
				NC_LOG_TEXT("version", NACRE_VERSION));
		else
			nc_log(NC_LOG_ERROR, "The daemon has died and is started again");
		r = check_found(cli->config, err);
		if (r == 0)
			r = nc_start_resume(&start, &args, cli->config, &heirs, err);
		if (r == 0)
			r = take_up(&opened, &heirs, err);
	} else {
		opened.manager.pid = getpid(); /* we become the spawner, or its parent */
		r = choose_state(err);
		if (r == 0)
			r = open_listeners(&opened, err);
		if (r == 0)
			r = open_registry(&opened, err);
		if (r == 0 && !arg_no_respawn)
			r = nc_upgrade_init(&opened.upgrade, err);
		if (r == 0 && !arg_no_respawn &&
			!nc_respawn(&opened.upgrade, &opened.guard_fd, &code))
			return code;
		nc_upgrade_leave_to_parent(&opened.upgrade);
		if (r == 0)
			r = begin(&start, &opened, cli->config, err);
	}
	if (r == 0)
		r = run_as_worker(&start, &opened, cli->config, err);
	nc_tls_free(opened.tls);
	/* NOLINTNEXTLINE(clang-analyzer-core.StackAddressEscape): we end with it */
	return r < 0 ? r : NC_EXIT_OK;
}

const struct nc_verb nc_verb_serve = {
	.name = "serve",
	.summary = "Execute for others over HTTP",
	.arguments = "",
	.details =
		"Answers on " LISTEN_BUILT_IN ", to this machine alone until there are keys; see\n"
		"/docs there. SIGTERM finishes what runs and ends; SIGHUP reads the configuration\n"
		"and the certificate again. What it is doing goes to standard error.",
	.example = "nacre serve --listen 127.0.0.1:8080",
	.options = options,
	.run = run,
};
