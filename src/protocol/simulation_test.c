#include "protocol/simulation.h"

#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/check.h"

/* The slice is the same for every change. HD_SIM_SEEDS: another number of seeds of each kind (20000: a long
 * one); how often faults took effect is checked for the usual number alone. With sanitizers it is a
 * twentieth; what is too rare in that takes as many seeds as it needs. */
enum { SLICE = SANITIZED ? 100 : 2000, OF_WHAT_IS_RARE = SANITIZED ? 200 : 2000 };

static const char *asked_for(void) { return getenv("HD_SIM_SEEDS"); }
static uint64_t seeds(uint64_t usual) { return asked_for() ? strtoull(asked_for(), NULL, 10) : usual; }

/* Where HD_FRESH is set (hexadecimal; .ci/run gives the commit) all are drawn from there, so that each change
 * meets seeds that no slice has. */
static uint64_t seed_of(uint64_t i)
{
	const char *fresh = getenv("HD_FRESH");

	return fresh ? 1000000 + strtoull(fresh, NULL, 16) % 1000000000 + i : i;
}

static void run(uint64_t seed, uint32_t only, struct hd_sim_result *result)
{
	struct hd_diag diag = { "" };

	CHECK(hd_simulate_job(seed, only, NULL, NULL, result, &diag) == HD_OK, "seed %" PRIu64 ": %s", seed,
		diag.text);
	CHECK(result->ok, "seed %" PRIu64 ": %s", seed, result->why);
}

static void no_seed_of_a_slice_violates_an_invariant(void **state)
{
	const char *asked = asked_for();
	uint64_t n = seeds(SLICE), crashes = 0, redone = 0, restores = 0,
		takeovers = 0, halted = 0;

	(void)state;
	for (uint64_t i = 1; i <= n; i++) {
		uint64_t seed = seed_of(i);
		struct hd_sim_result r;
		run(seed, UINT32_MAX, &r);
		crashes += r.crashes;
		redone += r.redone;
		restores += r.restores;
		takeovers += r.takeovers;
		halted += r.halted;
	}
	/* faults took effect */
	assert_true(asked || (crashes > n / 10 && redone > n / 10 && restores > n / 100 &&
		takeovers > n / 100 && halted > n / 100));
}

/* Pairs: partial sums that were added up at one that is lost; steps that are restarted have none. */
static void no_seed_with_pairs_violates_an_invariant(void **state)
{
	const char *asked = asked_for();
	uint64_t n = seeds(SLICE / 4), crashes = 0, redone = 0, paired = 0;

	(void)state;
	for (uint64_t i = 1; i <= n; i++) {
		uint64_t seed = seed_of(i);
		struct hd_sim_result r;
		run(seed | HD_SIM_PAIRED | (seed % 3 ? 0 : HD_SIM_REPLACED), UINT32_MAX, &r);
		crashes += r.crashes;
		redone += r.redone;
		paired += r.paired;
	}
	CHECK(paired > 10 * n, "%" PRIu64 " partial sums went to a parent", paired);
	assert_true(asked || (crashes > n / 10 && redone > n / 10));
}

/* Sharded state goes through the same: with the same seeds it meets the same faults at other moments. */
static void no_seed_of_sharded_state_violates_an_invariant(void **state)
{
	const char *asked = asked_for();
	/* slots are given up once in a hundred runs: a slice holds several */
	uint64_t n = seeds(SANITIZED ? 2 * SLICE : SLICE), fetches = 0,
		redone = 0, restores = 0, given_up = 0, early = 0;

	(void)state;
	for (uint64_t i = 1; i <= n; i++) {
		uint64_t seed = seed_of(i);
		struct hd_sim_result r;
		run(seed | HD_SIM_SHARDED, UINT32_MAX, &r);
		early += r.early;
		fetches += r.fetches;
		redone += r.redone;
		restores += r.restores;
		given_up += r.given_up;
	}
	CHECK(early > n, "%" PRIu64 " new parameters before UPDATE", early);
	assert_true(asked || (fetches > n && redone > n / 10 && restores > n / 100 && given_up > 0));
}

/* All that hold the slots of a bucket are lost as its new parameters go out: no other has them, so that no
 * partial sum is needed again. In the first step of a view others would (member.h, rule 13). */
