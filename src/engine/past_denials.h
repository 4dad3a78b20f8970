/*
 * Denials of those that are lost: the history knows what was refused and how often, and not what to
 * do about it. Apart, since who reads the history knows nothing of policies.
 */
#ifndef NC_PAST_DENIALS_H
#define NC_PAST_DENIALS_H

#include <jansson.h>

/* Completes them in each of these rows. 0, or -ENOMEM: some say less. */
int nc_past_denials(const json_t *rows);

#endif
