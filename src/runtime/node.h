/* What JavaScript and TypeScript have in common: Node. */
#ifndef NC_NODE_H
#define NC_NODE_H

#include "runtime/runtime.h"

/*
 * One question serves both: typescript is "strip" or "transform" where Node does it unasked;
 * package is "yes" if the package typescript is at hand.
 */
#define NC_NODE_VERSION_ARGV                                                                       \
	NC_WORDS("node", "-p",                                                                     \
		"process.versions.node + ' typescript=' + (process.features.typescript || 'no') "  \
		"+ "                                                                               \
		"' package=' + (() => { try { require.resolve('typescript'); return 'yes' } "      \
		"catch { return 'no' } })()")

#define NC_NODE_FLAGS_MAX 9U

/* What Node's permission model is to keep from a program. */
struct nc_node_bans {
	bool programs, workers, writing, eval;
};

/*
 * The flags for a Node that gave this answer to the version question, behind each other in
 * ret_flags with a NULL; none if it has no such model, or one that cannot be had without a warning.
 */
void nc_node_flags(const char *answer, const struct nc_node_bans *bans,
	const char *ret_flags[static NC_NODE_FLAGS_MAX + 1]);

/*
 * Whether code is an ES module: it has an import or export statement. Told by the beginnings of
 * lines, outside of comments and templates; Node from 20.19 on looks again, by parsing.
 */
bool nc_node_is_module(const char *code, size_t size);

bool nc_node_diagnose(const struct nc_failure *failure, struct nc_diagnostic *diagnostic);

#endif