static void no_seed_that_loses_what_went_out_early_violates_an_invariant(void **state)
{
	const char *asked = asked_for();
	uint64_t n = seeds(SLICE / 4), unchained = 0, given_up = 0;

	(void)state;
	for (uint64_t i = 1; i <= n; i++) {
		uint64_t seed = seed_of(i);
		struct hd_sim_result r;
		run(seed | HD_SIM_SHARDED | HD_SIM_UNCHAINED, seed % 2 ? UINT32_MAX : 0, &r);
		unchained += r.unchained;
		given_up += r.given_up;
	}
	CHECK(asked || (unchained > n / 10 && given_up > unchained / 2), "in %" PRIu64 " seeds %" PRIu64
		" buckets lost all holders, %" PRIu64 " times all was given up", n, unchained, given_up);
}

/* Stages: losses at any event, of one pipeline (each goes back to disk) and of two. */
static void no_seed_of_stages_violates_an_invariant(void **state)
{
	const char *asked = asked_for();
	uint64_t n = seeds(SLICE / 4), fetches = 0, crashes = 0, restores = 0,
		given_up = 0, reshaped = 0, ahead = 0, vain = 0;

	(void)state;
	for (uint64_t i = 1; i <= n; i++) {
		uint64_t seed = seed_of(i);
		struct hd_sim_result r;
		run(seed | HD_SIM_STAGED | (seed % 4 ? 0 : HD_SIM_REPLACED) |
			(seed % 3 ? 0 : HD_SIM_RESHAPED), UINT32_MAX, &r);
		reshaped += r.reshaped;
		fetches += r.fetches;
		crashes += r.crashes;
		restores += r.restores;
		given_up += r.given_up;
		ahead += r.ahead;
		vain += r.vain;
	}
	/* most steps are begun inside the one before (member.h, rule 13), by each member; of a third of the
	 * seeds some in vain */
	CHECK(ahead > 20 * n && vain > n / 2, "%" PRIu64 " ahead, %" PRIu64 " in vain", ahead, vain);
	assert_true(asked || (fetches > n && crashes > n / 10 && restores > n / 20 && given_up > n / 20 &&
		restores < crashes && reshaped > n / 2));
}

/* Of stages some of which have copies: state by stages and held whole. */
static void no_seed_of_stages_with_copies_violates_an_invariant(void **state)
{
	const char *asked = asked_for();
	uint64_t n = seeds(SLICE / 4), fetches = 0, crashes = 0, restores = 0,
		reshaped = 0;

	(void)state;
	for (uint64_t i = 1; i <= n; i++) {
		uint64_t seed = seed_of(i);
		struct hd_sim_result r;
		run(seed | HD_SIM_STAGED | HD_SIM_COPIED | (seed % 5 ? 0 : HD_SIM_WHOLE) |
			(seed % 4 ? 0 : HD_SIM_REPLACED) | (seed % 3 ? 0 : HD_SIM_RESHAPED), UINT32_MAX, &r);
		reshaped += r.reshaped;
		fetches += r.fetches;
		crashes += r.crashes;
		restores += r.restores;
	}
	/* to go back is rare, and a sanitized slice is 50 seeds */
	CHECK(asked || (fetches > n && crashes > n / 10 && restores > (SANITIZED ? 0 : n / 20) &&
		restores < crashes && reshaped > n / 2),
		"%" PRIu64 " fetches, %" PRIu64 " crashes, %" PRIu64 " restores, %" PRIu64 " reshaped",
		fetches, crashes, restores, reshaped);
}

/* Of stages where a plan file puts them, as many on a rank as it likes: state by stages and held whole. */
static void no_seed_of_stages_at_any_rank_violates_an_invariant(void **state)
{
	const char *asked = asked_for();
	uint64_t n = seeds(SLICE / 8), fetches = 0, crashes = 0, reshaped = 0;

	(void)state;
	for (uint64_t i = 1; i <= n; i++) {
		uint64_t seed = seed_of(i);
		struct hd_sim_result r;
		run(seed | HD_SIM_STAGED | HD_SIM_LISTED | (seed % 5 ? 0 : HD_SIM_WHOLE) |
			(seed % 4 ? 0 : HD_SIM_SHADOWED) | (seed % 3 ? 0 : HD_SIM_RESHAPED), UINT32_MAX, &r);
		fetches += r.fetches;
		crashes += r.crashes;
		reshaped += r.reshaped;
	}
	CHECK(asked || (fetches > n / 2 && crashes > 0 && reshaped > 0),
		"%" PRIu64 " fetches, %" PRIu64 " crashes, %" PRIu64 " reshaped", fetches, crashes, reshaped);
}

