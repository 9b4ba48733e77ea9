#include "sys/thread.h"

#include "tests/check.h"

enum { ROUNDS = 400, MOST = 9 };

/* Plain memory on purpose: only the barrier orders it, and the thread sanitizer looks on. */
struct barrier_team { struct hd_barrier barrier; uint32_t n; long cell[MOST], wrong; };
struct barrier_member { struct barrier_team *team; uint32_t i; struct hd_thread thread; long wrong; };

static void work(void *user)
{
	struct barrier_member *member = user;
	struct barrier_team *team = member->team;

	for (long round = 1; round <= ROUNDS; round++) {
		team->cell[member->i] = round;
		hd_barrier_wait(&team->barrier);
		for (uint32_t k = 0; k < team->n; k++)
			member->wrong += team->cell[k] != round;
		hd_barrier_wait(&team->barrier);
	}
}

static void nobody_passes_before_all_have_arrived(void **state)
{
	(void)state;
	for (uint32_t n = 1; n <= MOST; n++)
		for (int spin = 0; spin < 2; spin++) {
			struct barrier_team team = { .n = n };
			struct barrier_member members[MOST];
			struct hd_diag diag = { "" };

			hd_barrier_init(&team.barrier, n, spin);
			for (uint32_t i = 0; i < n; i++) {
				members[i] = (struct barrier_member){ .team = &team, .i = i };
				CHECK(!hd_thread_start(&members[i].thread, "member", -1, work, &members[i],
					&diag), "%s", diag.text);
			}
			for (uint32_t i = 0; i < n; i++) {
				hd_thread_join(&members[i].thread);
				CHECK(!members[i].wrong, "%u threads, spin %d: member %u saw %ld old values",
					n, spin, i, members[i].wrong);
			}
			assert_int_equal(team.barrier.sleepers, 0);
			assert_int_equal(team.barrier.round, 2 * ROUNDS);
		}
}

static void a_barrier_survives_the_wrap_of_its_round(void **state)
{
	struct hd_barrier barrier;

	(void)state;
	hd_barrier_init(&barrier, 1, false);
	atomic_store(&barrier.round, UINT32_MAX);
	hd_barrier_wait(&barrier);
	hd_barrier_wait(&barrier);
	assert_int_equal(barrier.round, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nobody_passes_before_all_have_arrived),
		cmocka_unit_test(a_barrier_survives_the_wrap_of_its_round),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
