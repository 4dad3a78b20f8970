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

/* Different hosts that were refused and are told; the count goes on. */
#define REFUSED_MAX 32

struct refused {
	enum nc_reason reason;
	uint16_t port;
	uint64_t count;
	char host[NC_HOST_TEXT_MAX + 1];
	char object[NC_HOST_TEXT_MAX + 8];
};

struct nc_access {
	struct nc_network *network;
	struct nc_egress_terms terms;
	struct nc_egress_rule *rules;
	struct nc_egress_secret *secrets;
	const struct nc_request_secrets *wanted;
	char (*placeholder)[NC_ID_SIZE];
	struct nc_door *door;
	json_t *usage; /* NULL: not known */
	void (*done)(void *context);
	void *context;
	struct refused refused[REFUSED_MAX];
	size_t n_refused;
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

/*
 * A policy that names hosts allows those and no others. One that names none leaves it to a caller
 * who owns the machine, unless it is strict.
 */
static int check_wanted(
	const struct nc_terms *terms, bool trusted, const char *host, struct nacre_err *err)
{
	const struct nc_value *allow = &terms->values.network.allow;

	for (size_t i = 0; i < allow->n_list; i++)
		if (covers(allow->list[i], host))
			return 0;
	if (!allow->given && trusted && terms->profile != NC_PROFILE_STRICT)
		return 0;
	return nc_err_set(err, -EPERM,
		"network.allow: the policy '%s' does not allow '%s'; add it to network.allow of "
		"the policy",
		terms->policy, host);
}

static int make_access(struct nc_network *network, const char *const *hosts, size_t n_hosts,
	bool inner, struct nc_access **ret_access, struct nacre_err *err)
{
	struct nc_access *access;

	if (!nc_network_is_up(network))
		return nc_err_set(err, -EOPNOTSUPP,
			"There is no way out of a box here: nacre-egress does not run");
	access = calloc(1, sizeof(*access));
	if (access)
		access->rules = calloc(n_hosts + 1, sizeof(*access->rules));
	if (!access || !access->rules) {
		free(access);
		return nc_err_errno(err, -ENOMEM, "Open the network");
	}
	for (size_t i = 0; i < n_hosts; i++)
		access->rules[i] = (struct nc_egress_rule){.host = hosts[i], .inner = inner};
	access->network = network;
	access->terms.rules = access->rules;
	access->terms.n_rules = n_hosts;
	*ret_access = access;
	return 0;
}

int nc_access_new_for(struct nc_network *network, const char *const *hosts, size_t n_hosts,
	struct nc_access **ret_access, struct nacre_err *err)
{
	return make_access(network, hosts, n_hosts, true, ret_access, err);
}

/* Each is bound to a host that can be reached; boxes are told what nobody can guess. */
static int add_secrets(
	struct nc_access *access, const struct nc_request_secrets *wanted, struct nacre_err *err)
{
	access->wanted = wanted;
	access->secrets = calloc(wanted->count + 1, sizeof(*access->secrets));
	access->placeholder = calloc(wanted->count + 1, sizeof(*access->placeholder));
	if (!access->secrets || !access->placeholder)
		return nc_err_errno(err, -ENOMEM, "Take the secrets");
	for (size_t i = 0; i < wanted->count; i++) {
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
				.value = secret->value,
				.host = secret->host,
				.header = secret->header,
				.tls = !secret->plain};
	}
	access->terms.secrets = access->secrets;
	access->terms.n_secrets = wanted->count;
	return 0;
}

int nc_access_new(struct nc_network *network, const struct nc_terms *terms,
	const struct nc_request_network *wanted, struct nc_access **ret_access,
	struct nacre_err *err)
{
	const struct nc_value *allow = &terms->values.network.allow;
	const char *const *hosts = wanted->allow.words;
	size_t n_hosts = wanted->allow.count;
	int r = 0;

