/*
 * One end of the connection between two relays: messages and streams in, bytes out, and back. No
 * system call is made here, and time is told from outside.
 *
 * Theory of operation: messages are numbered, and so are the bytes of each stream. Whoever sends
 * keeps what it sent until that is acknowledged, within a window for each stream, and never sends
 * more than it was given credit for. So a connection that was lost can be made anew
 * (nc_link_renew): each end begins again at what is not acknowledged, and passes over what it has
 * already. Acknowledgements wait for company, or a second.
 *
 * A stream is opened by the message that has its descriptor, and has one direction. Its sender ends
 * it; its receiver resets it, when all of it is delivered or nobody reads it any more, and then it
 * is gone. Each end numbers those that its messages open, the near one with odd numbers.
 *
 * What the other end says is foreign. All that is kept here is bounded: NC_RELAY_STREAMS_MAX
 * streams of one window each, NC_RELAY_MESSAGES_SIZE of messages.
 */
#ifndef NC_LINK_H
#define NC_LINK_H

#include <stdbool.h>
#include <sys/uio.h>

#include "base/buf.h"
#include "wire/frames.h"

struct nc_link_stream {
	uint32_t id;   /* 0: this one is free */
	bool sends;    /* we do, else we receive */
	bool ended;    /* where it ends is known */
	bool end_sent; /* sender: and was said */
	bool is_over;  /* receiver: it is to be reset, which was not said yet */
	bool tells;    /* receiver: how far it is was not said yet */
	/*
	 * Sender, after nc_link_renew: the other end is to be asked how far it is, by a piece
	 * without bytes, since it may have reset the stream; nothing is sent before it answers.
	 */
	bool asks, waits;
	int fd;		     /* the caller's; -EBADF: none */
	unsigned char *ring; /* of its window; offsets count from the first byte of the stream */
	uint32_t window;
	/*
	 * Sender: acknowledged, sent, filled, and how far we may. sent goes back to first when a
	 * connection is made anew; sent_max does not. Receiver: delivered, said to be that,
	 * received, and the credit given. What is from first to last is in the ring.
	 */
	uint64_t first, sent, last, credit;
	uint64_t sent_max; /* receiver: what comes below it may come a second time */
};

struct nc_link_letter {
	struct nc_link_letter *next;
	uint64_t since_ns;  /* when it was given to us */
	uint32_t before_id; /* the last stream that was opened before it */
	size_t size;
	unsigned char data[]; /* the frame */
};

/* Who is told; all but message() concern a stream that is open. */
struct nc_link_user {
	void *context;
	/*
	 * A message and what came with it; its streams are open here, without an fd. *ret_full: no
	 * more is read until nc_link_input is called again. -errno ends the connection.
	 */
	int (*message)(void *context, const unsigned char *data, size_t size,
		const struct nc_carry *list, size_t n, bool *ret_full);
	/* Bytes for its fd: how many were taken, or negative: nobody will ever take any. */
	ssize_t (*deliver)(struct nc_link_stream *stream, const unsigned char *data, size_t size);
	/* It is over: its fd is to be closed. */
	void (*over)(struct nc_link_stream *stream);
};

