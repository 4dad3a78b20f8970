/* The worker's side of the recorder. */
#include "watch/record.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/vfs.h>

#include "base/fd.h"
#include "base/limits.h"
#include "recorder/reserve.h"

/* Blobs up to this size go in the message itself. */
#define INLINE_MAX (48U * 1024)
/* How long it may take the recorder to read what was sent before: it only writes files. */
#define PATIENCE_MS 5000

/* Whether there is room within that time, on a socket that an event loop has made impatient. */
static bool wait_for_room(const struct nc_record *record, int timeout_ms)
{
	struct pollfd event = {.fd = record->fd, .events = POLLOUT};
	int r;

	do
		r = poll(&event, 1, timeout_ms);
	while (r < 0 && errno == EINTR);
	return r == 1;
}

bool nc_record_has_room(const struct nc_record *record)
{
	return !record->mail.first && wait_for_room(record, 0);
}

bool nc_record_is_full(int state_fd)
{
	struct statfs disk;

	return state_fd >= 0 && fstatfs(state_fd, &disk) == 0 &&
	       (uint64_t)disk.f_bavail * (uint64_t)disk.f_bsize < 2ULL * NC_RESERVE_BYTES;
}

static int send_message(
	struct nc_record *record, struct nc_wire_out *out, const int *fds, size_t n_fds, bool asks)
{
	int r;

	if (asks && record->waiting >= NC_RECORD_WAITING_MAX)
		return -EAGAIN;
	do
		r = nc_mail_send(&record->mail, record->fd, out, fds, n_fds);
	while (r == -EAGAIN && !record->mail.waits && wait_for_room(record, PATIENCE_MS));
	if (r == 0)
		record->waiting += asks;
	return r == -ECONNRESET ? -EPIPE : r;
}

void nc_record_take(struct nc_record *record, int fd)
{
	*record = (struct nc_record){.fd = fd, .mail = record->mail};
}

int nc_record_greet(struct nc_record *record, struct nacre_err *err)
{
	cleanup_wire_out struct nc_wire_out out = {0};
	int r;

	nc_wire_begin(&out, NC_RECORD_HELLO);
	nc_wire_put_u32(&out, NC_RECORDWIRE_VERSION);
	r = send_message(record, &out, NULL, 0, true);
	return r < 0 ? nc_err_errno(err, r, "Greet the recorder") : 0;
}

int nc_record_start(struct nc_record *record, int fd, struct nacre_err *err)
{
	nc_record_take(record, fd);
	return nc_record_greet(record, err);
}

void nc_record_done(struct nc_record *record)
{
	nc_wire_packet_done(&record->packet);
	nc_mail_done(&record->mail);
	record->fd = nc_fd_close(record->fd);
}

static int send_entry(struct nc_record *record, struct nc_wire_out *out, const char *id,
	const char *body, const uint64_t *from, bool asks)
{
	size_t size = strlen(body);

	/* the recorder would not listen to us any more */
	if (!nc_line_text_ok(id))
		return -EINVAL;
	if (size > NC_RECORD_BODY_MAX)
		return -EMSGSIZE;
	nc_wire_put_text(out, id);
	nc_wire_put_bytes(out, body, size);
	if (from)
		nc_wire_put_u64(out, *from);
	return send_message(record, out, NULL, 0, asks);
}

int nc_record_open(struct nc_record *record, const char *id, const char *body)
{
	cleanup_wire_out struct nc_wire_out out = {0};

	nc_wire_begin(&out, NC_RECORD_OPEN);
	return send_entry(record, &out, id, body, NULL, false);
}

int nc_record_finish(struct nc_record *record, const char *id, const char *body, uint64_t from)
{
	cleanup_wire_out struct nc_wire_out out = {0};

	nc_wire_begin(&out, NC_RECORD_FINISH);
	return send_entry(record, &out, id, body, &from, true);
}

int nc_record_note(struct nc_record *record, enum nc_record_kind kind, const char *event,
	const char *body, uint64_t from)
{
	cleanup_wire_out struct nc_wire_out out = {0};

	nc_wire_begin(&out, NC_RECORD_NOTE);
	nc_wire_put_u8(&out, (uint8_t)kind);
	return send_entry(record, &out, event, body, &from, true);
}

int nc_record_blob_fd(struct nc_record *record, int memory_fd)
{
	cleanup_wire_out struct nc_wire_out out = {0};

	nc_wire_begin(&out, NC_RECORD_BLOB);
	nc_wire_put_bytes(&out, NULL, 0);
	return send_message(record, &out, &memory_fd, 1, true);
}

int nc_record_part(struct nc_record *record, int memory_fd, uint64_t offset)
{
	cleanup_wire_out struct nc_wire_out out = {0};

	nc_wire_begin(&out, NC_RECORD_PART);
	nc_wire_put_u64(&out, offset);
	return send_message(record, &out, &memory_fd, 1, true);
}

