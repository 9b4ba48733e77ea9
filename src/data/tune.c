#include "data/tune.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NS_PER_S 1e9
#define NEAR 0.98
#define MOVES 1.02
#define GAP_NEAR 0.95
#define WORSE 0.85
#define SEARCHING 0.6
#define GROWS 1.1                 /* of a start's best: below that it did not grow */
#define HOPELESS 0.4              /* of the fastest: a sample may be off by so much */
#define HOPEFUL 0.93              /* of the best so far: it may prove as good */
enum { GAP = 64 << 10, LEAST_ROUNDS = 3, SURE_ROUNDS = 8, PASSES = 5, CHEAPER_TOGETHER = 6,
	DOMINATES_FROM = 6 };

/* By rounds that an entrant has: below which part of the first it leaves, and how many stay at most. */
struct tune_rule { double bound; uint32_t most; };
static const struct tune_rule probing[] = {
	{ 0.5, 10 }, { 0.6, 7 }, { 0.7, 5 }, { 0.76, 4 }, { 0.8, 3 }, { 0.84, 3 }, { 0.87, 3 },
}, nearing[] = {
	{ 0.5, 10 }, { 0.62, 7 }, { 0.72, 5 }, { 0.78, 4 }, { 0.84, 4 }, { 0.88, 3 }, { 0.9, 3 },
	{ 0.92, 3 }, { 0.93, 3 }, { 0.94, 3 }, { 0.95, 2 },
}, cheapening[] = {
	{ 0.6, 20 }, { 0.72, 20 }, { 0.8, 20 }, { 0.85, 20 }, { 0.88, 20 }, { 0.9, 20 }, { 0.91, 20 },
	{ 0.92, 20 }, { 0.93, 20 }, { 0.94, 20 }, { 0.95, 20 }, { 0.955, 20 }, { 0.96, 20 }, { 0.97, 20 },
	{ 0.97, 20 },
}, gapping[] = { { 0.5, 8 }, { 0.6, 8 }, { 0.7, 8 }, { 0.8, 8 }, { 0.85, 8 } };

/* budget: the part of it at which the phase ends */
static const struct { const char *name; const struct tune_rule *rule; uint32_t rounds; double budget; }
	phases[] = {
	[HD_TUNE_START] = { "start", NULL, 1, SEARCHING },
	[HD_TUNE_PROBE] = { "probe", probing, sizeof probing / sizeof *probing, SEARCHING },
	[HD_TUNE_NEAR] = { "neighbour", nearing, sizeof nearing / sizeof *nearing, SEARCHING },
	[HD_TUNE_CHEAPER] = { "cheaper", cheapening, sizeof cheapening / sizeof *cheapening, 0.9 },
	[HD_TUNE_GAP] = { "gap", gapping, sizeof gapping / sizeof *gapping, 1 },
};

static void say(const struct hd_tune *t, const char *what, struct hd_ranges_knobs k, const char *how)
{
	char text[HD_TUNE_TEXT];

	if (!t->say)
		return;
	(void)snprintf(text, sizeof text, "%s: depth %u, size %u KiB, gap %u KiB: %s", what, k.depth,
		k.size_bytes >> 10, k.gap_bytes >> 10, how);
	t->say(t->user, text);
}

static void say_rate(const struct hd_tune *t, const char *what, struct hd_ranges_knobs k, double rate)
{
	char how[32];

	(void)snprintf(how, sizeof how, "%.1f MB/s", rate / 1e6);
	say(t, what, k, how);
}

static uint64_t cost(struct hd_ranges_knobs k) { return (uint64_t)k.depth * k.size_bytes; }

static bool is_same(struct hd_ranges_knobs a, struct hd_ranges_knobs b)
{
	return a.depth == b.depth && a.size_bytes == b.size_bytes && a.gap_bytes == b.gap_bytes;
}

/* ---- entrants ---- */

