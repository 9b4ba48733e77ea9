#include "timeline/analyze/path.h"

#include "base/philox.h"
#include "timeline/analyze/testing.h"
#include "tests/check.h"

/* Random runs made forwards: processes compute, and wait for one another's messages. All paths back through
 * what depends on what are tried; the longest is the critical one. */

enum { PROCESSES = 3, ITEMS = 14 };

struct item {                             /* of a process: work, or the taking of a message */
	int64_t t0, t1;
	uint32_t process;
	int before, sender;               /* items that it follows; -1: none */
	int64_t stamp[5];                 /* of the message */
	bool takes, waited;
};

struct run { struct item item[ITEMS]; int n, last[PROCESSES]; };

static uint32_t draw(uint64_t seed, uint32_t *i, uint32_t below)
{
	return hd_philox((uint32_t[4]){ (*i)++, 0, 0, 0 }, hd_philox_key(seed, HD_RNG_USER)).word[0] % below;
}

static int64_t now(const struct run *r, uint32_t process)
{
	return r->last[process] < 0 ? 0 : r->item[r->last[process]].t1;
}

static void make(struct run *r, uint64_t seed)
{
	uint32_t i = 0;

	*r = (struct run){ .last = { -1, -1, -1 } };
	for (; r->n < ITEMS; r->n++) {
		struct item *it = &r->item[r->n];
		const uint32_t p = draw(seed, &i, PROCESSES), q = (p + 1 + draw(seed, &i, 2)) % PROCESSES;
		if (r->n < PROCESSES || draw(seed, &i, 2)) {
			it->process = r->n < PROCESSES ? (uint32_t)r->n : p;
			it->t0 = now(r, it->process);
			it->t1 = it->t0 + 1 + draw(seed, &i, 1000);
			it->sender = -1;
		} else {
			it->takes = true;
			it->process = q;
			it->sender = r->last[p];
			it->stamp[0] = now(r, p);
			for (int k = 1; k < 5; k++)
				it->stamp[k] = it->stamp[k - 1] + 1 + draw(seed, &i, 200);
			it->t0 = now(r, q);
			it->waited = it->stamp[4] > it->t0;
			it->t1 = it->waited ? it->stamp[4] + 1 + draw(seed, &i, 20) : it->t0;
		}
		it->before = r->last[it->process];
		r->last[it->process] = r->n;
	}
}

/* Lengths of all paths that end with the item. `work` gets the compute of each process on the longest. */
static int64_t longest(const struct run *r, int i, int64_t work[PROCESSES], int64_t *moved)
{
	const struct item *it = &r->item[i];
	int64_t a[PROCESSES] = { 0 }, b[PROCESSES] = { 0 }, am = 0, bm = 0, la = 0, lb = -1;

	if (it->before >= 0)
		la = longest(r, it->before, a, &am);
	if (!it->takes) {
		a[it->process] += it->t1 - it->t0;
		la += it->t1 - it->t0;
	} else if (it->waited) {
		lb = it->sender >= 0 ? longest(r, it->sender, b, &bm) : 0;
		bm += it->t1 - it->stamp[0];
		lb += it->t1 - it->stamp[0];
	}
	for (int p = 0; p < PROCESSES; p++)
		work[p] = lb > la ? b[p] : a[p];
	*moved = lb > la ? bm : am;
	return lb > la ? lb : la;
}

static void record(const struct run *r, struct hd_tl_hand *h)
{
	hd_tl_hand_init(h, PROCESSES);
	for (int i = 0; i < r->n; i++) {
		const struct item *it = &r->item[i];
		if (!it->takes) {
			hd_tl_hand_op(h, it->process, 1, it->t0, it->t1);
			continue;
		}
		const uint64_t n = h->tl.nevents;
		hd_tl_hand_move(h, r->item[it->sender].process, it->process, 100 + (uint64_t)i, 8, it->stamp);
		h->event[n].instr = h->event[n + 1].instr = (uint32_t)i;
		if (it->waited)
			hd_tl_hand_add(h, 2 * it->process, HD_EVENT_WAIT, it->t0, it->t1)->arg =
				hd_wait_arg(HD_WAIT_TRANSFER, (uint64_t)i);
	}
	for (uint32_t p = 0; p < PROCESSES; p++)
		hd_tl_hand_step(h, p, 1, 0, now(r, p));
}

