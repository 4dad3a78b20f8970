/*
 * Sandboxes: how they are made and how they end. What runs in them is in sandbox_process.c.
 *
 * Theory of operation: a sandbox is a box that stays that is shared. Its first command puts no
 * file into it, which shows that it works; from then on each command is ordered beside the others.
 * The spawner keeps it over the death of this worker, and what the next worker has to know of it
 * stands in a ledger that both have (sandbox_keep.c).
 */
#include "engine/sandbox.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/text.h"
#include "box/image.h"
#include "box/unpack.h"
#include "engine/binds.h"
#include "engine/bounds.h"
#include "engine/decoys.h"
#include "engine/hooks.h"
#include "engine/network.h"
#include "engine/owner.h"
#include "engine/sandbox_parts.h"
#include "engine/sandbox_sudo.h"
#include "engine/work.h"
#include "kernel/cgroup_box.h"

#define MB (1024ULL * 1024)

/* What a sandbox has unless more or less is asked for: seed 003's. */
#define MEMORY_BYTES (512 * MB)
#define DISK_BYTES (512 * MB)
#define CPU_MILLI 1000U
#define PIDS 256U
/* Of a tenant that are made at once: others' boxes wait for no more than these. */
#define BIRTHS_EACH 3U
#define MAKE_MS 20000U

struct nc_stats_wait {
	struct nc_stats_wait *next;
	nc_sandbox_told told;
	void *context;
};

bool nc_sandbox_is_home(const struct nc_sandbox *sandbox)
{
	const struct nc_engine_setup *setup = nc_engine_setup(sandbox->all->setup.engine);

	return nc_holder_terms(setup->holder, sandbox->exec.tier)->shares;
}

/* Its life is its own; how long each command may take is what a policy may bound. */
static int set_limits(struct nc_sandbox *sandbox, struct nacre_err *err)
{
	const struct nc_request_limits *named = &sandbox->spec.limits;
	struct nc_box_limits *limits = &sandbox->limits;
	const char *name;
	int r = nc_bounds_check(sandbox->terms, named, &name, err);

	if (r < 0)
		return r;
	*limits = (struct nc_box_limits){.memory_bytes = MEMORY_BYTES,
		.cpu_milli = CPU_MILLI,
		.wall_ms = NC_SANDBOX_LIFE_MAX_MS,
		.pids = PIDS,
		.disk_bytes = DISK_BYTES};
	nc_bounds_hold(sandbox->terms, limits);
	limits->memory_bytes = nc_named_or(&named->memory_bytes, limits->memory_bytes);
	limits->cpu_milli = nc_named_or(&named->cpu_milli, limits->cpu_milli);
	limits->cpu_time_ms = nc_named_or(&named->cpu_time_ms, 0);
	limits->wall_ms = nc_named_or(&named->wall_ms, limits->wall_ms);
	limits->pids = nc_named_or(&named->processes, limits->pids);
	limits->disk_bytes = nc_named_or(&named->disk_bytes, limits->disk_bytes);
	limits->inodes = nc_named_or(&named->inodes, limits->disk_bytes / 4096 + 64);
	limits->open_files = nc_named_or(&named->open_files, nc_files_usual());
	return 0;
}

/* The words of its environment, for all of its commands. */
static int fill_env(struct nc_sandbox *sandbox)
{
	const struct nc_engine_setup *engine = nc_engine_setup(sandbox->all->setup.engine);
	const struct nc_request_pairs *env = &sandbox->spec.env;
	char workspace[NC_PLACE_SIZE], temporary[NC_PLACE_SIZE];
	nc_buf_cleanup struct nc_buf words = NC_BUF(1U << 20);
	const char *list[NC_REQUEST_ENV_MAX + 64] = {NULL};
	size_t n = 0;

	nc_box_places(engine->holder, sandbox->exec.tier, sandbox->box_id, workspace, temporary);
	nc_access_words(sandbox->access, workspace, &words);
	for (size_t i = 0; i < env->count; i++)
		nc_buf_addf(&words, "%s=%s%c", env->pair[i].name, env->pair[i].value, '\0');
	if (words.error < 0)
		return words.error;
	for (const char *word = nc_buf_text(&words);
		word < nc_buf_text(&words) + words.size && n + 1 < sizeof(list) / sizeof(list[0]);
		word += strlen(word) + 1)
		list[n++] = word;
	sandbox->env = (struct nc_word_list)NC_WORD_LIST;
	nc_env_fill(&sandbox->env,
		&(struct nc_env_place){workspace, temporary, sandbox->exec.tier,
			sandbox->limits.memory_bytes, sandbox->exec.user, sandbox->exec.writable},
		list);
	return sandbox->env.buf.error;
}

