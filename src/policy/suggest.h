/*
 * The least policy that lets a program do what the analysis says that it needs: everything else of
 * its kind is refused under it. Its `policy` is a policy file as it stands: JSON is YAML.
 */
#ifndef NC_SUGGEST_H
#define NC_SUGGEST_H

#include <jansson.h>

#include "policy/policy.h"

/*
 * {"policy": ..., "binds": [...], "complete": ...}: `complete` is false where some of what it needs
 * could not be told; null for a program that is refused. The caller owns it; NULL: out of memory.
 */
json_t *nc_suggest_json(const struct nc_report *report, enum nc_language language);

#endif
