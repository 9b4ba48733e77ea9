#include "job/job.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/yaml.h"
#include "job/int.h"
#include "job/testing.h"
#include "tests/check.h"

static void the_smallest_job_gets_all_defaults(void **state)
{
	(void)state;
	must(SMALLEST);
	assert_int_equal(job.batch, 64);
	assert_int_equal(job.nvns, 16);
	assert_int_equal(job.per_vn, 4);
	assert_int_equal(hd_job_int(&job, HD_JOB_VNS), 16);
	assert_int_equal(hd_job_int(&job, HD_JOB_STEPS), 10);
	assert_true(job.value[HD_JOB_EPOCHS].is_none);
	assert_string_equal(hd_job_text(&job, HD_JOB_OPTIM), "adamw");
	assert_int_equal(hd_job_int(&job, HD_JOB_OPTIM), 4);
	assert_true(hd_job_num(&job, HD_JOB_LR) == 3e-4);
	assert_true(hd_job_num(&job, HD_JOB_WEIGHT_DECAY) == 0.01);
	assert_true(job.value[HD_JOB_BETAS].list[1] == 0.999);
	assert_true(job.value[HD_JOB_SPLIT].list[0] == 0.9 && job.value[HD_JOB_SPLIT].list[1] == 0.1);
	assert_int_equal(hd_job_int(&job, HD_JOB_CKPT_EVERY), 60 * INT64_C(1000000000));
	assert_false(job.value[HD_JOB_CKPT_EVERY].every_steps);
	assert_true(job.value[HD_JOB_MEMORY].is_auto && job.value[HD_JOB_DIGEST].is_auto &&
		job.value[HD_JOB_DATA_PATH].is_none);
	assert_int_equal(hd_job_int(&job, HD_JOB_WARMUP), 1);
	assert_int_equal(hd_job_split_seed(&job), 0);
	assert_string_equal(warnings.at, "");
}

#define GRAPH4 "job: {steps: 10}\nmodel: {use: builtin:gcn, args: {input: 9, classes: 3, slots: 4}}\n" \
	"data: {kind: graph, path: g, order: sequential}\nbatch: {global: 50, virtual_nodes: 4}\n"

/* One word of -s or the environment changes how a run goes on; NULL: it is a job. */
static void a_word_said_later_lets_keys_of_functions_rest(void **state)
{
	static const struct { const char *functions; struct hd_job_set set[2]; const char *refusal; }
		rows[] = {
		{ "kind: pool, max: 4, budget_per_hour: 1", { { "functions.size", "2", HD_FROM_SET } }, NULL },
		{ "kind: pool, min: 1", { { "functions.size", "2", HD_FROM_ENV } }, NULL },
		{ "kind: none, size: 2, max: 3", { { 0 } }, NULL },
		{ "kind: pool, max: 3", { { "functions.kind", "none", HD_FROM_SET },
			{ "functions.size", "2", HD_FROM_SET } }, NULL },
		{ "kind: lambda, endpoint: 'https://a.b', listen: '1.2.3.4:0', name: f",
			{ { "functions.kind", "pool", HD_FROM_SET } }, NULL },
		{ "kind: lambda, endpoint: 'https://a.b'", { { "functions.kind", "pool", HD_FROM_SET } }, NULL },
		{ "price_file: '2021'", { { 0 } }, NULL },
		{ "size: auto", { { 0 } }, NULL },
		{ "kind: pool, size: 2", { { "functions.max", "3", HD_FROM_SET } },
			"functions.max has no meaning with functions.size 2 (only with auto); leave one" },
		{ "kind: pool", { { "functions.max", "3", HD_FROM_SET }, { "functions.size", "2", HD_FROM_SET } },
			"functions.max has no meaning with functions.size 2" },
		{ "kind: pool", { { "functions.max", "3", HD_FROM_SET }, { "functions.size", "2", HD_FROM_ENV } },
			"functions.max has no meaning with functions.size 2" },
		{ "kind: none", { { "functions.size", "2", HD_FROM_SET } },
			"functions.size has no meaning without functions.kind; set that to pool, http" },
		{ "price_file: '2021'", { { "functions.size", "2", HD_FROM_ENV } },
			"functions.size has no meaning without functions.kind" },
	};
	char text[600];

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const uint32_t n = (rows[i].set[0].key ? 1u : 0u) + (rows[i].set[1].key ? 1u : 0u);
		snprintf(text, sizeof text, GRAPH4 "functions: {%s}\n", rows[i].functions);
		enum hd_err err = parse_with(text, rows[i].set, n);
		CHECK(rows[i].refusal ? err && strstr(diag.text, rows[i].refusal) : !err, "%zu: %s", i,
			diag.text);
		if (err)
			continue;
		/* what a run keeps: all keys at once, and so once more */
		const char *kept = json_of(&job);
		CHECK(parse(kept) == HD_OK, "%zu, kept: %s", i, diag.text);
		CHECK(!strcmp(json_of(&job), kept), "%zu: %s", i, kept);
	}
	/* what is said over that is meant */
	snprintf(text, sizeof text, GRAPH4 "functions: {kind: pool, size: 2}\n");
	must(text);
	const struct hd_job_set more = { "functions.max", "3", HD_FROM_SET };
	assert_int_not_equal(parse_with(json_of(&job), &more, 1), HD_OK);
}

/* What auto means is said by the kind, and writing it out is the same job; so a resolved job parses again. */
static void what_auto_means_depends_on_the_optimizer(void **state)
{
	static const struct { const char *kind; double beta2, eps, decay; const char *spelt; } kinds[] = {
		{ "sgd",     0.999, 1e-8,  0,    "eps: 1e-8, betas: [0.9, 0.999], weight_decay: 0" },
		{ "adam",    0.999, 1e-8,  0,    "eps: 1e-8, betas: [0.9, 0.999], weight_decay: 0" },
		{ "adamw",   0.999, 1e-8,  0.01, "eps: 1e-8, betas: [0.9, 0.999], weight_decay: 0.01" },
		{ "adagrad", 0.999, 1e-10, 0,    "eps: 1e-10, betas: [0.9, 0.999]" },
		{ "lion",    0.99,  1e-8,  0,    "eps: 1e-8, betas: [0.9, 0.99]" },
		{ "lamb",    0.999, 1e-6,  0.01, "eps: 1e-6, betas: auto, weight_decay: auto" },
	};
	char text[400];

	(void)state;
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		snprintf(text, sizeof text, SMALLEST "optim: {kind: %s}\n", kinds[i].kind);
		must(text);
		CHECK(job.value[HD_JOB_BETAS].list[0] == 0.9 &&
			job.value[HD_JOB_BETAS].list[1] == kinds[i].beta2 &&
			hd_job_num(&job, HD_JOB_EPS) == kinds[i].eps &&
			hd_job_num(&job, HD_JOB_WEIGHT_DECAY) == kinds[i].decay, "%s", kinds[i].kind);
		struct hd_hash hash = job.hash;
		snprintf(text, sizeof text, SMALLEST "optim: {kind: %s, %s}\n", kinds[i].kind,
			kinds[i].spelt);
		must(text);
		CHECK(hd_hash_same(job.hash, hash), "%s", kinds[i].kind);
	}
}

/* Lists of calls: what they hold, their canonical form, and that this form parses to the same job. */
static void transforms_are_names_with_numbers(void **state)
{
	static const char want[] =
		"\"augment\":[\"flip\",{\"crop\":4},{\"normalize\":{\"mean\":[0.5,0.25],\"std\":1}}]";

	(void)state;
	must("job: {steps: 1}\nmodel: {use: builtin:mlp}\nbatch: {global: 8}\ndata:\n  kind: synthetic\n  "
		"augment:\n    - flip\n    - crop: 4\n"
	     "    - normalize: {std: 1.0, mean: [0.50, 25e-2]}\n");
	const struct hd_job_value *v = &job.value[HD_JOB_AUGMENT];
	assert_true(v->ncalls == 3 && v->call[0].nparams == 0 && v->call[1].param->name == NULL &&
		v->call[1].param->at[0] == 4);
	assert_true(v->call[2].nparams == 2 && v->call[2].param[0].n == 2 && !v->call[2].param[1].is_list &&
		v->call[1].line == 8);
	assert_string_equal(v->call[2].param[1].name, "std");
	CHECK(strstr(canonical_of(&job), want), "%s", canonical_of(&job));
	struct hd_hash hash = job.hash;
	must(json_of(&job));
	assert_true(hd_hash_same(job.hash, hash));
	must("job: {steps: 1}\nmodel: {use: builtin:mlp}\nbatch: {global: 8}\ndata:\n  kind: synthetic\n"
	     "  augment: [{crop: 4}, flip, {normalize: {mean: [0.5, 0.25], std: 1}}]\n");
	assert_false(hd_hash_same(job.hash, hash));
}

