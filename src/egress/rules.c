/* The list of a box, ready to be judged by. */
#include "egress/rules.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"

/* ---- building ---- */

static void rule_done(struct nc_rule *rule)
{
	for (size_t i = 0; i < rule->n_paths; i++)
		free(rule->paths[i]);
	rule->n_paths = 0;
}

void nc_rules_done(struct nc_rules *rules)
{
	for (size_t i = 0; i < rules->n; i++)
		rule_done(&rules->entries[i]);
	free(rules->entries);
	*rules = (struct nc_rules){0};
}

static struct nc_span span_of(const char *text)
{
	return (struct nc_span){text, strlen(text)};
}

static int add_paths(struct nc_rule *rule, const struct nc_egress_rule *from)
{
	for (size_t i = 0; i < from->n_paths; i++) {
		const char *path = from->paths[i];

		if (path[0] != '/' || strlen(path) > NC_EGRESS_PATH_MAX || strpbrk(path, "?#") ||
			!nc_path_is_unambiguous(span_of(path)))
			return -EINVAL;
		rule->paths[i] = strdup(path);
		if (!rule->paths[i])
			return -ENOMEM;
		rule->n_paths++;
	}
	return 0;
}

int nc_rules_add(struct nc_rules *rules, const struct nc_egress_rule *from)
{
	struct nc_rule rule = {.deny = from->deny, .inner = from->inner, .methods = from->methods};
	struct nc_rule *entries;
	int r;

	if (rules->n == NC_EGRESS_RULES_MAX || from->n_paths > NC_EGRESS_PATHS_MAX)
		return -E2BIG;
	if (strlen(from->host) > NC_EGRESS_PATTERN_MAX || from->methods >> NC_METHOD_OTHER != 0)
		return -EINVAL;
	memcpy(rule.text, from->host, strlen(from->host));
	r = nc_host_parse_pattern(from->host, &rule.pattern);
	if (r < 0)
		return r;
	entries = reallocarray(rules->entries, rules->n + 1, sizeof(rule));
	if (!entries)
		return -ENOMEM;
	rules->entries = entries;
	r = add_paths(&rule, from);
	if (r < 0) {
		rule_done(&rule);
		return r;
	}
	entries[rules->n++] = rule;
	return 0;
}

/* ---- paths ---- */

bool nc_path_begins(struct nc_span path, const char *prefix)
{
	const size_t size = strlen(prefix);

	if (path.size < size || memcmp(path.text, prefix, size) != 0)
		return false;
	return prefix[size - 1] == '/' || path.size == size || path.text[size] == '/' ||
	       path.text[size] == '?';
}

/* One segment, and what its escapes may hide. */
static bool is_plain_segment(struct nc_span segment)
{
	static const char *const hiding[] = {"%2e", "%2f", "%5c", "%25", "%00", "%23", "%3f"};

	if (segment.size == 1 && segment.text[0] == '.')
		return false;
	if (segment.size == 2 && segment.text[0] == '.' && segment.text[1] == '.')
		return false;
	for (size_t at = 0; at < segment.size; at++) {
		/* ";" ends a segment for some, whatever stands behind it */
		if (segment.text[at] == '\\' || segment.text[at] == ';')
			return false;
		for (size_t i = 0; i < sizeof(hiding) / sizeof(hiding[0]); i++)
			if (segment.size - at >= 3 &&
				strncasecmp(segment.text + at, hiding[i], 3) == 0)
				return false;
	}
	return true;
}

bool nc_path_is_unambiguous(struct nc_span path)
{
	const char *query = memchr(path.text, '?', path.size);
	size_t start = 1;

	if (query)
		path.size = (size_t)(query - path.text);
	if (path.size == 0 || path.text[0] != '/')
		return false;
	for (size_t at = 1; at <= path.size; at++) {
		if (at < path.size && path.text[at] != '/')
			continue;
		/* empty is only the last one, behind the '/' at the end */
		if ((at == start && at < path.size) ||
			!is_plain_segment((struct nc_span){path.text + start, at - start}))
			return false;
		start = at + 1;
	}
	return true;
}

