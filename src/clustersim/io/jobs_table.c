#define _GNU_SOURCE
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/near.h"
#include "base/num.h"
#include "base/philox.h"
#include "scheduler/sched_state.h"
#include "clustersim/io/table.h"

/*        field     key of --map  usual names, in order of preference */
#define COLUMNS(X)                                                                                          \
	X(SUBMIT,   submit,   "timestamp", "submit_time", "submit", "submitted_time", "arrival", "arrival_s") \
	X(DURATION, duration, "duration", "duration_s", "run_time", "runtime")                               \
	X(GPUS,     gpus,     "num_gpus", "gpu_num", "gpus", "scale")                                        \
	X(TYPE,     type,     "job_type")                                                                    \
	X(WEIGHT,   weight,   "weight")                                                                      \
	X(USER,     user,     "user")                                                                        \
	X(DEADLINE, deadline, "deadline")

enum field {
#define X(id, key, ...) id,
	COLUMNS(X)
#undef X
	NFIELDS
};
enum { NUSUAL = 8, LARGEST = 8 };

static const struct { const char *key; const char *usual[NUSUAL]; size_t offset; } fields[NFIELDS] = {
#define X(id, key, ...) [id] = { #key, { __VA_ARGS__ }, offsetof(struct hd_job_columns, key) },
	COLUMNS(X)
#undef X
};

static const char **column_of(struct hd_job_columns *columns,
	enum field f) { return (const char **)(void *)((char *)columns + fields[f].offset); }

enum hd_err hd_job_columns_parse(struct hd_job_columns *columns, const char *text, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct hd_job_columns read = { 0 };
	char *at = hd_arena_text(arena, text, strlen(text)), *next;

	if (!at)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the names of columns");
	for (; at; at = next) {
		char *equals = strchr(at, '=');
		if ((next = strchr(at, ',')))
			*next++ = 0;
		if (!equals || (next && equals >= next) || !equals[1] || equals == at)
			return hd_fail(diag, HD_E_INVAL,
				"\"%.60s\" maps no column: write FIELD=COLUMN, for example "
				"submit=timestamp,gpus=num_gpus", at);
		*equals = 0;
		struct hd_near near = hd_near_to(at);
		int f;
		for (f = 0; f < NFIELDS && strcmp(fields[f].key, at) != 0; f++)
			hd_near_offer(&near, fields[f].key);
		if (f == NFIELDS)
			return hd_fail(diag, HD_E_INVAL,
				"there is no field \"%.60s\" (submit, duration, gpus, type, weight, user, "
				"deadline)%s%s%s", at,
				near.best ? "; did you mean " : "", near.best ? near.best : "",
				near.best ? "?" : "");
		*column_of(&read, (enum field)f) = equals + 1;
	}
	*columns = read;
	return HD_OK;
}

int table_cell(const struct cells *c, const char *name)
{
	for (uint32_t i = 0; i < c->n; i++)
		if (!strcasecmp(c->cell[i].text, name))
			return (int)i;
	return TABLE_NONE;
}

static enum hd_err find_columns(const struct cells *header, const struct hd_job_columns *named,
	int at[NFIELDS], struct hd_diag *diag)
{
	struct hd_job_columns columns = *named;

	for (int f = 0; f < NFIELDS; f++) {
		const char *name = *column_of(&columns, (enum field)f);
		at[f] = name ? table_cell(header, name) : TABLE_NONE;
		for (int u = 0; u < NUSUAL && fields[f].usual[u] && !name && at[f] == TABLE_NONE; u++)
			at[f] = table_cell(header, fields[f].usual[u]);
		if (at[f] == TABLE_NONE && (name || f <= GPUS))
			return cells_fail(header, header->n, diag,
				name ? "the header has no column \"%s\" (%s)" :
				"no column of the header \"%s\" is known to hold %s: "
				"name it with --map", name ? name : header->cell[0].text, fields[f].key);
	}
	return HD_OK;
}

/* ---- what a row of any table becomes ---- */

