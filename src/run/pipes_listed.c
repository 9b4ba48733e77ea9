#include "run/pipes_listed.h"

#include <string.h>

#include "pipeline/staged.h"

static enum hd_err read(struct hd_listed *listed, struct hd_plan *plan, const char *text, size_t len,
	const char *file, const struct hd_job *job, struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_diag why = { "" };
	enum hd_err err = hd_plan_parse(plan, text, len, file, arena, diag);

	if (err)
		return err;
	if (plan->nvns != job->nvns)
		err = hd_fail(&why, HD_E_BADPLAN, "it is for %u virtual nodes, and the job has %u "
			"(batch.virtual_nodes)", plan->nvns, job->nvns);
	err = err ? err : hd_plan_check_file(plan, NULL, &why);
	err = err ? err : hd_listed_of(listed, plan, arena, &why);
	return err ? hd_fail(diag, err, "%s: %s", file, why.text) : HD_OK;
}

enum hd_err hd_pipes_listed(struct hd_listed *listed, const struct hd_job *job, struct hd_arena *arena,
	struct hd_diag *diag)
{
	const char *text = hd_job_text(job, HD_JOB_PAR_LISTS);
	struct hd_plan plan;

	return read(listed, &plan, text, strlen(text), "parallel.lists", job, arena, diag);
}

enum hd_err hd_pipes_list(struct hd_job *job, const char *text, size_t len, const char *file,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_job_value *lists = &job->value[HD_JOB_PAR_LISTS];
	struct hd_listed listed;
	struct hd_plan plan;
	struct hd_text kept;
	enum hd_err err = read(&listed, &plan, text, len, file, job, arena, diag);

	if (err)
		return err;
	if (listed.shadowed && (int64_t)listed.mode != hd_job_int(job, HD_JOB_REDUNDANCY))
		return hd_fail(diag, HD_E_INVAL,
			"%s: the plan has shadows of the mode %s, and elastic.redundancy is %s: -s "
			"elastic.redundancy=%s, or a plan without shadows", file,
			hd_redundancy_names[listed.mode], hd_job_text(job, HD_JOB_REDUNDANCY),
			hd_redundancy_names[listed.mode]);
	plan.number = 0;
	plan.cause = "";
	/* those of a view are its own */
	plan.xfers.len = 0;
	memset(plan.owner, 0, plan.nchunks * sizeof *plan.owner);
	hd_text_init(&kept, arena);
	if (hd_plan_print(&plan, &kept))
		return hd_fail(diag, HD_E_NOMEM, "no memory for the plan of a run");
	if (kept.len > HD_PIPES_LISTS_BYTES)
		return hd_fail(diag, HD_E_INVAL, "%s: the plan has %zu bytes; over workers it has at most "
			"%d, since it travels with the job: name its order by parallel.schedule", file,
			kept.len, HD_PIPES_LISTS_BYTES);
	*lists = (struct hd_job_value){ .type = lists->type, .text = kept.at };
	return HD_OK;
}

struct hd_run_stages hd_pipes_listed_stages(const struct hd_listed *l, uint32_t d, uint32_t groups)
{
	struct hd_run_stages s = { .schedule = HD_STAGES_LISTED, .p = l->p, .v = l->most, .d = d, .t = l->t,
		.groups = groups, .delayed = l->plan.overlap, .listed = l };

	for (uint32_t k = 0; l->copies && k < l->plan.nstages && k < HD_JOB_MAX_STAGES; k++)
		s.copies[s.ncopies++] = l->copies[k];
	return s;
}

static enum hd_err refuse_devices(const struct hd_listed *l, uint32_t ndevices, struct hd_diag *diag)
{
	const uint32_t each = l->p * l->t;

	return l->d == 1 ? hd_fail(diag, HD_E_INVAL,
		"the run's plan (parallel.lists) is for %u devices, and there are %u: use --devices %u, or "
		"-s parallel.mode=data -s parallel.plan=none", each, ndevices, each) :
		hd_fail(diag, HD_E_INVAL,
		"the run's plan (parallel.lists) has %u pipelines of %u devices, and %u are no whole number "
		"of these: use --devices %u, or another multiple of %u up to %u, or -s parallel.mode=data "
		"-s parallel.plan=none", l->d, each, ndevices, each * (ndevices < each ? 1 : l->d), each,
		each * l->d);
}

enum hd_err hd_pipes_listed_alone(struct hd_run_stages *stages, const struct hd_job *job, uint32_t ndevices,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_listed *l = hd_arena_take(arena, 1, sizeof *l);
	enum hd_err err = l ? hd_pipes_listed(l, job, arena, diag) : hd_fail(diag, HD_E_NOMEM,
		"no memory for the lists of a plan");

	if (err)
		return err;
	const uint32_t each = l->p * l->t, d = ndevices ? ndevices / each : l->d;
	uint32_t *share = hd_arena_take(arena, l->d, sizeof *share);
	if (!share)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the shares of %u pipelines", l->d);
	if (!d || d > l->d || (ndevices && ndevices % each))
		return refuse_devices(l, ndevices, diag);
	for (uint32_t k = 0; k < d; k++)
		share[k] = d == l->d ? l->share[k] : job->nvns / d + (k < job->nvns % d);
	*stages = hd_pipes_listed_stages(l, d, 1);
	stages->first = l->plan.first;
	stages->share = share;
	stages->shared = true;            /* its cuts stay */
	return HD_OK;
}
