#include "timeline/analyze/straggler.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "timeline/analyze/counted.h"
#include "timeline/analyze/excess.h"
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
	uint64_t *nops;                   /* [nprocesses] instructions */
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

static struct hd_tl_range quarter(const struct hold_judge *j, uint64_t k)
{
	const uint64_t n = j->range.last - j->range.first + 1;

	assert(n >= HD_TL_STRAGGLER_LEAST && k < QUARTERS);
	return (struct hd_tl_range){ j->range.first + n * k / QUARTERS, j->range.first + n * (k + 1) /
		QUARTERS - 1 };
}

/* What is left of the gain when twice its standard error, by the quarters of the steps, is taken off: is it
 * more than so many percent? */
static enum hd_err lasts(struct hold_judge *j, struct hd_tl_whatif whatif, int percent, bool *does)
{
	double gain[QUARTERS] = { 0 }, mean = 0, squares = 0;
	enum hd_err err = HD_OK;

	for (uint64_t k = 0; k < QUARTERS && !err; k++) {
		err = gain_in(j, quarter(j, k), whatif, &gain[k]);
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

/* Rule e, of which measure of standing still. */
static bool stands_still(const struct hold_judge *j, struct hd_tl_span span, int64_t (*measure)(const struct
	hd_tl_causes *causes, uint32_t process, struct hd_tl_span span), struct hd_tl_straggler *s)
{
	int64_t most = 0, second = 0;

	for (uint32_t p = 0; p < j->causes->tl->nprocesses; p++) {
		const int64_t ns = computes(j->causes, p) ? measure(j->causes, p, span) : 0;
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

static enum hd_err look_at(const struct hold_judge *j, uint32_t process, struct hd_tl_span span,
	struct hd_tl_excess *x)
{
	return hd_tl_excess_of(j->causes, process, span, j->scratch, x, j->diag);
}

/* Rule d. */
static bool starves(const struct hold_judge *j, uint32_t process, const struct hd_tl_excess *x)
{
	return shares_host(j->causes, process) &&
		4 * more_starved(j, process) >= 3 * (x->net > x->rest ? x->net : (x->net + x->rest) / 2);
}

/* The same of transfers, which need a thread of the process to run: by what instructions have not taken of
 * that. */
static bool starves_transfers(const struct hold_judge *j, uint32_t process, const struct hd_tl_excess *x,
	double gain, struct hd_tl_span span)
{
	const int64_t left = more_starved(j, process) - (x->net > 0 ? x->net : 0);

	return shares_host(j->causes, process) && 4 * (double)left >= 3 * gain * (double)(span.t1 - span.t0);
}

/* A long stretch of one instruction may be many short ones in which it had no processor: its heartbeat knows,
 * where it is recorded. */
static bool pauses(const struct hold_judge *j, uint32_t process, const struct hd_tl_excess *x,
	struct hd_tl_span span)
{
	return x->whole > 0 && 2 * x->whole >= x->all && 2 * more_of(j, j->held, process) < x->all &&
		(!hd_tl_has_heartbeat(j->causes->tl, process) ||
			2 * hd_tl_stopped_ns(j->causes, process, span) >= x->whole);
}

/* Did a quota or stops take what its transfers gain? */
static bool is_held(const struct hold_judge *j, uint32_t process, double channels, struct hd_tl_span span)
{
	struct hd_tl_straggler still;

	return 2 * (double)more_of(j, j->held, process) >= channels * (double)(span.t1 - span.t0) ||
		(stands_still(j, span, hd_tl_stops_ns, &still) && still.process == process);
}

/* Is what its transfers gain for want of a processor? */
static bool lacks(const struct hold_judge *j, uint32_t process, const struct hd_tl_excess *x, double channels,
	struct hd_tl_span span)
{
	return (x->net >= x->others && 100 * x->net > 2 * HD_TL_STRAGGLER_PERCENT * (span.t1 - span.t0)) ||
		is_held(j, process, channels, span);
}

/* Of what computes slowly. *is: not by rule d */
static enum hd_tl_hold why_slow(const struct hold_judge *j, uint32_t process, const struct hd_tl_excess *x,
	struct hd_tl_span span, bool *is)
{
	const bool notice = hd_tl_has_notice(j->causes, process, span.t1);

	*is = notice || !starves(j, process, x);
	return notice ? HD_TL_HOLD_PREEMPTION : pauses(j, process, x, span) ? HD_TL_HOLD_PAUSED :
		HD_TL_HOLD_COMPUTE;
}

/* *is: not by rule d */
static enum hd_err cause_of(struct hold_judge *j, uint32_t process, struct hd_tl_span span,
	enum hd_tl_hold *cause, bool *is)
{
	double work, reading, channels;
	struct hd_tl_excess x;
	enum hd_err err = gain_of(j, alike(process, true, false, false), &work);

	if (!err)
		err = gain_of(j, alike(process, false, true, false), &reading);
	if (!err)
		err = gain_of(j, alike(process, false, false, true), &channels);
	if (!err)
		err = look_at(j, process, span, &x);
	if (err)
		return err;
	const bool link = channels > work && !lacks(j, process, &x, channels, span);
	*cause = reading > work && reading > channels ? HD_TL_HOLD_IO : link ? HD_TL_HOLD_LINK :
		HD_TL_HOLD_COMPUTE;
	if (*cause == HD_TL_HOLD_COMPUTE)
		*cause = why_slow(j, process, &x, span, is);
	else
		*is = *cause == HD_TL_HOLD_IO || !starves_transfers(j, process, &x, channels, span);
	return HD_OK;
}

/* Has it a quarter more to do than each other one? */
static bool has_more_to_do(const struct hold_judge *j, uint32_t process)
{
	for (uint32_t p = 0; p < j->causes->tl->nprocesses; p++)
		if (p != process && 4 * j->nops[process] <= 5 * j->nops[p])
			return false;
	return true;
}

/* Rule b. */
static int least_of(const struct hold_judge *j, uint32_t process)
{
	const bool leads = j->ncompute > 2 && 3 * j->led[process] >= 2 * j->nsteps;

	return (leads && !has_more_to_do(j, process) ? 1 : 2) * HD_TL_STRAGGLER_PERCENT;
}

static bool stands_out(const struct hold_judge *j, uint32_t process)
{
	for (uint32_t p = 0; p < j->causes->tl->nprocesses; p++)
		if (p != process && 2 * j->gain[p] >= j->gain[process])
			return false;
	return 2 * j->led[process] > j->nsteps && j->gain[process] * 100 > least_of(j, process);
}

/* Rules a to d: by c there is one at most. */
static enum hd_err find_by_gain(struct hold_judge *j, struct hd_tl_span span, struct hd_tl_stragglers *to)
{
	enum hd_err err = HD_OK;

	for (uint32_t p = 0; p < j->causes->tl->nprocesses && !err; p++) {
		if (!stands_out(j, p))
			continue;
		struct hd_tl_straggler s = { .process = p, .share = j->share[p], .gain = j->gain[p] };
		bool is = false;
		err = lasts(j, alike(p, true, true, true), least_of(j, p), &is);
		if (!err && is)
			err = cause_of(j, p, span, &s.cause, &is);
		if (!err && is)
			to->straggler[to->n++] = s;
	}
	return err;
}

/* Do its instructions take several times what they take the others, in each quarter of the steps? */
static enum hd_err computes_slowly(struct hold_judge *j, uint32_t process, bool *does)
{
	enum hd_err err = HD_OK;

	*does = true;
	for (uint64_t k = 0; k < QUARTERS && !err && *does; k++) {
		struct hd_tl_excess x;
		err = look_at(j, process, hd_tl_range_span(j->causes->tl, quarter(j, k)), &x);
		*does = !err && x.net > (HD_TL_SLOW_TIMES - 1) * x.others;
	}
	return err;
}

/* Rule h. */
static enum hd_err find_slow(struct hold_judge *j, struct hd_tl_span span, struct hd_tl_stragglers *to)
{
	enum hd_err err = HD_OK;

	for (uint32_t p = 0; p < j->causes->tl->nprocesses && !err && !to->n; p++) {
		struct hd_tl_straggler s = { .process = p, .share = j->share[p] };
		struct hd_tl_excess x;
		bool is = computes(j->causes, p) && 2 * j->led[p] > j->nsteps;
		if (is)
			err = computes_slowly(j, p, &is);
		if (!err && is)
			err = hd_tl_waited_for(j->causes, p, span, j->scratch, &s.gain, j->diag);
		if (!err && is)
			err = look_at(j, p, span, &x);
		if (err || !is)
			continue;
		s.gain *= (double)x.net / (double)(x.net + x.others);
		s.cause = why_slow(j, p, &x, span, &is);
		if (is && 100 * s.gain > 2 * HD_TL_STRAGGLER_PERCENT)
			to->straggler[to->n++] = s;
	}
	return err;
}

/* Rule i. */
static enum hd_err find_by_stops(struct hold_judge *j, struct hd_tl_span span, struct hd_tl_stragglers *to)
{
	struct hd_tl_straggler s;

	if (!stands_still(j, span, hd_tl_stops_ns, &s) || 2 * j->led[s.process] <= j->nsteps)
		return HD_OK;
	s.cause = hd_tl_has_notice(j->causes, s.process, span.t1) ? HD_TL_HOLD_PREEMPTION :
		HD_TL_HOLD_COMPUTE;
	to->straggler[to->n++] = s;
	return HD_OK;
}

/* Rule f, of one kind of cost. */
static enum hd_err find_by(struct hold_judge *j, struct hd_tl_whatif kind, enum hd_tl_hold cause,
	struct hd_tl_span span, struct hd_tl_stragglers *to)
{
	double most = 0, second = 0, gain = 0;
	struct hd_tl_straggler s = { .cause = cause };
	struct hd_tl_excess x;
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
		does = !err && !starves_transfers(j, s.process, &x, most, span) &&
			!is_held(j, s.process, most, span);
	}
	if (err || !does)
		return err;
	s.share = j->share[s.process];
	s.gain = most;
	to->straggler[to->n++] = s;
	return HD_OK;
}

static enum hd_err find_by_reading(struct hold_judge *j, struct hd_tl_span span, struct hd_tl_stragglers *to)
{
	const struct hd_tl_whatif reading = alike(0, false, true, false);
	struct hold_judge longer = *j;
	enum hd_err err = find_by(j, reading, HD_TL_HOLD_IO, span, to);

	if (err || to->n || hd_tl_range_last(j->causes->tl, HD_TL_READING_STEPS, &longer.range, NULL))
		return err;
	hd_tl_range_unbroken(j->causes, &longer.range);
	if (longer.range.first >= j->range.first)
		return HD_OK;
	return find_by(&longer, reading, HD_TL_HOLD_IO, hd_tl_range_span(j->causes->tl, longer.range), to);
}

static enum hd_err find_by_channels(struct hold_judge *j, struct hd_tl_span span, struct hd_tl_stragglers *to)
{
	return j->ncompute > 2 ? find_by(j, alike(0, false, false, true), HD_TL_HOLD_LINK, span, to) : HD_OK;
}

/* Rule g. */
static enum hd_err find_held(struct hold_judge *j, struct hd_tl_span span, struct hd_tl_stragglers *to)
{
	uint32_t first = 0;

	for (uint32_t p = 0; p < j->causes->tl->nprocesses; p++)
		if (computes(j->causes, p) && j->share[p] > j->share[first])
			first = p;
	const int64_t more = computes(j->causes, first) ? more_of(j, j->held, first) : 0;
	if (more * 100 <= 2 * HD_TL_STRAGGLER_PERCENT * (span.t1 - span.t0))
		return HD_OK;
	to->straggler[to->n++] = (struct hd_tl_straggler){ .process = first, .share = j->share[first],
		.cause = hd_tl_has_notice(j->causes, first, span.t1) ? HD_TL_HOLD_PREEMPTION :
			HD_TL_HOLD_COMPUTE,
		.gain = (double)more / (double)(span.t1 - span.t0) };
	return HD_OK;
}

/* In this order: the first that names one has the word. Why there is each: straggler.h, ADR 0230, 0241. */
static enum hd_err (*const rule[])(struct hold_judge *j, struct hd_tl_span span,
	struct hd_tl_stragglers *to) = {
	find_by_gain,                     /* a to d: the run would gain by it */
	find_by_stops,                    /* i: short stops lie in its waits as well as in its work */
	find_slow,                        /* h: of what is slow in all, transfers hide the gain */
	find_by_reading,                  /* f: whatever else the machine does to it */
	find_by_channels,
	find_held,                        /* g: where all wait, a quota gains little */
};

/* Rule e: what costs more is it. */
static void prefer_pause(const struct hold_judge *j, struct hd_tl_span span, struct hd_tl_stragglers *to)
{
	struct hd_tl_straggler pause = { 0 };

	if (!stands_still(j, span, hd_tl_stopped_ns, &pause))
		return;
	if (to->n && pause.gain * (pause.process == to->straggler[0].process ? 2 : 1) <=
		to->straggler[0].gain)
		return;
	to->straggler[0] = pause;
	to->n = 1;
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
		j->nops[p] = hd_tl_instructions(j->causes, p, span);
	}
	for (uint32_t p = 0; p < n && !err; p++)
		if (computes(j->causes, p))
			err = gain_of(j, alike(p, true, true, true), &j->gain[p]);
	to->nsteps = j->nsteps;
	to->span = span;
	for (size_t k = 0; k < sizeof rule / sizeof rule[0] && !err && !to->n; k++)
		err = rule[k](j, span, to);
	if (!err)
		prefer_pause(j, span, to);
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
	j.nops = hd_arena_take(arena, (size_t)tl->nprocesses + 1, sizeof *j.nops);
	if (!s.straggler || !s.share || !s.gain || !j.led || !s.starved || !s.held || !j.of || !j.nops)
		return hd_fail(diag, HD_E_NOMEM, "no memory for %u processes", tl->nprocesses);
	for (uint32_t p = 0; p < tl->nprocesses; p++) {
		j.ncompute += computes(causes, p);
		s.starved[p] = -1;
	}
	if (j.ncompute >= 2 && !hd_tl_range_long(tl, HD_TL_STRAGGLER_STEPS,
		(int64_t)HD_TL_STRAGGLER_MS * 1000000, &j.range, NULL)) {
		enum hd_err err = judge_all(&j, &s);
		if (err)
			return err;
	}
	*stragglers = s;
	return HD_OK;
}
