#include "scheduler/estimate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/philox.h"
#include "scheduler/sched_policy.h"
#include "tests/shared_file.h"

static struct hd_arena arena;

static double draw(uint32_t seed, uint32_t what, uint32_t i) { return (hd_philox((uint32_t[4]){ what, i, 7,
	7 }, seed).word[0] + 0.5) * 0x1p-32; }

/* ---- the oracle: the same problem, written down as equations and eliminated with full pivots, in long
 * double ---- */

enum { MAX_RANK = 4, MAX_ROWS = 9, MAX_COLS = 12 };

static void eliminate(long double a[MAX_RANK][MAX_RANK + 1], uint32_t n)
{
	for (uint32_t p = 0; p < n; p++) {
		uint32_t best = p;
		for (uint32_t i = p; i < n; i++)
			if (fabsl(a[i][p]) > fabsl(a[best][p]))
				best = i;
		for (uint32_t c = 0; c <= n; c++) {
			long double swap = a[p][c];
			a[p][c] = a[best][c];
			a[best][c] = swap;
		}
		for (uint32_t i = 0; i < n; i++) {
			long double factor = i == p ? 0 : a[i][p] / a[p][p];
			for (uint32_t c = p; c <= n; c++)
				a[i][c] -= factor * a[p][c];
		}
	}
}

struct problem { uint32_t rows, cols, rank; double x[MAX_ROWS][MAX_COLS]; bool known[MAX_ROWS][MAX_COLS];
	double u[MAX_ROWS][MAX_RANK],
	v[MAX_COLS][MAX_RANK]; };

static void naive_side(struct problem *p, double mu, bool of_rows)
{
	for (uint32_t r = 0; r < (of_rows ? p->rows : p->cols); r++) {
		long double a[MAX_RANK][MAX_RANK + 1] = { 0 };
		double *own = of_rows ? p->u[r] : p->v[r];
		for (uint32_t c = 0; c < (of_rows ? p->cols : p->rows); c++) {
			uint32_t i = of_rows ? r : c, k = of_rows ? c : r;
			const double *other = of_rows ? p->v[c] : p->u[c];
			for (uint32_t m = 0; m < p->rank && p->known[i][k]; m++) {
				for (uint32_t n = 0; n < p->rank; n++)
					a[m][n] += (long double)other[m] * other[n];
				a[m][p->rank] += (long double)other[m] * p->x[i][k];
			}
		}
		for (uint32_t m = 0; m < p->rank; m++)
			a[m][m] += mu;
		eliminate(a, p->rank);
		for (uint32_t m = 0; m < p->rank; m++)
			own[m] = (double)(a[m][p->rank] / a[m][m]);
	}
}

static void naive(struct problem *p, double mu)
{
	long double last[MAX_ROWS][MAX_COLS] = { 0 };

	for (int turn = 0; turn < HD_COMPLETE_TURNS; turn++) {
		long double moved = 0;
		naive_side(p, mu, true);
		naive_side(p, mu, false);
		for (uint32_t i = 0; i < p->rows; i++)
			for (uint32_t c = 0; c < p->cols; c++) {
				long double product = 0;
				for (uint32_t m = 0; m < p->rank; m++)
					product += (long double)p->u[i][m] * p->v[c][m];
				moved += (product - last[i][c]) * (product - last[i][c]);
				last[i][c] = product;
			}
		if (turn && sqrtl(moved) / (p->rows * p->cols) < 1e-3L)
			break;
	}
	for (uint32_t i = 0; i < p->rows; i++)
		for (uint32_t c = 0; c < p->cols; c++)
			if (!p->known[i][c])
				p->x[i][c] = (double)(last[i][c] < 0 ? 0 : last[i][c] > 1 ? 1 : last[i][c]);
}

