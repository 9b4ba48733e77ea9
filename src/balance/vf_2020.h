/* vf_2020.h -- VirtualFlow's own rule for uneven devices, to compare with (solver.h is ours).
 *
 * A. Or, H. Zhang, M. J. Freedman, "VirtualFlow" (arXiv 2009.09523): devices of type i run v_i virtual nodes
 * of b_i samples each, with b_i one of the profiled batches (powers of two and 1.5 times those), so that sum
 * n_i v_i b_i = B and
 *
 *	max_i v_i t_i(b_i)  +  C
 *
 * is least; C is one constant, what a step took beyond computing. The loss of a device is weighted by v_i b_i
 * / B. If the best plan of one type is not slower, that is taken. Since samples of a virtual node depend on
 * the device here, so do the bits: it is a rule for the simulator, never for a run.
 *
 * Ties: fewer virtual nodes, then lower types get more samples. Pure; scratch comes from the arena. */
#ifndef HD_BALANCE_VF_2020_H
#define HD_BALANCE_VF_2020_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

enum { HD_VF_TYPES = 8, HD_VF_BATCHES = 64, HD_VF_BATCH_MAX = 1 << 15 };

struct hd_vf_time { uint32_t batch; int64_t ps; };
struct hd_vf_type {
	uint32_t ndevices;
	const struct hd_vf_time *time; uint32_t ntimes;         /* batches that fit, rising */
	int64_t exchange_ps;              /* C of devices of this type alone */
};
struct hd_vf_share { uint32_t vns, batch; };     /* of each device of a type; 0, 0: unused */
struct hd_vf_plan { struct hd_vf_share share[HD_VF_TYPES]; int64_t step_ps; bool mixed; };

/* exchange_ps: C of several types together. HD_E_INVAL: no plan has B samples, or nonsense. For tests: the
 * published rule beside ours. */
HD_MUST_USE enum hd_err hd_vf_2020(struct hd_vf_plan *plan, const struct hd_vf_type *type, uint32_t ntypes,
	uint32_t batch, int64_t exchange_ps,
	struct hd_arena *arena, struct hd_diag *diag);

#endif
