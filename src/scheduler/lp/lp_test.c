/* The oracle is a hand-made example, and all vertices of small random programs. */
#include "scheduler/lp.h"

#include <math.h>
#include <string.h>

#include "base/philox.h"
#include "tests/check.h"

#define INF INFINITY

static struct hd_lp *built(bool maximise)
{
	if (!hd_lp_built())
		SKIP("no solver of linear programs in this build (coinor-libclp-dev)");
	return hd_lp_new(maximise);
}

/* max 3a + 2b, a + b <= 4, a + 3b <= 7, a <= 3: (3, 1), 11; one more of the first row is worth 2, of the
 * column's bound 1. */
static void signs_are_those_of_the_header(void **state)
{
	static const double lo[] = { 0, 0 }, hi[] = { 3, INF }, cost[] = { 3, 2 }, row_lo[] = { -INF, -INF },
		row_hi[] = { 4, 7 };
	static const uint32_t start[] = { 0, 2, 4 }, idx[] = { 0, 1, 0, 1 };
	static const double val[] = { 1, 1, 1, 3 };
	double minus[] = { -3, -2 };
	(void)state;

	for (int maximise = 0; maximise < 2; maximise++) {
		struct hd_lp *lp = built(maximise);
		struct hd_lp_result r;
		double sign = maximise ? 1 : -1;
		assert_int_equal(hd_lp_cols(lp, 2, lo, hi, maximise ? cost : minus, NULL, NULL, NULL), HD_OK);
		assert_int_equal(hd_lp_rows(lp, 2, row_lo, row_hi, start, idx, val), HD_OK);
		assert_int_equal(hd_lp_solve(lp, NULL, &r), HD_OK);
		CHECK(r.status == HD_LP_OPTIMAL && fabs(r.objective - sign * 11) < 1e-9, "%s %g",
			hd_lp_status_text(r.status), r.objective);
		CHECK(fabs(r.x[0] - 3) < 1e-9 && fabs(r.x[1] - 1) < 1e-9, "%g %g", r.x[0], r.x[1]);
		CHECK(fabs(r.dual[0] - sign * 2) < 1e-9 && fabs(r.dual[1]) < 1e-9, "%g %g", r.dual[0],
			r.dual[1]);
		CHECK(fabs(r.reduced[0] - sign) < 1e-9 && fabs(r.reduced[1]) < 1e-9, "%g %g", r.reduced[0],
			r.reduced[1]);
		hd_lp_free(lp);
	}
}

static void edits_and_additions_count_as_if_built_anew(void **state)
{
	static const double lo[] = { 0, 0 }, hi[] = { 3, INF }, cost[] = { 3, 2 }, row_lo[] = { -INF, -INF },
		row_hi[] = { 4, 7 };
	static const uint32_t start[] = { 0, 2, 4 }, idx[] = { 0, 1, 0, 1 };
	static const double val[] = { 1, 1, 1, 3 };
	struct hd_lp *lp = built(true);
	struct hd_lp_result r;
	(void)state;

	assert_int_equal(hd_lp_cols(lp, 2, lo, hi, cost, NULL, NULL, NULL), HD_OK);
	assert_int_equal(hd_lp_rows(lp, 2, row_lo, row_hi, start, idx, val), HD_OK);
	assert_int_equal(hd_lp_solve(lp, NULL, &r), HD_OK);
	hd_lp_edit(lp, HD_LP_ROW, 0, -INF, 5);                       /* a 3, b 4/3 */
	assert_int_equal(hd_lp_solve(lp, NULL, &r), HD_OK);
	CHECK(fabs(r.objective - 35.0 / 3) < 1e-9, "%g", r.objective);
	hd_lp_edit(lp, HD_LP_COLUMN, 0, 0, 5);                       /* a 5, b 0 */
	assert_int_equal(hd_lp_solve(lp, NULL, &r), HD_OK);
	CHECK(fabs(r.objective - 15) < 1e-9, "%g", r.objective);
	hd_lp_edit(lp, HD_LP_COST, 1, 0, 30);                        /* a 0, b 7/3 */
	assert_int_equal(hd_lp_solve(lp, NULL, &r), HD_OK);
	CHECK(fabs(r.objective - 70) < 1e-9, "%g", r.objective);
	static const uint32_t one_start[] = { 0, 1 }, second[] = { 1 };
	static const double zero[] = { 0 }, inf[] = { INF }, hundred[] = { 100 }, two[] = { 2 };
	/* c in the second row alone: c 3.5 */
	assert_int_equal(hd_lp_cols(lp, 1, zero, inf, hundred, one_start, second, two), HD_OK);
	assert_int_equal(hd_lp_solve(lp, NULL, &r), HD_OK);
	CHECK(fabs(r.objective - 350) < 1e-9, "%g", r.objective);
	static const uint32_t third[] = { 2 };
	static const double half[] = { 0.5 }, none[] = { -INF }, unit[] = { 1 };
	/* c <= 0.5: b takes the rest, 2 */
	assert_int_equal(hd_lp_rows(lp, 1, none, half, one_start, third, unit), HD_OK);
	assert_int_equal(hd_lp_solve(lp, NULL, &r), HD_OK);
	CHECK(fabs(r.objective - 110) < 1e-9, "%g", r.objective);
	hd_lp_free(lp);
}

