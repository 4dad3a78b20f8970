/*
 * nacre-recorder: writes the history, and nothing but it.
 *
 *	nacre-recorder BLOB_BYTES JOURNAL_BYTES DAYS WITNESS [PLACE]
 *
 * Theory of operation: `nacre` starts it before privilege is dropped, as a user of its own, with
 * its end of a socket pair to the worker as descriptor 3, with WITNESS 1 that of one to the spawner
 * as 4, and the directory of the history as 5; as 0 and 1 /dev/null. With PLACE 1 the next worker
 * meets us at descriptor 6 (base/meeting.h) when this one has died. The other arguments are limits,
 * 0 for none. Worker and spawner tell what happens; each record becomes a line of the journal. What
 * is acknowledged has been written, and outlives all our processes; ten times a second it is
 * flushed to the disk.
 *
 * A worker that breaks the rules is not listened to any more, and that is recorded. What a worker
 * has begun and not ended is lost when it goes, or, with PLACE, when the next one greets us and has
 * not named it: a worker whose recorder has died goes on with the next recorder, and what it was
 * not answered it says again. So that nothing is written twice, we look for what the dead one had
 * written and not answered. We end when all sockets are closed; signals of a
 * terminal or a service manager end the others, and thereby us.
 *
 * Stages of locking in: (1) the history is the working directory, nothing else is open, and no
 * signal ends us; (2) nothing but the history can be reached (Landlock); (3) only what files are
 * written with can be called. All before the first byte of anything is read.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/meeting.h"
#include "base/parse.h"
#include "base/path.h"
#include "base/recordwire.h"
#include "base/text.h"
#include "kernel/boxwire.h"
#include "kernel/fence.h"
#include "kernel/filter.h"
#include "recorder/blob.h"
#include "recorder/flusher.h"
#include "recorder/journal.h"
#include "recorder/live.h"
#include "recorder/owed.h"
#include "recorder/refused.h"
#include "recorder/retire.h"

#define WORKER_FD 3
#define WITNESS_FD 4
#define HISTORY_FD 5
#define PLACE_FD 6
#define EXIT_SELF 125

/* What power may cost. */
#define FLUSH_NS (100 * NC_NS_PER_MS)
/* How often it is tried again to write what the disk had no room for. */
#define PAY_NS NC_NS_PER_S
/* How often old records are looked for. */
#define SWEEP_SECONDS 3600
#define SECONDS_PER_DAY 86400U

struct recorder {
	struct nc_journal journal;
	struct nc_blobs blobs;
	struct nc_blob_draft draft; /* of the worker's, which sends it part by part */
	struct nc_live live;
	struct nc_flusher flusher;
	struct nc_reserve reserve;
	struct nc_owed owed; /* ends that could not be written yet */
	struct nc_refused refused;
	int worker_fd;
	int witness_fd;
	int place_fd; /* where the next worker comes in; or -EBADF */
	bool greeted;
	bool swept;		  /* what dead recorders had open is settled */
	uint64_t dropped;	  /* notes that could not be written */
	uint64_t flush_ns;	  /* when to flush; 0: there is nothing to */
	uint64_t sweep_ns;	  /* when to look for old records */
	uint64_t pay_ns;	  /* when to try again to write what is owed */
	uint64_t segment;	  /* that was written to when the size of all was last looked at */
	struct nc_wire_out reply; /* to the worker, while its socket is full */
	bool reply_waits;
	uint64_t journal_bytes;
	uint64_t max_age_s;
	struct nc_wire_packet packet;
};

static struct recorder recorder; /* there is only one */

static int fail(const struct nacre_err *err)
{
	fprintf(stderr, "nacre-recorder: %s\n", err->message);
	return EXIT_SELF;
}

/* ---- writing ---- */

static int append(const struct nc_entry *entry, struct nc_receipt *ret_receipt)
{
	int r = nc_journal_append(&recorder.journal, entry, ret_receipt);

	if (r == 0 && recorder.flush_ns == 0)
		recorder.flush_ns = nc_clock_ns() + FLUSH_NS;
	return r;
}

