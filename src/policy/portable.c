/* Policies and reports as bytes. */
#include "policy/portable.h"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/wire.h"
#include "policy/bounds.h"
#include "policy/report.h"
#include "policy/rules.h"
#include "policy/scan.h"

/* Instead of a length: there is no such list. */
#define NO_LIST UINT32_MAX
#define LISTS_OF_ONE 7
/* No text of either is longer. */
#define TEXT_MAX NC_WIRE_MESSAGE_MAX
#define LIST_MAX 65536U

/* ---- out ---- */

/* nc_wire_put_*() on a buffer that is no message. */
static struct nc_wire_out open_out(struct nc_buf *out)
{
	return (struct nc_wire_out){.buf = *out};
}

static void put_list(struct nc_wire_out *out, const char *const *list)
{
	uint32_t count = 0;

	while (list && list[count])
		count++;
	nc_wire_put_u32(out, list ? count : NO_LIST);
	for (uint32_t i = 0; i < count; i++)
		nc_wire_put_text(out, list[i]);
}

/* The lists in the order of the wire. */
static void order_lists(struct nc_policy_lists *lists, const char *const **ret[static LISTS_OF_ONE])
{
	ret[0] = &lists->forbidden_imports;
	ret[1] = &lists->forbidden_functions;
	ret[2] = &lists->forbidden_commands;
	ret[3] = &lists->forbidden_patterns;
	ret[4] = &lists->allowed_imports;
	ret[5] = &lists->allowed_functions;
	ret[6] = &lists->allowed_commands;
}

void nc_policy_pack(const struct nc_policy *policy, struct nc_buf *buf)
{
	struct nc_wire_out out = open_out(buf);
	const char *const **list[LISTS_OF_ONE];

	nc_wire_put_u8(&out, (uint8_t)policy->scale.profile);
	for (size_t i = 0; i < NC_RULE_MAX; i++)
		nc_wire_put_u8(&out, (uint8_t)policy->scale.severities[i]);
	for (size_t i = 0; i < NC_SEVERITY_MAX; i++)
		nc_wire_put_u8(&out, (uint8_t)policy->scale.verdicts[i]);
	for (size_t i = 0; i < NC_LANGUAGE_MAX; i++) {
		struct nc_policy_lists lists = policy->lists[i];

		order_lists(&lists, list);
		for (size_t j = 0; j < LISTS_OF_ONE; j++)
			put_list(&out, *list[j]);
	}
	*buf = out.buf;
}

/* By its number: the texts of rules are the same on both sides. */
static void put_rule(struct nc_wire_out *out, const char *id)
{
	uint16_t rule = 1;

	while (rule < NC_RULE_MAX && nc_rules[rule].id != id)
		rule++;
	nc_wire_put_u16(out, rule);
}

static void put_finding(struct nc_wire_out *out, const struct nc_finding *finding)
{
	put_rule(out, finding->rule);
	nc_wire_put_u8(out, (uint8_t)finding->severity);
	nc_wire_put_u8(out, finding->refuses);
	nc_wire_put_u32(out, finding->line);
	nc_wire_put_u32(out, finding->column);
	nc_wire_put_u32(out, finding->end_line);
	nc_wire_put_u32(out, finding->end_column);
	nc_wire_put_u32(out, finding->offset);
	nc_wire_put_u32(out, finding->size);
	nc_wire_put_text(out, finding->object);
	nc_wire_put_text(out, finding->snippet);
	nc_wire_put_text(out, finding->within);
}

static void put_needs(struct nc_wire_out *out, const struct nc_needs *needs)
{
	put_list(out, needs->paths);
	put_list(out, needs->hosts);
	put_list(out, needs->commands);
	nc_wire_put_u8(out, needs->threads);
	nc_wire_put_u8(out, needs->subprocess);
	nc_wire_put_u8(out, needs->network);
	nc_wire_put_u8(out, needs->unknown);
}

