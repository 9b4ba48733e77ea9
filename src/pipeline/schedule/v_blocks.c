/* V-half and V-min (Qi et al. 2024): a building block of six slots, repeated for each virtual node.
 *
 * A block gives each rank four slots: forward of chunk a and z, input gradient of z and a. Weights'
 * gradients take the slots that stay empty, oldest first. The order is the schedule; slots are no times. */
#include "pipeline/schedule/kind.h"

enum { SLOTS = 6, KINDS = 4 };

struct v_slot { uint8_t op; uint16_t stage; uint32_t vn; };

static void emit_slots(struct hd_emit *e, const uint32_t offset[KINDS])
{
	const uint32_t a = hd_v_down(e), z = hd_v_up(e);
	const struct v_slot kind[KINDS] = { { HD_INS_F, (uint16_t)a, 0 }, { HD_INS_F, (uint16_t)z, 0 },
		{ HD_INS_I, (uint16_t)z, 0 }, { HD_INS_I, (uint16_t)a, 0 } };
	/* pending: where the oldest I without its W stands in the list */
	uint32_t last = 0, ran = 0, pending = 0;

	for (uint32_t k = 0; k < KINDS; k++)
		last = offset[k] > last ? offset[k] : last;
	last += SLOTS * (e->m - 1);
	for (uint32_t t = 0; t <= last || ran; t++) {
		uint32_t k = 0;
		while (t <= last && k < KINDS && (t < offset[k] || (t - offset[k]) % SLOTS ||
			(t - offset[k]) / SLOTS >= e->m))
			k++;
		if (t <= last && k < KINDS) {
			hd_emit(e, kind[k].op, kind[k].stage, (t - offset[k]) / SLOTS);
			ran += kind[k].op == HD_INS_I;
		} else if (ran) {
			while (e->list->at[pending].op != HD_INS_I)
				pending++;
			const struct hd_ins *input = &e->list->at[pending++];
			hd_emit(e, HD_INS_W, input->stage, input->vn);
			ran--;
		}
	}
}

static void min_list(struct hd_emit *e)
{
	const uint32_t p = e->p, r = e->r, x = p % 3 ? 0 : 2;

	emit_slots(e, (const uint32_t[KINDS]){ r, 2 * p - 1 - r, 2 * p + x + r, 4 * p + x - 1 - r });
}

static void half_list(struct hd_emit *e)
{
	const uint32_t p = e->p, r = e->r, x = p % 2 ? 0 : 3;

	emit_slots(e, (const uint32_t[KINDS]){ 2 * r, 3 * p - 2 - r, 3 * p + x - 1 + 2 * r,
		6 * p + x - 2 - r });
}

const struct hd_schedule_maker
	hd_make_v_half = { HD_PLACE_V, true, hd_no_limits, half_list, NULL },
	hd_make_v_min  = { HD_PLACE_V, true, hd_no_limits, min_list, NULL };
