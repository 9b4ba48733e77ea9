#include "run/run_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json_writer.h"
#include "sys/memory.h"
#include "sys/thread.h"
#include "plan/plan.h"
#include "engine/choose.h"
#include "engine/closing.h"
#include "engine/judge.h"
#include "engine/dist.h"
#include "run/best.h"
#include "run/habits.h"
#include "run/kept_plan.h"
#include "run/pipes.h"
#include "run/identity.h"

enum {
	HD_DIGEST_SHARE = 100,            /* trace.digest: auto costs at most 1/100 of a step */
	HD_DIGEST_GBPS = 10, HD_STEP_GFLOPS = 100,
	HD_DIGEST_WARMUP = 3,             /* steps before a step's time is believed */
};

const struct hd_worker_spec *hd_run_spec(const struct hd_run *run) { return &run->options.worker; }
struct hd_worker *hd_run_worker(struct hd_run *run) { return run->worker; }
const struct hd_task *hd_run_task(const struct hd_run *run) { return run->task; }
struct hd_recorder *hd_run_recorder(const struct hd_run *run) { return run->recorder; }

bool hd_run_best(const struct hd_run *run, double *metric)
{
	if (run->has_metric)
		*metric = run->metric;
	return run->has_metric;
}

/* log.level keeps these from the screen; the event log has everything. Other kinds are warnings or
 * results. */
static bool is_shown(const struct hd_run *run, const char *kind)
{
	static const char *const chatter[] = { "choice", "plan", "predicted", "checkpoint_done", "best",
		"reader" };

	if (run->options.shared || hd_job_int(run->job, HD_JOB_LOG_LEVEL) >= HD_LOG_INFO)
		return true;              /* shared: the coordinator decides */
	for (size_t i = 0; i < sizeof chatter / sizeof *chatter; i++)
		if (!strcmp(chatter[i], kind))
			return false;
	return true;
}

static const char cut[] = " ... (cut)";

/* The members of an event, or less of its text where JSON makes too much of its bytes. */
static bool put_text(struct hd_text *body, char *text, size_t most)
{
	struct hd_json_writer w;

	if (strlen(text) > most)
		memcpy(text + most - sizeof cut, cut, sizeof cut);
	body->len = 0;
	body->full = false;
	hd_json_writer_init(&w, body);
	hd_json_open_object(&w, NULL);
	hd_json_put_text(&w, "text", text);
	hd_json_close(&w);
	return !body->full;
}

void hd_run_note(struct hd_run *run, const char *kind, const char *fmt, ...)
{
	char text[HD_RUN_NOTE], room[7 * HD_RUN_NOTE / 2];
	struct hd_text body;
	va_list args;

	va_start(args, fmt);
	if (vsnprintf(text, sizeof text, fmt, args) >= (int)sizeof text)
		memcpy(text + sizeof text - sizeof cut, cut, sizeof cut);
	va_end(args);
	if (run->options.watch.note && is_shown(run, kind))
		run->options.watch.note(run->options.watch.user, kind, text);
	if (!run->dir)
		return;
	hd_text_fixed(&body, room, sizeof room);
	if (!put_text(&body, text, HD_RUN_NOTE) && !put_text(&body, text, HD_RUN_NOTE / 2))
		return;
	body.at[body.len - 1] = 0;
	hd_rundir_event(run->dir, kind, run->worker ? hd_worker_at(run->worker) : 0, body.at + 1);
}

static void tell_weights(struct hd_run *run)
{
	const struct hd_task *task = run->task;
	uint32_t n = 0;
	char hex[HD_HASH_HEX];

	for (uint32_t p = 0; p < hd_fit_count(&task->train); p++)
		n += task->fit[p].from != NULL;
	hd_hash_hex(task->weights->digest, hex);
	hd_run_note(run, "choice", "weights: %u of %u tensors begin from %s (%s)", n,
		hd_fit_count(&task->train),
		task->weights->path, hex);
}

static void tell_terms(struct hd_run *run, const char *prefix, const struct hd_memory_terms *t)
{
	const double mib = 0x1p20;

	hd_run_note(run, "choice",
		"%smemory: %.1f MiB (parameters %.1f, optimizer %.1f, gradients %.1f, activations %.1f, "
		"inputs %.1f, kept samples %.1f, "
		"programs and scratch %.1f, process %.1f)", prefix, (double)hd_memory_of_process(t) / mib,
		(double)t->params / mib, (double)(t->slots - t->idle_slots) / mib,
		(double)(t->gradients - t->idle_gradients) / mib,
		(double)(t->arenas - t->idle_arenas) / mib, (double)(t->inputs - t->idle_inputs) / mib,
		(double)t->kept / mib, (double)t->own / mib, (double)t->process / mib);
}

