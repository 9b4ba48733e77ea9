/* model.h -- what a model's steps take on pipelines of spot machines, and what both cost: a table, from JSON.
 *
 *	{"name": "BERT", "stages": 12, "batch": 264, "local_ms": 20000, "step_ms": [4310, 2390, 1805, 1450],
 *	 "on_demand": {"nodes": 20, "step_ms": 2510}, "wanted": 48}
 *
 * 1. step_ms[D - 1] is a step of D pipelines; there are never more pipelines than entries.
 * 2. May be left out: `wanted` (machines taken at once; all that come), `usd_h` and `on_demand.usd_h`
 *    (dollars per machine and hour; 0.91 and 3.06, what p3.2xlarge cost), `redundant` and `bubble` (shares of
 *    a step's device time, for the ledger; 0).
 * 3. A member that is none of these is refused.
 *
 * Pure; the name lies in the arena. */
#ifndef HD_SPOT_MODEL_H
#define HD_SPOT_MODEL_H

#include "base/json.h"

enum { HD_SPOT_PIPELINES = 256, HD_SPOT_STAGES = 4096, HD_SPOT_PPM = 1000000 };

struct hd_spot_model {
	const char *name;
	uint32_t stages, npipelines, wanted;      /* wanted 0: all */
	int64_t batch, local_ms, step_ms[HD_SPOT_PIPELINES];
	int64_t nano_usd_h;
	uint32_t redundant_ppm, bubble_ppm;
	struct { uint32_t nodes; int64_t step_ms, nano_usd_h; } on_demand;
};

HD_MUST_USE enum hd_err hd_spot_model_read(struct hd_spot_model *model, const struct hd_json *json,
	struct hd_diag *diag);
/* samples per dollar of the machines that are not taken away */
double hd_spot_model_on_demand(const struct hd_spot_model *model);

#endif
