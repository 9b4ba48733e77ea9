#include "protocol/transfers.h"

#include <assert.h>
#include <string.h>

#include "base/bits.h"
#include "plan/collective.h"

#define MOST_PARTIAL (UINT64_C(1) << 31)  /* rows of partial sums: the other blocks need fewer together */

enum subject { OF_MEMBER, OF_BUCKET, OF_VN, OF_ALL, OF_CELL, OF_SYNC, OF_PARCEL };

static const struct transfer_block { enum hd_xfer_kind kind; enum subject of; bool sharded; } blocks[] = {
	{ HD_XFER_PARTIAL,    OF_MEMBER, false },
	{ HD_XFER_SUM,        OF_BUCKET, false },
	{ HD_XFER_NORM,       OF_BUCKET, true },
	{ HD_XFER_PARAMETERS, OF_BUCKET, true },
	{ HD_XFER_DIGEST,     OF_BUCKET, true },
	{ HD_XFER_RATIO,      OF_BUCKET, true },
	{ HD_XFER_METRICS,    OF_VN,     false },
	{ HD_XFER_TABLE,      OF_ALL,    false },
	{ HD_XFER_ACTIVATIONS, OF_CELL,  false },
	{ HD_XFER_GRADIENTS,  OF_CELL,   false },
	{ HD_XFER_MOMENTS,    OF_SYNC,   false },
	{ HD_XFER_SHARDS,     OF_PARCEL, false },
};
_Static_assert(sizeof blocks / sizeof *blocks == HD_TRANSFER_BLOCKS, "a block is not counted");

/* Its rows are the plan's. */
static bool names_no_members(const struct transfer_block *block)
{
	return block->of == OF_CELL || block->of == OF_PARCEL;
}

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

static bool has_rows(const struct hd_transfers_spec *spec, enum hd_xfer_kind kind)
{
	if (kind == HD_XFER_RATIO)
		return spec->partial && spec->tensors && !spec->copies;
	return spec->copies || (spec->partial && kind == HD_XFER_NORM);
}

static uint32_t owner_of(const struct hd_transfers_spec *spec, uint32_t bucket)
{
	return spec->owner ? spec->owner[bucket] : hd_bucket_owner(bucket, spec->nbuckets, spec->nmembers);
}

/* Can a step have pairs? */
static bool has_pairs(const struct hd_transfers_spec *spec)
{
	return spec->pairs && spec->nmembers > 1 && hd_is_pow2(spec->nmembers) && !spec->copies &&
		!spec->partial &&
		spec->nstages < 2;
}

/* How many values the first index of a block has. */
static uint32_t subjects(const struct hd_transfers_spec *spec, const struct transfer_block *block)
{
	switch (block->of) {
	case OF_MEMBER: return spec->nmembers;
	case OF_BUCKET: return block->sharded && !has_rows(spec, block->kind) ? 0 : spec->nbuckets;
	case OF_VN:     return spec->nvns;
	case OF_ALL:    return 1;
	case OF_CELL:   return spec->nstages > 1 ? (spec->nstages + spec->nshadows) * spec->nvns : 0;
	case OF_SYNC:   return spec->nsyncs;
	case OF_PARCEL: return spec->nparcels * spec->nstages * spec->nvns;
	}
	return 0;
}

/* Rows of one value of the first index. */
static uint32_t stride(const struct hd_transfers *t, const struct transfer_block *block)
{
	return block->of == OF_MEMBER ? t->ordinals * t->nruns : names_no_members(block) ? 1 :
		t->spec.nmembers * t->spec.nmembers;
}

void hd_transfers_init(struct hd_transfers *t, const struct hd_transfers_spec *spec)
{
	/* a finer table of buckets (plan/buckets.h) has no pieces yet */
	const bool pieces = spec->layout && spec->layout->npieces &&
		spec->nbuckets == hd_layout_nbuckets(spec->layout);
	const uint32_t nruns = pieces ? hd_layout_nruns(spec->layout) : spec->nbuckets;
	uint64_t at = 0, each = (uint64_t)spec->nmembers * nruns;

	assert(nruns >= spec->nbuckets);
	assert(spec->nmembers && spec->nmembers <= HD_MAX_MEMBERS && spec->nstages <= HD_TRANSFER_STAGES);
	assert(spec->nshadows == 0 || spec->nshadows == spec->nstages);
	assert(spec->nvns && spec->nvns <= HD_MAX_VNS && spec->nbuckets && spec->nbuckets <= HD_MAX_BUCKETS);
	*t = (struct hd_transfers){ .spec = *spec, .nruns = nruns };
	t->roots = (uint32_t)least(least(HD_VIEW_ROOTS, spec->nvns), MOST_PARTIAL / each - has_pairs(spec));
	t->ordinals = t->roots + has_pairs(spec);
	for (uint32_t i = 0; i < HD_TRANSFER_BLOCKS; i++) {
		t->first[i] = (uint32_t)at;
		at += (uint64_t)subjects(spec, &blocks[i]) * stride(t, &blocks[i]);
	}
	assert(at <= UINT32_MAX);
	t->first[HD_TRANSFER_BLOCKS] = (uint32_t)at;
}

