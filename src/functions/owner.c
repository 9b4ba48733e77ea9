#include "functions/owner.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/le.h"
#include "functions/link.h"

#define AFTER_NS INT64_C(2000000000)      /* from a lease's end to that of its event */
enum { LISTENER = 1, FIRST = 2, EVENTS = 32, IN_BYTES = HD_FN_FRAME + 12 + HD_FN_DATA_BYTES };

/* One worker that calls. */
struct hd_fn_connection {
	struct hd_sock sock;              /* net NULL: free */
	struct hd_tls tls;
	struct hd_fn_owner *owner;
	uint8_t token[32];                /* of the identity that TLS names: its key */
	bool shaken, greeted, ends;       /* ends: once all is written */
	bool rested;                      /* it served a task before this one */
	uint32_t task, attempt;
	uint64_t generation;
	int64_t until_ns;
	uint8_t *in;                      /* owned: IN_BYTES */
	size_t in_len;
	uint8_t *out;                     /* owned */
	size_t out_len, out_at;
	void *staged[HD_FN_TENSORS];      /* owned: outputs, until COMMIT */
	struct hd_fn_intake intake;
};

/* ---- ids ---- */

static struct hd_hash id_of(const struct hd_fn_owner *o, uint32_t task)
{
	struct hd_hash id;

	hd_put64(id.byte, o->generation);
	hd_put32(id.byte + 8, task);
	memcpy(id.byte + 12, o->key, 4);  /* owners differ */
	return id;
}

static bool task_of(const struct hd_fn_owner *o, struct hd_hash id, uint32_t *task)
{
	*task = hd_get32(id.byte + 8);
	return *task < o->board.ntasks && hd_hash_same(id, id_of(o, *task));
}

static struct hd_fn_proof *proof_of(const struct hd_fn_owner *o, uint32_t task, uint32_t attempt)
{
	return &o->proof[task * HD_FN_PROOFS + attempt % HD_FN_PROOFS];
}

/* ---- calls under way, whatever became of their tasks ---- */

/* Named by generation, task and attempt. */
static uint64_t name_call(uint64_t generation, uint32_t task, uint32_t attempt)
{
	return (generation & 0xffff) << 48 | (uint64_t)(task & 0xffffff) << 24 | (attempt & 0xffffff);
}

/* NULL: it has ended. */
static struct hd_fn_under_way *find_call(struct hd_fn_owner *o, uint64_t call)
{
	for (size_t i = 0; i < HD_FN_UNDER_WAY; i++)
		if (o->under_way[i].proof.attempt && o->under_way[i].call == call)
			return &o->under_way[i];
	return NULL;
}

static struct hd_fn_under_way *call_of(struct hd_fn_owner *o, struct hd_hash task, uint32_t attempt)
{
	for (size_t i = 0; attempt && i < HD_FN_UNDER_WAY; i++)
		if (o->under_way[i].proof.attempt == attempt && hd_hash_same(o->under_way[i].task, task))
			return &o->under_way[i];
	return NULL;
}

/* Its call has a worker that did what was asked, or could not any more. */
static void meet(struct hd_fn_connection *c)
{
	struct hd_fn_under_way *u = find_call(c->owner, name_call(c->generation, c->task, c->attempt));

	if (u)
		u->met = true;
}

/* What a HELLO says of this token here: the token itself at first, which TLS, where it is on, was shaken
 * by; then its proof on this very connection. */
static bool says(const struct hd_fn_connection *c, const struct hd_fn_hello *hello,
	const struct hd_sha256 *token)
{
	struct hd_sha256 proof = *token;

	if (c->rested && hd_fn_proof_again(&c->tls, c->owner->spec.tls, token, &proof, NULL))
		return false;
	return hd_sha256_proves(&proof, &hello->token) &&
		(c->rested || !c->owner->spec.tls || !memcmp(c->token, token->byte, sizeof c->token));
}

static bool proves(const struct hd_fn_connection *c, uint32_t task, const struct hd_fn_hello *hello)
{
	const struct hd_fn_proof *p = proof_of(c->owner, task, hello->attempt);

	return hello->attempt && p->attempt == hello->attempt && says(c, hello, &p->token);
}

