#include "cmd/bench/bench.h"

#include <stdlib.h>
#include <string.h>

#include "base/json_writer.h"
#include "sys/thread.h"
#include "device/peak.h"
#include "engine/op_times.h"
#include "engine/times.h"
#include "run/problem.h"

/* Where a step's time goes on device 0. Waiting for the others is part of joins and update. */
#define HD_BENCH_PHASES(X) \
	X(FORWARD,  "forward_ms",   "forward")      \
	X(BACKWARD, "backward_ms",  "backward")     \
	X(JOINS,    "joins_ms",     "joins")        \
	X(UPDATE,   "update_ms",    "update")       \
	X(WAIT,     "wait_data_ms", "waiting for data") \
	X(OTHER,    "other_ms",     "other")

enum {
#define X(id, name, text) PHASE_##id,
	HD_BENCH_PHASES(X)
#undef X
	NPHASES
};

static const struct { const char *name, *text; } phases[NPHASES] = {
#define X(id, name, text) { name, text },
	HD_BENCH_PHASES(X)
#undef X
};

/* Instructions to phases; folds of a device's own virtual nodes are inside B. */
static const struct { uint8_t ins, phase; } phase_of[] = {
	{ HD_INS_F, PHASE_FORWARD }, { HD_INS_FL, PHASE_FORWARD }, { HD_INS_B, PHASE_BACKWARD }, { HD_INS_BL, PHASE_BACKWARD },
	{ HD_INS_RED, PHASE_JOINS }, { HD_INS_NORM, PHASE_UPDATE }, { HD_INS_STEP, PHASE_UPDATE }, { HD_INS_LD, PHASE_WAIT },
};

struct bench {
	struct hd_times times, phase[NPHASES];
	double first, last; uint64_t n;
	double *loss;                     /* [steps]; NULL: not asked for */
	char digest[HD_HASH_HEX];         /* of the state after the timed steps */
};

/* What V virtual nodes on one device cost beyond V times one alone. Measured in rounds, a step of V and then
 * V steps of one, so that both meet the same neighbours on the machine: the round of the middle excess. */
struct overhead { bool measured; double step_ms, one_ms, rest_ms, folds_ms, excess; };

static void add_phases(struct bench *b, const struct hd_progress *p)
{
	double ms[NPHASES] = { 0 }, sum = 0;

	for (size_t i = 0; i < sizeof phase_of / sizeof *phase_of; i++) {
		ms[phase_of[i].phase] += (double)p->record.ins_ns[phase_of[i].ins] * 1e-6;
		sum += (double)p->record.ins_ns[phase_of[i].ins] * 1e-6;
	}
	ms[PHASE_OTHER] = p->step_ms > sum ? p->step_ms - sum : 0;
	for (int i = 0; i < NPHASES; i++)
		hd_times_add(&b->phase[i], ms[i]);
}

static void on_step(void *user, const struct hd_progress *p)
{
	struct bench *b = user;

	if (b->n++ == 0)
		b->first = p->loss;
	b->last = p->loss;
	if (b->loss)
		b->loss[b->n - 1] = p->loss;
	if (b->n <= HD_BENCH_WARMUP)
		return;
	hd_times_add(&b->times, p->step_ms);
	add_phases(b, p);
}

enum { MAX_ROUNDS = 101 };

/* How much of the least step its ops, alone and cold, and its joins and update explain; 0: not measured. */
struct explained { double ops_ms, update_ms, share; };

struct memory { double predicted_mib, peak_growth_mib, files_mib; };

