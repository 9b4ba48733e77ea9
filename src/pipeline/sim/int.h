/* int.h -- the state of a simulation. Private to this folder.
 *
 * build.c reads the lists once and lays out producers and consumers; run.c executes; memory.c counts
 * bytes. */
#ifndef HD_PIPELINE_SIM_INT_H
#define HD_PIPELINE_SIM_INT_H

#include "pipeline/sim_plan.h"
#include "pipeline/sim/links.h"

#define SIM_NEVER INT64_MAX
#define SIM_LONGEST (INT64_C(1) << 62)    /* ticks; twice that is still a time */
#define SIM_NONE UINT32_MAX

/* The output of F, or the input gradient of B or I, of a (stage, virtual node). */
struct sim_token {
	int64_t there, handed;                    /* where it is used; to its channel (or NEVER) */
	/* of an output of F: bytes of activations on the rank; when OFF or ON is over */
	int64_t live, host;
	/* NONE: it stays on its rank; behind it in the channel; its place in it */
	uint32_t channel, next, nth;
	/* ranks; sides: 1 the sender stands at it, 2 the receiver */
	uint16_t maker, user, sides;
	bool made, kept;                          /* kept: F had flag c */
	int64_t bytes;                            /* of what a shadow is sent */
};

/* Channels of one direction between two ranks. */
enum sim_channel_kind { SIM_ACTS, SIM_GRADS, SIM_SHADOW_GRADS, SIM_SHIPS };

struct sim_channel {
	uint32_t from, to, head, tail;            /* tokens handed and not gone, NONE: none */
	/* its tokens in `order`, in the order of sending; used up */
	uint32_t first, total, used;
	uint32_t port[2], nports;
	int64_t latency;
	double bytes_per_s;
	uint8_t kind;
	bool busy;
};

/* What a rank holds of the stage that it shadows. */
struct sim_shadow {
	uint32_t first_sent, nsent;               /* tokens of its SGx and SHIP, in order; how many began */
	/* tokens of its RGx and TAKE, in order; NONE: nothing sends it */
	uint32_t *taken, ntaken;
	uint32_t npartials, nleaves;
	int64_t kept, host;                       /* bytes on the host: dropped at STEP; all */
	int64_t arrived[2];                       /* gradients, shipped sums: bytes not used up */
	bool computes;
};

/* RED, TIE, NORM, VAL, BAR, FL, BL: the nth of a number on all ranks that list it. */
struct sim_collective {
	uint8_t op; bool done;
	uint16_t stage, bucket;
	/* members: member[first ..]; level: that carries it */
	uint32_t nth, first, nmembers, nheads, npartials, level, step;
	uint32_t last, after;                     /* as of hd_sim_meeting */
	int64_t start, end, ticks, latency, bytes;
	uint32_t *port, nports;
};

struct sim_held {                                 /* a stage that a rank holds */
	uint16_t stage;
	/* nsent: given to REDs, of which so many go on; red: the last one, NONE */
	uint32_t npartials, nsent, npending, window, red;
	uint32_t version, *pin, npins, pincap;    /* the newest; what PINs hold, one each */
};

enum sim_why { SIM_WHY_NOTHING, SIM_WHY_TOKEN, SIM_WHY_COLLECTIVE, SIM_WHY_CREDIT };

struct sim_rank {
	const struct hd_ilist *list;
	struct hd_sim_share *out;
	struct hd_sim_span *span;                 /* NULL: not asked for */
	struct hd_sim_waits *wait;                /* NULL likewise */
	struct sim_held *held; uint32_t nheld;
	uint32_t *collective, ncollectives;       /* in the order of the list */
	uint32_t *lane, nlane, at_lane;           /* issued, in order; the first not ended */
	uint32_t at, number, device, next_collective, tie, step, serial;
	/* end of the last instruction, begin of the one that runs */
	int64_t free, began;
	int64_t left, since; uint32_t nflows;     /* rule 5: work left of it, as of; transfers of the rank */
	int64_t host_free[2];                     /* OFF, ON: end of the last one */
	double speed;
	bool computes, posted, ended;
	enum sim_why why;
	const struct sim_token *waits;
	uint32_t waits_collective;
	struct sim_shadow shadow;
	int64_t bytes[HD_NMEMORIES], total, settled;      /* memory; settled: the time of the last change */
	uint32_t changed_at;
};

