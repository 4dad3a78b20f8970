/*
 * The worker's side of the recorder: what happens goes out, receipts come back.
 *
 * Every message is sent at once, or when the recorder has read what came before, and answers come
 * in the order of the questions, so it fits an event loop: send, and call nc_record_receive() when
 * the descriptor is readable. What waits for its answer instead has "wait" in its name.
 */
#ifndef NC_RECORD_H
#define NC_RECORD_H

#include <stdbool.h>

#include "base/error.h"
#include "base/mail.h"
#include "base/recordwire.h"
#include "recorder/line.h"

/* Answers that may be outstanding: they fit the socket, so neither side ever waits for the other.
 */
#define NC_RECORD_WAITING_MAX 64U

struct nc_record {
	int fd; /* readable when an answer waits */
	unsigned int waiting;
	struct nc_mail mail; /* of who has a loop; without one it is waited for */
	struct nc_wire_packet packet;
};

struct nc_record_event {
	enum nc_record_message type; /* WELCOME, DIGEST, RECEIPT or NOTED */
	int error;		     /* 0, or what the recorder met: -ENOSPC, -EFBIG */
	uint32_t lost;		/* WELCOME: executions of a run that died, recorded as lost now */
	uint64_t cut_bytes;	/* WELCOME: an unfinished line was cut off */
	uint64_t missing_bytes; /* WELCOME: written once, and gone */
	uint64_t seq;		/* of the line; WELCOME: of the next one; 0: none */
	unsigned char hash[NC_SHA256_SIZE]; /* RECEIPT: of the line; DIGEST: of the blob */
};

/* Whether what is sent now would not wait for the recorder. */
bool nc_record_has_room(const struct nc_record *record);

/*
 * Whether the disk that a descriptor is on has too little room for something to begin: for the end
 * of what runs there is a reserve (recorder/reserve.h). -EBADF, or what cannot be asked, has room.
 */
bool nc_record_is_full(int state_fd);

/* Takes over the socket and greets the recorder. The answer is the first event. */
int nc_record_start(struct nc_record *record, int fd, struct nacre_err *err);
void nc_record_done(struct nc_record *record);

/* The two halves of it. What is opened between them goes on: it was begun with a recorder that is
 * gone. */
void nc_record_take(struct nc_record *record, int fd);
int nc_record_greet(struct nc_record *record, struct nacre_err *err);

#define cleanup_record nc_cleanup(nc_record_done)

/*
 * An execution begins, ends; something is noted. body is a JSON object. What has begun must end
 * once; what is finished gets a receipt, and a note is answered too. id and event: see
 * nc_line_text_ok(). -EAGAIN: read the answers first; -EPIPE: the recorder is gone; -EMSGSIZE;
 * -EINVAL.
 */
/* from: 0; or, of what a recorder that is gone was told and has not answered, the number that its
 * line has at least. If it is written it is not written again. */
int nc_record_open(struct nc_record *record, const char *id, const char *body);
int nc_record_finish(struct nc_record *record, const char *id, const char *body, uint64_t from);
int nc_record_note(struct nc_record *record, enum nc_record_kind kind, const char *event,
	const char *body, uint64_t from);

/* Bytes to keep; the answer is their digest. Long ones travel in memory that is sealed. */
int nc_record_blob(struct nc_record *record, const void *data, size_t size);

/* A copy as such memory; the caller owns the descriptor. -errno. */
int nc_record_seal(const void *data, size_t size);

/* The same for a memfd of the caller's, which stays his and is sealed against change. */
int nc_record_blob_fd(struct nc_record *record, int memory_fd);

/* One part of it, from the offset on; the answer's error is -EINPROGRESS until it was the last. */
int nc_record_part(struct nc_record *record, int memory_fd, uint64_t offset);

/* Receives an answer; waits for it. -ECONNRESET: the recorder is gone. */
int nc_record_receive(struct nc_record *record, struct nc_record_event *ret_event);

/*
 * What a WELCOME has to say to people, in one line such as "2 executions of a run that died are
 * recorded as lost"; "" if all is well. Returns out.
 */
#define NC_RECORD_NEWS_SIZE 256
const char *nc_record_news(
	const struct nc_record_event *welcome, char out[static NC_RECORD_NEWS_SIZE]);

/* Waits for all answers; the last one is returned, and the first error of any. */
int nc_record_wait(struct nc_record *record, struct nc_record_event *ret_last);

/* Finishes and waits. Messages are for people: "Record the execution: No space left on device". */
int nc_record_finish_wait(struct nc_record *record, const char *id, const char *body,
	struct nc_record_event *ret_receipt, struct nacre_err *err);

#endif
