#include <assert.h>
#include <stdio.h>

#include "base/checked.h"
#include "sys/memory.h"
#include "engine/part_int.h"
#include "engine/closing.h"
#include "engine/judge.h"
#include "engine/fore.h"
#include "engine/onset.h"
#include "engine/stale.h"
#include "engine/stamps.h"
#include "engine/stretch.h"
#include "engine/worker_int.h"

/* What the job needs against what it may have and what is there: said before it is taken, with
 * numbers, not by the kernel's killer in the middle of a step. Memory of devices is lazy, so what
 * is taken is not yet in use; what is in use shows in the resident size. A limit of the address space
 * is used up by what is mapped, touched or not, and the room of samples that are kept is since the data
 * were opened. */

/* Measured, and the same before a run and in it: data of libraries, threads, small tables; heap of the
 * process that evaluates and writes checkpoints, lines and the report. */
#define HD_PROCESS_BYTES (UINT64_C(3) << 20)
#define HD_WRITER_BYTES (UINT64_C(5) << 19)

static uint64_t buffers_of(const struct hd_rank *rank)
{
	uint32_t n = rank->need.nbuffers > rank->pool->cap ? rank->need.nbuffers : rank->pool->cap;

	return n || rank->need.staged ? n : 1;
}

/* In lockstep every virtual node of a rank keeps its activations; without a plan they are counted as
 * spread evenly. */
static uint64_t arenas_of(const struct hd_worker *w, uint32_t rank)
{
	uint32_t d = w->spec.ndevices, vns = w->task->job->nvns, even = vns / d + (rank < vns % d);

	if (!hd_lockstep_needed(&w->stage->lockstep))
		return 0;
	if (!w->rank || !w->rank[rank].need.nbuffers)
		return even;
	return w->rank[rank].need.narenas > w->rank[rank].narenas ? w->rank[rank].need.narenas :
		w->rank[rank].narenas;
}

/* What the store takes, whether there is one yet or not. */
static uint64_t bytes_of(const struct hd_worker *w, enum hd_vector vector)
{
	return sizeof(float) * hd_vector_elems(&w->task->layout, hd_worker_store_shape(w), vector);
}

/* State by stages: what is held of each vector; all else lies in a file. */
static uint64_t held_bytes_of(const struct hd_worker *w)
{
	return w->parts->need_held * sizeof(float);
}

static uint64_t params_bytes_of(const struct hd_worker *w)
{
	uint64_t bytes = bytes_of(w, HD_VEC_PARAMS) + bytes_of(w, HD_VEC_BUFFERS);

	for (uint32_t j = 0; j < w->task->delays.most; j++)
		bytes += bytes_of(w, hd_vec_earlier(j));
	if (w->spec.by_stage)
		bytes -= (1 + w->task->delays.most) * (w->task->layout.elems * sizeof(float) -
			held_bytes_of(w));
	return bytes;
}

static uint64_t slots_bytes_of(const struct hd_worker *w)
{
	if (w->spec.by_stage)
		return hd_worker_store_shape(w).nslots * held_bytes_of(w);
	return bytes_of(w, HD_VEC_SLOT0) + bytes_of(w, HD_VEC_SLOT1) + bytes_of(w, HD_VEC_SLOT2);
}

/* A device of a pipeline has the activations of its stages; those of the whole model are a forward pass's. */
static uint64_t activations_of(const struct hd_worker *w, uint32_t rank)
{
	const struct hd_rank_need *need = w->rank ? &w->rank[rank].need : NULL;

	if (w->spec.by_stage && (!need || !need->staged))
		return 0;                 /* its stages are not known yet */
	if (!need || !need->staged)
		return hd_worker_evaluates(w, rank) ? hd_worker_activation_bytes(w) : 0;
	return (need->whole ? hd_worker_activation_bytes(w) : w->stage->infer.memory.len_bytes) +
		need->pipe_bytes;
}

/* Flat vectors of a device; those of stages are written to where the stages are alone. */
static uint64_t vectors_of(const struct hd_worker *w, uint32_t rank)
{
	const struct hd_rank_need *need = w->rank ? &w->rank[rank].need : NULL;

	if (need && need->staged && !need->whole)
		return need->vector_bytes;
	if (w->spec.by_stage)
		return 0;
	return w->stage->flat_bytes * (need ? buffers_of(&w->rank[rank]) : 1);
}

/* In lockstep a worker reads the rows of its own virtual nodes, and evaluates in memory of its own, rows and
 * activations, of which nothing is written where another member does that and none measures (closing.h). */
