#include "plan/holding.h"

#include <string.h>

#include "base/alloc.h"
#include "tests/check.h"

enum { NB = 10 };

static uint64_t bits(const char *members)
{
	uint64_t mask = 0;

	for (; *members; members++)
		mask |= UINT64_C(1) << (*members - '0');
	return mask;
}

static void of_one_stage_all_hold_the_parameters(void **state)
{
	struct hd_holding h;

	(void)state;
	assert_int_equal(hd_holding_init(&h, NB, NULL), HD_OK);
	for (uint32_t n = 1; n <= 64; n++)
		for (uint32_t copies = 0; copies < 4; copies++) {
			hd_holding_make(&h, NULL, &(struct hd_holders){ .n = n }, copies, 0);
			CHECK(h.apart == (copies > 0) && h.partial == (copies > 0), "%u", copies);
			for (uint32_t b = 0; b < NB; b++) {
				uint64_t all = n == 64 ? ~UINT64_C(0) : (UINT64_C(1) << n) - 1, slot = 0;
				for (uint32_t i = 0; i < copies; i++)
					slot |= UINT64_C(1) << (b * n / NB + i) % n;
				CHECK(h.owner[b] == b * n / NB && h.param[b] == all &&
					h.slot[b] == (copies ? slot : all), "bucket %u, %u of %u", b,
					copies, n);
			}
		}
	hd_holding_finish(&h);
}

/* Those of n members that have number `first` and the `copies` - 1 after it, round the first `serve`. */
static void servers_alone_hold_the_slots(void **state)
{
	struct hd_holding h;

	(void)state;
	assert_int_equal(hd_holding_init(&h, NB, NULL), HD_OK);
	for (uint32_t n = 1; n <= 64; n++)
		for (uint32_t copies = 2; copies < 4; copies++)
			for (uint32_t servers = copies; servers < 7; servers++) {
				const uint32_t serve = servers < n ? servers : n;
				uint32_t owned[64] = { 0 }, least = NB, most = 0;
				hd_holding_make(&h, NULL, &(struct hd_holders){ .n = n }, copies, servers);
				assert_true(h.apart && h.partial);
				for (uint32_t b = 0; b < NB; b++) {
					uint64_t slot = 0;
					for (uint32_t i = 0; i < copies; i++)
						slot |= UINT64_C(1) << (h.owner[b] + i) % serve;
					CHECK(h.owner[b] < serve && h.slot[b] == slot && !h.spare[b] &&
						h.param[b] == hd_members_all(n), "bucket %u, %u of %u, %u", b,
						copies, n, servers);
					owned[h.owner[b]]++;
				}
				for (uint32_t m = 0; m < serve; m++) {
					least = owned[m] < least ? owned[m] : least;
					most = owned[m] > most ? owned[m] : most;
				}
				assert_true(most - least <= 1);
			}
	hd_holding_finish(&h);
}

/* Three stages; bucket 9 is a weight of the first that the last reads too. Two pipelines of three members,
 * and a seventh that holds nothing. */
static const struct hd_stage_bucket of_three[NB] = {
	{ .stage = 0, .readers = 1 }, { .stage = 0, .readers = 1 }, { .stage = 0, .readers = 1 },
	{ .stage = 1, .readers = 2 }, { .stage = 1, .readers = 2 }, { .stage = 2, .readers = 4 },
	{ .stage = 2, .readers = 4 }, { .stage = 2, .readers = 4 }, { .stage = 2, .readers = 4 },
	{ .stage = 0, .readers = 5 },
};
static const struct hd_stage_buckets three = { .n = NB, .nstages = 3,
	.at = (struct hd_stage_bucket *)(uintptr_t)of_three };

