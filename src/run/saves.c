/* What a run saves, and goes on from: its checkpoints, and the best of its evaluations. */
#include "run/run_int.h"

#include <stdio.h>
#include <string.h>

#include "spot/resilience.h"
#include "engine/lockstep.h"
#include "run/best.h"
#include "run/kept_job.h"

enum { HD_LOOK_SHARE = 100 };             /* looks at the files of the data take at most 1/100 of the time */

/* The choice between a library and ours is one of cores; other kinds of devices have kernels of their own. */
const char *hd_run_kernels(const struct hd_run *run)
{
	const struct hd_worker_spec *spec = &run->options.worker;

	if (strcmp(spec->kind, "cpu") != 0)
		return spec->kind;
	return hd_kernels_text(spec->kernels);
}

/* The sums of this job that were made otherwise once. */
static void find_orders(bool order[HD_CKPT_NORDERS], const struct hd_run *run)
{
	const struct hd_task *task = run->task;
	const bool by_norms = hd_job_num(task->job, HD_JOB_CLIP) > 0 ||
		hd_optims[task->optim.kind].unit == HD_UNIT_TENSOR;

	order[HD_CKPT_ORDER_TIED] = task->layout.ngrads > task->layout.nparams;
	order[HD_CKPT_ORDER_SLICED] = task->wholes.sliced && by_norms;
}

static struct hd_ckpt_info describe(const struct hd_run *run)
{
	struct hd_ckpt_info info = {
		.step = hd_worker_at(run->worker), .samples =
			(uint64_t)*(int64_t *)hd_state_find(hd_worker_state(run->worker), "run.samples")->at,
		.job_hash = run->task->job_hash, .data_hash = run->task->data->hash,
		.data_count = run->task->data->count,
		.fingerprint = hd_worker_fingerprint(run->worker), .lineage = run->lineage,
	};

	find_orders(info.order, run);
	snprintf(info.kernels, sizeof info.kernels, "%s", hd_run_kernels(run));
	snprintf(info.model, sizeof info.model, "%s", hd_job_text(run->job, HD_JOB_MODEL));
	return info;
}

enum hd_err hd_run_look(struct hd_run *run, bool must, struct hd_diag *diag)
{
	int64_t began_ns = hd_clock_now_ns(run->clock);

	if (!must && began_ns < run->look_ns)
		return HD_OK;
	enum hd_err err = hd_dataset_look(run->task->data, run->fs, diag);
	int64_t now_ns = hd_clock_now_ns(run->clock);
	run->look_ns = now_ns + HD_LOOK_SHARE * (now_ns - began_ns);
	run->stale |= err != HD_OK;
	return err;
}

bool hd_run_spaces_saves(const struct hd_run *run) { return run->job->value[HD_JOB_CKPT_EVERY].is_auto; }

/* What was not computed must never be taken for a result. */
static void note_no_checkpoint(struct hd_run *run)
{
	if (!run->told_no_ckpt)
		hd_run_note(run, "warning",
			"no checkpoints: devices of kind %s compute nothing, the run shows costs only",
			run->options.worker.kind);
	run->told_no_ckpt = true;
}

/* One process is lost with all that it holds: by the losses that are expected before any was seen. One of
 * several leaves it to its coordinator. */
static void saved(struct hd_run *run, double took_s)
{
	const int64_t ran_ms = (run->last_ckpt_ns - run->began_ns) / 1000000;
	const double back_h = 3.6e6 / (double)(ran_ms + HD_RESILIENCE_FIRST_MS);
	char why[HD_SAVING_WORDS];
	struct hd_diag unkept = { "" };

	hd_saving_saved(&run->saving, took_s);
	if (!hd_run_spaces_saves(run) || run->options.shared || !hd_saving_judge(&run->saving, back_h))
		return;
	hd_run_note(run, "saving", "checkpoints %s", hd_saving_why(&run->saving, back_h, why));
	if (hd_ckpt_every_put(run->dir, &run->saving, &unkept))
		hd_run_note(run, "warning", "%s", unkept.text);
}

/* Below the run's checkpoints, or in `folder` there. */
static enum hd_err write_state(struct hd_run *run, const char *folder, struct hd_ckpt_info *info,
	uint32_t keep, struct hd_diag *diag)
{
	char parent[HD_PATH_CAP];
	enum hd_err err = hd_run_look(run, true, diag);

	if (!err)
		err = hd_ckpt_claim(run->fs, run->dir->path, hd_job_text(run->job, HD_JOB_CKPT_DIR), parent,
			sizeof parent, diag);
	if (!err && folder && strlen(parent) + strlen(folder) + 2 > sizeof parent)
		err = hd_fail(diag, HD_E_INVAL, "the path %.100s... is too long", parent);
	if (!err && folder)
		snprintf(parent + strlen(parent), sizeof parent - strlen(parent), "/%s", folder);
	run->torn = !hd_worker_as_reported(run->worker);
	if (!err && run->torn)
		err = hd_fail(diag, HD_E_INTEGRITY,
			"the state before step %llu is not the one that its digest was taken of a moment "
			"ago: the memory of this "
			"machine gives wrong bits", (unsigned long long)info->step);
	if (!err)
		hd_rundir_sync(run->dir);
	return err ? err : hd_ckpt_write(run->fs, parent, hd_worker_state(run->worker), info, keep,
		hd_job_int(run->job, HD_JOB_CKPT_VERIFY) == HD_VERIFY_READ_BACK, diag);
}

