/* Webhooks. */
#include "server/courier.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/hash.h"
#include "base/id.h"
#include "base/json.h"
#include "base/log.h"
#include "base/meeting.h"
#include "base/path.h"
#include "kernel/fence.h"
#include "kernel/filter.h"
#include "kernel/privilege.h"
#include "server/dial.h"

#define KEY_NAME "webhook.key"
#define TRIES 5U
#define TIMEOUT_S 10U
/* Where descriptors wait while others are closed. */
#define HIGH_FD 64
/* Of who hands messages out: a pipe that all runners have, and their queues. */
#define LIFE_FD 5
#define RUNNER_FD 6

/* What names and certificates are made from; Debian keeps the latter behind links. */
static const struct nc_fence_path paths[] = {
	{"/etc/hosts", NC_FENCE_READ},
	{"/etc/resolv.conf", NC_FENCE_READ},
	{"/etc/nsswitch.conf", NC_FENCE_READ},
	{"/etc/host.conf", NC_FENCE_READ},
	{"/etc/gai.conf", NC_FENCE_READ},
	{"/etc/ssl", NC_FENCE_READ},
	{"/usr/lib/ssl", NC_FENCE_READ},
	{"/usr/share/ca-certificates", NC_FENCE_READ},
};

static const struct nc_fence courier_fence = {
	.paths = paths, .n_paths = sizeof(paths) / sizeof(paths[0])};

static int post(const char *url, const char *id, const char *body, const char *signature,
	struct nacre_err *err)
{
	char fields[256];

	(void)snprintf(fields, sizeof(fields),
		"Idempotency-Key: %s\r\nX-Nacre-Signature: sha256=%s\r\n", id, signature);
	return nc_dial_post(url, fields, body, TIMEOUT_S, err);
}

/* Whether anybody is still there after so long who could send more. */
static bool pause_for(int fd, unsigned int seconds)
{
	struct pollfd event = {.fd = fd};

	return poll(&event, 1, (int)seconds * 1000) == 0;
}

/*
 * Tries until it was taken, or was refused for good; longer and longer apart. Once the daemon has
 * gone, what is left is tried once.
 */
static void deliver(
	int fd, const char *url, const char *id, const char *body, const char *signature)
{
	struct nacre_err err = {0};
	int status = 0;

	for (unsigned int i = 0; i < TRIES; i++) {
		if (i > 0 && !pause_for(fd, 1U << (i - 1)))
			break;
		err = (struct nacre_err){0};
		status = post(url, id, body, signature, &err);
		if (status >= 200 && status < 300)
			return;
		if (status >= 400 && status < 500 && status != 408 && status != 429)
			break;
	}
	nc_log(NC_LOG_ERROR, "A webhook takes nothing", NC_LOG_TEXT("address", url),
		NC_LOG_TEXT("reason", err.message), NC_LOG_INT("status", status > 0 ? status : 0));
}

/* ---- one for each address, so that none waits for another ---- */

static void pass_on(
	int fd, const char *url, const unsigned char *key, const char *body, size_t size)
{
	unsigned char digest[NC_SHA256_SIZE];
	char signature[NC_SHA256_HEX_SIZE];
	cleanup_json json_t *message = NULL;
	struct nacre_err err = {0};
	const char *id;

	if (nc_json_parse(body, size, &message, &err) < 0)
		return;
	id = json_string_value(json_object_get(message, "id"));
	nc_hmac_sha256(key, body, size, digest);
	nc_sha256_hex(digest, signature);
	if (id)
		deliver(fd, url, id, body, signature);
}

/* life_fd stays open for as long as we live, and nothing else is done with it. */
_Noreturn static void be_runner(
	int fd, int life_fd, const char *url, const unsigned char *key, bool ranges)
{
	static char body[NC_COURIER_MESSAGE_MAX + 1];
	int r = nc_courier_lock_in("nacre-courier", (const int[]){fd, life_fd}, 2, ranges);
	ssize_t n;

	while (r >= 0 && (n = read(NC_COURIER_FD, body, sizeof(body) - 1)) > 0) {
		body[n] = '\0';
		pass_on(NC_COURIER_FD, url, key, body, (size_t)n);
	}
	_exit(r < 0 ? 125 : 0);
}

