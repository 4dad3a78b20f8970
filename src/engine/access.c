/* What one box may reach of the network. */
#include "engine/access.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/id.h"
#include "base/text.h"
#include "config/host.h"
#include "engine/denials.h"
#include "engine/network.h"
#include "policy/book.h"

/* Different hosts that were reached, and refused, and are told one by one; others are counted. */
#define REACHED_MAX 32
#define REFUSED_MAX 32

/* All decisions of one kind about one host. */
struct met {
	enum nc_reason reason;
	uint16_t port;
	uint64_t count;
	uint64_t told; /* of the count: by nc_access_take_denials() */
	char host[NC_HOST_TEXT_MAX + 1];
	char object[NC_HOST_TEXT_MAX + 8];
	char rule[NC_EGRESS_PATTERN_MAX + 1];
	char address[NC_ADDRESS_TEXT_SIZE]; /* the first */
};

struct met_list {
	struct met *met;
	size_t n, max;
};

struct nc_access {
	struct nc_network *network;
	struct nc_egress_terms terms;
	struct nc_egress_rule *rules;
	struct nc_egress_secret *secrets;
	struct nc_request_secrets *wanted;
	char (*placeholder)[NC_ID_SIZE];
	struct nc_door *door;
	json_t *usage; /* NULL: not known */
	void (*done)(void *context);
	void *context;
	struct met_list reached, refused;
	uint64_t uncounted;	 /* decisions that are in neither */
	enum nc_policy_over how; /* the stricter of policy and request */
	nc_access_over *over;
	void *over_context;
	char group[NC_EGRESS_GROUP_MAX + 1], name[NC_EGRESS_NAME_MAX + 1];
};

/* Whether everything that the wanted pattern means is within the allowed one. */
static bool covers(const char *allowed_text, const char *wanted_text)
{
	struct nc_host_pattern allowed, wanted;
	size_t inner, outer;

	if (nc_host_parse_pattern(allowed_text, &allowed) < 0 ||
		nc_host_parse_pattern(wanted_text, &wanted) < 0 ||
		(allowed.port != wanted.port && allowed.port != 0) ||
		/* an entry without a port means 80 and 443 */
		(allowed.port == 0 && wanted.port != 0 && wanted.port != 80 && wanted.port != 443))
		return false;
	if (!allowed.wild || allowed.host.kind != NC_HOST_NAME)
		return !wanted.wild && nc_streq(allowed.host.text, wanted.host.text);
	inner = strlen(wanted.host.text);
	outer = strlen(allowed.host.text);
	if (wanted.wild && inner == outer)
		return nc_streq(allowed.host.text, wanted.host.text);
	return inner > outer && wanted.host.text[inner - outer - 1] == '.' &&
	       nc_streq(wanted.host.text + inner - outer, allowed.host.text);
}

static bool is_covered(const struct nc_value *list, const char *host)
{
	for (size_t i = 0; i < list->n_list; i++)
		if (covers(list->list[i], host))
			return true;
	return false;
}

/*
 * A policy that names hosts allows those and no others. One that names none leaves it to a caller
 * who owns the machine, unless it is strict.
 */
static int check_wanted(
	const struct nc_terms *terms, bool trusted, const char *host, struct nacre_err *err)
{
	const struct nc_value *allow = &terms->values.network.allow;
	const struct nc_value *inner = &terms->values.network.inner;

	if (is_covered(allow, host) || is_covered(inner, host))
		return 0;
	if (!allow->given && !inner->given && trusted && terms->profile != NC_PROFILE_STRICT)
		return 0;
	return nc_err_set(err, -EPERM,
		"network.allow: the policy '%s' does not allow '%s'; add it to network.allow of "
		"the policy",
		terms->policy, host);
}

/* Room for so many rules. */
static int make_access(struct nc_network *network, size_t n_rules, struct nc_access **ret_access,
	struct nacre_err *err)
{
	struct nc_access *access;