	*ret_access = NULL;
	if (!wanted->access && n_hosts == 0)
		return wanted->secrets.count == 0
			       ? 0
			       : nc_err_set(err, -EPERM,
					 "secrets: nothing can be reached; name their hosts in "
					 "network.allow");
	for (size_t i = 0; r == 0 && i < n_hosts; i++)
		r = check_wanted(terms, wanted->trusted, hosts[i], err);
	if (r < 0)
		return r;
	if (n_hosts == 0) {
		hosts = (const char *const *)(uintptr_t)allow->list;
		n_hosts = allow->n_list;
	}
	if (n_hosts == 0)
		return nc_err_set(err, -EPERM,
			"network_access: the policy '%s' names no host that could be reached; name "
			"them in the request (network.allow, --allow) or in the policy",
			terms->policy);
	r = make_access(network, hosts, n_hosts, false, ret_access, err);
	if (r < 0)
		return r;
	(*ret_access)->terms.strict = wanted->strict;
	(*ret_access)->terms.limits.bytes = wanted->bytes.value;
	(*ret_access)->terms.limits.requests = wanted->requests.value;
	(*ret_access)->terms.limits.rate = wanted->rate_mbps.value * 125000;
	r = add_secrets(*ret_access, &wanted->secrets, err);
	if (r < 0) {
		nc_access_free(*ret_access);
		*ret_access = NULL;
	}
	return r;
}

void nc_access_free(struct nc_access *access)
{
	if (!access)
		return;
	nc_door_drop(access->door);
	json_decref(access->usage);
	free(access->rules);
	free(access->secrets);
	free(access->placeholder);
	free(access);
}

static void on_decided(void *context, const struct nc_egress_decision *decision)
{
	struct nc_access *access = context;

	if (decision->reason == NC_REASON_ALLOWED)
		return;
	for (size_t i = 0; i < access->n_refused; i++) {
		struct refused *known = &access->refused[i];

		if (known->reason == decision->reason && known->port == decision->port &&
			nc_streq(known->host, decision->host)) {
			known->count += 1 + (uint64_t)decision->dropped;
			return;
		}
	}
	if (access->n_refused < REFUSED_MAX) {
		struct refused *fresh = &access->refused[access->n_refused++];

		*fresh = (struct refused){
			.reason = decision->reason, .port = decision->port, .count = 1};
		memcpy(fresh->host, decision->host, sizeof(fresh->host));
		(void)snprintf(fresh->object, sizeof(fresh->object),
			decision->port ? "%s:%u" : "%s", fresh->host, decision->port);
	}
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
	return (struct nc_door_listener){
		.context = access, .decided = on_decided, .metered = on_metered, .shut = on_shut};
}

int nc_access_open(struct nc_access *access, uint64_t box_id, int door_fd, struct nacre_err *err)
{
	const struct nc_door_listener listener = listener_of(access);

	return nc_door_open(
		access->network, box_id, door_fd, &access->terms, &listener, &access->door, err);
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
	access->door = nc_door_adopt(access->network, box_id, &listener);
}

int nc_access_change(struct nc_access *access, const struct nc_terms *terms,
	const struct nc_request_network *wanted, struct nacre_err *err)
{
	struct nc_request_network plain = *wanted;
	struct nc_access *fresh = NULL;
	struct nc_egress_rule *old = access->rules;
	int r;

	plain.secrets = (struct nc_request_secrets){0};
	r = nc_access_new(access->network, terms, &plain, &fresh, err);
	if (r == 0 && !fresh)
		r = nc_err_set(err, -EINVAL, "network: name the hosts that it may reach");
	if (r < 0)
		return r;
	fresh->terms.secrets = access->terms.secrets;
	fresh->terms.n_secrets = access->terms.n_secrets;
	r = nc_door_change(access->door, &fresh->terms, err);
	if (r == 0) {
		access->terms = fresh->terms;
		access->rules = fresh->rules;
		fresh->rules = old;
	}
	fresh->terms.secrets = NULL;
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

int nc_access_denials(const struct nc_access *access, json_t *list)
{
	int r = 0;

	for (size_t i = 0; access && r == 0 && i < access->n_refused; i++) {
		const struct refused *refused = &access->refused[i];
		struct nc_denial denial = {.layer = "egress",
			.rule = "network.allow",
			.object = refused->object,
			.count = refused->count,
			.message = nc_reason_text(refused->reason),
			.allow_with = nc_reason_remedy(refused->reason),
			.instead = "Pass the data in as `files` or `inputs`"};

		(void)snprintf(denial.id, sizeof(denial.id), "%s", nc_reason_id(refused->reason));
		r = nc_denials_add(list, &denial);
	}
	return r;
}
