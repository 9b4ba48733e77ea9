/* reorder_play.h -- the state of a simulated step, and its wire. Private to both.
 *
 * Pure. */
#ifndef HD_TIMELINE_ANALYZE_REORDER_PLAY_H
#define HD_TIMELINE_ANALYZE_REORDER_PLAY_H

#include "timeline/analyze/reorder_int.h"

enum { HD_TL_WAITS, HD_TL_GOES, HD_TL_DONE };     /* of a transfer */

/* Of a worker, in the step at hand. */
struct played_turn {
	/* when the pass is over, and the step; when the next one begins */
	double pass, end, open;
	double fore;                      /* of the next forward pass */
	double ahead;                     /* of it done before its step begins */
	double until;                     /* of the node at hand; never: it stands still */
	double node_ns, bring_ns;         /* of that: itself, and what its parameters take to make */
	uint32_t node;
	bool runs;                        /* the node; else the pass */
	uint32_t metrics;                 /* still to come */
	double table;                     /* when the last of them came */
};

/* A transfer may go; nmoved + b n + m: the sum of b is at m; behind those: a transfer has come. */
struct play_due { double t; uint32_t what; };

struct ends_play {
	const struct hd_tl_endings *e;
	const struct hd_tl_play *how;
	const struct hd_tl_ending *step;
	uint32_t n, nb, nmoved;
	double now, over;
	struct played_turn turn[HD_TL_MEMBERS];
	/* [nb * n] */
	struct played_bucket { uint32_t due, first, end; double came; bool here, made, parm, wanted, gets; }
		*at;
	double *off, *size;               /* [nb] */
	uint32_t *sends;                  /* transfers of sums by bucket and sender */
	uint32_t unmade;                  /* sums that are to be made */
	double *left, *unsent;            /* [nmoved] bytes that have not come, not gone */
	uint8_t *state;
	/* [n * n] of two workers: what is there to go, and chunks that are on their way */
	struct played_pair {
		uint32_t *at, n;
		struct played_chunk { uint32_t of; double bytes; } *way;
		uint32_t first, end;
		double under_way, to_come;        /* to_come: of the first chunk */
	} *pair;
	struct play_due *heap; uint32_t nheap;
};

static inline struct played_bucket *hd_tl_bucket(struct ends_play *p, uint32_t b, uint32_t m)
{
	return &p->at[b * p->n + m];
}

static inline const struct hd_tl_moved *hd_tl_xfer(const struct ends_play *p, uint32_t i)
{
	return &p->step->moved[i];
}

/* By time, then by number. */
void hd_tl_due_push(struct ends_play *play, double t, uint32_t what);
struct play_due hd_tl_due_pop(struct ends_play *play);
/* A transfer is ready. Of its two workers the most urgent goes, in chunks, while the transport takes some. */
void hd_tl_may_go(struct ends_play *play, uint32_t moved);
/* The first chunk on its way is there, at the time of `play`. */
void hd_tl_chunk_came(struct ends_play *play, struct played_pair *pair);

#endif
