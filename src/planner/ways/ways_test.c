/* Ways over all grids: against a search that plans each grid by itself and counts all sets of lost machines.
 * */
#include "planner/ways.h"

#include <math.h>

#include "pipeline/failover.h"
#include "planner/search/testing_planner.h"

enum { MACHINES = 5, VNS = 6, NODES = 5 };

struct setting {
	struct model model;
	struct hd_cluster cluster;
	struct hd_spot_market market;
	struct hd_ways_ask ask;
};

static void set_up_with(struct setting *s, uint32_t machines, int64_t memory)
{
	struct hd_cluster_level level = { "link", machines, 1e9, 1000000 };
	struct hd_diag diag = { "" };

	make_model(&s->model, (struct hd_dice){ 7 }, NODES, 1000, false);
	CHECK(hd_cluster_make(&s->cluster, &level, 1, (struct hd_cluster_kind){ "device", 1, memory }, &arena,
		&diag) == HD_OK, "%s", diag.text);
	s->market = (struct hd_spot_market){ .usd_h = 2, .losses_h = 40, .ntogether = 2,
		.together = { 0.75, 0.25 }, .pause_s = 1, .rebuild_s = 20, .reload_s = 10, .checkpoint_s = 4,
		.switch_s = 1, .replan_s = 20, .doubled = 1.5 };
	s->ask = (struct hd_ways_ask){ .plan = { .sums = &s->model.sums, .cluster = &s->cluster, .vns = VNS,
		.tensor_shards = 1, .variant = HD_PART_PAPER }, .market = &s->market, .batch = 60, .steps =
		1000,
		.runs = { true, true, true, true, true, true }, .all = true };
}

static void set_up_ask(struct setting *s, int64_t memory) { set_up_with(s, MACHINES, memory); }

static struct hd_ways found(struct setting *s)
{
	struct hd_ways ways = { 0 };
	struct hd_diag diag = { "" };

	CHECK(hd_ways_find(&ways, &s->ask, &arena, &diag) == HD_OK, "%s", diag.text);
	return ways;
}

static const double share[2] = { 0.75, 0.25 };            /* of losses of 1 and 2 machines */

enum fate { UNTOUCHED, TOLERATED, HELD, UNHELD, NFATES };

/* What losing this set of machines is to a way. Device (d, p) is machine d * P + p. */
static enum fate fate_of(const struct hd_way *w, uint32_t lost)
{
	const uint32_t p = w->ranks, n = w->value.devices, mine = lost & ((1u << n) - 1);
	const enum hd_spot_strategy s = w->value.strategy;
	const bool shadows = s >= HD_SPOT_LAZY && s <= HD_SPOT_FULL;
	bool pair = false, empty = false, unheld = false;
	uint32_t broken = 0;

	for (uint32_t q = 0; q < p; q++) {
		const uint32_t before = (q + p - 1) % p;
		uint32_t left = 0, hold = 0;
		for (uint32_t d = 0; d < n / p; d++) {
			const bool here = !(mine >> (d * p + q) & 1),
				shadow = !(mine >> (d * p + before) & 1);
			left += here && d < w->pipelines;
			hold += here || (shadows && shadow);
			pair |= !here && !shadow;
		}
		empty |= !left;
		unheld |= !hold;
	}
	for (uint32_t d = 0; d < n / p; d++)
		broken += (mine >> (d * p) & ((1u << p) - 1)) != 0;
	if (!mine)
		return UNTOUCHED;
	if (s == HD_SPOT_CHECKPOINT || unheld)
		return UNHELD;
	return (s == HD_SPOT_REROUTE ? empty : s == HD_SPOT_REPLICA ? broken > w->value.spares : pair) ?
		HELD : TOLERATED;
}

/* Of all losses of 1 and of 2 of the machines, each set alike: the share of each fate. */
static void count(const struct hd_way *w, uint32_t machines, double fate[2][NFATES])
{
	for (uint32_t k = 1; k <= 2; k++) {
		const uint32_t take = k < machines ? k : machines;
		double sets = 0, of[NFATES] = { 0 };
		for (uint32_t lost = 0; lost < 1u << machines; lost++) {
			if ((uint32_t)__builtin_popcount(lost) != take)
				continue;
			of[fate_of(w, lost)]++;
			sets++;
		}
		for (int i = 0; i < NFATES; i++)
			fate[k - 1][i] = share[k - 1] * of[i] / sets;
	}
}

static void every_way_is_what_its_own_plan_and_all_sets_of_losses_say(void **state)
{
	static struct setting s;
	const struct hd_job_planner *planner = NULL;
	struct hd_diag diag = { "" };
	uint32_t kinds = 0;

	(void)state;
	set_up_ask(&s, 0);
	const struct hd_ways ways = found(&s);
	CHECK(!hd_job_planner_find(&planner, "auto", &diag), "%s", diag.text);
	for (uint32_t i = 0; i < ways.n; i++) {
		const struct hd_way *w = &ways.way[i];
		const struct hd_spot_value *v = &w->value;
		double of[2][NFATES], struck = 0, exceeds = 0;
		struct hd_job_plan plan;
		struct hd_job_plan_ask how = s.ask.plan;
		how.stages = w->ranks * w->chunks;
		how.chunks = w->chunks;
		how.replicas = w->pipelines;
		how.schedule = w->ranks > 1 ? w->schedule : NULL;
		CHECK(!hd_job_plan_make(&plan, planner, &how, &arena, &diag), "%s", diag.text);
		CHECK(fabs(v->step_s - hd_job_plan_step_s(&plan)) < 1e-15, "%s %u x %u: %g", w->schedule,
			w->pipelines, w->ranks, v->step_s);
		count(w, MACHINES, of);
		for (int k = 0; k < 2; k++) {
			struck += share[k] - of[k][UNTOUCHED];
			exceeds += of[k][HELD] + of[k][UNHELD];
		}
		exceeds /= struck;
		CHECK(fabs(v->losses_h - 40 * struck) < 1e-9 && fabs(v->exceeds - exceeds) < 1e-12,
			"%s, %u x %u: %g losses, %g exceed, not %g and %g",
			hd_spot_strategy_names[v->strategy],
			w->pipelines, w->ranks, v->losses_h, v->exceeds, 40 * struck, exceeds);
		CHECK(v->devices == w->pipelines * w->ranks && v->spares < w->pipelines &&
			v->devices <= MACHINES && fabs(v->usd_h - 2 * MACHINES) < 1e-12, "%u devices",
			v->devices);
		const double useful = 1 / ((1 + v->overhead) * (1 + v->losses_h / 3600 * v->stall_s));
		CHECK(fabs(v->value / (60 / v->step_s * useful * 3600 / 10) - 1) < 1e-12, "value %g",
			v->value);
		CHECK(fabs(w->hours - 1000 * v->step_s / useful / 3600) < 1e-9, "%g hours", w->hours);
		CHECK(!i || ways.way[i - 1].value.value >= v->value, "%u is not in its place", i);
		kinds |= 1u << v->strategy;
	}
	CHECK(kinds == (1u << HD_NSPOT_STRATEGIES) - 1, "of strategies %x alone", kinds);
}

