#include "spot/value.h"

#include <math.h>
#include <stdio.h>

#include "spot/testing.h"

static struct hd_arena arena;

static int set_up(void **state) { (void)state; hd_arena_init(&arena, 0); return 0; }
static int tear_down(void **state) { (void)state; hd_arena_finish(&arena); return 0; }

static struct hd_spot_market market_of(const char *text)
{
	const struct hd_json *json;
	struct hd_spot_market m = { 0 };
	struct hd_diag diag = { "" };

	CHECK(!hd_json_parse(&arena, "market", text, strlen(text), &json, &diag) &&
		!hd_spot_market_read(&m, json, &diag), "%s", diag.text);
	return m;
}

/* Is a set of lost devices, a bit each, more than the strategy tolerates? Device (d, p) is bit d * P + p. */
static bool too_much(enum hd_spot_strategy strategy, uint32_t d, uint32_t p, uint32_t f, uint32_t lost)
{
	uint32_t hit = 0;

	for (uint32_t s = 0; s < p && strategy == HD_SPOT_REROUTE; s++) {
		uint32_t left = 0;
		for (uint32_t i = 0; i < d; i++)
			left += !(lost >> (i * p + s) & 1);
		if (!left)
			return true;
	}
	for (uint32_t i = 0; i < d && strategy >= HD_SPOT_LAZY && strategy <= HD_SPOT_FULL; i++)
		for (uint32_t s = 0; s < p; s++)
			if (lost >> (i * p + s) & 1 && lost >> (i * p + (s + 1) % p) & 1)
				return true;
	for (uint32_t i = 0; i < d + f && strategy == HD_SPOT_REPLICA; i++)
		hit += (lost >> (i * p) & ((1u << p) - 1)) != 0;
	return hit > f || (strategy == HD_SPOT_CHECKPOINT && lost);
}

/* Each strategy by its formula; of replica:2 what 2^16 sets can show. */
static void probabilities_are_those_of_counting_all_sets(void **state)
{
	uint32_t counted[HD_NSPOT_STRATEGIES][3] = { { 0 } };

	(void)state;
	for (uint32_t i = 0; i < HD_NSPOT_STRATEGIES; i++)
		for (uint32_t d = 1; d <= 3; d++)
			for (uint32_t p = 1; p <= 5; p++)
				for (uint32_t f = 0; f <= (i == HD_SPOT_REPLICA ? 2 : 0); f++) {
					const enum hd_spot_strategy by = (enum hd_spot_strategy)i;
					const uint32_t n = (d + f) * p;
					uint64_t sets[32] = { 0 }, bad[32] = { 0 };
					if (f == 2 && n > 16)
						continue;
					for (uint32_t lost = 0; lost < 1u << n; lost++) {
						int k = __builtin_popcount(lost);
						sets[k]++;
						bad[k] += too_much(by, d, p, f, lost);
					}
					for (uint32_t k = 0; k <= 5 && k <= n; k++) {
						const double want = (double)bad[k] / (double)sets[k],
							is = hd_spot_exceeds(by, d, p, f, k);
						CHECK(fabs(is - want) <= 1e-12,
							"%s, D %u, P %u, f %u, k %u: %.15f, not %.15f",
							hd_spot_strategy_names[i], d, p, f, k, is,
							want);
						counted[i][f] += bad[k] && bad[k] < sets[k];
					}
					CHECK(hd_spot_exceeds(by, d, p, f, n + 1) >= 1, "more than all");
				}
	for (uint32_t i = HD_SPOT_REROUTE; i < HD_NSPOT_STRATEGIES; i++)
		CHECK(counted[i][0] + counted[i][1] > 10 && (i != HD_SPOT_REPLICA || counted[i][2] > 10),
			"%s: %u, %u, %u of them are between 0 and 1", hd_spot_strategy_names[i],
			counted[i][0], counted[i][1], counted[i][2]);
}

/* Does a set of lost devices leave a stage that none holds, of its own or (shadows) for the one after? */
static bool none_holds(enum hd_spot_strategy strategy, uint32_t d, uint32_t p, uint32_t lost)
{
	for (uint32_t s = 0; s < p; s++) {
		uint32_t left = 0;
		for (uint32_t i = 0; i < d; i++) {
			left += !(lost >> (i * p + s) & 1);
			left += strategy == HD_SPOT_EAGER && !(lost >> (i * p + (s + p - 1) % p) & 1);
		}
		if (!left)
			return true;
	}
	return strategy == HD_SPOT_CHECKPOINT && lost;
}

