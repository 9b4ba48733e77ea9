#include "balance/vf_2020.h"

#include <string.h>

#include "tests/check.h"

#define MS INT64_C(1000000000)

static struct hd_vf_plan planned(const struct hd_vf_type *type, uint32_t ntypes, uint32_t batch,
	int64_t exchange_ps)
{
	struct hd_vf_plan plan = { .step_ps = -1 };
	struct hd_arena arena;
	struct hd_diag diag = { "" };

	hd_arena_init(&arena, 0);
	CHECK(hd_vf_2020(&plan, type, ntypes, batch, exchange_ps, &arena, &diag) == HD_OK, "%s", diag.text);
	hd_arena_finish(&arena);
	return plan;
}

/* Samples in proportion: 10 and 30 ms for 256, twice that for 512 and so on. */
static uint32_t linear(struct hd_vf_time *time, int64_t per_256, uint32_t from, uint32_t to)
{
	uint32_t n = 0;

	for (uint32_t b = from; b <= to; b *= 2) {
		time[n++] = (struct hd_vf_time){ b, per_256 * b / 256 };
		if (b + b / 2 <= to)
			time[n++] = (struct hd_vf_time){ b + b / 2, per_256 * (b + b / 2) / 256 };
	}
	return n;
}

/* ResNet-50, a batch of 8192 on two fast and two slow devices of a third of their speed: 3072 and 1024
 * samples each. */
static void the_published_split_of_three_to_one_comes_out(void **state)
{
	struct hd_vf_time fast[64], slow[64];
	uint32_t nfast = linear(fast, 10 * MS, 64, 256), nslow = linear(slow, 30 * MS, 64, 256);
	const struct hd_vf_type type[] = { { 2, fast, nfast, 0 }, { 2, slow, nslow, 0 } };
	(void)state;

	struct hd_vf_plan p = planned(type, 2, 8192, 5 * MS);
	assert_true(p.mixed && p.share[0].vns * p.share[0].batch == 3072 &&
		p.share[1].vns * p.share[1].batch == 1024);
	assert_int_equal(p.step_ps, 125 * MS);
	/* of equal times the fewest virtual nodes */
	assert_true(p.share[0].batch == 256 && p.share[0].vns == 12);
}

/* An exchange that outweighs what the slow ones help: the fast ones alone. 160 ms alone; 120 ms and 40
 * together. */
static void one_type_is_taken_if_it_is_not_slower(void **state)
{
	struct hd_vf_time fast[64], slow[64];
	uint32_t nfast = linear(fast, 10 * MS, 64, 256), nslow = linear(slow, 30 * MS, 64, 256);
	const struct hd_vf_type type[] = { { 2, fast, nfast, 0 }, { 2, slow, nslow, 0 } };
	(void)state;

	for (int64_t exchange = 39; exchange <= 40; exchange++) {
		struct hd_vf_plan p = planned(type, 2, 8192, exchange * MS);
		assert_true(p.mixed == (exchange == 39));
		assert_int_equal(p.step_ps, (exchange == 39 ? 159 : 160) * MS);
		assert_true(exchange == 39 || p.share[1].vns == 0);
	}
}

static uint32_t dice(uint64_t *seed, uint32_t n)
{
	*seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(*seed >> 33) % n;
}

/* All virtual nodes and batches of all types, one inside the other. */
struct all { const struct hd_vf_type *type; uint32_t ntypes; int64_t exchange_ps, best; };

static void try_all(struct all *a, uint32_t t, uint32_t left, int64_t ps, uint32_t used, uint32_t last)
{
	if (t == a->ntypes) {
		int64_t step = left || !used ? -1 : ps + (used > 1 ? a->exchange_ps :
			a->type[last].exchange_ps);
		if (step >= 0 && (a->best < 0 || step < a->best))
			a->best = step;
		return;
	}
	try_all(a, t + 1, left, ps, used, last);
	for (uint32_t i = 0; i < a->type[t].ntimes; i++)
		for (uint32_t v = 1; v * a->type[t].time[i].batch * a->type[t].ndevices <= left; v++) {
			int64_t mine = v * a->type[t].time[i].ps;
			try_all(a, t + 1, left - v * a->type[t].time[i].batch * a->type[t].ndevices,
				mine > ps ? mine : ps, used + 1, t);
		}
}

