/* Room on the disk that only the ends of executions may use. */
#include "recorder/reserve.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"

#define BLOCK 4096U

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
	char bytes[4 * BLOCK];
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

bool nc_reserve_spend(struct nc_reserve *reserve, size_t bytes)
{
	/* the blocks that a line touches, and one for a segment that is begun */
	off_t slice = (off_t)((bytes / BLOCK + 2) * BLOCK);
	struct stat status;

	reserve->is_whole = false;
	if (reserve->fd < 0 || fstat(reserve->fd, &status) < 0 || status.st_size == 0)
		return false;
	return ftruncate(reserve->fd, status.st_size > slice ? status.st_size - slice : 0) == 0;
}