static void on_over(void *context, enum nc_reason reason, enum nc_policy_over how);

/* What was found to be wrong, said of a part of the request that is refused for it. */
static int refuse(struct nacre_err *err, const char *part)
{
	(void)nc_err_wrap(err, "%s", part);
	err->code = -EPERM;
	return -EPERM;
}

/* Whether boxes of its tier are to be had. */
static int check_tier(
	const struct nc_engine_setup *engine, enum nc_tier tier, struct nacre_err *err)
{
	const struct nc_tier_terms *terms = nc_holder_terms(engine->holder, tier);

	if (terms->here &&
		nc_terms_are_enough(terms, nc_holder_terms(engine->holder, NC_TIER_CONTAINER)))
		return 0;
	if (terms->here)
		return nc_err_set(err, -EPERM,
			"tier: a %s box is held by less than what runs in sandboxes needs",
			nc_tier_names[tier]);
	return tier == NC_TIER_CONTAINER
		       ? nc_err_set(err, -EOPNOTSUPP,
				 "Sandboxes need a user namespace, which cannot be had here (see: "
				 "nacre doctor)")
		       : nc_err_set(err, -EOPNOTSUPP,
				 "tier: '%s' cannot be had here (see: nacre doctor)",
				 nc_tier_names[tier]);
}

/* Terms, limits and order, from its spec. */
int nc_sandbox_settle(struct nc_sandbox *sandbox, const json_t *placeholders, struct nacre_err *err)
{
	const struct nc_engine_setup *engine = nc_engine_setup(sandbox->all->setup.engine);
	int r = nc_engine_terms(sandbox->all->setup.engine, sandbox->spec.policy, sandbox->tenant,
		&sandbox->terms, err);

	if (r < 0)
		return refuse(err, "policy");
	r = check_tier(engine, sandbox->spec.tier, err);
	if (r == 0)
		r = nc_bounds_check_root(
			sandbox->terms, *sandbox->spec.user, sandbox->spec.writable_root, err);
	if (r == 0)
		r = nc_hooks_check_env(
			sandbox->terms, &sandbox->spec.env, &sandbox->spec.network.secrets, err);
	if (r == 0)
		r = set_limits(sandbox, err);
	sandbox->spec.network.secrets.handed_over = placeholders != NULL;
	/* one that is there lives on without a network that has died */
	if (r == 0 && !sandbox->stranded && (!placeholders || nc_network_is_up(engine->network)))
		r = nc_access_new(engine->network, sandbox->terms, sandbox->tenant,
			&sandbox->spec.network, &sandbox->access, err);
	if (r < 0)
		return r;
	if (sandbox->access)
		nc_access_on_over(sandbox->access, on_over, sandbox);
	if (placeholders && sandbox->access)
		nc_access_resume(sandbox->access, sandbox->box_id, placeholders);
	nc_bounds_wish(sandbox->terms, &sandbox->spec.limits, &sandbox->wish);
	sandbox->exec = (struct nc_exec_spec){.id = sandbox->box_id,
		.tier = sandbox->spec.tier,
		.users = *sandbox->spec.user,
		.writable = sandbox->spec.writable_root};
	memcpy(sandbox->exec.user, sandbox->spec.user, sizeof(sandbox->exec.user));
	r = nc_settle(engine->holder, &sandbox->wish, &sandbox->exec, err);
	if (r < 0)
		return refuse(err, "limits");
	sandbox->exec.limits = sandbox->limits;
	return fill_env(sandbox) < 0 ? nc_err_set(err, -ENOMEM, "Out of memory") : 0;
}

void nc_sandbox_free(struct nc_sandbox *sandbox)
{
	if (sandbox->all->ledger)
		nc_ledger_remove(sandbox->all->ledger, sandbox->page);
	nc_sudo_free(take_ptr(sandbox->sudo));
	if (sandbox->making)
		nc_command_disown(sandbox->making);
	while (sandbox->processes) {
		struct nc_process *process = sandbox->processes;

		sandbox->processes = process->next;
		if (process->running)
			nc_command_disown(process->running);
		nc_process_free(process);
	}
	nc_buf_done(&sandbox->env.buf);
	nc_buf_done(&sandbox->files);
	nc_access_free(sandbox->access);
	json_decref(sandbox->network);
	nc_sandbox_spec_done(&sandbox->spec);
	free(sandbox);
}

static void answer_stats(struct nc_sandbox *sandbox, const json_t *stats)
{
	while (sandbox->waiting) {
		struct nc_stats_wait *wait = sandbox->waiting;

		sandbox->waiting = wait->next;
		if (wait->told)
			wait->told(wait->context, stats);
		free(wait);
	}
}

