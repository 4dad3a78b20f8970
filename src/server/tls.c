/* TLS in front of HTTP. */
#include "server/tls.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/text.h"
#include "tier/poll.h"

#define BLOCK 16384

/* Bytes on their way in one direction. */
struct way {
	char data[BLOCK];
	size_t size, at;
	bool ends; /* nothing follows */
};

/* One connection, from its socket to one end of a pair. */
struct pump {
	struct nc_tls *tls;
	struct pump *next, **place;
	SSL *ssl;
	int net_fd, plain_fd; /* plain_fd: -EBADF before the handshake is done */
	struct nc_poll *net, *plain;
	struct way in, out;
	bool in_closed; /* the end of `in` was told */
	int wanted;	/* events that libssl waits for */
	uint64_t deadline_ns;
	struct sockaddr_storage peer;
	socklen_t peer_size;
};

struct nc_tls {
	SSL_CTX *context;
	uv_loop_t *loop;
	struct nc_http *http;
	unsigned int handshake_ms;
	struct pump *pumps;
	size_t n_pumps;
};

static int ssl_fault(struct nacre_err *err, const char *what, const char *path)
{
	char quoted[NC_TEXT_QUOTED_MAX], reason[160];

	ERR_error_string_n(ERR_get_error(), reason, sizeof(reason));
	ERR_clear_error();
	return nc_err_set(err, -EINVAL, "%s %s: %s", what, nc_text_quote(quoted, path), reason);
}

static SSL_CTX *new_context(void)
{
	SSL_CTX *context = SSL_CTX_new(TLS_server_method());

	if (!context)
		return NULL;
	(void)SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
	(void)SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION |
						   SSL_OP_CIPHER_SERVER_PREFERENCE |
						   SSL_OP_CLEANSE_PLAINTEXT);
	(void)SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE |
						SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
						SSL_MODE_RELEASE_BUFFERS);
	return context;
}

int nc_tls_load(
	const char *certificate, const char *key, struct nc_tls **ret_tls, struct nacre_err *err)
{
	struct nc_tls *tls = calloc(1, sizeof(*tls));
	int r = 0;

	if (tls)
		tls->context = new_context();
	if (!tls || !tls->context) {
		nc_tls_free(tls);
		return nc_err_set(err, -ENOMEM, "Out of memory");
	}
	if (SSL_CTX_use_certificate_chain_file(tls->context, certificate) != 1)
		r = ssl_fault(err, "Certificate", certificate);
	else if (SSL_CTX_use_PrivateKey_file(tls->context, key, SSL_FILETYPE_PEM) != 1 ||
		 SSL_CTX_check_private_key(tls->context) != 1)
		r = ssl_fault(err, "Key of the certificate", key);
	if (r < 0)
		nc_tls_free(tls);
	else
		*ret_tls = tls;
	return r;
}

/* A key that wants a password is none of ours: nobody could be asked. */
static int no_password(char *text, int size, int writes, void *context)
{
	(void)text, (void)size, (void)writes, (void)context;
	return -1;
}

/* The chain, the certificate itself first. */
static bool use_chain(SSL_CTX *context, BIO *pem)
{
	X509 *certificate = PEM_read_bio_X509_AUX(pem, NULL, no_password, NULL);
	bool is_used = certificate && SSL_CTX_use_certificate(context, certificate) == 1;

	X509_free(certificate);
	while (is_used && (certificate = PEM_read_bio_X509(pem, NULL, no_password, NULL)))
		if (SSL_CTX_add0_chain_cert(context, certificate) != 1) {
			X509_free(certificate);
			return false;
		}
	if (is_used)
		ERR_clear_error(); /* that there are no more */
	return is_used;
}

static bool use_key(SSL_CTX *context, BIO *pem)
{
	EVP_PKEY *key = PEM_read_bio_PrivateKey(pem, NULL, no_password, NULL);
	bool is_used = key && SSL_CTX_use_PrivateKey(context, key) == 1 &&
		       SSL_CTX_check_private_key(context) == 1;

	EVP_PKEY_free(key);
	return is_used;
}