/* Of stages whose members hold all state: no loss but that of all of them sends a run back to disk. */
static void no_seed_of_stages_held_whole_violates_an_invariant(void **state)
{
	const char *asked = asked_for();
	uint64_t n = seeds(SLICE / 8), crashes = 0, given_up = 0, reshaped = 0;

	(void)state;
	for (uint64_t i = 1; i <= n; i++) {
		uint64_t seed = seed_of(i);
		struct hd_sim_result r;
		run(seed | HD_SIM_STAGED | HD_SIM_WHOLE | (seed % 3 ? 0 : HD_SIM_RESHAPED), UINT32_MAX, &r);
		crashes += r.crashes;
		given_up += r.given_up;
		reshaped += r.reshaped;
	}
	assert_true(given_up == 0 && (asked || (crashes > 0 && reshaped > 0)));
}

/* Of an optimizer that changes whole tensors: losses between the two exchanges of a step, with shadows and
 * without. */
static void no_seed_of_whole_tensors_by_stages_violates_an_invariant(void **state)
{
	const char *asked = asked_for();
	uint64_t n = seeds(SLICE / 8), crashes = 0, restores = 0, ratios = 0,
		reshaped = 0;

	(void)state;
	for (uint64_t i = 1; i <= n; i++) {
		uint64_t seed = seed_of(i);
		struct hd_sim_result r;
		run(seed | HD_SIM_STAGED | HD_SIM_TENSORS | (seed % 3 ? 0 : HD_SIM_RESHAPED) |
			(seed % 4 ? 0 : HD_SIM_SHADOWED) | (seed % 8 ? 0 : HD_SIM_GOING_ON) |
			(seed % 5 ? 0 : HD_SIM_FIRST), UINT32_MAX, &r);
		crashes += r.crashes;
		restores += r.restores;
		ratios += r.ratios;
		reshaped += r.reshaped;
	}
	assert_true(asked || (ratios > 10 * n && crashes > n / 10 && restores < crashes && reshaped > n / 3));
}

static uint64_t shadowed(uint64_t seed)
{
	return seed | HD_SIM_STAGED | HD_SIM_SHADOWED | (seed % 4 ? 0 : HD_SIM_REPLACED) |
		(seed % 3 ? 0 : HD_SIM_RESHAPED) | (seed % 5 < 3 ? HD_SIM_FEWER : 0) |
		(seed % 2 ? HD_SIM_REFUSING : 0) | (seed % 7 == 4 ? HD_SIM_ZONED : 0);
}

/* Of stages with shadows: no single loss takes what no other member holds, unless one worker has a whole
 * pipeline to itself. The same seeds without shadows go back to disk. */
static void no_seed_of_stages_with_shadows_violates_an_invariant(void **state)
{
	const char *asked = asked_for();
	uint64_t n = seeds(SLICE / 4), fetches = 0, crashes = 0, given_up = 0,
		reshaped = 0, bared = 0, fewer = 0, refused = 0;

	(void)state;
	for (uint64_t i = 1; i <= n; i++) {
		uint64_t seed = seed_of(i);
		struct hd_sim_result r;
		run(shadowed(seed), UINT32_MAX, &r);
		refused += r.refused;
		reshaped += r.reshaped;
		fetches += r.fetches;
		crashes += r.crashes;
		given_up += r.given_up;
		bared += r.bared;
		fewer += r.fewer;
	}
	/* rare ones: those of the next test in the few seeds under sanitizers */
	CHECK(asked || SANITIZED || (fewer > 0 && given_up > 0 && refused > 0),
		"in %" PRIu64 " seeds %" PRIu64 " losses left fewer stages, %" PRIu64 " sources gave up, %"
		PRIu64 " views were refused", n, fewer, given_up, refused);
	CHECK(asked || (fetches > n && crashes > n / 10 && bared < crashes && reshaped > n / 3),
		"in %" PRIu64 " seeds %" PRIu64 " fetches, %" PRIu64 " crashes, %" PRIu64 " bared, %" PRIu64
		" reshaped", n, fetches, crashes, bared, reshaped);
}

/* Two pipelines at least, with and without shadows: no step begins in fewer (the world says so), and with
 * fewer devices the stages are fewer, or all hold. */
static void no_seed_of_two_pipelines_at_least_violates_an_invariant(void **state)
{
	const char *asked = asked_for();
	uint64_t n = seeds(SLICE / 4), crashes = 0, fewer = 0, restores = 0;

	(void)state;
	for (uint64_t i = 1; i <= n; i++) {
		uint64_t seed = seed_of(i);
		struct hd_sim_result r;
		run(seed | HD_SIM_STAGED | HD_SIM_LEAST | (seed % 4 ? 0 : HD_SIM_REPLACED) | (seed % 3 ? 0 :
			HD_SIM_RESHAPED) | (seed % 5 < 3 ? HD_SIM_FEWER : 0) | (seed % 7 < 2 ?
			HD_SIM_SHADOWED : 0), UINT32_MAX, &r);
		crashes += r.crashes;
		fewer += r.fewer;
		restores += r.restores;
	}
	CHECK(asked || SANITIZED || fewer > 0, "in %" PRIu64 " seeds %" PRIu64 " views of fewer stages", n,
		fewer);
	CHECK(asked || crashes > n / 10, "in %" PRIu64 " seeds %" PRIu64 " crashes, %" PRIu64 " restores", n,
		crashes, restores);
}

