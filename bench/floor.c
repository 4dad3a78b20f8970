/*
 * The least that a cold run can take: bench/exec.py compares it. The caller's program begins before
 * its libc (-DFRONT, without one), and becomes another, as the spawner has to be; that makes a
 * process in seven new namespaces, which becomes the command, and waits for it. No worker, root,
 * mapped ids, process 1, control group, Landlock or filter.
 */
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>

#ifdef FRONT
#include "base/rawcall.h"

#if defined(__x86_64__)
__asm__(".globl _start\n"
	"_start:\n"
	"	mov %rsp, %rdi\n"
	"	and $-16, %rsp\n"
	"	call front\n");
#elif defined(__aarch64__)
__asm__(".globl _start\n"
	"_start:\n"
	"	mov x0, sp\n"
	"	bl front\n");
#endif
_Noreturn void front(long *stack);

/* NEXT is where the other half is; the words go along. */
_Noreturn void front(long *stack)
{
	char **argv = (char **)(stack + 1);

	nc_rawcall(SYS_execve, (long)NEXT, (long)argv, (long)(argv + stack[0] + 1), 0);
	for (;;)
		nc_rawcall(SYS_exit_group, 125, 0, 0, 0);
}
#else
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct clone_args arguments = {.flags = CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS |
						CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNET |
						CLONE_NEWCGROUP,
		.exit_signal = SIGCHLD};
	long pid = argc > 1 ? syscall(SYS_clone3, &arguments, sizeof(arguments)) : -1;
	int status = 0;

	if (pid == 0) {
		(void)execv(argv[1], argv + 1);
		_exit(127);
	}
	if (pid < 0 || waitpid((pid_t)pid, &status, 0) < 0)
		return 125;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
#endif
