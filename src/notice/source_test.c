/* What each source asks and understands; the documents are those of the clouds' documentation. */
#include <stdio.h>

#include "notice/testing.h"
#include "notice/hand.h"

static void ec2_is_asked_with_a_token_and_says_when_the_instance_goes(void **state)
{
	struct played p;

	(void)state;
	play(&p, "ec2");
	assert_false(says(&p, OK_("", TOKEN)));
	assert_string_equal(p.ask.method, "PUT");
	assert_string_equal(p.ask.target, "/latest/api/token");
	assert_string_equal(p.ask.lines, "X-aws-ec2-metadata-token-ttl-seconds: 21600\r\n");
	assert_false(says(&p, NO_("404 Not Found")));
	assert_string_equal(p.ask.method, "GET");
	assert_string_equal(p.ask.target, "/latest/meta-data/spot/instance-action");
	assert_string_equal(p.ask.lines, "X-aws-ec2-metadata-token: " TOKEN "\r\n");
	assert_int_equal(hd_notice_watch_next(&p.w), p.now_ns + 5 * S);
	assert_true(says(&p, TERMINATE));
	NOTICE(&p, PREEMPT, 115 * S, "terminate");
	assert_false(p.notice.of_process);
	assert_string_equal(p.notice.source, "ec2");
	play(&p, "ec2");
	assert_false(says(&p, OK_("", TOKEN)));
	assert_true(says(&p, OK_("", "{\"action\": \"hibernate\", \"time\": \"2017-09-18T08:20:00Z\"}")));
	NOTICE(&p, PREEMPT, 0, "hibernate");
}

static void a_token_is_renewed_at_half_its_life_and_when_it_is_refused(void **state)
{
	struct played p;

	(void)state;
	play(&p, "ec2");
	assert_false(says(&p, OK_("", TOKEN)));
	int64_t got_ns = p.now_ns;
	for (;;) {
		asks(&p);
		if (!strcmp(p.ask.method, "PUT"))
			break;
		hd_notice_watch_failed(&p.w, p.now_ns, "no answer", &p.said);
	}
	assert_in_range(p.now_ns - got_ns, 10800 * S, 10830 * S);
	hd_notice_watch_failed(&p.w, p.now_ns, "no answer", &p.said);
	assert_false(says(&p, OK_("", "other")));
	assert_false(says(&p, NO_("404 Not Found")));
	assert_string_equal(p.ask.lines, "X-aws-ec2-metadata-token: other\r\n");
	assert_false(says(&p, NO_("401 Unauthorized")));
	assert_false(says(&p, OK_("", TOKEN)));
	assert_string_equal(p.ask.method, "PUT");
	assert_false(says(&p, NO_("404 Not Found")));
	/* a service that refuses what it has just given is not asked in a circle */
	assert_false(says(&p, NO_("401 Unauthorized")));
	assert_false(says(&p, OK_("", TOKEN)));
	assert_false(says(&p, NO_("401 Unauthorized")));
	assert_int_equal(hd_notice_watch_next(&p.w), p.now_ns + 5 * S);
}

static void a_token_that_cannot_be_renewed_is_used_to_its_end(void **state)
{
	struct played p;
	int puts = 0;

	(void)state;
	play(&p, "ec2");
	assert_false(says(&p, OK_("", TOKEN)));
	int64_t got_ns = p.now_ns;
	while (p.now_ns - got_ns < 21500 * S) {
		asks(&p);
		struct hd_notice_answer a = { .what = p.ask.what, .status = 404, .body = "",
			.now_ns = p.now_ns, .wall_ns = p.wall_ns };
		if (!strcmp(p.ask.method, "PUT")) {
			puts++;
			a.status = 503;
		}
		assert_false(hd_notice_watch_answer(&p.w, &a, &p.notice, &p.said));
	}
	assert_in_range(puts, 300, 400);
	assert_string_equal(p.said.text, "");
}

