/* Which redundancy a run has, judged as it goes on: by hand, and played against runs that keep one mode. */
#include "spot/resilience.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/check.h"

/* One pipeline of four stages, steps of a second; a loss takes 2 s, back to a checkpoint 50 s. */
static struct hd_resilience_now at(int64_t now_ms, uint64_t step)
{
	return (struct hd_resilience_now){ .now_ms = now_ms, .step = step, .pipelines = 1, .stages = 4,
		.machines = 4, .step_s = 1, .batch = 8, .usd_h = 1, .takes_s = 2, .back_s = 50,
		.can = { [HD_SPOT_LAZY] = true } };
}

/* 11 minutes with three losses, two at once, another in time: by hand. */
static void a_market_is_what_was_seen_and_one_loss_more(void **state)
{
	struct hd_resilience r;
	const struct hd_resilience_now now = at(660000, 5);

	(void)state;
	hd_resilience_begin(&r, HD_SPOT_CHECKPOINT, 0);
	hd_resilience_lost(&r, 1, 1, false, 3, 100000);
	hd_resilience_lost(&r, 2, 1, false, 3, 101000);
	hd_resilience_lost(&r, 3, 1, true, 4, 500000);
	struct hd_spot_market m = hd_resilience_market(&r, &now, HD_SPOT_LAZY);
	/* two instants and one more in 660 + 600 s; of them one takes two */
	CHECK(fabs(m.losses_h - 3 * 3600 / 1260.0) < 1e-9, "%g losses/h", m.losses_h);
	assert_true(m.ntogether == 2 && fabs(m.together[0] - 2 / 3.0) < 1e-12 &&
		fabs(m.together[1] - 1 / 3.0) < 1e-12);
	assert_true(fabs(m.announced - 0.25) < 1e-12);
	assert_true(fabs(m.pause_s - 2) < 1e-12 && fabs(m.reload_s - 48) < 1e-12);
	/* it dies before it is gone: not in time, and no other loss */
	hd_resilience_lost(&r, 3, 1, false, 4, 500500);
	m = hd_resilience_market(&r, &now, HD_SPOT_LAZY);
	assert_true(fabs(m.losses_h - 3 * 3600 / 1260.0) < 1e-9 && m.announced <= 0);
	/* two hours later nothing of it counts */
	const struct hd_resilience_now late = at(660000 + HD_RESILIENCE_WINDOW_MS, 9);
	m = hd_resilience_market(&r, &late, HD_SPOT_LAZY);
	CHECK(fabs(m.losses_h - 3600 / 7800.0) < 1e-9 && m.ntogether == 1, "%g losses/h", m.losses_h);
}

/* A worker with two ranks takes two stages; one that only waits takes none, and no time. */
static void losses_are_of_ranks(void **state)
{
	struct hd_resilience r;
	const struct hd_resilience_now now = at(600000, 5);

	(void)state;
	hd_resilience_begin(&r, HD_SPOT_CHECKPOINT, 0);
	hd_resilience_lost(&r, 1, 0, false, 3, 100000);
	assert_true(r.n == 0 && r.until == 0);
	hd_resilience_lost(&r, 2, 2, true, 3, 100000);
	hd_resilience_lost(&r, 3, 1, true, 3, 200000);
	assert_true(r.n == 3 && r.until == 0);
	struct hd_spot_market m = hd_resilience_market(&r, &now, HD_SPOT_LAZY);
	CHECK(fabs(m.losses_h - 3 * 3600 / 1200.0) < 1e-9, "%g losses/h", m.losses_h);
	assert_true(m.ntogether == 2 && fabs(m.together[1] - 1 / 3.0) < 1e-12);
	CHECK(fabs(m.announced - 0.75) < 1e-12, "%g in time", m.announced);
	/* it dies before it is gone: both of it */
	hd_resilience_lost(&r, 2, 2, false, 3, 100500);
	m = hd_resilience_market(&r, &now, HD_SPOT_LAZY);
	assert_true(r.n == 3 && fabs(m.announced - 0.25) < 1e-12);
}

