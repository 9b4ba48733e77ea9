#include "plan/repair.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/check.h"

enum { MAX_V = 24, MAX_M = 5, MAX_G = 4, NOBODY = -1 };
#define NO HD_REPAIR_NOBODY

/* ---- a small world: who is mapped what, what got how far, who died; told to the planner, and judged apart from it */

struct world {
	uint32_t nvns, nmembers, ngroups;
	uint32_t coming[MAX_G][MAX_V];
	uint8_t has_sum[MAX_G][MAX_M];
	struct hd_repair_held held[MAX_G][4 * MAX_V];
	struct hd_repair_group group[MAX_G];
	int64_t extra[MAX_M][MAX_V + 1];
	struct hd_repair_member member[MAX_M];
};

static uint32_t dice(uint64_t *seed, uint32_t n)
{
	*seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(*seed >> 33) % n;
}

static void hold(struct world *w, uint32_t g, struct hd_tnode node, uint32_t member)
{
	w->held[g][w->group[g].nheld++] = (struct hd_repair_held){ node, member };
}

static struct hd_repair_ask ask_of(struct world *w)
{
	for (uint32_t g = 0; g < w->ngroups; g++) {
		w->group[g].coming = w->coming[g];
		w->group[g].has_sum = w->has_sum[g];
		w->group[g].held = w->held[g];
	}
	for (uint32_t i = 0; i < w->nmembers; i++)
		w->member[i].extra_ps = w->extra[i];
	return (struct hd_repair_ask){ .nvns = w->nvns, .nmembers = w->nmembers, .ngroups = w->ngroups, .member = w->member, .group = w->group };
}

/* Leaves mapped by chance to the members and to one that died; each survivor's are sent, or still to come; the dead one's
 * roots reached some members or nobody. */
static void random_world(struct world *w, uint64_t *seed, uint32_t map[MAX_V])
{
	memset(w, 0, sizeof *w);
	w->nvns = 1 + dice(seed, MAX_V);
	w->nmembers = 1 + dice(seed, MAX_M);
	w->ngroups = 1 + dice(seed, MAX_G);
	bool contiguous = dice(seed, 2);
	for (uint32_t v = 0; v < w->nvns; v++)
		map[v] = contiguous ? v * (w->nmembers + 1) / w->nvns : dice(seed, w->nmembers + 1);
	for (uint32_t g = 0; g < w->ngroups; g++) {
		bool somebody_has = !dice(seed, 4);
		w->group[g].nchunks = 1 + dice(seed, 5);
		w->group[g].owner = dice(seed, w->nmembers + 1);
		if (w->group[g].owner == w->nmembers)
			w->group[g].owner = NO;
		for (uint32_t i = 0; i < w->nmembers; i++)
			w->has_sum[g][i] = somebody_has && dice(seed, 2);
		for (uint32_t v = 0; v < w->nvns; v++)
			w->coming[g][v] = NO;
		for (uint32_t i = 0; i <= w->nmembers; i++) {
			uint8_t has[MAX_V];
			struct hd_tnode root[HD_MAX_ROOTS];
			uint32_t nroots = 0;
			bool done = dice(seed, 2);
			for (uint32_t v = 0; v < w->nvns; v++) {
				has[v] = map[v] == i;
				if (has[v] && !done && i < w->nmembers)
					w->coming[g][v] = i;
			}
			assert_int_equal(hd_tree_roots(w->nvns, has, root, HD_MAX_ROOTS, &nroots), HD_OK);
			for (uint32_t r = 0; r < nroots && done; r++) {
				if (i < w->nmembers)
					hold(w, g, root[r], i);
				if (dice(seed, 2))
					hold(w, g, root[r], dice(seed, w->nmembers));      /* arrived at an owner, or twice */
			}
		}
	}
	for (uint32_t i = 0; i < w->nmembers; i++) {
		w->member[i].rest_ps = dice(seed, 20);
		for (uint32_t v = 1; v <= w->nvns; v++)
			w->extra[i][v] = w->extra[i][v - 1] + dice(seed, 10);
	}
}

static bool is_root_of(const struct world *w, const uint32_t *by, uint32_t member, struct hd_tnode node)
{
	uint8_t has[MAX_V];
	struct hd_tnode root[HD_MAX_ROOTS];
	uint32_t nroots = 0;

	for (uint32_t v = 0; v < w->nvns; v++)
		has[v] = by[v] == member;
	assert_int_equal(hd_tree_roots(w->nvns, has, root, HD_MAX_ROOTS, &nroots), HD_OK);
	for (uint32_t i = 0; i < nroots; i++)
		if (hd_tnode_same(root[i], node))
			return true;
	return false;
}