/* A line of our own. */
static int note(enum nc_record_kind kind, const char *event, const char *body)
{
	const struct nc_entry entry = {.from = NC_FROM_RECORDER,
		.kind = kind,
		.event = event,
		.id = "",
		.body = body,
		.body_size = strlen(body)};
	struct nc_receipt receipt;

	return append(&entry, &receipt);
}

/* Appends it, unless it is there from that number on; 0: it is new. */
static int append_once(const struct nc_entry *entry, uint64_t from, struct nc_receipt *ret_receipt)
{
	return from > 0 && nc_journal_find(&recorder.journal, entry, from, ret_receipt)
		       ? 0
		       : append(entry, ret_receipt);
}

/* Appends what may be missing. If it cannot be written, the next line that can be says so. */
static void append_or_count(
	const struct nc_entry *entry, uint64_t from, struct nc_receipt *ret_receipt)
{
	char body[48];

	if (recorder.dropped > 0) {
		(void)snprintf(body, sizeof(body), "{\"records\":%" PRIu64 "}", recorder.dropped);
		if (note(NC_RECORD_AUDIT, "dropped", body) == 0)
			recorder.dropped = 0;
	}
	if (append_once(entry, from, ret_receipt) < 0)
		recorder.dropped++;
}

/* Of what nobody waits for. */
static void append_quietly(const struct nc_entry *entry)
{
	struct nc_receipt receipt;

	append_or_count(entry, 0, &receipt);
}

static void say_flushed(int r)
{
	if (r < 0)
		fprintf(stderr, "nacre-recorder: Flush the journal: %s\n", nc_errno_text(r));
}

static void flush(void)
{
	recorder.flush_ns = 0;
	say_flushed(nc_flusher_ask(&recorder.flusher, &recorder.journal));
}

/* When to flush next; 0: nothing is to be flushed, or not before the thread is done. */
static uint64_t flush_time(void)
{
	return recorder.flusher.busy ? 0 : recorder.flush_ns;
}

/* ---- answering ---- */

static void end_worker(const char *reason)
{
	char body[96];

	(void)snprintf(body, sizeof(body), "{\"reason\":\"%s\"}", reason);
	(void)note(NC_RECORD_SECURITY, "worker-ended", body);
	fprintf(stderr, "nacre-recorder: The worker sent %s; not listening to it any more\n",
		reason);
	recorder.worker_fd = nc_fd_close(recorder.worker_fd);
}

/* Sends the reply; if there is no room for it the worker is not heard before it is sent. */
static void send_reply(void)
{
	int r = nc_wire_send(recorder.worker_fd, &recorder.reply, NULL, 0);

	/* one that has gone is told nothing any more; what it said is heard to the end */
	recorder.reply_waits = r == -EAGAIN;
}

static struct nc_wire_out *begin_reply(enum nc_record_message type)
{
	nc_wire_out_done(&recorder.reply);
	nc_wire_begin(&recorder.reply, (uint16_t)type);
	return &recorder.reply;
}

/* ---- the worker's messages ---- */

/* One JSON object in one line; nothing in it can end the line or the object that it is put into. */
static bool is_body(const char *body, size_t size)
{
	cleanup_json json_t *value = NULL;
	struct nacre_err err = {0};

	for (size_t i = 0; i < size; i++)
		if ((unsigned char)body[i] < ' ')
			return false;
	return nc_json_parse(body, size, &value, &err) == 0 && json_is_object(value);
}

/* The id and the body of a message, checked. */
static int get_texts(
	struct nc_wire_in *in, char id[static NC_RECORD_ID_MAX + 1], struct nc_entry *entry)
{
	const void *body;

	nc_wire_get_text(in, id, NC_RECORD_ID_MAX);
	entry->body_size = nc_wire_get_bytes(in, NC_RECORD_BODY_MAX, &body);
	entry->body = body;
	return in->error < 0 || !nc_line_text_ok(id) || !is_body(entry->body, entry->body_size)
		       ? -EBADMSG
		       : 0;
}

