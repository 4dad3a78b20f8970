/* nacre-files listens for nacre-sudo. */
#ifndef NC_INSIDE_SUDO_VERB_H
#define NC_INSIDE_SUDO_VERB_H

#include "base/error.h"

/*
 * USER: takes what nacre-sudo asks at its socket, as root of the box, and moves frames between up
 * to 16 of them and the daemon, which is at standard input and output (base/sudowire.h). Of the
 * box's users, the usual one and this one are heard. It ends when standard input does.
 */
int nc_verb_sudo(char **argv, struct nacre_err *err);

#endif
