#include <math.h>

#include "graph/safetensors.h"
#include "engine/testing.h"

/* Losses and their options as tests/torch/losses.py wrote them down with PyTorch: ten steps of SGD, the
 * gradient of the first, the parameters at the end. Then the same bits on 1, 2, 3 and 5 devices, of the
 * steps, of the parameters and of what an evaluation measures. */

enum { STEPS = 10 };
/* sums of some 50 products in f32, in two orders, ten times over */
static const double tolerance = 1e-6;

static const struct { const char *name, *data; } cases[] = {
	{ "smoothing", "classes" }, { "weights", "classes" }, { "ignore", "ignored" }, { "ignore_class", "classes" },
	{ "all", "ignored" }, { "soft", "shares" }, { "soft_all", "shares" }, { "kl", "shares" },
	{ "bce", "labels" }, { "bce_pos", "labels" }, { "bce_one_pos", "labels" }, { "mse", "numbers" },
	{ "l1", "numbers" }, { "smooth_l1", "numbers" }, { "huber", "numbers" },
	{ "one_hot", "classes" }, { "sum", "several" }, { "sum_of_one_target", "labels" },
};
enum { NCASES = sizeof cases / sizeof *cases };

static void path_of(char path[512], const char *file)
{
	const char *source = getenv("SOURCE_DIR");

	snprintf(path, 512, "%s/tests/torch/fixtures/losses/%s", source ? source : ".", file);
}

static void read_file(struct hd_rig *rig, const char *file, uint8_t **bytes, size_t *len)
{
	struct hd_diag diag = { "" };
	char path[512];

	path_of(path, file);
	CHECK(hd_file_read_all(&rig->fs, path, &rig->arena, 1 << 24, bytes, len, &diag) == HD_OK, "%s",
		diag.text);
}

static void read_tensors(struct hd_rig *rig, const char *file, struct hd_safetensors *st)
{
	struct hd_diag diag = { "" };
	uint8_t *bytes;
	size_t len;

	read_file(rig, file, &bytes, &len);
	CHECK(hd_safetensors_read(st, &rig->arena, file, bytes, len, &diag) == HD_OK, "%s", diag.text);
}

static void open_case(struct hd_rig *rig, size_t c, uint32_t ndevices, const char *key, const char *value)
{
	const struct hd_worker_spec spec = { .kind = "cpu", .ndevices = ndevices, .nthreads = 1,
		.kernels = HD_KERNELS_PORTABLE };
	struct hd_diag diag = { "" };
	char file[64], path[512];
	struct hd_safetensors begin;
	uint8_t *bytes;
	size_t len;

	memset(rig, 0, sizeof *rig);
	hd_fs_real(&rig->fs);
	hd_arena_init(&rig->arena, 0);
	rig->job = hd_arena_take(&rig->arena, 1, sizeof *rig->job);
	snprintf(file, sizeof file, "%s.yaml", cases[c].name);
	read_file(rig, file, &bytes, &len);
	path_of(path, cases[c].data);
	const struct hd_job_set set[] = { { "data.path", path, HD_FROM_SET }, { key, value, HD_FROM_SET } };
	CHECK(hd_job_parse(rig->job, file, (const char *)bytes, len, set, key ? 2 : 1, &rig->arena, &diag,
		NULL) == HD_OK, "%s", diag.text);
	hd_rig_go(rig, &spec);
	read_tensors(rig, "begin.safetensors", &begin);
	for (uint32_t i = 0; i < begin.ntensors; i++) {
		struct hd_state_entry *e = hd_state_find(hd_worker_state(rig->worker), begin.tensor[i].name);
		CHECK(e && e->len_bytes == begin.tensor[i].len_bytes, "%s", begin.tensor[i].name);
		hd_state_put(e, 0, e->len_bytes / 4, begin.tensor[i].at);
	}
}

static struct hd_step_record step(struct hd_rig *rig)
{
	struct hd_step_record r;
	struct hd_diag diag = { "" };

	CHECK(hd_worker_step(rig->worker, false, &r, &diag) == HD_OK, "%s", diag.text);
	return r;
}

static const struct hd_st_tensor *expected(const struct hd_safetensors *all, size_t c, const char *what)
{
	char name[64];

	snprintf(name, sizeof name, "%s.%s", cases[c].name, what);
	const struct hd_st_tensor *t = hd_safetensors_find(all, name);
	CHECK(t, "%s", name);
	return t;
}

