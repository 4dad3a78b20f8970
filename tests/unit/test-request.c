/*
 * Requests: what a good one becomes, the forms of the list of faults, memory that runs out. The
 * faults themselves are in tests/request/cases, which tests/func/test_request.py goes through.
 */
#include "unit.h"

#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "engine/package.h"
#include "engine/request.h"
#include "runtime/runtime.h"

static struct nc_faults faults;
static size_t allocations_left = SIZE_MAX;

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);

static bool is_out_of_memory(void)
{
	if (allocations_left == 0)
		return true;
	allocations_left--;
	return false;
}

void *__wrap_malloc(size_t size)
{
	return is_out_of_memory() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
	return is_out_of_memory() ? NULL : __real_calloc(count, size);
}

static int parse(const char *json, struct nc_request *ret_request)
{
	faults = (struct nc_faults){0};
	return nc_request_parse(json, strlen(json), ret_request, &faults);
}

static void assert_good(const char *json, struct nc_request *ret_request)
{
	int r = parse(json, ret_request);

	if (r != 0)
		fail_msg("%d: %s: %s", r, faults.fault[0].pointer, faults.fault[0].message);
}

static void test_defaults(void **state)
{
	cleanup_request struct nc_request request = {0};
	const struct nc_request_limit *limit = (const void *)&request.limits;

	(void)state;
	assert_good("{\"code\": \"print(1)\"}", &request);
	assert_int_equal(request.n_steps, 1);
	assert_false(request.is_workflow);
	assert_string_equal(request.step[0].code, "print(1)");
	assert_int_equal(request.step[0].code_size, 8);
	assert_int_equal(request.step[0].language, NC_LANGUAGE_INVALID);
	assert_string_equal(request.step[0].file, "");
	assert_string_equal(request.step[0].name, "");
	assert_null(request.step[0].inputs.words[0]);
	assert_null(request.step[0].args.words[0]);
	assert_null(request.packages.words[0]);
	assert_null(request.capture.words[0]);
	assert_string_equal(request.id, "");
	assert_string_equal(request.tenant, "");
	assert_int_equal(request.tier, NC_TIER_MAX);
	assert_string_equal(request.policy, "");
	assert_int_equal(request.priority, NC_REQUEST_PRIORITY);
	assert_false(request.network.access || request.cache || request.stream);
	assert_int_equal(request.files.count + request.env.count + request.labels.count, 0);
	for (size_t i = 0; i < sizeof(request.limits) / sizeof(*limit); i++)
		assert_false(limit[i].given);
}

static void test_everything(void **state)
{
	cleanup_request struct nc_request request = {0};

	(void)state;
	assert_good("{\"language\": \"node\", \"code\": \"1\", \"file\": \"a.js\","
		    "\"inputs\": [\"x\", \"\"], \"args\": [\"-v\"], \"env\": {\"A\": \"b\"},"
		    "\"timeout\": 1.5, \"network_access\": true, \"packages\": [\"a\"],"
		    "\"files\": {\"d/t\": \"text\", \"b\": {\"base64\": \"AAE=\","
		    "\"executable\": true}}, \"tier\": \"microvm\", \"policy\": \"audit\","
		    "\"limits\": {\"memory_mb\": 64, \"cpu_cores\": 0.5,"
		    "\"cpu_time_seconds\": 0.0015, \"max_processes\": 3.0, \"disk_mb\": 2,"
		    "\"inodes\": 10, \"open_files\": 20, \"output_bytes\": 30},"
		    "\"capture\": [\"*.js\"], \"cache\": true, \"stream\": true, \"id\": \"i\","
		    "\"labels\": {\"k\": \"v\"}, \"tenant\": \"t\", \"priority\": 0}",
		&request);
	assert_int_equal(request.step[0].language, NC_JAVASCRIPT);
	assert_string_equal(request.step[0].file, "a.js");
	assert_int_equal(request.step[0].inputs.count, 2);
	assert_string_equal(request.step[0].inputs.words[0], "x");
	assert_string_equal(request.step[0].inputs.words[1], "");
	assert_string_equal(request.step[0].args.words[0], "-v");
	assert_string_equal(request.env.pair[0].name, "A");
	assert_string_equal(request.env.pair[0].value, "b");
	assert_true(request.network.access && request.cache && request.stream);
	assert_string_equal(request.packages.words[0], "a");
	assert_int_equal(request.files.count, 2);
	assert_string_equal(request.files.file[0].path, "d/t");
	assert_string_equal(request.files.file[0].data, "text");
	assert_false(request.files.file[0].executable);
	assert_int_equal(request.files.file[1].size, 2);
	assert_memory_equal(request.files.file[1].data, "\0\1", 2);
	assert_true(request.files.file[1].executable);
	assert_int_equal(request.tier, NC_TIER_MICROVM);
	assert_string_equal(request.policy, "audit");
	assert_string_equal(request.capture.words[0], "*.js");
	assert_string_equal(request.id, "i");
	assert_string_equal(request.tenant, "t");
	assert_string_equal(request.labels.pair[0].value, "v");
	assert_int_equal(request.priority, 0);
}

