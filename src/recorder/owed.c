/* Ends of executions that could not be written yet. */
#include "recorder/owed.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/text.h"

/* Of all together; a worker begins nothing more while the disk is full. */
#define OWED_MAX (16U * 1024 * 1024)

struct nc_owed_entry {
	struct nc_owed_entry *next;
	struct nc_entry entry;
	char id[NC_RECORD_ID_MAX + 1];
	char body[];
};

int nc_owed_add(struct nc_owed *owed, const struct nc_entry *entry)
{
	size_t size = sizeof(struct nc_owed_entry) + entry->body_size;
	struct nc_owed_entry *copy;

	if (owed->bytes + size > OWED_MAX)
		return -ENOBUFS;
	copy = malloc(size);
	if (!copy)
		return -ENOMEM;
	copy->next = NULL;
	copy->entry = *entry;
	(void)snprintf(copy->id, sizeof(copy->id), "%s", entry->id);
	memcpy(copy->body, entry->body, entry->body_size);
	copy->entry.id = copy->id;
	copy->entry.body = copy->body;
	if (owed->last)
		owed->last->next = copy;
	else
		owed->first = copy;
	owed->last = copy;
	owed->bytes += size;
	return 0;
}

bool nc_owed_has(const struct nc_owed *owed, const char *id)
{
	const struct nc_owed_entry *at = owed->first;

	while (at && !nc_streq(at->id, id))
		at = at->next;
	return at;
}

const struct nc_entry *nc_owed_first(const struct nc_owed *owed)
{
	return owed->first ? &owed->first->entry : NULL;
}

void nc_owed_drop(struct nc_owed *owed)
{
	struct nc_owed_entry *first = owed->first;

	owed->first = first->next;
	if (!owed->first)
		owed->last = NULL;
	owed->bytes -= sizeof(*first) + first->entry.body_size;
	free(first);
}

void nc_owed_done(struct nc_owed *owed)
{
	while (owed->first)
		nc_owed_drop(owed);
}
