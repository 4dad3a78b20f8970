/* The messages to and from nacre-egress, field by field. */
#include "egress/wire.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"

#define DEFAULT_CONNECTIONS 256U
#define DEFAULT_HEAD_MS 10000U
#define DEFAULT_CONNECT_MS 10000U
#define DEFAULT_IDLE_MS 300000U
/* Bytes a second: more is no limit, and less than what a counter of nanoseconds can be multiplied
 * with. */
#define RATE_MAX (UINT64_C(1) << 33)

enum secret_flag {
	SECRET_TLS = 1,
	SECRET_BARE = 2,
};

enum rule_flag {
	RULE_DENY = 1,
	RULE_INNER = 2,
};

/* ---- terms ---- */

void nc_door_terms_done(struct nc_door_terms *terms)
{
	nc_rules_done(&terms->rules);
	nc_secrets_done(&terms->secrets);
}

static void take_limits(struct nc_egress_limits *limits)
{
	if (limits->connections == 0)
		limits->connections = DEFAULT_CONNECTIONS;
	if (limits->connections > NC_EGRESS_CONNECTIONS_MAX)
		limits->connections = NC_EGRESS_CONNECTIONS_MAX;
	if (limits->names == 0 || limits->names > NC_EGRESS_NAMES_MAX)
		limits->names = NC_EGRESS_NAMES_MAX;
	if (limits->rate > RATE_MAX)
		limits->rate = RATE_MAX;
	if (limits->head_ms == 0)
		limits->head_ms = DEFAULT_HEAD_MS;
	if (limits->connect_ms == 0)
		limits->connect_ms = DEFAULT_CONNECT_MS;
	if (limits->idle_ms == 0)
		limits->idle_ms = DEFAULT_IDLE_MS;
}

/* A group has names like parts of host names, so that a host parser has read what is compared. */
static int take_membership(struct nc_door_terms *terms, const struct nc_egress_terms *from)
{
	const char *group = from->group ? from->group : "", *name = from->name ? from->name : "";
	struct nc_host host;

	if (strlen(group) > NC_EGRESS_GROUP_MAX || strlen(name) > NC_EGRESS_NAME_MAX)
		return -EINVAL;
	if (!group[0] != !name[0])
		return -EINVAL;
	if (name[0] && (nc_host_parse(name, strlen(name), &host) < 0 || strchr(name, '.') ||
			       !nc_streq(name, host.text) || nc_streq(name, "localhost")))
		return -EINVAL;
	memcpy(terms->group, group, strlen(group));
	memcpy(terms->name, name, strlen(name));
	return 0;
}

int nc_terms_init(struct nc_door_terms *terms, const struct nc_egress_terms *from)
{
	int r;

	*terms = (struct nc_door_terms){.limits = from->limits, .strict = from->strict};
	take_limits(&terms->limits);
	r = take_membership(terms, from);
	for (size_t i = 0; r == 0 && i < from->n_rules; i++)
		r = nc_rules_add(&terms->rules, &from->rules[i]);
	for (size_t i = 0; r == 0 && i < from->n_secrets; i++)
		r = nc_secrets_add(&terms->secrets, &from->secrets[i]);
	if (r < 0)
		nc_door_terms_done(terms);
	return r;
}

static void put_limits(struct nc_wire_out *out, const struct nc_egress_limits *limits)
{
	nc_wire_put_u32(out, limits->connections);
	nc_wire_put_u32(out, limits->names);
	nc_wire_put_u64(out, limits->requests);
	nc_wire_put_u64(out, limits->bytes_up);
	nc_wire_put_u64(out, limits->bytes_down);
	nc_wire_put_u64(out, limits->bytes);
	nc_wire_put_u64(out, limits->rate);
	nc_wire_put_u32(out, limits->head_ms);
	nc_wire_put_u32(out, limits->connect_ms);
	nc_wire_put_u32(out, limits->idle_ms);
}

static void get_limits(struct nc_wire_in *in, struct nc_egress_limits *limits)
{
	limits->connections = nc_wire_get_u32(in);
	limits->names = nc_wire_get_u32(in);
	limits->requests = nc_wire_get_u64(in);
	limits->bytes_up = nc_wire_get_u64(in);
	limits->bytes_down = nc_wire_get_u64(in);
	limits->bytes = nc_wire_get_u64(in);
	limits->rate = nc_wire_get_u64(in);
	limits->head_ms = nc_wire_get_u32(in);
	limits->connect_ms = nc_wire_get_u32(in);
	limits->idle_ms = nc_wire_get_u32(in);
}

