/* Answers that slurmrestd 22.05 gave, and answers in the form of 23.11; requests read back as JSON. */
#include "launch/slurm_rest.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "tests/check.h"
#include "tests/shared_file.h"

static struct hd_arena arena;

static int begin(void **state)
{
	(void)state;
	hd_arena_init(&arena, 0);
	return 0;
}

static int end(void **state)
{
	(void)state;
	hd_arena_finish(&arena);
	return 0;
}

static const char *recorded(const char *name, size_t *len)
{
	char path[100];

	snprintf(path, sizeof path, "data/slurm/rest/%s.json", name);
	const char *text = (const char *)shared_bytes(path, &arena, len);
	CHECK(text, "no %s", path);
	return text;
}

/* As `squeue -r` printed them at the same time. */
static void are_lines(const struct hd_slurm_lines *lines, const char *const *is, uint32_t n)
{
	struct hd_slurm_line l;

	CHECK(lines->n == n, "%u jobs of %u", lines->n, n);
	for (uint32_t i = 0; i < n; i++) {
		const struct hd_slurm_line *at = &lines->at[i];
		assert_int_equal(hd_slurm_line_parse(is[i], strlen(is[i]), &l, NULL), HD_OK);
		CHECK(!strcmp(at->id, l.id) && !strcmp(at->state, l.state) && !strcmp(at->node, l.node) &&
			!strcmp(at->reason, l.reason) && at->stage == l.stage && at->code == l.code &&
			at->restarts == l.restarts, "%s: %s %s on \"%s\" \"%s\", code %d, %u restarts", is[i],
			at->id, at->state, at->node, at->reason, at->code, at->restarts);
	}
}

static void jobs_are_those_that_squeue_prints(void **state)
{
	static const char *const old[] = { "1_0|RUNNING|0|0|k1|None|", "1_1|COMPLETING|0|0|k2|None|",
		"1_2|RUNNING|0|0|v1|None|", "1_3|RUNNING|0|0|v2|None|", "1_4|PENDING|0|0||Resources|",
		"1_5|PENDING|0|0||Resources|" };
	static const char *const new[] = { "1_0|RUNNING|0|0|k1|None|", "1_1|COMPLETING|15|0|k2|None|",
		"1_2|REQUEUED|0|1||BeginTime|", "1_3|RUNNING|0|2|v[1-2]|None|",
		"1_4|FAILED|1792|0|k1|NonZeroExitCode|", "1_5|CANCELLED|15|0|k1|None|",
		"1_6|PENDING|0|0||Resources|", "1_8|PENDING|0|0||Resources|",
		"1_10|PENDING|0|0||Resources|" };
	static const char *const held[] = { "2_0|PENDING|0|0||JobHeldUser|" };
	struct hd_slurm_lines lines;
	size_t len;
	const char *text = recorded("jobs-22.05", &len);

	(void)state;
	assert_int_equal(hd_slurm_rest_jobs(text, len, "heddle-a-1", &arena, &lines, NULL), HD_OK);
	are_lines(&lines, old, sizeof old / sizeof *old);
	assert_int_equal(hd_slurm_rest_jobs(text, len, "heddle-a-10", &arena, &lines, NULL), HD_OK);
	are_lines(&lines, held, 1);
	assert_int_equal(hd_slurm_rest_jobs(text, len, "heddle", &arena, &lines, NULL), HD_OK);
	assert_int_equal(lines.n, 0);
	text = recorded("jobs-23.11", &len);
	assert_int_equal(hd_slurm_rest_jobs(text, len, "heddle-a-1", &arena, &lines, NULL), HD_OK);
	are_lines(&lines, new, sizeof new / sizeof *new);
}

/* One job, with a member in another's place. */
static enum hd_err one_job(const char *member, struct hd_slurm_lines *lines)
{
	char text[400];

	snprintf(text, sizeof text, "{\"x\": \"]}\\\"\", \"n\": -1.5e3, \"o\": {\"jobs\": [1]}, \"jobs\": "
		"[{\"name\": \"a\", \"job_id\": 7, %s}, {\"name\": \"other\"}]}", member);
	return hd_slurm_rest_jobs(text, strlen(text), "a", &arena, lines, NULL);
}

