/* What boxes are shown of the host's tree. */
#include "kernel/shown.h"

#include <stddef.h>
#include <stdio.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Whole directories of packages, since each costs a mount. */
static const char *const fixed[] = {
	"usr",
	"bin",
	"sbin",
	"lib",
	"lib32",
	"lib64",
	"libx32",
	"etc/alternatives", /* half of Debian's commands are links through it */
	"etc/ld.so.cache",  /* without it every start searches directories */
	"etc/ssl/certs",
	"etc/localtime",
	"etc/mime.types",
	"etc/protocols",
	"etc/services",
	"etc/fonts",
	"etc/groff", /* man formats by it */
	"etc/magic",
	"etc/manpath.config",
	"etc/matplotlibrc",
	"etc/os-release", /* a link into /usr */
	"etc/perl",
	"etc/R",
	"etc/sgml",
	"etc/ssl/openssl.cnf",
	"etc/terminfo",
	"etc/texmf",
	"etc/vim",
	"etc/xml",
};

/*
 * Whatever the version: also of those that there will be for some years. Each name is tried, which
 * takes a third of the time that it takes to list /etc.
 */
static const struct {
	const char *begin, *end;
	unsigned int first, last;
} versioned[] = {
	{"etc/python3.", "", 7, 29}, /* sitecustomize.py is a link to it */
	{"etc/java-", "-openjdk", 8, 35},
	{"etc/ImageMagick-", "", 6, 9},
};

static int walk_versions(size_t i, int (*each)(void *context, const char *path), void *context)
{
	char path[64];
	int r = 0;

	for (unsigned int n = versioned[i].first; r == 0 && n <= versioned[i].last; n++) {
		(void)snprintf(
			path, sizeof(path), "%s%u%s", versioned[i].begin, n, versioned[i].end);
		r = each(context, path);
	}
	return r;
}

int nc_shown_walk(int (*each)(void *context, const char *path), void *context)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < COUNT(fixed); i++)
		r = each(context, fixed[i]);
	for (size_t i = 0; r == 0 && i < COUNT(versioned); i++)
		r = walk_versions(i, each, context);
	return r;
}