/* What is rare in a slice happens in seeds that are known, with sanitizers too. */
static void seeds_of_what_is_rare_violate_no_invariant(void **state)
{
	static const uint64_t rare[] = { 7, 27, 51, 90, 115, 125, 316, 485, 496, 580, 722, 955, 965 };
	uint64_t fewer = 0, refused = 0, given_up = 0;

	(void)state;
	for (size_t i = 0; i < sizeof rare / sizeof *rare; i++) {
		struct hd_sim_result r;
		run(shadowed(rare[i]), UINT32_MAX, &r);
		fewer += r.fewer;
		refused += r.fewer && r.refused;
		given_up += r.given_up;
	}
	CHECK(fewer > 3 && refused > 0 && given_up > 3, "%" PRIu64 " losses left fewer stages, %" PRIu64
		" of them refused, %" PRIu64 " sources gave up", fewer, refused, given_up);
}

/* Kills alone, at any time: a run in which each was of state that another held, too, and a second one did not
 * come before it was held twice again, never goes back to disk. */
static void a_loss_of_what_a_shadow_holds_takes_nothing_from_disk(void **state)
{
	uint64_t n = DRAWS(1000);
	uint32_t covered = 0, before = 0, kills = 0;

	(void)state;
	for (uint64_t i = 1; i <= n; i++) {
		uint64_t seed = seed_of(i);
		struct hd_sim_result with, without;
		run(seed | HD_SIM_STAGED | HD_SIM_SHADOWED, 1u << HD_SIM_CRASH, &with);
		if (with.crashes == 0 || with.bared)
			continue;
		kills += with.crashes;
		covered++;
		CHECK(!with.given_up, "seed %" PRIu64 ": %u kills, none of the only holder", seed,
			with.crashes);
		run(seed | HD_SIM_STAGED, 1u << HD_SIM_CRASH, &without);
		before += without.given_up > 0;
	}
	CHECK(asked_for() || SANITIZED || (covered > 50 && before > 2),
		"%u runs, %u kills, %u from disk without", covered, kills, before);
}

/* The same of two pipelines, where each stage has two holders: one worker is killed after any action of its
 * first two steps, when some may not have their view or their links yet. */
static void a_loss_in_the_first_steps_of_two_pipelines_takes_nothing_from_disk(void **state)
{
	uint64_t n = DRAWS(1000);
	uint32_t kills = 0, missed = 0;

	(void)state;
	for (uint64_t i = 1; i <= n; i++) {
		uint64_t seed = seed_of(i);
		struct hd_sim_result r;
		run(seed | HD_SIM_STAGED | HD_SIM_FIRST | (seed % 2 ? HD_SIM_MISSED : 0), 0, &r);
		kills += r.crashes;
		missed += r.missed;
		CHECK(!r.given_up && !r.restores, "seed %" PRIu64 ": %u times from disk", seed, r.restores);
	}
	CHECK(asked_for() || SANITIZED || (kills > 300 && missed > kills), "%u kills, %u calls failed", kills,
		missed);
}

/* Members without a rank follow stages, with all that may happen to them and to the workers of these. */
static void no_seed_of_followed_stages_violates_an_invariant(void **state)
{
	const char *asked = asked_for();
	uint64_t n = seeds(SLICE / 8), crashes = 0, fetches = 0, gone_on = 0,
		refused = 0;

	(void)state;
	for (uint64_t i = 1; i <= n; i++) {
		uint64_t seed = seed_of(i);
		struct hd_sim_result r;
		run(seed | HD_SIM_STAGED | HD_SIM_FOLLOWED | (seed % 4 ? 0 : HD_SIM_REPLACED) |
			(seed % 3 ? 0 : HD_SIM_RESHAPED) | (seed % 5 < 2 ? HD_SIM_SHADOWED : 0) |
			(seed % 10 == 1 ? HD_SIM_GOING_ON : 0) | (seed % 7 ? 0 : HD_SIM_TENSORS) |
			(seed % 11 ? 0 : HD_SIM_REFUSING) | (seed % 13 ? 0 : HD_SIM_CORRUPT),
			seed % 2 ? UINT32_MAX : 1u << HD_SIM_CRASH | 1u << HD_SIM_CO_CRASH, &r);
		crashes += r.crashes;
		fetches += r.fetches;
		gone_on += r.gone_on;
		refused += r.refused;
	}
	CHECK(asked || (crashes > n / 10 && fetches > n && (SANITIZED || gone_on > 0)),
		"in %" PRIu64 " seeds %" PRIu64 " crashes, %" PRIu64 " fetches, %" PRIu64 " steps went on, %"
		PRIu64 " refused", n, crashes, fetches, gone_on, refused);
}

