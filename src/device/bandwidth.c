#include "device/peak.h"

#include <string.h>

#include "sys/memory.h"

enum { TRIALS = 5 };

double hd_core_bandwidth(struct hd_clock *clock)
{
	struct hd_memory from = { 0 }, to = { 0 };
	struct hd_diag diag = { "" };
	double best = 0;
	enum hd_err err = hd_memory_take(HD_BANDWIDTH_BYTES, HD_MEMORY_TOUCH, &from, &diag);

	if (!err)
		err = hd_memory_take(HD_BANDWIDTH_BYTES, HD_MEMORY_TOUCH, &to, &diag);
	for (int trial = 0; trial < TRIALS && !err; trial++) {
		memset(from.at, trial + 1, HD_BANDWIDTH_BYTES);      /* zero pages may all be one */
		int64_t began_ns = hd_clock_now_ns(clock);
		memcpy(to.at, from.at, HD_BANDWIDTH_BYTES);
		volatile uint8_t kept = ((uint8_t *)to.at)[HD_BANDWIDTH_BYTES - 1];
		(void)kept;
		int64_t took_ns = hd_clock_now_ns(clock) - began_ns;
		double rate = 2.0 * HD_BANDWIDTH_BYTES / ((double)(took_ns > 0 ? took_ns : 1) * 1e-9);
		best = rate > best ? rate : best;
	}
	hd_memory_give(&from);
	hd_memory_give(&to);
	return best;
}
