#include "device/optim.h"

#include <math.h>
#include <string.h>

#include "tests/check.h"

enum { LEN = 37, STEPS = 6 };

static const struct hd_optim optim = { .momentum = 0.9f, .beta1 = 0.9f, .beta2 = 0.99f, .eps = 1e-6f, .weight_decay = 0.02f };

static float number(int i, int k) { return sinf((float)(i * 7 + k * 13 + 1)); }

/* The formulas of the papers in f64, on one element, its whole history. */
static double oracle(uint32_t kind, int i, int steps)
{
	double p = (double)number(i, 100), m = 0, v = 0, wd = (double)optim.weight_decay, mu = 0.9f, b1 = 0.9f, b2 = 0.99f;

	for (int t = 1; t <= steps; t++) {
		const double lr = (double)(0.1f / (float)t);
		double g = (double)number(i, t) * 0.25 * 0.75;
		if (kind == HD_OPTIM_ADAMW)
			p -= lr * wd * p;
		else
			g += wd * p;
		switch (kind) {
		case HD_OPTIM_SGD:      p -= lr * g; break;
		case HD_OPTIM_MOMENTUM: m = mu * m + g; p -= lr * m; break;
		case HD_OPTIM_NESTEROV: m = mu * m + g; p -= lr * (g + mu * m); break;
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
		for (int i = 0; i < LEN; i++)
			param[i] = number(i, 100);
		for (int t = 1; t <= STEPS; t++) {
			struct hd_step_scalars s = scalars_of(kind, t);
			for (int i = 0; i < LEN; i++)
				grad[i] = number(i, t);
			hd_optim_update_plain(&s, param, grad, slot[0], slot[1], LEN);
			/* a handful of roundings per step of values below 2 */
			for (int i = 0; i < LEN; i++)
				CHECK(fabs((double)param[i] - oracle(kind, i, t)) < 0x1p-24 * 16 * t, "%s, element %d, step %d: %.9g, not %.9g",
					hd_optims[kind].name, i, t, (double)param[i], oracle(kind, i, t));
		}
	}
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
		s.skip = true;
		hd_optim_update_plain(&s, &param, &grad, &m, &v, 1);
		assert_true(param == 1 && m == 3 && v == 4);
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
			CHECK((hd_optims[kind].slot[k][0] != 0) == (k < hd_optims[kind].nslots), "%s", hd_optims[kind].name);
	assert_string_equal(hd_optims[HD_OPTIM_ADAMW].name, "adamw");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(updates_follow_the_papers),
		cmocka_unit_test(any_split_gives_the_same_bits),
		cmocka_unit_test(a_skipped_step_changes_nothing),
		cmocka_unit_test(corrections_are_those_of_the_power),
		cmocka_unit_test(the_table_names_its_slots),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
