#include <math.h>
#include <string.h>

#include "checkpoint/ckpt.h"
#include "tests/check.h"

enum { N = 6 };

static struct hd_arena arena;

static struct hd_state one(const char *name, enum hd_dtype dtype, void *at, int64_t n)
{
	struct hd_state s;
	struct hd_state_entry e = { .name = name, .dtype = (uint8_t)dtype, .rank = 1, .dim = { n }, .at = at,
		.len_bytes = (uint64_t)n * hd_dtype_bytes(dtype) };

	hd_state_init(&s, &arena);
	assert_int_equal(hd_state_add(&s, &e, NULL), HD_OK);
	return s;
}

static struct hd_tensor_diff of(const struct hd_state *a, const struct hd_state *b, uint32_t want_differing)
{
	struct hd_tensor_diff *out;
	uint32_t n, total;

	assert_int_equal(hd_state_diff(a, b, &arena, &out, &n, &total, NULL), HD_OK);
	assert_int_equal(n, want_differing);
	return out[0];
}

static void equal_states_do_not_differ(void **unused)
{
	float x[N] = { 1, NAN, -0.0f, 3, INFINITY, 5 }, y[N];
	(void)unused;
	memcpy(y, x, sizeof y);
	struct hd_state a = one("t", HD_F32, x, N), b = one("t", HD_F32, y, N);
	of(&a, &b, 0);
}

static void count_first_and_greatest_distance_are_told(void **unused)
{
	float x[N] = { 1, 2, 3, 4, 5, 6 }, y[N] = { 1, 2, 3.5f, 4, nextafterf(5, 6), 6 };
	(void)unused;
	struct hd_state a = one("t", HD_F32, x, N), b = one("t", HD_F32, y, N);
	struct hd_tensor_diff d = of(&a, &b, 1);
	assert_int_equal(d.differing, 2);
	assert_int_equal(d.first, 2);
	assert_true(d.max_abs == 0.5);
	assert_int_equal(d.max_ulp, 1 << 21);        /* 0.5 / 2^-22 */
}

/* The steps of nextafter() are the definition of an ulp. */
static void ulps_are_steps_of_nextafter_through_zero_too(void **unused)
{
	static const float starts[] = { 1, -1, 0, -1e-44f, 1e-44f, 1.17549435e-38f, -3.9999f };
	(void)unused;
	for (size_t s = 0; s < sizeof starts / sizeof *starts; s++) {
		float x = starts[s], y = x;
		double p = (double)starts[s], q = p;
		for (uint64_t steps = 1; steps <= 40; steps++) {
			y = nextafterf(y, INFINITY);
			q = nextafter(q, INFINITY);
			struct hd_state a = one("t", HD_F32, &x, 1), b = one("t", HD_F32, &y, 1);
			CHECK(of(&a, &b, 1).max_ulp == steps, "f32 %g by %llu", (double)x,
				(unsigned long long)steps);
			CHECK(of(&b, &a, 1).max_ulp == steps, "f32 %g by -%llu", (double)x,
				(unsigned long long)steps);
			struct hd_state c = one("t", HD_F64, &p, 1), d = one("t", HD_F64, &q, 1);
			CHECK(of(&c, &d, 1).max_ulp == steps, "f64 %g by %llu", p, (unsigned long long)steps);
		}
	}
}

static void a_nan_is_infinitely_far_and_zeros_differ_by_no_ulp(void **unused)
{
	float x[2] = { 1, 0 }, y[2] = { NAN, 0 }, z[2] = { 1, -0.0f };
	(void)unused;
	struct hd_state a = one("t", HD_F32, x, 2), b = one("t", HD_F32, y, 2), c = one("t", HD_F32, z, 2);
	struct hd_tensor_diff d = of(&a, &b, 1);
	assert_true(isinf(d.max_abs) && d.max_ulp == UINT64_MAX && d.differing == 1);
	d = of(&a, &c, 1);
	assert_true(d.differing == 1 && d.max_ulp == 0 && d.max_abs == 0);
}

static void integers_are_compared_exactly(void **unused)
{
	int64_t x = INT64_MIN, y = INT64_MAX, z = INT64_MIN + 1;
	int32_t p = INT32_MIN, q = INT32_MAX;
	uint8_t u = 255, v = 0;
	(void)unused;
	struct hd_state a = one("t", HD_I64, &x, 1), b = one("t", HD_I64, &y, 1), c = one("t", HD_I64, &z, 1);
	assert_true(of(&a, &b, 1).max_ulp == UINT64_MAX);
	assert_int_equal(of(&a, &c, 1).max_ulp, 1);
	struct hd_state d = one("t", HD_I32, &p, 1), e = one("t", HD_I32, &q, 1);
	assert_true(of(&d, &e, 1).max_ulp == UINT32_MAX);
	struct hd_state f = one("t", HD_U8, &u, 1), g = one("t", HD_U8, &v, 1);
	assert_int_equal(of(&f, &g, 1).max_ulp, 255);
}

static void names_and_shapes_of_one_side_are_told_first(void **unused)
{
	float x[N] = { 0 };
	(void)unused;
	struct hd_state a = one("a", HD_F32, x, N), b = one("b", HD_F32, x, N),
		c = one("a", HD_F32, x, N - 1), d = one("a", HD_I32, x, N);
	struct hd_tensor_diff t = of(&a, &b, 2);
	assert_true(t.only_a && !t.only_b && !strcmp(t.name, "a"));
	assert_true(of(&a, &c, 1).shapes);
	assert_true(of(&a, &d, 1).shapes);
}

static int begin(void **unused)
{
	(void)unused;
	hd_arena_init(&arena, 0);
	return 0;
}

static int end(void **unused)
{
	(void)unused;
	hd_arena_finish(&arena);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_states_do_not_differ),
		cmocka_unit_test(count_first_and_greatest_distance_are_told),
		cmocka_unit_test(ulps_are_steps_of_nextafter_through_zero_too),
		cmocka_unit_test(a_nan_is_infinitely_far_and_zeros_differ_by_no_ulp),
		cmocka_unit_test(integers_are_compared_exactly),
		cmocka_unit_test(names_and_shapes_of_one_side_are_told_first),
	};
	return cmocka_run_group_tests(tests, begin, end);
}
