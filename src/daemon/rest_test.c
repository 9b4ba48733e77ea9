#include "daemon/rest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/check.h"

static const struct hd_key token = { { 0xab, 0xcd, 0x12 } };
static char bearer[16 + 2 * HD_KEY_BYTES];
static char asked[4096];                 /* what the handler was asked, "" if nothing */
static struct hd_caller asked_by;        /* and whose question it was */
static const struct hd_handler *handled; /* NULL: of a scheduler that has one owner */
static enum hd_err handler_says;

static void copy(char *to, size_t cap, const struct hd_json *json)
{
	snprintf(to, cap, "%s", "");
	for (size_t i = 0; i < hd_json_count(json); i++) {
		const struct hd_json *v = hd_json_item(json, i);
		const char *text = hd_json_kind_name(hd_json_kind(v));
		char number[40];
		int64_t n;
		double x;
		if (hd_json_kind(v) == HD_JSON_TEXT)
			assert_int_equal(hd_json_as_text(v, &text, NULL), HD_OK);
		else if (hd_json_kind(v) == HD_JSON_INT) {
			assert_int_equal(hd_json_as_i64(v, INT64_MIN, INT64_MAX, &n, NULL), HD_OK);
			snprintf(number, sizeof number, "%lld", (long long)n);
			text = number;
		} else if (hd_json_kind(v) == HD_JSON_REAL) {
			assert_int_equal(hd_json_as_f64(v, &x, NULL), HD_OK);
			snprintf(number, sizeof number, "%g", x);
			text = number;
		}
		size_t len = strlen(to);
		snprintf(to + len, cap - len, "%s%s=%s", i ? " " : "", hd_json_key(json, i), text);
	}
}

static enum hd_err answer(void *self, const struct hd_caller *by, const char *what, const struct hd_json *ask,
	struct hd_json_writer *w, struct hd_diag *diag)
{
	(void)self;
	asked_by = *by;
	copy(asked, sizeof asked, ask);
	if (handler_says)
		return hd_fail(diag, handler_says, "the handler says no to %s", what);
	hd_json_open_array(w, "left open");
	return HD_OK;
}

/* What came of a request; `head` is lines "Name: value" ended by newlines. */
static int ask(const struct hd_rest_gate *gate, const char *line, const char *head, const char *body,
	char *out, size_t cap)
{
	static const struct hd_handler owner = { NULL, answer, hd_identify_owner };
	const struct hd_handler *handler = handled ? handled : &owner;
	char method[40] = "", target[2048] = "", version[20] = "", lines[8192], *at = lines;
	struct hd_rest_header header[HD_REST_HEADERS + 8];
	struct hd_rest_request r = { method, target, version, header, 0, NULL, 0 };
	struct hd_rest_response response;
	struct hd_rest_way way;
	struct hd_arena arena;

	assert_int_equal(sscanf(line, "%39s %2047s %19s", method, target, version), 3);
	snprintf(lines, sizeof lines, "%s", head);
	while (*at && r.nheaders < HD_REST_HEADERS + 8) {
		char *end = strchr(at, '\n'), *colon = strchr(at, ':');
		*end = *colon = 0;
		header[r.nheaders++] = (struct hd_rest_header){ at, colon + 2 };
		at = end + 1;
	}
	asked[0] = 0;
	hd_arena_init(&arena, 16 << 20);
	if (hd_rest_admit(gate, &r, &arena, &way, &response))
		hd_rest_reply(handler, &way, body, strlen(body), &arena, &response);
	snprintf(out, cap, "%.*s", (int)response.len, response.body);
	int status = response.status;
	CHECK((status == 405) == (response.allow != NULL), "%s", line);
	hd_arena_finish(&arena);
	return status;
}

#define HOST "Host: localhost\n"
#define JSON "Content-Type: application/json\n"

