#include "functions/event.h"

#include <string.h>

#include "base/json.h"
#include "base/le.h"

enum { VERSION = 1 };

const struct hd_fn_error_row hd_fn_errors[HD_FN_NERRORS] = {
#define X(id, name, about) { name, about },
	HD_FN_ERRORS(X)
#undef X
};

static const struct { enum hd_fn_reply reply; const char *name; } replies[] = {
#define X(id, no, name, about) { HD_FN_##id, name },
	HD_FN_REPLIES(X)
#undef X
};
enum { NREPLIES = sizeof replies / sizeof *replies };

void hd_fn_event_write(const struct hd_fn_event *e, struct hd_text *text)
{
	char task[HD_HASH_HEX], token[HD_SHA256_HEX];
	struct hd_json_writer w;

	hd_hash_hex(e->ticket.task, task);
	hd_sha256_hex(&e->token, token);
	hd_json_writer_init(&w, text);
	hd_json_open_object(&w, NULL);
	hd_json_put_i64(&w, "v", VERSION);
	hd_json_put_text(&w, "task", task);
	hd_json_put_i64(&w, "attempt", e->ticket.attempt);
	hd_json_put_text(&w, "host", e->host);
	hd_json_put_i64(&w, "port", e->port);
	hd_json_put_text(&w, "token", token);
	hd_json_put_i64(&w, "deadline_ms", e->ticket.deadline_ms);
	hd_json_put_text(&w, "kernel_set", e->kernels);
	if (!e->tls)
		hd_json_put_bool(&w, "tls", false);
	hd_json_close(&w);
}

/* A text of 1 to cap - 1 printed characters without blanks. */
static enum hd_err get_word(const struct hd_json *object, const char *key, char *out, size_t cap,
	struct hd_diag *diag)
{
	const char *text = NULL;
	enum hd_err err = hd_json_get_text(object, key, &text, diag);
	size_t len = err ? 0 : strlen(text);

	if (err)
		return err;
	if (!len || len >= cap)
		return hd_fail(diag, HD_E_INPUT, "event: .%s has %zu characters, 1 to %zu are right", key,
			len,
			cap - 1);
	for (size_t i = 0; i < len; i++)
		if (text[i] <= ' ' || text[i] > '~')
			return hd_fail(diag, HD_E_INPUT, "event: .%s has a blank or a control character",
				key);
	memcpy(out, text, len + 1);
	return HD_OK;
}

static enum hd_err get_host(const struct hd_json *object, struct hd_fn_event *e, struct hd_diag *diag)
{
	int64_t port = 0;
	enum hd_err err = get_word(object, "host", e->host, sizeof e->host, diag);

	if (!err)
		err = hd_json_get_i64(object, "port", 0, 65535, &port, diag);
	if (err)
		return err;
	e->port = (uint16_t)port;
	bool local = !strncmp(e->host, "unix:/", 6);
	if (local != !port || (!local && strspn(e->host, "0123456789abcdefABCDEF.:") != strlen(e->host)))
		return hd_fail(diag, HD_E_INPUT,
			"event: .host is the number of a machine with a .port, or unix:/PATH with port 0");
	return HD_OK;
}

static enum hd_err get_proof(const struct hd_json *object, struct hd_fn_event *e, struct hd_diag *diag)
{
	char task[HD_HASH_HEX], token[HD_SHA256_HEX];
	enum hd_err err = get_word(object, "task", task, sizeof task, diag);

	if (!err)
		err = get_word(object, "token", token, sizeof token, diag);
	if (!err && (!hd_hash_parse(task, &e->ticket.task) || !hd_sha256_parse(token, &e->token)))
		err = hd_fail(diag, HD_E_INPUT, "event: .task has 32 hexadecimal digits, .token 64");
	return err;
}

enum hd_err hd_fn_event_read(const char *text, size_t len, struct hd_arena *arena, struct hd_fn_event *event,
	struct hd_diag *diag)
{
	static const char *const keys[] = { "v", "task", "attempt", "host", "port", "token", "deadline_ms",
		"kernel_set", "tls", NULL };
	struct hd_fn_event e = { .tls = true };
	const struct hd_json *object = NULL;
	int64_t attempt = 0, version = 0;