/* ---- names and numbers ---- */

static uint32_t block_of(enum hd_xfer_kind kind)
{
	uint32_t i = 0;

	while (blocks[i].kind != kind) {
		i++;
		assert(i < HD_TRANSFER_BLOCKS);           /* a kind of a step's exchange */
	}
	return i;
}

static uint32_t bucket_of(const struct hd_transfers *t, const struct hd_xfer_name *name)
{
	return name->kind == HD_XFER_PARTIAL && name->number >= t->spec.nbuckets ?
		hd_layout_run(t->spec.layout, name->number).bucket : name->number;
}

/* Of a partial sum: to its owner, or to the parent. */
static uint32_t partial_to(const struct hd_transfers *t, const struct hd_xfer_name *name)
{
	uint32_t owner = owner_of(&t->spec, bucket_of(t, name));

	return name->ordinal < t->roots ? owner : hd_pair_parent(name->from, owner);
}

uint32_t hd_transfers_id(const struct hd_transfers *t, struct hd_xfer_name name)
{
	uint32_t n = t->spec.nmembers, i = block_of(name.kind), first = t->first[i];

	if (names_no_members(&blocks[i])) {
		assert(name.number < subjects(&t->spec, &blocks[i]) && !name.ordinal);
		return first + name.number;
	}
	assert(name.from < n && name.to < n && name.from != name.to);
	if (blocks[i].of == OF_MEMBER) {
		assert(name.number < t->nruns && name.ordinal < t->ordinals);
		assert(name.to == partial_to(t, &name));
		return first + (name.from * t->ordinals + name.ordinal) * t->nruns + name.number;
	}
	assert(name.number < subjects(&t->spec, &blocks[i]) && !name.ordinal);
	return first + name.number * n * n + name.from * n + name.to;
}

enum hd_err hd_transfers_name(const struct hd_transfers *t, uint32_t id, struct hd_xfer_name *name,
	struct hd_diag *diag)
{
	uint32_t n = t->spec.nmembers, i = 0;

	if (id >= hd_transfers_count(t))
		return hd_fail(diag, HD_E_PROTOCOL, "transfer %u is none of the epoch's %u", id,
			hd_transfers_count(t));
	while (id >= t->first[i + 1])
		i++;
	uint32_t at = id - t->first[i];
	struct hd_xfer_name got = { .kind = blocks[i].kind };
	if (blocks[i].of == OF_MEMBER) {
		got.number = at % t->nruns;
		got.ordinal = at / t->nruns % t->ordinals;
		got.from = at / t->nruns / t->ordinals;
		got.to = partial_to(t, &got);
	} else if (names_no_members(&blocks[i])) {
		got.from = got.to = HD_NOBODY;
		got.number = at;
	} else {
		got.to = at % n;
		got.from = at / n % n;
		got.number = at / n / n;
	}
	if (got.from == got.to && !names_no_members(&blocks[i]))
		return hd_fail(diag, HD_E_PROTOCOL, "transfer %u goes from member %u to itself", id,
			got.from);
	*name = got;
	return HD_OK;
}

/* ---- rows ---- */

static uint32_t first_chunk(const struct hd_transfers *t, uint32_t bucket)
{
	return t->spec.layout ? hd_layout_first_chunk(t->spec.layout, bucket) :
		(uint32_t)least((t->spec.floats + HD_CHUNK_ELEMS - 1) / HD_CHUNK_ELEMS,
			(uint64_t)bucket * HD_BUCKET_CHUNKS);
}

static uint64_t bucket_bytes(const struct hd_transfers *t, uint32_t bucket)
{
	uint64_t from = (uint64_t)bucket * HD_BUCKET_BYTES;

	if (t->spec.layout)
		return hd_layout_bucket(t->spec.layout, bucket).len * sizeof(float);
	return least(t->spec.floats * sizeof(float) - from, HD_BUCKET_BYTES);
}

static uint32_t nsegments(const struct hd_transfers *t, uint32_t bucket)
{
	return t->spec.layout ? hd_layout_bucket(t->spec.layout, bucket).nsegments : 0;
}

