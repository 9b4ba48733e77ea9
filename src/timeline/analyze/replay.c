#include "timeline/analyze/replay.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "plan/xfer.h"
#include "timeline/analyze/busy.h"
#include "timeline/analyze/costs.h"

/* A process that was sent something passes it on, or what it made of it, within that time. */
static const int64_t RELAY_NS = 300000;

/* When what a process sends goes: as it was, and now. */
struct sender_line { struct hd_tl_busy was, now; };

struct replay {
	const struct hd_tl_causes *causes;
	const struct hd_tl_whatif *whatif;
	struct hd_tl_costs costs;
	int64_t *begin, *end;             /* [slices] when they begin and end now */
	uint8_t *done;                    /* [slices] */
	int64_t *came;                    /* [events] of a RECV: its end now; INT64_MIN: not yet */
	struct sender_line *link;                /* [processes] */
	int64_t *stepped;                 /* [lanes] when its last STEP began, as recorded */
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
	if (part == HD_TL_PART_WORK)
		ns = scaled(ns, 1 / w->compute);
	if (!chosen || !w->work)
		return ns;
	if (part != HD_TL_PART_WORK)
		return scaled(ns, r->costs.factor[part]);
	const int64_t own = r->costs.own[s->event], others = r->costs.others[s->event];
	return others < 0 || own <= 0 ? ns : scaled(ns, (double)others / (double)own);
}

/* One that has not come yet came, by the clocks, after what it caused. */
static int64_t arrival(const struct replay *r, uint64_t recv)
{
	return r->came[recv] == INT64_MIN ? r->causes->tl->event[recv].t1 : r->came[recv];
}

/* When what happened at t in a lane happens now. */
static int64_t mapped(const struct replay *r, uint32_t lane, int64_t t)
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
	if (now.cause == HD_TL_BY_TRANSFER && c->tl->event[now.recv].t1 <= t) {
		const int64_t came = arrival(r, now.recv);
		if (came > at) {
			from = c->tl->event[now.recv].t1;
			at = came;
		}
	}
	if (s->part == HD_TL_PART_WORK)
		return at + own_cost(r, s, HD_TL_PART_WORK, t - from);
	return at + (t - from);
}

/* Of the devices of a process the one that worked at t, else the first. */
static uint32_t sender_lane(const struct replay *r, uint32_t process, int64_t t)
{
	const struct hd_timeline *tl = r->causes->tl;
	uint32_t lane = HD_TL_NONE;

	for (uint32_t l = tl->process[process].lane_begin; l < tl->process[process].lane_end; l++) {
		if (!hd_tl_is_device(tl, l))
			continue;
		const struct hd_tl_slice *s = hd_tl_slice_before(r->causes, l, t);
		if (s && s->part == HD_TL_PART_WORK)
			return l;
		lane = lane == HD_TL_NONE ? l : lane;
	}
	return lane;
}

bool hd_tl_is_xfer(const struct hd_timeline *tl, uint64_t send, uint32_t kind)
{
	static const char *const text[HD_XFER_KINDS] = {
#define X(id, number, text, about) [number] = (text),
		HD_XFERS(X)
#undef X
	};

	return kind < HD_XFER_KINDS && text[kind] && !strcmp(tl->name[tl->event[send].name], text[kind]);
}

/* What devices make they send; sums and what else is made of what others sent goes when that has come. */
static bool is_of_devices(const struct hd_timeline *tl, uint64_t send)
{
	static const enum hd_xfer_kind own[] = { HD_XFER_PARTIAL, HD_XFER_ACTIVATIONS, HD_XFER_GRADIENTS };

	for (size_t i = 0; i < sizeof own / sizeof *own; i++)
		if (hd_tl_is_xfer(tl, send, own[i]))
			return true;
	return false;
}

/* When a transfer is enqueued now. */
static int64_t enqueued(const struct replay *r, uint32_t process, uint64_t send)
{
	const struct hd_tl_causes *c = r->causes;
	const int64_t t = c->tl->event[send].t0;
	const size_t n = hd_tl_received_until(c, process, t);
	const uint32_t lane = sender_lane(r, process, t);

	if (n && c->recv[n - 1].first == process && t - c->recv[n - 1].t <= RELAY_NS &&
		!is_of_devices(c->tl, send) && hd_tl_send_of(c, c->recv[n - 1].event) != HD_TL_NO_EVENT)
		return arrival(r, c->recv[n - 1].event) + (t - c->recv[n - 1].t);
	return lane == HD_TL_NONE ? t : mapped(r, lane, t);
}

