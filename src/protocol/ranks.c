#include "protocol/ranks.h"

#include <assert.h>
#include <string.h>

/* The stages of a place, as a mask. */
static uint64_t stages_at(const struct hd_view_shape *shape, uint32_t place)
{
	uint64_t stages = 0;

	for (uint32_t s = 0; s < shape->nstages; s++)
		stages |= (uint64_t)(shape->place[s] <= place && place < shape->place[s] +
			hd_view_copies(shape, s)) << s;
	return stages;
}

void hd_lacks_make(struct hd_lacks *lacks, const struct hd_view_shape *shape,
	const struct hd_stage_buckets *buckets, const uint64_t *bytes, const uint64_t *held,
	uint32_t nmembers)
{
	assert(nmembers <= HD_MAX_MEMBERS && shape->nstages == buckets->nstages);
	memset(lacks, 0, sizeof *lacks);
	for (uint32_t w = 0; w < shape->width; w++) {
		const uint64_t stages = stages_at(shape, w) | (buckets->shadows && shape->width > 1 &&
			!hd_view_has_copies(shape) ?
			stages_at(shape, (w + 1) % shape->width) : 0);
		for (uint32_t b = 0; b < buckets->n && !buckets->whole; b++)
			for (uint32_t m = 0; m < nmembers && buckets->at[b].readers & stages; m++)
				lacks->at[m][w] += held[b] >> m & 1 ? 0 : bytes[b];
	}
}

uint64_t hd_view_moves(const struct hd_view *view, const struct hd_stage_buckets *buckets,
	const uint64_t *bytes, const uint64_t *held, uint64_t *members)
{
	uint64_t sum = 0;

	*members = 0;
	for (uint32_t m = 0; m < view->nmembers && view->shape.nstages && !buckets->whole; m++) {
		const uint64_t stages = hd_view_kept(view, buckets, view->member[m]);
		for (uint32_t b = 0; b < buckets->n; b++)
			if (buckets->at[b].readers & stages && !(held[b] >> m & 1)) {
				sum += bytes[b];
				*members |= UINT64_C(1) << m;
			}
	}
	return sum;
}

/* ---- the transportation problem ---- */

/* Nodes: members, then places, then one place more, at which devices that are left over stand for nothing.
 * flow[m][w]: devices of m at w. */
enum { PLACES = HD_STAGE_BITS + 1, NODES = HD_MAX_MEMBERS + PLACES };
struct rank_flow {
	const struct hd_lacks *lacks;
	uint32_t nmembers, nplaces;       /* with the one more */
	uint32_t flow[HD_MAX_MEMBERS][PLACES];
	uint32_t left[HD_MAX_MEMBERS];    /* devices that have no place yet */
	uint32_t first, spare;            /* the first member with devices: so many may be left over */
	uint32_t open[PLACES];            /* devices that a place still takes */
	/* of a search: the least cost of a path that ends here; the node before */
	int64_t cost[NODES];
	uint32_t from[NODES];
};

static int64_t price(const struct rank_flow *n, uint32_t m, uint32_t w)
{
	return w + 1 < n->nplaces ? (int64_t)n->lacks->at[m][w] : 0;
}

static void start(struct rank_flow *n)
{
	for (uint32_t i = 0; i < n->nmembers + n->nplaces; i++) {
		n->cost[i] = INT64_MAX;
		n->from[i] = HD_NOBODY;
	}
}

static bool shorter(struct rank_flow *n, uint32_t node, uint32_t by, int64_t cost)
{
	if (n->cost[by] == INT64_MAX || n->cost[by] + cost >= n->cost[node])
		return false;
	n->cost[node] = n->cost[by] + cost;
	n->from[node] = by;
	return true;
}

/* Bellman-Ford from the nodes whose cost is 0. Residual arcs: a member to each place, and back along flow.
 * The flow is of least cost at any time, so no cycle has a negative cost. */
static void search(struct rank_flow *n)
{
	for (bool any = true; any;) {
		any = false;
		for (uint32_t m = 0; m < n->nmembers; m++)
			for (uint32_t w = 0; w < n->nplaces; w++) {
				if (m != n->first || w + 1 < n->nplaces || n->flow[m][w] < n->spare)
					any |= shorter(n, n->nmembers + w, m, price(n, m, w));
				if (n->flow[m][w])
					any |= shorter(n, m, n->nmembers + w, -price(n, m, w));
			}
	}
}

/* One device along the path that ends at a node; the node at which it begins. */
static uint32_t push(struct rank_flow *n, uint32_t at)
{
	for (uint32_t by; (by = n->from[at]) != HD_NOBODY; at = by) {
		assert((by < n->nmembers) != (at < n->nmembers));
		if (by < n->nmembers)
			n->flow[by][at - n->nmembers]++;
		else
			n->flow[at][by - n->nmembers]--;
	}
	return at;
}

/* One device more gets a place, by the shortest path from any of members [0, end) that has none. A member
 * that has a device at a place keeps as many. */
