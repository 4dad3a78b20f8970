/*
 * The messages to and from nacre-recorder. Its worker greets it, and is then answered in the order
 * in which it asks; the spawner, its witness, only tells.
 *
 * Ids of executions are 1 to NC_RECORD_ID_MAX letters, digits, '_', '.' and '-'. Bodies are JSON
 * objects without control characters, of at most NC_RECORD_BODY_MAX bytes.
 */
#ifndef NC_RECORDWIRE_H
#define NC_RECORDWIRE_H

#include <errno.h>

#include "base/limits.h"
#include "base/wire.h"

#define NC_RECORDWIRE_VERSION 5U

enum nc_record_message {
	/* from the worker */
	NC_RECORD_HELLO = 1, /* u32 version; once; WELCOME */
	/* text id, bytes body; no answer. Before HELLO: it goes on, though a recorder or a
	 * connection of this worker is gone; what others had open is lost with HELLO */
	NC_RECORD_OPEN,
	NC_RECORD_BLOB, /* bytes data; or empty data and a memfd, sealed against change; DIGEST */
	/* text id, bytes body, u64 0 or, if a recorder before may have written it, the number from
	 * which its line is looked for; of an open execution; RECEIPT */
	NC_RECORD_FINISH,
	NC_RECORD_NOTE, /* u8 enum nc_record_kind, text event, bytes body, that u64; NOTED */
	NC_RECORD_PART, /* u64 offset, and such a memfd: a part from there on; DIGEST */

	/* from the spawner */
	NC_RECORD_BORN = 51, /* struct nc_record_birth */
	NC_RECORD_DIED,	     /* struct nc_record_death */

	/* to the worker */
	NC_RECORD_WELCOME =
		101, /* u32 version, u32 lost, u64 cut, u64 missing, u64 seq of the next line */
	NC_RECORD_DIGEST,  /* u32 errno or 0, bytes SHA-256; EINPROGRESS: send the next part */
	NC_RECORD_RECEIPT, /* u32 errno or 0, u64 seq, bytes SHA-256 of the line */
	NC_RECORD_NOTED,   /* u64 seq, or 0: it is only counted, since it could not be written */
};

/* A box has begun to run. */
struct nc_record_birth {
	uint64_t box; /* as its worker numbers it */
	uint64_t birth_ns;
	char name[NC_RECORD_ID_MAX + 1]; /* of what ran in it, as its worker said; or "" */
};

enum nc_record_layer {
	NC_RECORD_CALL,	 /* a system call, by its number */
	NC_RECORD_LIMIT, /* one that was met, by its bit of enum nc_box_hit */
	NC_RECORD_LAYER_MAX,
};

/* What was refused to a program, and how often. */
struct nc_record_refusal {
	uint8_t layer; /* enum nc_record_layer */
	uint32_t which;
	uint64_t count;
};

/* A box is dead. */
struct nc_record_death {
	uint64_t box;
	uint8_t cause; /* enum nc_box_cause */
	uint32_t exit_code;
	uint32_t signal;
	uint64_t wall_ns;
	uint64_t cpu_us;
	uint64_t memory_peak_bytes;
	uint64_t disk_bytes;
	uint64_t denied; /* system calls that were refused */
	char name[NC_RECORD_ID_MAX + 1];
	uint32_t n_refusals;
	struct nc_record_refusal refusals[NC_RECORD_REFUSALS_MAX];
};

static inline void nc_recordwire_put_birth(
	struct nc_wire_out *out, const struct nc_record_birth *birth)
{
	nc_wire_put_u64(out, birth->box);
	nc_wire_put_u64(out, birth->birth_ns);
	nc_wire_put_text(out, birth->name);
}

static inline void nc_recordwire_get_birth(struct nc_wire_in *in, struct nc_record_birth *ret_birth)
{
	ret_birth->box = nc_wire_get_u64(in);
	ret_birth->birth_ns = nc_wire_get_u64(in);
	nc_wire_get_text(in, ret_birth->name, NC_RECORD_ID_MAX);
}

static inline void nc_recordwire_put_death(
	struct nc_wire_out *out, const struct nc_record_death *death)
{
	nc_wire_put_u64(out, death->box);
	nc_wire_put_u8(out, death->cause);
	nc_wire_put_u32(out, death->exit_code);
	nc_wire_put_u32(out, death->signal);
	nc_wire_put_u64(out, death->wall_ns);
	nc_wire_put_u64(out, death->cpu_us);
	nc_wire_put_u64(out, death->memory_peak_bytes);
	nc_wire_put_u64(out, death->disk_bytes);
	nc_wire_put_u64(out, death->denied);
	nc_wire_put_text(out, death->name);
	nc_wire_put_u32(out, death->n_refusals);
	for (uint32_t i = 0; i < death->n_refusals; i++) {
		nc_wire_put_u8(out, death->refusals[i].layer);
		nc_wire_put_u32(out, death->refusals[i].which);
		nc_wire_put_u64(out, death->refusals[i].count);
	}
}

static inline void nc_recordwire_get_death(struct nc_wire_in *in, struct nc_record_death *ret_death)
{
	ret_death->box = nc_wire_get_u64(in);
	ret_death->cause = nc_wire_get_u8(in);
	ret_death->exit_code = nc_wire_get_u32(in);
	ret_death->signal = nc_wire_get_u32(in);
	ret_death->wall_ns = nc_wire_get_u64(in);
	ret_death->cpu_us = nc_wire_get_u64(in);
	ret_death->memory_peak_bytes = nc_wire_get_u64(in);
	ret_death->disk_bytes = nc_wire_get_u64(in);
	ret_death->denied = nc_wire_get_u64(in);
	nc_wire_get_text(in, ret_death->name, NC_RECORD_ID_MAX);
	ret_death->n_refusals = nc_wire_get_u32(in);
	if (ret_death->n_refusals > NC_RECORD_REFUSALS_MAX) {
		ret_death->n_refusals = 0;
		in->error = -EBADMSG;
	}
	for (uint32_t i = 0; i < ret_death->n_refusals; i++) {
		ret_death->refusals[i].layer = nc_wire_get_u8(in);
		ret_death->refusals[i].which = nc_wire_get_u32(in);
		ret_death->refusals[i].count = nc_wire_get_u64(in);
		if (ret_death->refusals[i].layer >= NC_RECORD_LAYER_MAX)
			in->error = -EBADMSG;
	}
}

#endif
