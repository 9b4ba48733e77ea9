#define _GNU_SOURCE
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/num.h"
#include "clustersim/io/sacct.h"

/* What Slurm's accounting says of jobs: `sacct --parsable`. It is written by machines over years and cut
 * together by hand: what cannot be read costs its row, not the file. */

enum field { JOB_ID, JOB_NAME, USER, SUBMIT, ELAPSED, ELAPSED_RAW, START, END, STATE, ACCOUNT, PARTITION, QOS,
	TIMELIMIT, TIMELIMIT_RAW, ALLOC_TRES, REQ_TRES,
	ALLOC_GRES, REQ_GRES, NNODES, NFIELDS };
static const char *const field_name[NFIELDS] = {
	[JOB_ID] = "JobID", [JOB_NAME] = "JobName", [USER] = "User", [SUBMIT] = "Submit",
		[ELAPSED] = "Elapsed", [ELAPSED_RAW] = "ElapsedRaw",
	[START] = "Start", [END] = "End", [STATE] = "State", [ACCOUNT] = "Account", [PARTITION] =
		"Partition", [QOS] = "QOS",
	[TIMELIMIT] = "Timelimit",
	[TIMELIMIT_RAW] = "TimelimitRaw", [ALLOC_TRES] = "AllocTRES", [REQ_TRES] = "ReqTRES",
	[ALLOC_GRES] = "AllocGRES", [REQ_GRES] = "ReqGRES",
	[NNODES] = "NNodes",
};
enum { TYPE_CAP = 64, HET_CAP = 24, HET_PARTS = 128 };      /* parts: Slurm has no more of a job */

/* A heterogeneous job has a row a part, "123+0", "123+1": together they are one job, which has all of their
 * devices. Their rows may lie anywhere, so they are joined when all are read; a number that comes again is a
 * part of another job of the same id. */
struct het {
	char base[HET_CAP];                       /* "123" */
	uint32_t number;                          /* behind the plus */
	uint64_t at;                              /* before it came so many */
	size_t place;                             /* of its job in the list: so many lie before it */
	struct hd_listed_job job;
	double gpus, end_s;
	bool running, many_types;                 /* of its parts */
	/* of the first of them, with the cell of its kind; NULL: there is none */
	uint64_t line;
	struct table_cell kind;
	struct het *before;                       /* the one that came before */
};

/* Fields of free text, in which a bar may stand. */
static const char *const free_text[] = { "JobName", "Comment", "AdminComment", "SystemComment", "WorkDir",
	"SubmitLine", "Container", "Extra" };
enum { NTEXTS = sizeof free_text / sizeof *free_text };

struct cells_at { uint32_t n; struct table_cell cell[HD_CELLS]; };

struct sacct {
	struct job_table t;
	struct cells *c;
	uint32_t columns;
	int at[NFIELDS];
	int gpus, kind, weight, deadline;         /* columns that the caller named; TABLE_NONE */
	int text[NTEXTS], ntexts;                 /* columns of free text */
	struct het *last_part;                    /* NULL: none came */
	uint64_t nparts;
	const char *last[NFIELDS], *last_type, *last_asked;    /* texts repeat from row to row */
	uint64_t njobs;                           /* rows of jobs, read or not */
	enum hd_left_out why;                     /* of the row at hand, if it cannot be read */
};

/* ---- cells ---- */

/* GPUs of one kind: "gres/gpu=2", "gres/gpu:a100=2", "gpu:a100:2", "gres:gpu:2"; "gpu:a100" and "gpu" are
 * one. False: something else. */
static bool gpus_of_item(char *item, const char **type, uint64_t *n, bool *bad)
{
	char *gpu = !strncmp(item, "gres/", 5) || !strncmp(item, "gres:", 5) ? item + 5 : item, *value,
		*brace = strchr(item, '(');

	if (brace)
		*brace = 0;                       /* which of a node they were: gpu:a100:2(IDX:0-1) */
	if (strncmp(gpu, "gpu", 3) != 0 || !strchr("=:", gpu[3]))
		return false;
	*bad = false;
	*n = 1;
	*type = "";
	if (!gpu[3])
		return true;
	value = strrchr(gpu, '=');
	if (!value && (value = strrchr(gpu, ':')) && strspn(value + 1, "0123456789") != strlen(value + 1)) {
		*type = gpu + 4;
		return true;
	}
	*value = 0;
	*type = value > gpu + 3 ? gpu + 4 : "";
	*bad = hd_num_u64(value + 1, HD_JOB_SCALE, n, NULL) != HD_OK;
	return true;
}

