#include "worker/elastic_int.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/timeouts.h"
#include "sys/failpoint.h"
#include "run/fits.h"
#include "run/functions.h"
#include "run/kept_plan.h"
#include "run/plan_xfers.h"

/* The compute thread owns the worker and does one command after the other. */

/* a boundary copies for a joiner what takes about 1/32 of a step ... */
enum { HD_COPY_FRACTION = 32,
       HD_COPY_BYTES_PER_US = 4000,       /* ... at this rate */
       HD_COPY_LEAST = 1 << 20 };

#define COMMAND(name) static enum hd_err do_##name(struct hd_elastic *e, const struct hd_command *d, struct \
	hd_command_done *done, struct hd_diag *diag)

/* The plan of a view, in the buffer that is not in use. */
static enum hd_err plan_of(struct hd_elastic *e, const struct hd_view *view, struct hd_dist_view *dist,
	struct hd_diag *diag)
{
	const struct hd_plan_job job = hd_worker_plan_job(e->worker);
	struct hd_arena *arena = &e->plan_arena[!e->plan_now];
	struct hd_plan *plan = &e->plan[!e->plan_now];
	const struct hd_pipes *pipes;

	hd_arena_reset(arena);
	*dist = (struct hd_dist_view){ .plan = plan };
	enum hd_err err = hd_pipe_set_find(&e->pipes, &view->shape, &pipes, diag);
	err = err ? err : hd_pipes_plan(plan, pipes, view, &job, e->task, arena, diag);
	return err ? err : hd_pipes_part(dist, pipes, view, atomic_load(&e->self), e->worker, arena,
		diag);
}

static enum hd_err prepare(struct hd_elastic *e, const struct hd_view *view, struct hd_diag *diag)
{
	struct hd_dist_view dist;

	e->prepared.epoch = 0;
	enum hd_err err = plan_of(e, view, &dist, diag);
	if (!err)
		err = hd_dist_prepare(e->worker, &dist, diag);
	if (!err)
		e->prepared = *view;
	return err;
}

COMMAND(prepare)
{
	(void)HD_FAILPOINT(CHANGE_PREPARE);
	enum hd_err err = hd_view_has(d->view, atomic_load(&e->self)) ? prepare(e, d->view, diag) : HD_OK;

	done->refused = hd_run_is_unfit(err);
	/* a joiner goes: it holds nothing that others need */
	done->unfit = done->refused && e->adopted.epoch && e->adopted.shape.nstages &&
		!hd_view_same_shape(&e->adopted.shape, &d->view->shape);
	if (done->unfit)
		hd_elastic_note(e, HD_NOTE_REFUSED, diag->text);
	return done->unfit ? HD_OK : err;
}

/* A folder that takes nothing loses the plan, with one warning, and nothing else. */
COMMAND(record)
{
	const struct hd_plan_job job = hd_worker_plan_job(e->worker);
	const struct hd_pipes *pipes;
	struct hd_diag why = { "" };
	struct hd_arena arena;
	struct hd_plan plan;
	char text[700];

	(void)done;
	(void)diag;
	if (!hd_pipes_step(&e->pipes.first, d->view))
		return HD_OK;
	hd_arena_init(&arena, 0);
	enum hd_err err = hd_pipe_set_find(&e->pipes, &d->view->shape, &pipes, &why);
	err = err ? err : hd_pipes_plan(&plan, pipes, d->view, &job, e->task, &arena, &why);
	err = err ? err : hd_plan_xfers(&plan, pipes, d->view, e->task, &arena, &why);
	err = err ? err : hd_plan_keep(&plan, e->spec->fs, e->spec->dir, &why);
	hd_arena_finish(&arena);
	snprintf(text, sizeof text, "plan %u is not in the run's folder: %s", d->view->epoch, why.text);
	if (err && !e->unkept)
		hd_elastic_note(e, "warning", text);
	e->unkept |= err != HD_OK;
	return HD_OK;
}