static void stages_are_held_by_their_holders_and_what_is_read_twice_by_both(void **state)
{
	static const struct { uint32_t owner; const char *param, *slot; } is[NB] = {
		{ 0, "03", "03" }, { 0, "03", "03" }, { 3, "03", "03" }, { 1, "14", "14" }, { 4, "14", "14" },
		{ 2, "25", "25" }, { 2, "25", "25" }, { 5, "25", "25" }, { 5, "25", "25" }, { 3, "0235", "0235" },
	}, one_copy[NB] = {
		{ 0, "03", "0" }, { 0, "03", "0" }, { 3, "03", "3" }, { 1, "14", "1" }, { 4, "14", "4" },
		{ 2, "25", "2" }, { 2, "25", "2" }, { 5, "25", "5" }, { 5, "25", "5" }, { 3, "0235", "3" },
	}, three_copies[NB] = {
		{ 0, "03", "03" }, { 0, "03", "03" }, { 3, "03", "03" }, { 1, "14", "14" }, { 4, "14", "14" },
		{ 2, "25", "25" }, { 2, "25", "25" }, { 5, "25", "25" }, { 5, "25", "25" }, { 3, "0235", "035" },
	};
	const uint64_t stage[] = { bits("03"), bits("14"), bits("25") };
	struct hd_holding h;

	(void)state;
	assert_int_equal(hd_holding_init(&h, NB, NULL), HD_OK);
	for (uint32_t copies = 0; copies < 4; copies++) {
		if (copies == 2)
			continue;
		hd_holding_make(&h, &three, &(struct hd_holders){ 7, NULL, stage, NULL }, copies, 0);
		assert_true(h.partial && h.apart == (copies > 0));
		for (uint32_t b = 0; b < NB; b++) {
			uint32_t owner = copies == 0 ? is[b].owner : copies == 1 ? one_copy[b].owner :
				three_copies[b].owner;
			const char *param = is[b].param, *slot = copies == 0 ? is[b].slot : copies == 1 ?
				one_copy[b].slot : three_copies[b].slot;
			CHECK(h.owner[b] == owner && h.param[b] == bits(param) && h.slot[b] == bits(slot),
				"%u copies, bucket %u: owner %u, param %llx, slot %llx", copies, b,
				h.owner[b], (unsigned long long)h.param[b], (unsigned long long)h.slot[b]);
		}
	}
	hd_holding_finish(&h);
}

/* Stages that keep all state: as if there were none, but for the owners, which are of the stage. */
static void whole_state_is_held_by_all(void **state)
{
	static const uint32_t owner[NB] = { 0, 0, 3, 1, 4, 2, 2, 5, 5, 3 };
	const uint64_t stage[] = { bits("03"), bits("14"), bits("25") };
	struct hd_stage_buckets whole = three;
	struct hd_holding h;

	(void)state;
	whole.whole = true;
	assert_int_equal(hd_holding_init(&h, NB, NULL), HD_OK);
	hd_holding_make(&h, &whole, &(struct hd_holders){ 7, NULL, stage, NULL }, 0, 0);
	assert_true(!h.partial && !h.apart);
	for (uint32_t b = 0; b < NB; b++)
		CHECK(h.owner[b] == owner[b] && h.param[b] == 127 && h.slot[b] == 127, "bucket %u", b);
	hd_holding_finish(&h);
}

/* Owners are those of no shadows; of the second pipeline's third stage there is none. */
static void shadows_hold_what_their_stages_read_and_own_nothing(void **state)
{
	static const uint32_t owner[NB] = { 0, 0, 3, 1, 4, 2, 2, 5, 5, 3 };
	static const char *const held[NB] = { "0325", "0325", "0325", "1403", "1403", "251", "251", "251",
		"251", "02351" };
	const uint64_t stage[] = { bits("03"), bits("14"), bits("25") },
		shadow[] = { bits("25"), bits("03"), bits("1") };
	static const char *const spare[NB] = { "25", "25", "25", "03", "03", "1", "1", "1", "1", "1" };
	struct hd_holding h;

	(void)state;
	assert_int_equal(hd_holding_init(&h, NB, NULL), HD_OK);
	hd_holding_make(&h, &three, &(struct hd_holders){ 7, NULL, stage, shadow }, 0, 0);
	assert_true(h.partial && !h.apart);
	for (uint32_t b = 0; b < NB; b++)
		CHECK(h.owner[b] == owner[b] && h.param[b] == bits(held[b]) && h.slot[b] == bits(held[b]) &&
			h.spare[b] == bits(spare[b]), "bucket %u: %llx, %llx", b,
			(unsigned long long)h.param[b], (unsigned long long)h.spare[b]);
	hd_holding_finish(&h);
}

