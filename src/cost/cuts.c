#include "cost/cuts.h"

#include <string.h>

#include "base/hash.h"
#include "cost/front.h"

enum { WORD = 64, NAMED_MAX = 4 };

struct numbers { uint32_t *at, n, cap; };

/* What is found, in the order of finding: cut c has the members member[first[c]] .. and the children
 * child[kids[c]] .. */
struct cut_search {
	struct hd_cut_front front;
	const struct hd_profile *profile;
	uint64_t *anc, *desc; uint32_t words;     /* [n][words] strict */
	uint64_t *aug, *below;                    /* of the cut at hand: aug(A); ancestors of A too */
	uint32_t *fresh, nfresh;                  /* the set being made */
	struct numbers member, first, child, kids;
	uint32_t *table, mask, ncuts, max;
	struct hd_cuts *out;                      /* sums in the order of finding */
	struct hd_arena *arena;
};

static bool has(const uint64_t *set, uint32_t i) { return set[i / WORD] >> (i % WORD) & 1; }
static void put(uint64_t *set, uint32_t i) { set[i / WORD] |= UINT64_C(1) << (i % WORD); }
static const uint64_t *row(const uint64_t *sets, const struct cut_search *s,
	uint32_t v) { return sets + (size_t)v * s->words; }

static bool push(struct numbers *list, uint32_t v, struct hd_arena *arena)
{
	if (list->n == list->cap) {
		uint32_t cap = list->cap ? 2 * list->cap : 256;
		uint32_t *at = hd_arena_take(arena, cap, sizeof *at);
		if (!at)
			return false;
		if (list->n)
			memcpy(at, list->at, list->n * sizeof *at);
		*list = (struct numbers){ at, list->n, cap };
	}
	list->at[list->n++] = v;
	return true;
}

#define EACH_SUCC(f, v, e) for (uint32_t e = (f)->first[v]; e < (f)->first[(v) + 1]; e++)

/* Order in which every node follows its predecessors. The profile has no cycle. */
static bool in_order(const struct hd_cut_front *f, uint32_t *order, struct hd_arena *arena)
{
	uint32_t *nin = hd_arena_take(arena, f->n, sizeof *nin), n = 0;

	if (!nin)
		return false;
	for (uint32_t e = 0; e < f->first[f->n]; e++)
		nin[f->succ[e]]++;
	for (uint32_t v = 0; v < f->n; v++)
		if (!nin[v])
			order[n++] = v;
	for (uint32_t i = 0; i < n; i++)
		EACH_SUCC(f, order[i], e)
			if (!--nin[f->succ[e]])
				order[n++] = f->succ[e];
	return true;
}

static bool relatives(struct cut_search *s)
{
	const struct hd_cut_front *f = &s->front;
	uint32_t *order = hd_arena_take(s->arena, f->n, sizeof *order);

	s->words = (f->n + WORD - 1) / WORD;
	s->anc = hd_arena_take(s->arena, (size_t)f->n * s->words, sizeof *s->anc);
	s->desc = hd_arena_take(s->arena, (size_t)f->n * s->words, sizeof *s->desc);
	s->aug = hd_arena_take(s->arena, s->words, sizeof *s->aug);
	s->below = hd_arena_take(s->arena, s->words, sizeof *s->below);
	s->fresh = hd_arena_take(s->arena, (size_t)f->n + 1, sizeof *s->fresh);
	if (!order || !s->anc || !s->desc || !s->aug || !s->below || !s->fresh ||
		!in_order(f, order, s->arena))
		return false;
	for (uint32_t i = 0; i < f->n; i++)
		EACH_SUCC(f, order[i], e) {
			uint64_t *to = s->anc + (size_t)f->succ[e] * s->words;
			for (uint32_t w = 0; w < s->words; w++)
				to[w] |= row(s->anc, s, order[i])[w];
			put(to, order[i]);
		}
	for (uint32_t i = f->n; i-- > 0;)
		EACH_SUCC(f, order[i], e) {
			uint64_t *to = s->desc + (size_t)order[i] * s->words;
			for (uint32_t w = 0; w < s->words; w++)
				to[w] |= row(s->desc, s, f->succ[e])[w];
			put(to, f->succ[e]);
		}
	return true;
}

