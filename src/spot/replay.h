/* replay.h -- a trace of machines, played against a model: what training would have reached and cost.
 *
 * Time is whole milliseconds. At equal times: a machine is added, removed, ready; a rendezvous ends, a step
 * ends; then the order of the trace.
 *
 * 1. A machine boots HD_SPOT_BOOT_MS, then it is ready.
 * 2. A rendezvous takes HD_SPOT_GLOBAL_MS when a machine becomes ready while training stands, and when a loss
 *    cannot be absorbed; the model's local_ms when a rule of spot/reconfigure.h asks for it at a commit. The
 *    loss of a ready machine during it begins it again. At its end the ready machines, in the order of their
 *    addition, take the places of D pipelines row by row; the rest wait. D = 0: training stands until another
 *    machine is ready.
 * 3. A lost device of one stage whose ring predecessor lives and is not doubled: the predecessor is doubled.
 *    What is left of the step then takes half as long again (rounded down), and so do the next steps until a
 *    rendezvous; once, however many are doubled. Any other loss of a placed device ends the step, lost:
 *    level 2. The loss of a machine that boots or waits changes nothing else.
 * 4. What happens after HD_SPOT_END_MS does not happen. A step that ends just then counts.
 * 5. Throughput is over the time from the begin of the first step to the end of the last; dollars per
 *    hour are those of the mean number of machines from 0 to the last event. Without a step both values
 *    are 0.
 *
 * Pure. */
#ifndef HD_SPOT_REPLAY_H
#define HD_SPOT_REPLAY_H

#include "spot/ledger.h"
#include "spot/model.h"
#include "spot/reconfigure.h"
#include "spot/trace.h"

enum { HD_SPOT_BOOT_MS = 45000, HD_SPOT_GLOBAL_MS = 30000, HD_SPOT_END_MS = 40000000 };

struct hd_spot_replay {
	uint64_t steps, removals, level2, rendezvous, absorbed;
	uint64_t asked[HD_NRECONFIGURES];         /* rendezvous by the rule that asked for them */
	int64_t first_ms, last_ms, end_ms;        /* begin of the first step, end of the last, last event */
	struct hd_spot_ledger ledger;
	struct hd_ledger_sum paid;
	double samples_per_s, usd_per_h, value, on_demand, ratio;     /* values: samples per dollar */
};

HD_MUST_USE enum hd_err hd_spot_replay(struct hd_spot_replay *out, const struct hd_spot_trace *trace,
	const struct hd_spot_model *model, struct hd_arena *arena, struct hd_diag *diag);

#endif