/* What it takes from when its turn has come. */
static int64_t served(const struct replay *r, uint64_t send, uint64_t recv, int64_t ns)
{
	const struct hd_timeline *tl = r->causes->tl;
	const int64_t wire = hd_tl_wire_of(tl, send, recv), its = wire < ns ? wire : ns;

	if (r->whatif->channels && hd_tl_at_end(tl, r->whatif->process, send, recv))
		ns += scaled(its, r->costs.channel) - its;
	return scaled(ns, 1 / r->whatif->bandwidth);
}

static void transfer(struct replay *r, uint64_t recv)
{
	const struct hd_timeline *tl = r->causes->tl;
	const uint64_t send = hd_tl_send_of(r->causes, recv);
	const int64_t t1 = tl->event[recv].t1;

	r->came[recv] = t1;
	if (send == HD_TL_NO_EVENT)
		return;
	const uint32_t process = tl->lane[tl->event[send].lane].process;
	struct sender_line *link = &r->link[process];
	const int64_t t0 = tl->event[send].t0, took = hd_tl_busy_free(&link->was, t0, t1);
	if (t1 <= t0)                     /* by the error of clocks */
		r->came[recv] = enqueued(r, process, send) + t1 - t0;
	else if (t1 > r->costs.span.t0)
		r->came[recv] = hd_tl_busy_take(&link->now, enqueued(r, process, send),
			served(r, send, recv, took));
	else
		(void)hd_tl_busy_take(&link->now, t0, took);
	(void)hd_tl_busy_take(&link->was, t0, took);
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
		const int64_t now = arrival(r, key->event);
		come = now > come && hd_tl_send_of(c, key->event) != HD_TL_NO_EVENT ? now : come;
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
		const int64_t now = arrival(r, s->recv);
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

/* The end of a step has all that was sent for it, waited for or not: when that has come. */
static int64_t step_begin(struct replay *r, const struct hd_tl_slice *s, int64_t begin)
{
	const struct hd_tl_causes *c = r->causes;
	const uint64_t process = process_of(r, s->lane);

	for (size_t k = hd_tl_received_until(c, process, s->t0); k-- > 0;) {
		const struct hd_tl_key *key = &c->recv[k];
		if (key->first != process || key->t <= r->stepped[s->lane] || key->t <= r->costs.span.t0)
			break;
		if (is_of_devices(c->tl, key->event) || hd_tl_send_of(c, key->event) == HD_TL_NO_EVENT)
			continue;
		const int64_t now = arrival(r, key->event);
		begin = now > begin ? now : begin;
	}
	r->stepped[s->lane] = s->t0;
	return begin;
}

static bool ends_step(const struct replay *r, const struct hd_tl_slice *s)
{
	const struct hd_timeline *tl = r->causes->tl;

	return s->part == HD_TL_PART_WORK && !strcmp(tl->name[tl->event[s->event].name], "STEP") &&
		tl->event[s->event].t0 == s->t0;
}

static void go(struct replay *r, uint64_t i)
{
	const struct hd_tl_slice *s = &r->causes->slice[i];
	const bool first = i == r->causes->begin[s->lane];

	r->begin[i] = first ? s->t0 : r->end[i - 1];
	if (ends_step(r, s))
		r->begin[i] = step_begin(r, s, r->begin[i]);
	if (s->t1 <= r->costs.span.t0)
		r->end[i] = s->t1;
	else if (s->part == HD_TL_PART_WORK || s->part == HD_TL_PART_IDLE)
		r->end[i] = r->begin[i] + own_cost(r, s, (enum hd_tl_part)s->part, s->t1 - s->t0);
	else
		r->end[i] = wait_end(r, s, r->begin[i]);
	r->done[i] = 1;
}

enum { TRANSFER, SLICE };
/* The end of a slice, or of a transfer: index of it, or of the RECV. */
struct due { int64_t t; uint64_t index; int kind; };

static int by_end(const void *a, const void *b)
{
	const struct due *x = a, *y = b;

	if (x->t != y->t)
		return x->t < y->t ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind - y->kind;
	return (x->index > y->index) - (x->index < y->index);
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
			const int64_t t = mapped(r, l, s->end);
			end = t > end ? t : end;
		}
	}
	return end;
}

static enum hd_err take(struct replay *r, struct due **due, struct hd_arena *arena, struct hd_diag *diag)
{
	const struct hd_timeline *tl = r->causes->tl;
	const uint64_t n = r->causes->begin[tl->nlanes];

