#include "functions/emulator.h"

#include <string.h>

#include "base/alloc.h"

enum { VALUE_BYTES = 4096 };               /* of a signed line: a session token */
enum { LISTENER = 1, FIRST = 2, INSTANCES = FIRST + HD_EMULATED_CALLERS };

enum hd_err hd_emulator_open(struct hd_emulator *e, struct hd_clock *clock, const char *addr,
	const struct hd_fn_instances_spec *spec, struct hd_diag *diag)
{
	struct hd_fn_instances_spec own = *spec;

	memset(e, 0, sizeof *e);
	e->clock = clock;
	e->timeout_ns = INT64_C(900000000000);
	own.tag = INSTANCES;
	hd_net_real(&e->net);
	e->at = hd_alloc(HD_EMULATED_CALLERS * sizeof *e->at);
	if (!e->at)
		return hd_fail(diag, HD_E_NOMEM, "no memory for an emulator");
	memset(e->at, 0, HD_EMULATED_CALLERS * sizeof *e->at);
	enum hd_err err = hd_loop_init(&e->loop, clock, diag);
	if (!err)
		err = hd_fn_instances_open(&e->instances, &own, &e->loop, diag);
	if (!err)
		err = hd_sock_listen(&e->net, addr, &e->listener, diag);
	if (!err)
		err = hd_loop_watch(&e->loop, e->listener.id, HD_LOOP_READ, LISTENER, diag);
	if (err)
		hd_emulator_close(e);
	return err;
}

static void drop(struct hd_emulator *e, struct hd_emulated_caller *c)
{
	if (c->sock.net)
		hd_loop_unwatch(&e->loop, c->sock.id);
	hd_sock_close(&c->sock);
	c->sock = (struct hd_sock){ 0 };
	c->waits = false;
}

