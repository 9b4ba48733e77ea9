/* tensor_time.h -- what the devices of a rank take together for one order of nodes, predicted.
 *
 * Devices run their lists (tensor.h): each waits for what it reads, so the time is that of the longest chain
 * of nodes and waits. Used by predictions.
 *
 * 1. A wait for a device of the same group ends `hop_ns` after the node is done, in one memory.
 * 2. A wait for another group ends when the parcels that the step needs (parcels.h) are here: a device sends
 *    them to a group one after another, each takes its own time from when its step is done and the one before
 *    it has left, and the link's `hop_ns` more until the wait ends. What one device sends to different groups
 *    does not share a link, nor does what different devices send.
 *
 * Everything lies in the arena. Pure. */
#ifndef HD_GRAPH_TENSOR_TIME_H
#define HD_GRAPH_TENSOR_TIME_H

#include "graph/parcels.h"

/* The link between the groups of a rank. */
struct hd_tensor_link {
	uint32_t ngroups;
	const struct hd_parcels *parcels;
	const double *parcel_ns;          /* [parcels->n] what each takes on its way */
	double hop_ns;                    /* from then until the wait ends */
};

/* What waits cost: until a thread goes on that another one wakes; and how late a device goes on that
 * sleeps in place of computing, once a step of its list in which a node takes time. 0: it computes. */
struct hd_tensor_wakes { double hop_ns, late_ns; };

/* What the lists of t devices take when a node takes ns[node]. `link` NULL: all are of one group. */
HD_MUST_USE enum hd_err hd_tensor_time(double *took_ns, const struct hd_tensor_list *list, uint32_t t,
	const double *ns, struct hd_tensor_wakes wakes, const struct hd_tensor_link *link,
	struct hd_arena *arena, struct hd_diag *diag);

#endif