/* Once, by one of several workers. */
static void say_overlap(struct hd_elastic *e)
{
	char text[400];

	if (e->overlap_said || e->adopted.nmembers < 2 || e->adopted.shape.nstages ||
		hd_view_writer(&e->adopted) != atomic_load(&e->self))
		return;
	e->overlap_said = true;
	hd_onset_say(hd_task_onset(e->task), hd_job_onset_waits(e->task->job), text, sizeof text);
	hd_elastic_note(e, "overlap", text);
}

static enum hd_err adopt(struct hd_elastic *e, const struct hd_view *view, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	if (e->adopted.epoch && hd_view_same_map(&e->adopted, view)) {
		e->adopted.epoch = view->epoch;
		return HD_OK;
	}
	const int error = HD_FAILPOINT(CHANGE_ADOPT);
	if (error)
		err = hd_fail_errno(diag, error, "take", "the memory of another view");
	else if (e->prepared.epoch != view->epoch)
		err = prepare(e, view, diag);
	if (err)
		return err;
	hd_dist_adopt(e->worker);
	e->spent.begun = false;
	e->plan_now = !e->plan_now;
	e->adopted = *view;
	e->prepared.epoch = 0;
	if (!e->memory_reported)
		hd_run_tell_memory(e->run);
	e->memory_reported = true;
	say_overlap(e);
	return HD_OK;
}

/* flag: another view may follow. What comes of this step is void until then. */
static enum hd_err take_up(struct hd_elastic *e, const struct hd_command *d, struct hd_command_done *done,
	struct hd_diag *diag)
{
	enum hd_err err = adopt(e, d->view, diag);

	done->refused = hd_run_is_unfit(err);
	done->unfit = e->unfit = done->refused && d->flag;
	return err;
}

COMMAND(begin)
{
	enum hd_err err = e->synced ? hd_dist_learned(e->worker, diag) : HD_OK;

	e->synced = false;
	err = err ? err : hd_dist_overlap(e->worker, d->ahead, d->goes_on, diag);
	e->unfit = false;
	err = err ? err : take_up(e, d, done, diag);
	hd_step_time_begin(&e->time, d->ahead, hd_clock_now_ns(e->spec->clock));
	assert(e->between);               /* FINISH or CANCEL ended the step before */
	e->between = false;
	e->computed = e->stale = e->unfit;
	if (e->unfit)
		return HD_OK;
	if (!err && hd_worker_at(e->worker) != d->step)
		err = hd_fail(diag, HD_E_BUG, "step %llu is begun, the state is of step %llu",
			(unsigned long long)d->step,
			(unsigned long long)hd_worker_at(e->worker));
	if (err)
		return err;
	hd_dist_epoch(e->worker, d->view->epoch);
	return hd_dist_begin(e->worker, hd_run_digest_due(e->run) && !hd_dist_by_stage(e->worker), diag);
}

/* Is it this worker's part under the adopted view? Then buffers and waves are made; all else is a
 * repair. So is that part if there are sums already: they may come at any time, to a buffer that the
 * pass would use (adopt.c). */
static bool is_own_part(const struct hd_elastic *e, const struct hd_command *d)
{
	struct hd_vrange range[HD_VIEW_RANKS];

	if (e->adopted.shape.nstages)
		return true;
	uint32_t n = hd_view_ranges(&e->adopted, atomic_load(&e->self), range);

	return d->flag && !e->computed && n == d->nranges && !memcmp(range, d->range, n * sizeof *range);
}

static enum hd_err compute_again(struct hd_elastic *e, const struct hd_command *d, struct hd_diag *diag)
{
	uint32_t *vn = hd_alloc(e->task->job->nvns * sizeof *vn), n = 0, pass;

