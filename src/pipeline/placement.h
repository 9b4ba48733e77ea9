/* placement.h -- which device holds which stage of which pipeline, where devices are lost in groups.
 *
 * Zones and launches fail together: devices of one zone, and those of a zone that were launched within a
 * minute (a *batch*). Shadows (redundancy.h) save a stage whose rank is lost, unless the rank before it in
 * the ring is lost too. So, in this order of weight:
 *
 *	1000  a pair of neighbours in the ring of a pipeline in one zone
 *	 100  such a pair in one batch
 *	  10  for each stage: zones that its D devices might be in, and are not
 *	   1  times the caller's cost of a pair of zones between which neighbours talk
 *
 * 1. Devices are dealt to pipelines zone by zone, the fullest zone first, ids ascending; what is more than D
 *    x P waits: of the fullest zone the highest ids.
 * 2. In pipeline k the fullest zone stands on stages 0, 2, 4, ..., then 1, 3, ... (of odd k on 1, 3, ...
 *    first, where P is even); the next follows. No neighbours share a zone if none has more than floor(P / 2)
 *    of the pipeline. Two zones as large, P even: none do.
 * 3. Then devices change places, the first pair in order of ids that lowers the weighted count, or keeps it
 *    and moves pairs of one zone to boundaries of smaller activations; at most n^2 times, n all devices.
 * 4. Equal arguments, equal answers.
 *
 * A change looks at all pairs of devices, and counts again what they are beside: hence the bound of devices.
 * Pure; results lie in the arena. */
#ifndef HD_PIPELINE_PLACEMENT_H
#define HD_PIPELINE_PLACEMENT_H

#include "base/arena.h"
#include "base/err.h"

#define HD_WAITS UINT32_MAX
enum { HD_BATCH_MS = 60000, HD_PLACED_DEVICES = 256 };

struct hd_placed_device { uint32_t zone; int64_t added_ms; };

struct hd_placement_ask {
	const struct hd_placed_device *device; uint32_t ndevices;
	uint32_t npipelines, nstages, nzones;
	const int64_t *out;                       /* [stages] bytes of the activations it sends; NULL:
		equal */
	const int64_t *cost;                      /* [zones * zones] of a pair; NULL: 0 */
	const uint32_t *from;                     /* [places] devices that stand there, in place of rules
		1 and 2; NULL: none do */
};

struct hd_placement {
	uint32_t *device;                         /* [pipelines * stages] */
	uint32_t *place;                          /* [devices] pipeline * stages + stage, or HD_WAITS */
	uint32_t same_zone, same_batch, missing_zones;    /* pairs, pairs, zones */
	int64_t weighted, shared_bytes;           /* of boundaries within a zone */
};

/* HD_E_INVAL: fewer devices than places, or a zone that does not exist. */
HD_MUST_USE enum hd_err hd_place_devices(struct hd_placement *out, const struct hd_placement_ask *ask,
	struct hd_arena *arena, struct hd_diag *diag);
/* Of devices that stand there, `device` [places]: all but rule 3. */
HD_MUST_USE enum hd_err hd_judge_placement(struct hd_placement *out, const struct hd_placement_ask *ask,
	const uint32_t *device, struct hd_arena *arena, struct hd_diag *diag);

#endif
