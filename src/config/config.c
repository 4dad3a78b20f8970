/* The configuration: tables of the three files, the search for them, the order of precedence. */
#include "config/config.h"

#include <assert.h>
#include <string.h>
#include <sys/stat.h>

#include "base/limits.h"
#include "base/log.h"
#include "base/text.h"
#include "config/host.h"

#define SYSTEM_DIR "/etc/nacre"

#define GROUP(struct_name, member, key, table)                                                     \
	{                                                                                          \
		.name = (key), .type = NC_FIELD_GROUP,                                             \
		.offset = offsetof(struct struct_name, member), .fields = (table)                  \
	}
#define END                                                                                        \
	{                                                                                          \
		.type = NC_FIELD_END                                                               \
	}

static const char *const color_names[] = {"auto", "always", "never", NULL};

static const struct nc_field log_fields[] = {
	{.name = "level",
		.type = NC_FIELD_CHOICE,
		.offset = offsetof(struct nc_main_config, log.level) -
			  offsetof(struct nc_main_config, log),
		.preset = "warning",
		.choices = nc_log_level_names},
	{.name = "format",
		.type = NC_FIELD_CHOICE,
		.offset = offsetof(struct nc_main_config, log.format) -
			  offsetof(struct nc_main_config, log),
		.preset = "auto",
		.choices = nc_log_format_names},
	END,
};

#define KEPT(member, built_in, most)                                                               \
	{                                                                                          \
		.name = #member, .type = NC_FIELD_WHOLE,                                           \
		.offset = offsetof(struct nc_history_config, member), .preset = (built_in),        \
		.min = 0, .max = (most)                                                            \
	}

static const struct nc_field history_fields[] = {
	KEPT(blobs_mb, "1024", 1024 * 1024),
	KEPT(journal_mb, "1024", 1024 * 1024),
	KEPT(days, "90", 36500),
	END,
};

/* Groups with one member: it begins where they do. */
static const struct nc_field environments_fields[] = {
	{.name = "max_mb", .type = NC_FIELD_WHOLE, .preset = "8192", .min = 1, .max = 1024 * 1024},
	END,
};
#define PACKAGES_FIELDS(directory, urls)                                                           \
	{.name = (directory), .type = NC_FIELD_PATH},                                              \
		{.name = (urls),                                                                   \
			.type = NC_FIELD_LIST,                                                     \
			.offset = offsetof(struct nc_packages_config, index),                      \
			.is_word = nc_url_is_index,                                                \
			.expected = "http://HOST[:PORT]/... or https://..."},                      \
		{.name = "hosts",                                                                  \
			.type = NC_FIELD_LIST,                                                     \
			.offset = offsetof(struct nc_packages_config, hosts),                      \
			.is_word = nc_host_is_pattern,                                             \
			.expected = NC_HOST_EXPECTED},                                             \
		END

static const struct nc_field python_packages_fields[] = {PACKAGES_FIELDS("wheels", "index")};
static const struct nc_field javascript_packages_fields[] = {
	PACKAGES_FIELDS("tarballs", "registry")};

/* Offsets inside packages count from the start of the whole file's struct. */
static const struct nc_field packages_fields[] = {
	GROUP(nc_main_config, packages.python, "python", python_packages_fields),
	GROUP(nc_main_config, packages.javascript, "javascript", javascript_packages_fields),
	END,
};

static const struct nc_field main_fields[] = {
	GROUP(nc_main_config, log, "log", log_fields),
	{.name = "color",
		.type = NC_FIELD_CHOICE,
		.offset = offsetof(struct nc_main_config, color),
		.preset = "auto",
		.choices = color_names},
	GROUP(nc_main_config, history, "history", history_fields),
	GROUP(nc_main_config, environments, "environments", environments_fields),
	{.name = "packages", .type = NC_FIELD_GROUP, .fields = packages_fields},
	END,
};

#define LIMIT(member, kind, built_in, least, most)                                                 \
	{                                                                                          \
		.name = #member, .type = (kind),                                                   \
		.offset = offsetof(struct nc_limit_values, member), .preset = (built_in),          \
		.min = (least), .max = (most)                                                      \
	}

