/* int.h -- what the policies share: the policy with its memory, the jobs as a policy sees them, its
 * shapes, the program. */
#ifndef HD_SCHEDULER_POLICY_INT_H
#define HD_SCHEDULER_POLICY_INT_H

#include "scheduler/lp.h"
#include "scheduler/mt19937.h"
#include "scheduler/policy/list.h"
#include "scheduler/sched_policy.h"

/* A share of the last answer, by ids; b is 0 of a single job. */
struct hd_kept_share { uint64_t a, b; uint8_t nmembers, nneeds; struct hd_need need[HD_SHAPE_NEEDS]; double x;
	};

struct hd_policy {
	struct hd_policy_setting set;
	void *memory;                             /* owned; policy->memory_size bytes */
	struct hd_kept_share *kept;               /* owned: the last answer, in its order */
	uint32_t nkept, kept_cap;
	struct hd_policy **parts;                 /* owned: [npops], of POP; NULL otherwise */
};

/* The answer is no longer awaited. */
static inline bool hd_policy_is_stopped(const struct hd_policy_setting *set) { return set->stop &&
	atomic_load(set->stop); }

/* The state as a policy sees it. Rates are those of the variant: as measured (less what revocations take),
 * 1, or the reference's. */
struct hd_seen {
	const struct hd_sched_state *state;
	const struct hd_policy_setting *set;
	uint32_t npresent;
	const bool *absent;                       /* [njobs] */
	const double *rate;                       /* [njobs * ntypes]; 0 where it gets no share: hd_whole */
	/* [njobs] proportional throughput, of types that are too small for it as well; 1 of absent jobs */
	const double *p;
	const double *iso;                        /* [njobs] steps/s of the isolated share */
};
enum hd_flat { HD_FLAT_ONE, HD_FLAT_REFERENCE };  /* what a plain variant sees instead of rates */
HD_MUST_USE enum hd_err hd_see(struct hd_seen *seen, const struct hd_policy *policy,
	const struct hd_sched_state *state, enum hd_flat flat,
	struct hd_arena *arena, struct hd_diag *diag);
static inline double hd_seen_rate(const struct hd_seen *seen, uint32_t job,
	uint32_t type) { return seen->rate[(size_t)job * seen->state->ntypes + type]; }
double hd_seen_best(const struct hd_seen *seen, uint32_t job);        /* the largest */
/* The pair as seen; false: not worth its device (pack_threshold), or impossible. */
bool hd_seen_pair(const struct hd_seen *seen, uint32_t a, uint32_t b, uint32_t type, double rate[2]);

/* Whether the type has the devices for all of the job at once: no round could honour a share of it otherwise.
 * The published programs do not ask. */
static inline bool hd_whole(const struct hd_policy_setting *set, const struct hd_sched_state *state,
	uint32_t job, uint32_t type)
{
	bool asks = set->fidelity == HD_FIDELITY_EXACT || set->policy->powers & HD_POLICY_ELASTIC;

	return !asks || state->types[type].n >= state->jobs[job].scale;
}
/* Gets nothing of a policy that never resizes. */
static inline bool hd_never_whole(const struct hd_sched_state *state, uint32_t job)
{
	return hd_sched_absent(state, job) || !hd_sched_fits_whole(state, job);
}

/* One shape of one job on `scale` devices of a type. */
struct hd_shape hd_way_single(const struct hd_sched_state *state, uint32_t job, uint32_t type);
struct hd_shape hd_way_pair(const struct hd_sched_state *state, uint32_t a, uint32_t b, uint32_t type);
/* Steps/s of a job alone on these devices; 0 where it cannot. Of several types: what whole virtual nodes
 * allow (ways.c). */
double hd_way_rate(const struct hd_sched_job *job, const struct hd_need *need, uint8_t nneeds);
/* The part of its speed that revocations of these devices leave to a job: 1 - min(0.95, sum n lambda L). */
double hd_way_risk(const struct hd_sched_state *state, uint32_t job, const struct hd_need *need,
	uint8_t nneeds);
/* the count that is tried after n: all to 8, then 12, 16, 24, 32... */
uint32_t hd_way_next(uint32_t n);
/* Every way to run of a job alone, by types and counts; of an elastic one its counts, of a mixed one pairs
 * of types in powers of two. */
