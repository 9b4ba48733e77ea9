#include "daemon/http.h"

#include <microhttpd.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/num.h"

enum { HD_HTTP_REQUEST_ARENA = 64 << 20,          /* a body, its tree, an answer: none comes near */
       HD_HTTP_PAGE = 100,                        /* events asked for at once */
       HD_HTTP_BEARER = 2 * HD_KEY_BYTES + 1,     /* a longer one is no token */
};

/* One request, from its first line until its answer went out. */
struct request {
	struct hd_http *http;
	struct hd_arena arena;
	const char *target;
	struct hd_rest_header header[HD_REST_HEADERS];
	size_t nheaders;
	bool judged, admitted;
	struct hd_rest_way way;
	char *body;                               /* [way.body_bytes], in the arena */
	size_t got;
	struct hd_http_stream *stream;            /* NULL: an answer */
};

struct hd_http_stream {
	struct hd_http *http;
	struct hd_http_stream *next;
	struct MHD_Connection *connection;
	int64_t after, job, ping_ns;
	/* whose it is, which is asked again before each page: a token ends within a stream */
	struct hd_credential credential;
	struct hd_caller by;
	char bearer[HD_HTTP_BEARER];
	bool waits;                               /* the library has suspended it */
	struct hd_arena arena;                    /* of the page at hand */
	struct hd_text text;
	size_t at;                                /* of the text: what went out */
};

enum hd_err hd_http_where(const char *where, char addr[HD_ADDR_CAP], struct hd_diag *diag)
{
	static const char *const hosts[][2] = { { "localhost:", "127.0.0.1:" },
		{ "127.0.0.1:", "127.0.0.1:" }, { "[::1]:", "[::1]:" } };
	uint64_t port;

	for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
		size_t len = strlen(hosts[i][0]);
		if (strncmp(where, hosts[i][0], len) != 0)
			continue;
		if (strspn(where + len, "0123456789") != strlen(where + len) ||
			hd_num_u64(where + len, UINT16_MAX, &port, NULL))
			return hd_fail(diag, HD_E_INVAL,
				"--http %s: the port is a number from 0 (any that is free) to 65535", where);
		snprintf(addr, HD_ADDR_CAP, "tcp:%s%llu", hosts[i][1], (unsigned long long)port);
		return HD_OK;
	}
	return hd_fail(diag, HD_E_INVAL,
		"--http %.200s: HTTP is served to this machine only: 127.0.0.1:PORT or "
		"[::1]:PORT; from another one, `ssh -L PORT:127.0.0.1:PORT HOST` brings it there", where);
}

/* ---- answers ---- */

static struct MHD_Response *dress(struct MHD_Response *r, const struct hd_rest_response *out)
{
	const struct { const char *name, *value; } lines[] = {
		{ MHD_HTTP_HEADER_CONTENT_TYPE, out->type },
		{ "Content-Security-Policy", out->file ? HD_PAGE_POLICY :
			"default-src 'none'; frame-ancestors 'none'" },
		{ "X-Content-Type-Options", "nosniff" },
		{ "Referrer-Policy", "no-referrer" },
		{ "Cross-Origin-Opener-Policy", "same-origin" },
		{ "Cross-Origin-Resource-Policy", "same-origin" },
		{ MHD_HTTP_HEADER_CACHE_CONTROL, out->file ? "no-cache" : "no-store" },
		{ MHD_HTTP_HEADER_ETAG, out->file ? out->file->tag : NULL },
		{ MHD_HTTP_HEADER_CONNECTION, "close" },
		{ MHD_HTTP_HEADER_ALLOW, out->allow },
	};
	bool good = r != NULL;

	for (size_t i = 0; i < sizeof lines / sizeof *lines && good; i++)
		good = !lines[i].value || MHD_add_response_header(r, lines[i].name,
			lines[i].value) == MHD_YES;
	if (r && !good) {
		MHD_destroy_response(r);
		return NULL;
	}
	return r;
}

static struct hd_http_connection *slot_of(struct MHD_Connection *c)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	return info ? info->socket_context : NULL;
}

static void give_time(struct MHD_Connection *c, int64_t until_ns)
{
	struct hd_http_connection *slot = slot_of(c);
	if (slot)
		slot->until_ns = until_ns;
}