/* At most. */
static uint64_t in_flight(const struct hd_tune *t, struct hd_ranges_knobs k)
{
	const uint32_t most = t->rules.request_bytes;

	return (uint64_t)k.depth * (most && k.size_bytes > most ? most : k.size_bytes);
}

static double flight_most(const struct hd_tune *t)
{
	const double s = HD_TUNE_FLIGHT_MS / 1e3, small_s = 8 * t->small_s;

	return t->fastest * (s > small_s ? s : small_s);
}

static bool is_beyond(const struct hd_tune *t, struct hd_ranges_knobs k)
{
	return t->fastest > 0 && cost(k) > HD_RANGES_SIZE_MIN * 16 &&
		(double)in_flight(t, k) > flight_most(t);
}

/* c times as much in flight as at another sample brings c times as much at most: where a request takes 20 ms,
 * most of the field need not be tried. Of less in flight than all samples had, nothing is known. */
static bool is_hopeless(const struct hd_tune *t, struct hd_ranges_knobs k)
{
	const uint64_t bytes = in_flight(t, k);

	return bytes >= t->least && t->most_part * (double)bytes < HOPELESS * t->fastest;
}

static struct hd_tune_seen *seen(struct hd_tune *t, struct hd_ranges_knobs k)
{
	for (uint32_t i = 0; i < t->nseen; i++)
		if (t->seen[i].knobs.depth == k.depth && t->seen[i].knobs.size_bytes == k.size_bytes)
			return &t->seen[i];
	return NULL;
}

static struct hd_ranges_knobs bound(const struct hd_tune *t, struct hd_ranges_knobs k)
{
	const uint32_t most = t->rules.size_most;

	k.size_bytes = most && k.size_bytes > most ? most : k.size_bytes;
	return hd_ranges_bound(k, t->rules.memory_bytes);
}

static void enter(struct hd_tune *t, struct hd_ranges_knobs k)
{
	k = bound(t, k);
	for (uint32_t i = 0; i < t->nentrants; i++)
		if (is_same(t->entrant[i].knobs, k))
			return;
	if (t->nentrants == HD_TUNE_ENTRANTS || (t->nentrants && (is_beyond(t, k) || is_hopeless(t, k))))
		return;
	t->entrant[t->nentrants++] = (struct hd_tune_entrant){ .knobs = k };
}

static void open_race(struct hd_tune *t, enum hd_tune_phase phase)
{
	t->phase = phase;
	t->nentrants = t->round = t->turn = 0;
	t->races++;
}

static struct hd_ranges_knobs shifted(struct hd_ranges_knobs k, int depth, int size)
{
	const uint32_t q = depth < 0 ? k.depth >> -depth : k.depth << depth;
	const uint32_t b = size < 0 ? k.size_bytes >> -size : k.size_bytes << size;

	return (struct hd_ranges_knobs){ q ? q : 1, b, k.gap_bytes };
}

static uint32_t nalive(const struct hd_tune *t)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < t->nentrants; i++)
		n += !t->entrant[i].out;
	return n;
}

/* Whose turn it is: each round begins one further on, the first at the first. */
static uint32_t at_turn(const struct hd_tune *t)
{
	const uint32_t n = nalive(t);
	uint32_t left = (t->turn + t->round) % n, i = 0;

	assert(n);
	for (;; i++)
		if (!t->entrant[i].out && !left--)
			return i;
}

/* ---- marks ---- */

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Of n values: the mean of the middle half. */
static double middle(double *value, uint32_t n)
{
	double sum = 0;

	qsort(value, n, sizeof *value, by_value);
	for (uint32_t i = n / 4; i < n - n / 4; i++)
		sum += value[i];
	return sum / (n - 2 * (n / 4));
}

static bool has_reference(const struct hd_tune *t)
{
	return t->phase == HD_TUNE_NEAR || t->phase == HD_TUNE_CHEAPER;
}

