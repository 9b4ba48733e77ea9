#include "plan/folds.h"

#include <stdlib.h>
#include <string.h>

#include "tests/planning.h"
#include "tests/check.h"

enum { MAX_VNS = 70, MAX_MEMBERS = 9 };

/* By the recursive form of the definition: the oracle. */
static float by_definition(const float *leaf, uint32_t n)
{
	uint32_t split = 1;

	if (n == 1)
		return leaf[0];
	while (split * 2 < n)
		split *= 2;
	float left = by_definition(leaf, split), right = by_definition(leaf + split, n - split);
	return left + right;
}

static uint32_t bits(float x)
{
	uint32_t u;

	memcpy(&u, &x, sizeof u);
	return u;
}

static float random_leaf(void)
{
	static const float magnitude[] = { 1, 1e30f, 1e-30f, 1e-42f, 3, 1e7f };
	float x = (float)(random() % 2000001 - 1000000) * 1e-6f * magnitude[random() % 6];

	switch (random() % 8) {
	case 0: return -0.0f;
	case 1: return 0.0f;
	default: return x;
	}
}

/* Applies a script to one number per leaf (per slice); the moves of a leaf in order. */
static void run_script(const struct hd_fold_script *s, const float *slice, float *buffer)
{
	for (uint32_t i = 0; i < s->nvns_here; i++)
		for (uint32_t q = 0; q < s->nslices; q++)
			for (uint32_t m = s->first_move[i * s->nslices + q];
				m < s->first_move[i * s->nslices + q + 1]; m++) {
				const struct hd_move *move = &s->move[m];
				assert_true(move->dst < s->nbuffers &&
					(move->src == HD_LEAF || move->src < s->nbuffers));
				float src = move->src == HD_LEAF ? slice[s->vn[i] * s->nslices + q] :
					buffer[move->src];
				buffer[move->dst] = move->add ? buffer[move->dst] + src : src;
			}
}

static struct hd_fold_script script_of(uint32_t nvns, uint32_t first, uint32_t end, uint32_t nslices)
{
	struct hd_fold_script s = { 0 };
	uint32_t vn[1024];

	for (uint32_t v = first; v < end; v++)
		vn[v - first] = v;
	hd_arena_reset(&arena);
	assert_int_equal(hd_fold_script_make(&s, nvns, vn, end - first, nslices, &arena, NULL), HD_OK);
	return s;
}

