/* redundancy.h -- redundancy as a transform of schedules: a rank also holds a *shadow* of the stage that
 * follows its own, and keeps it current.
 *
 * Made here, proved by the checker (schedule_check.h, K31 - K35), costed by the simulator (sim_plan.h), shown
 * by `heddle plan show|draw` and `simulate --redundancy`. A runtime executes these records like all others
 * and need not know why they are there.
 *
 *	mode    weights of the shadow   does beside its own stage       keeps on the host until the commit
 *	lazy    on the host             -                               what it sent (flag k)
 *	eager   on the device           Fx                              that, and activations of Fx
 *	full    on the device           Fx, Bx; SGx: gradients twice    what it sent
 *
 * 1. The rank of stage p shadows stage q = (p + 1) mod P of its own pipeline: the *ring*. So the last rank
 *    reads samples for the shadow of stage 0 (LDx), and the one before it labels for that of the last stage.
 * 2. Fx q.v takes the output of the rank's own F p.v, which it therefore follows; nothing is received for it.
 *    Fx stand in the order of the owner's forwards, Bx in that of its backwards.
 * 3. Where Fx stands: `receives`, one directly before each own RG, where the rank would wait for the stage
 *    that it shadows (the last rank: before each RA after the first); what is left, before the rank sums
 *    gradients. `gaps`: in the earliest simulated wait that has room for half of it, else after the last
 *    backward. `auto`: what the simulator finds faster of the two, `receives` if they are equal.
 *    Bx follows the arrival of its gradient (RGx), by the same rules.
 * 4. Gradients, not weights, keep a shadow current: the owner ships each bucket once it is reduced (SHIP,
 *    TAKE); STEPx is the owner's update on the same bits. Each pipeline ships round its own ring: every
 *    bucket once for each holder. A stage of one holder ships before NORM, so a committed step is held by two
 *    ranks; where a stage has several, TAKE follows STEP.
 * 5. Erasing what is redundant gives the schedule that it was made of, instruction by instruction.
 * 6. Refused, with the reason: delayed or eager updates, ranks with several stages (interleaved, V
 *    schedules), one stage alone, pipelines that do not share out the virtual nodes alike on all stages.
 *
 * Pure; everything lies in the arena. */
#ifndef HD_PIPELINE_REDUNDANCY_H
#define HD_PIPELINE_REDUNDANCY_H

#include "pipeline/sim_plan.h"

/*        id      name     about                                                      */
#define HD_REDUNDANCIES(X)                                                             \
	X(NONE,   "none",  "no shadow")                                                \
	X(LAZY,   "lazy",  "shadow weights on the host, brought up to date each step") \
	X(EAGER,  "eager", "shadow weights on the device, and its forward")            \
	X(FULL,   "full",  "its backward too")

enum hd_redundancy {
#define X(id, name, about) HD_REDUNDANCY_##id,
	HD_REDUNDANCIES(X)
#undef X
	HD_NREDUNDANCIES
};
extern const char *const hd_redundancy_names[HD_NREDUNDANCIES];

#define HD_SHADOW_PLACES(X) X(AUTO, "auto") X(RECEIVES, "receives") X(GAPS, "gaps")
enum hd_shadow_place {
#define X(id, name) HD_SHADOW_PLACE_##id,
	HD_SHADOW_PLACES(X)
#undef X
	HD_NSHADOW_PLACES
};
extern const char *const hd_shadow_place_names[HD_NSHADOW_PLACES];

/* Where ranks stand: `npipelines` rows of `nstages` ranks. */
struct hd_shadow_ring {
	uint32_t nranks, nstages, npipelines;
	uint32_t *stage, *pipeline;               /* [ranks] */
	uint32_t *rank;                           /* [npipelines * nstages] */
	uint32_t *pipeline_of;                    /* [vns] */
};

static inline uint32_t hd_shadow_ring_at(const struct hd_shadow_ring *g, uint32_t pipeline, uint32_t stage)
{
	return g->rank[pipeline * g->nstages + stage % g->nstages];
}
static inline uint32_t hd_shadow_ring_next(const struct hd_shadow_ring *g, uint32_t rank)
{
	return hd_shadow_ring_at(g, g->pipeline[rank], g->stage[rank] + 1);
}
static inline uint32_t hd_shadow_ring_before(const struct hd_shadow_ring *g, uint32_t rank)
{
	return hd_shadow_ring_at(g, g->pipeline[rank], g->stage[rank] + g->nstages - 1);
}

/* HD_E_INVAL: rule 6. Work of shadows is not looked at. */
HD_MUST_USE enum hd_err hd_shadow_ring_of(struct hd_shadow_ring *out, const struct hd_schedule *schedule,
	struct hd_arena *arena, struct hd_diag *diag);

struct hd_redundancy_ask {
	enum hd_redundancy mode;
	enum hd_shadow_place place;
	/* costs and links by which waits are found; NULL: `receives` without them */
	const struct hd_sim_setting *setting;
};

/* `schedule` has passed hd_schedule_check(). A skeleton is completed first. HD_E_INVAL: rule 6, or it has
 * shadows already. */
HD_MUST_USE enum hd_err hd_redundancy_add(struct hd_schedule *out, const struct hd_schedule *schedule,
	const struct hd_redundancy_ask *ask, struct hd_arena *arena, struct hd_diag *diag);

bool hd_redundancy_in(const struct hd_schedule *schedule);
/* Rule 5. */
HD_MUST_USE enum hd_err hd_redundancy_erase(struct hd_schedule *out, const struct hd_schedule *schedule,
	struct hd_arena *arena, struct hd_diag *diag);

#endif
