#include "exec/exchange.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"

uint32_t hd_transfer_id(struct hd_transfer_name name)
{
	assert((uint32_t)name.kind < 4 && name.ordinal < HD_VIEW_ROOTS && name.bucket < HD_MAX_BUCKETS);
	return (uint32_t)name.kind << 30 | name.ordinal << 20 | name.bucket;
}

enum hd_err hd_transfer_name(uint32_t id, uint32_t nbuckets, struct hd_transfer_name *name, struct hd_diag *diag)
{
	static const struct { bool ordinal, bucket; } uses[] = {
		[HD_TRANSFER_ROOT] = { true, true }, [HD_TRANSFER_SUM] = { false, true }, [HD_TRANSFER_LEAVES] = { true, false },
		[HD_TRANSFER_TABLE] = { false, false },
	};
	struct hd_transfer_name got = { (enum hd_transfer_kind)(id >> 30), id >> 20 & (HD_VIEW_ROOTS - 1), id & 0xfffff };

	if ((!uses[got.kind].ordinal && got.ordinal) || got.bucket >= (uses[got.kind].bucket ? nbuckets : 1))
		return hd_fail(diag, HD_E_PROTOCOL, "transfer %08x names nothing of a step with %u buckets", id, nbuckets);
	*name = got;
	return HD_OK;
}

static bool get(const uint64_t *bits, uint32_t i) { return bits[i / 64] >> i % 64 & 1; }
static void set(uint64_t *bits, uint32_t i) { bits[i / 64] |= UINT64_C(1) << i % 64; }
static uint32_t words_of(uint32_t n) { return (n + 63) / 64; }

enum hd_err hd_exchange_init(struct hd_exchange *x, uint32_t nvns, uint32_t nbuckets, struct hd_diag *diag)
{
	*x = (struct hd_exchange){ .nvns = nvns, .nbuckets = nbuckets };
	if (nvns < 1 || nvns > HD_MAX_VNS || nbuckets < 1 || nbuckets > HD_MAX_BUCKETS)
		return hd_fail(diag, HD_E_INVAL, "%u virtual nodes and %u buckets; at most %d and %d", nvns, nbuckets, HD_MAX_VNS, HD_MAX_BUCKETS);
	x->sum     = hd_alloc(words_of(nbuckets) * sizeof *x->sum);
	x->folding = hd_alloc(words_of(nbuckets) * sizeof *x->folding);
	x->have    = hd_alloc(nbuckets * sizeof *x->have);
	x->left    = hd_alloc(nbuckets * sizeof *x->left);
	if (!x->sum || !x->folding || !x->have || !x->left) {
		hd_exchange_finish(x);
		return hd_fail(diag, HD_E_NOMEM, "no memory for the exchange of %u buckets", nbuckets);
	}
	memset(x->sum, 0, words_of(nbuckets) * sizeof *x->sum);
	return HD_OK;
}

void hd_exchange_finish(struct hd_exchange *x)
{
	hd_free(x->sum);
	hd_free(x->folding);
	hd_free(x->have);
	hd_free(x->left);
	hd_free(x->root);
	*x = (struct hd_exchange){ 0 };
}

static enum hd_err count_roots(struct hd_exchange *x, struct hd_diag *diag)
{
	struct hd_tnode roots[HD_VIEW_ROOTS];

	x->nroots = 0;
	for (uint32_t i = 0; i < x->passes.npasses; i++) {
		const struct hd_pass *p = &x->passes.pass[i];
		uint32_t n = 0;
		x->first_root[i] = x->nroots;
		if (hd_ranges_roots(x->nvns, x->passes.range + p->first_range, p->nranges, roots, HD_VIEW_ROOTS, &n))
			return hd_fail(diag, HD_E_BADPLAN, "worker %u has more than %d roots in a step", p->worker, HD_VIEW_ROOTS);
		x->nroots += n;
	}
	x->first_root[x->passes.npasses] = x->nroots;
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
			return hd_fail(diag, HD_E_NOMEM, "no memory for the roots of %u buckets", x->nbuckets);
		x->words_cap = x->words;
	}
	if (x->words)
		memset(x->root, 0, (size_t)x->nbuckets * x->words * sizeof *x->root);
	for (uint32_t b = 0; b < x->nbuckets; b++)
		x->left[b] = x->nroots;
	return HD_OK;
}

static enum hd_err start(struct hd_exchange *x, const struct hd_view *view, uint32_t worker, uint64_t step, const struct hd_passes *passes,
	struct hd_diag *diag)
{
	uint32_t me = hd_view_index(view, worker);

	if (me == HD_NOBODY)
		return hd_fail(diag, HD_E_BADPLAN, "worker %u is no member of view %u", worker, view->epoch);
	x->me = me;
	x->nmembers = view->nmembers;
	x->step = step;
	x->passes = *passes;
	x->nleaves = 0;
	memset(x->leaf, 0, sizeof x->leaf);
	memset(x->folding, 0, words_of(x->nbuckets) * sizeof *x->folding);
	enum hd_err err = count_roots(x, diag);
	return err ? err : take_roots(x, diag);
}

