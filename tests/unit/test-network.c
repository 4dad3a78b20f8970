/* Doors of boxes, with a nacre-egress that the test itself is: what it says, and when it dies. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "egress/wire.h"
#include "engine/network.h"
#include "unit-files.h"

static struct {
	unsigned int decided, over, metered, shut;
	bool with_meter; /* the last word */
} heard;

static void on_decided(void *context, const struct nc_egress_decision *decision)
{
	(void)context, (void)decision;
	heard.decided++;
}

static void on_over(void *context, enum nc_reason reason)
{
	(void)context, (void)reason;
	heard.over++;
}

static void on_metered(void *context, const struct nc_egress_meter *meter)
{
	(void)context, (void)meter;
	heard.metered++;
}

static void on_shut(void *context, const struct nc_egress_meter *meter)
{
	(void)context;
	heard.shut++;
	heard.with_meter = meter != NULL;
}

static const struct nc_door_listener listener = {
	.decided = on_decided, .over = on_over, .metered = on_metered, .shut = on_shut};
static const struct nc_egress_terms no_terms;

/* A network, and the other end of its socket. */
struct both {
	uv_loop_t loop;
	struct nc_network *network;
	int egress_fd;
};

static void say(int fd, uint16_t type, const uint64_t *box, uint32_t number)
{
	cleanup_wire_out struct nc_wire_out out = {0};

	nc_wire_begin(&out, type);
	if (box)
		nc_wire_put_u64(&out, *box);
	nc_wire_put_u32(&out, number);
	if (type == NC_EGRESS_WELCOME)
		nc_wire_put_text(&out, "PEM");
	assert_int_equal(nc_wire_send(fd, &out, NULL, 0), 0);
}

static void say_meter(struct both *both, uint64_t box, uint64_t requests, bool last)
{
	const struct nc_egress_meter meter = {.box = box, .requests = requests, .last = last};
	cleanup_wire_out struct nc_wire_out out = {0};

	nc_wire_begin(&out, NC_EGRESS_METER);
	nc_egresswire_put_meter(&out, &meter);
	assert_int_equal(nc_wire_send(both->egress_fd, &out, NULL, 0), 0);
	(void)uv_run(&both->loop, UV_RUN_NOWAIT);
}

/* What the worker asked for last, and of which box. */
static uint16_t asked(struct both *both, uint64_t *ret_box)
{
	cleanup_wire_packet struct nc_wire_packet packet = {0};
	struct nc_wire_in in;

	assert_int_equal(nc_wire_receive(both->egress_fd, &packet, NC_WIRE_FDS_MAX), 1);
	assert_int_equal(nc_wire_open(&in, packet.data, packet.size), 0);
	*ret_box = nc_wire_get_u64(&in);
	return in.type;
}

static void begin(struct both *both)
{
	struct nacre_err err = {0};
	uint64_t ignored;
	int ends[2];

	memset(&heard, 0, sizeof(heard));
	assert_int_equal(uv_loop_init(&both->loop), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	both->egress_fd = ends[1];
	say(ends[1], NC_EGRESS_WELCOME, NULL, NC_EGRESSWIRE_VERSION);
	assert_int_equal(nc_network_new(&both->loop, ends[0], &both->network, &err), 0);
	assert_int_equal(asked(both, &ignored), NC_EGRESS_HELLO);
}

static void end(struct both *both)
{
	nc_network_free(both->network);
	(void)nc_fd_close(both->egress_fd);
	(void)uv_run(&both->loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&both->loop), 0);
}

/* As the spawner gives it: a listener, or a socket on which it and spare ones come. */
static int make_door(bool has_guests)
{
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	if (has_guests) {
		cleanup_wire_out struct nc_wire_out out = {0};

		nc_wire_begin(&out, 1);
		assert_int_equal(nc_wire_send(ends[1], &out, ends, 2), 0);
	}
	close(ends[1]);
	return ends[0];
}

