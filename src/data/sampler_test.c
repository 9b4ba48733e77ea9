#include "data/sampler.h"

#include <stdlib.h>
#include <string.h>

#include "tests/check.h"

static struct hd_sampler sampler_of(uint64_t seed, uint64_t count, uint64_t batch, enum hd_order order,
	enum hd_last last)
{
	struct hd_sampler sampler;
	struct hd_diag diag = { "" };

	if (hd_sampler_init(&sampler, seed, count, batch, order, last, &diag) != HD_OK)
		fail_msg("%s", diag.text);
	return sampler;
}

static void known_answers_hold(void **state)
{
	static const struct { uint64_t epoch, count; unsigned n; uint64_t want[16]; } cases[] = {
		{ 0, 10, 10, { 7, 5, 9, 4, 2, 1, 0, 3, 6, 8 } },
		{ 1, 10, 10, { 0, 9, 1, 4, 3, 5, 8, 7, 6, 2 } },
		{ 0, 16, 16, { 7, 14, 13, 4, 2, 10, 12, 3, 6, 8, 1, 5, 0, 15, 11, 9 } },
		{ 3, 50000, 3, { 23706, 14920, 32213 } },
	};
	(void)state;

	for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++)
		for (unsigned i = 0; i < cases[c].n; i++)
			CHECK(hd_perm(17, cases[c].epoch, cases[c].count, i) == cases[c].want[i],
				"case %zu position %u", c, i);
	assert_int_equal(hd_perm(17, 3, 50000, 49999), 38995);
}

/* Every count forward; backward all of the small ones and one in 64 of the rest, to save time. */
static void every_count_up_to_5000_is_permuted_and_undone(void **state)
{
	static uint8_t seen[5000];
	(void)state;

	for (uint64_t count = 1; count <= 5000; count += SANITIZED ? 7 : 1) {
		memset(seen, 0, sizeof seen);
		for (uint64_t i = 0; i < count; i++) {
			uint64_t to = hd_perm(5, 2, count, i);
			CHECK(to < count && !seen[to], "D=%llu: %llu twice or out of range",
				(unsigned long long)count, (unsigned long long)to);
			seen[to] = 1;
			if (count < 300 || count % 64 == 1)
				CHECK(hd_perm_inverse(5, 2, count, to) == i, "D=%llu: inverse at %llu",
					(unsigned long long)count, (unsigned long long)i);
		}
	}
}

static void counts_near_2_to_48_are_undone_by_the_inverse(void **state)
{
	static const uint64_t counts[] = { (UINT64_C(1) << 48) - 1, (UINT64_C(1) << 47) + 1,
		UINT64_C(1) << 32, (UINT64_C(1) << 33) + 7 };
	(void)state;

	for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++)
		for (uint64_t i = 0; i < 64; i++) {
			uint64_t at = counts[c] - 1 - i * 12345, to = hd_perm(9, 1, counts[c], at);
			CHECK(to < counts[c] && hd_perm_inverse(9, 1, counts[c], to) == at,
				"case %zu at %llu", c, (unsigned long long)i);
		}
}

/* 48 000 draws of 24 orders: 2000 each; 49.73 is the 0.999 quantile of chi-square with 23 degrees of
 * freedom. */
static void the_24_orders_of_four_are_equally_likely(void **state)
{
	enum { DRAWS = 48000 };
	unsigned n[24] = { 0 };
	double chi2 = 0;
	(void)state;

	for (uint64_t draw = 0; draw < DRAWS; draw++) {
		unsigned rank = 0, seen = 0;
		for (unsigned i = 0; i < 3; i++) {
			unsigned to = (unsigned)hd_perm(draw / 8, draw % 8, 4, i);
			unsigned smaller = to - (unsigned)__builtin_popcount(seen & ((1u << to) - 1));
			rank = rank * (4 - i) + smaller;
			seen |= 1u << to;
		}
		n[rank]++;
	}
	for (int i = 0; i < 24; i++)
		chi2 += ((double)n[i] - DRAWS / 24.0) * ((double)n[i] - DRAWS / 24.0) / (DRAWS / 24.0);
	CHECK(chi2 < 49.73, "chi-square %g", chi2);
}