static bool has_it(const struct world *w, uint32_t g, const struct hd_repair_tile *tile)
{
	for (uint32_t i = 0; i < w->group[g].nheld; i++)
		if (w->held[g][i].member == tile->member && hd_tnode_same(w->held[g][i].node, tile->node))
			return true;
	return false;
}

/* ---- laws over many worlds */

static void judge_tiles(const struct world *w, const struct hd_repair *r, uint32_t g, const uint32_t *again)
{
	bool there = false;
	uint32_t at = 0;

	for (uint32_t i = 0; i < w->nmembers; i++)
		there |= w->has_sum[g][i];
	CHECK(!there || r->first_tile[g] == r->first_tile[g + 1], "group %u has its sum and is joined again", g);
	for (uint32_t t = r->first_tile[g]; t < r->first_tile[g + 1]; t++) {
		const struct hd_repair_tile *tile = &r->tile[t];
		uint32_t first, end;
		hd_tree_cover(w->nvns, tile->node, &first, &end);
		CHECK(first == at && hd_tnode_same(hd_tree_name(w->nvns, tile->node), tile->node),
			"group %u: tile of [%u,%u) after %u", g, first, end, at);
		at = end;
		CHECK(tile->member < w->nmembers, "group %u: nobody has [%u,%u)", g, first, end);
		CHECK(tile->from != HD_REPAIR_HELD || has_it(w, g, tile), "group %u: member %u has no [%u,%u)", g, tile->member, first, end);
		CHECK(tile->from != HD_REPAIR_COMING || is_root_of(w, w->coming[g], tile->member, tile->node),
			"group %u: [%u,%u) is no root to come", g, first, end);
		CHECK(tile->from != HD_REPAIR_AGAIN || is_root_of(w, again, tile->member, tile->node),
			"group %u: [%u,%u) is no root made again", g, first, end);
	}
	CHECK(there || at == w->nvns, "group %u: tiles end at %u of %u", g, at, w->nvns);
}

static void judge_fetches(const struct world *w, const struct hd_repair *r)
{
	uint32_t chunk = 0, next = 0;

	for (uint32_t g = 0; g < w->ngroups; g++) {
		bool there = false;
		for (uint32_t i = 0; i < w->nmembers; i++)
			there |= w->has_sum[g][i];
		for (uint32_t c = 0; c < w->group[g].nchunks; c++, chunk++) {
			CHECK((r->owner[chunk] == NO) == there, "chunk %u: owner %u", chunk, r->owner[chunk]);
			CHECK(there || w->group[g].owner == NO || r->owner[chunk] == w->group[g].owner, "chunk %u leaves its owner", chunk);
			for (uint32_t to = 0; there && to < w->nmembers; to++) {
				if (w->has_sum[g][to])
					continue;
				assert_true(next < r->nfetches);
				CHECK(r->fetch[next].chunk == chunk && r->fetch[next].to == to && w->has_sum[g][r->fetch[next].from], "fetch %u", next);
				next++;
			}
		}
	}
	assert_int_equal(next, r->nfetches);
}

/* All ways to share nlost out. */
static int64_t least_finish(const struct world *w, uint32_t member, uint32_t nlost)
{
	int64_t best = INT64_MAX;

	if (member + 1 >= w->nmembers || member + 1 >= MAX_M)
		return w->member[member].rest_ps + w->extra[member][nlost];
	for (uint32_t x = 0; x <= nlost; x++) {
		int64_t mine = w->member[member].rest_ps + w->extra[member][x], others = least_finish(w, member + 1, nlost - x);
		int64_t both = mine > others ? mine : others;
		best = both < best ? both : best;
	}
	return best;
}

