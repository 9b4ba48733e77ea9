#include "data/parquet/codes_int.h"

#include <string.h>

#include "base/alloc.h"
#include "base/half.h"
#include "base/le.h"
#include "data/parquet/thrift_int.h"

static size_t left(const struct hd_parquet_bytes *in) { return (size_t)(in->end - in->at); }

static bool varint(struct hd_parquet_bytes *in, uint64_t *v)
{
	struct hd_thrift t = { in->at, in->end, false };

	*v = hd_thrift_varint(&t);
	in->at = t.at;
	return !t.bad;
}

/* Value i of those that are packed in `width` bits each, lowest bit first. */
static uint64_t packed_at(const uint8_t *bytes, uint32_t width, uint64_t i)
{
	const uint64_t bit = i * width;
	uint64_t v = 0;
	uint32_t got = 0;

	for (const uint8_t *at = bytes + bit / 8; got < width; at++) {
		const uint32_t skip = got ? 0 : bit % 8, take = 8 - skip;
		v |= (uint64_t)(*at >> skip) << got;
		got += take;
	}
	return width == 64 ? v : v & (((uint64_t)1 << width) - 1);
}

/* ---- runs and packed groups ---- */

static bool repeat(struct hd_parquet_bytes *in, uint32_t width, uint32_t n, uint32_t *out)
{
	const uint32_t nbytes = (width + 7) / 8;
	uint32_t v = 0;

	if (left(in) < nbytes)
		return false;
	for (uint32_t i = 0; i < nbytes; i++)
		v |= (uint32_t)*in->at++ << 8 * i;
	if (width < 32 && v >> width)
		return false;
	for (uint32_t i = 0; i < n; i++)
		out[i] = v;
	return true;
}

bool hd_parquet_hybrid(struct hd_parquet_bytes *in, uint32_t width, uint32_t n, uint32_t *out)
{
	uint64_t head;

	for (uint32_t done = 0; done < n; ) {
		if (width > 32 || !varint(in, &head) || !(head >> 1))
			return false;
		const uint64_t count = head & 1 ? (head >> 1 > UINT32_MAX ? UINT32_MAX : (head >> 1) * 8) :
			head >> 1;
		const uint32_t take = count < n - done ? (uint32_t)count : n - done;
		if (!(head & 1)) {
			if (!repeat(in, width, take, out + done))
				return false;
		} else {
			/* writers leave out what no value of the last group needs */
			const uint64_t whole = (head >> 1) * width, needed = ((uint64_t)take * width + 7) / 8;
			if (needed > left(in))
				return false;
			for (uint32_t i = 0; i < take; i++)
				out[done + i] = (uint32_t)packed_at(in->at, width, i);
			in->at += whole < left(in) ? whole : left(in);
		}
		done += take;
	}
	return true;
}

/* ---- plain ---- */

static uint32_t bytes_of(const struct hd_parquet_leaf *leaf)
{
	static const uint8_t bytes[HD_PARQUET_TYPES] = { [HD_PARQUET_INT32] = 4, [HD_PARQUET_INT64] = 8,
		[HD_PARQUET_FLOAT] = 4, [HD_PARQUET_DOUBLE] = 8 };

	return leaf->type == HD_PARQUET_FIXED ? leaf->fixed_bytes : bytes[leaf->type];
}

/* A number from its bytes, little end first. */
static struct hd_parquet_value number_of(const struct hd_parquet_leaf *leaf, uint64_t bits)
{
	struct hd_parquet_value v = { .len = 0 };

	if (leaf->type == HD_PARQUET_INT32)
		v.as.whole = leaf->is_unsigned ? (int64_t)(uint32_t)bits : (int32_t)(uint32_t)bits;
	else if (leaf->type == HD_PARQUET_FLOAT)
		v.as.real = (double)hd_f32_of_bits((uint32_t)bits);
	else if (leaf->type == HD_PARQUET_FIXED)
		v.as.real = (double)hd_f32_of_f16((uint16_t)bits);
	else
		memcpy(&v.as, &bits, sizeof bits);           /* INT64, DOUBLE */
	return v;
}

static bool plain_texts(struct hd_parquet_bytes *in, uint32_t n, struct hd_parquet_value *out)
{
	for (uint32_t i = 0; i < n; i++) {
		if (left(in) < 4)
			return false;
		const uint32_t len = hd_get32(in->at);
		in->at += 4;
		if (len > left(in))
			return false;
		out[i] = (struct hd_parquet_value){ .as.text = in->at, .len = len };
		in->at += len;
	}
	return true;
}

bool hd_parquet_plain(struct hd_parquet_bytes *in, const struct hd_parquet_leaf *leaf, uint32_t n,
	struct hd_parquet_value *out)
{
	const uint32_t width = bytes_of(leaf);

	if (leaf->type == HD_PARQUET_BYTES)
		return plain_texts(in, n, out);
	if (leaf->type == HD_PARQUET_BOOLEAN) {
		if (left(in) < ((uint64_t)n + 7) / 8)
			return false;
		for (uint32_t i = 0; i < n; i++)
			out[i] = (struct hd_parquet_value){ .as.whole = in->at[i / 8] >> i % 8 & 1 };
		in->at += ((uint64_t)n + 7) / 8;
		return true;
	}
	if (left(in) < (uint64_t)n * width || width > 8)
		return false;
	for (uint32_t i = 0; i < n; i++, in->at += width) {
		uint64_t bits = 0;
		for (uint32_t b = 0; b < width; b++)
			bits |= (uint64_t)in->at[b] << 8 * b;
		out[i] = number_of(leaf, bits);
	}
	return true;
}

