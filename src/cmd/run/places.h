/* places.h -- `--launch KIND --nodes N[..M]` of run and resume: what starts workers on other machines
 * (launch/launcher.h), which share the run's folder and reach it over the network.
 *
 * 1. To the rest of a verb it is --workers M. Of N..M the run waits for N workers, and goes on with no fewer
 *    (workers.min).
 * 2. Without net.listen the run listens at the address by which its places call this machine, at a port of
 *    the
 *    system's choice; without net.key it makes one, the file `key` in its folder. */
#ifndef HD_CMD_RUN_PLACES_H
#define HD_CMD_RUN_PLACES_H

#include "launch/launcher.h"
#include "run/rundir.h"
#include "cmd/verbs.h"

/* What the options ask for, into options and `job`. HD_E_INVAL: they do not go with launch.kind. */
HD_MUST_USE enum hd_err hd_places_ask(struct hd_cmd *cmd, struct hd_job *job);
/* Are workers started elsewhere? */
bool hd_places_are_asked(const struct hd_job *job);
/* Rule 2, and a launcher that can start them; *launcher NULL: they are processes of this machine. The caller
 * closes it. */
HD_MUST_USE enum hd_err hd_places_open(struct hd_cmd *cmd, struct hd_job *job, struct hd_rundir *dir,
	struct hd_launcher **launcher);
/* --print: what the launcher would submit or run, to stdout; nothing is started, asked or written. */
HD_MUST_USE enum hd_err hd_places_print(struct hd_cmd *cmd, const struct hd_job *job);
/* Of that option: "N..M", both from `from` to `cap`; N alone is at most N, with `least` 0. */
HD_MUST_USE enum hd_err hd_places_number(struct hd_cmd *cmd, enum hd_opt opt, uint64_t from, uint64_t cap,
	uint64_t *least, uint64_t *most);
/* Takes NULL. */
void hd_places_close(struct hd_launcher *launcher);

#endif
