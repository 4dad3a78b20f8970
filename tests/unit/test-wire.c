/* Messages: what is put is got, what is broken is refused, no descriptor is lost. */
#include "unit-files.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/limits.h"
#include "base/wire.h"

#define HEADER_SIZE 8

static bool out_of_memory;
static unsigned int interruptions; /* how many of the next calls are interrupted */

void *__real_realloc(void *memory, size_t size);
void *__wrap_realloc(void *memory, size_t size);
ssize_t __real_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t __real_recvmsg(int fd, struct msghdr *message, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *message, int flags);

void *__wrap_realloc(void *memory, size_t size)
{
	return out_of_memory ? NULL : __real_realloc(memory, size);
}

static bool interrupted(void)
{
	if (interruptions == 0)
		return false;
	interruptions--;
	errno = EINTR;
	return true;
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags)
{
	return interrupted() ? -1 : __real_sendmsg(fd, message, flags);
}

ssize_t __wrap_recvmsg(int fd, struct msghdr *message, int flags)
{
	return interrupted() ? -1 : __real_recvmsg(fd, message, flags);
}

/* Both ends of a socket; nothing here is to wait. */
static int ends[2];

static int connect_ends(void **state)
{
	unit_fds_note(state);
	interruptions = 0;
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends);
}

static int close_ends(void **state)
{
	(void)nc_fd_close(ends[0]);
	(void)nc_fd_close(ends[1]);
	return unit_fds_check(state);
}

static unsigned char raw[NC_WIRE_MESSAGE_MAX + 16];

/* Sends out and gives the size of its bytes, which are in raw then. */
static size_t sent(struct nc_wire_out *out)
{
	ssize_t n;

	assert_int_equal(nc_wire_send(ends[0], out, NULL, 0), 0);
	n = recv(ends[1], raw, sizeof(raw), 0);
	assert_true(n >= HEADER_SIZE);
	return (size_t)n;
}

static void assert_nothing_was_sent(void)
{
	assert_int_equal(recv(ends[1], raw, sizeof(raw), 0), -1);
	assert_int_equal(errno, EAGAIN);
}

static void put_one_of_each(struct nc_wire_out *out)
{
	nc_wire_put_u8(out, 0x81);
	nc_wire_put_u16(out, 0x8182);
	nc_wire_put_u32(out, 0x81828384);
	nc_wire_put_u64(out, 0x8182838485868788);
	nc_wire_put_text(out, "h\xc3\xa9");
	nc_wire_put_bytes(out, "a\0b", 3);
}

static void a_message_looks_as_described(void **state)
{
	static const unsigned char want[] = {0x4e, 0x63, 0x34, 0x12, 29, 0, 0, 0, /* header */
		0x81, 0x82, 0x81, 0x84, 0x83, 0x82, 0x81, 0x88, 0x87, 0x86, 0x85, 0x84, 0x83, 0x82,
		0x81, 3, 0, 0, 0, 'h', 0xc3, 0xa9, 3, 0, 0, 0, 'a', 0, 'b'};
	cleanup_wire_out struct nc_wire_out out = {0};

	(void)state;
	nc_wire_begin(&out, 0x1234);
	put_one_of_each(&out);
	assert_int_equal(sent(&out), sizeof(want));
	assert_memory_equal(raw, want, sizeof(want));
	assert_memory_equal(raw, "Nc", 2);
}

static void numbers_make_the_round_trip(void **state)
{
	static const uint64_t numbers[] = {0, 1, 0x7f, 0x80, 0xff, 0x100, 0x7fff, 0x8000, 0xffff,
		0x10000, INT32_MAX, 1ULL << 31, UINT32_MAX, 1ULL << 32, INT64_MAX, 1ULL << 63,
		UINT64_MAX, 0x0123456789abcdef};

	(void)state;
	for (size_t i = 0; i < unit_count(numbers); i++) {
		cleanup_wire_out struct nc_wire_out out = {0};
		struct nc_wire_in in;

		nc_wire_begin(&out, (uint16_t)numbers[i]);
		nc_wire_put_u8(&out, (uint8_t)numbers[i]);
		nc_wire_put_u16(&out, (uint16_t)numbers[i]);
		nc_wire_put_u32(&out, (uint32_t)numbers[i]);
		nc_wire_put_u64(&out, numbers[i]);
		assert_int_equal(nc_wire_open(&in, raw, sent(&out)), 0);
		assert_int_equal(in.type, (uint16_t)numbers[i]);
		assert_int_equal(nc_wire_get_u8(&in), (uint8_t)numbers[i]);
		assert_int_equal(nc_wire_get_u16(&in), (uint16_t)numbers[i]);
		assert_int_equal(nc_wire_get_u32(&in), (uint32_t)numbers[i]);
		assert_int_equal(nc_wire_get_u64(&in), numbers[i]);
		assert_int_equal(nc_wire_close(&in), 0);
	}
}

