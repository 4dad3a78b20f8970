/* The languages that Nacre runs, by the names that requests and configuration files use. */
#ifndef NC_LANGUAGE_H
#define NC_LANGUAGE_H

#include <errno.h>

enum nc_language {
	NC_PYTHON,
	NC_JAVASCRIPT,
	NC_TYPESCRIPT,
	NC_SHELL,
	NC_GO,
	NC_RUST,
	NC_C,
	NC_CPP,
	NC_LANGUAGE_MAX,
	NC_LANGUAGE_INVALID = -EINVAL,
};

#endif
