/* The strategy that is chosen by expectation (value.h) beside all of them played (replay.h), on sets of
 * twenty generated loss processes: at least 0.95 of the best. Two sets, with HEDDLE_SAY=1 six, with
 * sanitizers one. */
#include "spot/replay.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "spot/testing.h"

enum { MACHINES = 34, STAGES = 8, EVENTS = 40000, ZONES = 4, SETS = 6, USUAL = SANITIZED ? 1 : 2 };
static const int64_t until_ms = HD_SPOT_END_MS;

static struct hd_arena arena;
static int set_up(void **state) { (void)state; hd_arena_init(&arena, 0); return 0; }
static int tear_down(void **state) { (void)state; hd_arena_finish(&arena); return 0; }

/* ---- processes */

enum kind { POISSON, BATCHES, WHOLE_ZONES, TIME_OF_DAY, NKINDS };
static const char *const kind_name[NKINDS] = { "Poisson", "batches", "zones", "time of day" };

struct market {
	uint64_t at;                              /* of the dice */
	struct hd_spot_change change[EVENTS];
	uint32_t nchanges, born;
	uint32_t here[MACHINES], zone[MACHINES], nhere;
	int64_t comes_ms[MACHINES]; uint32_t comes_zone[MACHINES], ncoming;
};

static double dice(struct market *m)
{
	m->at = m->at * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return ((double)(m->at >> 33) + 0.5) / 0x1p31;
}

static void note(struct market *m, int64_t at_ms, uint32_t machine, bool added)
{
	char name[16];

	snprintf(name, sizeof name, "m%u", machine);
	CHECK(m->nchanges < EVENTS, "too many events");
	m->change[m->nchanges++] = (struct hd_spot_change){ at_ms, added ? 1 : -1,
		hd_arena_text(&arena, name, strlen(name)) };
}

static void add(struct market *m, int64_t at_ms, uint32_t zone)
{
	m->zone[m->nhere] = zone;
	m->here[m->nhere++] = m->born;
	note(m, at_ms, m->born++, true);
}

/* Another one comes for it, five minutes later on average. */
static void take(struct market *m, int64_t at_ms, uint32_t i)
{
	note(m, at_ms, m->here[i], false);
	m->comes_ms[m->ncoming] = at_ms + 1 + (int64_t)(-log(dice(m)) * 300e3);
	m->comes_zone[m->ncoming++] = m->zone[i];
	m->nhere--;
	m->here[i] = m->here[m->nhere];
	m->zone[i] = m->zone[m->nhere];
}

static void lose(struct market *m, enum kind kind, int64_t at_ms)
{
	uint32_t k = 1;

	if (kind == WHOLE_ZONES && dice(m) < 0.3) {
		const uint32_t zone = (uint32_t)(dice(m) * ZONES);
		for (uint32_t i = m->nhere; i-- > 0;)
			if (m->zone[i] == zone)
				take(m, at_ms, i);
		return;
	}
	while (kind == BATCHES && k < 8 && dice(m) < 0.5)
		k++;
	while (k-- && m->nhere)
		take(m, at_ms, (uint32_t)(dice(m) * m->nhere));
}

static void arrive(struct market *m, int64_t before_ms)
{
	for (;;) {
		uint32_t next = m->ncoming;
		for (uint32_t i = 0; i < m->ncoming; i++)
			if (m->comes_ms[i] < before_ms && (next == m->ncoming || m->comes_ms[i] <
				m->comes_ms[next]))
				next = i;
		if (next == m->ncoming)
			return;
		add(m, m->comes_ms[next], m->comes_zone[next]);
		m->ncoming--;
		m->comes_ms[next] = m->comes_ms[m->ncoming];
		m->comes_zone[next] = m->comes_zone[m->ncoming];
	}
}

static void generate(struct market *m, enum kind kind, uint32_t machines, double per_h, uint64_t seed)
{
	double at_s = 0;

	*m = (struct market){ .at = seed };
	for (uint32_t i = 0; i < machines; i++)
		add(m, 0, i % ZONES);
	for (;;) {
		/* thinned from twice the rate: most in the middle of the day, nearly none at night */
		at_s += -log(dice(m)) * 3600 / per_h / (kind == TIME_OF_DAY ? 2 : 1);
		if (at_s * 1e3 >= (double)until_ms)
			return;
		if (kind == TIME_OF_DAY && dice(m) > 0.5 - 0.5 * cos(at_s / 20000 * 6.283185307))
			continue;
		arrive(m, (int64_t)(at_s * 1e3));
		lose(m, kind, (int64_t)(at_s * 1e3));
	}
}

