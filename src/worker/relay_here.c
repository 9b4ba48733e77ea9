#include "worker/relay_int.h"

#include <assert.h>
#include <string.h>


/* ---- arriving ---- */

uint8_t hd_relay_part(enum hd_xfer_kind kind)
{
	static const uint8_t part[HD_XFER_KINDS] = { [HD_XFER_SUM] = 1, [HD_XFER_NORM] = 2,
		[HD_XFER_PARAMETERS] = 4, [HD_XFER_DIGEST] = 8, [HD_XFER_RATIO] = 16 };

	assert(part[kind]);
	return part[kind];
}

/* Notes that a run is here; are all of its partial sum? */
static bool partial_done(struct hd_relay *r, uint32_t worker, const struct hd_xfer_name *name,
	uint32_t bucket)
{
	uint64_t at;
	bool all = hd_relay_operand_of(r, worker, name->ordinal, name->number, &at);

	assert(all);                              /* its buffer was found by it */
	r->run_here[at] = 1;
	all = hd_relay_operand_of(r, worker, name->ordinal, bucket, &at);
	for (uint32_t k = 0; k < hd_relay_nruns(r, bucket); k++)
		all &= !r->operand[at + (uint64_t)k * r->nroots] || r->run_here[at + (uint64_t)k * r->nroots];
	return all;
}

/* Rule 2: the row that was posted for, from its sender, in its buffer. */
static enum hd_err identify(const struct hd_relay *r, uint32_t member, const struct hd_arrival *arrival,
	const struct hd_xfer_name *name, struct hd_diag *diag)
{
	if (!r->awaited[member] || name->from != member || arrival->buffer != hd_relay_buffer(r, name))
		return hd_fail(diag, HD_E_INTEGRITY,
			"step %llu: transfer %u of worker %u came to the buffer of another one",
			(unsigned long long)arrival->step, arrival->transfer, arrival->worker);
	return HD_OK;
}

enum hd_err hd_relay_arrived(struct hd_relay *r, const struct hd_arrival *arrival, struct hd_relay_news *news,
	struct hd_diag *diag)
{
	uint32_t member = hd_view_index(&r->view, arrival->worker);
	struct hd_xfer_name name;

	/* mail may be of the step after the open one (dist.h): its buffer says of which it is to be */
	if (r->x && member != HD_NOBODY && !hd_transfers_name(&r->rows, arrival->transfer, &name, NULL) &&
		hd_xfer_is_mail(name.kind)) {
		*news = (struct hd_relay_news){ .kind = name.kind };
		return hd_relay_mail_here(r, member, arrival, diag);
	}
	if (!r->x || arrival->step != r->x->step || arrival->step != r->step || member == HD_NOBODY)
		return hd_fail(diag, HD_E_PROTOCOL, "worker %u sends of step %llu while step %llu is open",
			arrival->worker, (unsigned long long)arrival->step,
			(unsigned long long)(r->x ? r->x->step : 0));
	if (hd_transfers_name(&r->rows, arrival->transfer, &name, diag))
		return HD_E_INTEGRITY;
	enum hd_err err = identify(r, member, arrival, &name, diag);
	if (err)
		return err;
	r->awaited[member]--;
	*news = (struct hd_relay_news){ .kind = name.kind, .bucket = name.number };
	switch (name.kind) {
	case HD_XFER_METRICS:
		r->metrics_here[hd_relay_metrics_at(r, member, name.number)] = 1;
		news->passes = hd_relay_passes_done(r, arrival->worker, name.number);
		break;
	case HD_XFER_TABLE:
		r->merged = true;
		memset(r->metrics_here, 1, r->nvns);
		break;
	case HD_XFER_SUM: case HD_XFER_NORM: case HD_XFER_PARAMETERS: case HD_XFER_DIGEST: case HD_XFER_RATIO:
		r->parts[name.number] |= hd_relay_part(name.kind);
		news->parm_done = r->parts[name.number] & hd_relay_part(HD_XFER_PARAMETERS) &&
			(!hd_relay_has_digest(r, name.number) ||
			r->parts[name.number] & hd_relay_part(HD_XFER_DIGEST));
		break;
	case HD_XFER_PARTIAL:
		news->bucket = hd_layout_run(r->layout, name.number).bucket;
		news->ordinal = hd_relay_ordinal(r, name.ordinal);
		news->partial_done = partial_done(r, arrival->worker, &name, news->bucket);
		break;
	case HD_XFER_ACTIVATIONS: case HD_XFER_GRADIENTS: case HD_XFER_MOMENTS: case HD_XFER_SHARDS:
	case HD_XFER_STATE:
	case HD_XFER_SHADOW:
		break;
	}
	return HD_OK;
}