void hd_run_tell_memory(struct hd_run *run)
{
	struct hd_memory_terms t;

	hd_worker_memory(run->worker, &t);
	tell_terms(run, "", &t);
}

/* One of them, as its hand will have it (elastic_compute.c). */
static enum hd_err tell_one(struct hd_run *run, const struct hd_pipes *pipes, const struct hd_view *view,
	const struct hd_plan *plan, uint32_t worker, uint64_t *sum, struct hd_diag *diag)
{
	struct hd_dist_view dist = { .plan = plan };
	const struct hd_worker_spec *spec = &run->options.worker;
	uint32_t nvns = 0;
	struct hd_memory_terms t;
	struct hd_diag why = { "" };
	char prefix[32];

	enum hd_err err = hd_pipes_part(&dist, pipes, view, worker, run->worker, &run->arena, &why);
	if (!err)
		err = hd_dist_memory(run->worker, &dist, &t, &why);
	if (err)
		return hd_fail(diag, err, "worker %u: %s", worker, why.text[0] ? why.text : "too many roots");
	for (uint32_t v = 0; v < run->job->nvns; v++) {
		bool its = false;
		for (uint32_t s = 0; s < hd_view_nstages(view); s++)
			its |= view->member[hd_view_runs(view, v, s)] == worker;
		nvns += its;
	}
	snprintf(prefix, sizeof prefix, "worker %u: ", worker);
	hd_run_note(run, "choice", "%s%u virtual nodes on %u device%s x %u thread%s", prefix, nvns,
		spec->ndevices,
		spec->ndevices == 1 ? "" : "s",
		spec->nthreads, spec->nthreads == 1 ? "" : "s");
	tell_terms(run, prefix, &t);
	*sum += t.total;
	return HD_OK;
}

/* Members of a run that only follow a stage, what that takes of them, and of the links. */
static void tell_followers(struct hd_run *run, const struct hd_pipes *pipes, const struct hd_view *view)
{
	const struct hd_stage_buckets *buckets = &pipes->buckets;

	for (uint32_t m = 0; m < view->nmembers; m++) {
		const uint32_t stage = hd_view_follows(view, view->member[m]);
		uint64_t state = 0, sums = 0;
		for (uint32_t b = 0; b < buckets->n && stage != HD_NOBODY; b++)
			if (buckets->at[b].readers >> stage & 1) {
				state += pipes->bytes[b];
				sums += hd_layout_bucket(&run->task->layout, b).len * sizeof(float);
			}
		if (stage != HD_NOBODY)
			hd_run_note(run, "choice", "worker %u: follows stage %u: %.1f MiB of its parameters "
				"and slots, and %llu bytes of its sums each step", view->member[m], stage,
				(double)state / 0x1p20, (unsigned long long)sums);
	}
}

enum hd_err hd_run_tell_team(struct hd_run *run, uint32_t n, struct hd_diag *diag)
{
	const struct hd_plan_job job = hd_worker_plan_job(run->worker);
	struct hd_memory_info machine;
	uint64_t sum = 0;
	struct hd_pipes pipes;
	struct hd_view view;
	struct hd_plan plan;

	if (n < 1 || n > HD_MAX_MEMBERS || n > HD_VIEW_RANKS / run->options.worker.ndevices)
		return hd_fail(diag, HD_E_INVAL,
			"%u workers of %u devices: a run has at most %d workers, and %d devices", n,
			run->options.worker.ndevices,
			HD_MAX_MEMBERS, HD_VIEW_RANKS);
	const struct hd_view_shape *shape = run->options.shape;
	enum hd_err err = shape ? hd_pipes_of_shape(&pipes, run->task, shape, &run->arena, diag) :
		hd_pipes_make(&pipes, run->task, &run->arena, diag);
	if (err)
		return err;
	(void)hd_pipes_view(&view, &pipes, n, run->options.worker.ndevices, job.nvns);
	err = hd_pipes_plan(&plan, &pipes, &view, &job, run->task, &run->arena, diag);
	for (uint32_t i = 0; i < n && !err; i++)
		err = tell_one(run, &pipes, &view, &plan, i, &sum, diag);
	if (!err)
		tell_followers(run, &pipes, &view);
	hd_memory_look(&machine);
	uint64_t here = machine.free_bytes + machine.rss_bytes;
	if (!err && n > 1)
		hd_run_note(run, "choice", "memory of all %u workers: %.1f MiB, %.1f MiB are free here", n,
			(double)sum / 0x1p20, (double)here / 0x1p20);
	return err;
}

