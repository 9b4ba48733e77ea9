/* Ours: the solver knows what computing takes at every size, the rest is fitted to what was measured, and
 * only sizes that could still be better than the best one measured are tried.
 *
 * Candidates are the sizes where computing gets shorter (ceil(V / k) falls). Of each a step time is known:
 * measured, mean +- 2 standard deviations of it; or fitted (curve_fit.h), from the least to the most that any
 * explanation says, each give or take max(5 %, 2 spread). Computing cannot have taken longer than a whole
 * step did: where a step was surely shorter than the solver says, all its times are scaled down to it. Every
 * LOOP steps, at a size for that long:
 *
 *	best = the measured candidate of least J
 *	open = those not measured whose most favourable J is below best's least favourable
 *	go to the open one of least J by the most favourable explanation, if that gains over best more than 1
 *	% and twice what the
 *	        change costs; where the fit misses a measured size by more than 5 %, by the most favourable J
 *	        itself, as long as that and looking around (next) together cost at most 2 % of J
 *	look around: go to the candidate that is, as a ratio, farthest from all measured sizes, if it is twice
 *	or half of the nearest,
 *	        would be the best if it took a third of what is predicted, and all of these together cost at
 *	        most 1 % of J: what no explanation foresees (faster than ideal, a stair) is only found so
 *	rival = a measured one that could be better than best by more than 1 % and twice the change, as
 *	neither is known to 1 %:
 *	        stay at, or go to, the less known of the two until it is
 *	else settle on best
 *
 * So every change goes to a size that was never measured, or that is not known to 1 %, or ends the search.
 * Settled, the last 32 slices are watched, each a step or as many as last SLICE_S (on a busy machine a few
 * milliseconds say nothing); when their mean leaves the measured interval, what is known is forgotten. */
#include <math.h>
#include <string.h>

#include "autoscale/curve_fit.h"
#include "autoscale/int.h"

enum { LOOP = 20 };
#define PS 1e-12
#define SLICE_S 0.01
/* a measured step varies by 1 % at least; 5 % off is another curve */
static const double floor_sd = 0.01, leave = 0.05, sure = 0.01;
static const double surprise = 3, look_budget = 0.01, blind_budget = 0.02;

struct estimate { double low_s, mid_s, high_s; bool measured; };

static bool is_candidate(const struct hd_scale *s, uint32_t size)
{
	return size == s->set.min || s->set.compute_ps[size] < s->set.compute_ps[size - 1];
}

static bool is_measured(const struct hd_scale *s, uint32_t size) { return s->known[size].n + 1 >= LOOP; }

static double solver_s(const struct hd_scale *s, uint32_t size) { return (double)s->set.compute_ps[size] * PS;
	}

static double compute_s(const struct hd_scale *s, uint32_t size)
{
	double scale = 1;

	for (uint32_t k = s->set.min; k <= s->set.max; k++) {
		double most = s->known[k].mean_s + 2 * hd_scale_sd_of_mean(&s->known[k]);
		if (s->known[k].n && most < scale * solver_s(s, k))
			scale = most / solver_s(s, k);
	}
	return scale * solver_s(s, size);
}

static double weight(const struct hd_scale_known *k)
{
	double variance = k->n > 1 ? k->m2 / ((double)k->n - 1) : 0,
		least = floor_sd * k->mean_s * floor_sd * k->mean_s;

	return (double)k->n / (variance > least ? variance : least);
}

static bool fit_known(const struct hd_scale *s, struct hd_curve_fit *fit)
{
	struct hd_curve_point point[HD_SCALE_MAX];
	uint32_t n = 0;

	for (uint32_t size = s->set.min; size <= s->set.max; size++)
		if (s->known[size].n)
			point[n++] = (struct hd_curve_point){ size, compute_s(s, size), s->known[size].mean_s,
				weight(&s->known[size]) };
	if (n)
		hd_curve_fit(fit, point, n);
	return n > 0;
}

static struct estimate estimate(const struct hd_scale *s, const struct hd_curve_fit *fit, uint32_t size)
{
	struct estimate e = { .measured = is_measured(s, size) };
	double wide = 2 * fit->spread > leave ? 2 * fit->spread : leave;

	if (e.measured) {
		double off = 2 * hd_scale_sd_of_mean(&s->known[size]);
		return (struct estimate){ s->known[size].mean_s - off, s->known[size].mean_s,
			s->known[size].mean_s + off, true };
	}
	for (uint32_t i = 0; i < fit->n; i++) {
		double t = hd_curve_at(&fit->may[i], size, compute_s(s, size));
		e.mid_s = !i || t < e.mid_s ? t : e.mid_s;
		e.high_s = !i || t > e.high_s ? t : e.high_s;
	}
	double low_s = e.mid_s * (wide < 1 ? 1 - wide : 0), least_s = compute_s(s, size) * (1 - leave);
	e.low_s = low_s > least_s ? low_s : least_s;      /* no step is shorter than its computing */
	e.high_s *= 1 + wide;
	return e;
}

