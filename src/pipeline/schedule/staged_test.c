#include "pipeline/staged.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "pipeline/generate.h"
#include "pipeline/schedule_check.h"
#include "tests/planning.h"
#include "tests/check.h"

static const struct hd_plan_job job8 = { .nvns = 8, .nchunks = 5, .nstages = 1 };
static const uint32_t cuts[] = { 0, 3, 5, 9, 11, 12, 20, 21 };

static enum hd_err make_keeping(struct hd_plan *plan, const char *name, uint32_t p, uint32_t v, uint32_t d,
	enum hd_stage_keeps keeps, const struct hd_plan_job *job, struct hd_diag *diag)
{
	struct hd_schedule pipeline[4];

	for (uint32_t k = 0; k < d; k++) {
		const struct hd_schedule_ask ask = { .name = name, .p = p, .v = v,
			.m = job->nvns / d + (k < job->nvns % d) };
		enum hd_err err = hd_schedule_make(&pipeline[k], &ask, &arena, diag);
		if (err)
			return err;
	}
	return hd_plan_staged(plan, job, pipeline, d, cuts, keeps, &arena, diag);
}

static enum hd_err make(struct hd_plan *plan, const char *name, uint32_t p, uint32_t v, uint32_t d,
	const struct hd_plan_job *job, struct hd_diag *diag)
{
	return make_keeping(plan, name, p, v, d, HD_KEEPS_ALL, job, diag);
}

static void plans_that_print_and_parse(enum hd_stage_keeps keeps)
{
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
				enum hd_err err = make_keeping(&plan, k->name, p, k->vmin, d, keeps, &job,
					&diag);
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
				/* as the word says */
				uint32_t n[HD_INS_END] = { 0 };
				for (uint32_t r = 0; r < plan.nranks; r++)
					for (uint32_t i = 0; i < plan.list[r].len; i++)
						n[plan.list[r].at[i].op]++;
				const uint32_t all = plan.nstages * plan.nvns;
				assert_int_equal(n[HD_INS_F], all);
				assert_int_equal(n[HD_INS_R], keeps == HD_KEEPS_INPUT ? all : 0);
				assert_int_equal(n[HD_INS_OFF], keeps == HD_KEEPS_AWAY ? all : 0);
				assert_int_equal(n[HD_INS_ON], keeps == HD_KEEPS_AWAY ? all : 0);
			}
}

static void every_flush_schedule_makes_a_plan_that_prints_and_parses(void **state)
{
	(void)state;
	plans_that_print_and_parse(HD_KEEPS_ALL);
	plans_that_print_and_parse(HD_KEEPS_INPUT);
	plans_that_print_and_parse(HD_KEEPS_AWAY);
}

