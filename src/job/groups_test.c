#include <string.h>

#include "job/int.h"
#include "job/testing.h"

/* optim.groups and optim.no_decay as they are read, printed, hashed and refused. */

static void groups_are_read_as_they_stand(void **state)
{
	(void)state;
	must(SMALLEST "optim:\n  lr: 1e-3\n  groups:\n    - params: [\"*.bias\", \"ln_*\"]\n      decay: 0\n"
		"    - {params: [fc1.weight], lr: 1e-4, decay: 0.3}\n    - {params: [a], lr_scale: 0.5}\n"
		"    - {params: [b], freeze: true}\n    - {params: [c]}\n");
	const struct hd_job_value *v = &job.value[HD_JOB_GROUPS];
	assert_int_equal(v->ngroups, 5);
	assert_int_equal(v->group[0].nparams, 2);
	assert_string_equal(v->group[0].params[1].text, "ln_*");
	assert_true(v->group[0].has_decay && v->group[0].decay == 0 && !v->group[0].has_lr);
	assert_true(v->group[1].has_lr && v->group[1].lr == 1e-4 && v->group[1].decay == 0.3);
	assert_true(v->group[2].has_lr_scale && v->group[2].lr_scale == 0.5);
	assert_true(v->group[3].freeze && !v->group[4].freeze);
	assert_int_equal(v->group[1].line, 10);
}

static void what_is_printed_is_the_same_job(void **state)
{
	static const char *const texts[] = {
		SMALLEST "optim: {groups: [{params: [\"*.bias\"], decay: 0}, {params: [x], freeze: true}, "
			"{params: [y, z], lr: 1e-5, decay: 0.25}, {params: [w], lr_scale: 3}]}\n",
		SMALLEST "optim: {no_decay: norms-and-biases}\n",
		SMALLEST "optim: {no_decay: [norms-and-biases, \"wte.*\"]}\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		must(texts[i]);
		const struct hd_hash hash = job.hash;
		const char *json = json_of(&job);
		must(json);
		CHECK(hd_hash_same(job.hash, hash) && !strcmp(json, json_of(&job)), "%s", json);
	}
}

static struct hd_hash hash_of(const char *text)
{
	must(text);
	return job.hash;
}

#define GROUP(text) SMALLEST "optim: {groups: [{" text "}]}\n"
static void each_setting_of_a_group_is_in_the_hash(void **state)
{
	static const char *const texts[] = {
		SMALLEST, GROUP("params: [a]"), GROUP("params: [b]"), GROUP("params: [a, b]"),
		GROUP("params: [a], lr: 1e-3"), GROUP("params: [a], lr_scale: 1e-3"),
		GROUP("params: [a], lr_scale: 2e-3"), GROUP("params: [a], decay: 0"),
		GROUP("params: [a], decay: 0.1"), GROUP("params: [a], freeze: true"),
		GROUP("params: [a]}, {params: [b]"), GROUP("params: [b]}, {params: [a]"),
		SMALLEST "optim: {no_decay: norms-and-biases}\n", SMALLEST "optim: {no_decay: [a]}\n",
	};
	enum { N = sizeof texts / sizeof *texts };
	struct hd_hash hash[N];

	(void)state;
	for (size_t i = 0; i < N; i++) {
		hash[i] = hash_of(texts[i]);
		for (size_t k = 0; k < i; k++)
			CHECK(!hd_hash_same(hash[i], hash[k]), "%s is %s", texts[i], texts[k]);
	}
	assert_true(hd_hash_same(hash_of(SMALLEST "optim: {no_decay: [], groups: []}\n"), hash[0]));
	assert_true(hd_hash_same(hash_of(SMALLEST "optim: {no_decay: [norms-and-biases]}\n"), hash[12]));
	assert_true(hd_hash_same(hash_of(GROUP("decay: 0, params: [a]")), hash[7]));
}

