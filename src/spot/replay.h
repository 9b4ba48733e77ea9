/* replay.h -- a trace of machines, played against a model: what training would have reached and cost, by a
 * way through losses.
 *
 * Time is whole milliseconds. At equal times: a machine is added, removed, has notice, is ready; a rendezvous
 * ends, a step ends; then the order of the trace.
 *
 * 1. A machine boots the model's boot_ms, then it is ready.
 * 2. A rendezvous takes rendezvous_ms when a machine becomes ready while training stands, and when a loss
 *    cannot be absorbed; the model's local_ms when a rule of spot/reconfigure.h asks for it at a commit. The
 *    loss of a ready machine during it begins it again. At its end the ready machines, in the order of their
 *    addition, take the places of D pipelines row by row; the rest wait. D = 0: training stands until another
 *    machine is ready.
 * 3. Shadows: a lost device of one stage whose ring predecessor lives and is not doubled: the predecessor is
 *    doubled. What is left of the step then takes half as long again (rounded down), and so do the next
 *    steps until a rendezvous; once, however many are doubled. The step takes pause_ms more, too. Any other
 *    loss of a placed device ends the step, lost: level 2. The loss of a machine that boots or waits changes
 *    nothing else.
 * 4. Peers (reroute): a lost device whose stage another pipeline holds: of n placed devices of which k are
 *    lost what is left of the step takes (n - k + 1) / (n - k) of its time (rounded down), and pause_ms; the
 *    next steps n / (n - k) of theirs, until a rendezvous. Any other loss is beyond it.
 *    Spare pipelines (replica): `spares` of the pipelines, while there are more, do no part of the work.
 *    Losses in no more pipelines than these make the step pause_ms longer; any other loses it, and goes back
 *    to a checkpoint, if no pipeline holds the stage.
 * 5. Checkpoints, with `every`: after so many steps since the last one training stands for save_ms. A loss
 *    that peers cannot take, of checkpoints alone any of a placed device, then goes back to the last one:
 *    the steps since are lost (redo), and a rendezvous that has steps to go on with takes reload_ms more.
 *    With checkpoints alone a new plan with more pipelines is taken after one, by such a rendezvous, when
 *    nothing is lost by it. The loss of a placed device while one is written voids it.
 * 6. What happens after end_ms does not happen. A step that ends just then counts.
 * 7. A machine that has notice (model.h, rule 3) takes no place any more; that it is ready, or gone, changes
 *    nothing then. One that has a place is judged by lead.h: t_step is the rest of the step, or
 *    of the checkpoint that is written; another holds its state where rules 3 and 4 would take its loss; else
 *    local_ms moves it, of checkpoints alone a checkpoint of save_ms. Where that lasts it gives its place up
 *    at the next commit, by a new plan; with checkpoints alone one is written before that. Else it is lost at
 *    once, and waits until it goes.
 * 8. Throughput is over the time from the begin of the first step to the end of the last; dollars per
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
#include "spot/value.h"

/* CHECKPOINT, REROUTE, REPLICA, or one of the shadows, which are played alike; every 0: no checkpoint is
 * written. Level 2 of shadows loses the step alone, whatever is written. */
struct hd_spot_way { enum hd_spot_strategy strategy; uint32_t every, spares; };

struct hd_spot_replay {
	uint64_t steps, removals, level2, rendezvous, absorbed;
	uint64_t evacuated, given_up;             /* by notice: between two steps; lost at once */
	uint64_t saves, again;                    /* checkpoints written; steps that went back to one */
	uint64_t asked[HD_NRECONFIGURES];         /* rendezvous by the rule that asked for them */
	int64_t first_ms, last_ms, end_ms;        /* begin of the first step, end of the last, last event */
	struct hd_spot_ledger ledger;
	struct hd_ledger_sum paid;
	double samples_per_s, usd_per_h, value, on_demand, ratio;     /* values: samples per dollar */
};

HD_MUST_USE enum hd_err hd_spot_replay(struct hd_spot_replay *out, const struct hd_spot_trace *trace,
	const struct hd_spot_model *model, const struct hd_spot_way *way, struct hd_arena *arena,
	struct hd_diag *diag);
/* With checkpoints at the interval that is worth most of 1, 2, ... steps, each an eighth longer than the one
 * before; equal values: the shorter. `every`: that interval. */
HD_MUST_USE enum hd_err hd_spot_replay_best(struct hd_spot_replay *out, uint32_t *every,
	enum hd_spot_strategy strategy, const struct hd_spot_trace *trace, const struct hd_spot_model *model,
	struct hd_diag *diag);

#endif