struct plan_sim {
	const struct hd_schedule *s;
	const struct hd_sim_setting *set;
	const struct hd_stage_cost *cost;         /* [stages] */
	enum hd_transport transport;
	uint32_t credits, step_vns, nsteps;
	bool transfers, updates, pins;            /* transfers, STEPs, PINs stand in the lists */
	int64_t now, hop;
	/* what to change: it takes more than LONGEST; NULL: it does not */
	const char *beyond;
	struct sim_token *act, *grad;             /* [stages * vns] */
	/* [stages * vns] activations of shadows; then what is sent to them. All are one array from `act`. */
	struct sim_token *shadow, *sent; uint32_t nsent;
	struct sim_channel *channel; uint32_t nchannels, *order;
	struct sim_collective *collective; uint32_t ncollectives;
	uint16_t *member;
	const struct hd_stage_rule *rule;         /* [stages] virtual nodes an update, and how late it is */
	uint32_t *span;                           /* [stages] entries of an update in `node` */
	uint16_t *nbuckets;                       /* [stages] */
	uint16_t **node;                          /* [stages] the holder of each partial sum, rank + 1 */
	struct sim_rank *rank;
	uint32_t *ready, nready;
	int64_t *step_end;
	struct sim_links links;
	struct sim_queue queue;
	uint64_t nins;
	uint32_t ncomputing;                      /* rule 8 */
	struct hd_arena *arena;
};

static inline size_t sim_index(const struct plan_sim *x, uint32_t stage,
	uint32_t vn) { return (size_t)stage * x->s->nvns + vn; }
static inline bool sim_is_grad(uint8_t op) { return op == HD_INS_SG || op == HD_INS_RG; }
static inline bool sim_is_send(uint8_t op) { return op == HD_INS_SA || op == HD_INS_SG; }
static inline bool sim_is_transfer(uint8_t op) { return op == HD_INS_SA || op == HD_INS_SG ||
	op == HD_INS_RA || op == HD_INS_RG; }
static inline bool sim_is_collective(uint8_t op)
{
	return op == HD_INS_RED || op == HD_INS_TIE || op == HD_INS_NORM || op == HD_INS_VAL ||
		op == HD_INS_BAR || op == HD_INS_FL || op == HD_INS_BL;
}
/* The token that a transfer moves. */
static inline struct sim_token *sim_moved(const struct plan_sim *x, const struct hd_ins *ins)
{
	uint32_t from = ins->op == HD_INS_RA ? ins->stage - 1u : ins->op == HD_INS_RG ? ins->stage + 1u :
		ins->stage;

	return (sim_is_grad(ins->op) ? x->grad : x->act) + sim_index(x, from, ins->vn);
}
/* Of a shadow: sent or taken by queues of their own. */
static inline bool sim_is_shadow_send(const struct hd_ins *ins)
{
	return ins->op == HD_INS_SHIP || (ins->op == HD_INS_SG && ins->flags & HD_INS_SHADOW);
}
static inline bool sim_is_shadow_take(const struct hd_ins *ins)
{
	return ins->op == HD_INS_TAKE || (ins->op == HD_INS_RG && ins->flags & HD_INS_SHADOW);
}
/* The activations that F makes. */
static inline struct sim_token *sim_saved(const struct plan_sim *x, const struct hd_ins *ins)
{
	return (ins->flags & HD_INS_SHADOW ? x->shadow : x->act) + sim_index(x, ins->stage, ins->vn);
}
static inline bool sim_is_act(const struct plan_sim *x, const struct sim_token *t) { return t >= x->act &&
	t < x->act + (size_t)x->s->nstages * x->s->nvns; }
static inline int64_t sim_clip(sim_wide ticks) { return ticks < INT64_MAX ? (int64_t)ticks : INT64_MAX; }
/* Bytes of a token: of an activation what leaves its stage, of a gradient what entered it. */
static inline int64_t sim_bytes(const struct plan_sim *x, const struct sim_token *t)
{
	if (t >= x->sent)
		return t->bytes;
	bool act = sim_is_act(x, t);
	size_t i = (size_t)(t - (act ? x->act : x->grad));

	return act ? x->cost[i / x->s->nvns].out : x->cost[i / x->s->nvns].in;
}

HD_MUST_USE enum hd_err hd_sim_build(struct plan_sim *x, struct hd_diag *diag);

/* memory.c: what an instruction takes when it begins and gives back when it ends. */
void hd_sim_memory_begin(struct plan_sim *x, struct sim_rank *r, const struct hd_ins *ins);
void hd_sim_memory_end(struct plan_sim *x, struct sim_rank *r, const struct hd_ins *ins);
void hd_sim_host_add(struct sim_rank *r, int64_t bytes);
void hd_sim_memory_add(struct plan_sim *x, struct sim_rank *r, enum hd_memory_kind kind, int64_t bytes);
void hd_sim_memory_settle(struct plan_sim *x, struct sim_rank *r);
struct sim_held *hd_sim_held(struct sim_rank *r, uint32_t stage);      /* NULL: it does not */

/* run.c */
void hd_sim_run(struct plan_sim *x);

/* noise.c: what a cost becomes; `part` tells the draws of one instruction apart. */
int64_t hd_sim_draw(uint64_t seed, uint32_t step, uint32_t rank, uint32_t index, uint32_t part,
	const struct hd_spread *of);

#endif