/* The text lies in the request's arena, which outlives the answer. */
static enum MHD_Result hand_out(struct request *q, struct MHD_Connection *c,
	const struct hd_rest_response *out)
{
	struct MHD_Response *r = dress(MHD_create_response_from_buffer(out->len, (void *)(uintptr_t)out->body,
		MHD_RESPMEM_PERSISTENT), out);

	if (!r)
		return MHD_NO;
	q->http->refused += out->err != HD_OK;
	if (out->status == 401 && MHD_add_response_header(r, MHD_HTTP_HEADER_WWW_AUTHENTICATE,
		"Bearer") != MHD_YES) {
		MHD_destroy_response(r);
		return MHD_NO;
	}
	give_time(c, hd_clock_now_ns(q->http->loop->clock) + HD_HTTP_ANSWER_NS);
	enum MHD_Result done = MHD_queue_response(c, (unsigned)out->status, r);
	MHD_destroy_response(r);
	return done;
}

static enum MHD_Result say_no(struct request *q, struct MHD_Connection *c, int status, enum hd_err err,
	const char *text)
{
	struct hd_rest_response out;

	hd_rest_refuse(&out, status, err, text, &q->arena);
	return hand_out(q, c, &out);
}

/* ---- limits of a user ---- */

static size_t connections_of(const struct hd_http *http, uint32_t uid)
{
	size_t n = 0;

	for (size_t i = 0; i < HD_HTTP_CONNECTIONS; i++)
		n += http->connection[i].open && http->connection[i].uid == uid;
	return n;
}

static size_t streams_of(const struct hd_http *http, uint32_t uid)
{
	size_t n = 0;

	for (const struct hd_http_stream *s = http->streams; s; s = s->next)
		n += !s->by.owner && s->by.uid == uid;
	return n;
}

static void say_many(struct hd_arena *arena, struct hd_rest_response *no)
{
	char text[120];

	snprintf(text, sizeof text,
		"%d requests of yours are under way at once, as many as one user may have: "
		"wait for one of them", HD_HTTP_OF_USER);
	hd_rest_refuse(no, 429, HD_E_AGAIN, text, arena);
}

/* What it has to say is not waited for: whoever is silent would keep its connection. */
static void turn_away(struct hd_http *http, struct hd_http_connection *c)
{
	struct hd_sock sock = { .net = http->listener.net, .id = c->id };
	struct hd_rest_response no;
	struct hd_arena arena;
	struct hd_text text;
	size_t n = 0;

	hd_arena_init(&arena, 0);
	hd_text_init(&text, &arena);
	say_many(&arena, &no);
	hd_text_addf(&text, "HTTP/1.1 429 Too Many Requests\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
		"Connection: close\r\n\r\n", no.type, no.len);
	hd_text_put(&text, no.body, no.len);
	if (!text.full)
		(void)!hd_sock_write(&sock, text.at, text.len, &n, NULL);
	hd_arena_finish(&arena);
	hd_sock_shut(c->id);
	c->until_ns = INT64_MAX;                  /* the library closes it when it hears of it */
	c->uid = HD_NO_UID;
	http->refused++;
}

/* Written and closed with one write: lines of two servers of a folder do not mix. */
static void note(struct request *q, const char *method, const struct hd_rest_response *out)
{
	struct hd_http *http = q->http;
	struct hd_json_writer w;
	struct hd_text text;

	const struct hd_caller *by = &q->way.by;
	if (!http->audit)
		return;
	hd_text_init(&text, &q->arena);
	hd_json_writer_init(&w, &text);
	hd_json_open_object(&w, NULL);
	hd_json_put_f64(&w, "t", (double)(hd_clock_wall_ns(http->loop->clock) / 1000000) / 1e3);
	hd_json_put_text(&w, "from", http->gate.port ? "tcp" : "unix");
	uint32_t uid = q->admitted ? by->uid : q->way.credential.local ? q->way.credential.user.uid :
		HD_NO_UID;
	hd_json_put_i64(&w, "uid", uid == HD_NO_UID ? -1 : (int64_t)uid);
	hd_json_put_text(&w, "user", q->admitted ? by->name : "");
	hd_json_put_text(&w, "what", q->way.route ? q->way.route->what : "");
	hd_json_put_text(&w, "method", method);
	hd_json_put_text(&w, "target", q->target);
	if (out->account[0])
		hd_json_put_text(&w, "account", out->account);
	hd_json_put_i64(&w, "status", out->status);
	hd_json_put_text(&w, "error", out->err ? hd_err_text(out->err) : "");
	if (http->denied_more && !q->admitted)
		hd_json_put_i64(&w, "more", (int64_t)http->denied_more);
	hd_json_close(&w);
	hd_text_add(&text, "\n");
	http->unaudited += text.full || hd_lines_add(http->audit, text.at, text.len, NULL);
}

