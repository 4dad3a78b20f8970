/* The list of a box, ready to be judged by. */
#ifndef NC_RULES_H
#define NC_RULES_H

#include "base/limits.h"
#include "base/span.h"
#include "config/host.h"
#include "egress/address.h"
#include "egress/reason.h"
#include "egress/terms.h"

struct nc_rule {
	char text[NC_EGRESS_PATTERN_MAX + 1]; /* as it was written */
	struct nc_host_pattern pattern;
	bool deny;
	bool inner;
	uint32_t methods;
	char *paths[NC_EGRESS_PATHS_MAX];
	size_t n_paths;
};

struct nc_rules {
	struct nc_rule *entries; /* owned */
	size_t n;
};

/* Appends a copy. -EINVAL: no host, or a path that is none; -E2BIG: too many; -ENOMEM. */
int nc_rules_add(struct nc_rules *rules, const struct nc_egress_rule *rule);
void nc_rules_done(struct nc_rules *rules);

/* What a program asks for. */
struct nc_wish {
	const struct nc_host *host;
	uint16_t port;
	bool tunnel;	       /* of its bytes nothing is seen */
	enum nc_method method; /* if it is no tunnel, as is the path */
	struct nc_span path;
};

struct nc_verdict {
	enum nc_reason reason;
	/* if it is allowed: how far the addresses of its host may be, and the entry */
	enum nc_reach reach;
	const char *rule; /* lives as long as the rules; "" if none decided */
};

struct nc_verdict nc_rules_judge(const struct nc_rules *rules, const struct nc_wish *wish);

/* Whether a path begins with prefix, which ends where a segment does. */
bool nc_path_begins(struct nc_span path, const char *prefix);

/* Whether nobody can read it in two ways: no "//", "." or ".." segments, none of them encoded. */
bool nc_path_is_unambiguous(struct nc_span path);

#endif
