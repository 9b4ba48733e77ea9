#include "protocol/view.h"

#include <string.h>

#include "protocol/passes.h"
#include "tests/check.h"

static uint32_t rnd(uint32_t *s) { return (*s = *s * 1664525u + 1013904223u) >> 8; }

/* The set of a worker's leaves, from the definition: ranks one after the other. */
static void leaves_of(const struct hd_view *view, uint32_t worker, uint8_t *has)
{
	uint32_t v = 0;

	for (uint32_t r = 0; r < view->nranks; r++)
		for (uint32_t i = 0; i < view->rank[r].nvns; i++)
			has[v++] = view->rank[r].worker == worker;
}

static struct hd_view random_view(uint32_t *seed, uint32_t nvns)
{
	struct hd_view view = { .epoch = 7, .nmembers = 1 + rnd(seed) % 5 };
	uint32_t left = nvns;

	for (uint32_t i = 0; i < view.nmembers; i++)
		view.member[i] = 3 * i + rnd(seed) % 3;
	view.nranks = 1 + rnd(seed) % 9;
	for (uint32_t r = 0; r < view.nranks; r++) {
		uint32_t n = r + 1 < view.nranks ? rnd(seed) % (left + 1) / (1 + rnd(seed) % 3) : left;
		view.rank[r] = (struct hd_vrank){ view.member[rnd(seed) % view.nmembers], n };
		left -= n;
	}
	return view;
}

static void ranges_devices_and_roots_are_those_of_the_set(void **state)
{
	uint32_t seed = 1;

	(void)state;
	for (uint32_t turn = 0; turn < 3000; turn++) {
		uint32_t nvns = 1 + rnd(&seed) % 40;
		struct hd_view view = random_view(&seed, nvns);
		struct hd_passes passes;
		uint32_t vn = 0;
		CHECK(hd_view_verify(&view, nvns, NULL) == HD_OK, "turn %u", turn);
		CHECK(hd_passes_of_view(&passes, &view) == HD_OK, "turn %u", turn);
		CHECK(hd_passes_tile(&passes, nvns, &vn), "turn %u: virtual node %u", turn, vn);
		for (uint32_t i = 0; i < view.nmembers; i++) {
			uint8_t has[64] = { 0 }, got[64] = { 0 };
			struct hd_vrange range[HD_VIEW_RANKS];
			struct hd_tnode want[64], roots[64];
			uint32_t nwant = 0, nroots = 0, n = hd_view_ranges(&view, view.member[i], range),
				first[HD_MAX_PASSES + 1], np = 0;
			leaves_of(&view, view.member[i], has);
			for (uint32_t k = 0; k < n; k++) {
				CHECK(range[k].n && (!k || range[k].first > range[k - 1].first +
					range[k - 1].n), "turn %u", turn);
				memset(got + range[k].first, 1, range[k].n);
			}
			CHECK(!memcmp(has, got, nvns), "turn %u worker %u", turn, view.member[i]);
			assert_int_equal(hd_tree_roots(nvns, has, want, 64, &nwant), HD_OK);
			assert_int_equal(hd_passes_roots(&passes, nvns, view.member[i], roots, 64, first,
				&np), HD_OK);
			nroots = first[np];
			CHECK(nroots == nwant && !memcmp(roots, want, nwant * sizeof *want),
				"turn %u worker %u", turn, view.member[i]);
		}
	}
}

static void every_bucket_has_one_owner_and_owners_have_runs(void **state)
{
	(void)state;
	for (uint32_t n = 1; n <= 9; n++)
		for (uint32_t nb = 1; nb <= 40; nb++)
			for (uint32_t b = 0; b < nb; b++) {
				uint32_t o = hd_bucket_owner(b, nb, n);
				CHECK(o < n && b >= hd_bucket_first(o, nb, n) &&
					b < hd_bucket_first(o + 1, nb, n), "bucket %u of %u, %u members", b,
					nb, n);
			}
}

static void a_bad_view_is_refused_with_a_reason(void **state)
{
	static const struct { struct hd_view view; const char *says; } cases[] = {
		{ { 1, 0, 1, 0, { 0 }, { { 0, 4 } }, { 0 }, { 0 } },  "view 1 has 0 members with 1 devices; at most 64 with 256" },
		{ { 1, 65, 1, 0, { 0 }, { { 0, 4 } }, { 0 }, { 0 } },  "view 1 has 65 members with 1 devices; at most 64 with 256" },
		{ { 1, 1, 0, 0, { 4 }, { { 4, 4 } }, { 0 }, { 0 } },  "view 1 has 1 members with 0 devices; at most 64 with 256" },
		{ { 1, 1, 257, 0, { 4 }, { { 4, 4 } }, { 0 }, { 0 } },  "view 1 has 1 members with 257 devices; at most 64 with 256" },
		{ { 1, 2, 1, 0, { 4, 4 }, { { 4, 4 } }, { 0 }, { 0 } },  "view 1: member 4 stands before 4" },
		{ { 1, 1, 1, 0, { 4 }, { { 5, 4 } }, { 0 }, { 0 } },  "view 1: rank 0 is of worker 5, which is no member" },
		{ { 1, 1, 2, 0, { 4 }, { { 4, 3 }, { 4, 2 } }, { 0 }, { 0 } },  "view 1 maps 5 virtual nodes of 4" },
	};
	(void)state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_diag diag = { "" };
		assert_int_equal(hd_view_verify(&cases[i].view, 4, &diag), HD_E_BADPLAN);
		assert_string_equal(diag.text, cases[i].says);
	}
}

