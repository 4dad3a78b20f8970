/* What each tenant has open and has used. */
#include "server/quota.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/text.h"
#include "server/reply.h"

#define MINUTE_NS (60 * NC_NS_PER_S)
#define HOUR_NS (3600 * NC_NS_PER_S)
#define MB (1ULL << 20)

struct tenant {
	char name[NC_REQUEST_NAME_MAX + 1];
	uint64_t open;
	struct nc_quota_share share;
	/* a bucket that holds a minute's requests and fills steadily */
	double tokens;
	uint64_t filled_ns;
	/* CPU time of this hour, and when that began */
	double cpu_seconds;
	uint64_t hour_ns;
};

/* Limits are seldom used up, so that those of a tenant may add up to more than there is. */
#define OVERCOMMIT 32U

struct nc_quotas {
	struct tenant *tenants;
	size_t count;
	uint64_t host_bytes; /* the memory of this machine, which the disks of boxes are in too */
};

struct nc_quotas *nc_quotas_new(void)
{
	struct nc_quotas *quotas = calloc(1, sizeof(*quotas));
	struct sysinfo host;

	if (quotas && sysinfo(&host) == 0)
		quotas->host_bytes = (uint64_t)host.totalram * host.mem_unit;
	return quotas;
}

void nc_quotas_free(struct nc_quotas *quotas)
{
	if (quotas)
		free(quotas->tenants);
	free(quotas);
}

static struct tenant *find(struct nc_quotas *quotas, const char *name)
{
	struct tenant *more;

	for (size_t i = 0; i < quotas->count; i++)
		if (nc_streq(quotas->tenants[i].name, name))
			return &quotas->tenants[i];
	if (quotas->count == NC_TENANTS_MAX)
		return NULL;
	more = reallocarray(quotas->tenants, quotas->count + 1, sizeof(*more));
	if (!more)
		return NULL;
	quotas->tenants = more;
	more += quotas->count++;
	*more = (struct tenant){.tokens = -1};
	(void)snprintf(more->name, sizeof(more->name), "%s", name);
	return more;
}

/* Its own value where it has one, else everybody's, else the preset. */
static uint64_t limit_of(
	const struct nc_serve_config *config, const char *tenant, size_t offset, uint64_t preset)
{
	const char *own = nc_map_find(&config->tenants, tenant);
	const struct nc_value *value =
		own ? (const void *)(own + offset) : (const struct nc_value *)NULL;

	if (!value || !value->given)
		value = (const void *)((const char *)&config->quotas + offset);
	return value->line > 0 || value->number ? value->number : preset; /* 0 is built in */
}

#define LIMIT(config, tenant, member, preset)                                                      \
	limit_of(config, tenant, offsetof(struct nc_quota_values, member), preset)

static int refuse(
	struct nc_quota_refusal *refusal, const char *quota, uint64_t limit, double seconds)
{
	*refusal = (struct nc_quota_refusal){.quota = quota,
		.limit = limit,
		.retry_seconds = seconds < 1 ? 1 : (unsigned int)(seconds + 0.999)};
	return -EDQUOT;
}

int nc_quota_request(struct nc_quotas *quotas, const struct nc_serve_config *config,
	const char *tenant, uint64_t now_ns, struct nc_quota_refusal *ret_refusal)
{
	uint64_t limit = LIMIT(config, tenant, requests_per_minute, 0);
	struct tenant *who = find(quotas, tenant);
	double per_ns = (double)limit / (double)MINUTE_NS;

	if (!who)
		return -ENOMEM;
	if (limit == 0)
		return 0;
	if (who->tokens < 0)
		who->tokens = (double)limit;
	else
		who->tokens += (double)(now_ns - who->filled_ns) * per_ns;
	if (who->tokens > (double)limit)
		who->tokens = (double)limit;
	who->filled_ns = now_ns;
	if (who->tokens < 1)
		return refuse(ret_refusal, "requests_per_minute", limit,
			(1 - who->tokens) / per_ns / (double)NC_NS_PER_S);
	who->tokens--;
	return 0;
}

static void turn_hour(struct tenant *who, uint64_t now_ns)
{
	if (who->hour_ns == 0 || now_ns - who->hour_ns >= HOUR_NS) {
		who->hour_ns = now_ns;
		who->cpu_seconds = 0;
	}
}

/* What can never be had is not waited for. 0 bytes of either: there may be any. */
static bool is_beyond(const struct nc_quota_share *share, uint64_t memory_bytes,
	uint64_t disk_bytes, struct nc_quota_refusal *refusal)
{
	bool memory = memory_bytes > 0 && share->memory_bytes > memory_bytes;

	if (!memory && (disk_bytes == 0 || share->disk_bytes <= disk_bytes))
		return false;
	*refusal = (struct nc_quota_refusal){.quota = memory ? "memory_mb" : "disk_mb",
		.limit = (memory ? memory_bytes : disk_bytes) / MB};
	return true;
}

