#include "planner/partition/bound.h"

#include <float.h>
#include <string.h>

enum { WORD = 64 };
/* Quick refusals multiply where the terms divide: this much room for rounding, and the exact term decides. */
#define SLACK 1.000000001

static bool has(const uint64_t *set, uint32_t i) { return set[i / WORD] >> (i % WORD) & 1; }

enum hd_err hd_bound_init(struct hd_bound *b, const struct hd_terms *t, struct hd_arena *arena)
{
	*b = (struct hd_bound){ .t = t, .words = t->machines / WORD + 1 };
	b->set = hd_arena_take(arena, (size_t)t->cuts->n * b->words, sizeof *b->set);
	b->least = hd_arena_take(arena, t->cuts->n, sizeof *b->least);
	return b->set && b->least ? HD_OK : HD_E_NOMEM;
}

/* Bits lo..hi. */
static void put_all(uint64_t *set, uint32_t lo, uint32_t hi)
{
	for (uint32_t w = lo / WORD; lo <= hi && w <= hi / WORD; w++) {
		uint64_t bits = ~UINT64_C(0);
		if (w == lo / WORD)
			bits &= ~UINT64_C(0) << (lo % WORD);
		if (w == hi / WORD)
			bits &= ~UINT64_C(0) >> (WORD - 1 - hi % WORD);
		set[w] |= bits;
	}
}

/* to |= from << by, words below `words`. */
static void put_shifted(uint64_t *to, const uint64_t *from, uint32_t by, uint32_t words)
{
	uint32_t jump = by / WORD, bits = by % WORD;

	for (uint32_t w = words; w-- > jump;) {
		to[w] |= from[w - jump] << bits;
		if (bits && w > jump)
			to[w] |= from[w - jump - 1] >> (WORD - bits);
	}
}

typedef bool (*keeps_fn)(const struct hd_terms *t, uint32_t k, uint32_t j, uint32_t m, double limit);