static void tell_habits(struct hd_run *run)
{
	struct hd_arena arena;
	struct hd_text text;

	hd_arena_init(&arena, 0);
	hd_text_init(&text, &arena);
	hd_habits_batch(run->job, &text);
	hd_run_note(run, "choice", "%s", text.at);
	hd_text_init(&text, &arena);
	if (hd_habits_rates(run->task, &text))
		hd_run_note(run, "choice", "%s", text.at);
	hd_arena_finish(&arena);
}

static void tell_choices(struct hd_run *run)
{
	const struct hd_job_value *kernels = &run->job->value[HD_JOB_KERNELS];

	if (run->task->weights)
		tell_weights(run);
	hd_run_note(run, "choice", "data: %s", run->task->data->about);
	if (run->task->data->warning.text[0])
		hd_run_note(run, "warning", "%s", run->task->data->warning.text);
	hd_run_note(run, "choice", "model: %.3f M parameters in %u tensors, %.3f GFLOP per step",
		(double)run->task->layout.params_elems * 1e-6,
		run->task->wholes.n, hd_task_flops(run->task) * 1e-9);
	if (!strcmp(run->options.worker.kind, "cpu"))
		hd_run_note(run, "choice", "kernels: %s on %s (job.kernels: %s)", hd_run_kernels(run),
			hd_worker_path(run->worker), kernels->text);
	else
		hd_run_note(run, "choice", "kernels: those of the %s device (job.kernels chooses for cores)",
			hd_run_kernels(run));
	tell_habits(run);
	if (!run->options.shared)         /* else its part says how much */
		hd_run_tell_memory(run);
}

/* A run without a recorder is a run: where none can be made, that is said; an error for a folder asked for
 * by name. */
static enum hd_err start_recorder(struct hd_run *run, struct hd_diag *wrong)
{
	struct hd_recorder_spec spec = {
		.fs = run->fs, .worker = 0, .asked = !run->options.shared,
		.nranks = run->options.worker.ndevices,
		.nslots = (uint64_t)hd_job_int(run->job, HD_JOB_FLIGHT_SLOTS), .job = run->task->job_hash,
	};
	char folder[HD_PATH_CAP], traces[HD_PATH_CAP];
	struct hd_diag diag = { "" };

	const char *where = run->dir ? run->dir->path : run->options.recordings;
	if (!where || spec.nslots == 0)
		return HD_OK;
	snprintf(folder, sizeof folder, "%s/flight", where);
	snprintf(traces, sizeof traces, "%s/" HD_RUN_TRACES, where);
	spec.folder = folder;
	spec.traces = traces;
	enum hd_err err = run->dir ? HD_OK : hd_fs_mkdirs(run->fs, folder, &diag);
	if (!err)
		err = hd_recorder_open(&run->recorder, &spec, &diag);
	if (err && !run->dir)
		return hd_fail(wrong, err, "no recording in %s: %s", where, diag.text);
	if (err)
		hd_run_note(run, "warning", "no flight recorder: %s", diag.text);
	run->options.worker.recorder = run->recorder;
	if (hd_recorder_moved_to(run->recorder))
		hd_run_note(run, "flight", "%s lies on a network or FUSE file system: flight files are in %s",
			folder, hd_recorder_moved_to(run->recorder));
	if (hd_job_int(run->job, HD_JOB_RECORD))
		hd_recorder_record(run->recorder, 0, 0);
	return HD_OK;
}

static void tell_choice(struct hd_run *run, const struct hd_choices *choices, uint32_t i)
{
	const struct hd_choice *c = &choices->at[i];
	const double mib = 0x1p20;

	hd_run_note(run, "choice",
		"devices: %u x %u thread%s, waves of %u: %.1f MiB (gradients %.1f, activations %.1f), %.2f "
		"of the time of the chosen%s%s",
		c->ndevices, c->nthreads, c->nthreads == 1 ? "" : "s", c->wave, (double)c->memory.total / mib,
		(double)c->memory.gradients / mib,
		(double)c->memory.arenas / mib, c->step_s / choices->at[choices->best].step_s,
		i == choices->best ? ", chosen" : "",
		c->fits ? "" : ", does not fit");
}

static enum hd_err choose(struct hd_run *run, struct hd_diag *diag)
{
	struct hd_worker_spec *spec = &run->options.worker;
	struct hd_memory_info machine;
	struct hd_choices choices;
	struct hd_cores cores;