static void put_rule(struct nc_wire_out *out, const struct nc_egress_rule *rule)
{
	nc_wire_put_u8(
		out, (uint8_t)((rule->deny ? RULE_DENY : 0) | (rule->inner ? RULE_INNER : 0)));
	nc_wire_put_text(out, rule->host);
	nc_wire_put_u32(out, rule->methods);
	nc_wire_put_u16(out, (uint16_t)rule->n_paths);
	for (size_t i = 0; i < rule->n_paths; i++)
		nc_wire_put_text(out, rule->paths[i]);
}

static int get_rule(struct nc_wire_in *in, struct nc_rules *rules)
{
	char host[NC_EGRESS_PATTERN_MAX + 1];
	char paths[NC_EGRESS_PATHS_MAX][NC_EGRESS_PATH_MAX + 1];
	const char *path_list[NC_EGRESS_PATHS_MAX];
	struct nc_egress_rule rule = {.host = host, .paths = path_list};
	const uint8_t flags = nc_wire_get_u8(in);

	nc_wire_get_text(in, host, NC_EGRESS_PATTERN_MAX);
	rule.deny = flags & RULE_DENY;
	rule.inner = flags & RULE_INNER;
	rule.methods = nc_wire_get_u32(in);
	rule.n_paths = nc_wire_get_u16(in);
	if (flags > (RULE_DENY | RULE_INNER) || rule.n_paths > NC_EGRESS_PATHS_MAX)
		in->error = -EBADMSG;
	for (size_t i = 0; in->error == 0 && i < rule.n_paths; i++) {
		nc_wire_get_text(in, paths[i], NC_EGRESS_PATH_MAX);
		path_list[i] = paths[i];
	}
	return in->error < 0 ? in->error : nc_rules_add(rules, &rule);
}

static void put_secret(struct nc_wire_out *out, const struct nc_egress_secret *secret)
{
	nc_wire_put_text(out, secret->placeholder);
	nc_wire_put_text(out, secret->value);
	nc_wire_put_text(out, secret->host);
	nc_wire_put_text(out, secret->header);
	nc_wire_put_u8(
		out, (uint8_t)((secret->tls ? SECRET_TLS : 0) | (secret->bare ? SECRET_BARE : 0)));
}

static int get_secret(struct nc_wire_in *in, struct nc_secrets *secrets)
{
	char placeholder[NC_EGRESS_PATH_MAX + 1], value[NC_EGRESS_SECRET_MAX + 1];
	char host[NC_EGRESS_PATTERN_MAX + 1], header[NC_EGRESS_HEADER_MAX + 1];
	struct nc_egress_secret secret = {
		.placeholder = placeholder, .value = value, .host = host, .header = header};
	uint8_t flags;
	int r;

	nc_wire_get_text(in, placeholder, NC_EGRESS_PATH_MAX);
	nc_wire_get_text(in, value, NC_EGRESS_SECRET_MAX);
	nc_wire_get_text(in, host, NC_EGRESS_PATTERN_MAX);
	nc_wire_get_text(in, header, NC_EGRESS_HEADER_MAX);
	flags = nc_wire_get_u8(in);
	if (flags > (SECRET_TLS | SECRET_BARE))
		in->error = -EBADMSG;
	secret.tls = flags & SECRET_TLS;
	secret.bare = flags & SECRET_BARE;
	r = in->error < 0 ? in->error : nc_secrets_add(secrets, &secret);
	explicit_bzero(value, sizeof(value));
	return r;
}

void nc_egresswire_put_terms(struct nc_wire_out *out, const struct nc_egress_terms *terms)
{
	nc_wire_put_u8(out, terms->strict);
	nc_wire_put_text(out, terms->group ? terms->group : "");
	nc_wire_put_text(out, terms->name ? terms->name : "");
	put_limits(out, &terms->limits);
	nc_wire_put_u16(out, (uint16_t)terms->n_rules);
	for (size_t i = 0; i < terms->n_rules; i++)
		put_rule(out, &terms->rules[i]);
	nc_wire_put_u16(out, (uint16_t)terms->n_secrets);
	for (size_t i = 0; i < terms->n_secrets; i++)
		put_secret(out, &terms->secrets[i]);
}

int nc_egresswire_get_terms(struct nc_wire_in *in, struct nc_door_terms *ret_terms)
{
	char group[NC_EGRESS_GROUP_MAX + 1], name[NC_EGRESS_NAME_MAX + 1];
	struct nc_egress_terms head = {.group = group, .name = name};
	struct nc_door_terms terms;
	size_t n;
	int wrong;

	head.strict = nc_wire_get_u8(in);
	nc_wire_get_text(in, group, NC_EGRESS_GROUP_MAX);
	nc_wire_get_text(in, name, NC_EGRESS_NAME_MAX);
	get_limits(in, &head.limits);
	wrong = nc_terms_init(&terms, &head);
	if (wrong < 0)
		terms = (struct nc_door_terms){0};
	/* after the first fault the rest is still read, since the message must end where it says */
	n = nc_wire_get_u16(in);
	for (size_t i = 0; in->error == 0 && i < n; i++) {
		int r = get_rule(in, &terms.rules);

		wrong = wrong < 0 ? wrong : r;
	}
	n = nc_wire_get_u16(in);
	for (size_t i = 0; in->error == 0 && i < n; i++) {
		int r = get_secret(in, &terms.secrets);

		wrong = wrong < 0 ? wrong : r;
	}
	if (in->error == 0 && wrong == 0)
		*ret_terms = terms;
	else
		nc_door_terms_done(&terms);
	return wrong;
}

