#include "run/devices.h"

#include <stdio.h>
#include <string.h>

#include "job/sets.h"
#include "tests/check.h"

static const char yaml[] = "model: {use: builtin:mlp}\ndata: {kind: synthetic}\n"
	"batch: {global: 16, virtual_nodes: 6}\njob: {steps: 5}\n";

struct desk { struct hd_arena arena; struct hd_job job; struct hd_diag diag; };

static int enter(void **state)
{
	static struct desk d;

	memset(&d, 0, sizeof d);
	hd_arena_init(&d.arena, 0);
	*state = &d;
	return 0;
}

static int leave(void **state)
{
	hd_arena_finish(&((struct desk *)*state)->arena);
	return 0;
}

static const struct hd_job *job_with(struct desk *d, const char *word)
{
	struct hd_job_sets sets;
	struct hd_text warnings;

	hd_text_init(&warnings, &d->arena);
	assert_int_equal(hd_job_sets_init(&sets, 1, &d->arena, &d->diag), HD_OK);
	if (word)
		assert_int_equal(hd_job_sets_word(&sets, word, &d->diag), HD_OK);
	CHECK(!hd_job_parse(&d->job, "job.yaml", yaml, sizeof yaml - 1, sets.set, sets.n, &d->arena, &d->diag,
		&warnings), "%s", d->diag.text);
	return &d->job;
}

static void words_become_kind_devices_and_threads(void **state)
{
	static const struct { const char *text, *kind; uint32_t ndevices, nthreads, cores; } cases[] = {
		{ "4", "cpu", 4, 1, 0 }, { "cores:4", "cpu", 4, 1, 0 }, { "cpu:1", "cpu", 1, 1, 0 },
		{ "cores:2x3", "cpu", 2, 3, 0 }, { "2x3", "cpu", 2, 3, 0 }, { "reference:1", "reference", 1, 1, 0 },
		{ "null:1024", "null", 1024, 1, 0 }, { "cores:1x256", "cpu", 1, 256, 0 },
		{ "auto", "cpu", 0, 1, 0 }, { "auto:8", "cpu", 0, 1, 8 },
		{ "paced:4", "null", 4, 1, 0 }, { "paced:1,0.5:10", "null", 2, 1, 0 },
	};
	struct desk *d = *state;
	const struct hd_job *job = job_with(d, NULL);

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_run_options o = { 0 };
		CHECK(!hd_devices_ask(&o, job, cases[i].text, NULL, 4, &d->diag), "%s: %s", cases[i].text,
			d->diag.text);
		assert_string_equal(o.worker.kind, cases[i].kind);
		assert_int_equal(o.worker.ndevices, cases[i].ndevices);
		assert_int_equal(o.worker.nthreads, cases[i].nthreads);
		assert_int_equal(o.auto_cores, cases[i].cores);
	}
}

static void wrong_words_are_answered_with_those_that_there_are(void **state)
{
	static const struct { const char *text, *says; } cases[] = {
		{ "", "write a number" }, { "0", "write a number" }, { "1025", "write a number" },
		{ "2x0", "write a number" }, { "2x257", "write a number" }, { "x2", "write a number" },
		{ "cores:", "write a number" }, { "gpu:1", "this build has auto" }, { "core:1", "this build has auto" },
		{ ":1", "this build has auto" }, { "auto:0", "this build has auto" }, { "auto:2000", "this build has auto" },
		{ "autos", "write a number" }, { "paced:", "paced:N, or" }, { "paced:0", "paced:N, or" },
		{ "paced:1.5", "paced:N, or" }, { "paced:1,0", "paced:N, or" }, { "paced:2:0", "paced:N, or" },
		{ "paced:1,,2", "paced:N, or" }, { "paced:2:x", "paced:N, or" }, { "paced:1,2,", "paced:N, or" },
		 { "-1", "write a number" },
	};
	struct desk *d = *state;
	const struct hd_job *job = job_with(d, NULL);

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_run_options o = { 0 };
		d->diag.text[0] = '\0';
		CHECK(hd_devices_ask(&o, job, cases[i].text, NULL, 4, &d->diag) == HD_E_INVAL, "%s",
			cases[i].text);
		CHECK(strstr(d->diag.text, cases[i].says), "%s: %s", cases[i].text, d->diag.text);
	}
}