typedef enum hd_err hd_way_visit(void *context, const struct hd_shape *shape);
HD_MUST_USE enum hd_err hd_ways_each(const struct hd_sched_state *state, uint32_t job, hd_way_visit *visit,
	void *context);
/* Shapes with shares, collected one by one into out->shape and out->x. */
struct hd_collect { struct hd_shares *out; struct hd_shape *shape; double *x; uint32_t cap;
	struct hd_arena *arena; };
HD_MUST_USE enum hd_err hd_collect(struct hd_collect *c, const struct hd_shape *shape, double x);

/* The share that a shape of one type had in the last answer; NULL: none. */
const struct hd_kept_share *hd_kept_find(const struct hd_policy *policy, const struct hd_sched_state *state,
	const struct hd_shape *shape);

/* ---- the program over shares (program.c) ---- */

struct hd_policy_lp;
/* cost of a shape, or its entry in a row over all */
typedef double hd_worth(const struct hd_policy_lp *pg, uint32_t shape, const void *context);

enum { HD_PROGRAM_ROWS = 3 };                     /* rows over all shapes */

/* max worth + c, shares within time and devices, and per present job: sum of gain x - g c >= lo. */
struct hd_policy_lp {
	const struct hd_seen *seen;
	struct hd_arena *arena;
	struct hd_diag *diag;
	uint32_t nshapes, cap;
	struct hd_shape *shape;
	double (*gain)[2];                        /* of each shape, per member: seen rate / p */
	uint32_t *col;                            /* [nshapes] column */
	struct hd_lp *lp;                         /* owned; hd_program_close */
	uint32_t ncols, nrows;
	uint32_t *time_row, *promise_row;         /* [njobs]; HD_SCHED_NONE of absent jobs */
	double *promise_lo;                       /* [njobs] as last set; -INFINITY: none */
	uint32_t *cap_row;                        /* [ntypes]; HD_SCHED_NONE without devices */
	uint32_t level;                           /* column c; HD_SCHED_NONE */
	/* [njobs] of the level, as given: borrowed until the next; NULL: none */
	const double *g;
	/* single shapes alone, and so many that blocks.c is tried first */
	bool large;
	/* has columns or rows that are not over all shapes: not for blocks.c */
	bool mixed;
	hd_worth *worth;                          /* NULL: 0 */
	hd_worth *row_worth[HD_PROGRAM_ROWS];
	const void *row_context[HD_PROGRAM_ROWS];
	uint32_t row_over[HD_PROGRAM_ROWS], nrows_over;
	double row_lo[HD_PROGRAM_ROWS];
	double slack;                             /* hd_program_relax */
	const void *context;                      /* of worth */
	bool generate;                            /* pairs are priced, not listed */
	/* and pricing was ended by the number of turns, not by its result */
	bool cut;
	uint32_t *listed;                         /* hash of pairs that are columns; 0 empty, shape + 1 */
	uint32_t listed_cap;
	struct hd_lp_result last;
	uint32_t nlps, iterations;
	double gap;
};

HD_MUST_USE enum hd_err hd_program_open(struct hd_policy_lp *pg, const struct hd_seen *seen,
	struct hd_arena *arena, struct hd_diag *diag);
void hd_program_close(struct hd_policy_lp *pg);
/* A new column c with cost 1 (g is borrowed until the next call) and -g[i] in the promise of job i; the
 * one before is closed at 0. g NULL: only closes. */
HD_MUST_USE enum hd_err hd_program_level(struct hd_policy_lp *pg, const double *g);
/* nothing if it is absent */
void hd_program_promise(struct hd_policy_lp *pg, uint32_t job, double lo);
/* Sets the worth of all shapes; NULL: 0. */
void hd_program_worth(struct hd_policy_lp *pg, hd_worth *worth, const void *context);
/* A row over all shapes: sum of worth x >= lo. */
HD_MUST_USE enum hd_err hd_program_row(struct hd_policy_lp *pg, hd_worth *worth, const void *context,
	double lo);
