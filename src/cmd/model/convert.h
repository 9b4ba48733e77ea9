/* convert.h -- what the verbs that write weights share: --names, --dtype and --tied. */
#ifndef HD_CMD_MODEL_CONVERT_H
#define HD_CMD_MODEL_CONVERT_H

#include "checkpoint/export.h"
#include "cmd/verbs.h"

/* `model` as a checkpoint says it ("builtin:gpt"); `torch`: public names unless --names says otherwise. */
HD_MUST_USE enum hd_err hd_convert_how(struct hd_cmd *cmd, const char *model, bool torch,
	struct hd_export *how);

#endif
