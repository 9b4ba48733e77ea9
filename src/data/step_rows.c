#include "data/step_rows.h"

#include <assert.h>

#include "base/alloc.h"
#include "data/augment.h"
#include "data/mix.h"

enum { TOGETHER = 64 };                           /* rows that are asked of the set at once */

static uint64_t aligned(uint64_t bytes) { return (bytes + HD_ALIGN - 1) / HD_ALIGN * HD_ALIGN; }

static uint64_t scratch_bytes(const struct hd_dataset *set)
{
	return aligned(hd_augment_scratch(set->augment, &set->field[0]) * sizeof(float));
}

/* First the working memory of transforms, then the fields of the row before the first. */
uint64_t hd_step_spare_bytes(const struct hd_dataset *set)
{
	uint64_t bytes = scratch_bytes(set);

	for (uint32_t f = 0; f < set->nfields && hd_mix_any(set); f++)
		bytes += aligned(set->field[f].sample_bytes);
	return bytes;
}

static void take_before(const struct hd_step_rows *r, void *before[HD_MAX_FIELDS])
{
	uint8_t *at = r->spare + scratch_bytes(r->set);

	for (uint32_t f = 0; f < r->set->nfields; f++) {
		before[f] = at;
		at += aligned(r->set->field[f].sample_bytes);
	}
}

/* Ask `i`: of row first + i; of a step that is mixed the one behind all is the row before the first. */
static void make_ask(const struct hd_step_rows *r, uint64_t i, void *const *before, struct hd_ask *ask)
{
	const uint64_t n = hd_sampler_rows(r->sampler, r->step), count = r->end - r->first;
	const uint64_t row = i < count ? r->first + i : (r->first + n - 1) % n;

	ask->index = hd_sampler_at(r->sampler, r->step, row);
	ask->epoch = hd_sampler_epoch_at(r->sampler, r->step, row);
	ask->scratch = (float *)r->spare;
	for (uint32_t f = 0; f < r->set->nfields; f++)
		ask->out[f] = i < count ? (uint8_t *)r->out[f] + i * r->set->field[f].sample_bytes :
			before[f];
	if (r->name && i < count)
		r->name[i] = (struct hd_sample){ ask->epoch, ask->index };
}

enum hd_err hd_step_rows_read(const struct hd_step_rows *r, struct hd_diag *diag)
{
	const uint64_t count = r->end - r->first, all = count + (count && hd_mix_any(r->set));
	void *before[HD_MAX_FIELDS] = { NULL };
	struct hd_ask ask[TOGETHER];
	struct hd_mixing mixing;
	enum hd_err err = HD_OK;

	assert(r->first <= r->end && (r->spare || !hd_step_spare_bytes(r->set)));
	if (all > count)
		take_before(r, before);
	for (uint64_t i = 0, n = 0; i < all && !err; i++) {
		make_ask(r, i, before, &ask[n++]);
		if (n < TOGETHER && i + 1 < all)
			continue;
		err = hd_dataset_read_many(r->set, r->split, ask, (uint32_t)n, r->ahead, diag);
		n = 0;
	}
	if (err || all == count)
		return err;
	hd_mix_draw(r->set->augment, &r->set->field[0], r->step, &mixing);
	hd_mix_rows(&mixing, r->set, count, r->out, (const void *const *)before);
	return HD_OK;
}
