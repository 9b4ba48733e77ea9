/* diff.h -- what the verbs of checkpoints share.
 *
 * Ownership: tensors lie in the call's arena. */
#ifndef HD_CMD_CKPT_DIFF_H
#define HD_CMD_CKPT_DIFF_H

#include "checkpoint/ckpt.h"
#include "cmd/verbs.h"

/* What a verb with --best means by a run: the folder of its best state, in the call's arena; without it
 * `path`. HD_E_NOTFOUND: the run has kept none. */
HD_MUST_USE enum hd_err hd_ckpt_meant(struct hd_cmd *cmd, const char **path);
/* The newest whole checkpoint of a run directory, or the checkpoint itself; refused ones are named on
 * stderr. By --best the best one; with --ema parameters are their means. */
HD_MUST_USE enum hd_err hd_ckpt_open(struct hd_cmd *cmd, const char *path, struct hd_state *state,
	struct hd_ckpt_info *info);

#endif
