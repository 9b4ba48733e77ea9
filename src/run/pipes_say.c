#include "run/pipes_int.h"

#include "pipeline/redundancy.h"

void hd_pipes_say(struct hd_job *job, enum hd_job_key key, uint32_t i)
{
	job->value[key].is_auto = job->value[key].is_standard = false;
	job->value[key].i = i;
}

void hd_pipes_say_redundancy(struct hd_job *job, uint32_t mode)
{
	hd_pipes_say(job, HD_JOB_REDUNDANCY, mode);
	job->value[HD_JOB_REDUNDANCY].text = hd_redundancy_names[mode];
}

void hd_pipes_say_recompute(struct hd_job *job, bool again)
{
	hd_pipes_say(job, HD_JOB_PAR_RECOMPUTE, again ? HD_RECOMPUTE_STAGE : HD_RECOMPUTE_NONE);
	job->value[HD_JOB_PAR_RECOMPUTE].text = again ? "stage" : "none";
}

enum hd_err hd_pipes_say_copies(struct hd_job *job, const struct hd_view_shape *shape, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct hd_job_value *value = &job->value[HD_JOB_PAR_COPIES];
	struct hd_text text;

	value->is_none = !hd_view_has_copies(shape);
	value->is_standard = false;
	value->text = "none";
	if (value->is_none)
		return HD_OK;
	hd_text_init(&text, arena);
	for (uint32_t s = 0; s < shape->nstages; s++)
		hd_text_addf(&text, "%s%u", s ? "," : "", hd_view_copies(shape, s));
	value->text = text.at;
	return text.full ? hd_fail(diag, HD_E_NOMEM, "no memory for the shape of a view") : HD_OK;
}