	hd_cores_usable(&cores);
	hd_memory_look(&machine);
	const uint64_t room = machine.free_bytes + hd_task_mapped_bytes(run->task, &machine);
	struct hd_choose_spec asked = { .ncores = run->options.auto_cores ? run->options.auto_cores : cores.n,
		.ndevices = spec->ndevices, .nthreads = spec->nthreads,
		.device_limit_bytes = spec->memory_limit_bytes,
		.machine_bytes = machine.limit_bytes < room ? machine.limit_bytes : room };
	enum hd_err err = hd_choose(&choices, run->task, &asked, diag);
	if (err)
		return err;
	spec->ndevices = choices.at[choices.best].ndevices;
	spec->nthreads = choices.at[choices.best].nthreads;
	spec->wave = choices.at[choices.best].wave;
	for (uint32_t i = 0; i < choices.n && !asked.ndevices && !run->options.shared; i++)
		if (run->options.explain || i == choices.best)
			tell_choice(run, &choices, i);
	return HD_OK;
}

static enum hd_err take_task(struct hd_run *run, struct hd_diag *diag)
{
	if (!run->options.task)
		return hd_task_create(&run->task, run->job, run->fs, diag);
	run->lent = *run->options.task;
	run->lent.job = run->job;
	run->task = &run->lent;
	return HD_OK;
}

enum hd_err hd_run_create(struct hd_run **out, const struct hd_job *job, struct hd_fs *fs,
	struct hd_clock *clock,
	struct hd_rundir *dir, const struct hd_run_options *options, struct hd_diag *diag)
{
	struct hd_run *run = hd_alloc(sizeof *run);
	enum hd_err err;

	if (!run)
		return hd_fail(diag, HD_E_NOMEM, "no memory for a run");
	*run = (struct hd_run){ .job = job, .fs = fs, .clock = clock, .dir = options->quiet_disk ? NULL : dir,
		.options = *options,
		.digest_every = job->value[HD_JOB_DIGEST].is_auto ? 0 : (uint64_t)hd_job_int(job,
		HD_JOB_DIGEST), .evaluated_step = UINT64_MAX };
	hd_arena_init(&run->arena, 0);
	hd_arena_init(&run->measured, 0);
	err = take_task(run, diag);
	if (!err)
		err = hd_best_check(job, run->task->data, diag);
	if (!err && run->dir)
		err = options->shared ? hd_identity_join(fs, dir->path, run->task, diag) :
			hd_identity_keep(dir, run->task, diag);
	if (!err)
		err = hd_run_plan_begin(run, diag);
	if (!err)
		err = hd_run_functions_open(run, diag);
	if (!err && !strcmp(run->options.worker.kind, "cpu"))
		err = choose(run, diag);
	if (!err)
		err = hd_run_plan_measure(run, diag);
	if (!err)
		err = start_recorder(run, diag);
	run->options.worker.by_stage = options->shared && hd_job_int(job, HD_JOB_SYNC) == HD_SYNC_STAGES;
	/* a worker of another machine has no folder of the run */
	run->options.worker.spill = dir ? dir->path : "/var/tmp";
	if (!err)
		err = hd_worker_create(&run->worker, run->task, &run->options.worker, diag);
	if (!err && !run->options.shared)
		err = hd_run_plan_adopt(run, diag);
	if (!err)
		tell_choices(run);
	if (!err)
		hd_run_functions_tell(run);
	if (!err && run->task != &run->lent)
		hd_task_drop_weights(run->task);
	if (err)
		hd_run_destroy(run);
	else
		*out = run;
	return err;
}

void hd_run_destroy(struct hd_run *run)
{
	if (!run)
		return;
	if (run->worker)
		hd_run_functions_look(run, true);
	hd_worker_destroy(run->worker);
	hd_run_functions_close(run);
	hd_samples_close(&run->samples);
	hd_value_log_close(&run->values);
	hd_recorder_close(run->recorder);
	if (run->task != &run->lent)
		hd_task_destroy(run->task);
	hd_arena_finish(&run->arena);
	hd_arena_finish(&run->measured);
	hd_free(run);
}

/* ---- evaluation */

enum hd_err hd_run_eval(struct hd_run *run, const char *split, struct hd_metrics *metrics,
	struct hd_diag *diag)
{
	uint32_t s = hd_dataset_split(run->task->data, split);

	if (s == HD_NONE || run->task->data->split[s].count == 0)
		return hd_fail(diag, HD_E_INVAL, "the data have no samples in a split \"%s\": %s", split,
			run->task->data->about);
	struct hd_forward_job job = { .split = s, .count = run->task->data->split[s].count };
	return hd_worker_forward(run->worker, &job, metrics, diag);
}

static const char *eval_split(const struct hd_run *run)
{
	static const char *const prefer[] = { "valid", "test" };

	for (size_t i = 0; i < sizeof prefer / sizeof *prefer; i++) {
		uint32_t s = hd_dataset_split(run->task->data, prefer[i]);
		if (s != HD_NONE && run->task->data->split[s].count)
			return prefer[i];
	}
	return NULL;
}