	if (!nc_network_is_up(network))
		return nc_err_set(err, -EOPNOTSUPP,
			"There is no way out of a box here: nacre-egress does not run, or does not "
			"answer");
	access = calloc(1, sizeof(*access));
	if (access)
		access->rules = calloc(n_rules + 1, sizeof(*access->rules));
	if (!access || !access->rules) {
		free(access);
		return nc_err_errno(err, -ENOMEM, "Open the network");
	}
	access->network = network;
	access->terms.rules = access->rules;
	access->reached.max = REACHED_MAX;
	access->refused.max = REFUSED_MAX;
	*ret_access = access;
	return 0;
}

static void add_rule(struct nc_access *access, const char *host, bool inner)
{
	access->rules[access->terms.n_rules++] =
		(struct nc_egress_rule){.host = host, .inner = inner};
}

int nc_access_new_for(struct nc_network *network, const char *const *hosts, size_t n_hosts,
	struct nc_access **ret_access, struct nacre_err *err)
{
	int r = make_access(network, n_hosts, ret_access, err);

	for (size_t i = 0; r == 0 && i < n_hosts; i++)
		add_rule(*ret_access, hosts[i], true);
	return r;
}

/* The value goes to nacre-egress, and is erased here. */
static int hand_over(struct nc_access *access, size_t i, struct nacre_err *err)
{
	struct nc_request_secret *secret = &access->wanted->secret[i];
	int r;

	if (access->wanted->handed_over)
		return 0;
	r = nc_network_keep(access->network, access->placeholder[i], secret->value, err);
	nc_request_secret_forget(secret);
	return r;
}

/* Each is bound to a host that can be reached; boxes are told what nobody can guess. */
static int add_secrets(
	struct nc_access *access, struct nc_request_secrets *wanted, struct nacre_err *err)
{
	int r = 0;

	access->wanted = wanted;
	access->secrets = calloc(wanted->count + 1, sizeof(*access->secrets));
	access->placeholder = calloc(wanted->count + 1, sizeof(*access->placeholder));
	if (!access->secrets || !access->placeholder)
		return nc_err_errno(err, -ENOMEM, "Take the secrets");
	for (size_t i = 0; r == 0 && i < wanted->count; i++) {
		const struct nc_request_secret *secret = &wanted->secret[i];
		bool reached = false;

		for (size_t k = 0; k < access->terms.n_rules; k++)
			reached |= covers(access->rules[k].host, secret->host);
		if (!reached)
			return nc_err_set(err, -EPERM,
				"secrets.%s: its host '%s' is not among those that may be reached",
				secret->name, secret->host);
		if (nc_id_new("sk", access->placeholder[i]) < 0)
			return nc_err_set(err, -EIO, "Make an id");
		access->secrets[i] =
			(struct nc_egress_secret){.placeholder = access->placeholder[i],
				.value = "",
				.host = secret->host,
				.header = secret->header,
				.tls = !secret->plain,
				.bare = !secret->mask};
		access->terms.secrets = access->secrets;
		access->terms.n_secrets = i + 1;
		r = hand_over(access, i, err);
	}
	wanted->handed_over = true;
	return r;
}

/* Only others of its group, which nobody has to list. */
static int join_group(struct nc_access *access, const char *tenant,
	const struct nc_request_network *wanted, struct nacre_err *err)
{
	/* no name of a tenant has a slash, so that nobody else's group is called so */
	(void)snprintf(access->group, sizeof(access->group), "%s/%s", tenant, wanted->group);
	(void)snprintf(access->name, sizeof(access->name), "%s", wanted->name);
	access->terms.group = access->group;
	access->terms.name = access->name;
	if (nc_network_has_member(access->network, access->group, wanted->name))
		return nc_err_set(err, -EPERM,
			"network.name: another box of the group '%s' is '%s'", wanted->group,
			wanted->name);
	return 0;
}

/* Hosts of the request, within the policy's; or all of these. */
static int list_hosts(struct nc_access *access, const struct nc_terms *terms,
	const struct nc_request_network *wanted, struct nacre_err *err)
{
	const struct nc_value *allow = &terms->values.network.allow;
	const struct nc_value *inner = &terms->values.network.inner;
	int r = 0;

	for (size_t i = 0; r == 0 && i < wanted->allow.count; i++) {
		const char *host = wanted->allow.words[i];

		r = check_wanted(terms, wanted->trusted, host, err);
		add_rule(access, host, is_covered(inner, host));
	}
	if (r < 0 || wanted->allow.count > 0)
		return r;
	for (size_t i = 0; i < allow->n_list; i++)
		add_rule(access, allow->list[i], false);
	for (size_t i = 0; i < inner->n_list; i++)
		add_rule(access, inner->list[i], true);
	return access->terms.n_rules > 0
		       ? 0
		       : nc_err_set(err, -EPERM,
				 "network_access: the policy '%s' names no host that could be "
				 "reached; name them in the request (network.allow, --allow) or in "
				 "the policy",
				 terms->policy);
}