static void completion_does_what_the_equations_say(void **unused)
{
	(void)unused;
	for (uint32_t seed = 0; seed < 200; seed++) {
		struct problem p = { .rows = 1 + seed % MAX_ROWS, .cols = 1 + (seed / 3) % MAX_COLS,
			.rank = 1 + seed % MAX_RANK };
		double x[MAX_ROWS * MAX_COLS], u[MAX_ROWS * MAX_RANK], v[MAX_COLS * MAX_RANK];
		bool known[MAX_ROWS * MAX_COLS];
		for (uint32_t i = 0; i < p.rows * p.cols; i++) {
			known[i] = p.known[i / p.cols][i % p.cols] = draw(seed, 1, i) < 0.5;
			x[i] = p.x[i / p.cols][i % p.cols] = known[i] ? draw(seed, 2, i) : 0;
		}
		for (uint32_t i = 0; i < p.rows * p.rank; i++)
			u[i] = p.u[i / p.rank][i % p.rank] = draw(seed, 3, i);
		for (uint32_t i = 0; i < p.cols * p.rank; i++)
			v[i] = p.v[i / p.rank][i % p.rank] = draw(seed, 4, i);
		naive(&p, 0.01);
		assert_int_equal(hd_complete(x, known, p.rows, p.cols, p.rank, 0.01, u, v, &arena, NULL),
			HD_OK);
		for (uint32_t i = 0; i < p.rows * p.cols; i++)
			CHECK(fabs(x[i] - p.x[i / p.cols][i % p.cols]) < 1e-6,
				"seed %u, cell %u: %.9g, not %.9g", seed, i, x[i],
				p.x[i / p.cols][i % p.cols]);
	}
}

/* A matrix of rank 2 with two of three cells known comes back. */
static void a_matrix_of_low_rank_is_found(void **unused)
{
	enum { ROWS = 30, COLS = 40, RANK = 4 };
	static double x[ROWS * COLS], full[ROWS * COLS], u[ROWS * RANK], v[COLS * RANK];
	static bool known[ROWS * COLS];
	double worst = 0;

	(void)unused;
	for (uint32_t i = 0; i < ROWS * COLS; i++) {
		full[i] = 0.45 * draw(1, 1, i / COLS) + 0.5 * draw(1, 2, i / COLS) * draw(1, 3, i % COLS);
		known[i] = draw(1, 4, i) < 0.66;
		x[i] = known[i] ? full[i] : 0;
	}
	for (uint32_t i = 0; i < ROWS * RANK; i++)
		u[i] = draw(1, 5, i);
	for (uint32_t i = 0; i < COLS * RANK; i++)
		v[i] = draw(1, 6, i);
	assert_int_equal(hd_complete(x, known, ROWS, COLS, RANK, 1e-4, u, v, &arena, NULL), HD_OK);
	for (uint32_t i = 0; i < ROWS * COLS; i++) {
		if (known[i])
			assert_true(x[i] == full[i]);
		worst = fmax(worst, fabs(x[i] - full[i]));
	}
	CHECK(worst < 0.1, "a cell is off by %g", worst);
}

/* ---- on the published rates ---- */

static bool read_rates(struct hd_rates *rates)
{
	const struct hd_json *json = shared_json("data/gavel/throughputs/simulation_throughputs.json",
		&arena);

	if (json)
		assert_int_equal(hd_rates_read(rates, json, &arena, NULL), HD_OK);
	return json;
}

static struct hd_estimator *estimate(const struct hd_rates *rates, struct hd_estimate_setting set)
{
	struct hd_estimator *e;
	struct hd_diag diag = { "" };

	CHECK(hd_estimator_create(&e, &set, rates, &diag) == HD_OK, "%s", diag.text);
	for (uint32_t k = 0; k < rates->nkinds; k++)
		if (rates->kind[k].scale == 1)
			hd_estimator_came(e, k);
	return e;
}