/* What going from one size to another costs, in the units of J. */
static double change_cost(const struct hd_scale *s, uint32_t from, uint32_t to)
{
	double joiners_s = to > from ? s->set.boot_s : 0;

	if (s->set.objective == HD_OBJECTIVE_TIME || s->set.objective == HD_OBJECTIVE_EFFICIENCY)
		return s->set.stall_s;
	return hd_scale_money(s, to > from ? to - from : 0, joiners_s) + hd_scale_money(s, from,
		s->set.stall_s);
}

/* What LOOP steps there cost more than at the best size, and the change, in the units of J. The way back
 * is the next change's. */
static double probe_cost(const struct hd_scale *s, const struct hd_scale_now *now, uint32_t size,
	double step_s, uint32_t best)
{
	bool seconds = s->set.objective == HD_OBJECTIVE_TIME || s->set.objective == HD_OBJECTIVE_EFFICIENCY;
	double steps = now->left < LOOP ? (double)now->left : LOOP, there_s = steps * step_s,
		best_s = steps * s->known[best].mean_s;
	double more = seconds ? there_s - best_s : hd_scale_money(s, size, there_s) - hd_scale_money(s, best,
		best_s);

	return (more > 0 ? more : 0) + change_cost(s, now->size, size);
}

/* What is left at the best size, in the units of what trying costs. */
static double whole_cost(const struct hd_scale *s, const struct hd_scale_now *now, uint32_t best)
{
	double seconds = (double)now->left * s->known[best].mean_s;

	return s->set.objective == HD_OBJECTIVE_TIME ? seconds : hd_scale_money(s, best, seconds);
}

/* ---- the number J */

/* high_j: of best, at worst */
struct curve_search { uint32_t best, open, nopen; double best_j, open_j, high_j; char some[64]; };

static void find_best(const struct hd_scale *s, const struct hd_scale_now *now,
	const struct hd_curve_fit *fit, struct curve_search *out)
{
	for (uint32_t size = s->set.min; size <= s->set.max; size++) {
		struct estimate e = estimate(s, fit, size);
		double j = hd_scale_objective(s, now, size, e.mid_s);
		if (!e.measured || (out->best && j >= out->best_j))
			continue;
		out->best = size;
		out->best_j = j;
		out->high_j = hd_scale_objective(s, now, size, e.high_s);
	}
}

static void find_open(const struct hd_scale *s, const struct hd_scale_now *now,
	const struct hd_curve_fit *fit, struct curve_search *out)
{
	struct hd_text some;

	hd_text_fixed(&some, out->some, sizeof out->some);
	for (uint32_t size = s->set.min; size <= s->set.max; size++) {
		struct estimate e = estimate(s, fit, size);
		double low_j = hd_scale_objective(s, now, size, e.low_s),
			j = fit->spread > leave ? low_j : hd_scale_objective(s, now, size, e.mid_s);
		if (e.measured || !is_candidate(s, size) || low_j >= out->high_j)
			continue;
		if (out->nopen++ < 8)
			hd_text_addf(&some, " %u", size);
		if (!out->open || j < out->open_j) {
			out->open = size;
			out->open_j = j;
		}
	}
}

static void settle(struct hd_scale *s, uint32_t size, struct hd_scale_answer *answer)
{
	answer->size = size;
	s->settled = true;
	s->settled_size = size;
	s->nwindow = s->nslice = 0;
	s->slice_s = 0;
}

static bool is_sure(const struct hd_scale *s,
	uint32_t size) { return hd_scale_sd_of_mean(&s->known[size]) <= sure * s->known[size].mean_s; }

/* What a measured size could gain over best, if both are as far off as they may be; 0: it is known to 1 %,
 * or could not gain 1 %. */
static double may_gain(const struct hd_scale *s, const struct hd_scale_now *now,
	const struct hd_curve_fit *fit, const struct curve_search *x, uint32_t size)
{
	struct estimate e = estimate(s, fit, size);
	double gain = x->high_j - hd_scale_objective(s, now, size, e.low_s);

	if (!e.measured || size == x->best || (is_sure(s, size) && is_sure(s, x->best)))
		return 0;
	return gain > sure * fabs(x->best_j) && gain > 2 * change_cost(s, now->size, size) ? gain : 0;
}

static bool weigh_rival(const struct hd_scale *s, const struct hd_scale_now *now,
	const struct hd_curve_fit *fit, const struct curve_search *x,
	struct hd_scale_answer *answer)
{
	uint32_t rival = 0;
	double most = 0;