	(void)HD_FAILPOINT(COMPUTE_AGAIN);
	if (!vn)
		return hd_fail(diag, HD_E_NOMEM, "no memory for a repair");
	for (uint32_t i = 0; i < d->nranges; i++)
		for (uint32_t v = 0; v < d->range[i].n; v++)
			vn[n++] = d->range[i].first + v;
	enum hd_err err = hd_dist_repair(e->worker, vn, n, &pass, diag);
	e->redone += n;
	hd_free(vn);
	return err;
}

/* Passes of stages run together, with the first: the others find it done, or fenced. */
static bool is_stage_of_computed(const struct hd_elastic *e)
{
	return e->adopted.shape.nstages && e->computed;
}

static int64_t vns_of(const struct hd_command *d)
{
	int64_t n = 0;

	for (uint32_t i = 0; i < d->nranges; i++)
		n += d->range[i].n;
	return n;
}

/* The first stage reads the samples. */
static void took_samples(struct hd_elastic *e, const struct hd_command *d)
{
	hd_run_functions_look(e->run, false);
	hd_run_took(e->run, d->step, atomic_load(&e->self), d->range, d->nranges);
}

/* A worker without samples ends, and so may all others at once: the checkpoint writer keeps the state before
 * the step, if all of it is here. */
static void keep_unread(struct hd_elastic *e)
{
	if (!e->spec->dir || hd_view_writer(&e->adopted) != atomic_load(&e->self) ||
		hd_dist_by_stage(e->worker) || !hd_dist_whole(e->worker))
		return;
	atomic_store(&e->moving, false);          /* a disk may take its time */
	hd_dist_abandon(e->worker);
	e->broken = true;                         /* nothing of the step is done any more */
	hd_run_keep_unread(e->run);
}

COMMAND(compute)
{
	if (e->unfit)                     /* no step is begun, and no view may have been adopted yet */
		return hd_fail(diag, HD_E_STALE, "step %llu: its view was refused",
			(unsigned long long)d->step);
	int64_t began = hd_clock_now_ns(e->spec->clock);
	bool own = is_own_part(e, d);
	const struct hd_state_entry *param = &hd_worker_state(e->worker)->entry[0];
	uint8_t *bytes = param->slices ? (uint8_t *)param->slices->at[0] : param->at;
	size_t len = param->slices ? sizeof(float) : param->len_bytes;
	enum hd_err err;

	(void)done;
	assert(!e->between && d->pass < HD_MAX_PASSES);
	if (is_stage_of_computed(e)) {
		if (e->stale)
			return hd_fail(diag, HD_E_STALE, "step %llu: its pipeline is gone",
				(unsigned long long)d->step);
		if (d->stage == 0)        /* inherited: its pass is not the first */
			took_samples(e, d);
		return HD_OK;
	}
	/* roots are sent while the pass is computed: its number is known before */
	e->relay.engine_pass[d->pass] = own ? 0 : hd_dist_npasses(e->worker);
	if (e->adopted.shape.nstages)
		memset(e->relay.engine_pass, 0, sizeof e->relay.engine_pass);
	hd_finals_begin(&e->finals, &(struct hd_finals_pass){ d->step, d->pass, d->round });
	(void)HD_FAILPOINT(COMPUTE_BEFORE);
	(void)HD_FAILPOINT_KEY_BYTES(STATE_PARAMS, atomic_load(&e->self), bytes, &len);
	if (own) {
		e->computed = true;
		err = hd_dist_compute(e->worker, diag);
	} else {
		err = compute_again(e, d, diag);
	}
	if (e->spec->slow > 1)
		hd_clock_wait_until(e->spec->clock, began +
			(int64_t)((double)(hd_clock_now_ns(e->spec->clock) - began) * e->spec->slow));
	if (e->spec->vn_wait_ns)
		hd_clock_wait_until(e->spec->clock, began + e->spec->vn_wait_ns * vns_of(d));
	/* others judge by it how fast this worker is, not those it waited for */
	if (own)
		e->time.computed_ns += hd_clock_now_ns(e->spec->clock) - began -
			(int64_t)hd_dist_awaited_ns(e->worker);
	e->stale = err == HD_E_STALE;
	if (err) {
		if (!e->stale)
			keep_unread(e);
		return err;
	}
	if (own && e->pace_ns)
		hd_clock_wait_until(e->spec->clock, began + e->pace_ns);
	if (d->stage == 0)
		took_samples(e, d);
	hd_run_made(e->run, atomic_load(&e->self));
	hd_relay_own_metrics(&e->relay, d->pass);
	(void)HD_FAILPOINT(COMPUTE_AFTER);
	return HD_OK;
}