static bool meet(const uint64_t *a, const uint64_t *b, uint32_t words)
{
	for (uint32_t w = 0; w < words; w++)
		if (a[w] & b[w])
			return true;
	return false;
}

/* A successor of q is neither an ancestor of a nor a itself. */
static bool is_live(const struct cut_search *s, uint32_t q, uint32_t a)
{
	EACH_SUCC(&s->front, q, e)
		if (s->front.succ[e] != a && !has(row(s->anc, s, a), s->front.succ[e]))
			return true;
	return false;
}

static void augment(struct cut_search *s, const uint32_t *member, uint32_t n)
{
	memset(s->aug, 0, s->words * sizeof *s->aug);
	memset(s->below, 0, s->words * sizeof *s->below);
	for (uint32_t m = 0; m < n; m++) {
		const uint64_t *anc = row(s->anc, s, member[m]);
		put(s->aug, member[m]);
		put(s->below, member[m]);
		for (uint32_t w = 0; w < s->words; w++) {
			s->below[w] |= anc[w];
			for (uint64_t left = anc[w]; left; left &= left - 1) {
				uint32_t q = w * WORD + (uint32_t)__builtin_ctzll(left);
				if (!has(s->aug, q) && is_live(s, q, member[m]))
					put(s->aug, q);
			}
		}
	}
}

static const char *name_of(const struct cut_search *s, const uint32_t *member, uint32_t n)
{
	struct hd_text text;

	hd_text_init(&text, s->arena);
	for (uint32_t m = 0; m < n && m < NAMED_MAX; m++)
		hd_text_addf(&text, "%s%s", m ? "+" : "", s->profile->node[s->front.node[member[m]].of].id);
	if (n > NAMED_MAX)
		hd_text_addf(&text, "+%u more", n - NAMED_MAX);
	return text.full ? NULL : text.at;
}

/* The sums of the cut whose sets are at hand. */
static bool add_up(struct cut_search *s, uint32_t cut, const uint32_t *member, uint32_t n)
{
	struct hd_cuts *o = s->out;

	for (uint32_t w = 0; w < s->words; w++)
		for (uint64_t left = s->below[w]; left; left &= left - 1) {
			uint32_t v = w * WORD + (uint32_t)__builtin_ctzll(left);
			o->time_ns[cut] += s->front.node[v].time_ns;
			o->param[cut] += s->front.node[v].param;
			o->act[cut] += s->front.node[v].out;
			o->out[cut] += has(s->aug, v) ? s->front.node[v].out : 0;
		}
	memcpy(o->ran + (size_t)cut * s->words, s->below, s->words * sizeof *s->below);
	o->name[cut] = name_of(s, member, n);
	return o->name[cut] != NULL;
}

static uint32_t *place_of(const struct cut_search *s, const uint32_t *member, uint32_t n)
{
	uint32_t i = (uint32_t)hd_hash64(member, n * sizeof *member) & s->mask;

	for (; s->table[i]; i = (i + 1) & s->mask) {
		uint32_t cut = s->table[i] - 1, begin = s->first.at[cut];
		if (s->first.at[cut + 1] - begin == n && !memcmp(s->member.at + begin, member,
			n * sizeof *member))
			break;
	}
	return &s->table[i];
}

/* The number of the cut that `fresh` is; UINT32_MAX: no memory; `max` of them: the caller sees ncuts >
 * max. */
static uint32_t number_of(struct cut_search *s)
{
	uint32_t *place = place_of(s, s->fresh, s->nfresh);

	if (*place)
		return *place - 1;
	*place = ++s->ncuts;
	for (uint32_t m = 0; m < s->nfresh; m++)
		if (!push(&s->member, s->fresh[m], s->arena))
			return UINT32_MAX;
	return push(&s->first, s->member.n, s->arena) ? s->ncuts - 1 : UINT32_MAX;
}