/* What a loss took says nothing of how long the way back would be. */
static void a_way_back_that_nobody_took_is_as_expected(void **state)
{
	struct hd_resilience r;
	const struct hd_resilience_now now = at(60000, 5);

	(void)state;
	hd_resilience_begin(&r, HD_SPOT_CHECKPOINT, 0);
	hd_resilience_lost(&r, 1, 1, false, 3, 10000);
	assert_true(!hd_resilience_made_up(&r, 2, 15000) && hd_resilience_made_up(&r, 3, 40000) &&
		!hd_resilience_made_up(&r, 4, 50000));
	struct hd_spot_market m = hd_resilience_market(&r, &now, HD_SPOT_CHECKPOINT);
	CHECK(fabs(m.rebuild_s - 30) < 1e-12 && fabs(m.reload_s - 48) < 1e-12, "%g s, back %g s more",
		m.rebuild_s, m.reload_s);
	hd_resilience_lost(&r, 2, 1, false, 6, 60000);
	hd_resilience_back(&r);
	assert_true(hd_resilience_made_up(&r, 6, 101000));
	m = hd_resilience_market(&r, &now, HD_SPOT_CHECKPOINT);
	CHECK(fabs(m.rebuild_s - 30) < 1e-12 && fabs(m.reload_s - 11) < 1e-12, "%g s, back %g s more",
		m.rebuild_s, m.reload_s);
}

static bool commit(struct hd_resilience *r, struct hd_resilience_now now)
{
	char why[HD_RESILIENCE_WORDS];
	enum hd_spot_strategy mode;

	if (!hd_resilience_commit(r, &now, &mode, why))
		return false;
	hd_resilience_took(r, mode);
	return true;
}

/* Losses that go back 50 s against shadows of 2 %: worth it where 1 / (1 + 50 x) is less than 1.05 times
 * 1 / (1.02 (1 + 2 x)), x losses a second: above 1.53 losses/1000 s it is, one in 600 s. */
static void a_mode_is_taken_where_it_gains_five_in_a_hundred(void **state)
{
	static const struct { double back_s; bool takes; } row[] = { { 2, false }, { 30, false },
		{ 43, false }, { 48, true }, { 500, true } };

	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct hd_resilience r;
		struct hd_resilience_now now = at(0, 1);
		/* one is expected in 600 s */
		const double none = 1 / (1 + row[i].back_s / 600), lazy = 1 / (1.02 * (1 + 2 / 600.0));
		now.back_s = row[i].back_s;
		assert_true((lazy >= 1.05 * none) == row[i].takes);
		hd_resilience_begin(&r, HD_SPOT_CHECKPOINT, 0);
		CHECK(commit(&r, now) == row[i].takes, "%g s", row[i].back_s);
		assert_int_equal(r.is, row[i].takes ? HD_SPOT_LAZY : HD_SPOT_CHECKPOINT);
		/* not what the run cannot have */
		now.can[HD_SPOT_LAZY] = false;
		hd_resilience_begin(&r, HD_SPOT_CHECKPOINT, 0);
		assert_false(commit(&r, now));
		/* nor where peers hold each stage */
		now.can[HD_SPOT_LAZY] = true;
		now.pipelines = 2;
		now.machines = 8;
		hd_resilience_begin(&r, HD_SPOT_CHECKPOINT, 0);
		assert_false(commit(&r, now));
	}
}

