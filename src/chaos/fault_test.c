#include "chaos/fault.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/check.h"

/* Faults at real processes that do nothing: children that sleep. The newest answer is written by the test. */

enum { CHILDREN = 4, T = 1000000000 };

struct bench { struct hd_fs fs; struct hd_clock_sim clock; struct hd_host host;
	struct hd_proc child[CHILDREN];
	struct hd_harness h; struct hd_faults f; char root[64]; };

static int enter(void **state)
{
	static struct bench b;
	const char *argv[] = { "sleep", "600", NULL };
	struct hd_diag diag = { "" };

	memset(&b, 0, sizeof b);
	hd_fs_real(&b.fs);
	hd_clock_sim(&b.clock, T, 0);
	hd_host_real(&b.host);
	strncpy(b.root, "/tmp/hd_fault_test.XXXXXX", sizeof b.root - 1);
	assert_non_null(mkdtemp(b.root));
	assert_int_equal(hd_harness_visit(&b.h, &b.fs, &b.clock.clock, b.root, &diag), HD_OK);
	assert_int_equal(hd_fault_init(&b.f, &b.h, T, false, &diag), HD_OK);
	for (uint32_t i = 0; i < CHILDREN; i++) {
		CHECK(!hd_proc_spawn(&b.host, &(struct hd_spawn){ .argv = argv, .in = -1, .out = -1,
			.err = -1 },
			&b.child[i], &diag), "%s", diag.text);
		b.h.live.worker[i] = (struct hd_status_worker){ .id = 10 + i, .pid = b.child[i].pid };
	}
	*state = &b;
	return 0;
}

static int leave(void **state)
{
	struct bench *b = *state;

	hd_fault_end(&b->f);
	for (uint32_t i = 0; i < CHILDREN; i++)
		hd_proc_finish(&b->child[i]);
	hd_harness_finish(&b->h);
	return hd_fs_remove_tree(&b->fs, b->root, NULL);
}

static bool is_dead(struct bench *b, uint32_t i)
{
	int code;

	return b->child[i].host && hd_proc_wait(&b->child[i], 10 * (int64_t)T, &code, NULL) == HD_OK;
}

static bool lives(const struct bench *b, uint32_t i) { return hd_pid_lives(b->child[i].pid); }

/* The state of a process follows its signal soon. */
static bool becomes(const struct bench *b, uint32_t i, bool alive)
{
	struct hd_clock clock;

	hd_clock_real(&clock);
	for (int tries = 0; tries < 10000 && lives(b, i) != alive; tries++)
		hd_clock_wait_until(&clock, hd_clock_now_ns(&clock) + HD_NS_PER_MS);
	return lives(b, i) == alive;
}

static bool order_is(struct bench *b, const char *name, const char *want)
{
	char path[HD_PATH_CAP];
	struct hd_arena arena;
	uint8_t *bytes;
	size_t len;

	hd_arena_init(&arena, 0);
	snprintf(path, sizeof path, "%s/chaos/%s", b->root, name);
	bool same = !hd_file_read_all(&b->fs, path, &arena, 1 << 16, &bytes, &len, NULL) ? want &&
		len == strlen(want) && !memcmp(bytes, want, len) : !want;
	hd_arena_finish(&arena);
	return same;
}

static void draws_lie_in_their_ranges(void **state)
{
	static const struct { enum hd_fault_kind kind; double least, most; } cases[] = {
		{ HD_FAULT_KILL, 1, 1 }, { HD_FAULT_POINT, 1, 1 }, { HD_FAULT_PAUSE, 0.5, 4 }, { HD_FAULT_SLOW, 2, 6 },
		{ HD_FAULT_NET, 0.25, 3.25 }, { HD_FAULT_DISK, 2, 6 }, { HD_FAULT_SCALE, 1, 1 },
	};
	(void)state;

	for (size_t c = 0; c < HD_FAULTS; c++) {
		uint32_t hows = 0, bys = 0, points = 0;
		double least = 99, most = 0;
		for (uint32_t i = 0; i < 65536; i += 7) {
			struct hd_fault f;
			hd_fault_draw(&f, cases[c].kind, (const uint32_t[4]){ 1, 2, 3, i * 65537 }, 4, 9, T);
			hows |= 1u << f.how;
			bys |= 1u << f.by;
			points |= 1u << f.point;
			least = (double)f.for_ns / T < least ? (double)f.for_ns / T : least;
			most = (double)f.for_ns / T > most ? (double)f.for_ns / T : most;
			assert_true(f.pick == 1 && f.part == 2 && f.other == 3);
		}
		enum hd_fault_kind k = cases[c].kind;
		CHECK(least >= cases[c].least && least <= cases[c].least + 0.01, "%s: %g", hd_fault_name[k],
			least);
		CHECK(most <= cases[c].most && most >= cases[c].most - 0.01, "%s: %g", hd_fault_name[k],
			most);
		assert_int_equal(hows, k == HD_FAULT_NET ? 7 : k == HD_FAULT_DISK ? 7 << 3 : 1);
		assert_int_equal(bys, k == HD_FAULT_SLOW ? 7 << 2 : k == HD_FAULT_SCALE ? 15 << 1 : 1);
		assert_int_equal(points, k == HD_FAULT_POINT ? 511 : 1);
	}
}