/* Each shape stands there as often as strategies go with it, and none is forgotten. */
static void no_grid_is_forgotten(void **state)
{
	static struct setting s;
	uint32_t grids = 0, bare = 0;

	(void)state;
	set_up_ask(&s, 0);
	const struct hd_ways ways = found(&s);
	for (uint32_t p = 1; p <= MACHINES; p++)
		for (uint32_t d = 1; d * p <= MACHINES; d++) {
			bool seen = false, spare = false;
			for (uint32_t i = 0; i < ways.n; i++) {
				const struct hd_way *w = &ways.way[i];
				if (w->ranks != p || w->pipelines != d)
					continue;
				seen = true;
				spare |= w->value.strategy == HD_SPOT_REPLICA;
			}
			CHECK(seen, "%u x %u is not there", d, p);
			CHECK(spare == (p > 1 && d > 1), "%u x %u with a spare pipeline", d, p);
			grids++;
		}
	for (uint32_t i = 0; i < ways.n; i++)
		bare += ways.way[i].value.strategy == HD_SPOT_CHECKPOINT;
	CHECK(bare == ways.nplans && grids == 10, "%u plans, %u of them judged", ways.nplans, bare);
}

static void what_cannot_win_is_left_out_and_the_choice_stays(void **state)
{
	static struct setting s;
	uint32_t left = 0, nears = 0;

	(void)state;
	/* all of them for a while; never more than three */
	struct hd_spot_trace trace[2];
	static const struct hd_spot_change in[2][4] = { { { 0, 2, NULL }, { 100, 3, NULL }, { 300, -2, NULL },
		{ 1000, -1, NULL } }, { { 0, 1, NULL }, { 100, 2, NULL }, { 300, -2, NULL }, { 1000, -1, NULL } } };
	uint32_t absent = 0;
	for (int i = 0; i < 2; i++)
		assert_int_equal(hd_spot_trace_make(&trace[i], 4, in[i], 0, &arena, NULL), HD_OK);
	/* the slower the links, the fewer devices win */
	for (int i = 0; i < 24; i += SANITIZED ? 5 : 1) {
		set_up_ask(&s, 0);
		s.ask.trace = i >= 16 ? &trace[i >= 20] : NULL;
		s.market.losses_h = i % 2 ? 0 : 400;
		s.cluster.level[0].bytes_per_s = 1e7 * (1 << i % 16 / 2);
		s.ask.plan.vns = VNS + (uint32_t)i % 5;
		const struct hd_ways all = found(&s);
		s.ask.all = false;
		const struct hd_ways few = found(&s);
		const struct hd_way *a = &all.way[all.chosen], *b = &few.way[few.chosen];
		CHECK(all.nhopeless == 0 && few.nplans + few.nhopeless <= few.nshapes, "%u left out",
			few.nhopeless);
		left += few.nhopeless;
		for (uint32_t k = 0; i >= 20 && k < few.n; k++)
			CHECK(few.way[k].pipelines * few.way[k].ranks <= 3 || few.way[k].pipelines == 1,
				"%u x %u of three machines", few.way[k].pipelines, few.way[k].ranks);
		for (uint32_t k = 0; i >= 20 && k < all.n; k++)
			absent += all.way[k].pipelines * all.way[k].ranks > 3 && all.way[k].pipelines > 1;
		CHECK(a->value.strategy == b->value.strategy && a->ranks == b->ranks && a->pipelines ==
			b->pipelines && a->chunks == b->chunks && !strcmp(a->schedule, b->schedule),
			"%s %u x %u",
			b->schedule, b->pipelines, b->ranks);
		CHECK(a->fate == HD_WAY_CHOSEN, "fate %d", a->fate);
		for (uint32_t k = 0; k < all.n; k++) {
			const struct hd_way *w = &all.way[k];
			const bool near = w->value.value >= 0.99 * a->value.value && w != a,
				alike = w->value.strategy == a->value.strategy &&
					w->value.spares == a->value.spares;
			CHECK((w->fate == HD_WAY_NEAR) == (near && alike) && (w->fate == HD_WAY_EQUAL) ==
				(near && !alike), "way %u: %s", k, hd_way_fate_texts[w->fate]);
			nears += near && alike;
		}
	}
	CHECK(SANITIZED || nears > 0, "the choice never had a second of its own strategy");
	CHECK(left > 0 && absent > 0, "nothing was ever left out: %u, %u", left, absent);
	/* two pipelines of two have machines for a fifth of the time, or never; copies of one stage have */
	for (uint32_t i = 0; i < 2; i++) {
		set_up_ask(&s, 0);
		s.ask.plan.stages = 2;
		s.ask.plan.schedule = "1f1b";
		s.ask.trace = &trace[i];
		s.ask.all = false;
		const struct hd_ways few = found(&s);
		CHECK(few.nshapes == 2 && few.nplans == 2, "trace %u: %u of %u", i, few.nplans,
			few.nshapes);
		s.ask.plan.replicas = 2;
		CHECK(found(&s).nplans == 1, "what is asked for is judged");
	}
}