static void a_service_that_is_switched_off_is_not_asked_again(void **state)
{
	struct played p;

	(void)state;
	play(&p, "ec2-rebalance");
	assert_false(says(&p, NO_("403 Forbidden")));
	assert_non_null(strstr(p.said.text, "switched off"));
	assert_int_equal(hd_notice_watch_next(&p.w), INT64_MAX);
}

static void a_rebalance_recommendation_is_a_risk_without_an_end(void **state)
{
	struct played p;

	(void)state;
	play(&p, "ec2-rebalance");
	assert_false(says(&p, OK_("", TOKEN)));
	assert_false(says(&p, NO_("404 Not Found")));
	assert_string_equal(p.ask.target, "/latest/meta-data/events/recommendations/rebalance");
	assert_true(says(&p, OK_("", "{\"noticeTime\": \"2020-10-27T08:22:00Z\"}")));
	NOTICE(&p, RISK, -1, "rebalance recommendation");
	assert_false(says(&p, OK_("", "{\"noticeTime\": \"2020-10-27T08:22:00Z\"}")));
	assert_true(says(&p, OK_("", "{\"noticeTime\": \"2020-10-27T09:22:00Z\"}")));
}

static void gce_is_waited_for_and_must_name_its_flavor(void **state)
{
	struct played p;

	(void)state;
	play(&p, "gce");
	assert_false(says(&p, GOOGLE("411261ca6c9e4d5b", "FALSE")));
	assert_string_equal(p.ask.target, "/computeMetadata/v1/instance/preempted");
	assert_string_equal(p.ask.lines, "Metadata-Flavor: Google\r\n");
	assert_true(says(&p, GOOGLE("ad3b4d5c", "TRUE\n")));
	assert_string_equal(p.ask.target, "/computeMetadata/v1/instance/preempted?wait_for_change=true"
		"&timeout_sec=60&last_etag=411261ca6c9e4d5b");
	assert_true(p.ask.timeout_ns > 60 * S);
	NOTICE(&p, PREEMPT, 30 * S, "preempted");
	assert_false(says(&p, OK_("ETag: x\r\n", "FALSE")));
	assert_non_null(strstr(p.said.text, "flavor"));
	/* after an error it is asked for what is, not for a change */
	assert_false(says(&p, NO_("503 Service Unavailable")));
	assert_false(says(&p, GOOGLE("a b&c", "TRUE")));
	assert_string_equal(p.ask.target, "/computeMetadata/v1/instance/preempted");
	assert_true(says(&p, GOOGLE("1", "FALSE")));
	assert_string_equal(p.ask.target, "/computeMetadata/v1/instance/preempted");
	NOTICE(&p, WITHDRAWN, -1, "preempted");
}

static void host_maintenance_ends_an_instance_or_moves_it(void **state)
{
	struct played p;

	(void)state;
	play(&p, "gce-maintenance");
	assert_false(says(&p, GOOGLE("0", "NONE")));
	assert_string_equal(p.ask.target, "/computeMetadata/v1/instance/maintenance-event");
	assert_true(says(&p, GOOGLE("1", "MIGRATE_ON_HOST_MAINTENANCE")));
	NOTICE(&p, RISK, -1, "MIGRATE_ON_HOST_MAINTENANCE");
	assert_true(says(&p, GOOGLE("2", "TERMINATE_ON_HOST_MAINTENANCE")));
	NOTICE(&p, PREEMPT, 60 * S, "TERMINATE_ON_HOST_MAINTENANCE");
	assert_false(says(&p, GOOGLE("3", "SOMETHING_ELSE")));
	assert_true(says(&p, GOOGLE("4", "NONE")));
}

