/*
 * Which sandboxes there are, on disk: a small file for each, which outlives the spawner and the
 * ledger.
 *
 * Theory of operation: a record is written under another name, which becomes its own once all of it
 * is on the disk; so a file of that name is whole. A thread does that for all that wait at once,
 * one lot after the other, and syncs the directory once for all of a lot: no disk holds up the
 * loop. What is removed is removed at once, and is durable with the next lot.
 *
 * What is read is foreign: the worker before may have been taken over, and the disk is not ours
 * alone. A record says its version; one that is one newer is read, without what is not known of it,
 * and one that is newer than that is left for who can read it.
 */
#ifndef NC_REGISTRY_H
#define NC_REGISTRY_H

#include <jansson.h>
#include <stdbool.h>
#include <uv.h>

#include "base/error.h"
#include "base/id.h"

struct nc_registry;

#define NC_REGISTRY_VERSION 1

/*
 * dir_fd stays the caller's, who is its only user. say: what people should know; or NULL. 0 or
 * -errno.
 */
int nc_registry_new(uv_loop_t *loop, int dir_fd, void (*say)(const char *text),
	struct nc_registry **ret_registry);

/* Writes what has not been written yet. Accepts NULL. */
void nc_registry_free(struct nc_registry *registry);

/*
 * Each record that is there, which visit borrows, and may remove or write again. What is none is
 * removed and said; what was never finished is removed.
 */
void nc_registry_visit(struct nc_registry *registry,
	void (*visit)(void *context, const json_t *record), void *context);

/*
 * Writes a record, in place of the one before. written follows, from the loop: 0 when it is on the
 * disk, or -errno; if it is NULL, a record that cannot be written is tried again. -ENOSPC with err:
 * records of the tenant, or of all, are too large.
 */
typedef void (*nc_registry_written)(void *context, int error);
int nc_registry_put(struct nc_registry *registry, const json_t *record, nc_registry_written written,
	void *context, struct nacre_err *err);

/* It is gone, and nobody is told of it any more. */
void nc_registry_remove(struct nc_registry *registry, const char *id);

/* Whether it was found, or put. */
bool nc_registry_has(const struct nc_registry *registry, const char *id);

/* It was written, and is not there any more: another worker has told that it is gone. */
bool nc_registry_was_taken(const struct nc_registry *registry, const char *id);

/* Once a second: what could not be written is tried again. */
void nc_registry_tick(struct nc_registry *registry);

/* A record of this id, from foreign bytes. -EINVAL with err; -EPROTONOSUPPORT: of a version that is
 * too new. */
int nc_registry_parse(
	const char *id, const char *text, size_t size, json_t **ret_record, struct nacre_err *err);

#endif
