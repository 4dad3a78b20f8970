/* Plain HTTP with somebody else's server, and HTTPS. */
#include "server/dial.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/parse.h"
#include "base/text.h"

#define DEFAULT_PORT "7070"
#define POST_HEAD_MAX (80U * 1024)
#define REPLY_MAX 65536U

void nc_dial_hang_up(struct nc_dial *dial)
{
	SSL_free(dial->ssl);
	dial->ssl = NULL;
	dial->fd = nc_fd_close(dial->fd);
	dial->size = dial->at = 0;
}

void nc_dial_done(struct nc_dial *dial)
{
	nc_dial_hang_up(dial);
	SSL_CTX_free(dial->context);
}

/* No blank, no control character: it goes into a request line. */
static bool is_path(const char *text)
{
	for (; *text; text++)
		if (*text <= ' ' || *text >= 0x7f)
			return false;
	return true;
}

int nc_dial_parse(const char *url, struct nc_dial *dial, struct nacre_err *err)
{
	const char *rest = nc_text_after(url, "http://");
	char quoted[NC_TEXT_QUOTED_MAX];
	size_t host, skip = 0;
	uint64_t port;

	if (!rest) {
		rest = nc_text_after(url, "https://");
		dial->tls = rest != NULL;
	}
	if (rest) {
		skip = rest[0] == '[';
		host = strcspn(rest + skip, skip ? "]" : ":/");
		if (host > 0 && host < sizeof(dial->host)) {
			const char *behind = rest + 2 * skip + host;

			memcpy(dial->host, rest + skip, host);
			(void)snprintf(dial->port, sizeof(dial->port), "%.*s",
				behind[0] == ':' ? (int)strcspn(behind + 1, "/") : 0, behind + 1);
			if (!dial->port[0])
				(void)snprintf(dial->port, sizeof(dial->port), "%s",
					!dial->web  ? DEFAULT_PORT
					: dial->tls ? "443"
						    : "80");
			behind += strcspn(behind, "/");
			if (nc_parse_u64(dial->port, 1, 65535, &port) == 0 &&
				strlen(behind) < sizeof(dial->path) && is_path(behind)) {
				(void)snprintf(dial->path, sizeof(dial->path), "%s", behind);
				return 0;
			}
		}
	}
	return nc_err_set(err, -EINVAL,
		"Address %s: expected one such as http://127.0.0.1:7070/path",
		nc_text_quote(quoted, url));
}

static int begin_tls(struct nc_dial *dial, struct nacre_err *err)
{
	char reason[160];

	if (!dial->context) {
		dial->context = SSL_CTX_new(TLS_client_method());
		if (!dial->context || SSL_CTX_set_default_verify_paths(dial->context) != 1)
			return nc_err_set(err, -ENOMEM, "Out of memory");
		SSL_CTX_set_verify(dial->context, SSL_VERIFY_PEER, NULL);
	}
	dial->ssl = SSL_new(dial->context);
	if (dial->ssl && SSL_set1_host(dial->ssl, dial->host) == 1 &&
		SSL_set_tlsext_host_name(dial->ssl, dial->host) == 1 &&
		SSL_set_fd(dial->ssl, dial->fd) == 1 && SSL_connect(dial->ssl) == 1)
		return 0;
	ERR_error_string_n(ERR_get_error(), reason, sizeof(reason));
	return nc_err_set(err, -EPROTO, "TLS with %s: %s", dial->host, reason);
}

int nc_dial_call(struct nc_dial *dial, struct nacre_err *err)
{
	const struct addrinfo wanted = {.ai_socktype = SOCK_STREAM};
	struct addrinfo *found = NULL;
	int r = getaddrinfo(dial->host, dial->port, &wanted, &found), error = ENOENT;

	if (r != 0)
		return nc_err_set(err, -EHOSTUNREACH, "Find %s: %s", dial->host, gai_strerror(r));
	for (const struct addrinfo *at = found; at && dial->fd < 0; at = at->ai_next) {
		dial->fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (dial->fd >= 0 && dial->timeout_s) {
			const struct timeval most = {.tv_sec = dial->timeout_s};

			(void)setsockopt(dial->fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most));
			(void)setsockopt(dial->fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most));
		}
		if (dial->fd >= 0 && connect(dial->fd, at->ai_addr, at->ai_addrlen) < 0) {
			error = errno;
			dial->fd = nc_fd_close(dial->fd);
		}
	}
	freeaddrinfo(found);
	if (dial->fd < 0)
		return nc_err_errno(err, -error, "Connect to %s port %s", dial->host, dial->port);
	return dial->tls ? begin_tls(dial, err) : 0;
}