static void azure_tells_of_its_own_machine_alone(void **state)
{
	static const char other[] = EVENTS("2", "{\"EventId\":\"C7061BAC\",\"EventType\":\"Preempt\","
		"\"ResourceType\":\"VirtualMachine\",\"Resources\":[\"WestNO_0\",\"WestNO_1\"],"
		"\"EventStatus\":\"Scheduled\",\"NotBefore\":\"Mon, 11 Apr 2022 22:26:58 GMT\"}");
	struct played p;

	(void)state;
	play(&p, "azure");
	assert_false(says(&p, OK_("", "myspotvm")));
	assert_string_equal(p.ask.target,
		"/metadata/instance/compute/name?api-version=2020-07-01&format=text");
	assert_string_equal(p.ask.lines, "Metadata: true\r\n");
	assert_false(says(&p, EVENTS("1", "")));
	assert_string_equal(p.ask.target, "/metadata/scheduledevents?api-version=2020-07-01");
	assert_true(p.ask.timeout_ns > 120 * S);
	assert_false(says(&p, other));
	assert_true(says(&p, EVENTS("3", EVENT_("A123BC45-1234-5678-AB90-ABCDEF123456", "Preempt",
		"Scheduled",
		"Mon, 18 Sep 2017 08:20:32 GMT", ""))));
	NOTICE(&p, PREEMPT, 30 * S, "Preempt");
	/* begun, then gone: it has happened */
	assert_false(says(&p, EVENTS("4", EVENT_("A123BC45-1234-5678-AB90-ABCDEF123456", "Preempt", "Started",
		"", ""))));
	assert_false(says(&p, EVENTS("5", "")));
}

static void of_azures_events_the_one_that_takes_the_machine_away_first_counts(void **state)
{
	struct played p;

	(void)state;
	play(&p, "azure");
	assert_false(says(&p, OK_("", "myspotvm")));
	assert_true(says(&p, EVENTS("1", EVENT_("F", "Freeze", "Scheduled", "Mon, 18 Sep 2017 08:20:01 GMT",
		"") ","
		EVENT_("B", "Reboot", "Scheduled", "Mon, 18 Sep 2017 08:35:00 GMT", "") ","
		EVENT_("A", "Redeploy", "Scheduled", "2017-09-18T08:30:00Z", ""))));
	NOTICE(&p, PREEMPT, 600 * S, "Redeploy");
	assert_string_equal(p.w.standing.id, "A");
	/* gone without having begun */
	assert_true(says(&p, EVENTS("2", EVENT_("B", "Reboot", "Scheduled", "Mon, 18 Sep 2017 08:35:00 GMT",
		""))));
	NOTICE(&p, PREEMPT, 899 * S, "Reboot");
	assert_true(says(&p, EVENTS("3", "")));
	NOTICE(&p, WITHDRAWN, -1, "Reboot");
	/* a freeze: short, long, of unknown length */
	assert_false(says(&p, EVENTS("4", EVENT_("F", "Freeze", "Scheduled", "Mon, 18 Sep 2017 08:35:00 GMT",
		",\"DurationInSeconds\":5"))));
	assert_true(says(&p, EVENTS("5", EVENT_("F", "Freeze", "Scheduled", "Mon, 18 Sep 2017 08:35:00 GMT",
		",\"DurationInSeconds\":30"))));
	assert_int_equal(p.notice.kind, HD_NOTICE_PREEMPT);
	assert_false(says(&p, EVENTS("6", EVENT_("F", "Freeze", "Started", "",
		",\"DurationInSeconds\":30"))));
	assert_true(says(&p, EVENTS("7", "")));
	NOTICE(&p, WITHDRAWN, -1, "Freeze");
	assert_true(says(&p, EVENTS("8", EVENT_("G", "Freeze", "Scheduled", "Mon, 18 Sep 2017 08:35:00 GMT",
		",\"DurationInSeconds\":-1"))));
	NOTICE(&p, RISK, -1, "Freeze");
}

#define LATER "Mon, 18 Sep 2017 08:35:00 GMT"
#define SOONER "Mon, 18 Sep 2017 08:30:00 GMT"

