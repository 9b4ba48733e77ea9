#include "engine/testing.h"

/* A layout of what the store looks at: 40 learned elements, 24 frozen ones behind them, 16 of statistics. */
static const struct hd_layout layout = { .elems = 40, .held_elems = 64, .buffer_elems = 16 };

struct kept_values { struct hd_device *device; struct hd_param_store *store; };

static struct kept_values open_store(const struct hd_layout *of, uint32_t nslots, uint32_t nearlier)
{
	const struct hd_device_spec spec = { .nthreads = 1, .kernels = HD_KERNELS_PORTABLE };
	struct hd_diag diag = { "" };
	struct kept_values h;

	CHECK(hd_device_create(&h.device, "cpu", &spec, &diag) == HD_OK, "%s", diag.text);
	CHECK(hd_param_store_create(&h.store, of, (struct hd_store_shape){ nslots, nearlier },
		h.device, &diag) == HD_OK, "%s", diag.text);
	return h;
}

static void close_store(struct kept_values *h)
{
	hd_param_store_destroy(h->store);
	hd_device_destroy(h->device);
}

static void a_range_ends_where_its_vector_ends(void **state)
{
	(void)state;
	static const struct { enum hd_vector vector; uint64_t elems[4]; } rows[] = { /* by number of slots */
		{ HD_VEC_PARAMS, { 64, 64, 64, 64 } }, { HD_VEC_SLOT0, { 0, 40, 40, 40 } },
		{ HD_VEC_SLOT1, { 0, 0, 40, 40 } }, { HD_VEC_SLOT2, { 0, 0, 0, 40 } },
		{ HD_VEC_BUFFERS, { 16, 16, 16, 16 } },
	};

	for (uint32_t nslots = 0; nslots <= HD_MAX_SLOTS; nslots++) {
		const struct hd_store_shape shape = { nslots, 0 };
		struct kept_values h = open_store(&layout, nslots, 0);
		assert_int_equal(hd_param_store_nslots(h.store), nslots);
		for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
			const enum hd_vector v = rows[i].vector;
			const uint64_t n = rows[i].elems[nslots];
			assert_int_equal(hd_vector_elems(&layout, shape, v), n);
			assert_int_equal(hd_param_store_elems(h.store, v), n);
			assert_true(hd_param_store_has(h.store, v, 0, n));
			assert_true(hd_param_store_has(h.store, v, n, 0));
			assert_false(hd_param_store_has(h.store, v, 0, n + 1));
			assert_false(hd_param_store_has(h.store, v, n, 1));
			assert_false(hd_param_store_has(h.store, v, n + 1, 0));
			assert_true(n == 0 || hd_param_store_has(h.store, v, n - 1, 1));
			assert_false(n && hd_param_store_has(h.store, v, n - 1, 2));
			/* a sum that wraps is beyond the end as well */
			assert_false(hd_param_store_has(h.store, v, 1, UINT64_MAX));
			assert_false(hd_param_store_has(h.store, v, UINT64_MAX, 2));
		}
		assert_false(hd_param_store_has(h.store, HD_VECS, 0, 0));
		close_store(&h);
	}
}

static void what_is_written_is_read_and_nothing_beside_it(void **state)
{
	(void)state;
	struct kept_values h = open_store(&layout, 3, 2);

	for (int v = 0; v < HD_VEC_EARLIER + 2; v++) {
		const uint64_t n = hd_param_store_elems(h.store, (enum hd_vector)v);
		const uint64_t from[] = { 0, 3, n - 2 };
		for (size_t k = 0; k < sizeof from / sizeof *from; k++) {
			/* of any alignment, as bytes of a message are */
			float in[2] = { 1.5f + (float)v, -0.0f }, all[64], was[64];
			uint8_t bytes[1 + sizeof in], out[1 + sizeof in];
			memcpy(bytes + 1, in, sizeof in);
			hd_param_store_read(h.store, (enum hd_vector)v, 0, n, was);
			hd_param_store_write(h.store, (enum hd_vector)v, from[k], 2, bytes + 1);
			hd_param_store_read(h.store, (enum hd_vector)v, from[k], 2, out + 1);
			assert_memory_equal(out + 1, in, sizeof in);
			hd_param_store_read(h.store, (enum hd_vector)v, 0, n, all);
			memcpy(was + from[k], in, sizeof in);
			assert_memory_equal(all, was, n * sizeof *all);
			assert_true(hd_hash_same(hd_param_store_hash(h.store, (enum hd_vector)v, from[k], 2),
				hd_hash(in, sizeof in)));
		}
	}
	/* the vectors are apart: the last one written left the first as it was */
	float first;
	hd_param_store_read(h.store, HD_VEC_PARAMS, 0, 1, &first);
	assert_true(first == 1.5f + (float)HD_VEC_PARAMS);
	/* a range of nothing touches nothing, also where there is no memory */
	hd_param_store_write(h.store, HD_VEC_PARAMS, 64, 0, NULL);
	hd_param_store_read(h.store, HD_VEC_PARAMS, 64, 0, NULL);
	close_store(&h);
	h = open_store(&layout, 0, 0);
	hd_param_store_drop(h.store, HD_VEC_SLOT0, 0, 0);
	assert_null(hd_param_store_at(h.store, HD_VEC_SLOT1, 0, 0));
	close_store(&h);
}

