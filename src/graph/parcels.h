/* parcels.h -- what the groups of a rank send one another while they run one list of nodes together.
 *
 * A *parcel* is what a device has made in a step of its list (tensor.h) and one other group has, too
 * (spread.h). It leaves when the step is done. Used by programs and by the engine.
 *
 * 1. Parcels of a list stand by device, then step, then group: the order in which a device sends them.
 * 2. A step *needs* the parcels with what its nodes read of other groups. All of them were sent before its
 *    device can begin it by `after` of the step, so to wait for them at its beginning waits for nothing that
 *    waits for it.
 * 3. A value of another group may be written to the memory of this one as soon as it comes, whatever the
 *    devices of the group run at that time: its maker began after all that used the bytes before were done,
 *    here, too (device/memplan.h, rule 4). For that the memory of a group is planned with the clocks of all
 *    devices of the rank.
 *
 * Everything lies in the arena. Pure. */
#ifndef HD_GRAPH_PARCELS_H
#define HD_GRAPH_PARCELS_H

#include "graph/spread.h"

struct hd_parcel {
	uint8_t device, to;               /* the sender; the group */
	uint32_t step;                    /* of the device's list */
	uint32_t *value, n;               /* no views */
};

struct hd_parcel_needs { uint32_t *parcel, n; };

struct hd_parcels {
	struct hd_parcel *at; uint32_t n;
	/* [t] of each device, [its first parcel of a step ..]: first[nsteps + 1] */
	uint32_t **first;
	struct hd_parcel_needs **needs;   /* [t][nsteps] rule 2 */
};

/* Of the lists of one order of nodes: list[t]. `at` says which group has what, of a rank of t devices in
 * ngroups. */
HD_MUST_USE enum hd_err hd_parcels_make(struct hd_parcels *parcels, const struct hd_graph *graph,
	const struct hd_spread_stage *at, const struct hd_tensor_list *list, uint32_t t, uint32_t ngroups,
	struct hd_arena *arena, struct hd_diag *diag);

#endif
