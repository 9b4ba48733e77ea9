/* team.h -- runs of several worker processes, for the verbs that start or continue them: run, resume, serve.
 *
 * The process of the verb drives the run (driver/driver.h); workers are `heddle worker` processes of the same
 * program. */
#ifndef HD_CMD_TEAM_H
#define HD_CMD_TEAM_H

#include "base/hash.h"
#include "run/rundir.h"
#include "cmd/session.h"

struct hd_team_order {
	uint32_t target;                  /* workers; 0: as the run's store says */
	uint64_t step;                    /* of the checkpoint that a new store begins with, or 0 */
	bool others_start;                /* workers are started by somebody else (a scheduler), none here */
	double lease_s;                   /* as of driver/driver.h, in seconds */
};
/* steps: it is not done with fewer; 0: it has a target. digest "": no checkpoint of that step */
struct hd_team_end { uint64_t step, steps; char digest[HD_HASH_HEX]; };

/* Conducts the run in `dir` to its end; prints lines as a run of one process does, the state's digest at the
 * end, and writes the report. `end` may be NULL. */
HD_MUST_USE enum hd_err hd_team_drive(struct hd_cmd *cmd, const struct hd_job *job, struct hd_rundir *dir,
	const struct hd_team_order *order,
	struct hd_team_end *end);

enum { HD_TEAM_WORKERS = 64 };

/* What so many workers cannot do together is said before one of them is started: HD_E_INVAL. */
HD_MUST_USE enum hd_err hd_team_check(const struct hd_task *task, uint32_t nworkers, struct hd_diag *diag);
/* --devices of each of so many workers on this machine: as given, else its part of the cores. NULL: no
 * memory. */
const char *hd_team_devices(struct hd_cmd *cmd, uint32_t nworkers);

/* From now on orders to failpoints are looked for in the run's folder (chaos/fault.h; builds that have them);
 * at most once a process. */
void hd_team_take_orders(const char *dir);

/* The socket on which the run's coordinator is called by workers. */
#define HD_TEAM_SOCKET "members.sock"

#endif
