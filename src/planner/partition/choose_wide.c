/* choose.h's choice where a table over all machine counts would be too large.
 *
 * Of cut j only the counts from least[j], the fewest that reach it, to M - tail[j], what the cuts after it
 * need at least, can be part of an answer. The m' of a stage are 1 and an interval (bound.h), so that a stage
 * on many machines looks at one prefix minimum and not at each count. */
#include "planner/partition/choose.h"

#include "planner/partition/bound.h"

enum { WORD = 64 };
static const struct hd_merit none = { UINT32_MAX, 0 };

/* [high - low + 1]; upto: best of all counts up to it */
struct window { uint32_t low, high; struct hd_merit *best, *upto; };

struct wide {
	const struct hd_terms *t;
	struct window *at;                /* [n]; low > high: in no answer */
	uint32_t machines;
	double limit;
};

static uint32_t top_of(uint64_t bits) { return WORD - 1 - (uint32_t)__builtin_clzll(bits); }

/* The cuts k before j, last first. */
#define EACH_PRED_DOWN(c, j, k)                                                 \
	for (uint32_t w_ = (j) / WORD + 1, k; w_-- > 0;)                        \
		for (uint64_t left_ = (c)->pred[(size_t)(j) * (c)->words + w_]; \
			left_ && ((k = w_ * WORD + top_of(left_)), true); left_ ^= UINT64_C(1) << (k % WORD))

/* The fewest machines for the cuts after each. */
static void tails(const struct wide *s, uint32_t *tail)
{
	const struct hd_cuts *c = s->t->cuts;

	for (uint32_t j = 0; j < c->n; j++)
		tail[j] = j == c->n - 1 ? 0 : s->machines + 1;
	for (uint32_t j = c->n; j-- > 0;)
		EACH_PRED_DOWN(c, j, k) {
			if (tail[j] + 1 >= tail[k] || hd_bound_hopeless(s->t, k, j, tail[k] - tail[j] - 1,
				s->limit))
				continue;
			struct hd_span span = hd_bound_span(s->t, k, j, tail[k] - tail[j] - 1, s->limit);
			if (span.alone)
				tail[k] = tail[j] + 1;
			else if (span.lo <= span.hi)
				tail[k] = tail[j] + span.lo;
		}
}

static enum hd_err windows(struct wide *s, struct hd_arena *arena)
{
	uint32_t n = s->t->cuts->n, *tail = hd_arena_take(arena, n, sizeof *tail);
	struct hd_bound b;

	if (!tail || hd_bound_init(&b, s->t, arena))
		return HD_E_NOMEM;
	(void)hd_bound_holds(&b, s->limit);
	tails(s, tail);
	for (uint32_t j = 0; j < n; j++) {
		struct window *w = &s->at[j];
		w->low = b.least[j] > s->machines ? s->machines + 1 : b.least[j];
		w->high = s->machines - (tail[j] > s->machines ? s->machines : tail[j]);
		if (w->low > w->high)
			continue;
		w->best = hd_arena_take(arena, w->high - w->low + 1, sizeof *w->best);
		w->upto = hd_arena_take(arena, w->high - w->low + 1, sizeof *w->upto);
		if (!w->best || !w->upto)
			return HD_E_NOMEM;
	}
	return HD_OK;
}

static bool open_at(const struct window *w) { return w->low <= w->high; }

static void offer(struct hd_merit *mine, struct hd_merit before, int64_t out)
{
	struct hd_merit merit = { before.stages + 1, before.out + out };

	if (before.stages != UINT32_MAX && hd_merit_less(merit, *mine))
		*mine = merit;
}

/* Stages that end at j and begin after k, of m' machines in [lo, hi]. */
static void offer_span(const struct window *from, struct window *to, uint32_t lo, uint32_t hi, bool all,
	int64_t out)
{
	uint32_t x = from->low + lo > to->low ? from->low + lo : to->low;

	for (; x <= to->high; x++) {
		if (all) {
			uint32_t y = x - lo < from->high ? x - lo : from->high;
			offer(&to->best[x - to->low], from->upto[y - from->low], out);
			continue;
		}
		for (uint32_t m = lo; m <= hi && m + from->low <= x; m++)
			if (x - m <= from->high)
				offer(&to->best[x - to->low], from->best[x - m - from->low], out);
	}
}