static void slots_lie_at_the_owner_and_the_members_after_it(void **state)
{
	static const struct { uint32_t bucket, nbuckets, nmembers, copies; uint64_t chain; } cases[] = {
		{ 0, 4, 4, 1, 1 }, { 3, 4, 4, 1, 8 }, { 1, 4, 4, 2, 2 | 4 }, { 3, 4, 4, 2, 8 | 1 }, { 2, 4, 4, 9, 15 }, { 0, 4, 1, 2, 1 }, { 0, 4, 4, 0, 0 },
		{ 3, 4, 4, UINT32_MAX, 15 },
	};
	(void)state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		CHECK(hd_bucket_chain(cases[i].bucket, cases[i].nbuckets, cases[i].nmembers,
			cases[i].copies) == cases[i].chain, "case %zu", i);
}

/* Against all ways to share: none finishes earlier. */
static void work_is_dealt_so_that_the_last_finishes_first(void **state)
{
	uint32_t seed = 3;

	(void)state;
	for (uint32_t turn = 0; turn < 300; turn++) {
		uint32_t load[3], extra[3], missing = rnd(&seed) % 9;
		uint64_t ps[3], best = UINT64_MAX, mine = 0;
		for (int i = 0; i < 3; i++) {
			load[i] = rnd(&seed) % 5;
			ps[i] = 1 + rnd(&seed) % 7;
		}
		hd_view_deal(load, ps, 3, missing, extra);
		assert_int_equal(extra[0] + extra[1] + extra[2], missing);
		for (uint32_t a = 0; a <= missing; a++)
			for (uint32_t b = 0; a + b <= missing; b++) {
				uint32_t s[3] = { a, b, missing - a - b };
				uint64_t worst = 0;
				for (int i = 0; i < 3; i++)
					if (s[i] && (load[i] + s[i]) * ps[i] > worst)
						worst = (load[i] + s[i]) * ps[i];
				best = worst < best ? worst : best;
			}
		for (int i = 0; i < 3; i++)
			if (extra[i] && (load[i] + extra[i]) * ps[i] > mine)
				mine = (load[i] + extra[i]) * ps[i];
		CHECK(mine == best, "turn %u", turn);
	}
}

static void even_shares_tile_and_differ_by_one_at_most(void **state)
{
	static const uint32_t some[] = { 1, 0, 3 };
	struct hd_view of_some;

	(void)state;
	hd_view_even(&of_some, 1, (uint32_t[]){ 3, 5, 6 }, some, 3, 10);
	assert_int_equal(of_some.nranks, 5);                      /* one at least for each */
	for (uint32_t n = 1; n <= HD_MAX_MEMBERS; n += 7) {
		uint32_t member[HD_MAX_MEMBERS], devices[HD_MAX_MEMBERS];
		struct hd_view view;
		for (uint32_t i = 0; i < n; i++) {
			member[i] = 2 * i;
			devices[i] = i % 11;
		}
		hd_view_even(&view, 1, member, devices, n, 67);
		assert_int_equal(hd_view_verify(&view, 67, NULL), HD_OK);
		for (uint32_t r = 1; r < view.nranks; r++)
			CHECK(view.rank[r].nvns + 1 >= view.rank[0].nvns &&
				view.rank[r].nvns <= view.rank[r - 1].nvns, "n %u", n);
	}
}

static void the_epoch_is_part_of_a_view_but_not_of_its_map(void **state)
{
	struct hd_view a, b;

	(void)state;
	hd_view_even(&a, 1, (uint32_t[]){ 1, 2 }, (uint32_t[]){ 1, 2 }, 2, 9);
	b = a;
	b.epoch = 2;
	assert_false(hd_hash_same(hd_view_hash(&a), hd_view_hash(&b)));
	assert_true(hd_view_same_map(&a, &b));
	b.rank[0].nvns--;
	b.rank[1].nvns++;
	assert_false(hd_view_same_map(&a, &b));
}

/* ---- stages ---- */

/* Two pipelines of two ranks with two stages each, there and back: 4 and 9 hold the ends, 6 and 9 the middle.
 * */
static const struct hd_view staged = { .epoch = 3, .nmembers = 3, .nranks = 4, .member = { 4, 6, 9 },
	.rank = { { 4, 3 }, { 6, 0 }, { 9, 2 }, { 9, 0 } },
	.shape = { .nstages = 4, .width = 2, .place = { 0, 1, 1, 0 } } };