/* By eval.weights; the parameters are back whatever came of it. */
static enum hd_err eval_by_weights(struct hd_run *run, const char *split, struct hd_metrics *m,
	struct hd_diag *diag)
{
	const bool means = hd_job_int(run->job, HD_JOB_EVAL_WEIGHTS) == HD_EVAL_EMA;
	enum hd_err err = means ? hd_worker_exchange_means(run->worker, diag) : HD_OK;

	if (err)
		return err;
	err = hd_run_eval(run, split, m, diag);
	enum hd_err back = means ? hd_worker_exchange_means(run->worker, NULL) : HD_OK;
	return err ? err : back;
}

static enum hd_err evaluate(struct hd_run *run, struct hd_diag *diag)
{
	const char *split = eval_split(run);
	struct hd_metrics m;

	if (!split || run->evaluated_step == hd_worker_at(run->worker))
		return HD_OK;
	if (run->options.watch.evaluating)
		run->options.watch.evaluating(run->options.watch.user, split);
	if (run->dir)
		hd_rundir_hold_as(run->dir, HD_HOLD_EVALUATES);
	const uint64_t began = hd_recorder_now(run->recorder);
	enum hd_err err = eval_by_weights(run, split, &m, diag);
	hd_recorder_span(run->recorder, HD_RECORDER_RUN, HD_RECORDED_EVALUATION, began,
		hd_work_arg(0, UINT32_MAX, UINT32_MAX));
	if (run->dir)
		hd_rundir_hold_as(run->dir, HD_HOLD_ALONE);
	if (err)
		return err;
	int64_t metric = hd_job_int(run->job, HD_JOB_METRIC);
	run->metric = metric == HD_METRIC_LOSS ? hd_metrics_loss(&m) :
		metric == HD_METRIC_ACCURACY ? hd_metrics_accuracy(&m) :
		metric == HD_METRIC_PERPLEXITY ? hd_metrics_perplexity(&m) :
		m.measure[metric - HD_METRIC_PERPLEXITY - 1];
	run->has_metric = true;
	run->evaluated_step = hd_worker_at(run->worker);
	const struct hd_job_value *target = &run->job->value[HD_JOB_TARGET];
	if (!target->is_none && hd_worker_computes(run->worker))
		run->target_reached = hd_measure_more(hd_job_text(run->job, HD_JOB_METRIC)) ?
			run->metric >= target->f : run->metric <= target->f;
	if (run->options.watch.eval)
		run->options.watch.eval(run->options.watch.user, run->evaluated_step, split, &m);
	if (run->dir)
		hd_rundir_eval(run->dir, run->evaluated_step, split, &m);
	return hd_run_keep_best(run, &m, diag);
}

/* ---- the loop */

/* Counted from step 0, so that runs of one job have digests of the same steps, begun or resumed wherever.
 * With auto the cost is measured once before the first step, and the interval chosen after a few; workers
 * that share a step must agree without a clock: they count. */
bool hd_run_digest_due(const struct hd_run *run)
{
	return hd_run_digest_every(run) && (hd_worker_at(run->worker) + 1) % run->digest_every == 0;
}

/* Bytes that are hashed at HD_DIGEST_GBPS, operations of a step at HD_STEP_GFLOPS: both of one core of
 * this day. */
static uint64_t counted_interval(const struct hd_run *run)
{
	uint64_t bytes = (1 + hd_optim_nslots(&run->task->optim)) * run->task->layout.elems *
		sizeof(float);
	double digest_ms = (double)bytes / (HD_DIGEST_GBPS * 1e6);
	double step_ms = hd_task_flops(run->task) / (HD_STEP_GFLOPS * 1e6);

	return hd_times_interval(digest_ms, step_ms > 0 ? step_ms : 1, HD_DIGEST_SHARE);
}

static void measure_digest(struct hd_run *run)
{
	int64_t began_ns = hd_clock_now_ns(run->clock);

	hd_worker_digest(run->worker);
	run->digest_ms = (double)(hd_clock_now_ns(run->clock) - began_ns) *
		1e-6 / run->options.worker.ndevices;
}

static void choose_digest(struct hd_run *run)
{
	double step_ms = hd_times_quantile(&run->times, 0.5);

	run->digest_every = hd_times_interval(run->digest_ms, step_ms > 0 ? step_ms : 1, HD_DIGEST_SHARE);
	hd_run_note(run, "choice", "trace.digest: every %llu steps (%.2f ms each, a step takes %.1f ms)",
		(unsigned long long)run->digest_every,
		run->digest_ms, step_ms);
}

