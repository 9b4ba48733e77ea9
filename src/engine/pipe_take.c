#include <assert.h>
#include <string.h>

#include "engine/parcel.h"
#include "engine/pipe_int.h"
#include "engine/post.h"
#include "engine/rest.h"
#include "engine/shadow.h"
#include "engine/worker_int.h"

/* Buffers of a plan of several stages: taken, given back, and laid out again for each step. */

/* ---- taken ---- */

/* Of the first of the rank's devices, or of all in turn. */
enum hd_err hd_pipe_take_pool(const struct hd_pipe *pipe, struct hd_seat *seat, struct hd_mail_pool *pool,
	bool in_turn, struct hd_arena *arena, struct hd_diag *diag)
{
	pool->free = hd_arena_take(arena, pool->cap + 1, sizeof *pool->free);
	if (!pool->free)
		return hd_pipe_no_memory(diag);
	for (pool->nfree = 0; pool->nfree < pool->cap; pool->nfree++) {
		/* a stage may be sent nothing: a place of its own all the same */
		const uint64_t bytes = pool->bytes ? pool->bytes : HD_PIPE_ALIGN;
		struct hd_device *device = pipe->worker->rank[seat->device + (in_turn ?
			hd_pipe_home(pipe, pool->nfree) : 0)].device;
		void *at;
		enum hd_err err = device->ops->take(device, bytes, &at, diag);
		if (err)
			return err;
		pool->free[pool->nfree] = seat->memory[seat->nmemory] = at;
		seat->memory_bytes[seat->nmemory++] = bytes;
	}
	return HD_OK;
}

/* What device j of a rank runs. */
static struct hd_program *part_of(const struct hd_pipe *pipe, const struct hd_seat *seat, uint32_t j)
{
	const struct hd_pipe_stage *stage = &pipe->stage[seat->stage];

	return &stage->tensor.part[stage->group * pipe->width + j];
}

static enum hd_err take_seat(struct hd_pipe *pipe, struct hd_seat *seat, struct hd_worker *w,
	struct hd_arena *arena, struct hd_diag *diag)
{
	const uint32_t n = seat->arena.cap + seat->mail[HD_MAIL_ACT].cap + seat->mail[HD_MAIL_GRAD].cap +
		seat->kept[HD_MAIL_ACT].cap + seat->kept[HD_MAIL_GRAD].cap;

	seat->memory = hd_arena_take(arena, n + 1, sizeof *seat->memory);
	seat->memory_bytes = hd_arena_take(arena, n + 1, sizeof *seat->memory_bytes);
	seat->vector = hd_arena_take(arena, seat->script.nbuffers + 1, sizeof *seat->vector);
	for (int kind = 0; kind < HD_MAILS; kind++)
		seat->unused[kind] = hd_arena_take(arena, pipe->nranks, 1);
	if (!seat->memory || !seat->memory_bytes || !seat->vector || !seat->unused[0] || !seat->unused[1])
		return hd_pipe_no_memory(diag);
	enum hd_err err = HD_OK;
	for (uint32_t j = 0; j < pipe->width && !err; j++) {
		struct hd_device *device = w->rank[seat->device + j].device;
		err = device->ops->load(device, part_of(pipe, seat, j), diag);
	}
	err = err ? err : hd_pipe_take_pool(pipe, seat, &seat->arena, true, arena, diag);
	for (int kind = 0; kind < HD_MAILS && !err; kind++)
		err = hd_pipe_take_pool(pipe, seat, &seat->mail[kind], false, arena, diag);
	for (int kind = 0; kind < HD_MAILS && !err; kind++)
		err = hd_pipe_take_pool(pipe, seat, &seat->kept[kind], false, arena, diag);
	return err;
}

/* Seats of a stage in the order of their flat vectors: the one with virtual node 0 is the first. */
void hd_pipe_give_vectors(struct hd_pipe *pipe)
{
	for (uint32_t s = 0; s < pipe->nstages; s++) {
		struct hd_seat *first = hd_cell_of(pipe, s, 0)->seat;     /* NULL: another worker's */
		uint32_t n = 0;
		for (uint32_t b = 0; first && b < first->script.nbuffers; b++)
			first->vector[b] = pipe->vector[n++];
		for (uint32_t i = 0; i < pipe->nseats; i++)
			for (uint32_t b = 0; pipe->seat[i].stage == s && &pipe->seat[i] != first &&
				b < pipe->seat[i].script.nbuffers; b++)
				pipe->seat[i].vector[b] = pipe->vector[n++];
	}
}

