/*
 * Runs a command and makes one system call of one of its processes fail.
 *
 *	inject REPORT UID trace -- COMMAND...
 *	inject REPORT UID PROCESS EXECS NUMBER WHEN ERROR -- COMMAND...
 *
 * strace counts the calls of each process apart and hits all of them, so that the spawner would
 * always fail before the box does; here one process is named: by the order of birth (0 is the
 * command itself) and by the number of programs that it has become so far. The call with NUMBER,
 *for the WHEN-th time in that program, is not made and gives ERROR. A seccomp filter stops only at
 *that number, so that a run costs hardly more than without us.
 *
 * REPORT gets lines: "call P E NUMBER" (trace only), "exec P E" ("init P E" for nacre-init) and
 *then "limit FILE VALUE" of the control groups of that program, "spawner ID" as soon as it is
 *known, "hit" at the fault, "landlock R" (what landlock_restrict_self gave), "crash P E SIGNAL",
 *"left N" (processes that outlive the command by two seconds), "exit CODE" or "signal NUMBER", and
 *"mounts N" if there are N more than before.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROCESSES_MAX 4096
#define PATIENCE_SECONDS 2

static struct process {
	pid_t pid;
	int alive;
	int execs;
	int calls; /* of the number that fails, since the last exec */
} processes[PROCESSES_MAX];

static struct {
	int process, execs, number, when, error;
} fault = {.number = -1};

static int n_processes, n_alive;
static FILE *report;
static volatile sig_atomic_t impatient;

static void die(const char *what)
{
	fprintf(stderr, "inject: %s: %s\n", what, strerror(errno));
	_exit(99);
}

static void on_alarm(int number)
{
	(void)number;
	impatient = 1;
}

static struct process *find(pid_t pid)
{
	for (int i = n_processes - 1; i >= 0; i--)
		if (processes[i].pid == pid)
			return &processes[i];
	return NULL;
}

static struct process *add(pid_t pid)
{
	struct process *known = find(pid);

	if (known)
		return known; /* its parent's event may come after its own first stop, and even its
				 end */
	if (n_processes == PROCESSES_MAX)
		die("too many processes");
	processes[n_processes] = (struct process){.pid = pid, .alive = 1};
	n_alive++;
	return &processes[n_processes++];
}

/* Stops at one number and at landlock_restrict_self, or at everything. */
static void filter_self(void)
{
	struct sock_filter some[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned int)fault.number, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_landlock_restrict_self, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_filter all[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE)};
	struct sock_fprog program = {5, some};

	if (fault.number < 0)
		program = (struct sock_fprog){1, all};
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
		die("seccomp");
}

static void become(unsigned int uid)
{
	if (uid && (setgroups(0, NULL) < 0 || setresgid(uid, uid, uid) < 0 ||
			   setresuid(uid, uid, uid) < 0))
		die("change the user");
}

static pid_t start(unsigned int uid, char **command)
{
	const long options = PTRACE_O_EXITKILL | PTRACE_O_TRACESECCOMP | PTRACE_O_TRACEEXEC |
			     PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE |
			     PTRACE_O_TRACESYSGOOD;
	int go[2];
	char byte;
	pid_t pid;

	if (pipe2(go, O_CLOEXEC) < 0)
		die("pipe");
	pid = fork();
	if (pid == 0) {
		if (read(go[0], &byte, 1) != 1)
			_exit(99);
		filter_self();
		become(uid);
		(void)execv(command[0], command);
		die(command[0]);
	}
	if (pid < 0 || ptrace(PTRACE_SEIZE, pid, 0, options) < 0)
		die("start");
	if (write(go[1], "g", 1) != 1)
		die("start");
	(void)close(go[0]);
	(void)close(go[1]);
	return pid;
}

/* One file of a control group, if it is there. */
static void tell_limit(const char *controllers, const char *path, const char *file)
{
	char name[4096], text[128] = "";
	int fd;
	ssize_t n;

	(void)snprintf(name, sizeof(name), "/sys/fs/cgroup/%s%s/%s", controllers, path, file);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	n = read(fd, text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	fprintf(report, "limit %s %s\n", file, text);
	(void)close(fd);
}

/* What the control groups of a process allow it. */
static void tell_limits(pid_t pid)
{
	static const char *const files[] = {"memory.limit_in_bytes", "memory.memsw.limit_in_bytes",
		"memory.max", "memory.swap.max", "pids.max", "cpu.cfs_quota_us", "cpu.max",
		"cgroup.type"};
	char line[4096];
	FILE *groups;

	(void)snprintf(line, sizeof(line), "/proc/%d/cgroup", (int)pid);
	groups = fopen(line, "re");
	while (groups && fgets(line, sizeof(line), groups)) {
		char *controllers = strchr(line, ':') + 1;
		char *path = strchr(controllers, ':');

		*path++ = '\0';
		path[strcspn(path, "\n")] = '\0';
		for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
			tell_limit(controllers, path, files[i]);
			if (!*controllers)
				tell_limit("unified", path, files[i]);
		}
	}
	if (groups)
		(void)fclose(groups);
}

/* The id of the spawner, from the lock that it holds open. */
static void tell_spawner(pid_t pid)
{
	char name[64], target[256];
	ssize_t n;

	for (int fd = 3; fd < 64; fd++) {
		(void)snprintf(name, sizeof(name), "/proc/%d/fd/%d", (int)pid, fd);
		n = readlink(name, target, sizeof(target) - 1);
		target[n > 0 ? n : 0] = '\0';
		if (strncmp(target, "/run/nacre/spawners/sp_", 23) == 0)
			fprintf(report, "spawner %s\n", target + 20);
	}
}

