/* The instruction takes three cycles and starts one each cycle: three lanes over thirds of a
 * block, then lanes are moved over the bytes behind them and joined. Moving by n bytes
 * is a product with x^(8n) modulo the polynomial: a carry-less product of 32 by 32 bits, of which the
 * instruction itself (whose 64 bits of data stand for x^32 times them, the product for x less) takes
 * the remainder; hence the constants are x^(8n-33). After Gopal et al., "Fast CRC Computation for iSCSI
 * Polynomial Using CRC32 Instruction" (Intel 2011). */
#include "base/crc32c.h"

#include <immintrin.h>
#include <string.h>

enum { LANE = 1024 };                            /* bytes */
static const uint64_t over_one = 0x170076fa, over_two = 0xa51b6135;         /* x^(8*1024-33), x^(8*2048-33), reflected */

/* Four bits at a time: 64 bytes of table; who lacks the instruction lacks speed anyway. */
static const uint32_t nibble[16] = {
	0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
	0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9, 0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
};

uint32_t hd_crc32c_table(uint32_t crc, const void *bytes, size_t len)
{
	const uint8_t *p = bytes;

	crc = ~crc;
	for (size_t i = 0; i < len; i++) {
		crc ^= p[i];
		crc = crc >> 4 ^ nibble[crc & 15];
		crc = crc >> 4 ^ nibble[crc & 15];
	}
	return ~crc;
}

bool hd_crc32c_has_fast(void) { return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul"); }

static inline uint64_t eight(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof v);
	return v;
}

__attribute__((target("sse4.2,pclmul")))
static uint64_t moved(uint64_t crc, uint64_t by)
{
	__m128i product = _mm_clmulepi64_si128(_mm_cvtsi64_si128((long long)crc), _mm_cvtsi64_si128((long long)by), 0);
	return _mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(product));
}

__attribute__((target("sse4.2,pclmul")))
uint32_t hd_crc32c_fast(uint32_t crc, const void *bytes, size_t len)
{
	const uint8_t *p = bytes;
	uint64_t a = ~crc;

	for (; len >= 3 * LANE; p += 3 * LANE, len -= 3 * LANE) {
		uint64_t b = 0, c = 0;
		for (size_t i = 0; i < LANE; i += 8) {
			a = _mm_crc32_u64(a, eight(p + i));
			b = _mm_crc32_u64(b, eight(p + LANE + i));
			c = _mm_crc32_u64(c, eight(p + 2 * LANE + i));
		}
		a = moved(a, over_two) ^ moved(b, over_one) ^ c;
	}
	for (; len >= 8; p += 8, len -= 8)
		a = _mm_crc32_u64(a, eight(p));
	for (; len; p++, len--)
		a = _mm_crc32_u8((uint32_t)a, *p);
	return ~(uint32_t)a;
}

uint32_t hd_crc32c(uint32_t crc, const void *bytes, size_t len)
{
	return hd_crc32c_has_fast() ? hd_crc32c_fast(crc, bytes, len) : hd_crc32c_table(crc, bytes, len);
}
