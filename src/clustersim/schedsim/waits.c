#include "clustersim/sched_waits.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool other(const char *wanted, const char *is) { return wanted && strcmp(wanted, is) != 0; }

static bool counts(const struct hd_job_filter *f, const char *user, uint32_t devices,
	const struct hd_job_record *r)
{
	const double at_s = r ? r->submit_s : NAN;

	return !other(f->user, user) && !other(f->account, r ? r->account : "") &&
		(!f->partition || hd_slurm_partition_in(r ? r->partition : "", f->partition)) &&
		devices >= f->min_devices &&
		(isnan(f->from_s) || at_s >= f->from_s) && (isnan(f->to_s) || at_s < f->to_s);
}

bool hd_job_counts(const struct hd_job_filter *filter, const struct hd_listed_job *job) { return
	counts(filter,
	job->user, job->scale, job->record); }

void hd_job_list_filter(struct hd_job_list *list, const struct hd_job_filter *filter)
{
	size_t kept = 0;

	for (size_t i = 0; i < list->n; i++)
		if (hd_job_counts(filter, &list->at[i]))
			list->at[kept++] = list->at[i];
	if (kept == list->n)
		return;
	list->n = kept;
	for (size_t i = kept; i-- > 0;)
		list->at[i].arrival_s -= list->at[0].arrival_s;
}

static const char *name_of(const struct hd_sim_row *row, enum hd_group by)
{
	const struct hd_job_record *r = row->record;
	const char *const name[HD_NGROUPS] = { [HD_GROUP_ALL] = "all", [HD_GROUP_USER] = row->user,
		[HD_GROUP_ACCOUNT] = r ? r->account : "", [HD_GROUP_PARTITION] = r ? r->partition : "",
		[HD_GROUP_QOS] = r ? r->qos : "",
		[HD_GROUP_TYPE] = r ? r->type : row->type ? row->type : "" };

	return *name[by] ? name[by] : "-";
}

struct of_job { const char *group; const struct hd_sim_row *row; double waited_s; };

static int by_group(const void *a, const void *b)
{
	const struct of_job *x = a, *y = b;
	int by = strcmp(x->group, y->group);

	/* jobs that did not start are last, as NAN is not less than anything */
	if (by || isnan(x->waited_s) || isnan(y->waited_s))
		return by ? by : isnan(x->waited_s) - isnan(y->waited_s);
	return (x->waited_s > y->waited_s) - (x->waited_s < y->waited_s);
}

static double quantile(const struct of_job *sorted, uint64_t n, double p)
{
	uint64_t at = (uint64_t)ceil(p * (double)n);

	return n ? sorted[at ? at - 1 : 0].waited_s : NAN;
}

/* Of one group, sorted by wait. */
static struct hd_wait_sum sum_up(const struct of_job *job, uint64_t n)
{
	struct hd_wait_sum w = { .name = job->group, .njobs = n };
	uint64_t nover = 0;
	double sum = 0, jct = 0;

	for (uint64_t i = 0; i < n; i++) {
		const struct hd_sim_row *row = job[i].row;
		if (!isnan(job[i].waited_s)) {
			w.nstarted++;
			sum += job[i].waited_s;
		}
		if (!isnan(row->jct_s)) {
			nover++;
			jct += row->jct_s;
		}
		for (size_t t = 0; t < sizeof row->device_s / sizeof *row->device_s; t++)
			w.device_h += row->device_s[t] / 3600;
	}
	w.mean_s = w.nstarted ? sum / (double)w.nstarted : NAN;
	w.p50_s = quantile(job, w.nstarted, 0.5);
	w.p90_s = quantile(job, w.nstarted, 0.9);
	w.max_s = quantile(job, w.nstarted, 1);
	w.mean_jct_s = nover ? jct / (double)nover : NAN;
	return w;
}

enum hd_err hd_sched_waits(struct hd_wait_sum **waits, uint32_t *n, const struct hd_sched_sim_setting *set,
	const struct hd_sched_sim_result *result, const struct hd_job_filter *filter, enum hd_group by,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct of_job *job = hd_arena_take(arena, (size_t)result->nrows + 1, sizeof *job);
	uint64_t njobs = 0;

	*n = 0;
	for (uint64_t i = 0; job && i < result->nrows; i++) {
		const struct hd_sim_row *row = &result->row[i];
		if ((!set->end || (i >= set->first && i < set->end)) &&
			counts(filter, row->user, row->scale, row->record))
			job[njobs++] = (struct of_job){ name_of(row, by), row,
				row->first_start_s - row->arrival_s };
	}
	if (njobs)
		qsort(job, njobs, sizeof *job, by_group);
	for (uint64_t i = 0; job && i < njobs; i++)
		*n += !i || strcmp(job[i].group, job[i - 1].group) != 0;
	*waits = job ? hd_arena_take(arena, (size_t)*n + 1, sizeof **waits) : NULL;
	if (!*waits)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the waits of %llu jobs",
			(unsigned long long)result->nrows);
	*n = 0;
	for (uint64_t from = 0, to; from < njobs; from = to) {
		for (to = from; to < njobs && !strcmp(job[to].group, job[from].group);)
			to++;
		(*waits)[(*n)++] = sum_up(&job[from], to - from);
	}
	return HD_OK;
}
