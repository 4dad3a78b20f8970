/* What each tenant has open and has used, held against its quotas (serve.yaml). */
#ifndef NC_QUOTA_H
#define NC_QUOTA_H

#include <stddef.h>
#include <stdint.h>

#include "config/config.h"

struct nc_exchange;
struct nc_quotas;

/* What one execution is allowed, for as long as it is open. */
struct nc_quota_share {
	uint64_t memory_bytes, disk_bytes;
};

/* Why it may not, and when to try again. */
struct nc_quota_refusal {
	const char *quota; /* the key in serve.yaml; NULL: there are too many tenants */
	uint64_t limit;
	unsigned int retry_seconds; /* 0: nothing is free again by waiting */
	bool beyond_host;	    /* of -ERANGE: so much is all that this machine has */
};

struct nc_quotas *nc_quotas_new(void); /* NULL: no memory */
void nc_quotas_free(struct nc_quotas *quotas);

/* One more request. 0; -EDQUOT with the refusal; -ENOMEM: there are too many tenants. */
int nc_quota_request(struct nc_quotas *quotas, const struct nc_serve_config *config,
	const char *tenant, uint64_t now_ns, struct nc_quota_refusal *ret_refusal);

/* Whether one more execution may begin; share: what it is allowed, or NULL where that is not yet
 * known. Nothing is counted. As above; -ERANGE with the refusal: it asks for more than it could
 * ever have. */
int nc_quota_check(struct nc_quotas *quotas, const struct nc_serve_config *config,
	const char *tenant, const struct nc_quota_share *share, uint64_t now_ns,
	struct nc_quota_refusal *ret_refusal);

/* Whether one more command of a sandbox that is open may begin. As above. */
int nc_quota_check_cpu(struct nc_quotas *quotas, const struct nc_serve_config *config,
	const char *tenant, uint64_t now_ns, struct nc_quota_refusal *ret_refusal);

/* Answers a refusal: 429, or 400 for what can never be had. */
void nc_quota_answer(
	struct nc_exchange *exchange, int error, const struct nc_quota_refusal *refusal);

/* Bytes that a tenant may keep; 0: as many as there is room for. */
uint64_t nc_quota_storage(const struct nc_serve_config *config, const char *tenant);

/* It is open; it has ended. */
void nc_quota_open(
	struct nc_quotas *quotas, const char *tenant, const struct nc_quota_share *share);
void nc_quota_close(
	struct nc_quotas *quotas, const char *tenant, const struct nc_quota_share *share);

/* It has used so much CPU time. */
void nc_quota_spend(
	struct nc_quotas *quotas, const char *tenant, double cpu_seconds, uint64_t now_ns);

#endif