/* Buckets without a fold: a step of one root, made by this worker. */
static enum hd_err fold_rest(struct hd_elastic *e, const struct hd_command *d, struct hd_diag *diag)
{
	const struct hd_relay_root *of = e->relay.of;
	enum hd_err err = HD_OK;

	for (uint32_t b = 0; b < e->nbuckets && !err && hd_dist_unsummed(e->worker); b++) {
		if (hd_dist_summed(e->worker, b))
			continue;
		if (e->relay.nroots != 1 || of->worker != e->relay.self)
			return hd_fail(diag, HD_E_BUG, "step %llu is complete, but bucket %u has no sum",
				(unsigned long long)d->step, b);
		const struct hd_dist_fold fold = { b, hd_relay_own_runs(&e->relay, b) };
		err = hd_dist_operands(e->worker, e->relay.root, e->relay.stage, e->relay.nroots, diag);
		if (!err)
			err = hd_dist_fold(e->worker, &fold, 1, diag);
	}
	return err;
}

/* Before the state changes: results computed from files that were changed went to the others, too.
 * Hashing takes its time. */
static enum hd_err look_at_data(struct hd_elastic *e, struct hd_command_done *done, struct hd_diag *diag)
{
	atomic_store(&e->moving, false);
	enum hd_err err = hd_run_look(e->run, false, diag);
	atomic_store(&e->moving, true);
	done->for_all = err != HD_OK;
	return err;
}

/* A step that was cancelled before it came so far is not asked for; that one is begun again. */
static bool is_open(const struct hd_elastic *e, const struct hd_command *d)
{
	return !e->between && !e->unfit && e->computed && hd_worker_at(e->worker) == d->step;
}

COMMAND(metrics)
{
	(void)done;
	if (!is_open(e, d))
		return HD_OK;
	hd_finals_begin(&e->early, &(struct hd_finals_pass){ d->step, 0, d->round });
	if (hd_dist_sharded(e->worker))
		hd_dist_brings(e->worker, d->own);
	return hd_relay_take(&e->relay, diag);
}

COMMAND(readable)
{
	(void)done;
	(void)diag;
	if (is_open(e, d))
		hd_dist_readable(e->worker, d->bucket);
	return HD_OK;
}

/* State by stages, of whole tensors: nothing changes. */
static enum hd_err measure(struct hd_elastic *e, const struct hd_command *d, struct hd_diag *diag)
{
	enum hd_err err = hd_relay_take(&e->relay, diag);

	if (err)
		return err;
	hd_relay_take_norms(&e->relay);
	err = hd_dist_update(e->worker, d->own, diag);
	if (!err)
		hd_relay_own_ratios(&e->relay, d->own);
	return err;
}

/* Alone, a worker updates when it finishes. */
COMMAND(update)
{
	assert(!e->between);
	if (hd_dist_by_stage(e->worker))
		return measure(e, d, diag);
	enum hd_err err = hd_dist_sharded(e->worker) ? look_at_data(e, done, diag) : HD_OK;

	if (!err && hd_dist_sharded(e->worker))
		err = hd_relay_take(&e->relay, diag);
	if (err)
		return err;
	if (hd_dist_sharded(e->worker))
		hd_relay_take_norms(&e->relay);
	err = hd_dist_update(e->worker, d->own, diag);
	if (!err && hd_dist_sharded(e->worker))
		hd_relay_own_digests(&e->relay, d->own);
	e->owns = d->own;
	return err;
}

