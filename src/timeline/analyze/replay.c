#include "timeline/analyze/replay.h"

#include <assert.h>
#include <stdlib.h>

#include "timeline/analyze/costs.h"

enum { RELAYS = 64 };                     /* of one message through processes that wait */

struct replay {
	const struct hd_tl_causes *causes;
	const struct hd_tl_whatif *whatif;
	struct hd_tl_costs costs;
	int64_t *begin, *end;             /* [slices] when they begin and end now */
	uint8_t *done;                    /* [slices] */
	const struct hd_tl_slice **met;
};

static uint64_t index_of(const struct replay *r, const struct hd_tl_slice *s)
{
	return (uint64_t)(s - r->causes->slice);
}

static uint32_t process_of(const struct replay *r, uint32_t lane) { return r->causes->tl->lane[lane].process;
	}

static int64_t scaled(int64_t ns, double factor) { return factor == 1 ? ns : (int64_t)((double)ns * factor); }

/* What a part of a slice that is the process's own costs now. */
static int64_t own_cost(const struct replay *r, const struct hd_tl_slice *s, enum hd_tl_part part, int64_t ns)
{
	const struct hd_tl_whatif *w = r->whatif;
	const bool chosen = process_of(r, s->lane) == w->process;

	if (part == HD_TL_PART_DATA)
		return scaled(ns, w->data * (chosen && w->reading ? r->costs.factor[part] : 1));
	if (!chosen || !w->work)
		return ns;
	if (part != HD_TL_PART_WORK)
		return scaled(ns, r->costs.factor[part]);
	const int64_t own = r->costs.own[s->event], others = r->costs.others[s->event];
	return others < 0 || own <= 0 ? ns : scaled(ns, (double)others / (double)own);
}

/* From enqueued to the last byte. */
static int64_t channel_cost(const struct replay *r, uint64_t send, uint64_t recv)
{
	const struct hd_timeline *tl = r->causes->tl;
	int64_t ns = tl->event[recv].t1 - tl->event[send].t0;

	if (r->whatif->channels && hd_tl_at_end(tl, r->whatif->process, send, recv)) {
		const int64_t others = r->costs.channel[hd_tl_size_of(tl->event[send].arg)];
		ns = others >= 0 && others < ns ? others : ns;
	}
	return scaled(ns, 1 / r->whatif->bandwidth);
}

static int64_t arrival(const struct replay *r, uint64_t send, uint64_t recv, int depth);

/* When what happened at t in a lane happens now. */
static int64_t mapped(const struct replay *r, uint32_t lane, int64_t t, int depth)
{
	const struct hd_tl_causes *c = r->causes;
	const struct hd_tl_slice *s = hd_tl_slice_before(c, lane, t);

	if (!s) {
		const uint64_t first = c->begin[lane], end = c->begin[lane + 1];
		if (first == end || t <= c->slice[first].t0)
			return t;
		return t - c->slice[end - 1].t1 + r->end[end - 1];
	}
	const uint64_t i = index_of(r, s);
	if (t == s->t1 && r->done[i])
		return r->end[i];
	if (r->done[i] && s->part == HD_TL_PART_WORK)
		return r->begin[i] + (int64_t)((double)(t - s->t0) / (double)(s->t1 - s->t0) *
			(double)(r->end[i] - r->begin[i]));
	/* inside a wait: it did what it did because something had come, or because it had begun to wait */
	const struct hd_tl_slice now = hd_tl_slice_at(c, s, t);
	int64_t from = s->t0, at = i == c->begin[lane] ? s->t0 : r->end[i - 1];
	if (now.cause == HD_TL_BY_TRANSFER && depth < RELAYS && c->tl->event[now.recv].t1 <= t) {
		const int64_t came = arrival(r, now.send, now.recv, depth + 1);
		if (came > at) {
			from = c->tl->event[now.recv].t1;
			at = came;
		}
	}
	if (s->part == HD_TL_PART_WORK)
		return at + own_cost(r, s, HD_TL_PART_WORK, t - from);
	return at + (t - from);
}

static int64_t arrival(const struct replay *r, uint64_t send, uint64_t recv, int depth)
{
	const struct hd_timeline *tl = r->causes->tl;
	const struct hd_tl_process *p = &tl->process[tl->lane[tl->event[send].lane].process];
	const int64_t t = tl->event[send].t0;
	uint32_t lane = HD_TL_NONE;

	for (uint32_t l = p->lane_begin; l < p->lane_end; l++) {
		if (!hd_tl_is_device(tl, l))
			continue;
		const struct hd_tl_slice *s = hd_tl_slice_before(r->causes, l, t);
		if (lane == HD_TL_NONE || (s && s->part == HD_TL_PART_WORK))
			lane = l;
		if (s && s->part == HD_TL_PART_WORK)
			break;
	}
	return (lane == HD_TL_NONE ? t : mapped(r, lane, t, depth)) + channel_cost(r, send, recv);
}

