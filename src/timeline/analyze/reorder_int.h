/* reorder_int.h -- the inside of reorder.h: what is read of a recording, and the simulation of it. Private to
 * the analyses. Times are ns; `n` workers are numbered by their rows in the timeline.
 *
 * Pure. */
#ifndef HD_TIMELINE_ANALYZE_REORDER_INT_H
#define HD_TIMELINE_ANALYZE_REORDER_INT_H

#include "timeline/analyze/reorder.h"

enum { HD_TL_MEMBERS = HD_TL_REORDER_WORKERS };

/* A transfer of a step. */
struct hd_tl_moved {
	/* as recorded, from the begin of all on; handed: its last byte, to the transport */
	double enqueued, handed, came;
	double bytes;
	uint32_t bucket, was, now;
	uint8_t kind, from, to;
};

/* Of a worker in a step, as recorded. */
struct hd_tl_turn {
	/* end of the step before, own begin, end of the pass, own end */
	double begin, open, pass, end;
	double ahead;                     /* of the next forward pass, done in this step */
	double between;                   /* of this one's, done before its begin */
	double fore;                      /* forward nodes before the first backward one, in this step */
	double brought;                   /* to make parameters of sums before the step ends */
	uint32_t nlanes;                  /* of devices, for means */
	bool backward;                    /* seen while it is read */
};

struct hd_tl_ending {
	uint64_t number;
	struct hd_tl_turn turn[HD_TL_MEMBERS];
	struct hd_tl_moved *moved; uint32_t nmoved, cap;
};

/* Why a sum goes: made of parts here, or passed on. */
enum { HD_TL_MADE, HD_TL_PASSED, HD_TL_WHYS };

struct hd_tl_endings {
	const struct hd_tl_order *order;
	uint32_t n, nsteps;
	uint32_t process[HD_TL_MEMBERS];
	struct hd_tl_ending *step;
	/* does a forward pass begin before a step ends; are sums made while a pass goes on; do parameters
	 * wait for norms */
	bool ahead, within, norms;
	double delay[HD_TL_MEMBERS][HD_TL_WHYS];  /* from when a sum may go until it is enqueued */
	double last[HD_TL_MEMBERS];       /* from when all is everywhere until the step ends, at least */
	double pause[HD_TL_MEMBERS];      /* from when it has ended everywhere until the next begins */
	double bring;                     /* ns a byte, to make parameters of a sum */
	double late, rate;                /* of a link: latency; bytes a ns of a port while it carries */
	double depth;                     /* bytes between two workers that are on their way */
};

HD_MUST_USE enum hd_err hd_tl_endings_read(struct hd_tl_endings *endings, const struct hd_tl_causes *causes,
	struct hd_tl_range *range, const struct hd_tl_order *order, struct hd_arena *arena,
	struct hd_diag *diag);

/* Of steps that are read: `within` and all behind it but `late`. HD_E_REFUSED: nothing is sent. */
HD_MUST_USE enum hd_err hd_tl_endings_habits(struct hd_tl_endings *endings, struct hd_arena *arena,
	struct hd_diag *diag);

struct hd_tl_play {
	double rate;                      /* bytes a ns */
	double compute;                   /* devices are so many times as fast */
	bool now;                         /* by the urgencies `now` */
};

/* *took: from the begin of the first step to the end of the last. HD_E_REFUSED: something never comes. */
HD_MUST_USE enum hd_err hd_tl_endings_play(const struct hd_tl_endings *endings, const struct hd_tl_play *how,
	double *took, struct hd_arena *arena, struct hd_diag *diag);

#endif