/* A worker without virtual nodes has no pass, and takes what others bring where that becomes state. */
static enum hd_err take_rows(struct hd_elastic *e, struct hd_diag *diag)
{
	if (e->computed || !hd_dist_wants_rows(e->worker))
		return HD_OK;
	e->computed = true;
	enum hd_err err = hd_dist_compute(e->worker, diag);
	return err == HD_E_STALE ? HD_OK : err;      /* finish() says what is missing */
}

COMMAND(finish)
{
	assert(!e->between);
	bool digest = hd_run_digest_due(e->run), sharded = hd_dist_sharded(e->worker);
	enum hd_err err = sharded ? HD_OK : look_at_data(e, done, diag);

	if (!err && !sharded)
		err = hd_relay_take(&e->relay, diag);
	if (sharded)
		hd_relay_take_digests(&e->relay, e->owns);
	if (!err && hd_dist_by_stage(e->worker)) {
		hd_relay_take_norms(&e->relay);
		hd_relay_take_ratios(&e->relay);
		err = hd_dist_hold(e->worker, d->own, diag);
	} else if (!err && !sharded) {
		err = fold_rest(e, d, diag);
	}
	/* with partial state no member has all sums; a lone worker reports no more than before, or it
	 * would look corrupt */
	if (!err && digest && !e->partial)
		done->sum_digest = hd_dist_sums_digest(e->worker);
	if (!err)
		err = take_rows(e, diag);
	if (!err)
		err = hd_dist_finish(e->worker, &done->record, diag);
	if (err)
		return err;
	hd_run_made(e->run, atomic_load(&e->self));
	if (hd_dist_measures(e->worker))
		hd_relay_own_ratios(&e->relay, d->own);
	if (digest && d->flag && hd_dist_by_stage(e->worker)) {
		hd_dist_held_digests(e->worker, d->own, e->slots.held);
		done->held = e->slots.held;
	}
	hd_elastic_spent_count(e);
	hd_run_say_recorded(e->run);
	(void)HD_FAILPOINT(UPDATE_DONE);
	e->touched = true;
	e->between = true;
	if (done->record.has_digest)
		memcpy(&done->state_digest, &done->record.digest, sizeof done->state_digest);
	done->took_ns = (uint64_t)(hd_clock_now_ns(e->spec->clock) - e->time.began_ns);
	done->waited_ns = (uint64_t)e->time.waited_ns;
	done->computed_ns = (uint64_t)e->time.computed_ns;
	done->command.number = e->redone;
	e->step_ns = done->took_ns;
	e->redone = 0;
	return HD_OK;
}

static uint64_t copy_budget(const struct hd_elastic *e)
{
	uint64_t bytes = e->step_ns / 1000 / HD_COPY_FRACTION * HD_COPY_BYTES_PER_US;

	return bytes > HD_COPY_LEAST ? bytes : HD_COPY_LEAST;
}

static bool is_syncing(const struct hd_transfer_out *t,
	const struct hd_view *view) { return t->source.worker &&
	!hd_view_has(view, t->joiner); }

/* A joiner that became a member makes its own steps. */
static void copy_to_all(struct hd_elastic *e, const struct hd_view *view, uint64_t step, uint64_t budget)
{
	for (uint32_t i = 0; i < HD_ELASTIC_TRANSFERS; i++)
		if (is_syncing(&e->transfer[i], view))
			hd_catchup_source_boundary(&e->transfer[i].source, step, budget);
}

/* Waits for joiners that have not taken what earlier boundaries queued: one wait for all of them. */
static void wait_for_slow_joiners(struct hd_elastic *e, const struct hd_view *view)
{
	int64_t most_ns = HD_TIMEOUT_NS(SLOW_JOINER, e->detect_ns);
	int64_t until_ns = hd_clock_now_ns(e->spec->clock) + (e->time.computed_ns > most_ns ?
		e->time.computed_ns : most_ns);

	for (uint32_t i = 0; i < HD_ELASTIC_TRANSFERS; i++)
		if (is_syncing(&e->transfer[i], view))
			(void)hd_catchup_source_wait(&e->transfer[i].source, until_ns);
}

