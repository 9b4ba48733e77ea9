#include "functions/emulator.h"

#include <string.h>

#include "base/base64.h"

enum { VALUE_BYTES = 4096 };               /* of a signed line: a session token */
enum { SERVER = 1, INSTANCES = SERVER + HD_FN_SERVER_TAGS };

static hd_fn_handler on_request;

enum hd_err hd_emulator_open(struct hd_emulator *e, struct hd_clock *clock, const char *addr,
	const struct hd_fn_instances_spec *spec, struct hd_diag *diag)
{
	struct hd_fn_instances_spec own = *spec;

	memset(e, 0, sizeof *e);
	e->clock = clock;
	e->timeout_ns = INT64_C(900000000000);
	own.tag = INSTANCES;
	hd_net_real(&e->net);
	e->server = (struct hd_fn_server){ .handler = on_request, .self = e, .tag = SERVER };
	enum hd_err err = hd_loop_init(&e->loop, clock, diag);
	if (!err)
		err = hd_fn_instances_open(&e->instances, &own, &e->loop, diag);
	if (!err)
		err = hd_fn_server_open(&e->server, &e->net, addr, &e->loop, diag);
	if (err)
		hd_emulator_close(e);
	return err;
}

void hd_emulator_close(struct hd_emulator *e)
{
	hd_fn_instances_close(&e->instances);
	hd_fn_server_close(&e->server);
	hd_loop_finish(&e->loop);
}

/* ---- signatures ---- */

/* The text between `after` and the next sign of `end`, copied. */
static bool part_of(const char *text, const char *after, const char *end, char *out, size_t cap)
{
	const char *at = strstr(text, after);
	size_t n = at ? strcspn(at + strlen(after), end) : 0;

	if (!n || n >= cap)
		return false;
	memcpy(out, at + strlen(after), n);
	out[n] = '\0';
	return true;
}

static bool copy_value(const struct hd_http_head *head, const char *name, char *out, size_t cap)
{
	struct hd_http_span value = hd_http_find(head, name);

	if (!value.at || value.len >= cap)
		return false;
	memcpy(out, value.at, value.len);
	out[value.len] = '\0';
	return true;
}

/* Makes the signature again, of what came. */
static bool is_signed(const struct hd_http_head *head, const char *body, size_t len)
{
	char line[1024], key[128], region[64], names[256], given[128], target[512], date[64],
		again[HD_SHA256_HEX];
	char value[HD_SIGV4_LINES][VALUE_BYTES];
	struct hd_sigv4_request r = { .method = "POST", .target = target, .date = date };

	if (!copy_value(head, "Authorization", line, sizeof line) || strncmp(line, "AWS4-HMAC-SHA256 ",
		17) != 0 ||
		!copy_value(head, "X-Amz-Date", date, sizeof date) || head->target.len >= sizeof target)
		return false;
	memcpy(target, head->target.at, head->target.len);
	target[head->target.len] = '\0';
	if (!part_of(line, "Credential=", "/", key, sizeof key) || strcmp(key, HD_EMULATED_ID) != 0 ||
		!part_of(line, "SignedHeaders=", ", ", names, sizeof names) ||
		!part_of(line, "Signature=", ", ", given, sizeof given))
		return false;
	const char *scope = strstr(line, "Credential=") + strlen("Credential=") + strlen(key) + 1;
	const char *slash = strchr(scope, '/');
	if (!slash || !part_of(slash, "/", "/", region, sizeof region))
		return false;
	for (char *at = names; *at && r.nlines < HD_SIGV4_LINES; r.nlines++) {
		size_t n = strcspn(at, ";");
		bool more = at[n] != '\0';
		at[n] = '\0';
		if (!copy_value(head, at, value[r.nlines], sizeof value[0]))
			return false;
		r.line[r.nlines] = (struct hd_sigv4_line){ at, value[r.nlines] };
		at += n + more;
	}
	const struct hd_sigv4_rights rights = { HD_EMULATED_ID, HD_EMULATED_SECRET, region, "lambda" };
	return !hd_sha256(body, len, &r.body, NULL) && !hd_sigv4_sign(&rights, &r, again, NULL) &&
		!strcmp(again, given);
}

/* ---- requests ---- */

static void begin_call(struct hd_emulator *e, struct hd_fn_caller *c, size_t len)
{
	int64_t now_ns = hd_clock_now_ns(e->clock);
	enum hd_err err = hd_fn_instances_call(&e->instances, e->ncalls + 1, c->body, len,
		now_ns + e->timeout_ns, NULL);

	if (err == HD_E_AGAIN) {
		e->throttled++;
		hd_fn_serve_say(&e->server, c, "429 Too Many Requests",
			"X-Amzn-ErrorType: TooManyRequestsException\r\n", "{}");
	} else if (err) {
		hd_fn_serve_say(&e->server, c, "500 Internal Server Error", "", "{}");
	} else {
		c->call = ++e->ncalls;
		c->waits = true;
	}
}

