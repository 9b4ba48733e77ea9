#include <math.h>
#include <string.h>

#include "base/num.h"
#include "cluster/io/table.h"

/* What Slurm's accounting says of jobs: `sacct --parsable`. */

enum sacct { JOB_ID, JOB_NAME, ACCOUNT, SUBMITTED, ELAPSED, ELAPSED_RAW, NNODES, ALLOC_TRES, REQ_TRES, REQ_GRES, NSACCT };
static const char *const sacct_name[NSACCT] = {
	[JOB_ID] = "JobID", [JOB_NAME] = "JobName", [ACCOUNT] = "User", [SUBMITTED] = "Submit", [ELAPSED] = "Elapsed", [ELAPSED_RAW] = "ElapsedRaw",
	[NNODES] = "NNodes", [ALLOC_TRES] = "AllocTRES", [REQ_TRES] = "ReqTRES", [REQ_GRES] = "ReqGRES",
};

/* "billing=4,cpu=4,gres/gpu=2,gres/gpu:v100=2": the untyped sum, else the sum of the types. "gpu:2" and "gpu:v100:2" of older releases. */
static double devices_of(const char *tres)
{
	double typed = 0, sum = 0;

	for (const char *at = tres; at && *at; at = strchr(at, ','), at = at ? at + 1 : NULL) {
		size_t len = strcspn(at, ","), value = len;
		char item[128], *gpu;
		uint64_t n;
		if (len >= sizeof item)
			continue;
		memcpy(item, at, len);
		item[len] = 0;
		gpu = !strncmp(item, "gres/", 5) ? item + 5 : item;
		if (strncmp(gpu, "gpu", 3) != 0 || (gpu[3] != '=' && gpu[3] != ':'))
			continue;
		while (value && item[value - 1] != '=' && item[value - 1] != ':')
			value--;
		if (hd_num_u64(item + value, HD_JOB_SCALE, &n, NULL))
			continue;
		if (item + value == gpu + 4)
			sum = (double)n;
		else
			typed += (double)n;
	}
	return sum > 0 ? sum : typed;
}

/* [DD-[HH:]]MM:SS, as Slurm prints it. */
static bool elapsed_of(const char *text, double *seconds)
{
	uint64_t part[4];
	int n = 0, days = 0;

	for (const char *at = text; n < 4; n++) {
		size_t len = strspn(at, "0123456789");
		if (!len || len > 8)
			return false;
		for (part[n] = 0; len; len--)
			part[n] = part[n] * 10 + (uint64_t)(*at++ - '0');
		if (*at == '-' && n == 0)
			days = 1;
		else if (*at == 0) {
			n++;
			break;
		} else if (*at != ':' && *at != '.')
			return false;
		at++;
	}
	if (n < 2 + days || n > 3 + days || (days && n < 4))
		return false;
	*seconds = days ? (double)part[0] * 86400 : 0;
	double rest = 0;
	for (int k = days; k < n; k++)
		rest = rest * 60 + (double)part[k];
	*seconds += rest;
	return true;
}

static const char *sacct_cell(const struct cells *c, const int at[NSACCT], enum sacct field) { return at[field] == TABLE_NONE ? "" : c->cell[at[field]].text; }

static enum hd_err read_sacct(struct table *t, const struct cells *c, const int at[NSACCT], struct hd_diag *diag)
{
	struct hd_listed_job job = { .weight = 1, .deadline_s = INFINITY };
	double gpus = 0;
	enum hd_err err;

	if (strchr(sacct_cell(c, at, JOB_ID), '.'))
		return HD_OK;
	if (!when_parse(sacct_cell(c, at, SUBMITTED), &job.arrival_s))
		return cells_fail(c, (uint32_t)at[SUBMITTED], diag, "Submit \"%.60s\" is no time (YYYY-MM-DDTHH:MM:SS)", sacct_cell(c, at, SUBMITTED));
	if (at[ELAPSED_RAW] != TABLE_NONE) {
		if ((err = table_number(c, at[ELAPSED_RAW], "ElapsedRaw", 0, &job.duration_s, diag)))
			return err;
	} else if (!elapsed_of(sacct_cell(c, at, ELAPSED), &job.duration_s)) {
		return cells_fail(c, (uint32_t)at[ELAPSED], diag, "Elapsed \"%.60s\" is no duration ([DD-[HH:]]MM:SS)", sacct_cell(c, at, ELAPSED));
	}
	for (enum sacct f = ALLOC_TRES; f <= REQ_GRES && !(gpus > 0); f++)
		gpus = devices_of(sacct_cell(c, at, f));
	if (!(gpus > 0) && (err = table_number(c, at[NNODES], "NNodes", 0, &gpus, diag)))
		return err;
	if (gpus != floor(gpus) || gpus > HD_JOB_SCALE)
		return cells_fail(c, (uint32_t)at[NNODES], diag, "NNodes is %g: a whole number, at most %d", gpus, HD_JOB_SCALE);
	job.user = jobs_text(&t->jobs, sacct_cell(c, at, ACCOUNT), &t->last_user);
	job.name = hd_arena_text(t->jobs.arena, sacct_cell(c, at, JOB_NAME), strlen(sacct_cell(c, at, JOB_NAME)));
	if (!job.user || !job.name)
		return hd_fail(diag, HD_E_NOMEM, "%s: no memory for its jobs", c->name);
	return table_add(t, c, TABLE_NONE, &job, gpus, diag);
}

enum hd_err hd_job_list_sacct(struct hd_job_list *list, const char *name, const uint8_t *bytes, size_t len, const struct hd_job_table_how *how,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct table t;
	struct cells *c;
	int at[NSACCT];
	enum hd_err err = table_open(&t, name, how, arena, diag);

	if (!err)
		err = cells_open(&c, name, bytes, len, '|', arena, diag);
	if (err)
		return err;
	if (!cells_next(c, &err, diag))
		return err ? err : hd_fail(diag, HD_E_INPUT,
			"%s:1:1: the file is empty: its first line names the fields (sacct --parsable, without --noheader)", name);
	for (int f = 0; f < NSACCT; f++)
		at[f] = table_cell(c, sacct_name[f]);
	if (at[JOB_ID] == TABLE_NONE || at[SUBMITTED] == TABLE_NONE || (at[ELAPSED] == TABLE_NONE && at[ELAPSED_RAW] == TABLE_NONE))
		return cells_fail(c, c->n, diag, "the fields JobID, Submit and Elapsed (or ElapsedRaw) are needed: "
			"sacct --parsable --format=JobID,JobName,User,Submit,ElapsedRaw,NNodes,AllocTRES");
	if (at[NNODES] == TABLE_NONE && at[ALLOC_TRES] == TABLE_NONE && at[REQ_TRES] == TABLE_NONE && at[REQ_GRES] == TABLE_NONE)
		return cells_fail(c, c->n, diag, "no field says how many devices a job has: add AllocTRES or NNodes to --format");
	uint32_t columns = c->n;
	while (!err && cells_next(c, &err, diag))
		err = c->n == columns ? read_sacct(&t, c, at, diag) : cells_fail(c, c->n - 1, diag, "%u fields, the header has %u", c->n, columns);
	return err ? err : table_close(&t, name, list, diag);
}
