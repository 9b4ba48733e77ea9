#include "job/graph.h"

#include <stdio.h>

#include "job/testing.h"

/* The short form of jobs on prepared graphs is the long one, key for key. */

#define HEAD "job: {steps: 10}\n"
#define SHORT HEAD "graph: {prepared: g.graph, model: gat, hidden: 8, heads: 4, dropout: 0.25, " \
	"bias: \"false\", mode: sync, features: fp32}\n"

static struct hd_job_sets sets;

static void of_graph(const char *text, const struct hd_job_set *more, uint32_t nmore)
{
	assert_int_equal(hd_job_sets_init(&sets, nmore + HD_JOB_GRAPH_SETS, &arena, &diag), HD_OK);
	for (uint32_t i = 0; i < nmore; i++)
		sets.set[sets.n++] = more[i];
	assert_true(hd_job_graph_file("tiny.yaml", text, strlen(text), &sets) != NULL);
	assert_int_equal(hd_job_graph_sets(&sets, &(struct hd_job_graph){ 50, 101, 9, 3, 50 }, &diag), HD_OK);
	CHECK(parse_with(text, sets.set, sets.n) == HD_OK, "%s\n%s", diag.text, text);
}

static void the_short_form_is_the_long_one(void **state)
{
	struct hd_hash hash;

	(void)state;
	of_graph(SHORT, NULL, 0);
	hash = job.hash;
	must(HEAD "model: {use: builtin:gat, args: {input: 9, classes: 3, slots: 4, hidden: 8, heads: 4, "
		"dropout: 0.25, bias: \"false\"}}\ndata: {kind: graph, path: g.graph, order: sequential}\n"
		"batch: {global: 50, virtual_nodes: 1}\n");
	assert_memory_equal(&hash, &job.hash, sizeof hash);
	of_graph(SHORT, NULL, 0);
	must(json_of(&job));              /* what a run keeps */
	assert_memory_equal(&hash, &job.hash, sizeof hash);
	assert_string_equal(hd_job_text(&job, HD_JOB_DATA_PATH), "g.graph");
}

static void rows_from_outside_go_before_it(void **state)
{
	const struct hd_job_set more[] = { { "graph.hidden", "16", HD_FROM_SET },
		{ "model.args.heads", "2", HD_FROM_SET }, { "graph.prepared", "other.graph", HD_FROM_SET } };

	(void)state;
	of_graph(SHORT, more, 3);
	assert_string_equal(hd_job_graph_file("tiny.yaml", SHORT, sizeof SHORT - 1, &sets), "other.graph");
	assert_string_equal(hd_job_text(&job, HD_JOB_DATA_PATH), "other.graph");
	for (uint32_t i = 0; i < job.value[HD_JOB_MODEL_ARGS].nargs; i++) {
		const struct hd_job_arg *arg = &job.value[HD_JOB_MODEL_ARGS].arg[i];
		CHECK(strcmp(arg->name, "hidden") || !strcmp(arg->text, "16"), "%s", arg->text);
		CHECK(strcmp(arg->name, "heads") || !strcmp(arg->text, "2"), "%s", arg->text);
	}
	assert_null(hd_job_graph_file("tiny.yaml", SMALLEST, sizeof SMALLEST - 1, &sets));
}

static void modes_are_keys_of_the_batch(void **state)
{
	const struct hd_job_set more[] = { { "batch.virtual_nodes", "4", HD_FROM_SET },
		{ "graph.staleness", "3", HD_FROM_SET } };
	struct hd_hash hash;

	(void)state;
	of_graph(HEAD "graph: {prepared: g.graph, model: gcn, mode: exact, cells: 2}\n", more, 2);
	hash = job.hash;
	assert_int_equal(hd_job_int(&job, HD_JOB_STALENESS), 3);
	must(HEAD "model: {use: builtin:gcn, args: {input: 9, classes: 3, slots: 4}}\n"
		"data: {kind: graph, path: g.graph, order: sequential}\n"
		"batch: {global: 50, virtual_nodes: 4, mode: exact, staleness: 3, cells: 2}\n");
	assert_memory_equal(&hash, &job.hash, sizeof hash);
}

