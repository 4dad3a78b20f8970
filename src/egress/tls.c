/* TLS that the door takes part in. */
#include "egress/tls.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <string.h>

#include "base/fd.h"
#include "base/text.h"

#define BUNDLE "/etc/ssl/certs/ca-certificates.crt"
#define BUNDLE_MAX (4U * 1024 * 1024)
/* A process does not live longer; clocks may differ by an hour. */
#define BEFORE_SECONDS (-3600L)
#define AFTER_SECONDS (90L * 86400)

/* ---- certificates ---- */

static bool add_extension(X509 *certificate, X509 *issuer, int kind, const char *value)
{
	X509_EXTENSION *extension;
	X509V3_CTX context;
	bool added;

	X509V3_set_ctx_nodb(&context);
	X509V3_set_ctx(&context, issuer, certificate, NULL, NULL, 0);
	extension = X509V3_EXT_conf_nid(NULL, &context, kind, value);
	added = extension && X509_add_ext(certificate, extension, -1) == 1;
	X509_EXTENSION_free(extension);
	return added;
}

static bool fill(X509 *certificate, EVP_PKEY *key, const char *name)
{
	const unsigned char *text = (const unsigned char *)name;
	X509_NAME *subject = X509_get_subject_name(certificate);
	uint64_t serial;

	return RAND_bytes((unsigned char *)&serial, sizeof(serial)) == 1 &&
	       X509_set_version(certificate, X509_VERSION_3) == 1 &&
	       ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), serial >> 1 | 1) == 1 &&
	       X509_gmtime_adj(X509_getm_notBefore(certificate), BEFORE_SECONDS) &&
	       X509_gmtime_adj(X509_getm_notAfter(certificate), AFTER_SECONDS) &&
	       X509_set_pubkey(certificate, key) == 1 &&
	       X509_NAME_add_entry_by_NID(subject, NID_commonName, MBSTRING_ASC, text, -1, -1, 0) ==
		       1;
}

static bool make_authority(struct nc_tls *tls)
{
	X509 *made = X509_new();

	tls->authority = made;
	tls->key = EVP_EC_gen("P-256");
	return made && tls->key && fill(made, tls->key, "Nacre egress") &&
	       X509_set_issuer_name(made, X509_get_subject_name(made)) == 1 &&
	       add_extension(made, made, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
	       add_extension(made, made, NID_key_usage, "critical,keyCertSign") &&
	       add_extension(made, made, NID_subject_key_identifier, "hash") &&
	       X509_sign(made, tls->key, EVP_sha256()) > 0;
}

/* A certificate for one host; NULL. */
static X509 *make_leaf(struct nc_tls *tls, const struct nc_host *host)
{
	/* names are letters, digits, '-' and '.', so that nothing in them ends the value */
	char names[NC_HOST_TEXT_MAX + sizeof("DNS:")];
	X509 *leaf = X509_new();

	(void)snprintf(names, sizeof(names), "%s:%s", host->kind == NC_HOST_NAME ? "DNS" : "IP",
		host->text);
	/* a name in the subject may have 64 bytes, and nobody looks at it */
	if (leaf && fill(leaf, tls->key, "Nacre egress leaf") &&
		X509_set_issuer_name(leaf, X509_get_subject_name(tls->authority)) == 1 &&
		add_extension(leaf, tls->authority, NID_basic_constraints, "critical,CA:FALSE") &&
		add_extension(leaf, tls->authority, NID_subject_alt_name, names) &&
		add_extension(leaf, tls->authority, NID_ext_key_usage, "serverAuth") &&
		add_extension(leaf, tls->authority, NID_authority_key_identifier, "keyid") &&
		X509_sign(leaf, tls->key, EVP_sha256()) > 0)
		return leaf;
	X509_free(leaf);
	return NULL;
}

static bool write_pem(struct nc_tls *tls)
{
	BIO *memory = BIO_new(BIO_s_mem());
	char *text;
	long size;

	if (memory && PEM_write_bio_X509(memory, tls->authority) == 1) {
		size = BIO_get_mem_data(memory, &text);
		tls->authority_pem = strndup(text, (size_t)size);
	}
	BIO_free(memory);
	return tls->authority_pem != NULL;
}

/* ---- beginning and end ---- */

static SSL_CTX *make_context(const SSL_METHOD *method)
{
	SSL_CTX *context = SSL_CTX_new(method);

	if (!context)
		return NULL;
	(void)SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
	(void)SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE |
						SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
						SSL_MODE_RELEASE_BUFFERS);
	/* no session is resumed: it might be another box's */
	(void)SSL_CTX_set_options(
		context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_NO_TICKET);
	(void)SSL_CTX_set_num_tickets(context, 0);
	(void)SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
	return context;
}

