/* What is decided about an execution before it gets a box. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "engine/binds.h"
#include "engine/bounds.h"
#include "engine/decoys.h"
#include "engine/execution.h"
#include "engine/hooks.h"
#include "engine/installer.h"
#include "engine/study.h"
#include "policy/alone.h"

#define MB (1024ULL * 1024)

/* As in nacre exec: a file needs an inode and mostly some blocks. */
#define BYTES_PER_INODE 4096U
#define OUTPUT_MAX (64 * MB)

/* Files come with the program up to this size: beyond it they would count as its memory. */
#define PACK_MAX (1 * MB)

int nc_execution_fail(struct nc_execution *execution, const char *status, const char *format, ...)
{
	va_list arguments;

	if (execution->status) /* the first reason counts */
		return -ECANCELED;
	execution->status = status;
	execution->error.code = -ECANCELED;
	va_start(arguments, format);
	(void)vsnprintf(
		execution->error.message, sizeof(execution->error.message), format, arguments);
	va_end(arguments);
	return -ECANCELED;
}

/* A workflow's sources have names of their own: step1.py, step2.go. */
static int name_source(struct nc_execution *execution, size_t i)
{
	const struct nc_request *request = &execution->request;
	struct nc_step_state *step = &execution->step[i];
	const char *name = nc_runtime_source_name(
		step->runtime, request->step[i].code, request->step[i].code_size);

	if (request->is_workflow)
		(void)snprintf(
			step->source, sizeof(step->source), "step%zu%s", i + 1, strrchr(name, '.'));
	else
		(void)snprintf(step->source, sizeof(step->source), "%s", name);
	for (size_t j = 0; j < request->files.count; j++)
		if (nc_streq(request->files.file[j].path, step->source))
			return nc_execution_fail(execution, "error",
				"files: '%s' is the name of the code itself; give the file another",
				step->source);
	return 0;
}

/* What a refusal says: the first finding that refuses, and what to do instead. */
static int refuse(struct nc_execution *execution, const struct nc_report *report)
{
	const char *policy = execution->terms->policy;
	size_t count;
	const struct nc_finding *finding = nc_report_findings(report, &count);

	for (size_t i = 0; i < count; i++, finding++)
		if (finding->refuses)
			return nc_execution_fail(execution, "blocked",
				"The policy '%s' refuses it: line %u: %s%s%s [%s]; instead: %s",
				policy, finding->line, finding->why, *finding->object ? ": " : "",
				finding->object, finding->rule, finding->remedy);
	return nc_execution_fail(execution, "blocked", "The policy '%s' refuses it: its risk is %s",
		policy, nc_severity_names[nc_report_risk(report)]);
}

static int join_inputs(struct nc_execution *execution, size_t i)
{
	const struct nc_request_words *inputs = &execution->request.step[i].inputs;
	struct nc_buf *input = &execution->step[i].input;

	input->max = NC_REQUEST_INPUTS_SIZE_MAX + NC_REQUEST_INPUTS_MAX;
	for (size_t j = 0; j < inputs->count; j++) {
		nc_buf_adds(input, inputs->words[j]);
		nc_buf_adds(input, "\n");
	}
	return input->error < 0 ? nc_execution_fail(execution, "internal_error", "Out of memory")
				: 0;
}

/* What was found out about a program: its language, and what the policy says. */
static int take_findings(
	struct nc_execution *execution, struct nc_study_text *text, struct nc_step_state *step)
{
	if (text->error < 0)
		return nc_execution_fail(execution,
			text->error == -EPROTO	 ? "blocked"
			: text->error == -ENOENT ? "error"
						 : "internal_error",
			"%s", nc_study_error(text->error));
	step->language = text->found;
	step->runtime = nc_runtimes[step->language.language];
	step->report = take_ptr(text->report);
	return 0;
}

