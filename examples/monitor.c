/*
 * A process that is not in a box: what it uses, and its end when that is too much.
 *
 *	cc monitor.c $(pkg-config --cflags --libs nacre) -o monitor && ./monitor
 */
#include <nacre/nacre.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

/* Samples every 50 ms until a limit is exceeded, and ends it then: 1, or a negative errno. */
static int watch(
	struct nacre_monitor *monitor, struct nacre_limit_check *check, struct nacre_err *err)
{
	struct nacre_usage usage = {.size = sizeof(usage)};
	int r;

	do {
		r = nacre_monitor_usage(monitor, &usage, err);
		if (r == 0)
			r = nacre_monitor_check_limits(monitor, check, err);
	} while (r == 0 && check->worst != NACRE_LIMIT_EXCEEDED && usleep(50000) == 0);
	printf("cpu %.0f %%, memory %llu KiB, %llu processes\n", usage.cpu_percent,
		(unsigned long long)usage.memory_bytes / 1024, (unsigned long long)usage.processes);
	return r < 0 ? r : nacre_monitor_terminate_if_exceeded(monitor, err);
}

int main(void)
{
	const struct nacre_limits limits = {.size = sizeof(limits), .cpu_us = 300000};
	struct nacre_limit_check check = {.size = sizeof(check)};
	struct nacre_metrics metrics = {.size = sizeof(metrics)};
	struct nacre_monitor *monitor = NULL;
	struct nacre_err err = {0};
	pid_t pid = fork();
	int r;

	if (pid == 0)
		for (;;)
			(void)getppid(); /* busy, and nothing else */
	if (pid < 0)
		return 1;
	r = nacre_monitor_start(pid, &monitor, &err);
	if (r == 0)
		r = nacre_monitor_set_limits(monitor, &limits, &err);
	if (r == 0)
		r = watch(monitor, &check, &err);
	if (r == 1 && nacre_monitor_metrics(monitor, &metrics, &err) == 0)
		printf("ended: %s; %llu samples, memory at most %llu KiB\n",
			check.cpu == NACRE_LIMIT_EXCEEDED ? "too much CPU time" : "?",
			(unsigned long long)metrics.samples,
			(unsigned long long)metrics.memory_max_bytes / 1024);
	if (r < 0)
		fprintf(stderr, "monitor: %s\n", err.message);
	nacre_monitor_free(monitor);
	(void)waitpid(pid, NULL, 0);
	return r != 1 || check.cpu != NACRE_LIMIT_EXCEEDED;
}
