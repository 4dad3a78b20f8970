/*
 * TLS that the door takes part in, for hosts to which a secret is bound: towards the box as that
 * host, by a certificate of an authority that only this process has, and towards the host as any
 * client that checks whom it talks to.
 */
#ifndef NC_TLS_H
#define NC_TLS_H

#include <openssl/ssl.h>

#include "base/error.h"
#include "config/host.h"

struct nc_tls {
	SSL_CTX *near; /* towards boxes */
	SSL_CTX *far;  /* towards hosts */
	EVP_PKEY *key; /* of the authority and of all its certificates */
	X509 *authority;
	char *authority_pem; /* what a box has to trust */
	char *bundle;	     /* certificates that hosts are checked with, until they are parsed */
	size_t bundle_size;
};

/*
 * Makes the authority, and reads the certificates that hosts are checked with; NULL: those of this
 * host. Where they cannot be read no host is believed. They are parsed when a host is first
 * dialled, since that takes as long as the whole start.
 */
int nc_tls_init(struct nc_tls *tls, const char *bundle, struct nacre_err *err);
void nc_tls_done(struct nc_tls *tls);

/* The server's end for this host; the client's end to it. NULL: no memory. The caller frees it. */
SSL *nc_tls_near(struct nc_tls *tls, const struct nc_host *host);
SSL *nc_tls_far(struct nc_tls *tls, const struct nc_host *host);

/* Whether the client greeted this host. */
bool nc_tls_greets(const SSL *ssl, const struct nc_host *host);

#endif
