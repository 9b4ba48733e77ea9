/* pilot.h -- `heddle worker --join DIR/pilots/TYPE`: a process on a node that was lent to a scheduler, which
 * starts the workers of its jobs there (launch/pilot.h). */
#ifndef HD_CMD_RUN_PILOT_H
#define HD_CMD_RUN_PILOT_H

#include "cmd/verbs.h"

/* Is that folder one of a scheduler's, not of a run? */
bool hd_pilot_is_asked(struct hd_cmd *cmd, const char *dir);
/* Until it is sent away, the node is taken back (75), or no scheduler is there. */
HD_MUST_USE enum hd_err hd_worker_pilot(struct hd_cmd *cmd, const char *dir);

#endif
