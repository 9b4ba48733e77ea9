/* sched_state.h -- what a cluster scheduler knows when it decides: types of devices, jobs, entities, and
 * pairs.
 *
 * Policies (sched_policy.h), rounds and the simulator read it; a state file (hd_sched_read) or whoever runs
 * the cluster makes it. A plain value: nothing in it changes while a policy looks at it.
 *
 * 1. Types are sorted by name, jobs by id (ids grow with arrival), pairs by (a, b) with a < b, as indices of
 *    jobs. hd_sched_order brings any order into this one.
 * 2. rate[j] of a job is steps/s on `scale` devices of type j together; 0: cannot run there. Never NaN,
 *    infinite, negative.
 * 3. A type without devices (n = 0) is ignored. A job that no type with enough devices can run is *blocked*
 *    (hd_sched_blocked): policies leave it out, explanations call it UNRUNNABLE. A job without steps left is
 *    over.
 * 4. A pair's rates are those of both jobs on the same `scale` devices; only jobs of equal scale pair, at
 *    most two a device. They stand in `pairs` (as a file gives them), or in `table` by kinds of jobs, which
 *    needs no space per pair of jobs. `pairs` wins where both know the pair.
 * 5. Entities may lie within one another, HD_SCHED_LEVELS deep. What is within an entity, its own jobs by
 *    their weights and the entities there by theirs, shares what that one has (hierarchy), or, in queue
 *    order, the one with the oldest job has it all.
 * 6. Times are seconds; prices are money per device and hour. Fields of unknown value are 0 unless it says
 *    otherwise.
 *
 * Ownership: everything is borrowed by the state and lies in the arena of its maker. Pure, any thread. */
#ifndef HD_SCHEDULER_SCHED_STATE_H
#define HD_SCHEDULER_SCHED_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"

enum {
	HD_SCHED_TYPES = 64,                      /* no pool we know has twenty */
	HD_SCHED_JOBS = 1 << 17,                  /* a published year has 100,000, not all at once */
	HD_SCHED_DEVICES = 1 << 24,               /* of one type; keeps sums of devices in 32 bits */
	HD_SCHED_ENTITIES = 1 << 12,
	HD_SCHED_LEVELS = 8,                      /* of entities; accounts have fewer (daemon/users.h) */
	/* of jobs, in a table of pairs: its square times types is stored */
	HD_SCHED_KINDS = 1 << 10,
};
#define HD_SCHED_NONE UINT32_MAX                  /* no such job, type, entity, kind */

/* What a number may be that comes from outside, so that sums and quotients of them stay numbers:
 *      id        least   most    words, "a rate of 3e20; it is ..." */
#define HD_SCHED_RANGES(X) \
	X(RATE,   1e-12,  1e12,   "steps/s from 1e-12 to 1e12, or 0 where the job cannot run") \
	X(WEIGHT, 1e-9,   1e9,    "a weight from 1e-9 to 1e9") \
	X(STEPS,  0,      1e18,   "steps from 0 to 1e18") \
	X(TIME,   0,      1e15,   "seconds from 0 to 1e15") \
	X(UNTIL,  -1e15,  1e15,   "seconds from now, -1e15 (passed) to 1e15, or inf for none") \
	X(MONEY,  0,      1e9,    "money from 0 to 1e9") \
	X(SPEEDUP, 1e-6,  1e6,    "a speed-up from 1e-6 to 1e6 of what one device does")

enum hd_sched_range {
#define X(id, least, most, words) HD_SCHED_IN_##id,
	HD_SCHED_RANGES(X)
#undef X
};
bool hd_sched_in(enum hd_sched_range range, double value);
const char *hd_sched_range_words(enum hd_sched_range range);

struct hd_sched_type {
	const char *name;                         /* "v100" */
	uint32_t n;                               /* devices of it */
	double price_usd_h;                       /* of one device; 0: no price known */
	double revoked_per_s;                     /* revocations of a device and second */
};

