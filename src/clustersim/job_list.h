/* job_list.h -- jobs as a trace lists them: what came when, wanted how many devices, and how much work it
 * was.
 *
 * Traces of published simulators and of real clusters are read into it, generators make it (job_generate.h),
 * the simulator runs it.
 *
 * 1. Jobs are sorted by arrival, stably; the earliest arrival of a table with calendar times is 0. Ids of the
 *    simulator are the places in the list.
 * 2. `steps` is work: with a table of rates in steps of `kind`, otherwise in seconds on the type of speed 1.
 * 3. Nothing is executed: a command is text.
 * 4. Bad input is HD_E_INPUT and says file:line:column and the field. A byte order mark and CR LF are
 *    accepted.
 *
 * Ownership: all lies in the arena it was read into. Pure. */
#ifndef HD_CLUSTERSIM_JOB_LIST_H
#define HD_CLUSTERSIM_JOB_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"
#include "scheduler/rates.h"

enum { HD_JOB_LIST = 1 << 24, HD_JOB_SCALE = 1 << 20,
       HD_JOB_BAD = 5 };                          /* rows that could not be read, of which a list says why */

/* Why rows of an accounting are no jobs of the list. */
/*        id       words */
#define HD_LEFT_OUT(X) \
	X(STEP,    "steps of jobs")                                       \
	X(NO_GPU,  "without GPUs")                                        \
	X(WAITED,  "never started (pending, or cancelled before)")        \
	X(NO_TIME, "took no time")                                        \
	X(AGAIN,   "there twice")                                         \
	X(FIELDS,  "with another number of fields than the header")       \
	X(WHEN,    "with a time that is none")                            \
	X(COUNT,   "with resources that are no count of GPUs")            \
	X(OTHER,   "that cannot be read otherwise")

enum hd_left_out {
#define X(id, words) HD_LEFT_##id,
	HD_LEFT_OUT(X)
#undef X
	HD_LEFT_NREASONS
};

/* What an accounting says of a job besides. Texts are "", times NAN where it does not. */
struct hd_job_record {
	const char *id, *account, *partition, *qos;
	const char *state;                        /* its first word: "COMPLETED", "CANCELLED" */
	/* of its devices, and which it asked for: "*" is any, "" not said */
	const char *type, *asked;
	double limit_s;                           /* that it asked for; INFINITY: none */
	double waited_s;                          /* from its submission to its start */
	double submit_s, start_s, end_s;          /* since 1970 */
};

struct hd_listed_job {
	/* "ResNet-18 (batch size 64)"; "" if only its time is known */
	const char *kind;
	const char *command, *folder, *steps_arg;        /* of traces that have them; "" */
	const char *user, *name;                  /* its user and name in the trace; "" */
	bool needs_data;
	uint32_t scale;                           /* devices at once */
	double arrival_s, steps;
	/* alone on the type of speed 1, or on the reference type; 0: not known */
	double duration_s;
	double weight;
	/* the deadline is so many times the duration after arrival; 0: none */
	double slo;
	double deadline_s;                        /* after arrival; INFINITY: none, or as `slo` says */
	const char *type;                         /* of devices, the only one it runs on; NULL: any */
	const struct hd_job_record *record;       /* NULL: none */
};

struct hd_job_list {
	size_t n;
	struct hd_listed_job *at;
	/* rows that are no work (no time, no devices), of how many */
	uint64_t ndropped, nrows;
	/* of an accounting, rows besides: of jobs without GPUs, of jobs that still ran (they are in the
	 * list, with their time so far), that could not be read */
	uint64_t ncpu, nopen, nbad;
	uint64_t left_out[HD_LEFT_NREASONS];      /* of an accounting: every row that is no job, by reason */
	uint64_t nrejoined;                       /* rows with the separator in a name, put together again */
	const char *bad[HD_JOB_BAD];              /* of the first of these: place and reason */
	uint32_t columns;                         /* of the trace it came from: 10, 7; 0: a table */
};

/* Lines of 10 columns (or of 7, the older form) between tabs; all lines of a file have as many. */
HD_MUST_USE enum hd_err hd_job_list_trace(struct hd_job_list *list, const char *name, const uint8_t *bytes,
	size_t len, struct hd_arena *arena,
	struct hd_diag *diag);
