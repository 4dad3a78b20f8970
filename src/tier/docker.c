/*
 * Asking a Docker engine for its version. One request in HTTP/1.0 over a unix socket, written by
 * hand: libcurl would add a TLS library to the start of every `nacre`.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/text.h"
#include "tier/tier.h"

#define DEFAULT_SOCKET "/var/run/docker.sock"

static int connect_engine(const char *path, uint64_t deadline_ns)
{
	cleanup_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int left_ms = nc_clock_left_ms(deadline_ns);
	struct timeval patience = {.tv_sec = left_ms / 1000, .tv_usec = left_ms % 1000 * 1000 + 1};

	if (fd < 0)
		return -errno;
	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	memcpy(address.sun_path, path, strlen(path));
	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) < 0 ||
		setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) < 0 ||
		connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	return take_fd(fd);
}

/* Takes the version out of the answer, "HTTP/1.x 200 ..., blank line, JSON". */
static int read_version(const char *answer, size_t size, char *out, size_t out_size)
{
	cleanup_json json_t *body = NULL;
	const char *start = strstr(answer, "\r\n\r\n");
	const char *version = NULL;

	if (strncmp(answer, "HTTP/1.", 7) != 0 || strncmp(answer + 8, " 200 ", 5) != 0 || !start)
		return -EPROTO;
	start += 4;
	if (nc_json_parse(start, size - (size_t)(start - answer), &body, NULL) < 0)
		return -EPROTO;
	version = json_string_value(json_object_get(body, "Version"));
	if (!version)
		return -EPROTO;
	(void)snprintf(out, out_size, "Docker Engine %.32s", version);
	return 0;
}

int nc_docker_ask(uint64_t deadline_ns, char *out, size_t size)
{
	static const char request[] = "GET /version HTTP/1.0\r\nHost: docker\r\n\r\n";
	const char *host = getenv("DOCKER_HOST");
	const char *path = host ? nc_text_after(host, "unix://") : DEFAULT_SOCKET;
	cleanup_close int fd = -EBADF;
	cleanup_free char *answer = NULL;
	size_t answer_size = 0;
	int r;

	if (!path) {
		(void)snprintf(out, size, "DOCKER_HOST is no unix:// socket");
		return -EOPNOTSUPP;
	}
	fd = connect_engine(path, deadline_ns);
	r = fd < 0 ? fd : 0;
	if (r == 0 && send(fd, request, sizeof(request) - 1, MSG_NOSIGNAL) < 0)
		r = -errno;
	if (r == 0)
		r = nc_fd_read_all(fd, NC_PROC_FILE_MAX, &answer, &answer_size);
	if (r == 0)
		r = read_version(answer, answer_size, out, size);
	if (r < 0)
		(void)snprintf(out, size, "no Docker Engine answers on %.80s: %s", path,
			nc_errno_text(r == -EAGAIN ? -ETIMEDOUT : r));
	return r;
}
