#include "spot/resilience.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/le.h"

/* What shadows add to a step that were never measured: as simulated (docs/redundancy.md), rounded up. */
static const double usual_overhead[HD_NSPOT_STRATEGIES] = { [HD_SPOT_LAZY] = 0.02, [HD_SPOT_EAGER] = 0.1,
	[HD_SPOT_FULL] = 0.5 };

void hd_resilience_begin(struct hd_resilience *r, enum hd_spot_strategy is, int64_t now_ms)
{
	*r = (struct hd_resilience){ .is = is, .began_ms = now_ms };
}

void hd_resilience_lost(struct hd_resilience *r, uint32_t worker, uint32_t nranks, bool in_time,
	uint64_t step, int64_t now_ms)
{
	bool known = false;

	if (!nranks)
		return;
	for (uint32_t i = 0; i < r->n; i++)
		if (r->loss[i].worker == worker) {        /* it had left, and died before it was gone */
			r->loss[i].in_time &= in_time;
			known = true;
		}
	for (uint32_t i = 0; !known && i < nranks; i++) {
		r->loss[r->next].at_ms = now_ms;
		r->loss[r->next].worker = worker;
		r->loss[r->next].in_time = in_time;
		r->next = (r->next + 1) % HD_RESILIENCE_LOSSES;
		r->n += r->n < HD_RESILIENCE_LOSSES;
	}
	if (in_time || r->until)
		return;
	r->lost_ms = now_ms;
	r->until = step + 1;
	r->back = false;
}

void hd_resilience_there(struct hd_resilience *r, uint32_t devices, int64_t now_ms)
{
	int64_t *ms = &r->there_ms[r->there < HD_RESILIENCE_THERE ? r->there : HD_RESILIENCE_THERE], all = 0;

	if (r->there && now_ms > r->since_ms)
		*ms += now_ms - r->since_ms;
	r->there = devices;
	r->since_ms = now_ms;
	for (uint32_t m = 0; m <= HD_RESILIENCE_THERE; m++)
		all += r->there_ms[m];
	for (; all > HD_RESILIENCE_THERE_MS; all /= 2)
		for (uint32_t m = 0; m <= HD_RESILIENCE_THERE; m++)
			r->there_ms[m] /= 2;
}

void hd_resilience_back(struct hd_resilience *r) { r->back = true; }

void hd_resilience_took(struct hd_resilience *r, enum hd_spot_strategy mode) { r->is = mode; }

/* ---- what is known */

/* Without shadows steps are the same, however many pipelines are kept. */
static enum hd_spot_strategy timed_as(enum hd_spot_strategy mode)
{
	return mode == HD_SPOT_REPLICA ? HD_SPOT_CHECKPOINT : mode;
}

static double mean_of(double was, double is) { return was > 0 ? 0.75 * was + 0.25 * is : is; }

bool hd_resilience_made_up(struct hd_resilience *r, uint64_t step, int64_t now_ms)
{
	double *of = r->back ? &r->back_s : &r->takes_s[r->is];

	if (!r->until || step < r->until - 1)
		return false;
	*of = mean_of(*of, (double)(now_ms - r->lost_ms) * 1e-3);
	r->until = 0;
	return true;
}

static void measure(struct hd_resilience *r, const struct hd_resilience_now *now)
{
	const enum hd_spot_strategy is = timed_as(r->is);
	const double weight = r->nsteps[is] < 1 ? 1 : fmax(1.0 / HD_RESILIENCE_STEPS,
		1.0 / (r->nsteps[is] + 1));

	if (now->pipelines != r->pipelines || now->stages != r->stages || now->machines != r->machines)
		for (int i = 0; i < HD_NSPOT_STRATEGIES; i++)
			r->nsteps[i] = 0;
	r->pipelines = now->pipelines;
	r->stages = now->stages;
	r->machines = now->machines;
	if (!hd_resilience_made_up(r, now->step, now->now_ms) && !r->until && now->step_s > 0) {
		double *of = &r->step_s[is];
		*of = r->nsteps[is]++ ? *of + weight * (now->step_s - *of) : now->step_s;
	}
}

