#include "pipeline/listed.h"

#include <string.h>

#include "pipeline/staged.h"
#include "tests/planning.h"
#include "tests/check.h"

static const uint32_t cuts[] = { 0, 3, 5, 9, 11, 12, 20, 21 };

/* d pipelines of a schedule, of two the first with so many virtual nodes more than its share; NULL where it
 * has not the virtual nodes. */
static struct hd_plan *plan_with(const char *name, uint32_t p, uint32_t v, uint32_t d, uint32_t nvns,
	uint32_t uneven, enum hd_stage_keeps keeps)
{
	const struct hd_plan_job job = { .nvns = nvns, .nchunks = 5, .nstages = 1 };
	struct hd_plan *plan = hd_arena_take(&arena, 1, sizeof *plan);
	struct hd_schedule pipeline[4];
	struct hd_diag diag = { "" };

	for (uint32_t k = 0; k < d; k++) {
		const struct hd_schedule_ask ask = { .name = name, .p = p, .v = v,
			.m = nvns / d + (k < nvns % d) + (d == 2 ? k ? -uneven : uneven : 0) };
		if (hd_schedule_make(&pipeline[k], &ask, &arena, &diag))
			return NULL;
	}
	enum hd_err err = hd_plan_staged(plan, &job, pipeline, d, cuts, keeps, &arena, &diag);
	CHECK(!err, "%s p %u d %u: %s", name, p, d, diag.text);
	return plan;
}

static struct hd_plan *plan_of(const char *name, uint32_t p, uint32_t v, uint32_t d, uint32_t nvns,
	enum hd_stage_keeps keeps)
{
	return plan_with(name, p, v, d, nvns, 0, keeps);
}

static bool is_work(const struct hd_ins *x)
{
	return x->op == HD_INS_F || x->op == HD_INS_B || x->op == HD_INS_I || x->op == HD_INS_W ||
		x->op == HD_INS_R || x->op == HD_INS_OFF || x->op == HD_INS_ON;
}

/* The next instruction of work from *at on. */
static const struct hd_ins *next(const struct hd_ilist *l, uint32_t *at)
{
	while (*at < l->len && !is_work(&l->at[*at]))
		++*at;
	return *at < l->len ? &l->at[(*at)++] : NULL;
}

/* Forwards under way at once, at most. */
static uint32_t in_flight(const struct hd_ilist *l)
{
	uint32_t n = 0, most = 0;

	for (uint32_t i = 0; i < l->len; i++) {
		n += l->at[i].op == HD_INS_F;
		most = n > most ? n : most;
		n -= l->at[i].op == HD_INS_B || l->at[i].op == HD_INS_W;
	}
	return most;
}

/* Each rank of `made` does, of each pipeline of the file, what the same rank there does, in its order, and of
 * one after another. */
static void compare(const struct hd_plan *made, const struct hd_plan *file, uint32_t p, const char *what)
{
	const uint32_t d = file->nranks / p;
	uint64_t nwork = 0, nfile = 0;

	for (uint32_t r = 0; r < made->nranks; r++) {
		uint32_t at = 0, is = 0, from[4] = { 0 }, bound = 0;
		const struct hd_ins *x, *want;
		for (; (x = next(&made->list[r], &at)); nwork++) {
			const uint32_t of = file->map[x->vn] / p;
			CHECK(of >= is, "%s: rank %u goes back to pipeline %u", what, r, of);
			is = of;
			do
				want = next(&file->list[of * p + r % p], &from[of]);
			while (want && made->map[want->vn] / p != r / p);
			/* halves of pairs may be of different pipelines now */
			struct hd_ins same = *x;
			if (want && !(x->flags & HD_INS_PAIR))
				same.flags |= want->flags & HD_INS_PAIR;
			CHECK(want && !memcmp(want, &same, sizeof same), "%s: rank %u, %s%u.%u: out of order",
				what, r, hd_ins_row(x->op)->text, x->stage, x->vn);
		}
		for (uint32_t k = 0; k < d; k++) {
			const uint32_t one = in_flight(&file->list[k * p + r % p]);
			bound = one > bound ? one : bound;
		}
		CHECK(in_flight(&made->list[r]) <= bound, "%s: rank %u has %u under way, in the file %u",
			what, r, in_flight(&made->list[r]), bound);
	}
	for (uint32_t r = 0; r < file->nranks; r++)
		for (uint32_t i = 0; i < file->list[r].len; i++)
			nfile += is_work(&file->list[r].at[i]);
	CHECK(nwork == nfile, "%s: %llu instructions of %llu", what, (unsigned long long)nwork,
		(unsigned long long)nfile);
}

