/* Whether a program can do its work in one process. */
#ifndef NC_ALONE_H
#define NC_ALONE_H

#include "policy/policy.h"

/*
 * Whether it needs no process beside its own, so that new ones can be refused to it without
 * breaking anything honest: all of it was understood, it starts no program and no process, and
 * neither do the modules that it imports. What cannot be told counts as needed. Threads are no
 * processes.
 */
bool nc_report_is_alone(const struct nc_report *report, enum nc_language language);

/* Whether nothing in it gets past an analysis: code from text, machine code, what does not parse.
 */
bool nc_report_is_whole(const struct nc_report *report);

#endif
