#include <math.h>
#include <string.h>

#include "scheduler/dispatch/int.h"

/* Rules 12 and 13: which jobs take part, and for how long. */

#define WARN_BEFORE 0.1                           /* of its limit,
	that is left when a job's user hears of it */
#define ROUNDING_S 1e-6                           /* less is no time: of now + t nothing would be left of t */

/* It, or a task of the array that it stands for, is not over. */
static bool is_open(const struct hd_dispatch *d, uint64_t job)
{
	for (uint32_t i = d->njobs; i-- > 0 && job && d->job[i]->row.id >= job;)
		if (d->job[i]->row.state == HD_DISPATCH_OPEN &&
			(d->job[i]->row.id == job || d->job[i]->row.terms.array == job))
			return true;
	return false;
}

enum hd_err dispatch_check_terms(const struct hd_dispatch *d, const struct hd_dispatch_job *row,
	struct hd_diag *diag)
{
	const struct hd_job_terms *t = &row->terms;

	if (!(t->limit_s >= 0) || !(t->expect_s >= 0) || isinf(t->limit_s) || isinf(t->expect_s))
		return hd_fail(diag, HD_E_INVAL, "a time limit of %g s, %g s expected: numbers from 0 "
			"(none) on",
			t->limit_s, t->expect_s);
	if (t->array > row->id || t->nafter > HD_TERMS_AFTER)
		return hd_fail(diag, HD_E_INVAL, "job %llu is of array %llu and runs after %u jobs",
			(unsigned long long)row->id, (unsigned long long)t->array, t->nafter);
	for (uint32_t i = 0; i < t->nafter; i++) {
		if (t->after[i].job >= row->id || (row->state == HD_DISPATCH_OPEN && !row->cancel &&
			t->after[i].now == HD_AFTER_WAITS && !is_open(d, t->after[i].job)))
			return hd_fail(diag, HD_E_INVAL, "job %llu runs after job %llu, which is no earlier "
				"one that "
				"is not over", (unsigned long long)row->id,
					(unsigned long long)t->after[i].job);
	}
	return HD_OK;
}

/* ---- what takes part ---- */

static bool is_free_to_run(const struct live *j)
{
	bool may = j->row.state == HD_DISPATCH_OPEN && !j->row.cancel && !j->row.terms.held;

	for (uint32_t i = 0; i < j->row.terms.nafter; i++)
		may &= j->row.terms.after[i].now == HD_AFTER_MET;
	return may;
}

void dispatch_withdraw(struct hd_dispatch *d, struct live *j)
{
	if (j->in_rounds)
		hd_rounds_leave(dispatch_part(d, j)->rounds, j->row.id);
	j->admitted = j->in_rounds = false;
	j->window = 0;
	j->run.nmembers = 0;
	j->ntarget = 0;
	d->freed = true;
}

static enum hd_err admit(struct hd_dispatch *d, struct live *j, struct hd_diag *diag)
{
	j->admitted = j->in_rounds = d->came = d->decided = true;
	return dispatch_arrive(d, j, diag);
}

enum hd_err dispatch_admit_first(struct hd_dispatch *d, struct live *j, bool leased, struct hd_diag *diag)
{
	bool now = is_free_to_run(j) && (leased || !j->row.terms.at_once);

	return now ? admit(d, j, diag) : HD_OK;
}

/* The tasks of an array from `at` on; those that are over and hold nothing are not here any more. */
static uint32_t tasks_from(const struct hd_dispatch *d, uint32_t at)
{
	uint64_t array = d->job[at]->row.terms.array;
	uint32_t n = 1;

	while (array && at + n < d->njobs && d->job[at + n]->row.terms.array == array)
		n++;
	return n;
}

static enum hd_err admit_group(struct hd_dispatch *d, uint32_t at, uint32_t n, struct hd_diag *diag)
{
	uint32_t most = d->job[at]->row.terms.at_once, work = 0;
	enum hd_err err = HD_OK;