	for (uint32_t size = s->set.min; size <= s->set.max; size++) {
		double gain = may_gain(s, now, fit, x, size);
		if (gain > most && !(rival == now->size && !is_sure(s, rival))) {
			most = gain;
			rival = size;
		}
		if (gain > 0 && size == now->size && !is_sure(s, size))
			rival = size;                     /* finish measuring this size */
	}
	if (!rival)
		return false;
	bool here = (now->size == rival || now->size == x->best) && !is_sure(s, now->size);
	answer->size = here ? now->size : is_sure(s, rival) ? x->best : rival;
	hd_scale_why(answer, "%u or %u: %.4g s a step +- %.2g, and %.4g +- %.2g: %s %u for more evidence",
		x->best, rival, s->known[x->best].mean_s,
		2 * hd_scale_sd_of_mean(&s->known[x->best]), s->known[rival].mean_s,
		2 * hd_scale_sd_of_mean(&s->known[rival]),
		answer->size == now->size ? "stay at" : "go to", answer->size);
	return true;
}

/* ---- the first look around */

static double apart(uint32_t a, uint32_t b) { return a > b ? (double)a / b : (double)b / a; }

static double nearest_measured(const struct hd_scale *s, uint32_t size)
{
	double nearest = INFINITY;

	for (uint32_t k = s->set.min; k <= s->set.max; k++)
		if (is_measured(s, k) && apart(k, size) < nearest)
			nearest = apart(k, size);
	return nearest;
}

static uint32_t nmeasured(const struct hd_scale *s)
{
	uint32_t n = 0;

	for (uint32_t size = s->set.min; size <= s->set.max; size++)
		n += is_measured(s, size);
	return n;
}

static bool look_around(struct hd_scale *s, const struct hd_scale_now *now, const struct hd_curve_fit *fit,
	const struct curve_search *x,
	struct hd_scale_answer *answer)
{
	double farthest = 2, cost = 0, whole = whole_cost(s, now, x->best);
	uint32_t to = 0;

	for (uint32_t size = s->set.min; size <= s->set.max; size++) {
		double step_s = estimate(s, fit, size).mid_s, by = nearest_measured(s, size),
			costs = probe_cost(s, now, size, step_s, x->best);
		if (!is_candidate(s, size) || by < farthest || s->looked + costs > look_budget * whole ||
			is_measured(s, size) ||
		    hd_scale_objective(s, now, size, step_s / surprise) > x->best_j)
			continue;
		farthest = by;
		to = size;
		cost = costs;
	}
	if (!to)
		return false;
	s->looked += cost;
	answer->size = to;
	hd_scale_why(answer, "look at %u: %u sizes are known, trying it costs %.3g of %.5g", to, nmeasured(s),
		cost, whole);
	return true;
}

static void propose_by_number(struct hd_scale *s, const struct hd_scale_now *now,
	const struct hd_curve_fit *fit, struct hd_scale_answer *answer)
{
	struct curve_search x = { 0 };

	find_best(s, now, fit, &x);
	if (!x.best)
		return;
	find_open(s, now, fit, &x);
	double best_s = s->known[x.best].mean_s, change = x.open ? change_cost(s, now->size, x.open) : 0;
	double blind = x.open && fit->spread > leave ? probe_cost(s, now, x.open,
		estimate(s, fit, x.open).mid_s, x.best) : 0;
	bool may = blind == 0 || s->looked + blind <= blind_budget * whole_cost(s, now, x.best);
	if (x.open && may && x.best_j - x.open_j > 2 * change &&
		x.best_j - x.open_j > sure * fabs(x.best_j)) {
		s->looked += blind;
		answer->size = x.open;
		hd_scale_why(answer,
			"try %u: %.4g s a step if all goes well (%u takes %.4g), J %.5g instead of %.5g, "
			"the change costs %.3g; open:%s%s",
			x.open, estimate(s, fit, x.open).mid_s, x.best, best_s, x.open_j, x.best_j, change,
			x.some, x.nopen > 8 ? " ..." : "");
		return;
	}
	if (look_around(s, now, fit, &x, answer) || weigh_rival(s, now, fit, &x, answer))
		return;
	settle(s, x.best, answer);
	if (x.open)
		hd_scale_why(answer,
			"settle on %u: %.4g s a step, J %.5g; %u could save %.3g and the change costs %.3g",
			x.best, s->known[x.best].mean_s,
			x.best_j, x.open, x.best_j - x.open_j, change);
	else
		hd_scale_why(answer,
			"settle on %u: %.4g s a step, J %.5g; no size of %u to %u could be better for the "
			"%llu steps left", x.best,
			s->known[x.best].mean_s, x.best_j, s->set.min, s->set.max,
			(unsigned long long)now->left);
}

