/* The simulator against the figures of the plan documents: stored vectors, the table of reference
 * values and the closed forms; and against a clock that ticks (an oracle that shares no code). */
#include "pipeline/simulate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/planning.h"
#include "tests/check.h"

#define U HD_UNIT_PS

static struct hd_sim simulate(const struct hd_schedule *s, int64_t f, int64_t i, int64_t w, int64_t hop)
{
	struct hd_sim sim = { 0 };
	struct hd_diag diag = { "" };
	const struct hd_sim_ask ask = { .costs = { f, i, w, hop } };

	CHECK(hd_simulate(&sim, s, &ask, &arena, &diag) == HD_OK, "%s: %s", s->heading, diag.text);
	return sim;
}

static struct hd_sim simulate_named(const char *name, uint32_t p, uint32_t m, uint32_t v, int64_t f,
	int64_t i, int64_t w, int64_t hop)
{
	struct hd_schedule s = hd_named_schedule(name, p, m, v);

	return simulate(&s, f, i, w, hop);
}

static uint32_t worst(const struct hd_sim *sim)
{
	uint32_t most = 0;

	for (uint32_t r = 0; r < sim->ran.nranks; r++)
		most = sim->rank[r].peak > most ? sim->rank[r].peak : most;
	return most;
}

static double after(const char *heading, const char *key)
{
	const char *at = strstr(heading, key);

	CHECK(at, "%s: no %s", heading, key);
	return strtod(at + strlen(key), NULL);
}

static void stored_figures_are_reproduced(void **state)
{
	const char *text = hd_shared_text("schedules.txt");

	(void)state;
	if (!text) {
		SKIP("data/schedules.txt is neither in HEDDLE_SHARED nor in tests");
	}
	struct hd_schedules all = hd_parsed_schedules(text);
	assert_int_equal(all.len, 9);
	for (uint32_t i = 0; i < all.len; i++) {
		const char *h = all.at[i].heading;
		struct hd_sim sim = simulate(&all.at[i], U, U, U, 0),
			far = simulate(&all.at[i], U, U, U, U / 10);
		CHECK(hd_sim_units(&sim, sim.makespan) == after(h, " T="), "%s: %g", h,
			hd_sim_units(&sim, sim.makespan));
		CHECK(fabs(hd_sim_bubble(&sim) - after(h, " bubble=")) < 1e-6, "%s: %g", h,
			hd_sim_bubble(&sim));
		CHECK(hd_sim_units(&sim, sim.span_idle) == after(h, " span_idle="), "%s: %g", h,
			hd_sim_units(&sim, sim.span_idle));
		CHECK(hd_sim_units(&far, far.makespan) == after(h, " c01="), "%s: %g", h,
			hd_sim_units(&far, far.makespan));
		double act[2];
		assert_int_equal(sscanf(strstr(h, " act="), " act=[%lf, %lf]", &act[0], &act[1]), 2);
		for (int r = 0; r < 2; r++)
			CHECK((double)sim.rank[r].peak / sim.per_rank == act[r], "%s: rank %d %u", h, r,
				sim.rank[r].peak);
	}
}

/* bubble without and with a tenth a hop; activations of the worst rank (section 3.5) */
static const struct { const char *name; uint32_t v; double b[3][2], act[3]; } table[] = {
	{ "gpipe",       1, { { .2500, .2667 }, { .4375, .4667 }, { .2188, .2333 } }, { 4, 16, 32 } },
	{ "1f1b",        1, { { .2500, .2833 }, { .4375, .5208 }, { .2188, .2896 } }, { 2, 8, 8 } },
	{ "interleaved", 2, { { .1250, .1750 }, { .2188, .2813 }, { .1094, .1406 } }, { 2.5, 11.5, 11.5 } },
	{ "interleaved", 4, { { .0625, .1792 }, { .1094, .2385 }, { .0547, .1193 } }, { 2.25, 9.75, 9.75 } },
	{ "zb-h1",       1, { { .0833, .1167 }, { .1458, .2042 }, { .0729, .1021 } }, { 2, 8, 8 } },
	{ "zb-h2",       1, { { .0833, .0917 }, { .1458, .1604 }, { .0729, .0802 } }, { 3, 15, 15 } },
	{ "zb-v",        2, { { .0417, .0667 }, { .0729, .1417 }, { .0365, .0708 } }, { 2, 8, 8 } },
	{ "v-half",      2, { { .2083, .2583 }, { .2708, .3458 }, { .1354, .1729 } }, { 2, 5, 5 } },
	{ "v-min",       2, { { .1250, .2083 }, { .2812, .5021 }, { .1406, .3365 } }, { 2, 4, 4 } },
	{ "dualpipev",   2, { { .0833, .1167 }, { .1458, .2479 }, { .0729, .1531 } }, { 2.5, 8.5, 8.5 } },
};

