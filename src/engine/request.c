/*
 * Reading requests: the tables of their objects, readers of what is not just a number or a text,
 * and what no single value tells.
 */
#include "engine/request.h"

#include <ctype.h>
#include <string.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/path.h"
#include "base/place.h"
#include "base/text.h"
#include "config/host.h"
#include "engine/package.h"
#include "engine/reader.h"
#include "runtime/runtime.h"

#define MIB (1024ULL * 1024)
/* Milliseconds of seven days. */
#define TIME_MAX_MS (7 * 86400 * 1000ULL)

/* A request at work. */
struct draft {
	struct nc_request request;
	struct nc_request_step single;	 /* what stands beside `code` */
	struct nc_request_limit timeout; /* `timeout`, beside limits.execution_time_seconds */
};

/* Into char[NC_REQUEST_NAME_MAX + 1]. */
void nc_read_id(const struct nc_cursor *c)
{
	const char *name = nc_read_name(c);

	if (name)
		memcpy(c->target, name, strlen(name) + 1);
}

static void read_step_name(const struct nc_cursor *c)
{
	const char *name = nc_read_name(c);

	if (name)
		*(const char **)c->target = name;
}

void nc_read_tier(const struct nc_cursor *c)
{
	int chosen = nc_read_choice(c, nc_tier_names, NC_TIER_MAX);

	if (chosen >= 0)
		*(enum nc_tier *)c->target = (enum nc_tier)chosen;
}

/* In an execution the workspace is the sandbox's, so that nobody else could work there. */
static void read_user(const struct nc_cursor *c)
{
	static const char *const users[] = {NC_SANDBOX_USER, "root"};
	int chosen = nc_read_choice(c, users, 2);

	if (chosen >= 0)
		*(bool *)c->target = chosen == 1;
}

void nc_read_policy(const struct nc_cursor *c)
{
	const char *text = json_string_value(c->value);

	/* a name and never a file: no dots, no slashes */
	if (text && nc_is_request_name(text, "_-"))
		memcpy(c->target, text, strlen(text) + 1);
	else
		nc_refuse(c, "the name of a policy: 1 to 64 letters, digits, '_' and '-', a letter "
			     "or digit first");
}

static void read_language(const struct nc_cursor *c)
{
	const char *text = json_string_value(c->value);
	enum nc_language language = text ? nc_language_parse(text) : NC_LANGUAGE_INVALID;
	const char *names[NC_LANGUAGE_MAX];

	for (size_t i = 0; i < NC_LANGUAGE_MAX; i++)
		names[i] = nc_runtimes[i]->name;
	if (language < 0)
		(void)nc_read_choice(c, names, NC_LANGUAGE_MAX);
	else
		*(enum nc_language *)c->target = language;
}

static void read_code(const struct nc_cursor *c)
{
	struct nc_request_step *step = c->target;
	const char *text = nc_read_text(c);
	size_t size = json_string_length(c->value);

	if (!text)
		return;
	step->code = text;
	step->code_size = size;
	if (size == 0)
		nc_fault(c, "found no code, expected at least one byte");
	if (size > NC_REQUEST_CODE_MAX)
		nc_fault(c, "found %zu bytes, expected at most %u", size, NC_REQUEST_CODE_MAX);
}

static bool is_workspace_path(const char *path)
{
	size_t depth = 1;

	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/'))
		depth++;
	return nc_path_is_plain(path) && strlen(path) <= NC_REQUEST_PATH_MAX &&
	       depth <= NC_REQUEST_PATH_DEPTH_MAX;
}

#define PATH_EXPECTED                                                                              \
	"a path below the workspace: relative, without '.', '..' and empty parts, of at most "     \
	"1023 bytes and 32 parts"
_Static_assert(NC_REQUEST_PATH_MAX == 1023 && NC_REQUEST_PATH_DEPTH_MAX == 32, "as it says");

static void read_file_name(const struct nc_cursor *c)
{
	const char *text = json_string_value(c->value);

	if (text && is_workspace_path(text))
		*(const char **)c->target = text;
	else
		nc_refuse(c, PATH_EXPECTED);
}

