/* The public security manager: the engine's process analyses, this one asks. */
#include <errno.h>

#include "base/text.h"
#include "library/execute.h"

static int ask(struct nacre_engine *engine, const char *language, const char *code,
	const char *policy, json_t **ret_answer, struct nacre_err *err)
{
	cleanup_json json_t *frame = NULL;

	if (!engine || !language || !code)
		return nc_null_pointer(err);
	frame = json_pack("{s:s, s:s, s:s, s:s}", "op", "check", "language", language, "code", code,
		"policy", policy ? policy : "");
	if (!frame)
		return nc_err_set(err, -EINVAL, "Code, language and policy must be UTF-8");
	return nc_client_ask(engine, take_ptr(frame), ret_answer, err);
}

static const json_t *report_of(const json_t *answer)
{
	return json_object_get(answer, "report");
}

static int hand_out(const json_t *value, char **ret_text, struct nacre_err *err)
{
	int r = value ? nc_client_text(value, ret_text) : -EPROTO;

	return r < 0 ? nc_err_errno(err, r, "Take the report") : 0;
}

int nacre_policy_check(struct nacre_engine *engine, const char *language, const char *code,
	const char *policy, char **ret_report, struct nacre_err *err)
{
	cleanup_json json_t *answer = NULL;
	int r = ret_report ? ask(engine, language, code, policy, &answer, err)
			   : nc_null_pointer(err);

	return r < 0 ? r : hand_out(report_of(answer), ret_report, err);
}

int nacre_policy_check_imports(struct nacre_engine *engine, const char *language, const char *code,
	char **ret_imports, struct nacre_err *err)
{
	cleanup_json json_t *answer = NULL;
	int r = ret_imports ? ask(engine, language, code, NULL, &answer, err)
			    : nc_null_pointer(err);

	return r < 0 ? r
		     : hand_out(json_object_get(report_of(answer), "imports"), ret_imports, err);
}

int nacre_policy_risk(struct nacre_engine *engine, const char *language, const char *code,
	enum nacre_risk *ret_risk, struct nacre_err *err)
{
	static const char *const names[] = {[NACRE_RISK_LOW] = "low",
		[NACRE_RISK_MEDIUM] = "medium",
		[NACRE_RISK_HIGH] = "high",
		[NACRE_RISK_CRITICAL] = "critical"};
	cleanup_json json_t *answer = NULL;
	const char *risk;
	int r;

	if (!ret_risk)
		return nc_null_pointer(err);
	r = ask(engine, language, code, NULL, &answer, err);
	if (r < 0)
		return r;
	risk = json_string_value(json_object_get(report_of(answer), "risk"));
	for (size_t i = 0; risk && i < sizeof(names) / sizeof(names[0]); i++)
		if (nc_streq(risk, names[i])) {
			*ret_risk = (enum nacre_risk)i;
			return 0;
		}
	return nc_err_errno(err, -EPROTO, "Take the report");
}