/* One that came when its task was over, by its token. */
static void meet_late(struct hd_fn_connection *c, const struct hd_fn_hello *hello)
{
	struct hd_fn_owner *o = c->owner;
	struct hd_fn_under_way *u = call_of(o, hello->task, hello->attempt);
	uint32_t task;
	bool over = !task_of(o, hello->task, &task) || o->board.task[task].state == HD_FN_DONE ||
		o->board.task[task].state == HD_FN_REVOKED;

	if (u && over && says(c, hello, &u->proof.token))
		u->met = true;
}

/* ---- connections ---- */

static void drop_staged(struct hd_fn_connection *c)
{
	for (size_t i = 0; i < HD_FN_TENSORS; i++)
		hd_free(c->staged[i]);
	memset(c->staged, 0, sizeof c->staged);
}

static void drop(struct hd_fn_connection *c)
{
	struct hd_fn_owner *o = c->owner;

	hd_tls_finish(&c->tls);
	if (c->sock.net)
		hd_loop_unwatch(&o->loop, c->sock.id);
	hd_sock_close(&c->sock);
	drop_staged(c);
	hd_free(c->in);
	hd_free(c->out);
	memset(c, 0, sizeof *c);
}

/* The token of an identity is its key. */
static bool accepts(void *self, const char *identity)
{
	struct hd_fn_connection *c = self;
	struct hd_hash id;
	uint32_t task, attempt;

	if (!hd_fn_identity_read(identity, &id, &attempt) || !attempt)
		return false;
	/* of a task that is forgotten, too: it hears that it came too late */
	const struct hd_fn_under_way *u = call_of(c->owner, id, attempt);
	const struct hd_fn_proof *p = u ? &u->proof : task_of(c->owner, id, &task) ?
		proof_of(c->owner, task, attempt) : NULL;
	if (!p || p->attempt != attempt)
		return false;
	memcpy(c->token, p->token.byte, sizeof c->token);
	return true;
}

/* Appends a frame to what is written. */
static bool add_frame(struct hd_fn_connection *c, enum hd_fn_frame_type type, const void *payload, size_t len)
{
	if (c->out_at == c->out_len) {    /* all of it is sent: no inputs rest with the connection */
		hd_free(c->out);
		c->out = NULL;
		c->out_at = c->out_len = 0;
	}
	uint8_t *more = hd_alloc(c->out_len + HD_FN_FRAME + len);
	if (!more)
		return false;
	if (c->out_len)
		memcpy(more, c->out, c->out_len);
	hd_fn_frame_put(type, payload, len, more + c->out_len);
	memcpy(more + c->out_len + HD_FN_FRAME, payload, len);
	hd_free(c->out);
	c->out = more;
	c->out_len += HD_FN_FRAME + len;
	return true;
}

static bool say(struct hd_fn_connection *c, enum hd_fn_reply what)
{
	uint8_t byte = (uint8_t)what;

	return add_frame(c, HD_FN_REPLY, &byte, 1);
}

/* Its last word. */
static bool reply(struct hd_fn_connection *c, enum hd_fn_reply what)
{
	c->ends = true;
	return say(c, what);
}

/* After a COMMIT that was answered it is a stranger again, which may greet by the token of another task. */
static bool rest(struct hd_fn_connection *c, enum hd_fn_reply what)
{
	drop_staged(c);
	c->greeted = false;
	c->rested = true;
	c->until_ns = hd_clock_now_ns(c->owner->spec.clock) + HD_FN_REST_END_NS;
	return say(c, what);
}

static bool has(const struct hd_fn_hello *h, struct hd_hash digest)
{
	for (uint32_t i = 0; i < h->nhave && !hd_fn_no_digest(digest); i++)
		if (hd_hash_same(h->have[i], digest))
			return true;
	return false;
}

/* The rows of an input, in frames, behind one another in `out`, which has room for them. */
static void put_rows(struct hd_fn_connection *c, uint32_t tensor, const struct hd_fn_tensor *t,
	const uint8_t *from)
{
	uint32_t nrows = t->rank ? (uint32_t)t->dim[0] : 1;
	uint64_t row_bytes = hd_fn_row_bytes(t);
	uint32_t most = (uint32_t)(HD_FN_DATA_BYTES / row_bytes);

	for (uint32_t first = 0; first < nrows; first += most) {
		struct hd_fn_rows rows = { .tensor = tensor, .first = first,
			.n = nrows - first < most ? nrows - first : most };
		size_t len = 12 + rows.n * row_bytes;
		uint8_t *at = c->out + c->out_len;
		hd_fn_rows_put(&rows, at + HD_FN_FRAME);
		memcpy(at + HD_FN_FRAME + 12, from + first * row_bytes, rows.n * row_bytes);
		hd_fn_frame_put(HD_FN_DATA, at + HD_FN_FRAME, len, at);
		c->out_len += HD_FN_FRAME + len;
	}
}

