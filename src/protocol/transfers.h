/* transfers.h -- the transfer table of an epoch: which messages a step's exchange may send, each a row. The
 * row's number is the id of the transfer: in frames, in the hub's posts, in the trace (ADR 3). Room plan says
 * what a row holds (plan/xfer.h); its rows follow from view and exchange, so they are derived here.
 *
 * Rows stand in blocks, one a kind, in this order; of a block's indices the last runs fastest:
 *
 *	kind                                 indices                     in jobs with
 *	PARTIAL                              from, ordinal, run          -
 *	SUM                                  bucket, from, to            -
 *	NORM                                 bucket, from, to            state of which members hold parts
 *	PARAMETERS, DIGEST                   bucket, from, to            sharded state
 *	RATIO                                bucket, from, to            state by stages, of whole tensors
 *	METRICS                              virtual node, from, to      -
 *	TABLE                                from, to                    -
 *	ACTIVATIONS, GRADIENTS               stage, virtual node         several stages
 *	MOMENTS                              sync, from, to              norms over the global batch
 *	SHARDS                               stage, virtual node, number stages that several workers share
 *
 * `from` and `to` are indices among the members of the view. A partial sum goes to the owner of its bucket;
 * its ordinal is that of view.h. Runs are those of layout.h: the buckets, then their pieces, each a row of
 * its own. Of mail between stages (ACTIVATIONS, GRADIENTS, SHARDS) the stage is the receiver's; from where it
 * comes is the plan's, so its rows name no members. Shadows of stages (engine/post.h, rule 6) are stages
 * behind the others. Mail of all kinds (hd_xfer_is_mail()) has the last blocks.
 *
 * 1. The numbering is a function of how many members, virtual nodes and runs there are, and whether state
 *    is sharded. It holds for the whole epoch: members that are in different steps, or whose link comes up
 *    again in another step than it was opened in, number alike.
 * 2. Both directions are arithmetic: nothing is stored per row. A row from a member to itself names no
 *    transfer.
 * 3. hd_transfers_between() names the rows that a step can use, but for mail: those are the plan's. The
 *    ends of a channel may be in different steps and then name different rows; those that both name have
 *    one meaning.
 *    With `pairs` (exchange.h, rule 11) a member's partial sum to its parent is a row beside those to the
 *    owner: the last ordinal. So steps with and without pairs may be of one epoch.
 * 4. Class: all are planned. Priority: 0 for what all wait for (NORM, RATIO, METRICS, TABLE). Then, as was
 *    decided (plan/comm.h) or else: partial sums, then what their owners make of them, so that no owner waits
 *    for a part while another gets whole sums; of each the last bucket first, as backward passes make them.
 *
 * Ownership: a plain value; the layout and the members' ids are borrowed. Pure: nothing allocates. */
#ifndef HD_PROTOCOL_TRANSFERS_H
#define HD_PROTOCOL_TRANSFERS_H

#include <stdint.h>

#include "base/err.h"
#include "graph/layout.h"
#include "plan/comm.h"
#include "plan/xfer.h"
#include "protocol/exchange.h"
#include "protocol/passes.h"

enum { HD_TRANSFER_BLOCKS = 12, HD_TRANSFER_STAGES = 64 };

struct hd_transfers_spec {
	uint32_t nmembers, nvns, nbuckets, copies;        /* copies 0: replicated state */
	const uint32_t *member;           /* borrowed: [nmembers] worker ids; NULL: they are the indices */
	/* borrowed: what buckets hold; NULL: a vector of `floats`, in full buckets */
	const struct hd_layout *layout;
	uint64_t floats;
	uint64_t metrics_bytes, table_bytes;              /* of one virtual node's message; of all in one */
	uint64_t digest_bytes;            /* of one segment; 0: there are no slots */
	uint32_t nstages;                 /* at most HD_TRANSFER_STAGES; 0 and 1: whole models */
	uint32_t nshadows;                /* stages behind them: as many shadows, or 0 */
	uint32_t nparcels;                /* numbers of SHARDS of a stage and virtual node (engine/dist.h) */
	uint32_t nsyncs;                  /* of norms over the global batch (engine/lockstep.h) */
	/* of state that is not sharded: do members hold parts of it (stages)? */
	bool partial;
	bool tensors;                     /* with `partial`: of an optimizer that changes whole tensors */
	const uint32_t *owner;            /* borrowed: [nbuckets] of the holding; NULL: the even rule */
	bool pairs;                       /* of replicated state without stages; else it says nothing */
	const struct hd_comm *comm;       /* borrowed: rule 4; NULL: nothing is decided */
	/* sums have priority 0, partial sums follow from the first bucket on: of a vector that is there as a
	 * whole, whose owners take parts in this order */
	bool sums_first;
};

struct hd_transfers {
	struct hd_transfers_spec spec;
	uint32_t nruns;                   /* of the layout, else the buckets */
	uint32_t roots;                   /* partial sums of a run that one member may send to its owner */
	uint32_t ordinals;                /* as many, and with pairs one more, to its parent */
	/* row at which a block begins; the last: how many rows there are */
	uint32_t first[HD_TRANSFER_BLOCKS + 1];
};

/* What a row is. */
struct hd_xfer_name {
	enum hd_xfer_kind kind;
	uint32_t from, to;                /* members' indices; HD_NOBODY, both: mail between stages */
	/* bucket, run of a PARTIAL, virtual node, or sync; 0 of a TABLE; of mail between stages
	 * stage * nvns + virtual node, of SHARDS that times nparcels + the number */
	uint32_t number;
	uint32_t ordinal;                 /* of a PARTIAL; else 0 */
};

/* Of at most HD_MAX_MEMBERS, HD_MAX_VNS and HD_MAX_BUCKETS, at least 1 of each: ids fit 32 bits. */
void hd_transfers_init(struct hd_transfers *table, const struct hd_transfers_spec *spec);
static inline uint32_t hd_transfers_count(const struct hd_transfers *table)
{
	return table->first[HD_TRANSFER_BLOCKS];
}

/* The row of that name, which there must be. */
uint32_t hd_transfers_id(const struct hd_transfers *table, struct hd_xfer_name name);
/* HD_E_PROTOCOL: beyond the table, or from a member to itself; *name is as it was. */
HD_MUST_USE enum hd_err hd_transfers_name(const struct hd_transfers *table, uint32_t id,
	struct hd_xfer_name *name, struct hd_diag *diag);
/* By which it goes: enum hd_collective. */
uint8_t hd_transfers_primitive(const struct hd_transfers *table, const struct hd_xfer_name *name);
/* All of the row, with nothing predicted; of no mail. */
struct hd_xfer hd_transfers_row(const struct hd_transfers *table, const struct hd_xfer_name *name);
/* Rule 4, in that step: with an order that is drawn for each step it is not the row's. */
uint32_t hd_transfers_priority(const struct hd_transfers *table, const struct hd_xfer_name *name,
	uint64_t step);

/* Rows that go from one member to another in the step of `x` and in later ones of its view: rising ids into
 * id[], or, where `id` is NULL, their number alone. */
size_t hd_transfers_between(const struct hd_transfers *table, const struct hd_view *view,
	const struct hd_exchange *x, uint32_t from, uint32_t to, uint32_t *id);

#endif