static void test_networks(void **state)
{
	cleanup_request struct nc_request isolated = {0}, listed = {0};

	(void)state;
	assert_good("{\"code\": \"1\", \"network\": {\"mode\": \"isolated\", \"group\": \"g.1\","
		    "\"name\": \"box-1\", \"over_budget\": \"freeze\", \"mbps\": 8}}",
		&isolated);
	assert_int_equal(isolated.network.mode, NC_NETWORK_ISOLATED);
	assert_string_equal(isolated.network.group, "g.1");
	assert_string_equal(isolated.network.name, "box-1");
	assert_int_equal(isolated.network.over, NC_OVER_FREEZE);
	assert_good("{\"code\": \"1\", \"network\": {\"mode\": \"allowlist\"}}", &listed);
	assert_int_equal(listed.network.mode, NC_NETWORK_ALLOWLIST);
	assert_int_equal(listed.network.over, NC_OVER_REFUSE);
	assert_null(listed.network.group);
}

static void test_limits(void **state)
{
	cleanup_request struct nc_request request = {0};
	const struct nc_request_limits *limits = &request.limits;

	(void)state;
	assert_good("{\"code\": \"1\", \"timeout\": 1.5, \"limits\": {\"memory_mb\": 64,"
		    "\"cpu_cores\": 0.5, \"cpu_time_seconds\": 0.0015, \"max_processes\": 3.0,"
		    "\"disk_mb\": 2, \"inodes\": 10, \"open_files\": 20, \"output_bytes\": 30}}",
		&request);
	assert_int_equal(limits->wall_ms.value, 1500);
	assert_true(limits->wall_ms.given && limits->memory_bytes.given);
	assert_int_equal(limits->memory_bytes.value, 64 << 20);
	assert_int_equal(limits->cpu_milli.value, 500);
	assert_int_equal(limits->cpu_time_ms.value, 2);
	assert_int_equal(limits->processes.value, 3);
	assert_int_equal(limits->disk_bytes.value, 2 << 20);
	assert_int_equal(limits->inodes.value, 10);
	assert_int_equal(limits->open_files.value, 20);
	assert_int_equal(limits->output_bytes.value, 30);
	nc_request_done(&request);
	assert_good("{\"code\": \"1\", \"limits\": {\"execution_time_seconds\": 2}}", &request);
	assert_int_equal(limits->wall_ms.value, 2000);
	assert_false(limits->memory_bytes.given);
}

static void test_workflow(void **state)
{
	cleanup_request struct nc_request request = {0};

	(void)state;
	assert_good("{\"language\": \"python\", \"env\": {\"A\": \"1\"}, \"steps\": ["
		    "{\"code\": \"a\", \"language\": \"shell\", \"name\": \"make\","
		    "\"env\": {\"A\": \"2\"}, \"timeout\": 0.25, \"inputs\": [\"i\"]},"
		    "{\"code\": \"b\", \"args\": [\"c\"], \"file\": \"d.py\"}]}",
		&request);
	assert_true(request.is_workflow);
	assert_int_equal(request.n_steps, 2);
	assert_int_equal(request.step[0].language, NC_SHELL);
	assert_string_equal(request.step[0].name, "make");
	assert_string_equal(request.step[0].env.pair[0].value, "2");
	assert_true(request.step[0].wall_ms.given);
	assert_int_equal(request.step[0].wall_ms.value, 250);
	assert_string_equal(request.step[0].inputs.words[0], "i");
	assert_int_equal(request.step[1].language, NC_PYTHON); /* of the request */
	assert_string_equal(request.step[1].args.words[0], "c");
	assert_false(request.step[1].wall_ms.given);
	assert_null(request.step[1].inputs.words[0]);
	assert_string_equal(request.env.pair[0].value, "1");
}

static void test_failure_leaves_the_output(void **state)
{
	struct nc_request request = {.priority = 77};

	(void)state;
	assert_int_equal(parse("{\"code\": \"1\", \"priority\": 3, \"x\": 1}", &request), -EINVAL);
	assert_int_equal(request.priority, 77);
	assert_null(request.source);
	assert_int_equal(faults.count, 1);
}

static void test_forms_of_faults(void **state)
{
	cleanup_json json_t *list = NULL;
	nc_buf_cleanup struct nc_buf text = NC_BUF(64U * 1024);
	struct nc_request request = {0};

	(void)state;
	assert_int_equal(
		parse("{\"code\": \"1\", \"a/b\": 1, \"c\\u001b\": 2}", &request), -EINVAL);
	list = nc_faults_json(&faults);
	assert_int_equal(json_array_size(list), 2);
	assert_string_equal(
		json_string_value(json_object_get(json_array_get(list, 0), "pointer")), "/a~1b");
	assert_string_equal(
		json_string_value(json_object_get(json_array_get(list, 1), "pointer")), "/c\x1b");
	assert_string_equal(json_string_value(json_object_get(json_array_get(list, 0), "message")),
		"found an unknown field");
	nc_faults_text(&faults, &text);
	assert_string_equal(nc_buf_text(&text),
		"/a~1b: found an unknown field\n/c\\x1b: found an unknown field\n");
}

