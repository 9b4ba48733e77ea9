#include "spot/value.h"

#include <math.h>

const char *const hd_spot_strategy_names[HD_NSPOT_STRATEGIES] = {
#define X(id, name, tolerates) [HD_SPOT_##id] = name,
	HD_SPOT_STRATEGIES(X)
#undef X
};

/* ---- how many sets of k devices are tolerated: coefficients of generating functions */

struct poly { double at[HD_SPOT_TOGETHER + 1]; };         /* up to x^k; k is the caller's */

static double choose(uint32_t n, uint32_t k)
{
	double c = 1;

	if (k > n)
		return 0;
	for (uint32_t i = 0; i < k; i++)
		c = c * (n - i) / (i + 1);        /* whole after each step */
	return c;
}

static void multiply(struct poly *by, const struct poly *x, uint32_t k)
{
	struct poly out = { { 0 } };

	for (uint32_t i = 0; i <= k; i++)
		for (uint32_t j = 0; i + j <= k; j++)
			out.at[i + j] += by->at[i] * x->at[j];
	*by = out;
}

static struct poly power(const struct poly *x, uint32_t n, uint32_t k)
{
	struct poly out = { { 1 } };

	while (n--)
		multiply(&out, x, k);
	return out;
}

/* Of one stage's D devices not all. */
static double sets_rerouted(uint32_t d, uint32_t p, uint32_t k)
{
	struct poly stage = { { 0 } };

	for (uint32_t j = 0; j <= k && j < d; j++)
		stage.at[j] = choose(d, j);
	return power(&stage, p, k).at[k];
}

/* Of one ring of P devices no two neighbours: P / (P - j) C(P - j, j) sets of j. */
static double sets_shadowed(uint32_t d, uint32_t p, uint32_t k)
{
	struct poly ring = { { 1 } };

	for (uint32_t j = 1; j <= k && 2 * j <= p; j++)
		ring.at[j] = round(p * choose(p - j, j) / (p - j));
	return power(&ring, d, k).at[k];
}

/* Of D rings of P devices each stage has a holder: its own devices, or those of the stage before. Stages
 * whose devices are all lost are no neighbours, as in sets_shadowed(). */
static double sets_held(uint32_t d, uint32_t p, uint32_t k)
{
	struct poly some = { { 0 } };             /* of a stage's devices not all */
	double sets = 0;

	for (uint32_t j = 0; j <= k && j < d; j++)
		some.at[j] = choose(d, j);
	for (uint32_t j = 0; j * d <= k && (!j || 2 * j <= p); j++)
		sets += round(p * choose(p - j, j) / (p - j)) * power(&some, p - j, k).at[k - j * d];
	return sets;
}

/* In at most f of D + f pipelines. */
static double sets_spared(uint32_t d, uint32_t p, uint32_t f, uint32_t k)
{
	struct poly hit = { { 0 } }, hits = { { 1 } };
	double sets = k == 0;

	for (uint32_t j = 1; j <= k; j++)
		hit.at[j] = choose(p, j);
	for (uint32_t i = 1; i <= f; i++) {
		multiply(&hits, &hit, k);
		sets += choose(d + f, i) * hits.at[k];
	}
	return sets;
}

double hd_spot_exceeds(enum hd_spot_strategy strategy, uint32_t d, uint32_t p, uint32_t f, uint32_t k)
{
	const uint32_t n = (strategy == HD_SPOT_REPLICA ? d + f : d) * p;
	double sets = 0;

	if (k > n || k > HD_SPOT_TOGETHER)
		return 1;
	switch (strategy) {
	case HD_SPOT_REROUTE: sets = sets_rerouted(d, p, k); break;
	case HD_SPOT_LAZY:
	case HD_SPOT_EAGER:
	case HD_SPOT_FULL: sets = sets_shadowed(d, p, k); break;
	case HD_SPOT_REPLICA: sets = sets_spared(d, p, f, k); break;
	case HD_SPOT_CHECKPOINT:
	case HD_NSPOT_STRATEGIES: sets = k == 0; break;
	}
	return 1 - sets / choose(n, k);
}

