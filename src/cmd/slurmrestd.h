/* slurmrestd.h -- which socket of slurmrestd a launcher is given, and with whose word: shared by verbs that
 * launch. */
#ifndef HD_CMD_SLURMRESTD_H
#define HD_CMD_SLURMRESTD_H

#include "launch/launcher.h"
#include "cmd/verbs.h"

/* `path` NULL: that of the environment (SLURMRESTD), or where it usually is; "": none. Sets socket, user and
 * token (SLURM_JWT) of settings->slurm; what is found lies in the verb's arena, or the environment. */
HD_MUST_USE enum hd_err hd_slurmrestd_find(struct hd_cmd *cmd, const char *path,
	struct hd_launcher_settings *settings);

#endif