/* One pipeline without redundancy, whose stages have a follower each: one worker is killed after any action
 * of its first two steps. */
static void a_loss_of_what_is_followed_takes_nothing_from_disk(void **state)
{
	uint64_t n = DRAWS(500);
	uint32_t kills = 0;

	(void)state;
	for (uint64_t i = 1; i <= n; i++) {
		uint64_t seed = seed_of(i);
		struct hd_sim_result r;
		run(seed | HD_SIM_STAGED | HD_SIM_FIRST | HD_SIM_FOLLOWED | (seed % 2 ? HD_SIM_MISSED : 0),
			0, &r);
		kills += r.crashes;
		CHECK(!r.given_up && !r.restores, "seed %" PRIu64 ": %u times from disk", seed, r.restores);
	}
	CHECK(asked_for() || SANITIZED || kills > 150, "%u kills", kills);
}

/* A whole zone of two is killed after any action of the first steps: with shadows each stage has a holder in
 * the other one, with two pipelines a copy. Where zones are not looked at many runs go back to disk. */
static void a_lost_zone_takes_nothing_from_disk(void **state)
{
	uint64_t n = DRAWS(500);
	uint32_t kills = 0, parted = 0, gone_on = 0;

	(void)state;
	for (uint64_t i = 1; i <= n; i++) {
		uint64_t seed = seed_of(i);
		struct hd_sim_result r;
		run(seed | HD_SIM_STAGED | HD_SIM_FIRST | HD_SIM_ZONED | (seed % 2 ? HD_SIM_SHADOWED : 0) |
			(seed % 8 == 1 ? HD_SIM_GOING_ON : 0) | (seed % 16 == 3 ? HD_SIM_FEWER : 0), 0, &r);
		kills += r.crashes;
		parted += r.parted;
		gone_on += r.gone_on;
		CHECK(!r.given_up && !r.restores, "seed %" PRIu64 ": %u times from disk", seed, r.restores);
	}
	CHECK(asked_for() || SANITIZED || (kills > 250 && parted > 500 && gone_on > 0),
		"%u kills, %u views of two equal zones, %u steps went on", kills, parted, gone_on);
}

/* Workers that leave, and none in their place for long: they hand on what they have. Where their machines
 * wait for that no step is begun again, but for a process whose end is seen before its last word is heard. */
static void no_seed_of_workers_that_come_late_violates_an_invariant(void **state)
{
	const char *asked = asked_for();
	uint64_t n = seeds(SLICE / 8), narrowed = 0, went = 0, again = 0,
		given_up = 0, calm = 0;

	(void)state;
	for (uint64_t i = 1; i <= n; i++) {
		uint64_t seed = seed_of(i);
		struct hd_sim_result r;
		run(seed | HD_SIM_STAGED | HD_SIM_SHADOWED | HD_SIM_FEWER | HD_SIM_LATE |
			(seed % 5 ? 0 : HD_SIM_RESHAPED), seed % 4 ? 1u << HD_SIM_DRAIN : UINT32_MAX, &r);
		narrowed += r.narrowed;
		went += r.went;
		if (seed % 4) {
			given_up += r.given_up;
			calm += !r.crashes;
			again += !r.crashes && r.again > r.vain;
		}
	}
	CHECK(asked || SANITIZED || (narrowed > n / 8 && went > n / 64 && given_up <= n / 50 &&
		again <= calm / 20), "in %" PRIu64 " seeds %" PRIu64 " asked for fewer stages, %" PRIu64
		" machines went, %" PRIu64 " times all is lost; of %" PRIu64 " without that a step is begun "
		"again in %" PRIu64, n, narrowed, went, given_up, calm, again);
}

