#include "worker/relay_int.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"

void *hd_relay_grown(void *old, uint64_t *cap, uint64_t need, size_t size)
{
	if (need <= *cap)
		return old;
	void *new = hd_alloc(need * size);
	if (!new)
		return NULL;
	hd_free(old);
	*cap = need;
	return new;
}

/* Bytes of one segment's digests. */
static uint64_t digest_bytes(const struct hd_relay *r)
{
	return r->nbuckets ? hd_dist_digest_bytes(r->worker, 0) / hd_layout_bucket(r->layout, 0).nsegments :
		0;
}

uint64_t hd_relay_digest_at(const struct hd_relay *r, uint32_t bucket)
{
	return digest_bytes(r) * (bucket < r->nbuckets ? hd_layout_bucket(r->layout, bucket).first_segment :
		r->layout->nsegments);
}

bool hd_relay_has_digest(const struct hd_relay *r, uint32_t b)
{
	return r->digest_every && (r->x->step + 1) % r->digest_every == 0 && hd_dist_digest_bytes(r->worker,
		b);
}

static uint32_t most_runs(const struct hd_relay *r)
{
	uint32_t most = 1;

	for (uint32_t b = 0; b < r->nbuckets; b++)
		most = hd_relay_nruns(r, b) > most ? hd_relay_nruns(r, b) : most;
	return most;
}

enum hd_err hd_relay_init(struct hd_relay *r, struct hd_hub *hub, struct hd_worker *worker,
	const struct hd_layout *layout, uint32_t nvns, struct hd_diag *diag)
{
	*r = (struct hd_relay){ .hub = hub, .worker = worker, .layout = layout, .nvns = nvns,
		.nbuckets = hd_layout_nbuckets(layout), .metrics_len = hd_dist_leaves_bytes(worker, 1) };
	const struct { uint8_t **at; uint64_t bytes; } taken[] = {
		{ &r->metrics, nvns * r->metrics_len },
		{ &r->metrics_here, nvns },
		{ &r->table, hd_dist_leaves_bytes(worker, nvns) },
		{ &r->own, hd_dist_leaves_bytes(worker, nvns) },
		{ &r->digest, hd_relay_digest_at(r, r->nbuckets) + 1 },
		{ &r->parts, r->nbuckets },
	};
	bool all = (r->norm = hd_alloc((size_t)layout->nsegments * sizeof *r->norm)) != NULL;
	all &= (r->ratio = hd_alloc((size_t)layout->nsegments * 2 * sizeof *r->ratio)) != NULL;
	all &= (r->owned = hd_alloc((size_t)r->nbuckets * sizeof *r->owned)) != NULL;
	all &= (r->row_of = hd_alloc((size_t)r->nbuckets * sizeof *r->row_of)) != NULL;
	all &= (r->own_run = hd_alloc((size_t)most_runs(r) * sizeof *r->own_run)) != NULL;
	for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
		all &= (*taken[i].at = hd_alloc(taken[i].bytes)) != NULL;
	if (!all)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the metrics of %u virtual nodes", nvns);
	r->nplanes = 1;
	memset(r->ratio, 0, (size_t)layout->nsegments * 2 * sizeof *r->ratio);
	r->metrics_cap = r->metrics_here_cap = nvns;
	memset(r->metrics_here, 0, nvns);
	return HD_OK;
}

void hd_relay_finish(struct hd_relay *r)
{
	hd_free(r->metrics);
	hd_free(r->table);
	hd_free(r->own);
	hd_free(r->metrics_here);
	hd_free(r->norm);
	hd_free(r->ratio);
	hd_free(r->digest);
	hd_free(r->parts);
	hd_free(r->operand);
	hd_free(r->run_here);
	hd_free(r->own_run);
	hd_free(r->owned);
	hd_free(r->row_of);
	hd_free(r->received);
	for (struct hd_relay_kept *k; (k = r->kept) != NULL; hd_free(k)) {
		r->kept = k->next;
		hd_free(k->bytes);
	}
	hd_free(r->channel);
	hd_free(r->id);
	hd_free(r->mail);
	hd_free(r->letter);
	*r = (struct hd_relay){ 0 };
}

void hd_relay_comm(struct hd_relay *r, const struct hd_comm *comm) { r->comm = comm; }

void hd_relay_epoch(struct hd_relay *r, uint32_t epoch)
{
	r->epoch = epoch;
	hd_relay_mail_void(r);
	hd_dist_fence(r->worker, epoch);
}

