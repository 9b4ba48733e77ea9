#include "daemon/http.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sys/clock.h"
#include "sys/thread.h"
#include "daemon/http_client.h"
#include "daemon/http_frontend.h"
#include "tests/check.h"

static char dir[] = "/tmp/hd_http_test.XXXXXX", addr[HD_ADDR_CAP], audit_path[64];
static const struct hd_key token = { { 1, 2, 3 } };
static const char bearer[] = "0102030000000000000000000000000000000000000000000000000000000000";
static struct hd_clock real;
static struct hd_net net;
static struct hd_fs fs;
static struct hd_loop loop;
static struct hd_http http;
static struct hd_lines audit;
static int asked, changes;
static int64_t last_event, ahead_ns;      /* how far the server's clock is ahead of the real one */

static int64_t now_ns(struct hd_clock *c) { (void)c; return hd_clock_now_ns(&real) + ahead_ns; }
static int64_t wall_ns(struct hd_clock *c) { (void)c; return hd_clock_wall_ns(&real); }
static void wait_until(struct hd_clock *c, int64_t at) { (void)c; hd_clock_wait_until(&real, at - ahead_ns); }
static const struct hd_clock_ops ahead = { .name = "ahead", .now_ns = now_ns, .wall_ns = wall_ns,
	.wait_until = wait_until };
static struct hd_clock clock_ = { &ahead };

static enum hd_err answer_events(const struct hd_json *ask, struct hd_json_writer *w, struct hd_diag *diag)
{
	int64_t after = 0;
	enum hd_err err = hd_json_find(ask, "after") ? hd_json_get_i64(ask, "after", 0, INT64_MAX, &after,
		diag) : HD_OK;

	hd_json_open_array(w, "events");
	for (int64_t n = after + 1; !err && n <= last_event; n++) {
		hd_json_open_object(w, NULL);
		hd_json_put_i64(w, "number", n);
		hd_json_put_text(w, "kind", "run_start");
		hd_json_put_text(w, "text", "job 1\nstarts");
		hd_json_close(w);
	}
	hd_json_close(w);
	hd_json_put_i64(w, "last", last_event);
	return err;
}

static enum hd_err answer(void *self, const struct hd_caller *by, const char *what, const struct hd_json *ask,
	struct hd_json_writer *w, struct hd_diag *diag)
{
	(void)by;
	const char *text = "";

	(void)self;
	asked++;
	if (!strcmp(what, "events"))
		return answer_events(ask, w, diag);
	changes += strcmp(what, "status") != 0 && strcmp(what, "jobs") != 0 && strcmp(what, "job") != 0;
	if (!strcmp(what, "cancel"))
		return hd_fail(diag, HD_E_NOTFOUND, "there is no job 9");
	if (!strcmp(what, "submit") && hd_json_get_text(ask, "job", &text, diag))
		return HD_E_INVAL;
	hd_json_put_i64(w, "bytes", (int64_t)strlen(text));
	hd_json_open_array(w, "list");
	for (int i = 0; !strcmp(what, "jobs") && i < 200000; i++)
		hd_json_put_i64(w, NULL, i);
	return HD_OK;
}

static int open_server(const char *where, const struct hd_key *key)
{
	http = (struct hd_http){ .handler = { NULL, answer, hd_identify_owner }, .token = key,
		.audit = &audit, .tag = 7 };
	asked = changes = 0;
	last_event = ahead_ns = 0;
	struct hd_diag diag = { "" };
	enum hd_err err = hd_loop_init(&loop, &clock_, &diag);
	if (!err)
		err = hd_http_open(&http, where, &loop, &net, &diag);
	if (err)
		print_error("%s\n", diag.text);
	return err != HD_OK;
}

static int open_unix(void **state) { (void)state; return open_server(addr, NULL); }
static int open_tcp(void **state) { (void)state; return open_server("tcp:127.0.0.1:0", &token); }

static int close_server(void **state)
{
	(void)state;
	hd_http_close(&http);
	hd_loop_finish(&loop);
	return 0;
}

static void turn(int64_t for_ns)
{
	struct hd_loop_event event[8];
	int64_t now = hd_clock_now_ns(&clock_), next = hd_http_tick(&http, now), at = now + for_ns;
	size_t n;

	assert_int_equal(hd_loop_poll(&loop, next < at ? next : at, event, 8, &n, NULL), HD_OK);
	for (size_t i = 0; i < n; i++)
		if (event[i].tag == http.tag)
			hd_http_event(&http, &event[i]);
}

static void call(struct hd_sock *sock)
{
	struct hd_diag diag = { "" };

	CHECK(hd_sock_connect(&net, http.listener.addr, sock, &diag) == HD_OK, "%s", diag.text);
	while (hd_sock_connected(sock, NULL) == HD_E_AGAIN)
		turn(1000000);
}

static void put(struct hd_sock *sock, const char *bytes, size_t len)
{
	while (len) {
		size_t n = 0;
		enum hd_err err = hd_sock_write(sock, bytes, len, &n, NULL);
		if (err == HD_E_AGAIN)
			turn(1000000);
		else if (err)
			return;
		bytes += n;
		len -= n;
	}
}