/* The maxima keep a mistyped zero from becoming a promise that no machine can hold. */
#define LIMITS(memory, cores, seconds, processes, disk)                                            \
	{                                                                                          \
		LIMIT(memory_mb, NC_FIELD_WHOLE, memory, 8, 1024 * 1024),                          \
			LIMIT(cpu_cores, NC_FIELD_MILLI, cores, 10, 1024 * 1000),                  \
			LIMIT(execution_time_seconds, NC_FIELD_WHOLE, seconds, 1, 7 * 86400),      \
			LIMIT(max_processes, NC_FIELD_WHOLE, processes, 1, 32768),                 \
			LIMIT(disk_mb, NC_FIELD_WHOLE, disk, 1, 1024 * 1024), END,                 \
	}

static const struct nc_field default_limit_fields[] = LIMITS("512", "1", "30", "5", "100");
static const struct nc_field python_limit_fields[] = LIMITS("512", NULL, "30", NULL, NULL);
static const struct nc_field javascript_limit_fields[] = LIMITS("256", NULL, "15", NULL, NULL);
static const struct nc_field shell_limit_fields[] = LIMITS("128", NULL, "10", NULL, NULL);
const struct nc_field nc_limit_fields[] = LIMITS(NULL, NULL, NULL, NULL, NULL);

#define LANGUAGE(struct_name, index, key, table) GROUP(struct_name, language[index], key, table)

/* Offsets inside language_specific count from the start of the whole file's struct. */
static const struct nc_field language_limit_fields[] = {
	LANGUAGE(nc_limits_config, NC_PYTHON, "python", python_limit_fields),
	LANGUAGE(nc_limits_config, NC_JAVASCRIPT, "javascript", javascript_limit_fields),
	LANGUAGE(nc_limits_config, NC_TYPESCRIPT, "typescript", javascript_limit_fields),
	LANGUAGE(nc_limits_config, NC_SHELL, "shell", shell_limit_fields),
	LANGUAGE(nc_limits_config, NC_GO, "go", nc_limit_fields),
	LANGUAGE(nc_limits_config, NC_RUST, "rust", nc_limit_fields),
	LANGUAGE(nc_limits_config, NC_C, "c", nc_limit_fields),
	LANGUAGE(nc_limits_config, NC_CPP, "cpp", nc_limit_fields),
	END,
};

static const struct nc_field limits_fields[] = {
	GROUP(nc_limits_config, default_limits, "default_limits", default_limit_fields),
	{.name = "language_specific", .type = NC_FIELD_GROUP, .fields = language_limit_fields},
	END,
};

const char *const nc_alert_kind_names[] = {"security", "performance", "capacity", "error", NULL};
const char *const nc_alert_measure_names[] = {"denials", "threats", "auth_failures",
	"start_seconds", "queue_seconds", "queue", "running_percent", "memory_percent",
	"disk_percent", "errors", NULL};
_Static_assert(sizeof(nc_alert_measure_names) / sizeof(char *) == NC_MEASURE_MAX + 1, "measures");

#define QUOTA(member)                                                                              \
	{                                                                                          \
		.name = #member, .type = NC_FIELD_WHOLE,                                           \
		.offset = offsetof(struct nc_quota_values, member), .preset = "0", .min = 0,       \
		.max = 1000000000                                                                  \
	}

static const struct nc_field quota_fields[] = {
	QUOTA(executions),
	QUOTA(requests_per_minute),
	QUOTA(cpu_seconds_per_hour),
	QUOTA(memory_mb),
	QUOTA(disk_mb),
	QUOTA(storage_mb),
	END,
};

#define ALERT(member, ...)                                                                         \
	{                                                                                          \
		.name = #member, .offset = offsetof(struct nc_alert_values, member), __VA_ARGS__   \
	}

static const struct nc_field alert_rule_fields[] = {
	ALERT(kind, .type = NC_FIELD_CHOICE, .preset = "error", .choices = nc_alert_kind_names),
	ALERT(measure, .type = NC_FIELD_CHOICE, .preset = "errors",
		.choices = nc_alert_measure_names),
	ALERT(above, .type = NC_FIELD_MILLI, .preset = "0", .max = 1000000000000),
	ALERT(for_seconds, .type = NC_FIELD_WHOLE, .preset = "0", .max = 86400),
	END,
};

static bool is_address(const char *text)
{
	return strncmp(text, "http://", 7) == 0 || strncmp(text, "https://", 8) == 0;
}

/* Of a request to somebody else's server, so that it can end none and begin none. */
static bool is_header(const char *text)
{
	size_t name = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				   "0123456789-_");

	if (name == 0 || text[name] != ':' || text[name + 1] != ' ' || strlen(text) > 1024)
		return false;
	for (const char *at = text; *at; at++)
		if (*at < ' ' || *at > '~')
			return false;
	return true;
}

