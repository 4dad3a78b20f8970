/* What processes use, by looking: of ourselves and of children of children. */
#include "unit.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernel/process.h"
#include "kernel/sample.h"

#define MIB ((size_t)1 << 20)

/* Touches so much memory, says so, and stays. */
static void hold(size_t size, int ready_fd)
{
	char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		_exit(1);
	memset(memory, 1, size);
	if (write(ready_fd, "r", 1) != 1)
		_exit(1);
	for (;;)
		(void)pause();
}

static void test_children_of_children_count(void **state)
{
	struct nc_sample before, after;
	int ready[2], status;
	char bytes[2];
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		pid_t parent = getpid();

		if (fork() == 0) {
			(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
			if (getppid() != parent)
				_exit(1);
			hold(24 * MIB, ready[1]);
		}
		hold(16 * MIB, ready[1]);
	}
	for (int i = 0; i < 2; i++)
		assert_int_equal(read(ready[0], bytes + i, 1), 1);
	assert_int_equal(nc_sample_take(&pid, 1, UINT64_MAX, &before), 0);
	assert_int_equal(before.processes, 2);
	assert_in_range(before.memory_bytes, 40 * MIB, 48 * MIB);
	/* what is no process is passed over */
	assert_int_equal(nc_sample_take((const pid_t[]){pid, 0, -1, 1}, 4, UINT64_MAX, &after), 0);
	assert_int_equal(after.processes, 2);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(nc_sample_take(&pid, 1, UINT64_MAX, &after), 0);
	assert_int_equal(after.processes, 0);
	(void)close(ready[0]);
	(void)close(ready[1]); /* the child's child dies with its parent */
}

static void test_cpu_time_is_seen(void **state)
{
	struct nc_sample sample;
	pid_t self = getpid();
	volatile unsigned long spins = 0;

	(void)state;
	do {
		for (int i = 0; i < 10000000; i++)
			spins++;
		assert_int_equal(nc_sample_take(&self, 1, UINT64_MAX, &sample), 0);
	} while (sample.cpu_us < 50000 && spins < 4000000000UL);
	assert_in_range(sample.cpu_us, 50000, 60000000);
}

/* Touches it, and shares it with four that it forks. */
static pid_t start_family(size_t size)
{
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		pid_t parent = getpid();
		char *memory = mmap(
			NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (memory == MAP_FAILED)
			_exit(1);
		memset(memory, 1, size);
		for (int i = 0; i < 4; i++) {
			if (fork() > 0)
				continue;
			(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
			if (getppid() != parent) /* it was killed before that was said */
				_exit(1);
			for (;;)
				(void)pause();
		}
		hold(4096, ready[1]);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	(void)close(ready[0]);
	(void)close(ready[1]);
	return pid;
}

static void test_what_forks_share_counts_once_before_anybody_is_judged(void **state)
{
	pid_t pid = start_family(50 * MIB);
	struct nc_sample sample;
	int status;

	(void)state;
	assert_int_equal(nc_sample_take(&pid, 1, UINT64_MAX, &sample), 0);
	assert_int_equal(sample.processes, 5);
	assert_true(sample.memory_bytes >= 200 * MIB);
	assert_int_equal(nc_sample_take(&pid, 1, 100 * MIB, &sample), 0);
	assert_in_range(sample.memory_bytes, 50 * MIB, 75 * MIB);
	assert_in_range(nc_process_memory(pid), 10 * MIB, 20 * MIB);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_children_of_children_count),
		cmocka_unit_test(test_cpu_time_is_seen),
		cmocka_unit_test(test_what_forks_share_counts_once_before_anybody_is_judged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
