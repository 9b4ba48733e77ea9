#include "engine/stage.h"

/* The range and the memory of a stage. */

struct hd_readout hd_stage_readouts(const struct hd_graph *g)
{
	struct hd_readout out = { .loss = hd_graph_find_output(g, "loss"),
		.weight = hd_graph_find_output(g, "weight"), .correct = hd_graph_find_output(g, "correct"),
		.logits = hd_graph_find_output(g, "logits") };
	char name[] = "loss_1";

	for (uint32_t i = 0; i < HD_MODEL_TERMS; i++, name[5]++)
		out.term[i] = hd_graph_find_output(g, name);
	return out;
}

static enum hd_err find_range(struct hd_engine_stage *s, const struct hd_layout *layout, uint32_t first,
	uint32_t n,
	struct hd_diag *diag)
{
	const uint64_t end = (uint64_t)first + n;
	const uint32_t nbuckets = hd_layout_nbuckets(layout);

	s->first_bucket = first < layout->nchunks ? hd_layout_bucket_of(layout, first) : nbuckets;
	s->nbuckets = n ? (end < layout->nchunks ? hd_layout_bucket_of(layout, (uint32_t)end) : nbuckets) -
		s->first_bucket : 0;
	if (end > layout->nchunks || first != hd_layout_first_chunk(layout, s->first_bucket) ||
		end != hd_layout_first_chunk(layout, s->first_bucket + s->nbuckets))
		return hd_fail(diag, HD_E_INVAL,
			"chunks %u to %llu are no range of whole buckets of %u chunks", first,
			(unsigned long long)end, layout->nchunks);
	s->at = n ? layout->chunk[first].at : 0;
	s->len = n ? layout->chunk[end - 1].at + layout->chunk[end - 1].len - s->at : 0;
	return HD_OK;
}

static void cut_buckets(struct hd_engine_stage *s, const struct hd_layout *layout)
{
	for (uint32_t b = s->first_bucket; b < s->first_bucket + s->nbuckets; b++) {
		const struct hd_chunk run = hd_layout_bucket(layout, b);
		for (uint32_t i = run.first_segment; i < run.first_segment + run.nsegments; i++) {
			s->bucket_segment[i] = layout->segment[i];
			s->bucket_segment[i].at -= run.at;
			s->bucket_grads[b] += i == run.first_segment ||
				layout->segment[i].param != layout->segment[i - 1].param;
		}
	}
}

static void cut_pieces(struct hd_engine_stage *s, const struct hd_layout *layout)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < layout->npieces; i++) {
		const struct hd_grad_piece *piece = &layout->piece[i];
		const uint64_t at = layout->segment[piece->first_segment].at;
		s->bucket_grads[piece->bucket] += piece->bucket - s->first_bucket < s->nbuckets;
		s->first_piece_segment[i] = n;
		for (uint32_t k = 0; k < piece->nsegments; k++, n++) {
			s->piece_segment[n] = layout->segment[piece->first_segment + k];
			s->piece_segment[n].at -= at;
		}
	}
	s->first_piece_segment[layout->npieces] = n;
}

static uint64_t count_piece_segments(const struct hd_layout *layout)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < layout->npieces; i++)
		n += layout->piece[i].nsegments;
	return n;
}

enum hd_err hd_stage_make(struct hd_engine_stage *s, uint32_t number, const struct hd_layout *layout,
	uint32_t first_chunk, uint32_t nchunks, uint32_t ndevices, struct hd_arena *arena,
	struct hd_diag *diag)
{
	*s = (struct hd_engine_stage){ .number = number, .npools = ndevices,
		.flat_bytes = layout->grad_elems * sizeof(float),
		.sum_bytes = layout->elems * sizeof(float) };
	enum hd_err err = find_range(s, layout, first_chunk, nchunks, diag);