static void what_is_not_understood_is_refused_as_a_whole(void **state)
{
	static const struct { const char *member; const char *is; } cases[] = {
		{ "\"job_state\": \"RUNNING\", \"nodes\": \"k1\"", "7|RUNNING|0|0|k1|None|" },
		{ "\"job_state\": [\"PENDING\"], \"array_job_id\": {\"set\": false}", "7|PENDING|0|0||None|" },
		{ "\"job_state\": \"FAILED\", \"exit_code\": {\"set\": true, \"number\": 256}", "7|FAILED|256|0||None|" },
		{ "\"job_state\": \"FAILED\", \"exit_code\": {\"return_code\": {\"set\": true, \"number\": 3}, "
			"\"signal\": {\"signal_id\": 9}}", "7|FAILED|9|0||None|" },
		{ "\"job_state\": \"DREAMING\"", NULL }, { "\"job_state\": []", NULL }, { "\"job_state\": 3", NULL },
		{ "\"job_state\": [\"RUNNING\", 4]", NULL }, { "\"nodes\": \"k1\"", NULL },
		{ "\"job_state\": \"RUNNING\", \"nodes\": \"k\\n1\"", NULL },
		{ "\"job_state\": \"RUNNING\", \"restart_cnt\": -1", NULL },
		{ "\"job_state\": \"RUNNING\", \"exit_code\": {\"set\": true}", NULL },
		{ "\"job_state\": \"PENDING\", \"array_job_id\": 7, \"array_task_string\": \"0-3,...\"", NULL },
		{ "\"job_state\": \"PENDING\", \"array_job_id\": 7, \"array_task_string\": \"0-99999\"", NULL },
		{ "\"job_state\": \"PENDING\", \"array_job_id\": 7, \"array_task_string\": \"0-3:0\"", NULL },
		{ "\"job_state\": \"PENDING\", \"array_job_id\": 7, \"array_task_string\": \"-\"", NULL },
	};
	struct hd_slurm_lines lines;
	size_t len;
	const char *text = recorded("jobs-22.05", &len);

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		CHECK((one_job(cases[i].member, &lines) == HD_OK) == !!cases[i].is, "%s", cases[i].member);
		if (cases[i].is)
			are_lines(&lines, &cases[i].is, 1);
	}
	/* half an answer is none, wherever it ends */
	const size_t last = (size_t)(strrchr(text, ']') - text);
	for (size_t n = 0; n <= last; n += n < 400 || n + 200 > last ? 1 : 97)
		CHECK(hd_slurm_rest_jobs(text, n, "heddle-a-1", &arena, &lines, NULL) == HD_E_INPUT,
		"%zu bytes", n);
}

static void errors_are_slurms_own_words(void **state)
{
	static const struct { const char *name; enum hd_slurm_error error; const char *text; } cases[] = {
		{ "has-begun-22.05", HD_SLURM_HAS_BEGUN, "Job is no longer pending execution" },
		{ "unknown-22.05", HD_SLURM_IS_OVER, "Invalid job id specified" },
		{ "refused-22.05", HD_SLURM_ERROR, "Invalid partition name specified" },
		{ "deleted-22.05", HD_SLURM_NO_ERROR, "" }, { "held-22.05", HD_SLURM_NO_ERROR, "" },
		/* it was submitted, and may wait for long */
		{ "submitted-22.05", HD_SLURM_ERROR, "Required node not available (down, drained or reserved)" },
	};
	static const char results[] = "{\"results\": [{\"job_id\": 7, \"error_code\": 0, \"error\": \"No "
		"error\"}, "
		"{\"job_id\": 8, \"error_code\": 2073, \"error\": \"Job is no longer pending execution\"}], "
		"\"errors\": []}";
	enum hd_slurm_error error;
	const char *text;
	char id[HD_SLURM_ID];
	size_t len;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const char *body = recorded(cases[i].name, &len);
		assert_int_equal(hd_slurm_rest_error(body, len, &arena, &error, &text, NULL), HD_OK);
		CHECK(error == cases[i].error && !strcmp(text, cases[i].text), "%s: %s", cases[i].name, text);
	}
	assert_int_equal(hd_slurm_rest_error(results, strlen(results), &arena, &error, &text, NULL), HD_OK);
	assert_int_equal(error, HD_SLURM_HAS_BEGUN);
	assert_int_equal(hd_slurm_rest_error("Authentication failure", 22, &arena, &error, &text, NULL),
		HD_E_INPUT);
	const char *body = recorded("submitted-22.05", &len);
	assert_int_equal(hd_slurm_rest_id(body, len, &arena, id, NULL), HD_OK);
	assert_string_equal(id, "1");
	body = recorded("refused-22.05", &len);
	assert_int_equal(hd_slurm_rest_id(body, len, &arena, id, NULL), HD_E_INPUT);
}