static void text_and_bytes_make_the_round_trip(void **state)
{
	static const char *const texts[] = {"", "x", "two\nlines", "\xff\xfe"};
	cleanup_wire_out struct nc_wire_out out = {0};
	struct nc_wire_in in;
	const void *bytes;
	char text[10];

	(void)state;
	nc_wire_begin(&out, 1);
	for (size_t i = 0; i < unit_count(texts); i++) {
		nc_wire_put_text(&out, texts[i]);
		nc_wire_put_bytes(&out, texts[i], strlen(texts[i]) + 1);
	}
	nc_wire_put_bytes(&out, NULL, 0);
	assert_int_equal(nc_wire_open(&in, raw, sent(&out)), 0);
	for (size_t i = 0; i < unit_count(texts); i++) {
		size_t size = strlen(texts[i]);

		nc_wire_get_text(&in, text, 9);
		assert_string_equal(text, texts[i]);
		assert_int_equal(nc_wire_get_bytes(&in, 10, &bytes), size + 1);
		assert_memory_equal(bytes, texts[i], size + 1);
		assert_in_range((uintptr_t)bytes, (uintptr_t)raw, (uintptr_t)raw + sizeof(raw));
	}
	assert_int_equal(nc_wire_get_bytes(&in, 0, &bytes), 0);
	assert_int_equal(nc_wire_close(&in), 0);
}

static void an_empty_message_is_a_header(void **state)
{
	cleanup_wire_out struct nc_wire_out out = {0};
	struct nc_wire_in in;

	(void)state;
	nc_wire_begin(&out, UINT16_MAX);
	assert_int_equal(sent(&out), HEADER_SIZE);
	assert_int_equal(nc_wire_open(&in, raw, HEADER_SIZE), 0);
	assert_int_equal(in.type, UINT16_MAX);
	assert_int_equal(nc_wire_close(&in), 0);
}

/* Every getter after a failure: nothing but zeros and empty texts. */
static void assert_dead(struct nc_wire_in *in)
{
	const void *bytes = NULL;
	char text[4] = "abc";

	assert_int_equal(nc_wire_get_u8(in), 0);
	assert_int_equal(nc_wire_get_u16(in), 0);
	assert_int_equal(nc_wire_get_u32(in), 0);
	assert_int_equal(nc_wire_get_u64(in), 0);
	nc_wire_get_text(in, text, 3);
	assert_string_equal(text, "");
	assert_int_equal(nc_wire_get_bytes(in, 100, &bytes), 0);
	assert_non_null(bytes);
	assert_int_equal(in->error, -EBADMSG);
	assert_int_equal(nc_wire_close(in), -EBADMSG);
}

static void set_size(unsigned char *message, uint32_t size)
{
	for (size_t i = 0; i < 4; i++)
		message[4 + i] = (unsigned char)(size >> (8 * i));
}

/* Gets what put_one_of_each put out of the first size bytes of raw; says whether all was there. */
static int get_one_of_each(size_t size)
{
	/* of its exact size, so that the sanitizer sees a look behind it */
	cleanup_free unsigned char *copy = malloc(size);
	struct nc_wire_in in;
	const void *bytes;
	char text[11];

	assert_non_null(copy);
	memcpy(copy, raw, size);
	set_size(copy, (uint32_t)(size - HEADER_SIZE));
	assert_int_equal(nc_wire_open(&in, copy, size), 0);
	assert_int_equal(nc_wire_get_u8(&in), size < 9 ? 0 : 0x81);
	assert_int_equal(nc_wire_get_u16(&in), size < 11 ? 0 : 0x8182);
	assert_int_equal(nc_wire_get_u32(&in), size < 15 ? 0 : 0x81828384);
	assert_int_equal(nc_wire_get_u64(&in), size < 23 ? 0 : 0x8182838485868788);
	nc_wire_get_text(&in, text, 10);
	assert_string_equal(text, size < 30 ? "" : "h\xc3\xa9");
	assert_int_equal(nc_wire_get_bytes(&in, 10, &bytes), size < 37 ? 0 : 3);
	if (size < 37)
		assert_dead(&in);
	return nc_wire_close(&in);
}

