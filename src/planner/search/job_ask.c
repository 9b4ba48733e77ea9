#include "planner/job_ask.h"

#include <string.h>

#include "pipeline/redundancy.h"

static uint32_t number_of(const struct hd_job *job, enum hd_job_key key) { return job->value[key].is_auto ?
	0 : (uint32_t)job->value[key].i; }

/* Rule 5. What the graph says besides is the caller's. */
static const char *drains_of(const struct hd_job *job)
{
	const bool early = hd_job_int(job, HD_JOB_UPDATE) == HD_UPDATE_STASH;
	const struct { bool drains; const char *why; } rows[] = {
		{ hd_job_int(job, HD_JOB_REDUNDANCY) != HD_REDUNDANCY_NONE, "workers hold shadows of stages: "
			"elastic.redundancy" },
		{ hd_job_int(job, HD_JOB_STANDBY) != HD_STANDBY_NONE, "workers that are left over follow stages: "
			"elastic.standby" },
		{ hd_job_int(job, HD_JOB_PAR_OFFLOAD) == HD_OFFLOAD_STAGE, "activations leave to a file" },
		{ hd_job_int(job, HD_JOB_SAMPLES), "trace.samples names the rows of each step" },
		{ !job->value[HD_JOB_VALUES].is_none, "trace.values looks at one step at a time" },
		{ early && hd_job_num(job, HD_JOB_CLIP) > 0, "the last stage waits for the norm that optim.clip "
			"needs" },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (rows[i].drains)
			return rows[i].why;
	return NULL;
}

struct hd_job_plan_ask hd_job_ask(const struct hd_job *job)
{
	static const enum hd_job_recompute recompute[] = { [HD_RECOMPUTE_AUTO] = HD_RECOMPUTES_IF_NEEDED,
		[HD_RECOMPUTE_NONE] = HD_RECOMPUTES_NEVER,
		[HD_RECOMPUTE_STAGE] = HD_RECOMPUTES_ALWAYS };
	const struct hd_job_value *schedule = &job->value[HD_JOB_PAR_SCHEDULE];
	const int64_t mode = hd_job_int(job, HD_JOB_PAR_MODE);
	struct hd_job_plan_ask ask = { .vns = job->nvns,
		.tensor_shards = (uint32_t)hd_job_int(job, HD_JOB_SHARDS),
		.sequence = hd_job_int(job, HD_JOB_SEQUENCE_SHARDS) > 0,
		.stages = number_of(job, HD_JOB_PAR_STAGES),
		.chunks = number_of(job, HD_JOB_PAR_CHUNKS),
		.tensor = number_of(job, HD_JOB_PAR_TENSOR),
		.replicas = number_of(job, HD_JOB_PAR_REPLICAS),
		.schedule = schedule->is_auto ? NULL : schedule->text,
		.clips = hd_job_num(job, HD_JOB_CLIP) > 0,
		.update = (enum hd_update_mode)hd_job_int(job, HD_JOB_UPDATE), .drains = drains_of(job),
		.deep = mode == HD_PAR_PIPELINE,
		.recompute = recompute[hd_job_int(job, HD_JOB_PAR_RECOMPUTE)],
		.variant = HD_PART_PAPER };

	for (uint32_t t = 2; mode == HD_PAR_TENSOR && !ask.tensor; t++)
		/* rule 2; shards are 2 or more */
		ask.tensor = ask.tensor_shards % t ? 0 : t;
	return ask;
}

enum hd_part_variant hd_job_ask_variant(const char *name)
{
	uint32_t variant = 0;

	if (!name)
		return HD_PART_PAPER;
	while (variant < HD_NPART_VARIANTS && strcmp(name, hd_part_variant_name(variant)) != 0)
		variant++;
	return variant;
}

enum hd_err hd_job_ask_planner(const struct hd_job_planner **planner, const struct hd_job *job,
	uint32_t meetings, const char *named, struct hd_diag *diag)
{
	const int64_t mode = hd_job_int(job, HD_JOB_PAR_MODE);
	const bool norms = hd_job_int(job, HD_JOB_BN) == HD_BN_GLOBAL, lockstep = norms || meetings;
	const char *name = named ? named : mode == HD_PAR_DATA ? "data" :
		hd_job_text(job, HD_JOB_PAR_PLANNER);
	const bool open = !strcmp(name, "auto") && (mode == HD_PAR_AUTO || mode == HD_PAR_GIVEN);

	enum hd_err err = hd_job_planner_find(planner, lockstep && open ? "data" : name, diag);
	if (!err && lockstep && strcmp((*planner)->name, "data") != 0)
		err = hd_fail(diag, HD_E_INVAL, norms ?
			"model.bn global takes all virtual nodes through the model in lockstep, so no stage "
			"can run ahead: --planner data, or bn: ghost" :
			"a graph in several intervals takes all virtual nodes through the model in lockstep, "
			"so "
			"no stage can run ahead: --planner data, or batch.virtual_nodes: 1");
	return err;
}
