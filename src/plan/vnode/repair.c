#include "plan/repair.h"

#include <inttypes.h>

#include "base/checked.h"

#define NOBODY HD_REPAIR_NOBODY

/* Every name of the tree has a slot: level by level, ceil(V / 2^h) of them. */
struct slots { uint32_t nvns, height, first[HD_MAX_LEVELS + 1], n; };

static void slots_make(struct slots *s, uint32_t nvns)
{
	*s = (struct slots){ .nvns = nvns, .height = hd_tree_height(nvns) };
	for (uint32_t h = 0; h <= s->height; h++) {
		s->first[h] = s->n;
		s->n += (uint32_t)(((uint64_t)nvns + (UINT64_C(1) << h) - 1) >> h);
	}
}

static uint32_t slot_of(const struct slots *s, struct hd_tnode node) { return s->first[node.level] + node.index; }

struct making {
	const struct hd_repair_ask *ask;
	struct slots slots;
	uint32_t *holder;                 /* [slots] who has this name for the group at hand */
	uint32_t *again;                  /* [nvns] who computes this leaf again; NOBODY: it is not needed again */
	uint8_t *lost;                    /* [nvns] */
	uint32_t *joins, *serves;         /* [nmembers] chunks that it joins, sums that it serves */
	struct hd_repair_tile *tile;      /* [nvns] of the group at hand */
	uint32_t ntiles;
	struct hd_arena *arena;
	struct hd_diag *diag;
};

/* ---- what may be asked */

static enum hd_err check_member(const struct making *m, uint32_t i)
{
	const struct hd_repair_member *member = &m->ask->member[i];
	int64_t sum;

	if (member->rest_ps < 0 || member->extra_ps[0] != 0)
		return hd_fail(m->diag, HD_E_INVAL, "member %u: rest %" PRId64 " ps, %" PRId64 " ps for no virtual node; times are 0 or more, "
			"and nothing takes 0", i, member->rest_ps, member->extra_ps[0]);
	for (uint32_t v = 1; v <= m->ask->nvns; v++)
		if (member->extra_ps[v] < member->extra_ps[v - 1] || !hd_add_i64(member->rest_ps, member->extra_ps[v], &sum))
			return hd_fail(m->diag, HD_E_INVAL, "member %u: %u virtual nodes more take %" PRId64 " ps, %u take %" PRId64, i, v - 1,
				member->extra_ps[v - 1], v, member->extra_ps[v]);
	return HD_OK;
}

static bool is_member(const struct making *m, uint32_t member) { return member < m->ask->nmembers; }

static enum hd_err check_group(const struct making *m, uint32_t g)
{
	const struct hd_repair_group *group = &m->ask->group[g];

	if (group->nchunks == 0 || (group->owner != NOBODY && !is_member(m, group->owner)))
		return hd_fail(m->diag, HD_E_INVAL, "chunk group %u: %u chunks of member %u, of %u members", g, group->nchunks, group->owner,
			m->ask->nmembers);
	for (uint32_t i = 0; i < group->nheld; i++) {
		struct hd_tnode node = group->held[i].node;
		if (!is_member(m, group->held[i].member) || !hd_tree_exists(m->ask->nvns, node) || !hd_tnode_same(hd_tree_name(m->ask->nvns, node), node))
			return hd_fail(m->diag, HD_E_INVAL, "chunk group %u: member %u of %u has (%u,%u), which is no name in the tree of %u virtual nodes", g,
				group->held[i].member, m->ask->nmembers, node.level, node.index, m->ask->nvns);
	}
	for (uint32_t v = 0; v < m->ask->nvns; v++)
		if (group->coming[v] != NOBODY && !is_member(m, group->coming[v]))
			return hd_fail(m->diag, HD_E_INVAL, "chunk group %u: virtual node %u comes from member %u of %u", g, v, group->coming[v],
				m->ask->nmembers);
	for (uint32_t i = 0; group->chain && i < m->ask->ncopies; i++)
		if (group->chain[i] != NOBODY && !is_member(m, group->chain[i]))
			return hd_fail(m->diag, HD_E_INVAL, "chunk group %u: a copy is at member %u of %u", g, group->chain[i], m->ask->nmembers);
	return HD_OK;
}

static enum hd_err check(const struct making *m)
{
	const struct hd_repair_ask *ask = m->ask;
	enum hd_err err = HD_OK;

