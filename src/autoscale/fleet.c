#include "autoscale/fleet.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double mads = 3, least_mad = 0.05, quarter = 0.25, few_times = 1.5, least_part = 0.05;
enum { FEW = 4, RECENT = 7 };                     /* RECENT: bits of the last three summaries */

struct cause_row { const char *name, *words; };
static const struct cause_row causes[] = {
#define X(id, name, words) [HD_FLEET_##id] = { name, words },
	HD_FLEET_CAUSES(X)
#undef X
};

const char *hd_fleet_cause_name(enum hd_fleet_cause cause) { return causes[cause].name; }

/* ---- one job: which of its workers are slow */

/* excess: over the measure of the cause, ps; 0: not slow. */
struct fleet_judged { const char *host; double times, excess; enum hd_fleet_cause cause; };

static int rising(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double median(const double *of, uint32_t n)
{
	double sorted[HD_FLEET_WORKERS];

	assert(n && n <= HD_FLEET_WORKERS);
	memcpy(sorted, of, n * sizeof *of);
	qsort(sorted, n, sizeof *sorted, rising);
	return (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
}

/* How much more than the middle a worker may take, by the deviations of all. */
static double allowed(const double *of, uint32_t n, double middle)
{
	double off[HD_FLEET_WORKERS];

	for (uint32_t i = 0; i < n; i++)
		off[i] = of[i] > middle ? of[i] - middle : middle - of[i];
	double mad = median(off, n);
	if (mad < least_mad * middle)
		mad = least_mad * middle;
	return mads * mad > quarter * middle ? mads * mad : quarter * middle;
}

static double least_other(const double *of, uint32_t n, uint32_t self)
{
	double least = -1;

	for (uint32_t i = 0; i < n; i++)
		if (i != self && (least < 0 || of[i] < least))
			least = of[i];
	return least;
}

static void judge_cause(struct fleet_judged *judged, const double *ps, uint32_t n, double whole,
	enum hd_fleet_cause cause)
{
	const double middle = median(ps, n), most = n < FEW ? 0 : allowed(ps, n, middle);

	for (uint32_t i = 0; i < n; i++) {
		const double base = n < FEW ? least_other(ps, n, i) : middle;
		const double excess = ps[i] - base, over = n < FEW ? (few_times - 1) * base : most;
		if (excess > over && excess > least_part * whole && excess > judged[i].excess) {
			judged[i].excess = excess;
			judged[i].cause = cause;
		}
	}
}

static void judge(struct fleet_judged *judged, const struct hd_fleet_summary *summary, uint32_t n)
{
	double ps[HD_FLEET_WORKERS], sum[HD_FLEET_WORKERS] = { 0 };

	for (uint32_t c = 0; c < HD_FLEET_NCAUSES; c++)
		for (uint32_t i = 0; i < n; i++)
			sum[i] += (double)summary[i].ps[c];
	const double middle = median(sum, n);
	for (uint32_t i = 0; i < n; i++) {
		const double base = n > 1 && n < FEW ? least_other(sum, n, i) : middle;
		judged[i] = (struct fleet_judged){ .host = summary[i].host,
			.times = base > 0 ? sum[i] / base : 1 };
	}
	for (uint32_t c = 0; c < HD_FLEET_NCAUSES && n > 1; c++) {
		for (uint32_t i = 0; i < n; i++)
			ps[i] = (double)summary[i].ps[c];
		judge_cause(judged, ps, n, middle, (enum hd_fleet_cause)c);
	}
}

/* ---- hosts */

static int by_host(const void *a, const void *b)
{
	return strncmp(((const struct fleet_judged *)a)->host, ((const struct fleet_judged *)b)->host,
		HD_FLEET_NAME - 1);
}

static bool is_old(double heard_s, double now_s) { return now_s - heard_s > HD_FLEET_FORGET_S; }

static void forget(struct hd_fleet *f, double now_s)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < f->n; i++)
		if (!is_old(f->host[i].heard_s, now_s)) {
			if (n != i)
				f->host[n] = f->host[i];
			n++;
		}
	f->n = n;
}