/* 100 commits, or twice the losses. */
static void it_is_judged_at_times(void **state)
{
	struct hd_resilience r;
	uint64_t step = 1;

	(void)state;
	hd_resilience_begin(&r, HD_SPOT_LAZY, 0);
	assert_false(commit(&r, at(0, step)));            /* and what was expected is kept */
	/* a loss costs nothing any more: seen at the hundredth commit */
	for (int i = 1; i <= 100; i++) {
		struct hd_resilience_now now = at(i, ++step);
		now.takes_s = now.back_s = 0.001;
		now.can[HD_SPOT_LAZY] = true;
		assert_false(commit(&r, now));
		assert_int_equal(r.commits, i % 100);
	}
	/* it gains 2 % alone to be without: kept. With 10 %, measured, it goes */
	hd_resilience_begin(&r, HD_SPOT_LAZY, 0);
	for (int i = 0; i < HD_SPOT_FULL; i++)
		r.nsteps[i] = HD_RESILIENCE_STEPS;
	r.pipelines = 1;
	r.stages = r.machines = 4;
	r.step_s[HD_SPOT_LAZY] = 1;
	r.step_s[HD_SPOT_CHECKPOINT] = 0.9;
	r.losses_h = 6;
	r.usd_h = 1;
	for (int i = 1; i <= 100; i++) {
		struct hd_resilience_now now = at(i, ++step);
		now.takes_s = now.back_s = 0.001;
		assert_true(commit(&r, now) == (i == 100));
	}
	assert_int_equal(r.is, HD_SPOT_CHECKPOINT);
	/* of another grid nothing was measured */
	r.is = HD_SPOT_LAZY;
	for (int i = 1; i <= 100; i++) {
		struct hd_resilience_now now = at(i, ++step);
		now.takes_s = now.back_s = 0.001;
		now.machines = 5;
		assert_false(commit(&r, now));
	}
	r.is = HD_SPOT_CHECKPOINT;
	/* three losses at once: more than twice as many an hour, at the next commit that is where it was */
	r.commits = 0;
	for (uint32_t w = 0; w < 3; w++)
		hd_resilience_lost(&r, w, 1, false, step + 1, 200 + 5000 * w);
	hd_resilience_back(&r);
	assert_false(commit(&r, at(30000, step)));        /* what was committed before is run again */
	CHECK(commit(&r, at(60200, ++step)) && r.is == HD_SPOT_LAZY, "a loss took %g s", r.back_s);
	CHECK(fabs(r.back_s - 60) < 1e-9, "%g s", r.back_s);
}

static void a_bound_on_pauses_buys_shadows(void **state)
{
	struct hd_resilience r;
	struct hd_resilience_now now = at(0, 1);

	(void)state;
	now.back_s = 10;                          /* not worth 2 % */
	hd_resilience_begin(&r, HD_SPOT_CHECKPOINT, 0);
	assert_false(commit(&r, now));
	now.pause_max_s = 5;
	hd_resilience_begin(&r, HD_SPOT_CHECKPOINT, 0);
	assert_true(commit(&r, now) && r.is == HD_SPOT_LAZY);
}

/* ---- played: losses come and go; a run that judges against runs that keep a mode */

static double draw(uint64_t *at)
{
	*at = *at * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return ((double)(*at >> 33) + 0.5) / 0x1p31;
}

/* Steps in 20 hours. `keeps`: the mode, or HD_NSPOT_STRATEGIES: it judges. */
static double play(enum hd_spot_strategy keeps, uint64_t seed, const double per_h[4], uint32_t *switches)
{
	const bool judges = keeps == HD_NSPOT_STRATEGIES;
	struct hd_resilience r;
	double at_s = 0, steps = 0, next_s = 0;
	uint32_t worker = 0;

	hd_resilience_begin(&r, judges ? HD_SPOT_CHECKPOINT : keeps, 0);
	while (at_s < 72000) {
		const double rate = per_h[(int)(at_s / 18000) % 4] / 3600;
		const bool lazy = r.is == HD_SPOT_LAZY;
		if (next_s <= 0)
			next_s = at_s - log(draw(&seed)) / rate;
		const double step_s = lazy ? 1.03 : 1;
		at_s += step_s;
		if (at_s >= next_s) {
			hd_resilience_lost(&r, worker++, 1, false, (uint64_t)steps, (int64_t)(at_s * 1e3));
			if (!lazy)
				hd_resilience_back(&r);
			at_s += lazy ? 3 : 60;
			next_s = 0;
		}
		steps++;
		struct hd_resilience_now now = at((int64_t)(at_s * 1e3), (uint64_t)steps);
		now.step_s = step_s;
		enum hd_spot_strategy mode;
		char why[HD_RESILIENCE_WORDS];
		if (judges && hd_resilience_commit(&r, &now, &mode, why)) {
			assert_true(strlen(why) > 20 && strlen(why) < HD_RESILIENCE_WORDS - 1);
			hd_resilience_took(&r, mode);
			at_s += 2;                /* a change of the view */
			++*switches;
		}
	}
	return steps;
}