static void the_path_back_is_the_longest_of_all_paths(void **state)
{
	(void)state;
	static struct hd_tl_hand h;
	uint32_t across = 0;

	for (uint64_t seed = 0; seed < DRAWS(1000); seed++) {
		struct run r;
		struct hd_tl_causes causes;
		struct hd_tl_path path;
		int64_t want[PROCESSES], got[PROCESSES] = { 0 }, moved, crossed = 0, at = 0;
		uint32_t last = 0;
		make(&r, seed);
		record(&r, &h);
		hd_tl_hand_made(&h, &causes);
		for (uint32_t p = 1; p < PROCESSES; p++)
			last = now(&r, p) > now(&r, last) ? p : last;
		CHECK(longest(&r, r.last[last], want, &moved) == now(&r, last), "seed %u: the oracle",
			(unsigned)seed);
		CHECK(!hd_tl_path_of(&causes, 1, &h.arena, &path, NULL), "seed %u", (unsigned)seed);
		for (size_t i = 0; i < path.n; i++) {
			const struct hd_tl_segment *s = &path.segment[i];
			CHECK(s->t0 == at && s->t1 > at, "seed %u, segment %zu", (unsigned)seed, i);
			at = s->t1;
			if (s->part == HD_TL_PART_WORK)
				got[s->process] += s->t1 - s->t0;
			else
				crossed += s->t1 - s->t0;
		}
		CHECK(at == now(&r, last), "seed %u: the segments end at %lld", (unsigned)seed, (long
			long)at);
		for (uint32_t p = 0; p < PROCESSES; p++)
			CHECK(got[p] == want[p], "seed %u, process %u: %lld of work, not %lld",
				(unsigned)seed,
				p, (long long)got[p], (long long)want[p]);
		CHECK(crossed == moved, "seed %u", (unsigned)seed);
		across += crossed > 0;
		hd_arena_finish(&h.arena);
	}
	assert_true(across > DRAWS(1000) / 4);
}

static void blame_gives_out_what_came_in(void **state)
{
	(void)state;
	static struct hd_tl_hand h;

	for (uint64_t seed = 0; seed < DRAWS(300); seed++) {
		struct run r;
		struct hd_tl_causes causes;
		make(&r, seed);
		record(&r, &h);
		hd_tl_hand_made(&h, &causes);
		for (uint32_t p = 0; p < PROCESSES; p++) {
			int64_t ns[PROCESSES * HD_TL_NPARTS] = { 0 }, sum = 0;
			const struct hd_tl_span span = { -5, now(&r, p) + 3 };
			CHECK(!hd_tl_blame(&causes, 2 * p, span, ns, &h.arena, NULL), "seed %u",
				(unsigned)seed);
			for (size_t i = 0; i < PROCESSES * HD_TL_NPARTS; i++) {
				CHECK(ns[i] >= 0, "seed %u", (unsigned)seed);
				sum += ns[i];
			}
			CHECK(sum == span.t1 - span.t0, "seed %u, process %u", (unsigned)seed, p);
		}
		hd_arena_finish(&h.arena);
	}
}

/* 0 waits for 1, which waits for 2, which computes. */
static void a_wait_for_a_wait_is_the_doing_of_what_computes(void **state)
{
	(void)state;
	static struct hd_tl_hand h;
	struct hd_tl_causes causes;
	int64_t ns[3 * HD_TL_NPARTS] = { 0 };

	hd_tl_hand_init(&h, 3);
	hd_tl_hand_op(&h, 2, 1, 0, 700);
	hd_tl_hand_move(&h, 2, 1, 1, 8, (int64_t[]){ 700, 710, 720, 725, 730 });
	hd_tl_hand_wait(&h, 1, HD_WAIT_TRANSFER, 0, 740);
	hd_tl_hand_op(&h, 1, 1, 740, 750);
	hd_tl_hand_move(&h, 1, 0, 2, 8, (int64_t[]){ 750, 750, 750, 755, 760 });
	hd_tl_hand_wait(&h, 0, HD_WAIT_TRANSFER, 0, 770);
	hd_tl_hand_made(&h, &causes);
	assert_int_equal(hd_tl_blame(&causes, 0, (struct hd_tl_span){ 0, 770 }, ns, &h.arena, NULL), HD_OK);
	assert_int_equal(ns[2 * HD_TL_NPARTS + HD_TL_PART_WORK], 700);
	assert_int_equal(ns[2 * HD_TL_NPARTS + HD_TL_PART_ORDER], 10);
	assert_int_equal(ns[2 * HD_TL_NPARTS + HD_TL_PART_QUEUE], 10);
	assert_int_equal(ns[2 * HD_TL_NPARTS + HD_TL_PART_WIRE], 10);
	assert_int_equal(ns[1 * HD_TL_NPARTS + HD_TL_PART_DELIVERY], 10);
	assert_int_equal(ns[1 * HD_TL_NPARTS + HD_TL_PART_WORK], 10);
	assert_int_equal(ns[1 * HD_TL_NPARTS + HD_TL_PART_WIRE], 10);
	assert_int_equal(ns[0 * HD_TL_NPARTS + HD_TL_PART_DELIVERY], 10);
	hd_arena_finish(&h.arena);
}

