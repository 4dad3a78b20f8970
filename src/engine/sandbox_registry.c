/*
 * Which sandboxes there are, on disk (engine/registry.h): written while a box is made, read when a
 * daemon begins.
 *
 * Theory of operation: the ledger tells the next worker everything, and dies with the spawner. A
 * record tells whose a sandbox is and on what terms, so that the box of a holder that has outlived
 * the spawner has an owner again. What ran in it is not known any more, nor what its network was
 * told: it goes on without both. A record whose box nobody can have any more is told of once.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/text.h"
#include "engine/owner.h"
#include "engine/sandbox_parts.h"
#include "engine/work.h"

static json_t *record_of(const struct nc_sandbox *sandbox)
{
	const struct nc_request_secrets *secrets = &sandbox->spec.network.secrets;

	/* nacre-egress has them since its terms were settled; none reaches a disk, whatever happens
	 */
	for (size_t i = 0; i < secrets->count; i++)
		nc_request_secret_forget(&secrets->secret[i]);
	return json_pack("{s:i, s:s, s:s, s:s, s:I, s:s, s:I, s:I, s:b, s:b, s:b, s:O, s:O?}",
		"version", NC_REGISTRY_VERSION, "id", sandbox->id, "tenant", sandbox->tenant,
		"created", sandbox->created, "expires", (json_int_t)sandbox->expires_s, "tier",
		nc_tier_names[sandbox->spec.tier], "holder",
		(json_int_t)nc_hub_holder_of(sandbox->box_id), "box", (json_int_t)sandbox->box_id,
		"paused", sandbox->paused, "filling", sandbox->filling, "trusted",
		sandbox->spec.network.trusted, "spec", sandbox->spec.source, "network",
		sandbox->network);
}

static int put(struct nc_sandbox *sandbox, nc_registry_written written, struct nacre_err *err)
{
	cleanup_json json_t *record = record_of(sandbox);

	return nc_registry_put(sandbox->all->registry, record, written, sandbox, err);
}

int nc_sandbox_write(struct nc_sandbox *sandbox, struct nacre_err *err)
{
	int r = sandbox->all->registry ? put(sandbox, nc_sandbox_written, err) : 0;

	sandbox->writing = r == 0 && sandbox->all->registry;
	return r;
}

void nc_sandbox_register(struct nc_sandbox *sandbox)
{
	struct nacre_err ignored = {0};

	/* it was written before: what there is no room for is what it has become */
	if (sandbox->all->registry)
		(void)put(sandbox, NULL, &ignored);
}

void nc_sandbox_unregister(const struct nc_sandbox *sandbox)
{
	if (sandbox->all->registry)
		nc_registry_remove(sandbox->all->registry, sandbox->id);
}

/* ---- what the daemon before has left ---- */

static const char *text_of(const json_t *record, const char *key)
{
	return json_string_value(json_object_get(record, key));
}

static struct nc_sandbox *find(const struct nc_sandboxes *all, const char *id)
{
	struct nc_sandbox *s = all->list;

	while (s && !nc_streq(s->id, id))
		s = s->next;
	return s;
}

/* What held it has died, and nobody was there to tell. */
static void tell_lost(struct nc_sandboxes *all, const json_t *record)
{
	if (nc_registry_was_taken(all->registry, text_of(record, "id"))) {
		nc_registry_remove(all->registry, text_of(record, "id"));
		return; /* by the worker before us */
	}
	nc_engine_note(all->setup.engine, "sandbox.gone",
		json_pack("{s:s, s:s, s:s, s:s, s:s, s:O*}", "id", text_of(record, "id"), "tenant",
			text_of(record, "tenant"), "created", text_of(record, "created"), "state",
			"lost", "error", "What held its box has died", "labels",
			json_object_get(json_object_get(record, "spec"), "labels")));
	nc_registry_remove(all->registry, text_of(record, "id"));
	all->lost++;
}

/* One whose holder may have outlived the spawner: what is known of it until that comes. */
struct nc_stranded {
	struct nc_stranded *next;
	json_t *record;
};

static uint64_t box_of(const json_t *record)
{
	return (uint64_t)json_integer_value(json_object_get(record, "box"));
}

static void strand(struct nc_sandboxes *all, const json_t *record)
{
	struct nc_stranded *stranded = malloc(sizeof(*stranded));

	if (!stranded)
		return; /* its record is there for the next worker */
	*stranded = (struct nc_stranded){all->stranded, json_incref((json_t *)(uintptr_t)record)};
	all->stranded = stranded;
}