	if (len >= HD_FN_EVENT_BYTES)
		return hd_fail(diag, HD_E_INPUT, "event: %zu bytes, fewer than %d are right", len,
			HD_FN_EVENT_BYTES);
	enum hd_err err = hd_json_parse(arena, "event", text, len, &object, diag);
	if (!err)
		err = hd_json_as(object, HD_JSON_OBJECT, diag);
	if (!err)
		err = hd_json_get_i64(object, "v", VERSION, VERSION, &version, diag);
	if (!err)
		err = hd_json_only(object, keys, diag);
	if (!err)
		err = get_proof(object, &e, diag);
	if (!err)
		err = hd_json_get_i64(object, "attempt", 1, UINT32_MAX, &attempt, diag);
	if (!err)
		err = get_host(object, &e, diag);
	if (!err)
		err = hd_json_get_i64(object, "deadline_ms", 0, INT64_C(1) << 50, &e.ticket.deadline_ms,
			diag);
	if (!err)
		err = get_word(object, "kernel_set", e.kernels, sizeof e.kernels, diag);
	if (!err && hd_json_find(object, "tls"))
		err = hd_json_get_bool(object, "tls", &e.tls, diag);
	if (err)
		return err;
	e.ticket.attempt = (uint32_t)attempt;
	*event = e;
	return HD_OK;
}

void hd_fn_answer_write(const struct hd_fn_answer *a, struct hd_text *text)
{
	struct hd_json_writer w;

	hd_json_writer_init(&w, text);
	hd_json_open_object(&w, NULL);
	hd_json_put_bool(&w, "ok", a->error == HD_FN_ERROR_NONE);
	if (a->error == HD_FN_ERROR_NONE) {
		hd_json_put_f64(&w, "busy_ms", a->busy_ms);
		for (size_t i = 0; i < NREPLIES; i++)
			if (replies[i].reply == a->reply)
				hd_json_put_text(&w, "reply", replies[i].name);
	} else {
		hd_json_put_text(&w, "error", hd_fn_errors[a->error].name);
		hd_json_put_text(&w, "message", a->message);
	}
	hd_json_close(&w);
}

static enum hd_err read_done(const struct hd_json *object, struct hd_fn_answer *a, struct hd_diag *diag)
{
	const char *reply = NULL;
	enum hd_err err = hd_json_get_f64(object, "busy_ms", &a->busy_ms, diag);

	if (!err && !(a->busy_ms >= 0 && a->busy_ms < 1e12))
		err = hd_fail(diag, HD_E_INPUT, "answer: .busy_ms is no time");
	if (!err)
		err = hd_json_get_text(object, "reply", &reply, diag);
	for (size_t i = 0; i < NREPLIES && !err; i++)
		if (!strcmp(replies[i].name, reply)) {
			a->reply = replies[i].reply;
			return HD_OK;
		}
	return err ? err : hd_fail(diag, HD_E_INPUT, "answer: .reply is %s, which no owner says", reply);
}

static enum hd_err read_failed(const struct hd_json *object, struct hd_fn_answer *a, struct hd_diag *diag)
{
	const char *name = NULL, *message = "";
	enum hd_err err = hd_json_get_text(object, "error", &name, diag);

	if (!err && hd_json_find(object, "message"))
		err = hd_json_get_text(object, "message", &message, diag);
	if (err)
		return err;
	size_t n = strlen(message) < sizeof a->message ? strlen(message) : sizeof a->message - 1;
	memcpy(a->message, message, n);
	for (int i = HD_FN_ERROR_NONE + 1; i < HD_FN_NERRORS; i++)
		if (!strcmp(hd_fn_errors[i].name, name)) {
			a->error = (enum hd_fn_error)i;
			return HD_OK;
		}
	return hd_fail(diag, HD_E_INPUT, "answer: .error is %s, which no worker says", name);
}

enum hd_err hd_fn_answer_read(const char *text, size_t len, struct hd_arena *arena,
	struct hd_fn_answer *answer, struct hd_diag *diag)
{
	const struct hd_json *object = NULL;
	struct hd_fn_answer a = { 0 };
	bool ok = false;

	enum hd_err err = hd_json_parse(arena, "answer", text, len, &object, diag);
	if (!err)
		err = hd_json_as(object, HD_JSON_OBJECT, diag);
	if (!err)
		err = hd_json_get_bool(object, "ok", &ok, diag);
	if (!err)
		err = ok ? read_done(object, &a, diag) : read_failed(object, &a, diag);
	if (!err)
		*answer = a;
	return err;
}

enum hd_err hd_fn_token(const void *key, size_t key_len, const struct hd_fn_ticket *ticket,
	struct hd_sha256 *token, struct hd_diag *diag)
{
	static const char use[] = "heddle function 1";
	uint8_t bytes[sizeof use + sizeof ticket->task.byte + 4 + 8];

	memcpy(bytes, use, sizeof use);
	memcpy(bytes + sizeof use, ticket->task.byte, sizeof ticket->task.byte);
	hd_put32(bytes + sizeof use + sizeof ticket->task.byte, ticket->attempt);
	hd_put64(bytes + sizeof bytes - 8, (uint64_t)ticket->deadline_ms);
	return hd_hmac_sha256(key, key_len, bytes, sizeof bytes, token, diag);
}