static uint64_t bytes_of(const struct hd_transfers *t, const struct hd_xfer_name *name)
{
	switch (name->kind) {
	case HD_XFER_PARTIAL:
		if (name->number >= t->spec.nbuckets)
			return hd_layout_run(t->spec.layout, name->number).len * sizeof(float);
		return bucket_bytes(t, name->number);
	case HD_XFER_SUM: case HD_XFER_PARAMETERS: return bucket_bytes(t, name->number);
	case HD_XFER_NORM:    return nsegments(t, name->number) * sizeof(double);
	case HD_XFER_RATIO:   return nsegments(t, name->number) * 2 * sizeof(double);
	case HD_XFER_DIGEST:  return nsegments(t, name->number) * t->spec.digest_bytes;
	case HD_XFER_METRICS: return t->spec.metrics_bytes;
	case HD_XFER_TABLE:   return t->spec.table_bytes;
	case HD_XFER_ACTIVATIONS: case HD_XFER_GRADIENTS: case HD_XFER_MOMENTS: case HD_XFER_STATE:
	case HD_XFER_SHARDS:
	case HD_XFER_SHADOW: break;
	}
	return 0;
}

static bool all_wait_for(const struct hd_transfers *t, enum hd_xfer_kind kind)
{
	return kind == HD_XFER_NORM || kind == HD_XFER_RATIO || kind == HD_XFER_METRICS ||
		kind == HD_XFER_TABLE ||
		(kind == HD_XFER_SUM && t->spec.sums_first);
}

/* Rule 4. */
static uint32_t priority_of(const struct hd_transfers *t, enum hd_xfer_kind kind, uint32_t bucket,
	const struct hd_comm_turn *turn)
{
	if (all_wait_for(t, kind))
		return 0;
	return t->spec.sums_first ? 1 + bucket :
		hd_comm_urgency(t->spec.comm, t->spec.nbuckets, bucket, kind == HD_XFER_PARTIAL, turn);
}

static uint32_t worker_of(const struct hd_transfers *t, uint32_t member)
{
	return t->spec.member ? t->spec.member[member] : member;
}

uint8_t hd_transfers_primitive(const struct hd_transfers *t, const struct hd_xfer_name *name)
{
	return name->kind == HD_XFER_PARTIAL && name->ordinal >= t->roots ? HD_COLLECTIVE_HALVING :
		HD_COLLECTIVE_DIRECT;
}

struct hd_xfer hd_transfers_row(const struct hd_transfers *t, const struct hd_xfer_name *name)
{
	enum subject of = blocks[block_of(name->kind)].of;
	struct hd_xfer row = { .kind = (uint8_t)name->kind, .class = HD_XFER_PLANNED,
		.from = worker_of(t, name->from), .to = worker_of(t, name->to),
		.len_bytes = bytes_of(t, name) };

	assert(name->from != name->to);
	const uint32_t bucket = bucket_of(t, name);
	row.primitive = hd_transfers_primitive(t, name);
	row.priority = priority_of(t, name->kind, bucket, NULL);
	if (of == OF_MEMBER || of == OF_BUCKET) {
		row.bucket = bucket;
		row.first_chunk = first_chunk(t, bucket);
		row.nchunks = first_chunk(t, bucket + 1) - row.first_chunk;
	}
	return row;
}

uint32_t hd_transfers_priority(const struct hd_transfers *t, const struct hd_xfer_name *name, uint64_t step)
{
	return priority_of(t, name->kind, bucket_of(t, name), &(struct hd_comm_turn){ step,
		worker_of(t, name->from), worker_of(t, name->to) });
}

/* ---- what a step can use ---- */

struct list { const struct hd_transfers *table; uint32_t from, to, *id; size_t n; };

static void put(struct list *l, enum hd_xfer_kind kind, uint32_t number, uint32_t ordinal)
{
	if (l->id)
		l->id[l->n] = hd_transfers_id(l->table, (struct hd_xfer_name){ kind, l->from, l->to,
			number, ordinal });
	l->n++;
}

/* The most partial sums of a bucket that a worker sends in a step of this epoch: of the step at hand, or of
 * its part of the view. */
static uint32_t most_partial(const struct hd_transfers *t, const struct hd_view *view,
	const struct hd_exchange *x, uint32_t worker)
{
	struct hd_vrange range[HD_VIEW_RANKS];
	struct hd_tnode root[HD_VIEW_ROOTS];
	uint32_t n = 0, step = 0;

	for (uint32_t s = 0; s < hd_view_nstages(view); s++) {
		uint32_t of = 0, nranges = hd_view_stage_ranges(view, worker, s, range);
		if (nranges && hd_ranges_roots(t->spec.nvns, range, nranges, root, HD_VIEW_ROOTS, &of))
			of = 0;                   /* such a step is not opened */
		n += of;
	}
	for (uint32_t i = 0; i < x->passes.npasses; i++)
		if (x->passes.pass[i].worker == worker)
			step += x->first_root[i + 1] - x->first_root[i];
	return (uint32_t)least(n > step ? n : step, t->roots);
}

