/* Loads the system call filters. */
#include "kernel/filter.h"

#include <assert.h>
#include <errno.h>
#include <linux/seccomp.h>
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

int nc_filter_load(enum nc_filter which, int *ret_listener_fd)
{
	unsigned int flags = ret_listener_fd ? FLAGS | SECCOMP_FILTER_FLAG_NEW_LISTENER : FLAGS;
	struct sock_fprog program = {0};
	const struct sock_filter *code;
	size_t length;
	long r;

	code = nc_filter_program(
		which, ret_listener_fd ? NC_FILTER_REPORTING : NC_FILTER_PLAIN, &length);
	program.len = (unsigned short)length;
	/* the kernel copies it, but its struct does not say so */
	program.filter = (struct sock_filter *)(uintptr_t)code;
	r = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
	if (r < 0)
		return -errno;
	if (ret_listener_fd)
		*ret_listener_fd = (int)r; /* born with CLOEXEC */
	return 0;
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