struct grid { uint32_t d, p; };

/* What a run of w has with so many machines: shadows and replicas one stage less until there are the
 * pipelines that are kept; d 0: it stands. */
static struct grid grid_with(const struct hd_way *w, uint32_t machines)
{
	const enum hd_spot_strategy s = w->value.strategy;
	const uint32_t least = s == HD_SPOT_REPLICA ? w->value.spares + 1 : 1;
	struct grid g = { .p = w->ranks };

	while (s >= HD_SPOT_LAZY && g.p > 1 && least * g.p > machines)
		g.p--;
	while (g.d < w->pipelines && (g.d + 1) * g.p <= machines)
		g.d++;
	g.d = g.d < least ? 0 : g.d;
	return g;
}

static bool is_same(struct grid a, struct grid b) { return a.d == b.d && (a.p == b.p || !a.d); }

/* Is `x` what a run of `w` is with this grid, spare pipelines among them? */
static bool is_what_runs(const struct hd_way *x, const struct hd_way *w, struct grid g)
{
	if (g.p == 1 && w->ranks > 1)
		return x->ranks == 1 && x->pipelines == g.d && x->value.strategy == HD_SPOT_REROUTE;
	return x->ranks == g.p && x->chunks == w->chunks && !strcmp(x->schedule, w->schedule) &&
		x->pipelines == g.d && x->value.spares == w->value.spares &&
		x->value.strategy == w->value.strategy;
}

/* One machine, and two stages: worth nothing where a run keeps its stages; with shadows it goes on by one. */
static void what_never_has_its_machines_is_not_chosen(void **state)
{
	static const struct hd_spot_change in[] = { { 0, 1, "a" }, { 1000, -1, "a" } };
	static struct setting s;
	struct hd_spot_trace trace;

	(void)state;
	assert_int_equal(hd_spot_trace_make(&trace, sizeof in / sizeof *in, in, 0, &arena, NULL), HD_OK);
	set_up_ask(&s, 0);
	s.ask.plan.stages = 2;
	s.ask.trace = &trace;
	const struct hd_ways ways = found(&s);
	assert_true(ways.chosen < ways.n);
	for (uint32_t i = 0; i < ways.n; i++) {
		const enum hd_spot_strategy by = ways.way[i].value.strategy;
		CHECK((by >= HD_SPOT_LAZY && by <= HD_SPOT_FULL) == (ways.way[i].fate != HD_WAY_ABSENT),
			"%s: %s", hd_spot_strategy_names[by], hd_way_fate_texts[ways.way[i].fate]);
	}
}

/* Losses of a way among so many machines, by every set of them: per hour, and what each fate takes. */
struct losses { double of[NFATES], takes[NFATES], slower; };

static struct losses losses_among(const struct hd_way *w, const struct hd_spot_market *m, uint32_t machines,
	double redo)
{
	struct losses l = { .slower = 0 };
	const enum hd_spot_strategy s = w->value.strategy;

	for (uint32_t k = 1; k <= 2; k++) {
		const uint32_t take = k < machines ? k : machines;
		double sets = 0, slower = 0, of[NFATES] = { 0 };
		for (uint32_t lost = 0; lost < 1u << machines; lost++) {
			if ((uint32_t)__builtin_popcount(lost) != take)
				continue;
			const enum fate fate = fate_of(w, lost);
			const double mine = __builtin_popcount(lost & ((1u << w->value.devices) - 1));
			of[fate]++;
			sets++;
			if (fate == TOLERATED)
				slower += s == HD_SPOT_REROUTE || s == HD_SPOT_REPLICA ?
					w->pipelines / (w->pipelines - mine / w->ranks) - 1 : 0.5;
		}
		for (int i = 0; i < NFATES; i++)
			l.of[i] += 40 * share[k - 1] * of[i] / sets;
		l.slower += 40 * share[k - 1] * slower / sets * m->replan_s;
	}
	double every = l.of[UNHELD] > 0 ? sqrt(2 * m->checkpoint_s * 3600 / l.of[UNHELD]) : INFINITY;
	every = s == HD_SPOT_CHECKPOINT || every < 1800 ? every : 1800;
	l.takes[TOLERATED] = m->pause_s + redo;
	l.takes[HELD] = m->rebuild_s + w->value.step_s / 2;
	l.takes[UNHELD] = m->rebuild_s + every / 2 + m->reload_s;
	l.takes[UNTOUCHED] = every;
	return l;
}

/* What others compute again, out of a way that is judged among all machines. */
static double redo_of(const struct hd_way *w, const struct hd_spot_market *m, uint32_t machines)
{
	const struct losses l = losses_among(w, m, machines, 0);
	const double all = l.of[TOLERATED] + l.of[HELD] + l.of[UNHELD],
		tolerated = w->value.tolerated_s * (1 - w->value.exceeds) * all;

	return l.of[TOLERATED] > 0 ? (tolerated - l.slower) / l.of[TOLERATED] - m->pause_s : 0;
}

static double samples_h(const struct hd_way *w, const struct losses *l)
{
	double lost = l->slower;

	for (int i = TOLERATED; i < NFATES; i++)
		lost += l->of[i] > 0 ? l->of[i] * l->takes[i] : 0;
	return 60 / w->value.step_s * 3600 / (1 + lost / 3600) /
		(1 + w->value.overhead - w->value.saving + 4 / l->takes[UNTOUCHED]);
}

struct pause { double s, weight; };

static int shortest_first(const void *x, const void *y)
{
	const struct pause *a = x, *b = y;

	return a->s < b->s ? -1 : a->s > b->s;
}

