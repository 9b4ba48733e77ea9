#include "sys/crypto_tls.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <openssl/ssl.h>
#include <string.h>

#include "base/alloc.h"
#include "sys/loop.h"

enum { RECORD_LEAST = 512, RECORD_MOST = 16384 };
static const unsigned char suite[] = { 0x13, 0x01 };      /* TLS_AES_128_GCM_SHA256 */

struct hd_tls_state {
	struct hd_tls_config config;
	struct hd_sock *sock;             /* borrowed */
	SSL *ssl;
	bool lost;                        /* the socket is */
};

/* ---- the socket as OpenSSL sees it ---- */

static int bio_result(BIO *bio, enum hd_err err, size_t n)
{
	struct hd_tls_state *s = BIO_get_data(bio);

	s->lost = s->lost || (err && err != HD_E_AGAIN);
	return err ? -1 : (int)n;
}

static int bio_read(BIO *bio, char *bytes, int len)
{
	struct hd_tls_state *s = BIO_get_data(bio);
	size_t got = 0;

	BIO_clear_retry_flags(bio);
	enum hd_err err = len > 0 ? hd_sock_read(s->sock, bytes, (size_t)len, &got, NULL) : HD_OK;
	if (err == HD_E_AGAIN)
		BIO_set_retry_read(bio);
	s->lost = s->lost || (!err && !got && len > 0);
	return bio_result(bio, err, got);
}

static int bio_write(BIO *bio, const char *bytes, int len)
{
	struct hd_tls_state *s = BIO_get_data(bio);
	size_t put = 0;

	BIO_clear_retry_flags(bio);
	enum hd_err err = len > 0 ? hd_sock_write(s->sock, bytes, (size_t)len, &put, NULL) : HD_OK;
	if (err == HD_E_AGAIN)
		BIO_set_retry_write(bio);
	return bio_result(bio, err, put);
}

static long bio_ctrl(BIO *bio, int what, long n, void *p)
{
	(void)bio;
	(void)n;
	(void)p;
	return what == BIO_CTRL_FLUSH;
}

/* ---- the secret ---- */

bool hd_tls_secret(const struct hd_tls_config *c, const char *identity, uint8_t secret[HD_TLS_SECRET])
{
	EVP_KDF *kdf = EVP_KDF_fetch(NULL, "HKDF", NULL);
	EVP_KDF_CTX *ctx = kdf ? EVP_KDF_CTX_new(kdf) : NULL;
	char digest[] = "SHA256";
	OSSL_PARAM params[] = {
		OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, (void *)(uintptr_t)c->key, c->key_len),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SALT, (void *)(uintptr_t)c->salt,
		sizeof c->salt),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, (void *)(uintptr_t)identity,
		strlen(identity)),
		OSSL_PARAM_construct_end(),
	};

	bool done = ctx && EVP_KDF_derive(ctx, secret, HD_TLS_SECRET, params) == 1;
	EVP_KDF_CTX_free(ctx);
	EVP_KDF_free(kdf);
	return done;
}

/* A session that holds the secret, as an external PSK is handed over. */
static SSL_SESSION *session_of(SSL *ssl, const struct hd_tls_config *c, const char *identity)
{
	uint8_t secret[HD_TLS_SECRET];
	SSL_SESSION *session = hd_tls_secret(c, identity, secret) ? SSL_SESSION_new() : NULL;
	const SSL_CIPHER *cipher = SSL_CIPHER_find(ssl, suite);

	if (session && (!cipher || !SSL_SESSION_set1_master_key(session, secret, sizeof secret) ||
		!SSL_SESSION_set_cipher(session, cipher) ||
	    !SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION))) {
		SSL_SESSION_free(session);
		session = NULL;
	}
	OPENSSL_cleanse(secret, sizeof secret);
	return session;
}

static int use_secret(SSL *ssl, const EVP_MD *md, const unsigned char **id, size_t *len,
	SSL_SESSION **session)
{
	struct hd_tls_state *s = SSL_get_app_data(ssl);

	(void)md;        /* NULL, or SHA-256: there is one suite */
	*id = (const unsigned char *)s->config.identity;
	*len = strlen(s->config.identity);
	*session = session_of(ssl, &s->config, s->config.identity);
	return *session != NULL;
}