static bool is_pattern(const char *text)
{
	return nc_path_is_plain(text) && strlen(text) <= NC_REQUEST_CAPTURE_MAX;
}

static void read_inputs(const struct nc_cursor *c)
{
	static const struct nc_list inputs = {
		"lines", NC_REQUEST_INPUTS_MAX, NC_REQUEST_INPUTS_SIZE_MAX, NULL, NULL};

	nc_read_words(c, &inputs);
}

static void read_args(const struct nc_cursor *c)
{
	static const struct nc_list args = {
		"arguments", NC_REQUEST_ARGS_MAX, NC_REQUEST_ARGS_SIZE_MAX, NULL, NULL};

	nc_read_words(c, &args);
}

static void read_packages(const struct nc_cursor *c)
{
	static const struct nc_list packages = {"packages", NC_REQUEST_PACKAGES_MAX, 0,
		nc_package_is_name,
		"the name of a package, with a version if you like, such as requests==2.31.0, "
		"lodash@4.17.21 or @types/node"};

	nc_read_words(c, &packages);
}

static void read_capture(const struct nc_cursor *c)
{
	static const struct nc_list capture = {"patterns", NC_REQUEST_CAPTURES_MAX, 0, is_pattern,
		"a pattern below the workspace: relative, without '.', '..' and empty parts, of "
		"at most 255 bytes"};

	_Static_assert(NC_REQUEST_CAPTURE_MAX == 255, "as it says");
	nc_read_words(c, &capture);
}

static bool is_bind(const char *name)
{
	return nc_is_request_name(name, "._-");
}

void nc_read_binds(const struct nc_cursor *c)
{
	static const struct nc_list binds = {"names", NC_REQUEST_BINDS_MAX, 0, is_bind,
		"a name of the operator's binds: 1 to 64 letters, digits, '.', '_', '-', a letter "
		"or digit first"};

	nc_read_words(c, &binds);
}

static bool is_variable(const char *name)
{
	if (isdigit((unsigned char)name[0]))
		return false;
	for (size_t i = 0; name[i]; i++)
		if (name[i] != '_' &&
			!(isascii((unsigned char)name[i]) && isalnum((unsigned char)name[i])))
			return false;
	return name[0] != '\0';
}

void nc_read_env(const struct nc_cursor *c)
{
	const struct nc_request_pairs *env = c->target;
	size_t total = 0;

	if (!nc_read_pairs(c, "variables", NC_REQUEST_ENV_MAX))
		return;
	for (size_t i = 0; i < env->count; i++) {
		if (!is_variable(env->pair[i].name))
			nc_refuse_name(
				c, env->pair[i].name, "letters, digits and '_', no digit first");
		total += strlen(env->pair[i].name) + strlen(env->pair[i].value) + 2;
	}
	if (total > NC_REQUEST_ENV_SIZE_MAX)
		nc_fault(c, "found %zu bytes of variables, expected at most %u", total,
			NC_REQUEST_ENV_SIZE_MAX);
}

void nc_read_labels(const struct nc_cursor *c)
{
	const struct nc_request_pairs *labels = c->target;

	if (!nc_read_pairs(c, "labels", NC_REQUEST_LABELS_MAX))
		return;
	for (size_t i = 0; i < labels->count; i++) {
		const struct nc_request_pair *label = &labels->pair[i];
		const struct nc_place at = {.parent = c->at, .key = label->name};

		if (!nc_is_request_name(label->name, "._/-"))
			nc_refuse_name(c, label->name,
				"1 to 64 letters, digits, '.', '_', '/' and '-', a letter or "
				"digit first");
		if (strlen(label->value) > NC_REQUEST_LABEL_MAX)
			nc_faults_add(c->reading->faults, &at,
				"found %zu bytes, expected at most %u", strlen(label->value),
				NC_REQUEST_LABEL_MAX);
	}
}

static void fault_base64(const struct nc_cursor *c, size_t size, size_t at)
{
	if (size % 4 != 0)
		nc_fault(c, "found base64 of %zu characters, expected groups of four with padding",
			size);
	else
		nc_fault(c, "found base64 that is wrong at character %zu", at + 1);
}

