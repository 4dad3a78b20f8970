/* The process `nacre engine`. */
#include "library/program.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/pidfd.h"

/* Where `nacre engine` expects its socket. */
#define ENGINE_FD 3
/* Hanging up ends everything within moments; what takes longer is stuck. */
#define END_SECONDS 30
#define ARGUMENTS_MAX 12
#define EXIT_NO_PROGRAM 127

static bool is_program(const char *path)
{
	struct stat status;

	return stat(path, &status) == 0 && S_ISREG(status.st_mode) && access(path, X_OK) == 0;
}

/* In a build tree the executable stands beside the library, or beside a program that has it inside.
 */
static bool find_beside(char *path, size_t size)
{
	Dl_info info;
	const char *slash;

	if (dladdr((const void *)(uintptr_t)nc_program_start, &info) == 0 || !info.dli_fname ||
		info.dli_fname[0] != '/')
		return false;
	slash = strrchr(info.dli_fname, '/');
	return snprintf(path, size, "%.*s/nacre", (int)(slash - info.dli_fname), info.dli_fname) <
		       (int)size &&
	       is_program(path);
}

static int find_program(const char *wanted, char *path, size_t size, struct nacre_err *err)
{
	/* who is more than his caller does not run what that one names */
	bool trusts = getauxval(AT_SECURE) == 0;
	const char *named = wanted ? wanted : trusts ? getenv("NACRE_PROGRAM") : NULL;

	if (named && *named) {
		if (snprintf(path, size, "%s", named) >= (int)size)
			return nc_err_set(err, -ENAMETOOLONG, "The path of nacre");
		return is_program(path) ? 0 : nc_err_errno(err, -ENOENT, "Find '%s'", path);
	}
	(void)snprintf(path, size, "%s", NACRE_BINDIR "/nacre");
	if (is_program(path) || (trusts && find_beside(path, size)))
		return 0;
	return nc_err_set(err, -ENOENT,
		"There is no executable " NACRE_BINDIR "/nacre: install it, or name it with "
		"NACRE_PROGRAM");
}

/* The words of the command line, with room for their numbers. */
struct words {
	char running[16], queued[16], memory[32];
	const char *word[ARGUMENTS_MAX];
	size_t count;
};

static void add_number(
	struct words *words, const char *option, char *room, size_t size, uint64_t value)
{
	if (value == 0)
		return;
	(void)snprintf(room, size, "%llu", (unsigned long long)value);
	words->word[words->count++] = option;
	words->word[words->count++] = room;
}

static void make_words(struct words *words, const struct nacre_engine_options *options)
{
	uint64_t memory_mb = (options->memory_bytes + (1 << 20) - 1) >> 20;

	words->word[words->count++] = "nacre";
	words->word[words->count++] = "engine";
	if (options->config_dir) {
		words->word[words->count++] = "--config";
		words->word[words->count++] = options->config_dir;
	}
	add_number(words, "--max-running", words->running, sizeof(words->running),
		options->max_running);
	add_number(
		words, "--max-queued", words->queued, sizeof(words->queued), options->max_queued);
	add_number(words, "--memory", words->memory, sizeof(words->memory), memory_mb);
	if (options->no_cache)
		words->word[words->count++] = "--no-cache";
}

/*
 * In the child, which may be a copy of a process with threads: system calls alone. What the caller
 * blocks or ignores, has open or reads from is none of its business. fds: what it gets as standard
 * output and as descriptor 3; -EBADF: /dev/null, and nothing.
 */
_Noreturn static void become_program(const char *path, const char *const *words, const int fds[2])
{
	const struct sigaction standard = {.sa_handler = SIG_DFL};
	int socket_fd = -EBADF, output_fd = -EBADF, null_fd, r = 0;
	sigset_t none;

	(void)sigemptyset(&none);
	for (int i = 1; i < NSIG; i++)
		(void)sigaction(i, &standard, NULL); /* two cannot be changed */
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	/* out of the way of the places where they go */
	null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	null_fd = null_fd < 0 ? null_fd : fcntl(null_fd, F_DUPFD_CLOEXEC, ENGINE_FD + 1);
	output_fd = fds[0] < 0 ? null_fd : fcntl(fds[0], F_DUPFD_CLOEXEC, ENGINE_FD + 1);
	if (fds[1] >= 0)
		r |= socket_fd = fcntl(fds[1], F_DUPFD_CLOEXEC, ENGINE_FD + 1);
	if (output_fd < 0 || null_fd < 0)
		_exit(EXIT_NO_PROGRAM);
	r |= dup2(null_fd, STDIN_FILENO);
	r |= dup2(output_fd, STDOUT_FILENO);
	if (fcntl(STDERR_FILENO, F_GETFD) < 0)
		r |= dup2(null_fd, STDERR_FILENO);
	if (socket_fd >= 0)
		r |= dup2(socket_fd, ENGINE_FD);
	if (r >= 0 && close_range(socket_fd >= 0 ? ENGINE_FD + 1 : ENGINE_FD, ~0U, 0) == 0)
		(void)execv(path, (char *const *)(uintptr_t)words);
	_exit(EXIT_NO_PROGRAM);
}

