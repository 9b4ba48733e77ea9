#include "device/optim.h"

#include <math.h>
#include <string.h>

#include "tests/check.h"

enum { LEN = 37, STEPS = 6 };

static const struct hd_optim optim = { .momentum = 0.9f, .beta1 = 0.9f, .beta2 = 0.99f, .eps = 1e-6f,
	.weight_decay = 0.02f };

static float number(int i, int k) { return sinf((float)(i * 7 + k * 13 + 1)); }

/* The formulas of the papers in f64, on one element, its whole history. */
static double oracle(uint32_t kind, int i, int steps)
{
	double p = (double)number(i, 100), m = 0, v = 0, wd = (double)optim.weight_decay, mu = 0.9f,
		b1 = 0.9f, b2 = 0.99f, c;

	for (int t = 1; t <= steps; t++) {
		const double lr = (double)(0.1f / (float)t);
		double g = (double)number(i, t) * 0.25 * 0.75;
		if (kind == HD_OPTIM_ADAMW || kind == HD_OPTIM_LION)
			p -= lr * wd * p;
		else
			g += wd * p;
		switch (kind) {
		case HD_OPTIM_SGD:      p -= lr * g; break;
		case HD_OPTIM_MOMENTUM: m = mu * m + g; p -= lr * m; break;
		case HD_OPTIM_NESTEROV: m = mu * m + g; p -= lr * (g + mu * m); break;
		case HD_OPTIM_ADAGRAD:  v += g * g; p -= lr * g / (sqrt(v) + 1e-6); break;
		case HD_OPTIM_LION:
			c = b1 * m + (1 - b1) * g;
			p -= lr * (c > 0 ? 1 : c < 0 ? -1 : 0);
			m = b2 * m + (1 - b2) * g;
			break;
		default:
			m = b1 * m + (1 - b1) * g;
			v = b2 * v + (1 - b2) * g * g;
			p -= lr * (m / (1 - pow(b1, t))) / (sqrt(v / (1 - pow(b2, t))) + 1e-6);
		}
	}
	return p;
}

static struct hd_step_scalars scalars_of(uint32_t kind, int t)
{
	struct hd_step_scalars s = { .optim = optim, .lr = 0.1f / (float)t, .scale = 0.25f, .clip = 0.75f };

	s.optim.kind = kind;
	hd_optim_corrections(&s, (uint64_t)t);
	return s;
}

static void updates_follow_the_papers(void **state)
{
	(void)state;
	for (uint32_t kind = 0; kind < HD_NOPTIMS; kind++) {
		float param[LEN], grad[LEN], slot[2][LEN] = { { 0 } };
		if (hd_optims[kind].unit == HD_UNIT_TENSOR)
			continue;
		for (int i = 0; i < LEN; i++)
			param[i] = number(i, 100);
		for (int t = 1; t <= STEPS; t++) {
			struct hd_step_scalars s = scalars_of(kind, t);
			for (int i = 0; i < LEN; i++)
				grad[i] = number(i, t);
			hd_optim_update_plain(&s, param, grad, slot[0], slot[1], LEN);
			/* a handful of roundings per step of values below 2 */
			for (int i = 0; i < LEN; i++)
				CHECK(fabs((double)param[i] - oracle(kind, i, t)) < 0x1p-24 * 16 * t,
					"%s, element %d, step %d: %.9g, not %.9g",
					hd_optims[kind].name, i, t, (double)param[i], oracle(kind, i, t));
		}
	}
}

/* Algorithm 2 of You et al. in f64: the whole tensor at once, its whole history. */
static void lamb_oracle(double p[LEN], int steps)
{
	double m[LEN] = { 0 }, v[LEN] = { 0 }, u[LEN], b1 = 0.9f, b2 = 0.99f;

	for (int i = 0; i < LEN; i++)
		p[i] = (double)number(i, 100);
	for (int t = 1; t <= steps; t++) {
		double pp = 0, uu = 0;
		for (int i = 0; i < LEN; i++) {
			double g = (double)number(i, t) * 0.25 * 0.75;
			m[i] = b1 * m[i] + (1 - b1) * g;
			v[i] = b2 * v[i] + (1 - b2) * g * g;
			u[i] = m[i] / (1 - pow(b1, t)) / (sqrt(v[i] / (1 - pow(b2, t))) + (double)optim.eps) +
				(double)optim.weight_decay * p[i];
			pp += p[i] * p[i];
			uu += u[i] * u[i];
		}
		for (int i = 0; i < LEN; i++)
			p[i] -= (double)(0.1f / (float)t) * sqrt(pp) / sqrt(uu) * u[i];
	}
}

/* Both passes over a tensor of segments [cut[k], cut[k + 1]), measured last to first. */
static void lamb_step(struct hd_step_scalars s, float *param, const float *grad, float slot[2][LEN],
	const int *cut, uint32_t n)
{
	double sums[2][LEN + 1], both[2];

	for (uint32_t k = n; k-- > 0;) {
		hd_optim_measure_plain(&s, param + cut[k], grad + cut[k], slot[0] + cut[k], slot[1] + cut[k],
			(uint64_t)(cut[k + 1] - cut[k]), both);
		sums[0][k] = both[0];
		sums[1][k] = both[1];
	}
	s.ratio = hd_optim_ratio(sums[0], sums[1], n);
	hd_optim_update_plain(&s, param, NULL, slot[0], slot[1], LEN);
}