static void a_request_becomes_the_question_of_its_row(void **state)
{
	static const struct { const char *line, *head, *body, *asks; } cases[] = {
		{ "GET /v1/status HTTP/1.1", HOST, "", "do=status" },
		{ "GET /v1/status HTTP/1.1", "hOST: LocalHost\n", "", "do=status" },
		{ "GET /v1/status HTTP/1.1", HOST "Origin: http://127.0.0.1\n", "", "do=status" },
		{ "GET /v1/jobs HTTP/1.1", HOST, "", "do=jobs" },
		{ "GET /v1/jobs?limit=7&state=queued&after=0 HTTP/1.1", HOST, "", "do=jobs limit=7 state=queued after=0" },
		{ "GET /v1/jobs/17 HTTP/1.1", HOST, "", "do=job job=17" },
		{ "GET /v1/jobs/tiny-2.a HTTP/1.1", HOST, "", "do=job job=tiny-2.a" },
		{ "GET /v1/jobs/17/why?policy=false HTTP/1.1", HOST, "", "do=explain job=17 policy=a boolean" },
		{ "POST /v1/jobs/17/cancel HTTP/1.1", HOST, "", "do=cancel job=17" },
		{ "POST /v1/jobs/17/cancel HTTP/1.1", HOST JSON "Content-Length: 2\n", "{}", "do=cancel job=17" },
		{ "POST /v1/jobs/a/priority HTTP/1.1", HOST JSON "Content-Length: 16\n", "{\"priority\":2.5}", "do=prio job=a priority=2.5" },
		{ "POST /v1/jobs HTTP/1.1", HOST "Content-Type: application/json; charset=utf-8\nContent-Length: 9\n",
		  "{\"folder\":\"/a\",\"job\":\"x: "
		  "\\\"1\\\"\\n\",\"rates\":{\"v100\":2},\"set\":[\"a=b\"],\"scale\":2}",
		  "do=submit folder=/a job=x: \"1\"\n rates=an object set=an array scale=2" },
		{ "POST /v1/jobs/a/scale HTTP/1.1", HOST, "{\"scale\":3}", "do=scale job=a scale=3" },
		{ "GET /v1/jobs/7/run HTTP/1.1", HOST, "", "do=run job=7" },
		{ "GET /v1/jobs/7/metrics?points=20 HTTP/1.1", HOST, "", "do=metrics job=7 points=20" },
		{ "GET /v1/waiting?after=7&limit=2 HTTP/1.1", HOST, "", "do=waiting after=7 limit=2" },
		{ "GET /v1/ledger HTTP/1.1", HOST, "", "do=ledger" },
		{ "GET /v1/sweeps HTTP/1.1", HOST, "", "do=sweeps" },
		{ "GET /v1/sweeps/lr-2 HTTP/1.1", HOST, "", "do=sweep sweep=lr-2" },
		{ "GET /v1/devices/history?after_s=1.5 HTTP/1.1", HOST, "", "do=history after_s=1.5" },
		{ "POST /v1/jobs/17/continue HTTP/1.1", HOST, "{\"until\":40,\"key\":\"k\"}",
		  "do=continue job=17 until=40 key=k" },
		{ "POST /v1/stop HTTP/1.1", HOST, "", "do=stop" },
		{ "POST /v1/whatif HTTP/1.1", HOST, "{\"job\":3,\"scale\":2,\"without\":\"a\",\"add\":{\"v100\":-2},\"policy\":\"las\"}",
		  "do=whatif job=3 scale=2 without=a add=an object policy=las" },
	};
	const struct hd_rest_gate gate = { .port = 0 };
	char out[4096];
	(void)state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		int status = ask(&gate, cases[i].line, cases[i].head, cases[i].body, out, sizeof out);
		CHECK(status == 200, "%s: %d %s", cases[i].line, status, out);
		assert_string_equal(asked, cases[i].asks);
		assert_string_equal(out, "{\"left open\":[]}");
	}
}