/* So do steps that go on after losses, which are most that have all they need. */
static void no_seed_of_steps_that_go_on_violates_an_invariant(void **state)
{
	const char *asked = asked_for();
	uint64_t n = seeds(OF_WHAT_IS_RARE / 4), crashes = 0, gone_on = 0, stuck = 0,
		takeovers = 0;

	(void)state;
	for (uint64_t i = 1; i <= n; i++) {
		uint64_t seed = seed_of(i);
		struct hd_sim_result r;
		run(seed | HD_SIM_STAGED | HD_SIM_SHADOWED | HD_SIM_GOING_ON |
			(seed % 4 ? 0 : HD_SIM_REPLACED) | (seed % 3 ? 0 : HD_SIM_RESHAPED) |
			(seed % 5 < 3 ? HD_SIM_FEWER : 0) | (seed % 7 < 3 ? HD_SIM_REFUSING : 0),
			seed % 2 ? UINT32_MAX : 1u << HD_SIM_CRASH | 1u << HD_SIM_CO_CRASH, &r);
		gone_on += r.gone_on;
		stuck += r.stuck;
		crashes += r.crashes;
		takeovers += r.takeovers;
	}
	CHECK(asked || (gone_on > n / 50 && (SANITIZED || stuck > 0) && takeovers > 0 && crashes > gone_on),
		"%" PRIu64 " kills, %" PRIu64 " steps went on, %" PRIu64 " workers could not, %" PRIu64
		" takeovers", crashes, gone_on, stuck, takeovers);
}

/* Lockstep: whoever waits in its pass for others is fenced when one of them is lost; a step begins again, or
 * is finished by its sums. */
static void no_seed_of_lockstep_violates_an_invariant(void **state)
{
	const char *asked = asked_for();
	uint64_t n = seeds(OF_WHAT_IS_RARE / 2), crashes = 0, restores = 0, halted = 0,
		takeovers = 0;

	(void)state;
	for (uint64_t i = 1; i <= n; i++) {
		uint64_t seed = seed_of(i);
		struct hd_sim_result r;
		run(seed | HD_SIM_LOCKSTEP | (seed % 4 ? 0 : HD_SIM_SHARDED) |
			(seed % 3 ? 0 : HD_SIM_REPLACED), UINT32_MAX, &r);
		crashes += r.crashes;
		restores += r.restores;
		halted += r.halted;
		takeovers += r.takeovers;
	}
	assert_true(asked || (crashes > n / 10 && restores > n / 100 && takeovers > n / 100 &&
		halted > n / 100 && restores < crashes));
}

/* So do workers in whose place others come. */
static void no_seed_of_being_replaced_workers_violates_an_invariant(void **state)
{
	const char *asked = asked_for();
	uint64_t n = seeds(SLICE), being_replaced = 0, joins = 0;

	(void)state;
	for (uint64_t i = 1; i <= n; i++) {
		uint64_t seed = seed_of(i);
		struct hd_sim_result r;
		run(seed | HD_SIM_REPLACED | (seed % 2 ? HD_SIM_SHARDED : 0), UINT32_MAX, &r);
		being_replaced += r.being_replaced;
		joins += r.joins;
	}
	assert_true(asked || (being_replaced > n && joins > n));
}

static void a_seed_that_ever_failed_is_run_for_ever(void **state)
{
	char path[1024], line[256], *rest, *text;
	const char *source = getenv("SOURCE_DIR");
	uint32_t n = 0;

	(void)state;
	snprintf(path, sizeof path, "%s/tests/seeds.txt", source ? source : ".");
	FILE *file = fopen(path, "r");
	CHECK(file, "%s is missing", path);
	while (fgets(line, sizeof line, file)) {
		struct hd_sim_result r;
		if (*line == '#' || *line == '\n')
			continue;
		const uint64_t seed = strtoull(line, &rest, 10);
		const uint32_t only = *rest == ':' ? (uint32_t)strtoul(rest + 1, &text, 16) : UINT32_MAX;
		run(seed, only, &r);
		n++;
	}
	assert_int_equal(fclose(file), 0);
	assert_true(n > 20);
}

/* A majority of the digest reports is right: nothing of the others is committed or restored. */
static void no_seed_of_a_corrupted_state_violates_an_invariant(void **state)
{
	const char *asked = asked_for();
	uint64_t n = seeds(SLICE), corrupted = 0, expelled = 0, undecided = 0,
		alone = 0;

	(void)state;
	for (uint64_t i = 1; i <= n; i++) {
		uint64_t seed = seed_of(i);
		struct hd_sim_result r;
		run(seed | HD_SIM_CORRUPT | (seed % 2 ? HD_SIM_REPLACED : 0), seed % 4 ? UINT32_MAX : 0, &r);
		corrupted += r.corrupted;
		expelled += r.expelled;
		undecided += r.undecided;
		alone += r.escaped;
	}
	assert_true(asked || (corrupted > n / 4 && expelled > corrupted / 2 && undecided > 0 &&
		alone < corrupted / 4));
}