static void judging_is_worth_what_the_best_mode_is(void **state)
{
	static const double per_h[][4] = { { 0.1, 0.1, 0.1, 0.1 }, { 2, 2, 2, 2 }, { 12, 12, 12, 12 },
		{ 60, 60, 60, 60 }, { 0.1, 60, 0.1, 60 }, { 30, 0.1, 0.1, 0.1 }, { 1, 5, 20, 1 } };
	double worst = 1, gains = 0;
	uint32_t most = 0;

	(void)state;
	for (size_t k = 0; k < sizeof per_h / sizeof *per_h; k++)
		for (uint64_t seed = 1; seed <= 3; seed++) {
			uint32_t switches = 0, no = 0;
			const double none = play(HD_SPOT_CHECKPOINT, seed, per_h[k], &no),
				lazy = play(HD_SPOT_LAZY, seed, per_h[k], &no),
				judged = play(HD_NSPOT_STRATEGIES, seed, per_h[k], &switches);
			worst = fmin(worst, judged / fmax(none, lazy));
			gains = fmax(gains, judged / fmin(none, lazy));
			most = switches > most ? switches : most;
		}
	CHECK(worst >= 0.95, "judged it is worth %.3f of the better mode once", worst);
	CHECK(gains > 1.3 && most >= 1 && most <= 8, "%g times the worse mode, %u switches", gains, most);
}

/* ---- machines come and go: two pipelines of three stages, twelve virtual nodes */

enum { MACHINES = 6, VNS = 12, NMODES = 3 };
static const enum hd_spot_strategy modes[NMODES] = { HD_SPOT_CHECKPOINT, HD_SPOT_LAZY, HD_SPOT_REPLICA };

static struct hd_resilience_now at_machines(int64_t now_ms, uint64_t step, uint32_t pipelines)
{
	struct hd_resilience_now now = at(now_ms, step);

	now.pipelines = pipelines;
	now.stages = 3;
	now.machines = pipelines * 3;
	now.most = 2;
	now.vns = VNS;
	now.can[HD_SPOT_REPLICA] = pipelines > 1;
	return now;
}

/* By hand: pipelines and stages with so many devices, and how long a step takes then. */
static const struct { uint32_t devices, s; struct { uint32_t d, p; double step; } of[NMODES]; } hand[] = {
	{ 6, 1000, { { 2, 3, 8 / 3.0 }, { 2, 3, 8 / 3.0 }, { 2, 3, 8 / 3.0 } } },
	{ 5, 3000, { { 1, 3, 14 / 3.0 }, { 1, 3, 14 / 3.0 }, { 2, 2, 7 / 2.0 } } },
	{ 4, 500, { { 1, 3, 14 / 3.0 }, { 1, 3, 14 / 3.0 }, { 2, 2, 7 / 2.0 } } },
	{ 3, 400, { { 1, 3, 14 / 3.0 }, { 1, 3, 14 / 3.0 }, { 1, 3, 14 / 3.0 } } },
	{ 2, 300, { { 0, 3, 0 }, { 1, 2, 13 / 2.0 }, { 0, 2, 0 } } },
	{ 7, 200, { { 2, 3, 8 / 3.0 }, { 2, 3, 8 / 3.0 }, { 2, 3, 8 / 3.0 } } },
};