int nc_record_seal(const void *data, size_t size)
{
	const int seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
	cleanup_close int fd = memfd_create("blob", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int r;

	if (fd < 0)
		return -errno;
	r = nc_fd_write_all(fd, data, size);
	if (r == 0 && fcntl(fd, F_ADD_SEALS, seals) < 0)
		r = -errno;
	return r < 0 ? r : take_fd(fd);
}

static int send_sealed(struct nc_record *record, const void *data, size_t size)
{
	cleanup_close int fd = nc_record_seal(data, size);

	return fd < 0 ? fd : nc_record_blob_fd(record, fd);
}

int nc_record_blob(struct nc_record *record, const void *data, size_t size)
{
	cleanup_wire_out struct nc_wire_out out = {0};

	if (size > NC_BLOB_MAX)
		return -EFBIG;
	if (size > INLINE_MAX)
		return send_sealed(record, data, size);
	nc_wire_begin(&out, NC_RECORD_BLOB);
	nc_wire_put_bytes(&out, data, size);
	return send_message(record, &out, NULL, 0, true);
}

static void get_hash(struct nc_wire_in *in, unsigned char *hash)
{
	const void *bytes;

	if (nc_wire_get_bytes(in, NC_SHA256_SIZE, &bytes) == NC_SHA256_SIZE)
		memcpy(hash, bytes, NC_SHA256_SIZE);
	else
		in->error = -EBADMSG;
}

static int read_event(struct nc_wire_in *in, struct nc_record_event *event)
{
	event->type = (enum nc_record_message)in->type;
	if (in->type == NC_RECORD_WELCOME) {
		if (nc_wire_get_u32(in) != NC_RECORDWIRE_VERSION)
			return -EPROTO;
		event->lost = nc_wire_get_u32(in);
		event->cut_bytes = nc_wire_get_u64(in);
		event->missing_bytes = nc_wire_get_u64(in);
		event->seq = nc_wire_get_u64(in);
	} else if (in->type == NC_RECORD_NOTED) {
		event->seq = nc_wire_get_u64(in);
	} else if (in->type == NC_RECORD_DIGEST || in->type == NC_RECORD_RECEIPT) {
		event->error = -(int)nc_wire_get_u32(in);
		if (in->type == NC_RECORD_RECEIPT)
			event->seq = nc_wire_get_u64(in);
		get_hash(in, event->hash);
	} else {
		return -EPROTO;
	}
	return nc_wire_close(in) < 0 ? -EPROTO : 0;
}

int nc_record_receive(struct nc_record *record, struct nc_record_event *ret_event)
{
	struct nc_record_event event = {0};
	struct nc_wire_in in;
	int r = nc_wire_receive(record->fd, &record->packet, 0);

	if (r <= 0)
		return r < 0 ? r : -ECONNRESET;
	r = nc_wire_open(&in, record->packet.data, record->packet.size);
	if (r == 0)
		r = read_event(&in, &event);
	if (r < 0)
		return r;
	if (record->waiting > 0)
		record->waiting--;
	*ret_event = event;
	return 0;
}

const char *nc_record_news(
	const struct nc_record_event *welcome, char out[static NC_RECORD_NEWS_SIZE])
{
	nc_buf_cleanup struct nc_buf text = NC_BUF(NC_RECORD_NEWS_SIZE - 1);

	if (welcome->lost == 1)
		nc_buf_adds(&text, "1 execution of a run that died is recorded as lost; ");
	else if (welcome->lost > 1)
		nc_buf_addf(&text,
			"%" PRIu32 " executions of a run that died are recorded as lost; ",
			welcome->lost);
	if (welcome->cut_bytes > 0)
		nc_buf_adds(&text, "a record that was never finished was cut off; ");
	if (welcome->missing_bytes > 0)
		nc_buf_addf(&text,
			"%" PRIu64 " bytes of the journal are missing: run nacre audit verify; ",
			welcome->missing_bytes);
	(void)snprintf(out, NC_RECORD_NEWS_SIZE, "%.*s", (int)(text.size > 2 ? text.size - 2 : 0),
		nc_buf_text(&text));
	return out;
}

int nc_record_wait(struct nc_record *record, struct nc_record_event *ret_last)
{
	struct nc_record_event event = {0};
	int r = 0, error = 0;

	while (r == 0 && record->waiting > 0) {
		r = nc_record_receive(record, &event);
		if (r == 0 && error == 0)
			error = event.error;
	}
	if (r == 0)
		*ret_last = event;
	return r < 0 ? r : error;
}

int nc_record_finish_wait(struct nc_record *record, const char *id, const char *body,
	struct nc_record_event *ret_receipt, struct nacre_err *err)
{
	struct nc_record_event event;
	int r = nc_record_finish(record, id, body, 0);

	if (r == 0)
		r = nc_record_wait(record, &event);
	if (r < 0)
		return nc_err_errno(err, r, "Record the execution");
	*ret_receipt = event;
	return 0;
}
