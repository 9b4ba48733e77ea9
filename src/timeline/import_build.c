#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "timeline/import_int.h"
#include "timeline/lives_int.h"

enum { LOOK_BACK = 4096, NAME_CAP = 1024 };       /* slices that may lie around a flow's end */
#define EPOCH_NS INT64_C(1000000000000000000)    /* 2001: times beyond it are UTC themselves */

static enum hd_err no_memory(const struct import *in, struct hd_diag *diag)
{
	return hd_fail(diag, HD_E_NOMEM, "%s: no memory for its timeline", in->file);
}

/* E closes the last B of its lane. */
static enum hd_err pair(struct import *in, struct hd_diag *diag)
{
	int64_t end = INT64_MIN;
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; i < in->nevents && !err; i++) {
		struct hd_tl_event *e = &in->event[i].e;
		struct import_lane *lane = &in->lane[e->lane];
		end = e->t1 > end ? e->t1 : end;
		if (in->event[i].phase == 'B') {
			err = hd_tl_grow(in->arena, &lane->open, &lane->open_cap, lane->depth + 1ull,
				sizeof *lane->open, diag);
			if (!err)
				lane->open[lane->depth++] = i;
		} else if (in->event[i].phase == 'E') {
			if (!lane->depth) {
				in->foreign.nunpaired++;
				continue;
			}
			struct import_event *b = &in->event[lane->open[--lane->depth]];
			b->e.t1 = e->t0 > b->e.t0 ? e->t0 : b->e.t0;
			b->phase = 'X';
		}
	}
	for (uint32_t i = 0; i < in->nevents && !err; i++)
		if (in->event[i].phase == 'B') {
			in->event[i].e.t1 = end;
			in->event[i].e.flags |= HD_EVENT_FLAG_OPEN;
			in->event[i].phase = 'X';
			in->foreign.nunpaired++;
		}
	return err;
}

static bool stays(char phase)
{
	return phase == 'X' || phase == 'i' || phase == 'C' || phase == HD_IMPORT_STEP;
}

static int64_t start_of(const struct import *in)
{
	int64_t start = INT64_MAX;

	for (uint32_t i = 0; i < in->nevents; i++)
		if (stays(in->event[i].phase) && in->event[i].e.t0 < start)
			start = in->event[i].e.t0;
	return start == INT64_MAX ? 0 : start;
}

/* ring: events of the lane at hand */
struct lanes_out {
	struct tl_build b;
	struct hd_tl_event *ring;
	uint64_t *first; uint32_t *list;
	int64_t start;
};

/* Lists of the events of each lane, in the order of the file. */
static enum hd_err list_lanes(struct import *in, struct lanes_out *o, struct hd_diag *diag)
{
	uint64_t most = 0, at = 0;

	o->first = hd_arena_take(in->arena, in->tids.n + 1ull, sizeof *o->first);
	o->list = hd_arena_take(in->arena, in->nevents + 1ull, sizeof *o->list);
	if (!o->first || !o->list)
		return no_memory(in, diag);
	for (uint32_t i = 0; i < in->nevents; i++)
		in->lane[in->event[i].e.lane].count++;
	for (uint32_t l = 0; l < in->tids.n; l++) {
		most = in->lane[l].count > most ? in->lane[l].count : most;
		o->first[l] = at;
		at += in->lane[l].count;
		in->lane[l].count = 0;
	}
	for (uint32_t i = 0; i < in->nevents; i++) {
		uint32_t l = in->event[i].e.lane;
		o->list[o->first[l] + in->lane[l].count++] = i;
	}
	most += 2ull * in->nsteps + 1;
	o->ring = hd_arena_take(in->arena, most, sizeof *o->ring);
	o->b.spare = hd_arena_take(in->arena, most, sizeof *o->b.spare);
	o->b.line = hd_arena_take(in->arena, most, 1);
	struct hd_timeline *t = o->b.out;
	t->event = hd_arena_take(in->arena, in->nevents + 2ull * in->nsteps + 1, sizeof *t->event);
	t->lane = hd_arena_take(in->arena, (uint64_t)in->tids.n * TL_LINES + 1, sizeof *t->lane);
	t->process = hd_arena_take(in->arena, in->pids.n + 1ull, sizeof *t->process);
	o->b.seen = hd_arena_take(in->arena, in->pids.n + 1ull, sizeof *o->b.seen);
	return o->ring && o->b.seen && o->b.spare && o->b.line && t->event && t->lane && t->process ? HD_OK :
		no_memory(in, diag);
}

static void shift(struct hd_tl_event *e, int64_t by)
{
	e->t0 -= by;
	e->t1 -= by;
	e->gate -= by;
	e->first -= by;
}

/* Kineto's step: its begin and its end. */
static void put_step(const struct import *in, struct lanes_out *o, const struct hd_tl_event *e, uint64_t *n)
{
	const char *name = in->names.text[e->name] + strlen("ProfilerStep#");
	struct hd_tl_event mark = *e;

	mark.arg = strtoull(name, NULL, 10);
	mark.class = HD_TL_MARK;
	mark.kind = HD_EVENT_STEP_BEGIN;
	mark.t1 = mark.t0;
	o->ring[(*n)++] = mark;
	mark.kind = HD_EVENT_STEP_END;
	mark.instr = 1;
	mark.t0 = mark.t1 = mark.gate = mark.first = e->t1;
	o->ring[(*n)++] = mark;
}