static void modes_are_worth_what_they_have_with_the_devices_that_are_there(void **state)
{
	struct hd_resilience r;
	int64_t ms = 0;

	(void)state;
	hd_resilience_begin(&r, HD_SPOT_CHECKPOINT, 0);
	for (size_t i = 0; i < sizeof hand / sizeof *hand; i++) {
		hd_resilience_there(&r, hand[i].devices, ms);
		ms += hand[i].s * 1000;
	}
	hd_resilience_there(&r, 6, ms);
	r.step_s[HD_SPOT_CHECKPOINT] = 2;
	const struct hd_resilience_now now = at_machines(ms, 5, 2);
	/* one loss in all that time and ten minutes, those with the most; 2 s, a way back 48 s more */
	const double per_s = 1 / ((double)ms / 1000 + 600);
	for (uint32_t m = 0; m < NMODES; m++) {
		double samples = 0;
		for (size_t i = 0; i < sizeof hand / sizeof *hand; i++) {
			const bool back = modes[m] != HD_SPOT_LAZY && hand[i].of[m].d == 1;
			const double step_s = 2 * hand[i].of[m].step / (8 / 3.0) * (m == 1 ? 1.02 : 1);
			const uint32_t s = hand[i].s + (hand[i].devices == 7 ? 600 : 0);
			if (hand[i].of[m].d)
				samples += s * 8 / step_s / (1 + per_s * (back ? 50 : 2));
		}
		const struct hd_spot_value v = hd_resilience_value(&r, &now, modes[m]);
		const double all_s = (double)ms / 1000 + 600, value = samples / all_s * 3600 / 7;
		CHECK(fabs(v.value / value - 1) < 1e-12, "mode %u: %.15g samples/$, not %.15g", m, v.value,
			value);
		CHECK(fabs(v.useful - samples / (all_s * 4)) < 1e-12, "mode %u: useful %g", m,
			v.useful);
	}
	/* all of the time is the newest four hours at most, older halves of it less */
	hd_resilience_there(&r, 6, ms + 20000000);
	int64_t all = 0;
	for (uint32_t d = 0; d <= HD_RESILIENCE_THERE; d++)
		all += r.there_ms[d];
	assert_true(all <= HD_RESILIENCE_THERE_MS && all > HD_RESILIENCE_THERE_MS / 4 &&
		r.there_ms[5] == 1500000);
	/* also of a day in which nothing was said, which is stored and taken */
	hd_resilience_there(&r, 6, ms + 20000000 + 86400000);
	uint8_t bytes[HD_RESILIENCE_BYTES];
	all = 0;
	for (uint32_t d = 0; d <= HD_RESILIENCE_THERE; d++)
		all += r.there_ms[d];
	CHECK(all <= HD_RESILIENCE_THERE_MS && all > HD_RESILIENCE_THERE_MS / 4, "%lld ms", (long long)all);
	hd_resilience_put(&r, ms + 106400000, bytes);
	assert_true(hd_resilience_take(&r, bytes, sizeof bytes, ms + 106400000));
}

/* Of the machines that are mostly five two pipelines of two are worth more than one of three. */
static void two_pipelines_are_kept_where_machines_are_short(void **state)
{
	(void)state;
	for (uint32_t devices = 5; devices <= 6; devices++) {
		struct hd_resilience r;
		char why[HD_RESILIENCE_WORDS] = "";
		enum hd_spot_strategy mode = HD_NSPOT_STRATEGIES;
		struct hd_resilience_now now = at_machines(1000000, 5, 2);
		now.can[HD_SPOT_LAZY] = false;
		hd_resilience_begin(&r, HD_SPOT_CHECKPOINT, 0);
		hd_resilience_there(&r, devices, 0);
		hd_resilience_there(&r, 6, 900000);
		hd_resilience_there(&r, 6, 1000000);
		/* ten minutes with all six are expected before any was seen */
		const bool other = hd_resilience_commit(&r, &now, &mode, why);
		CHECK(other == (devices == 5) && (!other || mode == HD_SPOT_REPLICA), "of %u: mode %d; %s",
			devices, (int)mode, why);
		assert_non_null(strstr(why, ", replica:1 useful "));
		assert_true(strlen(why) < HD_RESILIENCE_WORDS - 1);
		/* where it cannot be had it is not judged */
		hd_resilience_begin(&r, HD_SPOT_CHECKPOINT, 0);
		hd_resilience_there(&r, devices, 0);
		hd_resilience_there(&r, 6, 900000);
		now.can[HD_SPOT_REPLICA] = false;
		assert_false(hd_resilience_commit(&r, &now, &mode, why));
	}
}

