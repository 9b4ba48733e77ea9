#include "worker/later.h"

#include <string.h>

#include "tests/check.h"

static uint8_t bytes[HD_LATER_BYTES];

static bool keep(struct hd_later *l, uint64_t step, uint32_t len, int64_t now_ns)
{
	for (uint32_t i = 0; i < len; i++)
		bytes[i] = (uint8_t)(step * 31 + i);
	return hd_later_keep(l, &(struct hd_later_message){ step, (uint32_t)step % 7, len, bytes }, now_ns);
}

/* Takes all: steps from `first` on, of those lengths. */
static uint64_t taken(struct hd_later *l, uint64_t first, const uint32_t *len, int64_t now_ns)
{
	struct hd_later_message m;
	uint64_t n = 0;

	for (; hd_later_take(l, &m, now_ns); n++) {
		assert_true(m.step == first + n && m.id == (uint32_t)m.step % 7 && m.len == len[n]);
		for (uint32_t i = 0; i < m.len; i++)
			assert_int_equal(m.bytes[i], (uint8_t)(m.step * 31 + i));
	}
	return n;
}

static void what_is_kept_comes_out_in_order_when_it_is_due(void **state)
{
	const uint32_t len[] = { 3, 0, 100 };
	struct hd_later l;

	(void)state;
	assert_int_equal(hd_later_init(&l, NULL), HD_OK);
	assert_false(keep(&l, 0, 3, 0));                 /* nothing was said yet: at once */
	assert_true(hd_later_due_ns(&l, 0) == INT64_MAX);
	assert_int_equal(taken(&l, 0, len, 0), 0);
	/* a look is due even if nothing comes: it is known before whether something will */
	assert_true(hd_later_due_ns(&l, 5) == HD_LATER_NS);
	for (uint32_t i = 0; i < 3; i++)
		assert_true(keep(&l, 1 + i, len[i], HD_LATER_NS - 1));
	assert_false(keep(&l, 4, 1, HD_LATER_NS));
	assert_true(hd_later_due_ns(&l, HD_LATER_NS * 2) == HD_LATER_NS);
	assert_int_equal(taken(&l, 1, len, HD_LATER_NS), 3);
	assert_int_equal(taken(&l, 1, len, HD_LATER_NS), 0);
	assert_true(keep(&l, 4, 1, HD_LATER_NS * 2 - 1));
	hd_later_drop(&l);
	assert_int_equal(taken(&l, 1, len, HD_LATER_NS * 3), 0);
	assert_true(hd_later_due_ns(&l, HD_LATER_NS * 4) == INT64_MAX);
	hd_later_finish(&l);
}

static void what_has_no_space_is_not_kept(void **state)
{
	static uint32_t len[4096];
	struct hd_later l;
	uint64_t n = 0;

	(void)state;
	assert_int_equal(hd_later_init(&l, NULL), HD_OK);
	assert_int_equal(taken(&l, 0, len, 0), 0);
	assert_false(keep(&l, 0, HD_LATER_BYTES, 1));
	for (len[n] = 300; keep(&l, n, len[n], 1); len[n] = 300 + (uint32_t)n % 5)
		n++;
	assert_true(n > HD_LATER_BYTES / 330 && n < HD_LATER_BYTES / 300);
	assert_int_equal(taken(&l, 0, len, 1), n);
	assert_true(keep(&l, n, 300, 1));
	hd_later_finish(&l);
	assert_false(keep(&l, n, 1, 1));                 /* finished: as one that was never made */
	assert_true(hd_later_due_ns(&l, 1) == INT64_MAX);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_kept_comes_out_in_order_when_it_is_due),
		cmocka_unit_test(what_has_no_space_is_not_kept),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
