/* Bounds against every place of all boundaries, each simulated: none is ever missed, and they are worth
 * something. */
#include "planner/search/bound.h"

#include <string.h>

#include "planner/search/build.h"
#include "tests/planning.h"
#include "tests/check.h"

struct rig {
	struct hd_profile profile; struct hd_cuts cuts; struct hd_cut_sums sums;
	struct hd_cluster cluster; struct hd_cluster_kind kind[2]; uint32_t of[8];
	struct hd_auto_ask ask;
	struct hd_auto_space space;
	struct hd_arena work, scratch, bounds;
	struct hd_diag diag;
};

static void make(struct rig *x, struct hd_dice *d)
{
	static const double rates[] = { 1e12, 1e10, 1e9, 1e8 };
	uint32_t n = 5 + hd_roll(d, 3), weights = hd_roll(d, 2) ? 512 : 8;
	bool tied = hd_roll(d, 4) == 0, even = hd_roll(d, 3) == 0;      /* even: equal stages are the best */

	*x = (struct rig){ .kind = { { "a", 1, 0 }, { "b", 0.5, 0 } } };
	x->profile = hd_chain_profile(n);
	for (uint32_t v = 0; v < n; v++) {
		struct hd_profile_node *node = &x->profile.node[v];
		node->out[0] = (1 + hd_roll(d, 64)) * 2560;
		node->f.p50_ns = 1000 * hd_roll(d, 32);
		node->i.p50_ns = 1000 * hd_roll(d, 32);
		node->w.p50_ns = 1000 * hd_roll(d, 32);
		node->param = 3840 * hd_roll(d, weights);
		if (even && v)
			node->f = x->profile.node[0].f, node->i = x->profile.node[0].i,
			node->w = x->profile.node[0].w, node->out[0] = x->profile.node[0].out[0];
		node->tied = tied && (v == 0 || v == 2) ? "w" : "";
		if (tied && v == 2)
			node->param = x->profile.node[0].param;
	}
	hd_sums_of(&x->sums, &x->cuts, &x->profile, (struct hd_cuts_how){ 0 });
	x->cluster = (struct hd_cluster){ .kind = x->kind, .nkinds = 2, .nlevels = 2, .device_kind = x->of,
		.ndevices = 6 };
	x->cluster.level[0] = (struct hd_cluster_level){ "in", 3, rates[hd_roll(d, 3)],
		hd_roll(d, 2) * 50000000 };
	x->cluster.level[1] = (struct hd_cluster_level){ "out", 2, rates[hd_roll(d, 4)],
		hd_roll(d, 2) * 500000000 };
	for (uint32_t k = 0, alike = hd_roll(d, 2); k < 6; k++)
		x->of[k] = alike ? 0 : hd_roll(d, 2);
	x->ask.vns = 2 + hd_roll(d, 12);
	hd_arena_init(&x->work, 0);
	hd_arena_init(&x->scratch, 0);
	hd_arena_init(&x->bounds, 0);
	x->space = (struct hd_auto_space){ .cluster = &x->cluster, .ask = &x->ask, .sums = &x->sums,
		.work = &x->work, .scratch = &x->scratch,
		.diag = &x->diag, .memo = hd_arena_take(&x->work, HD_AUTO_MEMO, sizeof *x->space.memo) };
	assert_int_equal(hd_steady_table_make(&x->space.whole, &x->sums, HD_AUTO_CUTS, &x->work, &x->diag),
		HD_OK);
	assert_int_equal(hd_auto_shard(&x->space, 1), HD_OK);
}

static void drop(struct rig *x)
{
	hd_arena_finish(&x->bounds);
	hd_arena_finish(&x->scratch);
	hd_arena_finish(&x->work);
	hd_arena_reset(&arena);
}

