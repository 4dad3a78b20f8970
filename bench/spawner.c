/*
 * A box inside a running spawner, beside posix_spawn of the same program.
 *
 *	cc -O2 -D_GNU_SOURCE -std=gnu17 -Iinclude -Isrc -o bench-spawner bench/spawner.c
 *		BUILD/src/libkernel.a BUILD/src/libbase.a
 *	bench-spawner BUILD/nacre-spawner [ROUNDS [PAUSE_MS]]
 *
 * It forks and becomes the spawner, as nacre does; the child is its worker, asks for boxes to be
 * kept prepared, orders one after the other and measures from the order to the news of the end, and
 * the same program without a box in turn. With a pause before each sample the spawner has time to
 * prepare, and its preparing meets neither of the two; without one it has none, and what it
 * prepares meets both.
 */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/wire.h"
#include "kernel/boxwire.h"

/* Where nacre-spawner expects its end. */
#define SOCKET_FD 3
/* Boxes to keep prepared. */
#define READY 4
#define ROUNDS_MAX 100000U

struct program {
	const char *name;
	const char *argv[3];
};

static const struct program programs[] = {
	{"/bin/true (dynamic)", {"/bin/true"}},
	{"busybox true (static)", {"/usr/bin/busybox", "true"}},
};

struct samples {
	size_t n;
	uint64_t ns[ROUNDS_MAX];
};

static struct samples boxed, birth, bare;
static struct nc_wire_packet packet;
static int null_fd, spawner_fd;
static unsigned int pause_ms;