/* "PER_NODE:gpu:2": the count is of each node, "PER_JOB:" of all; the file does not say how
 * many there are. */
static const char *per_of(const char *item, double nodes, double *times)
{
	*times = 1;
	if (strncasecmp(item, "PER_", 4) != 0)
		return item;
	*times = !strncasecmp(item, "PER_JOB:", 8) ? 1 : !strncasecmp(item, "PER_NODE:", 9) ? nodes : NAN;
	return item + strcspn(item, ":") + (strchr(item, ':') != NULL);
}

enum { NO_NUMBER = -1, NOT_SAID = -2 };

/* The sum over types, or the number without one if that is greater: some have no type then. `type`: of all of
 * them, else "". Below 0: no number, or one of parts of which it is not said how many there are. `nodes`:
 * NAN, not said. */
static double gpus_of(const char *tres, double nodes, char type[TYPE_CAP])
{
	double times = 1;
	uint64_t typed = 0, all = 0, ntypes = 0;

	*type = 0;
	for (const char *at = tres; *at; at += strcspn(at, ","), at += *at == ',') {
		size_t len = strcspn(at, ",");
		const char *name;
		char item[128];
		uint64_t n = 0;
		bool bad = false;
		if (len >= sizeof item)
			continue;
		memcpy(item, at, len);
		item[len] = 0;
		if (!gpus_of_item(item + (per_of(item, nodes, &times) - item), &name, &n, &bad))
			continue;
		if (bad || (double)n * times > HD_JOB_SCALE)
			return NO_NUMBER;
		if (n && isnan(times))
			return NOT_SAID;
		n = n ? n * (uint64_t)times : 0;
		if (*name && n) {
			typed += n;
			ntypes += !!strcmp(type, name);
			snprintf(type, TYPE_CAP, "%s", name);
		} else {
			all = n > all ? n : all;
		}
	}
	if (ntypes != 1 || all > typed)
		*type = 0;
	return (double)(all > typed ? all : typed);
}

/* What Slurm prints, [DD-]HH:MM:SS and of old MM:SS, with a fraction where it measured one; and what it
 * takes for a limit: behind days the hours come first. */
static bool elapsed_of(const char *text, double *seconds)
{
	static const double behind_days[] = { 3600, 60, 1 };
	uint64_t part[4];
	int n = 0, days = 0;
	const char *at = text;
	double fraction = 0;

	for (; n < 4; at++) {
		size_t len = strspn(at, "0123456789");
		if (!len || len > 8)
			return false;
		for (part[n] = 0; len; len--)
			part[n] = part[n] * 10 + (uint64_t)(*at++ - '0');
		n++;
		if (*at == '-' && n == 1)
			days = 1;
		else if (*at != ':')
			break;
	}
	if (*at == '.' && at[1] && strspn(at + 1, "0123456789") == strlen(at + 1))
		for (const char *digit = at + strlen(at) - 1; digit > at; digit--)
			fraction = (fraction + (*digit - '0')) / 10;
	else if (*at)
		return false;
	if (n < 2 || n > 3 + days || (fraction > 0 && days && n < 4))
		return false;
	*seconds = days ? (double)part[0] * 86400 : 0;
	for (int k = days; k < n; k++)
		*seconds += (double)part[k] * behind_days[days ? k - 1 : 3 - n + k];
	*seconds += fraction;
	return true;
}

static const char *cell(const struct sacct *s, enum field f) { return s->at[f] == TABLE_NONE ? "" :
	s->c->cell[s->at[f]].text; }

static enum hd_err bad_cell(struct sacct *s, enum field f, const char *what, struct hd_diag *diag)
{
	s->why = f >= ALLOC_TRES ? HD_LEFT_COUNT : HD_LEFT_WHEN;
	return cells_fail(s->c, (uint32_t)s->at[f], diag, "%s \"%.60s\" is no %s", field_name[f], cell(s, f),
		what);
}

/* A copy of a text that the row before may have had too. */
static const char *text_of(struct sacct *s, enum field f) { return jobs_text(&s->t.jobs, cell(s, f),
	&s->last[f]); }

/* Seconds since 1970 where SLURM_TIME_FORMAT is %s. */
static bool time_of(const char *text, double *seconds) { return when_parse(text, seconds) ||
	!hd_num_f64(text, 0, 1e15, seconds, NULL); }

/* "Unknown", "None" and a column that is not there are NAN. */
static double time_or_none(const struct sacct *s, enum field f)
{
	double seconds;

	return time_of(cell(s, f), &seconds) ? seconds : NAN;
}