/* Each pair in both orders: the first is what counts. */
static void of_two_events_of_azure_one_counts_in_whatever_order(void **state)
{
	static const struct { const char *first, *other, *text; } row[] = {
		{ EVENT_("A", "Reboot", "Scheduled", SOONER, ""), EVENT_("B", "Redeploy", "Scheduled", LATER,
			""),
		  "Reboot" },
		{ EVENT_("A", "Reboot", "Scheduled", LATER, ""), EVENT_("B", "Freeze", "Scheduled", SOONER,
		""),
		  "Reboot" },
		{ EVENT_("A", "Terminate", "Started", "", ""), EVENT_("B", "Reboot", "Scheduled", SOONER, ""),
		  "Terminate" },
		{ EVENT_("A", "Preempt", "Scheduled", LATER, ""), EVENT_("B", "Rename", "Scheduled", SOONER,
		""),
		  "Preempt" },
		{ EVENT_("A", "Reboot", "Scheduled", "soon", ""),
		  EVENT_("B", "Preempt", "Scheduled", LATER, ""), "Reboot" },
		{ EVENT_("A", "Freeze", "Scheduled", LATER, ""),
		  EVENT_("B", "Freeze", "Scheduled", SOONER, ",\"DurationInSeconds\":9"), "Freeze" },
	};
	char text[1200];
	struct played p;

	(void)state;
	for (size_t i = 0; i < 2 * sizeof row / sizeof *row; i++) {
		play(&p, "azure");
		assert_false(says(&p, OK_("", "myspotvm")));
		snprintf(text, sizeof text, EVENTS("1", "%s,%s"), i % 2 ? row[i / 2].other : row[i / 2].first,
			i % 2 ? row[i / 2].first : row[i / 2].other);
		assert_true(says(&p, text));
		CHECK(!strcmp(p.notice.text, row[i / 2].text) && !strcmp(p.w.standing.id, "A"), "row %zu: %s",
			i,
			p.notice.text);
	}
	/* at once; in the usual time */
	play(&p, "azure");
	assert_false(says(&p, OK_("", "myspotvm")));
	assert_true(says(&p, EVENTS("1", EVENT_("A", "Reboot", "Scheduled", "soon", ""))));
	NOTICE(&p, PREEMPT, 30 * S, "Reboot");
	/* another event of that kind that has begun is another one */
	assert_true(says(&p, EVENTS("2", EVENT_("B", "Reboot", "Started", "", ""))));
	NOTICE(&p, PREEMPT, 0, "Reboot");
	assert_true(says(&p, EVENTS("3", EVENT_("B", "Freeze", "Started", "", ""))));
	NOTICE(&p, RISK, -1, "Freeze");
	assert_true(says(&p, EVENTS("4", EVENT_("F", "Freeze", "Scheduled", LATER,
		",\"DurationInSeconds\":10"))));
	assert_int_equal(p.notice.kind, HD_NOTICE_PREEMPT);
}

static void azure_hears_when_nothing_stands_in_its_way(void **state)
{
	struct played p;

	(void)state;
	play(&p, "azure");
	assert_false(says(&p, OK_("", "myspotvm")));
	assert_true(says(&p, EVENTS("1", EVENT_("A1", "Preempt", "Scheduled", "Mon, 18 Sep 2017 08:20:32 GMT",
		""))));
	assert_false(hd_notice_watch_approve(&p.w, &p.ask));
	p.w.settings.approve = true;
	assert_true(hd_notice_watch_approve(&p.w, &p.ask));
	assert_string_equal(p.ask.method, "POST");
	assert_string_equal(p.ask.target, "/metadata/scheduledevents?api-version=2020-07-01");
	assert_string_equal(p.ask.lines, "Metadata: true\r\nContent-Type: application/json\r\n");
	assert_string_equal(p.ask.body, "{\"StartRequests\":[{\"EventId\":\"A1\"}]}");
	assert_false(says(&p, EVENTS("2", EVENT_("A1", "Preempt", "Started", "", ""))));
	assert_false(hd_notice_watch_approve(&p.w, &p.ask));
	play(&p, "ec2");
	p.w.settings.approve = true;
	assert_false(says(&p, OK_("", TOKEN)));
	assert_true(says(&p, TERMINATE));
	assert_false(hd_notice_watch_approve(&p.w, &p.ask));
}

