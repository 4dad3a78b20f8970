/* What the policy says about code, and which policies there are. */
#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "engine/detect.h"
#include "policy/book.h"
#include "policy/json.h"
#include "server/reply.h"
#include "server/rest/rest.h"

NC_REST(policy_analyse)
{
	cleanup_report struct nc_report *report = NULL;
	cleanup_json json_t *body = NULL;
	const char *word = NULL, *code = NULL, *policy = "", *file = "";
	const struct nc_terms *terms;
	enum nc_language language;
	struct nacre_err err = {0};
	json_error_t fault;
	size_t size;
	json_t *files;

	if (nc_json_parse(nc_buf_text(&exchange->body), exchange->body.size, &body, &err) < 0) {
		nc_problem(exchange, 400, "bad_json", NULL, NULL, "%s", err.message);
		return;
	}
	if (json_unpack_ex(body, &fault, 0, "{s:s, s:s%, s?s, s?s !}", "language", &word, "code",
		    &code, &size, "policy", &policy, "file", &file) < 0) {
		nc_problem(exchange, 400, "bad_request", NULL,
			"Send language, code and, if wanted, policy and file, all texts", "%s",
			fault.text);
		return;
	}
	language = nc_policy_parse_language(word);
	if (language < 0) {
		char quoted[NC_TEXT_QUOTED_MAX];

		nc_problem(exchange, 400, "bad_language", "/language", NULL, "Unknown language %s",
			nc_text_quote(quoted, word));
		return;
	}
	if (nc_engine_terms(server->setup.engine, policy, exchange->caller.tenant, &terms, &err) <
		0) {
		nc_problem(exchange, 400, "bad_policy", "/policy", "See /v1/policies", "%s",
			err.message);
		return;
	}
	if (nc_policy_analyse(terms->analyser, language, code, size, &report) < 0) {
		nc_problem(exchange, 500, "internal_error", NULL, NULL, "Out of memory");
		return;
	}
	files = json_pack("[o]", nc_report_json(report, file, language));
	nc_reply_json(exchange, 200,
		json_pack("{s:s, s:s, s:s, s:b, s:o}", "schema", "nacre.check/1", "policy",
			terms->policy, "tenant", terms->tenant, "refused",
			nc_report_verdict(report) == NC_VERDICT_REFUSE, "files", files));
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