static void note(const struct nc_sandbox *sandbox, const char *event)
{
	json_t *body = nc_sandbox_json(sandbox);

	if (sandbox->access)
		(void)json_object_set_new(body, "decisions", nc_access_decisions(sandbox->access));
	nc_engine_note(sandbox->all->setup.engine, event, body);
}

void nc_sandbox_gone(struct nc_sandbox *sandbox)
{
	struct nc_sandboxes *all = sandbox->all;
	struct nc_sandbox **place = &all->list;

	while (*place != sandbox)
		place = &(*place)->next;
	*place = sandbox->next;
	all->count--;
	sandbox->lives = false;
	nc_sudo_free(take_ptr(sandbox->sudo));
	nc_processes_lose(sandbox);
	if (all->gate.release)
		all->gate.release(all->gate.context, sandbox->tenant, &sandbox->limits);
	/* a worker that has lost its spawner, and the one that has begun meanwhile, know of it both
	 */
	if (!all->registry || !nc_registry_was_taken(all->registry, sandbox->id))
		note(sandbox, "sandbox.gone");
	nc_sandbox_unregister(sandbox);
	answer_stats(sandbox, NULL);
	nc_sandbox_free(sandbox);
}

static void tell_made(struct nc_sandbox *sandbox, const struct nacre_err *failure)
{
	nc_sandbox_made made = sandbox->made;

	sandbox->made = NULL;
	if (made)
		made(sandbox->made_context, failure ? NULL : sandbox, failure);
}

/* A limit of its network was met. Whoever raises that lets it go on. */
static void on_over(void *context, enum nc_reason reason, enum nc_policy_over how)
{
	struct nc_sandbox *sandbox = context;
	struct nacre_err err = {0};

	(void)reason; /* which is among the decisions that are noted */
	note(sandbox, "sandbox.over-budget");
	if (how == NC_OVER_END || nc_sandbox_pause(sandbox, true, true, &err) < 0)
		nc_sandbox_destroy(sandbox);
}

static void on_started(void *context, uint64_t birth_ns, int door_fd)
{
	struct nc_sandbox *sandbox = context;

	(void)birth_ns;
	/* it is not made without what was asked for */
	if (door_fd >= 0 &&
		nc_access_open(sandbox->access, sandbox->box_id, door_fd, &sandbox->trouble) < 0)
		sandbox->ends = true;
}

static void on_printed(void *context, enum nc_stream stream, const char *data, size_t size)
{
	(void)context, (void)stream, (void)data, (void)size; /* it has nothing to say */
}

static void begin_next(struct nc_sandboxes *all);

/* There is none, for what happened to it. */
static void fail(struct nc_sandbox *sandbox)
{
	struct nacre_err err = sandbox->trouble;

	if (err.code == 0)
		nc_err_set(&err, -ECANCELED, "It was destroyed while it was made");
	nc_hub_drop(sandbox->all->hub, sandbox->box_id);
	tell_made(sandbox, &err);
	nc_sandbox_gone(sandbox);
}

/* Its box is there, and it is written down. */
static void finish(struct nc_sandbox *sandbox)
{
	if (sandbox->trouble.code < 0 || sandbox->ends) {
		fail(sandbox);
		return;
	}
	sandbox->lives = true;
	sandbox->used_ns = nc_clock_ns();
	nc_sandbox_save(sandbox);
	nc_sudo_tick(sandbox);
	tell_made(sandbox, NULL);
}

static void on_made(void *context, const struct nc_box_end *end, uint64_t output_bytes,
	const struct nacre_err *failure)
{
	struct nc_sandbox *sandbox = context;
	struct nc_sandboxes *all = sandbox->all;

	(void)output_bytes;
	sandbox->making = NULL;
	nc_buf_done(&sandbox->files);
	if (failure)
		sandbox->trouble = *failure;
	else if (sandbox->trouble.code == 0 && (!end->stays || end->code != 0))
		nc_err_set(&sandbox->trouble, -EIO, "The box ended while it was made");
	sandbox->built = true;
	if (!sandbox->writing || sandbox->trouble.code < 0)
		finish(sandbox);
	begin_next(all);
}

void nc_sandbox_written(void *context, int error)
{
	struct nc_sandbox *sandbox = context;

	sandbox->writing = false;
	if (error < 0 && sandbox->trouble.code == 0)
		nc_err_set(&sandbox->trouble, error == -ENOSPC || error == -EDQUOT ? -ENOSPC : -EIO,
			"Write the sandbox down: %s", nc_errno_text(error));
	if (sandbox->built)
		finish(sandbox);
}