static void print_text(const struct bench *b, const struct overhead *o, const struct explained *e,
	const struct memory *m, uint32_t nvns)
{
	printf("phases   ");
	for (int i = 0; i < NPHASES; i++)
		printf(" %s %.3f%s", phases[i].text, hd_times_quantile(&b->phase[i], 0.5),
			i + 1 < NPHASES ? "," : " ms, medians\n");
	if (o->measured)
		printf("nodes     %.3f ms for %u virtual nodes; %u x %.3f ms alone + %.3f ms folds + %.3f "
			"ms joins and update = %.3f ms: "
			"excess %.1f %%, the middle round\n", o->step_ms, nvns, nvns, o->one_ms, o->folds_ms,
			o->rest_ms,
			nvns * o->one_ms + o->folds_ms + o->rest_ms, o->excess * 100);
	else
		printf("nodes     cost of virtual nodes not measured: it is on one device (--devices "
			"1), and not of a graph in several intervals\n");
	if (e->share > 0)
		printf("explained %.1f %% of the least step: ops alone, cold %.3f + joins and update "
			"%.3f ms\n", e->share * 100, e->ops_ms, e->update_ms);
	else
		printf("explained not measured: ops are timed on one device, without lockstep\n");
	printf("memory    %.1f MiB predicted, the process grew by %.1f MiB at its peak, %.1f MiB of it "
		"pages of programs and files\n",
		m->predicted_mib, m->peak_growth_mib, m->files_mib);
}

static void print_members(struct hd_json_writer *w, const struct bench *b, const struct overhead *o,
	const struct explained *e, const struct memory *m)
{
	for (int i = 0; i < NPHASES; i++)
		hd_json_put_f64(w, phases[i].name, hd_times_quantile(&b->phase[i], 0.5));
	if (o->measured) {
		hd_json_put_f64(w, "virtual_nodes_ms", o->step_ms);
		hd_json_put_f64(w, "virtual_node_alone_ms", o->one_ms);
		hd_json_put_f64(w, "folds_ms", o->folds_ms);
		hd_json_put_f64(w, "joins_and_update_ms", o->rest_ms);
		hd_json_put_f64(w, "virtual_nodes_excess", o->excess);
	}
	if (e->share > 0) {
		hd_json_put_f64(w, "ops_cold_ms", e->ops_ms);
		hd_json_put_f64(w, "explained", e->share);
	}
	hd_json_put_f64(w, "memory_predicted_mib", m->predicted_mib);
	hd_json_put_f64(w, "memory_peak_growth_mib", m->peak_growth_mib);
	hd_json_put_f64(w, "memory_files_mib", m->files_mib);
}

