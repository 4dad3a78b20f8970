/*
 * nacre-relay: the box wire over one byte stream, where descriptors cannot travel.
 *
 *	nacre-relay near|far [PLACE]
 *
 * Theory of operation: descriptor 3 is a SOCK_SEQPACKET socket that speaks the box wire
 * (kernel/boxwire.h): of the near end the worker is behind it, and we are its holder; of the far
 * end a holder is, and we are its worker. Descriptor 4 is the byte stream to the other end; with
 * PLACE (1) another one can be handed in at descriptor 5 (base/meeting.h) when that is lost.
 * Messages pass as they are. Each pipe that comes with one is a stream of its own until it ends:
 * see wire/link.h. When the worker goes, so do we, and with us the other end.
 *
 * What the near end reads on the stream is foreign: whoever breaks the rules there is hung up on,
 * which to the worker is the death of a holder. What it can cost us is memory of a fixed size, and
 * the time for so many frames in a second.
 *
 * Stages of locking in: (1) /dev/null is opened, nothing else is open; (2) the user of those who
 * have nothing, no new privileges, no core files; (3) no file, port or other process can be reached
 * (Landlock); (4) only what moves bytes can be called. All before the first byte is read.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/mail.h"
#include "base/meeting.h"
#include "base/text.h"
#include "kernel/fence.h"
#include "kernel/filter.h"
#include "kernel/privilege.h"
#include "relay/carry.h"
#include "relay/judge.h"

#define PEER_FD 3
#define STREAM_FD 4
#define PLACE_FD 5
#define EXIT_SELF 125
/* Of what has been printed, when whoever printed it has gone. */
#define DRAIN_NS (2 * NC_NS_PER_S)
/* What we are: buffers, windows and messages; libc wants some for itself. */
#define MEMORY_MAX (64ULL << 20)
#define READ_MAX (128U * 1024)
#define STRAIGHT_MIN (16U * 1024)
/* Before others have theirs. */
#define TURNS 4
#define FULL_NS NC_NS_PER_MS
/* To one request at most: it has started, it has ended, and the box with it. */
#define ANSWERS 4
/* Each frame takes its turn, and as many as this can come at once. */
#define FRAME_NS (10 * NC_NS_PER_MS / NC_RELAY_FRAMES_MAX)
#define BURST_NS (10 * NC_NS_PER_MS)

static struct relay {
	struct nc_link link;
	bool near;
	int peer_fd, stream_fd, place_fd, null_fd;
	struct nc_mail mail; /* for the peer */
	struct nc_wire_packet packet;
	bool is_bulk;		     /* the last bytes that came went straight on */
	struct nc_link_stream *full; /* they cannot, until then */
	uint64_t full_ns;
	uint64_t asked;	     /* what the other end may tell the worker still */
	uint64_t turn_ns;    /* when the last frame had its turn */
	uint64_t leave_ns;   /* we go, then at the latest; 0: not yet */
	int code;	     /* that we end with */
	unsigned char *data; /* read from the stream, and not used yet */
	size_t data_at, data_size;
} relay; /* there is only one */

/* ---- endings ---- */

/* Nothing more is taken from either side. */
static void leave(int code, const char *why)
{
	if (relay.leave_ns > 0)
		return;
	relay.leave_ns = relay.link.now_ns + DRAIN_NS;
	relay.code = code;
	if (why)
		fprintf(stderr, "nacre-relay: the connection is given up: %s\n", why);
}

/* The other end is not believed any more. */
static void hang_up(int error)
{
	const char *why = relay.link.why ? relay.link.why : nc_errno_text(error);

	leave(EXIT_SELF, why);
	nc_link_bye(&relay.link, NC_BYE_BROKEN);
	relay.data_size = 0;
}

/* The worker or the holder has gone, or with an error what it says cannot be passed on. */
static void lose_peer(int error)
{
	relay.peer_fd = nc_fd_close(relay.peer_fd);
	leave(error < 0 ? EXIT_SELF : 0, error == -EBADMSG ? "What is said here is no message"
					 : error < 0	   ? nc_errno_text(error)
							   : NULL);
	if (relay.near || error < 0)
		nc_link_bye(&relay.link, error < 0 ? NC_BYE_BROKEN : NC_BYE_DONE);
}