static bool all_here(const struct hd_pipe *pipe)
{
	uint32_t n = 0;

	while (n < pipe->nranks && pipe->device_of[n] != HD_NONE)
		n++;
	return n == pipe->nranks;
}

/* What a shadow sums is not part of the stage's sum. */
static bool sums(const struct hd_seat *seat, uint32_t stage) { return seat->stage == stage && !seat->shadow; }

/* The roots of all seats of a stage, joined in place of their left operands as far as both are here. Where
 * all seats are here: to flat vector 0. */
enum hd_err hd_pipe_make_joins(struct hd_pipe *pipe, uint32_t s, const struct hd_layout *layout,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_pipe_stage *stage = &pipe->stage[s];
	uint32_t nroots = 0, n = 0;

	for (uint32_t i = 0; i < pipe->nseats; i++)
		nroots += sums(&pipe->seat[i], s) ? pipe->seat[i].script.nroots : 0;
	struct hd_tnode *root = hd_arena_take(arena, nroots + 1, sizeof *root);
	struct hd_join *join = hd_arena_take(arena, nroots + 1, sizeof *join);
	float **item = stage->item = hd_arena_take(arena, 2 * nroots + 1, sizeof *item);
	stage->root = hd_arena_take(arena, nroots + 1, sizeof *stage->root);
	stage->join = hd_arena_take(arena, nroots + 1, sizeof *stage->join);
	if (!root || !join || !item || !stage->root || !stage->join)
		return hd_pipe_no_memory(diag);
	for (uint32_t i = 0; i < pipe->nseats; i++)
		for (uint32_t k = 0; sums(&pipe->seat[i], s) && k < pipe->seat[i].script.nroots; k++) {
			root[n] = pipe->seat[i].script.root[k];
			item[n++] = pipe->seat[i].vector[pipe->seat[i].script.root_buffer[k]];
		}
	enum hd_err err = nroots ? hd_join_some(pipe->nvns, root, nroots, join, nroots, &stage->njoins,
		stage->root, &stage->nroots, diag) : HD_OK;
	for (uint32_t j = 0; j < stage->njoins && !err; j++) {
		item[join[j].dst] = item[join[j].a];
		stage->join[j] = (struct hd_flat_join){ item[join[j].dst], item[join[j].a], item[join[j].b] };
	}
	assert(err || !all_here(pipe) || (stage->nroots == 1 &&
		item[stage->root[0].item] == pipe->vector[0]));
	if (err)
		return err;
	stage->part_join = hd_joins_of_parts(layout, stage->join, stage->njoins, pipe->vector[0], arena);
	return stage->part_join ? HD_OK : hd_pipe_no_memory(diag);
}

float *hd_pipe_pool_vector(const struct hd_pipe *pipe, uint32_t i)
{
	return pipe->worker->rank[i % pipe->ndevices].pool->buffer[i / pipe->ndevices];
}

enum hd_err hd_pipe_take(struct hd_pipe *pipe, struct hd_worker *w, struct hd_arena *arena,
	struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	for (uint32_t r = 0; r < pipe->ndevices; r++) {
		hd_lock_init(&pipe->box[r].lock);
		hd_cond_init(&pipe->box[r].cond);
	}
	hd_lock_init(&pipe->rows_lock);
	hd_tensor_open(pipe);
	pipe->taken = true;
	pipe->vector = hd_arena_take(arena, pipe->nvectors, sizeof *pipe->vector);
	if (!pipe->vector)
		return hd_pipe_no_memory(diag);
	for (uint32_t i = 0; i < pipe->nvectors; i++)
		pipe->vector[i] = hd_pipe_pool_vector(pipe, i + pipe->first_vector);
	for (uint32_t i = 0; i < pipe->nseats && !err; i++)
		err = take_seat(pipe, &pipe->seat[i], w, arena, diag);
	if (!err)
		hd_pipe_give_vectors(pipe);
	err = err ? err : hd_offload_take(pipe, w->spec.spill ? w->spec.spill : "/var/tmp", arena, diag);
	err = err ? err : hd_post_take(pipe, arena, diag);
	err = err ? err : hd_parcel_take(pipe, diag);
	err = err ? err : hd_shadows_take(pipe, arena, diag);
	for (uint32_t s = 0; s < pipe->nstages && !err; s++)
		err = hd_pipe_make_joins(pipe, s, &w->task->layout, arena, diag);
	return err;
}