/* Reads it to its end: how large it is, and that it can be read. */
static void measure(const struct nc_cursor *c, const struct nc_cut *cut, bool base64)
{
	struct nc_request_file *file = c->target;
	cleanup_free struct nc_cut_reader *reader = malloc(sizeof(*reader));
	struct nc_sha256_state hash;
	unsigned char digest[NC_SHA256_SIZE];
	const char *data;
	size_t size, at = 0;
	int r = 0;

	if (!reader) {
		c->reading->error = -ENOMEM;
		return;
	}
	file->cut = cut;
	file->cut_base64 = base64;
	nc_cut_begin(reader, c->reading->cuts, cut, base64);
	nc_sha256_begin(&hash);
	while ((r = nc_cut_next(reader, &data, &size, &at)) == 0 && size > 0) {
		file->size += size;
		nc_sha256_add(&hash, data, size);
	}
	nc_sha256_end(&hash, digest);
	nc_sha256_hex(digest, file->cut_digest);
	if (r == -EILSEQ)
		nc_fault(c, "found text that is no JSON");
	else if (r == -EINVAL)
		fault_base64(c, reader->uneven ? at : 0, at);
	else
		c->reading->error = r;
}

static void read_text(const struct nc_cursor *c)
{
	struct nc_request_file *file = c->target;
	const char *text = nc_read_text(c);
	const struct nc_cut *cut = text ? nc_cuts_find(c->reading->cuts, text) : NULL;

	if (cut) {
		measure(c, cut, false);
		return;
	}
	file->data = text;
	file->size = json_string_length(c->value);
}

static void read_base64(const struct nc_cursor *c)
{
	struct nc_request_file *file = c->target;
	const char *text = nc_read_text(c);
	const struct nc_cut *cut = text ? nc_cuts_find(c->reading->cuts, text) : NULL;
	size_t size = json_string_length(c->value), at = 0;
	int r = 0;

	if (cut) {
		measure(c, cut, true);
		return;
	}
	if (!text)
		return;
	r = nc_base64_decode(text, size, &file->decoded, &file->size, &at);
	file->data = file->decoded;
	if (r == -ENOMEM)
		c->reading->error = r;
	if (r == -EINVAL)
		fault_base64(c, size, at);
}

static const struct nc_rule file_rules[] = {
	{.name = "text", .read = read_text},
	{.name = "base64", .read = read_base64},
	{.name = "executable",
		.read = nc_read_bool,
		.offset = offsetof(struct nc_request_file, executable)},
	{0},
};

static void read_file(const struct nc_cursor *c)
{
	struct nc_request_file *file = c->target;
	bool text = json_object_get(c->value, "text"), base64 = json_object_get(c->value, "base64");

	if (json_is_string(c->value)) {
		read_text(c);
		return;
	}
	if (!json_is_object(c->value)) {
		nc_refuse(c, "text, or an object with 'text' or 'base64'");
		return;
	}
	/* both would leave one of them without an owner */
	if (text == base64)
		nc_fault(c, "found %s, expected one of 'text' and 'base64'",
			text ? "both" : "neither");
	else
		nc_read_members(c, file_rules, file);
}

/* Whether a directory above path is itself one of the files. */
static bool is_below_a_file(json_t *files, const char *path)
{
	char above[NC_REQUEST_PATH_MAX + 1];

	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		memcpy(above, path, (size_t)(slash - path));
		above[slash - path] = '\0';
		if (json_object_get(files, above))
			return true;
	}
	return false;
}

static void read_one_file(
	const struct nc_cursor *c, const char *path, json_t *value, uint64_t *total)
{
	struct nc_request_files *files = c->target;
	struct nc_request_file *file = &files->file[files->count++];
	const struct nc_place at = {.parent = c->at, .key = path};
	const struct nc_cursor member = {
		.reading = c->reading, .at = &at, .value = value, .target = file};

	file->path = path;
	if (!is_workspace_path(path))
		nc_refuse_name(c, path, PATH_EXPECTED);
	else if (is_below_a_file(c->value, path))
		nc_fault(&member, "found a file below a path that is a file too");
	read_file(&member);
	*total += file->size;
}

