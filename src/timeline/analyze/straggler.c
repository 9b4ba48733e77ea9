#include "timeline/analyze/straggler.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "timeline/analyze/costs.h"
#include "timeline/analyze/counted.h"
#include "timeline/analyze/path.h"
#include "timeline/analyze/replay.h"

enum { QUARTERS = 4 };

static const char *const hold_text[] = {
#define X(id, text) [HD_TL_HOLD_##id] = (text),
	HD_TL_HOLDS(X)
#undef X
};

const char *hd_tl_hold_text(enum hd_tl_hold hold) { return hold_text[hold]; }

struct hold_judge {
	const struct hd_tl_causes *causes;
	struct hd_arena *scratch;
	struct hd_diag *diag;
	struct hd_tl_range range;
	double *share, *gain;             /* [nprocesses] */
	uint32_t *led;                    /* [nprocesses] steps with more than half of the path */
	int64_t *starved, *held;          /* [nprocesses] */
	int64_t *of, total;               /* [nprocesses] of paths: ns; of all */
	uint32_t nsteps, ncompute;
};

static bool computes(const struct hd_tl_causes *c, uint32_t process)
{
	const struct hd_tl_process *p = &c->tl->process[process];

	for (uint32_t l = p->lane_begin; l < p->lane_end; l++)
		if (c->begin[l] < c->begin[l + 1])
			return p->aligned;
	return false;
}

/* ---- which process leads the critical paths ---- */

static enum hd_err share_step(struct hold_judge *j, uint64_t number)
{
	struct hd_tl_path path;
	const uint32_t nprocesses = j->causes->tl->nprocesses;
	enum hd_err err = hd_tl_path_of(j->causes, number, j->scratch, &path, NULL);

	if (err == HD_E_NOTFOUND)
		return HD_OK;
	int64_t total = 0, *of = err ? NULL : hd_arena_take(j->scratch, nprocesses + 1, sizeof *of);
	if (!of)
		return hd_fail(j->diag, HD_E_NOMEM, "no memory for a critical path");
	for (size_t i = 0; i < path.n; i++) {
		const struct hd_tl_segment *s = &path.segment[i];
		total += s->t1 - s->t0;
		of[s->process] += s->t1 - s->t0;
		if (s->peer != HD_TL_NONE && s->peer != s->process)
			of[s->peer] += s->t1 - s->t0;
	}
	for (uint32_t p = 0; p < nprocesses && total > 0; p++) {
		j->of[p] += of[p];
		j->led[p] += 2 * of[p] > total;
	}
	j->nsteps += total > 0;
	j->total += total;
	return HD_OK;
}

static enum hd_err share_paths(struct hold_judge *j)
{
	enum hd_err err = HD_OK;

	for (uint64_t n = j->range.first; n <= j->range.last && !err; n++) {
		hd_arena_reset(j->scratch);
		err = share_step(j, n);
	}
	for (uint32_t p = 0; p < j->causes->tl->nprocesses && j->total; p++)
		j->share[p] = (double)j->of[p] / (double)j->total;
	return err;
}

/* ---- what would be gained ---- */

static enum hd_err gain_in(struct hold_judge *j, struct hd_tl_range range, struct hd_tl_whatif whatif,
	double *gain)
{
	struct hd_tl_replayed now, then;
	const struct hd_tl_whatif none = hd_tl_as_recorded();

	hd_arena_reset(j->scratch);
	enum hd_err err = hd_tl_replay(j->causes, range, &none, j->scratch, &now, j->diag);
	if (!err)
		err = hd_tl_replay(j->causes, range, &whatif, j->scratch, &then, j->diag);
	if (!err)
		*gain = now.replayed > 0 ? 1 - (double)then.replayed / (double)now.replayed : 0;
	return err;
}

static enum hd_err gain_of(struct hold_judge *j, struct hd_tl_whatif whatif, double *gain)
{
	return gain_in(j, j->range, whatif, gain);
}

