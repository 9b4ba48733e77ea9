/* testing.h -- for the tests of the policies: reference files, random clusters, a policy asked once, an
 * arena for each test file. */
#ifndef HD_SCHEDULER_POLICY_TESTING_H
#define HD_SCHEDULER_POLICY_TESTING_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/philox.h"
#include "scheduler/sched_policy.h"
#include "tests/shared_file.h"

/* Of the file that includes this; setup and teardown are those of its group. */
static struct hd_arena arena;

static inline int setup(void **state)
{
	(void)state;
	hd_arena_init(&arena, 0);
	return 0;
}

static inline int teardown(void **state)
{
	(void)state;
	hd_arena_finish(&arena);
	return 0;
}

static inline void need_lp(void)
{
	if (!hd_policy_has_lp())
		SKIP("no solver of linear programs in this build (coinor-libclp-dev)");
}

static inline void ask(const char *name, struct hd_policy_setting set, const struct hd_sched_state *state,
	struct hd_arena *in, struct hd_shares *out)
{
	struct hd_policy *policy;
	struct hd_diag diag = { "" };

	CHECK(hd_policy_parse(&set, name, &diag) == HD_OK, "%s", diag.text);
	CHECK(hd_policy_create(&policy, &set, &diag) == HD_OK, "%s: %s", name, diag.text);
	CHECK(hd_policy_allocate(policy, state, in, out, &diag) == HD_OK, "%s: %s", name, diag.text);
	hd_policy_destroy(policy);
}

/* Every policy in each of its variants, by the table, and some that are made of these. Left out: those that
 * refuse most clusters, allox (jobs of one device) and wfs (devices of one type, jobs that run on one). */
struct every_policy { char name[64][64]; int n; };
static inline void name_every_policy(struct every_policy *all)
{
	static const char *const made[] = { "pop:2:las", "pop:4:las", "pop:3:makespan-packed",
		"max_sum_throughput_normalized_by_cost_perf_SLOs" };
	static const char *const variants[] = {
#define X(id, name) name,
		HD_VARIANTS(X)
#undef X
	};

	all->n = 0;
	for (const struct hd_sched_policy *row = hd_sched_policies; row->name; row++)
		for (int v = 0; v < HD_NVARIANTS; v++)
			if (row->variants >> v & 1 && strcmp(row->name, "allox") != 0 &&
				strncmp(row->name, "wfs", 3) != 0)
				snprintf(all->name[all->n++], sizeof all->name[0], v ? "%s-%s" : "%s",
					row->name, variants[v]);
	for (size_t i = 0; i < sizeof made / sizeof *made; i++)
		snprintf(all->name[all->n++], sizeof all->name[0], "%s", made[i]);
	CHECK(all->n <= 64, "%d", all->n);
}

/* To the bit, member by member: what lies between them is not part of an answer. */
static inline bool same_shares(const struct hd_shares *a, const struct hd_shares *b)
{
	bool same = a->nshapes == b->nshapes && !memcmp(a->x, b->x, a->nshapes * sizeof *a->x);

	for (uint32_t i = 0; i < a->nshapes && same; i++) {
		const struct hd_shape *p = &a->shape[i], *q = &b->shape[i];
		same = p->nmembers == q->nmembers && p->nneeds == q->nneeds &&
			!memcmp(p->member, q->member, sizeof p->member) &&
			!memcmp(p->rate, q->rate, sizeof p->rate) &&
			!memcmp(p->need, q->need, sizeof p->need);
	}
	return same;
}

static inline double share_of(const struct hd_shares *out, uint32_t a, uint32_t b, uint32_t type)
{
	for (uint32_t k = 0; k < out->nshapes; k++) {
		const struct hd_shape *s = &out->shape[k];
		if (s->member[0] == a && (b == HD_SCHED_NONE ? s->nmembers == 1 : s->nmembers == 2 &&
			s->member[1] == b) && s->need[0].type == type)
			return out->x[k];
	}
	return 0;
}

/* Whether there are the devices for all of the job at once; a share of less can never be used. */
static inline bool is_whole(const struct hd_sched_state *s, uint32_t job,
	uint32_t type) { return s->types[type].n >= s->jobs[job].scale; }

/* Whether some type is too small for a gang that has a speed on it: there the published programs promise
 * what they cannot give. */