	if (ask->nvns == 0 || ask->nvns > HD_MAX_VNS || ask->nmembers == 0 || ask->nmembers > HD_REPAIR_MEMBERS || ask->ncopies > HD_REPAIR_COPIES)
		return hd_fail(m->diag, HD_E_INVAL, "a repair of %u virtual nodes (1 to %d) by %u members (1 to %d), %u copies (up to %d)",
			ask->nvns, HD_MAX_VNS, ask->nmembers, HD_REPAIR_MEMBERS, ask->ncopies, HD_REPAIR_COPIES);
	for (uint32_t i = 0; i < ask->nmembers && !err; i++)
		err = check_member(m, i);
	for (uint32_t g = 0; g < ask->ngroups && !err; g++)
		err = check_group(m, g);
	return err;
}

static bool sum_is_there(const struct making *m, const struct hd_repair_group *group)
{
	for (uint32_t i = 0; i < m->ask->nmembers; i++)
		if (group->has_sum[i])
			return true;
	return false;
}

/* ---- owners */

static uint32_t heir(const struct making *m, const struct hd_repair_group *group)
{
	uint32_t best = NOBODY;

	for (uint32_t i = 0; group->chain && i < m->ask->ncopies; i++)
		if (group->chain[i] != NOBODY)
			return group->chain[i];
	for (uint32_t i = 0; !group->chain && i < m->ask->nmembers; i++)
		if (best == NOBODY || m->joins[i] < m->joins[best])
			best = i;
	return best;
}

/* Owners that live first: what they already join counts when heirs are chosen. */
static void own(const struct making *m, struct hd_repair *r)
{
	uint32_t chunk = 0;

	for (uint32_t g = 0; g < m->ask->ngroups; g++)
		if (m->ask->group[g].owner != NOBODY && !sum_is_there(m, &m->ask->group[g]))
			m->joins[m->ask->group[g].owner] += m->ask->group[g].nchunks;
	for (uint32_t g = 0; g < m->ask->ngroups; g++) {
		const struct hd_repair_group *group = &m->ask->group[g];
		bool there = sum_is_there(m, group);
		for (uint32_t i = 0; i < group->nchunks; i++, chunk++) {
			uint32_t to = there ? NOBODY : group->owner != NOBODY ? group->owner : heir(m, group);
			if (to == NOBODY && !there && !r->state_lost) {
				r->state_lost = true;
				r->lost_chunk = chunk;
			}
			if (to != NOBODY && group->owner == NOBODY)
				m->joins[to]++;
			r->owner[chunk] = to;
		}
	}
}

/* ---- tiles of one group */

static void put_holders(const struct making *m, const struct hd_repair_group *group)
{
	for (uint32_t s = 0; s < m->slots.n; s++)
		m->holder[s] = NOBODY;
	for (uint32_t i = 0; i < group->nheld; i++) {
		uint32_t *at = &m->holder[slot_of(&m->slots, group->held[i].node)], by = group->held[i].member;
		if (*at == NOBODY || by == group->owner || (by < *at && *at != group->owner))
			*at = by;
	}
}

/* Who produces all leaves of a node in the same way, or NOBODY. */
static uint32_t producer_of(const struct making *m, const uint32_t *by, struct hd_tnode node)
{
	uint32_t first, end;

	hd_tree_cover(m->ask->nvns, node, &first, &end);
	for (uint32_t v = first + 1; v < end; v++)
		if (by[v] != by[first])
			return NOBODY;
	return by[first];
}

static struct hd_repair_tile tile_at(const struct making *m, const struct hd_repair_group *group, struct hd_tnode node)
{
	uint32_t held = m->holder[slot_of(&m->slots, node)], coming = producer_of(m, group->coming, node);

	if (held != NOBODY)
		return (struct hd_repair_tile){ node, held, HD_REPAIR_HELD };
	if (coming != NOBODY)
		return (struct hd_repair_tile){ node, coming, HD_REPAIR_COMING };
	return (struct hd_repair_tile){ node, producer_of(m, m->again, node), HD_REPAIR_AGAIN };
}

/* The tree from the top, left before right, with a stack of right children. A fold cannot be taken apart: the first
 * node on the way down that somebody has, or folds wholly, is the tile, whatever else there is below it. */
static void tile_group(struct making *m, const struct hd_repair_group *group)
{
	struct hd_tnode stack[HD_MAX_LEVELS + 1];
	uint32_t depth = 1;

	put_holders(m, group);
	m->ntiles = 0;
	stack[0] = hd_tree_name(m->ask->nvns, (struct hd_tnode){ m->slots.height, 0 });
	while (depth) {
		struct hd_tnode node = stack[--depth];
		struct hd_repair_tile tile = tile_at(m, group, node);
		if (tile.member != NOBODY || node.level == 0) {
			m->tile[m->ntiles++] = tile;
			continue;
		}
		stack[depth++] = hd_tree_name(m->ask->nvns, (struct hd_tnode){ node.level - 1, 2 * node.index + 1 });
		stack[depth++] = hd_tree_name(m->ask->nvns, (struct hd_tnode){ node.level - 1, 2 * node.index });
	}
}