enum hd_err hd_run_save(struct hd_run *run, struct hd_diag *diag)
{
	struct hd_ckpt_info info = describe(run);
	const int64_t began_ns = run->asked_at == info.step + 1 ? run->asked_ns :
		hd_clock_now_ns(run->clock);

	if (!run->dir || run->last_ckpt_step == info.step + 1)
		return HD_OK;
	if (!hd_worker_computes(run->worker)) {
		note_no_checkpoint(run);
		return HD_OK;
	}
	const uint64_t began = hd_recorder_now(run->recorder);
	enum hd_err err = write_state(run, NULL, &info, (uint32_t)hd_job_int(run->job, HD_JOB_CKPT_KEEP),
		diag);
	hd_recorder_span(run->recorder, HD_RECORDER_RUN, HD_RECORDED_CHECKPOINT, began,
		hd_work_arg(info.len_bytes, UINT32_MAX, UINT32_MAX));
	run->last_ckpt_ns = hd_clock_now_ns(run->clock);
	if (err)
		return err;
	run->last_ckpt_step = info.step + 1;
	const double took_s = (double)(run->last_ckpt_ns - began_ns) * 1e-9;
	char said[120];
	hd_ckpt_done_say(said, sizeof said, info.step, info.len_bytes, took_s);
	hd_run_note(run, "checkpoint_done", "%s", said);
	saved(run, took_s);
	return HD_OK;
}

/* One that fails in the middle of a run costs nothing but itself, unless it is for the state. */
enum hd_err hd_run_try_save(struct hd_run *run, struct hd_diag *diag)
{
	struct hd_diag why = { "" };
	enum hd_err err = hd_run_save(run, &why);

	if (err && (run->torn || run->stale))
		return hd_fail(diag, err, "%s", why.text);
	if (err && !run->unsaved++)
		hd_run_note(run, "warning",
			"no checkpoint at step %llu: %s; the older ones are kept, the run goes on and tells "
			"when one is saved again",
			(unsigned long long)hd_worker_at(run->worker), why.text);
	if (!err && run->unsaved) {
		hd_run_note(run, "warning", "a checkpoint is saved again, after %u that could not be",
			run->unsaved);
		run->unsaved = 0;
	}
	return HD_OK;
}

void hd_run_keep_unread(struct hd_run *run)
{
	const uint64_t at = hd_worker_at(run->worker);

	if (!hd_worker_unread(run->worker) || hd_run_try_save(run, &(struct hd_diag){ "" }) ||
		run->last_ckpt_step != at + 1)
		return;
	hd_run_note(run, "warning",
		"the samples of step %llu could not be read; the state before it is kept: heddle resume goes "
		"on from there", (unsigned long long)at);
}

bool hd_run_keeps_best(const struct hd_run *run)
{
	return hd_job_int(run->job, HD_JOB_CKPT_BEST) != HD_BEST_NONE;
}

/* What is the best so far is on the disk alone: another worker may have kept it. */
enum hd_err hd_run_keep_best(struct hd_run *run, const struct hd_metrics *metrics, struct hd_diag *diag)
{
	struct hd_ckpt_info info = describe(run), there;
	struct hd_diag why = { "" };
	char said[HD_BEST_WORDS], parent[HD_PATH_CAP];

	if (!hd_run_keeps_best(run) || !run->dir || !hd_worker_computes(run->worker) ||
		!hd_best_judge(&info, run->job, metrics))
		return HD_OK;
	if (!hd_ckpt_place(run->fs, run->dir->path, hd_job_text(run->job, HD_JOB_CKPT_DIR), parent,
		sizeof parent, NULL) && hd_best_find(&there, run->fs, parent, &info) &&
		!hd_best_beats(&info, &there))
		return HD_OK;
	enum hd_err err = write_state(run, HD_CKPT_BEST, &info, 1, &why);
	if (err && (run->torn || run->stale))
		return hd_fail(diag, err, "%s", why.text);
	if (err)
		hd_run_note(run, "warning", "%s is the best so far and could not be kept: %s",
			hd_best_say(said, &info), why.text);
	else
		hd_run_note(run, "best", "%s", hd_best_say(said, &info));
	return HD_OK;
}

