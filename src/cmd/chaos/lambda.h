/* lambda.h -- options of what emulates functions, read for `chaos lambda` and `bench functions`. */
#ifndef HD_CMD_CHAOS_LAMBDA_H
#define HD_CMD_CHAOS_LAMBDA_H

#include "functions/instances.h"
#include "cmd/verbs.h"

/* --kill, --straggle, --drop-response, --duplicate, --seed */
HD_MUST_USE enum hd_err hd_cmd_faults(struct hd_cmd *cmd, struct hd_fn_faults *faults);
/* --slots, or so many otherwise */
HD_MUST_USE enum hd_err hd_cmd_slots(struct hd_cmd *cmd, uint32_t otherwise, uint32_t *slots);
/* What starts a function worker of this program. */
extern const char *const hd_cmd_function_argv[];

#endif