static int open_door(struct both *both, uint64_t box, const struct nc_egress_terms *terms,
	struct nc_door **ret_door, struct nacre_err *err)
{
	return nc_door_open(both->network, box, make_door(terms->group != NULL), terms, &listener,
		ret_door, err);
}

static void a_door_that_is_refused_is_none(void **state)
{
	struct nacre_err err = {0};
	uint64_t box = 7, asked_box;
	struct nc_door *door;
	struct both both;

	(void)state;
	begin(&both);
	assert_int_equal(open_door(&both, box, &no_terms, &door, &err), 0);
	assert_int_equal(asked(&both, &asked_box), NC_EGRESS_OPEN);
	assert_int_equal(asked_box, box);
	say(both.egress_fd, NC_EGRESS_DONE, &box, ENOSPC);
	(void)uv_run(&both.loop, UV_RUN_NOWAIT);
	assert_true(heard.shut == 1 && !heard.with_meter);
	end(&both);
	assert_int_equal(heard.shut, 1);
}

static void what_is_said_of_strangers_is_nobodys(void **state)
{
	uint64_t box = 9, asked_box;
	struct both both;

	(void)state;
	begin(&both);
	/* of a worker before us, whose box is gone: it shall be shut */
	say_meter(&both, box, 3, false);
	assert_int_equal(asked(&both, &asked_box), NC_EGRESS_SHUT);
	assert_int_equal(asked_box, box);
	say_meter(&both, box, 3, true);
	say(both.egress_fd, NC_EGRESS_DONE, &box, ENOENT);
	(void)uv_run(&both.loop, UV_RUN_NOWAIT);
	assert_true(heard.metered == 0 && heard.shut == 0);
	assert_int_equal(nc_network_totals(both.network).requests, 0);
	assert_true(nc_network_is_up(both.network));
	end(&both);
}

static void meters_are_added_once(void **state)
{
	struct nc_network_totals totals;
	struct nacre_err err = {0};
	struct nc_door *one, *two;
	struct both both;

	(void)state;
	begin(&both);
	assert_int_equal(open_door(&both, 1, &no_terms, &one, &err), 0);
	assert_int_equal(open_door(&both, 2, &no_terms, &two, &err), 0);
	say_meter(&both, 1, 5, false);
	say_meter(&both, 2, 1, false);
	say_meter(&both, 1, 7, false);
	assert_int_equal(heard.metered, 3);
	nc_door_shut(one);
	say_meter(&both, 1, 8, true);
	assert_true(heard.shut == 1 && heard.with_meter && heard.metered == 3);
	totals = nc_network_totals(both.network);
	assert_int_equal(totals.requests, 9);
	end(&both);
	assert_int_equal(heard.shut, 1); /* who frees it is told nothing */
}

static void a_name_is_taken_once_in_its_group(void **state)
{
	const struct nc_egress_terms web = {.group = "g", .name = "web"},
				     other = {.group = "h", .name = "web"};
	struct nc_door *door, *second;
	struct nacre_err err = {0};
	struct both both;

	(void)state;
	begin(&both);
	assert_int_equal(open_door(&both, 1, &web, &door, &err), 0);
	assert_true(nc_network_has_member(both.network, "g", "web"));
	assert_false(nc_network_has_member(both.network, "g", "db"));
	assert_int_equal(open_door(&both, 2, &web, &second, &err), -EEXIST);
	assert_non_null(strstr(err.message, "another box of the group is 'web'"));
	assert_int_equal(open_door(&both, 3, &other, &second, &err), 0);
	/* free at once, though nacre-egress has not said a word yet */
	nc_door_drop(door);
	assert_false(nc_network_has_member(both.network, "g", "web"));
	assert_int_equal(open_door(&both, 4, &web, &door, &err), 0);
	end(&both);
	assert_int_equal(heard.shut, 0);
}