static double takes_of(const struct hd_resilience *r, const struct hd_resilience_now *now,
	enum hd_spot_strategy mode)
{
	static const enum hd_spot_strategy other[] = { HD_SPOT_LAZY, HD_SPOT_CHECKPOINT, HD_SPOT_EAGER,
		HD_SPOT_FULL, HD_SPOT_REPLICA };

	if (r->takes_s[mode] > 0)
		return r->takes_s[mode];
	for (size_t i = 0; i < sizeof other / sizeof *other; i++)
		if (r->takes_s[other[i]] > 0)
			return r->takes_s[other[i]];
	return now->takes_s;
}

static double overhead_of(const struct hd_resilience *r, enum hd_spot_strategy mode)
{
	const uint32_t none = r->nsteps[HD_SPOT_CHECKPOINT], with = r->nsteps[mode];

	if (timed_as(mode) == HD_SPOT_CHECKPOINT)
		return 0;
	return none >= HD_RESILIENCE_STEPS && with >= HD_RESILIENCE_STEPS ?
		fmax(0, r->step_s[mode] / r->step_s[HD_SPOT_CHECKPOINT] - 1) : usual_overhead[mode];
}

struct hd_spot_market hd_resilience_market(const struct hd_resilience *r, const struct hd_resilience_now *now,
	enum hd_spot_strategy mode)
{
	struct hd_spot_market m = { .usd_h = now->usd_h > 0 ? now->usd_h : 1, .ntogether = 1,
		.together = { 1 }, .doubled = 1, .pause_max_s = now->pause_max_s };
	const int64_t since = now->now_ms - HD_RESILIENCE_WINDOW_MS;
	int64_t seen_ms = now->now_ms - (r->began_ms > since ? r->began_ms : since), last_ms = 0;
	uint32_t size = 0, instants = 1, in_time = 0, all = 0;

	for (uint32_t i = r->n; i >= 1; i--) {            /* the oldest first */
		const uint32_t at = (r->next + HD_RESILIENCE_LOSSES - i) % HD_RESILIENCE_LOSSES;
		const int64_t at_ms = r->loss[at].at_ms;
		if (r->n == HD_RESILIENCE_LOSSES && i == r->n && at_ms > since)
			seen_ms = now->now_ms - at_ms;    /* those before are not known any more */
		if (at_ms <= since)
			continue;
		all++;
		in_time += r->loss[at].in_time;
		if (size && at_ms - last_ms <= HD_RESILIENCE_ONE_MS) {
			m.together[size - 1]--;
			size += size < HD_SPOT_TOGETHER;
		} else {
			instants++;
			size = 1;
		}
		m.together[size - 1]++;
		m.ntogether = size > m.ntogether ? size : m.ntogether;
		last_ms = at_ms;
	}
	for (uint32_t k = 0; k < m.ntogether; k++)
		m.together[k] /= instants;
	m.losses_h = instants * 3.6e6 / (double)(seen_ms + HD_RESILIENCE_FIRST_MS);
	m.announced = (double)in_time / (all + 1);
	m.pause_s = m.rebuild_s = takes_of(r, now, mode);
	m.checkpoint_s = now->checkpoint_s;
	/* half of what lies between checkpoints is in it, and value.h adds it where they have a cost */
	m.reload_s = fmax(0, (r->back_s > 0 ? r->back_s - m.rebuild_s : now->back_s - now->takes_s) -
		(now->checkpoint_s > 0 ? now->every_s / 2 : 0));
	return m;
}

/* ---- judging */

/* Without shadows: what peers hold is no way back. */
static enum hd_spot_strategy judged_as(enum hd_spot_strategy mode, uint32_t pipelines)
{
	return mode == HD_SPOT_CHECKPOINT && pipelines > 1 ? HD_SPOT_REROUTE : mode;
}