static const struct { const char *line, *head, *body; int status; const char *says; } wrong[] = {
	{ "GET /v1/status HTTP/1.0", HOST, "", 505, "HTTP/1.1 is spoken" },
	{ "GET /v1/status HTTP/2.0", HOST, "", 505, "HTTP/1.1 is spoken" },
	{ "PUT /v1/status HTTP/1.1", HOST, "", 405, "there are GET and POST" },
	{ "OPTIONS * HTTP/1.1", HOST, "", 405, "there are GET and POST" },
	{ "TRACE / HTTP/1.1", HOST, "", 405, "there are GET and POST" },
	{ "GET * HTTP/1.1", HOST, "", 400, "not a path" },
	{ "GET http://localhost/v1/status HTTP/1.1", HOST, "", 400, "not a path" },
	{ "GET /v1/st%61tus HTTP/1.1", HOST, "", 400, "not a path" },
	{ "GET /v1/jobs/..%2f..%2fetc HTTP/1.1", HOST, "", 400, "not a path" },
	{ "GET /v1/jobs/a/../../b HTTP/1.1", HOST, "", 404, "there is no" },
	{ "GET /v1/jobs/%00 HTTP/1.1", HOST, "", 400, "not a path" },
	{ "GET /v1/status# HTTP/1.1", HOST, "", 400, "not a path" },
	{ "GET /v1/status HTTP/1.1", "", "", 421, "Host" },
	{ "GET /v1/status HTTP/1.1", "Host: example.org\n", "", 421, "example.org" },
	{ "GET /v1/status HTTP/1.1", "Host: localhost.example.org\n", "", 421, "Host" },
	{ "GET /v1/status HTTP/1.1", "Host: localhost:80\n", "", 421, "Host" },
	{ "GET /v1/status HTTP/1.1", HOST HOST, "", 400, "Host stands there twice" },
	{ "GET /v1/status HTTP/1.1", HOST "Origin: http://example.org\n", "", 403, "example.org" },
	{ "GET /v1/status HTTP/1.1", HOST "Origin: null\n", "", 403, "null" },
	{ "GET /v1/status HTTP/1.1", HOST "Origin: https://localhost\n", "", 403, "Origin" },
	{ "POST /v1/stop HTTP/1.1", HOST "Transfer-Encoding: chunked\n", "", 400, "Transfer-Encoding" },
	{ "POST /v1/stop HTTP/1.1", HOST "Transfer-Encoding: identity\nContent-Length: 2\n", "{}", 400, "Transfer-Encoding" },
	{ "POST /v1/stop HTTP/1.1", HOST "Content-Length : 2\n", "", 400, "not the name of a header" },
	{ "POST /v1/stop HTTP/1.1", HOST "Content-Length: 2\ncontent-length: 3\n", "", 400, "Content-Length stands there twice" },
	{ "POST /v1/stop HTTP/1.1", HOST "Content-Length: -2\n", "", 400, "not a number" },
	{ "POST /v1/stop HTTP/1.1", HOST "Content-Length: 2, 2\n", "", 400, "not a number" },
	{ "POST /v1/stop HTTP/1.1", HOST "Content-Length: 99999999999999999999\n", "", 400, "not a number" },
	{ "POST /v1/stop HTTP/1.1", HOST "Content-Length: 1048577\n" JSON, "", 413, "at most 1048576" },
	{ "POST /v1/stop HTTP/1.1", HOST "Content-Length: 2\n", "{}", 415, "JSON" },
	{ "POST /v1/stop HTTP/1.1", HOST "Content-Type: text/plain\nContent-Length: 2\n", "{}", 415, "JSON" },
	{ "POST /v1/stop HTTP/1.1", HOST "Content-Type: application/jsonp\nContent-Length: 2\n", "{}", 415, "JSON" },
	{ "GET /v1/status HTTP/1.1", HOST "Content-Length: 2\n", "", 400, "GET has no body" },
	{ "GET /v1/statu HTTP/1.1", HOST, "", 404, "/v1/statu" },
	{ "GET /v1/statuses HTTP/1.1", HOST, "", 404, "/v1/statuses" },
	{ "GET /v1/status/ HTTP/1.1", HOST, "", 404, "/v1/status/" },
	{ "GET //v1/status HTTP/1.1", HOST, "", 404, "there is no" },
	{ "GET /v2 HTTP/1.1", HOST, "", 404, "there is no" },
	{ "GET /v1/jobs//why HTTP/1.1", HOST, "", 404, "there is no" },
	{ "GET /v1/a/b/c/d/e/f/g/h HTTP/1.1", HOST, "", 404, "there is no" },
	{ "GET /v1/jobs/1/cancel HTTP/1.1", HOST, "", 405, "takes POST" },
	{ "POST /v1/status HTTP/1.1", HOST, "", 405, "takes GET" },
	{ "GET /v1/status?a=b HTTP/1.1", HOST, "", 400, "no member" },
	{ "GET /v1/jobs?limt=3 HTTP/1.1", HOST, "", 400, "did you mean limit?" },
	{ "GET /v1/jobs?limit HTTP/1.1", HOST, "", 400, "NAME=VALUE" },
	{ "GET /v1/jobs? HTTP/1.1", HOST, "", 400, "NAME=VALUE" },
	{ "GET /v1/jobs?limit=1&limit=2 HTTP/1.1", HOST, "", 400, "limit stands there twice" },
	{ "GET /v1/jobs?limit=0 HTTP/1.1", HOST, "", 400, "from 1 to 1000" },
	{ "GET /v1/jobs?limit=1001 HTTP/1.1", HOST, "", 400, "from 1 to 1000" },
	{ "GET /v1/jobs?limit=x HTTP/1.1", HOST, "", 400, "an integer" },
	{ "GET /v1/jobs?state= HTTP/1.1", HOST, "", 400, "a text of 1 to 64" },
	{ "GET /v1/jobs/1?job=2 HTTP/1.1", HOST, "", 400, "no member" },
	{ "GET /v1/jobs/99999999999999999999 HTTP/1.1", HOST, "", 400, "the id or name" },
	{ "GET /v1/jobs/1/why?policy=yes HTTP/1.1", HOST, "", 400, "true or false" },
	{ "POST /v1/stop?drain=true HTTP/1.1", HOST, "", 400, "in the body" },
	{ "POST /v1/stop HTTP/1.1", HOST, "{\"drain\":true", 400, "body" },
	{ "POST /v1/stop HTTP/1.1", HOST, "[]", 400, "an object" },
	{ "POST /v1/stop HTTP/1.1", HOST, "{\"drain\":1}", 400, "true or false" },
	{ "POST /v1/stop HTTP/1.1", HOST, "{\"drain\":true,\"drain\":false}", 400, "" },
	{ "POST /v1/stop HTTP/1.1", HOST, "{\"now\":true}", 400, "there are: drain" },
	{ "POST /v1/jobs/1/cancel HTTP/1.1", HOST, "{\"job\":2}", 400, "no member" },
	{ "POST /v1/jobs/1/priority HTTP/1.1", HOST, "", 400, "needs priority" },
	{ "POST /v1/jobs/1/priority HTTP/1.1", HOST, "{\"priority\":0}", 400, "from 1e-06" },
	{ "POST /v1/jobs/1/priority HTTP/1.1", HOST, "{\"priority\":\"nan\"}", 400, "a number" },
	{ "POST /v1/jobs HTTP/1.1", HOST, "{\"folder\":\"/\"}", 400, "needs job" },
	{ "POST /v1/jobs/1/scale HTTP/1.1", HOST, "{\"scale\":0}", 400, "from 1 to" },
	{ "GET /v1/jobs/1/metrics?points=1 HTTP/1.1", HOST, "", 400, "from 2 to 2000" },
	{ "GET /v1/waiting?limit=101 HTTP/1.1", HOST, "", 400, "from 1 to 100" },
	{ "GET /v1/whatif HTTP/1.1", HOST, "", 405, "takes POST" },
	{ "POST /v1/whatif HTTP/1.1", HOST, "{\"job\":1,\"scale\":0}", 400, "from 1 to" },
	{ "POST /v1/whatif HTTP/1.1", HOST, "{\"price\":{\"a\":-1}}", 400, "an object of numbers" },
	{ "POST /v1/whatif HTTP/1.1", HOST, "{\"ad\":{\"a\":1}}", 400, "did you mean add?" },
	{ "POST /v1/jobs HTTP/1.1", HOST, "{\"folder\":\"/\",\"job\":\"x\",\"rates\":{\"a\":-1}}", 400, "an object of numbers" },
	{ "POST /v1/jobs HTTP/1.1", HOST, "{\"folder\":\"/\",\"job\":\"x\",\"rates\":[1]}", 400, "an object of numbers" },
	{ "POST /v1/jobs HTTP/1.1", HOST, "{\"folder\":\"/\",\"job\":\"x\",\"set\":[1]}", 400, "a list of texts" },
	{ "POST /v1/jobs HTTP/1.1", HOST, "{\"folder\":\"/\",\"job\":\"x\",\"scale\":1.5}", 400, "an integer" },
};

