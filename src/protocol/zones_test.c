#include "protocol/zones.h"

#include <stdlib.h>
#include <string.h>

#include "tests/check.h"

static struct hd_arena arena;
static uint32_t rnd(uint32_t *s) { return (*s = *s * 1664525u + 1013904223u) >> 8; }

static void equal_names_are_one_zone(void **state)
{
	static const char *const name[] = { "b", "", "a", "b", "" };
	uint32_t zone[5];

	(void)state;
	assert_int_equal(hd_zones_number(name, 5, zone), 3);
	assert_true(zone[0] == 2 && zone[3] == 2 && zone[1] == 1 && zone[4] == 1 && zone[2] == 0);
	assert_int_equal(hd_zones_number(name, 1, zone), 1);
	assert_int_equal(zone[0], 0);
}

enum { MOST = 6, PLACES = 6 };

/* The oracle: every way to give ranks to members that has the first one; its weight by what placement.h says,
 * counted here, and the bytes that it lacks. */
struct every {
	const struct hd_lacks *lacks;
	const uint32_t *zone;
	uint32_t n, width, nranks, left[MOST], at[PLACES], nused;
	int64_t least, seen;              /* weights */
};

static int64_t weigh(const struct every *e, const uint32_t *at)
{
	const uint32_t d = e->nranks / e->width;
	int64_t sum = 0;
	uint32_t used = 0;

	for (uint32_t r = 0; r < e->nranks; r++) {
		used |= 1u << e->zone[at[r]];
		sum += e->zone[at[r]] == e->zone[at[r - r % e->width + (r + 1) % e->width]] ? 1100 : 0;
	}
	for (uint32_t w = 0; w < e->width; w++) {
		uint32_t here = 0, might = (uint32_t)__builtin_popcount(used);
		for (uint32_t k = 0; k < d; k++)
			here |= 1u << e->zone[at[k * e->width + w]];
		sum += 10 * ((might < d ? might : d) - (uint32_t)__builtin_popcount(here));
	}
	return sum;
}

static void try_rank(struct every *e, uint32_t r)
{
	if (r == e->nranks) {
		bool first = false;
		for (uint32_t i = 0; i < r; i++)
			first |= e->at[i] == 0;
		const int64_t w = first ? weigh(e, e->at) : INT64_MAX;
		e->least = w < e->least ? w : e->least;
		return;
	}
	for (uint32_t m = 0; m < e->n; m++) {
		if (!e->left[m])
			continue;
		e->left[m]--;
		e->at[r] = m;
		try_rank(e, r + 1);
		e->left[m]++;
	}
}

/* Two zones, of any sizes, random holdings: no more neighbours are in one zone than must be, but where the
 * ranks did well already nothing moves; and what members lack lets nothing else change. */