/* Of those that are in it: beside the best so far, or where there is none the first. */
static void mark(struct hd_tune *t)
{
	double part[HD_TUNE_ENTRANTS][HD_TUNE_ROUNDS], most = 0;
	const uint32_t n = nalive(t);

	assert(t->round && t->round <= HD_TUNE_ROUNDS);
	for (uint32_t r = 0; r < t->round; r++) {
		double sum = 0;
		for (uint32_t i = 0; i < t->nentrants; i++)
			sum += t->entrant[i].out ? 0 : t->entrant[i].rate[r];
		for (uint32_t i = 0; i < t->nentrants; i++)
			part[i][r] = sum > 0 && !t->entrant[i].out ? t->entrant[i].rate[r] * n / sum : 1;
	}
	for (uint32_t i = 0; i < t->nentrants; i++) {
		struct hd_tune_entrant *e = &t->entrant[i];
		if (e->out)
			continue;
		e->mark = middle(part[i], t->round);
		most = e->mark > most ? e->mark : most;
	}
	const double by = has_reference(t) ? t->entrant[0].mark : most;
	for (uint32_t i = 0; i < t->nentrants; i++)
		if (!t->entrant[i].out)
			t->entrant[i].mark = by > 0 ? t->entrant[i].mark / by : 1;
}

static double mean_rate(const struct hd_tune_entrant *e, uint32_t rounds)
{
	double sum = 0;

	for (uint32_t r = 0; r < rounds; r++)
		sum += e->rate[r];
	return rounds ? sum / rounds : 0;
}

static void note(struct hd_tune *t, const struct hd_tune_entrant *e, uint32_t rounds)
{
	struct hd_tune_seen *s = seen(t, e->knobs);

	if (!s && t->nseen < HD_TUNE_SEEN)
		s = &t->seen[t->nseen++];
	if (s)
		*s = (struct hd_tune_seen){ e->knobs, e->mark, rounds };
}

static void leave(struct hd_tune *t, struct hd_tune_entrant *e)
{
	char how[64];

	e->out = true;
	note(t, e, t->round);
	(void)snprintf(how, sizeof how, "%.2f of the best, after %u rounds", e->mark, t->round);
	say(t, phases[t->phase].name, e->knobs, how);
}

/* One more than may stay: the one with the least mark. */
static struct hd_tune_entrant *last_of(struct hd_tune *t)
{
	struct hd_tune_entrant *last = NULL;

	for (uint32_t i = has_reference(t); i < t->nentrants; i++)
		if (!t->entrant[i].out && (!last || t->entrant[i].mark < last->mark))
			last = &t->entrant[i];
	return last;
}

/* The cheapest within 2 % of the best; of equal ones that of the smaller depth. */
static struct hd_tune_entrant *cheapest(struct hd_tune *t, double near)
{
	struct hd_tune_entrant *found = NULL;

	for (uint32_t i = 0; i < t->nentrants; i++) {
		struct hd_tune_entrant *e = &t->entrant[i];
		if (!e->out && e->mark >= near && (!found || cost(e->knobs) < cost(found->knobs) ||
			(cost(e->knobs) == cost(found->knobs) && e->knobs.depth < found->knobs.depth)))
			found = e;
	}
	return found;
}

static void drop_some(struct hd_tune *t)
{
	const struct tune_rule *rule = &phases[t->phase].rule[t->round - 1];
	double most = 0;

	for (uint32_t i = 0; i < t->nentrants; i++)
		most = !t->entrant[i].out && t->entrant[i].mark > most ? t->entrant[i].mark : most;
	for (uint32_t i = has_reference(t); i < t->nentrants; i++)
		if (!t->entrant[i].out && t->entrant[i].mark < rule->bound * most)
			leave(t, &t->entrant[i]);
	while (nalive(t) > rule->most)
		leave(t, last_of(t));
	if (t->phase != HD_TUNE_CHEAPER || t->round < DOMINATES_FROM)
		return;
	const struct hd_tune_entrant *good = cheapest(t, 1);
	for (uint32_t i = 1; i < t->nentrants; i++)
		if (!t->entrant[i].out && cost(t->entrant[i].knobs) > cost(good->knobs))
			leave(t, &t->entrant[i]);
}