static void plans_equal_the_best_of_all(void **state)
{
	uint64_t seed = 5;
	uint32_t nplans = 0;
	(void)state;

	for (int round = 0; round < 600; round++) {
		struct hd_vf_time time[3][6];
		struct hd_vf_type type[3];
		struct hd_arena arena;
		struct hd_vf_plan p;
		uint32_t ntypes = 1 + dice(&seed, 3), batch = 1 + dice(&seed, 48);
		struct all a = { type, ntypes, dice(&seed, 30), -1 };
		for (uint32_t t = 0; t < ntypes; t++) {
			type[t] = (struct hd_vf_type){ 1 + dice(&seed, 3), time[t], 1 + dice(&seed, 4),
				dice(&seed, 20) };
			for (uint32_t i = 0; i < type[t].ntimes; i++)
				time[t][i] = (struct hd_vf_time){ (uint32_t[]){ 1, 2, 3, 4 }[i],
					1 + (int64_t)dice(&seed, 20) * (i + 1) };
		}
		try_all(&a, 0, batch, 0, 0, 0);
		hd_arena_init(&arena, 0);
		enum hd_err err = hd_vf_2020(&p, type, ntypes, batch, a.exchange_ps, &arena, NULL);
		CHECK((err == HD_OK) == (a.best >= 0), "round %d: %d", round, err);
		if (!err) {
			uint32_t sum = 0;
			for (uint32_t t = 0; t < ntypes; t++)
				sum += p.share[t].vns * p.share[t].batch * type[t].ndevices;
			CHECK(sum == batch && p.step_ps == a.best, "round %d: %lld, could be %lld", round,
				(long long)p.step_ps, (long long)a.best);
			nplans++;
		}
		hd_arena_finish(&arena);
	}
	assert_true(nplans > 300);
}

/* Six samples take 120 as 4 + 1 1, as 4 + 2 and as 1 1 + 2 + 2. */
static void of_equal_plans_fewer_virtual_nodes_then_lower_types(void **state)
{
	static const struct hd_vf_time first[] = { { 4, 120 } }, ones[] = { { 1, 60 } },
		twos[] = { { 2, 100 } };
	const struct hd_vf_type type[] = { { 1, first, 1, 0 }, { 1, ones, 1, 0 }, { 1, twos, 1, 0 },
		{ 1, twos, 1, 0 } };
	(void)state;

	struct hd_vf_plan p = planned(type, 4, 6, 0);
	assert_true(p.step_ps == 120 && p.share[0].vns == 1 && p.share[1].vns == 0 && p.share[2].vns == 1 &&
		p.share[3].vns == 0);
}

static void nonsense_is_refused(void **state)
{
	static const struct hd_vf_time time[] = { { 4, 10 } }, zero[] = { { 0, 10 } };
	static const struct hd_vf_type fine = { 1, time, 1, 0 }, none = { 0, time, 1, 0 },
		empty = { 1, zero, 1, 0 };
	struct hd_vf_plan p;
	struct hd_arena arena;
	struct hd_diag diag = { "" };
	(void)state;

	hd_arena_init(&arena, 0);
	assert_int_equal(hd_vf_2020(&p, &fine, 1, 6, 0, &arena, &diag), HD_E_INVAL);
	assert_string_equal(diag.text, "no virtual nodes of the profiled batches have 6 samples together");
	assert_int_equal(hd_vf_2020(&p, &none, 1, 4, 0, &arena, NULL), HD_E_INVAL);
	assert_int_equal(hd_vf_2020(&p, &empty, 1, 4, 0, &arena, NULL), HD_E_INVAL);
	assert_int_equal(hd_vf_2020(&p, &fine, 0, 4, 0, &arena, NULL), HD_E_INVAL);
	assert_int_equal(hd_vf_2020(&p, &fine, 1, 4, -1, &arena, NULL), HD_E_INVAL);
	assert_int_equal(hd_vf_2020(&p, &fine, 1, 4, 0, &arena, NULL), HD_OK);
	hd_arena_finish(&arena);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_published_split_of_three_to_one_comes_out),
		cmocka_unit_test(one_type_is_taken_if_it_is_not_slower),
		cmocka_unit_test(plans_equal_the_best_of_all),
		cmocka_unit_test(of_equal_plans_fewer_virtual_nodes_then_lower_types),
		cmocka_unit_test(nonsense_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
