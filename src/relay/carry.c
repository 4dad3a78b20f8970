/* Descriptors of messages, and streams. */
#include "relay/carry.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/fd.h"

#define WIDE_PIPES 4

static int be_nonblocking(int fd)
{
	const int flags = fcntl(fd, F_GETFL);

	return flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ? -errno : 0;
}

/*
 * Room in the pipe for two pieces: it is filled and emptied by as much at a time. Only of the first
 * few streams: the pages are of a share that each user has, and the worker has made its pipes.
 */
static void widen(const struct nc_link *link, const struct nc_link_stream *stream)
{
	if (stream < link->streams + WIDE_PIPES)
		(void)fcntl(stream->fd, F_SETPIPE_SZ, 2 * NC_RELAY_PIECE_MAX);
}

/* The same pipe as that of an earlier one, by this end or the other. */
static bool refers(const int *fds, const struct stat *status, const struct nc_carry *list, size_t i,
	int access, struct nc_carry *ret_carry)
{
	for (size_t k = 0; k < i; k++) {
		struct stat other;

		if ((list[k].kind == NC_CARRY_FROM || list[k].kind == NC_CARRY_INTO) &&
			fstat(fds[k], &other) == 0 && other.st_ino == status->st_ino &&
			other.st_dev == status->st_dev) {
			ret_carry->kind = (list[k].kind == NC_CARRY_FROM) == (access == O_RDONLY)
						  ? NC_CARRY_SAME
						  : NC_CARRY_MATE;
			ret_carry->of = (uint8_t)k;
			return true;
		}
	}
	return false;
}

/* Memory that nobody changes any more: read to its end it is as good as a pipe. */
static bool is_sealed(int fd)
{
	const int seals = fcntl(fd, F_GET_SEALS);

	return seals > 0 && seals & F_SEAL_WRITE;
}

/* A pipe by one of its ends, sealed memory, /dev/null, a terminal by its master: nothing else
 * travels. */
static int judge(const int *fds, size_t i, struct nc_carry *list)
{
	const int flags = fcntl(fds[i], F_GETFL), access = flags & O_ACCMODE;
	struct nc_carry carry = {0};
	struct stat status;

	if (flags < 0 || fstat(fds[i], &status) < 0)
		return -errno;
	if (flags & O_PATH)
		return -EOPNOTSUPP;
	if (S_ISCHR(status.st_mode) && status.st_rdev == makedev(1, 3))
		carry.kind = NC_CARRY_NULL;
	else if (S_ISCHR(status.st_mode) && status.st_rdev == makedev(5, 2) && access == O_RDWR)
		carry.kind = NC_CARRY_BOTH;
	else if (is_sealed(fds[i]))
		carry.kind = NC_CARRY_FROM;
	else if (!S_ISFIFO(status.st_mode) || access == O_RDWR)
		return -EOPNOTSUPP;
	else if (!refers(fds, &status, list, i, access, &carry))
		carry.kind = access == O_RDONLY ? NC_CARRY_FROM : NC_CARRY_INTO;
	list[i] = carry;
	return 0;
}

static int take(struct nc_link *link, int *fd, struct nc_carry *carry)
{
	struct nc_link_stream *stream, *second;
	int r = be_nonblocking(*fd);

	if (r < 0)
		return r;
	stream = nc_link_open(link, carry->kind != NC_CARRY_INTO);
	carry->stream = stream->id;
	if (carry->kind == NC_CARRY_BOTH) {
		second = nc_link_open(link, false);
		second->fd = nc_fd_dup(*fd);
		r = second->fd < 0 ? second->fd : 0;
	}
	stream->fd = take_fd(*fd);
	widen(link, stream);
	return r;
}

int nc_carry_off(struct nc_link *link, int *fds, size_t n, struct nc_carry *ret_list)
{
	size_t n_streams = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++) {
		r = judge(fds, i, ret_list);
		n_streams +=
			r < 0				    ? 0
			: ret_list[i].kind == NC_CARRY_BOTH ? 2
			: ret_list[i].kind == NC_CARRY_FROM || ret_list[i].kind == NC_CARRY_INTO
				? 1
				: 0;
	}
	if (r == 0 && !nc_link_has_room(link, n_streams))
		r = -EAGAIN;
	for (size_t i = 0; r == 0 && i < n; i++)
		if (ret_list[i].kind == NC_CARRY_FROM || ret_list[i].kind == NC_CARRY_INTO ||
			ret_list[i].kind == NC_CARRY_BOTH)
			r = take(link, &fds[i], &ret_list[i]);
	return r;
}

/* A pipe: one end of it is the stream's. */
static int make_pipe(const struct nc_link *link, struct nc_link_stream *stream, int *ret_fd)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	stream->fd = ends[stream->sends ? 0 : 1];
	*ret_fd = ends[stream->sends ? 1 : 0];
	widen(link, stream);
	return be_nonblocking(stream->fd);
}

/* What stands for a terminal: reads, writes and ends as one does, and has no size. */
static int make_terminal(struct nc_link *link, struct nc_link_stream *stream, int *ret_fd)
{
	struct nc_link_stream *second = nc_link_find(link, stream->id + 2);
	int ends[2], r;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	*ret_fd = ends[0];
	stream->fd = ends[1];
	second->fd = nc_fd_dup(ends[1]);
	r = be_nonblocking(stream->fd);
	return second->fd < 0 ? second->fd : r;
}

int nc_carry_on(struct nc_link *link, int null_fd, const struct nc_carry *list, size_t n,
	int ret_fds[static NC_WIRE_FDS_MAX])
{
	int r = 0;

	for (size_t i = 0; i < n; i++)
		ret_fds[i] = -EBADF;
	for (size_t i = 0; r >= 0 && i < n; i++) {
		struct nc_link_stream *stream = nc_link_find(
			link, list[i].stream ? list[i].stream : list[list[i].of].stream);

		if (list[i].kind == NC_CARRY_NULL)
			r = ret_fds[i] = nc_fd_dup(null_fd);
		else if (list[i].kind == NC_CARRY_SAME)
			r = ret_fds[i] = nc_fd_dup(ret_fds[list[i].of]);
		else if (list[i].kind == NC_CARRY_MATE)
			r = ret_fds[i] = nc_fd_dup(stream->fd);
		else
			r = list[i].kind == NC_CARRY_BOTH ? make_terminal(link, stream, &ret_fds[i])
							  : make_pipe(link, stream, &ret_fds[i]);
	}
	for (size_t i = 0; r < 0 && i < n; i++)
		ret_fds[i] = nc_fd_close(ret_fds[i]);
	return r < 0 ? r : 0;
}
