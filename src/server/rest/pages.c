/* The description of the interface: as a document for programs, and as a page for people. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "server/reply.h"
#include "server/rest/rest.h"

#define PAGE_MAX (1024U * 1024)

/* docs/openapi.json, put in by the assembler. */
__asm__(".pushsection .rodata\n"
	".global nc_openapi_text\n"
	".global nc_openapi_end\n"
	".hidden nc_openapi_text\n"
	".hidden nc_openapi_end\n"
	"nc_openapi_text: .incbin \"" NACRE_OPENAPI "\"\n"
	"nc_openapi_end: .byte 0\n"
	".popsection\n");
extern const char nc_openapi_text[], nc_openapi_end[];

NC_REST(openapi)
{
	(void)server;
	nc_reply_bytes(exchange, 200, "application/json", nc_openapi_text,
		(size_t)(nc_openapi_end - nc_openapi_text));
}

/* ---- the page ---- */

static void add_text(struct nc_buf *out, const char *text)
{
	for (; text && *text; text++) {
		if (*text == '<')
			nc_buf_adds(out, "&lt;");
		else if (*text == '&')
			nc_buf_adds(out, "&amp;");
		else if (*text == '"')
			nc_buf_adds(out, "&quot;");
		else
			nc_buf_add(out, text, 1);
	}
}

static const char *text_of(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

static void add_parameters(struct nc_buf *out, const json_t *parameters)
{
	size_t i;
	const json_t *parameter;

	if (json_array_size(parameters) == 0)
		return;
	nc_buf_adds(out, "<table>");
	json_array_foreach(parameters, i, parameter)
	{
		nc_buf_adds(out, "<tr><td><code>");
		add_text(out, text_of(parameter, "name"));
		nc_buf_adds(out, "</code></td><td>");
		add_text(out, text_of(parameter, "in"));
		nc_buf_adds(out, "</td><td>");
		add_text(out, text_of(parameter, "description"));
		nc_buf_adds(out, "</td></tr>\n");
	}
	nc_buf_adds(out, "</table>\n");
}

static void add_responses(struct nc_buf *out, json_t *responses)
{
	const char *status;
	json_t *response;

	nc_buf_adds(out, "<table>");
	json_object_foreach(responses, status, response)
	{
		const char *shared = text_of(response, "$ref");

		nc_buf_addf(out, "<tr><td><code>%s</code></td><td>", status);
		add_text(out, shared ? strrchr(shared, '/') + 1 : text_of(response, "description"));
		nc_buf_adds(out, "</td></tr>\n");
	}
	nc_buf_adds(out, "</table>\n");
}

static void add_operation(
	struct nc_buf *out, const char *path, const char *method, const json_t *operation)
{
	nc_buf_adds(out, "<section><h2><code>");
	for (const char *at = method; *at; at++)
		nc_buf_addf(out, "%c", *at - ('a' - 'A'));
	nc_buf_addf(out, " %s</code></h2><p>", path);
	add_text(out, text_of(operation, "summary"));
	nc_buf_adds(out, "</p><p>");
	add_text(out, text_of(operation, "description"));
	nc_buf_adds(out, "</p>\n");
	add_parameters(out, json_object_get(operation, "parameters"));
	add_responses(out, json_object_get(operation, "responses"));
	nc_buf_adds(out, "</section>\n");
}

static void add_page(struct nc_buf *out, json_t *document)
{
	const char *path, *method;
	json_t *methods, *operation;

	nc_buf_adds(out,
		"<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">"
		"<title>Nacre API</title><style>body{font:16px/1.5 sans-serif;max-width:60em;"
		"margin:2em auto;padding:0 1em}section{border-top:1px solid #ccc}"
		"td{padding:0 1em 0 0;vertical-align:top}h2{font-size:1.1em}</style>"
		"<h1>Nacre API</h1><p>");
	add_text(out, text_of(json_object_get(document, "info"), "description"));
	nc_buf_adds(out, "</p><p>The same for programs: <a href=\"/openapi.json\">"
			 "/openapi.json</a></p>\n");
	json_object_foreach(json_object_get(document, "paths"), path, methods)
	{
		json_object_foreach(methods, method, operation)
		{
			add_operation(out, path, method, operation);
		}
	}
	nc_buf_adds(out, "</html>\n");
}

NC_REST(docs)
{
	nc_buf_cleanup struct nc_buf page = NC_BUF(PAGE_MAX);
	cleanup_json json_t *document = json_loads(nc_openapi_text, 0, NULL);

	(void)server;
	add_page(&page, document);
	if (!document || page.error < 0) {
		nc_problem(exchange, 500, "internal_error", NULL, NULL, "Out of memory");
		return;
	}
	nc_reply_bytes(exchange, 200, "text/html; charset=utf-8", page.data, page.size);
	nc_reply_header(exchange, "Content-Security-Policy",
		"default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'");
}