double hd_resilience_back_h(const struct hd_resilience *r, const struct hd_resilience_now *now)
{
	const struct hd_spot_market m = hd_resilience_market(r, now, r->is);
	const struct hd_spot_grid grid = { .pipelines = now->pipelines, .stages = now->stages, .batch = 1,
		.step_s = 1, .machines = now->machines };
	/* spare pipelines are among those that there are, and compute */
	const enum hd_spot_strategy is = r->is == HD_SPOT_REPLICA ? HD_SPOT_CHECKPOINT : r->is;
	const struct hd_spot_value v = hd_spot_value(&m, &grid, judged_as(is, now->pipelines), 0, 0);

	return v.losses_h * (1 - m.announced) * v.unheld;
}

static bool is_due(const struct hd_resilience *r, double losses_h, double usd_h)
{
	return r->commits >= HD_RESILIENCE_COMMITS || losses_h > 2 * r->losses_h ||
		losses_h < r->losses_h / 2 || usd_h > 2 * r->usd_h || usd_h < r->usd_h / 2;
}

static const char *name_of(enum hd_spot_strategy mode)
{
	return mode == HD_SPOT_CHECKPOINT ? "none" : mode == HD_SPOT_REPLICA ? "replica:1" :
		hd_spot_strategy_names[mode];
}

/* With so many devices; pipelines 0: it stands. */
static struct hd_spot_grid grid_with(const struct hd_resilience_now *now, enum hd_spot_strategy mode,
	uint32_t devices)
{
	const uint32_t least = mode == HD_SPOT_REPLICA ? 2 : mode == HD_SPOT_CHECKPOINT ? 0 : 1,
		most = now->most > now->pipelines ? now->most : now->pipelines;
	struct hd_spot_grid g = { .stages = now->stages, .batch = now->batch };

	if (devices < least * g.stages)
		g.stages = devices / least;
	if (least && g.stages < 2 && now->stages > 1)
		return g;
	g.pipelines = devices / g.stages < most ? devices / g.stages : most;
	return g;
}

static double turns(const struct hd_resilience_now *now, const struct hd_spot_grid *g)
{
	const uint32_t most = now->most > now->pipelines ? now->most : now->pipelines,
		vns = now->vns ? now->vns : most;

	return (double)((vns + g->pipelines - 1) / g->pipelines + g->stages - 1) / g->stages;
}

static struct hd_spot_value value_with(const struct hd_resilience *r, const struct hd_resilience_now *now,
	enum hd_spot_strategy mode, uint32_t devices, uint32_t paid)
{
	const struct hd_spot_grid whole = { .pipelines = now->pipelines, .stages = now->stages };
	const struct hd_spot_market m = hd_resilience_market(r, now, mode);
	struct hd_spot_grid g = grid_with(now, mode, devices);
	const uint32_t spares = mode == HD_SPOT_REPLICA;

	if (!g.pipelines && spares)               /* none are kept then */
		return value_with(r, now, HD_SPOT_CHECKPOINT, devices, paid);
	if (!g.pipelines)
		return (struct hd_spot_value){ .value = 0 };
	g.step_s = r->step_s[timed_as(r->is)] * turns(now, &g) / turns(now, &whole);
	g.machines = paid;
	g.present = g.pipelines * g.stages;       /* losses that were seen are of those that have a place */
	g.spares_work = spares;
	g.pipelines -= spares;
	return hd_spot_value(&m, &g, judged_as(mode, g.pipelines), spares, overhead_of(r, mode));
}

struct hd_spot_value hd_resilience_value(const struct hd_resilience *r, const struct hd_resilience_now *now,
	enum hd_spot_strategy mode)
{
	const struct hd_spot_market m = hd_resilience_market(r, now, mode);
	struct hd_spot_value of[HD_RESILIENCE_THERE + 1];
	double share[HD_RESILIENCE_THERE + 2] = { 0 };
	int64_t all_ms = HD_RESILIENCE_FIRST_MS;
	uint32_t n = 0, paid = now->pipelines * now->stages;