/* The job has 6 virtual nodes. */
static void threads_alone_divide_the_cores(void **state)
{
	static const struct { const char *devices; uint64_t threads; uint32_t ncores, ndevices; } cases[] = {
		{ "auto", 2, 8, 4 }, { "auto", 3, 8, 2 }, { "auto", 16, 8, 1 }, { "auto", 1, 64, 6 },
		{ "auto:4", 2, 64, 2 }, { "5", 2, 1, 5 },
	};
	struct desk *d = *state;
	const struct hd_job *job = job_with(d, NULL);

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_run_options o = { 0 };
		assert_int_equal(hd_devices_ask(&o, job, cases[i].devices, &cases[i].threads, cases[i].ncores,
			&d->diag), HD_OK);
		CHECK(o.worker.ndevices == cases[i].ndevices && o.worker.nthreads == cases[i].threads,
			"case %zu: %u x %u", i, o.worker.ndevices, o.worker.nthreads);
	}
	for (uint64_t t = 0; t <= 257; t += 257) {
		struct hd_run_options o = { 0 };
		assert_int_equal(hd_devices_ask(&o, job, "auto", &t, 8, &d->diag), HD_E_INVAL);
	}
}

static void an_option_counts_more_than_the_job(void **state)
{
	struct desk *d = *state;
	struct hd_run_options o = { 0 };

	assert_int_equal(hd_devices_ask(&o, job_with(d, "workers.devices=reference:2"), NULL, NULL, 8,
		&d->diag), HD_OK);
	assert_string_equal(o.worker.kind, "reference");
	assert_int_equal(o.worker.ndevices, 2);
	assert_int_equal(hd_devices_ask(&o, &d->job, "3", NULL, 8, &d->diag), HD_OK);
	assert_string_equal(o.worker.kind, "cpu");
	assert_int_equal(o.worker.ndevices, 3);
	assert_int_equal(o.worker.memory_limit_bytes, 0);
	assert_int_equal(hd_devices_ask(&o, job_with(d, "workers.memory=1GiB"), "3", NULL, 8, &d->diag),
		HD_OK);
	assert_int_equal(o.worker.memory_limit_bytes, UINT64_C(1) << 30);
}

static void devices_that_wait_have_a_pace_and_speeds_of_their_own(void **state)
{
	static const struct { const char *text; double pace, at[3]; uint32_t n; } cases[] = {
		{ "paced:3", 1, { 0 }, 0 }, { "paced:3:10", 10, { 0 }, 0 }, { "paced:1,0.25", 1, { 1, 0.25 }, 2 },
		{ "paced:2,1,0.5:0.1", 0.1, { 2, 1, 0.5 }, 3 }, { "4", 0, { 0 }, 0 } };
	struct hd_run_options o = { 0 };
	struct hd_diag diag = { "" };
	struct desk *d = *state;
	const struct hd_job *job = job_with(d, NULL);

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		o = (struct hd_run_options){ 0 };
		CHECK(!hd_devices_ask(&o, job, cases[i].text, NULL, 4, &diag), "%s: %s", cases[i].text,
			diag.text);
		CHECK(o.pace == cases[i].pace && o.paced.n == cases[i].n && !memcmp(o.paced.at, cases[i].at,
			cases[i].n * sizeof *o.paced.at), "%s: %g", cases[i].text, o.pace);
	}
	assert_int_equal(hd_devices_speeds(&o, "1,0.5,3e1", &diag), HD_OK);
	assert_true(o.speeds.n == 3 && o.speeds.at[1] == 0.5 && o.speeds.at[2] == 30);
	assert_int_equal(hd_devices_speeds(&o, "1,-1", &diag), HD_E_INVAL);
	assert_non_null(strstr(diag.text, "a number above 0 for each device"));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(words_become_kind_devices_and_threads, enter, leave),
		cmocka_unit_test_setup_teardown(wrong_words_are_answered_with_those_that_there_are, enter,
			leave),
		cmocka_unit_test_setup_teardown(devices_that_wait_have_a_pace_and_speeds_of_their_own, enter,
			leave),
		cmocka_unit_test_setup_teardown(threads_alone_divide_the_cores, enter, leave),
		cmocka_unit_test_setup_teardown(an_option_counts_more_than_the_job, enter, leave),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