static void what_has_no_answer_says_why(void **state)
{
	static const double lo[] = { 0 }, hi[] = { INF }, cost[] = { 1 }, val[] = { 1 }, no[] = { -INF },
		five[] = { 5 }, four[] = { 4 };
	static const uint32_t start[] = { 0, 1 }, idx[] = { 0 };
	struct hd_lp *lp = built(true);
	struct hd_lp_result r;
	(void)state;

	assert_int_equal(hd_lp_cols(lp, 1, lo, hi, cost, NULL, NULL, NULL), HD_OK);
	assert_int_equal(hd_lp_rows(lp, 1, lo, hi, start, idx, val), HD_OK);
	assert_int_equal(hd_lp_solve(lp, NULL, &r), HD_OK);
	CHECK(r.status == HD_LP_UNBOUNDED, "%s", hd_lp_status_text(r.status));
	assert_int_equal(hd_lp_rows(lp, 1, no, four, start, idx, val), HD_OK);
	assert_int_equal(hd_lp_rows(lp, 1, five, hi, start, idx, val), HD_OK);
	assert_int_equal(hd_lp_solve(lp, NULL, &r), HD_OK);
	CHECK(r.status == HD_LP_INFEASIBLE, "%s", hd_lp_status_text(r.status));
	hd_lp_free(lp);
}

/* No job that could run: rows and not one column, which CLP does not survive. Columns may still come. */
static void a_program_without_columns_is_solved(void **state)
{
	static const double no[] = { -INF, -INF }, hi[] = { 4, 0 }, one[] = { 1 }, zero[] = { 0 },
		inf[] = { INF };
	static const uint32_t start[] = { 0, 0, 0 }, one_start[] = { 0, 1 }, first[] = { 0 };
	(void)state;

	for (int maximise = 0; maximise < 2; maximise++) {
		struct hd_lp *lp = built(maximise);
		struct hd_lp_result r;
		assert_int_equal(hd_lp_solve(lp, NULL, &r), HD_OK);
		CHECK(r.status == HD_LP_OPTIMAL && r.objective == 0, "no row: %s",
			hd_lp_status_text(r.status));
		assert_int_equal(hd_lp_rows(lp, 2, no, hi, start, NULL, NULL), HD_OK);
		assert_int_equal(hd_lp_solve(lp, NULL, &r), HD_OK);
		CHECK(r.status == HD_LP_OPTIMAL && r.objective == 0 && r.gap == 0, "%s %g",
			hd_lp_status_text(r.status), r.objective);
		CHECK(r.dual[0] == 0 && r.dual[1] == 0, "%g %g", r.dual[0], r.dual[1]);
		hd_lp_edit(lp, HD_LP_ROW, 0, 1, INF);                /* 0 >= 1 */
		assert_int_equal(hd_lp_solve(lp, NULL, &r), HD_OK);
		CHECK(r.status == HD_LP_INFEASIBLE, "%s", hd_lp_status_text(r.status));
		assert_int_equal(hd_lp_cols(lp, 1, zero, inf, maximise ? (double[]){ -1 } : one, one_start,
			first, one), HD_OK);
		assert_int_equal(hd_lp_solve(lp, NULL, &r), HD_OK);
		CHECK(r.status == HD_LP_OPTIMAL && fabs(r.x[0] - 1) < 1e-9, "%s",
			hd_lp_status_text(r.status));
		hd_lp_free(lp);
	}
}

