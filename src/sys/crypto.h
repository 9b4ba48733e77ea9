/* crypto.h -- SHA-256, proofs made with it (HMAC), and random bytes.
 *
 * Checkpoint manifests and data sets carry SHA-256 sums, so that any tool can check them
 * with sha256sum; equality inside the program is XXH3 (base/hash.h), which is faster.
 *
 * Ownership: a stream that was begun is ended or finished. Threads: one per stream. */
#ifndef HD_SYS_CRYPTO_H
#define HD_SYS_CRYPTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "sys/file.h"

struct hd_sha256 { uint8_t byte[32]; };
enum { HD_SHA256_HEX = 65 };              /* with the final 0 */

struct hd_sha256_stream { void *state; };        /* owned */

HD_MUST_USE enum hd_err hd_sha256(const void *bytes, size_t len, struct hd_sha256 *sum, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_sha256_begin(struct hd_sha256_stream *stream, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_sha256_add(struct hd_sha256_stream *stream, const void *bytes, size_t len,
	struct hd_diag *diag);
/* frees, whatever it answers */
HD_MUST_USE enum hd_err hd_sha256_end(struct hd_sha256_stream *stream, struct hd_sha256 *sum,
	struct hd_diag *diag);
void hd_sha256_finish(struct hd_sha256_stream *stream);        /* gives up; takes zeroed and ended ones */
HD_MUST_USE enum hd_err hd_sha256_file(struct hd_fs *fs, const char *path, struct hd_sha256 *sum,
	uint64_t *len_bytes, struct hd_diag *diag);

void hd_sha256_hex(const struct hd_sha256 *sum, char hex[HD_SHA256_HEX]);        /* lower case */
bool hd_sha256_parse(const char *hex, struct hd_sha256 *sum);                    /* exactly 64 digits */
bool hd_sha256_same(const struct hd_sha256 *a, const struct hd_sha256 *b);

/* HMAC-SHA-256 (RFC 2104) of bytes under a key of any length. */
HD_MUST_USE enum hd_err hd_hmac_sha256(const void *key, size_t key_len, const void *bytes, size_t len,
	struct hd_sha256 *proof, struct hd_diag *diag);
/* Are two proofs equal? It takes as long wherever they differ. */
bool hd_sha256_proves(const struct hd_sha256 *a, const struct hd_sha256 *b);

/* for names and keys; nothing in training */
HD_MUST_USE enum hd_err hd_random_bytes(void *bytes, size_t len, struct hd_diag *diag);

#endif
