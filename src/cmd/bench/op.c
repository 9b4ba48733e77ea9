#include "cmd/bench/bench.h"

#include <stdlib.h>
#include <string.h>

#include "base/json_writer.h"
#include "device/peak.h"
#include "engine/op_times.h"
#include "engine/times.h"
#include "run/kernels.h"

/* Of one set of kernels. */
struct measure {
	const char *kernels, *key, *asked;        /* the job's key that they come from, and its value */
	struct hd_op_times ops;
	struct hd_times step, update;     /* ms; update: joins, norm and optimizer */
	/* of a core: FLOP/s in the numbers of products and in those of all other ops; bytes/s */
	double peak, others_peak, bandwidth;
	double ops_s;                     /* of a step */
	bool cold;
	uint64_t nsteps;
};

static void on_step(void *user, const struct hd_progress *p)
{
	struct measure *m = user;
	const uint64_t *ns = p->record.ins_ns;

	if (++m->nsteps <= HD_BENCH_WARMUP)
		return;
	hd_times_add(&m->step, p->step_ms);
	hd_times_add(&m->update, (double)(ns[HD_INS_RED] + ns[HD_INS_NORM] + ns[HD_INS_STEP]) * 1e-6);
}

static int by_share_of_step(const void *a, const void *b)
{
	const struct hd_op_time *x = a, *y = b;
	double d = (double)y->count * y->best_s - (double)x->count * x->best_s;

	return d > 0 ? 1 : d < 0 ? -1 : 0;
}

/* ---- one row */

/* Products alone have kernels in bf16. */
static double peak_of(const struct measure *m, const struct hd_op_time *t)
{
	return t->call->op == HD_OP_MATMUL ? m->peak : m->others_peak;
}

static bool is_compute_bound(const struct measure *m,
	const struct hd_op_time *t) { return t->flops / peak_of(m, t) >= t->bytes / m->bandwidth; }

static double roofline_s(const struct measure *m, const struct hd_op_time *t)
{
	return is_compute_bound(m, t) ? t->flops / peak_of(m, t) : t->bytes / m->bandwidth;
}

/* The share of the peak that memory leaves, if it is busy all the time: 1 where it is fast enough. */
static double allowed(const struct measure *m, const struct hd_op_time *t)
{
	return is_compute_bound(m, t) ? 1 : t->flops / peak_of(m, t) / (t->bytes / m->bandwidth);
}

/* Of the peak measured beside it, that of products, which both follow; 0: it was not. */
static double of_peak(const struct measure *m, const struct hd_op_time *t)
{
	return t->peak_flops > 0 ? t->flops / (t->peak_flops * (peak_of(m, t) / m->peak)) : 0;
}

static double per_s(double what, double seconds) { return seconds > 0 ? what / seconds : 0; }

static void add_shape(struct hd_text *text, const struct hd_operand *o)
{
	for (uint8_t d = 0; d < o->rank; d++)
		hd_text_addf(text, "%s%lld", d ? "x" : "", (long long)o->dim[d]);
	if (o->rank == 0)
		hd_text_add(text, "1");
}

/* First operand and output: what tells calls of an op apart to a reader. */
static void shape_text(const struct hd_call *call, char text[96])
{
	struct hd_text t;

	hd_text_fixed(&t, text, 96);
	if (call->nin)
		add_shape(&t, &call->in[0]);
	hd_text_add(&t, ">");
	add_shape(&t, &call->out[0]);
	text[95] = 0;
}

static void print_row(const struct measure *m, const struct hd_op_time *t)
{
	char shape[96], beside[16];
	struct hd_text text;

	shape_text(t->call, shape);
	hd_text_fixed(&text, beside, sizeof beside);
	if (t->peak_flops > 0)
		hd_text_addf(&text, "%.1f%%", of_peak(m, t) * 100);
	else
		hd_text_add(&text, "-");
	printf("%-18s %-34s %6llu %9.4f %9.3f %9.4f %9.2f %8.2f %6.1f%% %7s %6.1f%%  %s\n",
		hd_ops[t->call->op].name, shape, (unsigned long long)t->count,
		t->flops * 1e-9, t->bytes * 1e-6, t->best_s * 1e3, per_s(t->flops, t->best_s) * 1e-9,
		per_s(t->bytes, t->best_s) * 1e-9,
		per_s(roofline_s(m, t), t->best_s) * 100, beside, allowed(m, t) * 100,
		is_compute_bound(m, t) ? "compute" : "memory");
}

static void put_row(struct hd_json_writer *w, const struct measure *m, const struct hd_op_time *t)
{
	char shape[96];

	shape_text(t->call, shape);
	hd_json_open_object(w, NULL);
	hd_json_put_text(w, "op", hd_ops[t->call->op].name);
	hd_json_put_text(w, "shape", shape);
	hd_json_put_i64(w, "count", (int64_t)t->count);
	hd_json_put_f64(w, "flops", t->flops);
	hd_json_put_f64(w, "bytes", t->bytes);
	hd_json_put_f64(w, "best_ms", t->best_s * 1e3);
	hd_json_put_f64(w, "flops_per_s", per_s(t->flops, t->best_s));
	hd_json_put_f64(w, "bytes_per_s", per_s(t->bytes, t->best_s));
	hd_json_put_f64(w, "roofline", per_s(roofline_s(m, t), t->best_s));
	if (t->peak_flops > 0)
		hd_json_put_f64(w, "of_peak", of_peak(m, t));
	hd_json_put_f64(w, "allowed", allowed(m, t));
	hd_json_put_text(w, "bound", is_compute_bound(m, t) ? "compute" : "memory");
	hd_json_close(w);
}