static void die(const char *what)
{
	fprintf(stderr, "bench-spawner: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* Forks as nacre does: the parent becomes the spawner, the child is its worker. */
static void start_spawner(const char *path)
{
	static char name[] = "nacre-spawner", none[] = "0";
	char worker[16];
	char *words[] = {name, worker, none, none, NULL};
	int ends[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) < 0)
		die("make a socket pair");
	pid = fork();
	if (pid < 0)
		die("fork");
	if (pid == 0) {
		(void)close(ends[0]);
		spawner_fd = ends[1];
		return;
	}
	(void)snprintf(worker, sizeof(worker), "%d", (int)pid);
	(void)close(ends[1]);
	if (ends[0] != SOCKET_FD && dup2(ends[0], SOCKET_FD) < 0)
		die("hand over the socket");
	(void)execv(path, words);
	die(path);
}

static void receive(struct nc_wire_in *in)
{
	if (nc_wire_receive(spawner_fd, &packet, 0) <= 0 ||
		nc_wire_open(in, packet.data, packet.size) < 0)
		die("receive from the spawner");
}

static void greet(void)
{
	struct nc_wire_out out = {0};
	struct nc_wire_in in;

	nc_wire_begin(&out, NC_BOX_HELLO);
	nc_wire_put_u32(&out, NC_BOXWIRE_VERSION);
	if (nc_wire_send(spawner_fd, &out, NULL, 0) < 0)
		die("greet the spawner");
	nc_wire_out_done(&out);
	receive(&in);
	if (in.type != NC_BOX_WELCOME)
		die("greet the spawner");
	nc_wire_begin(&out, NC_BOX_READY);
	nc_wire_put_u32(&out, 1);
	nc_wire_put_u64(&out, 0);
	nc_wire_put_u32(&out, READY);
	if (nc_wire_send(spawner_fd, &out, NULL, 0) < 0)
		die("ask for prepared boxes");
	nc_wire_out_done(&out);
}

static struct nc_box_words words_of(const char *const *argv, char *text)
{
	struct nc_box_words words = {.data = text};

	for (; argv[words.count]; words.count++) {
		size_t size = strlen(argv[words.count]) + 1;

		memcpy(text + words.size, argv[words.count], size);
		words.size += size;
	}
	return words;
}

static void order(const struct program *program, uint64_t id)
{
	static const char *const env[] = {"PATH=/usr/bin:/bin", NULL};
	char argv_text[128], env_text[64];
	struct nc_wire_out out = {0};
	struct nc_box_order wanted = {
		.id = id,
		.dir = "/workspace",
		.limits = {.memory_bytes = 256U << 20,
			.cpu_milli = 1000,
			.wall_ms = 10000,
			.pids = 64,
			.disk_bytes = 64U << 20,
			.inodes = 1024,
			.open_files = 1024},
		.fds = {3, {NC_FD_INPUT, NC_FD_OUTPUT, NC_FD_ERROR}, {null_fd, null_fd, null_fd}},
		.argv = words_of(program->argv, argv_text),
		.env = words_of(env, env_text),
	};

	nc_wire_begin(&out, NC_BOX_RUN);
	nc_wire_put_u32(&out, 2);
	nc_boxwire_put_order(&out, &wanted);
	if (nc_wire_send(spawner_fd, &out, wanted.fds.fd, wanted.fds.n) < 0)
		die("order a box");
	nc_wire_out_done(&out);
}

/* Waits for the end of the box that was ordered; the nanoseconds that its birth took. */
static uint64_t wait_for_end(void)
{
	uint64_t birth_ns = 0;

	for (;;) {
		struct nc_wire_in in;

		receive(&in);
		if (in.type == NC_BOX_ANSWER)
			continue;
		(void)nc_wire_get_u64(&in); /* the id: there is only one box at a time */
		if (in.type == NC_BOX_ENDED)
			return birth_ns;
		if (in.type != NC_BOX_STARTED)
			die("run the program in a box");
		birth_ns = nc_wire_get_u64(&in);
	}
}

static void run_boxed(const struct program *program)
{
	static uint64_t id;
	uint64_t started = nc_clock_ns();

	order(program, ++id);
	birth.ns[birth.n++] = wait_for_end();
	boxed.ns[boxed.n++] = nc_clock_ns() - started;
}

static void run_bare(const struct program *program)
{
	static char *const env[] = {NULL};
	char *const *argv = (char *const *)(uintptr_t)program->argv;
	uint64_t started = nc_clock_ns();
	pid_t pid;
	int status;

	errno = posix_spawn(&pid, program->argv[0], NULL, NULL, argv, env);
	if (errno != 0 || waitpid(pid, &status, 0) != pid || status != 0)
		die(program->name);
	bare.ns[bare.n++] = nc_clock_ns() - started;
}

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static double part_us(struct samples *samples, size_t percent)
{
	qsort(samples->ns, samples->n, sizeof(samples->ns[0]), compare);
	return (double)samples->ns[samples->n * percent / 100] / 1000;
}

static void print_row(const char *program, const char *what, struct samples *samples)
{
	printf("| %s | %s | %.0f | %.0f | %.0f | %.2f |\n", program, what, part_us(samples, 50),
		part_us(samples, 99), part_us(samples, 0),
		part_us(samples, 50) / part_us(&bare, 50));
}

static void measure(const struct program *program, size_t rounds)
{
	boxed.n = birth.n = bare.n = 0;
	run_boxed(program); /* the first one warms up */
	run_bare(program);
	boxed.n = birth.n = bare.n = 0;
	for (size_t i = 0; i < rounds; i++) {
		(void)usleep(pause_ms * 1000);
		run_boxed(program);
		/* or the spawner's preparation of the next box would slow down the peer */
		(void)usleep(pause_ms * 1000);
		run_bare(program);
	}
	print_row(program->name, "box: order to end", &boxed);
	print_row(program->name, "box: birth", &birth);
	print_row(program->name, "posix_spawn and wait", &bare);
}

int main(int argc, char **argv)
{
	size_t rounds = argc > 2 ? strtoul(argv[2], NULL, 10) : 300;

	pause_ms = argc > 3 ? (unsigned int)strtoul(argv[3], NULL, 10) : 0;
	if (argc < 2 || argc > 4 || rounds < 1 || rounds > ROUNDS_MAX) {
		fputs("Usage: bench-spawner NACRE_SPAWNER [ROUNDS [PAUSE_MS]]\n", stderr);
		return 2;
	}
	start_spawner(argv[1]);
	null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null_fd < 0)
		die("/dev/null");
	greet();
	printf("| program | what | p50 us | p99 us | min us | to posix_spawn |\n"
	       "|---|---|---|---|---|---|\n");
	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
		if (access(programs[i].argv[0], X_OK) == 0)
			measure(&programs[i], rounds);
		else
			fprintf(stderr, "skipped: %s is not installed\n", programs[i].name);
	}
	return 0;
}
