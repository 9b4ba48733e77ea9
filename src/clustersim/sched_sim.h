/* sched_sim.h -- a cluster that does not exist: jobs come, a policy and the rounds decide, time passes, and
 * the fate of each job.
 *
 * `heddle sched simulate`, `compare` and `replay` run it. Policies and rounds are those of the live
 * scheduler; only the clock and the work are made up.
 *
 * Fidelity `gavel` repeats the published simulator, its faults included, to the digits: rounds begin when all
 * of the last one's runs have ended; steps are whole; a run with fewer steps than devices fails, five in a
 * row drop the job; an idle gap is charged as run time. Nothing is charged for switching.
 *
 * Fidelity `exact` is driven by events (arrival, completion, round boundary, revocation, return, failure):
 *	1. Boundaries are multiples of the round from the first arrival on. Devices that become free in
 *	   between are offered at once.
 *	2. A run starts to compute after its switching cost: start, resize (the job's own, if it is elastic
 *	   and knows it) or move; devices of a preempted job are idle for `preempt` seconds, devices that
 *	   a resize freed for the time of that resize. Devices are busy and paid meanwhile.
 *	3. Steps are not whole. A job that loses a device stops, and does its last `lost_s` seconds again.
 *	4. Revocations are exponential per device with the type's rate, or come from a log; a device is away
 *	   for `away_s`. Failures are exponential per device held and cost `lost_s`. Draws are keyed by (seed,
 *	   device or job, number): a job more shifts none.
 *	5. A price in force is read when it is charged; shares are computed again for a price that moved by a
 *	   tenth, an hour after the last; with patience every hour.
 *
 * A job that names a type of devices runs on that alone; one that is not there is HD_E_INPUT. With partitions
 * it runs on devices of its partitions alone; by rounds, on those of one type, of which nodes are in the same
 * partitions.
 * A job whose list does not say how long it takes is thought to take what it takes alone on type v100, or
 * else on its fastest.
 *
 * Finish-time fairness rho = JCT / (time alone on its isolated share among as many jobs as there were on
 * average meanwhile).
 *
 * Equal settings give equal bytes of result and log. Memory grows with the jobs of the list (one row each)
 * and with those that are there at once. Pure. */
#ifndef HD_CLUSTERSIM_SCHED_SIM_H
#define HD_CLUSTERSIM_SCHED_SIM_H

#include "base/text.h"
#include "scheduler/estimate.h"
#include "scheduler/rounds.h"
#include "clustersim/job_list.h"
#include "clustersim/machines.h"
#include "clustersim/slurm_partitions.h"
#include "clustersim/prices.h"

/* What decides. QUEUE_RECORDED: nothing, every job starts when its record says that it did and keeps its
 * devices until it ended; a job without a start begins when it comes. QUEUE_SLURM: the rules of slurm.h. Both
 * go by events, charge no switching, lose no device, know no pairs and write no log. */
enum hd_sim_queue { HD_QUEUE_ROUNDS, HD_QUEUE_RECORDED, HD_QUEUE_SLURM };
struct hd_slurm_setting;

struct hd_switch_costs { double start_s, resize_s, move_s, preempt_s; };
#define HD_SWITCH_COSTS ((struct hd_switch_costs){ 30, 1, 20, 5 })        /* until measured */

/* Observes the passing of time, for charts. A job was on its part of devices of a type: half of them, if two
 * jobs were. Parts of one stay may come one by one. */
struct hd_sim_watch {
	void *self;
	void (*ran)(void *self, uint64_t job, uint32_t type, double devices, double usd, double from_s,
		double to_s);
};