static bool signalled(struct played *p, const char *name, const char *signal, char *const *environment)
{
	play(p, name);
	assert_int_equal(hd_notice_watch_next(&p->w), INT64_MAX);
	return hd_notice_watch_signal(&p->w, signal, environment, p->now_ns, p->wall_ns, &p->notice);
}

static void signals_have_the_lead_of_their_sender(void **state)
{
	static char *const slurm[] = { "PATH=/bin", "SLURM_JOB_ID=7", "SLURM_JOB_END_TIME=1505722860", NULL };
	static char *const bad[] = { "SLURM_JOB_ID=7", "SLURM_JOB_END_TIME=soon", NULL };
	static char *const bare[] = { "SLURM_JOB_ID=7", NULL };
	struct played p;

	(void)state;
	assert_true(signalled(&p, "slurm", "SIGUSR1", slurm));
	NOTICE(&p, PREEMPT, 60 * S, "SIGUSR1");
	assert_true(p.notice.of_process);
	assert_true(signalled(&p, "slurm", "SIGUSR1", bare));
	NOTICE(&p, PREEMPT, 30 * S, "SIGUSR1");
	assert_true(signalled(&p, "slurm", "SIGUSR2", bad));
	NOTICE(&p, PREEMPT, 30 * S, "SIGUSR2");
	assert_true(signalled(&p, "slurm", "SIGTERM", slurm));
	NOTICE(&p, PREEMPT, 30 * S, "SIGTERM");
	assert_false(hd_notice_watch_signal(&p.w, "SIGTERM", slurm, p.now_ns, p.wall_ns, &p.notice));
	assert_true(signalled(&p, "k8s", "SIGTERM", bare));
	NOTICE(&p, PREEMPT, 30 * S, "SIGTERM");
	assert_true(signalled(&p, "signal", "SIGHUP", bare));
	NOTICE(&p, PREEMPT, 10 * S, "SIGHUP");
	assert_true(p.notice.of_process);
	play(&p, "slurm");
	p.w.settings.grace_ns = 300 * S;
	assert_true(hd_notice_watch_signal(&p.w, "SIGTERM", slurm, p.now_ns, p.wall_ns, &p.notice));
	NOTICE(&p, PREEMPT, 300 * S, "SIGTERM");
	play(&p, "ec2");
	assert_false(hd_notice_watch_signal(&p.w, "SIGTERM", slurm, p.now_ns, p.wall_ns, &p.notice));
}

static void a_file_by_hand_counts_until_a_minute_after_its_end(void **state)
{
	char text[HD_HAND_TEXT], answer[HD_HAND_TEXT + 40];
	struct played p;

	(void)state;
	play(&p, "hand");
	assert_false(says(&p, NO_("404 none")));
	size_t len = hd_hand_print(WALL + 30 * S, text);
	assert_int_equal(len, strlen(text));
	snprintf(answer, sizeof answer, OK_("", "%s"), text);
	assert_true(says(&p, answer));
	NOTICE(&p, PREEMPT, 30 * S - S / 4, "stop --local");
	(void)hd_hand_print(0, text);
	snprintf(answer, sizeof answer, OK_("", "%s"), text);
	assert_true(says(&p, answer));
	NOTICE(&p, WITHDRAWN, -1, "stop --local");
	(void)hd_hand_print(WALL - 61 * S, text);
	snprintf(answer, sizeof answer, OK_("", "%s"), text);
	assert_false(says(&p, answer));
	(void)hd_hand_print(WALL - 50 * S, text);
	snprintf(answer, sizeof answer, OK_("", "%s"), text);
	assert_true(says(&p, answer));
	NOTICE(&p, PREEMPT, 0, "stop --local");
	assert_false(says(&p, OK_("", "{\"notice\":\"preempt\"}")));
	assert_false(says(&p, OK_("", "{\"notice\":\"maybe\",\"ends_unix_ms\":5}")));
}