/* Any process of the machine can try: so these fill no disk. */
static void note_denied(struct request *q, const char *method, const struct hd_rest_response *out)
{
	int64_t now = hd_clock_now_ns(q->http->loop->clock);

	if (out->status != 401 && out->status != 403)
		return;
	if (q->http->denied_ns && now < q->http->denied_ns + HD_HTTP_DENIED_NS) {
		q->http->denied_more++;
		return;
	}
	note(q, method, out);
	q->http->denied_ns = now;
	q->http->denied_more = 0;
}

/* ---- streams ---- */

static enum hd_err ask_events(struct hd_http_stream *s, const struct hd_json **events, int64_t *last,
	struct hd_diag *diag)
{
	struct hd_text ask, answer;
	struct hd_json_writer w;
	const struct hd_json *json, *object = NULL;

	hd_text_init(&ask, &s->arena);
	hd_json_writer_init(&w, &ask);
	hd_json_open_object(&w, NULL);
	hd_json_put_text(&w, "do", "events");
	hd_json_put_i64(&w, "after", s->after);
	hd_json_put_i64(&w, "limit", HD_HTTP_PAGE);
	if (s->job)
		hd_json_put_i64(&w, "job", s->job);
	hd_json_close(&w);
	enum hd_err err = ask.full ? hd_fail(diag, HD_E_NOMEM, "no memory for events") :
		hd_json_parse(&s->arena, "ask", ask.at, ask.len, &json, diag);
	hd_text_init(&answer, &s->arena);
	hd_json_writer_init(&w, &answer);
	hd_json_open_object(&w, NULL);
	if (!err)
		err = s->http->handler.answer(s->http->handler.self, &s->by, "events", json, &w, diag);
	while (!err && w.depth)
		hd_json_close(&w);
	if (!err)
		err = answer.full ? hd_fail(diag, HD_E_NOMEM, "no memory for events") :
			hd_json_parse(&s->arena, "events", answer.at, answer.len, &object, diag);
	if (!err && hd_json_get_i64(object, "last", 0, INT64_MAX, last, NULL))
		*last = 0;
	return err ? err : hd_json_get(object, "events", HD_JSON_ARRAY, events, diag);
}

/* A copy of an event's members: they are numbers and texts. */
static void copy_event(struct hd_json_writer *w, const struct hd_json *event)
{
	hd_json_open_object(w, NULL);
	for (size_t i = 0; i < hd_json_count(event); i++) {
		const struct hd_json *v = hd_json_item(event, i);
		const char *text = "", *key = hd_json_key(event, i);
		int64_t n = 0;
		double x = 0;
		if (hd_json_kind(v) == HD_JSON_INT && !hd_json_as_i64(v, 0, INT64_MAX, &n, NULL))
			hd_json_put_i64(w, key, n);
		else if (hd_json_kind(v) == HD_JSON_REAL && !hd_json_as_f64(v, &x, NULL))
			hd_json_put_f64(w, key, x);
		else if (hd_json_kind(v) == HD_JSON_TEXT && !hd_json_as_text(v, &text, NULL))
			hd_json_put_text(w, key, text);
	}
	hd_json_close(w);
}

/* The next page as text. The writer puts no line feed into a value, so an event is one line of data. */
static enum hd_err fill(struct hd_http_stream *s)
{
	const struct hd_json *events = NULL;
	struct hd_diag diag = { "" };
	const struct hd_handler *handler = &s->http->handler;
	const char *kind;
	int64_t number, last = 0;

