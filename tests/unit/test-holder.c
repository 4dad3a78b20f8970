/* What a worker makes of a holder of the next version, and of one that breaks the rules. */
#include "unit.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "tier/holder.h"

#define NEXT (NC_BOXWIRE_VERSION + 1)
#define UNKNOWN 150

static struct nc_holder holder;
static int theirs = -EBADF;

static int set_up(void **state)
{
	int ends[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	holder = (struct nc_holder){.fd = ends[0]};
	theirs = ends[1];
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	nc_holder_done(&holder);
	theirs = nc_fd_close(theirs);
	return 0;
}

/* It says `more` at the end of each message, which this version does not know. */
static void say(struct nc_wire_out *out, uint32_t more)
{
	if (more)
		nc_wire_put_u32(out, more);
	assert_int_equal(nc_wire_send(theirs, out, NULL, 0), 0);
	nc_wire_out_done(out);
}

static int greet(uint32_t version, uint32_t more)
{
	const struct nc_box_welcome welcome = {
		.scratch = "/scratch", .terms[NC_TIER_CONTAINER] = {.here = true, .warms = true}};
	struct nc_wire_out out = {0};
	struct nacre_err err = {0};

	nc_wire_begin(&out, NC_BOX_WELCOME);
	nc_wire_put_u32(&out, version);
	nc_boxwire_put_welcome(&out, &welcome);
	say(&out, more);
	return nc_holder_connect(&holder, &err);
}

static void say_failed(uint64_t id, uint32_t more)
{
	struct nc_wire_out out = {0};

	nc_wire_begin(&out, NC_BOX_FAILED);
	nc_wire_put_u64(&out, id);
	nc_wire_put_u8(&out, NC_FAIL_PROGRAM);
	nc_wire_put_u32(&out, ENOENT);
	nc_wire_put_text(&out, "x");
	say(&out, more);
}

static void say_answer(uint32_t number, uint32_t error)
{
	struct nc_wire_out out = {0};

	nc_wire_begin(&out, NC_BOX_ANSWER);
	nc_wire_put_u32(&out, number);
	nc_wire_put_u32(&out, error);
	say(&out, 0);
}

static void say_unknown(void)
{
	struct nc_wire_out out = {0};

	nc_wire_begin(&out, UNKNOWN);
	say(&out, 1);
}

static void a_newer_holder_is_understood(void **state)
{
	struct nc_holder_event event;

	(void)state;
	assert_int_equal(greet(NEXT, 5), 0);
	assert_true(holder.welcome.terms[NC_TIER_CONTAINER].warms &&
		    nc_holder_terms(&holder, NC_TIER_CONTAINER)->here);
	say_unknown();
	assert_int_equal(nc_holder_receive(&holder, &event), -EAGAIN);
	say_failed(4, 5);
	assert_int_equal(nc_holder_receive(&holder, &event), 0);
	assert_int_equal(event.type, NC_BOX_FAILED);
	assert_int_equal(event.id, 4);
	assert_int_equal(event.end.fail, NC_FAIL_PROGRAM);
}

/* One that was taken over does not get the boxes of others by saying that it has such. */
static void one_is_believed_what_its_row_says(void **state)
{
	(void)state;
	holder.tiers = 1U << NC_TIER_DOCKER;
	assert_int_equal(greet(NC_BOXWIRE_VERSION, 0), 0);
	assert_false(holder.welcome.terms[NC_TIER_CONTAINER].here);
	assert_false(holder.welcome.terms[NC_TIER_CONTAINER].warms);
}

static void one_of_our_version_says_nothing_else(void **state)
{
	struct nc_holder_event event;

	(void)state;
	assert_int_equal(greet(NC_BOXWIRE_VERSION, 0), 0);
	say_failed(4, 5);
	assert_int_equal(nc_holder_receive(&holder, &event), -EPROTO);
	say_unknown();
	assert_int_equal(nc_holder_receive(&holder, &event), -EPROTO);
}

static void an_older_one_is_refused(void **state)
{
	(void)state;
	assert_int_equal(greet(NC_BOXWIRE_OLDEST - 1, 0), -EPROTO);
}

/* Each request has a number, and its answer has the same; who is older than we are says so. */
static void what_is_asked_is_answered(void **state)
{
	int64_t first, second;

	struct nc_holder_event event;

	(void)state;
	assert_int_equal(greet(NC_BOXWIRE_VERSION, 0), 0);
	first = nc_holder_freeze(&holder, 9, true);
	second = nc_holder_resize(&holder, 9, 24, 80);
	assert_true(first > 0 && second > 0 && first != second);
	say_answer((uint32_t)second, EOPNOTSUPP);
	say_answer((uint32_t)first, 0);
	assert_int_equal(nc_holder_receive(&holder, &event), 0);
	assert_int_equal(event.type, NC_BOX_ANSWER);
	assert_int_equal(event.number, second);
	assert_int_equal(event.error, -EOPNOTSUPP);
	assert_int_equal(nc_holder_receive(&holder, &event), 0);
	assert_int_equal(event.number, first);
	assert_int_equal(event.error, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_newer_holder_is_understood, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			one_of_our_version_says_nothing_else, set_up, tear_down),
		cmocka_unit_test_setup_teardown(an_older_one_is_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_asked_is_answered, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			one_is_believed_what_its_row_says, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
