/* mix.h -- one sample of two: mixup and cutmix, of the samples of a step.
 *
 * As torchvision.transforms.v2.MixUp and CutMix: row r of the global batch is mixed with row r - 1, the first
 * with the last; all rows of a step in the same shares, drawn for each step.
 *
 * 1. Which rows meet is a function of the step alone: its rows are those of the sampler, whatever virtual
 *    node, device or worker has them. The reader of a virtual node also reads the row before it: nothing
 *    passes between devices, and reading costs a row for each virtual node.
 * 2. Draws are Philox, domain augment: (draw, place + 2^31, step low 32, step >> 32). Draw 0 of the place
 *    HD_AUGMENT_STEPS says which of several mixes it is. Of the mix at its place: draws from 0 on the share,
 *    draw HD_MIX_BOX the box. Only arithmetic that IEEE 754 rounds.
 * 3. mixup: share * x[r] + (1 - share) * x[r - 1], each product and the sum rounded. cutmix: a box of
 *    x[r - 1] stands in x[r]; the share of labels is that of the area which is left. Labels are f32, always
 *    the sum.
 *
 * Pure. */
#ifndef HD_DATA_MIX_H
#define HD_DATA_MIX_H

#include "data/augment.h"

enum { HD_MIX_BOX = 1 << 20 };            /* no draw of a share comes so far */

/* What happens in a step. share: of the row itself, in its labels; the box is of cutmix. */
struct hd_mixing { enum hd_mix kind; double share; struct hd_augment_part box; };

/* Does the set mix samples? Then "y" is of numbers, and there is nothing beside x and y. */
bool hd_mix_any(const struct hd_dataset *set);
/* HD_E_INVAL: what it mixes is nothing that can be mixed. */
HD_MUST_USE enum hd_err hd_mix_check(const struct hd_dataset *set, struct hd_diag *diag);

void hd_mix_draw(const struct hd_augment *augment, const struct hd_field *x, uint64_t step,
	struct hd_mixing *mixing);
/* Of rows that stand one behind the other; `before` is the one before the first, as it was read. From the
 * last to the first, so that each finds the one before it unmixed. */
void hd_mix_rows(const struct hd_mixing *mixing, const struct hd_dataset *set, uint64_t nrows,
	void *const *row,
	const void *const *before);

/* For tests: Beta(alpha, alpha) by draws of a step; u^e, e not below 0, u in (0, 1]. */
double hd_mix_beta(double alpha, uint64_t key, const uint32_t counter[4]);
double hd_mix_power(double u, double e);

#endif