/* What the coordinator says of it, not at each of many short steps. */
static void look_at_every(struct hd_run *run, int64_t now_ns)
{
	if (!run->options.shared || !run->dir || now_ns < run->every_ns)
		return;
	(void)hd_ckpt_every_get(&run->saving, run->fs, run->dir->path);
	run->every_ns = now_ns + HD_SAVING_LEAST_MS * INT64_C(1000000);
}

bool hd_run_save_due(struct hd_run *run)
{
	const struct hd_job_value *every = &run->job->value[HD_JOB_CKPT_EVERY];
	const int64_t now_ns = hd_clock_now_ns(run->clock);

	if (every->every_steps)
		return hd_worker_at(run->worker) % (uint64_t)every->i == 0;
	if (hd_run_spaces_saves(run))
		look_at_every(run, now_ns);
	return now_ns - run->last_ckpt_ns >=
		(hd_run_spaces_saves(run) ? (int64_t)run->saving.every_ms * 1000000 :
		every->i);
}

/* The first of its orders that this job does not have, or lacks; HD_CKPT_NORDERS: none. */
static enum hd_ckpt_order other_order(const struct hd_run *run, const struct hd_ckpt_info *info)
{
	bool order[HD_CKPT_NORDERS];
	int i = 0;

	find_orders(order, run);
	while (i < HD_CKPT_NORDERS && order[i] == info->order[i])
		i++;
	return (enum hd_ckpt_order)i;
}

/* The first dimension is one of steps: of the job, of those that rows are late. */
static bool has_steps_of(const struct hd_state *a, const struct hd_state *b, const char *name)
{
	const struct hd_state_entry *in_a = hd_state_find(a, name), *in_b = hd_state_find(b, name);

	return in_a && in_b ? in_a->rank && in_b->rank && in_a->dim[0] == in_b->dim[0] : in_a == in_b;
}

/* Rows that are late, and which they were, go on in no lineage that has another shape of them. */
static enum hd_err same_rows(const struct hd_run *run, const char *folder, struct hd_diag *diag)
{
	const struct hd_state *ours = hd_worker_state(run->worker);
	struct hd_ckpt_info info;
	struct hd_arena arena;
	struct hd_state theirs;

	if (!hd_lockstep_meetings(&run->task->train))
		return HD_OK;
	hd_arena_init(&arena, 0);
	enum hd_err err = hd_ckpt_load(run->fs, folder, &arena, &theirs, &info, diag);
	if (!err && !(has_steps_of(&theirs, ours, "stamps") && has_steps_of(&theirs, ours, "rows.0")))
		err = hd_fail(diag, HD_E_INVAL, "%s was made " HD_OTHER_ROWS, folder);
	hd_arena_finish(&arena);
	return err;
}

enum hd_err hd_run_restore(struct hd_run *run, const char *folder, enum hd_restore what,
	struct hd_diag *diag)
{
	struct hd_ckpt_info info;
	enum hd_err err = hd_ckpt_verify(run->fs, folder, &info, diag);

	if (err)
		return err;
	const bool other_job = !hd_hash_same(info.job_hash, run->task->job_hash);
	if (other_job && (err = same_rows(run, folder, diag)))
		return err;
	if (other_job && what != HD_RESTORE_NEW_SEMANTICS)
		return hd_fail(diag, HD_E_INVAL,
			"%s belongs to another job: a key that fixes the result differs (heddle "
			"config show); restore the key, or continue as another lineage with --new-semantics",
			folder);
	if (info.data_count != run->task->data->count || !hd_hash_same(info.data_hash, run->task->data->hash))
		return hd_fail(diag, HD_E_INTEGRITY,
			"%s was trained on other data (%llu samples, now %llu, or other content): give the "
			"data it was made with",
			folder, (unsigned long long)info.data_count,
			(unsigned long long)run->task->data->count);
	const enum hd_ckpt_order other = other_order(run, &info);
	if (other != HD_CKPT_NORDERS && what == HD_RESTORE_GO_ON)
		return hd_fail(diag, HD_E_INVAL,
			"%s does not say that %s were added in the order of this program (it is of %s): go "
			"on with the program that wrote it, or continue as another lineage with "
			"--new-semantics, in one process (without --workers) until its first checkpoint; "
			"eval, predict and export read it as it is", folder, hd_ckpt_order_what(other),
			info.program);
	err = hd_ckpt_read(run->fs, folder, hd_worker_state(run->worker), &info, diag);
	if (err)
		return err;
	run->lineage = info.lineage + (other_job || other != HD_CKPT_NORDERS);
	if (!hd_hash_same(info.fingerprint, hd_worker_fingerprint(run->worker)))
		hd_run_note(run, "warning",
			"the kernels of this machine differ from those the run began with: bits are "
			"promised from here on, not across");
	return hd_worker_rewind(run->worker, diag);
}