double hd_spot_unheld(enum hd_spot_strategy strategy, uint32_t d, uint32_t p, uint32_t f, uint32_t k)
{
	const uint32_t width = strategy == HD_SPOT_REPLICA ? d + f : d;

	if (strategy == HD_SPOT_CHECKPOINT || strategy == HD_SPOT_REROUTE)
		return hd_spot_exceeds(strategy, d, p, f, k);
	if (k > width * p || k > HD_SPOT_TOGETHER)
		return 1;
	return 1 - (strategy == HD_SPOT_REPLICA ? sets_rerouted(width, p, k) : sets_held(d, p, k)) /
		choose(width * p, k);
}

/* ---- the market */

static void usual(struct hd_spot_market *m)
{
	*m = (struct hd_spot_market){ .usd_h = 0.91, .ntogether = 1, .together = { 1 }, .pause_s = 5,
		.rebuild_s = 30, .reload_s = 30, .checkpoint_s = 10, .switch_s = 1, .replan_s = 60,
		.doubled = 1.5 };
}

static enum hd_err read_together(struct hd_spot_market *m, const struct hd_json *list, struct hd_diag *diag)
{
	char path[160];
	double sum = 0;
	enum hd_err err = hd_json_as(list, HD_JSON_ARRAY, diag);

	if (!err && (hd_json_count(list) < 1 || hd_json_count(list) > HD_SPOT_TOGETHER))
		err = hd_fail(diag, HD_E_INPUT, "%s has 1 to %d shares: of losses of 1, 2, ... devices",
			hd_json_path(list, path, sizeof path), HD_SPOT_TOGETHER);
	m->ntogether = 0;
	for (size_t i = 0; !err && i < hd_json_count(list); i++) {
		double *w = &m->together[m->ntogether++];
		err = hd_json_as_f64(hd_json_item(list, i), w, diag);
		if (!err && !(*w >= 0 && *w <= 1))
			err = hd_fail(diag, HD_E_INPUT, "%s is a share, from 0 to 1",
				hd_json_path(hd_json_item(list, i), path, sizeof path));
		sum += *w;
	}
	if (!err && fabs(sum - 1) > 1e-6)
		err = hd_fail(diag, HD_E_INPUT, "%s sums to %g: the shares of all losses are 1",
			hd_json_path(list, path, sizeof path), sum);
	return err;
}

enum hd_err hd_spot_market_read(struct hd_spot_market *market, const struct hd_json *json,
	struct hd_diag *diag)
{
	struct hd_spot_market m;
	const struct { const char *key; double *to, min, max; } rows[] = {
		{ "usd_h", &m.usd_h, 1e-9, 1e6 }, { "losses_h", &m.losses_h, 0, HD_SPOT_LOSSES_H },
		{ "announced", &m.announced, 0, 1 }, { "pause_s", &m.pause_s, 0, 1e6 },
		{ "rebuild_s", &m.rebuild_s, 0, 1e6 }, { "reload_s", &m.reload_s, 0, 1e6 },
		{ "checkpoint_s", &m.checkpoint_s, 0, 1e6 }, { "switch_s", &m.switch_s, 0, 1e6 },
		{ "replan_s", &m.replan_s, 0, 1e6 }, { "doubled", &m.doubled, 1, 1000 },
		{ "pause_max_s", &m.pause_max_s, 0, 1e6 }, { "deadline_s", &m.deadline_s, 0, 1e12 },
		{ "budget_usd", &m.budget_usd, 0, 1e12 },
	};
	enum { ROWS = sizeof rows / sizeof *rows };
	const char *keys[ROWS + 2] = { "together" };
	const struct hd_json *value;
	char path[160];