static void truncation_at_every_length_is_refused(void **state)
{
	cleanup_wire_out struct nc_wire_out out = {0};
	size_t size;

	(void)state;
	nc_wire_begin(&out, 1);
	put_one_of_each(&out);
	size = sent(&out);
	assert_int_equal(size, 37);
	for (size_t cut = 0; cut < size; cut++) {
		cleanup_free unsigned char *copy = malloc(cut ? cut : 1);
		struct nc_wire_in in;

		assert_non_null(copy);
		memcpy(copy, raw, cut);
		assert_int_equal(nc_wire_open(&in, copy, cut), -EBADMSG);
		assert_dead(&in);
		/* and the same with a header that fits what is left */
		if (cut >= HEADER_SIZE)
			assert_int_equal(get_one_of_each(cut), -EBADMSG);
	}
	assert_int_equal(get_one_of_each(size), 0);
}

static void open_checks_magic_and_size(void **state)
{
	static const struct {
		unsigned char message[12];
		int result;
	} cases[] = {
		{{0x4e, 0x63, 1, 0, 4, 0, 0, 0}, 0},
		{{0x63, 0x4e, 1, 0, 4, 0, 0, 0}, -EBADMSG},
		{{0x4e, 0x62, 1, 0, 4, 0, 0, 0}, -EBADMSG},
		{{0x4f, 0x63, 1, 0, 4, 0, 0, 0}, -EBADMSG},
		{{0, 0, 1, 0, 4, 0, 0, 0}, -EBADMSG},
		{{0x4e, 0x63, 1, 0, 3, 0, 0, 0}, -EBADMSG},
		{{0x4e, 0x63, 1, 0, 5, 0, 0, 0}, -EBADMSG},
		{{0x4e, 0x63, 1, 0, 0, 0, 0, 0}, -EBADMSG},
		{{0x4e, 0x63, 1, 0, 12, 0, 0, 0}, -EBADMSG},
		{{0x4e, 0x63, 1, 0, 0, 0, 0, 4}, -EBADMSG},
		{{0x4e, 0x63, 1, 0, 4, 1, 0, 0}, -EBADMSG},
		{{0x4e, 0x63, 1, 0, 4, 0, 0, 1}, -EBADMSG},
		{{0x4e, 0x63, 1, 0, 0xff, 0xff, 0xff, 0xff}, -EBADMSG},
	};

	(void)state;
	for (size_t i = 0; i < unit_count(cases); i++) {
		struct nc_wire_in in;

		assert_int_equal(nc_wire_open(&in, cases[i].message, 12), cases[i].result);
		if (cases[i].result < 0)
			assert_dead(&in);
	}
}

static void open_takes_the_longest_message_and_not_one_byte_more(void **state)
{
	cleanup_free unsigned char *message = calloc(1, NC_WIRE_MESSAGE_MAX + 1);
	struct nc_wire_in in;

	(void)state;
	assert_non_null(message);
	memcpy(message, "Nc", 2);
	set_size(message, NC_WIRE_MESSAGE_MAX - HEADER_SIZE);
	assert_int_equal(nc_wire_open(&in, message, NC_WIRE_MESSAGE_MAX), 0);
	set_size(message, NC_WIRE_MESSAGE_MAX + 1 - HEADER_SIZE);
	assert_int_equal(nc_wire_open(&in, message, NC_WIRE_MESSAGE_MAX + 1), -EBADMSG);
}

static void what_is_left_over_is_refused(void **state)
{
	cleanup_wire_out struct nc_wire_out out = {0};
	struct nc_wire_in in;

	(void)state;
	nc_wire_begin(&out, 1);
	nc_wire_put_u16(&out, 7);
	assert_int_equal(nc_wire_open(&in, raw, sent(&out)), 0);
	assert_int_equal(nc_wire_close(&in), -EBADMSG);
	assert_int_equal(nc_wire_get_u8(&in), 7);
	assert_int_equal(nc_wire_close(&in), -EBADMSG);
	assert_int_equal(nc_wire_get_u8(&in), 0);
	assert_int_equal(nc_wire_close(&in), 0);
}

