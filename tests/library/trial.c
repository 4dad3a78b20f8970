/*
 * Uses of libnacre that an example would not show: tests/func/test_library.py runs each by its
 * name. A user of the public header alone, like any other.
 */
#include <errno.h>
#include <fcntl.h>
#include <nacre/nacre.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "line %d: %s: %s\n", __LINE__, #condition, err.message);   \
			return 1;                                                                  \
		}                                                                                  \
	} while (0)

static const char endless[] = "{\"language\":\"shell\",\"code\":\"sleep 600\",\"timeout\":600}";
static const char quick[] = "{\"language\":\"shell\",\"code\":\"echo quick\"}";

static struct nacre_err err;

static int has(const char *reply, const char *text)
{
	if (strstr(reply, text))
		return 1;
	fprintf(stderr, "no %s in %s\n", text, reply);
	return 0;
}

static int has_status(const char *reply, const char *status)
{
	char text[64];

	(void)snprintf(text, sizeof(text), "\"status\":\"%s\"", status);
	return has(reply, text);
}

/* What a caller gets wrong is answered, not crashed on. */
static int misuse(struct nacre_engine *engine)
{
	struct nacre_engine_options options = {0};
	struct nacre_engine *second = NULL;
	struct nacre_monitor *monitor = NULL;
	struct nacre_usage usage = {0};
	char *reply = NULL;
	uint64_t ticket = 7;

	CHECK(nacre_engine_new(NULL, NULL, &err) == -EINVAL);
	CHECK(nacre_engine_new(&options, &second, &err) == -EINVAL && !second);
	CHECK(nacre_engine_execute(NULL, quick, &reply, &err) == -EINVAL);
	CHECK(nacre_engine_execute(engine, NULL, &reply, &err) == -EINVAL);
	CHECK(nacre_engine_execute(engine, quick, NULL, NULL) == -EINVAL);
	CHECK(nacre_engine_execute_code(engine, "python", "\xff", &reply, &err) == -EINVAL);
	CHECK(nacre_engine_submit(engine, quick, NULL, NULL, &err) == -EINVAL);
	CHECK(nacre_engine_wait(engine, 0, 0, &ticket, &reply, &err) == -ENOENT);
	CHECK(nacre_engine_wait(engine, 99, 0, &ticket, &reply, &err) == -ENOENT);
	CHECK(nacre_engine_cancel(engine, 99, &err) == -ENOENT);
	CHECK(nacre_engine_cancel(NULL, 1, &err) == -EINVAL);
	CHECK(nacre_engine_dispatch(NULL, &err) == -EINVAL && nacre_engine_fd(NULL) == -EINVAL);
	CHECK(nacre_engine_load(engine, NULL, &err) == -EINVAL);
	CHECK(nacre_policy_check(engine, "cobol", "x", NULL, &reply, &err) == -EINVAL);
	CHECK(nacre_policy_check(engine, "python", "x", "lax", &reply, &err) == -EINVAL);
	CHECK(nacre_policy_check(engine, "python", NULL, NULL, &reply, &err) == -EINVAL);
	CHECK(nacre_monitor_start(1, &monitor, &err) == -EINVAL);
	CHECK(nacre_monitor_start(getpid(), &monitor, &err) == -EINVAL && !monitor);
	CHECK(nacre_monitor_usage(NULL, &usage, &err) == -EINVAL);
	CHECK(!reply && ticket == 7);
	nacre_engine_free(NULL);
	nacre_monitor_free(NULL);
	nacre_free(NULL);
	return 0;
}