/* A bucket of a stage or of its shadow: with two holders none is right for all that is known. */
static void no_seed_of_a_stage_that_differs_from_its_shadow_violates_an_invariant(void **state)
{
	const char *asked = asked_for();
	uint64_t n = seeds(SLICE / 4), corrupted = 0, expelled = 0,
		undecided = 0, escaped = 0;

	(void)state;
	for (uint64_t i = 1; i <= n; i++) {
		uint64_t seed = seed_of(i);
		struct hd_sim_result r;
		run(seed | HD_SIM_CORRUPT | HD_SIM_STAGED | (seed % 4 == 1 ? HD_SIM_RESHAPED : 0),
			seed % 3 ? UINT32_MAX : 0, &r);
		corrupted += r.corrupted;
		expelled += r.expelled;
		undecided += r.undecided;
		escaped += r.escaped;
	}
	print_message("%" PRIu64 " corrupted, %" PRIu64 " expelled, %" PRIu64 " ended, %" PRIu64
		" without another holder\n", corrupted, expelled, undecided, escaped);
	assert_true(asked || (corrupted > n / 8 && undecided > 0 && (SANITIZED || expelled > 0)));
}

/* A joiner whose source gave up syncs from another, or again. */
static void no_seed_of_sources_that_give_up_violates_an_invariant(void **state)
{
	const char *asked = asked_for();
	uint64_t n = seeds(OF_WHAT_IS_RARE / 2), unheard = 0, heeded = 0;

	(void)state;
	for (uint64_t i = 1; i <= n; i++) {
		uint64_t seed = seed_of(i);
		struct hd_sim_result r;
		run(seed | HD_SIM_GIVING_UP | (seed % 2 ? HD_SIM_REPLACED : 0) | (seed % 4 < 2 ?
			HD_SIM_SHARDED : 0), UINT32_MAX, &r);
		unheard += r.unheard;
		heeded += r.heeded;
	}
	CHECK(asked || (unheard > n / 10 && heeded > unheard / 4),
		"%" PRIu64 " joiners were given up, %" PRIu64 " of them were members later", unheard,
		heeded);
}

/* Nor does a coordinator that never knew whether its record was stored. */
static void no_seed_of_coordinators_killed_while_they_store_violates_an_invariant(void **state)
{
	const char *asked = asked_for();
	uint64_t n = seeds(SLICE / 2), takeovers = 0, restores = 0;

	(void)state;
	for (uint64_t i = 1; i <= n; i++) {
		uint64_t seed = seed_of(i);
		struct hd_sim_result r;
		run(seed | HD_SIM_UNHEARD | (seed % 2 ? HD_SIM_REPLACED : 0) | (seed % 4 < 2 ?
			HD_SIM_SHARDED : 0), UINT32_MAX, &r);
		takeovers += r.takeovers;
		restores += r.restores;
	}
	CHECK(asked || (takeovers > n / 2 && restores > n / 100),
		"%" PRIu64 " takeovers, %" PRIu64 " times from disk", takeovers, restores);
}

/* Calls that fail are made again. */
static void no_seed_of_calls_that_fail_violates_an_invariant(void **state)
{
	const char *asked = asked_for();
	uint64_t n = seeds(SLICE / 4), missed = 0;

	(void)state;
	for (uint64_t i = 1; i <= n; i++) {
		uint64_t seed = seed_of(i);
		static const uint64_t kinds[] = { 0, HD_SIM_SHARDED, HD_SIM_STAGED, HD_SIM_LOCKSTEP };
		struct hd_sim_result r;
		run(seed | HD_SIM_MISSED | kinds[seed % 4] | (seed % 3 ? 0 : HD_SIM_REPLACED), UINT32_MAX,
			&r);
		missed += r.missed;
	}
	CHECK(asked || missed > n, "%" PRIu64 " calls failed", missed);
}

/* Of a link that was silent for a moment no worker is given up. */
static void no_seed_of_links_that_flap_violates_an_invariant(void **state)
{
	const char *asked = asked_for();
	uint64_t n = seeds(SLICE / 4), flapped = 0, unheeded = 0;

	(void)state;
	for (uint64_t i = 1; i <= n; i++) {
		uint64_t seed = seed_of(i);
		static const uint64_t kinds[] = { 0, HD_SIM_SHARDED, HD_SIM_STAGED, HD_SIM_LOCKSTEP };
		struct hd_sim_result r;
		run(seed | HD_SIM_FLAPPED | kinds[seed % 4], seed % 3 ? UINT32_MAX : 0, &r);
		flapped += r.flapped;
		unheeded += r.unheeded;
	}
	CHECK(asked || (flapped > n / 2 && unheeded > flapped / 2),
		"%" PRIu64 " links flapped, %" PRIu64 " of them unheeded", flapped, unheeded);
}