/* Which type it asked for; what it got says nothing of that. */
static const char *asked_of(struct sacct *s)
{
	for (int k = 0; k < 2; k++) {
		char type[TYPE_CAP];
		const double n = gpus_of(cell(s, k ? REQ_GRES : REQ_TRES), 1, type);
		if (n > 0)
			return jobs_text(&s->t.jobs, *type ? type : "*", &s->last_asked);
	}
	return "";
}

/* "CANCELLED" of "CANCELLED by 1007". */
static const char *state_of(struct sacct *s)
{
	char word[TYPE_CAP];
	size_t len = strcspn(cell(s, STATE), " ");

	snprintf(word, sizeof word, "%.*s", (int)(len < sizeof word ? len : sizeof word - 1), cell(s, STATE));
	return jobs_text(&s->t.jobs, word, &s->last[STATE]);
}

/* NAN: it does not say ("Partition_Limit"). */
static double limit_of(const struct sacct *s)
{
	double limit_s = NAN;

	if (!strcasecmp(cell(s, TIMELIMIT), "UNLIMITED") || !strcasecmp(cell(s, TIMELIMIT_RAW), "UNLIMITED"))
		return INFINITY;
	if (elapsed_of(cell(s, TIMELIMIT), &limit_s))
		return limit_s;
	return hd_num_f64(cell(s, TIMELIMIT_RAW), 0, 1e12, &limit_s, NULL) ? NAN : 60 * limit_s;
}

static enum hd_err duration_of(struct sacct *s, double *seconds, struct hd_diag *diag)
{
	s->why = HD_LEFT_WHEN;
	if (s->t.how->columns.duration && !*cell(s, ELAPSED_RAW))
		return cells_fail(s->c, (uint32_t)s->at[ELAPSED_RAW], diag, "\"%.60s\" is empty: no duration",
			s->t.how->columns.duration);
	if (*cell(s, ELAPSED_RAW))
		return hd_num_f64(cell(s, ELAPSED_RAW), 0, 1e12, seconds, NULL) ? bad_cell(s, ELAPSED_RAW,
			"number of seconds", diag) : HD_OK;
	return elapsed_of(cell(s, ELAPSED), seconds) ? HD_OK : bad_cell(s, ELAPSED,
		"duration ([DD-]HH:MM:SS)", diag);
}

/* How many from the first field that says it, of which type from the first that names one. */
static enum hd_err devices_of(struct sacct *s, double *gpus, char type[TYPE_CAP], struct hd_diag *diag)
{
	double nodes = NAN;

	s->why = HD_LEFT_COUNT;
	if (*cell(s, NNODES) && hd_num_f64(cell(s, NNODES), 1, HD_JOB_SCALE, &nodes, NULL))
		nodes = NAN;
	*gpus = 0;
	*type = 0;
	for (enum field f = ALLOC_TRES; f <= REQ_GRES; f++) {
		char named[TYPE_CAP];
		double n = gpus_of(cell(s, f), nodes, named);
		if (n <= NOT_SAID && !(*gpus > 0))
			return cells_fail(s->c, (uint32_t)s->at[f], diag,
				"%s \"%.60s\" says how many GPUs a part of the job has, "
				"not all: add NNodes (for PER_NODE) or AllocTRES to --format", field_name[f],
				cell(s, f));
		if (n < 0 && n > NOT_SAID)
			return bad_cell(s, f, "list of resources with a number of GPUs", diag);
		*gpus = *gpus > 0 || n < 0 ? *gpus : n;
		if (!*type && n > 0 && n >= *gpus && n <= *gpus)
			memcpy(type, named, sizeof named);
	}
	if (*gpus > 0)
		return HD_OK;
	enum hd_err err = table_number(s->c, s->gpus, "number of devices", 0, gpus, diag);
	if (!err && (*gpus != floor(*gpus) || *gpus < 0 || *gpus > HD_JOB_SCALE))
		err = cells_fail(s->c, (uint32_t)s->gpus, diag, "%g devices: a whole number, at most %d",
			*gpus, HD_JOB_SCALE);
	return err;
}

/* ---- rows ---- */

static enum hd_err keep_texts(struct sacct *s, struct hd_listed_job *job, const char *type,
	struct hd_diag *diag)
{
	struct hd_job_record *r = hd_arena_take(s->t.jobs.arena, 1, sizeof *r);
	const char *id = hd_arena_text(s->t.jobs.arena, cell(s, JOB_ID), strlen(cell(s, JOB_ID)));

