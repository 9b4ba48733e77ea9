/* explore_int.h -- the parts of a sweep that is driven: explore.c turns, orders.c jobs of trials, metric.c
 * what a run says of a rung, ids.c which jobs are asked about, scheduler.c the one that is asked, folder.c
 * the record. */
#ifndef HD_EXPLORE_EXPLORE_INT_H
#define HD_EXPLORE_EXPLORE_INT_H

#include "base/json.h"
#include "sys/lines.h"
#include "sys/process.h"
#include "sweep/record.h"
#include "explore/explore.h"

#define HD_EXPLORE_LOOK_NS INT64_C(150000000)          /* between two looks at the jobs */
#define HD_EXPLORE_PATIENCE_NS INT64_C(5000000000)     /* of silence, before what is waited for is said */
#define HD_EXPLORE_ASK_NS INT64_C(30000000000)

/* Where a trial is in the scheduler. Of this process: orders that are sent again say it again. */
struct explore_trial {
	uint32_t have;                    /* rungs that a job was made for */
	uint64_t job;                     /* of the last; 0: none yet */
	bool over;                        /* that job is done */
	uint32_t again;                   /* runs of it that were given up (explore.h, rule 5) */
	int64_t step;                     /* as listed last */
};

/* A process, by its number and when it began (sys/process.h). */
struct explore_mark { int64_t pid, began; };

struct explore {
	const struct hd_explore_spec *spec;
	struct hd_trials *trials;         /* owned, as all below */
	struct explore_trial *of;         /* [trials] */
	struct hd_hash id;                /* of the sweep */
	uint64_t rung[HD_SWEEP_RUNGS];
	uint32_t nrungs;
	char path[HD_PATH_CAP - 64];      /* the sweep's folder */
	struct hd_lines record;
	struct hd_file lock;
	struct hd_host host;
	struct hd_proc serving;           /* a scheduler that this process started */
	struct explore_mark mark;         /* of the one that a sweep started last; pid 0: none */
	bool mine;                        /* the scheduler of DIR is a sweep's */
	struct hd_arena scratch;          /* of one request */
	int64_t said_ns;                  /* when a line was said last */
	bool away;                        /* the scheduler did not answer the last time */
};

void explore_say(struct explore *x, uint32_t trial, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* folder.c. Opens the record and reads it; `parallel` for one that begins. */
HD_MUST_USE enum hd_err explore_open(struct explore *x, bool *began, struct hd_diag *diag);
HD_MUST_USE enum hd_err explore_begin(struct explore *x, uint32_t parallel, struct hd_diag *diag);
/* On the disk, then in the machine; the page follows. */
HD_MUST_USE enum hd_err explore_take(struct explore *x, const struct hd_trial_event *event,
	struct hd_diag *diag);
HD_MUST_USE enum hd_err explore_write(struct explore *x, struct hd_diag *diag);
void explore_close(struct explore *x);

/* scheduler.c. An answer lies in x->scratch. HD_E_AGAIN: no scheduler answers now, and it was said. */
HD_MUST_USE enum hd_err explore_ask(struct explore *x, const char *method, const char *target,
	const char *body, const struct hd_json **answer, struct hd_diag *diag);
/* Finds a scheduler, or starts one. */
HD_MUST_USE enum hd_err explore_meet(struct explore *x, struct hd_diag *diag);
HD_MUST_USE enum hd_err explore_devices(struct explore *x, uint32_t *n, struct hd_diag *diag);
/* At the end; drain: jobs are to commit first. */
void explore_part(struct explore *x, bool drain);

/* orders.c. Checks the job of every trial; sends what is to be sent; takes what came. *moved: something did.
 * */
HD_MUST_USE enum hd_err explore_check(struct explore *x, struct hd_diag *diag);
HD_MUST_USE enum hd_err explore_turn(struct explore *x, bool *moved, struct hd_diag *diag);

/* ids.c. The jobs of trials that run as the scheduler takes them, "3.7-9": as many as have room, from the
 * first above `after` on, which becomes the last of them. False: there are none. */
bool explore_ids(const struct explore *x, uint64_t *after, char *text, size_t cap);

/* metric.c. Of the run at that step. HD_E_NOTFOUND, HD_E_INTEGRITY: the run does not have it. */
HD_MUST_USE enum hd_err explore_metric(struct explore *x, const char *run, uint64_t step, double *metric,
	struct hd_diag *diag);

#endif
