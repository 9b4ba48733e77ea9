#include "notice/testing.h"

#include "notice/source.h"

static void begin(struct played *p)
{
	play(p, "ec2");
	assert_false(says(p, OK_("", TOKEN)));
}

static void a_notice_that_is_there_again_is_none(void **state)
{
	struct played p;

	(void)state;
	begin(&p);
	assert_true(says(&p, TERMINATE));
	NOTICE(&p, PREEMPT, 120 * S, "terminate");
	for (int i = 0; i < 20; i++)
		assert_false(says(&p, TERMINATE));
	/* another end is another notice */
	assert_true(says(&p, OK_("", "{\"action\":\"terminate\",\"time\":\"2017-09-18T08:23:00Z\"}")));
	NOTICE(&p, PREEMPT, 75 * S, "terminate");
}

static void a_notice_that_is_gone_is_withdrawn_once(void **state)
{
	struct played p;

	(void)state;
	begin(&p);
	assert_true(says(&p, TERMINATE));
	assert_true(says(&p, NO_("404 Not Found")));
	NOTICE(&p, WITHDRAWN, -1, "terminate");
	assert_false(says(&p, NO_("404 Not Found")));
	assert_true(says(&p, TERMINATE));
	NOTICE(&p, PREEMPT, 105 * S, "terminate");
}

static void a_notice_that_comes_late_ends_now(void **state)
{
	struct played p;

	(void)state;
	begin(&p);
	p.wall_ns += 300 * S;
	assert_true(says(&p, TERMINATE));
	NOTICE(&p, PREEMPT, 0, "terminate");
}

/* Our clock is an hour slow, or fast; then the same with a service that says what its own shows. */
static void a_wrong_clock_does_not_move_the_end_by_more_than_the_source_can_know(void **state)
{
	static const char dated[] = OK_("Date: Mon, 18 Sep 2017 08:20:10 GMT\r\n",
		"{\"action\":\"terminate\",\"time\":\"2017-09-18T08:22:00Z\"}");
	struct played p;

	(void)state;
	begin(&p);
	p.wall_ns -= 3600 * S;
	assert_true(says(&p, TERMINATE));
	NOTICE(&p, PREEMPT, 120 * S, "terminate");
	for (int i = -1; i <= 1; i++) {
		begin(&p);
		p.wall_ns += i * 3600 * S;
		assert_true(says(&p, dated));
		NOTICE(&p, PREEMPT, 110 * S, "terminate");
	}
	/* a date that is none is passed over */
	begin(&p);
	assert_true(says(&p, OK_("Date: today\r\n",
		"{\"action\":\"stop\",\"time\":\"2017-09-18T08:21:00Z\"}")));
	NOTICE(&p, PREEMPT, 60 * S, "stop");
}

static void silence_for_an_hour_changes_nothing_and_is_said_once(void **state)
{
	struct played p;
	int64_t gap = 0, before = 0;
	int said = 0, asked = 0;

	(void)state;
	begin(&p);
	assert_true(says(&p, TERMINATE));
	int64_t began_ns = p.now_ns;
	while (p.now_ns - began_ns < 3600 * S) {
		before = p.now_ns;
		is_silent(&p);
		gap = p.now_ns - before > gap ? p.now_ns - before : gap;
		said += *p.said.text != 0;
		asked++;
	}
	assert_int_equal(said, 1);
	assert_int_equal(gap, 30 * S);
	assert_in_range(asked, 115, 130);
	assert_false(says(&p, TERMINATE));                  /* it stood all the time */
	assert_non_null(strstr(p.said.text, "answers again"));
	assert_int_equal(hd_notice_watch_next(&p.w), p.now_ns + 5 * S);
	is_silent(&p);
	assert_non_null(strstr(p.said.text, "asked again and again"));
}

static void pauses_double_up_to_half_a_minute(void **state)
{
	static const int64_t pause_s[] = { 1, 2, 4, 8, 16, 30, 30 };
	struct played p;

	(void)state;
	play(&p, "gce");
	for (size_t i = 0; i < sizeof pause_s / sizeof *pause_s; i++) {
		is_silent(&p);
		assert_int_equal(hd_notice_watch_next(&p.w), p.now_ns + pause_s[i] * S);
	}
	assert_false(says(&p, GOOGLE("1", "FALSE")));
	assert_string_equal(p.said.text, "notices of gce: it answers again, after 91 s");
	is_silent(&p);
	assert_int_equal(hd_notice_watch_next(&p.w), p.now_ns + S);
	/* what is asked rarely is not asked more often when it fails */
	play(&p, "ec2");
	assert_false(says(&p, OK_("", TOKEN)));
	assert_int_equal(hd_notice_watch_next(&p.w), p.now_ns);
	is_silent(&p);
	assert_int_equal(hd_notice_watch_next(&p.w), p.now_ns + 5 * S);
	p.w.settings.every_ns = S / 10;
	assert_false(says(&p, NO_("404 Not Found")));
	assert_int_equal(hd_notice_watch_next(&p.w), p.now_ns + S / 10);
}

