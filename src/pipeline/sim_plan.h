/* sim_plan.h -- the full simulator: what a plan takes on the devices and links of a cluster, and why ranks
 * stand still.
 *
 * Planners judge candidates by it, `heddle simulate --profile` prints it, a trace shows it beside what was
 * measured. (Bare schedules with one cost a rank: simulate.h, faster; both agree where both can answer.)
 *
 * 1. A rank executes its list in order, nothing is reordered. An instruction begins when its predecessor on
 *    the rank has ended and all it needs is there. Compute takes the cost of (stage, op) divided by the speed
 *    of the rank's device.
 * 2. Transfers run beside compute. Each component of a level has a port out and a port in, of the level's
 *    bandwidth. The transfers active on a port share it equally; one over two ports has the smaller share.
 *    Shares change when one begins or ends. A channel (from, to, activation or gradient) moves one tensor at
 *    a time, in order; a tensor is there `latency` after its last byte. Without a cluster a hop takes a fixed
 *    time and has no bandwidth.
 * 3. Lists without transfers have them implied, never waiting (eager). Otherwise they wait as
 *    schedule_check.h says of the transport: buffered sends take a credit, which returns when the tensor's
 *    consumer has ended; under rendezvous and grouped both sides stand still until the tensor is there.
 * 4. RED, TIE and NORM begin when the last member has come and the collectives before it on each member are
 *    done, and end together. RED and TIE run beside compute (not under rendezvous), STEP waits for them;
 *    NORM, VAL and BAR are waited for on the spot. RED of x members moves (n + 1)(x - 1)/x of the weights
 *    over the slowest level of the ring of its members, n the most partial sums that one of them holds (1: a
 *    common all-reduce), and takes 2 ceil(log2 x) latencies; TIE is the same with one. NORM takes latencies.
 * 5. A pair takes `ovl` of its halves' sum. Compute during a transfer of its rank takes `comm_tax` of itself.
 * 6. Memory is bytes: weights and optimizer state of the stages that a rank holds, the largest workspace,
 *    older versions kept, one weight-sized buffer for each partial sum of gradients (binary counter over
 *    virtual nodes, plan/tree.h), activations from F to B or W (flag c: what F keeps; R brings the rest; I
 *    frees what W does not need; OFF and ON move them), receive slots from posting to the consumer's end. At
 *    equal times what is released goes first.
 * 7. Times are whole ticks of 1/per_ps ps; shares are rounded to 1/256 of one, by integers. Equal questions
 *    have equal answers on every machine. Costs drawn with noise are a function of (seed, step, rank, index).
 * 8. With `cores`, ranks are threads of one machine: of those that compute at once each gets an equal part of
 *    so many cores, and none more than one. What they stand still for does not compute.
 *
 * 9. Shadow stages (redundancy.h): Fx and Bx take what F and B do and make nothing; SHIP waits for its RED;
 *    what SGx and SHIP send has channels and buffers of its own, so neither ever waits for a credit; RGx and
 *    TAKE stand still until it is there. Memory: weights and optimizer state of the shadow, on the device
 *    where its forward is computed, else on the host; its activations; sums of its gradients where Bx are. On
 *    the host until STEP: what is sent with flag k, and what OFFx moved.
 *
 * Linear in the number of instructions but for the queue (its logarithm) and the transfers that share a
 * port. Pure. */
#ifndef HD_PIPELINE_SIM_PLAN_H
#define HD_PIPELINE_SIM_PLAN_H

#include "cost/topology.h"
#include "cost/stage_costs.h"
#include "pipeline/schedule_check.h"
#include "pipeline/simulate.h"

/*        id          name          why a rank stands still              */
#define HD_IDLES(X)                                                       \
	X(WARM_UP,    "warm-up",    "before its first work")               \
	X(DRAIN,      "drain",      "after its last instruction")          \
	X(DEPENDENCY, "dependency", "what it waits for is not made yet")   \
	X(TRANSFER,   "transfer",   "it is made, and under way")           \
	X(CREDIT,     "credit",     "no buffer is free where it sends to")

enum hd_idle_why {
#define X(id, name, about) HD_IDLE_##id,
	HD_IDLES(X)
#undef X
	HD_NIDLES
};

/*        id           name           */
#define HD_MEMORIES(X)                 \
	X(WEIGHTS,     "weights")      \
	X(OPTIMIZER,   "optimizer")    \
	X(WORKSPACE,   "workspace")    \
	X(VERSIONS,    "versions")     \
	X(PARTIALS,    "partials")     \
	X(ACTIVATIONS, "activations")  \
	X(SLOTS,       "slots")        \
	X(SHADOWS,     "shadows")

enum hd_memory_kind {
#define X(id, name) HD_MEMORY_##id,
	HD_MEMORIES(X)
#undef X
	HD_NMEMORIES
};
extern const char *const hd_idle_names[HD_NIDLES], *const hd_memory_names[HD_NMEMORIES];

