/* spread.h -- stages whose shards lie on several workers: which worker runs each node, and what it has of
 * each value.
 *
 * The t devices of a rank (tensor.h) are n *groups* of t/n neighbours, each on a worker of its own. What a
 * group runs of a stage is a *substage*; that of group k of stage s has number s n + k. With one group a
 * substage is a stage. Used by the plan's tables of buckets and by the engine.
 *
 * 1. A node runs on one device (tensor.h, rule 2), so on one group: nothing is computed twice.
 * 2. A group *has* a value if it makes it or receives it. It receives what its nodes read, in whatever phase,
 *    and what the next substage of its own number needs from the stage: between stages group k sends to
 *    group k.
 * 3. A view has no bytes: what is said of a value is said of the one that it shows.
 * 4. A gradient is of the substage that makes it; that of a frozen parameter of substage 0.
 *
 * Everything lies in the arena; the stages are borrowed. Pure. */
#ifndef HD_GRAPH_SPREAD_H
#define HD_GRAPH_SPREAD_H

#include "graph/stages.h"
#include "graph/tensor.h"

struct hd_spread_stage {
	uint8_t *device;                  /* [nodes of the stage's graph] of the rank's t */
	uint32_t *root;                   /* [values] rule 3 */
	uint64_t *has;                    /* [values] rule 2: a bit a group; of a root, else 0 */
};

struct hd_graph_spread {
	const struct hd_graph_stages *stages;
	uint32_t t, ngroups;
	struct hd_spread_stage *at;       /* [stages->n] */
	uint16_t *of_grad;                /* [ngrads] rule 4 */
};

/* t devices of a rank for a model in `nshards`, in `ngroups`. HD_E_INVAL: t does not divide the shards, the
 * groups do not divide t, or there would be more substages than 16 bits count. */
HD_MUST_USE enum hd_err hd_graph_spread_make(struct hd_graph_spread *spread,
	const struct hd_graph_stages *stages, uint32_t nshards, uint32_t t, uint32_t ngroups,
	struct hd_arena *arena, struct hd_diag *diag);

static inline uint32_t hd_spread_group(const struct hd_graph_spread *spread, uint32_t stage, uint32_t node)
{
	return spread->at[stage].device[node] / (spread->t / spread->ngroups);
}
/* Does the group make the value? */
bool hd_spread_makes(const struct hd_graph_spread *spread, uint32_t stage, uint32_t group, uint32_t value);
/* Does it have it? */
bool hd_spread_has(const struct hd_graph_spread *spread, uint32_t stage, uint32_t group, uint32_t value);

#endif