/* ---- one set of kernels */

static void ask(const struct hd_job *job, struct measure *m)
{
	const bool f32 = hd_job_int(job, HD_JOB_PRODUCTS) == HD_PRODUCTS_F32;

	m->kernels = hd_kernels_text(hd_kernels_of(job));
	m->key = f32 ? "job.kernels" : "job.precision";
	m->asked = job->value[f32 ? HD_JOB_KERNELS : HD_JOB_PRODUCTS].text;
}

static void print_text(const struct measure *m, const struct hd_run *run, const char *path)
{
	double update = hd_times_quantile(&m->update, 0), step = hd_times_quantile(&m->step, 0),
		sum = m->ops_s * 1e3 + update;

	printf("# %s kernels (%s: %s) on %s, one thread: %.1f GFLOP/s and %.1f GB/s at most; %u virtual "
		"nodes in waves of %u%s\n", m->kernels, m->key, m->asked, path, m->peak * 1e-9,
		m->bandwidth * 1e-9, hd_run_task(run)->job->nvns, m->ops.wave,
		m->cold ? "; operands cold" : "");
	if (m->others_peak < m->peak || m->others_peak > m->peak)
		printf("# that is of matmul, in bf16; other ops have %.1f GFLOP/s at most\n",
			m->others_peak * 1e-9);
	if (m->cold)
		printf("# between ops the core's peak was %.1f to %.1f GFLOP/s\n", m->ops.peak_least * 1e-9,
			m->ops.peak_most * 1e-9);
	printf("%-18s %-34s %6s %9s %9s %9s %9s %8s %7s %7s %7s  %s\n", "op", "shape", "count", "GFLOP",
		"MB", "best ms", "GFLOP/s", "GB/s", "share", "of peak", "allowed", "bound");
	for (uint32_t i = 0; i < m->ops.n; i++)
		print_row(m, &m->ops.at[i]);
	printf("sum       %.3f ms: ops %.3f + joins and update %.3f\n", sum, m->ops_s * 1e3, update);
	printf("step      %.3f ms least, %.3f median of %llu\n", step, hd_times_quantile(&m->step, 0.5),
		(unsigned long long)m->step.n);
	printf("ratio     %.1f %% of the step are its ops, alone, and its update\n", per_s(sum, step) * 100);
}

static void put_json(struct hd_json_writer *w, const struct measure *m, const struct hd_run *run,
	const char *path)
{
	double update = hd_times_quantile(&m->update, 0), step = hd_times_quantile(&m->step, 0),
		sum = m->ops_s * 1e3 + update;

	hd_json_open_object(w, NULL);
	hd_json_put_text(w, "set", m->kernels);
	hd_json_put_text(w, "asked", m->asked);
	hd_json_put_text(w, "kernels", path);
	hd_json_put_bool(w, "cold", m->cold);
	hd_json_put_f64(w, "peak_flops_per_s", m->peak);
	hd_json_put_f64(w, "others_peak_flops_per_s", m->others_peak);
	hd_json_put_f64(w, "peak_bytes_per_s", m->bandwidth);
	if (m->cold) {
		hd_json_put_f64(w, "peak_least_flops_per_s", m->ops.peak_least);
		hd_json_put_f64(w, "peak_most_flops_per_s", m->ops.peak_most);
	}
	hd_json_put_i64(w, "virtual_nodes", hd_run_task(run)->job->nvns);
	hd_json_put_i64(w, "wave", m->ops.wave);
	hd_json_open_array(w, "ops");
	for (uint32_t i = 0; i < m->ops.n; i++)
		put_row(w, m, &m->ops.at[i]);
	hd_json_close(w);
	hd_json_put_f64(w, "ops_ms", m->ops_s * 1e3);
	hd_json_put_f64(w, "joins_and_update_ms", update);
	hd_json_put_f64(w, "sum_ms", sum);
	hd_json_put_f64(w, "step_ms_min", step);
	hd_json_put_f64(w, "step_ms_median", hd_times_quantile(&m->step, 0.5));
	hd_json_put_f64(w, "sum_of_step", per_s(sum, step));
	hd_json_close(w);
}

/* Steps first: what they touch and prepare once is there when ops are timed. */
static enum hd_err take(struct hd_cmd *cmd, struct hd_run *run, struct measure *m)
{
	struct hd_worker *worker = hd_run_worker(run);
	enum hd_err err = hd_run_train(run, &cmd->diag);

