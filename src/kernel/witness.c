/* What the spawner tells nacre-recorder. */
#include "kernel/witness.h"

#include <stdio.h>

#include "base/recordwire.h"

int nc_witness_birth(int witness_fd, uint64_t box, const char *name, uint64_t birth_ns)
{
	struct nc_record_birth birth = {.box = box, .birth_ns = birth_ns};
	cleanup_wire_out struct nc_wire_out out = {0};

	(void)snprintf(birth.name, sizeof(birth.name), "%s", name);
	nc_wire_begin(&out, NC_RECORD_BORN);
	nc_recordwire_put_birth(&out, &birth);
	return nc_wire_send(witness_fd, &out, NULL, 0);
}

/* How often a limit was met, where that is counted. */
static uint64_t met(const struct nc_box_end *end, uint32_t bit)
{
	uint64_t count = bit == NC_HIT_MEMORY ? end->usage.oom_kills
			 : bit == NC_HIT_PIDS ? end->usage.pids_refused
					      : 1;

	return count > 0 ? count : 1;
}

static void add_refusal(
	struct nc_record_death *death, enum nc_record_layer layer, uint32_t which, uint64_t count)
{
	death->refusals[death->n_refusals++] =
		(struct nc_record_refusal){(uint8_t)layer, which, count};
}

int nc_witness_death(int witness_fd, const char *name, const struct nc_box_end *end)
{
	cleanup_wire_out struct nc_wire_out out = {0};
	struct nc_record_death death = {.box = end->id,
		.cause = (uint8_t)end->cause,
		.exit_code = end->code,
		.signal = end->signal,
		.wall_ns = end->usage.wall_ns,
		.cpu_us = end->usage.cpu_user_us + end->usage.cpu_system_us,
		.memory_peak_bytes = end->usage.memory_peak_bytes,
		.disk_bytes = end->usage.disk_bytes};

	(void)snprintf(death.name, sizeof(death.name), "%s", name);
	_Static_assert(NC_DENIED_MAX + NC_HITS <= NC_RECORD_REFUSALS_MAX, "all fit");
	for (size_t i = 0; i < end->n_denied; i++) {
		death.denied += end->denied[i].count;
		add_refusal(&death, NC_RECORD_CALL, end->denied[i].call, end->denied[i].count);
	}
	for (uint32_t i = 0; i < NC_HITS; i++)
		if (end->hit & 1U << i)
			add_refusal(&death, NC_RECORD_LIMIT, i, met(end, 1U << i));
	nc_wire_begin(&out, NC_RECORD_DIED);
	nc_recordwire_put_death(&out, &death);
	return nc_wire_send(witness_fd, &out, NULL, 0);
}
