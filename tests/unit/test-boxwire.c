/* Orders and ends as messages: what goes in comes out, and nothing else gets through. */
#include "unit.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "kernel/boxwire.h"

static struct nc_box_order sample_order(void)
{
	return (struct nc_box_order){.id = 7,
		.home = 5,
		.warm_class = 9,
		.limits = {1, 2, 3, 4, 5, 6, 7, 8},
		.tier = NC_TIER_PROCESS,
		.flags = NC_ORDER_FLAGS,
		.required = {NC_GRADE_FULL, NC_GRADE_NONE, NC_GRADE_REDUCED},
		.rows = UINT16_MAX,
		.columns = 80,
		.n_binds = 2,
		.binds = {{0, true, "/mnt"}, {15, false, "/data/x"}},
		.fds = {2, {NC_FD_LAYER, NC_FD_LAYER_WRITABLE}, {3, 4}},
		.dir = "/workspace",
		.argv = {.data = "echo\0a b\0", .size = 9, .count = 2},
		.env = {.data = "A=1\0", .size = 4, .count = 1},
		.user = "root"};
}

/* Encodes an order and reads it back; the result is what the reader says of it. */
static int round_trip(
	const struct nc_box_order *order, struct nc_wire_out *out, struct nc_box_order *ret_order)
{
	struct nc_wire_in in;
	uint32_t size;

	nc_wire_begin(out, NC_BOX_RUN);
	nc_boxwire_put_order(out, order);
	assert_int_equal(out->buf.error, 0);
	size = (uint32_t)(out->buf.size - 8);
	for (size_t i = 0; i < 4; i++)
		out->buf.data[4 + i] = (char)(size >> (8 * i));
	assert_int_equal(nc_wire_open(&in, out->buf.data, out->buf.size), 0);
	nc_boxwire_get_order(&in, ret_order);
	return nc_wire_close(&in);
}

static void test_order_comes_back(void **state)
{
	cleanup_wire_out struct nc_wire_out out = {0};
	struct nc_box_order order = sample_order(), back;

	(void)state;
	assert_int_equal(round_trip(&order, &out, &back), 0);
	assert_int_equal(back.id, 7);
	assert_int_equal(back.home, 5);
	assert_int_equal(back.warm_class, 9);
	assert_memory_equal(&back.limits, &order.limits, sizeof(order.limits));
	assert_int_equal(back.tier, NC_TIER_PROCESS);
	assert_int_equal(back.flags, NC_ORDER_FLAGS);
	assert_memory_equal(back.required, order.required, sizeof(order.required));
	assert_string_equal(back.user, "root");
	assert_int_equal(back.rows, UINT16_MAX);
	assert_int_equal(back.columns, 80);
	assert_int_equal(back.n_binds, 2);
	assert_int_equal(back.binds[1].index, 15);
	assert_true(back.binds[0].writable && !back.binds[1].writable);
	assert_string_equal(back.binds[0].target, "/mnt");
	assert_string_equal(back.binds[1].target, "/data/x");
	assert_int_equal(back.fds.n, 2);
	assert_int_equal(back.fds.kind[0], NC_FD_LAYER);
	assert_int_equal(back.fds.kind[1], NC_FD_LAYER_WRITABLE);
	assert_int_equal(back.fds.fd[1], -EBADF);
	assert_int_equal(nc_box_layers(&back), 2);
	assert_string_equal(back.dir, "/workspace");
	assert_int_equal(back.argv.count, 2);
	assert_memory_equal(back.argv.data, "echo\0a b\0", 9);
	assert_int_equal(back.env.count, 1);
}

static void test_bad_words_are_refused(void **state)
{
	static const struct nc_box_words cases[] = {
		{.data = "", .size = 0, .count = 0},		 /* nothing to run */
		{.data = "echo", .size = 4, .count = 1},	 /* no NUL at the end */
		{.data = "echo\0", .size = 5, .count = 2},	 /* fewer than it says */
		{.data = "echo\0a\0", .size = 7, .count = 1},	 /* more than it says */
		{.data = "echo\0a", .size = 6, .count = 1},	 /* a rest */
		{.data = "echo\0", .size = 5, .count = 1 << 30}, /* more than fits anywhere */
	};

	(void)state;
	for (size_t i = 0; i < unit_count(cases); i++) {
		cleanup_wire_out struct nc_wire_out out = {0};
		struct nc_box_order order = sample_order(), back;

		order.argv = cases[i];
		assert_int_equal(round_trip(&order, &out, &back), -EBADMSG);
	}
}