/* ---- efficiency: the largest candidate whose step up from the one before gains enough */

static void propose_efficient(struct hd_scale *s, const struct hd_curve_fit *fit,
	struct hd_scale_answer *answer)
{
	uint32_t before = s->set.min, chosen = before, unsure = 0;

	for (uint32_t size = s->set.min + 1; size <= s->set.max; size++) {
		if (!is_candidate(s, size))
			continue;
		struct estimate i = estimate(s, fit, before), j = estimate(s, fit, size);
		if (hd_scale_efficient(before, i.mid_s, size, j.mid_s, s->set.theta)) {
			chosen = size;
			unsure = j.measured ? i.measured ? unsure : before : size;
		} else if (hd_scale_efficient(before, i.measured ? i.mid_s : i.high_s, size,
			j.measured ? j.mid_s : j.low_s, s->set.theta) && !j.measured) {
			unsure = size;
		}
		before = size;
	}
	if (unsure && !is_measured(s, unsure)) {
		answer->size = unsure;
		hd_scale_why(answer, "try %u: it may gain more than %.3g of ideal (predicted %.4g s a step)",
			unsure, s->set.theta,
			estimate(s, fit, unsure).mid_s);
		return;
	}
	if (!is_measured(s, chosen)) {
		answer->size = chosen;
		hd_scale_why(answer,
			"try %u: the largest that gains more than %.3g of ideal, by the fit (%.4g s a step)",
			chosen, s->set.theta,
			estimate(s, fit, chosen).mid_s);
		return;
	}
	settle(s, chosen, answer);
	hd_scale_why(answer,
		"settle on %u: the largest that gains more than %.3g of ideal over the size before; %.4g s "
		"a step", chosen, s->set.theta,
		s->known[chosen].mean_s);
}

/* ---- slots */

/* The mean of the window against what was settled on. Windows are many: four standard deviations of it,
 * and 5 % at least. */
static bool left_interval(const struct hd_scale *s)
{
	double mean = 0, m2 = 0, settled = s->known[s->settled_size].mean_s;

	for (uint32_t i = 0; i < HD_SCALE_WINDOW; i++)
		mean += s->window_s[i] / HD_SCALE_WINDOW;
	for (uint32_t i = 0; i < HD_SCALE_WINDOW; i++)
		m2 += (s->window_s[i] - mean) * (s->window_s[i] - mean);
	double error = 4 * sqrt(m2 / (HD_SCALE_WINDOW - 1) / HD_SCALE_WINDOW), wide = leave * settled;
	return fabs(mean - settled) > (error > wide ? error : wide);
}

void hd_curve_sample(struct hd_scale *scale, uint32_t size, double step_s)
{
	if (!scale->settled || size != scale->settled_size)
		return;
	scale->slice_s += step_s;
	scale->nslice++;
	if (scale->slice_s < SLICE_S)
		return;
	scale->window_s[scale->nwindow++] = scale->slice_s / scale->nslice;
	scale->nslice = 0;
	scale->slice_s = 0;
	if (scale->nwindow < HD_SCALE_WINDOW)
		return;
	scale->nwindow = 0;
	if (!left_interval(scale))
		return;
	memset(scale->known, 0, sizeof scale->known);
	scale->looked = 0;
	struct hd_scale_known *known = &scale->known[size];
	for (uint32_t i = 0; i < HD_SCALE_WINDOW; i++) {
		double off = scale->window_s[i] - known->mean_s;
		known->n++;
		known->mean_s += off / (double)known->n;
		known->m2 += off * (scale->window_s[i] - known->mean_s);
	}
	scale->settled = false;
}

void hd_curve_propose(struct hd_scale *scale, const struct hd_scale_now *now, struct hd_scale_answer *answer)
{
	struct hd_curve_fit fit;

	if (scale->settled || scale->last_size != now->size || scale->since < LOOP ||
		scale->since % LOOP != 0 || !fit_known(scale, &fit))
		return;
	if (scale->utility.n && !scale->utility.closed)
		hd_utility_close(&scale->utility, now->elapsed_s + (double)now->left *
			scale->known[now->size].mean_s);
	if (scale->set.objective == HD_OBJECTIVE_EFFICIENCY)
		propose_efficient(scale, &fit, answer);
	else
		propose_by_number(scale, now, &fit, answer);
}

double hd_curve_cost(const struct hd_scale *scale, const struct hd_scale_now *now, uint32_t size)
{
	struct hd_curve_fit fit;

	return fit_known(scale, &fit) ? hd_scale_objective(scale, now, size,
		estimate(scale, &fit, size).mid_s) : __builtin_nan("");
}
