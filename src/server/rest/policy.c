/* What the policy says about code, and which policies there are. */
#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "policy/book.h"
#include "policy/json.h"
#include "server/intake.h"
#include "server/reply.h"
#include "server/rest/rest.h"

static bool list_code(
	struct nc_server *server, struct nc_exchange *exchange, void *what, struct nc_study *study)
{
	const struct nc_read_json *read = what;
	const char *word = NULL, *code = NULL, *policy = "", *file = "";
	enum nc_language language;
	struct nacre_err err = {0};
	json_error_t fault;
	size_t size;

	if (!read->value) {
		nc_problem(exchange, 400, "bad_json", NULL, NULL, "%s", read->err.message);
		return false;
	}
	if (json_unpack_ex(read->value, &fault, 0, "{s:s, s:s%, s?s, s?s !}", "language", &word,
		    "code", &code, &size, "policy", &policy, "file", &file) < 0) {
		nc_problem(exchange, 400, "bad_request", NULL,
			"Send language, code and, if wanted, policy and file, all texts", "%s",
			fault.text);
		return false;
	}
	language = nc_policy_parse_language(word);
	if (language < 0) {
		char quoted[NC_TEXT_QUOTED_MAX];

		nc_problem(exchange, 400, "bad_language", "/language", NULL, "Unknown language %s",
			nc_text_quote(quoted, word));
		return false;
	}
	if (nc_engine_terms(server->setup.engine, policy, exchange->caller.tenant, &study->terms,
		    &err) < 0) {
		nc_problem(exchange, 400, "bad_policy", "/policy", "See /v1/policies", "%s",
			err.message);
		return false;
	}
	nc_study_add(study, language, NULL, code, size);
	return true;
}

static void tell_findings(
	struct nc_server *server, struct nc_exchange *exchange, void *what, struct nc_study *study)
{
	const struct nc_read_json *read = what;
	const struct nc_study_text *text = &study->text[0];
	const char *file = json_string_value(json_object_get(read->value, "file"));
	json_t *files;

	(void)server;
	if (text->error < 0) {
		bool ours = text->error != -EPROTO;

		nc_problem(exchange, ours ? 503 : 422, ours ? "no_analysis" : "not_analysed",
			"/code", ours ? "Try again later" : "Send less, or simpler code", "%s",
			nc_study_error(text->error));
		return;
	}
	files = json_pack("[o]", nc_report_json(text->report, file ? file : "", text->language));
	nc_reply_json(exchange, 200,
		json_pack("{s:s, s:s, s:s, s:b, s:o}", "schema", "nacre.check/1", "policy",
			study->terms->policy, "tenant", study->terms->tenant, "refused",
			nc_report_verdict(text->report) == NC_VERDICT_REFUSE, "files", files));
}

NC_REST(policy_analyse)
{
	static const struct nc_intake_plan plan = {
		nc_read_json, nc_read_json_forget, list_code, tell_findings};

	nc_intake_begin(server, exchange, &plan);
}

static int add_policy(json_t *list, const char *name, const char *origin)
{
	return json_array_append_new(list, json_pack("{s:s, s:s}", "name", name, "origin", origin));
}

NC_REST(policies)
{
	cleanup_json json_t *list = json_array();
	char **names = NULL;
	size_t count = 0;
	int r = nc_book_names(server->config, &names, &count);

	for (size_t i = 0; r == 0 && i < NC_PROFILE_MAX; i++)
		r = add_policy(list, nc_profile_names[i], "built in");
	for (size_t i = 0; i < count; i++) {
		if (r == 0 && nc_book_path(server->policies, names[i]))
			r = add_policy(list, names[i], "configuration");
		free(names[i]);
	}
	free(names);
	if (r < 0) {
		nc_problem(exchange, 500, "internal_error", NULL, NULL, "Out of memory");
		return;
	}
	nc_reply_json(exchange, 200,
		json_pack(
			"{s:s, s:O}", "usual", nc_book_usual(server->policies), "policies", list));
}
