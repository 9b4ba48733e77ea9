#include "base/grow.h"

#include "base/alloc.h"
#include "tests/check.h"

static void a_list_keeps_what_it_held(void **state)
{
	uint64_t *list = NULL;
	uint32_t cap = 0;

	(void)state;
	for (uint64_t i = 0; i < 1000; i++) {
		assert_int_equal(hd_grow(&list, &cap, i + 1, sizeof *list, "numbers", NULL), HD_OK);
		assert_true(cap > i);
		list[i] = i * i;
	}
	for (uint64_t i = 0; i < 1000; i++)
		assert_int_equal(list[i], i * i);
	assert_int_equal(cap, 1024);
	hd_free(list);
}

static void without_memory_it_is_as_it_was(void **state)
{
	struct hd_diag diag = { "" };
	uint32_t cap = 0, *list = NULL;

	(void)state;
	assert_int_equal(hd_grow(&list, &cap, 16, sizeof *list, "numbers", &diag), HD_OK);
	list[15] = 7;
	hd_alloc_arm(1);
	assert_int_equal(hd_grow(&list, &cap, 17, sizeof *list, "numbers", &diag), HD_E_NOMEM);
	hd_alloc_arm(0);
	assert_string_equal(diag.text, "no memory for 17 numbers");
	assert_int_equal(hd_grow(&list, &cap, UINT64_C(1) << 63, sizeof *list, "numbers", &diag), HD_E_NOMEM);
	assert_int_equal(cap, 16);
	assert_int_equal(list[15], 7);
	hd_free(list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_list_keeps_what_it_held),
		cmocka_unit_test(without_memory_it_is_as_it_was),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
