/* history.h -- what the devices of each type did, over as long as the daemon has run.
 *
 * 1. At most HD_HISTORY samples, evenly apart: once there are so many, every other one is dropped, and the
 *    next ones are taken half as often. So a day costs what a minute does.
 * 2. A sample is what was at its time, not a mean.
 *
 * Pure: time is an argument and does not go back. A plain value; zeroed but for every_s, it is empty. */
#ifndef HD_DAEMON_HISTORY_H
#define HD_DAEMON_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

#include "scheduler/dispatch.h"

enum { HD_HISTORY = 512 };

struct hd_history_count { uint32_t busy, free, lost; };
struct hd_history {
	double every_s;                           /* at first; doubles */
	uint32_t n;
	struct hd_history_sample { double at_s; struct hd_history_count of[HD_DISPATCH_TYPES]; }
		sample[HD_HISTORY];
};

/* Whether the next sample is due. */
bool hd_history_due(const struct hd_history *history, double now_s);
/* The next sample, [ntypes]. */
void hd_history_add(struct hd_history *history, double now_s, const struct hd_history_count *of,
	uint32_t ntypes);

#endif
