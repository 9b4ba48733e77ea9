#include "graph/state.h"

#include <stdio.h>
#include <string.h>

#include "tests/check.h"

enum { N = 65536 + 70000 };
static float big[N];
static double sums[3] = { 1, -0.0, 3 };
static int64_t step[1] = { 41 };

static struct hd_state_entry entry(const char *name, enum hd_dtype dtype, int64_t n, void *at)
{
	return (struct hd_state_entry){ .name = name, .dtype = (uint8_t)dtype, .rank = 1, .dim = { n },
		.at = at,
		.len_bytes = (uint64_t)n * hd_dtype_bytes(dtype) };
}

static void make(struct hd_state *state, struct hd_arena *arena)
{
	struct hd_state_entry all[] = { entry("w", HD_F32, N, big), entry("step", HD_I64, 1, step),
		entry("sums", HD_F64, 3, sums) };

	for (int i = 0; i < N; i++)
		big[i] = (float)i * 0.5f;
	hd_arena_init(arena, 0);
	hd_state_init(state, arena);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(hd_state_add(state, &all[i], NULL), HD_OK);
}

static void entries_are_sorted_by_name_and_unique(void **nothing)
{
	struct hd_arena arena;
	struct hd_state state;
	struct hd_state_entry again = entry("step", HD_I64, 1, step);

	(void)nothing;
	make(&state, &arena);
	assert_string_equal(state.entry[0].name, "step");
	assert_string_equal(state.entry[1].name, "sums");
	assert_string_equal(state.entry[2].name, "w");
	assert_int_equal(hd_state_add(&state, &again, NULL), HD_E_EXISTS);
	assert_ptr_equal(hd_state_find(&state, "w")->at, big);
	assert_null(hd_state_find(&state, "v"));
	hd_arena_finish(&arena);
}

/* The digest written out: the bytes of the rule, joined in one buffer and hashed whole. */
static void digests_are_what_the_header_says(void **nothing)
{
	struct hd_arena arena;
	struct hd_state state;
	struct hd_hash segment[3], tensor[3];
	uint8_t all[256];
	size_t len = 0;

	(void)nothing;
	make(&state, &arena);
	tensor[0] = hd_hash(hd_hash(step, 8).byte, 16);
	tensor[1] = hd_hash(hd_hash(sums, 24).byte, 16);
	segment[0] = hd_hash(big, 65536 * 4);
	segment[1] = hd_hash(big + 65536, 65536 * 4);
	segment[2] = hd_hash(big + 131072, (N - 131072) * 4);
	tensor[2] = hd_hash(segment, sizeof segment);
	static const struct { const char *name; uint8_t dtype; uint64_t dim; } rows[] = { { "step", 4, 1 },
		{ "sums", 2, 3 }, { "w", 1, N } };
	for (int i = 0; i < 3; i++) {
		assert_true(hd_hash_same(tensor[i], hd_state_tensor_digest(&state.entry[i])));
		memcpy(all + len, rows[i].name, strlen(rows[i].name) + 1);
		len += strlen(rows[i].name) + 1;
		all[len++] = rows[i].dtype;
		all[len++] = 1;
		memcpy(all + len, &rows[i].dim, 8);
		memcpy(all + len + 8, tensor[i].byte, 16);
		len += 24;
	}
	assert_true(hd_hash_same(hd_hash(all, len), hd_state_digest(&state)));
	assert_true(hd_hash_same(hd_state_digest_of(&state, tensor), hd_state_digest(&state)));
	hd_arena_finish(&arena);
}

static void one_flipped_bit_changes_the_digest(void **nothing)
{
	struct hd_arena arena;
	struct hd_state state;

	(void)nothing;
	make(&state, &arena);
	struct hd_hash before = hd_state_digest(&state);
	sums[1] = 0.0;                                   /* from -0.0: equal as a number, not as state */
	assert_false(hd_hash_same(before, hd_state_digest(&state)));
	sums[1] = -0.0;
	assert_true(hd_hash_same(before, hd_state_digest(&state)));
	hd_state_find(&state, "w")->version++;           /* not part of what a step reads */
	assert_true(hd_hash_same(before, hd_state_digest(&state)));
	hd_arena_finish(&arena);
}

static void entries_that_contradict_themselves_are_refused(void **nothing)
{
	struct hd_arena arena;
	struct hd_state state;
	struct hd_diag diag = { "" };
	struct hd_state_entry bad = entry("x", HD_F32, 4, big);

	(void)nothing;
	make(&state, &arena);
	bad.len_bytes = 15;
	assert_int_equal(hd_state_add(&state, &bad, &diag), HD_E_BUG);
	assert_non_null(strstr(diag.text, "'x'"));
	bad = entry("", HD_F32, 4, big);
	assert_int_equal(hd_state_add(&state, &bad, NULL), HD_E_BUG);
	assert_int_equal(state.nentries, 3);
	hd_arena_finish(&arena);
}

static void a_table_that_cannot_grow_stays_as_it_was(void **nothing)
{
	struct hd_arena arena;
	struct hd_state state;
	char name[8];
	uint32_t n;

	(void)nothing;
	make(&state, &arena);
	arena.budget_bytes = arena.used_bytes + 4096;
	for (n = 0;; n++) {
		snprintf(name, sizeof name, "e%u", n);
		struct hd_state_entry more = entry(name, HD_I64, 1, step);
		enum hd_err err = hd_state_add(&state, &more, NULL);
		if (err != HD_OK) {
			assert_int_equal(err, HD_E_NOMEM);
			break;
		}
	}
	assert_int_equal(state.nentries, 3 + n);
	assert_non_null(hd_state_find(&state, "w"));
	hd_arena_finish(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(entries_are_sorted_by_name_and_unique),
		cmocka_unit_test(digests_are_what_the_header_says),
		cmocka_unit_test(one_flipped_bit_changes_the_digest),
		cmocka_unit_test(entries_that_contradict_themselves_are_refused),
		cmocka_unit_test(a_table_that_cannot_grow_stays_as_it_was),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