static void what_makes_no_sense_is_refused_with_its_place(void **state)
{
	static const struct { const char *text, *says; } cases[] = {
		{ GROUP("decay: 0"), "tiny.yaml:5:18: optim.groups: a group needs params" },
		{ GROUP("params: []"), "optim.groups: params takes a list of 1 to 256 patterns" },
		{ GROUP("params: fc1"), "optim.groups: params takes a list" },
		{ GROUP("params: [[a]]"), "optim.groups: params takes texts" },
		{ GROUP("params: [\"\"]"), "optim.groups: params takes texts" },
		{ GROUP("params: [a], lr: fast"), "tiny.yaml:5:36: optim.groups: lr takes one number" },
		{ GROUP("params: [a], lr: [1]"), "optim.groups: lr takes one number" },
		{ GROUP("params: [a], lr: -1"), "optim.groups: lr takes one number" },
		{ GROUP("params: [a], lr: nan"), "optim.groups: lr takes one number" },
		{ GROUP("params: [a], decay: 1e7"), "optim.groups: decay takes one number" },
		{ GROUP("params: [a], lr: 1, lr_scale: 2"), "lr or lr_scale, not both" },
		{ GROUP("params: [a], freeze: yes"), "freeze is true or false" },
		{ GROUP("params: [a], freeze: true, decay: 0"), "has neither rate nor decay" },
		{ GROUP("params: [a], decya: 0"), "did you mean decay?" },
		{ SMALLEST "optim: {groups: {params: [a]}}\n", "optim.groups takes a list" },
		{ SMALLEST "optim: {groups: [a]}\n", "a group is a table" },
		{ SMALLEST "optim: {lr: 0, groups: [{params: [a], lr: 1}]}\n", "optim.lr is 0" },
		/* as a factor it would be no float */
		{ SMALLEST "optim: {lr: 2e-38, groups: [{params: [a], lr: 1e6}]}\n", "1e+06 times optim.lr" },
		{ SMALLEST "optim: {no_decay: norms}\n", "optim.no_decay takes a list: write it as [...], or "
			"norms-and-biases" },
		{ SMALLEST "optim: {no_decay: {a: 1}}\n", "optim.no_decay takes a list" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		CHECK(parse(cases[i].text) == HD_E_INVAL, "%s", cases[i].text);
		CHECK(strstr(diag.text, cases[i].says), "%s\n%s", cases[i].text, diag.text);
	}
}

static void there_is_a_most(void **state)
{
	static char text[8192];
	size_t at = (size_t)snprintf(text, sizeof text, SMALLEST "optim: {groups: [");

	(void)state;
	for (int i = 0; i < HD_JOB_MAX_GROUPS; i++)
		at += (size_t)snprintf(text + at, sizeof text - at, "{params: [p%d]}, ", i);
	const size_t most = at;
	snprintf(text + at, sizeof text - at, "]}\n");
	must(text);
	assert_int_equal(job.value[HD_JOB_GROUPS].ngroups, HD_JOB_MAX_GROUPS);
	snprintf(text + most, sizeof text - most, "{params: [more]}]}\n");
	assert_int_equal(parse(text), HD_E_INVAL);
	assert_non_null(strstr(diag.text, "64 are the most"));
}

static void it_can_be_set_from_outside(void **state)
{
	static const struct hd_job_set set[] = {
		{ "optim.groups", "[{params: ['*.bias'], lr_scale: 2}]", HD_FROM_SET },
		{ "optim.no_decay", "norms-and-biases", HD_FROM_SET },
	};

	(void)state;
	CHECK(parse_with(SMALLEST, set, 2) == HD_OK, "%s", diag.text);
	assert_true(job.value[HD_JOB_GROUPS].group[0].lr_scale == 2);
	assert_string_equal(job.value[HD_JOB_NO_DECAY].arg[0].text, HD_JOB_NORMS_AND_BIASES);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(groups_are_read_as_they_stand),
		cmocka_unit_test(what_is_printed_is_the_same_job),
		cmocka_unit_test(each_setting_of_a_group_is_in_the_hash),
		cmocka_unit_test(what_makes_no_sense_is_refused_with_its_place),
		cmocka_unit_test(there_is_a_most),
		cmocka_unit_test(it_can_be_set_from_outside),
	};

	hd_arena_init(&arena, 0);
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	hd_arena_finish(&arena);
	return failed;
}
