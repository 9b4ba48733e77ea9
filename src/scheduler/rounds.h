/* rounds.h -- from shares of time to devices, round after round: time received, next jobs, placement.
 *
 * A policy says which part of the time a job should run in which way (sched_policy.h); here it becomes an
 * assignment that holds for one round. The live scheduler and the simulator drive it alike:
 *
 *	hd_rounds_arrive(r, &job, ...);               as jobs come; with pairs: hd_rounds_pair
 *	if (hd_rounds_due(r, now)) { policy ...; hd_rounds_adopt(r, now, &state, &shares); }
 *	hd_rounds_next(r, &round);                    at a boundary: jobs and their devices
 *	hd_rounds_ran(r, &round.run[i], seconds);     what became of it
 *	hd_rounds_leave(r, id);
 *
 * The books have a *cell* for each way to run (a job, or two, on some devices of some types):
 *	t         time received since the last reset, plus half a round of a single job (0 of a new pair)
 *	W[type]   the sum of t over the cells of a type; a new cell enters at the next reset
 *	deficit   what was due and not received, summed over resets
 *	priority  X / (t / W), 0 without share; X * 1e9 while the fraction is 0
 *
 * Fidelity `gavel` picks and places as the published code does: type by type in the order v100, p100, k80
 * (others after them by name; for policies blind to types in random order), each type sorted by (priority,
 * deficit, X) descending, stably. A job without share is taken on spare devices; one that came after the last
 * shares uses up capacity and is not placed.
 *
 * Fidelity `exact`:
 *	1. Every arrival makes the shares stale; resets wait min_reset (30 s), so no job waits unknown.
 *	2. One list over all types. Then, in the same order, a job moves to a type with free devices where it
 *	   is faster, if its gain in a round exceeds the cost of the move.
 *	3. Spare devices are filled only if the policy says so (work_conserving): longest without, then lowest
 *	   id, on its fastest type with free devices. A job that loses a device between two boundaries gets
 *	   spare ones under any policy until the boundary: it moves, and does not stop.
 *	4. The priority of a job with devices is multiplied by 1 + kappa c / R, c its switching cost
 *	   (hysteresis). Starved priorities grow without bound, so the harm is bounded.
 *	5. Placement: the same devices as before; those and more, or fewer of them; fewest hosts; the tightest
 *	   host; lowest number.
 *	6. A gang that was the first without devices for `reserve_after` rounds goes before all others.
 * Ties: lower id of the younger member, singles first, lower id of the other, types in order of their names.
 *
 * All decisions depend on calls alone. Memory is on the heap, freed by destroy. Pure; one thread at a
 * time. */
#ifndef HD_SCHEDULER_ROUNDS_H
#define HD_SCHEDULER_ROUNDS_H

#include "scheduler/sched_policy.h"

struct hd_rounds_setting {
	enum hd_fidelity fidelity;
	double round_s, min_reset_s;              /* 0: 360 and 1920 of gavel, 60 and 30 of exact */
	double kappa;                             /* hysteresis; 0: 1 (20 if steady), below 0: none */
	uint32_t reserve_after;                   /* rounds; 0: 3 */
	bool steady;                              /* HD_POLICY_STEADY */
	/* HD_POLICY_QUEUE: no job without share is started on spare devices */
	bool queue;
	bool blind;                               /* gavel: the order of types is drawn each round */
	bool global_queue;                        /* gavel: one list over all types */
	uint32_t seed;                            /* of that draw: seed + 5 */
};

enum hd_run_kind {
	HD_RUN_START,                             /* had no devices in the round before */
	HD_RUN_SAME,                              /* keeps its devices: the lease is extended */
	HD_RUN_RESIZE,                            /* other devices, some of them those it had */
	HD_RUN_MOVE,                              /* none of them */
};

struct hd_round_run {
	uint64_t id[2];                           /* ascending; the second is 0 of a single job */
	uint8_t nmembers, nneeds;
	struct hd_need need[HD_SHAPE_NEEDS];
	double rate[2];
	enum hd_run_kind kind;
	bool spare;                               /* runs without a share */
	uint32_t cell, ndevices, first;           /* first: into device[] of the round */
};

/* One round's assignment; arrays belong to the rounds and hold until the next call of hd_rounds_next or
 * _offer. */
struct hd_round {
	uint32_t nruns;
	const struct hd_round_run *run;                 /* gavel: in the order of placement */
	const uint32_t *device;                   /* numbers: all of the first type, then of the second... */
};

struct hd_rounds;

