/*
 * What the next worker has to know of sandboxes, and how it goes on with them.
 *
 * Theory of operation: each sandbox and each of its processes has a page of the ledger, which is
 * written before the spawner is asked for it and each time that something changes. The spawner
 * tells a worker that it has started again of each box and command that is still there; what has a
 * page and is told of goes on, what has none is ended, and what is not told of has ended.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/text.h"
#include "engine/sandbox_parts.h"
#include "engine/work.h"

/* So long after our beginning a holder may come with what the daemon before has left in it. */
#define HOLDERS_NS (30 * NC_NS_PER_S)
/* So long a worker may go on that has lost its spawner, and a little longer. */
#define ORPHANS_NS (3 * NC_NS_PER_S)

/* ---- writing ---- */

static json_t *note_of(const struct nc_sandbox *sandbox)
{
	return json_pack(
		"{s:s, s:s, s:s, s:s, s:O, s:O?, s:b, s:I, s:b, s:b, s:b, s:I, s:I, s:I, s:i, s:o}",
		"kind", "sandbox", "id", sandbox->id, "tenant", sandbox->tenant, "created",
		sandbox->created, "spec", sandbox->spec.source, "network", sandbox->network,
		"trusted", sandbox->spec.network.trusted, "box", (json_int_t)sandbox->box_id,
		"lives", sandbox->lives && !sandbox->filling, "ends", sandbox->ends, "paused",
		sandbox->paused, "deadline", (json_int_t)sandbox->deadline_ns, "expires",
		(json_int_t)sandbox->expires_s, "used", (json_int_t)sandbox->used_ns, "decoys",
		(int)sandbox->decoys_lost, "placeholders", nc_access_placeholders(sandbox->access));
}

void nc_sandbox_save(struct nc_sandbox *sandbox)
{
	sandbox->saved_ns = sandbox->used_ns;
	if (sandbox->page)
		(void)nc_ledger_write(sandbox->all->ledger, sandbox->page, note_of(sandbox));
}

int nc_sandbox_keep(struct nc_sandbox *sandbox)
{
	struct nc_ledger *ledger = sandbox->all->ledger;

	if (!ledger)
		return 0;
	sandbox->page = nc_ledger_add(ledger);
	return sandbox->page ? nc_ledger_write(ledger, sandbox->page, note_of(sandbox)) : -ENOMEM;
}

/* The end as the spawner tells it, in base64; null: it runs. */
static json_t *end_of(const struct nc_process *process)
{
	cleanup_wire_out struct nc_wire_out out = {0};
	cleanup_free char *text = NULL;

	if (process->running || process->awaited)
		return json_null();
	nc_wire_begin(&out, NC_BOX_ENDED);
	nc_boxwire_put_end(&out, &process->end);
	if (out.buf.error < 0 || nc_base64_encode(out.buf.data, out.buf.size, &text) < 0)
		return NULL;
	return json_string(text);
}

static json_t *note_of_process(const struct nc_process *process, json_t *end)
{
	return json_pack("{s:s, s:s, s:s, s:O, s:s, s:b, s:b, s:b, s:b, s:I, s:I, s:I, s:o, s:s, "
			 "s:i, s:i, s:b, s:b, s:b, s:i, s:O?, s:O?}",
		"kind", "process", "sandbox", process->sandbox->id, "id", process->id, "command",
		process->command, "started", process->started, "terminal", process->terminal,
		"background", process->background, "interactive", process->interactive, "hungry",
		process->hungry, "box", (json_int_t)process->box_id, "birth",
		(json_int_t)process->birth_ns, "bytes", (json_int_t)process->output_bytes, "end",
		end, "failure", process->failure.message, "error", -process->failure.code, "fail",
		(int)process->end.fail, "unborn", process->unborn, "looks", process->looks,
		"blocked", process->blocked, "risk", (int)process->risk, "denials",
		process->denials, "alerts", process->alerts);
}

void nc_process_save(struct nc_process *process)
{
	if (process->page)
		(void)nc_ledger_write(process->sandbox->all->ledger, process->page,
			note_of_process(process, end_of(process)));
}