int nc_tls_renew(struct nc_tls *tls, const char *pem, size_t size, struct nacre_err *err)
{
	SSL_CTX *context = new_context();
	BIO *chain = BIO_new_mem_buf(pem, (int)size), *key = BIO_new_mem_buf(pem, (int)size);
	int r = 0;

	if (!context || !chain || !key)
		r = nc_err_set(err, -ENOMEM, "Out of memory");
	else if (!use_chain(context, chain))
		r = ssl_fault(err, "Certificate", "--tls-cert");
	else if (!use_key(context, key))
		r = ssl_fault(err, "Key of the certificate", "--tls-key");
	BIO_free(chain);
	BIO_free(key);
	if (r < 0) {
		SSL_CTX_free(context);
		return r;
	}
	SSL_CTX_free(tls->context); /* connections hold it for as long as they want it */
	tls->context = context;
	return 0;
}

void nc_tls_free(struct nc_tls *tls)
{
	if (!tls)
		return;
	nc_tls_end(tls);
	SSL_CTX_free(tls->context);
	free(tls);
}

void nc_tls_begin(
	struct nc_tls *tls, uv_loop_t *loop, struct nc_http *http, unsigned int handshake_ms)
{
	tls->loop = loop;
	tls->http = http;
	tls->handshake_ms = handshake_ms;
}

static void pump_free(struct pump *pump)
{
	*pump->place = pump->next;
	if (pump->next)
		pump->next->place = pump->place;
	pump->tls->n_pumps--;
	(void)nc_poll_free(pump->net);
	(void)nc_poll_free(pump->plain);
	SSL_free(pump->ssl);
	ERR_clear_error();
	(void)nc_fd_close(pump->net_fd);
	(void)nc_fd_close(pump->plain_fd);
	free(pump);
}

/* What libssl's result means: 1 go on, 0 wait, -1 it is over. */
static int judge(struct pump *pump, int result)
{
	switch (SSL_get_error(pump->ssl, result)) {
	case SSL_ERROR_NONE:
		return 1;
	case SSL_ERROR_WANT_READ:
		pump->wanted |= UV_READABLE;
		return 0;
	case SSL_ERROR_WANT_WRITE:
		pump->wanted |= UV_WRITABLE;
		return 0;
	default:
		ERR_clear_error();
		return -1;
	}
}

static void on_plain(void *context, int events);

static int shake_hands(struct pump *pump)
{
	int ends[2], r = judge(pump, SSL_do_handshake(pump->ssl));

	if (r <= 0)
		return r;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) < 0)
		return -1;
	pump->plain_fd = ends[0];
	pump->deadline_ns = 0;
	if (nc_http_add(pump->tls->http, ends[1], (struct sockaddr *)&pump->peer, pump->peer_size) <
			0 ||
		nc_poll_new(pump->tls->loop, pump->plain_fd, 0, on_plain, pump, &pump->plain) < 0)
		return -1;
	return 1;
}

/* From the network to libmicrohttpd. Whether anything moved. */
static bool move_in(struct pump *pump)
{
	struct way *in = &pump->in;
	bool moved = false;
	ssize_t n;
	int r;

	if (in->at == in->size && !in->ends) {
		int got = SSL_read(pump->ssl, in->data, sizeof(in->data));

		r = judge(pump, got);
		in->at = 0;
		in->size = r > 0 ? (size_t)got : 0;
		in->ends = r < 0;
		moved = r != 0;
	}
	if (in->at < in->size) {
		n = send(pump->plain_fd, in->data + in->at, in->size - in->at, MSG_NOSIGNAL);
		if (n > 0) {
			explicit_bzero(in->data + in->at, (size_t)n); /* it may bring secrets */
			in->at += (size_t)n;
			moved = true;
		} else if (n < 0 && errno != EAGAIN && errno != EINTR) {
			in->at = in->size;
			in->ends = true;
		}
	}
	if (in->ends && in->at == in->size && !pump->in_closed) {
		(void)shutdown(pump->plain_fd, SHUT_WR);
		pump->in_closed = true;
	}
	return moved;
}

