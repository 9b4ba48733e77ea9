#include "timeline/analyze/excess.h"

#include "timeline/analyze/costs.h"

static void excess_of(const struct hd_tl_costs *costs, const struct hd_tl_slice *s, struct hd_tl_excess *x)
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

enum hd_err hd_tl_excess_of(const struct hd_tl_causes *c, uint32_t process, struct hd_tl_span span,
	struct hd_arena *scratch, struct hd_tl_excess *excess, struct hd_diag *diag)
{
	const struct hd_tl_process *p = &c->tl->process[process];
	struct hd_tl_excess x = { 0 };
	struct hd_tl_costs costs;

	hd_arena_reset(scratch);
	enum hd_err err = hd_tl_costs_of(c, span, process, scratch, &costs, diag);
	if (err)
		return err;
	for (uint32_t l = p->lane_begin; l < p->lane_end; l++)
		for (uint64_t i = c->begin[l]; i < c->begin[l + 1]; i++)
			if (c->slice[i].t0 >= span.t0 && c->slice[i].t1 <= span.t1)
				excess_of(&costs, &c->slice[i], &x);
	*excess = x;
	return HD_OK;
}