static size_t frames_bytes(const struct hd_fn_tensor *t)
{
	uint64_t row_bytes = hd_fn_row_bytes(t), bytes = hd_fn_tensor_bytes(t);

	return bytes + (bytes / row_bytes / (HD_FN_DATA_BYTES / row_bytes) + 1) * (HD_FN_FRAME + 12);
}

/* WORK and all DATA in one piece of memory. */
static bool put_work(struct hd_fn_connection *c, const struct hd_fn_hello *hello, const struct hd_fn_job *job)
{
	struct hd_arena arena;
	struct hd_text text;
	size_t total = 0;

	hd_arena_init(&arena, 4 * HD_FN_PAYLOAD);
	hd_text_init(&text, &arena);
	hd_fn_work_put(job->work, &text);
	for (uint32_t i = 0; i < job->work->ntensors; i++) {
		const struct hd_fn_tensor *t = &job->work->tensor[i];
		if (!t->is_output && !has(hello, t->digest))
			total += frames_bytes(t);
	}
	c->out = text.full ? NULL : hd_alloc(HD_FN_FRAME + text.len + total);
	if (c->out) {
		hd_fn_frame_put(HD_FN_WORK, text.at, text.len, c->out);
		memcpy(c->out + HD_FN_FRAME, text.at, text.len);
		c->out_len = HD_FN_FRAME + text.len;
		for (uint32_t i = 0; i < job->work->ntensors; i++) {
			const struct hd_fn_tensor *t = &job->work->tensor[i];
			if (!t->is_output && !has(hello, t->digest))
				put_rows(c, i, t, job->at[i]);
		}
	}
	hd_arena_finish(&arena);
	return c->out != NULL;
}

static bool stage(struct hd_fn_connection *c, const struct hd_fn_work *work)
{
	for (uint32_t i = 0; i < work->ntensors; i++)
		if (work->tensor[i].is_output &&
			!(c->staged[i] = hd_alloc(hd_fn_tensor_bytes(&work->tensor[i]))))
			return false;
	hd_fn_intake_begin(&c->intake, work, c->staged);
	return true;
}

/* When the worker of an attempt has stopped by itself (invoke). */
static int64_t ends_ns(const struct hd_fn_owner *o, uint32_t task, uint32_t attempt)
{
	const struct hd_fn_attempt *live = o->board.task[task].live;

	return live[live[0].number == attempt ? 0 : 1].deadline_ns + AFTER_NS;
}

/* ---- what a worker says; false: the connection ends at once ---- */

static bool on_hello(struct hd_fn_connection *c, const uint8_t *payload, size_t len)
{
	struct hd_fn_owner *o = c->owner;
	struct hd_fn_hello hello;
	uint32_t task;

	if (c->out_at < c->out_len || hd_fn_hello_get(payload, len, &hello, NULL))
		return false;
	hd_free(c->out);                  /* of the task before */
	c->out = NULL;
	c->out_len = c->out_at = 0;
	if (!task_of(o, hello.task, &task) || !proves(c, task, &hello) ||
		!hd_fn_board_greet(&o->board, task, hello.attempt, hd_clock_now_ns(o->spec.clock))) {
		o->refused++;
		meet_late(c, &hello);
		return reply(c, HD_FN_REFUSED);
	}
	c->greeted = true;
	c->generation = o->generation;
	c->task = task;
	c->attempt = hello.attempt;
	c->until_ns = ends_ns(o, task, hello.attempt);
	return stage(c, o->job[task].work) && put_work(c, &hello, &o->job[task]);
}

static bool on_result(struct hd_fn_connection *c, const uint8_t *payload, size_t len)
{
	struct hd_fn_rows rows;

	return !hd_fn_rows_get(payload, len, &rows, NULL) && !hd_fn_intake_take(&c->intake, &rows, NULL);
}