	if (handler->identify && handler->identify(handler->self, &s->credential, &s->by, &diag))
		return HD_E_REFUSED;
	hd_arena_reset(&s->arena);
	s->text = (struct hd_text){ 0 };
	s->at = 0;
	enum hd_err err = ask_events(s, &events, &last, &diag);
	hd_text_init(&s->text, &s->arena);
	for (size_t i = 0; !err && i < hd_json_count(events); i++) {
		const struct hd_json *event = hd_json_item(events, i);
		struct hd_json_writer w;
		err = hd_json_get_i64(event, "number", s->after + 1, INT64_MAX, &number, &diag);
		if (!err)
			err = hd_json_get_text(event, "kind", &kind, &diag);
		if (err)
			break;
		s->after = number;
		hd_text_addf(&s->text, "id: %lld\nevent: %.*s\ndata: ", (long long)number,
			(int)strcspn(kind, "\r\n"), kind);
		hd_json_writer_init(&w, &s->text);
		copy_event(&w, event);
		hd_text_add(&s->text, "\n\n");
	}
	/* the others up to `last` are not for this one, and are not looked at again */
	if (!err && hd_json_count(events) < HD_HTTP_PAGE && last > s->after)
		s->after = last;
	return err ? err : s->text.full ? HD_E_NOMEM : HD_OK;
}

static ssize_t read_stream(void *user, uint64_t pos, char *to, size_t max)
{
	struct hd_http_stream *s = user;
	int64_t now = hd_clock_now_ns(s->http->loop->clock);

	(void)pos;
	if (s->http->closing)
		return MHD_CONTENT_READER_END_OF_STREAM;
	if (s->at == s->text.len && fill(s))
		return MHD_CONTENT_READER_END_WITH_ERROR;
	if (s->text.len == 0 && now >= s->ping_ns)
		hd_text_add(&s->text, ":\n\n");
	if (s->text.len == 0) {
		s->waits = true;
		MHD_suspend_connection(s->connection);
		return 0;
	}
	size_t n = s->text.len - s->at < max ? s->text.len - s->at : max;
	memcpy(to, s->text.at + s->at, n);
	s->at += n;
	s->ping_ns = now + HD_HTTP_PING_NS;
	return (ssize_t)n;
}

static void end_stream(struct hd_http_stream *s)
{
	struct hd_http_stream **at = &s->http->streams;

	while (*at && *at != s)
		at = &(*at)->next;
	if (*at)
		*at = s->next;
	s->http->nstreams--;
	hd_arena_finish(&s->arena);
	hd_free(s);
}

/* Where a stream begins: what the query says, or what an EventSource that lost its connection says. */
static int64_t begins_after(const struct request *q, const char *name)
{
	int64_t n = 0;

	for (size_t i = 0; i < q->nheaders && !strcmp(name, "after"); i++)
		if (!strcasecmp(q->header[i].name, "Last-Event-ID") &&
			hd_num_i64(q->header[i].value, 0, INT64_MAX, &n, NULL))
			n = 0;
	for (size_t i = 0; i < q->way.nparts + q->way.nargs; i++)
		if (!strcmp(q->way.part[i].field->name, name) &&
			hd_num_i64(q->way.part[i].text, 0, INT64_MAX, &n, NULL))
			n = 0;
	return n;
}

static enum MHD_Result begin_stream(struct request *q, struct MHD_Connection *c)
{
	struct hd_http *http = q->http;
	struct hd_rest_response page;