	const char *path = hd_bench_path(run), *others = hd_worker_path(worker);
	m->peak = err ? 0 : hd_bench_peak(cmd, run);
	m->others_peak = err || path == others ? m->peak : hd_core_peak(others, &cmd->clock);
	struct hd_op_timing how = { .repeat = hd_bench_repeat(cmd), .cold = m->cold,
		.path = path, .about = m->peak };
	hd_clock_thread(&how.clock);
	if (!err)
		err = hd_worker_op_times(worker, &how, &cmd->arena, &m->ops, &cmd->diag);
	if (err)
		return err;
	qsort(m->ops.at, m->ops.n, sizeof *m->ops.at, by_share_of_step);
	m->ops_s = hd_op_times_sum(&m->ops);
	m->bandwidth = hd_core_bandwidth(&cmd->clock);
	return m->bandwidth > 0 ? HD_OK : hd_fail(&cmd->diag, HD_E_NOMEM,
		"no memory to measure the copying speed: 2 x %d MiB", HD_BANDWIDTH_BYTES >> 20);
}

/* With the kernels that a run of the job has on this machine. */
static enum hd_err bench_kernels(struct hd_cmd *cmd, struct hd_job *job, struct hd_json_writer *w)
{
	struct measure *m = hd_arena_take(&cmd->arena, 1, sizeof *m);
	struct hd_run_options options = { .quiet_disk = true, .watch = { .user = m, .step = on_step },
		.worker = { .kind = "cpu", .ndevices = 1, .nthreads = 1, .kernels = hd_kernels_of(job) } };
	struct hd_run *run = NULL;
	enum hd_err err;

	if (!m)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for times");
	*m = (struct measure){ .cold = cmd->args.has[HD_OPT_COLD] };
	ask(job, m);
	options.stop_at = hd_bench_repeat(cmd) + HD_BENCH_WARMUP;
	hd_bench_take_steps(job, options.stop_at);
	err = hd_run_create(&run, job, &cmd->fs, &cmd->clock, NULL, &options, &cmd->diag);
	if (!err)
		err = take(cmd, run, m);
	if (!err && w)
		put_json(w, m, run, hd_worker_path(hd_run_worker(run)));
	else if (!err)
		print_text(m, run, hd_worker_path(hd_run_worker(run)));
	hd_run_destroy(run);
	return err;
}

static enum hd_err verb_bench_op(struct hd_cmd *cmd)
{
	struct hd_job *job = hd_arena_take(&cmd->arena, 1, sizeof *job);
	struct hd_json_writer writer, *w = cmd->args.has[HD_OPT_JSON] ? &writer : NULL;
	struct hd_text text;
	enum hd_err err = job ? hd_session_job(cmd, cmd->args.pos[0], job, NULL, NULL) : hd_fail(&cmd->diag,
		HD_E_NOMEM, "no memory for a job");

	if (err)
		return err;
	if (hd_bench_repeat(cmd) == 0)
		return hd_fail(&cmd->diag, HD_E_INVAL, "--repeat 0: nothing would be timed");
	hd_text_init(&text, &cmd->arena);
	hd_json_writer_init(&writer, &text);
	hd_json_open_array(&writer, NULL);
	err = hd_kernels_settle(job, &cmd->fs, NULL, &cmd->diag);
	if (!err)
		err = bench_kernels(cmd, job, w);
	hd_json_close(&writer);
	if (!err && w)
		printf("%s\n", text.at);
	return err;
}

const struct hd_verb hd_verb_bench_op = {
	.name = "bench op", .args = "JOB", .npos_min = 1, .npos_max = 1,
	.about = "time each op of a job's training step alone, against the roofline",
	.more =
		"One device of one thread, with the kernels that a run of the job has on this machine "
		"(others: -s job.kernels=library, -s job.kernels=portable): every distinct (op, "
		"shape) of the step, best of\n"
		"--repeat runs in the wave of virtual nodes that the job would use, operands as in the "
		"step. All columns are of one virtual node: a call that takes W of them counts as W "
		"calls of 1/W of its time. Gradients of parameters include their folds. MB: what the op "
		"reads and writes if nothing is cached (a gradient: once a wave), so GB/s may exceed the "
		"memory's. Share: time at "
		"the measured peak (compute) or copying speed (memory) of a core, whichever is longer, "
		"over the best time. Allowed: the share of the peak that copying speed leaves to the op. "
		"With job.precision: bf16 or bf16-amx the peak of matmul is one of pairs or tiles, that "
		"of all other ops one of f32.\n"
		"Last: the sum over a step + the update, and the measured step.\n"
		"A repeated op finds in the caches what fits them. --cold: --repeat passes over the "
		"whole step instead, each op once a pass, so that operands are as far away as the step "
		"leaves them; best of the passes, mean over the ops of a row. Between ops the core's "
		"peak is measured again, since other work on the machine changes its clock. Of peak, in "
		"processor time: "
		"what an op did, over what the core's peak beside it would have done in its time; median "
		"of the passes.",
	.opts = HD_OPTS(HD_OPT_COLD, HD_OPT_REPEAT, HD_OPT_SET),
	.run = verb_bench_op, .test = "program_bench.sh",
};