bool hd_parquet_split(struct hd_parquet_bytes *in, const struct hd_parquet_leaf *leaf, uint32_t n,
	struct hd_parquet_value *out)
{
	const uint32_t width = bytes_of(leaf);

	if (!width || width > 8 || left(in) != (uint64_t)n * width)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		uint64_t bits = 0;
		for (uint32_t b = 0; b < width; b++)
			bits |= (uint64_t)in->at[(uint64_t)b * n + i] << 8 * b;
		out[i] = number_of(leaf, bits);
	}
	in->at = in->end;
	return true;
}

/* ---- differences ---- */

struct delta { uint64_t block, miniblocks, count, value; };

static bool delta_head(struct hd_parquet_bytes *in, struct delta *d)
{
	uint64_t first;

	if (!varint(in, &d->block) || !varint(in, &d->miniblocks) || !varint(in, &d->count) || !varint(in,
		&first))
		return false;
	d->value = (uint64_t)hd_zigzag(first);
	return d->block && d->block <= HD_PARQUET_PAGE && d->miniblocks && d->miniblocks <= d->block &&
		d->block % d->miniblocks == 0;
}

/* One miniblock's values, `width` bits each, behind the one that d->value is. */
static bool delta_miniblock(struct hd_parquet_bytes *in, struct delta *d, uint32_t width, uint64_t least,
	bool is_32, uint32_t n, struct hd_parquet_value *out)
{
	const uint64_t each = d->block / d->miniblocks, whole = (each * width + 7) / 8,
		needed = ((uint64_t)n * width + 7) / 8;

	if (width > 64 || needed > left(in))
		return false;
	for (uint32_t i = 0; i < n; i++) {
		d->value += least + (width ? packed_at(in->at, width, i) : 0);
		if (is_32)
			d->value = (uint64_t)(int64_t)(int32_t)(uint32_t)d->value;
		out[i] = (struct hd_parquet_value){ .as.whole = (int64_t)d->value };
	}
	in->at += whole < left(in) ? whole : left(in);
	return true;
}

bool hd_parquet_delta(struct hd_parquet_bytes *in, bool is_32, uint32_t n, struct hd_parquet_value *out)
{
	struct delta d;
	uint64_t least;

	if (!delta_head(in, &d) || d.count != n)
		return false;
	if (n)
		out[0] = (struct hd_parquet_value){ .as.whole = (int64_t)d.value };
	for (uint32_t done = 1; done < n; ) {
		if (!varint(in, &least) || left(in) < d.miniblocks)
			return false;
		const uint8_t *width = in->at;
		in->at += d.miniblocks;
		for (uint64_t m = 0; m < d.miniblocks && done < n; m++) {
			const uint64_t each = d.block / d.miniblocks;
			const uint32_t take = each < n - done ? (uint32_t)each : n - done;
			if (!delta_miniblock(in, &d, width[m], (uint64_t)hd_zigzag(least), is_32, take,
				out + done))
				return false;
			done += take;
		}
	}
	return true;
}

bool hd_parquet_delta_length(struct hd_parquet_bytes *in, uint32_t n, struct hd_parquet_value *out)
{
	if (!hd_parquet_delta(in, true, n, out))
		return false;
	for (uint32_t i = 0; i < n; i++) {
		const int64_t len = out[i].as.whole;
		if (len < 0 || (uint64_t)len > left(in))
			return false;
		out[i] = (struct hd_parquet_value){ .as.text = in->at, .len = (uint32_t)len };
		in->at += len;
	}
	return true;
}

bool hd_parquet_delta_text(struct hd_parquet_bytes *in, uint32_t n, struct hd_parquet_value *out,
	uint8_t **made)
{
	struct hd_parquet_value *suffix = hd_alloc((n ? n : 1) * sizeof *suffix);
	uint64_t total = 0;
	bool good = suffix && hd_parquet_delta(in, true, n, out) && hd_parquet_delta_length(in, n, suffix);

	for (uint32_t i = 0; i < n && good; i++) {
		const int64_t prefix = out[i].as.whole;
		good = prefix >= 0 && (uint64_t)prefix <= (i ? out[i - 1].len : 0);
		if (good)
			out[i].len = (uint32_t)prefix + suffix[i].len;
		total += out[i].len;
		good = good && total <= HD_PARQUET_PAGE_BYTES;
	}
	*made = good ? hd_alloc(total ? total : 1) : NULL;
	uint8_t *at = *made;
	for (uint32_t i = 0; i < n && at; i++) {
		const uint32_t prefix = out[i].len - suffix[i].len;
		if (prefix)
			memcpy(at, out[i - 1].as.text, prefix);
		if (suffix[i].len)
			memcpy(at + prefix, suffix[i].as.text, suffix[i].len);
		out[i].as.text = at;
		at += out[i].len;
	}
	hd_free(suffix);
	return *made != NULL;
}