/* What is left of the gain when twice its standard error, by the quarters of the steps, is taken off: is it
 * more than so many percent? */
static enum hd_err lasts(struct hold_judge *j, struct hd_tl_whatif whatif, int percent, bool *does)
{
	const uint64_t n = j->range.last - j->range.first + 1;
	double gain[QUARTERS] = { 0 }, mean = 0, squares = 0;
	enum hd_err err = HD_OK;

	assert(n >= HD_TL_STRAGGLER_LEAST);
	for (uint64_t k = 0; k < QUARTERS && !err; k++) {
		const struct hd_tl_range part = { j->range.first + n * k / QUARTERS,
			j->range.first + n * (k + 1) / QUARTERS - 1 };
		err = gain_in(j, part, whatif, &gain[k]);
		mean += gain[k] / QUARTERS;
	}
	for (int k = 0; k < QUARTERS; k++)
		squares += (gain[k] - mean) * (gain[k] - mean);
	const double error = sqrt(squares / (QUARTERS * (QUARTERS - 1)));
	*does = !err && 100 * (mean - 2 * error) > percent;
	return err;
}

static struct hd_tl_whatif alike(uint32_t process, bool work, bool reading, bool channels)
{
	struct hd_tl_whatif w = hd_tl_as_recorded();

	w.process = process;
	w.work = work;
	w.reading = reading;
	w.channels = channels;
	return w;
}

/* ---- of what kind it is ---- */

static bool shares_host(const struct hd_tl_causes *c, uint32_t process)
{
	for (uint32_t p = 0; p < c->tl->nprocesses; p++)
		if (p != process && computes(c, p) && strcmp(c->tl->process[p].host,
			c->tl->process[process].host) == 0)
			return true;
	return false;
}

/* Rule e. */
static bool find_stopped(const struct hold_judge *j, struct hd_tl_span span, struct hd_tl_straggler *s)
{
	int64_t most = 0, second = 0;

	for (uint32_t p = 0; p < j->causes->tl->nprocesses; p++) {
		const int64_t ns = computes(j->causes, p) ? hd_tl_stopped_ns(j->causes, p, span) : 0;
		if (ns > most) {
			second = most;
			most = ns;
			s->process = p;
		} else if (ns > second) {
			second = ns;
		}
	}
	if (!most || most * 100 <= HD_TL_STRAGGLER_PERCENT * (span.t1 - span.t0) || most <= 2 * second)
		return false;
	s->cause = HD_TL_HOLD_PAUSED;
	s->share = j->share[s->process];
	s->gain = (double)most / (double)(span.t1 - span.t0);
	return true;
}

/* Than the one of the others that is least so. */
static int64_t more_of(const struct hold_judge *j, const int64_t *ns, uint32_t process)
{
	int64_t least = INT64_MAX;

	for (uint32_t p = 0; p < j->causes->tl->nprocesses; p++)
		if (p != process && computes(j->causes, p) && ns[p] < least)
			least = ns[p];
	return ns[process] < 0 ? 0 : ns[process] - (least > 0 && least < INT64_MAX ? least : 0);
}

static int64_t more_starved(const struct hold_judge *j, uint32_t process)
{
	const int64_t starved = more_of(j, j->starved, process), held = more_of(j, j->held, process);

	return starved > held ? starved - (held > 0 ? held : 0) : 0;
}

/* What of the process's own time is more than the others': of its instructions, which may be less, of the
 * rest, and of both. */
struct hold_excess {
	int64_t net, others, rest;        /* others: what these instructions take them */
	int64_t all, whole;               /* whole: and lies in stretches as of a pause */
};