static void buffers_needed_are_those_of_the_table(void **state)
{
	static const struct { uint32_t first, last, buffers; } table[] = {
		{ 1, 3, 1 }, { 4, 7, 2 }, { 8, 15, 3 }, { 16, 16, 4 }, { 32, 32, 5 }, { 64, 64, 6 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
		for (uint32_t n = table[i].first; n <= table[i].last; n++) {
			CHECK(script_of(n, 0, n, 1).nbuffers == table[i].buffers, "L=%u: %u buffers", n,
				script_of(n, 0, n, 1).nbuffers);
			for (uint32_t q = 2; q < 5; q++)
				CHECK(script_of(n, 0, n, q).nbuffers == table[i].buffers + (n >= 2),
					"L=%u, q=%u: %u buffers", n, q,
					script_of(n, 0, n, q).nbuffers);
		}
	assert_int_equal(script_of(16, 6, 12, 1).nbuffers, 3);
	assert_int_equal(script_of(16, 1, 15, 1).nbuffers, 6);
	assert_int_equal(script_of(16, 3, 3, 1).nbuffers, 0);
}

static void a_right_child_is_added_to_its_sibling_at_once(void **state)
{
	struct hd_fold_script s = script_of(4, 0, 4, 1);
	static const struct hd_move want[] = {
		{ 0, HD_LEAF, false }, { 0, HD_LEAF, true }, { 1, HD_LEAF, false }, { 1, HD_LEAF, true }, { 0, 1, true },
	};
	static const uint32_t first[] = { 0, 1, 2, 3, 5 };

	(void)state;
	assert_memory_equal(s.first_move, first, sizeof first);
	for (size_t i = 0; i < 5; i++)
		CHECK(s.move[i].dst == want[i].dst && s.move[i].src == want[i].src &&
			s.move[i].add == want[i].add, "move %zu", i);
	assert_int_equal(s.nroots, 1);
	assert_int_equal(s.root_buffer[0], 0);
}

struct members { uint32_t nvns, n, nslices, of[MAX_VNS]; };

/* Local folds of all members, then the join; the roots are offered in any order. */
static float refold(const struct members *m, const float *slice)
{
	struct hd_tnode root[MAX_VNS];
	struct hd_join join[MAX_VNS];
	float item[2 * MAX_VNS];
	uint32_t nroots = 0, njoins = 0, result = 0;

	hd_arena_reset(&arena);
	for (uint32_t device = 0; device < m->n; device++) {
		uint32_t vn[MAX_VNS], n = 0;
		uint8_t has[MAX_VNS] = { 0 };
		struct hd_tnode want[MAX_VNS];
		uint32_t nwant = 0;
		float buffer[MAX_VNS];
		struct hd_fold_script s;
		for (uint32_t v = 0; v < m->nvns; v++)
			if (m->of[v] == device)
				has[vn[n++] = v] = 1;
		for (uint32_t i = 0; i < MAX_VNS; i++)
			buffer[i] = 12345.0f;          /* whatever was there before must not matter */
		assert_int_equal(hd_fold_script_make(&s, m->nvns, vn, n, m->nslices, &arena, NULL), HD_OK);
		assert_int_equal(hd_tree_roots(m->nvns, has, want, MAX_VNS, &nwant), HD_OK);
		assert_int_equal(s.nroots, nwant);
		run_script(&s, slice, buffer);
		for (uint32_t i = 0; i < s.nroots; i++) {
			uint32_t at = (uint32_t)random() % (nroots + 1);
			assert_true(hd_tnode_same(s.root[i], want[i]));
			root[nroots] = root[at];
			item[nroots] = item[at];
			root[at] = s.root[i];
			item[at] = buffer[s.root_buffer[i]];
			nroots++;
		}
	}
	assert_int_equal(hd_join_make(m->nvns, root, nroots, join, MAX_VNS, &njoins, &result, NULL), HD_OK);
	assert_int_equal(njoins, nroots - 1);
	for (uint32_t j = 0; j < njoins; j++) {
		assert_true(join[j].dst == nroots + j && join[j].a < join[j].dst && join[j].b < join[j].dst);
		item[join[j].dst] = item[join[j].a] + item[join[j].b];
	}
	return item[result];
}

static void any_partition_over_members_gives_the_bits_of_one_device(void **state)
{
	(void)state;
	srandom(11);
	for (int round = 0; round < 30000; round++) {
		struct members m = { .nvns = 1 + (uint32_t)random() % MAX_VNS,
			.n = 1 + (uint32_t)random() % MAX_MEMBERS,
			.nslices = random() % 3 ? 1 : 1 + (uint32_t)random() % 4 };
		bool contiguous = random() & 1;
		float slice[MAX_VNS * 4], leaf[MAX_VNS];
		for (uint32_t v = 0; v < m.nvns; v++) {
			m.of[v] = contiguous ? v * m.n / m.nvns : (uint32_t)random() % m.n;
			for (uint32_t q = 0; q < m.nslices; q++) {
				float x = slice[v * m.nslices + q] = random_leaf();
				leaf[v] = q ? leaf[v] + x : x;
			}
		}
		float want = by_definition(leaf, m.nvns), got = refold(&m, slice);
		CHECK(bits(want) == bits(got), "V=%u, %u members, %u slices: %a, want %a", m.nvns, m.n,
			m.nslices, (double)got, (double)want);
	}
}

/* Members in groups, as devices in workers: each group joins what it can, then all groups join the rest. */
static float refold_in_groups(const struct members *m, uint32_t ngroups, const float *slice)
{
	struct hd_tnode all[MAX_VNS], root[MAX_VNS], want[MAX_VNS];
	float all_item[2 * MAX_VNS], item[2 * MAX_VNS], buffer[MAX_VNS];
	struct hd_left left[MAX_VNS];
	struct hd_join join[MAX_VNS];
	uint32_t nall = 0, njoins, nleft, nwant, result;

	for (uint32_t g = 0; g < ngroups; g++) {
		uint32_t nroots = 0;
		uint8_t has[MAX_VNS] = { 0 };
		for (uint32_t k = g; k < m->n; k += ngroups) {
			uint32_t vn[MAX_VNS], n = 0;
			struct hd_fold_script s;
			for (uint32_t v = 0; v < m->nvns; v++)
				if (m->of[v] == k)
					has[vn[n++] = v] = 1;
			hd_arena_reset(&arena);
			assert_int_equal(hd_fold_script_make(&s, m->nvns, vn, n, m->nslices, &arena, NULL),
				HD_OK);
			run_script(&s, slice, buffer);
			for (uint32_t i = 0; i < s.nroots; i++, nroots++) {
				root[nroots] = s.root[i];
				item[nroots] = buffer[s.root_buffer[i]];
			}
		}
		if (!nroots)
			continue;
		assert_int_equal(hd_join_some(m->nvns, root, nroots, join, MAX_VNS, &njoins, left, &nleft,
			NULL), HD_OK);
		assert_int_equal(njoins + nleft, nroots);
		assert_int_equal(hd_tree_roots(m->nvns, has, want, MAX_VNS, &nwant), HD_OK);
		assert_int_equal(nleft, nwant);
		for (uint32_t j = 0; j < njoins; j++)
			item[join[j].dst] = item[join[j].a] + item[join[j].b];
		for (uint32_t i = 0; i < nleft; i++, nall++) {
			assert_true(hd_tnode_same(left[i].node, want[i]));
			all[nall] = left[i].node;
			all_item[nall] = item[left[i].item];
		}
	}
	assert_int_equal(hd_join_make(m->nvns, all, nall, join, MAX_VNS, &njoins, &result, NULL), HD_OK);
	for (uint32_t j = 0; j < njoins; j++)
		all_item[join[j].dst] = all_item[join[j].a] + all_item[join[j].b];
	return all_item[result];
}

static void joining_in_groups_first_gives_the_same_bits(void **state)
{
	(void)state;
	srandom(12);
	for (int round = 0; round < 10000; round++) {
		struct members m = { .nvns = 1 + (uint32_t)random() % MAX_VNS,
			.n = 1 + (uint32_t)random() % MAX_MEMBERS, .nslices = 1 };
		bool contiguous = random() & 1;
		float leaf[MAX_VNS];
		for (uint32_t v = 0; v < m.nvns; v++) {
			m.of[v] = contiguous ? v * m.n / m.nvns : (uint32_t)random() % m.n;
			leaf[v] = random_leaf();
		}
		uint32_t ngroups = 1 + (uint32_t)random() % m.n;
		float want = by_definition(leaf, m.nvns), got = refold_in_groups(&m, ngroups, leaf);
		CHECK(bits(want) == bits(got), "V=%u, %u members in %u groups: %a, want %a", m.nvns, m.n,
			ngroups, (double)got, (double)want);
	}
}

static void negative_zeros_stay_negative(void **state)
{
	(void)state;
	for (uint32_t nvns = 1; nvns <= 17; nvns++) {
		struct members m = { .nvns = nvns, .n = 3, .nslices = 1 };
		float slice[MAX_VNS];
		for (uint32_t v = 0; v < nvns; v++) {
			m.of[v] = v % 3;
			slice[v] = -0.0f;
		}
		CHECK(bits(refold(&m, slice)) == bits(-0.0f), "V=%u", nvns);
	}
}

static void a_leaf_never_makes_more_moves_than_levels(void **state)
{
	(void)state;
	for (uint32_t nvns = 1; nvns <= 1024; nvns += nvns < 70 ? 1 : 53) {
		struct hd_fold_script s = script_of(nvns, 0, nvns, 1);
		for (uint32_t i = 0; i < nvns; i++)
			CHECK(s.first_move[i + 1] - s.first_move[i] <= HD_MAX_LEVELS, "V=%u, leaf %u", nvns,
				i);
	}
}

static void senseless_requests_are_refused(void **state)
{
	struct hd_fold_script s;
	struct hd_diag diag = { "" };
	static const uint32_t twice[] = { 1, 1 }, down[] = { 2, 1 }, far[] = { 8 };

	(void)state;
	assert_int_equal(hd_fold_script_make(&s, 8, twice, 2, 1, &arena, &diag), HD_E_INVAL);
	assert_string_equal(diag.text, "virtual node 1 at place 1: they must ascend and be below 8");
	assert_int_equal(hd_fold_script_make(&s, 8, down, 2, 1, &arena, NULL), HD_E_INVAL);
	assert_int_equal(hd_fold_script_make(&s, 8, far, 1, 1, &arena, NULL), HD_E_INVAL);
	assert_int_equal(hd_fold_script_make(&s, 8, far, 0, 0, &arena, NULL), HD_E_INVAL);
	assert_int_equal(hd_fold_script_make(&s, 0, far, 0, 1, &arena, NULL), HD_E_INVAL);
	assert_int_equal(hd_fold_script_make(&s, HD_MAX_VNS + 1, far, 0, 1, &arena, NULL), HD_E_INVAL);
}

static void roots_that_do_not_tile_are_refused(void **state)
{
	struct hd_join join[8];
	uint32_t n, result;
	static const struct { uint32_t nvns, nroots; struct hd_tnode root[4]; enum hd_err err; } cases[] = {
		{ 4, 0, { { 0, 0 } }, HD_E_INVAL },
		{ 4, 1, { { 1, 0 } }, HD_E_INVAL },                               /* the end is missing */
		{ 4, 1, { { 1, 1 } }, HD_E_INVAL },                               /* the start is missing */
		{ 4, 2, { { 0, 0 }, { 1, 1 } }, HD_E_INVAL },                     /* a hole */
		{ 4, 3, { { 1, 0 }, { 1, 1 }, { 0, 1 } }, HD_E_INVAL },           /* covered twice */
		{ 4, 2, { { 2, 0 }, { 2, 0 } }, HD_E_INVAL },
		{ 4, 1, { { 3, 0 } }, HD_E_INVAL },                               /* no such node */
		{ 3, 2, { { 1, 0 }, { 1, 1 } }, HD_E_INVAL },                     /* a promoted name */
		{ 3, 2, { { 1, 0 }, { 0, 2 } }, HD_OK },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		CHECK(hd_join_make(cases[i].nvns, cases[i].root, cases[i].nroots, join, 8, &n, &result,
			NULL) == cases[i].err, "case %zu", i);
	assert_int_equal(hd_join_make(3, cases[8].root, 2, join, 1, &n, &result, NULL), HD_E_NOSPACE);
	assert_int_equal(hd_join_make(0, cases[8].root, 2, join, 8, &n, &result, NULL), HD_E_INVAL);

	/* of some roots only an overlap is wrong */
	struct hd_left left[8];
	static const enum hd_err some[] = { HD_E_INVAL, HD_OK, HD_OK, HD_OK, HD_E_INVAL, HD_E_INVAL,
		HD_E_INVAL, HD_E_INVAL, HD_OK };
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		CHECK(hd_join_some(cases[i].nvns, cases[i].root, cases[i].nroots, join, 8, &n, left, &result,
			NULL) == some[i], "case %zu", i);
}

static void no_memory_is_said(void **state)
{
	struct hd_arena small;
	struct hd_fold_script s;
	static const uint32_t vn[] = { 0, 1, 2 };
	enum hd_err err = HD_E_NOMEM;

	(void)state;
	for (size_t budget = 1; err; budget += 64) {
		assert_in_range(budget, 1, 1 << 20);
		hd_arena_init(&small, budget);
		err = hd_fold_script_make(&s, 3, vn, 3, 1, &small, NULL);
		CHECK(!err || err == HD_E_NOMEM, "budget %zu", budget);
		hd_arena_finish(&small);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(buffers_needed_are_those_of_the_table),
		cmocka_unit_test(a_right_child_is_added_to_its_sibling_at_once),
		cmocka_unit_test(any_partition_over_members_gives_the_bits_of_one_device),
		cmocka_unit_test(joining_in_groups_first_gives_the_same_bits),
		cmocka_unit_test(negative_zeros_stay_negative),
		cmocka_unit_test(a_leaf_never_makes_more_moves_than_levels),
		cmocka_unit_test(senseless_requests_are_refused),
		cmocka_unit_test(roots_that_do_not_tile_are_refused),
		cmocka_unit_test(no_memory_is_said),
	};
	return cmocka_run_group_tests(tests, make_arena, drop_arena);
}
