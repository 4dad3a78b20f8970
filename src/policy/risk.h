/* From findings to a risk level and a recommendation. */
#ifndef NC_RISK_H
#define NC_RISK_H

#include "policy/report.h"

/* What becomes of a level of risk, where no policy says otherwise. */
extern const enum nc_verdict nc_verdicts_built_in[NC_SEVERITY_MAX];

/* What the options say, and what is built in where they say nothing. */
void nc_scale_init(struct nc_scale *scale, const struct nc_policy_options *options);

/* Whether a program is refused for one finding by this rule alone. */
bool nc_scale_refuses(const struct nc_scale *scale, enum nc_rule_id rule);

/* Adds what follows from several findings together, sums up, and sets risk and verdict. */
void nc_risk_judge(struct nc_report *report);

#endif