static void a_shape_puts_stages_round_or_there_and_back(void **state)
{
	static const struct { uint32_t width,
		chunks; bool vee; uint32_t nstages; uint8_t place[6]; } row[] = {
		{ 1, 1, false, 0, { 0 } }, { 2, 1, false, 2, { 0, 1 } }, { 2, 1, true, 2, { 0, 1 } },
		{ 3, 2, false, 6, { 0, 1, 2, 0, 1, 2 } }, { 3, 2, true, 6, { 0, 1, 2, 2, 1, 0 } },
		{ 2, 3, true, 6, { 0, 1, 1, 0, 0, 1 } }, { 1, 2, true, 2, { 0, 0 } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct hd_view_shape s;
		memset(&s, 7, sizeof s);
		hd_view_shape(&s, row[i].width, row[i].chunks, row[i].vee);
		CHECK(s.nstages == row[i].nstages && s.width == (s.nstages ? row[i].width : 0) &&
			!memcmp(s.place, row[i].place, sizeof row[i].place) && !s.place[6], "row %zu", i);
	}
}

static void a_bad_shape_is_refused_with_a_reason(void **state)
{
	static const struct { struct hd_view_shape shape; uint32_t nvns[4]; const char *says; } row[] = {
		{ { 4, 2, { 0, 1, 1, 0 }, 0, .first = { 0 } }, { 3, 0, 2, 0 }, "" },
		{ { 1, 1, { 0 }, 0, .first = { 0 } }, { 3, 0, 2, 0 }, "" },
		{ { 1, 2, { 0 }, 0, .first = { 0 } }, { 3, 0, 2, 0 },
			"1 stages on 2 ranks in groups of 0: stages have copies from 2 stages up" },
		{ { 0, 1, { 0 }, 0, .first = { 0 } }, { 3, 0, 2, 0 },
			"4 ranks are no pipelines of 1 ranks with 0 stages" },
		{ { 65, 2, { 0, 1 }, 0, .first = { 0 } }, { 3, 0, 2, 0 },
			"4 ranks are no pipelines of 2 ranks with 65 stages" },
		{ { 4, 0, { 0 }, 0, .first = { 0 } }, { 3, 0, 2, 0 }, "4 ranks are no pipelines of 0 ranks" },
		/* stages with copies */
		{ { 2, 4, { 0, 1 }, 0, .first = { 0 } }, { 5, 0, 0, 0 }, "" },
		{ { 2, 4, { 0, 3 }, 0, .first = { 0 } }, { 2, 2, 1, 0 }, "" },
		{ { 2, 4, { 0, 3 }, 0, .first = { 0 } }, { 2, 2, 1, 1 },
			"rank 3 is not the first of its pipeline, and has 1" },
		{ { 2, 4, { 0, 3 }, 0, .first = { 0 } }, { 2, 1, 2, 0 },
			"the virtual nodes of pipeline 0 are not dealt to its 3 lanes" },
		{ { 3, 4, { 0, 2, 2 }, 0, .first = { 0 } }, { 5, 0, 0, 0 }, "stage 2 cannot be at rank 2 of 4" },
		{ { 3, 4, { 0, 2, 4 }, 0, .first = { 0 } }, { 5, 0, 0, 0 }, "stage 2 cannot be at rank 4 of 4" },
		{ { 3, 4, { 1, 2, 3 }, 0, .first = { 0 } }, { 5, 0, 0, 0 }, "stage 0 cannot be at rank 1 of 4" },
		{ { 2, 4, { 0, 3 }, 0, .first = { 0 }, .groups = 2 }, { 5, 0, 0, 0 },
			"2 stages on 4 ranks in groups of 2: stages have copies" },
		{ { 3, 3, { 0, 1, 2 }, 0, .first = { 0 } }, { 3, 0, 0, 2 }, "4 ranks are no pipelines of 3 ranks" },
		{ { 2, 2, { 0, 2 }, 0, .first = { 0 } }, { 3, 0, 2, 0 }, "stage 1 cannot be at rank 2 of 2" },
		{ { 2, 2, { 1, 0 }, 0, .first = { 0 } }, { 3, 0, 2, 0 }, "stage 0 cannot be at rank 1 of 2" },
		{ { 2, 2, { 0, 0 }, 0, .first = { 0 } }, { 3, 0, 2, 0 }, "a rank of its pipelines has no stage" },
		{ { 2, 2, { 0, 1 }, 0, .first = { 0 } }, { 3, 1, 1, 0 },
			"rank 1 is not the first of its pipeline, and has 1" },
		{ { 2, 2, { 0, 1 }, 0, .first = { 0 } }, { 3, 0, 1, 0 }, "maps 4 virtual nodes of 5" },
		{ { 4, 2, { 0, 1, 1, 0 }, 0, .first = { 0, 3, 4, 9 } }, { 3, 0, 2, 0 }, "" },
		{ { 4, 2, { 0, 1, 1, 0 }, 0, .first = { 0, 3, 3, 9 } }, { 3, 0, 2, 0 },
			"stage 2 cannot begin with node 3" },
		{ { 4, 2, { 0, 1, 1, 0 }, 0, .first = { 1, 3, 4, 9 } }, { 3, 0, 2, 0 },
			"stage 0 cannot begin with node 1" },
		{ { 4, 2, { 0, 1, 1, 0 }, 0, .first = { 0, 3, 4 } }, { 3, 0, 2, 0 },
			"stage 3 cannot begin with node 0" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct hd_view view = staged;
		struct hd_diag diag = { "" };
		view.shape = row[i].shape;
		for (uint32_t r = 0; r < 4; r++)
			view.rank[r].nvns = row[i].nvns[r];
		CHECK(hd_view_verify(&view, 5, &diag) == (*row[i].says ? HD_E_BADPLAN : HD_OK) &&
			strstr(diag.text, row[i].says), "row %zu: %s", i, diag.text);
	}
}

static void who_holds_which_stage_of_which_virtual_nodes(void **state)
{
	static const struct { uint32_t stage; uint64_t holders; } held[] = { { 0, 5 }, { 1, 6 }, { 2, 6 },
		{ 3, 5 } };
	static const struct { uint32_t worker; uint64_t stages; struct hd_vrange of[4], all; } is[] = {
		{ 4, 9, { { 0, 3 }, { 0, 0 }, { 0, 0 }, { 0, 3 } }, { 0, 3 } },
		{ 6, 6, { { 0, 0 }, { 0, 3 }, { 0, 3 }, { 0, 0 } }, { 0, 3 } },
		{ 9, 15, { { 3, 2 }, { 3, 2 }, { 3, 2 }, { 3, 2 } }, { 3, 2 } },
	};
	struct hd_vrange range[HD_VIEW_RANKS];

	(void)state;
	assert_int_equal(hd_view_pipes(&staged), 2);
	for (uint32_t s = 0; s < 4; s++)
		assert_int_equal(hd_view_holders(&staged, held[s].stage), held[s].holders);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(hd_view_stages(&staged, is[i].worker), is[i].stages);
		for (uint32_t s = 0; s < 4; s++) {
			uint32_t n = hd_view_stage_ranges(&staged, is[i].worker, s, range);
			CHECK(n == (is[i].of[s].n > 0) && (!n || !memcmp(range, &is[i].of[s], sizeof *range)),
				"worker %u, stage %u", is[i].worker, s);
		}
		assert_int_equal(hd_view_ranges(&staged, is[i].worker, range), 1);
		assert_memory_equal(range, &is[i].all, sizeof *range);
	}
	assert_int_equal(hd_view_devices(&staged, 9, range), 2);
	assert_true(range[0].first == 3 && range[1].first == 3 && range[1].n == 2);
	for (uint32_t v = 0; v < 5; v++) {
		assert_int_equal(hd_view_lane(&staged, v), v >= 3);
		for (uint32_t s = 0; s < 4; s++)
			assert_int_equal(hd_view_runs(&staged, v, s), v >= 3 ? 2 : s == 1 || s == 2);
	}
	assert_int_equal(hd_view_stages(&staged, 5), 0);
}

/* Rule 13, worked out by hand: the range of each rank in the order of the ranks. */
static void copies_of_a_stage_have_neighbouring_virtual_nodes(void **state)
{
	static const struct {
		uint32_t nstages, width, nvns, pipes, lanes; uint8_t place[4];
		struct hd_vrange of[8];
	} row[] = {
		{ 2, 4, 7, 1, 3, { 0, 3 }, { { 0, 3 }, { 3, 2 }, { 5, 2 }, { 0, 7 } } },
		{ 2, 4, 8, 1, 3, { 0, 1 }, { { 0, 8 }, { 0, 3 }, { 3, 3 }, { 6, 2 } } },
		{ 3, 6, 13, 1, 6, { 0, 2, 5 },
			{ { 0, 7 }, { 7, 6 }, { 0, 5 }, { 5, 4 }, { 9, 4 }, { 0, 13 } } },
		{ 2, 3, 7, 2, 2, { 0, 1 }, { { 0, 4 }, { 0, 2 }, { 2, 2 }, { 4, 3 }, { 4, 2 }, { 6, 1 } } },
		/* two pipelines would have 3 lanes and 2 virtual nodes */
		{ 2, 4, 5, 1, 3, { 0, 3 }, { { 0, 2 }, { 2, 2 }, { 4, 1 }, { 0, 5 } } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		const uint32_t id[] = { 3, 4, 6, 7, 8, 9, 11, 12 }, ones[] = { 1, 1, 1, 1, 1, 1, 1, 1 },
			n = row[i].width * row[i].pipes;
		struct hd_view_shape shape = { .nstages = row[i].nstages, .width = row[i].width };
		struct hd_view view;
		struct hd_vrange range[HD_VIEW_RANKS];
		struct hd_passes passes;
		struct hd_diag diag = { "" };
		memcpy(shape.place, row[i].place, sizeof row[i].place);
		assert_true(hd_view_staged(&view, 1, id, ones, i == 4 ? 8 : n, row[i].nvns, &shape, 9));
		CHECK(!hd_view_verify(&view, row[i].nvns, &diag) && hd_view_pipes(&view) == row[i].pipes &&
			hd_view_nlanes(&view) == row[i].pipes * row[i].lanes, "row %zu: %s", i, diag.text);
		for (uint32_t r = 0; r < n; r++) {
			uint32_t stage = shape.nstages - 1;
			while (shape.place[stage] > r % shape.width)
				stage--;
			CHECK(hd_view_stages(&view, id[r]) == UINT64_C(1) << stage &&
				hd_view_ranges(&view, id[r], range) == 1 &&
				!memcmp(range, &row[i].of[r], sizeof *range), "row %zu rank %u: %u + %u", i,
				r, range->first, range->n);
			for (uint32_t v = 0; v < row[i].nvns; v++)
				CHECK((hd_view_runs(&view, v, stage) == r) == (v >= row[i].of[r].first &&
					v - row[i].of[r].first < row[i].of[r].n), "row %zu: %u", i, v);
		}
		assert_int_equal(hd_passes_of_view(&passes, &view), HD_OK);
		assert_int_equal(passes.npasses, n);
		uint32_t vn = 0;
		assert_true(hd_passes_tile(&passes, row[i].nvns, &vn));
		assert_true(!hd_view_shadows(&view, 0) && !hd_view_without(&view, &view, id, n));
	}
}

static void more_copies_than_virtual_nodes_are_no_pipeline(void **state)
{
	const uint32_t id[] = { 0, 1, 2, 3 }, ones[] = { 1, 1, 1, 1 };
	const struct hd_view_shape shape = { .nstages = 2, .width = 4, .place = { 0, 3 } };
	struct hd_view view = { .epoch = 77 };

	(void)state;
	assert_false(hd_view_staged(&view, 1, id, ones, 4, 2, &shape, 1));
	assert_int_equal(view.epoch, 77);
	assert_true(hd_view_staged(&view, 1, id, ones, 4, 3, &shape, 1));
}

/* Rule 10. `rank`: the workers of a view of some pipelines; `shadow`: for each stage the members that have
 * it. */
static void a_shadow_is_at_the_nearest_rank_before_that_another_worker_has(void **state)
{
	static const struct { uint32_t width, chunks, vee, n, rank[6]; uint64_t shadow[6]; } row[] = {
		{ 3, 1, 0, 3, { 0, 1, 2 }, { 4, 1, 2 } }, { 2, 1, 0, 2, { 0, 1 }, { 2, 1 } },
		{ 3, 1, 0, 6, { 0, 1, 2, 3, 4, 5 }, { 4 | 32, 1 | 8, 2 | 16 } },
		/* 0 has two ranks side by side: the shadow of the second is two back */
		{ 3, 1, 0, 3, { 0, 0, 1 }, { 2, 2, 1 } }, { 3, 1, 0, 3, { 0, 1, 0 }, { 2, 1, 2 } },
		{ 3, 1, 0, 3, { 2, 2, 2 }, { 0, 0, 0 } }, { 1, 3, 0, 2, { 0, 1 }, { 0, 0, 0 } },
		/* one pipeline of a worker alone, one of two */
		{ 2, 1, 0, 4, { 0, 0, 1, 2 }, { 4, 2 } },
		{ 2, 2, 0, 2, { 0, 1 }, { 2, 1, 2, 1 } }, { 2, 2, 1, 2, { 0, 1 }, { 2, 1, 1, 2 } },
		{ 3, 2, 1, 3, { 0, 1, 2 }, { 4, 1, 2, 2, 1, 4 } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct hd_view view = { .nmembers = 6, .member = { 0, 1, 2, 3, 4, 5 }, .nranks = row[i].n };
		uint64_t had[6] = { 0 };
		hd_view_shape(&view.shape, row[i].width, row[i].chunks, row[i].vee);
		for (uint32_t r = 0; r < row[i].n; r++)
			view.rank[r].worker = row[i].rank[r];
		for (uint32_t s = 0; s < view.shape.nstages; s++) {
			CHECK(hd_view_shadows(&view, s) == row[i].shadow[s], "row %zu stage %u: %llx", i, s,
				(unsigned long long)hd_view_shadows(&view, s));
			for (uint32_t m = 0; m < 6; m++)
				had[m] |= (row[i].shadow[s] >> m & 1) << s;
		}
		for (uint32_t m = 0; m < 6; m++)
			CHECK(hd_view_shadowed(&view, m) == had[m], "row %zu worker %u", i, m);
		assert_int_equal(hd_view_shadowed(&view, 9), 0);
	}
}

/* Rule 14: ranks, then followers, as a message names them. */
static void a_view_names_followers_behind_its_ranks(void **state)
{
	static const struct { uint32_t n; struct hd_vrank rank[6]; bool good; uint32_t nranks; } row[] = {
		{ 2, { { 0, 4 }, { 1, 0 } }, true, 2 },
		{ 3, { { 0, 4 }, { 1, 0 }, { 2, HD_FOLLOWS } }, true, 2 },
		{ 4, { { 0, 4 }, { 1, 0 }, { 2, HD_FOLLOWS | 1 }, { 3, HD_FOLLOWS | 1 } }, true, 2 },
		/* no such stage; one with a rank; no member; twice, not ascending; before a rank */
		{ 3, { { 0, 4 }, { 1, 0 }, { 2, HD_FOLLOWS | 2 } }, false, 2 },
		{ 3, { { 0, 4 }, { 1, 0 }, { 1, HD_FOLLOWS } }, false, 2 },
		{ 3, { { 0, 4 }, { 1, 0 }, { 9, HD_FOLLOWS } }, false, 2 },
		{ 4, { { 0, 4 }, { 1, 0 }, { 2, HD_FOLLOWS }, { 2, HD_FOLLOWS } }, false, 2 },
		{ 4, { { 0, 4 }, { 1, 0 }, { 3, HD_FOLLOWS }, { 2, HD_FOLLOWS } }, false, 2 },
		{ 3, { { 0, 4 }, { 2, HD_FOLLOWS }, { 1, 0 } }, false, 3 },
		{ 1, { { 2, HD_FOLLOWS } }, false, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct hd_view view = { .nmembers = 4, .member = { 0, 1, 2, 3 } }, other;
		hd_view_shape(&view.shape, 2, 1, false);
		hd_view_take_ranks(&view, row[i].rank, row[i].n);
		CHECK(view.nranks == row[i].nranks && hd_view_named(&view) == row[i].n &&
			!hd_view_verify(&view, 4, NULL) == row[i].good, "row %zu", i);
		if (!row[i].good)
			continue;
		other = view;
		other.nfollows = 0;
		assert_int_equal(hd_view_same_map(&view, &other), !view.nfollows);
		assert_int_equal(hd_view_follows(&view, 0), HD_NOBODY);
		for (uint32_t k = view.nranks; k < row[i].n; k++) {
			const uint32_t stage = row[i].rank[k].nvns & ~HD_FOLLOWS;
			assert_int_equal(hd_view_follows(&view, row[i].rank[k].worker), stage);
		}
	}
}

/* A follower holds what its stage reads, parameters and slots, and owns nothing. Where a rank is doubled for
 * the rest of a step it follows what it did, and one that is lost with it nothing. */
static void a_follower_is_a_holder_also_for_the_rest_of_a_step(void **state)
{
	static struct hd_stage_bucket bucket[] = { { 0, 1, 1 }, { 0, 1, 5 }, { 1, 2, 2 }, { 2, 4, 4 } };
	const struct hd_stage_buckets buckets = { .n = 4, .nstages = 3, .at = bucket, .shadows = true };
	static const struct hd_vrank ranks[] = { { 0, 4 }, { 1, 0 }, { 2, 0 }, { 3, HD_FOLLOWS },
		{ 4, HD_FOLLOWS | 2 } };
	/* a runner, its shadow before it, and the follower; bucket 1 is read by two stages */
	static const uint64_t want[] = { 1 | 4 | 8, 1 | 4 | 2 | 8 | 16, 2 | 1, 4 | 2 | 16 };
	static const uint32_t stay[] = { 0, 2, 4 };
	struct hd_view view = { .nmembers = 5, .member = { 0, 1, 2, 3, 4 } }, rest;
	struct hd_holding held;

	(void)state;
	hd_view_shape(&view.shape, 3, 1, false);
	hd_view_take_ranks(&view, ranks, 5);
	assert_int_equal(hd_view_verify(&view, 4, NULL), HD_OK);
	assert_int_equal(hd_holding_init(&held, 4, NULL), HD_OK);
	hd_view_holding(&held, &view, &buckets, 0, 0);
	for (uint32_t b = 0; b < 4; b++)
		CHECK(held.param[b] == want[b] && held.slot[b] == want[b] && held.owner[b] < 3,
			"bucket %u: %llx", b, (unsigned long long)held.param[b]);
	hd_holding_finish(&held);
	assert_int_equal(hd_view_kept(&view, &buckets, 4), 4);
	assert_int_equal(hd_view_keepers(&view, &buckets, 0), 1 | 4 | 8);
	assert_true(hd_view_without(&rest, &view, stay, 3) && hd_view_is_doubled(&rest));
	assert_int_equal(hd_view_verify(&rest, 4, NULL), HD_OK);
	assert_true(rest.nfollows == 1 && hd_view_follows(&rest, 4) == 2);
}

static void a_shape_is_part_of_a_view_and_none_of_one_without(void **state)
{
	struct hd_view a = staged, b = staged, plain = staged;

	(void)state;
	b.shape.place[2] = 0;
	b.shape.place[3] = 1;
	assert_false(hd_view_same_map(&a, &b));
	b = a;
	b.epoch = 9;
	assert_true(hd_view_same_map(&a, &b));
	b.shape.first[1] = 3;
	assert_false(hd_view_same_map(&a, &b) || hd_view_same_shape(&a.shape, &b.shape));
	b.epoch = a.epoch;
	assert_false(hd_hash_same(hd_view_hash(&a), hd_view_hash(&b)));
	for (uint32_t way = 0; way < 3; way++) {
		b = a;
		b.shape.each = way == 0 ? 2 : 0;
		b.shape.groups = way == 1 ? 2 : 0;
		b.shape.again = way == 2;
		assert_false(hd_view_same_map(&a, &b) || hd_view_same_shape(&a.shape, &b.shape));
	}
	plain.shape = (struct hd_view_shape){ 0 };
	assert_false(hd_view_same_map(&a, &plain));
	assert_int_equal(hd_view_nstages(&plain), 1);
	assert_int_equal(hd_view_pipes(&plain), 4);
	assert_int_equal(hd_view_holders(&plain, 0), 7);
	assert_int_equal(hd_view_runs(&plain, 4, 0), 2);
}

static void a_shape_is_read_from_lists_that_belong_together(void **state)
{
	static const uint32_t places[] = { 0, 1, 1, 0 }, odd[] = { 0, 300, 1, 0 }, cuts[] = { 0, 3, 4, 9 };
	static const struct { const uint32_t *place; uint32_t nplace, nfirst, way; bool good; } row[] = {
		{ places, 4, 4, 0, true }, { places, 4, 0, 0, true }, { places, 4, 3, 0, false },
		{ places, 0, 4, 0, false }, { odd, 4, 4, 0, false }, { places, HD_STAGE_BITS + 1, 0, 0, false },
		{ places, 4, 0, 0x10203, true }, { places, 4, 4, 0x10203, false },
		{ places, 4, 4, 0x10300, false }, { places, 4, 4, 1, false },
		{ places, 4, 4, 0x100, false }, { places, 4, 4, 0x20000, false } };
	struct hd_view view = staged;

	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		hd_view_shape_read(&view.shape, 2, 7, row[i].way, row[i].place, row[i].nplace, cuts,
			row[i].nfirst);
		CHECK(!hd_view_verify(&view, 5, NULL) == row[i].good, "row %zu", i);
		CHECK(!row[i].good || (view.shape.schedule == 7 && hd_view_nfirst(&view.shape) ==
			row[i].nfirst && view.shape.first[3] == (row[i].nfirst ? 9 : 0) &&
			hd_view_way(&view.shape) == row[i].way), "row %zu", i);
	}
}

static void passes_of_stages_tile_stage_by_stage(void **state)
{
	static const struct hd_pass want[] = {
		{ 4, 0, 0, 1, 0 }, { 4, 1, 1, 1, 3 }, { 6, 0, 2, 1, 1 }, { 6, 1, 3, 1, 2 },
		{ 9, 0, 4, 1, 0 }, { 9, 1, 5, 1, 1 }, { 9, 2, 6, 1, 2 }, { 9, 3, 7, 1, 3 },
	};
	struct hd_passes passes, bad;
	struct hd_tnode root[16];
	uint32_t vn, first[HD_MAX_PASSES + 1], n;

	(void)state;
	assert_int_equal(hd_passes_of_view(&passes, &staged), HD_OK);
	assert_int_equal(passes.npasses, 8);
	assert_memory_equal(passes.pass, want, sizeof want);
	assert_true(hd_passes_tile(&passes, 5, &vn));
	/* ordinals run through all of a worker's passes */
	assert_int_equal(hd_passes_roots(&passes, 5, 9, root, 16, first, &n), HD_OK);
	assert_true(n == 4 && first[1] * 4 == first[4] && first[4]);
	bad = passes;
	bad.range[3].n = 2;                       /* of stage 2 alone */
	assert_false(hd_passes_tile(&bad, 5, &vn));
	assert_int_equal(vn, 2);
	bad = passes;
	bad.pass[7].stage = 4;
	assert_false(hd_passes_tile(&bad, 5, &vn));
	assert_int_equal(vn, 3);
	bad = passes;
	bad.nstages = 5;                          /* of the last there is none */
	assert_false(hd_passes_tile(&bad, 5, &vn));
}

static void devices_in_order_of_members_are_the_ranks_of_pipelines(void **state)
{
	static const struct { uint32_t ndevices[3], pipes, nvns, nranks; uint32_t worker[6],
		of[6]; } row[] = {
		{ { 1, 1, 1 }, 2, 7, 2, { 4, 6 }, { 7, 0 } },             /* 9 is left over */
		{ { 1, 2, 1 }, 2, 7, 4, { 4, 6, 6, 9 }, { 4, 0, 3, 0 } },
		{ { 3, 2, 1 }, 2, 7, 4, { 4, 4, 4, 6 }, { 4, 0, 3, 0 } },
		{ { 2, 2, 2 }, 9, 7, 6, { 4, 4, 6, 6, 9, 9 }, { 3, 0, 2, 0, 2, 0 } },
		{ { 2, 2, 2 }, 9, 2, 4, { 4, 4, 6, 6 }, { 1, 0, 1, 0 } },         /* a virtual node each */
		{ { 1, 0, 0 }, 2, 7, 0, { 0 }, { 0 } },
	};
	struct hd_view_shape shape;

	(void)state;
	hd_view_shape(&shape, 2, 1, false);
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct hd_view view = { .epoch = 77 };
		bool made = hd_view_staged(&view, 5, (uint32_t[]){ 4, 6, 9 }, row[i].ndevices, 3, row[i].nvns,
			&shape, row[i].pipes);
		CHECK(made == (row[i].nranks > 0) && view.nranks == row[i].nranks &&
			view.epoch == (made ? 5u : 77u), "row %zu: %u ranks", i, view.nranks);
		for (uint32_t r = 0; r < view.nranks; r++)
			CHECK(view.rank[r].worker == row[i].worker[r] && view.rank[r].nvns == row[i].of[r],
				"row %zu, rank %u", i, r);
		if (made)
			assert_int_equal(hd_view_verify(&view, row[i].nvns, NULL), HD_OK);
	}
}

/* Four ranks of a stage each, or of two pipelines; workers 4 to 7, or 4 to 11. */
static void ranks_of_four(struct hd_view *view, uint32_t pipes)
{
	static const uint32_t ones[] = { 1, 1, 1, 1, 1, 1, 1, 1 }, id[] = { 4, 5, 6, 7, 8, 9, 10, 11 };
	struct hd_view_shape shape;

	hd_view_shape(&shape, 4, 1, false);
	assert_true(hd_view_staged(view, 3, id, ones, 4 * pipes, 8, &shape, pipes));
}

static void a_lost_rank_is_doubled_by_the_one_before_it(void **state)
{
	static const struct { uint32_t pipes, lost[2], nlost; bool may; } cases[] = {
		{ 1, { 4, 0 }, 1, true }, { 1, { 6, 0 }, 1, true }, { 1, { 7, 5 }, 2, true },
		{ 1, { 5, 6 }, 2, false }, { 1, { 4, 7 }, 2, false }, { 2, { 4, 8 }, 2, true }, { 2, { 7, 8 }, 2, true },
		{ 2, { 11, 8 }, 2, false },
	};
	struct hd_view view, rest;
	struct hd_diag diag;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		uint32_t left[8], n = 0, doubled = 0;
		ranks_of_four(&view, cases[i].pipes);
		for (uint32_t m = 0; m < view.nmembers; m++)
			if (view.member[m] != cases[i].lost[0] &&
				(cases[i].nlost == 1 || view.member[m] != cases[i].lost[1]))
				left[n++] = view.member[m];
		CHECK(hd_view_without(&rest, &view, left, n) == cases[i].may, "case %zu", i);
		if (!cases[i].may)
			continue;
		rest.epoch = 4;
		CHECK(hd_view_verify(&rest, 8, &diag) == HD_OK, "case %zu: %s", i, diag.text);
		assert_true(hd_view_is_doubled(&rest) && !hd_view_is_doubled(&view));
		for (uint32_t r = 0; r < rest.nranks; r++) {
			const bool is = hd_view_doubled(&rest, r);
			const uint32_t before = r % 4 ? r - 1 : r + 3;
			doubled += is;
			CHECK(is == (rest.rank[r].worker != view.rank[r].worker), "case %zu rank %u", i, r);
			CHECK(!is || rest.rank[r].worker == view.rank[before].worker,
				"case %zu rank %u", i, r);
		}
		assert_int_equal(doubled, cases[i].nlost);
		/* another map, and another hash, though all else be equal */
		struct hd_view plain = rest;
		memset(plain.doubled, 0, sizeof plain.doubled);
		assert_false(hd_view_same_map(&plain, &rest));
		assert_false(hd_view_without(&plain, &rest, left, n));
	}
	ranks_of_four(&view, 1);
	view.doubled[0] = 2;              /* of its own worker */
	assert_int_equal(hd_view_verify(&view, 8, &diag), HD_E_BADPLAN);
	assert_string_equal(diag.text, "view 3: rank 1 is not doubled by the one before it");
}

/* The stage of a doubled rank and the one behind it have no shadow; the others have theirs. */
static void doubled_ranks_end_two_shadows(void **state)
{
	static const uint32_t left[] = { 4, 5, 7 };
	struct hd_view view, rest;

	(void)state;
	ranks_of_four(&view, 1);
	assert_true(hd_view_without(&rest, &view, left, 3));
	/* masks of 4, 5, 7 */
	assert_int_equal(hd_view_holders(&rest, 2), 2);
	assert_int_equal(hd_view_shadows(&rest, 0), 4);
	assert_int_equal(hd_view_shadows(&rest, 1), 1);
	assert_int_equal(hd_view_shadows(&rest, 2), 0);
	assert_int_equal(hd_view_shadows(&rest, 3), 0);
}

/* Passes keep their numbers; that of an inherited stage is behind them, also where its stage is lower. */
static void heirs_have_a_pass_more(void **state)
{
	static const uint32_t left[] = { 5, 6, 7 };
	struct hd_view view, rest;
	struct hd_passes passes;
	uint32_t vn;

	(void)state;
	ranks_of_four(&view, 1);
	assert_true(hd_view_without(&rest, &view, left, 3));
	assert_int_equal(hd_passes_of_rest(&passes, &view, &rest), HD_OK);
	assert_int_equal(passes.npasses, 4);
	assert_int_equal(hd_passes_find(&passes, 7, 0)->stage, 3);
	assert_int_equal(hd_passes_find(&passes, 7, 1)->stage, 0);
	assert_int_equal(hd_passes_find(&passes, 5, 0)->stage, 1);
	assert_true(hd_passes_tile(&passes, 8, &vn));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranges_devices_and_roots_are_those_of_the_set),
		cmocka_unit_test(every_bucket_has_one_owner_and_owners_have_runs),
		cmocka_unit_test(a_bad_view_is_refused_with_a_reason),
		cmocka_unit_test(slots_lie_at_the_owner_and_the_members_after_it),
		cmocka_unit_test(work_is_dealt_so_that_the_last_finishes_first),
		cmocka_unit_test(even_shares_tile_and_differ_by_one_at_most),
		cmocka_unit_test(the_epoch_is_part_of_a_view_but_not_of_its_map),
		cmocka_unit_test(a_shape_puts_stages_round_or_there_and_back),
		cmocka_unit_test(a_bad_shape_is_refused_with_a_reason),
		cmocka_unit_test(copies_of_a_stage_have_neighbouring_virtual_nodes),
		cmocka_unit_test(more_copies_than_virtual_nodes_are_no_pipeline),
		cmocka_unit_test(who_holds_which_stage_of_which_virtual_nodes),
		cmocka_unit_test(a_shadow_is_at_the_nearest_rank_before_that_another_worker_has),
		cmocka_unit_test(a_view_names_followers_behind_its_ranks),
		cmocka_unit_test(a_follower_is_a_holder_also_for_the_rest_of_a_step),
		cmocka_unit_test(a_shape_is_part_of_a_view_and_none_of_one_without),
		cmocka_unit_test(a_shape_is_read_from_lists_that_belong_together),
		cmocka_unit_test(passes_of_stages_tile_stage_by_stage),
		cmocka_unit_test(devices_in_order_of_members_are_the_ranks_of_pipelines),
		cmocka_unit_test(a_lost_rank_is_doubled_by_the_one_before_it),
		cmocka_unit_test(doubled_ranks_end_two_shadows),
		cmocka_unit_test(heirs_have_a_pass_more),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