static void idle_in_lockstep(const struct hd_worker *w, uint64_t sample_bytes, uint64_t depth,
	struct hd_memory_terms *t)
{
	const struct hd_job *job = w->task->job;
	const bool rests = w->parts->need_rests && !hd_closing_wanted(job) &&
		!hd_judges_measure(job);
	uint64_t vns = 0;

	for (uint32_t r = 0; r < w->spec.ndevices; r++) {
		vns += arenas_of(w, r);
		if (rests && w->rank && !w->rank[r].need.staged) {
			t->idle_arenas += activations_of(w, r);
			t->idle_inputs += sample_bytes * hd_worker_eval_rows(w, r);
		}
	}
	t->idle_inputs += vns < job->nvns ? sample_bytes * depth * job->per_vn * (job->nvns - vns) : 0;
	assert(t->idle_inputs <= t->inputs && t->idle_arenas <= t->arenas);
}

/* Of the gradients and of the activations; those of virtual nodes in lockstep count as written to. */
static void idle_of(const struct hd_worker *w, struct hd_memory_terms *t)
{
	const bool rests = w->parts->need_rests;

	/* whoever writes checkpoints has all of them meanwhile */
	if (rests && w->parts->need_idle_slot_elems != UINT64_MAX)
		t->idle_slots = w->parts->need_idle_slot_elems * sizeof(float) *
			hd_worker_store_shape(w).nslots;
	t->idle_gradients = w->parts->need_received_bytes - w->parts->need_used_received_bytes;
	for (uint32_t r = 0; w->rank && r < w->spec.ndevices; r++) {
		const struct hd_rank_need *need = &w->rank[r].need;
		t->idle_arenas += need->idle_bytes;
		/* beside its stages the arena of the whole model is there to evaluate in */
		t->idle_arenas += rests && need->staged && !need->whole ? w->stage->infer.memory.len_bytes :
			0;
		if (!w->rank[r].device || w->rank[r].need.staged)
			continue;
		t->idle_gradients += w->rank[r].need.ntemps * w->stage->idle.temp_bytes;
		if (rests && hd_lockstep_needed(&w->stage->lockstep))
			continue;                 /* all of them: below */
		t->idle_arenas += w->rank[r].activations && activations_of(w, r) ?
			w->stage->idle.arena_bytes : 0;
	}
	assert(t->idle_gradients <= t->gradients && t->idle_arenas <= t->arenas);
}

void hd_worker_memory(const struct hd_worker *w, struct hd_memory_terms *t)
{
	const struct hd_dataset *data = w->task->data;
	uint64_t sample_bytes = 0, vectors = 0, temps = 0, device = 0, arenas = 0, activations = 0,
		scratch = 0, eval_rows = 0,
		d = w->spec.ndevices;
	uint64_t batch = w->task->job->nvns * w->task->job->per_vn;

	for (uint32_t f = 0; f < data->nfields; f++)
		sample_bytes += data->field[f].sample_bytes;
	const uint64_t params_bytes = params_bytes_of(w), slots_bytes = slots_bytes_of(w);
	const uint64_t shared = params_bytes + slots_bytes
		+ hd_moments_bytes(w->task) + HD_ZEROS_ELEMS * sizeof(float) +
			hd_parts_bytes(w);
	for (uint32_t r = 0; r < d; r++) {
		uint64_t own = vectors_of(w, r) + activations_of(w, r)
			+ w->stage->train.memory.len_bytes * arenas_of(w,
				r) + sample_bytes * hd_worker_eval_rows(w, r)
			+ (w->rank ? w->rank[r].need.ntemps * w->stage->train.temp_elems * sizeof(float) : 0);
		own += r == 0 ? shared : 0;
		device = own > device ? own : device;
		activations += activations_of(w, r);
		eval_rows += hd_worker_eval_rows(w, r);
		vectors += vectors_of(w, r);
		arenas += arenas_of(w, r);
		scratch += w->rank && w->rank[r].device ? w->rank[r].device->scratch_bytes : 0;
		temps += w->rank ? w->rank[r].need.ntemps * w->stage->train.temp_elems * sizeof(float) : 0;
	}
	uint64_t fit = hd_worker_reading(w).memory_bytes / (batch * sample_bytes + 1),
		wanted = hd_worker_reading(w).depth,
		depth = fit >= wanted ? wanted : fit > 0 ? fit : 1;
	*t = (struct hd_memory_terms){
		.params = params_bytes,
		.slots = slots_bytes,
		.gradients = vectors + temps + hd_parts_bytes(w),
		.arenas = activations + w->stage->train.memory.len_bytes * arenas +
		hd_moments_bytes(w->task)
			+ hd_lockstep_bytes(&w->task->train, w->task->job)
			+ hd_stale_bytes(&w->task->train, w->task->job) + hd_stamps_bytes(w->task)
			+ hd_fore_bytes(w->task)
			+ hd_stretches_bytes(w, (uint32_t)arenas),
		.inputs = sample_bytes * (eval_rows + depth * batch),
		.kept = data->kept_bytes,
		.own = w->stage->table_bytes + w->parts->need_table_bytes + scratch + hd_parts_link_bytes(w) +
			hd_onset_bytes(w),
		.device = device,
		.process = HD_PROCESS_BYTES + data->table_bytes +
			(w->parts->need_rests ? 0 : HD_WRITER_BYTES),
	};
	t->held = t->params + t->slots + t->gradients + t->arenas + t->inputs;
	t->total = t->held + t->kept + t->own;
	idle_of(w, t);
	if (hd_lockstep_needed(&w->stage->lockstep))
		idle_in_lockstep(w, sample_bytes, depth, t);
}

