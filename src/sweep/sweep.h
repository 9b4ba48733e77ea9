/* sweep.h -- a sweep file, read: many trials of one job, and how far each is to run.
 *
 *	job: job.yaml                     beside the sweep file, or absolute
 *	method: halving                   HD_SWEEP_METHODS
 *	draw: grid                        how halving and asha take points: grid, random, sobol (random)
 *	trials: 27                        of random and sobol; a grid has one for each combination
 *	seed: 1                           of random and sobol (0)
 *	space:
 *	  optim.lr: {log: [1e-4, 1e-1], n: 3}     HD_SWEEP_AXIS_KINDS; n: points of a grid
 *	  batch.global: [32, 64, 128]             these values
 *	metric: {name: loss, goal: min, over: 5}  HD_SWEEP_METRICS; over: the mean of that many last steps
 *	steps: {min: 20, max: 180, eta: 3}        of the first rung, of the last (the job's), and by how much
 *	parallel: 4                       asha: trials at once (the devices of the scheduler)
 *
 * 1. Keys of the space are keys of a job that fix its result (src/job/keys.h), without those that say how
 *    long it is; a key of `model.args` or `graph` is not known here and is checked with the job.
 * 2. Rungs: min, min eta, min eta^2, ... below max, and max. Grid, random and sobol have one, max.
 * 3. Limits: HD_SWEEP_AXES keys, HD_SWEEP_TRIALS trials, HD_SWEEP_RUNGS rungs.
 * 4. A refusal is HD_E_INPUT with file:line:column, what is wrong and what would be right.
 *
 * Pure. Texts lie in the arena. */
#ifndef HD_SWEEP_SWEEP_H
#define HD_SWEEP_SWEEP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

enum { HD_SWEEP_AXES = 16, HD_SWEEP_CHOICES = 64, HD_SWEEP_TRIALS = 1024, HD_SWEEP_RUNGS = 20 };

/*        id        name       draws itself, halves, what it does */
#define HD_SWEEP_METHODS(X)                                                                             \
	X(GRID,    "grid",     true,  false, "every combination, to the last rung")                     \
	X(RANDOM,  "random",   true,  false, "points by a seeded generator, to the last rung")          \
	X(SOBOL,   "sobol",    true,  false, "points of a Sobol sequence, to the last rung")            \
	X(HALVING, "halving",  false, true,  "of each rung the best 1/eta go on, once all are there")   \
	X(ASHA,    "asha",     false, true,  "so, but none waits: the best 1/eta of those that are there")

enum hd_sweep_method {
#define X(id, name, draws, halves, about) HD_SWEEP_##id,
	HD_SWEEP_METHODS(X)
#undef X
	HD_SWEEP_NMETHODS
};

/*        id        word       numbers, whole, what it is */
#define HD_SWEEP_AXIS_KINDS(X)                                                            \
	X(CHOICE,  "",         false, false, "one of these values")                       \
	X(LINEAR,  "linear",   true,  false, "a number, evenly")                          \
	X(LOG,     "log",      true,  false, "a number, its logarithm evenly")            \
	X(INT,     "int",      true,  true,  "a whole number, evenly")                    \
	X(LOGINT,  "log-int",  true,  true,  "a whole number, its logarithm evenly")

enum hd_sweep_axis_kind {
#define X(id, word, numbers, whole, about) HD_SWEEP_AXIS_##id,
	HD_SWEEP_AXIS_KINDS(X)
#undef X
	HD_SWEEP_AXIS_NKINDS
};

/*        id         name            goal is max, evaluated, what it is */
#define HD_SWEEP_METRICS(X)                                                                             \
	X(LOSS,      "loss",         false, false, "of training, the mean of the last `over` steps")    \
	X(VAL_LOSS,  "val_loss",     false, true,  "of split valid, by the state at the rung")          \
	X(VAL_ACC,   "val_accuracy", true,  true,  "of split valid, by the state at the rung")

enum hd_sweep_metric {
#define X(id, name, max, evaluated, about) HD_SWEEP_METRIC_##id,
	HD_SWEEP_METRICS(X)
#undef X
	HD_SWEEP_NMETRICS
};

/* n: points of a grid, of a choice its values. Both ends are possible. */
struct hd_sweep_axis {
	const char *key;
	enum hd_sweep_axis_kind kind;
	double from, to;
	uint32_t n, line, column;
	const char *choice[HD_SWEEP_CHOICES];
};

struct hd_sweep {
	const char *file, *job;           /* file: for messages */
	enum hd_sweep_method method, draw;        /* draw: GRID, RANDOM or SOBOL */
	uint32_t ntrials;
	uint64_t seed;
	uint32_t naxes;
	struct hd_sweep_axis axis[HD_SWEEP_AXES];
	enum hd_sweep_metric metric;
	bool max;                         /* the greatest metric is the best */
	uint32_t over;
	uint64_t min_steps, max_steps;    /* 0: the job's last step */
	uint32_t eta, parallel;           /* parallel 0: as many as devices */
};

HD_MUST_USE enum hd_err hd_sweep_parse(struct hd_sweep *sweep, const char *file, const char *text, size_t len,
	struct hd_arena *arena, struct hd_diag *diag);

/* Steps of each rung, ascending, of a job of `steps` steps. HD_E_INPUT: there are more than
 * HD_SWEEP_RUNGS, or the job has fewer steps than are asked for. */
HD_MUST_USE enum hd_err hd_sweep_rungs(const struct hd_sweep *sweep, uint64_t steps,
	uint64_t rung[HD_SWEEP_RUNGS], uint32_t *nrungs, struct hd_diag *diag);

bool hd_sweep_halves(enum hd_sweep_method method);
const char *hd_sweep_method_name(enum hd_sweep_method method);
const char *hd_sweep_metric_name(enum hd_sweep_metric metric);
bool hd_sweep_is_evaluated(enum hd_sweep_metric metric);
bool hd_sweep_axis_is_whole(enum hd_sweep_axis_kind kind);

#endif