	usual(&m);
	for (size_t i = 0; i < ROWS; i++)
		keys[i + 1] = rows[i].key;
	enum hd_err err = hd_json_only(json, keys, diag);
	for (size_t i = 0; i < ROWS && !err; i++) {
		if (!(value = hd_json_find(json, rows[i].key)))
			continue;
		err = hd_json_as_f64(value, rows[i].to, diag);
		if (!err && !(*rows[i].to >= rows[i].min && *rows[i].to <= rows[i].max))
			err = hd_fail(diag, HD_E_INPUT, "%s is from %g to %g",
				hd_json_path(value, path, sizeof path), rows[i].min, rows[i].max);
	}
	if (!err && !hd_json_find(json, "losses_h"))
		err = hd_fail(diag, HD_E_INPUT,
			"%s: losses_h is missing: at how many instants an hour devices are lost",
			hd_json_path(json, path, sizeof path));
	if (!err && (value = hd_json_find(json, "together")))
		err = read_together(&m, value, diag);
	if (!err)
		*market = m;
	return err;
}

void hd_spot_market_of(struct hd_spot_market *market, const struct hd_spot_trace *t)
{
	uint64_t sizes[HD_SPOT_TOGETHER] = { 0 }, instants = 0, together = 0;

	usual(market);
	for (size_t i = 0; i < t->n; i++) {
		together += !t->at[i].added;
		if (!together || (i + 1 < t->n && t->at[i + 1].at_ms == t->at[i].at_ms))
			continue;
		sizes[(together < HD_SPOT_TOGETHER ? together : HD_SPOT_TOGETHER) - 1]++;
		instants++;
		together = 0;
	}
	if (!instants)
		return;
	market->losses_h = (double)instants * 3.6e6 / (double)t->at[t->n - 1].at_ms;
	for (uint32_t k = 0; k < HD_SPOT_TOGETHER; k++) {
		market->together[k] = (double)sizes[k] / (double)instants;
		market->ntogether = sizes[k] ? k + 1 : market->ntogether;
	}
}

/* ---- value */

/* Of k lost among all machines j are among those used, by the hypergeometric distribution. */
struct hd_spot_market hd_spot_market_seen(const struct hd_spot_market *market, uint32_t machines,
	uint32_t used)
{
	struct hd_spot_market seen = *market;
	double struck = 0;

	if (machines <= used)
		return seen;
	seen.ntogether = 1;
	for (uint32_t j = 0; j < HD_SPOT_TOGETHER; j++)
		seen.together[j] = 0;
	for (uint32_t i = 1; i <= market->ntogether; i++) {
		const uint32_t k = i < machines ? i : machines;
		for (uint32_t j = 1; j <= k && j <= used; j++) {
			const double w = market->together[i - 1] * choose(used, j) *
				choose(machines - used, k - j) / choose(machines, k);
			seen.together[j - 1] += w;
			seen.ntogether = w > 0 && j > seen.ntogether ? j : seen.ntogether;
			struck += w;
		}
	}
	seen.losses_h *= struck;
	for (uint32_t j = 0; j < seen.ntogether && struck > 0; j++)
		seen.together[j] /= struck;
	if (!(struck > 0))
		seen.together[0] = 1;
	return seen;
}

/* Checkpoints as far apart as loses least, by the rate of the losses that they are for: sqrt(2 W / rate). */
static double interval(const struct hd_spot_market *m, double per_h)
{
	return per_h > 0 ? sqrt(2 * m->checkpoint_s / (per_h / 3600)) : INFINITY;
}

/* A step's time after k tolerated losses, to one before. */
static double slow_down(const struct hd_spot_market *m, const struct hd_spot_grid *g,
	const struct hd_spot_value *v, uint32_t k)
{
	const double n = v->devices / g->stages, left = n - (double)k / g->stages;

	if (v->strategy == HD_SPOT_REPLICA && !g->spares_work)
		return 1;
	if (v->strategy != HD_SPOT_REROUTE && v->strategy != HD_SPOT_REPLICA)
		return m->doubled;
	return left > 0 ? n / left : 1;
}

/* Losses per hour that take `s` at most, while the run has the pipelines of each. */
static double take_at_most(const struct hd_spot_value *of, const double *share, uint32_t n, double s)
{
	double sum = 0;

	for (uint32_t i = 0; i < n; i++)
		for (int k = 0; k < HD_SPOT_TAKES; k++)
			sum += of[i].takes[k].s <= s ? share[i] * of[i].losses_h * of[i].takes[k].share : 0;
	return sum;
}

