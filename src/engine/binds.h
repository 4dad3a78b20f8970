/*
 * Directories and files of the host that boxes may be shown: which ones the operator says, by name;
 * requests name them, and never a path. The spawner was started with their descriptors, in this
 * order.
 */
#ifndef NC_BINDS_H
#define NC_BINDS_H

#include "base/buf.h"
#include "base/limits.h"
#include "config/config.h"
#include "tier/exec.h"

struct nc_bind {
	char name[NC_REQUEST_NAME_MAX + 1];
	bool writable;
	char target[NC_BOX_DIR_MAX + 1]; /* in the box */
};

struct nc_binds {
	struct nc_bind bind[NC_BOX_BINDS_MAX];
	uint32_t count;
};

/*
 * Reads them from the configuration, and opens them: fds are the caller's, and those behind a fault
 * are closed. -EINVAL, or what open() says.
 */
int nc_binds_open(const struct nc_serve_config *config, struct nc_binds *binds,
	int fds[static NC_BOX_BINDS_MAX], struct nacre_err *err);

/* As text for the next worker, whose configuration may be another, and back: -EINVAL. */
void nc_binds_write(const struct nc_binds *binds, struct nc_buf *out);
int nc_binds_read(const char *text, struct nc_binds *binds);

/* What to say about a name that there is not. -EPERM. */
int nc_binds_unknown(const char *name, struct nacre_err *err);

/* Whether there is one of that name; NULL: there are none. */
bool nc_binds_has(const struct nc_binds *binds, const char *name);

/* Adds the one of that name, which there is, to what a box is shown. */
void nc_binds_show(const struct nc_binds *binds, const char *name, struct nc_exec_spec *exec);

#endif