enum hd_err table_open(struct job_table *t, const char *name, const struct hd_job_table_how *how,
	struct hd_arena *arena, struct hd_diag *diag)
{
	*t = (struct job_table){ .jobs = { .arena = arena }, .how = how, .reference = HD_RATES_NONE };
	if (!how->rates)
		return HD_OK;
	if (how->reference && (t->reference = hd_rates_type(how->rates, how->reference)) == HD_RATES_NONE)
		return hd_fail(diag, HD_E_INVAL, "the table of rates has no type \"%.60s\"", how->reference);
	t->choice = hd_arena_take(arena, how->rates->nkinds + 1, sizeof *t->choice);
	return t->choice ? HD_OK : hd_fail(diag, HD_E_NOMEM, "%s: no memory to read it", name);
}

/* Steps/s that durations are on; 0: the kind does not run there. `type`: where the job ran, if somebody
 * says so and the rates know it. */
static double reference_rate(const struct job_table *t, uint32_t kind, const char *type)
{
	const struct hd_rates *rates = t->how->rates;
	uint32_t own = type ? hd_rates_type(rates, type) : HD_RATES_NONE;
	double best = 0;

	if (own != HD_RATES_NONE)
		return hd_rates_alone(rates, kind, own);
	if (t->reference != HD_RATES_NONE)
		return hd_rates_alone(rates, kind, t->reference);
	for (uint32_t j = 0; j < rates->ntypes; j++)
		best = fmax(best, hd_rates_alone(rates, kind, j));
	return best;
}

static uint32_t draw_kind(struct job_table *t, uint64_t row, uint32_t scale, const char *type)
{
	const struct hd_rates *rates = t->how->rates;
	struct hd_philox word = hd_philox((uint32_t[4]){ HD_RNG_CLUSTER_KIND, (uint32_t)row,
		(uint32_t)(row >> 32), 0 },
		hd_philox_key(t->how->seed, HD_RNG_CLUSTER));
	uint32_t n = 0;

	for (uint32_t k = 0; k < rates->nkinds; k++)
		if (rates->kind[k].scale == scale && reference_rate(t, k, type) > 0)
			t->choice[n++] = k;
	return n ? t->choice[(uint32_t)(((uint64_t)word.word[0] * n) >> 32)] : HD_RATES_NONE;
}

enum hd_err table_add(struct job_table *t, const struct cells *c, int type_cell, struct hd_listed_job *job,
	double gpus, struct hd_diag *diag)
{
	uint64_t row = t->jobs.list.nrows++;
	uint32_t kind = HD_RATES_NONE;

	job->kind = job->command = job->folder = job->steps_arg = "";
	job->steps = job->duration_s;
	if (!(job->duration_s > 0) || !(gpus > 0) || (t->how->rates && gpus > LARGEST)) {
		t->jobs.list.ndropped++;
		return HD_OK;
	}
	job->scale = (uint32_t)gpus;
	if (t->how->rates) {
		while (job->scale & (job->scale - 1))
			job->scale += job->scale & -job->scale;
		if (type_cell != TABLE_NONE && (kind = hd_rates_kind(t->how->rates, c->cell[type_cell].text,
			job->scale)) == HD_RATES_NONE)
			return cells_fail(c, (uint32_t)type_cell, diag,
				"type \"%.80s\" on %u devices is not in the table of rates",
				c->cell[type_cell].text,
				job->scale);
		if (type_cell == TABLE_NONE)
			kind = draw_kind(t, row, job->scale, job->type);
		if (kind == HD_RATES_NONE || !(reference_rate(t, kind, job->type) > 0)) {
			t->jobs.list.ndropped++;
			return HD_OK;
		}
		job->kind = t->how->rates->kind[kind].name;
		job->steps = job->duration_s * reference_rate(t, kind, job->type);
		if (!hd_sched_in(HD_SCHED_IN_STEPS, job->steps))
			return cells_fail(c, 0, diag, "%g s at %g steps/s are %g steps; it is %s",
				job->duration_s, reference_rate(t, kind, job->type),
				job->steps, hd_sched_range_words(HD_SCHED_IN_STEPS));
	} else if (type_cell != TABLE_NONE && !(job->kind = hd_arena_text(t->jobs.arena,
		c->cell[type_cell].text, strlen(c->cell[type_cell].text)))) {
		return hd_fail(diag, HD_E_NOMEM, "%s: no memory for its jobs", c->name);
	}
	return jobs_add(&t->jobs, job, diag);
}

static int by_arrival(const void *a, const void *b, void *jobs)
{
	const struct hd_listed_job *at = jobs;
	size_t i = *(const size_t *)a, k = *(const size_t *)b;

	if (at[i].arrival_s < at[k].arrival_s || at[i].arrival_s > at[k].arrival_s)
		return at[i].arrival_s < at[k].arrival_s ? -1 : 1;
	return (i > k) - (i < k);
}

