/* What the verbs that execute for others begin with. */
#include "cli/start.h"

#include <errno.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/limits.h"
#include "base/parse.h"
#include "base/state.h"
#include "base/text.h"
#include "box/store.h"
#include "cli/outlet.h"
#include "cli/recording.h"
#include "engine/network.h"
#include "kernel/privilege.h"

/* Boxes prepared ahead of need; each is two sleeping processes. */
#define READY_MAX 8U
#define MB (1ULL << 20)

void nc_start_init(struct nc_start *start, void (*say)(const char *text))
{
	*start = (struct nc_start){.holder = {.fd = -EBADF},
		.cache_fd = -EBADF,
		.record_fd = -EBADF,
		.state_fd = -EBADF,
		.egress_fd = -EBADF,
		.record = {.fd = -EBADF},
		.setup = {.witness_fd = -EBADF},
		.say = say};
	nc_environments_init(&start->environments);
}

void nc_start_done(struct nc_start *start)
{
	(void)nc_fd_close(start->egress_fd);
	nc_holder_done(&start->holder);
	nc_record_done(&start->record);
	nc_environments_close(&start->environments);
	nc_book_free(start->policies);
	start->cache_fd = nc_fd_close(start->cache_fd);
	start->state_fd = nc_fd_close(start->state_fd);
}

static int wrong(const char *option, const char *text, const char *expected, struct nacre_err *err)
{
	char quoted[NC_TEXT_QUOTED_MAX];

	return nc_err_set(err, -EINVAL, "Option '--%s': found %s, expected %s", option,
		nc_text_quote(quoted, text), expected);
}

static int read_bounds(
	struct nc_start *start, const struct nc_start_args *args, struct nacre_err *err)
{
	long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
	cpu_set_t cpus;

	start->running = 2;
	if (sched_getaffinity(0, sizeof(cpus), &cpus) == 0)
		start->running = 2 * (uint64_t)CPU_COUNT(&cpus);
	if (start->running > NC_SERVICE_RUNNING_MAX)
		start->running = NC_SERVICE_RUNNING_MAX;
	start->queued = 1024;
	start->memory_bytes = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page / 2 : 0;
	if (args->running &&
		nc_parse_u64(args->running, 1, NC_SERVICE_RUNNING_MAX, &start->running) < 0)
		return wrong("max-running", args->running, "a whole number from 1 to 256", err);
	if (args->queued &&
		nc_parse_u64(args->queued, 1, NC_SERVICE_QUEUED_MAX, &start->queued) < 0)
		return wrong("max-queued", args->queued, "a whole number from 1 to 65536", err);
	if (args->memory && (nc_parse_size(args->memory, MB, &start->memory_bytes) < 0 ||
				    start->memory_bytes < MB))
		return wrong("memory", args->memory, "a size such as 4GB", err);
	/* one each is what programs get that ask for nothing */
	start->cpu_milli = 1000 * start->running;
	if (args->cpus && nc_parse_milli(args->cpus, 10, 1024000, &start->cpu_milli) < 0)
		return wrong("cpus", args->cpus, "a number of cores from 0.01 to 1024", err);
	return 0;
}
_Static_assert(
	NC_SERVICE_RUNNING_MAX == 256 && NC_SERVICE_QUEUED_MAX == 65536, "the messages say so");

/* Each execution has pipes; the soft limit is the caller's habit, the hard one what he may. */
static void raise_files(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &limit); /* fewer boxes at once, then */
	}
}

static int read_all(struct nc_start *start, const struct nc_start_args *args,
	const struct nc_config *config, struct nacre_err *err)
{
	int r = read_bounds(start, args, err);

	if (r == 0 && nc_book_new(config, &start->policies) < 0)
		r = nc_err_set(err, -ENOMEM, "Out of memory");
	/* now, while files can be read; requests name them later */
	return r < 0 ? r : nc_book_add_all(start->policies, err);
}

