#include "chaos/metadata_server.h"

#include <string.h>

enum { LISTENER = 1, FIRST = 2 };         /* tags */

enum hd_err hd_metadata_open(struct hd_metadata_server *s, struct hd_clock *clock, const char *addr,
	struct hd_diag *diag)
{
	memset(s, 0, sizeof *s);
	s->clock = clock;
	hd_net_real(&s->net);
	hd_metadata_init(&s->metadata, hd_clock_now_ns(clock));
	enum hd_err err = hd_loop_init(&s->loop, clock, diag);
	if (!err)
		err = hd_sock_listen(&s->net, addr, &s->listener, diag);
	if (!err)
		err = hd_loop_watch(&s->loop, s->listener.id, HD_LOOP_READ, LISTENER, diag);
	if (err)
		hd_metadata_close(s);
	return err;
}

static void drop(struct hd_metadata_server *s, struct hd_metadata_connection *c)
{
	if (c->sock.net)
		hd_loop_unwatch(&s->loop, c->sock.id);
	hd_sock_close(&c->sock);
	c->sock = (struct hd_sock){ 0 };
}

void hd_metadata_close(struct hd_metadata_server *s)
{
	for (size_t i = 0; i < HD_METADATA_CONNECTIONS; i++)
		drop(s, &s->connection[i]);
	if (s->listener.net)
		hd_loop_unwatch(&s->loop, s->listener.id);
	hd_sock_close(&s->listener);
	hd_loop_finish(&s->loop);
}

static void note(struct hd_metadata_server *s, const struct hd_metadata_connection *c)
{
	int status = 0;

	if (c->out_len > 12 && !memcmp(c->out, "HTTP/1.1 ", 9))
		status = (c->out[9] - '0') * 100 + (c->out[10] - '0') * 10 + c->out[11] - '0';
	if (!s->log)
		return;
	fprintf(s->log, "{\"t_ms\":%lld,\"method\":\"%.*s\",\"target\":\"%.*s\",\"status\":%d}\n",
		(long long)((hd_clock_now_ns(s->clock) - s->metadata.began_ns) / HD_NS_PER_MS),
		(int)c->head.method.len, c->head.method.at, (int)strcspn(c->head.target.at, " \"\\\r\n"),
		c->head.target.at, status);
	fflush(s->log);
}

/* HD_E_AGAIN: the rest must come. */
static enum hd_err read_request(struct hd_metadata_connection *c)
{
	bool ended = false;
	size_t len = 0;

	while (!ended && c->in_len < HD_METADATA_IN) {
		size_t n = 0;
		enum hd_err err = hd_sock_read(&c->sock, c->in + c->in_len, HD_METADATA_IN - c->in_len, &n,
			NULL);
		if (err == HD_E_AGAIN)
			break;
		ended = err || !n;
		c->in_len += err ? 0 : n;
	}
	enum hd_err err = hd_http_read_head(HD_HTTP_A_REQUEST, c->in, c->in_len, &c->head);
	if (!err)
		err = hd_http_read_body(&c->head, c->in + c->head.len_bytes, c->in_len - c->head.len_bytes,
		ended,
			c->body, sizeof c->body, &len);
	return err == HD_E_AGAIN && (ended || c->in_len == HD_METADATA_IN) ? HD_E_PROTOCOL : err;
}

static void answer(struct hd_metadata_server *s, struct hd_metadata_connection *c)
{
	const struct hd_metadata_request request = { .head = &c->head, .body = c->body,
		.came_ns = c->came_ns };
	struct hd_text out;

	if (c->out_len)
		return;
	hd_text_fixed(&out, c->out, sizeof c->out);
	if (hd_metadata_answer(&s->metadata, &request, hd_clock_now_ns(s->clock), hd_clock_wall_ns(s->clock),
		&out,
		&c->until_ns) == HD_OK) {
		c->out_len = out.len;
		c->until_ns = hd_clock_now_ns(s->clock) + HD_METADATA_CLIENT_NS;
		note(s, c);
	}
}

static void go_on(struct hd_metadata_server *s, struct hd_metadata_connection *c)
{
	enum hd_err err = c->whole ? HD_OK : read_request(c);

	if (!err && !c->whole) {
		c->whole = true;
		c->came_ns = hd_clock_now_ns(s->clock);
		s->requests++;
	}
	if (!err)
		answer(s, c);
	while (!err && c->out_at < c->out_len) {
		size_t n = 0;
		err = hd_sock_write(&c->sock, c->out + c->out_at, c->out_len - c->out_at, &n, NULL);
		c->out_at += err ? 0 : n;
	}
	if ((err && err != HD_E_AGAIN) || (c->out_len && c->out_at == c->out_len)) {
		drop(s, c);
		return;
	}
	/* a client that waits for a change is not watched: its end is seen when it is answered */
	unsigned wants = !c->whole ? HD_LOOP_READ : c->out_len ? HD_LOOP_WRITE : 0u;
	if (!wants)
		hd_loop_unwatch(&s->loop, c->sock.id);
	else if (hd_loop_watch(&s->loop, c->sock.id, wants, (uint64_t)(c - s->connection) + FIRST, NULL))
		drop(s, c);
}

static void accept_all(struct hd_metadata_server *s)
{
	for (;;) {
		struct hd_metadata_connection *c = NULL;
		struct hd_sock sock = { 0 };
		if (hd_sock_accept(&s->listener, &sock, NULL))
			return;
		for (size_t i = 0; i < HD_METADATA_CONNECTIONS && !c; i++)
			c = s->connection[i].sock.net ? NULL : &s->connection[i];
		if (!c) {
			hd_sock_close(&sock);
			continue;
		}
		c->sock = sock;
		c->in_len = c->out_len = c->out_at = 0;
		c->whole = false;
		c->until_ns = hd_clock_now_ns(s->clock) + HD_METADATA_CLIENT_NS;
		go_on(s, c);
	}
}

/* Those that wait are asked again after what happened; those that took too long end. */
static int64_t look(struct hd_metadata_server *s)
{
	int64_t now_ns = hd_clock_now_ns(s->clock),
		next_ns = hd_metadata_turn(&s->metadata, now_ns, hd_clock_wall_ns(s->clock));

	for (size_t i = 0; i < HD_METADATA_CONNECTIONS; i++) {
		struct hd_metadata_connection *c = &s->connection[i];
		if (!c->sock.net)
			continue;
		if (c->whole && !c->out_len)
			go_on(s, c);
		else if (now_ns >= c->until_ns)
			drop(s, c);
		if (c->sock.net && c->until_ns < next_ns)
			next_ns = c->until_ns;
	}
	return next_ns;
}

enum hd_err hd_metadata_poll(struct hd_metadata_server *s, int64_t at_ns, struct hd_diag *diag)
{
	struct hd_loop_event event[16];
	size_t n = 0;

	do {
		int64_t next_ns = look(s);
		enum hd_err err = hd_loop_poll(&s->loop, next_ns < at_ns ? next_ns : at_ns, event, 16, &n,
			diag);
		if (err)
			return err;
		for (size_t i = 0; i < n; i++) {
			if (event[i].tag == LISTENER)
				accept_all(s);
			else if (event[i].tag >= FIRST && s->connection[event[i].tag - FIRST].sock.net)
				go_on(s, &s->connection[event[i].tag - FIRST]);
			else
				at_ns = 0;                /* a wake */
		}
	} while (hd_clock_now_ns(s->clock) < at_ns);
	return HD_OK;
}