static uint32_t place_of(const struct hd_fleet *f, const char *name)
{
	uint32_t low = 0, high = f->n;

	while (low < high) {
		const uint32_t mid = low + (high - low) / 2;
		if (strncmp(f->host[mid].name, name, HD_FLEET_NAME - 1) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* NULL: no room. */
static struct hd_fleet_host *host_of(struct hd_fleet *f, const char *name, double now_s)
{
	uint32_t at = place_of(f, name);

	if (at < f->n && !strncmp(f->host[at].name, name, HD_FLEET_NAME - 1))
		return &f->host[at];
	if (f->n == HD_FLEET_HOSTS) {
		forget(f, now_s);
		at = place_of(f, name);
	}
	if (f->n == HD_FLEET_HOSTS)
		return NULL;
	memmove(f->host + at + 1, f->host + at, (f->n++ - at) * sizeof *f->host);
	f->host[at] = (struct hd_fleet_host){ .since_s = -1 };
	snprintf(f->host[at].name, sizeof f->host[at].name, "%s", name);
	return &f->host[at];
}

static struct hd_fleet_pair *pair_of(struct hd_fleet_host *h, uint64_t job, double now_s)
{
	struct hd_fleet_pair *oldest = h->pair;

	for (uint32_t i = 0; i < h->n; i++) {
		struct hd_fleet_pair *p = &h->pair[i];
		if (p->job == job) {
			if (is_old(p->heard_s, now_s))
				*p = (struct hd_fleet_pair){ .job = job };
			return p;
		}
		if (p->heard_s < oldest->heard_s)
			oldest = p;
	}
	if (h->n < HD_FLEET_JOBS && !(h->n && is_old(oldest->heard_s, now_s)))
		oldest = &h->pair[h->n++];
	*oldest = (struct hd_fleet_pair){ .job = job };
	return oldest;
}

static void say(const struct hd_fleet_host *h, double now_s, struct hd_fleet_said *said)
{
	uint32_t by[HD_FLEET_NCAUSES] = { 0 };
	double times = 0;

	*said = (struct hd_fleet_said){ .name = h->name, .since_s = h->since_s };
	for (uint32_t i = 0; i < h->n; i++) {
		const struct hd_fleet_pair *p = &h->pair[i];
		if (is_old(p->heard_s, now_s))
			continue;
		said->jobs++;
		said->judged += p->judged;
		if (__builtin_popcount(p->bits & RECENT) < 2)
			continue;
		said->slow_jobs++;
		times += (double)p->times;
		by[p->cause]++;
	}
	for (uint32_t c = 0; c < HD_FLEET_NCAUSES; c++)
		if (by[c] > by[said->cause])
			said->cause = (enum hd_fleet_cause)c;
	said->slow = said->slow_jobs && 2 * said->slow_jobs >= said->judged &&
		(said->slow_jobs > 1 || said->judged == 1);
	said->times = said->slow_jobs ? times / said->slow_jobs : 1;
	said->share = said->judged ? (double)said->slow_jobs / said->judged : 0;
}

/* Workers of one host in a job of n. */
static void take_host(struct hd_fleet *f, uint64_t job, const struct fleet_judged *of, uint32_t n_of,
	uint32_t n, double now_s)
{
	double excess[HD_FLEET_NCAUSES] = { 0 }, times = 0;
	struct hd_fleet_host *h = host_of(f, of->host, now_s);
	struct hd_fleet_said said;
	uint32_t slow = 0;

	if (!h) {
		f->left_out += n_of;
		return;
	}
	for (uint32_t i = 0; i < n_of; i++)
		if (of[i].excess > 0) {
			slow++;
			times += of[i].times;
			excess[of[i].cause] += of[i].excess;
		}
	struct hd_fleet_pair *p = pair_of(h, job, now_s);
	p->judged = 2 * n_of <= n;
	const bool is_slow = p->judged && slow && 2 * slow >= n_of;
	p->bits = p->judged ? (uint8_t)(p->bits << 1 | is_slow) & RECENT : 0;
	p->heard_s = h->heard_s = now_s;
	if (is_slow) {
		p->times = (float)(times / slow);
		p->cause = HD_FLEET_COMPUTE;
		for (uint32_t c = 0; c < HD_FLEET_NCAUSES; c++)
			if (excess[c] > excess[p->cause])
				p->cause = (uint8_t)c;
	}
	say(h, now_s, &said);
	if (!said.slow || h->since_s < 0)
		h->since_s = said.slow ? now_s : -1;
}

void hd_fleet_init(struct hd_fleet *f)
{
	f->n = 0;                                 /* hosts are filled as they come */
	f->left_out = 0;
}

void hd_fleet_take(struct hd_fleet *f, uint64_t job, const struct hd_fleet_summary *summary, uint32_t n,
	double now_s)
{
	struct fleet_judged judged[HD_FLEET_WORKERS];

	if (n > HD_FLEET_WORKERS)
		n = HD_FLEET_WORKERS;
	if (!n)
		return;
	judge(judged, summary, n);
	qsort(judged, n, sizeof *judged, by_host);
	for (uint32_t i = 0, end; i < n; i = end) {
		for (end = i + 1; end < n && !by_host(&judged[i], &judged[end]);)
			end++;
		take_host(f, job, &judged[i], end - i, n, now_s);
	}
}

bool hd_fleet_say(const struct hd_fleet *f, uint32_t i, double now_s, struct hd_fleet_said *said)
{
	assert(i < f->n);
	say(&f->host[i], now_s, said);
	if (said->since_s < 0)
		said->since_s = now_s;            /* others were forgotten since it was heard */
	return said->jobs > 0;
}

void hd_fleet_text(const struct hd_fleet_said *s, double now_s, char text[HD_FLEET_TEXT])
{
	*text = 0;
	if (s->slow)
		snprintf(text, HD_FLEET_TEXT, "%s is slow by %s: %.2f times the median worker's time "
			"in %u of %u jobs, for %.0f s", s->name, causes[s->cause].words, s->times,
			s->slow_jobs, s->judged, now_s - s->since_s);
}
