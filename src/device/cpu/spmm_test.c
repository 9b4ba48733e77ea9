/* Sums along edges: the bits of a loop in plain C on every path, for every width, range and cut into blocks;
 * near a sum in f64. Random graphs with empty rows and hubs. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "base/philox.h"
#include "device/cpu/cpu_kernels.h"
#include "device/spmm.h"
#include "tests/check.h"

enum { ROWS = 61, EDGES = 700, WIDTH = 602, HEADS = 20, NPATHS = 3 };
static const char *const path[NPATHS] = { "avx512", "avx2", "portable" };
static const uint32_t widths[] = { 1, 2, 3, 4, 7, 16, 63, 64, 65, 100, 128, 130, 256, WIDTH };
enum { NWIDTHS = sizeof widths / sizeof *widths };

struct example {
	uint64_t offset[ROWS + 1];
	uint32_t at[EDGES];
	float weight[EDGES * HEADS], own[ROWS * HEADS], scale[ROWS], bias[WIDTH];
	uint32_t width;
	uint64_t stride;
	float *x;                         /* ends with its last element: what is read beyond is found */
	uint16_t *half;                   /* the same rows */
};

static uint32_t draw(uint64_t seed, uint32_t what, uint32_t i)
{
	return hd_philox((const uint32_t[4]){ i, what, 0, 0 }, hd_philox_key(seed, HD_RNG_USER)).word[0];
}
static float number(uint64_t seed, uint32_t what, uint32_t i)
{
	return hd_uniform(draw(seed, what, i)) * 2 - 1;
}

static int ascending(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return (x > y) - (x < y);
}

/* Row 3 is a hub, every fifth row and the last are empty. */
static void make(struct example *g, uint64_t seed, uint32_t width)
{
	uint64_t n = 0;

	g->width = width;
	g->stride = width + seed % 3;
	for (uint32_t r = 0; r < ROWS; r++) {
		uint32_t degree = r == 3 ? 200 : r % 5 == 0 || r == ROWS - 1 ? 0 : draw(seed, 0, r) % 12;
		g->offset[r] = n;
		for (uint32_t k = 0; k < degree; k++)
			g->at[n + k] = draw(seed, 1, (uint32_t)n + k) % ROWS;
		qsort(g->at + n, degree, sizeof *g->at, ascending);
		n += degree;
	}
	g->offset[ROWS] = n;
	assert_true(n <= EDGES);
	g->x = malloc(((ROWS - 1) * g->stride + width) * sizeof *g->x);
	g->half = calloc(hd_bf16_elems(ROWS, width), sizeof *g->half);
	assert_true(g->x && g->half);
	for (uint32_t r = 0; r < ROWS; r++)
		for (uint32_t c = 0; c < width; c++)
			g->x[r * g->stride + c] = number(seed, 2, r * width + c);
	for (uint32_t i = 0; i < EDGES * HEADS; i++)
		g->weight[i] = number(seed, 3, i);
	for (uint32_t i = 0; i < ROWS * HEADS; i++)
		g->own[i] = number(seed, 4, i);
	for (uint32_t i = 0; i < ROWS; i++)
		g->scale[i] = number(seed, 5, i);
	for (uint32_t i = 0; i < WIDTH; i++)
		g->bias[i] = number(seed, 6, i);
}
static void drop(struct example *g) { free(g->x); free(g->half); }

static struct hd_spmm call_of(const struct example *g, float *y)
{
	return (struct hd_spmm){ .offset = g->offset, .at = g->at, .last = ROWS, .width = g->width, .x = g->x,
		.x_stride = g->stride, .y = y, .y_stride = WIDTH };
}

static float source(const struct hd_spmm *s, uint64_t row, uint64_t c)
{
	return s->flags & HD_SPMM_BF16 ? hd_f32_of_bf16(((const uint16_t *)s->x)[row * s->x_stride + c]) :
		((const float *)s->x)[row * s->x_stride + c];
}