/* Of Python, with those that it is in. */
static bool is_module(const char *text)
{
	size_t size =
		strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.");

	return size > 0 && size <= 100 && !text[size];
}

#define TRACING(member, ...)                                                                       \
	{                                                                                          \
		.name = #member, .offset = offsetof(struct nc_tracing_values, member), __VA_ARGS__ \
	}

static const struct nc_field tracing_fields[] = {
	TRACING(endpoint, .type = NC_FIELD_WORD, .is_word = is_address,
		.expected = "an address such as http://127.0.0.1:4318/v1/traces"),
	TRACING(headers, .type = NC_FIELD_LIST, .is_word = is_header,
		.expected = "'Name: value', printable, at most 1024 bytes"),
	TRACING(sample, .type = NC_FIELD_MILLI, .preset = "1", .max = 1000),
	END,
};

static const char *const warm_names[NC_WARM_MAX + 1] = {
	[NC_WARM_INTERPRETERS] = "interpreters",
	[NC_WARM_BOXES] = "boxes",
	[NC_WARM_NOTHING] = "nothing",
};

static bool is_absolute(const char *text)
{
	return text[0] == '/' && strlen(text) <= NC_PATH_MAX;
}

static const char *const bind_modes[NC_BIND_MODE_MAX + 1] = {
	[NC_BIND_RO] = "ro",
	[NC_BIND_RW] = "rw",
};

#define BIND(member, ...)                                                                          \
	{                                                                                          \
		.name = #member, .offset = offsetof(struct nc_bind_values, member), __VA_ARGS__    \
	}

static const struct nc_field bind_fields[] = {
	BIND(path, .type = NC_FIELD_WORD, .is_word = is_absolute, .expected = "an absolute path"),
	BIND(target, .type = NC_FIELD_WORD, .is_word = is_absolute, .expected = "an absolute path"),
	BIND(mode, .type = NC_FIELD_CHOICE, .preset = "ro", .choices = bind_modes),
	END,
};

#define SERVE(member, ...)                                                                         \
	{                                                                                          \
		.name = #member, .offset = offsetof(struct nc_serve_config, member), __VA_ARGS__   \
	}

static const struct nc_field serve_fields[] = {
	SERVE(allowed_origins, .type = NC_FIELD_LIST),
	SERVE(binds, .type = NC_FIELD_MAP, .fields = bind_fields,
		.size = sizeof(struct nc_bind_values), .is_word = nc_policy_is_tenant,
		.expected = "a name: " NC_POLICY_NAME_EXPECTED),
	SERVE(webhooks, .type = NC_FIELD_LIST, .is_word = is_address,
		.expected = "an address such as https://example.org/hook"),
	SERVE(tracing, .type = NC_FIELD_GROUP, .fields = tracing_fields),
	SERVE(drain_seconds, .type = NC_FIELD_WHOLE, .preset = "30", .max = 3600),
	SERVE(warm, .type = NC_FIELD_CHOICE, .preset = "interpreters", .choices = warm_names),
	SERVE(preload, .type = NC_FIELD_LIST, .is_word = is_module,
		.expected = "the name of a Python module"),
	SERVE(quotas, .type = NC_FIELD_GROUP, .fields = quota_fields),
	SERVE(tenants, .type = NC_FIELD_MAP, .fields = quota_fields,
		.size = sizeof(struct nc_quota_values), .is_word = nc_policy_is_tenant,
		.expected = "the name of a tenant: " NC_POLICY_NAME_EXPECTED),
	SERVE(alerts, .type = NC_FIELD_MAP, .fields = alert_rule_fields,
		.size = sizeof(struct nc_alert_values), .is_word = nc_policy_is_tenant,
		.expected = "the name of an alert: " NC_POLICY_NAME_EXPECTED),
	END,
};

const char *const nc_config_file_names[NC_CONFIG_FILE_COUNT] = {
	[NC_CONFIG_MAIN] = "nacre.yaml",
	[NC_CONFIG_LIMITS] = "resource_limits.yaml",
	[NC_CONFIG_POLICIES] = "security_policies.yaml",
	[NC_CONFIG_SERVE] = "serve.yaml",
};

