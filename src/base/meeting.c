/* Where a process that outlives its partner meets the next one. */
#include "base/meeting.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/pidfd.h"
#include "base/wire.h"

#define CALL 1U

int nc_meeting_new(int ends[static 2])
{
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0
		       ? -errno
		       : 0;
}

int nc_meeting_fork(int type, int *ret_fd, int *ret_pidfd, struct nacre_err *err)
{
	int ends[2];
	pid_t pid;

	if (socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends) < 0)
		return nc_err_errno(err, -errno, "Make a socket pair");
	pid = fork();
	(void)close(pid == 0 ? ends[0] : ends[1]);
	if (pid < 0) {
		(void)close(ends[0]);
		return nc_err_errno(err, -errno, "Fork");
	}
	*ret_fd = pid == 0 ? ends[1] : ends[0];
	if (pid > 0)
		*ret_pidfd = nc_pidfd_open(pid);
	return pid == 0;
}

int nc_meeting_call(int place_fd, int type)
{
	cleanup_wire_out struct nc_wire_out out = {0};
	cleanup_close int ours = -EBADF, theirs = -EBADF;
	int ends[2], r;

	if (socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	ours = ends[0];
	theirs = ends[1];
	nc_wire_begin(&out, CALL);
	r = nc_wire_send(place_fd, &out, &theirs, 1);
	return r < 0 ? r : take_fd(ours);
}

int nc_meeting_take(int place_fd)
{
	cleanup_wire_packet struct nc_wire_packet packet = {0};
	int r = nc_wire_receive(place_fd, &packet, 1);

	if (r == 0)
		return -ECONNRESET;
	if (r == -EBADMSG || (r > 0 && packet.n_fds != 1))
		return -EAGAIN; /* not what is handed in here */
	return r < 0 ? r : take_fd(packet.fds[0]);
}

int nc_meeting_wait(int *place_fd, int *fd)
{
	while (*fd >= 0 || *place_fd >= 0) {
		struct pollfd events[] = {
			{.fd = *fd, .events = POLLIN}, {.fd = *place_fd, .events = POLLIN}};
		int r = poll(events, 2, -1);

		if (r < 0 && errno != EINTR)
			return -errno;
		if (r > 0 && events[0].revents)
			return 1;
		r = r > 0 ? nc_meeting_take(*place_fd) : -EAGAIN;
		if (r == -ECONNRESET)
			*place_fd = nc_fd_close(*place_fd);
		if (r < 0)
			continue;
		(void)nc_fd_close(*fd);
		*fd = r;
		return 2;
	}
	return 0;
}
