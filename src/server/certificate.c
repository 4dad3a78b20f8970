/* The certificate of the daemon, read again while it runs. */
#include "server/certificate.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/meeting.h"
#include "base/wire.h"
#include "kernel/caps.h"
#include "kernel/fence.h"
#include "kernel/filter.h"
#include "tier/poll.h"

#define CERTIFIER_FD 3
#define PLACE_FD 4
#define HIGH_FD 64
#define RECALL_MS 2000

enum message {
	/* from the daemon */
	READ = 1, /* FILES */
	KEEP,	  /* a sealed file: what was taken */
	GIVE,	  /* KEPT */

	/* to the daemon */
	FILES = 101, /* u32 errno or 0; the certificate and the key, or none */
	KEPT,	     /* what was kept last, or none */
};

static int send_message(
	int fd, enum message type, const uint32_t *value, const int *fds, size_t n_fds)
{
	cleanup_wire_out struct nc_wire_out out = {0};

	nc_wire_begin(&out, (uint16_t)type);
	if (value)
		nc_wire_put_u32(&out, *value);
	return nc_wire_send(fd, &out, fds, n_fds);
}

static void close_all(struct nc_wire_packet *packet)
{
	for (size_t i = 0; i < packet->n_fds; i++)
		packet->fds[i] = nc_fd_close(packet->fds[i]);
}

/* ---- nacre-certifier ---- */

static int send_files(int fd, const struct nc_certificate_paths *paths)
{
	const char *const names[] = {paths->certificate, paths->key};
	int fds[2] = {-EBADF, -EBADF}, r;
	uint32_t error = 0;

	for (size_t i = 0; error == 0 && i < 2; i++) {
		fds[i] = open(names[i], O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
		if (fds[i] < 0)
			error = (uint32_t)errno;
	}
	r = send_message(fd, FILES, &error, fds, error ? 0 : 2);
	(void)nc_fd_close(fds[0]);
	(void)nc_fd_close(fds[1]);
	return r;
}

/* A message of the daemon's, which may be anybody's by now; 0 or -errno. */
static int answer(int fd, const struct nc_certificate_paths *paths, struct nc_wire_packet *packet,
	int *kept_fd)
{
	struct nc_wire_in in;
	int r = nc_wire_receive(fd, packet, 1);

	if (r <= 0)
		return r < 0 ? r : -EPIPE;
	r = nc_wire_open(&in, packet->data, packet->size);
	if (r == 0)
		r = nc_wire_close(&in);
	if (r == 0 && in.type == READ) {
		r = send_files(fd, paths);
	} else if (r == 0 && in.type == KEEP && packet->n_fds == 1) {
		(void)nc_fd_close(*kept_fd);
		*kept_fd = take_fd(packet->fds[0]);
	} else if (r == 0 && in.type == GIVE) {
		r = send_message(fd, KEPT, NULL, kept_fd, *kept_fd >= 0);
	} else {
		r = -EBADMSG;
	}
	close_all(packet);
	return r;
}

/* The directories of both files, and those that links lead to. */
static int fence_in(const struct nc_certificate_paths *paths)
{
	const char *const names[] = {paths->certificate, paths->key};
	char text[4][PATH_MAX];
	struct nc_fence_path path[4];
	size_t n = 0;

	for (size_t i = 0; i < 2; i++) {
		if (strlen(names[i]) >= PATH_MAX)
			return -ENAMETOOLONG;
		memcpy(text[n], names[i], strlen(names[i]) + 1);
		path[n] = (struct nc_fence_path){dirname(text[n]), NC_FENCE_READ};
		n++;
		if (realpath(names[i], text[n])) {
			path[n] = (struct nc_fence_path){dirname(text[n]), NC_FENCE_READ};
			n++;
		}
	}
	return nc_fence_payload(&(struct nc_fence){.paths = path, .n_paths = n}, NULL, 0);
}

static int lock_in(const struct nc_certificate_paths *paths, int fd, int place_fd, bool ranges)
{
	int r = 0;

	(void)prctl(PR_SET_NAME, "nacre-certifier");
	(void)signal(SIGINT, SIG_IGN); /* it ends when the daemon does */
	(void)signal(SIGHUP, SIG_IGN);
	(void)signal(SIGTERM, SIG_IGN);
	(void)signal(SIGPIPE, SIG_IGN);
	fd = fcntl(fd, F_DUPFD_CLOEXEC, HIGH_FD);
	place_fd = fcntl(place_fd, F_DUPFD_CLOEXEC, HIGH_FD);
	if (dup2(fd, CERTIFIER_FD) < 0 || dup2(place_fd, PLACE_FD) < 0 ||
		close_range(PLACE_FD + 1, ~0U, 0) < 0 ||
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0) < 0)
		return -errno;
	if (ranges) /* the caller is root, whom files of others are open to */
		r = nc_caps_set(1ULL << CAP_DAC_OVERRIDE);
	if (r == 0)
		r = fence_in(paths);
	return r < 0 ? r : nc_filter_load(NC_FILTER_RECORDER, NULL);
}

