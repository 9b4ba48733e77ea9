/* judge.h -- does training still make progress? The state of the plateau schedule and of early stopping
 * (optim.schedule.kind: plateau, stop.patience).
 *
 * Before a step whose number is a multiple of `every` a judge takes its measure of the state: the loss or the
 * accuracy on split valid, or the mean loss of the steps since it looked last. A value is better if it beats
 * the best so far by a threshold: relative to it (plateau), or absolute (stop). A value that is not better is
 * one more bad one in a row.
 *   plateau   after more than `patience` bad ones the rate falls by schedule.factor, down to schedule.floor,
 *             and bad ones count from 0 again (as PyTorch's ReduceLROnPlateau, mode rel, without cool-down)
 *   stop      with `patience` bad ones in a row the step at hand is not run: the job is done
 *
 * 1. A decision is a function of the state before the step and of the job: each worker makes it itself, also
 *    one that has joined, and no message carries it. So it is the same on any devices and workers, and after
 *    any loss and resume.
 * 2. What a look decides holds for the step at hand, and becomes state with its commit: "run.plateau.*" and
 *    "run.stop.*", which only jobs have that ask for them. A run that stops commits nothing; when it is
 *    resumed it looks again, and stops.
 * 3. A measure is taken once before a step, unless the state is another since: hd_judges_forget(). What is
 *    not a number is not better. The means of optim.ema are not looked at.
 *
 * Ownership: the worker's arena. Threads: the worker's caller; ranks read the share of the rate. */
#ifndef HD_ENGINE_JUDGE_H
#define HD_ENGINE_JUDGE_H

#include "job/job.h"

struct hd_task;
struct hd_worker;
struct hd_step_record;

enum hd_judge_kind { HD_JUDGE_PLATEAU, HD_JUDGE_STOP, HD_NJUDGES };

/* What is state of a judge: the best so far, how often it was beaten (0: there is none yet), bad looks in a
 * row, falls of the rate, sums of the steps since it looked last. */
struct hd_judged { double best; int64_t bad, falls, gains; double loss, weight; };

struct hd_judge {
	bool wanted, larger;              /* larger is better */
	uint8_t metric;                   /* enum hd_judge_metric */
	uint64_t every, patience;
	double threshold;
	struct hd_judged state, next;     /* next: after the look before the step at hand */
	uint64_t looked;                  /* step + 1 before which it looked; 0: it did not */
	double measure;
};
struct hd_judges { struct hd_judge of[HD_NJUDGES]; };

bool hd_judges_wanted(const struct hd_job *job);
/* Does one measure on split valid? */
bool hd_judges_measure(const struct hd_job *job);
/* HD_E_INVAL: nothing to measure on, or no accuracy. */
HD_MUST_USE enum hd_err hd_judges_allowed(const struct hd_task *task, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_judges_take(struct hd_worker *worker, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_judges_table(struct hd_worker *worker, struct hd_diag *diag);
/* Between two steps, before the step at hand: looks where it must. */
HD_MUST_USE enum hd_err hd_judges_look(struct hd_worker *worker, struct hd_diag *diag);
void hd_judges_forget(struct hd_worker *worker);
void hd_judges_commit(struct hd_worker *worker, const struct hd_step_record *record);

/* Of the step at hand, after look(). */
uint64_t hd_judges_falls(const struct hd_worker *worker);   /* of the rate */
bool hd_judges_stop(const struct hd_worker *worker);
/* What the look before the step at hand came to, in a sentence: a fall of the rate, or the stop; false:
 * neither. */
bool hd_judges_say(const struct hd_worker *worker, enum hd_judge_kind kind, struct hd_text *text);

/* One look, by itself, for tests: `judge->next` from `judge->state` and the measure. */
void hd_judge_look(struct hd_judge *judge, enum hd_judge_kind kind, double measure);

#endif
