/* The outcome of nacre exec, as words and as an exit code. */
#ifndef NC_ANSWER_H
#define NC_ANSWER_H

#include "policy/denial.h"
#include "tier/run.h"

/*
 * Says on standard error why there was no run, and returns the exit code: the shell's habits, 127
 * not found, 126 not executable; 125 is Nacre's own. *ret_said has the same words.
 */
int nc_answer_failure(const struct nc_run *run, const char *command, struct nacre_err *ret_said);

/* The exit code of a run; unless quiet, says on standard error what was refused and what ended it.
 */
int nc_answer_code(const struct nc_run *run, bool quiet);

/* One line on standard error. */
void nc_answer_denial(const char *verb, const struct nc_denial *denial);

#endif
