/* The functions of vmath.h against libm in f64, in units of the last place of the result,
 * over every 997th float of a range; and the same bits on all paths. */
#include <math.h>
#include <string.h>

#include "device/cpu/cpu_isa.h"
#include "tests/check.h"

static double gelu_gate(double x) { return 1 / (1 + exp(-2 * sqrt(2 / 3.14159265358979323846) *
	(x + 0.044715 * x * x * x))); }
static double sigmoid(double x) { return 1 / (1 + exp(-x)); }
static double softplus(double x) { return x > 700 ? x : log1p(exp(x)); }
static double normal(double x) { return erfc(-x * sqrt(0.5)) / 2; }
static double pow_half5(double x) { return pow(x, 2.5); }

static const struct math_range { int function; const char *name; double (*oracle)(double); float from, to;
	double ulps; } ranges[] = {
	{ HD_MATH_EXP,       "exp",       exp,       -87.33f,  88.722f,  1 },
	{ HD_MATH_LOG,       "log",       log,       1.2e-38f, 3.4e38f,  1 },
	{ HD_MATH_TANH,      "tanh",      tanh,      -20.0f,   20.0f,    2 },
	{ HD_MATH_SIGMOID,   "sigmoid",   sigmoid,   -85.0f,   100.0f,   3 },
	{ HD_MATH_GELU_GATE, "gelu gate", gelu_gate, -2.5f,    30.0f,    12 },
	{ HD_MATH_LOG_ANY,   "log any",   log,       1e-45f,   3.4e38f,  1 },
	{ HD_MATH_EXPM1,     "expm1",     expm1,     -80.0f,   88.0f,    2 },
	{ HD_MATH_SOFTPLUS,  "softplus",  softplus,  -80.0f,   3.4e38f,  3 },
	{ HD_MATH_ERF,       "erf",       erf,       -20.0f,   20.0f,    3 },
	{ HD_MATH_NORMAL,    "normal",    normal,    -12.5f,   20.0f,    5 },
	{ HD_MATH_POW,       "pow 2.5",   pow_half5, 1e-15f,   2e15f,    1 },
	{ HD_MATH_SIN,       "sin",       sin,       -32768.0f, 32768.0f, 2 },
	{ HD_MATH_COS,       "cos",       cos,       -32768.0f, 32768.0f, 2 },
	{ HD_MATH_ATAN,      "atan",      atan,      -3.4e38f, 3.4e38f,  3 },
};
enum { NRANGES = sizeof ranges / sizeof ranges[0], STRIDE = 997 };

static float float_of(uint32_t bits) { float x; memcpy(&x, &bits, sizeof x); return x; }

/* Distance of y from the exact value, in units of the last place of the float nearest to it. */
static double ulps_off(float y, double exact)
{
	int e;

	frexp(exact, &e);
	return fabs((double)y - exact) / ldexp(1.0, (e < -125 ? -125 : e) - 24);
}

static double worst_of(const struct math_range *r, const struct hd_cpu_isa *isa, uint32_t sign)
{
	double worst = 0;
	float x[16], y[16];

	for (uint64_t bits = 0; bits < 0x7f800000; ) {
		int n = 0;
		for (; n < 16 && bits < 0x7f800000; bits += STRIDE) {
			float v = float_of((uint32_t)bits | sign);
			if (v >= r->from && v <= r->to)
				x[n++] = v;
		}
		for (int i = n; i < 16; i++)
			x[i] = 1.0f;
		isa->math(r->function, x, y);
		for (int i = 0; i < n; i++)
			worst = fmax(worst, ulps_off(y[i], r->oracle((double)x[i])));
	}
	return worst;
}

static void errors_stay_below_the_documented_bounds(void **state)
{
	const char *path = hd_cpu_path(NULL);

	(void)state;
	for (int i = 0; i < NRANGES; i++)
		for (uint32_t sign = 0; sign <= 1; sign++) {
			double worst = worst_of(&ranges[i], hd_cpu_isa_of(path), sign << 31);
			CHECK(worst <= ranges[i].ulps, "%s: %.3f units in the last place, sign %u",
				ranges[i].name, worst, sign);
			print_message("             %-9s %c %.3f ulp\n", ranges[i].name, sign ? '-' : '+',
				worst);
		}
}

