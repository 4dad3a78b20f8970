/* What a policy lets a request ask for, and what the host must hold. */
#include "engine/bounds.h"

#include <errno.h>
#include <sys/resource.h>

#include "policy/book.h"
#include "tier/settle.h"

#define MB (1024ULL * 1024)

/* A limit of the policy: what it holds down, and what the request asked for. */
struct ceiling {
	const char *name;
	const struct nc_value *most;
	uint64_t scale; /* one of the policy's is so many of ours */
	const struct nc_request_limit *named;
	uint64_t *limit;
	uint64_t unit; /* in which messages count */
};

#define CEILINGS 5

/* named or limits may be NULL: then nobody looks at that. */
static void find_ceilings(const struct nc_terms *terms, const struct nc_request_limits *named,
	struct nc_box_limits *limits, struct ceiling ceilings[static CEILINGS])
{
	static const struct nc_request_limits none;
	static struct nc_box_limits nothing;
	const struct nc_limit_values *most = &terms->values.limits;

	named = named ? named : &none;
	limits = limits ? limits : &nothing;
	ceilings[0] = (struct ceiling){
		"memory_mb", &most->memory_mb, MB, &named->memory_bytes, &limits->memory_bytes, MB};
	ceilings[1] = (struct ceiling){
		"cpu_cores", &most->cpu_cores, 1, &named->cpu_milli, &limits->cpu_milli, 1000};
	ceilings[2] = (struct ceiling){"execution_time_seconds", &most->execution_time_seconds,
		1000, &named->wall_ms, &limits->wall_ms, 1000};
	ceilings[3] = (struct ceiling){"max_processes", &most->max_processes,
		NC_THREADS_PER_PROCESS, &named->processes, &limits->pids, 1};
	ceilings[4] = (struct ceiling){
		"disk_mb", &most->disk_mb, MB, &named->disk_bytes, &limits->disk_bytes, MB};
}

int nc_bounds_check(const struct nc_terms *terms, const struct nc_request_limits *named,
	const char **ret_name, struct nacre_err *err)
{
	struct ceiling ceilings[CEILINGS];
	struct rlimit host; /* boxes have that of their spawner, which is ours */

	if (named->open_files.given && getrlimit(RLIMIT_NOFILE, &host) == 0 &&
		named->open_files.value > host.rlim_max) {
		*ret_name = "open_files";
		return nc_err_set(err, -EPERM,
			"limits.open_files: %llu is more than this host allows: at most %llu",
			(unsigned long long)named->open_files.value,
			(unsigned long long)host.rlim_max);
	}
	find_ceilings(terms, named, NULL, ceilings);
	for (size_t i = 0; i < CEILINGS; i++) {
		const struct ceiling *c = &ceilings[i];
		uint64_t most = c->most->number * c->scale;

		if (!c->most->given || !c->named->given || c->named->value <= most)
			continue;
		*ret_name = c->name;
		return nc_err_set(err, -EPERM,
			"limits.%s: %.10g is more than the policy '%s' allows: at most %.10g",
			c->name, (double)c->named->value / (double)c->unit, terms->policy,
			(double)most / (double)c->unit);
	}
	if (named->open_files.given && named->open_files.value > nc_files_most()) {
		*ret_name = "open_files";
		return nc_err_set(err, -EPERM,
			"limits.open_files: %llu is more than this host allows: at most %llu "
			"(ulimit -n)",
			(unsigned long long)named->open_files.value,
			(unsigned long long)nc_files_most());
	}
	return 0;
}

void nc_bounds_hold(const struct nc_terms *terms, struct nc_box_limits *limits)
{
	struct ceiling ceilings[CEILINGS];

	find_ceilings(terms, NULL, limits, ceilings);
	for (size_t i = 0; i < CEILINGS; i++) {
		uint64_t most = ceilings[i].most->number * ceilings[i].scale;

		if (ceilings[i].most->given && *ceilings[i].limit > most)
			*ceilings[i].limit = most;
	}
}

void nc_bounds_wish(const struct nc_terms *terms, const struct nc_request_limits *named,
	struct nc_wish *ret_wish)
{
	static const char *const names[NC_NAMED_MAX] = {"limits.memory_mb", "limits.cpu_cores",
		"limits.cpu_time_seconds", "limits.max_processes", "limits.disk_mb",
		"limits.inodes"};

	ret_wish->names = names;
	ret_wish->named[NC_NAMED_MEMORY] = named->memory_bytes.given;
	ret_wish->named[NC_NAMED_CPUS] = named->cpu_milli.given;
	ret_wish->named[NC_NAMED_CPU_TIME] = named->cpu_time_ms.given;
	ret_wish->named[NC_NAMED_PIDS] = named->processes.given;
	ret_wish->named[NC_NAMED_DISK] = named->disk_bytes.given;
	ret_wish->named[NC_NAMED_INODES] = named->inodes.given;
	_Static_assert(NC_POLICY_PROPERTIES == NC_STRENGTH_MAX, "policy files name every property");
	for (size_t i = 0; i < NC_STRENGTH_MAX; i++) {
		enum nc_grade grade = (enum nc_grade)terms->values.floor[i].number;

		ret_wish->floor[i] = grade > nc_strength_floor[i] ? grade : nc_strength_floor[i];
	}
}

int nc_bounds_check_root(
	const struct nc_terms *terms, bool user, bool writable_root, struct nacre_err *err)
{
	if (user && terms->values.sandbox.root.number == 0)
		return nc_err_set(err, -EPERM,
			"user: the policy '%s' has all commands run as the sandbox's user; "
			"sandbox.root: allow would let them be root of it",
			terms->policy);
	if (writable_root && terms->values.sandbox.writable_root.number == 0)
		return nc_err_set(err, -EPERM,
			"writable_root: the policy '%s' has the root of sandboxes read-only; "
			"sandbox.writable_root: allow would let it be written to",
			terms->policy);
	return 0;
}