static bool wants_network(const struct nc_request_network *wanted)
{
	return wanted->mode != NC_NETWORK_NONE &&
	       (wanted->mode != NC_NETWORK_UNSAID || wanted->access || wanted->allow.count > 0);
}

/* Without group and secrets. *ret_access is NULL if nothing is wanted. */
static int decide(struct nc_network *network, const struct nc_terms *terms,
	const struct nc_request_network *wanted, struct nc_access **ret_access,
	struct nacre_err *err)
{
	const size_t most = wanted->allow.count + terms->values.network.allow.n_list +
			    terms->values.network.inner.n_list;
	struct nc_access *access = NULL;
	int r;

	*ret_access = NULL;
	if (!wants_network(wanted))
		return 0;
	r = make_access(network, most, &access, err);
	if (r < 0 || !access)
		return r;
	access->how = (enum nc_policy_over)terms->values.network.over_budget.number;
	if (access->how < wanted->over)
		access->how = wanted->over;
	access->terms.strict = wanted->strict;
	access->terms.limits.bytes = wanted->bytes.value;
	access->terms.limits.requests = wanted->requests.value;
	access->terms.limits.rate = wanted->rate_mbps.value * 125000;
	if (wanted->mode != NC_NETWORK_ISOLATED)
		r = list_hosts(access, terms, wanted, err);
	if (r < 0)
		nc_access_free(access);
	else
		*ret_access = access;
	return r;
}

int nc_access_new(struct nc_network *network, const struct nc_terms *terms, const char *tenant,
	struct nc_request_network *wanted, struct nc_access **ret_access, struct nacre_err *err)
{
	struct nc_access *access;
	int r = decide(network, terms, wanted, &access, err);

	*ret_access = NULL;
	if (r < 0)
		return r;
	if (!access)
		return wanted->secrets.count == 0
			       ? 0
			       : nc_err_set(err, -EPERM,
					 "secrets: nothing can be reached; name their hosts in "
					 "network.allow");
	if (wanted->mode == NC_NETWORK_ISOLATED)
		r = join_group(access, tenant, wanted, err);
	if (r == 0)
		r = add_secrets(access, &wanted->secrets, err);
	if (r < 0)
		nc_access_free(access);
	else
		*ret_access = access;
	return r;
}

void nc_access_free(struct nc_access *access)
{
	if (!access)
		return;
	nc_access_leave(access);
	for (size_t i = 0; i < access->terms.n_secrets; i++)
		nc_network_drop(access->network, access->placeholder[i]);
	json_decref(access->usage);
	free(access->reached.met);
	free(access->refused.met);
	free(access->rules);
	free(access->secrets);
	free(access->placeholder);
	free(access);
}

static struct met *find_met(struct met_list *list, const struct nc_egress_decision *decision)
{
	for (size_t i = 0; i < list->n; i++)
		if (list->met[i].reason == decision->reason &&
			list->met[i].port == decision->port &&
			nc_streq(list->met[i].host, decision->host))
			return &list->met[i];
	return NULL;
}

/* NULL: there are too many. */
static struct met *add_met(struct met_list *list, const struct nc_egress_decision *decision)
{
	struct met *met;

	if (!list->met)
		list->met = calloc(list->max, sizeof(*list->met));
	if (!list->met || list->n == list->max)
		return NULL;
	met = &list->met[list->n++];
	*met = (struct met){.reason = decision->reason, .port = decision->port};
	memcpy(met->host, decision->host, sizeof(met->host));
	memcpy(met->rule, decision->rule, sizeof(met->rule));
	memcpy(met->address, decision->address, sizeof(met->address));
	(void)snprintf(met->object, sizeof(met->object), decision->port ? "%s:%u" : "%s", met->host,
		decision->port);
	return met;
}

