#include "timeline/analyze/straggler_int.h"

#include "timeline/analyze/counted.h"
#include "timeline/analyze/path.h"

static const char *const hold_text[] = {
#define X(id, text) [HD_TL_HOLD_##id] = (text),
	HD_TL_HOLDS(X)
#undef X
};

const char *hd_tl_hold_text(enum hd_tl_hold hold) { return hold_text[hold]; }

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

/* ---- judgement ---- */

/* Rule e: what costs more is it. */
static void prefer_pause(const struct hold_judge *j, struct hd_tl_span span, struct hd_tl_stragglers *to)
{
	struct hd_tl_straggler pause = { 0 };

	if (!hd_tl_hold_stands_still(j, span, hd_tl_stopped_ns, &pause))
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
		if (hd_tl_hold_computes(j->causes, p))
			err = hd_tl_hold_gain(j, hd_tl_hold_alike(p, true, true, true), &j->gain[p]);
	to->nsteps = j->nsteps;
	to->span = span;
	err = err ? err : hd_tl_hold_rules(j, span, to);
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
		j.ncompute += hd_tl_hold_computes(causes, p);
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