void hd_relay_view(struct hd_relay *r, const struct hd_view *view, uint32_t self)
{
	r->view = *view;
	r->self = self;
	r->has_view = true;
	r->x = NULL;
	r->me = hd_view_index(view, self);
	r->nowned = r->nrows = 0;         /* the first step of the view says */
}

/* ---- runs of buckets ---- */

uint32_t hd_relay_nruns(const struct hd_relay *r, uint32_t bucket)
{
	uint32_t piece;

	return 1 + hd_layout_pieces(r->layout, bucket, &piece);
}

uint32_t hd_relay_run(const struct hd_relay *r, uint32_t bucket, uint32_t i)
{
	uint32_t piece;

	(void)hd_layout_pieces(r->layout, bucket, &piece);
	return i ? piece + i - 1 : bucket;
}

uint32_t hd_relay_children(const struct hd_relay *r, uint32_t bucket)
{
	return hd_pair_children(r->me, r->rows.spec.owner[bucket], r->view.nmembers);
}

uint32_t hd_relay_ordinal(const struct hd_relay *r, uint32_t ordinal)
{
	const bool paired = r->x->paired;

	return (ordinal < r->rows.roots) == paired ? HD_NOBODY : paired ? 0 : ordinal;
}

bool hd_relay_operand_of(const struct hd_relay *r, uint32_t worker, uint32_t row, uint32_t run, uint64_t *at)
{
	const uint32_t bucket = hd_layout_run(r->layout, run).bucket, ordinal = hd_relay_ordinal(r, row);

	for (uint32_t i = 0; i < r->nroots && r->row_of[bucket] != HD_NOBODY; i++)
		if (r->of[i].worker == worker && r->of[i].ordinal == ordinal) {
			uint32_t line = r->row_of[bucket] + (run == bucket ? 0 :
				1 + run - hd_relay_run(r, bucket, 1));
			*at = (uint64_t)line * r->nroots + i;
			return true;
		}
	return false;
}

/* ---- what there is in a step ---- */

/* Buckets of which partial sums come here: those that this worker owns, and with pairs others, too. */
static void find_owned(struct hd_relay *r, const struct hd_exchange *x)
{
	r->nowned = r->nrows = 0;
	for (uint32_t b = 0; b < r->nbuckets; b++) {
		r->row_of[b] = HD_NOBODY;
		if (x->held.owner[b] != r->me && !(x->paired && hd_relay_children(r, b)))
			continue;
		r->owned[r->nowned++] = b;
		r->row_of[b] = r->nrows;
		r->nrows += hd_relay_nruns(r, b);
	}
}

/* The table is the view's: of all its steps. */
static void number_rows(struct hd_relay *r, const struct hd_exchange *x)
{
	assert(x->nmembers == r->view.nmembers && x->me == r->me);
	hd_transfers_init(&r->rows, &(struct hd_transfers_spec){ .nmembers = r->view.nmembers,
		.nvns = r->nvns,
		.nbuckets = r->nbuckets, .copies = x->copies, .member = r->view.member, .layout = r->layout,
		.metrics_bytes = r->metrics_len, .table_bytes = hd_dist_leaves_bytes(r->worker, r->nvns),
		.comm = r->comm, .digest_bytes = digest_bytes(r), .nstages = hd_dist_nstages(r->worker),
		.nshadows = hd_dist_nshadows(r->worker), .nparcels = hd_dist_nparcels(r->worker),
		.nsyncs = hd_dist_nsyncs(r->worker),
		.partial = x->held.partial && !x->copies, .tensors = hd_dist_measures(r->worker),
		.owner = x->held.owner, .pairs = x->pairs && !x->buckets });
}

/* Roots of one worker, from `at` on: in dist.h they ascend by stage, and their passes need not, where one was
 * inherited. */
static void count_lower(struct hd_relay *r, uint32_t at)
{
	for (uint32_t i = at; i < r->nroots; i++)
		for (uint32_t k = at; k < r->nroots; k++)
			r->of[i].index += r->stage[k] < r->stage[i];
}

/* With pairs: this worker's root, and what each child has added up: the sibling of what is here then. */
static enum hd_err name_pairs(struct hd_relay *r, struct hd_diag *diag)
{
	const struct hd_pass *own = &r->x->passes.pass[r->me];
	uint32_t n = 0;

