/* A large body on its way to a file. */
#include "server/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

#include "base/fd.h"
#include "engine/engine.h"

#define PIECE (128U * 1024)
/* The disk is that of the journal too, which wants to record how what runs has ended. */
#define FREE_MIN (16ULL * 1024 * 1024)

struct nc_spool {
	uv_work_t work;
	uv_loop_t *loop;
	void (*wake)(void *context);
	void *context;
	int fd;
	int error;		 /* of a write; the thread's until it is done */
	size_t size;		 /* bytes in the file */
	size_t filled, to_write; /* of the two pieces */
	char *filling, *writing; /* one for the loop, one for the thread */
	bool works, freed;	 /* the thread does; nobody is interested any more */
	char pieces[2][PIECE];
};

struct nc_spool *nc_spool_new(
	uv_loop_t *loop, int dir_fd, void (*wake)(void *context), void *context)
{
	struct nc_spool *spool = malloc(sizeof(*spool));
	int fd = openat(dir_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (!spool || fd < 0) {
		(void)nc_fd_close(fd);
		free(spool);
		return NULL;
	}
	spool->loop = loop;
	spool->wake = wake;
	spool->context = context;
	spool->fd = fd;
	spool->error = 0;
	spool->size = spool->filled = spool->to_write = 0;
	spool->filling = spool->pieces[0];
	spool->writing = spool->pieces[1];
	spool->works = spool->freed = false;
	spool->work.data = spool;
	return spool;
}

void nc_spool_free(struct nc_spool *spool)
{
	if (!spool)
		return;
	spool->freed = true;
	if (spool->works)
		return; /* on_written() comes */
	(void)nc_fd_close(spool->fd);
	explicit_bzero(spool->pieces, sizeof(spool->pieces));
	free(spool);
}

static void write_piece(uv_work_t *work)
{
	struct nc_spool *spool = work->data;
	struct statvfs disk;

	(void)setpriority(PRIO_PROCESS, 0, NC_ASIDE_NICE);
	if (fstatvfs(spool->fd, &disk) < 0)
		spool->error = -errno;
	else if ((unsigned long long)disk.f_bavail * disk.f_frsize < FREE_MIN)
		spool->error = -ENOSPC;
	else
		spool->error = nc_fd_write_all(spool->fd, spool->writing, spool->to_write);
}

static void on_written(uv_work_t *work, int status);

static void begin_write(struct nc_spool *spool)
{
	char *piece = spool->filling;

	spool->filling = spool->writing;
	spool->writing = piece;
	spool->to_write = spool->filled;
	spool->filled = 0;
	if (uv_queue_work(spool->loop, &spool->work, write_piece, on_written) == 0)
		spool->works = true;
	else
		spool->error = -ENOMEM;
}

static void on_written(uv_work_t *work, int status)
{
	struct nc_spool *spool = work->data;

	(void)status;
	spool->works = false;
	explicit_bzero(spool->writing, spool->to_write); /* it may have been a secret */
	spool->size += spool->to_write;
	if (spool->freed) {
		nc_spool_free(spool);
		return;
	}
	if (spool->filled == PIECE && spool->error == 0)
		begin_write(spool);
	spool->wake(spool->context);
}

size_t nc_spool_put(struct nc_spool *spool, const char *data, size_t size)
{
	const size_t room = PIECE - spool->filled, n = size < room ? size : room;

	if (!spool->works && spool->error < 0)
		return size; /* it is told in the end */
	memcpy(spool->filling + spool->filled, data, n);
	spool->filled += n;
	if (spool->filled == PIECE && !spool->works)
		begin_write(spool);
	return n;
}

int nc_spool_flush(struct nc_spool *spool)
{
	if (!spool->works && spool->error == 0 && spool->filled > 0)
		begin_write(spool);
	return spool->works ? -EAGAIN : spool->error;
}

int nc_spool_take(struct nc_spool *spool, size_t *ret_size)
{
	*ret_size = spool->size;
	return take_fd(spool->fd);
}
