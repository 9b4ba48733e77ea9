/* zones.h -- which members run which ranks of a pipeline, where workers are lost in groups: by zones.
 *
 * A zone is what is lost at once: of a cloud an availability zone, elsewhere a rack or a room. Workers say
 * its name when they join; those that say none are in one zone of their own.
 *
 * 1. Nothing changes where all members are in one zone, or where it would help nothing: in a shape whose
 *    stages have copies (view.h, rule 13) or are shared by ranks (rule 11), in a pipeline of one rank, and
 *    in one pipeline without shadows.
 * 2. Else the ranks stay as they are given (ranks.h: where the fewest bytes move) unless they can lie better
 *    by the weights of pipeline/placement.h: fewest neighbours in one zone, then the copies of a stage in
 *    most zones.
 * 3. If they can, some change places until they lie as well as those of hd_place_devices(); if that is not
 *    reached, ranks are in the zones that those are in, at the members there that lack the least bytes (of
 *    states of many TiB, in a unit of some bytes).
 * 4. The first member that can have a rank has one, as in ranks.h; where it would not, 2. or 3. is left out.
 * 5. Members count with as many devices as the view has ranks, or as few alike as are HD_PLACED_DEVICES
 *    together; each with those of its ranks at least.
 *
 * Two zones of equal size and an even number of ranks: no neighbours are in one zone; so a lost zone takes no
 * stage together with its shadow, and with two pipelines no stage at all.
 *
 * Pure; what it needs lies in the arena. */
#ifndef HD_PROTOCOL_ZONES_H
#define HD_PROTOCOL_ZONES_H

#include "base/arena.h"
#include "protocol/ranks.h"

/* Of members [n]: how many ranks each can have, its zone, a number below `nzones`. */
struct hd_rank_zones { const uint32_t *nranks, *zone; uint32_t n, nzones; };

/* Numbers for names: equal names, equal numbers. Returns how many there are. */
uint32_t hd_zones_number(const char *const *name, uint32_t n, uint32_t *zone);
/* Of a view whose ranks hd_ranks_settle() has put at members. HD_E_NOMEM alone: nothing has changed. */
HD_MUST_USE enum hd_err hd_ranks_part(struct hd_view *view, const struct hd_rank_zones *zones,
	const struct hd_lacks *lacks, bool shadows, struct hd_arena *arena, struct hd_diag *diag);
/* Neighbours in the rings of a view's pipelines that are in one zone. */
uint32_t hd_ranks_together(const struct hd_view *view, const struct hd_rank_zones *zones);

#endif