/* Opens a message of one field with this length and these bytes, and a byte behind. */
static void open_field(struct nc_wire_in *in, uint32_t length, const void *bytes, size_t size)
{
	cleanup_wire_out struct nc_wire_out out = {0};

	nc_wire_begin(&out, 1);
	nc_wire_put_u32(&out, length);
	nc_buf_add(&out.buf, bytes, size);
	nc_wire_put_u8(&out, 7);
	assert_int_equal(nc_wire_open(in, raw, sent(&out)), 0);
}

static const struct {
	uint32_t length;
	const char *bytes;
	size_t size, max;
	bool text, data; /* whether it is taken as text, as bytes */
} fields[] = {
	{0, "", 0, 0, true, true},
	{0, "", 0, 8, true, true},
	{3, "abc", 3, 4, true, true},
	{3, "abc", 3, 3, true, true},
	{3, "abc", 3, 2, false, false},
	{3, "abc", 3, 0, false, false},
	{1, "a", 1, 0, false, false},
	{3, "\0bc", 3, 8, false, true},
	{3, "a\0c", 3, 8, false, true},
	{3, "ab\0", 3, 8, false, true},
	{1, "\0", 1, 8, false, true},
	{5, "abc", 3, 8, false, false}, /* one more than there is */
	{0x7fffffff, "abc", 3, SIZE_MAX - 1, false, false},
	{0xffffffff, "abc", 3, SIZE_MAX - 1, false, false},
	{0xfffffffc, "abc", 3, SIZE_MAX - 1, false, false},
};

static void text_is_refused_with_a_nul_or_beyond_its_maximum(void **state)
{
	(void)state;
	for (size_t i = 0; i < unit_count(fields); i++) {
		size_t room = fields[i].max < 100 ? fields[i].max + 1 : 100;
		cleanup_free char *text = malloc(room); /* the sanitizer watches its end */
		struct nc_wire_in in;

		assert_non_null(text);
		open_field(&in, fields[i].length, fields[i].bytes, fields[i].size);
		memset(text, '#', room);
		nc_wire_get_text(&in, text, fields[i].max);
		if (fields[i].text) {
			assert_string_equal(text, fields[i].bytes);
			assert_int_equal(nc_wire_get_u8(&in), 7);
			assert_int_equal(nc_wire_close(&in), 0);
		} else {
			assert_string_equal(text, "");
			assert_dead(&in);
		}
	}
}

static void bytes_are_refused_beyond_their_maximum(void **state)
{
	(void)state;
	for (size_t i = 0; i < unit_count(fields); i++) {
		const void *bytes = NULL;
		struct nc_wire_in in;
		size_t size;

		open_field(&in, fields[i].length, fields[i].bytes, fields[i].size);
		size = nc_wire_get_bytes(&in, fields[i].max, &bytes);
		if (fields[i].data) {
			assert_int_equal(size, fields[i].size);
			assert_memory_equal(bytes, fields[i].bytes, size);
			assert_int_equal(nc_wire_get_u8(&in), 7);
			assert_int_equal(nc_wire_close(&in), 0);
		} else {
			assert_int_equal(size, 0);
			assert_dead(&in);
		}
	}
}

static void a_message_of_the_maximum_is_sent_and_no_longer_one(void **state)
{
	static const char data[NC_WIRE_MESSAGE_MAX];
	const size_t fits = NC_WIRE_MESSAGE_MAX - HEADER_SIZE - 4;
	static const size_t too_long[] = {NC_WIRE_MESSAGE_MAX - HEADER_SIZE - 3,
		NC_WIRE_MESSAGE_MAX, NC_WIRE_MESSAGE_MAX + 1, UINT32_MAX, 1ULL + UINT32_MAX,
		SIZE_MAX};
	cleanup_wire_out struct nc_wire_out exact = {0};

	(void)state;
	nc_wire_begin(&exact, 1);
	nc_wire_put_bytes(&exact, data, fits);
	assert_int_equal(sent(&exact), NC_WIRE_MESSAGE_MAX);
	for (size_t i = 0; i < unit_count(too_long); i++) {
		cleanup_wire_out struct nc_wire_out out = {0};

		nc_wire_begin(&out, 1);
		nc_wire_put_bytes(&out, data, too_long[i]);
		assert_int_equal(nc_wire_send(ends[0], &out, NULL, 0), -EMSGSIZE);
		assert_nothing_was_sent();
	}
}

