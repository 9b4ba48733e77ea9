/* Every source of notices against the services that are played, on a simulated clock: each is on time, late,
 * taken back, said again, malformed and silent for an hour. No time passes but by hand, so what a source may
 * take is exact: what is said is heard within one interval of asking. */
#include <stdio.h>
#include <string.h>

#include "notice/hand.h"
#include "notice/source.h"
#include "chaos/metadata.h"
#include "tests/check.h"

#define S INT64_C(1000000000)
#define WALL (INT64_C(1505722800) * S)    /* 2017-09-18T08:20:00Z */
#define HOUR (3600 * S)
enum { MOST_NEWS = 64 };

struct row {
	const char *source;               /* of list.h */
	const char *happens;              /* what is announced; without the end of the line */
	const char *word;
	enum hd_notice_kind kind;
	int64_t lead_s;                   /* -1: a risk */
	bool dated;                       /* the service says when: a late notice leaves less */
};

static const struct row rows[] = {
	{ "ec2", "{\"node\":\"n\",\"do\":\"notice\",\"cloud\":\"ec2\"", "terminate", HD_NOTICE_PREEMPT, 120,
	  true },
	{ "ec2-rebalance", "{\"node\":\"n\",\"do\":\"rebalance\"", "rebalance recommendation", HD_NOTICE_RISK,
	  -1, false },
	{ "gce", "{\"node\":\"n\",\"do\":\"notice\",\"cloud\":\"gce\"", "preempted", HD_NOTICE_PREEMPT, 30,
	  false },
	{ "gce-maintenance", "{\"node\":\"n\",\"do\":\"migrate\",\"cloud\":\"gce\"",
	  "MIGRATE_ON_HOST_MAINTENANCE", HD_NOTICE_RISK, -1, false },
	{ "gce-maintenance", "{\"node\":\"n\",\"do\":\"maintain\"", "TERMINATE_ON_HOST_MAINTENANCE",
	  HD_NOTICE_PREEMPT, 60, false },
	{ "azure", "{\"node\":\"n\",\"do\":\"notice\",\"cloud\":\"azure\"", "Preempt", HD_NOTICE_PREEMPT, 30,
	  true },
};
enum { N_ROWS = sizeof rows / sizeof *rows };

/* ---- a watch, its service, and time */

struct news { struct hd_notice notice; int64_t at_ns; };

struct played {
	struct hd_metadata m;
	struct hd_notice_watch w;
	struct hd_notice_ask ask;
	char request[2048];
	struct hd_metadata_request r;     /* head NULL: none is under way */
	struct hd_http_head head;
	int64_t now_ns;
	uint32_t n, said;
	struct news news[MOST_NEWS];
	char line[600];                   /* the last that was said */
};

static struct played p;

static void begin(const struct row *row)
{
	p = (struct played){ .now_ns = 1000 * S };
	hd_metadata_init(&p.m, p.now_ns);
	hd_notice_watch_init(&p.w, hd_notice_find(row->source), &(struct hd_notice_settings){ 0 }, p.now_ns);
}

static void happens(const char *line)
{
	struct hd_metadata_event event;
	struct hd_diag diag = { "" };
	enum hd_err err = hd_metadata_read(line, strlen(line), &event, &diag);

	CHECK(!err, "%s: %s", line, diag.text);
	event.at_ns += p.now_ns - p.m.began_ns;   /* from now on */
	assert_true(hd_metadata_add(&p.m, &event));
}

/* The row's event, with more of its members. */
static void announce(const struct row *row, const char *more)
{
	char line[300];

	(void)snprintf(line, sizeof line, "%s%s}", row->happens, more);
	happens(line);
}

static void take(bool heard, const struct hd_notice *notice, const struct hd_diag *said)
{
	if (said->text[0]) {
		p.said++;
		(void)snprintf(p.line, sizeof p.line, "%s", said->text);
	}
	if (!heard)
		return;
	assert_in_range(p.n, 0, MOST_NEWS - 1);
	p.news[p.n++] = (struct news){ *notice, p.now_ns };
}

/* The service has answered `text`, which may be garbage. */
static void answered(const char *text, size_t len)
{
	static char body[HD_NOTICE_BODY];
	struct hd_notice_answer a = { .what = p.ask.what, .body = body, .now_ns = p.now_ns,
		.wall_ns = WALL + p.now_ns };
	struct hd_http_head head;
	struct hd_notice notice = { 0 };
	struct hd_diag said = { "" };

	p.r.head = NULL;
	if (hd_http_read_head(HD_HTTP_AN_ANSWER, text, len, &head) ||
		hd_http_read_body(&head, text + head.len_bytes, len - head.len_bytes, true, body, sizeof body,
			&a.len)) {
		hd_notice_watch_failed(&p.w, p.now_ns, "no answer", &said);
		take(false, &notice, &said);
		return;
	}
	a.status = head.status;
	a.head = &head;
	const bool heard = hd_notice_watch_answer(&p.w, &a, &notice, &said);
	take(heard, &notice, &said);
}

