/* What was refused to executions that are lost. */
#include "recorder/refused.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"
#include "kernel/filter.h"

/* How long the death of what was lost may take to be told. */
#define DEATH_NS (5 * NC_NS_PER_S)

void nc_refused_done(struct nc_refused *refused)
{
	for (size_t i = 0; refused->entries && i < NC_RECORD_OPEN_MAX; i++)
		free(refused->entries[i].denials);
	nc_freep(&refused->entries);
}

/* What replies call it, behind its layer. */
static const char *name_of(const struct nc_record_refusal *refusal)
{
	static const char *const limits[] = {"memory", "pids", "disk", "inodes", "files"};
	const char *name;

	if (refusal->layer == NC_RECORD_LIMIT)
		name = refusal->which < sizeof(limits) / sizeof(limits[0]) ? limits[refusal->which]
									   : NULL;
	else
		name = nc_filter_call_name((int)refusal->which);
	return name ? name : "unknown";
}

void nc_refused_list(const struct nc_record_death *death, struct nc_buf *out)
{
	nc_buf_adds(out, "[");
	for (size_t i = 0; i < death->n_refusals; i++) {
		const struct nc_record_refusal *refusal = &death->refusals[i];
		const char *layer = refusal->layer == NC_RECORD_LIMIT ? "limit" : "seccomp";

		nc_buf_addf(out, "%s{\"id\":\"%s.%s\",\"layer\":\"%s\",\"count\":%" PRIu64 "}",
			i > 0 ? "," : "", layer, name_of(refusal), layer, refusal->count);
	}
	nc_buf_adds(out, "]");
}

static struct nc_refused_entry *find(struct nc_refused *refused, const char *id)
{
	for (size_t i = 0; refused->count > 0 && i < NC_RECORD_OPEN_MAX; i++)
		if (nc_streq(refused->entries[i].id, id))
			return &refused->entries[i];
	return NULL;
}

static void drop(struct nc_refused *refused, struct nc_refused_entry *entry)
{
	refused->count -= entry->id[0] != '\0';
	refused->n_lost -= entry->lost;
	free(entry->denials);
	*entry = (struct nc_refused_entry){0};
}

static void set_lost(struct nc_refused *refused, struct nc_refused_entry *entry, bool lost)
{
	refused->n_lost += lost;
	refused->n_lost -= entry->lost;
	entry->lost = lost;
}

/* A free one, or else one that is not lost: that has ended before its death was told. */
static struct nc_refused_entry *choose(struct nc_refused *refused)
{
	struct nc_refused_entry *entry = NULL;

	for (size_t i = 0; i < NC_RECORD_OPEN_MAX; i++)
		if (!refused->entries[i].id[0])
			return &refused->entries[i];
	for (size_t i = 0; i < NC_RECORD_OPEN_MAX && (!entry || entry->lost); i++)
		entry = &refused->entries[refused->next++ % NC_RECORD_OPEN_MAX];
	return entry;
}

/* NULL: out of memory. */
static struct nc_refused_entry *add(struct nc_refused *refused, const char *id)
{
	struct nc_refused_entry *entry;

	if (!refused->entries)
		refused->entries = calloc(NC_RECORD_OPEN_MAX, sizeof(*refused->entries));
	if (!refused->entries)
		return NULL;
	entry = choose(refused);
	drop(refused, entry);
	refused->count++;
	(void)snprintf(entry->id, sizeof(entry->id), "%s", id);
	return entry;
}

void nc_refused_died(struct nc_refused *refused, const char *id, const char *denials)
{
	struct nc_refused_entry *entry = id[0] ? find(refused, id) : NULL;

	if (!entry && id[0] && denials)
		entry = add(refused, id);
	if (!entry)
		return;
	nc_freep(&entry->denials);
	entry->denials = denials ? strdup(denials) : NULL;
	if (entry->lost && entry->certain)
		entry->due_ns = nc_clock_ns();
	if (!entry->denials && !entry->lost)
		drop(refused, entry);
}

void nc_refused_read(struct nc_refused *refused, const char *id, const char *line, size_t size)
{
	cleanup_json json_t *value = NULL;
	cleanup_free char *text = NULL;
	struct nacre_err err = {0};
	const json_t *denials;

	if (nc_json_parse(line, size, &value, &err) < 0)
		return;
	denials = json_object_get(json_object_get(value, "body"), "denials");
	text = denials ? json_dumps(denials, JSON_COMPACT) : NULL;
	nc_refused_died(refused, id, text);
}

void nc_refused_open(struct nc_refused *refused, const char *id)
{
	struct nc_refused_entry *entry = find(refused, id);

	if (entry && !entry->certain)
		set_lost(refused, entry, false);
}

void nc_refused_end(struct nc_refused *refused, const char *id)
{
	struct nc_refused_entry *entry = find(refused, id);

	if (entry && !entry->certain)
		drop(refused, entry);
}

void nc_refused_lost(struct nc_refused *refused, const char *id, bool certain)
{
	struct nc_refused_entry *entry = find(refused, id);

	if (!entry)
		entry = add(refused, id);
	if (!entry)
		return;
	set_lost(refused, entry, true);
	entry->certain = certain;
	entry->due_ns = nc_clock_ns() + DEATH_NS;
}

uint64_t nc_refused_due(const struct nc_refused *refused)
{
	uint64_t first = 0;

	for (size_t i = 0; refused->n_lost > 0 && i < NC_RECORD_OPEN_MAX; i++) {
		const struct nc_refused_entry *entry = &refused->entries[i];

		if (entry->lost && (first == 0 || entry->due_ns < first))
			first = entry->due_ns;
	}
	return first;
}

static void tell(const struct nc_refused_entry *entry, void (*write)(const char *body))
{
	nc_buf_cleanup struct nc_buf body = NC_BUF(NC_RECORD_BODY_MAX);

	nc_buf_addf(&body, "{\"id\":\"%s\",\"status\":\"lost\",\"error\":\"" NC_RECORD_LOST "\"",
		entry->id);
	nc_buf_addf(&body, ",\"denials\":%s}", entry->denials);
	if (body.error == 0)
		write(nc_buf_text(&body));
}

void nc_refused_tell(struct nc_refused *refused, uint64_t until_ns, void (*write)(const char *body))
{
	for (size_t i = 0; refused->n_lost > 0 && i < NC_RECORD_OPEN_MAX; i++) {
		struct nc_refused_entry *entry = &refused->entries[i];

		if (!entry->lost || entry->due_ns > until_ns)
			continue;
		if (entry->denials)
			tell(entry, write);
		drop(refused, entry);
	}
}
