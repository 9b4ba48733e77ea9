#include "cost/topology.h"

#include <string.h>

#include "tests/check.h"

static struct hd_arena arena;

static enum hd_err parse(struct hd_cluster *c, const char *text, struct hd_diag *diag)
{
	*diag = (struct hd_diag){ "" };
	return hd_cluster_parse(c, text, strlen(text), "c.yaml", &arena, diag);
}

static const char two_kinds[] =
	"kinds:\n"
	"  fast: {speed: 2, memory: 16GiB}\n"
	"  slow: {speed: 0.5}\n"
	"levels:\n"
	"  - {name: server, components: 2, bytes_per_s: 12e9, latency_ns: 5000}\n"
	"  - {name: rack, components: 3, bytes_per_s: 1.25e9}\n"
	"devices: [{kind: fast, count: 4}, {kind: slow, count: 2}]\n";

static void a_file_becomes_kinds_levels_and_devices(void **state)
{
	struct hd_cluster c;
	struct hd_diag diag;

	(void)state;
	assert_int_equal(parse(&c, two_kinds, &diag), HD_OK);
	assert_int_equal(c.ndevices, 6);
	assert_int_equal(c.nkinds, 2);
	assert_int_equal(c.nlevels, 2);
	assert_true(c.kind[0].speed == 2.0 && c.kind[1].speed == 0.5);
	assert_int_equal(c.kind[0].memory, INT64_C(16) << 30);
	assert_int_equal(c.kind[1].memory, 0);
	assert_true(c.level[0].bytes_per_s == 12e9 && c.level[1].bytes_per_s == 1.25e9);
	assert_int_equal(c.level[0].latency_ps, 5000000);
	assert_int_equal(c.level[1].latency_ps, 0);
	for (uint32_t d = 0; d < 6; d++)
		assert_string_equal(hd_cluster_kind_of(&c, d)->name, d < 4 ? "fast" : "slow");
}

static void printing_and_reading_come_back_to_the_same_bytes(void **state)
{
	struct hd_cluster c, again;
	struct hd_diag diag;
	struct hd_text one, two;

	(void)state;
	assert_int_equal(parse(&c, two_kinds, &diag), HD_OK);
	hd_text_init(&one, &arena);
	hd_text_init(&two, &arena);
	hd_cluster_print(&c, &one);
	CHECK(parse(&again, one.at, &diag) == HD_OK, "%s", diag.text);
	hd_cluster_print(&again, &two);
	assert_string_equal(one.at, two.at);
	assert_int_equal(memcmp(c.device_kind, again.device_kind, 6 * sizeof *c.device_kind), 0);
	assert_true(again.level[0].latency_ps == c.level[0].latency_ps &&
		again.kind[0].memory == c.kind[0].memory);
}

/* Said again in words: the innermost level whose component numbers agree. */
static void devices_talk_over_the_innermost_level_that_holds_both(void **state)
{
	static const struct hd_cluster_level level[3] = { { "a", 3, 1e9, 0 }, { "b", 2, 1e8, 0 },
		{ "c", 4, 1e7, 0 } };
	struct hd_cluster c;

	(void)state;
	assert_int_equal(hd_cluster_make(&c, level, 3, (struct hd_cluster_kind){ "x", 1, 0 }, &arena, NULL),
		HD_OK);
	assert_int_equal(c.ndevices, 24);
	for (uint32_t a = 0; a < 24; a++)
		for (uint32_t b = 0; b < 24; b++) {
			uint32_t want = a / 3 == b / 3 ? 0 : a / 6 == b / 6 ? 1 : 2;
			if (a != b)
				assert_int_equal(hd_cluster_between(&c, a, b), want);
		}
	assert_int_equal(hd_cluster_span(&c, 0, 3), 0);
	assert_int_equal(hd_cluster_span(&c, 0, 4), 1);
	assert_int_equal(hd_cluster_span(&c, 5, 2), 2);
}

#define LEVEL "levels: [{name: l, components: 2, bytes_per_s: 1e9}]\n"

