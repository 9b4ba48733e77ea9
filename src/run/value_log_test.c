#include "run/value_log.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "sys/file_sim.h"
#include "run/rundir.h"
#include "tests/check.h"

/* Records written by hand, and what is found in them; the engine's own are compared by
 * tests/program_values.sh. */

#define NAMES "{\"graph\":[\"#0 F embed of wte\",\"#1 F gelu\",\"#2 I gelu\"]," \
	"\"tensors\":[\"wte\"],\"segments\":[[0,0,40],[0,40,24]]}\n"
static const char names[] = NAMES;

struct rig { struct hd_fs_sim sim; struct hd_arena arena; };

static void open_rig(struct rig *rig)
{
	hd_fs_sim_init(&rig->sim);
	hd_arena_init(&rig->arena, 0);
}

static void close_rig(struct rig *rig)
{
	hd_arena_finish(&rig->arena);
	hd_fs_sim_finish(&rig->sim);
}

static void put(struct rig *rig, const char *run, uint32_t worker, const char *first, const char *lines)
{
	struct hd_lines file = { 0 };
	char path[60];

	snprintf(path, sizeof path, "/%s/values", run);
	assert_int_equal(hd_fs_mkdirs(&rig->sim.fs, path, NULL), HD_OK);
	snprintf(path, sizeof path, "/%s/values/%u.ndjson", run, worker);
	assert_int_equal(hd_lines_open(&file, &rig->sim.fs, path, NULL), HD_OK);
	if (*first)
		assert_int_equal(hd_lines_add(&file, first, strlen(first), NULL), HD_OK);
	/* the last line may be torn */
	if (*lines)
		assert_int_equal(hd_file_write(&file.file, lines, strlen(lines), NULL), HD_OK);
	assert_int_equal(hd_lines_close(&file, NULL), HD_OK);
}

static void put_job(struct rig *rig)
{
	struct hd_lines file = { 0 };

	assert_int_equal(hd_fs_mkdirs(&rig->sim.fs, "/b", NULL), HD_OK);
	assert_int_equal(hd_lines_open(&file, &rig->sim.fs, "/b/" HD_RUN_JOB, NULL), HD_OK);
	assert_int_equal(hd_lines_close(&file, NULL), HD_OK);
}

#define MADE(step, vn, rank, stage, marks) \
	"{\"step\":" #step ",\"vn\":" #vn ",\"rank\":" #rank ",\"stage\":" #stage ",\"made\":[" marks "]}\n"
#define STATE(step, rank, marks) "{\"step\":" #step ",\"rank\":" #rank ",\"state\":[" marks "]}\n"

/* One device, virtual nodes 0 and 1, steps 0 and 1. */
static const char one[] =
	MADE(0, 0, 0, 0, "[0,\"10\"],[1,\"11\"],[2,\"12\"]")
	MADE(0, 1, 0, 0, "[0,\"20\"],[1,\"21\"],[2,\"22\"]")
	STATE(0, 0, "[0,\"5\"],[1,\"6\"]")
	MADE(1, 0, 0, 0, "[0,\"30\"],[1,\"31\"],[2,\"32\"]")
	MADE(1, 1, 0, 0, "[0,\"40\"],[1,\"41\"],[2,\"42\"]")
	STATE(1, 0, "[0,\"7\"],[1,\"8\"]");

/* Two workers, a stage each: of worker 1 nothing, or an error. */
static const char low[] =
	MADE(0, 0, 0, 0, "[0,\"10\"]") MADE(0, 1, 0, 0, "[0,\"20\"]") STATE(0, 0, "[0,\"5\"]")
	MADE(1, 1, 0, 0, "[0,\"40\"]") MADE(1, 0, 0, 0, "[0,\"30\"]") STATE(1, 0, "[0,\"7\"]");

static void say_agreement(const struct hd_value_difference *d, char *says, size_t cap)
{
	struct hd_text text;

	hd_text_fixed(&text, says, cap);
	hd_text_addf(&text, "agree %llu", (unsigned long long)d->compared);
	if (d->alone[0] || d->alone[1])
		hd_text_addf(&text, ", alone %llu %llu", (unsigned long long)d->alone[0],
			(unsigned long long)d->alone[1]);
	if (d->torn[0] || d->torn[1])
		hd_text_addf(&text, ", torn %llu %llu", (unsigned long long)d->torn[0],
			(unsigned long long)d->torn[1]);
}

