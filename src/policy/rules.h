/* Every rule of the analysis: how bad it is, why, and what to do instead. */
#ifndef NC_RULES_H
#define NC_RULES_H

#include "base/rule_ids.h"
#include "policy/policy.h"

extern const struct nc_rule_text nc_rules[NC_RULE_MAX];

#endif