static void ask(void)
{
	hd_notice_watch_ask(&p.w, p.now_ns, &p.ask);
	(void)snprintf(p.request, sizeof p.request, "%s /n%s HTTP/1.1\r\n%s\r\n", p.ask.method, p.ask.target,
		p.ask.lines);
	assert_int_equal(hd_http_read_head(HD_HTTP_A_REQUEST, p.request, strlen(p.request), &p.head), HD_OK);
	p.r = (struct hd_metadata_request){ .head = &p.head, .body = p.ask.body, .came_ns = p.now_ns };
}

/* What is due now; when the next thing is. */
static int64_t turn(void)
{
	char out[4096];
	struct hd_text text;
	struct hd_diag said = { "" };
	int64_t next_ns = hd_metadata_turn(&p.m, p.now_ns, WALL + p.now_ns), until_ns;

	if (!p.r.head && hd_notice_watch_next(&p.w) <= p.now_ns)
		ask();
	if (!p.r.head) {
		const int64_t ask_ns = hd_notice_watch_next(&p.w);
		return ask_ns < next_ns ? ask_ns : next_ns;
	}
	hd_text_fixed(&text, out, sizeof out);
	if (hd_metadata_answer(&p.m, &p.r, p.now_ns, WALL + p.now_ns, &text, &until_ns) != HD_E_AGAIN) {
		answered(text.at, text.len);
		return p.now_ns;
	}
	const int64_t end_ns = p.r.came_ns + p.ask.timeout_ns;
	if (p.now_ns >= end_ns) {
		p.r.head = NULL;
		hd_notice_watch_failed(&p.w, p.now_ns, "no answer", &said);
		take(false, NULL, &said);
		return p.now_ns;
	}
	next_ns = until_ns < next_ns ? until_ns : next_ns;
	return end_ns < next_ns ? end_ns : next_ns;
}

static void passes(int64_t ns)
{
	const int64_t end_ns = p.now_ns + ns;

	for (;;) {
		const int64_t next_ns = turn();
		if (next_ns > end_ns)
			break;
		p.now_ns = next_ns;
	}
	p.now_ns = end_ns;
}

/* Between two of its questions, at the most; one that waits for a change is answered at once. */
static int64_t interval(const struct row *row) { return hd_notice_find(row->source)->every_ns; }

static bool is_news(const struct row *row, uint32_t i, int64_t said_ns, int64_t within_ns)
{
	return i < p.n && p.news[i].notice.kind == row->kind && !strcmp(p.news[i].notice.text, row->word) &&
		!strcmp(p.news[i].notice.source, row->source) && p.news[i].at_ns >= said_ns &&
		p.news[i].at_ns <= said_ns + within_ns;
}

/* By the monotonic clock, within the second to which services round. */
static bool ends_at(const struct row *row, uint32_t i, int64_t at_ns)
{
	const int64_t off = p.news[i].notice.ends_ns - at_ns;

	return row->lead_s < 0 ? p.news[i].notice.ends_ns == INT64_MAX : off > -S && off <= S;
}

static const int64_t odd_ns = 100 * S + S / 3;    /* not at a question */

static void each_is_heard_within_an_interval(void **state)
{
	(void)state;
	for (int i = 0; i < N_ROWS; i++) {
		begin(&rows[i]);
		passes(odd_ns);
		const int64_t said_ns = p.now_ns;
		announce(&rows[i], "");
		passes(60 * S);
		CHECK(p.n == 1 && is_news(&rows[i], 0, said_ns, interval(&rows[i])), "%s: %u news, the first "
			"after %lld ns: %s", rows[i].source, p.n, (long long)(p.news[0].at_ns - said_ns),
			p.news[0].notice.text);
		const int64_t from_ns = rows[i].dated ? said_ns : p.news[0].at_ns;
		CHECK(ends_at(&rows[i], 0, from_ns + rows[i].lead_s * S), "%s ends %lld s after",
			rows[i].source,
			(long long)((p.news[0].notice.ends_ns - said_ns) / S));
		CHECK(!p.said, "%s: %s", rows[i].source, p.line);
	}
}

/* A service that says it 20 s too late: where it says when, less is left; where it does not, the usual time
 * is taken for what is left. */
