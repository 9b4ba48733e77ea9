/* A gang gets no share of a type that has fewer devices than it needs, nor of several types unless it may mix
 * them: over all policies, on random clusters with gangs larger than some types and with elastic jobs.
 * What the objectives come to then: covered_test.c. */
#include "scheduler/policy/testing.h"

static struct every_policy all;
enum { CLUSTERS = SANITIZED ? 15 : 60 };

/* A random cluster; a third of its jobs are elastic up to twice their scale, and may mix types in turn. */
static void draw_state(struct hd_sched_state *s, uint32_t seed, uint32_t call)
{
	random_state(s, seed, 1 + seed * 7 % 12 + call, 1 + seed % 5, &arena);
	for (uint32_t i = 0; i < s->njobs; i += 3) {
		struct hd_sched_job *job = &((struct hd_sched_job *)s->jobs)[i];
		struct hd_sched_elastic *e = hd_arena_take(&arena, 1, sizeof *e);
		double *speedup = hd_arena_take(&arena, 2 * (size_t)job->scale + 1, sizeof *speedup);
		for (uint32_t k = 1; k <= 2 * job->scale; k++)
			speedup[k] = pow(k, 0.8);
		*e = (struct hd_sched_elastic){ .min = 1, .max = 2 * job->scale, .nvns = 16,
			.speedup = speedup, .mixed = i % 2 };
		job->elastic = e;
	}
}

/* What a shape needs that cannot be: NULL if nothing. */
static const char *fault_of(const struct hd_sched_state *s, const struct hd_shape *shape)
{
	uint32_t n = 0;

	for (int d = 0; d < shape->nneeds; d++) {
		if (shape->need[d].n > s->types[shape->need[d].type].n)
			return "more devices than there are";
		n += shape->need[d].n;
	}
	for (int m = 0; m < shape->nmembers; m++) {
		const struct hd_sched_job *job = &s->jobs[shape->member[m]];
		if (shape->nneeds != 1 && !(job->elastic && job->elastic->mixed))
			return "several types, which it may not mix";
		if (job->elastic ? n < job->elastic->min || n > job->elastic->max : n != job->scale)
			return "other than its number of devices";
		if (shape->nmembers == 2 && shape->need[0].n != job->scale)
			return "other than its number of devices, beside another";
	}
	return NULL;
}

/* Asked twice, so that the shares of the last call take part, and a third time with the largest type
 * shrunk to one device. */
static void no_share_needs_what_is_not_there(void **state)
{
	(void)state;
	need_lp();
	name_every_policy(&all);
	for (uint32_t seed = 0; seed < CLUSTERS; seed++)
		for (int p = 0; p < all.n; p++) {
			struct hd_policy_setting set = { .deadlines = true, .seed = seed };
			struct hd_policy *policy;
			struct hd_diag diag = { "" };
			CHECK(hd_policy_parse(&set, all.name[p], &diag) == HD_OK &&
				hd_policy_create(&policy, &set, &diag) == HD_OK, "%s", diag.text);
			for (uint32_t call = 0; call < 3; call++) {
				struct hd_sched_state s;
				struct hd_shares out;
				draw_state(&s, seed, call);
				if (call == 2)
					((struct hd_sched_type *)s.types)[seed % s.ntypes].n = 1;
				CHECK(hd_policy_allocate(policy, &s, &arena, &out, &diag) == HD_OK,
					"%s, seed %u: %s", all.name[p], seed, diag.text);
				for (uint32_t k = 0; k < out.nshapes; k++) {
					const struct hd_shape *shape = &out.shape[k];
					const char *fault = fault_of(&s, shape);
					CHECK(!fault, "%s, seed %u: job %u has %.3g of %u of %u %s: %s",
						all.name[p], seed, shape->member[0], out.x[k],
						shape->need[0].n, s.types[shape->need[0].type].n,
						s.types[shape->need[0].type].name, fault);
				}
			}
			hd_policy_destroy(policy);
			hd_arena_reset(&arena);
		}
}

/* Stopped at once: the last shares where they still fit, isolated ones of newcomers. */
static void whoever_gives_up_counts_no_parts_either(void **state)
{
	(void)state;
	need_lp();
	for (uint32_t seed = 0; seed < CLUSTERS; seed++) {
		static const char *const names[] = { "las", "ftf-packed", "nash", "heddle" };
		atomic_bool stop = false;
		struct hd_policy_setting set = { .stop = &stop };
		struct hd_policy *policy;
		assert_int_equal(hd_policy_parse(&set, names[seed % 4], NULL), HD_OK);
		assert_int_equal(hd_policy_create(&policy, &set, NULL), HD_OK);
		for (uint32_t call = 0; call < 3; call++) {
			struct hd_sched_state s;
			struct hd_shares out;
			struct hd_diag diag = { "" };
			draw_state(&s, seed, call);
			if (call == 2)
				((struct hd_sched_type *)s.types)[seed % s.ntypes].n = 1;
			CHECK(hd_policy_allocate(policy, &s, &arena, &out, &diag) == HD_OK, "%s, seed %u: %s",
				names[seed % 4], seed, diag.text);
			for (uint32_t k = 0; k < out.nshapes; k++)
				CHECK(!fault_of(&s, &out.shape[k]), "%s, seed %u, call %u: %s",
					names[seed % 4], seed, call, fault_of(&s, &out.shape[k]));
			atomic_store(&stop, true);
		}
		hd_policy_destroy(policy);
		hd_arena_reset(&arena);
	}
}

/* As published: a part of a gang counts. Whoever repeats the published scheduler gets its faults, or
 * nothing is repeated. */
static void the_published_programs_keep_the_fault(void **state)
{
	static const char *const names[] = { "las", "ftf", "makespan", "sum", "isolated", "gandiva-packed" };
	(void)state;
	need_lp();
	for (size_t p = 0; p < sizeof names / sizeof *names; p++) {
		uint32_t parts = 0;
		for (uint32_t seed = 0; seed < CLUSTERS; seed++) {
			struct hd_sched_state s;
			struct hd_shares out;
			random_state(&s, seed, 1 + seed * 7 % 12, 1 + seed % 5, &arena);
			ask(names[p], (struct hd_policy_setting){ .fidelity = HD_FIDELITY_GAVEL }, &s, &arena,
				&out);
			for (uint32_t k = 0; k < out.nshapes; k++)
				parts += out.shape[k].need[0].n > s.types[out.shape[k].need[0].type].n;
			hd_arena_reset(&arena);
		}
		CHECK(parts > 0, "%s: %u", names[p], parts);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_share_needs_what_is_not_there),
		cmocka_unit_test(whoever_gives_up_counts_no_parts_either),
		cmocka_unit_test(the_published_programs_keep_the_fault),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
