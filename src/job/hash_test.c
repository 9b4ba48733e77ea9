#include "job/job.h"

#include <string.h>

#include "job/int.h"
#include "job/testing.h"
#include "tests/check.h"

/* Written down once: a change of this number is a change of the format of the hash, and every
 * checkpoint that exists would be refused. */
static void the_hash_of_a_job_is_what_it_was(void **state)
{
	static const char want[] =
		"{\"batch\":{\"global\":64,\"last\":\"ragged\",\"normalize\":\"auto\",\"slices\":1,"
		"\"virtual_nodes\":16},"
		"\"data\":{\"augment\":[],\"count\":0,\"kind\":\"synthetic\",\"order\":\"shuffle\","
		"\"split\":{\"train\":0.9,\"valid\":0.1}},"
		"\"job\":{\"epochs\":\"none\",\"kernels\":\"auto\",\"reduction\":\"canonical\",\"seed\":0,"
		"\"steps\":10},"
		"\"model\":{\"args\":{\"act\":\"relu\",\"classes\":10,\"hidden\":[1024,1024],"
		"\"input\":[1,28,28]},\"bn\":\"ghost\","
		"\"loss\":\"cross-entropy\",\"precision\":\"f32\",\"shards\":1,\"use\":\"builtin:mlp\","
		"\"weights\":\"none\"},"
		"\"optim\":{\"betas\":[0.9,0.999],\"clip\":1,\"cuts\":\"none\",\"eps\":1e-08,"
		"\"kind\":\"adamw\",\"lr\":0.0003,\"momentum\":0.9,"
		"\"on_nonfinite\":\"stop\",\"schedule\":{\"every\":1000,\"factor\":0.1,\"floor\":0.1,"
		"\"kind\":\"cosine\",\"warmup\":100},"
		"\"update\":\"flush\",\"weight_decay\":0.01}}";
	char hex[HD_HASH_HEX];

	(void)state;
	/* the default was 100 when this was written down */
	must(SMALLEST "optim: {schedule: {warmup: 100}}\n");
	assert_string_equal(canonical_of(&job), want);
	hd_hash_hex(job.hash, hex);
	assert_string_equal(hex, "f96ad6d3a2928ab36d309251d2fec42a");
}

#define DATA(seed, more) "job: {steps: 1000, seed: " seed "}\nmodel: {use: builtin:mlp}\ndata: {kind: " \
	"npy, path: d" more "}\nbatch: {global: 64}\n"

/* The text that a build without `key` left of the job: every key, but that one. */
static const char *without(const char *text, const char *key)
{
	char *copy = hd_arena_text(&arena, text, strlen(text)), *at = strstr(copy, key);

	CHECK(at, "no %s in %s", key, text);
	size_t len = strcspn(at, ",}") + (at[strcspn(at, ",}")] == ',');
	memmove(at, at + len, strlen(at + len) + 1);
	return copy;
}

/* A split that does not follow the seed is another result, and hashed; the one that runs had before the
 * key is not. */
static void the_split_has_a_key_of_its_own_and_old_runs_keep_theirs(void **state)
{
	struct hd_hash by_seed;

	(void)state;
	must(DATA("3", ", split_seed: auto"));
	by_seed = job.hash;
	assert_int_equal(hd_job_split_seed(&job), 3);
	assert_null(strstr(canonical_of(&job), "split_seed"));
	must(DATA("3", ", split_seed: 3"));
	assert_true(hd_hash_same(job.hash, by_seed));
	must(DATA("3", ""));
	assert_int_equal(hd_job_split_seed(&job), 0);
	CHECK(strstr(canonical_of(&job), "\"split_seed\":0"), "%s", canonical_of(&job));
	assert_false(hd_hash_same(job.hash, by_seed));
	/* the job.resolved.json of an earlier build */
	must(without(json_of(&job), "\"split_seed\":"));
	assert_int_equal(hd_job_split_seed(&job), 3);
	assert_true(hd_hash_same(job.hash, by_seed));
	must(json_of(&job));
	assert_int_equal(hd_job_split_seed(&job), 3);
	must(DATA("0", ""));
	assert_null(strstr(canonical_of(&job), "split_seed"));       /* the same as ever */
	must(DATA("3", ", split: {train: 1, valid: 0}"));
	assert_null(strstr(canonical_of(&job), "split_seed"));       /* it parts nothing */
	must("job: {steps: 1, seed: 3}\nmodel: {use: builtin:gpt}\ndata: {kind: text}\nbatch: {global: "
		"64}\n");
	assert_null(strstr(canonical_of(&job), "split_seed"));
	must(without(json_of(&job), "\"split_seed\":"));
	assert_null(strstr(canonical_of(&job), "split_seed"));
}