void nc_sandbox_filled(struct nc_sandbox *sandbox)
{
	sandbox->filling = false;
	nc_sandbox_restored(sandbox);
	nc_sandbox_save(sandbox);
	nc_sandbox_register(sandbox);
}

static int show_binds(
	const struct nc_sandbox *sandbox, struct nc_exec_spec *exec, struct nacre_err *err)
{
	const struct nc_binds *binds = nc_engine_setup(sandbox->all->setup.engine)->binds;
	const struct nc_request_words *wanted = &sandbox->spec.binds;

	for (size_t i = 0; i < wanted->count; i++) {
		if (!nc_binds_has(binds, wanted->words[i]))
			return nc_binds_unknown(wanted->words[i], err);
		nc_binds_show(binds, wanted->words[i], exec);
	}
	return 0;
}

static int start(struct nc_sandbox *sandbox, struct nacre_err *err)
{
	static const char words[] = "nacre-files\0put";
	const struct nc_buf *trusted = nc_access_trusted(sandbox->access);
	struct nc_exec_spec exec = sandbox->exec;
	struct nc_command_spec spec = {.exec = &exec,
		.image_fd = -EBADF,
		.input_fd = -EBADF,
		.output_max = UINT64_MAX,
		.context = sandbox,
		.started = on_started,
		.printed = on_printed,
		.ended = on_made};
	int r;

	nc_buf_done(&sandbox->files);
	sandbox->files = (struct nc_buf)NC_BUF(NC_TRUSTED_MAX + 16384);
	if (trusted)
		nc_pack_add(
			&sandbox->files, NC_ACCESS_TRUSTED, trusted->data, trusted->size, false);
	if (nc_decoys_wanted(sandbox->terms))
		nc_decoys_put(NULL, &sandbox->files);
	nc_pack_end(&sandbox->files);
	if (sandbox->files.error < 0)
		return nc_err_errno(err, sandbox->files.error, "Make the sandbox");
	spec.input = sandbox->files.data;
	spec.input_size = sandbox->files.size;
	exec.stays = exec.files = true;
	exec.shared = nc_sandbox_is_home(sandbox);
	exec.survives = sandbox->all->ledger;
	exec.door = sandbox->access;
	exec.guests = nc_access_has_guests(sandbox->access);
	exec.limits.wall_ms = MAKE_MS;
	/* files are memory too, and belong to no command once it has ended */
	exec.limits.memory_bytes += exec.limits.disk_bytes;
	exec.argv = (struct nc_box_words){words, sizeof(words), 2};
	r = show_binds(sandbox, &exec, err);
	if (r < 0)
		return r;
	if (*sandbox->spec.image && !nc_streq(sandbox->spec.image, NC_IMAGE_HOST)) {
		spec.image_fd =
			nc_image_at(sandbox->all->setup.image_store_fd, sandbox->spec.image, err);
		if (spec.image_fd < 0)
			return spec.image_fd;
	}
	r = nc_hub_start(sandbox->all->hub, &spec, &sandbox->making, err);
	(void)nc_fd_close(spec.image_fd);
	return r;
}

/* How many of a tenant are being made. */
static size_t making_of(const struct nc_sandboxes *all, const char *tenant)
{
	size_t n = 0;

	for (const struct nc_sandbox *s = all->list; s; s = s->next)
		n += s->making && nc_streq(s->tenant, tenant);
	return n;
}

/* The oldest that waits of the tenant that has the fewest being made; NULL: none may be now. */
static struct nc_sandbox *find_unborn(const struct nc_sandboxes *all)
{
	struct nc_sandbox *best = NULL;
	size_t least = BIRTHS_EACH;

	for (struct nc_sandbox *s = all->list; s; s = s->next) {
		size_t n = s->unborn ? making_of(all, s->tenant) : BIRTHS_EACH;

		if (n >= least)
			continue;
		best = s;
		least = n;
	}
	return best;
}

static void begin_next(struct nc_sandboxes *all)
{
	struct nc_sandbox *next;

	while ((next = find_unborn(all))) {
		struct nacre_err err = {0};
		int r = next->made ? start(next, &err)
				   : nc_err_set(&err, -ECANCELED, "Nobody waits for it");

		next->unborn = false;
		if (r == 0)
			continue;
		tell_made(next, &err);
		nc_sandbox_gone(next);
	}
}

static size_t count_of(const struct nc_sandboxes *all, const char *tenant)
{
	size_t n = 0;

	for (const struct nc_sandbox *s = all->list; s; s = s->next)
		n += nc_streq(s->tenant, tenant);
	return n;
}

