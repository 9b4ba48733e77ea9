/* play.h -- a job on machines of a played market, for `chaos spot JOB` and `demo spot`: the run, its
 * undisturbed twin, and what a dollar bought beside checkpoint-and-restart and machines on demand.
 * PARENT/model.json has what was measured, for a replay on a simulated clock.
 *
 * 1. All values are of the trace's clock: a millisecond of this machine counts `speed` of the trace.
 * 2. The ledger is the run's own; processes that its coordinator never knew, and what passes between the end
 *    of one and the moment it is seen, are boot. */
#ifndef HD_CHAOS_PLAY_H
#define HD_CHAOS_PLAY_H

#include "spot/replay.h"
#include "job/job.h"
#include "chaos/market.h"

struct hd_play_ask {
	struct hd_fs *fs;
	struct hd_clock *clock;
	struct hd_arena *arena;
	const char *path;                 /* of the job file */
	const struct hd_job *job;
	char parent[HD_HARNESS_PATH];     /* folder of both runs */
	uint64_t nsteps, seed;
	uint32_t most;                    /* machines at once */
	uint32_t speed;
	const char *slow, *vn_time;       /* of each worker (chaos/cloud.h); NULL: as fast as it is */
	bool noticed;                     /* there are notices to hear */
	const struct hd_machine_script *script;
	const struct hd_spot_trace *trace;        /* the same machines; NULL: a script, no value is judged */
	const char *const *set;
	uint32_t nsets;
	void (*said)(void *user, const struct hd_metadata_event *event);
	void *user;
};

struct hd_play {
	struct hd_harness harness;
	struct hd_market market;
	struct hd_harness_end end;
	struct hd_spot_model model;
	bool modelled;                    /* steps were measured, and judged */
	struct hd_diag not_kept;          /* why there is no model.json: a time is too long; or "" */
	uint64_t samples;
	struct hd_spot_ledger ledger;     /* of the trace's clock */
	struct hd_ledger_sum paid;
	double value, on_demand;          /* samples per dollar */
	struct hd_spot_replay checkpoints;        /* checkpoint-and-restart on the same trace, at its best */
	uint32_t every;
};

/* HD_E_INTEGRITY: the digests differ, or the run hung. *play is set as far as it came; close it in any
 * case. */
HD_MUST_USE enum hd_err hd_play(const struct hd_play_ask *ask, struct hd_play *play, struct hd_diag *diag);
void hd_play_close(struct hd_play *play);

#endif
