/* Several holders of boxes behind one hub: each has boxes of its own, and one that dies takes those
 * alone. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "tier/hub.h"

#define N 2

static struct nc_holder holders[N];
static int theirs[N];
static struct nc_wire_packet packet;
static struct nc_small_loop loop;
static struct nc_hub *hub;

struct outcome {
	bool ended;
	struct nc_box_end end;
	struct nacre_err failure;
	char printed[64];
};

static void make_holder(size_t i)
{
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	holders[i] = (struct nc_holder){.fd = ends[0], .number = (unsigned int)i};
	theirs[i] = ends[1];
}

static void welcome(size_t i, enum nc_tier tier)
{
	struct nc_box_welcome said = {0};
	cleanup_wire_out struct nc_wire_out out = {0};

	said.terms[tier].here = true;
	nc_wire_begin(&out, NC_BOX_WELCOME);
	nc_wire_put_u32(&out, NC_BOXWIRE_VERSION);
	nc_boxwire_put_welcome(&out, &said);
	assert_int_equal(nc_wire_send(theirs[i], &out, NULL, 0), 0);
}

/* of commands; the hub may end them after their test */
static struct outcome first, second;

static uint16_t hear(size_t i)
{
	struct nc_wire_in in;

	if (nc_wire_receive(theirs[i], &packet, NC_BOX_FDS_MAX) <= 0 ||
		nc_wire_open(&in, packet.data, packet.size) < 0)
		return 0;
	return in.type;
}

static unsigned int n_answers;
static int64_t last_answer;
static int last_error;

static void answered(void *context, int64_t ticket, int error)
{
	(void)context;
	n_answers++;
	last_answer = ticket;
	last_error = error;
}

static void say_answer(size_t i, uint32_t number, uint32_t error)
{
	cleanup_wire_out struct nc_wire_out out = {0};

	nc_wire_begin(&out, NC_BOX_ANSWER);
	nc_wire_put_u32(&out, number);
	nc_wire_put_u32(&out, error);
	assert_int_equal(nc_wire_send(theirs[i], &out, NULL, 0), 0);
}

static void turn_for(const unsigned int *count, unsigned int wanted)
{
	while (*count < wanted)
		assert_int_equal(nc_small_loop_turn(&loop), 0);
}

