/* Which law each policy promises: one table, walked on random clusters, printed for docs/results/laws.md. A
 * law that is not promised is tried as well, and what is printed is how often it was broken: nothing is
 * claimed of it. allox is not here: it refuses gangs, which these clusters have. */
#include "scheduler/policy/testing_oracle.h"

enum { CLUSTERS = SANITIZED ? 6 : 24 };

/*     id        name        what it says */
#define LAWS(X)                                                                                      \
	X(CAPACITY,  "capacity", "no job above its time, no type above its devices, to 1e-9")        \
	X(PACKING,   "packing",  "at most two jobs on a device, of equal scale, both computing, worth more together than one alone") \
	X(WHOLE,     "whole",    "no share of a type with fewer devices than the job needs at once") \
	X(LEAST,     "least",    "of equals without age the worst off is no worse off than with 1/n of everything") \
	X(INCENTIVE, "share",    "of equals without age everybody has at least what 1/n of everything gives") \
	X(PARETO,    "pareto",   "no job can have more without another having less (equal weights, no pairs)") \
	X(SCALE,     "scale",    "a job that counts its steps in thousandths gets the same shares")  \
	X(ORDER,     "order",    "the order of jobs and types in a file changes no byte")            \
	X(ZERO,      "zero",     "types without devices, speeds of 0 and jobs that nothing can run are survived, and get nothing") \
	X(WEIGHT,    "weight",   "twice the weight is never less")

enum law {
#define X(id, name, says) LAW_##id,
	LAWS(X)
#undef X
	NLAWS
};
static const struct { const char *name, *says; } law_texts[] = {
#define X(id, name, says) { name, says },
	LAWS(X)
#undef X
};

#define L(id) (1u << LAW_##id)
#define ALWAYS (L(CAPACITY) | L(PACKING) | L(WHOLE) | L(ORDER) | L(ZERO))

static const struct promised { const char *policy; uint32_t laws; } promised[] = {
	{ "las", ALWAYS | L(LEAST) | L(PARETO) | L(SCALE) | L(WEIGHT) },
	{ "las-plain", ALWAYS | L(SCALE) },
	{ "las-packed", ALWAYS | L(LEAST) | L(PARETO) | L(SCALE) | L(WEIGHT) },
	{ "las-kinds", ALWAYS | L(LEAST) | L(PARETO) | L(SCALE) | L(WEIGHT) },
	{ "ftf", ALWAYS | L(LEAST) | L(INCENTIVE) | L(PARETO) | L(SCALE) },
	{ "ftf-packed", ALWAYS | L(LEAST) | L(INCENTIVE) | L(PARETO) | L(SCALE) },
	{ "makespan", ALWAYS | L(PARETO) | L(SCALE) },
	{ "makespan-packed", ALWAYS | L(PARETO) | L(SCALE) },
	{ "sum", ALWAYS | L(PARETO) | L(SCALE) | L(WEIGHT) },
	{ "sum-packed", ALWAYS | L(PARETO) | L(SCALE) | L(WEIGHT) },
	{ "cost", ALWAYS | L(SCALE) },
	{ "cost-packed", ALWAYS | L(SCALE) },
	{ "hierarchy", ALWAYS | L(PARETO) | L(SCALE) },
	{ "hierarchy-packed", ALWAYS | L(PARETO) | L(SCALE) },
	{ "nash", ALWAYS | L(SCALE) },
	{ "isolated", ALWAYS | L(LEAST) | L(INCENTIVE) | L(SCALE) },
	{ "pop:2:las", ALWAYS },
	{ "fifo", ALWAYS | L(SCALE) },
	{ "fifo-packed", ALWAYS },
	{ "sjf", ALWAYS | L(SCALE) },
	{ "gandiva-packed", ALWAYS },
	{ "heddle", ALWAYS },
	{ "heddle-packed", ALWAYS },
	{ "goodput", ALWAYS },
};
enum { NPROMISED = sizeof promised / sizeof *promised };

struct trial { const char *policy; uint32_t seed; struct hd_sched_state s; struct hd_sched_job *jobs; };

static void draw_state(struct trial *t)
{
	random_state(&t->s, t->seed, 1 + t->seed * 7 % 20, 1 + t->seed % 5, &arena);
	t->jobs = (struct hd_sched_job *)t->s.jobs;
}

static void answer(const struct trial *t, struct hd_shares *out) { ask(t->policy,
	(struct hd_policy_setting){ .deadlines = true }, &t->s, &arena, out); }