static float at(int function, float x)
{
	float in[16], out[16];

	for (int i = 0; i < 16; i++)
		in[i] = x;
	hd_cpu_portable.math(function, in, out);
	return out[0];
}

static void edges_are_exact(void **state)
{
	(void)state;
	assert_true(at(HD_MATH_EXP, 0.0f) == 1.0f);
	assert_true(at(HD_MATH_EXP, -INFINITY) == 0.0f);
	assert_true(at(HD_MATH_EXP, -88.0f) == 0.0f);
	assert_true(at(HD_MATH_EXP, INFINITY) == INFINITY);
	assert_true(at(HD_MATH_EXP, 88.73f) == INFINITY);
	assert_true(at(HD_MATH_LOG, 1.0f) == 0.0f);
	assert_true(at(HD_MATH_LOG, INFINITY) == INFINITY);
	assert_true(at(HD_MATH_TANH, 0.0f) == 0.0f);
	assert_true(at(HD_MATH_TANH, INFINITY) == 1.0f);
	assert_true(at(HD_MATH_TANH, -INFINITY) == -1.0f);
	assert_true(at(HD_MATH_SIGMOID, -INFINITY) == 0.0f);
	assert_true(at(HD_MATH_SIGMOID, INFINITY) == 1.0f);
	assert_true(at(HD_MATH_LOG_ANY, 0.0f) == -INFINITY);
	assert_true(isnan(at(HD_MATH_LOG_ANY, -1.0f)));
	assert_true(at(HD_MATH_EXPM1, -INFINITY) == -1.0f);
	assert_true(at(HD_MATH_SOFTPLUS, -INFINITY) == 0.0f);
	assert_true(at(HD_MATH_SOFTPLUS, INFINITY) == INFINITY);
	assert_true(at(HD_MATH_ERF, 0.0f) == 0.0f);
	assert_true(at(HD_MATH_ERF, INFINITY) == 1.0f);
	assert_true(at(HD_MATH_ERF, -INFINITY) == -1.0f);
	assert_true(at(HD_MATH_NORMAL, 0.0f) == 0.5f);
	assert_true(at(HD_MATH_NORMAL, -INFINITY) == 0.0f);
	assert_true(at(HD_MATH_NORMAL, INFINITY) == 1.0f);
	assert_true(at(HD_MATH_POW, 4.0f) == 32.0f);
	assert_true(isnan(at(HD_MATH_POW, -4.0f)));
	assert_true(at(HD_MATH_SIN, 0.0f) == 0.0f && !signbit(at(HD_MATH_SIN, 0.0f)));
	assert_true(signbit(at(HD_MATH_SIN, -0.0f)));
	assert_true(at(HD_MATH_COS, 0.0f) == 1.0f);
	assert_true(isnan(at(HD_MATH_SIN, INFINITY)) && isnan(at(HD_MATH_COS, -INFINITY)));
	assert_true(at(HD_MATH_ATAN, INFINITY) == (float)acos(0.0));
	assert_true(at(HD_MATH_ATAN, -INFINITY) == (float)-acos(0.0));
	for (int f = 0; f < HD_NMATHS; f++)
		CHECK(isnan(at(f, NAN)), "function %d", f);
}

static void paths_agree_on_every_stride_of_all_floats(void **state)
{
	(void)state;
	for (int f = 0; f < HD_NMATHS; f++)
		for (uint64_t bits = 0; bits < UINT32_MAX; bits += 16 * 9973) {
			float x[16], plain[16], y[16];
			for (uint64_t i = 0; i < 16; i++)
				x[i] = f == HD_MATH_LOG ? fabsf(float_of((uint32_t)(bits + i * 9973))) :
					float_of((uint32_t)(bits + i * 9973));
			hd_cpu_portable.math(f, x, plain);
#define X(path) if (hd_cpu_path(#path)) {                    \
				hd_cpu_##path.math(f, x, y); \
				for (int i = 0; i < 16; i++) \
					CHECK(memcmp(&y[i], &plain[i], 4) == 0 || \
						(isnan(y[i]) && isnan(plain[i])), \
						#path ", function %d of %a: %a, not %a", f, (double)x[i], \
						(double)y[i], (double)plain[i]); }
			HD_CPU_PATHS(X)
#undef X
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(errors_stay_below_the_documented_bounds),
		cmocka_unit_test(edges_are_exact),
		cmocka_unit_test(paths_agree_on_every_stride_of_all_floats),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
