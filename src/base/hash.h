/* hash.h -- the two hashes of the tree, wrapped so that no other file uses the library.
 *
 * XXH3 (64 and 128 bits) names contents: state digests, job hashes, plans, data.
 * It is an equality check, not a signature: files are protected by SHA-256
 * (sys/crypto.h). A 128-bit hash is written as 32 lower-case hex digits, big end
 * first ("canonical" in the library's words). */
#ifndef HD_BASE_HASH_H
#define HD_BASE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hd_hash { uint8_t byte[16]; };             /* canonical: big end first */
enum { HD_HASH_HEX = 33 };                        /* with the final 0 */

struct hd_hash hd_hash(const void *bytes, size_t len);
uint64_t hd_hash64(const void *bytes, size_t len);
bool hd_hash_same(struct hd_hash a, struct hd_hash b);
void hd_hash_hex(struct hd_hash hash, char hex[HD_HASH_HEX]);
bool hd_hash_parse(const char *hex, struct hd_hash *hash);         /* exactly 32 digits */

/* Streaming form of hd_hash(): equal to hashing the pieces joined. The state is
 * in the caller's memory and needs no finish. */
struct hd_hasher { _Alignas(64) uint8_t state[640]; };
void hd_hasher_init(struct hd_hasher *hasher);
void hd_hasher_add(struct hd_hasher *hasher, const void *bytes, size_t len);
struct hd_hash hd_hasher_end(const struct hd_hasher *hasher);
uint64_t hd_hasher_end64(const struct hd_hasher *hasher);          /* that of hd_hash64() */

#endif
