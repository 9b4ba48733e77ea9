#include "worker/relay_int.h"

#include <assert.h>

/* ---- channels ---- */

/* The rows from one member to another, from row[0] on. */
static size_t fill(struct hd_relay *r, uint32_t from, uint32_t to, struct hd_transfer *row)
{
	size_t n = hd_transfers_between(&r->rows, &r->view, r->x, from, to, r->id);

	for (size_t i = 0; i < n; i++) {
		struct hd_xfer_name name = { 0 };
		enum hd_err err = hd_transfers_name(&r->rows, r->id[i], &name, NULL);
		assert(!err && name.from == from && name.to == to);
		(void)err;
		row[i] = (struct hd_transfer){ .id = r->id[i],
			.bytes = hd_transfers_row(&r->rows, &name).len_bytes };
	}
	return n;
}

enum hd_err hd_relay_channel(struct hd_relay *r, uint32_t member, struct hd_diag *diag)
{
	uint32_t worker = r->view.member[member];
	size_t n_in = hd_transfers_between(&r->rows, &r->view, r->x, member, r->me, NULL),
		n_out = hd_transfers_between(&r->rows, &r->view, r->x, r->me, member, NULL);
	const size_t all_in = n_in + hd_dist_mail_list(r->worker, (uint16_t)member, false, NULL);
	const size_t all_out = n_out + hd_dist_mail_list(r->worker, (uint16_t)member, true, NULL);

	void *channel = hd_relay_grown(r->channel, &r->channel_cap, all_in + all_out, sizeof *r->channel);
	if (channel)
		r->channel = channel;
	void *id = hd_relay_grown(r->id, &r->id_cap, n_in > n_out ? n_in : n_out, sizeof *r->id);
	if (id)
		r->id = id;
	if (!channel || !id)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the transfers with worker %u", worker);
	fill(r, member, r->me, r->channel);
	fill(r, r->me, member, r->channel + all_in);
	/* mail has the last blocks of the table: ids rise */
	enum hd_err err = hd_relay_mail_rows(r, member, false, r->channel + n_in, diag);
	err = err ? err : hd_relay_mail_rows(r, member, true, r->channel + all_in + n_out, diag);
	err = err ? err : hd_hub_channel(r->hub, worker, r->channel, all_in, r->channel + all_in, all_out,
		diag);
	if (!err)
		r->open_epoch[member] = (uint64_t)r->view.epoch + 1;
	r->served[member] = r->awaited[member] = 0;
	return err;
}

/* ---- receive buffers ---- */

static void *partial_buffer(const struct hd_relay *r, const struct hd_xfer_name *name)
{
	uint64_t at;

	return hd_relay_operand_of(r, r->view.member[name->from], name->ordinal, name->number, &at) ?
		(float *)(uintptr_t)r->operand[at] : NULL;
}

void *hd_relay_buffer(const struct hd_relay *r, const struct hd_xfer_name *name)
{
	uint32_t number = name->number;

	if (name->to != r->me)
		return NULL;
	switch (name->kind) {
	case HD_XFER_PARTIAL:    return partial_buffer(r, name);
	case HD_XFER_SUM:        return hd_dist_sum_at(r->worker, number);
	case HD_XFER_NORM:       return r->norm + hd_layout_bucket(r->layout, number).first_segment;
	case HD_XFER_RATIO:      return hd_relay_ratio_at(r, number);
	case HD_XFER_PARAMETERS: return hd_dist_parm_at(r->worker, number);
	case HD_XFER_DIGEST:     return r->digest + hd_relay_digest_at(r, number);
	case HD_XFER_METRICS:    return r->metrics + r->metrics_len *
		hd_relay_metrics_at(r, name->from, number);
	case HD_XFER_TABLE:      return r->table;
	case HD_XFER_ACTIVATIONS: case HD_XFER_GRADIENTS: case HD_XFER_MOMENTS: case HD_XFER_SHARDS:
	case HD_XFER_STATE:
	case HD_XFER_SHADOW: break;
	}
	return NULL;
}

/* ---- posting ---- */