static void the_hash_does_not_see_how_a_job_was_written(void **state)
{
	static const char *const same[] = {
		"# a comment\nbatch:\n  virtual_nodes: 16\n  global: 64\njob:\n  steps: 10\ndata:\n  kind: "
			"'synthetic'\nmodel:\n  use: builtin:mlp\n",
		"{\"job\":{\"steps\":10},\"model\":{\"use\":\"builtin:mlp\"},"
		"\"data\":{\"kind\":\"synthetic\"},\"batch\":{\"global\":64}}",
		SMALLEST "optim: {lr: 0.0003, weight_decay: 1e-2, schedule: {every: 1k}}\n",
		SMALLEST "log: {level: debug}\ncheckpoint: {keep: 9}\nworkers: {devices: 3}\neval: {every: "
		"0}\n",
		SMALLEST "parallel: {mode: pipeline, planner: ptdp, stages: 4, schedule: interleaved, "
		"chunks: 2, recompute: stage}\n",
		SMALLEST "parallel: {mode: explicit, plan: a.plan, tensor: 1}\n",
	};

	(void)state;
	must(SMALLEST);
	struct hd_hash want = job.hash;
	for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
		must(same[i]);
		CHECK(hd_hash_same(job.hash, want), "%s\n%s", same[i], canonical_of(&job));
	}
}

/* Makes the value another one of its type, whatever the rules say. */
static void change(struct hd_job_value *v)
{
	static const double other[] = { 0.25, 0.5 };
	static const struct hd_job_arg arg[] = { { .name = "another", .text = "1" } };
	static const struct hd_job_call call[] = { { .name = "another" } };
	static const struct hd_job_term term[] = { { .kind = "mse", .of = "logits", .target = "y", .weight =
		1,
		.delta = 1 } };
	static const struct hd_job_group group[] = { { .params = arg, .nparams = 1 } };

	v->is_auto = v->is_none = v->is_standard = false;
	v->i += 12345;
	v->f += 12345;
	v->text = "another";
	v->list = other;
	v->nlist = 2;
	v->arg = arg;
	v->nargs = 1;
	v->call = call;
	v->ncalls = 1;
	v->group = group;
	v->ngroups = 1;
	v->term = term;
	v->nterms = 1;
}

static void the_hash_sees_every_key_that_fixes_the_result_and_no_other(void **state)
{
	(void)state;
	must(SMALLEST);
	const char *before = canonical_of(&job), *all = json_of(&job);
	for (int k = 0; k < HD_JOB_NKEYS; k++) {
		struct hd_job_value kept = job.value[k];
		change(&job.value[k]);
		CHECK((strcmp(before, canonical_of(&job)) != 0) == (hd_job_keys[k].result != 0), "%s.%s",
			hd_job_keys[k].table, hd_job_keys[k].key);
		CHECK(strcmp(all, json_of(&job)) != 0, "%s.%s is not printed", hd_job_keys[k].table,
			hd_job_keys[k].key);
		job.value[k] = kept;
	}
	assert_string_equal(before, canonical_of(&job));
}