static bool capacity(struct trial *t)
{
	struct hd_shares out;
	double time[32] = { 0 }, used[5] = { 0 };
	bool kept = true;

	answer(t, &out);
	for (uint32_t k = 0; k < out.nshapes; k++) {
		for (int m = 0; m < out.shape[k].nmembers; m++)
			kept &= (time[out.shape[k].member[m]] += out.x[k]) <= 1 + 1e-9;
		for (int d = 0; d < out.shape[k].nneeds; d++)
			used[out.shape[k].need[d].type] += out.x[k] * out.shape[k].need[d].n;
	}
	for (uint32_t j = 0; j < t->s.ntypes; j++)
		kept &= used[j] <= t->s.types[j].n * (1 + 1e-9);
	return kept;
}

static bool packing(struct trial *t)
{
	struct hd_shares out;
	bool kept = true;

	answer(t, &out);
	for (uint32_t k = 0; k < out.nshapes; k++) {
		const struct hd_shape *shape = &out.shape[k];
		const struct hd_sched_job *a = &t->s.jobs[shape->member[0]],
			*b = shape->nmembers == 2 ? &t->s.jobs[shape->member[1]] : a;
		uint32_t j = shape->need[0].type;
		if (shape->nmembers == 2)
			kept &= a != b && a->scale == b->scale && shape->nneeds == 1 &&
				shape->need[0].n == a->scale && shape->rate[0] > 0 &&
				shape->rate[1] > 0 && shape->rate[0] / a->rate[j] +
				shape->rate[1] / b->rate[j] >= 1;
	}
	return kept;
}

static bool whole(struct trial *t)
{
	struct hd_shares out;
	bool kept = true;

	answer(t, &out);
	for (uint32_t k = 0; k < out.nshapes; k++)
		kept &= is_whole(&t->s, out.shape[k].member[0], out.shape[k].need[0].type);
	return kept;
}

static void make_equal(struct trial *t)
{
	for (uint32_t i = 0; i < t->s.njobs; i++) {
		t->jobs[i].weight = 1;
		t->jobs[i].age_s = 0;
	}
}

/* What the worst off has of 1/n of everything: the least z s against theirs, or the least part of each. */
static bool beside_isolated(struct trial *t, bool each)
{
	struct hd_shares out, iso;
	double mine = INFINITY, theirs = INFINITY, part = INFINITY;

	make_equal(t);
	answer(t, &out);
	ask("isolated", (struct hd_policy_setting){ 0 }, &t->s, &arena, &iso);
	for (uint32_t i = 0; i < t->s.njobs; i++)
		if (iso.z[i] > 0) {
			mine = fmin(mine, out.z[i] * t->s.jobs[i].scale);
			theirs = fmin(theirs, iso.z[i] * t->s.jobs[i].scale);
			part = fmin(part, out.z[i] / iso.z[i]);
		}
	return each ? part >= 1 - 1e-7 : !(mine < theirs * (1 - 1e-7));
}

static bool least(struct trial *t) { return beside_isolated(t, false); }
static bool incentive(struct trial *t) { return beside_isolated(t, true); }

static bool pareto(struct trial *t)
{
	struct hd_shares out;
	double sum = 0, *lo = hd_arena_take(&arena, t->s.njobs, sizeof *lo),
		*worth = hd_arena_take(&arena, t->s.njobs, sizeof *worth);
	struct oracle o = { .s = &t->s, .rate = oracle_rates(&t->s, ORACLE_HETERO), .lo = lo,
		.worth = worth };

	t->s.npairs = 0;
	for (uint32_t i = 0; i < t->s.njobs; i++)
		t->jobs[i].weight = 1;
	answer(t, &out);
	for (uint32_t i = 0; i < t->s.njobs; i++) {
		lo[i] = out.e[i] * (1 - 1e-7) - 1e-9 * oracle_p(&t->s, ORACLE_HETERO, i);
		worth[i] = 1 / oracle_p(&t->s, ORACLE_HETERO, i);
		sum += out.z[i];
	}
	/* a little less of one can be much more of another */
	return oracle_best(&o) <= sum * (1 + 2e-4) + 1e-6;
}

static bool scale(struct trial *t)
{
	struct hd_shares a, b;
	uint32_t job = t->seed % t->s.njobs;
	double *rate = hd_arena_take(&arena, t->s.ntypes, sizeof *rate);
	bool kept = true;

	t->s.npairs = 0;
	answer(t, &a);
	for (uint32_t j = 0; j < t->s.ntypes; j++)
		rate[j] = 1000 * t->jobs[job].rate[j];
	t->jobs[job].rate = rate;
	t->jobs[job].steps_left *= 1000;
	answer(t, &b);
	for (uint32_t k = 0; k < a.nshapes; k++)
		kept &= fabs(a.x[k] - share_of(&b, a.shape[k].member[0], HD_SCHED_NONE,
			a.shape[k].need[0].type)) < 1e-5;
	return kept;
}