static void test_too_many_words_are_refused(void **state)
{
	static char nuls[NC_BOX_ARGS_MAX + 1];
	cleanup_wire_out struct nc_wire_out out = {0}, more = {0};
	struct nc_box_order order = sample_order(), back;

	(void)state;
	order.env = (struct nc_box_words){nuls, NC_BOX_ARGS_MAX, NC_BOX_ARGS_MAX};
	assert_int_equal(round_trip(&order, &out, &back), 0);
	order.env = (struct nc_box_words){nuls, NC_BOX_ARGS_MAX + 1, NC_BOX_ARGS_MAX + 1};
	assert_int_equal(round_trip(&order, &more, &back), -EBADMSG);
}

static void bad_tier(struct nc_box_order *order)
{
	order->tier = NC_TIER_MAX;
}

static void bad_flags(struct nc_box_order *order)
{
	order->flags = NC_ORDER_FLAGS + 1;
}

static void bad_high_flag(struct nc_box_order *order)
{
	order->flags = 1U << 31;
}

static void bad_rows(struct nc_box_order *order)
{
	order->rows = UINT16_MAX + 1;
}

static void bad_columns(struct nc_box_order *order)
{
	order->columns = UINT32_MAX;
}

static void test_bad_fields_are_refused(void **state)
{
	static void (*const breaks[])(struct nc_box_order * order) = {
		bad_tier, bad_flags, bad_high_flag, bad_rows, bad_columns};

	(void)state;
	for (size_t i = 0; i < unit_count(breaks); i++) {
		cleanup_wire_out struct nc_wire_out out = {0};
		struct nc_box_order order = sample_order(), back;

		breaks[i](&order);
		assert_int_equal(round_trip(&order, &out, &back), -EBADMSG);
	}
}

/* Behind the header, three ids, eight limits, the tier and the flags. */
#define GRADES_AT (8 + 24 + 64 + 1 + 4)

/* Of another version, which has one property more. */
static void test_what_is_not_known_cannot_be_required(void **state)
{
	cleanup_wire_out struct nc_wire_out out = {0};
	struct nc_box_order order = sample_order(), back;
	const size_t behind = GRADES_AT + 1 + NC_STRENGTH_MAX;
	struct nc_wire_in in;
	char longer[2048];

	(void)state;
	assert_int_equal(round_trip(&order, &out, &back), 0);
	assert_true(out.buf.size < sizeof(longer));
	memcpy(longer, out.buf.data, behind);
	memcpy(longer + behind + 1, out.buf.data + behind, out.buf.size - behind);
	assert_int_equal(longer[GRADES_AT], NC_STRENGTH_MAX);
	longer[GRADES_AT]++;
	longer[4] = (char)(longer[4] + 1);
	for (enum nc_grade grade = NC_GRADE_NONE; grade < NC_GRADE_MAX; grade++) {
		longer[behind] = (char)grade;
		assert_int_equal(nc_wire_open(&in, longer, out.buf.size + 1), 0);
		nc_boxwire_get_order(&in, &back);
		assert_int_equal(nc_wire_close(&in), grade == NC_GRADE_NONE ? 0 : -EBADMSG);
	}
	assert_memory_equal(back.required, order.required, sizeof(order.required));
}