/* its jobs share by weight; by queue order */
enum hd_entity_kind { HD_ENTITY_FAIRNESS, HD_ENTITY_FIFO };

struct hd_sched_entity {
	const char *name;
	double weight;                            /* > 0 */
	enum hd_entity_kind kind;
	uint32_t within;                          /* 1 + the entity that it is part of; 0: none */
};

/* What a job does with other numbers of devices than `scale`. */
struct hd_sched_elastic {
	uint32_t min, max;                        /* devices; 1 <= min <= max, min <= scale */
	uint32_t nvns;                            /* virtual nodes; devices beyond them do not help */
	/* [max + 1]: steps/s of k equal devices over those of one; [0] is 0. A scale above max goes as
	 * fast as max */
	const double *speedup;
	/* what a change of size costs the job, measured; 0: nothing */
	double resize_s;
	bool mixed;                               /* may spread over devices of several types */
};

/* How fast a job that may change its batch goes, and what its steps are worth (Pollux, OSDI 2021); times are
 * of its fastest type. k devices, m samples each and pass, a passes more than one before they exchange:
 *	T_acc = ac + bc m;  T_net = a + b max(k - 2, 1e-8) between machines (an, bn) or within one (ar, br),
 *	1e-8 of one device step  = a T_acc + (T_acc^g + T_net^g)^(1/g);  samples/s = k m (a + 1) / step
 *	worth of a sample against one of the first batch = ((var + sqr) / (var / s + sqr)) / s, s = batch /
 *	first batch */
struct hd_sched_goodput {
	double ac, bc, an, bn, ar, br, g;         /* seconds; 1 <= g <= 10 */
	/* of the gradient: its noise and its square, at the first batch */
	double var, sqr;
	uint32_t batch, most_batch;               /* the first, the largest */
	uint32_t most_local;                      /* samples that a device holds */
	uint32_t node;                            /* devices of one machine; 0: all */
};

struct hd_sched_job {
	uint64_t id;
	const char *kind;                         /* "ResNet-50 (batch size 64)"; "" if unknown */
	/* of struct hd_pair_table, of (kind, scale); HD_SCHED_NONE: in no pair */
	uint32_t ikind;
	uint32_t scale;                           /* devices at once, >= 1 */
	double weight;                            /* > 0 */
	double steps_left;                        /* >= 0; 0: over */
	double age_s;                             /* since it arrived */
	double deadline_s;                        /* from now; INFINITY: none; at or below 0: passed */
	uint32_t entity;                          /* HD_SCHED_NONE: none */
	/* what a step is worth to its owner; 0: as the cost policy says */
	double usd_per_step;
	double lost_s;                            /* what a revocation of one of its devices costs it */
	const double *rate;                       /* [ntypes], rule 2 */
	const struct hd_sched_elastic *elastic;   /* NULL: runs on `scale` devices or not at all */
	/* NULL: its batch is as it is, and every step worth the same */
	const struct hd_sched_goodput *goodput;
};

struct hd_sched_pair {
	uint32_t a, b;                            /* indices of jobs, a < b */
	const double *rate[2];                    /* [ntypes] of a, of b; both 0: cannot share there */
};

/* Rates of pairs by kinds: rate[((x * nkinds + y) * ntypes + j) * 2] is that of kind x beside kind y on
 * type j, the next that of y. */
struct hd_pair_table {
	uint32_t nkinds;
	const double *rate;
};

struct hd_sched_state {
	uint32_t ntypes, njobs, npairs, nentities;
	const struct hd_sched_type *types;
	const struct hd_sched_job *jobs;
	const struct hd_sched_pair *pairs;
	const struct hd_sched_entity *entities;
	const struct hd_pair_table *table;        /* NULL: none */
};

/* Sorts by rule 1 and checks everything above; the message names the job and type. `state` is changed in
 * place to arrays in `arena`; the table of pairs must fit the sorted types already. */