static void stages_without_a_holder_are_those_of_counting_all_sets(void **state)
{
	static const enum hd_spot_strategy each[] = { HD_SPOT_CHECKPOINT, HD_SPOT_REROUTE, HD_SPOT_EAGER,
		HD_SPOT_REPLICA };
	uint32_t between = 0;
	(void)state;

	for (uint32_t i = 0; i < 4; i++)
		for (uint32_t d = 1; d <= 4; d++)
			for (uint32_t p = 1; p <= 6 && d * p <= 16; p++) {
				const uint32_t f = each[i] == HD_SPOT_REPLICA && d > 1, n = d * p;
				uint64_t sets[17] = { 0 }, bad[17] = { 0 };
				for (uint32_t lost = 0; lost < 1u << n; lost++) {
					sets[__builtin_popcount(lost)]++;
					bad[__builtin_popcount(lost)] += none_holds(each[i], d, p, lost);
				}
				for (uint32_t k = 0; k <= n; k++) {
					const double want = (double)bad[k] / (double)sets[k],
						is = hd_spot_unheld(each[i], d - f, p, f, k),
						exceeds = hd_spot_exceeds(each[i], d - f, p, f, k);
					CHECK(fabs(is - want) <= 1e-12,
						"%s, D %u, P %u, k %u: %.15f, not %.15f",
						hd_spot_strategy_names[each[i]],
						d, p, k, is, want);
					CHECK(is <= exceeds + 1e-12, "%u x %u, %u", d, p, k);
					between += is > 1e-6 && is < exceeds - 1e-6;
				}
				CHECK(hd_spot_unheld(each[i], d - f, p, f, n + 1) >= 1, "more than all");
			}
	CHECK(between > 50, "%u probabilities lie between none and those that exceed", between);
}

/* A loss that leaves no holder costs the way back to a checkpoint, and says how far those are apart: by the
 * sum over all sets of lost devices. 2 pipelines of 3, of which four devices go at once. */
static void a_loss_that_leaves_no_holder_goes_back(void **state)
{
	const struct hd_spot_market m = market_of("{\"losses_h\": 100, \"together\": [0, 0, 0, 1],"
		" \"pause_s\": 4, \"rebuild_s\": 20, \"reload_s\": 6, \"checkpoint_s\": 9, \"switch_s\": 0,"
		" \"replan_s\": 0, \"announced\": 0.5}");
	const struct hd_spot_grid g = { .pipelines = 2, .stages = 3, .batch = 100, .step_s = 2 };
	static const struct { enum hd_spot_strategy strategy; uint32_t d, f; } row[] = {
		{ HD_SPOT_EAGER, 2, 0 }, { HD_SPOT_REPLICA, 2, 1 }, { HD_SPOT_REROUTE, 2, 0 } };
	(void)state;

	for (size_t r = 0; r < sizeof row / sizeof *row; r++) {
		const uint32_t d = row[r].d, f = row[r].f, p = 3;
		const struct hd_spot_value v = hd_spot_value(&m, &g, row[r].strategy, f, 0);
		double sets = 0, kept = 0, back = 0, held = 0;
		for (uint32_t lost = 0; lost < 1u << (d + f) * p; lost++) {
			if (__builtin_popcount(lost) != 4)
				continue;
			sets++;
			back += none_holds(row[r].strategy, d + f, p, lost);
			held += too_much(row[r].strategy, d, p, f, lost) &&
				!none_holds(row[r].strategy, d + f, p, lost);
		}
		kept = sets - held - back;
		/* half of the losses are announced, and cost nothing; 50 an hour, of them back / sets */
		const double every = fmin(sqrt(2 * 9 * 72 * sets / back), 1800);
		CHECK(fabs(v.interval_s - every) < 1e-6, "row %zu: every %g s, not %g", r, v.interval_s,
			every);
		const double stall = (kept * 4 + held * (20 + 1) + back * (20 + 6 + every / 2)) / sets;
		CHECK(fabs(v.stall_s - stall / 2) < 1e-6, "row %zu: %g s, not %g", r, v.stall_s, stall / 2);
		CHECK(back > 0 && (held > 0) == (row[r].strategy != HD_SPOT_REROUTE), "row %zu: %g, %g", r,
			back, held);
	}
}

static uint32_t roll(uint64_t *at, uint32_t below)
{
	*at = *at * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(*at >> 33) % below;
}