static void test_most_binds(void **state)
{
	cleanup_wire_out struct nc_wire_out out = {0};
	struct nc_box_order order = sample_order(), back;
	struct nc_wire_in in;
	/* behind the header, three ids, eight limits, the tier, three numbers and the grades */
	const size_t at = GRADES_AT + 1 + NC_STRENGTH_MAX + 8;

	(void)state;
	order.n_binds = NC_BOX_BINDS_MAX;
	for (size_t i = 0; i < NC_BOX_BINDS_MAX; i++)
		order.binds[i] = (struct nc_box_bind){(uint32_t)i, true, "/x"};
	assert_int_equal(round_trip(&order, &out, &back), 0);
	assert_int_equal(back.n_binds, NC_BOX_BINDS_MAX);
	assert_int_equal(out.buf.data[at], NC_BOX_BINDS_MAX);
	out.buf.data[at] = NC_BOX_BINDS_MAX + 1;
	assert_int_equal(nc_wire_open(&in, out.buf.data, out.buf.size), 0);
	nc_boxwire_get_order(&in, &back);
	assert_int_equal(nc_wire_close(&in), -EBADMSG);
	assert_int_equal(back.n_binds, 0);
}

static void test_kinds_of_descriptors(void **state)
{
	cleanup_wire_out struct nc_wire_out out = {0};
	struct nc_box_order order = sample_order(), back;
	struct nc_wire_in in;
	/* behind what stands before binds, and their number */
	const size_t at = GRADES_AT + 1 + NC_STRENGTH_MAX + 8 + 4;

	(void)state;
	order.n_binds = 0;
	order.fds.n = NC_BOX_FDS_MAX;
	assert_int_equal(round_trip(&order, &out, &back), 0);
	assert_int_equal(back.fds.n, NC_BOX_FDS_MAX);
	assert_int_equal(out.buf.data[at], NC_BOX_FDS_MAX);
	out.buf.data[at + 1] = NC_FD_MAX;
	assert_int_equal(nc_wire_open(&in, out.buf.data, out.buf.size), 0);
	nc_boxwire_get_order(&in, &back);
	assert_int_equal(nc_wire_close(&in), -EBADMSG);
	out.buf.data[at + 1] = NC_FD_LAYER;
	out.buf.data[at] = NC_BOX_FDS_MAX + 1;
	assert_int_equal(nc_wire_open(&in, out.buf.data, out.buf.size), 0);
	nc_boxwire_get_order(&in, &back);
	assert_int_equal(nc_wire_close(&in), -EBADMSG);
	assert_int_equal(back.fds.n, 0);
}

static void test_descriptors_of_a_message(void **state)
{
	struct nc_box_fds fds = {0};
	struct nc_wire_packet packet = {.fds = {30, 31}, .n_fds = 2};

	(void)state;
	nc_box_fds_add(&fds, NC_FD_OUTPUT, 5);
	nc_box_fds_add(&fds, NC_FD_PACK, -EBADF);
	assert_int_equal(fds.n, 1);
	assert_int_equal(nc_box_fds_meet(&fds, &packet), -EBADMSG);
	nc_box_fds_add(&fds, NC_FD_IMAGE, 6);
	assert_int_equal(nc_box_fds_meet(&fds, &packet), 0);
	assert_true(nc_box_fds_has(&fds, NC_FD_IMAGE) && !nc_box_fds_has(&fds, NC_FD_PACK));
	assert_int_equal(nc_box_fds_find(&fds, NC_FD_IMAGE), 31);
	assert_int_equal(nc_box_fds_take(&fds, NC_FD_OUTPUT), 30);
	assert_int_equal(nc_box_fds_take(&fds, NC_FD_OUTPUT), -EBADF);
	assert_int_equal(nc_box_fds_take(&fds, NC_FD_INPUT), -EBADF);
	assert_true(nc_box_fds_has(&fds, NC_FD_OUTPUT)); /* it came, and is somebody's */
}

