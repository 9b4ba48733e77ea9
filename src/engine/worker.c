#include "engine/worker_int.h"

#include <string.h>

#include "base/alloc.h"
#include "engine/judge.h"
#include "engine/meeting.h"
#include "engine/onset.h"
#include "engine/post.h"
#include "engine/stretch.h"

enum hd_err hd_worker_fields(const struct hd_worker *w, const struct hd_graph *g, uint32_t n, uint32_t **map,
	struct hd_arena *arena, struct hd_diag *diag)
{
	const struct hd_dataset *data = w->task->data;

	*map = hd_arena_take(arena, n + 1, sizeof **map);
	if (!*map)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the inputs of the graph");
	for (uint32_t i = 0; i < n; i++) {
		const char *name = hd_graph_text_of(g, g->value[g->input[i]].name);
		uint32_t f = 0;
		while (f < data->nfields && strcmp(data->field[f].name, name) != 0)
			f++;
		if (f == data->nfields)
			return hd_fail(diag, HD_E_INPUT,
				"the graph reads an input \"%s\"; the data have no such field: %s", name,
				data->about);
		(*map)[i] = f;
	}
	return HD_OK;
}

enum { HD_WAVE_BYTES = 1 << 20 };         /* half of a second-level cache of this day */

static uint64_t largest_activation(const struct hd_task *task)
{
	const struct hd_graph *g = &task->train;
	uint64_t most = 1;

	for (uint32_t v = 0; v < g->nvalues; v++)
		if (g->value[v].kind == HD_TEMP && g->value[v].rank && g->value[v].dim[0] < 0 &&
			hd_value_bytes(&g->value[v], task->job->per_vn) > most)
			most = hd_value_bytes(&g->value[v], task->job->per_vn);
	return most;
}

static uint32_t choose_wave(const struct hd_worker *w)
{
	const struct hd_job *job = w->task->job;
	uint64_t vns = w->spec.wave ? job->nvns : (job->nvns + w->spec.ndevices - 1) / w->spec.ndevices,
		fit = w->spec.wave;

	if (hd_job_int(job, HD_JOB_BN) == HD_BN_GLOBAL || hd_lockstep_meetings(&w->task->train))
		return 1;                 /* in lockstep each virtual node has an arena of its own */
	if (hd_job_int(job, HD_JOB_SLICES) > 1)
		return 1;                 /* slices save memory, waves spend it */
	if (!fit)
		fit = HD_WAVE_BYTES / largest_activation(w->task);
	fit = fit < vns ? fit : vns;
	return (uint32_t)(fit < 1 ? 1 : fit > HD_MAX_WAVE ? HD_MAX_WAVE : fit);
}

/* Evaluation meets full blocks, the last block of each split, and single rows (sampling). */
enum hd_err hd_worker_programs(struct hd_worker *w, struct hd_diag *diag)
{
	const struct hd_task *task = w->task;
	uint64_t b = task->eval_rows, rows[2 + HD_MAX_SPLITS] = { b };
	uint64_t used = w->arena.used_bytes;
	uint32_t n = 1;
	enum hd_err err = hd_program_make_waves(&w->stage->train, &task->train, &task->layout, true,
		task->rows,
		task->nrows, choose_wave(w), &w->arena, diag);

	if (!err && w->spec.pace_ns)
		hd_waits_make(&w->stage->pace, &w->stage->train, w->spec.pace_ns);
	for (uint32_t s = 0; s < task->data->nsplits; s++)
		rows[n++] = task->data->split[s].count % b;
	rows[n++] = 1;
	if (!err)
		err = hd_program_make(&w->stage->infer, &task->infer, &task->layout, false, rows, n,
			&w->arena,
			diag);
	if (!err)
		err = hd_lockstep_make(w, diag);
	if (!err)
		err = hd_stretches_make(w, diag);
	if (!err)
		err = hd_meeting_make(w, diag);
	if (!err)
		err = hd_worker_fields(w, &task->train, task->train.ninputs, &w->stage->input_field,
		&w->arena,
			diag);
	if (!err)
		err = hd_worker_fields(w, &task->infer, task->infer.ninputs, &w->stage->infer_field,
		&w->arena,
			diag);
	for (uint32_t v = 0; v < w->stage->train.nvariants; v++)
		for (int phase = HD_RUN_F; phase <= HD_RUN_B; phase++)
			w->stage->touched_bytes[phase][v] = (uint64_t)hd_program_cost(&w->stage->train,
				(enum hd_run_phase)phase, w->stage->train.rows[v]).bytes;
	w->stage->table_bytes = w->arena.used_bytes - used;
	w->stage->train_out = hd_stage_readouts(&task->train);
	w->stage->infer_out = hd_stage_readouts(&task->infer);
	return err;
}

