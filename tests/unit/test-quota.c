/* Quotas of tenants: rates that fill steadily, what is open, what was used. */
#include "unit.h"

#include <errno.h>

#include "base/clock.h"
#include "base/limits.h"
#include "server/quota.h"

#define START (1000 * NC_NS_PER_S)

static struct nc_serve_config config;
static struct nc_quotas *quotas;

static int set_up(void **state)
{
	(void)state;
	config = (struct nc_serve_config){0};
	quotas = nc_quotas_new();
	return quotas ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	nc_quotas_free(quotas);
	return 0;
}

static void without_quotas_all_may(void **state)
{
	struct nc_quota_refusal refusal;
	const struct nc_quota_share share = {64 << 20, 64 << 20};
	const struct nc_quota_share beyond = {UINT64_MAX / 2, 0};

	(void)state;
	for (int i = 0; i < 10000; i++)
		assert_int_equal(nc_quota_request(quotas, &config, "a", START, &refusal), 0);
	assert_int_equal(nc_quota_check(quotas, &config, "a", &share, START, &refusal), 0);
	/* but no more than the machine has */
	assert_int_equal(nc_quota_check(quotas, &config, "a", &beyond, START, &refusal), -ERANGE);
	assert_string_equal(refusal.quota, "memory_mb");
}

static void a_rate_fills_again(void **state)
{
	struct nc_quota_refusal refusal;
	int taken = 0;

	(void)state;
	config.quotas.requests_per_minute.number = 60;
	while (nc_quota_request(quotas, &config, "a", START, &refusal) == 0)
		taken++;
	assert_int_equal(taken, 60);
	assert_string_equal(refusal.quota, "requests_per_minute");
	assert_int_equal(refusal.retry_seconds, 1);
	assert_int_equal(nc_quota_request(quotas, &config, "b", START, &refusal), 0);
	/* one a second, and never more than a minute's */
	assert_int_equal(nc_quota_request(quotas, &config, "a", START + NC_NS_PER_S, &refusal), 0);
	assert_int_equal(
		nc_quota_request(quotas, &config, "a", START + NC_NS_PER_S, &refusal), -EDQUOT);
	for (taken = 0;
		nc_quota_request(quotas, &config, "a", START + 9000 * NC_NS_PER_S, &refusal) == 0;)
		taken++;
	assert_int_equal(taken, 60);
}

static void what_is_open_counts(void **state)
{
	const struct nc_quota_share share = {.memory_bytes = 512 << 20, .disk_bytes = 100 << 20};
	struct nc_quota_refusal refusal;

	(void)state;
	config.quotas.executions.number = 2;
	config.quotas.memory_mb.number = 1024;
	nc_quota_open(quotas, "a", &share);
	assert_int_equal(nc_quota_check(quotas, &config, "a", &share, START, &refusal), 0);
	nc_quota_open(quotas, "a", &share);
	assert_int_equal(nc_quota_check(quotas, &config, "a", NULL, START, &refusal), -EDQUOT);
	assert_string_equal(refusal.quota, "executions");
	config.quotas.executions.number = 0;
	assert_int_equal(nc_quota_check(quotas, &config, "a", &share, START, &refusal), -EDQUOT);
	assert_string_equal(refusal.quota, "memory_mb");
	nc_quota_close(quotas, "a", &share);
	assert_int_equal(nc_quota_check(quotas, &config, "a", &share, START, &refusal), 0);
	config.quotas.disk_mb.number = 199;
	assert_int_equal(nc_quota_check(quotas, &config, "a", &share, START, &refusal), -EDQUOT);
	assert_string_equal(refusal.quota, "disk_mb");
	/* what could not be had even then is not waited for */
	config.quotas.disk_mb.number = 99;
	assert_int_equal(nc_quota_check(quotas, &config, "a", &share, START, &refusal), -ERANGE);
	assert_string_equal(refusal.quota, "disk_mb");
	assert_false(refusal.beyond_host);
	assert_int_equal(refusal.retry_seconds, 0);
	config.quotas.disk_mb.number = 199;
	nc_quota_close(quotas, "a", &share);
	nc_quota_close(quotas, "a", &share); /* more than was opened changes nothing */
	assert_int_equal(nc_quota_check(quotas, &config, "a", &share, START, &refusal), 0);
}

static void an_hour_has_its_seconds(void **state)
{
	const struct nc_quota_share none = {0};
	struct nc_quota_refusal refusal;

	(void)state;
	config.quotas.cpu_seconds_per_hour.number = 10;
	nc_quota_open(quotas, "a", &none);
	nc_quota_close(quotas, "a", &none);
	assert_int_equal(nc_quota_check_cpu(quotas, &config, "a", START, &refusal), 0);
	nc_quota_spend(quotas, "a", 10.5, START);
	assert_int_equal(nc_quota_check_cpu(quotas, &config, "a", START, &refusal), -EDQUOT);
	assert_int_equal(
		nc_quota_check(quotas, &config, "a", NULL, START + 600 * NC_NS_PER_S, &refusal),
		-EDQUOT);
	assert_string_equal(refusal.quota, "cpu_seconds_per_hour");
	assert_int_equal(refusal.retry_seconds, 3000);
	assert_int_equal(
		nc_quota_check(quotas, &config, "a", NULL, START + 3600 * NC_NS_PER_S, &refusal),
		0);
}

static void a_tenant_has_its_own(void **state)
{
	struct nc_quota_values own = {.executions = {.given = true, .number = 1}};
	char name[] = "a";
	struct nc_map_entry entry = {.name = name, .values = &own};
	const struct nc_quota_share none = {0};
	struct nc_quota_refusal refusal;

	(void)state;
	config.tenants = (struct nc_map){.entries = &entry, .count = 1};
	config.quotas.cpu_seconds_per_hour.number = 1;
	nc_quota_open(quotas, "a", &none);
	nc_quota_open(quotas, "b", &none);
	assert_int_equal(nc_quota_check(quotas, &config, "a", NULL, START, &refusal), -EDQUOT);
	assert_int_equal(nc_quota_check(quotas, &config, "b", NULL, START, &refusal), 0);
	/* what it does not name is everybody's */
	nc_quota_close(quotas, "a", &none);
	nc_quota_spend(quotas, "a", 5, START);
	assert_int_equal(nc_quota_check(quotas, &config, "a", NULL, START, &refusal), -EDQUOT);
	assert_string_equal(refusal.quota, "cpu_seconds_per_hour");
}

static void tenants_are_bounded(void **state)
{
	struct nc_quota_refusal refusal;
	char name[16];
	int r = 0;

	(void)state;
	for (unsigned int i = 0; i <= NC_TENANTS_MAX; i++) {
		(void)snprintf(name, sizeof(name), "t%u", i);
		r = nc_quota_request(quotas, &config, name, START, &refusal);
		assert_int_equal(r, i < NC_TENANTS_MAX ? 0 : -ENOMEM);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(without_quotas_all_may, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_rate_fills_again, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_open_counts, set_up, tear_down),
		cmocka_unit_test_setup_teardown(an_hour_has_its_seconds, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_tenant_has_its_own, set_up, tear_down),
		cmocka_unit_test_setup_teardown(tenants_are_bounded, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