/* A request that is wrong has a reply that says all of it. */
static int invalid(struct nacre_engine *engine)
{
	char *reply = NULL;

	CHECK(nacre_engine_execute(engine, "{\"langauge\":\"c\",\"code\":5}", &reply, &err) == 0);
	CHECK(has_status(reply, "invalid") && has(reply, "/langauge") && has(reply, "/code"));
	nacre_free(reply);
	/* what would break out of the frame that it is sent in */
	CHECK(nacre_engine_execute(engine, "{\"code\":\"x\"}, \"op\":\"load\"", &reply, &err) == 0);
	CHECK(has_status(reply, "invalid") && has(reply, "Invalid JSON"));
	nacre_free(reply);
	CHECK(nacre_engine_execute(engine, "", &reply, &err) == 0 && has_status(reply, "invalid"));
	nacre_free(reply);
	CHECK(nacre_engine_execute(engine, "[]", &reply, &err) == 0 &&
		has_status(reply, "invalid"));
	nacre_free(reply);
	CHECK(nacre_engine_execute(engine, quick, &reply, &err) == 0 && has(reply, "quick\\n"));
	nacre_free(reply);
	return 0;
}

static int waits(struct nacre_engine *engine)
{
	uint64_t slow = 0, fast = 0, found = 0;
	char *reply = NULL;

	CHECK(nacre_engine_submit(engine, endless, NULL, &slow, &err) == 0);
	CHECK(nacre_engine_submit(engine, quick, NULL, &fast, &err) == 0 && slow != fast);
	CHECK(nacre_engine_wait(engine, slow, 50, &found, &reply, &err) == -ETIMEDOUT);
	CHECK(nacre_engine_wait(engine, 0, -1, &found, &reply, &err) == 0 && found == fast);
	CHECK(has(reply, "quick\\n"));
	nacre_free(reply);
	CHECK(nacre_engine_wait(engine, fast, 0, &found, &reply, &err) == -ENOENT);
	CHECK(nacre_engine_wait(engine, 0, 0, &found, &reply, &err) == -ETIMEDOUT);
	CHECK(nacre_engine_cancel(engine, slow, &err) == 0);
	CHECK(nacre_engine_wait(engine, slow, -1, NULL, &reply, &err) == 0);
	CHECK(has_status(reply, "cancelled"));
	nacre_free(reply);
	return 0;
}

static int load(struct nacre_engine *engine)
{
	struct nacre_engine_load now = {.size = sizeof(now)}, small = {.size = sizeof(size_t) + 8};
	uint64_t ticket;

	CHECK(nacre_engine_load(engine, &now, &err) == 0 && now.running == 0 && now.queued == 0);
	CHECK(nacre_engine_submit(engine, endless, NULL, &ticket, &err) == 0);
	do
		CHECK(nacre_engine_load(engine, &now, &err) == 0);
	while (now.running == 0);
	CHECK(now.size == sizeof(now) && now.running == 1 && now.memory_bytes > 0);
	/* a program that was built when the struct was smaller */
	small.memory_bytes = 77;
	CHECK(nacre_engine_load(engine, &small, &err) == 0);
	CHECK(small.running == 1 && small.memory_bytes == 77);
	return 0;
}

struct seen {
	struct nacre_engine *engine;
	size_t bytes, calls;
	uint64_t dropped, nested;
	int done;
	char *nested_reply;
};

static void on_output(void *context, uint64_t ticket, enum nacre_stream stream, const char *data,
	size_t size, uint64_t dropped)
{
	struct seen *seen = context;

	(void)ticket, (void)stream, (void)data;
	seen->bytes += size;
	seen->dropped += dropped;
	seen->calls++;
}

static void on_done(void *context, uint64_t ticket, const char *reply)
{
	struct seen *seen = context;

	(void)ticket, (void)reply;
	seen->done++;
}

/* Who does not fetch live output loses some of it, and is told how much; never more than a bound.
 */
