/* ckpt_every.h -- the interval of checkpoints with checkpoint.every: auto (spot/saving.h), in the folder of
 * its run.
 *
 * The process that holds the run writes it; whichever worker saves reads it there, since that one reaches the
 * folder: so a new writer, a coordinator that takes over and a resume know it without a message. It is no
 * part of the job, and no bit depends on it.
 *
 * Threads: any; the file is replaced whole. */
#ifndef HD_RUN_CKPT_EVERY_H
#define HD_RUN_CKPT_EVERY_H

#include "spot/saving.h"
#include "run/rundir.h"

#define HD_RUN_CKPT_EVERY "ckpt.every"

/* Of the process that holds the run. */
HD_MUST_USE enum hd_err hd_ckpt_every_put(struct hd_rundir *dir, const struct hd_saving *saving,
	struct hd_diag *diag);
/* False, and nothing is taken: the folder has none, or none that can be read. */
bool hd_ckpt_every_get(struct hd_saving *saving, struct hd_fs *fs, const char *folder);


/* The text of an event checkpoint_done, and what it says training stood for the checkpoint; false: nothing */
void hd_ckpt_done_say(char *out, size_t cap, uint64_t step, uint64_t len_bytes, double took_s);
bool hd_ckpt_done_took(const char *text, double *took_s);

#endif
