/* function.h -- `heddle worker --function`: this process as a function worker. */
#ifndef HD_CMD_RUN_FUNCTION_H
#define HD_CMD_RUN_FUNCTION_H

#include "cmd/verbs.h"

/* By --function and the environment of its front end. */
HD_MUST_USE enum hd_err hd_cmd_function(struct hd_cmd *cmd);
/* --pack: writes the zip file. */
HD_MUST_USE enum hd_err hd_cmd_pack(struct hd_cmd *cmd);

#endif
