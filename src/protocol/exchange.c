#include "protocol/exchange.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bits.h"
#include "plan/collective.h"

static bool get(const uint64_t *bits, uint32_t i) { return bits[i / 64] >> i % 64 & 1; }
static void set(uint64_t *bits, uint32_t i) { bits[i / 64] |= UINT64_C(1) << i % 64; }
static void clear(uint64_t *bits, uint32_t n) { memset(bits, 0, (n + 63) / 64 * sizeof *bits); }
static uint32_t words_of(uint32_t n) { return (n + 63) / 64; }

enum hd_err hd_exchange_init(struct hd_exchange *x, uint32_t nvns, uint32_t nbuckets, uint32_t copies,
	struct hd_diag *diag)
{
	*x = (struct hd_exchange){ .nvns = nvns, .nbuckets = nbuckets, .copies = copies };
	if (nvns < 1 || nvns > HD_MAX_VNS || nbuckets < 1 || nbuckets > HD_MAX_BUCKETS)
		return hd_fail(diag, HD_E_INVAL, "%u virtual nodes and %u buckets; at most %d and %d", nvns,
			nbuckets, HD_MAX_VNS, HD_MAX_BUCKETS);
	const struct { uint64_t **at; uint32_t n; } rows[] = {
		{ &x->sum, words_of(nbuckets) }, { &x->folding, words_of(nbuckets) }, { &x->norm, words_of(nbuckets) },
		{ &x->parm, words_of(nbuckets) }, { &x->squared, words_of(nbuckets) },
		{ &x->ratio, words_of(nbuckets) }, { &x->measured, words_of(nbuckets) },
		{ &x->have, nbuckets }, { &x->chain, nbuckets }, { &x->parm_have, nbuckets },
		{ &x->kin, nbuckets },
	};
	x->left = hd_alloc(nbuckets * sizeof *x->left);
	bool whole = x->left && !hd_holding_init(&x->held, nbuckets, NULL);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		*rows[i].at = hd_alloc(rows[i].n * sizeof **rows[i].at);
		if (*rows[i].at)
			memset(*rows[i].at, 0, rows[i].n * sizeof **rows[i].at);
		else
			whole = false;
	}
	if (!whole) {
		hd_exchange_finish(x);
		return hd_fail(diag, HD_E_NOMEM, "no memory for the exchange of %u buckets", nbuckets);
	}
	return HD_OK;
}

void hd_exchange_stages(struct hd_exchange *x, const struct hd_stage_buckets *buckets)
{
	assert(!buckets || buckets->n == x->nbuckets);
	x->buckets = buckets;
}

void hd_exchange_finish(struct hd_exchange *x)
{
	hd_free(x->sum);
	hd_free(x->folding);
	hd_free(x->have);
	hd_free(x->left);
	hd_free(x->root);
	hd_free(x->norm);
	hd_free(x->parm);
	hd_free(x->chain);
	hd_free(x->parm_have);
	hd_free(x->squared);
	hd_free(x->ratio);
	hd_free(x->measured);
	hd_free(x->kin);
	hd_holding_finish(&x->held);
	*x = (struct hd_exchange){ 0 };
}

/* Stages whose passes have partial sums of a bucket. */
static uint64_t makers_of(const struct hd_exchange *x, uint32_t bucket)
{
	return x->buckets ? x->buckets->at[bucket].makers : 1;
}

static enum hd_err count_roots(struct hd_exchange *x, struct hd_diag *diag)
{
	struct hd_tnode roots[HD_VIEW_ROOTS];

	x->nroots = 0;
	for (uint32_t i = 0; i < x->passes.npasses; i++) {
		const struct hd_pass *p = &x->passes.pass[i];
		uint32_t n = 0;
		x->first_root[i] = x->nroots;
		if (hd_ranges_roots(x->nvns, x->passes.range + p->first_range, p->nranges, roots,
			HD_VIEW_ROOTS, &n))
			return hd_fail(diag, HD_E_BADPLAN, "worker %u has more than %d roots in a step",
				p->worker, HD_VIEW_ROOTS);
		x->nroots += n;
	}
	x->first_root[x->passes.npasses] = x->nroots;
	memset(x->of_stage, 0, sizeof x->of_stage);
	for (uint32_t i = 0; i < x->passes.npasses; i++)
		x->of_stage[x->passes.pass[i].stage] += x->first_root[i + 1] - x->first_root[i];
	x->words = words_of(x->nroots);
	return HD_OK;
}