/* aug(A) with u replaced by x, without members that have a descendant in the set; ascending. */
static void replace(struct cut_search *s, uint32_t u, uint32_t x)
{
	bool had = has(s->aug, x);

	s->aug[u / WORD] &= ~(UINT64_C(1) << (u % WORD));
	put(s->aug, x);
	s->nfresh = 0;
	for (uint32_t w = 0; w < s->words; w++)
		for (uint64_t left = s->aug[w]; left; left &= left - 1) {
			uint32_t v = w * WORD + (uint32_t)__builtin_ctzll(left);
			if (!meet(row(s->desc, s, v), s->aug, s->words))
				s->fresh[s->nfresh++] = v;
		}
	put(s->aug, u);
	if (!had)
		s->aug[x / WORD] &= ~(UINT64_C(1) << (x % WORD));
}

static bool record(struct cut_search *s, uint32_t cut, uint32_t child)
{
	for (uint32_t i = s->kids.at[cut]; i < s->child.n; i++)
		if (s->child.at[i] == child)
			return true;
	return push(&s->child, child, s->arena);
}

static bool member_of(const struct cut_search *s, uint32_t cut, uint32_t v)
{
	for (uint32_t i = s->first.at[cut]; i < s->first.at[cut + 1]; i++)
		if (s->member.at[i] == v)
			return true;
	return false;
}

static bool expand(struct cut_search *s, uint32_t cut)
{
	uint32_t begin = s->first.at[cut], n = s->first.at[cut + 1] - begin;

	augment(s, s->member.at + begin, n);
	if (!push(&s->kids, s->child.n, s->arena) || !add_up(s, cut, s->member.at + begin, n))
		return false;
	for (uint32_t u = 0; u < s->front.n; u++) {
		if (!has(s->aug, u))
			continue;
		EACH_SUCC(&s->front, u, e) {
			uint32_t x = s->front.succ[e];
			if (member_of(s, cut, x) || meet(row(s->desc, s, x), s->aug, s->words))
				continue;
			replace(s, u, x);
			uint32_t child = number_of(s);
			if (child == UINT32_MAX || !record(s, cut, child))
				return false;
			if (s->ncuts > s->max)
				return true;
		}
	}
	return true;
}

static bool take_sums(struct hd_cuts *c, uint32_t n, struct hd_arena *arena)
{
	c->time_ns = hd_arena_take(arena, n, sizeof *c->time_ns);
	c->param = hd_arena_take(arena, n, sizeof *c->param);
	c->act = hd_arena_take(arena, n, sizeof *c->act);
	c->out = hd_arena_take(arena, n, sizeof *c->out);
	c->name = hd_arena_take(arena, n, sizeof *c->name);
	c->ran = hd_arena_take(arena, (size_t)n * c->ran_words, sizeof *c->ran);
	return c->time_ns && c->param && c->act && c->out && c->name && c->ran;
}

static bool search(struct cut_search *s, struct hd_cuts *found)
{
	uint32_t room = 64, source = 0;
	bool *entered = hd_arena_take(s->arena, s->front.n, sizeof *entered);

	while (room < 4 * s->max)
		room *= 2;
	s->table = hd_arena_take(s->arena, room, sizeof *s->table);
	s->mask = room - 1;
	s->out = found;
	found->ran_words = (s->front.n + WORD - 1) / WORD;
	if (!entered || !s->table || !relatives(s) || !take_sums(found, s->max, s->arena) ||
		!push(&s->first, 0, s->arena))
		return false;
	for (uint32_t e = 0; e < s->front.first[s->front.n]; e++)
		entered[s->front.succ[e]] = true;
	while (entered[source])
		source++;
	s->fresh[0] = source;
	s->nfresh = 1;
	if (number_of(s) != 0)
		return false;
	for (uint32_t cut = 0; cut < s->ncuts && s->ncuts <= s->max; cut++)
		if (!expand(s, cut))
			return false;
	return s->ncuts > s->max || push(&s->kids, s->child.n, s->arena);
}

