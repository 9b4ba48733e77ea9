/* Zero-bubble schedules of one chunk a rank (Qi et al. 2023): weights' gradients fill the bubble.
 * h1 keeps the memory of 1f1b, h2 takes up to 2p - 1 virtual nodes and ends without a bubble. */
#include "pipeline/schedule/kind.h"

static void h1_list(struct hd_emit *e)
{
	uint32_t w = hd_least(e->p - 1 - e->r, e->m), weights = 0;

	for (uint32_t i = 0; i < w; i++)
		hd_emit(e, HD_INS_F, e->r, i);
	for (uint32_t i = 0; i < e->m; i++) {
		bool steady = w + i < e->m;
		if (steady)
			hd_emit(e, HD_INS_F, e->r, w + i);
		hd_emit(e, HD_INS_I, e->r, i);
		if (!steady || i >= e->r)
			hd_emit(e, HD_INS_W, e->r, weights++);
	}
	while (weights < e->m)
		hd_emit(e, HD_INS_W, e->r, weights++);
}

static void h2_list(struct hd_emit *e)
{
	uint32_t forwards = hd_least(2 * (e->p - e->r) - 1, e->m), weights = 0;

	for (uint32_t i = 0; i < forwards; i++)
		hd_emit(e, HD_INS_F, e->r, i);
	for (uint32_t i = 0; i < e->m; i++) {
		hd_emit(e, HD_INS_I, e->r, i);
		if (i >= 2 * e->r)
			hd_emit(e, HD_INS_W, e->r, weights++);
		if (forwards < e->m)
			hd_emit(e, HD_INS_F, e->r, forwards++);
	}
	while (weights < e->m)
		hd_emit(e, HD_INS_W, e->r, weights++);
}

const struct hd_schedule_maker
	hd_make_zb_h1 = { HD_PLACE_MOD, true, hd_no_limits, h1_list, NULL },
	hd_make_zb_h2 = { HD_PLACE_MOD, true, hd_no_limits, h2_list, NULL };