/* At a call that the filter stops. Whether its end is of interest. */
static int at_call(struct process *process)
{
	struct user_regs_struct registers;
	int index = (int)(process - processes);

	if (ptrace(PTRACE_GETREGS, process->pid, 0, &registers) < 0)
		return 0; /* killed meanwhile */
	if (fault.number < 0)
		fprintf(report, "call %d %d %d\n", index, process->execs, (int)registers.orig_rax);
	if ((int)registers.orig_rax == fault.number && ++process->calls == fault.when &&
		index == fault.process && process->execs == fault.execs) {
		fputs("hit\n", report);
		if (index == 0)
			tell_spawner(process->pid);
		registers.orig_rax = (unsigned long long)-1;
		registers.rax = (unsigned long long)-fault.error;
		(void)ptrace(PTRACE_SETREGS, process->pid, 0, &registers);
		return 0;
	}
	return registers.orig_rax == SYS_landlock_restrict_self;
}

static void at_end_of_call(const struct process *process)
{
	struct user_regs_struct registers;

	if (ptrace(PTRACE_GETREGS, process->pid, 0, &registers) == 0)
		fprintf(report, "landlock %lld\n", (long long)registers.rax);
}

static void at_exec(struct process *process)
{
	char link[64], target[4096];
	ssize_t n;

	process->execs++;
	process->calls = 0;
	(void)snprintf(link, sizeof(link), "/proc/%d/exe", (int)process->pid);
	n = readlink(link, target, sizeof(target) - 1);
	target[n > 0 ? n : 0] = '\0';
	/* nacre-init is a sealed copy in memory; a box that failed has one too */
	fprintf(report, "%s %d %d\n", strncmp(target, "/memfd:", 7) == 0 ? "init" : "exec",
		(int)(process - processes), process->execs);
	tell_limits(process->pid);
	if (process == &processes[2]) /* nacre-init: the worker, 1, executes nothing */
		tell_spawner(processes[0].pid);
}

/* Mounts of our own: nobody else's come and go there, and they spread as a host's would. */
static void take_mounts(void)
{
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		mount(NULL, "/", NULL, MS_REC | MS_SHARED, NULL) < 0)
		die("make a mount namespace");
}

static int count_mounts(void)
{
	FILE *mounts = fopen("/proc/self/mountinfo", "re");
	int c, n = 0;

	if (!mounts)
		die("count mounts");
	while ((c = getc(mounts)) != EOF)
		n += c == '\n';
	(void)fclose(mounts);
	return n;
}

static int is_crash(int number)
{
	return number == SIGSEGV || number == SIGBUS || number == SIGILL || number == SIGFPE ||
	       number == SIGABRT || number == SIGSYS || number == SIGTRAP;
}

/* One stop of one process, which goes on afterwards. */
static void at_stop(pid_t pid, int status)
{
	struct process *process = add(pid);
	int event = status >> 16, number = WSTOPSIG(status), deliver = 0;
	int how = PTRACE_CONT;
	unsigned long child;

	if (number == (SIGTRAP | 0x80)) {
		at_end_of_call(process);
	} else if (event == PTRACE_EVENT_SECCOMP) {
		how = at_call(process) ? PTRACE_SYSCALL : PTRACE_CONT;
	} else if (event == PTRACE_EVENT_EXEC) {
		at_exec(process);
	} else if (event == PTRACE_EVENT_FORK || event == PTRACE_EVENT_VFORK ||
		   event == PTRACE_EVENT_CLONE) {
		if (ptrace(PTRACE_GETEVENTMSG, pid, 0, &child) == 0)
			(void)add((pid_t)child);
	} else if (event == 0) {
		deliver = number;
		if (is_crash(number))
			fprintf(report, "crash %d %d %d\n", (int)(process - processes),
				process->execs, number);
	}
	(void)ptrace((enum __ptrace_request)how, pid, 0, deliver);
}

static void follow(pid_t first)
{
	int status, end = 0;
	pid_t pid;

	while (n_alive > 0 && !impatient) {
		pid = waitpid(-1, &status, __WALL);
		if (pid < 0 && errno == EINTR)
			continue;
		if (pid < 0)
			break;
		if (WIFSTOPPED(status)) {
			at_stop(pid, status);
			continue;
		}
		n_alive -= add(pid)->alive;
		add(pid)->alive = 0;
		if (pid == first) {
			end = status;
			(void)alarm(PATIENCE_SECONDS);
		}
	}
	if (n_alive > 0)
		fprintf(report, "left %d\n", n_alive);
	if (WIFSIGNALED(end))
		fprintf(report, "signal %d\n", WTERMSIG(end));
	else
		fprintf(report, "exit %d\n", WEXITSTATUS(end));
}

int main(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = on_alarm};
	int at = 4, mounts;
	pid_t first;

	if (argc > 9 && strcmp(argv[3], "trace") != 0) {
		fault.process = atoi(argv[3]);
		fault.execs = atoi(argv[4]);
		fault.number = atoi(argv[5]);
		fault.when = atoi(argv[6]);
		fault.error = atoi(argv[7]);
		at = 8;
	}
	if (argc <= at + 1 || strcmp(argv[at], "--") != 0) {
		fputs("inject: wrong arguments\n", stderr);
		return 99;
	}
	report = fopen(argv[1], "we");
	if (!report)
		die(argv[1]);
	(void)sigaction(SIGALRM, &action, NULL);
	take_mounts();
	mounts = count_mounts();
	first = start((unsigned int)atoi(argv[2]), argv + at + 1);
	(void)add(first);
	follow(first);
	if (count_mounts() != mounts)
		fprintf(report, "mounts %d\n", count_mounts() - mounts);
	return fclose(report) == 0 ? 0 : 99;
}
