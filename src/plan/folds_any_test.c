#include "plan/folds.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "tests/planning.h"
#include "tests/check.h"

enum { MAX_VNS = 40 };

/* By the recursive form of the definition: the oracle. */
static float by_definition(const float *leaf, uint32_t n)
{
	uint32_t split = 1;

	if (n == 1)
		return leaf[0];
	while (split * 2 < n)
		split *= 2;
	return by_definition(leaf, split) + by_definition(leaf + split, n - split);
}

static void run_script(const struct hd_fold_script *s, const float *leaf, float *buffer)
{
	for (uint32_t i = 0; i < s->nvns_here; i++)
		for (uint32_t m = s->first_move[i]; m < s->first_move[i + 1]; m++) {
			const struct hd_move *move = &s->move[m];
			/* device.h: the first takes the leaf, each further one what the one before made */
			assert_true(m == s->first_move[i] ? move->src == HD_LEAF :
				move->src == s->move[m - 1].dst);
			assert_true(move->dst < s->nbuffers);
			float src = move->src == HD_LEAF ? leaf[s->vn[i]] : buffer[move->src];
			buffer[move->dst] = move->add ? buffer[move->dst] + src : src;
		}
}

static void shuffle(uint32_t *vn, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		uint32_t k = i + (uint32_t)random() % (n - i), v = vn[i];
		vn[i] = vn[k];
		vn[k] = v;
	}
}

/* Two members, each in an order of its own. */
static float refold(uint32_t nvns, const uint8_t *of, const float *leaf)
{
	struct hd_tnode root[MAX_VNS];
	struct hd_join join[MAX_VNS];
	float item[2 * MAX_VNS];
	uint32_t nroots = 0, njoins, result;

	hd_arena_reset(&arena);
	for (uint8_t m = 0; m < 2; m++) {
		uint32_t vn[MAX_VNS], n = 0;
		float buffer[MAX_VNS] = { 12345.0f };
		struct hd_fold_script s;
		for (uint32_t v = 0; v < nvns; v++)
			if (of[v] == m)
				vn[n++] = v;
		shuffle(vn, n);
		assert_int_equal(hd_fold_script_make_any(&s, nvns, vn, n, &arena, NULL), HD_OK);
		assert_int_equal(s.ntemps, 0);
		run_script(&s, leaf, buffer);
		for (uint32_t i = 0; i < s.nroots; i++) {
			assert_int_equal(s.root_buffer[i], i);
			root[nroots] = s.root[i];
			item[nroots++] = buffer[i];
		}
	}
	assert_int_equal(hd_join_make(nvns, root, nroots, join, MAX_VNS, &njoins, &result, NULL), HD_OK);
	for (uint32_t j = 0; j < njoins; j++)
		item[join[j].dst] = item[join[j].a] + item[join[j].b];
	return item[result];
}

static void any_order_gives_the_bits_of_the_tree(void **state)
{
	(void)state;
	srandom(5);
	for (int round = 0; round < 20000; round++) {
		uint32_t nvns = 1 + (uint32_t)random() % MAX_VNS, one = (uint32_t)random() % 3;
		uint8_t of[MAX_VNS];
		float leaf[MAX_VNS];
		for (uint32_t v = 0; v < nvns; v++) {
			leaf[v] = (float)(random() % 2000001 - 1000000) * (random() & 1 ? 1e-6f : 1e3f);
			if (random() % 8 == 0)
				leaf[v] = -0.0f;
			of[v] = one == 0 ? 0 : random() & 1;
		}
		float want = by_definition(leaf, nvns), got = refold(nvns, of, leaf);
		CHECK(memcmp(&want, &got, sizeof want) == 0, "V=%u: %a, want %a", nvns, (double)got,
			(double)want);
	}
}

