#include "timeline/validate.h"

#include <inttypes.h>

enum { DEEP = 1024 };         /* how deep slices of a lane may nest */

static enum hd_err broken(struct hd_diag *diag, const char *promise, uint64_t at)
{
	return hd_fail(diag, HD_E_BUG, "a timeline breaks its promise: %s (row %" PRIu64 ")", promise, at);
}

static enum hd_err rows(const struct hd_timeline *t, struct hd_diag *diag)
{
	uint64_t event = 0;
	uint32_t lane = 0, step = 0;

	for (uint32_t p = 0; p < t->nprocesses; p++) {
		const struct hd_tl_process *at = &t->process[p];
		if (at->lane_begin != lane || at->lane_end < lane || at->step_begin != step ||
			at->step_end < step || !at->name || !at->host || at->error_ns < 0)
			return broken(diag, "lanes and steps of processes follow one another", p);
		lane = at->lane_end;
		step = at->step_end;
	}
	if (lane != t->nlanes || step != t->nsteps)
		return broken(diag, "each lane and step is of a process", lane);
	for (uint32_t p = 0; p < t->nprocesses; p++)
		for (uint32_t l = t->process[p].lane_begin; l < t->process[p].lane_end; l++) {
			if (t->lane[l].process != p || t->lane[l].begin != event || t->lane[l].end < event ||
				!t->lane[l].name)
				return broken(diag, "events of lanes follow one another", l);
			event = t->lane[l].end;
		}
	return event == t->nevents ? HD_OK : broken(diag, "each event is of a lane", event);
}

static enum hd_err steps(const struct hd_timeline *t, struct hd_diag *diag)
{
	for (uint32_t p = 0; p < t->nprocesses; p++)
		for (uint32_t s = t->process[p].step_begin; s < t->process[p].step_end; s++) {
			const struct hd_tl_step *at = &t->step[s];
			if (at->process != p || at->begin > at->end ||
				(s > t->process[p].step_begin && at->begin < at[-1].end))
				return broken(diag, "steps of a process are in order", s);
		}
	return HD_OK;
}

static enum hd_err one_event(const struct hd_timeline *t, uint64_t i, uint32_t lane, struct hd_diag *diag)
{
	const struct hd_tl_event *e = &t->event[i];

	if (e->lane != lane || e->name >= t->nnames || e->class >= HD_TL_CLASS_COUNT)
		return broken(diag, "an event has a lane, a name and a class", i);
	if (e->t0 > e->t1 || e->gate < e->t0 || e->gate > e->t1 || e->first < e->t0 || e->first > e->t1)
		return broken(diag, "stamps lie within their event", i);
	if (e->t0 < t->begin || e->t1 > t->end)
		return broken(diag, "all events lie within the bounds", i);
	if (e->peer != HD_TL_NONE && e->peer >= t->nprocesses)
		return broken(diag, "a peer is a process", i);
	if (e->step == HD_TL_NONE)
		return HD_OK;
	if (e->step >= t->nsteps || t->step[e->step].process != t->lane[lane].process ||
		e->t0 < t->step[e->step].begin || e->t0 > t->step[e->step].end)
		return broken(diag, "an event lies in its step", i);
	return HD_OK;
}

static enum hd_err one_lane(const struct hd_timeline *t, uint32_t l, struct hd_diag *diag)
{
	int64_t open[DEEP];
	uint32_t n = 0;

	for (uint64_t i = t->lane[l].begin; i < t->lane[l].end; i++) {
		const struct hd_tl_event *e = &t->event[i];
		enum hd_err err = one_event(t, i, l, diag);
		if (err)
			return err;
		if (i > t->lane[l].begin && (e->t0 < e[-1].t0 || (e->t0 == e[-1].t0 && e->t1 > e[-1].t1)))
			return broken(diag, "events of a lane are in order", i);
		if (t->lane[l].kind != HD_LANE_DEVICE || e->t0 == e->t1)
			continue;
		while (n && open[n - 1] <= e->t0)
			n--;
		if (n == DEEP || (n && open[n - 1] < e->t1))
			return broken(diag, "events of a device are apart or nested", i);
		open[n++] = e->t1;
	}
	return HD_OK;
}

enum hd_err hd_tl_validate(const struct hd_timeline *t, struct hd_diag *diag)
{
	enum hd_err err = rows(t, diag);

	if (!err)
		err = steps(t, diag);
	for (uint32_t l = 0; l < t->nlanes && !err; l++)
		err = one_lane(t, l, diag);
	return err;
}
