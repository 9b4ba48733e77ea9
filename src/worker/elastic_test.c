#include "worker/elastic.h"

#include <string.h>

#include "tests/check.h"

static void who_calls_takes_the_address_that_it_can_reach(void **state)
{
	static const struct { const char *answered, *here, *remote; } cases[] = {
		{ "shm unix:/run/x/w1.sock", "shm unix:/run/x/w1.sock", "shm unix:/run/x/w1.sock" },
		{ "tls tcp:10.0.0.1:7000", "tls tcp:10.0.0.1:7000", "tls tcp:10.0.0.1:7000" },
		{ "tls tcp:10.0.0.1:7000;shm unix:/run/x/w1.sock", "shm unix:/run/x/w1.sock", "tls tcp:10.0.0.1:7000" },
		{ "tcp tcp:[fd00::1]:7;shm unix:/a;b/w1.sock", "shm unix:/a;b/w1.sock", "tcp tcp:[fd00::1]:7" },
		{ "shm unix:/a;b/w1.sock", "shm unix:/a;b/w1.sock", "shm unix:/a;b/w1.sock" },
	};
	char one[HD_ELASTIC_ADDR];

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_string_equal(hd_elastic_reach(cases[i].answered, false, one), cases[i].here);
		assert_string_equal(hd_elastic_reach(cases[i].answered, true, one), cases[i].remote);
	}
}

static void an_address_is_a_transport_and_its_place(void **state)
{
	static const char *const bad[] = { "", "tls", "tls ", " tcp:1", "a-transport-of-long-name tcp:1" };
	char transport[16], addr[HD_ADDR_CAP];
	struct hd_diag diag = { "" };

	(void)state;
	assert_int_equal(hd_elastic_address("shm unix:/a b/s", transport, addr, &diag), HD_OK);
	assert_string_equal(transport, "shm");
	assert_string_equal(addr, "unix:/a b/s");
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		CHECK(hd_elastic_address(bad[i], transport, addr, NULL) == HD_E_INVAL, "\"%s\"", bad[i]);
}

static void a_realm_is_the_job_s_unless_one_is_given(void **state)
{
	static const struct hd_hash none = { { 0 } }, job = { { 1 } }, key = { { 2 } };

	(void)state;
	assert_true(hd_hash_same(hd_elastic_realm(none, job), job));
	assert_true(hd_hash_same(hd_elastic_realm(key, job), key));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_calls_takes_the_address_that_it_can_reach),
		cmocka_unit_test(an_address_is_a_transport_and_its_place),
		cmocka_unit_test(a_realm_is_the_job_s_unless_one_is_given),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