static enum hd_err take_roots(struct hd_exchange *x, struct hd_diag *diag)
{
	if (x->words > x->words_cap) {
		hd_free(x->root);
		x->words_cap = 0;
		x->root = hd_alloc((size_t)x->nbuckets * x->words * sizeof *x->root);
		if (!x->root)
			return hd_fail(diag, HD_E_NOMEM, "no memory for the roots of %u buckets",
				x->nbuckets);
		x->words_cap = x->words;
	}
	for (size_t i = 0; i < (size_t)x->nbuckets * x->words; i++)
		x->root[i] = 0;
	for (uint32_t b = 0; b < x->nbuckets; b++) {
		x->left[b] = 0;
		for (uint64_t makers = makers_of(x, b); makers; makers &= makers - 1)
			x->left[b] += x->of_stage[__builtin_ctzll(makers)];
	}
	return HD_OK;
}

static enum hd_err start(struct hd_exchange *x, const struct hd_view *view, uint32_t worker, uint64_t step,
	const struct hd_passes *passes,
	struct hd_diag *diag)
{
	uint32_t me = hd_view_index(view, worker);

	if (me == HD_NOBODY)
		return hd_fail(diag, HD_E_BADPLAN, "worker %u is no member of view %u", worker, view->epoch);
	if (view->shape.nstages && (!x->buckets || x->buckets->nstages != view->shape.nstages))
		return hd_fail(diag, HD_E_BADPLAN, "view %u has %u stages, and the job %u", view->epoch,
			view->shape.nstages, x->buckets ? x->buckets->nstages : 1);
	for (uint32_t i = 0; i < passes->npasses; i++)
		if (passes->pass[i].stage >= hd_view_nstages(view))
			return hd_fail(diag, HD_E_BADPLAN, "a pass of worker %u is of stage %u of %u",
				passes->pass[i].worker, passes->pass[i].stage, hd_view_nstages(view));
	x->me = me;
	x->nmembers = view->nmembers;
	x->stages = hd_view_stages(view, worker);
	x->step = step;
	x->passes = *passes;
	x->fetchers = x->done = 0;
	x->paired = x->again = false;
	clear(x->folding, x->nbuckets);
	x->nleaves = 0;
	memset(x->leaf, 0, sizeof x->leaf);
	x->nnorms = 0;
	clear(x->norm, x->nbuckets);
	clear(x->ratio, x->nbuckets);
	hd_view_holding(&x->held, view, x->buckets, x->copies, x->servers);
	enum hd_err err = count_roots(x, diag);
	return err ? err : take_roots(x, diag);
}

static enum hd_err untiled(const struct hd_passes *passes, uint32_t nvns, uint64_t step, struct hd_diag *diag)
{
	uint32_t vn = 0;

	if (hd_passes_tile(passes, nvns, &vn))
		return HD_OK;
	return hd_fail(diag, HD_E_BADPLAN, "step %llu: virtual node %u is not computed exactly once",
		(unsigned long long)step, vn);
}

static void forget(struct hd_exchange *x)
{
	x->table = false;
	x->nsums = 0;
	clear(x->sum, x->nbuckets);
	clear(x->squared, x->nbuckets);
	x->nparms = 0;
	clear(x->parm, x->nbuckets);
	clear(x->measured, x->nbuckets);
}

static uint64_t bit(uint32_t member) { return UINT64_C(1) << member; }