/* Tensors 0 1 2, 3 4 and 2 5 9 of the buckets above: members that lack some of one that they have more of. */
static void kin_lack_parts_of_tensors_that_they_hold_parts_of(void **state)
{
	static const char *const kin[NB] = { "", "", "25", "", "", "03", "", "", "", "" };
	uint32_t first[] = { 0, 3, 5, 8 }, bucket[] = { 0, 1, 2, 3, 4, 2, 5, 9 };
	const uint64_t stage[] = { bits("03"), bits("14"), bits("25") };
	struct hd_stage_buckets whole = three;
	struct hd_holding h;

	(void)state;
	whole.tensors = (struct hd_bucket_tensors){ 3, first, bucket };
	assert_int_equal(hd_holding_init(&h, NB, NULL), HD_OK);
	hd_holding_make(&h, &whole, &(struct hd_holders){ 7, NULL, stage, NULL }, 0, 0);
	/* bucket 9 is the last stage's too, which lacks 2 and has 5 */
	for (uint32_t b = 0; b < NB; b++)
		CHECK(h.kin[b] == bits(kin[b]), "bucket %u: %llx", b,
			(unsigned long long)h.kin[b]);
	whole.tensors.n = 0;
	hd_holding_make(&h, &whole, &(struct hd_holders){ 7, NULL, stage, NULL }, 0, 0);
	assert_false(hd_holding_kin(h.kin, &whole, h.slot, NB));
	whole.tensors.n = 3;
	whole.whole = true;
	hd_holding_make(&h, &whole, &(struct hd_holders){ 7, NULL, stage, NULL }, 0, 0);
	assert_false(hd_holding_kin(h.kin, &whole, h.slot, NB) || hd_holding_kin(h.kin, NULL, h.slot, NB));
	hd_holding_finish(&h);
}

static void without_memory_there_is_no_holding(void **state)
{
	struct hd_diag diag = { "" };
	struct hd_holding h;

	(void)state;
	for (uint64_t n = 1; n <= 4; n++) {
		hd_alloc_arm(n);
		assert_int_equal(hd_holding_init(&h, NB, &diag), HD_E_NOMEM);
		hd_alloc_arm(0);
		assert_true(!h.param && !h.slot && !h.owner && !h.kin && strstr(diag.text, "10 buckets"));
	}
	hd_holding_finish(&h);
	hd_holding_finish(&h);
}

/* ---- owners by bytes ---- */

enum { MANY = 400, ALIKE = 4000, LARGEST = 1 << 20 };

static uint64_t drawn(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return *state >> 33;
}

/* Seldom large ones, often small ones. */
static void draw_bytes(uint64_t *bytes, uint32_t n, uint64_t seed)
{
	for (uint32_t b = 0; b < n; b++)
		bytes[b] = drawn(&seed) % 8 ? drawn(&seed) % (LARGEST / 64) : drawn(&seed) % LARGEST;
}

static uint64_t owned_bytes(const struct hd_holding *h, uint32_t member, uint32_t from)
{
	uint64_t sum = 0;

	for (uint32_t b = from; b < h->nbuckets; b++)
		sum += h->owner[b] == member ? h->bytes[b] : 0;
	return sum;
}

