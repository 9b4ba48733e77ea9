#include "worker/elastic_int.h"

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

static void wake(void *user) { (void)user; }

/* The first view that a worker has a part of may be one that it refuses: what follows asks nothing of the
 * engine. */
static void a_pass_behind_a_refusal_is_stale(void **state)
{
	static struct hd_elastic e;
	struct hd_clock_sim sim;
	struct hd_elastic_spec spec = { .clock = &sim.clock };
	struct hd_command_done done;

	(void)state;
	hd_clock_sim(&sim, 1000000, 0);
	e.spec = &spec;
	e.unfit = e.computed = e.stale = true;        /* as BEGIN leaves it */
	assert_int_equal(hd_commands_init(&e.commands, wake, NULL, NULL), HD_OK);
	assert_int_equal(hd_commands_give(&e.commands,
		&(struct hd_command){ .kind = HD_COMMAND_COMPUTE, .step = 7 }, NULL), HD_OK);
	assert_int_equal(hd_commands_give(&e.commands, &(struct hd_command){ .kind = HD_COMMAND_QUIT }, NULL),
		HD_OK);
	hd_elastic_compute(&e);
	assert_true(hd_commands_result(&e.commands, &done));
	CHECK(done.err == HD_E_STALE && strstr(done.diag.text, "step 7"), "%s", done.diag.text);
	assert_false(hd_commands_result(&e.commands, &done));
	hd_commands_finish(&e.commands);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_calls_takes_the_address_that_it_can_reach),
		cmocka_unit_test(an_address_is_a_transport_and_its_place),
		cmocka_unit_test(a_realm_is_the_job_s_unless_one_is_given),
		cmocka_unit_test(a_pass_behind_a_refusal_is_stale),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
