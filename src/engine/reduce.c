#include "engine/worker_int.h"

#include "engine/part_int.h"
#include "engine/pipe.h"

/* The next run of chunks that a rank owns, from chunk *next on, as one chunk: one call of the device for all
 * of it, so that its threads share the whole. false: there is none. */
bool hd_rank_owned(const struct hd_rank *rank, uint32_t *next, struct hd_chunk *run)
{
	const struct hd_layout *layout = &rank->worker->task->layout;
	const uint32_t *owner = rank->worker->parts->part->owner;
	uint32_t c = *next;

	while (c < layout->nchunks && owner[c] != rank->id)
		c++;
	*run = (struct hd_chunk){ 0 };
	for (; c < layout->nchunks && owner[c] == rank->id; c++) {
		const struct hd_chunk *chunk = &layout->chunk[c];
		if (run->nsegments == 0)
			*run = (struct hd_chunk){ .at = chunk->at, .first_segment = chunk->first_segment };
		run->len += chunk->len;
		run->nsegments += chunk->nsegments;
	}
	*next = c;
	return run->nsegments > 0;
}

static void finish(struct hd_rank *rank, enum hd_err err, uint64_t token)
{
	err = err ? err : rank->device->ops->wait(rank->device, token, &rank->diag);
	if (err)
		hd_rank_fail(rank, err);
}

/* Segments of a tied parameter that lie in a run of chunks; false: none does. */
static bool segments_within(const struct hd_layout *layout, uint32_t param, const struct hd_chunk *run,
	uint32_t *first, uint32_t *end)
{
	const uint32_t last = run->first_segment + run->nsegments;

	*first = layout->first_segment[param];
	*end = layout->first_segment[param + 1];
	*first = *first > run->first_segment ? *first : run->first_segment;
	*end = *end < last ? *end : last;
	return *first < *end;
}

/* The same joins of each further part of a tied parameter, after those of its first, over the seats of the
 * stage that makes it if there are stages. In a step that this worker runs alone they make sums, and each
 * is added to the parameter's, whose squares are taken again; in a step in two sections the fold of the
 * bucket does that, whoever makes it. */
enum hd_err hd_reduce_parts(struct hd_rank *rank, const struct hd_chunk *run, uint64_t *token)
{
	struct hd_worker *w = rank->worker;
	const struct hd_work *work = w->step->work;
	const struct hd_layout *layout = &w->task->layout;
	const bool adds = work->whole && w->step->section == HD_SECTION_ALL;
	uint32_t first, end;
	enum hd_err err = HD_OK;

	for (uint32_t g = layout->nparams; g < layout->ngrads && !err; g++) {
		const struct hd_pipe_stage *stage = work->pipe ?
			&work->pipe->stage[work->pipe->spread.of_grad[g]] : NULL;
		const struct hd_flat_join *join = stage ? stage->part_join : work->part_join;
		const uint32_t njoins = stage ? stage->njoins : work->njoins;
		if (!(njoins + adds) || !segments_within(layout, layout->grad_param[g], run, &first, &end))
			continue;
		const struct hd_reduction reduction = {
			.join = join + (size_t)(g - layout->nparams) * (njoins + 1),
			.njoins = njoins + adds, .flat = hd_worker_sum(w),
			.segment = layout->segment + first, .nsegments = end - first,
			.partial = adds ? w->stage->segment_sumsq + first : NULL,
		};
		err = rank->device->ops->reduce(rank->device, &reduction, token, &rank->diag);
	}
	return err;
}

/* RED: the owner of a chunk joins the roots of all ranks along the tree. The sum
 * takes the place of the left operand, so no memory but the ranks' own gradient
 * buffers is needed: "per chunk a worker holds either its roots or the sum". A root
 * is final when every rank has met; a chunk is touched by its owner alone. Of a step that
 * several workers share the joins go as far as both operands are here, and the sums follow bucket by
 * bucket. */
void hd_reduce_chunks(struct hd_rank *rank)
{
	struct hd_worker *w = rank->worker;
	const struct hd_work *work = w->step->work;
	struct hd_chunk run;
	uint64_t token = 0;
	uint32_t next = 0;
	enum hd_err err = HD_OK;

	if (!work->whole && work->njoins == 0)
		return;
	while (!err && hd_rank_owned(rank, &next, &run)) {
		const struct hd_reduction reduction = {
			.join = work->join, .njoins = work->njoins, .flat = hd_worker_sum(w),
			.segment = w->task->layout.segment + run.first_segment, .nsegments = run.nsegments,
			.partial = work->whole ? w->stage->segment_sumsq + run.first_segment : NULL,
		};
		err = rank->device->ops->reduce(rank->device, &reduction, &token, &rank->diag);
		err = err ? err : hd_reduce_parts(rank, &run, &token);
	}
	finish(rank, err, token);
}

/* The joins of a stage's part of a run as addresses: a sum takes the place of its left operand, the last
 * one that of `sum` unless that is NULL. Where the last one comes to lie is in *result. There is room for
 * one join more. */
static struct hd_flat_join *joins_of(struct hd_rank *rank, const struct hd_stage_operands *of,
	const float *const *operand, float *sum, float **result)
{
	const struct hd_operands *o = &rank->worker->step->operands;
	struct hd_flat_join *join = o->flat_join + (size_t)rank->id * o->cap;
	float **item = o->item + (size_t)rank->id * 2 * o->cap;

	for (uint32_t i = 0; i < of->n; i++)
		item[i] = (float *)(uintptr_t)operand[of->index[i]];
	for (uint32_t j = 0; j < of->njoins; j++) {
		const struct hd_join *k = &of->join[j];
		item[k->dst] = k->dst == of->result && sum ? sum : item[k->a];
		join[j] = (struct hd_flat_join){ item[k->dst], item[k->a], item[k->b] };
	}
	*result = item[of->result];
	return join;
}