static int set_up(void **state)
{
	static const enum nc_tier tiers[N] = {NC_TIER_CONTAINER, NC_TIER_DOCKER};
	struct nacre_err err = {0};

	(void)state;
	first = second = (struct outcome){0};
	n_answers = 0;
	for (size_t i = 0; i < N; i++) {
		make_holder(i);
		welcome(i, tiers[i]);
		assert_int_equal(nc_holder_connect(&holders[i], &err), 0);
		assert_int_equal(hear(i), NC_BOX_HELLO);
		assert_int_equal(fcntl(theirs[i], F_SETFL, O_NONBLOCK), 0);
	}
	holders[0].next = &holders[1];
	nc_small_loop_init(&loop);
	assert_int_equal(nc_hub_new(loop.face, &holders[0], &hub), 0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	nc_hub_free(hub);
	nc_small_loop_done(&loop);
	nc_wire_packet_done(&packet);
	packet = (struct nc_wire_packet){0};
	for (size_t i = 0; i < N; i++) {
		nc_holder_done(&holders[i]);
		theirs[i] = nc_fd_close(theirs[i]);
	}
	return 0;
}

static void printed(void *context, enum nc_stream stream, const char *data, size_t size)
{
	struct outcome *outcome = context;

	(void)stream;
	strncat(outcome->printed, data, size);
}

static void ended(void *context, const struct nc_box_end *end, uint64_t output_bytes,
	const struct nacre_err *failure)
{
	struct outcome *outcome = context;

	(void)output_bytes;
	outcome->ended = true;
	outcome->end = *end;
	if (failure)
		outcome->failure = *failure;
}

static uint64_t start(enum nc_tier tier, struct outcome *outcome, struct nc_command **ret_command)
{
	static const char word[] = "true";
	const struct nc_exec_spec exec = {.id = nc_hub_box_id(hub, tier),
		.tier = tier,
		.dir = "/",
		.argv = {word, sizeof(word), 1}};
	const struct nc_command_spec spec = {.exec = &exec,
		.image_fd = -EBADF,
		.input_fd = -EBADF,
		.output_max = 100,
		.context = outcome,
		.printed = printed,
		.ended = ended};
	struct nacre_err err = {0};

	assert_int_equal(nc_hub_start(hub, &spec, ret_command, &err), 0);
	return exec.id;
}

static void say_end(size_t i, uint64_t id)
{
	const struct nc_box_end end = {.id = id, .code = 3};
	cleanup_wire_out struct nc_wire_out out = {0};

	nc_wire_begin(&out, NC_BOX_ENDED);
	nc_boxwire_put_end(&out, &end);
	assert_int_equal(nc_wire_send(theirs[i], &out, NULL, 0), 0);
}

static void turn_until(const bool *done)
{
	for (int i = 0; i < 50 && !*done; i++)
		assert_int_equal(nc_small_loop_turn(&loop), 0);
	assert_true(*done);
}

static unsigned int lost_number;
static bool was_lost;

static void lost(void *context, unsigned int number)
{
	(void)context;
	lost_number = number;
	was_lost = true;
}

static void a_box_has_the_holder_of_its_tier(void **state)
{
	struct nc_command *command;
	uint64_t one = start(NC_TIER_CONTAINER, &first, &command);
	uint64_t two = start(NC_TIER_DOCKER, &second, &command);

	(void)state;
	assert_int_equal(nc_hub_holder_of(one), 0);
	assert_int_equal(nc_hub_holder_of(two), 1);
	assert_int_equal(nc_hub_holder_of(nc_hub_id_beside(hub, two)), 1);
	/* of a tier that nobody has: the first, which says why */
	assert_int_equal(nc_hub_holder_of(nc_hub_box_id(hub, NC_TIER_MICROVM)), 0);
	assert_int_equal(hear(0), NC_BOX_RUN);
	assert_int_equal(hear(1), NC_BOX_RUN);
	assert_int_equal(packet.n_fds, 3);
	assert_int_equal(write(packet.fds[1], "hello", 5), 5);
	nc_wire_packet_done(&packet);
	packet = (struct nc_wire_packet){0};
	say_end(1, two);
	turn_until(&second.ended);
	assert_string_equal(second.printed, "hello");
	assert_int_equal(second.end.code, 3);
	assert_false(first.ended);
	nc_hub_drop(hub, one);
	assert_int_equal(hear(0), NC_BOX_KILL);
	assert_int_equal(hear(1), 0);
	nc_hub_drop(hub, 7ULL << 56); /* nobody's */
	assert_int_equal(hear(0), 0);
}

static void one_that_dies_takes_its_own_boxes(void **state)
{
	const struct nc_hub_watch watch = {.lost = lost};
	struct nc_command *command;
	int ends[2];

	(void)state;
	was_lost = false;
	nc_hub_watch(hub, &watch);
	(void)start(NC_TIER_CONTAINER, &first, &command);
	(void)start(NC_TIER_DOCKER, &second, &command);
	theirs[1] = nc_fd_close(theirs[1]);
	turn_until(&was_lost);
	assert_int_equal(lost_number, 1);
	assert_true(second.ended && second.failure.code == -ECONNRESET);
	assert_int_equal(second.end.fail, NC_FAIL_LOST);
	assert_false(first.ended);
	assert_false(nc_hub_has(hub, 1));
	assert_false(nc_holder_terms(&holders[0], NC_TIER_DOCKER)->here);
	/* the next one */
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	theirs[1] = ends[1];
	assert_int_equal(nc_hub_meet(hub, 1, ends[0]), 0);
	assert_int_equal(hear(1), NC_BOX_HELLO);
	welcome(1, NC_TIER_DOCKER);
	assert_int_equal(nc_small_loop_turn(&loop), 0);
	assert_true(nc_holder_terms(&holders[0], NC_TIER_DOCKER)->here);
	second = (struct outcome){0};
	say_end(1, start(NC_TIER_DOCKER, &second, &command));
	assert_int_equal(hear(1), NC_BOX_RUN);
	nc_wire_packet_done(&packet);
	packet = (struct nc_wire_packet){0};
	turn_until(&second.ended);
	assert_int_equal(second.failure.code, 0);
}

/* A holder that was taken over speaks of a box of another's. */
static void nobody_speaks_of_others_boxes(void **state)
{
	const struct nc_hub_watch watch = {.lost = lost};
	struct nc_command *command;
	uint64_t id = start(NC_TIER_CONTAINER, &first, &command);

	(void)state;
	was_lost = false;
	nc_hub_watch(hub, &watch);
	say_end(1, id);
	turn_until(&was_lost);
	assert_false(first.ended);
	assert_true(nc_hub_has(hub, 0) && !nc_hub_has(hub, 1));
}

/* Of two that have the same tier each gets its share. */
static void several_holders_of_one_tier_share_the_work(void **state)
{
	struct nc_command *commands[4];
	unsigned int n[N] = {0};

	(void)state;
	holders[1].welcome.terms[NC_TIER_CONTAINER].here = true;
	for (size_t i = 0; i < 4; i++) {
		uint64_t id = start(NC_TIER_CONTAINER, &first, &commands[i]);

		n[nc_hub_holder_of(id)]++;
	}
	assert_int_equal(n[0], 2);
	assert_int_equal(n[1], 2);
}

/* What was asked is answered by its ticket, of whatever holder; or by the end of that holder. */
static void what_was_asked_is_answered(void **state)
{
	const struct nc_hub_watch watch = {.answered = answered};
	int64_t ask, never;

	(void)state;
	nc_hub_watch(hub, &watch);
	ask = nc_hub_freeze(hub, nc_hub_box_id(hub, NC_TIER_DOCKER), true);
	never = nc_hub_freeze(hub, nc_hub_box_id(hub, NC_TIER_DOCKER), true);
	assert_true(ask > 0 && never > 0 && ask != never);
	say_answer(1, (uint32_t)ask, ESRCH);
	turn_for(&n_answers, 1);
	assert_true(nc_hub_is_ticket(last_answer, ask) && !nc_hub_is_ticket(last_answer, never));
	assert_int_equal(last_error, -ESRCH);
	say_answer(1, 0, 0); /* no number of a request: an answer to nothing, and not to all */
	turn_for(&n_answers, 2);
	assert_true(nc_hub_is_ticket(last_answer, never));
	assert_false(nc_hub_is_ticket(last_answer, never ^ (int64_t)1 << 32));
	assert_int_equal(last_error, -ECONNRESET);
	assert_int_equal(nc_hub_freeze(hub, nc_hub_id_beside(hub, 1ULL << 56), true), -ECONNRESET);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_box_has_the_holder_of_its_tier, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			one_that_dies_takes_its_own_boxes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(nobody_speaks_of_others_boxes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			several_holders_of_one_tier_share_the_work, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_was_asked_is_answered, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
