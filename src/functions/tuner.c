#include "functions/tuner.h"

#include <math.h>
#include <string.h>

/* The model: T(n) = work / (min(n, knee) + own) + slope x n; dollars = per_second x T + fixed + idle x
 * max(0, n / knee - 1). */
struct model { double knee, own, work, slope, per_second, fixed, idle; };

#define STEP 1.2                          /* between the best size and those beside it */
#define KNEES 1.04                        /* between knees that are tried */
#define NUMBER 6                          /* what one more number of the model must be worth (misfit) */
#define MOVED 0.1                         /* of the time of a settled pool */
#define FITS 0.95                         /* of the budget, which a greater size may take */

const char *const hd_fn_tuner_reasons[HD_FN_TUNER_NREASONS] = {
#define X(id, name) name,
	HD_FN_TUNER_REASONS(X)
#undef X
};

static uint32_t within(const struct hd_fn_tuner *t, double n)
{
	if (n >= t->max)
		return t->max;
	return n <= t->spec.min ? t->spec.min : (uint32_t)lround(n);
}

/* The greatest size stays as it is. */
static void begin_again(struct hd_fn_tuner *t)
{
	t->nseen = t->trials = t->epochs = t->nrecent = 0;
	t->left = HD_FN_TUNER_EPOCHS;
	t->queue = -1;
	t->grew = t->shrank = 0;
	t->hint = 0;
	t->settled = t->tried_local = false;
	t->sum = (struct hd_fn_tuner_epoch){ .seconds = 0 };
	t->gathered = 0;
	t->slots = within(t, t->slots);
}

void hd_fn_tuner_begin_again(struct hd_fn_tuner *t)
{
	t->max = t->spec.max;
	t->spent = (struct hd_fn_tuner_spent){ .wait = HD_FN_TUNER_EPOCHS };
	begin_again(t);
}

void hd_fn_tuner_init(struct hd_fn_tuner *t, const struct hd_fn_tuner_spec *spec, uint32_t intervals)
{
	memset(t, 0, sizeof *t);
	t->spec = *spec;
	t->said = UINT32_MAX;
	t->slots = intervals < HD_FN_TUNER_START ? intervals : HD_FN_TUNER_START;
	hd_fn_tuner_begin_again(t);
}

void hd_fn_tuner_window(struct hd_fn_tuner *t, double length)
{
	bool first = t->queue < 0, grew = !first && length > t->queue,
		shrank = !first && (length < t->queue || length <= 0);

	t->queue = length;
	t->grew = grew ? t->grew + 1 : 0;
	t->shrank = shrank ? t->shrank + 1 : 0;
	if (t->grew >= 3)
		t->hint = -1;
	else if (t->shrank >= 3)
		t->hint = 1;
}

/* ---- what was seen ---- */

static void note(struct hd_fn_tuner *t, const struct hd_fn_tuner_epoch *e)
{
	uint32_t i = 0;

	while (i < t->nseen && t->seen[i].slots != t->slots)
		i++;
	if (i == HD_FN_TUNER_SIZES) {             /* the oldest goes */
		memmove(t->seen, t->seen + 1, (HD_FN_TUNER_SIZES - 1) * sizeof *t->seen);
		t->seen[--i] = (struct hd_fn_tuner_seen){ .slots = t->slots };
	} else if (i == t->nseen) {
		t->seen[t->nseen++] = (struct hd_fn_tuner_seen){ .slots = t->slots };
	}
	t->seen[i].epochs++;
	t->seen[i].seconds += e->seconds;
	t->seen[i].usd += e->usd;
	t->seen[i].function_usd += e->function_usd;
}

static double time_of(const struct model *m, double n)
{
	return m->work / (fmin(n, m->knee) + m->own) + m->slope * n;
}

/* Of so many functions those that find no work, as parts of the others. */
static double idle_at(const struct model *m, double n) { return fmax(0, n / m->knee - 1); }

static double value_of(const struct model *m, double n)
{
	double seconds = time_of(m, n);

	return 1 / (seconds * (m->per_second * seconds + m->fixed + m->idle * idle_at(m, n)));
}

/* Of `sum`, relative errors, squared, of n epochs: how unlikely they are (Akaike 1974, with a larger
 * penalty). */
static double misfit(const struct model *m, double sum, double n)
{
	return n * log(fmax(sum, 0) / n + 1e-9) + NUMBER * ((m->own > 0) + (m->slope > 0));
}

