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
	for (size_t i = 0; i < end->n_denied; i++)
		death.denied += end->denied[i].count;
	nc_wire_begin(&out, NC_RECORD_DIED);
	nc_recordwire_put_death(&out, &death);
	return nc_wire_send(witness_fd, &out, NULL, 0);
}
