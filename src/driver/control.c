#include "driver/control.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "sys/account.h"
#include "sys/clock.h"
#include "sys/file.h"

enum {
	HD_UNIX_PATH = 105,                /* the kernel's limit is 108 with the final 0 */
	/* readable wakes at once; a connection under way is looked at so often */
	HD_CONTROL_LOOK_NS = 20000000,
};

enum hd_err hd_control_path(const char *dir, const char *name, char addr[HD_ADDR_CAP], struct hd_diag *diag)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	char full[HD_PATH_CAP], hex[HD_HASH_HEX], folder[HD_PATH_CAP];
	struct hd_fs fs;

	if ((size_t)snprintf(addr, HD_ADDR_CAP, "unix:%s/%s", dir, name) < sizeof "unix:" + HD_UNIX_PATH)
		return HD_OK;
	hd_fs_real(&fs);
	if (!realpath(dir, full))
		return hd_fail(diag, HD_E_NOTFOUND, "there is no run %s", dir);
	if (!runtime || strlen(runtime) > HD_UNIX_PATH - sizeof "/heddle/" - 17 - strlen(name))
		return hd_fail(diag, HD_E_REFUSED,
			"the path of %s is too long for a socket, and "
			"XDG_RUNTIME_DIR names no folder for it: choose a shorter one", dir);
	snprintf(folder, sizeof folder, "%s/heddle", runtime);
	enum hd_err err = hd_fs_mkdirs(&fs, folder, diag);
	if (err)
		return err;
	hd_hash_hex(hd_hash(full, strlen(full)), hex);
	snprintf(addr, HD_ADDR_CAP, "unix:%.60s/%.16s-%.30s", folder, hex, name);
	return HD_OK;
}

/* ---- the coordinator's side ---- */

static void end(struct hd_control *c, struct hd_control_client *client)
{
	if (client->sock.net)
		hd_loop_unwatch(c->loop, client->sock.id);
	hd_sock_close(&client->sock);
	hd_free(client->buf);
	*client = (struct hd_control_client){ 0 };
}

enum hd_err hd_control_open(struct hd_control *c, const char *addr, struct hd_loop *loop, struct hd_net *net,
	struct hd_diag *diag)
{
	c->loop = loop;
	enum hd_err err = hd_sock_listen(net, addr, &c->listener, diag);
	if (!err)
		err = hd_loop_watch(loop, c->listener.id, HD_LOOP_READ, c->tag, diag);
	if (err)
		hd_sock_close(&c->listener);
	return err;
}

void hd_control_close(struct hd_control *c)
{
	for (size_t i = 0; i < HD_CONTROL_CLIENTS; i++)
		end(c, &c->client[i]);
	if (c->listener.net)
		hd_loop_unwatch(c->loop, c->listener.id);
	hd_sock_close(&c->listener);
}

static void let_in(struct hd_control *c)
{
	for (size_t i = 0; i < HD_CONTROL_CLIENTS; i++) {
		struct hd_control_client *client = &c->client[i];
		if (client->sock.net)
			continue;
		if (hd_sock_accept(&c->listener, &client->sock, NULL))
			return;
		client->buf = hd_alloc(HD_CONTROL_ANSWER);
		client->until_ns = hd_clock_now_ns(c->loop->clock) + HD_CONTROL_WAIT_NS;
		if (!client->buf || hd_loop_watch(c->loop, client->sock.id, HD_LOOP_READ, c->tag + 1 + i,
			NULL))
			end(c, client);
	}
}