/* What a run goes back to sync by also ends it. */
static void close_is_a_table_of_the_batch(void **state)
{
	const struct hd_job_set more[] = { { "graph.close.margin", "0.02", HD_FROM_SET } };
	struct hd_hash hash;

	(void)state;
	of_graph(HEAD "graph: {prepared: g.graph, model: gcn, intervals: 4, mode: bounded, "
		"close: {metric: accuracy, target: 0.8, every: 5}}\n", more, 1);
	hash = job.hash;
	assert_int_equal(hd_job_int(&job, HD_JOB_CLOSE_EVERY), 5);
	assert_true(hd_job_num(&job, HD_JOB_CLOSE_MARGIN) == 0.02 && hd_job_num(&job, HD_JOB_TARGET) == 0.8);
	assert_int_equal(hd_job_int(&job, HD_JOB_METRIC), HD_METRIC_ACCURACY);
	must(HEAD "model: {use: builtin:gcn, args: {input: 9, classes: 3, slots: 4}}\n"
		"data: {kind: graph, path: g.graph, order: sequential}\n"
		"batch: {global: 50, virtual_nodes: 4, mode: bounded, "
		"close: {target: 0.8, margin: 0.02, every: 5}}\n");
	assert_memory_equal(&hash, &job.hash, sizeof hash);
	assert_true(job.value[HD_JOB_TARGET].is_none);
}

/* In the table, beside it, and as rows: one meaning. */
static void functions_stand_in_the_table_or_beside_it(void **state)
{
	static const char *const texts[] = {
		HEAD "graph: {prepared: g, model: gcn, intervals: 4, price_file: '2021', functions: {"
			"kind: lambda, "
			"endpoint: 'http://127.0.0.1:1', name: n, size: 3}}\n",
		HEAD "graph: {prepared: g, model: gcn, intervals: 4}\nfunctions: {kind: lambda, "
			"endpoint: 'http://127.0.0.1:1', name: n, size: 3, price_file: '2021'}\n",
		HEAD "graph: {prepared: g, model: gcn, intervals: 4, functions: {kind: pool}}\n",
	};
	const struct hd_job_set more[] = { { "graph.functions.kind", "lambda", HD_FROM_SET },
		{ "graph.functions.endpoint", "http://127.0.0.1:1", HD_FROM_SET },
		{ "functions.name", "n", HD_FROM_SET }, { "graph.functions.size", "3", HD_FROM_ENV },
		{ "graph.price_file", "2021", HD_FROM_SET } };
	struct hd_hash hash = { { 0 } };

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		of_graph(texts[i], more, i == 2 ? sizeof more / sizeof *more : 0);
		CHECK(!strcmp(hd_job_text(&job, HD_JOB_FN_KIND), "lambda") &&
			!strcmp(hd_job_text(&job, HD_JOB_FN_NAME), "n") &&
			!strcmp(hd_job_text(&job, HD_JOB_FN_PRICE), "2021") &&
			hd_job_int(&job, HD_JOB_FN_SIZE) == 3, "%s", texts[i]);
		assert_true(!i || !memcmp(&hash, &job.hash, sizeof hash));
		hash = job.hash;
	}
}

static void intervals_are_virtual_nodes(void **state)
{
	static const struct hd_job_set more[] = { { "graph.intervals", "4", HD_FROM_ENV },
		{ "batch.virtual_nodes", "16", HD_FROM_SET } };
	static const char in8[] = HEAD "graph: {prepared: g.graph, model: gcn, intervals: 8}\n";
	const uint32_t want[] = { 8, 4, 16 };
	struct hd_hash hash;

	(void)state;
	for (uint32_t n = 0; n < 3; n++) {
		assert_int_equal(hd_job_sets_init(&sets, n + HD_JOB_GRAPH_SETS, &arena, &diag), HD_OK);
		memcpy(sets.set, more, n * sizeof *more);
		sets.n = n;
		assert_int_equal(hd_job_graph_intervals("tiny.yaml", in8, sizeof in8 - 1, &sets), want[n]);
		const struct hd_job_graph says = { 50, 101, 9, 3, want[n] * 7 };
		assert_int_equal(hd_job_graph_sets(&sets, &says, &diag), HD_OK);
		CHECK(parse_with(in8, sets.set, sets.n) == HD_OK, "%s", diag.text);
		assert_int_equal(hd_job_int(&job, HD_JOB_VNS), want[n]);
		assert_int_equal(job.batch, want[n] * 7);
		hash = job.hash;
	}
	must(HEAD "model: {use: builtin:gcn, args: {input: 9, classes: 3, slots: 4}}\n"
		"data: {kind: graph, path: g.graph, order: sequential}\n"
		"batch: {global: 112, virtual_nodes: 16}\n");
	assert_memory_equal(&hash, &job.hash, sizeof hash);
	sets.n = 0;
	assert_int_equal(hd_job_graph_intervals("tiny.yaml", SHORT, sizeof SHORT - 1, &sets), 1);
}

