/* Analyses hostile bytes as a program; the first byte tells the language and the profile. */
#include "fuzz.h"

#include <assert.h>
#include <string.h>

#include "policy/policy.h"

/* What holds for every finding. */
static void check_finding(const struct nc_finding *finding, size_t size)
{
	assert(finding->rule && finding->why && finding->remedy && finding->object);
	assert(finding->severity < NC_SEVERITY_MAX);
	assert(finding->offset <= size);
	assert(finding->line >= 1 && finding->column >= 1);
	assert(finding->end_line > finding->line ||
		(finding->end_line == finding->line && finding->end_column >= finding->column));
	assert(strlen(finding->snippet) <= 256);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const words[] = {"os", "eval(", "require('fs')", ">/dev/", "a b", NULL};
	struct nc_policy_options options = {0};
	cleanup_policy struct nc_policy *policy = NULL;
	cleanup_report struct nc_report *report = NULL;
	const struct nc_finding *finding;
	const char *const *allowed;
	enum nc_language language;
	size_t count;
	bool refuses = false;

	if (size == 0)
		return 0;
	allowed = data[0] & 0x80 ? words : NULL;
	language = data[0] % NC_LANGUAGE_MAX;
	options.profile = data[0] / NC_LANGUAGE_MAX % NC_PROFILE_MAX;
	for (size_t i = 0; i < NC_LANGUAGE_MAX; i++)
		options.lists[i] = (struct nc_policy_lists){
			words, words, words, words, allowed, allowed, allowed};
	assert(nc_policy_new(&options, &policy) == 0);
	assert(nc_policy_analyse(policy, language, (const char *)data + 1, size - 1, &report) == 0);
	finding = nc_report_findings(report, &count);
	for (size_t i = 0; i < count; i++) {
		check_finding(&finding[i], size);
		refuses |= finding[i].refuses;
	}
	assert(!refuses || nc_report_verdict(report) == NC_VERDICT_REFUSE);
	assert(options.profile != NC_PROFILE_AUDIT || !refuses);
	return 0;
}
