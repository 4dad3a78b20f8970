/*
 * nacre-init: process 1 of a box. It reaps what is orphaned and holds the namespaces open; when it
 * is killed from outside, everything in the box dies with it. It never starts or serves anything,
 * so it needs nothing: no libc (whose start-up costs more than all the rest in a virtual machine),
 * no memory, and after its first lines only the few system calls of its filter.
 *
 * It is entered with descriptor 3 as the one open descriptor, on which it says that it is ready.
 */
#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <linux/signal.h>
#include <linux/wait.h>
#include <sys/syscall.h>

#include "base/rawcall.h"
#include "kernel/filter_bytes.h"

#define READY_FD 3

#if defined(__x86_64__)
__asm__(".globl _start\n"
	"_start:\n"
	"	xor %ebp, %ebp\n"
	"	and $-16, %rsp\n"
	"	call init_main\n");
#elif defined(__aarch64__)
__asm__(".globl _start\n"
	"_start:\n"
	"	mov x29, #0\n"
	"	bl init_main\n");
#endif

_Noreturn void init_main(void);

_Noreturn void init_main(void)
{
	const struct nc_filter_bytes *filter = &nc_filter_bytes[NC_FILTER_INIT][NC_FILTER_PLAIN];
	struct sock_fprog program = {
		.len = filter->length, .filter = (struct sock_filter *)filter->code};
	unsigned long every_signal = ~0UL;
	unsigned long child_signal = 1UL << (SIGCHLD - 1);

	/* nobody in the box may look into this process, also where it has the payload's user id */
	if (nc_rawcall(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0) < 0 ||
		nc_rawcall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, (long)&program, 0) < 0 ||
		nc_rawcall(SYS_rt_sigprocmask, SIG_BLOCK, (long)&every_signal, 0, 8) < 0 ||
		nc_rawcall(SYS_write, READY_FD, (long)"r", 1, 0) != 1 ||
		nc_rawcall(SYS_close, READY_FD, 0, 0, 0) < 0)
		nc_rawcall(SYS_exit_group, 1, 0, 0, 0);
	for (;;) {
		/* with no child at all wait4 would return at once: sleep until one ends */
		nc_rawcall(SYS_rt_sigtimedwait, (long)&child_signal, 0, 0, 8);
		while (nc_rawcall(SYS_wait4, -1, 0, WNOHANG | __WALL, 0) > 0)
			;
	}
}
