/* The languages: one descriptor each. */
#ifndef NC_RUNTIME_H
#define NC_RUNTIME_H

#include <stdbool.h>

#include "base/ask.h"
#include "base/language.h"

struct nc_runtime {
	const char *name;		 /* as in requests and configuration files */
	const char *const *version_argv; /* asks for the version */
	const char
		*lacking; /* in the answer, this says that the language is not supported; or NULL */
	const char *too_old; /* what to say then */
	const char *fix;     /* how to get it on Debian */
};

extern const struct nc_runtime nc_runtimes[NC_LANGUAGE_MAX];

/* What the host has of a language. */
struct nc_runtime_report {
	bool ok;
	char version[48];
	char program[256];
	char reason[400]; /* why not; "" if ok */
};

/* Judges the answer to the version question. */
void nc_runtime_judge(const struct nc_runtime *runtime, const struct nc_ask *ask,
	struct nc_runtime_report *ret_report);

#endif