	job->user = text_of(s, USER);
	job->name = text_of(s, JOB_NAME);
	job->type = *type ? jobs_text(&s->t.jobs, type, &s->last_type) : NULL;
	if (!r || !id || !job->user || !job->name || (*type && !job->type))
		return hd_fail(diag, HD_E_NOMEM, "%s: no memory for its jobs", s->c->name);
	*r = (struct hd_job_record){ .id = id, .account = text_of(s, ACCOUNT),
		.partition = text_of(s, PARTITION), .qos = text_of(s, QOS),
		.state = state_of(s), .asked = asked_of(s), .type = job->type ? job->type : "", .limit_s =
			limit_of(s), .submit_s = job->arrival_s,
		.start_s = time_or_none(s, START), .end_s = time_or_none(s, END) };
	r->waited_s = r->start_s >= job->arrival_s ? r->start_s - job->arrival_s : NAN;
	job->record = r;
	return r->account && r->partition && r->qos && r->state && r->asked ? HD_OK : hd_fail(diag,
		HD_E_NOMEM,
		"%s: no memory for its jobs", s->c->name);
}

/* Nothing says that it ever began. */
static bool waits(const struct hd_listed_job *job) { return !(job->duration_s > 0) &&
	(isnan(job->record->start_s) || !strcmp(job->record->state, "PENDING") ||
	!strcmp(job->record->state, "CANCELLED")); }

static enum hd_err add(struct sacct *s, int kind, struct hd_listed_job *job, double gpus, bool running,
	struct hd_diag *diag)
{
	struct hd_job_list *list = &s->t.jobs.list;
	size_t before = list->n;

	if (!(gpus > 0)) {
		list->ncpu++;
		list->left_out[HD_LEFT_NO_GPU]++;
		return HD_OK;
	}
	s->why = HD_LEFT_OTHER;
	enum hd_err err = table_add(&s->t, s->c, kind, job, gpus, diag);
	if (!err && running)
		list->nopen += list->n - before;
	if (!err && list->n == before)
		list->left_out[waits(job) ? HD_LEFT_WAITED : HD_LEFT_NO_TIME]++;
	return err;
}

static enum hd_err leave_out(struct sacct *s, const struct hd_diag *why, struct hd_diag *diag)
{
	struct hd_job_list *list = &s->t.jobs.list;
	struct hd_arena *arena = s->t.jobs.arena;

	list->left_out[s->why]++;
	if (list->nbad < HD_JOB_BAD && !(list->bad[list->nbad] = hd_arena_text(arena, why->text,
		strlen(why->text))))
		return hd_fail(diag, HD_E_NOMEM, "no memory for what is wrong with rows");
	list->nbad++;
	return HD_OK;
}

/* What is wrong with a job of parts is said of the row of its first part. */
static enum hd_err close_het(struct sacct *s, struct het *h, struct hd_diag *diag)
{
	struct hd_diag why = { "" };

	struct hd_job_record *r = hd_arena_take(s->t.jobs.arena, 1, sizeof *r);

	if (!r)
		return hd_fail(diag, HD_E_NOMEM, "%s: no memory for its jobs", s->c->name);
	*r = *h->job.record;
	r->submit_s = h->job.arrival_s;
	r->end_s = h->end_s;
	h->job.record = r;
	h->job.type = h->many_types ? NULL : h->job.type;
	r->type = h->job.type ? h->job.type : "";
	s->c->line = h->line;
	s->c->cell[0] = h->kind;
	enum hd_err err = add(s, h->kind.text ? 0 : TABLE_NONE, &h->job, h->gpus, h->running, &why);
	if (err == HD_E_INPUT)
		return leave_out(s, &why, diag);
	return err ? hd_fail(diag, err, "%s", why.text) : HD_OK;
}

/* Of "123+1" in `base`: "123", and 1. False: it is no part. */
static bool het_base(const char *id, char base[HET_CAP], uint32_t *number)
{
	const char *plus = strchr(id, '+');
	size_t len = plus ? (size_t)(plus - id) : 0;
	uint64_t n;

	if (!len || len >= HET_CAP || hd_num_u64(plus + 1, HET_PARTS - 1, &n, NULL))
		return false;
	memcpy(base, id, len);
	base[len] = 0;
	*number = (uint32_t)n;
	return true;
}

static enum hd_err keep_part(struct sacct *s, const struct het *part, struct hd_diag *diag)
{
	struct het *h = hd_arena_take(s->t.jobs.arena, 1, sizeof *h);