HD_MUST_USE enum hd_err hd_sched_order(struct hd_sched_state *state, struct hd_arena *arena,
	struct hd_diag *diag);

uint32_t hd_sched_find(const struct hd_sched_state *state, uint64_t id);            /* index, HD_SCHED_NONE */
bool hd_sched_blocked(const struct hd_sched_state *state, uint32_t job);            /* rule 3 */
/* Blocked or over: policies give it nothing and it counts nowhere. */
bool hd_sched_absent(const struct hd_sched_state *state, uint32_t job);
/* The fewest and the most devices that the job runs on: `scale` unless it is elastic. */
static inline uint32_t hd_sched_fewest(const struct hd_sched_job *job) { return job->elastic ?
	job->elastic->min : job->scale; }
static inline uint32_t hd_sched_most(const struct hd_sched_job *job) { return job->elastic ?
	job->elastic->max : job->scale; }
/* Steps/s on n devices of a type: `rate` is that of `scale` devices, its curve says the rest; 0 where it
 * cannot run so. */
double hd_sched_rate_on(const struct hd_sched_job *job, uint32_t type, uint32_t n);
/* Whether the job may run on the type at all: devices enough and a rate. */
static inline bool hd_sched_fits(const struct hd_sched_state *state, uint32_t job, uint32_t type)
{
	const struct hd_sched_job *j = &state->jobs[job];

	return j->rate[type] > 0 && state->types[type].n >= hd_sched_fewest(j);
}
/* Whether it fits as it is, on `scale` devices of some type: what policies that never resize can use. */
bool hd_sched_fits_whole(const struct hd_sched_state *state, uint32_t job);

/* Steps/s of jobs a and b together on type j, false if they cannot; any order of a and b. */
bool hd_sched_pair_rate(const struct hd_sched_state *state, uint32_t a, uint32_t b, uint32_t type,
	double rate[2]);

/* Proportional throughput P = sum_j T_j N_j / sum_j N_j over types with devices; above 0 unless the job is
 * blocked. */
double hd_sched_proportional(const struct hd_sched_state *state, const double *rate);
/* The isolated share of a job among n: x[j] = N_j / n / scale, scaled down to a sum of 1 at most. Returns its
 * steps/s. `whole`: 0 of a type with fewer devices than `scale`, where it could never run; without it, as
 * published. */
double hd_sched_isolated(const struct hd_sched_state *state, uint32_t job, const double *rate, uint32_t n,
	bool whole, double *x);

/* ---- files ---- */

/* A state in the format of the reference job sets: "jobs" (id, job_type, scale_factor, priority,
 * steps_remaining, time_since_start, throughput by type), "cluster" (type: count) and optionally "pairs",
 * "prices_per_hour", "entities" (name: ids) with "entity_weights". Ours besides: deadline_s and usd_per_step
 * of a job, kind of all entities ("entity_kind"), what lies within another ("entity_parents": {"a": "b"}),
 * and "elastic" of a job: {"min": 1, "speedup": [1, 1.8, ...]
 * on 1, 2, ... devices, "virtual_nodes": 16, "resize_s": 1, "mixed": true}, "goodput" of a job: the members
 * of struct hd_sched_goodput by name; an, bn, ar, br are 0 and g is 1 unless given. Or one of the reference
 * hierarchical states: "throughputs" and "priority" by id, "cluster", "entities", "entity_weights", "kind",
 * "num_jobs". A file with one state per name is read with `set`; NULL takes the file itself, or its only
 * member.
 *
 * Nothing is passed over: a member that is none of these, a type that "cluster" does not list (with 0 where
 * there is none), and in a table of prices, weights or priorities a name that is not there or one that is
 * missing, are HD_E_INPUT with name, place and what was perhaps meant. A type that a throughput leaves out
 * has rate 0. */
HD_MUST_USE enum hd_err hd_sched_read(struct hd_sched_state *state, const struct hd_json *file,
	const char *set, struct hd_arena *arena,
	struct hd_diag *diag);

#endif
