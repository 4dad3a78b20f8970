/* The heads of HTTP/1 messages: reading them. */
#include "egress/http.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/parse.h"
#include "base/text.h"

/* Digits of a length: 10^18 bytes. */
#define LENGTH_DIGITS_MAX 18U

static bool is_token_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c != '\0' && strchr("!#$%&'*+-.^_`|~", c));
}

static bool is_token(struct nc_span text)
{
	for (size_t i = 0; i < text.size; i++)
		if (!is_token_char(text.text[i]))
			return false;
	return text.size > 0;
}

static bool span_is(struct nc_span span, const char *word)
{
	return span.size == strlen(word) && strncasecmp(span.text, word, span.size) == 0;
}

static struct nc_span trim(struct nc_span span)
{
	while (span.size > 0 && (span.text[0] == ' ' || span.text[0] == '\t')) {
		span.text++;
		span.size--;
	}
	while (span.size > 0 &&
		(span.text[span.size - 1] == ' ' || span.text[span.size - 1] == '\t'))
		span.size--;
	return span;
}

/* Takes what stands before the first c off rest; false if there is no c. */
static bool take_until(struct nc_span *rest, char c, struct nc_span *ret_part)
{
	const char *at = memchr(rest->text, c, rest->size);

	if (!at)
		return false;
	*ret_part = (struct nc_span){rest->text, (size_t)(at - rest->text)};
	rest->text = at + 1;
	rest->size -= ret_part->size + 1;
	return true;
}

/* A line with its CR LF; the head was found to have no other line ends. */
static struct nc_span take_line(struct nc_span *rest)
{
	struct nc_span line = *rest;

	if (!take_until(rest, '\n', &line))
		rest->size = 0;
	if (line.size > 0 && line.text[line.size - 1] == '\r')
		line.size--;
	return line;
}

/* The size of a head whose lines all end in CR LF; 0: it is not complete; -EBADMSG. */
static ssize_t find_head(const char *data, size_t size)
{
	size_t line = 0;

	for (size_t i = 0; i < size; i++) {
		if (data[i] == '\0' || (data[i] == '\n' && (i == 0 || data[i - 1] != '\r')) ||
			(data[i] == '\r' && i + 1 < size && data[i + 1] != '\n'))
			return -EBADMSG;
		if (data[i] != '\n')
			continue;
		if (i == line + 1)
			return (ssize_t)i + 1;
		line = i + 1;
	}
	return size >= NC_EGRESS_HEAD_MAX ? -EBADMSG : 0;
}

/* ---- fields ---- */

static int read_fields(struct nc_span rest, struct nc_http_head *head)
{
	for (;;) {
		struct nc_span line = take_line(&rest);
		struct nc_http_field *field = &head->fields[head->n_fields];

		if (line.size == 0)
			return 0;
		if (head->n_fields == NC_EGRESS_FIELDS_MAX)
			return -EBADMSG;
		/* a blank before the colon, and a folded line, are no token */
		if (!take_until(&line, ':', &field->name) || !is_token(field->name))
			return -EBADMSG;
		field->value = trim(line);
		for (size_t i = 0; i < field->value.size; i++) {
			const unsigned char c = (unsigned char)field->value.text[i];

			if ((c < 0x20 && c != '\t') || c == 0x7f)
				return -EBADMSG;
		}
		head->n_fields++;
	}
}

static int read_length(struct nc_span value, uint64_t *ret_length)
{
	char digits[LENGTH_DIGITS_MAX + 1] = "";

	if (value.size > LENGTH_DIGITS_MAX)
		return -EBADMSG;
	memcpy(digits, value.text, value.size);
	return nc_parse_u64(digits, 0, UINT64_MAX, ret_length) < 0 ? -EBADMSG : 0;
}

/* Fields that say where the message ends, or whom it is for, are nobody's to remove. */
static bool is_vital(struct nc_span name)
{
	return span_is(name, "content-length") || span_is(name, "transfer-encoding") ||
	       span_is(name, "host") || span_is(name, "connection");
}

static int read_connection(struct nc_span value, struct nc_http_head *head)
{
	while (value.size > 0) {
		struct nc_span word = value;

		if (!take_until(&value, ',', &word))
			value.size = 0;
		word = trim(word);
		if (word.size == 0)
			continue;
		if (span_is(word, "close"))
			head->keep_alive = false;
		else if (span_is(word, "keep-alive"))
			continue; /* the default of HTTP/1.1; HTTP/1.0 gets no second request */
		else if (!is_token(word) || is_vital(word) ||
			 head->n_connection == sizeof(head->connection) / sizeof(word))
			return -EBADMSG;
		else
			head->connection[head->n_connection++] = word;
	}
	return 0;
}