static int judge(struct nc_execution *execution, const struct nc_step_state *step)
{
	enum nc_verdict verdict = nc_report_verdict(step->report);

	if (verdict > execution->verdict)
		execution->verdict = verdict;
	return verdict == NC_VERDICT_REFUSE ? refuse(execution, step->report) : 0;
}

/* Whoever has no study reads the programs himself. */
static int study_steps(struct nc_execution *execution, struct nc_study *study)
{
	struct nc_study own = {0};
	struct nacre_err err = {0};
	int r = 0;

	if (!study && nc_engine_study(execution->engine, &execution->request, &own, &err) < 0)
		return nc_execution_fail(execution, "blocked", "policy: %s", err.message);
	if (!study)
		nc_study_read_all(&own);
	for (size_t i = 0; r == 0 && i < execution->request.n_steps; i++) {
		struct nc_step_state *step = &execution->step[i];

		r = take_findings(execution, study ? &study->text[i] : &own.text[i], step);
		if (r == 0)
			r = name_source(execution, i);
		if (r == 0)
			r = join_inputs(execution, i);
		if (r == 0)
			r = judge(execution, step);
	}
	nc_study_done(&own);
	return r;
}

/* Those under which it was studied, though others may hold by now. */
static int find_terms(struct nc_execution *execution, const struct nc_study *study)
{
	const struct nc_request *request = &execution->request;
	struct nacre_err err = {0};

	if (study) {
		execution->terms = study->terms;
		return 0;
	}
	if (nc_engine_terms(execution->engine, request->policy, request->tenant, &execution->terms,
		    &err) < 0)
		return nc_execution_fail(execution, "blocked", "policy: %s", err.message);
	return 0;
}

static int check_network(struct nc_execution *execution)
{
	struct nacre_err err = {0};

	if (nc_access_new(nc_engine_setup(execution->engine)->network, execution->terms,
		    execution->request.tenant, &execution->request.network, &execution->reach,
		    &err) == 0)
		return 0;
	nc_denial_of_request(NC_DENIAL_NETWORK, "network_access", &execution->refused);
	return nc_execution_fail(execution, "blocked", "%s", err.message);
}

static int check_env(struct nc_execution *execution)
{
	struct nacre_err err = {0};

	return nc_hooks_check_request(execution, &err) == 0
		       ? 0
		       : nc_execution_fail(execution, "blocked", "%s", err.message);
}

/* Only what the operator named can be named, so that no path of a request is ever opened. */
static int check_binds(struct nc_execution *execution)
{
	const struct nc_request_words *wanted = &execution->request.binds;
	struct nacre_err err = {0};

	for (size_t i = 0; i < wanted->count; i++)
		if (!nc_binds_has(nc_engine_setup(execution->engine)->binds, wanted->words[i]) &&
			nc_binds_unknown(wanted->words[i], &err) < 0)
			return nc_execution_fail(execution, "blocked", "%s", err.message);
	return 0;
}

static int check_root(struct nc_execution *execution)
{
	const struct nc_request *request = &execution->request;
	struct nacre_err err = {0};

	if (nc_bounds_check_root(execution->terms, request->as_root, request->writable_root, &err) <
		0)
		return nc_execution_fail(execution, "blocked", "%s", err.message);
	return 0;
}

/* The packages are for the steps of one language, whose environment all steps are shown. */
static int check_packages(struct nc_execution *execution)
{
	const struct nc_request *request = &execution->request;
	const struct nc_runtime *found = NULL;
	char quoted[NC_TEXT_QUOTED_MAX];

	for (size_t i = 0; i < request->n_steps; i++) {
		const struct nc_runtime *runtime =
			nc_runtimes[nc_installer_language(execution->step[i].runtime->language)];

		if (!nc_installer_of(runtime->language) || runtime == found)
			continue;
		if (found)
			return nc_execution_fail(execution, "blocked",
				"packages: steps in %s and in %s cannot have some at once",
				found->name, runtime->name);
		found = runtime;
	}
	if (!found)
		return nc_execution_fail(execution, "blocked",
			"packages: they are installed for python and javascript, not for %s",
			execution->step[0].runtime->name);
	if (!nc_engine_setup(execution->engine)->environments)
		return nc_execution_fail(
			execution, "blocked", "packages: there is no place to keep them here");
	for (size_t i = 0; i < request->packages.count; i++)
		if (!nc_installer_takes(found->language, request->packages.words[i]))
			return nc_execution_fail(execution, "error",
				"packages: %s is not a package of %s",
				nc_text_quote(quoted, request->packages.words[i]), found->name);
	execution->packages_language = found->language;
	return 0;
}