static void augment(struct rank_flow *n, uint32_t end)
{
	uint32_t best = HD_NOBODY;

	start(n);
	for (uint32_t m = 0; m < end; m++)
		if (n->left[m])
			n->cost[m] = 0;
	search(n);
	for (uint32_t w = 0; w < n->nplaces; w++)
		if (n->open[w] && (best == HD_NOBODY ||
			n->cost[n->nmembers + w] < n->cost[n->nmembers + best]))
			best = w;
	assert(best != HD_NOBODY);
	n->left[push(n, n->nmembers + best)]--;
	n->open[best]--;
}

/* The lowest member of which a device can be at w at the same cost: a cycle through w has the cost 0. The
 * device is settled, and no part of the flow any more. */
static uint32_t settle(struct rank_flow *n, uint32_t w)
{
	uint32_t m = 0;

	start(n);
	n->cost[n->nmembers + w] = 0;
	search(n);
	while (m < n->nmembers && (n->cost[m] == INT64_MAX || n->cost[m] + price(n, m, w)))
		m++;
	assert(m < n->nmembers);
	push(n, m);
	return m;
}

void hd_ranks_settle(struct hd_view *view, const uint32_t *nranks, const struct hd_lacks *lacks)
{
	const uint32_t width = view->shape.width;
	struct rank_flow n = { .lacks = lacks, .nmembers = view->nmembers, .nplaces = width + 1 };

	assert(width && width <= HD_STAGE_BITS && view->nranks % width == 0);
	while (!nranks[n.first])
		n.first++;
	memcpy(n.left, nranks, n.nmembers * sizeof *n.left);
	for (uint32_t w = 0; w < width; w++)
		n.open[w] = view->nranks / width;
	for (uint32_t r = 0; r < view->nranks; r++)
		augment(&n, r ? n.nmembers : n.first + 1);        /* rule 1 */
	n.spare = nranks[n.first] - 1;
	assert(n.left[n.first] <= n.spare);
	for (uint32_t m = 0; m < n.nmembers; m++)
		n.flow[m][width] = n.left[m];
	for (uint32_t r = 0; r < view->nranks; r++)
		view->rank[r].worker = view->member[settle(&n, r % width)];
}

/* ---- rule 5 ---- */

struct rank_followers {
	uint32_t nstages, holders[HD_STAGE_BITS], stage[HD_MAX_MEMBERS];
	uint64_t left;                    /* members that follow nothing yet */
	uint64_t lacks[HD_MAX_MEMBERS][HD_STAGE_BITS];
};

/* The bytes of each stage that a member lacks. */
static void weigh(struct rank_followers *f, uint32_t m, const struct hd_stage_buckets *buckets,
	const uint64_t *bytes, const uint64_t *held)
{
	for (uint32_t b = 0; b < buckets->n && held; b++)
		for (uint64_t of = held[b] >> m & 1 ? 0 : buckets->at[b].readers; of; of &= of - 1)
			f->lacks[m][__builtin_ctzll(of)] += bytes[b];
}

/* The next follower gets its stage. */
static void take_next(struct rank_followers *f)
{
	uint32_t fewest = UINT32_MAX, member = 0, stage = HD_NOBODY;

	for (uint32_t s = 0; s < f->nstages; s++)
		fewest = f->holders[s] < fewest ? f->holders[s] : fewest;
	for (uint64_t left = f->left; left; left &= left - 1) {
		const uint32_t m = (uint32_t)__builtin_ctzll(left);
		for (uint32_t s = 0; s < f->nstages; s++)
			if (f->holders[s] == fewest && (stage == HD_NOBODY ||
				f->lacks[m][s] < f->lacks[member][stage])) {
				member = m;
				stage = s;
			}
	}
	f->stage[member] = stage;
	f->holders[stage]++;
	f->left &= ~(UINT64_C(1) << member);
}

void hd_ranks_follow(struct hd_view *view, const struct hd_stage_buckets *buckets, const uint64_t *bytes,
	const uint64_t *held, uint64_t going)
{
	struct rank_followers f = { .nstages = view->shape.nstages, .left = hd_members_all(view->nmembers) &
		~going };

	view->nfollows = 0;
	if (!buckets->follows || buckets->whole)
		return;
	for (uint32_t r = 0; r < view->nranks; r++)
		f.left &= ~(UINT64_C(1) << hd_view_index(view, view->rank[r].worker));
	const uint64_t all = f.left;
	if (!all || (uint32_t)__builtin_popcountll(all) > HD_VIEW_RANKS - view->nranks)
		return;
	for (uint32_t s = 0; s < f.nstages; s++)
		f.holders[s] = (uint32_t)__builtin_popcountll(hd_view_keepers(view, buckets, s));
	for (uint32_t m = 0; m < view->nmembers; m++)
		if (all >> m & 1)
			weigh(&f, m, buckets, bytes, held);
	while (f.left)
		take_next(&f);
	for (uint32_t m = 0; m < view->nmembers; m++)
		if (all >> m & 1)
			view->rank[view->nranks + view->nfollows++] = (struct hd_vrank){ view->member[m],
				HD_FOLLOWS | f.stage[m] };
}