/* What comes until `until` stands there or the connection ends; `ended` says which. */
static size_t take(struct hd_sock *sock, char *to, size_t cap, const char *until, bool *ended)
{
	size_t len = 0;

	*ended = false;
	to[0] = 0;
	for (int i = 0; i < 5000 && !*ended && !(until && strstr(to, until)); i++) {
		size_t n = 0;
		enum hd_err err = hd_sock_read(sock, to + len, cap - 1 - len, &n, NULL);
		if (err == HD_E_AGAIN)
			turn(1000000);
		*ended = err == HD_E_PEERLOST || (!err && n == 0);
		len += n;
		to[len] = 0;
	}
	return len;
}

/* The server goes on until so many connections are open. */
static void turn_until_open(size_t want)
{
	size_t n = HD_HTTP_CONNECTIONS + 1;

	for (int i = 0; i < 5000 && n != want; i++) {
		turn(1000000);
		n = 0;
		for (size_t c = 0; c < HD_HTTP_CONNECTIONS; c++)
			n += http.connection[c].open;
	}
	assert_int_equal(n, want);
}

static int status_of(const char *out) { return (out[9] - '0') * 100 + (out[10] - '0') * 10 + out[11] - '0'; }

/* One request as bytes, all that is answered; the status, 0 if the connection just ended. */
static int talk(const char *bytes, size_t len, char *out, size_t cap)
{
	struct hd_sock sock = { 0 };
	bool ended;

	call(&sock);
	put(&sock, bytes, len);
	take(&sock, out, cap, NULL, &ended);
	hd_sock_close(&sock);
	CHECK(ended, "the connection goes on after: %.*s", (int)len, bytes);
	return strncmp(out, "HTTP/1.", 7) ? 0 : status_of(out);
}

struct http_question { struct hd_http_call call; struct hd_arena arena; const struct hd_json *answer;
	struct hd_diag diag; enum hd_err err; atomic_bool done; };

static void put_question(void *user)
{
	struct http_question *q = user;

	q->err = hd_http_ask(&q->call, &q->arena, &q->answer, &q->diag);
	atomic_store(&q->done, true);
}

static void ask(struct http_question *q, const char *method, const char *target, const char *body)
{
	struct hd_thread thread = { 0 };

	*q = (struct http_question){ .call = { dir, method, target, body, INT64_C(20000000000) } };
	hd_arena_init(&q->arena, 0);
	assert_int_equal(hd_thread_start(&thread, "ask", -1, put_question, q, NULL), HD_OK);
	for (int i = 0; i < 20000 && !atomic_load(&q->done); i++)
		turn(1000000);
	hd_thread_join(&thread);
}

static size_t audit_lines(void)
{
	FILE *f = fopen(audit_path, "r");
	size_t n = 0;

	for (int c; f && (c = fgetc(f)) != EOF;)
		n += c == '\n';
	if (f)
		fclose(f);
	return n;
}

static void the_client_gets_answers_and_errors(void **state)
{
	struct http_question q;
	int64_t n;
	(void)state;

	ask(&q, "GET", "/v1/status", NULL);
	CHECK(q.err == HD_OK, "%s", q.diag.text);
	hd_arena_finish(&q.arena);
	size_t before = audit_lines();
	ask(&q, "POST", "/v1/jobs/9/cancel", NULL);
	assert_int_equal(q.err, HD_E_NOTFOUND);
	assert_string_equal(q.diag.text, "there is no job 9");
	hd_arena_finish(&q.arena);
	assert_int_equal(audit_lines(), before + 1);
	ask(&q, "GET", "/v1/nothing", NULL);
	assert_int_equal(q.err, HD_E_NOTFOUND);
	CHECK(strstr(q.diag.text, "/v1/schema lists"), "%s", q.diag.text);
	hd_arena_finish(&q.arena);

	ask(&q, "GET", "/v1/jobs", NULL);                 /* more than a megabyte comes whole */
	CHECK(q.err == HD_OK, "%s", q.diag.text);
	assert_int_equal(hd_json_count(hd_json_find(q.answer, "list")), 200000);
	hd_arena_finish(&q.arena);

	char *body = malloc(HD_REST_BODY + 100);
	int len = snprintf(body, 100, "{\"folder\":\"/\",\"job\":\"");
	memset(body + len, 'x', HD_REST_BODY);
	memcpy(body + HD_REST_BODY - 2, "\"}", 3);
	ask(&q, "POST", "/v1/jobs", body);                /* the longest body there may be */
	CHECK(q.err == HD_OK, "%s", q.diag.text);
	assert_int_equal(hd_json_get_i64(q.answer, "bytes", 0, INT64_MAX, &n, NULL), HD_OK);
	assert_int_equal(n, HD_REST_BODY - 2 - len);
	hd_arena_finish(&q.arena);
	memset(body + HD_REST_BODY - 2, 'x', 2);
	memcpy(body + HD_REST_BODY - 1, "\"}", 3);
	ask(&q, "POST", "/v1/jobs", body);
	CHECK(q.err == HD_E_INVAL && strstr(q.diag.text, "at most 1048576"), "%d %s", q.err, q.diag.text);
	hd_arena_finish(&q.arena);
	free(body);
}

