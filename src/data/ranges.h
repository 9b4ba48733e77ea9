/* ranges.h -- which bytes are asked of a store in which requests: a pure function of what is wanted.
 *
 * 1. Every wanted byte is in exactly one request; requests rise and do not overlap.
 * 2. No request is longer than `size_bytes`. Wanted ranges with a gap of at most `gap_bytes` between them
 *    share one where 2 allows it; the bytes between are read for nothing and counted (`waste_bytes`).
 * 3. Wanted ranges may touch or overlap: then they share bytes of a request.
 * 4. hd_ranges_put() hands bytes that arrived to all that want them; in any order and pieces each wanted
 *    byte is written the same.
 *
 * Pure: no file, no clock, no allocation. */
#ifndef HD_DATA_RANGES_H
#define HD_DATA_RANGES_H

#include <stddef.h>
#include <stdint.h>

enum { HD_RANGES_DEPTH = 256,             /* requests in flight */
       HD_RANGES_SIZE_MIN = 4 << 10, HD_RANGES_SIZE_MAX = 8 << 20 };
#define HD_RANGES_MEMORY (UINT64_C(256) << 20)

/* How a store is read: depth * size_bytes <= the memory for it, always. */
struct hd_ranges_knobs {
	uint32_t depth;                   /* q: requests in flight, a power of 2 */
	uint32_t size_bytes;              /* b: most of one request, a power of 2 */
	uint32_t gap_bytes;               /* 0..b */
};

/* Wanted: [offset, offset + len) into `into`. */
struct hd_range { uint64_t offset; size_t len; void *into; };

/* A request: [offset, offset + len), and the wanted ranges that it may have bytes of. */
struct hd_request { uint64_t offset; uint64_t len; const struct hd_range *range; uint32_t nranges; };

/* By offset, ties by length and place; in place. */
void hd_ranges_sort(struct hd_range *range, uint32_t nranges);
/* The requests of sorted ranges from (*i, *done) on, at most `cap` of them: the number of requests; 0: all
 * are
 * asked for. *i and *done begin at 0: the first range with bytes still to ask for, and up to which offset all
 * is asked for. */
uint32_t hd_ranges_plan(const struct hd_range *range, uint32_t nranges, const struct hd_ranges_knobs *knobs,
	uint32_t *i, uint64_t *done, struct hd_request *request, uint32_t cap);
/* Bytes of the request that no range wants. */
uint64_t hd_ranges_waste(const struct hd_request *request);
/* `bytes` stand at `offset`, inside the request. */
void hd_ranges_put(const struct hd_request *request, uint64_t offset, const void *bytes, size_t len);
/* The knobs within their limits and `memory_bytes`: powers of 2, the depth gives way. */
struct hd_ranges_knobs hd_ranges_bound(struct hd_ranges_knobs knobs, uint64_t memory_bytes);

#endif