static void a_pair_that_is_known_is_not_estimated(void **unused)
{
	struct hd_estimate_account before, after;
	struct hd_rates r;
	uint64_t equal = 0;

	(void)unused;
	if (!read_rates(&r))
		skip();
	struct hd_estimator *e = estimate(&r, (struct hd_estimate_setting){ .q = 0.2, .references = 12,
		.seed = 1 });
	const struct hd_pair_table *table = hd_estimator_table(e);
	hd_estimator_account(e, &before);
	assert_true(before.ran == 0 && before.measured < before.pairs && before.error > 0);
	for (uint32_t a = 0; a < r.nkinds; a++)
		for (uint32_t b = 0; b < r.nkinds; b++)
			for (uint32_t t = 0; t < r.ntypes && r.kind[a].scale == r.kind[b].scale; t++) {
				size_t at = (((size_t)a * r.nkinds + b) * r.ntypes + t) * 2,
					back = (((size_t)b * r.nkinds + a) * r.ntypes + t) * 2;
				assert_true(table->rate[at] == table->rate[back + 1] &&
					table->rate[at + 1] == table->rate[back]);
				hd_estimator_ran(e, a, b, t);
				equal += table->rate[at] == r.pair[at] && table->rate[back] == r.pair[back];
			}
	hd_estimator_account(e, &after);
	assert_true(after.error == 0 && after.measured + after.ran == after.pairs &&
		after.measured == before.measured);
	assert_true(equal > 2000);
	hd_estimator_destroy(e);
}

/* All is known: nothing is left to estimate; and whoever is measured everywhere is matched to its like,
 * whatever the way. */
static void what_is_measured_whole_is_exact(void **unused)
{
	struct hd_estimate_account account;
	struct hd_rates r;

	(void)unused;
	if (!read_rates(&r))
		skip();
	struct hd_estimator *e = estimate(&r, (struct hd_estimate_setting){ .q = 0.2 });
	hd_estimator_account(e, &account);
	assert_true(account.error == 0);
	hd_estimator_destroy(e);
	struct hd_estimator *ours = estimate(&r, (struct hd_estimate_setting){ .q = 1, .references = 8,
		.seed = 3 });
	for (uint32_t k = 0; k < r.nkinds; k++) {
		double near = INFINITY, had = 0;
		uint32_t had_of = hd_estimator_reference(ours, k);
		/* by hand: over the columns of the references */
		for (uint32_t ref = 0; ref < r.nkinds; ref++) {
			double sum = 0;
			if (hd_estimator_reference(ours, ref) != ref || r.kind[ref].scale != r.kind[k].scale)
				continue;
			for (uint32_t b = 0; b < r.nkinds; b++)
				for (uint32_t t = 0; t < r.ntypes && r.kind[b].scale == r.kind[k].scale &&
					hd_estimator_reference(ours, b) == b; t++) {
					double own = hd_rates_alone(&r, k, t),
						its = hd_rates_alone(&r, ref, t);
					double x = own > 0 ? fmin(1,
						r.pair[(((size_t)k * r.nkinds + b) * r.ntypes + t) *
						2] / own) : 0;
					double y = its > 0 ? fmin(1,
						r.pair[(((size_t)ref * r.nkinds + b) * r.ntypes + t) *
						2] / its) : 0;
					double x_back = r.pair[(((size_t)b * r.nkinds + k) * r.ntypes + t) *
						2];
					double y_back = r.pair[(((size_t)b * r.nkinds + ref) * r.ntypes + t) *
						2];
					double of_b = hd_rates_alone(&r, b, t),
						back = of_b > 0 ? fmin(1, x_back / of_b) - fmin(1,
						y_back / of_b) : 0;
					sum += (x - y) * (x - y) + back * back;
				}
			near = fmin(near, sum);
			if (ref == had_of)
				had = sum;
		}
		CHECK(had <= near * (1 + 1e-9), "%s: its reference is %g away, another %g", r.kind[k].name,
			had, near);
	}
	hd_estimator_destroy(ours);
}

static double mean_error(const struct hd_rates *r, uint32_t references, double q, bool published)
{
	struct hd_estimate_account account;
	double sum = 0;
	enum { SEEDS = 8 };

	for (uint32_t seed = 0; seed < SEEDS; seed++) {
		struct hd_estimator *e = estimate(r, (struct hd_estimate_setting){ .q = q,
			.references = references, .seed = seed, .published = published });
		hd_estimator_account(e, &account);
		sum += account.error / SEEDS;
		hd_estimator_destroy(e);
	}
	return sum;
}

