/* serve.h -- what `heddle serve` does beside serving: copies of a scheduler's store, a look whether this
 * program would serve a folder, taking the place of the one that does. */
#ifndef HD_CMD_JOBS_SERVE_H
#define HD_CMD_JOBS_SERVE_H

#include <stdio.h>

#include "daemon/daemon.h"
#include "cmd/verbs.h"

/* --backup FOLDER, --restore FOLDER: of the scheduler of --dir (daemon/backup.h) */
HD_MUST_USE enum hd_err hd_serve_backup(struct hd_cmd *cmd);
HD_MUST_USE enum hd_err hd_serve_restore(struct hd_cmd *cmd);

/* Lines of a verdict, a matter and a text: ok, warn, refuse. Changes no file of the folder but the audit log
 * of a scheduler that serves it, which is asked for a copy. HD_E_INVAL: something is refused. */
HD_MUST_USE enum hd_err hd_serve_check(struct hd_cmd *cmd, const struct hd_daemon_spec *spec, FILE *to);
/* Checks, then asks the scheduler that serves the folder to end, without a drain, and waits until it has;
 * what is refused before leaves that one as it is. HD_OK without one. */
HD_MUST_USE enum hd_err hd_serve_replace(struct hd_cmd *cmd, const struct hd_daemon_spec *spec);

bool hd_serve_launches(const struct hd_cmd *cmd);         /* --launch, but for local */
/* --launch: pools by what a batch system has, and what a scheduler needs to have its nodes: by pilots, or
 * with --no-pilots by batch jobs; both NULL: the devices are of this machine. */
struct hd_serve_lent { struct hd_pilots_spec *pilots; struct hd_batches_spec *batches; };
HD_MUST_USE enum hd_err hd_serve_launch(struct hd_cmd *cmd, const char *dir, struct hd_pools *pools,
	struct hd_serve_lent *lent);
void hd_serve_launch_close(struct hd_serve_lent *lent);

#endif
