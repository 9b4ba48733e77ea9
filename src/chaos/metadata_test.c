/* The services that are played, asked as the documentation of the clouds says; and the agent of a process
 * against them. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "sys/thread.h"
#include "worker/notice_agent.h"
#include "chaos/metadata_server.h"
#include "tests/check.h"

#define S INT64_C(1000000000)
#define WALL (INT64_C(1505722800) * S)    /* 2017-09-18T08:20:00Z */

struct asked {
	struct hd_metadata m;
	int64_t now_ns, came_ns, until_ns;
	enum hd_err err;
	char out[2048];
	const char *body;
	int status;
};

static void happens(struct asked *a, const char *line)
{
	struct hd_metadata_event event;
	struct hd_diag diag = { "" };
	enum hd_err err = hd_metadata_read(line, strlen(line), &event, &diag);

	CHECK(!err, "%s: %s", line, diag.text);
	assert_true(hd_metadata_add(&a->m, &event));
	(void)hd_metadata_turn(&a->m, a->now_ns, WALL + a->now_ns);
}

static int ask(struct asked *a, const char *text)
{
	struct hd_http_head head;
	struct hd_text out;

	CHECK(!hd_http_read_head(HD_HTTP_A_REQUEST, text, strlen(text), &head), "%s", text);
	const struct hd_metadata_request r = { .head = &head, .body = text + head.len_bytes,
		.came_ns = a->came_ns };
	hd_text_fixed(&out, a->out, sizeof a->out);
	a->err = hd_metadata_answer(&a->m, &r, a->now_ns, WALL + a->now_ns, &out, &a->until_ns);
	a->status = a->err ? -1 : (a->out[9] - '0') * 100 + (a->out[10] - '0') * 10 + a->out[11] - '0';
	a->body = a->err ? "" : strstr(a->out, "\r\n\r\n");
	a->body = a->body && *a->body ? a->body + 4 : "";
	return a->status;
}

#define GET(path, lines) "GET " path " HTTP/1.1\r\n" lines "\r\n"
#define TOKEN_OF(n) "X-aws-ec2-metadata-token: n3-" n "==\r\n"
#define ACTION "/n3/latest/meta-data/spot/instance-action"

static void ec2_wants_a_token_that_lives(void **state)
{
	static const char put[] = "PUT /n3/latest/api/token HTTP/1.1\r\n"
		"X-aws-ec2-metadata-token-ttl-seconds: ";
	static struct asked a;
	char text[200];

	(void)state;
	hd_metadata_init(&a.m, 0);
	assert_int_equal(ask(&a, GET(ACTION, "")), 401);
	for (int i = 0; i < 3; i++) {
		snprintf(text, sizeof text, "%s%s\r\n\r\n", put, ((const char *const[]){ "0", "21601",
			"x" })[i]);
		assert_int_equal(ask(&a, text), 400);
	}
	snprintf(text, sizeof text, "%s60\r\n\r\n", put);
	assert_int_equal(ask(&a, text), 200);
	assert_string_equal(a.body, "n3-1==");
	assert_int_equal(ask(&a, GET(ACTION, TOKEN_OF("1"))), 404);
	assert_int_equal(ask(&a, text), 200);
	assert_int_equal(ask(&a, GET(ACTION, TOKEN_OF("1"))), 404);        /* both count */
	assert_int_equal(ask(&a, GET(ACTION, TOKEN_OF("3"))), 401);
	happens(&a, "{\"node\":\"n3\",\"do\":\"notice\",\"cloud\":\"ec2\",\"lead\":90,\"action\":\"stop\"}");
	assert_int_equal(ask(&a, GET(ACTION, TOKEN_OF("2"))), 200);
	assert_string_equal(a.body, "{\"action\":\"stop\",\"time\":\"2017-09-18T08:21:30Z\"}");
	assert_int_equal(ask(&a, GET("/n4/latest/meta-data/spot/instance-action", TOKEN_OF("2"))), 401);
	a.now_ns = 60 * S;
	assert_int_equal(ask(&a, GET(ACTION, TOKEN_OF("2"))), 401);
	assert_int_equal(ask(&a, text), 200);
	happens(&a, "{\"node\":\"n3\",\"do\":\"expire\"}");
	assert_int_equal(ask(&a, GET(ACTION, TOKEN_OF("3"))), 401);
	assert_int_equal(ask(&a, GET("/latest/api/token", "")), 404);
}