static void read_files(const struct nc_cursor *c)
{
	struct nc_request_files *files = c->target;
	uint64_t total = 0;
	const char *path;
	json_t *value;

	if (!json_is_object(c->value)) {
		nc_refuse(c, "an object of files by their paths");
		return;
	}
	if (json_object_size(c->value) > NC_REQUEST_FILES_MAX) {
		nc_fault(c, "found %zu files, expected at most %u", json_object_size(c->value),
			NC_REQUEST_FILES_MAX);
		return;
	}
	files->file = nc_read_allocate(c, json_object_size(c->value), sizeof(*files->file));
	if (!files->file)
		return;
	json_object_foreach(c->value, path, value)
	{
		read_one_file(c, path, value, &total);
	}
	if (total > NC_REQUEST_FILES_SIZE_MAX)
		nc_fault(c, "found %llu bytes of files, expected at most %u",
			(unsigned long long)total, NC_REQUEST_FILES_SIZE_MAX);
}

/* What a header may hold. */
#define PRINTABLE                                                                                  \
	" !\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmno"       \
	"pqrstuvwxyz{|}~"

#define LIMIT(key, reader, member, least, most, one)                                               \
	{                                                                                          \
		.name = (key), .read = (reader),                                                   \
		.offset = offsetof(struct nc_request_limits, member), .min = (least),              \
		.max = (most), .unit = (one)                                                       \
	}

/* The ranges of memory, cores, processes and disk are those of resource_limits.yaml. */
static const struct nc_rule limit_rules[] = {
	LIMIT("memory_mb", nc_read_whole, memory_bytes, 8, 1024 * 1024, MIB),
	LIMIT("cpu_cores", nc_read_milli, cpu_milli, 10, 1024 * 1000, 0),
	LIMIT("cpu_time_seconds", nc_read_milli, cpu_time_ms, 1, TIME_MAX_MS, 0),
	LIMIT("execution_time_seconds", nc_read_milli, wall_ms, 1, TIME_MAX_MS, 0),
	LIMIT("max_processes", nc_read_whole, processes, 1, 32768, 1),
	LIMIT("disk_mb", nc_read_whole, disk_bytes, 1, 1024 * 1024, MIB),
	LIMIT("inodes", nc_read_whole, inodes, 1, 100 * 1000 * 1000, 1),
	LIMIT("open_files", nc_read_whole, open_files, 8, 1024 * 1024, 1),
	LIMIT("output_bytes", nc_read_whole, output_bytes, 1, 1024 * MIB, 1),
	{0},
};

static void read_allow(const struct nc_cursor *c)
{
	static const struct nc_list list = {.noun = "hosts",
		.count_max = NC_REQUEST_HOSTS_MAX,
		.is_good = nc_host_is_pattern,
		.expected = NC_HOST_EXPECTED};

	nc_read_words(c, &list);
}

#define NETWORK(key, reader, member, most, one)                                                    \
	{                                                                                          \
		.name = (key), .read = (reader),                                                   \
		.offset = offsetof(struct nc_request_network, member), .min = 1, .max = (most),    \
		.unit = (one)                                                                      \
	}

static void read_mode(const struct nc_cursor *c)
{
	static const char *const names[] = {"none", "isolated", "allowlist"};
	int chosen = nc_read_choice(c, names, sizeof(names) / sizeof(names[0]));

	if (chosen >= 0)
		*(enum nc_network_mode *)c->target = (enum nc_network_mode)(chosen + 1);
}

static void read_over(const struct nc_cursor *c)
{
	int chosen = nc_read_choice(c, nc_policy_overs, NC_OVER_MAX);

	if (chosen >= 0)
		*(enum nc_policy_over *)c->target = (enum nc_policy_over)chosen;
}

static void read_group(const struct nc_cursor *c)
{
	*(const char **)c->target = nc_read_name(c);
}

