#include "chaos/machine_script.h"

#include <stdio.h>
#include <string.h>

#include "tests/check.h"

static struct hd_arena arena;

static int set_up(void **state) { (void)state; hd_arena_init(&arena, 0); return 0; }
static int tear_down(void **state) { (void)state; hd_arena_finish(&arena); return 0; }

#define S INT64_C(1000000000)

static void notices_are_read_by_cloud_or_share(void **state)
{
	static const char *const bad[] = { "", "ec2", "ec2:", "ec2:-1", "p:1.5", "p:x", "gcp:30",
		"nonesuch" };
	struct hd_machine_notice n;
	(void)state;

	assert_int_equal(hd_machine_notice_read(&n, "none", NULL), HD_OK);
	assert_true(!(n.share > 0));
	assert_int_equal(hd_machine_notice_read(&n, "azure:45.5", NULL), HD_OK);
	assert_true(n.cloud == HD_CLOUD_AZURE && n.lead_s > 45.4 && n.lead_s < 45.6 && n.share > 0.99);
	assert_int_equal(hd_machine_notice_read(&n, "p:0.25", NULL), HD_OK);
	assert_true(n.cloud == HD_CLOUD_EC2 && n.lead_s > 119 && n.share > 0.24 && n.share < 0.26);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		CHECK(hd_machine_notice_read(&n, bad[i], NULL) == HD_E_INVAL, "%s was taken", bad[i]);
}

static struct hd_machine_script made(size_t n, const struct hd_spot_change *in, double speed,
	const char *notice)
{
	struct hd_machine_script script;
	struct hd_machine_notice how;
	struct hd_spot_trace trace;

	assert_int_equal(hd_spot_trace_make(&trace, n, in, 0, &arena, NULL), HD_OK);
	assert_int_equal(hd_machine_notice_read(&how, notice, NULL), HD_OK);
	assert_int_equal(hd_machine_script_of(&script, &trace, speed, &how, 7, &arena, NULL), HD_OK);
	return script;
}

/* Twice as fast. b comes 10 s before it goes, so its notice of 60 s is one of 10. */
static void a_trace_is_played_at_its_speed_with_notices_before(void **state)
{
	static const struct hd_spot_change in[] = { { 0, 1, "a" }, { 90000, 1, "b/b" }, { 100000, -1, "a" },
		{ 100000, -1, "b/b" }, { 100000, 1, "c" } };
	static const struct {
		int64_t at_s2;
		enum hd_metadata_do what;
		const char *node;
		int64_t lead_s2;
	} want[] = {
		{ 0, HD_METADATA_ADD, "a", 0 }, { 40, HD_METADATA_NOTICE, "a", 60 },
		{ 90, HD_METADATA_ADD, "m2", 0 }, { 90, HD_METADATA_NOTICE, "m2", 10 },
		{ 100, HD_METADATA_ADD, "c", 0 }, { 100, HD_METADATA_KILL, "a", 0 },
		{ 100, HD_METADATA_KILL, "m2", 0 } };
	struct hd_machine_script s = made(5, in, 2, "gce:60");
	(void)state;

	assert_int_equal(s.n, sizeof want / sizeof *want);
	for (size_t i = 0; i < s.n; i++)
		CHECK(s.at[i].at_ns == want[i].at_s2 * S / 2 && s.at[i].what == want[i].what &&
			!strcmp(s.at[i].node, want[i].node) && (s.at[i].what != HD_METADATA_NOTICE ||
			(s.at[i].lead_ns == want[i].lead_s2 * S / 2 && s.at[i].cloud == HD_CLOUD_GCE)),
			"%zu: %s %s at %lld", i, hd_metadata_do_name(s.at[i].what), s.at[i].node,
			(long long)s.at[i].at_ns);
	assert_int_equal(made(5, in, 2, "none").n, 5);
}

static void a_share_of_the_removals_is_announced(void **state)
{
	struct hd_spot_change in[800];
	char name[400][8];
	uint32_t noticed = 0;
	(void)state;

	for (int i = 0; i < 400; i++) {
		(void)snprintf(name[i], sizeof *name, "n%d", i);
		in[2 * i] = (struct hd_spot_change){ 0, 1, name[i] };
		in[2 * i + 1] = (struct hd_spot_change){ 200000, -1, name[i] };
	}
	struct hd_machine_script s = made(800, in, 1, "p:0.25"), again = made(800, in, 1, "p:0.25");
	for (size_t i = 0; i < s.n; i++)
		noticed += s.at[i].what == HD_METADATA_NOTICE;
	/* four standard deviations around 100 of 400 */
	assert_true(noticed > 65 && noticed < 135 && again.n == s.n);
	for (size_t i = 0; i < s.n; i++)
		assert_true(s.at[i].what == again.at[i].what && !strcmp(s.at[i].node, again.at[i].node));
}

static void lines_stay_in_order_and_say_where_they_are_wrong(void **state)
{
	static const char text[] = "{\"node\":\"b\",\"do\":\"kill\",\"t\":4}\n\n"
		"{\"node\":\"a\",\"do\":\"freeze\",\"lead\":8,\"step\":9,\"members\":3}\n"
		"{\"node\":\"a\",\"do\":\"signal\",\"sig\":\"USR1\",\"when\":\"starved\"}";
	static const char bad[] =
		"{\"node\":\"b\",\"do\":\"kill\"}\n{\"node\":\"b\",\"do\":\"signal\",\"sig\":\"HUP\"}\n";
	struct hd_machine_script s;
	struct hd_diag diag = { "" };
	(void)state;

	assert_int_equal(hd_machine_script_read(&s, "x", text, sizeof text - 1, 4, &arena, NULL), HD_OK);
	assert_int_equal(s.n, 3);
	assert_true(s.at[0].what == HD_METADATA_FREEZE && s.at[0].lead_ns == 2 * S && s.at[0].step == 9 &&
		s.at[0].members == 3 && !s.at[0].starved);
	assert_true(s.at[1].sig == HD_PROC_USR1 && s.at[1].starved && s.at[1].lead_ns == -1);
	assert_true(s.at[2].what == HD_METADATA_KILL && s.at[2].at_ns == S);
	assert_int_equal(hd_machine_script_read(&s, "x", bad, sizeof bad - 1, 1, &arena, &diag), HD_E_INPUT);
	CHECK(strstr(diag.text, "x:2: sig is \"HUP\""), "%s", diag.text);
	assert_int_equal(hd_machine_script_read(&s, "x", "", 0, 1, &arena, &diag), HD_OK);
	assert_int_equal(s.n, 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(notices_are_read_by_cloud_or_share),
		cmocka_unit_test(a_trace_is_played_at_its_speed_with_notices_before),
		cmocka_unit_test(a_share_of_the_removals_is_announced),
		cmocka_unit_test(lines_stay_in_order_and_say_where_they_are_wrong),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