struct nc_link {
	const struct nc_link_user *user;
	bool near;
	bool said, greeted; /* on this connection: we have, and the other end has */
	bool bye_wanted, bye_said, bye_heard;
	bool urgent; /* acknowledgements go out now */
	enum nc_bye bye, their_bye;
	uint64_t session;
	uint64_t now_ns;	    /* to be set before each call */
	uint64_t lazy_ns;	    /* since when an acknowledgement waits; 0: none */
	uint64_t begun_ns;	    /* this connection */
	const char *why;	    /* what the other end did, after a failure */
	uint32_t last_id, their_id; /* of the streams that we opened, and they */
	int64_t patience;	    /* bytes that may come still for streams that are gone */
	struct {
		struct nc_link_letter *first, **end, *unsent;
		uint64_t begin, sent, sent_max, next; /* numbers: of first, of unsent, ... */
		size_t size;
	} out;
	uint64_t in_next, in_told, in_seen;  /* messages: received, said to be, may come again */
	uint32_t gone[NC_RELAY_STREAMS_MAX]; /* that the other end takes for open */
	size_t n_gone;
	uint64_t n_frames; /* that came */
	/* what is left of a frame of data, for this stream or for none; a frame that is not whole
	 */
	struct nc_link_stream *data_stream;
	size_t data_left, data_again; /* again: so many of them were there before */
	struct nc_buf in;
	/*
	 * To be sent: frames, and behind the last one its bytes, which are in the ring of a stream;
	 * if that is gone meanwhile, the ring is ours.
	 */
	struct nc_buf bytes;
	size_t bytes_sent, tail_size, turn;
	const unsigned char *tail;
	struct nc_link_stream *tail_stream;
	unsigned char *tail_ring;
	struct nc_link_stream streams[NC_RELAY_STREAMS_MAX];
};

/* session: random, of the near end; the far one learns it. user must outlive the link. */
void nc_link_init(
	struct nc_link *link, bool near, uint64_t session, const struct nc_link_user *user);
void nc_link_done(struct nc_link *link);

/* The connection was lost, and there is another. */
void nc_link_renew(struct nc_link *link);

/*
 * Bytes from the other end. *ret_used is less than size if user->message said that it is full: call
 * again with the rest. -EPROTO with link->why: it broke the rules; or what user->message returned.
 */
int nc_link_input(struct nc_link *link, const unsigned char *data, size_t size, size_t *ret_used);

/*
 * How many of the bytes that come next may go straight to the fd of a stream, past
 * nc_link_input(), and how many have. 0: none.
 */
size_t nc_link_straight(const struct nc_link *link, struct nc_link_stream **ret_stream);
void nc_link_passed(struct nc_link *link, size_t size);

/*
 * Bytes for the other end, until nc_link_sent() says how many of them are on their way. Returns
 * their number, 0: nothing is to be sent, or -ENOMEM.
 */
ssize_t nc_link_output(struct nc_link *link, struct iovec ret_parts[static 2]);
void nc_link_sent(struct nc_link *link, size_t size);
bool nc_link_has_sent(const struct nc_link *link); /* all that was put together */

/* Room for a message with this many streams. */
bool nc_link_has_room(const struct nc_link *link, size_t n_streams);

/*
 * Opens a stream of the next message, which has its id; for NC_CARRY_BOTH both. There must be room.
 */
struct nc_link_stream *nc_link_open(struct nc_link *link, bool sends);
struct nc_link_stream *nc_link_find(struct nc_link *link, uint32_t id);

/* Takes a message, of at most NC_WIRE_MESSAGE_MAX bytes; there must be room. 0 or -ENOMEM. */
int nc_link_post(
	struct nc_link *link, const void *data, size_t size, const struct nc_carry *list, size_t n);

/* Sender: where the next bytes go, and how many have been put there; that was the last. */
size_t nc_link_space(struct nc_link_stream *stream, unsigned char **ret_at);
void nc_link_filled(struct nc_link_stream *stream, size_t size);
void nc_link_end(struct nc_link_stream *stream);

/* Receiver: delivers what waits, when its fd takes more; and: nobody reads it any more. */
void nc_link_flush(struct nc_link *link, struct nc_link_stream *stream);
void nc_link_reset(struct nc_link *link, struct nc_link_stream *stream);

/* Whether something of it has not been delivered yet. */
static inline bool nc_link_waits(const struct nc_link_stream *stream)
{
	return !stream->sends && stream->first < stream->last;
}

/* Whether all streams that we send have been sent to their ends. */
bool nc_link_is_drained(const struct nc_link *link);

/* We go for good. */
void nc_link_bye(struct nc_link *link, enum nc_bye bye);

/*
 * What is due by time: when to call next (0: never), and -ETIMEDOUT with link->why if the other end
 * has not answered for too long.
 */
int nc_link_tick(struct nc_link *link, uint64_t *ret_next_ns);

#endif
