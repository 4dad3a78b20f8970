/* The tiers, and what this host offers for each. */
#ifndef NC_TIER_H
#define NC_TIER_H

#include <stdbool.h>

#include "base/ask.h"
#include "base/tier_ids.h"
#include "kernel/strength.h"

struct nc_tier_report {
	enum nc_grade grade; /* what the host can give */
	bool built;	     /* this version of Nacre has the tier */
	char reason[256];
	const char *fix; /* NULL when there is nothing to fix */
};

/* The program that holds boxes of this tier, or NULL: this version has none. */
const char *nc_tier_holder(enum nc_tier tier);

/*
 * Holders have numbers: 0 is the first one, which is the parent of all; the others are programs
 * beside it (tier/launch.h), in the order of the table's rows.
 */
#define NC_TIER_FIRST_HOLDER "nacre-spawner"
#define NC_TIER_HOLDERS_MAX ((unsigned int)NC_TIER_MAX)

/* The program of that number; NULL: there are less. */
const char *nc_tier_program(unsigned int number);

/* Programs of the host that tiers are made of. */
enum nc_tool {
	NC_TOOL_WASM2C,	 /* translates a module that we give it */
	NC_TOOL_WASI_CC, /* compiles a C program to WASI */
	NC_TOOL_QEMU,
	NC_TOOL_MAX,
};

/* Prepares the questions to the tools; the caller starts and finishes them. */
void nc_tool_questions(struct nc_ask asks[static NC_TOOL_MAX]);

/*
 * Judges each tier from the strength of the host and the answers of the tools. Asks the Docker
 * engine, and the C compiler whether it takes what wasm2c made.
 */
void nc_tier_judge(const struct nc_strength *strength,
	const struct nc_ask tools[static NC_TOOL_MAX], uint64_t deadline_ns,
	struct nc_tier_report ret_reports[static NC_TIER_MAX]);

/*
 * Asks the Docker engine for its version over its socket: $DOCKER_HOST if that is unix://, else
 * /var/run/docker.sock. 0 or -errno; what was wrong or found is in out.
 */
int nc_docker_ask(uint64_t deadline_ns, char *out, size_t size);

#endif
