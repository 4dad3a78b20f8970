/*
 * What holds for a command in a sandbox as it does for an execution: the threat detector looks at
 * it while it runs, and its end is in the journal, in metrics and on its tenant's account.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/json.h"
#include "engine/alerts.h"
#include "engine/decoys.h"
#include "engine/denials.h"
#include "engine/hooks.h"
#include "engine/sandbox_parts.h"
#include "engine/vigil.h"
#include "engine/work.h"

/* Of a command in the journal; longer ones are there by their digest. */
#define RECORDED_MAX 8192U

int nc_process_take_study(struct nc_process *process, const struct nc_study_text *found)
{
	if (!found->report)
		return 0;
	process->risk = nc_report_risk(found->report);
	process->denials = json_array();
	return process->denials ? nc_denials_add_report(process->denials, found->report) : -ENOMEM;
}

/* One line in the journal: the command, if it is not too long, and how it ended. */
static json_t *line_of(const struct nc_process *process, const json_t *told)
{
	cleanup_free char *text = json_dumps(process->command, JSON_COMPACT | JSON_ENCODE_ANY);
	json_t *body = json_copy((json_t *)(uintptr_t)told);
	unsigned char digest[NC_SHA256_SIZE];
	char hex[NC_SHA256_HEX_SIZE];

	if (!text || !body) {
		json_decref(body);
		return NULL; /* which is said */
	}
	nc_sha256(text, strlen(text), digest);
	nc_sha256_hex(digest, hex);
	(void)json_object_set_new(body, "sha256", json_string(hex));
	(void)json_object_set_new(body, "sandbox", json_string(process->sandbox->id));
	(void)json_object_set_new(body, "tenant", json_string(process->sandbox->tenant));
	if (strlen(text) > RECORDED_MAX)
		(void)json_object_del(body, "command");
	return body;
}

/* The network is the sandbox's: of those that run beside each other the one that ends first is told
 * what was refused. */
static void take_denials(struct nc_process *process)
{
	if (!process->denials)
		process->denials = json_array();
	if (!process->denials ||
		nc_access_take_denials(process->sandbox->access, process->denials) < 0)
		nc_engine_note(process->sandbox->all->setup.engine, "sandbox.command", NULL);
}

void nc_process_account(struct nc_process *process)
{
	struct nc_sandbox *sandbox = process->sandbox;
	struct nc_engine *engine = sandbox->all->setup.engine;
	const struct nc_sandboxes_gate *gate = &sandbox->all->gate;
	cleanup_json json_t *told = NULL;
	json_t *line;

	if (!process->unborn && !process->alerts)
		process->alerts = nc_alerts_of_command(process);
	if (!process->unborn)
		take_denials(process);
	told = nc_process_json(process, false);
	process->uncounted = !gate->command_ended;
	if (told && gate->command_ended)
		gate->command_ended(gate->context, sandbox->tenant, told);
	line = told ? line_of(process, told) : NULL;
	if (line)
		nc_engine_warn(engine, process->id, line);
	nc_engine_note(engine, "sandbox.command", line);
}

void nc_process_count(struct nc_process *process)
{
	const struct nc_sandboxes_gate *gate = &process->sandbox->all->gate;
	cleanup_json json_t *told = process->uncounted ? nc_process_json(process, false) : NULL;

	process->uncounted = false;
	if (told)
		gate->command_ended(gate->context, process->sandbox->tenant, told);
}

void nc_process_refuse(
	struct nc_process *process, const struct nc_process_spec *spec, const struct nacre_err *err)
{
	process->failure = *err;
	process->unborn = true;
	process->blocked = true;
	if (process->denials)
		(void)nc_hooks_list_env(process->sandbox->terms, &spec->env, process->denials);
	nc_process_account(process);
	nc_process_free(process);
}

/* ---- decoys ---- */

/* What was touched while others ran as well is this one's, whose end is the first. */
static void on_looked(void *context, const char *sandbox, int error, const char *data, size_t size)
{
	struct nc_process *process = context;

	(void)sandbox, (void)size;
	if (error == 0)
		process->decoys_touched =
			nc_decoys_count_again(data, &process->sandbox->decoys_lost);
	nc_process_finish(process);
}