static void more_measurements_are_better_and_the_nearest_beats_the_angle(void **unused)
{
	struct hd_rates r;

	(void)unused;
	if (!read_rates(&r))
		skip();
	double sparse = mean_error(&r, 16, 0.05, false), fifth = mean_error(&r, 16, 0.2, false),
		half = mean_error(&r, 16, 0.5, false);
	double angle = mean_error(&r, 16, 0.2, true), many = mean_error(&r, 20, 0.2, false),
		many_angle = mean_error(&r, 20, 0.2, true);
	print_message("mean error of a pair: 16 of 26 references, q 0.05 %.4f, 0.2 %.4f, 0.5 %.4f; by the "
		"angle, 0.2 %.4f; 20 references %.4f, %.4f\n", sparse,
		fifth, half, angle, many, many_angle);
	assert_true(fifth < 0.10 && half < fifth && fifth < sparse && fifth < angle && many < fifth &&
		many < many_angle);
}

/* ---- what it does to a policy ---- */

static void make_state(struct hd_sched_state *s, const struct hd_rates *r, const struct hd_pair_table *table,
	uint32_t seed, uint32_t n)
{
	struct hd_sched_type *types = hd_arena_take(&arena, r->ntypes, sizeof *types);
	struct hd_sched_job *jobs = hd_arena_take(&arena, n, sizeof *jobs);
	uint32_t i = 0;

	assert_true(types && jobs);
	*s = (struct hd_sched_state){ .ntypes = r->ntypes, .njobs = n, .types = types, .jobs = jobs,
		.table = table };
	for (uint32_t t = 0; t < r->ntypes; t++)
		types[t] = (struct hd_sched_type){ .name = r->type[t], .n = 3, .price_usd_h = 1 };
	for (uint32_t k = 0; i < n; k++) {
		uint32_t kind = (uint32_t)(draw(seed, 9, k) * r->nkinds);
		if (r->kind[kind].scale == 1) {
			jobs[i] = (struct hd_sched_job){ .id = i, .kind = r->kind[kind].name, .ikind = kind,
				.scale = 1, .weight = 1, .steps_left = 1e6,
				.deadline_s = INFINITY, .entity = HD_SCHED_NONE,
				.rate = &r->alone[(size_t)kind * r->ntypes] };
			i++;
		}
	}
}

/* Steps/s and least normalised share of the shares, at other rates than they were made with. */
static double measure_at(const struct hd_sched_state *s, const struct hd_shares *out, double *e)
{
	double least = INFINITY;

	memset(e, 0, s->njobs * sizeof *e);
	for (uint32_t k = 0; k < out->nshapes; k++) {
		const struct hd_shape *shape = &out->shape[k];
		double rate[2] = { s->jobs[shape->member[0]].rate[shape->need[0].type], 0 };
		if (shape->nmembers == 2)
			assert_true(hd_sched_pair_rate(s, shape->member[0], shape->member[1],
				shape->need[0].type, rate) || (rate[0] = rate[1] = 0) == 0);
		for (int m = 0; m < shape->nmembers; m++)
			e[shape->member[m]] += out->x[k] * rate[m];
	}
	for (uint32_t i = 0; i < s->njobs; i++)
		least = fmin(least, e[i] / hd_sched_proportional(s, s->jobs[i].rate));
	return least;
}

static void solve(const struct hd_sched_state *state, struct hd_shares *out)
{
	struct hd_policy_setting set = { 0 };
	struct hd_policy *policy;

	assert_int_equal(hd_policy_parse(&set, "las-packed", NULL), HD_OK);
	assert_int_equal(hd_policy_create(&policy, &set, NULL), HD_OK);
	assert_int_equal(hd_policy_allocate(policy, state, &arena, out, NULL), HD_OK);
	hd_policy_destroy(policy);
}

enum { JOBS = 18, SEEDS = 10, TURNS = 6 };
struct learned { double lost[TURNS], off[TURNS], ran, measured; };

/* Jobs go as the shares say, so pairs that have a share are known at the next turn: two that do not fit on a
 * device together are found out so, too. */
static struct learned learn(const struct hd_rates *r, uint32_t references)
{
	const struct hd_pair_table truth = { r->nkinds, r->pair };
	struct learned l = { 0 };