static void lose_stream(void)
{
	relay.stream_fd = nc_fd_close(relay.stream_fd);
	relay.data_size = 0;
	if (relay.link.bye_heard || relay.leave_ns > 0)
		return;
	if (relay.place_fd < 0)
		leave(EXIT_SELF, "It is lost");
	nc_link_renew(&relay.link); /* another is waited for as long as for an answer */
}

/* Whether everything that is worth it has been done. */
static bool is_done(void)
{
	if (relay.leave_ns == 0)
		return false;
	if (relay.link.now_ns >= relay.leave_ns)
		return true;
	if (relay.peer_fd < 0 && !relay.link.bye_wanted) {
		if (!nc_link_is_drained(&relay.link))
			return false;
		nc_link_bye(&relay.link, NC_BYE_DONE);
	}
	for (size_t i = 0; relay.near && i < NC_RELAY_STREAMS_MAX; i++)
		if (relay.link.streams[i].id > 0 && nc_link_waits(&relay.link.streams[i]))
			return false;
	return relay.stream_fd < 0 || relay.link.bye_heard ||
	       (relay.link.bye_said && nc_link_has_sent(&relay.link));
}

/* ---- from the other end ---- */

static int on_message(void *context, const unsigned char *data, size_t size,
	const struct nc_carry *list, size_t n, bool *ret_full)
{
	cleanup_wire_out struct nc_wire_out out = {.buf = NC_BUF(NC_WIRE_MESSAGE_MAX)};
	int fds[NC_WIRE_FDS_MAX], r;

	(void)context;
	relay.link.why = nc_judge_message(relay.near, data, size, list, n);
	if (!relay.link.why && relay.near && relay.asked-- == 0)
		relay.link.why = "It says more than it was asked";
	if (relay.link.why)
		return -EPROTO;
	r = nc_carry_on(&relay.link, relay.null_fd, list, n, fds);
	if (r < 0)
		return r;
	nc_buf_add(&out.buf, data, size);
	if (relay.peer_fd >= 0)
		r = nc_mail_send(&relay.mail, relay.peer_fd, &out, fds, n);
	for (size_t i = 0; i < n; i++)
		(void)nc_fd_close(fds[i]);
	*ret_full = relay.mail.first;
	/* that it has gone is seen when it is listened to */
	return r == -EPIPE || r == -ECONNRESET ? 0 : r;
}

static ssize_t on_deliver(struct nc_link_stream *stream, const unsigned char *data, size_t size)
{
	ssize_t n;

	do
		n = write(stream->fd, data, size);
	while (n < 0 && errno == EINTR);
	return n < 0 && errno == EAGAIN ? 0 : n;
}

static void on_over(struct nc_link_stream *stream)
{
	if (!stream->sends)
		(void)shutdown(stream->fd, SHUT_WR); /* a terminal's has a twin */
	(void)nc_fd_close(stream->fd);
}

static const struct nc_link_user user = {
	.message = on_message, .deliver = on_deliver, .over = on_over};

/*
 * Bytes that need not be looked at, from the stream to where they belong. A pipe that is full is
 * waited for, but not for long: other streams come the same way.
 */
static ssize_t pass_straight(void)
{
	struct nc_link_stream *stream;
	const size_t size = nc_link_straight(&relay.link, &stream);
	struct pollfd room = {.events = POLLOUT};
	ssize_t n;

	if (size < STRAIGHT_MIN || relay.full_ns > 0)
		return 0;
	n = splice(relay.stream_fd, NULL, stream->fd, NULL, size, SPLICE_F_NONBLOCK);
	if (n > 0)
		nc_link_passed(&relay.link, (size_t)n);
	if (n >= 0 || errno != EAGAIN)
		return n > 0 ? n : 0;
	room.fd = stream->fd;
	if (poll(&room, 1, 0) == 0) {
		relay.full_ns = relay.link.now_ns + FULL_NS;
		relay.full = stream;
	}
	return -EAGAIN;
}

/* Also while what is left of output is sent: it is the other end that gives credit for it. */
static bool wants_frames(void)
{
	const bool stays = relay.leave_ns == 0 || (relay.peer_fd < 0 && !relay.link.bye_wanted);

	return stays && !relay.link.bye_heard && !relay.mail.first &&
	       relay.turn_ns <= relay.link.now_ns && relay.full_ns <= relay.link.now_ns;
}