struct hd_sched_sim_setting {
	enum hd_fidelity fidelity;
	const struct hd_policy_setting *policy;   /* of rounds */
	enum hd_sim_queue queue;
	const struct hd_slurm_setting *slurm;     /* of QUEUE_SLURM */
	uint32_t ntypes;
	const struct hd_sched_type *types;        /* sorted by name; prices and revocations of them */
	/* of these types: jobs name kinds of GPUs, and keep to the types of their partitions. NULL: none */
	const struct hd_slurm_partitions *partitions;
	const uint32_t *host;                     /* [devices]; NULL: one device a host */
	const struct hd_rates *rates;             /* of these types in this order; NULL: `speed` */
	const double *speed;                      /* [ntypes] work per second; NULL: 1 */
	double round_s, min_reset_s, kappa;       /* as in rounds.h */
	uint32_t seed;
	/* Jobs, one by one; false: no more. Of gavel an endless source may be cut by first and end. */
	bool (*next)(void *source, struct hd_listed_job *job);
	void *source;
	bool trace;                               /* gavel: the source is a trace */
	/* above 0: of jobs that come without one, so many times the duration after arrival */
	double deadline_factor;
	/* a job is in the entity of its user's name, without a user in number id % nentities */
	uint32_t nentities;
	const struct hd_sched_entity *entities;
	/* averages over jobs [first, end), and stop when all of these are over; 0, 0: all */
	uint64_t first, end;
	double stop_s;                            /* exact: no later than this; 0: no limit */
	/* exact */
	bool free_switching;                      /* costs are charged unless this is set */
	struct hd_switch_costs costs;
	double lost_s, away_s, failures_per_s;    /* failures of a device and second */
	const struct hd_prices *prices;           /* NULL: the types' own */
	const uint32_t *price_type;               /* [ntypes] of `prices`; HD_PRICE_NONE: the type's own */
	double prices_from_s;                     /* time of `prices` at the first arrival */
	/* of one type, in place of its rate; never more machines than the type has */
	const struct hd_machine_events *events;
	uint32_t event_type;
	const struct hd_sched_elastic *elastic;   /* every job is elastic like this; NULL: none is */
	/* packed policies see estimated pairs until they ran; NULL: the true ones */
	const struct hd_estimate_setting *estimate;
	const struct hd_sim_watch *watch;         /* NULL: none */
	struct hd_text *log;                      /* decisions, one line each; NULL: none */
};

struct hd_sim_row {
	uint64_t id;
	const char *kind, *user;
	uint32_t scale;
	/* NAN: never; jct NAN: dropped or not over */
	double arrival_s, first_start_s, finish_s, jct_s;
	/* lost: seconds of switching and of work done again */
	double rho, cost_usd, lost_s;
	double device_s[HD_RATES_TYPES > 8 ? 8 : HD_RATES_TYPES]; /* of the first eight types */
	uint32_t starts, moves, resizes;
	double deadline_s;                        /* point in time; INFINITY: none */
	const char *name, *type;                  /* of the list: "" and NULL where it has none */
	const struct hd_job_record *record;       /* of the list; NULL: none */
	bool met, dropped, over;
};

struct hd_sched_sim_result {
	uint64_t njobs, nover, ndropped;          /* of [first, end) */
	struct hd_sim_row *row;                   /* all that arrived, by id; in the arena */
	uint64_t nrows;
	double avg_jct_s, median_jct_s, p95_jct_s, makespan_s;
	double avg_rho, worst_rho;
	double utilisation, productive;           /* of the device time: busy, computing */
	double cost_usd, lost_s;
	uint64_t deadlines, missed, missed_as_published;
	/* share of leases that were extended with the same devices */
	double extended;
	uint64_t rounds, solves, kept, starts, moves, resizes, revoked, failed;
	uint64_t most_at_once;
	/* of queues: devices that were busy at once, how many a type, or a partition of it, has too few for
	 * that; jobs whose start is not recorded, that ask for longer or for more devices than their
	 * partitions allow, and how often one was preempted */
	uint32_t peak, over;
	uint64_t nunstarted, ntoo_long, ntoo_large, npreempted;
	struct hd_estimate_account estimate;
	const char *ended;                        /* "" if all jobs are over; else why not */
};

/* Rows and texts lie in `arena`. */
HD_MUST_USE enum hd_err hd_sched_sim(struct hd_sched_sim_result *result,
	const struct hd_sched_sim_setting *setting, struct hd_arena *arena,
	struct hd_diag *diag);

#endif