void nc_report_pack(const struct nc_report *report, struct nc_buf *buf)
{
	struct nc_wire_out out = open_out(buf);

	nc_wire_put_u32(&out, (uint32_t)report->n_findings);
	for (size_t i = 0; i < report->n_findings; i++)
		put_finding(&out, &report->findings[i]);
	nc_wire_put_u32(&out, (uint32_t)report->n_imports);
	for (size_t i = 0; i < report->n_imports; i++) {
		nc_wire_put_text(&out, report->imports[i].name);
		nc_wire_put_u32(&out, report->imports[i].line);
		nc_wire_put_u8(&out, report->imports[i].hidden);
	}
	put_needs(&out, &report->needs);
	nc_wire_put_u32(&out, (uint32_t)report->n_points);
	for (size_t i = 0; i < report->n_points; i++) {
		put_rule(&out, report->points[i].rule);
		nc_wire_put_u8(&out, (uint8_t)report->points[i].severity);
		nc_wire_put_u32(&out, report->points[i].hits);
		nc_wire_put_u32(&out, report->points[i].points);
	}
	nc_wire_put_u32(&out, report->sum);
	nc_wire_put_u8(&out, (uint8_t)report->risk);
	nc_wire_put_u8(&out, (uint8_t)report->verdict);
	*buf = out.buf;
}

/* ---- in ---- */

/* A number below max; 0 with an error otherwise. */
static unsigned int get_below(struct nc_wire_in *in, unsigned int value, unsigned int max)
{
	if (value < max)
		return value;
	in->error = -EBADMSG;
	return 0;
}

static bool get_bool(struct nc_wire_in *in)
{
	return get_below(in, nc_wire_get_u8(in), 2);
}

static enum nc_severity get_severity(struct nc_wire_in *in)
{
	return (enum nc_severity)get_below(in, nc_wire_get_u8(in), NC_SEVERITY_MAX);
}

static const struct nc_rule_text *get_rule(struct nc_wire_in *in)
{
	unsigned int rule = get_below(in, nc_wire_get_u16(in), NC_RULE_MAX);

	if (rule == 0)
		in->error = -EBADMSG;
	return &nc_rules[rule];
}

/* In the arena, whose error is asked for in the end; "" after any error. */
static const char *get_text(struct nc_wire_in *in, struct nc_arena *arena)
{
	const void *data;
	size_t size = nc_wire_get_bytes(in, TEXT_MAX, &data);
	const char *text;

	if (memchr(data, '\0', size))
		in->error = -EBADMSG;
	text = in->error < 0 ? NULL : nc_arena_text(arena, data, size);
	return text ? text : "";
}

/* How many entries follow, each of which has at least so many bytes. */
static uint32_t get_count(struct nc_wire_in *in, uint32_t max, size_t least)
{
	uint32_t count = nc_wire_get_u32(in);

	if (in->error == 0 && count <= max && count <= in->left / least)
		return count;
	in->error = -EBADMSG;
	return 0;
}

static const char *const *get_list(struct nc_wire_in *in, struct nc_arena *arena)
{
	const char **list;
	uint32_t count;

	if (in->left >= 4 && memcmp(in->at, "\xff\xff\xff\xff", 4) == 0) {
		(void)nc_wire_get_u32(in);
		return NULL;
	}
	count = get_count(in, LIST_MAX, 4);
	list = nc_arena_alloc(arena, (count + 1) * sizeof(*list));
	for (uint32_t i = 0; list && i < count; i++)
		list[i] = get_text(in, arena);
	return list;
}

static int end_of(const struct nc_wire_in *in, const struct nc_arena *arena)
{
	if (arena->error < 0)
		return arena->error == -EFBIG ? -EBADMSG : arena->error;
	return nc_wire_close(in);
}

int nc_policy_unpack(const void *data, size_t size, struct nc_policy **ret_policy)
{
	struct nc_wire_in in = {.at = data, .left = size};
	cleanup_policy struct nc_policy *policy = calloc(1, sizeof(*policy));
	const char *const **list[LISTS_OF_ONE];
	int r;

	if (!policy)
		return -ENOMEM;
	policy->memory.max = NC_PORTABLE_POLICY_MAX * 2;
	policy->scale.profile =
		(enum nc_profile)get_below(&in, nc_wire_get_u8(&in), NC_PROFILE_MAX);
	for (size_t i = 0; i < NC_RULE_MAX; i++)
		policy->scale.severities[i] = get_severity(&in);
	for (size_t i = 0; i < NC_SEVERITY_MAX; i++)
		policy->scale.verdicts[i] =
			(enum nc_verdict)get_below(&in, nc_wire_get_u8(&in), NC_VERDICT_MAX);
	for (size_t i = 0; i < NC_LANGUAGE_MAX; i++) {
		order_lists(&policy->lists[i], list);
		for (size_t j = 0; j < LISTS_OF_ONE; j++)
			*list[j] = get_list(&in, &policy->memory);
	}
	r = end_of(&in, &policy->memory);
	if (r < 0)
		return r;
	*ret_policy = take_ptr(policy);
	return 0;
}