static void are_nodes(const char *file, const char *partition, const char *usual, const char *is)
{
	struct hd_batch_nodes nodes;
	char got[400] = "";
	size_t len;
	const char *body = recorded(file, &len);

	assert_int_equal(hd_slurm_rest_nodes(body, len, partition, usual, &arena, &nodes, NULL), HD_OK);
	for (uint32_t i = 0; i < nodes.n; i++) {
		const struct hd_batch_node *n = &nodes.at[i];
		snprintf(got + strlen(got), sizeof got - strlen(got), "%s %s %s %s %s %s\n", n->name,
			n->address,
			n->state, n->type.name, n->type.option, n->usual ? "usual" : "other");
	}
	assert_string_equal(got, is);
}

static void nodes_have_the_types_that_sinfo_says(void **state)
{
	const char *usual = NULL, *body;
	size_t len;

	(void)state;
	body = recorded("partitions-22.05", &len);
	assert_int_equal(hd_slurm_rest_usual(body, len, &arena, &usual, NULL), HD_OK);
	assert_string_equal(usual, "all");
	are_nodes("nodes-22.05", "", "all", "k1 127.0.0.1 allocated k80 --constraint=k80 usual\n"
		"k2 127.0.0.1 allocated k80 --constraint=k80 usual\n"
		"v1 127.0.0.1 allocated v100 --constraint=v100 usual\n"
		"v2 127.0.0.1 allocated v100 --constraint=v100 usual\n");
	are_nodes("nodes-22.05", "nope", "", "");
	are_nodes("nodes-23.11", "", "all", "k1 10.0.0.1 IDLE k80 --constraint=k80 usual\n"
		"v1 10.0.0.1 MIXED,DRAIN v100 --gres=gpu:v100:2 usual\n"
		"v2 10.0.0.2 IDLE v100 --gres=gpu:v100:2 other\n");
	are_nodes("nodes-23.11", "all", "", "k1 10.0.0.1 IDLE k80 --constraint=k80 usual\n"
		"v1 10.0.0.1 MIXED,DRAIN v100 --gres=gpu:v100:2 usual\n");
}

/* ---- requests */

static const char *submission(const char *version, const struct hd_launcher_settings *settings,
	uint32_t nodes,
	struct hd_diag *diag)
{
	static char *environment[] = { "PATH=/bin", "SLURM_JWT=secret", "odd", "A=\"<\n", "B=\xff", NULL };
	const struct hd_launcher_spec spec = { .dir = "/r/100%", .name = "t", .mark = "heddle-t-1",
		.nodes = nodes, .settings = settings };
	const struct hd_slurm_submission what = { .spec = &spec, .n = 3, .folder = "/home", .script =
		"#!/bin/sh\n",
		.environment = environment };
	const struct hd_slurm_version *v = hd_slurm_versions;
	struct hd_text text;

	while (strcmp(v->name, version) != 0)
		v++;
	hd_text_init(&text, &arena);
	diag->text[0] = '\0';
	return hd_slurm_rest_submission(v, &what, &text, diag) ? NULL : text.at;
}

#define WRAPPED(n) "{\"set\":true,\"infinite\":false,\"number\":" #n "}"

