/*
 * A request for an execution: the fields of seed 001 and those beside them, read strictly from
 * JSON. docs/requests.md describes each field, docs/request.schema.json is its schema.
 *
 *	struct nc_faults faults = {0};
 *	cleanup_request struct nc_request request = {0};
 *	r = nc_request_parse(text, size, &request, &faults);
 *	if (r == -EINVAL)
 *		... nc_faults_json(&faults) ...
 */
#ifndef NC_REQUEST_H
#define NC_REQUEST_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/language.h"
#include "base/limits.h"
#include "config/policy_file.h"
#include "engine/cut.h"
#include "engine/faults.h"
#include "engine/reader.h"
#include "tier/tier.h"

/* A file that is put into the workspace before the code runs. */
struct nc_request_file {
	const char *path; /* plain and relative, see nc_path_is_plain */
	const char *data;
	size_t size;
	bool executable;
	char *decoded; /* owns data, if that came as base64 */
	/* Or data is NULL and it is left where the body is, in base64 or not (engine/cut.h). */
	const struct nc_cut *cut;
	bool cut_base64;
	char cut_digest[NC_SHA256_HEX_SIZE]; /* of what it decodes to */
};

struct nc_request_files {
	struct nc_request_file *file;
	size_t count;
};

struct nc_request_limits {
	struct nc_request_limit memory_bytes;
	struct nc_request_limit cpu_milli; /* thousandths of a core */
	struct nc_request_limit cpu_time_ms;
	struct nc_request_limit wall_ms; /* of `timeout` or `execution_time_seconds` */
	struct nc_request_limit processes;
	struct nc_request_limit disk_bytes;
	struct nc_request_limit inodes;
	struct nc_request_limit open_files;
	struct nc_request_limit output_bytes;
};

/* What it may reach. */
enum nc_network_mode {
	NC_NETWORK_UNSAID, /* what the rest of it says */
	NC_NETWORK_NONE,
	NC_NETWORK_ISOLATED, /* others of its group, by their names, and nothing else */
	NC_NETWORK_ALLOWLIST,
};

struct nc_request_network {
	bool access; /* what the policy lists */
	enum nc_network_mode mode;
	const char *group, *name;      /* isolated: of which group, and as whom; or NULL */
	enum nc_policy_over over;      /* what happens over a limit; the policy may ask for more */
	struct nc_request_words allow; /* these hosts, each within the policy's */
	struct nc_request_limit bytes, requests, rate_mbps;
	bool strict; /* TLS must greet the host that was asked for */
	/*
	 * Of the caller, not of the request: he owns this machine, so that where the policy lists
	 * no hosts he may name any. Others reach what a policy lists.
	 */
	bool trusted;
	struct nc_request_secrets {
		struct nc_request_secret {
			const char *name;   /* of the variable that holds what stands for it */
			const char *value;  /* which the box never sees */
			const char *host;   /* the only one that it is sent to */
			const char *header; /* in which */
			bool plain;	    /* by plain HTTP, not in TLS */
			bool mask;	    /* where that host sends it back */
			json_t *source;	    /* borrowed: what it was read from */
		} * secret;
		size_t count;
		bool handed_over; /* the values are nacre-egress's, and here no more */
	} secrets;
};

/* One program of a workflow; a request without `steps` is one of these too. */
struct nc_request_step {
	const char *name;	   /* "": it has none */
	enum nc_language language; /* NC_LANGUAGE_INVALID: to be detected */
	const char *file; /* "", or the name of the code's file, a hint for the detection */
	const char *code;
	size_t code_size;
	struct nc_request_words inputs; /* lines of standard input, without their newlines */
	struct nc_request_words args;
	struct nc_request_pairs env;	 /* over those of the request */
	struct nc_request_limit wall_ms; /* of this step alone */
};

/*
 * All texts borrow from `source`; _done frees everything. Lists of words are never NULL after
 * parsing and end in NULL.
 */
struct nc_request {
	json_t *source;
	char id[NC_REQUEST_NAME_MAX + 1];     /* "": the caller gave none */
	char tenant[NC_REQUEST_NAME_MAX + 1]; /* "": none; who authenticates may know better */
	/* The workflow, in order; at least one. They share one workspace. */
	struct nc_request_step step[NC_REQUEST_STEPS_MAX];
	size_t n_steps;
	bool is_workflow;	     /* it came with `steps`, so the reply has `steps` too */
	struct nc_request_pairs env; /* for all steps */
	struct nc_request_words packages;
	struct nc_request_words binds;	 /* of the host, by the operator's names */
	struct nc_request_words capture; /* patterns of files that the reply brings back */
	struct nc_request_files files;
	struct nc_request_pairs labels;
	struct nc_request_limits limits;
	enum nc_tier tier; /* NC_TIER_MAX: the router chooses */
	bool as_root;	   /* of its box */
	bool writable_root;
	char policy[NC_REQUEST_NAME_MAX + 1]; /* "": the usual one */
	struct nc_request_network network;
	struct nc_cuts *cuts;  /* that files point to; NULL: none do */
	bool cache;	       /* the reply to an equal request may be given again */
	bool stream;	       /* events as they happen */
	unsigned int priority; /* 0 to 9, more is sooner */
};

#define NC_REQUEST_PRIORITY 5U

/*
 * Reads a request. 0; -EINVAL with every fault in *faults (which begins zeroed), up to
 * NC_REQUEST_FAULTS_MAX; -ENOMEM. Copies what it needs; *ret_request is untouched on failure.
 */
int nc_request_parse(
	const char *json, size_t size, struct nc_request *ret_request, struct nc_faults *faults);

/*
 * The same from a file of size bytes, in which large contents of files stay. Takes fd over. -EIO:
 * it cannot be read any more.
 */
int nc_request_parse_file(
	int fd, size_t size, struct nc_request *ret_request, struct nc_faults *faults);

/* The same from JSON that was parsed within the maxima above; takes over the reference. */
int nc_request_read(json_t *source, struct nc_request *ret_request, struct nc_faults *faults);

/* Readers of members that other requests have too (engine/reader.h). */
void nc_read_id(const struct nc_cursor *c);	 /* char[NC_REQUEST_NAME_MAX + 1] */
void nc_read_policy(const struct nc_cursor *c);	 /* the same */
void nc_read_tier(const struct nc_cursor *c);	 /* enum nc_tier */
void nc_read_env(const struct nc_cursor *c);	 /* struct nc_request_pairs */
void nc_read_binds(const struct nc_cursor *c);	 /* struct nc_request_words */
void nc_read_labels(const struct nc_cursor *c);	 /* struct nc_request_pairs */
void nc_read_limits(const struct nc_cursor *c);	 /* struct nc_request_limits */
void nc_read_network(const struct nc_cursor *c); /* struct nc_request_network */
/* Erases the value, of which nobody here has to know any more. */
void nc_request_secret_forget(struct nc_request_secret *secret);
void nc_read_secrets(const struct nc_cursor *c); /* struct nc_request_secrets */
void nc_request_network_done(struct nc_request_network *network);

/* Frees what it holds; accepts a zeroed one. */
void nc_request_done(struct nc_request *request);

#define cleanup_request nc_cleanup(nc_request_done)

#endif