static void the_published_table_is_reproduced(void **state)
{
	static const uint32_t p[] = { 2, 8, 8 }, m[] = { 4, 16, 32 };

	(void)state;
	for (size_t k = 0; k < sizeof table / sizeof *table; k++)
		for (int x = 0; x < 3; x++) {
			struct hd_sim near = simulate_named(table[k].name, p[x], m[x], table[k].v, U, U, U,
				0);
			struct hd_sim far = simulate_named(table[k].name, p[x], m[x], table[k].v, U, U, U,
				U / 10);
			CHECK(fabs(hd_sim_bubble(&near) - table[k].b[x][0]) <= 0.5001e-4, "%s %u,%u: %g",
				table[k].name, p[x], m[x], hd_sim_bubble(&near));
			CHECK(fabs(hd_sim_bubble(&far) - table[k].b[x][1]) <= 0.5001e-4, "%s %u,%u: %g",
				table[k].name, p[x], m[x], hd_sim_bubble(&far));
			CHECK((double)worst(&near) / near.per_rank == table[k].act[x], "%s %u,%u: %u",
				table[k].name, p[x], m[x], worst(&near));
		}
}

/* ---- closed forms, in twelfths of a unit of cost so that all are whole (F, I, W given in units) */

struct closed_form { int64_t p, m, v, f, i, w; };

#define NOT_SAID (-1)
#define TWELFTHS 12
static int64_t drained(const struct closed_form *x) { return (x->p - 1) * (x->f + x->i + x->w) * TWELFTHS; }
static int64_t shared(const struct closed_form *x) { return x->m % x->p ? NOT_SAID : drained(x) / x->v; }
static int64_t h1_idle(const struct closed_form *x) { return x->w <= x->f &&
	x->w <= x->i ? (x->p - 1) * (x->f + x->i - x->w) * TWELFTHS : NOT_SAID; }
static bool equal_costs(const struct closed_form *x) { return x->f == 1 && x->i == 1 && x->w == 1; }
static int64_t h2_idle(const struct closed_form *x)
{
	int64_t idle = (x->p - 1) * (x->f + x->i - 2 * x->w) * TWELFTHS;

	return x->m < 2 * x->p - 1 || x->w > x->f || x->w > x->i ? NOT_SAID : idle > 0 ? idle : 0;
}
static int64_t v_idle(const struct closed_form *x)
{
	return !equal_costs(x) ? NOT_SAID : x->m >= 2 * x->p - 1 ? 0 : x->m == x->p ? (x->p - 1) * TWELFTHS :
		NOT_SAID;
}
static int64_t half_idle(const struct closed_form *x) { return !equal_costs(x) ? NOT_SAID : x->p % 2 ?
	21 * (x->p - 1) : 21 * x->p - 12; }
static int64_t min_idle(const struct closed_form *x)
{
	int64_t idle = x->p % 3 ? 24 * x->p - 30 : 24 * x->p - 18;

	return !equal_costs(x) ? NOT_SAID : idle > 0 ? idle : 0;
}
static int64_t dual_idle(const struct closed_form *x) { return equal_costs(x) ? (x->p - 1) * TWELFTHS :
	NOT_SAID; }