static double middle_of(struct pause *pause, uint32_t n)
{
	double all = 0, sum = 0;

	qsort(pause, n, sizeof *pause, shortest_first);
	for (uint32_t i = 0; i < n; i++)
		all += pause[i].weight;
	for (uint32_t i = 0; i < n; i++)
		if ((sum += pause[i].weight) >= all / 2 * (1 - 1e-12))
			return pause[i].s;
	return 0;
}

/* Of those that are there: how many, from when; the last row is the end. */
struct there { double at, n; };

struct seen { uint32_t compared, smaller, among_fewer, shallower, others; };

/* Time by time a way is worth what its grid then is, and loses among the machines that are there with that
 * grid. `all`: ways that are judged where all machines are there. */
static void judge_there(const struct setting *s, const struct hd_way *w, const struct hd_ways *all,
	uint32_t nall, const struct there *there, uint32_t n, struct seen *seen)
{
	const uint32_t machines = s->cluster.ndevices;
	double samples = 0, whole_ms = 0, machine_ms = 0, runs_ms = 0, back = 0;
	struct { const struct hd_way *x; struct losses l; double ms; } ran[16];
	struct pause pause[3 * 16];
	uint32_t npauses = 0, nran = 0;

	for (uint32_t t = 0; t < n; t++) {
		const double ms = there[t + 1].at - there[t].at;
		const struct grid g = grid_with(w, (uint32_t)there[t].n);
		double with = 0, with_ms = 0;
		machine_ms += ms * there[t].n;
		whole_ms += g.d == w->pipelines && g.p == w->ranks ? ms : 0;
		for (uint32_t u = 0; u < n; u++) {
			const double now = is_same(g, grid_with(w, (uint32_t)there[u].n)) ?
				there[u + 1].at - there[u].at : 0;
			with_ms += now;
			with += now * there[u].n;
		}
		const uint32_t among = (uint32_t)(with / with_ms + 0.5);
		for (uint32_t a = 0; a < nall && g.d; a++)
			for (uint32_t k = 0; k < all[a].n; k++) {
				const struct hd_way *x = &all[a].way[k];
				if (!is_what_runs(x, w, g))
					continue;
				ran[nran].x = x;
				ran[nran].ms = ms;
				ran[nran].l = losses_among(x, &s->market, among, redo_of(x, &s->market,
					machines));
				back += ms * ran[nran++].l.of[UNHELD];
				runs_ms += ms;
				seen->among_fewer += among < machines && among > x->value.devices;
				seen->shallower += g.p < w->ranks;
			}
	}
	/* the run's interval: by what goes back in all of the time */
	double every = back > 0 ? sqrt(2 * s->market.checkpoint_s * 3600 * runs_ms / back) : INFINITY;
	every = w->value.strategy == HD_SPOT_CHECKPOINT || every < 1800 ? every : 1800;
	for (uint32_t k = 0; k < nran; k++) {
		struct losses *l = &ran[k].l;
		seen->others += fabs(l->takes[UNTOUCHED] / every - 1) > 0.01;
		l->takes[UNHELD] += every / 2 - l->takes[UNTOUCHED] / 2;
		l->takes[UNTOUCHED] = every;
		samples += ran[k].ms * samples_h(ran[k].x, l);
		for (int f = TOLERATED; f < NFATES; f++)
			pause[npauses++] = (struct pause){ l->takes[f], ran[k].ms * l->of[f] };
	}
	CHECK(!nran || fabs(w->value.interval_s / every - 1) < 1e-9 || !(w->value.useful > 0),
		"a checkpoint each %g s, not %g", w->value.interval_s, every);
	const double middle = middle_of(pause, npauses);
	CHECK(!npauses || fabs(w->value.pause_s / middle - 1) < 1e-9, "%s %u x %u: %g s, not %g",
		hd_spot_strategy_names[w->value.strategy], w->pipelines, w->ranks, w->value.pause_s, middle);
	/* 2 $ an hour for each that is there */
	const double usd = machine_ms * 2, sum_h = w->hours * w->value.usd_h, value = samples / usd;
	CHECK(fabs(w->value.value - value) <= 1e-9 * value, "%s %u x %u %s: %g, not %g",
		hd_spot_strategy_names[w->value.strategy], w->pipelines, w->ranks, w->schedule,
		w->value.value, value);
	CHECK(fabs(w->there - whole_ms / there[n].at) < 1e-12, "%g of the time", w->there);
	CHECK(fabs(w->value.usd_h * there[n].at - usd) < 1e-9 * usd, "%g $", w->value.usd_h);
	CHECK(!(value > 0) || fabs(sum_h * w->value.value - 1000 * 60) < 1e-6, "%g h", w->hours);
	seen->compared++;
	seen->smaller += w->pipelines > 1 && w->there < 1;
}

static void machines_that_come_and_go_are_worth_what_is_there(void **state)
{
	static const struct hd_spot_change in[] = { { 0, 1, "a" }, { 0, 1, "b" }, { 0, 1, "c" },
		{ 100, 1, "d" }, { 100, 1, "e" }, { 250, -1, "a" }, { 300, -1, "b" }, { 300, -1, "c" }, { 300, -1, "d" },
		{ 370, 1, "f" }, { 400, 1, "g" }, { 700, -1, "e" }, { 1000, -1, "f" } };
	static const struct there there[] = { { 0, 3 }, { 100, 5 }, { 250, 4 }, { 300, 1 },
		{ 370, 2 }, { 400, 3 }, { 700, 2 }, { 1000, 0 } };
	static struct setting s;
	struct hd_spot_trace trace;
	struct seen seen = { 0 };

	(void)state;
	assert_int_equal(hd_spot_trace_make(&trace, sizeof in / sizeof *in, in, 0, &arena, NULL), HD_OK);
	set_up_ask(&s, 0);
	const struct hd_ways all = found(&s);
	s.ask.trace = &trace;
	for (uint32_t only = 0; only <= 2; only++) {
		s.ask.plan.replicas = only;
		const struct hd_ways ways = found(&s);
		CHECK(only || ways.n == all.n, "%u ways, not %u", ways.n, all.n);
		for (uint32_t i = 0; i < ways.n; i++) {
			CHECK(!only || ways.way[i].pipelines == only, "%u pipelines", ways.way[i].pipelines);
			judge_there(&s, &ways.way[i], &all, 1, there, 7, &seen);
		}
	}
	CHECK(seen.compared > all.n && seen.smaller > 10 && seen.among_fewer > 10 && seen.shallower > 10,
		"%u compared, %u not always there, %u times among fewer, %u with fewer stages", seen.compared,
		seen.smaller, seen.among_fewer, seen.shallower);
}

