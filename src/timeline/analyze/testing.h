/* testing.h -- timelines made by hand for tests of analyses. Not for the program.
 *
 * Processes, each with a device's lane and one for transfers; events in any order, sorted when it is made. */
#ifndef HD_TIMELINE_ANALYZE_TESTING_H
#define HD_TIMELINE_ANALYZE_TESTING_H

#include <stdlib.h>
#include <string.h>

#include "timeline/analyze/causes.h"

enum { HD_TL_HAND_EVENTS = 4096, HD_TL_HAND_PROCESSES = 8, HD_TL_HAND_STEPS = 512 };

struct hd_tl_hand {
	struct hd_timeline tl;
	struct hd_tl_event event[HD_TL_HAND_EVENTS];
	struct hd_tl_lane lane[2 * HD_TL_HAND_PROCESSES];
	struct hd_tl_process process[HD_TL_HAND_PROCESSES];
	struct hd_tl_step step[HD_TL_HAND_STEPS];
	struct hd_arena arena;
};

static const char *const hd_tl_hand_name[] = { "?", "F", "B", "STEP", "preempt", "stopped",
	"processor wait", "quota wait", "preempt withdrawn", "root", "stops" };
enum { HD_TL_HAND_ROOT = 9 };             /* what devices send is called so */

static inline void hd_tl_hand_init(struct hd_tl_hand *h, uint32_t nprocesses)
{
	memset(h, 0, sizeof *h);
	h->tl = (struct hd_timeline){ .event = h->event, .lane = h->lane, .process = h->process,
		.step = h->step, .nprocesses = nprocesses, .nlanes = 2 * nprocesses, .name = hd_tl_hand_name,
		.nnames = 11, .job = "" };
	for (uint32_t p = 0; p < nprocesses; p++) {
		h->process[p] = (struct hd_tl_process){ .worker = p, .name = "worker", .host = "",
			.aligned = true, .lane_begin = 2 * p, .lane_end = 2 * p + 2 };
		h->lane[2 * p] = (struct hd_tl_lane){ .process = p, .kind = HD_LANE_DEVICE, .name = "dev 0" };
		h->lane[2 * p + 1] = (struct hd_tl_lane){ .process = p, .kind = HD_LANE_TRANSFER,
			.name = "io" };
	}
	hd_arena_init(&h->arena, 0);
}

static inline struct hd_tl_event *hd_tl_hand_add(struct hd_tl_hand *h, uint32_t lane, uint8_t kind,
	int64_t t0, int64_t t1)
{
	struct hd_tl_event *e = &h->event[h->tl.nevents++];

	*e = (struct hd_tl_event){ .t0 = t0, .t1 = t1, .gate = t0, .first = t0, .lane = lane, .kind = kind,
		.step = HD_TL_NONE, .vn = HD_TL_NONE, .stage = HD_TL_NONE, .peer = HD_TL_NONE };
	return e;
}

static inline void hd_tl_hand_op(struct hd_tl_hand *h, uint32_t process, uint32_t name, int64_t t0, int64_t
	t1)
{
	hd_tl_hand_add(h, 2 * process, HD_EVENT_OP, t0, t1)->name = name;
}

static inline void hd_tl_hand_wait(struct hd_tl_hand *h, uint32_t process, enum hd_wait reason, int64_t t0,
	int64_t t1)
{
	hd_tl_hand_add(h, 2 * process, HD_EVENT_WAIT, t0, t1)->arg = hd_wait_arg(reason, 0);
}

/* stamp[5]: enqueued, gate, first byte out, last byte out, last byte in */
static inline void hd_tl_hand_move(struct hd_tl_hand *h, uint32_t from, uint32_t to, uint64_t flow,
	uint64_t bytes, const int64_t stamp[5])
{
	struct hd_tl_event *e = hd_tl_hand_add(h, 2 * from + 1, HD_EVENT_SEND, stamp[0], stamp[3]);

	e->gate = stamp[1];
	e->first = stamp[2];
	e->name = HD_TL_HAND_ROOT;
	e->flow = flow;
	e->arg = bytes;
	e->peer = to;
	e = hd_tl_hand_add(h, 2 * to + 1, HD_EVENT_RECV, stamp[2], stamp[4]);
	e->flow = flow;
	e->arg = bytes;
	e->peer = from;
}

/* ascending by process, then by begin */
static inline void hd_tl_hand_step(struct hd_tl_hand *h, uint32_t process, uint64_t number, int64_t begin,
	int64_t end)
{
	struct hd_tl_process *p = &h->process[process];

	if (p->step_begin == p->step_end)
		p->step_begin = p->step_end = h->tl.nsteps;
	h->step[h->tl.nsteps++] = (struct hd_tl_step){ number, begin, end, process, true };
	p->step_end = h->tl.nsteps;
}

static inline int hd_tl_hand_order(const void *a, const void *b)
{
	const struct hd_tl_event *x = a, *y = b;

	if (x->lane != y->lane)
		return x->lane < y->lane ? -1 : 1;
	if (x->t0 != y->t0)
		return x->t0 < y->t0 ? -1 : 1;
	return (x->t1 < y->t1) - (x->t1 > y->t1);
}

static inline void hd_tl_hand_made(struct hd_tl_hand *h, struct hd_tl_causes *causes)
{
	uint64_t at = 0;

	qsort(h->event, h->tl.nevents, sizeof *h->event, hd_tl_hand_order);
	for (uint32_t l = 0; l < h->tl.nlanes; l++) {
		h->lane[l].begin = at;
		while (at < h->tl.nevents && h->event[at].lane == l)
			at++;
		h->lane[l].end = at;
	}
	if (hd_tl_causes_make(causes, &h->tl, &h->arena, NULL))
		abort();
}

#endif
