#include "daemon/pool.h"

#include <string.h>

#include "tests/check.h"

static void pools_are_sorted_and_their_devices_numbered_through(void **state)
{
	struct hd_pools p = { 0 };
	struct hd_fs fs;
	char name[96];
	(void)state;

	hd_fs_real(&fs);
	assert_int_equal(hd_pools_add(&p, "slow:2", NULL), HD_OK);
	assert_int_equal(hd_pools_add(&p, "fast:3:1:0.5", NULL), HD_OK);
	assert_int_equal(hd_pools_open(&p, &fs, NULL), HD_OK);
	hd_pools_begin(&p, "test");
	CHECK(p.ntypes == 2 && p.ndevices == 5 && p.means == HD_POOL_EQUAL, "%u types, %u devices", p.ntypes,
		p.ndevices);
	assert_string_equal(p.type[0].name, "fast");
	assert_true(p.type[0].price_usd_h == 0.5 && p.type[1].speed == 1);
	hd_pools_device(&p, 4, name);
	assert_string_equal(name, "slow-1");
	assert_int_equal(hd_pools_type(&p, 2), 0);
	assert_true(hd_pools_slow(&p, 4) == 1);
	hd_pools_close(&p);
}

/* Where no group can be made the worker waits: by how much slower its type is than a whole core. */
static void without_groups_a_slower_type_waits_by_its_factor(void **state)
{
	struct hd_pools p = { 0 };
	(void)state;

	assert_int_equal(hd_pools_add(&p, "a:1:6", NULL), HD_OK);
	assert_int_equal(hd_pools_add(&p, "b:1:1.5", NULL), HD_OK);
	p.first_device[1] = 1;
	p.first_device[2] = 2;
	p.whole = 6;
	p.means = HD_POOL_SLOW;
	assert_true(hd_pools_slow(&p, 0) == 1 && hd_pools_slow(&p, 1) == 4);
}

static void a_type_below_one_has_a_part_of_a_core_even_if_it_is_the_only_one(void **state)
{
	struct hd_pools p = { 0 };
	struct hd_fs fs;
	(void)state;

	hd_fs_real(&fs);
	assert_int_equal(hd_pools_add(&p, "part:2:0.25", NULL), HD_OK);
	assert_int_equal(hd_pools_open(&p, &fs, NULL), HD_OK);
	p.means = HD_POOL_SLOW;
	assert_true(hd_pools_slow(&p, 1) == 4);
}

static void what_is_no_pool_is_refused_with_what_would_be_right(void **state)
{
	static const char *const bad[] = { "", "a", "a:", "a:0", "a:x", "a:1:", "a:1:0", "a:1:1:", "a:1:1:-1",
		"a:1:1:1:1", "-a:1", "a b:1", "a:257", ":1",
		"a:1:nan" };
	struct hd_pools p = { 0 };
	struct hd_fs fs;
	(void)state;

	hd_fs_real(&fs);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct hd_diag diag = { "" };
		CHECK(hd_pools_add(&p, bad[i], &diag) == HD_E_INVAL && strstr(diag.text, "TYPE:N"),
			"\"%s\": %s", bad[i], diag.text);
	}
	assert_int_equal(p.ntypes, 0);
	assert_int_equal(hd_pools_open(&p, &fs, NULL), HD_E_INVAL);
	assert_int_equal(hd_pools_add(&p, "a:1", NULL), HD_OK);
	assert_int_equal(hd_pools_add(&p, "a:2", NULL), HD_E_INVAL);
	assert_int_equal(hd_pools_add(&p, "b:256", NULL), HD_E_INVAL);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(pools_are_sorted_and_their_devices_numbered_through),
		cmocka_unit_test(without_groups_a_slower_type_waits_by_its_factor),
		cmocka_unit_test(a_type_below_one_has_a_part_of_a_core_even_if_it_is_the_only_one),
		cmocka_unit_test(what_is_no_pool_is_refused_with_what_would_be_right),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