/* ---- lost leaves */

static uint32_t find_lost(struct making *m)
{
	uint32_t nlost = 0;

	for (uint32_t g = 0; g < m->ask->ngroups; g++) {
		if (sum_is_there(m, &m->ask->group[g]))
			continue;
		tile_group(m, &m->ask->group[g]);
		for (uint32_t i = 0; i < m->ntiles; i++)
			if (m->tile[i].member == NOBODY)
				m->lost[m->tile[i].node.index] = 1;
	}
	for (uint32_t v = 0; v < m->ask->nvns; v++)
		nlost += m->lost[v];
	return nlost;
}

/* The most of nlost that a member finishes by tau. */
static uint32_t most_by(const struct hd_repair_member *member, uint32_t nlost, int64_t tau)
{
	uint32_t low = 0, high = nlost;

	while (low < high) {
		uint32_t mid = high - (high - low) / 2;
		if (member->rest_ps + member->extra_ps[mid] <= tau)
			low = mid;
		else
			high = mid - 1;
	}
	return low;
}

static bool enough_by(const struct hd_repair_ask *ask, uint32_t nlost, int64_t tau)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < ask->nmembers; i++)
		sum += most_by(&ask->member[i], nlost, tau);
	return sum >= nlost;
}

static int64_t finish_of(const struct hd_repair_member *member, uint32_t n) { return member->rest_ps + member->extra_ps[n]; }

/* Rule 4. Times are whole picoseconds, so bisecting over all of them ends at one that somebody has. */
static void split_lost(const struct making *m, uint32_t nlost, uint32_t *share, int64_t *finish_ps)
{
	const struct hd_repair_ask *ask = m->ask;
	int64_t low = 0, high = 0;
	uint64_t surplus = 0;

	for (uint32_t i = 0; i < ask->nmembers; i++)
		high = finish_of(&ask->member[i], nlost) > high ? finish_of(&ask->member[i], nlost) : high;
	while (low < high) {
		int64_t mid = low + (high - low) / 2;
		if (enough_by(ask, nlost, mid))
			high = mid;
		else
			low = mid + 1;
	}
	for (uint32_t i = 0; i < ask->nmembers; i++)
		surplus += share[i] = most_by(&ask->member[i], nlost, high);
	for (surplus -= nlost; surplus; surplus--) {
		uint32_t latest = NOBODY;
		for (uint32_t i = 0; i < ask->nmembers; i++)
			if (share[i] && (latest == NOBODY || finish_of(&ask->member[i], share[i]) >= finish_of(&ask->member[latest], share[latest])))
				latest = i;
		share[latest]--;
	}
	*finish_ps = 0;
	for (uint32_t i = 0; i < ask->nmembers; i++)
		*finish_ps = finish_of(&ask->member[i], share[i]) > *finish_ps ? finish_of(&ask->member[i], share[i]) : *finish_ps;
}

static enum hd_err assign_lost(struct making *m, struct hd_repair *r)
{
	uint32_t nlost = find_lost(m), *share = hd_arena_take(m->arena, m->ask->nmembers, sizeof *share), to = 0, i = 0;

	r->again = hd_arena_take(m->arena, nlost, sizeof *r->again);
	if (!share || (nlost && !r->again))
		return hd_fail(m->diag, HD_E_NOMEM, "no memory to share out %u lost virtual nodes", nlost);
	split_lost(m, nlost, share, &r->finish_ps);
	for (uint32_t v = 0; v < m->ask->nvns; v++) {
		if (!m->lost[v])
			continue;
		while (share[to] == 0)
			to++;
		share[to]--;
		m->again[v] = to;
		r->again[i++] = (struct hd_repair_again){ v, to };
	}
	r->nagain = nlost;
	return HD_OK;
}

/* ---- what each group is joined of, or fetched from */

static enum hd_err put_tiles(struct making *m, struct hd_repair *r)
{
	uint32_t most = 0, n = 0;

	r->first_tile = hd_arena_take(m->arena, m->ask->ngroups + 1, sizeof *r->first_tile);
	for (int pass = 0; pass < 2 && r->first_tile; pass++) {
		n = 0;
		for (uint32_t g = 0; g < m->ask->ngroups; g++) {
			r->first_tile[g] = n;
			m->ntiles = 0;
			if (!sum_is_there(m, &m->ask->group[g]))
				tile_group(m, &m->ask->group[g]);
			for (uint32_t i = 0; pass && i < m->ntiles; i++)
				r->tile[n + i] = m->tile[i];
			n += m->ntiles;
		}
		r->first_tile[m->ask->ngroups] = most = n;
		if (!pass)
			r->tile = hd_arena_take(m->arena, most, sizeof *r->tile);
		if (most && !r->tile)
			break;
	}
	return r->first_tile && (!most || r->tile) ? HD_OK : hd_fail(m->diag, HD_E_NOMEM, "no memory for the tiles of a repair");
}

