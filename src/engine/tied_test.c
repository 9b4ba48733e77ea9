#include "engine/dist.h"

#include <math.h>

#include "sys/file.h"

#include "engine/testing.h"

/* Tied parameters: what their gradients come to. The oracle adds the leaves that single virtual nodes yield,
 * by the words of plan/tree.h: n leaves are split at the largest power of two below n. */

enum { MOST_VNS = 13, ROWS = 26 };

/* One table that three products read, two of them transposed; large enough for two segments. */
static const char three[] =
	"graph three\ninput x f32 [*,264]\ninput y i32 [*]\nparam w f32 [264,264] uniform 0.09\n"
	"param b f32 [264] uniform 0.2\n"
	"%0 = matmul x w tb=1\n%1 = act %0 act=tanh\n%2 = bias %1 b axis=-1\n%3 = matmul %2 w\n"
	"%4 = act %3 act=tanh\n%5 = bias %4 b axis=-1\n%6 = matmul %5 w tb=1\n"
	"%7,%8,%9 = softmax_xent %6 y\n%10 = sum64 %7\n%11 = sum64 %8\noutput loss %10\noutput weight %11\n";

static char folder[] = "/tmp/heddle-tied-XXXXXX", three_job[200];      /* its job */

static int write_graph(void **state)
{
	struct hd_diag diag = { "" };
	char path[100];
	struct hd_fs fs;

	(void)state;
	assert_non_null(mkdtemp(folder));
	hd_fs_real(&fs);
	snprintf(path, sizeof path, "%s/three.graph", folder);
	CHECK(hd_file_write_atomic(&fs, path, three, sizeof three - 1, &diag) == HD_OK, "%s", diag.text);
	snprintf(three_job, sizeof three_job,
		"model: {use: \"graph:%s\"}\ndata: {kind: synthetic, count: 61}\n", path);
	return 0;
}

static int remove_graph(void **state)
{
	struct hd_fs fs;

	(void)state;
	hd_fs_real(&fs);
	return hd_fs_remove_tree(&fs, folder, NULL) != HD_OK;
}

static const char gpt[] =
	"model: {use: builtin:gpt, args: {layers: 1, width: 16, heads: 2, context: 8, dropout: 0.1}}\n"
	"data: {kind: synthetic, count: 61}\n";

/* The sums that a worker makes of the leaves, each a root of its own, bucket by bucket. */
static void fold_buckets(struct hd_worker *w, const struct hd_layout *l, uint32_t vns, float *sum)
{
	struct hd_tnode root[MOST_VNS];
	struct hd_diag diag = { "" };

	for (uint32_t v = 0; v < vns; v++)
		root[v] = (struct hd_tnode){ 0, v };
	CHECK(hd_dist_operands(w, root, NULL, vns, &diag) == HD_OK, "%s", diag.text);
	for (uint32_t b = 0; b < hd_layout_nbuckets(l); b++) {
		const float *operand[HD_MAX_USES_APART * MOST_VNS];
		uint32_t first, n = hd_layout_pieces(l, b, &first);
		assert_in_range(n, 0, HD_MAX_USES_APART - 1);
		for (uint32_t k = 0; k <= n; k++)
			for (uint32_t v = 0; v < vns; v++)
				operand[k * vns + v] = hd_dist_root_at(w, v + 1, 0, k ? first + k - 1 : b);
		CHECK(hd_dist_fold(w, &(struct hd_dist_fold){ b, operand }, 1, &diag) == HD_OK, "%s",
			diag.text);
		const struct hd_chunk run = hd_layout_bucket(l, b);
		memcpy(sum + run.at, hd_dist_sum_at(w, b), run.len * sizeof *sum);
		for (uint32_t i = run.first_segment; i < run.first_segment + run.nsegments; i++) {
			double squares = 0;
			for (uint64_t e = l->segment[i].at; e < l->segment[i].at + l->segment[i].len; e++)
				squares += (double)sum[e] * (double)sum[e];
			assert_true(fabs(w->stage->segment_sumsq[i] - squares) <= 1e-10 * squares);
		}
	}
}

/* What each virtual node of step 0 yields: a flat gradient vector of its own, from a worker without ranks
 * that repairs the step's virtual nodes one by one. `sum`: what that worker makes of them. */