/* All parameters one after another, in the graph's order, as PyTorch lists them. */
static void close_to(const struct hd_rig *rig, size_t c, const struct hd_st_tensor *want, const float *flat,
	double by, const char *what)
{
	const struct hd_layout *l = &rig->task->layout;
	const float *theirs = want->at;

	for (uint32_t p = 0; p < rig->task->train.nparams; p++)
		for (uint64_t e = 0; e < l->len[p]; e++, theirs++) {
			const double ours = (double)flat[l->at[p] + e] * by;
			CHECK(fabs(ours - (double)*theirs) <= tolerance,
				"%s: %s of parameter %u, element %u: %.9g, "
				"PyTorch has %.9g", cases[c].name, what, p, (unsigned)e, ours,
					(double)*theirs);
		}
	assert_int_equal((const uint8_t *)theirs - (const uint8_t *)want->at, want->len_bytes);
}

static const float *params_of(const struct hd_rig *rig)
{
	return hd_param_store_at(rig->worker->store, HD_VEC_PARAMS, 0, 1);
}

static void losses_gradients_and_parameters_are_pytorchs(void **state)
{
	(void)state;
	for (size_t c = 0; c < NCASES; c++) {
		struct hd_safetensors all;
		struct hd_rig rig;
		open_case(&rig, c, 2, NULL, NULL);
		read_tensors(&rig, "expect.safetensors", &all);
		const double *loss = expected(&all, c, "loss")->at;
		const double *terms = rig.task->nterms ? expected(&all, c, "terms")->at : NULL;
		assert_int_equal(rig.task->nterms, strncmp(cases[c].name, "sum", 3) ? 0 : cases[c].name[3] ?
			2 : 3);
		for (uint32_t s = 0; s < STEPS; s++) {
			const struct hd_step_record r = step(&rig);
			CHECK(fabs(r.loss_sum / r.weight - loss[s]) <= tolerance * fmax(1, loss[s]),
				"%s: loss of step %u is %.9g, PyTorch has %.9g", cases[c].name, s,
				r.loss_sum / r.weight, loss[s]);
			for (uint32_t t = 0; t < r.nterms; t++, terms++)
				CHECK(fabs(r.term_sum[t] / r.weight - *terms) <= tolerance * fmax(1, *terms),
					"%s: term %u of step %u is %.9g, PyTorch has %.9g", cases[c].name,
					t + 1, s,
					r.term_sum[t] / r.weight, *terms);
			if (s == 0)
				close_to(&rig, c, expected(&all, c, "grad"), rig.worker->parts->part->sum,
					1 / r.weight, "gradient");
		}
		close_to(&rig, c, expected(&all, c, "end"), params_of(&rig), 1, "end");
		hd_rig_close(&rig);
	}
}

static const char *metrics_of(size_t c)
{
	const char *data = cases[c].data;

	return !strcmp(data, "numbers") ? "[mae, mse, r2]" : !strcmp(data, "labels") ?
		"[f1-macro, precision-micro, auroc, accuracy]" :
			"[top-2, f1-macro, recall-macro, auroc, accuracy]";
}

static void devices_agree_in_steps_parameters_and_measures(void **state)
{
	(void)state;
	for (size_t c = 0; c < NCASES; c++) {
		struct hd_step_record want[3], got;
		struct hd_metrics seen = { 0 }, m;
		float first[4096];
		uint64_t n = 0;
		for (uint32_t ndevices = 1; ndevices <= 5; ndevices += ndevices == 3 ? 2 : 1) {
			struct hd_diag diag = { "" };
			struct hd_rig rig;
			open_case(&rig, c, ndevices, "eval.metrics", metrics_of(c));
			const struct hd_forward_job all = { .split = 0,
				.count = rig.task->data->split[0].count };
			for (int s = 0; s < 3; s++) {
				got = step(&rig);
				want[s] = ndevices == 1 ? got : want[s];
				CHECK(got.loss_sum == want[s].loss_sum && got.weight == want[s].weight &&
					got.correct == want[s].correct && got.nterms == want[s].nterms &&
					!memcmp(got.term_sum, want[s].term_sum, sizeof got.term_sum),
						"%s: step %d on %u devices",
						cases[c].name, s,
					ndevices);
			}
			memset(&m, 0, sizeof m);
			CHECK(hd_worker_forward(rig.worker, &all, &m, &diag) == HD_OK, "%s", diag.text);
			n = ndevices == 1 ? rig.task->layout.held_elems : n;
			assert_true(n && n <= 4096 && m.measured);
			if (ndevices == 1) {
				memcpy(first, params_of(&rig), n * sizeof *first);
				seen = m;
			}
			CHECK(!memcmp(first, params_of(&rig), n * sizeof *first),
				"%s: parameters on %u devices",
				cases[c].name, ndevices);
			CHECK(m.loss_sum == seen.loss_sum && m.measured == seen.measured &&
				!memcmp(m.term_sum, seen.term_sum, sizeof m.term_sum) &&
				!memcmp(m.measure, seen.measure, sizeof m.measure),
					"%s: measures on %u devices",
				cases[c].name, ndevices);
			hd_rig_close(&rig);
		}
	}
}

