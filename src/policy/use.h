/* What a call does with its arguments, held against the rules. */
#ifndef NC_USE_H
#define NC_USE_H

#include "policy/scan.h"

/*
 * Judges a call of a function that may be several: all alternatives of number. call is NULL where
 * the function is not called but handed on, which is taken for a call with unknown arguments.
 */
void nc_use_judge(
	struct nc_scan *scan, uint32_t node, const struct nc_call *call, uint32_t function);

#endif
