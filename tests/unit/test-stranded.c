/* A holder of boxes that has outlived the spawner: its sandboxes have their owners again, and what
 * it does not have is lost. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "config/config.h"
#include "engine/engine.h"
#include "engine/ledger.h"
#include "engine/sandbox.h"
#include "engine/work.h"
#include "policy/book.h"

#define KNOWN "sb_00000000000000000000000000000001"
#define UNKNOWN "sb_00000000000000000000000000000002"
#define OLD "sb_00000000000000000000000000000003"
#define BOX(n) (1ULL << 56 | (n))

static struct {
	char path[64];
	int dir_fd, theirs[2], memory_fd, inbox_fd;
	uv_loop_t loop;
	struct nc_holder holders[2];
	struct nc_config config;
	struct nc_book *book;
	struct nc_engine *engine;
	struct nc_sandboxes *sandboxes;
	struct nc_wire_packet packet;
	size_t n_said;
} all;

static void say(const char *text)
{
	print_message("%s\n", text);
	all.n_said++;
}

static void put_record(const char *id, uint64_t box, const char *tier, long long expires)
{
	cleanup_json json_t *record = json_pack(
		"{s:i, s:s, s:s, s:s, s:I, s:s, s:i, s:I, s:b, s:b, s:b, s:{s:s, s:{s:s}}, s:n}",
		"version", 1, "id", id, "tenant", "one", "created", "2026-11-19T21:55:08.054Z",
		"expires", (json_int_t)expires, "tier", tier, "holder", 1, "box", (json_int_t)box,
		"paused", 1, "filling", 0, "trusted", 0, "spec", "tier", tier, "labels", "a", "b",
		"network");
	int fd = openat(all.dir_fd, id, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	assert_non_null(record);
	assert_int_equal(json_dumpfd(record, fd, JSON_COMPACT), 0);
	(void)close(fd);
}

static bool is_written(const char *id)
{
	struct stat status;

	return fstatat(all.dir_fd, id, &status, AT_SYMLINK_NOFOLLOW) == 0;
}

static void welcome(size_t i, enum nc_tier tier, uint32_t n_adopted)
{
	struct nc_box_welcome said = {.n_adopted = n_adopted};
	struct nc_tier_terms *terms = &said.terms[tier];
	cleanup_wire_out struct nc_wire_out out = {0};

	*terms =
		(struct nc_tier_terms){.here = true, .stops = true, .shares = true, .mounts = true};
	for (size_t k = 0; k < NC_NAMED_MAX; k++)
		terms->holds[k] = true;
	for (size_t k = 0; k < NC_STRENGTH_MAX; k++)
		terms->grades[k] = NC_GRADE_MAX - 1;
	nc_wire_begin(&out, NC_BOX_WELCOME);
	nc_wire_put_u32(&out, NC_BOXWIRE_VERSION);
	nc_boxwire_put_welcome(&out, &said);
	assert_int_equal(nc_wire_send(all.theirs[i], &out, NULL, 0), 0);
}

static void adopt(uint64_t box)
{
	static const struct nc_box_fds none;
	cleanup_wire_out struct nc_wire_out out = {0};

	nc_wire_begin(&out, NC_BOX_ADOPT);
	nc_wire_put_u64(&out, box);
	nc_wire_put_u64(&out, 0);
	nc_boxwire_put_fds(&out, &none);
	assert_int_equal(nc_wire_send(all.theirs[1], &out, NULL, 0), 0);
}

/* The type of the next message for the second holder, and the box in it; 0: there is none. */
static uint16_t hear(uint64_t *ret_box)
{
	struct nc_wire_in in;

	if (nc_wire_receive(all.theirs[1], &all.packet, NC_BOX_FDS_MAX) <= 0 ||
		nc_wire_open(&in, all.packet.data, all.packet.size) < 0)
		return 0;
	if (in.type != NC_BOX_HELLO)
		(void)nc_wire_get_u32(&in); /* its number */
	*ret_box = in.type == NC_BOX_HELLO ? 0 : nc_wire_get_u64(&in);
	return in.type;
}

static void turn(void)
{
	for (int i = 0; i < 20; i++)
		(void)uv_run(&all.loop, UV_RUN_NOWAIT);
}

static void make_sandboxes(void)
{
	struct nc_sandboxes_setup setup = {.engine = all.engine,
		.image_store_fd = -EBADF,
		.max = 10,
		.max_each = 10,
		.memory_fd = all.memory_fd,
		.inbox_fd = all.inbox_fd,
		.registry_fd = all.dir_fd};

	assert_int_equal(nc_sandboxes_new(&setup, &all.sandboxes), 0);
}