/* What tells how something ended, and may have been told to a recorder before. */
static int get_end(struct nc_wire_in *in, char id[static NC_RECORD_ID_MAX + 1],
	struct nc_entry *entry, uint64_t *ret_from)
{
	int r = get_texts(in, id, entry);

	*ret_from = nc_wire_get_u64(in);
	return nc_wire_close(in) < 0 ? -EBADMSG : r;
}

static int handle_open(struct nc_wire_in *in)
{
	char id[NC_RECORD_ID_MAX + 1];
	struct nc_entry entry = {
		.from = NC_FROM_WORKER, .kind = NC_RECORD_EXECUTION, .event = "open", .id = id};
	struct nc_place place = {0};
	int r = get_texts(in, id, &entry);

	if (nc_wire_close(in) < 0 || r < 0)
		return -EBADMSG;
	nc_reserve_fill(&recorder.reserve);
	/* one that goes on may have ended already: its worker may not have been told */
	(void)(recorder.greeted ? nc_journal_place : nc_journal_before)(&recorder.journal, &place);
	/* on the list first: what is there and in no line is harmless */
	r = nc_live_add(&recorder.live, id, &place);
	if (r < 0)
		return -EBADMSG;
	if (r > 0)
		append_quietly(&entry);
	nc_refused_open(&recorder.refused, id);
	return 0;
}

/* The end of this one cannot be written now: that is said, and tried again. */
static void owe(const struct nc_entry *entry, int error)
{
	int r = nc_owed_add(&recorder.owed, entry);

	fprintf(stderr, "nacre-recorder: The end of %s cannot be recorded%s: %s\n", entry->id,
		r < 0 ? "" : " yet", nc_errno_text(error));
}

/* Writes what is owed as soon as that is possible, oldest first. */
static void pay(void)
{
	const struct nc_entry *entry;
	struct nc_receipt receipt;

	recorder.pay_ns = nc_clock_ns() + PAY_NS;
	while ((entry = nc_owed_first(&recorder.owed)) && append(entry, &receipt) == 0) {
		fprintf(stderr, "nacre-recorder: The end of %s is recorded now\n", entry->id);
		nc_live_remove(&recorder.live, entry->id);
		nc_refused_end(&recorder.refused, entry->id);
		nc_owed_drop(&recorder.owed);
	}
}

/* Those who died with their worker; not before those that ended are written as they ended. */
static void lose_left(void)
{
	pay();
	if (!nc_owed_first(&recorder.owed))
		(void)nc_live_lose_left(
			&recorder.live, &recorder.journal, &recorder.refused); /* or the next */
}

/* Once: what dead recorders had open, and nobody has come to us with. */
static void lose_dead(void)
{
	int r = recorder.swept
			? 0
			: nc_live_sweep(&recorder.live, &recorder.journal, &recorder.refused);

	if (r < 0)
		fprintf(stderr, "nacre-recorder: Look for what was lost: %s\n", nc_errno_text(r));
	recorder.swept = recorder.swept || r >= 0;
	recorder.live.lost += r > 0 ? (uint32_t)r : 0;
}

static int handle_hello(struct nc_wire_in *in)
{
	uint32_t version = nc_wire_get_u32(in);
	struct nc_wire_out *out;

	if (nc_wire_close(in) < 0 || version != NC_RECORDWIRE_VERSION)
		return -EBADMSG;
	recorder.greeted = true;
	lose_left();
	lose_dead();
	out = begin_reply(NC_RECORD_WELCOME);
	nc_wire_put_u32(out, NC_RECORDWIRE_VERSION);
	nc_wire_put_u32(out, recorder.live.lost);
	recorder.live.lost = 0;
	nc_wire_put_u64(out, recorder.journal.repairs.cut_bytes);
	nc_wire_put_u64(out, recorder.journal.repairs.missing_bytes);
	nc_wire_put_u64(out, nc_journal_next(&recorder.journal));
	send_reply();
	return 0;
}