static void ranks_lie_as_well_in_zones_as_they_can(void **state)
{
	static struct hd_lacks lacks;
	uint32_t seed = 11, worse = 0, stayed = 0, moved = 0;

	(void)state;
	for (uint32_t turn = 0; turn < DRAWS(600); turn++) {
		uint32_t member[MOST], nranks[MOST], zone[MOST], at[PLACES],
			width = 2 + rnd(&seed) % 2, pipes = 1 + rnd(&seed) % 2;
		/* of a hundred thousand TiB, too */
		const uint64_t unit = turn % 2 ? 1000 : UINT64_C(1) << 57;
		struct every e = { .lacks = &lacks, .zone = zone, .n = 2 + rnd(&seed) % (MOST - 1),
			.width = width, .least = INT64_MAX };
		struct hd_view_shape shape;
		struct hd_view view, before;
		struct hd_diag diag = { "" };
		const char *name[MOST];
		static const char *const names[] = { "a", "b", "c" };
		hd_view_shape(&shape, width, 1, false);
		for (uint32_t m = 0; m < e.n; m++) {
			member[m] = 3 * m + 1;
			e.left[m] = nranks[m] = 1;
			name[m] = names[rnd(&seed) % (turn % 3 ? 2 : 3)];
			for (uint32_t w = 0; w < width; w++)
				lacks.at[m][w] = rnd(&seed) % 3 * unit;
		}
		const struct hd_rank_zones zones = { nranks, zone, e.n, hd_zones_number(name, e.n, zone) };
		if (!hd_view_staged(&view, 1, member, nranks, e.n, 13, &shape, pipes))
			continue;
		hd_ranks_settle(&view, nranks, &lacks);
		before = view;
		CHECK(hd_ranks_part(&view, &zones, &lacks, true, &arena, &diag) == HD_OK, "%s", diag.text);
		CHECK(hd_view_verify(&view, 13, NULL) == HD_OK, "turn %u", turn);
		e.nranks = view.nranks;
		for (uint32_t r = 0; r < view.nranks; r++)
			at[r] = hd_view_index(&view, before.rank[r].worker);
		const int64_t had = weigh(&e, at);
		bool first = false, same = true;
		for (uint32_t r = 0; r < view.nranks; r++) {
			at[r] = hd_view_index(&view, view.rank[r].worker);
			first |= at[r] == 0;
			same &= view.rank[r].worker == before.rank[r].worker;
			for (uint32_t q = 0; q < r; q++)
				CHECK(at[q] != at[r], "turn %u: member %u has two ranks", turn, at[r]);
		}
		try_rank(&e, 0);
		const int64_t now = weigh(&e, at);
		CHECK(first && now >= e.least && now <= had, "turn %u: %lld, had %lld, best %lld", turn,
			(long long)now, (long long)had, (long long)e.least);
		CHECK(had > e.least || same, "turn %u: ranks that lie well have moved", turn);
		CHECK(now / 1000 == e.least / 1000, "turn %u: neighbours %lld, best %lld", turn,
			(long long)now, (long long)e.least);
		CHECK(hd_ranks_together(&view, &zones) == now / 1000, "turn %u", turn);
		worse += now > e.least;
		stayed += same;
		moved += !same;
		hd_arena_reset(&arena);
	}
	CHECK(SANITIZED || (20 * worse <= stayed + moved && stayed > 50 && moved > 50),
		"%u worse, %u stayed, %u moved", worse, stayed, moved);
}

/* Four members in two zones, each of which holds the whole pipeline: two members change places. */
static void no_more_bytes_move_than_must(void **state)
{
	static const uint32_t member[] = { 2, 3, 5, 7 }, ones[] = { 1, 1, 1, 1 }, zone[] = { 0, 0, 1, 1 };
	static struct hd_lacks lacks;
	const struct hd_rank_zones zones = { ones, zone, 4, 2 };
	struct hd_view_shape shape;
	struct hd_view view;
	uint64_t sum = 0;

	(void)state;
	hd_view_shape(&shape, 2, 1, false);
	for (uint32_t m = 0; m < 4; m++) {
		lacks.at[m][m % 2] = 0;
		lacks.at[m][1 - m % 2] = 100;
	}
	assert_true(hd_view_staged(&view, 1, member, ones, 4, 8, &shape, 2));
	hd_ranks_settle(&view, ones, &lacks);
	assert_int_equal(hd_ranks_together(&view, &zones), 4);
	assert_int_equal(hd_ranks_part(&view, &zones, &lacks, true, &arena, NULL), HD_OK);
	assert_int_equal(hd_ranks_together(&view, &zones), 0);
	for (uint32_t r = 0; r < 4; r++)
		sum += lacks.at[hd_view_index(&view, view.rank[r].worker)][r % 2];
	assert_int_equal(sum, 0);                 /* pipelines exchange a rank: no state moves */
	hd_arena_reset(&arena);
}