	if (err)
		return err;
	s->pool = hd_arena_take(arena, ndevices, sizeof *s->pool);
	s->bucket_grads = hd_arena_take(arena, hd_layout_nbuckets(layout) + 1, sizeof *s->bucket_grads);
	s->piece_segment = hd_arena_take(arena, count_piece_segments(layout) + 1, sizeof *s->piece_segment);
	s->first_piece_segment = hd_arena_take(arena, layout->npieces + 1u, sizeof *s->first_piece_segment);
	s->bucket_segment = hd_arena_take(arena, layout->nsegments + 1, sizeof *s->bucket_segment);
	if (!s->pool || !s->bucket_grads || !s->bucket_segment || !s->piece_segment ||
		!s->first_piece_segment)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the tables of %u buckets", s->nbuckets);
	cut_buckets(s, layout);
	cut_pieces(s, layout);
	return HD_OK;
}

enum hd_err hd_stage_take(struct hd_engine_stage *s, const struct hd_layout *layout, struct hd_device *first,
	struct hd_arena *arena, struct hd_diag *diag)
{
	s->segment_sumsq = hd_arena_take(arena, layout->nsegments + 1, sizeof *s->segment_sumsq);
	for (uint32_t k = 0; k < 2; k++)
		s->unit_sumsq[k] = hd_arena_take(arena, layout->nsegments + 1, sizeof **s->unit_sumsq);
	if (!s->segment_sumsq || !s->unit_sumsq[0] || !s->unit_sumsq[1])
		return hd_fail(diag, HD_E_NOMEM, "no memory for the tables of %u segments",
			layout->nsegments);
	return first->ops->take(first, HD_ZEROS_ELEMS * sizeof(float), (void **)&s->zeros, diag);
}

enum hd_err hd_stage_take_sum(struct hd_engine_stage *s, struct hd_device *first, struct hd_diag *diag)
{
	return s->sum ? HD_OK : first->ops->take(first, s->sum_bytes, (void **)&s->sum, diag);
}

void hd_stage_give(struct hd_engine_stage *s, struct hd_device *first)
{
	first->ops->give(first, s->zeros, HD_ZEROS_ELEMS * sizeof(float));
	first->ops->give(first, s->sum, s->sum_bytes);
	s->zeros = s->sum = NULL;
}

enum hd_err hd_pool_grow(struct hd_grad_pool *pool, uint64_t flat_bytes, uint32_t n, struct hd_device *device,
	struct hd_arena *arena, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	if (n <= pool->cap)
		return HD_OK;
	float **buffer = hd_arena_take(arena, n, sizeof *buffer);
	if (!buffer)
		return hd_fail(diag, HD_E_NOMEM, "no memory for %u gradient buffers", n);
	for (uint32_t i = 0; i < pool->cap; i++)
		buffer[i] = pool->buffer[i];
	pool->buffer = buffer;
	while (pool->cap < n && !err) {
		err = device->ops->take(device, flat_bytes, (void **)&buffer[pool->cap], diag);
		pool->cap += !err;
	}
	return err;
}

/* The old one stays when a larger one cannot be had: the work at hand points to the pool, not to the
 * memory. */
enum hd_err hd_pool_grow_temp(struct hd_grad_pool *pool, uint64_t bytes, struct hd_device *device,
	struct hd_diag *diag)
{
	float *temp;

	if (bytes <= pool->temp_bytes)
		return HD_OK;
	enum hd_err err = device->ops->take(device, bytes, (void **)&temp, diag);
	if (err)
		return err;
	device->ops->give(device, pool->temp, pool->temp_bytes);
	pool->temp = temp;
	pool->temp_bytes = bytes;
	return HD_OK;
}

void hd_pool_give(struct hd_grad_pool *pool, uint64_t flat_bytes, struct hd_device *device)
{
	for (uint32_t i = 0; i < pool->cap; i++)
		device->ops->give(device, pool->buffer[i], flat_bytes);
	device->ops->give(device, pool->temp, pool->temp_bytes);
	*pool = (struct hd_grad_pool){ 0 };
}

bool hd_stage_learns(const struct hd_engine_stage *s, uint64_t at, uint64_t len)
{
	return at >= s->at && at - s->at <= s->len && len <= s->len - (at - s->at);
}
