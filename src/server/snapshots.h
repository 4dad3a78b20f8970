/*
 * Snapshots: what users of a sandbox had written, as archives of their own in the state of the
 * daemon. Each is one file, named by what is in it and whose it is, that appears whole or not at
 * all: a head with what is told of it, and the archive. A tenant's snapshots are its own, also
 * where two are equal.
 */
#ifndef NC_SNAPSHOTS_H
#define NC_SNAPSHOTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/id.h"
#include "base/limits.h"

struct nc_snapshots;

/* One that is kept; valid until the loop runs again. */
struct nc_snapshot {
	struct nc_snapshot *next;
	char id[NC_ID_SIZE];
	char tenant[NC_REQUEST_NAME_MAX + 1];
	char name[NC_REQUEST_LABEL_MAX + 1]; /* "": none */
	char sandbox[NC_ID_SIZE];	     /* that it was made of */
	char created[NC_CLOCK_STAMP_SIZE];
	char sha256[NC_SHA256_HEX_SIZE]; /* of the archive */
	uint64_t size;			 /* of it */
};

/* Reads what is there. dir_fd is borrowed; files of others than ours are left alone. */
int nc_snapshots_new(int dir_fd, struct nc_snapshots **ret_snapshots);
void nc_snapshots_free(struct nc_snapshots *snapshots); /* accepts NULL */

/* tenant NULL: whosever. NULL: there is none. */
const struct nc_snapshot *nc_snapshot_find(
	const struct nc_snapshots *snapshots, const char *tenant, const char *id);

/* Those of a tenant (NULL: all), the oldest first, as a list for people. NULL: no memory. */
json_t *nc_snapshots_json(const struct nc_snapshots *snapshots, const char *tenant);
json_t *nc_snapshot_json(const struct nc_snapshot *snapshot);

/* Bytes that a tenant has, with those that are being written. */
uint64_t nc_snapshots_used(const struct nc_snapshots *snapshots, const char *tenant);

/* A descriptor of its archive, at its beginning. */
int nc_snapshot_open(const struct nc_snapshots *snapshots, const struct nc_snapshot *snapshot);

int nc_snapshot_remove(struct nc_snapshots *snapshots, const struct nc_snapshot *snapshot);

/* One that is being written. */
struct nc_draft;

/* -EDQUOT with err: the tenant has too many. max: bytes that it may have in all, 0: any. */
int nc_draft_new(struct nc_snapshots *snapshots, const char *tenant, const char *name,
	const char *sandbox, uint64_t max, struct nc_draft **ret_draft, struct nacre_err *err);

/* -EDQUOT: more than the tenant may have; -ERANGE: it alone is; -EFBIG; or what the disk says. */
int nc_draft_add(struct nc_draft *draft, const void *data, size_t size);
uint64_t nc_draft_max(const struct nc_draft *draft); /* what the tenant may have */

/* 0 and what is kept, valid until the loop runs again; or -errno and NULL. */
typedef void (*nc_draft_kept)(void *context, int error, const struct nc_snapshot *snapshot);

/*
 * Keeps it; an equal one of the tenant's stays. kept follows, perhaps before the return, when it is
 * on the disk, which another thread waits for; the draft is freed behind it, whatever came of it.
 */
void nc_draft_keep(struct nc_draft *draft, uv_loop_t *loop, nc_draft_kept kept, void *context);

/* And nothing is kept, nor is anybody told; accepts NULL. */
void nc_draft_free(struct nc_draft *draft);

#endif
