#include "pipeline/staged.h"

#include <stdlib.h>
#include <string.h>

#include "pipeline/generate.h"
#include "tests/planning.h"
#include "tests/check.h"

static const struct hd_plan_job job8 = { .nvns = 8, .nchunks = 5, .nstages = 1 };
static const uint32_t cuts[] = { 0, 3, 5, 9, 11, 12, 20, 21 };

static enum hd_err make(struct hd_plan *plan, const char *name, uint32_t p, uint32_t v, uint32_t d,
	const struct hd_plan_job *job, struct hd_diag *diag)
{
	struct hd_schedule pipeline[4];

	for (uint32_t k = 0; k < d; k++) {
		const struct hd_schedule_ask ask = { .name = name, .p = p, .v = v,
			.m = job->nvns / d + (k < job->nvns % d) };
		enum hd_err err = hd_schedule_make(&pipeline[k], &ask, &arena, diag);
		if (err)
			return err;
	}
	return hd_plan_staged(plan, job, pipeline, d, cuts, false, &arena, diag);
}

static void every_flush_schedule_makes_a_plan_that_prints_and_parses(void **state)
{
	(void)state;
	for (const struct hd_schedule_kind *k = hd_schedule_kinds; k->name; k++)
		for (uint32_t p = 2; p <= 3; p++)
			for (uint32_t d = 1; d <= 3; d++) {
				struct hd_plan_job job = { .nvns = 4 * p * d + (d > 1), .nchunks = 5,
					.nstages = 1 };
				struct hd_plan plan, again;
				struct hd_diag diag = { "" };
				struct hd_text text, same;
				if (k->update != HD_UPDATE_FLUSH || (uint64_t)k->vmin * p > 8 ||
					!strcmp(k->name, "data-parallel") || !strcmp(k->name, "1f1b-rr"))
					continue;
				enum hd_err err = make(&plan, k->name, p, k->vmin, d, &job, &diag);
				if (err && strstr(diag.text, "virtual nodes"))
					continue;                 /* K29: this number of them is not its */
				CHECK(!err, "%s p %u d %u: %s", k->name, p, d, diag.text);
				assert_int_equal(plan.nranks, p * d);
				hd_text_init(&text, &arena);
				assert_int_equal(hd_plan_print(&plan, &text), HD_OK);
				CHECK(hd_plan_parse(&again, text.at, text.len, "t.plan", &arena,
					&diag) == HD_OK,
					"%s", diag.text);
				hd_text_init(&same, &arena);
				assert_int_equal(hd_plan_print(&again, &same), HD_OK);
				assert_string_equal(text.at, same.at);
				CHECK(hd_plan_staged_check(&again, &job, NULL, &diag) == HD_OK, "%s",
					diag.text);
			}
}

static void pipelines_have_neighbouring_virtual_nodes(void **state)
{
	struct hd_plan_job job = { .nvns = 9, .nchunks = 5, .nstages = 1 };
	struct hd_plan plan;
	struct hd_diag diag = { "" };

	(void)state;
	CHECK(make(&plan, "1f1b", 2, 1, 2, &job, &diag) == HD_OK, "%s", diag.text);
	for (uint32_t v = 0; v < 9; v++)
		assert_int_equal(plan.map[v], v < 5 ? 0 : 2);
	for (uint32_t s = 0; s < 2; s++)
		assert_int_equal(plan.first[s], cuts[s]);
}

/* ---- what is refused ---- */

static void no_norm(struct hd_plan *p)
{
	for (uint32_t i = 0; i < p->list[0].len; i++)
		if (p->list[0].at[i].op == HD_INS_NORM) {
			memmove(&p->list[0].at[i], &p->list[0].at[i + 1], (p->list[0].len - i - 1) *
				sizeof *p->list[0].at);
			p->list[0].len--;
			return;
		}
}

static void no_back(struct hd_plan *p)
{
	for (uint32_t i = 0; i < p->list[1].len; i++)
		if (p->list[1].at[i].op == HD_INS_B) {
			p->list[1].at[i] = (struct hd_ins){ .op = HD_INS_PIN, .stage = 1 };
			return;
		}
}

static void swap_sends(struct hd_plan *p)
{
	struct hd_ins *first = NULL;

	for (uint32_t i = 0; i < p->list[0].len; i++)
		if (p->list[0].at[i].op == HD_INS_SA) {
			if (first) {
				struct hd_ins t = *first;
				*first = p->list[0].at[i];
				p->list[0].at[i] = t;
				return;
			}
			first = &p->list[0].at[i];
		}
}

static void to_host(struct hd_plan *p)
{
	for (uint32_t i = 0; i < p->list[0].len; i++)
		if (p->list[0].at[i].op == HD_INS_LD) {
			p->list[0].at[i].op = HD_INS_OFF;
			return;
		}
}

static void other_map(struct hd_plan *p) { p->map[3] = 1; }
static void far_owner(struct hd_plan *p) { p->owner[2] = 9; }
static void no_cuts(struct hd_plan *p) { p->first = NULL; }
static void fewer(struct hd_plan *p) { p->nvns = 7; }

static void plans_that_no_run_can_take_are_refused(void **state)
{
	static const struct { void (*spoil)(struct hd_plan *plan); const char *words; } bad[] = {
		{ no_norm, "NORM" }, { no_back, "no backward" }, { swap_sends, "activation" },
		{ to_host, "no runtime for OFF" }, { other_map, "virtual node 3 is mapped to rank 1" },
		{ far_owner, "chunk 2 is owned by rank 9" }, { no_cuts, "no line cuts" },
		{ fewer, "it is for 7 virtual nodes" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct hd_plan plan;
		struct hd_diag diag = { "" };
		CHECK(make(&plan, "1f1b", 2, 1, 1, &job8, &diag) == HD_OK, "%s", diag.text);
		bad[i].spoil(&plan);
		struct hd_report report;
		CHECK(hd_plan_staged_check(&plan, &job8, &report, &diag) == HD_E_BADPLAN, "case %zu", i);
		CHECK(report.total && report.len, "case %zu is no finding", i);
		CHECK(strstr(diag.text, bad[i].words), "case %zu: %s", i, diag.text);
	}
}

static void delayed_updates_and_one_stage_are_refused_by_name(void **state)
{
	struct hd_plan plan;
	struct hd_diag diag = { "" };
	const struct hd_plan_job lockstep = { .nvns = 8, .nchunks = 5, .nstages = 1, .lockstep = true };

	(void)state;
	assert_int_equal(make(&plan, "2bw", 2, 1, 1, &job8, &diag), HD_E_BADPLAN);
	CHECK(strstr(diag.text, "delays updates (2bw)"), "%s", diag.text);
	diag.text[0] = 0;
	assert_int_equal(make(&plan, "gpipe", 1, 1, 1, &job8, &diag), HD_E_INVAL);
	CHECK(strstr(diag.text, "one stage is no pipeline"), "%s", diag.text);
	diag.text[0] = 0;
	assert_int_equal(make(&plan, "1f1b", 2, 1, 1, &lockstep, &diag), HD_E_REFUSED);
	CHECK(strstr(diag.text, "model.bn: ghost"), "%s", diag.text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_flush_schedule_makes_a_plan_that_prints_and_parses),
		cmocka_unit_test(pipelines_have_neighbouring_virtual_nodes),
		cmocka_unit_test(plans_that_no_run_can_take_are_refused),
		cmocka_unit_test(delayed_updates_and_one_stage_are_refused_by_name),
	};

	return cmocka_run_group_tests(tests, make_arena, drop_arena);
}
