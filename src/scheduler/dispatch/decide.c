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
			hd_rounds_ran(d->rounds, &d->job[i]->run, took_s);
	d->charged_s = fmax(until_s, d->charged_s);
}

static enum hd_err adopt(struct hd_dispatch *d, const struct hd_round *round, struct hd_diag *diag)
{
	for (uint32_t i = 0; i < d->njobs; i++) {
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
	d->came = d->freed = false;
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
static void leave_what_is_out_of_service(struct hd_dispatch *d)
{
	for (uint32_t i = 0; i < d->njobs; i++) {
		struct live *j = d->job[i];
		bool out = false;
		for (uint32_t k = 0; k < j->ntarget; k++)
			out |= !dispatch_may_use(d, j, j->target[k]);
		if (!out)
			continue;
		dispatch_charge(d, d->now_s);
		j->run.nmembers = 0;
		j->ntarget = 0;
		d->decided = true;
	}
}

enum hd_err dispatch_decide(struct hd_dispatch *d, struct hd_diag *diag)
{
	struct hd_round round;
	enum hd_err err = dispatch_admit(d, diag);
	bool any = count_here(d) > 0;

	if (err)
		return err;
	if (any && d->began_s < 0)
		d->began_s = d->now_s;
	/* after an empty cluster, and at the start: decide now */
	if (any && !isfinite(d->boundary_s))
		d->boundary_s = d->now_s;
	bool answered = d->asked.answered, boundary = d->now_s >= d->boundary_s;
	if (boundary || answered) {
		dispatch_charge(d, boundary && d->now_s < d->boundary_s + d->set.round_s ? d->boundary_s :
			d->now_s);
		for (uint32_t i = 0; i < d->njobs && boundary; i++)
			dispatch_measure(d, d->job[i]);
		d->asked.waits = false;
		if (answered)
			err = dispatch_take_up(d, diag);
		else if (!d->asked.open && hd_rounds_due(d->rounds, d->now_s))
			err = d->set.apart ? dispatch_lay_by(d, diag) : dispatch_solve(d, diag);
		/* a job keeps its lease until there are shares that say otherwise */
		d->asked.waits |= d->asked.open && !d->shared;
		if (d->asked.waits) {
			leave_what_is_out_of_service(d);
			set_boundary(d, any);
			return err;
		}
		if (!err)
			err = hd_rounds_next(d->rounds, &round, diag);
	} else if (d->asked.waits && any) {
		leave_what_is_out_of_service(d);
		return HD_OK;
	} else if ((d->came || d->freed) && any) {
		dispatch_charge(d, d->now_s);
		err = hd_rounds_offer(d->rounds, &round, diag);
	} else {
		d->came = d->freed = false;
		if (!any)
			d->boundary_s = INFINITY;
		return HD_OK;
	}
	if (!err)
		err = adopt(d, &round, diag);
	set_boundary(d, any);
	return err;
}
