#include "engine/worker_int.h"

#include <assert.h>
#include <string.h>

#include "base/le.h"
#include "engine/overlap.h"
#include "engine/part_int.h"

/* What leaves say besides gradients, as bytes of little end (dist.h draws them). */

enum { VERSION = 1, HEAD = 8, ENTRY_HEAD = 8 };

/* Those of losses that are not added do not travel. */
static uint64_t fields_of(const struct hd_worker *w) { return HD_LEAF_FIELDS - HD_MODEL_TERMS +
	w->task->nterms; }

/* ---- what is known ---- */

static const struct hd_pipe *pipe_of(const struct hd_worker *w)
{
	return hd_overlap_tables(hd_worker_work(w));
}

static uint32_t nstages_of(const struct hd_worker *w) { return pipe_of(w) ? pipe_of(w)->nstages : 1; }

static bool *known_of(const struct hd_worker *w, uint32_t stage, uint32_t vn)
{
	return (bool *)w->step->known + (size_t)stage * w->task->job->nvns + vn;
}

void hd_leaves_begin(struct hd_worker *w)
{
	w->step->known = pipe_of(w) ? pipe_of(w)->known : w->step->known_whole;
	memset(w->step->known, 0, (size_t)nstages_of(w) * w->task->job->nvns);
	w->step->nknown = 0;
}

static void mark(struct hd_worker *w, uint32_t stage, uint32_t vn)
{
	bool *known = known_of(w, stage, vn);

	w->step->nknown += !*known;
	*known = true;
}

/* Does the worker say what that stage says of the leaf? */
static bool says(const struct hd_worker *w, uint16_t from, uint32_t stage, uint32_t vn)
{
	const struct hd_pipe *pipe = pipe_of(w);

	return !pipe || from == HD_DIST_NOBODY || pipe->plan->worker[hd_cell_of(pipe, stage, vn)->rank] ==
		from;
}

static uint32_t sayer(const struct hd_worker *w, uint64_t field)
{
	const uint64_t n = fields_of(w);

	return pipe_of(w) ? pipe_of(w)->says[field < n ? field : field - n + HD_LEAF_FIELDS] : 0;
}

void hd_leaves_computed(struct hd_worker *w, const struct hd_work *work)
{
	for (uint32_t s = 0; s < nstages_of(w); s++)
		for (uint32_t v = 0; v < w->task->job->nvns; v++)
			if (work->has[v] && (!work->pipe || hd_cell_of(work->pipe, s, v)->seat))
				mark(w, s, v);
}

/* ---- bytes ---- */

static uint64_t entry_bytes(const struct hd_worker *w)
{
	return ENTRY_HEAD + (fields_of(w) + w->step->moments.elems) * sizeof(double);
}

uint64_t hd_dist_leaves_bytes(const struct hd_worker *w, uint32_t n) { return HEAD + n * entry_bytes(w); }

static uint8_t *put_f64(uint8_t *at, double x)
{
	uint64_t bits;

	memcpy(&bits, &x, sizeof bits);
	hd_put64(at, bits);
	return at + sizeof bits;
}

static double get_f64(const uint8_t *at)
{
	uint64_t bits = hd_get64(at);
	double x;

	memcpy(&x, &bits, sizeof x);
	return x;
}

static void put_entry(const struct hd_worker *w, uint32_t v, uint8_t *at)
{
	const struct hd_leaf *leaf = &w->step->leaf[v];
	const double *moments = w->step->moments.leaf + v * w->step->moments.elems;

	hd_put32(at, v);
	hd_put32(at + 4, 0);
	at += ENTRY_HEAD;
	for (uint64_t k = 0; k < fields_of(w); k++)
		at = put_f64(at, *(&leaf->loss + k));
	for (uint64_t i = 0; i < w->step->moments.elems; i++)
		at = put_f64(at, moments[i]);
}

static void put_leaves(const struct hd_worker *w, const uint8_t *has, uint32_t n, uint8_t *bytes)
{
	uint8_t *at = bytes + HEAD;

	hd_put32(bytes, VERSION);
	hd_put32(bytes + 4, n);
	for (uint32_t v = 0; v < w->task->job->nvns; v++)
		if (!has || has[v]) {
			put_entry(w, v, at);
			at += entry_bytes(w);
		}
	assert(at == bytes + hd_dist_leaves_bytes(w, n));
}

void hd_dist_leaves_get(const struct hd_worker *w, uint32_t pass, uint8_t *bytes)
{
	const struct hd_work *work = pass ? &w->step->repair[pass - 1] : hd_worker_work(w);

	assert(work->computed);
	put_leaves(w, work->has, work->nleaves, bytes);
}