static void ascending_order_needs_the_buffers_of_a_counter(void **state)
{
	(void)state;
	for (uint32_t n = 1; n <= 64; n++) {
		struct hd_fold_script s;
		uint32_t vn[64], want = 1;
		for (uint32_t v = 0; v < n; v++)
			vn[v] = v;
		while ((2u << (want - 1)) <= n - 1)       /* 1 + floor(log2(n - 1)), spec 3.10 (4) */
			want++;
		hd_arena_reset(&arena);
		assert_int_equal(hd_fold_script_make_any(&s, n, vn, n, &arena, NULL), HD_OK);
		CHECK(s.nbuffers <= want, "%u virtual nodes: %u buffers, want %u", n, s.nbuffers, want);
	}
}

static void senseless_requests_are_refused(void **state)
{
	static const uint32_t twice[] = { 1, 1 }, far[] = { 8 };
	struct hd_fold_script s = { .nvns_here = 77 };
	struct hd_diag diag = { "" };

	(void)state;
	assert_int_equal(hd_fold_script_make_any(&s, 8, twice, 2, &arena, &diag), HD_E_INVAL);
	assert_string_equal(diag.text, "virtual node 1 at place 1 of a fold: there are 8, each comes once");
	diag.text[0] = '\0';
	for (int i = 0; i < 2; i++)               /* zeros behind all that is taken */
		hd_arena_reset(&arena), assert_true(i || hd_arena_take(&arena, 8192, 1));
	assert_int_equal(hd_fold_script_make_any(&s, 8, far, 1, &arena, &diag), HD_E_INVAL);
	assert_string_equal(diag.text, "virtual node 8 at place 0 of a fold: there are 8, each comes once");
	assert_int_equal(hd_fold_script_make_any(&s, 0, far, 0, &arena, NULL), HD_E_INVAL);
	assert_int_equal(hd_fold_script_make_any(&s, HD_MAX_VNS + 1, far, 0, &arena, NULL), HD_E_INVAL);
	diag.text[0] = '\0';
	assert_int_equal(hd_fold_script_make_any(&s, 1, twice, 2, &arena, &diag), HD_E_INVAL);
	assert_non_null(strstr(diag.text, "a fold of 2 of 1 virtual nodes"));
	assert_int_equal(s.nvns_here, 77);        /* a script that was not made is as it was */
}

/* As many as there may be: one root, by a counter of 17 levels. */
static void the_most_virtual_nodes_have_one_root(void **state)
{
	struct hd_fold_script s;
	uint32_t *vn = malloc(HD_MAX_VNS * sizeof *vn);

	(void)state;
	assert_non_null(vn);
	for (uint32_t v = 0; v < HD_MAX_VNS; v++)
		vn[v] = v;
	hd_arena_reset(&arena);
	assert_int_equal(hd_fold_script_make_any(&s, HD_MAX_VNS, vn, HD_MAX_VNS, &arena, NULL), HD_OK);
	assert_int_equal(s.nroots, 1);
	assert_int_equal(s.root[0].level, 16);
	assert_int_equal(s.nbuffers, 16);
	assert_int_equal(s.first_move[HD_MAX_VNS], HD_MAX_VNS - 1 + HD_MAX_VNS / 2);        /* sums,
		and leaves that wait */
	free(vn);
}

static void without_memory_there_is_no_script(void **state)
{
	static const uint32_t vn[] = { 6, 1, 0, 4 };
	struct hd_fold_script s = { .nvns_here = 77 };
	enum hd_err err;

	(void)state;
	EACH_PIECE_REFUSED(err, hd_fold_script_make_any(&s, 8, vn, 4, &arena, NULL));
	assert_int_equal(s.nroots, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_order_gives_the_bits_of_the_tree),
		cmocka_unit_test(ascending_order_needs_the_buffers_of_a_counter),
		cmocka_unit_test(the_most_virtual_nodes_have_one_root),
		cmocka_unit_test(without_memory_there_is_no_script),
		cmocka_unit_test(senseless_requests_are_refused),
	};

	return cmocka_run_group_tests(tests, make_arena, drop_arena);
}