static bool on_commit(struct hd_fn_connection *c, const uint8_t *payload, size_t len)
{
	struct hd_fn_owner *o = c->owner;
	const struct hd_fn_job *job = &o->job[c->task];
	struct hd_fn_commit commit;

	if (hd_fn_commit_get(payload, len, &commit, NULL) || !hd_fn_intake_done(&c->intake))
		return false;
	struct hd_hasher hasher;
	hd_hasher_init(&hasher);
	for (uint32_t i = 0; i < job->work->ntensors; i++)
		if (job->work->tensor[i].is_output)
			hd_hasher_add(&hasher, c->staged[i], hd_fn_tensor_bytes(&job->work->tensor[i]));
	if (!hd_hash_same(hd_hasher_end(&hasher), commit.digest)) {
		o->refused++;
		return reply(c, HD_FN_REFUSED);
	}
	meet(c);
	enum hd_fn_reply what = hd_fn_board_commit(&o->board, c->task, c->attempt,
		hd_clock_now_ns(o->spec.clock));
	for (uint32_t i = 0; what == HD_FN_ACCEPTED && i < job->work->ntensors; i++)
		if (job->work->tensor[i].is_output)
			memcpy(job->at[i], c->staged[i], hd_fn_tensor_bytes(&job->work->tensor[i]));
	return rest(c, what);
}

static bool on_frame(struct hd_fn_connection *c, const struct hd_fn_frame *frame, const uint8_t *payload)
{
	if (c->ends)
		return false;
	if (!c->greeted)
		return frame->type == HD_FN_HELLO && on_hello(c, payload, frame->len);
	if (c->generation != c->owner->generation) {      /* its task is forgotten */
		meet(c);
		return reply(c, HD_FN_STALE);
	}
	return frame->type == HD_FN_RESULT ? on_result(c, payload, frame->len) :
		frame->type == HD_FN_COMMIT && on_commit(c, payload, frame->len);
}

/* Whole frames of what was read. */
static bool take_frames(struct hd_fn_connection *c)
{
	size_t at = 0;
	bool good = true;

	while (good && c->in_len - at >= HD_FN_FRAME) {
		struct hd_fn_frame frame;
		const bool greeted = c->greeted;
		size_t most = greeted ? HD_FN_DATA_BYTES + 12 : HD_FN_HELLO_BYTES;
		if (hd_fn_frame_get(c->in + at, &frame, NULL) || frame.len > most)
			return false;
		if (c->in_len - at < HD_FN_FRAME + frame.len)
			break;
		good = !hd_fn_frame_check(&frame, c->in + at + HD_FN_FRAME, NULL) &&
			on_frame(c, &frame, c->in + at + HD_FN_FRAME);
		at += HD_FN_FRAME + frame.len;
		if (greeted && !c->greeted && at < c->in_len)
			return false;     /* more than a COMMIT, before its answer */
	}
	memmove(c->in, c->in + at, c->in_len - at);
	c->in_len -= at;
	return good;
}

static enum hd_err read_some(struct hd_fn_connection *c, size_t *n)
{
	uint8_t *to = c->in + c->in_len;
	size_t cap = (c->greeted ? (size_t)IN_BYTES : HD_FN_FRAME + HD_FN_HELLO_BYTES) - c->in_len;

	return c->owner->spec.tls ? hd_tls_read(&c->tls, to, cap, n, NULL) :
		hd_sock_read(&c->sock, to, cap, n, NULL);
}

static enum hd_err write_some(struct hd_fn_connection *c, size_t *n)
{
	return c->owner->spec.tls ? hd_tls_write(&c->tls, c->out + c->out_at, c->out_len - c->out_at, n,
		NULL) :
		hd_sock_write(&c->sock, c->out + c->out_at, c->out_len - c->out_at, n, NULL);
}

/* As far as it goes; false: it is over. */
static bool advance(struct hd_fn_connection *c, unsigned *wants)
{
	bool secure = c->owner->spec.tls;

	*wants = HD_LOOP_READ;
	if (secure && !c->shaken) {
		enum hd_err err = hd_tls_shake(&c->tls, NULL);
		*wants = hd_tls_wants(&c->tls);
		if (err)
			return err == HD_E_AGAIN;
		c->shaken = true;
		*wants = HD_LOOP_READ;
	}
	for (;;) {
		size_t n = 0;
		enum hd_err err = HD_OK;
		while (c->out_at < c->out_len && !err) {
			err = write_some(c, &n);
			c->out_at += err ? 0 : n;
		}
		if (err == HD_E_AGAIN)
			*wants |= secure ? hd_tls_wants(&c->tls) : HD_LOOP_WRITE;
		else if (err || (c->ends && c->out_at == c->out_len))
			return false;
		err = read_some(c, &n);
		if (err == HD_E_AGAIN)
			return true;
		if (err || !n)
			return false;
		c->in_len += n;
		if (!take_frames(c))
			return false;
	}
}

