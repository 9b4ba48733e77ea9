#include "cmd/plan/job.h"

#include <string.h>

#include "base/num.h"
#include "sys/thread.h"
#include "graph/layout.h"
#include "cost/profile_graph.h"
#include "engine/lockstep.h"
#include "engine/task.h"
#include "cmd/session.h"

/* Of links that were not measured. */
static const double nominal_bytes_per_s = 1e10;
enum { NOMINAL_LATENCY_PS = 10000000, PROFILE_BYTES = 32 << 20, CLUSTER_BYTES = 1 << 20 };

/* Options of the verb count as the job's keys do, after all others. */
static enum hd_err take_options(struct hd_cmd *cmd)
{
	static const struct { enum hd_opt opt; const char *key;
		} keys[] = { { HD_OPT_SCHEDULE, "parallel.schedule" },
		{ HD_OPT_PLANNER, "parallel.planner" } };

	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		struct hd_text set;
		if (!cmd->args.has[keys[i].opt] || !strcmp(cmd->args.text[keys[i].opt], "data"))
			continue;
		if (cmd->args.nsets == HD_MAX_SETS)
			return hd_fail(&cmd->diag, HD_E_INVAL,
				"--%s is one -s more than the %d that are possible",
				hd_opts[keys[i].opt].name, HD_MAX_SETS);
		hd_text_init(&set, &cmd->arena);
		hd_text_addf(&set, "%s=%s", keys[i].key, cmd->args.text[keys[i].opt]);
		if (set.full)
			return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for the options");
		cmd->args.set[cmd->args.nsets++] = set.at;
	}
	return HD_OK;
}

static enum hd_err read_profile(struct hd_cmd *cmd, struct hd_plan_input *p)
{
	const char *path = cmd->args.text[HD_OPT_PROFILE];
	uint64_t graph = 0;
	uint8_t *bytes;
	size_t len;
	enum hd_err err = hd_file_read_all(&cmd->fs, path, &cmd->arena, PROFILE_BYTES, &bytes, &len,
		&cmd->diag);

	if (!err)
		err = hd_profile_read(&p->profile, (const char *)bytes, len, path, &cmd->arena, &cmd->diag);
	if (!err)
		err = hd_profile_hash(p->graph, &graph, &cmd->diag);
	if (!err && !cmd->args.has[HD_OPT_FORCE_PROFILE])
		err = hd_profile_fits(&p->profile, path, graph, p->job.per_vn, &cmd->diag);
	if (!err && *p->profile.ignored && !cmd->args.has[HD_OPT_QUIET])
		fprintf(stderr, "!! %s: left out what this version does not know: %s\n", path,
			p->profile.ignored);
	p->profile_from = path;
	return err;
}

enum hd_err hd_plan_input_profile_at(void *input, uint64_t rows, struct hd_profile *profile,
	struct hd_arena *arena, struct hd_diag *diag)
{
	const struct hd_plan_input *p = input;
	const struct hd_profile_ask ask = { .rows = rows, .nslots = hd_optims[hd_job_int(&p->job,
		HD_JOB_OPTIM)].nslots + (p->job.value[HD_JOB_EMA].is_none ? 0u : 1u),
		.tensor_shards = (uint32_t)hd_job_int(&p->job, HD_JOB_SHARDS) };

	return hd_profile_at(profile, p->graph, p->measured ? &p->profile : NULL, &ask, arena, diag);
}

static enum hd_err model_profile(struct hd_cmd *cmd, struct hd_plan_input *p)
{
	enum hd_err err = hd_plan_input_profile_at(p, p->job.per_vn, &p->profile, &cmd->arena, &cmd->diag);

	p->profile_from = "counts of operations on a nominal core (`heddle profile JOB -o FILE` measures)";
	return err;
}

static uint32_t workers(struct hd_cmd *cmd, const struct hd_job *job)
{
	const struct hd_job_value *devices = &job->value[HD_JOB_DEVICES];
	struct hd_cores cores;
	uint64_t n;

	if (cmd->args.has[HD_OPT_WORKERS])
		return cmd->args.count[HD_OPT_WORKERS] <= HD_CLUSTER_DEVICES ?
			(uint32_t)cmd->args.count[HD_OPT_WORKERS] : 0;
	if (!hd_num_u64(devices->text, HD_CLUSTER_DEVICES, &n, NULL) && n > 0)
		return (uint32_t)n;
	hd_cores_usable(&cores);
	return cores.n;
}

/* Equal devices that share memory, with the link that was measured. */
static enum hd_err make_cluster(struct hd_cmd *cmd, struct hd_plan_input *p)
{
	const struct hd_profile_link *link = p->profile.nlinks &&
		p->profile.link[0].bytes_per_s > 0 ? &p->profile.link[0] : NULL;
	const struct hd_job_value *memory = &p->job.value[HD_JOB_MEMORY];
	uint32_t n = workers(cmd, &p->job);
	struct hd_cluster_level level = { link ? link->kind : "memory", n,
		link ? link->bytes_per_s : nominal_bytes_per_s,
		link ? link->latency_ns * 1000 : NOMINAL_LATENCY_PS };