/* makespan where it is not m (F+I+W) + span idle */
static int64_t h2_time(const struct closed_form *x) { return equal_costs(x) &&
	x->m >= 2 * x->p - 1 ? (3 * x->m + x->p - 1) * TWELFTHS : NOT_SAID; }
static int64_t v_time(const struct closed_form *x) { return equal_costs(x) &&
	x->m >= 2 * x->p - 1 ? 3 * x->m * TWELFTHS + 6 * (x->p - 1) : NOT_SAID; }

/* activations of rank r in chunks */
static int64_t all_live(const struct closed_form *x, int64_t r) { (void)r; return x->m; }
static int64_t behind(const struct closed_form *x, int64_t r) { return x->p - r < x->m ? x->p - r : x->m; }
static int64_t interleaved_live(const struct closed_form *x, int64_t r)
{
	return x->m % x->p || x->m < 2 * x->p ? NOT_SAID : 2 * (x->p - 1 - r) + (x->v - 1) * x->p + 1;
}
static int64_t p_live(const struct closed_form *x, int64_t r) { (void)r; return x->p * x->v; }
/* below 2p - 1 virtual nodes there are too few to fill all ranks */
static int64_t v_live(const struct closed_form *x, int64_t r) { (void)r;
	return x->m >= 2 * x->p - 1 ? 2 * x->p : NOT_SAID; }
static int64_t h2_live(const struct closed_form *x, int64_t r) { (void)r;
	return x->m >= 2 * x->p - 1 ? 2 * x->p - 1 : NOT_SAID; }
/* of the worst rank */
static int64_t half_worst(const struct closed_form *x) { return 2 * (x->p / 2 + 1); }
static int64_t min_worst(const struct closed_form *x) { return 2 * ((x->p + 1) / 3 + 1); }
static int64_t dual_worst(const struct closed_form *x) { return 2 * x->p + 1; }

static const struct {
	const char *name;
	uint32_t v;
	int64_t (*idle)(const struct closed_form *x), (*time)(const struct closed_form *x);
	int64_t (*live)(const struct closed_form *x, int64_t r);
	int64_t (*worst)(const struct closed_form *x);
} forms[] = {
	{ "gpipe", 1, drained, NULL, all_live, NULL }, { "1f1b", 1, drained, NULL, behind, NULL },
	{ "interleaved", 2, shared, NULL, interleaved_live, NULL }, { "interleaved", 3, shared, NULL, interleaved_live, NULL },
	{ "interleaved", 4, shared, NULL, interleaved_live, NULL },
	{ "zb-h1", 1, h1_idle, NULL, p_live, NULL }, { "zb-h2", 1, h2_idle, h2_time, h2_live, NULL },
	{ "zb-v", 2, v_idle, v_time, v_live, NULL }, { "v-half", 2, half_idle, NULL, NULL, half_worst },
	{ "v-min", 2, min_idle, NULL, NULL, min_worst }, { "dualpipev", 2, dual_idle, NULL, NULL, dual_worst },
};

static void check_form(size_t k, struct closed_form x)
{
	struct hd_sim sim = simulate_named(forms[k].name, (uint32_t)x.p, (uint32_t)x.m, (uint32_t)x.v,
		x.f * U, x.i * U, x.w * U, 0);
	int64_t twelfth = U / TWELFTHS * sim.per_ps, idle = forms[k].idle(&x);
	int64_t time = forms[k].time ? forms[k].time(&x) : idle == NOT_SAID ? NOT_SAID :
		x.m * (x.f + x.i + x.w) * TWELFTHS + idle;
	char what[120];

	snprintf(what, sizeof what, "%s p %d m %d v %d costs %d,%d,%d", forms[k].name, (int)x.p, (int)x.m,
		(int)x.v, (int)x.f, (int)x.i, (int)x.w);
	CHECK(idle == NOT_SAID || sim.span_idle == idle * twelfth, "%s: span idle %g, not %d twelfths", what,
		(double)sim.span_idle / (double)twelfth, (int)idle);
	CHECK(time == NOT_SAID || sim.makespan == time * twelfth, "%s: %g, not %d twelfths", what,
		(double)sim.makespan / (double)twelfth, (int)time);
	for (uint32_t r = 0; r < x.p; r++) {
		int64_t live = forms[k].live ? forms[k].live(&x, r) : NOT_SAID;
		CHECK(sim.rank[r].busy == x.m * (x.f + x.i + x.w) * TWELFTHS * twelfth, "%s", what);
		CHECK(live == NOT_SAID || sim.rank[r].peak == live, "%s: rank %u holds %u, not %d", what, r,
			sim.rank[r].peak, (int)live);
	}
	CHECK(!forms[k].worst || worst(&sim) == forms[k].worst(&x), "%s: %u", what, worst(&sim));
}