static int handle_finish(struct nc_wire_in *in)
{
	char id[NC_RECORD_ID_MAX + 1];
	struct nc_entry entry = {.from = NC_FROM_WORKER,
		.kind = NC_RECORD_EXECUTION,
		.event = "finish",
		.id = id,
		.is_end = true};
	struct nc_receipt receipt = {0};
	struct nc_wire_out *out;
	uint64_t from;
	int r = get_end(in, id, &entry, &from);

	/* what has ended once has ended: nobody gets to tell it another way */
	if (r < 0 || !nc_live_has(&recorder.live, id))
		return -EBADMSG;
	r = nc_owed_has(&recorder.owed, id) ? -EALREADY : append_once(&entry, from, &receipt);
	if (r == 0) {
		nc_live_remove(&recorder.live, id);
		nc_refused_end(&recorder.refused, id);
	} else if (r != -EALREADY) {
		owe(&entry, r);
	}
	out = begin_reply(NC_RECORD_RECEIPT);
	nc_wire_put_u32(out, (uint32_t)-r);
	nc_wire_put_u64(out, receipt.seq);
	nc_wire_put_bytes(out, receipt.hash, sizeof(receipt.hash));
	send_reply();
	return 0;
}

/* Notes that tell how something ended which was begun: commands of sandboxes, and these. */
static bool is_end(const char *event)
{
	return nc_streq(event, "sandbox.command") || nc_streq(event, "sandbox.gone");
}

static int handle_note(struct nc_wire_in *in)
{
	char event[NC_RECORD_ID_MAX + 1];
	struct nc_entry entry = {.from = NC_FROM_WORKER, .event = event, .id = ""};
	uint8_t kind = nc_wire_get_u8(in);
	struct nc_receipt receipt = {0};
	struct nc_wire_out *out;
	uint64_t from;
	int r = get_end(in, event, &entry, &from);

	if (r < 0 || kind >= NC_RECORD_KIND_MAX || kind == NC_RECORD_EXECUTION)
		return -EBADMSG;
	entry.kind = kind;
	entry.is_end = is_end(event);
	append_or_count(&entry, from, &receipt);
	out = begin_reply(NC_RECORD_NOTED);
	nc_wire_put_u64(out, receipt.seq);
	send_reply();
	return 0;
}

/* Bytes that nobody can change or cut while we read: memory, sealed. Their size, or -errno. */
static int64_t sealed_size(int fd)
{
	const int wanted = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat status;

	if (seals < 0 || (seals & wanted) != wanted || fstat(fd, &status) < 0)
		return -EBADMSG;
	return status.st_size <= 0 || status.st_size > (off_t)NC_BLOB_MAX ? -EFBIG : status.st_size;
}

static int put_sealed(int fd, unsigned char *digest)
{
	struct nc_blob_draft draft = {.fd = -EBADF};
	int64_t size = sealed_size(fd);
	uint64_t offset = 0;
	int r;

	if (size < 0)
		return (int)size;
	while ((r = nc_blobs_put_part(&recorder.blobs, &draft, fd, (uint64_t)size, offset,
			digest)) == -EINPROGRESS)
		offset += NC_BLOB_PART;
	return r;
}

static void send_digest(int r, const unsigned char *digest)
{
	struct nc_wire_out *out = begin_reply(NC_RECORD_DIGEST);

	nc_wire_put_u32(out, (uint32_t)-r);
	nc_wire_put_bytes(out, digest, NC_SHA256_SIZE);
	send_reply();
}

/* Others are heard between two parts. */
static int handle_part(struct nc_wire_in *in)
{
	unsigned char digest[NC_SHA256_SIZE] = {0};
	uint64_t offset = nc_wire_get_u64(in);
	int64_t size;

	if (nc_wire_close(in) < 0 || recorder.packet.n_fds != 1)
		return -EBADMSG;
	size = sealed_size(recorder.packet.fds[0]);
	if (size == -EBADMSG)
		return -EBADMSG;
	send_digest(size < 0 ? (int)size
			     : nc_blobs_put_part(&recorder.blobs, &recorder.draft,
				       recorder.packet.fds[0], (uint64_t)size, offset, digest),
		digest);
	return 0;
}

