/* nacre engine: executions for another program, which holds the other end of a socket. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/limits.h"
#include "base/parse.h"
#include "base/text.h"
#include "box/store.h"
#include "cli/cli.h"
#include "cli/recording.h"
#include "engine/environment.h"
#include "engine/service.h"
#include "kernel/fence.h"
#include "kernel/filter.h"
#include "kernel/privilege.h"
#include "policy/book.h"
#include "watch/record.h"

/* Where whoever starts us has put our end. */
#define CLIENT_FD 3
/* Boxes prepared ahead of need; each is two sleeping processes. */
#define READY_MAX 8U
#define MB (1ULL << 20)

static bool arg_no_cache;
static const char *arg_running, *arg_queued, *arg_memory;

static const struct nc_option options[] = {
	{.name = "max-queued",
		.value = "N",
		.help = "Executions that wait; more are refused",
		.text = &arg_queued},
	{.name = "max-running",
		.value = "N",
		.help = "Executions that run at once",
		.text = &arg_running},
	{.name = "memory",
		.value = "SIZE",
		.help = "Memory that they may be allowed together",
		.text = &arg_memory},
	{.name = "no-cache", .help = "Keep no compiled programs", .flag = &arg_no_cache},
	{0},
};

struct bounds {
	uint64_t running, queued, memory_bytes;
};

static int wrong(const char *option, const char *text, const char *expected, struct nacre_err *err)
{
	char quoted[NC_TEXT_QUOTED_MAX];

	return nc_err_set(err, -EINVAL, "Option '--%s': found %s, expected %s", option,
		nc_text_quote(quoted, text), expected);
}

static int read_bounds(struct bounds *bounds, struct nacre_err *err)
{
	long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
	cpu_set_t cpus;

	bounds->running = 2;
	if (sched_getaffinity(0, sizeof(cpus), &cpus) == 0)
		bounds->running = 2 * (uint64_t)CPU_COUNT(&cpus);
	if (bounds->running > NC_SERVICE_RUNNING_MAX)
		bounds->running = NC_SERVICE_RUNNING_MAX;
	bounds->queued = 1024;
	bounds->memory_bytes = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page / 2 : 0;
	if (arg_running &&
		nc_parse_u64(arg_running, 1, NC_SERVICE_RUNNING_MAX, &bounds->running) < 0)
		return wrong("max-running", arg_running, "a whole number from 1 to 256", err);
	if (arg_queued && nc_parse_u64(arg_queued, 1, NC_SERVICE_QUEUED_MAX, &bounds->queued) < 0)
		return wrong("max-queued", arg_queued, "a whole number from 1 to 65536", err);
	if (arg_memory && (nc_parse_size(arg_memory, MB, &bounds->memory_bytes) < 0 ||
				  bounds->memory_bytes < MB))
		return wrong("memory", arg_memory, "a size such as 4GB", err);
	return 0;
}
_Static_assert(
	NC_SERVICE_RUNNING_MAX == 256 && NC_SERVICE_QUEUED_MAX == 65536, "the messages say so");

/* Our own descriptor, and nobody's below us. */
static int check_client(struct nacre_err *err)
{
	int type = 0, flags = fcntl(CLIENT_FD, F_GETFL);
	socklen_t size = sizeof(type);

	if (flags < 0 || getsockopt(CLIENT_FD, SOL_SOCKET, SO_TYPE, &type, &size) < 0 ||
		type != SOCK_STREAM)
		return nc_err_set(err, -EINVAL,
			"Descriptor 3 must be a stream socket: this verb is for libnacre and other "
			"programs (docs/library.md)");
	if (fcntl(CLIENT_FD, F_SETFD, FD_CLOEXEC) < 0 ||
		fcntl(CLIENT_FD, F_SETFL, flags | O_NONBLOCK) < 0)
		return nc_err_errno(err, -errno, "Prepare the socket");
	return 0;
}

/* Each execution has pipes; the soft limit is the caller's habit, the hard one what he may. */
static void raise_files(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &limit); /* fewer boxes at once, then */
	}
}

static void say(const char *text)
{
	fprintf(stderr, "nacre engine: %s\n", text);
}

static void on_ended(void *context)
{
	uv_stop(context);
}

/* Serves until the client hangs up. */
static int serve(uv_loop_t *loop, struct nc_engine *engine, const struct bounds *bounds)
{
	const struct nc_service_setup setup = {.loop = loop,
		.engine = engine,
		.fd = CLIENT_FD,
		.max_running = bounds->running,
		.max_queued = bounds->queued,
		.context = loop,
		.ended = on_ended};
	struct nc_service *service = NULL;
	int r = nc_service_new(&setup, &service);

	if (r == 0)
		(void)uv_run(loop, UV_RUN_DEFAULT);
	nc_engine_free(engine);
	nc_service_free(service);
	(void)uv_run(loop, UV_RUN_DEFAULT); /* closes what is closing */
	return r;
}