static void print(struct hd_cmd *cmd, const struct bench *b, struct hd_run *run, const struct overhead *o,
	const struct explained *e, const struct memory *m, double peak)
{
	const struct hd_worker_spec *spec = hd_run_spec(run);
	double flops = hd_task_flops(hd_run_task(run)), median = hd_times_quantile(&b->times, 0.5),
		least = hd_times_quantile(&b->times, 0);
	double rate = median > 0 ? flops / (median * 1e-3) : 0;

	if (!cmd->args.has[HD_OPT_JSON]) {
		printf("step      %.3f ms median, %.3f least, %.3f p90 of %llu\n", median, least,
			hd_times_quantile(&b->times, 0.9),
			(unsigned long long)b->times.n);
		printf("work      %.3f GFLOP a step, %.1f GFLOP/s, %.0f %% of the %.1f GFLOP/s these cores "
			"reach\n", flops * 1e-9, rate * 1e-9,
			rate / peak * 100, peak * 1e-9);
		printf("floor     %.3f ms: all of it at that peak\n", flops / peak * 1e3);
		printf("devices   %u x %u threads, %s\nloss      %.6f first, %.6f last\nstate     %s\n",
			spec->ndevices, spec->nthreads,
			hd_worker_path(hd_run_worker(run)), b->first, b->last, b->digest);
		print_text(b, o, e, m, hd_run_task(run)->job->nvns);
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
	hd_json_put_f64(&w, "floor_ms", flops / peak * 1e3);
	hd_json_put_f64(&w, "loss_first", b->first);
	hd_json_put_f64(&w, "loss_last", b->last);
	if (b->loss) {
		hd_json_open_array(&w, "losses");
		for (uint64_t i = 0; i < b->n; i++)
			hd_json_put_f64(&w, NULL, b->loss[i]);
		hd_json_close(&w);
	}
	hd_json_put_i64(&w, "devices", spec->ndevices);
	hd_json_put_i64(&w, "threads", spec->nthreads);
	hd_json_put_text(&w, "kernels", hd_worker_path(hd_run_worker(run)));
	hd_json_put_text(&w, "digest", b->digest);
	hd_json_put_i64(&w, "virtual_nodes", hd_run_task(run)->job->nvns);
	print_members(&w, b, o, e, m);
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
void hd_bench_take_steps(struct hd_job *job, uint64_t nsteps)
{
	struct hd_job_value *steps = &job->value[HD_JOB_STEPS];

	if (steps->is_none || steps->i < (int64_t)nsteps)
		*steps = (struct hd_job_value){ .type = steps->type, .origin = HD_FROM_OPTION,
			.i = (int64_t)nsteps, .text = "" };
}

uint64_t hd_bench_repeat(const struct hd_cmd *cmd)
{
	return hd_args_count(&cmd->args, HD_OPT_REPEAT, HD_BENCH_REPEAT);
}

const char *hd_bench_path(struct hd_run *run)
{
	const enum hd_kernels kernels = hd_run_spec(run)->kernels;

	return kernels == HD_KERNELS_BF16 || kernels == HD_KERNELS_BF16_AMX ? hd_kernels_text(kernels) :
		hd_worker_path(hd_run_worker(run));
}

double hd_bench_peak(struct hd_cmd *cmd, struct hd_run *run)
{
	return hd_core_peak(hd_bench_path(run), &cmd->clock);
}

/* The same job with one virtual node of as many rows: another result, the same work per row. */
static enum hd_err job_of_one(struct hd_cmd *cmd, const struct hd_job *whole, struct hd_job *one)
{
	uint32_t nsets = cmd->args.nsets;
	enum hd_err err;

	if (nsets + 2 > HD_MAX_SETS)
		return hd_fail(&cmd->diag, HD_E_INVAL, "bench step adds two -s of its own: give at most %d",
			HD_MAX_SETS - 2);
	struct hd_text text;
	hd_text_init(&text, &cmd->arena);
	hd_text_addf(&text, "batch.global=%llu", (unsigned long long)whole->per_vn);
	if (text.full)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for a job");
	cmd->args.set[cmd->args.nsets++] = text.at;
	cmd->args.set[cmd->args.nsets++] = "batch.virtual_nodes=1";
	err = hd_session_job(cmd, cmd->args.pos[0], one, NULL, NULL);
	cmd->args.nsets = nsets;
	return err;
}

static enum hd_err run_of_one(struct hd_cmd *cmd, const struct hd_job *whole,
	const struct hd_worker_spec *spec, uint64_t nsteps, struct hd_run **run)
{
	struct hd_job *job = hd_arena_take(&cmd->arena, 1, sizeof *job);
	struct hd_run_options options = { .quiet_disk = true, .stop_at = HD_BENCH_WARMUP, .worker = *spec };
	enum hd_err err = job ? job_of_one(cmd, whole, job) : hd_fail(&cmd->diag, HD_E_NOMEM,
		"no memory for a job");

	options.worker.wave = 0;
	if (err)
		return err;
	hd_bench_take_steps(job, nsteps + HD_BENCH_WARMUP);
	err = hd_run_create(run, job, &cmd->fs, &cmd->clock, NULL, &options, &cmd->diag);
	return err ? err : hd_run_train(*run, &cmd->diag);
}

/* Times of `n` steps, in ms: of their virtual nodes (F and B), and of joins and updates. */
static enum hd_err time_steps(struct hd_worker *worker, uint32_t n, double *nodes_ms, double *rest_ms,
	struct hd_diag *diag)
{
	struct hd_step_record record;
	enum hd_err err = HD_OK;

	*nodes_ms = *rest_ms = 0;
	for (uint32_t i = 0; i < n && !err; i++) {
		err = hd_worker_step(worker, false, &record, diag);
		for (size_t k = 0; k < sizeof phase_of / sizeof *phase_of && !err; k++) {
			bool node = phase_of[k].phase == PHASE_FORWARD || phase_of[k].phase == PHASE_BACKWARD;
			if (node || phase_of[k].phase != PHASE_WAIT)
				*(node ? nodes_ms : rest_ms) += (double)record.ins_ns[phase_of[k].ins] * 1e-6;
		}
	}
	return err;
}

static int by_excess(const void *a, const void *b)
{
	double x = ((const struct overhead *)a)->excess, y = ((const struct overhead *)b)->excess;

	return (x > y) - (x < y);
}

static enum hd_err time_round(struct hd_worker *whole, struct hd_worker *one, uint32_t nvns,
	struct overhead *round, struct hd_diag *diag)
{
	double nodes_ms, alone_ms, unused_ms;
	struct hd_fold_times folds;
	enum hd_err err;

	*round = (struct overhead){ .measured = true };
	err = time_steps(whole, 1, &nodes_ms, &round->rest_ms, diag);
	if (!err)
		err = hd_worker_fold_times(whole, 1, &folds, diag);
	if (!err)
		err = time_steps(one, nvns, &alone_ms, &unused_ms, diag);
	if (err)
		return err;
	round->one_ms = alone_ms / nvns;
	round->step_ms = nodes_ms + round->rest_ms;
	round->folds_ms = (double)folds.nadds * folds.best_s * 1e3;
	round->excess = round->step_ms / (nvns * round->one_ms + round->folds_ms + round->rest_ms) - 1;
	return HD_OK;
}

/* A graph in several intervals has no virtual node that would be a job of its own. */
static bool has_overhead(struct hd_run *run)
{
	const struct hd_job *job = hd_run_task(run)->job;

	return hd_run_spec(run)->ndevices == 1 && !(hd_worker_lockstep(hd_run_worker(run)) &&
		!strcmp(hd_job_text(job, HD_JOB_DATA_KIND), "graph"));
}

/* The run has trained to its stop, and its job has `nrounds` steps more. */
static enum hd_err find_overhead(struct hd_cmd *cmd, const struct hd_job *job, struct hd_run *run,
	uint32_t nrounds, struct overhead *o)
{
	struct overhead *round = hd_arena_take(&cmd->arena, nrounds + 1, sizeof *round);
	struct hd_run *one = NULL;
	enum hd_err err;

	if (!round)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for times");
	err = run_of_one(cmd, job, hd_run_spec(run), (uint64_t)nrounds * job->nvns, &one);
	for (uint32_t i = 0; i < nrounds && !err; i++)
		err = time_round(hd_run_worker(run), hd_run_worker(one), job->nvns, &round[i], &cmd->diag);
	hd_run_destroy(one);
	if (!err) {
		qsort(round, nrounds, sizeof *round, by_excess);
		*o = round[nrounds / 2];
	}
	return err;
}

static enum hd_err explain(struct hd_cmd *cmd, struct hd_run *run, const struct bench *b, uint32_t nrounds,
	struct explained *e)
{
	struct hd_worker *worker = hd_run_worker(run);
	struct hd_op_times times;
	struct hd_diag unused = { "" };
	const struct hd_op_timing how = { .repeat = nrounds, .cold = true };
	enum hd_err err = hd_worker_op_times(worker, &how, &cmd->arena, &times, &unused);

	if (err == HD_E_REFUSED)
		return HD_OK;
	if (err) {
		cmd->diag = unused;
		return err;
	}
	e->ops_ms = hd_op_times_sum(&times) * 1e3;
	e->update_ms = hd_times_quantile(&b->phase[PHASE_JOINS], 0) +
		hd_times_quantile(&b->phase[PHASE_UPDATE], 0);
	e->share = (e->ops_ms + e->update_ms) / hd_times_quantile(&b->times, 0);
	return HD_OK;
}

static void look_at_memory(struct hd_run *run, struct memory *m)
{
	struct hd_worker *worker = hd_run_worker(run);
	struct hd_memory_growth growth;
	struct hd_memory_terms terms;

	hd_worker_memory(worker, &terms);
	hd_worker_growth(worker, &growth);
	*m = (struct memory){ (double)hd_memory_taken(&terms) / 0x1p20, (double)growth.peak / 0x1p20,
		(double)growth.files / 0x1p20 };
}

static enum hd_err save(struct hd_cmd *cmd, struct hd_run *run, uint64_t nsteps, struct bench *b)
{
	b->loss = hd_arena_take(&cmd->arena, nsteps, sizeof *b->loss);
	if (!b->loss)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for the losses of %llu steps",
			(unsigned long long)nsteps);
	return hd_problem_write(&cmd->fs, hd_run_task(run), hd_worker_state(hd_run_worker(run)), nsteps,
		cmd->args.text[HD_OPT_SAVE], &cmd->diag);
}

static enum hd_err verb_bench_step(struct hd_cmd *cmd)
{
	struct hd_job *job = hd_arena_take(&cmd->arena, 1, sizeof *job);
	struct bench *b = hd_arena_take(&cmd->arena, 1, sizeof *b);
	struct hd_run_options options = { .quiet_disk = true, .stages = true,
		.watch = { .user = b, .step = on_step } };
	struct hd_run *run = NULL;
	struct overhead overhead = { 0 };
	struct explained explained = { 0 };
	struct memory memory = { 0 };
	double peak = 1;
	enum hd_err err;

	if (!job || !b)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for a job");
	*b = (struct bench){ 0 };
	err = hd_session_job(cmd, cmd->args.pos[0], job, NULL, NULL);
	if (!err)
		err = hd_job_trains(job, &cmd->diag);
	if (!err)
		err = hd_session_devices(cmd, job, &options);
	options.stop_at = hd_bench_repeat(cmd) + HD_BENCH_WARMUP;
	uint32_t nrounds = (uint32_t)(hd_bench_repeat(cmd) < MAX_ROUNDS ? hd_bench_repeat(cmd) : MAX_ROUNDS);
	if (!err) {
		hd_bench_take_steps(job, options.stop_at + nrounds);
		err = hd_run_create(&run, job, &cmd->fs, &cmd->clock, NULL, &options, &cmd->diag);
	}
	if (!err && cmd->args.has[HD_OPT_SAVE])
		err = save(cmd, run, options.stop_at, b);
	if (!err)
		err = hd_run_train(run, &cmd->diag);
	if (!err) {
		look_at_memory(run, &memory);
		hd_hash_hex(hd_worker_digest(hd_run_worker(run)), b->digest);
		peak = hd_bench_peak(cmd, run) * cores_used(hd_run_spec(run));
		err = explain(cmd, run, b, nrounds, &explained);
		if (!err && has_overhead(run))
			err = find_overhead(cmd, job, run, nrounds, &overhead);
	}
	if (!err)
		print(cmd, b, run, &overhead, &explained, &memory, peak);
	hd_run_destroy(run);
	return err;
}

const struct hd_verb hd_verb_bench_step = {
	.name = "bench step", .args = "JOB", .npos_min = 1, .npos_max = 1,
	.about = "time the training step of a job",
	.more =
		"Medians of real steps after three others; phases are those of device 0, folds counted "
		"as backward, waits for other devices as joins and update. On one device the cost of "
		"virtual nodes too: V of them against V times the forward and backward pass of one (the "
		"same job with batch/V, V = 1) + folds + joins and update, least times; folds are taken "
		"as V - 1 passes over a gradient, which kernels that fold as they go undercut (an "
		"excess below zero). Not of a graph in several intervals.\n"
		"Memory: what is predicted before the first step, how far the process's resident bytes "
		"rose above what they were before there was a worker, and how much of that are pages of "
		"programs and files: no prediction counts those.\n"
		"Explained: how much of the step are its ops, timed cold (bench op --cold), and its "
		"joins and update; on one device. Floor: every operation of the step at the measured "
		"peak of fused multiply-adds, on all its cores; with job.precision: bf16 or bf16-amx at "
		"that of its products, which other ops do not have.\n"
		"Nothing of the run is kept.\n"
		"--save FILE.safetensors: the same problem for another program: parameters before the "
		"first step by the names of `model export`, the rows of step 0, 1, ... as step0.x, "
		"step0.y, ..., the job as JSON in the metadata; --json then has the loss of each of "
		"these steps to compare with.",
	.opts = HD_OPTS(HD_OPT_DEVICES, HD_OPT_THREADS, HD_OPT_REPEAT, HD_OPT_SAVE, HD_OPT_SET),
	.run = verb_bench_step, .test = "program_bench.sh",
};