int nc_process_keep(struct nc_process *process)
{
	struct nc_ledger *ledger = process->sandbox->all->ledger;

	if (!ledger)
		return 0;
	process->page = nc_ledger_add(ledger);
	return process->page ? nc_ledger_write(
				       ledger, process->page, note_of_process(process, json_null()))
			     : -ENOMEM;
}

/* ---- reading ---- */

static const char *text_of(const json_t *note, const char *key)
{
	const char *text = json_string_value(json_object_get(note, key));

	return text ? text : "";
}

static uint64_t number_of(const json_t *note, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(note, key));
}

static bool flag_of(const json_t *note, const char *key)
{
	return json_is_true(json_object_get(note, key));
}

static int error_of(const json_t *note)
{
	uint64_t error = number_of(note, "error");

	return error > 0 && error < 4096 ? (int)error : EIO;
}

/* A reference of the caller's; NULL: it has none. */
static json_t *list_of(const json_t *note, const char *key)
{
	json_t *list = json_object_get(note, key);

	return json_is_array(list) ? json_incref(list) : NULL;
}

/* Its spec, as it was asked for and as its network was changed since. */
static int read_spec(struct nc_sandbox *sandbox, const json_t *note)
{
	nc_cleanup(nc_freep) struct nc_faults *faults = calloc(1, sizeof(*faults));
	json_t *network = json_object_get(note, "network");
	struct nc_request_network fresh = {.trusted = flag_of(note, "trusted")};
	int r = faults ? nc_sandbox_spec_read(
				 json_incref(json_object_get(note, "spec")), &sandbox->spec, faults)
		       : -ENOMEM;

	sandbox->spec.network.trusted = flag_of(note, "trusted");
	if (r < 0 || !json_is_object(network))
		return r;
	r = nc_sandbox_network_read(network, &fresh, faults);
	if (r == 0)
		nc_sandbox_take_network(sandbox, &fresh, network);
	return r;
}

/* It is ended with its box, which nobody knows now. */
static void refuse(struct nc_sandbox *sandbox, struct nacre_err *err)
{
	struct nc_sandboxes *all = sandbox->all;
	const struct nc_engine_setup *setup = nc_engine_setup(all->setup.engine);

	nc_engine_note(all->setup.engine, "sandbox.gone",
		json_pack("{s:s, s:s, s:s}", "id", sandbox->id, "tenant", sandbox->tenant, "error",
			err->message));
	(void)nc_err_wrap(err, "A sandbox of the daemon before is ended");
	if (setup->say)
		setup->say(err->message);
	nc_sandbox_unregister(sandbox);
	nc_sandbox_free(sandbox);
}

struct nc_sandbox *nc_sandbox_recall(
	struct nc_sandboxes *all, uint32_t page, const json_t *note, bool stranded)
{
	struct nc_sandbox *sandbox = calloc(1, sizeof(*sandbox));
	const json_t *placeholders = stranded ? NULL : json_object_get(note, "placeholders");
	struct nacre_err err = {0};

	if (!sandbox)
		return NULL;
	sandbox->all = all;
	sandbox->page = page;
	sandbox->recalled = true;
	sandbox->stranded = stranded;
	(void)snprintf(sandbox->id, sizeof(sandbox->id), "%s", text_of(note, "id"));
	(void)snprintf(sandbox->tenant, sizeof(sandbox->tenant), "%s", text_of(note, "tenant"));
	(void)snprintf(sandbox->created, sizeof(sandbox->created), "%s", text_of(note, "created"));
	sandbox->box_id = number_of(note, "box");
	sandbox->lives = flag_of(note, "lives");
	sandbox->ends = flag_of(note, "ends");
	sandbox->paused = flag_of(note, "paused");
	sandbox->expires_s = number_of(note, "expires");
	sandbox->decoys_lost = (unsigned int)number_of(note, "decoys");
	if (read_spec(sandbox, note) < 0)
		nc_err_set(&err, -EINVAL, "What was asked of it cannot be read");
	if (err.code < 0 || nc_sandbox_settle(sandbox, placeholders, &err) < 0) {
		refuse(sandbox, &err);
		return NULL;
	}
	sandbox->deadline_ns = number_of(note, "deadline");
	if (sandbox->expires_s == 0) /* it is of a daemon that did not write it down */
		sandbox->expires_s = nc_sandbox_expires(sandbox);
	sandbox->saved_ns = sandbox->used_ns = number_of(note, "used");
	nc_sandbox_enlist(sandbox);
	return sandbox;
}

