/* graph.h -- what `heddle data` says of a prepared graph: shown, verified, freshly prepared.
 *
 * Ownership: none. */
#ifndef HD_CMD_DATA_GRAPH_H
#define HD_CMD_DATA_GRAPH_H

#include "gnn/prepare.h"
#include "cmd/verbs.h"

/* Lines, or with --json one object: of the file `path`. */
HD_MUST_USE enum hd_err hd_prepared_print(struct hd_cmd *cmd, const char *path,
	const struct hd_prepared_report *report);
/* `data show` and `data verify` of a prepared graph; with `check` all of it is read. */
HD_MUST_USE enum hd_err hd_prepared_show(struct hd_cmd *cmd, const char *path, bool check);

#endif
