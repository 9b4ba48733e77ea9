#include "run/run_int.h"

#include <stdio.h>

/* What a run says of its job when it begins, in the words of a user: how the gradient of a step is made of
 * parts, and which parameters learn in another way. */

static void tell_batch(struct hd_run *run)
{
	const struct hd_job *job = run->job;
	const uint64_t slices = (uint64_t)hd_job_int(job, HD_JOB_SLICES),
		rows = (job->per_vn + slices - 1) / slices;
	char parts[96] = "";

	if (slices > 1)
		snprintf(parts, sizeof parts, " in %llu slices of %llu", (unsigned long long)slices,
			(unsigned long long)rows);
	hd_run_note(run, "choice", "batch: an update a step, of the gradients of %llu samples, accumulated "
		"from %u "
		"virtual nodes of %llu%s", (unsigned long long)job->batch, job->nvns,
		(unsigned long long)job->per_vn, parts);
}

static void tell_rates(struct hd_run *run)
{
	struct hd_arena arena;
	struct hd_text text;

	if (!run->task->rate)
		return;
	hd_arena_init(&arena, 0);
	hd_text_init(&text, &arena);
	hd_param_rates_print(run->task->rate, &run->task->train,
		(float)hd_job_num(run->job, HD_JOB_WEIGHT_DECAY), &text);
	hd_run_note(run, "choice", "optim: tensors: %s", text.at);
	hd_arena_finish(&arena);
}

void hd_run_tell_habits(struct hd_run *run)
{
	tell_batch(run);
	tell_rates(run);
}