/* A market of machines: six at first, each lost so often, another comes for it after a while. */
struct fleet { uint64_t dice; double lost_h, away_s, comes_s[MACHINES]; };

static uint32_t there(const struct fleet *f, double at_s)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < MACHINES; i++)
		n += f->comes_s[i] <= at_s;
	return n;
}

/* One stage less until there are the pipelines that are kept. */
static void grid_of(enum hd_spot_strategy mode, uint32_t devices, uint32_t *d, uint32_t *p)
{
	const uint32_t least = mode == HD_SPOT_REPLICA ? 2 : 1;

	for (*p = 3; mode != HD_SPOT_CHECKPOINT && *p > 2 && *p * least > devices;)
		--*p;
	*d = devices / *p < 2 ? devices / *p : 2;
	*d = *d < least ? 0 : *d;
}

/* Virtual nodes in twenty hours. `keeps`: as of play(). */
static double play_fleet(enum hd_spot_strategy keeps, struct fleet f, uint32_t *replicas)
{
	const bool judges = keeps == HD_NSPOT_STRATEGIES;
	struct hd_resilience r;
	double at_s = 1, steps = 0;
	uint32_t worker = 0, had_d = 2, had_p = 3;

	for (uint32_t i = 0; i < MACHINES; i++)
		f.comes_s[i] = 0;
	hd_resilience_begin(&r, judges ? HD_SPOT_CHECKPOINT : keeps, 0);
	while (at_s < 72000) {
		const uint32_t devices = there(&f, at_s);
		uint32_t d, p;
		grid_of(r.is, devices, &d, &p);
		hd_resilience_there(&r, devices, (int64_t)(at_s * 1e3));
		if (!d) {
			at_s += 1;
			if (judges && r.is == HD_SPOT_REPLICA)   /* as driver_guard.c has it */
				hd_resilience_took(&r, HD_SPOT_CHECKPOINT);
			continue;
		}
		at_s += d != had_d || p != had_p ? 2 : 0;
		had_d = d;
		had_p = p;
		const double step_s = ((VNS + d - 1) / d + p - 1) / (double)p *
			(r.is == HD_SPOT_LAZY ? 1.03 : 1);
		at_s += step_s;
		steps++;
		const bool lost = draw(&f.dice) < f.lost_h / 3600 * step_s * (double)devices / MACHINES;
		if (lost) {
			uint32_t which = (uint32_t)(draw(&f.dice) * devices);
			for (uint32_t i = 0; i < MACHINES; i++)
				if (f.comes_s[i] <= at_s && !which--)
					f.comes_s[i] = at_s - log(draw(&f.dice)) * f.away_s;
			const bool back = d < 2 && r.is != HD_SPOT_LAZY;
			hd_resilience_lost(&r, worker++, 1, false, (uint64_t)steps, (int64_t)(at_s * 1e3));
			if (back)
				hd_resilience_back(&r);
			at_s += back ? 60 : 3;
			steps -= back ? 1 : 0;
		}
		struct hd_resilience_now now = at_machines((int64_t)(at_s * 1e3), (uint64_t)steps, d);
		now.step_s = lost ? 0 : step_s;
		enum hd_spot_strategy mode;
		char why[HD_RESILIENCE_WORDS];
		if (p < 3) {
			(void)hd_resilience_made_up(&r, (uint64_t)steps, now.now_ms);
		} else if (judges && hd_resilience_commit(&r, &now, &mode, why)) {
			hd_resilience_took(&r, mode);
			*replicas += mode == HD_SPOT_REPLICA;
		}
	}
	return steps;
}

