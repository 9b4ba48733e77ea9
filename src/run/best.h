/* best.h -- the state of a run's best evaluation (checkpoint.best): which one is kept, and is another
 * better.
 *
 * It is a checkpoint like the others, in the folder HD_CKPT_BEST below them; its manifest says by which
 * measure it was kept and the value. There is no pointer to it and no copy in memory: a worker that
 * becomes the writer, a coordinator that takes over and a resume find the same one.
 *
 * 1. Better is less loss or error, more of other measures (job/measures.h). What is equal is not, so
 *    that a step that is computed again after a restart replaces nothing. What is not finite never is.
 * 2. One of another job, lineage or measure is none.
 *
 * Threads: any; the folder is replaced whole (ckpt.h). */
#ifndef HD_RUN_BEST_H
#define HD_RUN_BEST_H

#include "data/dataset.h"
#include "job/job.h"
#include "checkpoint/ckpt.h"
#include "engine/forward.h"

enum { HD_BEST_WORDS = 96 };

/* Sets measure and value of `info` by checkpoint.best of the job; false: there is none to keep. */
bool hd_best_judge(struct hd_ckpt_info *info, const struct hd_job *job, const struct hd_metrics *metrics);
bool hd_best_beats(const struct hd_ckpt_info *info, const struct hd_ckpt_info *kept);
/* The one that is kept below `parent`, the folder of a run's checkpoints (hd_ckpt_place()), by its manifest.
 * `mine`: of that job, lineage and measure; NULL: whatever it is of. False: none is. */
bool hd_best_find(struct hd_ckpt_info *found, struct hd_fs *fs, const char *parent,
	const struct hd_ckpt_info *mine);
/* In what verbs show; "none" */
const char *hd_best_text(char said[HD_BEST_WORDS], struct hd_fs *fs, const char *parent);
/* The measure is of split valid: HD_E_INVAL where the data have none. */
HD_MUST_USE enum hd_err hd_best_check(const struct hd_job *job, const struct hd_dataset *data,
	struct hd_diag *diag);
/* "val_loss 0.7123 at step 150" */
const char *hd_best_say(char said[HD_BEST_WORDS], const struct hd_ckpt_info *kept);

#endif
