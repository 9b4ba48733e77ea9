#include "protocol/passes.h"

#include <assert.h>
#include <string.h>

enum hd_err hd_passes_add_stage(struct hd_passes *passes, uint32_t worker, uint32_t pass, uint32_t stage,
	const struct hd_vrange *range, uint32_t nranges)
{
	uint32_t i = 0;

	if (passes->npasses == HD_VIEW_PASSES || nranges > HD_VIEW_RANGES - passes->nranges)
		return HD_E_NOSPACE;
	while (i < passes->npasses && (passes->pass[i].worker < worker ||
		(passes->pass[i].worker == worker && passes->pass[i].pass < pass)))
		i++;
	uint32_t at = i < passes->npasses ? passes->pass[i].first_range : passes->nranges;
	memmove(passes->pass + i + 1, passes->pass + i, (passes->npasses - i) * sizeof *passes->pass);
	memmove(passes->range + at + nranges, passes->range + at,
		(passes->nranges - at) * sizeof *passes->range);
	memcpy(passes->range + at, range, nranges * sizeof *range);
	passes->pass[i] = (struct hd_pass){ worker, pass, at, nranges, stage };
	passes->npasses++;
	passes->nranges += nranges;
	assert(passes->npasses <= HD_VIEW_PASSES && passes->nranges <= HD_VIEW_RANGES);
	for (i++; i < passes->npasses; i++)
		passes->pass[i].first_range += nranges;
	return HD_OK;
}

enum hd_err hd_passes_add(struct hd_passes *passes, uint32_t worker, uint32_t pass,
	const struct hd_vrange *range, uint32_t nranges)
{
	return hd_passes_add_stage(passes, worker, pass, 0, range, nranges);
}

static enum hd_err add_member(struct hd_passes *passes, const struct hd_view *view, uint32_t worker)
{
	struct hd_vrange range[HD_VIEW_RANKS];
	enum hd_err err = HD_OK;
	uint32_t pass = 0;

	for (uint32_t s = 0; s < hd_view_nstages(view) && !err; s++) {
		uint32_t n = hd_view_stage_ranges(view, worker, s, range);
		if (n)
			err = pass == HD_MAX_PASSES ? HD_E_NOSPACE :
				hd_passes_add_stage(passes, worker, pass++, s, range, n);
	}
	return err;
}

enum hd_err hd_passes_of_view(struct hd_passes *passes, const struct hd_view *view)
{
	enum hd_err err = HD_OK;

	passes->npasses = passes->nranges = 0;
	passes->nstages = view->shape.nstages;
	for (uint32_t i = 0; i < view->nmembers && !err; i++)
		err = add_member(passes, view, view->member[i]);
	return err;
}

enum hd_err hd_passes_of_rest(struct hd_passes *passes, const struct hd_view *view,
	const struct hd_view *rest)
{
	struct hd_vrange range[HD_VIEW_RANKS];
	enum hd_err err = HD_OK;

	passes->npasses = passes->nranges = 0;
	passes->nstages = view->shape.nstages;
	for (uint32_t i = 0; i < rest->nmembers && !err; i++) {
		const uint32_t worker = rest->member[i];
		const uint64_t had = hd_view_stages(view, worker), has = hd_view_stages(rest, worker);
		uint32_t pass = (uint32_t)__builtin_popcountll(had);
		err = add_member(passes, view, worker);
		for (uint64_t more = has & ~had; more && !err; more &= more - 1) {
			const uint32_t s = (uint32_t)__builtin_ctzll(more),
				n = hd_view_stage_ranges(rest, worker, s, range);
			if (n)
				err = pass == HD_MAX_PASSES ? HD_E_NOSPACE :
					hd_passes_add_stage(passes, worker, pass++, s, range, n);
		}
	}
	return err;
}

const struct hd_pass *hd_passes_find(const struct hd_passes *passes, uint32_t worker, uint32_t pass)
{
	for (uint32_t i = 0; i < passes->npasses; i++)
		if (passes->pass[i].worker == worker && passes->pass[i].pass == pass)
			return &passes->pass[i];
	return NULL;
}

/* All ranges of all passes of a stage, sorted by their first. */
static uint32_t sorted(const struct hd_passes *passes, uint32_t stage, struct hd_vrange *out)
{
	uint32_t n = 0;

	for (uint32_t p = 0; p < passes->npasses; p++)
		for (uint32_t i = 0; i < passes->pass[p].nranges && passes->pass[p].stage == stage; i++) {
			const struct hd_vrange *range = &passes->range[passes->pass[p].first_range + i];
			uint32_t j = n++;
			for (; j && out[j - 1].first > range->first; j--)
				out[j] = out[j - 1];
			out[j] = *range;
		}
	return n;
}

static bool tiles(const struct hd_passes *passes, uint32_t nvns, uint32_t stage, uint32_t *vn)
{
	struct hd_vrange range[HD_VIEW_RANGES];
	uint32_t n = sorted(passes, stage, range), next = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (range[i].first != next || range[i].n > nvns - next) {
			*vn = range[i].first < next ? range[i].first : next;
			return false;
		}
		next += range[i].n;
	}
	*vn = next;
	return next == nvns;
}

bool hd_passes_tile(const struct hd_passes *passes, uint32_t nvns, uint32_t *vn)
{
	uint32_t nstages = passes->nstages ? passes->nstages : 1;

	for (uint32_t i = 0; i < passes->npasses; i++)
		if (passes->pass[i].stage >= nstages) {
			*vn = passes->pass[i].nranges ? passes->range[passes->pass[i].first_range].first : 0;
			return false;
		}
	for (uint32_t s = 0; s < nstages; s++)
		if (!tiles(passes, nvns, s, vn))
			return false;
	return true;
}