static void put_ordinal(struct list *l, uint32_t ordinal)
{
	for (uint32_t r = 0; r < l->table->nruns; r++) {
		const struct hd_xfer_name run = { .kind = HD_XFER_PARTIAL, .from = l->from, .number = r,
			.ordinal = ordinal };
		if (partial_to(l->table, &run) == l->to)
			put(l, HD_XFER_PARTIAL, r, ordinal);
	}
}

static void put_partial(struct list *l, const struct hd_view *view, const struct hd_exchange *x)
{
	uint32_t most = most_partial(l->table, view, x, view->member[l->from]);

	for (uint32_t o = 0; o < most; o++)
		put_ordinal(l, o);
	if (l->table->ordinals > l->table->roots)
		put_ordinal(l, l->table->roots);
}

/* The last of the chain in a line. */
static uint32_t last_of(const struct hd_sum_line *line, uint64_t chain)
{
	uint32_t n = line->n;

	while (n && !(chain >> line->at[n - 1] & 1))
		n--;
	return n ? line->at[n - 1] : HD_NOBODY;
}

/* Along that line? `param`: those that are to have what the last of the chain sends. */
static bool goes_by(const struct list *l, const struct hd_sum_line *line, uint64_t chain, uint64_t param,
	enum hd_xfer_kind kind, uint32_t b)
{
	if (kind == HD_XFER_SUM)
		return hd_line_sum_to(line, b, l->from) >> l->to & 1;
	if (kind == HD_XFER_NORM)
		return line->at[line->n - 1] == l->from && !(line->members >> l->to & 1);
	return last_of(line, chain) == l->from && param >> l->to & 1 && !(chain >> l->to & 1);
}

/* Of a bucket: in the view's steps, and in the step at hand if it has another line. */
static bool goes(const struct list *l, const struct hd_exchange *x, enum hd_xfer_kind kind, uint32_t b)
{
	const bool ratio = kind == HD_XFER_RATIO;
	uint64_t slot = x->held.slot[b], param = ratio ? x->held.kin[b] : x->held.param[b];
	struct hd_sum_line line;

	if (kind == HD_XFER_DIGEST && !l->table->spec.digest_bytes)
		return false;
	if (kind != HD_XFER_SUM && !has_rows(&l->table->spec, kind))
		return false;
	hd_line_make(&line, x->held.owner[b], 0, slot, x->held.spare[b], x->nmembers);
	if (goes_by(l, &line, slot, param, kind, b))
		return true;
	if (kind == HD_XFER_PARAMETERS || kind == HD_XFER_DIGEST)
		return hd_exchange_parm_source(x, b) == l->from && hd_exchange_parm_to(x, b) >> l->to & 1;
	hd_exchange_line(x, b, &line);
	return goes_by(l, &line, x->chain[b], ratio ? x->kin[b] : param, kind, b);
}

static void mark(uint64_t *bits, const struct hd_vrange *range, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t v = range[i].first; v < range[i].first + range[i].n; v++)
			bits[v / 64] |= UINT64_C(1) << v % 64;
}

/* Virtual nodes of which a worker sends metrics in this epoch: those of its part of the view, and of its
 * passes. */
static void put_metrics(struct list *l, const struct hd_view *view, const struct hd_exchange *x)
{
	const struct hd_passes *p = &x->passes;
	struct hd_vrange range[HD_VIEW_RANKS];
	uint64_t bits[HD_MAX_VNS / 64] = { 0 };
	uint32_t worker = view->member[l->from];

	mark(bits, range, hd_view_ranges(view, worker, range));
	for (uint32_t i = 0; i < p->npasses; i++)
		if (p->pass[i].worker == worker)
			mark(bits, p->range + p->pass[i].first_range, p->pass[i].nranges);
	for (uint32_t v = 0; v < l->table->spec.nvns; v++)
		if (bits[v / 64] >> v % 64 & 1)
			put(l, HD_XFER_METRICS, v, 0);
}

size_t hd_transfers_between(const struct hd_transfers *t, const struct hd_view *view,
	const struct hd_exchange *x, uint32_t from, uint32_t to, uint32_t *id)
{
	struct list l = { t, from, to, id, 0 };

	assert(from != to && view->nmembers == t->spec.nmembers && x->copies == t->spec.copies);
	put_partial(&l, view, x);
	for (uint32_t i = 0; i < HD_TRANSFER_BLOCKS; i++)
		for (uint32_t b = 0; blocks[i].of == OF_BUCKET && b < subjects(&t->spec, &blocks[i]); b++)
			if (goes(&l, x, blocks[i].kind, b))
				put(&l, blocks[i].kind, b, 0);
	put_metrics(&l, view, x);
	put(&l, HD_XFER_TABLE, 0, 0);             /* of any member that has it, to any that needs it */
	return l.n;
}