/* Shares of the rows, by hand from the logits: weights of classes do not count in them. */
struct counted { uint64_t rows, right; const int32_t *label; uint64_t cols; };

static void count_rows(void *user, uint64_t first, uint64_t n, const float *logits)
{
	struct counted *c = user;

	for (uint64_t i = 0; i < n; i++) {
		const float *x = logits + i * c->cols;
		uint64_t most = 0;
		for (uint64_t k = 1; k < c->cols; k++)
			most = x[k] > x[most] ? k : most;
		c->rows += c->label[first + i] >= 0;
		c->right += c->label[first + i] == (int32_t)most;
	}
}

static void accuracy_is_of_rows_whatever_classes_weigh(void **state)
{
	struct hd_diag diag = { "" };
	struct hd_metrics m;
	struct hd_rig rig;
	int32_t label[48], *to[2] = { NULL };
	float x[12];

	(void)state;
	open_case(&rig, 4, 1, NULL, NULL);
	for (uint64_t i = 0; i < 48; i++) {
		to[0] = (int32_t *)x;
		to[1] = &label[i];
		assert_int_equal(rig.task->data->ops->read(rig.task->data, 0, i, (void *const *)to, &diag),
			HD_OK);
	}
	struct counted count = { .label = label, .cols = 5 };
	const struct hd_forward_job all = { .split = 0, .count = 48, .logits = count_rows, .user = &count };
	CHECK(hd_worker_forward(rig.worker, &all, &m, &diag) == HD_OK, "%s", diag.text);
	assert_true(count.rows > 20 && count.rows < 48 && count.right > 2);
	assert_true(hd_metrics_accuracy(&m) == (double)count.right / (double)count.rows);
	assert_true(m.correct / m.weight != hd_metrics_accuracy(&m));
	hd_rig_close(&rig);
}

static const struct { size_t of; const char *key, *value, *says; } refusals[] = {
	{ 1, "loss.class_weights", "[1, 2]", "loss.class_weights has 2 numbers, the model 5 outputs" },
	{ 9, "loss.pos_weight", "[1, 2]", "loss.pos_weight has 2 numbers, the model 5 outputs" },
	{ 0, "eval.metrics", "[f1-binary]", "f1-binary is of two classes, the model tells 5" },
	{ 16, "loss", "[{kind: cross-entropy}, {kind: mse, target: y}]", "loss: mse would read \"y\" as numbers, it is i32" },
	{ 16, "loss", "[{kind: cross-entropy, of: other}]", "the model has no output \"other\" beside logits" },
	{ 16, "loss", "[{kind: cross-entropie}]", "loss: kind is cross-entropie: it takes cross-entropy|mse" },
	{ 16, "loss", "[{kind: mse, smoothing: 0.1}]", "smoothing has no meaning with kind mse" },
	{ 16, "loss", "[{kind: mse, weight: 0}]", "loss: weight takes one number above 0" },
	{ 16, "loss", "[{kind: mse, weigth: 1}]", "has no \"weigth\"; did you mean weight?" },
	{ 16, "loss", "[{weight: 2}]", "a term of a sum needs kind" },
	{ 16, "loss.smoothing", "0.1", "loss.smoothing is of a single loss" },
	{ 16, "model.loss", "mse", "model.loss is mse, and the first term of the list of losses cross-entropy" },
	{ 8, "eval.metrics", "[top-2]", "top-2 is none of this model, which tells several labels of each row" },
};

static void what_does_not_fit_the_model_is_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
		struct hd_rig rig = { 0 };
		struct hd_diag diag = { "" };
		char file[64], path[512];
		uint8_t *bytes;
		size_t len;
		hd_fs_real(&rig.fs);
		hd_arena_init(&rig.arena, 0);
		struct hd_job *job = hd_arena_take(&rig.arena, 1, sizeof *job);
		snprintf(file, sizeof file, "%s.yaml", cases[refusals[i].of].name);
		read_file(&rig, file, &bytes, &len);
		path_of(path, cases[refusals[i].of].data);
		const struct hd_job_set set[] = { { "data.path", path, HD_FROM_SET },
			{ refusals[i].key, refusals[i].value, HD_FROM_SET } };
		enum hd_err err = hd_job_parse(job, file, (const char *)bytes, len, set, 2, &rig.arena,
			&diag, NULL);
		err = err ? err : hd_task_create(&rig.task, job, &rig.fs, &diag);
		CHECK(err == HD_E_INVAL && strstr(diag.text, refusals[i].says), "%s: %s", refusals[i].says,
			diag.text);
		hd_arena_finish(&rig.arena);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(losses_gradients_and_parameters_are_pytorchs),
		cmocka_unit_test(devices_agree_in_steps_parameters_and_measures),
		cmocka_unit_test(accuracy_is_of_rows_whatever_classes_weigh),
		cmocka_unit_test(what_does_not_fit_the_model_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