static enum hd_err post(struct hd_relay *r, uint32_t member, enum hd_xfer_kind kind, uint32_t number,
	uint32_t ordinal, struct hd_diag *diag)
{
	const struct hd_xfer_name name = { kind, member, r->me, number, ordinal };
	enum hd_err err = hd_hub_post(r->hub, r->view.member[member], hd_transfers_id(&r->rows, name),
		hd_relay_buffer(r, &name), diag);

	r->awaited[member] += !err;
	return err == HD_E_PEERLOST ? HD_OK : err;         /* `lost` says so */
}

static enum hd_err post_partial(struct hd_relay *r, uint32_t member, struct hd_diag *diag)
{
	uint32_t worker = r->view.member[member];
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; i < r->nroots; i++)
		for (uint32_t b = 0; b < r->nowned && !err && r->of[i].worker == worker; b++) {
			uint32_t bucket = r->owned[b];
			uint64_t row = r->row_of[bucket];
			if (!hd_exchange_wants_roots(r->x, bucket) ||
				hd_exchange_has_root(r->x, worker, r->of[i].ordinal, bucket))
				continue;
			for (uint32_t k = 0; k < hd_relay_nruns(r, bucket) && !err; k++)
				if (r->operand[(row + k) * r->nroots + i] &&
					!r->run_here[(row + k) * r->nroots + i])
					err = post(r, member, HD_XFER_PARTIAL, hd_relay_run(r, bucket, k),
						r->x->paired ? r->rows.roots : r->of[i].ordinal, diag);
		}
	return err;
}

static enum hd_err post_metrics(struct hd_relay *r, uint32_t member, struct hd_diag *diag)
{
	const struct hd_passes *p = &r->x->passes;
	uint32_t worker = r->view.member[member];
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; i < p->npasses; i++)
		for (uint32_t k = 0; k < p->pass[i].nranges && p->pass[i].worker == worker &&
			!hd_exchange_has_leaves(r->x, i); k++) {
			const struct hd_vrange *range = &p->range[p->pass[i].first_range + k];
			for (uint32_t v = range->first; v < range->first + range->n && !err; v++)
				if (hd_relay_tells(r, &p->pass[i], v))
					err = post(r, member, HD_XFER_METRICS, v, 0, diag);
		}
	return err;
}

/* Of partial state: what a member sends of a bucket beside its sum. */
static enum hd_err post_partial_state(struct hd_relay *r, uint32_t member, uint32_t b, struct hd_diag *diag)
{
	uint64_t mine = UINT64_C(1) << r->x->me;
	bool parm = hd_exchange_parm_source(r->x, b) == member && hd_exchange_parm_to(r->x, b) & mine &&
		!hd_exchange_fresh(r->x, b);
	enum hd_err err = HD_OK;

	if (hd_exchange_norm_source(r->x, b) == member && hd_exchange_norm_to(r->x, b) & mine &&
		!(r->parts[b] & hd_relay_part(HD_XFER_NORM)))
		err = post(r, member, HD_XFER_NORM, b, 0, diag);
	if (!err && hd_exchange_ratio_source(r->x, b) == member && hd_exchange_ratio_to(r->x, b) & mine &&
		!(r->parts[b] & hd_relay_part(HD_XFER_RATIO)))
		err = post(r, member, HD_XFER_RATIO, b, 0, diag);
	if (parm && !err)
		err = post(r, member, HD_XFER_PARAMETERS, b, 0, diag);
	if (parm && !err && hd_relay_has_digest(r, b))
		err = post(r, member, HD_XFER_DIGEST, b, 0, diag);
	return err;
}

enum hd_err hd_relay_post(struct hd_relay *r, uint32_t member, struct hd_diag *diag)
{
	uint32_t source = hd_exchange_table_source(r->x);
	enum hd_err err = post_partial(r, member, diag);

	assert(member != r->me);
	for (uint32_t b = 0; b < r->nbuckets && !err; b++)
		if (hd_exchange_sum_from(r->x, b) == member && !hd_exchange_summed(r->x, b))
			err = post(r, member, HD_XFER_SUM, b, 0, diag);
	for (uint32_t b = 0; b < r->nbuckets && !err && r->x->held.partial; b++)
		err = post_partial_state(r, member, b, diag);
	if (!err && source == member && !r->x->table)
		err = post(r, member, HD_XFER_TABLE, 0, 0, diag);
	if (!err && source == HD_NOBODY && !r->x->table)
		err = post_metrics(r, member, diag);
	return err;
}
