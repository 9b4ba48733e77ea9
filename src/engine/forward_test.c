#include "engine/testing.h"

#include "base/alloc.h"
#include "base/lanes.h"

/* Evaluation: metrics with the same bits on any number of devices, equal to a plain loop,
 * for every number of rows, multiples of a block or not; each row predicted once. */

enum { MAX_ROWS = 64 };

struct outcome {
	struct hd_metrics metrics;
	uint8_t times[MAX_ROWS];
	float logits[MAX_ROWS * 64];
	uint64_t first, width;
};

/* Blocks come from several threads; their rows are apart, so what they write is too. */
static void take_logits(void *user, uint64_t first, uint64_t n, const float *logits)
{
	struct outcome *o = user;

	for (uint64_t i = 0; i < n; i++) {
		o->times[first - o->first + i]++;
		memcpy(o->logits + (first - o->first + i) * o->width, logits + i * o->width,
			o->width * sizeof *logits);
	}
}

static void evaluate(struct hd_rig *rig, uint64_t first, uint64_t count, uint64_t width, struct outcome *o)
{
	struct hd_diag diag = { "" };
	struct hd_forward_job job = { .split = 0, .first = first, .count = count, .logits = take_logits,
		.user = o };

	memset(o, 0, sizeof *o);
	o->first = first;
	o->width = width;
	CHECK(hd_worker_forward(rig->worker, &job, &o->metrics, &diag) == HD_OK, "%s", diag.text);
}

/* The same rows one block after the other through hd_worker_forward_rows, whose logits tell the hits. */
static uint64_t plain_hits(struct hd_rig *rig, uint64_t first, uint64_t count, uint64_t width, float *logits)
{
	struct hd_dataset *data = rig->task->data;
	uint64_t b = rig->job->per_vn, hits = 0;
	struct hd_diag diag = { "" };
	uint8_t *field[HD_MAX_FIELDS];
	const float *out;

	for (uint32_t f = 0; f < data->nfields; f++)
		field[f] = hd_arena_take(&rig->arena, b, data->field[f].sample_bytes);
	for (uint64_t at = 0; at < count; at += b) {
		uint64_t n = count - at < b ? count - at : b;
		for (uint64_t i = 0; i < n; i++) {
			void *to[HD_MAX_FIELDS];
			for (uint32_t f = 0; f < data->nfields; f++)
				to[f] = field[f] + i * data->field[f].sample_bytes;
			assert_int_equal(data->ops->read(data, 0, first + at + i, to, &diag), HD_OK);
		}
		CHECK(hd_worker_forward_rows(rig->worker, (const void *const *)field, n, &out,
			&diag) == HD_OK, "%s", diag.text);
		memcpy(logits + at * width, out, n * width * sizeof *out);
		for (uint64_t i = 0; i < n; i++) {
			uint64_t best = 0;
			for (uint64_t c = 1; c < width; c++)
				best = out[i * width + c] > out[i * width + best] ? c : best;
			hits += (int32_t)best == ((const int32_t *)(void *)field[1])[i];
		}
	}
	return hits;
}

static void metrics_have_the_same_bits_on_any_number_of_devices(void **state)
{
	static const uint32_t devices[] = { 1, 2, 3, 5, 8 };
	static const uint64_t width = 10;
	static float plain[MAX_ROWS * 64];

	(void)state;
	for (int lenet = 0; lenet < 2; lenet++) {
		struct outcome one, other;
		uint64_t hits = 0;
		for (size_t d = 0; d < 5; d++) {
			struct hd_rig rig;
			/* blocks of 5; 61 rows: the last has 1 */
			hd_rig_open(&rig, lenet ? hd_rig_lenet : hd_rig_mlp, 20, 4, NULL, devices[d]);
			for (int i = 0; i < 3; i++)
				hd_rig_step(&rig);
			evaluate(&rig, 0, 61, width, &other);
			if (d == 0) {
				one = other;
				hits = plain_hits(&rig, 0, 61, width, plain);
			}
			assert_memory_equal(&one.metrics, &other.metrics, sizeof one.metrics);
			assert_memory_equal(one.logits, other.logits, sizeof one.logits);
			for (int i = 0; i < 61; i++)
				CHECK(other.times[i] == 1, "%u devices: row %d was predicted %u times",
					devices[d], i, other.times[i]);
			hd_rig_close(&rig);
		}
		assert_memory_equal(one.logits, plain, 61 * width * sizeof *plain);
		assert_true(one.metrics.weight == 61 && one.metrics.rows == 61 &&
			one.metrics.correct == (double)hits);
	}
}

static struct asked { atomic_uint calls, rows, ahead; } asked;

static enum hd_err read_together(const struct hd_dataset *set, uint32_t split, const struct hd_ask *ask,
	uint32_t n, bool ahead, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	atomic_fetch_add(&asked.calls, 1);
	atomic_fetch_add(&asked.rows, n);
	atomic_fetch_add(&asked.ahead, ahead);
	for (uint32_t i = 0; i < n && !err; i++)
		err = set->ops->read(set, split, ask[i].index, ask[i].out, diag);
	return err;
}