/* Three stages are asked for. With too few machines for F + 1 pipelines of them replicas have F + 1 of two,
 * and with eight even four. */
static void replicas_are_worth_their_fewer_stages(void **state)
{
	static const struct hd_spot_change in[] = { { 0, 12, NULL }, { 100, -3, NULL }, { 180, -1, NULL },
		{ 300, -1, NULL }, { 370, -2, NULL }, { 500, -1, NULL }, { 590, -1, NULL }, { 610, -1, NULL },
		{ 700, 5, NULL }, { 820, 4, NULL }, { 900, -6, NULL }, { 1000, -5, NULL } };
	static const struct there there[] = { { 0, 12 }, { 100, 9 }, { 180, 8 }, { 300, 7 }, { 370, 5 },
		{ 500, 4 }, { 590, 3 }, { 610, 2 }, { 700, 7 }, { 820, 11 }, { 900, 5 }, { 1000, 0 } };
	static struct setting s;
	struct hd_spot_trace trace;
	struct hd_ways all[3];
	struct seen seen = { 0 };

	(void)state;
	assert_int_equal(hd_spot_trace_make(&trace, sizeof in / sizeof *in, in, 0, &arena, NULL), HD_OK);
	set_up_with(&s, 12, 0);
	s.ask.plan.schedule = "1f1b";
	s.ask.plan.vns = 7;
	for (uint32_t k = 0; k < 3; k++) {
		s.ask.plan.schedule = k ? "1f1b" : NULL;
		s.ask.plan.stages = 1 + k;
		all[k] = found(&s);
	}
	s.ask.trace = &trace;
	for (uint32_t only = 0; only <= 4; only++) {
		s.ask.plan.replicas = only;
		const struct hd_ways ways = found(&s);
		for (uint32_t i = 0; i < ways.n; i++) {
			CHECK(ways.way[i].ranks == 3 && (!only || ways.way[i].pipelines == only), "%u x %u",
				ways.way[i].pipelines, ways.way[i].ranks);
			if (ways.way[i].value.strategy != HD_SPOT_FULL)
				judge_there(&s, &ways.way[i], all, 3, there, 11, &seen);
		}
		CHECK(ways.nshapes == (only ? 1 : 4) && ways.nplans == ways.nshapes, "%u of %u shapes",
			ways.nplans, ways.nshapes);
	}
	CHECK(seen.shallower > 20 && seen.others > 20, "%u with fewer stages, %u at other intervals",
		seen.shallower, seen.others);
}

/* Of the same ask, with bounds and without: their choices are one and the same. Returns it. */
static struct hd_way chosen_alike(struct setting *s, uint32_t *left)
{
	s->ask.all = true;
	const struct hd_ways all = found(s);
	s->ask.all = false;
	const struct hd_ways few = found(s);
	const struct hd_way *a = &all.way[all.chosen], *b = &few.way[few.chosen];

	CHECK(a->value.strategy == b->value.strategy && a->ranks == b->ranks && a->pipelines ==
		b->pipelines && a->chunks == b->chunks && !strcmp(a->schedule, b->schedule) &&
		a->value.value == b->value.value && few.nplans + few.nhopeless <= few.nshapes,
		"%u machines: %s %u x %u x %u, not %s %u x %u x %u", s->cluster.ndevices, b->schedule,
		b->pipelines, b->ranks, b->chunks, a->schedule, a->pipelines, a->ranks, a->chunks);
	*left += few.nhopeless;
	return *a;
}

/* As fast as they can be, wherever stages begin: what bounds of rows and chunks, and those of boundaries,
 * leave out is never the choice, on any number of machines up to twelve. */
static void the_choice_of_up_to_twelve_machines_is_that_of_all_grids(void **state)
{
	static struct setting s;
	uint32_t left = 0, deep = 0, chunks = 0;

	(void)state;
	for (uint32_t n = 2; n <= (SANITIZED ? 7 : 12); n++) {
		set_up_with(&s, n, 0);
		s.market.losses_h = n % 3 ? 4 : 400;
		s.cluster.level[0].bytes_per_s = n % 2 ? 1e7 : 1e10;
		s.ask.plan.vns = n % 4 < 2 ? 6 : 12;
		const struct hd_way a = chosen_alike(&s, &left);
		deep += a.ranks > 1;
		chunks += a.chunks > 1;
	}
	CHECK(left > (SANITIZED ? 10 : 100) && deep > (SANITIZED ? 1 : 3),
		"%u left out; %u deep, %u of chunks chosen", left, deep, chunks);
}

/* The same of drawn models, links, markets and few virtual nodes, where the way through the stages is most of
 * a step. */
