#include "engine/testing.h"

#include <math.h>

#include "data/dataset.h"

/* What happens to numbers that are not finite: the state never sees them, and the user
 * hears step, virtual node and op. They come in through the data: a reader that answers as
 * the rig's own does, and then writes what a test wants into some samples. */

struct spoiler { const struct hd_reader_ops *under; float value; uint64_t every; bool labels, off; };
static struct spoiler spoiler;

static enum hd_err spoiled_read(const struct hd_dataset *set, uint32_t split, uint64_t index,
	void *const *out, struct hd_diag *diag)
{
	enum hd_err err = spoiler.under->read(set, split, index, out, diag);

	if (err || spoiler.off || split != 0 || index % spoiler.every)
		return err;
	if (spoiler.labels)
		for (uint64_t i = 0; i < set->field[1].sample_bytes / 4; i++)
			((int32_t *)out[1])[i] = -1;
	else
		*(float *)out[0] = spoiler.value;
	return HD_OK;
}

static void spoiled_destroy(struct hd_dataset *set) { spoiler.under->destroy(set); }
static struct hd_reader_ops spoiled = { .name = "spoiled", .about = "another reader, with faults",
	.read = spoiled_read, .destroy = spoiled_destroy };

/* Steps from `from` on read spoiled data: the reader must not have run ahead, so the worker goes back. */
static void spoil(struct hd_rig *rig, float value, uint64_t every)
{
	struct hd_diag diag = { "" };

	hd_rig_hush(rig);
	if (rig->task->data->ops != &spoiled)
		spoiler.under = rig->task->data->ops;
	rig->task->data->ops = &spoiled;
	spoiler.value = value;
	spoiler.every = every;
	spoiler.labels = false;
	spoiler.off = every == 0;
	CHECK(hd_worker_rewind(rig->worker, &diag) == HD_OK, "%s", diag.text);
}

static enum hd_err step(struct hd_rig *rig, struct hd_step_record *record, struct hd_diag *diag)
{
	*diag = (struct hd_diag){ "" };
	return hd_worker_step(rig->worker, true, record, diag);
}

static void a_step_that_is_not_finite_leaves_the_state_and_names_the_sample(void **state)
{
	static const float values[] = { INFINITY, -INFINITY, NAN };
	struct hd_step_record record;
	struct hd_diag diag;
	struct hd_rig rig;

	(void)state;
	for (uint32_t ndevices = 1; ndevices <= 3; ndevices++)
		for (size_t v = 0; v < 3; v++) {
			hd_rig_open(&rig, hd_rig_mlp, 26, 13, NULL, ndevices);
			hd_rig_step(&rig);
			struct hd_hash before = hd_worker_digest(rig.worker);
			spoil(&rig, values[v], 1);
			assert_int_equal(step(&rig, &record, &diag), HD_E_DIVERGED);
			CHECK(hd_hash_same(before, hd_worker_digest(rig.worker)), "the state changed");
			CHECK(strstr(diag.text, "step 1: ") &&
				strstr(diag.text, "\"x\" of training sample") &&
				strstr(diag.text, "virtual node 0"),
				"%s", diag.text);
			spoil(&rig, 0, 0);
			struct hd_step_record again = hd_rig_step(&rig);
			assert_int_equal(again.step, 1);
			hd_rig_close(&rig);
		}
}

/* After a failed step the next try computes what an undisturbed run computes. */
static void a_step_tried_again_has_the_bits_of_the_undisturbed_one(void **state)
{
	struct hd_rig whole, rig;
	struct hd_step_record record;
	struct hd_diag diag;

	(void)state;
	hd_rig_open(&whole, hd_rig_mlp, 26, 13, NULL, 1);
	hd_rig_open(&rig, hd_rig_mlp, 26, 13, NULL, 3);
	hd_rig_step(&whole);
	hd_rig_step(&rig);
	spoil(&rig, NAN, 7);
	assert_int_equal(step(&rig, &record, &diag), HD_E_DIVERGED);
	hd_rig_hush(&rig);
	spoiler.off = true;
	for (int i = 0; i < 4; i++) {
		struct hd_step_record a = hd_rig_step(&whole), b = hd_rig_step(&rig);
		assert_true(hd_hash_same(a.digest, b.digest));
	}
	hd_rig_close(&rig);
	hd_rig_close(&whole);
}

static void finite_data_that_overflow_an_op_name_the_op(void **state)
{
	struct hd_step_record record;
	struct hd_diag diag;
	struct hd_rig rig;

	(void)state;
	hd_rig_open(&rig, hd_rig_mlp, 26, 13, NULL, 2);
	struct hd_state_entry *e = hd_state_find(hd_worker_state(rig.worker), "fc1.weight");
	for (uint64_t i = 0; i < e->len_bytes / 4; i++)
		((float *)e->at)[i] = 3e38f;
	spoil(&rig, 3e38f, 3);
	assert_int_equal(step(&rig, &record, &diag), HD_E_DIVERGED);
	CHECK(strstr(diag.text, "made by op ") && strstr(diag.text, e->name) && strstr(diag.text, "forward"),
		"%s", diag.text);
	hd_rig_close(&rig);
}