/*
 * Whether new processes can be refused to all of it. Never against what the caller named: who asks
 * for a number of processes, or brings files or packages that nobody has looked into, has them.
 */
static bool is_alone(const struct nc_execution *execution)
{
	const struct nc_request *request = &execution->request;

	if (request->limits.processes.given || request->packages.count > 0 ||
		request->files.count > 0)
		return false;
	for (size_t i = 0; i < request->n_steps; i++)
		if (!nc_report_is_alone(
			    execution->step[i].report, execution->step[i].language.language))
			return false;
	return true;
}

/* Why an execution has more than the tier that was named; the first word of a refusal. */
struct need {
	const char *subject, *reason;
};

static const struct need risk = {
	"Its risk asks for", "its risk asks for more than the tier that was named"};
static const struct need packages = {
	"Packages need", "its packages need more than the tier that was named"};
static const struct need network = {
	"A network needs", "its network needs more than the tier that was named"};
static const struct need binds = {"Binds need", "its binds need more than the tier that was named"};
static const struct need root = {
	"Root of a box needs", "a root of its own needs more than the tier that was named"};
static const struct need decoys = {
	"Decoys need", "the policy's decoys need more than the tier that was named"};

/* What wants mounts of the box's own: a door is in a network namespace, and decoys are on a file
 * system of which we know how it is. NULL: nothing. */
static const struct need *find_need(const struct nc_execution *execution)
{
	if (execution->request.packages.count > 0)
		return &packages;
	if (execution->reach)
		return &network;
	if (execution->request.binds.count > 0)
		return &binds;
	if (execution->request.as_root || execution->request.writable_root)
		return &root;
	return nc_decoys_wanted(execution->terms) ? &decoys : NULL;
}

/* Says which tiers this version has. */
static int refuse_tier(struct nc_execution *execution, enum nc_tier wanted)
{
	nc_buf_cleanup struct nc_buf names = NC_BUF(256);

	for (enum nc_tier i = 0; i < NC_TIER_MAX; i++)
		if (nc_tier_holder(i))
			nc_buf_addf(&names, "%s%s", names.size > 0 ? ", " : "", nc_tier_names[i]);
	return nc_execution_fail(execution, "blocked",
		"The tier '%s' cannot be had: this version has %s", nc_tier_names[wanted],
		nc_buf_text(&names));
}

static int choose(struct nc_execution *execution, enum nc_tier tier, const char *reason)
{
	execution->tier = tier;
	execution->tier_reason = reason;
	return 0;
}