struct hd_sim_setting {
	const struct hd_stage_costs *costs;       /* of all stages of the schedule */
	uint32_t per_ps;                          /* all costs are in ticks of 1/per_ps ps; 0: 1 */
	const struct hd_cluster *cluster;         /* NULL: `hop` ticks a transfer, speed 1 */
	const uint32_t *device;                   /* [ranks]; NULL: rank r is device r */
	const double *speed;                      /* [ranks] beside that of the device's kind; NULL: 1 */
	int64_t hop;
	uint32_t cores;                           /* that ranks share; 0: one each */
	double host_bytes_per_s;                  /* of OFF and ON; 0: they take no time */
	/* they take the rank's own time, as where a processor moves its own memory; false: a lane each way
	 * beside it */
	bool host_waits;
	enum hd_transport transport; uint32_t credits;
	/* 0: one, of delayed updates four and what the prologue takes */
	uint32_t steps;
	/* its rule says what versions are kept and when sums are whole; NULL: as `update` does */
	const struct hd_schedule_job *job;
	bool noise; uint64_t seed;                /* rule 7; false: p50 */
	bool spans;
};

struct hd_sim_share {                             /* of one rank */
	/* begin of the first work, end of the last instruction, sum of its times */
	int64_t first, last, busy;
	int64_t idle[HD_NIDLES];                  /* with busy: the makespan */
	int64_t peak, at_peak[HD_NMEMORIES];      /* bytes, and what they are then */
	uint32_t peak_at;                         /* its instruction then */
	int64_t host;                             /* bytes of the host at most (rule 9) */
};

#define HD_NO_MEETING UINT32_MAX
/* before its instruction `at`. For what: a tensor that `rank` made, on its way since `since`, or whose buffer
 * `rank` gives back; or the end of a meeting. Neither of both: a copy from the host. */
struct hd_sim_wait { int64_t start, end; enum hd_idle_why why; uint32_t at, rank, meeting; int64_t since; };
struct hd_sim_waits { struct hd_sim_wait *at; uint32_t n, cap; };

/* RED, TIE, NORM and other collectives: between which times, what it moves. It begins when rank `last` has
 * come to it, or with the end of meeting `after` (else HD_NO_MEETING). */
struct hd_sim_meeting {
	uint8_t op;
	uint16_t stage, bucket;
	uint32_t nmembers, last, after;
	const uint16_t *member;           /* [nmembers] ranks */
	int64_t start, end, bytes;
};

/* what left the component over the level, and how long */
struct hd_sim_link { uint32_t level, component; int64_t bytes, busy; };

struct hd_sim_plan {
	struct hd_schedule ran;                   /* all steps, with the transfers that were simulated */
	uint32_t per_ps, steps;
	int64_t makespan, busiest, span_idle;     /* span_idle: most of last - first - busy */
	uint64_t nins;
	struct hd_sim_share *rank;                /* [ranks] */
	struct hd_sim_link *link; uint32_t nlinks;      /* those that carried something */
	int64_t *step_end;                        /* [steps] end of the last instruction of it */
	/* [ranks][list length], if asked for: of transfers and collectives, their own */
	struct hd_sim_span **span;
	/* [ranks] with spans: every time that it stood still, but for the drain */
	struct hd_sim_waits *wait;
	struct hd_sim_meeting *meeting; uint32_t nmeetings;       /* with spans */
};

/* HD_E_BADPLAN: ranks wait for each other. HD_E_INVAL: sizes that do not fit each other, or more than 2^62
 * ticks (4.6e6 s). */
HD_MUST_USE enum hd_err hd_sim_plan(struct hd_sim_plan *out, const struct hd_schedule *schedule,
	const struct hd_sim_setting *setting,
	struct hd_arena *arena, struct hd_diag *diag);

static inline double hd_sim_plan_s(const struct hd_sim_plan *sim,
	int64_t ticks) { return (double)ticks / (double)sim->per_ps * 1e-12; }
static inline double hd_sim_plan_bubble(const struct hd_sim_plan *sim)
{
	return sim->busiest ? (double)(sim->makespan - sim->busiest) / (double)sim->busiest : 0;
}
/* Virtual nodes a second between the ends of step 2 and the last; of fewer than 4 steps over all of them. */
double hd_sim_plan_rate(const struct hd_sim_plan *sim);

/* Costs of stages from what a full rank spends (simulate.h), in ticks of 1/v ps, v = ceil(stages / ranks):
 * sizes 0. */
HD_MUST_USE enum hd_err hd_stage_costs_even(struct hd_stage_costs *costs, const struct hd_rank_costs *full,
	uint32_t nstages,
	struct hd_arena *arena, struct hd_diag *diag);

/* Never fatal: bubble above a half, the slowest stage a quarter above the mean, a rank without work, versions
 * more than half of a rank's memory. A sentence each; returns how many (at most `cap`). */
enum { HD_SIM_WARNINGS = 16 };
struct hd_sim_warning { char text[160]; };
uint32_t hd_sim_plan_warnings(const struct hd_sim_plan *sim, struct hd_sim_warning *out, uint32_t cap);

#endif
