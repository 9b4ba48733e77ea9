/* diff.h -- what the verbs of checkpoints share.
 *
 * Ownership: tensors lie in the call's arena. */
#ifndef HD_CMD_CKPT_DIFF_H
#define HD_CMD_CKPT_DIFF_H

#include "checkpoint/ckpt.h"
#include "cmd/verbs.h"

/* The newest whole checkpoint of a run directory, or the checkpoint itself; refused ones are named on
 * stderr. */
HD_MUST_USE enum hd_err hd_ckpt_open(struct hd_cmd *cmd, const char *path, struct hd_state *state,
	struct hd_ckpt_info *info);

#endif