static void on_decided(void *context, const struct nc_egress_decision *decision)
{
	struct nc_access *access = context;
	struct met_list *list =
		decision->reason == NC_REASON_ALLOWED ? &access->reached : &access->refused;
	struct met *met = find_met(list, decision);

	if (!met)
		met = add_met(list, decision);
	if (met)
		met->count++;
	access->uncounted += decision->dropped + (met ? 0 : 1);
}

static void on_over(void *context, enum nc_reason reason)
{
	struct nc_access *access = context;

	if (access->over && access->how != NC_OVER_REFUSE)
		access->over(access->over_context, reason, access->how);
}

static void on_metered(void *context, const struct nc_egress_meter *meter)
{
	struct nc_access *access = context;

	json_decref(access->usage);
	access->usage = nc_door_meter_json(meter);
}

static void on_shut(void *context, const struct nc_egress_meter *meter)
{
	struct nc_access *access = context;

	access->door = NULL;
	if (meter)
		on_metered(access, meter);
	if (access->done)
		access->done(access->context);
}

static struct nc_door_listener listener_of(struct nc_access *access)
{
	return (struct nc_door_listener){.context = access,
		.decided = on_decided,
		.over = on_over,
		.metered = on_metered,
		.shut = on_shut};
}

int nc_access_open(struct nc_access *access, uint64_t box_id, int door_fd, struct nacre_err *err)
{
	const struct nc_door_listener listener = listener_of(access);

	return nc_door_open(
		access->network, box_id, door_fd, &access->terms, &listener, &access->door, err);
}

void nc_access_on_over(struct nc_access *access, nc_access_over *over, void *context)
{
	access->over = over;
	access->over_context = context;
}

/* Sockets for guests are made with the box, so that it stays in its group, or in none. */
static int check_mode(const struct nc_access *access, const struct nc_request_network *wanted,
	struct nacre_err *err)
{
	const char *slash = strchr(access->group, '/');

	if ((wanted->mode == NC_NETWORK_ISOLATED) != (slash != NULL))
		return nc_err_set(err, -EINVAL,
			"network.mode: what was made isolated stays so, and nothing becomes it");
	if (slash && (!nc_streq(slash + 1, wanted->group) || !nc_streq(access->name, wanted->name)))
		return nc_err_set(err, -EINVAL, "network.name: it stays '%s' in the group '%s'",
			access->name, slash + 1);
	return 0;
}

json_t *nc_access_placeholders(const struct nc_access *access)
{
	json_t *list = json_array();

	for (size_t i = 0; access && i < access->terms.n_secrets; i++)
		(void)json_array_append_new(list, json_string(access->placeholder[i]));
	return list;
}

void nc_access_resume(struct nc_access *access, uint64_t box_id, const json_t *placeholders)
{
	const struct nc_door_listener listener = listener_of(access);

	for (size_t i = 0; i < access->terms.n_secrets; i++) {
		const char *text = json_string_value(json_array_get(placeholders, i));

		if (text)
			(void)snprintf(access->placeholder[i], NC_ID_SIZE, "%s", text);
	}
	access->door = nc_door_adopt(access->network, box_id, &access->terms, &listener);
}

int nc_access_change(struct nc_access *access, const struct nc_terms *terms,
	const struct nc_request_network *wanted, struct nacre_err *err)
{
	struct nc_access *fresh = NULL;
	struct nc_egress_rule *old = access->rules;
	int r;

	r = check_mode(access, wanted, err);
	if (r == 0)
		r = decide(access->network, terms, wanted, &fresh, err);
	if (r == 0 && !fresh)
		r = nc_err_set(err, -EINVAL, "network: name the hosts that it may reach");
	if (r < 0 || !fresh)
		return r;
	fresh->terms.group = access->terms.group;
	fresh->terms.name = access->terms.name;
	fresh->terms.secrets = access->terms.secrets;
	fresh->terms.n_secrets = access->terms.n_secrets;
	r = nc_door_change(access->door, &fresh->terms, err);
	if (r == 0) {
		access->terms = fresh->terms;
		access->how = fresh->how;
		access->rules = fresh->rules;
		fresh->rules = old;
	}
	fresh->terms.secrets = NULL;
	fresh->terms.n_secrets = 0;
	nc_access_free(fresh);
	return r;
}

