/* The service manager that may have started us. */
#include "cli/service_manager.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/parse.h"

/* As the protocol says. */
#define FIRST_FD 3

int nc_manager_open(struct nc_manager *manager, struct nacre_err *err)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const char *path = getenv("NOTIFY_SOCKET");
	cleanup_close int fd = -EBADF;
	size_t size = path ? strlen(path) : 0;

	if (size == 0)
		return 0;
	if (size >= sizeof(address.sun_path) || (path[0] != '/' && path[0] != '@'))
		return nc_err_set(err, -EINVAL, "NOTIFY_SOCKET is no socket's name");
	memcpy(address.sun_path, path, size);
	if (path[0] == '@')
		address.sun_path[0] = '\0'; /* an abstract one */
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	/* connected now: later we may not */
	if (fd < 0 || connect(fd, (struct sockaddr *)&address,
			      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size)) < 0)
		return nc_err_errno(err, -errno, "Connect to NOTIFY_SOCKET");
	manager->fd = take_fd(fd);
	return 0;
}

int nc_manager_sockets(struct nc_manager *manager, int *ret_fds, size_t max, struct nacre_err *err)
{
	const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");
	uint64_t number, n;

	(void)manager;
	if (!pid || !count || nc_parse_u64(pid, 1, INT32_MAX, &number) < 0 ||
		(pid_t)number != getpid())
		return 0;
	if (nc_parse_u64(count, 0, max, &n) < 0)
		return nc_err_set(err, -EINVAL, "LISTEN_FDS: expected at most %zu", max);
	for (size_t i = 0; i < n; i++) {
		int fd = FIRST_FD + (int)i, type = 0, flags = fcntl(fd, F_GETFL);
		socklen_t size = sizeof(type);

		if (flags < 0 || getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &type, &size) < 0 ||
			!type)
			return nc_err_set(
				err, -EINVAL, "Descriptor %d does not listen", FIRST_FD + (int)i);
		/* out of the way of the spawner's descriptors */
		ret_fds[i] = fcntl(fd, F_DUPFD_CLOEXEC, 64);
		if (ret_fds[i] < 0 || fcntl(ret_fds[i], F_SETFL, flags | O_NONBLOCK) < 0)
			return nc_err_errno(err, -errno, "Take over descriptor %d", fd);
		(void)close(fd);
	}
	(void)unsetenv("LISTEN_PID");
	(void)unsetenv("LISTEN_FDS");
	return (int)n;
}

void nc_manager_tell(const struct nc_manager *manager, const char *words)
{
	if (manager->fd >= 0)
		(void)send(manager->fd, words, strlen(words), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void nc_manager_ready(const struct nc_manager *manager)
{
	char words[64];

	(void)snprintf(words, sizeof(words), "READY=1\nMAINPID=%d", (int)manager->pid);
	nc_manager_tell(manager, words);
}