static void excess_of(const struct hd_tl_costs *costs, const struct hd_tl_slice *s, struct hold_excess *x)
{
	struct hd_tl_cut cut[HD_TL_CUTS];
	int64_t more = 0;

	if (s->part == HD_TL_PART_WORK) {
		const int64_t others = costs->others[s->event], own = costs->own[s->event];
		if (others < 0)
			return;
		/* of an instruction in pieces each has its part of it */
		more = (int64_t)((double)(own - others) * (double)(s->t1 - s->t0) / (double)own);
		x->net += more;
		x->others += s->t1 - s->t0 - more;
		if (own <= others)
			return;
		x->all += more;
		x->whole += more >= HD_TL_PAUSE_NS && others < HD_TL_PAUSE_NS ? more : 0;
		return;
	}
	for (uint32_t k = 0, n = hd_tl_slice_cut(costs->causes, s, cut); k < n; k++) {
		if (cut[k].part == HD_TL_PART_PEER_LATE || cut[k].part == HD_TL_PART_DATA || cut[k].part ==
			HD_TL_PART_ORDER || cut[k].part == HD_TL_PART_QUEUE || cut[k].part == HD_TL_PART_WIRE)
			continue;
		const int64_t ns = cut[k].span.t1 - cut[k].span.t0;
		more = ns - (int64_t)((double)ns * costs->factor[cut[k].part]);
		x->rest += more;
		x->all += more;
		x->whole += ns >= HD_TL_PAUSE_NS ? more : 0;
	}
}

static enum hd_err look_at(struct hold_judge *j, uint32_t process, struct hd_tl_span span,
	struct hold_excess *x)
{
	const struct hd_tl_causes *c = j->causes;
	const struct hd_tl_process *p = &c->tl->process[process];
	struct hd_tl_costs costs;

	*x = (struct hold_excess){ 0 };
	hd_arena_reset(j->scratch);
	enum hd_err err = hd_tl_costs_of(c, span, process, j->scratch, &costs, j->diag);
	for (uint32_t l = p->lane_begin; l < p->lane_end && !err; l++)
		for (uint64_t i = c->begin[l]; i < c->begin[l + 1]; i++)
			if (c->slice[i].t0 >= span.t0 && c->slice[i].t1 <= span.t1)
				excess_of(&costs, &c->slice[i], x);
	return err;
}

/* Rule d. */
static bool starves(const struct hold_judge *j, uint32_t process, const struct hold_excess *x)
{
	return shares_host(j->causes, process) &&
		4 * more_starved(j, process) >= 3 * (x->net > x->rest ? x->net : (x->net + x->rest) / 2);
}

/* The same of transfers, which need a thread of the process to run: by what instructions have not taken of
 * that. */
static bool starves_transfers(const struct hold_judge *j, uint32_t process, const struct hold_excess *x,
	double gain, struct hd_tl_span span)
{
	const int64_t left = more_starved(j, process) - (x->net > 0 ? x->net : 0);

	return shares_host(j->causes, process) && 4 * (double)left >= 3 * gain * (double)(span.t1 - span.t0);
}

/* A long stretch of one instruction may be many short ones in which it had no processor: its heartbeat knows,
 * where it is recorded. */
static bool pauses(const struct hold_judge *j, uint32_t process, const struct hold_excess *x,
	struct hd_tl_span span)
{
	return x->whole > 0 && 2 * x->whole >= x->all && 2 * more_of(j, j->held, process) < x->all &&
		(!hd_tl_has_heartbeat(j->causes->tl, process) ||
			2 * hd_tl_stopped_ns(j->causes, process, span) >= x->whole);
}

/* *is: not by rule d */
static enum hd_err cause_of(struct hold_judge *j, uint32_t process, enum hd_tl_hold *cause, bool *is)
{
	const struct hd_tl_span span = hd_tl_range_span(j->causes->tl, j->range);
	double work, reading, channels;
	struct hold_excess x;
	enum hd_err err = gain_of(j, alike(process, true, false, false), &work);