/* A shape that the planner goes through; false: it does not work with these virtual nodes. */
static bool draw(struct rig *x, struct hd_dice *d, struct hd_auto_cand *c)
{
	uint32_t rows = 0, p = 2 + hd_roll(d, 2), copies = 1 + hd_roll(d, 6 / p);
	bool unfit;

	while (hd_auto_rows[rows].update == HD_UPDATE_FLUSH)
		rows++;
	const struct hd_auto_row *row = &hd_auto_rows[1 + hd_roll(d, rows - 1)];
	*c = (struct hd_auto_cand){ .row = row, .shape = { row->schedule, 1, p, copies, row->vmin,
		(enum hd_auto_place)hd_roll(d, 2) } };
	if (copies * p <= 6 && p * row->vmin <= x->cuts.n && hd_roll(d, 5))
		return hd_auto_estimate(&x->space, c, &unfit) == HD_OK;
	*c = (struct hd_auto_cand){ .shape = { "1f1b-rr", 1, p, 0, 1, HD_AUTO_WIDE } };
	c->stages = (struct hd_steady){ .nstages = p, .stage = hd_arena_take(&x->work, p,
		sizeof *c->stages.stage) };
	for (uint32_t s = 0; s < p; s++)
		c->stages.stage[s].replicas = 1 + hd_roll(d, 6 / p);
	return true;
}

/* All places of the boundaries from stage `stage` on: the least time, and of each that its bound is no
 * more. */
static void try_all(struct rig *x, struct hd_auto_cand *c, uint32_t stage, int64_t *best)
{
	struct hd_steady_stage *at = c->stages.stage;
	uint32_t n = c->stages.nstages;

	if (stage < n) {
		for (at[stage].first = at[stage - 1].first + 1; at[stage].first + (n - stage) <= x->cuts.n;
			at[stage].first++)
			try_all(x, c, stage + 1, best);
		return;
	}
	struct hd_auto_plan plan;
	bool late;
	double bound;
	for (uint32_t s = 0; s < n; s++) {
		at[s].last = (s + 1 < n ? at[s + 1].first : x->cuts.n) - 1;
		at[s].recompute = false;
	}
	hd_arena_reset(&x->scratch);
	CHECK(hd_auto_build(&plan, &x->space, c, &x->scratch, &x->diag) == HD_OK, "%s", x->diag.text);
	CHECK(hd_auto_judge(&plan, &x->space, HD_AUTO_TO_PROVE, &late, &x->scratch, &x->diag) == HD_OK, "%s",
		x->diag.text);
	assert_int_equal(hd_auto_bound(&x->space, c, &x->bounds, &bound), HD_OK);
	hd_arena_reset(&x->bounds);
	CHECK(bound <= (double)plan.makespan_ps, "%s p %u d %u: %lld ps are bounded by %.0f",
		c->shape.schedule, c->shape.p, c->shape.d,
		(long long)plan.makespan_ps, bound);
	*best = plan.makespan_ps < *best ? plan.makespan_ps : *best;
}

static void no_place_of_all_is_excluded_that_is_as_fast_as_was_asked(void **state)
{
	uint32_t drawn = 0, sharp = 0, sharper = 0;

	(void)state;
	for (uint32_t seed = 0; seed < DRAWS(600); seed++) {
		struct hd_dice d = { seed };
		struct hd_auto_cand c;
		struct rig x;
		bool may, half, most;
		int64_t best = INT64_MAX;
		make(&x, &d);
		if (draw(&x, &d, &c)) {
			try_all(&x, &c, 1, &best);
			assert_int_equal(hd_auto_may_take(&x.space, &c, best, &x.bounds, &may), HD_OK);
			CHECK(may, "%u: %s p %u d %u: %lld ps are said to be out of reach", seed,
				c.shape.schedule, c.shape.p, c.shape.d, (long long)best);
			assert_int_equal(hd_auto_may_take(&x.space, &c, best / 2, &x.bounds, &half), HD_OK);
			assert_int_equal(hd_auto_may_take(&x.space, &c, best / 5 * 4, &x.bounds, &most),
				HD_OK);
			drawn++;
			sharp += !half;
			sharper += !most;
		}
		drop(&x);
	}
	print_message("%u shapes; half of the best time is excluded of %u, four fifths of %u\n", drawn, sharp,
		sharper);
	CHECK(drawn > DRAWS(600) / 2 && sharp > drawn / 2 &&
		(SANITIZED || sharper * 100 > drawn * 25),
		"%u shapes; half of the best time is excluded of %u, four fifths of %u", drawn, sharp,
		sharper);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(no_place_of_all_is_excluded_that_is_as_fast_as_was_asked,
			make_arena, drop_arena),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