static int handle_blob(struct nc_wire_in *in)
{
	unsigned char digest[NC_SHA256_SIZE] = {0};
	const void *data;
	size_t size = nc_wire_get_bytes(in, NC_WIRE_MESSAGE_MAX, &data);
	int r;

	if (nc_wire_close(in) < 0 || (recorder.packet.n_fds == 1 && size > 0))
		return -EBADMSG;
	r = recorder.packet.n_fds == 1 ? put_sealed(recorder.packet.fds[0], digest)
				       : nc_blobs_put(&recorder.blobs, data, size, digest);
	if (r == -EBADMSG)
		return r;
	send_digest(r, digest);
	return 0;
}

enum when { BEFORE_HELLO = 1, AFTER_HELLO = 2 };

/* Everything that the worker may say, when, and with how many descriptors at most. */
static const struct {
	enum nc_record_message type;
	unsigned int when; /* enum when */
	size_t max_fds;
	int (*handle)(struct nc_wire_in *in);
} requests[] = {
	{NC_RECORD_HELLO, BEFORE_HELLO, 0, handle_hello},
	{NC_RECORD_OPEN, BEFORE_HELLO | AFTER_HELLO, 0, handle_open},
	{NC_RECORD_BLOB, AFTER_HELLO, 1, handle_blob},
	{NC_RECORD_FINISH, AFTER_HELLO, 0, handle_finish},
	{NC_RECORD_NOTE, AFTER_HELLO, 0, handle_note},
	{NC_RECORD_PART, AFTER_HELLO, 1, handle_part},
};

static void handle_packet(void)
{
	struct nc_wire_in in;

	if (nc_wire_open(&in, recorder.packet.data, recorder.packet.size) < 0) {
		end_worker("something that is no message");
		return;
	}
	for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
		if (requests[i].type != in.type)
			continue;
		if (!(requests[i].when & (recorder.greeted ? AFTER_HELLO : BEFORE_HELLO)) ||
			requests[i].max_fds < recorder.packet.n_fds || requests[i].handle(&in) < 0)
			end_worker("a message that breaks the rules");
		return;
	}
	end_worker("an unknown message");
}

static void receive(void)
{
	int r = nc_wire_receive(recorder.worker_fd, &recorder.packet, 1);

	if (r > 0)
		handle_packet();
	else if (r == -EBADMSG)
		end_worker("a broken message");
	else if (r != -EAGAIN &&
		 r != -ECONNRESET) /* the latter: gone with mail unread, said once */
		recorder.worker_fd = nc_fd_close(recorder.worker_fd);
	for (size_t i = 0; i < recorder.packet.n_fds; i++)
		recorder.packet.fds[i] = nc_fd_close(recorder.packet.fds[i]);
}

static void lose_all(void)
{
	nc_live_leave(&recorder.live);
	lose_left();
}

/* Who calls is the worker now; what the one before had sent was read. */
static void meet(void)
{
	int fd = nc_meeting_take(recorder.place_fd);

	if (fd == -ECONNRESET)
		recorder.place_fd = nc_fd_close(recorder.place_fd);
	if (fd < 0)
		return;
	(void)nc_fd_close(recorder.worker_fd);
	nc_live_leave(&recorder.live);
	recorder.worker_fd = fcntl(fd, F_SETFL, O_NONBLOCK) < 0 ? nc_fd_close(fd) : fd;
	recorder.greeted = recorder.reply_waits = false;
}

/* ---- the witness ---- */

/* The id of the entry: what its worker has called it, if that can be one. Whether it is that of a
 * compiler. */
static bool set_id(struct nc_entry *entry, char *name)
{
	static char id[NC_RECORD_ID_MAX + 1];
	char *part = strchr(name, '/');
	bool is_compiler = nc_streq(part ? part : "", NC_BOX_OF_COMPILER);

	if (is_compiler)
		*part = '\0';
	(void)snprintf(id, sizeof(id), "%s", nc_line_text_ok(name) ? name : "");
	entry->id = id;
	return is_compiler;
}