static bool order(struct trial *t)
{
	struct hd_sched_state mixed = t->s;
	struct hd_shares a, b;
	uint32_t n = t->s.njobs;
	struct hd_sched_job *jobs = hd_arena_take(&arena, n, sizeof *jobs);
	struct hd_sched_pair *pairs = hd_arena_take(&arena, t->s.npairs + 1, sizeof *pairs);

	for (uint32_t i = 0; i < n; i++)
		jobs[i] = t->s.jobs[n - 1 - i];
	for (uint32_t k = 0; k < t->s.npairs; k++) {
		const struct hd_sched_pair *p = &t->s.pairs[k];
		pairs[k] = (struct hd_sched_pair){ n - 1 - p->b, n - 1 - p->a, { p->rate[1], p->rate[0] } };
	}
	mixed.jobs = jobs;
	mixed.pairs = pairs;
	assert_int_equal(hd_sched_order(&mixed, &arena, NULL), HD_OK);
	answer(t, &a);
	ask(t->policy, (struct hd_policy_setting){ .deadlines = true }, &mixed, &arena, &b);
	return same_shares(&a, &b);
}

/* One type is gone, a third of the jobs cannot run anywhere; on odd clusters none can. */
static bool zero(struct trial *t)
{
	struct hd_shares out;
	bool kept = true;

	((struct hd_sched_type *)t->s.types)[t->seed % t->s.ntypes].n = 0;
	for (uint32_t i = 0; i < t->s.njobs; i += t->seed % 2 ? 1 : 3)
		for (uint32_t j = 0; j < t->s.ntypes; j++)
			((double *)t->s.jobs[i].rate)[j] = 0;
	t->s.npairs = 0;
	answer(t, &out);
	for (uint32_t k = 0; k < out.nshapes; k++)
		kept &= out.x[k] > 0 && t->s.types[out.shape[k].need[0].type].n > 0 &&
			!hd_sched_absent(&t->s, out.shape[k].member[0]);
	for (uint32_t i = 0; i < t->s.njobs; i++)
		kept &= isfinite(out.z[i]) && (!hd_sched_absent(&t->s, i) || out.z[i] == 0);
	return kept;
}

static bool weight(struct trial *t)
{
	struct hd_shares a, b;
	uint32_t job = t->seed % t->s.njobs;

	answer(t, &a);
	t->jobs[job].weight *= 2;
	answer(t, &b);
	return b.z[job] >= a.z[job] * (1 - 1e-6) - 1e-9;
}

static bool (*const laws[NLAWS])(struct trial *t) = { capacity, packing, whole, least, incentive, pareto,
	scale, order, zero, weight };

static void policies_keep_what_the_table_promises(void **state)
{
	(void)state;
	need_lp();
	printf("| law | |\n|---|---|\n");
	for (int l = 0; l < NLAWS; l++)
		printf("| %s | %s |\n", law_texts[l].name, law_texts[l].says);
	printf("\n| policy |");
	for (int l = 0; l < NLAWS; l++)
		printf(" %s |", law_texts[l].name);
	printf("\n|---|");
	for (int l = 0; l < NLAWS; l++)
		printf("---|");
	printf("\n");
	for (int p = 0; p < NPROMISED; p++) {
		printf("| `%s` |", promised[p].policy);
		for (int l = 0; l < NLAWS; l++) {
			uint32_t broken = 0;
			for (uint32_t seed = 0; seed < CLUSTERS; seed++) {
				struct trial t = { .policy = promised[p].policy, .seed = seed };
				draw_state(&t);
				bool kept = laws[l](&t);
				CHECK(kept || !(promised[p].laws & 1u << l),
					"%s breaks the law \"%s\" on cluster %u", t.policy, law_texts[l].name,
					seed);
				broken += !kept;
				hd_arena_reset(&arena);
			}
			if (promised[p].laws & 1u << l)
				printf(" **yes** |");
			else
				printf(" %u of %d |", broken, CLUSTERS);
		}
		printf("\n");
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = { cmocka_unit_test(policies_keep_what_the_table_promises) };
	return cmocka_run_group_tests(tests, setup, teardown);
}
