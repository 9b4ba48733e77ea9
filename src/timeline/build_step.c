#include <stdlib.h>

#include "timeline/build_int.h"
#include "timeline/lives_int.h"

struct step_mark { int64_t at; uint64_t number; uint32_t order; bool end, committed; };

static int by_time(const void *a, const void *b)
{
	const struct step_mark *x = a, *y = b;

	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

static enum hd_err find_marks(const struct tl_build *b, const struct hd_tl_process *p, struct step_mark **out,
	uint32_t *n, struct hd_diag *diag)
{
	const struct hd_timeline *t = b->out;
	struct step_mark *found = NULL;
	uint32_t cap = 0, count = 0;
	enum hd_err err = HD_OK;

	for (uint32_t l = p->lane_begin; l < p->lane_end; l++)
		for (uint64_t i = t->lane[l].begin; i < t->lane[l].end && !err; i++) {
			const struct hd_tl_event *e = &t->event[i];
			if (e->kind != HD_EVENT_STEP_BEGIN && e->kind != HD_EVENT_STEP_END)
				continue;
			err = hd_tl_grow(b->arena, &found, &cap, count + 1ull, sizeof *found, diag);
			if (!err)
				found[count] = (struct step_mark){ .at = e->t0, .number = e->arg,
					.end = e->kind == HD_EVENT_STEP_END, .committed = e->instr == 1,
					.order = count };
			count++;
		}
	if (count > 1 && !err)
		qsort(found, count, sizeof *found, by_time);
	*out = found;
	*n = count;
	return err;
}

static int64_t first_of(const struct hd_timeline *t, const struct hd_tl_process *p)
{
	int64_t first = INT64_MAX;

	for (uint32_t l = p->lane_begin; l < p->lane_end; l++)
		if (t->lane[l].begin < t->lane[l].end && t->event[t->lane[l].begin].t0 < first)
			first = t->event[t->lane[l].begin].t0;
	return first;
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
	struct step_mark *found;
	uint32_t n;
	enum hd_err err = find_marks(b, p, &found, &n, diag);

	p->step_begin = p->step_end = t->nsteps;
	if (err || !n)
		return err;
	int64_t since = first_of(t, p);               /* the end of the step before */
	for (uint32_t i = 0, open = UINT32_MAX; i < n && !err; i++) {
		if (!found[i].end) {
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
	for (uint64_t i = t->lane[p->lane_begin].begin; !err && i < t->lane[p->lane_end - 1].end; i++)
		t->event[i].step = row_at(t, p, &t->event[i]);
	return err;
}