COMMAND(boundary)
{
	if (!d->gathered)
		(void)HD_FAILPOINT(GATE_BOUNDARY);
	/* asked in any case: it may be the boundary of before a loss, whose members held another part */
	if (e->partial && d->flag && !d->gathered &&
		(hd_run_saves(e->run, d->final) || ((!e->copies || hd_run_keeps_best(e->run)) &&
		hd_run_evaluates(e->run, d->final))) &&
		!hd_dist_whole(e->worker)) {
		done->lacks = true;
		return HD_OK;
	}
	/* a worker that becomes the writer within a step gets its boundary again */
	if (e->between) {
		if (!d->final)            /* the machine is about to go: saving comes first */
			wait_for_slow_joiners(e, &e->adopted);
		copy_to_all(e, &e->adopted, d->step, copy_budget(e));
	}
	if (d->final)                     /* of every member, whether it computed the last step or not */
		hd_run_functions_look(e->run, true);
	if (d->flag && !e->between)
		hd_dist_as_begun(e->worker);
	enum hd_err err = d->flag ? hd_run_boundary(e->run, d->final, &done->halt, diag) : HD_OK;
	if (d->gathered)
		hd_dist_drop_slots(e->worker, d->own);
	return err;
}

COMMAND(cancel)
{
	(void)d;
	(void)done;
	(void)diag;
	hd_dist_abandon(e->worker);
	e->between = true;
	return HD_OK;
}

/* X_0 is what a run begins with, and may be on disk as well; any other step is a checkpoint's. A worker that
 * has taken something from another since makes its run again, and X_0 with it. */
COMMAND(restore)
{
	struct hd_ckpt_info info;

	done->step = d->step;
	if (d->step == 0 && !e->touched)
		return HD_OK;                             /* so far all slots are here */
	e->touched = true;
	if (!e->spec->dir)
		return hd_fail(diag, HD_E_PEERLOST,
			"no member is left to sync from: this worker joins again");
	enum hd_err err = hd_ckpt_find(e->spec->fs, e->spec->dir, d->step, &info, NULL, NULL, diag);
	done->rejoin = err && d->step == 0;
	if (done->rejoin)
		return HD_OK;
	err = err ? err : hd_dist_lay_aside(e->worker, diag);
	return err ? err : hd_run_restore(e->run, info.folder, HD_RESTORE_GO_ON, diag);
}

/* To HD_NOBODY: all members hold, so there is no step to slow down, and no boundary will come. The view
 * in force may not have been adopted here: that comes with its first step. */
COMMAND(transfer)
{
	assert(d->number < HD_ELASTIC_TRANSFERS);
	struct hd_transfer_out *t = &e->transfer[d->number];

	(void)done;
	(void)diag;
	if (d->worker == HD_NOBODY) {
		if (e->between)
			copy_to_all(e, d->view, hd_worker_at(e->worker), UINT64_MAX);
		return HD_OK;
	}
	(void)HD_FAILPOINT(TEACH_BEGIN);
	t->joiner = d->worker;
	if (d->flag)
		hd_catchup_source_init(&t->source, e->worker, &e->task->layout);
	else
		hd_catchup_source_finish(&t->source);
	return HD_OK;
}

