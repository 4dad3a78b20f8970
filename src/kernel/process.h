/* Processes as /proc shows them, one by one. Whatever is read here may be over a moment later. */
#ifndef NC_PROCESS_H
#define NC_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A process cannot be more of itself: the pid and the moment of its start name it for good. */
struct nc_process {
	pid_t pid;
	pid_t parent;
	uint64_t start_ticks; /* since the machine started */
	uint64_t user_us;     /* of itself and of those that it has waited for */
	uint64_t system_us;
	uint64_t threads;
	bool dead;     /* a zombie: it runs no more */
	char name[16]; /* foreign: it may name itself */
};

/* 0, -ESRCH: there is none any more; or another -errno. */
int nc_process_read(pid_t pid, struct nc_process *ret_process);

/* All that can be seen, in no order, at most NC_PROCESSES_MAX. The caller frees *ret_list. */
int nc_process_list(struct nc_process **ret_list, size_t *ret_count);

/*
 * A file of the process, at most size - 1 bytes of it with a NUL behind. How many bytes, or as
 * nc_process_read.
 */
ssize_t nc_process_text(pid_t pid, const char *file, char *ret_text, size_t size);

/* Whether it is still the same process. */
bool nc_process_is(const struct nc_process *process);

/*
 * Memory of its own, and its part of what it shares with others (PSS), so that sums are right; if
 * we may not know: what it has of its own or shares by fork. 0 also if it is gone. The kernel goes
 * through all that it has, a millisecond for some hundred MiB: not for whoever is in a hurry.
 */
uint64_t nc_process_memory(pid_t pid);

/* Bytes from and to disks, of itself and of those that it has waited for; zeros if we may not know.
 */
void nc_process_io(pid_t pid, uint64_t *ret_read, uint64_t *ret_written);

/* Open descriptors; 0 if we may not know. */
uint64_t nc_process_files(pid_t pid);

/* How many pid namespaces it is in, and its number in the innermost; {0, 0} if it is gone. */
struct nc_process_depth {
	size_t namespaces;
	pid_t innermost;
};

struct nc_process_depth nc_process_depth(pid_t pid);

/* Seconds since its start. */
uint64_t nc_process_age(const struct nc_process *process);

#endif