static enum hd_err untiled(const struct hd_passes *passes, uint32_t nvns, uint64_t step, struct hd_diag *diag)
{
	uint32_t vn = 0;

	if (hd_passes_tile(passes, nvns, &vn))
		return HD_OK;
	return hd_fail(diag, HD_E_BADPLAN, "step %llu: virtual node %u is not computed exactly once", (unsigned long long)step, vn);
}

enum hd_err hd_exchange_begin(struct hd_exchange *x, const struct hd_view *view, uint32_t worker, uint64_t step, const struct hd_passes *passes,
	struct hd_diag *diag)
{
	enum hd_err err = untiled(passes, x->nvns, step, diag);

	if (!err)
		err = start(x, view, worker, step, passes, diag);
	if (err)
		return err;
	x->nsums = 0;
	x->table = false;
	x->table_have = 0;
	memset(x->sum, 0, words_of(x->nbuckets) * sizeof *x->sum);
	memset(x->have, 0, x->nbuckets * sizeof *x->have);
	return HD_OK;
}

/* Sums and table are there somewhere: the passes need not tile. */
static bool nothing_missing(const struct hd_have *have, uint32_t nhave, uint64_t table)
{
	for (uint32_t i = 0; i < nhave; i++)
		if (!have[i].members)
			return false;
	return nhave && table;
}

enum hd_err hd_exchange_again(struct hd_exchange *x, const struct hd_view *view, uint32_t worker, uint64_t step, const struct hd_passes *passes,
	const struct hd_have *have, uint32_t nhave, uint64_t table, struct hd_diag *diag)
{
	bool same = x->step == step;
	enum hd_err err = nothing_missing(have, nhave, table) ? HD_OK : untiled(passes, x->nvns, step, diag);

	if (!err)
		err = start(x, view, worker, step, passes, diag);
	if (err)
		return err;
	if (!same) {
		x->nsums = 0;
		x->table = false;
		memset(x->sum, 0, words_of(x->nbuckets) * sizeof *x->sum);
	}
	x->table_have = table;
	memset(x->have, 0, x->nbuckets * sizeof *x->have);
	for (uint32_t i = 0; i < nhave; i++)
		for (uint32_t b = have[i].first; b < (i + 1 < nhave ? have[i + 1].first : x->nbuckets); b++)
			x->have[b] = have[i].members;
	return HD_OK;
}

/* The n-th of the bits set; n below their number. */
static uint32_t nth(uint64_t bits, uint32_t n)
{
	while (n--)
		bits &= bits - 1;
	return (uint32_t)__builtin_ctzll(bits);
}

uint32_t hd_exchange_source(const struct hd_exchange *x, uint32_t bucket)
{
	uint64_t have = x->have[bucket];

	if (have)
		return nth(have, bucket % (uint32_t)__builtin_popcountll(have));
	return hd_bucket_owner(bucket, x->nbuckets, x->nmembers);
}

static uint64_t everybody(uint32_t n) { return n == 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1; }

uint64_t hd_exchange_lacking(const struct hd_exchange *x, uint32_t bucket)
{
	return everybody(x->nmembers) & ~x->have[bucket] & ~(UINT64_C(1) << hd_exchange_source(x, bucket));
}

bool hd_exchange_wants_roots(const struct hd_exchange *x, uint32_t bucket) { return !x->have[bucket]; }

uint32_t hd_exchange_table_source(const struct hd_exchange *x)
{
	return x->table_have ? (uint32_t)__builtin_ctzll(x->table_have) : HD_NOBODY;
}

/* Index of the pass in which a worker's root of that ordinal is, and the number of the root among all. */
static bool find_root(const struct hd_exchange *x, uint32_t worker, uint32_t ordinal, uint32_t *root)
{
	for (uint32_t i = 0; i < x->passes.npasses; i++) {
		if (x->passes.pass[i].worker != worker)
			continue;
		uint32_t n = x->first_root[i + 1] - x->first_root[i];
		if (ordinal < n) {
			*root = x->first_root[i] + ordinal;
			return true;
		}
		ordinal -= n;
	}
	return false;
}

bool hd_exchange_root(struct hd_exchange *x, uint32_t worker, uint32_t ordinal, uint32_t bucket)
{
	uint32_t root;

	if (bucket >= x->nbuckets || x->have[bucket] || hd_exchange_source(x, bucket) != x->me || !find_root(x, worker, ordinal, &root))
		return false;
	uint64_t *row = x->root + (size_t)bucket * x->words;
	if (get(row, root))
		return false;
	set(row, root);
	x->left[bucket]--;
	return true;
}

bool hd_exchange_sum(struct hd_exchange *x, uint32_t bucket)
{
	if (bucket >= x->nbuckets || get(x->sum, bucket))
		return false;
	set(x->sum, bucket);
	x->nsums++;
	return true;
}

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
	if (bucket >= x->nbuckets || x->left[bucket] || x->have[bucket] || get(x->sum, bucket) || get(x->folding, bucket) ||
	    hd_exchange_source(x, bucket) != x->me)
		return false;
	set(x->folding, bucket);
	return true;
}

bool hd_exchange_complete(const struct hd_exchange *x) { return x->nsums == x->nbuckets && x->table; }
