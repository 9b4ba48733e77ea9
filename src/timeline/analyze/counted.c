#include "timeline/analyze/counted.h"

#include <string.h>

int64_t hd_tl_starved_ns(const struct hd_tl_causes *c, uint32_t process, struct hd_tl_span span)
{
	const struct hd_timeline *tl = c->tl;
	const struct hd_tl_process *p = &tl->process[process];
	int64_t first = -1, last = -1;

	for (uint32_t l = p->lane_begin; l < p->lane_end; l++)
		for (uint64_t i = tl->lane[l].begin; i < tl->lane[l].end; i++) {
			const struct hd_tl_event *e = &tl->event[i];
			if (e->kind != HD_EVENT_COUNTER || e->name >= tl->nnames || e->t0 > span.t1 +
				HD_TL_COUNTED_NS ||
				strcmp(tl->name[e->name], HD_TL_PROCESSOR_WAIT) != 0)
				continue;
			if (first < 0 || e->t0 <= span.t0 + HD_TL_COUNTED_NS)
				first = (int64_t)e->arg;
			last = (int64_t)e->arg;
		}
	return last < 0 ? -1 : last - first;
}

/* What the counter was at t. */
static double count_at(const struct hd_tl_causes *c, uint32_t process, const char *name, int64_t t)
{
	const struct hd_timeline *tl = c->tl;
	const struct hd_tl_process *p = &tl->process[process];
	const struct hd_tl_event *before = NULL, *after = NULL;

	for (uint32_t l = p->lane_begin; l < p->lane_end; l++)
		for (uint64_t i = tl->lane[l].begin; i < tl->lane[l].end && !hd_tl_is_device(tl, l); i++) {
			const struct hd_tl_event *e = &tl->event[i];
			if (e->kind != HD_EVENT_COUNTER || e->name >= tl->nnames ||
				strcmp(tl->name[e->name], name) != 0)
				continue;
			if (e->t0 <= t)
				before = e;
			else if (!after)
				after = e;
		}
	if (!before || !after)
		return before ? (double)before->arg : after ? (double)after->arg : 0;
	return (double)before->arg + ((double)after->arg - (double)before->arg) * (double)(t - before->t0) /
		(double)(after->t0 - before->t0);
}

static int64_t grown(const struct hd_tl_causes *c, uint32_t process, const char *name, struct hd_tl_span span)
{
	return (int64_t)(count_at(c, process, name, span.t1) - count_at(c, process, name, span.t0));
}

int64_t hd_tl_held_ns(const struct hd_tl_causes *c, uint32_t process, struct hd_tl_span span)
{
	return grown(c, process, HD_TL_QUOTA_WAIT, span);
}

int64_t hd_tl_stops_ns(const struct hd_tl_causes *c, uint32_t process, struct hd_tl_span span)
{
	return grown(c, process, HD_TL_STOPS, span);
}

bool hd_tl_has_notice(const struct hd_tl_causes *c, uint32_t process, int64_t until)
{
	const struct hd_timeline *tl = c->tl;
	int64_t at = INT64_MIN;
	bool has = false;

	for (uint64_t i = 0; i < tl->nevents; i++) {
		const struct hd_tl_event *e = &tl->event[i];
		if (e->kind != HD_EVENT_MARK || e->t0 > until || e->t0 < at || e->name >= tl->nnames ||
			(tl->lane[e->lane].process != process && e->instr != tl->process[process].worker))
			continue;
		const bool given = strcmp(tl->name[e->name], HD_TL_PREEMPT) == 0;
		if (!given && strcmp(tl->name[e->name], HD_TL_WITHDRAWN) != 0)
			continue;
		has = given;
		at = e->t0;
	}
	return has;
}

int64_t hd_tl_stopped_ns(const struct hd_tl_causes *c, uint32_t process, struct hd_tl_span span)
{
	const struct hd_timeline *tl = c->tl;
	const struct hd_tl_process *p = &tl->process[process];
	int64_t ns = 0;

	for (uint32_t l = p->lane_begin; l < p->lane_end; l++)
		for (uint64_t i = tl->lane[l].begin; i < tl->lane[l].end && !hd_tl_is_device(tl, l); i++) {
			const struct hd_tl_event *e = &tl->event[i];
			const struct hd_tl_span s = hd_tl_clip((struct hd_tl_span){ e->t0, e->t1 }, span);
			if (e->kind == HD_EVENT_OP && e->name < tl->nnames &&
				strcmp(tl->name[e->name], HD_TL_STOPPED) == 0)
				ns += s.t1 - s.t0;
		}
	return ns;
}

bool hd_tl_has_heartbeat(const struct hd_timeline *tl, uint32_t process)
{
	const struct hd_tl_process *p = &tl->process[process];

	for (uint32_t l = p->lane_begin; l < p->lane_end; l++)
		if (!hd_tl_is_device(tl, l) && strcmp(tl->lane[l].name, HD_TL_HEARTBEAT) == 0)
			return true;
	return false;
}

uint64_t hd_tl_instructions(const struct hd_tl_causes *c, uint32_t process, struct hd_tl_span span)
{
	const struct hd_timeline *tl = c->tl;
	const struct hd_tl_process *p = &tl->process[process];
	uint64_t n = 0;

	for (uint32_t l = p->lane_begin; l < p->lane_end; l++)
		for (uint64_t i = tl->lane[l].begin; i < tl->lane[l].end && hd_tl_is_device(tl, l); i++)
			n += tl->event[i].kind == HD_EVENT_OP && tl->event[i].t0 >= span.t0 &&
				tl->event[i].t1 <= span.t1;
	return n;
}