static void the_choice_of_any_small_ask_is_that_of_all_grids(void **state)
{
	static struct setting s;
	uint32_t left = 0, deep = 0;

	(void)state;
	for (uint32_t seed = 0; seed < DRAWS(25); seed++) {
		struct hd_dice d = { seed };
		set_up_with(&s, 2 + hd_roll(&d, 5), 0);
		make_model(&s.model, (struct hd_dice){ 100 + seed }, 4 + hd_roll(&d, 6), 1000,
			false);
		s.market.losses_h = hd_roll(&d, 2) ? 4 : 400;
		s.cluster.level[0].bytes_per_s = (double[]){ 1e7, 1e8, 1e9, 1e10 }[hd_roll(&d, 4)];
		s.cluster.level[0].latency_ps = hd_roll(&d, 2) ? 1000000 : 100000000;
		s.ask.plan.vns = 2 + hd_roll(&d, 6);
		deep += chosen_alike(&s, &left).ranks > 1;
		hd_arena_reset(&arena);
	}
	CHECK(left > (SANITIZED ? 6 : 250) && deep > DRAWS(25) / 10, "%u left out; %u deep", left, deep);
	print_message("%u left out; %u deep\n", left, deep);
}

/* Where the machines are most of the time too few for a grid, what it has then counts in its bound, too. */
static void what_has_fewer_stages_is_not_left_out(void **state)
{
	static struct setting s;
	uint32_t left = 0, replicas = 0;

	(void)state;
	for (uint32_t i = 0; i < 24; i += SANITIZED ? 5 : 1) {
		struct hd_dice dice = { 100 + i };
		struct hd_spot_change in[8] = { { 0, 5, NULL } };
		int32_t here = 5;
		struct hd_spot_trace trace;
		for (int k = 1; k < 8; k++) {
			const int32_t to = 3 + (int32_t)hd_roll(&dice, 5);
			in[k] = (struct hd_spot_change){ k * 100, to == here ? -1 : to - here, NULL };
			here += in[k].change;
		}
		assert_int_equal(hd_spot_trace_make(&trace, 8, in, 0, &arena, NULL), HD_OK);
		set_up_with(&s, 8, 0);
		s.ask.trace = &trace;
		s.market.losses_h = i % 3 ? 4 : 400;
		s.cluster.level[0].bytes_per_s = 1e8 * (1 << i / 3);
		s.ask.plan.stages = i % 4 < 2 ? 0 : 1 + i % 4;
		for (int k = 0; k < HD_NSPOT_STRATEGIES; k++)
			s.ask.runs[k] = i % 2 ? k == HD_SPOT_REPLICA : k != HD_SPOT_REPLICA;
		const struct hd_ways all = found(&s);
		s.ask.all = false;
		const struct hd_ways few = found(&s);
		if (all.chosen == all.n) {
			assert_int_equal(few.chosen, few.n);
			continue;
		}
		const struct hd_way *a = &all.way[all.chosen], *b = &few.way[few.chosen];
		CHECK(few.chosen < few.n && fabs(b->value.value / a->value.value - 1) < 1e-12 &&
			a->value.strategy == b->value.strategy, "%u: %s %u x %u %g, not %s %u x %u %g", i,
			hd_spot_strategy_names[b->value.strategy], b->pipelines, b->ranks, b->value.value,
			hd_spot_strategy_names[a->value.strategy], a->pipelines, a->ranks, a->value.value);
		left += few.nhopeless;
		replicas += a->value.strategy == HD_SPOT_REPLICA;
	}
	CHECK(left > (SANITIZED ? 2 : 10) && replicas > (SANITIZED ? 0 : 4),
		"%u left out, %u replicas chosen", left, replicas);
}

static void keys_that_are_given_are_kept(void **state)
{
	static struct setting s;

	(void)state;
	set_up_ask(&s, 0);
	s.ask.plan.stages = 2;
	s.ask.plan.schedule = "1f1b";
	struct hd_ways ways = found(&s);
	CHECK(ways.nshapes == 2 && ways.nplans == 2, "%u shapes", ways.nshapes);
	s.ask.plan.replicas = 2;
	ways = found(&s);
	CHECK(ways.nshapes == 1 && ways.way[0].pipelines == 2 && ways.way[0].ranks == 2, "%u shapes",
		ways.nshapes);
	s.ask.plan = (struct hd_job_plan_ask){ .sums = &s.model.sums, .cluster = &s.cluster, .vns = VNS,
		.tensor_shards = 1, .deep = true, .chunks = 2 };
	ways = found(&s);
	for (uint32_t i = 0; i < ways.n; i++)
		CHECK(ways.way[i].chunks == 2 && ways.way[i].ranks > 1, "%u: %u ranks", i, ways.way[i].ranks);
	for (uint32_t i = 0; i < ways.nrefused; i++)
		CHECK(ways.refused[i].strategy == HD_NSPOT_STRATEGIES ||
			strstr(ways.refused[i].why, "a rank runs several stages"), "%s", ways.refused[i].why);
	s.ask.plan.replicas = 9;
	struct hd_diag diag = { "" };
	CHECK(hd_ways_find(&ways, &s.ask, &arena, &diag) == HD_E_INVAL && strstr(diag.text, "no grid of 5"),
		"%s", diag.text);
	s.ask.plan.replicas = 0;
	s.ask.plan.tensor = 2;
	diag = (struct hd_diag){ "" };
	CHECK(hd_ways_find(&ways, &s.ask, &arena, &diag) == HD_E_INVAL && strstr(diag.text, "tensor groups"),
		"%s", diag.text);
}

