#include "plan/collective.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/check.h"

/* ---- an executor over sums that are written out: a number stands for an operand or for (a + b) ---- */

enum { RANKS = 17, LONGEST = 40, TERMS = 1 << 20, BUCKETS = 1 << 16 };

struct term { uint32_t a, b, next; };     /* a == b: an operand, of rank a - 1 */
static struct term term[TERMS];
static uint32_t nterms, bucket[BUCKETS];

static void terms_begin(void)
{
	nterms = 1;
	memset(bucket, 0, sizeof bucket);
}

/* Equal sums have equal numbers; an addition has the same bits either way round. */
static uint32_t intern(uint32_t a, uint32_t b)
{
	uint32_t low = a < b ? a : b, high = a < b ? b : a, *head = &bucket[(low * 2654435761u ^ high *
		40503u) % BUCKETS];

	for (uint32_t t = *head; t; t = term[t].next)
		if (term[t].a == low && term[t].b == high)
			return t;
	assert_true(nterms < TERMS);
	term[nterms] = (struct term){ low, high, *head };
	return *head = nterms++;
}

static uint32_t operand(uint32_t rank) { return intern(TERMS + rank, TERMS + rank); }

/* The canonical tree of n terms, by its definition: split at the largest power of two below n. */
static uint32_t tree_of(const uint32_t *at, uint32_t n)
{
	uint32_t half = 1;

	if (n == 1)
		return at[0];
	while (half * 2 < n)
		half *= 2;
	return intern(tree_of(at, half), tree_of(at + half, n - half));
}

/* How often each rank's operand is in a sum. */
static void count(uint32_t t, uint32_t times[RANKS])
{
	if (term[t].a >= TERMS) {
		times[term[t].a - TERMS]++;
		return;
	}
	count(term[t].a, times);
	count(term[t].b, times);
}

struct world { uint32_t p, value[RANKS][LONGEST]; };

static bool overlap(const struct hd_collective_move *a, const struct hd_collective_move *b)
{
	return a->first < b->end && b->first < a->end;
}

/* What rank `to` makes of the adds of a round that are of the same range as `m`. */
static void add(struct world *w, const struct world *before, const struct hd_collective_schedule *s,
	const struct hd_collective_move *m)
{
	for (uint64_t k = m->first; k < m->end; k++) {
		uint32_t at[RANKS], n = 0;
		for (uint32_t rank = 0; rank < w->p; rank++) {
			bool gives = rank == m->to;
			for (uint32_t i = 0; i < s->nmoves; i++) {
				const struct hd_collective_move *o = &s->move[i];
				gives |= o->round == m->round && o->to == m->to && o->add && o->from ==
					rank &&
					o->first == m->first && o->end == m->end;
			}
			if (gives)
				at[n++] = before->value[rank][k];
		}
		w->value[m->to][k] = tree_of(at, n);
	}
}

static void run(struct world *w, const struct hd_collective_schedule *s, const char *what)
{
	uint32_t i = 0;

	for (uint32_t round = 0; round < s->nrounds; round++) {
		struct world before = *w;
		uint32_t begin = i;
		for (; i < s->nmoves && s->move[i].round == round; i++) {
			const struct hd_collective_move *m = &s->move[i];
			CHECK(m->from < w->p && m->to < w->p && m->from != m->to && m->first < m->end,
				"%s: move %u",
				what, i);
			for (uint32_t j = begin; j < i; j++) {
				const struct hd_collective_move *o = &s->move[j];
				CHECK(o->to != m->to || !overlap(o, m) || (o->add && m->add && o->first ==
					m->first &&
					o->end == m->end && o->from != m->from), "%s: moves %u and %u meet",
						what, j, i);
			}
			if (m->add)
				add(w, &before, s, m);
			else
				for (uint64_t k = m->first; k < m->end; k++)
					w->value[m->to][k] = before.value[m->from][k];
		}
	}
	CHECK(i == s->nmoves, "%s: moves are not in order of rounds", what);
}

static void begin(struct world *w, uint32_t p, uint32_t len)
{
	terms_begin();
	w->p = p;
	for (uint32_t r = 0; r < p; r++)
		for (uint32_t k = 0; k < len; k++)
			w->value[r][k] = operand(r);
}