static void where_nobody_serves_the_client_says_so(void **state)
{
	struct http_question q = { .call = { "/tmp", "GET", "/v1/status", NULL, 1000000000 } };
	(void)state;

	hd_arena_init(&q.arena, 0);
	put_question(&q);
	assert_int_equal(q.err, HD_E_NOTFOUND);
	CHECK(strstr(q.diag.text, "no scheduler serves /tmp: start one with `heddle serve --dir /tmp`"), "%s",
		q.diag.text);
	hd_arena_finish(&q.arena);
}

#define H "Host: localhost\r\n"
#define BYTES(s) s, sizeof s - 1

/* Nothing of these reaches the handler. Status 0: the library ended the connection without a word. */
static void malformed_requests_change_nothing(void **state)
{
	static const struct { const char *bytes; size_t len; int least, most; } cases[] = {
		{ BYTES("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"), 0, 505 },                  /* TLS */
		{ BYTES("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), 400, 505 },
		{ BYTES("POST /v1/stop HTTP/0.9\r\n\r\n"), 400, 505 },
		{ BYTES("POST /v1/stop\r\n\r\n"), 0, 505 },
		{ BYTES("POST /v1/stop HTTP/1.1\r\n\r\n"), 400, 421 },                                       /* no Host */
		{ BYTES("POST /v1/stop HTTP/1.1\r\nHost: evil\r\n\r\n"), 421, 421 },
		{ BYTES("POST /v1/st%6fp HTTP/1.1\r\n" H "\r\n"), 400, 400 },
		{ BYTES("POST  /v1/stop  HTTP/1.1\r\n" H "\r\n"), 0, 505 },
		{ BYTES("POST /v1/stop HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), 400, 400 },
		{ BYTES("POST /v1/stop HTTP/1.1\r\n" H "Transfer-Encoding:\tchunked\r\nContent-Length: 2\r\n\r\n{}"), 400, 400 },
		{ BYTES("POST /v1/stop HTTP/1.1\r\n" H "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n"), 400, 400 },
		{ BYTES("POST /v1/stop HTTP/1.1\r\n" H "Content-Length: 2\r\nContent-Length: 2\r\n" "\r\n{}"), 400, 400 },
		{ BYTES("POST /v1/stop HTTP/1.1\r\n" H "Content-Length: +2\r\n\r\n{}"), 400, 400 },
		{ BYTES("POST /v1/stop HTTP/1.1\r\n" H "Content-Length: 0x2\r\n\r\n{}"), 400, 400 },
		{ BYTES("POST /v1/stop HTTP/1.1\r\n" H "Content-Length: 18446744073709551617\r\n\r\n{}"), 400, 413 },
		{ BYTES("POST /v1/stop HTTP/1.1\r\n" H "Content-Type: application/json\r\nContent-Length: 2000000\r\n\r\n{}"), 413, 413 },
		{ BYTES("POST /v1/stop HTTP/1.1\r\n" H "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 7\r\n\r\ndrain=1"), 415, 415 },
		{ BYTES("POST /v1/stop HTTP/1.1\r\n" H "Content-Type: application/json\r\nContent-Length: 4\r\n\r\n{\"a}"), 400, 400 },
		{ BYTES("POST /v1/stop HTTP/1.1\r\n" H "Content-Type: application/json\r\nContent-Length: 3\r\n\r\n\xff\xfe{"), 400, 400 },
		{ BYTES("POST /v1/stop HTTP/1.1\r\n" H H "\r\n"), 400, 400 },
		{ BYTES("POST /v1/stop HTTP/1.1\r\n" H "Origin: http://evil\r\n\r\n"), 403, 403 },
		{ BYTES("DELETE /v1/jobs/1 HTTP/1.1\r\n" H "\r\n"), 405, 405 },
		{ BYTES("CONNECT localhost:1 HTTP/1.1\r\n" H "\r\n"), 400, 405 },
		{ BYTES("GET /v1/stop HTTP/1.1\r\n" H "\r\n"), 405, 405 },
		{ BYTES("\r\n\r\n\r\n\0\0\0\r\n\r\n"), 0, 505 },
	};
	char out[8192];
	(void)state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_sock sock = { 0 };
		bool ended;
		call(&sock);
		put(&sock, cases[i].bytes, cases[i].len);
		take(&sock, out, sizeof out, "\r\n\r\n", &ended);
		hd_sock_close(&sock);
		int status = strncmp(out, "HTTP/1.", 7) ? 0 : status_of(out);
		CHECK(status >= cases[i].least && status <= cases[i].most, "case %zu: %d %s", i, status, out);
		CHECK(asked == 0, "case %zu: the handler was asked", i);
	}
}

/* A second request behind the first, or behind a body that is longer than said, is never heard. */
static void a_connection_has_one_request(void **state)
{
	static const char two[] = "GET /v1/status HTTP/1.1\r\n" H "\r\nPOST /v1/stop HTTP/1.1\r\n" H "\r\n";
	static const char hidden[] =
		"POST /v1/jobs/1/priority HTTP/1.1\r\n" H "Content-Type: "
		"application/json\r\nContent-Length: 14\r\n\r\n"
		"{\"priority\":1}POST /v1/stop HTTP/1.1\r\n" H "\r\n";
	char out[8192];
	(void)state;

	assert_int_equal(talk(two, sizeof two - 1, out, sizeof out), 200);
	assert_int_equal(asked, 1);
	assert_int_equal(changes, 0);
	assert_int_equal(talk(hidden, sizeof hidden - 1, out, sizeof out), 200);
	assert_int_equal(changes, 1);
}

static void long_headers_are_refused(void **state)
{
	char bytes[40000], out[8192];
	(void)state;

	for (size_t len = 15000; len <= 39000; len += 3000) {
		int n = snprintf(bytes, sizeof bytes, "GET /v1/status HTTP/1.1\r\n" H "X: ");
		memset(bytes + n, 'y', len - (size_t)n - 4);
		memcpy(bytes + len - 4, "\r\n\r\n", 4);
		asked = 0;
		int status = talk(bytes, len, out, sizeof out);
		CHECK(len <= HD_REST_HEADER_BYTES ? status == 200 : status == 431 || status == 0,
			"%zu bytes: %d", len, status);
		CHECK(asked == (status == 200), "%zu", len);
	}
}

static void answers_say_what_pages_may_do_with_them(void **state)
{
	static const char ok[] = "GET /v1/status HTTP/1.1\r\n" H "Origin: http://localhost\r\n\r\n";
	static const char *const lines[] = { "Content-Type: application/json\r\n",
		"Content-Security-Policy: default-src 'none'; frame-ancestors 'none'\r\n",
		"X-Content-Type-Options: nosniff\r\n", "Cache-Control: no-store\r\n",
		"Connection: close\r\n" };
	char out[8192];
	(void)state;

	assert_int_equal(talk(ok, sizeof ok - 1, out, sizeof out), 200);
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
		CHECK(strstr(out, lines[i]), "no %s in %s", lines[i], out);
	assert_null(strstr(out, "Access-Control"));
}

static void slow_clients_are_ended(void **state)
{
	struct hd_sock silent = { 0 }, drips = { 0 }, reads_nothing = { 0 };
	char out[8192];
	bool ended;
	(void)state;

	call(&silent);
	call(&drips);
	call(&reads_nothing);
	put(&reads_nothing, BYTES("GET /v1/jobs HTTP/1.1\r\n" H "\r\n"));
	for (int i = 0; i < 11; i++) {                    /* a byte a second */
		put(&drips, &"GET /v1/status HTTP/1.1\r\nHost"[i], 1);
		ahead_ns += 900000000;
		turn(1000000);
	}
	ahead_ns += 200000000;
	for (int i = 0; i < 5; i++)
		turn(1000000);
	assert_int_equal(take(&silent, out, sizeof out, NULL, &ended), 0);
	CHECK(ended, "a silent connection stays");
	take(&drips, out, sizeof out, NULL, &ended);
	CHECK(ended, "a slow connection stays");
	assert_int_equal(http.connection[2].open, true);  /* its answer is under way */
	ahead_ns += HD_HTTP_ANSWER_NS;
	turn_until_open(0);
	hd_sock_close(&silent);
	hd_sock_close(&drips);
	hd_sock_close(&reads_nothing);
	assert_int_equal(talk(BYTES("GET /v1/status HTTP/1.1\r\n" H "\r\n"), out, sizeof out), 200);
}

static void one_address_has_some_connections(void **state)
{
	struct hd_sock idle[HD_HTTP_PER_ADDRESS] = { 0 }, more = { 0 };
	char out[8192];
	bool ended;
	(void)state;

	for (size_t i = 0; i < HD_HTTP_PER_ADDRESS; i++)
		call(&idle[i]);
	turn_until_open(HD_HTTP_PER_ADDRESS);
	call(&more);
	assert_int_equal(take(&more, out, sizeof out, NULL, &ended), 0);
	CHECK(ended, "one more connection stays");
	hd_sock_close(&more);
	for (size_t i = 0; i < HD_HTTP_PER_ADDRESS; i++)
		hd_sock_close(&idle[i]);
	turn_until_open(0);
	assert_int_equal(talk(BYTES("GET /v1/status HTTP/1.1\r\nHost: x\r\n\r\n"), out, sizeof out), 421);
}

/* All clients of a port have one address: streams must leave connections for requests. */
static void streams_of_a_port_leave_room_for_questions(void **state)
{
	struct hd_sock sock[HD_HTTP_STREAMS] = { 0 };
	char bytes[400], out[8192];
	const char *port = strrchr(http.listener.addr, ':') + 1;
	(void)state;

	int n = snprintf(bytes, sizeof bytes,
		"GET /v1/events HTTP/1.1\r\nHost: 127.0.0.1:%s\r\nAuthorization: Bearer %s\r\n\r\n", port,
		bearer);
	for (size_t i = 0; i < HD_HTTP_STREAMS; i++) {
		call(&sock[i]);
		put(&sock[i], bytes, (size_t)n);
		for (int k = 0; k < 2000 && http.nstreams <= i; k++)
			turn(1000000);
		assert_int_equal(http.nstreams, i + 1);
	}
	n = snprintf(bytes, sizeof bytes,
		"GET /v1/status HTTP/1.1\r\nHost: 127.0.0.1:%s\r\nAuthorization: Bearer %s\r\n\r\n", port,
		bearer);
	assert_int_equal(talk(bytes, (size_t)n, out, sizeof out), 200);
	for (size_t i = 0; i < HD_HTTP_STREAMS; i++)
		hd_sock_close(&sock[i]);
}

/* Bearer "a" and "b" are users of that number. */
static enum hd_err identify_users(void *self, const struct hd_credential *c, struct hd_caller *by,
	struct hd_diag *diag)
{
	if (c->start_token || (c->local && c->user.uid == 0))
		return hd_identify_owner(self, c, by, diag);
	*by = (struct hd_caller){ .uid = c->local ? c->user.uid : (uint32_t)c->bearer[0] };
	return c->local || strchr("ab", c->bearer[0]) ? HD_OK : HD_E_REFUSED;
}

static int open_tcp_users(void **state)
{
	int bad = open_tcp(state);

	http.handler.identify = identify_users;
	return bad;
}

/* Of one user of the port; what is there of its answer is in `out`, in any case the connection is open. */
static void send_as(struct hd_sock *sock, const char *token_of, const char *line, const char *more, char *out,
	size_t cap, const char *until)
{
	char bytes[500];
	bool ended;
	int n = snprintf(bytes, sizeof bytes,
		"%s HTTP/1.1\r\nHost: 127.0.0.1:%s\r\nAuthorization: Bearer %s\r\n"
		"%s\r\n", line, strrchr(http.listener.addr, ':') + 1, token_of, more);

	call(sock);
	put(sock, bytes, (size_t)n);
	take(sock, out, cap, until, &ended);
}

static int ask_as(const char *token_of, const char *line, char *out, size_t cap)
{
	struct hd_sock sock = { 0 };

	send_as(&sock, token_of, line, "", out, cap, "}");
	hd_sock_close(&sock);
	return status_of(out);
}

static void turn_until_streams(uint32_t n)
{
	for (int i = 0; i < 5000 && http.nstreams != n; i++) {
		ahead_ns += HD_HTTP_PING_NS;      /* that a client left is noticed when it is spoken to */
		turn(1000000);
	}
	assert_int_equal(http.nstreams, n);
}

static void a_user_that_takes_all_it_may_keeps_no_other_out(void **state)
{
	static const char half[] = "Content-Type: application/json\r\nContent-Length: 9\r\n";
	struct hd_sock stream[HD_HTTP_STREAMS_OF_USER] = { 0 }, more[HD_HTTP_OF_USER] = { 0 }, other = { 0 };
	const size_t left = HD_HTTP_OF_USER - HD_HTTP_STREAMS_OF_USER;
	char out[8192];
	(void)state;

	last_event = 1;
	for (size_t i = 0; i < HD_HTTP_STREAMS_OF_USER; i++)
		send_as(&stream[i], "a", "GET /v1/events", "", out, sizeof out, "id: 1");
	assert_int_equal(http.nstreams, HD_HTTP_STREAMS_OF_USER);
	assert_int_equal(ask_as("a", "GET /v1/events", out, sizeof out), 429);
	CHECK(strstr(out, "you have 4 event streams, as many as one user may: end one"), "%s", out);
	assert_int_equal(ask_as("a", "GET /v1/status", out, sizeof out), 200);
	for (size_t i = 0; i < left; i++) {
		send_as(&more[i], "a", "POST /v1/stop", half, out, 1, "");
		turn(1000000);
	}
	int before = asked;
	assert_int_equal(ask_as("a", "GET /v1/status", out, sizeof out), 429);
	CHECK(strstr(out, "16 requests of yours are under way at once") && asked == before, "%s", out);
	send_as(&other, "b", "GET /v1/events", "", out, sizeof out, "id: 1");
	assert_int_equal(status_of(out), 200);
	assert_int_equal(ask_as("b", "GET /v1/status", out, sizeof out), 200);
	assert_int_equal(ask_as(bearer, "GET /v1/status", out, sizeof out), 200);
	for (size_t i = 0; i < left; i++)
		hd_sock_close(&more[i]);
	turn_until_open(HD_HTTP_STREAMS_OF_USER + 1);
	assert_int_equal(ask_as("a", "GET /v1/status", out, sizeof out), 200);
	hd_sock_close(&stream[0]);
	turn_until_streams(HD_HTTP_STREAMS_OF_USER);
	send_as(&stream[0], "a", "GET /v1/events", "", out, sizeof out, "id: 1");
	assert_int_equal(status_of(out), 200);
	for (size_t i = 0; i < HD_HTTP_STREAMS_OF_USER; i++)
		hd_sock_close(&stream[i]);
	hd_sock_close(&other);
}

static int open_shared(void **state)
{
	(void)state;
	return chmod(dir, 0711);
}

static int close_shared(void **state)
{
	return close_server(state) || chmod(dir, 0700);
}

/* An account of this machine that only connects: each connection would have ten seconds to say something. */
static void connections_that_say_nothing_keep_no_other_account_out(void **state)
{
	enum { ADA = 54321, BOB = 54322 };
	static struct hd_sock idle[HD_HTTP_CONNECTIONS];
	struct hd_sock sock = { 0 };
	char out[8192];
	uint32_t refused = 0;
	bool ended;

	if (geteuid() != 0) {
		assert_int_equal(open_unix(state), 0);
		SKIP("not root: there is no other account to be");
	}
	http = (struct hd_http){ .handler = { NULL, answer, identify_users }, .tag = 7, .shared = true };
	ahead_ns = asked = 0;
	struct hd_diag diag = { "" };
	assert_int_equal(hd_loop_init(&loop, &clock_, NULL), HD_OK);
	CHECK(!hd_http_open(&http, addr, &loop, &net, &diag), "%s", diag.text);
	for (size_t i = 0; i < HD_HTTP_CONNECTIONS; i++) {
		assert_int_equal(seteuid(ADA), 0);
		enum hd_err err = hd_sock_connect(&net, http.listener.addr, &idle[i], &diag);
		assert_int_equal(seteuid(0), 0);
		CHECK(!err, "%s", diag.text);
		turn(0);
		turn(0);
	}
	assert_int_equal(seteuid(BOB), 0);
	assert_int_equal(hd_sock_connect(&net, http.listener.addr, &sock, NULL), HD_OK);
	assert_int_equal(seteuid(0), 0);
	put(&sock, BYTES("GET /v1/status HTTP/1.1\r\n" H "\r\n"));
	take(&sock, out, sizeof out, NULL, &ended);
	CHECK(ended && status_of(out) == 200 && asked == 1, "bob is not answered: %s", out);
	hd_sock_close(&sock);
	turn_until_open(HD_HTTP_OF_USER);         /* they wait still */
	for (size_t i = 0; i < HD_HTTP_CONNECTIONS; i++) {
		size_t n = 0;
		enum hd_err err = hd_sock_read(&idle[i], out, sizeof out - 1, &n, NULL);
		out[n] = '\0';
		refused += !err && strstr(out, "HTTP/1.1 429 ") && strstr(out,
			"\r\n\r\n{\"error\":\"16 requests");
		hd_sock_close(&idle[i]);
	}
	assert_int_equal(refused, HD_HTTP_CONNECTIONS - HD_HTTP_OF_USER);
}

static void a_port_is_served_with_its_token(void **state)
{
	char bytes[400], out[8192];
	const char *port = strrchr(http.listener.addr, ':') + 1;
	(void)state;

	int n = snprintf(bytes, sizeof bytes, "GET /v1/status HTTP/1.1\r\nHost: 127.0.0.1:%s\r\n\r\n", port);
	assert_int_equal(talk(bytes, (size_t)n, out, sizeof out), 401);
	CHECK(strstr(out, "WWW-Authenticate: Bearer"), "%s", out);
	assert_int_equal(asked, 0);
	n = snprintf(bytes, sizeof bytes,
		"GET /v1/status HTTP/1.1\r\nHost: 127.0.0.1:%s\r\nAuthorization: Bearer %s\r\n\r\n", port,
		bearer);
	assert_int_equal(talk(bytes, (size_t)n, out, sizeof out), 200);
}

static void only_this_machine_is_served(void **state)
{
	static const struct { const char *where, *addr; } good[] = { { "127.0.0.1:0", "tcp:127.0.0.1:0" },
		{ "localhost:8080", "tcp:127.0.0.1:8080" },
		{ "[::1]:65535", "tcp:[::1]:65535" } };
	static const char *const bad[] = { "0.0.0.0:80", ":80", "8080", "[::]:80", "10.1.2.3:80",
		"example.org:80", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x",
		"127.0.0.1:65536", "127.0.0.1.example.org:80", "localhost.example.org:80", "" };
	char to[HD_ADDR_CAP];
	struct hd_http other = { .handler = { NULL, answer, hd_identify_owner } };
	(void)state;

	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		assert_int_equal(hd_http_where(good[i].where, to, NULL), HD_OK);
		assert_string_equal(to, good[i].addr);
	}
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct hd_diag diag = { "" };
		CHECK(hd_err_exit(hd_http_where(bad[i], to, &diag)) == 2 &&
			(strstr(diag.text, "ssh -L") || strstr(diag.text, "the port")), "%s: %s",
			bad[i], diag.text);
	}
	/* without a token */
	assert_int_equal(hd_http_open(&other, "tcp:127.0.0.1:0", &loop, &net, NULL), HD_E_INVAL);
	/* all users can enter /tmp */
	assert_int_equal(hd_http_open(&other, "unix:/tmp/hd_http_open.sock", &loop, &net, NULL),
		HD_E_REFUSED);
}

static void a_stream_brings_events_as_they_come(void **state)
{
	struct hd_sock sock = { 0 };
	char out[16384];
	bool ended;
	(void)state;

	last_event = 2;
	call(&sock);
	put(&sock, BYTES("GET /v1/events?after=1 HTTP/1.1\r\n" H "\r\n"));
	take(&sock, out, sizeof out, "starts\"}\n\n", &ended);
	CHECK(strstr(out, "Content-Type: text/event-stream") &&
		strstr(out, "id: 2\nevent: run_start\ndata: {\"number\":2,") && !strstr(out, "id: 1\n"),
		"%s", out);
	CHECK(strstr(out, "job 1\\nstarts"), "%s", out);  /* a line feed would end the line of data */
	for (int i = 0; i < 5; i++)
		turn(1000000);
	int before = asked;
	for (int i = 0; i < 20; i++)
		turn(1000000);
	assert_int_equal(asked, before);                  /* no request while nothing comes */
	last_event = 4;
	hd_http_changed(&http);
	take(&sock, out, sizeof out, "id: 4\n", &ended);
	CHECK(strstr(out, "id: 3\n") && !strstr(out, "id: 2\n"), "%s", out);
	ahead_ns += HD_HTTP_PING_NS;
	take(&sock, out, sizeof out, ":\n\n", &ended);
	CHECK(strstr(out, ":\n\n") && !ended, "no sign of life: %s", out);
	hd_sock_close(&sock);
	for (int i = 0; i < 5000 && http.nstreams; i++) {
		ahead_ns += HD_HTTP_PING_NS;
		turn(1000000);
	}
	assert_int_equal(http.nstreams, 0);               /* that the client left is noticed */
}

static void streams_are_few_and_end_with_the_server(void **state)
{
	struct hd_sock sock[HD_HTTP_STREAMS] = { 0 };
	char out[8192];
	bool ended;
	(void)state;

	for (size_t i = 0; i < HD_HTTP_STREAMS; i++) {
		call(&sock[i]);
		put(&sock[i], BYTES("GET /v1/events HTTP/1.1\r\n" H "\r\n"));
		for (int k = 0; k < 2000 && http.nstreams <= i; k++)
			turn(1000000);
	}
	assert_int_equal(talk(BYTES("GET /v1/events HTTP/1.1\r\n" H "\r\n"), out, sizeof out), 503);
	assert_int_equal(talk(BYTES("GET /v1/events?after=x HTTP/1.1\r\n" H "\r\n"), out, sizeof out), 400);
	hd_http_close(&http);
	for (size_t i = 0; i < HD_HTTP_STREAMS; i++) {
		for (ended = false; !ended;) {
			size_t n = 0;
			enum hd_err err = hd_sock_read(&sock[i], out, sizeof out, &n, NULL);
			CHECK(err != HD_E_AGAIN, "stream %zu stays open", i);
			ended = err || n == 0;
		}
		hd_sock_close(&sock[i]);
	}
}

static void read_token(char to[2 * HD_KEY_BYTES + 2])
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof path, "%s/token", dir);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	assert_non_null(fgets(to, 2 * HD_KEY_BYTES + 2, f));
	fclose(f);
}