/* The answer is built behind its own head, so that a refused one can start over. */
static void make_answer(struct hd_control *c, struct hd_control_client *client, size_t asked)
{
	const struct hd_json *ask = NULL;
	struct hd_json_writer w;
	struct hd_arena arena;
	struct hd_diag diag = { "" };
	struct hd_text text;
	const char *what = "";

	hd_arena_init(&arena, 0);
	enum hd_err err = hd_json_parse(&arena, "request", client->buf, asked, &ask, &diag);
	if (!err)
		err = hd_json_get_text(ask, "do", &what, &diag);
	hd_text_fixed(&text, client->buf, HD_CONTROL_ANSWER - 2);
	hd_json_writer_init(&w, &text);
	hd_json_open_object(&w, NULL);
	if (!err) {
		hd_json_put_bool(&w, "ok", true);
		err = c->answer(c->self, what, ask, &w, &diag);
		while (!err && w.depth)
			hd_json_close(&w);
		if (!err && text.full)
			err = hd_fail(&diag, HD_E_NOSPACE, "the answer is longer than %d bytes",
				HD_CONTROL_ANSWER);
	}
	if (err) {
		hd_text_fixed(&text, client->buf, HD_CONTROL_ANSWER - 2);
		hd_json_writer_init(&w, &text);
		hd_json_open_object(&w, NULL);
		hd_json_put_bool(&w, "ok", false);
		hd_json_put_i64(&w, "code", err);
		hd_json_put_i64(&w, "exit", hd_err_exit(err));
		hd_json_put_text(&w, "error", diag.text[0] ? diag.text : hd_err_text(err));
		hd_json_close(&w);
	}
	client->buf[text.len] = '\n';
	client->len = text.len + 1;
	hd_arena_finish(&arena);
}

static void give(struct hd_control *c, struct hd_control_client *client)
{
	while (client->put < client->len) {
		size_t put = 0;
		enum hd_err err = hd_sock_write(&client->sock, client->buf + client->put,
			client->len - client->put, &put, NULL);
		if (err == HD_E_AGAIN) {
			if (hd_loop_watch(c->loop, client->sock.id, HD_LOOP_WRITE,
				c->tag + 1 + (uint64_t)(client - c->client), NULL))
				end(c, client);
			return;
		}
		if (err)
			break;
		client->put += put;
	}
	end(c, client);
}

static void take(struct hd_control *c, struct hd_control_client *client)
{
	for (;;) {
		size_t got = 0;
		enum hd_err err = hd_sock_read(&client->sock, client->buf + client->got,
			HD_CONTROL_REQUEST - client->got, &got, NULL);
		if (err == HD_E_AGAIN)
			return;
		if (err || got == 0) {
			end(c, client);
			return;
		}
		char *line = memchr(client->buf + client->got, '\n', got);
		client->got += got;
		if (line) {
			make_answer(c, client, (size_t)(line - client->buf));
			give(c, client);
			return;
		}
		if (client->got == HD_CONTROL_REQUEST) {
			end(c, client);
			return;
		}
	}
}

void hd_control_event(struct hd_control *c, const struct hd_loop_event *event)
{
	uint64_t i = event->tag - c->tag;

	if (i == 0) {
		let_in(c);
		return;
	}
	struct hd_control_client *client = &c->client[i - 1];
	if (!client->sock.net)
		return;
	if (client->len)
		give(c, client);
	else
		take(c, client);
	let_in(c);
}

void hd_control_tick(struct hd_control *c, int64_t now_ns)
{
	for (size_t i = 0; i < HD_CONTROL_CLIENTS; i++)
		if (c->client[i].sock.net && c->client[i].until_ns < now_ns)
			end(c, &c->client[i]);
}

/* ---- the user's side ---- */

static enum hd_err wait_for(struct hd_loop *loop, int64_t until_ns, const char *addr, struct hd_diag *diag)
{
	int64_t now = hd_clock_now_ns(loop->clock);
	struct hd_loop_event event;
	size_t n = 0;
	enum hd_err err = hd_loop_poll(loop, now + HD_CONTROL_LOOK_NS < until_ns ? now + HD_CONTROL_LOOK_NS :
		until_ns, &event, 1, &n, diag);

	if (!err && now >= until_ns)
		err = hd_fail(diag, HD_E_PEERLOST, "the coordinator at %s does not answer", addr);
	return err;
}

/* Any account that can write into the run's folder may be the other end: its answer has a bound of bytes, and
 * so of time. */