int nc_start_open(struct nc_start *start, const struct nc_start_args *args,
	const struct nc_config *config, struct nacre_err *err)
{
	struct nacre_err ignored = {0};
	int r = read_all(start, args, config, err);

	if (r == 0)
		r = nc_privilege_ranges(&start->ranges, err);
	if (r < 0)
		return r;
	raise_files();
	/* without a place for it nothing is kept, and all is compiled each time */
	if (!args->no_cache)
		start->cache_fd = nc_store_open("cache", true, start->ranges, &ignored);
	/* the same for packages: then requests that need any are refused, and say so */
	if (nc_environments_open(&start->environments, config, true, start->ranges, &ignored) == 0)
		r = nc_environments_open_source(&start->environments, config, err);
	if (r < 0)
		return r;
	if (!start->kept) {
		start->record_fd = nc_recording_start(config, start->say, &start->setup.witness_fd);
		start->state_fd = nc_state_open(NULL, false, &ignored);
		start->egress_fd = nc_outlet_start(start->say);
	}
	start->setup.lasting = true;
	start->setup.ready = start->running < READY_MAX ? (unsigned int)start->running : READY_MAX;
	return 0;
}

void nc_start_bequeath(const struct nc_start *start, struct nc_heirs *heirs)
{
	nc_heirs_add(heirs, "cache", start->cache_fd);
	nc_heirs_add(heirs, "environments", start->environments.store_fd);
	nc_heirs_add(heirs, "python", start->environments.source[NC_PYTHON].fd);
	nc_heirs_add(heirs, "javascript", start->environments.source[NC_JAVASCRIPT].fd);
}

int nc_start_resume(struct nc_start *start, const struct nc_start_args *args,
	const struct nc_config *config, struct nc_heirs *heirs, struct nacre_err *err)
{
	int r = nc_holder_resume(&start->holder, err);

	if (r == 0)
		r = read_all(start, args, config, err);
	if (r < 0)
		return r;
	raise_files();
	start->cache_fd = nc_heirs_take(heirs, "cache");
	nc_environments_take(&start->environments, config, nc_heirs_take(heirs, "environments"),
		nc_heirs_take(heirs, "python"), nc_heirs_take(heirs, "javascript"));
	return 0;
}

int nc_start_split(struct nc_start *start, struct nacre_err *err)
{
	int r = nc_holder_start(&start->holder, &start->setup, err);

	start->setup.witness_fd = nc_fd_close(start->setup.witness_fd);
	if (r == 0)
		nc_start_recording(start);
	return r;
}

void nc_start_recording(struct nc_start *start)
{
	struct nacre_err err = {0};

	if (start->record_fd >= 0 &&
		nc_record_start(&start->record, take_fd(start->record_fd), &err) < 0)
		start->say(err.message);
}

void nc_start_network(struct nc_start *start, uv_loop_t *loop)
{
	struct nacre_err err = {0};

	if (start->egress_fd >= 0 &&
		nc_network_new(loop, take_fd(start->egress_fd), &start->network, &err) < 0)
		start->say(err.message);
	if (start->network)
		(void)nc_network_trust(start->network, nc_outlet_trusted()); /* or without them */
}

void nc_start_end_network(struct nc_start *start)
{
	nc_network_free(start->network);
	start->network = NULL;
}

struct nc_engine_setup nc_start_engine(struct nc_start *start, const struct nc_config *config)
{
	return (struct nc_engine_setup){.holder = &start->holder,
		.config = config,
		.policies = start->policies,
		.cache_fd = start->cache_fd,
		.environments = start->environments.store_fd >= 0 ? &start->environments : NULL,
		.record = start->record.fd >= 0 ? &start->record : NULL,
		.state_fd = start->state_fd,
		.record_returns = start->kept,
		.say = start->say,
		.max_running = start->running,
		.max_queued = start->queued,
		.memory_bytes = start->memory_bytes,
		.cpu_milli = start->cpu_milli};
}