static void what_is_refused_has_a_status_a_reason_and_changes_nothing(void **state)
{
	const struct hd_rest_gate gate = { .port = 0 };
	char out[4096];
	(void)state;

	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		int status = ask(&gate, wrong[i].line, wrong[i].head, wrong[i].body, out, sizeof out);
		CHECK(status == wrong[i].status && strstr(out, wrong[i].says) &&
			!strncmp(out, "{\"error\":\"", 10) && strstr(out, "\"exit\":"),
			"case %zu, %s: %d %s", i, wrong[i].line, status, out);
		CHECK(!asked[0], "%s: the handler was asked %s", wrong[i].line, asked);
	}
}

static void long_lines_and_many_headers_are_refused(void **state)
{
	const struct hd_rest_gate gate = { .port = 0 };
	char line[2048], head[4096] = HOST, out[1024];
	(void)state;

	snprintf(line, sizeof line, "GET /%0*d HTTP/1.1", HD_REST_TARGET - 1, 0);
	assert_int_equal(ask(&gate, line, head, "", out, sizeof out), 404);
	snprintf(line, sizeof line, "GET /%0*d HTTP/1.1", HD_REST_TARGET, 0);
	assert_int_equal(ask(&gate, line, head, "", out, sizeof out), 414);
	for (int i = 1; i < HD_REST_HEADERS; i++)
		snprintf(head + strlen(head), sizeof head - strlen(head), "X-%d: y\n", i);
	assert_int_equal(ask(&gate, "GET /v1/status HTTP/1.1", head, "", out, sizeof out), 200);
	snprintf(head + strlen(head), sizeof head - strlen(head), "X: y\n");
	assert_int_equal(ask(&gate, "GET /v1/status HTTP/1.1", head, "", out, sizeof out), 431);
}

