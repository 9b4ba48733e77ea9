#include "base/hash.h"

#include <string.h>

/* Inlined, so that the program does not depend on which library version is installed. */
#define XXH_INLINE_ALL
#include <xxhash.h>

_Static_assert(sizeof(XXH3_state_t) <= sizeof(struct hd_hasher),
	"the caller's memory holds the library's state");
_Static_assert(_Alignof(XXH3_state_t) <= _Alignof(struct hd_hasher), "and aligned as it asks");

static struct hd_hash canonical(XXH128_hash_t value)
{
	XXH128_canonical_t big;
	struct hd_hash hash;

	XXH128_canonicalFromHash(&big, value);
	memcpy(hash.byte, big.digest, sizeof hash.byte);
	return hash;
}

struct hd_hash hd_hash(const void *bytes, size_t len) { return canonical(XXH3_128bits(bytes, len)); }
uint64_t hd_hash64(const void *bytes, size_t len) { return XXH3_64bits(bytes, len); }
bool hd_hash_same(struct hd_hash a, struct hd_hash b) { return memcmp(a.byte, b.byte, sizeof a.byte) == 0; }

void hd_hash_hex(struct hd_hash hash, char hex[HD_HASH_HEX])
{
	for (size_t i = 0; i < sizeof hash.byte; i++) {
		hex[2 * i] = "0123456789abcdef"[hash.byte[i] >> 4];
		hex[2 * i + 1] = "0123456789abcdef"[hash.byte[i] & 15];
	}
	hex[HD_HASH_HEX - 1] = '\0';
}

/* Lower case only: a digest has one spelling, so that texts can be compared as bytes. */
static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool hd_hash_parse(const char *hex, struct hd_hash *hash)
{
	struct hd_hash read;

	if (strnlen(hex, HD_HASH_HEX) != HD_HASH_HEX - 1)
		return false;
	for (size_t i = 0; i < sizeof read.byte; i++) {
		int high = digit(hex[2 * i]), low = digit(hex[2 * i + 1]);
		if (high < 0 || low < 0)
			return false;
		read.byte[i] = (uint8_t)(high * 16 + low);
	}
	*hash = read;
	return true;
}

void hd_hasher_init(struct hd_hasher *hasher)
{
	memset(hasher, 0, sizeof *hasher);       /* equal contents, equal bytes: states may be compared */
	XXH3_128bits_reset((XXH3_state_t *)hasher);
}

void hd_hasher_add(struct hd_hasher *hasher, const void *bytes, size_t len)
{
	if (len)
		XXH3_128bits_update((XXH3_state_t *)hasher, bytes, len);
}

struct hd_hash hd_hasher_end(const struct hd_hasher *hasher)
{
	return canonical(XXH3_128bits_digest((const XXH3_state_t *)hasher));
}

/* The library's states differ in nothing but what is made of them at the end. */
uint64_t hd_hasher_end64(const struct hd_hasher *hasher)
{
	return XXH3_64bits_digest((const XXH3_state_t *)hasher);
}
