#include "run/pipes_settled.h"

#include <stdio.h>
#include <string.h>

#include "pipeline/generate.h"
#include "run/pipes.h"
#include "run/stages.h"

enum hd_err hd_pipes_settled(struct hd_job_value *value, const struct hd_view_shape *shape,
	struct hd_pipes_settling how, struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_job_settled s = { .stages = 1, .width = 1, .ndevices = how.ndevices };
	const char *schedule = HD_JOB_SETTLED_DATA;
	struct hd_text text;

	if (shape->nstages) {
		const uint32_t n = hd_view_groups(shape), t = n * hd_view_each(shape);
		s.stages = shape->nstages / n;
		s.width = shape->width / n;
		s.n = hd_view_nfirst(shape) / n;
		s.recompute = how.recompute;
		s.tensor = t > 1 ? t : 0;
		s.groups = n > 1 ? n : 0;
		s.has_copies = hd_view_has_copies(shape);
		for (uint32_t i = 0; i < s.stages && s.has_copies; i++)
			s.copies[i] = hd_view_copies(shape, i);
		for (uint32_t i = 0; i < s.n; i++)
			s.node[i] = shape->first[i * n];
		schedule = hd_schedule_kinds[hd_shape_order(shape)].name;
	}
	snprintf(s.schedule, sizeof s.schedule, "%s", schedule);
	hd_text_init(&text, arena);
	hd_job_settled_put(&s, &text);
	if (text.full)
		return hd_fail(diag, HD_E_NOMEM, "no memory for a shape of the job");
	value->is_none = value->is_auto = value->is_standard = false;
	value->text = text.at;
	return HD_OK;
}

static bool allows(const struct hd_job_value *key, uint64_t n)
{
	return key->is_auto || (uint64_t)key->i == n;
}

static bool asks_for_copies(const struct hd_job *job, const struct hd_job_settled *s)
{
	const struct hd_job_value *value = &job->value[HD_JOB_PAR_COPIES];
	uint32_t copies[HD_JOB_MAX_STAGES] = { 0 };

	return value->is_none || (s->has_copies && hd_job_stage_copies(value->text, copies) == s->stages &&
		!memcmp(copies, s->copies, s->stages * sizeof *copies));
}

/* By the keys that bound a choice. */
static bool is_asked_for(const struct hd_job *job, const struct hd_job_settled *s, uint32_t ndevices)
{
	const struct hd_job_value *value = job->value, *schedule = &value[HD_JOB_PAR_SCHEDULE];
	const int64_t again = value[HD_JOB_PAR_RECOMPUTE].i;

	const uint32_t devices = s->width * (s->tensor ? s->tensor : 1);

	if (s->stages == 1 && !s->tensor)
		return !hd_job_has_stages(job) && hd_job_int(job, HD_JOB_SYNC) != HD_SYNC_STAGES;
	if (!asks_for_copies(job, s))
		return false;
	/* programs before this one chose the order of drained steps for one of delayed updates */
	if (!schedule->is_auto && strcmp(schedule->text, s->schedule) != 0 &&
		strcmp(hd_run_stages_drained(schedule->text), s->schedule) != 0)
		return false;
	return allows(&value[HD_JOB_PAR_STAGES], s->stages) &&
		allows(&value[HD_JOB_PAR_CHUNKS], s->has_copies ? 1 : s->stages / s->width) &&
		allows(&value[HD_JOB_PAR_REPLICAS], ndevices / devices) &&
		(again == HD_RECOMPUTE_AUTO || (again == HD_RECOMPUTE_STAGE) == s->recompute);
}

bool hd_pipes_stay(const struct hd_job *job, uint32_t ndevices)
{
	static const enum hd_job_key bounds[] = { HD_JOB_PAR_MODE, HD_JOB_PAR_STAGES, HD_JOB_PAR_SCHEDULE,
		HD_JOB_PAR_CHUNKS, HD_JOB_PAR_COPIES, HD_JOB_PAR_TENSOR, HD_JOB_PAR_REPLICAS,
		HD_JOB_PAR_RECOMPUTE };
	struct hd_job_settled s;

	if (!hd_job_has_settled(job, &s))
		return false;
	for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++)
		if (job->value[bounds[i]].origin == HD_FROM_SET)
			return false;
	/* programs before this one wrote no number, and of pipelines alone */
	if (!ndevices || ndevices % (s.width * (s.tensor ? s.tensor : 1)) ||
		(s.ndevices ? s.ndevices != ndevices : s.stages == 1))
		return false;
	return is_asked_for(job, &s, ndevices);
}
