#include <math.h>

#include "engine/testing.h"

/* A graph of one parameter of so many elements, laid out: chunks and buckets as a model has them. */
static void lay_out(struct hd_layout *layout, uint64_t elems, struct hd_arena *arena)
{
	struct hd_graph graph;
	struct hd_diag diag = { "" };
	const int64_t dim[] = { (int64_t)elems };
	uint32_t value;

	hd_graph_init(&graph, arena);
	assert_int_equal(hd_graph_param(&graph, "w", 1, dim, HD_INIT_ZEROS, 0, &value, NULL), HD_OK);
	CHECK(hd_layout_make(layout, &graph, arena, &diag) == HD_OK, "%s", diag.text);
}

/* 3 buckets, the last one of 2 chunks */
enum { CHUNKS = 10, ELEMS = (CHUNKS - 1) * HD_CHUNK_ELEMS + 100 };

static void the_whole_model_is_a_stage_of_all_that_is_learned(void **state)
{
	(void)state;
	struct hd_layout layout;
	struct hd_engine_stage stage;
	struct hd_arena arena;

	hd_arena_init(&arena, 0);
	lay_out(&layout, ELEMS, &arena);
	assert_int_equal(layout.nchunks, CHUNKS);
	assert_int_equal(hd_stage_make(&stage, 0, &layout, 0, layout.nchunks, 3, &arena, NULL), HD_OK);
	assert_true(stage.at == 0 && stage.len == layout.elems && stage.npools == 3);
	assert_true(stage.first_bucket == 0 && stage.nbuckets == hd_layout_nbuckets(&layout));
	assert_int_equal(stage.flat_bytes, layout.elems * sizeof(float));
	assert_true(hd_stage_learns(&stage, 0, layout.elems));
	assert_true(hd_stage_learns(&stage, layout.elems, 0));
	assert_false(hd_stage_learns(&stage, 0, layout.elems + 1));
	assert_false(hd_stage_learns(&stage, layout.elems, 1));
	assert_false(hd_stage_learns(&stage, UINT64_MAX, 2));
	hd_arena_finish(&arena);
}

static void stages_tile_the_model_by_whole_buckets(void **state)
{
	(void)state;
	static const uint32_t first[] = { 0, 4, 8, CHUNKS };
	struct hd_layout layout;
	struct hd_arena arena;
	uint64_t at = 0;
	uint32_t bucket = 0;

	hd_arena_init(&arena, 0);
	lay_out(&layout, ELEMS, &arena);
	for (uint32_t i = 0; i < 3; i++) {
		struct hd_engine_stage s;
		assert_int_equal(hd_stage_make(&s, i, &layout, first[i], first[i + 1] - first[i], 1, &arena,
			NULL),
			HD_OK);
		assert_int_equal(s.number, i);
		assert_true(s.at == at && s.first_bucket == bucket && s.nbuckets == 1);
		assert_int_equal(s.at, layout.chunk[first[i]].at);
		assert_true(hd_stage_learns(&s, at, s.len));
		assert_false(hd_stage_learns(&s, at, s.len + 1));
		assert_false(at && hd_stage_learns(&s, at - 1, 1));
		/* its segments are counted from the beginning of their bucket, those of others are not its */
		for (uint32_t b = 0; b < 3; b++) {
			const struct hd_chunk run = hd_layout_bucket(&layout, b);
			assert_int_equal(s.bucket_grads[b], b == bucket);
			for (uint32_t k = run.first_segment; k < run.first_segment + run.nsegments; k++) {
				assert_int_equal(s.bucket_segment[k].len, b == bucket ?
					layout.segment[k].len : 0);
				assert_int_equal(s.bucket_segment[k].at, b == bucket ?
					layout.segment[k].at - at :
					0);
			}
		}
		at += s.len;
		bucket += s.nbuckets;
	}
	assert_true(at == layout.elems && bucket == hd_layout_nbuckets(&layout));
	hd_arena_finish(&arena);
}

static void a_range_that_cuts_a_bucket_or_leaves_the_layout_is_refused(void **state)
{
	(void)state;
	static const struct { uint32_t first, n; enum hd_err err; } rows[] = {
		{ 1, 3, HD_E_INVAL }, { 0, 3, HD_E_INVAL }, { 0, CHUNKS - 1, HD_E_INVAL }, { 4, 2, HD_E_INVAL },
		{ 0, CHUNKS + 1, HD_E_INVAL }, { 8, 3, HD_E_INVAL }, { 8, 4, HD_E_INVAL }, { 12, 0, HD_E_INVAL },
		{ UINT32_MAX - 3, 4, HD_E_INVAL }, { 8, 2, HD_OK }, { 0, 8, HD_OK }, { 4, CHUNKS - 4, HD_OK },
		{ 4, 0, HD_OK }, { 8, 0, HD_OK },
	};
	struct hd_layout layout;
	struct hd_engine_stage s;
	struct hd_arena arena;

	hd_arena_init(&arena, 0);
	lay_out(&layout, ELEMS, &arena);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct hd_diag diag = { "" };
		CHECK(hd_stage_make(&s, 1, &layout, rows[i].first, rows[i].n, 1, &arena,
			&diag) == rows[i].err,
			"chunks %u + %u: %s", rows[i].first, rows[i].n, diag.text);
		assert_true(!*diag.text == (rows[i].err == HD_OK));
		assert_true(rows[i].err || rows[i].n || (s.len == 0 && s.nbuckets == 0));
	}
	hd_arena_finish(&arena);
}