static void a_failed_put_is_sticky(void **state)
{
	static const char data[NC_WIRE_MESSAGE_MAX];
	static const size_t too_long[] = {sizeof(data), SIZE_MAX};

	(void)state;
	for (size_t i = 0; i < unit_count(too_long); i++) {
		cleanup_wire_out struct nc_wire_out out = {0};
		size_t size;

		nc_wire_begin(&out, 1);
		nc_wire_put_bytes(&out, data, too_long[i]);
		size = out.buf.size;
		put_one_of_each(&out);
		assert_int_equal(out.buf.size, size);
		assert_int_equal(nc_wire_send(ends[0], &out, NULL, 0), -EMSGSIZE);
		assert_int_equal(nc_wire_send(ends[0], &out, NULL, 0), -EMSGSIZE);
		assert_nothing_was_sent();
		/* a new message begins without it */
		nc_wire_out_done(&out);
		nc_wire_begin(&out, 1);
		assert_int_equal(sent(&out), HEADER_SIZE);
	}
}

static void out_of_memory_is_sticky(void **state)
{
	cleanup_wire_out struct nc_wire_out out = {0};

	(void)state;
	out_of_memory = true;
	nc_wire_begin(&out, 1);
	out_of_memory = false;
	put_one_of_each(&out);
	assert_int_equal(nc_wire_send(ends[0], &out, NULL, 0), -ENOMEM);
	assert_nothing_was_sent();
}

static void the_first_error_stays(void **state)
{
	cleanup_wire_out struct nc_wire_out out = {0};

	(void)state;
	out_of_memory = true;
	nc_wire_begin(&out, 1);
	out_of_memory = false;
	nc_wire_put_bytes(&out, NULL, NC_WIRE_MESSAGE_MAX + 1);
	assert_int_equal(nc_wire_send(ends[0], &out, NULL, 0), -ENOMEM);
}

static void done_takes_what_was_never_used(void **state)
{
	struct nc_wire_out out = {0};
	struct nc_wire_packet packet = {0};

	(void)state;
	nc_wire_out_done(&out);
	nc_wire_packet_done(&packet);
}

/* Else a second done, be it that of the scope, would free it twice. */
static void done_leaves_no_pointer_behind(void **state)
{
	struct nc_wire_out out = {0};
	struct nc_wire_packet packet = {0};

	(void)state;
	nc_wire_begin(&out, 1);
	nc_wire_out_done(&out);
	assert_null(out.buf.data);
	assert_int_equal(nc_wire_receive(ends[0], &packet, 0), -EAGAIN);
	assert_non_null(packet.data);
	nc_wire_packet_done(&packet);
	assert_int_equal(packet.n_fds, 0);
	assert_null(packet.data);
}

/* An unnamed file that holds one byte by which it is known again. */
static int marked_fd(char mark)
{
	FILE *file = tmpfile();
	int fd;

	assert_non_null(file);
	fputc(mark, file);
	assert_int_equal(fflush(file), 0);
	fd = fcntl(fileno(file), F_DUPFD_CLOEXEC, 3);
	assert_true(fd >= 0);
	fclose(file);
	return fd;
}

static char mark_of(int fd)
{
	char mark = 0;

	assert_int_equal(pread(fd, &mark, 1, 0), 1);
	return mark;
}

static void send_marked(size_t n_fds)
{
	cleanup_wire_out struct nc_wire_out out = {0};
	int fds[NC_WIRE_FDS_MAX];

	assert_true(n_fds <= NC_WIRE_FDS_MAX);
	for (size_t i = 0; i < n_fds; i++)
		fds[i] = marked_fd((char)('a' + i));
	nc_wire_begin(&out, 1);
	assert_int_equal(nc_wire_send(ends[0], &out, fds, n_fds), 0);
	for (size_t i = 0; i < n_fds; i++) {
		assert_int_equal(mark_of(fds[i]), 'a' + i); /* they stayed the caller's */
		close(fds[i]);
	}
}