/* When the process has come to a meeting: what it received since the last one belongs to what it met for,
 * waited for or not. */
static int64_t ready(const struct replay *r, const struct hd_tl_slice *s)
{
	const struct hd_tl_causes *c = r->causes;
	const uint64_t i = index_of(r, s), process = process_of(r, s->lane);
	int64_t come = i == c->begin[s->lane] ? s->t0 : r->end[i - 1], since = INT64_MIN;

	for (uint64_t k = i; k-- > c->begin[s->lane] && since == INT64_MIN;)
		if (c->slice[k].part == s->part)
			since = c->slice[k].t1;
	for (size_t k = hd_tl_received_until(c, process, s->t0); k-- > 0;) {
		const struct hd_tl_key *key = &c->recv[k];
		if (key->first != process || key->t <= since || key->t <= r->costs.span.t0)
			break;
		const uint64_t send = hd_tl_send_of(c, key->event);
		const int64_t now = send == HD_TL_NO_EVENT ? come : arrival(r, send, key->event, 0);
		come = now > come ? now : come;
	}
	return come;
}

static int64_t wait_end(const struct replay *r, const struct hd_tl_slice *s, int64_t begin)
{
	const struct hd_tl_causes *c = r->causes;
	int64_t come = begin, came;

	if (s->cause == HD_TL_BY_TRANSFER) {
		const int64_t t1 = c->tl->event[s->recv].t1;
		came = t1 > s->t0 ? t1 : s->t0;
		const int64_t now = arrival(r, s->send, s->recv, 0);
		come = now > come ? now : come;
		return come + own_cost(r, s, HD_TL_PART_DELIVERY, s->t1 - came);
	}
	if (s->cause != HD_TL_BY_MEETING)
		return begin + own_cost(r, s, (enum hd_tl_part)s->part, s->t1 - s->t0);
	come = ready(r, s);
	for (uint32_t n = hd_tl_slice_met(c, s, r->met), i = 0; i < n; i++) {
		const int64_t other = ready(r, r->met[i]);
		come = other > come ? other : come;
	}
	return come + own_cost(r, s, (enum hd_tl_part)s->part, s->t1 - s->arrival);
}

static void go(struct replay *r, uint64_t i)
{
	const struct hd_tl_slice *s = &r->causes->slice[i];
	const bool first = i == r->causes->begin[s->lane];

	r->begin[i] = first ? s->t0 : r->end[i - 1];
	if (s->t1 <= r->costs.span.t0)
		r->end[i] = s->t1;
	else if (s->part == HD_TL_PART_WORK || s->part == HD_TL_PART_IDLE)
		r->end[i] = r->begin[i] + own_cost(r, s, (enum hd_tl_part)s->part, s->t1 - s->t0);
	else
		r->end[i] = wait_end(r, s, r->begin[i]);
	r->done[i] = 1;
}

struct due { int64_t t; uint64_t slice; };

static int by_end(const void *a, const void *b)
{
	const struct due *x = a, *y = b;

	if (x->t != y->t)
		return x->t < y->t ? -1 : 1;
	return (x->slice > y->slice) - (x->slice < y->slice);
}

struct hd_tl_span hd_tl_range_span(const struct hd_timeline *tl, struct hd_tl_range range)
{
	struct hd_tl_span span = { INT64_MAX, INT64_MIN };

	for (uint32_t i = 0; i < tl->nsteps; i++) {
		const struct hd_tl_span s = hd_tl_step_span(tl, i);
		if (!tl->step[i].committed || tl->step[i].number < range.first || tl->step[i].number >
			range.last)
			continue;
		span.t0 = s.t0 < span.t0 ? s.t0 : span.t0;
		span.t1 = s.t1 > span.t1 ? s.t1 : span.t1;
	}
	return span;
}

