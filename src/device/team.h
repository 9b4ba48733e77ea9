/* team.h -- the threads of one device: a leader, which calls, and T-1 helpers, which take
 * tiles of the leader's call.
 *
 * grid.c gives each call of an op to its team; nothing else starts threads here.
 *
 * 1. Tiles are taken one by one from a shared counter: which thread computes which is left to
 *    chance, and since tiles never share an output (kernel.h) no bit depends on it.
 * 2. hd_team_run() returns when every tile is done; what the tiles wrote is visible.
 * 3. Between calls helpers look for work for a bounded time if `spin`, then sleep in
 *    the kernel. A team of one has no helpers and no barrier.
 * 4. Each thread checks its arithmetic (rounding, subnormals) after every job of tiles:
 *    foreign code that changed it is an error, not another result.
 *
 * Ownership: create() takes threads and scratch, destroy() joins and frees them.
 * Threads: run() and scratch() by the leader only; init is called on each helper
 * as it starts. No function allocates but create() and scratch(). */
#ifndef HD_DEVICE_TEAM_H
#define HD_DEVICE_TEAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct hd_team;

enum { HD_TEAM_CAP = 256 };               /* threads of one device: above any machine we know */

struct hd_team_spec {
	uint32_t nthreads;                /* the leader included */
	int first_core;                   /* the leader's; helpers are pinned to the next ones; -1: nowhere */
	bool spin;
	void (*init)(void);
};

/* The leader's own pinning is its starter's business. */
HD_MUST_USE enum hd_err hd_team_create(struct hd_team **team, const struct hd_team_spec *spec,
	struct hd_diag *diag);
void hd_team_destroy(struct hd_team *team);       /* takes NULL */

/* At least `bytes` of scratch for every thread; grows only. */
HD_MUST_USE enum hd_err hd_team_scratch(struct hd_team *team, size_t bytes, struct hd_diag *diag);

size_t hd_team_scratch_bytes(const struct hd_team *team);      /* of all threads */

/* tile(user, i, scratch of the thread) for every i < ntiles. `alone`: too little work to wake
 * a helper; the leader does all. false: a thread's arithmetic was changed (rule 4). */
HD_MUST_USE bool hd_team_run(struct hd_team *team, uint32_t ntiles, bool alone,
	void (*tile)(const void *user, uint32_t i, void *scratch), const void *user);

#endif
