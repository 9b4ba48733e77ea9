/* What Slurm 22.05 prints: lines as its commands gave them on a cluster of four nodes. */
#include "launch/slurm_text.h"

#include <stdio.h>
#include <string.h>

#include "tests/check.h"

static void a_line_of_squeue_is_a_job(void **state)
{
	static const struct { const char *line; struct hd_slurm_line is; } cases[] = {
		{ "2_2|COMPLETED|0|0|k2|None|", { "2_2", "COMPLETED", "k2", "", HD_SLURM_OVER, 0, 0 } },
		{ "1_0|FAILED|19200|0|k1|NonZeroExitCode|", { "1_0", "FAILED", "k1", "NonZeroExitCode", HD_SLURM_OVER, 75, 0 } },
		{ "2_0|PENDING|0|1||BeginTime|", { "2_0", "PENDING", "", "BeginTime", HD_SLURM_WAITS, 0, 1 } },
		{ "77|RUNNING|9|12|k[1-2],v1|None|", { "77", "RUNNING", "k[1-2],v1", "", HD_SLURM_RUNS, 137, 12 } },
		{ "4_19|PENDING|0|0||ReqNodeNotAvail, UnavailableNodes:k1  |", { "4_19", "PENDING", "", "ReqNodeNotAvail, UnavailableNodes:k1", HD_SLURM_WAITS, 0, 0 } },
	};
	struct hd_slurm_line l;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct hd_slurm_line *is = &cases[i].is;
		assert_int_equal(hd_slurm_line_parse(cases[i].line, strlen(cases[i].line), &l, NULL), HD_OK);
		assert_string_equal(l.id, is->id);
		assert_string_equal(l.state, is->state);
		assert_string_equal(l.node, is->node);
		assert_string_equal(l.reason, is->reason);
		CHECK(l.stage == is->stage && l.code == is->code && l.restarts == is->restarts, "case %zu",
			i);
	}
}

/* Of many nodes, or after much: users see the begin, and the job is known. */
static void a_line_of_long_texts_is_cut(void **state)
{
	char line[600], nodes[200], why[200];
	struct hd_slurm_line l;

	(void)state;
	memset(nodes, 'k', sizeof nodes - 1);
	memset(why, 'w', sizeof why - 1);
	nodes[sizeof nodes - 1] = why[sizeof why - 1] = '\0';
	snprintf(line, sizeof line, "77|RUNNING|0|0|%s|%s|", nodes, why);
	assert_int_equal(hd_slurm_line_parse(line, strlen(line), &l, NULL), HD_OK);
	CHECK(strlen(l.node) == HD_SLURM_NODE - 1 && !strcmp(l.node + HD_SLURM_NODE - 5, "k..."), "%s",
		l.node);
	CHECK(strlen(l.reason) == HD_SLURM_REASON - 1 && !strcmp(l.reason + HD_SLURM_REASON - 5, "w..."),
		"%s", l.reason);
}

static void what_is_no_line_changes_nothing(void **state)
{
	static const char *const bad[] = { "", "1_0", "1_0|RUNNING|0|0|k1", "x_0|RUNNING|0|0|k1|None|",
		"1_|RUNNING|0|0|k1|None|", "1_[2-4]|PENDING|0|0||None|", "_1|RUNNING|0|0|k1|None|",
		"1_0|JUMPING|0|0|k1|None|", "1_0|RUNNING|-1|0|k1|None|", "1_0|RUNNING|0|x|k1|None|",
		"1_0|RUNNING|0|0|k\033[1|None|", "1_0_1|RUNNING|0|0|k1|None|",
		"11111111111111111111111111111111_0|RUNNING|0|0|k1|None|" };
	const struct hd_slurm_line kept = { .id = "kept" };

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct hd_slurm_line l = kept;
		struct hd_diag diag = { "" };
		CHECK(hd_slurm_line_parse(bad[i], strlen(bad[i]), &l, &diag) == HD_E_INPUT, "case %zu", i);
		CHECK(!memcmp(&l, &kept, sizeof l) && strstr(diag.text, "not understood"), "case %zu", i);
	}
}

static void an_answer_of_sbatch_names_the_job(void **state)
{
	static const struct { const char *text, *id; } cases[] = {
		{ "77\n", "77" }, { "77", "77" }, { "78;loop\n", "78" }, { "site: be nice\n\n79\n", "79" },
		{ "", NULL }, { "Submitted batch job 7\n", NULL }, { "7x\n", NULL }, { ";loop\n", NULL },
		{ "99999999999999999\n", NULL },
	};
	char id[HD_SLURM_ID];

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const enum hd_err err = hd_slurm_id_parse(cases[i].text, strlen(cases[i].text), id, NULL);
		CHECK((err == HD_OK) == (cases[i].id != NULL), "case %zu", i);
		CHECK(err || !strcmp(id, cases[i].id), "case %zu: %s", i, id);
	}
}

