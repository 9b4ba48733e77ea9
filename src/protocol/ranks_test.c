#include "protocol/ranks.h"

#include <string.h>

#include "tests/check.h"

static uint32_t rnd(uint32_t *s) { return (*s = *s * 1664525u + 1013904223u) >> 8; }

enum { MEMBERS = 5, RANKS = 6 };

/* The oracle: every way to give ranks to members, in the order of rank 0's member, then rank 1's; the first
 * of the least cost in which the first that has devices has a rank is what the header promises. */
struct every_rank {
	const struct hd_lacks *lacks;
	uint32_t n, width, nranks, first, devices, left[MEMBERS], at[RANKS], best[RANKS];
	uint64_t least;
};

static void try_rank(struct every_rank *e, uint32_t r, uint64_t cost)
{
	if (r == e->nranks) {
		if (cost < e->least && e->left[e->first] < e->devices) {
			e->least = cost;
			memcpy(e->best, e->at, sizeof e->best);
		}
		return;
	}
	for (uint32_t m = 0; m < e->n; m++) {
		if (!e->left[m])
			continue;
		e->left[m]--;
		e->at[r] = m;
		try_rank(e, r + 1, cost + e->lacks->at[m][r % e->width]);
		e->left[m]++;
	}
}

static void ranks_are_the_first_of_the_fewest_bytes(void **state)
{
	static struct hd_lacks lacks;
	uint32_t seed = 7;

	(void)state;
	for (uint32_t turn = 0; turn < 1500; turn++) {
		struct every_rank e = { .lacks = &lacks, .n = 1 + rnd(&seed) % MEMBERS, .least = UINT64_MAX };
		uint32_t member[MEMBERS], ndevices[MEMBERS], width = 1 + rnd(&seed) % 3,
			most = 1 + rnd(&seed) % 4, pipes = 1 + rnd(&seed) % (RANKS / width);
		struct hd_view_shape shape;
		struct hd_view view;
		hd_view_shape(&shape, width, width == 1 ? 2 : 1 + rnd(&seed) % 2, rnd(&seed) % 2);
		for (uint32_t m = 0; m < e.n; m++) {
			member[m] = 3 * m + 1;
			e.left[m] = ndevices[m] = (rnd(&seed) % 4 > 0) + rnd(&seed) % 2;
			for (uint32_t w = 0; w < width; w++)
				lacks.at[m][w] = rnd(&seed) % most * 1000;
		}
		if (!hd_view_staged(&view, 1, member, ndevices, e.n, 13, &shape, pipes))
			continue;
		e.width = width;
		while (!ndevices[e.first])
			e.first++;
		e.devices = ndevices[e.first];
		e.nranks = view.nranks;
		try_rank(&e, 0, 0);
		hd_ranks_settle(&view, ndevices, &lacks);
		CHECK(hd_view_verify(&view, 13, NULL) == HD_OK, "turn %u", turn);
		for (uint32_t r = 0; r < view.nranks; r++)
			CHECK(view.rank[r].worker == member[e.best[r]], "turn %u rank %u: %u, not %u", turn,
				r, view.rank[r].worker, member[e.best[r]]);
	}
}

/* Two buckets of two stages, a third of both. */
static struct hd_stage_bucket bucket[] = { { 0, 1, 1 }, { 0, 3, 3 }, { 1, 2, 2 } };
static const struct hd_stage_buckets two = { .n = 3, .nstages = 2, .at = bucket };
static const uint64_t bytes[] = { 100, 10, 1 };

static void what_a_member_lacks_is_what_its_place_reads(void **state)
{
	static const struct { uint64_t held[3]; uint64_t at[2][2]; } row[] = {
		{ { 0, 0, 0 }, { { 110, 11 }, { 110, 11 } } }, { { 1, 3, 2 }, { { 0, 1 }, { 100, 0 } } },
		{ { 3, 3, 3 }, { { 0, 0 }, { 0, 0 } } } };
	const struct hd_view_shape shape = { .nstages = 2, .width = 2, .place = { 0, 1 } };
	static struct hd_lacks lacks;

	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		hd_lacks_make(&lacks, &shape, &two, bytes, row[i].held, 2);
		for (uint32_t m = 0; m < 2; m++)
			for (uint32_t w = 0; w < 2; w++)
				CHECK(lacks.at[m][w] == row[i].at[m][w], "row %zu: member %u at %u", i, m, w);
	}
	struct hd_stage_buckets whole = two;
	whole.whole = true;                       /* all hold all, wherever they compute */
	hd_lacks_make(&lacks, &shape, &whole, bytes, row[0].held, 2);
	assert_int_equal(lacks.at[0][0] + lacks.at[1][1], 0);
}

