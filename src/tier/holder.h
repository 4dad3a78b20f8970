/* The unprivileged side's view of the spawner: orders out, events in. */
#ifndef NC_HOLDER_H
#define NC_HOLDER_H

#include <sys/types.h>

#include "base/error.h"
#include "base/mail.h"
#include "kernel/boxwire.h"
#include "tier/exec.h"

struct nc_holder {
	int fd;			/* readable when an event waits */
	unsigned int number;	/* among those that we have */
	uint32_t tiers;		/* bits: of others it is not believed that it has them; 0: any */
	struct nc_holder *next; /* whose number is one more; or NULL */
	bool greeted;
	bool newer;		       /* of a version that we do not know */
	struct nc_box_welcome welcome; /* its terms are gone when it is */
	uint64_t last_id;	       /* of a box of a worker before; or 0 */
	uint32_t last_number;	       /* of a request; never 0 */
	uint32_t unanswered, untold;   /* the last of those that wait for ANSWER, TOLD; or 0 */
	struct nc_wire_packet packet;
	struct nc_mail mail; /* of who has a loop; without one it is waited for */
};

/* What the spawner is started with. */
struct nc_holder_setup {
	/* a spawner that was begun before, which knows nothing of all below; 0 or less: none */
	int begun_fd;	    /* taken over */
	pid_t begun_parent; /* whose child we are, as long as it lives */
	unsigned int ready; /* neutral boxes to prepare at once */
	const int
		*binds; /* what boxes may be shown of the host, by index; they stay the caller's */
	size_t n_binds;
	int witness_fd; /* the spawner's end of a pair to nacre-recorder; 0 or less: none */
	/*
	 * The command line that starts the worker again when it dies, which ends in NULL, and what
	 * it then finds as descriptors 4 and on, the spawner being 3. NULL: it is not.
	 */
	char *const *again;
	const int *heirs; /* they stay the caller's */
	size_t n_heirs;
	unsigned int
		patience_s; /* that it has to finish when we are told to terminate, below 4096 */
	bool lasting;	    /* boxes that stay, and zygotes, are to come */
};

/*
 * Forks: the calling process becomes nacre-spawner and never returns, the child, which is what
 * returns here, is its worker, without privilege for good. Everything that needs the caller's
 * rights must have been opened before. -errno only before the fork, or before privilege is dropped
 * where the spawner was begun before.
 */
int nc_holder_start(
	struct nc_holder *holder, const struct nc_holder_setup *setup, struct nacre_err *err);

/* In a worker that was started again: takes the place of the one before. */
int nc_holder_resume(struct nc_holder *holder, struct nacre_err *err);

/* Greets it. -ECONNRESET without a message: it is gone, and has said why. */
int nc_holder_connect(struct nc_holder *holder, struct nacre_err *err);
void nc_holder_done(struct nc_holder *holder);

/* The same in parts, for a loop: WELCOME follows as an event. */
int nc_holder_greet(struct nc_holder *holder);

/* Of these, whoever has boxes of the tier; or the first, which says why it has none. */
const struct nc_holder *nc_holder_of(const struct nc_holder *first, enum nc_tier tier);

/* What it can do, there. */
const struct nc_tier_terms *nc_holder_terms(const struct nc_holder *first, enum nc_tier tier);

#define cleanup_holder nc_cleanup(nc_holder_done)

/*
 * Orders a box, or with `next` a command in one that stays; the descriptors stay the caller's.
 * -E2BIG: arguments and environment are too long.
 */
int nc_holder_order(struct nc_holder *holder, bool next, const struct nc_exec_spec *exec,
	const struct nc_box_fds *fds, struct nacre_err *err);

/* From here on: the number of the request, which the answer has too, or -errno. */
int64_t nc_holder_kill(struct nc_holder *holder, uint64_t id, enum nc_box_cause cause);
int64_t nc_holder_signal(struct nc_holder *holder, uint64_t id, int signal);

/* Stops everything that runs in it, or lets it go on. */
int64_t nc_holder_freeze(struct nc_holder *holder, uint64_t id, bool frozen);

/* What does it use now? */
int64_t nc_holder_ask(struct nc_holder *holder, uint64_t id);

/* How many boxes to keep ready, with children of this command, or if that is 0 with none. */
int64_t nc_holder_ready(struct nc_holder *holder, uint64_t warm_class, unsigned int n);

int64_t nc_holder_resize(
	struct nc_holder *holder, uint64_t id, unsigned short rows, unsigned short columns);

/* Of what was adopted: so much of its output we have had. */
int64_t nc_holder_had(
	struct nc_holder *holder, uint64_t id, uint64_t output_bytes, uint64_t error_bytes);

/* The end of a kept box has been taken note of; this has no answer. */
int64_t nc_holder_forget(struct nc_holder *holder, uint64_t id);

struct nc_holder_event {
	/* NC_BOX_WELCOME, _STARTED, _ENDED, _FAILED, _ADOPT, _TOLD or _ANSWER */
	enum nc_box_message type;
	uint64_t id;
	uint64_t birth_ns;	  /* STARTED */
	uint64_t home;		  /* ADOPT: the box that it runs in, or 0 */
	struct nc_box_fds fds;	  /* STARTED, ADOPT: the caller's now */
	struct nc_box_end end;	  /* ENDED */
	struct nc_box_now now;	  /* TOLD */
	struct nacre_err failure; /* FAILED */
	uint32_t number;	  /* ANSWER: of the request */
	int error;		  /* ANSWER: 0 or -errno */
};

/* Waits for an event. -EAGAIN: none of ours came; -ECONNRESET: the spawner is gone. */
int nc_holder_receive(struct nc_holder *holder, struct nc_holder_event *ret_event);

#endif