static void judging_is_worth_what_the_best_is_where_machines_come_and_go(void **state)
{
	static const struct fleet fleets[] = { { 0, 0.2, 300, { 0 } }, { 0, 6, 60, { 0 } },
		{ 0, 6, 1200, { 0 } }, { 0, 2, 3600, { 0 } }, { 0, 20, 300, { 0 } }, { 0, 12, 900, { 0 } } };
	double worst = 1;
	uint32_t best_of[NMODES] = { 0 }, replicas = 0;

	(void)state;
	for (size_t k = 0; k < sizeof fleets / sizeof *fleets; k++) {
		double is[NMODES] = { 0 }, judged = 0;
		uint32_t best = 0;
		for (uint64_t seed = 1; seed <= 4; seed++) {
			struct fleet f = fleets[k];
			f.dice = seed;
			for (uint32_t m = 0; m < NMODES; m++)
				is[m] += play_fleet(modes[m], f, &replicas);
			judged += play_fleet(HD_NSPOT_STRATEGIES, f, &replicas);
		}
		for (uint32_t m = 1; m < NMODES; m++)
			best = is[m] > is[best] ? m : best;
		best_of[best]++;
		worst = fmin(worst, judged / is[best]);
		if (getenv("HEDDLE_SAY"))
			printf("%g losses/h, away %g s: none %.0f, lazy %.0f, replica:1 %.0f; "
				"judged %.0f: %.3f\n", fleets[k].lost_h, fleets[k].away_s, is[0], is[1],
				is[2], judged, judged / is[best]);
	}
	/* replicas alone stand as long as it takes, which a run cannot */
	CHECK(worst >= 0.92, "judged it is worth %.3f of the best mode once", worst);
	CHECK(best_of[2] && replicas, "replicas are best %u times, and were taken %u times", best_of[2],
		replicas);
}

/* Member by member: between them lie bytes of no value. */
static bool alike(const struct hd_spot_market *a, const struct hd_spot_market *b)
{
	const double of[][2] = { { a->usd_h, b->usd_h }, { a->losses_h, b->losses_h },
		{ a->announced, b->announced }, { a->pause_s, b->pause_s }, { a->rebuild_s, b->rebuild_s },
		{ a->reload_s, b->reload_s }, { a->checkpoint_s, b->checkpoint_s },
		{ a->switch_s, b->switch_s }, { a->replan_s, b->replan_s }, { a->doubled, b->doubled },
		{ a->pause_max_s, b->pause_max_s }, { a->deadline_s, b->deadline_s },
		{ a->budget_usd, b->budget_usd } };
	bool same = a->ntogether == b->ntogether && !memcmp(a->together, b->together, sizeof a->together);

	for (size_t i = 0; i < sizeof of / sizeof *of; i++)
		same &= !memcmp(&of[i][0], &of[i][1], sizeof of[i][0]);
	return same;
}

/* The next coordinator, whose clock is another, sees the market that the one before saw, and has its
 * measures. */