/* From any bucket on, no owner has more than another one by what a bucket adds to what it may be ahead. */
static void owners_have_as_many_bytes_at_any_time(void **state)
{
	uint64_t bytes[MANY];
	struct hd_holding h;

	(void)state;
	assert_int_equal(hd_holding_init(&h, MANY, NULL), HD_OK);
	h.bytes = bytes;
	for (uint64_t seed = 1; seed < 30; seed++) {
		const uint32_t n = 1 + (uint32_t)(seed * 7 % 20), servers = seed % 3 ? 0 : 2 + seed % 4,
			copies = seed % 3 ? (uint32_t)(seed % 2 * 2) : 2;
		const uint32_t serve = servers && servers < n ? servers : n;
		uint64_t all = 0, largest = 0;
		draw_bytes(bytes, MANY, seed);
		for (uint32_t b = 0; b < MANY; b++)
			all += bytes[b];
		hd_holding_make(&h, NULL, &(struct hd_holders){ .n = n }, copies, servers);
		for (uint32_t b = MANY; b-- > 0;) {
			uint64_t least = UINT64_MAX, most = 0;
			largest = bytes[b] > largest ? bytes[b] : largest;
			for (uint32_t m = 0; m < serve; m++) {
				const uint64_t has = owned_bytes(&h, m, b);
				least = has < least ? has : least;
				most = has > most ? has : most;
			}
			CHECK(most - least <= largest + largest / 2 + all / serve / HD_HOLDING_SLACK &&
				h.owner[b] < serve && h.slot[b] >> h.owner[b] & 1,
				"seed %llu, bucket %u: %llu to %llu", (unsigned long long)seed, b,
				(unsigned long long)least, (unsigned long long)most);
		}
	}
	hd_holding_finish(&h);
}

/* Where all of them have the slots an owner moves nothing: it is one that has the fewest bytes so far, the
 * lowest of these, whatever their ids are. */
static void where_all_have_the_slots_the_least_owns(void **state)
{
	static const struct { uint32_t n, copies, servers, serve; } is[] = {
		{ 4, 2, 2, 2 }, { 3, 0, 0, 3 }, { 4, 3, 3, 3 }, { 3, 3, 0, 3 }, { 2, 2, 0, 2 }, { 5, 7, 0, 5 },
	};
	uint64_t bytes[MANY];
	uint32_t id[8];
	struct hd_holding h;

	(void)state;
	assert_int_equal(hd_holding_init(&h, MANY, NULL), HD_OK);
	h.bytes = bytes;
	for (uint64_t seed = 1; seed < 7; seed++) {
		const uint32_t n = is[seed - 1].n, serve = is[seed - 1].serve;
		draw_bytes(bytes, MANY, seed);
		for (uint32_t i = 0; i < n; i++)
			id[i] = (uint32_t)(seed * 100 + 7 * i);
		hd_holding_make(&h, NULL, &(struct hd_holders){ n, id, NULL, NULL }, is[seed - 1].copies,
			is[seed - 1].servers);
		for (uint32_t b = MANY; b-- > 0;) {
			const uint32_t owner = h.owner[b];
			for (uint32_t m = 0; m < serve; m++) {
				const uint64_t has = owned_bytes(&h, m, b + 1),
					own = owned_bytes(&h, owner, b + 1);
				CHECK(owner < serve && (own < has || (own == has && owner <= m)),
					"seed %u, bucket %u: %u, not %u", (unsigned)seed, b, owner, m);
			}
		}
	}
	hd_holding_finish(&h);
}

/* What share of the bytes changes its owner's id. */
static double moved(const struct hd_holding *a, const uint32_t *id_a, const struct hd_holding *b,
	const uint32_t *id_b)
{
	double all = 0, sum = 0;

	for (uint32_t i = 0; i < a->nbuckets; i++) {
		all += (double)a->bytes[i];
		sum += id_a[a->owner[i]] != id_b[b->owner[i]] ? (double)a->bytes[i] : 0;
	}
	return sum / all;
}

/* Of buckets that are alike, a member that goes needs 1/n to move, on the mean; by number 0.37 to 0.44 do. Of
 * two that are left both have all slots, and owners are no matter. */
static void a_member_that_goes_moves_few_bytes(void **state)
{
	static uint64_t bytes[ALIKE];
	struct hd_holding h, other;

	(void)state;
	assert_int_equal(hd_holding_init(&h, ALIKE, NULL), HD_OK);
	assert_int_equal(hd_holding_init(&other, ALIKE, NULL), HD_OK);
	for (uint32_t b = 0; b < ALIKE; b++)
		bytes[b] = LARGEST;
	h.bytes = other.bytes = bytes;
	for (uint32_t n = 4; n <= 12; n++) {
		uint32_t id[16], fewer[16];
		for (uint32_t i = 0; i < n; i++)
			id[i] = 5 + 3 * i;
		hd_holding_make(&h, NULL, &(struct hd_holders){ n, id, NULL, NULL }, 2, 0);
		double sum = 0;
		for (uint32_t gone = 0; gone < n; gone++) {
			for (uint32_t i = 0; i + 1 < n; i++)
				fewer[i] = id[i + (i >= gone)];
			hd_holding_make(&other, NULL, &(struct hd_holders){ n - 1, fewer, NULL, NULL }, 2, 0);
			sum += moved(&h, id, &other, fewer);
		}
		CHECK(sum / n < 1.0 / n + 0.1, "%u members: %.3f move", n, sum / n);
	}
	hd_holding_finish(&h);
	hd_holding_finish(&other);
}