/* With the memory of the fullest rank of a plan it fits alone, and no shadow beside it. */
static void shadows_fit_or_are_refused(void **state)
{
	static struct setting s;
	int64_t plain = 0, lazy = 0;

	(void)state;
	set_up_ask(&s, 0);
	s.ask.plan.stages = 2;
	s.ask.plan.replicas = 1;
	s.ask.plan.schedule = "1f1b";
	s.ask.plan.recompute = HD_RECOMPUTES_NEVER;
	const struct hd_ways ways = found(&s);
	for (uint32_t i = 0; i < ways.n; i++) {
		if (ways.way[i].value.strategy == HD_SPOT_CHECKPOINT)
			plain = ways.way[i].needs;
		if (ways.way[i].value.strategy == HD_SPOT_LAZY)
			lazy = ways.way[i].needs;
		/* lazy's shadows lie on the host */
		CHECK(ways.way[i].value.strategy > HD_SPOT_LAZY || ways.way[i].peak == plain, "%lld bytes",
			(long long)ways.way[i].peak);
	}
	CHECK(plain > 0 && lazy > plain, "%lld and %lld bytes", (long long)plain, (long long)lazy);
	for (int more = 0; more < 2; more++) {
		struct setting *t = &s;
		bool there = false;
		t->cluster.kind[0].memory = lazy - 1 + more;
		const struct hd_ways tight = found(t);
		for (uint32_t i = 0; i < tight.n; i++)
			there |= tight.way[i].value.strategy == HD_SPOT_LAZY;
		CHECK(there == more, "with %lld bytes", (long long)t->cluster.kind[0].memory);
		CHECK(more || strstr(tight.refused[0].why, "does not fit: with its shadow rank"), "%s",
			tight.refused[0].why);
	}
}

static void bounds_leave_ways_out(void **state)
{
	static struct setting s;
	struct hd_diag diag = { "" };

	(void)state;
	set_up_ask(&s, 0);
	struct hd_ways ways = found(&s);
	const double hours = ways.way[ways.chosen].hours, usd = ways.way[ways.chosen].usd;
	CHECK(fabs(usd - hours * 10) < 1e-9, "%g $ in %g h", usd, hours);
	s.market.deadline_s = hours * 3600 * 0.999;
	ways = found(&s);
	for (uint32_t i = 0; i < ways.n; i++)
		CHECK((ways.way[i].hours * 3600 > s.market.deadline_s) == (ways.way[i].fate == HD_WAY_LATE) &&
			(ways.way[i].fate != HD_WAY_LATE || !ways.way[i].value.allowed), "way %u", i);
	s.market.deadline_s = 0;
	s.market.budget_usd = usd * 1.2;
	ways = found(&s);
	CHECK(ways.chosen < ways.n && ways.way[ways.n - 1].fate == HD_WAY_DEAR, "the last: %s",
		hd_way_fate_texts[ways.way[ways.n - 1].fate]);
	s.market.budget_usd = usd * 0.5;
	ways = found(&s);
	CHECK(ways.chosen == ways.n && ways.way[0].fate == HD_WAY_DEAR, "something is chosen");
	s.market.budget_usd = 0;
	s.market.pause_max_s = 1e-3;
	ways = found(&s);
	CHECK(ways.chosen == ways.n && ways.way[0].fate == HD_WAY_PAUSES, "something is chosen");
	s.market.pause_max_s = 0;
	for (int i = 0; i < HD_NSPOT_STRATEGIES; i++)
		s.ask.runs[i] = i == HD_SPOT_EAGER;
	ways = found(&s);
	CHECK(ways.way[ways.chosen].value.strategy == HD_SPOT_EAGER && ways.way[ways.n - 1].fate ==
		HD_WAY_NO_RUN, "%u is chosen", ways.chosen);
	s.market.budget_usd = 1;
	s.ask.steps = 0;
	CHECK(hd_ways_find(&ways, &s.ask, &arena, &diag) == HD_E_INVAL && strstr(diag.text, "say job.steps"),
		"%s", diag.text);
}

/* The last moment at which no rank has all its gradients, by asking how far each is; the plan of the way is
 * made and simulated here. */
static double goes_on_until(struct setting *s, const struct hd_way *w, enum hd_redundancy mode, double *back)
{
	const struct hd_job_planner *planner = NULL;
	struct hd_job_plan_ask how = s->ask.plan;
	struct hd_job_plan plan;
	struct hd_schedule lists;
	struct hd_sim_plan sim;
	struct hd_diag diag = { "" };
	double f = 0, b = 0;

	how.stages = w->ranks;
	how.chunks = 1;
	how.replicas = w->pipelines;
	how.schedule = w->schedule;
	CHECK(!hd_job_planner_find(&planner, "auto", &diag) && !hd_job_plan_make(&plan, planner, &how, &arena,
		&diag), "%s", diag.text);
	const struct hd_sim_setting set = { .costs = &plan.costs, .per_ps = 1, .cluster = &s->cluster,
		.device = plan.device, .transport = HD_TRANSPORT_BUFFERED, .spans = true };
	const struct hd_redundancy_ask ask = { .mode = mode, .setting = &set };
	CHECK(!hd_redundancy_add(&lists, &plan.schedule, &ask, &arena, &diag) && !hd_sim_plan(&sim, &lists,
		&set, &arena, &diag), "%s", diag.text);
	int64_t low = 0, high = sim.makespan;
	while (high - low > 1) {
		const int64_t mid = low + (high - low) / 2;
		struct hd_step_progress at;
		bool any = false;
		CHECK(!hd_step_progress_at(&at, &sim, mid, &arena, &diag), "%s", diag.text);
		for (uint32_t r = 0; r < lists.nranks; r++) {
			bool left = false;        /* of its own gradients */
			for (uint32_t i = at.at[r]; i < lists.list[r].len; i++) {
				const struct hd_ins *ins = &lists.list[r].at[i];
				left |= (ins->op == HD_INS_B || ins->op == HD_INS_W) && !(ins->flags &
					HD_INS_SHADOW);
			}
			any |= !left;
		}
		*(any ? &high : &low) = mid;
	}
	for (uint32_t k = 0; k < plan.costs.nstages; k++) {
		f += (double)plan.costs.stage[k].f;
		b += (double)(plan.costs.stage[k].i + plan.costs.stage[k].w);
	}
	*back = b / (f + b);
	return (double)high / (double)sim.makespan;
}

