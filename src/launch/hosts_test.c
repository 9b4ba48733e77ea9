#include "launch/hosts.h"

#include <string.h>

#include "tests/check.h"

static void hosts_and_their_slots_are_read(void **state)
{
	static const char text[] = "# the lab\nlab1\n\n  lab2 slots=4   # two "
		"cards\r\nme@lab3\tslots=1\n[fd00::1]";
	struct hd_launch_hosts hosts;
	struct hd_arena arena;

	(void)state;
	hd_arena_init(&arena, 0);
	assert_int_equal(hd_launch_hosts_parse(&hosts, "h", text, strlen(text), &arena, NULL), HD_OK);
	assert_int_equal(hosts.n, 4);
	assert_int_equal(hosts.slots, 7);
	assert_string_equal(hosts.at[1].name, "lab2");
	assert_int_equal(hosts.at[1].slots, 4);
	assert_string_equal(hosts.at[2].name, "me@lab3");
	assert_string_equal(hosts.at[3].name, "[fd00::1]");
	hd_arena_finish(&arena);
}

static void what_is_no_host_is_named_with_its_line(void **state)
{
	static const struct { const char *text, *says; } cases[] = {
		{ "", "h: no host" }, { "# none\n", "h: no host" }, { "a\n-oProxyCommand=x\n", "h:2: \"-oProxyCommand=x\"" },
		{ "a;rm\n", "h:1: \"a;rm\"" }, { "-p22\n", "h:1: \"-p22\"" }, { "a slots=0\n", "h:1: \"slots=0\"" }, { "a slots=65\n", "h:1: " },
		{ "a b\n", "h:1: \"b\"" }, { "\n\na slots=2 x\n", "h:3: " }, { "$(x)\n", "h:1: " },
	};
	struct hd_arena arena;

	(void)state;
	hd_arena_init(&arena, 0);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_launch_hosts hosts = { .n = 99 };
		struct hd_diag diag = { "" };
		CHECK(hd_launch_hosts_parse(&hosts, "h", cases[i].text, strlen(cases[i].text), &arena, &diag)
			==
			HD_E_INPUT && hosts.n == 99, "case %zu", i);
		CHECK(!strncmp(diag.text, cases[i].says, strlen(cases[i].says)), "case %zu: %s", i,
			diag.text);
	}
	hd_arena_finish(&arena);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(hosts_and_their_slots_are_read),
		cmocka_unit_test(what_is_no_host_is_named_with_its_line),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