static void closed_forms_hold(void **state)
{
	static const int64_t costs[][3] = { { 1, 1, 1 }, { 2, 3, 1 }, { 1, 2, 1 }, { 3, 5, 2 } };

	(void)state;
	for (size_t k = 0; k < sizeof forms / sizeof *forms; k++)
		for (uint32_t p = 1; p <= 12; p++)
			for (uint32_t m = p; m <= 4 * p; m++)
				for (size_t c = 0; c < sizeof costs / sizeof *costs; c++) {
					if (!strcmp(forms[k].name, "dualpipev") && m < 2 * p)
						continue;
					check_form(k, (struct closed_form){ p, m, forms[k].v, costs[c][0],
						costs[c][1], costs[c][2] });
					hd_arena_reset(&arena);
				}
}

static void interleaving_is_never_above_its_closed_form(void **state)
{
	(void)state;
	for (uint32_t p = 1; p <= 12; p++)
		for (uint32_t m = 1; m <= 4 * p; m++)
			for (uint32_t v = 2; v <= 4; v++) {
				struct hd_sim sim = simulate_named("interleaved", p, m, v, U, U, U, 0);
				if (m >= p)
					CHECK(sim.span_idle <= (int64_t)(p - 1) * 3 * U, "p %u m %u v %u: %g",
						p, m, v, hd_sim_units(&sim, sim.span_idle));
				hd_arena_reset(&arena);
			}
}

static void delayed_updates_lose_nothing_in_steady_state(void **state)
{
	static const char *const names[] = { "stash", "vsync", "2bw" };
	const struct hd_rank_costs costs = { U, 2 * U, U, 0 };

	(void)state;
	for (size_t k = 0; k < 3; k++)
		for (uint32_t p = 1; p <= 8; p++)
			for (uint32_t m = p; m <= 2 * p; m++) {
				struct hd_sim sim = simulate_named(names[k], p, m, 1, costs.f, costs.i,
					costs.w, 0);
				assert_true(sim.steps >= 4);
				CHECK(hd_sim_steady_bubble(&sim, &costs) == 0, "%s p %u m %u: %g", names[k],
					p, m, hd_sim_steady_bubble(&sim, &costs));
				for (uint32_t r = 0; r < p; r++)
					assert_int_equal(sim.rank[r].peak, p - r);
			}
	hd_arena_reset(&arena);
}

/* ---- a clock that ticks: every rank looks at each tick whether its next instruction may begin */

enum { VNS = 256 };      /* of all steps of delayed updates */
struct tick_state { int64_t act[16][VNS], grad[16][VNS]; uint8_t act_by[16][VNS], grad_by[16][VNS]; };

static bool there(int64_t end, uint8_t by, uint32_t r, int64_t hop, int64_t now) { return end >= 0 &&
	end + (by == r ? 0 : hop) <= now; }