static void a_port_asks_for_the_token_and_its_own_name(void **state)
{
	const struct hd_rest_gate gate = { .token = &token, .port = 8123 };
	char head[300], out[1024];
	(void)state;

	for (size_t i = 0; i < HD_KEY_BYTES; i++)
		snprintf(bearer + 2 * i, 3, "%02x", token.byte[i]);
	static const struct { const char *host, *scheme; int change; int status; } cases[] = {
		{ "localhost:8123", "Bearer ", -1, 200 }, { "127.0.0.1:8123", "bearer ", -1, 200 }, { "[::1]:8123", "Bearer ", -1, 200 },
		{ "localhost", "Bearer ", -1, 421 }, { "localhost:81230", "Bearer ", -1, 421 }, { "localhost:812", "Bearer ", -1, 421 },
		{ "localhost:8123", "", -1, 401 }, { "localhost:8123", "Basic ", -1, 401 }, { "localhost:8123", "Bearer  ", -1, 401 },
		{ "localhost:8123", "Bearer ", 0, 401 }, { "localhost:8123", "Bearer ", 31, 401 }, { "localhost:8123", "Bearer ", 63, 401 },
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char text[sizeof bearer];
		snprintf(text, sizeof text, "%s", bearer);
		if (cases[i].change >= 0)
			text[cases[i].change] = text[cases[i].change] == '7' ? '8' : '7';
		snprintf(head, sizeof head, "Host: %s\nAuthorization: %s%s\n", cases[i].host, cases[i].scheme,
			text);
		int status = ask(&gate, "GET /v1/status HTTP/1.1", head, "", out, sizeof out);
		CHECK(status == cases[i].status, "case %zu: %d %s", i, status, out);
		CHECK((status == 200) == (asked[0] != 0), "case %zu", i);
	}
	assert_int_equal(ask(&gate, "GET /v1/status HTTP/1.1", "Host: localhost:8123\n", "", out, sizeof out),
		401);
	/* without a token no path is revealed */
	assert_int_equal(ask(&gate, "GET /nothing HTTP/1.1", "Host: localhost:8123\n", "", out, sizeof out),
		401);
	snprintf(head, sizeof head,
		"Host: localhost:8123\nOrigin: http://localhost:8123\nAuthorization: Bearer %s\n", bearer);
	assert_int_equal(ask(&gate, "GET /v1/status HTTP/1.1", head, "", out, sizeof out), 200);
	snprintf(head, sizeof head,
		"Host: localhost:8123\nOrigin: http://localhost:8124\nAuthorization: Bearer %s\n", bearer);
	assert_int_equal(ask(&gate, "GET /v1/status HTTP/1.1", head, "", out, sizeof out), 403);
}

/* ---- users ---- */

enum { USER = 1001, OPERATOR = 1002, ADMIN = 1003 };

/* By the number on a socket, by the token's first letter on a port; others are none. */
static enum hd_err identify(void *self, const struct hd_credential *c, struct hd_caller *by,
	struct hd_diag *diag)
{
	static const struct { uint32_t uid; char letter; enum hd_role role; } users[] = {
		{ USER, 'u', HD_ROLE_USER }, { OPERATOR, 'o', HD_ROLE_OPERATOR }, { ADMIN, 'a', HD_ROLE_ADMIN } };

	if (c->start_token || (c->local && c->user.uid == 0))
		return hd_identify_owner(self, c, by, diag);
	for (size_t i = 0; i < sizeof users / sizeof *users; i++)
		if (c->local ? c->user.uid == users[i].uid : c->bearer && *c->bearer == users[i].letter) {
			*by = (struct hd_caller){ .uid = users[i].uid, .gid = c->user.gid,
				.role = users[i].role };
			snprintf(by->name, sizeof by->name, "uid-%u", users[i].uid);
			return HD_OK;
		}
	return hd_fail(diag, HD_E_REFUSED, "account %u is no user of this scheduler", c->user.uid);
}

/* A request of the route with what it needs; `body` is "" for a GET. */
static void make_request(const struct hd_rest_route *r, char line[300], char body[400])
{
	size_t n = (size_t)snprintf(line, 300, "%s ", r->method), b = 0;

	for (const char *at = r->path; *at; at++) {
		const char *end = *at == '{' ? strchr(at, '}') : NULL;
		n += (size_t)snprintf(line + n, 300 - n, "%.*s", 1, end ? "7" : at);
		at = end ? end : at;
	}
	snprintf(line + n, 300 - n, " HTTP/1.1");
	body[0] = '\0';
	for (const struct hd_rest_field *f = r->ask; f->name; f++) {
		char in_path[80];
		snprintf(in_path, sizeof in_path, "{%s}", f->name);
		if (!f->needed || strstr(r->path, in_path))
			continue;
		const char *value = f->kind == HD_REST_BOOL ? "true" : f->kind == HD_REST_TEXTS ? "[\"a\"]" :
			f->kind == HD_REST_INT || f->kind == HD_REST_REAL ? "1" : "\"/a\"";
		b += (size_t)snprintf(body + b, 400 - b, "%s\"%s\":%s", b ? "," : "{", f->name, value);
	}
	if (b)
		snprintf(body + b, 400 - b, "}");
}