/* Virtual nodes of 4e37 each: finite one by one, infinite together. */
static void a_sum_that_overflows_is_told_from_an_op(void **state)
{
	struct hd_step_record record;
	struct hd_diag diag;
	struct hd_rig rig;

	(void)state;
	hd_rig_open(&rig,
		"model: {use: builtin:mlp, args: {hidden: [], classes: 2}}\ndata: {kind: synthetic, count: "
		"61}\n", 26, 13, NULL, 2);
	spoil(&rig, 2.5e38f, 1);
	enum hd_err err = step(&rig, &record, &diag);
	CHECK(err == HD_E_DIVERGED && strstr(diag.text, "not finite"), "%d %s", err, diag.text);
	hd_rig_close(&rig);
}

static void a_huge_learning_rate_ends_by_naming_an_op(void **state)
{
	struct hd_step_record record;
	struct hd_diag diag;
	struct hd_rig rig;
	enum hd_err err = HD_OK;

	(void)state;
	hd_rig_open(&rig, hd_rig_mlp, 26, 13, "optim: {kind: sgd, lr: 1.0e+6, clip: 0}", 2);
	for (int i = 0; i < 10 && !err; i++)
		err = step(&rig, &record, &diag);
	CHECK(err == HD_E_DIVERGED && strstr(diag.text, "made by op ") && strstr(diag.text, "virtual node"),
		"%d %s", err, diag.text);
	hd_rig_close(&rig);
}

static void skip_moves_only_the_counters(void **state)
{
	struct hd_step_record record;
	struct hd_diag diag;
	struct hd_rig rig;

	(void)state;
	for (uint32_t ndevices = 1; ndevices <= 3; ndevices += 2) {
		hd_rig_open(&rig, hd_rig_mlp, 26, 13, "optim: {on_nonfinite: skip}", ndevices);
		hd_rig_step(&rig);
		struct hd_rig_bytes before;
		hd_rig_copy(&rig, &before, &rig.arena);
		spoil(&rig, INFINITY, 2);
		assert_int_equal(step(&rig, &record, &diag), HD_OK);
		assert_true(record.skipped && !record.empty);
		assert_int_equal(hd_worker_at(rig.worker), 2);
		const struct hd_state *s = hd_worker_state(rig.worker);
		for (uint32_t i = 0; i < s->nentries; i++) {
			bool moves = !strcmp(s->entry[i].name, "run.step") ||
				!strcmp(s->entry[i].name, "run.samples") ||
				!strcmp(s->entry[i].name, "run.skips");
			bool same = memcmp(s->entry[i].at, before.at[i], s->entry[i].len_bytes) == 0;
			CHECK(same != moves, "%s %s", s->entry[i].name, same ? "stayed" : "changed");
		}
		hd_rig_hush(&rig);
		spoiler.off = true;
		assert_int_equal(hd_worker_rewind(rig.worker, &diag), HD_OK);
		record = hd_rig_step(&rig);
		assert_false(record.skipped);
		assert_int_equal(*(int64_t *)hd_state_find(s, "run.skips")->at, 0);
		assert_int_equal(*(int64_t *)hd_state_find(s, "run.updates")->at, 2);
		hd_rig_close(&rig);
	}
}

static void twenty_five_skips_in_a_row_are_divergence(void **state)
{
	struct hd_step_record record;
	struct hd_diag diag;
	struct hd_rig rig;

	(void)state;
	hd_rig_open(&rig, hd_rig_mlp, 26, 13, "optim: {on_nonfinite: skip}", 2);
	spoil(&rig, NAN, 1);
	for (int i = 0; i < HD_MAX_SKIPS - 1; i++)
		CHECK(step(&rig, &record, &diag) == HD_OK && record.skipped, "skip %d: %s", i, diag.text);
	assert_int_equal(step(&rig, &record, &diag), HD_E_DIVERGED);
	CHECK(strstr(diag.text, "step 24: 25 steps in a row"), "%s", diag.text);
	hd_rig_close(&rig);
}

/* The count is state: a resumed run has not forgotten it. */
static void the_count_of_skips_is_in_the_table(void **state)
{
	struct hd_step_record record;
	struct hd_diag diag;
	struct hd_rig rig;

	(void)state;
	hd_rig_open(&rig, hd_rig_mlp, 26, 13, "optim: {on_nonfinite: skip}", 1);
	*(int64_t *)hd_state_find(hd_worker_state(rig.worker), "run.skips")->at = HD_MAX_SKIPS - 1;
	spoil(&rig, NAN, 1);
	assert_int_equal(step(&rig, &record, &diag), HD_E_DIVERGED);
	hd_rig_close(&rig);
}

