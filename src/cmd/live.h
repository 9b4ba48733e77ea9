/* live.h -- what the verbs that speak to a run share: finding its coordinator and asking it.
 *
 * RUN is a run directory. Its coordinator answers on the socket in it (driver/control.h). While there is
 * none, but workers that will start one, or somebody who begins to be it, the next one is waited for, and
 * after 5 s that is told. */
#ifndef HD_CMD_LIVE_H
#define HD_CMD_LIVE_H

#include "driver/control.h"
#include "cmd/verbs.h"

/* `ask`: a JSON object with the member "do". The answer lies in the arena of the call.
 * HD_E_NOTFOUND: nobody coordinates this run, and nobody will. HD_E_PEERLOST: no coordinator came; or it
 * ended while a question was with it that must not be asked twice ("by"). */
HD_MUST_USE enum hd_err hd_live_ask(struct hd_cmd *cmd, const char *run, const char *ask,
	const struct hd_json **answer);

/* Where a run stands, as its coordinator tells it; texts lie in the answer. */
enum { HD_LIVE_WORKERS = 128 };
struct hd_live_worker {
	int64_t id, pid, devices, virtual_nodes, redone;
	const char *state, *address;
	/* its own last step; of one virtual node; 1: as the median worker */
	double step_ms, wait_ms, compute_ms, vn_ms, speed;
};
struct hd_live {
	/* state: starting, running, evaluating, waiting, stopping; plan_why: why the map is as it is */
	const char *name, *state, *why, *plan_why, *autoscale, *autoscale_why;
	int64_t step, steps, epoch, term, plan, members, virtual_nodes, unrecorded, copies, given_up;
	int64_t asked, target;                           /* local workers; with those of other machines */
	/* false: nobody is there, `state` says how it ended: done, stopped, failed, died, new; */
	/* unknown: on a machine whose locks are not seen here */
	bool goes_on;
	bool away;                                       /* on another machine: only its folder was read */
	/* exit code of one that ended, -1: not known; process of one without workers, 0: none */
	int64_t exit, alone;
	/* predicted: 0, the map was not made by a prediction */
	double loss, step_ms, wait_ms, detect_ms, predicted_ms;
	uint32_t nworkers;
	struct hd_live_worker worker[HD_LIVE_WORKERS];
};
HD_MUST_USE enum hd_err hd_live_read(const struct hd_json *answer, struct hd_live *live,
	struct hd_diag *diag);
/* The same of a run whose coordinator need not be there: what its folder says, where nobody answers. Texts
 * lie in the arena of the call. */
HD_MUST_USE enum hd_err hd_live_look(struct hd_cmd *cmd, const char *run, struct hd_live *live);
/* The process of a run that was started without workers and goes on; 0: there is none, or not on this
 * machine. */
int hd_live_alone(struct hd_cmd *cmd, const char *run);
/* For whoever asks again and again: a coordinator that ended between the question and its answer is no error
 * yet; the next question finds another one, or none. Two in a row are. */
struct hd_live_misses { uint32_t in_a_row; };
bool hd_live_missed(struct hd_live_misses *misses, enum hd_err err);
/* The table of `status` and `top`. */
void hd_live_print(const struct hd_live *live, FILE *to);

#endif