static void test_words_beside_a_message(void **state)
{
	static char data[NC_BOX_WORDS_MAX];
	cleanup_wire_out struct nc_wire_out out = {0};
	struct nc_box_order order = sample_order(), back;
	int ends[2];

	(void)state;
	nc_box_fds_add(&order.fds, NC_FD_WORDS, 5);
	assert_int_equal(round_trip(&order, &out, &back), 0);
	assert_int_equal(back.argv.count, 2);
	assert_int_equal(back.env.size, 4);
	assert_null(back.argv.data);
	for (int whole = 1; whole >= 0; whole--) {
		assert_int_equal(pipe(ends), 0);
		assert_int_equal(
			write(ends[1], whole ? "echo\0a b\0A=1" : "echo\0a b\0A=1=", 13), 13);
		assert_int_equal(close(ends[1]), 0);
		assert_int_equal(nc_box_words_read(&back, ends[0], data), whole ? 0 : -EBADMSG);
		assert_int_equal(close(ends[0]), 0);
	}
	assert_memory_equal(back.argv.data, "echo\0a b\0", 9);
	/* more than there may be */
	order.argv.size = NC_BOX_WORDS_MAX + 1;
	nc_wire_out_done(&out);
	assert_int_equal(round_trip(&order, &out, &back), -EBADMSG);
}

static void test_descriptors_that_fit(void **state)
{
	static const struct {
		uint32_t flags;
		struct nc_box_fds fds;
		bool fit;
	} cases[] = {
		{0, {3, {NC_FD_INPUT, NC_FD_OUTPUT, NC_FD_ERROR}, {0}}, true},
		{0, {3, {NC_FD_ERROR, NC_FD_INPUT, NC_FD_OUTPUT}, {0}}, true},
		{0, {2, {NC_FD_INPUT, NC_FD_OUTPUT}, {0}}, false},
		{0, {4, {NC_FD_INPUT, NC_FD_OUTPUT, NC_FD_ERROR, NC_FD_ERROR}, {0}}, false},
		{0, {4, {NC_FD_INPUT, NC_FD_OUTPUT, NC_FD_ERROR, NC_FD_PACK}, {0}}, true},
		{0, {4, {NC_FD_INPUT, NC_FD_OUTPUT, NC_FD_ERROR, NC_FD_DOOR}, {0}}, false},
		{0, {4, {NC_FD_INPUT, NC_FD_OUTPUT, NC_FD_ERROR, NC_FD_TERMINAL}, {0}}, false},
		{0, {4, {NC_FD_INPUT, NC_FD_OUTPUT, NC_FD_ERROR, NC_FD_OWN_INPUT}, {0}}, false},
		{NC_ORDER_KEEP, {3, {NC_FD_INPUT, NC_FD_OUTPUT, NC_FD_ERROR}, {0}}, false},
		{NC_ORDER_KEEP,
			{6,
				{NC_FD_INPUT, NC_FD_OUTPUT, NC_FD_ERROR, NC_FD_OWN_INPUT,
					NC_FD_OWN_OUTPUT, NC_FD_OWN_ERROR},
				{0}},
			true},
		{NC_ORDER_TTY, {0}, true},
		{NC_ORDER_TTY | NC_ORDER_KEEP, {0}, true},
		{NC_ORDER_TTY, {1, {NC_FD_IMAGE}, {0}}, true},
		{NC_ORDER_TTY, {2, {NC_FD_IMAGE, NC_FD_IMAGE}, {0}}, false},
		{NC_ORDER_TTY, {1, {NC_FD_PACK}, {0}}, false},
		{NC_ORDER_TTY, {2, {NC_FD_LAYER, NC_FD_LAYER}, {0}}, true},
		{NC_ORDER_TTY, {3, {NC_FD_LAYER, NC_FD_LAYER_WRITABLE, NC_FD_LAYER}, {0}}, false},
	};

	(void)state;
	for (size_t i = 0; i < unit_count(cases); i++) {
		const struct nc_box_order order = {.flags = cases[i].flags, .fds = cases[i].fds};

		assert_int_equal(nc_box_fds_fit(&order), cases[i].fit);
	}
}