static enum hd_err open_rank(struct hd_worker *w, struct hd_rank *rank, const struct hd_cores *cores,
	struct hd_diag *diag)
{
	bool alone = w->spec.ndevices * w->spec.nthreads <= cores->n;
	struct hd_device_spec spec = {
		.nthreads = w->spec.nthreads,
		.first_core = cores->core[(rank->id * w->spec.nthreads) % cores->n_affinity],
		.pin = false, .spin = w->spec.spin && alone,
		.kernels = w->spec.kernels,
		.path = w->spec.path,
		.memory_limit_bytes = hd_worker_device_limit(w),
	};
	const struct hd_device_ops *ops;
	const uint64_t b = hd_worker_eval_rows(w, rank->id);
	enum hd_err err = hd_device_create(&rank->device, w->spec.kind, &spec, diag);

	if (err)
		return err;
	ops = rank->device->ops;
	if (!(ops->powers & HD_DEVICE_HOST_MEMORY))
		return hd_fail(diag, HD_E_INVAL,
			"devices of kind %s have memory of their own; this build runs plans on host memory "
			"only", ops->name);
	err = ops->load(rank->device, &w->stage->train, diag);
	if (!err && b)
		err = ops->load(rank->device, &w->stage->infer, diag);
	if (!err && b)
		err = ops->take(rank->device, hd_worker_activation_bytes(w), (void **)&rank->activations,
			diag);
	if (!err && rank->id == 0 && !hd_lockstep_needed(&w->stage->lockstep))
		err = hd_program_idle(&w->stage->idle, &w->stage->train, rank->device,
			hd_worker_activation_bytes(w), w->stage->infer.memory.len_bytes, diag);
	for (uint32_t f = 0; f < w->task->data->nfields && !err && b; f++)
		err = ops->take(rank->device, b * w->task->data->field[f].sample_bytes,
			(void **)&rank->eval_input[f], diag);
	rank->input = hd_arena_take(&w->arena, w->task->train.ninputs + 1, sizeof *rank->input);
	return err ? err : rank->input ? HD_OK : HD_E_NOMEM;
}

static enum hd_err take_shared(struct hd_worker *w, struct hd_diag *diag)
{
	const struct hd_layout *layout = &w->task->layout;
	struct hd_device *first = w->rank[0].device;
	enum hd_err err = hd_param_store_create(&w->store, layout, hd_worker_store_shape(w), first, diag);

	if (!err)
		err = hd_moments_make(w, diag);
	if (!err)
		err = hd_stage_take(w->stage, layout, first, &w->arena, diag);
	if (!err)
		err = hd_step_tables(w, diag);
	if (!err)
		err = hd_parts_tables(w, diag);
	if (!err)
		err = hd_reading_make(w, diag);
	if (!err)
		err = hd_judges_take(w, diag);
	if (!err)
		err = hd_state_table_make(w, diag);
	return err ? err : hd_digest_make(w, diag);
}

/* The parts, empty; what they hold is taken later. Each is of the worker's arena. */
enum hd_err hd_worker_begin(struct hd_worker *w, struct hd_diag *diag)
{
	const struct hd_layout *layout = &w->task->layout;

