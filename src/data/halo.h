/* halo.h -- which vertices of one interval another one needs: lists, made from edges, as bytes.
 *
 * A prepared graph (data/prepared.h) has them for each ordered pair of intervals, so that under any map of
 * intervals to workers both ends of a link know its rows without talking.
 *
 * 1. The list (I, J), I other than J: ascending, the vertices of I that have an edge, of those given, whose
 *    far end is in J. Empty lists do not exist.
 * 2. A number is stored as its distance from the one before, less one (the first: from the interval's begin),
 *    in bytes of 7 bits, lowest first; bit 7: more follow; none longer than it must be.
 * 3. The lists of an interval stand by J, their bytes one behind the other.
 *
 * Ownership: what is made lies on the heap until hd_halo_free(). Pure. */
#ifndef HD_DATA_HALO_H
#define HD_DATA_HALO_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* Rows of edges: those of vertex v are at[offset[v]] to at[offset[v + 1] - 1], ascending. */
struct hd_edges { const uint64_t *offset; const uint32_t *at; };

/* One list: the interval that needs it, how many numbers, where its bytes begin. */
struct hd_halo_list { uint32_t to, count; uint64_t at; };

/* The lists of all: those of interval I are list[offset[I]] to list[offset[I + 1] - 1]. */
struct hd_halo { const uint64_t *offset; const struct hd_halo_list *list; const uint8_t *bytes; };

/* The lists of one interval, list[].at counted from the first byte of the first; and what making them needs.
 * Begins zeroed. */
struct hd_halo_made {
	struct hd_halo_list *list; uint32_t nlists, lists_cap;
	uint8_t *bytes; uint64_t nbytes; uint32_t bytes_cap;
	struct hd_halo_pair { uint32_t to, vertex; } *pair; uint32_t npairs, pairs_cap;
	uint32_t *order; uint32_t order_cap;
	uint32_t *start; uint32_t start_cap;
};

/* Those of interval `which`, in place of what was made before. `interval` has nintervals + 1 bounds. */
HD_MUST_USE enum hd_err hd_halo_make(const uint64_t *interval, uint32_t nintervals, struct hd_edges edges,
	uint32_t which, struct hd_halo_made *made, struct hd_diag *diag);
void hd_halo_free(struct hd_halo_made *made);              /* takes zeroed ones */

/* The vertices of a list, `count` of them, into `vertex`; `begin`: of its interval. */
void hd_halo_read(const struct hd_halo_list *list, const uint8_t *bytes, uint64_t begin, uint32_t *vertex);

#endif
