/* repair.h -- how survivors finish a step after a loss: who computes the lost leaves again, who joins which chunk
 * now, who fetches which sum from whom.
 *
 * Made by whoever decides the view after a loss, from what every survivor says it has; read by the survivors, by the
 * checker's laws and by the simulator. Members are survivors, numbered 0..nmembers-1 in the order of their worker ids.
 *
 * 1. A chunk whose sum some member has is never joined again: whoever lacks the sum fetches it. So after somebody
 *    sealed the step, nothing is computed again.
 * 2. For every other chunk the tiles cover leaves 0..V-1 once: a tile is a name of the tree, and where its value
 *    comes from. From the top of the tree, the first name on the way down is the tile that somebody has (its owner, else
 *    the lowest member), or else of which one member will still fold all leaves, or else computes all again. A member
 *    that folds a set of leaves has the roots of that set (tree.h), so every tile is one of somebody's.
 * 3. Leaves are computed again only if some chunk needs them, and once, whatever the number of chunks.
 * 4. Lost leaves are split so that the latest predicted finish (rest + extra, of all members) is least: the least
 *    time that suffices, what is too much taken one by one from the latest (equal: the higher member); ascending
 *    runs of leaves go to ascending members.
 * 5. An owner that lives keeps its chunks. Chunks of a dead one go, in their order, to the first of the chunk's
 *    chain that lives; without chains to the member that joins the fewest (equal: the lower).
 * 6. A sum is fetched from the holder that so far serves the fewest chunks (equal: the lower).
 *
 * Equal arguments give equal bytes. Everything lies in the arena given. Pure. */
#ifndef HD_PLAN_REPAIR_H
#define HD_PLAN_REPAIR_H

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"
#include "plan/tree.h"

#define HD_REPAIR_NOBODY UINT32_MAX
enum { HD_REPAIR_MEMBERS = 4096, HD_REPAIR_COPIES = 8 };

struct hd_repair_member {
	int64_t rest_ps;                  /* until it has produced what it was already to produce */
	const int64_t *extra_ps;          /* [nvns + 1] time of 0, 1, ... virtual nodes more; [0] is 0; never falls */
};

struct hd_repair_held { struct hd_tnode node; uint32_t member; };        /* a canonical name whose value this member has */

/* Chunks of which all is known alike: consecutive, in ascending order, together all of them. */
struct hd_repair_group {
	uint32_t nchunks;
	uint32_t owner;                   /* who joins them, NOBODY: it is dead */
	const uint32_t *chain;            /* [ncopies] members in their order, NOBODY a dead one; NULL: replicated */
	const uint8_t *has_sum;           /* [nmembers] */
	const struct hd_repair_held *held; uint32_t nheld;
	const uint32_t *coming;           /* [nvns] who will still produce this leaf for these chunks, or NOBODY */
};

struct hd_repair_ask {
	uint32_t nvns, nmembers, ngroups, ncopies;
	const struct hd_repair_member *member;
	const struct hd_repair_group *group;
};

enum hd_repair_from { HD_REPAIR_HELD, HD_REPAIR_COMING, HD_REPAIR_AGAIN };
struct hd_repair_tile { struct hd_tnode node; uint32_t member; enum hd_repair_from from; };
struct hd_repair_again { uint32_t vn, member; };
struct hd_repair_fetch { uint32_t chunk, to, from; };

struct hd_repair {
	uint32_t nchunks, *owner;         /* [nchunks] who joins it; NOBODY: its sum is there */
	uint32_t nagain; struct hd_repair_again *again;         /* ascending vn */
	uint32_t *first_tile;             /* [ngroups + 1]; none of groups whose sum is there */
	struct hd_repair_tile *tile;      /* ascending leaves within a group */
	uint32_t nfetches; struct hd_repair_fetch *fetch;       /* by chunk, then by who fetches */
	int64_t finish_ps;                /* latest predicted finish of computing */
	bool state_lost; uint32_t lost_chunk;    /* no copy of its chain lives: only a checkpoint helps; nothing else is set then */
};

/* HD_E_INVAL: names that are not in the tree, members that do not exist, times that fall: a peer's words are checked here. */
HD_MUST_USE enum hd_err hd_repair_make(struct hd_repair *repair, const struct hd_repair_ask *ask, struct hd_arena *arena, struct hd_diag *diag);
void hd_repair_print(const struct hd_repair *repair, struct hd_text *text);      /* one line: what is done, for log and events */

#endif