#define PREEMPTED "/n/computeMetadata/v1/instance/preempted"
#define FLAVOR "Metadata-Flavor: Google\r\n"

static void gce_wants_its_flavor_and_holds_a_request_until_something_changes(void **state)
{
	static struct asked a;
	char text[300], etag[40] = "";

	(void)state;
	hd_metadata_init(&a.m, 0);
	assert_int_equal(ask(&a, GET(PREEMPTED, "")), 403);
	assert_int_equal(ask(&a, GET(PREEMPTED, FLAVOR)), 200);
	assert_string_equal(a.body, "FALSE");
	assert_non_null(strstr(a.out, "Metadata-Flavor: Google\r\n"));
	snprintf(etag, sizeof etag, "%.16s", strstr(a.out, "ETag: ") + 6);
	snprintf(text, sizeof text,
		"GET " PREEMPTED "?wait_for_change=true&timeout_sec=60&last_etag=%s HTTP/1.1\r\n"
		FLAVOR "\r\n", etag);
	assert_int_equal(ask(&a, text), -1);
	assert_int_equal(a.err, HD_E_AGAIN);
	assert_int_equal(a.until_ns, 60 * S);
	a.now_ns = 59 * S;
	happens(&a, "{\"t\":59,\"node\":\"n\",\"do\":\"notice\",\"cloud\":\"gce\"}");
	assert_int_equal(ask(&a, text), 200);
	assert_string_equal(a.body, "TRUE");
	a.now_ns = 61 * S;
	happens(&a, "{\"node\":\"n\",\"do\":\"withdraw\"}");
	assert_int_equal(ask(&a, text), 200);
	assert_string_equal(a.body, "FALSE");
	happens(&a, "{\"node\":\"n\",\"do\":\"migrate\",\"cloud\":\"gce\"}");
	assert_int_equal(ask(&a, GET("/n/computeMetadata/v1/instance/maintenance-event", FLAVOR)), 200);
	assert_string_equal(a.body, "MIGRATE_ON_HOST_MAINTENANCE");
}

#define EVENTS "/vm/metadata/scheduledevents?api-version=2020-07-01"

static void azure_counts_incarnations_and_takes_approvals(void **state)
{
	static const char start[] = "POST " EVENTS " HTTP/1.1\r\nMetadata: true\r\n\r\n"
		"{\"StartRequests\":[{\"EventId\":\"vm-event-1\"}]}";
	static struct asked a;

	(void)state;
	hd_metadata_init(&a.m, 0);
	assert_int_equal(ask(&a, GET(EVENTS, "")), 400);
	assert_int_equal(ask(&a, GET("/vm/metadata/scheduledevents", "Metadata: true\r\n")), 400);
	assert_int_equal(ask(&a, GET("/vm/metadata/instance/compute/name?api-version=2020-07-01&format=text",
		"Metadata: true\r\n")), 200);
	assert_string_equal(a.body, "vm");
	assert_int_equal(ask(&a, GET(EVENTS, "Metadata: true\r\n")), 200);
	assert_string_equal(a.body, "{\"DocumentIncarnation\":1,\"Events\":[]}");
	assert_int_equal(ask(&a, start), 400);
	happens(&a, "{\"node\":\"vm\",\"do\":\"notice\",\"cloud\":\"azure\",\"lead\":40,\"late\":0}");
	assert_int_equal(ask(&a, GET(EVENTS, "Metadata: true\r\n")), 200);
	assert_string_equal(a.body, "{\"DocumentIncarnation\":2,\"Events\":[{\"EventId\":\"vm-event-1\","
		"\"EventType\":\"Preempt\",\"ResourceType\":\"VirtualMachine\",\"Resources\":[\"vm\"],"
		"\"EventStatus\":\"Scheduled\",\"NotBefore\":\"Mon, 18 Sep 2017 08:20:40 GMT\","
		"\"Description\":\"\",\"EventSource\":\"Platform\",\"DurationInSeconds\":-1}]}");
	assert_int_equal(ask(&a, start), 200);
	assert_int_equal(a.m.approved, 1);
	assert_int_equal(ask(&a, GET(EVENTS, "Metadata: true\r\n")), 200);
	assert_non_null(strstr(a.body, "\"EventStatus\":\"Started\",\"NotBefore\":\"\""));
}

