/* Several chunks a rank, in groups of virtual nodes (PTD-P, Narayanan et al. 2021).
 *
 * We depart from the paper where p does not divide m: near-equal groups, larger ones first. A short
 * last group, as usual elsewhere, deadlocks for many remainders (p = 5, m = 7, v = 2). */
#include "pipeline/schedule/kind.h"

struct interleaved_entry { uint32_t i, c; };

struct vn_groups { uint32_t n, size, more; };        /* `more` groups of size + 1 come first */

static struct vn_groups groups_of(const struct hd_emit *e)
{
	uint32_t n = e->ask->group ? e->m / e->ask->group : e->m / e->p;

	n = n ? n : 1;
	return (struct vn_groups){ n, e->m / n, e->m % n };
}

/* Entry k of the order of forwards: all of a group in chunk 0, then in chunk 1, ... */
static struct interleaved_entry entry_of(const struct vn_groups *g, uint32_t v, uint32_t k)
{
	uint32_t large = g->more * (g->size + 1) * v, first = 0, size = g->size + 1, at = k;

	if (k >= large) {
		size = g->size;
		at = k - large;
		first = g->more * (g->size + 1);
	}
	uint32_t group = at / (size * v), in = at % (size * v);
	return (struct interleaved_entry){ first + group * size + in % size, in / size };
}

static void forward(struct hd_emit *e, const struct vn_groups *g, uint32_t k)
{
	struct interleaved_entry x = entry_of(g, e->v, k);

	hd_emit(e, HD_INS_F, x.c * e->p + e->r, x.i);
}

static void back(struct hd_emit *e, const struct vn_groups *g, uint32_t k)
{
	struct interleaved_entry x = entry_of(g, e->v, k);

	hd_emit(e, HD_INS_B, (e->v - 1 - x.c) * e->p + e->r, x.i);
}

static void list(struct hd_emit *e)
{
	struct vn_groups g = groups_of(e);
	uint32_t all = e->m * e->v, first = g.size + (g.more > 0);
	uint32_t w = hd_least(2 * (e->p - 1 - e->r) + (e->v - 1) * first, all);

	for (uint32_t k = 0; k < w; k++)
		forward(e, &g, k);
	for (uint32_t k = 0; k < all; k++) {
		if (w + k < all)
			forward(e, &g, w + k);
		back(e, &g, k);
	}
}

static enum hd_err limits(const struct hd_emit *e)
{
	uint32_t n = e->ask->group;

	if (n && (n < e->p || e->m % n))
		return hd_fail(e->diag, HD_E_INVAL,
			"%s: a group has at least p virtual nodes and divides m: group = %u, p = %u, m = %u; "
			"without --group the groups are near-equal, which always works", e->ask->name, n,
			e->p, e->m);
	return HD_OK;
}

const struct hd_schedule_maker hd_make_interleaved = { HD_PLACE_MOD, false, limits, list, NULL };
