/* Locks of spawners, and who sweeps after the dead. */
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "kernel/slot.h"

#define PLACE "here"

struct spawner {
	struct nc_locks locks;
	char id[NC_ID_SIZE];
};

static void begin(struct spawner *spawner)
{
	struct nacre_err err = {0};

	spawner->locks = (struct nc_locks){-EBADF, -EBADF, -EBADF, false};
	assert_int_equal(nc_id_new("sp", spawner->id), 0);
	assert_int_equal(nc_locks_open(&spawner->locks, false, spawner->id, &err), 0);
	assert_int_equal(nc_locks_note_place(&spawner->locks, PLACE), 0);
}

/* As when it is killed: its file stays. */
static void die(struct spawner *spawner)
{
	spawner->locks.self_fd = nc_fd_close(spawner->locks.self_fd);
}

static bool has_file(const struct spawner *who, const struct spawner *of)
{
	return faccessat(who->locks.dir_fd, of->id, F_OK, 0) == 0;
}

static void test_one_sweeps_and_others_let_it(void **state)
{
	struct spawner dead, one, other;
	struct nc_dead his, theirs;

	(void)state;
	begin(&dead);
	begin(&one);
	begin(&other);
	assert_false(nc_dead_take(&one.locks, PLACE, &his)); /* all live */
	die(&dead);
	assert_true(nc_dead_take(&one.locks, PLACE, &his));
	assert_int_equal(his.n, 1);
	assert_true(nc_dead_has(&his, dead.id));
	assert_false(nc_dead_has(&his, other.id));
	assert_false(nc_dead_has(&his, "sp_nobody"));
	/* to another it is none of his business, and he forgets nothing */
	assert_false(nc_dead_take(&other.locks, PLACE, &theirs));
	assert_false(nc_dead_has(&theirs, dead.id));
	nc_dead_leave(&theirs, true);
	assert_true(has_file(&one, &dead));
	/* a sweep that failed leaves it to the next */
	nc_dead_leave(&his, false);
	assert_true(has_file(&one, &dead));
	assert_true(nc_dead_take(&other.locks, PLACE, &theirs));
	nc_dead_leave(&theirs, true);
	assert_false(has_file(&one, &dead));
	nc_locks_close(&one.locks, one.id);
	nc_locks_close(&other.locks, other.id);
	(void)nc_fd_close(dead.locks.dir_fd);
}

static void test_who_dies_during_a_sweep_is_not_forgotten(void **state)
{
	struct spawner late, one;
	struct nc_dead dead;

	(void)state;
	begin(&late);
	begin(&one);
	assert_false(nc_dead_take(&one.locks, PLACE, &dead));
	die(&late); /* some of its groups may have been passed by already */
	assert_true(nc_dead_has(&dead, late.id));
	nc_dead_leave(&dead, true);
	assert_true(has_file(&one, &late));
	assert_true(nc_dead_take(&one.locks, "elsewhere", &dead));
	assert_int_equal(dead.n, 0);
	nc_dead_leave(&dead, true);
	assert_true(has_file(&one, &late));
	assert_int_equal(unlinkat(one.locks.dir_fd, late.id, 0), 0);
	nc_locks_close(&one.locks, one.id);
	(void)nc_fd_close(late.locks.dir_fd);
}

/* Between the making of its file and the lock somebody may take it for a dead one's. */
static void test_who_begins_beside_a_sweep_has_a_lock(void **state)
{
	struct spawner one, other;
	struct nacre_err err = {0};
	int fd, status;
	pid_t sweeper;

	(void)state;
	begin(&one);
	assert_int_equal(nc_id_new("sp", other.id), 0);
	other.locks = (struct nc_locks){-EBADF, -EBADF, -EBADF, false};
	fd = openat(one.locks.dir_fd, other.id, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	sweeper = fork();
	if (sweeper == 0) {
		(void)usleep(50000);
		_exit(unlinkat(one.locks.dir_fd, other.id, 0) == 0 ? 0 : 1);
	}
	(void)close(fd); /* the sweeper has it */
	assert_int_equal(nc_locks_open(&other.locks, false, other.id, &err), 0);
	assert_int_equal(waitpid(sweeper, &status, 0), sweeper);
	assert_int_equal(status, 0);
	assert_true(has_file(&one, &other));
	fd = openat(one.locks.dir_fd, other.id, O_RDONLY | O_CLOEXEC);
	assert_int_not_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
	(void)close(fd);
	nc_locks_close(&one.locks, one.id);
	nc_locks_close(&other.locks, other.id);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_sweeps_and_others_let_it),
		cmocka_unit_test(test_who_dies_during_a_sweep_is_not_forgotten),
		cmocka_unit_test(test_who_begins_beside_a_sweep_has_a_lock),
	};
	char dir[] = "/tmp/nacre-unit-XXXXXX";
	char path[64];
	int failed;

	if (!mkdtemp(dir) || setenv("XDG_RUNTIME_DIR", dir, 1) < 0)
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	(void)snprintf(path, sizeof(path), "%s/nacre/spawners", dir);
	(void)rmdir(path);
	(void)snprintf(path, sizeof(path), "%s/nacre", dir);
	(void)rmdir(path);
	return failed + (rmdir(dir) < 0);
}
