/*
 * The certificate of the daemon and its key, read again while it runs.
 *
 * Theory of operation: the daemon has no right to the files. nacre-certifier, which nacre-keeper
 * starts with the caller's rights, does nothing but open those two and hand them over when it is
 * asked; it reads nothing of them. The daemon reads them, and takes them if they are good. What it
 * has taken it hands back in a sealed file in memory, for the daemon that is started when it dies.
 */
#ifndef NC_CERTIFICATE_H
#define NC_CERTIFICATE_H

#include <stdbool.h>
#include <uv.h>

#include "base/error.h"
#include "server/tls.h"

/* A certificate chain, or a key. */
#define NC_PEM_MAX (1U << 20)

/* The files, as they were named. */
struct nc_certificate_paths {
	const char *certificate, *key;
};

/* As nc_courier_start(): forks it, with the caller's rights. */
int nc_certifier_start(const struct nc_certificate_paths *paths, int place_fd, bool ranges,
	int *ret_pidfd, struct nacre_err *err);

/*
 * Both files behind each other in a sealed file in memory, from descriptors, which stay the
 * caller's. Its descriptor, or -errno.
 */
int nc_certificate_copy(int certificate_fd, int key_fd);

/*
 * What the daemon before took last, in such a file; before the loop begins. -ENOENT: it took none,
 * or who would know does not answer.
 */
int nc_certificate_recall(int place_fd);

/* The daemon's side. */
struct nc_certificates;

/* Takes fd over, a connection to nacre-certifier; or -EBADF. NULL: no memory. */
struct nc_certificates *nc_certificates_new(uv_loop_t *loop, struct nc_tls *tls, int fd);
void nc_certificates_free(struct nc_certificates *certificates); /* accepts NULL */

/* The next nacre-certifier; takes fd over. 0 or -errno. */
int nc_certificates_meet(struct nc_certificates *certificates, int fd);

/* Has the files read again; what becomes of it is logged. */
void nc_certificates_renew(struct nc_certificates *certificates);

#endif