static enum hd_err take_line(struct hd_sock *sock, struct hd_loop *loop, int64_t until_ns,
	struct hd_text *text, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;
	bool whole = false;
	char buf[4096];
	size_t n = 0;

	while (!err && !whole) {
		err = hd_sock_read(sock, buf, sizeof buf, &n, diag);
		if (err == HD_E_AGAIN) {
			err = wait_for(loop, until_ns, sock->addr, diag);
			continue;
		}
		if (!err && n == 0)
			return hd_fail(diag, HD_E_PEERLOST,
				"the coordinator at %s ended the connection without an answer", sock->addr);
		if (!err && text->len + n > HD_CONTROL_ANSWER)
			return hd_fail(diag, HD_E_PROTOCOL, "%s sends more than %d bytes: it is no "
				"coordinator", sock->addr, HD_CONTROL_ANSWER);
		if (!err) {
			whole = memchr(buf, '\n', n);
			hd_text_put(text, buf, n);
		}
	}
	return err;
}

static enum hd_err exchange(struct hd_sock *sock, struct hd_loop *loop, const char *ask, int64_t until_ns,
	struct hd_text *text, struct hd_diag *diag)
{
	size_t len = strlen(ask), at = 0, n = 0;
	enum hd_err err;

	while ((err = hd_sock_connected(sock, diag)) == HD_E_AGAIN)
		if ((err = wait_for(loop, until_ns, sock->addr, diag)))
			return err;
	while (!err && at <= len) {
		err = at < len ? hd_sock_write(sock, ask + at, len - at, &n, diag) : hd_sock_write(sock, "\n",
			1, &n, diag);
		if (err == HD_E_AGAIN)
			err = wait_for(loop, until_ns, sock->addr, diag);
		else
			at += n;
	}
	return err ? err : take_line(sock, loop, until_ns, text, diag);
}

static enum hd_err judge(const struct hd_json *answer, struct hd_diag *diag)
{
	int64_t code = HD_E_PROTOCOL;
	const char *text = "";
	bool ok = false;
	enum hd_err err = hd_json_get_bool(answer, "ok", &ok, diag);

	if (err || ok)
		return err;
	err = hd_json_get_i64(answer, "code", INT32_MIN, -1, &code, diag);
	if (!err)
		err = hd_json_get_text(answer, "error", &text, diag);
	return err ? err : hd_fail(diag, (enum hd_err)code, "%s", text);
}

enum hd_err hd_control_ask(const char *addr, const char *ask, int64_t wait_ns, struct hd_arena *arena,
	const struct hd_json **answer,
	struct hd_diag *diag)
{
	struct hd_clock clock;
	struct hd_loop loop = { 0 };
	struct hd_sock sock = { 0 };
	struct hd_net net;
	struct hd_text text;

	hd_clock_real(&clock);
	hd_net_real(&net);
	hd_text_init(&text, arena);
	enum hd_err err = hd_sock_connect(&net, addr, &sock, NULL);
	if (err)
		return hd_fail(diag, HD_E_NOTFOUND,
			"no coordinator answers for a run at %s: it has ended, or was started without "
			"--workers",
			addr);
	err = hd_loop_init(&loop, &clock, diag);
	if (!err)
		err = hd_loop_watch(&loop, sock.id, HD_LOOP_READ, 1, diag);
	if (!err)
		err = exchange(&sock, &loop, ask, hd_clock_now_ns(&clock) + wait_ns, &text, diag);
	if (!err)
		err = hd_json_parse(arena, "answer", text.at, text.len, answer, diag);
	if (!err)
		err = judge(*answer, diag);
	hd_sock_close(&sock);
	hd_loop_finish(&loop);
	return err;
}

enum hd_err hd_control_ask_run(const char *dir, uint32_t uid, const char *ask, int64_t wait_ns,
	struct hd_arena *arena, const struct hd_json **answer, struct hd_diag *diag)
{
	char addr[HD_ADDR_CAP], at[HD_ACCOUNT_AT], held[HD_ACCOUNT_AT + sizeof "unix:"];
	int id = -1;
	enum hd_err err = hd_control_path(dir, "run.sock", addr, diag);

	if (err || uid == HD_NO_UID)
		return err ? err : hd_control_ask(addr, ask, wait_ns, arena, answer, diag);
	if (hd_account_hold_socket(addr + strlen("unix:"), uid, at, &id))
		return hd_fail(diag, HD_E_NOTFOUND, "%s is no socket of account %u", addr, uid);
	snprintf(held, sizeof held, "unix:%s", at);
	err = hd_control_ask(held, ask, wait_ns, arena, answer, diag);
	hd_account_let_go(id);
	return err;
}