static void words_stand_in_the_order_of_their_enums(void **state)
{
	(void)state;
	must("job: {steps: 1, kernels: portable, kernels_auto: library, precision: bf16-amx}\n"
		"model: {use: builtin:mlp}\ndata: {kind: synthetic}\nbatch: {global: 8}\n"
	     "optim: {on_nonfinite: skip}\neval: {metric: accuracy}\ncheckpoint: {verify: read-back}\n");
	assert_int_equal(hd_job_int(&job, HD_JOB_KERNELS), HD_JOBKERNELS_PORTABLE);
	assert_int_equal(hd_job_int(&job, HD_JOB_KERNELS_AUTO), HD_JOBAUTO_LIBRARY);
	assert_int_equal(hd_job_int(&job, HD_JOB_PRODUCTS), HD_PRODUCTS_BF16_AMX);
	assert_int_equal(hd_job_int(&job, HD_JOB_ON_NONFINITE), HD_NONFINITE_SKIP);
	assert_int_equal(hd_job_int(&job, HD_JOB_METRIC), HD_METRIC_ACCURACY);
	assert_int_equal(hd_job_int(&job, HD_JOB_CKPT_VERIFY), HD_VERIFY_READ_BACK);
}

static void types_are_the_tables_and_not_yamls(void **state)
{
	(void)state;
	must("job: {name: no, steps: 2k}\nmodel: {use: builtin:mlp}\ndata: {kind: synthetic}\nbatch: "
		"{global: \"64\"}\n"
	     "workers: {devices: 1.10, memory: 256 MiB}\ncheckpoint: {every: 200 steps}\n");
	assert_string_equal(hd_job_text(&job, HD_JOB_NAME), "no");
	assert_string_equal(hd_job_text(&job, HD_JOB_DEVICES), "1.10");
	assert_int_equal(hd_job_int(&job, HD_JOB_STEPS), 2000);
	assert_int_equal(job.batch, 64);
	assert_int_equal(hd_job_int(&job, HD_JOB_MEMORY), 256 << 20);
	assert_true(job.value[HD_JOB_CKPT_EVERY].every_steps);
	assert_int_equal(hd_job_int(&job, HD_JOB_CKPT_EVERY), 200);
	must(SMALLEST "checkpoint: {every: 90s}\n");
	assert_int_equal(hd_job_int(&job, HD_JOB_CKPT_EVERY), 90 * INT64_C(1000000000));
}

static void the_default_of_virtual_nodes_is_the_largest_legal_up_to_sixteen(void **state)
{
	(void)state;
	for (uint64_t batch = 1; batch < 300; batch++) {
		char text[200];
		uint64_t best = 0;
		for (uint64_t v = 1; v <= 16 && v <= batch; v++) {
			uint64_t b = (batch + v - 1) / v;
			best = (v - 1) * b < batch ? v : best;
		}
		snprintf(text, sizeof text,
			"job: {steps: 1}\nmodel: {use: builtin:mlp}\ndata: {kind: synthetic}\nbatch: "
			"{global: %d}\n", (int)batch);
		must(text);
		CHECK(job.nvns == best && job.per_vn == (batch + best - 1) / best, "B=%d: V=%u, want %d",
			(int)batch, job.nvns, (int)best);
		CHECK((strstr(warnings.at, "no multiple") != NULL) == (batch % best != 0), "B=%d: %s",
			(int)batch, warnings.at);
	}
}

#define OF_GRAPH "job: {steps: 10}\nmodel: {use: builtin:mlp}\ndata: {kind: graph}\nbatch: {global: 64, "
#define BATCH_OF(more) OF_GRAPH more "\n"
#define LATE OF_GRAPH "mode: exact, "
#define UNEVEN "job: {steps: 1}\nmodel: {use: builtin:mlp}\ndata: {kind: synthetic}\nbatch: {global: 17}\n"

static void a_warning_says_where_and_what_to_whom_wants_it(void **state)
{
	(void)state;
	must(UNEVEN);
	CHECK(!strcmp(warnings.at,
		"tiny.yaml: batch.global 17 is no multiple of batch.virtual_nodes 9: the last virtual node "
		"is shorter\n"),
		"%s", warnings.at);
	must(BATCH_OF("mode: bounded, virtual_nodes: 4, staleness: 2}"));
	CHECK(!*warnings.at, "%s", warnings.at);
	must(BATCH_OF("mode: bounded, virtual_nodes: 4, staleness: 3}"));
	CHECK(strstr(warnings.at, "batch.staleness is 3: where rows of many edges are so late"), "%s",
		warnings.at);
	assert_int_equal(hd_job_parse(&job, "tiny.yaml", UNEVEN, strlen(UNEVEN), NULL, 0, &arena, &diag,
		NULL), HD_OK);
}

