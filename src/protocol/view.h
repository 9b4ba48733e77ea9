/* view.h -- which workers take part in a job and which virtual nodes each computes: a value, and what
 * follows from it.
 *
 * Members, the coordinator, the runtime and the simulation derive all that they must agree on from a view,
 * by the functions below, without further messages.
 *
 * The words: a *member* is a worker that takes part. A *virtual node* is a fixed part of the global batch:
 * the job says how many there are (V), whatever devices compute them. The *epoch* is the number of the view;
 * it rises with each change of members and has nothing to do with passes over the data. *Chunks* of the flat
 * gradient: graph/layout.h.
 *
 * 1. Worker ids in `member` are strictly ascending; each rank's `worker` is a member; the ranks' nvns add up
 *    to V. hd_view_verify() checks it.
 * 2. Ranks divide the virtual nodes 0..V-1 in order: rank 0 computes the first nvns of them, rank 1 the next
 *    ones, and so on. A rank is a device, or the devices of one worker that share a model's shards
 *    (engine/tensor.h; rule 11). A worker may have several ranks, adjacent or not. nvns may be 0.
 * 3. A *bucket* is a run of consecutive chunks of the flat gradient (graph/layout.h). The
 *    layout alone fixes the buckets, for all views of a run. The *owner* of a bucket adds its partial sums.
 *    Without a shape (below), the owner of bucket b is member floor(b n / nbuckets) of n, and the
 *    hd_bucket_*() below hold; with one, plan/holding.h says which (rule 2 there).
 * 4. A *pass* is a set of virtual nodes that one worker computes in one step. Pass 0 is its part of the view
 *    in which it began the step; later passes recompute what a lost worker had. The *roots* of a pass are
 *    the partial sums that it yields: the largest nodes of the canonical tree (plan/tree.h), the fixed order
 *    of all additions, whose leaves all lie in the pass. The roots of a worker are numbered through all its
 *    passes of a step: the *ordinal*.
 * 5. Equal views have equal hashes; the epoch is part of the view.
 *
 * Pipelines. A view may have a *shape*: the model is cut into stages, and each `width` consecutive ranks are
 * a pipeline; there may be several pipelines, side by side (data parallel). Without a shape every rank
 * computes the whole model.
 *
 * 6. Rank r of the view is rank r of its plan. Pipeline k has ranks k width to (k + 1) width - 1, of which
 *    k width + place[s] runs stage s. place[0] is 0, and each rank has a stage. A member may have several
 *    ranks, or none.
 * 7. The virtual nodes of a pipeline are counted at its first rank; its other ranks have nvns 0.
 * 8. The shape says with which node of the graph each stage begins, or names none: then the stages balance
 *    the FLOPs. Stages that are parts of one (rule 11) begin with one node.
 * 9. A member holds the buckets of its stages (plan/holding.h). A pass is of one stage: a worker has one for
 *    each stage that it holds, ascending; the passes of each stage partition the virtual nodes. A pass yields
 *    roots of those buckets to whose gradient its stage contributes (`makers` of plan/buckets.h).
 *
 * 10. Shadows (plan/buckets.h). The shadow of a stage is, in each pipeline, at the nearest rank before that
 *    of the stage, round the pipeline, that another worker has; where one worker has all ranks, there is
 *    none.
 *
 * 11. A rank is `each` devices of one member (0: one), and `groups` neighbouring ranks (0: one) share what
 *     the cuts call a stage: each of them runs a stage of the view, which is its part of it
 *     (graph/spread.h). To holders, passes and sums they are ranks and stages like others.
 *
 * 12. A *doubled* rank was lost within a step that goes on without it (ADR 132): its worker is that of the
 *     rank before it in the pipeline, whose shadow was of its stage. Such a view is of the rest of that step:
 *     neither the stage of a doubled rank nor the one behind it has a shadow there.
 *
 * 13. Copies. Where a pipeline has more ranks than stages, the places ascend, and stage s is at all ranks
 *     from its place up to that of the stage behind it: its *copies*. A *lane* (pipeline/lanes.h) is a way
 *     through a pipeline, with one copy of each stage. A pipeline has as many as the least common multiple
 *     of its copies; lane l of L goes through copy floor(l c / L) of a stage with c. Virtual nodes are dealt
 *     to lanes as to pipelines, so those of a copy are neighbours and leave few roots; a first copy counts
 *     those of its lanes. Such a shape has neither shadows nor groups.
 *
 * 14. Followers. A pipeline may leave members over, which have no rank. Each of them may *follow* a stage: it
 *     holds its parameters and slots and makes each update, as a shadow does, so it can take the place of a
 *     lost worker that ran it before any byte has moved. The view names them behind its ranks, by ascending
 *     workers: rank[nranks + i], whose nvns is HD_FOLLOWS and the stage. The coordinator says which
 *     (ranks.h). For the rest of a step (rule 12) those that stay follow what they did.
 *
 * Plain values, no pointers. Pure: no allocation, no clock. */