/* Every term of an event by all sets of lost devices, of two hundred drawn markets: the stall, what is
 * useful, and the value; of each strategy and grids up to 3 x 5. */
static void stall_and_value_are_those_of_counting_all_sets(void **state)
{
	uint64_t dice = 5;
	uint32_t compared = 0;

	(void)state;
	for (int drawn = 0; drawn < 200; drawn++) {
		const uint32_t d = 1 + roll(&dice, 3), p = 1 + roll(&dice, 5);
		const uint32_t most = 1 + roll(&dice, 5);
		const enum hd_spot_strategy by = (enum hd_spot_strategy)(drawn % HD_NSPOT_STRATEGIES);
		const uint32_t f = by == HD_SPOT_REPLICA ? 1 + roll(&dice, d * p <= 6 ? 2 : 1) : 0,
			n = (d + f) * p;
		const double o = roll(&dice, 2) * 0.15;
		struct hd_spot_market m = { .usd_h = 0.5 + roll(&dice, 9), .losses_h = roll(&dice, 40),
			.ntogether = most, .announced = roll(&dice, 4) / 4.0, .pause_s = roll(&dice, 20),
			.rebuild_s = roll(&dice, 60), .reload_s = roll(&dice, 60),
			.checkpoint_s = 1 + roll(&dice, 20), .switch_s = roll(&dice, 3),
			.replan_s = roll(&dice, 120), .doubled = 1 + roll(&dice, 3) / 4.0 };
		const struct hd_spot_grid g = { .pipelines = d, .stages = p, .batch = 64, .step_s = 3,
			.redo_s = roll(&dice, 3) };
		double sum = 0, tolerated = 0, over[2] = { 0 };
		if (n < most || n > 16)
			continue;
		compared++;
		for (uint32_t k = 0; k < most; k++)
			sum += m.together[k] = 1 + roll(&dice, 5);
		for (uint32_t k = 0; k < most; k++)
			m.together[k] /= sum;
		for (uint32_t k = 1; k <= most; k++) {
			double sets = 0, fine = 0, of[2] = { 0 };
			for (uint32_t lost = 1; lost < 1u << n; lost++) {
				if (__builtin_popcount(lost) != (int)k)
					continue;
				const bool shadows = by >= HD_SPOT_LAZY && by <= HD_SPOT_FULL;
				const bool back = none_holds(shadows ? HD_SPOT_EAGER : by, d + f, p, lost);
				sets++;
				fine += !too_much(by, d, p, f, lost);
				of[back] += too_much(by, d, p, f, lost);
			}
			const double slow = by == HD_SPOT_REROUTE ? n / (n - (double)k) :
				by == HD_SPOT_REPLICA ? 1 : m.doubled;
			const double w = m.together[k - 1];
			tolerated += fine > 0 ? w * fine / sets * (m.pause_s + g.redo_s + (slow - 1) *
				m.replan_s) : 0;
			over[0] += w * of[0] / sets;
			over[1] += w * of[1] / sets;
		}
		/* for the losses without notice that go back to one; beside others twice an hour */
		const double back_h = m.losses_h * (1 - m.announced) * over[1];
		double every = sqrt(2 * m.checkpoint_s * 3600 / back_h);
		if (by != HD_SPOT_CHECKPOINT)
			every = fmin(every, 1800);
		const double back_s = isfinite(every) ? every / 2 + m.reload_s : 0,
			stall = (1 - m.announced) * (tolerated + over[0] * (m.rebuild_s + 1.5) + over[1] *
				(m.rebuild_s + back_s)) + m.announced * m.switch_s,
			saves = isfinite(every) ? m.checkpoint_s / every : 0,
			useful = 1 / ((1 + o + saves) * (1 + m.losses_h / 3600 * stall));
		const struct hd_spot_value v = hd_spot_value(&m, &g, by, f, o);
		CHECK(fabs(v.stall_s - stall) <= 1e-12 * (1 + stall), "%s %u x %u + %u: %.15g s, not %.15g",
			hd_spot_strategy_names[by], d, p, f, v.stall_s, stall);
		CHECK(fabs(v.useful - useful) <= 1e-12 && fabs(v.value - 64 / 3.0 * useful * 3600 / (n *
			m.usd_h)) <= 1e-12 * v.value, "%s %u x %u + %u: useful %.15g, not %.15g",
			hd_spot_strategy_names[by], d, p, f, v.useful, useful);
	}
	CHECK(compared > 100, "%u markets", compared);
}