/* Reverse post-order; order[i] is the i-th cut. */
static bool linear(const struct cut_search *s, uint32_t *order)
{
	uint32_t *stack = hd_arena_take(s->arena, s->ncuts, sizeof *stack),
		*at = hd_arena_take(s->arena, s->ncuts, sizeof *at);
	bool *seen = hd_arena_take(s->arena, s->ncuts, sizeof *seen);
	uint32_t depth = 1, left = s->ncuts;

	if (!stack || !at || !seen)
		return false;
	seen[0] = true;
	at[0] = s->kids.at[0];
	while (depth) {
		uint32_t cut = stack[depth - 1];
		if (at[cut] == s->kids.at[cut + 1]) {
			order[--left] = cut;
			depth--;
			continue;
		}
		uint32_t child = s->child.at[at[cut]++];
		if (seen[child])
			continue;
		seen[child] = true;
		at[child] = s->kids.at[child];
		stack[depth++] = child;
	}
	return true;
}

/* The sums in the linear order, and which node precedes which. */
static bool settle(const struct cut_search *s, const struct hd_cuts *found, struct hd_cuts *cuts)
{
	uint32_t n = s->ncuts, *order = hd_arena_take(s->arena, n, sizeof *order),
		*place = hd_arena_take(s->arena, n, sizeof *place);

	*cuts = (struct hd_cuts){ .n = n, .nnodes = s->front.n, .words = (n + WORD - 1) / WORD,
		.ran_words = s->words, .home = s->front.home };
	cuts->pred = hd_arena_take(s->arena, (size_t)n * cuts->words, sizeof *cuts->pred);
	if (!order || !place || !cuts->pred || !take_sums(cuts, n, s->arena) || !linear(s, order))
		return false;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t c = order[i];
		place[c] = i;
		cuts->time_ns[i] = found->time_ns[c];
		cuts->param[i] = found->param[c];
		cuts->act[i] = found->act[c];
		cuts->out[i] = found->out[c];
		cuts->name[i] = found->name[c];
		memcpy(cuts->ran + (size_t)i * s->words, found->ran + (size_t)c * s->words,
			s->words * sizeof *cuts->ran);
	}
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t e = s->kids.at[order[i]]; e < s->kids.at[order[i] + 1]; e++) {
			uint64_t *mine = cuts->pred + (size_t)i * cuts->words,
				*to = cuts->pred + (size_t)place[s->child.at[e]] * cuts->words;
			for (uint32_t w = 0; w < cuts->words; w++)
				to[w] |= mine[w];
			put(to, i);
		}
	return true;
}

enum hd_err hd_cuts_make(struct hd_cuts *cuts, const struct hd_profile *profile, struct hd_cuts_how how,
	const char *file,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct cut_search s = { .profile = profile, .max = how.max ? how.max : HD_CUTS_MAX, .arena = arena };
	struct hd_cuts found = { 0 };

	if (s.max > HD_CUTS_CAP)
		return hd_fail(diag, HD_E_INVAL, "at most %d cuts can be looked at, not %u", HD_CUTS_CAP,
			s.max);
	if (hd_front_make(&s.front, profile, how.compress, arena))
		return hd_fail(diag, HD_E_NOMEM, "%s: no memory for its graph", file);
	if (s.front.n == 0)
		return hd_fail(diag, HD_E_INPUT,
			"%s: nothing is left to be cut once data sources and unused outputs are dropped",
			file);
	if (!search(&s, &found))
		return hd_fail(diag, HD_E_NOMEM, "%s: no memory for its cuts", file);
	if (s.ncuts > s.max)
		return hd_fail(diag, HD_E_INPUT, "%s: this graph has more than %u cuts; %s", file, s.max,
			how.compress ? "raise --max-cuts" : "try --compress-branches");
	if (!settle(&s, &found, cuts))
		return hd_fail(diag, HD_E_NOMEM, "%s: no memory for %u cuts", file, s.ncuts);
	for (uint32_t v = 0; v < s.front.n; v++)
		if (!hd_cuts_ran(cuts, cuts->n - 1, v))
			return hd_fail(diag, HD_E_INPUT,
				"%s: no cut reaches the node %s: no edges lead to it or from it to what the "
				"first node, %s, leads to; "
				"join the parts of the graph by an edge, or plan each by itself", file,
				profile->node[s.front.node[v].of].id,
				profile->node[s.front.node[s.member.at[0]].of].id);
	return HD_OK;
}
