#include "engine/worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "tests/check.h"

/* The great oracle: the undisturbed run on one device of one thread. Everything a plan may
 * choose is varied; digest of the state, loss and metrics must be equal bit for bit. */

static const char mlp[]   =
	"model: {use: builtin:mlp, args: {hidden: [33, 17]}}\ndata: {kind: synthetic, count: 61}\n";
static const char lenet[] = "model: {use: builtin:lenet}\ndata: {kind: synthetic, count: 61}\n";
static const char gpt[]   =
	"model: {use: builtin:gpt, args: {layers: 2, width: 32, heads: 2, context: 24, dropout: 0.1}}\n"
	"data: {kind: synthetic, count: 61}\n";
static const char llama[] =
	"model: {use: builtin:llama, args: {layers: 2, width: 32, heads: 4, kv_heads: 2, hidden: 48, "
	"context: 24}}\n"
	"data: {kind: synthetic, count: 61}\n";
static const char bert[]  =
	"model: {use: builtin:bert, args: {layers: 2, width: 24, heads: 3, hidden: 40, context: 24, "
	"dropout: 0.1, pad: 9}}\n"
	"data: {kind: synthetic, count: 61}\n";
static const char cls[]   =
	"model: {use: builtin:bert, args: {layers: 1, width: 24, heads: 3, hidden: 40, context: 24, "
	"dropout: 0.1, pad: 9, "
	"head: cls, classes: 3}}\ndata: {kind: synthetic, count: 61}\n";
static const char lstm[]  =
	"model: {use: builtin:lstm, args: {layers: 2, width: 12, hidden: 20, context: 24, dropout: 0.1}}\n"
	"data: {kind: synthetic, count: 61}\n";
static const char gru[]   =
	"model: {use: builtin:gru, args: {layers: 1, width: 12, hidden: 20, context: 24}}\n"
	"data: {kind: synthetic, count: 61}\n";

static const char *bn(void)
{
	const char *source = getenv("SOURCE_DIR");
	static char text[700];

	snprintf(text, sizeof text,
		"model: {use: \"graph:%s/tests/torch/fixtures/bn/model.graph\"}\ndata: {kind: synthetic, "
		"count: 61}\n",
		source ? source : ".");
	return text;
}

/* Norms over the batch: the bits of their moments and of the running statistics, too. */
static const char resnet[] =
	"model: {use: builtin:resnet18, args: {stem: small, channels: 1, height: 9, width: 6, base: 16, "
	"classes: 5}}\n"
	"data: {kind: synthetic, count: 61}\n";

/* Some of its images are joined in blocks, some in the plain order. */
static const char inception[] =
	"model: {use: builtin:inception, args: {stem: small, channels: 1, height: 10, width: 10, base: 16, "
	"blocks: [1], "
	"classes: 5}}\ndata: {kind: synthetic, count: 61}\n";

/* wave 0: one virtual node at a time */
struct plan_of { uint32_t devices, threads; const uint32_t *map; uint32_t wave; };
struct outcome { struct hd_hash digest; double loss[8], correct[8], gnorm[8]; uint32_t nchunks; };

static struct hd_job *job_of(const char *model, uint32_t batch, uint32_t vns, const char *more,
	struct hd_arena *arena)
{
	struct hd_job *job = hd_arena_take(arena, 1, sizeof *job);
	struct hd_diag diag = { "" };
	char yaml[2048];

	snprintf(yaml, sizeof yaml, "job: {seed: 17, steps: 6}\n%sbatch: {global: %u, virtual_nodes: %u%s\n",
		model, batch, vns, more);
	CHECK(hd_job_parse(job, "test.yaml", yaml, strlen(yaml), NULL, 0, arena, &diag, NULL) == HD_OK, "%s",
		diag.text);
	return job;
}