/* A packet as no sender of ours makes it: size bytes and n_fds descriptors of /dev/null. */
static void send_foreign(size_t size, size_t n_fds)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(253 * sizeof(int))];
	} control = {0};
	struct iovec part = {.iov_base = raw, .iov_len = size};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	cleanup_close int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0 && size <= sizeof(raw) && n_fds <= 253);
	if (n_fds > 0) {
		struct cmsghdr *header;

		message.msg_control = control.bytes;
		message.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		header = CMSG_FIRSTHDR(&message);
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
		for (size_t i = 0; i < n_fds; i++)
			memcpy(CMSG_DATA(header) + i * sizeof(int), &fd, sizeof(fd));
	}
	assert_int_equal(sendmsg(ends[0], &message, MSG_NOSIGNAL), size);
}

static void a_message_makes_the_round_trip(void **state)
{
	cleanup_wire_out struct nc_wire_out out = {0};
	cleanup_wire_packet struct nc_wire_packet packet = {0};
	struct nc_wire_in in;
	const void *bytes;
	char text[11];

	(void)state;
	nc_wire_begin(&out, 0x1234);
	put_one_of_each(&out);
	assert_int_equal(nc_wire_send(ends[0], &out, NULL, 0), 0);
	assert_int_equal(nc_wire_receive(ends[1], &packet, 0), 1);
	assert_int_equal(packet.n_fds, 0);
	assert_int_equal(nc_wire_open(&in, packet.data, packet.size), 0);
	assert_int_equal(in.type, 0x1234);
	assert_int_equal(nc_wire_get_u8(&in), 0x81);
	assert_int_equal(nc_wire_get_u16(&in), 0x8182);
	assert_int_equal(nc_wire_get_u32(&in), 0x81828384);
	assert_int_equal(nc_wire_get_u64(&in), 0x8182838485868788);
	nc_wire_get_text(&in, text, 10);
	assert_string_equal(text, "h\xc3\xa9");
	assert_int_equal(nc_wire_get_bytes(&in, 3, &bytes), 3);
	assert_memory_equal(bytes, "a\0b", 3);
	assert_int_equal(nc_wire_close(&in), 0);
}

static void descriptors_arrive_in_order_with_cloexec(void **state)
{
	static const size_t counts[] = {0, 1, 2, NC_WIRE_FDS_MAX};

	(void)state;
	for (size_t i = 0; i < unit_count(counts); i++) {
		cleanup_wire_packet struct nc_wire_packet packet = {0};

		send_marked(counts[i]);
		assert_int_equal(nc_wire_receive(ends[1], &packet, counts[i]), 1);
		assert_int_equal(packet.n_fds, counts[i]);
		for (size_t j = 0; j < counts[i]; j++) {
			assert_int_equal(mark_of(packet.fds[j]), 'a' + j);
			assert_int_equal(fcntl(packet.fds[j], F_GETFD), FD_CLOEXEC);
		}
	}
}

static void send_refuses_more_descriptors_than_allowed(void **state)
{
	cleanup_wire_out struct nc_wire_out out = {0};
	int fds[NC_WIRE_FDS_MAX + 1];

	(void)state;
	for (size_t i = 0; i < unit_count(fds); i++)
		fds[i] = ends[0];
	nc_wire_begin(&out, 1);
	assert_true(nc_wire_send(ends[0], &out, fds, unit_count(fds)) < 0);
	assert_nothing_was_sent();
}

static void send_returns_the_error(void **state)
{
	cleanup_wire_out struct nc_wire_out out = {0};
	cleanup_close int file = marked_fd('x');
	const int empty = -EBADF;

	(void)state;
	signal(SIGPIPE, SIG_DFL);
	nc_wire_begin(&out, 1);
	assert_int_equal(nc_wire_send(ends[0], &out, &empty, 1), -EBADF);
	assert_int_equal(nc_wire_send(-EBADF, &out, NULL, 0), -EBADF);
	assert_int_equal(nc_wire_send(file, &out, NULL, 0), -ENOTSOCK);
	assert_nothing_was_sent();
	ends[1] = nc_fd_close(ends[1]);
	assert_int_equal(nc_wire_send(ends[0], &out, NULL, 0), -EPIPE); /* and no SIGPIPE */
}