int nc_dial_send(struct nc_dial *dial, const char *data, size_t size, struct nacre_err *err)
{
	int r;

	if (!dial->ssl) {
		r = nc_fd_write_all(dial->fd, data, size);
		return r < 0 ? nc_err_errno(err, r, "Send the request") : 0;
	}
	while (size > 0) {
		r = SSL_write(dial->ssl, data, size < NC_DIAL_BLOCK ? (int)size : NC_DIAL_BLOCK);
		if (r <= 0)
			return nc_err_set(err, -EPIPE, "Send the request");
		data += r;
		size -= (size_t)r;
	}
	return 0;
}

/* What libssl says when nothing is wrong but there is nothing now. */
static ssize_t result_of(struct nc_dial *dial, int n)
{
	int why = n > 0 ? SSL_ERROR_NONE : SSL_get_error(dial->ssl, n);

	if (n > 0)
		return n;
	if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE)
		return -EAGAIN;
	ERR_clear_error();
	return why == SSL_ERROR_ZERO_RETURN ? 0 : -ECONNRESET;
}

ssize_t nc_dial_read(struct nc_dial *dial, char *data, size_t size)
{
	size_t left = dial->size - dial->at;
	ssize_t n;

	if (left > 0) {
		n = (ssize_t)(left < size ? left : size);
		memcpy(data, dial->block + dial->at, (size_t)n);
		dial->at += (size_t)n;
		return n;
	}
	if (dial->ssl)
		return result_of(dial, SSL_read(dial->ssl, data, (int)size));
	do
		n = read(dial->fd, data, size);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

int nc_dial_unblock(struct nc_dial *dial)
{
	int flags = fcntl(dial->fd, F_GETFL);

	if (flags < 0 || fcntl(dial->fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return -errno;
	if (dial->ssl)
		(void)SSL_set_mode(dial->ssl,
			SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	return 0;
}

ssize_t nc_dial_try_write(struct nc_dial *dial, const char *data, size_t size)
{
	ssize_t n;

	if (dial->ssl)
		return result_of(dial, SSL_write(dial->ssl, data, (int)size));
	do
		n = send(dial->fd, data, size, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

/* One line without its end; 0: there is none any more, and what came is lost. */
int nc_dial_line(struct nc_dial *dial, struct nc_buf *line)
{
	line->size = 0;
	nc_buf_add(line, "", 0);
	for (;;) {
		const char *from = dial->block + dial->at;
		const char *end = memchr(from, '\n', dial->size - dial->at);
		ssize_t n = end ? end - from : (ssize_t)(dial->size - dial->at);

		nc_buf_add(line, from, (size_t)n);
		if (line->error < 0)
			return line->error;
		dial->at += (size_t)n + (end ? 1 : 0);
		if (end) {
			if (line->size > 0 && line->data[line->size - 1] == '\r')
				line->data[--line->size] = '\0';
			return 1;
		}
		n = dial->ssl ? SSL_read(dial->ssl, dial->block, NC_DIAL_BLOCK)
			      : read(dial->fd, dial->block, NC_DIAL_BLOCK);
		dial->at = 0;
		dial->size = n > 0 ? (size_t)n : 0;
		if (n <= 0)
			return 0;
	}
}

void nc_dial_host(const struct nc_dial *dial, struct nc_buf *out)
{
	bool v6 = strchr(dial->host, ':');

	nc_buf_addf(out, "%s%s%s:%s", v6 ? "[" : "", dial->host, v6 ? "]" : "", dial->port);
}

int nc_dial_head(struct nc_dial *dial, struct nc_buf *line, struct nacre_err *err)
{
	unsigned int status = 0;
	int r = nc_dial_line(dial, line);

	if (r != 1 || sscanf(line->data, "HTTP/1.%*u %3u", &status) != 1)
		return nc_err_set(err, -EPROTO, "%s does not speak HTTP", dial->host);
	do
		r = nc_dial_line(dial, line);
	while (r == 1 && line->size > 0);
	return (int)status;
}

int nc_dial_post(const char *url, const char *fields, const char *body, unsigned int timeout_s,
	struct nacre_err *err)
{
	nc_cleanup(nc_dial_done) struct nc_dial dial = {
		.fd = -EBADF, .web = true, .timeout_s = timeout_s};
	nc_buf_cleanup struct nc_buf head = NC_BUF(POST_HEAD_MAX), line = NC_BUF(REPLY_MAX);
	int r = nc_dial_parse(url, &dial, err);

	if (r == 0)
		r = nc_dial_call(&dial, err);
	if (r < 0)
		return r;
	nc_buf_addf(&head, "POST %s HTTP/1.0\r\nHost: ", dial.path[0] ? dial.path : "/");
	nc_dial_host(&dial, &head);
	nc_buf_addf(&head, "\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n%s\r\n",
		strlen(body), fields);
	if (head.error < 0)
		return nc_err_errno(err, head.error, "Make the request");
	r = nc_dial_send(&dial, head.data, head.size, err);
	if (r == 0)
		r = nc_dial_send(&dial, body, strlen(body), err);
	return r < 0 ? r : nc_dial_head(&dial, &line, err);
}