static void a_step_of_masked_labels_moves_only_step_and_samples(void **state)
{
	static const char *const more[] = { "optim: {kind: adamw, weight_decay: 0.1}",
		"optim: {kind: momentum}", "optim: {on_nonfinite: skip}" };
	struct hd_step_record record;
	struct hd_diag diag;
	struct hd_rig rig;

	(void)state;
	for (size_t m = 0; m < 3; m++) {
		hd_rig_open(&rig, hd_rig_gpt, 26, 13, more[m], 1 + (uint32_t)m);
		hd_rig_step(&rig);
		struct hd_rig_bytes before;
		hd_rig_copy(&rig, &before, &rig.arena);
		spoil(&rig, 0, 1);
		hd_rig_hush(&rig);
		spoiler.labels = true;
		assert_int_equal(hd_worker_rewind(rig.worker, &diag), HD_OK);
		CHECK(step(&rig, &record, &diag) == HD_OK, "%s", diag.text);
		assert_true(record.empty && !record.skipped && record.weight == 0);
		const struct hd_state *s = hd_worker_state(rig.worker);
		for (uint32_t i = 0; i < s->nentries; i++) {
			bool moves = !strcmp(s->entry[i].name, "run.step") ||
				!strcmp(s->entry[i].name, "run.samples");
			bool same = memcmp(s->entry[i].at, before.at[i], s->entry[i].len_bytes) == 0;
			CHECK(same != moves, "case %zu: %s %s", m, s->entry[i].name,
				same ? "stayed" : "changed");
		}
		hd_rig_close(&rig);
	}
}

/* Tokens masked at random: some virtual nodes have none left. The mean gradient is a mean over
 * tokens, so how rows are dealt to virtual nodes is a matter of rounding only. */
static enum hd_err ragged_read(const struct hd_dataset *set, uint32_t split, uint64_t index, void *const *out,
	struct hd_diag *diag)
{
	enum hd_err err = spoiler.under->read(set, split, index, out, diag);
	uint64_t n = set->field[1].sample_bytes / 4, keep = index % 3 == 0 ? 0 : index * 7 % (n + 1);

	for (uint64_t i = keep; i < n && !err; i++)
		((int32_t *)out[1])[i] = -1;
	return err;
}
static struct hd_reader_ops ragged = { .name = "ragged", .about = "another reader, with masks",
	.read = ragged_read, .destroy = spoiled_destroy };

static void a_mean_over_tokens_does_not_depend_on_how_rows_are_dealt(void **state)
{
	static const char gpt[] =
		"model: {use: builtin:gpt, args: {layers: 1, width: 32, heads: 2, context: 24, dropout: 0}}\n"
		"data: {kind: synthetic, count: 61}\n";
	static const uint32_t vns[] = { 2, 12, 24 };
	struct hd_diag diag = { "" };
	struct hd_rig whole, parts;

	(void)state;
	for (size_t v = 0; v < 3; v++) {
		hd_rig_open(&whole, gpt, 24, 1, "optim: {kind: sgd, lr: 0.1, clip: 0}", 1);
		hd_rig_open(&parts, gpt, 24, vns[v], "optim: {kind: sgd, lr: 0.1, clip: 0}", 2);
		hd_rig_hush(&whole);
		hd_rig_hush(&parts);
		spoiler.under = whole.task->data->ops;
		whole.task->data->ops = parts.task->data->ops = &ragged;
		assert_int_equal(hd_worker_rewind(whole.worker, &diag), HD_OK);
		assert_int_equal(hd_worker_rewind(parts.worker, &diag), HD_OK);
		struct hd_step_record a = hd_rig_step(&whole), b = hd_rig_step(&parts);
		assert_true(a.weight == b.weight && a.weight > 0 && a.correct == b.correct);
		CHECK(fabs(a.loss_sum - b.loss_sum) <= 1e-5 * fabs(a.loss_sum), "loss %.9g, %.9g", a.loss_sum,
			b.loss_sum);
		const float *x = whole.worker->parts->part->sum, *y = parts.worker->parts->part->sum;
		double diff = 0, size = 0;
		for (uint64_t i = 0; i < whole.task->layout.elems; i++) {
			diff += ((double)x[i] - (double)y[i]) * ((double)x[i] - (double)y[i]);
			size += (double)x[i] * (double)x[i];
		}
		CHECK(sqrt(diff) <= 1e-5 * sqrt(size),
			"gradients of 1 and %u virtual nodes differ by %.3g of %.3g", vns[v], sqrt(diff),
			sqrt(size));
		hd_rig_close(&whole);
		hd_rig_close(&parts);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_step_that_is_not_finite_leaves_the_state_and_names_the_sample),
		cmocka_unit_test(a_step_tried_again_has_the_bits_of_the_undisturbed_one),
		cmocka_unit_test(finite_data_that_overflow_an_op_name_the_op),
		cmocka_unit_test(a_sum_that_overflows_is_told_from_an_op),
		cmocka_unit_test(a_huge_learning_rate_ends_by_naming_an_op),
		cmocka_unit_test(skip_moves_only_the_counters),
		cmocka_unit_test(twenty_five_skips_in_a_row_are_divergence),
		cmocka_unit_test(the_count_of_skips_is_in_the_table),
		cmocka_unit_test(a_step_of_masked_labels_moves_only_step_and_samples),
		cmocka_unit_test(a_mean_over_tokens_does_not_depend_on_how_rows_are_dealt),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