#ifndef HD_PROTOCOL_VIEW_H
#define HD_PROTOCOL_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/hash.h"
#include "graph/layout.h"
#include "plan/holding.h"
#include "plan/tree.h"
#include "protocol/seal.h"

enum {
	HD_VIEW_RANKS = 256,              /* ranks of all members */
	HD_MAX_BUCKETS = 65536,           /* 64 GiB of gradient */
};

/* A message for users. The reason: in another view a member may read buckets that it did not hold, and no
 * transfer brings parameters to a member that gets no slots. */
#define HD_NO_SHARDED_STAGES \
	"stages over workers go with neither comm.sync: sharded nor parameter-server yet: use comm.sync: " \
	"allreduce"
#define HD_NOBODY UINT32_MAX              /* no worker */
/* Workers that cannot reach the run's folder have ids from here on. */
#define HD_REMOTE_WORKER UINT32_C(1000000)
#define HD_NO_STEP UINT64_MAX

#define HD_FOLLOWS (UINT32_C(1) << 31)    /* rule 14; virtual nodes are fewer */

struct hd_vrank { uint32_t worker, nvns; };
struct hd_vrange { uint32_t first, n; };          /* virtual nodes first .. first + n - 1 */

/* nstages 0: no shape, and all else is 0; 1: each rank has the whole model and is several devices. Unused
 * places are 0. `schedule`: a number that is the same in all processes of the run and says the order of
 * work and whether stages have shadows; the machines see it by hd_shape_buckets alone. `first`: the
 * node of the graph with which each stage begins, or all 0 (rule 8). */
struct hd_view_shape {
	uint32_t nstages, width;
	uint8_t place[HD_STAGE_BITS];
	uint32_t schedule, first[HD_STAGE_BITS];
	/* rule 11: devices of a rank, and ranks that share a stage, neither ever 1 */
	uint8_t each, groups;
	bool again;                       /* each stage keeps its input alone and computes the rest again */
};
static inline uint32_t hd_view_each(const struct hd_view_shape *shape)
{
	return shape->each ? shape->each : 1;
}
static inline uint32_t hd_view_groups(const struct hd_view_shape *shape)
{
	return shape->groups ? shape->groups : 1;
}
/* The last three as one number, which a message carries. */
static inline uint32_t hd_view_way(const struct hd_view_shape *shape)
{
	return shape->each | (uint32_t)shape->groups << 8 | (uint32_t)shape->again << 16;
}
/* Rule 13. */
static inline bool hd_view_has_copies(const struct hd_view_shape *shape)
{
	return shape->nstages < shape->width;
}
/* Ranks that run a stage, in each pipeline; lanes of a pipeline. 1 where no stage has copies. */
uint32_t hd_view_copies(const struct hd_view_shape *shape, uint32_t stage);
uint32_t hd_view_lanes(const struct hd_view_shape *shape);
/* How many of `first` a message carries. */
static inline uint32_t hd_view_nfirst(const struct hd_view_shape *shape)
{
	const uint32_t second = hd_view_groups(shape);     /* with which the second of the cuts begins */

	return second < HD_STAGE_BITS && shape->first[second] ? shape->nstages : 0;
}
/* A callback of the state machines (member.h, coordinator.h): what the cuts of a shape say of each bucket;
 * NULL: there is no such shape. The table outlives the machine. */
typedef const struct hd_stage_buckets *hd_shape_buckets(void *self, const struct hd_view_shape *shape);

struct hd_view {
	uint32_t epoch, nmembers, nranks, nfollows;
	uint32_t member[HD_MAX_MEMBERS];
	struct hd_vrank rank[HD_VIEW_RANKS];          /* [nranks + nfollows] */
	struct hd_view_shape shape;
	uint64_t doubled[HD_VIEW_RANKS / 64];         /* bits of ranks: rule 12 */
};
static inline bool hd_view_doubled(const struct hd_view *view, uint32_t rank)
{
	return view->doubled[rank / 64] >> rank % 64 & 1;
}
/* Has it any doubled rank? No step begins under it. */
bool hd_view_is_doubled(const struct hd_view *view);
/* The rank before in its pipeline, round: one whose shadow is of the rank's stage, where stages have one rank
 * and one worker each. */