static void a_vertex_has_places_for_its_edges_and_itself(void **state)
{
	(void)state;
	assert_int_equal(hd_job_graph_slots(50, 100), 3);
	assert_int_equal(hd_job_graph_slots(50, 101), 4);
	assert_int_equal(hd_job_graph_slots(1, 0), 1);
}

static void what_has_no_meaning_is_refused_by_name(void **state)
{
	static const struct { const char *text, *says; } bad[] = {
		{ "graph: {prepared: g, model: gcn}\nmodel: {use: builtin:gcn}\n",
			"tiny.yaml:2:1: graph stands for model, data and batch: leave model out" },
		{ "graph: {prepared: g, model: gcn}\nbatch: {global: 4}\n", "leave batch out" },
		{ "graph: {prepared: g, model: gcn}\ndata: {kind: graph}\n", "leave data out" },
		{ "graph: {prepared: g, model: gcn, mode: late}\n",
			"tiny.yaml:2:40: batch.mode: \"late\" is none of sync, exact, bounded, replay" },
		{ "graph: {prepared: g, model: gcn, features: bf16}\n", "set it to fp32" },
		{ "graph: {prepared: g, model: gcn, intervals: 0}\n",
			"tiny.yaml:2:45: graph.intervals: 0 is no number of intervals; set it to 1, or" },
		{ "graph: {prepared: g, model: gcn, intervals: 4x}\n", "graph.intervals: 4x is no number" },
		{ "graph: {prepared: g, model: gcn, intervals: [4]}\n", "graph.intervals is one value" },
		{ "graph: {prepared: g, model: gcn, functions: pool}\n",
			"tiny.yaml:2:45: functions is a table" },
		{ "graph: {prepared: g, model: gcn, functions: {kinds: pool}}\n",
			"tiny.yaml:2:46: there is no key functions.kinds; did you mean functions.kind?" },
		{ "graph: {prepared: g, model: gcn, functions: {kind: pool}}\nfunctions: {size: 2}\n",
			"tiny.yaml:3:1: functions and graph.functions are one table: leave one of them out" },
		{ "graph: {prepared: g, model: gcn, price_file: '2021', functions: {price_file: '2025'}}\n",
			"tiny.yaml:2:34: graph.price_file and functions.price_file are one key: leave one" },
		{ "graph: {prepared: g, model: gcn, price_file: '2021'}\nfunctions: {price_file: '2025'}\n",
			"graph.price_file and functions.price_file are one key" },
		{ "graph: {prepared: g, model: gcn, hiden: 2}\n", "did you mean graph.hidden?" },
		{ "graph: {prepared: g, model: gcn, hidden: [2]}\n", "graph.hidden is one value" },
		{ "graph: {model: gcn}\n", "graph needs prepared: FILE" },
		{ "graph: {prepared: g}\n", "model: gcn, gat or sage-mean" },
		{ "graph: {prepared: g, model: gcn}\n", "is not read here: write model, data and batch" },
	};
	char text[300];

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		snprintf(text, sizeof text, HEAD "%s", bad[i].text);
		CHECK(parse(text) == HD_E_INVAL && strstr(diag.text, bad[i].says), "%s: %s", bad[i].text,
			diag.text);
	}
}

/* As of every table. */
static void the_table_as_a_whole_cannot_be_set(void **state)
{
	const struct hd_job_set set[] = { { "graph", "g.graph", HD_FROM_SET } };

	(void)state;
	assert_int_equal(parse_with(SMALLEST, set, 1), HD_E_INVAL);
	CHECK(strstr(diag.text, "graph is a table; name one of its keys, as graph.KEY=VALUE"), "%s",
		diag.text);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_table_as_a_whole_cannot_be_set),
		cmocka_unit_test(the_short_form_is_the_long_one),
		cmocka_unit_test(rows_from_outside_go_before_it),
		cmocka_unit_test(modes_are_keys_of_the_batch),
		cmocka_unit_test(close_is_a_table_of_the_batch),
		cmocka_unit_test(functions_stand_in_the_table_or_beside_it),
		cmocka_unit_test(intervals_are_virtual_nodes),
		cmocka_unit_test(a_vertex_has_places_for_its_edges_and_itself),
		cmocka_unit_test(what_has_no_meaning_is_refused_by_name),
	};

	hd_arena_init(&arena, 0);
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	hd_arena_finish(&arena);
	return failed;
}
