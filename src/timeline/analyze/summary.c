#include "timeline/analyze/summary.h"

#include <math.h>
#include <stdio.h>

struct summing {
	struct hd_tl_causes causes;
	struct hd_tl_summary *to;
	struct hd_arena *scratch;
	struct hd_diag *diag;
};

static void add(struct hd_tl_breakdown *sum, const struct hd_tl_breakdown *b)
{
	sum->m += b->m;
	for (int p = 0; p < HD_TL_NPARTS; p++)
		sum->part[p] += b->part[p];
	sum->compute += b->compute;
	sum->transfer += b->transfer;
	sum->exposed += b->exposed;
	sum->hidden += b->hidden;
	sum->rest += b->rest;
	sum->u += b->u;
	sum->l += b->l;
}

static void ratios(struct hd_tl_breakdown *b)
{
	const double u = (double)b->u, l = (double)b->l;

	b->e = u - l < 0.01 * u || b->u == 0 ? NAN : (u - (double)b->m) / (u - l);
	b->s = b->l ? (u - l) / l : NAN;
	b->alpha = b->compute ? (double)b->transfer / (double)b->compute : NAN;
}

static bool counts(const struct hd_tl_summary *s, uint32_t row)
{
	const struct hd_tl_step *step = &s->tl->step[row];

	return step->committed && step->number >= s->range.first && step->number <= s->range.last;
}

static enum hd_err add_lane(struct summing *s, uint32_t row, uint32_t lane, struct hd_tl_process_sum *p)
{
	const uint32_t n = s->to->tl->nprocesses;
	struct hd_tl_breakdown b;

	hd_arena_reset(s->scratch);
	int64_t *blame = hd_arena_take(s->scratch, (size_t)n * HD_TL_NPARTS, sizeof *blame);
	if (!blame)
		return hd_fail(s->diag, HD_E_NOMEM, "no memory for %u processes", n);
	enum hd_err err = hd_tl_breakdown_of(&s->causes, row, lane, s->scratch, &b, s->diag);
	if (!err)
		err = hd_tl_blame(&s->causes, lane, hd_tl_step_span(s->to->tl, row), blame, s->scratch,
			s->diag);
	if (err)
		return err;
	add(&p->sum, &b);
	for (uint32_t q = 0; q < n; q++)
		for (uint32_t k = 0; k < HD_TL_NPARTS; k++)
			s->to->process[q].blame[k] += blame[(size_t)q * HD_TL_NPARTS + k];
	for (uint32_t k = 0; k < HD_TL_NPARTS; k++)
		s->to->part[k] += b.part[k];
	s->to->time += b.m;
	return HD_OK;
}

static enum hd_err add_process(struct summing *s, uint32_t process)
{
	const struct hd_timeline *tl = s->to->tl;
	const struct hd_tl_process *p = &tl->process[process];
	struct hd_tl_process_sum *sum = &s->to->process[process];
	enum hd_err err = HD_OK;

	for (uint32_t l = p->lane_begin; l < p->lane_end && !err; l++) {
		if (s->causes.begin[l] == s->causes.begin[l + 1])
			continue;
		sum->ndevices++;
		for (uint32_t i = p->step_begin; i < p->step_end && !err; i++)
			if (counts(s->to, i))
				err = add_lane(s, i, l, sum);
	}
	for (uint32_t i = p->step_begin; i < p->step_end; i++)
		sum->nsteps += counts(s->to, i);
	ratios(&sum->sum);
	s->to->nunaligned += !p->aligned;
	return err;
}

static void add_redone(struct summing *s)
{
	const struct hd_timeline *tl = s->to->tl;
	const struct hd_tl_span span = hd_tl_range_span(tl, s->to->range);

	for (uint64_t i = 0; i < tl->nevents; i++) {
		const struct hd_tl_event *e = &tl->event[i];
		if (e->kind == HD_EVENT_OP && e->flags & HD_EVENT_FLAG_REDONE && e->t0 >= span.t0 && e->t0 <
			span.t1)
			s->to->process[tl->lane[e->lane].process].redone += e->t1 - e->t0;
	}
}

/* The next one that there is: numbers of other programs may lie far apart. */
static bool next_number(const struct summing *s, uint64_t *n)
{
	const struct hd_tl_causes *c = &s->causes;

	if (*n >= s->to->range.last)
		return false;
	const size_t k = hd_tl_rows_from(c, *n + 1);
	if (k == c->nrows || c->row[k].first > s->to->range.last)
		return false;
	*n = c->row[k].first;
	return true;
}

static enum hd_err add_paths(struct summing *s)
{
	enum hd_err err = HD_OK;

	uint64_t n = s->to->range.first;