uint32_t hd_view_before(const struct hd_view *view, uint32_t rank);
/* The view of the rest of a step of `view` without the workers that are not among `member` [n], ascending:
 * their ranks are doubled. The epoch is the caller's. False: one of them has no heir, since that is lost as
 * well or runs the stage itself, or the view is of no shape with a stage a rank. */
bool hd_view_without(struct hd_view *rest, const struct hd_view *view, const uint32_t *member, uint32_t n);

/* HD_E_BADPLAN: diag says in a sentence what is wrong. */
HD_MUST_USE enum hd_err hd_view_verify(const struct hd_view *view, uint32_t nvns, struct hd_diag *diag);
/* Makes the most even view: each of the D devices gets floor(V / D) virtual nodes, the first V mod D devices
 * one more. Devices are numbered member by member. `member` [n] and `ndevices` [n]: ids ascending. */
void hd_view_even(struct hd_view *view, uint32_t epoch, const uint32_t *member, const uint32_t *ndevices,
	uint32_t n, uint32_t nvns);
/* Makes the most even view of a shape. `nranks` [n]: how many ranks each member can have; a rank is one
 * device of it or several (plan/plan.h), the view does not say. In the order of members they make as many
 * pipelines as they are enough for, but at most `pipes` and nvns over lanes; what is left over gets no stage
 * and is no rank of the view. Virtual nodes are dealt evenly, larger parts first. False: fewer ranks or
 * virtual nodes than one pipeline needs, and *view is as it was. */
bool hd_view_staged(struct hd_view *view, uint32_t epoch, const uint32_t *member, const uint32_t *nranks,
	uint32_t n, uint32_t nvns, const struct hd_view_shape *shape, uint32_t pipes);
/* Deals the virtual nodes of a view of a shape without copies otherwise: share[k] to pipeline k. */
void hd_view_deal_pipes(struct hd_view *view, const uint32_t *share);
/* The shape of a schedule with `chunks` stages on each of `width` ranks: stage s is at place s mod width
 * (interleaved), or up the ranks and down again (`vee`: zb-v, dualpipev). */
void hd_view_shape(struct hd_view_shape *shape, uint32_t width, uint32_t chunks, bool vee);
/* The shape that a message names. Lists that are of no shape make one that hd_view_verify() refuses. */
void hd_view_shape_read(struct hd_view_shape *shape, uint32_t width, uint32_t schedule, uint32_t way,
	const uint32_t *place, uint32_t nplace, const uint32_t *first, uint32_t nfirst);
static inline uint32_t hd_view_nstages(const struct hd_view *view)
{
	return view->shape.nstages ? view->shape.nstages : 1;
}
/* Pipelines; without a shape each rank is one. */
static inline uint32_t hd_view_pipes(const struct hd_view *view)
{
	return view->shape.nstages ? view->nranks / view->shape.width : view->nranks;
}
/* Lanes of all pipelines, those of a pipeline one after another. */
static inline uint32_t hd_view_nlanes(const struct hd_view *view)
{
	return hd_view_pipes(view) * (view->shape.nstages ? hd_view_lanes(&view->shape) : 1);
}
/* The rank that runs a stage of a lane, and the virtual nodes of the lane. */
uint32_t hd_view_rank(const struct hd_view *view, uint32_t lane, uint32_t stage);
uint32_t hd_view_lane_nvns(const struct hd_view *view, uint32_t lane);
/* The members that hold a stage, as a bit mask of member indices. */
uint64_t hd_view_holders(const struct hd_view *view, uint32_t stage);
/* The stages that a worker holds, as a bit mask. */
uint64_t hd_view_stages(const struct hd_view *view, uint32_t worker);
/* Rule 10: the members that have the shadow of a stage; the stages of which a worker has the shadow. */
uint64_t hd_view_shadows(const struct hd_view *view, uint32_t stage);
uint64_t hd_view_shadowed(const struct hd_view *view, uint32_t worker);
/* Rule 14: the stage that a worker follows; HD_NOBODY: none. */
uint32_t hd_view_follows(const struct hd_view *view, uint32_t worker);
/* Takes the ranks that a message names, and the followers behind them. */
void hd_view_take_ranks(struct hd_view *view, const struct hd_vrank *rank, uint32_t n);
/* How many of a view's a message names. */
static inline uint32_t hd_view_named(const struct hd_view *view) { return view->nranks + view->nfollows; }
/* The members that hold the state of a stage, which they run, shadow or follow: a bit mask. */
uint64_t hd_view_keepers(const struct hd_view *view, const struct hd_stage_buckets *buckets, uint32_t stage);
/* The stages whose state a worker holds: those that it runs, has the shadow of, or follows. */
uint64_t hd_view_kept(const struct hd_view *view, const struct hd_stage_buckets *buckets, uint32_t worker);
/* Which members hold what under the view, with the bytes that `holding` has. `buckets` NULL: one stage. */
void hd_view_holding(struct hd_holding *holding, const struct hd_view *view,
	const struct hd_stage_buckets *buckets, uint32_t copies, uint32_t servers);