static void published_probabilities_come_out(void **state)
{
	static const struct { enum hd_spot_strategy s; uint32_t d, p, k; double want, within; } rows[] = {
		{ HD_SPOT_LAZY, 2, 4, 2, 0.285714, 5e-7 }, { HD_SPOT_LAZY, 2, 4, 3, 0.714286, 5e-7 },
		{ HD_SPOT_EAGER, 3, 4, 4, 0.781818, 5e-7 }, { HD_SPOT_FULL, 2, 6, 3, 0.490909, 5e-7 },
		{ HD_SPOT_FULL, 4, 12, 1, 0, 1e-12 }, { HD_SPOT_FULL, 4, 12, 2, 0.0426, 5e-5 },
		{ HD_SPOT_FULL, 4, 12, 3, 0.1249, 5e-5 }, { HD_SPOT_FULL, 4, 12, 4, 0.2389, 5e-5 },
		{ HD_SPOT_REROUTE, 2, 4, 2, 0.142857, 5e-7 }, { HD_SPOT_REROUTE, 2, 4, 3, 0.428571, 5e-7 },
		{ HD_SPOT_REROUTE, 3, 4, 4, 0.072727, 5e-7 }, { HD_SPOT_REROUTE, 2, 6, 3, 0.272727, 5e-7 },
		{ HD_SPOT_REROUTE, 4, 12, 4, 6.2e-5, 5e-7 },
	};
	(void)state;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		double is = hd_spot_exceeds(rows[i].s, rows[i].d, rows[i].p, 0, rows[i].k);
		CHECK(fabs(is - rows[i].want) <= rows[i].within, "row %zu: %.9f", i, is);
	}
}

/* By hand: 2 pipelines of 4 stages, a step of 2 s with 100 samples; a loss in 450 s, half of them of two. */
static void values_are_their_terms_by_hand(void **state)
{
	const struct hd_spot_market m = market_of("{\"usd_h\": 0.5, \"losses_h\": 8,"
		" \"together\": [0.5, 0.5], \"pause_s\": 4,"
		" \"rebuild_s\": 20, \"reload_s\": 6, \"checkpoint_s\": 9, \"switch_s\": 1,"
		" \"replan_s\": 40, \"doubled\": 1.25, \"announced\": 0.25}");
	const struct hd_spot_grid g = { .pipelines = 2, .stages = 4, .batch = 100, .step_s = 2 };
	struct hd_spot_value v = hd_spot_value(&m, &g, HD_SPOT_CHECKPOINT, 0, 0);
	(void)state;

	/* every sqrt(2 * 9 * 600) s, by those without notice; such a loss costs 20 + half of it + 6 */
	const double every = sqrt(2 * 9 * 600), lost_s = 0.75 * (26 + every / 2) + 0.25;
	assert_true(fabs(v.interval_s - every) < 1e-9 && fabs(v.overhead - 9 / every) < 1e-12 &&
		v.devices == 8);
	assert_true(fabs(v.stall_s - lost_s) < 1e-9 && fabs(v.usd_h - 4) < 1e-12);
	assert_true(fabs(v.value - 100 / 2.0 * 3600 / 4 / ((1 + 9 / every) * (1 + lost_s / 450))) < 1e-6);
	/* two of eight: 1/7 empties a stage; slower by 2 / (2 - k / 4) */
	v = hd_spot_value(&m, &g, HD_SPOT_REROUTE, 0, 0);
	/* checkpoints by the 8 / 14 losses an hour that go back to one */
	const double back = sqrt(2 * 9 * 600 * 14.0);
	assert_true(fabs(v.exceeds - 1 / 14.0) < 1e-12 && fabs(v.interval_s - back) < 1e-9);
	assert_true(fabs(v.overhead - 9 / back) < 1e-12 && fabs(v.exceeded_s - (26 + back / 2)) < 1e-9);
	const double one = 4 + (8 / 7.0 - 1) * 40, two = 4 + (8 / 6.0 - 1) * 40;
	assert_true(fabs(v.stall_s - (0.75 * (0.5 * one + 0.5 * (6 / 7.0 * two + v.exceeded_s / 7)) + 0.25)) <
		1e-9);
	/* 2/7 are neighbours; then another pipeline has the stage, and half a step is lost */
	v = hd_spot_value(&m, &g, HD_SPOT_EAGER, 0, 0.2);
	assert_true(fabs(v.exceeded_s - 21) < 1e-9 && fabs(v.tolerated_s - 14) < 1e-9);
	assert_true(fabs(v.stall_s - (0.75 * (14 * 6 / 7.0 + 21 / 7.0) + 0.25)) < 1e-9);
	assert_true(fabs(v.useful - 1 / (1.205 * (1 + v.stall_s / 450))) < 1e-12);
	/* one pipeline: no other device has it */
	v = hd_spot_value(&m, &(struct hd_spot_grid){ .pipelines = 1, .stages = 4, .batch = 100, .step_s =
		2 },
		HD_SPOT_EAGER, 0, 0.2);
	assert_true(fabs(v.exceeds - 1 / 3.0) < 1e-12);
	assert_true(fabs(v.exceeded_s - (26 + sqrt(2 * 9 * 600 * 3.0) / 2)) < 1e-9);
	/* a spare pipeline: 12 devices; two are in one pipeline with 3/11 */
	v = hd_spot_value(&m, &g, HD_SPOT_REPLICA, 1, 0);
	assert_true(v.devices == 12 && fabs(v.exceeds - 0.5 * 8 / 11.0) < 1e-12);
	assert_true(fabs(v.tolerated_s - 4) < 1e-9 && fabs(v.usd_h - 6) < 1e-12);
	/* which works: eleven and ten of twelve are slower than all */
	struct hd_spot_grid all = g;
	all.spares_work = true;
	v = hd_spot_value(&m, &all, HD_SPOT_REPLICA, 1, 0);
	const double slower = (0.5 * (12 / 11.0 - 1) + 0.5 * 3 / 11.0 * (12 / 10.0 - 1)) * 40;
	CHECK(fabs(v.tolerated_s - 4 - slower / (1 - v.exceeds)) < 1e-9, "%g s", v.tolerated_s);
}