/* A line of a job and what is said about it; the rest of the job is right. */
static const struct { const char *text, *want; } refusals[] = {
	{ "", "tiny.yaml:1:1: " },
	{ "- 1\n", "tiny.yaml:1:1: a job file is a list of tables (job, model, data, ...), not a list" },
	{ "model: {use: builtin:mlp}\n", "tiny.yaml: data.kind is missing (what the files are); it has no default" },
	{ SMALLEST "btch:\n  global: 3\n", "tiny.yaml:5:1: there is no table btch; did you mean batch?" },
	{ SMALLEST "lr: 3\n", "tiny.yaml:5:1: there is no table lr; write optim: {lr: ...}" },
	{ SMALLEST "nonsense: 3\n", "tiny.yaml:5:1: there is no table nonsense (heddle run --new FILE writes all)" },
	{ SMALLEST "optim:\n  lrr: 3\n", "tiny.yaml:6:3: there is no key optim.lrr; did you mean optim.lr?" },
	{ SMALLEST "optim:\n  seed: 3\n", "tiny.yaml:6:3: there is no key optim.seed; did you mean job.seed?" },
	{ SMALLEST "optim:\n  quadratic: 3\n", "tiny.yaml:6:3: there is no key optim.quadratic (heddle run --new FILE writes all)" },
	{ SMALLEST "optim: {schedule: {knd: step}}\n", "tiny.yaml:5:20: there is no key optim.schedule.knd; did you mean optim.schedule.kind?" },
	{ SMALLEST "optim: {schedule: step}\n", "tiny.yaml:5:19: optim.schedule is a table: write its keys below it, each as key: value" },
	{ SMALLEST "optim: {schedule: {knd: step, kind: step}}\n",
	  "tiny.yaml:5:20: there is no key optim.schedule.knd; did you mean optim.schedule.kind?" },
	{ SMALLEST "optim: {lrr: 3, lr: 3}\n", "tiny.yaml:5:9: there is no key optim.lrr; did you mean optim.lr?" },
	{ SMALLEST "optim: {quadrati: 3}\n", "tiny.yaml:5:9: there is no key optim.quadrati (" },
	{ SMALLEST "optim: {schedul: 3}\n", "tiny.yaml:5:9: there is no key optim.schedul" },
	{ SMALLEST "optim: [1]\n", "tiny.yaml:5:8: optim is a table: write its keys below it, each as key: value" },
	{ SMALLEST "optim: []\n", "tiny.yaml:5:8: optim is a table" },
	{ SMALLEST "optim: ''\n", "tiny.yaml:5:8: optim is a table" },
	{ SMALLEST "optim: 3\n", "tiny.yaml:5:8: optim is a table: write its keys below it, each as key: value" },
	{ SMALLEST "elastic: {resilience: auto}\n", "tiny.yaml:5:23: elastic.resilience: auto turns the redundancy of stages (comm.sync: stages) on and off" },
	{ SMALLEST "elastic: {redundancy: eager}\n", "tiny.yaml:5:23: elastic.redundancy: eager holds the state of stages (comm.sync: stages) at another worker too; with comm.sync: allreduce" },
	{ SMALLEST "comm: {sync: stages}\noptim: {update: 2bw}\nelastic: {redundancy: full}\n", "tiny.yaml:7:23: elastic.redundancy: full computes with the parameters of the step alone, and optim.update: 2bw reads earlier ones" },
	{ SMALLEST "comm: {sync: stages}\nparallel: {mode: auto}\nelastic: {redundancy: eager}\n", "tiny.yaml:7:23: elastic.redundancy: eager goes with one stage a device, and parallel.mode: auto may choose otherwise" },
	{ SMALLEST "comm: {settled: tic ranks 5}\n", "tiny.yaml:5:17: comm.settled: \"\": a rank is below the number of buckets" },
	{ SMALLEST "comm: {order: lifo}\n", "tiny.yaml:5:15: comm.order" },
	{ SMALLEST "comm: {primitive: ring}\n", "tiny.yaml:5:19: comm.primitive: \"ring\" is none of auto, direct, halving-doubling" },
	{ SMALLEST "comm: {sync: sharded, primitive: halving-doubling}\n", "tiny.yaml:5:34: comm.primitive: halving-doubling goes with state that every worker holds" },
	{ SMALLEST "comm: {primitive: halving-doubling}\nparallel: {mode: pipeline}\n", "tiny.yaml:5:19: comm.primitive: halving-doubling goes with whole models" },
	{ SMALLEST "comm: {buckets: 0}\n", "tiny.yaml:5:17: comm.buckets" },
	{ SMALLEST "elastic: {redundancy: lazy}\n", "tiny.yaml:5:23: elastic.redundancy: lazy holds the state of stages (comm.sync: stages) at another worker too; with comm.sync: allreduce every worker holds all of the state" },
	{ SMALLEST "comm: {sync: parameter-server, copies: 3}\n", "tiny.yaml:5:40: comm.servers: 2 workers hold no comm.copies: 3 of each part" },
	{ SMALLEST "comm: {sync: sharded}\nelastic: {redundancy: lazy}\n", "tiny.yaml:6:23: elastic.redundancy: lazy holds the state of stages (comm.sync: stages) at another worker too; with comm.sync: sharded comm.copies says" },
	{ SMALLEST "elastic: {pause_max: soon}\n", "tiny.yaml:5:22: elastic.pause_max" },
	{ SMALLEST "notice: {sourc: ec2}\n", "tiny.yaml:5:10: there is no key elastic.notice.sourc; did you mean elastic.notice.source?" },
	{ SMALLEST "notice: ec2\n", "tiny.yaml:5:9: elastic.notice is a table" },
	{ SMALLEST "pause_max: soon\n", "tiny.yaml:5:12: elastic.pause_max" },
	{ SMALLEST "redundancy: by-notice\n", "tiny.yaml:5:13: elastic.resilience: by-notice turns the redundancy of stages (comm.sync: stages) on and off; with comm.sync: allreduce every worker" },
	{ SMALLEST "elastic: {resilience: by-notice}\n", "tiny.yaml:5:23: elastic.resilience: by-notice turns the redundancy" },
	{ SMALLEST "resilience: auto\n", "tiny.yaml:5:13: elastic.resilience: auto turns the redundancy of stages" },
	{ SMALLEST "comm: {sync: stages}\nelastic: {resilience: checkpoint, redundancy: lazy}\n", "tiny.yaml:6:23: elastic.resilience: checkpoint is redundancy none, and elastic.redundancy is lazy: leave one" },
	{ SMALLEST "comm: {sync: stages}\nparallel: {mode: pipeline, replicas: 1}\nresilience: reroute\n", "tiny.yaml:7:13: elastic.resilience: reroute lets peers in other pipelines go on" },
	{ SMALLEST "comm: {sync: stages}\nparallel: {mode: pipeline, replicas: 2}\nresilience: replica:2\n", "tiny.yaml:7:13: elastic.resilience: replica:2 keeps 3 pipelines, and parallel.replicas is 2: write 3 or more" },
	{ SMALLEST "resilience: replica:1\n", "tiny.yaml:5:13: elastic.resilience: replica:1 turns the redundancy of stages" },
	{ SMALLEST "resilience: shadow\n", "tiny.yaml:5:13: elastic.resilience: \"shadow\" is none of given, by-notice, auto, checkpoint, reroute, shadow-lazy, shadow-eager, shadow-full, replica:1, replica:2, replica:3" },
	{ SMALLEST "comm: {sync: stages}\nelastic: {resilience: replica:1, redundancy: lazy}\n", "tiny.yaml:6:23: elastic.resilience: replica:1 is redundancy none, and elastic.redundancy is lazy: leave one" },
	{ SMALLEST "elastic: {redundancy: twice}\n", "tiny.yaml:5:23: elastic.redundancy: \"twice\" is none of none, lazy, eager, full" },
	{ SMALLEST "parallel: {mode: pipelined}\n", "tiny.yaml:5:18: parallel.mode: \"pipelined\" is none of auto, data, pipeline, tensor, explicit, given; did you mean pipeline?" },
	{ SMALLEST "parallel: {mode: explicit}\n", "tiny.yaml:5:18: parallel.mode explicit needs parallel.plan: a plan file" },
	{ SMALLEST "parallel: {plan: a.plan}\n", "tiny.yaml:5:18: parallel.plan has no meaning with parallel.mode given; write mode: explicit" },
	{ SMALLEST "parallel: {mode: data, stages: 2}\n", "tiny.yaml:5:32: parallel.stages has no meaning with parallel.mode data; leave one of them out" },
	{ SMALLEST "parallel: {mode: tensor, schedule: gpipe}\n", "tiny.yaml:5:36: parallel.schedule has no meaning with parallel.mode tensor" },
	{ SMALLEST "parallel: {mode: explicit, plan: a, recompute: stage}\n", "tiny.yaml:5:48: parallel.recompute has no meaning with parallel.mode explicit" },
	{ SMALLEST "parallel: {mode: auto, offload: stage}\n", "tiny.yaml:5:33: parallel.offload has no meaning with parallel.mode auto; leave one of them out" },
	{ SMALLEST "parallel: {recompute: stage, offload: stage}\n", "tiny.yaml:5:39: parallel.offload: stage moves activations to a file, and parallel.recompute: stage keeps none; leave one of them out" },
	{ SMALLEST "parallel: {mode: pipeline, stages: 1}\n", "tiny.yaml:5:36: parallel.stages is 1, which is no pipeline" },
	{ SMALLEST "parallel: {schedule: gpip}\n", "tiny.yaml:5:22: parallel.schedule: there is no schedule \"gpip\"; did you mean gpipe?" },
	{ SMALLEST "parallel: {schedule: 2bw}\n", "tiny.yaml:5:22: parallel.schedule: 2bw delays updates, which is another algorithm: with optim.update: 2bw it is an order of work, and the job says flush" },
	{ SMALLEST "parallel: {schedule: zb-v, chunks: 3}\n", "tiny.yaml:5:36: parallel.chunks is 3; zb-v has 2 to 2 model chunks a device" },
	{ SMALLEST "parallel: {mode: tensor}\n", "tiny.yaml:5:18: parallel.mode tensor shares the shards of an op out, and model.shards is 1" },
	{ SMALLEST "parallel: {tensor: 2}\n", "tiny.yaml:5:20: parallel.tensor is 2, which does not divide model.shards 1" },
	{ SMALLEST "parallel: {copies: '3;1'}\n", "tiny.yaml:5:20: parallel.copies is \"3;1\": write the ranks of each stage with commas between them, as 3,1" },
	{ SMALLEST "parallel: {copies: '3,'}\n", "tiny.yaml:5:20: parallel.copies is \"3,\": write the ranks of each stage with commas between them" },
	{ SMALLEST "parallel: {copies: '3 ,1'}\n", "tiny.yaml:5:20: parallel.copies is \"3 ,1\": write the ranks of each stage with commas between them" },
	{ SMALLEST "parallel: {copies: '3'}\n", "tiny.yaml:5:20: parallel.copies 3 is of one stage: write a number for each of two stages or more, as 3,1; copies of the whole model are parallel.mode: data" },
	{ SMALLEST "parallel: {copies: '2,0'}\n", "tiny.yaml:5:20: parallel.copies 2,0 leaves stage 1 without a rank: write 1 or more in its place" },
	{ SMALLEST "parallel: {copies: '64,1'}\n", "tiny.yaml:5:20: parallel.copies 64,1 asks for more than the 64 ranks that a pipeline has at most: write smaller numbers" },
	{ SMALLEST "parallel: {copies: '4294967294,2'}\n", "tiny.yaml:5:20: parallel.copies 4294967294,2 asks for more than the 64 ranks" },
	{ SMALLEST "parallel: {copies: '1,1,1'}\n", "tiny.yaml:5:20: parallel.copies 1,1,1 gives each stage one rank, as a pipeline without copies has: write parallel.stages: 3 in its place" },
	{ SMALLEST "parallel: {copies: '3,2'}\n", "tiny.yaml:5:20: parallel.copies 3,2 has stages of 3 and of 2 ranks, which cannot take turns since neither number divides the other: write a divisor or a multiple of 3 in place of 2" },
	{ SMALLEST "parallel: {copies: '4,2,3'}\n", "tiny.yaml:5:20: parallel.copies 4,2,3 has stages of 4 and of 3 ranks" },
	{ SMALLEST "parallel: {copies: '3,1', schedule: gpipe}\n", "tiny.yaml:5:20: parallel.copies 3,1 has the order 1f1b-rr, and parallel.schedule is gpipe: leave parallel.schedule out" },
	{ SMALLEST "parallel: {copies: '3,1', stages: 3}\n", "tiny.yaml:5:20: parallel.copies 3,1 is of 2 stages, and parallel.stages is 3: leave parallel.stages out" },
	{ "job: {steps: 10}\nmodel: {use: builtin:mlp, shards: 2}\ndata: {kind: synthetic}\nbatch: {global: 64}\nparallel: {copies: '3,1', tensor: 2}\n", "tiny.yaml:5:20: parallel.copies 3,1 has ranks of one device, and parallel.tensor is 2: leave one of them out" },
	{ SMALLEST "parallel: {copies: '3,1', chunks: 2}\n", "tiny.yaml:5:20: parallel.copies 3,1 has one stage a rank, and parallel.chunks is 2: leave one of them out" },
	{ SMALLEST "workers: {profile: file}\n", "tiny.yaml:5:11: workers.profile is not available in this build; leave it out" },
	{ SMALLEST "optim: {update: custom}\n", "tiny.yaml:5:17: optim.update: custom is not available in this build; use flush, stash, vsync, 2bw" },
	{ SMALLEST "optim: {update: stash}\n", "tiny.yaml:5:17: optim.update stash needs optim.cuts: the delay of a parameter follows from the stages" },
	{ SMALLEST "optim: {update: vsync}\n", "tiny.yaml:5:17: optim.update vsync needs optim.cuts" },
	{ SMALLEST "optim: {update: 2bw, cuts: auto:2}\n", "tiny.yaml:5:28: optim.cuts has no meaning with optim.update 2bw (only with stash|vsync); leave it out" },
	{ SMALLEST "optim: {cuts: auto:2}\n", "tiny.yaml:5:15: optim.cuts has no meaning with optim.update flush" },
	{ "job: {steps: 10}\nmodel: {use: builtin:mlp}\ndata: {kind: synthetic}\nbatch: {global: 64, mode: exact}\n", "tiny.yaml:4:27: batch.mode has no meaning with data.kind synthetic (only with graph)" },
	{ SMALLEST "functions: {kind: pool}\n", "tiny.yaml:5:19: functions.kind pool has no meaning with data.kind synthetic (only with graph)" },
	{ OF_GRAPH "virtual_nodes: 1}\nfunctions: {kind: pool}\n", "tiny.yaml:5:19: functions.kind pool takes work between intervals, and this graph is one: set graph.intervals (batch.virtual_nodes) to 2" },
	{ OF_GRAPH "virtual_nodes: 4}\nfunctions: {kind: http, endpoint: 'https://a.b'}\n", "tiny.yaml:5:35: functions at https://a.b cannot reach a worker at 127.0.0.1: say by functions.listen" },
	{ OF_GRAPH "virtual_nodes: 4}\nfunctions: {kind: pool, endpoint: 'http://127.0.0.1:1'}\n", "tiny.yaml:5:35: functions.endpoint has no meaning with functions.kind pool (only with http|lambda); leave one of them out" },
	{ OF_GRAPH "virtual_nodes: 4}\nfunctions: {kind: pool, listen: '127.0.0.1:1'}\n", "tiny.yaml:5:33: functions.listen has no meaning with functions.kind pool" },
	{ OF_GRAPH "virtual_nodes: 4}\nfunctions: {kind: pool, reports: f}\n", "tiny.yaml:5:34: functions.reports has no meaning with functions.kind pool" },
	{ OF_GRAPH "virtual_nodes: 4}\nfunctions: {kind: http, name: f, endpoint: 'http://127.0.0.1:1'}\n", "tiny.yaml:5:31: functions.name has no meaning with functions.kind http (only with lambda)" },
	{ OF_GRAPH "virtual_nodes: 4}\nfunctions: {kind: pool, size: 2, min: 1}\n", "tiny.yaml:5:39: functions.min has no meaning with functions.size 2 (only with auto)" },
	{ OF_GRAPH "virtual_nodes: 4}\nfunctions: {kind: pool, size: 2, max: 3}\n", "tiny.yaml:5:39: functions.max has no meaning with functions.size 2" },
	{ OF_GRAPH "virtual_nodes: 4}\nfunctions: {kind: pool, size: 2, budget_per_hour: 3}\n", "tiny.yaml:5:51: functions.budget_per_hour has no meaning with functions.size 2" },
	{ OF_GRAPH "virtual_nodes: 4}\nfunctions: {size: 2}\n", "tiny.yaml:5:19: functions.size has no meaning without functions.kind; set that to pool, http or lambda, or leave this out" },
	{ OF_GRAPH "virtual_nodes: 4}\nfunctions: {memory: 128}\n", "tiny.yaml:5:21: functions.memory has no meaning without functions.kind" },
	{ SMALLEST "functions: {max: 2}\n", "tiny.yaml:5:18: functions.max has no meaning without functions.kind" },
	{ LATE "virtual_nodes: 1, cells: 2}\n", "tiny.yaml:4:27: batch.mode exact is for a graph in several intervals, and batch.virtual_nodes is 1" },
	{ LATE "virtual_nodes: 4}\n", "tiny.yaml:4:27: batch.cells is 1: with batch.mode exact rows are late from one cell to another" },
	{ LATE "virtual_nodes: 4, cells: 3}\n", "tiny.yaml:4:59: batch.cells is 3" },
	{ LATE "virtual_nodes: 4, cells: 8}\n", "tiny.yaml:4:59: batch.cells is 8" },
	{ BATCH_OF("mode: bounded, virtual_nodes: 1}"), "tiny.yaml:4:27: batch.mode bounded is for a graph in several intervals" },
	{ BATCH_OF("mode: bounded, virtual_nodes: 4, staleness: 9}"), "tiny.yaml:4:65: batch.staleness is 9: with batch.mode bounded a virtual node may be 8 steps ahead" },
	{ BATCH_OF("mode: replay, replay: r, virtual_nodes: 4, staleness: 9}"), "tiny.yaml:4:75: batch.staleness is 9: with batch.mode replay a virtual node may be 8 steps ahead" },
	{ BATCH_OF("mode: bounded, virtual_nodes: 4, staleness: 1}") "optim: {update: 2bw}\n", "tiny.yaml:4:65: batch.staleness is 1 and optim.update is 2bw" },
	{ BATCH_OF("mode: bounded, virtual_nodes: 4, cells: 2}"), "tiny.yaml:4:61: batch.cells has no meaning with batch.mode bounded (only with exact)" },
	{ BATCH_OF("mode: bounded, virtual_nodes: 4, replay: r}"), "tiny.yaml:4:62: batch.replay has no meaning with batch.mode bounded (only with replay)" },
	{ BATCH_OF("mode: replay, virtual_nodes: 4}"), "tiny.yaml:4:27: batch.mode replay needs batch.replay" },
	{ LATE "virtual_nodes: 4, cells: 2, staleness: 65}\n", "tiny.yaml:4:73: batch.staleness: 65 is not between 0 and 64" },
	{ SMALLEST "optim: {update: stash, cuts: three}\n", "tiny.yaml:5:30: optim.cuts is \"three\"; write auto:N for N stages" },
	{ SMALLEST "optim: {kind: adm}\n", "tiny.yaml:5:15: optim.kind: \"adm\" is none of sgd, momentum, nesterov, adam, adamw, adagrad, lion, lamb; did you mean adam?" },
	{ SMALLEST "optim: {lr: fast}\n", "tiny.yaml:5:13: optim.lr: \"fast\" is not a number" },
	{ SMALLEST "optim: {lr: -1}\n", "tiny.yaml:5:13: optim.lr: -1 is not between 0 and 1000000" },
	{ SMALLEST "optim: {lr: [1]}\n", "tiny.yaml:5:13: optim.lr takes one value, not " },
	{ SMALLEST "optim: {lr: }\n", "tiny.yaml:5:" },
	{ SMALLEST "optim: {betas: 0.9}\n", "tiny.yaml:5:16: optim.betas takes a list: write it as [...]" },
	{ SMALLEST "optim: {betas: [0.9]}\n", "tiny.yaml:5:16: optim.betas takes two numbers below 1, as [0.9, 0.999]" },
	{ SMALLEST "optim: {betas: [0.9, 1]}\n", "tiny.yaml:5:16: optim.betas takes two numbers below 1, as [0.9, 0.999]" },
	{ SMALLEST "optim: {betas: [0.9, x]}\n", "tiny.yaml:5:16: optim.betas: \"x\" is not a number" },
	{ SMALLEST "optim: {betas: [0.9, [1]]}\n", "tiny.yaml:5:16: optim.betas takes numbers, not " },
	{ SMALLEST "optim: {betas: [0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]}\n", "tiny.yaml:5:16: optim.betas takes two numbers below 1, as [0.9, 0.999]" },
	{ SMALLEST "optim: {kind: sgd, momentum: 0.5}\n",
	  "tiny.yaml:5:30: optim.momentum has no meaning with optim.kind sgd (only with momentum|nesterov); "
	  "leave it out" },
	{ SMALLEST "optim: {kind: lion, eps: 0.5}\n", "tiny.yaml:5:26: optim.eps has no meaning with optim.kind lion" },
	{ SMALLEST "optim: {betas: none}\n", "tiny.yaml:5:16: optim.betas takes a list: write it as [...]" },
	{ SMALLEST "optim: {kind: sgd, betas: [0.5, 0.5]}\n", "tiny.yaml:5:27: optim.betas has no meaning with optim.kind sgd" },
	{ SMALLEST "optim: {ema: 0.9}\n", "tiny.yaml:5:14: optim.ema is a table" },
	{ SMALLEST "optim: {ema: {decay: 1}}\n", "tiny.yaml:5:22: optim.ema.decay: " },
	{ SMALLEST "optim: {ema: {every: 2}}\n", "tiny.yaml:5:22: optim.ema.every has no meaning without optim.ema.decay" },
	{ SMALLEST "optim: {ema: {decay: 0.9, every: 0}}\n", "tiny.yaml:5:34: optim.ema.every: " },
	{ SMALLEST "eval: {weights: ema}\n", "tiny.yaml:5:17: eval.weights: ema needs optim.ema.decay" },
	{ SMALLEST "optim: {ema: {decay: 0.9}}\ncomm: {sync: sharded}\neval: {weights: ema}\n",
	  "tiny.yaml:7:17: eval.weights: ema evaluates where all means are" },
	{ SMALLEST "stop: {every: 5}\n", "tiny.yaml:5:15: stop.every has no meaning without stop.patience" },
	{ SMALLEST "stop: {patience: 0}\n", "tiny.yaml:5:18: stop.patience: " },
	{ SMALLEST "stop: {patience: 2, mode: less}\n", "tiny.yaml:5:27: stop.mode: \"less\" is none of" },
	{ SMALLEST "stop: {patience: 2, metric: f1}\n", "tiny.yaml:5:29: stop.metric: \"f1\" is none of" },
	{ SMALLEST "stop: {patience: 2, min_delta: -1}\n", "tiny.yaml:5:32: stop.min_delta: " },
	{ SMALLEST "stop: {patience: 2}\noptim: {update: 2bw}\n", "tiny.yaml:5:18: stop.patience looks between two steps" },
	{ SMALLEST "stop: {patience: 2}\ncomm: {sync: stages}\nparallel: {mode: pipeline}\n",
	  "tiny.yaml:5:18: stop.patience measures where the whole model is" },
	{ SMALLEST "optim: {schedule: {patience: 3}}\n", "tiny.yaml:5:30: optim.schedule.patience has no meaning with optim.schedule.kind cosine" },
	{ SMALLEST "optim: {schedule: {kind: plateau, threshold: 2}}\n", "tiny.yaml:5:46: optim.schedule.threshold: " },
	{ SMALLEST "optim: {schedule: {start: 0.5}}\n", "tiny.yaml:5:27: optim.schedule.start has no meaning with optim.schedule.kind cosine (only with one-cycle)" },
	{ SMALLEST "optim: {schedule: {kind: polynomial, end: 0.5}}\n", "tiny.yaml:5:43: optim.schedule.end has no meaning with optim.schedule.kind polynomial" },
	{ SMALLEST "optim: {schedule: {kind: one-cycle, floor: 0.5}}\n", "tiny.yaml:5:44: optim.schedule.floor has no meaning with optim.schedule.kind one-cycle" },
	{ SMALLEST "optim: {schedule: {kind: linear, power: 2}}\n", "tiny.yaml:5:41: optim.schedule.power has no meaning with optim.schedule.kind linear" },
	{ SMALLEST "optim: {schedule: {every: 7}}\n", "tiny.yaml:5:27: optim.schedule.every has no meaning with optim.schedule.kind cosine" },
	{ SMALLEST "elastic: {notice: {source: ec3}}\n",
	  "tiny.yaml:5:28: elastic.notice.source is \"ec3\"; there are auto, env, none, hand, slurm, k8s," },
	{ SMALLEST "elastic: {notice: {base: 'https://1.2.3.4'}}\n",
	  "tiny.yaml:5:26: elastic.notice.base is \"https://1.2.3.4\": it does not begin with http://" },
	{ SMALLEST "elastic: {notice: {grace: 0 s}}\n", "tiny.yaml:5:27: elastic.notice.grace: " },
	{ SMALLEST "checkpoint: {every: 0 s}\n", "tiny.yaml:5:21: checkpoint.every: 0 is too often" },
	{ SMALLEST "workers: {zones: [a, 'b c']}\n", "tiny.yaml:5:18: workers.zones: \"b c\": use 1 to 32 of A-Z a-z 0-9 . _ -, beginning with none of . -" },
	{ SMALLEST "workers: {zones: [a23456789012345678901234567890123]}\n", "tiny.yaml:5:18: workers.zones: \"a23456789012345678901234567890123\": use 1 to 32" },
	{ SMALLEST "checkpoint: {every: 200}\n", "tiny.yaml:5:21: checkpoint.every: \"200\" is not a duration" },
	{ SMALLEST "checkpoint: {every: many steps}\n", "tiny.yaml:5:21: checkpoint.every: \"many\" is not an integer" },
	{ SMALLEST "checkpoint: {every: steps}\n", "tiny.yaml:5:21: checkpoint.every: \"steps\" is no number of steps; write it as 200 steps" },
	{ SMALLEST "checkpoint: {dir: s3://x}\n", "tiny.yaml:5:19: checkpoint.dir: addresses are not available in this build" },
	{ SMALLEST "checkpoint: {dir: ../x}\n", "tiny.yaml:5:19: checkpoint.dir is \"../x\"; write a folder inside the run directory or an absolute path" },
	{ SMALLEST "checkpoint: {dir: a/..}\n", "tiny.yaml:5:19: checkpoint.dir is \"a/..\"" },
	{ SMALLEST "checkpoint: {dir: /a/../b}\n", "tiny.yaml:5:19: checkpoint.dir is \"/a/../b\"" },
	{ SMALLEST "workers: {memory: 3 GB}\n", "tiny.yaml:5:19: workers.memory: \"3GB\" is not a size" },
	{ SMALLEST "workers: {memory: 0}\n", "tiny.yaml:5:19: workers.memory: 0 is less than 1" },
	{ "job: {steps: 1, epochs: 2}\nmodel: {use: builtin:mlp}\ndata: {kind: synthetic}\nbatch: {global: 64}\n",
	  "tiny.yaml:1:14: job.steps and job.epochs exclude each other; leave one out" },
	{ "model: {use: builtin:mlp}\ndata: {kind: synthetic}\nbatch: {global: 64}\n", "tiny.yaml: job.steps or job.epochs is missing" },
	{ "job: {steps: 1, name: a/b}\nmodel: {use: builtin:mlp}\ndata: {kind: synthetic}\nbatch: {global: 64}\n", "tiny.yaml:1:23: job.name is \"a/b\"" },
	{ "job: {steps: 0}\nmodel: {use: builtin:mlp}\ndata: {kind: synthetic}\nbatch: {global: 64}\n", "tiny.yaml:1:14: job.steps: 0 is not between 1 and" },
	{ "job: {steps: 1, reduction: fast}\n", "tiny.yaml:1:28: job.reduction: fast is not available in this build; use canonical" },
	{ "job: {steps: 1}\nmodel: {use: builtin:mlp}\ndata: {kind: synthetic}\nbatch:\n  global: 64\n\n  virtual_nodes:  96\n",
	  "tiny.yaml:7:19: batch.virtual_nodes is 96, more than batch.global 64; use at most 64" },
	{ "job: {steps: 1}\nmodel: {use: builtin:mlp}\ndata: {kind: synthetic}\nbatch: {global: 100, virtual_nodes: 16}\n",
	  "tiny.yaml:4:37: batch.virtual_nodes 16 of 7 samples each leave the last one of batch.global 100 "
	  "empty; use at most 15" },
	{ "job: {steps: 1}\nmodel: {use: builtin:mlp}\ndata: {kind: synthetic}\nbatch: {global: 64, slices: 5}\n",
	  "tiny.yaml:4:29: batch.slices is 5, a virtual node has 4 samples; use at most 4" },
	{ "job: {steps: 1}\nmodel: {use: builtin:mlp, shards: 0}\ndata: {kind: synthetic}\nbatch: {global: 64}\n",
	  "tiny.yaml:2:35: model.shards: 0 is not between 1 and" },
	{ "job: {steps: 1}\nmodel: {use: builtin:mlp, sequence_shards: true}\ndata: {kind: synthetic}\nbatch: {global: 64}\n",
	  "tiny.yaml:2:44: model.sequence_shards splits in model.shards parts, and that is 1" },
	{ "job: {steps: 1}\nmodel: {use: builtin:mlp, shards: 2, sequence_shards: yes}\n", "tiny.yaml:2:55: model.sequence_shards: \"yes\" is none of false, true" },
	{ "job: {steps: 1}\nmodel: {use: builtin:mlp, loss: hinge}\n", "tiny.yaml:2:33: model.loss: \"hinge\" is none of cross-entropy, mse, none, soft" },
	{ "job: {steps: 1}\nmodel: {use: builtin:mlp, lora: {rank: 2}}\ndata: {kind: synthetic}\nbatch: {global: 64}\n",
	  "tiny.yaml:2:40: model.lora.rank needs model.lora.targets" },
	{ "job: {steps: 1}\nmodel: {use: builtin:mlp, lora: {alpha: 2}}\ndata: {kind: synthetic}\nbatch: {global: 64}\n",
	  "tiny.yaml:2:41: model.lora.alpha has no meaning without model.lora.rank" },
	{ "job: {steps: 1}\nmodel: {use: builtin:mlp, lora: {train: [a]}}\ndata: {kind: synthetic}\nbatch: {global: 64}\n",
	  "tiny.yaml:2:41: model.lora.train has no meaning without model.lora.rank" },
	{ "job: {steps: 1}\nmodel: {use: builtin:mlp}\ndata: {kind: synthetic, split_seed: 4}\nbatch: {global: 64}\n",
	  "tiny.yaml:3:37: data.split_seed has no meaning with data.kind synthetic" },
	{ "job: {steps: 1}\nmodel: {use: builtin:mlp}\ndata: {kind: synthetic}\nbatch: {global: 64}\neval: {metric: accuracy, target: 60}\n",
	  "tiny.yaml:5:34: eval.target is 60, but eval.metric accuracy is a share from 0 to 1" },
	{ "job: {steps: 1}\nmodel: {use: builtin:mlp}\ndata: {kind: synthetic}\nbatch: {global: 64}\neval: {metric: perplexity, target: 0.5}\n",
	  "tiny.yaml:5:36: eval.target is 0.5, but eval.metric perplexity is a number from 1 on" },
	{ "job: {steps: 1}\nmodel: {use: builtin:mlp, loss: mse}\ndata: {kind: synthetic}\nbatch: {global: 64}\neval: {metric: accuracy}\n",
	  "tiny.yaml:5:16: eval.metric is accuracy, which a model with model.loss mse does not have" },
#define WITH(loss, more) "job: {steps: 1}\nmodel: {use: builtin:mlp, loss: " loss "}\n" \
	"data: {kind: synthetic}\nbatch: {global: 64}\n" more
	{ WITH("mse", "loss: {smoothing: 0.1}\n"), "tiny.yaml:5:19: loss.smoothing has no meaning with model.loss mse" },
	{ WITH("cross-entropy", "loss: {smoothing: -0.1}\n"), "tiny.yaml:5:19: loss.smoothing: " },
	{ WITH("cross-entropy", "loss: {smoothing: 1.5}\n"), "tiny.yaml:5:19: loss.smoothing: " },
	{ WITH("bce", "loss: {class_weights: [1, 2]}\n"), "tiny.yaml:5:23: loss.class_weights has no meaning with model.loss bce" },
	{ WITH("cross-entropy", "loss: {class_weights: [1, -2]}\n"), "tiny.yaml:5:23: loss.class_weights: " },
	{ WITH("cross-entropy", "loss: {class_weights: [0, 0]}\n"), "tiny.yaml:5:23: loss.class_weights are all 0: nothing would be learnt" },
	{ WITH("cross-entropy", "loss: {pos_weight: [2]}\n"), "tiny.yaml:5:20: loss.pos_weight has no meaning with model.loss cross-entropy" },
	{ WITH("huber", "loss: {delta: 0}\n"), "tiny.yaml:5:15: loss.delta: " },
	{ WITH("l1", "loss: {ignore: -100}\n"), "tiny.yaml:5:16: loss.ignore has no meaning with model.loss l1" },
	{ WITH("cross-entropy", "loss: {class_weights: [1, 1e-300]}\n"), "tiny.yaml:5:23: loss.class_weights: 1e-300 has no place in 32-bit floats" },
	{ WITH("bce", "loss: {pos_weight: [1e-39]}\n"), "tiny.yaml:5:20: loss.pos_weight: 1e-39 has no place in 32-bit floats" },
	{ WITH("cross-entropy", "loss: {smoothing: 1e-300}\n"), "tiny.yaml:5:19: loss.smoothing: 1e-300 has no place" },
	{ WITH("mse", "loss: [{kind: mse}, {kind: l1, weight: 1e-300}]\n"), "tiny.yaml:5:40: loss: weight takes one number: 1e-300 has no place" },
	{ WITH("mse", "optim: {eps: 1e-46}\n"), "tiny.yaml:5:14: optim.eps: 1e-46 has no place" },
	{ WITH("mse", "optim: {lr: 1e-300}\n"), "tiny.yaml:5:13: optim.lr: 1e-300 has no place" },
	{ WITH("mse", "optim: {betas: [0.9, 0.99999999]}\n"), "tiny.yaml:5:16: optim.betas takes two numbers below 1" },
	{ WITH("mse", "optim: {groups: [{params: [a], decay: 1e-300}]}\n"), "tiny.yaml:5:39: optim.groups: decay takes one number: 1e-300 has no place" },
	{ WITH("cross-entropy", "loss: {sum: [{kind: cross-entropy}, {kind: mse}], ignore: -100}\n"), "tiny.yaml:5:59: loss.ignore is of a single loss, and in a sum of losses no term has it: leave it out, or give one loss" },
	{ WITH("cross-entropy", "loss: {sum: [{kind: cross-entropy}, {kind: mse}], smoothing: 0.1}\n"), "tiny.yaml:5:62: loss.smoothing is of a single loss; with several write it into its term, as {kind: ..., smoothing: 0.1}" },
	{ "data: {augment: [{brightness: 1e-300}]}\n", "tiny.yaml:1:17: data.augment: 1e-300 has no place" },
	{ "job: {steps: 1}\nmodel: {use: builtin:gpt, args: {dropout: 1e-300}}\ndata: {kind: synthetic}\nbatch: {global: 64}\n",
	  "tiny.yaml:2:33: model.args: argument 'dropout': 1e-300 has no place" },
	{ WITH("hinge", ""), "tiny.yaml:2:33: model.loss" },
	{ WITH("cross-entropy", "eval: {metrics: [f1-makro]}\n"), "tiny.yaml:5:17: eval.metrics: there is no \"f1-makro\"; did you mean 'f1-macro'?" },
	{ WITH("cross-entropy", "eval: {metrics: [r2]}\n"), "tiny.yaml:5:17: eval.metrics is r2, which a model with model.loss cross-entropy does not have" },
	{ WITH("huber", "checkpoint: {best: val_auroc}\n"), "tiny.yaml:5:20: checkpoint.best is val_auroc, which a model with model.loss huber does not have; use val_loss" },
	{ WITH("bce", "stop: {patience: 2, metric: val_mae}\n"), "tiny.yaml:5:18: stop.metric is val_mae, which a model with model.loss bce does not have" },
	{ WITH("cross-entropy", "eval: {metric: f1-macro, target: 80}\n"), "tiny.yaml:5:34: eval.target is 80, but eval.metric f1-macro is a share" },
#undef WITH
	{ "job: {steps: 1}\nmodel: {use: builtin:mlp, weights: 's3://w'}\ndata: {kind: synthetic}\nbatch: {global: 64}\n",
	  "tiny.yaml:2:36: model.weights: addresses are not available in this build" },
	{ "job: {steps: 1}\nmodel: {use: builtin:mlp, weights_skip: [fc2.bias]}\ndata: {kind: synthetic}\nbatch: {global: 64}\n",
	  "tiny.yaml:2:41: model.weights_skip has no meaning without model.weights" },
	{ "job: {steps: 1}\nmodel: {use: builtin:mlp, weights: w, weights_skip: fc2.bias}\n", "tiny.yaml:2:53: model.weights_skip takes a list: write it as [...]" },
	{ "job: {steps: 1}\nmodel: {use: builtin:mlp, weights: w, weights_skip: [a, [b]]}\n", "tiny.yaml:2:53: model.weights_skip takes texts" },
	{ "job: {steps: 1}\nmodel: {use: builtin:mpl}\ndata: {kind: synthetic}\nbatch: {global: 64}\n", "tiny.yaml:2:14: model.use: there is no model 'mpl'" },
	{ "job: {steps: 1}\nmodel: {use: mlp}\ndata: {kind: synthetic}\nbatch: {global: 64}\n", "tiny.yaml:2:14: model.use is \"mlp\"; write builtin:NAME" },
	{ "job: {steps: 1}\nmodel: {use: \"onnx:\"}\ndata: {kind: synthetic}\nbatch: {global: 64}\n", "tiny.yaml:2:14: model.use is \"onnx:\"" },
	{ "job: {steps: 1}\nmodel: {use: builtin:mlp, loss: none}\ndata: {kind: synthetic}\nbatch: {global: 64}\n", "tiny.yaml:2:33: model.loss is none, but" },
	{ "job: {steps: 1}\nmodel: {use: graph:a, loss: mse}\ndata: {kind: synthetic}\nbatch: {global: 64}\n", "tiny.yaml:2:29: model.loss is mse, but a graph file" },
	{ "job: {steps: 1}\nmodel: {use: graph:a, args: {a: 1}}\ndata: {kind: synthetic}\nbatch: {global: 64}\n", "tiny.yaml:2:29: model.args belong to built-in" },
	{ "job: {steps: 1}\nmodel: {use: builtin:gpt, args: {layrs: 1}}\ndata: {kind: synthetic}\nbatch: {global: 64}\n",
	  "tiny.yaml:2:33: model.args: model 'gpt' has no argument 'layrs'; did you mean 'layers'?" },
	{ "job: {steps: 1}\nmodel: {use: builtin:gpt, args: {layers: {a: 1}}}\n", "tiny.yaml:2:33: model.args: layers takes one value or a flat list" },
	{ "job: {steps: 1}\nmodel: {use: builtin:gpt, args: 3}\n", "tiny.yaml:2:33: model.args takes values by name: write {name: value, ...}" },
	{ "data: {split: [1]}\n", "tiny.yaml:1:15: data.split takes shares by name: write {train: 0.9, valid: 0.1}" },
	{ "data: {split: {train: 2}}\n", "tiny.yaml:1:15: data.split: 2 is not between 0 and 1" },
	{ "data: {split: {trian: 1}}\n", "tiny.yaml:1:15: data.split has a name that is not in train|valid" },
	{ "data: {augment: flip}\n", "tiny.yaml:1:17: data.augment takes a list: write it as [...]" },
	{ "data: {augment: [{crop: 4, flip: 1}]}\n", "tiny.yaml:1:17: data.augment takes names, or a name and its numbers: [flip, {crop: 4}]" },
	{ "data: {augment: [{crop: four}]}\n", "tiny.yaml:1:17: data.augment: \"four\" is not a number" },
	{ "data: {augment: [{crop: []}]}\n", "tiny.yaml:1:17: data.augment: a list of numbers has 1 to 1024 of them" },
	{ "data: {augment: [{normalize: {}}]}\n", "tiny.yaml:1:17: data.augment: normalize has 1 to 8 parameters" },
	{ "data: {kind: tar}\n", "tiny.yaml:1:14: data.kind: tar is not available in this build; use idx, cifar, csv, jsonl, parquet, text, tokens, npy, images, webdataset, records, graph, synthetic" },
	{ "job: {steps: 1}\nmodel: {use: builtin:mlp}\ndata: {kind: synthetic, split: {valid: 0.5}}\nbatch: {global: 64}\n",
	  "tiny.yaml:3:32: data.split leaves nothing to train on" },
	{ "job: {steps: 1}\nmodel: {use: builtin:mlp}\ndata: {kind: synthetic, split: {train: 0.9, valid: 0.5}}\nbatch: {global: 64}\n",
	  "tiny.yaml:3:32: data.split adds up to 1.4" },
	{ "job: {steps: 1}\nmodel: {use: builtin:mlp}\ndata: {kind: text, count: 5}\nbatch: {global: 64}\n",
	  "tiny.yaml:3:27: data.count has no meaning with data.kind text (only with synthetic); leave it "
	  "out" },
	{ "job: {steps: 1}\nmodel: {use: builtin:mlp}\ndata: {kind: idx, label: fine}\nbatch: {global: 64}\n",
	  "tiny.yaml:3:26: data.label has no meaning with data.kind idx (only with "
	  "csv|jsonl|parquet|cifar|images); leave it out" },
	{ "job: {steps: 1}\nmodel: {use: builtin:mlp}\ndata: {kind: npy, columns: [a]}\nbatch: {global: 64}\n",
	  "tiny.yaml:3:28: data.columns has no meaning with data.kind npy (only with "
	  "csv|jsonl|parquet|images); leave it out" },
	{ "job: {steps: 1}\nmodel: {use: builtin:mlp}\ndata: {kind: text, cache: s3://a/b}\nbatch: {global: 64}\n",
	  "tiny.yaml:3:27: data.cache: addresses are not available in this build; name a file or folder" },
};