void nc_sandbox_enlist(struct nc_sandbox *sandbox)
{
	struct nc_sandbox **place = &sandbox->all->list;

	while (*place && strcmp((*place)->created, sandbox->created) <= 0)
		place = &(*place)->next;
	sandbox->next = *place;
	*place = sandbox;
	sandbox->all->count++;
}

int nc_sandbox_create(struct nc_sandboxes *all, const char *tenant, bool trusted, json_t *body,
	nc_sandbox_made made, void *context, struct nc_faults *faults, struct nacre_err *err)
{
	struct nc_sandbox *sandbox = calloc(1, sizeof(*sandbox));
	int r = sandbox ? nc_sandbox_spec_read(json_incref(body), &sandbox->spec, faults) : -ENOMEM;

	if (r < 0) {
		free(sandbox);
		return r == -EINVAL ? r : nc_err_set(err, r, "Out of memory");
	}
	sandbox->all = all;
	sandbox->adopted = true;
	sandbox->spec.network.trusted = trusted;
	sandbox->made = made;
	sandbox->made_context = context;
	sandbox->box_id = nc_hub_box_id(all->hub, sandbox->spec.tier);
	(void)snprintf(sandbox->tenant, sizeof(sandbox->tenant), "%s", tenant);
	nc_clock_stamp(sandbox->created);
	if (all->count >= all->setup.max || count_of(all, tenant) >= all->setup.max_each ||
		(*tenant && !nc_share_allows(count_of(all, tenant), all->count, all->setup.max)))
		r = nc_err_set(err, -EAGAIN, "There are %zu sandboxes already; destroy one first",
			all->count);
	if (r == 0 && nc_id_new("sb", sandbox->id) < 0)
		r = nc_err_set(err, -EIO, "Make an id");
	if (r == 0)
		r = nc_sandbox_settle(sandbox, NULL, err);
	nc_sandbox_set_deadline(sandbox, nc_named_or(&sandbox->spec.life_ms, NC_SANDBOX_LIFE_MS));
	sandbox->filling = *sandbox->spec.snapshot;
	if (r == 0 && all->gate.admit)
		r = all->gate.admit(all->gate.context, tenant, &sandbox->limits, err);
	if (r < 0) {
		nc_sandbox_free(sandbox);
		return r;
	}
	r = nc_sandbox_keep(sandbox);
	if (r < 0)
		nc_err_errno(err, r, "Make the sandbox");
	else
		r = nc_sandbox_write(sandbox, err);
	sandbox->unborn = r == 0 && making_of(all, tenant) >= BIRTHS_EACH;
	if (r == 0 && !sandbox->unborn)
		r = start(sandbox, err);
	nc_sandbox_enlist(sandbox);
	if (r < 0)
		nc_sandbox_gone(sandbox);
	else
		note(sandbox, "sandbox.created");
	return r;
}

void nc_sandboxes_forget(struct nc_sandboxes *all, const void *context)
{
	nc_file_tasks_forget(all, context);
	for (struct nc_sandbox *s = all->list; s; s = s->next) {
		if (s->made_context == context)
			s->made = NULL;
		for (struct nc_stats_wait *wait = s->waiting; wait; wait = wait->next)
			if (wait->context == context)
				wait->told = NULL;
		for (struct nc_process *p = s->processes; p; p = p->next)
			nc_process_forget(p, context);
	}
}

struct nc_sandbox *nc_sandbox_find(
	const struct nc_sandboxes *all, const char *tenant, const char *id)
{
	for (struct nc_sandbox *s = all->list; s; s = s->next)
		if (s->lives && !s->ends && nc_streq(s->id, id) &&
			nc_owner_sees(NC_STORE_SANDBOXES, s->tenant, tenant))
			return s;
	return NULL;
}

void nc_sandboxes_visit(const struct nc_sandboxes *all, const char *tenant,
	bool (*visit)(void *context, struct nc_sandbox *sandbox), void *context)
{
	for (struct nc_sandbox *next, *s = all->list; s; s = next) {
		next = s->next;
		if (s->lives && !s->ends && nc_owner_sees(NC_STORE_SANDBOXES, s->tenant, tenant) &&
			!visit(context, s))
			return;
	}
}

size_t nc_sandboxes_count(const struct nc_sandboxes *all)
{
	return all->count;
}

void nc_sandboxes_load(const struct nc_sandboxes *all, struct nc_sandboxes_load *ret_load)
{
	*ret_load = (struct nc_sandboxes_load){
		.sandboxes = all->count, .lost = all->lost_before + all->lost};
	for (const struct nc_sandbox *s = all->list; s; s = s->next) {
		ret_load->commands += s->n_running;
		ret_load->memory_bytes += s->limits.memory_bytes;
		ret_load->cpu_milli += s->limits.cpu_milli;
	}
}

