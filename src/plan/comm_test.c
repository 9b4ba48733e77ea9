#include "plan/comm.h"

#include <string.h>

#include "tests/check.h"

static void a_decision_comes_back_as_it_was_written(void **state)
{
	static const struct comm_case { const char *text, *printed; uint32_t n, rank[8], segments[8];
		bool parts; struct hd_comm_pace link; } cases[] = {
		{ "tic+ ranks 0-4", NULL, 5, { 0, 1, 2, 3, 4 }, { 0 }, false, { 0 } },
		{ "fifo ranks 2-0", NULL, 3, { 2, 1, 0 }, { 0 }, false, { 0 } },
		{ "search parts ranks 2x0,2,2x3", "search parts ranks 2x0,2-3,3", 5, { 0, 0, 2, 3, 3 }, { 0 }, true, { 0 } },
		{ "random ranks 1,0,3-2 segments 2x4,1,7", "random ranks 1-0,3-2 segments 2x4,1,7", 4, { 1, 0, 3, 2 }, { 4, 4, 1, 7 }, false, { 0 } },
		{ "tic  ranks 0,1,1x2", "tic ranks 0-2", 3, { 0, 1, 2 }, { 0 }, false, { 0 } },
		{ "tac ranks 0", NULL, 1, { 0 }, { 0 }, false, { 0 } },
		{ "tac ranks 0 link 122070 50000", NULL, 1, { 0 }, { 0 }, false, { 122070, 50000 } },
		{ "tac ranks 0 segments 9 link 1  0", "tac ranks 0 segments 9 link 1 0", 1, { 0 }, { 9 },
			false, { 1, 0 } },
	};
	struct hd_arena arena;
	char room[200];

	(void)state;
	hd_arena_init(&arena, 0);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_comm c;
		struct hd_text text;
		struct hd_diag diag = { "" };
		CHECK(hd_comm_read(&c, cases[i].text, &arena, &diag) == HD_OK, "%s: %s", cases[i].text,
			diag.text);
		CHECK(c.nbuckets == cases[i].n && c.parts == cases[i].parts &&
			!memcmp(c.rank, cases[i].rank, c.nbuckets * sizeof *c.rank) &&
			c.link.kib_per_s == cases[i].link.kib_per_s &&
			c.link.latency_ns == cases[i].link.latency_ns &&
			!c.nsegments == !cases[i].segments[0] && (!c.nsegments ||
			!memcmp(c.nsegments, cases[i].segments, c.nbuckets * sizeof *c.nsegments)),
			"%s", cases[i].text);
		hd_text_fixed(&text, room, sizeof room);
		hd_comm_put(&c, &text);
		assert_string_equal(room, cases[i].printed ? cases[i].printed : cases[i].text);
	}
	hd_arena_finish(&arena);
}

static void what_is_no_decision_is_refused(void **state)
{
	static const char *const texts[] = { "", "auto ranks 0", "tic", "tic ranks", "tic ranks 1",
		"tic ranks 0,", "tic ranks 0 1", "tic ranks 0-2 segments 1,1", "tic ranks 0 segments 0",
		"tic ranks 0x0", "tic ranks 70000x0", "tic ranks 0-99999999999", "tic ranks -1",
		"tic segments 1", "lifo ranks 0", "tic ranks 0 more", "tic ranks 2x0,2x2,5",
		"tic ranks 0 link", "tic ranks 0 link 5", "tic ranks 0 link 0 5", "tic ranks 0 link 5 5x",
		"tic ranks 0 link 5 5 segments 1", "tic ranks 0 link 5000000000 1" };
	struct hd_arena arena;

	(void)state;
	hd_arena_init(&arena, 0);
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		struct hd_comm c = { .nbuckets = 77 };
		struct hd_diag diag = { "" };
		CHECK(hd_comm_read(&c, texts[i], &arena, &diag) == HD_E_INPUT &&
			c.nbuckets == 77 && *diag.text,
			"\"%s\"", texts[i]);
	}
	hd_arena_finish(&arena);
}

static uint32_t urgency(const struct hd_comm *c, uint32_t n, uint32_t bucket, bool part)
{
	return hd_comm_urgency(c, n, bucket, part, NULL);
}

/* By rule 5, from its words: of what is sent, the more urgent has the smaller number. */
static void urgencies_follow_ranks_and_parts(void **state)
{
	uint32_t rank[] = { 0, 2, 1, 3 };
	struct hd_comm c = { .order = HD_COMM_TAC, .nbuckets = 4, .rank = rank };

	(void)state;
	for (uint32_t b = 0; b < 4; b++)
		for (uint32_t o = 0; o < 4; o++) {
			/* nothing decided: parts first, of each the last bucket first */
			assert_true(urgency(NULL, 4, b, true) < urgency(NULL, 4, o, false));
			for (int part = 0; part < 2; part++)
				assert_int_equal(urgency(NULL, 4, b, part) <
					urgency(NULL, 4, o, part), b > o);
			c.parts = false;
			assert_true(urgency(&c, 4, b, true) == urgency(NULL, 4, b, true));
			assert_int_equal(urgency(&c, 4, b, false) < urgency(&c, 4, o, false),
				rank[b] < rank[o]);
			c.parts = true;
			assert_true(urgency(&c, 4, b, true) < urgency(&c, 4, b, false));
			for (int part = 0; part < 4; part++)
				CHECK(b == o || (urgency(&c, 4, b, part & 1) <
					urgency(&c, 4, o, part >> 1)) == (rank[b] < rank[o]),
					"%u %u %d", b, o, part);
			/* of another table of buckets it says nothing */
			assert_int_equal(urgency(&c, 9, b, false), urgency(NULL, 9, b,
				false));
		}
}

