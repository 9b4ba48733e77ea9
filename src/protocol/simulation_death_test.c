#include "protocol/simulation.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/check.h"

/* One death, of two pipelines, or of one whose stages have a follower each, so that each has two holders: no
 * committed step is given up, and no more than one step is begun again. HD_DRAWS: at each action of each
 * process; else at every 23rd, or 61st. */

static const struct hd_sim_death grids[] = { { .width = 2, .chunks = 1 }, { .width = 2, .chunks = 2 },
	{ .width = 2, .chunks = 2, .vee = true }, { .width = 3, .chunks = 1 } };
static const uint32_t victims[] = { 0, 1, 2, 3, HD_SIM_COORDINATOR };

struct count { uint32_t deaths, coordinators, saving, summed, again; };

/* It dies at every `each` of its actions, one run after another. */
static void die_at_each(uint64_t seed, struct hd_sim_death death, uint32_t each, struct count *n)
{
	struct hd_sim_result r = { .died = 1 };
	struct hd_diag diag = { "" };

	for (; r.died; death.after += each) {
		CHECK(hd_simulate_death(seed, &death, NULL, NULL, &r, &diag) == HD_OK, "%s", diag.text);
		CHECK(r.ok, "seed %" PRIu64 "%s: %u ranks of %u stages%s, %u dies after %u actions: %s",
			seed & 0xff, seed & HD_SIM_FOLLOWED ? " with followers" : ", two pipelines",
			death.width, death.chunks, death.vee ? " there and back" : "", death.victim,
			death.after, r.why);
		n->deaths += r.died;
		n->coordinators += r.died && death.victim == HD_SIM_COORDINATOR;
		n->saving += r.died_saving;
		n->summed += r.died_summed;
		n->again += r.again;
	}
}

/* In each way that stages lie on ranks. The owner of a sum between it and the norm, the checkpoint writer in
 * the middle of one and the coordinator are among them. */
static void die_in_all(uint64_t kind, uint32_t usual, struct count *n)
{
	const uint32_t every = getenv("HD_DRAWS") ? 1 : SANITIZED ? 97 : usual;

	for (uint64_t seed = 1; seed <= 4; seed++)
		for (size_t g = 0; g < sizeof grids / sizeof *grids; g++)
			for (size_t v = 0; v < sizeof victims / sizeof *victims; v++) {
				struct hd_sim_death death = grids[g];
				death.victim = victims[v];
				/* it acts seldom */
				const bool coordinator = death.victim == HD_SIM_COORDINATOR;
				const uint32_t each = coordinator ? 1 + every / 8 : every;
				death.after = 1 + (uint32_t)(seed * 7 + g * 5 + v * 3) % each;
				die_at_each(seed | kind, death, each, n);
			}
}

static void a_death_at_any_action_of_two_pipelines_gives_up_no_step(void **state)
{
	struct count n = { 0 };

	(void)state;
	die_in_all(0, 23, &n);
	print_message("%u deaths, %u of coordinators, %u within a checkpoint, %u between a sum and its norm; "
		"%u steps begun again\n", n.deaths, n.coordinators, n.saving, n.summed, n.again);
	CHECK(SANITIZED || (n.coordinators > 20 && n.saving > 5 && n.summed > 5 && n.again < n.deaths),
		"%u deaths", n.deaths);
}

/* Of those that run a stage, and of their followers. */
static void a_death_at_any_action_with_followers_gives_up_no_step(void **state)
{
	struct count n = { 0 };

	(void)state;
	die_in_all(HD_SIM_FOLLOWED, 61, &n);
	print_message("%u deaths, %u of coordinators, %u within a checkpoint, %u between a sum and its norm; "
		"%u steps begun again\n", n.deaths, n.coordinators, n.saving, n.summed, n.again);
	CHECK(SANITIZED || (n.coordinators > 10 && n.summed > 3 && n.again < n.deaths), "%u deaths",
		n.deaths);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_death_at_any_action_of_two_pipelines_gives_up_no_step),
		cmocka_unit_test(a_death_at_any_action_with_followers_gives_up_no_step),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
