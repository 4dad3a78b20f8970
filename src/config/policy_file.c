/* The table of policy files. */
#include "config/policy_file.h"

#include <string.h>

#include "base/limits.h"
#include "config/host.h"

const char *const nc_policy_profiles[] = {"standard", "strict", "audit", NULL};
const char *const nc_policy_levels[NC_POLICY_LEVELS + 1] = {
	"low", "medium", "high", "critical", NULL};
/* the weakest tier is any tier */
const char *const nc_policy_verdicts[] = {"process", "container", "microvm", "refuse", NULL};
const char *const nc_policy_properties[NC_POLICY_PROPERTIES + 1] = {"filesystem", "identity",
	"processes", "network", "ipc", "syscalls", "access", "memory", "cpu", "pids", "disk", "io",
	"kill", "hypervisor", NULL};
const char *const nc_policy_grades[] = {"none", "reduced", "full", NULL};

static const char *const mode_names[NC_MODE_MAX + 1] = {"enforce", "audit", NULL};
static const char *const switch_names[] = {"false", "true", NULL};
static const char *const hooks_names[NC_HOOKS_MAX + 1] = {"off", "report", "enforce", NULL};

#define END                                                                                        \
	{                                                                                          \
		.type = NC_FIELD_END                                                               \
	}
#define WORDS(member)                                                                              \
	{                                                                                          \
		.name = #member, .type = NC_FIELD_LIST,                                            \
		.offset = offsetof(struct nc_language_policy, member)                              \
	}

static const struct nc_field code_fields[] = {
	WORDS(forbidden_imports),
	WORDS(forbidden_functions),
	WORDS(forbidden_patterns),
	WORDS(allowed_imports),
	WORDS(allowed_functions),
	END,
};

static const struct nc_field shell_fields[] = {
	WORDS(forbidden_commands),
	WORDS(forbidden_patterns),
	WORDS(allowed_commands),
	END,
};

/* A word of a list, in an array of values. */
#define CHOICE(key, index, words)                                                                  \
	{                                                                                          \
		.name = (key), .type = NC_FIELD_CHOICE,                                            \
		.offset = (index) * sizeof(struct nc_value), .choices = (words)                    \
	}
#define SEVERITY(rule, id) CHOICE(id, NC_RULE_##rule, nc_policy_levels),

static const struct nc_field severity_fields[] = {NC_RULE_IDS(SEVERITY) END};

static const struct nc_field risk_fields[] = {
	CHOICE("low", 0, nc_policy_verdicts),
	CHOICE("medium", 1, nc_policy_verdicts),
	CHOICE("high", 2, nc_policy_verdicts),
	CHOICE("critical", 3, nc_policy_verdicts),
	END,
};

static const char *const response_names[NC_RESPOND_MAX + 1] = {"report", "freeze", "end", NULL};

static const struct nc_field respond_fields[] = {
	CHOICE("low", 0, response_names),
	CHOICE("medium", 1, response_names),
	CHOICE("high", 2, response_names),
	CHOICE("critical", 3, response_names),
	END,
};

static const struct nc_field floor_fields[] = {
	CHOICE("filesystem", 0, nc_policy_grades),
	CHOICE("identity", 1, nc_policy_grades),
	CHOICE("processes", 2, nc_policy_grades),
	CHOICE("network", 3, nc_policy_grades),
	CHOICE("ipc", 4, nc_policy_grades),
	CHOICE("syscalls", 5, nc_policy_grades),
	CHOICE("access", 6, nc_policy_grades),
	CHOICE("memory", 7, nc_policy_grades),
	CHOICE("cpu", 8, nc_policy_grades),
	CHOICE("pids", 9, nc_policy_grades),
	CHOICE("disk", 10, nc_policy_grades),
	CHOICE("io", 11, nc_policy_grades),
	CHOICE("kill", 12, nc_policy_grades),
	CHOICE("hypervisor", 13, nc_policy_grades),
	END,
};

#define THRESHOLD(signal, id)                                                                      \
	{.name = (id),                                                                             \
		.type = NC_FIELD_WHOLE,                                                            \
		.offset = NC_SIGNAL_##signal * sizeof(struct nc_value),                            \
		.min = 0,                                                                          \
		.max = 1000000000},

