/* Places where the next partner is met: each has a pair of his own, and what is no call is none. */
#include "base/meeting.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/wire.h"
#include "unit.h"

static void each_who_calls_has_a_pair_of_his_own(void **state)
{
	int place[2], first, second, taken;
	char text[8];

	(void)state;
	assert_int_equal(nc_meeting_new(place), 0);
	assert_int_equal(nc_meeting_take(place[1]), -EAGAIN);
	first = nc_meeting_call(place[0], SOCK_SEQPACKET);
	second = nc_meeting_call(place[0], SOCK_STREAM);
	assert_true(first >= 0 && second >= 0);
	taken = nc_meeting_take(place[1]);
	assert_int_equal(write(first, "one", 3), 3);
	assert_int_equal(read(taken, text, sizeof(text)), 3);
	(void)close(first);
	assert_int_equal(read(taken, text, sizeof(text)), 0); /* his death is the end of it */
	(void)close(taken);
	taken = nc_meeting_take(place[1]);
	assert_int_equal(write(second, "two", 3), 3);
	assert_int_equal(read(taken, text, sizeof(text)), 3);
	assert_memory_equal(text, "two", 3);
	(void)close(taken);
	(void)close(second);
	(void)close(place[0]);
	assert_int_equal(nc_meeting_take(place[1]), -ECONNRESET);
	(void)close(place[1]);
}

static void nobody_is_there(void **state)
{
	int place[2];

	(void)state;
	assert_int_equal(nc_meeting_new(place), 0);
	(void)close(place[1]);
	assert_int_equal(nc_meeting_call(place[0], SOCK_STREAM), -EPIPE);
	(void)close(place[0]);
}

/* Whoever takes none must not hold up the one who calls for ever. */
static void nobody_takes_it(void **state)
{
	int place[2], held[1000], r = 0;
	size_t n = 0;

	(void)state;
	assert_int_equal(nc_meeting_new(place), 0);
	while (n < 1000 && (r = nc_meeting_call(place[0], SOCK_STREAM)) >= 0)
		held[n++] = r;
	assert_true(r == -EAGAIN || r == -EMFILE || r == -ETOOMANYREFS);
	while (n > 0)
		(void)close(held[--n]);
	(void)close(place[0]);
	(void)close(place[1]);
}

static void what_is_no_call_is_passed_over(void **state)
{
	struct nc_wire_out out = {0};
	int place[2], fds[2] = {STDIN_FILENO, STDOUT_FILENO}, fd;

	(void)state;
	assert_int_equal(nc_meeting_new(place), 0);
	nc_wire_begin(&out, 7);
	assert_int_equal(nc_wire_send(place[0], &out, NULL, 0), 0);
	assert_int_equal(nc_wire_send(place[0], &out, fds, 2), 0);
	assert_int_equal(write(place[0], "x", 1), 1);
	nc_wire_out_done(&out);
	for (int i = 0; i < 3; i++)
		assert_int_equal(nc_meeting_take(place[1]), -EAGAIN);
	fd = nc_meeting_call(place[0], SOCK_STREAM);
	(void)close(fd);
	fd = nc_meeting_take(place[1]);
	assert_true(fd >= 0);
	(void)close(fd);
	(void)close(place[0]);
	(void)close(place[1]);
}

static void waits_for_words_and_for_the_next(void **state)
{
	int place[2], first, second, fd = -EBADF;
	char text[8];

	(void)state;
	assert_int_equal(nc_meeting_new(place), 0);
	first = nc_meeting_call(place[0], SOCK_SEQPACKET);
	assert_int_equal(nc_meeting_wait(&place[1], &fd), 2);
	assert_int_equal(write(first, "one", 3), 3);
	second = nc_meeting_call(place[0], SOCK_SEQPACKET);
	/* his last word before the next has his turn */
	assert_int_equal(nc_meeting_wait(&place[1], &fd), 1);
	assert_int_equal(read(fd, text, sizeof(text)), 3);
	assert_int_equal(nc_meeting_wait(&place[1], &fd), 2);
	assert_int_equal(write(first, "more", 4), -1); /* nobody is there for him any more */
	assert_int_equal(write(second, "two", 3), 3);
	assert_int_equal(nc_meeting_wait(&place[1], &fd), 1);
	assert_int_equal(read(fd, text, sizeof(text)), 3);
	(void)close(first);
	(void)close(second);
	(void)close(place[0]);
	assert_int_equal(nc_meeting_wait(&place[1], &fd), 1); /* the end is to be read too */
	assert_int_equal(read(fd, text, sizeof(text)), 0);
	fd = nc_fd_close(fd);
	assert_int_equal(nc_meeting_wait(&place[1], &fd), 0);
	assert_true(place[1] < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_who_calls_has_a_pair_of_his_own),
		cmocka_unit_test(nobody_is_there),
		cmocka_unit_test(nobody_takes_it),
		cmocka_unit_test(what_is_no_call_is_passed_over),
		cmocka_unit_test(waits_for_words_and_for_the_next),
	};

	(void)signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