/* Rule 5: more devices than are placed at once, which stand by or are all of the view. */
static void zones_hold_for_many_devices(void **state)
{
	static const struct { uint32_t n, each, width, pipes; } row[] = { { 40, 8, 4, 4 }, { 2, 200, 8, 1 },
		{ 64, 9, 16, 8 }, { 64, 4, 16, 16 }, { 33, 8, 16, 16 } };
	static struct hd_lacks lacks;
	uint32_t member[HD_MAX_MEMBERS], nranks[HD_MAX_MEMBERS], zone[HD_MAX_MEMBERS], left[HD_MAX_MEMBERS];

	(void)state;
	memset(&lacks, 0, sizeof lacks);
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		const struct hd_rank_zones zones = { nranks, zone, row[i].n, 2 };
		struct hd_view_shape shape;
		struct hd_view view;
		struct hd_diag diag = { "" };
		hd_view_shape(&shape, row[i].width, 1, false);
		for (uint32_t m = 0; m < row[i].n; m++) {
			member[m] = m;
			left[m] = nranks[m] = row[i].each;
			zone[m] = m >= row[i].n / 2;
		}
		assert_true(hd_view_staged(&view, 1, member, nranks, row[i].n, 512, &shape, row[i].pipes));
		assert_int_equal(view.nranks, row[i].width * row[i].pipes);
		hd_ranks_settle(&view, nranks, &lacks);
		const uint32_t had = hd_ranks_together(&view, &zones);
		CHECK(hd_ranks_part(&view, &zones, &lacks, true, &arena, &diag) == HD_OK, "%s", diag.text);
		CHECK(hd_view_verify(&view, 512, NULL) == HD_OK, "row %zu", i);
		const uint32_t now = hd_ranks_together(&view, &zones);
		CHECK(had > 0 && now == 0, "row %zu: %u neighbours in one zone, had %u", i, now, had);
		for (uint32_t r = 0; r < view.nranks; r++)
			CHECK(left[hd_view_index(&view, view.rank[r].worker)]--,
				"row %zu: member %u has more ranks than it can", i, view.rank[r].worker);
		hd_arena_reset(&arena);
	}
}

/* Rule 1. */
static void nothing_changes_where_zones_help_nothing(void **state)
{
	static const uint32_t member[] = { 2, 3, 5, 7 }, ones[] = { 1, 1, 1, 1 }, zone[] = { 0, 0, 1, 1 },
		same[] = { 0, 0, 0, 0 };
	static const struct { uint32_t pipes, width; const uint32_t *zone; uint32_t nzones;
		bool shadows, groups, copies, changes; } row[] = {
		{ 2, 2, zone, 2, true, false, false, true }, { 2, 2, zone, 2, false, false, false, true },
		{ 2, 2, same, 1, true, false, false, false }, { 1, 4, zone, 2, true, false, false, true },
		{ 1, 4, zone, 2, false, false, false, false }, { 1, 4, zone, 2, true, true, false, false },
		{ 1, 4, zone, 2, true, false, true, false }, { 4, 1, zone, 2, true, false, false, false },
	};
	static struct hd_lacks lacks;

	(void)state;
	memset(&lacks, 0, sizeof lacks);
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		const struct hd_rank_zones zones = { ones, row[i].zone, 4, row[i].nzones };
		struct hd_view_shape shape;
		struct hd_view view, before;
		hd_view_shape(&shape, row[i].width, 1, false);
		if (row[i].width == 1)
			shape = (struct hd_view_shape){ .nstages = 2, .width = 1 };
		shape.groups = row[i].groups ? 2 : 0;
		if (row[i].copies)
			shape = (struct hd_view_shape){ .nstages = 3, .width = 4, .place = { 0, 2, 3 } };
		assert_true(hd_view_staged(&view, 1, member, ones, 4, 8, &shape, row[i].pipes));
		before = view;
		assert_int_equal(hd_ranks_part(&view, &zones, &lacks, row[i].shadows, &arena, NULL), HD_OK);
		CHECK(hd_view_same_map(&view, &before) == !row[i].changes, "row %zu", i);
		hd_arena_reset(&arena);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_names_are_one_zone),
		cmocka_unit_test(ranks_lie_as_well_in_zones_as_they_can),
		cmocka_unit_test(no_more_bytes_move_than_must),
		cmocka_unit_test(zones_hold_for_many_devices),
		cmocka_unit_test(nothing_changes_where_zones_help_nothing),
	};
	hd_arena_init(&arena, 0);
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	hd_arena_finish(&arena);
	return failed;
}