static int check_cpu(
	struct tenant *who, uint64_t cpu, uint64_t now_ns, struct nc_quota_refusal *refusal)
{
	turn_hour(who, now_ns);
	if (cpu == 0 || who->cpu_seconds < (double)cpu)
		return 0;
	return refuse(refusal, "cpu_seconds_per_hour", cpu,
		(double)(who->hour_ns + HOUR_NS - now_ns) / (double)NC_NS_PER_S);
}

int nc_quota_check_cpu(struct nc_quotas *quotas, const struct nc_serve_config *config,
	const char *tenant, uint64_t now_ns, struct nc_quota_refusal *ret_refusal)
{
	struct tenant *who = find(quotas, tenant);

	return who ? check_cpu(who, LIMIT(config, tenant, cpu_seconds_per_hour, 0), now_ns,
			     ret_refusal)
		   : -ENOMEM;
}

int nc_quota_check(struct nc_quotas *quotas, const struct nc_serve_config *config,
	const char *tenant, const struct nc_quota_share *share, uint64_t now_ns,
	struct nc_quota_refusal *ret_refusal)
{
	uint64_t open = LIMIT(config, tenant, executions, 0);
	uint64_t cpu = LIMIT(config, tenant, cpu_seconds_per_hour, 0);
	uint64_t preset = quotas->host_bytes / MB * OVERCOMMIT;
	uint64_t memory = LIMIT(config, tenant, memory_mb, preset);
	uint64_t disk = LIMIT(config, tenant, disk_mb, preset);
	struct tenant *who = find(quotas, tenant);
	int r;

	if (!who)
		return -ENOMEM;
	if (share && is_beyond(share, quotas->host_bytes, quotas->host_bytes, ret_refusal)) {
		ret_refusal->beyond_host = true;
		return -ERANGE;
	}
	if (share && is_beyond(share, memory * MB, disk * MB, ret_refusal))
		return -ERANGE;
	if (open > 0 && who->open >= open)
		return refuse(ret_refusal, "executions", open, 1);
	r = check_cpu(who, cpu, now_ns, ret_refusal);
	if (r < 0)
		return r;
	if (share && memory > 0 && who->share.memory_bytes + share->memory_bytes > memory * MB)
		return refuse(ret_refusal, "memory_mb", memory, 1);
	if (share && disk > 0 && who->share.disk_bytes + share->disk_bytes > disk * MB)
		return refuse(ret_refusal, "disk_mb", disk, 1);
	return 0;
}

uint64_t nc_quota_storage(const struct nc_serve_config *config, const char *tenant)
{
	return LIMIT(config, tenant, storage_mb, 0) * MB;
}

void nc_quota_open(struct nc_quotas *quotas, const char *tenant, const struct nc_quota_share *share)
{
	struct tenant *who = find(quotas, tenant);

	if (!who)
		return;
	who->open++;
	who->share.memory_bytes += share->memory_bytes;
	who->share.disk_bytes += share->disk_bytes;
}

void nc_quota_close(
	struct nc_quotas *quotas, const char *tenant, const struct nc_quota_share *share)
{
	struct tenant *who = find(quotas, tenant);

	if (!who || who->open == 0)
		return;
	who->open--;
	who->share.memory_bytes -= share->memory_bytes;
	who->share.disk_bytes -= share->disk_bytes;
}

void nc_quota_spend(
	struct nc_quotas *quotas, const char *tenant, double cpu_seconds, uint64_t now_ns)
{
	struct tenant *who = find(quotas, tenant);

	if (!who)
		return;
	turn_hour(who, now_ns);
	who->cpu_seconds += cpu_seconds;
}

static void answer_beyond(struct nc_exchange *exchange, const struct nc_quota_refusal *refusal)
{
	bool storage = nc_streq(refusal->quota, "storage_mb");

	nc_problem(exchange, 400, refusal->beyond_host ? "beyond_host" : "beyond_quota",
		refusal->quota, storage ? "Keep less" : "Ask for less",
		"%s%s can never be had: %s %" PRIu64 " MB", storage ? "" : "limits.",
		refusal->quota, refusal->beyond_host ? "this machine has" : "the tenant may have",
		refusal->limit);
}

void nc_quota_answer(
	struct nc_exchange *exchange, int error, const struct nc_quota_refusal *refusal)
{
	const char *quota = refusal->quota ? refusal->quota : "tenants";
	unsigned int seconds = refusal->quota ? refusal->retry_seconds : 60;

	if (error == -ERANGE) {
		answer_beyond(exchange, refusal);
		return;
	}
	nc_problem(exchange, 429, "quota", quota,
		seconds ? "Try again later" : "Delete snapshots: DELETE /v1/snapshots/{id}",
		"The quota of the tenant is used up: %s is %" PRIu64, quota, refusal->limit);
	if (seconds)
		nc_reply_retry(exchange, seconds);
}
