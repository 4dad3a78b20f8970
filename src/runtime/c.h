/* What C and C++ share: both are compiled by the same compiler, whose errors look the same. */
#ifndef NC_RUNTIME_C_H
#define NC_RUNTIME_C_H

#include "runtime/runtime.h"

/* As nc_runtime.diagnose. */
bool nc_c_diagnose(const struct nc_failure *failure, struct nc_diagnostic *diagnostic);

#endif
