/* team.h -- runs of several worker processes, for the verbs that start or continue them: run, resume, serve.
 *
 * The process of the verb conducts (serve/conduct.h); workers are `heddle worker` processes of the same program. */
#ifndef HD_CMD_TEAM_H
#define HD_CMD_TEAM_H

#include "exec/rundir.h"
#include "cmd/session.h"

/* Conducts the run in `dir` to its end. `target` 0: as its store says. `step`: of the checkpoint that a new store begins with, or 0.
 * Prints lines as a run of one process does, the state's digest at the end, and writes the report. */
HD_MUST_USE enum hd_err hd_team_conduct(struct hd_cmd *cmd, const struct hd_job *job, struct hd_rundir *dir, uint32_t target, uint64_t step);

enum { HD_TEAM_WORKERS = 64 };

/* Folder of the run in which its processes look for orders to failpoints (builds that have them; sys/failpoint.h). */
#define HD_TEAM_ORDERS "chaos"
/* From now on; at most once a process. */
void hd_team_take_orders(const char *dir);

/* The socket on which the run's coordinator is called by workers. */
#define HD_TEAM_SOCKET "members.sock"

#endif
