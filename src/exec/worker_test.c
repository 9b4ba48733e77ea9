#include "exec/worker.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "tests/check.h"

/* The great oracle: the undisturbed run on one device of one thread. Everything a plan may
 * choose is varied; digest of the state, loss and metrics must be equal bit for bit. */

static const char mlp[]   = "model: {use: builtin:mlp, args: {hidden: [33, 17]}}\ndata: {kind: synthetic, count: 61}\n";
static const char lenet[] = "model: {use: builtin:lenet}\ndata: {kind: synthetic, count: 61}\n";
static const char gpt[]   = "model: {use: builtin:gpt, args: {layers: 2, width: 32, heads: 2, context: 24, dropout: 0.1}}\n"
	"data: {kind: synthetic, count: 61}\n";

struct plan_of { uint32_t devices, threads; const uint32_t *map; };
struct outcome { struct hd_hash digest; double loss[8], correct[8], gnorm[8]; };

static struct hd_job *job_of(const char *model, uint32_t batch, uint32_t vns, const char *more, struct hd_arena *arena)
{
	struct hd_job *job = hd_arena_take(arena, 1, sizeof *job);
	struct hd_diag diag = { "" };
	char yaml[2048];

	snprintf(yaml, sizeof yaml, "job: {seed: 17, steps: 6}\n%sbatch: {global: %u, virtual_nodes: %u%s\n", model, batch, vns, more);
	CHECK(hd_job_parse(job, "test.yaml", yaml, strlen(yaml), NULL, 0, arena, &diag, NULL) == HD_OK, "%s", diag.text);
	return job;
}