/* What a loss makes others compute again, at any time of the step alike: summed over a thousand moments. */
static void a_loss_late_in_a_step_begins_it_again(void **state)
{
	static const enum hd_redundancy mode_of[] = { [HD_SPOT_LAZY] = HD_REDUNDANCY_LAZY,
		[HD_SPOT_EAGER] = HD_REDUNDANCY_EAGER, [HD_SPOT_FULL] = HD_REDUNDANCY_FULL };
	static const char *const schedules[] = { "1f1b", "gpipe", "zb-h1" };
	static struct setting s;
	enum { MOMENTS = 1000 };

	(void)state;
	for (size_t k = 0; k < sizeof schedules / sizeof *schedules; k++) {
		set_up_ask(&s, 0);
		s.ask.plan.stages = 2;
		s.ask.plan.replicas = 1 + k % 2;
		s.ask.plan.schedule = schedules[k];
		const struct hd_ways ways = found(&s);
		double step = 0, busiest = 0;
		for (uint32_t i = 0; i < ways.n; i++) {
			const struct hd_spot_value *v = &ways.way[i].value;
			step = v->step_s;
			if (v->strategy == HD_SPOT_REROUTE)      /* peers share half of a rank's work */
				busiest = (v->takes[0].s - s.market.pause_s) * 2;
		}
		for (uint32_t i = 0; i < ways.n; i++) {
			const struct hd_spot_value *v = &ways.way[i].value;
			if (v->strategy < HD_SPOT_LAZY || v->strategy > HD_SPOT_FULL)
				continue;
			double back, again = 0;
			const double until = goes_on_until(&s, &ways.way[i], mode_of[v->strategy], &back),
				with = step * (1 + v->overhead - v->saving);
			const double of[] = { [HD_SPOT_LAZY] = 1, [HD_SPOT_EAGER] = back,
				[HD_SPOT_FULL] = 0 };
			CHECK(until > 0.01 && until < 1 && fabs(ways.way[i].goes_on - until) < 1e-6,
				"%s %s goes on until %g, not %g", schedules[k],
				hd_spot_strategy_names[v->strategy], ways.way[i].goes_on, until);
			for (int m = 0; m < MOMENTS; m++) {
				const double x = (m + 0.5) / MOMENTS;
				again += (x < until ? x * busiest * of[v->strategy] : x * with) / MOMENTS;
			}
			CHECK(fabs(v->takes[0].s - s.market.pause_s - again) < 2e-3 * with,
				"%s %s computes %g s again, not %g of %g", schedules[k],
				hd_spot_strategy_names[v->strategy], v->takes[0].s - s.market.pause_s, again,
				with);
		}
	}
}

/* Where most of a step is before its sums, shadows that have the forwards pause shorter: with a bound between
 * the two the dearer one is bought. With the backwards, too, a step is longer, and so is what is begun again
 * late in it. */
static void a_bound_on_pauses_buys_what_computes_less_again(void **state)
{
	static struct setting s;
	double pause[HD_NSPOT_STRATEGIES] = { 0 };

	(void)state;
	set_up_ask(&s, 0);
	s.ask.plan.vns = 24;                      /* most of a step is before its sums */
	s.cluster.level[0].bytes_per_s = 1e12;
	s.cluster.level[0].latency_ps = 1;
	s.market.doubled = 1;
	s.ask.plan.stages = 3;
	s.ask.plan.replicas = 1;
	s.ask.plan.schedule = "1f1b";
	struct hd_ways ways = found(&s);
	for (uint32_t i = 0; i < ways.n; i++)
		pause[ways.way[i].value.strategy] = ways.way[i].value.tolerated_s;
	CHECK(pause[HD_SPOT_LAZY] > pause[HD_SPOT_EAGER] && pause[HD_SPOT_EAGER] < pause[HD_SPOT_FULL],
		"%g, %g, %g", pause[HD_SPOT_LAZY], pause[HD_SPOT_EAGER], pause[HD_SPOT_FULL]);
	s.market.rebuild_s = 1e5;
	s.market.losses_h = 0.01;
	s.market.pause_max_s = (pause[HD_SPOT_LAZY] + pause[HD_SPOT_EAGER]) / 2;
	ways = found(&s);
	CHECK(ways.chosen < ways.n && ways.way[ways.chosen].value.strategy == HD_SPOT_EAGER,
		"bound %g: way %u", s.market.pause_max_s, ways.chosen);
}

/* Of a profile of zeros each step takes none: the search for the longest step has an end. */
static void what_takes_no_time_has_a_choice(void **state)
{
	static struct setting s;

	(void)state;
	set_up_ask(&s, 0);
	for (uint32_t v = 0; v < NODES; v++) {
		struct hd_profile_node *node = &s.model.profile.node[v];
		node->f.p50_ns = node->i.p50_ns = node->w.p50_ns = node->out[0] = node->param = 0;
	}
	settle(&s.model);
	s.cluster.level[0].latency_ps = 0;
	s.ask.all = false;
	const struct hd_ways ways = found(&s);
	CHECK(ways.n && ways.chosen < ways.n && ways.way[ways.chosen].fate == HD_WAY_CHOSEN,
		"chosen %u of %u", ways.chosen, ways.n);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
#define T(test) cmocka_unit_test_setup_teardown(test, make_arena, drop_arena)
		T(every_way_is_what_its_own_plan_and_all_sets_of_losses_say), T(no_grid_is_forgotten),
		T(what_cannot_win_is_left_out_and_the_choice_stays),
		T(what_never_has_its_machines_is_not_chosen),
		T(machines_that_come_and_go_are_worth_what_is_there),
		T(the_choice_of_up_to_twelve_machines_is_that_of_all_grids),
		T(the_choice_of_any_small_ask_is_that_of_all_grids),
		T(replicas_are_worth_their_fewer_stages), T(what_has_fewer_stages_is_not_left_out),
		T(keys_that_are_given_are_kept),
		T(shadows_fit_or_are_refused), T(bounds_leave_ways_out),
		T(a_loss_late_in_a_step_begins_it_again),
		T(a_bound_on_pauses_buys_what_computes_less_again), T(what_takes_no_time_has_a_choice),
#undef T
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
