#include "timeline/analyze/straggler_int.h"

#include "timeline/analyze/counted.h"
#include "timeline/analyze/path.h"

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
		err = hd_tl_hold_lasts(j, hd_tl_hold_alike(p, true, true, true), least_of(j, p), &is);
		if (!err && is)
			err = hd_tl_hold_cause(j, p, span, &s.cause, &is);
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
	for (uint64_t k = 0; k < HOLD_QUARTERS && !err && *does; k++) {
		struct hd_tl_excess x;
		err = hd_tl_hold_look_at(j, process, hd_tl_range_span(j->causes->tl, hd_tl_hold_quarter(j,
			k)), &x);
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
		bool is = hd_tl_hold_computes(j->causes, p) && 2 * j->led[p] > j->nsteps;
		if (is)
			err = computes_slowly(j, p, &is);
		if (!err && is)
			err = hd_tl_waited_for(j->causes, p, span, j->scratch, &s.gain, j->diag);
		if (!err && is)
			err = hd_tl_hold_look_at(j, p, span, &x);
		if (err || !is)
			continue;
		s.gain *= (double)x.net / (double)(x.net + x.others);
		s.cause = hd_tl_hold_why_slow(j, p, &x, span, &is);
		if (is && 100 * s.gain > 2 * HD_TL_STRAGGLER_PERCENT)
			to->straggler[to->n++] = s;
	}
	return err;
}

/* Rule i. */
static enum hd_err find_by_stops(struct hold_judge *j, struct hd_tl_span span, struct hd_tl_stragglers *to)
{
	struct hd_tl_straggler s;

	if (!hd_tl_hold_stands_still(j, span, hd_tl_stops_ns, &s) || 2 * j->led[s.process] <= j->nsteps)
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
		if (!hd_tl_hold_computes(j->causes, p))
			continue;
		kind.process = p;
		err = hd_tl_hold_gain(j, kind, &gain);
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
		err = hd_tl_hold_lasts(j, kind, 2 * HD_TL_STRAGGLER_PERCENT, &does);
	if (!err && does && cause == HD_TL_HOLD_LINK) {
		err = hd_tl_hold_look_at(j, s.process, span, &x);
		does = !err && !hd_tl_hold_starves_transfers(j, s.process, &x, most, span) &&
			!hd_tl_hold_is_held(j, s.process, most, span);
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
	const struct hd_tl_whatif reading = hd_tl_hold_alike(0, false, true, false);
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
	return j->ncompute > 2 ? find_by(j, hd_tl_hold_alike(0, false, false, true), HD_TL_HOLD_LINK, span,
		to) : HD_OK;
}

/* Rule g. */
static enum hd_err find_held(struct hold_judge *j, struct hd_tl_span span, struct hd_tl_stragglers *to)
{
	uint32_t first = 0;

	for (uint32_t p = 0; p < j->causes->tl->nprocesses; p++)
		if (hd_tl_hold_computes(j->causes, p) && j->share[p] > j->share[first])
			first = p;
	const int64_t more = hd_tl_hold_computes(j->causes, first) ? hd_tl_hold_more_of(j, j->held, first) :
		0;
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

enum hd_err hd_tl_hold_rules(struct hold_judge *j, struct hd_tl_span span, struct hd_tl_stragglers *to)
{
	enum hd_err err = HD_OK;

	for (size_t k = 0; k < sizeof rule / sizeof rule[0] && !err && !to->n; k++)
		err = rule[k](j, span, to);
	return err;
}