enum hd_err table_close(struct job_table *t, const char *name, struct hd_job_list *list, struct hd_diag *diag)
{
	struct hd_job_list *jobs = &t->jobs.list;
	size_t *order = hd_arena_take(t->jobs.arena, jobs->n + 1, sizeof *order);
	struct hd_listed_job *sorted = hd_arena_take(t->jobs.arena, jobs->n + 1, sizeof *sorted);

	if (!order || !sorted)
		return hd_fail(diag, HD_E_NOMEM, "%s: no memory to sort its jobs", name);
	for (size_t i = 0; i < jobs->n; i++)
		order[i] = i;
	if (jobs->n)
		qsort_r(order, jobs->n, sizeof *order, by_arrival, jobs->at);
	for (size_t i = 0; i < jobs->n; i++) {
		sorted[i] = jobs->at[order[i]];
		sorted[i].arrival_s -= jobs->at[order[0]].arrival_s;
	}
	jobs->at = sorted;
	*list = *jobs;
	return HD_OK;
}

/* ---- comma-separated ---- */

enum hd_err table_number(const struct cells *c, int at, const char *what, double otherwise, double *out,
	struct hd_diag *diag)
{
	*out = otherwise;
	return at == TABLE_NONE || !*c->cell[at].text ? HD_OK : cells_f64(c, (uint32_t)at, what, -1e15, 1e15,
		out, diag);
}

static enum hd_err read_row(struct job_table *t, const struct cells *c, const int at[NFIELDS],
	struct hd_diag *diag)
{
	struct hd_listed_job job = { .weight = 1, .deadline_s = INFINITY, .user = "", .name = "" };
	double gpus = 0, until;
	enum hd_err err = cells_when(c, (uint32_t)at[SUBMIT], "submit", &job.arrival_s, diag);

	if (!err)
		err = table_number(c, at[DURATION], "duration", 0, &job.duration_s, diag);
	if (!err)
		err = table_number(c, at[GPUS], "gpus", 0, &gpus, diag);
	if (!err && (gpus != floor(gpus) || gpus > HD_JOB_SCALE))
		err = cells_fail(c, (uint32_t)at[GPUS], diag, "gpus is %g: a whole number, at most %d", gpus,
			HD_JOB_SCALE);
	if (!err)
		err = table_number(c, at[WEIGHT], "weight", 1, &job.weight, diag);
	if (!err && !hd_sched_in(HD_SCHED_IN_WEIGHT, job.weight))
		err = cells_fail(c, (uint32_t)at[WEIGHT], diag, "weight is %g; it is %s", job.weight,
			hd_sched_range_words(HD_SCHED_IN_WEIGHT));
	if (!err && at[DEADLINE] != TABLE_NONE && *c->cell[at[DEADLINE]].text &&
		!(err = cells_when(c, (uint32_t)at[DEADLINE], "deadline", &until, diag)))
		job.deadline_s = until - job.arrival_s;
	if (!err && at[USER] != TABLE_NONE && !(job.user = jobs_text(&t->jobs, c->cell[at[USER]].text,
		&t->last_user)))
		err = hd_fail(diag, HD_E_NOMEM, "%s: no memory for its jobs", c->name);
	return err ? err : table_add(t, c, at[TYPE], &job, gpus, diag);
}

enum hd_err hd_job_list_csv(struct hd_job_list *list, const char *name, const uint8_t *bytes, size_t len,
	const struct hd_job_table_how *how,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct job_table t;
	struct cells *c;
	int at[NFIELDS];
	enum hd_err err = table_open(&t, name, how, arena, diag);

	if (!err)
		err = cells_open(&c, name, bytes, len, ',', arena, diag);
	if (err)
		return err;
	if (!cells_next(c, &err, diag))
		return err ? err : hd_fail(diag, HD_E_INPUT,
			"%s:1:1: the table is empty: its first line names the columns", name);
	uint32_t columns = c->n;
	err = find_columns(c, &how->columns, at, diag);
	while (!err && cells_next(c, &err, diag))
		err = c->n == columns ? read_row(&t, c, at, diag) : cells_fail(c, c->n - 1, diag,
			"%u fields, the header has %u", c->n, columns);
	return err ? err : table_close(&t, name, list, diag);
}
