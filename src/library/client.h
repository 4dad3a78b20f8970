/*
 * A client of `nacre engine`: numbered frames out, answers in.
 *
 * Theory of operation: nothing happens in the background. Whoever waits takes what has come; so
 * does whoever sends, since the engine does not listen to one who does not read. What has come is
 * kept with its ticket, or, if there is a listener to be called, in one list of events, until a
 * function that may call back does so. Live output that piles up there is left out beyond a bound,
 * and counted.
 */
#ifndef NC_LIBRARY_CLIENT_H
#define NC_LIBRARY_CLIENT_H

#include <stdbool.h>

#include "base/frame.h"
#include "library/program.h"

/* A frame that was sent and is to be answered. */
struct nc_ticket {
	struct nc_ticket *next;
	uint64_t n;
	const void *owner; /* NULL: the program; else one of our functions waits for it */
	size_t index;	   /* for that function */
	struct nacre_listener listener;
	bool is_call;	/* its answer is one frame as it came; else it is an execution's reply */
	bool discard;	/* nobody wants the answer any more */
	bool busy;	/* refused for want of room: it may be tried again */
	json_t *answer; /* once it has come; or NULL */
	uint64_t dropped[2]; /* bytes of live output, by stream, since the last event */
};

/* A call that is to be made. */
struct nc_event {
	struct nc_event *next;
	struct nacre_listener listener;
	uint64_t n;
	bool done; /* data is the reply; else it is output */
	enum nacre_stream stream;
	uint64_t dropped;
	size_t size;
	char data[];
};

struct nacre_engine {
	struct nc_program program;
	int epoll_fd; /* ready when the socket or event_fd is */
	int event_fd; /* set while there are events or answers that wait */
	struct nc_frame_in in;
	struct nc_frame_out out;
	uint64_t last_n;
	struct nc_ticket *tickets, **tickets_end; /* in the order of their numbers */
	struct nc_event *events, **events_end;
	size_t events_size; /* of those with output */
	size_t n_answers;   /* that wait for the program to fetch them */
	size_t max_queued;
	bool ready, signalled;
	struct nacre_err gone; /* why it is, once code is not 0 */
};

int nc_client_start(struct nacre_engine *engine, const struct nacre_engine_options *options,
	struct nacre_err *err);
void nc_client_end(struct nacre_engine *engine);

/*
 * Sends a frame under a new number, which it gets; takes over the reference, NULL standing for
 * memory that ran out. Its ticket begins as a copy of `like`. Does not call back.
 */
int nc_client_send(struct nacre_engine *engine, json_t *frame, const struct nc_ticket *like,
	uint64_t *ret_n, struct nacre_err *err);

/* The same for one that is answered already; takes over the reference. */
int nc_client_answer(struct nacre_engine *engine, json_t *answer, const struct nc_ticket *like,
	uint64_t *ret_n, struct nacre_err *err);

struct nc_ticket *nc_client_find(const struct nacre_engine *engine, uint64_t n);

/* Forgets a ticket and frees it. */
void nc_client_drop(struct nacre_engine *engine, struct nc_ticket *ticket);

/* Takes what has come, waiting for it at most timeout_ms (-1: for ever). 0 or -errno. */
int nc_client_pump(struct nacre_engine *engine, int timeout_ms, struct nacre_err *err);

/* Makes the calls that wait. Returns how many. */
int nc_client_call_back(struct nacre_engine *engine);

/*
 * Sends a frame and waits for its answer, calling back meanwhile. Takes over the reference; the
 * caller owns *ret_answer. An answer of "error" is returned as such.
 */
int nc_client_ask(
	struct nacre_engine *engine, json_t *frame, json_t **ret_answer, struct nacre_err *err);

/*
 * A value as text that free() frees, which what jansson makes is not if the program gave it
 * another allocator. 0 or -ENOMEM.
 */
int nc_client_text(const json_t *value, char **ret_text);

/* The reply of one that was not understood. NULL: out of memory. Takes over faults. */
json_t *nc_client_invalid(json_t *faults);

#endif