/* Runs of buckets with one owner are what messages name. */
static void of_very_many_buckets_neighbours_go_together(void **state)
{
	enum { N = 4 * HD_HOLDING_DEALT + 1 };
	uint64_t *bytes = hd_alloc(N * sizeof *bytes);
	struct hd_holding h;
	uint32_t runs = 1;

	(void)state;
	assert_non_null(bytes);
	assert_int_equal(hd_holding_init(&h, N, NULL), HD_OK);
	for (uint32_t b = 0; b < N; b++)
		bytes[b] = 1;
	h.bytes = bytes;
	hd_holding_make(&h, NULL, &(struct hd_holders){ .n = 5 }, 2, 0);
	for (uint32_t b = 1; b < N; b++)
		runs += h.owner[b] != h.owner[b - 1];
	CHECK(runs > HD_HOLDING_DEALT / 4 && runs <= HD_HOLDING_DEALT, "%u runs", runs);
	hd_holding_finish(&h);
	hd_free(bytes);
}

/* Three stages, the second with most bytes: of each its holders own as much, and each owns of its own. */
static void owners_of_stages_are_holders_by_bytes(void **state)
{
	static const uint64_t bytes[NB] = { 4, 1, 1, 90, 90, 5, 5, 5, 5, 1 };
	const uint64_t stage[] = { bits("03"), bits("14"), bits("25") };
	struct hd_holding h;

	(void)state;
	assert_int_equal(hd_holding_init(&h, NB, NULL), HD_OK);
	h.bytes = bytes;
	hd_holding_make(&h, &three, &(struct hd_holders){ 7, NULL, stage, NULL }, 0, 0);
	for (uint32_t b = 0; b < NB; b++)
		CHECK(stage[of_three[b].stage] >> h.owner[b] & 1, "bucket %u: %u", b, h.owner[b]);
	for (uint32_t s = 0; s < 3; s++) {
		const uint64_t one = owned_bytes(&h, s, 0), two = owned_bytes(&h, s + 3, 0);
		CHECK((one > two ? one - two : two - one) <= (s ? 0 : 5), "stage %u: %llu, %llu", s,
			(unsigned long long)one, (unsigned long long)two);
	}
	hd_holding_finish(&h);
}

static void members_of_a_mask_are_counted_from_the_lowest(void **state)
{
	(void)state;
	assert_int_equal(hd_members_nth(bits("247"), 0), 2);
	assert_int_equal(hd_members_nth(bits("247"), 2), 7);
	assert_true(hd_members_all(64) == ~UINT64_C(0) && hd_members_all(3) == 7);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_one_stage_all_hold_the_parameters),
		cmocka_unit_test(servers_alone_hold_the_slots),
		cmocka_unit_test(stages_are_held_by_their_holders_and_what_is_read_twice_by_both),
		cmocka_unit_test(whole_state_is_held_by_all),
		cmocka_unit_test(shadows_hold_what_their_stages_read_and_own_nothing),
		cmocka_unit_test(kin_lack_parts_of_tensors_that_they_hold_parts_of),
		cmocka_unit_test(without_memory_there_is_no_holding),
		cmocka_unit_test(owners_have_as_many_bytes_at_any_time),
		cmocka_unit_test(where_all_have_the_slots_the_least_owns),
		cmocka_unit_test(a_member_that_goes_moves_few_bytes),
		cmocka_unit_test(of_very_many_buckets_neighbours_go_together),
		cmocka_unit_test(owners_of_stages_are_holders_by_bytes),
		cmocka_unit_test(members_of_a_mask_are_counted_from_the_lowest),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
