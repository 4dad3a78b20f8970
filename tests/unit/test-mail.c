/* Messages that wait: in order, with their descriptors, and not more than may. */
#include "unit-files.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mail.h"

static void count(void *context)
{
	++*(int *)context;
}

static int put(struct nc_mail *mail, int fd, uint32_t number, int with_fd)
{
	cleanup_wire_out struct nc_wire_out out = {0};
	char filler[16384] = "";

	nc_wire_begin(&out, 1);
	nc_wire_put_u32(&out, number);
	nc_wire_put_bytes(&out, filler, sizeof(filler));
	return nc_mail_send(mail, fd, &out, &with_fd, with_fd >= 0);
}

static uint32_t take(int fd, size_t *ret_fds)
{
	cleanup_wire_packet struct nc_wire_packet packet = {0};
	struct nc_wire_in in;

	assert_int_equal(nc_wire_receive(fd, &packet, 1), 1);
	assert_int_equal(nc_wire_open(&in, packet.data, packet.size), 0);
	*ret_fds = packet.n_fds;
	return nc_wire_get_u32(&in);
}

static void they_come_in_order(void **state)
{
	int ends[2], told = 0, r = 0;
	struct nc_mail mail = {.max = 50, .waits = count, .context = &told};
	uint32_t sent = 0;
	size_t fds;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, ends), 0);
	/* until the socket is full, and then as many as may wait */
	while ((r = put(&mail, ends[0], sent, sent % 2 ? STDIN_FILENO : -EBADF)) == 0)
		sent++;
	assert_int_equal(r, -EAGAIN);
	assert_int_equal(mail.count, 50);
	assert_int_equal(told, 1);
	for (uint32_t i = 0; i < sent; i++) {
		assert_int_equal(take(ends[1], &fds), i);
		assert_int_equal(fds, i % 2);
		(void)nc_mail_flush(&mail, ends[0]);
	}
	assert_true(nc_mail_flush(&mail, ends[0]));
	assert_int_equal(mail.count, 0);
	assert_int_equal(put(&mail, ends[0], 7, -EBADF), 0);
	assert_int_equal(take(ends[1], &fds), 7);
	close(ends[0]);
	close(ends[1]);
}

static void what_waits_is_freed(void **state)
{
	int ends[2], told = 0;
	struct nc_mail mail = {.max = 5, .waits = count, .context = &told};

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, ends), 0);
	while (put(&mail, ends[0], 0, STDIN_FILENO) == 0)
		;
	nc_mail_done(&mail);
	assert_int_equal(mail.count, 0);
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		unit_test_fds(they_come_in_order),
		unit_test_fds(what_waits_is_freed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