/* The content of the file is joined to the hash by its reader (engine/task.h). */
static void the_hash_says_that_there_are_weights_and_not_where(void **state)
{
	static const char *const jobs[] = {
		SMALLEST,
		"job: {steps: 10}\nmodel: {use: builtin:mlp, weights: here/a.safetensors}\ndata: {kind: "
		"synthetic}\nbatch: {global: 64}\n",
		"job: {steps: 10}\nmodel: {use: builtin:mlp, weights: there/b}\ndata: {kind: "
		"synthetic}\nbatch: {global: 64}\n",
		"job: {steps: 10}\nmodel: {use: builtin:mlp, weights: there/b, weights_skip: "
		"[fc3.*]}\ndata: {kind: synthetic}\nbatch: {global: 64}\n",
	};
	struct hd_hash hash[4];

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		must(jobs[i]);
		hash[i] = job.hash;
	}
	CHECK(!hd_hash_same(hash[0], hash[1]), "with and without weights");
	CHECK(hd_hash_same(hash[1], hash[2]), "two paths");
	CHECK(!hd_hash_same(hash[2], hash[3]), "a part that is skipped");
}

static void a_printed_job_parses_to_the_same_job(void **state)
{
	static const char *const jobs[] = {
		SMALLEST,
		("job: {epochs: 2.5, name: a.b, seed: 9223372036854775807, kernels: library}\nmodel: {use: "
		"builtin:gpt, args: {layers: 2, dropout: 0.1}}\n"
		"data: {kind: text, path: \"a \\\"quoted\\\" <path>\", split: {train: 0.5}}\nbatch: "
		"{global: 100, slices: 2, last: wrap, normalize: token}\n"
		"optim: {kind: momentum, lr: 0.1, momentum: 0.8, clip: 0, schedule: {kind: step, every: 7, "
		"factor: 0.5}}\n"
		"eval: {target: 1.5, metric: perplexity}\nworkers: {memory: 3 GiB}\ncheckpoint: {every: "
		"1500 ms}\ntrace: {digest: 5}\n"),
		("job: {steps: 1}\nmodel: {use: builtin:mlp, args: {hidden: [7], act: gelu}}\ndata: {kind: "
		"idx}\nbatch: {global: 1}\n"
		"optim: {kind: sgd}\ncheckpoint: {every: 3 steps}\n"),
		"job: {steps: 1}\nmodel: {use: builtin:mlp, weights: dir/w, weights_skip: ['*.bias', "
		"fc3.*]}\ndata: {kind: synthetic}\nbatch: {global: 64}\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof jobs / sizeof jobs[0]; i++) {
		must(jobs[i]);
		const char *once = json_of(&job);
		struct hd_hash hash = job.hash;
		must(once);
		assert_string_equal(json_of(&job), once);
		assert_true(hd_hash_same(job.hash, hash));
	}
}

static void no_key_that_fixes_the_result_names_hardware(void **state)
{
	static const char *const hardware[] = { "workers", "elastic", "checkpoint", "trace", "log", "eval" };

	(void)state;
	for (int k = 0; k < HD_JOB_NKEYS; k++)
		for (size_t i = 0; i < sizeof hardware / sizeof hardware[0]; i++)
			CHECK(!hd_job_keys[k].result || strcmp(hd_job_keys[k].table, hardware[i]) != 0,
				"%s.%s", hd_job_keys[k].table, hd_job_keys[k].key);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_hash_of_a_job_is_what_it_was),
		cmocka_unit_test(the_split_has_a_key_of_its_own_and_old_runs_keep_theirs),
		cmocka_unit_test(the_hash_does_not_see_how_a_job_was_written),
		cmocka_unit_test(the_hash_sees_every_key_that_fixes_the_result_and_no_other),
		cmocka_unit_test(the_hash_says_that_there_are_weights_and_not_where),
		cmocka_unit_test(a_printed_job_parses_to_the_same_job),
		cmocka_unit_test(no_key_that_fixes_the_result_names_hardware),
	};
	return cmocka_run_group_tests(tests, make_arena, drop_arena);
}