/* Of stages that differ each is as it was asked to be. */
static void stages_keep_what_each_is_asked_to(void **state)
{
	static const uint8_t keeps[] = { HD_KEEPS_AWAY, HD_KEEPS_INPUT, HD_KEEPS_ALL };
	const struct hd_schedule_ask ask = { .name = "1f1b", .p = 3, .v = 1, .m = 8 };
	struct hd_schedule pipeline;
	struct hd_diag diag = { "" };
	struct hd_plan plan;

	(void)state;
	assert_int_equal(hd_schedule_make(&pipeline, &ask, &arena, &diag), HD_OK);
	CHECK(hd_plan_staged_some(&plan, &job8, &pipeline, 1, cuts, keeps, &arena, &diag) == HD_OK, "%s",
		diag.text);
	for (uint32_t r = 0; r < 3; r++)
		for (uint32_t i = 0; i < plan.list[r].len; i++) {
			const uint8_t op = plan.list[r].at[i].op;
			CHECK((op != HD_INS_OFF && op != HD_INS_ON) || r == 0, "rank %u, #%u", r, i);
			CHECK(op != HD_INS_R || r == 1, "rank %u, #%u", r, i);
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

/* Of d pipelines that have their sends and receives already. */
static void transfers_that_are_there_are_between_ranks_of_one_pipeline(void **state)
{
	const struct hd_schedule_ask ask = { .name = "1f1b", .p = 2, .v = 1, .m = 4 };
	struct hd_schedule skeleton, pipeline[2];
	struct hd_plan plan, same;
	struct hd_text text[2];
	struct hd_diag diag = { "" };

	(void)state;
	assert_int_equal(hd_schedule_make(&skeleton, &ask, &arena, &diag), HD_OK);
	for (int i = 0; i < 2; i++) {
		pipeline[0] = pipeline[1] = skeleton;
		if (i)
			assert_int_equal(hd_schedule_comms(&pipeline[0], &skeleton, &arena, &diag), HD_OK);
		pipeline[1] = pipeline[0];
		CHECK(hd_plan_staged(i ? &same : &plan, &job8, pipeline, 2, cuts, false, &arena,
			&diag) == HD_OK, "%s",
			diag.text);
		hd_text_init(&text[i], &arena);
		assert_int_equal(hd_plan_print(i ? &same : &plan, &text[i]), HD_OK);
	}
	assert_string_equal(text[0].at, text[1].at);
	for (uint32_t r = 0; r < 4; r++)
		for (uint32_t i = 0; i < plan.list[r].len; i++) {
			const struct hd_ins *ins = &plan.list[r].at[i];
			CHECK(hd_ins_uses(ins->op, 'v') ? ins->vn / 4 == r / 2 : !ins->vn, "rank %u, #%u",
				r, i);
		}
}

static void without_memory_there_is_no_plan(void **state)
{
	const struct hd_schedule_ask ask = { .name = "1f1b", .p = 2, .v = 1, .m = 4 };
	struct hd_schedule pipeline[2];
	struct hd_plan plan;
	struct hd_diag diag;
	enum hd_err err;

	(void)state;
	assert_int_equal(hd_schedule_make(&pipeline[0], &ask, &arena, NULL), HD_OK);
	pipeline[1] = pipeline[0];
	for (int again = HD_KEEPS_ALL; again <= HD_KEEPS_AWAY; again++)
		EACH_PIECE_REFUSED(err, hd_plan_staged(&plan, &job8, pipeline, 2, cuts,
			(enum hd_stage_keeps)again, &arena, &diag));
}

/* ---- what is refused ---- */

static void three_ranks(struct hd_schedule *s) { s[1].nranks = 3; }
static void three_stages(struct hd_schedule *s) { s[1].nstages = 3; }
static void delayed(struct hd_schedule *s) { s[1].update = HD_UPDATE_2BW; }
static void sections(struct hd_schedule *s) { s[1].prologue = s[1].list; }
static void fewer_nodes(struct hd_schedule *s) { s[1].nvns = 3; }
static void too_many(struct hd_schedule *s) { s[0].nranks = HD_MAX_RANKS / 2 + 1; }
static void far_node(struct hd_schedule *s)
{
	for (uint32_t i = 0; i < s[1].list[0].len; i++)
		if (s[1].list[0].at[i].op == HD_INS_F)
			s[1].list[0].at[i].vn = 1u << 28;
}

static void pipelines_that_are_no_plan_are_refused(void **state)
{
	static const struct { void (*spoil)(struct hd_schedule *two); uint32_t d; enum hd_err err;
		const char *words; } bad[] = {
		{ three_ranks, 2, HD_E_INVAL, "pipeline 1 has 3 ranks and 2 stages, pipeline 0 has 2 and 2" },
		{ three_stages, 2, HD_E_INVAL,
			"pipeline 1 has 2 ranks and 3 stages, pipeline 0 has 2 and 2" },
		{ delayed, 2, HD_E_BADPLAN, "pipeline 1 delays updates" },
		{ sections, 2, HD_E_BADPLAN, "pipeline 1 delays updates" },
		{ fewer_nodes, 2, HD_E_INVAL, "the pipelines have 7 virtual nodes, the job has 8" },
		{ too_many, 2, HD_E_INVAL, "2 pipelines of 2049 ranks" },
		{ three_ranks, 0, HD_E_INVAL, "0 pipelines of 0 ranks" },
		{ far_node, 2, HD_E_BADPLAN, "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		const struct hd_schedule_ask ask = { .name = "1f1b", .p = 2, .v = 1, .m = 4 };
		struct hd_schedule pipeline[2];
		struct hd_plan plan = { .nvns = 77 };
		struct hd_diag diag = { "" };
		for (int k = 0; k < 2; k++)
			assert_int_equal(hd_schedule_make(&pipeline[k], &ask, &arena, &diag), HD_OK);
		bad[i].spoil(pipeline);
		enum hd_err err = hd_plan_staged(&plan, &job8, bad[i].d ? pipeline : NULL, bad[i].d, cuts,
			false, &arena,
			&diag);
		CHECK(err == bad[i].err && strstr(diag.text, bad[i].words), "case %zu: %d %s", i, (int)err,
			diag.text);
		assert_int_equal(plan.nvns, 77);
	}
}

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

static void fewer_chunks(struct hd_plan *p) { p->nchunks = 4; }
static void too_many_cells(struct hd_plan *p) { p->nstages = HD_MAX_CELLS / 8 + 1; }
static void no_ranks(struct hd_plan *p) { p->nranks = 0; }
static void many_ranks(struct hd_plan *p) { p->nranks = HD_MAX_RANKS + 1; }
static void eager(struct hd_plan *p) { p->list[0].at[0].flags |= HD_INS_EAGER; }
static void two_norms(struct hd_plan *p)
{
	struct hd_ilist *l = &p->list[1];
	struct hd_ins *at = hd_arena_take(&arena, l->len + 1, sizeof *at);
	uint32_t n = 0;

	for (uint32_t i = 0; i < l->len; i++) {
		at[n++] = l->at[i];
		if (l->at[i].op == HD_INS_NORM)
			at[n++] = l->at[i];
	}
	*l = (struct hd_ilist){ at, n, n };
}
static void far_node_there(struct hd_plan *p)
{
	for (uint32_t i = 0; i < p->list[0].len; i++)
		if (p->list[0].at[i].op == HD_INS_F)
			p->list[0].at[i].vn = 1u << 28;
}

static void plans_that_no_run_can_take_are_refused(void **state)
{
	static const struct { void (*spoil)(struct hd_plan *plan); const char *words; } bad[] = {
		{ no_norm, "NORM" }, { no_back, "no backward" }, { swap_sends, "activation" },
		{ to_host, "OFF0.0: activations of 0.0 are not live" }, { other_map, "virtual node 3 is mapped to rank 1" },
		{ far_owner, "chunk 2 is owned by rank 9" }, { no_cuts, "no line cuts" },
		{ fewer, "it is for 7 virtual nodes" }, { fewer_chunks, "4 chunks" }, { too_many_cells,
			"more than 16777216 in all" },
		{ no_ranks, "no line cuts" }, { many_ranks, "no line cuts" }, { eager, "no runtime for" },
		{ two_norms, "NORM" }, { far_node_there, "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct hd_plan plan;
		struct hd_diag diag = { "" };
		CHECK(make(&plan, "1f1b", 2, 1, 1, &job8, &diag) == HD_OK, "%s", diag.text);
		struct hd_report report = { .total = 0 };
		assert_int_equal(hd_plan_staged_check(&plan, &job8, &report, &diag), HD_OK);
		assert_int_equal(report.total, 0);
		bad[i].spoil(&plan);
		CHECK(hd_plan_staged_check(&plan, &job8, &report, &diag) == HD_E_BADPLAN, "case %zu", i);
		CHECK(report.total && report.len, "case %zu is no finding", i);
		/* what the checker found is not said again */
		for (uint32_t f = 0; f < report.len; f++)
			CHECK(report.total == 1 || strcmp(report.at[f].rule, "RUN") != 0, "case %zu", i);
		CHECK(strstr(diag.text, bad[i].words), "case %zu: %s", i, diag.text);
	}
}

/* Where the list has `op` of stage 0 and virtual node 0, or before it, two others. */
static void stand_around(struct hd_plan *p, uint8_t op, const uint8_t *other, bool before)
{
	struct hd_ilist *l = &p->list[0];
	struct hd_ins *at = hd_arena_take(&arena, l->len + 2, sizeof *at);
	uint32_t n = 0;

	for (uint32_t i = 0; i < l->len; i++) {
		const bool here = l->at[i].op == op && l->at[i].stage == 0 && l->at[i].vn == 0;
		if (here && !before)
			at[n++] = l->at[i];
		for (uint32_t k = 0; k < 2 && here && other[k]; k++)
			at[n++] = (struct hd_ins){ .op = other[k] };
		if (!here || before)
			at[n++] = l->at[i];
	}
	*l = (struct hd_ilist){ at, n, n };
}

static void activations_move_between_a_forward_and_its_backward_alone(void **state)
{
	static const struct { const char *name; enum hd_stage_keeps keeps; uint8_t op, other[2]; bool before;
		const char *words; } rows[] = {
		{ "zb-h1", HD_KEEPS_ALL, HD_INS_SA, { HD_INS_OFF, HD_INS_ON }, false, NULL },
		{ "1f1b", HD_KEEPS_INPUT, HD_INS_R, { HD_INS_OFF, HD_INS_ON }, false, NULL },
		{ "zb-h1", HD_KEEPS_ALL, HD_INS_SA, { HD_INS_OFF }, false, "on the host" },
		{ "zb-h1", HD_KEEPS_ALL, HD_INS_SA, { HD_INS_OFF }, true,
			"SA0.0: what it sends is on the host: put OFF0.0 behind it" },
		{ "zb-h1", HD_KEEPS_ALL, HD_INS_W, { HD_INS_OFF, HD_INS_ON }, true, "OFF0.0: its I has run" },
		{ "1f1b", HD_KEEPS_INPUT, HD_INS_R, { HD_INS_OFF, HD_INS_ON }, true,
			"OFF0.0: its forward kept its input alone" },
		{ "1f1b", HD_KEEPS_ALL, HD_INS_B, { HD_INS_OFF, HD_INS_ON }, false, "not live" },
		{ "1f1b", HD_KEEPS_ALL, HD_INS_B, { HD_INS_ON }, true, "not on the host" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct hd_diag diag = { "" };
		struct hd_plan plan;
		CHECK(make_keeping(&plan, rows[i].name, 2, 1, 1, rows[i].keeps, &job8, &diag) == HD_OK, "%s",
			diag.text);
		stand_around(&plan, rows[i].op, rows[i].other, rows[i].before);
		enum hd_err err = hd_plan_staged_check(&plan, &job8, NULL, &diag);
		CHECK(rows[i].words ? err == HD_E_BADPLAN && strstr(diag.text, rows[i].words) : !err,
			"row %zu: %d %s", i, (int)err, diag.text);
	}
}

/* R of stage 0 and virtual node 0 stands before its backward, here right before or behind its SA. */
static void what_is_sent_leaves_before_it_is_made_once_more(void **state)
{
	(void)state;
	for (int behind = 0; behind < 2; behind++) {
		struct hd_diag diag = { "" };
		struct hd_plan plan;
		CHECK(make_keeping(&plan, "1f1b", 2, 1, 1, HD_KEEPS_INPUT, &job8, &diag) == HD_OK, "%s",
			diag.text);
		struct hd_ilist *l = &plan.list[0];
		uint32_t n = 0;
		for (uint32_t i = 0; i < l->len; i++)
			if (l->at[i].op != HD_INS_R || l->at[i].vn != 0)
				l->at[n++] = l->at[i];
		assert_int_equal(n, l->len - 1);
		l->len = n;
		stand_around(&plan, HD_INS_SA, (const uint8_t[]){ HD_INS_R, 0 }, !behind);
		enum hd_err err = hd_plan_staged_check(&plan, &job8, NULL, &diag);
		CHECK(behind ? !err : err == HD_E_BADPLAN && strstr(diag.text, "put it before R"),
			"%d: %d %s", behind, (int)err, diag.text);
	}
}

static void steps_that_overlap_have_their_activations_here(void **state)
{
	struct hd_diag diag = { "" };
	struct hd_plan plan;

	(void)state;
	for (int keeps = HD_KEEPS_ALL; keeps <= HD_KEEPS_AWAY; keeps++) {
		CHECK(make_keeping(&plan, "1f1b", 2, 1, 1, (enum hd_stage_keeps)keeps, &job8, &diag) == HD_OK,
			"%s", diag.text);
		plan.overlap = true;
		assert_int_equal(hd_plan_staged_check(&plan, &job8, NULL, NULL),
			keeps == HD_KEEPS_AWAY ? HD_E_BADPLAN : HD_OK);
	}
}

static void delayed_updates_and_lockstep_are_refused_by_name(void **state)
{
	struct hd_plan plan = { .nvns = 77 };
	struct hd_diag diag = { "" };
	const struct hd_plan_job lockstep = { .nvns = 8, .nchunks = 5, .nstages = 1, .lockstep = true };

	(void)state;
	assert_int_equal(make(&plan, "2bw", 2, 1, 1, &job8, &diag), HD_E_BADPLAN);
	CHECK(strstr(diag.text, "delays updates (2bw)"), "%s", diag.text);
	diag.text[0] = 0;
	assert_int_equal(make(&plan, "1f1b", 2, 1, 1, &lockstep, &diag), HD_E_REFUSED);
	CHECK(strstr(diag.text, "model.bn: ghost"), "%s", diag.text);
	assert_int_equal(plan.nvns, 77);
}

/* Ranks of several devices, one stage or more: printed, parsed, proved; not every number will do. */
static void ranks_may_be_several_devices(void **state)
{
	const struct hd_plan_job job = { .nvns = 8, .nchunks = 5, .nstages = 1, .nshards = 4 };
	static const struct { uint32_t t; const char *words; } bad[] = {
		{ 3, "3 devices of a rank share the model's shards, and there are 4 (model.shards)" },
		{ 8, "and there are 4 (model.shards)" }, { 128, "a rank has 64 at most" } };

	(void)state;
	for (uint32_t p = 1; p <= 2; p++)
		for (uint32_t t = 1; t <= 4; t *= 2) {
			struct hd_plan plan, again;
			struct hd_diag diag = { "" };
			struct hd_text text;
			CHECK(make(&plan, "1f1b", p, 1, 2, &job, &diag) == HD_OK &&
				hd_plan_widen(&plan, &job, t, &diag) == HD_OK, "%s", diag.text);
			assert_int_equal(hd_plan_devices(&plan), p * 2 * t);
			hd_text_init(&text, &arena);
			assert_int_equal(hd_plan_print(&plan, &text), HD_OK);
			assert_int_equal(!!strstr(text.at, "\ntensor "), t > 1);
			CHECK(hd_plan_parse(&again, text.at, text.len, "t.plan", &arena, &diag) == HD_OK,
				"%s", diag.text);
			assert_int_equal(hd_plan_width(&again), t);
			assert_true(hd_hash_same(hd_plan_digest(&plan), hd_plan_digest(&again)));
			CHECK(hd_plan_staged_check(&again, &job, NULL, &diag) == HD_OK, "%s", diag.text);
			CHECK(hd_plan_check_file(&again, &(struct hd_report){ .total = 0 },
				&diag) == HD_OK, "%s", diag.text);
			for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
				diag.text[0] = 0;
				assert_int_equal(hd_plan_widen(&plan, &job, bad[i].t, &diag), HD_E_INVAL);
				CHECK(strstr(diag.text, bad[i].words), "%s", diag.text);
				assert_int_equal(hd_plan_width(&plan), t);
				again.tensor = bad[i].t;
				assert_int_equal(hd_plan_staged_check(&again, &job, NULL, &diag),
					HD_E_BADPLAN);
			}
		}
}

/* Group k of rank r is rank r n + k, of stage s stage s n + k; what it does is what the rank did. */
static void groups_of_a_rank_do_what_it_does(void **state)
{
	struct hd_plan_job job = { .nvns = 9, .nchunks = 5, .nstages = 1, .nshards = 8 };
	struct hd_plan plan, wide, folded, again;
	struct hd_text text[2];
	struct hd_diag diag = { "" };

	(void)state;
	CHECK(make(&plan, "1f1b", 2, 1, 2, &job, &diag) == HD_OK, "%s", diag.text);
	wide = plan;
	CHECK(hd_plan_spread(&wide, &job, 8, 4, &arena, &diag) == HD_OK, "%s", diag.text);
	assert_int_equal(wide.nranks, 16);
	assert_int_equal(wide.nstages, 8);
	assert_int_equal(hd_plan_devices(&wide), 32);
	assert_int_equal(wide.map[8], 8);
	for (uint32_t r = 0; r < wide.nranks; r++)
		for (uint32_t i = 0; i < wide.list[r].len; i++) {
			const struct hd_ins *of = &plan.list[r / 4].at[i], *ins = &wide.list[r].at[i];
			assert_int_equal(ins->op, of->op);
			assert_int_equal(ins->vn, of->vn);
			assert_int_equal(ins->stage, hd_ins_uses(of->op, 's') ? of->stage * 4 + r % 4 : 0);
			assert_int_equal(ins->peer, hd_ins_uses(of->op, '>') || hd_ins_uses(of->op, '<') ?
				of->peer * 4 + r % 4 : 0);
		}
	hd_text_init(&text[0], &arena);
	assert_int_equal(hd_plan_print(&wide, &text[0]), HD_OK);
	assert_non_null(strstr(text[0].at, "\ntensor 2\ngroups 4\n"));
	CHECK(hd_plan_parse(&again, text[0].at, text[0].len, "t.plan", &arena, &diag) == HD_OK, "%s",
		diag.text);
	CHECK(hd_plan_staged_check(&again, &job, NULL, &diag) == HD_OK, "%s", diag.text);
	/* back: the plan of ranks of 8 devices */
	CHECK(hd_plan_fold(&folded, &again, &arena, &diag) == HD_OK, "%s", diag.text);
	assert_int_equal(hd_plan_widen(&plan, &job, 8, &diag), HD_OK);
	for (int i = 0; i < 2; i++) {
		hd_text_init(&text[i], &arena);
		assert_int_equal(hd_plan_print(i ? &folded : &plan, &text[i]), HD_OK);
	}
	assert_string_equal(text[0].at, text[1].at);
	/* an instruction of one group, or one too many, or of another group */
	again.list[5].at[2].vn ^= 1;
	assert_int_equal(hd_plan_staged_check(&again, &job, NULL, &diag), HD_E_BADPLAN);
	CHECK(strstr(diag.text, "rank 5 is group 1 of 4"), "%s", diag.text);
	again.list[5].at[2].vn ^= 1;
	again.list[7].len--;
	assert_int_equal(hd_plan_staged_check(&again, &job, NULL, &diag), HD_E_BADPLAN);
	again.list[7].len++;
	again.first[1]++;
	assert_int_equal(hd_plan_staged_check(&again, &job, NULL, &diag), HD_E_BADPLAN);
	again.first[1]--;
	again.map[3]++;
	assert_int_equal(hd_plan_staged_check(&again, &job, NULL, &diag), HD_E_BADPLAN);
	again.map[3]--;
	again.groups = 3;
	assert_int_equal(hd_plan_staged_check(&again, &job, NULL, &diag), HD_E_BADPLAN);
	again.groups = 4;
	CHECK(hd_plan_staged_check(&again, &job, NULL, &diag) == HD_OK, "%s", diag.text);
	assert_int_equal(hd_plan_spread(&plan, &job, 8, 3, &arena, &diag), HD_E_INVAL);
	assert_int_equal(hd_plan_spread(&plan, &job, 3, 3, &arena, &diag), HD_E_INVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_flush_schedule_makes_a_plan_that_prints_and_parses),
		cmocka_unit_test(pipelines_have_neighbouring_virtual_nodes),
		cmocka_unit_test(ranks_may_be_several_devices),
		cmocka_unit_test(groups_of_a_rank_do_what_it_does),
		cmocka_unit_test(transfers_that_are_there_are_between_ranks_of_one_pipeline),
		cmocka_unit_test(without_memory_there_is_no_plan),
		cmocka_unit_test(pipelines_that_are_no_plan_are_refused),
		cmocka_unit_test(plans_that_no_run_can_take_are_refused),
		cmocka_unit_test(delayed_updates_and_lockstep_are_refused_by_name),
		cmocka_unit_test(activations_move_between_a_forward_and_its_backward_alone),
		cmocka_unit_test(stages_keep_what_each_is_asked_to),
		cmocka_unit_test(what_is_sent_leaves_before_it_is_made_once_more),
		cmocka_unit_test(steps_that_overlap_have_their_activations_here),
	};

	return cmocka_run_group_tests(tests, make_arena, drop_arena);
}