/* Other columns (misses, distances), never priced; the first one's number in *first. */
HD_MUST_USE enum hd_err hd_program_cols(struct hd_policy_lp *pg, uint32_t n, const double lo[],
	const double hi[], const double cost[], const uint32_t start[],
	const uint32_t idx[], const double val[], uint32_t *first);
HD_MUST_USE enum hd_err hd_program_rows(struct hd_policy_lp *pg, uint32_t n, const double lo[],
	const double hi[], const uint32_t start[], const uint32_t idx[],
	const double val[], uint32_t *first);
/* All promises and rows over all shapes less by this part of them. */
void hd_program_relax(struct hd_policy_lp *pg, double slack);
/* HD_OK: pg->last is OPTIMAL or INFEASIBLE; HD_E_AGAIN: the solver gave up. Pairs are priced until none
 * improves. */
HD_MUST_USE enum hd_err hd_program_solve(struct hd_policy_lp *pg);
/* blocks.c: the program by prices. `solved` false: it did not get there, and nothing is changed. */
HD_MUST_USE enum hd_err hd_blocks_solve(struct hd_policy_lp *pg, const struct hd_lp_limits *limits,
	bool *solved);
/* value of the level column */
double hd_program_c(const struct hd_policy_lp *pg);
/* [njobs] sum of gain x of the last solution */
void hd_program_z(const struct hd_policy_lp *pg, double *z);
/* Where pairs are priced: makes this one a column, if it may be one. */
HD_MUST_USE enum hd_err hd_program_want(struct hd_policy_lp *pg, uint32_t a, uint32_t b, uint32_t type);
/* price of the promise, >= 0 */
double hd_program_l(const struct hd_policy_lp *pg, uint32_t job);
/* The prices of the last solution, into the answer. */
HD_MUST_USE enum hd_err hd_program_prices(const struct hd_policy_lp *pg, struct hd_shares *out);
/* The shares of the last solution, into the answer. */
HD_MUST_USE enum hd_err hd_program_shares(const struct hd_policy_lp *pg, struct hd_shares *out);
/* 3.5: with all promised (rows) fixed, fewest and cheapest devices, then least change; then the shares. */
HD_MUST_USE enum hd_err hd_program_settle(struct hd_policy_lp *pg, const struct hd_policy *policy,
	struct hd_shares *out);
/* Second promise: with the promises as they stand, the largest sum of w z; keeps it as a row. */
HD_MUST_USE enum hd_err hd_program_second(struct hd_policy_lp *pg);

/* ---- the middle of what a promise leaves open (centre.c), as the published programs' solver answers ---- */

typedef double hd_middle_worth(const struct hd_shape *shape, const double rate[2], const void *context);
struct hd_middle {
	const double *lo;                         /* [njobs] e_i / p_i, 0: none; NULL: no promises */
	/* how much a promise counts beside the other edges; 0: as much */
	double v;
	hd_middle_worth *worth;                   /* NULL: none */
	const void *context;
	double least;                             /* of the sum of worth x, > 0 */
};
/* Instead of the shares in `out`; these stay where there are too many ways, or it does not get there. */
HD_MUST_USE enum hd_err hd_middle(const struct hd_seen *seen, const struct hd_middle *m,
	struct hd_arena *arena, struct hd_shares *out);

/* ---- pairs by kind of job (kinds.c): columns of the program that name no partner ---- */

/* Kinds a and b on one type; its columns: col[0] + q of the q-th job of a, col[1] + q of b; a == b: col[0]
 * of all. */
struct hd_kinds_group { uint32_t a, b, type, col[2]; double rate[2]; };
/* jobs of kind k: member[first[k]] and on */
struct hd_kinds { uint32_t n, *first, *member, ngroups; struct hd_kinds_group *group; };

HD_MUST_USE enum hd_err hd_kinds_open(struct hd_kinds *kinds, struct hd_policy_lp *pg);
/* their costs, before hd_program_settle */
void hd_kinds_dear(const struct hd_kinds *kinds, struct hd_policy_lp *pg);
/* adds theirs */
void hd_kinds_z(const struct hd_kinds *kinds, const struct hd_policy_lp *pg, double *z);
/* behind the single ones */
HD_MUST_USE enum hd_err hd_kinds_shares(const struct hd_kinds *kinds, struct hd_policy_lp *pg,
	struct hd_shares *out);

