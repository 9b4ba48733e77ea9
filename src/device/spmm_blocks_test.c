/* Edges in blocks of sources: every edge once, in the block of its source, and the bits of one call. */
#include "device/spmm_blocks.h"

#include <string.h>

#include "base/alloc.h"
#include "base/philox.h"
#include "tests/check.h"

enum { ROWS = 50, SOURCES = 70, EDGES = 600, WIDTH = 20 };

static uint64_t offset[ROWS + 1];
static uint32_t at[EDGES];
static float x[SOURCES * WIDTH], bias[WIDTH], want[ROWS * WIDTH], got[ROWS * WIDTH];

static uint32_t draw(uint32_t what, uint32_t i)
{
	return hd_philox((const uint32_t[4]){ i, what, 0, 0 }, hd_philox_key(7, HD_RNG_USER)).word[0];
}

/* Row 2 has every source, each fourth row none. */
static void make(void)
{
	uint64_t n = 0;

	for (uint32_t r = 0; r < ROWS; r++) {
		offset[r] = n;
		for (uint32_t j = 0; j < SOURCES; j++)
			if (r == 2 || (r % 4 && draw(r, j) % 8 == 0))
				at[n++] = j;
	}
	offset[ROWS] = n;
	assert_true(n <= EDGES);
	for (uint32_t i = 0; i < SOURCES * WIDTH; i++)
		x[i] = hd_uniform(draw(1000, i)) - 0.5f;
	for (uint32_t i = 0; i < WIDTH; i++)
		bias[i] = hd_uniform(draw(1001, i));
}

static struct hd_spmm call_of(float *y)
{
	return (struct hd_spmm){ .offset = offset, .at = at, .last = ROWS, .width = WIDTH, .x = x,
		.x_stride = WIDTH, .y = y, .y_stride = WIDTH, .bias = bias, .flags = HD_SPMM_ACT |
		HD_SPMM_LOOP, .act = HD_ACT_RELU };
}

static void blocks_give_the_bits_of_one_call(void **state)
{
	(void)state;
	make();
	for (uint32_t n = 1; n <= HD_SPMM_BLOCKS_CAP; n++)
		for (uint64_t first = 0; first < ROWS; first += 13) {
			struct hd_spmm_blocks blocks;
			struct hd_diag diag = { 0 };
			struct hd_spmm call = call_of(want);
			const uint64_t last = first + 13 < ROWS ? first + 13 : ROWS;
			memset(want, 0x5a, sizeof want);
			memset(got, 0x5a, sizeof got);
			call.first = first;
			call.last = last;
			hd_edge_kernels(NULL)->spmm(&call);
			assert_int_equal(hd_spmm_blocks_make(&blocks, offset, at, first, last, SOURCES, n,
				&diag), HD_OK);
			call.y = got;
			hd_spmm_blocks_run(hd_edge_kernels(NULL), &blocks, call);
			CHECK(memcmp(got, want, sizeof got) == 0, "%u blocks from row %d", n, (int)first);
			hd_spmm_blocks_free(&blocks);
		}
}

static void each_edge_is_in_the_block_of_its_source(void **state)
{
	struct hd_spmm_blocks blocks;
	struct hd_diag diag = { 0 };
	uint64_t n = 0;

	(void)state;
	make();
	assert_int_equal(hd_spmm_blocks_make(&blocks, offset, at, 0, ROWS, SOURCES, 4, &diag), HD_OK);
	for (uint32_t b = 0; b < 4; b++)
		for (uint64_t r = 0; r < ROWS; r++)
			for (uint64_t e = blocks.offset[b][r]; e < blocks.offset[b][r + 1]; e++, n++)
				CHECK(blocks.at[b][e] / 18 == b, "block %u", b);        /* ceil(70 / 4) */
	assert_int_equal(n, offset[ROWS]);
	hd_spmm_blocks_free(&blocks);
}

static void the_rule_asks_the_cache_and_the_edges(void **state)
{
	const uint64_t l2 = 2 << 20, k = 1000;

	(void)state;
	/* 200 k rows of 512 bytes are 6.1 times 8 caches: 8 blocks; of 64 bytes less than one */
	assert_int_equal(hd_spmm_blocks_rule(200 * k, 512, 200 * k, 10000 * k, l2), 8);
	assert_int_equal(hd_spmm_blocks_rule(200 * k, 256, 200 * k, 10000 * k, l2), 4);
	assert_int_equal(hd_spmm_blocks_rule(200 * k, 64, 200 * k, 10000 * k, l2), 1);
	/* ten edges a row: 4 blocks have two, 8 have not */
	assert_int_equal(hd_spmm_blocks_rule(2000 * k, 512, 2000 * k, 20000 * k, l2), 4);
	assert_int_equal(hd_spmm_blocks_rule(2000 * k, 512, 2000 * k, 2000 * k, l2), 1);
	assert_int_equal(hd_spmm_blocks_rule(2000 * k, 4096, 1000, 1000000 * k, l2), 16);
	assert_int_equal(hd_spmm_blocks_rule(2000 * k, 512, 0, 0, l2), 1);
}

static void no_memory_is_an_error_and_leaves_none(void **state)
{
	struct hd_spmm_blocks blocks = { 0 };
	struct hd_diag diag = { 0 };

	(void)state;
	make();
	for (uint64_t n = 1; n <= 6; n++) {
		hd_alloc_arm(n);
		assert_int_equal(hd_spmm_blocks_make(&blocks, offset, at, 0, ROWS, SOURCES, 3, &diag),
			HD_E_NOMEM);
		hd_alloc_arm(0);
		assert_int_equal(blocks.n, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks_give_the_bits_of_one_call),
		cmocka_unit_test(each_edge_is_in_the_block_of_its_source),
		cmocka_unit_test(the_rule_asks_the_cache_and_the_edges),
		cmocka_unit_test(no_memory_is_an_error_and_leaves_none),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
