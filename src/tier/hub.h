/*
 * Commands in boxes on an event loop, many at once: orders go to the spawner, its events come back
 * to the command that they are about, input and output are moved meanwhile.
 */
#ifndef NC_HUB_H
#define NC_HUB_H

#include <stddef.h>

#include "tier/holder.h"
#include "tier/loop.h"

struct nc_hub;
struct nc_command;

enum nc_stream { NC_STREAM_OUTPUT, NC_STREAM_ERROR, NC_STREAM_MAX };

/* What an interactive command is given at most before it reads any of it. */
#define NC_COMMAND_PENDING_MAX 65536U

/* One command: what is ordered, and whom to tell. */
struct nc_command_spec {
	const struct nc_exec_spec *exec; /* all of it goes out at once, and stays the caller's */
	bool next;			 /* in a box that stays */
	int image_fd;			 /* or -EBADF: the host's own tree */
	int layer_fd[NC_BOX_LAYERS_MAX]; /* as many as exec has; they stay the caller's */
	const char *input;		 /* borrowed until it has ended; or NULL */
	size_t input_size;
	/* what follows it, piece by piece, borrowed as it is; false: nothing. May be NULL. */
	bool (*more)(void *context, const char **ret_data, size_t *ret_size);
	int input_fd; /* read from after that, and stays the caller's; or -EBADF */
	const char
		*pack; /* files for its working directory, borrowed until it has ended; or NULL */
	size_t pack_size;
	bool interactive;		   /* instead of both: what nc_command_write brings */
	uint64_t output_max;		   /* of both streams together; more ends the command */
	uint64_t had_bytes[NC_STREAM_MAX]; /* of an adopted one: by the worker before */
	void *context;
	/* may be NULL; door_fd is the callee's, -EBADF if it has none */
	void (*started)(void *context, uint64_t birth_ns, int door_fd);
	void (*writable)(void *context); /* interactive: there is room again; may be NULL */
	void (*fed)(void *context);	 /* all of input is in its pipe; may be NULL */
	/* the answer to nc_hub_ask while it runs; NULL: as for boxes that no command waits for */
	void (*told)(void *context, const struct nc_box_now *now);
	/* instead of read() on its output, which does not block; NULL: that */
	ssize_t (*take)(void *context, enum nc_stream stream, int fd, char *data, size_t size);
	/* what it printed within output_max, as it comes; data is good only during the call */
	void (*printed)(void *context, enum nc_stream stream, const char *data, size_t size);
	/*
	 * Once, as the last call, when all output is through. failure: the box could not be made,
	 * or the program not started; NULL: see end.
	 */
	void (*ended)(void *context, const struct nc_box_end *end, uint64_t output_bytes,
		const struct nacre_err *failure);
};

/*
 * Takes up greeted holders, the first and those behind it, which must outlive it; one without a
 * descriptor is not there yet.
 */
int nc_hub_new(struct nc_loop loop, struct nc_holder *first, struct nc_hub **ret_hub);

/* The next holder in place of one that is gone or was not there yet; takes over fd. 0 or -errno. */
int nc_hub_meet(struct nc_hub *hub, unsigned int number, int fd);
/* Whether it is there; whether it has greeted us, too. */
bool nc_hub_has(const struct nc_hub *hub, unsigned int number);
bool nc_hub_hears(const struct nc_hub *hub, unsigned int number);
/* It is there, and has told of all that it held before. */
bool nc_hub_is_settled(const struct nc_hub *hub, unsigned int number);

/* Everything that still runs is told that its holder is gone. Accepts NULL. */
void nc_hub_free(struct nc_hub *hub);

/* A box or command that was kept over the death of the worker before; what is not taken is closed.
 */
struct nc_adoption {
	uint64_t id, home;
	bool runs; /* a command, in it or as it */
	struct nc_box_fds fds;
};