/* Every set of k of the machines, the grid on the first: how many of it are struck. */
static void a_grid_sees_the_losses_that_strike_it(void **state)
{
	const struct hd_spot_market m = market_of("{\"losses_h\": 12, \"together\": [0.25, 0, 0.5, 0.25]}");
	(void)state;

	for (uint32_t machines = 2; machines <= 9; machines++)
		for (uint32_t used = 1; used <= machines; used++) {
			double want[5] = { 0 }, some = 0;
			for (uint32_t i = 1; i <= 4; i++) {
				const uint32_t k = i < machines ? i : machines;
				double struck[5] = { 0 }, sets = 0;
				for (uint32_t lost = 0; lost < 1u << machines; lost++) {
					if ((uint32_t)__builtin_popcount(lost) != k)
						continue;
					struck[__builtin_popcount(lost & ((1u << used) - 1))]++;
					sets++;
				}
				for (uint32_t j = 0; j <= 4; j++)
					want[j] += m.together[i - 1] * struck[j] / sets;
			}
			some = 1 - want[0];
			const struct hd_spot_market seen = hd_spot_market_seen(&m, machines,
				used);
			if (machines == used)
				continue;
			CHECK(fabs(seen.losses_h - 12 * some) < 1e-9, "%u of %u: %g", used, machines,
				seen.losses_h);
			for (uint32_t j = 1; j <= seen.ntogether; j++)
				CHECK(fabs(seen.together[j - 1] - want[j] / some) < 1e-12,
					"%u of %u: %u", used, machines, j);
			CHECK(seen.ntogether == 4 || want[seen.ntogether + 1] <= 0, "%u of %u", used,
				machines);
		}
	/* what waits is paid for, and shares of losses are those of the grid */
	const struct hd_spot_grid g = { .pipelines = 1, .stages = 2, .batch = 10, .step_s = 1, .machines = 3,
		.redo_s = 7 };
	const struct hd_spot_market one = market_of("{\"losses_h\": 3, \"usd_h\": 2, \"pause_s\": 4,"
		" \"doubled\": 1, \"pause_max_s\": 10}");
	struct hd_spot_value v = hd_spot_value(&one, &g, HD_SPOT_LAZY, 0, 0);
	assert_true(fabs(v.losses_h - 2) < 1e-12 && fabs(v.usd_h - 6) < 1e-12 && v.devices == 2);
	assert_true(fabs(v.tolerated_s - 11) < 1e-12 && !v.allowed);
	/* what tolerates nothing is judged by its rebuild, whatever the sum of the shares is rounded to */
	for (uint32_t machines = 3; machines < 30; machines++) {
		const struct hd_spot_grid few = { .pipelines = 1, .stages = 2, .batch = 10, .step_s = 1,
			.machines = machines };
		const struct hd_spot_market pairs = market_of("{\"losses_h\": 3, \"together\": [0.3, 0.7],"
			" \"pause_s\": 4, \"rebuild_s\": 30, \"pause_max_s\": 10}");
		CHECK(!hd_spot_value(&pairs, &few, HD_SPOT_CHECKPOINT, 0, 0).allowed, "%u machines",
			machines);
	}
}

