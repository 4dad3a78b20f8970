/* Room on the disk that only the ends of executions may use. */
#include "recorder/reserve.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/limits.h"
#include "base/path.h"

/* More than the longest line, in whole blocks; and what a segment that is begun needs. */
#define SLICE (128U * 1024)

_Static_assert(SLICE > NC_LINE_MAX + 2U * 4096, "a line, and the blocks that it touches");

int nc_reserve_open(struct nc_reserve *reserve, int history_fd)
{
	*reserve = (struct nc_reserve){
		.fd = nc_path_open(history_fd, "reserve", O_RDWR | O_CREAT, 0600)};
	if (reserve->fd < 0)
		return reserve->fd;
	nc_reserve_fill(reserve);
	return 0;
}

void nc_reserve_done(struct nc_reserve *reserve)
{
	reserve->fd = nc_fd_close(reserve->fd);
}

/* Bytes that are written and not zeros: a hole or a promise would be no room. */
void nc_reserve_fill(struct nc_reserve *reserve)
{
	char bytes[SLICE / 8];
	struct stat status;
	off_t at;

	if (reserve->fd < 0 || reserve->is_whole || fstat(reserve->fd, &status) < 0)
		return;
	memset(bytes, '.', sizeof(bytes));
	for (at = status.st_size; at < (off_t)NC_RESERVE_BYTES;) {
		size_t left = NC_RESERVE_BYTES - (size_t)at;
		ssize_t n =
			pwrite(reserve->fd, bytes, left < sizeof(bytes) ? left : sizeof(bytes), at);

		if (n <= 0)
			return; /* what there is of it helps too */
		at += n;
	}
	reserve->is_whole = true;
}

bool nc_reserve_spend(struct nc_reserve *reserve)
{
	struct stat status;

	reserve->is_whole = false;
	if (reserve->fd < 0 || fstat(reserve->fd, &status) < 0 || status.st_size == 0)
		return false;
	return ftruncate(reserve->fd, status.st_size > (off_t)SLICE ? status.st_size - SLICE : 0) ==
	       0;
}