	/* says what is wrong with the arguments, if anything */
	hd_rest_reply(&http->handler, &q->way, NULL, 0, &q->arena, &page);
	if (page.err)
		return hand_out(q, c, &page);
	if (!q->way.by.owner && streams_of(http, q->way.by.uid) >= HD_HTTP_STREAMS_OF_USER) {
		char text[120];
		snprintf(text, sizeof text,
			"you have %d event streams, as many as one user may: end one, or ask "
			"GET /v1/events/past", HD_HTTP_STREAMS_OF_USER);
		return say_no(q, c, 429, HD_E_AGAIN, text);
	}
	if (http->nstreams == HD_HTTP_STREAMS)
		return say_no(q, c, 503, HD_E_AGAIN,
			"all event streams are taken: end one, or ask GET /v1/events/past");
	struct hd_http_stream *s = hd_alloc(sizeof *s);
	if (!s)
		return say_no(q, c, 507, HD_E_NOMEM, "no memory for a stream");
	*s = (struct hd_http_stream){ .http = http, .next = http->streams, .connection = c,
		.after = begins_after(q, "after"),
		.job = begins_after(q, "job"), .ping_ns = hd_clock_now_ns(http->loop->clock) +
		HD_HTTP_PING_NS };
	s->by = q->way.by;
	s->credential = q->way.credential;
	if (s->credential.bearer) {
		snprintf(s->bearer, sizeof s->bearer, "%s", s->credential.bearer);
		s->credential.bearer = s->bearer;
	}
	hd_arena_init(&s->arena, HD_HTTP_REQUEST_ARENA);
	struct MHD_Response *r = dress(MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 4096, read_stream,
		s, NULL), &(struct hd_rest_response){ .type = "text/event-stream" });
	enum MHD_Result done = MHD_NO;
	if (r) {
		give_time(c, INT64_MAX);
		http->streams = q->stream = s;
		http->nstreams++;
		done = MHD_queue_response(c, 200, r);
		MHD_destroy_response(r);
		return done;
	}
	hd_arena_finish(&s->arena);
	hd_free(s);
	return done;
}

/* ---- what the library calls ---- */

/* The target as it came, before the library takes it apart. */
static void *begin_request(void *user, const char *target, struct MHD_Connection *c)
{
	struct hd_http *http = user;
	struct request *q = hd_alloc(sizeof *q);

	(void)c;
	if (!q)
		return NULL;
	memset(q, 0, sizeof *q);
	q->http = http;
	hd_arena_init(&q->arena, HD_HTTP_REQUEST_ARENA);
	q->target = hd_arena_text(&q->arena, target, strlen(target));
	http->requests++;
	return q;
}

static void end_request(void *user, struct MHD_Connection *c, void **state,
	enum MHD_RequestTerminationCode how)
{
	struct request *q = *state;

	(void)user, (void)c, (void)how;
	if (!q)
		return;
	if (q->stream)
		end_stream(q->stream);
	hd_arena_finish(&q->arena);
	hd_free(q);
	*state = NULL;
}

static enum MHD_Result take_header(void *user, enum MHD_ValueKind kind, const char *name, const char *value)
{
	struct request *q = user;

	(void)kind;
	if (q->nheaders < HD_REST_HEADERS)
		q->header[q->nheaders] = (struct hd_rest_header){ name, value ? value : "" };
	q->nheaders++;
	return MHD_YES;
}

