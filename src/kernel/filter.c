/* Loads the system call filters. */
#include "kernel/filter.h"

#include <assert.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernel/filter_bytes.h"

/*
 * All threads or none. The caller has one; should it have more after all, then a thread that cannot
 * follow must be an error: without TSYNC_ESRCH it would be a positive number, which a listener is
 * as well.
 */
#define FLAGS (SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_TSYNC_ESRCH)

/* Where the kernel has an int: the low half of a register, on little-endian processors. */
#define FIRST_ARGUMENT offsetof(struct seccomp_data, args)

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#else
#error "the filters know no system calls of this processor"
#endif

/* Builds for tests only: the leak check traces its own process, coverage writes its counters. */
static bool is_left_out(enum nc_filter which)
{
#if defined(__SANITIZE_ADDRESS__)
	return which == NC_FILTER_WORKER || which == NC_FILTER_RECORDER ||
	       which == NC_FILTER_SERVER || which == NC_FILTER_EGRESS ||
	       which == NC_FILTER_COURIER || which == NC_FILTER_ANALYST ||
	       which == NC_FILTER_RELAY || which == NC_FILTER_SPAWNER;
#elif defined(NACRE_COVERAGE)
	return which == NC_FILTER_WORKER || which == NC_FILTER_RECORDER ||
	       which == NC_FILTER_SERVER || which == NC_FILTER_EGRESS ||
	       which == NC_FILTER_COURIER || which == NC_FILTER_ANALYST || which == NC_FILTER_RELAY;
#else
	(void)which;
	return false;
#endif
}

static long load(const struct sock_filter *code, size_t length, unsigned int flags)
{
	struct sock_fprog program = {.len = (unsigned short)length};
	long r;

	/* the kernel copies it, but its struct does not say so */
	program.filter = (struct sock_filter *)(uintptr_t)code;
	r = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
	return r < 0 ? -errno : r;
}

int nc_filter_load(enum nc_filter which, int *ret_listener_fd)
{
	unsigned int flags = ret_listener_fd ? FLAGS | SECCOMP_FILTER_FLAG_NEW_LISTENER : FLAGS;
	const struct sock_filter *code;
	size_t length;
	long r;

	code = nc_filter_program(
		which, ret_listener_fd ? NC_FILTER_REPORTING : NC_FILTER_PLAIN, &length);
	if (!code)
		return -EINVAL;
	if (is_left_out(which))
		return 0;
	r = load(code, length, flags);
	if (r < 0)
		return (int)r;
	if (ret_listener_fd)
		*ret_listener_fd = (int)r; /* born with CLOEXEC */
	return 0;
}

int nc_filter_load_own_signals(void)
{
	const uint32_t pid = (uint32_t)getpid(), group = (uint32_t)-getpgrp();
	const struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_kill, 7, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_tgkill, 9, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_tkill, 8, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigqueueinfo, 7, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_tgsigqueueinfo, 6, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_send_signal, 8, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_setsid, 7, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		/* kill: 0 is the group too */
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, FIRST_ARGUMENT),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, group, 2, 0),
		/* the others: a thread of this process, by the kernel's own check; or its first */
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, FIRST_ARGUMENT),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, pid, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
	};
	long r = load(code, sizeof(code) / sizeof(code[0]), FLAGS);

	return r < 0 ? (int)r : 0;
}

const char *nc_filter_call_name(int number)
{
	if (number < 0 || (size_t)number >= nc_filter_n_names)
		return NULL;
	return nc_filter_names[number];
}

const struct sock_filter *nc_filter_program(
	enum nc_filter which, enum nc_filter_variant variant, size_t *ret_length)
{
	assert((unsigned int)which < NC_FILTER_MAX);
	assert((unsigned int)variant < NC_FILTER_VARIANT_MAX);
	*ret_length = nc_filter_bytes[which][variant].length;
	return nc_filter_bytes[which][variant].code;
}