/* Over the steps of `epochs` data epochs, counts how often each (epoch, index) was drawn. */
static void check_multiset(struct hd_sampler sampler, unsigned epochs)
{
	uint64_t D = sampler.count, B = sampler.batch, nsteps, total = 0;
	uint8_t *seen = calloc(D * (epochs + 1), 1);
	assert_non_null(seen);

	nsteps = sampler.last == HD_LAST_WRAP ? epochs * D / B : hd_sampler_steps(&sampler) * epochs;
	for (uint64_t step = 0; step < nsteps; step++)
		for (uint64_t row = 0; row < hd_sampler_rows(&sampler, step); row++, total++) {
			uint64_t epoch = sampler.last == HD_LAST_WRAP ? total / D : hd_sampler_epoch(&sampler,
				step);
			uint64_t index = hd_sampler_at(&sampler, step, row);
			CHECK(index < D && epoch <= epochs, "step %llu", (unsigned long long)step);
			seen[epoch * D + index]++;
		}
	uint64_t want = sampler.last == HD_LAST_DROP ? D / B * B : D;
	for (unsigned epoch = 0; epoch < epochs; epoch++) {
		uint64_t once = 0;
		for (uint64_t i = 0; i < D; i++) {
			CHECK(seen[epoch * D + i] <= 1, "D=%llu B=%llu epoch %u: %llu drawn twice",
				(unsigned long long)D, (unsigned long long)B,
				epoch, (unsigned long long)i);
			once += seen[epoch * D + i];
		}
		if (sampler.last != HD_LAST_WRAP || (epoch + 1) * D <= total)
			CHECK(once == want, "D=%llu B=%llu last %d epoch %u: %llu of %llu",
				(unsigned long long)D, (unsigned long long)B,
				(int)sampler.last, epoch,
				(unsigned long long)once, (unsigned long long)want);
	}
	free(seen);
}

static void each_epoch_is_exactly_the_data_set(void **state)
{
	static const uint64_t counts[] = { 1, 2, 3, 7, 16, 97, 4096, 4097, 8192, 9001, 12289 };
	static const uint64_t batches[] = { 1, 2, 3, 8, 64, 97, 5000 };
	(void)state;

	for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++)
		for (size_t b = 0; b < sizeof batches / sizeof batches[0]; b++)
			for (int order = HD_ORDER_SHUFFLE; order <= HD_ORDER_BLOCKS; order++)
				for (int last = HD_LAST_RAGGED; last <= HD_LAST_WRAP; last++)
					if (last != HD_LAST_DROP || counts[c] >= batches[b])
						check_multiset(sampler_of(3, counts[c], batches[b],
							(enum hd_order)order, (enum hd_last)last), 2);
}

/* A naive oracle of blocks: the permuted list of blocks is written out, each with its own length. */
static void blocks_stay_together_and_the_short_one_keeps_its_place(void **state)
{
	enum { D = 4096 * 6 + 1000 };
	struct hd_sampler sampler = sampler_of(11, D, D, HD_ORDER_BLOCKS, HD_LAST_RAGGED);
	uint64_t at = 0, moved = 0;
	(void)state;

	for (uint64_t place = 0; place < 7; place++) {
		uint64_t block = hd_perm(11, 0, 7, place), len = block == 6 ? 1000 : 4096;
		for (uint64_t i = 0; i < len; i++, at++) {
			uint64_t index = hd_sampler_at(&sampler, 0, at);
			CHECK(index / 4096 == block, "position %llu is of block %llu", (unsigned long long)at,
				(unsigned long long)(index / 4096));
			moved += index % 4096 != i;
		}
	}
	assert_int_equal(at, D);
	CHECK(moved > D - 100, "the insides are not shuffled: %llu", (unsigned long long)moved);
}

static void two_blocks_have_different_insides(void **state)
{
	enum { D = 8192 };
	struct hd_sampler sampler = sampler_of(11, D, D, HD_ORDER_BLOCKS, HD_LAST_RAGGED);
	unsigned same = 0;
	(void)state;

	for (uint64_t i = 0; i < 4096; i++)
		same += hd_sampler_at(&sampler, 0, i) % 4096 == hd_sampler_at(&sampler, 0, 4096 + i) % 4096;
	CHECK(same < 20, "%u of 4096 equal", same);
}