static void every_chunk_is_made_whole_and_only_lost_leaves_are_computed_again(void **state)
{
	uint64_t seed = 1;
	(void)state;

	for (int round = 0; round < 4000; round++) {
		struct world w;
		uint32_t map[MAX_V], again[MAX_V], lost_of_dead = 0;
		struct hd_arena arena;
		struct hd_repair r;
		struct hd_diag diag = { "" };
		hd_arena_init(&arena, 0);
		random_world(&w, &seed, map);
		struct hd_repair_ask ask = ask_of(&w);
		CHECK(hd_repair_make(&r, &ask, &arena, &diag) == HD_OK, "round %d: %s", round, diag.text);
		for (uint32_t v = 0; v < w.nvns; v++) {
			again[v] = NO;
			lost_of_dead += map[v] == w.nmembers;
		}
		for (uint32_t i = 0; i < r.nagain; i++) {
			CHECK(map[r.again[i].vn] == w.nmembers && again[r.again[i].vn] == NO, "round %d: virtual node %u again", round, r.again[i].vn);
			again[r.again[i].vn] = r.again[i].member;
		}
		assert_true(r.nagain <= lost_of_dead);
		for (uint32_t g = 0; g < w.ngroups; g++)
			judge_tiles(&w, &r, g, again);
		judge_fetches(&w, &r);
		if (r.nagain <= 8 || w.nmembers <= 3)
			CHECK(r.finish_ps == least_finish(&w, 0, r.nagain), "round %d: finished by %lld, could be by %lld", round, (long long)r.finish_ps,
				(long long)least_finish(&w, 0, r.nagain));
		hd_arena_finish(&arena);
	}
}

/* ---- the rows of the table of losses, by hand: V = 8, members 0 and 1 have [0,3) and [3,6), the dead one had [6,8) */

enum { SENT, COMING, GONE };

static void loss(struct world *w, int mine, int dead_reached)
{
	memset(w, 0, sizeof *w);
	w->nvns = 8;
	w->nmembers = 2;
	w->ngroups = 1;
	w->group[0].nchunks = 2;
	w->group[0].owner = 0;
	for (uint32_t v = 0; v < 8; v++)
		w->coming[0][v] = mine == COMING && v < 6 ? v / 3 : NO;
	if (mine == SENT) {
		hold(w, 0, (struct hd_tnode){ 1, 0 }, 0);
		hold(w, 0, (struct hd_tnode){ 0, 2 }, 0);
		hold(w, 0, (struct hd_tnode){ 0, 3 }, 1);
		hold(w, 0, (struct hd_tnode){ 1, 2 }, 1);
	}
	if (dead_reached != NOBODY)
		hold(w, 0, (struct hd_tnode){ 1, 3 }, (uint32_t)dead_reached);
	for (uint32_t i = 0; i < 2; i++)
		for (uint32_t v = 1; v <= 8; v++)
			w->extra[i][v] = (int64_t)v * 100;
}

static void make(struct world *w, struct hd_repair *r, struct hd_arena *arena)
{
	struct hd_repair_ask ask = ask_of(w);
	struct hd_diag diag = { "" };

	hd_arena_init(arena, 0);
	CHECK(hd_repair_make(r, &ask, arena, &diag) == HD_OK, "%s", diag.text);
}

static void says(const struct hd_repair *r, const char *want)
{
	char room[1024] = "";
	struct hd_text text;

	hd_text_fixed(&text, room, sizeof room);
	for (uint32_t c = 0; c < r->nchunks; c++)
		hd_text_addf(&text, r->owner[c] == NO ? "- " : "o%u ", r->owner[c]);
	for (uint32_t i = 0; i < r->nagain; i++)
		hd_text_addf(&text, "%u@%u ", r->again[i].vn, r->again[i].member);
	for (uint32_t t = 0; t < r->first_tile[1]; t++)
		hd_text_addf(&text, "%c(%u,%u)%u ", "hca"[r->tile[t].from], r->tile[t].node.level, r->tile[t].node.index, r->tile[t].member);
	for (uint32_t i = 0; i < r->nfetches; i++)
		hd_text_addf(&text, "%u:%u<%u ", r->fetch[i].chunk, r->fetch[i].to, r->fetch[i].from);
	assert_string_equal(text.at, want);
}