	if (!err)
		err = gain_of(j, alike(process, false, true, false), &reading);
	if (!err)
		err = gain_of(j, alike(process, false, false, true), &channels);
	if (!err)
		err = look_at(j, process, span, &x);
	if (err)
		return err;
	*cause = reading > work && reading > channels ? HD_TL_HOLD_IO : channels > work && x.net < x.others ?
		HD_TL_HOLD_LINK : HD_TL_HOLD_COMPUTE;
	*is = *cause != HD_TL_HOLD_LINK || !starves_transfers(j, process, &x, channels, span);
	if (*cause != HD_TL_HOLD_COMPUTE)
		return HD_OK;
	if (hd_tl_has_notice(j->causes, process, span.t1))
		*cause = HD_TL_HOLD_PREEMPTION;
	else if (pauses(j, process, &x, span))
		*cause = HD_TL_HOLD_PAUSED;
	*is = *cause == HD_TL_HOLD_PREEMPTION || !starves(j, process, &x);
	return HD_OK;
}

/* Rule b. */
static int least_of(const struct hold_judge *j, uint32_t process)
{
	return (j->ncompute > 2 && 3 * j->led[process] >= 2 * j->nsteps ? 1 : 2) * HD_TL_STRAGGLER_PERCENT;
}

static bool stands_out(const struct hold_judge *j, uint32_t process)
{
	for (uint32_t p = 0; p < j->causes->tl->nprocesses; p++)
		if (p != process && 2 * j->gain[p] >= j->gain[process])
			return false;
	return 2 * j->led[process] > j->nsteps && j->gain[process] * 100 > least_of(j, process);
}

/* Rule f, of one kind of cost. */
static enum hd_err find_by(struct hold_judge *j, struct hd_tl_whatif kind, enum hd_tl_hold cause,
	struct hd_tl_stragglers *to)
{
	double most = 0, second = 0, gain = 0;
	const struct hd_tl_span span = hd_tl_range_span(j->causes->tl, j->range);
	struct hd_tl_straggler s = { .cause = cause };
	struct hold_excess x;
	enum hd_err err = HD_OK;

	for (uint32_t p = 0; p < j->causes->tl->nprocesses && !err; p++) {
		if (!computes(j->causes, p))
			continue;
		kind.process = p;
		err = gain_of(j, kind, &gain);
		if (gain > most) {
			second = most;
			most = gain;
			s.process = p;
		} else if (gain > second) {
			second = gain;
		}
	}
	bool does = most * 100 > 2 * HD_TL_STRAGGLER_PERCENT && most > 2 * second;
	kind.process = s.process;
	if (!err && does)
		err = lasts(j, kind, 2 * HD_TL_STRAGGLER_PERCENT, &does);
	if (!err && does && cause == HD_TL_HOLD_LINK) {
		err = look_at(j, s.process, span, &x);
		does = !err && !starves_transfers(j, s.process, &x, most, span);
	}
	if (err || !does)
		return err;
	s.share = j->share[s.process];
	s.gain = most;
	to->straggler[to->n++] = s;
	return HD_OK;
}

/* Rule g. */
static void find_held(const struct hold_judge *j, struct hd_tl_span span, struct hd_tl_stragglers *to)
{
	uint32_t first = 0;

	for (uint32_t p = 0; p < j->causes->tl->nprocesses; p++)
		if (computes(j->causes, p) && j->share[p] > j->share[first])
			first = p;
	const int64_t more = computes(j->causes, first) ? more_of(j, j->held, first) : 0;
	if (more * 100 <= 2 * HD_TL_STRAGGLER_PERCENT * (span.t1 - span.t0))
		return;
	to->straggler[to->n++] = (struct hd_tl_straggler){ .process = first, .share = j->share[first],
		.cause = hd_tl_has_notice(j->causes, first, span.t1) ? HD_TL_HOLD_PREEMPTION :
			HD_TL_HOLD_COMPUTE,
		.gain = (double)more / (double)(span.t1 - span.t0) };
}

