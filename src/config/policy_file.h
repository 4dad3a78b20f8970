/*
 * Policy files: security_policies.yaml, and any other that is named with --policy or stands in the
 * directory policies beside it. docs/policy.md describes each key.
 */
#ifndef NC_POLICY_FILE_H
#define NC_POLICY_FILE_H

#include "base/language.h"
#include "base/rule_ids.h"
#include "config/limit_values.h"

/* One language. Shells have commands instead of imports and functions. */
struct nc_language_policy {
	struct nc_value forbidden_imports, forbidden_functions, forbidden_commands;
	struct nc_value forbidden_patterns;
	/* when one is given, everything else of its kind is found */
	struct nc_value allowed_imports, allowed_functions, allowed_commands;
};

enum nc_policy_mode {
	NC_MODE_ENFORCE,
	NC_MODE_AUDIT, /* reports everything, refuses nothing */
	NC_MODE_MAX,
};

/* What an alert does to an execution that runs. */
enum nc_policy_response {
	NC_RESPOND_REPORT,
	NC_RESPOND_FREEZE, /* until its time is up, or somebody cancels it */
	NC_RESPOND_END,
	NC_RESPOND_MAX,
};

/* What happens to a box that is over a limit of its network. */
enum nc_policy_over {
	NC_OVER_REFUSE, /* all that it asks for from then on */
	NC_OVER_FREEZE, /* as well: it stands still */
	NC_OVER_END,
	NC_OVER_MAX,
};

/* What the layer inside of interpreters does. */
enum nc_policy_hooks {
	NC_HOOKS_OFF,
	NC_HOOKS_REPORT,  /* tells what it sees */
	NC_HOOKS_ENFORCE, /* and refuses what the policy refuses */
	NC_HOOKS_MAX,
};

/* As many as there are levels of risk, and properties in the strength vector. */
#define NC_POLICY_LEVELS 4
#define NC_POLICY_PROPERTIES 14

/* What a policy says; whatever is not given is left to those that it stands on. */
struct nc_policy_values {
	struct nc_value mode;	/* enum nc_policy_mode */
	struct nc_value hooks;	/* enum nc_policy_hooks */
	struct nc_value decoys; /* 1: there are some */
	struct nc_language_policy language[NC_LANGUAGE_MAX];
	struct nc_value severity[NC_RULE_MAX];	     /* enum nc_severity */
	struct nc_value risk[NC_POLICY_LEVELS];	     /* enum nc_verdict */
	struct nc_value floor[NC_POLICY_PROPERTIES]; /* enum nc_grade, by enum nc_property */
	struct nc_limit_values limits;		     /* ceilings */
	struct nc_value alert[NC_SIGNAL_MAX];	     /* thresholds; 0: never */
	struct nc_value respond[NC_POLICY_LEVELS];   /* enum nc_policy_response, by severity */
	struct {
		struct nc_value allow;	     /* see config/host.h */
		struct nc_value inner;	     /* the same, wherever their names lead */
		struct nc_value over_budget; /* enum nc_policy_over */
	} network;
	struct {
		struct nc_value root; /* 1: commands as root of a sandbox, and its other users */
		struct nc_value writable_root; /* 1 */
	} sandbox;
};

struct nc_policies_config {
	struct nc_value inherits; /* index into nc_policy_profiles */
	struct nc_policy_values all;
	struct nc_map tenants; /* of struct nc_policy_values */
};

/* The fields of a whole file, and those of struct nc_policy_values alone. */
extern const struct nc_field nc_policy_file_fields[];
extern const struct nc_field nc_policy_value_fields[];

/* Words that files use, in the order of the enums of others; NULL-terminated. */
extern const char *const nc_policy_profiles[];
extern const char *const nc_policy_levels[NC_POLICY_LEVELS + 1];
extern const char *const nc_policy_verdicts[];
extern const char *const nc_policy_properties[NC_POLICY_PROPERTIES + 1];
extern const char *const nc_policy_grades[];
extern const char *const nc_policy_overs[NC_OVER_MAX + 1];

/* The names of tenants, and of what else a file may name freely; as in requests. */
bool nc_policy_is_tenant(const char *name);
#define NC_POLICY_NAME_EXPECTED "1 to 64 letters, digits, '.', '_' and '-', a letter or digit first"

#endif
