/*
 * Begins the spawner of a plain `nacre exec` before anything else, libc included.
 *
 * Theory of operation: this is where the kernel enters the program. A command line that can need
 * nothing of the caller's but what the spawner opens itself forks here: the parent becomes
 * nacre-spawner at once, and builds a box while the child becomes the worker: nacre-exec
 * (src/cli/plain.c) if that is there and will do, else it goes on to _start, relocates twenty
 * megabytes, and reads the command line and the configuration as ever (see nc_holder_start).
 * Whatever is not plain, or does not work, is left to main, which does the same in its own time and
 * knows how to say what is wrong.
 *
 * Nothing is relocated yet, and there is no libc: no pointers in static data, no stack protector,
 * and not one call out of this file, which tests/func/test_early.py looks after. The words are the
 * caller's own, and are compared and never copied.
 */
#include "cli/early.h"

#include <fcntl.h>
#include <linux/auxvec.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/rawcall.h"

#define SPAWNER "nacre-spawner"
#define WORKER "nacre-exec"
/* Where both expect their ends. */
#define SOCKET_FD 3
#define EXIT_SELF 125
#define PATH_SIZE 4096

#if defined(__x86_64__)
__asm__(".globl nc_early_entry\n"
	".hidden nc_early_entry\n"
	".type nc_early_entry, @function\n"
	"nc_early_entry:\n"
	"	endbr64\n"
	"	xor %ebp, %ebp\n"
	"	mov %rdx, %r12\n" /* all that _start expects: the stack, and this */
	"	mov %rsp, %rbx\n"
	"	mov %rsp, %rdi\n"
	"	and $-16, %rsp\n"
	"	call nc_early_main\n"
	"	mov %rbx, %rsp\n"
	"	mov %r12, %rdx\n"
	"	jmp _start\n");
#elif defined(__aarch64__)
__asm__(".globl nc_early_entry\n"
	".hidden nc_early_entry\n"
	".type nc_early_entry, %function\n"
	"nc_early_entry:\n"
	"	mov x29, #0\n"
	"	mov x19, x0\n"
	"	mov x0, sp\n"
	"	bl nc_early_main\n"
	"	mov x0, x19\n"
	"	b _start\n");
#endif

/* What follows the prefix, or NULL. */
static const char *after(const char *text, const char *prefix)
{
	while (*prefix)
		if (*text++ != *prefix++)
			return NULL;
	return text;
}

static bool is(const char *text, const char *word)
{
	const char *rest = after(text, word);

	return rest && !*rest;
}

/*
 * How many words the option takes, if it is one that changes nothing about which box is needed and
 * opens nothing; else 0.
 */
static int plain_option(const char *word)
{
	static const char names[][12] = {"--cpu-time", "--cpus", "--disk", "--env", "--files",
		"--inodes", "--memory", "--output", "--pids", "--timeout"};

	if (is(word, "--json"))
		return 1;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *rest = after(word, names[i]);

		if (rest && (*rest == '\0' || *rest == '='))
			return *rest == '=' ? 1 : 2;
	}
	return 0;
}

static bool is_plain_exec(long argc, char **argv, bool *ret_json)
{
	if (argc < 3 || !is(argv[1], "exec"))
		return false;
	for (long i = 2; i < argc;) {
		int words;

		if (is(argv[i], "--"))
			return i + 1 < argc;
		if (argv[i][0] != '-')
			return true;
		words = plain_option(argv[i]);
		if (words == 0)
			return false;
		*ret_json |= is(argv[i], "--json");
		i += words;
	}
	return false;
}

/* Whose rights are not the caller's own has no business here. */
static bool is_trusted(char **envp)
{
	const unsigned long *auxv;

	while (*envp)
		envp++;
	for (auxv = (const unsigned long *)(envp + 1); auxv[0] != AT_NULL; auxv += 2)
		if (auxv[0] == AT_SECURE)
			return auxv[1] == 0;
	return false;
}

static bool has_standard_streams(void)
{
	for (int fd = 0; fd < 3; fd++)
		if (nc_rawcall(SYS_fcntl, fd, F_GETFD, 0, 0) < 0)
			return false;
	return true;
}

static char *append(char *out, const char *text)
{
	while (*text)
		*out++ = *text++;
	*out = '\0';
	return out;
}

static void append_number(char *out, long number)
{
	char digits[24];
	size_t n = sizeof(digits) - 1;

	digits[n] = '\0';
	do
		digits[--n] = (char)('0' + number % 10);
	while ((number /= 10) > 0);
	append(out, digits + n);
}

static bool is_executable(const char *path)
{
	return nc_rawcall(SYS_faccessat, AT_FDCWD, (long)path, 1, 0) == 0;
}

/* The same two places as nc_program_find. */
static bool find_program(const char *own, const char *name, char path[static PATH_SIZE])
{
	char *end = append(path, own);

	while (end > path && end[-1] != '/')
		end--;
	append(end, name);
	if (is_executable(path))
		return true;
	append(append(path, NACRE_LIBEXECDIR "/"), name);
	return is_executable(path);
}