static int slow_reader(struct nacre_engine *engine)
{
	static const char request[] =
		"{\"language\":\"python\",\"timeout\":60,\"limits\":{\"output_bytes\":1000000000},"
		"\"code\":\"import sys\\nfor i in range(900): sys.stdout.write('x' * 65536)\"}";
	struct seen seen = {.engine = engine};
	const struct nacre_listener listener = {
		.size = sizeof(listener), .context = &seen, .output = on_output, .done = on_done};
	uint64_t ticket;

	CHECK(nacre_engine_submit(engine, request, &listener, &ticket, &err) == 0);
	(void)sleep(3); /* the engine's own bound */
	while (!seen.done) {
		CHECK(nacre_engine_dispatch(engine, &err) >= 0);
		(void)usleep(1000);
	}
	CHECK(seen.dropped > 0 && seen.bytes + seen.dropped == 900 * 65536);
	return 0;
}

/* nacre_engine_fd() is ready for what another call has read already. */
static int descriptor(struct nacre_engine *engine)
{
	struct seen seen = {.engine = engine};
	const struct nacre_listener listener = {
		.size = sizeof(listener), .context = &seen, .done = on_done};
	struct pollfd wait = {.fd = nacre_engine_fd(engine), .events = POLLIN};
	struct nacre_engine_load now = {.size = sizeof(now)};
	uint64_t ticket, other;
	char *reply = NULL;

	CHECK(poll(&wait, 1, 0) == 0);
	/* two that the library answers itself, so that nothing will come over the socket */
	CHECK(nacre_engine_submit(engine, "", &listener, &ticket, &err) == 0 && !seen.done);
	CHECK(poll(&wait, 1, 0) == 1);
	CHECK(nacre_engine_dispatch(engine, &err) == 1 && seen.done == 1);
	CHECK(poll(&wait, 1, 0) == 0);
	CHECK(nacre_engine_submit(engine, "", NULL, &other, &err) == 0);
	CHECK(poll(&wait, 1, 0) == 1);
	CHECK(nacre_engine_wait(engine, other, 0, NULL, &reply, &err) == 0);
	nacre_free(reply);
	CHECK(poll(&wait, 1, 0) == 0);
	CHECK(nacre_engine_submit(engine, quick, &listener, &ticket, &err) == 0);
	CHECK(nacre_engine_wait(engine, ticket, 0, NULL, &reply, &err) == -EBUSY);
	while (seen.done < 2)
		CHECK(nacre_engine_load(engine, &now, &err) == 0); /* calls back, too */
	CHECK(poll(&wait, 1, 0) == 0);
	return 0;
}

static void on_output_nested(void *context, uint64_t ticket, enum nacre_stream stream,
	const char *data, size_t size, uint64_t dropped)
{
	struct seen *seen = context;

	on_output(context, ticket, stream, data, size, dropped);
	if (!seen->nested_reply)
		(void)nacre_engine_execute(seen->engine, quick, &seen->nested_reply, NULL);
	(void)nacre_engine_cancel(seen->engine, ticket, NULL);
}

/* Callbacks may use the engine, even to wait. */
static int nested(struct nacre_engine *engine)
{
	struct seen seen = {.engine = engine};
	const struct nacre_listener listener = {.size = sizeof(listener),
		.context = &seen,
		.output = on_output_nested,
		.done = on_done};
	struct nacre_engine_load now = {.size = sizeof(now)};
	uint64_t ticket;

	CHECK(nacre_engine_submit(engine,
		      "{\"language\":\"shell\",\"code\":\"while echo x; do sleep 0.1; done\"}",
		      &listener, &ticket, &err) == 0);
	while (!seen.done)
		CHECK(nacre_engine_load(engine, &now, &err) == 0);
	CHECK(seen.nested_reply && has(seen.nested_reply, "quick\\n"));
	nacre_free(seen.nested_reply);
	return 0;
}

#define MANY 40

static void stop_others(void *context, size_t index, const char *reply)
{
	(void)index, (void)reply;
	++*(size_t *)context;
}

