#include "worker/relay_int.h"

#include <assert.h>

#include "base/alloc.h"

#define LENT_TOKEN (UINT64_C(1) << 62)    /* with the serial of the buffers */

/* Id and length are the row's, the urgency is that of the step. */
static enum hd_err send_as(struct hd_relay *r, struct hd_xfer_name name, const void *bytes, uint64_t token,
	struct hd_diag *diag)
{
	struct hd_xfer row = hd_transfers_row(&r->rows, &name);
	uint32_t id = hd_transfers_id(&r->rows, name);
	struct hd_send s = { .transfer = id, .step = r->x->step,
		.priority = (int32_t)hd_transfers_priority(&r->rows, &name, (uint64_t)r->x->step),
		.bytes = bytes, .len = row.len_bytes, .token = token ? token : id };

	assert(row.class == HD_XFER_PLANNED && s.priority >= 0);
	enum hd_err err = hd_hub_send(r->hub, row.to, &s, diag);
	r->lent += token && !err;
	return err == HD_E_PEERLOST ? HD_OK : err;
}

static enum hd_err send(struct hd_relay *r, struct hd_xfer_name name, const void *bytes, struct hd_diag *diag)
{
	return send_as(r, name, bytes, 0, diag);
}

enum hd_err hd_relay_keep_lent(struct hd_relay *r, struct hd_diag *diag)
{
	if (!r->lent)
		return HD_OK;
	struct hd_relay_kept *kept = hd_alloc(sizeof *kept);
	if (!kept)
		return hd_fail(diag, HD_E_NOMEM, "no memory to keep the partial sums that are being sent");
	*kept = (struct hd_relay_kept){ r->kept, r->received, r->received_serial++, r->lent };
	r->kept = kept;
	r->received = NULL;
	r->received_cap = 0;
	r->lent = 0;
	return HD_OK;
}

bool hd_relay_given_back(struct hd_relay *r, uint64_t token)
{
	if (token >> 62 != 1)
		return false;
	if ((uint32_t)token == r->received_serial) {
		assert(r->lent);
		r->lent--;
		return true;
	}
	struct hd_relay_kept **at = &r->kept;
	while (*at && (*at)->serial != (uint32_t)token)
		at = &(*at)->next;
	assert(*at);
	if (--(*at)->lent)
		return true;
	struct hd_relay_kept *gone = *at;
	*at = gone->next;
	hd_free(gone->bytes);
	hd_free(gone);
	return true;
}

/* The same bytes to each of some members. */
static enum hd_err send_each(struct hd_relay *r, enum hd_xfer_kind kind, uint32_t number, uint64_t members,
	const void *bytes, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	for (uint32_t m = 0; m < r->view.nmembers && !err; m++)
		if (members >> m & 1 && m != r->me)
			err = send(r, (struct hd_xfer_name){ kind, r->me, m, number, 0 }, bytes, diag);
	return err;
}

/* Adds what came of a run, and this worker's own, in the buffer of what the first child sent: its own root
 * stays, since a step that is restarted sends it again. In the order of the tree: a block of members joins
 * its sibling. Once a step and bucket. */
static const float *combined(struct hd_relay *r, uint32_t bucket, uint32_t k)
{
	const uint32_t run = hd_relay_run(r, bucket, k), children = hd_relay_children(r, bucket);
	const float *own = hd_dist_root_at(r->worker, r->engine_pass[0], 0, run);

	if (!children)
		return own;
	const float *const *operand = r->operand + ((uint64_t)r->row_of[bucket] + k) * r->nroots;
	float *to = (float *)(uintptr_t)operand[1];
	for (uint64_t i = 0; i < hd_layout_run(r->layout, run).len; i++)
		to[i] += own[i];
	for (uint32_t child = 2; child <= children; child++)
		for (uint64_t i = 0; i < hd_layout_run(r->layout, run).len; i++)
			to[i] += operand[child][i];
	return to;
}

