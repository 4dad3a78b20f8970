/*
 * Ownership of local variables. Every local that owns something is declared with one of these
 * attributes and an empty value in the same line, and handed over with take_ptr() or take_fd().
 */
#ifndef NC_CLEANUP_H
#define NC_CLEANUP_H

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define nc_cleanup(function) __attribute__((cleanup(function)))

/* Takes what a pointer variable owns out of it and leaves NULL behind. */
#define take_ptr(variable)                                                                         \
	__extension__({                                                                            \
		__typeof__(variable) *_place = &(variable);                                        \
		__typeof__(variable) _taken = *_place;                                             \
		*_place = NULL;                                                                    \
		_taken;                                                                            \
	})

/* The same for a descriptor, which leaves -EBADF. */
#define take_fd(variable)                                                                          \
	__extension__({                                                                            \
		int *_place = &(variable);                                                         \
		int _taken = *_place;                                                              \
		*_place = -EBADF;                                                                  \
		_taken;                                                                            \
	})

/* All of these accept an empty value and keep errno. nc_freep leaves NULL behind. */
static inline void nc_freep(void *place)
{
	void **pointer = place;
	int saved = errno;

	free(*pointer);
	*pointer = NULL;
	errno = saved;
}

static inline void nc_fclosep(FILE **place)
{
	int saved = errno;

	if (*place)
		(void)fclose(*place); /* writers that care close by hand and look */
	errno = saved;
}

static inline void nc_closedirp(DIR **place)
{
	int saved = errno;

	if (*place)
		(void)closedir(*place);
	errno = saved;
}

#define cleanup_free nc_cleanup(nc_freep)
#define cleanup_fclose nc_cleanup(nc_fclosep)
#define cleanup_closedir nc_cleanup(nc_closedirp)

#endif