static void every_refusal_says_where_what_and_what_to_do(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
		job.nvns = 12345;
		CHECK(parse(refusals[i].text) == HD_E_INVAL, "accepted: %s", refusals[i].text);
		CHECK(strncmp(diag.text, refusals[i].want, strlen(refusals[i].want)) == 0,
			"said: %s\nwant: %s", diag.text, refusals[i].want);
		CHECK(job.nvns == 12345, "touched by %s", refusals[i].text);
	}
}

static void a_nearer_origin_wins_and_is_remembered(void **state)
{
	static const struct hd_job_set set[] = {
		{ "batch.global", "32", HD_FROM_OPTION }, { "batch.global", "16", HD_FROM_SET }, { "optim.lr", "0.5", HD_FROM_SET },
		{ "optim.lr", "0.25", HD_FROM_ENV }, { "job.seed", "7", HD_FROM_ENV }, { "optim.schedule.kind", "constant", HD_FROM_SET },
		{ "optim.lr", "0.125", HD_FROM_SET }, { "optim.betas", "[0.5, 0.75]", HD_FROM_SET }, { "data.split", "{train: 1}", HD_FROM_SET },
	};

	(void)state;
	CHECK(parse_with(SMALLEST "optim:\n  lr: 1\n", set, sizeof set / sizeof set[0]) == HD_OK, "%s",
		diag.text);
	assert_int_equal(job.batch, 32);
	assert_int_equal(job.value[HD_JOB_GLOBAL].origin, HD_FROM_OPTION);
	assert_true(hd_job_num(&job, HD_JOB_LR) == 0.125);
	assert_int_equal(job.value[HD_JOB_LR].origin, HD_FROM_SET);
	assert_int_equal(job.value[HD_JOB_LR].line, 0);
	assert_int_equal(job.value[HD_JOB_SEED].origin, HD_FROM_ENV);
	assert_int_equal(job.value[HD_JOB_STEPS].origin, HD_FROM_FILE);
	assert_int_equal(job.value[HD_JOB_STEPS].line, 1);
	assert_int_equal(job.value[HD_JOB_STEPS].column, 14);
	assert_int_equal(job.value[HD_JOB_CLIP].origin, HD_FROM_DEFAULT);
	assert_true(job.value[HD_JOB_BETAS].list[1] == 0.75);
	assert_true(job.value[HD_JOB_SPLIT].list[0] == 1 && job.value[HD_JOB_SPLIT].list[1] == 0);
}