/* More requests than the engine takes at once, with others in its queue: all are answered. */
static int crowded(struct nacre_engine *ignored)
{
	const struct nacre_engine_options options = {
		.size = sizeof(options), .max_running = 2, .max_queued = 3, .no_cache = 1};
	const char *requests[MANY];
	char *replies[MANY] = {0}, *reply = NULL;
	struct nacre_engine *engine = NULL;
	uint64_t other[3];
	size_t told = 0;

	(void)ignored;
	for (size_t i = 0; i < MANY; i++)
		requests[i] = i % 10 == 9 ? "{\"code\":7}" : quick;
	CHECK(nacre_engine_new(&options, &engine, &err) == 0);
	for (size_t i = 0; i < 3; i++)
		CHECK(nacre_engine_submit(engine, "{\"language\":\"shell\",\"code\":\"sleep 0.3\"}",
			      NULL, &other[i], &err) == 0);
	CHECK(nacre_engine_execute_parallel(
		      engine, requests, MANY, stop_others, &told, replies, &err) == 0);
	CHECK(told == MANY);
	for (size_t i = 0; i < MANY; i++) {
		CHECK(has_status(replies[i], i % 10 == 9 ? "invalid" : "success"));
		nacre_free(replies[i]);
	}
	for (size_t i = 0; i < 3; i++) {
		CHECK(nacre_engine_wait(engine, other[i], -1, NULL, &reply, &err) == 0);
		CHECK(has_status(reply, "success"));
		nacre_free(reply);
	}
	CHECK(nacre_engine_execute_parallel(engine, NULL, 0, NULL, NULL, NULL, &err) == 0);
	nacre_engine_free(engine);
	return 0;
}

/* The engine dies under the program's hands: an error, and no signal. */
static int killed(struct nacre_engine *engine)
{
	char command[128], *reply = NULL;
	const char *requests[] = {endless, quick, endless};
	char *replies[3] = {0};
	struct nacre_engine *next = NULL;
	uint64_t ticket;
	FILE *list;
	int pid = 0, r;

	CHECK(nacre_engine_submit(engine, endless, NULL, &ticket, &err) == 0);
	(void)snprintf(command, sizeof(command), "pgrep -P %d nacre-spawner", (int)getpid());
	list = popen(command, "r");
	CHECK(list && fscanf(list, "%d", &pid) == 1 && pid > 1);
	(void)pclose(list);
	CHECK(kill(pid, SIGKILL) == 0);
	/* its worker may find out, and say so, before it is killed too */
	r = nacre_engine_wait(engine, ticket, 30000, NULL, &reply, &err);
	while (r == 0) {
		CHECK(strstr(reply, "\"status\":\"lost\"") || has_status(reply, "internal_error"));
		nacre_free(reply);
		reply = NULL;
		r = nacre_engine_execute(engine, quick, &reply, &err);
	}
	CHECK(r == -EPIPE);
	CHECK(nacre_engine_execute_parallel(engine, requests, 3, NULL, NULL, replies, &err) ==
		-EPIPE);
	CHECK(!replies[0] && !replies[1] && !reply);
	CHECK(nacre_engine_dispatch(engine, &err) == -EPIPE);
	CHECK(nacre_policy_check(engine, "c", "x", NULL, &reply, &err) == -EPIPE);
	/* its control groups are left to the next one */
	CHECK(nacre_engine_new(NULL, &next, &err) == 0);
	CHECK(nacre_engine_execute(next, quick, &reply, &err) == 0);
	nacre_free(reply);
	nacre_engine_free(next);
	return 0;
}

/* Ending an engine ends what runs. */
static int abandoned(struct nacre_engine *engine)
{
	struct nacre_engine_load now = {.size = sizeof(now)};
	uint64_t ticket;

	for (size_t i = 0; i < 10; i++)
		CHECK(nacre_engine_submit(engine, endless, NULL, &ticket, &err) == 0);
	do
		CHECK(nacre_engine_load(engine, &now, &err) == 0);
	while (now.running < 2);
	return 0;
}

