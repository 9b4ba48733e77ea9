/* crypto_tls.h -- TLS 1.3 over a socket of sys, both ends proving one secret: no certificates.
 *
 * The secret of a connection is HKDF-SHA256(key, salt, info = identity), 32 bytes, used as an external PSK
 * with a Diffie-Hellman exchange (psk_dhe_ke), suite TLS_AES_128_GCM_SHA256 and nothing else; no tickets, no
 * early data, no other version. The client sends its identity in the clear; the server accepts it or not.
 *
 * 1. Nothing blocks; HD_E_AGAIN: hd_tls_wants() says for what it waits.
 * 2. HD_E_REFUSED: the other end does not have the secret, or does not speak this. HD_E_PEERLOST: it is gone.
 * 3. A write that said HD_E_AGAIN is repeated with memory that begins with the same bytes.
 * 4. Keys are wiped from memory when they have served.
 *
 * 5. A connection whose handshake is not over holds less than 60 KiB.
 *
 * Ownership: make/finish; the socket, and the key until the handshake is over, are borrowed; so is the realm,
 * what connections of one owner share. Threads: one per realm with its connections. */
#ifndef HD_SYS_CRYPTO_TLS_H
#define HD_SYS_CRYPTO_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "sys/socket.h"

enum { HD_TLS_IDENTITY = 128,             /* with the final 0 */
       HD_TLS_SECRET = 32 };

struct hd_tls_config {
	const void *key;
	size_t key_len;                   /* 16 or more */
	uint8_t salt[16];
	bool listens;
	char identity[HD_TLS_IDENTITY];   /* client: what it sends */
	/* server: accept this identity? Called once per handshake */
	bool (*accept)(void *self, const char *identity);
	void *self;                       /* borrowed until finish */
};

struct hd_tls_realm { void *context, *method; };  /* owned */

HD_MUST_USE enum hd_err hd_tls_realm_make(struct hd_tls_realm *realm, struct hd_diag *diag);
/* after its connections; takes zeroed and finished ones */
void hd_tls_realm_finish(struct hd_tls_realm *realm);

struct hd_tls_state;
struct hd_tls { struct hd_tls_state *state; };    /* owned */

HD_MUST_USE enum hd_err hd_tls_make(struct hd_tls *tls, const struct hd_tls_realm *realm,
	const struct hd_tls_config *config, struct hd_sock *sock,
			     struct hd_diag *diag);
/* says the end if that does not block; takes zeroed and finished ones */
void hd_tls_finish(struct hd_tls *tls);
HD_MUST_USE enum hd_err hd_tls_shake(struct hd_tls *tls, struct hd_diag *diag);
/* len >= 1. As hd_sock_read() and hd_sock_write(). */
HD_MUST_USE enum hd_err hd_tls_read(struct hd_tls *tls, void *bytes, size_t len, size_t *got,
	struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_tls_write(struct hd_tls *tls, const void *bytes, size_t len, size_t *put,
	struct hd_diag *diag);
/* 32 bytes that both ends of this connection have and no other connection has (RFC 8446, 7.5); once shaken.
 * False: OpenSSL has none. */
bool hd_tls_binding(const struct hd_tls *tls, uint8_t binding[HD_TLS_SECRET]);
/* The secret of an identity; the caller wipes it. False: OpenSSL has no HKDF. */
bool hd_tls_secret(const struct hd_tls_config *config, const char *identity, uint8_t secret[HD_TLS_SECRET]);
unsigned hd_tls_wants(const struct hd_tls *tls);          /* HD_LOOP_READ or HD_LOOP_WRITE after HD_E_AGAIN */

#endif