/* The least m of lo..hi that keeps the limit, of a term that falls with m; hi + 1: none. */
static uint32_t least_of(keeps_fn keeps, const struct hd_terms *t, uint32_t k, uint32_t j, uint32_t lo,
	uint32_t hi, double limit)
{
	uint32_t end = hi + 1;

	while (lo < end) {
		uint32_t mid = lo + (end - lo) / 2;
		if (keeps(t, k, j, mid, limit))
			end = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

/* The last m of lo..hi before the first that breaks the limit, of a term that rises; lo - 1: none. */
static uint32_t most_of(keeps_fn keeps, const struct hd_terms *t, uint32_t k, uint32_t j, uint32_t lo,
	uint32_t hi, double limit)
{
	uint32_t end = hi + 1;

	while (lo < end) {
		uint32_t mid = lo + (end - lo) / 2;
		if (keeps(t, k, j, mid, limit))
			lo = mid + 1;
		else
			end = mid;
	}
	return lo - 1;
}

static bool one_keeps(const struct hd_terms *t, uint32_t i, uint32_t j, uint32_t x,
	double limit) { return hd_terms_one(t, i, j, x) <= limit; }
static bool last_keeps(const struct hd_terms *t, uint32_t k, uint32_t j, uint32_t m,
	double limit) { return hd_terms_last(t, k, j, m) <= limit; }

/* The two parts of `printed`, of the range i..j: max(a,b)/m <= limit if a/m and b/m are. */
static bool time_keeps(const struct hd_terms *t, uint32_t i, uint32_t j, uint32_t m, double limit)
{
	return hd_terms_time(t, i, j) / (double)m <= limit;
}

static bool reduce_keeps(const struct hd_terms *t, uint32_t i, uint32_t j, uint32_t m, double limit)
{
	return hd_terms_reduce(t, (double)hd_terms_range(t->cuts->param, i, j),
		(double)m) / (double)m <= limit;
}

static struct hd_span printed_span(const struct hd_terms *t, uint32_t i, uint32_t j, uint32_t most,
	double limit)
{
	if (!reduce_keeps(t, i, j, 2, limit))
		return (struct hd_span){ 2, 1, false };
	uint32_t lo = least_of(time_keeps, t, i, j, 2, most, limit);

	return (struct hd_span){ lo, lo > most || reduce_keeps(t, i, j, most, limit) ? most :
		most_of(reduce_keeps, t, i, j, 2, most, limit), false };
}

struct hd_span hd_bound_span(const struct hd_terms *t, uint32_t k, uint32_t j, uint32_t most, double limit)
{
	struct hd_span span = { 2, 1, last_keeps(t, k, j, 1, limit) };

	if (t->how->straight || most < 2)
		return span;
	if (t->variant != HD_PART_PRINTED) {
		span.lo = last_keeps(t, k, j, most, limit) ? least_of(last_keeps, t, k, j, 2, most, limit) :
			most + 1;
		span.hi = most;
	} else if (2 * (double)t->cuts->out[k] / t->b <= limit) {
		bool alone = span.alone;
		span = printed_span(t, k + 1, j, most, limit);
		span.alone = alone;
	}
	return span;
}

/* Returns from where on all counts are in. */
static uint32_t put_one(const struct hd_bound *b, uint32_t j, uint64_t *set, double limit)
{
	const struct hd_terms *t = b->t;
	uint32_t most = t->machines;

	if (one_keeps(t, 0, j, 1, limit))
		put_all(set, 1, 1);
	if (t->how->straight || most < 2)
		return most + 1;
	struct hd_span span = t->variant == HD_PART_PRINTED ? printed_span(t, 0, j, most, limit)
							    : (struct hd_span){ least_of(one_keeps, t, 0, j,
							    	2, most, limit), most, false };
	put_all(set, span.lo, span.hi);
	return span.hi == most ? span.lo : most + 1;
}

/* {y + m: y in from, m in lo..hi}, by doubling. */
static void put_spread(uint64_t *to, const uint64_t *from, struct hd_span span, uint32_t words,
	uint64_t *work)
{
	uint32_t len = 1, want = span.hi - span.lo + 1;

	memset(work, 0, words * sizeof *work);
	put_shifted(work, from, span.lo, words);
	while (len < want) {
		uint32_t by = want - len < len ? want - len : len;
		put_shifted(work, work, by, words);
		len += by;
	}
	for (uint32_t w = 0; w < words; w++)
		to[w] |= work[w];
}

/* Seconds of one component for k+1..j, near enough for a quick refusal. */
static double about(const struct hd_terms *t, uint32_t k, uint32_t j)
{
	return t->time ? hd_terms_time(t, k + 1, j) : (double)(t->cuts->time_ns[j] - t->cuts->time_ns[k]) *
		(1 / HD_NS_PER_S);
}

/* Multiplied out: code (T + c(m-1)/m)/m, paper c(m-1)/m^2, printed c(m-1)/m at its least, m = 2; c = 4w/b
 * or 2w/b. */
bool hd_bound_hopeless(const struct hd_terms *t, uint32_t k, uint32_t j, uint32_t most, double limit)
{
	double m = t->how->straight ? 1 : (double)most, room = limit * m * SLACK, time = about(t, k, j), w;

	if (time > room)
		return true;
	if (!(time > limit * SLACK))
		return false;
	w = (double)hd_terms_range(t->cuts->param, k + 1, j);
	if (t->variant == HD_PART_CODE)
		return time * m * t->b + 4 * w * (m - 1) > room * m * t->b;
	return t->variant == HD_PART_PAPER ? 2 * w * (m - 1) > room * m * t->b : w > limit * SLACK * t->b;
}

/* What a stage k+1..j adds to F[j]. Counts from *solid up are in F[j] whatever comes, so only what is
 * below matters. */
struct bound_sum {
	struct hd_bound *b;
	double limit;
	uint32_t j, solid;
	uint64_t *set, *work;
};

static void add_alone(struct bound_sum *s, uint32_t k)
{
	uint32_t words = s->solid / WORD + 1;

	put_shifted(s->set, s->b->set + (size_t)k * s->b->words, 1,
		words < s->b->words ? words : s->b->words);
}

static void add_stage(struct bound_sum *s, uint32_t k)
{
	const struct hd_bound *b = s->b;
	const struct hd_terms *t = b->t;
	uint32_t least = b->least[k];

	if (least >= s->solid - 1)
		return;
	uint32_t most = s->solid - 1 - least;      /* more would land in what is solid already */
	if (hd_bound_hopeless(t, k, s->j, most, s->limit))
		return;
	if (t->variant != HD_PART_CODE && 2 * (double)t->cuts->out[k] / t->b > s->limit)
		return;
	if (t->variant == HD_PART_PRINTED && !t->how->straight) {
		uint32_t all = t->machines - least;
		struct hd_span span = hd_bound_span(t, k, s->j, all, s->limit);
		if (span.alone)
			add_alone(s, k);
		if (span.lo <= span.hi && span.hi == all && all > 1)
			s->solid = least + span.lo < s->solid ? least + span.lo : s->solid;
		else if (span.lo <= span.hi)
			put_spread(s->set, b->set + (size_t)k * b->words, span, b->words, s->work);
		return;
	}
	if (about(t, k, s->j) <= s->limit * SLACK && last_keeps(t, k, s->j, 1, s->limit))
		add_alone(s, k);
	if (!t->how->straight && most >= 2 && last_keeps(t, k, s->j, most, s->limit))
		s->solid = least + least_of(last_keeps, t, k, s->j, 2, most, s->limit);
}

static void settle(const struct bound_sum *s, uint32_t machines)
{
	struct hd_bound *b = s->b;
	uint32_t least = UINT32_MAX;

	put_all(s->set, s->solid, machines);
	s->set[b->words - 1] &= ~UINT64_C(0) >> (WORD - 1 - machines % WORD);
	for (uint32_t w = 0; w < b->words && least == UINT32_MAX; w++)
		if (s->set[w])
			least = w * WORD + (uint32_t)__builtin_ctzll(s->set[w]);
	b->least[s->j] = least;
	if (b->t->how->fewer && s->j > 0 && least <= machines)
		put_all(s->set, least, machines);
}

bool hd_bound_holds(struct hd_bound *b, double limit)
{
	const struct hd_terms *t = b->t;
	const struct hd_cuts *c = t->cuts;
	uint64_t work[HD_PART_MACHINES / WORD + 1];

	for (uint32_t j = 0; j < c->n; j++) {
		struct bound_sum s = { b, limit, j, t->machines + 1, b->set + (size_t)j * b->words, work };
		memset(s.set, 0, b->words * sizeof *s.set);
		s.solid = put_one(b, j, s.set, limit);
		for (uint32_t w = j / WORD + 1; w-- > 0;)
			for (uint64_t left = c->pred[(size_t)j * c->words + w]; left;) {
				uint32_t bit = WORD - 1 - (uint32_t)__builtin_clzll(left);
				left ^= UINT64_C(1) << bit;
				add_stage(&s, w * WORD + bit);
			}
		settle(&s, t->machines);
	}
	return has(b->set + (size_t)(c->n - 1) * b->words, t->machines);
}

static uint64_t bits_of(double v) { uint64_t u; memcpy(&u, &v, sizeof u); return u; }
static double double_of(uint64_t u) { double v; memcpy(&v, &u, sizeof v); return v; }

/* Doubles that are not negative have the order of their bits. */
double hd_bound_best(struct hd_bound *b)
{
	const struct hd_cuts *c = b->t->cuts;
	double start = hd_terms_time(b->t, 0, c->n - 1) / (double)b->t->machines, high;
	uint64_t lo, hi;

	if (!(start > DBL_MIN))
		start = DBL_MIN;
	if (hd_bound_holds(b, 0))
		return 0;
	for (high = start; !hd_bound_holds(b, high); high *= 2)
		if (high > DBL_MAX / 4)
			return INFINITY;
	lo = high > start ? bits_of(high / 2) : hd_bound_holds(b, start / SLACK) ? 0 : bits_of(start / SLACK);
	hi = bits_of(high);
	while (hi - lo > 1) {                      /* lo is broken, hi is kept */
		uint64_t mid = lo + (hi - lo) / 2;
		if (hd_bound_holds(b, double_of(mid)))
			hi = mid;
		else
			lo = mid;
	}
	(void)hd_bound_holds(b, double_of(hi));
	return double_of(hi);
}
