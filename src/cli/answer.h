/* The outcome of nacre exec, as an answer and as an exit code. */
#ifndef NC_ANSWER_H
#define NC_ANSWER_H

#include <jansson.h>

#include "box/run.h"

/* Prints the answer as one JSON object. -errno: it is not all there. */
int nc_answer_print(const struct nc_box_host *host, const struct nc_run *run);

/*
 * Says on standard error why there was no run, and returns the exit code: the shell's habits, 127
 * not found, 126 not executable; 125 is Nacre's own.
 */
int nc_answer_failure(const struct nacre_err *failure, const char *command);

/* The exit code of a run; unless quiet, says on standard error what was refused and what ended it.
 */
int nc_answer_code(const struct nc_run *run, bool quiet);

/* One line for each of the list, on standard error, but for those that said explains already. */
void nc_answer_denials(const char *verb, const json_t *denials, const char *said);

#endif
