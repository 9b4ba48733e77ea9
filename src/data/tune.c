#include "data/tune.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NPROBES = 6, NWAYS = 6 };
static const struct { uint32_t depth, size; } probes[NPROBES] = {
	{ 1, 16 << 10 }, { 1, 256 << 10 }, { 1, 1 << 20 }, { 16, 256 << 10 }, { 16, 1 << 20 }, { 64, 256 << 10 },
};
#define BETTER 1.03
#define NEAR 0.95
#define WORSE 0.85
#define FAR_APART 1.5
enum { FAR = 2 };

static void say(const struct hd_tune *t, const char *what, struct hd_ranges_knobs k, double value)
{
	char text[HD_TUNE_TEXT];

	if (!t->say)
		return;
	(void)snprintf(text, sizeof text, "%s: depth %u, size %u KiB, gap %u KiB: %.1f MB/s", what, k.depth,
		k.size_bytes >> 10, k.gap_bytes >> 10, value / 1e6);
	t->say(t->user, text);
}

static struct hd_ranges_knobs knobs_of(const struct hd_tune *t, uint32_t depth, uint32_t size, uint32_t gap)
{
	return hd_ranges_bound((struct hd_ranges_knobs){ depth, size, gap }, t->memory_bytes);
}

static uint64_t cost(struct hd_ranges_knobs k) { return (uint64_t)k.depth * k.size_bytes; }

static bool is_same(struct hd_ranges_knobs a, struct hd_ranges_knobs b)
{
	return a.depth == b.depth && a.size_bytes == b.size_bytes && a.gap_bytes == b.gap_bytes;
}

void hd_tune_init(struct hd_tune *t, uint64_t memory_bytes, bool gaps)
{
	memset(t, 0, sizeof *t);
	t->memory_bytes = memory_bytes;
	t->gaps = gaps;
	t->now = knobs_of(t, probes[0].depth, probes[0].size, 0);
}

struct hd_ranges_knobs hd_tune_knobs(const struct hd_tune *t)
{
	return t->phase == HD_TUNE_SEARCH ? t->pair.knobs[t->pair.n % 2] : t->now;
}

/* ---- probes ---- */

/* Least squares of relative errors over the probes of depth 1: two numbers that are not below zero. Samples
 * err by a part of what they measure, and t0 lies in the short ones. */
static void fit(const struct hd_tune *t, double *t0, double *per_byte)
{
	double n = 0, sb = 0, st = 0, sbb = 0, sbt = 0;         /* weighted by 1 / s^2 */

	for (size_t i = 0; i < NPROBES; i++) {
		if (probes[i].depth != 1 || t->probed[i] <= 0)
			continue;
		const double b = probes[i].size, s = b / t->probed[i], w = 1 / (s * s);
		n += w;
		sb += w * b;
		st += w * s;
		sbb += w * b * b;
		sbt += w * b * s;
	}
	const double d = n * sbb - sb * sb;
	*per_byte = d > 0 ? (n * sbt - sb * st) / d : 0;
	*per_byte = *per_byte > 0 ? *per_byte : 0;
	*t0 = n > 0 ? (st - *per_byte * sb) / n : 0;
	*t0 = *t0 > 0 ? *t0 : 0;
}

static struct hd_ranges_knobs guess(const struct hd_tune *t)
{
	struct hd_ranges_knobs best = t->now;
	double t0, per_byte, most = 0;
	uint64_t least = UINT64_MAX;

	fit(t, &t0, &per_byte);
	for (size_t i = 0; i < NPROBES; i++)
		most = t->probed[i] > most ? t->probed[i] : most;
	for (uint32_t q = 1; q <= HD_RANGES_DEPTH; q *= 2)
		for (uint32_t b = HD_RANGES_SIZE_MIN; b <= HD_RANGES_SIZE_MAX; b *= 2) {
			const double s = t0 + per_byte * b, x = s > 0 ? (double)q * b / s : most;
			const uint64_t bytes = (uint64_t)q * b;
			if (bytes > t->memory_bytes || bytes >= least || x < NEAR * most)
				continue;
			least = bytes;
			best = knobs_of(t, q, b, t->gaps ? 64 << 10 : 0);
		}
	return best;
}

/* ---- comparisons ---- */

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

struct tune_interval { double low, high, median; };

static struct tune_interval interval(const double *value, uint32_t n)
{
	double sorted[HD_TUNE_MORE];

