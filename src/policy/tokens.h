/* The analysis of languages without a grammar here: C and what looks like it, by its tokens. */
#ifndef NC_TOKENS_H
#define NC_TOKENS_H

#include "policy/scan.h"

/* Judges the job at hand. What did not fit is noted in the scan. */
void nc_tokens_judge(struct nc_scan *scan);

#endif