static bool kill_at(struct bench *b, enum hd_fault_target target, uint32_t pick)
{
	const struct hd_fault f = { .kind = HD_FAULT_KILL, .target = target, .pick = pick };

	return hd_fault_do(&b->f, &f);
}

static void without_a_victim_there_is_no_kill(void **state)
{
	struct bench *b = *state;

	b->h.heard = true;
	assert_false(kill_at(b, HD_TARGET_ANY, 0));
	assert_false(kill_at(b, HD_TARGET_COORDINATOR, 0));
	b->h.coordinator = b->child[3].pid;
	assert_false(kill_at(b, HD_TARGET_WORKER, 0));
	b->h.coordinator = 0;
	b->h.live.nworkers = 3;                   /* of other machines */
	for (uint32_t i = 0; i < 3; i++)
		b->h.live.worker[i].pid = 0;
	assert_false(kill_at(b, HD_TARGET_WORKER, 1));
	assert_int_equal(b->f.done[HD_FAULT_KILL], 0);
	for (uint32_t i = 0; i < CHILDREN; i++)
		assert_true(lives(b, i));
}

/* Rows 0, 2 and 4 have no process. */
static void a_target_is_drawn_among_processes(void **state)
{
	const struct hd_fault net = { .kind = HD_FAULT_NET, .how = HD_HOW_CUT, .pick = 0, .other = 1,
		.for_ns = T };
	struct bench *b = *state;
	char name[24];

	b->h.live.worker[3].pid = b->child[1].pid;
	b->h.live.worker[1].pid = b->child[0].pid;
	b->h.live.worker[0].pid = b->h.live.worker[2].pid = b->h.live.worker[4].pid = 0;
	b->h.live.nworkers = 5;
	assert_true(hd_fault_do(&b->f, &net));
	snprintf(name, sizeof name, "%d", b->child[0].pid);
	assert_true(order_is(b, name, "wire.read:err=ECONNRESET#13;wire.connect:err=ECONNREFUSED#13\n"));
	assert_true(kill_at(b, HD_TARGET_WORKER, 3));       /* two may go on, and one is left */
	assert_true(is_dead(b, 1));
	assert_false(kill_at(b, HD_TARGET_WORKER, 0));
	assert_true(lives(b, 0));
}

/* Workers 0 to 2; after a kill no answer came. */
static void a_kill_leaves_a_process_that_can_go_on(void **state)
{
	struct bench *b = *state;

	b->h.live.nworkers = 3;
	b->h.heard = true;
	assert_true(kill_at(b, HD_TARGET_WORKER, 3 * 5 + 2));
	assert_true(is_dead(b, 2));
	assert_false(b->h.heard);
	assert_int_equal(b->f.kills_since_reply, 1);
	assert_true(kill_at(b, HD_TARGET_WORKER, 1));
	assert_true(is_dead(b, 1));
	assert_false(kill_at(b, HD_TARGET_WORKER, 0));      /* the last one */
	assert_true(lives(b, 0));
	assert_int_equal(b->f.done[HD_FAULT_KILL], 2);
	b->h.heard = true;                                  /* an answer: a coordinator is there */
	b->h.live.nworkers = 1;
	(void)hd_fault_turn(&b->f);
	assert_int_equal(b->f.kills_since_reply, 0);
	assert_true(kill_at(b, HD_TARGET_WORKER, 0));
	assert_true(is_dead(b, 0));
	assert_int_equal(b->f.coordinators, 0);
}