void hd_dist_table_get(const struct hd_worker *w, uint8_t *bytes)
{
	assert(hd_dist_leaves_missing(w) == 0);
	put_leaves(w, NULL, w->task->job->nvns, bytes);
}

/* Is entry i what it must be, and no other than what is known here? */
static enum hd_err check_entry(const struct hd_worker *w, uint16_t from, const uint8_t *at, int64_t last,
	struct hd_diag *diag)
{
	uint32_t v = hd_get32(at);

	if (v >= w->task->job->nvns || (int64_t)v <= last || hd_get32(at + 4))
		return hd_fail(diag, HD_E_PROTOCOL,
			"step %lld: entries of leaves must ascend below %u: %u after %lld",
			(long long)w->count.step,
			w->task->job->nvns, v, (long long)last);
	bool same = true;
	const double *known = &w->step->leaf[v].loss, *moments = w->step->moments.leaf +
		v * w->step->moments.elems;
	const uint64_t nfields = fields_of(w);
	for (uint64_t i = 0; i < nfields + w->step->moments.elems; i++) {
		uint8_t bytes[8];
		if (!says(w, from, sayer(w, i), v) || !*known_of(w, sayer(w, i), v))
			continue;
		put_f64(bytes, i < nfields ? known[i] : moments[i - nfields]);
		same &= memcmp(bytes, at + ENTRY_HEAD + i * 8, 8) == 0;
	}
	return same ? HD_OK : hd_fail(diag, HD_E_INTEGRITY,
		"step %lld: virtual node %u was computed twice, with different results",
		(long long)w->count.step,
		v);
}

static void take_entry(struct hd_worker *w, uint16_t from, const uint8_t *at)
{
	uint32_t v = hd_get32(at);
	double *said = &w->step->leaf[v].loss, *moments = w->step->moments.leaf + v * w->step->moments.elems;

	const uint64_t nfields = fields_of(w);

	at += ENTRY_HEAD;
	for (uint64_t i = 0; i < nfields + w->step->moments.elems; i++)
		if (says(w, from, sayer(w, i), v))
			*(i < nfields ? said + i : moments + i - nfields) = get_f64(at + i * 8);
	for (uint32_t s = 0; s < nstages_of(w); s++)
		if (says(w, from, s, v))
			mark(w, s, v);
}

enum hd_err hd_dist_leaves_put(struct hd_worker *w, uint16_t from, const uint8_t *bytes, uint64_t len,
	struct hd_diag *diag)
{
	uint32_t n = len < HEAD ? 0 : hd_get32(bytes + 4);
	int64_t last = -1;
	enum hd_err err = HD_OK;

	assert(w->step->begun);
	if (len < HEAD || hd_get32(bytes) != VERSION || n > w->task->job->nvns ||
		len != hd_dist_leaves_bytes(w, n))
		return hd_fail(diag, HD_E_PROTOCOL,
			"step %lld: %llu bytes are no entries of leaves of this job",
			(long long)w->count.step,
			(unsigned long long)len);
	for (uint32_t i = 0; i < n && !err; i++) {
		const uint8_t *at = bytes + HEAD + i * entry_bytes(w);
		err = check_entry(w, from, at, last, diag);
		last = hd_get32(at);
	}
	for (uint32_t i = 0; i < n && !err; i++)
		take_entry(w, from, bytes + HEAD + i * entry_bytes(w));
	return err;
}

uint32_t hd_dist_leaves_missing(const struct hd_worker *w)
{
	return nstages_of(w) * w->task->job->nvns - w->step->nknown;
}

void hd_dist_leaf_merge(const struct hd_worker *w, uint16_t from, const uint8_t *entry, uint8_t *into)
{
	const uint32_t v = hd_get32(entry);

	assert(v == hd_get32(into));
	for (uint64_t i = 0; i < fields_of(w) + w->step->moments.elems; i++)
		if (says(w, from, sayer(w, i), v))
			memcpy(into + ENTRY_HEAD + i * 8, entry + ENTRY_HEAD + i * 8, 8);
}

uint32_t hd_dist_nstages(const struct hd_worker *w) { return nstages_of(w); }

uint32_t hd_dist_nshadows(const struct hd_worker *w)
{
	const struct hd_pipe *pipe = pipe_of(w);

	return pipe && (pipe->keeps || pipe->overlaps) ? pipe->nstages : 0;
}

uint32_t hd_dist_nparcels(const struct hd_worker *w) { return pipe_of(w) ? pipe_of(w)->nparcels : 0; }

bool hd_dist_says(const struct hd_worker *w, uint16_t from, uint32_t vn)
{
	bool any = false;

	for (uint32_t s = 0; s < nstages_of(w); s++)
		any |= pipe_of(w) && says(w, from, s, vn);
	return any || (!pipe_of(w) && w->parts->part->plan->worker[w->parts->part->plan->map[vn]] == from);
}
