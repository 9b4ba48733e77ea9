/* testing.h -- a timeline made by hand, for tests of the room and of those that read one.
 *
 *	struct tl_maker m;
 *	tl_begin(&m);
 *	uint32_t p = tl_process(&m, "worker 0", 0), dev = tl_lane(&m, p, HD_LANE_DEVICE, "dev 0");
 *	tl_event(&m, dev, HD_EVENT_OP, HD_TL_FORWARD, 0, 10, "F")->vn = 3;
 *	tl_step(&m, p, 7, 0, 100, true);
 *	const struct hd_timeline *timeline = tl_end(&m);      ... tl_free(&m);
 *
 * Lanes are made in the order of their processes; events and steps in any. What tl_event() gives may be
 * written until the next call. tl_end() sorts as timeline.h says and finds each event's step. */
#ifndef HD_TIMELINE_TESTING_H
#define HD_TIMELINE_TESTING_H

#include <stdlib.h>
#include <string.h>

#include "timeline/timeline.h"
#include "tests/check.h"

enum { TL_PROCESSES = 64, TL_LANES = 512, TL_STEPS = 4096, TL_NAMES = 1024 };

struct tl_maker {
	struct hd_timeline timeline;
	struct hd_tl_event *event; uint64_t nevents, cap;
	struct hd_tl_lane lane[TL_LANES];
	struct hd_tl_process process[TL_PROCESSES];
	struct hd_tl_step step[TL_STEPS];
	const char *name[TL_NAMES];
};

#define TL_FN static inline __attribute__((unused))

TL_FN void tl_begin(struct tl_maker *m)
{
	memset(m, 0, sizeof *m);
	m->name[0] = "?";
	m->timeline = (struct hd_timeline){ .nnames = 1, .job = "" };
}

TL_FN void tl_free(struct tl_maker *m) { free(m->event); m->event = NULL; }

TL_FN uint32_t tl_name(struct tl_maker *m, const char *text)
{
	struct hd_timeline *t = &m->timeline;

	for (uint32_t n = 0; n < t->nnames; n++)
		if (!strcmp(m->name[n], text))
			return n;
	assert_true(t->nnames < TL_NAMES);
	m->name[t->nnames] = text;
	return t->nnames++;
}

TL_FN uint32_t tl_process(struct tl_maker *m, const char *name, uint32_t worker)
{
	uint32_t p = m->timeline.nprocesses++;

	assert_true(p < TL_PROCESSES);
	m->process[p] = (struct hd_tl_process){ .worker = worker, .pid = 100 + p, .name = name, .host = "",
		.state = HD_FLIGHT_FINISHED, .aligned = true, .lane_begin = m->timeline.nlanes,
		.lane_end = m->timeline.nlanes };
	return p;
}

TL_FN uint32_t tl_lane(struct tl_maker *m, uint32_t process, enum hd_lane_kind kind, const char *name)
{
	uint32_t l = m->timeline.nlanes++;

	assert_true(l < TL_LANES && process == m->timeline.nprocesses - 1);
	m->lane[l] = (struct hd_tl_lane){ .process = process, .kind = (uint16_t)kind,
		.index = (uint16_t)(l - m->process[process].lane_begin), .name = name };
	m->process[process].lane_end = l + 1;
	return l;
}

TL_FN struct hd_tl_event *tl_event(struct tl_maker *m, uint32_t lane, enum hd_event_kind kind,
	enum hd_tl_class class, int64_t t0, int64_t t1, const char *name)
{
	assert_true(lane < m->timeline.nlanes && t1 >= t0);
	if (m->nevents == m->cap) {
		m->cap = m->cap ? 2 * m->cap : 256;
		m->event = realloc(m->event, m->cap * sizeof *m->event);
		assert_non_null(m->event);
	}
	struct hd_tl_event *e = &m->event[m->nevents++];
	*e = (struct hd_tl_event){ .t0 = t0, .t1 = t1, .gate = t0, .first = t0, .lane = lane,
		.name = tl_name(m, name), .step = HD_TL_NONE, .vn = HD_TL_NONE, .stage = HD_TL_NONE,
		.peer = HD_TL_NONE, .kind = (uint8_t)kind, .class = (uint8_t)class };
	return e;
}

TL_FN void tl_step(struct tl_maker *m, uint32_t process, uint64_t number, int64_t begin, int64_t end,
	bool committed)
{
	assert_true(m->timeline.nsteps < TL_STEPS && process < m->timeline.nprocesses && begin <= end);
	m->step[m->timeline.nsteps++] = (struct hd_tl_step){ .number = number, .begin = begin, .end = end,
		.process = process, .committed = committed };
}

TL_FN int tl_by_time(const void *a, const void *b)
{
	const struct hd_tl_event *x = a, *y = b;

	if (x->lane != y->lane)
		return x->lane < y->lane ? -1 : 1;
	if (x->t0 != y->t0)
		return x->t0 < y->t0 ? -1 : 1;
	return x->t1 > y->t1 ? -1 : x->t1 < y->t1;
}

TL_FN int tl_by_begin(const void *a, const void *b)
{
	const struct hd_tl_step *x = a, *y = b;

	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	return x->begin < y->begin ? -1 : x->begin > y->begin;
}

TL_FN void tl_rows(struct tl_maker *m)
{
	struct hd_timeline *t = &m->timeline;

	for (uint32_t s = 0; s < t->nsteps; s++) {
		struct hd_tl_process *p = &m->process[m->step[s].process];
		if (p->step_begin == p->step_end)
			p->step_begin = s;
		p->step_end = s + 1;
	}
	for (uint64_t i = 0; i < m->nevents; i++) {
		struct hd_tl_event *e = &m->event[i];
		struct hd_tl_lane *lane = &m->lane[e->lane];
		if (lane->begin == lane->end)
			lane->begin = i;
		lane->end = i + 1;
		t->begin = i && t->begin < e->t0 ? t->begin : e->t0;
		t->end = i && t->end > e->t1 ? t->end : e->t1;
		for (uint32_t s = 0; s < t->nsteps; s++)
			if (m->step[s].process == lane->process && e->t0 >= m->step[s].begin &&
				(e->t0 < m->step[s].end || (e->kind == HD_EVENT_STEP_END &&
				e->t0 == m->step[s].end)))
				e->step = s;
	}
	for (uint32_t p = 0, step = 0; p < t->nprocesses; step = m->process[p++].step_end)
		if (m->process[p].step_begin == m->process[p].step_end)
			m->process[p].step_begin = m->process[p].step_end = step;
	for (uint32_t l = 0; l < t->nlanes; l++)
		if (m->lane[l].begin == m->lane[l].end)
			m->lane[l].begin = m->lane[l].end = l ? m->lane[l - 1].end : 0;
}

/* The value, until tl_free(). */
TL_FN const struct hd_timeline *tl_end(struct tl_maker *m)
{
	struct hd_timeline *t = &m->timeline;

	if (m->nevents)
		qsort(m->event, m->nevents, sizeof *m->event, tl_by_time);
	if (t->nsteps)
		qsort(m->step, t->nsteps, sizeof *m->step, tl_by_begin);
	tl_rows(m);
	t->event = m->event;
	t->nevents = m->nevents;
	t->lane = m->lane;
	t->process = m->process;
	t->step = m->step;
	t->name = m->name;
	return t;
}

#endif