	if (h)
		*h = *part;
	if (h && s->kind != TABLE_NONE) {
		h->kind = s->c->cell[s->kind];
		h->kind.text = hd_arena_text(s->t.jobs.arena, h->kind.text, strlen(h->kind.text));
	}
	if (!h || (s->kind != TABLE_NONE && !h->kind.text))
		return hd_fail(diag, HD_E_NOMEM, "%s: no memory for its jobs", s->c->name);
	h->line = s->c->line;
	h->at = s->nparts++;
	h->place = s->t.jobs.list.n;
	h->before = s->last_part;
	s->last_part = h;
	return HD_OK;
}

/* Parts begin together and end apart. A part without GPUs has no type, and says nothing against that of
 * the others. */
static void merge(struct het *h, const struct het *part)
{
	const struct hd_listed_job *job = &part->job;

	if (part->gpus > 0 && h->gpus > 0)
		h->many_types |= !h->job.type != !job->type ||
			(job->type && strcmp(job->type, h->job.type) != 0);
	else if (part->gpus > 0)
		h->job.type = job->type;
	h->gpus += part->gpus;
	h->job.arrival_s = fmin(h->job.arrival_s, job->arrival_s);
	h->job.duration_s = fmax(h->job.duration_s, job->duration_s);
	h->end_s = fmax(h->end_s, part->end_s);
	h->running |= part->running;
}

static int by_place(const void *a, const void *b)
{
	const struct het *x = *(struct het *const *)a, *y = *(struct het *const *)b;

	return (x->at > y->at) - (x->at < y->at);
}

static int by_base(const void *a, const void *b)
{
	int by = strcmp((*(struct het *const *)a)->base, (*(struct het *const *)b)->base);

	return by ? by : by_place(a, b);
}

/* [*n] parts to [*n] jobs, each its first part. */
static void join(struct het **part, size_t *n)
{
	uint64_t seen[HET_PARTS / 64] = { 0 };
	size_t njobs = 0;

	qsort(part, *n, sizeof *part, by_base);
	for (size_t k = 0; k < *n; k++) {
		struct het *p = part[k], *job = njobs ? part[njobs - 1] : NULL;
		uint64_t *word = &seen[p->number / 64], bit = UINT64_C(1) << p->number % 64;
		if (job && !strcmp(job->base, p->base) && !(*word & bit)) {
			merge(job, p);
		} else {
			memset(seen, 0, sizeof seen);
			part[njobs++] = p;
		}
		*word |= bit;
	}
	*n = njobs;
	qsort(part, *n, sizeof *part, by_place);
}

/* The jobs that lie last in the list, [n] of them, go to the places of their first rows. */
static void put_in_place(struct hd_job_list *list, const struct hd_listed_job *job, const size_t *place,
	size_t n)
{
	size_t from = list->n - n, to = list->n;

	while (n--) {
		while (from > place[n])
			list->at[--to] = list->at[--from];
		list->at[--to] = job[n];
	}
	assert(from == to);
}

static enum hd_err close_parts(struct sacct *s, struct hd_diag *diag)
{
	size_t n = s->nparts, k = n, nadded = 0, before = s->t.jobs.list.n;
	struct het **part = hd_arena_take(s->t.jobs.arena, n + 1, sizeof *part);
	struct hd_listed_job *job = hd_arena_take(s->t.jobs.arena, n + 1, sizeof *job);
	size_t *place = hd_arena_take(s->t.jobs.arena, n + 1, sizeof *place);
	enum hd_err err = HD_OK;

	if (!part || !job || !place)
		return hd_fail(diag, HD_E_NOMEM, "%s: no memory for its jobs", s->c->name);
	for (struct het *p = s->last_part; p; p = p->before)
		part[--k] = p;
	assert(k == 0);
	join(part, &n);
	for (k = 0; k < n && !err; k++) {
		err = close_het(s, part[k], diag);
		if (s->t.jobs.list.n == before + nadded)
			continue;
		place[nadded] = part[k]->place;
		job[nadded++] = s->t.jobs.list.at[s->t.jobs.list.n - 1];
	}
	if (nadded)
		put_in_place(&s->t.jobs.list, job, place, nadded);
	return err;
}

static enum hd_err read_job(struct sacct *s, struct hd_diag *diag)
{
	struct hd_listed_job job = { .deadline_s = INFINITY };
	char type[TYPE_CAP];
	double gpus = 0, until_s;
	struct het h = { .running = !strncasecmp(cell(s, STATE), "RUNNING", 7) };
	bool running = h.running, part = het_base(cell(s, JOB_ID), h.base, &h.number);
	enum hd_err err;