	if (n == 0)
		return hd_fail(&cmd->diag, HD_E_INVAL, "--workers is from 1 to %d", HD_CLUSTER_DEVICES);
	p->cluster_from = link ? "joined by the link of the profile" : "joined by a nominal link of 10 GB/s";
	return hd_cluster_make(&p->cluster, &level, 1, (struct hd_cluster_kind){ "device", 1,
		memory->is_auto ? 0 : memory->i }, &cmd->arena, &cmd->diag);
}

static enum hd_err read_cluster(struct hd_cmd *cmd, struct hd_plan_input *p)
{
	const char *path = cmd->args.text[HD_OPT_CLUSTER];
	uint8_t *bytes;
	size_t len;

	if (!path)
		return make_cluster(cmd, p);
	if (cmd->args.has[HD_OPT_WORKERS])
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"--cluster says which devices there are; leave --workers out");
	p->cluster_from = path;
	enum hd_err err = hd_file_read_all(&cmd->fs, path, &cmd->arena, CLUSTER_BYTES, &bytes, &len,
		&cmd->diag);
	return err ? err : hd_cluster_parse(&p->cluster, (const char *)bytes, len, path, &cmd->arena,
		&cmd->diag);
}

struct hd_cuts_how hd_plan_input_cuts(const struct hd_cmd *cmd)
{
	return (struct hd_cuts_how){ .max = cmd->args.has[HD_OPT_MAX_CUTS] ?
		(uint32_t)cmd->args.count[HD_OPT_MAX_CUTS] : HD_CUTS_MAX,
		.compress = cmd->args.has[HD_OPT_COMPRESS] };
}

enum hd_err hd_plan_input_costs(struct hd_cmd *cmd, struct hd_plan_input *p)
{
	enum hd_err err = take_options(cmd);

	p->graph = hd_arena_take(&cmd->arena, 1, sizeof *p->graph);
	if (!err && !p->graph)
		err = hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for a graph");
	p->fs = &cmd->fs;
	if (!err)
		err = hd_session_job(cmd, cmd->args.pos[0], &p->job, NULL, NULL);
	if (!err)
		err = hd_task_train_graph(&p->job, &cmd->fs, &cmd->arena, p->graph, &cmd->diag);
	if (!err)
		err = cmd->args.has[HD_OPT_PROFILE] ? read_profile(cmd, p) : model_profile(cmd, p);
	p->measured = cmd->args.has[HD_OPT_PROFILE];
	return err ? err : read_cluster(cmd, p);
}

enum hd_err hd_plan_input_read(struct hd_cmd *cmd, struct hd_plan_input *p)
{
	const uint64_t max = hd_args_count(&cmd->args, HD_OPT_MAX_CUTS, HD_CUTS_MAX);

	if (max < 1 || max > HD_CUTS_CAP)
		return hd_fail(&cmd->diag, HD_E_INVAL, "--max-cuts is from 1 to %d", HD_CUTS_CAP);
	enum hd_err err = hd_plan_input_costs(cmd, p);
	if (!err)
		err = hd_cuts_make(&p->cuts, &p->profile, hd_plan_input_cuts(cmd), p->job.file, &cmd->arena,
			&cmd->diag);
	return err ? err : hd_cut_sums_make(&p->sums, &p->profile, &p->cuts, &cmd->arena, &cmd->diag);
}

enum hd_err hd_plan_input_steps(struct hd_cmd *cmd, const struct hd_plan_input *p, uint64_t *steps)
{
	const struct hd_job_value *value = p->job.value;
	struct hd_task *task;
	enum hd_err err;

	*steps = value[HD_JOB_STEPS].is_none ? 0 : (uint64_t)hd_job_int(&p->job, HD_JOB_STEPS);
	if (*steps || value[HD_JOB_EPOCHS].is_none)
		return HD_OK;
	err = hd_task_create(&task, &p->job, &cmd->fs, &cmd->diag);
	if (err)
		return err;
	*steps = task->nsteps;
	hd_task_destroy(task);
	return HD_OK;
}

enum hd_err hd_plan_input_sent(void *input, const uint32_t *count, uint32_t n, uint64_t *most,
	struct hd_diag *diag)
{
	const struct hd_plan_input *p = input;
	struct hd_task *task;
	enum hd_err err = hd_task_create(&task, &p->job, p->fs, diag);

	if (err)
		return err;
	err = hd_lockstep_sent(task, count, n, most, diag);
	hd_task_destroy(task);
	return err;
}

enum hd_err hd_plan_input_whole(struct hd_cmd *cmd, const struct hd_plan_input *p, const uint32_t *map,
	struct hd_text *text)
{
	struct hd_layout layout;
	struct hd_plan plan;
	enum hd_err err = hd_layout_make(&layout, p->graph, &cmd->arena, &cmd->diag);

	if (err)
		return err;
	struct hd_plan_job job = hd_plan_job_whole(p->job.nvns, layout.nchunks);
	job.lockstep = hd_job_int(&p->job, HD_JOB_BN) == HD_BN_GLOBAL || hd_lockstep_meetings(p->graph) > 0;
	err = hd_plan_of_map(&plan, &job, p->cluster.ndevices, map, &cmd->arena, &cmd->diag);
	if (err)
		return err;
	plan.cause = "made by heddle plan";
	return hd_plan_print(&plan, text) ? hd_fail(&cmd->diag, HD_E_NOMEM,
		"no memory for the text of a plan") : HD_OK;
}