static void share_out(const struct hd_plan *file, uint32_t p, uint32_t d, const char *name)
{
	const struct hd_plan_job job = { .nvns = file->nvns, .nchunks = 7, .nstages = 1 };
	struct hd_listed l;
	struct hd_diag diag = { "" };
	uint32_t share[4];

	CHECK(hd_listed_of(&l, file, &arena, &diag) == HD_OK, "%s: %s", name, diag.text);
	assert_true(l.p == p && l.d == d && l.t == 1);
	for (uint32_t n = 1; n <= d; n++) {
		struct hd_plan made;
		char what[80];
		snprintf(what, sizeof what, "%s p %u, %u pipelines on %u", name, p, d, n);
		for (uint32_t k = 0; k < n; k++)
			share[k] = n == d ? l.share[k] : file->nvns / n + (k < file->nvns % n);
		assert_int_equal(hd_listed_is_whole(&l, share, n), n == d);
		CHECK(hd_listed_plan(&made, &l, &job, share, n, &arena, &diag) == HD_OK, "%s: %s", what,
			diag.text);
		CHECK(made.nranks == n * p && made.nchunks == 7 && made.nstages == file->nstages &&
			!memcmp(made.first, file->first, made.nstages * sizeof *made.first), "%s", what);
		CHECK(hd_plan_staged_check(&made, &job, NULL, &diag) == HD_OK, "%s: %s", what, diag.text);
		compare(&made, file, p, what);
		for (uint32_t r = 0; r < made.nranks && n == d; r++)
			CHECK(made.list[r].at == file->list[r].at, "%s: rank %u has other lists", what, r);
	}
}

static void fewer_pipelines_do_the_work_of_all_in_the_order_of_the_file(void **state)
{
	uint32_t nplans = 0;

	(void)state;
	for (const struct hd_schedule_kind *k = hd_schedule_kinds; k->name; k++)
		for (uint32_t p = 2; p <= 3; p++)
			for (uint32_t d = 1; d <= 3; d++) {
				struct hd_plan *file;
				if (k->update != HD_UPDATE_FLUSH || (uint64_t)k->vmin * p > 8 ||
					!strcmp(k->name, "data-parallel") || !strcmp(k->name, "1f1b-rr"))
					continue;
				file = plan_with(k->name, p, k->vmin, d, 4 * p * d + (d > 1), p,
					(enum hd_stage_keeps)((p + d) % 3));
				if (!file)
					continue;
				share_out(file, p, d, k->name);
				nplans++;
			}
	assert_true(nplans > 40);
}

/* Ranks whose devices lie on two workers are read as ranks. */
static void groups_are_folded(void **state)
{
	const struct hd_plan_job job = { .nvns = 8, .nchunks = 5, .nstages = 1 };
	struct hd_plan *file = plan_of("1f1b", 2, 1, 2, 8, HD_KEEPS_ALL);
	struct hd_diag diag = { "" };
	struct hd_listed l;

	(void)state;
	CHECK(hd_plan_spread(file, &job, 4, 2, &arena, &diag) == HD_OK, "%s", diag.text);
	assert_int_equal(file->nranks, 8);
	CHECK(hd_listed_of(&l, file, &arena, &diag) == HD_OK, "%s", diag.text);
	assert_true(l.p == 2 && l.d == 2 && l.t == 4 && l.plan.nranks == 4 && l.plan.nstages == 2 &&
		!l.plan.tensor && !l.plan.groups);
}

/* ---- what is refused ---- */

/* Forwards alone: `on` has a letter a virtual node for each stage, "ac|bd": of stage 0 on ranks 0 and 2. */
static struct hd_plan *forwards(uint32_t nranks, const char *on)
{
	static uint32_t first[] = { 0, 3, 5 };
	struct hd_plan *plan = hd_arena_take(&arena, 1, sizeof *plan);

	*plan = (struct hd_plan){ .nranks = nranks, .nstages = 1,
		.list = hd_arena_take(&arena, nranks, sizeof *plan->list), .first = first };
	for (uint32_t r = 0; r < nranks; r++)
		plan->list[r].at = hd_arena_take(&arena, 64, sizeof *plan->list[r].at);
	for (uint32_t v = 0; *on; on++) {
		if (*on == '|') {
			plan->nstages++;
			v = 0;
			continue;
		}
		struct hd_ilist *l = &plan->list[*on - 'a'];
		l->at[l->len++] = (struct hd_ins){ .op = HD_INS_F, .stage = (uint16_t)(plan->nstages - 1),
			.vn = v++ };
		plan->nvns = v;
	}
	return plan;
}

