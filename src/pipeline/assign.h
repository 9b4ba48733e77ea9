/* assign.h -- which device takes which place of a new plan, so that the fewest bytes move.
 *
 * When membership changes, a place (stage p of pipeline d) needs the state of its layers: parameters and
 * optimizer slots. A device that holds some of them already, as its stage or as its shadow, receives the rest
 * alone. Cuts may change with the plan: state is keyed by layer, not by stage.
 *
 * 1. The cost of (place, device) are the bytes of the place's layers that the device does not hold, and the
 *    caller's penalty (placement.h) for it there. The sum over all places is the least that there is.
 * 2. Of assignments as cheap: the first place has the lowest device, then the second, ...
 * 3. Devices beyond the places wait.
 *
 * Cubic in devices (Kuhn, Munkres; with potentials). Pure; results lie in the arena. */
#ifndef HD_PIPELINE_ASSIGN_H
#define HD_PIPELINE_ASSIGN_H

#include "base/arena.h"
#include "base/err.h"

enum { HD_ASSIGNED_DEVICES = 1024 };

struct hd_layer_range { uint32_t first, end; };           /* first == end: none */
struct hd_device_state { struct hd_layer_range own, shadow; };

struct hd_assign_ask {
	const struct hd_device_state *device; uint32_t ndevices;
	const struct hd_layer_range *place; uint32_t nplaces;
	const int64_t *bytes; uint32_t nlayers;   /* of each layer's state */
	const int64_t *penalty;                   /* [places * devices], 0 or more; NULL: 0 */
};

struct hd_assignment {
	uint32_t *device;                         /* [places] */
	int64_t bytes, penalty;                   /* that move; of the whole */
};

/* HD_E_INVAL: fewer devices than places, layers that do not exist, negative costs, or more than 2^51 bytes.
 * */
HD_MUST_USE enum hd_err hd_assign_devices(struct hd_assignment *out, const struct hd_assign_ask *ask,
	struct hd_arena *arena, struct hd_diag *diag);

#endif