	hd_arena_init(&w->arena, 0);
	w->stage = hd_arena_take(&w->arena, 1, sizeof *w->stage);
	w->step = hd_arena_take(&w->arena, 1, sizeof *w->step);
	enum hd_err err = hd_parts_make(w, diag);
	if (!err)
		err = hd_reading_open(w, diag);
	if (!err && (!w->stage || !w->step))
		err = hd_fail(diag, HD_E_NOMEM, "no memory for a worker");
	if (err)
		return err;
	hd_arena_init(&w->step->repair_arena, 0);
	return hd_stage_make(w->stage, 0, layout, 0, layout->nchunks, w->spec.ndevices, &w->arena, diag);
}

enum hd_err hd_worker_create(struct hd_worker **worker, const struct hd_task *task,
	const struct hd_worker_spec *spec, struct hd_diag *diag)
{
	struct hd_cores cores;
	struct hd_worker *w = hd_alloc(sizeof *w);
	enum hd_err err;

	if (!w)
		return hd_fail(diag, HD_E_NOMEM, "no memory for a worker");
	*w = (struct hd_worker){ .task = task, .spec = *spec };
	hd_lock_init(&w->early_lock);
	hd_clock_real(&w->clock);
	hd_cores_usable(&cores);
	hd_memory_look(&w->before);
	hd_thread_arith_set();
	err = hd_worker_begin(w, diag);
	if (!err)
		err = hd_threads_make(w, diag);
	if (!err)
		err = hd_values_make(w, diag);
	if (!err)
		err = hd_background_make(w, diag);
	if (!err)
		err = hd_post_make(w, diag);
	if (!err)
		hd_reading_spare(w, (uint64_t)spec->ndevices * spec->nthreads < cores.n);
	if (!err)
		err = hd_worker_programs(w, diag);
	if (!err)
		err = hd_onset_make(w, diag);
	if (!err)
		err = hd_worker_fits(w, diag);
	if (!err)
		err = hd_lockstep_leaves(w, diag);
	w->rank = hd_arena_take(&w->arena, spec->ndevices, sizeof *w->rank);
	if (!err && !w->rank)
		err = hd_fail(diag, HD_E_NOMEM, "no memory for %u devices", spec->ndevices);
	for (uint32_t r = 0; r < spec->ndevices && !err; r++) {
		w->rank[r].worker = w;
		w->rank[r].id = r;
		w->rank[r].pool = &w->stage->pool[r];
		err = open_rank(w, &w->rank[r], &cores, diag);
	}
	if (!err)
		err = take_shared(w, diag);
	if (!err)
		err = hd_device_fingerprint(w->rank[0].device, &w->stage->train, &w->fingerprint, diag);
	if (!err)
		err = hd_held_begin(w, diag);
	if (!err) {
		hd_task_init_params(task, hd_param_store_at(w->store, HD_VEC_PARAMS, 0, 0));
		hd_task_init_buffers(task, hd_param_store_at(w->store, HD_VEC_BUFFERS, 0, 0));
		if (task->optim.average > 0)      /* before the first of them they are what it begins with */
			hd_param_store_write(w->store, hd_worker_means(w), 0, task->layout.elems,
				hd_param_store_at(w->store, HD_VEC_PARAMS, 0, 0));
		hd_versions_begin(w);
		hd_digest_frozen(w);
		hd_seals_init(&w->step->seals, 0, 1, 0);
		err = hd_threads_start(w, spec->spin && spec->ndevices * spec->nthreads <= cores.n, diag);
	}
	if (err)
		hd_worker_destroy(w);
	else
		*worker = w;
	return err;
}

void hd_worker_end(struct hd_worker *w)
{
	if (w->parts)
		hd_parts_finish(w);
	if (w->step)
		hd_arena_finish(&w->step->repair_arena);
	hd_arena_finish(&w->arena);
}

