/* serve.h -- what `heddle serve` does beside serving: copies of a scheduler's store. */
#ifndef HD_CMD_JOBS_SERVE_H
#define HD_CMD_JOBS_SERVE_H

#include "cmd/verbs.h"

/* --backup FOLDER, --restore FOLDER: of the scheduler of --dir (daemon/backup.h) */
HD_MUST_USE enum hd_err hd_serve_backup(struct hd_cmd *cmd);
HD_MUST_USE enum hd_err hd_serve_restore(struct hd_cmd *cmd);

#endif