enum hd_err hd_memory_fits(const struct hd_memory_terms *t, const struct hd_room *room, uint32_t ndevices,
	struct hd_diag *diag)
{
	const struct { uint64_t need, have; const char *bound, *advice; } bounds[] = {
		{ t->held, room->devices_bytes ? room->devices_bytes : UINT64_MAX, "workers.memory gives",
			"a larger workers.memory" },
		/* what is free has lost what the process took before: lists of edges, its own tables */
		{ t->total + t->process, room->limit_bytes, "this process may use", "a larger machine" },
		{ t->total, room->free_bytes < UINT64_MAX - room->used_bytes ?
		room->free_bytes + room->used_bytes : UINT64_MAX,
			"what is free now would let it have", "fewer other programs" },
	};
	const double mib = 1 << 20;

	for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++)
		if (bounds[i].need > bounds[i].have)
			return hd_fail(diag, HD_E_REFUSED,
				"the job needs %.1f MiB (parameters %.1f, optimizer %.1f, gradients %.1f, "
				"activations %.1f, inputs %.1f%s) on %u device%s; %s %.1f MiB: use fewer "
				"devices, more virtual nodes or batch.slices, "
				"a smaller model, or %s", (double)bounds[i].need / mib,
				(double)t->params / mib, (double)t->slots / mib,
				(double)t->gradients / mib, (double)t->arenas / mib, (double)t->inputs / mib,
				bounds[i].need > t->held ? ", and what the process itself takes" : "",
				ndevices, ndevices == 1 ? "" : "s",
				bounds[i].bound, (double)bounds[i].have / mib, bounds[i].advice);
	return HD_OK;
}

uint64_t hd_task_mapped_bytes(const struct hd_task *task, const struct hd_memory_info *machine)
{
	return machine->free_is_space ? task->data->kept_bytes : 0;
}

static uint64_t beyond(uint64_t now, uint64_t before) { return now > before ? now - before : 0; }

enum hd_err hd_worker_fits(const struct hd_worker *w, struct hd_diag *diag)
{
	struct hd_memory_info machine;
	struct hd_memory_terms t;
	uint64_t asked = 0;

	hd_worker_memory(w, &t);
	hd_memory_look(&machine);
	struct hd_room room = { .limit_bytes = machine.limit_bytes, .free_bytes = machine.free_bytes };
	if (w->spec.memory_limit_bytes && hd_mul_u64(w->spec.memory_limit_bytes, w->spec.ndevices, &asked))
		room.devices_bytes = asked;
	room.used_bytes = machine.free_is_space ? beyond(machine.mapped_bytes,
		w->before.mapped_bytes) + hd_task_mapped_bytes(w->task, &machine) :
		beyond(machine.rss_bytes, w->before.rss_bytes);
	return hd_memory_fits(&t, &room, w->spec.ndevices, diag);
}

void hd_worker_growth(const struct hd_worker *w, struct hd_memory_growth *growth)
{
	struct hd_memory_info now;

	hd_memory_look(&now);
	*growth = (struct hd_memory_growth){
		.peak = beyond(now.rss_peak_bytes, w->before.rss_bytes),
		.files = beyond(now.rss_file_bytes, w->before.rss_file_bytes),
	};
}
