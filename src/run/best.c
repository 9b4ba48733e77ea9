#include "run/best.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static double value_of(int64_t by, const struct hd_metrics *m)
{
	return by == HD_BEST_LOSS ? hd_metrics_loss(m) : by == HD_BEST_ACCURACY ? hd_metrics_accuracy(m) :
		m->measure[by - HD_BEST_ACCURACY - 1];
}

bool hd_best_judge(struct hd_ckpt_info *info, const struct hd_job *job, const struct hd_metrics *metrics)
{
	const int64_t by = hd_job_int(job, HD_JOB_CKPT_BEST);

	if (by == HD_BEST_NONE || metrics->weight <= 0 || (by == HD_BEST_ACCURACY &&
		!hd_metrics_has_accuracy(metrics)))
		return false;
	const double value = value_of(by, metrics);
	if (!isfinite(value))
		return false;
	snprintf(info->best_by, sizeof info->best_by, "%s", hd_job_text(job, HD_JOB_CKPT_BEST));
	info->best = value;
	return true;
}

bool hd_best_beats(const struct hd_ckpt_info *info, const struct hd_ckpt_info *kept)
{
	const bool more = hd_measure_more(info->best_by);

	return more ? info->best > kept->best : info->best < kept->best;
}

static bool is_of(const struct hd_ckpt_info *kept, const struct hd_ckpt_info *mine)
{
	return *kept->best_by && (!mine || (!strcmp(kept->best_by, mine->best_by) &&
		kept->lineage == mine->lineage && hd_hash_same(kept->job_hash, mine->job_hash)));
}

bool hd_best_find(struct hd_ckpt_info *found, struct hd_fs *fs, const char *parent,
	const struct hd_ckpt_info *mine)
{
	char folder[HD_PATH_CAP];
	struct hd_ckpt_info *list;
	struct hd_arena arena;
	bool has = false;
	uint32_t n = 0;

	if ((size_t)snprintf(folder, sizeof folder, "%s/" HD_CKPT_BEST, parent) >= sizeof folder)
		return false;
	hd_arena_init(&arena, 0);
	if (hd_ckpt_list(fs, folder, &arena, &list, &n, NULL))
		n = 0;
	for (uint32_t i = 0; i < n && !has; i++)         /* newest first: of two the better */
		if ((has = is_of(&list[i], mine)))
			*found = list[i];
	hd_arena_finish(&arena);
	return has;
}

const char *hd_best_say(char said[HD_BEST_WORDS], const struct hd_ckpt_info *kept)
{
	snprintf(said, HD_BEST_WORDS, "%s %.6g at step %llu", kept->best_by, kept->best,
		(unsigned long long)kept->step);
	return said;
}

const char *hd_best_text(char said[HD_BEST_WORDS], struct hd_fs *fs, const char *parent)
{
	struct hd_ckpt_info kept;

	return hd_best_find(&kept, fs, parent, NULL) ? hd_best_say(said, &kept) : "none";
}

enum hd_err hd_best_check(const struct hd_job *job, const struct hd_dataset *data, struct hd_diag *diag)
{
	const uint32_t valid = hd_dataset_split(data, "valid");

	if (hd_job_int(job, HD_JOB_CKPT_BEST) == HD_BEST_NONE ||
		(valid != HD_NONE && data->split[valid].count))
		return HD_OK;
	return hd_fail(diag, HD_E_INVAL, "checkpoint.best: %s: the data have no samples in a split \"valid\" "
		"to judge by (%s); give data.split.valid a share, or set checkpoint.best to none",
		hd_job_text(job, HD_JOB_CKPT_BEST), data->about);
}