/* A member with both stages lacks the bucket that both read once. */
static void bytes_that_move_are_counted_once_a_member(void **state)
{
	static const struct { uint32_t worker[2]; uint64_t held[3], moves, members; } row[] = {
		{ { 4, 4 }, { 0, 0, 0 }, 111, 1 }, { { 4, 6 }, { 0, 0, 0 }, 121, 3 },
		{ { 6, 4 }, { 2, 2, 0 }, 11, 1 }, { { 6, 4 }, { 2, 3, 1 }, 0, 0 } };

	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		const struct hd_view view = { .nmembers = 2, .nranks = 2, .member = { 4, 6 },
			.rank = { { row[i].worker[0], 1 }, { row[i].worker[1], 0 } },
			.shape = { 2, 2, { 0, 1 } } };
		uint64_t members = 9, n = hd_view_moves(&view, &two, bytes, row[i].held, &members);
		CHECK(n == row[i].moves && members == row[i].members, "row %zu: %llu to %llx", i,
			(unsigned long long)n, (unsigned long long)members);
	}
}

/* Rule 4: with two stages a shadow is all of the other one. Of each view in which no member has two ranks the
 * costs of the places are the bytes that move. */
static void a_place_with_a_shadow_needs_what_the_next_one_reads(void **state)
{
	static struct hd_stage_bucket of_three[] = { { 0, 1, 1 }, { 0, 3, 3 }, { 1, 2, 2 }, { 2, 4, 4 } };
	const struct hd_stage_buckets three = { .n = 4, .nstages = 3, .at = of_three, .shadows = true };
	static const uint64_t size[] = { 1000, 100, 10, 1 };
	static struct hd_lacks lacks;
	uint32_t seed = 3;

	(void)state;
	for (uint32_t turn = 0; turn < 500; turn++) {
		struct hd_view view = { .nmembers = 3, .nranks = 3, .member = { 4, 6, 9 } };
		const uint32_t first = rnd(&seed) % 3, back = rnd(&seed) % 2;
		uint64_t held[4], members, lacking = 0, sum = 0;
		hd_view_shape(&view.shape, 3, 1, false);
		for (uint32_t b = 0; b < 4; b++)
			held[b] = rnd(&seed) % 8;
		hd_lacks_make(&lacks, &view.shape, &three, size, held, 3);
		for (uint32_t w = 0; w < 3; w++) {
			const uint32_t m = (back ? first + 3 - w : first + w) % 3;
			view.rank[w].worker = view.member[m];
			sum += lacks.at[m][w];
			lacking |= (uint64_t)(lacks.at[m][w] > 0) << m;
			uint64_t is = held[1] >> m & 1 ? 0 : 100;
			is += held[0] >> m & 1 || w == 1 ? 0 : 1000;
			is += held[2] >> m & 1 || w == 2 ? 0 : 10;
			is += held[3] >> m & 1 || w == 0 ? 0 : 1;
			CHECK(lacks.at[m][w] == is, "turn %u place %u", turn, w);
		}
		CHECK(hd_view_moves(&view, &three, size, held, &members) == sum && members == lacking,
			"turn %u", turn);
	}
	const struct hd_view_shape narrow = { .nstages = 2, .width = 1 };
	struct hd_stage_buckets alone = two;
	alone.shadows = true;                     /* one rank: no other to have a shadow */
	hd_lacks_make(&lacks, &narrow, &alone, bytes, (const uint64_t[]){ 0, 0, 0 }, 1);
	assert_int_equal(lacks.at[0][0], 111);
}

/* The largest: members in order, since nothing moves; then turned round, since all else would. */
static void many_members_take_no_longer_than_a_few(void **state)
{
	static struct hd_lacks lacks;
	uint32_t member[HD_MAX_MEMBERS], ndevices[HD_MAX_MEMBERS];
	struct hd_view_shape shape;
	struct hd_view view;

	(void)state;
	for (uint32_t m = 0; m < HD_MAX_MEMBERS; m++) {
		member[m] = m;
		ndevices[m] = 4;
	}
	hd_view_shape(&shape, 64, 1, false);
	for (uint32_t turned = 0; turned < 2; turned++) {
		assert_true(hd_view_staged(&view, 1, member, ndevices, HD_MAX_MEMBERS, 100, &shape, 9));
		assert_int_equal(view.nranks, HD_VIEW_RANKS);
		for (uint32_t m = 0; m < HD_MAX_MEMBERS; m++)
			for (uint32_t w = 0; w < 64; w++)
				lacks.at[m][w] = turned && w != 63 - m ? 1 + w : 0;
		hd_ranks_settle(&view, ndevices, &lacks);
		for (uint32_t r = 0; r < view.nranks; r++)
			CHECK(view.rank[r].worker == (turned ? 63 - r % 64 : r / 4), "rank %u", r);
	}
}

