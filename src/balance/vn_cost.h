/* vn_cost.h -- how long a device of one type takes for v virtual nodes of a step, and in which waves it runs
 * them.
 *
 * Made of what was measured (or counted) of waves; read by the solver, which shares virtual nodes out, and by
 * drift, which corrects it.
 *
 * 1. cost(0) = 0, cost(v) = c0 + f(v); f(v) = least over waves w that fit the memory of time(w) + f(v - w): a
 *    wave may run short, so cost never falls. Of equal waves the larger.
 * 2. Waves run from the largest to the smallest: back(v) is the backward time of the smallest, behind which
 *    the exchange of gradients hides.
 * 3. If not even the smallest wave fits, every v > 0 is HD_VN_NEVER.
 * 4. Times are whole picoseconds, c0 and V times the longest wave together at most HD_VN_PS_MAX.
 *
 * Arrays lie in the arena given. Pure. */
#ifndef HD_BALANCE_VN_COST_H
#define HD_BALANCE_VN_COST_H

#include "base/arena.h"
#include "base/err.h"
#include "plan/tree.h"

#define HD_VN_NEVER INT64_MAX
#define HD_VN_PS_MAX (INT64_C(1) << 60)            /* two weeks */
enum { HD_VN_WAVES = 32 };

struct hd_wave_time {
	uint32_t vns;                     /* how many virtual nodes at once; ascending, the first is 1 */
	int64_t ps, back_ps;              /* all of it; of that, backward */
	int64_t bytes;                    /* peak memory of a device that runs it */
};

struct hd_vn_profile {
	const char *type;
	int64_t c0_ps;                    /* once a step: optimizer, folds */
	int64_t limit_bytes;              /* memory of the device; 0: none is known */
	const struct hd_wave_time *wave; uint32_t nwaves;
};

struct hd_vn_cost {
	const char *type;
	uint32_t nvns;
	int64_t *ps, *back_ps;            /* [nvns + 1] */
	/* [nvns + 1] size of one of its waves; what is left is that of v - wave */
	uint32_t *wave;
	int64_t needs_bytes, limit_bytes; /* of the smallest wave */
};

HD_MUST_USE enum hd_err hd_vn_cost_make(struct hd_vn_cost *cost, const struct hd_vn_profile *profile,
	uint32_t nvns, struct hd_arena *arena,
	struct hd_diag *diag);
/* Waves of v virtual nodes in the order in which they run; how many there are. Room for v. For tests. */
uint32_t hd_vn_cost_waves(const struct hd_vn_cost *cost, uint32_t v, uint32_t *size);
/* The most virtual nodes that are done by tau. */
uint32_t hd_vn_cost_most(const struct hd_vn_cost *cost, int64_t tau_ps);

#endif