static bool move_out(struct pump *pump)
{
	struct way *out = &pump->out;
	bool moved = false;
	ssize_t n;
	int r;

	if (out->at == out->size && !out->ends) {
		n = recv(pump->plain_fd, out->data, sizeof(out->data), 0);
		out->at = 0;
		out->size = n > 0 ? (size_t)n : 0;
		out->ends = n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
		moved = n >= 0;
	}
	if (out->at < out->size) {
		int put = SSL_write(pump->ssl, out->data + out->at, (int)(out->size - out->at));

		r = judge(pump, put);
		if (r > 0) {
			out->at += (size_t)put;
			moved = true;
		} else if (r < 0) {
			out->at = out->size;
			out->ends = true;
		}
	}
	return moved;
}

static void step(struct pump *pump)
{
	int r = 1, plain;

	pump->wanted = 0;
	if (pump->plain_fd < 0)
		r = shake_hands(pump);
	if (r < 0) {
		pump_free(pump);
		return;
	}
	while (r > 0) {
		bool moved;

		pump->wanted = 0;
		moved = move_in(pump);
		moved = move_out(pump) || moved;
		if (pump->out.ends && pump->out.at == pump->out.size) {
			(void)SSL_shutdown(pump->ssl);
			pump_free(pump);
			return;
		}
		if (!moved)
			break;
	}
	nc_poll_set(pump->net, pump->wanted);
	if (!pump->plain)
		return;
	plain = (pump->in.at < pump->in.size ? UV_WRITABLE : 0) |
		(pump->out.at == pump->out.size ? UV_READABLE : 0);
	nc_poll_set(pump->plain, plain);
}

static void on_net(void *context, int events)
{
	(void)events;
	step(context);
}

static void on_plain(void *context, int events)
{
	(void)events;
	step(context);
}

/* So many may be greeting; one more ends the one that has taken longest. */
static void make_place(struct nc_tls *tls)
{
	struct pump *oldest = NULL;
	size_t n = 0;

	for (struct pump *pump = tls->pumps; pump; pump = pump->next) {
		if (pump->plain_fd >= 0)
			continue;
		oldest = pump;
		n++;
	}
	if (n >= NC_HTTP_STRANGERS_MAX)
		pump_free(oldest);
}

void nc_tls_add(struct nc_tls *tls, int fd, const struct sockaddr *peer, socklen_t peer_size)
{
	struct pump *pump;

	make_place(tls);
	pump = tls->n_pumps < NC_HTTP_CONNECTIONS_MAX + NC_HTTP_STRANGERS_MAX
		       ? calloc(1, sizeof(*pump))
		       : NULL;

	if (!pump || !(pump->ssl = SSL_new(tls->context)) || SSL_set_fd(pump->ssl, fd) != 1) {
		if (pump)
			SSL_free(pump->ssl);
		free(pump);
		(void)close(fd);
		return;
	}
	SSL_set_accept_state(pump->ssl);
	pump->tls = tls;
	pump->net_fd = fd;
	pump->plain_fd = -EBADF;
	pump->deadline_ns = nc_clock_ns() + tls->handshake_ms * NC_NS_PER_MS;
	pump->peer_size = peer_size;
	memcpy(&pump->peer, peer, peer_size);
	pump->next = tls->pumps;
	pump->place = &tls->pumps;
	if (pump->next)
		pump->next->place = &pump->next;
	tls->pumps = pump;
	tls->n_pumps++;
	if (nc_poll_new(tls->loop, fd, UV_READABLE, on_net, pump, &pump->net) < 0)
		pump_free(pump);
}

void nc_tls_tick(struct nc_tls *tls)
{
	uint64_t now = nc_clock_ns();

	for (struct pump *pump = tls->pumps, *next; pump; pump = next) {
		next = pump->next;
		if (pump->deadline_ns && pump->deadline_ns <= now)
			pump_free(pump);
	}
}

void nc_tls_end(struct nc_tls *tls)
{
	while (tls->pumps)
		pump_free(tls->pumps);
}
