/* Folding: a register of 128 bits that stands D bits before the next bytes is worth lo x^(D+64) + hi x^D
 * there; carry-less products with the remainders of these powers move it. Four registers of 512 bits walk
 * over 256 bytes at a time. What is left in them is a message of 256 bytes with the same checksum. Numbers
 * are reflected: a product of two stands for x times it, and 32 bits in a register of 64 for x^32 times them,
 * so the constants are x^(D+64-33) and x^(D-33). After Gopal et al., "Fast CRC Computation for Generic
 * Polynomials Using PCLMULQDQ Instruction" (Intel 2009).
 *
 * The instruction takes three cycles and starts one each cycle: three lanes over thirds of a
 * block, then lanes are moved over the bytes behind them and joined. Moving by n bytes
 * is a product with x^(8n) modulo the polynomial: a carry-less product of 32 by 32 bits, of which the
 * instruction itself (whose 64 bits of data stand for x^32 times them, the product for x less) takes
 * the remainder; hence the constants are x^(8n-33). After Gopal et al., "Fast CRC Computation for iSCSI
 * Polynomial Using CRC32 Instruction" (Intel 2011). */
#include "base/crc32c.h"

#include <immintrin.h>
#include <string.h>

enum { LANE = 1024 };                            /* bytes */
/* x^(8*1024-33), x^(8*2048-33), reflected */
static const uint64_t over_one = 0x170076fa, over_two = 0xa51b6135;

/* Four bits at a time: 64 bytes of table; without the instruction it is slow anyway. */
static const uint32_t nibble[16] = {
	0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
	0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9, 0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
};

static uint32_t by_table(uint32_t crc, const void *bytes, size_t len)
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

static bool everywhere(void) { return true; }
static bool has_instruction(void) { return __builtin_cpu_supports("sse4.2") &&
	__builtin_cpu_supports("pclmul"); }
static bool has_wide(void) { return has_instruction() && __builtin_cpu_supports("avx512f") &&
	__builtin_cpu_supports("vpclmulqdq"); }

static inline uint64_t eight(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof v);
	return v;
}

__attribute__((target("sse4.2,pclmul")))
static uint64_t moved(uint64_t crc, uint64_t by)
{
	__m128i product = _mm_clmulepi64_si128(_mm_cvtsi64_si128((long long)crc),
		_mm_cvtsi64_si128((long long)by), 0);
	return _mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(product));
}

__attribute__((target("sse4.2,pclmul")))
static uint32_t by_instruction(uint32_t crc, const void *bytes, size_t len)
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

enum { FOLD = 256 };                             /* bytes */
/* x^(8*256+64-33), x^(8*256-33), reflected */
static const long long fold_lo = 0xdcb17aa4, fold_hi = 0xb9e02b86;

__attribute__((target("avx512f,vpclmulqdq")))
static inline __m512i folded(__m512i x, __m512i by, const uint8_t *next)
{
	__m512i lo = _mm512_clmulepi64_epi128(x, by, 0x00), hi = _mm512_clmulepi64_epi128(x, by, 0x11);
	/* the sum of three */
	return _mm512_ternarylogic_epi64(lo, hi, _mm512_loadu_si512(next), 0x96);
}

__attribute__((target("avx512f,vpclmulqdq")))
static uint32_t by_folding(uint32_t crc, const void *bytes, size_t len)
{
	const uint8_t *p = bytes;
	uint8_t rest[FOLD];

	if (len < 2 * FOLD)
		return by_instruction(crc, bytes, len);
	const __m512i by = _mm512_set4_epi64(fold_hi, fold_lo, fold_hi, fold_lo);
	__m512i a = _mm512_loadu_si512(p), b = _mm512_loadu_si512(p + 64), c = _mm512_loadu_si512(p + 128),
		d = _mm512_loadu_si512(p + 192);
	a = _mm512_xor_si512(a, _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)~crc)));
	for (p += FOLD, len -= FOLD; len >= FOLD; p += FOLD, len -= FOLD) {
		a = folded(a, by, p);
		b = folded(b, by, p + 64);
		c = folded(c, by, p + 128);
		d = folded(d, by, p + 192);
	}
	_mm512_storeu_si512(rest, a);
	_mm512_storeu_si512(rest + 64, b);
	_mm512_storeu_si512(rest + 128, c);
	_mm512_storeu_si512(rest + 192, d);
	/* gcc adds it by itself from -O2 on: without it code of 128 bits afterwards is 70 times as slow */
	_mm256_zeroupper();
	/* UINT32_MAX: begins with 0, not inverted */
	return by_instruction(by_instruction(UINT32_MAX, rest, FOLD), p, len);
}

const struct hd_crc32c_row hd_crc32c_rows[HD_CRC32C_ROWS] = {
	{ "fold", has_wide, by_folding },
	{ "instruction", has_instruction, by_instruction },
	{ "table", everywhere, by_table },
};

uint32_t hd_crc32c(uint32_t crc, const void *bytes, size_t len)
{
	const struct hd_crc32c_row *row = hd_crc32c_rows;

	while (!row->is_here())
		row++;
	return row->crc(crc, bytes, len);
}