const char *nc_sandbox_id(const struct nc_sandbox *sandbox)
{
	return sandbox->id;
}

const char *nc_sandbox_state(const struct nc_sandbox *sandbox)
{
	return sandbox->paused			      ? "paused"
	       : sandbox->lives && !sandbox->recalled ? "running"
						      : "starting";
}

const struct nc_terms *nc_sandbox_terms(const struct nc_sandbox *sandbox)
{
	return sandbox->terms;
}

const char *nc_sandbox_tenant(const struct nc_sandbox *sandbox)
{
	return sandbox->tenant;
}

const char *nc_sandbox_snapshot(const struct nc_sandbox *sandbox)
{
	return sandbox->spec.snapshot;
}

size_t nc_sandbox_running(const struct nc_sandbox *sandbox)
{
	return sandbox->n_running;
}

bool nc_sandbox_has_label(const struct nc_sandbox *sandbox, const char *name, const char *value)
{
	const struct nc_request_pairs *labels = &sandbox->spec.labels;

	for (size_t i = 0; i < labels->count; i++)
		if (nc_streq(labels->pair[i].name, name) && nc_streq(labels->pair[i].value, value))
			return true;
	return false;
}

static double seconds_left(const struct nc_sandbox *sandbox)
{
	uint64_t now = nc_clock_ns();

	return sandbox->deadline_ns > now ? (double)(sandbox->deadline_ns - now) / 1e9 : 0;
}

json_t *nc_sandbox_json(const struct nc_sandbox *sandbox)
{
	const struct nc_box_limits *limits = &sandbox->limits;
	json_t *labels = json_object_get(sandbox->spec.source, "labels");
	const char *image = *sandbox->spec.image ? sandbox->spec.image : NC_IMAGE_HOST;

	return json_pack(
		"{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:b, s:f, s:o, s:I, s:{s:I, s:f, s:I, s:I}}",
		"id", sandbox->id, "state", nc_sandbox_state(sandbox), "created", sandbox->created,
		"tenant", sandbox->tenant, "image", image, "policy", sandbox->terms->policy, "user",
		*sandbox->spec.user ? sandbox->spec.user : NC_SANDBOX_USER, "writable_root",
		sandbox->spec.writable_root, "seconds_left", seconds_left(sandbox), "labels",
		labels ? json_incref(labels) : json_object(), "running",
		(json_int_t)sandbox->n_running, "limits", "memory_mb",
		(json_int_t)(limits->memory_bytes / MB), "cpu_cores",
		(double)limits->cpu_milli / 1000, "disk_mb", (json_int_t)(limits->disk_bytes / MB),
		"max_processes", (json_int_t)limits->pids);
}

void nc_sandbox_destroy(struct nc_sandbox *sandbox)
{
	if (sandbox->ends)
		return;
	sandbox->ends = true;
	nc_access_leave(sandbox->access);
	nc_sandbox_save(sandbox);
	nc_hub_drop(sandbox->all->hub, sandbox->box_id); /* and its end is told */
}

uint64_t nc_sandbox_expires(const struct nc_sandbox *sandbox)
{
	return nc_clock_real_ns() / NC_NS_PER_S + (uint64_t)seconds_left(sandbox);
}

void nc_sandbox_set_deadline(struct nc_sandbox *sandbox, uint64_t life_ms)
{
	sandbox->deadline_ns = nc_clock_ns() + life_ms * NC_NS_PER_MS;
	sandbox->expires_s = nc_sandbox_expires(sandbox);
}

int nc_sandbox_extend(struct nc_sandbox *sandbox, uint64_t seconds, struct nacre_err *err)
{
	if (seconds == 0 || seconds * 1000 > NC_SANDBOX_LIFE_MAX_MS)
		return nc_err_set(err, -EINVAL, "timeout: expected 1 to %u seconds",
			NC_SANDBOX_LIFE_MAX_MS / 1000);
	nc_sandbox_set_deadline(sandbox, seconds * 1000);
	nc_sandbox_save(sandbox);
	nc_sandbox_register(sandbox);
	return 0;
}

void nc_sandbox_take_network(
	struct nc_sandbox *sandbox, struct nc_request_network *fresh, json_t *body)
{
	struct nc_request_network *held = &sandbox->spec.network;
	struct nc_request_secrets secrets = held->secrets;

