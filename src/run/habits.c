#include "run/habits.h"

void hd_habits_batch(const struct hd_job *job, struct hd_text *text)
{
	const uint64_t slices = (uint64_t)hd_job_int(job, HD_JOB_SLICES),
		rows = (job->per_vn + slices - 1) / slices;

	hd_text_addf(text, "batch: an update a step, of the gradients of %llu samples, accumulated from %u "
		"virtual "
		"nodes of %llu", (unsigned long long)job->batch, job->nvns, (unsigned long long)job->per_vn);
	if (slices > 1)
		hd_text_addf(text, " in %llu slices of %llu", (unsigned long long)slices,
			(unsigned long long)rows);
}

bool hd_habits_rates(const struct hd_task *task, struct hd_text *text)
{
	if (!task->rate)
		return false;
	hd_text_add(text, "optim: tensors: ");
	hd_param_rates_print(task->rate, &task->train, (float)hd_job_num(task->job, HD_JOB_WEIGHT_DECAY),
		text);
	return true;
}