/* Where the body ends, which must be said once and in one way. */
static int read_framing(struct nc_http_head *head)
{
	unsigned int lengths = 0, encodings = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < head->n_fields; i++) {
		const struct nc_http_field *field = &head->fields[i];

		if (span_is(field->name, "content-length")) {
			lengths++;
			head->body = NC_BODY_LENGTH;
			r = read_length(field->value, &head->length);
		} else if (span_is(field->name, "transfer-encoding")) {
			encodings++;
			head->body = NC_BODY_CHUNKED;
			r = span_is(field->value, "chunked") ? 0 : -EBADMSG;
		} else if (span_is(field->name, "connection") ||
			   span_is(field->name, "proxy-connection")) {
			r = read_connection(field->value, head);
		}
	}
	if (lengths + encodings > 1 || (encodings > 0 && head->minor == 0))
		return -EBADMSG;
	return r;
}

static int read_version(struct nc_span version, struct nc_http_head *head)
{
	if (version.size != 8 || memcmp(version.text, "HTTP/1.", 7) != 0 ||
		(version.text[7] != '0' && version.text[7] != '1'))
		return -EBADMSG;
	head->minor = version.text[7] == '1';
	head->keep_alive = head->minor == 1;
	return 0;
}

/* ---- requests ---- */

static enum nc_method method_of(struct nc_span text)
{
	static const char *const names[] = {
#define X(name) [NC_METHOD_##name] = #name,
		NC_METHODS(X)
#undef X
	};

	/* unlike other words these have one case */
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (text.size == strlen(names[i]) && memcmp(text.text, names[i], text.size) == 0)
			return (enum nc_method)i;
	return NC_METHOD_OTHER;
}

static int read_tunnel(struct nc_span target, struct nc_http_request *request)
{
	request->path = (struct nc_span){"", 0};
	if (nc_host_parse_port(target.text, target.size, &request->host, &request->port) < 0 ||
		request->port == 0)
		return -EINVAL;
	return 0;
}

/* "http://host[:port][/path][?query]" */
static int read_absolute(struct nc_span target, struct nc_http_request *request)
{
	struct nc_span authority;

	for (size_t i = 0; i < target.size; i++)
		if (target.text[i] <= ' ' || target.text[i] > '~' || target.text[i] == '#')
			return -EBADMSG;
	if (target.size < 7 || strncasecmp(target.text, "http://", 7) != 0)
		return -ENOENT;
	authority = (struct nc_span){target.text + 7, 0};
	while (authority.size + 7 < target.size && !strchr("/?", authority.text[authority.size]))
		authority.size++;
	request->path =
		(struct nc_span){authority.text + authority.size, target.size - 7 - authority.size};
	if (nc_host_parse_port(authority.text, authority.size, &request->host, &request->port) < 0)
		return -EINVAL;
	if (request->port == 0)
		request->port = 80;
	return 0;
}

/* "/path", to a host that is known */
static int read_origin(struct nc_span target, struct nc_http_request *request)
{
	for (size_t i = 0; i < target.size; i++)
		if (target.text[i] <= ' ' || target.text[i] > '~' || target.text[i] == '#')
			return -EBADMSG;
	request->path = target;
	return target.text[0] == '/' ? 0 : -EBADMSG;
}

/* Host must be there once and name the host of the target: some would believe the one, some the
 * other. */
static int check_host(const struct nc_http_request *request)
{
	unsigned int hosts = 0;

	for (size_t i = 0; i < request->head.n_fields; i++) {
		const struct nc_http_field *field = &request->head.fields[i];
		struct nc_host host;
		uint16_t port;

		if (!span_is(field->name, "host"))
			continue;
		hosts++;
		if (nc_host_parse_port(field->value.text, field->value.size, &host, &port) < 0 ||
			host.kind != request->host.kind || !nc_streq(host.text, request->host.text))
			return -EBADMSG;
		/* who asks for a tunnel may leave the port of TLS away */
		if (port != request->port &&
			!(port == 0 &&
				(request->tunnel || request->port == (request->inside ? 443 : 80))))
			return -EBADMSG;
	}
	return hosts == 1 || (hosts == 0 && request->head.minor == 0) ? 0 : -EBADMSG;
}

