/* drawn_state.h -- states of a cluster that are drawn from a seed: what policies are timed on.
 *
 * 1. 26 kinds of jobs that like types differently, as measured tables have it; each job's rates are its own
 *    (with pairs those of its kind). A type has half as many devices as its part of the jobs, and 8.
 * 2. Jobs of 1, 2, 4 and 8 devices (7 : 1 : 1.5 : .5), with pairs of 1. Where `large` is set one job of so
 *    many is a gang of three fifths of a type.
 * 3. By Philox from (seed, number of the job, what): one job more or fewer changes no other.
 *
 * Pure; exp() and pow() are the machine's. Everything lies in the arena; names are static. */
#ifndef HD_CLUSTERSIM_DRAWN_STATE_H
#define HD_CLUSTERSIM_DRAWN_STATE_H

#include "scheduler/sched_policy.h"

enum { HD_DRAWN_KINDS = 26, HD_DRAWN_TYPES = 8 };

enum hd_drawn_jobs {
	HD_DRAWN_RIGID,
	HD_DRAWN_PAIRS,                   /* two may share a device */
	HD_DRAWN_ELASTIC,                 /* on 1 to 8 devices, or to 16 */
	HD_DRAWN_LEARNING,                /* elastic, of a batch that may change */
};

/* ntypes: at most HD_DRAWN_TYPES. large 0: no gangs. */
struct hd_drawn_setting { uint32_t njobs, ntypes; enum hd_drawn_jobs jobs; uint32_t large, seed; };
/* `state` may point to `table`: it stays where it is. */
struct hd_drawn_state { struct hd_sched_state state; struct hd_pair_table table; };

HD_MUST_USE enum hd_err hd_drawn_state_make(struct hd_drawn_state *drawn,
	const struct hd_drawn_setting *setting,
	struct hd_arena *arena, struct hd_diag *diag);

#endif