/* What is told of boxes that no command waits for. Any may be NULL. */
struct nc_hub_watch {
	void *context;
	void (*adopted)(void *context, struct nc_adoption *adoption);
	void (*told)(void *context, const struct nc_box_now *now);
	/* a box that stayed is dead, whoever ended it */
	void (*gone)(void *context, uint64_t box_id);
	/* this holder, which is not the first, is gone, and all that it held */
	void (*lost)(void *context, unsigned int holder);
	/*
	 * What was asked for with this ticket was done, 0, or -errno: -ESRCH if there is no such
	 * box, or nothing runs in it. See nc_hub_is_ticket.
	 */
	void (*answered)(void *context, int64_t ticket, int error);
};

/*
 * Who asks something of a holder gets a ticket, which the answer has too, or -errno if it could
 * not be asked. Whether what was answered is that, or all that its holder will answer no more.
 */
bool nc_hub_is_ticket(int64_t answered, int64_t ticket);

void nc_hub_watch(struct nc_hub *hub, const struct nc_hub_watch *watch);

/* How many adoptions are still to come; before they have, nothing is to be ordered. */
uint32_t nc_hub_unadopted(const struct nc_hub *hub);

/* lost follows when the first holder has died, and all its commands with it. */
void nc_hub_on_lost(struct nc_hub *hub, void (*lost)(void *context), void *context);

/* Whether something waits that a holder has not taken, which dies with us. */
bool nc_hub_is_behind(const struct nc_hub *hub);

/* A number for a new box, which says who is to hold it; for a command in that box. */
uint64_t nc_hub_box_id(struct nc_hub *hub, enum nc_tier tier);
uint64_t nc_hub_id_beside(struct nc_hub *hub, uint64_t box_id);

/* The number of the holder of a box. */
unsigned int nc_hub_holder_of(uint64_t box_id);

/* Orders it. -errno with err, and nothing is called, if that was not possible. */
int nc_hub_start(struct nc_hub *hub, const struct nc_command_spec *spec,
	struct nc_command **ret_command, struct nacre_err *err);

/* Goes on with a command of the worker before: order and input of the spec are not used. */
int nc_hub_adopt(struct nc_hub *hub, struct nc_adoption *adoption,
	const struct nc_command_spec *spec, struct nc_command **ret_command);

/* Takes what there is room for, and returns how much; writable() follows after less than all. */
size_t nc_command_write(struct nc_command *command, const char *data, size_t size);

/* Reads no more of its output until that is let go on: it waits, once its pipes are full. */
void nc_command_hold(struct nc_command *command, bool held);

/* No more input; on a terminal, what its user would type for that. */
void nc_command_end_input(struct nc_command *command);

/* A ticket or -errno. -ENOTTY: it has no terminal, or none yet. */
int64_t nc_command_resize(struct nc_command *command, unsigned short rows, unsigned short columns);

/* A ticket or -errno; 0: it has not begun, and gets it when it has. */
int64_t nc_command_signal(struct nc_command *command, int signal);

/* Ends its box, with everything, or if it runs in a home itself alone; ended() follows. */
int64_t nc_command_cancel(struct nc_command *command);

/* Lets it go: its box waits for an order, which will be another command's. */
void nc_command_release(struct nc_command *command);

/* It goes on, and nobody is told of it any more. */
void nc_command_disown(struct nc_command *command);

/* Stops everything in a box, or lets it go on: a ticket or -errno. */
int64_t nc_hub_freeze(struct nc_hub *hub, uint64_t box_id, bool frozen);

/* Asks what it uses: told() follows, or if there is no such box an answer. */
int64_t nc_hub_ask(struct nc_hub *hub, uint64_t box_id);

/* How many boxes to keep ready, with children of this command, or if that is 0 with none. */
void nc_hub_ready(struct nc_hub *hub, uint64_t warm_class, unsigned int n);

/* Ends a box that stays and runs nothing. */
void nc_hub_drop(struct nc_hub *hub, uint64_t box_id);

#endif