/* Takes it out of the list; its record is the caller's. */
static json_t *unlink_stranded(struct nc_stranded **place)
{
	struct nc_stranded *stranded = *place;
	json_t *record = stranded->record;

	*place = stranded->next;
	free(stranded);
	return record;
}

static void take_times(struct nc_sandbox *sandbox, const json_t *record)
{
	const uint64_t now_s = nc_clock_real_ns() / NC_NS_PER_S,
		       most_s = NC_SANDBOX_LIFE_MAX_MS / 1000;
	const uint64_t left_s = sandbox->expires_s > now_s ? sandbox->expires_s - now_s : 0;

	sandbox->saved_ns = sandbox->used_ns = nc_clock_ns();
	sandbox->deadline_ns = sandbox->used_ns + (left_s < most_s ? left_s : most_s) * NC_NS_PER_S;
	/* of one that was not finished nobody was told */
	sandbox->lives = !json_is_true(json_object_get(record, "filling"));
}

struct nc_sandbox *nc_sandbox_unstrand(struct nc_sandboxes *all, uint64_t box_id)
{
	struct nc_stranded **place = &all->stranded;
	cleanup_json json_t *record = NULL;
	struct nc_sandbox *sandbox;

	while (*place && box_of((*place)->record) != box_id)
		place = &(*place)->next;
	if (!*place)
		return NULL;
	record = unlink_stranded(place);
	sandbox = nc_sandbox_recall(all, 0, record, true);
	if (!sandbox)
		return NULL;
	take_times(sandbox, record);
	if (nc_sandbox_keep(sandbox) < 0) /* without room it is this worker's alone */
		sandbox->page = 0;
	if (all->gate.resume)
		all->gate.resume(all->gate.context, sandbox->tenant, &sandbox->limits);
	return sandbox;
}

bool nc_sandboxes_await(const struct nc_sandboxes *all, const char *tenant, const char *id)
{
	for (const struct nc_stranded *s = all->stranded; s; s = s->next)
		if (nc_streq(text_of(s->record, "id"), id) &&
			nc_owner_sees(NC_STORE_SANDBOXES, text_of(s->record, "tenant"), tenant))
			return true;
	return false;
}

/*
 * The first holder has died with the ledger, or it would know. Its worker answers what is open for
 * a while, and tells more of its sandboxes than we can: what it has told of is not there any more.
 */
static bool is_lost(const struct nc_sandboxes *all, uint64_t box_id)
{
	return nc_hub_holder_of(box_id) == 0 ? nc_clock_ns() >= all->orphans_ns
					     : nc_sandboxes_is_decided(all, box_id);
}

void nc_sandboxes_bury_stranded(struct nc_sandboxes *all)
{
	struct nc_stranded **place = &all->stranded;

	while (*place) {
		cleanup_json json_t *record = NULL;

		if (!is_lost(all, box_of((*place)->record))) {
			place = &(*place)->next;
			continue;
		}
		record = unlink_stranded(place);
		tell_lost(all, record);
	}
}

void nc_sandboxes_forget_stranded(struct nc_sandboxes *all)
{
	while (all->stranded)
		json_decref(unlink_stranded(&all->stranded));
}

static void meet(void *context, const json_t *record)
{
	struct nc_sandboxes *all = context;
	struct nc_sandbox *sandbox = find(all, text_of(record, "id"));
	cleanup_json json_t *now = sandbox ? record_of(sandbox) : NULL;

	if (!sandbox)
		strand(all, record);
	else if (!json_equal(record, now))
		nc_sandbox_register(sandbox); /* the one before died before that was written */
}

void nc_sandboxes_find_stranded(struct nc_sandboxes *all)
{
	nc_registry_visit(all->registry, meet, all);
	for (struct nc_sandbox *s = all->list; s; s = s->next)
		if (!nc_registry_has(all->registry, s->id))
			nc_sandbox_register(s);
}

void nc_sandboxes_say_lost(struct nc_sandboxes *all)
{
	const struct nc_engine_setup *setup = nc_engine_setup(all->setup.engine);
	char text[128];

	if (all->lost > 0 && setup->say) {
		(void)snprintf(text, sizeof(text),
			"%zu sandboxes of the daemon before are lost: what held their boxes has "
			"died",
			all->lost);
		setup->say(text);
	}
	all->lost_before += all->lost;
	all->lost = 0;
}