static int64_t tick(const struct hd_schedule *s, const int64_t cost[HD_INS_END], int64_t hop)
{
	struct tick_state *t = malloc(sizeof *t);
	int64_t until[16] = { 0 }, last = 0;
	uint32_t at[16] = { 0 }, left = 0;

	memset(t->act, 0xff, sizeof t->act);
	memset(t->grad, 0xff, sizeof t->grad);
	for (uint32_t r = 0; r < s->nranks; r++)
		left += s->list[r].len;
	for (int64_t now = 0; left && now < 100000; now++)
		for (uint32_t r = 0; r < s->nranks; r++)
			while (at[r] < s->list[r].len && until[r] <= now) {
				const struct hd_ins *x = &s->list[r].at[at[r]];
				bool f = x->op == HD_INS_F, w = x->op == HD_INS_W;
				uint32_t from = f ? x->stage - 1u : x->stage + 1u;
				if (f && x->stage && !there(t->act[from][x->vn], t->act_by[from][x->vn], r,
					hop, now))
					break;
				if (!f && !w && from < s->nstages &&
					!there(t->grad[from][x->vn], t->grad_by[from][x->vn], r, hop, now))
					break;
				until[r] = now + cost[x->op];
				last = until[r] > last ? until[r] : last;
				if (f) {
					t->act[x->stage][x->vn] = until[r];
					t->act_by[x->stage][x->vn] = (uint8_t)r;
				} else if (!w) {
					t->grad[x->stage][x->vn] = until[r];
					t->grad_by[x->stage][x->vn] = (uint8_t)r;
				}
				at[r]++;
				left--;
			}
	free(t);
	return left ? -1 : last;
}

static void a_ticking_clock_agrees(void **state)
{
	static const int64_t costs[][4] = { { 1, 1, 1, 0 }, { 3, 5, 2, 1 }, { 2, 1, 4, 7 } };

	(void)state;
	for (const struct hd_schedule_kind *k = hd_schedule_kinds; k->name; k++)
		for (uint32_t p = 1; p <= 5; p++)
			for (uint32_t m = 2 * p; m <= 2 * p + 3; m++)
				/* no pairs */
				for (size_t c = 0; c < 3 && strcmp(k->name, "dualpipev"); c++) {
					const int64_t *x = costs[c];
					struct hd_sim sim = simulate_named(k->name, p, m, 0, x[0], x[1], x[2],
						x[3]);
					const int64_t cost[HD_INS_END] = { [HD_INS_F] = x[0],
						[HD_INS_B] = x[1] + x[2], [HD_INS_I] = x[1],
						[HD_INS_W] = x[2] };
					CHECK(sim.makespan == tick(&sim.ran, cost, x[3] * sim.per_ps),
						"%s p %u m %u costs %zu", k->name, p, m, c);
					hd_arena_reset(&arena);
				}
}

/* Never slower than the closed forms that hold no more; how many of them it beats. */
static uint32_t check_search(uint32_t p, uint32_t m, uint32_t v, uint32_t cap, const int64_t x[4])
{
	static const char *const closed[2][3] = { { "1f1b", "zb-h1", "zb-h2" },
		{ "zb-v", "v-half", "v-min" } };
	const struct hd_schedule_ask ask = { .name = "zb-auto", .p = p, .m = m, .v = v, .cap = cap,
		.costs = { x[0], x[1], x[2], x[3] } };
	struct hd_schedule s;
	struct hd_diag diag = { "" };
	uint32_t wins = 0;

	if (hd_schedule_make(&s, &ask, &arena, &diag)) {
		CHECK(cap && strstr(diag.text, "the nearest that works"), "p %u m %u v %u cap %u: %s", p, m,
			v, cap, diag.text);
		return 0;
	}
	struct hd_sim found = simulate(&s, x[0], x[1], x[2], x[3]);
	CHECK(!cap || worst(&found) <= cap, "p %u m %u v %u cap %u: %u", p, m, v, cap, worst(&found));
	for (int k = 0; k < 3; k++) {
		struct hd_sim other = simulate_named(closed[v - 1][k], p, m, 0, x[0], x[1], x[2], x[3]);
		bool fits = !cap || worst(&other) <= cap;
		CHECK(!fits || found.makespan <= other.makespan, "p %u m %u v %u cap %u: %s is faster", p, m,
			v, cap, closed[v - 1][k]);
		wins += fits && found.makespan < other.makespan;
	}
	return wins;
}

