/* nacre-files reaches a port of its box. */
#ifndef NC_INSIDE_DIAL_VERB_H
#define NC_INSIDE_DIAL_VERB_H

#include "base/error.h"

/*
 * PORT: connects to that port of the box's own loopback, IPv4 or else IPv6; standard input goes
 * there, and what comes from there to standard output. The end of each direction is passed on; it
 * ends when both have, or when nobody takes what the port says.
 */
int nc_verb_dial(char **argv, struct nacre_err *err);

#endif
