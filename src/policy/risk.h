/* From findings to a risk level and a recommendation. */
#ifndef NC_RISK_H
#define NC_RISK_H

#include "policy/report.h"

/* Adds what follows from several findings together, sums up, and sets risk and verdict. */
void nc_risk_judge(struct nc_report *report, enum nc_profile profile);

#endif