	s->why = HD_LEFT_OTHER;
	if (!time_of(cell(s, SUBMIT), &job.arrival_s))
		return bad_cell(s, SUBMIT, "time (YYYY-MM-DDTHH:MM:SS)", diag);
	if ((err = duration_of(s, &job.duration_s, diag)) || (err = devices_of(s, &gpus, type, diag)) ||
		(err = table_number(s->c, s->weight, "weight", 1, &job.weight, diag)))
		return err;
	s->why = HD_LEFT_OTHER;
	if (!(gpus > 0) && !part)
		return add(s, s->kind, &job, gpus, running, diag);
	if (!hd_sched_in(HD_SCHED_IN_WEIGHT, job.weight))
		return cells_fail(s->c, (uint32_t)s->weight, diag, "weight is %g; it is %s", job.weight,
			hd_sched_range_words(HD_SCHED_IN_WEIGHT));
	if (s->deadline != TABLE_NONE && *s->c->cell[s->deadline].text &&
		!(err = cells_when(s->c, (uint32_t)s->deadline, "deadline", &until_s, diag)))
		job.deadline_s = until_s - job.arrival_s;
	if (!err)
		err = keep_texts(s, &job, type, diag);
	if (err || !part)
		return err ? err : add(s, s->kind, &job, gpus, running, diag);
	h.job = job;
	h.gpus = gpus;
	h.end_s = job.record->end_s;
	return keep_part(s, &h, diag);
}

static enum hd_err look_for_columns(struct sacct *s, struct hd_diag *diag)
{
	const struct hd_job_columns *named = &s->t.how->columns;
	const struct { const char *name; int *at; } others[] = {
		{ named->submit, &s->at[SUBMIT] }, { named->duration, &s->at[ELAPSED_RAW] }, { named->user, &s->at[USER] }, { named->gpus, &s->gpus },
		{ named->type, &s->kind }, { named->weight, &s->weight }, { named->deadline, &s->deadline },
	};

	for (int f = 0; f < NFIELDS; f++)
		s->at[f] = table_cell(s->c, field_name[f]);
	s->gpus = s->kind = s->weight = s->deadline = TABLE_NONE;
	for (size_t k = 0; k < sizeof others / sizeof *others; k++)
		if (others[k].name && (*others[k].at = table_cell(s->c, others[k].name)) == TABLE_NONE)
			return cells_fail(s->c, s->c->n, diag, "the header has no column \"%.60s\"",
				others[k].name);
	if (s->at[JOB_ID] == TABLE_NONE || s->at[SUBMIT] == TABLE_NONE ||
		(s->at[ELAPSED] == TABLE_NONE && s->at[ELAPSED_RAW] == TABLE_NONE))
		return cells_fail(s->c, s->c->n, diag,
			"the fields JobID, Submit and Elapsed (or ElapsedRaw) are needed: "
			"sacct --parsable --format=JobID,JobName,User,Account,Partition,QOS,Submit,Start,"
			"State,Timelimit,ElapsedRaw,ReqTRES,AllocTRES");
	if (s->at[ALLOC_TRES] == TABLE_NONE && s->at[REQ_TRES] == TABLE_NONE &&
		s->at[ALLOC_GRES] == TABLE_NONE && s->at[REQ_GRES] == TABLE_NONE &&
		s->gpus == TABLE_NONE)
		return cells_fail(s->c, s->c->n, diag,
			"no field says how many GPUs a job has: add AllocTRES to "
			"--format, or name what counts instead (--map gpus=NNodes)");
	s->columns = s->c->n;
	s->ntexts = 0;
	for (int k = 0; k < NTEXTS; k++)
		if ((s->text[s->ntexts] = table_cell(s->c, free_text[k])) != TABLE_NONE)
			s->ntexts++;
	return HD_OK;
}

/* Those of the header before stay if this one has not what is needed. */
static enum hd_err find_columns(struct sacct *s, struct hd_diag *diag)
{
	struct sacct found = *s;
	enum hd_err err = look_for_columns(&found, diag);

	if (!err)
		*s = found;
	return err;
}

/* Cells `at` to `at + more` are one, with the bars that parted them; from text that has them, or back. */
static void join_cells(struct cells *c, uint32_t at, uint32_t more)
{
	for (uint32_t k = 1; k <= more; k++)
		c->bytes[c->cell[at + k].text - c->bytes - 1] = c->sep;
	memmove(&c->cell[at + 1], &c->cell[at + 1 + more], (c->n - at - 1 - more) * sizeof *c->cell);
	c->n -= more;
}