static void a_ragged_step_has_the_rest_and_the_next_begins_an_epoch(void **state)
{
	struct hd_sampler s = sampler_of(17, 10, 4, HD_ORDER_SHUFFLE, HD_LAST_RAGGED);
	(void)state;

	assert_int_equal(hd_sampler_steps(&s), 3);
	assert_int_equal(hd_sampler_rows(&s, 1), 4);
	assert_int_equal(hd_sampler_rows(&s, 2), 2);
	assert_int_equal(hd_sampler_at(&s, 2, 1), 8);
	assert_int_equal(hd_sampler_epoch(&s, 2), 0);
	assert_int_equal(hd_sampler_epoch(&s, 3), 1);
	assert_int_equal(hd_sampler_at(&s, 3, 1), 9);
}

static void wrap_runs_on_into_the_next_epoch(void **state)
{
	static const uint64_t want[8] = { 6, 8, 0, 9 };
	struct hd_sampler s = sampler_of(17, 10, 4, HD_ORDER_SHUFFLE, HD_LAST_WRAP);
	(void)state;

	assert_int_equal(hd_sampler_rows(&s, 2), 4);
	for (uint64_t row = 0; row < 4; row++)
		assert_int_equal(hd_sampler_at(&s, 2, row), want[row]);
	assert_int_equal(hd_sampler_epoch(&s, 2), 0);
	assert_int_equal(hd_sampler_epoch(&s, 3), 1);
}

static void virtual_nodes_tile_the_rows_of_a_step(void **state)
{
	(void)state;
	for (uint64_t nrows = 1; nrows <= 20; nrows++)
		for (uint32_t nvns = 1; nvns <= 20; nvns++) {
			uint64_t per = (20 + nvns - 1) / nvns, next = 0;
			for (uint32_t vn = 0; vn < nvns; vn++) {
				uint64_t first = 0, end = 0;
				hd_vn_rows(per, nrows, vn, &first, &end);
				CHECK(first == next && end >= first && end - first <= per, "n=%llu V=%u v=%u",
					(unsigned long long)nrows, nvns, vn);
				next = end;
			}
			CHECK(next == nrows, "n=%llu V=%u", (unsigned long long)nrows, nvns);
		}
}

static void impossible_sizes_are_refused_with_the_reason(void **state)
{
	static const struct { uint64_t count, batch; enum hd_last last; enum hd_err want; const char *says;
		} cases[] = {
		{ 0, 4, HD_LAST_RAGGED, HD_E_INPUT, "no samples" },
		{ UINT64_C(1) << 48, 4, HD_LAST_RAGGED, HD_E_INPUT, "2^48" },
		{ 4, 0, HD_LAST_RAGGED, HD_E_INVAL, "batch.global" },
		{ 4, 5, HD_LAST_DROP, HD_E_INVAL, "batch of 5 of 4" },
		{ 4, 5, HD_LAST_RAGGED, HD_OK, "" }, { 4, 5, HD_LAST_WRAP, HD_OK, "" }, { 5, 5, HD_LAST_DROP, HD_OK, "" },
	};
	(void)state;

	for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
		struct hd_sampler s;
		struct hd_diag diag = { "" };
		enum hd_err err = hd_sampler_init(&s, 1, cases[c].count, cases[c].batch, HD_ORDER_SHUFFLE,
			cases[c].last, &diag);
		CHECK(err == cases[c].want && strstr(diag.text, cases[c].says), "case %zu: %d '%s'", c,
			(int)err, diag.text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_answers_hold),
		cmocka_unit_test(every_count_up_to_5000_is_permuted_and_undone),
		cmocka_unit_test(counts_near_2_to_48_are_undone_by_the_inverse),
		cmocka_unit_test(the_24_orders_of_four_are_equally_likely),
		cmocka_unit_test(each_epoch_is_exactly_the_data_set),
		cmocka_unit_test(blocks_stay_together_and_the_short_one_keeps_its_place),
		cmocka_unit_test(two_blocks_have_different_insides),
		cmocka_unit_test(a_ragged_step_has_the_rest_and_the_next_begins_an_epoch),
		cmocka_unit_test(wrap_runs_on_into_the_next_epoch),
		cmocka_unit_test(virtual_nodes_tile_the_rows_of_a_step),
		cmocka_unit_test(impossible_sizes_are_refused_with_the_reason),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