static void get_leaves(const struct hd_task *task, float **leaf, float *sum, struct hd_arena *arena)
{
	const struct hd_worker_spec spec = { .kind = "cpu", .ndevices = 1, .nthreads = 1,
		.kernels = HD_KERNELS_PORTABLE };
	const struct hd_layout *l = &task->layout;
	struct hd_plan_job pj = hd_plan_job_whole(task->job->nvns, l->nchunks);
	struct hd_worker *w = NULL;
	struct hd_diag diag = { "" };
	struct hd_plan plan;

	CHECK(hd_worker_create(&w, task, &spec, &diag) == HD_OK, "%s", diag.text);
	CHECK(hd_plan_data(&plan, &pj, 1, NULL, arena, &diag) == HD_OK, "%s", diag.text);
	CHECK(hd_dist_prepare(w, &(struct hd_dist_view){ .plan = &plan, .worker = HD_DIST_NOBODY }, &diag) ==
		HD_OK, "%s", diag.text);
	hd_dist_adopt(w);
	CHECK(hd_dist_begin(w, false, &diag) == HD_OK, "%s", diag.text);
	for (uint32_t v = 0, pass; v < task->job->nvns; v++) {
		CHECK(hd_dist_repair(w, &v, 1, &pass, &diag) == HD_OK, "%s", diag.text);
		assert_int_equal(hd_dist_nroots(w, pass), 1);
		leaf[v] = hd_arena_take(arena, l->grad_elems, sizeof *leaf[v]);
		for (uint32_t r = 0; r < hd_layout_nruns(l); r++) {
			const struct hd_grad_run run = hd_layout_run(l, r);
			memcpy(leaf[v] + run.at, hd_dist_root_at(w, pass, 0, r), run.len * sizeof(float));
		}
	}
	fold_buckets(w, l, task->job->nvns, sum);
	hd_dist_abandon(w);
	hd_worker_destroy(w);
}

static float tree(float *const *leaf, uint32_t n, uint64_t at)
{
	uint32_t left = 1;

	if (n == 1)
		return leaf[0][at];
	while (left * 2 < n)
		left *= 2;
	return tree(leaf, left, at) + tree(leaf + left, n - left, at);
}

/* As it would be if each virtual node added its parts. */
static float tree_of_sums(float *const *leaf, uint32_t n, const uint64_t *at, uint32_t nparts)
{
	float sums[MOST_VNS], *one[MOST_VNS];

	for (uint32_t v = 0; v < n; v++) {
		sums[v] = leaf[v][at[0]];
		for (uint32_t k = 1; k < nparts; k++)
			sums[v] += leaf[v][at[k]];
		one[v] = &sums[v];
	}
	return tree(one, n, 0);
}

struct orders { uint64_t elems, before, first; };

/* One device's sums of step 0, and those of a worker among several. Counts where the other orders come to
 * other bits: parts added before they are folded, and the first use first. */
static struct orders check_sums(const char *model, uint32_t vns)
{
	struct orders n = { 0, 0, 0 };
	float *leaf[MOST_VNS];
	struct hd_step_record record;
	struct hd_diag diag = { "" };
	struct hd_rig rig;

	hd_rig_open(&rig, model, ROWS, vns, "optim: {kind: sgd, lr: 0.1}\n", 1);
	const struct hd_layout *l = &rig.task->layout;
	float *folded = hd_arena_take(&rig.arena, l->elems, sizeof *folded);
	get_leaves(rig.task, leaf, folded, &rig.arena);
	CHECK(hd_worker_step(rig.worker, false, &record, &diag) == HD_OK, "%s", diag.text);
	const float *sum = hd_worker_sum(rig.worker);
	for (uint32_t p = 0; p < l->nparams; p++)
		for (uint64_t i = 0; i < l->len[p]; i++) {
			uint64_t at[HD_MAX_USES_APART] = { l->at[p] + i };
			uint32_t parts = 1;
			for (uint32_t g = l->nparams; g < l->ngrads; g++)
				if (l->grad_param[g] == p)
					at[parts++] = l->at[g] + i;
			float want = tree(leaf, vns, at[0]), turned = tree(leaf, vns, at[parts - 1]);
			for (uint32_t k = 1; k < parts; k++) {
				want += tree(leaf, vns, at[k]);
				turned += tree(leaf, vns, at[parts - 1 - k]);
			}
			float before = tree_of_sums(leaf, vns, at, parts);
			CHECK(memcmp(&want, &sum[l->at[p] + i], sizeof want) == 0,
				"V %u, parameter %u of %u parts, element %llu: %a, not %a", vns, p, parts,
				(unsigned long long)i, (double)sum[l->at[p] + i], (double)want);
			CHECK(memcmp(&want, &folded[l->at[p] + i], sizeof want) == 0,
				"V %u, parameter %u of %u parts, element %llu: by buckets %a, not %a", vns, p,
				parts, (unsigned long long)i, (double)folded[l->at[p] + i], (double)want);
			n.elems += parts > 1;
			n.before += parts > 1 && memcmp(&before, &want, sizeof want) != 0;
			n.first += parts > 1 && memcmp(&turned, &want, sizeof want) != 0;
		}
	hd_rig_close(&rig);
	return n;
}