static void train(const struct hd_job *job, struct plan_of how, uint32_t nsteps, struct outcome *out)
{
	struct hd_worker_spec spec = { .kind = "cpu", .ndevices = how.devices, .nthreads = how.threads,
		.kernels = HD_KERNELS_PORTABLE,
		.wave = how.wave ? how.wave : 1 };
	struct hd_diag diag = { "" };
	struct hd_worker *worker = NULL;
	struct hd_task *task = NULL;
	struct hd_arena arena;
	struct hd_plan plan;
	struct hd_fs fs;

	hd_fs_real(&fs);
	hd_arena_init(&arena, 0);
	CHECK(hd_task_create(&task, job, &fs, &diag) == HD_OK, "%s", diag.text);
	CHECK(hd_worker_create(&worker, task, &spec, &diag) == HD_OK, "%s", diag.text);
	const struct hd_plan_job pj = hd_worker_plan_job(worker);
	enum hd_err err = how.map ? hd_plan_of_map(&plan, &pj, how.devices, how.map, &arena, &diag)
				  : hd_plan_data(&plan, &pj, how.devices, NULL, &arena, &diag);
	CHECK(err == HD_OK, "%s", diag.text);
	CHECK(hd_worker_adopt(worker, &plan, &diag) == HD_OK, "%s", diag.text);
	memset(out, 0, sizeof *out);
	out->nchunks = task->layout.nchunks;
	for (uint32_t s = 0; s < nsteps; s++) {
		struct hd_step_record r;
		CHECK(hd_worker_step(worker, true, &r, &diag) == HD_OK, "step %u: %s", s, diag.text);
		out->loss[s] = r.loss_sum;
		out->correct[s] = r.correct;
		out->gnorm[s] = r.gnorm;
		struct hd_hash slow = hd_worker_digest(worker);
		CHECK(hd_hash_same(slow, r.digest),
			"step %u: the digest taken in the update is not that of the state", s);
		out->digest = r.digest;
	}
	hd_worker_destroy(worker);
	hd_task_destroy(task);
	hd_arena_finish(&arena);
}

static void equal(const struct outcome *a, const struct outcome *b, const char *what)
{
	CHECK(memcmp(a->loss, b->loss, sizeof a->loss) == 0, "loss differs: %s", what);
	CHECK(memcmp(a->correct, b->correct, sizeof a->correct) == 0, "hits differ: %s", what);
	CHECK(memcmp(a->gnorm, b->gnorm, sizeof a->gnorm) == 0, "gradient norm differs: %s", what);
	CHECK(hd_hash_same(a->digest, b->digest), "state differs: %s", what);
}

/* 61 samples: the last step of a data epoch is short, so it has partial and empty virtual nodes. */
static void any_number_of_devices_and_threads_gives_the_bits_of_one(void **state)
{
	const char *const models[] = { mlp, lenet, gpt, bn(), llama, bert, cls, lstm, resnet, inception };
	static const struct { uint32_t batch, vns; } shapes[] = { { 26, 7 }, { 31, 8 }, { 26, 13 },
		{ 46, 16 } };
	static const uint32_t devices[] = { 1, 2, 3, 5, 8 }, waves[] = { 16, 3, 0, 2, 5 };

	(void)state;
	for (size_t m = 0; m < sizeof models / sizeof *models; m++)
		for (size_t v = SANITIZED ? m % 4 : 0; v < (SANITIZED ? m % 4 + 1 : 4); v++) {
			struct hd_arena arena;
			struct outcome one, other;
			char what[64];
			hd_arena_init(&arena, 0);
			uint32_t n = shapes[v].vns;
			struct hd_job *job = job_of(models[m], shapes[v].batch, n,
				"}\noptim: {kind: adamw, schedule: {warmup: 2}}", &arena);
			train(job, (struct plan_of){ 1, 1, NULL, 0 }, 4, &one);
			for (size_t d = 0; d < 5; d++) {
				uint32_t threads = 1 + (uint32_t)(d + v + m) % 4;
				uint32_t wave = waves[(d + v) % 5];
				snprintf(what, sizeof what,
					"model %zu, V %u, %u devices x %u threads, waves of %u", m, n,
					devices[d], threads, wave);
				train(job, (struct plan_of){ devices[d], threads, NULL, wave }, 4, &other);
				equal(&one, &other, what);
			}
			hd_arena_finish(&arena);
		}
}