static enum MHD_Result judge(struct request *q, struct MHD_Connection *c, const char *method,
	const char *version)
{
	const union MHD_ConnectionInfo *size = MHD_get_connection_info(c,
		MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
	struct hd_rest_response no;

	q->judged = true;
	if (!q->target)
		return say_no(q, c, 507, HD_E_NOMEM, "no memory for the request");
	if (!size || size->header_size > HD_REST_HEADER_BYTES)
		return say_no(q, c, 431, HD_E_INVAL, "the headers are longer than 16 KiB");
	MHD_get_connection_values(c, MHD_HEADER_KIND, take_header, q);
	const struct hd_rest_request r = { method, q->target, version, q->header, q->nheaders, NULL, 0 };
	struct hd_rest_gate gate = q->http->gate;
	const union MHD_ConnectionInfo *id = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
	gate.from.local = id && hd_sock_user_of(id->connect_fd, &gate.from.user);
	q->admitted = hd_rest_admit(&gate, &r, &q->arena, &q->way, &no);
	if (!q->admitted) {
		note_denied(q, method, &no);
		return hand_out(q, c, &no);
	}
	struct hd_http_connection *slot = slot_of(c);
	if (slot && !q->way.file && !q->way.by.owner && slot->uid == HD_NO_UID) {
		slot->uid = q->way.by.uid;
		if (connections_of(q->http, slot->uid) > HD_HTTP_OF_USER) {
			say_many(&q->arena, &no);
			q->admitted = false;
			return hand_out(q, c, &no);
		}
	}
	if (q->way.body_bytes && !(q->body = hd_arena_take(&q->arena, q->way.body_bytes, 1)))
		return say_no(q, c, 507, HD_E_NOMEM, "no memory for the body");
	return MHD_YES;
}

static enum MHD_Result handle(void *user, struct MHD_Connection *c, const char *url, const char *method,
	const char *version, const char *data,
	size_t *len, void **state)
{
	struct request *q = *state;
	struct hd_rest_response out;

	(void)user, (void)url;
	if (!q)
		return MHD_NO;
	if (!q->judged)
		return judge(q, c, method, version);
	if (!q->admitted)
		return MHD_NO;
	if (*len) {
		if (*len > q->way.body_bytes - q->got)
			return MHD_NO;                            /* the library counts: cannot be */
		memcpy(q->body + q->got, data, *len);
		q->got += *len;
		*len = 0;
		return MHD_YES;
	}
	if (q->way.route && q->way.route->how == HD_REST_STREAM)
		return begin_stream(q, c);
	hd_rest_reply(&q->http->handler, &q->way, q->body, q->got, &q->arena, &out);
	if (q->way.route && q->way.route->changes)
		note(q, method, &out);
	return hand_out(q, c, &out);
}

/* Known before a word is said on a socket that all accounts can reach; its owners have no limits. */
static uint32_t user_of(const struct hd_http *http, int id)
{
	struct hd_sock_user user;
	bool known = http->shared && hd_sock_user_of(id, &user);

	return known && user.uid != 0 && user.uid != hd_account_self() ? user.uid : HD_NO_UID;
}

static void connection_changed(void *user, struct MHD_Connection *c, void **slot,
	enum MHD_ConnectionNotificationCode how)
{
	struct hd_http *http = user;
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct hd_http_connection *at = *slot;

	if (how == MHD_CONNECTION_NOTIFY_CLOSED) {
		if (at)
			at->open = false;
		return;
	}
	const uint32_t uid = info ? user_of(http, info->connect_fd) : HD_NO_UID;
	const bool many = uid != HD_NO_UID && connections_of(http, uid) >= HD_HTTP_OF_USER;
	for (size_t i = 0; i < HD_HTTP_CONNECTIONS && info; i++)
		if (!http->connection[i].open) {
			http->connection[i] = (struct hd_http_connection){ true, info->connect_fd,
				hd_clock_now_ns(http->loop->clock) + HD_HTTP_REQUEST_NS, uid };
			*slot = &http->connection[i];
			if (many)
				turn_away(http, *slot);
			return;
		}
}

/* ---- the server ---- */

static enum hd_err start(struct hd_http *http, struct hd_diag *diag)
{
	http->mhd = MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, handle, http,
		MHD_OPTION_LISTEN_SOCKET, http->listener.id,
		MHD_OPTION_URI_LOG_CALLBACK, begin_request, http,
		MHD_OPTION_NOTIFY_COMPLETED, end_request, http,
		MHD_OPTION_NOTIFY_CONNECTION, connection_changed, http,
		MHD_OPTION_STRICT_FOR_CLIENT, 1,
		MHD_OPTION_CONNECTION_LIMIT, (unsigned)HD_HTTP_CONNECTIONS,
		MHD_OPTION_PER_IP_CONNECTION_LIMIT, (unsigned)HD_HTTP_PER_ADDRESS,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HD_HTTP_MEMORY,
		MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)HD_HTTP_IDLE_S,
		MHD_OPTION_END);
	const union MHD_DaemonInfo *info = http->mhd ? MHD_get_daemon_info(http->mhd,
		MHD_DAEMON_INFO_EPOLL_FD) : NULL;
	if (!info)
		return hd_fail(diag, HD_E_REFUSED, "the HTTP server of %s did not start",
			http->listener.addr);
	return hd_loop_watch(http->loop, info->epoll_fd, HD_LOOP_READ, http->tag, diag);
}

/* Where others could put a socket of their own under the name, users would speak to it. */
static enum hd_err share(const char *addr, struct hd_diag *diag)
{
	const char *path = addr + strlen("unix:");
	char folder[HD_ADDR_CAP];
	const char *slash = strrchr(path, '/');

	snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
	if (!hd_account_is_folder_ours(*folder ? folder : "/"))
		return hd_fail(diag, HD_E_REFUSED, "others can put files into the folder of %s: `chmod go-w` "
			"it, or choose another one", addr);
	return hd_account_open_to_all(path, diag);
}

