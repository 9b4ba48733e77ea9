#include "timeline/analyze/spent.h"

#include <stdlib.h>
#include <string.h>

#include "plan/ins.h"
#include "plan/xfer.h"
#include "timeline/analyze/costs.h"

/* What runs ahead of its step (engine/recorder.h) is of these, and no more of them. */
static uint8_t ahead_of(const char *name)
{
	return !strcmp(name, "forward ahead") ? HD_INS_F : !strcmp(name, "update ahead") ? HD_INS_STEP : 0;
}

/* Of the name of an event; 0: none. */
static uint8_t op_of(const char *name)
{
	for (uint8_t op = 1; op < HD_INS_END; op++)
		if (hd_ins_row(op) && !strcmp(hd_ins_row(op)->text, name))
			return op;
	return 0;
}

static int by_kind(const void *a, const void *b)
{
	const struct hd_tl_spent *x = a, *y = b;

	if (x->op != y->op)
		return x->op < y->op ? -1 : 1;
	if (x->stage != y->stage)
		return x->stage < y->stage ? -1 : 1;
	return (x->process > y->process) - (x->process < y->process);
}


static bool is_in(const struct hd_timeline *tl, uint64_t event, struct hd_tl_range range)
{
	const struct hd_tl_event *e = &tl->event[event];
	const struct hd_tl_step *s = e->step == HD_TL_NONE ? NULL : &tl->step[e->step];

	return s && s->committed && s->number >= range.first && s->number <= range.last;
}

/* Equal kinds become one. */
static uint32_t join(struct hd_tl_spent *v, uint32_t n)
{
	uint32_t out = 0;

	if (n)
		qsort(v, n, sizeof *v, by_kind);
	for (uint32_t i = 0; i < n; i++) {
		if (out && !by_kind(&v[out - 1], &v[i])) {
			v[out - 1].n += v[i].n;
			v[out - 1].ns += v[i].ns;
		} else {
			v[out++] = v[i];
		}
	}
	return out;
}

static int by_rate(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double find_rate(const struct hd_tl_causes *c, struct hd_tl_range range, double *v)
{
	const struct hd_timeline *tl = c->tl;
	size_t n = 0;

	for (size_t i = 0; i < c->nrecvs; i++) {
		const uint64_t recv = c->recv[i].event, send = hd_tl_send_of(c, recv);
		if (send == HD_TL_NO_EVENT || tl->event[send].arg < HD_TL_SPENT_BYTES ||
			!is_in(tl, recv, range) || !(hd_tl_is_xfer(tl, send, HD_XFER_ACTIVATIONS) ||
			hd_tl_is_xfer(tl, send, HD_XFER_GRADIENTS)))
			continue;
		const int64_t ns = hd_tl_wire_of(tl, send, recv);
		if (ns > 0)
			v[n++] = (double)tl->event[send].arg / (double)ns;
	}
	if (n)
		qsort(v, n, sizeof *v, by_rate);
	return n ? v[(n - 1) / 2] : 0;
}

enum hd_err hd_tl_spent_of(const struct hd_tl_causes *c, struct hd_tl_range *of, struct hd_arena *arena,
	struct hd_tl_spents *spents, struct hd_diag *diag)
{
	const struct hd_timeline *tl = c->tl;
	const uint32_t most = hd_tl_range_whole(c, of);
	const struct hd_tl_range range = *of;
	const struct hd_tl_span span = hd_tl_range_span(tl, range);
	const uint64_t nslices = c->begin[tl->nlanes];
	struct hd_tl_spents s = { .n = 0 };
	uint32_t n = 0;

	if (!most)
		return hd_fail(diag, HD_E_NOTFOUND, "the recording has no step from %llu to %llu that ended",
			(unsigned long long)range.first, (unsigned long long)range.last);
	s.at = hd_arena_take(arena, (size_t)tl->nevents + nslices + 1, sizeof *s.at);
	double *rate = hd_arena_take(arena, c->nrecvs + 1, sizeof *rate);
	if (!s.at || !rate)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the costs of %llu events",
			(unsigned long long)tl->nevents);
	for (uint64_t i = 0; i < tl->nevents; i++) {
		const struct hd_tl_event *e = &tl->event[i];
		const uint8_t op = e->kind == HD_EVENT_OP ? op_of(tl->name[e->name]) : 0;
		if (op && is_in(tl, i, range))
			s.at[n++] = (struct hd_tl_spent){ op, e->stage, tl->lane[e->lane].process, 1, 0 };
	}
	for (uint64_t i = 0; i < nslices; i++) {
		const struct hd_tl_slice *at = &c->slice[i];
		if (at->event == HD_TL_NO_EVENT || at->part != HD_TL_PART_WORK ||
			!is_in(tl, at->event, range) || tl->event[at->event].kind != HD_EVENT_OP)
			continue;
		const struct hd_tl_event *e = &tl->event[at->event];
		const uint8_t ahead = ahead_of(tl->name[e->name]), op = ahead ? ahead :
			op_of(tl->name[e->name]);
		if (op)
			s.at[n++] = (struct hd_tl_spent){ op, e->stage, tl->lane[e->lane].process, 0,
				(double)(at->t1 - at->t0) };
	}
	s.n = join(s.at, n);
	for (uint32_t i = 0; i < tl->nprocesses; i++) {
		uint64_t rows = 0;
		for (uint32_t k = tl->process[i].step_begin; k < tl->process[i].step_end; k++)
			rows += tl->step[k].committed && tl->step[k].number >= range.first &&
				tl->step[k].number <= range.last;
		s.nprocesses += rows > 0;
		s.nsteps += rows;
	}
	s.step_ns = (double)(span.t1 - span.t0) / (double)(range.last - range.first + 1);
	s.rate = find_rate(c, range, rate);
	*spents = s;
	return HD_OK;
}