/* ---- races ---- */

static void keep(struct hd_tune *t, struct hd_ranges_knobs k)
{
	t->now = t->kept = k;
	t->kept_value = t->best_rate;
	t->phase = HD_TUNE_KEEP;
	t->worse = t->quiet = t->hold = 0;
	t->lowered = t->calm = false;
	say_rate(t, "kept", t->now, t->kept_value);
}

static double used(const struct hd_tune *t)
{
	const struct hd_tune_rules *r = &t->rules;
	const double ns = r->budget_ns > 0 ? (double)t->spent_ns / (double)r->budget_ns : 0;
	const double bytes = r->budget_bytes ? (double)t->spent_bytes / (double)r->budget_bytes : 0;

	return t->stopped ? 1 : ns > bytes ? ns : bytes;
}

static void begin_start(struct hd_tune *t)
{
	static const struct { uint32_t depth, size_bytes; } path[] = {
		{ 1, 64 << 10 }, { 4, 64 << 10 }, { 8, 128 << 10 }, { 16, 256 << 10 }, { 32, 512 << 10 },
		{ 64, 1 << 20 }, { 256, 512 << 10 },
	};

	open_race(t, HD_TUNE_START);
	t->least = UINT64_MAX;
	t->again = false;
	for (size_t i = 0; i < sizeof path / sizeof *path; i++)
		if (path[i].depth >= t->rules.depth_first)
			enter(t, (struct hd_ranges_knobs){ path[i].depth, path[i].size_bytes,
				t->rules.gaps ? GAP : 0 });
}

static int by_cost(const void *a, const void *b)
{
	const struct hd_ranges_knobs x = ((const struct hd_tune_entrant *)a)->knobs;
	const struct hd_ranges_knobs y = ((const struct hd_tune_entrant *)b)->knobs;

	return cost(x) != cost(y) ? (cost(x) > cost(y)) - (cost(x) < cost(y)) :
		(x.depth > y.depth) - (x.depth < y.depth);
}

/* The best of a start, and of the field, the smaller first, all but what is beyond or hopeless. */
static void begin_probes(struct hd_tune *t)
{
	static const uint32_t depth[] = { 1, 4, 16, 64, 256 }, size[] = { 64 << 10, 512 << 10, 4 << 20 };

	open_race(t, HD_TUNE_PROBE);
	enter(t, t->best);
	for (uint32_t d = 0; d < 5; d++)
		for (uint32_t s = 0; s < 3 && depth[d] >= t->rules.depth_least; s++)
			enter(t, (struct hd_ranges_knobs){ depth[d], size[s], t->best.gap_bytes });
	qsort(t->entrant + 1, t->nentrants - 1, sizeof *t->entrant, by_cost);
}

static void begin_gap(struct hd_tune *t)
{
	if (!t->rules.gaps || used(t) >= phases[HD_TUNE_GAP].budget) {
		keep(t, t->cheap);
		return;
	}
	open_race(t, HD_TUNE_GAP);
	struct hd_ranges_knobs k = t->cheap;
	k.gap_bytes = 0;
	enter(t, k);
	for (k.gap_bytes = HD_RANGES_SIZE_MIN; k.gap_bytes <= 4 * GAP; k.gap_bytes *= 4)
		enter(t, k);
	if (t->nentrants == 1)
		keep(t, t->cheap);
}

/* Whether it was compared long enough to know that it is not as good. */
static bool is_judged(struct hd_tune *t, struct hd_ranges_knobs k)
{
	const struct hd_tune_seen *s = seen(t, bound(t, k));

	return s && s->mark < (s->rounds >= SURE_ROUNDS ? NEAR : s->rounds >= LEAST_ROUNDS ? HOPEFUL :
		HOPEFUL - 0.2);
}