/* Standard streams that are closed, signals that are ignored or blocked: none of its business. */
static int strange_caller(struct nacre_engine *ignored)
{
	struct nacre_engine *engine = NULL;
	struct pollfd input = {.events = POLLIN};
	sigset_t all;
	int ends[2];
	char *reply = NULL;

	(void)ignored;
	CHECK(pipe(ends) == 0 && dup2(ends[0], 0) == 0 && write(ends[1], "mine", 4) == 4);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_BLOCK, &all, NULL);
	(void)fcntl(2, F_DUPFD, 200); /* inherited by whoever does not look */
	CHECK(nacre_engine_new(NULL, &engine, &err) == 0);
	CHECK(nacre_engine_execute_code(engine, "shell",
		      "cat; kill -PIPE $$; echo lived; ls /proc/self/fd | wc -l", &reply,
		      &err) == 0);
	CHECK(has(reply, "\"signal\":13"));
	nacre_free(reply);
	input.fd = 0;
	CHECK(poll(&input, 1, 0) == 1); /* nobody has read it */
	nacre_engine_free(engine);
	return 0;
}

static void *use_own_engine(void *context)
{
	struct nacre_engine *engine = NULL;
	struct nacre_err own = {0};
	char *reply = NULL;
	size_t *right = context;

	if (nacre_engine_new(NULL, &engine, &own) == 0)
		for (size_t i = 0; i < 5; i++) {
			if (nacre_engine_execute(engine, quick, &reply, &own) == 0)
				*right += has(reply, "quick\\n") != 0;
			nacre_free(reply);
			reply = NULL;
		}
	nacre_engine_free(engine);
	return NULL;
}

/* An engine for each thread; the thread that started one may end before others. */
static int threads(struct nacre_engine *engine)
{
	pthread_t thread[3];
	size_t right[3] = {0};
	char *reply = NULL;

	for (size_t i = 0; i < 3; i++)
		CHECK(pthread_create(&thread[i], NULL, use_own_engine, &right[i]) == 0);
	for (size_t i = 0; i < 3; i++)
		CHECK(pthread_join(thread[i], NULL) == 0 && right[i] == 5);
	CHECK(nacre_engine_execute(engine, quick, &reply, &err) == 0);
	nacre_free(reply);
	return 0;
}

/* A reply of many megabytes, with text that grows in JSON. */
static int large(struct nacre_engine *engine)
{
	char *reply = NULL;

	CHECK(nacre_engine_execute(engine,
		      "{\"language\":\"python\",\"capture\":[\"*.bin\"],\"code\":"
		      "\"open('a.bin','w').write('\\\\x01' * 10000000)\"}",
		      &reply, &err) == 0);
	CHECK(has_status(reply, "success") && strlen(reply) > 60000000);
	nacre_free(reply);
	return 0;
}

/* Not a trial of its own: the program is killed while its programs run. */
static int die(struct nacre_engine *engine)
{
	if (abandoned(engine))
		return 1;
	return raise(SIGKILL);
}

static const struct {
	const char *name;
	int (*run)(struct nacre_engine *engine);
} trials[] = {
	{"misuse", misuse},
	{"invalid", invalid},
	{"waits", waits},
	{"load", load},
	{"slow_reader", slow_reader},
	{"descriptor", descriptor},
	{"nested", nested},
	{"crowded", crowded},
	{"killed", killed},
	{"abandoned", abandoned},
	{"strange_caller", strange_caller},
	{"threads", threads},
	{"large", large},
};

int main(int argc, char **argv)
{
	int (*run)(struct nacre_engine * engine) =
		argc == 2 && !strcmp(argv[1], "die") ? die : NULL;
	struct nacre_engine *engine = NULL;
	int failed;

	for (size_t i = 0; argc == 2 && i < sizeof(trials) / sizeof(trials[0]); i++)
		if (strcmp(argv[1], trials[i].name) == 0)
			run = trials[i].run;
	if (!run || nacre_engine_new(NULL, &engine, &err) < 0) {
		fprintf(stderr, "trial: %s\n", run ? err.message : "unknown");
		return 2;
	}
	failed = run(engine);
	nacre_engine_free(engine);
	if (!failed)
		puts("ok");
	return failed;
}