/* ---- called by the compute thread ---- */

void hd_relay_take_norms(struct hd_relay *r)
{
	for (uint32_t b = 0; b < r->nbuckets; b++)
		if (!hd_dist_summed(r->worker, b))
			memcpy(hd_dist_norm_at(r->worker, b),
				r->norm + hd_layout_bucket(r->layout, b).first_segment,
				hd_dist_norm_bytes(r->worker, b));
}

double *hd_relay_ratio_at(const struct hd_relay *r, uint32_t bucket)
{
	return r->ratio + 2 * (size_t)hd_layout_bucket(r->layout, bucket).first_segment;
}

void hd_relay_own_ratios(struct hd_relay *r, const uint8_t *own)
{
	for (uint32_t b = 0; b < r->nbuckets; b++)
		if (own[b])
			hd_dist_ratio_get(r->worker, b, hd_relay_ratio_at(r, b));
}

void hd_relay_take_ratios(struct hd_relay *r)
{
	for (uint32_t b = 0; b < r->nbuckets; b++)
		if (r->parts[b] & hd_relay_part(HD_XFER_RATIO))
			hd_dist_ratio_put(r->worker, b, hd_relay_ratio_at(r, b));
}

void hd_relay_own_digests(struct hd_relay *r, const uint8_t *own)
{
	for (uint32_t b = 0; b < r->nbuckets; b++)
		if (own[b] && hd_relay_has_digest(r, b))
			hd_dist_digest_get(r->worker, b, r->digest + hd_relay_digest_at(r, b));
}

void hd_relay_take_digests(struct hd_relay *r, const uint8_t *own)
{
	for (uint32_t b = 0; b < r->nbuckets; b++)
		if (!own[b] && hd_relay_has_digest(r, b))
			hd_dist_digest_put(r->worker, b, r->digest + hd_relay_digest_at(r, b));
}

/* ---- what is wanted first ---- */

static uint32_t want(struct hd_relay *r, const struct hd_xfer_name *name)
{
	const uint32_t id = hd_transfers_id(&r->rows, *name);

	hd_hub_want(r->hub, r->view.member[name->from], id);
	return id;
}

/* Partial sums of a bucket that this worker adds, as far as they are not here. */
static uint32_t want_partials(struct hd_relay *r, uint32_t bucket)
{
	uint32_t first = HD_NOBODY;

	for (uint32_t i = 0; i < r->nroots; i++)
		for (uint32_t k = 0; k < hd_relay_nruns(r, bucket) && r->of[i].worker != r->self; k++) {
			const uint32_t run = hd_relay_run(r, bucket, k),
				row = r->x->paired ? r->rows.roots : r->of[i].ordinal;
			uint64_t at;
			if (!hd_dist_run_has(r->worker, run, r->stage[i]) || !hd_relay_operand_of(r,
				r->of[i].worker, row, run, &at) || r->run_here[at])
				continue;
			const uint32_t id = want(r, &(struct hd_xfer_name){ HD_XFER_PARTIAL,
				hd_view_index(&r->view, r->of[i].worker), r->me, run, row });
			first = first == HD_NOBODY ? id : first;
		}
	return first;
}

uint32_t hd_relay_want(struct hd_relay *r, uint32_t bucket)
{
	const bool parm = r->x && r->x->copies && !hd_exchange_chained(r->x, bucket);

	/* between two views, or before the step is open, nothing is posted */
	if (!r->x || r->view.epoch != r->epoch || r->step != r->x->step || (parm ?
		hd_exchange_fresh(r->x, bucket) : hd_exchange_summed(r->x, bucket)))
		return HD_NOBODY;
	const uint32_t from = parm ? hd_exchange_parm_source(r->x, bucket) : hd_exchange_sum_from(r->x,
		bucket);
	if (from == HD_NOBODY)
		return HD_NOBODY;
	if (from == r->me)
		return parm ? HD_NOBODY : want_partials(r, bucket);
	return want(r, &(struct hd_xfer_name){ parm ? HD_XFER_PARAMETERS : HD_XFER_SUM, from, r->me,
		bucket, 0 });
}