/* As docs/rest.md says it; what is in no row all users may. */
static enum hd_role least_role(const struct hd_rest_route *r)
{
	static const struct { const char *method, *path; enum hd_role role; } rows[] = {
		{ "POST", "/v1/devices/{device}", HD_ROLE_OPERATOR }, { "POST", "/v1/windows", HD_ROLE_OPERATOR },
		{ "POST", "/v1/windows/{window}/end", HD_ROLE_OPERATOR }, { "POST", "/v1/policy", HD_ROLE_ADMIN },
		{ "POST", "/v1/backup", HD_ROLE_ADMIN }, { "POST", "/v1/stop", HD_ROLE_ADMIN },
		{ "GET", "/v1/sweeps", HD_ROLE_ADMIN }, { "GET", "/v1/sweeps/{sweep}", HD_ROLE_ADMIN } };

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (!strcmp(r->method, rows[i].method) && !strcmp(r->path, rows[i].path))
			return rows[i].role;
	return HD_ROLE_USER;
}

/* A user, an operator, an admin, the owner, an account that is no user: on a socket, and with a token. */
static void each_route_is_for_the_roles_that_the_document_names(void **state)
{
	static const struct hd_handler users = { NULL, answer, identify };
	static const struct { uint32_t uid; const char *bearer; int role; bool owner; } cases[] = {
		{ USER, "u", HD_ROLE_USER, false }, { OPERATOR, "o", HD_ROLE_OPERATOR, false },
		{ ADMIN, "a", HD_ROLE_ADMIN, false }, { 0, NULL, HD_ROLE_ADMIN, true }, { 4, "x", -1, false } };
	char line[300], body[400], head[300], *out = calloc(1, 1 << 20);
	uint32_t refused = 0;
	(void)state;

	handled = &users;
	for (size_t i = 0; i < HD_KEY_BYTES; i++)
		snprintf(bearer + 2 * i, 3, "%02x", token.byte[i]);
	for (const struct hd_rest_route *r = hd_rest_routes; r->method; r++)
		for (size_t k = 0; k < 2 * (sizeof cases / sizeof *cases); k++) {
			const size_t i = k / 2;
			const bool port = k % 2, asks = r->how != HD_REST_SCHEMA &&
				r->how != HD_REST_POLICIES;
			const struct hd_rest_gate gate = { .token = port ? &token : NULL, .port = port ?
				8123 : 0,
				.handler = &users, .from = { .local = !port,
				.user = { .uid = port ? 0 : cases[i].uid, .gid = 5 } } };
			make_request(r, line, body);
			snprintf(head, sizeof head, "Host: localhost%s\n%s%s%s", port ? ":8123" : "",
				port ? "Authorization: Bearer " : "", port ? cases[i].bearer ?
					cases[i].bearer :
				bearer : "", port ? "\n" : "");
			int status = ask(&gate, line, head, body, out, 1 << 20);
			int want = cases[i].role < 0 ? port ? 401 : 403 : asks &&
				cases[i].role < (int)least_role(r) ? 403 : 200;
			CHECK(status == want, "%s %s as uid %u, port %d: %d %s", line, body, cases[i].uid,
				port, status, out);
			CHECK((asked[0] != 0) == (want == 200 && asks), "%s: the handler was asked \"%s\"",
				line,
				asked);
			refused += want != 200;
			if (!asked[0])
				continue;
			CHECK(asked_by.owner == cases[i].owner && (int)asked_by.role == cases[i].role &&
				(asked_by.owner || asked_by.uid == cases[i].uid),
					"%s: asked by uid %u, role %d",
				line, asked_by.uid, (int)asked_by.role);
		}
	handled = NULL;
	CHECK(refused > 60, "%u were refused", refused);
	free(out);
}

/* What a client says of itself is not believed: the account of a socket counts, whatever token comes with
 * it. */
static void a_token_on_a_socket_changes_no_account(void **state)
{
	static const struct hd_handler users = { NULL, answer, identify };
	const struct hd_rest_gate gate = { .handler = &users, .from = { .local = true,
		.user = { .uid = USER, .gid = 5 } } };
	static const char *const heads[] = { "Authorization: Bearer a\n", "Authorization: Bearer x\n",
		"X-User: root\n", "X-Forwarded-For: 127.0.0.1\n", "Cookie: uid=0\n" };
	char head[200], out[4096];
	(void)state;

	handled = &users;
	for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
		snprintf(head, sizeof head, HOST "%s", heads[i]);
		assert_int_equal(ask(&gate, "POST /v1/stop HTTP/1.1", head, "", out, sizeof out), 403);
		assert_int_equal(ask(&gate, "GET /v1/me HTTP/1.1", head, "", out, sizeof out), 200);
		assert_int_equal(asked_by.uid, USER);
		assert_int_equal(asked_by.gid, 5);
	}
	assert_int_equal(ask(&gate, "GET /v1/me HTTP/1.1",
		HOST "Authorization: Bearer a\nAuthorization: Bearer a\n",
		"", out, sizeof out), 400);
	handled = NULL;
}

