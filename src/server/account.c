/* What the end of something that ran moves. */
#include "server/account.h"

#include "base/clock.h"

void nc_account_end(
	struct nc_server *server, enum nc_metrics_of kind, const char *tenant, const json_t *told)
{
	const json_t *usage = json_object_get(told, "usage");
	double cpu_seconds = json_number_value(json_object_get(usage, "cpu_user_seconds")) +
			     json_number_value(json_object_get(usage, "cpu_system_seconds"));

	/* what an earlier one has used is told again with its reply, and was paid then */
	if (!json_is_true(json_object_get(told, "cached")))
		nc_quota_spend(server->quotas, tenant, cpu_seconds, nc_clock_ns());
	nc_metrics_end(server->metrics, kind, told);
}