static inline bool has_parts(const struct hd_sched_state *s)
{
	for (uint32_t i = 0; i < s->njobs; i++)
		for (uint32_t j = 0; j < s->ntypes; j++)
			if (s->jobs[i].rate[j] > 0 && s->types[j].n > 0 && !is_whole(s, i, j) &&
				!hd_sched_absent(s, i))
				return true;
	return false;
}

static inline double draw(uint32_t seed, uint32_t what, uint32_t i, uint32_t j)
{
	return (double)hd_philox((uint32_t[]){ what, i, j, 0 }, seed).word[0] / 4294967296.0;
}

/* A random cluster of n jobs and m types: mixed scales, weights, ages, deadlines, prices, some speeds 0,
 * pairs in a third. */
static inline void random_state(struct hd_sched_state *s, uint32_t seed, uint32_t n, uint32_t m,
	struct hd_arena *in)
{
	static const char *const names[] = { "a100", "k80", "p100", "t4", "v100" };
	struct hd_sched_type *types = hd_arena_take(in, m, sizeof *types);
	struct hd_sched_job *jobs = hd_arena_take(in, n, sizeof *jobs);
	struct hd_sched_pair *pairs = hd_arena_take(in, (size_t)n * n, sizeof *pairs);
	struct hd_sched_entity *entities = hd_arena_take(in, 5, sizeof *entities);
	struct hd_diag diag = { "" };

	*s = (struct hd_sched_state){ .ntypes = m, .njobs = n, .nentities = 5, .types = types, .jobs = jobs,
		.pairs = pairs, .entities = entities };
	/* jobs are of the first three, which in half of the states lie within one another or the others */
	for (uint32_t e = 0; e < 5; e++) {
		static const char *const name[] = { "e0", "e1", "e2", "e3", "e4" };
		uint32_t up = (uint32_t)(draw(seed, 21, e, 0) * (5 - e));
		entities[e] = (struct hd_sched_entity){ name[e], 1 + e,
			draw(seed, 20, e, 0) < 0.4 ? HD_ENTITY_FIFO : HD_ENTITY_FAIRNESS,
			seed % 2 && up ? 1 + e + up : 0 };
	}
	for (uint32_t j = 0; j < m; j++)
		types[j] = (struct hd_sched_type){ names[j], 1 + (uint32_t)(12 * draw(seed, 1, j, 0)),
			0.1 + 3 * draw(seed, 2, j, 0), 0 };
	for (uint32_t i = 0; i < n; i++) {
		double *rate = hd_arena_take(in, m, sizeof *rate), size = exp(6 * draw(seed, 3, i, 0) - 2);
		uint32_t scale = draw(seed, 4, i, 0) < 0.7 ? 1 : draw(seed, 4, i, 1) < 0.6 ? 2 : 4;
		for (uint32_t j = 0; j < m; j++)
			rate[j] = draw(seed, 5, i, j) < 0.12 ? 0 :
				size * (0.2 + (1 + j) * draw(seed, 6, i, j));
		jobs[i] = (struct hd_sched_job){ .id = 10 + 3 * i, .kind = "job", .ikind = HD_SCHED_NONE,
			.scale = scale,
			.weight = 1 + (uint32_t)(5 * draw(seed, 7, i, 0)),
			.steps_left = 1 + 1e5 * size * draw(seed, 8, i, 0),
			.age_s = 5000 * draw(seed, 9, i, 0),
			.entity = i % 3, .rate = rate,
			.deadline_s = draw(seed, 10, i, 0) < 0.5 ? INFINITY : 3e5 * draw(seed, 11, i,
			0) - 1e4 };
	}
	for (uint32_t a = 0; a < n; a++)
		for (uint32_t b = a + 1; b < n; b++) {
			double *first = hd_arena_take(in, m, sizeof *first),
				*second = hd_arena_take(in, m, sizeof *second);
			if (jobs[a].scale != jobs[b].scale || draw(seed, 12, a, b) > 0.6)
				continue;
			for (uint32_t j = 0; j < m; j++) {
				first[j] = jobs[a].rate[j] * (0.3 + 0.65 * draw(seed, 13, a, b * m + j));
				second[j] = jobs[b].rate[j] * (0.3 + 0.65 * draw(seed, 14, a, b * m + j));
			}
			pairs[s->npairs++] = (struct hd_sched_pair){ a, b, { first, second } };
		}
	CHECK(hd_sched_order(s, in, &diag) == HD_OK, "%s", diag.text);
}

#endif