/* One element in plain C; `exact`: the same in f64. */
static float element(const struct hd_spmm *s, uint64_t r, uint64_t c, double *exact)
{
	const uint32_t heads = s->heads ? s->heads : 1, head = (uint32_t)c / (s->width / heads);
	const uint64_t loop = s->flags & HD_SPMM_LOOP ? 1 : 0, n = s->offset[r + 1] - s->offset[r] + loop;
	float sum = 0;
	double near = 0;

	for (uint64_t i = 0; i < n; i++) {
		uint64_t e = s->offset[r] + i - loop;
		bool own = i < loop;
		float x = source(s, own ? r : s->at[e], c), w = 1;
		if (s->weight)
			w = own ? s->own[r * heads + head] :
				s->weight[(s->edge ? s->edge[e] : e) * heads + head];
		sum = s->weight ? fmaf(w, x, sum) : sum + x;
		near += (double)w * (double)x;
	}
	if (s->scale) {
		sum *= s->scale[r];
		near *= (double)s->scale[r];
	}
	if (s->bias) {
		sum += s->bias[c];
		near += (double)s->bias[c];
	}
	if (s->flags & HD_SPMM_ACT) {
		sum = sum < 0 ? 0 : sum;
		near = near < 0 ? 0 : near;
	}
	*exact = near;
	return sum;
}

static float got[ROWS * WIDTH], want[ROWS * WIDTH];
enum { FILL = 0x5a };

/* All of y: what lies between the rows must stay as it was. */
static void judge(const struct hd_spmm *s, const char *which)
{
	memset(want, FILL, sizeof want);
	for (uint64_t r = s->first; r < s->last; r++)
		for (uint64_t c = 0; c < s->width; c++) {
			double exact;
			want[r * WIDTH + c] = element(s, r, c, &exact);
			CHECK(fabs((double)want[r * WIDTH + c] - exact) < 1e-4, "the test itself");
		}
	CHECK(memcmp(got, want, sizeof got) == 0, "%s, width %u, flags %u, heads %u", which, s->width,
		s->flags, s->heads);
}

static void run(const char *which, struct hd_spmm s)
{
	memset(got, FILL, sizeof got);
	s.y = got;
	hd_edge_kernels(which)->spmm(&s);
	judge(&s, which);
}

static void each_path_has_the_bits_of_plain_c(void **state)
{
	(void)state;
	for (int i = 0; i < NWIDTHS; i++) {
		struct example g;
		make(&g, 100 + (uint64_t)i, widths[i]);
		for (int p = 0; p < NPATHS; p++) {
			struct hd_spmm s = call_of(&g, got);
			if (!hd_cpu_path(path[p]))
				continue;
			run(path[p], s);
			s.flags = HD_SPMM_LOOP;
			s.scale = g.scale;
			run(path[p], s);
			s.bias = g.bias;
			s.flags = HD_SPMM_ACT;
			run(path[p], s);
			s.weight = g.weight;
			s.own = g.own;
			s.flags = HD_SPMM_LOOP;
			run(path[p], s);
			s.first = 3;
			s.last = 17;
			run(path[p], s);
		}
		drop(&g);
	}
}

/* Heads of every width around a register. */
static void weights_by_head_have_the_bits_of_plain_c(void **state)
{
	static const uint32_t of[][2] = { { 8, 8 }, { 8, 1 }, { 4, 16 }, { 2, 64 }, { 3, 7 }, { 5, 33 },
		{ 8, 70 }, { 20, 3 }, { 20, 17 } };
	static uint32_t edge[EDGES];

	(void)state;
	for (uint32_t e = 0; e < EDGES; e++)
		edge[e] = e * 11 % EDGES;
	for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
		struct example g;
		make(&g, 200 + i, of[i][0] * of[i][1]);
		for (int p = 0; p < NPATHS; p++) {
			struct hd_spmm s = call_of(&g, got);
			s.weight = g.weight;
			s.own = g.own;
			s.heads = of[i][0];
			if (!hd_cpu_path(path[p]))
				continue;
			run(path[p], s);
			s.flags = HD_SPMM_LOOP;
			run(path[p], s);
			s.edge = edge;
			run(path[p], s);
		}
		drop(&g);
	}
}