_Noreturn static void be_certifier(
	const struct nc_certificate_paths *paths, int fd, int place_fd, bool ranges)
{
	struct nc_wire_packet packet = {0};
	int kept_fd = -EBADF, r = lock_in(paths, fd, place_fd, ranges);

	if (r < 0)
		nc_log(NC_LOG_ERROR, "The certificate cannot be read again",
			NC_LOG_TEXT("reason", nc_errno_text(r)));
	fd = CERTIFIER_FD;
	place_fd = PLACE_FD;
	while (r >= 0 && (r = nc_meeting_wait(&place_fd, &fd)) > 0)
		if (r == 1 && answer(fd, paths, &packet, &kept_fd) < 0)
			fd = nc_fd_close(fd);
	_exit(r < 0 ? 125 : 0);
}

int nc_certifier_start(const struct nc_certificate_paths *paths, int place_fd, bool ranges,
	int *ret_pidfd, struct nacre_err *err)
{
	int fd, r = nc_meeting_fork(SOCK_SEQPACKET, &fd, ret_pidfd, err);

	if (r > 0)
		be_certifier(paths, fd, place_fd, ranges);
	return r < 0 ? r : fd;
}

/* ---- both ---- */

int nc_certificate_copy(int certificate_fd, int key_fd)
{
	cleanup_close int copy_fd = memfd_create("nacre-tls", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	const int fds[] = {certificate_fd, key_fd};
	int r = copy_fd < 0 ? -errno : 0;

	for (size_t i = 0; r == 0 && i < 2; i++) {
		cleanup_free char *text = NULL;
		size_t size = 0;

		r = nc_fd_read_all(fds[i], NC_PEM_MAX, &text, &size);
		if (r == 0)
			r = nc_fd_write_all(copy_fd, text, size);
		if (r == 0)
			r = nc_fd_write_all(copy_fd, "\n", 1);
		if (text)
			explicit_bzero(text, size);
	}
	if (r == 0 && fcntl(copy_fd, F_ADD_SEALS,
			      F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
		r = -errno;
	return r < 0 ? r : take_fd(copy_fd);
}

int nc_certificate_recall(int place_fd)
{
	cleanup_close int fd = nc_meeting_call(place_fd, SOCK_SEQPACKET);
	struct pollfd event = {.fd = fd, .events = POLLIN};
	struct nc_wire_packet packet = {0};
	struct nc_wire_in in;
	int r = fd < 0 ? fd : send_message(fd, GIVE, NULL, NULL, 0), found_fd = -ENOENT;

	if (r < 0 || poll(&event, 1, RECALL_MS) != 1 || nc_wire_receive(fd, &packet, 1) <= 0)
		return -ENOENT;
	if (nc_wire_open(&in, packet.data, packet.size) == 0 && in.type == KEPT &&
		packet.n_fds == 1)
		found_fd = take_fd(packet.fds[0]);
	close_all(&packet);
	nc_wire_packet_done(&packet);
	return found_fd;
}

/* ---- the daemon's side ---- */

struct nc_certificates {
	uv_loop_t *loop;
	struct nc_tls *tls;
	int fd;
	struct nc_poll *poll;
	struct nc_wire_packet packet;
};

static void say(int error, const char *reason)
{
	if (error < 0)
		nc_log(NC_LOG_ERROR, "The certificate is bad, keeping the old one",
			NC_LOG_TEXT("reason", reason));
	else
		nc_log(NC_LOG_INFO, "The certificate was read again");
}

static void hang_up(struct nc_certificates *certificates)
{
	certificates->poll = nc_poll_free(certificates->poll);
	certificates->fd = nc_fd_close(certificates->fd);
}

/* Takes both files if they are good. */
static int take(struct nc_certificates *certificates, const int *fds, struct nacre_err *err)
{
	cleanup_close int copy_fd = nc_certificate_copy(fds[0], fds[1]);
	cleanup_free char *pem = NULL;
	size_t size = 0;
	int r = copy_fd;

	if (r >= 0)
		r = lseek(copy_fd, 0, SEEK_SET) < 0
			    ? -errno
			    : nc_fd_read_all(copy_fd, 2 * NC_PEM_MAX + 2, &pem, &size);
	if (r < 0)
		return nc_err_errno(err, r, "Read the certificate and its key");
	r = nc_tls_renew(certificates->tls, pem, size, err);
	explicit_bzero(pem, size);
	if (r == 0 && send_message(certificates->fd, KEEP, NULL, &copy_fd, 1) < 0)
		nc_log(NC_LOG_WARNING, "Nobody keeps the certificate for the next daemon");
	return r;
}

static void on_answer(void *context, int events)
{
	struct nc_certificates *certificates = context;
	struct nc_wire_packet *packet = &certificates->packet;
	struct nacre_err err = {0};
	struct nc_wire_in in;
	uint32_t error = EBADMSG;
	int r = nc_wire_receive(certificates->fd, packet, 2);

	(void)events;
	if (r == -EAGAIN)
		return;
	if (r <= 0) { /* the next one is met when it is there */
		hang_up(certificates);
		return;
	}
	if (nc_wire_open(&in, packet->data, packet->size) == 0 && in.type == FILES) {
		error = nc_wire_get_u32(&in);
		if (nc_wire_close(&in) < 0 || (error == 0 && packet->n_fds != 2))
			error = EBADMSG;
	}
	r = error ? nc_err_errno(&err, -(int)(error & 4095), "Open --tls-cert and --tls-key")
		  : take(certificates, packet->fds, &err);
	say(r, err.message);
	close_all(packet);
}

int nc_certificates_meet(struct nc_certificates *certificates, int fd)
{
	int r;

	hang_up(certificates);
	certificates->fd = fd;
	r = fcntl(fd, F_SETFL, O_NONBLOCK) < 0
		    ? -errno
		    : nc_poll_new(certificates->loop, fd, UV_READABLE, on_answer, certificates,
			      &certificates->poll);
	if (r < 0)
		hang_up(certificates);
	return r;
}

struct nc_certificates *nc_certificates_new(uv_loop_t *loop, struct nc_tls *tls, int fd)
{
	struct nc_certificates *certificates = calloc(1, sizeof(*certificates));

	if (!certificates) {
		(void)nc_fd_close(fd);
		return NULL;
	}
	*certificates = (struct nc_certificates){.loop = loop, .tls = tls, .fd = -EBADF};
	if (fd >= 0)
		(void)nc_certificates_meet(certificates, fd); /* else it is said when one asks */
	return certificates;
}

void nc_certificates_free(struct nc_certificates *certificates)
{
	if (!certificates)
		return;
	hang_up(certificates);
	nc_wire_packet_done(&certificates->packet);
	free(certificates);
}

void nc_certificates_renew(struct nc_certificates *certificates)
{
	if (certificates->fd < 0 || send_message(certificates->fd, READ, NULL, NULL, 0) < 0)
		say(-EPIPE, "nacre-certifier has died or does not answer");
}
