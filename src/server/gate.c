/* Who may ask. */
#include "server/gate.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "server/reply.h"

#define LOOK_NS NC_NS_PER_S

static bool is_port(const char *text)
{
	size_t digits = strspn(text, "0123456789");

	return digits > 0 && digits <= 5 && text[digits] == '\0';
}

bool nc_gate_host_is_local(const char *host)
{
	static const char *const names[] = {"localhost", "[::1]"};
	unsigned int parts[4];
	int used = 0;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		size_t size = strlen(names[i]);

		if (strncasecmp(host, names[i], size) == 0 &&
			(!host[size] || (host[size] == ':' && is_port(host + size + 1))))
			return true;
	}
	if (strspn(host, "0123456789.") < 7 || sscanf(host, "%3u.%3u.%3u.%3u%n", &parts[0],
						       &parts[1], &parts[2], &parts[3], &used) != 4)
		return false;
	return parts[0] == 127 && parts[1] < 256 && parts[2] < 256 && parts[3] < 256 &&
	       (!host[used] || (host[used] == ':' && is_port(host + used + 1)));
}

/* Looks for another file of keys, once a second at most; a bad one changes nothing. */
static void refresh_keys(struct nc_server *server)
{
	struct nc_keys fresh = {0};
	struct nacre_err err = {0};
	uint64_t now = nc_clock_ns();

	if (now - server->keys_seen_ns < LOOK_NS)
		return;
	server->keys_seen_ns = now;
	if (!nc_keys_changed(server->setup.serve_fd, &server->keys))
		return;
	if (nc_keys_read(server->setup.serve_fd, &fresh, &err) < 0) {
		nc_log(NC_LOG_ERROR, "Keys cannot be read, keeping those we have",
			NC_LOG_TEXT("reason", err.message));
		return;
	}
	nc_keys_done(&server->keys);
	server->keys = fresh;
	nc_log(NC_LOG_INFO, "Keys were read again", NC_LOG_INT("count", (int64_t)fresh.count));
}

static void count(struct nc_server *server, const char *outcome)
{
	nc_metrics_add(server->metrics, NC_METRIC_AUTH, 1, &outcome);
}

static bool forbid(struct nc_server *server, struct nc_exchange *exchange, const char *code,
	const char *field, const char *remedy, const char *detail)
{
	count(server, code);
	nc_log(NC_LOG_WARNING, "Request refused", NC_LOG_TEXT("request", exchange->id),
		NC_LOG_TEXT("code", code));
	nc_problem(exchange, 403, code, field, remedy, "%s", detail);
	return false;
}

/*
 * What a browser says of a WebSocket beside its address are names of protocols: one of them that
 * begins so. NULL: there is none. Good until the next call.
 */
static const char *sent_protocol(const struct nc_exchange *exchange, const char *prefix)
{
	static char value[256];
	const char *at = exchange->route && exchange->route->flags & NC_ROUTE_SOCKET
				 ? nc_exchange_header(exchange, "Sec-WebSocket-Protocol")
				 : NULL;

	while (at && *at) {
		const char *rest = nc_text_after(at += strspn(at, ", \t"), prefix);

		if (rest) {
			(void)snprintf(
				value, sizeof(value), "%.*s", (int)strcspn(rest, ", \t"), rest);
			return value;
		}
		at += strcspn(at, ",");
	}
	return NULL;
}

static const char *sent_key(const struct nc_exchange *exchange)
{
	const char *header = nc_exchange_header(exchange, "Authorization");

	if (!header)
		header = nc_exchange_header(exchange, "X-API-Key");
	else if (strncasecmp(header, "Bearer ", 7) == 0)
		return header + 7 + strspn(header + 7, " ");
	else
		return "";
	return header ? header : sent_protocol(exchange, "nacre.key.");
}

static bool pass_with_key(struct nc_server *server, struct nc_exchange *exchange)
{
	const char *text = sent_key(exchange);
	const struct nc_key *key = text ? nc_keys_find(&server->keys, text) : NULL;

	if (key) {
		exchange->caller.role = key->role;
		(void)snprintf(exchange->caller.tenant, sizeof(exchange->caller.tenant), "%s",
			key->tenant);
		(void)snprintf(exchange->caller.key, sizeof(exchange->caller.key), "%s", key->id);
		count(server, "key");
		return true;
	}
	count(server, text ? "bad_key" : "no_key");
	nc_problem(exchange, 401, text ? "bad_key" : "no_key", "Authorization",
		"Send Authorization: Bearer KEY; nacre key create makes one",
		text ? "The key is not known here" : "A key is needed");
	nc_reply_header(exchange, "WWW-Authenticate", "Bearer realm=\"nacre\"");
	return false;
}