/* Forks one; returns our end of what is its queue. */
static int start_runner(int life_fd, const char *url, const unsigned char *key, bool ranges)
{
	int ends[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	pid = fork();
	if (pid == 0)
		be_runner(ends[1], life_fd, url, key, ranges);
	(void)close(ends[1]);
	if (pid > 0)
		return ends[0];
	(void)close(ends[0]);
	return -errno;
}

/* ---- who hands messages out ---- */

/* -EPIPE: a runner has died. */
static int hand_out(const struct nc_value *webhooks, const char *body, size_t size)
{
	for (size_t i = 0; i < webhooks->n_list; i++) {
		if (send(RUNNER_FD + (int)i, body, size, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
			continue;
		if (errno == EPIPE || errno == ECONNRESET)
			return -EPIPE;
		nc_log(NC_LOG_ERROR, "An alert was not told to a webhook: its queue is full",
			NC_LOG_TEXT("address", webhooks->list[i]));
	}
	return 0;
}

/* One daemon after the other, to the last message of each. */
static int serve(int fd, int place_fd, const struct nc_value *webhooks)
{
	static char body[NC_COURIER_MESSAGE_MAX];
	int r;

	while ((r = nc_meeting_wait(&place_fd, &fd)) > 0) {
		ssize_t n = r == 1 ? read(fd, body, sizeof(body)) : 1;

		if (n <= 0)
			fd = nc_fd_close(fd);
		if (r == 2 || n <= 0)
			continue;
		r = hand_out(webhooks, body, (size_t)n);
		if (r < 0)
			return r; /* we are started again, and all of them with us */
	}
	return r;
}

/* Lets the runners know that nothing more comes, and waits for the last. */
static void wait_for_runners(size_t count)
{
	struct pollfd event = {.fd = LIFE_FD};

	for (size_t i = 0; i < count; i++)
		(void)close(RUNNER_FD + (int)i);
	(void)poll(&event, 1, -1);
}

int nc_courier_lock_in(const char *name, const int *fds, size_t n_fds, bool ranges)
{
	int high[RUNNER_FD - NC_COURIER_FD + NC_COURIER_WEBHOOKS_MAX], r = 0;

	assert(n_fds <= sizeof(high) / sizeof(high[0]));
	(void)prctl(PR_SET_NAME, name);
	(void)signal(SIGINT, SIG_IGN); /* it ends when the daemon does */
	(void)signal(SIGHUP, SIG_IGN);
	(void)signal(SIGPIPE, SIG_IGN);
	for (size_t i = 0; r == 0 && i < n_fds; i++)
		if ((high[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, HIGH_FD)) < 0)
			r = -errno;
	for (size_t i = 0; r == 0 && i < n_fds; i++)
		if (dup2(high[i], NC_COURIER_FD + (int)i) < 0)
			r = -errno;
	if (r == 0 && close_range(NC_COURIER_FD + (unsigned int)n_fds, ~0U, 0) < 0)
		r = -errno;
	if (r == 0)
		r = nc_privilege_drop(ranges);
	if (r == 0)
		r = nc_fence_payload(&courier_fence, NULL, 0);
	if (r >= 0)
		r = nc_filter_load(NC_FILTER_COURIER, NULL);
	return r;
}

_Noreturn static void be_courier(
	int fd, int place_fd, const struct nc_value *webhooks, unsigned char *key, bool ranges)
{
	int fds[RUNNER_FD - NC_COURIER_FD + NC_COURIER_WEBHOOKS_MAX] = {fd, place_fd};
	const size_t n_fds = RUNNER_FD - NC_COURIER_FD + webhooks->n_list;
	int life[2], r = pipe2(life, O_CLOEXEC) < 0 ? -errno : 0;

	fds[LIFE_FD - NC_COURIER_FD] = life[0];
	for (size_t i = 0; r >= 0 && i < webhooks->n_list; i++)
		r = fds[RUNNER_FD - NC_COURIER_FD + i] =
			start_runner(life[1], webhooks->list[i], key, ranges);
	explicit_bzero(key, NC_SHA256_SIZE);
	if (r >= 0)
		r = nc_courier_lock_in("nacre-courier", fds, n_fds, ranges);
	if (r < 0)
		nc_log(NC_LOG_ERROR, "Webhooks are not served",
			NC_LOG_TEXT("reason", nc_errno_text(r)));
	else
		r = serve(NC_COURIER_FD, NC_COURIER_PLACE_FD, webhooks);
	if (r >= 0)
		wait_for_runners(webhooks->n_list);
	_exit(r < 0 ? 125 : 0);
}

/* Whoever gets messages has the same key, from this file. */
static int get_key(int dir_fd, unsigned char ret_key[static NC_SHA256_SIZE], struct nacre_err *err)
{
	cleanup_free char *text = NULL;
	char hex[NC_SHA256_HEX_SIZE];
	size_t size;
	int r = nc_path_read(dir_fd, KEY_NAME, 2 * NC_SHA256_HEX_SIZE, &text, &size);

	if (r == -ENOENT) {
		r = nc_random(ret_key, NC_SHA256_SIZE);
		nc_sha256_hex(ret_key, hex);
		return r == 0 ? nc_path_write(dir_fd, KEY_NAME, hex, sizeof(hex) - 1, 0600) : r;
	}
	if (r == 0)
		r = nc_sha256_parse(text, ret_key);
	return r < 0 ? nc_err_errno(err, r, "Read serve/" KEY_NAME) : 0;
}

int nc_courier_start(const struct nc_value *webhooks, int dir_fd, int place_fd, bool ranges,
	int *ret_pidfd, struct nacre_err *err)
{
	unsigned char key[NC_SHA256_SIZE];
	int fd, r;

	if (webhooks->n_list > NC_COURIER_WEBHOOKS_MAX)
		return nc_err_set(err, -E2BIG, "serve.yaml:%u: webhooks: at most %u addresses",
			webhooks->line, NC_COURIER_WEBHOOKS_MAX);
	r = get_key(dir_fd, key, err);
	if (r == 0)
		r = nc_meeting_fork(SOCK_SEQPACKET, &fd, ret_pidfd, err);
	if (r > 0)
		be_courier(fd, place_fd, webhooks, key, ranges);
	explicit_bzero(key, sizeof(key));
	return r < 0 ? r : fd;
}