/* As a host that is asked for is read, so that there is one spelling. */
static void read_member(const struct nc_cursor *c)
{
	const char *text = nc_read_text(c);
	struct nc_host host;

	if (text && (strlen(text) > NC_EGRESS_NAME_MAX || strchr(text, '.') ||
			    nc_streq(text, "localhost") ||
			    nc_host_parse(text, strlen(text), &host) < 0 ||
			    host.kind != NC_HOST_NAME || !nc_streq(text, host.text)))
		nc_refuse(c, "small letters, digits and '-', as in the name of a host");
	*(const char **)c->target = text;
}

static const struct nc_rule network_rules[] = {
	NETWORK("mode", read_mode, mode, 0, 0),
	NETWORK("group", read_group, group, 0, 0),
	NETWORK("name", read_member, name, 0, 0),
	NETWORK("over_budget", read_over, over, 0, 0),
	NETWORK("allow", read_allow, allow, 0, 0),
	NETWORK("max_mb", nc_read_whole, bytes, 1024 * 1024, MIB),
	NETWORK("max_requests", nc_read_whole, requests, 1000 * 1000 * 1000, 1),
	NETWORK("mbps", nc_read_whole, rate_mbps, 100 * 1000, 1),
	NETWORK("strict", nc_read_bool, strict, 0, 0),
	{0},
};

void nc_read_network(const struct nc_cursor *c)
{
	const struct nc_request_network *network = c->target;
	bool isolated;

	nc_read_members(c, network_rules, c->target);
	isolated = network->mode == NC_NETWORK_ISOLATED;
	if (isolated && (!network->group || !network->name))
		nc_fault(c, "found no '%s', expected one with the mode 'isolated'",
			network->group ? "name" : "group");
	if (!isolated && (network->group || network->name))
		nc_fault(c, "found a '%s', expected none but with the mode 'isolated'",
			network->group ? "group" : "name");
	if ((isolated || network->mode == NC_NETWORK_NONE) && network->allow.count > 0)
		nc_fault(c, "found 'allow', expected none with the mode '%s'",
			isolated ? "isolated" : "none");
}

static void read_secret_text(const struct nc_cursor *c)
{
	const char *text = json_string_value(c->value);

	/* what was found is not said */
	if (!text || !*text || strlen(text) > NC_EGRESS_SECRET_MAX ||
		text[strspn(text, PRINTABLE)] != '\0')
		nc_fault(c, "found something else, expected 1 to 4096 printable characters");
	*(const char **)c->target = text;
}

static void read_secret_host(const struct nc_cursor *c)
{
	const char *text = nc_read_text(c);

	if (!text)
		return;
	if (!nc_host_is_pattern(text) || text[0] == '*')
		nc_refuse(c, "one host, with a port if you like");
	*(const char **)c->target = text;
}

static void read_header(const struct nc_cursor *c)
{
	const char *text = nc_read_text(c);

	if (!text)
		return;
	if (!*text || strlen(text) > NC_EGRESS_HEADER_MAX ||
		text[strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				  "0123456789-")] != '\0')
		nc_refuse(c, "the name of a header");
	*(const char **)c->target = text;
}

#define SECRET(key, reader, member)                                                                \
	{                                                                                          \
		.name = (key), .read = (reader),                                                   \
		.offset = offsetof(struct nc_request_secret, member)                               \
	}

static const struct nc_rule secret_rules[] = {
	SECRET("value", read_secret_text, value),
	SECRET("host", read_secret_host, host),
	SECRET("header", read_header, header),
	SECRET("plain", nc_read_bool, plain),
	SECRET("mask", nc_read_bool, mask),
	{0},
};

/* Stands where the value was. */
#define FORGOTTEN "handed over to nacre-egress"

void nc_request_secret_forget(struct nc_request_secret *secret)
{
	json_t *value = json_object_get(secret->source, "value");

	explicit_bzero((char *)(uintptr_t)json_string_value(value), json_string_length(value));
	(void)json_string_set(value, FORGOTTEN);
	secret->value = json_string_value(value);
}

static void check_secret(const struct nc_cursor *c, const struct nc_request_secret *secret)
{
	if (!json_is_object(c->value))
		return;
	if (!secret->value || !secret->host)
		nc_fault(c, "found no '%s', expected one", secret->value ? "host" : "value");
	else if (secret->mask && strlen(secret->value) < NC_EGRESS_MASK_MIN)
		nc_fault(c,
			"found a value of less than %u characters, which cannot be masked; say "
			"\"mask\": false",
			NC_EGRESS_MASK_MIN);
}