/* Whether there may be more. */
static bool take_some(void)
{
	const uint64_t frames = relay.link.n_frames;
	size_t used = 0;
	int r = 0;

	if (relay.data_size == 0) {
		ssize_t n = pass_straight();

		if (n != 0)
			relay.is_bulk = true;
		if (n != 0)
			return n > 0;
	}
	relay.full_ns = 0;
	if (relay.data_size == 0) {
		/* the next head alone, so that what follows it can go straight again */
		ssize_t n = read(relay.stream_fd, relay.data,
			relay.is_bulk && relay.link.data_left == 0 ? NC_RELAY_HEAD : READ_MAX);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return false;
		if (n <= 0) {
			lose_stream();
			return false;
		}
		relay.data_at = 0;
		relay.data_size = (size_t)n;
	}
	r = nc_link_input(&relay.link, relay.data + relay.data_at, relay.data_size, &used);
	if (r < 0) {
		hang_up(r);
		return false;
	}
	relay.data_at += used;
	relay.data_size -= used;
	relay.is_bulk &= relay.link.data_left >= STRAIGHT_MIN;
	if (relay.turn_ns + BURST_NS < relay.link.now_ns)
		relay.turn_ns = relay.link.now_ns - BURST_NS;
	relay.turn_ns += (relay.link.n_frames - frames) * FRAME_NS;
	if (relay.link.bye_heard) {
		relay.data_size = 0;
		leave(relay.link.their_bye == NC_BYE_DONE ? 0 : EXIT_SELF,
			relay.link.their_bye == NC_BYE_DONE ? NULL : "The other end wants it so");
	}
	return wants_frames();
}

static void take_stream(void)
{
	for (int i = 0; i < TURNS && take_some(); i++)
		;
}

/* ---- from the worker or the holder ---- */

static void refuse_order(int error)
{
	cleanup_wire_out struct nc_wire_out out = {0};

	nc_judge_refuse(&out, relay.packet.data, relay.packet.size, error);
	(void)nc_mail_send(&relay.mail, relay.peer_fd, &out, NULL, 0);
}

static void pass_on(void)
{
	struct nc_wire_packet *packet = &relay.packet;
	struct nc_carry list[NC_WIRE_FDS_MAX];
	struct nc_wire_in in;
	bool is_order;
	int r = nc_wire_open(&in, packet->data, packet->size);

	is_order = relay.near && nc_judge_is_order(in.type);
	if (r == 0 && is_order && nc_judge_wants_door(packet->data, packet->size))
		r = -EOPNOTSUPP;
	if (r == 0)
		r = nc_carry_off(&relay.link, packet->fds, packet->n_fds, list);
	if (r == 0)
		r = nc_link_post(&relay.link, packet->data, packet->size, list, packet->n_fds);
	relay.asked += ANSWERS;
	if (is_order && (r == -EOPNOTSUPP || r == -EAGAIN))
		refuse_order(r);
	else if (r < 0)
		lose_peer(r);
}

static void take_peer(void)
{
	int r = nc_wire_receive(relay.peer_fd, &relay.packet, NC_WIRE_FDS_MAX);

	if (r > 0)
		pass_on();
	else if (r != -EAGAIN)
		lose_peer(r == -ECONNRESET ? 0 : r);
	/* other ends of pipes that have become streams: nobody would see them end */
	for (size_t i = 0; i < relay.packet.n_fds; i++)
		relay.packet.fds[i] = nc_fd_close(relay.packet.fds[i]);
}