static void a_door_for_guests_brings_its_sockets(void **state)
{
	const struct nc_egress_terms web = {.group = "g", .name = "web"};
	struct nc_door *door = NULL;
	struct nacre_err err = {0};
	struct both both;

	(void)state;
	begin(&both);
	/* the spawner has died with it: nothing comes */
	assert_int_equal(
		nc_door_open(both.network, 1, make_door(false), &web, &listener, &door, &err),
		-EPROTO);
	assert_true(!door && !nc_network_has_member(both.network, "g", "web"));
	end(&both);
}

static void when_it_dies_all_doors_are_shut(void **state)
{
	const struct nc_egress_terms terms = {0};
	struct nc_door *door, *adopted;
	struct nacre_err err = {0};
	struct both both;

	(void)state;
	begin(&both);
	assert_int_equal(open_door(&both, 1, &terms, &door, &err), 0);
	adopted = nc_door_adopt(both.network, 2, &terms, &listener);
	assert_non_null(adopted);
	both.egress_fd = nc_fd_close(both.egress_fd);
	(void)uv_run(&both.loop, UV_RUN_NOWAIT);
	assert_true(heard.shut == 2 && !heard.with_meter);
	assert_false(nc_network_is_up(both.network));
	assert_int_equal(open_door(&both, 3, &terms, &door, &err), -EPIPE);
	end(&both);
}

static void a_door_is_shut_that_cannot_be_told(void **state)
{
	struct nacre_err err = {0};
	struct nc_door *door;
	struct both both;

	(void)state;
	begin(&both);
	assert_int_equal(open_door(&both, 1, &no_terms, &door, &err), 0);
	both.egress_fd = nc_fd_close(both.egress_fd); /* and the loop has not seen it yet */
	nc_door_shut(door);
	assert_true(heard.shut == 1 && !heard.with_meter);
	end(&both);
}

/* Whoever says nothing that can be understood first is no nacre-egress. */
static void it_must_say_welcome(void **state)
{
	struct nc_network *network = NULL;
	const uint64_t box = 1;
	uv_loop_t loop;

	(void)state;
	assert_int_equal(uv_loop_init(&loop), 0);
	for (int closes = 0; closes < 2; closes++) {
		struct nacre_err err = {0};
		int ends[2];

		assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
		if (closes)
			assert_int_equal(shutdown(ends[1], SHUT_WR), 0);
		else
			say(ends[1], NC_EGRESS_DONE, &box, 0);
		assert_true(nc_network_new(&loop, ends[0], &network, &err) < 0);
		assert_true(!network && nc_text_after(err.message, "Hear from nacre-egress"));
		close(ends[1]);
	}
	(void)uv_run(&loop, UV_RUN_DEFAULT); /* its timer is closed there */
	assert_int_equal(uv_loop_close(&loop), 0);
}

static void without_one_there_is_nothing(void **state)
{
	(void)state;
	nc_network_free(NULL);
	nc_door_drop(NULL);
	assert_false(nc_network_is_up(NULL));
	assert_int_equal(nc_network_totals(NULL).requests, 0);
}

/* The first loop of a process leaves descriptors of libuv's own behind. */
static int warm_up(void **state)
{
	uv_loop_t loop;

	(void)state;
	return uv_loop_init(&loop) == 0 && uv_loop_close(&loop) == 0 ? 0 : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define test(name) cmocka_unit_test_setup_teardown(name, unit_fds_note, unit_fds_check)
		test(a_door_that_is_refused_is_none),
		test(what_is_said_of_strangers_is_nobodys),
		test(meters_are_added_once),
		test(a_name_is_taken_once_in_its_group),
		test(a_door_for_guests_brings_its_sockets),
		test(when_it_dies_all_doors_are_shut),
		test(a_door_is_shut_that_cannot_be_told),
		test(it_must_say_welcome),
		test(without_one_there_is_nothing),
	};

	return cmocka_run_group_tests(tests, warm_up, NULL);
}