/* Other ways to call are not emulated. */
static bool waits_for_answer(const struct hd_http_head *head)
{
	struct hd_http_span type = hd_http_find(head, "X-Amz-Invocation-Type");

	return !type.at || hd_http_is(type, "RequestResponse");
}

static void on_request(void *self, struct hd_fn_caller *c, enum hd_err how, const struct hd_http_head *head,
	size_t len)
{
	struct hd_emulator *e = self;
	struct hd_fn_server *s = &e->server;
	char name[HD_LAMBDA_NAME];

	if (how == HD_E_NOSPACE)
		hd_fn_serve_say(s, c, "413 Request Entity Too Large",
			"X-Amzn-ErrorType: RequestTooLargeException\r\n", "{}");
	else if (how)
		hd_fn_serve_say(s, c, "400 Bad Request", "", "{}");
	else if (!hd_http_is(head->method, "POST") || !hd_lambda_function_of(head->target, name))
		hd_fn_serve_say(s, c, "404 Not Found", "X-Amzn-ErrorType: ResourceNotFoundException\r\n",
			"{}");
	else if (!e->no_auth && !is_signed(head, c->body, len)) {
		e->refused++;
		hd_fn_serve_say(s, c, "403 Forbidden", "X-Amzn-ErrorType: InvalidSignatureException\r\n",
			"{}");
	} else if (!waits_for_answer(head)) {
		hd_fn_serve_say(s, c, "400 Bad Request",
			"X-Amzn-ErrorType: InvalidParameterValueException\r\n",
			"{\"Message\":\"X-Amz-Invocation-Type: RequestResponse alone is emulated\"}");
	} else {
		begin_call(e, c, len);
	}
}

/* ---- ends of calls ---- */

static void end_call(struct hd_emulator *e, const struct hd_fn_called *called)
{
	struct hd_fn_caller *c = NULL;
	char report[512], lines[1200];
	struct hd_text text, all;

	for (size_t i = 0; i < HD_FN_CALLERS && !c; i++)
		if (e->server.at[i].waits && e->server.at[i].call == called->call)
			c = &e->server.at[i];
	if (!c)
		return;
	if (called->end == HD_FN_LOST) {
		hd_fn_serve_drop(&e->server, c);
		return;
	}
	hd_text_fixed(&text, report, sizeof report);
	hd_lambda_report_write(&called->report, &text);
	hd_text_fixed(&all, lines, sizeof lines);
	hd_text_addf(&all, "X-Amzn-RequestId: %s\r\nX-Amz-Executed-Version: $LATEST\r\n", called->report.id);
	if (called->end != HD_FN_ANSWERED)
		hd_text_add(&all, "X-Amz-Function-Error: Unhandled\r\n");
	hd_text_add(&all, "X-Amz-Log-Result: ");
	hd_base64_write(text.at, text.len, &all);
	hd_text_add(&all, "\r\n");
	hd_fn_serve_say(&e->server, c, "200 OK", all.at, called->end == HD_FN_ANSWERED ? called->body :
		"{\"errorMessage\":\"the function ended without an "
		"answer\",\"errorType\":\"Runtime.ExitError\"}");
}

static int64_t look(struct hd_emulator *e)
{
	int64_t now_ns = hd_clock_now_ns(e->clock), next_ns = hd_fn_instances_tick(&e->instances, now_ns);
	struct hd_fn_called called;

	while (hd_fn_instances_take(&e->instances, &called))
		end_call(e, &called);
	int64_t server_ns = hd_fn_server_tick(&e->server, now_ns);
	return server_ns < next_ns ? server_ns : next_ns;
}

enum hd_err hd_emulator_poll(struct hd_emulator *e, int64_t at_ns, struct hd_diag *diag)
{
	struct hd_loop_event event[32];
	size_t n = 0;

	do {
		int64_t next_ns = look(e);
		enum hd_err err = hd_loop_poll(&e->loop, next_ns < at_ns ? next_ns : at_ns, event, 32, &n,
			diag);
		if (err)
			return err;
		for (size_t i = 0; i < n; i++) {
			if (event[i].what & HD_LOOP_WAKE)
				at_ns = 0;
			else if (event[i].tag >= INSTANCES)
				hd_fn_instances_event(&e->instances, &event[i]);
			else
				hd_fn_server_event(&e->server, &event[i]);
		}
		(void)look(e);
	} while (hd_clock_now_ns(e->clock) < at_ns);
	return HD_OK;
}