/* The cheapest that may do, at most CHEAPER_TOGETHER at once. */
static void begin_cheaper(struct hd_tune *t)
{
	static const int around[][2] = { { -1, 0 }, { 0, -1 }, { -1, -1 }, { -2, 0 }, { 0, -2 } };
	const uint64_t below = cost(t->cheap);

	if (++t->moves > PASSES || used(t) >= phases[HD_TUNE_CHEAPER].budget) {
		begin_gap(t);
		return;
	}
	open_race(t, HD_TUNE_CHEAPER);
	enter(t, t->best);
	for (size_t i = 0; i < sizeof around / sizeof *around; i++) {
		const struct hd_ranges_knobs k = shifted(t->cheap, around[i][0], around[i][1]);
		if (cost(k) < below && !is_judged(t, k))
			enter(t, k);
	}
	for (uint32_t i = 0; i < t->nseen; i++) {
		const struct hd_tune_seen *s = &t->seen[i];
		const double hope = s->rounds < LEAST_ROUNDS ? HOPEFUL - 0.1 : HOPEFUL;
		if (cost(s->knobs) < below && s->mark >= hope && !is_judged(t, s->knobs))
			enter(t, s->knobs);
	}
	while (t->nentrants > CHEAPER_TOGETHER) {                /* the dearest waits for another race */
		uint32_t dear = 1;
		for (uint32_t i = 2; i < t->nentrants; i++)
			dear = cost(t->entrant[i].knobs) > cost(t->entrant[dear].knobs) ? i : dear;
		t->entrant[dear] = t->entrant[--t->nentrants];
	}
	if (t->nentrants == 1)
		begin_gap(t);
}

static void begin_near(struct hd_tune *t)
{
	static const int around[][2] = {
		{ 1, 0 }, { 0, 1 }, { -1, 0 }, { 0, -1 }, { 1, -1 }, { -1, 1 }, { 1, 1 }, { -1, -1 },
		{ 2, 0 }, { 0, 2 }, { -2, 0 }, { 0, -2 }, { 2, -2 }, { -2, 2 },
	};

	if (t->moves++ < HD_TUNE_MOVES && used(t) < SEARCHING) {
		open_race(t, HD_TUNE_NEAR);
		enter(t, t->best);
		for (size_t i = 0; i < sizeof around / sizeof *around; i++) {
			const struct hd_ranges_knobs k = shifted(t->best, around[i][0], around[i][1]);
			if (!is_judged(t, k))
				enter(t, k);
		}
		if (t->nentrants > 1)
			return;
	}
	t->moves = 0;
	t->cheap = t->best;
	begin_cheaper(t);
}

/* Marks were beside another one. */
static void set_best(struct hd_tune *t, struct hd_tune_entrant *e)
{
	const double by = e->mark > 0 ? e->mark : 1;

	for (uint32_t i = 0; i < t->nseen; i++)
		t->seen[i].mark /= by;
	for (uint32_t i = 0; i < t->nentrants; i++)
		if (!t->entrant[i].out)
			t->entrant[i].mark /= by;
	t->best = e->knobs;
	t->best_rate = mean_rate(e, t->round);
	say_rate(t, "best so far", t->best, t->best_rate);
}

static struct hd_tune_entrant *first_of(struct hd_tune *t)
{
	struct hd_tune_entrant *first = NULL;

	for (uint32_t i = 0; i < t->nentrants; i++)
		if (!t->entrant[i].out && (!first || t->entrant[i].mark > first->mark))
			first = &t->entrant[i];
	return first;
}

