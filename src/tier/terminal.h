/* The caller's own terminal, while a program in a box has one too. */
#ifndef NC_TERMINAL_H
#define NC_TERMINAL_H

#include <stdbool.h>
#include <stdint.h>
#include <termios.h>

struct nc_terminal {
	int fd;		    /* the caller's; -EBADF: it is none */
	int resized_fd;	    /* readable when its size has changed; or -EBADF */
	struct termios was; /* to be put back */
};

/*
 * Makes fd pass everything on as it is typed, and watches its size, if it is a terminal at all.
 * 0 or -errno. From then on SIGWINCH is blocked.
 */
int nc_terminal_take(struct nc_terminal *terminal, int fd);

/* Puts it back as it was. */
void nc_terminal_give_back(struct nc_terminal *terminal);

/* Its size, or the usual one of what is no terminal. */
void nc_terminal_size(
	const struct nc_terminal *terminal, uint32_t *ret_rows, uint32_t *ret_columns);

/* After resized_fd: the size that it has now. */
void nc_terminal_resized(
	const struct nc_terminal *terminal, uint32_t *ret_rows, uint32_t *ret_columns);

#endif
