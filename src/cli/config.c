/* nacre config: check and show the configuration. */
#include <errno.h>
#include <inttypes.h>

#include "base/json.h"
#include "base/say.h"
#include "cli/policies.h"

static bool arg_json;

static const struct nc_option options[] = {
	{.name = "json", .help = "Print one JSON object", .flag = &arg_json},
	{0},
};

/* Reads every file, not only up to the first fault; faults is a list to append messages to. */
static int read_files(struct nc_config *config, const char *dir, json_t *faults)
{
	struct nacre_err fault = {0};
	int r = nc_config_init(config, dir, &fault);

	if (r < 0)
		return json_array_append_new(faults, json_string(fault.message)) < 0 ? -ENOMEM : 0;
	for (enum nc_config_file file = 0; file < NC_CONFIG_FILE_COUNT; file++) {
		r = nc_config_read(config, file, &fault);
		if (r < 0 && json_array_append_new(faults,
				     nc_json_text(fault.message, strlen(fault.message))) < 0)
			return -ENOMEM;
	}
	return 0;
}

static void print_check(const struct nc_config *config, const json_t *faults)
{
	for (size_t i = 0; i < json_array_size(faults); i++)
		nc_say(stderr, "%s\n", json_string_value(json_array_get(faults, i)));
	if (json_array_size(faults) > 0)
		return;
	nc_say(stdout, "Configuration is good: %s\n",
		config->dir ? config->dir : "built-in values");
	for (enum nc_config_file file = 0; config->dir && file < NC_CONFIG_FILE_COUNT; file++)
		nc_say(stdout, "  %-24s %s\n", nc_config_file_names[file],
			config->found[file] ? "read" : "not there, built-in values");
}

static int run_check(const struct nc_cli *cli, int n_words, char **words, struct nacre_err *err)
{
	cleanup_config struct nc_config config = {0};
	cleanup_json json_t *faults = json_array();
	size_t n_faults;
	int r;

	if (!faults)
		return nc_err_set(err, -ENOMEM, "Out of memory");
	r = read_files(&config, n_words > 0 ? words[0] : cli->config_dir, faults);
	if (r < 0)
		return nc_err_errno(err, r, "Check");
	n_faults = json_array_size(faults);
	if (arg_json) {
		r = nc_json_print(stdout,
			json_pack("{s:b, s:s?, s:O}", "ok", n_faults == 0, "dir", config.dir,
				"faults", faults),
			true);
		if (r < 0)
			return nc_err_errno(err, r, "Write the answer");
	} else {
		print_check(&config, faults);
	}
	return n_faults == 0 ? NC_EXIT_OK : NC_EXIT_FAULTS;
}

/* What show carries from leaf to leaf. */
struct show {
	const struct nc_config *config;
	enum nc_config_file file;
	json_t *values; /* NULL: print text */
};

static int show_value(
	void *context, const char *path, const struct nc_field *field, const struct nc_value *value)
{
	const struct show *at = context;
	const char *file = nc_config_file_names[at->file];
	nc_buf_cleanup struct nc_buf text = NC_BUF(4U * 1024 * 1024);

	/* what is nowhere decided has no value to show; a path may be none */
	if (!value->given && field->type != NC_FIELD_PATH && field->type != NC_FIELD_WORD)
		return 0;
	nc_value_text(field, value, &text);
	if (text.error < 0)
		return text.error;
	if (at->values) {
		json_t *entry = json_pack("{s:s, s:s, s:o*, s:s?, s:i, s:b}", "file", file, "key",
			path, "value", nc_value_json(field, value), "dir",
			value->line > 0 ? at->config->dir : NULL, "line", (int)value->line,
			"inherited", value->inherited);

		return json_array_append_new(at->values, entry) < 0 ? -ENOMEM : 0;
	}
	nc_say(stdout, "  %-46s %-12s ", path, nc_buf_text(&text));
	if (value->line > 0)
		nc_say(stdout, "line %u", value->line);
	else
		fputs("built in", stdout);
	nc_say(stdout, "%s\n", value->inherited ? ", from default_limits" : "");
	return 0;
}

static int run_show(const struct nc_cli *cli, int n_words, char **words, struct nacre_err *err)
{
	cleanup_json json_t *values = arg_json ? json_array() : NULL;
	const struct nc_config *config = cli->config;
	int r = 0;

	(void)n_words;
	(void)words;
	if (arg_json && !values)
		return nc_err_set(err, -ENOMEM, "Out of memory");
	for (enum nc_config_file file = 0; r == 0 && file < NC_CONFIG_FILE_COUNT; file++) {
		struct show at = {.config = config, .file = file, .values = values};

		if (!arg_json)
			nc_say(stdout, "%s%s%s%s\n", config->found[file] ? config->dir : "",
				config->found[file] ? "/" : "", nc_config_file_names[file],
				config->found[file] ? "" : " (not there, built-in values)");
		r = nc_schema_visit(
			nc_config_fields(file), nc_config_values(config, file), show_value, &at);
	}
	if (r == 0 && arg_json)
		r = nc_json_print(stdout,
			json_pack("{s:s?, s:O}", "dir", config->dir, "values", values), true);
	return r < 0 ? nc_err_errno(err, r, "Show the configuration") : NC_EXIT_OK;
}

static const struct nc_verb check = {
	.name = "check",
	.summary = "Check the configuration files",
	.arguments = "[DIR]",
	.details = "Reads all configuration files of DIR, or of the directory that would be used,\n"
		   "and prints the first fault of each. Exits with 1 if there is any.",
	.example = "nacre config check ./config",
	.options = options,
	.max_words = 1,
	.without_config = true,
	.run = run_check,
};

static const struct nc_verb show = {
	.name = "show",
	.summary = "Show every effective value and where it came from",
	.arguments = "",
	.details =
		"Prints each key with its value and its origin: a line of the file, the built-in\n"
		"value, or default_limits from which a language took it over.",
	.example = "nacre config show --json",
	.options = options,
	.run = run_show,
};

static const struct nc_verb *const verbs[] = {&check, &show, NULL};

const struct nc_verb nc_verb_config = {
	.name = "config",
	.summary = "Check or show the configuration",
	.arguments = "VERB",
	.details = "Nacre reads nacre.yaml, resource_limits.yaml, security_policies.yaml and\n"
		   "serve.yaml from one directory: --config DIR, else /etc/nacre, else\n"
		   "~/.config/nacre. None is needed.",
	.example = "nacre config show --json",
	.verbs = verbs,
	.without_config = true,
};
