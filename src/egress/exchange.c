/* Plain HTTP: one request after another, each judged by itself, and their replies. */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "egress/conn.h"

/* Whether this host may have been sent a secret that is masked where it comes back. */
static bool is_searched(const struct nc_conn *conn)
{
	return !conn->member && nc_mask_is_wanted(&conn->door->terms.secrets, &conn->host);
}

/* ---- requests ---- */

/* The request that is served from now on; what the refusal of it says. */
static void take_request(struct nc_conn *conn, const struct nc_http_request *request)
{
	conn->protocol = request->inside   ? NC_EGRESS_INSIDE
			 : request->tunnel ? NC_EGRESS_CONNECT
					   : NC_EGRESS_HTTP;
	conn->method = request->tunnel ? NC_METHOD_OTHER : request->method;
	nc_span_copy(request->method_text, conn->method_text, sizeof(conn->method_text));
	conn->wants_more = request->head.keep_alive;
	conn->replied = conn->reused = conn->masked = false;
}

/* Whether the server of the request before is the one of this, and still there. */
static bool is_same_server(struct nc_conn *conn, const struct nc_http_request *request)
{
	if (conn->server.fd < 0 || conn->port != request->port ||
		conn->host.kind != request->host.kind ||
		!nc_streq(conn->host.text, request->host.text))
		return false;
	/* bytes that nobody asked for are not the reply to what is asked next */
	return nc_side_fill(&conn->server) == 0 && !conn->server.ended &&
	       nc_side_has(&conn->server) == 0;
}

/* Asks the server that is there; the list may have changed since it was dialled. */
static enum nc_step go_again(struct nc_conn *conn, const struct nc_wish *wish)
{
	struct nc_verdict verdict = nc_rules_judge(&conn->door->terms.rules, wish);
	const struct nc_address *address = &conn->addresses[conn->dialled - 1];
	enum nc_reason reason = verdict.reason;

	if (verdict.reach < conn->reach || conn->member) /* judge all of it anew */
		return nc_conn_go(conn, wish);
	(void)snprintf(conn->rule, sizeof(conn->rule), "%s", verdict.rule);
	if (reason == NC_REASON_ALLOWED)
		reason = nc_door_enter(conn->door, wish->host->text, &conn->destination);
	if (reason != NC_REASON_ALLOWED)
		return nc_conn_refuse(conn, reason, NULL);
	nc_conn_record(conn, NC_REASON_ALLOWED, address);
	conn->reused = true;
	nc_conn_enter(conn, NC_STAGE_EXCHANGE);
	return NC_STEP_MORE;
}

/* Puts the request on its way; it is sent when the server is there. */
static enum nc_step send_request(struct nc_conn *conn, const struct nc_http_request *request)
{
	const bool same = is_same_server(conn, request);
	const struct nc_wish wish = {.host = &conn->host,
		.port = request->port,
		.tunnel = request->tunnel,
		.method = request->method,
		.path = request->path};
	enum nc_step next;

	conn->host = request->host;
	conn->port = request->port;
	conn->asked = !request->tunnel;
	next = same ? go_again(conn, &wish) : nc_conn_go(conn, &wish);
	if (request->tunnel || conn->stage == NC_STAGE_LAST)
		return next;
	nc_http_write_request(
		&conn->server.out, request, &conn->door->terms.secrets, is_searched(conn));
	nc_door_took(conn->door, conn->destination, NC_UP, conn->server.out.size);
	nc_flow_init(&conn->flows[NC_UP], request->head.body, request->head.length, false);
	conn->flow_done[NC_UP] = conn->flow_done[NC_DOWN] = false;
	return next;
}

enum nc_step nc_conn_head(struct nc_conn *conn)
{
	struct nc_side *client = &conn->client;
	const struct nc_origin origin = {conn->host, conn->port};
	struct nc_http_request request;
	enum nc_reason reason;
	enum nc_step next;
	int r;

	if (nc_side_flush(client) < 0)
		return NC_STEP_END;
	r = nc_http_read_request(nc_side_bytes(client), nc_side_has(client),
		conn->inside ? &origin : NULL, &request, &reason);
	if (r == 0) {
		if (!conn->began && nc_side_has(client) > 0) {
			conn->began = true;
			nc_conn_deadline(conn, conn->door->terms.limits.head_ms);
		}
		if (nc_side_fill(client) > 0)
			return NC_STEP_MORE;
		return client->ended || client->readable ? NC_STEP_END : NC_STEP_WAIT;
	}
	if (r < 0 && conn->inside)
		return nc_conn_refuse(conn, reason, NULL);
	if (r < 0) {
		conn->host = (struct nc_host){0};
		conn->port = 0;
		conn->rule[0] = conn->method_text[0] = '\0';
		return nc_conn_refuse(conn, reason, NULL);
	}
	take_request(conn, &request);
	conn->began = false;
	/* who speaks into a tunnel before it is there does not know who would listen */
	if (request.tunnel && nc_side_has(client) > request.head.size)
		return nc_conn_refuse(conn, NC_REASON_MALFORMED, NULL);
	next = send_request(conn, &request);
	if (conn->stage != NC_STAGE_LAST)
		nc_side_use(client, request.head.size);
	return next;
}

/* ---- replies ---- */

static void mask_span(struct nc_mask *mask, struct nc_span span)
{
	nc_mask_text(mask, (char *)(uintptr_t)span.text, span.size);
}

static bool is_field(const struct nc_http_field *field, const char *name)
{
	return field->name.size == strlen(name) &&
	       strncasecmp(field->name.text, name, field->name.size) == 0;
}