/* Least squares for one knee; with a slope, where it is not below 0, and without. */
static void fit_at(const struct hd_fn_tuner *t, double knee, double own, struct model *best, double *least)
{
	double aa = 0, ac = 0, cc = 0, ya = 0, yc = 0, epochs = 0;

	for (uint32_t i = 0; i < t->nseen; i++) {
		const struct hd_fn_tuner_seen *s = &t->seen[i];
		if (!s->slots)
			continue;
		double mean = s->seconds / s->epochs, u = 1 / (fmin(s->slots, knee) + own) / mean,
			v = s->slots / mean;
		aa += s->epochs * u * u;
		ac += s->epochs * u * v;
		cc += s->epochs * v * v;
		ya += s->epochs * u;
		yc += s->epochs * v;
		epochs += s->epochs;
	}
	double det = aa * cc - ac * ac;
	struct model m[2] = { { .knee = knee, .own = own, .work = ya / aa } };
	int n = 1;
	if (det > 1e-12 * aa * cc) {
		m[1] = (struct model){ .knee = knee, .own = own, .work = (ya * cc - yc * ac) / det,
			.slope = (aa * yc - ac * ya) / det };
		n += m[1].work > 0 && m[1].slope >= 0;
	}
	for (int i = n - 1; i >= 0; i--) {
		double off = misfit(&m[i], epochs - m[i].work * ya - m[i].slope * yc, epochs);
		if (off < *least - 1e-9) {
			*least = off;
			*best = m[i];
		}
	}
}

/* What is rented goes by seconds; functions are paid for their work, and for those that wait for some. */
static void fit_cost(const struct hd_fn_tuner *t, struct model *m)
{
	double n = 0, seconds = 0, usd = 0, idle = 0, work = 0, xx = 0, xy = 0;

	for (uint32_t i = 0; i < t->nseen; i++) {
		const struct hd_fn_tuner_seen *s = &t->seen[i];
		if (!s->slots)
			continue;
		const double x = idle_at(m, s->slots);
		n += s->epochs;
		seconds += s->seconds;
		usd += s->usd;
		idle += s->epochs * x;
		work += s->function_usd;
		xx += s->epochs * x * x;
		xy += x * s->function_usd;
	}
	const double spread = xx - idle * idle / n;
	m->per_second = (usd - work) / seconds;
	m->idle = spread > 1e-9 * xx ? fmax(0, (xy - idle * work / n) / spread) : 0;
	m->fixed = fmax(0, (work - m->idle * idle) / n);
}

/* The size of the greatest value by what was seen, the smallest of equal ones; 0: nothing but 0 was seen. */
static uint32_t best_size(const struct hd_fn_tuner *t, double *value)
{
	static const double owns[] = { 0, 0.5, 1, 2, 4, 8, 16 };
	struct model m = { .knee = 1 };
	double least = INFINITY;
	uint32_t best = 0;
	bool any = false;

	*value = 0;
	for (uint32_t i = 0; i < t->nseen; i++)
		any |= t->seen[i].slots > 0;
	if (!any || !t->max)
		return 0;
	for (double knee = 1; knee <= t->max * KNEES; knee *= KNEES)
		for (size_t i = 0; i < sizeof owns / sizeof *owns; i++)
			fit_at(t, knee, owns[i], &m, &least);
	fit_cost(t, &m);
	for (uint32_t n = t->spec.min ? t->spec.min : 1; n <= t->max; n++)
		if (value_of(&m, n) > *value) {
			best = n;
			*value = value_of(&m, n);
		}
	return best;
}

/* The same with size 0, as it was. */
static uint32_t best_of_all(const struct hd_fn_tuner *t, double *value)
{
	uint32_t best = best_size(t, value);

	for (uint32_t i = 0; i < t->nseen; i++) {
		const struct hd_fn_tuner_seen *s = &t->seen[i];
		double seen = (double)s->epochs * s->epochs / (s->seconds * s->usd);
		if (!s->slots && seen > *value) {
			best = 0;
			*value = seen;
		}
	}
	return best;
}

/* ---- what is next ---- */

/* From here on by what is seen from here on. */
static void count_again(struct hd_fn_tuner_spent *p)
{
	p->since = 0;
	p->since_usd = p->since_work = 0;
}

