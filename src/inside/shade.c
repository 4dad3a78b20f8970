/* A process that keeps another's memory. */
#include "inside/shade.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#else
#error "A shade knows no system calls of this processor"
#endif

/* For a few calls that use next to none of it. */
#define STACK_SIZE 2048

static char stack[STACK_SIZE] __attribute__((aligned(16)));
static atomic_bool held;

/* It sleeps or dies: both have the memory, so what it executes may be anything by then. */
static int allow_sleep(void)
{
	static struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ppoll, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	static const struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};

	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static int be_shade(void *unused)
{
	(void)unused;
	if (close_range(0, ~0U, 0) < 0 || allow_sleep() < 0)
		_exit(1); /* and whoever waits for it waits until the box is given up */
	atomic_store(&held, true);
	for (;;)
		(void)syscall(SYS_ppoll, NULL, 0, NULL, NULL, 0);
}

int nc_shade_make(void)
{
	sigset_t every, before;
	int pidfd = -EBADF, r;

	(void)sigfillset(&every);
	if (sigprocmask(SIG_SETMASK, &every, &before) < 0)
		return -errno;
	/* without a signal at its end: wait() does not know it */
	r = clone(be_shade, stack + sizeof(stack), CLONE_VM | CLONE_PIDFD, NULL, &pidfd);
	if (r < 0)
		pidfd = -errno;
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	return pidfd;
}

void nc_shade_wait(void)
{
	while (!atomic_load(&held))
		(void)sched_yield();
}
