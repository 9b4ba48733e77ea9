/* stored.h -- what `heddle data` says of a file or an object by itself, without a job.
 *
 * Ownership: none. */
#ifndef HD_CMD_DATA_STORED_H
#define HD_CMD_DATA_STORED_H

#include "cmd/verbs.h"

/* `data cat` of a path or a URL. */
HD_MUST_USE enum hd_err hd_stored_cat(struct hd_cmd *cmd, const char *name);

#endif
