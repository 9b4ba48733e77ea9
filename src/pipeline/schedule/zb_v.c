/* Two chunks a rank placed like a V, without a bubble in the memory of 1f1b (Qi et al. 2024).
 *
 * Written for n >= 2p - 1 virtual nodes; of fewer, the instructions of the missing ones are left out. */
#include "pipeline/schedule/kind.h"

/* How many of each were emitted: of chunk a (down) and z (up). */
struct counts { uint32_t fa, fz, ia, iz, wa, wz; };

static void put(struct hd_emit *e, uint8_t op, uint32_t stage, uint32_t *next)
{
	uint32_t i = (*next)++;

	if (i < e->m)
		hd_emit(e, op, stage, i);
}

static void list(struct hd_emit *e)
{
	uint32_t a = hd_v_down(e), z = hd_v_up(e), n = e->m < 2 * e->p - 1 ? 2 * e->p - 1 : e->m;
	struct counts c = { 0 };

	for (uint32_t k = 0; k < 2 * (e->p - e->r) - 1; k++)
		put(e, HD_INS_F, a, &c.fa);
	for (uint32_t k = 0; k < e->r; k++) {
		put(e, HD_INS_F, z, &c.fz);
		put(e, HD_INS_F, a, &c.fa);
	}
	for (uint32_t k = 0; k < e->p - e->r; k++) {
		put(e, HD_INS_F, z, &c.fz);
		put(e, HD_INS_I, z, &c.iz);
		put(e, HD_INS_W, z, &c.wz);
	}
	while (c.fz < c.fa || c.fa < n) {
		if (c.fa < n)
			put(e, HD_INS_F, a, &c.fa);
		put(e, HD_INS_I, a, &c.ia);
		put(e, HD_INS_W, a, &c.wa);
		put(e, HD_INS_F, z, &c.fz);
		put(e, HD_INS_I, z, &c.iz);
		put(e, HD_INS_W, z, &c.wz);
	}
	for (uint32_t k = 0; k < e->r; k++) {
		put(e, HD_INS_I, a, &c.ia);
		put(e, HD_INS_I, z, &c.iz);
	}
	for (uint32_t k = 0; k < e->p - e->r; k++) {
		put(e, HD_INS_I, a, &c.ia);
		put(e, HD_INS_W, a, &c.wa);
	}
	while (c.wz < n)
		put(e, HD_INS_W, z, &c.wz);
	while (c.wa < n)
		put(e, HD_INS_W, a, &c.wa);
}

const struct hd_schedule_maker hd_make_zb_v = { HD_PLACE_V, true, hd_no_limits, list, NULL };