/* Every way is asked the same: how long until the run is where it was, in the middle of its losses. */
static void pauses_of_all_strategies_are_measured_alike(void **state)
{
	const struct hd_spot_grid g = { .pipelines = 2, .stages = 2, .batch = 100, .step_s = 8, .redo_s = 3 };
	const struct { const char *together; enum hd_spot_strategy s; double is; } row[] = {
		/* one of four: tolerated, with what is computed again; by checkpoints all go back, half of
		 * sqrt(2 * 50 * 100) s */
		{ "[1]", HD_SPOT_REROUTE, 4 + 3 }, { "[1]", HD_SPOT_LAZY, 4 + 3 },
		{ "[1]", HD_SPOT_REPLICA, 4 + 3 },
		{ "[1]", HD_SPOT_CHECKPOINT, 20 + 6 + 50 },
		/* two: 2 of 6 sets are too much for peers, which is not half; neighbours are 2 of 6, too */
		{ "[0, 1]", HD_SPOT_REROUTE, 4 + 3 }, { "[0, 1]", HD_SPOT_LAZY, 4 + 3 },
		/* three of four: a stage of peers is empty; the one that is left holds both by its shadow */
		{ "[0, 0, 1]", HD_SPOT_LAZY, 20 + 4 },
		{ "[0, 0, 1]", HD_SPOT_REROUTE, 20 + 6 + 50 },
		/* one of three pipelines may go, four of six strike two; a stage is empty in 6 of 15 */
		{ "[0, 0, 0, 1]", HD_SPOT_REPLICA, 20 + 4 },
		{ "[0.4, 0, 0, 0.6]", HD_SPOT_LAZY, 20 + 6 + sqrt(2 * 50 * 100 / 0.6) / 2 },
	};
	/* a pause of 40 s, longer than to rebuild (24 s): 2 of 3 take that long, 1 of 3 is rebuilt */
	struct hd_spot_market slow = market_of("{\"losses_h\": 36, \"together\": [0, 1], \"pause_s\": 37,"
		" \"rebuild_s\": 20}");
	struct hd_spot_value of = hd_spot_value(&slow, &g, HD_SPOT_LAZY, 0, 0);
	(void)state;
	CHECK(fabs(of.pause_s - 40) < 1e-9, "%g s", of.pause_s);
	/* 30 of 100 are rebuilt in 24 s, 40 tolerated in 40 s, 30 go back for longer */
	slow = market_of("{\"losses_h\": 36, \"together\": [0.4, 0, 0.3, 0.3], \"pause_s\": 37,"
		" \"rebuild_s\": 20, \"reload_s\": 100}");
	of = hd_spot_value(&slow, &g, HD_SPOT_LAZY, 0, 0);
	CHECK(fabs(of.exceeds - 0.6) < 1e-12 && fabs(of.unheld - 0.3) < 1e-12 &&
		fabs(of.pause_s - 40) < 1e-9, "%g, %g: %g s", of.exceeds, of.unheld, of.pause_s);
	/* 45 of 100 go back, in 8 s */
	slow = market_of("{\"losses_h\": 36, \"together\": [0.55, 0, 0, 0.45], \"pause_s\": 37,"
		" \"rebuild_s\": 7, \"reload_s\": 1, \"checkpoint_s\": 0}");
	of = hd_spot_value(&slow, &g, HD_SPOT_LAZY, 0, 0);
	CHECK(fabs(of.unheld - 0.45) < 1e-12 && fabs(of.pause_s - 40) < 1e-9, "%g s", of.pause_s);

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		char text[300];
		(void)snprintf(text, sizeof text, "{\"losses_h\": 36, \"together\": %s, \"pause_s\": 4,"
			" \"rebuild_s\": 20, \"reload_s\": 6, \"checkpoint_s\": 50, \"pause_max_s\": %.9f}",
			row[i].together, row[i].is + 1e-6);
		struct hd_spot_market m = market_of(text);
		const struct hd_spot_value v = hd_spot_value(&m, &g, row[i].s, 1, 0);
		CHECK(fabs(v.pause_s - row[i].is) < 1e-9 && v.allowed, "row %zu: %g, not %g", i, v.pause_s,
			row[i].is);
		m.pause_max_s = row[i].is - 1e-6;
		CHECK(!hd_spot_value(&m, &g, row[i].s, 1, 0).allowed, "row %zu is allowed", i);
	}
}