static void test_long_places_are_cut_at_a_character(void **state)
{
	char json[8192] = "{\"code\": \"1\", \"";
	size_t used = strlen(json);
	struct nc_request request = {0};

	(void)state;
	for (size_t odd = 0; odd < 4; odd++) {
		cleanup_json json_t *list = NULL;
		size_t at = used;

		memset(json + at, 'a', odd);
		at += odd;
		for (size_t i = 0; i < 500; i++, at += 4)
			memcpy(json + at, "\xf0\x9f\x98\x80", 4);
		memcpy(json + at, "\": 1}", 6);
		assert_int_equal(parse(json, &request), -EINVAL);
		assert_non_null(strstr(faults.fault[0].pointer, "..."));
		assert_true(strlen(faults.fault[0].pointer) < NC_FAULT_POINTER_SIZE);
		list = nc_faults_json(&faults); /* NULL if it were no UTF-8 */
		assert_non_null(list);
	}
}

static void test_faults_beyond_the_maximum_are_counted(void **state)
{
	nc_buf_cleanup struct nc_buf json = NC_BUF(64U * 1024);
	cleanup_json json_t *list = NULL;
	struct nc_request request = {0};

	(void)state;
	nc_buf_adds(&json, "{\"code\": \"x\", \"inputs\": [0");
	for (size_t i = 0; i < NC_REQUEST_FAULTS_MAX + 9; i++)
		nc_buf_adds(&json, ", 0");
	nc_buf_adds(&json, "]}");
	assert_int_equal(parse(nc_buf_text(&json), &request), -EINVAL);
	assert_int_equal(faults.count, NC_REQUEST_FAULTS_MAX);
	assert_int_equal(faults.left_out, 10);
	list = nc_faults_json(&faults);
	assert_int_equal(json_array_size(list), NC_REQUEST_FAULTS_MAX + 1);
}

static void test_brackets_in_strings_are_no_values(void **state)
{
	nc_buf_cleanup struct nc_buf json = NC_BUF(1024U * 1024);
	cleanup_request struct nc_request request = {0};

	(void)state;
	nc_buf_adds(&json, "{\"code\": \"");
	for (size_t i = 0; i < NC_REQUEST_VALUES_MAX; i++)
		nc_buf_adds(&json, ",[\\\"{");
	nc_buf_adds(&json, "\"}");
	assert_good(nc_buf_text(&json), &request);
}

static void test_languages(void **state)
{
	(void)state;
	assert_int_equal(nc_language_parse("python"), NC_PYTHON);
	assert_int_equal(nc_language_parse("bash"), NC_SHELL);
	assert_int_equal(nc_language_parse("c"), NC_C);
	assert_int_equal(nc_language_parse("java"), NC_LANGUAGE_INVALID);
	assert_int_equal(nc_language_parse(""), NC_LANGUAGE_INVALID);
}

static void test_package_names(void **state)
{
	char longest[NC_REQUEST_PACKAGE_MAX + 2];

	(void)state;
	memset(longest, 'a', sizeof(longest));
	longest[NC_REQUEST_PACKAGE_MAX + 1] = '\0';
	assert_false(nc_package_is_name(longest));
	longest[NC_REQUEST_PACKAGE_MAX] = '\0';
	assert_true(nc_package_is_name(longest));
}

/* Allocations fail in turn: ours, and jansson's where it is linked statically, which calls it
 * invalid JSON. */
static void test_out_of_memory(void **state)
{
	static const char json[] =
		"{\"steps\": [{\"code\": \"1\", \"inputs\": [\"a\"], \"args\": [\"b\"],"
		"\"env\": {\"A\": \"b\"}}], \"packages\": [\"a\"], \"capture\": [\"b\"],"
		"\"files\": {\"a\": {\"base64\": \"AAE=\"}}, \"labels\": {\"a\": \"b\"}}";
	int r = -ENOMEM;
	size_t refused = 0, n;

	(void)state;
	for (n = 0; r != 0; n++) {
		cleanup_request struct nc_request request = {0};

		assert_true(n < 1000);
		allocations_left = n;
		r = parse(json, &request);
		allocations_left = SIZE_MAX;
		assert_true(r == 0 || r == -ENOMEM || r == -EINVAL);
		refused += r == -ENOMEM;
	}
	assert_true(refused >= 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_everything),
		cmocka_unit_test(test_networks),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_workflow),
		cmocka_unit_test(test_failure_leaves_the_output),
		cmocka_unit_test(test_forms_of_faults),
		cmocka_unit_test(test_long_places_are_cut_at_a_character),
		cmocka_unit_test(test_faults_beyond_the_maximum_are_counted),
		cmocka_unit_test(test_brackets_in_strings_are_no_values),
		cmocka_unit_test(test_languages),
		cmocka_unit_test(test_package_names),
		cmocka_unit_test(test_out_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