static void go_on(struct hd_fn_connection *c)
{
	uint64_t tag = (uint64_t)(c - c->owner->at) + FIRST;
	unsigned wants = 0;

	if (!advance(c, &wants) || hd_loop_watch(&c->owner->loop, c->sock.id, wants, tag, NULL))
		drop(c);
}

static bool take_in(struct hd_fn_owner *o, struct hd_fn_connection *c, const struct hd_sock *sock)
{
	const struct hd_tls_config config = { .key = c->token, .key_len = sizeof c->token, .listens = true,
		.accept = accepts, .self = c };

	*c = (struct hd_fn_connection){ .sock = *sock, .owner = o, .in = hd_alloc(IN_BYTES),
		.until_ns = hd_clock_now_ns(o->spec.clock) + HD_FN_STRANGER_NS };
	o->connections++;
	return c->in && (!o->spec.tls || !hd_tls_make(&c->tls, &o->realm, &config, &c->sock, NULL));
}

/* Ended, for one that comes; NULL: all have a task, or are strangers. */
static struct hd_fn_connection *oldest_at_rest(struct hd_fn_owner *o)
{
	struct hd_fn_connection *oldest = NULL;

	for (size_t i = 0; i < HD_FN_CONNECTIONS; i++) {
		struct hd_fn_connection *c = &o->at[i];
		if (c->rested && !c->greeted && !c->ends && (!oldest || c->until_ns < oldest->until_ns))
			oldest = c;
	}
	if (oldest)
		drop(oldest);
	return oldest;
}

static void accept_all(struct hd_fn_owner *o)
{
	struct hd_sock sock = { 0 };

	while (!hd_sock_accept(&o->listener, &sock, NULL)) {
		struct hd_fn_connection *c = NULL;
		for (size_t i = 0; i < HD_FN_CONNECTIONS && !c; i++)
			c = o->at[i].sock.net ? NULL : &o->at[i];
		c = c ? c : oldest_at_rest(o);
		if (!c) {
			hd_sock_close(&sock);
			continue;
		}
		if (take_in(o, c, &sock))
			go_on(c);
		else
			drop(c);
	}
}

/* ---- life ---- */

enum hd_err hd_fn_owner_open(struct hd_fn_owner *o, const struct hd_fn_owner_spec *spec, struct hd_diag *diag)
{
	memset(o, 0, sizeof *o);
	o->spec = *spec;
	hd_net_real(&o->net);
	o->net.world = spec->tls;
	hd_arena_init(&o->arena, 0);
	hd_fn_bill_init(&o->bill, &spec->price, &o->arena);
	o->at = hd_alloc(HD_FN_CONNECTIONS * sizeof *o->at);
	o->proof = hd_arena_take(&o->arena, spec->ntasks, HD_FN_PROOFS * sizeof *o->proof);
	enum hd_err err = o->at && o->proof ? HD_OK : hd_fail(diag, HD_E_NOMEM,
		"no memory for an owner of tasks");
	if (o->at)
		memset(o->at, 0, HD_FN_CONNECTIONS * sizeof *o->at);
	if (!err)
		err = hd_fn_board_init(&o->board, spec->ntasks, spec->slots, spec->lease_ns, spec->seed,
			&o->arena, diag);
	if (!err)
		err = hd_random_bytes(o->key, sizeof o->key, diag);
	if (!err && spec->tls)
		err = hd_tls_realm_make(&o->realm, diag);
	if (!err)
		err = hd_loop_init(&o->loop, spec->clock, diag);
	if (!err)
		err = hd_sock_listen(&o->net, spec->listen, &o->listener, diag);
	if (!err)
		err = hd_loop_watch(&o->loop, o->listener.id, HD_LOOP_READ, LISTENER, diag);
	if (err)
		hd_fn_owner_close(o);
	return err;
}