	memcpy(sorted, value, n * sizeof *value);
	qsort(sorted, n, sizeof *sorted, by_value);
	return n < HD_TUNE_MORE ? (struct tune_interval){ sorted[0], sorted[n - 1], sorted[n / 2] } :
		(struct tune_interval){ sorted[3], sorted[11], sorted[n / 2] };
}

/* How often b of a pair is more than a: what others take of the store changes from turn to turn, and leaves
 * this alone. */
static uint32_t wins(const struct hd_tune_pair *p)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < p->n / 2; i++)
		n += p->value[1][i] > p->value[0][i];
	return n;
}

static void note(struct hd_tune *t, struct hd_ranges_knobs knobs, double median)
{
	for (uint32_t i = 0; i < t->nseen; i++)
		if (is_same(t->seen[i].knobs, knobs)) {
			t->seen[i].median = median;
			return;
		}
	if (t->nseen < HD_TUNE_SEEN)
		t->seen[t->nseen++] = (struct hd_tune_seen){ knobs, median };
}

/* Ways: depth up, size up, depth down, size down, gap up, down: what brings more before what costs less.
 * false: there is no such neighbour. */
static bool neighbour(const struct hd_tune *t, uint32_t way, struct hd_ranges_knobs *out)
{
	struct hd_ranges_knobs k = t->now;

	switch (way) {
	case 0: k.depth <<= t->far; break;
	case 1: k.size_bytes <<= t->far; break;
	case 2: k.depth >>= t->far; break;
	case 3: k.size_bytes >>= t->far; break;
	case 4: k.gap_bytes = k.gap_bytes ? k.gap_bytes << t->far : HD_RANGES_SIZE_MIN; break;
	default: k.gap_bytes = k.gap_bytes > HD_RANGES_SIZE_MIN ? k.gap_bytes >> t->far : 0; break;
	}
	*out = k;
	return (way < 4 || t->gaps) && k.depth && is_same(knobs_of(t, k.depth, k.size_bytes, k.gap_bytes),
		k) &&
		!is_same(k, t->now);
}

static void keep(struct hd_tune *t)
{
	double best = 0;
	uint32_t at = 0;

	for (uint32_t i = 0; i < t->nseen; i++)
		best = t->seen[i].median > best ? t->seen[i].median : best;
	for (uint32_t i = 0, found = 0; i < t->nseen; i++)
		if (t->seen[i].median >= NEAR * best && (!found ||
			cost(t->seen[i].knobs) < cost(t->seen[at].knobs) ||
			(cost(t->seen[i].knobs) == cost(t->seen[at].knobs) &&
			t->seen[i].knobs.depth < t->seen[at].knobs.depth))) {
			at = i;
			found = 1;
		}
	if (t->nseen)
		t->now = t->seen[at].knobs;
	t->kept = t->now;
	t->kept_value = t->nseen ? t->seen[at].median : 0;
	t->phase = HD_TUNE_KEEP;
	t->worse = t->quiet = t->hold = 0;
	t->lowered = false;
	say(t, "kept", t->now, t->kept_value);
}

static void compare_with(struct hd_tune *t, struct hd_ranges_knobs other)
{
	t->pair = (struct hd_tune_pair){ .knobs = { t->now, other } };
	t->phase = HD_TUNE_SEARCH;
}

/* A neighbour that was too far may be nearer; else it is another way. */
static void next_way(struct hd_tune *t)
{
	if (t->far > 1) {
		t->far = 1;
		return;
	}
	t->way = (t->way + 1) % NWAYS;
	t->still++;
}

/* The next neighbour that there is, or the end. */
static void compare_next(struct hd_tune *t)
{
	struct hd_ranges_knobs other;

	while (t->comparisons < HD_TUNE_COMPARISONS && t->still < NWAYS) {
		if (neighbour(t, t->way, &other)) {
			compare_with(t, other);
			return;
		}
		next_way(t);
	}
	keep(t);
}

static void begin(struct hd_tune *t)
{
	struct hd_ranges_knobs first = guess(t);
	size_t best = 0;

	for (size_t i = 0; i < NPROBES; i++)
		if (t->probed[i] > t->probed[best])
			best = i;
	t->far = 1;
	t->now = knobs_of(t, probes[best].depth, probes[best].size, first.gap_bytes);
	say(t, "begins", t->now, t->probed[best]);
	if (is_same(first, t->now)) {
		t->comparisons++;
		compare_next(t);
	} else {
		compare_with(t, first);
	}
}