static const char *of_whom(bool is_compiler)
{
	return is_compiler ? ",\"of\":\"compiler\"" : "";
}

static int write_death(struct nc_wire_in *in, struct nc_entry *entry, struct nc_buf *body)
{
	nc_buf_cleanup struct nc_buf denials = NC_BUF(NC_RECORD_BODY_MAX / 2);
	struct nc_record_death death = {0};
	bool is_compiler;

	nc_recordwire_get_death(in, &death);
	is_compiler = set_id(entry, death.name);
	nc_buf_addf(body,
		"{\"box\":%" PRIu64 ",\"cause\":%u,\"exit_code\":%" PRIu32 ",\"signal\":%" PRIu32
		",\"wall_ns\":%" PRIu64 ",\"cpu_us\":%" PRIu64 ",\"memory_peak_bytes\":%" PRIu64
		",\"disk_bytes\":%" PRIu64 ",\"denied\":%" PRIu64 "%s",
		death.box, death.cause, death.exit_code, death.signal, death.wall_ns, death.cpu_us,
		death.memory_peak_bytes, death.disk_bytes, death.denied, of_whom(is_compiler));
	if (death.n_refusals > 0) {
		nc_refused_list(&death, &denials);
		nc_buf_addf(body, ",\"denials\":%s", nc_buf_text(&denials));
	}
	nc_buf_adds(body, "}");
	/* of a compiler that has done its work nobody tells what it was refused */
	if (nc_wire_close(in) == 0 &&
		(!is_compiler || death.cause != NC_CAUSE_EXIT || death.exit_code || death.signal))
		nc_refused_died(&recorder.refused, entry->id,
			death.n_refusals > 0 ? nc_buf_text(&denials) : NULL);
	return nc_wire_close(in);
}

static int write_birth(struct nc_wire_in *in, struct nc_entry *entry, struct nc_buf *body)
{
	struct nc_record_birth birth = {0};
	bool is_compiler;

	nc_recordwire_get_birth(in, &birth);
	is_compiler = set_id(entry, birth.name);
	nc_buf_addf(body, "{\"box\":%" PRIu64 ",\"birth_ns\":%" PRIu64 "%s}", birth.box,
		birth.birth_ns, of_whom(is_compiler));
	return nc_wire_close(in);
}

/* What the spawner has just told, as an entry whose body is in body. */
static int read_witness(struct nc_entry *entry, struct nc_buf *body)
{
	struct nc_wire_in in;

	if (nc_wire_open(&in, recorder.packet.data, recorder.packet.size) < 0)
		return -EBADMSG;
	if (in.type == NC_RECORD_BORN) {
		entry->event = "born";
		return write_birth(&in, entry, body);
	}
	entry->event = "died";
	return in.type == NC_RECORD_DIED ? write_death(&in, entry, body) : -EBADMSG;
}

static void hear_witness(void)
{
	nc_buf_cleanup struct nc_buf body = NC_BUF(NC_RECORD_BODY_MAX);
	struct nc_entry entry = {.from = NC_FROM_SPAWNER, .kind = NC_RECORD_AUDIT, .id = ""};
	int r = nc_wire_receive(recorder.witness_fd, &recorder.packet, 0);

	if (r == -EAGAIN)
		return;
	if (r <= 0 || read_witness(&entry, &body) < 0) {
		recorder.witness_fd = nc_fd_close(recorder.witness_fd);
		return;
	}
	if (body.error < 0) {
		recorder.dropped++;
		return;
	}
	entry.body = nc_buf_text(&body);
	entry.body_size = body.size;
	append_quietly(&entry);
}

/* What was refused to an execution that is lost. */
static void write_refused(const char *body)
{
	const struct nc_entry entry = {.from = NC_FROM_RECORDER,
		.kind = NC_RECORD_SECURITY,
		.event = "denied",
		.id = "",
		.body = body,
		.body_size = strlen(body)};

	append_quietly(&entry);
}

/* ---- retention ---- */