void hd_emulator_close(struct hd_emulator *e)
{
	hd_fn_instances_close(&e->instances);
	for (size_t i = 0; e->at && i < HD_EMULATED_CALLERS; i++)
		drop(e, &e->at[i]);
	hd_free(e->at);
	e->at = NULL;
	if (e->listener.net)
		hd_loop_unwatch(&e->loop, e->listener.id);
	hd_sock_close(&e->listener);
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

static void say(struct hd_emulated_caller *c, const char *status, const char *lines, const char *body)
{
	int n = snprintf(c->out, sizeof c->out, "HTTP/1.1 %s\r\n%sContent-Type: application/json\r\n"
		"Connection: close\r\nContent-Length: %zu\r\n\r\n%s", status, lines, strlen(body), body);

	c->out_len = n > 0 && (size_t)n < sizeof c->out ? (size_t)n : 0;
	c->out_at = 0;
	c->waits = false;
}

static void begin_call(struct hd_emulator *e, struct hd_emulated_caller *c, size_t len)
{
	int64_t now_ns = hd_clock_now_ns(e->clock);
	enum hd_err err = hd_fn_instances_call(&e->instances, e->ncalls + 1, c->body, len,
		now_ns + e->timeout_ns,
		NULL);

	if (err == HD_E_AGAIN) {
		e->throttled++;
		say(c, "429 Too Many Requests", "X-Amzn-ErrorType: TooManyRequestsException\r\n", "{}");
	} else if (err) {
		say(c, "500 Internal Server Error", "", "{}");
	} else {
		c->call = ++e->ncalls;
		c->waits = true;
		c->until_ns = INT64_MAX;
	}
}

/* Other ways to call are not emulated. */
static bool waits_for_answer(const struct hd_http_head *head)
{
	struct hd_http_span type = hd_http_find(head, "X-Amz-Invocation-Type");

	return !type.at || hd_http_is(type, "RequestResponse");
}

static void answer_request(struct hd_emulator *e, struct hd_emulated_caller *c)
{
	struct hd_http_head head;
	char name[HD_LAMBDA_NAME];
	size_t len = 0;

	enum hd_err err = hd_http_read_head(HD_HTTP_A_REQUEST, c->in, c->in_len, &head);
	if (!err)
		err = hd_http_read_body(&head, c->in + head.len_bytes, c->in_len - head.len_bytes, false,
			c->body,
			sizeof c->body, &len);
	if (err == HD_E_AGAIN && c->in_len < sizeof c->in)
		return;
	if (err == HD_E_NOSPACE)
		say(c, "413 Request Entity Too Large", "X-Amzn-ErrorType: RequestTooLargeException\r\n",
			"{}");
	else if (err)
		say(c, "400 Bad Request", "", "{}");
	else if (!hd_http_is(head.method, "POST") || !hd_lambda_function_of(head.target, name))
		say(c, "404 Not Found", "X-Amzn-ErrorType: ResourceNotFoundException\r\n", "{}");
	else if (!e->no_auth && !is_signed(&head, c->body, len)) {
		e->refused++;
		say(c, "403 Forbidden", "X-Amzn-ErrorType: InvalidSignatureException\r\n", "{}");
	} else if (!waits_for_answer(&head)) {
		say(c, "400 Bad Request", "X-Amzn-ErrorType: InvalidParameterValueException\r\n",
			"{\"Message\":\"X-Amz-Invocation-Type: RequestResponse alone is emulated\"}");
	} else {
		begin_call(e, c, len);
	}
}

static void go_on(struct hd_emulator *e, struct hd_emulated_caller *c)
{
	bool ended = false;

	while (!c->waits && !c->out_len && !ended && c->in_len < sizeof c->in) {
		size_t n = 0;
		enum hd_err err = hd_sock_read(&c->sock, c->in + c->in_len, sizeof c->in - c->in_len, &n,
			NULL);
		if (err == HD_E_AGAIN)
			break;
		ended = err || !n;
		c->in_len += err ? 0 : n;
	}
	if (!c->waits && !c->out_len)
		answer_request(e, c);
	while (c->out_at < c->out_len) {
		size_t n = 0;
		enum hd_err err = hd_sock_write(&c->sock, c->out + c->out_at, c->out_len - c->out_at, &n,
			NULL);
		if (err == HD_E_AGAIN)
			break;
		ended = ended || err;
		if (err)
			break;
		c->out_at += n;
	}
	if ((ended && !c->waits) || (c->out_len && c->out_at == c->out_len)) {
		drop(e, c);
		return;
	}
	unsigned wants = c->waits ? 0u : c->out_len ? HD_LOOP_WRITE : HD_LOOP_READ;
	if (!wants)
		hd_loop_unwatch(&e->loop, c->sock.id);
	else if (hd_loop_watch(&e->loop, c->sock.id, wants, (uint64_t)(c - e->at) + FIRST, NULL))
		drop(e, c);
}

static void accept_all(struct hd_emulator *e)
{
	struct hd_sock sock = { 0 };

	while (!hd_sock_accept(&e->listener, &sock, NULL)) {
		struct hd_emulated_caller *c = NULL;
		for (size_t i = 0; i < HD_EMULATED_CALLERS && !c; i++)
			c = e->at[i].sock.net ? NULL : &e->at[i];
		if (!c) {
			hd_sock_close(&sock);
			continue;
		}
		c->sock = sock;
		c->in_len = c->out_len = c->out_at = 0;
		c->waits = false;
		c->until_ns = hd_clock_now_ns(e->clock) + HD_EMULATED_REQUEST_NS;
		go_on(e, c);
	}
}

/* ---- ends of calls ---- */

static void end_call(struct hd_emulator *e, const struct hd_fn_called *called)
{
	struct hd_emulated_caller *c = NULL;
	char report[512], lines[1200];
	struct hd_text text, all;

	for (size_t i = 0; i < HD_EMULATED_CALLERS && !c; i++)
		if (e->at[i].sock.net && e->at[i].waits && e->at[i].call == called->call)
			c = &e->at[i];
	if (!c)
		return;
	if (called->end == HD_FN_LOST) {
		drop(e, c);
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
	say(c, "200 OK", all.at, called->end == HD_FN_ANSWERED ? called->body :
		"{\"errorMessage\":\"the function ended without an "
		"answer\",\"errorType\":\"Runtime.ExitError\"}");
	c->until_ns = hd_clock_now_ns(e->clock) + HD_EMULATED_REQUEST_NS;
	go_on(e, c);
}

static int64_t look(struct hd_emulator *e)
{
	int64_t now_ns = hd_clock_now_ns(e->clock), next_ns = hd_fn_instances_tick(&e->instances, now_ns);
	struct hd_fn_called called;

	while (hd_fn_instances_take(&e->instances, &called))
		end_call(e, &called);
	for (size_t i = 0; i < HD_EMULATED_CALLERS; i++) {
		struct hd_emulated_caller *c = &e->at[i];
		if (c->sock.net && now_ns >= c->until_ns)
			drop(e, c);
		else if (c->sock.net && c->until_ns < next_ns)
			next_ns = c->until_ns;
	}
	return next_ns;
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
			else if (event[i].tag == LISTENER)
				accept_all(e);
			else if (event[i].tag >= INSTANCES)
				hd_fn_instances_event(&e->instances, &event[i]);
			else if (event[i].tag >= FIRST && e->at[event[i].tag - FIRST].sock.net)
				go_on(e, &e->at[event[i].tag - FIRST]);
		}
		(void)look(e);
	} while (hd_clock_now_ns(e->clock) < at_ns);
	return HD_OK;
}