static void late_ones_leave_what_is_left(void **state)
{
	(void)state;
	for (int i = 0; i < N_ROWS; i++) {
		begin(&rows[i]);
		passes(odd_ns);
		const int64_t said_ns = p.now_ns + 20 * S;
		announce(&rows[i], ",\"late\":20");
		passes(20 * S - 1);
		CHECK(!p.n, "%s: heard before it was said", rows[i].source);
		passes(60 * S);
		CHECK(p.n == 1 && is_news(&rows[i], 0, said_ns, interval(&rows[i])), "%s: %u news",
			rows[i].source, p.n);
		const int64_t from_ns = rows[i].dated ? said_ns - 20 * S : p.news[0].at_ns;
		CHECK(ends_at(&rows[i], 0, from_ns + rows[i].lead_s * S), "%s ends %lld s after",
			rows[i].source,
			(long long)((p.news[0].notice.ends_ns - said_ns) / S));
	}
	/* later than the end: it is now */
	begin(&rows[0]);
	announce(&rows[0], ",\"lead\":10,\"late\":30");
	passes(60 * S);
	assert_true(p.n == 1 && p.news[0].notice.ends_ns == p.news[0].at_ns);
}

static void what_is_taken_back_is_heard_within_an_interval(void **state)
{
	(void)state;
	for (int i = 0; i < N_ROWS; i++) {
		begin(&rows[i]);
		announce(&rows[i], "");
		passes(odd_ns);
		const int64_t said_ns = p.now_ns;
		happens("{\"node\":\"n\",\"do\":\"withdraw\"}");
		passes(60 * S);
		CHECK(p.n == 2 && p.news[1].notice.kind == HD_NOTICE_WITHDRAWN &&
			p.news[1].notice.ends_ns == INT64_MAX && p.news[1].at_ns >= said_ns &&
			p.news[1].at_ns <= said_ns + interval(&rows[i]), "%s: %u news", rows[i].source, p.n);
		/* and said once more, it counts once more */
		announce(&rows[i], "");
		passes(60 * S);
		CHECK(p.n == 3 && p.news[2].notice.kind == rows[i].kind, "%s: %u news", rows[i].source, p.n);
	}
}

/* The same for an hour; other things change at the service meanwhile, so that one that waits is answered. */
static void what_is_said_again_is_no_news(void **state)
{
	(void)state;
	for (int i = 0; i < N_ROWS; i++) {
		begin(&rows[i]);
		announce(&rows[i], "");
		passes(60 * S);
		for (int k = 0; k < 60; k++) {
			happens("{\"node\":\"n\",\"do\":\"heal\"}");
			passes(60 * S);
		}
		CHECK(p.n == 1 && !p.said, "%s: %u news; %s", rows[i].source, p.n, p.line);
	}
}

/* For an hour, with a notice before it that stands, then with one that comes within it. Said once, and that
 * it answers again; what came meanwhile is heard once it is asked again, half a minute later at most. */
static void out_of_order(const char *fails)
{
	for (int i = 0; i < 2 * N_ROWS; i++) {
		const struct row *row = &rows[i / 2];
		const bool before = i % 2;
		begin(row);
		passes(odd_ns);
		if (before)
			announce(row, "");
		passes(60 * S);
		happens(fails);
		passes(HOUR / 2);
		if (!before)
			announce(row, "");
		passes(HOUR / 2);
		CHECK(p.n == before && p.said == 1 && strstr(p.line, "asked again and again"),
			"%s: %u news, %u "
			"said: %s", row->source, p.n, p.said, p.line);
		const int64_t healed_ns = p.now_ns;
		happens("{\"node\":\"n\",\"do\":\"heal\"}");
		passes(300 * S);
		CHECK(p.n == 1 && p.said == 2 && strstr(p.line, "answers again"), "%s: %u news, %u said: %s",
			row->source, p.n, p.said, p.line);
		CHECK(before || is_news(row, 0, healed_ns, HD_NOTICE_BACKOFF_NS + p.ask.timeout_ns +
			interval(row)), "%s: %lld s after", row->source,
			(long long)((p.news[0].at_ns - healed_ns) / S));
	}
}

static void garbage_for_an_hour_changes_nothing(void **state)
{
	(void)state;
	out_of_order("{\"node\":\"n\",\"do\":\"fail\",\"status\":0}");
	out_of_order("{\"node\":\"n\",\"do\":\"fail\",\"status\":500}");
}

static void silence_for_an_hour_changes_nothing(void **state)
{
	(void)state;
	out_of_order("{\"node\":\"n\",\"do\":\"silence\"}");
}

/* ---- a file by hand */

static struct hd_notice_watch hand;
static char file[HD_HAND_TEXT];

/* It is looked at; what there is, is `file`, or nothing. */
static bool looks(int64_t now_ns, struct hd_notice *notice, struct hd_diag *said)
{
	struct hd_notice_ask asked;
	const struct hd_notice_answer a = { .status = *file ? 200 : 404, .body = file, .len = strlen(file),
		.now_ns = now_ns, .wall_ns = WALL + now_ns };

	hd_notice_watch_ask(&hand, now_ns, &asked);
	return hd_notice_watch_answer(&hand, &a, notice, said);
}