void hd_fn_owner_close(struct hd_fn_owner *o)
{
	for (size_t i = 0; o->at && i < HD_FN_CONNECTIONS; i++)
		if (o->at[i].owner)
			drop(&o->at[i]);
	hd_free(o->at);
	if (o->listener.net)
		hd_loop_unwatch(&o->loop, o->listener.id);
	hd_sock_close(&o->listener);
	hd_tls_realm_finish(&o->realm);
	hd_loop_finish(&o->loop);
	hd_arena_finish(&o->arena);
	memset(o, 0, sizeof *o);
}

void hd_fn_owner_calls(struct hd_fn_owner *o, const struct hd_fn_invoker *invoker) { o->invoker = *invoker; }

enum hd_err hd_fn_owner_submit(struct hd_fn_owner *o, const struct hd_fn_job *job, uint32_t n,
	struct hd_diag *diag)
{
	enum hd_err err = HD_OK;
	uint32_t task;

	hd_fn_board_clear(&o->board, o->calling);
	o->generation++;
	o->job = job;
	memset(o->proof, 0, (size_t)o->spec.ntasks * HD_FN_PROOFS * sizeof *o->proof);
	for (uint32_t i = 0; i < n && !err; i++)
		err = hd_fn_board_add(&o->board, job[i].phase, &task, diag);
	return err;
}

void hd_fn_owner_resize(struct hd_fn_owner *o, uint32_t slots)
{
	o->board.slots = slots;
	o->board.offers = slots > 0;
}

uint32_t hd_fn_owner_left(const struct hd_fn_owner *o) { return o->board.open; }
bool hd_fn_owner_is_calling(const struct hd_fn_owner *o) { return o->calling > 0; }

int64_t hd_fn_owner_silent_ns(const struct hd_fn_owner *o)
{
	return o->tried_ns && o->board.offers ? hd_clock_now_ns(o->spec.clock) - o->tried_ns : 0;
}

void hd_fn_owner_ran(struct hd_fn_owner *o, uint32_t task, void *const *at, int64_t took_ns)
{
	const struct hd_fn_job *job = &o->job[task];
	enum hd_fn_reply what = hd_fn_board_ran(&o->board, task, took_ns);

	for (uint32_t i = 0; what == HD_FN_ACCEPTED && i < job->work->ntensors; i++)
		if (job->work->tensor[i].is_output && job->at[i] != at[i])
			memcpy(job->at[i], at[i], hd_fn_tensor_bytes(&job->work->tensor[i]));
}

/* ---- calls ---- */

/* Where a worker calls: a path, or a host and a port. */
static void place(const struct hd_fn_owner *o, struct hd_fn_event *event)
{
	const char *at = o->listener.addr, *port = strrchr(at, ':');
	unsigned number = 0;

	if (!strncmp(at, "unix:", 5)) {
		snprintf(event->host, sizeof event->host, "%.*s", HD_FN_HOST - 1, at);
		return;
	}
	(void)!sscanf(port + 1, "%u", &number);
	event->port = (uint16_t)number;
	const char *from = at + 4;
	size_t len = (size_t)(port - from);
	if (*from == '[') {
		from++;
		len -= 2;
	}
	if (o->spec.host)
		snprintf(event->host, sizeof event->host, "%s", o->spec.host);
	else
		snprintf(event->host, sizeof event->host, "%.*s", (int)len, from);
}

/* HD_E_AGAIN: there are as many as can be. */
static enum hd_err make_call(struct hd_fn_owner *o, const struct hd_fn_step *s, const struct hd_text *event,
	const struct hd_sha256 *token, struct hd_diag *diag)
{
	const uint64_t name = name_call(o->generation, s->task, s->attempt);
	struct hd_fn_under_way *u = o->under_way;

	while (u < o->under_way + HD_FN_UNDER_WAY && u->proof.attempt)
		u++;
	if (u == o->under_way + HD_FN_UNDER_WAY)
		return HD_E_AGAIN;
	enum hd_err err = o->invoker.ops->call(o->invoker.self, name, event->at, event->len,
		s->deadline_ns + AFTER_NS, diag);
	if (!err)
		*u = (struct hd_fn_under_way){ name, id_of(o, s->task), { s->attempt, *token }, false };
	o->calling += !err;
	return err;
}