void nc_read_secrets(const struct nc_cursor *c)
{
	struct nc_request_secrets *secrets = c->target;
	const char *name;
	json_t *value;

	if (!json_is_object(c->value) || json_object_size(c->value) > NC_EGRESS_SECRETS_MAX) {
		nc_refuse(c, "an object of at most 16 secrets by their names");
		return;
	}
	secrets->secret = nc_read_allocate(c, json_object_size(c->value), sizeof(*secrets->secret));
	if (!secrets->secret)
		return;
	json_object_foreach(c->value, name, value)
	{
		const struct nc_place at = {.parent = c->at, .key = name};
		struct nc_request_secret *secret = &secrets->secret[secrets->count++];
		const struct nc_cursor member = {.reading = c->reading, .at = &at, .value = value};

		*secret = (struct nc_request_secret){
			.name = name, .header = "Authorization", .mask = true, .source = value};
		if (!is_variable(name))
			nc_refuse_name(c, name, "letters, digits and '_', no digit first");
		nc_read_members(&member, secret_rules, secret);
		check_secret(&member, secret);
	}
}

void nc_request_network_done(struct nc_request_network *network)
{
	nc_freep(&network->allow.words);
	nc_freep(&network->secrets.secret);
}

void nc_read_limits(const struct nc_cursor *c)
{
	nc_read_members(c, limit_rules, c->target);
}

#define STEP(key, reader, member)                                                                  \
	{                                                                                          \
		.name = (key), .read = (reader),                                                   \
		.offset = offsetof(struct nc_request_step, member)                                 \
	}

static const struct nc_rule step_rules[] = {
	STEP("name", read_step_name, name),
	STEP("language", read_language, language),
	STEP("file", read_file_name, file),
	{.name = "code", .read = read_code},
	STEP("inputs", read_inputs, inputs),
	STEP("args", read_args, args),
	STEP("env", nc_read_env, env),
	{.name = "timeout",
		.read = nc_read_milli,
		.offset = offsetof(struct nc_request_step, wall_ms),
		.min = 1,
		.max = TIME_MAX_MS},
	{0},
};

static void step_init(struct nc_request_step *step)
{
	*step = (struct nc_request_step){.name = "", .file = "", .language = NC_LANGUAGE_INVALID};
}

static void read_step(const struct nc_cursor *c)
{
	struct nc_request *request = c->target;
	struct nc_request_step *step = &request->step[request->n_steps++];

	step_init(step);
	nc_read_members(c, step_rules, step);
	if (json_is_object(c->value) && !json_object_get(c->value, "code"))
		nc_fault(c, "found no 'code', expected some");
	for (size_t i = 0; step->name[0] && i + 1 < request->n_steps; i++)
		if (nc_streq(request->step[i].name, step->name))
			nc_fault(c, "found the name '%s' of step %zu again, expected another",
				step->name, i);
}

static void read_steps(const struct nc_cursor *c)
{
	struct nc_request *request = c->target;
	size_t count = json_array_size(c->value), index;
	json_t *value;

	request->is_workflow = true;
	if (!json_is_array(c->value)) {
		nc_refuse(c, "a list of steps");
		return;
	}
	if (count == 0 || count > NC_REQUEST_STEPS_MAX) {
		nc_fault(c, "found %zu steps, expected 1 to %u", count, NC_REQUEST_STEPS_MAX);
		return;
	}
	json_array_foreach(c->value, index, value)
	{
		const struct nc_place at = {.parent = c->at, .index = index};
		const struct nc_cursor element = {
			.reading = c->reading, .at = &at, .value = value, .target = request};

		read_step(&element);
	}
}

#define FIELD(key, reader, member)                                                                 \
	{                                                                                          \
		.name = (key), .read = (reader), .offset = offsetof(struct draft, request.member)  \
	}
#define SINGLE(key, reader, member)                                                                \
	{                                                                                          \
		.name = (key), .read = (reader), .offset = offsetof(struct draft, single.member),  \
		.single = true                                                                     \
	}

