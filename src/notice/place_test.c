#include "notice/place.h"

#include "tests/check.h"

static void a_base_address_is_taken_apart(void **state)
{
	static const struct { const char *base, *addr, *path; } row[] = {
		{ "http://169.254.169.254", "tcp:169.254.169.254:80", "" },
		{ "http://127.0.0.1:8080/n3/", "tcp:127.0.0.1:8080", "/n3" },
		{ "http://[fd00:ec2::254]", "tcp:[fd00:ec2::254]:80", "" },
		{ "http://[::1]:9/w{pid}x", "tcp:[::1]:9", "/w4711x" },
		{ "http://1.2.3.4/{pid}", "tcp:1.2.3.4:80", "/4711" },
	};
	struct hd_notice_place place;

	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		CHECK(hd_notice_place(row[i].base, 4711, &place, NULL) == HD_OK, "%s", row[i].base);
		assert_string_equal(place.addr, row[i].addr);
		assert_string_equal(place.host, row[i].addr + 4);
		assert_string_equal(place.path, row[i].path);
	}
}

static void what_is_no_base_address_is_refused_with_the_reason(void **state)
{
	static const char *const bad[] = { "", "169.254.169.254", "https://1.2.3.4", "http://", "http:///x",
		"http://metadata.google.internal", "http://1.2.3.4:", "http://1.2.3.4:0",
		"http://1.2.3.4:65536",
		"http://1.2.3.4:80x", "http://1.2.3.4:123456789", "http://[::1", "http://[::1]8",
		"http://[]:80",
		"http://1.2.3.4/a b", "http://1.2.3.4/{host}", "http://1.2.3.4/a?b", "http://1.2.3.4/\x80",
		("http://1.2.3.4/0123456789012345678901234567890123456789012345678901234567890123456789"
		"0123456789012345678901234567890123456789012345678901234567890123456789") };
	struct hd_notice_place place;

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct hd_diag diag = { "" };
		CHECK(hd_notice_place(bad[i], 1, &place, &diag) == HD_E_INVAL && diag.text[0], "\"%s\"",
			bad[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_base_address_is_taken_apart),
		cmocka_unit_test(what_is_no_base_address_is_refused_with_the_reason),
	};
	return cmocka_run_group_tests_name("place", tests, NULL, NULL);
}
