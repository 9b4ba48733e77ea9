/* elastic.h -- the story of `demo elastic`: slow workers, kills, joins, a coordinator lost; then the
 * undisturbed twin. */
#ifndef HD_CMD_DEMO_ELASTIC_H
#define HD_CMD_DEMO_ELASTIC_H

#include "cmd/verbs.h"

/* Exit 0 only if both states are equal bit for bit. */
HD_MUST_USE enum hd_err hd_demo_elastic(struct hd_cmd *cmd);

#endif