/* ---- played and expected */

enum { WAYS = 7 };
/* What each takes beside a step, and what its first loss in one makes others compute again, as a share of
 * the step: of shadows as simulated (docs/redundancy.md), half a step of a spare pipeline. */
struct way { enum hd_spot_strategy strategy; double overhead, again; uint32_t spares; };
static const struct way way[WAYS] = {
	{ HD_SPOT_CHECKPOINT, 0, 0, 0 }, { HD_SPOT_REROUTE, 0, 0, 0 }, { HD_SPOT_LAZY, 0.02, 0.55, 0 },
	{ HD_SPOT_EAGER, 0.1, 0.4, 0 }, { HD_SPOT_FULL, 0.5, 0.2, 0 }, { HD_SPOT_REPLICA, 0, 0.5, 1 },
	{ HD_SPOT_REPLICA, 0, 0.5, 2 },
};

/* Of d pipelines one does the work at least. */
static uint32_t spares_of(const struct way *w, uint32_t d) { return w->spares < d ? w->spares : d - 1; }

/* Two machines more than the pipelines take: they wait. Spare pipelines are some of them. */
static struct hd_spot_model model_with(uint32_t pipelines, const struct way *w)
{
	struct hd_spot_model m = model_of("{\"name\": \"m\", \"stages\": 8, \"batch\": 384,"
		" \"local_ms\": 10000, \"step_ms\": [6100, 3200, 2400, 1600],"
		" \"on_demand\": {\"nodes\": 20, \"step_ms\": 1300}}", &arena);

	m.npipelines = pipelines - spares_of(w, pipelines);
	for (uint32_t i = 0; i < m.npipelines; i++)
		m.step_ms[i] += (int64_t)((double)m.step_ms[i] * w->overhead);
	m.pause_ms = (int64_t)((double)m.step_ms[m.npipelines - 1] * w->again);
	return m;
}

static double played(const struct way *w, uint32_t pipelines, const struct hd_spot_trace *trace)
{
	const struct hd_spot_model model = model_with(pipelines, w);
	const bool alone = w->spares && pipelines == 1,   /* there is none to spare: peers */
		saves = alone || w->strategy == HD_SPOT_CHECKPOINT || w->strategy == HD_SPOT_REROUTE;
	struct hd_spot_way by = { w->strategy, 0, spares_of(w, pipelines) };
	struct hd_spot_replay r;
	struct hd_diag diag = { "" };
	double best = 0;

	if (saves) {
		CHECK(!hd_spot_replay_best(&r, &by.every, alone ? HD_SPOT_REROUTE : w->strategy, trace,
			&model, &diag), "%s", diag.text);
		return r.value;
	}
	/* spare pipelines go back to a checkpoint, too: at the best of some intervals */
	for (by.every = by.spares ? 20 : 0; by.every <= (by.spares ? 5000u : 0);
		by.every = 2 * by.every + 1) {
		CHECK(!hd_spot_replay(&r, trace, &model, &by, &arena, &diag), "%s", diag.text);
		best = fmax(best, r.value);
	}
	return best;
}