static void what_workers_cannot_have_is_refused(void **state)
{
	static const struct { uint32_t nranks; const char *on, *words; } row[] = {
		{ 4, "aacc|bbdd", NULL }, { 2, "aaa|bbb|bbb", NULL }, { 2, "aaa|bbb|aaa", NULL },
		{ 4, "aaacc|bbbdd", NULL },
		{ 2, "bb|aa", "the plan begins with rank 1" },
		{ 3, "aac|bbc", "virtual node 0 of the plan goes through ranks 0 to 1, and it has 3" },
		{ 3, "aa|cc", "rank 1 of the plan runs no stage of" },
		{ 4, "aacc|bbbd", "stage 1 of virtual node 2 is on rank 1 of the plan, not on 3" },
		{ 4, "aaaa|bcbc", "stage 1 of virtual node 1 is on rank 2 of the plan, not on 1" },
		/* copies */
		{ 3, "aaaa|bbcc", NULL }, { 3, "aabb|cccc", NULL }, { 3, "aabbb|ccccc", "stage 0 of virtual node 2 is "
			"on rank 1 of the plan, a copy of that stage; over workers copies have neighbouring "
			"virtual nodes, as many each, larger shares first: give it to rank 0" },
		{ 5, "aaabbb|ccddee", NULL }, { 5, "aaabb|ccdee", "make 6 lanes or "
			"more, the least common multiple of their numbers, and it has 5 virtual nodes" },
		{ 3, "aaaa|bcbc", "stage 1 of virtual node 1 is on rank 2 of the plan, a copy of that stage" },
		{ 3, "acac|bbbb", "virtual node 0 of the plan goes through ranks 0 to 1, and it has 3" },
		{ 6, "aacc|bbdd|eeff", "virtual node 0 of the plan goes through ranks 0 to 4, and it has 6" },
		{ 3, "aabb|cccc|cccc", "rank 1 of the plan runs no stage of virtual node 0" },
		{ 4, "acac|bdbd", "virtual node 2 is of pipeline 0 of the plan, and the one before it of 1" },
		{ 4, "aaac|bbbd", NULL }, { 4, "aaccc|bbddd", NULL },
		{ 6, "aacc|bbdd", "pipeline 2 of the plan has no virtual node" },
	};
	struct hd_diag diag;
	struct hd_listed l;

	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		const struct hd_plan *plan = forwards(row[i].nranks, row[i].on);
		diag.text[0] = '\0';
		enum hd_err err = hd_listed_of(&l, plan, &arena, &diag);
		CHECK(err == (row[i].words ? HD_E_INVAL : HD_OK) && (!err || strstr(diag.text, row[i].words)),
			"row %zu: %d %s", i, (int)err, diag.text);
	}
	/* of three stages two on one rank */
	assert_int_equal(hd_listed_of(&l, forwards(2, "aaa|bbb|aaa"), &arena, &diag), HD_OK);
	assert_true(l.most == 2 && l.p == 2 && l.place[2] == 0);
	assert_int_equal(hd_listed_of(&l, forwards(2, "aaa|bbb|bbb"), &arena, &diag), HD_OK);
	assert_true(l.most == 2 && l.p == 2 && l.place[2] == 1);

	struct hd_plan *plan = forwards(2, "aa|bb");
	plan->first = NULL;
	diag.text[0] = '\0';
	assert_int_equal(hd_listed_of(&l, plan, &arena, &diag), HD_E_INVAL);
	CHECK(strstr(diag.text, "no line cuts"), "%s", diag.text);
}

static void a_plan_of_another_job_is_refused(void **state)
{
	const struct hd_plan_job job = { .nvns = 9, .nchunks = 5, .nstages = 1 }, lockstep = { .nvns = 8,
		.nchunks = 5, .nstages = 1, .lockstep = true };
	const struct hd_plan *file = plan_of("1f1b", 2, 1, 2, 8, HD_KEEPS_ALL);
	const uint32_t share[] = { 4, 4 };
	struct hd_diag diag = { "" };
	struct hd_plan plan;
	struct hd_listed l;

	(void)state;
	assert_int_equal(hd_listed_of(&l, file, &arena, &diag), HD_OK);
	assert_true(hd_listed_is_whole(&l, share, 2) && !hd_listed_is_whole(&l, (uint32_t[]){ 5, 3 }, 2));
	assert_int_equal(hd_listed_plan(&plan, &l, &job, share, 2, &arena, &diag), HD_E_BADPLAN);
	CHECK(strstr(diag.text, "the plan is of 8 virtual nodes, and the job has 9"), "%s", diag.text);
	/* the checker is asked of the file's own lists, too */
	assert_int_equal(hd_listed_plan(&plan, &l, &lockstep, share, 2, &arena, &diag), HD_E_REFUSED);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(fewer_pipelines_do_the_work_of_all_in_the_order_of_the_file,
			make_arena, drop_arena),
		cmocka_unit_test_setup_teardown(groups_are_folded, make_arena, drop_arena),
		cmocka_unit_test_setup_teardown(what_workers_cannot_have_is_refused, make_arena, drop_arena),
		cmocka_unit_test_setup_teardown(a_plan_of_another_job_is_refused, make_arena, drop_arena),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
