/* The autoscaling engine of A. Or, H. Zhang, M. J. Freedman, "Resource Elasticity in Distributed Deep
 * Learning" (MLSys 2020), as its program decides: every N steps since the last change
 *
 *	one size known          a step up, or down at the maximum
 *	all pairs met           a step up from the largest
 *	the lowest pairs not    a step down from the smallest
 *	else                    the size below the first pair that was not met, but the one above while it has
 *	                        few samples
 *
 * A pair (i, j) of neighbouring known sizes is met if the marginal rate is more than theta of ideal, or with
 * a utility, if what ending earlier is worth is more than what it costs. `every` has no default there; 50
 * here. */
#include "autoscale/int.h"

void hd_ae_2020_sample(struct hd_scale *scale, uint32_t size, double step_s)
{
	(void)scale;
	(void)size;
	(void)step_s;
}

struct known { uint32_t size[HD_SCALE_MAX], n; bool ok[HD_SCALE_MAX]; };

static double cost_usd(const struct hd_scale *s, const struct hd_scale_now *now, uint32_t size)
{
	return hd_scale_money(s, size, (double)now->left * s->known[size].mean_s);
}

static bool met(const struct hd_scale *s, const struct hd_scale_now *now, uint32_t i, uint32_t j)
{
	double step_i = s->known[i].mean_s, step_j = s->known[j].mean_s, left = (double)now->left;

	if (!s->set.utility)
		return hd_scale_efficient(i, step_i, j, step_j, s->set.theta);
	double gain = hd_utility_at(&s->utility, now->elapsed_s + left * step_j) - hd_utility_at(&s->utility,
		now->elapsed_s + left * step_i);
	return gain > cost_usd(s, now, j) - cost_usd(s, now, i);
}

static void look(const struct hd_scale *s, const struct hd_scale_now *now, struct known *k)
{
	k->n = 0;
	for (uint32_t size = 1; size <= HD_SCALE_MAX; size++) {
		if (!s->known[size].n)
			continue;
		if (k->n)
			k->ok[k->n - 1] = met(s, now, k->size[k->n - 1], size);
		k->size[k->n++] = size;
	}
}

static uint32_t first_false(const struct known *k, uint32_t upto)
{
	for (uint32_t i = 0; i < upto; i++)
		if (!k->ok[i])
			return i;
	return upto;
}

static bool lowest_pass(const struct hd_scale *s, const struct known *k)
{
	uint32_t pairs = k->n - 1;

	return pairs >= s->set.passes && first_false(k, s->set.passes) == s->set.passes;
}

static int64_t decide(const struct hd_scale *s, const struct known *k, struct hd_scale_answer *answer)
{
	uint32_t pairs = k->n - 1, bad = first_false(k, pairs), last = k->size[k->n - 1];

	if (k->n == 1) {
		bool up = k->size[0] < s->set.max;
		hd_scale_why(answer, "only size %u is known: %u %s", k->size[0], s->set.step,
			up ? "more" : "fewer");
		return up ? (int64_t)k->size[0] + s->set.step : (int64_t)k->size[0] - s->set.step;
	}
	if (bad == pairs && last != s->set.max) {
		hd_scale_why(answer, "every step up to %u was worth it: %u more", last, s->set.step);
		return (int64_t)last + s->set.step;
	}
	if (!lowest_pass(s, k) && k->size[0] != s->set.min) {
		hd_scale_why(answer, "of the lowest %u steps up from %u not all were worth it: below it",
			s->set.passes, k->size[0]);
		return (int64_t)k->size[0] - s->set.step;
	}
	uint32_t i = bad;                                 /* == pairs, the last index, if all are met */
	if (i + 1 < k->n && s->known[k->size[i + 1]].n < s->set.stay) {
		hd_scale_why(answer, "size %u has %llu samples of %u: more evidence first", k->size[i + 1],
			(unsigned long long)s->known[k->size[i + 1]].n, s->set.stay);
		return k->size[i + 1];
	}
	hd_scale_why(answer, i < pairs ? "from %u to %u was not worth it (%.4g and %.4g s a step): %u" :
		"%u is the largest (to %u; %.4g, %.4g s): %u",
		k->size[i], k->size[i < pairs ? i + 1 : i], s->known[k->size[i]].mean_s,
		s->known[k->size[i < pairs ? i + 1 : i]].mean_s, k->size[i]);
	return k->size[i];
}

void hd_ae_2020_propose(struct hd_scale *scale, const struct hd_scale_now *now,
	struct hd_scale_answer *answer)
{
	struct known k;

	if (scale->since == 0 || scale->since % scale->set.every != 0 || scale->last_size != now->size)
		return;
	if (scale->set.utility && !scale->utility.closed)
		hd_utility_close(&scale->utility, now->elapsed_s + (double)now->left *
			scale->known[now->size].mean_s);
	look(scale, now, &k);
	if (k.n == 0)
		return;
	int64_t target = decide(scale, &k, answer);
	target = target < (int64_t)scale->set.min ? (int64_t)scale->set.min : target;
	answer->size = target > (int64_t)scale->set.max ? scale->set.max : (uint32_t)target;
}

double hd_ae_2020_cost(const struct hd_scale *scale, const struct hd_scale_now *now, uint32_t size)
{
	return scale->known[size].n ? hd_scale_objective(scale, now, size, scale->known[size].mean_s) :
		__builtin_nan("");
}