/* The child's pid, or -errno. No handler of the caller's may run in the child. */
static pid_t fork_program(const char *path, const char *const *words, const int fds[2])
{
	sigset_t all, before;
	pid_t pid;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	pid = fork();
	if (pid == 0)
		become_program(path, words, fds);
	if (pid < 0)
		pid = -errno;
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return pid;
}

int nc_program_start(struct nc_program *program, const struct nacre_engine_options *options,
	struct nacre_err *err)
{
	cleanup_close int ours = -EBADF, theirs = -EBADF;
	struct words words = {0};
	char path[4096];
	int ends[2], pidfd;
	pid_t pid;
	int r = find_program(options->program, path, sizeof(path), err);

	if (r < 0)
		return r;
	make_words(&words, options);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return nc_err_errno(err, -errno, "Make a socket pair");
	ours = ends[0];
	theirs = ends[1];
	if (fcntl(ours, F_SETFL, O_NONBLOCK) < 0)
		return nc_err_errno(err, -errno, "Prepare the socket");
	pid = fork_program(path, words.word, (const int[]){-EBADF, theirs});
	if (pid < 0)
		return nc_err_errno(err, (int)pid, "Fork");
	pidfd = nc_pidfd_open(pid);
	if (pidfd < 0 && pidfd != -ENOSYS) {
		ours = nc_fd_close(ours); /* which ends it */
		(void)waitpid(pid, NULL, 0);
		return nc_err_errno(err, pidfd, "Hold the engine's process");
	}
	*program = (struct nc_program){.fd = take_fd(ours),
		.pidfd = pidfd < 0 ? -EBADF : pidfd,
		.pid = pidfd < 0 ? pid : 0};
	return 0;
}

/* Waits for it; what it said on standard error was the caller's to see. */
static int wait_for(pid_t pid, struct nacre_err *err)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return nc_err_errno(err, -errno, "Wait for nacre");
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	return nc_err_set(err, -EIO, "nacre ended with %s %d",
		WIFEXITED(status) ? "status" : "signal",
		WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
}

int nc_program_ask(const char *program, const char *const *words, size_t max, char **ret_text,
	struct nacre_err *err)
{
	cleanup_close int ours = -EBADF, theirs = -EBADF;
	cleanup_free char *text = NULL;
	char path[4096];
	size_t size;
	int ends[2], ended, r = find_program(program, path, sizeof(path), err);
	pid_t pid;

	if (r < 0)
		return r;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return nc_err_errno(err, -errno, "Make a pipe");
	ours = ends[0];
	theirs = ends[1];
	pid = fork_program(path, words, (const int[]){theirs, -EBADF});
	if (pid < 0)
		return nc_err_errno(err, (int)pid, "Fork");
	theirs = nc_fd_close(theirs);
	r = nc_fd_read_all(ours, max, &text, &size);
	ours = nc_fd_close(ours); /* a program that says too much is not waited for in vain */
	ended = wait_for(pid, err);
	if (ended < 0)
		return ended;
	if (r < 0)
		return nc_err_errno(err, r, "Read what nacre says");
	*ret_text = take_ptr(text);
	return 0;
}

/*
 * Without a pidfd the child is waited for by its number, which stays its own until somebody has
 * waited for it: if the caller has, there is nothing left to wait for or to kill.
 */
static void end_by_number(pid_t pid, uint64_t deadline_ns)
{
	const struct timespec pause = {.tv_nsec = 5000000};
	pid_t r;

	while ((r = waitpid(pid, NULL, WNOHANG)) == 0 && nc_clock_ns() < deadline_ns)
		(void)nanosleep(&pause, NULL);
	if (r == 0 && pid > 1) {
		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, NULL, 0);
	}
}

void nc_program_end(struct nc_program *program)
{
	uint64_t deadline_ns = nc_clock_ns() + END_SECONDS * NC_NS_PER_S;
	siginfo_t info;

	program->fd = nc_fd_close(program->fd);
	if (program->pid > 0)
		end_by_number(program->pid, deadline_ns);
	program->pid = 0;
	if (program->pidfd < 0)
		return;
	if (nc_pidfd_wait(program->pidfd, deadline_ns, &info) == -ETIMEDOUT)
		program->pidfd = nc_pidfd_end(program->pidfd);
	program->pidfd = nc_fd_close(program->pidfd);
}