/* ---- judging ---- */

static bool is_below(const char *name, const char *domain)
{
	const size_t size = strlen(name), domain_size = strlen(domain);

	return size > domain_size + 1 && name[size - domain_size - 1] == '.' &&
	       nc_streq(name + size - domain_size, domain);
}

static bool fits_host(const struct nc_rule *rule, const struct nc_host *host)
{
	const struct nc_host *listed = &rule->pattern.host;

	if (listed->kind != host->kind)
		return false;
	return rule->pattern.wild ? is_below(host->text, listed->text)
				  : nc_streq(host->text, listed->text);
}

static bool fits_port(const struct nc_rule *rule, uint16_t port)
{
	if (rule->pattern.port != 0)
		return rule->pattern.port == port;
	return rule->deny || port == 80 || port == 443;
}

static bool fits_path(const struct nc_rule *rule, struct nc_span path)
{
	for (size_t i = 0; i < rule->n_paths; i++)
		if (nc_path_begins(path, rule->paths[i]))
			return true;
	return rule->n_paths == 0;
}

/* What cannot be told counts against the wish: a tunnel may hide it, a path may be read twice. */
static bool denies(const struct nc_rule *rule, const struct nc_wish *wish)
{
	if (!rule->deny || !fits_host(rule, wish->host) || !fits_port(rule, wish->port))
		return false;
	if (wish->tunnel)
		return true;
	if (rule->methods != 0 && !(rule->methods & 1U << wish->method))
		return false;
	return fits_path(rule, wish->path) ||
	       (rule->n_paths > 0 && !nc_path_is_unambiguous(wish->path));
}

/* Why an entry for this host does not allow the wish; NC_REASON_ALLOWED: it does. */
static enum nc_reason allows(const struct nc_rule *rule, const struct nc_wish *wish)
{
	if (!fits_port(rule, wish->port))
		return NC_REASON_PORT;
	if (wish->tunnel)
		return rule->methods || rule->n_paths ? NC_REASON_PLAIN_ONLY : NC_REASON_ALLOWED;
	if (rule->methods != 0 && !(rule->methods & 1U << wish->method))
		return NC_REASON_METHOD;
	if (rule->n_paths > 0 &&
		(!fits_path(rule, wish->path) || !nc_path_is_unambiguous(wish->path)))
		return NC_REASON_PATH;
	return NC_REASON_ALLOWED;
}

static enum nc_reach reach_of(const struct nc_rule *rule)
{
	if (rule->pattern.host.kind != NC_HOST_NAME)
		return NC_REACH_NEVER; /* it is the very address that was listed */
	return rule->inner ? NC_REACH_PRIVATE : NC_REACH_PUBLIC;
}

struct nc_verdict nc_rules_judge(const struct nc_rules *rules, const struct nc_wish *wish)
{
	struct nc_verdict verdict = {.reason = wish->host->kind == NC_HOST_NAME
						       ? NC_REASON_NOT_LISTED
						       : NC_REASON_LITERAL,
		.rule = ""};

	for (size_t i = 0; i < rules->n; i++)
		if (denies(&rules->entries[i], wish))
			return (struct nc_verdict){
				.reason = NC_REASON_DENIED, .rule = rules->entries[i].text};
	for (size_t i = 0; i < rules->n; i++) {
		const struct nc_rule *rule = &rules->entries[i];
		enum nc_reason reason;

		if (rule->deny || !fits_host(rule, wish->host))
			continue;
		reason = allows(rule, wish);
		if (verdict.reason != NC_REASON_ALLOWED) {
			verdict.reason = reason;
			verdict.rule = rule->text;
		}
		/* of several that allow it the one that reaches farthest counts */
		if (reason == NC_REASON_ALLOWED && reach_of(rule) > verdict.reach) {
			verdict.reach = reach_of(rule);
			verdict.rule = rule->text;
		}
	}
	return verdict;
}