	held->secrets = (struct nc_request_secrets){0};
	nc_request_network_done(held);
	*held = *fresh;
	held->secrets = secrets;
	json_decref(sandbox->network);
	sandbox->network = json_incref(body);
}

int nc_sandbox_network(struct nc_sandbox *sandbox, bool trusted, json_t *body,
	struct nc_faults *faults, struct nacre_err *err)
{
	struct nc_request_network fresh = {.trusted = trusted};
	int r;

	if (!nc_access_is_open(sandbox->access))
		return nc_err_set(err, -EBUSY,
			"The sandbox was made without a network, or that has died: make another");
	r = nc_sandbox_network_read(body, &fresh, faults);
	if (r == 0)
		r = nc_access_change(sandbox->access, sandbox->terms, &fresh, err);
	if (r < 0) {
		nc_request_network_done(&fresh);
		return r;
	}
	nc_sandbox_take_network(sandbox, &fresh, body);
	nc_sandbox_save(sandbox);
	nc_sandbox_register(sandbox);
	return 0;
}

int64_t nc_sandbox_pause(struct nc_sandbox *sandbox, bool paused, bool must, struct nacre_err *err)
{
	const struct nc_engine_setup *engine = nc_engine_setup(sandbox->all->setup.engine);
	int64_t ticket;

	if (!nc_holder_terms(engine->holder, sandbox->exec.tier)->stops)
		return nc_err_set(err, -EOPNOTSUPP,
			"Nothing can be stopped here: no control group can be frozen");
	ticket = nc_hub_freeze(sandbox->all->hub, sandbox->box_id, paused);
	if (ticket < 0)
		return nc_err_errno(err, (int)ticket, "Ask the box");
	sandbox->pausing = ticket;
	sandbox->must_pause = must;
	sandbox->paused = paused;
	sandbox->used_ns = nc_clock_ns();
	nc_sandbox_save(sandbox);
	nc_sandbox_register(sandbox);
	return ticket;
}

/* It was not stopped, or does not go on. */
static void take_back(struct nc_sandbox *sandbox)
{
	sandbox->paused = !sandbox->paused;
	note(sandbox, sandbox->paused ? "sandbox.not-resumed" : "sandbox.not-paused");
	nc_sandbox_save(sandbox);
	nc_sandbox_register(sandbox);
	if (sandbox->must_pause)
		nc_sandbox_destroy(sandbox);
}

static void on_answered(void *context, int64_t ticket, int error)
{
	const struct nc_sandboxes *all = context;

	for (struct nc_sandbox *next, *s = all->list; s; s = next) {
		next = s->next;
		if (s->pausing == 0 || !nc_hub_is_ticket(ticket, s->pausing))
			continue;
		s->pausing = 0;
		if (error < 0 && error != -ESRCH) /* that has ended, which is told otherwise */
			take_back(s);
	}
	if (all->gate.answered)
		all->gate.answered(all->gate.context, ticket, error);
}

int nc_sandbox_stats(struct nc_sandbox *sandbox, nc_sandbox_told told, void *context)
{
	struct nc_stats_wait *wait = calloc(1, sizeof(*wait));

	if (!wait)
		return -ENOMEM;
	*wait = (struct nc_stats_wait){sandbox->waiting, told, context};
	sandbox->waiting = wait;
	nc_access_ask(sandbox->access);
	(void)nc_hub_ask(sandbox->all->hub, sandbox->box_id);
	return 0;
}

static struct nc_sandbox *find_box(struct nc_sandboxes *all, uint64_t box_id)
{
	struct nc_sandbox *s = all->list;

	while (s && s->box_id != box_id)
		s = s->next;
	return s;
}

static void on_told(void *context, const struct nc_box_now *now)
{
	struct nc_sandbox *sandbox = find_box(context, now->id);
	cleanup_json json_t *stats = NULL;

	if (!sandbox)
		return;
	stats = json_pack("{s:s, s:f, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:b, s:f, s:o}", "id",
		sandbox->id, "cpu_seconds", (double)now->cpu_us / 1e6, "memory_bytes",
		(json_int_t)now->memory_bytes, "memory_peak_bytes",
		(json_int_t)now->memory_peak_bytes, "processes", (json_int_t)now->pids,
		"disk_bytes", (json_int_t)now->disk_bytes, "io_read_bytes",
		(json_int_t)now->io_read_bytes, "io_written_bytes",
		(json_int_t)now->io_written_bytes, "commands", (json_int_t)sandbox->n_running,
		"paused", now->frozen, "seconds_left", seconds_left(sandbox), "network",
		nc_access_usage(sandbox->access));
	answer_stats(sandbox, stats);
}

