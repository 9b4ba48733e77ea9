/* habits.h -- what a run says of its job when it begins, in the words of a user: how the gradient of a step
 * is made of parts, and which parameters learn in another way. Pure. */
#ifndef HD_RUN_HABITS_H
#define HD_RUN_HABITS_H

#include "engine/task.h"

/* "batch: an update a step, of the gradients of 256 samples, accumulated from 16 virtual nodes of 16" */
void hd_habits_batch(const struct hd_job *job, struct hd_text *text);
/* "optim: tensors: 12 at 1 times the rate, decay 0.1; ..."; false: all are alike. */
bool hd_habits_rates(const struct hd_task *task, struct hd_text *text);

#endif