enum { N = 3, M = 3 };

/* The best vertex of max c x, A x <= b, 0 <= x: every choice of N tight ones among M rows and N bounds. */
static double best_vertex(double a[M][N], const double b[M], const double c[N])
{
	double best = -INFINITY;

	for (uint32_t set = 0; set < 1u << (M + N); set++) {
		double s[N][N + 1], x[N];
		int n = 0;
		if (__builtin_popcount(set) != N)
			continue;
		for (int r = 0; r < M + N; r++) {
			if (!(set >> r & 1))
				continue;
			for (int k = 0; k < N; k++)
				s[n][k] = r < M ? a[r][k] : r - M == k;
			s[n++][N] = r < M ? b[r] : 0;
		}
		bool singular = false;
		for (int p = 0; p < N && !singular; p++) {
			int q = p;
			for (int r = p; r < N; r++)
				q = fabs(s[r][p]) > fabs(s[q][p]) ? r : q;
			singular = fabs(s[q][p]) < 1e-12;
			for (int k = 0; k <= N; k++) {
				double was = s[p][k];
				s[p][k] = s[q][k];
				s[q][k] = was;
			}
			for (int r = 0; r < N && !singular; r++) {
				double f = r == p ? 0 : s[r][p] / s[p][p];
				for (int k = 0; k <= N; k++)
					s[r][k] -= f * s[p][k];
			}
		}
		bool inside = !singular;
		double value = 0;
		for (int k = 0; k < N && inside; k++) {
			x[k] = s[k][N] / s[k][k];
			inside = x[k] >= -1e-9;
			value += c[k] * x[k];
		}
		for (int r = 0; r < M && inside; r++)
			inside = a[r][0] * x[0] + a[r][1] * x[1] + a[r][2] * x[2] <= b[r] + 1e-9;
		if (inside)
			best = fmax(best, value);
	}
	return best;
}

static void small_programs_end_at_their_best_vertex(void **state)
{
	(void)state;

	for (uint32_t seed = 0; seed < 300; seed++) {
		struct hd_lp *lp = built(true);
		struct hd_lp_result r;
		double a[M][N], b[M], c[N], lo[N] = { 0 }, hi[N] = { INF, INF, INF },
			none[M] = { -INF, -INF, -INF };
		uint32_t start[M + 1] = { 0 }, idx[M * N];
		double flat[M * N];
		for (uint32_t k = 0; k < M * N; k++) {
			struct hd_philox w = hd_philox((uint32_t[]){ k, seed, 0, 0 }, 7);
			a[k / N][k % N] = flat[k] = 0.1 + hd_uniform(w.word[0]) * (w.word[3] % 4 ? 1 : 1000);
			idx[k] = k % N;
			b[k / N] = w.word[2] % 8 ? 1 + (double)(w.word[1] % 10) : 0;
			c[k % N] = hd_uniform(w.word[2]);
			start[k / N + 1] = k + 1;
		}
		assert_int_equal(hd_lp_cols(lp, N, lo, hi, c, NULL, NULL, NULL), HD_OK);
		assert_int_equal(hd_lp_rows(lp, M, none, b, start, idx, flat), HD_OK);
		assert_int_equal(hd_lp_solve(lp, NULL, &r), HD_OK);
		double want = best_vertex(a, b, c);
		CHECK(r.status == HD_LP_OPTIMAL && fabs(r.objective - want) <= 1e-9 * fmax(1, want),
			"seed %u: %s %g, best vertex %g", seed,
			hd_lp_status_text(r.status), r.objective, want);
		CHECK(r.gap <= HD_LP_GAP, "seed %u: gap %g", seed, r.gap);
		hd_lp_free(lp);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(signs_are_those_of_the_header),
		cmocka_unit_test(edits_and_additions_count_as_if_built_anew),
		cmocka_unit_test(what_has_no_answer_says_why),
		cmocka_unit_test(a_program_without_columns_is_solved),
		cmocka_unit_test(small_programs_end_at_their_best_vertex),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