/* Segments [first, end) of a bucket, all of one stage: joins (none where the sum came from its owner), then
 * the sums of squares, by the same pass of the device as RED. `sum`: of the bucket. */
static enum hd_err sum_run(struct hd_rank *rank, uint32_t first, uint32_t end, float *sum, uint32_t stage,
	const struct hd_dist_fold *fold, uint64_t *token)
{
	struct hd_worker *w = rank->worker;
	const struct hd_stage_operands *of = fold ? &w->step->operands.of[stage] : NULL;
	const struct hd_segment *segment = w->stage->bucket_segment;
	const struct hd_device_ops *ops = rank->device->ops;
	struct hd_reduction reduction = { .flat = sum, .segment = segment + first, .nsegments = end - first,
		.partial = w->stage->segment_sumsq + first };
	enum hd_err err = HD_OK;
	float *made;

	if (of) {
		reduction.join = joins_of(rank, of, fold->operand, sum, &made);
		reduction.njoins = of->njoins;
	}
	/* a single root is the sum; pads of a flat vector are +0.0 everywhere */
	for (uint32_t i = first; of && of->njoins == 0 && fold->operand[of->index[0]] != sum && i < end &&
		!err; i++)
		err = ops->write(rank->device, sum + segment[i].at, fold->operand[of->index[0]] +
			segment[i].at, segment[i].len * sizeof *sum, token);
	return err ? err : ops->reduce(rank->device, &reduction, token, &rank->diag);
}

/* The pieces of a bucket, whose own joins are made: each is joined where its operands lie, then added to the
 * bucket's sum, whose squares are taken again. */
static enum hd_err add_pieces(struct hd_rank *rank, const struct hd_dist_fold *fold, float *sum,
	uint64_t *token)
{
	struct hd_worker *w = rank->worker;
	const struct hd_layout *layout = &w->task->layout;
	const struct hd_operands *o = &w->step->operands;
	const struct hd_pipe *pipe = hd_worker_work(w)->pipe;
	const uint64_t at = hd_layout_bucket(layout, fold->bucket).at;
	uint32_t first, n = hd_layout_pieces(layout, fold->bucket, &first);
	enum hd_err err = HD_OK;

	first -= hd_layout_nbuckets(layout);
	for (uint32_t i = 0; i < n && !err; i++) {
		const struct hd_grad_piece *piece = &layout->piece[first + i];
		const struct hd_stage_operands *of = &o->of[pipe ? pipe->spread.of_grad[piece->grad] : 0];
		float *to = sum + (layout->segment[piece->first_segment].at - at), *made;
		struct hd_flat_join *join = joins_of(rank, of, fold->operand + (size_t)(i + 1) * o->n, NULL,
			&made);
		join[of->njoins] = (struct hd_flat_join){ to, to, made };
		const struct hd_reduction reduction = { .join = join, .njoins = of->njoins + 1, .flat = to,
			.segment = w->stage->piece_segment + w->stage->first_piece_segment[first + i],
			.nsegments = piece->nsegments,
			.partial = w->stage->segment_sumsq + piece->first_segment };
		err = rank->device->ops->reduce(rank->device, &reduction, token, &rank->diag);
	}
	return err;
}

static enum hd_err sum_bucket(struct hd_rank *rank, uint32_t bucket, const struct hd_dist_fold *fold,
	uint64_t *token)
{
	struct hd_worker *w = rank->worker;
	const struct hd_pipe *pipe = hd_worker_work(w)->pipe;
	const struct hd_chunk run = hd_layout_bucket(&w->task->layout, bucket);
	const uint32_t last = run.first_segment + run.nsegments;
	uint32_t stage = 0, end;
	enum hd_err err = HD_OK;

	for (uint32_t i = run.first_segment; i < last && !err; i = end) {
		end = pipe && fold ? hd_pipe_run(pipe, i, last, &stage) : last;
		err = sum_run(rank, i, end, hd_worker_sum(w) + run.at, stage, fold, token);
	}
	return err || !fold ? err : add_pieces(rank, fold, hd_worker_sum(w) + run.at, token);
}

enum hd_err hd_sum_bucket(struct hd_rank *rank, uint32_t bucket, const struct hd_dist_fold *fold,
	struct hd_diag *diag)
{
	uint64_t token = 0;
	enum hd_err err = sum_bucket(rank, bucket, fold, &token);

	err = err ? err : rank->device->ops->wait(rank->device, token, &rank->diag);
	return err ? hd_fail(diag, err, "%s", rank->diag.text[0] ? rank->diag.text : hd_err_text(err)) :
		HD_OK;
}

/* Every device takes every ndevices-th of the buckets at hand. */
void hd_sum_buckets(struct hd_rank *rank)
{
	struct hd_worker *w = rank->worker;
	uint64_t token = 0;
	enum hd_err err = HD_OK;

	for (uint32_t i = rank->id; i < w->step->nfolds && !err; i += w->spec.ndevices)
		err = sum_bucket(rank, w->step->fold ? w->step->fold[i].bucket : w->step->arrived[i],
			w->step->fold ? &w->step->fold[i] : NULL, &token);
	finish(rank, err, token);
}