static const struct nc_rule request_rules[] = {
	{.name = "language",
		.read = read_language,
		.offset = offsetof(struct draft, single.language)},
	{.name = "code", .read = read_code, .offset = offsetof(struct draft, single)},
	SINGLE("file", read_file_name, file),
	SINGLE("inputs", read_inputs, inputs),
	SINGLE("args", read_args, args),
	{.name = "timeout",
		.read = nc_read_milli,
		.offset = offsetof(struct draft, timeout),
		.min = 1,
		.max = TIME_MAX_MS},
	FIELD("network_access", nc_read_bool, network.access),
	FIELD("network", nc_read_network, network),
	FIELD("secrets", nc_read_secrets, network.secrets),
	FIELD("packages", read_packages, packages),
	FIELD("files", read_files, files),
	FIELD("env", nc_read_env, env),
	FIELD("tier", nc_read_tier, tier),
	FIELD("user", read_user, as_root),
	FIELD("writable_root", nc_read_bool, writable_root),
	FIELD("limits", nc_read_limits, limits),
	FIELD("binds", nc_read_binds, binds),
	FIELD("capture", read_capture, capture),
	FIELD("policy", nc_read_policy, policy),
	FIELD("cache", nc_read_bool, cache),
	FIELD("stream", nc_read_bool, stream),
	FIELD("id", nc_read_id, id),
	FIELD("labels", nc_read_labels, labels),
	FIELD("tenant", nc_read_id, tenant),
	{.name = "priority",
		.read = nc_read_priority,
		.offset = offsetof(struct draft, request.priority),
		.max = 9},
	{.name = "steps", .read = read_steps, .offset = offsetof(struct draft, request)},
	{0},
};

/* What no single value tells: members that exclude or need each other. */
static void check_together(const struct nc_cursor *c)
{
	struct draft *draft = c->target;
	struct nc_request_limit *wall = &draft->request.limits.wall_ms;
	const struct nc_place timeout = {.key = "timeout"};
	bool code = json_object_get(c->value, "code"), steps = json_object_get(c->value, "steps");

	if (code == steps)
		nc_fault(c, "found %s, expected one of 'code' and 'steps'",
			code ? "both 'code' and 'steps'" : "neither 'code' nor 'steps'");
	for (const struct nc_rule *rule = request_rules; steps && !code && rule->name; rule++) {
		const struct nc_place at = {.key = rule->name};

		if (rule->single && json_object_get(c->value, rule->name))
			nc_faults_add(c->reading->faults, &at,
				"found beside 'steps', expected in each step");
	}
	if (draft->timeout.given && wall->given && draft->timeout.value != wall->value)
		nc_faults_add(c->reading->faults, &timeout,
			"found %g beside %g in limits.execution_time_seconds, expected one of "
			"them",
			(double)draft->timeout.value / 1000, (double)wall->value / 1000);
	if (draft->timeout.given)
		*wall = draft->timeout;
}

static void step_done(struct nc_request_step *step)
{
	nc_freep(&step->inputs.words);
	nc_freep(&step->args.words);
	nc_freep(&step->env.pair);
}

void nc_request_done(struct nc_request *request)
{
	for (size_t i = 0; i < NC_REQUEST_STEPS_MAX; i++)
		step_done(&request->step[i]);
	for (size_t i = 0; i < request->files.count; i++)
		free(request->files.file[i].decoded);
	nc_freep(&request->files.file);
	nc_freep(&request->env.pair);
	nc_freep(&request->labels.pair);
	nc_freep(&request->packages.words);
	nc_freep(&request->binds.words);
	nc_freep(&request->capture.words);
	nc_request_network_done(&request->network);
	nc_cuts_free(request->cuts);
	json_decref(request->source);
	*request = (struct nc_request){0};
}

static void draft_done(struct draft *draft)
{
	step_done(&draft->single);
	nc_request_done(&draft->request);
}

/* Lists that were not given are empty, not NULL: callers walk to the last NULL. */
static void fill_words(const struct nc_cursor *c, struct nc_request_words *words)
{
	if (!words->words)
		words->words = nc_read_allocate(c, 0, sizeof(*words->words));
}

