/* market.h -- a run on machines of a market that is played (cloud.h): from the first machine to the end of
 * the script or of the job, and what it took.
 *
 * 1. The coordinator is a process of its own and no machine of the market; it starts no worker
 *    (workers.start: others). With fewer machines than a plan needs the run waits; where it gives up
 *    (workers.min_wait: checkpoint, exit 10), or all its machines had notice (exit 75), it is resumed when
 *    there is a machine again.
 * 2. An event waits for its time, for the step and the number of workers that it names, and where it says
 *    so for the run to give up; later ones wait for it. When the script is over, the run is stopped with a
 *    checkpoint. No machine at all: the newest checkpoint is where it ended.
 * 3. A minute without a committed step while there are machines is a hang (harness.h).
 * 4. What is measured: of each number of workers the time between two commits in a row, without repairs, and
 *    from the start of a machine's process until it is a member.
 *
 * Ownership: init/finish; it does not move; what it is given is borrowed. Threads: one. */
#ifndef HD_CHAOS_MARKET_H
#define HD_CHAOS_MARKET_H

#include "spot/measured.h"
#include "chaos/cloud.h"
#include "chaos/harness.h"

struct hd_market {
	struct hd_harness *harness;
	struct hd_cloud cloud;
	const struct hd_machine_script *script;
	size_t next;
	int64_t began_ns, played_ns;
	uint64_t boot_ms, boots;          /* measured */
};

HD_MUST_USE enum hd_err hd_market_play(struct hd_market *market, struct hd_diag *diag);
/* From the lines of the run's metrics; of `per` workers one pipeline. */
HD_MUST_USE enum hd_err hd_market_measure(const struct hd_market *market, uint32_t per,
	struct hd_spot_measured *measured, struct hd_diag *diag);

#endif