static void rows_of_bf16_count_as_what_they_stand_for(void **state)
{
	(void)state;
	for (int i = 0; i < NWIDTHS; i++) {
		struct example g;
		make(&g, 300 + (uint64_t)i, widths[i]);
		for (int p = 0; p < NPATHS; p++) {
			struct hd_spmm s = call_of(&g, got);
			struct hd_spmm_rows rows = { .first = 0, .last = ROWS, .width = g.width, .x = g.x,
				.x_stride = g.stride, .scale = g.scale, .to = g.half,
				.to_stride = hd_bf16_stride(g.width), .bf16 = true };
			if (!hd_cpu_path(path[p]))
				continue;
			memset(g.half, 0xff, hd_bf16_elems(ROWS, g.width) * sizeof *g.half);
			hd_edge_kernels(path[p])->rows(&rows);
			for (uint32_t r = 0; r < ROWS; r++)
				for (uint32_t c = 0; c < g.width; c++) {
					uint16_t half = hd_bf16_of_f32(g.scale[r] * g.x[r * g.stride + c]);
					CHECK(g.half[r * rows.to_stride + c] == half, "%s", path[p]);
				}
			s.x = g.half;
			s.x_stride = rows.to_stride;
			s.flags = HD_SPMM_BF16 | HD_SPMM_LOOP;
			run(path[p], s);
			s.weight = g.weight;
			s.flags = HD_SPMM_BF16;
			run(path[p], s);
		}
		drop(&g);
	}
}

/* A row's edges in three calls, by sources below 20, below 45, and the rest. */
static void blocks_of_sources_change_no_bit(void **state)
{
	static const uint32_t bound[] = { 20, 45, ROWS };

	(void)state;
	for (int i = 0; i < NWIDTHS; i++) {
		struct example g;
		make(&g, 400 + (uint64_t)i, widths[i]);
		for (int p = 0; p < NPATHS; p++) {
			static uint32_t at[EDGES];
			struct hd_spmm whole = call_of(&g, got);
			if (!hd_cpu_path(path[p]))
				continue;
			whole.scale = g.scale;
			whole.bias = g.bias;
			whole.flags = HD_SPMM_LOOP;
			memset(got, FILL, sizeof got);
			for (uint32_t b = 0; b < 3; b++) {
				struct hd_spmm s = whole;
				uint64_t offset[ROWS + 1], n = 0;
				for (uint32_t r = 0; r < ROWS; r++) {
					offset[r] = n;
					for (uint64_t e = g.offset[r]; e < g.offset[r + 1]; e++)
						if (g.at[e] < bound[b] && (b == 0 || g.at[e] >= bound[b - 1]))
							at[n++] = g.at[e];
				}
				offset[ROWS] = n;
				s.offset = offset;
				s.at = at;
				s.flags = (b == 0 ? HD_SPMM_LOOP : HD_SPMM_RESUME) |
					(b < 2 ? HD_SPMM_PARTIAL : 0);
				hd_edge_kernels(path[p])->spmm(&s);
			}
			judge(&whole, path[p]);
		}
		drop(&g);
	}
}

static void the_plain_loop_has_the_same_bits(void **state)
{
	(void)state;
	for (int i = 0; i < NWIDTHS; i++) {
		struct example g;
		make(&g, 500 + (uint64_t)i, widths[i]);
		for (int p = 0; p < NPATHS; p++)
			for (int weighted = 0; hd_cpu_path(path[p]) && weighted < 2; weighted++) {
				struct hd_spmm s = call_of(&g, got);
				s.flags = HD_SPMM_LOOP;
				s.scale = g.scale;
				s.bias = g.bias;
				s.weight = weighted ? g.weight : NULL;
				s.own = weighted ? g.own : NULL;
				memset(got, FILL, sizeof got);
				hd_edge_kernels(path[p])->plain(&s);
				judge(&s, path[p]);
			}
		drop(&g);
	}
}