void hd_run_say_recorded(struct hd_run *run)
{
	struct hd_recorder_said said;

	if (hd_recorder_said(run->recorder, &said))
		hd_run_note(run, said.kind, "%s", said.text);
}

static void report_step(struct hd_run *run, const struct hd_step_record *r, double step_ms)
{
	struct hd_progress p = { .record = *r, .plan = &run->plan, .nsteps = run->task->nsteps,
		.step_ms = step_ms, .times = &run->times };
	uint64_t nrows = hd_sampler_rows(&run->task->sampler, r->step);
	double since_s = (double)(hd_clock_now_ns(run->clock) - run->began_ns) * 1e-9;
	uint64_t done = r->step + 1 - run->began_step;

	hd_times_add(&run->times, step_ms);
	p.loss = r->weight > 0 ? r->loss_sum / r->weight : 0;
	p.samples_per_s = step_ms > 0 ? (double)nrows * 1e3 / step_ms : 0;
	p.wait_share = step_ms > 0 ? (double)r->wait_data_ns * 1e-6 / step_ms : 0;
	p.eta_s = (double)(run->task->nsteps - r->step - 1) * since_s / (double)done;
	if (run->options.watch.step)
		run->options.watch.step(run->options.watch.user, &p);
	hd_run_say_recorded(run);
	const struct hd_step_times times = { .step_ms = step_ms, .wait_ms = p.wait_share * step_ms,
		.workers = 1 };
	if (run->dir)
		hd_rundir_stepped(run->dir, r, &times, run->plan.number);
	if (run->dir && (r->step + 1) % (uint64_t)hd_job_int(run->job, HD_JOB_METRICS_EVERY) == 0)
		hd_rundir_metrics(run->dir, r, &times, run->plan.number);
}

static enum hd_err put_samples(struct hd_run *run, uint64_t step, uint32_t worker,
	const struct hd_vrange *range, uint32_t nranges,
	struct hd_diag *diag)
{
	enum hd_err err = HD_OK;
	uint64_t n;

	if (!run->samples.room || run->samples_of != worker) {
		hd_samples_close(&run->samples);
		err = hd_samples_open(&run->samples, run->fs, run->dir->path, worker, run->job->nvns,
			run->job->batch, diag);
	}
	run->samples_of = worker;
	for (uint32_t i = 0; i < nranges && !err; i++)
		for (uint32_t v = range[i].first; v < range[i].first + range[i].n; v++) {
			const struct hd_sample *sample = hd_worker_took(run->worker, v, &n);
			hd_samples_put(&run->samples, step, v, sample, n);
		}
	return err ? err : hd_samples_write(&run->samples, diag);
}

void hd_run_took(struct hd_run *run, uint64_t step, uint32_t worker, const struct hd_vrange *range,
	uint32_t nranges)
{
	struct hd_diag diag = { "" };

	if (!hd_job_int(run->job, HD_JOB_SAMPLES) || !run->dir || run->no_samples)
		return;
	if (!put_samples(run, step, worker, range, nranges, &diag))
		return;
	run->no_samples = true;
	hd_run_note(run, "warning", "no more record of samples from step %llu on: %s",
		(unsigned long long)step,
		diag.text);
}

/* What the reader's tuner has decided since the last step. */
static void tell_reader(struct hd_run *run)
{
	struct hd_dataset *set = run->task->data;
	char line[HD_READING_TEXT];

	while (set->reading && set->reading->said(set, line))
		hd_run_note(run, "reader", "%s", line);
}

static enum hd_err one_step(struct hd_run *run, struct hd_diag *diag)
{
	int64_t began_ns = hd_clock_now_ns(run->clock);
	struct hd_step_record record;
	enum hd_err err = hd_worker_step(run->worker, hd_run_digest_due(run), &record, diag);

	if (err)
		return err;
	double ms = (double)(hd_clock_now_ns(run->clock) - began_ns) * 1e-6;
	hd_run_functions_look(run, false);
	tell_reader(run);
	hd_run_took(run, record.step, 0, &(struct hd_vrange){ 0, run->job->nvns }, 1);
	hd_run_made(run, 0);
	report_step(run, &record, ms);
	err = hd_run_plan_watch(run, diag);
	if (err)
		return err;
	if (run->digest_every == 0 && run->times.n == HD_DIGEST_WARMUP)
		choose_digest(run);
	if (record.skipped)
		hd_run_note(run, "warning", "step %llu was skipped: its gradient is not finite",
			(unsigned long long)record.step);
	return HD_OK;
}

void hd_run_watch(struct hd_run *run, const struct hd_run_watch *watch) { run->options.watch = *watch; }