static void test_neutral_orders(void **state)
{
	struct nc_box_order order = {0};

	(void)state;
	assert_true(nc_box_is_neutral(&order));
	order.flags = NC_ORDER_KEEP;
	assert_true(nc_box_is_neutral(&order));
	order.flags = NC_ORDER_TTY;
	assert_false(nc_box_is_neutral(&order));
	order.flags = NC_ORDER_DOOR;
	assert_false(nc_box_is_neutral(&order));
	order = (struct nc_box_order){.home = 1};
	assert_false(nc_box_is_neutral(&order));
	order = (struct nc_box_order){.n_binds = 1};
	assert_false(nc_box_is_neutral(&order));
	order = (struct nc_box_order){.fds = {1, {NC_FD_IMAGE}, {3}}};
	assert_false(nc_box_is_neutral(&order));
	order = (struct nc_box_order){.fds = {1, {NC_FD_LAYER}, {3}}};
	assert_false(nc_box_is_neutral(&order));
	order = (struct nc_box_order){.tier = NC_TIER_PROCESS};
	assert_false(nc_box_is_neutral(&order));
	order = (struct nc_box_order){.flags = NC_ORDER_USERS};
	assert_false(nc_box_is_neutral(&order));
	order = (struct nc_box_order){.flags = NC_ORDER_WRITABLE};
	assert_false(nc_box_is_neutral(&order));
	order = (struct nc_box_order){.user = "root"};
	assert_false(nc_box_is_neutral(&order));
}

static void test_welcome_comes_back(void **state)
{
	cleanup_wire_out struct nc_wire_out out = {0};
	const struct nc_box_welcome welcome = {.ranges = true,
		.scratch = "/tmp/nacre-0/sp_x",
		.terms[NC_TIER_PROCESS] = {.here = true, .stops = true},
		.terms[NC_TIER_REMOTE] = {.here = true,
			.mounts = true,
			.holds[NC_NAMED_DISK] = true,
			.grades[NC_STRENGTH_MAX - 1] = NC_GRADE_REDUCED},
		.n_adopted = 3};
	struct nc_box_welcome back = {.terms[NC_TIER_WASM].here = true};
	struct nc_wire_in in;

	(void)state;
	nc_wire_begin(&out, NC_BOX_WELCOME);
	nc_boxwire_put_welcome(&out, &welcome);
	out.buf.data[4] = (char)(out.buf.size - 8);
	assert_int_equal(nc_wire_open(&in, out.buf.data, out.buf.size), 0);
	nc_boxwire_get_welcome(&in, &back);
	assert_int_equal(nc_wire_close(&in), 0);
	assert_true(back.ranges && back.n_adopted == 3);
	assert_string_equal(back.scratch, welcome.scratch);
	assert_memory_equal(back.terms, welcome.terms, sizeof(back.terms));
	/* a tier of another version is none of ours */
	out.buf.data[8 + 1 + 4 + strlen(welcome.scratch) + 1] = (char)NC_TIER_MAX;
	assert_int_equal(nc_wire_open(&in, out.buf.data, out.buf.size), 0);
	nc_boxwire_get_welcome(&in, &back);
	assert_int_equal(nc_wire_close(&in), 0);
	assert_true(!back.terms[NC_TIER_PROCESS].here && back.terms[NC_TIER_REMOTE].here);
}

static void test_now_comes_back(void **state)
{
	cleanup_wire_out struct nc_wire_out out = {0};
	const struct nc_box_now now = {.id = 4,
		.cpu_us = 5,
		.made = 6,
		.made_ns = 7,
		.frozen = true,
		.so_far = {.id = 4, .usage.cpu_user_us = 8, .n_denied = 1, .denied = {{165, 3}}}};
	struct nc_box_now back = {0};
	struct nc_wire_in in;
	uint32_t size;

	(void)state;
	nc_wire_begin(&out, NC_BOX_TOLD);
	nc_boxwire_put_now(&out, &now);
	size = (uint32_t)(out.buf.size - 8);
	memcpy(out.buf.data + 4, &size, sizeof(size));
	assert_int_equal(nc_wire_open(&in, out.buf.data, out.buf.size), 0);
	nc_boxwire_get_now(&in, &back);
	assert_int_equal(nc_wire_close(&in), 0);
	assert_true(back.id == 4 && back.cpu_us == 5 && back.made == 6 && back.made_ns == 7);
	assert_true(back.frozen && back.so_far.id == 4 && back.so_far.usage.cpu_user_us == 8);
	assert_true(back.so_far.n_denied == 1 && back.so_far.denied[0].count == 3);
}

