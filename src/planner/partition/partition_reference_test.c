/* Stored answers of the PipeDream program for its published profiles, of its recurrences as the paper has
 * them, and the splits that our tie-breaks choose (HEDDLE_SHARED/data/pipedream/reference.json). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "planner/partition.h"
#include "tests/planning.h"
#include "tests/check.h"

#define TP_REL 1e-9                               /* what the stored times were written with is finer */
enum { MODELS = 16 };

static const struct hd_json *answers;
static struct { const char *name; struct hd_cuts cuts; } models[MODELS];

static int find_answers(void **state)
{
	char *text;

	make_arena(state);
	text = hd_shared_text("pipedream/reference.json");
	return text ? (int)hd_json_parse(&arena, "reference.json", text, strlen(text), &answers, NULL) : 0;
}

/* "inception_c" is inception_v3 with its branches compressed. */
static const struct hd_cuts *cuts_of(const char *model)
{
	bool compressed = !strcmp(model, "inception_c");
	struct hd_profile p;
	struct hd_diag diag = { "" };
	char name[64];
	size_t i = 0;

	for (; i < MODELS && models[i].name; i++)
		if (!strcmp(models[i].name, model))
			return &models[i].cuts;
	assert_true(i < MODELS);
	snprintf(name, sizeof name, "pipedream/%s.graph.txt", compressed ? "inception_v3" : model);
	char *text = hd_shared_text(name);
	CHECK(text, "%s is not there", name);
	CHECK(hd_profile_import(&p, text, strlen(text), name, &arena, &diag) == HD_OK, "%s", diag.text);
	CHECK(hd_cuts_make(&models[i].cuts, &p, (struct hd_cuts_how){ .compress = compressed }, name, &arena,
		&diag) == HD_OK, "%s", diag.text);
	models[i].name = model;
	return &models[i].cuts;
}

static double number(const struct hd_json *row, const char *key)
{
	const struct hd_json *at = hd_json_find(row, key);
	double v = 0;

	if (at && hd_json_kind(at) != HD_JSON_NULL)
		CHECK(hd_json_as_f64(at, &v, NULL) == HD_OK, "%s", key);
	return v;
}

static bool flag(const struct hd_json *row, const char *key)
{
	bool v = false;

	if (hd_json_find(row, key))
		CHECK(hd_json_get_bool(row, key, &v, NULL) == HD_OK, "%s", key);
	return v;
}

static const char *word(const struct hd_json *row, const char *key)
{
	const char *v = NULL;

	CHECK(hd_json_get_text(row, key, &v, NULL) == HD_OK, "%s", key);
	return v;
}

static struct hd_part_how how_of(const struct hd_json *row, enum hd_part_variant variant)
{
	struct hd_part_how how = { .variant = variant, .straight = flag(row, "straight"),
		.fewer = flag(row, "fewer") };
	const struct hd_json *machines = hd_json_find(row, "machines"),
		*bandwidth = hd_json_find(row, "bandwidth");

	how.activations = variant == HD_PART_CODE ? number(row, "activation_ratio") : 0;
	how.memory_bytes = number(row, "memory");
	for (; how.nlevels < hd_json_count(machines); how.nlevels++) {
		int64_t n = 0;
		CHECK(hd_json_as_i64(hd_json_item(machines, how.nlevels), 1, 1000, &n, NULL) == HD_OK,
			"machines");
		how.level[how.nlevels].machines = (uint32_t)n;
		CHECK(hd_json_as_f64(hd_json_item(bandwidth, how.nlevels),
			&how.level[how.nlevels].bytes_per_s, NULL) == HD_OK, "bandwidth");
	}
	return how;
}

static struct hd_partition solved(const struct hd_json *row, struct hd_part_how how, size_t i,
	struct hd_text *split, struct hd_arena *work)
{
	struct hd_partition part;
	struct hd_diag diag = { "" };

	CHECK(hd_part_solve(&part, cuts_of(word(row, "model")), &how, work, &diag) == HD_OK,
		"row %zu (%s): %s", i, word(row, "model"), diag.text);
	hd_text_init(split, work);
	hd_part_print(&part, how.nlevels, split);
	return part;
}