/* POP (pop.c): instead of the policy's own allocate where npops is above 1. */
HD_MUST_USE enum hd_err hd_pop_allocate(struct hd_policy *policy, const struct hd_sched_state *state,
	struct hd_arena *arena, struct hd_shares *out,
	struct hd_diag *diag);
void hd_pop_finish(struct hd_policy *policy);
/* A job that stands for others like it: n with itself, 0 of those it stands for; what they weigh in the
 * mean, and their mean work over its own. */
struct hd_alike { uint32_t n; double weight, work; };
struct hd_dealt {
	uint32_t *part_of;                        /* [njobs] below nparts; HD_SCHED_NONE of absent jobs */
	/* the last nlarge are of gangs that are too large for a part of the devices */
	uint32_t nparts, nlarge;
	/* [njobs] where nlarge > 0: some `size` jobs of each sort stand for all */
	struct hd_alike *alike;
};
/* Into at most k parts. `size` 0: as few as each can run all of its jobs. Above: by the work that is left
 * too; some size jobs a part, and if it took fewer than half of k for all to fit, large gangs have parts
 * of their own. HD_E_NOMEM. */
HD_MUST_USE enum hd_err hd_pop_deal(const struct hd_sched_state *s, uint32_t k, uint32_t size,
	struct hd_arena *arena, struct hd_dealt *to);
/* The state of one part, with its devices; job[i] (room for all) is the number in the whole of its job i.
 * HD_E_NOMEM. */
HD_MUST_USE enum hd_err hd_pop_part(const struct hd_sched_state *s, uint32_t part, uint32_t k,
	const uint32_t *part_of, struct hd_arena *arena,
	struct hd_sched_state *to, uint32_t *job);

/* ---- filling (fill.c): lexicographic max-min; z of each job into so[njobs] ---- */
HD_MUST_USE enum hd_err hd_fill(struct hd_policy_lp *pg, bool entities, struct hd_shares *out, double *so);

/* The objective min z s / w over present jobs. */
double hd_max_min(const struct hd_seen *seen, const double *z);

#define X(name, ...) \
	enum hd_err hd_##name##_init(struct hd_policy *policy, struct hd_diag *diag); \
	enum hd_err hd_##name##_allocate(struct hd_policy *policy, const struct hd_sched_state *state, \
		struct hd_arena *arena, struct hd_shares *out, struct hd_diag *diag); \
	void hd_##name##_finish(struct hd_policy *policy);
HD_POLICIES(X)
#undef X

/* Memory by job id that dies with the job: sorted by id, grown as needed. `size` bytes an entry, id first. */
struct hd_ledger { void *at; uint32_t n, cap; size_t size; };
void *hd_ledger_find(const struct hd_ledger *ledger, uint64_t id);
/* zeroed but for the id; there already: that; NULL: no memory */
void *hd_ledger_add(struct hd_ledger *ledger, uint64_t id);
void hd_ledger_drop(struct hd_ledger *ledger, uint64_t id);           /* nothing if it is not there */
/* drops jobs that are not in the state */
void hd_ledger_keep(struct hd_ledger *ledger, const struct hd_sched_state *state);
void hd_ledger_finish(struct hd_ledger *ledger);

/* Of wfs: how many devices each job has, and since when. */
struct hd_wfs { struct hd_ledger grants; uint64_t starts; };
/* Of the queues: the type of each job, and the published generator. */
struct hd_queue { struct hd_ledger placed; struct hd_mt mt; };
struct hd_gandiva { struct hd_ledger partners; struct hd_mt mt; };

/* The cheapest assignment of rows to different columns, nrows <= ncols, by shortest augmenting paths; ties as
 * assign.c says. Column of each row into `column`. HD_E_AGAIN: stopped; HD_E_INVAL: a cost is
 * no number; HD_E_NOMEM. */
typedef double hd_assign_cost(const void *context, uint32_t row, uint32_t col);
HD_MUST_USE enum hd_err hd_assign(uint32_t nrows, uint32_t ncols, hd_assign_cost *cost, const void *context,
	const struct hd_policy_setting *set,
	struct hd_arena *arena, uint32_t *column);

#endif
