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
	assert_int_equal(hd_machine_script_of(&script, &trace, "t", speed, &how, 7, &arena, NULL),
		HD_OK);
	return script;
}

/* `b/b` is no name of a script, and m2 is taken. */
static void numbers_of_machines_are_names_that_no_other_has(void **state)
{
	static const struct hd_spot_change in[] = { { 0, 1, "m2-2" }, { 1000, 1, "b/b" }, { 2000, 1, "m2" },
		{ 3000, 1, "" } };
	const struct hd_machine_script s = made(4, in, 1, "none");
	(void)state;

	assert_int_equal(s.n, 4);
	assert_string_equal(s.at[1].node, "m2-3");
	assert_string_equal(s.at[2].node, "m2");
	assert_string_equal(s.at[3].node, "m4");
}

/* A trace is found to be too long, or too much at once, when it is read. */
static void a_trace_that_cannot_be_played_is_refused(void **state)
{
	struct hd_spot_change in[HD_MACHINES_MOST + 1] = { { 0 } };
	const struct hd_machine_notice none = { .cloud = HD_CLOUD_EC2 };
	struct hd_machine_script script;
	struct hd_spot_trace trace;
	struct hd_diag diag = { "" };
	char name[HD_MACHINES_MOST + 1][8];
	(void)state;

	for (int i = 0; i <= HD_MACHINES_MOST; i++) {
		(void)snprintf(name[i], sizeof *name, "n%d", i);
		in[i] = (struct hd_spot_change){ 0, 1, name[i] };
	}
	assert_int_equal(hd_spot_trace_make(&trace, HD_MACHINES_MOST + 1, in, 0, &arena, NULL), HD_OK);
	assert_int_equal(hd_machine_script_of(&script, &trace, "t", 1, &none, 0, &arena, &diag), HD_E_INPUT);
	CHECK(strstr(diag.text, "t: machine n128 is one more than the 128"), "%s", diag.text);
	diag.text[0] = '\0';
	assert_int_equal(hd_spot_trace_make(&trace, 0, in, 0, &arena, NULL), HD_OK);
	assert_int_equal(hd_machine_script_of(&script, &trace, "t", 1, &none, 0, &arena, &diag), HD_E_INPUT);
	CHECK(strstr(diag.text, "t: no machine ever comes"), "%s", diag.text);
	diag.text[0] = '\0';
	in[0].at_ms = HD_SPOT_MS_MOST;
	assert_int_equal(hd_spot_trace_make(&trace, 1, in, 0, &arena, NULL), HD_OK);
	assert_int_equal(hd_machine_script_of(&script, &trace, "t", 1, &none, 0, &arena, &diag), HD_E_INPUT);
	CHECK(strstr(diag.text, "t: n0 comes at 315576000000000 ms, more than 100000000 s"), "%s", diag.text);
	assert_int_equal(hd_machine_script_of(&script, &trace, "t", 10000, &none, 0, &arena, &diag), HD_OK);
	assert_true(script.at[0].at_ns == INT64_C(31557600000000000));
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
		in[2 * i] = (struct hd_spot_change){ 200000 * i, 1, name[i] };
		in[2 * i + 1] = (struct hd_spot_change){ 200000 * i + 150000, -1, name[i] };
	}
	struct hd_machine_script s = made(800, in, 1, "p:0.25"), again = made(800, in, 1, "p:0.25");
	for (size_t i = 0; i < s.n; i++)
		noticed += s.at[i].what == HD_METADATA_NOTICE;
	/* four standard deviations around 100 of 400 */
	assert_true(noticed > 65 && noticed < 135 && again.n == s.n);
	for (size_t i = 0; i < s.n; i++)
		assert_true(s.at[i].what == again.at[i].what && !strcmp(s.at[i].node, again.at[i].node));
}

static void lines_stay_in_order(void **state)
{
	static const char text[] = "{\"node\":\"b\",\"do\":\"kill\",\"t\":4}\n\n"
		"{\"node\":\"a\",\"do\":\"add\"}\n{\"node\":\"b\",\"do\":\"add\"}\n"
		"{\"node\":\"a\",\"do\":\"freeze\",\"lead\":8,\"step\":9,\"members\":3}\n"
		"{\"node\":\"a\",\"do\":\"signal\",\"sig\":\"USR1\",\"when\":\"starved\"}";
	struct hd_machine_script s;
	(void)state;

	assert_int_equal(hd_machine_script_read(&s, "x", text, sizeof text - 1, 4, &arena, NULL), HD_OK);
	assert_int_equal(s.n, 5);
	assert_true(s.at[2].what == HD_METADATA_FREEZE && s.at[2].lead_ns == 2 * S && s.at[2].step == 9 &&
		s.at[2].members == 3 && !s.at[2].starved);
	assert_true(s.at[3].sig == HD_PROC_USR1 && s.at[3].starved && s.at[3].lead_ns == -1);
	assert_true(s.at[4].what == HD_METADATA_KILL && s.at[4].at_ns == S);
}