/* Its box is: somebody may still wait for it to be written down. */
static void vanish(struct nc_sandbox *sandbox)
{
	if (sandbox->writing && sandbox->built)
		fail(sandbox);
	else
		nc_sandbox_gone(sandbox);
}

static void on_gone(void *context, uint64_t box_id)
{
	struct nc_sandbox *sandbox = find_box(context, box_id);

	if (sandbox)
		vanish(sandbox);
}

/* What it held is gone with it. */
static void on_lost(void *context, unsigned int holder)
{
	const struct nc_sandboxes *all = context;

	for (struct nc_sandbox *next, *s = all->list; s; s = next) {
		next = s->next;
		if (nc_hub_holder_of(s->box_id) == holder)
			vanish(s);
	}
}

void nc_sandboxes_tick(struct nc_sandboxes *all)
{
	uint64_t now = nc_clock_ns();

	if (all->registry)
		nc_registry_tick(all->registry);
	nc_sandboxes_bury(all);
	for (struct nc_sandbox *s = all->list; s; s = s->next) {
		uint64_t idle_ns = s->spec.idle_ms.value * NC_NS_PER_MS;

		if (s->lives && s->saved_ns != s->used_ns)
			nc_sandbox_save(s);
		/* whoever holds the box may not have taken it, and does nothing the second time */
		if (s->lives && s->ends)
			nc_hub_drop(all->hub, s->box_id);
		nc_sudo_tick(s);
		for (struct nc_process *p = s->processes; p; p = p->next)
			nc_process_look(p);
		if (s->lives &&
			(now >= s->deadline_ns || (s->spec.idle_ms.given && s->n_running == 0 &&
							  s->n_tasks == s->n_idling && !s->paused &&
							  now - s->used_ns >= idle_ns)))
			nc_sandbox_destroy(s);
	}
}

void nc_sandboxes_guard(struct nc_sandboxes *all, const struct nc_sandboxes_gate *gate)
{
	all->gate = *gate;
	for (const struct nc_sandbox *s = all->list; s; s = s->next) {
		gate->resume(gate->context, s->tenant, &s->limits);
		for (struct nc_process *p = s->processes; p; p = p->next)
			nc_process_count(p);
	}
}

int nc_sandboxes_new(const struct nc_sandboxes_setup *setup, struct nc_sandboxes **ret_sandboxes)
{
	struct nc_sandboxes *all = calloc(1, sizeof(*all));
	const struct nc_hub_watch watch = {.context = all,
		.adopted = nc_sandboxes_adopted,
		.told = on_told,
		.gone = on_gone,
		.lost = on_lost,
		.answered = on_answered};
	int r = all ? 0 : -ENOMEM;

	if (r == 0 && setup->memory_fd >= 0)
		r = nc_ledger_open(setup->memory_fd, setup->inbox_fd, &all->ledger);
	if (r == 0 && setup->registry_fd >= 0)
		r = nc_registry_new(nc_engine_setup(setup->engine)->loop, setup->registry_fd,
			nc_engine_setup(setup->engine)->say, &all->registry);
	if (r < 0) {
		if (all)
			nc_ledger_free(all->ledger);
		free(all);
		return r;
	}
	all->setup = *setup;
	all->hub = nc_engine_hub(setup->engine);
	nc_hub_watch(all->hub, &watch);
	nc_sandboxes_recall(all);
	*ret_sandboxes = all;
	return 0;
}

void nc_sandboxes_end(struct nc_sandboxes *all, bool lost)
{
	for (struct nc_sandbox *next, *s = all->list; s; s = next) {
		next = s->next;
		if (lost || s->unborn)
			nc_sandbox_gone(s);
		else
			nc_sandbox_destroy(s);
	}
}

void nc_sandboxes_leave(struct nc_sandboxes *all)
{
	for (struct nc_sandbox *s = all->list; s; s = s->next)
		if (s->lives)
			nc_sandbox_save(s);
	nc_registry_free(take_ptr(all->registry));
}

void nc_sandboxes_free(struct nc_sandboxes *all)
{
	static const struct nc_hub_watch nobody;

	if (!all)
		return;
	nc_hub_watch(all->hub, &nobody);
	nc_file_tasks_forget(all, NULL);
	nc_sandboxes_forget_stranded(all);
	nc_registry_free(all->registry);
	nc_ledger_free(all->ledger);
	all->registry = NULL; /* what is written there is the next worker's */
	all->ledger = NULL;
	while (all->list) {
		struct nc_sandbox *sandbox = all->list;

		all->list = sandbox->next;
		sandbox->made = NULL;
		answer_stats(sandbox, NULL);
		nc_sandbox_free(sandbox);
	}
	free(all);
}