	for (uint32_t seed = 0; seed < SEEDS; seed++) {
		struct hd_estimator *est = estimate(r, (struct hd_estimate_setting){ .q = 0.2,
			.references = references, .seed = seed });
		struct hd_sched_state known, guessed;
		struct hd_estimate_account account;
		struct hd_shares best, out;
		double e_true[JOBS], e_best[JOBS];
		make_state(&known, r, &truth, seed, JOBS);
		make_state(&guessed, r, hd_estimator_table(est), seed, JOBS);
		solve(&known, &best);
		double most = measure_at(&known, &best, e_best);
		assert_true(fabs(most - best.objective) <= 1e-6 * most);
		for (int turn = 0; turn < TURNS; turn++) {
			solve(&guessed, &out);
			l.lost[turn] += (1 - measure_at(&known, &out, e_true) / most) / SEEDS;
			for (uint32_t i = 0; i < JOBS; i++)
				l.off[turn] += fabs(e_true[i] - out.e[i]) / fmax(out.e[i],
					e_true[i]) / JOBS / SEEDS;
			for (uint32_t k = 0; k < out.nshapes; k++)
				if (out.shape[k].nmembers == 2)
					hd_estimator_ran(est, known.jobs[out.shape[k].member[0]].ikind,
						known.jobs[out.shape[k].member[1]].ikind,
						out.shape[k].need[0].type);
		}
		hd_estimator_account(est, &account);
		l.ran += (double)account.ran / SEEDS;
		l.measured += (double)account.measured / (double)account.pairs / SEEDS;
		hd_estimator_destroy(est);
	}
	for (int turn = 0; turn < TURNS; turn++)
		print_message("max-min of 18 jobs on 9 devices, %u references, turn %d: objective %.2f %% "
			"below all pairs known, "
			"effective rates off by %.2f %%\n", references, turn, 100 * l.lost[turn],
			100 * l.off[turn]);
	print_message("%.0f %% measured, %.0f cells became known by running\n", 100 * l.measured, l.ran);
	return l;
}

/* With 8 of 26 references a fifth of all pairs is measured, themselves counted in. */
static void policies_soon_do_nearly_as_well_as_with_all_pairs_known(void **unused)
{
	struct hd_rates r;

	(void)unused;
	if (!hd_policy_has_lp() || !read_rates(&r))
		skip();
	struct learned many = learn(&r, 16), few = learn(&r, 8);
	assert_true(many.off[0] <= 0.10 && many.lost[0] > 0.05 && many.lost[2] <= 0.05 &&
		many.lost[TURNS - 1] <= 0.05);
	assert_true(few.measured < 0.25 && few.off[0] <= 0.10 && few.lost[TURNS - 1] < few.lost[0]);
}

static void senseless_settings_are_refused(void **unused)
{
	struct hd_rates none = { 0 };
	struct hd_estimator *e;
	struct hd_diag diag = { "" };

	(void)unused;
	for (int k = 0; k < 3; k++)
		assert_int_equal(hd_estimator_create(&e, &(struct hd_estimate_setting){ .q = (double[]){ 0,
			1.5, NAN }[k] }, &none, NULL), HD_E_INVAL);
	assert_int_equal(hd_estimator_create(&e, &(struct hd_estimate_setting){ .q = 1 }, &none, &diag),
		HD_E_INVAL);
	assert_non_null(strstr(diag.text, "no pairs"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(completion_does_what_the_equations_say),
		cmocka_unit_test(a_matrix_of_low_rank_is_found),
		cmocka_unit_test(a_pair_that_is_known_is_not_estimated),
		cmocka_unit_test(what_is_measured_whole_is_exact),
		cmocka_unit_test(more_measurements_are_better_and_the_nearest_beats_the_angle),
		cmocka_unit_test(policies_soon_do_nearly_as_well_as_with_all_pairs_known),
		cmocka_unit_test(senseless_settings_are_refused),
	};
	hd_arena_init(&arena, (size_t)1 << 30);
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	hd_arena_finish(&arena);
	return failed;
}
