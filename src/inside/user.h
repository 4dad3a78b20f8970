/* Whose a command is in its box: the sandbox's user, root of the box, or another one of it. */
#ifndef NC_INSIDE_USER_H
#define NC_INSIDE_USER_H

/* Ids of a box that commands may have: the one behind them is process 1's alone. */
#define NC_USER_FIRST_ID 65535U

struct nc_user {
	unsigned int uid, gid;
};

/*
 * Finds a user of the box by name or number, in the /etc/passwd that the box has. A number need not
 * be there, nor "root". Whatever stands in that file: a regular file is read, up to its maximum,
 * and names no id but the box's. 0 or -errno; -ENOENT: there is no such user.
 */
int nc_user_find(const char *name, struct nc_user *ret_user);

/*
 * Makes this process root of the box, for good, with the capabilities that root is left there
 * (user.c has the list). proc_fd is our own directory of the host's /proc, opened outside of the
 * box; we are in all the box's namespaces, with all capabilities over them, and have no children.
 * 0 or -errno; *ret_step then says what was tried. Async-signal-safe.
 */
int nc_user_become_root(int proc_fd, const char **ret_step);

#endif
