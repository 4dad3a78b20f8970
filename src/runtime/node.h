/* What JavaScript and TypeScript have in common: Node. */
#ifndef NC_NODE_H
#define NC_NODE_H

#include "runtime/runtime.h"

/* One question serves both: typescript is "strip" or "transform" where Node does it unasked. */
#define NC_NODE_VERSION_ARGV                                                                       \
	NC_WORDS("node", "-p",                                                                     \
		"process.versions.node + ' typescript=' + (process.features.typescript || 'no')")

/*
 * Whether code is an ES module: it has an import or export statement. Told by the beginnings of
 * lines, outside of comments and templates; Node from 20.19 on looks again, by parsing.
 */
bool nc_node_is_module(const char *code, size_t size);

bool nc_node_diagnose(const struct nc_failure *failure, struct nc_diagnostic *diagnostic);

#endif