static int64_t last_end(const struct replay *r, struct hd_tl_range range)
{
	const struct hd_timeline *tl = r->causes->tl;
	int64_t end = INT64_MIN;

	for (uint32_t i = 0; i < tl->nsteps; i++) {
		const struct hd_tl_step *s = &tl->step[i];
		const struct hd_tl_process *p = &tl->process[s->process];
		if (!s->committed || s->number != range.last)
			continue;
		for (uint32_t l = p->lane_begin; l < p->lane_end; l++) {
			if (!hd_tl_is_device(tl, l))
				continue;
			const int64_t t = mapped(r, l, s->end, 0);
			end = t > end ? t : end;
		}
	}
	return end;
}

static enum hd_err take(struct replay *r, struct due **due, struct hd_arena *arena, struct hd_diag *diag)
{
	const uint64_t n = r->causes->begin[r->causes->tl->nlanes];

	r->begin = hd_arena_take(arena, n + 1, sizeof *r->begin);
	r->end = hd_arena_take(arena, n + 1, sizeof *r->end);
	r->done = hd_arena_take(arena, n + 1, sizeof *r->done);
	r->met = hd_arena_take(arena, (size_t)r->causes->tl->nlanes + 1, sizeof *r->met);
	*due = hd_arena_take(arena, n + 1, sizeof **due);
	if (!r->begin || !r->end || !r->done || !r->met || !*due)
		return hd_fail(diag, HD_E_NOMEM, "no memory to replay %llu slices of devices",
			(unsigned long long)n);
	return HD_OK;
}

enum hd_err hd_tl_replay(const struct hd_tl_causes *causes, struct hd_tl_range range,
	const struct hd_tl_whatif *whatif, struct hd_arena *arena, struct hd_tl_replayed *replayed,
	struct hd_diag *diag)
{
	const uint64_t n = causes->begin[causes->tl->nlanes];
	const struct hd_tl_span span = hd_tl_range_span(causes->tl, range);
	struct replay r = { .causes = causes, .whatif = whatif };
	struct due *due;

	assert(whatif->bandwidth > 0 && whatif->data >= 0);
	if (span.t0 > span.t1)
		return hd_fail(diag, HD_E_NOTFOUND, "the recording has no step from %llu to %llu that ended",
			(unsigned long long)range.first, (unsigned long long)range.last);
	enum hd_err err = hd_tl_costs_of(causes, span, whatif->process, arena, &r.costs, diag);
	if (!err)
		err = take(&r, &due, arena, diag);
	if (err)
		return err;
	/* what comes later of a lane ends later: the order of ends is one in which each follows its cause */
	for (uint64_t i = 0; i < n; i++)
		due[i] = (struct due){ causes->slice[i].t1, i };
	if (n)
		qsort(due, n, sizeof *due, by_end);
	for (uint64_t i = 0; i < n; i++)
		r.end[i] = causes->slice[i].t1;
	for (uint64_t i = 0; i < n; i++)
		go(&r, due[i].slice);
	*replayed = (struct hd_tl_replayed){ span.t1 - span.t0, last_end(&r, range) - span.t0 };
	return HD_OK;
}

/* Rows of one number are sorted by process. */
static bool share_process(const struct hd_tl_causes *c, size_t a, size_t b, size_t end)
{
	const struct hd_tl_step *step = c->tl->step;

	for (size_t i = a, k = b; i < b && k < end;) {
		const uint32_t x = step[c->row[i].event].process, y = step[c->row[k].event].process;
		if (x == y)
			return true;
		i += x < y;
		k += y < x;
	}
	return false;
}

void hd_tl_range_unbroken(const struct hd_tl_causes *c, struct hd_tl_range *range)
{
	size_t before = hd_tl_rows_from(c, range->first), at = before, end;

	for (; at < c->nrows && c->row[at].first <= range->last; before = at, at = end) {
		for (end = at; end < c->nrows && c->row[end].first == c->row[at].first; end++)
			;
		if (at > before && (c->row[at].first != c->row[before].first + 1 ||
			!share_process(c, before, at, end)))
			range->first = c->row[at].first;
	}
}

enum hd_err hd_tl_range_last(const struct hd_timeline *tl, uint64_t most, struct hd_tl_range *range,
	struct hd_diag *diag)
{
	uint64_t first = UINT64_MAX, last = 0;

	for (uint32_t i = 0; i < tl->nsteps; i++)
		if (tl->step[i].committed) {
			first = tl->step[i].number < first ? tl->step[i].number : first;
			last = tl->step[i].number > last ? tl->step[i].number : last;
		}
	if (first == UINT64_MAX)
		return hd_fail(diag, HD_E_NOTFOUND,
			"the recording has no step that ended: nothing to replay");
	*range = (struct hd_tl_range){ last - first + 1 > most ? last - most + 1 : first, last };
	return HD_OK;
}