	if (hd_ranges_roots(r->nvns, r->x->passes.range + own->first_range, 1, r->root, 2, &n) || n != 1)
		return hd_fail(diag, HD_E_INTEGRITY,
			"step %llu goes by pairs, and this worker has no one root",
			(unsigned long long)r->x->step);
	struct hd_tnode node = r->root[0];
	r->of[0] = (struct hd_relay_root){ r->self, 0, 0, 0 };
	for (uint32_t far = 1; far < r->view.nmembers; far *= 2, n++) {
		r->root[n] = hd_tree_sibling(r->nvns, node);
		r->of[n] = (struct hd_relay_root){ r->view.member[r->me ^ far], 0, 0, 0 };
		node = hd_tree_parent(r->nvns, node);
	}
	r->nroots = n;
	memset(r->stage, 0, n * sizeof *r->stage);
	return HD_OK;
}

static enum hd_err name_roots(struct hd_relay *r, struct hd_diag *diag)
{
	uint32_t first[HD_MAX_PASSES + 1], npasses;

	if (r->x->paired)
		return name_pairs(r, diag);
	r->nroots = 0;
	for (uint32_t m = 0; m < r->view.nmembers; m++) {
		uint32_t worker = r->view.member[m], at = r->nroots;
		enum hd_err err = hd_passes_roots(&r->x->passes, r->nvns, worker, r->root + at,
			HD_VIEW_ROOTS - at, first, &npasses);
		if (!err && first[npasses] > r->rows.roots)
			err = HD_E_NOSPACE;
		if (err)
			return hd_fail(diag, err,
			"the roots of step %llu are more than %d, or %u of worker %u",
				(unsigned long long)r->x->step, HD_VIEW_ROOTS, r->rows.roots, worker);
		for (uint32_t p = 0; p < npasses; p++)
			for (uint32_t i = first[p]; i < first[p + 1]; i++) {
				r->stage[r->nroots] =
					(uint16_t)hd_passes_find(&r->x->passes, worker, p)->stage;
				r->of[r->nroots++] = (struct hd_relay_root){ worker, i, p,
					i - first[p] };
			}
		if (r->view.shape.nstages)
			count_lower(r, at);
	}
	return HD_OK;
}

/* Of a root: where it comes from another worker, and has something of the run. With pairs root i is child
 * i - 1; of a bucket that another owns only the first come. */
static bool is_received(const struct hd_relay *r, uint32_t root, uint32_t run)
{
	if (r->x->paired && root > hd_relay_children(r, hd_layout_run(r->layout, run).bucket))
		return false;
	return r->of[root].worker != r->self && hd_dist_run_has(r->worker, run, r->stage[root]);
}

static uint64_t received_bytes(const struct hd_relay *r)
{
	uint64_t bytes = 0;

	for (uint32_t o = 0; o < r->nowned; o++)
		for (uint32_t k = 0; k < hd_relay_nruns(r, r->owned[o]); k++) {
			const uint32_t run = hd_relay_run(r, r->owned[o], k);
			for (uint32_t i = 0; i < r->nroots; i++)
				bytes += is_received(r, i, run) ? hd_layout_run_room(r->layout, run) : 0;
		}
	return bytes;
}

static enum hd_err grow_operands(struct hd_relay *r, struct hd_diag *diag)
{
	const uint64_t n = (uint64_t)r->nroots * r->nrows, bytes = received_bytes(r);
	void *received = hd_relay_grown(r->received, &r->received_cap, bytes, 1);

	if (received)
		r->received = received;
	void *operand = hd_relay_grown(r->operand, &r->operand_cap, n, sizeof *r->operand);
	if (operand)
		r->operand = operand;
	void *here = hd_relay_grown(r->run_here, &r->here_cap, n, 1);
	if (here)
		r->run_here = here;
	return (bytes && !received) || (n && (!operand || !here)) ? hd_fail(diag, HD_E_NOMEM,
		"no memory for the partial sums of others: %llu MiB of %u buckets",
		(unsigned long long)(bytes >> 20), r->nowned) : HD_OK;
}

/* All operands of owned buckets have their address; own roots have theirs when they are computed. */
static enum hd_err place_operands(struct hd_relay *r, struct hd_diag *diag)
{
	enum hd_err err = hd_relay_keep_lent(r, diag);
	uint64_t at = 0;

	err = err ? err : grow_operands(r, diag);
	for (uint32_t i = 0; i < r->nroots && !err; i++) {
		uint64_t row = 0;
		for (uint32_t o = 0; o < r->nowned; o++)
			for (uint32_t k = 0; k < hd_relay_nruns(r, r->owned[o]); k++, row++) {
				const uint32_t run = hd_relay_run(r, r->owned[o], k);
				const bool comes = is_received(r, i, run);
				r->operand[row * r->nroots + i] = comes ?
					(const float *)(r->received + at) : NULL;
				at += comes ? hd_layout_run_room(r->layout, run) : 0;
			}
	}
	if (!err && r->nrows && r->nroots)
		memset(r->run_here, 0, (uint64_t)r->nroots * r->nrows);
	return err;
}