/* The lane that computes a virtual node, and the index of the member that runs a stage of it. */
uint32_t hd_view_lane(const struct hd_view *view, uint32_t vn);
uint32_t hd_view_runs(const struct hd_view *view, uint32_t vn, uint32_t stage);

bool hd_view_same_shape(const struct hd_view_shape *a, const struct hd_view_shape *b);
uint64_t hd_view_shape_key(const struct hd_view_shape *shape);        /* equal of equal shapes, never 0 */
struct hd_hash hd_view_hash(const struct hd_view *view);
bool hd_view_same_map(const struct hd_view *a, const struct hd_view *b);         /* all but the epoch */

/* The index of a worker among the members; HD_NOBODY: it is none. */
uint32_t hd_view_index(const struct hd_view *view, uint32_t worker);
static inline bool hd_is_remote(uint32_t worker) { return worker >= HD_REMOTE_WORKER; }
/* The checkpoint writer, which also evaluates: the member with the lowest id. With a shape it is the lowest
 * that has a rank: the others wait while it saves, since they need what that rank computes. HD_NOBODY: that
 * member is remote and does not reach the run's folder. */
uint32_t hd_view_writer(const struct hd_view *view);
static inline bool hd_view_has(const struct hd_view *view, uint32_t worker)
{
	return hd_view_index(view, worker) != HD_NOBODY;
}
/* The virtual nodes of which a worker computes a stage, or any stage: ascending ranges, merged where they are
 * adjacent. Returns their number. `out` has room for HD_VIEW_RANKS. */
uint32_t hd_view_stage_ranges(const struct hd_view *view, uint32_t worker, uint32_t stage,
	struct hd_vrange *out);
uint32_t hd_view_ranges(const struct hd_view *view, uint32_t worker, struct hd_vrange *out);
/* For each rank of the worker, in their order, the range of its lanes, which may be empty. */
uint32_t hd_view_devices(const struct hd_view *view, uint32_t worker, struct hd_vrange *out);

static inline uint32_t hd_bucket_count(uint32_t nchunks)
{
	return (nchunks + HD_BUCKET_CHUNKS - 1) / HD_BUCKET_CHUNKS;
}
static inline uint32_t hd_bucket_owner(uint32_t bucket, uint32_t nbuckets, uint32_t nmembers)
{
	return (uint32_t)((uint64_t)bucket * nmembers / nbuckets);
}
/* The first bucket that the member with this index owns; for index nmembers: nbuckets. */
static inline uint32_t hd_bucket_first(uint32_t member, uint32_t nbuckets, uint32_t nmembers)
{
	return (uint32_t)(((uint64_t)member * nbuckets + nmembers - 1) / nmembers);
}
/* Sharded state: the members that hold the optimizer slots of a bucket, as a bit mask of member indices: its
 * owner and the next `copies` - 1 members, modulo nmembers. */
uint64_t hd_bucket_chain(uint32_t bucket, uint32_t nbuckets, uint32_t nmembers, uint32_t copies);

/* Distributes `missing` virtual nodes over n members so that the latest predicted finish is as early as
 * possible. Member i has load[i] virtual nodes still to compute, each of which takes vn_ps[i] picoseconds.
 * Sets extra[i] to the number that member i gets in addition. Ties go to the lower index. */
void hd_view_deal(const uint32_t *load, const uint64_t *vn_ps, uint32_t n, uint32_t missing, uint32_t *extra);

#endif
