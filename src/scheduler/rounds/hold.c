#include <string.h>

#include "base/grow.h"
#include "scheduler/rounds/int.h"

/* What was decided before this process, and what was learned since a job came. */

void hd_rounds_rate(struct hd_rounds *r, uint64_t id, const double *rate)
{
	for (uint32_t i = 0; i < r->ncells; i++) {
		struct combination *c = &r->cell[i];
		if (c->own && c->nmembers == 1 && c->id[0] == id)
			c->rate[0] = rate[c->need[0].type];
	}
	for (uint32_t i = 0; i < r->nruns; i++) {
		struct hd_round_run *run = &r->run[i];
		const struct round_job *job = run->nmembers == 1 && run->nneeds == 1 &&
			run->id[0] == id ? rounds_job(r, id) : NULL;
		if (job && run->need[0].n == job->scale)
			run->rate[0] = rate[run->need[0].type];
	}
}

static uint32_t type_of(const struct hd_rounds *r, uint32_t device)
{
	uint32_t t = 0;

	while (device >= r->first_device[t + 1])
		t++;
	return t;
}

/* Needs have ascending types, and at most HD_SHAPE_NEEDS of them: a set of more types is no way to run. */
static bool count_needs(const struct hd_rounds *r, struct hd_round_run *run, const uint32_t *device,
	uint32_t n)
{
	uint32_t of[HD_SCHED_TYPES] = { 0 };

	for (uint32_t d = 0; d < n; d++)
		of[type_of(r, device[d])]++;
	for (uint32_t t = 0; t < r->ntypes; t++) {
		if (of[t] && run->nneeds == HD_SHAPE_NEEDS)
			return false;
		if (of[t])
			run->need[run->nneeds++] = (struct hd_need){ t, of[t] };
	}
	return run->nneeds;
}

enum hd_err hd_rounds_hold(struct hd_rounds *r, uint64_t id, const uint32_t *device, uint32_t n,
	struct hd_diag *diag)
{
	struct round_job *job = rounds_job(r, id);
	struct hd_round_run run = { .id = { id }, .nmembers = 1, .kind = HD_RUN_SAME,
		.first = r->ndevices_used,
		.ndevices = n };
	enum hd_err err;

	for (uint32_t d = 0; d < n; d++)
		if (device[d] >= r->first_device[r->ntypes])
			return hd_fail(diag, HD_E_INVAL, "job %llu holds device %u, which is not there",
				(unsigned long long)id, device[d]);
	if (!job || job->held != UINT32_MAX || !count_needs(r, &run, device, n) ||
		r->ndevices_used + n > r->first_device[r->ntypes])
		return hd_fail(diag, HD_E_INVAL, "job %llu cannot hold those %u devices",
			(unsigned long long)id, n);
	if ((err = hd_grow(&r->run, &r->runs_cap, (uint64_t)r->nruns + 1, sizeof *r->run,
		"entries of the rounds", diag)) ||
		(err = hd_grow(&r->device, &r->device_cap, r->first_device[r->ntypes], sizeof *r->device,
		"entries of the rounds", diag)))
		return err;
	memcpy(&r->device[r->ndevices_used], device, n * sizeof *device);
	r->ndevices_used += n;
	for (uint32_t i = 0; i < r->ncells; i++) {
		const struct combination *c = &r->cell[i];
		if (c->own && c->nmembers == 1 && c->id[0] == id && run.nneeds == 1 &&
			c->need[0].type == run.need[0].type && c->need[0].n == n)
			run.rate[0] = c->rate[0];
	}
	job->held = r->nruns;
	job->waited = 0;
	r->run[r->nruns++] = run;
	return HD_OK;
}
