/* The heads of HTTP/1 messages: writing them, and what stays outside. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "egress/http.h"

#define PLACEHOLDER_MIN 8U

static bool span_is(struct nc_span span, const char *word)
{
	return span.size == strlen(word) && strncasecmp(span.text, word, span.size) == 0;
}

/* Fields for one connection only, and those that we write ourselves. */
static bool is_ours(const struct nc_http_head *head, struct nc_span name)
{
	static const char *const ours[] = {"connection", "proxy-connection", "keep-alive",
		"proxy-authorization", "proxy-authenticate", "te", "trailer", "upgrade"};

	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		if (span_is(name, ours[i]))
			return true;
	for (size_t i = 0; i < head->n_connection; i++)
		if (name.size == head->connection[i].size &&
			strncasecmp(name.text, head->connection[i].text, name.size) == 0)
			return true;
	return false;
}

static void write_field(struct nc_buf *out, const struct nc_http_field *field)
{
	nc_buf_add(out, field->name.text, field->name.size);
	nc_buf_adds(out, ": ");
	nc_buf_add(out, field->value.text, field->value.size);
	nc_buf_adds(out, "\r\n");
}

/* ---- secrets ---- */

static bool is_printable(const char *text, bool blanks)
{
	for (; *text; text++)
		if (*text > '~' || *text < (blanks ? ' ' : '!'))
			return false;
	return true;
}

static void erase(char **text)
{
	if (*text)
		explicit_bzero(*text, strlen(*text));
	nc_freep(text);
}

static void secret_done(struct nc_secret *secret)
{
	erase(&secret->placeholder);
	erase(&secret->value);
	erase(&secret->header);
	nc_mask_rows_unref(secret->rows);
}

/* What is shorter is found everywhere. */
static bool is_value(const char *value, bool mask)
{
	return strlen(value) <= NC_EGRESS_SECRET_MAX && is_printable(value, true) &&
	       (!mask || !value[0] || strlen(value) >= NC_EGRESS_MASK_MIN);
}

int nc_secrets_add(struct nc_secrets *secrets, const struct nc_egress_secret *from)
{
	struct nc_secret secret = {0};
	struct nc_host_pattern pattern;

	if (secrets->n == NC_EGRESS_SECRETS_MAX)
		return -E2BIG;
	if (strlen(from->placeholder) > NC_EGRESS_PATH_MAX ||
		strlen(from->header) > NC_EGRESS_HEADER_MAX ||
		strlen(from->host) > NC_EGRESS_PATTERN_MAX)
		return -EINVAL;
	if (nc_host_parse_pattern(from->host, &pattern) < 0 || pattern.wild ||
		strlen(from->placeholder) < PLACEHOLDER_MIN || !from->header[0] ||
		!is_printable(from->placeholder, false) || !is_value(from->value, !from->bare) ||
		!is_printable(from->header, false))
		return -EINVAL;
	secret.host = pattern.host;
	secret.tls = from->tls;
	secret.mask = !from->bare;
	secret.port = pattern.port ? pattern.port : from->tls ? 443 : 80;
	secret.placeholder = strdup(from->placeholder);
	secret.value = strdup(from->value);
	secret.header = strdup(from->header);
	if (!secret.placeholder || !secret.value || !secret.header) {
		secret_done(&secret);
		return -ENOMEM;
	}
	secrets->entries[secrets->n++] = secret;
	return 0;
}

int nc_secrets_fill(struct nc_secrets *secrets, const char *placeholder, const char *value)
{
	for (size_t i = 0; i < secrets->n; i++) {
		struct nc_secret *secret = &secrets->entries[i];
		char *copy;

		if (secret->value[0] || !nc_streq(secret->placeholder, placeholder))
			continue;
		copy = is_value(value, secret->mask) ? strdup(value) : NULL;
		if (!copy)
			return is_value(value, secret->mask) ? -ENOMEM : -EINVAL;
		free(secret->value);
		secret->value = copy;
	}
	return 0;
}

