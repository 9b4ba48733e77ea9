#include "timeline/analyze/straggler_int.h"

#include <string.h>

#include "timeline/analyze/counted.h"

bool hd_tl_hold_computes(const struct hd_tl_causes *c, uint32_t process)
{
	const struct hd_tl_process *p = &c->tl->process[process];

	for (uint32_t l = p->lane_begin; l < p->lane_end; l++)
		if (c->begin[l] < c->begin[l + 1])
			return p->aligned;
	return false;
}

static bool shares_host(const struct hd_tl_causes *c, uint32_t process)
{
	for (uint32_t p = 0; p < c->tl->nprocesses; p++)
		if (p != process && hd_tl_hold_computes(c, p) && strcmp(c->tl->process[p].host,
			c->tl->process[process].host) == 0)
			return true;
	return false;
}

bool hd_tl_hold_stands_still(const struct hold_judge *j, struct hd_tl_span span,
	int64_t (*measure)(const struct
	hd_tl_causes *causes, uint32_t process, struct hd_tl_span span), struct hd_tl_straggler *s)
{
	int64_t most = 0, second = 0;

	for (uint32_t p = 0; p < j->causes->tl->nprocesses; p++) {
		const int64_t ns = hd_tl_hold_computes(j->causes, p) ? measure(j->causes, p, span) : 0;
		if (ns > most) {
			second = most;
			most = ns;
			s->process = p;
		} else if (ns > second) {
			second = ns;
		}
	}
	if (!most || most * 100 <= HD_TL_STRAGGLER_PERCENT * (span.t1 - span.t0) || most <= 2 * second)
		return false;
	s->cause = HD_TL_HOLD_PAUSED;
	s->share = j->share[s->process];
	s->gain = (double)most / (double)(span.t1 - span.t0);
	return true;
}

int64_t hd_tl_hold_more_of(const struct hold_judge *j, const int64_t *ns, uint32_t process)
{
	int64_t least = INT64_MAX;

	for (uint32_t p = 0; p < j->causes->tl->nprocesses; p++)
		if (p != process && hd_tl_hold_computes(j->causes, p) && ns[p] < least)
			least = ns[p];
	return ns[process] < 0 ? 0 : ns[process] - (least > 0 && least < INT64_MAX ? least : 0);
}

static int64_t more_starved(const struct hold_judge *j, uint32_t process)
{
	const int64_t starved = hd_tl_hold_more_of(j, j->starved, process), held = hd_tl_hold_more_of(j,
		j->held, process);

	return starved > held ? starved - (held > 0 ? held : 0) : 0;
}

enum hd_err hd_tl_hold_look_at(const struct hold_judge *j, uint32_t process, struct hd_tl_span span,
	struct hd_tl_excess *x)
{
	return hd_tl_excess_of(j->causes, process, span, j->scratch, x, j->diag);
}

/* Rule d. */
static bool starves(const struct hold_judge *j, uint32_t process, const struct hd_tl_excess *x)
{
	return shares_host(j->causes, process) &&
		4 * more_starved(j, process) >= 3 * (x->net > x->rest ? x->net : (x->net + x->rest) / 2);
}

bool hd_tl_hold_starves_transfers(const struct hold_judge *j, uint32_t process, const struct hd_tl_excess *x,
	double gain, struct hd_tl_span span)
{
	const int64_t left = more_starved(j, process) - (x->net > 0 ? x->net : 0);

	return shares_host(j->causes, process) && 4 * (double)left >= 3 * gain * (double)(span.t1 - span.t0);
}

/* A long stretch of one instruction may be many short ones in which it had no processor: its heartbeat knows,
 * where it is recorded. */
static bool pauses(const struct hold_judge *j, uint32_t process, const struct hd_tl_excess *x,
	struct hd_tl_span span)
{
	return x->whole > 0 && 2 * x->whole >= x->all && 2 * hd_tl_hold_more_of(j, j->held,
		process) < x->all &&
		(!hd_tl_has_heartbeat(j->causes->tl, process) ||
			2 * hd_tl_stopped_ns(j->causes, process, span) >= x->whole);
}

bool hd_tl_hold_is_held(const struct hold_judge *j, uint32_t process, double channels, struct hd_tl_span span)
{
	struct hd_tl_straggler still;

	return 2 * (double)hd_tl_hold_more_of(j, j->held, process) >=
		channels * (double)(span.t1 - span.t0) ||
		(hd_tl_hold_stands_still(j, span, hd_tl_stops_ns, &still) && still.process == process);
}

/* Is what its transfers gain for want of a processor? */
static bool lacks(const struct hold_judge *j, uint32_t process, const struct hd_tl_excess *x, double channels,
	struct hd_tl_span span)
{
	return (x->net >= x->others && 100 * x->net > 2 * HD_TL_STRAGGLER_PERCENT * (span.t1 - span.t0)) ||
		hd_tl_hold_is_held(j, process, channels, span);
}

enum hd_tl_hold hd_tl_hold_why_slow(const struct hold_judge *j, uint32_t process,
	const struct hd_tl_excess *x,
	struct hd_tl_span span, bool *is)
{
	const bool notice = hd_tl_has_notice(j->causes, process, span.t1);

	*is = notice || !starves(j, process, x);
	return notice ? HD_TL_HOLD_PREEMPTION : pauses(j, process, x, span) ? HD_TL_HOLD_PAUSED :
		HD_TL_HOLD_COMPUTE;
}

enum hd_err hd_tl_hold_cause(struct hold_judge *j, uint32_t process, struct hd_tl_span span,
	enum hd_tl_hold *cause, bool *is)
{
	double work, reading, channels;
	struct hd_tl_excess x;
	enum hd_err err = hd_tl_hold_gain(j, hd_tl_hold_alike(process, true, false, false), &work);

	if (!err)
		err = hd_tl_hold_gain(j, hd_tl_hold_alike(process, false, true, false), &reading);
	if (!err)
		err = hd_tl_hold_gain(j, hd_tl_hold_alike(process, false, false, true), &channels);
	if (!err)
		err = hd_tl_hold_look_at(j, process, span, &x);
	if (err)
		return err;
	const bool link = channels > work && !lacks(j, process, &x, channels, span);
	*cause = reading > work && reading > channels ? HD_TL_HOLD_IO : link ? HD_TL_HOLD_LINK :
		HD_TL_HOLD_COMPUTE;
	if (*cause == HD_TL_HOLD_COMPUTE)
		*cause = hd_tl_hold_why_slow(j, process, &x, span, is);
	else
		*is = *cause == HD_TL_HOLD_IO || !hd_tl_hold_starves_transfers(j, process, &x, channels,
			span);
	return HD_OK;
}
