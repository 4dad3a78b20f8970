/* Finding routes, names of this machine, and what is counted. */
#include "unit.h"

#include <string.h>

#include "server/gate.h"
#include "server/metrics.h"
#include "server/route.h"

static const struct nc_route routes[] = {
	{.method = "GET", .pattern = "/a"},
	{.method = "GET", .pattern = "/a/{id}"},
	{.method = "POST", .pattern = "/a/{id}"},
	{.method = "GET", .pattern = "/a/{id}/b/{which}"},
	{0},
};

static const struct nc_route *find(
	const char *method, const char *path, struct nc_exchange *exchange, char allow[static 64])
{
	exchange->method = method;
	exchange->path = path;
	return nc_route_find(routes, exchange, allow, 64);
}

static void routes_are_found(void **state)
{
	struct nc_exchange exchange = {0};
	char allow[64];

	(void)state;
	assert_ptr_equal(find("GET", "/a", &exchange, allow), &routes[0]);
	assert_ptr_equal(find("POST", "/a/x", &exchange, allow), &routes[2]);
	assert_string_equal(exchange.part[0], "x");
	assert_ptr_equal(find("GET", "/a/x/b/yz", &exchange, allow), &routes[3]);
	assert_int_equal(exchange.n_parts, 2);
	assert_string_equal(exchange.part[1], "yz");
}

static void others_are_not(void **state)
{
	static const char *const bad[] = {
		"/", "/b", "/a/", "/a/x/", "/a/x/b", "/a/x/b/", "/a/x/b/y/z", "/ab", "a", ""};
	struct nc_exchange exchange = {0};
	char allow[64], longest[NC_HTTP_PART_MAX + 4] = "/a/";

	(void)state;
	for (size_t i = 0; i < unit_count(bad); i++) {
		if (find("GET", bad[i], &exchange, allow))
			fail_msg("%s is a route", bad[i]);
		assert_string_equal(allow, "");
	}
	assert_null(find("PUT", "/a/x", &exchange, allow));
	assert_string_equal(allow, "GET, HEAD, POST");
	memset(longest + 3, 'x', NC_HTTP_PART_MAX);
	longest[3 + NC_HTTP_PART_MAX] = '\0';
	assert_non_null(find("GET", longest, &exchange, allow));
}

static void names_of_this_machine(void **state)
{
	static const char *const good[] = {"localhost", "LOCALHOST:1", "127.0.0.1",
		"127.255.255.255:65535", "[::1]", "[::1]:80"};
	static const char *const bad[] = {"", "localhost.", "localhost.x", "xlocalhost",
		"localhost:", "localhost:a", "127.0.0.1.x", "127.0.0.1:", "127.0.0", "127.1",
		"128.0.0.1", "127.0.0.256", "0127.0.0.1x", "::1", "[::1", "[::1]x", "[::2]",
		"127.0.0.1 ", "127.0.0.1:123456", "2130706433"};

	(void)state;
	for (size_t i = 0; i < unit_count(good); i++)
		if (!nc_gate_host_is_local(good[i]))
			fail_msg("%s is ours", good[i]);
	for (size_t i = 0; i < unit_count(bad); i++)
		if (nc_gate_host_is_local(bad[i]))
			fail_msg("%s is not ours", bad[i]);
}

static void histograms_add_up(void **state)
{
	struct nc_metrics *metrics = nc_metrics_new();
	nc_buf_cleanup struct nc_buf text = NC_BUF(1U << 20);

	(void)state;
	assert_non_null(metrics);
	nc_metrics_add(metrics, NC_METRIC_START, 0.001, NULL); /* a bound belongs to its bucket */
	nc_metrics_add(metrics, NC_METRIC_START, 0.002, NULL);
	nc_metrics_add(metrics, NC_METRIC_START, 1000, NULL);
	assert_true(nc_metrics_count(metrics, NC_METRIC_START) == 3);
	nc_metrics_text(metrics, &text);
	assert_int_equal(text.error, 0);
	assert_non_null(strstr(text.data, "nacre_box_start_seconds_bucket{le=\"0.001\"} 1\n"));
	assert_non_null(strstr(text.data, "nacre_box_start_seconds_bucket{le=\"0.0025\"} 2\n"));
	assert_non_null(strstr(text.data, "nacre_box_start_seconds_bucket{le=\"5\"} 2\n"));
	assert_non_null(strstr(text.data, "nacre_box_start_seconds_bucket{le=\"+Inf\"} 3\n"));
	assert_non_null(strstr(text.data, "nacre_box_start_seconds_count 3\n"));
	nc_metrics_free(metrics);
}

static void labels_are_bounded_and_escaped(void **state)
{
	struct nc_metrics *metrics = nc_metrics_new();
	nc_buf_cleanup struct nc_buf text = NC_BUF(1U << 20);
	char name[32];
	const char *labels[] = {"a\"b\\c\n", "layer"};

	(void)state;
	assert_non_null(metrics);
	nc_metrics_add(metrics, NC_METRIC_DENIALS, 1, labels);
	labels[0] = name;
	for (int i = 0; i < 1000; i++) {
		(void)snprintf(name, sizeof(name), "rule%d", i);
		nc_metrics_add(metrics, NC_METRIC_DENIALS, 1, labels);
	}
	assert_true(nc_metrics_sum(metrics, NC_METRIC_DENIALS) == 1001);
	assert_true(nc_metrics_sum_of(metrics, NC_METRIC_DENIALS, 0, "other") ==
		    1001 - (NC_METRIC_SERIES_MAX - 1));
	nc_metrics_text(metrics, &text);
	assert_non_null(strstr(
		text.data, "nacre_denials_total{rule=\"a\\\"b\\\\c?\",layer=\"layer\"} 1\n"));
	nc_metrics_free(metrics);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(routes_are_found),
		cmocka_unit_test(others_are_not),
		cmocka_unit_test(names_of_this_machine),
		cmocka_unit_test(histograms_add_up),
		cmocka_unit_test(labels_are_bounded_and_escaped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