static void get_finding(
	struct nc_wire_in *in, struct nc_arena *arena, struct nc_finding *ret_finding)
{
	const struct nc_rule_text *rule = get_rule(in);

	*ret_finding =
		(struct nc_finding){.rule = rule->id, .why = rule->why, .remedy = rule->remedy};
	ret_finding->severity = get_severity(in);
	ret_finding->refuses = get_bool(in);
	ret_finding->line = nc_wire_get_u32(in);
	ret_finding->column = nc_wire_get_u32(in);
	ret_finding->end_line = nc_wire_get_u32(in);
	ret_finding->end_column = nc_wire_get_u32(in);
	ret_finding->offset = nc_wire_get_u32(in);
	ret_finding->size = nc_wire_get_u32(in);
	ret_finding->object = get_text(in, arena);
	ret_finding->snippet = get_text(in, arena);
	ret_finding->within = get_text(in, arena);
}

static int get_findings(struct nc_wire_in *in, struct nc_report *report)
{
	uint32_t count = get_count(in, NC_FINDINGS_MAX, 40);

	report->findings = calloc(count + 1, sizeof(*report->findings));
	if (!report->findings)
		return -ENOMEM;
	report->n_findings = report->findings_capacity = count;
	for (uint32_t i = 0; i < count; i++)
		get_finding(in, &report->arena, &report->findings[i]);
	return 0;
}

static int get_imports(struct nc_wire_in *in, struct nc_report *report)
{
	uint32_t count = get_count(in, NC_IMPORTS_MAX, 9);

	report->imports = calloc(count + 1, sizeof(*report->imports));
	if (!report->imports)
		return -ENOMEM;
	report->n_imports = report->imports_capacity = count;
	for (uint32_t i = 0; i < count; i++) {
		report->imports[i].name = get_text(in, &report->arena);
		report->imports[i].line = nc_wire_get_u32(in);
		report->imports[i].hidden = get_bool(in);
	}
	return 0;
}

static void get_needs(struct nc_wire_in *in, struct nc_arena *arena, struct nc_needs *needs)
{
	const char *const **lists[] = {&needs->paths, &needs->hosts, &needs->commands};

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		*lists[i] = get_list(in, arena);
		if (!*lists[i])
			in->error = -EBADMSG;
	}
	needs->threads = get_bool(in);
	needs->subprocess = get_bool(in);
	needs->network = get_bool(in);
	needs->unknown = get_bool(in);
}

static void get_points(struct nc_wire_in *in, struct nc_report *report)
{
	report->n_points = get_count(in, NC_RULE_MAX, 11);
	for (size_t i = 0; i < report->n_points; i++) {
		report->points[i].rule = get_rule(in)->id;
		report->points[i].severity = get_severity(in);
		report->points[i].hits = nc_wire_get_u32(in);
		report->points[i].points = nc_wire_get_u32(in);
	}
}

int nc_report_unpack(const void *data, size_t size, struct nc_report **ret_report)
{
	struct nc_wire_in in = {.at = data, .left = size};
	cleanup_report struct nc_report *report = calloc(1, sizeof(*report));
	int r;

	if (!report)
		return -ENOMEM;
	report->arena.max = NC_PORTABLE_REPORT_MAX * 2;
	r = get_findings(&in, report);
	if (r == 0)
		r = get_imports(&in, report);
	if (r < 0)
		return r;
	get_needs(&in, &report->arena, &report->needs);
	get_points(&in, report);
	report->sum = nc_wire_get_u32(&in);
	report->risk = get_severity(&in);
	report->verdict = (enum nc_verdict)get_below(&in, nc_wire_get_u8(&in), NC_VERDICT_MAX);
	r = end_of(&in, &report->arena);
	if (r < 0)
		return r;
	*ret_report = take_ptr(report);
	return 0;
}

void nc_policy_learn(struct nc_policy *policy, const struct nc_policy *from)
{
	memcpy(policy->grammars, from->grammars, sizeof(policy->grammars));
}
