/* step_rows.h -- rows of a step of training as the model reads them: asked of the sampler, read, transformed,
 * mixed. The one way from (step, row) to bytes.
 *
 * Rows [first, end) of the step lie one behind the other in each field. Where the set transforms or mixes, it
 * takes working memory, `spare`, of hd_step_spare_bytes(), aligned to 64 bytes; what it holds is of no
 * matter.
 *
 * Pure, but for what the data set reads. */
#ifndef HD_DATA_STEP_ROWS_H
#define HD_DATA_STEP_ROWS_H

#include "data/dataset.h"
#include "data/sampler.h"

struct hd_sample { uint64_t epoch, index; };      /* of a data epoch, as the data set numbers it */

struct hd_step_rows {
	const struct hd_dataset *set; uint32_t split;
	const struct hd_sampler *sampler;
	uint64_t step, first, end;
	void *out[HD_MAX_FIELDS];         /* of row `first` */
	uint8_t *spare;
	struct hd_sample *name;           /* [end - first], which samples these are; NULL: not wanted */
	bool ahead;                       /* rows of a coming step (dataset.h) */
};

/* A multiple of 64; 0: none is needed. */
uint64_t hd_step_spare_bytes(const struct hd_dataset *set);
HD_MUST_USE enum hd_err hd_step_rows_read(const struct hd_step_rows *rows, struct hd_diag *diag);

#endif