/* Of the page: its bytes are for everybody on this machine, and for no page of another site. */
static void files_of_the_page_are_served_without_a_token(void **state)
{
	const struct hd_rest_gate gate = { .token = &token, .port = 8123 };
	static const struct { const char *method, *head; int status; } cases[] = {
		{ "GET", "Host: localhost:8123\n", 200 },
		{ "GET", "Host: localhost:8123\nOrigin: http://localhost:8123\n", 200 },
		{ "GET", "Host: example.org\n", 421 }, { "GET", "", 421 },
		{ "GET", "Host: localhost:8123\nOrigin: http://example.org\n", 403 },
		{ "GET", "Host: localhost:8123\n" JSON "Content-Length: 2\n", 400 },
		{ "POST", "Host: localhost:8123\n", 401 },
	};
	char line[200], head[200], *out = calloc(1, 1 << 20);
	size_t n = 0;
	(void)state;

	for (const struct hd_page_file *f = hd_page_files; f->path; f++, n++) {
		for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
			snprintf(line, sizeof line, "%s %s HTTP/1.1", cases[i].method, f->path);
			int status = ask(&gate, line, cases[i].head, "", out, 1 << 20);
			CHECK(status == cases[i].status && !asked[0], "%s, case %zu: %d", line, i, status);
			CHECK(status != 200 || !strcmp(out, f->bytes), "%s: %s", line, out);
		}
		snprintf(line, sizeof line, "GET %s HTTP/1.1", f->path);
		snprintf(head, sizeof head, "Host: localhost:8123\nIf-None-Match: W/\"1\", %s\n", f->tag);
		CHECK(ask(&gate, line, head, "", out, 1 << 20) == 304 && !*out, "%s: %s", line, out);
		snprintf(line, sizeof line, "GET %s?a=b HTTP/1.1", f->path);
		assert_int_equal(ask(&gate, line, "Host: localhost:8123\n", "", out, 1 << 20), 401);
	}
	CHECK(n >= 5 && hd_page_find("/") && hd_page_find("/healthz") && !hd_page_find("/v1/jobs"), "%zu", n);
	free(out);
}

static void a_status_is_numbers_for_prometheus(void **state)
{
	static const char status[] = "{\"counts\":{\"queued\":3,\"done\":10000},\"types\":[{\"type\":"
		"\"a\\\"\\\\\\nb\",\"busy\":1,\"free\":2,\"lost\":0,\"price_usd_h\":2.5}],\"round_s\":"
		"\"inf\",\"late\":\"it does not\",\"slow\":[{},{}]}";
	static const char golden[] = "# HELP heddle_jobs Jobs by state.\n# TYPE heddle_jobs gauge\n"
		"heddle_jobs{state=\"queued\"} 3\nheddle_jobs{state=\"done\"} 10000\n"
		"# HELP heddle_devices Devices by type and what they do.\n# TYPE heddle_devices gauge\n"
		"heddle_devices{type=\"a\\\"\\\\\\nb\",state=\"busy\"} 1\n"
		"heddle_devices{type=\"a\\\"\\\\\\nb\",state=\"free\"} 2\n"
		"heddle_devices{type=\"a\\\"\\\\\\nb\",state=\"out\"} 0\n"
		"# HELP heddle_device_price_usd_per_hour Dollars for a device and hour.\n"
		"# TYPE heddle_device_price_usd_per_hour gauge\n"
		"heddle_device_price_usd_per_hour{type=\"a\\\"\\\\\\nb\"} 2.5\n"
		"# HELP heddle_round_seconds How long a round of the scheduler lasts.\n"
		"# TYPE heddle_round_seconds gauge\nheddle_round_seconds +Inf\n"
		"# HELP heddle_policy_late 1 while the policy does not answer in time.\n"
		"# TYPE heddle_policy_late gauge\nheddle_policy_late 1\n"
		"# HELP heddle_slow_devices Devices that are slow across jobs.\n"
		"# TYPE heddle_slow_devices gauge\nheddle_slow_devices 2\n";
	const struct hd_json *json = NULL;
	struct hd_arena arena;
	struct hd_text text;
	(void)state;

	hd_arena_init(&arena, 0);
	hd_text_init(&text, &arena);
	assert_int_equal(hd_json_parse(&arena, "s", status, strlen(status), &json, NULL), HD_OK);
	hd_rest_metrics(json, &text);
	assert_string_equal(text.at, golden);
	hd_arena_finish(&arena);
}

static void what_the_handler_says_becomes_a_status(void **state)
{
	static const struct { enum hd_err err; int status; const char *says; } cases[] = {
		{ HD_E_NOTFOUND, 404, "\"exit\":3" }, { HD_E_INVAL, 400, "\"exit\":2" }, { HD_E_INPUT, 422, "\"exit\":3" },
		{ HD_E_REFUSED, 507, "\"exit\":11" }, { HD_E_IO, 500, "\"exit\":11" }, { HD_E_AGAIN, 503, "\"exit\":1" },
	};
	const struct hd_rest_gate gate = { .port = 0 };
	char out[1024];
	(void)state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		handler_says = cases[i].err;
		int status = ask(&gate, "GET /v1/jobs/1 HTTP/1.1", HOST, "", out, sizeof out);
		CHECK(status == cases[i].status && strstr(out, cases[i].says) &&
			strstr(out, "the handler says no to job"), "%d: %s", status, out);
	}
	handler_says = HD_OK;
}

