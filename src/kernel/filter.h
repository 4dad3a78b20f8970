/*
 * The system call filters that boxes run under. The policy is in filter_table.h, compiled to BPF at
 * build time by filter_gen.c: the programs that load a filter link nothing but libc.
 */
#ifndef NC_FILTER_H
#define NC_FILTER_H

#include <stddef.h>

struct sock_filter;

enum nc_filter {
	NC_FILTER_CONTAINER, /* the payload of a container box: it has namespaces of its own */
	NC_FILTER_SHARED,    /* the same, where it can make files that stay on the host */
	NC_FILTER_PROCESS,   /* the payload of a process box: it may have none */
	NC_FILTER_ALONE,     /* the same, and no new processes: nothing can survive its end */
	NC_FILTER_INIT,	     /* nacre-init: waits, reaps, reports */
	NC_FILTER_WORKER,    /* our side without privilege, once it holds what it needs */
	NC_FILTER_SPAWNER,   /* the spawner and all that it starts: see filter_table.h */
	NC_FILTER_RECORDER,  /* nacre-recorder: files of one directory, and its sockets */
	NC_FILTER_SERVER,    /* the worker of nacre serve: it answers on sockets, and makes none */
	NC_FILTER_EGRESS,    /* nacre-egress: sockets of its boxes and to the world, and no file */
	NC_FILTER_COURIER,   /* nacre-courier: connects, and reads names and certificates */
	NC_FILTER_ANALYST,   /* nacre-analyst's children: memory, and one socket */
	NC_FILTER_RELAY,     /* nacre-relay: bytes and descriptors, and pipes of its own */
	NC_FILTER_MAX,
};

/* What becomes of a call that is known and refused. */
enum nc_filter_variant {
	NC_FILTER_PLAIN,     /* EPERM */
	NC_FILTER_REPORTING, /* a notification: the supervisor records it and answers EPERM */
	NC_FILTER_VARIANT_MAX,
};

/*
 * Loads the filter into this process, which has one thread, for good; no_new_privs is already set.
 * With ret_listener_fd the reporting variant is loaded and its listener (CLOEXEC) returned, which
 * the caller owns. 0 or -errno; -EINVAL: the profile has no such variant (our own programs').
 * Allocates nothing and may be called between fork and exec.
 *
 * In builds for tests that need more calls than ours, the filters for the worker, the recorder,
 * the analyst and the egress (AddressSanitizer, coverage) and the spawner (AddressSanitizer) are
 * not loaded, and 0 is returned.
 */
int nc_filter_load(enum nc_filter which, int *ret_listener_fd);

/*
 * Lets this process send signals to itself and its process group only, for good: for a process box
 * where Landlock cannot do that (before ABI 6). To be called by the leader of a session, as which
 * it has been started, on top of which NC_FILTER_PROCESS or NC_FILTER_ALONE is loaded. What is
 * refused is answered with EPERM and not reported.
 *
 * Children inherit the numbers of this process: they signal the group, and neither themselves by
 * number (so raise() and abort() fail in them) nor their own children. setsid() goes as well: while
 * all are in the session, the kernel gives its number to nobody else.
 *
 * 0 or -errno. As nc_filter_load otherwise.
 */
int nc_filter_load_own_signals(void);

/*
 * The name of a system call number on this architecture, for denial records; NULL if the libseccomp
 * that this was built with knows none. Static memory.
 */
const char *nc_filter_call_name(int number);

/*
 * The program that would be loaded, and its length in instructions; NULL and 0 where the profile
 * has no such variant. Static memory.
 */
const struct sock_filter *nc_filter_program(
	enum nc_filter which, enum nc_filter_variant variant, size_t *ret_length);

#endif
