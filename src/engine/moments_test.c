#include "engine/moments.h"

#include <math.h>

#include "base/philox.h"
#include "engine/testing.h"

/* Sums of moments, judged by the formulas of the textbook over all values at once. */

enum { C = 3, MOST = 40 };

static double value_of(uint32_t channel, uint32_t i)
{
	const uint32_t counter[4] = { i, channel, 0, 0 };

	return (channel == 2 ? 1e4 : 0) + (double)hd_uniform(hd_philox(counter, 5).word[0]);
}

/* Values [first, end) of every channel, in one pass of its own. */
static void part(uint32_t first, uint32_t end, double m[3 * C])
{
	for (uint32_t c = 0; c < C; c++) {
		long double sum = 0, square = 0, n = end - first;
		for (uint32_t i = first; i < end; i++)
			sum += (long double)value_of(c, i);
		for (uint32_t i = first; i < end; i++)
			square += ((long double)value_of(c, i) - sum / n) * ((long double)value_of(c,
				i) - sum / n);
		m[c] = (double)n;
		m[C + c] = end > first ? (double)(sum / n) : 0;
		m[2 * C + c] = (double)square;
	}
}

/* Leaves of 0 to 4 values each; some are empty. */
static uint32_t leaves_of(uint32_t nvns, double leaf[][3 * C])
{
	uint32_t at = 0;

	for (uint32_t v = 0; v < nvns; v++) {
		uint32_t n = (v * 7 + nvns) % 5;
		part(at, at + n, leaf[v]);
		at += n;
	}
	return at;
}

static void the_tree_gives_mean_and_spread_of_the_whole(void **state)
{
	double leaf[MOST][3 * C], whole[3 * C];

	(void)state;
	for (uint32_t nvns = 1; nvns <= MOST; nvns++) {
		uint32_t n = leaves_of(nvns, leaf);
		part(0, n, whole);
		hd_moments_tree(leaf[0], nvns, 3 * C, C);
		for (uint32_t k = 0; n && k < 3 * C; k++) {
			/* a mean of 1e4 cancels in distances from it */
			double far = k < 2 * C || k % C < 2 ? 1 : 1e4;
			CHECK(fabs(leaf[0][k] - whole[k]) <= 1e-12 * (fabs(whole[k]) + far),
				"V %u, moment %u: %.17g, not %.17g", nvns, k,
				leaf[0][k], whole[k]);
		}
	}
}

/* The definition by recursion: split at the largest power of two below n. */
static void split(double leaf[][3 * C], uint32_t n)
{
	uint32_t low = 1;

	if (n == 1)
		return;
	while (2 * low < n)
		low *= 2;
	split(leaf, low);
	split(leaf + low, n - low);
	hd_moments_merge(leaf[0], leaf[low], C);
}

static void the_tree_is_the_canonical_one(void **state)
{
	double pairs[MOST][3 * C], parts[MOST][3 * C];

	(void)state;
	for (uint32_t nvns = 1; nvns <= MOST; nvns++) {
		leaves_of(nvns, pairs);
		leaves_of(nvns, parts);
		hd_moments_tree(pairs[0], nvns, 3 * C, C);
		split(parts, nvns);
		CHECK(memcmp(pairs[0], parts[0], sizeof pairs[0]) == 0, "V %u", nvns);
	}
}

static void nothing_leaves_the_other_as_it_is(void **state)
{
	double a[3] = { 3, -0.0, 0.1 }, none[3] = { 0, 7, 7 }, copy[3];

	(void)state;
	memcpy(copy, a, sizeof a);
	hd_moments_merge(a, none, 1);
	assert_memory_equal(a, copy, sizeof a);
	hd_moments_merge(none, copy, 1);
	assert_memory_equal(none, copy, sizeof none);
}

static void buffers_move_by_the_unbiased_variance_and_only_where_there_is_one(void **state)
{
	float mean = 2, var = 3;

	(void)state;
	hd_moments_next(1, 100, 0, 0.1, &mean, &var);
	assert_true(mean == 2.0f && var == 3.0f);
	hd_moments_next(5, 10, 8, 0.25, &mean, &var);
	assert_true(mean == (float)(0.75 * 2 + 0.25 * 10) && var == (float)(0.75 * 3 + 0.25 * 8 / 4));
}

/* What a norm of the graph saw in one step, from the program of one virtual node: all rows at once. */
static void whole_batch(struct hd_rig *one, double *sum)
{
	hd_rig_step(one);
	memcpy(sum, one->worker->step->moments.leaf, one->worker->step->moments.elems * sizeof *sum);
}