static void the_coordinator_is_drawn_behind_the_workers(void **state)
{
	struct bench *b = *state;

	b->h.live.nworkers = 2;
	b->h.coordinator = b->child[3].pid;
	b->h.heard = true;
	assert_true(kill_at(b, HD_TARGET_ANY, 5));          /* 5 mod 3 = 2 */
	assert_true(is_dead(b, 3));
	assert_int_equal(b->f.coordinators, 1);
	assert_int_equal(b->h.coordinator, 0);
	assert_true(lives(b, 0) && lives(b, 1));
}

static void a_pause_ends_after_its_time(void **state)
{
	const struct hd_fault pause = { .kind = HD_FAULT_PAUSE, .pick = 1, .for_ns = 2 * (int64_t)T };
	struct bench *b = *state;

	b->h.live.nworkers = 2;
	assert_true(hd_fault_do(&b->f, &pause));
	assert_true(becomes(b, 1, false));
	assert_true(lives(b, 0));
	assert_false(hd_fault_do(&b->f, &pause));           /* one fault of a process at a time */
	assert_int_equal(b->f.done[HD_FAULT_PAUSE], 1);
	assert_int_equal(hd_fault_turn(&b->f), 3 * (int64_t)T);
	hd_clock_sim_advance(&b->clock, 2 * (int64_t)T - 1);
	(void)hd_fault_turn(&b->f);
	assert_false(lives(b, 1));
	assert_true(hd_fault_lasts(&b->f));
	hd_clock_sim_advance(&b->clock, 1);
	assert_int_equal(hd_fault_turn(&b->f), INT64_MAX);
	assert_true(becomes(b, 1, true));
	assert_false(hd_fault_lasts(&b->f));
}

static void the_end_lets_every_process_go(void **state)
{
	struct bench *b = *state;

	b->h.live.nworkers = CHILDREN;
	for (uint32_t i = 0; i < CHILDREN; i++)
		assert_true(hd_fault_do(&b->f, &(struct hd_fault){ .kind = HD_FAULT_PAUSE, .pick = i,
			.for_ns = 1000 * (int64_t)T }));
	for (uint32_t i = 0; i < CHILDREN; i++)
		assert_true(becomes(b, i, false));
	hd_fault_end(&b->f);
	for (uint32_t i = 0; i < CHILDREN; i++)
		assert_true(becomes(b, i, true));
	assert_false(hd_fault_lasts(&b->f));
}

/* by 3: stopped for 20 of every 30 ms. */
static void a_slow_process_is_stopped_for_its_part_of_the_time(void **state)
{
	const struct hd_fault slow = { .kind = HD_FAULT_SLOW, .pick = 0, .by = 3, .for_ns = T };
	struct bench *b = *state;

	b->h.live.nworkers = 1;
	assert_true(hd_fault_do(&b->f, &slow));
	for (int turn = 0; turn < 4; turn++) {
		int64_t now = hd_clock_now_ns(&b->clock.clock);
		assert_int_equal(hd_fault_turn(&b->f), now + 20 * HD_NS_PER_MS);
		assert_true(becomes(b, 0, false));
		hd_clock_sim_advance(&b->clock, 20 * HD_NS_PER_MS);
		assert_int_equal(hd_fault_turn(&b->f), now + 30 * HD_NS_PER_MS);
		assert_true(becomes(b, 0, true));
		hd_clock_sim_advance(&b->clock, 10 * HD_NS_PER_MS);
	}
	hd_clock_sim_advance(&b->clock, T);
	(void)hd_fault_turn(&b->f);
	assert_true(becomes(b, 0, true));
	assert_false(hd_fault_lasts(&b->f));
}

static void orders_about_links_and_disks_are_withdrawn_at_their_end(void **state)
{
	static const struct { struct hd_fault fault; const char *order; } cases[] = {
		{ { .kind = HD_FAULT_NET, .how = HD_HOW_CUT, .pick = 0, .other = 1, .for_ns = T },
		  "wire.read:err=ECONNRESET#11;wire.connect:err=ECONNREFUSED#11\n" },
		{ { .kind = HD_FAULT_NET, .how = HD_HOW_DELAY, .pick = 0, .other = 3, .for_ns = T }, "wire.read:delay=5#11;wire.write:delay=5#11\n" },
		{ { .kind = HD_FAULT_NET, .how = HD_HOW_DROP, .pick = 0, .other = 1, .for_ns = T },
		  "wire.read:err=EAGAIN#11;wire.connect:err=ETIMEDOUT#11\n" },
		{ { .kind = HD_FAULT_DISK, .how = HD_HOW_ERROR, .pick = 0, .for_ns = T },
		  "ckpt.fsync:err=EIO;store.before:err=EIO;events.write:err=EIO\n" },
	};
	struct bench *b = *state;
	char name[24];

	b->h.live.nworkers = 2;
	snprintf(name, sizeof name, "%d", b->child[0].pid);
	for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
		assert_true(hd_fault_do(&b->f, &cases[c].fault));
		CHECK(order_is(b, name, cases[c].order), "case %zu", c);
		hd_clock_sim_advance(&b->clock, T);
		(void)hd_fault_turn(&b->f);
		CHECK(order_is(b, name, NULL), "case %zu", c);
		assert_false(hd_fault_lasts(&b->f));
	}
}

