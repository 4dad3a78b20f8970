/* How a command ended, as the values of replies. */
#include "box/outcome.h"

#include "base/json.h"

json_t *nc_outcome_usage(const struct nc_box_end *end, uint64_t output_bytes, uint64_t birth_ns)
{
	const struct nc_box_usage *usage = &end->usage;

	/* the kernel counts the most processes at once only since 6.11 */
	json_t *pids = usage->pids_peak ? json_integer((json_int_t)usage->pids_peak) : json_null();

	return json_pack("{s:f, s:f, s:f, s:I, s:o, s:I, s:I, s:I, s:I, s:I, s:f}", "wall_seconds",
		(double)usage->wall_ns / 1e9, "cpu_user_seconds", (double)usage->cpu_user_us / 1e6,
		"cpu_system_seconds", (double)usage->cpu_system_us / 1e6, "memory_peak_bytes",
		(json_int_t)usage->memory_peak_bytes, "pids_peak", pids, "disk_bytes",
		(json_int_t)usage->disk_bytes, "io_read_bytes", (json_int_t)usage->io_read_bytes,
		"io_written_bytes", (json_int_t)usage->io_written_bytes, "context_switches",
		(json_int_t)usage->context_switches, "output_bytes", (json_int_t)output_bytes,
		"birth_seconds", (double)birth_ns / 1e9);
}

/* A collection that memory was too short for must not pass for a whole one. */
static json_t *complete(json_t *collection, size_t size, size_t wanted)
{
	if (size == wanted)
		return collection;
	json_decref(collection);
	return NULL;
}

/* Limits that the command ran into and survived. */
json_t *nc_outcome_hit(const struct nc_box_end *end)
{
	static const struct {
		uint32_t bit;
		const char *name;
	} names[] = {{NC_HIT_MEMORY, "memory"}, {NC_HIT_PIDS, "pids"}, {NC_HIT_DISK, "disk"},
		{NC_HIT_INODES, "inodes"}, {NC_HIT_FILES, "files"}};
	json_t *hit = json_array();
	size_t wanted = 0;

	for (size_t i = 0; hit && i < sizeof(names) / sizeof(names[0]); i++) {
		if (!(end->hit & names[i].bit) ||
			(names[i].bit == NC_HIT_MEMORY && end->cause == NC_CAUSE_MEMORY))
			continue;
		wanted++;
		(void)json_array_append_new(hit, json_string(names[i].name));
	}
	return complete(hit, json_array_size(hit), wanted);
}

json_t *nc_outcome_strength(const struct nc_box_end *end)
{
	json_t *object = json_object();

	for (size_t i = 0; object && i < NC_STRENGTH_MAX; i++)
		(void)json_object_set_new(
			object, nc_property_names[i], json_string(nc_grade_names[end->held[i]]));
	return complete(object, json_object_size(object), NC_STRENGTH_MAX);
}

json_t *nc_outcome_code(const struct nc_box_end *end)
{
	return end->signal || end->cause != NC_CAUSE_EXIT ? json_null() : json_integer(end->code);
}

json_t *nc_outcome_signal(const struct nc_box_end *end)
{
	return end->signal ? json_integer(end->signal) : json_null();
}

const char *nc_outcome_failure(enum nc_fail fail, int error)
{
	static const char *const names[NC_FAIL_MAX] = {
		[NC_FAIL_BOX] = "box",
		[NC_FAIL_FILES] = "files",
		[NC_FAIL_PROGRAM] = "program_refused",
		[NC_FAIL_LOST] = "lost",
	};

	return fail == NC_FAIL_PROGRAM && error == -ENOENT ? "program_missing" : names[fail];
}