/* With alpha 1/4. */
static double formula(enum hd_act act, double x)
{
	if (act == HD_ACT_GELU)
		return x / (1 + exp(-2 * sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
	if (act == HD_ACT_TANH)
		return tanh(x);
	return x > 0 ? x : act == HD_ACT_RELU ? 0 : 0.25 * (act == HD_ACT_ELU ? expm1(x) : x);
}

/* All paths agree and are near the formula. */
static void each_act_has_equal_bits_on_all_paths(void **state)
{
	static const enum hd_act acts[] = {
#define X(id) HD_ACT_##id,
		HD_SPMM_ACTS(X)
#undef X
	};
	struct example g;

	(void)state;
	make(&g, 600, 100);
	for (size_t i = 0; i < sizeof acts / sizeof *acts; i++) {
		bool first = true;
		for (int p = 0; p < NPATHS; p++) {
			struct hd_spmm s = call_of(&g, got);
			if (!hd_cpu_path(path[p]))
				continue;
			s.flags = HD_SPMM_ACT;
			s.act = acts[i];
			s.act_of[0] = 0.25f;
			memset(got, FILL, sizeof got);
			hd_edge_kernels(path[p])->spmm(&s);
			if (first)
				memcpy(want, got, sizeof got);
			CHECK(memcmp(got, want, sizeof got) == 0, "%s on %s", hd_acts[acts[i]].text, path[p]);
			first = false;
			s.flags = 0;
			for (uint64_t r = 0; r < ROWS; r++)
				for (uint64_t c = 0; c < g.width; c++) {
					double x, y;
					element(&s, r, c, &x);
					y = formula(acts[i], x);
					CHECK(fabs((double)got[r * WIDTH + c] - y) < 1e-4, "%s on %s: not %g",
						hd_acts[acts[i]].text, path[p], y);
				}
		}
	}
	drop(&g);
}

/* <A x, y> = <x, A^T y>, both by the kernel, over edges and edges turned round. */
static void the_other_direction_is_the_transposed_product(void **state)
{
	struct example g;
	uint64_t offset[ROWS + 1] = { 0 }, n = 0;
	uint32_t at[EDGES];
	static float y[ROWS * 65];
	double left = 0, right = 0;

	(void)state;
	make(&g, 700, 65);
	for (uint32_t j = 0; j < ROWS; j++) {
		offset[j] = n;
		for (uint32_t r = 0; r < ROWS; r++)
			for (uint64_t e = g.offset[r]; e < g.offset[r + 1]; e++)
				if (g.at[e] == j)
					at[n++] = r;
	}
	offset[ROWS] = n;
	assert_true(n == g.offset[ROWS]);
	struct hd_spmm s = call_of(&g, got);
	hd_edge_kernels(NULL)->spmm(&s);
	for (uint32_t r = 0; r < ROWS; r++)
		for (uint32_t c = 0; c < 65; c++) {
			y[r * 65 + c] = number(1, 9, r * 65 + c);
			left += (double)got[r * WIDTH + c] * (double)y[r * 65 + c];
		}
	s.offset = offset;
	s.at = at;
	s.x = y;
	s.x_stride = 65;
	hd_edge_kernels(NULL)->spmm(&s);
	for (uint32_t r = 0; r < ROWS; r++)
		for (uint32_t c = 0; c < 65; c++)
			right += (double)got[r * WIDTH + c] * (double)g.x[r * g.stride + c];
	CHECK(fabs(left - right) < 1e-5 * (1 + fabs(left)), "%.9g and %.9g", left, right);
	drop(&g);
}

static void parts_are_cut_by_edges_and_rows(void **state)
{
	/* degrees 0 5 0 2 1: by edges and rows 1 6 1 3 2, up to each row 1 7 8 11 13 */
	const uint64_t offset[] = { 0, 0, 5, 5, 7, 8 };
	const uint64_t hub[] = { 0, 100, 100, 100 };

	(void)state;
	assert_int_equal(hd_spmm_cut(offset, 0, 5, 0, 2), 0);
	assert_int_equal(hd_spmm_cut(offset, 0, 5, 1, 2), 2);        /* 6 of 13 are reached by 7 */
	assert_int_equal(hd_spmm_cut(offset, 0, 5, 2, 2), 5);
	assert_int_equal(hd_spmm_cut(offset, 2, 5, 1, 2), 4);        /* 3 of 6 are reached by 4 */
	assert_int_equal(hd_spmm_cut(offset, 2, 5, 1, 1), 5);
	for (uint32_t i = 1; i <= 3; i++)
		assert_true(hd_spmm_cut(hub, 0, 3, i, 3) >= hd_spmm_cut(hub, 0, 3, i - 1, 3));
	assert_int_equal(hd_spmm_cut(hub, 0, 3, 3, 3), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_path_has_the_bits_of_plain_c),
		cmocka_unit_test(weights_by_head_have_the_bits_of_plain_c),
		cmocka_unit_test(rows_of_bf16_count_as_what_they_stand_for),
		cmocka_unit_test(blocks_of_sources_change_no_bit),
		cmocka_unit_test(the_plain_loop_has_the_same_bits),
		cmocka_unit_test(each_act_has_equal_bits_on_all_paths),
		cmocka_unit_test(the_other_direction_is_the_transposed_product),
		cmocka_unit_test(parts_are_cut_by_edges_and_rows),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
