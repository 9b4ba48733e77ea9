#include "worker/relay_int.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/le.h"

/* Metrics of virtual nodes: one message of each worker that computes a part of one (relay.h). */

uint64_t hd_relay_metrics_at(const struct hd_relay *r, uint32_t member, uint32_t v)
{
	uint64_t plane = 0;

	for (uint32_t m = 0; m < member && hd_dist_nstages(r->worker) > 1; m++)
		plane += hd_dist_says(r->worker, (uint16_t)m, v);
	assert(plane * r->nvns + v < r->metrics_cap);
	return plane * r->nvns + v;
}

static uint32_t count_planes(const struct hd_relay *r)
{
	uint32_t most = 1;

	for (uint32_t v = 0; v < r->nvns && hd_dist_nstages(r->worker) > 1; v++) {
		uint32_t n = 0;
		for (uint32_t m = 0; m < r->view.nmembers; m++)
			n += hd_dist_says(r->worker, (uint16_t)m, v);
		most = n > most ? n : most;
	}
	return most;
}

static uint8_t *entry_of(struct hd_relay *r, uint32_t v)
{
	return r->table + HD_RELAY_HEAD + v * (r->metrics_len - HD_RELAY_HEAD);
}

/* Under whatever view: the plan in use is still that of the step, and knows which worker said what. */
static void merge_entry(struct hd_relay *r, uint32_t v)
{
	uint8_t *to = entry_of(r, v);

	memcpy(to, r->metrics + v * r->metrics_len + HD_RELAY_HEAD, r->metrics_len - HD_RELAY_HEAD);
	for (uint32_t m = 0; m < HD_MAX_MEMBERS && r->nplanes > 1; m++)
		if (hd_dist_says(r->worker, (uint16_t)m, v))
			hd_dist_leaf_merge(r->worker, (uint16_t)m, r->metrics + r->metrics_len *
				hd_relay_metrics_at(r, m, v) + HD_RELAY_HEAD, to);
}

void hd_relay_merge(struct hd_relay *r)
{
	if (r->merged)
		return;
	memcpy(r->table, r->metrics, HD_RELAY_HEAD);
	hd_put32(r->table + 4, r->nvns);
	for (uint32_t v = 0; v < r->nvns; v++)
		merge_entry(r, v);
	r->merged = true;
}

enum hd_err hd_relay_planes(struct hd_relay *r, uint32_t n, struct hd_diag *diag)
{
	if ((uint64_t)n * r->nvns <= r->metrics_cap && (uint64_t)n * r->nvns <= r->metrics_here_cap)
		return HD_OK;
	void *metrics = hd_relay_grown(r->metrics, &r->metrics_cap, (uint64_t)n * r->nvns, r->metrics_len);
	void *here = hd_relay_grown(r->metrics_here, &r->metrics_here_cap, (uint64_t)n * r->nvns, 1);
	r->metrics = metrics ? metrics : r->metrics;
	r->metrics_here = here ? here : r->metrics_here;
	return metrics && here ? HD_OK : hd_fail(diag, HD_E_NOMEM,
		"no memory for what %u workers say of %u virtual nodes", n, r->nvns);
}

enum hd_err hd_relay_metrics_begin(struct hd_relay *r, bool keep, struct hd_diag *diag)
{
	if (keep) {
		hd_relay_merge(r);
		return HD_OK;
	}
	r->merged = false;
	r->nsaid = r->view.nmembers;
	const uint32_t n = count_planes(r);
	enum hd_err err = hd_relay_planes(r, n, diag);
	if (err)
		return err;
	r->nplanes = n;
	memset(r->metrics_here, 0, (uint64_t)n * r->nvns);
	return HD_OK;
}

static bool holds(const struct hd_relay *r, const struct hd_pass *pass, uint32_t v)
{
	bool its = false;

	for (uint32_t k = 0; k < pass->nranges; k++) {
		const struct hd_vrange *range = &r->x->passes.range[pass->first_range + k];
		its |= v >= range->first && v < range->first + range->n;
	}
	return its;
}

bool hd_relay_tells(const struct hd_relay *r, const struct hd_pass *pass, uint32_t v)
{
	for (const struct hd_pass *p = r->x->passes.pass; p < pass; p++)
		if (p->worker == pass->worker && holds(r, p, v))
			return false;
	return holds(r, pass, v);
}

static bool all_here(const struct hd_relay *r, const struct hd_pass *pass)
{
	const uint32_t member = hd_view_index(&r->view, pass->worker);
	bool all = true;

	for (uint32_t k = 0; k < pass->nranges; k++) {
		const struct hd_vrange *range = &r->x->passes.range[pass->first_range + k];
		for (uint32_t u = range->first; u < range->first + range->n; u++)
			all &= r->metrics_here[hd_relay_metrics_at(r, member, u)] != 0;
	}
	return all;
}

uint32_t hd_relay_passes_done(const struct hd_relay *r, uint32_t worker, uint32_t v)
{
	const struct hd_passes *p = &r->x->passes;
	uint32_t done = 0;

	for (uint32_t i = 0; i < p->npasses; i++)
		if (p->pass[i].worker == worker && holds(r, &p->pass[i], v) && all_here(r, &p->pass[i]))
			done |= UINT32_C(1) << p->pass[i].pass;
	return done;
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
		uint8_t *to = r->metrics + hd_relay_metrics_at(r, r->me, hd_get32(from)) * r->metrics_len;
		memcpy(to, all, HD_RELAY_HEAD);
		hd_put32(to + 4, 1);
		memcpy(to + HD_RELAY_HEAD, from, entry);
	}
}

/* Has any other member said something of it? */
static bool is_heard(const struct hd_relay *r, uint32_t v)
{
	bool here = false;

	for (uint32_t plane = 0; plane < r->nplanes; plane++)
		here |= r->metrics_here[(uint64_t)plane * r->nvns + v] != 0;
	return here;
}

static enum hd_err take_table(struct hd_relay *r, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	memcpy(r->own, r->table, HD_RELAY_HEAD);
	hd_put32(r->own + 4, 1);
	for (uint32_t v = 0; v < r->nvns && !err; v++) {
		if (!is_heard(r, v))
			continue;
		memcpy(r->own + HD_RELAY_HEAD, entry_of(r, v), r->metrics_len - HD_RELAY_HEAD);
		err = hd_dist_leaves_put(r->worker, HD_DIST_NOBODY, r->own, r->metrics_len, diag);
	}
	return err;
}

enum hd_err hd_relay_take(struct hd_relay *r, struct hd_diag *diag)
{
	/* a view may come in force meanwhile (member.h), and all be merged for it: neither is read again */
	const bool merged = r->merged;
	enum hd_err err = merged ? take_table(r, diag) : HD_OK;

	for (uint32_t m = 0; m < r->nsaid && !merged; m++)
		for (uint32_t v = 0; v < r->nvns && !err; v++) {
			if (r->nplanes == 1 ? m : !hd_dist_says(r->worker, (uint16_t)m, v))
				continue;
			const uint64_t at = hd_relay_metrics_at(r, m, v);
			if (r->metrics_here[at])
				err = hd_dist_leaves_put(r->worker, r->nplanes > 1 ? (uint16_t)m :
					HD_DIST_NOBODY, r->metrics + at * r->metrics_len, r->metrics_len,
						diag);
		}
	return err;
}