void hd_run_begin(struct hd_run *run)
{
	const struct hd_run_watch *watch = &run->options.watch;
	struct hd_dataset *set = run->task->data;

	if (set->reading && watch->waits && !run->options.shared)
		set->reading->listen(set, watch->waits, watch->user);
	run->began_step = hd_worker_at(run->worker);
	run->began_ns = run->last_ckpt_ns = hd_clock_now_ns(run->clock);
	hd_saving_begin(&run->saving);
	if (hd_run_spaces_saves(run) && run->dir)
		(void)hd_ckpt_every_get(&run->saving, run->fs, run->dir->path);
	if (run->digest_every == 0 && run->options.shared)
		run->digest_every = counted_interval(run);
	else if (run->digest_every == 0)
		measure_digest(run);
}

/* A process that ends in the place of another finds out by itself whether the target was reached. */
bool hd_run_evaluates(const struct hd_run *run, bool end)
{
	uint64_t every = (uint64_t)hd_job_int(run->job, HD_JOB_EVAL_EVERY), at = hd_worker_at(run->worker);
	bool last = at == run->task->nsteps || run->target_reached, due = every && at && at % every == 0;

	return end ? last || (due && !run->job->value[HD_JOB_TARGET].is_none) : due;
}

/* From the step at hand on no row is late, where the job has batch.close. */
static enum hd_err look_at_closing(struct hd_run *run, struct hd_diag *diag)
{
	enum hd_err err = hd_closing_look(run->worker, diag);
	double measure;

	if (!err && hd_closing_begins(run->worker, &measure))
		hd_run_note(run, "closing", "step %llu: %s %.4g on the validation set is within %g of %g "
			"(batch.close): from this step on no row is late",
			(unsigned long long)hd_worker_at(run->worker),
			hd_job_text(run->job, HD_JOB_CLOSE_METRIC), measure,
			hd_job_num(run->job, HD_JOB_CLOSE_MARGIN), hd_job_num(run->job, HD_JOB_CLOSE_TARGET));
	return err;
}

/* Does the rate fall from the step at hand on, or is the job done before it? */
static enum hd_err look_at_judges(struct hd_run *run, struct hd_diag *diag)
{
	static const char *const comes[] = { [HD_JUDGE_PLATEAU] = "the rate falls (optim.schedule)",
		[HD_JUDGE_STOP] = "the job is done (stop.patience)" };
	enum hd_err err = hd_judges_look(run->worker, diag);
	struct hd_arena arena;
	struct hd_text text;

	hd_arena_init(&arena, 0);
	for (int k = 0; k < HD_NJUDGES && !err; k++) {
		hd_text_init(&text, &arena);
		if (hd_judges_say(run->worker, (enum hd_judge_kind)k, &text))
			hd_run_note(run, "judged", "%s: %s", text.at, comes[k]);
	}
	hd_arena_finish(&arena);
	if (!err && hd_judges_stop(run->worker) && hd_worker_computes(run->worker))
		run->target_reached = true;
	return err;
}

static bool is_asked(const struct hd_run *run) { return run->asked_at == hd_worker_at(run->worker) + 1; }

enum hd_err hd_run_boundary(struct hd_run *run, bool end, bool *reached, struct hd_diag *diag)
{
	const int64_t began_ns = hd_clock_now_ns(run->clock);
	enum hd_err err = HD_OK;

	if (!run->target_reached && (!end || !run->job->value[HD_JOB_STOP_PATIENCE].is_none))
		err = look_at_judges(run, diag);
	if (!err && hd_run_evaluates(run, end))
		err = evaluate(run, diag);
	if (!err && !end && !run->target_reached)
		err = look_at_closing(run, diag);
	*reached = run->target_reached;
	run->asked_ns += hd_clock_now_ns(run->clock) - began_ns;
	if (!err && end)
		err = hd_run_save(run, diag);
	else if (!err && (is_asked(run) ? run->asked_saves : hd_run_saves(run, false)))
		err = hd_run_try_save(run, diag);
	run->asked_at = 0;
	return err;
}

bool hd_run_saves(struct hd_run *run, bool end)
{
	/* the same boundary again, after a loss: the time since is no cost of it */
	run->asked_ns = hd_clock_now_ns(run->clock);
	if (!is_asked(run))
		run->asked_saves = hd_run_save_due(run);
	run->asked_at = hd_worker_at(run->worker) + 1;
	return end || run->asked_saves;
}

uint64_t hd_run_digest_every(const struct hd_run *run)
{
	return run->options.shared && hd_job_copies(run->job) && run->task->wholes.sliced ? 0 :
		run->digest_every;
}

const char *hd_run_held_back(const struct hd_run *run) { return run->held_back; }