static uint32_t holder_of_sum(const struct making *m, const struct hd_repair_group *group)
{
	uint32_t best = NOBODY;

	for (uint32_t i = 0; i < m->ask->nmembers; i++)
		if (group->has_sum[i] && (best == NOBODY || m->serves[i] < m->serves[best]))
			best = i;
	return best;
}

static enum hd_err put_fetches(const struct making *m, struct hd_repair *r)
{
	uint32_t chunk = 0;
	size_t n = 0;

	for (uint32_t g = 0; g < m->ask->ngroups; g++)
		for (uint32_t i = 0; sum_is_there(m, &m->ask->group[g]) && i < m->ask->nmembers; i++)
			n += m->ask->group[g].has_sum[i] ? 0 : m->ask->group[g].nchunks;
	r->fetch = hd_arena_take(m->arena, n, sizeof *r->fetch);
	if (n > UINT32_MAX || (n && !r->fetch))
		return hd_fail(m->diag, HD_E_NOMEM, "no memory for %zu fetches", n);
	for (uint32_t g = 0; g < m->ask->ngroups; g++) {
		const struct hd_repair_group *group = &m->ask->group[g];
		bool there = sum_is_there(m, group);
		for (uint32_t c = 0; c < group->nchunks; c++, chunk++)
			for (uint32_t to = 0; there && to < m->ask->nmembers; to++) {
				if (group->has_sum[to])
					continue;
				uint32_t from = holder_of_sum(m, group);
				m->serves[from]++;
				r->fetch[r->nfetches++] = (struct hd_repair_fetch){ chunk, to, from };
			}
	}
	return HD_OK;
}

static enum hd_err take(struct making *m, struct hd_repair *r)
{
	const struct hd_repair_ask *ask = m->ask;
	uint64_t nchunks = 0;

	for (uint32_t g = 0; g < ask->ngroups; g++)
		nchunks += ask->group[g].nchunks;
	slots_make(&m->slots, ask->nvns);
	m->holder = hd_arena_take(m->arena, m->slots.n, sizeof *m->holder);
	m->again = hd_arena_take(m->arena, ask->nvns, sizeof *m->again);
	m->lost = hd_arena_take(m->arena, ask->nvns, sizeof *m->lost);
	m->tile = hd_arena_take(m->arena, ask->nvns, sizeof *m->tile);
	m->joins = hd_arena_take(m->arena, ask->nmembers, sizeof *m->joins);
	m->serves = hd_arena_take(m->arena, ask->nmembers, sizeof *m->serves);
	r->owner = nchunks <= UINT32_MAX ? hd_arena_take(m->arena, nchunks, sizeof *r->owner) : NULL;
	if (!m->holder || !m->again || !m->lost || !m->tile || !m->joins || !m->serves || (nchunks && !r->owner))
		return hd_fail(m->diag, HD_E_NOMEM, "no memory for a repair of %u virtual nodes and %" PRIu64 " chunks", ask->nvns, nchunks);
	r->nchunks = (uint32_t)nchunks;
	for (uint32_t v = 0; v < ask->nvns; v++)
		m->again[v] = NOBODY;
	return HD_OK;
}

enum hd_err hd_repair_make(struct hd_repair *repair, const struct hd_repair_ask *ask, struct hd_arena *arena, struct hd_diag *diag)
{
	struct making m = { .ask = ask, .arena = arena, .diag = diag };
	struct hd_repair made = { 0 };
	enum hd_err err = check(&m);

	err = err ? err : take(&m, &made);
	if (err)
		return err;
	own(&m, &made);
	if (made.state_lost) {
		*repair = (struct hd_repair){ .state_lost = true, .lost_chunk = made.lost_chunk };
		return HD_OK;
	}
	err = assign_lost(&m, &made);
	err = err ? err : put_tiles(&m, &made);
	err = err ? err : put_fetches(&m, &made);
	if (!err)
		*repair = made;
	return err;
}

void hd_repair_print(const struct hd_repair *repair, struct hd_text *text)
{
	uint32_t njoined = 0;

	if (repair->state_lost) {
		hd_text_addf(text, "no copy of chunk %u is left: the newest checkpoint", repair->lost_chunk);
		return;
	}
	for (uint32_t c = 0; c < repair->nchunks; c++)
		njoined += repair->owner[c] != NOBODY;
	hd_text_addf(text, "%u virtual nodes again, %u of %u chunks joined, %u sums fetched, computed by %.3f ms", repair->nagain, njoined, repair->nchunks,
		repair->nfetches, (double)repair->finish_ps * 1e-9);
}