static void invoke(struct hd_fn_owner *o, const struct hd_fn_step *s)
{
	struct hd_fn_event event = { .ticket = { .task = id_of(o, s->task), .attempt = s->attempt },
		.tls = o->spec.tls };
	struct hd_fn_proof *proof = proof_of(o, s->task, s->attempt);
	int64_t now_ns = hd_clock_now_ns(o->spec.clock);
	char bytes[HD_FN_EVENT_BYTES];
	struct hd_diag why = { "" };
	struct hd_text text;

	o->tried_ns = o->tried_ns ? o->tried_ns : now_ns;
	event.ticket.deadline_ms =
		(hd_clock_wall_ns(o->spec.clock) + s->deadline_ns - now_ns + AFTER_NS) / HD_NS_PER_MS;
	snprintf(event.kernels, sizeof event.kernels, "%s", o->job[s->task].work->kernels);
	place(o, &event);
	enum hd_err err = hd_fn_token(o->key, sizeof o->key, &event.ticket, &event.token, NULL);
	*proof = (struct hd_fn_proof){ err ? 0 : s->attempt, event.token };
	hd_text_fixed(&text, bytes, sizeof bytes);
	hd_fn_event_write(&event, &text);
	if (!err && !text.full)
		err = make_call(o, s, &text, &event.token, &why);
	if (err && err != HD_E_AGAIN)
		snprintf(o->last_error, sizeof o->last_error, "%.380s", why.text);
	if (err)
		hd_fn_board_called(&o->board, s->task, s->attempt, err == HD_E_AGAIN ? HD_FN_THROTTLED :
			HD_FN_FAILED,
			now_ns);
}

/* Bytes of others, printable. */
static void keep_error(struct hd_fn_owner *o, const char *words, const char *bytes)
{
	snprintf(o->last_error, sizeof o->last_error, "%s%.160s", words, bytes);
	for (char *at = o->last_error; *at; at++)
		if (*at < ' ' || *at > '~')
			*at = '?';
}

/* It answers that it is done: is that so? */
static enum hd_fn_outcome ended(struct hd_fn_owner *o, bool met)
{
	if (met)
		return HD_FN_ENDED;
	keep_error(o, "it says that it is done, and no result came: its worker must reach ",
		o->listener.addr);
	return HD_FN_EMPTY;
}

static enum hd_fn_outcome outcome_of(struct hd_fn_owner *o, const struct hd_fn_called *called, bool met)
{
	struct hd_fn_answer answer = { .error = HD_FN_ERROR_NONE };
	struct hd_arena arena;

	if (called->end != HD_FN_ANSWERED && called->why[0])
		snprintf(o->last_error, sizeof o->last_error, "%s", called->why);
	if (called->end == HD_FN_REFUSED_CALL)
		return HD_FN_THROTTLED;
	if (called->end != HD_FN_ANSWERED) {
		o->unanswered++;
		return HD_FN_FAILED;
	}
	hd_arena_init(&arena, 1 << 20);
	enum hd_err err = hd_fn_answer_read(called->body, called->len, &arena, &answer, NULL);
	hd_arena_finish(&arena);
	if (err) {
		keep_error(o, "it answers what no function worker says: ", called->body);
		return HD_FN_FAILED;
	}
	if (answer.error == HD_FN_ERROR_NONE)
		return ended(o, met);
	snprintf(o->last_error, sizeof o->last_error, "%.380s", answer.message);
	return answer.error == HD_FN_ERROR_KERNEL_SET || answer.error == HD_FN_ERROR_TASK ? HD_FN_UNFIT :
		HD_FN_FAILED;
}

static enum hd_err book(struct hd_fn_owner *o, const struct hd_fn_called *called, struct hd_diag *diag)
{
	if (called->end == HD_FN_REFUSED_CALL || called->took_ns < 0)
		return HD_OK;             /* it did not run */
	return called->has_report ? hd_fn_bill_report(&o->bill, &called->report, diag) :
		hd_fn_bill_estimate(&o->bill, called->took_ns, o->spec.memory_mb, diag);
}

static enum hd_err take_calls(struct hd_fn_owner *o, struct hd_diag *diag)
{
	struct hd_fn_called called;