static void lamb_follows_its_paper(void **state)
{
	static const int cut[] = { 0, 16, 32, LEN };
	float param[LEN], grad[LEN], slot[2][LEN] = { { 0 } };
	double want[LEN];

	(void)state;
	for (int i = 0; i < LEN; i++)
		param[i] = number(i, 100);
	for (int t = 1; t <= STEPS; t++) {
		for (int i = 0; i < LEN; i++)
			grad[i] = number(i, t);
		lamb_step(scalars_of(HD_OPTIM_LAMB, t), param, grad, slot, cut, 3);
		lamb_oracle(want, t);
		for (int i = 0; i < LEN; i++)
			CHECK(fabs((double)param[i] - want[i]) < 0x1p-24 * 16 * t,
				"element %d, step %d: %.9g, not %.9g", i, t, (double)param[i], want[i]);
	}
}

/* By hand: with b1 = 1/2, b2 = 3/4, eps = 0 and no decay the direction of the first step is the sign
 * of the gradient; |p| = 5, |u| = sqrt(2). And both zeros: a parameter of nothing but 0 moves by lr. */
static void lamb_of_a_small_tensor_is_what_a_hand_computes(void **state)
{
	static const int cut[] = { 0, 2 };
	struct hd_step_scalars s = { .optim = { .kind = HD_OPTIM_LAMB, .beta1 = 0.5f, .beta2 = 0.75f },
		.lr = 0.125f, .scale = 1, .clip = 1 };
	float param[LEN] = { 3, -4 }, none[LEN] = { 0 }, slot[2][LEN] = { { 0 } }, other[2][LEN] = { { 0 } };
	const float grad[LEN] = { 7, 0.5f };

	(void)state;
	hd_optim_corrections(&s, 1);
	for (int i = 2; i < LEN; i++)
		slot[1][i] = other[1][i] = 1;     /* eps is 0: what is not measured must not divide by 0 */
	lamb_step(s, param, grad, slot, cut, 1);
	assert_true(fabs((double)param[0] - (3 - 0.125 * 5 / sqrt(2))) < 1e-6);
	assert_true(fabs((double)param[1] - (-4 - 0.125 * 5 / sqrt(2))) < 1e-6);
	assert_true(slot[0][0] == 3.5f && slot[1][1] == 0.0625f);
	lamb_step(s, none, grad, other, cut, 1);
	assert_true(none[0] == -0.125f && none[1] == -0.125f);
	assert_true(hd_optim_ratio(&(double){ 4 }, &(double){ 0 }, 1) == 1.0f);
	assert_true(hd_optim_ratio(&(double){ 4 }, &(double){ 1 }, 1) == 2.0f);
}

/* By hand: m = 2, g = -1: 0.75*2 - 0.25 > 0, so p falls by lr after the decay; m becomes 0.5*2 - 0.5. */
static void lion_of_three_elements_is_what_a_hand_computes(void **state)
{
	struct hd_step_scalars s = { .optim = { .kind = HD_OPTIM_LION, .beta1 = 0.75f, .beta2 = 0.5f,
		.weight_decay = 0.5f },
		.lr = 0.25f, .scale = 0.5f, .clip = 0.5f };
	float param[4] = { 8, 8, 8, 8 }, m[4] = { 2, 0, 0, 0 };
	const float grad[4] = { -4, -4, 0, NAN };

	(void)state;
	hd_optim_update_plain(&s, param, grad, m, NULL, 4);
	assert_true(param[0] == 6.75f && param[1] == 7.25f && param[2] == 7.0f && isnan(param[3]));
	assert_true(m[0] == 0.5f && m[1] == -0.5f && m[2] == 0.0f);
}

/* Three steps of torch.optim.Adagrad (PyTorch 2.15, lr 0.1) from the same numbers. */
static void adagrad_comes_where_pytorch_comes(void **state)
{
	static const struct { float decay, param[4], sum[4]; } torch[] = {
		{ 0,     { 0.40926435589790344f, -1.159264326095581f, 1.909264326095581f, -0.09073565155267715f }, { 14.0f, 3.5f, 0.875f, 56.0f } },
		{ 0.02f, { 0.40888530015945435f, -1.1572191715240479f, 1.9024171829223633f, -0.09071426093578339f },
		  { 14.046961784362793f, 3.5550525188446045f, 0.9211605191230774f, 56.01347351074219f } },
	};
	static const float first[4] = { 1.0f, -0.5f, 0.25f, 2.0f }, times[3] = { 1, -2, 3 };

	(void)state;
	for (size_t k = 0; k < 2; k++) {
		struct hd_step_scalars s = { .optim = { .kind = HD_OPTIM_ADAGRAD, .eps = 1e-10f,
			.weight_decay = torch[k].decay },
			.lr = 0.1f, .scale = 1, .clip = 1 };
		float param[4] = { 0.5f, -1.25f, 2.0f, 0.0f }, sum[4] = { 0 }, grad[4];
		for (int t = 0; t < 3; t++) {
			for (int i = 0; i < 4; i++)
				grad[i] = first[i] * times[t];
			hd_optim_update_plain(&s, param, grad, sum, NULL, 4);
		}
		for (int i = 0; i < 4; i++)
			CHECK(fabsf(param[i] - torch[k].param[i]) <= 0x1p-22f &&
				fabsf(sum[i] - torch[k].sum[i]) <= 0x1p-22f * torch[k].sum[i],
				"decay %g, element %d: %.9g, sum %.9g", (double)torch[k].decay, i,
				(double)param[i], (double)sum[i]);
	}
}