static void part_cells(struct cells *c, const struct cells_at *was)
{
	memcpy(c->cell, was->cell, was->n * sizeof *c->cell);
	c->n = was->n;
	for (uint32_t k = 1; k < c->n; k++)
		c->bytes[c->cell[k].text - c->bytes - 1] = 0;
}

/* What a row has at its fixed places: it says when, and for how long. */
static bool is_row(const struct sacct *s)
{
	double x;

	return *cell(s, JOB_ID) && time_of(cell(s, SUBMIT), &x) && (*cell(s, ELAPSED_RAW) ?
		!hd_num_f64(cell(s, ELAPSED_RAW), 0, 1e12, &x, NULL) : elapsed_of(cell(s, ELAPSED), &x));
}

/* What is kept of the row at hand lies where it lay: a bar more or less is in a text that is not kept. */
static bool keeps_the_same(const struct sacct *s, const char *const was[NFIELDS], const size_t len[NFIELDS])
{
	for (int f = 0; f < NFIELDS; f++)
		if (cell(s, (enum field)f) != was[f] || strlen(was[f]) != len[f])
			return false;
	return true;
}

/* A row with too many fields: a name has bars in it. Whose they are is clear if one text field alone makes
 * the others what they have to be, or if several do that leave all that is kept the same (SubmitLine, Extra).
 * True: it has as many fields as the header now. */
static bool rejoin(struct sacct *s)
{
	const uint32_t more = s->c->n - s->columns;
	struct cells_at was = { .n = s->c->n };
	const char *kept[NFIELDS];
	size_t len[NFIELDS];
	int found = TABLE_NONE;

	memcpy(was.cell, s->c->cell, was.n * sizeof *was.cell);
	for (int k = 0; k < s->ntexts; k++) {
		join_cells(s->c, (uint32_t)s->text[k], more);
		if (is_row(s) && found != TABLE_NONE && !keeps_the_same(s, kept, len)) {
			part_cells(s->c, &was);
			return false;
		}
		for (int f = 0; f < NFIELDS && is_row(s) && found == TABLE_NONE; f++) {
			kept[f] = cell(s, (enum field)f);
			len[f] = strlen(kept[f]);
		}
		found = is_row(s) && found == TABLE_NONE ? s->text[k] : found;
		part_cells(s->c, &was);
	}
	if (found != TABLE_NONE)
		join_cells(s->c, (uint32_t)found, more);
	return found != TABLE_NONE;
}

/* Files of several months are put together with their headers. */
static enum hd_err read_row(struct sacct *s, struct hd_diag *diag)
{
	if (table_cell(s->c, field_name[JOB_ID]) != TABLE_NONE &&
		table_cell(s->c, s->t.how->columns.submit ? s->t.how->columns.submit :
		field_name[SUBMIT]) != TABLE_NONE)
		return find_columns(s, diag);
	if (s->c->n > s->columns && s->c->n < HD_CELLS)
		s->t.jobs.list.nrejoined += rejoin(s);
	if (s->c->n != s->columns) {
		s->njobs++;
		s->why = HD_LEFT_FIELDS;
		return cells_fail(s->c, s->c->n - 1, diag, "%u fields, the header has %u", s->c->n,
			s->columns);
	}
	if (strchr(cell(s, JOB_ID), '.')) {
		s->t.jobs.list.left_out[HD_LEFT_STEP]++;
		return HD_OK;
	}
	s->njobs++;
	if (!*cell(s, JOB_ID))
		return cells_fail(s->c, (uint32_t)s->at[JOB_ID], diag, "a job without %s",
			field_name[JOB_ID]);
	return read_job(s, diag);
}

/* ---- jobs that are there twice ---- */

/* What tells one start of a job from the next: when, or, where it is not said, how long it took. */
static double start_of(const struct hd_listed_job *job)
{
	return isnan(job->record->start_s) ? -1 - job->duration_s : job->record->start_s;
}

static int by_start(const void *a, const void *b, void *jobs)
{
	const struct hd_listed_job *x = (const struct hd_listed_job *)jobs + *(const size_t *)a,
		*y = (const struct hd_listed_job *)jobs + *(const size_t *)b;
	const double d[2] = { x->record->submit_s - y->record->submit_s, start_of(x) - start_of(y) };
	int by = strcmp(x->record->id, y->record->id);

	for (int k = 0; k < 2 && !by; k++)
		by = (d[k] > 0) - (d[k] < 0);
	return by;
}