static void judge(enum hd_collective kind, const struct hd_collective_shape *shape, uint32_t len)
{
	struct hd_collective_schedule s;
	struct hd_diag diag = { "" };
	struct hd_arena arena;
	static struct world w;
	uint32_t leaves[RANKS];
	char what[80];

	snprintf(what, sizeof what, "%s, %u ranks, nodes of %u, %u owners, %u segments, %u elements",
		hd_collective_word(kind), shape->p, shape->node, shape->owners, shape->segments, len);
	hd_arena_init(&arena, 0);
	CHECK(!hd_collective_schedule(&s, kind, shape, len, &arena, &diag), "%s: %s", what, diag.text);
	begin(&w, shape->p, len);
	run(&w, &s, what);
	for (uint32_t r = 0; r < shape->p; r++)
		leaves[r] = operand(r);
	uint32_t canonical = tree_of(leaves, shape->p);
	for (uint32_t k = 0; k < len; k++)
		for (uint32_t r = 0; r < shape->p; r++) {
			uint32_t times[RANKS] = { 0 };
			if (hd_collective_is_canonical(kind))
				CHECK(w.value[r][k] == canonical,
					"%s: element %u at rank %u is another sum", what, k, r);
			CHECK(w.value[r][k] == w.value[0][k], "%s: element %u differs at rank %u", what, k,
				r);
			count(w.value[r][k], times);
			for (uint32_t of = 0; of < shape->p; of++)
				CHECK(times[of] == 1, "%s: element %u has the operand of %u %u times", what,
					k, of,
					times[of]);
		}
	hd_arena_finish(&arena);
}

static const uint32_t lens[] = { 1, 2, 3, 7, 16, 37 };

static void every_primitive_makes_the_sum_of_its_tree(void **state)
{
	(void)state;
	for (uint32_t p = 1; p <= RANKS; p++)
		for (uint32_t l = 0; l < sizeof lens / sizeof *lens; l++) {
			for (uint32_t kind = 0; kind < HD_COLLECTIVE_COUNT; kind++) {
				if (kind == HD_COLLECTIVE_HIERARCHICAL)
					continue;
				struct hd_collective_shape shape = { .p = p, .fast = true };
				judge((enum hd_collective)kind, &shape, lens[l]);
			}
			for (uint32_t node = 2; node <= p; node *= 2)
				if (p % node == 0)
					judge(HD_COLLECTIVE_HIERARCHICAL,
						&(struct hd_collective_shape){ .p = p, .node = node },
						lens[l]);
			for (uint32_t n = 2; n <= 5; n++) {
				if (n <= p)
					judge(HD_COLLECTIVE_OWNER, &(struct hd_collective_shape){ .p = p,
						.owners = n }, lens[l]);
				judge(HD_COLLECTIVE_TREE, &(struct hd_collective_shape){ .p = p, .segments =
					n, .fast = true },
					lens[l]);
			}
		}
}

/* What the header says of folding: five ranks that fold once, the rank beyond four into its neighbour's pair,
 * add along no canonical tree. */
static void one_fold_of_the_extra_ranks_is_not_canonical(void **state)
{
	uint32_t leaf[5];

	(void)state;
	terms_begin();
	for (uint32_t r = 0; r < 5; r++)
		leaf[r] = operand(r);
	uint32_t once = intern(intern(intern(leaf[0], leaf[1]), leaf[2]), intern(leaf[3], leaf[4]));
	assert_true(once != tree_of(leaf, 5));
	assert_int_equal(hd_collective_folds(5), 2);
	assert_int_equal(hd_collective_folds(7), 1);
	assert_int_equal(hd_collective_folds(8), 0);
	assert_int_equal(hd_collective_folds(17), 4);
}

static void rounds_and_bytes_are_those_of_the_formulas(void **state)
{
	static const struct { enum hd_collective kind; uint32_t p, rounds, most; } rows[] = {
		/* most: elements that one rank sends, of 240 */
		{ HD_COLLECTIVE_DIRECT, 8, 2, 2 * 7 * 30 }, { HD_COLLECTIVE_DIRECT, 5, 2, 2 * 4 * 48 },
		{ HD_COLLECTIVE_OWNER, 8, 2, 7 * 240 },
		{ HD_COLLECTIVE_HALVING, 8, 6, 2 * 210 }, { HD_COLLECTIVE_HALVING, 6, 6, 240 + 240 + 240 },
		{ HD_COLLECTIVE_DOUBLING, 8, 3, 3 * 240 }, { HD_COLLECTIVE_DOUBLING, 3, 3, 2 * 240 },
		{ HD_COLLECTIVE_RING, 8, 14, 14 * 30 }, { HD_COLLECTIVE_TREE, 8, 6, 2 * 240 + 240 },
	};

	(void)state;
	for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct hd_collective_schedule s;
		struct hd_arena arena;
		uint64_t sent[8] = { 0 }, most = 0;
		hd_arena_init(&arena, 0);
		assert_int_equal(hd_collective_schedule(&s, rows[i].kind,
			&(struct hd_collective_shape){ .p = rows[i].p,
			.fast = true }, 240, &arena, NULL), HD_OK);
		for (uint32_t m = 0; m < s.nmoves; m++)
			sent[s.move[m].from] += s.move[m].end - s.move[m].first;
		for (uint32_t r = 0; r < rows[i].p; r++)
			most = sent[r] > most ? sent[r] : most;
		CHECK(s.nrounds == rows[i].rounds && most == rows[i].most, "row %u: %u rounds, %u elements",
			i,
			s.nrounds, (uint32_t)most);
		hd_arena_finish(&arena);
	}
}