/* Of several, one is wrong: the right ones after it, nearer or not, do not make it right. */
static void one_wrong_set_refuses_the_job(void **state)
{
	static const struct hd_job_set set[][2] = {
		{ { "batch.global", "x", HD_FROM_SET }, { "optim.lr", "0.5", HD_FROM_SET } },
		{ { "batch.global", "x", HD_FROM_ENV }, { "optim.lr", "0.5", HD_FROM_OPTION } },
		{ { "optim.lr", "0.5", HD_FROM_OPTION }, { "batch.global", "x", HD_FROM_OPTION } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof set / sizeof *set; i++)
		CHECK(parse_with(SMALLEST, set[i], 2) == HD_E_INVAL &&
			strstr(diag.text, "\"x\" is not an integer"), "case %zu: %s", i, diag.text);
}

/* What the file need not say where a set does; and a text that looks like a list is a text where that is
 * meant. */
static void a_set_is_as_good_as_the_file(void **state)
{
	static const struct hd_job_set set[] = { { "data.kind", "npy", HD_FROM_ENV },
		{ "data.path", "[a]", HD_FROM_SET },
		{ "model.args", "{hidden: [7]}", HD_FROM_SET } };

	(void)state;
	CHECK(parse_with("job: {steps: 10}\nmodel: {use: builtin:mlp}\nbatch: {global: 64}\noptim:\n", set,
		3) == HD_OK, "%s", diag.text);
	assert_string_equal(hd_job_text(&job, HD_JOB_DATA_KIND), "npy");
	assert_string_equal(hd_job_text(&job, HD_JOB_DATA_PATH), "[a]");
	CHECK(strstr(json_of(&job), "\"hidden\":[7]"), "%s", json_of(&job));
}

static void words_are_whole(void **state)
{
	static const struct { const char *words, *word; bool has; } has[] = {
		{ "adam|adamw", "adam", true }, { "adam|adamw", "adamw", true }, { "adam|adamw", "ada", false }, { "adam|adamw", "adamwx", false },
		{ "adamw", "adam", false }, { "adam", "adamw", false }, { NULL, "adam", false }, { "", "", false },
	};
	static const struct { const char *table, *key, *word; bool absent; } cases[] = {
		{ "workers", "profile", NULL, true }, { "elastic", "resilience", NULL, false }, { "elastic", NULL, NULL, false }, { "elastic", "resilienc", NULL, false },
		{ "elastic", "resilience", "auto", false }, { "job", "reduction", "fast", true }, { "job", "reduction", NULL, false },
		{ "job", "reduction", "canonical", false }, { "job", "kernels", "fast", false }, { "launch", NULL, NULL, false },
		{ "launch", "kind", "k8s", true }, { "launch", "k8s", NULL, true }, { "nonsense", "priority", NULL, false },
	};
	size_t len = 99;

	(void)state;
	for (size_t i = 0; i < sizeof has / sizeof *has; i++)
		CHECK(hd_job_has_word(has[i].words, has[i].word) == has[i].has, "case %zu", i);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		CHECK(hd_job_is_absent(cases[i].table, cases[i].key, cases[i].word) == cases[i].absent,
			"case %zu", i);
	assert_null(hd_job_word("a|b", 2, &len));
	assert_null(hd_job_word("a|b", 9, &len));
	assert_null(hd_job_word(NULL, 0, &len));
	assert_int_equal(len, 99);
	assert_string_equal(hd_job_word("a|bc", 1, &len), "bc");
	assert_int_equal(len, 2);
}

static void arguments_of_the_model_can_be_set_one_by_one(void **state)
{
	static const struct hd_job_set set[] = { { "model.args.width", "64", HD_FROM_SET },
		{ "model.args.heads", "2", HD_FROM_SET } };
	static const char text[] =
		"job: {steps: 1}\nmodel: {use: builtin:gpt, args: {layers: 3, width: 32}}\ndata: {kind: "
		"text}\nbatch: {global: 8}\n";
	static const char want[] =
		"\"args\":{\"context\":128,\"dropout\":0,\"heads\":2,\"layers\":3,\"vocab\":256,"
		"\"width\":64}";

	(void)state;
	CHECK(parse_with(text, set, 2) == HD_OK, "%s", diag.text);
	CHECK(strstr(canonical_of(&job), want), "%s", canonical_of(&job));
	CHECK(strstr(json_of(&job), want), "%s", json_of(&job));
}

static void a_late_argument_is_listed_where_it_is_not_the_default(void **state)
{
	static const struct { const char *text; bool listed; } cases[] = { { "1e-5", false },
		{ "0.00001", false }, { "1e-6", true } };
	static const char text[] =
		"job: {steps: 1}\nmodel: {use: builtin:gpt}\ndata: {kind: text}\nbatch: {global: 8}\n";
	struct hd_hash plain;

	(void)state;
	CHECK(parse_with(text, NULL, 0) == HD_OK, "%s", diag.text);
	plain = job.hash;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct hd_job_set set = { "model.args.eps", cases[i].text, HD_FROM_SET };
		CHECK(parse_with(text, &set, 1) == HD_OK, "%s", diag.text);
		CHECK((strstr(json_of(&job), "\"eps\":1e-06,\"heads\"") != NULL) == cases[i].listed, "%s: %s",
			cases[i].text, json_of(&job));
		CHECK((memcmp(&plain, &job.hash, sizeof plain) != 0) == cases[i].listed, "%s", cases[i].text);
	}
}