	for (bool more = true; more && !err; more = next_number(s, &n)) {
		struct hd_tl_path path = { 0 };
		hd_arena_reset(s->scratch);
		err = hd_tl_path_of(&s->causes, n, s->scratch, &path, NULL);
		if (err == HD_E_NOTFOUND)
			err = HD_OK;
		else if (err)
			return hd_fail(s->diag, err, "no memory for a critical path");
		s->to->nsteps += path.n > 0;
		for (size_t i = 0; i < path.n; i++) {
			const struct hd_tl_segment *g = &path.segment[i];
			s->to->process[g->process].path[g->part] += g->t1 - g->t0;
			s->to->path += g->t1 - g->t0;
		}
	}
	return err;
}

enum hd_err hd_tl_summary_of(const struct hd_timeline *tl, uint64_t most, struct hd_arena *arena,
	struct hd_arena *scratch, struct hd_tl_summary *summary, struct hd_diag *diag)
{
	struct hd_tl_summary to = { .tl = tl };
	struct summing s = { .to = &to, .scratch = scratch, .diag = diag };
	const struct hd_tl_whatif none = hd_tl_as_recorded();
	enum hd_err err = hd_tl_range_last(tl, most, &to.range, diag);

	if (err)
		return err;
	to.process = hd_arena_take(arena, (size_t)tl->nprocesses + 1, sizeof *to.process);
	if (!to.process)
		return hd_fail(diag, HD_E_NOMEM, "no memory for %u processes", tl->nprocesses);
	err = hd_tl_causes_make(&s.causes, tl, arena, diag);
	for (uint32_t p = 0; p < tl->nprocesses && !err; p++)
		err = add_process(&s, p);
	if (!err)
		add_redone(&s);
	if (!err)
		err = add_paths(&s);
	if (!err)
		err = hd_tl_stragglers_of(&s.causes, arena, scratch, &to.stragglers, diag);
	if (!err)
		err = hd_tl_predicted_of(tl, arena, &to.predicted, &to.npredicted, diag);
	if (!err)
		err = hd_tl_orders_of(tl, arena, &to.orders, diag);
	hd_arena_reset(scratch);
	struct hd_tl_range unbroken = to.range;
	hd_tl_range_unbroken(&s.causes, &unbroken);
	if (!err)
		err = hd_tl_replay(&s.causes, unbroken, &none, scratch, &to.replayed, diag);
	if (err)
		return err;
	to.nwaits = s.causes.nwaits;
	to.nunmatched = s.causes.nunmatched;
	*summary = to;
	return HD_OK;
}

/* Of first devices, where it is known: inside what else their time went into. It was counted over the steps
 * that were judged, and has the same share of all. */
static int64_t processor_wait(const struct hd_tl_summary *s)
{
	const double ns = (double)(s->stragglers.span.t1 - s->stragglers.span.t0);
	double sum = 0;

	if (!s->stragglers.nsteps)
		return 0;
	for (uint32_t p = 0; p < s->tl->nprocesses; p++) {
		const double waited = (double)s->stragglers.starved[p];
		if (waited > 0 && ns > 0 && s->process[p].ndevices)
			sum += (waited < ns ? waited / ns : 1) * (double)s->process[p].sum.m /
				s->process[p].ndevices;
	}
	return (int64_t)sum;
}

void hd_tl_held(const struct hd_tl_summary *s, char text[HD_TL_HELD_BYTES])
{
	/* of a wait that is a peer's the peer's own time is the cause; idle time has none that was recorded
		*/
	static const struct { enum hd_tl_part part; const char *about; } row[] = {
		{ HD_TL_PART_DATA, "waiting for data" },
		{ HD_TL_PART_ORDER, "transfers held back for others" },
		{ HD_TL_PART_QUEUE, "transfers behind others on the same channel" },
		{ HD_TL_PART_WIRE, "bytes on their way" },
		{ HD_TL_PART_COMMIT, "waiting for the commit" },
		{ HD_TL_PART_SLOT, "waiting for a place to put results" },
		{ HD_TL_PART_MEMORY, "waiting for memory" },
		{ HD_TL_PART_PLAN_CHANGE, "changes of plan" },
	};
	int64_t most = 0;
	const char *about = NULL;

	text[0] = 0;
	if (s->stragglers.n) {
		const struct hd_tl_straggler *g = s->stragglers.straggler;
		snprintf(text, HD_TL_HELD_BYTES,
			"%s held the run back (%s): with the costs of the others its steps "
			"would take %.0f %% less", s->tl->process[g->process].name, hd_tl_hold_text(g->cause),
			100 * g->gain);
		return;
	}
	for (size_t i = 0; i < sizeof row / sizeof row[0]; i++)
		if (s->part[row[i].part] > most) {
			most = s->part[row[i].part];
			about = row[i].about;
		}
	if (processor_wait(s) > most) {
		most = processor_wait(s);
		about = "waiting for a processor: there are fewer than threads that could run";
	}
	if (about && most * 100 > s->time * HD_TL_HELD_PERCENT)
		snprintf(text, HD_TL_HELD_BYTES, "%.0f %% of the devices' time went into %s", 100 *
			(double)most /
			(double)s->time, about);
}
