/* model.h -- what a model's steps take on pipelines of spot machines, and what both cost: a table, from JSON.
 *
 *	{"name": "BERT", "stages": 12, "batch": 264, "local_ms": 20000, "step_ms": [4310, 2390, 1805, 1450],
 *	 "on_demand": {"nodes": 20, "step_ms": 2510}, "wanted": 48}
 *
 * 1. step_ms[D - 1] is a step of D pipelines; there are never more pipelines than entries.
 * 2. May be left out: `wanted` (machines taken at once; all that come), `usd_h` and `on_demand.usd_h`
 *    (dollars per machine and hour; 0.91 and 3.06, what p3.2xlarge cost in 2021), `redundant` and `bubble`
 *    (shares of a step's device time, for the ledger; 0); times: `boot_ms` of a machine (45,000),
 *    `rendezvous_ms` (30,000), `save_ms` of a checkpoint (10,000) and `reload_ms` of it (30,000), `pause_ms`
 *    of a step in which others take over what a lost device did (0), `end_ms` after which nothing is played
 *    (40,000,000).
 * 3. `announced` (0) is the share of the machines that have notice, `lead_ms` (0; at most 150,000) before
 *    they go, as far as they were there: of the machines in the order of their addition number i, counted
 *    from 0, where floor((i + 1) share) is more than floor(i share).
 * 4. A member that is none of these is refused.
 *
 * Pure; the name lies in the arena. */
#ifndef HD_SPOT_MODEL_H
#define HD_SPOT_MODEL_H

#include "base/json.h"

enum { HD_SPOT_PIPELINES = 256, HD_SPOT_STAGES = 4096, HD_SPOT_PPM = 1000000 };
/* of rule 2 */
enum { HD_SPOT_BOOT_MS = 45000, HD_SPOT_RENDEZVOUS_MS = 30000, HD_SPOT_SAVE_MS = 10000,
	HD_SPOT_RELOAD_MS = 30000, HD_SPOT_END_MS = 40000000 };

struct hd_spot_model {
	const char *name;
	uint32_t stages, npipelines, wanted;      /* wanted 0: all */
	int64_t batch, local_ms, step_ms[HD_SPOT_PIPELINES];
	int64_t boot_ms, rendezvous_ms, save_ms, reload_ms, pause_ms, end_ms;
	int64_t nano_usd_h;
	uint32_t redundant_ppm, bubble_ppm;
	uint32_t announced_ppm;                   /* rule 3 */
	int64_t lead_ms;
	struct { uint32_t nodes; int64_t step_ms, nano_usd_h; } on_demand;
};

HD_MUST_USE enum hd_err hd_spot_model_read(struct hd_spot_model *model, const struct hd_json *json,
	struct hd_diag *diag);
bool hd_spot_model_announces(const struct hd_spot_model *model, uint32_t node);     /* rule 3 */
/* samples per dollar of the machines that are not taken away */
double hd_spot_model_on_demand(const struct hd_spot_model *model);

#endif