static void lower(struct hd_fn_tuner *t, double rate, bool away)
{
	struct hd_fn_tuner_spent *p = &t->spent;

	double fits = away ? 0 : floor(t->slots * t->spec.budget_per_hour / rate);
	if (t->max < t->spec.max)                 /* it grew too early, or not enough was taken */
		p->wait = 2 * p->wait < HD_FN_TUNER_AGAIN ? 2 * p->wait : HD_FN_TUNER_AGAIN;
	t->max = t->slots - 1;
	t->max = within(t, fits);
	count_again(p);
}

/* The greatest size that the budget has room for now. */
static uint32_t affordable(const struct hd_fn_tuner *t)
{
	const struct hd_fn_tuner_spent *p = &t->spent;
	const double most = t->max ? 2.0 * t->max : 1, budget = t->spec.budget_per_hour / 3600;
	double fits = most;

	if (p->since_work > 0 && p->since_usd > 0)
		fits = fmin(most, floor(FITS * budget * p->since_work / p->since_usd));
	return fits >= t->spec.max ? t->spec.max : (uint32_t)fits;
}

/* What an epoch spent: -1: the greatest size is lowered, 1: it has grown, 0: neither. */
static int spend(struct hd_fn_tuner *t, const struct hd_fn_tuner_epoch *e)
{
	struct hd_fn_tuner_spent *p = &t->spent;

	if (t->spec.budget_per_hour <= 0)
		return 0;
	p->seconds += e->seconds;
	p->usd += e->function_usd;
	if (p->seconds < t->spec.least_s)
		return 0;
	const double rate = p->usd / p->seconds * 3600, seconds = p->seconds, usd = p->usd;
	p->seconds = p->usd = 0;
	const double due = t->spec.budget_per_hour / 3600 * seconds;
	p->debt = fmax(-HD_FN_TUNER_EPOCHS * due, p->debt + usd - due);
	if (p->debt > 0 && usd > due && t->slots > t->spec.min) {
		lower(t, rate, e->away);
		return -1;
	}
	p->since++;
	p->since_usd += usd;
	p->since_work += seconds * t->slots;
	if (t->max == t->spec.max || p->debt > 0 || p->since < p->wait || e->away ||
		affordable(t) <= t->max)
		return 0;
	t->max = affordable(t);
	count_again(p);
	return 1;
}

static void settle(struct hd_fn_tuner *t)
{
	t->settled = true;
	t->epochs = t->nrecent = 0;
	t->settled_seconds = 0;
}

/* Of the last eight; *error: three times what two such means differ by where nothing moved, by their
 * spread. */
static double mean_of_recent(const struct hd_fn_tuner *t, double *error)
{
	double mean = 0, squares = 0;

	for (int i = 0; i < 8; i++)
		mean += t->recent[i] / 8;
	for (int i = 0; i < 8; i++)
		squares += (t->recent[i] - mean) * (t->recent[i] - mean);
	*error = 3 * sqrt(2 * squares / 7 / 8);
	return mean;
}

/* A settled pool: has its time moved, so that it begins again? Is it time for a look beside it? */
static bool has_moved(struct hd_fn_tuner *t, double seconds)
{
	double mean, error;

	t->recent[t->nrecent++ % 8] = seconds;
	if (t->nrecent < 8)
		return false;
	mean = mean_of_recent(t, &error);
	if (t->nrecent == 8)
		t->settled_seconds = mean;
	if (fabs(mean - t->settled_seconds) > fmax(MOVED * t->settled_seconds, error)) {
		begin_again(t);
		return true;
	}
	if (t->epochs >= HD_FN_TUNER_AGAIN) {
		t->settled = false;
		t->trials = HD_FN_TUNER_DOUBLINGS;
		t->epochs = HD_FN_TUNER_SETTLES - 2 * HD_FN_TUNER_EPOCHS;
		t->left = 1;
	}
	return false;
}

/* More than a step from what was said: a look beside the best size ends a place away now and then. */
static bool is_news(const struct hd_fn_tuner *t, uint32_t slots)
{
	const double lo = t->said < slots ? t->said : slots, hi = t->said < slots ? slots : t->said;

	return t->said == UINT32_MAX || (hi > lo + 1 && hi > STEP * lo);
}