/* ONNX, node case adagrad: X = 1, G = -1, H = 2, R = 0.1, T = 0, norm_coefficient 0.001, epsilon 1e-5;
 * worked out on paper. */
static void adagrad_is_that_of_onnx(void **state)
{
	struct hd_step_scalars s = { .optim = { .kind = HD_OPTIM_ADAGRAD, .eps = 1e-5f,
		.weight_decay = 0.001f }, .lr = 0.1f, .scale = 1, .clip = 1 };
	float param = 1, sum = 2, grad = -1;

	(void)state;
	hd_optim_update_plain(&s, &param, &grad, &sum, NULL, 1);
	assert_true(fabs((double)sum - 2.998001) < 1e-6 && fabs((double)param - 1.0576960) < 1e-6);
}

static void any_split_gives_the_same_bits(void **state)
{
	(void)state;
	for (uint32_t kind = 0; kind < HD_NOPTIMS; kind++)
		for (uint64_t cut = 0; cut <= LEN; cut++) {
			float a[3][LEN], b[3][LEN], grad[LEN];
			struct hd_step_scalars s = scalars_of(kind, 3);
			for (int i = 0; i < LEN; i++) {
				grad[i] = number(i, 1);
				for (int k = 0; k < 3; k++)
					a[k][i] = b[k][i] = fabsf(number(i, 50 + k));
			}
			s.ratio = 0.375f;
			hd_optim_update_plain(&s, a[0], grad, a[1], a[2], LEN);
			hd_optim_update_plain(&s, b[0], grad, b[1], b[2], cut);
			hd_optim_update_plain(&s, b[0] + cut, grad + cut, b[1] + cut, b[2] + cut, LEN - cut);
			CHECK(memcmp(a, b, sizeof a) == 0, "%s, cut at %d", hd_optims[kind].name, (int)cut);
		}
}

static void a_skipped_step_changes_nothing(void **state)
{
	float param = 1, grad = 2, m = 3, v = 4;
	(void)state;

	for (uint32_t kind = 0; kind < HD_NOPTIMS; kind++) {
		struct hd_step_scalars s = scalars_of(kind, 1);
		double sums[2];
		s.skip = true;
		hd_optim_measure_plain(&s, &param, &grad, &m, &v, 1, sums);
		hd_optim_update_plain(&s, &param, &grad, &m, &v, 1);
		assert_true(sums[0] == 0 && sums[1] == 0 && param == 1 && m == 3 && v == 4);
	}
}

static void corrections_are_those_of_the_power(void **state)
{
	(void)state;
	for (uint64_t t = 1; t < 5000; t += 37) {
		struct hd_step_scalars s = { .optim = optim };
		hd_optim_corrections(&s, t);
		CHECK(fabs((double)s.c1 - (1 - pow((double)0.9f, (double)t))) <= 0x1p-24, "t %d", (int)t);
		CHECK(fabs((double)s.c2 - (1 - pow((double)0.99f, (double)t))) <= 0x1p-24, "t %d", (int)t);
	}
}

static void the_table_names_its_slots(void **state)
{
	(void)state;
	for (uint32_t kind = 0; kind < HD_NOPTIMS; kind++)
		for (int k = 0; k < 2; k++)
			CHECK((hd_optims[kind].slot[k][0] != 0) == (k < hd_optims[kind].nslots), "%s",
				hd_optims[kind].name);
	assert_string_equal(hd_optims[HD_OPTIM_ADAMW].name, "adamw");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(updates_follow_the_papers),
		cmocka_unit_test(lamb_follows_its_paper),
		cmocka_unit_test(lamb_of_a_small_tensor_is_what_a_hand_computes),
		cmocka_unit_test(lion_of_three_elements_is_what_a_hand_computes),
		cmocka_unit_test(adagrad_comes_where_pytorch_comes),
		cmocka_unit_test(adagrad_is_that_of_onnx),
		cmocka_unit_test(any_split_gives_the_same_bits),
		cmocka_unit_test(a_skipped_step_changes_nothing),
		cmocka_unit_test(corrections_are_those_of_the_power),
		cmocka_unit_test(the_table_names_its_slots),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