static void interruptions_are_not_seen(void **state)
{
	cleanup_wire_out struct nc_wire_out out = {0};
	cleanup_wire_packet struct nc_wire_packet packet = {0};

	(void)state;
	nc_wire_begin(&out, 1);
	interruptions = 3;
	assert_int_equal(nc_wire_send(ends[0], &out, &ends[0], 1), 0);
	assert_int_equal(interruptions, 0);
	interruptions = 3;
	assert_int_equal(nc_wire_receive(ends[1], &packet, 1), 1);
	assert_int_equal(interruptions, 0);
	assert_int_equal(packet.size, HEADER_SIZE);
	assert_int_equal(packet.n_fds, 1);
	assert_int_equal(nc_wire_receive(ends[1], &packet, 1), -EAGAIN);
}

static void too_many_descriptors_are_refused_and_closed(void **state)
{
	static const struct {
		size_t sent, max;
	} cases[] = {{1, 0}, {2, 1}, {16, 0}, {16, 15}, {17, 16}, {18, 16}, {33, 16}, {253, 16},
		{253, 0}};
	cleanup_wire_packet struct nc_wire_packet packet = {0};

	(void)state;
	for (size_t i = 0; i < unit_count(cases); i++) {
		size_t before = unit_fd_count();

		send_foreign(10, cases[i].sent);
		assert_int_equal(nc_wire_receive(ends[1], &packet, cases[i].max), -EBADMSG);
		assert_int_equal(packet.n_fds, 0);
		assert_int_equal(unit_fd_count(), before);
	}
	send_marked(1);
	assert_int_equal(nc_wire_receive(ends[1], &packet, 1), 1);
	assert_int_equal(mark_of(packet.fds[0]), 'a');
}