void hd_line_make(struct hd_sum_line *l, uint32_t owner, uint64_t have, uint64_t chain, uint64_t spare,
	uint32_t nmembers)
{
	*l = (struct hd_sum_line){ .had = have ? have : bit(owner) };
	l->members = l->had | chain;
	l->all = l->members == hd_members_all(nmembers);
	const uint64_t parts[] = { l->had, chain & ~l->had & ~spare, chain & ~l->had & spare };
	for (uint32_t part = 0; part < 3; part++) {
		for (uint32_t i = 0; i < nmembers; i++) {
			uint32_t m = (owner + i) % nmembers;
			if (parts[part] >> m & 1)
				l->at[l->n++] = m;
		}
		l->nhad = part ? l->nhad : l->n;
	}
	assert(l->n && l->n <= nmembers);
}

uint32_t hd_line_source(const struct hd_sum_line *l, uint32_t bucket)
{
	return l->all ? hd_members_nth(l->had, bucket % l->nhad) : l->at[0];
}

uint64_t hd_line_sum_to(const struct hd_sum_line *l, uint32_t bucket, uint32_t member)
{
	if (l->all)
		return hd_line_source(l, bucket) == member ? l->members & ~l->had : 0;
	for (uint32_t i = l->nhad - 1; i + 1 < l->n; i++)
		if (l->at[i] == member)
			return bit(l->at[i + 1]);
	return 0;
}

/* What is here counts only where this member needs it. One that has sealed the step needs nothing. */
static void count_due(struct hd_exchange *x)
{
	struct hd_sum_line l;

	x->joint = hd_holding_kin(x->kin, x->buckets, x->chain, x->nbuckets);
	x->due_sums = x->due_norms = x->due_parms = x->due_ratios = 0;
	for (uint32_t b = 0; b < x->nbuckets && !(x->done >> x->me & 1); b++) {
		hd_exchange_line(x, b, &l);
		bool mine = l.members >> x->me & 1;
		x->due_sums += mine && !get(x->sum, b);
		x->due_norms += !mine;
		x->due_ratios += x->kin[b] >> x->me & 1;
		x->due_parms += x->held.apart && x->held.param[b] >> x->me & 1 && !get(x->parm, b);
	}
}

/* ---- pairs ---- */

uint32_t hd_pair_children(uint32_t member, uint32_t owner, uint32_t n)
{
	return member == owner ? hd_floor_log2(n) : (uint32_t)__builtin_ctz(member ^ owner);
}

/* Rule 11. A pass is one member's: indices are alike. */
static bool has_pairs(const struct hd_exchange *x, const struct hd_view *view)
{
	uint32_t first[HD_MAX_MEMBERS], end[HD_MAX_MEMBERS], n = view->nmembers;

	if (!x->pairs || x->copies || x->buckets || x->held.partial || n < 2 || !hd_is_pow2(n) ||
		x->passes.npasses != n)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		const struct hd_pass *p = &x->passes.pass[i];
		if (p->worker != view->member[i] || p->nranges != 1)
			return false;
		first[i] = x->passes.range[p->first_range].first;
		end[i] = first[i] + x->passes.range[p->first_range].n;
	}
	return hd_collective_aligned(x->nvns, first, end, n);
}

/* What this member adds of a bucket: its own, and one of each child. */
static void pair_up(struct hd_exchange *x, const struct hd_view *view)
{
	x->paired = has_pairs(x, view);
	for (uint32_t b = 0; b < x->nbuckets && x->paired; b++)
		x->left[b] = 1 + hd_pair_children(x->me, x->held.owner[b], x->nmembers);
}

/* Do partial sums of that worker come here? */
static bool comes_here(const struct hd_exchange *x, uint32_t worker, uint32_t bucket)
{
	if (!x->paired)
		return hd_exchange_source(x, bucket) == x->me;
	for (uint32_t i = 0; i < x->nmembers; i++)
		if (x->passes.pass[i].worker == worker)
			return i == x->me || hd_pair_parent(i, x->held.owner[bucket]) == x->me;
	return false;
}

uint32_t hd_exchange_root_to(const struct hd_exchange *x, uint32_t bucket)
{
	return x->paired ? hd_pair_parent(x->me, x->held.owner[bucket]) : hd_exchange_source(x, bucket);
}