const float *const *hd_relay_operands(struct hd_relay *r, uint32_t bucket)
{
	const float **row = r->operand + (uint64_t)r->row_of[bucket] * r->nroots;

	assert(r->row_of[bucket] != HD_NOBODY);

	for (uint32_t k = 0; k < hd_relay_nruns(r, bucket); k++)
		for (uint32_t i = 0; i < r->nroots; i++)
			if (r->of[i].worker == r->self &&
				hd_dist_run_has(r->worker, hd_relay_run(r, bucket, k), r->stage[i]))
				row[(uint64_t)k * r->nroots + i] = hd_dist_root_at(r->worker,
					r->engine_pass[r->of[i].pass], r->of[i].index,
					hd_relay_run(r, bucket, k));
	return row;
}

const float *const *hd_relay_own_runs(struct hd_relay *r, uint32_t bucket)
{
	assert(r->nroots == 1 && r->of[0].worker == r->self);
	for (uint32_t k = 0; k < hd_relay_nruns(r, bucket); k++)
		r->own_run[k] = hd_dist_root_at(r->worker, r->engine_pass[r->of[0].pass], 0,
			hd_relay_run(r, bucket, k));
	return r->own_run;
}

/* ---- opening ---- */

bool hd_relay_is_open(const struct hd_relay *r, uint32_t member)
{
	return r->open_epoch[member] == (uint64_t)r->view.epoch + 1 &&
		hd_hub_is_up(r->hub, r->view.member[member]);
}

/* Once for each step and channel: a transfer posted twice would be filled twice, the second time by the next
 * step. */
static enum hd_err serve(struct hd_relay *r, uint32_t member, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	if (r->view.member[member] == r->self || !hd_hub_is_up(r->hub, r->view.member[member]))
		return HD_OK;
	if (!hd_relay_is_open(r, member))
		err = hd_relay_channel(r, member, diag);
	if (err || r->served[member] == r->step + 1)
		return err;
	r->served[member] = r->step + 1;
	return hd_relay_post(r, member, diag);
}

/* What was posted for the step before has come: its buffers are free for this one. */
static enum hd_err check_filled(const struct hd_relay *r, uint64_t step, struct hd_diag *diag)
{
	for (uint32_t m = 0; m < r->view.nmembers; m++)
		if (hd_relay_is_open(r, m) && r->awaited[m])
			return hd_fail(diag, HD_E_INTEGRITY,
				"step %llu is begun while %u transfers of step %llu are awaited "
				"from worker %u", (unsigned long long)step, r->awaited[m],
				(unsigned long long)r->step, r->view.member[m]);
	return HD_OK;
}

/* An epoch has ended and the view of the next is not here: it opens its own channels, with its own rows. */
static bool is_between(const struct hd_relay *r) { return r->view.epoch != r->epoch; }

/* The first time in this view. A step that begins again keeps the metrics if all of them were there; else all
 * of them come again. */
static enum hd_err begin(struct hd_relay *r, const struct hd_exchange *x, struct hd_diag *diag)
{
	enum hd_err err = check_filled(r, x->step, diag);

	if (err)
		return err;
	memset(r->parts, 0, r->nbuckets);         /* in another view all parts come again */
	if (!r->x)
		number_rows(r, x);
	r->step = x->step;
	r->x = x;
	find_owned(r, x);
	err = hd_relay_metrics_begin(r, x->table, diag);
	err = err ? err : name_roots(r, diag);
	return err ? err : place_operands(r, diag);
}

enum hd_err hd_relay_open(struct hd_relay *r, const struct hd_exchange *x, struct hd_diag *diag)
{
	if (is_between(r))
		/* a step that was begun just before: it begins again under that view */
		return HD_OK;
	enum hd_err err = r->x && r->step == x->step ? HD_OK : begin(r, x, diag);
	for (uint32_t m = 0; m < r->view.nmembers && !err; m++)
		err = serve(r, m, diag);
	return err;
}

enum hd_err hd_relay_up(struct hd_relay *r, uint32_t worker, struct hd_diag *diag)
{
	uint32_t member = r->has_view ? hd_view_index(&r->view, worker) : HD_NOBODY;

	if (member == HD_NOBODY || !r->x || is_between(r))
		return HD_OK;
	r->open_epoch[member] = 0;
	/* A step that waits for the compute thread opens with all that are up then; its roots and buffers are
	 * not determined yet, those of the step before are void. */
	return r->step == r->x->step ? serve(r, member, diag) : HD_OK;
}