/* Chunk 0 starts over, whatever was received before. */
COMMAND(chunk)
{
	enum hd_err err = HD_OK;

	assert(d->bytes && d->len <= HD_CATCHUP_CHUNK);
	(void)HD_FAILPOINT(LEARN_PIECE);
	if (d->step == 0) {
		hd_catchup_sink_finish(&e->sink);
		hd_dist_own(e->worker, NULL);            /* slots come when it is a member */
		hd_dist_drop_slots(e->worker, NULL);
		e->adopted.epoch = e->prepared.epoch = 0;
		err = hd_dist_overlap(e->worker, false, false, diag);
		err = err ? err : hd_dist_prepare(e->worker, &(struct hd_dist_view){
			.worker = HD_DIST_NOBODY }, diag);
		if (!err)
			hd_dist_adopt(e->worker);
		if (!err)
			err = hd_catchup_sink_init(&e->sink, e->worker, &e->task->layout, diag);
	}
	e->touched = true;
	if (!err)
		err = hd_catchup_sink_take(&e->sink, d->bytes, (size_t)d->len, &done->synced, diag);
	done->over = !err && e->sink.over;
	if (done->over)
		err = hd_fail(diag, HD_E_PEERLOST, "state transfer: worker %u gave up, this one is too slow",
			d->worker);
	if (!err && done->synced && e->sink.unprobed && !hd_dist_by_stage(e->worker))
		hd_elastic_note(e, "unprobed",
			"there was no memory to compute a virtual node here and at the source: nothing "
			"compared the bits of this "
			"worker");
	done->step = e->sink.step;
	e->synced = done->synced;
	return err;
}

/* ---- runs of them ---- */

static enum hd_err fold_run(struct hd_elastic *e, const struct hd_command *d, uint32_t n,
	struct hd_diag *diag)
{
	struct hd_dist_fold fold[HD_COMMANDS_RUN];
	(void)HD_FAILPOINT(FOLD_BEFORE);
	enum hd_err err = hd_dist_operands(e->worker, e->relay.root, e->relay.stage, e->relay.nroots, diag);

	const uint64_t began = hd_recorder_now_of(e->recorder, 0);
	for (uint32_t i = 0; i < n; i++)
		fold[i] = (struct hd_dist_fold){ d[i].bucket, d[i].operand };
	if (!err)
		err = hd_dist_fold(e->worker, fold, n, diag);
	hd_recorder_work(e->recorder, 0, HD_RECORDED_FOLD, began);
	(void)HD_FAILPOINT(FOLD_AFTER);
	return err;
}

static enum hd_err arrived_run(struct hd_elastic *e, const struct hd_command *d, uint32_t n,
	struct hd_diag *diag)
{
	uint32_t bucket[HD_COMMANDS_RUN];

	for (uint32_t i = 0; i < n; i++)
		bucket[i] = d[i].bucket;
	return hd_dist_arrived(e->worker, bucket, n, diag);
}

/* Commands of one kind, together. After a step that could not be begun each of them ends with HD_E_STALE. */
static void run(struct hd_elastic *e, const struct hd_command *d, uint32_t n,
	enum hd_err (*act)(struct hd_elastic *e, const struct hd_command *d, uint32_t n,
	struct hd_diag *diag))
{
	struct hd_command_done done = { .command = *d };

	done.err = e->broken ? hd_fail(&done.diag, HD_E_STALE, "a step could not be begun") :
		act(e, d, n, &done.diag);
	for (uint32_t i = 0; i < n; i++) {
		done.command = d[i];
		hd_commands_done(&e->commands, &done);
	}
}

static enum hd_err (*const one[HD_COMMAND_NKINDS])(struct hd_elastic *e, const struct hd_command *d,
	struct hd_command_done *done, struct hd_diag *diag) = {
	[HD_COMMAND_PREPARE] = do_prepare, [HD_COMMAND_BEGIN] = do_begin, [HD_COMMAND_COMPUTE] = do_compute,
		[HD_COMMAND_STOP] = hd_elastic_stand, [HD_COMMAND_REST] = hd_elastic_rest,
		[HD_COMMAND_METRICS] = do_metrics, [HD_COMMAND_READABLE] = do_readable,
		[HD_COMMAND_UPDATE] = do_update, [HD_COMMAND_FINISH] = do_finish,
	[HD_COMMAND_BOUNDARY] = do_boundary, [HD_COMMAND_CANCEL] = do_cancel,
	[HD_COMMAND_RESTORE] = do_restore,
	[HD_COMMAND_TRANSFER] = do_transfer,
	[HD_COMMAND_CHUNK] = do_chunk, [HD_COMMAND_RECORD] = do_record,
};