/* Types with n devices each; host[device]: its host (NULL: each has its own). */
HD_MUST_USE enum hd_err hd_rounds_create(struct hd_rounds **rounds, const struct hd_rounds_setting *setting,
	uint32_t ntypes,
	const struct hd_sched_type *types, const uint32_t *host, struct hd_diag *diag);
void hd_rounds_destroy(struct hd_rounds *rounds);

/* `switch_s`: what a change of devices costs the job, for hysteresis. Makes the shares stale. */
HD_MUST_USE enum hd_err hd_rounds_arrive(struct hd_rounds *rounds, const struct hd_sched_job *job,
	double switch_s, struct hd_diag *diag);
/* That two jobs may share devices at these rates [ntypes]; a < b, both there. */
HD_MUST_USE enum hd_err hd_rounds_pair(struct hd_rounds *rounds, uint64_t a, uint64_t b, const double *rate_a,
	const double *rate_b, struct hd_diag *diag);
void hd_rounds_leave(struct hd_rounds *rounds, uint64_t id);
void hd_rounds_stale(struct hd_rounds *rounds);                       /* a price, a failure, a type changed */
/* A device that is lost, or back: no longer or again handed out. Makes the shares stale. */
void hd_rounds_device(struct hd_rounds *rounds, uint32_t device, bool usable);

bool hd_rounds_device_usable(const struct hd_rounds *rounds, uint32_t device);
uint32_t hd_rounds_usable(const struct hd_rounds *rounds, uint32_t type);        /* devices of it */

bool hd_rounds_due(const struct hd_rounds *rounds, double now_s);
/* A policy is being asked about what is known now: what changes from here on makes the shares stale again,
 * and stays so when the answer is adopted. Callers that adopt at once need not say so. */
void hd_rounds_ask(struct hd_rounds *rounds);
/* As if there was no reset yet: gavel forgets the last one when no job is there. */
void hd_rounds_forget(struct hd_rounds *rounds);
/* Closes the books of the old shares and opens those of the new ones. Ids of `state` are those that
 * arrived. */
HD_MUST_USE enum hd_err hd_rounds_adopt(struct hd_rounds *rounds, double now_s,
	const struct hd_sched_state *state, const struct hd_shares *shares,
	struct hd_diag *diag);

HD_MUST_USE enum hd_err hd_rounds_next(struct hd_rounds *rounds, struct hd_round *round,
	struct hd_diag *diag);
/* exact, between two boundaries: running jobs go on, devices that became free go to jobs without any,
 * until the boundary. */
HD_MUST_USE enum hd_err hd_rounds_offer(struct hd_rounds *rounds, struct hd_round *round,
	struct hd_diag *diag);
void hd_rounds_ran(struct hd_rounds *rounds, const struct hd_round_run *run, double seconds);

/* What a job does alone on its scale, [ntypes], was measured again. */
void hd_rounds_rate(struct hd_rounds *rounds, uint64_t id, const double *rate);
/* The job, which is in no pair, wants `scale` devices at once from now on and then does `rate`, [ntypes].
 * What it received stays received; a round that goes on is not changed. */
void hd_rounds_scale(struct hd_rounds *rounds, uint64_t id, uint32_t scale, const double *rate);
/* For a scheduler that starts again: the job, which has arrived, has held these devices since the round
 * before. Each device once. */
HD_MUST_USE enum hd_err hd_rounds_hold(struct hd_rounds *rounds, uint64_t id, const uint32_t *device,
	uint32_t n, struct hd_diag *diag);

/* Limits of what several jobs have together: so many devices and jobs with devices; UINT32_MAX: any. Exact
 * alone: a walk takes no job beyond it, and spare devices are not filled with one. Another limit than before
 * makes the shares stale. */
HD_MUST_USE enum hd_err hd_rounds_limit(struct hd_rounds *rounds, uint32_t limit, uint32_t devices,
	uint32_t jobs, struct hd_diag *diag);
/* The limits that a job counts in, at most HD_ROUND_LIMITS; all were set before. */
enum { HD_ROUND_LIMITS = 12 };
void hd_rounds_limit_job(struct hd_rounds *rounds, uint64_t id, const uint32_t *limit, uint32_t n);
/* The limit for which the last walk passed the job over, though devices were there; UINT32_MAX: none. */
uint32_t hd_rounds_over(const struct hd_rounds *rounds, uint64_t id);

/* For explanations and tests: what a job received on a type since the reset, what it is due. */
struct hd_cell_view { double x, t, deficit, priority; };
bool hd_rounds_view(const struct hd_rounds *rounds, uint64_t id, uint32_t type, struct hd_cell_view *view);

#endif