/* What the policy knows: how often machines go and how many at once, and the model's times. */
static uint32_t chosen(const struct hd_spot_trace *trace, const struct hd_spot_model *plain,
	uint32_t machines, double value[WAYS])
{
	struct hd_spot_market market;
	struct hd_spot_value v[WAYS];
	struct hd_spot_grid grid = { .pipelines = plain->npipelines, .stages = STAGES,
		.batch = (double)plain->batch, .machines = machines };
	struct hd_spot_there there[5];
	double share[5];

	hd_spot_market_of(&market, trace);
	/* the next plan comes at a commit, and takes its time */
	market.pause_s = (double)plain->local_ms * 1e-3;
	market.rebuild_s = (double)plain->rendezvous_ms * 1e-3;
	market.reload_s = (double)plain->reload_ms * 1e-3;
	market.checkpoint_s = (double)plain->save_ms * 1e-3;
	hd_spot_presence(there, trace, &grid);
	for (uint32_t d = 0; d <= plain->npipelines; d++)
		share[d] = there[d].share;
	for (uint32_t i = 0; i < WAYS; i++) {
		struct hd_spot_value of[4];
		for (uint32_t d = 1; d <= plain->npipelines; d++) {
			const uint32_t spares = spares_of(&way[i], d);
			grid.pipelines = d - spares;
			grid.present = (uint32_t)(there[d].machines + 0.5);
			grid.step_s = market.replan_s = (double)plain->step_ms[d - spares - 1] * 1e-3;
			grid.redo_s = grid.step_s * (1 + way[i].overhead) * way[i].again;
			const bool alone = way[i].strategy == HD_SPOT_REPLICA && !spares;
			of[d - 1] = hd_spot_value(&market, &grid, alone ? HD_SPOT_REROUTE : way[i].strategy,
				spares, way[i].overhead);
			of[d - 1].strategy = way[i].strategy;
			of[d - 1].spares = way[i].spares;
		}
		v[i] = hd_spot_value_present(&market, of, share, plain->npipelines);
		value[i] = v[i].value;
	}
	return hd_spot_choose(WAYS, v);
}

static uint32_t best_way(const double is[WAYS])
{
	uint32_t best = 0;

	for (uint32_t w = 1; w < WAYS; w++)
		best = is[w] > is[best] ? w : best;
	return best;
}

/* Of the best: what the choice is worth. */
static double judge(struct market *m, enum kind kind, uint32_t d, double per_h, uint64_t seed,
	uint32_t *best_of)
{
	const uint32_t machines = d * STAGES + 2;
	const struct hd_spot_model plain = model_with(d, &way[0]);
	double is[WAYS], expected[WAYS], best = 0;
	struct hd_spot_trace trace;
	struct hd_diag diag = { "" };

	generate(m, kind, machines, per_h, seed);
	CHECK(!hd_spot_trace_make(&trace, m->nchanges, m->change, 0, &arena, &diag), "%s", diag.text);
	for (uint32_t w = 0; w < WAYS; w++) {
		is[w] = played(&way[w], d, &trace);
		best = fmax(best, is[w]);
	}
	const uint32_t c = chosen(&trace, &plain, machines, expected);
	*best_of |= 1u << best_way(is);
	if (getenv("HEDDLE_SAY")) {
		printf("%-12s %4g/h, %u x 8: played", kind_name[kind], per_h, d);
		for (uint32_t w = 0; w < WAYS; w++)
			printf(" %7.0f", is[w]);
		printf(", expected");
		for (uint32_t w = 0; w < WAYS; w++)
			printf(" %7.0f", expected[w]);
		printf(": %-11s %u %.3f\n", hd_spot_strategy_names[way[c].strategy], way[c].spares,
			is[c] / best);
	}
	return is[c] / best;
}

static void the_chosen_strategy_is_worth_095_of_the_best(void **state)
{
	static const double per_h[] = { 0.3, 2, 6, 15, 30 };
	static const uint32_t wide[] = { 1, 2, 4 };
	struct market *m = malloc(sizeof *m);
	uint32_t best_of = 0;

	(void)state;
	assert_non_null(m);
	for (uint32_t set = 0; set < (getenv("HEDDLE_SAY") ? SETS : USUAL); set++) {
		double worst = 1;
		for (uint32_t k = 0; k < NKINDS; k++)
			for (uint32_t i = 0; i < 5; i++)
				worst = fmin(worst, judge(m, (enum kind)k, wide[(k + i + set) % 3], per_h[i],
					7 + 100 * k + i + 1000 * set, &best_of));
		CHECK(worst >= 0.95, "of set %u the choice is worth %.3f of the best once", set, worst);
		if (getenv("HEDDLE_SAY"))
			printf("set %u: %.3f\n", set, worst);
		hd_arena_reset(&arena);
	}
	free(m);
	CHECK(__builtin_popcount(best_of) >= 2, "one way alone is best of all: %x", best_of);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_chosen_strategy_is_worth_095_of_the_best),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