/* Rule 5. Ranks first, of n members, of which each holds stages as bits; stages of one bucket each, of 100,
 * 90 and 80 bytes. What each follows from the first without a rank on, 9: nothing. */
static void members_without_a_rank_follow_the_stages_with_the_fewest_holders(void **state)
{
	static const struct {
		uint32_t width, nranks, n;
		bool shadows;
		uint64_t going;
		uint32_t held[7], follows[4];
	} row[] = {
		/* nothing is held: the stage that takes the fewest bytes, then another */
		{ 2, 2, 4, false, 0, { 1, 2 }, { 1, 0 } }, { 3, 3, 7, false, 0, { 1, 2, 4 }, { 2, 1, 0, 2 } },
		/* each goes on with what it has, whatever order they are in, and whoever is gone */
		{ 2, 2, 4, false, 0, { 1, 2, 1, 2 }, { 0, 1 } }, { 2, 2, 4, false, 0, { 1, 2, 2, 1 }, { 1, 0 } },
		{ 2, 2, 3, false, 0, { 1, 2, 1 }, { 0 } }, { 2, 2, 3, false, 0, { 1, 2, 2 }, { 1 } },
		{ 3, 3, 5, false, 0, { 1, 2, 4, 4, 2 }, { 2, 1 } },
		/* of two that have the same the first goes on, the other begins with another */
		{ 2, 2, 4, false, 0, { 1, 2, 1, 1 }, { 0, 1 } },
		/* the fewest holders go before what is held */
		{ 2, 3, 4, false, 0, { 1, 2, 1, 1 }, { 1 } },
		/* shadows are holders; where one worker has the pipeline there is none */
		{ 3, 3, 5, true, 0, { 5, 3, 6 }, { 2, 1 } }, { 2, 1, 3, true, 0, { 3 }, { 1, 0 } },
		/* those that are about to go follow nothing */
		{ 2, 2, 4, false, 4, { 1, 2, 1, 0 }, { 9, 1 } }, { 2, 2, 3, false, 4, { 1, 2, 2 }, { 9 } },
	};
	static const uint64_t size[] = { 100, 90, 80 };

	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct hd_stage_bucket at[3];
		struct hd_stage_buckets buckets = { .n = row[i].width, .nstages = row[i].width, .at = at,
			.shadows = row[i].shadows };
		/* 3 ranks of 2: a second pipeline, whose stages are of the third member and the second */
		struct hd_view view = { .nmembers = row[i].n, .nranks = row[i].width };
		uint64_t held[3] = { 0 };
		hd_view_shape(&view.shape, row[i].width, 1, false);
		for (uint32_t m = 0; m < row[i].n; m++)
			view.member[m] = 10 + m;
		for (uint32_t s = 0; s < row[i].width; s++) {
			at[s] = (struct hd_stage_bucket){ s, UINT64_C(1) << s, UINT64_C(1) << s };
			for (uint32_t m = 0; m < row[i].n; m++)
				held[s] |= (uint64_t)(row[i].held[m] >> s & 1) << m;
			view.rank[s].worker = 10 + s % row[i].nranks;
		}
		if (row[i].nranks > row[i].width) {
			view.nranks = 2 * row[i].width;
			view.rank[2].worker = 12;
			view.rank[3].worker = 11;
		}
		hd_ranks_follow(&view, &buckets, size, held, row[i].going);
		CHECK(!view.nfollows, "row %zu: %u follow without being asked to", i, view.nfollows);
		buckets.follows = true;
		hd_ranks_follow(&view, &buckets, size, held, row[i].going);
		for (uint32_t m = row[i].nranks; m < row[i].n; m++) {
			const uint32_t is = hd_view_follows(&view, 10 + m),
				want = row[i].follows[m - row[i].nranks];
			CHECK(is == (want == 9 ? HD_NOBODY : want), "row %zu: member %u follows %d", i, m,
				(int)is);
		}
		view.rank[0].nvns = 5;
		assert_int_equal(hd_view_verify(&view, 5, NULL), HD_OK);
		hd_ranks_follow(&view, &buckets, size, NULL, 0);
		assert_int_equal(view.nfollows, row[i].n - row[i].nranks);
		buckets.whole = true;
		hd_ranks_follow(&view, &buckets, size, held, 0);
		assert_int_equal(view.nfollows, 0);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranks_are_the_first_of_the_fewest_bytes),
		cmocka_unit_test(what_a_member_lacks_is_what_its_place_reads),
		cmocka_unit_test(bytes_that_move_are_counted_once_a_member),
		cmocka_unit_test(a_place_with_a_shadow_needs_what_the_next_one_reads),
		cmocka_unit_test(members_without_a_rank_follow_the_stages_with_the_fewest_holders),
		cmocka_unit_test(many_members_take_no_longer_than_a_few),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