static void a_file_by_hand_is_like_any_service(void **state)
{
	struct hd_notice notice = { 0 };
	struct hd_diag said = { "" };
	uint32_t news = 0, lines = 0;
	int64_t now_ns = 5 * S;
	(void)state;

	hd_notice_watch_init(&hand, hd_notice_find("hand"), &(struct hd_notice_settings){ 0 }, now_ns);
	/* silent, in its way: nothing is there for an hour */
	*file = '\0';
	for (; now_ns < HOUR; now_ns = hd_notice_watch_next(&hand))
		assert_false(looks(now_ns, &notice, &said));
	assert_string_equal(said.text, "");
	assert_true(hd_notice_watch_next(&hand) - now_ns <= S / 4);
	/* on time, and the same again */
	hd_hand_print(WALL + now_ns + 30 * S, file);
	assert_true(looks(now_ns, &notice, &said) && notice.kind == HD_NOTICE_PREEMPT);
	assert_in_range(notice.ends_ns - now_ns, 30 * S - S / 1000, 30 * S);
	for (int i = 0; i < 100; i++)
		assert_false(looks(now_ns = hd_notice_watch_next(&hand), &notice, &said));
	/* malformed for an hour: said once, and it stands */
	(void)snprintf(file, sizeof file, "{\"notice\":\"pre");
	for (const int64_t end_ns = now_ns + HOUR; now_ns < end_ns; lines += *said.text != 0) {
		said.text[0] = '\0';
		news += looks(now_ns = hd_notice_watch_next(&hand), &notice, &said);
	}
	assert_true(!news && lines == 1);
	/* taken back; then late: its end is over */
	hd_hand_print(0, file);
	assert_true(looks(now_ns = hd_notice_watch_next(&hand), &notice, &said));
	assert_int_equal(notice.kind, HD_NOTICE_WITHDRAWN);
	hd_hand_print(WALL + now_ns - 20 * S, file);
	assert_true(looks(now_ns = hd_notice_watch_next(&hand), &notice, &said));
	assert_true(notice.kind == HD_NOTICE_PREEMPT && notice.ends_ns == now_ns);
}

/* ---- signals: they cannot be taken back, and say nothing of when but by their sender */

static void signals_are_heard_once_late_and_with_an_end_that_makes_no_sense(void **state)
{
	static char *const on_time[] = { "SLURM_JOB_ID=7", "SLURM_JOB_END_TIME=1505722860", NULL };
	static char *const over[] = { "SLURM_JOB_ID=7", "SLURM_JOB_END_TIME=1505722700", NULL };
	static char *const garbage[] = { "SLURM_JOB_ID=7", "SLURM_JOB_END_TIME=1e99,;", NULL };
	static char *const bare[] = { NULL };
	static const struct { const char *source,
		*signal; char *const *environment; int64_t lead_s; } row[] = {
		{ "slurm", "SIGUSR1", on_time, 60 }, { "slurm", "SIGUSR1", over, 0 },
		{ "slurm", "SIGUSR1", garbage, 30 }, { "slurm", "SIGTERM", on_time, 30 },
		{ "k8s", "SIGTERM", bare, 30 }, { "signal", "SIGTERM", bare, 10 },
	};
	(void)state;

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct hd_notice_watch w;
		struct hd_notice notice = { 0 };
		hd_notice_watch_init(&w, hd_notice_find(row[i].source), &(struct hd_notice_settings){ 0 }, S);
		/* silent for ever: it is never asked */
		CHECK(hd_notice_watch_next(&w) == INT64_MAX, "%s is asked", row[i].source);
		CHECK(hd_notice_watch_signal(&w, row[i].signal, row[i].environment, 5 * S, WALL, &notice) &&
			notice.kind == HD_NOTICE_PREEMPT && notice.of_process &&
			notice.ends_ns == 5 * S + row[i].lead_s * S, "row %zu: %lld s", i,
			(long long)((notice.ends_ns - 5 * S) / S));
		CHECK(!hd_notice_watch_signal(&w, row[i].signal, row[i].environment, 6 * S, WALL + S,
			&notice),
			"row %zu is heard twice", i);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_is_heard_within_an_interval),
		cmocka_unit_test(late_ones_leave_what_is_left),
		cmocka_unit_test(what_is_taken_back_is_heard_within_an_interval),
		cmocka_unit_test(what_is_said_again_is_no_news),
		cmocka_unit_test(garbage_for_an_hour_changes_nothing),
		cmocka_unit_test(silence_for_an_hour_changes_nothing),
		cmocka_unit_test(a_file_by_hand_is_like_any_service),
		cmocka_unit_test(signals_are_heard_once_late_and_with_an_end_that_makes_no_sense),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