static void a_submission_says_what_the_scripts_lines_say(void **state)
{
	struct hd_launcher_settings s = { .slurm = { .partition = "all", .account = "", .time = "1-0:0:30",
		.requeue = true } };
	struct hd_diag diag;

	(void)state;
	assert_string_equal(submission("v0.0.38", &s, 1, &diag), "{\"script\":\"#!/bin/sh\\n\",\"job\":{"
		"\"name\":\"heddle-t-1\",\"array\":\"0-2\",\"nodes\":1,"
		"\"tasks\":1,\"exclusive\":\"exclusive\","
		"\"comment\":\"heddle: t\",\"requeue\":true,\"partition\":\"all\",\"open_mode\":\"append\","
		"\"standard_output\":\"/r/100%%/log/slurm-%A_%a.log\","
		"\"current_working_directory\":\"/home\","
		"\"time_limit\":\"1-0:0:30\",\"environment\":{\"PATH\":\"/bin\",\"A\":\"\\\"\\u003c\\n\"}}}");
	s.slurm.signal_s = 120;
	s.slurm.account = "lab";
	s.slurm.extra[s.slurm.nextra++] = "--cpus-per-task=8";
	s.slurm.extra[s.slurm.nextra++] = "-C v100";
	s.slurm.extra[s.slurm.nextra++] = "--gres=gpu:v100:2,gpu:1";
	assert_string_equal(submission("v0.0.40", &s, 2, &diag), "{\"job\":{\"script\":\"#!/bin/sh\\n\","
		"\"name\":\"heddle-t-1\",\"array\":\"0-2\",\"nodes\":\"2\",\"tasks_per_node\":1,"
		"\"comment\":\"heddle: t\",\"requeue\":true,\"partition\":\"all\",\"account\":\"lab\","
		"\"open_mode\":[\"APPEND\"],\"standard_output\":\"/r/100%%/log/slurm-%A_%a.log\","
		"\"current_working_directory\":\"/home\",\"time_limit\":" WRAPPED(1441) ","
		"\"kill_warning_flags\":[\"BATCH_JOB\"],\"kill_warning_signal\":\"USR1\","
		"\"kill_warning_delay\":"
		WRAPPED(120) ",\"cpus_per_task\":8,\"constraints\":\"v100\","
		"\"tres_per_node\":\"gres/gpu:v100:2,gres/gpu:1\","
		"\"environment\":[\"PATH=/bin\",\"A=\\\"\\u003c\\n\"]}}");
}

static void what_a_version_has_no_field_for_is_named(void **state)
{
	static const struct { const char *version, *extra; uint32_t signal_s; const char *says; } cases[] = {
		{ "v0.0.38", NULL, 120, "slurmrestd v0.0.38 has no field for launch.slurm.signal" },
		{ "v0.0.38", "--gres=gpu:1", 0, "v0.0.38 has no field for launch.slurm.extra: --gres=gpu:1" },
		{ "v0.0.39", "--gres=gpu:1", 0, "v0.0.39 has no field for launch.slurm.extra: --gres=gpu:1" },
		{ "v0.0.43", "--nodelist=k1", 0, "launch.slurm.extra: --nodelist=k1" },
		{ "v0.0.43", "--qos", 0, "launch.slurm.extra: --qos" },
		{ "v0.0.43", "--ntasks=x", 0, "launch.slurm.extra: --ntasks=x" },
		{ "v0.0.43", "--cpus-per-task-x=1", 0, "launch.slurm.extra" },
	};
	struct hd_diag diag;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct hd_launcher_settings s = { .slurm = { .partition = "", .account = "", .time = "",
			.signal_s = cases[i].signal_s, .extra = { cases[i].extra }, .nextra =
			!!cases[i].extra } };
		CHECK(!submission(cases[i].version, &s, 1, &diag) && strstr(diag.text, cases[i].says), "%s",
			diag.text);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(jobs_are_those_that_squeue_prints),
		cmocka_unit_test(what_is_not_understood_is_refused_as_a_whole),
		cmocka_unit_test(errors_are_slurms_own_words),
		cmocka_unit_test(nodes_have_the_types_that_sinfo_says),
		cmocka_unit_test(a_submission_says_what_the_scripts_lines_say),
		cmocka_unit_test(what_a_version_has_no_field_for_is_named),
	};
	return cmocka_run_group_tests(tests, begin, end);
}