	r->begin = hd_arena_take(arena, n + 1, sizeof *r->begin);
	r->end = hd_arena_take(arena, n + 1, sizeof *r->end);
	r->done = hd_arena_take(arena, n + 1, sizeof *r->done);
	r->met = hd_arena_take(arena, (size_t)r->causes->tl->nlanes + 1, sizeof *r->met);
	r->came = hd_arena_take(arena, (size_t)tl->nevents + 1, sizeof *r->came);
	r->link = hd_arena_take(arena, (size_t)tl->nprocesses + 1, sizeof *r->link);
	r->stepped = hd_arena_take(arena, (size_t)tl->nlanes + 1, sizeof *r->stepped);
	*due = hd_arena_take(arena, n + r->causes->nrecvs + 1, sizeof **due);
	if (!r->begin || !r->end || !r->done || !r->met || !r->came || !r->link || !r->stepped || !*due)
		return hd_fail(diag, HD_E_NOMEM, "no memory to replay %llu slices of devices",
			(unsigned long long)n);
	for (uint64_t e = 0; e < tl->nevents; e++)
		r->came[e] = INT64_MIN;
	for (uint32_t l = 0; l < tl->nlanes; l++)
		r->stepped[l] = INT64_MIN;
	for (uint32_t p = 0; p < tl->nprocesses; p++)
		if (!hd_tl_busy_open(&r->link[p].was, arena) || !hd_tl_busy_open(&r->link[p].now, arena))
			return hd_fail(diag, HD_E_NOMEM, "no memory to replay what %u processes send",
				tl->nprocesses);
	for (uint64_t i = 0; i < n; i++)
		r->end[i] = r->causes->slice[i].t1;
	return HD_OK;
}

/* What comes later of a lane ends later: the order of ends is one in which each follows its cause. */
static size_t in_order(const struct replay *r, struct due *due)
{
	const struct hd_tl_causes *c = r->causes;
	const uint64_t nslices = c->begin[c->tl->nlanes];
	size_t n = 0;

	for (uint64_t i = 0; i < nslices; i++)
		due[n++] = (struct due){ c->slice[i].t1, i, SLICE };
	for (size_t i = 0; i < c->nrecvs; i++)
		due[n++] = (struct due){ c->recv[i].t, c->recv[i].event, TRANSFER };
	if (n)
		qsort(due, n, sizeof *due, by_end);
	return n;
}

enum hd_err hd_tl_replay(const struct hd_tl_causes *causes, struct hd_tl_range range,
	const struct hd_tl_whatif *whatif, struct hd_arena *arena, struct hd_tl_replayed *replayed,
	struct hd_diag *diag)
{
	const struct hd_tl_span span = hd_tl_range_span(causes->tl, range);
	struct replay r = { .causes = causes, .whatif = whatif };
	struct due *due;

	assert(whatif->bandwidth > 0 && whatif->compute > 0 && whatif->data >= 0);
	if (span.t0 > span.t1)
		return hd_fail(diag, HD_E_NOTFOUND, "the recording has no step from %llu to %llu that ended",
			(unsigned long long)range.first, (unsigned long long)range.last);
	enum hd_err err = hd_tl_costs_of(causes, span, whatif->process, arena, &r.costs, diag);
	if (!err)
		err = take(&r, &due, arena, diag);
	if (err)
		return err;
	for (size_t n = in_order(&r, due), i = 0; i < n; i++)
		if (due[i].kind == SLICE)
			go(&r, due[i].index);
		else
			transfer(&r, due[i].index);
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

/* Processes that ended the step. */
static uint32_t rows_of(const struct hd_tl_causes *c, uint64_t number)
{
	uint32_t n = 0;

	for (size_t i = hd_tl_rows_from(c, number); i < c->nrows && c->row[i].first == number; i++)
		n++;
	return n;
}

uint32_t hd_tl_range_whole(const struct hd_tl_causes *c, struct hd_tl_range *range)
{
	struct hd_tl_range whole = *range;
	uint32_t most = 0;

	for (size_t i = hd_tl_rows_from(c, range->first), n; i < c->nrows && c->row[i].first <= range->last;
		i += n) {
		n = rows_of(c, c->row[i].first);
		whole.last = n >= most ? c->row[i].first : whole.last;
		most = n > most ? (uint32_t)n : most;
	}
	if (!most)
		return 0;
	for (whole.first = whole.last; whole.first > range->first && rows_of(c, whole.first - 1) == most;)
		whole.first--;
	*range = whole;
	return most;
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

enum hd_err hd_tl_range_long(const struct hd_timeline *tl, uint64_t least, int64_t ns, struct hd_tl_range
	*range, struct hd_diag *diag)
{
	uint64_t few = least;
	enum hd_err err = hd_tl_range_last(tl, UINT64_MAX, range, diag);

	assert(least > 0);
	if (err)
		return err;
	uint64_t many = range->last - range->first + 1;
	while (few < many) {              /* more steps take longer: halves */
		const uint64_t n = few + (many - few) / 2;
		const struct hd_tl_span span = hd_tl_range_span(tl, (struct hd_tl_range){ range->last - n + 1,
			range->last });
		if (span.t1 - span.t0 >= ns)
			many = n;
		else
			few = n + 1;
	}
	range->first = range->last - many + 1;
	return HD_OK;
}
