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
	NC_FILTER_PROCESS,   /* the payload of a process box: it may have none */
	NC_FILTER_INIT,	     /* nacre-init: waits, reaps, reports */
	NC_FILTER_MAX,
};

/* What becomes of a call that is known and refused. */
enum nc_filter_variant {
	NC_FILTER_PLAIN,     /* EPERM */
	NC_FILTER_REPORTING, /* a notification, so that the supervisor records it and answers EPERM
			      */
	NC_FILTER_VARIANT_MAX,
};

/*
 * Loads the filter into this process, which has one thread, for good; no_new_privs is already set.
 * With ret_listener_fd the reporting variant is loaded and its listener (CLOEXEC) returned, which
 * the caller owns. 0 or -errno. Allocates nothing and may be called between fork and exec.
 */
int nc_filter_load(enum nc_filter which, int *ret_listener_fd);

/*
 * The name of a system call number on this architecture, for denial records; NULL if the libseccomp
 * that this was built with knows none. Static memory.
 */
const char *nc_filter_call_name(int number);

/* The program that would be loaded, and its length in instructions. Static memory. */
const struct sock_filter *nc_filter_program(
	enum nc_filter which, enum nc_filter_variant variant, size_t *ret_length);

#endif