static void kernels_get_the_addresses_of_what_is_read(void **state)
{
	(void)state;
	static const float x[2] = { 4, 5 };

	for (uint32_t nslots = 0; nslots <= HD_MAX_SLOTS; nslots++) {
		struct kept_values h = open_store(&layout, nslots, 0);
		struct hd_bind bind = { .rows = 3 };
		float *old = (float *)(uintptr_t)x;
		struct hd_update u = { .kind = 1, .grad = x, .slot = { old, old, old } };
		hd_param_store_write(h.store, HD_VEC_PARAMS, 7, 2, x);
		hd_param_store_write(h.store, HD_VEC_BUFFERS, 14, 2, x);
		hd_param_store_bind(h.store, &bind);
		assert_memory_equal(bind.params + 7, x, sizeof x);
		assert_memory_equal(bind.buffers + 14, x, sizeof x);
		assert_int_equal(bind.rows, 3);
		hd_param_store_span(h.store, 7, 33, &u);          /* up to the last learned one */
		assert_ptr_equal(u.param, bind.params + 7);
		assert_int_equal(u.len, 33);
		for (uint32_t k = 0; k < HD_MAX_SLOTS; k++)
			assert_ptr_equal(u.slot[k], k < nslots ?
				hd_param_store_at(h.store, hd_vec_slot(k), 7, 33) : NULL);
		assert_true(u.kind == 1 && u.grad == x);
		close_store(&h);
	}
}

/* Rule 6: of parameters that are 3, 1 and 0 steps late. */
static void a_step_reads_what_so_many_steps_ago_was_the_newest(void **state)
{
	(void)state;
	static const struct { uint64_t at, len; uint32_t delay; } range[] = {
		{ 0, 5, 3 }, { 5, 1, 1 }, { 6, 34, 0 }, { 40, 24, 0 } };
	struct kept_values h = open_store(&layout, 1, 3);
	struct hd_bind bind = { .rows = 0 };

	for (int t = 0; t < 9; t++) {
		for (size_t k = 0; k < 4; k++) {
			float x[64];
			for (int i = 0; i < 64; i++)
				x[i] = (float)(t + 1);
			if (range[k].delay)
				hd_param_store_age(h.store, range[k].at, range[k].len, range[k].delay);
			hd_param_store_write(h.store, HD_VEC_PARAMS, range[k].at, range[k].len, x);
			if (!range[k].delay)
				hd_param_store_follow(h.store, range[k].at, range[k].len);
			hd_param_store_bind_step(h.store, &bind);
			for (uint64_t i = range[k].at; i < range[k].at + range[k].len; i++) {
				const int reads = t + 1 - (int)range[k].delay;
				assert_true(bind.params[i] == (float)(reads > 0 ? reads : 0));
			}
			hd_param_store_bind(h.store, &bind);
			assert_true(bind.params[range[k].at] == (float)(t + 1));
		}
	}
	close_store(&h);
	h = open_store(&layout, 1, 0);    /* nothing is late: one vector for both */
	hd_param_store_bind_step(h.store, &bind);
	assert_ptr_equal(bind.params, hd_param_store_at(h.store, HD_VEC_PARAMS, 0, 64));
	close_store(&h);
}

static void an_address_is_found_in_its_vector_alone(void **state)
{
	(void)state;
	struct kept_values h = open_store(&layout, 3, 2);
	enum hd_vector vector;
	uint64_t at;

	for (int v = 0; v < HD_VEC_EARLIER + 2; v++) {
		const uint64_t n = hd_param_store_elems(h.store, (enum hd_vector)v);
		const float *begin = hd_param_store_at(h.store, (enum hd_vector)v, 0, n);
		for (uint64_t i = 0; i < n; i++) {
			assert_true(hd_param_store_find(h.store, begin + i, &vector, &at));
			assert_true(vector == (enum hd_vector)v && at == i);
		}
		assert_false(hd_param_store_find(h.store, (const uint8_t *)begin + 1, &vector, &at));
		assert_false(hd_param_store_find(h.store, begin + n, &vector, &at) &&
			vector == (enum hd_vector)v);
	}
	assert_false(hd_param_store_find(h.store, &h, &vector, &at));
	assert_false(hd_param_store_find(h.store, NULL, &vector, &at));
	close_store(&h);
}