static int set_up(void **state)
{
	struct nacre_err err = {0};
	struct nc_engine_setup setup = {0};
	int ends[2];

	(void)state;
	memset(&all, 0, sizeof(all));
	strcpy(all.path, "/tmp/nacre-stranded-XXXXXX");
	assert_non_null(mkdtemp(all.path));
	all.dir_fd = open(all.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(uv_loop_init(&all.loop), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	all.holders[0] = (struct nc_holder){.fd = ends[0], .next = &all.holders[1]};
	all.holders[1] = (struct nc_holder){.fd = -EBADF, .number = 1};
	all.theirs[0] = ends[1];
	all.theirs[1] = -EBADF;
	welcome(0, NC_TIER_CONTAINER, 0);
	assert_int_equal(nc_holder_connect(&all.holders[0], &err), 0);
	assert_int_equal(nc_config_load(&all.config, NULL, &err), 0);
	assert_int_equal(nc_book_new(&all.config, &all.book), 0);
	setup = (struct nc_engine_setup){.loop = &all.loop,
		.holder = &all.holders[0],
		.config = &all.config,
		.policies = all.book,
		.cache_fd = -EBADF,
		.state_fd = -EBADF,
		.say = say,
		.max_running = 1};
	assert_int_equal(nc_engine_new(&setup, &all.engine), 0);
	assert_int_equal(nc_ledger_make(&all.memory_fd, &all.inbox_fd), 0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	nc_sandboxes_free(all.sandboxes);
	nc_engine_free(all.engine);
	while (uv_run(&all.loop, UV_RUN_NOWAIT))
		;
	(void)uv_loop_close(&all.loop);
	nc_book_free(all.book);
	nc_config_done(&all.config);
	for (size_t i = 0; i < 2; i++) {
		nc_holder_done(&all.holders[i]);
		(void)nc_fd_close(all.theirs[i]);
	}
	nc_wire_packet_done(&all.packet);
	(void)unlinkat(all.dir_fd, KNOWN, 0);
	(void)unlinkat(all.dir_fd, UNKNOWN, 0);
	(void)unlinkat(all.dir_fd, OLD, 0);
	(void)rmdir(all.path);
	(void)close(all.dir_fd);
	(void)close(all.memory_fd);
	(void)close(all.inbox_fd);
	return 0;
}

static void meet(void)
{
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	assert_int_equal(fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
	all.theirs[1] = ends[1];
	assert_int_equal(nc_hub_meet(nc_engine_hub(all.engine), 1, ends[0]), 0);
}

/* The tier is the holder's alone: before that comes, nobody could say whether it fits. */
static void owners_are_found_when_their_holder_comes(void **state)
{
	struct nc_sandbox *sandbox;
	cleanup_json json_t *told = NULL;
	uint64_t box;

	(void)state;
	put_record(KNOWN, BOX(5), "docker", time(NULL) + 300);
	put_record(UNKNOWN, BOX(6), "docker", time(NULL) + 300);
	make_sandboxes();
	nc_sandboxes_tick(all.sandboxes);
	assert_int_equal(nc_sandboxes_count(all.sandboxes), 0);
	assert_true(nc_sandboxes_await(all.sandboxes, "one", KNOWN));
	assert_true(nc_sandboxes_await(all.sandboxes, NULL, UNKNOWN));
	assert_false(nc_sandboxes_await(all.sandboxes, "two", KNOWN));
	meet();
	welcome(1, NC_TIER_DOCKER, 2);
	adopt(BOX(5));
	adopt(BOX(9)); /* of which nobody has heard */
	turn();
	assert_int_equal(hear(&box), NC_BOX_HELLO);
	assert_int_equal(hear(&box), NC_BOX_KILL);
	assert_int_equal(box, BOX(9));
	nc_sandboxes_tick(all.sandboxes);
	assert_int_equal(hear(&box), NC_BOX_FREEZE); /* as it was */
	assert_int_equal(box, BOX(5));
	assert_null(nc_sandbox_find(all.sandboxes, "two", KNOWN));
	sandbox = nc_sandbox_find(all.sandboxes, "one", KNOWN);
	assert_non_null(sandbox);
	assert_string_equal(nc_sandbox_state(sandbox), "paused");
	assert_true(nc_sandbox_has_label(sandbox, "a", "b"));
	told = nc_sandbox_json(sandbox);
	assert_true(json_real_value(json_object_get(told, "seconds_left")) > 250);
	/* and the other one is lost, which was said */
	assert_false(nc_sandboxes_await(all.sandboxes, NULL, UNKNOWN));
	assert_false(is_written(UNKNOWN));
	assert_true(is_written(KNOWN));
	assert_int_equal(all.n_said, 1);
}

static void one_whose_time_is_up_is_ended(void **state)
{
	uint64_t box;

	(void)state;
	put_record(OLD, BOX(7), "docker", time(NULL) - 10);
	make_sandboxes();
	meet();
	welcome(1, NC_TIER_DOCKER, 1);
	adopt(BOX(7));
	turn();
	assert_int_equal(hear(&box), NC_BOX_HELLO);
	nc_sandboxes_tick(all.sandboxes);
	assert_int_equal(hear(&box), NC_BOX_FREEZE);
	assert_int_equal(hear(&box), NC_BOX_KILL);
	assert_int_equal(box, BOX(7));
	assert_null(nc_sandbox_find(all.sandboxes, "one", OLD));
}

/* The spawner's own boxes died with it, as the ledger shows; its worker may still tell of them. */
static void those_of_the_first_holder_are_lost_soon(void **state)
{
	(void)state;
	put_record(OLD, 7, "container", time(NULL) + 300);
	make_sandboxes();
	assert_int_equal(nc_sandboxes_count(all.sandboxes), 0);
	assert_true(nc_sandboxes_await(all.sandboxes, NULL, OLD));
	assert_true(is_written(OLD));
	for (int i = 0; i < 50 && is_written(OLD); i++) {
		nc_sandboxes_tick(all.sandboxes);
		(void)usleep(100000);
	}
	assert_false(nc_sandboxes_await(all.sandboxes, NULL, OLD));
	assert_int_equal(all.n_said, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			owners_are_found_when_their_holder_comes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(one_whose_time_is_up_is_ended, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			those_of_the_first_holder_are_lost_soon, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
