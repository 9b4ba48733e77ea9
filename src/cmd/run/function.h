/* function.h -- `heddle worker --function`: this process as a function worker. */
#ifndef HD_CMD_RUN_FUNCTION_H
#define HD_CMD_RUN_FUNCTION_H

#include "cmd/verbs.h"

/* By --function and the environment of its front end. */
HD_MUST_USE enum hd_err hd_cmd_function(struct hd_cmd *cmd);
/* --pack: writes the zip file. */
HD_MUST_USE enum hd_err hd_cmd_pack(struct hd_cmd *cmd);

/* The executable that is packed: of --bootstrap, else the one of this build or installation. */
HD_MUST_USE enum hd_err hd_cmd_bootstrap(struct hd_cmd *cmd, char *path, size_t cap, struct hd_diag *diag);

#endif