/* ---- decisions and meters ---- */

void nc_egresswire_put_decision(struct nc_wire_out *out, const struct nc_egress_decision *decision)
{
	nc_wire_put_u64(out, decision->box);
	nc_wire_put_u8(out, (uint8_t)decision->reason);
	nc_wire_put_u8(out, (uint8_t)decision->protocol);
	nc_wire_put_u16(out, decision->port);
	nc_wire_put_u32(out, decision->dropped);
	nc_wire_put_text(out, decision->host);
	nc_wire_put_text(out, decision->address);
	nc_wire_put_text(out, decision->rule);
	nc_wire_put_text(out, decision->method);
}

void nc_egresswire_get_decision(struct nc_wire_in *in, struct nc_egress_decision *ret_decision)
{
	ret_decision->box = nc_wire_get_u64(in);
	ret_decision->reason = nc_wire_get_u8(in);
	ret_decision->protocol = nc_wire_get_u8(in);
	ret_decision->port = nc_wire_get_u16(in);
	ret_decision->dropped = nc_wire_get_u32(in);
	nc_wire_get_text(in, ret_decision->host, sizeof(ret_decision->host) - 1);
	nc_wire_get_text(in, ret_decision->address, sizeof(ret_decision->address) - 1);
	nc_wire_get_text(in, ret_decision->rule, sizeof(ret_decision->rule) - 1);
	nc_wire_get_text(in, ret_decision->method, sizeof(ret_decision->method) - 1);
	if (ret_decision->reason >= NC_REASON_MAX ||
		ret_decision->protocol >= NC_EGRESS_PROTOCOL_MAX)
		in->error = -EBADMSG;
}

void nc_egresswire_put_meter(struct nc_wire_out *out, const struct nc_egress_meter *meter)
{
	nc_wire_put_u64(out, meter->box);
	nc_wire_put_u8(out, meter->last);
	nc_wire_put_u64(out, meter->connections);
	nc_wire_put_u64(out, meter->requests);
	nc_wire_put_u64(out, meter->denied);
	nc_wire_put_u64(out, meter->failed);
	nc_wire_put_u64(out, meter->bytes_up);
	nc_wire_put_u64(out, meter->bytes_down);
	nc_wire_put_u32(out, meter->names);
	nc_wire_put_u32(out, meter->open);
	nc_wire_put_u16(out, (uint16_t)meter->n_top);
	for (size_t i = 0; i < meter->n_top; i++) {
		nc_wire_put_text(out, meter->top[i].host);
		nc_wire_put_u64(out, meter->top[i].requests);
		nc_wire_put_u64(out, meter->top[i].bytes_up);
		nc_wire_put_u64(out, meter->top[i].bytes_down);
	}
}

void nc_egresswire_get_meter(struct nc_wire_in *in, struct nc_egress_meter *ret_meter)
{
	ret_meter->box = nc_wire_get_u64(in);
	ret_meter->last = nc_wire_get_u8(in);
	ret_meter->connections = nc_wire_get_u64(in);
	ret_meter->requests = nc_wire_get_u64(in);
	ret_meter->denied = nc_wire_get_u64(in);
	ret_meter->failed = nc_wire_get_u64(in);
	ret_meter->bytes_up = nc_wire_get_u64(in);
	ret_meter->bytes_down = nc_wire_get_u64(in);
	ret_meter->names = nc_wire_get_u32(in);
	ret_meter->open = nc_wire_get_u32(in);
	ret_meter->n_top = nc_wire_get_u16(in);
	if (ret_meter->n_top > NC_EGRESS_TOP_MAX) {
		in->error = -EBADMSG;
		ret_meter->n_top = 0;
	}
	for (size_t i = 0; i < ret_meter->n_top; i++) {
		nc_wire_get_text(in, ret_meter->top[i].host, NC_HOST_TEXT_MAX);
		ret_meter->top[i].requests = nc_wire_get_u64(in);
		ret_meter->top[i].bytes_up = nc_wire_get_u64(in);
		ret_meter->top[i].bytes_down = nc_wire_get_u64(in);
	}
}