static void every_instant_of_a_loss_has_its_repair(void **state)
{
	static const struct { const char *when; int mine, dead_reached; const char *says; } rows[] = {
		{ "before its roots were sent, ours are sent", SENT, NOBODY, "o0 o0 6@0 7@1 h(1,0)0 h(0,2)0 h(0,3)1 h(1,2)1 a(0,6)0 a(0,7)1 " },
		{ "before its roots were sent, ours come", COMING, NOBODY, "o0 o0 6@0 7@1 c(1,0)0 c(0,2)0 c(0,3)1 c(1,2)1 a(0,6)0 a(0,7)1 " },
		{ "its root reached the owner", SENT, 0, "o0 o0 h(1,0)0 h(0,2)0 h(0,3)1 h(1,2)1 h(1,3)0 " },
		{ "its root reached another", COMING, 1, "o0 o0 c(1,0)0 c(0,2)0 c(0,3)1 c(1,2)1 h(1,3)1 " },
		{ "ours were given away and went with it", GONE, 1, "o0 o0 0@0 1@0 2@0 3@1 4@1 5@1 a(1,0)0 a(0,2)0 a(0,3)1 a(1,2)1 h(1,3)1 " },
	};
	(void)state;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct world w;
		struct hd_repair r;
		struct hd_arena arena;
		loss(&w, rows[i].mine, rows[i].dead_reached);
		make(&w, &r, &arena);
		print_message("%s\n", rows[i].when);
		says(&r, rows[i].says);
		hd_arena_finish(&arena);
	}
}

static void a_sum_that_somebody_has_is_fetched_and_its_dead_owner_is_not_replaced(void **state)
{
	struct world w;
	struct hd_repair r;
	struct hd_arena arena;
	(void)state;

	loss(&w, COMING, NOBODY);
	w.group[0].owner = NO;
	w.has_sum[0][1] = 1;
	make(&w, &r, &arena);
	says(&r, "- - 0:0<1 1:0<1 ");
	hd_arena_finish(&arena);
}

static void chunks_of_a_dead_owner_go_to_whoever_joins_the_fewest_or_to_the_next_of_the_chain(void **state)
{
	uint32_t chain[2] = { NO, 1 };
	struct world w;
	struct hd_repair r;
	struct hd_arena arena;
	(void)state;

	loss(&w, SENT, 0);
	w.ngroups = 2;
	w.group[1] = w.group[0];
	memcpy(w.held[1], w.held[0], sizeof w.held[0]);
	w.group[1].owner = NO;
	w.group[1].nchunks = 4;
	make(&w, &r, &arena);
	const uint32_t even[] = { 0, 0, 1, 1, 0, 1 };
	assert_memory_equal(r.owner, even, sizeof even);
	hd_arena_finish(&arena);

	struct hd_repair_ask ask = ask_of(&w);
	ask.ncopies = 2;
	w.group[1].chain = chain;
	hd_arena_init(&arena, 0);
	assert_int_equal(hd_repair_make(&r, &ask, &arena, NULL), HD_OK);
	for (uint32_t c = 2; c < 6; c++)
		assert_int_equal(r.owner[c], 1);
	chain[1] = NO;
	assert_int_equal(hd_repair_make(&r, &ask, &arena, NULL), HD_OK);
	assert_true(r.state_lost && r.lost_chunk == 2);
	hd_arena_finish(&arena);
}

/* Shared out by speed and by what they still have to do; equal times: the higher member gives way. */
static void lost_leaves_go_to_who_finishes_them_first(void **state)
{
	struct world w;
	struct hd_repair r;
	struct hd_arena arena;
	(void)state;

	loss(&w, SENT, NOBODY);
	w.group[0].nheld = 0;                     /* all 8 again */
	for (uint32_t v = 1; v <= 8; v++)
		w.extra[1][v] = (int64_t)v * 300;
	make(&w, &r, &arena);
	uint32_t n[2] = { 0, 0 };
	for (uint32_t i = 0; i < r.nagain; i++)
		n[r.again[i].member]++;
	assert_int_equal(n[0], 6);
	assert_int_equal(r.finish_ps, 600);
	hd_arena_finish(&arena);
	w.member[0].rest_ps = 1200;
	make(&w, &r, &arena);
	assert_int_equal(r.finish_ps, 1500);      /* 3 x 100 after 1200, 5 x 300 */
	hd_arena_finish(&arena);
}