static void a_wrong_set_is_named_as_it_was_written(void **state)
{
	static const struct { struct hd_job_set set; const char *want; } cases[] = {
		{ { "batch.global", "x", HD_FROM_SET }, "-s batch.global=x: batch.global: \"x\" is not an integer" },
		{ { "batch.global", "x", HD_FROM_ENV }, "HEDDLE_BATCH_GLOBAL=x: batch.global: \"x\" is not an integer" },
		{ { "optim.schedule.kind", "x", HD_FROM_ENV }, "HEDDLE_OPTIM_SCHEDULE_KIND=x: optim.schedule.kind: \"x\" is none of" },
		{ { "batch.globl", "3", HD_FROM_SET }, "-s batch.globl=3: there is no key batch.globl; did you mean batch.global?" },
		{ { "batch", "3", HD_FROM_SET }, "-s batch=3: batch is a table; name one of its keys, as batch.KEY=VALUE" },
		{ { "bach.global", "3", HD_FROM_SET }, "-s bach.global=3: there is no table bach; did you mean batch?" },
		{ { "optim.schedule", "3", HD_FROM_SET }, "-s optim.schedule=3: optim.schedule is a table; name one of its keys" },
		{ { "optim.schedule.x.y", "3", HD_FROM_SET }, "-s optim.schedule.x.y=3: there is no key optim.schedule.x.y" },
		{ { "optim.lr.x", "3", HD_FROM_SET }, "-s optim.lr.x=3: there is no key optim.lr.x" },
		{ { "optim.betas", "[0.9", HD_FROM_SET }, "-s optim.betas=[0.9: value:2:1: flow" },
		{ { "optim.betas", "0.9", HD_FROM_SET }, "-s optim.betas=0.9: optim.betas takes a list" },
		{ { "job.name", "", HD_FROM_SET }, "-s job.name=: job.name: an empty text means nothing here" },
		{ { "batch.virtual_nodes", "96", HD_FROM_SET }, "-s batch.virtual_nodes=96: batch.virtual_nodes is 96, more than batch.global 64; use at most 64" },
		{ { "launch.kind", "k8s", HD_FROM_SET }, "-s launch.kind=k8s: launch.kind: k8s is not available in this build" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		CHECK(parse_with(SMALLEST, &cases[i].set, 1) == HD_E_INVAL, "accepted: %s", cases[i].want);
		CHECK(strncmp(diag.text, cases[i].want, strlen(cases[i].want)) == 0, "said: %s\nwant: %s",
			diag.text, cases[i].want);
	}
}

static void of_steps_and_epochs_the_nearer_origin_counts(void **state)
{
	static const struct hd_job_set steps = { "job.steps", "5", HD_FROM_SET },
		epochs = { "job.epochs", "2", HD_FROM_SET };

	(void)state;
	assert_int_equal(parse_with("job: {epochs: 3}\nmodel: {use: builtin:mlp}\ndata: {kind: "
		"synthetic}\nbatch: {global: 8}\n", &steps, 1), HD_OK);
	assert_int_equal(hd_job_int(&job, HD_JOB_STEPS), 5);
	assert_true(job.value[HD_JOB_EPOCHS].is_none);
	assert_int_equal(parse_with(SMALLEST, &epochs, 1), HD_OK);
	assert_true(job.value[HD_JOB_STEPS].is_none && hd_job_num(&job, HD_JOB_EPOCHS) == 2);
}

static void a_graph_file_brings_its_own_loss(void **state)
{
	(void)state;
	must("job: {steps: 1}\nmodel: {use: graph:net.graph}\ndata: {kind: npy, path: d}\nbatch: {global: "
		"8}\n");
	assert_string_equal(hd_job_text(&job, HD_JOB_LOSS), "none");
	must(json_of(&job));
	assert_int_equal(hd_job_int(&job, HD_JOB_LOSS), 2);
}

static void origins_are_printed_with_their_places(void **state)
{
	static const struct hd_job_set set = { "optim.lr", "0.5", HD_FROM_ENV };
	struct hd_text text;

	(void)state;
	assert_int_equal(parse_with(SMALLEST, &set, 1), HD_OK);
	hd_text_init(&text, &arena);
	hd_job_json(&job, true, &text);
	assert_non_null(strstr(text.at,
		"\"global\":{\"value\":64,\"origin\":\"file\",\"line\":4,\"column\":17}"));
	assert_non_null(strstr(text.at, "\"lr\":{\"value\":0.5,\"origin\":\"environment\"}"));
	assert_non_null(strstr(text.at, "\"clip\":{\"value\":1,\"origin\":\"default\"}"));
}

static void the_template_is_a_job_with_every_key(void **state)
{
	struct hd_text text;

	(void)state;
	hd_text_init(&text, &arena);
	hd_job_template(&text);
	CHECK(parse(text.at) == HD_OK, "%s\n%s", diag.text, text.at);
	for (int k = 0; k < HD_JOB_NKEYS; k++)
		CHECK(job.value[k].origin == HD_FROM_FILE, "%s.%s is not in it", hd_job_keys[k].table,
			hd_job_keys[k].key);
	assert_string_equal(warnings.at, "");
}

static void the_schema_has_every_key_and_is_json(void **state)
{
	struct hd_text text;
	const struct hd_json *root, *at;

	(void)state;
	hd_text_init(&text, &arena);
	hd_job_schema(&text);
	CHECK(hd_json_parse(&arena, "schema", text.at, text.len, &root, &diag) == HD_OK, "%s", diag.text);
	for (int k = 0; k < HD_JOB_NKEYS; k++) {
		char key[64];
		snprintf(key, sizeof key, "%s", hd_job_keys[k].key);
		char *dot = strchr(key, '.');
		at = hd_json_find(hd_json_find(hd_json_find(root, "properties"), hd_job_keys[k].table),
			"properties");
		if (dot) {
			*dot = '\0';
			at = hd_json_find(hd_json_find(at, key), "properties");
		}
		at = hd_json_find(at, dot ? dot + 1 : key);
		CHECK(at, "%s.%s", hd_job_keys[k].table, hd_job_keys[k].key);
		CHECK(hd_json_find(at, "description"), "%s.%s", hd_job_keys[k].table, hd_job_keys[k].key);
	}
}

/* The room grows by the least that can be taken: with each request in turn the first that is too large.
 * What is said of the job is all of it. */
static void no_memory_is_said(void **state)
{
	enum hd_err err = HD_E_NOMEM;
	uint32_t nfailed = 0;

	(void)state;
	must(SMALLEST);
	for (size_t budget = 64; err && budget < (1 << 22); budget += 64) {
		struct hd_arena small;
		struct hd_job other;
		hd_arena_init(&small, budget);
		err = hd_job_parse(&other, "tiny.yaml", SMALLEST, strlen(SMALLEST), NULL, 0, &small, NULL,
			NULL);
		CHECK(!err || err == HD_E_NOMEM, "budget %zu: %s", budget, hd_err_text(err));
		CHECK(err || hd_hash_same(other.hash, job.hash), "budget %zu: the hash of half a job",
			budget);
		nfailed += err == HD_E_NOMEM;
		hd_arena_finish(&small);
	}
	assert_int_equal(err, HD_OK);
	assert_true(nfailed > 80);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_smallest_job_gets_all_defaults),
		cmocka_unit_test(a_word_said_later_lets_keys_of_functions_rest),
		cmocka_unit_test(what_auto_means_depends_on_the_optimizer),
		cmocka_unit_test(transforms_are_names_with_numbers),
		cmocka_unit_test(words_stand_in_the_order_of_their_enums),
		cmocka_unit_test(types_are_the_tables_and_not_yamls),
		cmocka_unit_test(the_default_of_virtual_nodes_is_the_largest_legal_up_to_sixteen),
		cmocka_unit_test(a_warning_says_where_and_what_to_whom_wants_it),
		cmocka_unit_test(one_wrong_set_refuses_the_job),
		cmocka_unit_test(a_set_is_as_good_as_the_file),
		cmocka_unit_test(words_are_whole),
		cmocka_unit_test(every_refusal_says_where_what_and_what_to_do),
		cmocka_unit_test(a_nearer_origin_wins_and_is_remembered),
		cmocka_unit_test(arguments_of_the_model_can_be_set_one_by_one),
		cmocka_unit_test(a_late_argument_is_listed_where_it_is_not_the_default),
		cmocka_unit_test(a_wrong_set_is_named_as_it_was_written),
		cmocka_unit_test(of_steps_and_epochs_the_nearer_origin_counts),
		cmocka_unit_test(a_graph_file_brings_its_own_loss),
		cmocka_unit_test(origins_are_printed_with_their_places),
		cmocka_unit_test(the_template_is_a_job_with_every_key),
		cmocka_unit_test(the_schema_has_every_key_and_is_json),
		cmocka_unit_test(no_memory_is_said),
	};
	return cmocka_run_group_tests(tests, make_arena, drop_arena);
}