enum hd_err hd_http_open(struct hd_http *http, const char *addr, struct hd_loop *loop, struct hd_net *net,
	struct hd_diag *diag)
{
	bool tcp = !strncmp(addr, "tcp:", 4);
	uint64_t port = 0;

	http->loop = loop;
	http->closing = false;
	if (tcp != (http->token != NULL))
		return hd_fail(diag, HD_E_INVAL, "%s: a port is served with a token, a Unix socket without",
			addr);
	enum hd_err err = hd_sock_listen(net, addr, &http->listener, diag);
	if (err)
		return err;
	if (!tcp && http->shared)
		err = share(addr, diag);
	else if (!tcp && !hd_sock_is_private(net, addr))
		err = hd_fail(diag, HD_E_REFUSED, "others can enter the folder of %s: `chmod 700` it", addr);
	const char *colon = strrchr(http->listener.addr, ':');
	if (!err && tcp && (!colon || hd_num_u64(colon + 1, UINT16_MAX, &port, NULL)))
		err = hd_fail(diag, HD_E_BUG, "%s has no port", http->listener.addr);
	http->gate.token = http->token;
	http->gate.port = (uint16_t)port;
	http->gate.handler = &http->handler;
	if (!err)
		err = start(http, diag);
	if (err)
		hd_http_close(http);
	return err;
}

/* One by one: to resume all is to hear of all that new events came, or that it is over. */
static void wake_streams(struct hd_http *http, int64_t due_ns)
{
	for (struct hd_http_stream *s = http->streams; s; s = s->next)
		if (s->waits && s->ping_ns <= due_ns) {
			s->waits = false;
			MHD_resume_connection(s->connection);
			http->run_ns = 0;
		}
}

static void run(struct hd_http *http)
{
	MHD_UNSIGNED_LONG_LONG wait_ms;

	(void)MHD_run(http->mhd);                         /* fails only without a daemon */
	http->run_ns = MHD_get_timeout(http->mhd, &wait_ms) != MHD_YES ? INT64_MAX :
		wait_ms == 0 ? 0 : hd_clock_now_ns(http->loop->clock) + (int64_t)(wait_ms < 60000 ? wait_ms :
		60000) * 1000000;
}

void hd_http_close(struct hd_http *http)
{
	if (http->mhd) {
		const union MHD_DaemonInfo *info = MHD_get_daemon_info(http->mhd, MHD_DAEMON_INFO_EPOLL_FD);
		http->closing = true;
		wake_streams(http, INT64_MAX);
		run(http);                                /* the library must find no suspended connection */
		if (info)
			hd_loop_unwatch(http->loop, info->epoll_fd);
		(void)MHD_quiesce_daemon(http->mhd);      /* the listener stays ours */
		MHD_stop_daemon(http->mhd);
		http->mhd = NULL;
	}
	hd_sock_close(&http->listener);
}

void hd_http_event(struct hd_http *http, const struct hd_loop_event *event)
{
	(void)event;
	run(http);
}

void hd_http_changed(struct hd_http *http) { http->changed = true; }

int64_t hd_http_tick(struct hd_http *http, int64_t now_ns)
{
	int64_t next = INT64_MAX;

	if (!http->mhd)                           /* a port that was not asked for has no next time */
		return next;
	for (size_t i = 0; i < HD_HTTP_CONNECTIONS; i++) {
		struct hd_http_connection *c = &http->connection[i];
		if (c->open && c->until_ns <= now_ns) {
			hd_sock_shut(c->id);
			/* once: the library closes it when it hears of it */
			c->until_ns = INT64_MAX;
			http->run_ns = 0;
		}
	}
	wake_streams(http, http->changed ? INT64_MAX : now_ns);
	http->changed = false;
	if (http->run_ns <= now_ns)
		run(http);
	for (size_t i = 0; i < HD_HTTP_CONNECTIONS; i++)
		if (http->connection[i].open && http->connection[i].until_ns < next)
			next = http->connection[i].until_ns;
	for (const struct hd_http_stream *s = http->streams; s; s = s->next)
		if (s->waits && s->ping_ns < next)
			next = s->ping_ns;
	return http->run_ns < next ? http->run_ns : next;
}
