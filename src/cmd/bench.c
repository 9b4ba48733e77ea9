#include "cmd/session.h"

#include "base/json_writer.h"
#include "sys/thread.h"
#include "device/peak.h"
#include "exec/times.h"

enum { HD_BENCH_REPEAT = 20, HD_BENCH_WARMUP = 3 };

struct bench { struct hd_times times; double first, last, wait_ms; uint64_t n; };

static void on_step(void *user, const struct hd_progress *p)
{
	struct bench *b = user;

	if (b->n++ == 0)
		b->first = p->loss;
	b->last = p->loss;
	if (b->n > HD_BENCH_WARMUP)
		hd_times_add(&b->times, p->step_ms);
}

static void print(struct hd_cmd *cmd, const struct bench *b, struct hd_run *run, const struct hd_worker_spec *spec, double peak)
{
	double flops = hd_task_flops(hd_run_task(run)), median = hd_times_quantile(&b->times, 0.5), least = hd_times_quantile(&b->times, 0);
	double rate = median > 0 ? flops / (median * 1e-3) : 0;
	char hex[HD_HASH_HEX];

	hd_hash_hex(hd_worker_digest(hd_run_worker(run)), hex);
	if (!cmd->args.has[HD_OPT_JSON]) {
		printf("step      %.3f ms median, %.3f least, %.3f p90 of %llu\n", median, least, hd_times_quantile(&b->times, 0.9),
			(unsigned long long)b->times.n);
		printf("work      %.3f GFLOP a step, %.1f GFLOP/s, %.0f %% of the %.1f GFLOP/s these cores reach\n", flops * 1e-9, rate * 1e-9,
			rate / peak * 100, peak * 1e-9);
		printf("devices   %u x %u threads, %s\nloss      %.6f first, %.6f last\nstate     %s\n", spec->ndevices, spec->nthreads,
			hd_worker_path(hd_run_worker(run)), b->first, b->last, hex);
		return;
	}
	struct hd_text text;
	struct hd_json_writer w;
	hd_text_init(&text, &cmd->arena);
	hd_json_writer_init(&w, &text);
	hd_json_open_object(&w, NULL);
	hd_json_put_f64(&w, "step_ms_median", median);
	hd_json_put_f64(&w, "step_ms_min", least);
	hd_json_put_f64(&w, "step_ms_p90", hd_times_quantile(&b->times, 0.9));
	hd_json_put_i64(&w, "steps", (int64_t)b->times.n);
	hd_json_put_f64(&w, "flops_per_step", flops);
	hd_json_put_f64(&w, "flops_per_s", rate);
	hd_json_put_f64(&w, "peak_flops_per_s", peak);
	hd_json_put_f64(&w, "fraction_of_peak", rate / peak);
	hd_json_put_f64(&w, "loss_first", b->first);
	hd_json_put_f64(&w, "loss_last", b->last);
	hd_json_put_i64(&w, "devices", spec->ndevices);
	hd_json_put_i64(&w, "threads", spec->nthreads);
	hd_json_put_text(&w, "kernels", hd_worker_path(hd_run_worker(run)));
	hd_json_put_text(&w, "digest", hex);
	hd_json_close(&w);
	printf("%s\n", text.at);
}

/* Devices beyond the cores there are share them. */
static double cores_used(const struct hd_worker_spec *spec)
{
	struct hd_cores cores;

	hd_cores_usable(&cores);
	return spec->ndevices * spec->nthreads < cores.n ? spec->ndevices * spec->nthreads : cores.n;
}

/* A job shorter than the measurement is lengthened: nothing of it is kept. */
static void take_steps(struct hd_job *job, uint64_t nsteps)
{
	struct hd_job_value *steps = &job->value[HD_JOB_STEPS];

	if (steps->is_none || steps->i < (int64_t)nsteps)
		*steps = (struct hd_job_value){ .type = steps->type, .origin = HD_FROM_OPTION, .i = (int64_t)nsteps, .text = "" };
}

enum hd_err hd_cmd_bench_step(struct hd_cmd *cmd)
{
	struct hd_job *job = hd_arena_take(&cmd->arena, 1, sizeof *job);
	struct bench *b = hd_arena_take(&cmd->arena, 1, sizeof *b);
	struct hd_run_options options = { .quiet_disk = true, .watch = { .user = b, .step = on_step } };
	struct hd_run *run = NULL;
	uint64_t repeat = cmd->args.has[HD_OPT_REPEAT] ? cmd->args.count[HD_OPT_REPEAT] : HD_BENCH_REPEAT;
	double peak = 1;
	enum hd_err err;

	if (!job || !b)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for a job");
	err = hd_session_job(cmd, cmd->args.pos[0], job, NULL, NULL);
	if (!err)
		err = hd_session_devices(cmd, job, &options.worker);
	options.stop_at = repeat + HD_BENCH_WARMUP;
	take_steps(job, options.stop_at);
	if (!err)
		err = hd_run_create(&run, job, &cmd->fs, &cmd->clock, NULL, &options, &cmd->diag);
	if (!err)
		peak = hd_core_peak(hd_worker_path(hd_run_worker(run)), &cmd->clock) * cores_used(&options.worker);
	if (!err)
		err = hd_run_train(run, &cmd->diag);
	if (!err)
		print(cmd, b, run, &options.worker, peak);
	hd_run_destroy(run);
	return err;
}
