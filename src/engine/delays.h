/* delays.h -- the version map of a job: how many steps late each parameter is read (optim.update, ADR 101).
 *
 * Version t of a parameter is its value after t steps of the run. Step t reads version max(0, t - D), for
 * its forward and its backward pass, at every virtual node and wherever the parameter is read; its gradient,
 * of all virtual nodes, makes version t + 1 of version t. A step that is skipped, or empty, makes a version
 * that equals the one before. D depends on the parameter:
 *
 *   flush   0
 *   2bw     1                       PipeDream-2BW (Narayanan et al., ICML 2021): W(t+1) = W(t) - f'(W(t-1))
 *   stash   ceil((n - 1 - s) / V)   PipeDream (Narayanan et al., SOSP 2019), weight stashing
 *   vsync   ceil((n - 1) / V)       the same with vertical sync
 *
 * With batch.mode bounded or replay and batch.staleness S above 0 (fore.h) D is S, and a virtual node reads
 * one of the versions t - S to t, each of which is there.
 *
 * V: virtual nodes of a step; n: stages that the job declares (optim.cuts); s: the one that makes the
 * parameter's gradient. Stage s of n runs n - 1 - s virtual nodes ahead, so this is the least D with which
 * it never waits for an update of its own; with V = 1, a step that is one minibatch, it is PipeDream's n - 1
 * - s.
 *
 * 1. The map is a function of the job: not of devices, the plan, its stages or its order.
 * 2. Frozen parameters have D = 0.
 *
 * Everything lies in the arena. Pure. */
#ifndef HD_ENGINE_DELAYS_H
#define HD_ENGINE_DELAYS_H

#include "graph/ir.h"
#include "job/job.h"

enum { HD_MAX_DELAY = 15 };

struct hd_delays {
	uint32_t most;                    /* 0: nothing is late */
	bool differ;                      /* some parameter is less late than others */
	bool early;                       /* one that learns is not late, others are */
	uint8_t *of_param;                /* [nparams] */
	uint32_t nstages, *first;         /* that the job declares, as forward nodes; 0: it needs none */
};

/* `graph` has its gradient; `rows`: of a full virtual node. HD_E_INVAL: optim.cuts name no stages of it. */
HD_MUST_USE enum hd_err hd_delays_make(struct hd_delays *delays, const struct hd_job *job,
	const struct hd_graph *graph, uint64_t rows, struct hd_arena *arena, struct hd_diag *diag);

#endif