static const struct { const char *text, *says; } bad[] = {
	{ "", "c.yaml:1:1: " },
	{ "kinds: {a: {}}\n", "c.yaml:1:1: a cluster needs levels" },
	{ LEVEL, "a cluster needs kinds" },
	{ "kinds: {a: }\n" LEVEL "links: 3\n", "c.yaml:3:1: a cluster has no key links" },
	{ "kind: {a: }\n" LEVEL, "c.yaml:1:1: a cluster has no key kind; did you mean kinds?" },
	{ "kinds: {}\n" LEVEL, "kinds is a table of 1 to 64 names" },
	{ "kinds: {a: {speed: 0}}\n" LEVEL, "c.yaml:1:20: speed is a number from 1e-06 to 1e+06, not 0" },
	{ "kinds: {a: {speed: fast}}\n" LEVEL, "not fast" },
	{ "kinds: {a: {speed: [1]}}\n" LEVEL, "speed is a number" },
	{ "kinds: {a: {memory: 0}}\n" LEVEL, "memory is a size" },
	{ "kinds: {a: {memory: 9999999TiB}}\n" LEVEL, "memory is a size" },
	{ "kinds: {'a b': }\n" LEVEL, "the name of a kind has letters" },
	{ "kinds: {a: }\nlevels: []\n", "levels is a list of 1 to 4" },
	{ "kinds: {a: }\nlevels: {a: 1}\n", "levels is a list" },
	{ "kinds: {a: }\nlevels: [3]\n", "a level is a table of keys" },
	{ "kinds: {a: }\nlevels: [{name: l, bytes_per_s: 1e9}]\n", "a level needs components" },
	{ "kinds: {a: }\nlevels: [{name: l, components: 0, bytes_per_s: 1e9}]\n", "components is a whole number from 1 to 65536, not 0" },
	{ "kinds: {a: }\nlevels: [{name: l, components: 70000, bytes_per_s: 1e9}]\n", "components is a whole number" },
	{ "kinds: {a: }\nlevels: [{name: l, components: 300, bytes_per_s: 1e9}, {name: m, components: 300, bytes_per_s: 1e9}]\n", "more than 65536 devices" },
	{ "kinds: {a: }\nlevels: [{name: l, components: 2, bytes_per_s: 0}]\n", "bytes_per_s is a number from 1 to 1e+15, not 0" },
	{ "kinds: {a: }\nlevels: [{name: l, components: 2, bytes_per_s: 1, latency_ns: -1}]\n", "latency_ns is a whole number" },
	{ "kinds: {a: , b: }\n" LEVEL, "of which kind is which device?" },
	{ "kinds: {a: }\n" LEVEL "devices: [{kind: a, count: 1}]\n", "c.yaml:3:10: these are 1 devices, the levels have 2" },
	{ "kinds: {a: }\n" LEVEL "devices: [{kind: a, count: 3}]\n", "more devices than the 2 of the levels" },
	{ "kinds: {a: }\n" LEVEL "devices: [{kind: b, count: 2}]\n", "there is no kind b" },
	{ "kinds: {a: }\n" LEVEL "devices: 2\n", "devices is a list" },
};

static void a_bad_file_is_refused_with_its_place(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct hd_cluster c = { .ndevices = 77 };
		struct hd_diag diag;
		CHECK(parse(&c, bad[i].text, &diag) == HD_E_INPUT, "%zu is taken", i);
		CHECK(strncmp(diag.text, "c.yaml:", 7) == 0 && strstr(diag.text, bad[i].says), "%zu says %s",
			i, diag.text);
		assert_int_equal(c.ndevices, 77);
	}
}

static void values_out_of_range_make_no_cluster(void **state)
{
	struct hd_cluster c;
	const struct hd_cluster_level good = { "l", 2, 1e9, 0 }, none = { "l", 0, 1e9, 0 },
		slow = { "l", 2, 0, 0 };
	const struct hd_cluster_kind kind = { "k", 1, 0 };

	(void)state;
	assert_int_equal(hd_cluster_make(&c, &good, 0, kind, &arena, NULL), HD_E_INVAL);
	assert_int_equal(hd_cluster_make(&c, &none, 1, kind, &arena, NULL), HD_E_INVAL);
	assert_int_equal(hd_cluster_make(&c, &slow, 1, kind, &arena, NULL), HD_E_INVAL);
	assert_int_equal(hd_cluster_make(&c, &good, 1, (struct hd_cluster_kind){ "k", 0, 0 }, &arena, NULL),
		HD_E_INVAL);
	assert_int_equal(hd_cluster_make(&c, &good, 1, (struct hd_cluster_kind){ "k", 1, -1 }, &arena, NULL),
		HD_E_INVAL);
}

static int reset(void **state)
{
	(void)state;
	hd_arena_reset(&arena);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_file_becomes_kinds_levels_and_devices, reset),
		cmocka_unit_test_teardown(printing_and_reading_come_back_to_the_same_bytes, reset),
		cmocka_unit_test_teardown(devices_talk_over_the_innermost_level_that_holds_both, reset),
		cmocka_unit_test_teardown(a_bad_file_is_refused_with_its_place, reset),
		cmocka_unit_test_teardown(values_out_of_range_make_no_cluster, reset),
	};

	hd_arena_init(&arena, 0);
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	hd_arena_finish(&arena);
	return failed;
}