bool hd_exchange_combine(struct hd_exchange *x, uint32_t bucket)
{
	if (!x->paired || bucket >= x->nbuckets || x->held.owner[bucket] == x->me || x->left[bucket] ||
		get(x->folding, bucket))
		return false;
	set(x->folding, bucket);
	return true;
}

enum hd_err hd_exchange_begin(struct hd_exchange *x, const struct hd_view *view, uint32_t worker,
	uint64_t step, const struct hd_passes *passes,
	const uint64_t *slots, struct hd_diag *diag)
{
	enum hd_err err = untiled(passes, x->nvns, step, diag);

	if (!err)
		err = start(x, view, worker, step, passes, diag);
	if (err)
		return err;
	forget(x);
	x->table_have = 0;
	memset(x->have, 0, x->nbuckets * sizeof *x->have);
	memset(x->parm_have, 0, x->nbuckets * sizeof *x->parm_have);
	memcpy(x->chain, x->held.slot, x->nbuckets * sizeof *x->chain);
	for (uint32_t b = 0; b < x->nbuckets && x->held.partial; b++)
		x->fetchers |= x->chain[b] & ~slots[b];
	pair_up(x, view);
	count_due(x);
	return HD_OK;
}

/* Sums and table are there somewhere: the passes need not tile. */
static bool nothing_missing(const struct hd_exchange_past *past)
{
	for (uint32_t i = 0; i < past->nhave; i++)
		if (!past->have[i].members)
			return false;
	return past->nhave && past->table;
}

void hd_have_spread(uint64_t *members, uint32_t nbuckets, const struct hd_have *run, uint32_t n)
{
	uint32_t end = nbuckets;

	memset(members, 0, nbuckets * sizeof *members);
	for (uint32_t i = n; i > 0; i--) {
		for (uint32_t b = run[i - 1].first; b < end; b++)
			members[b] = run[i - 1].members;
		end = run[i - 1].first < end ? run[i - 1].first : end;
	}
}

enum hd_err hd_exchange_again(struct hd_exchange *x, const struct hd_view *view, uint32_t worker,
	uint64_t step, const struct hd_passes *passes,
	const struct hd_exchange_past *past, struct hd_diag *diag)
{
	bool same = x->step == step && !past->afresh;
	enum hd_err err = nothing_missing(past) ? HD_OK : untiled(passes, x->nvns, step, diag);

	if (!err)
		err = start(x, view, worker, step, passes, diag);
	if (err)
		return err;
	x->again = true;
	if (!same)
		forget(x);
	hd_have_spread(x->have, x->nbuckets, past->have, past->nhave);
	x->table_have = past->table;
	hd_have_spread(x->parm_have, x->nbuckets, past->parm, past->nparm);
	x->done = past->done;
	if (x->held.partial)
		hd_have_spread(x->chain, x->nbuckets, past->chain, past->nchain);
	else
		memcpy(x->chain, x->held.slot, x->nbuckets * sizeof *x->chain);
	/* the rest of a step: a member that has more than it is to hold updates its part alone */
	for (uint32_t b = 0; b < x->nbuckets && hd_view_is_doubled(view); b++)
		x->chain[b] &= x->held.slot[b];
	count_due(x);
	return HD_OK;
}

/* ---- lines ---- */

void hd_exchange_line(const struct hd_exchange *x, uint32_t bucket, struct hd_sum_line *l)
{
	hd_line_make(l, x->held.owner[bucket], x->have[bucket], x->chain[bucket],
		x->held.spare[bucket], x->nmembers);
}

uint32_t hd_exchange_source(const struct hd_exchange *x, uint32_t bucket)
{
	struct hd_sum_line l;

	if (!x->have[bucket])
		return x->held.owner[bucket];
	hd_exchange_line(x, bucket, &l);
	return hd_line_source(&l, bucket);
}

uint64_t hd_exchange_sum_to(const struct hd_exchange *x, uint32_t bucket)
{
	struct hd_sum_line l;

	hd_exchange_line(x, bucket, &l);
	return hd_line_sum_to(&l, bucket, x->me);
}

