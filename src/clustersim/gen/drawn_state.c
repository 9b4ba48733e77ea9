#include "clustersim/drawn_state.h"

#include <assert.h>
#include <math.h>

#include "base/philox.h"

enum draws { KIND_SIZE, KIND_SPEED, KIND_LOSS, JOB_KIND, JOB_SCALE, JOB_STEPS, JOB_WEIGHT, JOB_SPEED,
	JOB_CURVE, JOB_MODEL };

/* Above 0, below 1. */
static double draw(uint32_t seed, enum draws what, uint32_t i)
{
	struct hd_philox x = hd_philox((uint32_t[4]){ HD_RNG_CLUSTER_KIND, (uint32_t)what, i, 77 },
		hd_philox_key(seed, HD_RNG_CLUSTER));

	return ((double)x.word[0] + 0.5) * 0x1p-32;
}

/* On 1 to 8 devices, or to 16 for those of 8: k devices go as fast as k^0.7 to k^1 of them. */
static enum hd_err draw_elastic(struct hd_arena *arena, uint32_t seed, uint32_t i, struct hd_sched_job *job,
	struct hd_diag *diag)
{
	uint32_t most = job->scale < 8 ? 8 : 16;
	double *speedup = hd_arena_take(arena, most + 1, sizeof *speedup),
		power = 0.7 + 0.3 * draw(seed, JOB_CURVE, i);
	struct hd_sched_elastic *elastic = hd_arena_take(arena, 1, sizeof *elastic);

	if (!speedup || !elastic)
		return hd_fail(diag, HD_E_NOMEM, "no memory for a job");
	for (uint32_t k = 1; k <= most; k++)
		speedup[k] = pow(k, power);
	*elastic = (struct hd_sched_elastic){ .min = 1, .max = most, .nvns = most, .speedup = speedup,
		.resize_s = 1 };
	job->elastic = elastic;
	return HD_OK;
}

/* Around the model that docs/scheduling.md shows. */
static enum hd_err draw_model(struct hd_arena *arena, uint32_t seed, uint32_t i, struct hd_sched_job *job,
	struct hd_diag *diag)
{
	struct hd_sched_goodput *m = hd_arena_take(arena, 1, sizeof *m);

	if (!m)
		return hd_fail(diag, HD_E_NOMEM, "no memory for a job");
	*m = (struct hd_sched_goodput){ .ac = 0.1 * (0.5 + draw(seed, JOB_MODEL, 8 * i)),
		.bc = 0.01 * (0.5 + draw(seed, JOB_MODEL, 8 * i + 1)),
		.ar = 0.3 * draw(seed, JOB_MODEL, 8 * i + 2), .br = 0.05 * draw(seed, JOB_MODEL, 8 * i + 3),
		.g = 2, .var = 3000 * draw(seed, JOB_MODEL, 8 * i + 4), .sqr = 10, .batch = 128,
		.most_batch = 4096, .most_local = 64 };
	job->goodput = m;
	return HD_OK;
}

/* [kind][type] */
static double *draw_rates(const struct hd_drawn_setting *c, struct hd_arena *arena)
{
	double *rate = hd_arena_take(arena, (size_t)HD_DRAWN_KINDS * c->ntypes, sizeof *rate);

	for (uint32_t k = 0; rate && k < HD_DRAWN_KINDS; k++)
		for (uint32_t t = 0; t < c->ntypes; t++)
			rate[k * c->ntypes + t] = exp(5 * draw(c->seed, KIND_SIZE, k)) *
				pow(1.2 + 1.6 * draw(c->seed, KIND_SPEED, k), t);
	return rate;
}

