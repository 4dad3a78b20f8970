/* What the unprivileged side and the spawner say to each other: encoding. */
#include "kernel/boxwire.h"

#include <errno.h>
#include <string.h>

static void put_words(struct nc_wire_out *out, const struct nc_box_words *words)
{
	nc_wire_put_u32(out, (uint32_t)words->count);
	nc_wire_put_bytes(out, words->data, words->size);
}

/* Checks that there are exactly count words, each with its NUL. */
static void get_words(struct nc_wire_in *in, struct nc_box_words *words)
{
	const void *data;
	size_t nuls = 0;

	words->count = nc_wire_get_u32(in);
	words->size = nc_wire_get_bytes(in, NC_BOX_ARG_SIZE_MAX, &data);
	words->data = data;
	for (size_t i = 0; i < words->size; i++)
		nuls += words->data[i] == '\0';
	if (nuls != words->count || words->count > NC_BOX_ARGS_MAX ||
		(words->size > 0 && words->data[words->size - 1] != '\0'))
		in->error = -EBADMSG;
}

static void limit_fields(struct nc_box_limits *limits, uint64_t *fields[8])
{
	fields[0] = &limits->memory_bytes;
	fields[1] = &limits->cpu_milli;
	fields[2] = &limits->cpu_time_ms;
	fields[3] = &limits->wall_ms;
	fields[4] = &limits->pids;
	fields[5] = &limits->disk_bytes;
	fields[6] = &limits->inodes;
	fields[7] = &limits->open_files;
}

_Static_assert(sizeof(struct nc_box_limits) == 8 * sizeof(uint64_t), "a limit is not sent");

void nc_boxwire_put_order(struct nc_wire_out *out, const struct nc_box_order *order)
{
	struct nc_box_limits limits = order->limits;
	uint64_t *fields[8];

	nc_wire_put_u64(out, order->id);
	limit_fields(&limits, fields);
	for (size_t i = 0; i < 8; i++)
		nc_wire_put_u64(out, *fields[i]);
	nc_wire_put_text(out, order->dir);
	put_words(out, &order->argv);
	put_words(out, &order->env);
}

void nc_boxwire_get_order(struct nc_wire_in *in, struct nc_box_order *ret_order)
{
	uint64_t *fields[8];

	*ret_order = (struct nc_box_order){.id = nc_wire_get_u64(in)};
	limit_fields(&ret_order->limits, fields);
	for (size_t i = 0; i < 8; i++)
		*fields[i] = nc_wire_get_u64(in);
	nc_wire_get_text(in, ret_order->dir, NC_BOX_DIR_MAX);
	get_words(in, &ret_order->argv);
	get_words(in, &ret_order->env);
	if (ret_order->argv.count == 0)
		in->error = -EBADMSG;
}

static void usage_fields(struct nc_box_usage *usage, uint64_t *fields[9])
{
	fields[0] = &usage->wall_ns;
	fields[1] = &usage->cpu_user_us;
	fields[2] = &usage->cpu_system_us;
	fields[3] = &usage->memory_peak_bytes;
	fields[4] = &usage->pids_peak;
	fields[5] = &usage->oom_kills;
	fields[6] = &usage->pids_refused;
	fields[7] = &usage->disk_bytes;
	fields[8] = &usage->context_switches;
}

_Static_assert(sizeof(struct nc_box_usage) == 9 * sizeof(uint64_t), "a figure is not sent");

void nc_boxwire_put_host(struct nc_wire_out *out, const struct nc_box_host *host)
{
	nc_wire_put_u8(out, host->ranges);
	nc_wire_put_u32(out, host->cgroups);
}

void nc_boxwire_get_host(struct nc_wire_in *in, struct nc_box_host *ret_host)
{
	ret_host->ranges = nc_wire_get_u8(in) != 0;
	ret_host->cgroups = nc_wire_get_u32(in);
}

void nc_boxwire_put_end(struct nc_wire_out *out, const struct nc_box_end *end)
{
	struct nc_box_usage usage = end->usage;
	uint64_t *fields[9];

	nc_wire_put_u64(out, end->id);
	nc_wire_put_u8(out, (uint8_t)end->cause);
	nc_wire_put_u32(out, end->code);
	nc_wire_put_u32(out, end->signal);
	nc_wire_put_u32(out, end->landlock);
	nc_wire_put_u8(out, end->reported);
	usage_fields(&usage, fields);
	for (size_t i = 0; i < 9; i++)
		nc_wire_put_u64(out, *fields[i]);
	nc_wire_put_u32(out, end->n_denied);
	for (size_t i = 0; i < end->n_denied; i++) {
		nc_wire_put_u32(out, end->denied[i].call);
		nc_wire_put_u32(out, end->denied[i].count);
	}
}

void nc_boxwire_get_end(struct nc_wire_in *in, struct nc_box_end *ret_end)
{
	struct nc_box_end end = {.id = nc_wire_get_u64(in)};
	uint64_t *fields[9];
	uint8_t cause = nc_wire_get_u8(in);

	end.code = nc_wire_get_u32(in);
	end.signal = nc_wire_get_u32(in);
	end.landlock = nc_wire_get_u32(in);
	end.reported = nc_wire_get_u8(in) != 0;
	usage_fields(&end.usage, fields);
	for (size_t i = 0; i < 9; i++)
		*fields[i] = nc_wire_get_u64(in);
	end.n_denied = nc_wire_get_u32(in);
	if (cause >= NC_CAUSE_MAX || end.n_denied > NC_DENIED_MAX) {
		in->error = -EBADMSG;
		return;
	}
	end.cause = cause;
	for (size_t i = 0; i < end.n_denied; i++) {
		end.denied[i].call = nc_wire_get_u32(in);
		end.denied[i].count = nc_wire_get_u32(in);
	}
	*ret_end = end;
}