/* A caller may ask for more isolation than the policy does, never for less. */
static int route(struct nc_execution *execution)
{
	const struct nc_holder *holder = nc_engine_setup(execution->engine)->holder;
	const struct nc_tier_terms *usual = nc_holder_terms(holder, NC_TIER_CONTAINER), *named;
	const enum nc_tier wanted = execution->request.tier;
	const bool is_risky = execution->verdict > NC_VERDICT_ALLOW;
	const struct need *mounts = find_need(execution), *need = is_risky ? &risk : mounts;

	if (wanted != NC_TIER_MAX && !nc_tier_holder(wanted))
		return refuse_tier(execution, wanted);
	if (need && !usual->here)
		return nc_execution_fail(execution, "blocked",
			"%s a container box, and no user namespace can be had here (see: nacre "
			"doctor)",
			need->subject);
	named = wanted != NC_TIER_MAX ? nc_holder_terms(holder, wanted) : usual;
	if (!named->here && named != usual)
		return nc_execution_fail(execution, "blocked",
			"The tier '%s' cannot be had here (see: nacre doctor)",
			nc_tier_names[wanted]);
	if (wanted != NC_TIER_MAX && (!mounts || named->mounts) &&
		(!is_risky || nc_terms_are_enough(named, usual)))
		return choose(execution, wanted, "named in the request");
	if (wanted != NC_TIER_MAX)
		return choose(execution, NC_TIER_CONTAINER, need->reason);
	if (!usual->here)
		return choose(execution, NC_TIER_PROCESS, "no user namespace can be had here");
	return choose(execution, NC_TIER_CONTAINER,
		execution->verdict == NC_VERDICT_MICROVM
			? "its risk asks for a microvm, which this version has not"
			: "the usual tier");
}

static void raise_to(uint64_t *value, uint64_t least)
{
	if (*value < least)
		*value = least;
}

static int check_ceilings(struct nc_execution *execution)
{
	struct nacre_err err = {0};
	const char *name;

	if (nc_bounds_check(execution->terms, &execution->request.limits, &name, &err) == 0)
		return 0;
	nc_denial_of_request(NC_DENIAL_CEILING, name, &execution->refused);
	return nc_execution_fail(execution, "blocked", "%s", err.message);
}

/* The configured limits of the languages, the largest of each, unless the request names them. */
static void set_limits(struct nc_execution *execution)
{
	const struct nc_config *config = nc_engine_setup(execution->engine)->config;
	const struct nc_request_limits *named = &execution->request.limits;
	struct nc_box_limits *limits = &execution->limits;

	for (size_t i = 0; i < execution->request.n_steps; i++) {
		const struct nc_runtime *runtime = execution->step[i].runtime;
		const struct nc_limit_values *usual = &config->limits.language[runtime->language];
		const struct nc_runtime_needs *needs = &runtime->run.needs;

		raise_to(&limits->memory_bytes, usual->memory_mb.number * MB);
		raise_to(&limits->memory_bytes, needs->memory_mb * MB);
		raise_to(&limits->cpu_milli, usual->cpu_cores.number);
		raise_to(&limits->wall_ms, usual->execution_time_seconds.number * 1000);
		raise_to(&limits->pids, usual->max_processes.number * NC_THREADS_PER_PROCESS);
		raise_to(&limits->pids, needs->processes);
		raise_to(&limits->disk_bytes, usual->disk_mb.number * MB);
		raise_to(&limits->disk_bytes, needs->disk_mb * MB);
	}
	nc_bounds_hold(execution->terms, limits);
	limits->memory_bytes = nc_named_or(&named->memory_bytes, limits->memory_bytes);
	limits->cpu_milli = nc_named_or(&named->cpu_milli, limits->cpu_milli);
	limits->cpu_time_ms = nc_named_or(&named->cpu_time_ms, 0);
	limits->wall_ms = nc_named_or(&named->wall_ms, limits->wall_ms);
	limits->pids = nc_named_or(&named->processes, limits->pids);
	limits->disk_bytes = nc_named_or(&named->disk_bytes, limits->disk_bytes);
	limits->inodes = nc_named_or(&named->inodes, limits->disk_bytes / BYTES_PER_INODE + 64);
	limits->open_files = nc_named_or(&named->open_files, nc_files_usual());
	execution->output_max = nc_named_or(&named->output_bytes, OUTPUT_MAX);
}