static void the_earlier_of_nearly_equal_ones_is_chosen(void **state)
{
	struct hd_spot_value v[3] = { { .value = 99.5, .allowed = true },
		{ .strategy = HD_SPOT_REROUTE, .value = 100, .allowed = true },
		{ .strategy = HD_SPOT_LAZY, .value = 98, .allowed = true } };
	const struct hd_spot_market m = market_of("{\"losses_h\": 1, \"pause_s\": 5, \"rebuild_s\": 30,"
		" \"pause_max_s\": 10}");
	const struct hd_spot_grid g = { .pipelines = 2, .stages = 4, .batch = 100, .step_s = 2 };
	(void)state;

	assert_int_equal(hd_spot_choose(3, v), 0);
	v[0].value = 98.9;
	assert_int_equal(hd_spot_choose(3, v), 1);
	v[1].allowed = false;
	assert_int_equal(hd_spot_choose(3, v), 0);
	v[0].allowed = v[2].allowed = false;
	assert_int_equal(hd_spot_choose(3, v), 3);
	/* grids of one row: the higher value; two spare pipelines come after one */
	struct hd_spot_value many[4] = {
		{ .strategy = HD_SPOT_REPLICA, .spares = 2, .value = 100, .allowed = true },
		{ .strategy = HD_SPOT_REPLICA, .spares = 1, .value = 99.2, .allowed = true },
		{ .strategy = HD_SPOT_REPLICA, .spares = 1, .value = 99.4, .allowed = true },
		{ .strategy = HD_SPOT_LAZY, .value = 98.9, .allowed = true } };
	assert_int_equal(hd_spot_choose(4, many), 2);
	assert_false(hd_spot_value(&m, &g, HD_SPOT_CHECKPOINT, 0, 0).allowed);
	assert_true(hd_spot_value(&m, &g, HD_SPOT_LAZY, 0, 0).allowed);
}

static void a_trace_says_how_often_and_how_many_at_once(void **state)
{
	static const struct hd_spot_change in[] = { { 0, 1, "a" }, { 0, 1, "b" }, { 0, 1, "c" },
		{ 0, 1, "d" }, { 900000, -1, "a" }, { 900000, 1, "e" }, { 900000, -1, "b" }, { 1000000, -1,
		"c" },
		{ 3600000, -1, "d" }, { 7200000, -1, "e" } };
	struct hd_spot_market m;
	struct hd_spot_trace t;
	(void)state;

	assert_int_equal(hd_spot_trace_make(&t, 10, in, 0, &arena, NULL), HD_OK);
	hd_spot_market_of(&m, &t);
	assert_true(fabs(m.losses_h - 2) < 1e-12 && m.ntogether == 2);
	assert_true(fabs(m.together[0] - 0.75) < 1e-12 && fabs(m.together[1] - 0.25) < 1e-12);
	assert_int_equal(hd_spot_trace_make(&t, 4, in, 0, &arena, NULL), HD_OK);
	hd_spot_market_of(&m, &t);
	assert_true(m.losses_h <= 0 && m.ntogether == 1 && m.together[0] >= 1);
}