static int find_secret(SSL *ssl, const unsigned char *id, size_t len, SSL_SESSION **session)
{
	struct hd_tls_state *s = SSL_get_app_data(ssl);
	char identity[HD_TLS_IDENTITY] = "";

	*session = NULL;
	if (len >= sizeof identity || memchr(id, 0, len))
		return 1;        /* no such secret: without a certificate that ends the handshake */
	memcpy(identity, id, len);
	if (s->config.accept(s->config.self, identity))
		*session = session_of(ssl, &s->config, identity);
	return 1;
}

/* ---- life ---- */

static bool set_up_realm(struct hd_tls_realm *r)
{
	SSL_CTX *context = r->context = SSL_CTX_new(TLS_method());
	/* A fixed number, the first that is free for programs: OpenSSL has only some hundred of them to
	 * give, and nothing looks for ours. */
	BIO_METHOD *method = r->method = BIO_meth_new(BIO_TYPE_START | BIO_TYPE_SOURCE_SINK, "heddle socket");

	if (!context || !method || !BIO_meth_set_read(method, bio_read) ||
		!BIO_meth_set_write(method, bio_write) ||
	    !BIO_meth_set_ctrl(method, bio_ctrl))
		return false;
	if (!SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) ||
		!SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION) ||
	    !SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256") ||
	    !SSL_CTX_set_num_tickets(context, 0))
		return false;
	SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
	SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
		SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_psk_use_session_callback(context, use_secret);
	SSL_CTX_set_psk_find_session_callback(context, find_secret);
	return true;
}

enum hd_err hd_tls_realm_make(struct hd_tls_realm *realm, struct hd_diag *diag)
{
	struct hd_tls_realm made = { 0 };

	ERR_clear_error();
	bool good = set_up_realm(&made);
	ERR_clear_error();
	if (good)
		*realm = made;
	else
		hd_tls_realm_finish(&made);
	return good ? HD_OK : hd_fail(diag, HD_E_REFUSED,
		"OpenSSL cannot do TLS 1.3 with TLS_AES_128_GCM_SHA256; check its configuration");
}

void hd_tls_realm_finish(struct hd_tls_realm *realm)
{
	SSL_CTX_free(realm->context);
	BIO_meth_free(realm->method);
	*realm = (struct hd_tls_realm){ 0 };
}

static bool set_up(struct hd_tls_state *s, const struct hd_tls_realm *realm)
{
	s->ssl = SSL_new(realm->context);
	BIO *bio = s->ssl ? BIO_new(realm->method) : NULL;
	if (!bio)
		return false;
	BIO_set_data(bio, s);
	BIO_set_init(bio, 1);
	SSL_set_bio(s->ssl, bio, bio);        /* takes it */
	SSL_set_app_data(s->ssl, s);
	/* A server that would rather show a certificate is not ours: none is trusted. */
	SSL_set_verify(s->ssl, s->config.listens ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, NULL);
	/* Small records while strangers shake hands: the buffer is as large as what may be written. */
	SSL_set_max_send_fragment(s->ssl, RECORD_LEAST);
	if (s->config.listens)
		SSL_set_accept_state(s->ssl);
	else
		SSL_set_connect_state(s->ssl);
	return true;
}

static void forget(struct hd_tls_state *s)
{
	SSL_free(s->ssl);
	OPENSSL_cleanse(s, sizeof *s);
	hd_free(s);
}

enum hd_err hd_tls_make(struct hd_tls *tls, const struct hd_tls_realm *realm,
	const struct hd_tls_config *config, struct hd_sock *sock,
			struct hd_diag *diag)
{
	if (config->key_len < 16)
		return hd_fail(diag, HD_E_REFUSED, "the key has %zu bytes; 16 are the least",
			config->key_len);
	struct hd_tls_state *s = hd_alloc(sizeof *s);
	if (!s)
		return hd_fail(diag, HD_E_NOMEM, "out of memory for a TLS connection");
	*s = (struct hd_tls_state){ .config = *config, .sock = sock };
	ERR_clear_error();
	if (!set_up(s, realm)) {
		ERR_clear_error();
		forget(s);
		return hd_fail(diag, HD_E_NOMEM, "out of memory for a TLS connection");
	}
	tls->state = s;
	return HD_OK;
}