#define PREEMPTED_OF(n) GET("/" n "/computeMetadata/v1/instance/preempted", "Metadata-Flavor: Google\r\n")

/* However many come and go: what counts is how many are there. */
static void a_machine_that_is_gone_makes_room(void **state)
{
	static struct asked a;
	char line[80], text[128];
	(void)state;

	hd_metadata_init(&a.m, 0);
	for (int i = 0; i < HD_METADATA_NODES + 3; i++) {
		(void)snprintf(line, sizeof line, "{\"node\":\"n%d\",\"do\":\"notice\"}", i);
		(void)snprintf(text, sizeof text,
			"GET /n%d/computeMetadata/v1/instance/preempted HTTP/1.1\r\n"
			"Metadata-Flavor: Google\r\n\r\n", i);
		happens(&a, line);
		CHECK(ask(&a, text) == (i <= HD_METADATA_NODES ? 200 : 404), "machine %d: %d", i, a.status);
		if (i == 1)
			hd_metadata_forget(&a.m, "n1");
		hd_metadata_forget(&a.m, "n9999");
	}
	assert_int_equal(ask(&a, PREEMPTED_OF("n0")), 200);
	assert_string_equal(a.body, "TRUE");
	/* that of n1 was taken by the first that found no other */
	assert_int_equal(ask(&a, PREEMPTED_OF("n1024")), 200);
	assert_int_equal(ask(&a, PREEMPTED_OF("n1")), 404);
}

static void a_script_says_what_is_wrong_with_it(void **state)
{
	static const char *const bad[] = { "", "[]", "{}", "{\"do\":\"notice\"}", "{\"node\":\"n\"}",
		"{\"node\":\"n\",\"do\":\"dance\"}", "{\"node\":\"a/b\",\"do\":\"heal\"}",
		"{\"node\":\"\",\"do\":\"heal\"}", "{\"node\":\"n\",\"do\":\"notice\",\"cloud\":\"ibm\"}",
		"{\"node\":\"n\",\"do\":\"notice\",\"t\":-1}",
		"{\"node\":\"n\",\"do\":\"notice\",\"lead\":\"nan\"}",
		"{\"node\":\"n\",\"do\":\"fail\",\"status\":7}",
		"{\"node\":\"n\",\"do\":\"heal\",\"leed\":3}",
		"{\"node\":\"n\",\"do\":\"notice\",\"action\":\"explode\"}" };
	struct hd_metadata_event event;

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct hd_diag diag = { "" };
		CHECK(hd_metadata_read(bad[i], strlen(bad[i]), &event, &diag) == HD_E_INPUT && diag.text[0],
			"%s",
			bad[i]);
	}
}

/* ---- the agent against the server ---- */

struct met {
	struct hd_metadata_server *server;
	struct hd_notice_agent *agent;
	struct hd_clock clock;
	struct hd_fs fs;
	struct hd_notice_news news;
	char base[160];
};

static void open_server(struct met *m)
{
	hd_clock_real(&m->clock);
	hd_fs_real(&m->fs);
	m->server = hd_alloc(sizeof *m->server);
	assert_non_null(m->server);
	assert_int_equal(hd_metadata_open(m->server, &m->clock, "tcp:127.0.0.1:0", NULL), HD_OK);
}

static void open_agent(struct met *m, const char *source, bool approve)
{
	snprintf(m->base, sizeof m->base, "http://%s/n", m->server->listener.addr + 4);
	const struct hd_notice_agent_spec spec = { .clock = &m->clock, .fs = &m->fs, .source = source,
		.base = m->base,
		.settings = { .every_ns = S / 50, .approve = approve }, .file = "/nonexistent/notice" };
	assert_int_equal(hd_notice_agent_open(&m->agent, &spec, NULL), HD_OK);
	assert_non_null(m->agent);
}

static void close_both(struct met *m)
{
	hd_notice_agent_close(m->agent);
	hd_metadata_close(m->server);
	hd_free(m->server);
}

static void plays(struct met *m, const char *line)
{
	struct hd_metadata_event event;

	assert_int_equal(hd_metadata_read(line, strlen(line), &event, NULL), HD_OK);
	assert_true(hd_metadata_add(&m->server->metadata, &event));
}