static void test_end_comes_back(void **state)
{
	cleanup_wire_out struct nc_wire_out out = {0};
	struct nc_box_end end = {.id = 9,
		.cause = NC_CAUSE_WALL,
		.code = 3,
		.signal = 9,
		.held = {NC_GRADE_FULL, NC_GRADE_REDUCED},
		.tier = NC_TIER_PROCESS,
		.alone = true,
		.hit = NC_HIT_DISK | NC_HIT_FILES,
		.usage = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11},
		.n_denied = 2,
		.denied = {{165, 3}, {101, 1}}};
	struct nc_box_end back = {0};
	struct nc_wire_in in;
	uint32_t size;

	(void)state;
	nc_wire_begin(&out, NC_BOX_ENDED);
	nc_boxwire_put_end(&out, &end);
	size = (uint32_t)(out.buf.size - 8);
	out.buf.data[4] = (char)size;
	out.buf.data[5] = (char)(size >> 8);
	assert_int_equal(nc_wire_open(&in, out.buf.data, out.buf.size), 0);
	nc_boxwire_get_end(&in, &back);
	assert_int_equal(nc_wire_close(&in), 0);
	assert_int_equal(back.id, 9);
	assert_int_equal(back.cause, NC_CAUSE_WALL);
	assert_int_equal(back.code, 3);
	assert_int_equal(back.signal, 9);
	assert_memory_equal(back.held, end.held, sizeof(end.held));
	assert_true(back.alone);
	assert_int_equal(back.tier, NC_TIER_PROCESS);
	assert_int_equal(back.hit, NC_HIT_DISK | NC_HIT_FILES);
	assert_memory_equal(&back.usage, &end.usage, sizeof(end.usage));
	assert_int_equal(back.n_denied, 2);
	assert_memory_equal(back.denied, end.denied, sizeof(end.denied));

	out.buf.data[16] = NC_CAUSE_MAX; /* behind the header and the id */
	assert_int_equal(nc_wire_open(&in, out.buf.data, out.buf.size), 0);
	nc_boxwire_get_end(&in, &back);
	assert_int_equal(nc_wire_close(&in), -EBADMSG);
	out.buf.data[16] = NC_CAUSE_WALL;
	out.buf.data[16 + 1 + 8] = NC_TIER_MAX; /* and cause, two numbers */
	assert_int_equal(nc_wire_open(&in, out.buf.data, out.buf.size), 0);
	nc_boxwire_get_end(&in, &back);
	assert_int_equal(nc_wire_close(&in), -EBADMSG);
}

static void test_more_denials_than_are_kept_are_refused(void **state)
{
	static unsigned char message[8 + 8 + 1 + 8 + 1 + 1 + 1 + 4 + 1 + 11 * 8 + 4] = {
		0x4e, 0x63, 103};
	struct nc_box_end back = {0};
	struct nc_wire_in in;

	(void)state;
	message[4] = sizeof(message) - 8;
	message[sizeof(message) - 4] = NC_DENIED_MAX + 1;
	assert_int_equal(nc_wire_open(&in, message, sizeof(message)), 0);
	nc_boxwire_get_end(&in, &back);
	assert_int_equal(nc_wire_close(&in), -EBADMSG);
	assert_int_equal(back.n_denied, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order_comes_back),
		cmocka_unit_test(test_bad_words_are_refused),
		cmocka_unit_test(test_too_many_words_are_refused),
		cmocka_unit_test(test_bad_fields_are_refused),
		cmocka_unit_test(test_what_is_not_known_cannot_be_required),
		cmocka_unit_test(test_most_binds),
		cmocka_unit_test(test_kinds_of_descriptors),
		cmocka_unit_test(test_descriptors_of_a_message),
		cmocka_unit_test(test_words_beside_a_message),
		cmocka_unit_test(test_descriptors_that_fit),
		cmocka_unit_test(test_neutral_orders),
		cmocka_unit_test(test_welcome_comes_back),
		cmocka_unit_test(test_now_comes_back),
		cmocka_unit_test(test_end_comes_back),
		cmocka_unit_test(test_more_denials_than_are_kept_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