/* The unprivileged half. */
static int run_as_worker(struct nc_spawn *spawn, const struct nc_config *config,
	struct nc_book *policies, int cache_fd, const struct nc_environments *environments,
	struct nc_record *record, const struct bounds *bounds, struct nacre_err *err)
{
	static uv_loop_t loop;
	const int stores[] = {cache_fd, environments->store_fd};
	struct nc_engine_setup setup = {.loop = &loop,
		.spawn = spawn,
		.config = config,
		.policies = policies,
		.cache_fd = cache_fd,
		.environments = environments->store_fd >= 0 ? environments : NULL,
		.record = record->fd >= 0 ? record : NULL,
		.say = say,
		.max_running = bounds->running,
		.max_queued = bounds->queued,
		.memory_bytes = bounds->memory_bytes};
	struct nc_engine *engine = NULL;
	int r;

	setup.landlock = nc_fence_stores(stores, sizeof(stores) / sizeof(stores[0]));
	if (setup.environments)
		nc_environment_sweep(setup.environments);
	r = setup.landlock < 0 ? setup.landlock : nc_filter_load(NC_FILTER_WORKER, NULL);
	if (r == 0)
		r = uv_loop_init(&loop);
	if (r < 0)
		return nc_err_errno(err, r, "Restrict ourselves");
	(void)signal(SIGPIPE, SIG_IGN);
	r = nc_spawn_connect(spawn, err);
	if (r < 0)
		return r;
	r = nc_engine_new(&setup, &engine);
	if (r == 0)
		r = serve(&loop, engine, bounds);
	return r < 0 ? nc_err_errno(err, r, "Begin the engine") : 0;
}

static int start(const struct nc_config *config, struct nacre_err *err)
{
	cleanup_spawn struct nc_spawn spawn = {.fd = -EBADF};
	cleanup_close int cache_fd = -EBADF;
	cleanup_record struct nc_record record = {.fd = -EBADF};
	struct nc_spawn_setup setup = {.witness_fd = -EBADF};
	cleanup_book struct nc_book *policies = NULL;
	cleanup_environments struct nc_environments environments;
	struct bounds bounds = {0};
	struct nacre_err ignored = {0};
	bool ranges = false;
	int record_fd, r = read_bounds(&bounds, err);

	nc_environments_init(&environments);
	if (r == 0 && nc_book_new(config, &policies) < 0)
		r = nc_err_set(err, -ENOMEM, "Out of memory");
	/* now, while files can be read; requests name them later */
	if (r == 0)
		r = nc_book_add_all(policies, err);
	if (r == 0)
		r = nc_privilege_ranges(&ranges, err);
	if (r < 0)
		return r;
	raise_files();
	/* without a place for it nothing is kept, and all is compiled each time */
	if (!arg_no_cache)
		cache_fd = nc_store_open("cache", true, ranges, &ignored);
	/* the same for packages: then requests that need any are refused, and say so */
	if (nc_environments_open(&environments, config, true, ranges, &ignored) == 0)
		r = nc_environments_open_source(&environments, config, err);
	if (r < 0)
		return r;
	record_fd = nc_recording_start(config, say, &setup.witness_fd);
	setup.ready = bounds.running < READY_MAX ? (unsigned int)bounds.running : READY_MAX;
	r = nc_spawn_start(&spawn, &setup, err);
	(void)nc_fd_close(setup.witness_fd);
	if (r == 0 && record_fd >= 0 && nc_record_start(&record, record_fd, &ignored) < 0)
		say(ignored.message);
	return r < 0 ? r
		     : run_as_worker(&spawn, config, policies, cache_fd, &environments, &record,
			       &bounds, err);
}

static int run(const struct nc_cli *cli, int n_words, char **words, struct nacre_err *err)
{
	int r = check_client(err);

	(void)n_words, (void)words;
	if (r < 0)
		return r;
	r = start(cli->config, err);
	if (r == -ECONNRESET && !err->message[0]) { /* said on standard error, which is no frame */
		struct nacre_err gone = {0};

		nc_err_set(&gone, r, "nacre-spawner has ended; standard error says why");
		nc_service_refuse(CLIENT_FD, &gone);
	} else if (r < 0) {
		nc_service_refuse(CLIENT_FD, err);
	}
	return r;
}

const struct nc_verb nc_verb_engine = {
	.name = "engine",
	.summary = "Execute for another program, over a socket",
	.arguments = "",
	.details =
		"For libnacre and other programs: reads requests as frames from the socket that\n"
		"is descriptor 3, executes many at once, and sends output and replies back.\n"
		"Ends, with everything that runs, when the other side hangs up.",
	.example = "nacre engine --max-running 8 3<>SOCKET",
	.options = options,
	.run = run,
};