static struct hd_fn_tuned propose(struct hd_fn_tuner *t)
{
	static const double beside[] = { 1, 1 / STEP, STEP };
	struct hd_fn_tuned d = { .why = HD_FN_TUNER_VALUE };
	uint32_t best = best_of_all(t, &d.expected);

	t->left = HD_FN_TUNER_EPOCHS;
	t->trials++;
	if (t->epochs >= HD_FN_TUNER_SETTLES) {
		settle(t);
		d.why = HD_FN_TUNER_SETTLED;
		d.slots = within(t, best);
		d.says = is_news(t, d.slots);
		t->said = d.says ? d.slots : t->said;
	} else if (t->trials <= HD_FN_TUNER_DOUBLINGS) {
		d.why = HD_FN_TUNER_QUEUE;
		d.slots = within(t, t->hint > 0 ? fmax(1, 2.0 * t->slots) : floor(t->slots / 2.0));
	} else if (!t->spec.min && !t->tried_local) {
		t->tried_local = true;
		d.why = HD_FN_TUNER_LOCAL;
	} else {
		d.slots = within(t, best_size(t, &d.expected) * beside[t->trials % 3]);
	}
	return d;
}

/* One observation. */
static struct hd_fn_tuned judge(struct hd_fn_tuner *t, const struct hd_fn_tuner_epoch *e)
{
	struct hd_fn_tuned d = { .slots = t->slots,
		.why = t->settled ? HD_FN_TUNER_SETTLED : HD_FN_TUNER_TRIAL };
	bool moved = false;

	t->epochs++;
	if (t->settled)
		moved = has_moved(t, e->seconds);
	else if (!t->warm)                        /* functions started cold in it */
		t->warm = true;
	else
		note(t, e);
	if (moved)
		d.why = HD_FN_TUNER_MOVED;
	else if (!t->settled && --t->left == 0)
		return propose(t);
	d.says = moved;
	return d;
}

/* The budget moved the greatest size. What was gathered is of a late bill, perhaps. */
static struct hd_fn_tuned judge_budget(struct hd_fn_tuner *t, int moved, const struct hd_fn_tuner_epoch *e)
{
	if (moved > 0) {
		t->slots = t->max;
		begin_again(t);
	}
	t->left = HD_FN_TUNER_EPOCHS;
	t->sum = (struct hd_fn_tuner_epoch){ .seconds = 0 };
	t->gathered = 0;
	t->slots = within(t, t->max);
	return (struct hd_fn_tuned){ .slots = t->slots, .says = true, .value = 1 / (e->seconds * e->usd),
		.why = moved > 0 ? HD_FN_TUNER_REGAINED : HD_FN_TUNER_BUDGET };
}

static void gather(struct hd_fn_tuner *t, const struct hd_fn_tuner_epoch *e)
{
	t->sum.seconds += e->seconds;
	t->sum.usd += e->usd;
	t->sum.function_usd += e->function_usd;
	t->gathered++;
}

/* The mean of what was gathered, which begins again empty. */
static struct hd_fn_tuner_epoch observe(struct hd_fn_tuner *t)
{
	const struct hd_fn_tuner_epoch mean = { .seconds = t->sum.seconds / t->gathered,
		.usd = t->sum.usd / t->gathered, .function_usd = t->sum.function_usd / t->gathered };

	t->sum = (struct hd_fn_tuner_epoch){ .seconds = 0 };
	t->gathered = 0;
	return mean;
}

struct hd_fn_tuned hd_fn_tuner_next(struct hd_fn_tuner *t, const struct hd_fn_tuner_epoch *e)
{
	const int moved = spend(t, e);

	t->queue = -1;
	t->grew = t->shrank = 0;
	if (moved)
		return judge_budget(t, moved, e);
	if (e->away) {
		t->sum = (struct hd_fn_tuner_epoch){ .seconds = 0 };
		t->gathered = 0;
		return (struct hd_fn_tuned){ .slots = t->slots, .why = HD_FN_TUNER_AWAY };
	}
	gather(t, e);
	if (t->sum.seconds < t->spec.least_s)
		return (struct hd_fn_tuned){ .slots = t->slots, .why = HD_FN_TUNER_GATHER };
	const struct hd_fn_tuner_epoch mean = observe(t);
	struct hd_fn_tuned d = judge(t, &mean);
	d.value = 1 / (mean.seconds * mean.usd);
	t->slots = d.slots = within(t, d.slots);
	return d;
}