static void take_url(void *user, const char *url) { snprintf(user, HD_ADDR_CAP, "%s", url); }

static void the_frontend_serves_both_with_a_token_that_no_start_before_knew(void **state)
{
	static struct hd_http_frontend frontend;
	const struct hd_frontend_ops *ops = &hd_http_frontend_ops;
	const struct hd_handler handler = { NULL, answer, hd_identify_owner };
	char text[2][2 * HD_KEY_BYTES + 2];
	(void)state;

	for (int i = 0; i < 2; i++) {
		struct hd_diag diag = { "" };
		char url[HD_ADDR_CAP] = "";
		frontend = (struct hd_http_frontend){ .dir = dir, .where = "127.0.0.1:0", .opened = take_url,
			.user = url };
		assert_int_equal(hd_loop_init(&loop, &real, NULL), HD_OK);
		CHECK(ops->open(&frontend, &handler, &loop, 100, &diag) == HD_OK, "%s", diag.text);
		CHECK(!strncmp(url, "http://127.0.0.1:", 17) &&
			strtol(url + 17, NULL, 10) == frontend.port.gate.port, "%s", url);
		read_token(text[i]);
		assert_true(frontend.local.gate.token == NULL && frontend.port.gate.token &&
			frontend.port.gate.port);
		ops->changed(&frontend, 1);
		assert_true(frontend.local.changed && frontend.port.changed);
		CHECK(ops->tick(&frontend, hd_clock_now_ns(&real)) > 0, "no time");
		ops->close(&frontend);
		hd_loop_finish(&loop);
	}
	CHECK(strcmp(text[0], text[1]) != 0, "the token of the start before is good still");
	frontend = (struct hd_http_frontend){ .dir = dir, .where = "0.0.0.0:0" };
	assert_int_equal(hd_loop_init(&loop, &real, NULL), HD_OK);
	assert_int_equal(ops->open(&frontend, &handler, &loop, 100, NULL), HD_E_INVAL);
	ops->close(&frontend);
	hd_loop_finish(&loop);
}