enum hd_err hd_passes_missing(const struct hd_passes *passes, uint32_t nvns, struct hd_vrange *out,
	uint32_t cap, uint32_t *n)
{
	struct hd_vrange range[HD_VIEW_RANGES];
	uint32_t nranges = sorted(passes, 0, range), next = 0;

	*n = 0;
	for (uint32_t i = 0; i <= nranges; i++) {
		uint32_t first = i < nranges ? range[i].first : nvns;
		if (first > next) {
			if (*n == cap)
				return HD_E_NOSPACE;
			out[(*n)++] = (struct hd_vrange){ next, first - next };
		}
		if (i < nranges && range[i].first + range[i].n > next)
			next = range[i].first + range[i].n;
	}
	return HD_OK;
}

struct root_walk { const struct hd_vrange *range; uint32_t nranges, nvns, cap, n; struct hd_tnode *out; };

/* How many leaves of [first, end) are in the ranges. */
static uint32_t held(const struct root_walk *walk, uint32_t first, uint32_t end)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < walk->nranges && walk->range[i].first < end; i++) {
		uint32_t a = walk->range[i].first, b = a + walk->range[i].n;
		a = a > first ? a : first;
		b = b < end ? b : end;
		n += b > a ? b - a : 0;
	}
	return n;
}

/* Depth is bounded by the height of the tree, 17. */
static enum hd_err descend(struct root_walk *walk, struct hd_tnode node)
{
	uint32_t first, end;

	hd_tree_cover(walk->nvns, node, &first, &end);
	uint32_t here = held(walk, first, end);
	if (!here)
		return HD_OK;
	if (here == end - first) {
		if (walk->n == walk->cap)
			return HD_E_NOSPACE;
		assert(first < end && end <= walk->nvns);
		walk->out[walk->n++] = hd_tree_name(walk->nvns, node);
		return HD_OK;
	}
	enum hd_err err = descend(walk, (struct hd_tnode){ node.level - 1, 2 * node.index });
	struct hd_tnode right = { node.level - 1, 2 * node.index + 1 };
	return err || !hd_tree_exists(walk->nvns, right) ? err : descend(walk, right);
}

enum hd_err hd_ranges_roots(uint32_t nvns, const struct hd_vrange *range, uint32_t nranges,
	struct hd_tnode *out, uint32_t cap, uint32_t *nroots)
{
	struct root_walk walk = { .range = range, .nranges = nranges, .nvns = nvns, .cap = cap, .out = out };
	enum hd_err err = descend(&walk, (struct hd_tnode){ hd_tree_height(nvns), 0 });

	if (!err)
		*nroots = walk.n;
	return err;
}

enum hd_err hd_passes_roots(const struct hd_passes *passes, uint32_t nvns, uint32_t worker,
	struct hd_tnode *out, uint32_t cap,
	uint32_t *first, uint32_t *npasses)
{
	uint32_t total = 0, n = 0;

	first[0] = 0;
	for (uint32_t i = 0; i < passes->npasses; i++) {
		const struct hd_pass *p = &passes->pass[i];
		uint32_t nroots = 0;
		if (p->worker != worker)
			continue;
		if (n == HD_MAX_PASSES)
			return HD_E_NOSPACE;
		enum hd_err err = hd_ranges_roots(nvns, passes->range + p->first_range, p->nranges,
			out + total, cap - total, &nroots);
		if (err)
			return err;
		total += nroots;
		first[++n] = total;
	}
	*npasses = n;
	return HD_OK;
}

/* ---- receive buffers ---- */

/* Roots of each stage's passes of all members but one. */
static enum hd_err count_roots(const struct hd_view *view, uint32_t worker, uint32_t nvns,
	uint32_t of_stage[HD_STAGE_BITS])
{
	struct hd_passes passes;
	struct hd_tnode root[HD_VIEW_ROOTS];
	enum hd_err err = hd_passes_of_view(&passes, view);

	for (uint32_t i = 0; i < passes.npasses && !err; i++) {
		const struct hd_pass *p = &passes.pass[i];
		uint32_t n = 0;
		if (p->worker == worker)
			continue;
		err = hd_ranges_roots(nvns, passes.range + p->first_range, p->nranges, root, HD_VIEW_ROOTS,
			&n);
		of_stage[p->stage] += n;
	}
	return err;
}

enum hd_err hd_view_received(const struct hd_view *view, uint32_t worker, uint32_t nvns,
	const struct hd_layout *layout, const struct hd_stage_buckets *buckets, uint32_t copies,
	uint32_t servers, uint64_t *bytes)
{
	const uint32_t nbuckets = hd_layout_nbuckets(layout), me = hd_view_index(view, worker);
	uint32_t of_stage[HD_STAGE_BITS] = { 0 };
	struct hd_holding held;
	enum hd_err err = count_roots(view, worker, nvns, of_stage);

	*bytes = 0;
	if (err || me == HD_NOBODY)
		return err;
	err = hd_holding_init(&held, nbuckets, NULL);
	if (err)
		return err;
	held.bytes = layout->moved;
	hd_view_holding(&held, view, view->shape.nstages ? buckets : NULL, copies, servers);
	for (uint32_t run = 0; run < hd_layout_nruns(layout); run++) {
		uint64_t makers = view->shape.nstages ? buckets->run_makers[run] : 1, n = 0;
		for (; makers; makers &= makers - 1)
			n += of_stage[__builtin_ctzll(makers)];
		*bytes += held.owner[hd_layout_run(layout, run).bucket] == me ?
			n * hd_layout_run_room(layout, run) : 0;
	}
	hd_holding_finish(&held);
	return HD_OK;
}
