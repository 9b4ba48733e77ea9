#include "worker/relay_int.h"

#include <assert.h>
#include <string.h>

#include "base/le.h"

/* ---- arriving ---- */

uint8_t hd_relay_part(enum hd_xfer_kind kind)
{
	static const uint8_t part[HD_XFER_KINDS] = { [HD_XFER_SUM] = 1, [HD_XFER_NORM] = 2,
		[HD_XFER_PARAMETERS] = 4, [HD_XFER_DIGEST] = 8 };

	assert(part[kind]);
	return part[kind];
}

/* The pass of `worker` that has virtual node v, if the metrics of all of it are here. */
static uint32_t pass_done(const struct hd_relay *r, uint32_t worker, uint32_t v)
{
	const struct hd_passes *p = &r->x->passes;

	for (uint32_t i = 0; i < p->npasses; i++) {
		bool its = false, all = true;
		for (uint32_t k = 0; k < p->pass[i].nranges && p->pass[i].worker == worker; k++) {
			const struct hd_vrange *range = &p->range[p->pass[i].first_range + k];
			its |= v >= range->first && v < range->first + range->n;
			for (uint32_t u = range->first; u < range->first + range->n; u++)
				all &= r->metrics_here[u] != 0;
		}
		if (its)
			return all ? p->pass[i].pass : HD_NOBODY;
	}
	return HD_NOBODY;
}

static void split_table(struct hd_relay *r)
{
	uint64_t entry = r->metrics_len - HD_RELAY_HEAD;

	for (uint32_t v = 0; v < r->nvns; v++) {
		uint8_t *to = r->metrics + v * r->metrics_len;
		memcpy(to, r->table, HD_RELAY_HEAD);
		hd_put32(to + 4, 1);
		memcpy(to + HD_RELAY_HEAD, r->table + HD_RELAY_HEAD + v * entry, entry);
		r->metrics_here[v] = 1;
	}
}

/* Rule 2: the row that was posted for, from its sender, in its buffer. */
static enum hd_err identify(const struct hd_relay *r, uint32_t member, const struct hd_arrival *arrival,
	struct hd_xfer_name *name, struct hd_diag *diag)
{
	if (hd_transfers_name(&r->rows, arrival->transfer, name, diag))
		return HD_E_INTEGRITY;
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

	if (!r->x || arrival->step != r->x->step || arrival->step != r->step || member == HD_NOBODY)
		return hd_fail(diag, HD_E_PROTOCOL, "worker %u sends of step %llu while step %llu is open",
			arrival->worker, (unsigned long long)arrival->step,
			(unsigned long long)(r->x ? r->x->step : 0));
	enum hd_err err = identify(r, member, arrival, &name, diag);
	if (err)
		return err;
	r->awaited[member]--;
	*news = (struct hd_relay_news){ .kind = name.kind, .ordinal = name.ordinal, .bucket = name.number };
	switch (name.kind) {
	case HD_XFER_METRICS:
		r->metrics_here[name.number] = 1;
		news->pass = pass_done(r, arrival->worker, name.number);
		news->pass_done = news->pass != HD_NOBODY;
		break;
	case HD_XFER_TABLE:
		split_table(r);
		break;
	case HD_XFER_SUM: case HD_XFER_NORM: case HD_XFER_PARAMETERS: case HD_XFER_DIGEST:
		r->parts[name.number] |= hd_relay_part(name.kind);
		news->parm_done = r->parts[name.number] & hd_relay_part(HD_XFER_PARAMETERS) &&
			(!hd_relay_has_digest(r, name.number) ||
			r->parts[name.number] & hd_relay_part(HD_XFER_DIGEST));
		break;
	case HD_XFER_PARTIAL: case HD_XFER_ACTIVATIONS: case HD_XFER_GRADIENTS: case HD_XFER_STATE:
	case HD_XFER_SHADOW:
		break;
	}
	return HD_OK;
}

/* ---- called by the compute thread ---- */

void hd_relay_own_metrics(struct hd_relay *r, uint32_t pass)
{
	uint32_t n = hd_dist_nleaves(r->worker, r->engine_pass[pass]);
	uint64_t entry = r->metrics_len - HD_RELAY_HEAD;
	uint8_t *all = r->own;

	hd_dist_leaves_get(r->worker, r->engine_pass[pass], all);
	for (uint32_t i = 0; i < n; i++) {
		const uint8_t *from = all + HD_RELAY_HEAD + i * entry;
		uint8_t *to = r->metrics + hd_get32(from) * r->metrics_len;
		memcpy(to, all, HD_RELAY_HEAD);
		hd_put32(to + 4, 1);
		memcpy(to + HD_RELAY_HEAD, from, entry);
	}
}

enum hd_err hd_relay_take(struct hd_relay *r, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	for (uint32_t v = 0; v < r->nvns && !err; v++)
		if (r->metrics_here[v])
			err = hd_dist_leaves_put(r->worker, HD_DIST_NOBODY, r->metrics + v * r->metrics_len,
				r->metrics_len,
			diag);
	return err;
}

void hd_relay_take_norms(struct hd_relay *r)
{
	for (uint32_t b = 0; b < r->nbuckets; b++)
		if (!hd_dist_summed(r->worker, b))
			memcpy(hd_dist_norm_at(r->worker, b),
				r->norm + hd_layout_bucket(r->layout, b).first_segment,
				hd_dist_norm_bytes(r->worker, b));
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
