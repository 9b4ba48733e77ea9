#include "data/pair_sort.h"

#include <stdlib.h>
#include <string.h>

#include "sys/file_sim.h"
#include "tests/check.h"

static uint32_t draw(uint32_t i, uint32_t below)
{
	return (uint32_t)((i * 2654435761u ^ i >> 7) * 40503u >> 3) % below;
}

static int by_word(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* What a plain sort and a plain search for doubles give. */
static uint64_t *oracle(uint32_t n, uint32_t ids, uint64_t *count)
{
	uint64_t *word = malloc((n + 1) * sizeof *word), kept = 0;

	for (uint32_t i = 0; i < n; i++)
		word[i] = (uint64_t)draw(i, ids) << 32 | draw(i + 77, ids);
	qsort(word, n, sizeof *word, by_word);
	for (uint32_t i = 0; i < n; i++)
		if (i == 0 || word[i] != word[i - 1])
			word[kept++] = word[i];
	*count = kept;
	return word;
}

static void same_as_oracle(uint32_t n, uint32_t ids, uint64_t memory_bytes, bool spilled)
{
	uint64_t count, got = 0, *want = oracle(n, ids, &count);
	struct hd_diag diag = { "" };
	struct hd_pair_sort sort;
	struct hd_fs_sim sim;
	uint32_t first, second;
	struct hd_stat stat;
	bool more = true;

	hd_fs_sim_init(&sim);
	assert_int_equal(hd_pair_sort_init(&sort, &sim.fs, "scratch", memory_bytes, &diag), HD_OK);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(hd_pair_sort_add(&sort, draw(i, ids), draw(i + 77, ids), &diag), HD_OK);
	for (;;) {
		CHECK(hd_pair_sort_next(&sort, &first, &second, &more, &diag) == HD_OK, "%s", diag.text);
		if (!more)
			break;
		if (!got)
			CHECK(hd_fs_stat(&sim.fs, "scratch", &stat, NULL) == HD_E_NOTFOUND, "a name");
		CHECK(got < count && want[got] == ((uint64_t)first << 32 | second), "pair %llu",
			(unsigned long long)got);
		got++;
	}
	CHECK(got == count, "%llu pairs of %llu", (unsigned long long)got, (unsigned long long)count);
	assert_int_equal(sort.nruns > 0, spilled);
	hd_pair_sort_end(&sort);
	CHECK(hd_fs_stat(&sim.fs, "scratch", &stat, NULL) == HD_E_NOTFOUND, "the scratch file stays");
	hd_fs_sim_finish(&sim);
	free(want);
}

static void pairs_come_sorted_each_once(void **state)
{
	(void)state;
	same_as_oracle(0, 10, HD_PAIR_SORT_LEAST, false);
	same_as_oracle(1, 10, HD_PAIR_SORT_LEAST, false);
	same_as_oracle(5000, 40, HD_PAIR_SORT_LEAST, false);
	same_as_oracle(5000, 0x7fffffff, HD_PAIR_SORT_LEAST, false);
}

static void more_pairs_than_memory_holds_are_merged(void **state)
{
	(void)state;
	same_as_oracle(65537, 0x7fffffff, HD_PAIR_SORT_LEAST, true);
	same_as_oracle(300000, 300, HD_PAIR_SORT_LEAST, true);
	same_as_oracle(300000, 300, 8 << 20, false);
	same_as_oracle(400000, 0x7fffffff, HD_PAIR_SORT_LEAST, true);
}

static void too_little_memory_is_refused(void **state)
{
	struct hd_diag diag = { "" };
	struct hd_pair_sort sort;
	struct hd_fs fs;

	(void)state;
	hd_fs_real(&fs);
	assert_int_equal(hd_pair_sort_init(&sort, &fs, "x", HD_PAIR_SORT_LEAST - 1, &diag), HD_E_INVAL);
	assert_non_null(strstr(diag.text, "at least 1 MiB"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pairs_come_sorted_each_once),
		cmocka_unit_test(more_pairs_than_memory_holds_are_merged),
		cmocka_unit_test(too_little_memory_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
