/* One run of a program in a fresh box, with its input and output. */
#ifndef NC_RUN_H
#define NC_RUN_H

#include "base/buf.h"
#include "tier/holder.h"
#include "tier/terminal.h"

/* Who holds the door of a box that has one ; zeroed: nobody. */
struct nc_run_door {
	/* the box has started; door_fd is the run's, and closed after this; -errno ends the run */
	int (*opened)(void *context, int door_fd);
	int fd; /* looked at while the box lives; readable is called, and if that fails no more */
	int (*readable)(void *context);
	void *context;
};

struct nc_run {
	struct nc_exec_spec exec;
	uint64_t output_max; /* bytes of standard output and error together */
	int input_fd;	     /* read from for the program's input; -EBADF: it gets none */
	int image_fd;	     /* or -EBADF: the host's own tree */
	int cancel_fd;	     /* readable: end the box, for NC_CAUSE_CANCEL; or -EBADF */
	/* where output goes: to these descriptors as it comes, or, if -EBADF, into the buffers */
	int output_fd, error_fd;
	const struct nc_terminal *terminal; /* if it has one: the caller's; error_fd is unused */
	struct nc_run_door door;
	/* the outcome */
	struct nc_buf output, error;
	uint64_t output_bytes; /* of both together, printed or not */
	uint64_t birth_ns;
	struct nc_box_end end;
	struct nacre_err failure; /* the box could not be made, or the program not started */
};

/*
 * Runs it to its end. 0 if there is an outcome: run->failure, or run->end. -errno with err if Nacre
 * itself failed on the way.
 */
int nc_run(struct nc_holder *holder, struct nc_run *run, struct nacre_err *err);

#endif