static void settle(struct hd_tune *t, struct tune_interval a, struct tune_interval b)
{
	const struct hd_ranges_knobs *k = t->pair.knobs;
	const bool cheaper = cost(k[1]) < cost(k[0]);
	const bool apart = b.low > a.high || wins(&t->pair) >= HD_TUNE_WINS;
	const bool better = apart && b.median > BETTER * a.median;
	/* intervals of a store that many share meet always: by them alone each step down would be as good */
	const bool moves = better || (cheaper && BETTER * b.median >= a.median);

	if (t->comparisons++)             /* the first is with the guess, which lies no way */
		t->far = moves ? FAR : t->far;
	note(t, k[0], a.median);
	note(t, k[1], b.median);
	say(t, moves ? better ? "better" : "as good for less" : "not better", k[1], b.median);
	if (moves) {
		t->now = k[1];
		t->still = 0;             /* the same way again */
	} else if (t->comparisons > 1) {
		next_way(t);
	}
	compare_next(t);
}

static void take_compared(struct hd_tune *t, double bytes_s)
{
	struct hd_tune_pair *p = &t->pair;

	p->value[p->n % 2][p->n / 2] = bytes_s;
	p->n++;
	if (p->n != 2 * HD_TUNE_LEAST && p->n != 2 * HD_TUNE_FEW && p->n != 2 * HD_TUNE_MORE)
		return;
	const struct tune_interval a = interval(p->value[0], p->n / 2), b = interval(p->value[1], p->n / 2);
	const bool apart = a.low > b.high || b.low > a.high;
	const bool far = a.median > FAR_APART * b.median || b.median > FAR_APART * a.median;
	if (p->n == 2 * HD_TUNE_MORE || (apart && (far || p->n == 2 * HD_TUNE_FEW)))
		settle(t, a, b);
}

/* ---- keeping ---- */

static void change_depth(struct hd_tune *t, uint32_t depth, const char *why, double bytes_s)
{
	const struct hd_ranges_knobs k = knobs_of(t, depth, t->now.size_bytes, t->now.gap_bytes);

	if (is_same(k, t->now))
		return;
	t->now = k;
	say(t, why, k, bytes_s);
}

static void take_kept(struct hd_tune *t, double bytes_s, bool waited)
{
	t->worse = waited && bytes_s < WORSE * t->kept_value ? t->worse + 1 : 0;
	t->quiet = waited ? 0 : t->quiet + 1;
	t->hold -= t->hold > 0;
	if (waited && t->lowered) {
		t->lowered = false;
		t->hold = HD_TUNE_HOLD;
		t->worse = 0;
		change_depth(t, t->now.depth * 2, "steps wait again", bytes_s);
	} else if (t->worse >= 3) {
		say(t, "slower than it was: searching again", t->now, bytes_s);
		const struct hd_tune old = *t;
		hd_tune_init(t, old.memory_bytes, old.gaps);
		t->say = old.say;
		t->user = old.user;
	} else if (t->quiet >= HD_TUNE_QUIET && !t->hold && t->now.depth > 1) {
		t->quiet = 0;
		t->lowered = true;
		change_depth(t, t->now.depth / 2, "no step waits", bytes_s);
	}
}

void hd_tune_sample(struct hd_tune *t, double bytes_s, bool waited)
{
	assert(bytes_s >= 0);
	switch (t->phase) {
	case HD_TUNE_PROBE:
		t->probed[t->probe++] = bytes_s;
		say(t, "probe", t->now, bytes_s);
		if (t->probe < NPROBES) {
			t->now = knobs_of(t, probes[t->probe].depth, probes[t->probe].size, 0);
			break;
		}
		begin(t);
		break;
	case HD_TUNE_SEARCH:
		take_compared(t, bytes_s);
		break;
	case HD_TUNE_KEEP:
	default:
		take_kept(t, bytes_s, waited);
		break;
	}
}

void hd_tune_stop(struct hd_tune *t)
{
	const uint32_t n = t->nseen ? 0 : t->probe;

	assert(t->probe);
	if (t->phase == HD_TUNE_KEEP)
		return;
	for (uint32_t i = 0; i < n; i++)
		note(t, knobs_of(t, probes[i].depth, probes[i].size, 0), t->probed[i]);
	keep(t);
}
