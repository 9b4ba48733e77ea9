#include <string.h>

#include "engine/profile.h"
#include "cmd/session.h"

/* One device, as the job's devices are of one kind: how many there are is the plan's matter. */
static enum hd_err one_device(struct hd_cmd *cmd, struct hd_job *job, struct hd_run_options *options)
{
	enum hd_err err = hd_session_devices(cmd, job, options);

	if (!err && cmd->args.has[HD_OPT_DEVICES] && options->worker.ndevices != 1)
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"--devices %s: a profile is of one device, as cores:1 or reference:1",
			cmd->args.text[HD_OPT_DEVICES]);
	if (options->worker.ndevices != 1 && !cmd->args.has[HD_OPT_THREADS])
		options->worker.nthreads = 1;
	options->worker.ndevices = 1;
	options->quiet_disk = true;
	return err;
}

static double ms(int64_t ns) { return (double)ns * 1e-6; }

static double kib(int64_t bytes) { return (double)bytes / 1024; }

static void print_table(const struct hd_profile *p, const struct hd_profile_step *step, uint32_t nvns)
{
	int64_t sum[3] = { 0 };
	double all;

	printf("%-8s %-44s %9s %9s %9s %10s %10s %10s\n", "node", "op", "F ms", "I ms", "W ms", "param KiB",
		"saved KiB", "out KiB");
	for (uint32_t i = 0; i < p->nnodes; i++) {
		const struct hd_profile_node *n = &p->node[i];
		int64_t out = 0;
		for (uint32_t t = 0; t < n->nouts; t++)
			out += n->out[t];
		printf("%-8s %-44.44s %9.4f %9.4f %9.4f %10.1f %10.1f %10.1f\n", n->id, n->op,
			ms(n->f.p50_ns), ms(n->i.p50_ns), ms(n->w.p50_ns),
			kib(n->param), kib(n->saved), kib(out));
		sum[0] += n->f.p50_ns;
		sum[1] += n->i.p50_ns;
		sum[2] += n->w.p50_ns;
	}
	all = ms(sum[0] + sum[1] + sum[2]) * nvns;
	printf("sum      of a virtual node: F %.4f + I %.4f + W %.4f ms, %llu passes\n", ms(sum[0]),
		ms(sum[1]), ms(sum[2]), (unsigned long long)p->samples);
	printf("step     %.3f ms for the nodes of %u virtual nodes + %.3f ms update; measured: %.3f ms "
		"least, %.3f ms median of %d\n", all, nvns,
		step->update_ns * 1e-6, step->least_ns * 1e-6, step->step_ns * 1e-6, HD_PROFILE_STEPS);
	for (uint32_t i = 0; i < p->nlinks; i++)
		printf("link     %s: %.2f us + %.2f GB/s\n", p->link[i].kind,
			(double)p->link[i].latency_ns * 1e-3, p->link[i].bytes_per_s * 1e-9);
}

static enum hd_err put(struct hd_cmd *cmd, const struct hd_profile *p, const struct hd_profile_step *step,
	uint32_t nvns)
{
	const char *path = cmd->args.text[HD_OPT_OUTPUT];
	struct hd_text text;
	enum hd_err err = HD_OK;

	hd_text_init(&text, &cmd->arena);
	hd_profile_print(p, &text);
	hd_text_add(&text, "\n");
	if (text.full)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for a profile of %u nodes", p->nnodes);
	if (path)
		err = hd_file_write_atomic(&cmd->fs, path, text.at, text.len, &cmd->diag);
	if (!err && cmd->args.has[HD_OPT_JSON])
		fputs(text.at, stdout);
	else if (!err && !(path && cmd->args.has[HD_OPT_QUIET]))
		print_table(p, step, nvns);
	return err;
}

static enum hd_err measure(struct hd_cmd *cmd, struct hd_run *run, struct hd_profile *p,
	struct hd_profile_step *step)
{
	const struct hd_profile_how how = { .samples = hd_args_count(&cmd->args, HD_OPT_SAMPLES, 0) };
	enum hd_err err = hd_worker_profile(hd_run_worker(run), &how, &cmd->arena, p, &cmd->diag);

	if (!err)
		err = hd_worker_profile_step(hd_run_worker(run), p, step, &cmd->diag);
	if (!err)
		err = hd_profile_memory_link(&cmd->clock, &cmd->arena, &p->link, &cmd->diag);
	p->nlinks = err ? 0 : 1;
	return err;
}

static enum hd_err verb_profile(struct hd_cmd *cmd)
{
	struct hd_job *job = hd_arena_take(&cmd->arena, 1, sizeof *job);
	struct hd_run_options options = { 0 };
	struct hd_profile_step step;
	struct hd_profile p = { 0 };
	struct hd_run *run = NULL;
	enum hd_err err = job ? hd_session_job(cmd, cmd->args.pos[0], job, NULL, NULL) : hd_fail(&cmd->diag,
		HD_E_NOMEM, "no memory for a job");

	if (!err && cmd->args.has[HD_OPT_SAMPLES] && (cmd->args.count[HD_OPT_SAMPLES] < 1 ||
		cmd->args.count[HD_OPT_SAMPLES] > HD_PROFILE_SAMPLES_CAP))
		err = hd_fail(&cmd->diag, HD_E_INVAL, "--samples is from 1 to %d", HD_PROFILE_SAMPLES_CAP);
	if (!err)
		err = one_device(cmd, job, &options);
	int64_t shards = err ? 1 : hd_job_int(job, HD_JOB_SHARDS);
	if (!err)
		/* nodes are those that a plan cuts between: whole */
		job->value[HD_JOB_SHARDS].i = 1;
	if (!err)
		err = hd_run_create(&run, job, &cmd->fs, &cmd->clock, NULL, &options, &cmd->diag);
	if (!err)
		err = measure(cmd, run, &p, &step);
	p.tensor_shards = (uint32_t)shards;
	if (!err)
		err = put(cmd, &p, &step, job->nvns);
	hd_run_destroy(run);
	return err;
}

const struct hd_verb hd_verb_profile = {
	.name = "profile", .args = "JOB", .npos_min = 1, .npos_max = 1,
	.about = "measure what each op of a job costs on one device of this machine, for planners",
	.more =
		"-o FILE: the profile, which `heddle plan` and `heddle plan partition --graph` read; "
		"--json: the same on stdout. A node is an op, fused ones together, with its forward "
		"pass (F), its backward pass for the input (I) and for the weights (W), each timed "
		"alone in passes of one virtual node of the job; medians are printed. Saved: what the "
		"backward pass reads again.\n"
		"Of links, memory: two threads that hand tensors to one another. Last: the nodes of all "
		"virtual nodes beside steps that really ran, in whose waves several virtual nodes may "
		"share a call. Nothing of the run is kept.",
	.opts = HD_OPTS(HD_OPT_SAMPLES, HD_OPT_OUTPUT, HD_OPT_DEVICES, HD_OPT_THREADS, HD_OPT_SET),
	.run = verb_profile, .test = "program_plan.sh",
};
