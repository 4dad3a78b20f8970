/*
 * Output as it is printed, in the program's own poll loop, and a program that is stopped.
 *
 *	cc stream.c $(pkg-config --cflags --libs nacre) -o stream && ./stream
 */
#include <nacre/nacre.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

struct run {
	struct nacre_engine *engine;
	unsigned int lines;
	int done, cancelled;
};

static void on_output(void *context, uint64_t ticket, enum nacre_stream stream, const char *data,
	size_t size, uint64_t dropped)
{
	struct run *run = context;

	if (dropped > 0)
		printf("... (%llu bytes)\n", (unsigned long long)dropped);
	(void)fwrite(data, 1, size, stream == NACRE_STDERR ? stderr : stdout);
	for (size_t i = 0; i < size; i++)
		run->lines += data[i] == '\n';
	if (run->lines >= 3) /* it would go on for ever */
		(void)nacre_engine_cancel(run->engine, ticket, NULL);
}

static void on_done(void *context, uint64_t ticket, const char *reply)
{
	struct run *run = context;

	(void)ticket;
	run->done = 1;
	run->cancelled = strstr(reply, "\"status\":\"cancelled\"") != NULL;
}

int main(void)
{
	static const char request[] =
		"{\"language\":\"python\",\"code\":\"import itertools, time\\n"
		"for i in itertools.count():\\n    print(i, flush=True)\\n    time.sleep(0.1)\"}";
	struct run run = {0};
	const struct nacre_listener listener = {
		.size = sizeof(listener), .context = &run, .output = on_output, .done = on_done};
	struct nacre_err err = {0};
	uint64_t ticket;
	int r = nacre_engine_new(NULL, &run.engine, &err);

	if (r == 0)
		r = nacre_engine_submit(run.engine, request, &listener, &ticket, &err);
	while (r >= 0 && !run.done) {
		struct pollfd wait = {.fd = nacre_engine_fd(run.engine), .events = POLLIN};

		if (poll(&wait, 1, -1) > 0)
			r = nacre_engine_dispatch(run.engine, &err);
	}
	if (r < 0)
		fprintf(stderr, "stream: %s\n", err.message);
	nacre_engine_free(run.engine);
	puts(run.cancelled ? "cancelled" : "not cancelled");
	return !run.cancelled;
}
