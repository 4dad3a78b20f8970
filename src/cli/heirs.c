/* What a worker that is started again finds of the one before. */
#include "cli/heirs.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/text.h"

/* Where nacre-spawner puts them; see src/spawner/main.c. */
#define FIRST_FD 4
#define VARIABLE "NACRE_HEIRS"

void nc_heirs_add(struct nc_heirs *heirs, const char *name, int fd)
{
	if (fd < 0)
		return;
	assert(heirs->count < NC_WORKER_HEIRS_MAX);
	heirs->name[heirs->count] = name;
	heirs->fd[heirs->count++] = fd;
}

int nc_heirs_announce(const struct nc_heirs *heirs, struct nacre_err *err)
{
	nc_buf_cleanup struct nc_buf names = NC_BUF(4096);

	for (size_t i = 0; i < heirs->count; i++)
		nc_buf_addf(&names, "%s%s", i ? "," : "", heirs->name[i]);
	if (names.error < 0 || setenv(VARIABLE, nc_buf_text(&names), 1) < 0)
		return nc_err_set(err, -ENOMEM, "Out of memory");
	return 0;
}

bool nc_heirs_find(struct nc_heirs *ret_heirs)
{
	static char text[4096]; /* names borrow from it */
	const char *names = getenv(VARIABLE);
	char *rest = text, *name;

	*ret_heirs = (struct nc_heirs){0};
	if (!getenv("NACRE_SPAWNER") || !names || strlen(names) >= sizeof(text))
		return false;
	memcpy(text, names, strlen(names) + 1);
	while ((name = strsep(&rest, ",")) && ret_heirs->count < NC_WORKER_HEIRS_MAX) {
		int fd = FIRST_FD + (int)ret_heirs->count;

		if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
			return false;
		nc_heirs_add(ret_heirs, name, fd);
	}
	return true;
}

int nc_heirs_take(struct nc_heirs *heirs, const char *name)
{
	for (size_t i = 0; i < heirs->count; i++) {
		if (!heirs->name[i] || !nc_streq(heirs->name[i], name))
			continue;
		heirs->name[i] = NULL;
		return heirs->fd[i];
	}
	return -EBADF;
}

int nc_heirs_number(const char *name)
{
	const char *at = getenv("NACRE_SPAWNER") ? getenv(VARIABLE) : NULL;

	for (int fd = FIRST_FD; at && fd < FIRST_FD + NC_WORKER_HEIRS_MAX; fd++) {
		const char *end = strchrnul(at, ',');

		if ((size_t)(end - at) == strlen(name) && strncmp(at, name, strlen(name)) == 0)
			return fd;
		at = *end ? end + 1 : NULL;
	}
	return -EBADF;
}
