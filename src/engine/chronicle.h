/* What is recorded of executions: one line when it begins, one when it ends, before its reply. */
#ifndef NC_CHRONICLE_H
#define NC_CHRONICLE_H

#include "engine/execution.h"
#include "watch/record.h"

struct nc_chronicle;

/* Called once when the line is written, or cannot be: the receipt, or null. */
typedef void (*nc_chronicle_written)(struct nc_execution *execution, json_t *receipt);

/*
 * Takes over the recorder, whose welcome has not been read yet, for as long as it lives. returns:
 * if it dies there will be another, for which what has ended waits. say may be NULL.
 */
int nc_chronicle_new(uv_loop_t *loop, struct nc_record *record, bool returns,
	nc_chronicle_written written, void (*say)(const char *text),
	struct nc_chronicle **ret_chronicle);

/*
 * The next recorder, after one that died; takes over the socket. Those that have not ended must be
 * begun again before nc_chronicle_resume(): what is not is lost then. 0 or -errno.
 */
int nc_chronicle_meet(struct nc_chronicle *chronicle, int fd);
void nc_chronicle_resume(struct nc_chronicle *chronicle);

/* It stays away: those that wait for it are told that there is no receipt. */
void nc_chronicle_give_up(struct nc_chronicle *chronicle);

/* Whether so many have ended that are not recorded yet that no more should begin. */
bool nc_chronicle_is_behind(const struct nc_chronicle *chronicle);

/* Whether the recorder takes what begins now without being waited for. */
bool nc_chronicle_has_room(const struct nc_chronicle *chronicle);

/* Whether somebody records now, and answers; whether one is there, answering or not. */
bool nc_chronicle_is_up(const struct nc_chronicle *chronicle);
bool nc_chronicle_is_met(const struct nc_chronicle *chronicle);

/* Executions that died with the workers before us, as the first recorder told. */
uint64_t nc_chronicle_lost(const struct nc_chronicle *chronicle);

/* Whoever still waits is told that there is no receipt. Accepts NULL. */
void nc_chronicle_free(struct nc_chronicle *chronicle);

/* An execution is taken; nothing happens if that was told before. */
void nc_chronicle_begin(struct nc_chronicle *chronicle, struct nc_execution *execution);

/* Something beside executions; takes over the body. It waits for the next recorder if there is
 * one to come; without, nothing is noted. */
void nc_chronicle_note(
	struct nc_chronicle *chronicle, enum nc_record_kind kind, const char *event, json_t *body);

/* What was refused to one that has ended and what was noticed of it, if anything, in a line of kind
 * security. told: its reply, or what is told of a command. */
void nc_chronicle_warn(struct nc_chronicle *chronicle, const char *id, const json_t *told);

/* The line of one that has ended with this reply: facts and digests. NULL: no memory. */
char *nc_chronicle_line(const struct nc_execution *execution, const json_t *reply);

/* It has ended with this reply, which is borrowed, and has its line; `written` follows, from the
 * loop. */
void nc_chronicle_end(
	struct nc_chronicle *chronicle, struct nc_execution *execution, const json_t *reply);

#endif