/* The kernel passes on what it can when the table of descriptors is full. */
static void descriptors_that_do_not_fit_the_table_are_refused(void **state)
{
	cleanup_wire_packet struct nc_wire_packet packet = {0};
	size_t before = unit_fd_count();
	struct rlimit old, tight;
	int r, lowest;

	(void)state;
	send_foreign(10, 3);
	lowest = fcntl(0, F_DUPFD_CLOEXEC, 0);
	if (lowest < 0)
		unit_skip("standard input is closed");
	close(lowest);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	tight = (struct rlimit){.rlim_cur = (rlim_t)lowest + 1, .rlim_max = old.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
	r = nc_wire_receive(ends[1], &packet, 3);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_int_equal(r, -EBADMSG);
	assert_int_equal(packet.n_fds, 0);
	assert_int_equal(unit_fd_count(), before);
}

static void a_packet_of_the_maximum_is_received_and_no_longer_one(void **state)
{
	cleanup_wire_packet struct nc_wire_packet packet = {0};
	size_t before = unit_fd_count();

	(void)state;
	memset(raw, 'x', sizeof(raw));
	send_foreign(NC_WIRE_MESSAGE_MAX, 0);
	assert_int_equal(nc_wire_receive(ends[1], &packet, 1), 1);
	assert_int_equal(packet.size, NC_WIRE_MESSAGE_MAX);
	assert_memory_equal(packet.data, raw, NC_WIRE_MESSAGE_MAX);
	send_foreign(NC_WIRE_MESSAGE_MAX + 1, 1);
	assert_int_equal(nc_wire_receive(ends[1], &packet, 1), -EBADMSG);
	assert_int_equal(packet.n_fds, 0);
	assert_int_equal(unit_fd_count(), before);
	/* none of it is taken for the next packet */
	assert_int_equal(nc_wire_receive(ends[1], &packet, 1), -EAGAIN);
}

static void the_end_of_the_other_side_is_zero(void **state)
{
	cleanup_wire_packet struct nc_wire_packet packet = {0};

	(void)state;
	send_marked(1);
	ends[0] = nc_fd_close(ends[0]);
	assert_int_equal(nc_wire_receive(ends[1], &packet, 1), 1);
	assert_int_equal(nc_wire_receive(ends[1], &packet, 1), 0);
	assert_int_equal(packet.n_fds, 0);
	assert_int_equal(nc_wire_receive(ends[1], &packet, 1), 0);
}

static void receive_returns_the_error(void **state)
{
	cleanup_wire_packet struct nc_wire_packet packet = {0};
	cleanup_close int file = marked_fd('x');

	(void)state;
	assert_int_equal(nc_wire_receive(-EBADF, &packet, 0), -EBADF);
	assert_int_equal(nc_wire_receive(file, &packet, 0), -ENOTSOCK);
	assert_int_equal(nc_wire_receive(ends[1], &packet, 0), -EAGAIN);
}

static void an_empty_packet_leaks_nothing(void **state)
{
	struct nc_wire_packet packet = {0};
	size_t before = unit_fd_count();

	(void)state;
	send_foreign(0, 2);
	assert_true(nc_wire_receive(ends[1], &packet, 2) <= 0);
	nc_wire_packet_done(&packet);
	assert_int_equal(unit_fd_count(), before);
}

static void receiving_again_closes_what_nobody_took(void **state)
{
	cleanup_wire_packet struct nc_wire_packet packet = {0};
	const size_t before = unit_fd_count();
	unsigned char *data;

	(void)state;
	send_marked(3);
	assert_int_equal(nc_wire_receive(ends[1], &packet, 3), 1);
	assert_int_equal(unit_fd_count(), before + 3);
	data = packet.data;
	send_marked(1);
	assert_int_equal(nc_wire_receive(ends[1], &packet, 3), 1);
	assert_int_equal(packet.n_fds, 1);
	assert_int_equal(mark_of(packet.fds[0]), 'a');
	assert_int_equal(unit_fd_count(), before + 1);
	assert_ptr_equal(packet.data, data); /* allocated by the first */
	/* also when there is nothing to receive */
	assert_int_equal(nc_wire_receive(ends[1], &packet, 3), -EAGAIN);
	assert_int_equal(unit_fd_count(), before);
}

static void taken_descriptors_survive(void **state)
{
	struct nc_wire_packet packet = {0};
	const size_t before = unit_fd_count();
	int first, last;

	(void)state;
	send_marked(3);
	assert_int_equal(nc_wire_receive(ends[1], &packet, 3), 1);
	first = take_fd(packet.fds[1]);
	send_marked(2);
	assert_int_equal(nc_wire_receive(ends[1], &packet, 3), 1);
	last = take_fd(packet.fds[0]);
	errno = EXDEV;
	nc_wire_packet_done(&packet);
	assert_int_equal(errno, EXDEV);
	assert_int_equal(unit_fd_count(), before + 2);
	assert_int_equal(mark_of(first), 'b');
	assert_int_equal(mark_of(last), 'a');
	close(first);
	close(last);
}

#define wire_test(function) cmocka_unit_test_setup_teardown(function, connect_ends, close_ends)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		wire_test(a_message_looks_as_described),
		wire_test(numbers_make_the_round_trip),
		wire_test(text_and_bytes_make_the_round_trip),
		wire_test(an_empty_message_is_a_header),
		wire_test(truncation_at_every_length_is_refused),
		wire_test(open_checks_magic_and_size),
		wire_test(open_takes_the_longest_message_and_not_one_byte_more),
		wire_test(what_is_left_over_is_refused),
		wire_test(text_is_refused_with_a_nul_or_beyond_its_maximum),
		wire_test(bytes_are_refused_beyond_their_maximum),
		wire_test(a_message_of_the_maximum_is_sent_and_no_longer_one),
		wire_test(a_failed_put_is_sticky),
		wire_test(out_of_memory_is_sticky),
		wire_test(the_first_error_stays),
		wire_test(done_takes_what_was_never_used),
		wire_test(done_leaves_no_pointer_behind),
		wire_test(a_message_makes_the_round_trip),
		wire_test(descriptors_arrive_in_order_with_cloexec),
		wire_test(send_refuses_more_descriptors_than_allowed),
		wire_test(send_returns_the_error),
		wire_test(interruptions_are_not_seen),
		wire_test(too_many_descriptors_are_refused_and_closed),
		wire_test(descriptors_that_do_not_fit_the_table_are_refused),
		wire_test(a_packet_of_the_maximum_is_received_and_no_longer_one),
		wire_test(the_end_of_the_other_side_is_zero),
		wire_test(receive_returns_the_error),
		wire_test(an_empty_packet_leaks_nothing),
		wire_test(receiving_again_closes_what_nobody_took),
		wire_test(taken_descriptors_survive),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