static enum hd_err judge_all(struct hold_judge *j, struct hd_tl_stragglers *to)
{
	const uint32_t n = j->causes->tl->nprocesses;
	hd_tl_range_unbroken(j->causes, &j->range);
	enum hd_err err = share_paths(j);

	if (err || j->nsteps < HD_TL_STRAGGLER_LEAST)
		return err;
	const struct hd_tl_span span = hd_tl_range_span(j->causes->tl, j->range);
	for (uint32_t p = 0; p < n; p++) {
		j->starved[p] = hd_tl_starved_ns(j->causes, p, span);
		j->held[p] = hd_tl_held_ns(j->causes, p, span);
	}
	for (uint32_t p = 0; p < n && !err; p++)
		if (computes(j->causes, p))
			err = gain_of(j, alike(p, true, true, true), &j->gain[p]);
	to->nsteps = j->nsteps;
	/* by c at most one of them stands out */
	for (uint32_t p = 0; p < n && !err; p++)
		if (stands_out(j, p)) {
			struct hd_tl_straggler s = { .process = p, .share = j->share[p], .gain = j->gain[p] };
			bool is = false;
			err = lasts(j, alike(p, true, true, true), least_of(j, p), &is);
			if (!err && is)
				err = cause_of(j, p, &s.cause, &is);
			if (!err && is)
				to->straggler[to->n++] = s;
		}
	if (!err && !to->n)
		err = find_by(j, alike(0, false, true, false), HD_TL_HOLD_IO, to);
	if (!err && !to->n && j->ncompute > 2)
		err = find_by(j, alike(0, false, false, true), HD_TL_HOLD_LINK, to);
	if (!err && !to->n)
		find_held(j, span, to);
	/* what costs more is it */
	struct hd_tl_straggler pause = { 0 };
	if (!err && find_stopped(j, span, &pause) && (!to->n || pause.process == to->straggler[0].process ?
		!to->n || 2 * pause.gain > to->straggler[0].gain : pause.gain > to->straggler[0].gain)) {
		to->straggler[0] = pause;
		to->n = 1;
	}
	return err;
}

enum hd_err hd_tl_stragglers_of(const struct hd_tl_causes *causes, struct hd_arena *arena,
	struct hd_arena *scratch, struct hd_tl_stragglers *stragglers, struct hd_diag *diag)
{
	const struct hd_timeline *tl = causes->tl;
	struct hd_tl_stragglers s = { 0 };
	struct hold_judge j = { .causes = causes, .scratch = scratch, .diag = diag };

	s.straggler = hd_arena_take(arena, (size_t)tl->nprocesses + 1, sizeof *s.straggler);
	s.share = j.share = hd_arena_take(arena, (size_t)tl->nprocesses + 1, sizeof *j.share);
	s.gain = j.gain = hd_arena_take(arena, (size_t)tl->nprocesses + 1, sizeof *j.gain);
	j.led = hd_arena_take(arena, (size_t)tl->nprocesses + 1, sizeof *j.led);
	s.starved = j.starved = hd_arena_take(arena, (size_t)tl->nprocesses + 1, sizeof *j.starved);
	s.held = j.held = hd_arena_take(arena, (size_t)tl->nprocesses + 1, sizeof *j.held);
	j.of = hd_arena_take(arena, (size_t)tl->nprocesses + 1, sizeof *j.of);
	if (!s.straggler || !s.share || !s.gain || !j.led || !s.starved ||
		!s.held || !j.of)
		return hd_fail(diag, HD_E_NOMEM, "no memory for %u processes", tl->nprocesses);
	for (uint32_t p = 0; p < tl->nprocesses; p++) {
		j.ncompute += computes(causes, p);
		s.starved[p] = -1;
	}
	if (j.ncompute >= 2 && !hd_tl_range_last(tl, HD_TL_STRAGGLER_STEPS, &j.range, NULL)) {
		enum hd_err err = judge_all(&j, &s);
		if (err)
			return err;
	}
	*stragglers = s;
	return HD_OK;
}