static void end_race(struct hd_tune *t)
{
	struct hd_tune_entrant *first = first_of(t), *least;
	const bool lasted = t->round >= LEAST_ROUNDS;
	bool moved = false;

	if ((t->phase == HD_TUNE_PROBE && t->round) || (has_reference(t) && lasted && first->mark > MOVES)) {
		moved = true;
		set_best(t, first);
	}
	for (uint32_t i = 0; i < t->nentrants && t->round && t->phase != HD_TUNE_GAP; i++)
		if (!t->entrant[i].out)
			note(t, &t->entrant[i], t->round);
	switch (t->phase) {
	case HD_TUNE_START:
		say_rate(t, "best so far", t->best, t->best_rate);
		(used(t) < SEARCHING ? begin_probes : begin_near)(t);
		break;
	case HD_TUNE_PROBE:
		begin_near(t);
		break;
	case HD_TUNE_NEAR:
		if (!moved)
			t->moves = HD_TUNE_MOVES;
		begin_near(t);
		break;
	case HD_TUNE_CHEAPER:
		least = lasted ? cheapest(t, NEAR) : NULL;
		if (least && (moved || cost(least->knobs) < cost(t->cheap))) {
			t->cheap = least->knobs;
			t->best_rate = mean_rate(least, t->round);
			say_rate(t, "as good for less", t->cheap, t->best_rate);
		}
		begin_cheaper(t);
		break;
	case HD_TUNE_GAP:
	case HD_TUNE_KEEP:
	default:
		least = first;
		for (uint32_t i = 0; i < t->nentrants; i++)
			if (!t->entrant[i].out && t->entrant[i].mark >= GAP_NEAR &&
				t->entrant[i].knobs.gap_bytes < least->knobs.gap_bytes)
				least = &t->entrant[i];
		keep(t, lasted ? least->knobs : t->cheap);
		break;
	}
}

static void end_round(struct hd_tune *t)
{
	t->turn = 0;
	t->round++;
	mark(t);
	drop_some(t);
	if (t->round == phases[t->phase].rounds || nalive(t) == 1)
		end_race(t);
}

/* Of probes whose first round did not end those count that it came to. */
static void cut_short(struct hd_tune *t)
{
	uint32_t turn = 0;

	for (uint32_t i = 0; !t->round && t->turn && t->phase == HD_TUNE_PROBE && i < t->nentrants; i++)
		t->entrant[i].out = t->entrant[i].out || turn++ >= t->turn;
	if (!t->round && t->turn && t->phase == HD_TUNE_PROBE) {
		t->round = 1;
		mark(t);
	}
	end_race(t);
}

/* Deeper than all before, or with more in flight: connections are opened, and buffers grow. */
static bool is_cold(struct hd_tune *t, struct hd_ranges_knobs k)
{
	const bool is = k.depth > t->deepest || cost(k) > t->most;

	t->deepest = k.depth > t->deepest ? k.depth : t->deepest;
	t->most = cost(k) > t->most ? cost(k) : t->most;
	return is;
}

static void learn(struct hd_tune *t, struct hd_ranges_knobs k, double rate)
{
	const uint64_t bytes = in_flight(t, k);
	const double part = rate / (double)bytes;

	t->fastest = rate > t->fastest ? rate : t->fastest;
	t->most_part = part > t->most_part ? part : t->most_part;
	t->least = bytes < t->least ? bytes : t->least;
}

/* One after the other, each with four times as much in flight, until twice nothing is gained. */
static void take_start(struct hd_tune *t, double rate)
{
	const struct hd_ranges_knobs k = t->entrant[t->turn].knobs;

	if (!t->turn)
		t->small_s = rate > 0 ? (double)k.size_bytes / rate : 0;
	(void)is_cold(t, k);
	learn(t, k, rate);
	say_rate(t, phases[t->phase].name, k, rate);
	if (!t->turn || rate > GROWS * t->best_rate) {
		t->best = k;
		t->best_rate = rate;
		t->first = t->turn;
	}
	if (used(t) >= phases[t->phase].budget || t->turn + 1 == t->nentrants || t->turn + 1 > t->first + 2) {
		end_race(t);
	} else if (!is_beyond(t, t->entrant[t->turn + 1].knobs)) {
		t->turn++;
		t->again = false;
	} else if (t->again) {
		end_race(t);
	} else {
		t->again = true;          /* one unlucky sample ends nothing */
	}
}

