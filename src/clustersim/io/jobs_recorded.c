#include <math.h>
#include <string.h>

#include "base/num.h"
#include "clustersim/io/table.h"

/* The columns of HD_JOB_RECORDED, in its order. */
enum { ID, NAME, USER, ACCOUNT, PARTITION, QOS, STATE, KIND, TYPE, ASKED, GPUS, WEIGHT, SUBMIT, START, END,
	DURATION,
	LIMIT, DEADLINE, NCOLUMNS };

bool hd_job_list_recorded_is(const uint8_t *bytes, size_t len)
{
	const size_t n = strlen(HD_JOB_RECORDED);

	return len >= n && !memcmp(bytes, HD_JOB_RECORDED, n) && (len == n || strchr("\r\n", bytes[n]));
}

/* With quotes where a name has what separates. */
static void put_text(struct hd_text *to, const char *text)
{
	bool bare = !strpbrk(text, ",\"\r\n");

	hd_text_add(to, bare ? "" : "\"");
	for (const char *c = text; *c; c++)
		hd_text_addf(to, "%s%c", *c == '"' ? "\"" : "", *c);
	hd_text_add(to, bare ? "," : "\",");
}

/* NAN is an empty cell. */
static void put_number(struct hd_text *to, double x, char after)
{
	char number[HD_NUM_CAP];

	hd_text_addf(to, "%s%c", isnan(x) ? "" : isinf(x) ? "inf" : hd_num_print_f64(number, x), after);
}

void hd_job_list_print_recorded(const struct hd_job_list *list, struct hd_text *to)
{
	hd_text_add(to, HD_JOB_RECORDED "\n");
	for (size_t i = 0; i < list->n; i++) {
		const struct hd_listed_job *job = &list->at[i];
		const struct hd_job_record *r = job->record;
		const char *const texts[] = { r->id, job->name, job->user, r->account, r->partition, r->qos,
			r->state, job->kind, r->type, r->asked };
		for (size_t k = 0; k < sizeof texts / sizeof *texts; k++)
			put_text(to, texts[k]);
		hd_text_addf(to, "%u,", job->scale);
		put_number(to, job->weight, ',');
		put_number(to, r->submit_s, ',');
		put_number(to, r->start_s, ',');
		put_number(to, r->end_s, ',');
		put_number(to, job->duration_s, ',');
		put_number(to, r->limit_s, ',');
		put_number(to, isinf(job->deadline_s) ? NAN : job->deadline_s, '\n');
	}
}

struct recorded { struct job_table t; struct cells *c; const char *last[NCOLUMNS]; };

/* An empty cell is `none`. */
static enum hd_err number(const struct cells *c, uint32_t at, const char *what, double least, double none,
	double *out, struct hd_diag *diag)
{
	*out = none;
	if (!*c->cell[at].text)
		return HD_OK;
	if (at == LIMIT && !strcmp(c->cell[at].text, "inf")) {
		*out = INFINITY;
		return HD_OK;
	}
	return cells_f64(c, at, what, least, 1e15, out, diag);
}

static enum hd_err read_numbers(const struct cells *c, struct hd_listed_job *job, struct hd_job_record *r,
	struct hd_diag *diag)
{
	enum hd_err err = cells_f64(c, SUBMIT, "submit", -1e15, 1e15, &job->arrival_s, diag);

	if (!err)
		err = cells_f64(c, WEIGHT, "weight", -1e15, 1e15, &job->weight, diag);
	if (!err && !hd_sched_in(HD_SCHED_IN_WEIGHT, job->weight))
		err = cells_fail(c, WEIGHT, diag, "weight is %g; it is %s", job->weight,
			hd_sched_range_words(HD_SCHED_IN_WEIGHT));
	if (!err)
		err = cells_f64(c, DURATION, "duration", 0, 1e12, &job->duration_s, diag);
	if (!err)
		err = number(c, START, "start", -1e15, NAN, &r->start_s, diag);
	if (!err)
		err = number(c, END, "end", -1e15, NAN, &r->end_s, diag);
	if (!err)
		err = number(c, LIMIT, "limit", 0, NAN, &r->limit_s, diag);
	if (!err)
		err = number(c, DEADLINE, "deadline", -1e15, INFINITY, &job->deadline_s, diag);
	r->submit_s = job->arrival_s;
	r->waited_s = r->start_s >= r->submit_s ? r->start_s - r->submit_s : NAN;
	return err;
}

static const char *text_at(struct recorded *in, uint32_t at) { return jobs_text(&in->t.jobs,
	in->c->cell[at].text, &in->last[at]); }

static enum hd_err read_row(struct recorded *in, struct hd_diag *diag)
{
	struct hd_job_record *r = hd_arena_take(in->t.jobs.arena, 1, sizeof *r);
	struct hd_listed_job job = { .type = NULL };
	uint32_t gpus = 0;

	if (in->c->n != NCOLUMNS)
		return cells_fail(in->c, in->c->n - 1, diag, "%u fields, the header has %d", in->c->n,
			NCOLUMNS);
	if (!r)
		return hd_fail(diag, HD_E_NOMEM, "%s: no memory for its jobs", in->c->name);
	*r = (struct hd_job_record){ text_at(in, ID), text_at(in, ACCOUNT), text_at(in, PARTITION),
		text_at(in, QOS), .state = text_at(in, STATE), .type = text_at(in, TYPE),
		.asked = text_at(in, ASKED) };
	job.name = text_at(in, NAME);
	job.user = text_at(in, USER);
	job.type = r->type && *r->type ? r->type : NULL;
	job.record = r;
	if (!r->id || !r->account || !r->partition || !r->qos || !r->state || !r->type || !r->asked ||
		!job.name || !job.user)
		return hd_fail(diag, HD_E_NOMEM, "%s: no memory for its jobs", in->c->name);
	if (!*r->id)
		return cells_fail(in->c, ID, diag, "a job without job_id");
	enum hd_err err = cells_u32(in->c, GPUS, "gpus", 0, HD_JOB_SCALE, &gpus, diag);
	if (!err)
		err = read_numbers(in->c, &job, r, diag);
	return err ? err : table_add(&in->t, in->c, *in->c->cell[KIND].text ? KIND : TABLE_NONE, &job, gpus,
		diag);
}

enum hd_err hd_job_list_recorded(struct hd_job_list *list, const char *name, const uint8_t *bytes, size_t len,
	struct hd_arena *arena, struct hd_diag *diag)
{
	static const struct hd_job_table_how how = { .rates = NULL };
	struct recorded in = { .c = NULL };
	enum hd_err err = table_open(&in.t, name, &how, arena, diag);

	if (!err)
		err = cells_open(&in.c, name, bytes, len, ',', arena, diag);
	if (!err && !cells_next(in.c, &err, diag) && !err)
		err = hd_fail(diag, HD_E_INPUT, "%s: the file is empty", name);
	while (!err && cells_next(in.c, &err, diag))
		err = read_row(&in, diag);
	return err ? err : table_close(&in.t, name, list, diag);
}
