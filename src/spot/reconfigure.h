/* reconfigure.h -- when a run on spot machines takes a new plan: asked at every commit.
 *
 * The rules are tried in the order of the table; the first that holds decides. Losses that leave a stage
 * without a holder do not wait for a commit, nor does a notice that leaves no time for one (lead.h).
 *
 * Pure. */
#ifndef HD_SPOT_RECONFIGURE_H
#define HD_SPOT_RECONFIGURE_H

#include <stdint.h>

/*        id          name         when */
#define HD_RECONFIGURE_RULES(X) \
	X(GO_ON,     "go_on",     "none of the others holds")                                               \
	X(EVACUATE,  "evacuate",  "a device of the plan will be taken away, and that is known")             \
	X(REPLACE,   "replace",   "there are doubled devices, and as many wait")                            \
	X(REBALANCE, "rebalance", "of the active devices more are at risk than may be: two for each doubled one") \
	X(GROW,      "grow",      "the devices that are there make another pipeline, and one may be added")

enum hd_reconfigure {
#define X(id, name, about) HD_RECONFIGURE_##id,
	HD_RECONFIGURE_RULES(X)
#undef X
	HD_NRECONFIGURES
};
extern const char *const hd_reconfigure_names[HD_NRECONFIGURES];

enum { HD_RECONFIGURE_RISK_PPM = 50000 };         /* the usual risk: one active device in twenty */

struct hd_spot_standing {
	/* devices; a doubled one is active; one that waits and is known to go does not count */
	uint32_t active, waiting, doubled;
	uint32_t pipelines, most, stages;         /* most: pipelines that there may be */
	uint32_t risk_ppm;
	uint32_t leaving;                         /* active ones that are known to go */
};

enum hd_reconfigure hd_reconfigure(const struct hd_spot_standing *s);
/* pipelines that so many devices make: floor(devices / stages), at most `most` */
uint32_t hd_spot_pipelines(uint32_t devices, uint32_t stages, uint32_t most);

#endif
