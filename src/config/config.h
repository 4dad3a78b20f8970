/*
 * The configuration: nacre.yaml, resource_limits.yaml, security_policies.yaml and serve.yaml of one
 * directory over built-in values, so that no file is needed.
 */
#ifndef NC_CONFIG_H
#define NC_CONFIG_H

#include "base/cleanup.h"
#include "base/language.h"
#include "config/policy_file.h"

/* nacre.yaml */
struct nc_main_config {
	struct {
		struct nc_value level;	/* enum nc_log_level */
		struct nc_value format; /* enum nc_log_format */
	} log;
	struct nc_value color; /* enum nc_color */
	/* how much of the past is kept; 0: all of it */
	struct nc_history_config {
		struct nc_value blobs_mb;   /* code and output */
		struct nc_value journal_mb; /* the lines themselves */
		struct nc_value days;
	} history;
	struct {
		struct nc_value max_mb; /* of all together */
	} environments;
	/* Where packages come from; not given: from nowhere. */
	struct {
		struct nc_packages_config {
			struct nc_value files; /* a directory: wheels, or tarballs */
			struct nc_value index; /* URLs: the first one is asked first */
			struct nc_value hosts; /* that the index sends to for files */
		} python, javascript;
	} packages;
};

enum nc_color {
	NC_COLOR_AUTO, /* on a terminal, unless NO_COLOR is set */
	NC_COLOR_ALWAYS,
	NC_COLOR_NEVER,
	NC_COLOR_MAX,
};

/*
 * resource_limits.yaml. After loading, every value of every language is given; it comes from the
 * first of: the file's entry for the language, the file's default_limits, the built-in entry for
 * the language, the built-in default.
 */
struct nc_limits_config {
	struct nc_limit_values default_limits;
	struct nc_limit_values language[NC_LANGUAGE_MAX];
};

/* What a tenant of the daemon may use; 0: no limit. */
struct nc_quota_values {
	struct nc_value executions; /* that wait or run at once */
	struct nc_value requests_per_minute;
	struct nc_value cpu_seconds_per_hour;
	struct nc_value memory_mb; /* that those which wait or run may be allowed together */
	struct nc_value disk_mb;
	struct nc_value storage_mb; /* that its snapshots may have together */
};

enum nc_alert_kind {
	NC_ALERT_SECURITY,
	NC_ALERT_PERFORMANCE,
	NC_ALERT_CAPACITY,
	NC_ALERT_ERROR,
	NC_ALERT_KIND_MAX,
};

/* What an alert looks at; per minute: over the last one. */
enum nc_alert_measure {
	NC_MEASURE_DENIALS,	  /* per minute */
	NC_MEASURE_THREATS,	  /* per minute: what the threat detector found */
	NC_MEASURE_AUTH_FAILURES, /* per minute */
	NC_MEASURE_START,	  /* mean of a minute, from the order to the start of a box */
	NC_MEASURE_QUEUE_WAIT,	  /* mean of a minute */
	NC_MEASURE_QUEUE,	  /* executions that wait */
	NC_MEASURE_RUNNING,	  /* of those that may run, in percent */
	NC_MEASURE_MEMORY,	  /* the same of memory */
	NC_MEASURE_DISK,	  /* of the state's file system, in percent */
	NC_MEASURE_ERRORS,	  /* per minute: executions that failed by our own fault */
	NC_MEASURE_MAX,
};

extern const char *const nc_alert_kind_names[];
extern const char *const nc_alert_measure_names[];

struct nc_alert_values {
	struct nc_value kind;	 /* enum nc_alert_kind */
	struct nc_value measure; /* enum nc_alert_measure */
	struct nc_value above;	 /* in thousandths */
	struct nc_value for_seconds;
};

/* What is kept ready ahead of need; each has what the next one has. */
enum nc_warm {
	NC_WARM_INTERPRETERS,
	NC_WARM_BOXES,
	NC_WARM_NOTHING,
	NC_WARM_MAX,
};

/* How a directory or file of the host is shown to boxes. */
enum nc_bind_mode {
	NC_BIND_RO,
	NC_BIND_RW,
	NC_BIND_MODE_MAX,
};

struct nc_bind_values {
	struct nc_value path;	/* on the host */
	struct nc_value target; /* in a box; or not given: /mnt and the name */
	struct nc_value mode;	/* enum nc_bind_mode */
};

/* serve.yaml: the daemon. */
struct nc_serve_config {
	struct nc_value allowed_origins; /* pages of others that may ask, with a key */
	struct nc_value drain_seconds;
	struct nc_value warm;	  /* enum nc_warm */
	struct nc_value preload;  /* modules that a Python which is kept ready has imported */
	struct nc_value webhooks; /* addresses that are told of alerts */
	struct nc_tracing_values {
		struct nc_value endpoint; /* where traces go, as OTLP/HTTP in JSON; or not given */
		struct nc_value headers;  /* "Name: value", of each request to it */
		struct nc_value sample; /* of requests whose caller does not say, in thousandths */
	} tracing;
	struct nc_quota_values quotas; /* of each tenant that has none of its own */
	struct nc_map tenants;	       /* of struct nc_quota_values */
	struct nc_map alerts;	       /* of struct nc_alert_values */
	struct nc_map binds;	       /* of struct nc_bind_values: what requests may name */
};

enum nc_config_file {
	NC_CONFIG_MAIN,
	NC_CONFIG_LIMITS,
	NC_CONFIG_POLICIES,
	NC_CONFIG_SERVE,
	NC_CONFIG_FILE_COUNT,
};

struct nc_config {
	char *dir; /* where the files were looked for; NULL: there is no such directory */
	bool found[NC_CONFIG_FILE_COUNT];
	struct nc_main_config main;
	struct nc_limits_config limits;
	struct nc_policies_config policies;
	struct nc_serve_config serve;
};

extern const char *const nc_config_file_names[NC_CONFIG_FILE_COUNT];

/* The table of one file, and its values in config. */
const struct nc_field *nc_config_fields(enum nc_config_file file);
const void *nc_config_values(const struct nc_config *config, enum nc_config_file file);

/*
 * Chooses the directory: dir if it is not NULL (it must exist), else /etc/nacre, else nacre in the
 * user's configuration directory ($XDG_CONFIG_HOME, or .config in $HOME). The first that exists is
 * the whole configuration; they are not mixed. *config gets the built-in values.
 */
int nc_config_init(struct nc_config *config, const char *dir, struct nacre_err *err);

/* Reads one file over the built-in values; a file that is not there is no error. */
int nc_config_read(struct nc_config *config, enum nc_config_file file, struct nacre_err *err);

/* nc_config_init and nc_config_read of all files. On failure config is empty again. */
int nc_config_load(struct nc_config *config, const char *dir, struct nacre_err *err);

void nc_config_done(struct nc_config *config);

#define cleanup_config nc_cleanup(nc_config_done)

#endif