static int by_start_and_place(const void *a, const void *b, void *jobs)
{
	size_t x = *(const size_t *)a, y = *(const size_t *)b;
	int by = by_start(a, b, jobs);

	return by ? by : (x > y) - (x < y);
}

/* The first of equal ones stays, as the one says that took longest; scale 0 marks the others. */
static enum hd_err drop_repeated(struct sacct *s, struct hd_diag *diag)
{
	struct hd_job_list *list = &s->t.jobs.list;
	size_t *order = hd_arena_take(s->t.jobs.arena, list->n + 1, sizeof *order), kept = 0;

	if (!order)
		return hd_fail(diag, HD_E_NOMEM, "%s: no memory to sort its jobs", s->c->name);
	for (size_t i = 0; i < list->n; i++)
		order[i] = i;
	if (list->n)
		qsort_r(order, list->n, sizeof *order, by_start_and_place, list->at);
	for (size_t i = 0, first = 0; i < list->n; i++) {
		struct hd_listed_job *job = &list->at[order[i]], *one = &list->at[order[first]];
		if (i == first || by_start(&order[i], &order[first], list->at)) {
			first = i;
			continue;
		}
		if (job->duration_s > one->duration_s) {
			struct hd_listed_job shorter = *one;
			*one = *job;
			*job = shorter;
		}
		list->nopen -= !strcmp(job->record->state, "RUNNING");
		job->scale = 0;
	}
	for (size_t i = 0; i < list->n; i++)
		if (list->at[i].scale)
			list->at[kept++] = list->at[i];
	list->left_out[HD_LEFT_AGAIN] += list->n - kept;
	list->n = kept;
	return HD_OK;
}

static enum hd_err nothing_left(const struct sacct *s, const char *name, struct hd_diag *diag)
{
	const struct hd_job_list *l = &s->t.jobs.list;

	if (!s->njobs && !l->nbad)
		return hd_fail(diag, HD_E_INPUT, "%s: it has a header and no job", name);
	return hd_fail(diag, HD_E_INPUT,
		"%s: no job is left: %llu have no GPU%s, %llu took no time or too many, and %llu rows could "
		"not be read%s%.240s", name,
		(unsigned long long)l->ncpu, l->ncpu ? " (--map gpus=NNodes takes one device a node)" : "",
		(unsigned long long)l->ndropped,
		(unsigned long long)l->nbad, l->nbad ? ": " : "", l->nbad ? l->bad[0] : "");
}

enum hd_err sacct_rows(struct hd_job_list *list, const char *name, const uint8_t *bytes, size_t len, char sep,
	const struct hd_job_table_how *how, struct hd_arena *arena, struct hd_diag *diag)
{
	struct sacct s = { .columns = 0 };
	enum hd_err err = table_open(&s.t, name, how, arena, diag);

	if (!err)
		err = cells_open(&s.c, name, bytes, len, sep, arena, diag);
	if (err)
		return err;
	if (!cells_next(s.c, &err, diag))
		return err ? err : hd_fail(diag, HD_E_INPUT,
			"%s:1:1: the file is empty: its first line names the fields (sacct --parsable, "
			"without --noheader)", name);
	if ((err = find_columns(&s, diag)))
		return err;
	for (bool more = true; more;) {
		struct hd_diag why = { "" };
		more = cells_next(s.c, &err, &why);
		s.why = HD_LEFT_OTHER;
		if (more)
			err = read_row(&s, &why);
		more |= err == HD_E_INPUT;        /* of a line that is no text the reader is past */
		if (err == HD_E_INPUT)
			err = leave_out(&s, &why, diag);
		if (err)
			return hd_fail(diag, err, "%s", why.text);
	}
	if ((err = close_parts(&s, diag)) || (err = drop_repeated(&s, diag)))
		return err;
	return s.t.jobs.list.n ? table_close(&s.t, name, list, diag) : nothing_left(&s, name, diag);
}

enum hd_err hd_job_list_sacct(struct hd_job_list *list, const char *name, const uint8_t *bytes, size_t len,
	const struct hd_job_table_how *how, struct hd_arena *arena, struct hd_diag *diag)
{
	return sacct_rows(list, name, bytes, len, '|', how, arena, diag);
}

double sacct_gpus(const char *tres, char type[TYPE_CAP]) { return gpus_of(tres, 1, type); }
bool sacct_time(const char *text, double *seconds) { return time_of(text, seconds); }
bool sacct_limit(const char *text, double *seconds) { return elapsed_of(text, seconds); }
