/* Where the elements of a tensor in slices lie. The oracle cuts a tensor index by index. */
#include "graph/slices.h"

#include <string.h>

#include "graph/testing.h"
#include "tests/check.h"

enum { MOST = 4096, SHARDS = 8 };

static const struct hd_sliced shapes[] = {
	{ 1, 1, 8, 1, 2 }, { 1, 5, 11, 1, 3 }, { 4, 1, 7, 1, 3 }, { 3, 2, 6, 3, 2 }, { 1, 1, 13, 3, 8 },
	{ 2, 3, 8, 3, 8 }, { 7, 1, 4, 1, 4 }, { 1, 6, 1, 1, 1 },
};

/* slice and place of every element, by counting what each slice has of each block */
static void cut(const struct hd_sliced *x, float part[SHARDS][MOST], const float *whole)
{
	uint64_t n[SHARDS] = { 0 }, e = 0;

	for (uint64_t o = 0; o < x->outer; o++)
		for (uint32_t b = 0; b < x->blocks; b++)
			for (uint32_t s = 0; s < x->n; s++)
				for (uint64_t i = x->extent * s / x->n; i < x->extent * (s + 1) / x->n; i++)
					for (uint64_t k = 0; k < x->inner; k++)
						part[s][n[s]++] = whole[e++];
	assert_int_equal(e, hd_sliced_elems(x));
}

static void any_range_is_cut_and_joined(void **state)
{
	static float whole[MOST], want[SHARDS][MOST], got[SHARDS][MOST], back[MOST];
	float *slice[SHARDS];

	(void)state;
	for (uint32_t s = 0; s < SHARDS; s++)
		slice[s] = got[s];
	for (uint64_t e = 0; e < MOST; e++)
		whole[e] = (float)e + 1;
	for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
		const struct hd_sliced *x = &shapes[i];
		const uint64_t n = hd_sliced_elems(x);
		memset(want, 0, sizeof want);
		cut(x, want, whole);
		for (uint64_t piece = 1; piece <= n; piece += 1 + n / 9) {
			memset(got, 0, sizeof got);
			memset(back, 0, sizeof back);
			for (uint64_t first = 0; first < n; first += piece)
				hd_slices_put(x, slice, first, n - first < piece ? n - first : piece,
					whole + first);
			CHECK(!memcmp(got, want, sizeof got), "shape %zu in pieces of %llu", i,
				(unsigned long long)piece);
			for (uint64_t first = 0; first < n; first += piece)
				hd_slices_get(x, slice, first, n - first < piece ? n - first : piece,
					back + first);
			CHECK(!memcmp(back, whole, n * sizeof *back), "shape %zu back in pieces of %llu", i,
				(unsigned long long)piece);
		}
	}
}

static void slices_of_a_graph_must_fit(void **state)
{
	static const struct { const char *text, *says; } cases[] = {
		{ "param a/0 f32 [4,2] ones tensor 0 a slice 0 of 2 axis 1 of 5 blocks 1\n"
		  "param a/1 f32 [4,3] ones tensor 0 a slice 1 of 2 axis 1 of 5 blocks 1\n", NULL },
		{ "param b f32 [3] ones tensor 1\n"
		  "param a/0 f32 [4,2] ones tensor 0 a slice 0 of 2 axis 1 of 5 blocks 1\n"
		  "param a/1 f32 [4,3] ones tensor 0 a slice 1 of 2 axis 1 of 5 blocks 1\n", NULL },
		{ "param a/0 f32 [4,2] ones tensor 0 a slice 0 of 2 axis 1 of 5 blocks 1\n",
		  "is not slice 0" },
		{ "param a/0 f32 [4,3] ones tensor 0 a slice 0 of 2 axis 1 of 5 blocks 1\n"
		  "param a/1 f32 [4,2] ones tensor 0 a slice 1 of 2 axis 1 of 5 blocks 1\n",
		  "is not slice 0" },
		{ "param a/0 f32 [4,2] ones tensor 0 a slice 0 of 2 axis 1 of 5 blocks 1\n"
		  "param b/0 f32 [4,2] ones tensor 0 a slice 0 of 2 axis 1 of 5 blocks 1\n",
		  "is not slice 0 of 2" },
		{ "param a/0 f32 [4,2] ones tensor 0 a slice 0 of 2 axis 1 of 5 blocks 1\n"
		  "param a/1 f32 [4,3] ones frozen tensor 0 a slice 1 of 2 axis 1 of 5 blocks 1\n",
		  "is not slice 1" },
		{ "param a/0 f32 [4,2] ones tensor 3 a slice 0 of 2 axis 1 of 5 blocks 1\n", "is of tensor 3" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct hd_wholes wholes;
		struct hd_subject s;
		hd_subject_parse(&s, cases[i].text);
		CHECK(s.err == HD_OK, "case %zu: %s", i, s.diag.text);
		CHECK(!strcmp(hd_subject_print(&s), cases[i].text), "case %zu: %s", i, hd_subject_print(&s));
		enum hd_err err = hd_wholes_make(&wholes, &s.graph, &s.arena, &s.diag);
		CHECK(cases[i].says ? err == HD_E_INVAL && strstr(s.diag.text, cases[i].says) : !err,
			"case %zu: %s", i, s.diag.text);
		hd_subject_finish(&s);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_range_is_cut_and_joined),
		cmocka_unit_test(slices_of_a_graph_must_fit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