static void what_no_primitive_can_is_refused_in_words(void **state)
{
	static const struct { enum hd_collective kind; struct hd_collective_shape shape; const char *says;
		} rows[] = {
		{ HD_COLLECTIVE_RING, { .p = 4 }, "ring adds in another order" },
		{ HD_COLLECTIVE_TREE, { .p = 4 }, "tree adds in another order" },
		{ HD_COLLECTIVE_TREE, { .p = 4, .fast = true, .segments = HD_COLLECTIVE_SEGMENTS + 1 }, "at most 64" },
		{ HD_COLLECTIVE_DOUBLING, { .p = 4, .ragged = true }, "not one aligned block" },
		{ HD_COLLECTIVE_HALVING, { .p = 4, .ragged = true }, "not one aligned block" },
		{ HD_COLLECTIVE_HIERARCHICAL, { .p = 4, .node = 2, .ragged = true }, "not one aligned block" },
		{ HD_COLLECTIVE_HIERARCHICAL, { .p = 6, .node = 3 }, "nodes of 3" },
		{ HD_COLLECTIVE_HIERARCHICAL, { .p = 6, .node = 4 }, "nodes of 4" },
		{ HD_COLLECTIVE_HIERARCHICAL, { .p = 6 }, "nodes of 0" },
		{ HD_COLLECTIVE_OWNER, { .p = 4, .owners = 5 }, "5 owners among 4" },
		{ HD_COLLECTIVE_DIRECT, { .p = 0 }, "0 ranks" },
		{ HD_COLLECTIVE_DIRECT, { .p = HD_COLLECTIVE_RANKS + 1 }, "1025 ranks" },
	};
	struct hd_collective_schedule s;
	struct hd_arena arena;

	(void)state;
	hd_arena_init(&arena, 0);
	for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct hd_diag diag = { "" };
		CHECK(hd_collective_schedule(&s, rows[i].kind, &rows[i].shape, 9, &arena, &diag) ==
			HD_E_BADPLAN &&
			strstr(diag.text, rows[i].says), "row %u: %s", i, diag.text);
	}
	/* direct takes ragged parts: it adds them at one place */
	assert_int_equal(hd_collective_check(HD_COLLECTIVE_DIRECT, &(struct hd_collective_shape){ .p = 3,
		.ragged = true }, NULL), HD_OK);
	hd_arena_finish(&arena);
}

static void words_name_primitives(void **state)
{
	enum hd_collective kind;

	(void)state;
	for (uint32_t i = 0; i < HD_COLLECTIVE_COUNT; i++)
		assert_true(hd_collective_find(hd_collective_word((enum hd_collective)i), &kind) && kind ==
			i);
	assert_false(hd_collective_find("rings", &kind) || hd_collective_find("", &kind));
}

static void blocks_of_a_power_of_two_are_aligned(void **state)
{
	static const struct { uint32_t nvns, p, first[4], end[4]; bool is; } rows[] = {
		{ 8, 4, { 0, 2, 4, 6 }, { 2, 4, 6, 8 }, true }, { 8, 2, { 0, 4 }, { 4, 8 }, true },
		{ 7, 2, { 0, 4 }, { 4, 7 }, true }, { 7, 4, { 0, 2, 4, 6 }, { 2, 4, 6, 7 }, true },
		{ 5, 1, { 0 }, { 5 }, true }, { 3, 3, { 0, 1, 2 }, { 1, 2, 3 }, true },
		{ 8, 3, { 0, 3, 6 }, { 3, 6, 8 }, false }, { 6, 2, { 0, 3 }, { 3, 6 }, false },
		{ 8, 3, { 0, 2, 4 }, { 2, 4, 8 }, false }, { 8, 2, { 4, 0 }, { 8, 4 }, false },
		{ 6, 3, { 0, 2, 3 }, { 2, 3, 6 }, false }, { 8, 2, { 0, 4 }, { 4, 7 }, false },
		{ 7, 3, { 0, 4, 5 }, { 4, 5, 7 }, false }, { 4, 3, { 0, 2, 4 }, { 2, 4, 4 }, false },
	};

	(void)state;
	assert_false(hd_collective_aligned(4, NULL, NULL, 0));
	for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++)
		CHECK(hd_collective_aligned(rows[i].nvns, rows[i].first, rows[i].end, rows[i].p) ==
			rows[i].is,
			"row %u", i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_primitive_makes_the_sum_of_its_tree),
		cmocka_unit_test(one_fold_of_the_extra_ranks_is_not_canonical),
		cmocka_unit_test(rounds_and_bytes_are_those_of_the_formulas),
		cmocka_unit_test(what_no_primitive_can_is_refused_in_words),
		cmocka_unit_test(words_name_primitives),
		cmocka_unit_test(blocks_of_a_power_of_two_are_aligned),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