static void what_is_malformed_says_nothing(void **state)
{
	static const struct { const char *source, *first, *bad; } row[] = {
		{ "ec2", OK_("", TOKEN), OK_("", "") }, { "ec2", OK_("", TOKEN), OK_("",
			"{\"action\":\"termin") },
		{ "ec2", OK_("", TOKEN), OK_("", "{\"action\":7,\"time\":\"2017-09-18T08:22:00Z\"}") },
		{ "ec2", OK_("", TOKEN), OK_("", "[\"terminate\"]") },
		{ "ec2", OK_("", TOKEN), OK_("", "<html>not found</html>") },
		{ "ec2", OK_("", TOKEN), OK_("", "{\"time\":\"2017-09-18T08:22:00Z\"}") },
		{ "ec2", OK_("", TOKEN), NO_("500 Internal Server Error") },
		{ "ec2", OK_("", TOKEN), "HTTP/1.1 302 Found\r\nLocation: http://elsewhere/\r\n\r\n" },
		{ "ec2", NULL, OK_("", "") }, { "ec2", NULL, OK_("", "two words") },
		{ "ec2", NULL, OK_("", "a\r\nX-Evil: 1") }, { "ec2", NULL, NO_("404 Not Found") },
		{ "ec2-rebalance", OK_("", TOKEN), OK_("", "{}") },
		{ "ec2-rebalance", OK_("", TOKEN), OK_("", "{\"noticeTime\":\"soon\"}") },
		{ "gce", NULL, GOOGLE("1", "") }, { "gce", NULL, GOOGLE("1", "MAYBE") },
		{ "gce", NULL, NO_("404 Not Found") }, { "gce-maintenance", NULL, GOOGLE("1", "FALSE") },
		{ "azure", NULL, OK_("", "") }, { "azure", NULL, OK_("", "a\nb") },
		{ "azure", OK_("", "vm"), OK_("", "{\"DocumentIncarnation\":1}") },
		{ "azure", OK_("", "vm"), OK_("", "{\"Events\":{}}") },
		{ "azure", OK_("", "vm"), OK_("", "{\"Events\":[7]}") },
		{ "azure", OK_("", "vm"), NO_("410 Gone") },
	};
	struct played p;

	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		play(&p, row[i].source);
		if (row[i].first)
			assert_false(says(&p, row[i].first));
		CHECK(!says(&p, row[i].bad), "row %zu", i);
		CHECK(p.said.text[0] && p.w.fails == 1, "row %zu", i);
		CHECK(hd_notice_watch_next(&p.w) > p.now_ns, "row %zu", i);
	}
	/* a date that cannot be read does not make an interruption untrue */
	play(&p, "ec2");
	assert_false(says(&p, OK_("", TOKEN)));
	assert_true(says(&p, OK_("", "{\"action\":\"stop\",\"time\":\"soon\"}")));
	NOTICE(&p, PREEMPT, 120 * S, "stop");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ec2_is_asked_with_a_token_and_says_when_the_instance_goes),
		cmocka_unit_test(a_token_is_renewed_at_half_its_life_and_when_it_is_refused),
		cmocka_unit_test(a_token_that_cannot_be_renewed_is_used_to_its_end),
		cmocka_unit_test(a_service_that_is_switched_off_is_not_asked_again),
		cmocka_unit_test(a_rebalance_recommendation_is_a_risk_without_an_end),
		cmocka_unit_test(gce_is_waited_for_and_must_name_its_flavor),
		cmocka_unit_test(host_maintenance_ends_an_instance_or_moves_it),
		cmocka_unit_test(azure_tells_of_its_own_machine_alone),
		cmocka_unit_test(of_azures_events_the_one_that_takes_the_machine_away_first_counts),
		cmocka_unit_test(of_two_events_of_azure_one_counts_in_whatever_order),
		cmocka_unit_test(azure_hears_when_nothing_stands_in_its_way),
		cmocka_unit_test(signals_have_the_lead_of_their_sender),
		cmocka_unit_test(a_file_by_hand_counts_until_a_minute_after_its_end),
		cmocka_unit_test(what_is_malformed_says_nothing),
	};
	return cmocka_run_group_tests_name("source", tests, NULL, NULL);
}
