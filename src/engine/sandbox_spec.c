/* What is asked of sandboxes and their commands, read from JSON. */
#include "engine/sandbox_spec.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "kernel/boxwire.h"

static void read_image(const struct nc_cursor *c)
{
	const char *name = nc_read_name(c);

	if (name)
		memcpy(c->target, name, strlen(name) + 1);
}

static void read_user(const struct nc_cursor *c)
{
	const char *text = nc_read_text(c);

	if (!text)
		return;
	if (!*text || strlen(text) > NC_BOX_USER_MAX || strpbrk(text, ":\n"))
		nc_refuse(c, "a user of the sandbox by name or number, such as root");
	else
		memcpy(c->target, text, strlen(text) + 1);
}

/* A text is for the shell, a list is a program and its arguments. */
static void read_command(const struct nc_cursor *c)
{
	static const struct nc_list list = {
		.noun = "words", .count_max = NC_REQUEST_ARGS_MAX, .size_max = NC_COMMAND_SIZE_MAX};
	struct nc_process_spec *spec = c->target;
	struct nc_cursor words = *c;
	const char *text;

	words.target = &spec->command;
	if (json_is_array(c->value)) {
		nc_read_words(&words, &list);
		if (spec->command.count == 0)
			nc_refuse(c, "a command");
		return;
	}
	text = nc_read_text(c);
	if (!text)
		return;
	if (!*text || strlen(text) > NC_COMMAND_SIZE_MAX) {
		nc_refuse(c, "a command, or shorter: long ones go into a file first");
		return;
	}
	spec->shell = true;
	spec->command.words = nc_read_allocate(c, 1, sizeof(*spec->command.words));
	if (!spec->command.words)
		return;
	spec->command.words[0] = text;
	spec->command.count = 1;
}

static void read_dir(const struct nc_cursor *c)
{
	const char *text = nc_read_text(c);

	if (!text)
		return;
	if (text[0] != '/' || strlen(text) > NC_BOX_DIR_MAX)
		nc_refuse(c, "an absolute path of at most 255 bytes");
	*(const char **)c->target = text;
}

static void read_input(const struct nc_cursor *c)
{
	*(const char **)c->target = nc_read_text(c);
}

#define SANDBOX(key, reader, member)                                                               \
	{                                                                                          \
		.name = (key), .read = (reader),                                                   \
		.offset = offsetof(struct nc_sandbox_spec, member)                                 \
	}
#define PROCESS(key, reader, member)                                                               \
	{                                                                                          \
		.name = (key), .read = (reader),                                                   \
		.offset = offsetof(struct nc_process_spec, member)                                 \
	}

static const struct nc_rule sandbox_rules[] = {
	SANDBOX("policy", nc_read_policy, policy),
	SANDBOX("tier", nc_read_tier, tier),
	SANDBOX("image", read_image, image),
	SANDBOX("user", read_user, user),
	SANDBOX("writable_root", nc_read_bool, writable_root),
	SANDBOX("binds", nc_read_binds, binds),
	SANDBOX("snapshot", read_image, snapshot),
	SANDBOX("env", nc_read_env, env),
	SANDBOX("labels", nc_read_labels, labels),
	SANDBOX("limits", nc_read_limits, limits),
	SANDBOX("network_access", nc_read_bool, network.access),
	SANDBOX("network", nc_read_network, network),
	SANDBOX("secrets", nc_read_secrets, network.secrets),
	{.name = "timeout",
		.read = nc_read_milli,
		.offset = offsetof(struct nc_sandbox_spec, life_ms),
		.min = 1000,
		.max = NC_SANDBOX_LIFE_MAX_MS},
	{.name = "idle_timeout",
		.read = nc_read_milli,
		.offset = offsetof(struct nc_sandbox_spec, idle_ms),
		.min = 1000,
		.max = NC_SANDBOX_LIFE_MAX_MS},
	{0},
};

static const struct nc_rule process_rules[] = {
	{.name = "command", .read = read_command},
	PROCESS("env", nc_read_env, env),
	PROCESS("dir", read_dir, dir),
	PROCESS("user", read_user, user),
	PROCESS("input", read_input, input),
	PROCESS("terminal", nc_read_bool, terminal),
	PROCESS("background", nc_read_bool, background),
	PROCESS("keep_input", nc_read_bool, keeps_input),
	{.name = "timeout",
		.read = nc_read_milli,
		.offset = offsetof(struct nc_process_spec, wall_ms),
		.min = 1,
		.max = NC_SANDBOX_LIFE_MAX_MS},
	{.name = "rows",
		.read = nc_read_whole,
		.offset = offsetof(struct nc_process_spec, rows),
		.min = 1,
		.max = 1000,
		.unit = 1},
	{.name = "columns",
		.read = nc_read_whole,
		.offset = offsetof(struct nc_process_spec, columns),
		.min = 1,
		.max = 1000,
		.unit = 1},
	{0},
};

static int result_of(const struct nc_reading *reading)
{
	return reading->error < 0 ? reading->error : reading->faults->count > 0 ? -EINVAL : 0;
}

int nc_sandbox_spec_read(json_t *source, struct nc_sandbox_spec *ret_spec, struct nc_faults *faults)
{
	cleanup_sandbox_spec struct nc_sandbox_spec spec = {.source = source};
	struct nc_reading reading = {.faults = faults};
	const struct nc_cursor whole = {.reading = &reading, .value = source, .target = &spec};
	int r;

	nc_read_members(&whole, sandbox_rules, &spec);
	r = result_of(&reading);
	if (r < 0)
		return r;
	*ret_spec = spec;
	spec = (struct nc_sandbox_spec){0};
	return 0;
}

int nc_sandbox_network_read(
	json_t *source, struct nc_request_network *ret_network, struct nc_faults *faults)
{
	struct nc_reading reading = {.faults = faults};
	const struct nc_cursor whole = {
		.reading = &reading, .value = source, .target = ret_network};
	int r;

	nc_read_network(&whole);
	r = result_of(&reading);
	if (r < 0)
		nc_request_network_done(ret_network);
	return r;
}

void nc_sandbox_spec_done(struct nc_sandbox_spec *spec)
{
	nc_freep(&spec->binds.words);
	nc_freep(&spec->env.pair);
	nc_freep(&spec->labels.pair);
	nc_request_network_done(&spec->network);
	json_decref(spec->source);
	spec->source = NULL;
}

int nc_process_spec_read(json_t *source, struct nc_process_spec *ret_spec, struct nc_faults *faults)
{
	cleanup_process_spec struct nc_process_spec spec = {.source = source};
	struct nc_reading reading = {.faults = faults};
	const struct nc_cursor whole = {.reading = &reading, .value = source, .target = &spec};
	int r;

	nc_read_members(&whole, process_rules, &spec);
	if (json_is_object(source) && !json_object_get(source, "command"))
		nc_fault(&whole, "found no 'command', expected one");
	r = result_of(&reading);
	if (r < 0)
		return r;
	*ret_spec = spec;
	spec = (struct nc_process_spec){0};
	return 0;
}

void nc_process_spec_done(struct nc_process_spec *spec)
{
	nc_freep(&spec->command.words);
	nc_freep(&spec->env.pair);
	json_decref(spec->source);
	spec->source = NULL;
}
