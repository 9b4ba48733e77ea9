#include "clustersim/drawn_state.h"

#include <math.h>
#include <string.h>

#include "tests/check.h"

struct desk { struct hd_arena arena; struct hd_drawn_state a, b; struct hd_diag diag; };

static int enter(void **state)
{
	static struct desk d;

	memset(&d, 0, sizeof d);
	hd_arena_init(&d.arena, 0);
	*state = &d;
	return 0;
}

static int leave(void **state)
{
	hd_arena_finish(&((struct desk *)*state)->arena);
	return 0;
}

static const struct hd_sched_state *make(struct desk *d, struct hd_drawn_state *to,
	struct hd_drawn_setting setting)
{
	assert_int_equal(hd_drawn_state_make(to, &setting, &d->arena, &d->diag), HD_OK);
	return &to->state;
}

static void one_job_more_changes_no_other(void **state)
{
	struct desk *d = *state;
	const struct hd_sched_state *few = make(d, &d->a, (struct hd_drawn_setting){ .njobs = 100,
		.ntypes = 3, .seed = 5 });
	const struct hd_sched_state *more = make(d, &d->b, (struct hd_drawn_setting){ .njobs = 101,
		.ntypes = 3, .seed = 5 });
	uint32_t differ = 0;

	for (uint32_t i = 0; i < 100; i++) {
		assert_memory_equal(few->jobs[i].rate, more->jobs[i].rate, 3 * sizeof(double));
		assert_int_equal(few->jobs[i].scale, more->jobs[i].scale);
		assert_true(few->jobs[i].steps_left == more->jobs[i].steps_left);
	}
	more = make(d, &d->b, (struct hd_drawn_setting){ .njobs = 100, .ntypes = 3, .seed = 6 });
	for (uint32_t i = 0; i < 100; i++)
		differ += few->jobs[i].steps_left != more->jobs[i].steps_left;
	assert_int_equal(differ, 100);
}

static void sizes_kinds_and_devices_are_as_announced(void **state)
{
	struct desk *d = *state;
	const struct hd_sched_state *s = make(d, &d->a, (struct hd_drawn_setting){ .njobs = 10000,
		.ntypes = 8, .seed = 1 });
	uint32_t sizes[17] = { 0 }, kinds[HD_DRAWN_KINDS] = { 0 };

	for (uint32_t i = 0; i < s->njobs; i++) {
		const struct hd_sched_job *job = &s->jobs[i];
		sizes[job->scale]++;
		kinds[job->ikind]++;
		assert_true(job->weight >= 1 && job->weight <= 4 && job->weight == floor(job->weight));
		assert_true(job->steps_left >= 1e4 && job->steps_left < 1e4 * exp(6));
		assert_true(isinf(job->deadline_s) && !job->elastic && !job->goodput);
		for (uint32_t t = 0; t < 8; t++)
			assert_true(job->rate[t] > 0);
	}
	/* 7 : 1 : 1.5 : .5, within five deviations of ten thousand draws */
	static const struct { uint32_t size; double part; } parts[] = { { 1, 0.7 }, { 2, 0.1 }, { 4, 0.15 },
		{ 8, 0.05 } };
	for (size_t i = 0; i < 4; i++)
		assert_true(fabs(sizes[parts[i].size] - 1e4 * parts[i].part) <
			5 * sqrt(1e4 * parts[i].part * (1 - parts[i].part)));
	for (uint32_t k = 0; k < HD_DRAWN_KINDS; k++)
		assert_true(kinds[k] > 0);
	for (uint32_t t = 0; t < 8; t++)
		assert_int_equal(s->types[t].n, 10000 / 8 / 2 + 8);
	assert_null(s->table);
}

static void each_kind_of_jobs_brings_what_its_policies_need(void **state)
{
	struct desk *d = *state;
	const struct hd_sched_state *s = make(d, &d->a, (struct hd_drawn_setting){ .njobs = 200,
		.ntypes = 3, .jobs = HD_DRAWN_PAIRS, .seed = 2 });

	assert_ptr_equal(s->table, &d->a.table);
	for (uint32_t i = 0; i < 200; i++)
		assert_int_equal(s->jobs[i].scale, 1);
	s = make(d, &d->a, (struct hd_drawn_setting){ .njobs = 200, .ntypes = 3, .jobs = HD_DRAWN_ELASTIC,
		.seed = 2 });
	for (uint32_t i = 0; i < 200; i++) {
		const struct hd_sched_elastic *e = s->jobs[i].elastic;
		assert_non_null(e);
		assert_true(e->min == 1 && e->max == (s->jobs[i].scale < 8 ? 8 : 16) && e->speedup[1] == 1);
		for (uint32_t k = 2; k <= e->max; k++)
			assert_true(e->speedup[k] > e->speedup[k - 1] && e->speedup[k] <= k);
		assert_null(s->jobs[i].goodput);
	}
	s = make(d, &d->a, (struct hd_drawn_setting){ .njobs = 200, .ntypes = 3, .jobs = HD_DRAWN_LEARNING,
		.seed = 2 });
	for (uint32_t i = 0; i < 200; i++)
		assert_true(s->jobs[i].elastic && s->jobs[i].goodput && s->jobs[i].goodput->var > 0);
}

static void one_of_so_many_is_a_gang(void **state)
{
	struct desk *d = *state;
	const struct hd_sched_state *s = make(d, &d->a, (struct hd_drawn_setting){ .njobs = 300,
		.ntypes = 3, .large = 100, .seed = 2 });
	uint32_t gang = 3 * (300 / 3 / 2 + 8) / 5, n = 0;

	for (uint32_t i = 0; i < 300; i++) {
		n += s->jobs[i].scale == gang;
		assert_int_equal(s->jobs[i].scale == gang, i % 100 == 99);
	}
	assert_int_equal(n, 3);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(one_job_more_changes_no_other, enter, leave),
		cmocka_unit_test_setup_teardown(sizes_kinds_and_devices_are_as_announced, enter, leave),
		cmocka_unit_test_setup_teardown(each_kind_of_jobs_brings_what_its_policies_need, enter,
			leave),
		cmocka_unit_test_setup_teardown(one_of_so_many_is_a_gang, enter, leave),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