static bool pass_without_keys(struct nc_server *server, struct nc_exchange *exchange)
{
	const char *host = nc_exchange_header(exchange, "Host");

	if (!server->setup.insecure) {
		if (!nc_exchange_is_local(exchange))
			return forbid(server, exchange, "not_local", NULL,
				"Make a key: nacre key create",
				"Without keys only this machine is served");
		if (host && !nc_gate_host_is_local(host))
			return forbid(server, exchange, "foreign_host", "Host",
				"Ask for localhost or 127.0.0.1, or make a key: nacre key create",
				"Without keys only names of this machine are answered");
	}
	exchange->caller.role = NC_ROLE_ADMIN;
	count(server, "local");
	return true;
}

static bool is_same_origin(const char *origin, const char *host)
{
	const char *rest = nc_text_after(origin, "http://");

	if (!rest)
		rest = nc_text_after(origin, "https://");
	return rest && host && strcasecmp(rest, host) == 0;
}

static bool is_allowed_origin(const struct nc_server *server, const char *origin)
{
	const struct nc_value *allowed = &server->config->serve.allowed_origins;

	for (size_t i = 0; i < allowed->n_list; i++)
		if (nc_streq(allowed->list[i], origin))
			return true;
	return false;
}

static bool has_token(const struct nc_server *server, const struct nc_exchange *exchange)
{
	const char *sent = nc_exchange_header(exchange, "X-Nacre-Token");
	unsigned char ours[NC_SHA256_SIZE], theirs[NC_SHA256_SIZE];

	if (!sent)
		sent = sent_protocol(exchange, "nacre.token.");
	if (!sent)
		return false;
	nc_sha256(server->token, strlen(server->token), ours);
	nc_sha256(sent, strlen(sent), theirs);
	return nc_sha256_equal(ours, theirs);
}

/* Browsers say where they come from; whoever says nothing is none. */
static bool check_browser(struct nc_server *server, struct nc_exchange *exchange)
{
	const char *origin = nc_exchange_header(exchange, "Origin");
	const char *site = nc_exchange_header(exchange, "Sec-Fetch-Site");
	bool changes =
		(!nc_streq(exchange->method, "GET") && !nc_streq(exchange->method, "OPTIONS")) ||
		(exchange->route && exchange->route->flags & NC_ROUTE_SOCKET);
	bool page = exchange->route && exchange->route->flags & NC_ROUTE_PAGE;

	if (!origin && !site)
		return true;
	if (origin && is_allowed_origin(server, origin)) {
		exchange->origin = origin;
		return true; /* it brings a key, which its browser does not send by itself */
	}
	if (page && !changes)
		return true;
	if ((origin && !is_same_origin(origin, nc_exchange_header(exchange, "Host"))) ||
		(site && !nc_streq(site, "same-origin") && !nc_streq(site, "none")))
		return forbid(server, exchange, "foreign_origin", "Origin",
			"Name the page in allowed_origins of serve.yaml",
			"A page of somebody else's asks");
	if (changes && !server->keys.count && !has_token(server, exchange))
		return forbid(server, exchange, "no_token", "X-Nacre-Token",
			"Send what GET /v1/token answers", "A browser needs the token");
	return true;
}

bool nc_gate_pass(struct nc_server *server, struct nc_exchange *exchange)
{
	bool open = exchange->route && exchange->route->role == NC_ROLE_NONE;

	refresh_keys(server);
	if (!check_browser(server, exchange))
		return false;
	/* a page of others that is allowed still has nothing of ours without a key */
	if (exchange->origin && !server->keys.count)
		return forbid(server, exchange, "no_key", "Authorization",
			"Make a key: nacre key create", "Pages of others need a key");
	if (nc_streq(exchange->method, "OPTIONS") && exchange->origin)
		return true;
	if (server->keys.count > 0)
		return open || pass_with_key(server, exchange);
	return pass_without_keys(server, exchange);
}
