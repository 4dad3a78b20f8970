/* The outcome of an execution as an object, and from one. */
#ifndef NC_ANSWER_JSON_H
#define NC_ANSWER_JSON_H

#include <jansson.h>

#include "tier/run.h"

/* Prints the answer as one JSON object, with further denials if there are. -errno: it is not all
 * there. */
int nc_answer_print(const struct nc_run *run, const json_t *denials);

/*
 * The object that programs read where there is no answer: a call that was wrong, or failed. help is
 * the command that prints the usage; NULL: that would not help.
 */
void nc_answer_error(const char *message, int exit_status, const char *help);

/* One line for each of the list, on standard error, but for those that said explains already. */
void nc_answer_denials(const char *verb, const json_t *denials, const char *said);

#endif
