#include "timeline/analyze/breakdown.h"

#include <assert.h>
#include <math.h>

static uint64_t first_slice(const struct hd_tl_causes *c, uint32_t lane, int64_t t)
{
	uint64_t low = c->begin[lane], high = c->begin[lane + 1];

	while (low < high) {
		const uint64_t mid = low + (high - low) / 2;
		if (c->slice[mid].t1 <= t)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* Parts and instructions; what of the step lies outside the lane is idle. */
static struct hd_tl_set take_parts(const struct hd_tl_causes *c, uint32_t lane, struct hd_tl_span span,
	struct hd_tl_span *work, struct hd_tl_breakdown *b)
{
	int64_t covered = 0;
	size_t n = 0;

	for (uint64_t i = first_slice(c, lane, span.t0); i < c->begin[lane + 1]; i++) {
		struct hd_tl_cut cut[HD_TL_CUTS];
		if (c->slice[i].t0 >= span.t1)
			break;
		for (uint32_t k = 0, ncuts = hd_tl_slice_cut(c, &c->slice[i], cut); k < ncuts; k++) {
			const struct hd_tl_span s = hd_tl_clip(cut[k].span, span);
			b->part[cut[k].part] += s.t1 - s.t0;
			covered += s.t1 - s.t0;
			if (cut[k].part == HD_TL_PART_WORK)
				work[n++] = s;
		}
	}
	b->part[HD_TL_PART_IDLE] += b->m - covered;
	return hd_tl_set_of(work, n);
}

static bool moves(const struct hd_tl_event *e)
{
	return e->kind == HD_EVENT_SEND || e->kind == HD_EVENT_RECV;
}

static size_t take_transfers(const struct hd_tl_causes *c, uint32_t process, struct hd_tl_span span,
	struct hd_tl_span *to)
{
	const struct hd_timeline *tl = c->tl;
	const struct hd_tl_process *p = &tl->process[process];
	size_t n = 0;

	for (uint32_t l = p->lane_begin; l < p->lane_end; l++)
		for (uint64_t e = hd_tl_first_until(c, l, span.t0); e < tl->lane[l].end &&
			tl->event[e].t0 < span.t1; e++) {
			if (!moves(&tl->event[e]) || tl->event[e].t1 <= span.t0)
				continue;
			if (to)
				to[n] = hd_tl_clip((struct hd_tl_span){ tl->event[e].first, tl->event[e].t1 },
					span);
			n++;
		}
	return n;
}

static void ratios(struct hd_tl_breakdown *b)
{
	const double u = (double)b->u, l = (double)b->l;

	b->e = u - l < 0.01 * u || b->u == 0 ? NAN : (u - (double)b->m) / (u - l);
	b->s = b->l ? (u - l) / l : NAN;
	b->alpha = b->compute ? (double)b->transfer / (double)b->compute : NAN;
}

enum hd_err hd_tl_breakdown_of(const struct hd_tl_causes *c, uint32_t step, uint32_t lane,
	struct hd_arena *arena, struct hd_tl_breakdown *breakdown, struct hd_diag *diag)
{
	const struct hd_timeline *tl = c->tl;
	const struct hd_tl_span span = hd_tl_step_span(tl, step);
	struct hd_tl_breakdown b = { .m = span.t1 - span.t0 };
	uint64_t nslices = 0;

	assert(tl->lane[lane].process == tl->step[step].process);
	for (uint64_t i = first_slice(c, lane, span.t0); i < c->begin[lane + 1] && c->slice[i].t0 < span.t1;
		i++)
		nslices++;
	const size_t nmoves = take_transfers(c, tl->step[step].process, span, NULL);
	struct hd_tl_span *work = hd_arena_take(arena, nslices + 1, sizeof *work),
		*moved = hd_arena_take(arena, nmoves + 1, sizeof *moved);
	if (!work || !moved)
		return hd_fail(diag, HD_E_NOMEM, "no memory for step %llu of a recording",
			(unsigned long long)tl->step[step].number);
	const struct hd_tl_set busy = take_parts(c, lane, span, work, &b);
	take_transfers(c, tl->step[step].process, span, moved);
	const struct hd_tl_set transfers = hd_tl_set_of(moved, nmoves);
	b.compute = hd_tl_set_ns(&busy);
	b.transfer = hd_tl_set_ns(&transfers);
	b.hidden = hd_tl_set_common_ns(&busy, &transfers);
	b.exposed = b.transfer - b.hidden;
	b.rest = b.m - b.compute - b.exposed;
	b.u = b.compute + b.transfer;
	b.l = b.compute > b.transfer ? b.compute : b.transfer;
	ratios(&b);
	assert(b.compute == b.part[HD_TL_PART_WORK]);
	*breakdown = b;
	return HD_OK;
}