static void an_end_that_moves_by_less_than_a_second_is_the_same(void **state)
{
	struct played p;

	(void)state;
	begin(&p);
	assert_true(says(&p, TERMINATE));
	assert_false(says(&p, OK_("", "{\"action\":\"terminate\",\"time\":\"2017-09-18T08:22:00.999Z\"}")));
	assert_false(says(&p, OK_("", "{\"action\":\"terminate\",\"time\":\"2017-09-18T08:21:59.001Z\"}")));
	assert_true(says(&p, OK_("", "{\"action\":\"terminate\",\"time\":\"2017-09-18T08:22:01Z\"}")));
	assert_true(says(&p, OK_("", "{\"action\":\"terminate\",\"time\":\"2017-09-18T08:22:00Z\"}")));
}

static void garbage_for_an_hour_is_said_once_too(void **state)
{
	struct played p;
	int said = 0;

	(void)state;
	play(&p, "azure");
	assert_false(says(&p, OK_("", "myspotvm")));
	int64_t began_ns = p.now_ns;
	while (p.now_ns - began_ns < 3600 * S) {
		assert_false(says(&p, OK_("", "\x01\x02{{{")));
		said += *p.said.text != 0;
	}
	assert_int_equal(said, 1);
	assert_true(says(&p, EVENTS("9", EVENT_("A", "Preempt", "Scheduled", "Mon, 18 Sep 2017 09:30:00 GMT",
		""))));
}

static void a_source_is_asked_once_at_a_time(void **state)
{
	struct played p;

	(void)state;
	begin(&p);
	asks(&p);
	assert_int_equal(hd_notice_watch_next(&p.w), INT64_MAX);
	assert_false(hd_notice_watch_answered(&p.w));
}

static void what_a_setting_stands_for(void **state)
{
	static char *const nowhere[] = { "PATH=/bin", NULL };
	static char *const slurm[] = { "SLURM_JOB_ID=7", "KUBERNETES_SERVICE_HOST=10.0.0.1", NULL };
	static const struct { const char *word; char *const *environment; const char *sources,
		*probes; } row[] = {
		{ "none", slurm, "", "" },
		{ "env", nowhere, "hand signal ", "" },
		{ "env", slurm, "hand slurm ", "" },
		{ "ec2", nowhere, "hand signal ec2 ec2-rebalance ", "" },
		{ "ec2-rebalance", nowhere, "hand signal ec2-rebalance ", "" },
		{ "gce", slurm, "hand slurm gce gce-maintenance ", "" },
		{ "k8s", nowhere, "hand k8s ", "" },
		{ "k8s", slurm, "hand k8s ", "" },
		{ "azure", nowhere, "hand signal azure ", "" },
	};
	static const struct hd_notice_source *const all[] = {
#define X(id) &hd_notice_of_##id,
#include "notice/list.h"
#undef X
	};
	char names[256], words[256];
	struct hd_notice_choice c;

	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		assert_true(hd_notice_is_setting(row[i].word, words));
		hd_notice_choose(row[i].word, row[i].environment, &c);
		*names = '\0';
		for (uint32_t k = 0; k < c.n; k++)
			strcat(strcat(names, hd_notice_name(c.source[k])), " ");
		CHECK(!strcmp(names, row[i].sources), "%s: %s", row[i].word, names);
		*names = '\0';
		for (uint32_t k = 0; k < c.nprobes; k++)
			strcat(strcat(names, hd_notice_name(c.probe[k])), " ");
		CHECK(!strcmp(names, row[i].probes), "%s: %s", row[i].word, names);
	}
	/* auto asks every cloud whose source is asked by HTTP, in the order of the table, by its first row */
	hd_notice_choose("auto", nowhere, &c);
	assert_int_equal(c.n, 2);
	assert_ptr_equal(c.source[0], hd_notice_find("hand"));
	assert_ptr_equal(c.source[1], hd_notice_find("signal"));
	uint32_t nprobes = 0;
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		bool first = all[i]->way == HD_NOTICE_BY_HTTP;
		for (size_t k = 0; k < i && first; k++)
			first = strcmp(all[k]->cloud, all[i]->cloud) != 0;
		if (first)
			assert_ptr_equal(c.probe[nprobes++], all[i]);
	}
	assert_int_equal(c.nprobes, nprobes);
	assert_true(nprobes >= 3);
	hd_notice_chosen(hd_notice_find("gce"), &c);
	assert_int_equal(c.n, 4);
	assert_false(hd_notice_is_setting("ec3", words));
	assert_non_null(strstr(words, "auto, env, none, hand"));
	assert_non_null(strstr(words, "ec2-rebalance"));
	assert_null(hd_notice_find("ec3"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_notice_that_is_there_again_is_none),
		cmocka_unit_test(a_notice_that_is_gone_is_withdrawn_once),
		cmocka_unit_test(a_notice_that_comes_late_ends_now),
		cmocka_unit_test(a_wrong_clock_does_not_move_the_end_by_more_than_the_source_can_know),
		cmocka_unit_test(silence_for_an_hour_changes_nothing_and_is_said_once),
		cmocka_unit_test(pauses_double_up_to_half_a_minute),
		cmocka_unit_test(an_end_that_moves_by_less_than_a_second_is_the_same),
		cmocka_unit_test(garbage_for_an_hour_is_said_once_too),
		cmocka_unit_test(a_source_is_asked_once_at_a_time),
		cmocka_unit_test(what_a_setting_stands_for),
	};
	return cmocka_run_group_tests_name("watch", tests, NULL, NULL);
}
