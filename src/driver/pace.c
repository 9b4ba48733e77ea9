#include "driver/pace.h"

#include <stdlib.h>
#include <string.h>

#include "base/le.h"

enum { HD_PACE_KEEP = 10 };               /* EWMA 0.1: a tenth is new */

static struct hd_pace_worker *find(struct hd_pace *p, uint32_t worker)
{
	for (uint32_t i = 0; i < p->n; i++)
		if (p->worker[i].worker == worker)
			return &p->worker[i];
	if (p->n == HD_MAX_WORKERS)       /* ids are never used again: the oldest is gone */
		memmove(p->worker, p->worker + 1, --p->n * sizeof *p->worker);
	p->worker[p->n] = (struct hd_pace_worker){ .worker = worker };
	return &p->worker[p->n++];
}

/* Devices of a worker run side by side: the longest share counts. */
static uint32_t longest_of(const struct hd_view *view, uint32_t worker)
{
	uint32_t most = 0;

	for (uint32_t r = 0; r < view->nranks; r++)
		if (view->rank[r].worker == worker && view->rank[r].nvns > most)
			most = view->rank[r].nvns;
	return most;
}

uint64_t hd_pace_vn_ps(const struct hd_pace_step *step, const struct hd_view *view, uint32_t worker)
{
	uint32_t longest = longest_of(view, worker);

	return longest ? step->compute_ns * 1000 / longest : 0;
}

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

void hd_pace_seal(struct hd_pace *p, uint32_t worker, uint64_t step, const struct hd_step_news *news,
	const struct hd_view *view)
{
	struct hd_pace_worker *w = find(p, worker);
	const bool can_be = news->compute_ns <= news->step_ns;    /* else its clock, or its program, errs */

	w->step[step % 2] = (struct hd_pace_step){ step + 1, news->step_ns, news->wait_ns,
		can_be ? news->compute_ns : 0,
		news->redundant_ns, news->stalled_ns, least(news->read_wait_ns, news->step_ns),
		least(news->bytes_out, INT64_MAX / HD_MAX_MEMBERS),
		least(news->preempted, INT64_MAX / HD_MAX_MEMBERS),
		least(news->inverted, INT64_MAX / HD_MAX_MEMBERS), news->redone };
	w->newest = step;
	w->redone += news->redone;
	if (!view || news->redone || !news->compute_ns || !can_be || !longest_of(view, worker))
		return;
	if (view->epoch != p->epoch) {
		p->epoch = view->epoch;
		p->in_epoch = 0;
	}
	p->in_epoch += worker == view->member[0];
	if (p->in_epoch <= HD_PACE_FIRST)
		return;
	w->sums.steps++;
	w->sums.vns += longest_of(view, worker);
	w->sums.compute_ns += news->compute_ns;
	w->sums.read_wait_ns += least(news->read_wait_ns, news->compute_ns);
	uint64_t ps = hd_pace_vn_ps(&w->step[step % 2], view, worker);
	if (w->steps && ps > 2 * w->vn_ps)
		ps = 2 * w->vn_ps;        /* one step that something else held up says little */
	w->vn_ps = w->steps++ ? (w->vn_ps * (HD_PACE_KEEP - 1) + ps) / HD_PACE_KEEP : ps;
}

const struct hd_pace_worker *hd_pace_of(const struct hd_pace *p, uint32_t worker)
{
	for (uint32_t i = 0; i < p->n; i++)
		if (p->worker[i].worker == worker)
			return &p->worker[i];
	return NULL;
}

const struct hd_pace_step *hd_pace_last(const struct hd_pace_worker *w) { return &w->step[w->newest % 2]; }

const struct hd_pace_step *hd_pace_at(const struct hd_pace_worker *w, uint64_t step)
{
	return w->step[step % 2].next == step + 1 ? &w->step[step % 2] : NULL;
}

struct hd_pace_total hd_pace_total(const struct hd_pace *p, uint64_t step, const struct hd_view *view)
{
	struct hd_pace_total total = { 0 };

	for (uint32_t i = 0; view && i < view->nmembers; i++) {
		const struct hd_pace_worker *w = hd_pace_of(p, view->member[i]);
		const struct hd_pace_step *s = w ? hd_pace_at(w, step) : NULL;
		if (!s)
			continue;                 /* it joined after that step */
		total.bytes_out += s->bytes_out;
		total.preempted += s->preempted;
		total.inverted += s->inverted;
		if (s->read_wait_ns > total.read_wait_ns)
			total.read_wait_ns = s->read_wait_ns;
	}
	return total;
}

size_t hd_pace_put(const struct hd_pace *p, uint8_t bytes[HD_PACE_BYTES])
{
	uint8_t *at = bytes;

	for (uint32_t i = 0; i < p->n; i++)
		if (p->worker[i].vn_ps) {
			hd_put32(at, p->worker[i].worker);
			hd_put64(at + 4, p->worker[i].vn_ps);
			at += HD_PACE_ENTRY;
		}
	return (size_t)(at - bytes);
}

void hd_pace_take(struct hd_pace *p, const uint8_t *bytes, size_t len)
{
	if (len % HD_PACE_ENTRY || len > HD_PACE_BYTES)
		return;
	for (size_t at = 0; at < len; at += HD_PACE_ENTRY) {
		struct hd_pace_worker *w = find(p, hd_get32(bytes + at));
		w->vn_ps = hd_get64(bytes + at + 4);
		w->steps = w->vn_ps > 0;
	}
}

static int ascending(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

uint64_t hd_pace_median(const struct hd_pace *p, const uint32_t *worker, uint32_t n)
{
	uint64_t known[HD_MAX_WORKERS];
	uint32_t k = 0;

	for (uint32_t i = 0; i < n; i++) {
		const struct hd_pace_worker *w = hd_pace_of(p, worker[i]);
		if (w && w->vn_ps)
			known[k++] = w->vn_ps;
	}
	if (!k)
		return 0;
	qsort(known, k, sizeof *known, ascending);
	return (known[(k - 1) / 2] + known[k / 2]) / 2;
}

double hd_pace_speed(const struct hd_pace *p, uint32_t worker, const struct hd_view *view)
{
	const struct hd_pace_worker *self = hd_pace_of(p, worker);

	return view && self && self->vn_ps ? (double)hd_pace_median(p, view->member,
		view->nmembers) / (double)self->vn_ps : 0;
}
