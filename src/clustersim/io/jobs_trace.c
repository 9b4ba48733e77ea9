#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "scheduler/sched_state.h"
#include "clustersim/io/jobs.h"

/* Columns of both forms; -1: the form has none. */
enum column { KIND, COMMAND, FOLDER, STEPS_ARG, NEEDS_DATA, STEPS, SCALE, WEIGHT, SLO, ARRIVAL, NCOLUMNS };
static const struct form { uint32_t n; int at[NCOLUMNS]; } forms[] = {
	{ 10, { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 } },
	{ 7, { 0, 1, -1, 2, 3, 4, 6, -1, -1, 5 } },
};

enum hd_err jobs_add(struct jobs *jobs, const struct hd_listed_job *job, struct hd_diag *diag)
{
	if (jobs->list.n == jobs->cap) {
		size_t cap = jobs->cap ? 2 * jobs->cap : 256;
		struct hd_listed_job *grown = cap <= HD_JOB_LIST ? hd_arena_take(jobs->arena, cap,
			sizeof *grown) : NULL;
		if (!grown)
			return cap <= HD_JOB_LIST ? hd_fail(diag, HD_E_NOMEM, "no memory for %zu jobs", cap)
				: hd_fail(diag, HD_E_INPUT, "more than %d jobs in one list", HD_JOB_LIST);
		if (jobs->list.n)
			memcpy(grown, jobs->list.at, jobs->list.n * sizeof *grown);
		jobs->list.at = grown;
		jobs->cap = cap;
	}
	jobs->list.at[jobs->list.n++] = *job;
	return HD_OK;
}

/* Texts repeat from line to line: the last one is used again. */
const char *jobs_text(struct jobs *jobs, const char *text, const char **last)
{
	if (*last && !strcmp(*last, text))
		return *last;
	return *last = hd_arena_text(jobs->arena, text, strlen(text));
}

static enum hd_err read_line(const struct cells *c, const struct form *form, struct hd_listed_job *job,
	struct hd_diag *diag)
{
	uint32_t needs = 0;
	enum hd_err err = cells_u32(c, (uint32_t)form->at[NEEDS_DATA], "needs data", 0, 1, &needs, diag);

	*job = (struct hd_listed_job){ .needs_data = needs, .weight = 1, .deadline_s = INFINITY };
	if (!err)
		err = cells_f64(c, (uint32_t)form->at[STEPS], "total steps", 0, 1e18, &job->steps, diag);
	if (!err)
		err = cells_u32(c, (uint32_t)form->at[SCALE], "scale", 1, HD_JOB_SCALE, &job->scale, diag);
	if (!err && form->at[WEIGHT] >= 0)
		err = cells_f64(c, (uint32_t)form->at[WEIGHT], "weight", 0, 1e9, &job->weight, diag);
	if (!err && !hd_sched_in(HD_SCHED_IN_WEIGHT, job->weight))
		err = cells_fail(c, (uint32_t)form->at[WEIGHT], diag, "weight: %g; it is %s", job->weight,
			hd_sched_range_words(HD_SCHED_IN_WEIGHT));
	if (!err && form->at[SLO] >= 0)
		err = cells_f64(c, (uint32_t)form->at[SLO], "SLO", -1, 1e9, &job->slo, diag);
	if (!err && job->slo <= 0) {
		if (job->slo != -1 && job->slo != 0)
			return cells_fail(c, (uint32_t)form->at[SLO], diag,
				"SLO is %g: a factor above 0, or -1 for none", job->slo);
		job->slo = 0;
	}
	if (!err)
		err = cells_f64(c, (uint32_t)form->at[ARRIVAL], "arrival", 0, 1e15, &job->arrival_s, diag);
	return err;
}

enum hd_err hd_job_list_trace(struct hd_job_list *list, const char *name, const uint8_t *bytes, size_t len,
	struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct jobs jobs = { .arena = arena };
	const char *kind = NULL, *command = NULL, *folder = NULL, *steps_arg = NULL;
	const struct form *form = NULL;
	struct hd_listed_job job;
	struct cells *c;
	enum hd_err err = cells_open(&c, name, bytes, len, '\t', arena, diag);

	if (err)
		return err;
	while (cells_next(c, &err, diag)) {
		for (size_t f = 0; f < sizeof forms / sizeof *forms && !form; f++)
			if (forms[f].n == c->n)
				form = &forms[f];
		if (!form)
			return cells_fail(c, 0, diag,
				"%u fields: a line of a trace has 10 between tabs, or 7", c->n);
		if (c->n != form->n)
			return cells_fail(c, 0, diag, "%u fields, where the first line has %u", c->n,
				form->n);
		if ((err = read_line(c, form, &job, diag)))
			return err;
		if (jobs.list.n && job.arrival_s < jobs.list.at[jobs.list.n - 1].arrival_s)
			return cells_fail(c, (uint32_t)form->at[ARRIVAL], diag,
				"arrival %.17g is before that of the line before, %.17g: sort the lines",
				job.arrival_s, jobs.list.at[jobs.list.n - 1].arrival_s);
		job.kind = jobs_text(&jobs, c->cell[form->at[KIND]].text, &kind);
		job.command = jobs_text(&jobs, c->cell[form->at[COMMAND]].text, &command);
		job.folder = jobs_text(&jobs, form->at[FOLDER] >= 0 ? c->cell[form->at[FOLDER]].text : "",
			&folder);
		job.steps_arg = jobs_text(&jobs, c->cell[form->at[STEPS_ARG]].text, &steps_arg);
		job.user = job.name = "";
		if (!job.kind || !job.command || !job.folder || !job.steps_arg)
			return hd_fail(diag, HD_E_NOMEM, "%s: no memory for its jobs", name);
		if ((err = jobs_add(&jobs, &job, diag)))
			return err;
	}
	if (err)
		return err;
	jobs.list.nrows = jobs.list.n;
	jobs.list.columns = form ? form->n : 0;
	*list = jobs.list;
	return HD_OK;
}

static const char *some(const char *text) { return text ? text : ""; }

void hd_job_list_print(const struct hd_job_list *list, struct hd_text *to)
{
	char number[HD_NUM_CAP];

	for (size_t i = 0; i < list->n; i++) {
		const struct hd_listed_job *job = &list->at[i];
		hd_text_addf(to, "%s\t%s\t%s\t%s\t%d\t", some(job->kind), some(job->command),
			some(job->folder), some(job->steps_arg), job->needs_data);
		hd_text_addf(to, "%s\t%u\t", hd_num_print_f64(number, job->steps), job->scale);
		hd_text_addf(to, "%s\t", hd_num_print_f64(number, job->weight));
		hd_text_addf(to, "%s\t", hd_num_print_f64(number, job->slo > 0 ? job->slo : -1));
		hd_text_addf(to, "%s\n", hd_num_print_f64(number, job->arrival_s));
	}
}