	while (o->invoker.ops && o->invoker.ops->take(o->invoker.self, &called)) {
		const int64_t now_ns = hd_clock_now_ns(o->spec.clock);
		struct hd_fn_under_way *u = find_call(o, called.call);
		const enum hd_fn_outcome outcome = outcome_of(o, &called, u && u->met);
		if (u)
			u->proof.attempt = 0;
		o->calling--;
		if (called.call >> 48 == (o->generation & 0xffff))
			hd_fn_board_called(&o->board, (uint32_t)(called.call >> 24 & 0xffffff),
				(uint32_t)(called.call & 0xffffff), outcome, now_ns);
		else
			hd_fn_board_ended(&o->board, outcome, now_ns);
		if (outcome == HD_FN_ENDED && !o->board.failed_in_row && !o->board.probes)
			o->tried_ns = o->calling ? now_ns : 0;
		enum hd_err err = book(o, &called, diag);
		if (err)
			return err;
	}
	return HD_OK;
}

/* ---- turns ---- */

/* What is due, until nothing is: when to look again. */
static int64_t act(struct hd_fn_owner *o, bool here, uint32_t *run_here)
{
	for (;;) {
		struct hd_fn_step s = hd_fn_board_next(&o->board, hd_clock_now_ns(o->spec.clock),
			here && *run_here == UINT32_MAX);
		if (s.what == HD_FN_WAIT)
			return s.until_ns;
		if (s.what == HD_FN_RUN_HERE)
			*run_here = s.task;
		else
			invoke(o, &s);
	}
}

static int64_t first_end_ns(const struct hd_fn_owner *o)
{
	int64_t next_ns = INT64_MAX;

	for (size_t i = 0; i < HD_FN_CONNECTIONS; i++)
		if (o->at[i].owner && o->at[i].until_ns < next_ns)
			next_ns = o->at[i].until_ns;
	return next_ns;
}

/* Connections whose time is over, once what they sent is read. */
static void end_overdue(struct hd_fn_owner *o, int64_t now_ns)
{
	for (size_t i = 0; i < HD_FN_CONNECTIONS; i++)
		if (o->at[i].owner && now_ns >= o->at[i].until_ns)
			drop(&o->at[i]);
}

static void on_event(struct hd_fn_owner *o, const struct hd_loop_event *event)
{
	if (event->tag == LISTENER)
		accept_all(o);
	else if (event->tag >= FIRST && event->tag < HD_FN_OWNER_TAGS) {
		if (o->at[event->tag - FIRST].owner)
			go_on(&o->at[event->tag - FIRST]);
	} else if (event->tag >= HD_FN_OWNER_TAGS && o->invoker.ops)
		o->invoker.ops->event(o->invoker.self, event);
}

/* The invoker's turn, and calls that ended. *next_ns: when it wants the next one; 0: something ended. */
static enum hd_err tick(struct hd_fn_owner *o, int64_t *next_ns, struct hd_diag *diag)
{
	uint32_t calling = o->calling;

	*next_ns = o->invoker.ops ? o->invoker.ops->tick(o->invoker.self, hd_clock_now_ns(o->spec.clock)) :
		INT64_MAX;
	enum hd_err err = take_calls(o, diag);
	if (o->calling != calling)
		*next_ns = 0;
	return err;
}

enum hd_err hd_fn_owner_turn(struct hd_fn_owner *o, int64_t at_ns, bool here, uint32_t *run_here,
	struct hd_diag *diag)
{
	struct hd_loop_event event[EVENTS];
	int64_t call_ns, next_ns, now_ns;
	size_t n = 0;

	*run_here = UINT32_MAX;
	enum hd_err err = tick(o, &call_ns, diag);
	if (err)
		return err;
	next_ns = act(o, here, run_here);
	err = tick(o, &call_ns, diag);            /* what act began has its times, too */
	now_ns = hd_clock_now_ns(o->spec.clock);
	int64_t end_ns = first_end_ns(o);
	next_ns = end_ns < next_ns ? end_ns : next_ns;
	next_ns = call_ns < next_ns ? call_ns : next_ns;
	next_ns = at_ns < next_ns ? at_ns : next_ns;
	if (!err)
		err = hd_loop_poll(&o->loop, *run_here == UINT32_MAX ? next_ns : 0, event, EVENTS, &n, diag);
	for (size_t i = 0; i < n && !err; i++)
		on_event(o, &event[i]);
	if (n < EVENTS)
		end_overdue(o, now_ns);
	if (*run_here != UINT32_MAX && o->board.task[*run_here].state != HD_FN_RUNS_HERE)
		*run_here = UINT32_MAX;           /* its COMMIT came */
	return err ? err : take_calls(o, diag);
}