	paid = now->machines > paid ? now->machines : paid;
	for (uint32_t d = 1; d <= HD_RESILIENCE_THERE; d++) {
		all_ms += r->there_ms[d];
		paid = r->there_ms[d] && d > paid ? d : paid;
	}
	for (uint32_t d = 1; d <= HD_RESILIENCE_THERE; d++) {
		const bool most = d == HD_RESILIENCE_THERE || d == paid;
		const int64_t first_ms = most && paid >= d ? HD_RESILIENCE_FIRST_MS : 0,
			ms = r->there_ms[d] + first_ms;
		if (ms) {
			of[n] = value_with(r, now, mode, most ? paid : d, paid);
			share[++n] = (double)ms / (double)all_ms;
		}
	}
	struct hd_spot_value v = hd_spot_value_present(&m, of, share, n);
	v.strategy = mode;
	v.useful = v.usd_h > 0 ? v.value * v.usd_h * r->step_s[timed_as(r->is)] / (now->batch * 3600) : 0;
	return v;
}

bool hd_resilience_commit(struct hd_resilience *r, const struct hd_resilience_now *now,
	enum hd_spot_strategy *mode, char why[HD_RESILIENCE_WORDS])
{
	static const enum hd_spot_strategy each[] = { HD_SPOT_CHECKPOINT, HD_SPOT_LAZY, HD_SPOT_EAGER,
		HD_SPOT_FULL, HD_SPOT_REPLICA };
	enum { MODES = sizeof each / sizeof *each };
	struct hd_spot_value value[MODES] = { { .value = 0 } };
	uint32_t n = 0, is = MODES;

	measure(r, now);
	r->commits++;
	const struct hd_spot_market seen = hd_resilience_market(r, now, r->is);
	if (r->until || !(r->step_s[timed_as(r->is)] > 0) || !is_due(r, seen.losses_h, seen.usd_h))
		return false;
	r->commits = 0;
	r->losses_h = seen.losses_h;
	r->usd_h = seen.usd_h;
	int len = snprintf(why, HD_RESILIENCE_WORDS, "%.3g losses/h, %.0f %% in time:", seen.losses_h,
		100 * seen.announced);
	for (uint32_t i = 0; i < MODES; i++) {
		if (each[i] != HD_SPOT_CHECKPOINT && each[i] != r->is && !now->can[each[i]])
			continue;
		value[n] = hd_resilience_value(r, now, each[i]);
		if (each[i] == r->is)
			is = n;
		if (len > 0 && len < HD_RESILIENCE_WORDS)
			len += snprintf(why + len, (size_t)(HD_RESILIENCE_WORDS - len),
				"%s %s useful %.1f %% (+%.1f %%, a loss %.3g s)", n ? "," : "",
				name_of(each[i]), 100 * value[n].useful, 100 * overhead_of(r, each[i]),
				value[n].stall_s);
		n++;
	}
	const uint32_t best = hd_spot_choose(n, value);
	if (best == n || best == is || (is < n && value[is].allowed &&
		value[best].value < HD_RESILIENCE_GAIN * value[is].value))
		return false;
	*mode = value[best].strategy;
	return true;
}

/* ---- stored: rule 6
 *
 *	age of what was seen 8 | losses 4 | of each, the oldest first: age 8, worker 4, in time 1 |
 *	of each strategy: a step 8, what a loss takes 8, steps 4 | what the way back takes 8 |
 *	pipelines 4, stages 4, machines 4 | commits since it was judged 4 |
 *	time with 0, 1, ... devices, 8 each */

static uint8_t *put_f64(uint8_t *to, double x)
{
	uint64_t bits;

	memcpy(&bits, &x, sizeof bits);
	hd_put64(to, bits);
	return to + 8;
}

