#include "functions/message.h"

#include <stdio.h>
#include <string.h>

#include "base/philox.h"
#include "tests/check.h"

static struct hd_fn_work *work(void)
{
	static struct hd_fn_work w;

	w = (struct hd_fn_work){ .kernels = "avx2", .proof = hd_hash("p", 1), .rows = 3, .version = 9,
		.seed = 1, .step = 2, .vn = 3, .ntensors = 3, .text = "graph t\n", .text_len = 8 };
	w.tensor[0] = (struct hd_fn_tensor){ .name = "x", .dtype = HD_F32, .rank = 2, .dim = { 3, 4 } };
	w.tensor[1] = (struct hd_fn_tensor){ .name = "w", .dtype = HD_F32, .rank = 2, .dim = { 4, 2 },
		.digest = hd_hash("w", 1) };
	w.tensor[2] = (struct hd_fn_tensor){ .name = "y", .is_output = true, .dtype = HD_F32, .rank = 2,
		.dim = { 3, 2 } };
	return &w;
}

static void frames_read_back_and_no_changed_bit_passes(void **state)
{
	const uint8_t payload[24] = "it is so and not so";
	uint8_t bytes[HD_FN_FRAME];
	struct hd_fn_frame f;

	(void)state;
	hd_fn_frame_put(HD_FN_COMMIT, payload, 24, bytes);
	assert_int_equal(hd_fn_frame_get(bytes, &f, NULL), HD_OK);
	assert_int_equal(f.type, HD_FN_COMMIT);
	assert_int_equal(f.len, 24);
	assert_int_equal(hd_fn_frame_check(&f, payload, NULL), HD_OK);
	for (size_t bit = 0; bit < 8 * sizeof bytes; bit++) {
		uint8_t other[HD_FN_FRAME];
		memcpy(other, bytes, sizeof other);
		other[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_int_equal(hd_fn_frame_get(other, &f, NULL), HD_E_PROTOCOL);
	}
	for (size_t bit = 0; bit < 8 * sizeof payload; bit++) {
		uint8_t other[24];
		memcpy(other, payload, sizeof other);
		other[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_int_equal(hd_fn_frame_check(&f, other, NULL), HD_E_PROTOCOL);
	}
	hd_fn_frame_put(HD_FN_COMMIT, payload, 23, bytes);
	assert_int_equal(hd_fn_frame_get(bytes, &f, NULL), HD_E_PROTOCOL);
	hd_fn_frame_put((enum hd_fn_frame_type)7, payload, 24, bytes);
	assert_int_equal(hd_fn_frame_get(bytes, &f, NULL), HD_E_PROTOCOL);
}

static void a_hello_reads_back_whole_or_not(void **state)
{
	struct hd_fn_hello h = { .task = hd_hash("t", 1), .attempt = 3, .request = "abc-1", .nhave = 2,
		.have = { hd_hash("a", 1), hd_hash("b", 1) } }, back = { .attempt = 0 };
	char bytes[HD_FN_HELLO_BYTES + 16];
	struct hd_text text;

	(void)state;
	hd_text_fixed(&text, bytes, sizeof bytes);
	hd_fn_hello_put(&h, &text);
	assert_int_equal(hd_fn_hello_get((uint8_t *)text.at, text.len, &back, NULL), HD_OK);
	assert_memory_equal(&back, &h, sizeof h);
	for (size_t n = 0; n < text.len; n++)
		assert_int_equal(hd_fn_hello_get((uint8_t *)text.at, n, &back, NULL), HD_E_PROTOCOL);
	assert_int_equal(hd_fn_hello_get((uint8_t *)text.at, text.len + 1, &back, NULL), HD_E_PROTOCOL);
	h.nhave = HD_FN_HAVE;
	memset(h.request, 'r', sizeof h.request - 1);
	hd_text_fixed(&text, bytes, sizeof bytes);
	hd_fn_hello_put(&h, &text);
	assert_true(!text.full && text.len <= HD_FN_HELLO_BYTES);
}

static void a_work_reads_back_whole_or_not(void **state)
{
	static struct hd_fn_work back;
	struct hd_fn_work *w = work();
	char bytes[1000];
	struct hd_text text;

	(void)state;
	hd_text_fixed(&text, bytes, sizeof bytes);
	hd_fn_work_put(w, &text);
	assert_int_equal(hd_fn_work_get((uint8_t *)text.at, text.len, &back, NULL), HD_OK);
	assert_string_equal(back.kernels, "avx2");
	assert_int_equal(back.rows, 3);
	assert_int_equal(back.version, 9);
	assert_int_equal(back.seed, 1);
	assert_int_equal(back.step, 2);
	assert_int_equal(back.vn, 3);
	assert_int_equal(back.ntensors, 3);
	for (uint32_t i = 0; i < 3; i++) {
		assert_string_equal(back.tensor[i].name, w->tensor[i].name);
		assert_int_equal(back.tensor[i].is_output, w->tensor[i].is_output);
		assert_int_equal(hd_fn_tensor_bytes(&back.tensor[i]), hd_fn_tensor_bytes(&w->tensor[i]));
		assert_true(hd_hash_same(back.tensor[i].digest, w->tensor[i].digest));
	}
	assert_int_equal(back.text_len, 8);
	assert_memory_equal(back.text, "graph t\n", 8);
	for (size_t n = 0; n < text.len; n++)
		assert_int_equal(hd_fn_work_get((uint8_t *)text.at, n, &back, NULL), HD_E_PROTOCOL);
	assert_int_equal(hd_fn_work_get((uint8_t *)text.at, text.len + 1, &back, NULL), HD_E_PROTOCOL);
	/* tensors that are none */
	for (int k = 0; k < 5; k++) {
		struct hd_fn_tensor *t = &work()->tensor[0];
		if (k == 0) t->dim[1] = 0;
		if (k == 1) t->dim[1] = INT64_C(1) << 31;
		if (k == 2) t->dtype = 99;
		if (k == 3) t->name[0] = '\0';
		if (k == 4) t->dim[1] = HD_FN_DATA_BYTES / 4 + 1;
		hd_text_fixed(&text, bytes, sizeof bytes);
		hd_fn_work_put(w, &text);
		CHECK(hd_fn_work_get((uint8_t *)text.at, text.len, &back, NULL) == HD_E_PROTOCOL, "%d", k);
	}
}

/* Inputs 0 and 1 in pieces of any size arrive as they were; rows that are not due never do. */
static void rows_are_taken_once_and_in_order(void **state)
{
	float x[12], w[8], to_x[12], to_w[8];
	void *to[3] = { to_x, to_w, NULL };
	struct hd_fn_intake in;

	(void)state;
	for (int i = 0; i < 12; i++)
		x[i] = (float)i;
	for (int i = 0; i < 8; i++)
		w[i] = (float)-i;
	for (uint32_t piece = 1; piece <= 4; piece++) {
		hd_fn_intake_begin(&in, work(), to);
		for (uint32_t t = 0; t < 2; t++)
			for (uint32_t r = 0, rows = t ? 4 : 3; r < rows; r += piece) {
				uint32_t n = rows - r < piece ? rows - r : piece, bytes = t ? 8 : 16;
				const uint8_t *from = (const uint8_t *)(t ? w : x) + r * bytes;
				struct hd_fn_rows due = { t, r, n, from, n * bytes }, bad[5] = { due, due,
					due, due, due };
				bad[0].tensor ^= 1;
				bad[1].first++;
				bad[2].n = 0;
				bad[3].len--;
				bad[4].n = rows - r + 1;
				bad[4].len = bad[4].n * bytes;
				for (size_t i = 0; i < 5; i++)
					CHECK(hd_fn_intake_take(&in, &bad[i], NULL) == HD_E_PROTOCOL, "%zu",
						i);
				assert_false(hd_fn_intake_done(&in));
				assert_int_equal(hd_fn_intake_take(&in, &due, NULL), HD_OK);
			}
		assert_true(hd_fn_intake_done(&in));
		const struct hd_fn_rows more = { 2, 0, 3, (const uint8_t *)x, 24 };
		assert_int_equal(hd_fn_intake_take(&in, &more, NULL), HD_E_PROTOCOL);
		assert_memory_equal(to_x, x, sizeof x);
		assert_memory_equal(to_w, w, sizeof w);
	}
}

static void replies_and_commits_read_back(void **state)
{
	struct hd_fn_commit c = { hd_hash("c", 1), 12345 }, back;
	enum hd_fn_reply reply;
	uint8_t bytes[24];

	(void)state;
	hd_fn_commit_put(&c, bytes);
	assert_int_equal(hd_fn_commit_get(bytes, 24, &back, NULL), HD_OK);
	assert_memory_equal(&back, &c, sizeof c);
	assert_int_equal(hd_fn_commit_get(bytes, 23, &back, NULL), HD_E_PROTOCOL);
	for (unsigned v = 0; v < 256; v++) {
		bytes[0] = (uint8_t)v;
		assert_int_equal(hd_fn_reply_get(bytes, 1, &reply, NULL),
			v >= HD_FN_ACCEPTED && v <= HD_FN_REFUSED ? HD_OK : HD_E_PROTOCOL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_read_back_and_no_changed_bit_passes),
		cmocka_unit_test(a_hello_reads_back_whole_or_not),
		cmocka_unit_test(a_work_reads_back_whole_or_not),
		cmocka_unit_test(rows_are_taken_once_and_in_order),
		cmocka_unit_test(replies_and_commits_read_back),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