static enum hd_err send_pair(struct hd_relay *r, uint32_t bucket, uint32_t to, struct hd_diag *diag)
{
	struct hd_xfer_name name = { HD_XFER_PARTIAL, r->me, to, bucket, r->rows.roots };
	const uint64_t lent = hd_relay_children(r, bucket) ? LENT_TOKEN | r->received_serial : 0;
	enum hd_err err = HD_OK;

	for (uint32_t k = 0; k < hd_relay_nruns(r, bucket) && !err; k++) {
		name.number = hd_relay_run(r, bucket, k);
		if (hd_dist_run_has(r->worker, name.number, 0))
			err = send_as(r, name, combined(r, bucket, k), lent, diag);
	}
	return err;
}

enum hd_err hd_relay_partial(struct hd_relay *r, uint32_t pass, uint32_t bucket, uint32_t to,
	struct hd_diag *diag)
{
	struct hd_xfer_name name = { HD_XFER_PARTIAL, r->me, hd_view_index(&r->view, to), bucket, 0 };
	enum hd_err err = HD_OK;

	if (r->x->paired)
		return send_pair(r, bucket, name.to, diag);
	for (uint32_t i = 0; i < r->nroots && !err; i++) {
		if (r->of[i].worker != r->self || r->of[i].pass != pass)
			continue;
		name.ordinal = r->of[i].ordinal;
		for (uint32_t k = 0; k < hd_relay_nruns(r, bucket) && !err; k++) {
			name.number = hd_relay_run(r, bucket, k);
			if (!hd_dist_run_has(r->worker, name.number, r->stage[i]))
				continue;
			err = send(r, name, hd_dist_root_at(r->worker, r->engine_pass[pass], r->of[i].index,
				name.number), diag);
		}
	}
	return err;
}

enum hd_err hd_relay_sum(struct hd_relay *r, uint32_t bucket, uint64_t members, struct hd_diag *diag)
{
	return send_each(r, HD_XFER_SUM, bucket, members, hd_dist_sum_at(r->worker, bucket), diag);
}

enum hd_err hd_relay_norm(struct hd_relay *r, uint32_t bucket, uint64_t members, struct hd_diag *diag)
{
	return send_each(r, HD_XFER_NORM, bucket, members, hd_dist_norm_at(r->worker, bucket), diag);
}

enum hd_err hd_relay_ratio(struct hd_relay *r, uint32_t bucket, uint64_t members, struct hd_diag *diag)
{
	return send_each(r, HD_XFER_RATIO, bucket, members, hd_relay_ratio_at(r, bucket), diag);
}

enum hd_err hd_relay_parm(struct hd_relay *r, uint32_t bucket, uint64_t members, struct hd_diag *diag)
{
	enum hd_err err = send_each(r, HD_XFER_PARAMETERS, bucket, members, hd_dist_parm_at(r->worker,
		bucket), diag);

	return err || !hd_relay_has_digest(r, bucket) ? err : send_each(r, HD_XFER_DIGEST, bucket, members,
		r->digest + hd_relay_digest_at(r, bucket), diag);
}

enum hd_err hd_relay_metrics(struct hd_relay *r, uint32_t pass, struct hd_diag *diag)
{
	const struct hd_pass *p = hd_passes_find(&r->x->passes, r->self, pass);
	enum hd_err err = HD_OK;

	for (uint32_t k = 0; p && k < p->nranges; k++)
		for (uint32_t i = 0; i < r->x->passes.range[p->first_range + k].n && !err; i++) {
			uint32_t v = r->x->passes.range[p->first_range + k].first + i;
			if (!hd_relay_tells(r, p, v))
				continue;
			err = send_each(r, HD_XFER_METRICS, v, UINT64_MAX, r->metrics +
				hd_relay_metrics_at(r, r->me, v) * r->metrics_len,
				diag);
		}
	return err;
}

enum hd_err hd_relay_table(struct hd_relay *r, uint64_t members, struct hd_diag *diag)
{
	hd_relay_merge(r);
	return send_each(r, HD_XFER_TABLE, 0, members, r->table, diag);
}