/* [kind][kind][type][2]: what is left to each of two that share a device. */
static double *draw_pairs(const struct hd_drawn_setting *c, const double *rate, struct hd_arena *arena)
{
	double *pair = hd_arena_take(arena, (size_t)HD_DRAWN_KINDS * HD_DRAWN_KINDS * c->ntypes * 2,
		sizeof *pair);

	for (uint32_t a = 0; pair && a < HD_DRAWN_KINDS; a++)
		for (uint32_t b = 0; b < HD_DRAWN_KINDS; b++)
			for (uint32_t t = 0; t < c->ntypes; t++) {
				double *both = &pair[(((size_t)a * HD_DRAWN_KINDS + b) * c->ntypes + t) * 2];
				both[0] = rate[a * c->ntypes + t] * (0.35 + 0.6 * draw(c->seed, KIND_LOSS,
					b));
				both[1] = rate[b * c->ntypes + t] * (0.35 + 0.6 * draw(c->seed, KIND_LOSS,
					a));
			}
	return pair;
}

static enum hd_err draw_job(const struct hd_drawn_setting *c, uint32_t i, double *rate,
	uint32_t gang, struct hd_sched_job *job, struct hd_arena *arena, struct hd_diag *diag)
{
	uint32_t kind = (uint32_t)(HD_DRAWN_KINDS * draw(c->seed, JOB_KIND, i));
	double u = draw(c->seed, JOB_SCALE, i), *own = &rate[kind * c->ntypes];

	if (c->jobs != HD_DRAWN_PAIRS && !(own = hd_arena_take(arena, c->ntypes, sizeof *own)))
		return hd_fail(diag, HD_E_NOMEM, "no memory for %u jobs", c->njobs);
	for (uint32_t t = 0; t < c->ntypes && c->jobs != HD_DRAWN_PAIRS; t++)
		own[t] = rate[kind * c->ntypes + t] * (0.95 + 0.1 * draw(c->seed, JOB_SPEED,
			i * c->ntypes + t));
	*job = (struct hd_sched_job){ .id = i, .kind = "", .ikind = kind,
		.scale = c->jobs == HD_DRAWN_PAIRS || u < 0.7 ? 1 : u < 0.8 ? 2 : u < 0.95 ? 4 : 8,
		.weight = 1 + floor(4 * draw(c->seed, JOB_WEIGHT, i)),
		.steps_left = 1e4 * exp(6 * draw(c->seed, JOB_STEPS, i)),
		.deadline_s = INFINITY, .entity = HD_SCHED_NONE, .rate = own };
	if (c->large && i % c->large == c->large - 1)
		job->scale = gang;
	enum hd_err err = c->jobs >= HD_DRAWN_ELASTIC ? draw_elastic(arena, c->seed, i, job, diag) : HD_OK;
	return err || c->jobs != HD_DRAWN_LEARNING ? err : draw_model(arena, c->seed, i, job, diag);
}

enum hd_err hd_drawn_state_make(struct hd_drawn_state *drawn, const struct hd_drawn_setting *c,
	struct hd_arena *arena, struct hd_diag *diag)
{
	static const char *const names[HD_DRAWN_TYPES] = { "t0", "t1", "t2", "t3", "t4", "t5", "t6", "t7" };
	struct hd_sched_type *types = hd_arena_take(arena, c->ntypes, sizeof *types);
	struct hd_sched_job *jobs = hd_arena_take(arena, c->njobs, sizeof *jobs);
	double *rate = draw_rates(c, arena), *pair = rate ? draw_pairs(c, rate, arena) : NULL;
	enum hd_err err = HD_OK;

	assert(c->ntypes && c->ntypes <= HD_DRAWN_TYPES);
	if (!types || !jobs || !pair)
		return hd_fail(diag, HD_E_NOMEM, "no memory for %u jobs", c->njobs);
	for (uint32_t t = 0; t < c->ntypes; t++)
		types[t] = (struct hd_sched_type){ .name = names[t], .n = c->njobs / c->ntypes / 2 + 8,
			.price_usd_h = 0.1 * (1 << t) };
	for (uint32_t i = 0; i < c->njobs && !err; i++)
		err = draw_job(c, i, rate, 3 * types[0].n / 5, &jobs[i], arena, diag);
	drawn->table = (struct hd_pair_table){ HD_DRAWN_KINDS, pair };
	drawn->state = (struct hd_sched_state){ .ntypes = c->ntypes, .njobs = c->njobs, .types = types,
		.jobs = jobs, .table = c->jobs == HD_DRAWN_PAIRS ? &drawn->table : NULL };
	return err;
}