/* Whether nobody has looked for SWEEP_SECONDS; if so, it is us who look now. */
static bool is_sweep_due(void)
{
	cleanup_close int fd = nc_path_open(HISTORY_FD, "swept", O_RDWR | O_CREAT, 0600);
	struct timespec now;
	struct stat status;

	if (fd < 0 || fstat(fd, &status) < 0 || clock_gettime(CLOCK_REALTIME, &now) < 0)
		return false;
	/* the first byte says that it was done at all: a new file is as young as can be */
	if (status.st_size > 0 && now.tv_sec - status.st_mtim.tv_sec < SWEEP_SECONDS &&
		now.tv_sec >= status.st_mtim.tv_sec)
		return false;
	return pwrite(fd, "\n", 1, 0) == 1;
}

/* Old records go once an hour; too many lines as soon as a new segment is begun. */
static void sweep(void)
{
	int r = 0;

	recorder.sweep_ns = nc_clock_ns() + SWEEP_SECONDS * NC_NS_PER_S;
	if (is_sweep_due()) {
		r = nc_blobs_sweep(&recorder.blobs, recorder.max_age_s);
		if (r >= 0)
			r = nc_retire(
				&recorder.journal, recorder.journal_bytes, recorder.max_age_s);
	} else if (recorder.segment != recorder.journal.segment) {
		r = nc_retire(&recorder.journal, recorder.journal_bytes, 0);
	}
	recorder.segment = recorder.journal.segment;
	if (r < 0)
		fprintf(stderr, "nacre-recorder: Retire old records: %s\n", nc_errno_text(r));
}

/* ---- the whole ---- */

static void serve(void)
{
	while (recorder.worker_fd >= 0 || recorder.witness_fd >= 0 || recorder.place_fd >= 0) {
		struct pollfd events[] = {
			{.fd = recorder.worker_fd,
				.events = recorder.reply_waits ? POLLOUT : POLLIN},
			{.fd = recorder.witness_fd, .events = POLLIN},
			{.fd = recorder.place_fd, .events = POLLIN},
			{.fd = recorder.flusher.done_fd, .events = POLLIN},
		};
		uint64_t next = flush_time() > 0 ? flush_time() : recorder.sweep_ns, due;
		int n;

		if (nc_owed_first(&recorder.owed) && recorder.pay_ns < next)
			next = recorder.pay_ns;
		due = nc_refused_due(&recorder.refused);
		if (due > 0 && due < next)
			next = due;
		n = poll(events, 4, nc_clock_left_ms(next));
		if (n > 0 && events[1].revents)
			hear_witness();
		if (n > 0 && events[0].revents && recorder.reply_waits)
			send_reply();
		else if (n > 0 && events[0].revents)
			receive();
		else if (n > 0 && events[2].revents)
			meet();
		if (n > 0 && events[3].revents)
			say_flushed(nc_flusher_take(&recorder.flusher));
		/* with a place it may come again, with those that go on */
		if (recorder.worker_fd < 0 && recorder.place_fd < 0 && recorder.live.count > 0)
			lose_all();
		if (nc_owed_first(&recorder.owed) && nc_clock_ns() >= recorder.pay_ns)
			pay();
		nc_refused_tell(&recorder.refused, nc_clock_ns(), write_refused);
		if (flush_time() > 0 && nc_clock_ns() >= flush_time())
			flush();
		if (recorder.segment != recorder.journal.segment ||
			nc_clock_ns() >= recorder.sweep_ns)
			sweep();
	}
}

static int lock_in(struct nacre_err *err)
{
	const int ignored[] = {
		SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGTSTP, SIGTTOU, SIGXFSZ};
	int r;

	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		(void)signal(ignored[i], SIG_IGN);
	/* whoever started us is not to wait for us because we hold one of its pipes */
	if (close_range(recorder.place_fd >= 0 ? PLACE_FD + 1 : HISTORY_FD + 1, ~0U, 0) < 0)
		return nc_err_errno(err, -errno, "Close what is not ours");
	if (fchdir(HISTORY_FD) < 0)
		return nc_err_errno(err, -errno, "Enter the history");
	/* keys are not for core files or whoever traces his own processes */
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0) < 0)
		return nc_err_errno(err, -errno, "Give up rights");
	r = nc_fence_worker(".");
	/* behind the fence, which is each thread's own; the filter is for both */
	if (r >= 0)
		r = nc_flusher_start(&recorder.flusher);
	if (r >= 0)
		r = nc_filter_load(NC_FILTER_RECORDER, NULL);
	return r < 0 ? nc_err_errno(err, r, "Restrict ourselves") : 0;
}