void nc_process_close(struct nc_process *process)
{
	struct nc_sandbox *sandbox = process->sandbox;
	const struct nc_file_work look = {.words = nc_decoys_look(),
		.output_max = 64,
		.idles = true,
		.context = process,
		.done = on_looked};
	struct nacre_err ignored = {0};

	/* what cannot be looked at now is told with the next command */
	if (process->unborn || process->end.fail == NC_FAIL_LOST || sandbox->ends ||
		!nc_decoys_wanted(sandbox->terms) ||
		nc_sandbox_files(sandbox, &look, &ignored) < 0) {
		nc_process_finish(process);
		return;
	}
	process->looks = true;
	nc_process_save(process);
}

static void on_settled(void *context, const char *sandbox, int error, const char *data, size_t size)
{
	struct nc_sandboxes *all = context;
	struct nc_sandbox *s = nc_sandbox_find(all, NULL, sandbox);

	(void)size;
	if (s && error == 0)
		(void)nc_decoys_count_again(data, &s->decoys_lost);
}

void nc_sandbox_restored(struct nc_sandbox *sandbox)
{
	const struct nc_file_work look = {.words = nc_decoys_look(),
		.output_max = 64,
		.idles = true,
		.context = sandbox->all,
		.done = on_settled};
	struct nacre_err ignored = {0};

	if (nc_decoys_wanted(sandbox->terms))
		(void)nc_sandbox_files(sandbox, &look, &ignored);
}

/* ---- the detector ---- */

static void end_it(struct nc_process *process, const struct nc_alert *alert)
{
	nc_err_set(&process->failure, -EPERM, "The policy '%s' ended it: %s [%s]",
		process->sandbox->terms->policy, alert->reason, alert->id);
	process->blocked = true;
	nc_process_save(process);
	(void)nc_process_kill(process);
}

/* Whoever resumes the sandbox lets it go on. */
static void pause_for(struct nc_process *process, const struct nc_alert *alert)
{
	struct nacre_err err = {0};

	if (process->paused_for)
		return;
	process->paused_for = true;
	/* what cannot be stopped is not let go on */
	if (nc_sandbox_pause(process->sandbox, true, true, &err) < 0)
		end_it(process, alert);
}

static void respond(struct nc_process *process)
{
	const struct nc_sandbox *sandbox = process->sandbox;
	struct nc_alert alerts[NC_SIGNAL_MAX];
	const struct nc_alert *worst;
	size_t count;

	if (!process->running || process->blocked || sandbox->paused)
		return;
	count = nc_alerts_of_command_now(process, alerts);
	switch (nc_vigil_judge(sandbox->terms, alerts, count, &worst)) {
	case NC_RESPOND_END:
		end_it(process, worst);
		break;
	case NC_RESPOND_FREEZE:
		pause_for(process, worst);
		break;
	case NC_RESPOND_REPORT:
	case NC_RESPOND_MAX:
		break;
	}
}

/* Processes are numbered over all commands of a sandbox: whoever runs beside others is not judged
 * by theirs. */
static void count_forks(struct nc_process *process, const struct nc_box_now *now)
{
	const uint64_t refused = now->so_far.usage.pids_refused;

	if (process->sandbox->n_running == 1)
		nc_forks_add(&process->forks, now->made_ns, now->made, refused);
	else
		nc_forks_skip(&process->forks, now->made_ns, now->made, refused);
}

void nc_process_told(void *context, const struct nc_box_now *now)
{
	struct nc_process *process = context;

	process->so_far = now->so_far;
	nc_rate_add(&process->memory_rate, nc_clock_ns(), now->memory_bytes);
	count_forks(process, now);
	respond(process);
}

/* What it uses is told, and then judged; where boxes tell nothing of one command, what it prints.
 */
void nc_process_look(struct nc_process *process)
{
	const struct nc_sandbox *sandbox = process->sandbox;

	if (!process->running || process->blocked || sandbox->paused)
		return;
	if (nc_sandbox_is_home(sandbox))
		(void)nc_hub_ask(sandbox->all->hub, process->box_id);
	else
		respond(process);
}