uint32_t hd_exchange_sum_from(const struct hd_exchange *x, uint32_t bucket)
{
	struct hd_sum_line l;

	hd_exchange_line(x, bucket, &l);
	if (l.all)
		return hd_line_source(&l, bucket);
	for (uint32_t i = l.nhad; i < l.n; i++)
		if (l.at[i] == x->me)
			return l.at[i - 1];
	return HD_NOBODY;
}

/* The last of the chain in the line. */
static uint32_t last_of(const struct hd_exchange *x, uint32_t bucket)
{
	struct hd_sum_line l;

	hd_exchange_line(x, bucket, &l);
	while (l.n && !(x->chain[bucket] >> l.at[l.n - 1] & 1))
		l.n--;
	return l.n ? l.at[l.n - 1] : HD_NOBODY;
}

uint32_t hd_exchange_parm_source(const struct hd_exchange *x, uint32_t bucket)
{
	uint64_t have = x->parm_have[bucket];

	return have ? hd_members_nth(have, bucket % (uint32_t)__builtin_popcountll(have)) : last_of(x,
		bucket);
}

uint32_t hd_exchange_ratio_source(const struct hd_exchange *x, uint32_t bucket) { return last_of(x, bucket); }

uint64_t hd_exchange_ratio_to(const struct hd_exchange *x, uint32_t bucket)
{
	return x->kin[bucket] & ~x->done;
}

/* Those of the chain make them. */
uint64_t hd_exchange_parm_to(const struct hd_exchange *x, uint32_t bucket)
{
	return x->held.apart ? x->held.param[bucket] & ~x->parm_have[bucket] & ~x->chain[bucket] : 0;
}

uint32_t hd_exchange_norm_source(const struct hd_exchange *x, uint32_t bucket)
{
	struct hd_sum_line l;

	hd_exchange_line(x, bucket, &l);
	return l.all ? HD_NOBODY : l.at[l.n - 1];
}

uint64_t hd_exchange_norm_to(const struct hd_exchange *x, uint32_t bucket)
{
	struct hd_sum_line l;

	hd_exchange_line(x, bucket, &l);
	return hd_members_all(x->nmembers) & ~x->done & ~l.members;
}

bool hd_exchange_any_sum(const struct hd_exchange *x)
{
	uint64_t any = x->nsums;

	for (uint32_t b = 0; b < x->nbuckets; b++)
		any |= x->have[b];
	return any;
}

bool hd_exchange_makes(const struct hd_exchange *x, const struct hd_pass *pass, uint32_t bucket)
{
	return makers_of(x, bucket) >> pass->stage & 1;
}

bool hd_exchange_wants_roots(const struct hd_exchange *x, uint32_t bucket) { return !x->have[bucket]; }

uint32_t hd_exchange_table_source(const struct hd_exchange *x)
{
	return x->table_have ? (uint32_t)__builtin_ctzll(x->table_have) : HD_NOBODY;
}

/* The number among all of a worker's root of that ordinal, which must be one of the bucket's. */
static bool find_root(const struct hd_exchange *x, uint32_t worker, uint32_t ordinal, uint32_t bucket,
	uint32_t *root)
{
	for (uint32_t i = 0; i < x->passes.npasses; i++) {
		if (x->passes.pass[i].worker != worker)
			continue;
		uint32_t n = x->first_root[i + 1] - x->first_root[i];
		if (ordinal < n) {
			*root = x->first_root[i] + ordinal;
			return makers_of(x, bucket) >> x->passes.pass[i].stage & 1;
		}
		ordinal -= n;
	}
	return false;
}

bool hd_exchange_has_root(const struct hd_exchange *x, uint32_t worker, uint32_t ordinal, uint32_t bucket)
{
	uint32_t root;

	return find_root(x, worker, ordinal, bucket, &root) && get(x->root + (size_t)bucket * x->words, root);
}

