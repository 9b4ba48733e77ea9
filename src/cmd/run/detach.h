/* detach.h -- `--detach` of run and resume: the run goes on when its terminal closes, and its user knows
 * where to look.
 *
 * The process splits once its folder is made and before it has threads. The part that stays with the terminal
 * waits until the run has begun, says where it is and how to end it, and leaves; if the run cannot begin, its
 * error is printed as without --detach. */
#ifndef HD_CMD_RUN_DETACH_H
#define HD_CMD_RUN_DETACH_H

#include "run/rundir.h"
#include "cmd/verbs.h"

/* *stays: this is the part that stays with the terminal, and all is said; the run has begun, or the error is
 * its own. Without --detach nothing happens. */
HD_MUST_USE enum hd_err hd_detach(struct hd_cmd *cmd, const struct hd_rundir *dir, bool *stays);
/* The run has begun: of the part that goes on; else nothing. */
void hd_detach_begun(struct hd_cmd *cmd);

#endif
