/* nacre engine: executions for another program, which holds the other end of a socket. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>

#include "base/say.h"
#include "cli/cli.h"
#include "cli/start.h"
#include "engine/service.h"
#include "kernel/fence.h"
#include "kernel/filter.h"

/* Where whoever starts us has put our end. */
#define CLIENT_FD 3
static struct nc_start_args args;

static const struct nc_option options[] = {
	NC_OPTION_ALL_CPUS(args),
	NC_OPTION_MAX_QUEUED(args),
	NC_OPTION_MAX_RUNNING(args),
	NC_OPTION_ALL_MEMORY(args),
	NC_OPTION_NO_CACHE(args),
	{0},
};

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

static void say(const char *text)
{
	nc_say(stderr, "nacre engine: %s\n", text);
}

static void on_ended(void *context)
{
	uv_stop(context);
}

/* Serves until the client hangs up. */
static int serve(uv_loop_t *loop, struct nc_engine *engine, struct nc_start *start)
{
	const struct nc_service_setup setup = {.loop = loop,
		.engine = engine,
		.fd = CLIENT_FD,
		.max_running = start->running,
		.max_queued = start->queued,
		.context = loop,
		.ended = on_ended};
	struct nc_service *service = NULL;
	int r = nc_service_new(&setup, &service);

	if (r == 0)
		(void)uv_run(loop, UV_RUN_DEFAULT);
	nc_engine_free(engine);
	nc_start_end_network(start);
	nc_service_free(service);
	(void)uv_run(loop, UV_RUN_DEFAULT); /* closes what is closing */
	return r;
}

/* The unprivileged half. */
static int run_as_worker(
	struct nc_start *start, const struct nc_config *config, struct nacre_err *err)
{
	static uv_loop_t loop;
	const int stores[] = {start->cache_fd, start->environments.store_fd};
	struct nc_engine_setup setup = nc_start_engine(start, config);
	struct nc_engine *engine = NULL;
	int abi, r;

	setup.loop = &loop;
	abi = nc_fence_stores(stores, sizeof(stores) / sizeof(stores[0]));
	if (setup.environments)
		nc_environment_sweep(setup.environments);
	r = abi < 0 ? abi : nc_filter_load(NC_FILTER_WORKER, NULL);
	if (r == 0)
		r = uv_loop_init(&loop);
	if (r < 0)
		return nc_err_errno(err, r, "Restrict ourselves");
	(void)signal(SIGPIPE, SIG_IGN);
	nc_start_network(start, &loop);
	setup.network = start->network;
	r = nc_holder_connect(&start->holder, err);
	if (r < 0)
		return r;
	r = nc_engine_new(&setup, &engine);
	if (r == 0)
		r = serve(&loop, engine, start);
	return r < 0 ? nc_err_errno(err, r, "Begin the engine") : 0;
}

static int begin(const struct nc_config *config, struct nacre_err *err)
{
	cleanup_start struct nc_start start;
	int r;

	nc_start_init(&start, say);
	r = nc_start_open(&start, &args, config, err);
	if (r == 0)
		r = nc_start_split(&start, err);
	return r < 0 ? r : run_as_worker(&start, config, err);
}

static int run(const struct nc_cli *cli, int n_words, char **words, struct nacre_err *err)
{
	int r = check_client(err);

	(void)n_words, (void)words;
	if (r < 0)
		return r;
	r = begin(cli->config, err);
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