/* Rules 2, 4, 5 and 6: who is taken of equals. */
static void of_equals_the_rule_of_the_header_decides(void **state)
{
	struct world w;
	struct hd_repair r;
	struct hd_arena arena;
	(void)state;

	loss(&w, COMING, 0);
	hold(&w, 0, (struct hd_tnode){ 1, 3 }, 1);
	hold(&w, 0, (struct hd_tnode){ 1, 2 }, 0);               /* arrived at the owner, though 1 has it too */
	hold(&w, 0, (struct hd_tnode){ 1, 2 }, 1);
	w.group[0].owner = 1;
	make(&w, &r, &arena);
	says(&r, "o1 o1 c(1,0)0 c(0,2)0 c(0,3)1 h(1,2)1 h(1,3)1 ");
	hd_arena_finish(&arena);

	loss(&w, SENT, NOBODY);
	w.nvns = 7;                                              /* one lost leaf, two who would end at the same time */
	w.group[0].nheld = 4;
	make(&w, &r, &arena);
	says(&r, "o0 o0 6@0 h(1,0)0 h(0,2)0 h(0,3)1 h(1,2)1 a(0,6)0 ");
	hd_arena_finish(&arena);

	loss(&w, SENT, 0);
	w.nmembers = 3;
	w.ngroups = 2;
	w.group[1] = w.group[0];
	memcpy(w.held[1], w.held[0], sizeof w.held[0]);
	memcpy(w.extra[2], w.extra[0], sizeof w.extra[0]);
	w.group[0].nchunks = 3;
	w.has_sum[0][1] = w.has_sum[0][2] = 1;
	w.group[1].owner = NO;                                   /* group 0 is not joined any more: 0 is as free as the others */
	make(&w, &r, &arena);
	const uint32_t owners[] = { NO, NO, NO, 0, 1 };
	assert_memory_equal(r.owner, owners, sizeof owners);
	assert_int_equal(r.nfetches, 3);
	assert_true(r.fetch[0].from == 1 && r.fetch[1].from == 2 && r.fetch[2].from == 1);
	hd_arena_finish(&arena);
}

static void words_of_a_peer_that_make_no_sense_are_refused(void **state)
{
	struct world w;
	struct hd_repair r;
	struct hd_arena arena;
	struct { struct hd_tnode node; uint32_t member; const char *says; } bad[] = {
		{ { 3, 1 }, 0, "chunk group 0: member 0 of 2 has (3,1), which is no name in the tree of 7 virtual nodes" },
		{ { 1, 3 }, 0, "chunk group 0: member 0 of 2 has (1,3), which is no name in the tree of 7 virtual nodes" },
		{ { 0, 0 }, 2, "chunk group 0: member 2 of 2 has (0,0), which is no name in the tree of 7 virtual nodes" },
		{ { 40, 0 }, 0, "chunk group 0: member 0 of 2 has (40,0), which is no name in the tree of 7 virtual nodes" },
	};
	(void)state;

	hd_arena_init(&arena, 0);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct hd_diag diag = { "" };
		loss(&w, COMING, NOBODY);
		w.nvns = 7;
		hold(&w, 0, bad[i].node, bad[i].member);
		struct hd_repair_ask ask = ask_of(&w);
		assert_int_equal(hd_repair_make(&r, &ask, &arena, &diag), HD_E_INVAL);
		assert_string_equal(diag.text, bad[i].says);
	}
	loss(&w, COMING, NOBODY);
	w.extra[1][3] = 1;
	struct hd_repair_ask ask = ask_of(&w);
	struct hd_diag diag = { "" };
	assert_int_equal(hd_repair_make(&r, &ask, &arena, &diag), HD_E_INVAL);
	assert_string_equal(diag.text, "member 1: 2 virtual nodes more take 200 ps, 3 take 1");
	hd_arena_finish(&arena);
}

static void a_repair_is_told_in_one_line(void **state)
{
	char room[200];
	struct hd_text text;
	struct world w;
	struct hd_repair r;
	struct hd_arena arena;
	(void)state;

	loss(&w, SENT, NOBODY);
	make(&w, &r, &arena);
	hd_text_fixed(&text, room, sizeof room);
	hd_repair_print(&r, &text);
	assert_string_equal(text.at, "2 virtual nodes again, 2 of 2 chunks joined, 0 sums fetched, computed by 0.000 ms");
	hd_arena_finish(&arena);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_chunk_is_made_whole_and_only_lost_leaves_are_computed_again),
		cmocka_unit_test(every_instant_of_a_loss_has_its_repair),
		cmocka_unit_test(a_sum_that_somebody_has_is_fetched_and_its_dead_owner_is_not_replaced),
		cmocka_unit_test(chunks_of_a_dead_owner_go_to_whoever_joins_the_fewest_or_to_the_next_of_the_chain),
		cmocka_unit_test(lost_leaves_go_to_who_finishes_them_first),
		cmocka_unit_test(of_equals_the_rule_of_the_header_decides),
		cmocka_unit_test(words_of_a_peer_that_make_no_sense_are_refused),
		cmocka_unit_test(a_repair_is_told_in_one_line),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