static const struct nc_field alert_fields[] = {NC_SIGNAL_IDS(THRESHOLD) END};

const char *const nc_policy_overs[NC_OVER_MAX + 1] = {"refuse", "freeze", "end", NULL};

static const struct nc_field network_fields[] = {
	{.name = "allow",
		.type = NC_FIELD_LIST,
		.is_word = nc_host_is_pattern,
		.expected = NC_HOST_EXPECTED},
	{.name = "inner",
		.type = NC_FIELD_LIST,
		.offset = sizeof(struct nc_value),
		.is_word = nc_host_is_pattern,
		.expected = NC_HOST_EXPECTED},
	{.name = "over_budget",
		.type = NC_FIELD_CHOICE,
		.offset = 2 * sizeof(struct nc_value),
		.choices = nc_policy_overs},
	END,
};

static const char *const allow_names[] = {"deny", "allow", NULL};

static const struct nc_field sandbox_fields[] = {
	CHOICE("root", 0, allow_names),
	CHOICE("writable_root", 1, allow_names),
	END,
};

#define GROUP(key, base, member, table)                                                            \
	{                                                                                          \
		.name = (key), .type = NC_FIELD_GROUP,                                             \
		.offset = (base) + offsetof(struct nc_policy_values, member), .fields = (table)    \
	}
/* The same keys stand at the top of a file and below each tenant. */
#define VALUES(base)                                                                               \
	{.name = "mode",                                                                           \
		.type = NC_FIELD_CHOICE,                                                           \
		.offset = (base) + offsetof(struct nc_policy_values, mode),                        \
		.choices = mode_names},                                                            \
		{.name = "hooks",                                                                  \
			.type = NC_FIELD_CHOICE,                                                   \
			.offset = (base) + offsetof(struct nc_policy_values, hooks),               \
			.choices = hooks_names},                                                   \
		{.name = "decoys",                                                                 \
			.type = NC_FIELD_CHOICE,                                                   \
			.offset = (base) + offsetof(struct nc_policy_values, decoys),              \
			.choices = switch_names},                                                  \
		GROUP("python", base, language[NC_PYTHON], code_fields),                           \
		GROUP("javascript", base, language[NC_JAVASCRIPT], code_fields),                   \
		GROUP("typescript", base, language[NC_TYPESCRIPT], code_fields),                   \
		GROUP("shell", base, language[NC_SHELL], shell_fields),                            \
		GROUP("go", base, language[NC_GO], code_fields),                                   \
		GROUP("rust", base, language[NC_RUST], code_fields),                               \
		GROUP("c", base, language[NC_C], code_fields),                                     \
		GROUP("cpp", base, language[NC_CPP], code_fields),                                 \
		GROUP("severities", base, severity, severity_fields),                              \
		GROUP("risk", base, risk, risk_fields), GROUP("floor", base, floor, floor_fields), \
		GROUP("limits", base, limits, nc_limit_fields),                                    \
		GROUP("alerts", base, alert, alert_fields),                                        \
		GROUP("respond", base, respond, respond_fields),                                   \
		GROUP("network", base, network, network_fields),                                   \
		GROUP("sandbox", base, sandbox, sandbox_fields)

const struct nc_field nc_policy_value_fields[] = {VALUES(0), END};

bool nc_policy_is_tenant(const char *name)
{
	static const char legal[] = "._-abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789";
	size_t size = strlen(name);

	return size > 0 && size <= NC_REQUEST_NAME_MAX && strspn(name, legal) == size &&
	       !strchr("._-", name[0]);
}

const struct nc_field nc_policy_file_fields[] = {
	{.name = "inherits",
		.type = NC_FIELD_CHOICE,
		.offset = offsetof(struct nc_policies_config, inherits),
		.choices = nc_policy_profiles},
	VALUES(offsetof(struct nc_policies_config, all)),
	{.name = "tenants",
		.type = NC_FIELD_MAP,
		.offset = offsetof(struct nc_policies_config, tenants),
		.fields = nc_policy_value_fields,
		.size = sizeof(struct nc_policy_values),
		.is_word = nc_policy_is_tenant,
		.expected = "the name of a tenant: " NC_POLICY_NAME_EXPECTED},
	END,
};