	for (uint32_t i = at; i < at + n && most; i++)
		work += d->job[i]->admitted || dispatch_leased(d->job[i]);
	for (uint32_t i = at; i < at + n && !err; i++) {
		struct live *j = d->job[i];
		bool counted = dispatch_leased(j);
		if (j->admitted || !is_free_to_run(j) || (most && !counted && work >= most))
			continue;
		work += !counted;
		err = admit(d, j, diag);
	}
	return err;
}

enum hd_err dispatch_admit(struct hd_dispatch *d, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	for (uint32_t at = 0, n; at < d->njobs && !err; at += n) {
		n = tasks_from(d, at);
		err = admit_group(d, at, n, diag);
	}
	return err;
}

/* ---- after other jobs ---- */

void dispatch_settle(struct hd_dispatch *d, const struct live *of, bool done)
{
	uint64_t id = of->row.id, array = of->row.terms.array;
	bool last = !array || !is_open(d, array);

	for (uint32_t i = d->njobs; i-- > 0 && d->job[i]->row.id > id;) {
		struct live *j = d->job[i];
		for (uint32_t k = 0; k < j->row.terms.nafter; k++) {
			struct hd_after *after = &j->row.terms.after[k];
			if ((after->job != id && (!array || after->job != array)) || after->now !=
				HD_AFTER_WAITS)
				continue;
			after->now = hd_after_judge(after->kind, done, after->job == array ? last : true);
			j->row_dirty = true;
		}
	}
}

const struct hd_after *dispatch_broken(const struct live *j)
{
	for (uint32_t k = 0; k < j->row.terms.nafter; k++)
		if (j->row.terms.after[k].now == HD_AFTER_BROKEN)
			return &j->row.terms.after[k];
	return NULL;
}

/* ---- for how long ---- */

double hd_dispatch_ran_s(const struct hd_dispatch_job *row, double now_s)
{
	return row->ran_s + (row->from_s >= 0 && now_s > row->from_s ? now_s - row->from_s : 0);
}

void dispatch_stop_counting(const struct hd_dispatch *d, struct hd_dispatch_job *row)
{
	row->ran_s = hd_dispatch_ran_s(row, d->now_s);
	row->from_s = -1;
}

static bool has_limit(const struct live *j)
{
	return j->row.terms.limit_s > 0 && j->row.state == HD_DISPATCH_OPEN && !j->row.cancel;
}

/* Running time at which something is to be done next. */
static double mark_s(const struct live *j)
{
	return j->row.terms.limit_s * (j->warned ? 1 : 1 - WARN_BEFORE);
}

double dispatch_limit_s(const struct hd_dispatch *d, const struct live *j)
{
	double left_s = mark_s(j) - hd_dispatch_ran_s(&j->row, d->now_s);

	return has_limit(j) && j->row.from_s >= 0 && left_s > ROUNDING_S ? d->now_s + left_s : INFINITY;
}

static enum hd_err look_at_limit(struct hd_dispatch *d, struct live *j)
{
	double ran_s = hd_dispatch_ran_s(&j->row, d->now_s) + ROUNDING_S, limit_s = j->row.terms.limit_s;

	if (ran_s >= limit_s) {
		j->row.cancel = j->row.timeout = j->row_dirty = true;
		dispatch_withdraw(d, j);
		return dispatch_note(d, j->row.id, "limit", "it ran for %.1f s of %g s: it commits and "
			"ends", ran_s,
			limit_s);
	}
	if (j->warned || ran_s < mark_s(j))
		return HD_OK;
	j->warned = true;
	return dispatch_note(d, j->row.id, "limit", "%.1f s of running time are left of %g s",
		limit_s - ran_s,
		limit_s);
}

enum hd_err dispatch_limits(struct hd_dispatch *d, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	(void)diag;
	for (uint32_t i = 0; i < d->njobs && !err; i++)
		if (has_limit(d->job[i]))
			err = look_at_limit(d, d->job[i]);
	return err;
}