/* A frontend that wants to be called at once at every turn takes a whole core for nothing. */
static void a_frontend_that_nobody_asks_lets_the_loop_sleep(void **state)
{
	static struct hd_http_frontend frontend;
	static const char *const wheres[] = { NULL, "127.0.0.1:0" };
	const struct hd_frontend_ops *ops = &hd_http_frontend_ops;
	const struct hd_handler handler = { NULL, answer, hd_identify_owner };
	(void)state;

	for (size_t i = 0; i < sizeof wheres / sizeof *wheres; i++) {
		struct hd_diag diag = { "" };
		int64_t next = 0;
		frontend = (struct hd_http_frontend){ .dir = dir, .where = wheres[i] };
		assert_int_equal(hd_loop_init(&loop, &real, NULL), HD_OK);
		CHECK(ops->open(&frontend, &handler, &loop, 100, &diag) == HD_OK, "%s", diag.text);
		for (int turns = 0; turns < 3; turns++)
			next = ops->tick(&frontend, hd_clock_now_ns(&real));
		CHECK(next == INT64_MAX, "%s: the next turn at %lld ns", wheres[i] ? wheres[i] : "no port",
			(long long)next);
		ops->close(&frontend);
		next = ops->tick(&frontend, hd_clock_now_ns(&real));
		CHECK(next == INT64_MAX, "closed: the next turn at %lld ns", (long long)next);
		hd_loop_finish(&loop);
	}
}

