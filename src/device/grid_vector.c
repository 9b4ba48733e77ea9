#include "device/grid_int.h"

#include "base/half.h"
#include "device/optim.h"

/* Runs of flat vectors are shared out in blocks: a multiple of 16 elements, 64 KiB, within the
 * second-level cache. */
enum { BLOCK_ELEMS = 16384 };

struct vector_work {
	const struct hd_cpu_vector *vector;
	float *dst;
	const float *a, *b;
	uint64_t len;
	const struct hd_update *update;
	const struct hd_segment *segment;
	const struct hd_reduction *reduction;
	double *partial, *moves;
};

static uint64_t block_len(uint64_t len, uint32_t i)
{
	uint64_t left = len - (uint64_t)i * BLOCK_ELEMS;

	return left < BLOCK_ELEMS ? left : BLOCK_ELEMS;
}

static uint32_t nblocks(uint64_t len) { return (uint32_t)((len + BLOCK_ELEMS - 1) / BLOCK_ELEMS); }

static void add_tile(const void *user, uint32_t i, void *scratch)
{
	const struct vector_work *w = user;
	uint64_t at = (uint64_t)i * BLOCK_ELEMS;

	(void)scratch;
	w->vector->add(w->dst + at, w->a + at, w->b + at, block_len(w->len, i));
}

static void copy_tile(const void *user, uint32_t i, void *scratch)
{
	const struct vector_work *w = user;
	uint64_t at = (uint64_t)i * BLOCK_ELEMS;

	(void)scratch;
	w->vector->copy(w->dst + at, w->a + at, block_len(w->len, i));
}

static void round_bf16(float *at, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		at[i] = hd_bf16_round(at[i]);
}

static void update_tile(const void *user, uint32_t i, void *scratch)
{
	const struct vector_work *w = user;
	const struct hd_update *u = w->update;
	uint64_t at = (uint64_t)i * BLOCK_ELEMS;

	(void)scratch;
	w->vector->update(u->scalars, u->param + at, u->grad + at, u->slot[0] ? u->slot[0] + at : NULL,
		u->slot[1] ? u->slot[1] + at : NULL, block_len(u->len, i));
	if (u->scalars->optim.bf16 && !u->scalars->skip)
		round_bf16(u->param + at, block_len(u->len, i));
	if (u->scalars->average > 0 && !u->scalars->skip)
		hd_optim_average(u->scalars->average, u->slot[hd_optims[u->scalars->optim.kind].nslots] + at,
			u->param + at, block_len(u->len, i));
}

/* A segment is joined in runs that stay in the first-level cache from one join to the next. */
static void reduce_tile(const void *user, uint32_t i, void *scratch)
{
	enum { RUN_ELEMS = 2048 };
	const struct vector_work *w = user;
	const struct hd_reduction *r = w->reduction;
	const struct hd_segment *s = &r->segment[i];

	(void)scratch;
	for (uint64_t from = 0; r->njoins && from < s->len; from += RUN_ELEMS) {
		uint64_t at = s->at + from, len = s->len - from < RUN_ELEMS ? s->len - from : RUN_ELEMS;
		for (uint32_t j = 0; j < r->njoins; j++)
			w->vector->add(r->join[j].dst + at, r->join[j].a + at, r->join[j].b + at, len);
	}
	if (r->partial)
		r->partial[i] = w->vector->sumsq(r->flat + s->at, s->len);
}

/* Temporary buffers hold one tensor at a time, so its elements start at 0 there. */
static float *buffer(const struct hd_program *program, const struct hd_bind *bind, const float *flat,
	uint8_t temp, uint64_t at)
{
	return temp ? bind->temp + (temp - 1) * program->temp_elems : flat ? (float *)(uintptr_t)flat + at :
		NULL;
}

bool hd_grid_fold(struct hd_grid *grid, const struct hd_program *program, const struct hd_bind *bind,
	const struct hd_part *part,
	uint32_t grad, const float *leaf)
{
	uint64_t at = program->layout->at[grad], len = program->layout->len[grad];
	bool good = true;

	for (uint32_t i = 0; i < part->nfolds; i++) {
		const struct hd_fold *fold = &part->fold[i];
		const float *src = buffer(program, bind, fold->src, fold->src_temp, at);
		struct vector_work work = { .vector = grid->kernels.vector,
			.dst = buffer(program, bind, fold->dst, fold->dst_temp, at),
			.a = src ? src : leaf, .len = len };
		if (fold->add) {
			work.b = work.a;
			work.a = work.dst;
		}
		good &= hd_team_run(grid->team, nblocks(len), false, fold->add ? add_tile : copy_tile, &work);
	}
	return good;
}

enum hd_err hd_grid_add(struct hd_device *device, float *dst, const float *a, const float *b, uint64_t len,
	uint64_t *token,
	struct hd_diag *diag)
{
	struct hd_grid *grid = hd_grid_of(device);
	const struct vector_work work = { .vector = grid->kernels.vector, .dst = dst, .a = a, .b = b,
		.len = len };

	if (!hd_team_run(grid->team, nblocks(len), false, add_tile, &work))
		return hd_grid_arithmetic(false, grid, diag);
	return hd_grid_done(grid, token);
}

enum hd_err hd_grid_reduce(struct hd_device *device, const struct hd_reduction *reduction, uint64_t *token,
	struct hd_diag *diag)
{
	struct hd_grid *grid = hd_grid_of(device);
	const struct vector_work work = { .vector = grid->kernels.vector, .reduction = reduction };

	if (!hd_team_run(grid->team, reduction->nsegments, false, reduce_tile, &work))
		return hd_grid_arithmetic(false, grid, diag);
	return hd_grid_done(grid, token);
}

static void measure_tile(const void *user, uint32_t i, void *scratch)
{
	const struct vector_work *w = user;
	const struct hd_update *u = w->update;
	uint64_t at = w->segment[i].at;
	double sums[2];

	(void)scratch;
	w->vector->measure(u->scalars, u->param + at, u->grad + at, u->slot[0] + at, u->slot[1] + at,
		w->segment[i].len, sums);
	w->partial[i] = sums[0];
	w->moves[i] = sums[1];
}

enum hd_err hd_grid_measure(struct hd_device *device, const struct hd_update *update,
	const struct hd_segment *segment, uint32_t n,
	double *param_sumsq, double *move_sumsq, uint64_t *token, struct hd_diag *diag)
{
	struct hd_grid *grid = hd_grid_of(device);
	const struct vector_work work = { .vector = grid->kernels.vector, .update = update,
		.segment = segment,
		.partial = param_sumsq, .moves = move_sumsq };

	if (!hd_team_run(grid->team, n, false, measure_tile, &work))
		return hd_grid_arithmetic(false, grid, diag);
	return hd_grid_done(grid, token);
}

enum hd_err hd_grid_update(struct hd_device *device, const struct hd_update *update, uint64_t *token,
	struct hd_diag *diag)
{
	struct hd_grid *grid = hd_grid_of(device);
	const struct vector_work work = { .vector = grid->kernels.vector, .update = update };

	if (!hd_team_run(grid->team, nblocks(update->len), false, update_tile, &work))
		return hd_grid_arithmetic(false, grid, diag);
	return hd_grid_done(grid, token);
}