/* Whether the host can hold it at all: better now than from the queue. */
static int check_host(struct nc_execution *execution)
{
	const struct nc_engine_setup *setup = nc_engine_setup(execution->engine);
	struct nc_exec_spec exec = {.tier = execution->tier,
		.users = execution->request.as_root,
		.writable = execution->request.writable_root};
	struct nacre_err err = {0};

	if (nc_settle(setup->holder, &execution->wish, &exec, &err) == 0)
		return 0;
	nc_denial_of_request(NC_DENIAL_FLOOR, nc_tier_names[execution->tier], &execution->refused);
	return nc_execution_fail(execution, "blocked", "%s", err.message);
}

static void add_stage(
	struct nc_execution *execution, enum nc_stage_kind kind, size_t step, bool first, bool last)
{
	execution->stages[execution->n_stages++] =
		(struct nc_stage){kind, step, first, last, false};
}

static bool asks_version(const struct nc_step_state *step)
{
	return step->runtime->run_argv_for || step->node_forbids;
}

/* Whether the first program can bring everything along. */
static bool can_pack(const struct nc_execution *execution)
{
	const struct nc_request *request = &execution->request;
	uint64_t size = 0;

	for (size_t i = 0; i < request->files.count; i++)
		size += request->files.file[i].size;
	for (size_t i = 0; i < request->n_steps; i++)
		size += execution->step[i].program ? execution->step[i].program_size
						   : request->step[i].code_size;
	return size <= PACK_MAX && !asks_version(&execution->step[0]);
}

int nc_execution_plan(struct nc_execution *execution)
{
	const struct nc_request *request = &execution->request;
	bool captures = request->capture.count > 0, looks = nc_decoys_wanted(execution->terms);
	bool packs;
	int r = 0;

	for (size_t i = 0; r == 0 && i < request->n_steps; i++)
		r = nc_hooks_plan(execution, i);
	if (r < 0)
		return nc_execution_fail(execution, "internal_error",
			"Prepare what holds it from inside: %s", nc_errno_text(r));
	for (size_t i = 0; i < request->n_steps; i++) {
		if (!execution->step[i].runtime->compile.argv || execution->step[i].program)
			continue;
		add_stage(execution, NC_STAGE_PUT, i, true, false);
		add_stage(execution, NC_STAGE_COMPILE, i, false, false);
		add_stage(execution, NC_STAGE_FETCH, i, false, true);
	}
	packs = can_pack(execution);
	if (!packs)
		add_stage(execution, NC_STAGE_PUT, request->n_steps, true, false);
	for (size_t i = 0; i < request->n_steps; i++) {
		/* not earlier: the program of the step before could change it */
		if (nc_hooks_has_file(&execution->step[i]) && i > 0)
			add_stage(execution, NC_STAGE_HOOK, i, false, false);
		if (asks_version(&execution->step[i]))
			add_stage(execution, NC_STAGE_PROBE, i, false, false);
		add_stage(execution, NC_STAGE_RUN, i, packs && i == 0,
			i == request->n_steps - 1 && !captures && !looks);
		execution->stages[execution->n_stages - 1].packs = packs && i == 0;
	}
	if (looks)
		add_stage(execution, NC_STAGE_LOOK, 0, false, !captures);
	if (captures)
		add_stage(execution, NC_STAGE_CAPTURE, 0, false, true);
	return 0;
}

void nc_execution_prepare(struct nc_execution *execution, struct nc_study *study)
{
	const struct nc_request *request = &execution->request;
	int r = find_terms(execution, study);

	if (r == 0)
		r = check_env(execution);
	if (r == 0)
		r = check_network(execution);
	if (r == 0)
		r = check_binds(execution);
	if (r == 0)
		r = check_root(execution);
	if (r == 0)
		r = check_ceilings(execution);
	if (r == 0)
		r = study_steps(execution, study);
	if (r == 0 && request->packages.count > 0)
		r = check_packages(execution);
	if (r == 0)
		r = route(execution);
	if (r < 0)
		return;
	execution->alone = is_alone(execution);
	set_limits(execution);
	nc_bounds_wish(execution->terms, &request->limits, &execution->wish);
	(void)check_host(execution); /* it has the reply */
}