/* The first norm reads the images' convolution, which no other norm stands before: its values do not
 * depend on V. */
static void moments_of_any_virtual_nodes_and_slices_are_those_of_the_whole_batch(void **state)
{
	static const struct { uint32_t vns, slices; } rows[] = { { 2, 1 }, { 5, 1 }, { 13, 1 }, { 3, 2 },
		{ 4, 3 } };
	double want[1024], *got;
	struct hd_rig one;

	(void)state;
	hd_rig_open(&one, hd_rig_bn(), 26, 1, NULL, 1);
	whole_batch(&one, want);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct hd_rig rig;
		hd_rig_open_sliced(&rig, hd_rig_bn(), 26, rows[i].vns, rows[i].slices, 2);
		hd_rig_step(&rig);
		got = rig.worker->step->moments.leaf;
		for (uint32_t k = 0; k < 18; k++)
			CHECK(fabs(got[k] - want[k]) <= 1e-12 * fabs(want[k]),
				"V %u, moment %u: %.17g, not %.17g", rows[i].vns, k, got[k], want[k]);
		hd_rig_close(&rig);
	}
	hd_rig_close(&one);
}

static double evaluate(struct hd_rig *rig)
{
	struct hd_forward_job job = { .split = 0, .count = 61 };
	struct hd_metrics m;
	struct hd_diag diag = { "" };

	CHECK(hd_worker_forward(rig->worker, &job, &m, &diag) == HD_OK, "%s", diag.text);
	return hd_metrics_loss(&m);
}

/* Means a little below zero, so that no activation is cut off everywhere; variances above it. */
static void set_statistics(struct hd_rig *rig, float more)
{
	const struct hd_layout *layout = &rig->task->layout;

	for (uint32_t b = 0; b < layout->nbuffers; b++)
		for (uint64_t i = 0; i < layout->buffer_len[b]; i++) {
			const float x = (b % 2 ? 0.6f : -0.3f) + 0.02f * (float)(i % 7) + more;
			hd_param_store_write(rig->worker->store, HD_VEC_BUFFERS, layout->buffer_at[b] + i, 1,
				&x);
		}
}

/* Norms of evaluation know nothing of their neighbours, so blocks of 2 and of 26 rows say the same up to
 * rounding. */
static void evaluation_normalises_by_the_running_statistics(void **state)
{
	struct hd_rig rows2, rows26;

	(void)state;
	hd_rig_open(&rows2, hd_rig_bn(), 26, 13, NULL, 2);
	hd_rig_open(&rows26, hd_rig_bn(), 26, 1, NULL, 1);
	set_statistics(&rows2, 0.0f);
	set_statistics(&rows26, 0.0f);
	double a = evaluate(&rows2), b = evaluate(&rows26);
	CHECK(fabs(a - b) <= 1e-5 * fabs(a), "%.9g with blocks of 2 rows, %.9g with blocks of 26", a, b);
	set_statistics(&rows26, 0.25f);
	b = evaluate(&rows26);
	CHECK(a != b, "%.17g whatever the buffers hold", a);
	hd_rig_close(&rows2);
	hd_rig_close(&rows26);
}

static void a_virtual_node_without_a_variance_is_refused(void **state)
{
	struct hd_diag diag = { "" };
	struct hd_task *task = NULL;
	struct hd_arena arena;
	struct hd_fs fs;

	(void)state;
	hd_fs_real(&fs);
	hd_arena_init(&arena, 0);
	struct hd_job *job = hd_rig_job(hd_rig_bn(), 13, 13, NULL, &arena);
	assert_int_equal(hd_task_create(&task, job, &fs, &diag), HD_E_INVAL);
	CHECK(strstr(diag.text, "bn3.weight") && strstr(diag.text, "virtual_nodes"), "%s", diag.text);
	hd_arena_finish(&arena);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_tree_gives_mean_and_spread_of_the_whole),
		cmocka_unit_test(the_tree_is_the_canonical_one),
		cmocka_unit_test(nothing_leaves_the_other_as_it_is),
		cmocka_unit_test(buffers_move_by_the_unbiased_variance_and_only_where_there_is_one),
		cmocka_unit_test(moments_of_any_virtual_nodes_and_slices_are_those_of_the_whole_batch),
		cmocka_unit_test(evaluation_normalises_by_the_running_statistics),
		cmocka_unit_test(a_virtual_node_without_a_variance_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