/* All wait for the commit from when they are ready; the last to come is the one that computed longest. */
static void a_meeting_is_late_by_the_last_that_comes(void **state)
{
	(void)state;
	static struct hd_tl_hand h;
	struct hd_tl_causes causes;
	struct hd_tl_path path;

	hd_tl_hand_init(&h, 3);
	for (uint32_t p = 0; p < 3; p++) {
		hd_tl_hand_op(&h, p, 1, 0, p == 1 ? 90 : 10);
		hd_tl_hand_wait(&h, p, HD_WAIT_COMMIT, p == 1 ? 90 : 10, 100 + p);
		hd_tl_hand_step(&h, p, 4, 0, 100 + p);
	}
	hd_tl_hand_made(&h, &causes);
	assert_int_equal(hd_tl_path_of(&causes, 4, &h.arena, &path, NULL), HD_OK);
	assert_int_equal(path.n, 2);
	assert_true(path.segment[0].process == 1 && path.segment[0].part == HD_TL_PART_WORK &&
		path.segment[0].t1 == 90);
	assert_true(path.segment[1].process == 2 && path.segment[1].part == HD_TL_PART_COMMIT &&
		path.segment[1].t1 == 102);
	assert_int_equal(hd_tl_path_of(&causes, 5, &h.arena, &path, NULL), HD_E_NOTFOUND);
	/* what is not aligned is not compared */
	h.process[1].aligned = false;
	assert_int_equal(hd_tl_causes_make(&causes, &h.tl, &h.arena, NULL), HD_OK);
	assert_int_equal(hd_tl_path_of(&causes, 4, &h.arena, &path, NULL), HD_OK);
	for (size_t i = 0; i < path.n; i++)
		assert_int_not_equal(path.segment[i].process, 1);
	hd_arena_finish(&h.arena);
}

/* Numbers in any order, missing, redone and of several processes; the oracle looks at every row. */
static void the_row_of_a_number_is_the_one_that_ends_last(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < DRAWS(200); seed++) {
		static struct hd_tl_hand h;
		struct hd_tl_causes causes;
		struct hd_tl_path path;
		uint32_t at = 0;
		hd_tl_hand_init(&h, PROCESSES);
		for (uint32_t p = 0; p < PROCESSES; p++) {
			hd_tl_hand_op(&h, p, 1, 0, 1000);
			for (int64_t k = 0; k < 20; k++) {
				const uint64_t number = draw(seed, &at, 30);
				hd_tl_hand_step(&h, p, number ? number : UINT64_MAX, 40 * k, 40 * k + 1 +
					(int64_t)draw(seed, &at, 40));
				h.step[h.tl.nsteps - 1].committed = draw(seed, &at, 4) > 0;
			}
		}
		hd_tl_hand_made(&h, &causes);
		for (uint64_t n = 0; n <= 31; n++) {
			const uint64_t number = n == 31 ? UINT64_MAX : n;
			const struct hd_tl_step *last = NULL;
			for (uint32_t i = 0; i < h.tl.nsteps; i++)
				if (h.step[i].committed && h.step[i].number == number && (!last ||
					h.step[i].end > last->end))
					last = &h.step[i];
			const enum hd_err err = hd_tl_path_of(&causes, number, &h.arena, &path, NULL);
			CHECK(err == (last ? HD_OK : HD_E_NOTFOUND), "seed %u", (unsigned)seed);
			CHECK(!last || &h.step[path.step] == last, "seed %u", (unsigned)seed);
		}
		hd_arena_finish(&h.arena);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_path_back_is_the_longest_of_all_paths),
		cmocka_unit_test(the_row_of_a_number_is_the_one_that_ends_last),
		cmocka_unit_test(blame_gives_out_what_came_in),
		cmocka_unit_test(a_wait_for_a_wait_is_the_doing_of_what_computes),
		cmocka_unit_test(a_meeting_is_late_by_the_last_that_comes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
