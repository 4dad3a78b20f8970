/*
 * The installers of packages: for each language that has one, the programs that run in boxes to
 *look for packages and to install them, and what they have to say.
 *
 * A program is told its packages as arguments. What it prints on standard output is one JSON
 *object:
 *
 *	interpreter	text: which one the packages are for
 *	packages	list of name, version and, if it was installed, file and sha256 of what it
 *			came from; or null from a probe: something is missing
 *	lacks		text, with status NC_INSTALL_LACKS: what the source does not have
 *
 * On standard error is what the installer itself has to say. The build box shows the environment as
 * layer 0 and the source as layer 1.
 */
#ifndef NC_INSTALLER_H
#define NC_INSTALLER_H

#include "base/language.h"
#include "kernel/boxwire.h"

enum nc_install_status {
	NC_INSTALL_LACKS = 3,	/* the source has not what is wanted */
	NC_INSTALL_MISSING = 4, /* the image has no installer */
	NC_INSTALL_FULL = 5,	/* the disk of the box is full, whose size is the limit */
	NC_INSTALL_NO_ROOM = 6, /* the disk that environments are kept on is full */
};

struct nc_installer {
	const char *interpreter;  /* which makes and runs environments */
	const char *const *words; /* runs a program that is the next argument; NULL-terminated */
	const char *probe;	  /* looks whether the image has packages; NULL: it never does */
	const char *install;
	const char *source_key;	 /* of the configuration: where packages come from; or NULL */
	const char *source_noun; /* what that is */
	const char *index_key;	 /* the same for an index */
	const char *fix;	 /* how the installer is had on Debian */
	const char *const *env;	 /* of a box that uses an environment, "NAME=value" */
};

/* Whose packages programs in a language use: TypeScript has those of JavaScript. */
enum nc_language nc_installer_language(enum nc_language language);

/* NULL: nothing is installed for this language. */
const struct nc_installer *nc_installer_of(enum nc_language language);

/*
 * What fills the cache of a compiler with what every program is built from, its own library; NULL:
 * it has none. An installer without packages or a source, in the environment of the compile step.
 */
const struct nc_installer *nc_warmer_of(enum nc_language language);

/* Whether a valid name of a package is one for this language: pip and npm differ. */
bool nc_installer_takes(enum nc_language language, const char *package);

#endif