static int read_bundle(struct nc_tls *tls, const char *path)
{
	cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

	return fd < 0 ? -errno : nc_fd_read_all(fd, BUNDLE_MAX, &tls->bundle, &tls->bundle_size);
}

static void trust_bundle(struct nc_tls *tls)
{
	X509_STORE *store = SSL_CTX_get_cert_store(tls->far);
	BIO *memory = BIO_new_mem_buf(tls->bundle, (int)tls->bundle_size);
	X509 *certificate;

	while (memory && (certificate = PEM_read_bio_X509(memory, NULL, NULL, NULL))) {
		(void)X509_STORE_add_cert(store, certificate);
		X509_free(certificate);
	}
	BIO_free(memory);
	nc_freep(&tls->bundle);
}

int nc_tls_init(struct nc_tls *tls, const char *bundle, struct nacre_err *err)
{
	*tls = (struct nc_tls){0};
	if (OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, NULL) != 1 || !make_authority(tls) ||
		!write_pem(tls))
		return nc_err_set(err, -ENOMEM, "Make an authority of our own");
	tls->near = make_context(TLS_server_method());
	tls->far = make_context(TLS_client_method());
	if (!tls->near || !tls->far)
		return nc_err_set(err, -ENOMEM, "Prepare TLS");
	SSL_CTX_set_verify(tls->far, SSL_VERIFY_PEER, NULL);
	/* without them every host is refused, which is how it should be */
	(void)read_bundle(tls, bundle ? bundle : BUNDLE);
	return 0;
}

void nc_tls_done(struct nc_tls *tls)
{
	SSL_CTX_free(tls->near);
	SSL_CTX_free(tls->far);
	X509_free(tls->authority);
	EVP_PKEY_free(tls->key);
	nc_freep(&tls->authority_pem);
	nc_freep(&tls->bundle);
}

/* ---- connections ---- */

SSL *nc_tls_near(struct nc_tls *tls, const struct nc_host *host)
{
	X509 *leaf = make_leaf(tls, host);
	SSL *ssl = leaf ? SSL_new(tls->near) : NULL;

	if (ssl &&
		(SSL_use_certificate(ssl, leaf) != 1 || SSL_use_PrivateKey(ssl, tls->key) != 1)) {
		SSL_free(ssl);
		ssl = NULL;
	}
	X509_free(leaf);
	if (ssl)
		SSL_set_accept_state(ssl);
	return ssl;
}

SSL *nc_tls_far(struct nc_tls *tls, const struct nc_host *host)
{
	const bool named = host->kind == NC_HOST_NAME;
	char name[sizeof(host->text)];
	X509_VERIFY_PARAM *wanted;
	SSL *ssl;

	if (tls->bundle)
		trust_bundle(tls);
	ssl = SSL_new(tls->far);
	if (!ssl)
		return NULL;
	wanted = SSL_get0_param(ssl);
	memcpy(name, host->text, sizeof(name));
	X509_VERIFY_PARAM_set_hostflags(wanted, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	if ((named ? X509_VERIFY_PARAM_set1_host(wanted, host->text, 0)
		   : X509_VERIFY_PARAM_set1_ip_asc(wanted, host->text)) != 1 ||
		(named && SSL_set_tlsext_host_name(ssl, name) != 1)) {
		SSL_free(ssl);
		return NULL;
	}
	SSL_set_connect_state(ssl);
	return ssl;
}

bool nc_tls_greets(const SSL *ssl, const struct nc_host *host)
{
	const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
	struct nc_host greeted;

	if (!name)
		return host->kind != NC_HOST_NAME;
	return nc_host_parse(name, strlen(name), &greeted) == 0 && greeted.kind == host->kind &&
	       nc_streq(greeted.text, host->text);
}