static int read_request_line(struct nc_span line, struct nc_http_request *request)
{
	struct nc_span target;
	int r;

	if (!take_until(&line, ' ', &request->method_text) || !is_token(request->method_text) ||
		!take_until(&line, ' ', &target) || target.size == 0)
		return -EBADMSG;
	r = read_version(line, &request->head);
	if (r < 0)
		return r;
	request->method = method_of(request->method_text);
	request->tunnel = request->method_text.size == 7 &&
			  memcmp(request->method_text.text, "CONNECT", 7) == 0;
	if (request->inside)
		return request->tunnel ? -EBADMSG : read_origin(target, request);
	return request->tunnel ? read_tunnel(target, request) : read_absolute(target, request);
}

static enum nc_reason reason_of(int error)
{
	return error == -EINVAL	  ? NC_REASON_SPELLING
	       : error == -ENOENT ? NC_REASON_NOT_FOR_PROXY
				  : NC_REASON_MALFORMED;
}

int nc_http_read_request(const char *data, size_t size, const struct nc_origin *origin,
	struct nc_http_request *ret_request, enum nc_reason *ret_reason)
{
	struct nc_http_request *request = ret_request;
	ssize_t head_size = find_head(data, size);
	struct nc_span rest = {data, head_size > 0 ? (size_t)head_size : 0};
	int r;

	*ret_reason = NC_REASON_MALFORMED;
	if (head_size <= 0)
		return (int)head_size;
	memset(request, 0, sizeof(*request));
	request->head.size = (size_t)head_size;
	request->inside = origin != NULL;
	if (origin) {
		request->host = origin->host;
		request->port = origin->port;
	}
	r = read_request_line(take_line(&rest), request);
	if (r == 0)
		r = read_fields(rest, &request->head);
	if (r == 0)
		r = read_framing(&request->head);
	if (r == 0)
		r = check_host(request);
	if (r == 0 && request->tunnel && request->head.body != NC_BODY_NONE)
		r = -EBADMSG;
	*ret_reason = reason_of(r);
	return r < 0 ? -EBADMSG : 1;
}

/* ---- replies ---- */

static int read_status_line(struct nc_span line, struct nc_http_reply *reply)
{
	struct nc_span version, code = line;
	int r;

	if (!take_until(&line, ' ', &version))
		return -EBADMSG;
	r = read_version(version, &reply->head);
	if (r < 0)
		return r;
	/* some leave the blank away that stands before a reason which is not there */
	code = line;
	if (take_until(&line, ' ', &code))
		reply->reason = line;
	if (code.size != 3 || code.text[0] < '1' || code.text[0] > '5')
		return -EBADMSG;
	for (size_t i = 0; i < code.size; i++) {
		if (code.text[i] < '0' || code.text[i] > '9')
			return -EBADMSG;
		reply->status = reply->status * 10 + (unsigned int)(code.text[i] - '0');
	}
	for (size_t i = 0; i < reply->reason.size; i++)
		if ((unsigned char)reply->reason.text[i] < 0x20 || reply->reason.text[i] == 0x7f)
			return -EBADMSG;
	return 0;
}

int nc_http_read_reply(
	const char *data, size_t size, enum nc_method method, struct nc_http_reply *ret_reply)
{
	struct nc_http_reply *reply = ret_reply;
	ssize_t head_size = find_head(data, size);
	struct nc_span rest = {data, head_size > 0 ? (size_t)head_size : 0};
	int r;

	if (head_size <= 0)
		return (int)head_size;
	memset(reply, 0, sizeof(*reply));
	reply->head.size = (size_t)head_size;
	r = read_status_line(take_line(&rest), reply);
	if (r == 0)
		r = read_fields(rest, &reply->head);
	if (r == 0)
		r = read_framing(&reply->head);
	/* nobody asked to speak another protocol */
	if (r < 0 || reply->status == 101)
		return -EBADMSG;
	if (method == NC_METHOD_HEAD || reply->status < 200 || reply->status == 204 ||
		reply->status == 304) {
		reply->head.body = NC_BODY_NONE;
		reply->head.length = 0;
	} else if (reply->head.body == NC_BODY_NONE) {
		reply->head.body = NC_BODY_REST;
	}
	return 1;
}