bool nc_access_is_open(const struct nc_access *access)
{
	return access && access->door;
}

void nc_access_close(struct nc_access *access, void (*done)(void *context), void *context)
{
	access->done = done;
	access->context = context;
	nc_door_shut(access->door);
}

void nc_access_leave(struct nc_access *access)
{
	if (!access)
		return;
	nc_door_drop(access->door);
	access->door = NULL;
}

static bool has_tls_secrets(const struct nc_access *access)
{
	for (size_t i = 0; i < access->terms.n_secrets; i++)
		if (access->secrets[i].tls)
			return true;
	return false;
}

const struct nc_buf *nc_access_trusted(const struct nc_access *access)
{
	return access && has_tls_secrets(access) ? nc_network_trusted(access->network) : NULL;
}

void nc_access_words(const struct nc_access *access, const char *workspace, struct nc_buf *words)
{
	static const char *const names[] = {"SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE",
		"NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO", "PIP_CERT"};

	if (!access)
		return;
	for (const char *const *proxy = nc_egress_variables(); *proxy; proxy++)
		nc_buf_add(words, *proxy, strlen(*proxy) + 1);
	for (size_t i = 0; nc_access_trusted(access) && i < sizeof(names) / sizeof(names[0]); i++)
		nc_buf_addf(words, "%s=%s/%s%c", names[i], workspace, NC_ACCESS_TRUSTED, '\0');
	for (size_t i = 0; i < access->terms.n_secrets; i++)
		nc_buf_addf(words, "%s=%s%c", access->wanted->secret[i].name,
			access->placeholder[i], '\0');
}

void nc_access_ask(struct nc_access *access)
{
	if (nc_access_is_open(access))
		nc_door_ask(access->door);
}

json_t *nc_access_usage(const struct nc_access *access)
{
	return access && access->usage ? json_incref(access->usage) : json_null();
}

static int add_denial(json_t *list, const struct met *refused, uint64_t count)
{
	struct nc_denial denial = {.layer = "egress",
		.rule = "network.allow",
		.object = refused->object,
		.count = count,
		.message = nc_reason_text(refused->reason),
		.allow_with = nc_reason_remedy(refused->reason),
		.instead = "Pass the data in as `files` or `inputs`"};

	(void)snprintf(denial.id, sizeof(denial.id), "%s", nc_reason_id(refused->reason));
	return nc_denials_add(list, &denial);
}

int nc_access_denials(const struct nc_access *access, json_t *list)
{
	int r = 0;

	for (size_t i = 0; access && r == 0 && i < access->refused.n; i++)
		r = add_denial(list, &access->refused.met[i], access->refused.met[i].count);
	return r;
}

int nc_access_take_denials(struct nc_access *access, json_t *list)
{
	int r = 0;

	for (size_t i = 0; access && r == 0 && i < access->refused.n; i++) {
		struct met *refused = &access->refused.met[i];

		if (refused->count == refused->told)
			continue;
		r = add_denial(list, refused, refused->count - refused->told);
		refused->told = refused->count;
	}
	return r;
}

static int append_met(json_t *list, const struct met_list *met_list)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < met_list->n; i++) {
		const struct met *met = &met_list->met[i];

		r = json_array_append_new(
			list, json_pack("{s:s, s:i, s:s, s:I, s:s, s:s}", "host", met->host, "port",
				      (int)met->port, "decision", nc_reason_id(met->reason),
				      "count", (json_int_t)met->count, "rule", met->rule, "address",
				      met->address));
	}
	return r;
}

json_t *nc_access_decisions(const struct nc_access *access)
{
	json_t *list = json_array();

	if (!access || append_met(list, &access->reached) < 0 ||
		append_met(list, &access->refused) < 0) {
		json_decref(list);
		return json_null();
	}
	return json_pack(
		"{s:o, s:I}", "destinations", list, "uncounted", (json_int_t)access->uncounted);
}

bool nc_access_has_guests(const struct nc_access *access)
{
	return access && access->terms.group;
}