static void any_map_gives_the_bits_of_one(void **state)
{
	static const uint32_t maps[][13] = {
		{ 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0 },
		{ 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2 },
		{ 2, 2, 2, 2, 1, 1, 1, 0, 0, 0, 0, 0, 0 },
		{ 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 2 },
	};
	const char *const models[] = { mlp, gpt, bn(), llama, bert, lstm };
	static const char *const optims[] = {
		"}\noptim: {kind: sgd, lr: 0.1}", "}\noptim: {kind: momentum, lr: 0.05, weight_decay: 0.01}",
			"}\noptim: {kind: nesterov, clip: 0.1}",
		"}\noptim: {kind: adam, clip: 0}", "}\noptim: {kind: adagrad, lr: 0.01}",
		"}\noptim: {kind: lion}",
		"}\noptim: {kind: lamb, lr: 0.01}", ", slices: 2}",
	};

	(void)state;
	for (size_t m = 0; m < sizeof models / sizeof *models; m++)
		for (size_t o = SANITIZED ? m : 0; o < sizeof optims / sizeof *optims;
			o += SANITIZED ? 6 : 1) {
			struct hd_arena arena;
			struct outcome one, other;
			char what[64];
			hd_arena_init(&arena, 0);
			struct hd_job *job = job_of(models[m], m == 2 ? 52 : 26, 13, optims[o], &arena);
			train(job, (struct plan_of){ 1, 1, NULL, 0 }, 4, &one);
			for (size_t i = 0; i < 4; i++) {
				snprintf(what, sizeof what, "model %zu, optimizer %zu, map %zu", m, o, i);
				train(job, (struct plan_of){ 3, 1, maps[i], (uint32_t)(i + o) % 5 }, 4,
					&other);
				equal(&one, &other, what);
			}
			hd_arena_finish(&arena);
		}
}

/* What is drawn for a sample is keyed by the sample, so no place in a plan reaches it. */
static void transformed_samples_give_the_bits_of_one_device(void **state)
{
	static const char moved[] = "model: {use: builtin:mlp, args: {hidden: [33, 17]}}\n"
		"data: {kind: synthetic, count: 61, augment: [flip, {crop: 4}, {cutout: 8}, {contrast: "
		"0.4}, {normalize: {mean: 0.1, std: 0.3}}]}\n";
	struct outcome one, other, plain;
	struct hd_arena arena;

	(void)state;
	hd_arena_init(&arena, 0);
	struct hd_job *job = job_of(moved, 26, 13, "}", &arena);
	train(job, (struct plan_of){ .devices = 1, .threads = 1 }, 6, &one);
	train(job_of(mlp, 26, 13, "}", &arena), (struct plan_of){ .devices = 1, .threads = 1 }, 6, &plain);
	assert_true(one.loss[0] != plain.loss[0]);
	for (uint32_t d = 2; d <= 5; d++) {
		train(job, (struct plan_of){ .devices = d, .threads = 1 + d % 2 }, 6, &other);
		equal(&one, &other, "transformed samples");
	}
	hd_arena_finish(&arena);
}

/* The first matrix has two segments, which two or more devices share: its norms are those of the whole. */
static void a_tensor_that_several_devices_own_has_one_norm(void **state)
{
	static const char wide[] =
		"model: {use: builtin:mlp, args: {hidden: [128]}}\ndata: {kind: synthetic, count: 61}\n";
	struct outcome one, other;
	struct hd_arena arena;

	(void)state;
	hd_arena_init(&arena, 0);
	struct hd_job *job = job_of(wide, 26, 13, "}\noptim: {kind: lamb, lr: 0.01, schedule: {warmup: 1}}",
		&arena);
	train(job, (struct plan_of){ 1, 1, NULL, 0 }, 6, &one);
	for (uint32_t d = 1; d <= 5; d++) {
		char what[32];
		snprintf(what, sizeof what, "%u devices", d);
		for (uint32_t threads = 1; threads <= 2; threads++) {
			train(job, (struct plan_of){ d, threads, NULL, d }, 6, &other);
			equal(&one, &other, what);
		}
	}
	hd_arena_finish(&arena);
}

/* Each device joins, measures, updates and hashes a run of chunks: none of a run may be left out, the last
 * one neither. */
