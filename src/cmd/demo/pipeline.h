/* pipeline.h -- the story of `demo pipeline`: a model that the memory limit of one worker refuses trains in
 * stages over three, loses one, grows to four; then the same job on one device without the limit. */
#ifndef HD_CMD_DEMO_PIPELINE_H
#define HD_CMD_DEMO_PIPELINE_H

#include "cmd/verbs.h"

/* Exit 0 only if one worker was refused and both states are equal bit for bit. */
HD_MUST_USE enum hd_err hd_demo_pipeline(struct hd_cmd *cmd);

#endif