/* What half of them take at most, by bisection: no memory for a list that is sorted. */
static double half_take_s(const struct hd_spot_value *of, const double *share, uint32_t n)
{
	const double half = take_at_most(of, share, n, INFINITY) / 2 * (1 - 1e-12);
	double below = 0, most = 0, at = 0;

	for (uint32_t i = 0; i < n; i++)
		for (int k = 0; k < HD_SPOT_TAKES; k++)
			most = fmax(most, of[i].takes[k].s);
	for (int i = 0; i < 60 && below < most; i++) {
		const double mid = (below + most) / 2;
		*(take_at_most(of, share, n, mid) >= half ? &most : &below) = mid;
	}
	for (uint32_t i = 0; i < n; i++)
		for (int k = 0; k < HD_SPOT_TAKES; k++)
			at = of[i].takes[k].s <= most ? fmax(at, of[i].takes[k].s) : at;
	return at;
}

/* Shares that were counted sum to nearly 0 or 1. */
static double whole(double share)
{
	return share > 1 - 1e-12 ? 1 : share < 1e-12 ? 0 : share;
}

struct hd_spot_value hd_spot_value(const struct hd_spot_market *market, const struct hd_spot_grid *g,
	enum hd_spot_strategy strategy, uint32_t spares, double overhead)
{
	struct hd_spot_value v = { .strategy = strategy, .spares = strategy == HD_SPOT_REPLICA ? spares : 0,
		.step_s = g->step_s, .overhead = overhead };
	double tolerated = 0;

	v.devices = (g->pipelines + v.spares) * g->stages;
	const struct hd_spot_market seen = hd_spot_market_seen(market, g->present ? g->present : g->machines,
		v.devices), *m = &seen;
	v.losses_h = m->losses_h;
	for (uint32_t k = 1; k <= m->ntogether; k++) {
		const double w = m->together[k - 1],
			phi = hd_spot_exceeds(strategy, g->pipelines, g->stages, v.spares, k);
		v.exceeds += w * phi;
		v.unheld += w * hd_spot_unheld(strategy, g->pipelines, g->stages, v.spares, k);
		tolerated += w * (1 - phi) * (m->pause_s + g->redo_s +
			(slow_down(m, g, &v, k) - 1) * m->replan_s);
	}
	v.exceeds = whole(v.exceeds);
	v.unheld = fmin(whole(v.unheld), v.exceeds);
	v.interval_s = interval(m, m->losses_h * (1 - m->announced) * v.unheld);
	if (strategy != HD_SPOT_CHECKPOINT)
		v.interval_s = fmin(v.interval_s, HD_SPOT_SAVE_S);
	if (isfinite(v.interval_s) && v.interval_s > 0)
		v.saving = m->checkpoint_s / v.interval_s;
	v.overhead += v.saving;
	const double held_s = m->rebuild_s + g->step_s / 2,
		unheld_s = m->rebuild_s + (isfinite(v.interval_s) ? v.interval_s / 2 + m->reload_s : 0),
		exceeded = (v.exceeds - v.unheld) * held_s + v.unheld * unheld_s;
	v.tolerated_s = v.exceeds < 1 ? tolerated / (1 - v.exceeds) : 0;
	v.exceeded_s = v.exceeds > 0 ? exceeded / v.exceeds : 0;
	v.takes[0].s = m->pause_s + g->redo_s;
	v.takes[0].share = 1 - v.exceeds;
	v.takes[1].s = held_s;
	v.takes[1].share = v.exceeds - v.unheld;
	v.takes[2].s = unheld_s;
	v.takes[2].share = v.unheld;
	struct hd_spot_value one = v;
	one.losses_h = 1;
	v.pause_s = half_take_s(&one, &(double){ 1 }, 1);
	v.stall_s = (1 - m->announced) * (tolerated + exceeded) + m->announced * m->switch_s;
	v.useful = 1 / ((1 + v.overhead) * (1 + m->losses_h / 3600 * v.stall_s));
	v.usd_h = (g->machines > v.devices ? g->machines : v.devices) * m->usd_h;
	v.value = g->batch / g->step_s * v.useful * 3600 / v.usd_h;
	v.allowed = !(m->pause_max_s > 0) || v.pause_s <= m->pause_max_s;
	return v;
}