static uint8_t *put_u32(uint8_t *to, uint32_t x)
{
	hd_put32(to, x);
	return to + 4;
}

void hd_resilience_put(const struct hd_resilience *r, int64_t now_ms, uint8_t bytes[HD_RESILIENCE_BYTES])
{
	uint8_t *to = bytes;

	memset(bytes, 0, HD_RESILIENCE_BYTES);
	hd_put64(to, (uint64_t)(now_ms - r->began_ms));
	to = put_u32(to + 8, r->n);
	for (uint32_t i = 0; i < HD_RESILIENCE_LOSSES; i++, to += 13) {
		const uint32_t at = (r->next + HD_RESILIENCE_LOSSES - r->n + i) % HD_RESILIENCE_LOSSES;
		if (i >= r->n)
			continue;
		hd_put64(to, (uint64_t)(now_ms - r->loss[at].at_ms));
		hd_put32(to + 8, r->loss[at].worker);
		to[12] = r->loss[at].in_time;
	}
	for (int k = 0; k < HD_NSPOT_STRATEGIES; k++)
		to = put_u32(put_f64(put_f64(to, r->step_s[k]), r->takes_s[k]), r->nsteps[k]);
	to = put_f64(to, r->back_s);
	to = put_u32(put_u32(put_u32(put_u32(to, r->pipelines), r->stages), r->machines), r->commits);
	for (uint32_t m = 0; m <= HD_RESILIENCE_THERE; m++)
		hd_put64(to + 8 * m, (uint64_t)r->there_ms[m]);
}

/* A time that was measured; false: it is none. */
static bool get_s(double *x, const uint8_t *from)
{
	const uint64_t bits = hd_get64(from);

	memcpy(x, &bits, sizeof bits);
	return *x >= 0 && isfinite(*x);
}

static bool get_age(int64_t *at_ms, const uint8_t *from, int64_t now_ms)
{
	const uint64_t age = hd_get64(from);

	*at_ms = now_ms - (int64_t)(age & (UINT64_MAX >> 16));
	return age <= UINT64_MAX >> 16;
}

bool hd_resilience_take(struct hd_resilience *r, const uint8_t *bytes, size_t len, int64_t now_ms)
{
	struct hd_resilience is = { .is = r->is };
	const uint8_t *from = bytes + 12;

	if (len != HD_RESILIENCE_BYTES || (is.n = hd_get32(bytes + 8)) > HD_RESILIENCE_LOSSES)
		return false;
	bool good = get_age(&is.began_ms, bytes, now_ms);
	for (uint32_t i = 0; i < HD_RESILIENCE_LOSSES; i++, from += 13) {
		if (i >= is.n)
			continue;
		good &= get_age(&is.loss[i].at_ms, from, now_ms) && from[12] <= 1;
		is.loss[i].worker = hd_get32(from + 8);
		is.loss[i].in_time = from[12] == 1;
	}
	is.next = is.n % HD_RESILIENCE_LOSSES;
	for (int k = 0; k < HD_NSPOT_STRATEGIES; k++, from += 20) {
		good &= get_s(&is.step_s[k], from) && get_s(&is.takes_s[k], from + 8);
		is.nsteps[k] = hd_get32(from + 16);
	}
	good &= get_s(&is.back_s, from);
	is.pipelines = hd_get32(from + 8);
	is.stages = hd_get32(from + 12);
	is.machines = hd_get32(from + 16);
	is.commits = hd_get32(from + 20);
	for (uint32_t m = 0; m <= HD_RESILIENCE_THERE; m++) {
		is.there_ms[m] = (int64_t)hd_get64(from + 24 + 8 * m);
		good &= is.there_ms[m] >= 0 && is.there_ms[m] <= HD_RESILIENCE_THERE_MS;
	}
	if (good)
		*r = is;
	return good;
}