/* The longest instruction of the last steps, from which the coordinator judges whether this worker
 * hangs. Before there is one: what a virtual node would take on a slow core. */
static void remember(struct hd_elastic *e)
{
	uint64_t most = 0;

	e->took[e->ntook++ % HD_ELASTIC_TOOK] = hd_worker_longest_ns(e->worker);
	for (uint32_t i = 0; i < HD_ELASTIC_TOOK; i++)
		most = e->took[i] > most ? e->took[i] : most;
	atomic_store(&e->longest_ns, most);
}

/* Commands in which instructions or kernels run one after the other; in all others (a disk, an
 * evaluation) standing still means nothing. */
static bool moves(enum hd_command_kind kind)
{
	return kind == HD_COMMAND_COMPUTE || kind == HD_COMMAND_FOLD || kind == HD_COMMAND_ARRIVED ||
		kind == HD_COMMAND_UPDATE || kind == HD_COMMAND_FINISH;
}

/* Is a pass of whole models made longer than it is, for faults and demonstrations? What runs ahead is not. */
static bool is_slowed(const struct hd_elastic *e)
{
	return !e->adopted.shape.nstages && (e->spec->slow > 1 || e->spec->vn_wait_ns);
}

/* As long as no command waits. Whose time it is: step_time.h. false: nothing is left to do. */
static bool run_ahead(struct hd_elastic *e)
{
	if (e->broken || e->stale || !e->computed || is_slowed(e))
		return false;
	const uint32_t seen = hd_dist_calls(e->worker);
	if (hd_commands_wait(&e->commands) || !hd_dist_has_ahead(e->worker))
		return false;
	(void)HD_FAILPOINT_KEY(AHEAD_RUN, atomic_load(&e->self));
	const int64_t began_ns = hd_clock_now_ns(e->spec->clock);
	atomic_store(&e->ahead, true);
	const int64_t waited_ns = (int64_t)hd_dist_run_ahead(e->worker, seen);
	atomic_store(&e->ahead, false);
	hd_step_time_ahead(&e->time, e->between, hd_clock_now_ns(e->spec->clock) - began_ns, waited_ns);
	return true;
}

void hd_elastic_compute(struct hd_elastic *e)
{
	struct hd_command d[HD_COMMANDS_RUN];

	for (;;) {
		atomic_store(&e->moving, false);
		/* of whole models it may have been called back by what was done already */
		while (run_ahead(e) && !e->adopted.shape.nstages)
			;
		int64_t asked_ns = hd_clock_now_ns(e->spec->clock);
		const uint64_t asked_at = hd_recorder_now_of(e->recorder, 0);
		hd_elastic_lacks(e);
		uint32_t n = hd_commands_take(&e->commands, d, HD_COMMANDS_RUN);
		e->time.waited_ns += hd_clock_now_ns(e->spec->clock) - asked_ns;
		hd_elastic_waited(e, asked_at, d[0].kind);
		if (d[0].kind == HD_COMMAND_QUIT)
			return;
		atomic_store(&e->moving, moves(d[0].kind));
		if (d[0].kind == HD_COMMAND_FOLD) {
			run(e, d, n, fold_run);
		} else if (d[0].kind == HD_COMMAND_ARRIVED) {
			run(e, d, n, arrived_run);
		} else {
			struct hd_command_done done = { .command = d[0] };
			done.err = e->broken ? hd_fail(&done.diag, HD_E_STALE, "a step could not be begun") :
				one[d[0].kind](e, &d[0], &done, &done.diag);
			e->broken |= done.err && d[0].kind == HD_COMMAND_BEGIN;
			if (d[0].kind == HD_COMMAND_FINISH)
				remember(e);
			atomic_store(&e->moving, false);
			hd_commands_done(&e->commands, &done);
		}
	}
}