/* Of two pipelines of two: 4 machines for 10 s, 3 for 20 s, 1 for 10 s, 6 for 60 s. */
static void pipelines_are_there_for_shares_of_the_time(void **state)
{
	static const struct hd_spot_change in[] = { { 0, 4, NULL }, { 10000, -1, NULL }, { 30000, -2, NULL },
		{ 40000, 5, NULL }, { 100000, -1, NULL } };
	const struct hd_spot_grid g = { .pipelines = 2, .stages = 2 };
	/* with one pipeline, on for 20 s, all losses take 9 s; with two 4 of 7 take 2 s, the rest 3 s */
	struct hd_spot_value of[2] = { { .value = 10, .losses_h = 7, .takes = { { 9, 1 } } },
		{ .value = 15, .strategy = HD_SPOT_LAZY, .losses_h = 2, .takes = { { 2, 4 / 7.0 }, { 3, 3 / 7.0 } } } };
	struct hd_spot_market m = { .pause_max_s = 3 };
	struct hd_spot_there there[3];
	struct hd_spot_trace t;
	(void)state;

	assert_int_equal(hd_spot_trace_make(&t, 5, in, 0, &arena, NULL), HD_OK);
	hd_spot_presence(there, &t, &g);
	assert_true(fabs(there[0].share - 0.1) < 1e-12 && fabs(there[1].share - 0.2) < 1e-12);
	assert_true(fabs(there[2].share - 0.7) < 1e-12 && fabs(there[2].machines - 40 / 7.0) < 1e-12);
	assert_true(fabs(there[0].machines - 1) < 1e-12 && fabs(there[1].machines - 3) < 1e-12);
	const double share[3] = { there[0].share, there[1].share, there[2].share };
	struct hd_spot_value v = hd_spot_value_present(&m, of, share, 2);
	assert_true(fabs(v.value - 12.5) < 1e-12 && v.strategy == HD_SPOT_LAZY);
	/* in 100 s: 140 of 9 s, 80 of 2 s, 60 of 3 s */
	assert_true(fabs(v.pause_s - 3) < 1e-12 && v.allowed);
	of[0].losses_h = 7.1;
	v = hd_spot_value_present(&m, of, share, 2);
	assert_true(fabs(v.pause_s - 9) < 1e-12 && !v.allowed);
	m.pause_max_s = 0;
	assert_true(hd_spot_value_present(&m, of, share, 2).allowed);
	of[0].losses_h = of[1].losses_h = 0;
	of[1].pause_s = 5;
	assert_true(fabs(hd_spot_value_present(&m, of, share, 2).pause_s - 5) < 1e-12);
	t.n = 0;
	hd_spot_presence(there, &t, &g);
	assert_true(there[2].share >= 1 && there[0].share <= 0 && there[1].share <= 0);
}

static void a_bad_market_is_refused_with_the_member(void **state)
{
	static const struct { const char *text, *says; } bad[] = {
		{ "{}", "losses_h is missing" },
		{ "{\"losses_h\": -1}", "m: .losses_h is from 0 to 1e+06" },
		{ "{\"losses_h\": 1, \"usd_h\": 0}", "m: .usd_h is from 1e-09" },
		{ "{\"losses_h\": 1, \"together\": []}", "m: .together has 1 to 64 shares" },
		{ "{\"losses_h\": 1, \"together\": [0.5, 0.25]}", "m: .together sums to 0.75" },
		{ "{\"losses_h\": 1, \"together\": [2, -1]}", "m: .together[0] is a share" },
		{ "{\"losses_h\": 1, \"doubled\": 0.5}", "m: .doubled is from 1 to 1000" },
		{ "{\"losses_h\": 1, \"announce\": 0.5}", "m: .announce is no member" },
	};
	(void)state;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		const struct hd_json *json;
		struct hd_spot_market m;
		struct hd_diag diag = { "" };
		CHECK(!hd_json_parse(&arena, "m", bad[i].text, strlen(bad[i].text), &json, &diag), "%s",
			diag.text);
		CHECK(hd_spot_market_read(&m, json, &diag) == HD_E_INPUT, "case %zu", i);
		CHECK(strstr(diag.text, bad[i].says), "case %zu: %s", i, diag.text);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(probabilities_are_those_of_counting_all_sets),
		cmocka_unit_test(stages_without_a_holder_are_those_of_counting_all_sets),
		cmocka_unit_test(a_loss_that_leaves_no_holder_goes_back),
		cmocka_unit_test(pauses_of_all_strategies_are_measured_alike),
		cmocka_unit_test(published_probabilities_come_out),
		cmocka_unit_test(stall_and_value_are_those_of_counting_all_sets),
		cmocka_unit_test(values_are_their_terms_by_hand),
		cmocka_unit_test(a_grid_sees_the_losses_that_strike_it),
		cmocka_unit_test(the_earlier_of_nearly_equal_ones_is_chosen),
		cmocka_unit_test(a_trace_says_how_often_and_how_many_at_once),
		cmocka_unit_test(pipelines_are_there_for_shares_of_the_time),
		cmocka_unit_test(a_bad_market_is_refused_with_the_member),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
