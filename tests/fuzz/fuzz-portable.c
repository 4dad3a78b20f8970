/* Reads hostile bytes as the report of a process that was taken over, and as a policy. */
#include "fuzz.h"

#include <assert.h>

#include "policy/portable.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup_report struct nc_report *report = NULL;
	cleanup_policy struct nc_policy *policy = NULL;

	if (nc_report_unpack(data, size, &report) == 0)
		assert(nc_report_risk(report) < NC_SEVERITY_MAX && nc_report_needs(report)->paths);
	(void)nc_policy_unpack(data, size, &policy);
	return 0;
}
