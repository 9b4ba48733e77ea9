#include <stdlib.h>

#include "timeline/build_int.h"
#include "timeline/lives_int.h"

/* Of one time: by lane, then as events of a lane are sorted (timeline.h, 3). */
static int by_time(const void *a, const void *b)
{
	const struct tl_mark *x = a, *y = b;

	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	if (x->lane != y->lane)
		return x->lane < y->lane ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return x->seq < y->seq ? -1 : x->seq > y->seq;
}

/* The row among [begin, end) that a time lies in. */
static uint32_t row_at(const struct hd_timeline *t, const struct hd_tl_process *p,
	const struct hd_tl_event *e)
{
	uint32_t low = p->step_begin, high = p->step_end;
	bool ends = e->kind == HD_EVENT_STEP_END;

	while (low < high) {                              /* the first that begins after it */
		uint32_t at = low + (high - low) / 2;
		if (t->step[at].begin <= e->t0)
			low = at + 1;
		else
			high = at;
	}
	for (uint32_t back = 0; low > p->step_begin && back < 2; back++, low--) {
		const struct hd_tl_step *s = &t->step[low - 1];
		if (ends ? s->end == e->t0 && s->number == e->arg : e->t0 < s->end)
			return low - 1;
	}
	return HD_TL_NONE;
}

enum hd_err hd_tl_build_steps(struct tl_build *b, uint32_t process, struct hd_diag *diag)
{
	struct hd_timeline *t = b->out;
	struct hd_tl_process *p = &t->process[process];
	const struct tl_mark *found = b->mark;
	const uint32_t n = b->nmarks;
	enum hd_err err = HD_OK;

	p->step_begin = p->step_end = t->nsteps;
	b->nmarks = 0;
	if (!n)
		return HD_OK;
	qsort(b->mark, n, sizeof *b->mark, by_time);
	int64_t since = b->seen[process].first;       /* the end of the step before */
	for (uint32_t i = 0, open = UINT32_MAX; i < n && !err; i++) {
		if (found[i].kind != HD_EVENT_STEP_END) {
			open = i;
			continue;
		}
		bool begun = open != UINT32_MAX && found[open].number == found[i].number;
		err = hd_tl_grow(b->arena, &t->step, &b->steps_cap, t->nsteps + 1ull, sizeof *t->step, diag);
		if (err)
			break;
		t->step[t->nsteps++] = (struct hd_tl_step){ .number = found[i].number,
			.begin = begun ? found[open].at : since, .end = found[i].at, .process = process,
			.committed = found[i].committed };
		since = found[i].at;
		open = UINT32_MAX;
	}
	p->step_end = t->nsteps;
	for (uint64_t i = t->lane[p->lane_begin].begin; !err && !b->outline && i <
		t->lane[p->lane_end - 1].end; i++)
		t->event[i].step = row_at(t, p, &t->event[i]);
	return err;
}
