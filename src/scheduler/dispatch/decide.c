#include <math.h>
#include <stdio.h>
#include <string.h>

#include "scheduler/dispatch/int.h"

/* Shares and rounds, as in the simulator (schedsim/ours.c): only that work is done elsewhere, and targets
 * come out. */

bool dispatch_is_here(const struct live *j) { return j->in_rounds; }

/* Time goes to the books once a decision: so calls that decide nothing change nothing. In parts of 1/1024 s:
 * jobs that had a round each had equally much, whatever was lost in the last digits of the time of day. */
void dispatch_charge(struct hd_dispatch *d, double until_s)
{
	double took_s = nearbyint((until_s - d->charged_s) * 1024) / 1024;

	for (uint32_t i = 0; i < d->njobs && took_s > 0; i++)
		if (d->job[i]->run.nmembers && dispatch_is_here(d->job[i]))
			hd_rounds_ran(dispatch_part(d, d->job[i])->rounds, &d->job[i]->run, took_s);
	d->charged_s = fmax(until_s, d->charged_s);
}

static enum hd_err adopt(struct hd_dispatch *d, struct live_part *p, const struct hd_round *round,
	struct hd_diag *diag)
{
	for (uint32_t i = 0; i < d->njobs; i++) {
		if (dispatch_part(d, d->job[i]) != p)
			continue;
		d->job[i]->run.nmembers = 0;
		d->job[i]->ntarget = d->job[i]->window ? d->job[i]->ntarget : 0;
	}
	for (uint32_t i = 0; i < round->nruns; i++) {
		const struct hd_round_run *run = &round->run[i];
		struct live *j = dispatch_find(d, run->id[0]);
		if (run->nmembers != 1 || !j || run->ndevices > HD_DISPATCH_SET)
			return hd_fail(diag, HD_E_BUG, "the round runs job %llu with %u others on %u devices",
				(unsigned long long)run->id[0],
				run->nmembers - 1u, run->ndevices);
		j->run = *run;
		for (uint32_t k = 0; k < run->ndevices; k++) {       /* ascending, as leases are */
			uint32_t at = j->ntarget++, device = round->device[run->first + k];
			for (; at && j->target[at - 1] > device; at--)
				j->target[at] = j->target[at - 1];
			j->target[at] = device;
		}
	}
	d->decided = true;
	return HD_OK;
}

static uint32_t count_here(const struct hd_dispatch *d)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < d->njobs; i++)
		n += dispatch_is_here(d->job[i]);
	return n;
}

/* The next multiple of the round after now; without jobs: none. */
static void set_boundary(struct hd_dispatch *d, bool any)
{
	double k = floor((d->now_s - d->began_s) / d->set.round_s);

	if (any && d->boundary_s > d->now_s && isfinite(d->boundary_s))
		return;
	do                                        /* the quotient may be rounded down */
		d->boundary_s = any ? d->began_s + ++k * d->set.round_s : INFINITY;
	while (d->boundary_s <= d->now_s);
}

/* While there are no shares all jobs go on as they are, but a device out of service is left at once. */
static void leave_what_is_out_of_service(struct hd_dispatch *d, const struct live_part *p)
{
	for (uint32_t i = 0; i < d->njobs; i++) {
		struct live *j = d->job[i];
		bool out = false;
		for (uint32_t k = 0; k < j->ntarget && dispatch_part(d, j) == p; k++)
			out |= !dispatch_may_use(d, j, j->target[k]);
		if (!out)
			continue;
		dispatch_charge(d, d->now_s);
		j->run.nmembers = 0;
		j->ntarget = 0;
		d->decided = true;
	}
}

/* Shares, as far as they are due; which parts have a round to begin, and which wait for their answer. */
static enum hd_err ask(struct hd_dispatch *d, bool boundary, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;
	bool answered = d->asked.answered, asks = d->asked.open;

	for (uint32_t i = 0; i < d->nparts && boundary; i++) {
		d->part[i].waits = false;
		d->part[i].due = true;
	}
	if (answered)
		err = dispatch_take_up(d, diag);
	for (uint32_t i = 0; i < d->nparts && !answered && !asks && !err; i++)
		if (hd_rounds_due(d->part[i].rounds, d->now_s))
			err = d->set.apart ? dispatch_lay_by(d, &d->part[i], diag) :
				dispatch_solve(d, &d->part[i], diag);
	/* a job keeps its lease until there are shares that say otherwise */
	for (uint32_t i = 0; i < d->nparts; i++)
		d->part[i].waits |= d->question->of[i].open && !d->part[i].shared;
	return err;
}

/* The next round of a part, or what became free in this one. */
static enum hd_err turn(struct hd_dispatch *d, struct live_part *p, bool news, struct hd_diag *diag)
{
	struct hd_round round;
	enum hd_err err;

	if (p->waits) {
		leave_what_is_out_of_service(d, p);
		return HD_OK;
	}
	if (!p->due && !news)
		return HD_OK;
	if (!p->due)
		dispatch_charge(d, d->now_s);
	if ((err = dispatch_share_quotas(d, p, diag)))
		return err;
	err = p->due ? hd_rounds_next(p->rounds, &round, diag) : hd_rounds_offer(p->rounds, &round, diag);
	p->due = false;
	return err ? err : adopt(d, p, &round, diag);
}

enum hd_err dispatch_decide(struct hd_dispatch *d, struct hd_diag *diag)
{
	enum hd_err err = dispatch_admit(d, diag);
	bool any = count_here(d) > 0;

	if (err)
		return err;
	if (any && d->began_s < 0)
		d->began_s = d->now_s;
	/* after an empty cluster, and at the start: decide now */
	if (any && !isfinite(d->boundary_s))
		d->boundary_s = d->now_s;
	bool boundary = d->now_s >= d->boundary_s;
	if (boundary || d->asked.answered) {
		dispatch_charge(d, boundary && d->now_s < d->boundary_s + d->set.round_s ? d->boundary_s :
			d->now_s);
		for (uint32_t i = 0; i < d->njobs && boundary; i++)
			dispatch_measure(d, d->job[i]);
		err = ask(d, boundary, diag);
	}
	bool news = (d->came || d->freed) && any, waits = false;
	for (uint32_t i = 0; i < d->nparts && !err; i++) {
		bool moved = dispatch_claim(d, &d->part[i]);
		err = turn(d, &d->part[i], news || moved, diag);
		waits |= d->part[i].waits;
	}
	/* for what waits for an answer it stays news */
	if (!waits || !any)
		d->came = d->freed = false;
	set_boundary(d, any);
	return err;
}