#define LINE(node, what) "{\"node\":\"" node "\",\"do\":\"" what "\"}\n"
#define AT(node, what, cloud) "{\"node\":\"" node "\",\"do\":\"" what "\",\"cloud\":\"" cloud "\"}\n"

static void scripts_that_cannot_be_played_are_refused_where_it_shows(void **state)
{
	static const struct { const char *text, *why; } bad[] = {
		{ LINE("b", "add") "{\"node\":\"b\",\"do\":\"signal\",\"sig\":\"HUP\"}\n", "x:2: sig is \"HUP\"" },
		{ "", "x: no machine ever comes" },
		{ LINE("a", "notice"), "x:1: machine a is not there yet" },
		{ LINE("a", "add") LINE("b", "silence"), "x:2: machine b is never there" },
		{ LINE("a", "add") LINE("b", "notice"), "x:2: machine b is not there yet" },
		{ LINE("a", "add") LINE("a", "kill") LINE("a", "notice"), "x:3: machine a is not there any more" },
		{ LINE("a", "add") LINE("a", "kill") LINE("a", "silence"), "x:3: machine a is not there any more" },
		{ LINE("a", "rebalance") LINE("a", "add"), "x:1: machine a is not there yet" },
		{ LINE("a", "add") "\n" LINE("b", "freeze"), "x:3: machine b is not there yet" },
		{ LINE("a", "kill") LINE("a", "add"), "x:1: machine a is not there yet" },
		{ LINE("a", "add") LINE("a", "kill") LINE("a", "kill"), "x:3: machine a is not there any more" },
		{ LINE("a", "add") LINE("a", "kill") LINE("a", "add"), "x:3: machine a was there already" },
		{ "{\"node\":\"a\",\"do\":\"add\",\"t\":9}\n" LINE("a", "signal"), "x:2: machine a is not there" },
		{ LINE("a", "add") AT("a", "notice", "gce") LINE("a", "rebalance"),
		  "x:3: machine a has \"rebalance\" from ec2, and was of gce before" },
	};
	struct hd_machine_script s;
	(void)state;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct hd_diag diag = { "" };
		CHECK(hd_machine_script_read(&s, "x", bad[i].text, strlen(bad[i].text), 1, &arena, &diag) ==
			HD_E_INPUT && strstr(diag.text, bad[i].why), "%s: %s", bad[i].text, diag.text);
	}
}

/* A machine asks the services of the cloud that gives it notice. */
static void a_machine_is_of_the_cloud_that_gives_it_notice(void **state)
{
	static const struct { const char *text; enum hd_metadata_cloud cloud; } row[] = {
		{ LINE("a", "add"), HD_CLOUD_EC2 },
		{ LINE("a", "add") AT("a", "notice", "ec2") LINE("a", "kill"), HD_CLOUD_EC2 },
		{ LINE("a", "add") AT("a", "notice", "gce") LINE("a", "withdraw"), HD_CLOUD_GCE },
		{ LINE("a", "silence") LINE("a", "fail") LINE("a", "heal") LINE("a", "add")
			AT("a", "notice", "azure"), HD_CLOUD_AZURE },
		{ LINE("a", "add") LINE("a", "notice") LINE("a", "migrate"), HD_CLOUD_GCE },
		{ LINE("a", "add") LINE("a", "start"), HD_CLOUD_AZURE },
		{ LINE("a", "add") LINE("a", "expire"), HD_CLOUD_EC2 },
	};
	(void)state;

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct hd_machine_script s;
		assert_int_equal(hd_machine_script_read(&s, "x", row[i].text, strlen(row[i].text), 1, &arena,
			NULL), HD_OK);
		for (size_t k = 0; k < s.n; k++)
			CHECK(s.at[k].what != HD_METADATA_ADD || s.at[k].cloud == row[i].cloud, "%s: %s",
				row[i].text, hd_metadata_cloud_name(s.at[k].cloud));
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(notices_are_read_by_cloud_or_share),
		cmocka_unit_test(a_trace_is_played_at_its_speed_with_notices_before),
		cmocka_unit_test(a_share_of_the_removals_is_announced),
		cmocka_unit_test(lines_stay_in_order),
		cmocka_unit_test(scripts_that_cannot_be_played_are_refused_where_it_shows),
		cmocka_unit_test(a_machine_is_of_the_cloud_that_gives_it_notice),
		cmocka_unit_test(numbers_of_machines_are_names_that_no_other_has),
		cmocka_unit_test(a_trace_that_cannot_be_played_is_refused),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
