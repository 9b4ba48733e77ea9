#include <stdio.h>

#include "base/checked.h"
#include "sys/memory.h"
#include "exec/worker_int.h"

/* What the job needs against what it may have and what is there: said before it is taken, with
 * numbers, not by the kernel's killer in the middle of a step. Memory of devices is lazy, so what
 * is taken is not yet in use; what is in use shows in the resident size. */

static uint64_t buffers_of(const struct hd_rank *rank)
{
	uint32_t n = rank->script.nbuffers > rank->buffer_cap ? rank->script.nbuffers : rank->buffer_cap;

	return n ? n : 1;
}

/* In lockstep every virtual node of a rank keeps its activations; without a plan they are counted as spread evenly. */
static uint64_t arenas_of(const struct hd_worker *w, uint32_t rank)
{
	uint32_t d = w->spec.ndevices, vns = w->task->job->nvns, even = vns / d + (rank < vns % d);

	if (!hd_lockstep_needed(&w->lockstep))
		return 0;
	if (!w->rank || !w->rank[rank].script.vn)
		return even;
	return w->rank[rank].script.nvns_here > w->rank[rank].narenas ? w->rank[rank].script.nvns_here : w->rank[rank].narenas;
}

void hd_worker_memory(const struct hd_worker *w, struct hd_memory_terms *t)
{
	const struct hd_dataset *data = w->task->data;
	uint64_t sample_bytes = 0, buffers = 0, temps = 0, device = 0, arenas = 0, d = w->spec.ndevices, batch = w->task->job->nvns * w->task->job->per_vn;

	for (uint32_t f = 0; f < data->nfields; f++)
		sample_bytes += data->field[f].sample_bytes;
	const uint64_t shared = w->params_bytes + w->buffer_bytes + w->flat_bytes * hd_optims[w->task->optim.kind].nslots
		+ hd_moments_bytes(&w->task->train, w->task->job->nvns) + HD_ZEROS_ELEMS * sizeof(float);
	for (uint32_t r = 0; r < d; r++) {
		uint64_t own = w->flat_bytes * (w->rank ? buffers_of(&w->rank[r]) : 1) + w->train.memory.len_bytes * (1 + arenas_of(w, r))
			+ w->infer.memory.len_bytes + sample_bytes * w->task->job->per_vn
			+ (w->rank ? w->rank[r].script.ntemps * w->train.temp_elems * sizeof(float) : 0);
		own += r == 0 ? shared : 0;
		device = own > device ? own : device;
		buffers += w->rank ? buffers_of(&w->rank[r]) : 1;
		arenas += arenas_of(w, r);
		temps += w->rank ? w->rank[r].script.ntemps * w->train.temp_elems * sizeof(float) : 0;
	}
	uint64_t fit = HD_PREFETCH_BYTES / (batch * sample_bytes + 1), depth = fit < HD_PREFETCH_STEPS ? fit : HD_PREFETCH_STEPS;
	*t = (struct hd_memory_terms){
		.params = w->params_bytes + w->buffer_bytes,
		.slots = w->flat_bytes * hd_optims[w->task->optim.kind].nslots,
		.gradients = w->flat_bytes * buffers + temps,
		.arenas = w->train.memory.len_bytes * (d + arenas) + w->infer.memory.len_bytes * d + hd_moments_bytes(&w->task->train, w->task->job->nvns)
			+ hd_lockstep_bytes(&w->task->train, w->task->job->nvns),
		.inputs = sample_bytes * (d * w->task->job->per_vn + depth * batch),
		.device = device,
	};
	t->total = t->params + t->slots + t->gradients + t->arenas + t->inputs;
}

enum hd_err hd_memory_fits(const struct hd_memory_terms *t, const struct hd_room *room, uint32_t ndevices, struct hd_diag *diag)
{
	const double mib = 1 << 20;
	uint64_t missing = t->total > room->used_bytes ? t->total - room->used_bytes : 0;
	bool allowed = t->total <= room->limit_bytes;

	if (allowed && missing <= room->free_bytes)
		return HD_OK;
	return hd_fail(diag, HD_E_REFUSED, "the job needs %.1f MiB (parameters %.1f, optimizer %.1f, gradients %.1f, activations %.1f, inputs %.1f) "
		"on %u device%s; %s %.1f MiB: use fewer devices, more virtual nodes or batch.slices, a smaller model, or %s",
		(double)t->total / mib, (double)t->params / mib, (double)t->slots / mib, (double)t->gradients / mib, (double)t->arenas / mib,
		(double)t->inputs / mib, ndevices, ndevices == 1 ? "" : "s", allowed ? "what is free now would let it have" : "it may use",
		(double)(allowed ? room->free_bytes + room->used_bytes : room->limit_bytes) / mib,
		allowed ? "end other programs" : "raise workers.memory");
}

enum hd_err hd_worker_fits(const struct hd_worker *w, struct hd_diag *diag)
{
	struct hd_memory_info machine;
	struct hd_memory_terms t;
	uint64_t asked = 0;

	hd_worker_memory(w, &t);
	hd_memory_look(&machine);
	struct hd_room room = { .limit_bytes = machine.limit_bytes, .free_bytes = machine.free_bytes };
	if (w->spec.memory_limit_bytes && hd_mul_u64(w->spec.memory_limit_bytes, w->spec.ndevices, &asked) && asked < room.limit_bytes)
		room.limit_bytes = asked;
	room.used_bytes = machine.rss_bytes > w->rss_before_bytes ? machine.rss_bytes - w->rss_before_bytes : 0;
	return hd_memory_fits(&t, &room, w->spec.ndevices, diag);
}