static void close_rank(struct hd_worker *w, struct hd_rank *rank)
{
	struct hd_device *d = rank->device;

	if (d) {
		hd_pool_give(rank->pool, w->stage->flat_bytes, d);
		hd_lockstep_give(rank);
		for (uint32_t f = 0; f < w->task->data->nfields; f++)
			d->ops->give(d, rank->eval_input[f], hd_worker_eval_rows(w, rank->id) *
				w->task->data->field[f].sample_bytes);
		d->ops->give(d, rank->activations, hd_worker_activation_bytes(w));
	}
}

void hd_worker_destroy(struct hd_worker *w)
{
	if (!w)
		return;
	if (w->threads)
		hd_threads_stop(w);
	if (w->reading)
		hd_reading_close(w);
	for (uint32_t r = 0; w->rank && r < w->spec.ndevices; r++)
		close_rank(w, &w->rank[r]);
	if (w->rank)
		hd_stretches_finish(w);
	struct hd_device *first = w->rank ? w->rank[0].device : NULL;
	if (first) {
		hd_param_store_destroy(w->store);
		hd_stage_give(w->stage, first);
		hd_dist_mail_void(w);
		hd_parts_give(w, first);
	}
	for (uint32_t r = 0; w->rank && r < w->spec.ndevices; r++)
		hd_device_destroy(w->rank[r].device);
	if (w->threads)
		hd_threads_finish(w);
	if (w->background)
		hd_background_finish(w);
	if (w->post)
		hd_post_finish(w);
	hd_worker_end(w);
	hd_lock_finish(&w->early_lock);
	hd_free(w);
}

uint64_t hd_worker_pulse(struct hd_worker *w)
{
	if (atomic_load_explicit(&w->meeting->waits, memory_order_relaxed) || hd_reading_waits(w))
		atomic_fetch_add_explicit(&w->progress, 1, memory_order_relaxed);
	return atomic_load_explicit(&w->progress, memory_order_relaxed);
}

struct hd_spent hd_worker_spent(const struct hd_worker *w, uint32_t r, uint16_t stage, uint8_t op)
{
	return hd_worker_work(w)->rank[r].spent[hd_spent_index(stage, op)];
}

uint64_t hd_worker_longest_ns(struct hd_worker *w) { return atomic_exchange(&w->longest_ns, 0); }

bool hd_worker_lockstep(const struct hd_worker *w) { return hd_lockstep_needed(&w->stage->lockstep); }

struct hd_plan_job hd_worker_plan_job(const struct hd_worker *w)
{
	struct hd_plan_job job = hd_plan_job_whole(w->task->job->nvns, w->task->layout.nchunks);

	job.wave = hd_worker_wave(w);
	job.lockstep = hd_worker_lockstep(w);
	job.nshards = (uint32_t)hd_job_int(w->task->job, HD_JOB_SHARDS);
	return job;
}

uint32_t hd_worker_wave(const struct hd_worker *w) { return w->stage->train.max_parts; }
uint64_t hd_worker_at(const struct hd_worker *w) { return (uint64_t)w->count.step; }
struct hd_state *hd_worker_state(struct hd_worker *w) { return &w->state; }
struct hd_hash hd_worker_fingerprint(const struct hd_worker *w) { return w->fingerprint; }
bool hd_worker_computes(const struct hd_worker *w)
{
	return !(w->rank[0].device->ops->powers & HD_DEVICE_NO_RESULT);
}

const char *hd_worker_path(const struct hd_worker *w) { return w->rank[0].device->path; }

enum hd_err hd_worker_step(struct hd_worker *w, bool digest, struct hd_step_record *record,
	struct hd_diag *diag)
{
	w->step->goes_on = (uint64_t)w->count.step + 1 < w->task->nsteps && !hd_dist_prepared(w);
	enum hd_err err = hd_step_begin(w, digest, diag);

	if (!err && !hd_worker_work(w)->whole) {
		hd_dist_abandon(w);
		err = hd_fail(diag, HD_E_INVAL, "step %lld: the plan has ranks of other workers",
			(long long)w->count.step);
	}
	if (err)
		return err;
	w->step->section = HD_SECTION_ALL;
	return hd_step_end(w, hd_worker_all(w, hd_interp_run, diag), record, diag);
}