static void train(const struct hd_job *job, struct plan_of how, uint32_t nsteps, struct outcome *out)
{
	struct hd_worker_spec spec = { .kind = "cpu", .ndevices = how.devices, .nthreads = how.threads, .kernels = HD_KERNELS_PORTABLE };
	struct hd_diag diag = { "" };
	struct hd_worker *worker = NULL;
	struct hd_task *task = NULL;
	struct hd_arena arena;
	struct hd_plan plan;
	struct hd_fs fs;

	hd_fs_real(&fs);
	hd_arena_init(&arena, 0);
	CHECK(hd_task_create(&task, job, &fs, &diag) == HD_OK, "%s", diag.text);
	struct hd_plan_job pj = { .nvns = job->nvns, .nchunks = task->layout.nchunks, .nstages = 1, .clips = true };
	CHECK(hd_worker_create(&worker, task, &spec, &diag) == HD_OK, "%s", diag.text);
	enum hd_err err = how.map ? hd_plan_of_map(&plan, &pj, how.devices, how.map, &arena, &diag)
				  : hd_plan_data(&plan, &pj, how.devices, NULL, &arena, &diag);
	CHECK(err == HD_OK, "%s", diag.text);
	CHECK(hd_worker_adopt(worker, &plan, &diag) == HD_OK, "%s", diag.text);
	memset(out, 0, sizeof *out);
	for (uint32_t s = 0; s < nsteps; s++) {
		struct hd_step_record r;
		CHECK(hd_worker_step(worker, true, &r, &diag) == HD_OK, "step %u: %s", s, diag.text);
		out->loss[s] = r.loss_sum;
		out->correct[s] = r.correct;
		out->gnorm[s] = r.gnorm;
		struct hd_hash slow = hd_worker_digest(worker);
		CHECK(hd_hash_same(slow, r.digest), "step %u: the digest taken in the update is not that of the state", s);
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
	static const char *const models[] = { mlp, lenet, gpt };
	static const struct { uint32_t batch, vns; } shapes[] = { { 26, 7 }, { 31, 8 }, { 26, 13 }, { 46, 16 } };
	static const uint32_t devices[] = { 1, 2, 3, 5, 8 };

	(void)state;
	for (size_t m = 0; m < 3; m++)
		for (size_t v = 0; v < 4; v++) {
			struct hd_arena arena;
			struct outcome one, other;
			char what[64];
			hd_arena_init(&arena, 0);
			uint32_t n = shapes[v].vns;
			struct hd_job *job = job_of(models[m], shapes[v].batch, n, "}\noptim: {kind: adamw, schedule: {warmup: 2}}", &arena);
			train(job, (struct plan_of){ 1, 1, NULL }, 4, &one);
			for (size_t d = 0; d < 5; d++) {
				uint32_t threads = 1 + (uint32_t)(d + v + m) % 4;
				snprintf(what, sizeof what, "model %zu, V %u, %u devices x %u threads", m, n, devices[d], threads);
				train(job, (struct plan_of){ devices[d], threads, NULL }, 4, &other);
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
	static const char *const models[] = { mlp, gpt };
	static const char *const optims[] = {
		"}\noptim: {kind: sgd, lr: 0.1}", "}\noptim: {kind: momentum, lr: 0.05, weight_decay: 0.01}", "}\noptim: {kind: nesterov, clip: 0.1}",
		"}\noptim: {kind: adam, clip: 0}", ", slices: 2}",
	};

	(void)state;
	for (size_t m = 0; m < 2; m++)
		for (size_t o = 0; o < sizeof optims / sizeof *optims; o++) {
			struct hd_arena arena;
			struct outcome one, other;
			char what[64];
			hd_arena_init(&arena, 0);
			struct hd_job *job = job_of(models[m], 26, 13, optims[o], &arena);
			train(job, (struct plan_of){ 1, 1, NULL }, 4, &one);
			for (size_t i = 0; i < 4; i++) {
				snprintf(what, sizeof what, "model %zu, optimizer %zu, map %zu", m, o, i);
				train(job, (struct plan_of){ 3, 1, maps[i] }, 4, &other);
				equal(&one, &other, what);
			}
			hd_arena_finish(&arena);
		}
}

static void another_seed_gives_other_bits(void **state)
{
	struct hd_arena arena;
	struct outcome one, other;

	(void)state;
	hd_arena_init(&arena, 0);
	struct hd_job *job = job_of(mlp, 26, 13, "}", &arena);
	train(job, (struct plan_of){ 2, 1, NULL }, 3, &one);
	job->value[HD_JOB_SEED].i++;
	train(job, (struct plan_of){ 2, 1, NULL }, 3, &other);
	assert_false(hd_hash_same(one.digest, other.digest));
	assert_true(one.loss[0] != other.loss[0]);
	hd_arena_finish(&arena);
}

/* Known states after four steps: what every build (release, debug, sanitized, of any compiler)
 * must come to on any machine. A row changes only with the mathematics of a job, on purpose. */
static const struct { const char *name, *model, *digest; } golden[] = {
	{ "mlp",   mlp,   "9ffacce74f7625fa6b495b0f20a38b2c" },
	{ "lenet", lenet, "d520e67d1a6854bb0a81f09f960a01d5" },
	{ "gpt",   gpt,   "08608a78596c8e12d62a9b99368aa740" },
};

static void every_build_comes_to_the_known_states(void **state)
{
	(void)state;
	for (size_t m = 0; m < sizeof golden / sizeof *golden; m++) {
		struct hd_arena arena;
		struct outcome out;
		char hex[HD_HASH_HEX];
		hd_arena_init(&arena, 0);
		train(job_of(golden[m].model, 26, 13, "}\noptim: {kind: adamw, schedule: {warmup: 2}}", &arena), (struct plan_of){ 2, 2, NULL }, 4, &out);
		hd_hash_hex(out.digest, hex);
		CHECK(!strcmp(hex, golden[m].digest), "%s: %s, known is %s", golden[m].name, hex, golden[m].digest);
		hd_arena_finish(&arena);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_number_of_devices_and_threads_gives_the_bits_of_one),
		cmocka_unit_test(any_map_gives_the_bits_of_one),
		cmocka_unit_test(another_seed_gives_other_bits),
		cmocka_unit_test(every_build_comes_to_the_known_states),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