static void recall_sandbox(void *context, uint32_t page, const json_t *note)
{
	if (nc_streq(text_of(note, "kind"), "sandbox"))
		(void)nc_sandbox_recall(context, page, note, false);
}

static int read_end(struct nc_process *process, const char *text)
{
	cleanup_free char *data = NULL;
	struct nc_wire_in in = {0};
	size_t size = 0, at, head = 8;
	int r = nc_base64_decode(text, strlen(text), &data, &size, &at);

	if (r < 0 || size < head)
		return -EBADMSG;
	in.at = (const unsigned char *)data + head; /* a message that was never sent has no size */
	in.left = size - head;
	nc_boxwire_get_end(&in, &process->end);
	return nc_wire_close(&in);
}

/* The newest first. */
static void link_process(struct nc_process *process)
{
	struct nc_process **place = &process->sandbox->processes;

	while (*place && strcmp((*place)->started, process->started) > 0)
		place = &(*place)->next;
	process->next = *place;
	*place = process;
}

static int read_process(struct nc_process *process, const json_t *note)
{
	struct nc_ledger *ledger = process->sandbox->all->ledger;
	const json_t *end = json_object_get(note, "end");
	int r = 0;

	(void)snprintf(process->id, sizeof(process->id), "%s", text_of(note, "id"));
	(void)snprintf(process->started, sizeof(process->started), "%s", text_of(note, "started"));
	process->box_id = number_of(note, "box");
	process->birth_ns = number_of(note, "birth");
	process->hungry = flag_of(note, "hungry");
	process->output_bytes = number_of(note, "bytes");
	process->awaited = !json_is_string(end);
	process->unborn = flag_of(note, "unborn");
	process->looks = flag_of(note, "looks");
	process->blocked = flag_of(note, "blocked");
	if (number_of(note, "risk") < NC_SEVERITY_MAX)
		process->risk = (enum nc_severity)number_of(note, "risk");
	process->denials = list_of(note, "denials");
	process->alerts = list_of(note, "alerts");
	if (*text_of(note, "failure"))
		nc_err_set(&process->failure, -error_of(note), "%s", text_of(note, "failure"));
	if (!process->awaited)
		r = read_end(process, json_string_value(end));
	if (number_of(note, "fail") < NC_FAIL_MAX)
		process->end.fail = (enum nc_fail)number_of(note, "fail");
	for (enum nc_stream i = 0; r == 0 && i < NC_STREAM_MAX; i++)
		r = nc_ledger_output(ledger, process->page, i, &process->output[i]);
	return r == -EFBIG ? 0 : r;
}

static void recall_process(void *context, uint32_t page, const json_t *note)
{
	struct nc_sandboxes *all = context;
	const struct nc_process_spec spec = {.source = (json_t *)(uintptr_t)note,
		.terminal = flag_of(note, "terminal"),
		.background = flag_of(note, "background"),
		.keeps_input = flag_of(note, "interactive")};
	struct nc_sandbox *s = all->list;
	struct nc_process *process = NULL;

	if (!nc_streq(text_of(note, "kind"), "process"))
		return;
	while (s && !nc_streq(s->id, text_of(note, "sandbox")))
		s = s->next;
	if (s && json_object_get(note, "command"))
		process = nc_process_new(s, &spec);
	if (!process) {
		nc_ledger_remove(all->ledger, page);
		return;
	}
	process->page = page;
	if (read_process(process, note) < 0)
		nc_process_free(process);
	else
		link_process(process);
}

/* ---- going on ---- */