static void take_raced(struct hd_tune *t, double rate)
{
	struct hd_tune_entrant *e = &t->entrant[at_turn(t)];

	learn(t, e->knobs, rate);
	if (is_cold(t, e->knobs) && used(t) < phases[t->phase].budget)
		return;                   /* and it is sampled once more */
	e->rate[t->round] = rate;
	if (!t->round && t->phase == HD_TUNE_PROBE)
		say_rate(t, "probe", e->knobs, rate);
	t->turn++;
	if (!t->round)
		while (t->turn < nalive(t) && (is_beyond(t, t->entrant[at_turn(t)].knobs) ||
			is_hopeless(t, t->entrant[at_turn(t)].knobs)))
			t->entrant[at_turn(t)].out = true;
	if (t->turn == nalive(t))
		end_round(t);
	else if (used(t) >= phases[t->phase].budget)
		cut_short(t);
}

/* ---- keeping ---- */

void hd_tune_init(struct hd_tune *t, const struct hd_tune_rules *rules)
{
	memset(t, 0, sizeof *t);
	t->rules = *rules;
	begin_start(t);
}

struct hd_ranges_knobs hd_tune_knobs(const struct hd_tune *t)
{
	return t->phase == HD_TUNE_KEEP ? t->now : t->entrant[at_turn(t)].knobs;
}

static void change_depth(struct hd_tune *t, uint32_t depth, const char *why, double rate)
{
	const struct hd_ranges_knobs k = bound(t, (struct hd_ranges_knobs){ depth, t->now.size_bytes,
		t->now.gap_bytes });

	if (is_same(k, t->now))
		return;
	t->now = k;
	say_rate(t, why, k, rate);
}

static void search_again(struct hd_tune *t)
{
	t->best = t->now;
	t->best_rate = t->kept_value;
	t->nseen = t->moves = t->quiet = 0;
	t->spent_ns = 0;
	t->spent_bytes = 0;
	t->stopped = false;
	t->fastest = t->small_s = t->most_part = 0;      /* of another time */
	t->least = UINT64_MAX;
	begin_near(t);
}

static void take_kept(struct hd_tune *t, double rate, bool waited)
{
	t->worse = waited && (t->calm || rate < WORSE * t->kept_value) ? t->worse + 1 : 0;
	t->quiet = waited ? 0 : t->quiet + 1;
	t->hold -= t->hold > 0;
	if (waited && t->lowered) {
		t->lowered = false;
		t->hold = HD_TUNE_HOLD;
		t->worse = 0;
		change_depth(t, t->now.depth * 2, "steps wait again", rate);
	} else if (t->worse >= 3) {
		say_rate(t, "slower than it was: searching again", t->now, rate);
		search_again(t);
	} else if (t->quiet >= HD_TUNE_QUIET && !t->hold && t->now.depth > 1) {
		t->quiet = 0;
		t->lowered = true;
		change_depth(t, t->now.depth / 2, "no step waits", rate);
	}
}

void hd_tune_sample(struct hd_tune *t, uint64_t bytes, int64_t ns, bool waited)
{
	const double rate = ns > 0 ? (double)bytes * NS_PER_S / (double)ns : 0;

	assert(ns >= 0);
	if (t->phase == HD_TUNE_KEEP) {
		take_kept(t, rate, waited);
		return;
	}
	t->quiet = waited ? 0 : t->quiet + 1;
	if (t->quiet == HD_TUNE_CALM) {
		t->best_rate = rate;
		keep(t, hd_tune_knobs(t));
		t->calm = true;
	}
	if (!waited)
		return;
	t->spent_bytes += bytes;
	t->spent_ns += ns;
	(t->phase == HD_TUNE_START ? take_start : take_raced)(t, rate);
}

void hd_tune_stop(struct hd_tune *t)
{
	assert(t->races > 1 || t->round || t->turn);
	t->stopped = true;
	while (t->phase != HD_TUNE_KEEP)
		cut_short(t);
}
