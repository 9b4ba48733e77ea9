#include "data/halo.h"

#include <string.h>

#include "base/alloc.h"
#include "base/grow.h"

/* The interval that vertex v lies in, not before `from`: far ends of a row ascend. */
static uint32_t interval_of(const uint64_t *interval, uint32_t nintervals, uint32_t from, uint32_t v)
{
	uint32_t low = from, high = nintervals;

	if (v < interval[from + 1])
		return from;
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;
		if (interval[middle] <= v)
			low = middle;
		else
			high = middle;
	}
	return low;
}

static enum hd_err add_pair(struct hd_halo_made *made, uint32_t to, uint32_t vertex, struct hd_diag *diag)
{
	enum hd_err err = hd_grow(&made->pair, &made->pairs_cap, (uint64_t)made->npairs + 1,
		sizeof *made->pair, "rows of halo lists", diag);

	if (!err)
		made->pair[made->npairs++] = (struct hd_halo_pair){ to, vertex };
	return err;
}

static enum hd_err find_pairs(const uint64_t *interval, uint32_t nintervals, struct hd_edges edges,
	uint32_t which, struct hd_halo_made *made, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	made->npairs = 0;
	for (uint64_t v = interval[which]; v < interval[which + 1] && !err; v++) {
		uint32_t at = 0, last = UINT32_MAX;
		for (uint64_t e = edges.offset[v]; e < edges.offset[v + 1] && !err; e++) {
			at = interval_of(interval, nintervals, at, edges.at[e]);
			if (at != which && at != last)
				err = add_pair(made, at, (uint32_t)v, diag);
			last = at;
		}
	}
	return err;
}

/* `order`: the vertices by interval, ascending in each; start[J] ends up where those of J end. */
static enum hd_err order_pairs(uint32_t nintervals, struct hd_halo_made *made, struct hd_diag *diag)
{
	uint32_t sum = 0;
	enum hd_err err = hd_grow(&made->start, &made->start_cap, nintervals, sizeof *made->start,
		"halo lists", diag);

	if (!err)
		err = hd_grow(&made->order, &made->order_cap, (uint64_t)made->npairs + 1,
			sizeof *made->order, "rows of halo lists", diag);
	if (err)
		return err;
	memset(made->start, 0, nintervals * sizeof *made->start);
	for (uint32_t i = 0; i < made->npairs; i++)
		made->start[made->pair[i].to]++;
	for (uint32_t j = 0; j < nintervals; j++) {
		uint32_t n = made->start[j];
		made->start[j] = sum;
		sum += n;
	}
	for (uint32_t i = 0; i < made->npairs; i++)
		made->order[made->start[made->pair[i].to]++] = made->pair[i].vertex;
	return HD_OK;
}

enum { MOST_BYTES = 5 };                  /* of a number of 32 bits, 7 a byte */

static enum hd_err encode(const uint32_t *vertex, uint32_t n, uint64_t begin, struct hd_halo_made *made,
	struct hd_diag *diag)
{
	uint64_t next = begin;
	enum hd_err err = hd_grow(&made->bytes, &made->bytes_cap, made->nbytes + (uint64_t)n * MOST_BYTES, 1,
		"bytes of halo lists", diag);

	for (uint32_t i = 0; i < n && !err; i++) {
		uint64_t distance = vertex[i] - next;
		for (; distance > 0x7f; distance >>= 7)
			made->bytes[made->nbytes++] = (uint8_t)(distance | 0x80);
		made->bytes[made->nbytes++] = (uint8_t)distance;
		next = (uint64_t)vertex[i] + 1;
	}
	return err;
}

enum hd_err hd_halo_make(const uint64_t *interval, uint32_t nintervals, struct hd_edges edges,
	uint32_t which, struct hd_halo_made *made, struct hd_diag *diag)
{
	uint32_t first = 0;
	enum hd_err err = find_pairs(interval, nintervals, edges, which, made, diag);

	made->nlists = 0;
	made->nbytes = 0;
	if (!err)
		err = order_pairs(nintervals, made, diag);
	if (!err)
		err = hd_grow(&made->list, &made->lists_cap, (uint64_t)nintervals + 1, sizeof *made->list,
			"halo lists", diag);
	for (uint32_t j = 0; j < nintervals && !err; j++) {
		uint32_t n = made->start[j] - first;
		if (!n)
			continue;
		made->list[made->nlists++] = (struct hd_halo_list){ j, n, made->nbytes };
		err = encode(made->order + first, n, interval[which], made, diag);
		first += n;
	}
	return err;
}

void hd_halo_free(struct hd_halo_made *made)
{
	hd_free(made->list);
	hd_free(made->bytes);
	hd_free(made->pair);
	hd_free(made->order);
	hd_free(made->start);
	*made = (struct hd_halo_made){ 0 };
}

void hd_halo_read(const struct hd_halo_list *list, const uint8_t *bytes, uint64_t begin, uint32_t *vertex)
{
	const uint8_t *at = bytes + list->at;
	uint64_t next = begin;

	for (uint32_t i = 0; i < list->count; i++) {
		uint64_t distance = 0;
		unsigned shift = 0;
		for (; *at & 0x80; shift += 7)
			distance |= (uint64_t)(*at++ & 0x7f) << shift;
		distance |= (uint64_t)*at++ << shift;
		vertex[i] = (uint32_t)(next + distance);
		next += distance + 1;
	}
}
