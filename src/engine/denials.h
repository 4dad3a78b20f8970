/* What was refused to an execution, by all layers, as the list `denials` of replies. */
#ifndef NC_DENIALS_H
#define NC_DENIALS_H

#include <jansson.h>

#include "engine/end_denials.h"

/* Distinct things of one program that the list holds; the findings have all of them. */
#define NC_DENIALS_STATIC_MAX 32U

/* Each appends to the list. 0 or -ENOMEM. */
int nc_denials_add(json_t *list, const struct nc_denial *denial);
int nc_denials_add_end(json_t *list, const struct nc_box_end *end);
int nc_denials_add_report(json_t *list, const struct nc_report *report);

/* Why it ended in another way than it should have, in a sentence; "": it ended well. */
void nc_denials_explain(const struct nc_box_end *end, char *out, size_t size);

#endif