static void dropped_pages_read_as_zero_and_neighbours_stay(void **state)
{
	(void)state;
	enum { N = 1 << 16, FROM = 1 << 13, LEN = 1 << 15 };
	const struct hd_layout large = { .elems = N, .held_elems = N, .buffer_elems = 16 };
	struct kept_values h = open_store(&large, 1, 0);
	const float x = 3;
	float y;

	for (uint64_t i = 0; i < N; i++) {
		hd_param_store_write(h.store, HD_VEC_SLOT0, i, 1, &x);
		hd_param_store_write(h.store, HD_VEC_PARAMS, i, 1, &x);
	}
	hd_param_store_drop(h.store, HD_VEC_SLOT0, FROM, LEN);
	for (uint64_t i = 0; i < N; i++) {
		hd_param_store_read(h.store, HD_VEC_SLOT0, i, 1, &y);
		if (i < FROM || i >= FROM + LEN)
			assert_true(y == x);
		else if (i == FROM + LEN / 2)
			assert_true(y == 0);
		hd_param_store_read(h.store, HD_VEC_PARAMS, i, 1, &y);
		assert_true(y == x);
	}
	close_store(&h);
}

/* A device that has no room for all of it gets back what it gave. */
static void what_does_not_fit_is_not_taken_in_part(void **state)
{
	(void)state;
	enum { N = 1 << 18, BYTES = N * sizeof(float) };
	const struct hd_layout large = { .elems = N, .held_elems = N, .buffer_elems = 16 };
	const struct hd_device_spec spec = { .nthreads = 1, .kernels = HD_KERNELS_PORTABLE,
		.memory_limit_bytes = 2 * BYTES + BYTES / 2 };
	struct hd_diag diag = { "" };
	struct hd_device *device;
	struct hd_param_store *store = NULL;

	assert_int_equal(hd_device_create(&device, "cpu", &spec, &diag), HD_OK);
	for (uint32_t i = 0; i < 4; i++) {
		const struct hd_store_shape two = { i % 2 ? 1 : 2, i % 2 }, one = { !(i % 2), i % 2 };
		diag.text[0] = 0;
		assert_int_not_equal(hd_param_store_create(&store, &large, two, device, &diag), HD_OK);
		assert_null(store);
		assert_true(*diag.text);
		CHECK(hd_param_store_create(&store, &large, one, device, &diag) == HD_OK, "%s", diag.text);
		hd_param_store_destroy(store);
		store = NULL;
	}
	hd_param_store_destroy(NULL);
	hd_device_destroy(device);
}

/* The version follows the commit: not a step that was skipped, not one that was begun and abandoned. */
static void the_version_is_the_number_of_updates(void **state)
{
	(void)state;
	struct hd_rig rig;
	struct hd_rig_bytes bytes;
	struct hd_arena arena;

	hd_arena_init(&arena, 0);
	hd_rig_open(&rig, hd_rig_mlp, 8, 4, NULL, 2);
	const struct hd_param_store *store = rig.worker->store;
	assert_int_equal(hd_param_store_version(store), 0);
	(void)hd_rig_step(&rig);
	assert_int_equal(hd_param_store_version(store), 1);
	hd_rig_copy(&rig, &bytes, &arena);
	assert_int_equal(hd_dist_begin(rig.worker, false, NULL), HD_OK);
	hd_dist_abandon(rig.worker);
	assert_int_equal(hd_param_store_version(store), 1);
	(void)hd_rig_step(&rig);
	(void)hd_rig_step(&rig);
	assert_int_equal(hd_param_store_version(store), 3);
	/* state from outside brings its own */
	hd_rig_paste(&rig, &bytes, HD_NONE);
	assert_int_equal(hd_param_store_version(store), 1);
	(void)hd_rig_step(&rig);
	assert_int_equal(hd_param_store_version(store), 2);
	hd_rig_close(&rig);
	hd_arena_finish(&arena);
}

static void means_and_parameters_change_places_and_frozen_ones_stay(void **state)
{
	struct kept_values h = open_store(&layout, 1, 0);

	(void)state;
	for (uint64_t i = 0; i < 64; i++) {
		const float x = (float)i, y = (float)(100 + i);
		hd_param_store_write(h.store, HD_VEC_PARAMS, i, 1, &x);
		if (i < 40)
			hd_param_store_write(h.store, HD_VEC_SLOT0, i, 1, &y);
	}
	hd_param_store_swap(h.store, HD_VEC_SLOT0);
	for (uint64_t i = 0; i < 64; i++) {
		assert_true(*hd_param_store_at(h.store, HD_VEC_PARAMS, i, 1) == (float)(i < 40 ? 100 + i :
			i));
		assert_true(i >= 40 || *hd_param_store_at(h.store, HD_VEC_SLOT0, i, 1) == (float)i);
	}
	close_store(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_range_ends_where_its_vector_ends),
		cmocka_unit_test(what_is_written_is_read_and_nothing_beside_it),
		cmocka_unit_test(kernels_get_the_addresses_of_what_is_read),
		cmocka_unit_test(a_step_reads_what_so_many_steps_ago_was_the_newest),
		cmocka_unit_test(an_address_is_found_in_its_vector_alone),
		cmocka_unit_test(dropped_pages_read_as_zero_and_neighbours_stay),
		cmocka_unit_test(what_does_not_fit_is_not_taken_in_part),
		cmocka_unit_test(the_version_is_the_number_of_updates),
		cmocka_unit_test(means_and_parameters_change_places_and_frozen_ones_stay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