static void what_was_seen_outlives_a_coordinator(void **state)
{
	uint8_t bytes[HD_RESILIENCE_BYTES], again[HD_RESILIENCE_BYTES];
	struct hd_resilience r, next;
	const int64_t off = 5000000;

	(void)state;
	for (uint32_t losses = 0; losses < 3 * HD_RESILIENCE_LOSSES; losses += 7) {
		hd_resilience_begin(&r, HD_SPOT_LAZY, 100);
		for (uint32_t i = 0; i < losses; i++)
			hd_resilience_lost(&r, i, 1, i % 3 == 0, 3, 1000 + 700 * (int64_t)i * (i % 5));
		r.step_s[HD_SPOT_LAZY] = 0.125;
		r.nsteps[HD_SPOT_LAZY] = 17;
		r.takes_s[HD_SPOT_LAZY] = 1.5;
		r.back_s = 61;
		r.pipelines = 1;
		r.stages = r.machines = 4;
		r.commits = 99;
		r.there_ms[4] = 700 + losses;
		r.there_ms[HD_RESILIENCE_THERE] = HD_RESILIENCE_THERE_MS;
		hd_resilience_put(&r, 900000, bytes);
		hd_resilience_begin(&next, HD_SPOT_LAZY, 3);
		assert_true(hd_resilience_take(&next, bytes, sizeof bytes, 900000 + off));
		struct hd_resilience_now now = at(950000, 5);
		const struct hd_spot_market was = hd_resilience_market(&r, &now, HD_SPOT_EAGER);
		now.now_ms += off;
		const struct hd_spot_market is = hd_resilience_market(&next, &now, HD_SPOT_EAGER);
		CHECK(alike(&was, &is), "%u losses: %g and %g an hour", losses, was.losses_h,
			is.losses_h);
		assert_true(next.until == 0 && next.is == HD_SPOT_LAZY && next.commits == 99 &&
			!memcmp(next.there_ms, r.there_ms, sizeof r.there_ms) && next.stages == 4 &&
			next.nsteps[HD_SPOT_LAZY] == 17 &&
			!memcmp(next.step_s, r.step_s, sizeof r.step_s));
		/* and the one after that */
		hd_resilience_put(&next, 900000 + off, again);
		assert_memory_equal(bytes, again, sizeof bytes);
	}
}

static void other_bytes_are_not_taken(void **state)
{
	/* more losses than there are; an age beyond all; no share; a step that is no number */
	static const struct { uint32_t at, len; uint8_t is; } bad[] = { { 8, 1, 65 }, { 7, 1, 1 },
		{ 24, 1, 2 }, { 12 + 13 * HD_RESILIENCE_LOSSES + 6, 2, 0xff },
		{ HD_RESILIENCE_BYTES - 4, 1, 1 } };
	uint8_t bytes[HD_RESILIENCE_BYTES];
	struct hd_resilience r, was;

	(void)state;
	hd_resilience_begin(&r, HD_SPOT_LAZY, 0);
	hd_resilience_lost(&r, 1, 1, false, 3, 1000);
	was = r;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		hd_resilience_put(&r, 5000, bytes);
		memset(bytes + bad[i].at, bad[i].is, bad[i].len);
		CHECK(!hd_resilience_take(&r, bytes, sizeof bytes, 0), "bad bytes %zu", i);
	}
	hd_resilience_put(&r, 5000, bytes);
	assert_false(hd_resilience_take(&r, bytes, sizeof bytes - 1, 0));
	assert_memory_equal(&r, &was, sizeof r);
	assert_true(hd_resilience_take(&r, bytes, sizeof bytes, 5000) && r.n == 1);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_market_is_what_was_seen_and_one_loss_more),
		cmocka_unit_test(losses_are_of_ranks),
		cmocka_unit_test(a_way_back_that_nobody_took_is_as_expected),
		cmocka_unit_test(a_mode_is_taken_where_it_gains_five_in_a_hundred),
		cmocka_unit_test(it_is_judged_at_times),
		cmocka_unit_test(a_bound_on_pauses_buys_shadows),
		cmocka_unit_test(judging_is_worth_what_the_best_mode_is),
		cmocka_unit_test(modes_are_worth_what_they_have_with_the_devices_that_are_there),
		cmocka_unit_test(two_pipelines_are_kept_where_machines_are_short),
		cmocka_unit_test(judging_is_worth_what_the_best_is_where_machines_come_and_go),
		cmocka_unit_test(what_was_seen_outlives_a_coordinator),
		cmocka_unit_test(other_bytes_are_not_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
