/* Directories and files of the host that boxes may be shown. */
#include "engine/binds.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "base/text.h"

static int read_one(const struct nc_map_entry *entry, struct nc_bind *bind, struct nacre_err *err)
{
	const struct nc_bind_values *values = entry->values;

	if (values->path.n_list == 0)
		return nc_err_set(err, -EINVAL, "binds.%s: 'path' is missing", entry->name);
	(void)snprintf(bind->name, sizeof(bind->name), "%s", entry->name);
	if (values->target.n_list > 0)
		(void)snprintf(bind->target, sizeof(bind->target), "%s", values->target.list[0]);
	else
		(void)snprintf(bind->target, sizeof(bind->target), "/mnt/%s", entry->name);
	bind->writable = values->mode.number == NC_BIND_RW;
	if (!nc_box_target_ok(bind->target))
		return nc_err_set(err, -EINVAL,
			"binds.%s: target '%s': expected an absolute path without dots, not in "
			"/proc, /dev or /sys",
			entry->name, bind->target);
	return 0;
}

int nc_binds_open(const struct nc_serve_config *config, struct nc_binds *binds,
	int fds[static NC_BOX_BINDS_MAX], struct nacre_err *err)
{
	int r = 0;

	*binds = (struct nc_binds){0};
	if (config->binds.count > NC_BOX_BINDS_MAX)
		return nc_err_set(err, -E2BIG, "binds: more than %u", NC_BOX_BINDS_MAX);
	for (size_t i = 0; r == 0 && i < config->binds.count; i++) {
		const struct nc_map_entry *entry = &config->binds.entries[i];
		const struct nc_bind_values *values = entry->values;

		r = read_one(entry, &binds->bind[i], err);
		if (r < 0)
			break;
		fds[i] = open(values->path.list[0], O_PATH | O_CLOEXEC);
		if (fds[i] < 0)
			r = nc_err_errno(
				err, -errno, "binds.%s: '%s'", entry->name, values->path.list[0]);
		else
			binds->count++;
	}
	for (uint32_t i = 0; r < 0 && i < binds->count; i++)
		fds[i] = nc_fd_close(fds[i]);
	return r;
}

void nc_binds_write(const struct nc_binds *binds, struct nc_buf *out)
{
	for (uint32_t i = 0; i < binds->count; i++)
		nc_buf_addf(out, "%s %s %s\n", binds->bind[i].name,
			binds->bind[i].writable ? "rw" : "ro", binds->bind[i].target);
}

int nc_binds_read(const char *text, struct nc_binds *binds)
{
	*binds = (struct nc_binds){0};
	while (*text && binds->count < NC_BOX_BINDS_MAX) {
		struct nc_bind *bind = &binds->bind[binds->count++];
		size_t name = strcspn(text, " "), rest;

		if (name >= sizeof(bind->name) || !text[name])
			return -EINVAL;
		memcpy(bind->name, text, name);
		text += name + 1;
		bind->writable = strncmp(text, "rw ", 3) == 0;
		if (!bind->writable && strncmp(text, "ro ", 3) != 0)
			return -EINVAL;
		text += 3;
		rest = strcspn(text, "\n");
		if (rest >= sizeof(bind->target))
			return -EINVAL;
		memcpy(bind->target, text, rest);
		text += rest + (text[rest] == '\n');
	}
	return *text ? -EINVAL : 0;
}

static uint32_t find(const struct nc_binds *binds, const char *name)
{
	uint32_t i = 0;

	while (binds && i < binds->count && !nc_streq(binds->bind[i].name, name))
		i++;
	return i;
}

bool nc_binds_has(const struct nc_binds *binds, const char *name)
{
	return binds && find(binds, name) < binds->count;
}

int nc_binds_unknown(const char *name, struct nacre_err *err)
{
	return nc_err_set(err, -EPERM,
		"binds: there is no '%s' here; the operator lists what may be named under binds in "
		"serve.yaml",
		name);
}

void nc_binds_show(const struct nc_binds *binds, const char *name, struct nc_exec_spec *exec)
{
	uint32_t i = find(binds, name);
	struct nc_box_bind *shown = &exec->binds[exec->n_binds];

	for (uint32_t k = 0; k < exec->n_binds; k++)
		if (exec->binds[k].index == i)
			return; /* named twice */
	*shown = (struct nc_box_bind){.index = i, .writable = binds->bind[i].writable};
	memcpy(shown->target, binds->bind[i].target, sizeof(shown->target));
	exec->n_binds++;
}