/* A set that is far is asked once for a block, or for 64 rows of a long one: it waits once for them. */
static void rows_of_a_block_are_asked_for_together(void **state)
{
	static const struct { uint32_t batch, count, calls; } rows[] = { { 20, 61, 13 }, { 400, 300, 6 } };
	struct hd_rig rig;

	(void)state;
	for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
		struct hd_forward_job job = { .count = rows[r].count };
		struct hd_metrics near, far;
		struct hd_diag diag = { "" };
		hd_rig_open(&rig, hd_rig_mlp, rows[r].batch, 4, NULL, 2);
		hd_rig_step(&rig);
		CHECK(hd_worker_forward(rig.worker, &job, &near, &diag) == HD_OK, "%s", diag.text);
		memset(&asked, 0, sizeof asked);
		rig.task->data->read_many = read_together;
		CHECK(hd_worker_forward(rig.worker, &job, &far, &diag) == HD_OK, "%s", diag.text);
		rig.task->data->read_many = NULL;
		assert_memory_equal(&near, &far, sizeof near);
		CHECK(asked.calls == rows[r].calls && asked.rows == rows[r].count && !asked.ahead,
			"%u calls for %u rows, %u ahead", (unsigned)asked.calls, (unsigned)asked.rows,
			(unsigned)asked.ahead);
		hd_rig_close(&rig);
	}
}

/* The metrics of many blocks are those of each block alone, folded along the tree. */
static void any_number_of_rows_is_evaluated_without_padding(void **state)
{
	struct outcome all, part;
	struct hd_rig rig;

	(void)state;
	hd_rig_open(&rig, hd_rig_mlp, 20, 4, NULL, 3);
	hd_rig_step(&rig);
	for (uint64_t count = 1; count <= 61; count++) {
		if (count % 5 && count % 5 != 61 % 5)
			/* a block of another length is not prepared: a split has one last block */
			continue;
		evaluate(&rig, 0, count, 10, &part);
		double loss[16];
		uint64_t n = 0;
		for (uint64_t at = 0; at < count; at += 5, n++) {
			evaluate(&rig, at, count - at < 5 ? count - at : 5, 10, &all);
			loss[n] = all.metrics.loss_sum;
		}
		double sum = hd_tree_sum(loss, n);
		CHECK(memcmp(&sum, &part.metrics.loss_sum, sizeof sum) == 0,
			"%llu rows: %.17g, block by block %.17g", (unsigned long long)count,
			part.metrics.loss_sum, sum);
		assert_true(part.metrics.weight == (double)count);
	}
	hd_rig_close(&rig);
}

static void evaluation_changes_no_bit_of_the_training(void **state)
{
	struct outcome o;
	struct hd_rig plain, with;

	(void)state;
	hd_rig_open(&plain, hd_rig_mlp, 20, 4, NULL, 1);
	hd_rig_open(&with, hd_rig_mlp, 20, 4, NULL, 3);
	for (int i = 0; i < 5; i++) {
		evaluate(&with, 0, 61, 10, &o);
		assert_true(hd_hash_same(hd_rig_step(&plain).digest, hd_rig_step(&with).digest));
	}
	hd_rig_close(&with);
	hd_rig_close(&plain);
}

/* Masks are drawn by the step: with dropout on, another step would give another loss. */
static void a_model_with_dropout_evaluates_without_it(void **state)
{
	struct hd_metrics a, b;
	struct hd_diag diag = { "" };
	struct hd_rig rig;

	(void)state;
	hd_rig_open(&rig, hd_rig_gpt, 26, 13, NULL, 2);
	struct hd_forward_job job = { .split = 0, .count = 61 };
	assert_int_equal(hd_worker_forward(rig.worker, &job, &a, &diag), HD_OK);
	*(int64_t *)hd_state_find(hd_worker_state(rig.worker), "run.step")->at = 5;
	assert_int_equal(hd_worker_forward(rig.worker, &job, &b, &diag), HD_OK);
	assert_memory_equal(&a, &b, sizeof a);
	hd_rig_close(&rig);
}

/* Any request may fail: then that is said, and no metric of zeros is made up. */
static void a_metric_for_which_there_is_no_memory_is_an_error(void **state)
{
	static const char many[] =
		"model: {use: builtin:mlp, args: {hidden: [3]}}\ndata: {kind: synthetic, count: 3000}\n";
	struct hd_metrics want, got = { 0 };
	struct hd_diag diag = { "" };
	struct hd_rig rig;
	uint64_t n = 1;

	(void)state;
	hd_rig_open(&rig, many, 4, 4, NULL, 1);
	struct hd_forward_job job = { .split = 0, .count = rig.task->data->split[0].count };
	assert_int_equal(hd_worker_forward(rig.worker, &job, &want, &diag), HD_OK);
	for (;; n++) {
		hd_alloc_arm(n);
		enum hd_err err = hd_worker_forward(rig.worker, &job, &got, &diag);
		hd_alloc_arm(0);
		if (!err)
			break;
		CHECK(err == HD_E_NOMEM, "request %llu: %d", (unsigned long long)n, err);
	}
	assert_true(n > 1);
	assert_memory_equal(&want, &got, sizeof want);
	hd_rig_close(&rig);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(metrics_have_the_same_bits_on_any_number_of_devices),
		cmocka_unit_test(rows_of_a_block_are_asked_for_together),
		cmocka_unit_test(any_number_of_rows_is_evaluated_without_padding),
		cmocka_unit_test(evaluation_changes_no_bit_of_the_training),
		cmocka_unit_test(a_model_with_dropout_evaluates_without_it),
		cmocka_unit_test(a_metric_for_which_there_is_no_memory_is_an_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