/* Serves until the agent has news; a minute is no time at all for what never comes. */
static void hears(struct met *m)
{
	int64_t until_ns = hd_clock_now_ns(&m->clock) + 60 * S;

	while (!hd_notice_agent_fetch(m->agent, &m->news)) {
		assert_true(hd_clock_now_ns(&m->clock) < until_ns);
		assert_int_equal(hd_metadata_poll(m->server, hd_clock_now_ns(&m->clock) + S / 200, NULL),
			HD_OK);
	}
}

/* Serves so many requests more. */
static void serves(struct met *m, uint64_t n)
{
	for (n += m->server->requests; m->server->requests < n;)
		assert_int_equal(hd_metadata_poll(m->server, hd_clock_now_ns(&m->clock) + S / 200, NULL),
		HD_OK);
}

static void a_notice_of_each_cloud_is_heard_and_taken_back(void **state)
{
	static const struct { const char *source, *notice, *word; int64_t lead_s; } row[] = {
		{ "ec2", "{\"node\":\"n\",\"do\":\"notice\",\"cloud\":\"ec2\"}", "terminate", 120 },
		{ "gce", "{\"node\":\"n\",\"do\":\"notice\",\"cloud\":\"gce\"}", "preempted", 30 },
		{ "azure", "{\"node\":\"n\",\"do\":\"notice\",\"cloud\":\"azure\"}", "Preempt", 30 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct met m = { .server = NULL };
		open_server(&m);
		open_agent(&m, row[i].source, false);
		serves(&m, 3);
		assert_false(hd_notice_agent_leaves(m.agent, NULL));
		plays(&m, row[i].notice);
		hears(&m);
		assert_int_equal(m.news.notice.kind, HD_NOTICE_PREEMPT);
		assert_string_equal(m.news.notice.source, row[i].source);
		assert_string_equal(m.news.notice.text, row[i].word);
		assert_in_range(m.news.lead_ns, row[i].lead_s * S - 2 * S, row[i].lead_s * S);
		assert_true(hd_notice_agent_leaves(m.agent, NULL));
		serves(&m, row[i].source[0] == 'g' ? 0 : 4);      /* the same again is no news */
		plays(&m, "{\"node\":\"n\",\"do\":\"withdraw\"}");
		hears(&m);
		assert_int_equal(m.news.notice.kind, HD_NOTICE_WITHDRAWN);
		assert_false(hd_notice_agent_leaves(m.agent, NULL));
		close_both(&m);
	}
}

static void expired_tokens_are_fetched_again_and_late_notices_are_heard(void **state)
{
	struct met m = { .server = NULL };

	(void)state;
	open_server(&m);
	open_agent(&m, "ec2", false);
	serves(&m, 4);
	plays(&m, "{\"node\":\"n\",\"do\":\"expire\"}");
	plays(&m, "{\"node\":\"n\",\"do\":\"notice\",\"cloud\":\"ec2\",\"lead\":60,\"late\":0.05}");
	hears(&m);
	assert_int_equal(m.news.notice.kind, HD_NOTICE_PREEMPT);
	assert_in_range(m.news.lead_ns, 58 * S, 60 * S);
	assert_in_range(m.server->metadata.node[0].tokens, 3, 4);         /* of two sources, and again */
	close_both(&m);
}

static void a_service_that_fails_is_said_once_and_takes_nothing_back(void **state)
{
	static const char *const fails[] = { "{\"node\":\"n\",\"do\":\"fail\",\"status\":500}",
		"{\"node\":\"n\",\"do\":\"fail\",\"status\":0}",
		"{\"node\":\"n\",\"do\":\"fail\",\"status\":302}" };

	(void)state;
	for (size_t i = 0; i < sizeof fails / sizeof *fails; i++) {
		struct met m = { .server = NULL };
		open_server(&m);
		plays(&m, "{\"node\":\"n\",\"do\":\"notice\",\"cloud\":\"ec2\"}");
		open_agent(&m, "ec2", false);
		hears(&m);
		assert_int_equal(m.news.notice.kind, HD_NOTICE_PREEMPT);
		plays(&m, fails[i]);
		hears(&m);
		assert_int_equal(m.news.notice.kind, HD_NOTICE_NONE);
		assert_non_null(strstr(m.news.line, "asked again and again"));
		assert_true(hd_notice_agent_leaves(m.agent, NULL));
		close_both(&m);
	}
}

/* A signal is a request of its own, not a notice to leave for; what is left is by the first end of both. */
static void a_signal_says_how_much_is_left(void **state)
{
	struct met m = { .server = NULL };
	int64_t left_ns = 0;

	(void)state;
	assert_false(hd_notice_agent_left(NULL, &left_ns));
	open_server(&m);
	open_agent(&m, "ec2", false);
	serves(&m, 3);
	assert_false(hd_notice_agent_left(m.agent, &left_ns));
	plays(&m, "{\"node\":\"n\",\"do\":\"notice\",\"cloud\":\"ec2\",\"lead\":120}");
	hears(&m);
	assert_true(hd_notice_agent_left(m.agent, &left_ns));
	assert_in_range(left_ns, 60 * S, 120 * S);
	hd_notice_agent_signal(m.agent, SIGTERM);
	assert_true(hd_notice_agent_left(m.agent, &left_ns));
	assert_in_range(left_ns, 1, 30 * S);
	assert_true(hd_notice_agent_leaves(m.agent, &left_ns));
	assert_in_range(left_ns, 60 * S, 120 * S);
	close_both(&m);
}

/* A service that never answers does not hold up the end of a process. */
static void silence_does_not_keep_an_agent(void **state)
{
	struct met m = { .server = NULL };

	(void)state;
	open_server(&m);
	plays(&m, "{\"node\":\"n\",\"do\":\"silence\"}");
	open_agent(&m, "azure", true);
	serves(&m, 1);
	assert_false(hd_notice_agent_leaves(m.agent, NULL));
	close_both(&m);
}

static void auto_finds_the_cloud_that_answers(void **state)
{
	struct met m = { .server = NULL };

	(void)state;
	open_server(&m);
	open_agent(&m, "auto", false);
	hears(&m);
	assert_int_equal(m.news.notice.kind, HD_NOTICE_NONE);
	assert_string_equal(m.news.line, "elastic.notice.source auto: ec2");
	plays(&m, "{\"node\":\"n\",\"do\":\"rebalance\"}");
	hears(&m);
	assert_int_equal(m.news.notice.kind, HD_NOTICE_RISK);
	assert_string_equal(m.news.notice.source, "ec2-rebalance");
	assert_false(hd_notice_agent_leaves(m.agent, NULL));
	close_both(&m);
}

static void close_agent(void *met) { hd_notice_agent_close(((struct met *)met)->agent); }

static void azure_hears_that_the_process_has_left(void **state)
{
	struct met m = { .server = NULL };
	struct hd_thread thread = { 0 };

	(void)state;
	open_server(&m);
	plays(&m, "{\"node\":\"n\",\"do\":\"notice\",\"cloud\":\"azure\"}");
	open_agent(&m, "azure", true);
	hears(&m);
	assert_int_equal(m.server->metadata.approved, 0);
	assert_int_equal(hd_thread_start(&thread, "close", -1, close_agent, &m, NULL), HD_OK);
	while (!m.server->metadata.approved)
		assert_int_equal(hd_metadata_poll(m.server, hd_clock_now_ns(&m.clock) + S / 200, NULL),
		HD_OK);
	assert_int_equal(hd_metadata_poll(m.server, hd_clock_now_ns(&m.clock) + S / 100, NULL), HD_OK);
	hd_thread_join(&thread);
	m.agent = NULL;
	close_both(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ec2_wants_a_token_that_lives),
		cmocka_unit_test(gce_wants_its_flavor_and_holds_a_request_until_something_changes),
		cmocka_unit_test(azure_counts_incarnations_and_takes_approvals),
		cmocka_unit_test(a_machine_that_is_gone_makes_room),
		cmocka_unit_test(a_script_says_what_is_wrong_with_it),
		cmocka_unit_test(a_notice_of_each_cloud_is_heard_and_taken_back),
		cmocka_unit_test(expired_tokens_are_fetched_again_and_late_notices_are_heard),
		cmocka_unit_test(a_service_that_fails_is_said_once_and_takes_nothing_back),
		cmocka_unit_test(a_signal_says_how_much_is_left),
		cmocka_unit_test(silence_does_not_keep_an_agent),
		cmocka_unit_test(auto_finds_the_cloud_that_answers),
		cmocka_unit_test(azure_hears_that_the_process_has_left),
	};
	return cmocka_run_group_tests_name("metadata", tests, NULL, NULL);
}