/* The innermost slice around a flow's end gets its number. */
static void bind(struct lanes_out *o, uint64_t n, const struct hd_tl_event *flow)
{
	uint64_t low = 0, high = n;

	while (low < high) {                              /* the first that begins after it */
		uint64_t at = low + (high - low) / 2;
		if (o->ring[at].t0 <= flow->t0)
			low = at + 1;
		else
			high = at;
	}
	for (uint32_t back = 0; low-- > 0 && back < LOOK_BACK; back++)
		if (o->ring[low].t1 >= flow->t0 && o->ring[low].t1 > o->ring[low].t0) {
			o->ring[low].flow = flow->flow;
			return;
		}
}

static enum hd_err put_line(struct import *in, struct lanes_out *o, uint32_t process, uint32_t l,
	uint32_t line, uint64_t n, bool device, struct hd_diag *diag)
{
	struct hd_timeline *t = o->b.out;
	uint64_t begin = t->nevents;
	char name[NAME_CAP];

	enum hd_err err = HD_OK;
	for (uint64_t i = 0; i < n && !err; i++)
		if (o->b.line[i] == line) {
			o->ring[i].lane = t->nlanes;
			t->event[t->nevents] = o->ring[i];
			err = hd_tl_note(&o->b, process, &o->ring[i], diag);
		}
	if (err || t->nevents == begin)
		return err;
	uint32_t text = in->lane[l].named != HD_TL_NONE ? in->lane[l].named : in->lane[l].name;
	hd_tl_line_name(name, sizeof name, in->names.text[text], line);
	char *copy = hd_arena_text(in->arena, name, strlen(name));
	if (!copy)
		return no_memory(in, diag);
	t->lane[t->nlanes] = (struct hd_tl_lane){ .process = process, .kind = line == TL_TRANSFERS ?
		HD_LANE_TRANSFER : device ? HD_LANE_DEVICE : HD_LANE_CONTROL, .name = copy, .begin = begin,
		.index = (uint16_t)(t->nlanes - t->process[process].lane_begin), .end = t->nevents };
	t->nlanes++;
	return HD_OK;
}

static enum hd_err put_lane(struct import *in, struct lanes_out *o, uint32_t process, uint32_t l, bool device,
	struct hd_diag *diag)
{
	const uint32_t *list = o->list + o->first[l];
	enum hd_err err = HD_OK;
	uint64_t n = 0;

	for (uint64_t k = 0; k < in->lane[l].count; k++) {
		struct import_event *from = &in->event[list[k]];
		if (from->phase != 'E')
			shift(&from->e, o->start);
		if (!stays(from->phase))
			continue;
		o->ring[n++] = from->e;
		if (from->phase == HD_IMPORT_STEP)
			put_step(in, o, &from->e, &n);
	}
	hd_tl_sort(o->ring, o->b.spare, n);
	for (uint64_t k = 0; k < in->lane[l].count; k++)
		if (in->event[list[k]].phase == 's' || in->event[list[k]].phase == 'f')
			bind(o, n, &in->event[list[k]].e);
	memset(o->b.line, TL_OWN, n);
	if (device)
		hd_tl_part(o->ring, o->b.line, n);
	for (uint32_t line = 0; line < TL_LINES && !err; line++)
		err = put_line(in, o, process, l, line, n, device, diag);
	return err;
}

static enum hd_err put_process(struct import *in, struct lanes_out *o, uint32_t p, struct hd_diag *diag)
{
	const struct import_process *from = &in->process[p];
	struct hd_timeline *t = o->b.out;
	const char *pid = in->pids.text[p];
	char name[NAME_CAP], *end;
	bool devices = false;
	enum hd_err err = HD_OK;

	snprintf(name, sizeof name, "%s%s%s", from->name != HD_TL_NONE ? in->names.text[from->name] : pid,
		from->label != HD_TL_NONE ? " " : "",
		from->label != HD_TL_NONE ? in->names.text[from->label] : "");
	unsigned long long number = strtoull(pid, &end, 10);
	uint32_t row = t->nprocesses;
	t->process[row] = (struct hd_tl_process){ .worker = in->rank != HD_TL_NONE ? in->rank : t->nprocesses,
		.pid = *end || number > UINT32_MAX ? 0 : (uint32_t)number, .host = "", .aligned = true,
		.name = hd_arena_text(in->arena, name, strlen(name)), .state = HD_FLIGHT_FINISHED,
		.lane_begin = t->nlanes };
	o->b.seen[row] = (struct tl_seen){ INT64_MAX, INT64_MIN };
	if (!t->process[row].name)
		return no_memory(in, diag);
	for (uint32_t l = 0; l < in->tids.n; l++)
		devices |= in->lane[l].process == p && in->lane[l].device;
	for (uint32_t l = 0; l < in->tids.n && !err; l++)
		if (in->lane[l].process == p)
			err = put_lane(in, o, row, l, !devices || in->lane[l].device, diag);
	t->process[row].lane_end = t->nlanes;
	if (err || t->nlanes == t->process[row].lane_begin)
		return err;                       /* named alone: it has no events */
	t->nprocesses++;
	return hd_tl_build_steps(&o->b, row, diag);
}

enum hd_err hd_tl_import_build(struct import *in, struct hd_timeline *timeline, struct hd_diag *diag)
{
	struct hd_timeline t = { .job = "", .foreign = true };
	struct lanes_out o = { .b = { .arena = in->arena, .out = &t } };
	enum hd_err err = pair(in, diag);

	if (!err)
		err = list_lanes(in, &o, diag);
	o.start = start_of(in);
	for (uint32_t p = 0; p < in->pids.n && !err; p++)
		err = put_process(in, &o, p, diag);
	if (err)
		return err;
	t.base_ns = o.start;
	t.realtime_ns = in->base_ns ? in->base_ns + o.start : o.start > EPOCH_NS ? o.start : 0;
	t.name = in->names.text;
	t.nnames = in->names.n;
	*timeline = t;
	return HD_OK;
}