static void the_schema_has_every_route_and_member(void **state)
{
	const struct hd_json *json = NULL, *paths = NULL, *at;
	struct hd_json_writer w;
	struct hd_arena arena;
	struct hd_diag diag = { "" };
	struct hd_text text;
	(void)state;

	hd_arena_init(&arena, 0);
	hd_text_init(&text, &arena);
	hd_json_writer_init(&w, &text);
	hd_json_open_object(&w, NULL);
	hd_rest_schema(false, &w);
	hd_json_close(&w);
	CHECK(hd_json_parse(&arena, "schema", text.at, text.len, &json, &diag) == HD_OK, "%s", diag.text);
	assert_int_equal(hd_json_get(json, "paths", HD_JSON_OBJECT, &paths, &diag), HD_OK);
	for (const struct hd_rest_route *r = hd_rest_routes; r->method; r++) {
		char needle[120];
		at = hd_json_find(paths, r->path);
		CHECK(at && hd_json_find(at, r->method[0] == 'G' ? "get" : "post"), "%s %s", r->method,
			r->path);
		for (const struct hd_rest_field *f = r->ask; f->name; f++) {
			snprintf(needle, sizeof needle, "\"description\":\"%.60s", f->about);
			CHECK(strstr(text.at, needle), "%s %s: %s", r->method, r->path, f->name);
		}
	}
	hd_arena_finish(&arena);
}

/* Others do not exist there, for requests and in the schema. */
static void the_page_of_a_run_has_its_routes_alone(void **state)
{
	static const struct { const char *line; int status; } cases[] = {
		{ "GET /v1/jobs HTTP/1.1", 200 }, { "GET /v1/jobs/1/run HTTP/1.1", 200 },
		{ "POST /v1/jobs/1/cancel HTTP/1.1", 200 }, { "GET / HTTP/1.1", 200 },
		{ "POST /v1/jobs HTTP/1.1", 405 }, { "GET /v1/status HTTP/1.1", 404 },
		{ "POST /v1/stop HTTP/1.1", 404 }, { "GET /metrics HTTP/1.1", 404 },
		{ "GET /v1/events HTTP/1.1", 404 }, { "POST /v1/jobs/1/priority HTTP/1.1", 404 },
	};
	const struct hd_rest_gate gate = { .run = true };
	char *out = calloc(1, 1 << 20);
	(void)state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		int status = ask(&gate, cases[i].line, HOST, "", out, 1 << 20);
		CHECK(status == cases[i].status, "%s: %d %s", cases[i].line, status, out);
	}
	assert_int_equal(ask(&gate, "GET /v1/schema HTTP/1.1", HOST, "", out, 1 << 20), 200);
	for (const struct hd_rest_route *r = hd_rest_routes; r->method; r++) {
		char name[120];
		snprintf(name, sizeof name, "\"summary\":\"%s\"", r->about);
		CHECK((strstr(out, name) != NULL) == r->run, "%s %s", r->method, r->path);
	}
	free(out);
}

static void the_document_has_every_route(void **state)
{
	const char *root = getenv("SOURCE_DIR");
	char path[4096], *text = calloc(1, 1 << 16);
	(void)state;

	if (!root) {
		free(text);
		SKIP("SOURCE_DIR does not say where the document is");
	}
	snprintf(path, sizeof path, "%s/docs/rest.md", root);
	FILE *f = fopen(path, "r");
	CHECK(f && text && fread(text, 1, (1 << 16) - 1, f) > 0, "no %s", path);
	fclose(f);
	for (const struct hd_rest_route *r = hd_rest_routes; r->method; r++) {
		char name[120];
		snprintf(name, sizeof name, "`%s %s`", r->method, r->path);
		CHECK(strstr(text, name), "docs/rest.md does not tell of %s", name);
	}
	free(text);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_becomes_the_question_of_its_row),
		cmocka_unit_test(what_is_refused_has_a_status_a_reason_and_changes_nothing),
		cmocka_unit_test(long_lines_and_many_headers_are_refused),
		cmocka_unit_test(a_port_asks_for_the_token_and_its_own_name),
		cmocka_unit_test(each_route_is_for_the_roles_that_the_document_names),
		cmocka_unit_test(a_token_on_a_socket_changes_no_account),
		cmocka_unit_test(files_of_the_page_are_served_without_a_token),
		cmocka_unit_test(a_status_is_numbers_for_prometheus),
		cmocka_unit_test(what_the_handler_says_becomes_a_status),
		cmocka_unit_test(the_schema_has_every_route_and_member),
		cmocka_unit_test(the_page_of_a_run_has_its_routes_alone),
		cmocka_unit_test(the_document_has_every_route),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