/* With room for the name of a fellow. */
static bool find_self(char path[static PATH_SIZE])
{
	long room = PATH_SIZE - (long)sizeof("/" SPAWNER);
	long length =
		nc_rawcall(SYS_readlinkat, AT_FDCWD, (long)"/proc/self/exe", (long)path, room);

	if (length <= 0 || length >= room)
		return false;
	path[length] = '\0';
	return true;
}

/* For a program that finds it as SOCKET_FD. */
static bool place(int socket_fd)
{
	return (socket_fd == SOCKET_FD ? nc_rawcall(SYS_fcntl, socket_fd, F_SETFD, 0, 0)
				       : nc_rawcall(SYS_dup3, socket_fd, SOCKET_FD, 0, 0)) >= 0;
}

_Noreturn static void become_spawner(const char *path, int socket_fd, long worker, char **envp)
{
	static const char failure[] = "nacre: " SPAWNER " cannot be executed\n";
	char name[] = SPAWNER, pid[24], ready[] = "1", given[] = "0";
	char *argv[] = {name, pid, ready, given, NULL};

	append_number(pid, worker);
	if (place(socket_fd))
		nc_rawcall(SYS_execve, (long)path, (long)argv, (long)envp, 0);
	nc_rawcall(SYS_write, 2, (long)failure, sizeof(failure) - 1, 0);
	for (;;) /* and the worker with us: it looks who its parent is */
		nc_rawcall(SYS_exit_group, EXIT_SELF, 0, 0, 0);
}

/* Returns the worker's end where it is now: that program is not here, or cannot be executed. */
static int become_worker(char *own, int socket_fd, char **argv, char **envp)
{
	char path[PATH_SIZE], *name = argv[0];

	if (!find_program(own, WORKER, path) || !place(socket_fd))
		return socket_fd;
	argv[0] = own; /* so that it finds us, should it not do */
	nc_rawcall(SYS_execve, (long)path, (long)argv, (long)envp, 0);
	argv[0] = name;
	nc_rawcall(SYS_fcntl, SOCKET_FD, F_SETFD, FD_CLOEXEC, 0);
	return SOCKET_FD;
}

/* nacre-exec has become us again. */
static bool was_begun(char **envp)
{
	long parent = 0;

	for (; *envp; envp++) {
		const char *digits = after(*envp, "NACRE_BEGUN=");

		while (digits && *digits >= '0' && *digits <= '9' && parent < 1L << 22)
			parent = 10 * parent + (*digits++ - '0');
	}
	if (parent == 0)
		return false;
	nc_rawcall(SYS_fcntl, SOCKET_FD, F_SETFD, FD_CLOEXEC, 0);
	nc_early = (struct nc_early){.fd = SOCKET_FD, .parent = (int)parent};
	return true;
}

/*
 * The child begins on another processor than ours: else the kernel moves us away to one at our
 * execve, and both stand still meanwhile. Where that fails, they do.
 */
static void send_away(long child)
{
	unsigned long mine[16] = {0}, others[16];
	unsigned int processor = 0;
	long size = nc_rawcall(SYS_sched_getaffinity, 0, sizeof(mine), (long)mine, 0);

	if (size <= 0 || nc_rawcall(SYS_getcpu, (long)&processor, 0, 0, 0) < 0)
		return;
	for (long i = 0; i < size / 8; i++)
		others[i] = mine[i] & ~((long)processor / 64 == i ? 1UL << processor % 64 : 0);
	if (nc_rawcall(SYS_sched_setaffinity, child, size, (long)others, 0) == 0)
		nc_rawcall(SYS_sched_setaffinity, child, size, (long)mine, 0);
}

void nc_early_main(long *stack);

__attribute__((used)) void nc_early_main(long *stack)
{
	long argc = stack[0], parent, child;
	char **argv = (char **)(stack + 1), **envp = argv + argc + 1;
	char own[PATH_SIZE], path[PATH_SIZE];
	bool json = false;
	int ends[2] = {-1, -1};

	if (!is_plain_exec(argc, argv, &json) || !is_trusted(envp) || was_begun(envp) ||
		!has_standard_streams() || !find_self(own) || !find_program(own, SPAWNER, path) ||
		nc_rawcall(SYS_socketpair, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, (long)ends) <
			0)
		return;
	parent = nc_rawcall(SYS_getpid, 0, 0, 0, 0);
	child = nc_rawcall(SYS_clone, SIGCHLD, 0, 0, 0);
	if (child > 0) {
		send_away(child);
		become_spawner(path, ends[0], child, envp);
	}
	nc_rawcall(SYS_close, ends[0], 0, 0, 0);
	if (child < 0) {
		nc_rawcall(SYS_close, ends[1], 0, 0, 0);
		return;
	}
	if (!json)
		ends[1] = become_worker(own, ends[1], argv, envp);
	nc_early = (struct nc_early){.fd = ends[1], .parent = (int)parent};
}