/* While one is connected the library waits for it, until a time; when it has gone there is nothing to wait
 * for. */
static void a_server_that_was_asked_lets_the_loop_sleep(void **state)
{
	struct hd_sock sock;
	int64_t next = 0, now;
	(void)state;

	call(&sock);
	turn_until_open(1);
	for (int turns = 0; turns < 5; turns++)
		turn(1000000);
	now = hd_clock_now_ns(&clock_);
	next = hd_http_tick(&http, now);
	CHECK(next > now, "connected: the next turn at %lld ns", (long long)(next - now));
	hd_sock_close(&sock);
	turn_until_open(0);
	next = hd_http_tick(&http, hd_clock_now_ns(&clock_));
	CHECK(next == INT64_MAX, "left: the next turn at %lld ns", (long long)next);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_client_gets_answers_and_errors, open_unix, close_server),
		cmocka_unit_test(where_nobody_serves_the_client_says_so),
		cmocka_unit_test_setup_teardown(malformed_requests_change_nothing, open_unix, close_server),
		cmocka_unit_test_setup_teardown(a_connection_has_one_request, open_unix, close_server),
		cmocka_unit_test_setup_teardown(long_headers_are_refused, open_unix, close_server),
		cmocka_unit_test_setup_teardown(answers_say_what_pages_may_do_with_them, open_unix,
		close_server),
		cmocka_unit_test_setup_teardown(slow_clients_are_ended, open_unix, close_server),
		cmocka_unit_test_setup_teardown(one_address_has_some_connections, open_tcp, close_server),
		cmocka_unit_test_setup_teardown(streams_of_a_port_leave_room_for_questions, open_tcp,
		close_server),
		cmocka_unit_test_setup_teardown(a_user_that_takes_all_it_may_keeps_no_other_out,
			open_tcp_users,
			close_server),
		cmocka_unit_test_setup_teardown(connections_that_say_nothing_keep_no_other_account_out,
			open_shared,
			close_shared),
		cmocka_unit_test_setup_teardown(a_port_is_served_with_its_token, open_tcp, close_server),
		cmocka_unit_test_setup_teardown(only_this_machine_is_served, open_unix, close_server),
		cmocka_unit_test_setup_teardown(a_stream_brings_events_as_they_come, open_unix, close_server),
		cmocka_unit_test_setup_teardown(streams_are_few_and_end_with_the_server, open_unix,
		close_server),
		cmocka_unit_test(the_frontend_serves_both_with_a_token_that_no_start_before_knew),
		cmocka_unit_test(a_frontend_that_nobody_asks_lets_the_loop_sleep),
		cmocka_unit_test_setup_teardown(a_server_that_was_asked_lets_the_loop_sleep, open_unix,
		close_server),
	};

	hd_clock_real(&real);
	hd_net_real(&net);
	hd_fs_real(&fs);
	if (!mkdtemp(dir))
		return 1;
	snprintf(addr, sizeof addr, "unix:%s/%s", dir, HD_HTTP_SOCKET);
	snprintf(audit_path, sizeof audit_path, "%s/audit.ndjson", dir);
	if (hd_lines_open(&audit, &fs, audit_path, NULL))
		return 1;
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	(void)!hd_lines_close(&audit, NULL);
	(void)!hd_fs_remove_tree(&fs, dir, NULL);
	return failed;
}