static void complete(const struct nc_cursor *c)
{
	struct draft *draft = c->target;
	struct nc_request *request = &draft->request;

	if (!request->is_workflow) {
		request->step[request->n_steps++] = draft->single;
		draft->single = (struct nc_request_step){0};
	}
	for (size_t i = 0; i < request->n_steps; i++) {
		struct nc_request_step *step = &request->step[i];

		if (request->is_workflow && step->language < 0)
			step->language = draft->single.language;
		fill_words(c, &step->inputs);
		fill_words(c, &step->args);
	}
	fill_words(c, &request->packages);
	fill_words(c, &request->binds);
	fill_words(c, &request->capture);
}

/* The whole as JSON, within the maxima that jansson does not have. */
static int load(const char *json, size_t size, const char *of_what, json_t **ret_value,
	struct nc_faults *faults)
{
	struct nacre_err err = {0};
	size_t values;
	int r;

	if (size > NC_REQUEST_SIZE_MAX) {
		nc_faults_add(faults, NULL, "found %zu bytes, expected at most %u", size,
			NC_REQUEST_SIZE_MAX);
		return -EINVAL;
	}
	values = nc_json_count(json, size);
	if (values > NC_REQUEST_VALUES_MAX) {
		nc_faults_add(faults, NULL, "found about %zu values, expected at most %u", values,
			NC_REQUEST_VALUES_MAX);
		return -EINVAL;
	}
	r = nc_json_parse(json, size, ret_value, &err);
	if (r < 0)
		nc_faults_add(faults, NULL, "%s%s", err.message, of_what);
	return r;
}

static int read_request(json_t *source, struct nc_cuts *cuts, struct nc_request *ret_request,
	struct nc_faults *faults)
{
	nc_cleanup(draft_done) struct draft draft = {.request = {.source = source,
							     .cuts = cuts,
							     .tier = NC_TIER_MAX,
							     .priority = NC_REQUEST_PRIORITY}};
	struct nc_reading reading = {.faults = faults, .cuts = cuts};
	struct nc_cursor whole = {.reading = &reading, .target = &draft};

	step_init(&draft.single);
	whole.value = source;
	nc_read_members(&whole, request_rules, &draft);
	if (json_is_object(whole.value))
		check_together(&whole);
	if (reading.error == 0 && faults->count == 0)
		complete(&whole);
	if (reading.error < 0)
		return reading.error;
	if (faults->count > 0)
		return -EINVAL;
	*ret_request = draft.request;
	draft.request = (struct nc_request){0};
	return 0;
}

int nc_request_read(json_t *source, struct nc_request *ret_request, struct nc_faults *faults)
{
	return read_request(source, NULL, ret_request, faults);
}

int nc_request_parse(
	const char *json, size_t size, struct nc_request *ret_request, struct nc_faults *faults)
{
	json_t *source = NULL;
	int r = load(json, size, "", &source, faults);

	return r < 0 ? r : nc_request_read(source, ret_request, faults);
}

int nc_request_parse_file(
	int fd, size_t size, struct nc_request *ret_request, struct nc_faults *faults)
{
	nc_buf_cleanup struct nc_buf rest = {.max = NC_REQUEST_REST_MAX, .wipes = true};
	cleanup_cuts struct nc_cuts *cuts = NULL;
	json_t *source = NULL;
	int r = nc_cuts_make(fd, size, &cuts, &rest);

	if (r == -EFBIG) {
		nc_faults_add(faults, NULL, "found more than %u bytes beside the contents of files",
			NC_REQUEST_REST_MAX);
		return -EINVAL;
	}
	if (r == 0)
		r = load(nc_buf_text(&rest), rest.size,
			cuts->count > 0 ? " (without the contents of files)" : "", &source, faults);
	nc_buf_done(&rest);
	if (r == 0 && json_object_get(source, "secrets")) {
		r = nc_cuts_blank(cuts, size);
		if (r < 0)
			json_decref(source);
	}
	return r < 0 ? r : read_request(source, take_ptr(cuts), ret_request, faults);
}
