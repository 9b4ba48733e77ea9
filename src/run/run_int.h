/* run_int.h -- the inside of a run: what run.c (the loop) and plans.c (which plan) share. Private to the
 * room. */
#ifndef HD_RUN_RUN_INT_H
#define HD_RUN_RUN_INT_H

#include "run/ckpt_every.h"
#include "run/costs.h"
#include "run/ending.h"
#include "run/forecast.h"
#include "run/functions.h"
#include "run/held_back.h"
#include "run/run.h"
#include "run/samples.h"
#include "run/stage_drift.h"
#include "run/stages.h"
#include "run/value_log.h"

struct hd_run {
	/* the step after that of which hd_run_saves() was asked; 0: of none */
	uint64_t asked_at;
	bool asked_saves;
	int64_t asked_ns;                 /* when last; what was evaluated since is left out */
	struct hd_saving saving;          /* checkpoint.every: auto */
	int64_t every_ns;                 /* when it was last read in the folder */
	uint32_t unsaved;                 /* checkpoints in a row that could not be written */
	const struct hd_job *job;         /* borrowed, as fs, clock, dir */
	struct hd_fs *fs;
	struct hd_clock *clock;
	struct hd_rundir *dir;
	struct hd_run_options options;
	struct hd_task *task;
	struct hd_task lent;              /* options.task, for this job: run->task is it */
	struct hd_worker *worker;
	struct hd_recorder *recorder;     /* NULL: off */
	struct hd_arena arena;            /* of the adopted plan */
	struct hd_plan plan;
	struct hd_run_stages stages;      /* p 0: the job asks for none, or leaves all of it open */
	struct hd_arena measured;         /* of the costs */
	struct hd_run_costs *costs;       /* NULL: nothing was measured */
	char held_back[HD_HELD_BACK_BYTES];       /* what held it back; "": nothing, or it goes on */
	struct hd_forecast forecast;      /* of the plan in use; step_ns 0: none */
	/* of a plan of stages that was made by measured costs; expected_ns NULL: not watched */
	struct hd_stage_drift drift;
	double *speed;                    /* [ranks] that the forecast counts on */
	double *was_ns, *busy_ns, *found; /* [ranks] computed before the step; in it; speeds found */
	struct hd_times times;
	uint32_t lineage;
	uint64_t digest_every, last_ckpt_step;
	double digest_ms;
	int64_t last_ckpt_ns, began_ns;
	uint64_t began_step;
	double metric;
	bool has_metric, target_reached, told_no_ckpt;
	bool torn;                        /* memory changed by itself: seen when it was to be saved */
	bool stale;                       /* the data were written to: what was computed since is of others */
	int64_t look_ns;                  /* when the data's files may be looked at again */
	uint64_t evaluated_step;
	struct hd_samples samples;        /* of `samples_of`; closed: nothing was recorded yet */
	uint32_t samples_of;
	bool no_samples;                  /* it could not be kept */
	struct hd_value_log values;       /* the same of values */
	uint32_t values_of;
	bool no_values;
	struct hd_ending_word word;       /* for a signal that does not wait */
	struct hd_run_functions *functions;       /* owned; NULL: the job asks for none */
};

enum { HD_RUN_NOTE = 1000 };              /* bytes of an event's text; a longer one says that it is cut */
/* An event of the run: for the watch and the event log. */
__attribute__((format(printf, 3, 4)))
void hd_run_note(struct hd_run *run, const char *kind, const char *fmt, ...);

/* saves.c. The choice between a library and own kernels as manifests name it. */
const char *hd_run_kernels(const struct hd_run *run);
bool hd_run_spaces_saves(const struct hd_run *run);       /* checkpoint.every: auto */
bool hd_run_save_due(struct hd_run *run);
/* A checkpoint of the state, unless that step has one; what fails in the second is a warning, unless the
 * state itself is wrong. */
HD_MUST_USE enum hd_err hd_run_save(struct hd_run *run, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_run_try_save(struct hd_run *run, struct hd_diag *diag);
/* The state of which `metrics` are, where no better one is kept (checkpoint.best). Before the checkpoint of
 * that step is saved: so a run that goes on from one lacks none of the bests before. One that cannot be
 * written is a warning. */
HD_MUST_USE enum hd_err hd_run_keep_best(struct hd_run *run, const struct hd_metrics *metrics,
	struct hd_diag *diag);

/* plans.c. Before there is a worker: how many devices the stages have, and what the job's ops cost where a
 * plan is made by that. */
HD_MUST_USE enum hd_err hd_run_plan_begin(struct hd_run *run, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_run_plan_measure(struct hd_run *run, struct hd_diag *diag);
/* The plan that the run begins with is made, adopted and kept; its forecast is kept beside it. */
HD_MUST_USE enum hd_err hd_run_plan_adopt(struct hd_run *run, struct hd_diag *diag);
/* After a step: stages whose times drift from the forecast are cut again, where that saves enough. */
HD_MUST_USE enum hd_err hd_run_plan_watch(struct hd_run *run, struct hd_diag *diag);
/* The stages of the plan in use are cut for ranks that are so fast, beside what the forecast counts on; taken
 * where the new plan is predicted to save enough, *taken. */
HD_MUST_USE enum hd_err hd_run_plan_again(struct hd_run *run, const double *found, bool *taken,
	struct hd_diag *diag);
/* What the steps took is kept beside the forecast. */
void hd_run_plan_end(struct hd_run *run);

#endif