bool nc_secrets_are_whole(const struct nc_secrets *secrets)
{
	for (size_t i = 0; i < secrets->n; i++)
		if (!secrets->entries[i].value[0])
			return false;
	return true;
}

void nc_secrets_done(struct nc_secrets *secrets)
{
	for (size_t i = 0; i < secrets->n; i++)
		secret_done(&secrets->entries[i]);
	secrets->n = 0;
}

/* The secret whose placeholder stands in this field, and may be told to this host; NULL: none. */
static const struct nc_secret *find_secret(const struct nc_secrets *secrets,
	const struct nc_http_request *request, const struct nc_http_field *field)
{
	for (size_t i = 0; i < secrets->n; i++) {
		const struct nc_secret *secret = &secrets->entries[i];

		if (secret->tls == request->inside && secret->port == request->port &&
			secret->host.kind == request->host.kind &&
			nc_streq(secret->host.text, request->host.text) &&
			span_is(field->name, secret->header) &&
			nc_span_find(field->value, secret->placeholder))
			return secret;
	}
	return NULL;
}

static void write_secret(
	struct nc_buf *out, const struct nc_http_field *field, const struct nc_secret *secret)
{
	const char *at = nc_span_find(field->value, secret->placeholder);
	const char *behind = at + strlen(secret->placeholder);

	nc_buf_add(out, field->name.text, field->name.size);
	nc_buf_adds(out, ": ");
	nc_buf_add(out, field->value.text, (size_t)(at - field->value.text));
	nc_buf_adds(out, secret->value);
	nc_buf_add(out, behind, (size_t)(field->value.text + field->value.size - behind));
	nc_buf_adds(out, "\r\n");
}

/* ---- heads ---- */

/* What would bring a reply that cannot be searched, or a part of what would be found. */
static bool hides(struct nc_span name)
{
	return span_is(name, "accept-encoding") || span_is(name, "range") ||
	       span_is(name, "if-range");
}

void nc_http_write_request(struct nc_buf *out, const struct nc_http_request *request,
	const struct nc_secrets *secrets, bool searched)
{
	const bool bracket = request->host.kind == NC_HOST_V6;

	nc_buf_add(out, request->method_text.text, request->method_text.size);
	nc_buf_adds(out, request->path.size == 0 || request->path.text[0] != '/' ? " /" : " ");
	nc_buf_add(out, request->path.text, request->path.size);
	nc_buf_addf(out, " HTTP/1.%u\r\nHost: %s%s%s", request->head.minor, bracket ? "[" : "",
		request->host.text, bracket ? "]" : "");
	if (request->port != (request->inside ? 443 : 80))
		nc_buf_addf(out, ":%u", request->port);
	nc_buf_adds(out, "\r\n");
	for (size_t i = 0; i < request->head.n_fields; i++) {
		const struct nc_http_field *field = &request->head.fields[i];
		const struct nc_secret *secret;

		if (span_is(field->name, "host") || is_ours(&request->head, field->name) ||
			(searched && hides(field->name)))
			continue;
		secret = find_secret(secrets, request, field);
		if (secret)
			write_secret(out, field, secret);
		else
			write_field(out, field);
	}
	if (searched)
		nc_buf_adds(out, "Accept-Encoding: identity\r\n");
	nc_buf_addf(
		out, "Connection: %s\r\n\r\n", request->head.keep_alive ? "keep-alive" : "close");
}

void nc_http_write_reply(struct nc_buf *out, const struct nc_http_reply *reply, bool keep_alive)
{
	nc_buf_addf(out, "HTTP/1.1 %u ", reply->status);
	nc_buf_add(out, reply->reason.text, reply->reason.size);
	nc_buf_adds(out, "\r\n");
	for (size_t i = 0; i < reply->head.n_fields; i++)
		if (!is_ours(&reply->head, reply->head.fields[i].name))
			write_field(out, &reply->head.fields[i]);
	/* an answer on the way says nothing about the end */
	if (reply->status >= 200)
		nc_buf_addf(out, "Connection: %s\r\n", keep_alive ? "keep-alive" : "close");
	nc_buf_adds(out, "\r\n");
}