static struct nc_process *find_process(struct nc_sandbox *sandbox, uint64_t box_id, bool awaited)
{
	struct nc_process *process = sandbox->processes;

	while (process && (process->box_id != box_id || process->awaited != awaited))
		process = process->next;
	return process;
}

/* Something runs in a box that stays by itself: work on files, whose end is all that matters. */
static void let_end(struct nc_sandbox *sandbox, struct nc_adoption *adoption)
{
	const struct nc_command_spec nobody = {.output_max = UINT64_MAX, .input_fd = -EBADF};
	struct nc_command *command;

	if (nc_hub_adopt(sandbox->all->hub, adoption, &nobody, &command) == 0)
		nc_command_disown(command);
}

void nc_sandboxes_adopted(void *context, struct nc_adoption *adoption)
{
	struct nc_sandboxes *all = context;
	uint64_t home = adoption->home ? adoption->home : adoption->id;
	struct nc_sandbox *s = all->list;
	struct nc_process *process;

	while (s && s->box_id != home)
		s = s->next;
	if (!s)
		s = nc_sandbox_unstrand(all, home);
	if (!s || !all->ledger) {
		nc_hub_drop(all->hub, adoption->id);
		return;
	}
	process = find_process(s, adoption->id, true);
	if (adoption->home == 0)
		s->adopted = true;
	if (process) {
		if (nc_process_adopt(process, adoption) < 0)
			nc_hub_drop(all->hub, adoption->id);
	} else if (adoption->home == 0 && adoption->runs && s->lives) {
		let_end(s, adoption);
	} else if (adoption->home && !find_process(s, adoption->id, false)) {
		nc_hub_drop(all->hub, adoption->id);
	}
}

bool nc_sandboxes_is_decided(const struct nc_sandboxes *all, uint64_t box_id)
{
	unsigned int holder = nc_hub_holder_of(box_id);

	return holder == 0 || nc_hub_is_settled(all->hub, holder) ||
	       nc_clock_ns() >= all->patience_ns;
}

static void decide(struct nc_sandbox *sandbox)
{
	const struct nc_sandboxes *all = sandbox->all;

	sandbox->recalled = false;
	for (struct nc_process *p = sandbox->processes; p; p = p->next)
		if (p->awaited)
			nc_process_lose(p);
	/* nobody was told that it is made, or somebody that it is destroyed */
	sandbox->ends = sandbox->ends || !sandbox->lives;
	if (!sandbox->adopted)
		nc_sandbox_gone(sandbox);
	else if (sandbox->ends)
		nc_hub_drop(all->hub, sandbox->box_id);
	else /* the one before may have died before it could say so */
		(void)nc_hub_freeze(all->hub, sandbox->box_id, sandbox->paused);
}

void nc_sandboxes_bury(struct nc_sandboxes *all)
{
	for (struct nc_sandbox *next, *s = all->list; s; s = next) {
		next = s->next;
		if (s->recalled && nc_sandboxes_is_decided(all, s->box_id))
			decide(s);
	}
	nc_sandboxes_bury_stranded(all);
	nc_sandboxes_say_lost(all);
}

void nc_sandboxes_recall(struct nc_sandboxes *all)
{
	uv_loop_t *loop = nc_engine_setup(all->setup.engine)->loop;

	all->patience_ns = nc_clock_ns() + HOLDERS_NS;
	all->orphans_ns = nc_clock_ns() + ORPHANS_NS;
	if (all->ledger) {
		nc_ledger_visit(all->ledger, recall_sandbox, all);
		nc_ledger_visit(all->ledger, recall_process, all);
	}
	if (all->registry)
		nc_sandboxes_find_stranded(all);
	/* now, since those that are adopted look themselves */
	for (const struct nc_sandbox *s = all->list; s; s = s->next)
		for (struct nc_process *p = s->processes; p; p = p->next)
			if (p->looks)
				nc_process_unlooked(p);
	while (nc_hub_unadopted(all->hub) > 0)
		(void)uv_run(loop, UV_RUN_ONCE);
	nc_sandboxes_bury(all);
}