static void the_first_difference_is_found_whatever_the_plan(void **state)
{
	static const struct {
		const char *high, *says;
	} rows[] = {
		{ MADE(0, 0, 1, 1, "[1,\"11\"],[2,\"12\"]") MADE(1, 1, 1, 1, "[2,\"42\"],[1,\"41\"]")
			STATE(1, 1, "[1,\"8\"]"), "agree 11, alone 5 0" },
		/* two nodes of virtual node 1 differ, and one of 0: that of 0 comes first */
		{ MADE(0, 1, 0, 1, "[1,\"99\"],[2,\"99\"]") MADE(0, 0, 1, 1, "[1,\"11\"],[2,\"13\"]"),
			"step 0 vn 0 #2 I gelu, 2 vns, A 0.0.0 B 1.1.1" },
		{ MADE(0, 1, 0, 1, "[1,\"99\"],[2,\"99\"]"), "step 0 vn 1 #1 F gelu, 1 vns, A 0.0.0 B 1.0.1" },
		{ STATE(0, 3, "[1,\"9\"]") MADE(1, 0, 0, 1, "[1,\"99\"]"),
			"step 0 state wte, elements 40 to 63, A 0.0.0 B 1.3.0" },
		/* computed again after a loss */
		{ MADE(1, 0, 0, 1, "[2,\"32\"]") MADE(1, 0, 1, 1, "[2,\"33\"]"),
			"step 1 vn 0 #2 I gelu, 1 vns, B 1.0.1 B 1.1.1" },
		/* torn */
		{ MADE(0, 0, 1, 1, "[1,\"11\"]") "{\"step\":0,\"vn\":1,\"rank\":0,\"stage\":1,\"ma",
			"agree 7, alone 9 0, torn 0 1" },
		{ MADE(0, 0, 1, 1, "[1,\"11\"]") "{\"step\":0,\n", "agree 7, alone 9 0, torn 0 1" },
		{ "{\"step\":0,\"vn\n" NAMES MADE(0, 0, 1, 1, "[1,\"11\"]"), "agree 7, alone 9 0, torn 0 1" },
		{ MADE(2, 0, 1, 1, "[1,\"11\"],[2,\"12\"]"), "agree 6, alone 10 2" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct hd_value_difference d;
		struct hd_diag diag = { "" };
		struct rig rig;
		char says[300], vn[40] = "state";
		open_rig(&rig);
		put(&rig, "a", 0, names, one);
		put(&rig, "b", 0, names, low);
		put(&rig, "b", 1, names, rows[i].high);
		CHECK(hd_value_diff(&rig.sim.fs, "/a", "/b", &rig.arena, &d, &diag) == HD_OK, "%s",
			diag.text);
		if (d.vn != HD_NONE)
			snprintf(vn, sizeof vn, "vn %u", d.vn);
		if (!d.found)
			say_agreement(&d, says, sizeof says);
		else
			snprintf(says, sizeof says, "step %llu %s %s, %s%s %u.%u.%u %s %u.%u.%u",
				(unsigned long long)d.step, vn, d.what, d.nvns == 0 ? "" : d.nvns == 1 ?
				"1 vns, " : "2 vns, ", d.within ? d.within : "A", d.a.worker, d.a.rank,
				d.a.stage, d.within ? d.within : "B", d.b.worker, d.b.rank, d.b.stage);
		CHECK(!strcmp(says, rows[i].says), "row %zu: \"%s\", not \"%s\"", i, says, rows[i].says);
		close_rig(&rig);
	}
}

static void what_cannot_be_compared_is_said(void **state)
{
	static const struct { const char *first, *lines, *says; enum hd_err err; } rows[] = {
		{ NULL, "job", "/b has no record of values: run the job with -s trace.values=1",
			HD_E_NOTFOUND },
		{ NULL, NULL, "/b is no folder of a run, which alone has a record of values: --explain "
			"compares two runs", HD_E_NOTFOUND },
		{ "{\"graph\":[\"#0 F embed of wte\",\"#1 F relu\"],\"tensors\":[],\"segments\":[]}\n", "",
			"other graphs, whose values say nothing of one another: \"#1 F gelu\" of /a is "
			"\"#1 F relu\" of /b", HD_E_INPUT },
		{ "{\"graph\":[\"#0 F embed of wte\"],\"tensors\":[],\"segments\":[]}\n", "",
			"other graphs, whose values say nothing of one another: \"#1 F gelu\" of /a is "
			"\"no node\" of /b", HD_E_INPUT },
		{ names, "{\"step\":0,\"vn\":1,\"rank\":0,\"stage\":0,\"made\":[[1]]}\n",
			"/b/values/0.ndjson, line 2: no pair of a number and a digest", HD_E_INPUT },
		{ "{\"graph\":[],\"segments\":[]}\n", "", "/b/values/0.ndjson, line 1: a record: the whole "
			"lacks the member \"tensors\"", HD_E_INPUT },
		{ names, "{\"step\":0,\"vn\n" MADE(1, 0, 0, 0, "[0,\"30\"]"), NULL, HD_E_INPUT },
		{ names, "{\"step\":-1,\"vn\":1,\"rank\":0,\"stage\":0,\"made\":[]}\n", NULL, HD_E_INPUT },
		{ "", "{\"step\":1,\"vn\":1,\"rank\":0,\"stage\":0,\"made\":[]}\n",
			"/b/values: no file of it says which graph it is of", HD_E_NOTFOUND },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct hd_value_difference d;
		struct hd_diag diag = { "" };
		struct rig rig;
		open_rig(&rig);
		put(&rig, "a", 0, names, one);
		if (rows[i].first)
			put(&rig, "b", 0, rows[i].first, rows[i].lines);
		else if (rows[i].lines)
			put_job(&rig);
		const enum hd_err err = hd_value_diff(&rig.sim.fs, "/a", "/b", &rig.arena, &d, &diag);
		CHECK(err == rows[i].err && (!rows[i].says || !strcmp(diag.text, rows[i].says)),
			"row %zu: %d \"%s\"", i, err, diag.text);
		close_rig(&rig);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_difference_is_found_whatever_the_plan),
		cmocka_unit_test(what_cannot_be_compared_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