/* The form of 10 columns; reads back to the same list. Names of kinds without tabs and line ends. */
void hd_job_list_print(const struct hd_job_list *list, struct hd_text *to);

/* What columns of a table mean. A name that is NULL is looked for by its usual names. */
struct hd_job_columns { const char *submit, *duration, *gpus, *type, *weight, *user, *deadline; };

/* "submit=timestamp,gpus=num_gpus": cuts `text` up in place of a copy in `arena`. */
HD_MUST_USE enum hd_err hd_job_columns_parse(struct hd_job_columns *columns, const char *text,
	struct hd_arena *arena, struct hd_diag *diag);

struct hd_job_table_how {
	struct hd_job_columns columns;
	const struct hd_rates *rates;             /* NULL: no kinds, the work is the duration */
	/* type of `rates` that durations are on; NULL: each kind's fastest */
	const char *reference;
	/* draws a kind for each row, when `rates` is given and no type column */
	uint64_t seed;
};

/* Tables with a header: comma-separated (Philly's and Helios' published forms among them). Rows without time
 * or devices, and with `rates` of more than 8 devices, are dropped and counted; with `rates` scales are
 * rounded up to 1, 2, 4 or 8. */
HD_MUST_USE enum hd_err hd_job_list_csv(struct hd_job_list *list, const char *name, const uint8_t *bytes,
	size_t len,
	const struct hd_job_table_how *how, struct hd_arena *arena, struct hd_diag *diag);
/* `sacct --parsable` (or --parsable2), with --format=JobID,Submit,ElapsedRaw,AllocTRES at least, in any
 * order, of Slurm 17 to 24. A job's steps (17.batch, 17.0) are no jobs; tasks of arrays (17_4) are jobs each,
 * components of heterogeneous jobs (17+1) together are one.
 *	devices   GPUs of AllocTRES, ReqTRES, AllocGRES or ReqGRES (gres/gpu=2, gres/gpu:a100=2, gpu:a100:2),
 *	          and their type where it is one. Jobs without are left out and counted, unless `columns.gpus`
 *	          names what counts instead (NNodes)
 *	time      ElapsedRaw, or else Elapsed
 *	besides   User, JobName; Account, Partition, QOS, Timelimit (or TimelimitRaw), Start, End, State where
 *	          they are there
 * A row with more fields than the header has a bar in a name: it is put together where one text field alone
 * (JobName, Comment, WorkDir, ...) makes its times times again. A job that is there twice, with one id,
 * submission and start (files of two months, put together), counts once, as it stands where it took longest;
 * of a requeued one every start is a job. `columns` may name others for all of them: user=Account,
 * submit=Eligible, weight=Priority. Rows that cannot be read are left out and counted, and the first are
 * reported. HD_E_INPUT: a needed column is missing, or no job is left. */
HD_MUST_USE enum hd_err hd_job_list_sacct(struct hd_job_list *list, const char *name, const uint8_t *bytes,
	size_t len,
	const struct hd_job_table_how *how, struct hd_arena *arena, struct hd_diag *diag);

/* `sacct --json`, read as the rows that --parsable would have; made-up documents, not recorded ones, are what
 * it was tried with. */
bool hd_job_list_json_is(const uint8_t *bytes, size_t len);
HD_MUST_USE enum hd_err hd_job_list_json(struct hd_job_list *list, const char *name, const uint8_t *bytes,
	size_t len,
	const struct hd_job_table_how *how, struct hd_arena *arena, struct hd_diag *diag);

/* A list with records as a table of its own: the line HD_JOB_RECORDED, then a job a line, times in seconds
 * since 1970, "" where there is none. Reads back to the same list and prints to the same bytes. What it does
 * not keep are steps of kinds (a list that was read without rates has none) and counts of what was left
 * out. */
#define HD_JOB_RECORDED "job_id,name,user,account,partition,qos,state,kind,type,asked,gpus,weight,submit," \
	"start,end,duration,limit,deadline"
void hd_job_list_print_recorded(const struct hd_job_list *list, struct hd_text *to);
bool hd_job_list_recorded_is(const uint8_t *bytes, size_t len);
HD_MUST_USE enum hd_err hd_job_list_recorded(struct hd_job_list *list, const char *name, const uint8_t *bytes,
	size_t len, struct hd_arena *arena, struct hd_diag *diag);

#endif