bool hd_exchange_root(struct hd_exchange *x, uint32_t worker, uint32_t ordinal, uint32_t bucket)
{
	uint32_t root;

	if (bucket >= x->nbuckets || x->have[bucket] || !comes_here(x, worker, bucket) ||
		!find_root(x, worker, ordinal, bucket, &root))
		return false;
	uint64_t *row = x->root + (size_t)bucket * x->words;
	if (get(row, root))
		return false;
	set(row, root);
	x->left[bucket]--;
	return true;
}

/* Does this member take part in the bucket's line, so that it has, or will have, the sum? */
static bool in_line(const struct hd_exchange *x, uint32_t bucket)
{
	uint64_t had = x->have[bucket] ? x->have[bucket] : bit(x->held.owner[bucket]);

	return (had | x->chain[bucket]) >> x->me & 1;
}

bool hd_exchange_sum(struct hd_exchange *x, uint32_t bucket)
{
	if (bucket >= x->nbuckets || get(x->sum, bucket))
		return false;
	set(x->sum, bucket);
	x->nsums++;
	x->due_sums -= x->due_sums && in_line(x, bucket);
	return true;
}

bool hd_exchange_norm(struct hd_exchange *x, uint32_t bucket)
{
	if (bucket >= x->nbuckets || get(x->norm, bucket))
		return false;
	set(x->norm, bucket);
	x->nnorms++;
	x->due_norms -= x->due_norms && !in_line(x, bucket);
	return true;
}

bool hd_exchange_parm(struct hd_exchange *x, uint32_t bucket)
{
	if (bucket >= x->nbuckets || get(x->parm, bucket))
		return false;
	set(x->parm, bucket);
	x->nparms++;
	x->due_parms -= x->due_parms && x->held.param[bucket] >> x->me & 1;
	return true;
}

bool hd_exchange_ratio(struct hd_exchange *x, uint32_t bucket)
{
	if (bucket >= x->nbuckets || get(x->ratio, bucket))
		return false;
	set(x->ratio, bucket);
	x->due_ratios -= x->due_ratios && x->kin[bucket] >> x->me & 1;
	return true;
}

void hd_exchange_measure(struct hd_exchange *x, uint32_t bucket)
{
	if (bucket < x->nbuckets && hd_exchange_chained(x, bucket))
		set(x->measured, bucket);
}

bool hd_exchange_square(struct hd_exchange *x, uint32_t bucket)
{
	if (bucket >= x->nbuckets || !get(x->sum, bucket) || get(x->squared, bucket))
		return false;
	set(x->squared, bucket);
	return true;
}

bool hd_exchange_may_update(const struct hd_exchange *x) { return !x->due_sums && !x->due_norms && x->table; }

bool hd_exchange_leaves(struct hd_exchange *x, uint32_t worker, uint32_t pass)
{
	const struct hd_pass *p = hd_passes_find(&x->passes, worker, pass);

	if (!p || x->table)
		return false;
	uint32_t i = (uint32_t)(p - x->passes.pass);
	if (get(x->leaf, i))
		return false;
	set(x->leaf, i);
	/* with a holder somewhere the whole table comes; entries of some passes do not make one */
	if (++x->nleaves == x->passes.npasses && !x->table_have)
		x->table = true;
	return true;
}

bool hd_exchange_table(struct hd_exchange *x)
{
	bool new = !x->table;

	x->table = true;
	return new;
}

bool hd_exchange_fold(struct hd_exchange *x, uint32_t bucket)
{
	if (bucket >= x->nbuckets || x->left[bucket] || x->have[bucket] || get(x->sum, bucket) ||
		get(x->folding, bucket))
		return false;
	assert(hd_exchange_source(x, bucket) == x->me);           /* roots are counted at their owner alone */
	set(x->folding, bucket);
	return true;
}

/* Norms come again in a step that is restarted: a member that has updated waits for them, too, since the next
 * step begins with nothing on the way. */
bool hd_exchange_complete(const struct hd_exchange *x)
{
	return !x->due_norms && !x->due_ratios && x->table && !(x->held.apart ? x->due_parms : x->due_sums);
}