/* From a pipe or a terminal into its window. */
static void fill(struct nc_link_stream *stream)
{
	unsigned char *at;
	const size_t space = nc_link_space(stream, &at);
	ssize_t n = space > 0 ? read(stream->fd, at, space) : -1;

	if (n > 0)
		nc_link_filled(stream, (size_t)n);
	if (n > 0 || space == 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
		return;
	stream->fd = nc_fd_close(stream->fd); /* of a terminal EIO, when nobody has it open */
	nc_link_end(stream);
}

static void take_place(void)
{
	int fd = nc_meeting_take(relay.place_fd);

	if (fd == -ECONNRESET)
		relay.place_fd = nc_fd_close(relay.place_fd);
	if (fd < 0)
		return;
	(void)nc_fd_close(relay.stream_fd);
	relay.stream_fd = fd;
	relay.data_size = 0;
	(void)fcntl(fd, F_SETFL, O_NONBLOCK | O_RDWR);
	nc_link_renew(&relay.link);
}

/* ---- the loop ---- */

/* As much as the stream takes. Whether more waits for it. */
static bool give_stream(void)
{
	struct iovec parts[2];

	while (relay.stream_fd >= 0) {
		ssize_t n = nc_link_output(&relay.link, parts);

		if (n < 0)
			leave(EXIT_SELF, nc_errno_text((int)n));
		if (n <= 0)
			return false;
		n = writev(relay.stream_fd, parts, 2);
		if (n < 0 && errno == EAGAIN)
			return true;
		if (n < 0 && errno != EINTR)
			lose_stream();
		if (n > 0)
			nc_link_sent(&relay.link, (size_t)n);
	}
	return false;
}

enum { PEER, STREAM, PLACE, STREAMS, EVENTS = STREAMS + NC_RELAY_STREAMS_MAX };

/* Returns how many there are. */
static nfds_t expect(struct pollfd *events, bool behind)
{
	nfds_t n = STREAMS;
	const bool stays = relay.leave_ns == 0;

	events[PEER] = (struct pollfd){.fd = relay.peer_fd,
		.events = (short)(relay.mail.first			      ? POLLOUT
				  : stays && nc_link_has_room(&relay.link, 0) ? POLLIN
									      : 0)};
	events[STREAM] = (struct pollfd){.fd = relay.stream_fd,
		.events = (short)((wants_frames() ? POLLIN : 0) | (behind ? POLLOUT : 0))};
	events[PLACE] = (struct pollfd){.fd = stays ? relay.place_fd : -1, .events = POLLIN};
	for (size_t i = PEER; i <= STREAM; i++)
		if (events[i].events == 0)
			events[i].fd = -1; /* or it would tell of its hang-up again and again */
	for (size_t i = 0; i < NC_RELAY_STREAMS_MAX; i++) {
		struct nc_link_stream *stream = &relay.link.streams[i];
		unsigned char *at;
		short wanted = 0;

		events[STREAMS + i].fd = -1;
		if (stream->id == 0 || stream->fd < 0)
			continue;
		if (stream->sends && nc_link_space(stream, &at) > 0)
			wanted = POLLIN;
		else if (nc_link_waits(stream) || (relay.full_ns > 0 && stream == relay.full))
			wanted = POLLOUT;
		if (wanted != 0 || !stream->sends)
			events[STREAMS + i] = (struct pollfd){.fd = stream->fd, .events = wanted};
		n = STREAMS + i + 1;
	}
	return n;
}

static void act(const struct pollfd *events, nfds_t n)
{
	for (size_t i = 0; i < n - STREAMS; i++) {
		struct nc_link_stream *stream = &relay.link.streams[i];
		const int told = events[STREAMS + i].fd < 0 ? 0 : events[STREAMS + i].revents;

		if (told == 0)
			continue;
		if (stream->sends)
			fill(stream);
		else if (told & POLLOUT && !nc_link_waits(stream))
			relay.full_ns = 0;
		else if (told & POLLOUT)
			nc_link_flush(&relay.link, stream);
		else
			nc_link_reset(&relay.link, stream);
	}
	if (events[PEER].fd >= 0 && events[PEER].revents & POLLOUT)
		(void)nc_mail_flush(&relay.mail, relay.peer_fd);
	if (events[PEER].fd >= 0 && events[PEER].revents & ~POLLOUT)
		take_peer();
	if (events[STREAM].fd >= 0 && events[STREAM].revents & ~POLLOUT)
		take_stream();
	if (events[PLACE].fd >= 0 && events[PLACE].revents)
		take_place();
}

/* How long nothing happens unless something comes. */
static int timeout_ms(uint64_t next_ns)
{
	if (relay.leave_ns > 0 && (next_ns == 0 || relay.leave_ns < next_ns))
		next_ns = relay.leave_ns;
	if (relay.full_ns > 0 && (next_ns == 0 || relay.full_ns < next_ns))
		next_ns = relay.full_ns;
	if (relay.turn_ns > relay.link.now_ns && (next_ns == 0 || relay.turn_ns < next_ns))
		next_ns = relay.turn_ns;
	return next_ns > 0 ? nc_clock_left_ms(next_ns) : -1;
}

static void serve(void)
{
	static struct pollfd events[EVENTS];
	uint64_t next_ns = 0;
	bool behind;
	nfds_t n;
	int r;

	for (;;) {
		relay.link.now_ns = nc_clock_ns();
		r = nc_link_tick(&relay.link, &next_ns);
		if (r < 0)
			hang_up(r);
		if (relay.data_size > 0 && wants_frames())
			take_stream();
		behind = give_stream();
		if (is_done() && !give_stream())
			return;
		n = expect(events, behind);
		if (poll(events, n, timeout_ms(next_ns)) < 0 && errno != EINTR)
			return;
		relay.link.now_ns = nc_clock_ns();
		act(events, n);
	}
}

/* ---- beginning ---- */

/* Mail is not waited for: poll() tells. */
static void on_mail(void *context)
{
	(void)context;
}

static int lock_in(struct nacre_err *err)
{
#if defined(__SANITIZE_ADDRESS__)
	const struct rlimit memory = {RLIM_INFINITY, RLIM_INFINITY}; /* its shadow is larger */
#else
	const struct rlimit memory = {MEMORY_MAX, MEMORY_MAX};
#endif
	struct rlimit files;
	bool ranges;
	int r = nc_privilege_ranges(&ranges, err);

	if (r < 0)
		return r;
	/* so many may be on their way in messages too, of all processes of this user together */
	if (getrlimit(RLIMIT_NOFILE, &files) == 0 && (files.rlim_cur = files.rlim_max) > 0)
		(void)setrlimit(RLIMIT_NOFILE, &files);
	if (setrlimit(RLIMIT_DATA, &memory) < 0)
		return nc_err_errno(err, -errno, "Limit ourselves");
	r = nc_privilege_become_relay(ranges);
	if (r == 0 && prctl(PR_SET_DUMPABLE, 0) < 0)
		r = -errno;
	if (r == 0)
		r = nc_fence_all();
	if (r >= 0)
		r = nc_filter_load(NC_FILTER_RELAY, NULL);
	return r < 0 ? nc_err_errno(err, r, "Restrict ourselves") : 0;
}

static int start(bool near, bool place, struct nacre_err *err)
{
	const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGTSTP, SIGTTOU};
	uint64_t session = 0;
	int r;

	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		(void)signal(ignored[i], SIG_IGN);
	relay.near = near;
	relay.peer_fd = PEER_FD;
	relay.stream_fd = STREAM_FD;
	relay.place_fd = place ? PLACE_FD : -EBADF;
	relay.asked = NC_RELAY_UNASKED_MAX;
	relay.mail.max = 2; /* nothing is read while one waits */
	relay.mail.waits = on_mail;
	if (close_range(place ? PLACE_FD + 1 : STREAM_FD + 1, ~0U, 0) < 0)
		return nc_err_errno(err, -errno, "Close what is not ours");
	for (int fd = PEER_FD; fd <= (place ? PLACE_FD : STREAM_FD); fd++) {
		const int flags = fcntl(fd, F_GETFL);

		if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
			return nc_err_errno(err, -errno, "Take over descriptors");
	}
	relay.null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	relay.data = malloc(READ_MAX);
	if (relay.null_fd < 0 || !relay.data)
		return nc_err_errno(err, -errno, "Begin");
	r = nc_random(&session, sizeof(session));
	if (r == 0)
		r = lock_in(err);
	nc_link_init(&relay.link, near, near ? session | 1 : 0, &user);
	relay.link.now_ns = relay.link.begun_ns = nc_clock_ns();
	return r;
}

int main(int argc, char **argv)
{
	struct nacre_err err = {0};
	const bool near = argc > 1 && nc_streq(argv[1], "near");

	if (argc < 2 || argc > 3 || (!near && !nc_streq(argv[1], "far")) ||
		fcntl(PEER_FD, F_GETFD) < 0 || fcntl(STREAM_FD, F_GETFD) < 0) {
		fputs("nacre-relay is started by nacre, not by hand\n", stderr);
		return EXIT_SELF;
	}
	if (start(near, argc == 3 && nc_streq(argv[2], "1"), &err) < 0) {
		fprintf(stderr, "nacre-relay: %s\n", err.message);
		return EXIT_SELF;
	}
	serve();
	nc_link_done(&relay.link);
	nc_mail_done(&relay.mail);
	nc_wire_packet_done(&relay.packet);
	nc_freep(&relay.data);
	return relay.code;
}