/* Where a message ends was read, and must not be read in another way. */
static bool is_framing(const struct nc_http_field *field)
{
	return is_field(field, "content-length") || is_field(field, "transfer-encoding");
}

static bool is_encoded(const struct nc_http_head *head)
{
	for (size_t i = 0; i < head->n_fields; i++)
		if (is_field(&head->fields[i], "content-encoding") &&
			!(head->fields[i].value.size == strlen("identity") &&
				strncasecmp(head->fields[i].value.text, "identity",
					strlen("identity")) == 0))
			return true;
	return false;
}

/* The head, in the bytes that it was read from. */
static void mask_head(struct nc_mask *mask, const struct nc_http_reply *reply)
{
	mask_span(mask, reply->reason);
	for (size_t i = 0; i < reply->head.n_fields; i++) {
		mask_span(mask, reply->head.fields[i].name);
		if (!is_framing(&reply->head.fields[i]))
			mask_span(mask, reply->head.fields[i].value);
	}
}

/* Takes what is found from now on as said, or says it. */
static void say_masked(struct nc_conn *conn, const struct nc_mask *mask)
{
	if (conn->masked || nc_mask_found(mask) == 0)
		return;
	conn->masked = true;
	nc_conn_record(conn, NC_REASON_MASKED, NULL);
}

/* 0; -EBADMSG: it cannot be searched; -ENOMEM. */
static int search(struct nc_conn *conn, const struct nc_http_reply *reply)
{
	struct nc_mask *mask;

	if (reply->head.body != NC_BODY_NONE && is_encoded(&reply->head))
		return -EBADMSG;
	mask = nc_mask_new(&conn->door->terms.secrets, &conn->host);
	if (!mask)
		return -ENOMEM;
	mask_head(mask, reply);
	say_masked(conn, mask);
	if (reply->status >= 200)
		nc_flow_mask(&conn->flows[NC_DOWN], mask);
	else
		nc_mask_free(mask);
	return 0;
}

static enum nc_step take_reply(struct nc_conn *conn, const struct nc_http_reply *reply)
{
	const struct nc_http_head *head = &reply->head;
	const bool searched = is_searched(conn);

	if (reply->status >= 200) {
		nc_flow_done(&conn->flows[NC_DOWN], &conn->door->egress->pipes);
		nc_flow_init(&conn->flows[NC_DOWN], head->body, head->length, !searched);
	}
	if (searched) {
		int r = search(conn, reply);

		if (r < 0)
			return r == -EBADMSG ? nc_conn_refuse(conn, NC_REASON_UNSEARCHABLE, NULL)
					     : NC_STEP_END;
	}
	if (reply->status >= 200) {
		conn->replied = true;
		conn->again = conn->wants_more && head->body != NC_BODY_REST;
		conn->reusable = head->keep_alive && head->body != NC_BODY_REST;
	}
	nc_http_write_reply(&conn->client.out, reply, conn->again);
	nc_door_took(conn->door, conn->destination, NC_DOWN, head->size);
	nc_side_use(&conn->server, head->size);
	return NC_STEP_MORE;
}

static enum nc_step read_reply(struct nc_conn *conn)
{
	struct nc_side *server = &conn->server;
	struct nc_http_reply reply;
	int r = nc_http_read_reply(
		nc_side_bytes(server), nc_side_has(server), conn->method, &reply);
	ssize_t n;

	if (r > 0)
		return take_reply(conn, &reply);
	n = r < 0 ? 0 : nc_side_fill(server);
	if (n > 0)
		return NC_STEP_MORE;
	/* it closed while we asked again: the client knows how to repeat that, if it may */
	if (conn->reused && nc_side_has(server) == 0 && (n < 0 || server->ended))
		return NC_STEP_END;
	if (r < 0 || n < 0 || server->ended)
		return nc_conn_refuse(conn, NC_REASON_UPSTREAM, NULL);
	return NC_STEP_WAIT;
}

static enum nc_step finish(struct nc_conn *conn)
{
	int r = nc_side_flush(&conn->client);

	if (r < 0)
		return NC_STEP_END;
	/* the rest of a request that nobody read cannot be told from the next one */
	if (!conn->again || !conn->flow_done[NC_UP]) {
		nc_conn_hang_up(conn);
		nc_conn_enter(conn, NC_STAGE_LAST);
		return NC_STEP_MORE;
	}
	if (!conn->reusable)
		nc_conn_hang_up(conn);
	conn->again = conn->asked = false;
	nc_conn_enter(conn, NC_STAGE_HEAD);
	return NC_STEP_MORE;
}

enum nc_step nc_conn_exchange(struct nc_conn *conn)
{
	int state;

	if (!conn->flow_done[NC_UP]) {
		state = nc_conn_move(conn, NC_UP);
		if (state == -EBADMSG || state == -EDQUOT || state == -ENOMEM)
			return NC_STEP_END;
		if (state < 0) { /* the server reads no more; it may have said why */
			conn->flow_done[NC_UP] = true;
			conn->again = conn->wants_more = false;
		}
		conn->flow_done[NC_UP] = conn->flow_done[NC_UP] || state == NC_FLOW_DONE;
	}
	if (!conn->replied) {
		enum nc_step next = read_reply(conn);

		if (next != NC_STEP_WAIT || conn->client.out.size == 0)
			return next;
		return nc_side_flush(&conn->client) < 0 ? NC_STEP_END : NC_STEP_WAIT;
	}
	state = nc_conn_move(conn, NC_DOWN);
	if (conn->flows[NC_DOWN].mask)
		say_masked(conn, conn->flows[NC_DOWN].mask);
	if (state < 0)
		return NC_STEP_END;
	return state == NC_FLOW_DONE ? finish(conn) : NC_STEP_WAIT;
}