/* How many of the pairs of buckets stand in the same order in both turns. */
static uint32_t alike(const struct hd_comm *c, const struct hd_comm_turn *a, const struct hd_comm_turn *b)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->nbuckets; i++)
		for (uint32_t k = 0; k < i; k++)
			n += (hd_comm_urgency(c, c->nbuckets, i, false, a) <
				hd_comm_urgency(c, c->nbuckets, k, false, a)) ==
				(hd_comm_urgency(c, c->nbuckets, i, false, b) <
				hd_comm_urgency(c, c->nbuckets, k, false, b));
	return n;
}

static void a_random_order_is_another_one_in_each_turn(void **state)
{
	enum { N = 200, PAIRS = N * (N - 1) / 2 };
	const struct hd_comm_turn turn = { 7, 0, 2 };
	const struct hd_comm_turn others[] = { { 8, 0, 2 }, { 7, 1, 2 }, { 7, 0, 3 }, { 7, 2, 0 },
		{ 7 + (UINT64_C(1) << 32), 0, 2 } };
	uint32_t rank[N], other[N], below[4] = { 0 };
	struct hd_comm c = { .order = HD_COMM_RANDOM, .parts = true, .nbuckets = N, .rank = rank };

	(void)state;
	for (uint32_t b = 0; b < N; b++)
		rank[b] = (b * 77 + 13) % N;
	for (uint32_t b = 0; b < N; b++) {
		const uint32_t u = hd_comm_urgency(&c, N, b, false, &turn);
		assert_true(u >= 1 && u <= 2 * N && u == hd_comm_urgency(&c, N, b, false, &turn));
		below[(u - 1) * 4 / (2 * N)]++;
		assert_int_equal(urgency(&c, N, b, false), 2 + 2 * rank[b]);
	}
	for (uint32_t q = 0; q < 4; q++)
		CHECK(below[q] > 30 && below[q] < 70, "%u of %d in a quarter", below[q], N);
	assert_int_equal(alike(&c, &turn, &turn), PAIRS);
	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		const uint32_t n = alike(&c, &turn, &others[i]);
		CHECK(n > PAIRS * 2 / 5 && n < PAIRS * 3 / 5, "%zu: %u of %d pairs", i, n, PAIRS);
		c.order = HD_COMM_TAC;
		assert_int_equal(alike(&c, &turn, &others[i]), PAIRS);
		c.order = HD_COMM_RANDOM;
	}
	/* another seed, another order */
	for (uint32_t b = 0; b < N; b++)
		other[b] = hd_comm_urgency(&c, N, b, false, &turn);
	for (uint32_t b = 0, same = 0; b < N; b++) {
		rank[b] = (rank[b] + 1) % N;
		same += hd_comm_urgency(&c, N, b, false, &turn) == other[b];
		assert_true(same < N / 10);
	}
}

static void a_transfer_takes_its_bytes_and_the_latency(void **state)
{
	struct hd_comm c = { .nbuckets = 1 };

	(void)state;
	assert_true(hd_comm_takes_ns(NULL, 9) == 0 && hd_comm_takes_ns(&c, 1 << 20) == 0);
	c.link = (struct hd_comm_pace){ 1024, 5000 };      /* 1 MiB a second */
	assert_true(hd_comm_takes_ns(&c, 1 << 20) == 1000005000 && hd_comm_takes_ns(&c, 0) == 5000);
	c.link.latency_ns = 0;
	assert_true(hd_comm_takes_ns(&c, 0) == 1 && hd_comm_takes_ns(&c, UINT64_MAX) > 0);
}

/* 200 Mbit/s for 4 ms are 100 kB; for 14 ms, of a link of 5 ms, 350 kB. */
static void so_much_is_on_its_way_as_the_link_carries_meanwhile(void **state)
{
	struct hd_comm c = { .nbuckets = 1 };

	(void)state;
	assert_true(hd_comm_flight_bytes(NULL) == 0 && hd_comm_flight_bytes(&c) == 0);
	c.link = (struct hd_comm_pace){ 200000000 / 8 / 1024, 0 };
	assert_in_range(hd_comm_flight_bytes(&c), 99990, 100000);
	c.link.latency_ns = 5000000;
	assert_in_range(hd_comm_flight_bytes(&c), 349950, 350000);
	c.link.kib_per_s = 1;
	assert_int_equal(hd_comm_flight_bytes(&c), HD_COMM_FLIGHT);
	c.link = (struct hd_comm_pace){ INT32_MAX, INT32_MAX };
	assert_int_equal(hd_comm_flight_bytes(&c), INT32_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_decision_comes_back_as_it_was_written),
		cmocka_unit_test(what_is_no_decision_is_refused),
		cmocka_unit_test(urgencies_follow_ranks_and_parts),
		cmocka_unit_test(a_random_order_is_another_one_in_each_turn),
		cmocka_unit_test(a_transfer_takes_its_bytes_and_the_latency),
		cmocka_unit_test(so_much_is_on_its_way_as_the_link_carries_meanwhile),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