void hd_tls_finish(struct hd_tls *tls)
{
	if (!tls->state)
		return;
	ERR_clear_error();
	if (!tls->state->lost && SSL_is_init_finished(tls->state->ssl))
		/* the other end hears of an orderly end, if it fits the socket now */
		(void)SSL_shutdown(tls->state->ssl);
	ERR_clear_error();
	forget(tls->state);
	tls->state = NULL;
}

/* ---- bytes ---- */

/* What the last call meant; the queue of errors is the thread's and was cleared before it. */
static enum hd_err verdict(struct hd_tls_state *s, int r, bool shaking, struct hd_diag *diag)
{
	int what = SSL_get_error(s->ssl, r);
	unsigned long error = ERR_peek_error();
	const char *reason = error ? ERR_reason_error_string(error) : NULL;

	if (what == SSL_ERROR_WANT_READ || what == SSL_ERROR_WANT_WRITE)
		return HD_E_AGAIN;
	ERR_clear_error();
	if (s->lost || what == SSL_ERROR_SYSCALL)
		return hd_fail(diag, HD_E_PEERLOST,
			"the connection to %s is gone; is the other process alive?", s->sock->addr);
	return hd_fail(diag, shaking ? HD_E_REFUSED : HD_E_PEERLOST,
		"%s: %s (%s); do both sides have the same key and job?", s->sock->addr,
		shaking ? "the other side could not prove the key" : "TLS failed",
		reason ? reason : "no reason given");
}

enum hd_err hd_tls_shake(struct hd_tls *tls, struct hd_diag *diag)
{
	struct hd_tls_state *s = tls->state;

	ERR_clear_error();
	int r = SSL_do_handshake(s->ssl);
	if (r != 1)
		return verdict(s, r, true, diag);
	if (!SSL_session_reused(s->ssl) || SSL_version(s->ssl) != TLS1_3_VERSION)
		return hd_fail(diag, HD_E_REFUSED, "%s: the other side did not prove the key", s->sock->addr);
	s->config.key = NULL;        /* it has served */
	/* Making the greatest smaller made the usual smaller with it; making it greater does not. */
	SSL_set_max_send_fragment(s->ssl, RECORD_MOST);
	SSL_set_split_send_fragment(s->ssl, RECORD_MOST);
	return HD_OK;
}

enum hd_err hd_tls_read(struct hd_tls *tls, void *bytes, size_t len, size_t *got, struct hd_diag *diag)
{
	ERR_clear_error();
	int r = SSL_read_ex(tls->state->ssl, bytes, len, got);
	if (r == 1)
		return HD_OK;
	if (SSL_get_error(tls->state->ssl, r) != SSL_ERROR_ZERO_RETURN)
		return verdict(tls->state, r, false, diag);
	*got = 0;
	return HD_OK;
}

enum hd_err hd_tls_write(struct hd_tls *tls, const void *bytes, size_t len, size_t *put, struct hd_diag *diag)
{
	ERR_clear_error();
	int r = SSL_write_ex(tls->state->ssl, bytes, len, put);
	return r == 1 ? HD_OK : verdict(tls->state, r, false, diag);
}

bool hd_tls_binding(const struct hd_tls *tls, uint8_t binding[HD_TLS_SECRET])
{
	static const char label[] = "EXPORTER-heddle";

	ERR_clear_error();
	int r = SSL_export_keying_material(tls->state->ssl, binding, HD_TLS_SECRET, label, sizeof label - 1,
		NULL, 0, 0);
	ERR_clear_error();
	return r == 1;
}

unsigned hd_tls_wants(const struct hd_tls *tls) { return SSL_want_write(tls->state->ssl) ? HD_LOOP_WRITE :
	HD_LOOP_READ; }
