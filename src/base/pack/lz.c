#include <string.h>

#include "base/pack/lz_int.h"

/* Snappy: google/snappy, format_description.txt (framing not included). LZ4: lz4/lz4, lz4_Block_format.md.
 * Both are written here since a block is all that is asked for: Debian's libsnappy would bring C++ in. */

struct lz { const uint8_t *at, *end; uint8_t *out; size_t n, cap; };

static bool literals(struct lz *z, uint64_t n)
{
	if (n > (uint64_t)(z->end - z->at) || n > z->cap - z->n)
		return false;
	if (n)
		memcpy(z->out + z->n, z->at, n);
	z->at += n;
	z->n += n;
	return true;
}

/* What is copied may be what the copy itself writes: a short distance repeats. */
static bool copy(struct lz *z, uint64_t distance, uint64_t n)
{
	if (!distance || distance > z->n || n > z->cap - z->n)
		return false;
	uint8_t *to = z->out + z->n;
	const uint8_t *from = to - distance;
	z->n += n;
	if (distance >= n) {
		memcpy(to, from, n);
		return true;
	}
	while (n--)
		*to++ = *from++;
	return true;
}

static bool little(struct lz *z, unsigned nbytes, uint64_t *v)
{
	*v = 0;
	if ((size_t)(z->end - z->at) < nbytes)
		return false;
	for (unsigned i = 0; i < nbytes; i++)
		*v |= (uint64_t)z->at[i] << 8 * i;
	z->at += nbytes;
	return true;
}

/* ---- Snappy ---- */

static bool length_of(struct lz *z, uint64_t *len)
{
	*len = 0;
	for (unsigned shift = 0; z->at < z->end && shift < 35; shift += 7) {
		const uint8_t byte = *z->at++;
		*len |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return true;
	}
	return false;
}

static bool element(struct lz *z)
{
	const uint8_t tag = *z->at++;
	const unsigned high = tag >> 2;
	uint64_t v;

	switch (tag & 3) {
	case 0:
		v = high;
		return (high < 60 || little(z, high - 59, &v)) && literals(z, v + 1);
	case 1:
		return little(z, 1, &v) && copy(z, (uint64_t)(tag >> 5) << 8 | v, 4 + (high & 7));
	case 2:
		return little(z, 2, &v) && copy(z, v, high + 1);
	default:
		return little(z, 4, &v) && copy(z, v, high + 1);
	}
}

bool hd_snappy_unpack(const uint8_t *bytes, size_t len, uint8_t *out, size_t out_len)
{
	struct lz z = { bytes, bytes + len, out, 0, out_len };
	uint64_t says;

	if (!length_of(&z, &says) || says != out_len)
		return false;
	while (z.at < z.end)
		if (!element(&z))
			return false;
	return z.n == out_len;
}

/* ---- LZ4 ---- */

/* 15 goes on in further bytes, until one is below 255. */
static bool extend(struct lz *z, uint64_t *n)
{
	uint64_t byte = 255;

	if (*n < 15)
		return true;
	while (byte == 255) {
		if (!little(z, 1, &byte))
			return false;
		*n += byte;
	}
	return true;
}

bool hd_lz4_unpack(const uint8_t *bytes, size_t len, uint8_t *out, size_t out_len)
{
	struct lz z = { bytes, bytes + len, out, 0, out_len };

	while (z.at < z.end) {
		const uint8_t token = *z.at++;
		uint64_t n = token >> 4, distance;
		if (!extend(&z, &n) || !literals(&z, n))
			return false;
		if (z.at == z.end)                           /* the last sequence has no copy */
			return z.n == out_len;
		n = token & 15;
		if (!little(&z, 2, &distance) || !extend(&z, &n) || !copy(&z, distance, n + 4))
			return false;
	}
	return false;
}
