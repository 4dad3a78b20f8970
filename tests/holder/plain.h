/*
 * nacre-plain: a holder of boxes that are plain processes, for tests and as an example.
 *
 * Theory of operation: it speaks the box wire (src/kernel/boxwire.h) with whoever has called last
 * at its place (src/tier/launch.h). A box is a directory. Each command in it has a process of ours
 * above it, its reaper (reaper.c), to which everything that the command starts falls in the end, in
 * whatever session; the reaper tells how the program ended when nothing of it is left, and ends all
 * of it when we ask for that, or are gone. What holds nobody is not promised: see terms.c.
 */
#ifndef PLAIN_H
#define PLAIN_H

#include <sys/resource.h>

#include "base/mail.h"
#include "kernel/boxwire.h"

#define PLAIN_BOXES_MAX 256U

/* What a reaper tells, in memory that both have. */
struct plain_told {
	enum nc_fail fail; /* nothing has run */
	int error;
	char step[64];
	int status; /* as waitpid() gives it */
	struct rusage usage;
};

/* What a reaper is told on its line, one byte each; a signal is its number. */
#define PLAIN_KILL 'K'
#define PLAIN_STOP 'S'
#define PLAIN_GO 'G'
#define PLAIN_SIGNAL(number) ((char)(128 + (number)))
/* And what it says. */
#define PLAIN_STARTED 's'
#define PLAIN_FAILED 'f'
#define PLAIN_ENDED 'e'

enum plain_state {
	PLAIN_FREE,
	PLAIN_STARTS, /* a command has been ordered: the reaper says what becomes of it */
	PLAIN_RUNS,
	PLAIN_STAYS, /* for the next command */
	PLAIN_DEAD,  /* kept: its end is told to each worker until it is forgotten */
};

struct plain_box {
	enum plain_state state;
	uint64_t id, home;
	struct plain_box *in; /* its home, while something of it runs */
	uint32_t made;	      /* the flags of the order that made it */
	uint32_t flags;	      /* of its command */
	bool kept;
	bool orphaned; /* nobody is to be told of its end */
	bool dies;     /* no command comes any more */
	bool frozen;
	uint64_t frozen_ns, ordered_ns, began_ns, deadline_ns;
	enum nc_box_cause cause; /* why we ended it */
	int own_fd[3];		 /* the worker's ends of its streams, if kept; or its terminal */
	int line_fd;		 /* to its reaper */
	pid_t reaper;
	struct plain_told *told;
	uint64_t spent_us; /* CPU time of commands that have ended in it */
	struct nc_box_end end;
};

struct plain {
	int place_fd, client_fd, files_fd;
	bool greeted, newer;
	struct nc_mail mail;
	struct nc_wire_packet packet;
	char scratch[64];
	struct nc_tier_terms terms;
	struct plain_box box[PLAIN_BOXES_MAX];
};

extern struct plain plain; /* there is only one */

/* Signals that are not for us, but for programs. */
#define PLAIN_IGNORED 4U
extern const int plain_ignored[PLAIN_IGNORED];

/* main.c */
void plain_send(struct nc_wire_out *out, const int *fds, size_t n_fds);
void plain_hang_up(const char *why);

/* requests.c: one message of the client's. */
void plain_receive(void);

/* terms.c: what a box can do, and is held by. */
void plain_make_terms(struct nc_tier_terms *terms);

/* box.c */
struct plain_box *plain_find(uint64_t id);
void plain_begin(const struct nc_box_order *order, bool next);
void plain_kill(struct plain_box *box, enum nc_box_cause cause);
void plain_freeze(struct plain_box *box, bool frozen);
void plain_signal(struct plain_box *box, int number);
void plain_look(const struct plain_box *box, struct nc_box_now *ret_now);
void plain_forget(struct plain_box *box);
void plain_tell_failure(uint64_t id, enum nc_fail fail, int error, const char *step);
void plain_tell_end(const struct plain_box *box);
/* Its reaper has said something, or died. */
void plain_hear(struct plain_box *box);
/* What waited for its time; the next such moment. */
uint64_t plain_check(void);
/* The worker is gone: what is not kept goes with it; all: everything. Whether something is left. */
bool plain_orphan(bool all);

/* reaper.c: forks the command with its reaper. 0 or -errno. */
int plain_fork(struct plain_box *box, const struct nc_box_order *order, int terminal_fd);
/* Adds up what runs below a process. */
void plain_count(pid_t pid, struct nc_box_now *now);

#endif