void hd_spot_presence(struct hd_spot_there *there, const struct hd_spot_trace *t,
	const struct hd_spot_grid *grid)
{
	const double all_ms = t->n ? (double)t->at[t->n - 1].at_ms : 0;
	uint32_t here = 0;

	for (uint32_t d = 0; d <= grid->pipelines; d++)
		there[d] = (struct hd_spot_there){ .share = 0 };
	for (size_t i = 0; i + 1 < t->n && all_ms > 0; i++) {
		here = t->at[i].added ? here + 1 : here - 1;
		const uint32_t d = here / grid->stages;
		struct hd_spot_there *at = &there[d < grid->pipelines ? d : grid->pipelines];
		const double share = (double)(t->at[i + 1].at_ms - t->at[i].at_ms) / all_ms;
		at->share += share;
		at->machines += share * here;
	}
	for (uint32_t d = 0; d <= grid->pipelines; d++)
		there[d].machines /= there[d].share > 0 ? there[d].share : 1;
	if (!(all_ms > 0))
		there[grid->pipelines] = (struct hd_spot_there){ 1, grid->pipelines * grid->stages };
}

/* As if checkpoints had been so far apart. */
static void save_every(struct hd_spot_value *v, const struct hd_spot_market *m, double interval_s)
{
	const bool ever = isfinite(interval_s);
	const double saving = ever && interval_s > 0 ? m->checkpoint_s / interval_s : 0,
		more_s = m->rebuild_s + (ever ? interval_s / 2 + m->reload_s : 0) - v->takes[2].s;

	if (!(v->useful > 0))
		return;
	v->overhead += saving - v->saving;
	v->saving = saving;
	v->interval_s = interval_s;
	v->takes[2].s += more_s;
	v->exceeded_s += v->exceeds > 0 ? v->unheld / v->exceeds * more_s : 0;
	v->stall_s += (1 - m->announced) * v->unheld * more_s;
	v->value /= v->useful;
	v->useful = 1 / ((1 + v->overhead) * (1 + v->losses_h / 3600 * v->stall_s));
	v->value *= v->useful;
}

struct hd_spot_value hd_spot_value_present(const struct hd_spot_market *market, struct hd_spot_value *of,
	const double *share, uint32_t n)
{
	double back_h = 0, runs = 0;

	for (uint32_t k = 0; k < n; k++) {
		back_h += share[k + 1] * of[k].losses_h * (1 - market->announced) * of[k].unheld;
		runs += of[k].useful > 0 ? share[k + 1] : 0;
	}
	double interval_s = interval(market, runs > 0 ? back_h / runs : 0);
	if (of[n - 1].strategy != HD_SPOT_CHECKPOINT)
		interval_s = fmin(interval_s, HD_SPOT_SAVE_S);
	for (uint32_t k = 0; k < n; k++)
		save_every(&of[k], market, interval_s);
	struct hd_spot_value v = of[n - 1];

	v.value = 0;
	for (uint32_t k = 1; k <= n; k++)
		v.value += share[k] * of[k - 1].value;
	if (take_at_most(of, share + 1, n, INFINITY) > 0)
		v.pause_s = half_take_s(of, share + 1, n);
	v.allowed = !(market->pause_max_s > 0) || v.pause_s <= market->pause_max_s;
	return v;
}

static bool earlier(const struct hd_spot_value *a, const struct hd_spot_value *b)
{
	if (a->strategy != b->strategy)
		return a->strategy < b->strategy;
	return a->spares != b->spares ? a->spares < b->spares : a->value > b->value;
}

uint32_t hd_spot_choose(uint32_t n, const struct hd_spot_value *values)
{
	uint32_t chosen = n;
	double best = -1;

	for (uint32_t i = 0; i < n; i++)
		if (values[i].allowed)
			best = fmax(best, values[i].value);
	for (uint32_t i = 0; i < n; i++)
		if (values[i].allowed && values[i].value >= 0.99 * best &&
			(chosen == n || earlier(&values[i], &values[chosen])))
			chosen = i;
	return chosen;
}
