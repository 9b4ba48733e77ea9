#include "data/ranges.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static int by_offset(const void *a, const void *b)
{
	const struct hd_range *x = a, *y = b;
	const uintptr_t into_x = (uintptr_t)x->into, into_y = (uintptr_t)y->into;

	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	if (x->len != y->len)
		return x->len < y->len ? -1 : 1;
	return (into_x > into_y) - (into_x < into_y);
}

void hd_ranges_sort(struct hd_range *range, uint32_t nranges)
{
	if (nranges > 1)
		qsort(range, nranges, sizeof *range, by_offset);
}

static uint64_t end_of(const struct hd_range *range) { return range->offset + range->len; }

/* A request begins at the first byte that is wanted and not asked for, and grows over the ranges that follow
 * while the gap and the size allow. */
static struct hd_request next(const struct hd_range *range, uint32_t nranges,
	const struct hd_ranges_knobs *knobs, uint32_t i, uint64_t from)
{
	const uint64_t limit = from + knobs->size_bytes;
	struct hd_request r = { .offset = from, .range = &range[i], .nranges = 0 };
	uint64_t end = from;

	for (; i < nranges; i++) {
		const uint64_t first = range[i].offset > from ? range[i].offset : from;
		if (r.nranges && (first > end + knobs->gap_bytes || first >= limit))
			break;
		if (end_of(&range[i]) > end)
			end = end_of(&range[i]);
		r.nranges++;
	}
	r.len = (end < limit ? end : limit) - from;
	return r;
}

uint32_t hd_ranges_plan(const struct hd_range *range, uint32_t nranges, const struct hd_ranges_knobs *knobs,
	uint32_t *i, uint64_t *done, struct hd_request *request, uint32_t cap)
{
	uint32_t n = 0;

	assert(knobs->size_bytes > 0);
	while (n < cap) {
		while (*i < nranges && (!range[*i].len || end_of(&range[*i]) <= *done))
			(*i)++;
		if (*i == nranges)
			break;
		const uint64_t from = range[*i].offset > *done ? range[*i].offset : *done;
		request[n] = next(range, nranges, knobs, *i, from);
		*done = from + request[n++].len;
	}
	return n;
}

uint64_t hd_ranges_waste(const struct hd_request *r)
{
	uint64_t at = r->offset, waste = 0;
	const uint64_t end = r->offset + r->len;

	for (uint32_t i = 0; i < r->nranges && at < end; i++) {
		const struct hd_range *range = &r->range[i];
		if (range->offset > at)
			waste += (range->offset < end ? range->offset : end) - at;
		if (end_of(range) > at)
			at = end_of(range);
	}
	return waste;
}

void hd_ranges_put(const struct hd_request *r, uint64_t offset, const void *bytes, size_t len)
{
	assert(offset >= r->offset && offset + len <= r->offset + r->len);
	for (uint32_t i = 0; i < r->nranges; i++) {
		const struct hd_range *range = &r->range[i];
		const uint64_t first = range->offset > offset ? range->offset : offset;
		const uint64_t end = end_of(range) < offset + len ? end_of(range) : offset + len;
		if (range->offset >= offset + len)
			break;
		if (first < end)
			memcpy((char *)range->into + (first - range->offset),
				(const char *)bytes + (first - offset), end - first);
	}
}

static uint32_t power_within(uint32_t v, uint32_t low, uint32_t high)
{
	uint32_t power = low;

	while (power < high && power <= v / 2)
		power *= 2;
	return power;
}

struct hd_ranges_knobs hd_ranges_bound(struct hd_ranges_knobs k, uint64_t memory_bytes)
{
	k.size_bytes = power_within(k.size_bytes, HD_RANGES_SIZE_MIN, HD_RANGES_SIZE_MAX);
	k.depth = power_within(k.depth, 1, HD_RANGES_DEPTH);
	while (k.depth > 1 && (uint64_t)k.depth * k.size_bytes > memory_bytes)
		k.depth /= 2;
	while (k.size_bytes > HD_RANGES_SIZE_MIN && (uint64_t)k.depth * k.size_bytes > memory_bytes)
		k.size_bytes /= 2;
	k.gap_bytes = k.gap_bytes < k.size_bytes ? k.gap_bytes : k.size_bytes;
	return k;
}