static int read_arguments(int argc, char **argv, uint64_t *ret_blobs)
{
	uint64_t days, witness, place = 0;

	if (argc < 5 || argc > 6 || nc_parse_u64(argv[1], 0, INT64_MAX, ret_blobs) < 0 ||
		nc_parse_u64(argv[2], 0, INT64_MAX, &recorder.journal_bytes) < 0 ||
		nc_parse_u64(argv[3], 0, 1000000, &days) < 0 ||
		nc_parse_u64(argv[4], 0, 1, &witness) < 0 ||
		(argc == 6 && nc_parse_u64(argv[5], 0, 1, &place) < 0))
		return -EINVAL;
	recorder.max_age_s = days * SECONDS_PER_DAY;
	recorder.draft.fd = -EBADF;
	recorder.worker_fd = WORKER_FD;
	recorder.witness_fd = witness ? WITNESS_FD : nc_fd_close(WITNESS_FD);
	recorder.place_fd = place ? PLACE_FD : -EBADF;
	if (fcntl(WORKER_FD, F_SETFL, O_NONBLOCK) < 0 || fcntl(HISTORY_FD, F_SETFD, 0) < 0 ||
		(place && fcntl(PLACE_FD, F_SETFL, O_NONBLOCK) < 0) ||
		(witness && fcntl(WITNESS_FD, F_SETFL, O_NONBLOCK) < 0))
		return -EINVAL;
	return 0;
}

static int start(uint64_t blob_bytes, struct nacre_err *err)
{
	int r = lock_in(err);

	if (r == 0)
		r = nc_journal_open(&recorder.journal, HISTORY_FD, err);
	if (r < 0)
		return r;
	/* one that cannot be had is missed when the disk is full, not now */
	(void)nc_reserve_open(&recorder.reserve, HISTORY_FD);
	recorder.journal.reserve = &recorder.reserve;
	r = nc_blobs_open(&recorder.blobs, HISTORY_FD, blob_bytes);
	if (r == 0)
		r = nc_live_open(&recorder.live, HISTORY_FD, recorder.journal.run);
	if (r < 0)
		return nc_err_errno(err, r, "Open the history");
	recorder.segment = recorder.journal.segment;
	recorder.sweep_ns = nc_clock_ns() + SWEEP_SECONDS * NC_NS_PER_S;
	if (recorder.journal.dirty)
		recorder.flush_ns = nc_clock_ns() + FLUSH_NS;
	return 0;
}

int main(int argc, char **argv)
{
	struct nacre_err err = {0};
	uint64_t blob_bytes;

	if (read_arguments(argc, argv, &blob_bytes) < 0) {
		fputs("nacre-recorder is started by nacre, not by hand\n", stderr);
		return EXIT_SELF;
	}
	if (start(blob_bytes, &err) < 0)
		return fail(&err);
	serve();
	/* from here on nobody waits for us, not even for the end of a pipe */
	(void)dup3(STDIN_FILENO, STDERR_FILENO, 0);
	nc_refused_tell(&recorder.refused, UINT64_MAX, write_refused);
	(void)nc_journal_sync(&recorder.journal);
	nc_live_done(&recorder.live);
	nc_blobs_drop(&recorder.blobs, &recorder.draft);
	sweep();
	nc_wire_out_done(&recorder.reply);
	nc_wire_packet_done(&recorder.packet);
	nc_blobs_done(&recorder.blobs);
	nc_journal_done(&recorder.journal);
	nc_reserve_done(&recorder.reserve);
	nc_owed_done(&recorder.owed);
	nc_refused_done(&recorder.refused);
	return 0;
}