static void runs_of_several_chunks_give_the_bits_of_one_device(void **state)
{
	static const char wide[] =
		"model: {use: builtin:mlp, args: {hidden: [512]}}\ndata: {kind: synthetic, count: 61}\n";
	struct outcome one, other;
	struct hd_arena arena;

	(void)state;
	hd_arena_init(&arena, 0);
	struct hd_job *job = job_of(wide, 26, 13,
		"}\noptim: {kind: adamw, lr: 0.01, clip: 0.1, schedule: {warmup: 1}}", &arena);
	train(job, (struct plan_of){ 1, 1, NULL, 0 }, 4, &one);
	CHECK(one.nchunks >= 2 * 3, "%u chunks: three devices have runs of at least two", one.nchunks);
	for (uint32_t d = 2; d <= 3; d++) {
		train(job, (struct plan_of){ d, d, NULL, 0 }, 4, &other);
		equal(&one, &other, d == 2 ? "2 devices" : "3 devices");
	}
	hd_arena_finish(&arena);
}

static void another_seed_gives_other_bits(void **state)
{
	struct hd_arena arena;
	struct outcome one, other;

	(void)state;
	hd_arena_init(&arena, 0);
	struct hd_job *job = job_of(mlp, 26, 13, "}", &arena);
	train(job, (struct plan_of){ 2, 1, NULL, 0 }, 3, &one);
	job->value[HD_JOB_SEED].i++;
	train(job, (struct plan_of){ 2, 1, NULL, 0 }, 3, &other);
	assert_false(hd_hash_same(one.digest, other.digest));
	assert_true(one.loss[0] != other.loss[0]);
	hd_arena_finish(&arena);
}

/* Known states after four steps: what every build (release, debug, sanitized, of any compiler)
 * must come to on any machine. A row changes only with the mathematics of a job, on purpose. */
static const struct { const char *name, *model, *digest; } golden[] = {
	{ "mlp",   mlp,   "e9fd66cff78780f3b7a7acd50eaaf304" },
	{ "lenet", lenet, "efff91ec38f3d71a9172d41b749e8378" },
	{ "gpt",   gpt,   "6a64eb90f798bac8a4b0b92f403aa0d7" },
	{ "llama", llama, "5b0c8c0a3721d86f6a6388647baa1b51" },
	{ "bert",  bert,  "e0f5696ea75d3c8f20a9274886143dbe" },
	{ "bert cls", cls, "950cc19aa1864e505ab82be573c86f94" },
	{ "lstm",  lstm,  "f472d811869997ff72f311482558832e" },
	{ "gru",   gru,   "0999389c698edde88d9d2f2c5f59918f" },
	{ "resnet18", resnet, "f1d9d02cd2eb2ef8bd2f81a93004b01c" },
	{ "inception", inception, "41913d590102b4c2e75ebc7bf3cad105" },
};

static void every_build_comes_to_the_known_states(void **state)
{
	uint32_t others = 0;

	(void)state;
	for (size_t m = 0; m < sizeof golden / sizeof *golden; m++) {
		struct hd_arena arena;
		struct outcome out;
		char hex[HD_HASH_HEX];
		hd_arena_init(&arena, 0);
		train(job_of(golden[m].model, 26, 13, "}\noptim: {kind: adamw, schedule: {warmup: 2}}",
			&arena), (struct plan_of){ 2, 2, NULL, 0 }, 4, &out);
		hd_hash_hex(out.digest, hex);
		if (strcmp(hex, golden[m].digest) != 0) {
			print_message("%s: %s, known is %s\n", golden[m].name, hex, golden[m].digest);
			others++;
		}
		hd_arena_finish(&arena);
	}
	assert_int_equal(others, 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_number_of_devices_and_threads_gives_the_bits_of_one),
		cmocka_unit_test(any_map_gives_the_bits_of_one),
		cmocka_unit_test(transformed_samples_give_the_bits_of_one_device),
		cmocka_unit_test(a_tensor_that_several_devices_own_has_one_norm),
		cmocka_unit_test(runs_of_several_chunks_give_the_bits_of_one_device),
		cmocka_unit_test(another_seed_gives_other_bits),
		cmocka_unit_test(every_build_comes_to_the_known_states),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