static void give_seat(const struct hd_pipe *pipe, struct hd_seat *seat, struct hd_worker *w)
{
	for (uint32_t k = 0; k < seat->nmemory; k++) {
		struct hd_device *device = w->rank[seat->device + (k < seat->arena.cap ?
			hd_pipe_home(pipe, k) : 0)].device;
		device->ops->give(device, seat->memory[k], seat->memory_bytes[k]);
	}
	for (uint32_t j = 0; j < pipe->width; j++) {
		struct hd_device *device = w->rank[seat->device + j].device;
		device->ops->unload(device, part_of(pipe, seat, j));
	}
}

void hd_pipe_give(struct hd_pipe *pipe, struct hd_worker *w)
{
	if (!pipe || !pipe->taken)
		return;
	if (pipe->before) {
		hd_rest_give(pipe, w);
		return;
	}
	hd_post_give(pipe);
	hd_parcel_give(pipe);
	hd_shadows_give(pipe);
	hd_offload_give(pipe);
	for (uint32_t i = 0; i < pipe->nseats; i++)
		give_seat(pipe, &pipe->seat[i], w);
	hd_tensor_close(pipe);
	for (uint32_t r = 0; r < pipe->ndevices; r++) {
		hd_cond_finish(&pipe->box[r].cond);
		hd_lock_finish(&pipe->box[r].lock);
	}
	hd_lock_finish(&pipe->rows_lock);
	pipe->taken = false;
}

/* ---- a step ---- */

static void refill(struct hd_seat *seat, struct hd_mail_pool *pool, uint32_t *next)
{
	for (pool->nfree = 0; pool->nfree < pool->cap; pool->nfree++)
		pool->free[pool->nfree] = seat->memory[(*next)++];
}

/* Also after one that failed anywhere. */
void hd_pipe_clear(struct hd_pipe *pipe)
{
	atomic_store(&pipe->fenced, false);
	hd_tensor_clear(pipe);
	hd_offload_clear(pipe);
	for (size_t i = 0; i < pipe->ncells; i++) {
		struct hd_cell *cell = &pipe->cell[i];
		cell->kept[HD_MAIL_ACT] = cell->kept[HD_MAIL_GRAD] = NULL;
		cell->arena = cell->mail[HD_MAIL_ACT] = cell->mail[HD_MAIL_GRAD] = NULL;
		cell->taken[HD_MAIL_ACT] = cell->taken[HD_MAIL_GRAD] = NULL;
		cell->here[HD_MAIL_ACT] = cell->here[HD_MAIL_GRAD] = false;
		cell->left = cell->ends;
		cell->away = cell->sent = false;
	}
	memset(pipe->shadow_leaf, 0, pipe->nvns * sizeof *pipe->shadow_leaf);
	memset(pipe->shadow_moments, 0, (pipe->nsays - HD_LEAF_FIELDS) * pipe->nvns * pipe->keeps *
		sizeof *pipe->shadow_moments);
	for (uint32_t i = 0; i < pipe->nseats; i++) {
		struct hd_seat *seat = &pipe->seat[i];
		uint32_t next = 0;
		refill(seat, &seat->arena, &next);
		for (int kind = 0; kind < HD_MAILS; kind++) {
			refill(seat, &seat->mail[kind], &next);
			memset(seat->unused[kind], 0, pipe->nranks);
		}
		for (int kind = 0; kind < HD_MAILS; kind++)
			refill(seat, &seat->kept[kind], &next);
	}
	memset(pipe->loaded, 0, pipe->nvns * sizeof *pipe->loaded);
	memset(pipe->ahead_leaf, 0, pipe->nvns * sizeof *pipe->ahead_leaf);
	for (uint32_t v = 0; v < pipe->nvns; v++)
		pipe->left[v] = pipe->readers[v];
}

void hd_pipe_go_on(struct hd_pipe *pipe)
{
	memset(pipe->updated, 0, pipe->ndevices * sizeof *pipe->updated);
	for (uint32_t v = 0; v < pipe->nvns; v++) {
		pipe->worker->step->leaf[v] = pipe->ahead_leaf[v];
		hd_moments_clear(pipe->worker, v);
	}
}

void hd_pipe_begin(struct hd_pipe *pipe)
{
	hd_pipe_clear(pipe);
	hd_pipe_go_on(pipe);
	hd_shadows_begin(pipe);
	hd_post_begin(pipe);
	hd_parcel_begin(pipe);
}

/* The last reader of what was kept is the step. */
void hd_pipe_end(struct hd_pipe *pipe)
{
	for (uint32_t v = 0; v < pipe->nvns && pipe->keeps; v++)
		if (pipe->loaded[v] == HD_ROWS_READ)
			hd_reading_done(pipe->worker, (uint64_t)pipe->worker->count.step, v);
}