static void a_pool_grows_and_keeps_what_it_has(void **state)
{
	(void)state;
	enum { BYTES = 1 << 20 };
	const struct hd_device_spec spec = { .nthreads = 1, .kernels = HD_KERNELS_PORTABLE,
		.memory_limit_bytes = 4 * BYTES + BYTES / 2 };
	struct hd_grad_pool pool = { 0 };
	struct hd_diag diag = { "" };
	struct hd_device *device;
	struct hd_arena arena;

	hd_arena_init(&arena, 0);
	assert_int_equal(hd_device_create(&device, "cpu", &spec, &diag), HD_OK);
	for (int round = 0; round < 2; round++) {         /* what is given back can be taken again */
		assert_int_equal(hd_pool_grow(&pool, BYTES, 1, device, &arena, &diag), HD_OK);
		pool.buffer[0][7] = 42;
		float *first = pool.buffer[0];
		assert_int_equal(hd_pool_grow(&pool, BYTES, 3, device, &arena, &diag), HD_OK);
		assert_true(pool.cap == 3 && pool.buffer[0] == first && first[7] == 42);
		assert_true(pool.buffer[1] != pool.buffer[2] && pool.buffer[2] != first);
		assert_int_equal(hd_pool_grow(&pool, BYTES, 2, device, &arena, &diag), HD_OK);
		assert_int_equal(pool.cap, 3);
		assert_int_equal(hd_pool_grow_temp(&pool, BYTES / 4, device, &diag), HD_OK);
		float *temp = pool.temp;
		assert_int_equal(hd_pool_grow_temp(&pool, BYTES / 8, device, &diag), HD_OK);
		assert_true(pool.temp == temp && pool.temp_bytes == BYTES / 4);
		/* no room: what is there stays */
		assert_int_not_equal(hd_pool_grow(&pool, BYTES, 9, device, &arena, &diag), HD_OK);
		assert_true(pool.cap == 4 && pool.buffer[0] == first && first[7] == 42);
		assert_int_not_equal(hd_pool_grow_temp(&pool, 2 * BYTES, device, &diag), HD_OK);
		assert_true(pool.temp == temp && pool.temp_bytes == BYTES / 4);
		hd_pool_give(&pool, BYTES, device);
		assert_true(pool.cap == 0 && pool.temp == NULL && pool.temp_bytes == 0);
		/* all of it came back */
		assert_int_equal(hd_pool_grow_temp(&pool, 4 * BYTES, device, &diag), HD_OK);
		assert_int_not_equal(hd_pool_grow_temp(&pool, 4 * BYTES + BYTES / 4, device, &diag), HD_OK);
		hd_pool_give(&pool, BYTES, device);
		/* the old one goes when there is a larger one */
		for (uint32_t quarters = 4; quarters <= 8; quarters++)
			CHECK(hd_pool_grow_temp(&pool, quarters * (BYTES / 4), device, &diag) == HD_OK, "%s",
				diag.text);
		hd_pool_give(&pool, BYTES, device);
	}
	hd_device_destroy(device);
	hd_arena_finish(&arena);
}

static void what_a_stage_takes_of_a_device_it_gives_back(void **state)
{
	(void)state;
	struct hd_layout layout;
	struct hd_engine_stage s;
	struct hd_device *device;
	struct hd_arena arena;
	struct hd_diag diag = { "" };

	hd_arena_init(&arena, 0);
	lay_out(&layout, ELEMS, &arena);
	const struct hd_device_spec spec = { .nthreads = 1, .kernels = HD_KERNELS_PORTABLE,
		.memory_limit_bytes =
		layout.elems * sizeof(float) + (HD_ZEROS_ELEMS + 4096) * sizeof(float) };
	assert_int_equal(hd_device_create(&device, "cpu", &spec, &diag), HD_OK);
	assert_int_equal(hd_stage_make(&s, 0, &layout, 0, layout.nchunks, 1, &arena, &diag), HD_OK);
	for (int round = 0; round < 2; round++) {
		CHECK(hd_stage_take(&s, &layout, device, &arena, &diag) == HD_OK, "%s", diag.text);
		assert_null(s.sum);
		CHECK(hd_stage_take_sum(&s, device, &diag) == HD_OK, "%s", diag.text);
		float *sum = s.sum;
		assert_non_null(sum);
		assert_int_equal(hd_stage_take_sum(&s, device, &diag), HD_OK);
		assert_ptr_equal(s.sum, sum);
		for (uint32_t i = 0; i < HD_ZEROS_ELEMS; i++)
			assert_true(s.zeros[i] == 0 && !signbit(s.zeros[i]));
		for (uint32_t k = 0; k < 2; k++)
			assert_non_null(s.unit_sumsq[k]);
		hd_stage_give(&s, device);
		assert_true(!s.sum && !s.zeros);
	}
	hd_device_destroy(device);
	hd_arena_finish(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_whole_model_is_a_stage_of_all_that_is_learned),
		cmocka_unit_test(stages_tile_the_model_by_whole_buckets),
		cmocka_unit_test(a_range_that_cuts_a_bucket_or_leaves_the_layout_is_refused),
		cmocka_unit_test(a_pool_grows_and_keeps_what_it_has),
		cmocka_unit_test(what_a_stage_takes_of_a_device_it_gives_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