/* Without faults nothing is redone, and a view changes only to grow to its size. */
static void an_undisturbed_run_does_nothing_twice(void **state)
{
	uint64_t n = DRAWS(100);

	(void)state;
	for (uint64_t i = 1; i <= n; i++) {
		uint64_t seed = seed_of(i);
		struct hd_sim_result r;
		static const uint64_t kinds[] = { 0, HD_SIM_SHARDED, HD_SIM_STAGED, HD_SIM_LOCKSTEP,
			HD_SIM_STAGED | HD_SIM_SHADOWED };
		for (int kind = 0; kind < 10; kind++) {
			run(seed | kinds[kind % 5] | (kind < 5 ? 0 : HD_SIM_MISSED), 0, &r);
			CHECK(!r.redone && !r.crashes && !r.restores && r.epochs <= 3 + r.vain,
				"seed %" PRIu64 ": %u redone, %u epochs", seed, r.redone, r.epochs);
		}
	}
}

static void equal_seeds_give_equal_runs(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 50; seed++) {
		struct hd_sim_result a, b;
		memset(&a, 0, sizeof a);
		memset(&b, 0, sizeof b);
		run(seed, UINT32_MAX, &a);
		run(seed, UINT32_MAX, &b);
		CHECK(a.events == b.events && a.end_ns == b.end_ns && a.redone == b.redone, "seed %" PRIu64,
			seed);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_seeds_give_equal_runs),
		cmocka_unit_test(an_undisturbed_run_does_nothing_twice),
		cmocka_unit_test(a_seed_that_ever_failed_is_run_for_ever),
		cmocka_unit_test(no_seed_of_a_slice_violates_an_invariant),
		cmocka_unit_test(no_seed_with_pairs_violates_an_invariant),
		cmocka_unit_test(no_seed_of_sharded_state_violates_an_invariant),
		cmocka_unit_test(no_seed_that_loses_what_went_out_early_violates_an_invariant),
		cmocka_unit_test(no_seed_of_stages_violates_an_invariant),
		cmocka_unit_test(no_seed_of_stages_with_copies_violates_an_invariant),
		cmocka_unit_test(no_seed_of_whole_tensors_by_stages_violates_an_invariant),
		cmocka_unit_test(no_seed_of_stages_at_any_rank_violates_an_invariant),
		cmocka_unit_test(no_seed_of_stages_held_whole_violates_an_invariant),
		cmocka_unit_test(no_seed_of_stages_with_shadows_violates_an_invariant),
		cmocka_unit_test(no_seed_of_two_pipelines_at_least_violates_an_invariant),
		cmocka_unit_test(no_seed_of_workers_that_come_late_violates_an_invariant),
		cmocka_unit_test(no_seed_of_steps_that_go_on_violates_an_invariant),
		cmocka_unit_test(seeds_of_what_is_rare_violate_no_invariant),
		cmocka_unit_test(a_loss_of_what_a_shadow_holds_takes_nothing_from_disk),
		cmocka_unit_test(a_loss_in_the_first_steps_of_two_pipelines_takes_nothing_from_disk),
		cmocka_unit_test(no_seed_of_followed_stages_violates_an_invariant),
		cmocka_unit_test(a_loss_of_what_is_followed_takes_nothing_from_disk),
		cmocka_unit_test(a_lost_zone_takes_nothing_from_disk),
		cmocka_unit_test(no_seed_of_lockstep_violates_an_invariant),
		cmocka_unit_test(no_seed_of_being_replaced_workers_violates_an_invariant),
		cmocka_unit_test(no_seed_of_a_corrupted_state_violates_an_invariant),
		cmocka_unit_test(no_seed_of_a_stage_that_differs_from_its_shadow_violates_an_invariant),
		cmocka_unit_test(no_seed_of_sources_that_give_up_violates_an_invariant),
		cmocka_unit_test(no_seed_of_links_that_flap_violates_an_invariant),
		cmocka_unit_test(no_seed_of_calls_that_fail_violates_an_invariant),
		cmocka_unit_test(no_seed_of_coordinators_killed_while_they_store_violates_an_invariant),
	};
	/* memory that a run gave back to the system would be cleared page by page for the next one */
	(void)mallopt(M_TRIM_THRESHOLD, 1 << 28);
	(void)mallopt(M_MMAP_THRESHOLD, 1 << 28);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