static const struct {
	const struct nc_field *fields;
	size_t offset;
} files[NC_CONFIG_FILE_COUNT] = {
	[NC_CONFIG_MAIN] = {main_fields, offsetof(struct nc_config, main)},
	[NC_CONFIG_LIMITS] = {limits_fields, offsetof(struct nc_config, limits)},
	[NC_CONFIG_POLICIES] = {nc_policy_file_fields, offsetof(struct nc_config, policies)},
	[NC_CONFIG_SERVE] = {serve_fields, offsetof(struct nc_config, serve)},
};

const struct nc_field *nc_config_fields(enum nc_config_file file)
{
	return files[file].fields;
}

const void *nc_config_values(const struct nc_config *config, enum nc_config_file file)
{
	return (const char *)config + files[file].offset;
}

static bool is_directory(const char *path)
{
	struct stat status;

	return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* The user's configuration directory, or NULL with 0 when the environment names none. */
static int user_dir(char **ret_dir)
{
	const char *base = secure_getenv("XDG_CONFIG_HOME");
	const char *below = "";
	int r;

	/* the specification says: a relative path there is to be ignored */
	if (!base || base[0] != '/') {
		base = secure_getenv("HOME");
		below = "/.config";
	}
	if (!base || base[0] != '/')
		return 0;
	r = asprintf(ret_dir, "%s%s/nacre", base, below);
	if (r < 0) {
		*ret_dir = NULL;
		return -ENOMEM;
	}
	return 0;
}

static int find_dir(const char *wanted, char **ret_dir, struct nacre_err *err)
{
	cleanup_free char *user = NULL;
	const char *dir = wanted;
	char quoted[NC_TEXT_QUOTED_MAX];

	if (wanted && !is_directory(wanted))
		return nc_err_set(err, -ENOTDIR, "Configuration directory %s: no such directory",
			nc_text_quote(quoted, wanted));
	if (!dir && is_directory(SYSTEM_DIR))
		dir = SYSTEM_DIR;
	if (!dir) {
		if (user_dir(&user) < 0)
			return nc_err_set(err, -ENOMEM, "Out of memory");
		if (user && is_directory(user))
			dir = user;
	}
	*ret_dir = NULL;
	if (!dir)
		return 0;
	*ret_dir = strdup(dir);
	return *ret_dir ? 0 : nc_err_set(err, -ENOMEM, "Out of memory");
}

int nc_config_init(struct nc_config *config, const char *dir, struct nacre_err *err)
{
	*config = (struct nc_config){0};
	for (size_t i = 0; i < NC_CONFIG_FILE_COUNT; i++)
		nc_schema_preset(files[i].fields, (char *)config + files[i].offset);
	return find_dir(dir, &config->dir, err);
}

/* Fills what the file left open for a language; see struct nc_limits_config. */
static void inherit_limits(struct nc_limits_config *limits)
{
	for (size_t i = 0; i < NC_LANGUAGE_MAX; i++) {
		for (const struct nc_field *field = default_limit_fields;
			field->type != NC_FIELD_END; field++) {
			const struct nc_value *general =
				(const void *)((const char *)&limits->default_limits +
					       field->offset);
			struct nc_value *own =
				(void *)((char *)&limits->language[i] + field->offset);

			if (own->line > 0 || (own->given && general->line == 0))
				continue;
			*own = *general;
			own->inherited = true;
		}
	}
}

int nc_config_read(struct nc_config *config, enum nc_config_file file, struct nacre_err *err)
{
	cleanup_free char *path = NULL;
	int r = -ENOENT;

	if (config->dir) {
		if (asprintf(&path, "%s/%s", config->dir, nc_config_file_names[file]) < 0) {
			path = NULL; /* asprintf leaves it undefined */
			return nc_err_set(err, -ENOMEM, "Out of memory");
		}
		r = nc_schema_load(
			files[file].fields, (char *)config + files[file].offset, path, err);
	}
	if (r < 0 && r != -ENOENT)
		return r;
	config->found[file] = r == 0;
	if (file == NC_CONFIG_LIMITS)
		inherit_limits(&config->limits);
	return 0;
}

int nc_config_load(struct nc_config *config, const char *dir, struct nacre_err *err)
{
	int r = nc_config_init(config, dir, err);

	for (enum nc_config_file file = 0; r == 0 && file < NC_CONFIG_FILE_COUNT; file++)
		r = nc_config_read(config, file, err);
	if (r < 0)
		nc_config_done(config);
	return r;
}

void nc_config_done(struct nc_config *config)
{
	for (size_t i = 0; i < NC_CONFIG_FILE_COUNT; i++)
		nc_schema_done(files[i].fields, (char *)config + files[i].offset);
	nc_freep(&config->dir);
}