static void the_search_is_never_worse_than_a_closed_form(void **state)
{
	static const int64_t costs[][4] = { { 1, 1, 1, 0 }, { 10, 12, 8, 1 }, { 5, 4, 9, 2 } };
	uint32_t wins = 0;

	(void)state;
	for (uint32_t p = 1; p <= 4; p++)
		for (uint32_t m = p; m <= 2 * p + 1; m += 2)
			for (uint32_t v = 1; v <= 2; v++)
				for (size_t c = 0; c < 3; c++)
					for (uint32_t cap = 0; cap <= 2 * p * v; cap += v + 1) {
						wins += check_search(p, m, v, cap, costs[c]);
						hd_arena_reset(&arena);
					}
	assert_true(wins > 393);                  /* as many without the swaps of neighbours */
}

static void time_is_monotone_in_every_cost(void **state)
{
	(void)state;
	for (const struct hd_schedule_kind *k = hd_schedule_kinds; k->name; k++) {
		struct hd_sim base = simulate_named(k->name, 4, 9, 0, 5, 4, 3, 2);
		assert_true(base.makespan <= simulate_named(k->name, 4, 9, 0, 6, 4, 3, 2).makespan);
		assert_true(base.makespan <= simulate_named(k->name, 4, 9, 0, 5, 5, 3, 2).makespan);
		assert_true(base.makespan <= simulate_named(k->name, 4, 9, 0, 5, 4, 4, 2).makespan);
		assert_true(base.makespan <= simulate_named(k->name, 4, 9, 0, 5, 4, 3, 3).makespan);
	}
	hd_arena_reset(&arena);
}

static void what_never_ends_is_said(void **state)
{
	static const struct { const char *text, *want; } cases[] = {
		{ "0: F0.0 B0.0\n1: B1.0 F1.0\n", "it never ends: rank 0 waits at #1 B0.0, rank 1 at #0 B1.0" },
		{ "0: F1.0 F0.0\n", "it never ends: rank 0 waits at #0 F1.0 for what no rank makes" },
		{ "0: F0.0 B0.-1\n", "rank 0, #1: virtual node -1 of stage 0 does not exist in this step (m = 1)" },
		{ "0: F60000.2000000000\n", "60001 stages of 2000000001 virtual nodes need more than its 1 instructions" },
		{ "0:\n", "it has no instruction" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_schedules all;
		struct hd_diag diag = { "" };
		struct hd_sim sim;
		assert_int_equal(hd_schedules_parse(&all, cases[i].text, strlen(cases[i].text), "s", &arena,
			NULL), HD_OK);
		CHECK(hd_simulate(&sim, &all.at[0], &(struct hd_sim_ask){ .costs = HD_UNIT_COSTS }, &arena,
			&diag) == HD_E_BADPLAN, "%s", cases[i].text);
		CHECK(!strcmp(diag.text, cases[i].want), "%s", diag.text);
	}
	struct hd_schedule s;
	struct hd_sim sim;
	s = hd_named_schedule("1f1b", 2, 4, 0);
	assert_int_equal(hd_simulate(&sim, &s, &(struct hd_sim_ask){ .costs = { INT64_MAX / 16, 1, 1, 1 } },
		&arena, NULL), HD_E_INVAL);
	assert_int_equal(hd_simulate(&sim, &s, &(struct hd_sim_ask){ .costs = { 1, -1, 1, 1 } }, &arena,
		NULL), HD_E_INVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stored_figures_are_reproduced),
		cmocka_unit_test(the_published_table_is_reproduced),
		cmocka_unit_test(closed_forms_hold),
		cmocka_unit_test(interleaving_is_never_above_its_closed_form),
		cmocka_unit_test(delayed_updates_lose_nothing_in_steady_state),
		cmocka_unit_test(a_ticking_clock_agrees),
		cmocka_unit_test(the_search_is_never_worse_than_a_closed_form),
		cmocka_unit_test(time_is_monotone_in_every_cost),
		cmocka_unit_test(what_never_ends_is_said),
	};
	return cmocka_run_group_tests(tests, make_arena, drop_arena);
}