static enum hd_err wants_stop(struct hd_run *run)
{
	enum hd_err stop = run->options.stop ? run->options.stop(run->options.watch.user) : HD_OK;

	return !stop && run->dir && hd_rundir_is_gone(run->dir) ? HD_E_NOTFOUND : stop;
}

/* A process that must leave at once meanwhile writes its own line after this one, and does not return:
 * the last one says how it ended. */
static void ends(struct hd_run *run, enum hd_err err, const struct hd_diag *why)
{
	const uint64_t at = hd_worker_at(run->worker);

	if (run->dir && !err)
		hd_held_back_note(run->dir, run->began_step, at, run->held_back);
	if (run->dir && !err && run->target_reached)
		hd_ending_reached(run->dir, at, run->task->nsteps);
	else if (run->dir)
		hd_ending_ends(run->dir, at, run->task->nsteps, err, why);
	hd_signal_word_set(NULL);
}

/* The state of a step that diverged, or had no samples, is the good one before it: keep that. */
static enum hd_err end_badly(struct hd_run *run, enum hd_err err, const struct hd_diag *why)
{
	if (err == HD_E_DIVERGED)
		(void)!hd_run_try_save(run, &(struct hd_diag){ "" });
	hd_run_keep_unread(run);
	if (run->dir)
		hd_rundir_event(run->dir, err == HD_E_DIVERGED ? "diverged" : "warning",
			hd_worker_at(run->worker), "");
	ends(run, err, why);
	return err;
}

/* A checkpoint may be of more steps than have lines: their disk was full, or the machine died before they
 * were on it. */
static void look_at_records(struct hd_run *run)
{
	uint64_t every = (uint64_t)hd_job_int(run->job, HD_JOB_METRICS_EVERY),
		recorded = hd_rundir_recorded(run->dir);

	if (run->began_step / every > recorded / every)
		hd_run_note(run, "unrecorded",
			"the %llu steps before step %llu have no line in metrics.ndjson: it could not be "
			"written, or the machine died before "
			"it was on the disk", (unsigned long long)(run->began_step / every -
			recorded / every), (unsigned long long)run->began_step);
	if (run->began_step < recorded)
		hd_run_note(run, "again",
			"%llu steps that have a line are done again, from the checkpoint of step %llu on",
			(unsigned long long)(recorded - run->began_step),
			(unsigned long long)run->began_step);
}

static void be_ready(struct hd_run *run)
{
	if (run->dir)
		hd_ending_at_once(&run->word, run->dir, hd_worker_at(run->worker), run->task->nsteps);
}

/* Of a run that goes on where its target may have been reached: it ends there, as one does that was not
 * killed. */
static enum hd_err look_at_target(struct hd_run *run, bool *reached, struct hd_diag *diag)
{
	enum hd_err err = run->began_step && !run->job->value[HD_JOB_TARGET].is_none &&
		hd_run_evaluates(run, false) ? evaluate(run, diag) : HD_OK;

	if (!err && run->began_step && !run->target_reached)
		err = look_at_judges(run, diag);
	*reached = run->target_reached;
	return err;
}

enum hd_err hd_run_train(struct hd_run *run, struct hd_diag *diag)
{
	uint64_t end = run->options.stop_at && run->options.stop_at < run->task->nsteps ?
		run->options.stop_at : run->task->nsteps;
	enum hd_err err = HD_OK, stop = HD_OK;
	bool reached = false;

	hd_run_begin(run);
	if (run->dir) {
		hd_ending_begins(run->dir, run->began_step, run->task->nsteps);
		hd_rundir_watch(run->dir, run->job, run->began_step);
		be_ready(run);
		hd_rundir_hold_as(run->dir, HD_HOLD_ALONE);       /* from here on it can be asked to stop */
		look_at_records(run);
	}
	if ((err = look_at_target(run, &reached, diag)))
		return end_badly(run, err, diag);
	while (hd_worker_at(run->worker) < end && !reached && !(stop = wants_stop(run))) {
		err = one_step(run, diag);
		be_ready(run);
		if (!err)
			err = hd_run_boundary(run, false, &reached, diag);
		if (err)
			return end_badly(run, err, diag);
	}
	err = hd_run_boundary(run, true, &reached, diag);
	hd_run_functions_look(run, true);
	hd_run_plan_end(run);
	if (!err && stop == HD_E_NOTFOUND)
		err = hd_fail(diag, stop, HD_RUNDIR_GONE, run->dir->path);
	if (!err && stop)
		err = hd_fail(diag, stop, "stopped at step %llu",
			(unsigned long long)hd_worker_at(run->worker));
	ends(run, err, diag);
	return err;
}