/* One search or the other; the answer is the same. */
static void check_row(const struct hd_json *row, struct hd_part_how how, size_t i)
{
	double tp = number(row, "tp_s");

	for (how.search = HD_PART_AUTO; how.search <= HD_PART_BOUND; how.search++) {
		struct hd_arena work;
		struct hd_text split;
		hd_arena_init(&work, 0);
		struct hd_partition part = solved(row, how, i, &split, &work);
		CHECK(fabs(part.time_s - tp) <= TP_REL * tp, "row %zu (%s): %.17g s, not %.17g", i,
			word(row, "model"), part.time_s, tp);
		CHECK(!strcmp(split.at, word(row, "split_canonical")), "row %zu (%s):\n  have %s\n  want %s",
			i, word(row, "model"), split.at, word(row,
			"split_canonical"));
		if (hd_json_find(row, "gain_over_dp"))
			CHECK(fabs(part.data_s / part.time_s - number(row, "gain_over_dp")) <= 0.5001e-4,
				"row %zu (%s): gain %.6f", i, word(row, "model"),
				part.data_s / part.time_s);
		if (hd_json_find(row, "t_one_s"))
			CHECK(fabs(part.one_s - number(row, "t_one_s")) <= TP_REL,
				"row %zu (%s): %.9g on one machine", i, word(row, "model"), part.one_s);
		hd_arena_finish(&work);
	}
	if (hd_json_find(row, "states"))
		assert_int_equal(cuts_of(word(row, "model"))->n, (int)number(row, "states"));
}

static const struct hd_json *rows_of(const char *key, size_t least)
{
	const struct hd_json *rows = answers ? hd_json_find(answers, key) : NULL;

	if (rows)
		CHECK(hd_json_count(rows) >= least, "%zu rows of %s", hd_json_count(rows), key);
	return rows;
}

static void the_programs_answers_are_ours(void **state)
{
	const struct hd_json *rows = rows_of("runs", 126);
	(void)state;

	if (!rows)
		SKIP("data/pipedream/reference.json is neither in HEDDLE_SHARED nor in tests");
	for (size_t i = 0; i < hd_json_count(rows); i += SANITIZED ? 10 : 1)
		check_row(hd_json_item(rows, i), how_of(hd_json_item(rows, i), HD_PART_CODE), i);
}

static void the_papers_recurrences_have_the_stored_values(void **state)
{
	const struct hd_json *rows = rows_of("variants", 48);
	(void)state;

	if (!rows)
		SKIP("data/pipedream/reference.json is neither in HEDDLE_SHARED nor in tests");
	for (size_t i = 0; i < hd_json_count(rows); i += SANITIZED ? 5 : 1) {
		const struct hd_json *row = hd_json_item(rows, i);
		uint32_t v = 0;
		while (strcmp(hd_part_variant_name((enum hd_part_variant)v), word(row, "variant")) != 0)
			v++;
		check_row(row, how_of(row, (enum hd_part_variant)v), i);
	}
}

/* SOSP 2019, table 1: 16 GPUs at 10 Gb/s. */
static void the_papers_plans_for_sixteen_gpus_come_out(void **state)
{
	static const struct { const char *model, *split; } published[] = {
		{ "vgg16", "L1: 0-31 x15 31-40 x1" }, { "alexnet", "L1: 0-13 x15 13-22 x1" }, { "resnet50", "L1: 0-240 x16" },
	};
	(void)state;

	if (!answers)
		SKIP("data/pipedream/reference.json is neither in HEDDLE_SHARED nor in tests");
	for (size_t i = 0; i < sizeof published / sizeof *published; i++) {
		struct hd_part_how how = { .variant = HD_PART_PAPER, .nlevels = 1,
			.level = { { 16, 1.25e9 } } };
		struct hd_partition part;
		struct hd_text split;
		struct hd_diag diag = { "" };
		CHECK(hd_part_solve(&part, cuts_of(published[i].model), &how, &arena, &diag) == HD_OK, "%s",
			diag.text);
		hd_text_init(&split, &arena);
		hd_part_print(&part, 1, &split);
		assert_string_equal(split.at, published[i].split);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_programs_answers_are_ours),
		cmocka_unit_test(the_papers_recurrences_have_the_stored_values),
		cmocka_unit_test(the_papers_plans_for_sixteen_gpus_come_out),
	};
	return cmocka_run_group_tests(tests, find_answers, drop_arena);
}