static void an_order_of_its_own_becomes_one_for_all_after_a_while(void **state)
{
	const struct hd_fault point = { .kind = HD_FAULT_POINT, .point = HD_FP_COMPUTE_BEFORE, .pick = 1,
		.other = 4 };
	struct bench *b = *state;
	char name[24];

	b->h.live.nworkers = 2;
	snprintf(name, sizeof name, "%d", b->child[1].pid);
	assert_true(hd_fault_do(&b->f, &point));
	assert_true(order_is(b, name, "compute.before:kill@2\n"));
	assert_false(hd_fault_do(&b->f, &point));           /* one a point */
	hd_clock_sim_advance(&b->clock, 3 * (int64_t)T - 1);
	(void)hd_fault_turn(&b->f);
	assert_true(order_is(b, name, "compute.before:kill@2\n"));
	hd_clock_sim_advance(&b->clock, 1);
	(void)hd_fault_turn(&b->f);
	assert_true(order_is(b, name, NULL));
	assert_true(order_is(b, "any", NULL));              /* no answer since: it waits */
	b->h.heard = true;
	(void)hd_fault_turn(&b->f);
	assert_true(order_is(b, "any", "compute.before:kill@1\n"));
	assert_true(hd_fault_lasts(&b->f));
	assert_int_equal(b->f.done[HD_FAULT_POINT], 0);
}

static void a_death_at_a_place_is_counted_once(void **state)
{
	const struct hd_fault point = { .kind = HD_FAULT_POINT, .point = HD_FP_CKPT_BEGIN };
	struct bench *b = *state;
	char path[HD_PATH_CAP];

	b->h.live.nworkers = 2;
	b->h.heard = true;
	assert_true(hd_fault_do(&b->f, &point));
	(void)hd_fault_turn(&b->f);
	assert_true(order_is(b, "any", "ckpt.begin:kill@1\n"));
	snprintf(path, sizeof path, "%s/chaos/hit.ckpt.begin.4711", b->root);
	assert_int_equal(hd_file_write_atomic(&b->fs, path, "x", 1, NULL), HD_OK);
	for (int turn = 0; turn < 3; turn++)
		(void)hd_fault_turn(&b->f);
	assert_int_equal(b->f.killed[HD_FP_CKPT_BEGIN], 1);
	assert_int_equal(b->f.done[HD_FAULT_POINT], 1);
	assert_false(b->h.heard);
	assert_false(hd_fault_lasts(&b->f));
	assert_true(order_is(b, "hit.ckpt.begin.4711", NULL));
	assert_true(hd_fault_do(&b->f, &point));            /* it may be ordered again */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(draws_lie_in_their_ranges),
		cmocka_unit_test_setup_teardown(without_a_victim_there_is_no_kill, enter, leave),
		cmocka_unit_test_setup_teardown(a_target_is_drawn_among_processes, enter, leave),
		cmocka_unit_test_setup_teardown(a_kill_leaves_a_process_that_can_go_on, enter, leave),
		cmocka_unit_test_setup_teardown(the_coordinator_is_drawn_behind_the_workers, enter, leave),
		cmocka_unit_test_setup_teardown(a_pause_ends_after_its_time, enter, leave),
		cmocka_unit_test_setup_teardown(the_end_lets_every_process_go, enter, leave),
		cmocka_unit_test_setup_teardown(a_slow_process_is_stopped_for_its_part_of_the_time, enter,
			leave),
		cmocka_unit_test_setup_teardown(orders_about_links_and_disks_are_withdrawn_at_their_end,
			enter, leave),
		cmocka_unit_test_setup_teardown(an_order_of_its_own_becomes_one_for_all_after_a_while, enter,
			leave),
		cmocka_unit_test_setup_teardown(a_death_at_a_place_is_counted_once, enter, leave),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