static void a_refusal_says_what_to_do(void **state)
{
	static const struct { const char *text; enum hd_err err; const char *says; } cases[] = {
		{ "sbatch: error: invalid partition specified: nope\nsbatch: error: Batch job submission failed: Invalid partition name specified\n", HD_E_INVAL, "sinfo -s" },
		{ "sbatch: error: Batch job submission failed: Invalid account or account/partition combination specified\n", HD_E_INVAL, "launch.slurm.account" },
		{ "sbatch: error: Invalid --time specification\n", HD_E_INVAL, "HH:MM:SS" },
		{ "sbatch: unrecognized option '--foo'\nTry \"sbatch --help\" for more information\n", HD_E_INVAL, "'--foo'; launch.slurm.extra" },
		{ "sbatch: error: Invalid generic resource (gres) specification\n", HD_E_INVAL, "--gres" },
		{ "sbatch: error: Batch job submission failed: Requested node configuration is not available\n", HD_E_INVAL, "no node has" },
		{ "sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)\n", HD_E_AGAIN, "scontrol ping" },
		{ "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation\n", HD_E_AGAIN, "scontrol ping" },
		{ "sbatch: fatal: Unable to process configuration file\n", HD_E_REFUSED, "SLURM_CONF" },
		{ "sbatch: error: the moon is full\n", HD_E_INVAL, "the moon is full; try" },
		{ "", HD_E_INVAL, "without a word" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_diag diag = { "" };
		CHECK(hd_slurm_refusal("sbatch", cases[i].text, strlen(cases[i].text), &diag) ==
			cases[i].err, "case %zu: %s",
			i, diag.text);
		CHECK(strstr(diag.text, cases[i].says), "case %zu: %s", i, diag.text);
	}
}

static void nodes_of_one_gpu_or_feature_are_a_type(void **state)
{
	static const char text[] = "v1|10.0.0.1|idle|gpu:v100:2(S:0-1),shard:4|ib,v100\n"
		"v2|10.0.0.2|down*|gpu:v100:2(S:0-1)|ib\n" "g1|g1|idle|craynetwork:4,gpu:4|big\n"
		"k1|k1|mixed|(null)|k80,old\n" "k2|k2|idle|(null)|k80|all*\n" "k2|k2|idle|(null)|k80|high\n"
		"n1|n1|idle|(null)|(null)\n" "not a line\n" "n2|n2|idle\n"
		"h1|h1|idle|gpu:h100:8,gpu:h100:1|(null)\n" "b|b|idle|gpu:2g.20gb:3|x\n";
	static const struct hd_launcher_type is[] = { { "2g.20gb", "--gres=gpu:2g.20gb:3", 1 },
		{ "gpu", "--gres=gpu:4", 1 }, { "h100", "--gres=gpu:h100:8", 1 }, { "k80", "--constraint=k80", 2 },
		{ "node", "", 2 }, { "v100", "--gres=gpu:v100:2", 2 } };
	struct hd_launcher_types types;
	struct hd_batch_nodes nodes;
	struct hd_arena arena;
	char many[1000] = "";

	(void)state;
	hd_arena_init(&arena, 0);
	assert_int_equal(hd_slurm_nodes_parse(text, strlen(text), &arena, &nodes, NULL), HD_OK);
	assert_int_equal(hd_slurm_types(&nodes, true, &types, NULL), HD_OK);
	assert_int_equal(types.n, sizeof is / sizeof *is);
	for (uint32_t i = 0; i < types.n; i++) {
		assert_string_equal(types.at[i].name, is[i].name);
		assert_string_equal(types.at[i].option, is[i].option);
		assert_int_equal(types.at[i].n, is[i].n);
	}
	for (int i = 0; i <= HD_LAUNCHER_TYPES; i++)
		snprintf(many + strlen(many), sizeof many - strlen(many), "n|n|idle|(null)|f%d\n", i);
	assert_int_equal(hd_slurm_nodes_parse(many, strlen(many), &arena, &nodes, NULL), HD_OK);
	assert_int_equal(hd_slurm_types(&nodes, true, &types, NULL), HD_E_INVAL);
	assert_int_equal(types.n, sizeof is / sizeof *is);
	hd_arena_finish(&arena);
}

static void a_time_limit_is_read_as_sbatch_reads_it(void **state)
{
	static const struct { const char *text; double s; } cases[] = {
		{ "90", 5400 }, { "2:30", 150 }, { "04:00:00", 14400 }, { "1-2", 93600 }, { "1-2:30", 95400 },
		{ "0-0:0:7", 7 }, { "2-00:00:00", 172800 }, { "", -1 }, { "1:2:3:4", -1 }, { "1-", -1 }, { "-1", -1 },
		{ "1-1-1", -1 }, { "x", -1 }, { "1:", -1 }, { "INFINITE", -1 }, { "1-2:3:4:5", -1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		double s = -1;
		CHECK(hd_slurm_time(cases[i].text, &s) == (cases[i].s >= 0), "%s", cases[i].text);
		CHECK(s == cases[i].s || cases[i].s < 0, "%s: %g", cases[i].text, s);
	}
}

static void options_that_are_the_launchers_are_refused(void **state)
{
	static const struct { const char *extra; bool good; } cases[] = {
		{ "--gres=gpu:1", true }, { "--cpus-per-task=8", true }, { "-C v100", true }, { "--mem=4G", true },
		{ "--array=0-9", false }, { "-J x", false }, { "--nodes=3", false }, { "-N3", false }, { "--requeue", false },
		{ "--signal=USR1@5", false }, { "--wrap=rm", false }, { "gres", false }, { "-", false },
		{ "--comment=a\nrm -rf x", false }, { "--nodelist=k1", true }, { "--output-x", true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct hd_launcher_settings s = { .slurm = { .partition = "", .account = "", .time = "",
			.extra = { cases[i].extra }, .nextra = 1 } };
		CHECK((hd_slurm_check(&s, NULL) == HD_OK) == cases[i].good, "%s", cases[i].extra);
	}
	const struct hd_launcher_settings odd = { .slurm = { .partition = "all\n#SBATCH --wrap=x", .account =
		"",
		.time = "" } };
	assert_int_equal(hd_slurm_check(&odd, NULL), HD_E_INVAL);
}

static const char *script_of(const struct hd_launcher_settings *settings, const char *dir, const char *const
	*argv, uint32_t nodes)
{
	static char room[2000];
	struct hd_text text;

	hd_text_fixed(&text, room, sizeof room);
	hd_slurm_script(&text, &(struct hd_launcher_spec){ .dir = dir, .name = "gpt", .mark =
		"heddle-gpt-1a2b",
		.argv = argv, .settings = settings, .nodes = nodes });
	assert_false(text.full);
	return room;
}

static void a_script_asks_for_one_node_and_becomes_the_worker(void **state)
{
	static const char *const argv[] = { "/opt/heddle", "worker", "--join", "/home/a b/it's", "--far",
		NULL };
	struct hd_launcher_settings s = { .slurm = { .partition = "lab", .account = "", .time = "04:00:00",
		.requeue = true, .signal_s = 120, .extra = { "--gres=gpu:1" }, .nextra = 1 } };
	const char *script = script_of(&s, "/home/a b/100%\"", argv, 0);

	(void)state;
	assert_string_equal(script, "#!/bin/bash\n"
		"# One node of gpt: heddle submits as many as it wants.\n"
		"#SBATCH --job-name=heddle-gpt-1a2b\n#SBATCH --nodes=1\n#SBATCH --open-mode=append\n"
		"#SBATCH --ntasks=1\n#SBATCH --exclusive\n#SBATCH --comment=\"heddle: gpt\"\n"
		"#SBATCH --requeue\n#SBATCH --partition=lab\n"
		"#SBATCH --time=04:00:00\n#SBATCH --signal=B:USR1@120\n"
		"#SBATCH --output=\"/home/a b/100%%\\\"/log/slurm-%A_%a.log\"\n#SBATCH --gres=gpu:1\n"
		"unset HEDDLE_TIED\n"
		"exec /opt/heddle worker --join '/home/a b/it'\\''s' --far\n");
	s.slurm.extra[0] = "--cpus-per-task=8";
	s.slurm.requeue = false;
	script = script_of(&s, "/r", argv, 1);
	assert_null(strstr(script, "--exclusive"));
	assert_non_null(strstr(script, "#SBATCH --no-requeue\n"));
}

static void a_script_of_several_nodes_has_a_task_on_each(void **state)
{
	static const char *const argv[] = { "/opt/heddle", "worker", NULL };
	const struct hd_launcher_settings s = { .slurm = { .partition = "", .account = "", .time = "" } };
	const char *script = script_of(&s, "/r", argv, 3);

	(void)state;
	assert_non_null(strstr(script, "#SBATCH --nodes=3\n"));
	assert_non_null(strstr(script, "#SBATCH --ntasks=3\n#SBATCH --exclusive\n"
		"#SBATCH --ntasks-per-node=1\n"));
	assert_non_null(strstr(script, "\nexec srun --ntasks-per-node=1 --kill-on-bad-exit=0 --wait=0 "
		"--cpu-bind=none /opt/heddle worker\n"));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_of_squeue_is_a_job),
		cmocka_unit_test(a_line_of_long_texts_is_cut),
		cmocka_unit_test(what_is_no_line_changes_nothing),
		cmocka_unit_test(an_answer_of_sbatch_names_the_job),
		cmocka_unit_test(a_refusal_says_what_to_do),
		cmocka_unit_test(nodes_of_one_gpu_or_feature_are_a_type),
		cmocka_unit_test(a_time_limit_is_read_as_sbatch_reads_it),
		cmocka_unit_test(options_that_are_the_launchers_are_refused),
		cmocka_unit_test(a_script_asks_for_one_node_and_becomes_the_worker),
		cmocka_unit_test(a_script_of_several_nodes_has_a_task_on_each),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
