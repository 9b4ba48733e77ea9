/* walk.inc.h -- how a kernel visits operands that broadcasting repeats, or that are read in
 * another order than they are stored. One source for all paths.
 *
 * 1. A walk lists the axes of an output, outermost first, with the step of each operand along
 *    them (0: repeated); neighbours that behave alike are one axis, so equal shapes are one run.
 * 2. A tile is a run of consecutive elements of the output; walks change no order of sums. */
#ifndef HD_DEVICE_CPU_WALK_INC_H
#define HD_DEVICE_CPU_WALK_INC_H

#include "device/cpu/maps.inc.h"

enum { WALK_IN = 3 };
struct walk { int naxes, nin; int64_t dim[HD_MAX_DIMS], step[WALK_IN][HD_MAX_DIMS]; };

/* Appends an axis of n elements inside those there are; extents of 1 vanish. */
static inline void walk_axis(struct walk *w, int64_t n, const int64_t *step)
{
	int last = w->naxes - 1;
	bool alike = last >= 0;

	if (n == 1)
		return;
	for (int i = 0; i < w->nin && alike; i++)
		alike = w->step[i][last] == step[i] * n;
	if (alike)
		w->dim[last] *= n;
	else
		w->dim[++last] = n;
	w->naxes = last + 1;
	for (int i = 0; i < w->nin; i++)
		w->step[i][last] = step[i];
}

/* No axis at all becomes one of a single element. */
static inline void walk_close(struct walk *w)
{
	if (w->naxes)
		return;
	w->naxes = 1;
	w->dim[0] = 1;
	for (int i = 0; i < w->nin; i++)
		w->step[i][0] = 0;
}

/* Operands `first` on of a call, broadcast to its output. */
static __attribute__((noinline)) struct walk walk_broadcast(const struct hd_call *call)
{
	const struct hd_operand *out = &call->out[0];
	int64_t step[WALK_IN][HD_MAX_DIMS] = { { 0 } };
	struct walk w = { .nin = call->nin };

	for (int i = 0; i < w.nin; i++) {
		const struct hd_operand *in = &call->in[i];
		int64_t inner = 1;
		for (int d = in->rank - 1; d >= 0; inner *= in->dim[d--])
			step[i][d + out->rank - in->rank] = in->dim[d] == 1 ? 0 : inner;
	}
	for (int d = 0; d < out->rank; d++) {
		int64_t here[WALK_IN] = { step[0][d], step[1][d], step[2][d] };
		walk_axis(&w, out->dim[d], here);
	}
	walk_close(&w);
	return w;
}

/* Where a walk stands: offsets of the operands at the start of the innermost axis, and the element in it. */
struct walk_place { int64_t index[HD_MAX_DIMS], off[WALK_IN], col; };

static __attribute__((noinline)) struct walk_place walk_start(const struct walk *w, uint64_t at)
{
	int last = w->naxes - 1;
	struct walk_place p = { .col = (int64_t)at % w->dim[last] };

	at /= (uint64_t)w->dim[last];
	for (int d = last - 1; d >= 0; d--) {
		p.index[d] = (int64_t)at % w->dim[d];
		at /= (uint64_t)w->dim[d];
		for (int i = 0; i < w->nin; i++)
			p.off[i] += p.index[d] * w->step[i][d];
	}
	return p;
}

/* To the start of the next run of the innermost axis. */
static inline void walk_next(const struct walk *w, struct walk_place *p)
{
	p->col = 0;
	for (int d = w->naxes - 2; d >= 0; d--) {
		bool wraps = ++p->index[d] == w->dim[d];
		for (int i = 0; i < w->nin; i++)
			p->off[i] += wraps ? -(w->dim[d] - 1) * w->step[i][d] : w->step[i][d];
		if (!wraps)
			return;
		p->index[d] = 0;
	}
}

/* for each stretch of n elements of the innermost axis inside a run: `i` counts those of the output */
#define HD_WALK(w, p, i, n, run) \
	for (uint64_t i = (run).at, end_ = (run).at + (run).n, n; \
		i < end_ && ((n = (uint64_t)((w).dim[(w).naxes - 1] - (p).col), \
			n = n < end_ - i ? n : end_ - i), true); \
		i += n, walk_next(&(w), &(p)))

#endif