static void each_part_has_its_tree_and_the_last_use_comes_first(void **state)
{
	(void)state;
	for (uint32_t vns = 7; vns <= 13; vns += 6) {
		struct orders n = check_sums(gpt, vns);
		CHECK(n.elems && n.before > n.elems / 50, "V %u: %llu of %llu would differ", vns,
			(unsigned long long)n.before, (unsigned long long)n.elems);
		assert_int_equal(n.first, 0);             /* two parts: a sum of two commutes */
	}
	struct orders n = check_sums(three_job, 13);
	CHECK(n.elems == 264 * 264 + 264 && n.before > n.elems / 10 && n.first > n.elems / 10,
		"%llu and %llu of %llu would differ", (unsigned long long)n.before,
		(unsigned long long)n.first, (unsigned long long)n.elems);
}

static struct hd_hash digest_of(const char *model, uint32_t vns, const char *more, uint32_t ndevices)
{
	struct hd_step_record record;
	struct hd_diag diag = { "" };
	struct hd_rig rig;

	hd_rig_open(&rig, model, ROWS, vns, more, ndevices);
	for (uint32_t s = 0; s < 3; s++)
		CHECK(hd_worker_step(rig.worker, true, &record, &diag) == HD_OK, "%s", diag.text);
	hd_rig_close(&rig);
	return record.digest;
}

static void any_number_of_devices_gives_the_bits_of_one(void **state)
{
	static const char *const optims[] = { "optim: {kind: adamw, clip: 0.1}\n", "optim: {kind: lamb}\n" };

	(void)state;
	for (uint32_t k = 0; k < 2; k++) {
		struct hd_hash one = digest_of(three_job, 7, optims[k], 1);
		for (uint32_t d = 2; d <= 3; d++)
			assert_true(hd_hash_same(one, digest_of(three_job, 7, optims[k], d)));
	}
}

/* Each flat vector has room for the parts, and what is predicted says so. */
static void memory_of_the_parts_is_counted(void **state)
{
	struct hd_memory_terms t;
	struct hd_rig rig;

	(void)state;
	hd_rig_open(&rig, three_job, ROWS, 7, "optim: {kind: sgd}\n", 1);
	const struct hd_layout *l = &rig.task->layout;
	assert_int_equal(l->ngrads, 2 + 2 + 1);
	assert_int_equal(l->grad_elems, 3 * 264 * 264 + 2 * 272);
	hd_worker_memory(rig.worker, &t);
	const struct hd_rank_work *work = &hd_worker_work(rig.worker)->rank[0];
	assert_int_equal(t.gradients, work->script.nbuffers * l->grad_elems * sizeof(float) +
		work->script.ntemps * rig.worker->stage->train.temp_elems * sizeof(float));
	hd_rig_close(&rig);
}

/* A table that is not trained has no gradient, so it has no parts; its neighbours learn. */
static void a_frozen_table_has_no_parts(void **state)
{
	struct hd_step_record record;
	struct hd_diag diag = { "" };
	struct hd_rig rig;

	(void)state;
	hd_rig_open(&rig, "model: {use: builtin:gpt, args: {layers: 1, width: 16, heads: 2, context: 8}, "
		"freeze: [wte.weight]}\ndata: {kind: synthetic, count: 61}\n", ROWS, 7, NULL, 2);
	assert_int_equal(rig.task->layout.ngrads, rig.task->layout.nparams);
	assert_int_equal(rig.task->layout.grad_elems, rig.task->layout.elems);
	CHECK(hd_worker_step(rig.worker, true, &record, &diag) == HD_OK, "%s", diag.text);
	hd_rig_close(&rig);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_part_has_its_tree_and_the_last_use_comes_first),
		cmocka_unit_test(any_number_of_devices_gives_the_bits_of_one),
		cmocka_unit_test(memory_of_the_parts_is_counted),
		cmocka_unit_test(a_frozen_table_has_no_parts),
	};

	return cmocka_run_group_tests(tests, write_graph, remove_graph);
}
