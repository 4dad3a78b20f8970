/* A tree of processes that is followed. */
#include "watch/family.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/pidfd.h"

int nc_family_add(struct nc_family *family, pid_t pid)
{
	/* held while it is read: the pid cannot go to somebody else meanwhile */
	cleanup_close int pidfd = pid > 1 && pid != getpid() ? nc_pidfd_open(pid) : -EINVAL;
	struct nc_member member = {0}, *more;
	int r;

	if (pidfd < 0)
		return pidfd;
	r = nc_process_read(pid, &member.process);
	if (r == 0 && member.process.dead)
		r = -ESRCH;
	if (r == 0)
		r = nc_pidfd_kill(pidfd, 0);
	if (r < 0 && r != -EPERM)
		return r;
	more = reallocarray(family->member, family->count + 1, sizeof(*more));
	if (!more)
		return -ENOMEM;
	more[family->count++] = member;
	family->member = more;
	return 0;
}

void nc_family_done(struct nc_family *family)
{
	free(family->member);
	*family = (struct nc_family){0};
}

static int by_pid(const void *a, const void *b)
{
	pid_t first = ((const struct nc_process *)a)->pid;
	pid_t second = ((const struct nc_process *)b)->pid;

	return first < second ? -1 : first > second;
}

/* All processes of the machine, in the order of their pids, and which of them are ours. */
struct census {
	struct nc_process *all;
	enum { STRANGER, OURS, OURS_STOPPED } * who;
	size_t count;
};

static void census_done(struct census *census)
{
	free(census->all);
	free(census->who);
}

static int census_take(struct census *ret_census)
{
	int r = nc_process_list(&ret_census->all, &ret_census->count);

	if (r < 0)
		return r;
	qsort(ret_census->all, ret_census->count, sizeof(*ret_census->all), by_pid);
	ret_census->who = calloc(ret_census->count + 1, sizeof(*ret_census->who));
	return ret_census->who ? 0 : -ENOMEM;
}

/* Its index, or the count of all. */
static size_t census_find(const struct census *census, pid_t pid)
{
	const struct nc_process wanted = {.pid = pid};
	const struct nc_process *found =
		bsearch(&wanted, census->all, census->count, sizeof(*census->all), by_pid);

	return found ? (size_t)(found - census->all) : census->count;
}

static void mark_members(struct census *census, const struct nc_family *family)
{
	for (size_t i = 0; i < family->count; i++) {
		const struct nc_member *member = &family->member[i];
		size_t at = census_find(census, member->process.pid);

		if (at < census->count &&
			census->all[at].start_ticks == member->process.start_ticks)
			census->who[at] = member->stopped ? OURS_STOPPED : OURS;
	}
}

/* Children of ours are ours, and so on; a parent was there before its child. Whether any came. */
static bool mark_children(struct census *census)
{
	bool any = false;

	for (size_t i = 0; i < census->count; i++) {
		size_t parent = census_find(census, census->all[i].parent);

		if (census->who[i] != STRANGER || parent == census->count ||
			census->who[parent] == STRANGER ||
			census->all[parent].start_ticks > census->all[i].start_ticks)
			continue;
		census->who[i] = OURS;
		any = true;
	}
	return any;
}

/* Whether anybody of it lives. */
static bool is_alive(const struct nc_family *family)
{
	for (size_t i = 0; i < family->count; i++)
		if (!family->member[i].process.dead)
			return true;
	return false;
}

int nc_family_update(struct nc_family *family)
{
	nc_cleanup(census_done) struct census census = {0};
	struct nc_family next = {0};
	int r = census_take(&census);

	if (r < 0)
		return r;
	mark_members(&census, family);
	while (mark_children(&census))
		continue;
	next.member = calloc(NC_MONITOR_PROCESSES_MAX, sizeof(*next.member));
	if (!next.member)
		return -ENOMEM;
	/* too many to follow: those that fit are, and killing goes on in rounds */
	for (size_t i = 0; i < census.count && next.count < NC_MONITOR_PROCESSES_MAX; i++)
		if (census.who[i] != STRANGER)
			next.member[next.count++] =
				(struct nc_member){census.all[i], census.who[i] == OURS_STOPPED};
	nc_family_done(family);
	*family = next;
	return is_alive(family) ? 0 : -ESRCH;
}

/* Sends it to the very process that we know, if it still lives. */
static void signal_member(const struct nc_process *process, int number)
{
	cleanup_close int pidfd = process->pid > 1 ? nc_pidfd_open(process->pid) : -EBADF;

	/* if the pid had changed hands before the opening, the start would be another */
	if (pidfd >= 0 && nc_process_is(process))
		(void)nc_pidfd_kill(pidfd, number); /* or it has just ended */
}

static bool has_us(const struct nc_family *family)
{
	for (size_t i = 0; i < family->count; i++)
		if (family->member[i].process.pid == getpid())
			return true;
	return false;
}

/* Stops whoever is not yet; how many those were. */
static size_t stop_new(struct nc_family *family)
{
	size_t news = 0;

	for (size_t i = 0; i < family->count; i++) {
		struct nc_member *member = &family->member[i];

		if (member->stopped || member->process.dead)
			continue;
		signal_member(&member->process, SIGSTOP);
		member->stopped = true;
		news++;
	}
	return news;
}

int nc_family_kill(struct nc_family *family, uint64_t deadline_ns)
{
	const struct timespec moment = {.tv_nsec = (long)NC_NS_PER_MS};
	int r = nc_family_update(family);

	while (r == 0) {
		if (has_us(family))
			return -EDEADLK;
		while (r == 0 && stop_new(family) > 0 && nc_clock_ns() < deadline_ns)
			r = nc_family_update(family);
		/* also after a failure: nobody stays stopped */
		for (size_t i = 0; i < family->count; i++)
			signal_member(&family->member[i].process, SIGKILL);
		if (r < 0)
			break;
		(void)nanosleep(&moment, NULL);
		r = nc_family_update(family);
		if (r == 0 && nc_clock_ns() >= deadline_ns)
			r = -ETIMEDOUT;
	}
	return r == -ESRCH ? 0 : r;
}