static void fill(const struct wide *s, uint32_t j)
{
	const struct hd_cuts *c = s->t->cuts;
	struct window *mine = &s->at[j];
	struct hd_merit least = none;

	for (uint32_t x = mine->low; x <= mine->high; x++)
		mine->best[x - mine->low] = hd_terms_one(s->t, 0, j, x) <= s->limit ? (struct hd_merit){ 1,
			0 } : none;
	EACH_PRED_DOWN(c, j, k) {
		const struct window *from = &s->at[k];
		if (!open_at(from) || from->low >= mine->high ||
			hd_bound_hopeless(s->t, k, j, mine->high - from->low, s->limit))
			continue;
		uint32_t most = mine->high - from->low;
		struct hd_span span = hd_bound_span(s->t, k, j, most, s->limit);
		if (span.alone)
			offer_span(from, mine, 1, 1, false, c->out[k]);
		if (span.lo <= span.hi)
			offer_span(from, mine, span.lo, span.hi, span.hi == most, c->out[k]);
	}
	for (uint32_t x = 0; x <= mine->high - mine->low; x++) {
		if (hd_merit_less(mine->best[x], least))
			least = mine->best[x];
		mine->upto[x] = least;
	}
}

static bool gives(const struct window *from, uint32_t x, uint32_t m, int64_t out, struct hd_merit want)
{
	if (x < m + from->low || x - m > from->high)
		return false;
	struct hd_merit before = from->best[x - m - from->low];
	return before.stages != UINT32_MAX && hd_merit_same((struct hd_merit){ before.stages + 1,
		before.out + out }, want);
}

/* The earliest cut, then the fewest machines, that give the best merit of (j, x). */
static bool step_back(const struct wide *s, uint32_t *j, uint32_t *x, struct hd_part_stage *stage)
{
	const struct hd_cuts *c = s->t->cuts;
	struct hd_merit want = s->at[*j].best[*x - s->at[*j].low];

	for (uint32_t k = 0; k < *j; k++) {
		const struct window *from = &s->at[k];
		if (!hd_cuts_precede(c, k, *j) || !open_at(from) || from->low >= *x ||
			hd_bound_hopeless(s->t, k, *j, *x - from->low, s->limit))
			continue;
		struct hd_span span = hd_bound_span(s->t, k, *j, *x - from->low, s->limit);
		uint32_t m = span.alone && gives(from, *x, 1, c->out[k], want) ? 1 : span.lo;
		while (m > 1 && m <= span.hi && !gives(from, *x, m, c->out[k], want))
			m++;
		if (m > 1 && m > span.hi)
			continue;
		*stage = (struct hd_part_stage){ k + 1, *j, m, NULL };
		*j = k;
		*x -= m;
		return true;
	}
	return false;
}

enum hd_err hd_part_choose_wide(struct hd_part_split *split, const struct hd_terms *t, uint32_t x,
	double bound, struct hd_arena *arena)
{
	uint32_t j = t->cuts->n - 1;
	struct wide s = { t, hd_arena_take(arena, t->cuts->n, sizeof *s.at), x, bound };

	if (!s.at || windows(&s, arena))
		return HD_E_NOMEM;
	for (uint32_t to = 0; to <= j; to++)
		if (open_at(&s.at[to]))
			fill(&s, to);
	if (!open_at(&s.at[j]) || s.at[j].low > x || s.at[j].best[x - s.at[j].low].stages == UINT32_MAX)
		return HD_E_BUG;
	uint32_t n = s.at[j].best[x - s.at[j].low].stages;
	*split = (struct hd_part_split){ n, bound, hd_arena_take(arena, n, sizeof *split->stage) };
	if (!split->stage)
		return HD_E_NOMEM;
	for (uint32_t i = n; i-- > 1;)
		if (!step_back(&s, &j, &x, &split->stage[i]))
			return HD_E_BUG;
	split->stage[0] = (struct hd_part_stage){ 0, j, x, NULL };
	return HD_OK;
}
