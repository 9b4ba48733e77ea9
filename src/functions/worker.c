#include "functions/worker.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

enum { EVENT_ARENA = 1 << 20, MOST_MS = 900000 };        /* no function runs longer */

/* One task on its way. */
struct doing {
	struct hd_fn_worker *w;
	const struct hd_fn_event *event;
	bool rested;                      /* the connection served a task before */
	bool heard, commits;              /* the owner said something; it was sent a COMMIT */
	struct hd_dense *dense;
	int64_t until_ns, busy_ns;
	void *at[HD_FN_TENSORS];
	bool owned[HD_FN_TENSORS];        /* at[i] is freed in the end */
	bool unfit;                       /* it has other kernels than the owner */
	struct hd_diag diag;
};

enum hd_err hd_fn_worker_init(struct hd_fn_worker *w, struct hd_clock *clock, struct hd_diag *diag)
{
	*w = (struct hd_fn_worker){ .clock = clock };
	w->work = hd_alloc(sizeof *w->work);
	w->payload = hd_alloc(HD_FN_PAYLOAD + 12 + 1);
	if (w->work && w->payload)
		return HD_OK;
	hd_fn_worker_finish(w);
	return hd_fail(diag, HD_E_NOMEM, "no memory for a function worker");
}

void hd_fn_worker_finish(struct hd_fn_worker *w)
{
	for (uint32_t i = 0; i < w->nkept; i++)
		hd_free(w->kept[i].bytes);
	for (uint32_t i = 0; i < HD_FN_READY_TASKS; i++)
		hd_dense_close(&w->dense[i]);
	hd_fn_link_close(&w->link);
	hd_tls_realm_finish(&w->realm);
	hd_free(w->work);
	hd_free(w->payload);
	*w = (struct hd_fn_worker){ .clock = NULL };
}

/* ---- inputs that stay ---- */

static bool has_room(const struct hd_fn_worker *w, uint64_t len)
{
	return w->nkept < HD_FN_HAVE && w->kept_bytes + len <= HD_FN_KEPT_BYTES;
}

static bool in_use(const struct doing *d, const uint8_t *bytes)
{
	for (uint32_t i = 0; i < d->w->work->ntensors; i++)
		if (d->at[i] == bytes)
			return true;
	return false;
}

/* The oldest that the task does not use; false: it uses all of them. */
static bool drop_oldest(const struct doing *d)
{
	struct hd_fn_worker *w = d->w;
	uint32_t i = 0;

	while (i < w->nkept && in_use(d, w->kept[i].bytes))
		i++;
	if (i == w->nkept)
		return false;
	w->kept_bytes -= w->kept[i].len;
	hd_free(w->kept[i].bytes);
	memmove(w->kept + i, w->kept + i + 1, (--w->nkept - i) * sizeof *w->kept);
	return true;
}

static uint8_t *find_kept(const struct hd_fn_worker *w, struct hd_hash digest, uint64_t len)
{
	for (uint32_t i = 0; i < w->nkept; i++)
		if (hd_hash_same(w->kept[i].digest, digest) && w->kept[i].len == len)
			return w->kept[i].bytes;
	return NULL;
}

/* Takes what can be needed again over from the task, where its bytes are what the digest says. */
static enum hd_err keep_inputs(struct doing *d)
{
	struct hd_fn_worker *w = d->w;

	for (uint32_t i = 0; i < w->work->ntensors; i++) {
		const struct hd_fn_tensor *t = &w->work->tensor[i];
		uint64_t len = hd_fn_tensor_bytes(t);
		if (!d->owned[i] || t->is_output || hd_fn_no_digest(t->digest))
			continue;
		if (!hd_hash_same(hd_hash(d->at[i], len), t->digest))
			return hd_fail(&d->diag, HD_E_PROTOCOL, "%s came with another digest than its own",
				t->name);
		if (len > HD_FN_KEPT_BYTES)
			continue;
		while (!has_room(w, len) && drop_oldest(d))
			;
		if (!has_room(w, len))
			continue;         /* the task itself fills it: it goes on to own this one */
		w->kept[w->nkept++] = (struct hd_fn_kept){ t->digest, d->at[i], len };
		w->kept_bytes += len;
		d->owned[i] = false;
	}
	return HD_OK;
}

/* ---- frames ---- */

static enum hd_err flush(struct doing *d)
{
	struct hd_fn_worker *w = d->w;
	size_t len = w->out_len;

	w->out_len = 0;
	return len ? hd_fn_link_send(&w->link, w->out, len, d->until_ns, &d->diag) : HD_OK;
}

/* Small ones go together, at the latest by flush(): each write is a record of TLS, and wakes the owner. */
static enum hd_err send_frame(struct doing *d, enum hd_fn_frame_type type, const void *payload, size_t len)
{
	struct hd_fn_worker *w = d->w;
	enum hd_err err = HD_FN_FRAME + len > sizeof w->out - w->out_len ? flush(d) : HD_OK;

	hd_fn_frame_put(type, payload, len, w->out + w->out_len);
	w->out_len += HD_FN_FRAME;
	if (len <= sizeof w->out - w->out_len) {
		memcpy(w->out + w->out_len, payload, len);
		w->out_len += len;
		return err;
	}
	err = err ? err : flush(d);
	return err ? err : hd_fn_link_send(&w->link, payload, len, d->until_ns, &d->diag);
}

static enum hd_err recv_frame(struct doing *d, struct hd_fn_frame *frame)
{
	uint8_t head[HD_FN_FRAME];

	enum hd_err err = hd_fn_link_recv(&d->w->link, head, sizeof head, d->until_ns, &d->diag);
	d->heard = d->heard || !err;
	if (!err)
		err = hd_fn_frame_get(head, frame, &d->diag);
	if (!err)
		err = hd_fn_link_recv(&d->w->link, d->w->payload, frame->len, d->until_ns, &d->diag);
	return err ? err : hd_fn_frame_check(frame, d->w->payload, &d->diag);
}

static enum hd_err greet(struct doing *d, const char *request)
{
	struct hd_fn_hello hello = { .task = d->event->ticket.task, .attempt = d->event->ticket.attempt,
		.token = d->event->token, .nhave = d->w->nkept };
	char bytes[HD_FN_HELLO_BYTES];
	struct hd_text text;

	snprintf(hello.request, sizeof hello.request, "%s", request);
	for (uint32_t i = 0; i < d->w->nkept; i++)
		hello.have[i] = d->w->kept[i].digest;
	hd_text_fixed(&text, bytes, sizeof bytes);
	enum hd_err err = d->rested ? hd_fn_proof_again(&d->w->link.tls, d->w->link.secure, &d->event->token,
		&hello.token, &d->diag) : HD_OK;
	hd_fn_hello_put(&hello, &text);
	if (!err)
		err = send_frame(d, HD_FN_HELLO, text.at, text.len);
	return err ? err : flush(d);
}

/* The owner's last word, in place of what was awaited. */
static enum hd_err take_reply(struct doing *d, const struct hd_fn_frame *frame, enum hd_fn_reply *reply)
{
	return hd_fn_reply_get(d->w->payload, frame->len, reply, &d->diag);
}

/* One that computes tasks like this. */
static enum hd_err find_dense(struct doing *d)
{
	struct hd_fn_worker *w = d->w;
	const struct hd_hash name = hd_dense_name(w->work);

	for (uint32_t i = 0; i < HD_FN_READY_TASKS; i++)
		if (w->dense[i].device && hd_hash_same(w->dense[i].name, name)) {
			d->dense = &w->dense[i];
			return HD_OK;
		}
	d->dense = &w->dense[w->ndense++ % HD_FN_READY_TASKS];
	hd_dense_close(d->dense);
	return hd_dense_open(d->dense, w->work, &d->diag);
}

static enum hd_err compare_kernels(struct doing *d)
{
	const struct hd_fn_work *work = d->w->work;
	struct hd_hash *own = &d->dense->proof;
	enum hd_err err = HD_OK;

	if (hd_fn_no_digest(work->proof))
		return HD_OK;
	if (hd_fn_no_digest(*own))
		err = hd_dense_proof(work, d->w->clock, d->until_ns, own, &d->diag);
	if (err || hd_hash_same(*own, work->proof))
		return err;
	d->unfit = true;
	return hd_fail(&d->diag, HD_E_REFUSED, "its kernels %s have other bits than those of the run: it is "
		"of another version; deploy this one's heddle-function", work->kernels);
}

static enum hd_err make_ready(struct doing *d, const struct hd_fn_frame *frame)
{
	struct hd_fn_worker *w = d->w;
	struct hd_fn_work *work = w->work;

	enum hd_err err = hd_fn_work_get(w->payload, frame->len, work, &d->diag);
	if (!err && strcmp(work->kernels, d->event->kernels) != 0)
		err = hd_fail(&d->diag, HD_E_PROTOCOL, "the owner names other kernels than its event");
	if (!err)
		err = find_dense(d);
	if (!err)
		err = hd_dense_fits(d->dense, work, &d->diag);
	return err ? err : compare_kernels(d);
}

static enum hd_err take_inputs(struct doing *d)
{
	const struct hd_fn_work *work = d->w->work;
	void *to[HD_FN_TENSORS] = { NULL };
	struct hd_fn_intake intake;
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; i < work->ntensors; i++) {
		const struct hd_fn_tensor *t = &work->tensor[i];
		uint64_t len = hd_fn_tensor_bytes(t);
		if (!t->is_output && !hd_fn_no_digest(t->digest) && (d->at[i] = find_kept(d->w, t->digest,
			len)))
			continue;
		d->at[i] = hd_alloc(len);
		if (!d->at[i])
			return hd_fail(&d->diag, HD_E_NOMEM, "no memory for %s", t->name);
		d->owned[i] = true;
		to[i] = t->is_output ? NULL : d->at[i];
	}
	hd_fn_intake_begin(&intake, work, to);
	while (!err && !hd_fn_intake_done(&intake)) {
		struct hd_fn_frame frame;
		struct hd_fn_rows rows;
		err = recv_frame(d, &frame);
		if (!err && frame.type != HD_FN_DATA)
			err = hd_fail(&d->diag, HD_E_PROTOCOL, "the owner ends, or sends no rows");
		if (!err)
			err = hd_fn_rows_get(d->w->payload, frame.len, &rows, &d->diag);
		if (!err)
			err = hd_fn_intake_take(&intake, &rows, &d->diag);
	}
	return err;
}

static enum hd_err send_outputs(struct doing *d)
{
	const struct hd_fn_work *work = d->w->work;
	uint8_t *payload = d->w->payload;
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; i < work->ntensors && !err; i++) {
		const struct hd_fn_tensor *t = &work->tensor[i];
		uint32_t nrows = t->rank ? (uint32_t)t->dim[0] : 1;
		uint64_t row_bytes = hd_fn_row_bytes(t);
		uint32_t most = (uint32_t)(HD_FN_DATA_BYTES / row_bytes);
		for (uint32_t first = 0; t->is_output && first < nrows && !err; first += most) {
			struct hd_fn_rows rows = { .tensor = i, .first = first,
				.n = nrows - first < most ? nrows - first : most };
			hd_fn_rows_put(&rows, payload);
			memcpy(payload + 12, (const uint8_t *)d->at[i] + first * row_bytes,
				rows.n * row_bytes);
			err = send_frame(d, HD_FN_RESULT, payload, 12 + rows.n * row_bytes);
		}
	}
	return err;
}

static enum hd_err commit(struct doing *d, enum hd_fn_reply *reply)
{
	const struct hd_fn_commit last = { hd_dense_digest(d->w->work, d->at), (uint64_t)d->busy_ns };
	struct hd_fn_frame frame;
	uint8_t bytes[24];

	hd_fn_commit_put(&last, bytes);
	enum hd_err err = send_frame(d, HD_FN_COMMIT, bytes, sizeof bytes);
	if (!err)
		err = flush(d);
	d->commits = !err;
	if (!err)
		err = recv_frame(d, &frame);
	if (!err && frame.type != HD_FN_REPLY)
		err = hd_fail(&d->diag, HD_E_PROTOCOL, "the owner does not reply to a COMMIT");
	return err ? err : take_reply(d, &frame, reply);
}

/* From HELLO to REPLY. */
static enum hd_err talk(struct doing *d, const char *request, enum hd_fn_reply *reply)
{
	struct hd_fn_frame frame;

	enum hd_err err = greet(d, request);
	if (!err)
		err = recv_frame(d, &frame);
	if (err || frame.type == HD_FN_REPLY)
		return err ? err : take_reply(d, &frame, reply);
	if (frame.type != HD_FN_WORK)
		return hd_fail(&d->diag, HD_E_PROTOCOL, "the owner answers a HELLO with no work");
	err = make_ready(d, &frame);
	if (!err)
		err = take_inputs(d);
	if (!err)
		err = keep_inputs(d);
	int64_t began_ns = hd_clock_now_ns(d->w->clock);
	if (!err)
		err = hd_dense_run(d->dense, d->w->work, d->at, d->w->clock, d->until_ns, &d->diag);
	d->busy_ns = hd_clock_now_ns(d->w->clock) - began_ns;
	if (!err)
		err = send_outputs(d);
	return err ? err : commit(d, reply);
}

/* ---- the connection ---- */

static void address_of(const struct hd_fn_event *event, char addr[HD_ADDR_CAP])
{
	if (event->port)
		snprintf(addr, HD_ADDR_CAP, strchr(event->host, ':') ? "tcp:[%s]:%u" : "tcp:%s:%u",
			event->host, event->port);
	else
		snprintf(addr, HD_ADDR_CAP, "%s", event->host);
}

/* Has the last task's connection rested for this one? */
static bool has_rested(const struct hd_fn_worker *w, const struct hd_fn_event *event, const char *addr)
{
	int64_t ns = hd_clock_now_ns(w->clock) - w->rested_ns,
		wall_ns = hd_clock_wall_ns(w->clock) - w->rested_wall_ns;

	return w->link.sock.net && w->link.secure == event->tls && !strcmp(w->owner, addr) &&
		ns < HD_FN_REST_NS && wall_ns >= 0 && wall_ns < HD_FN_REST_NS;
}

static enum hd_err open_link(struct doing *d, const char *addr)
{
	struct hd_fn_worker *w = d->w;
	enum hd_err err = HD_OK;

	hd_fn_link_close(&w->link);
	w->out_len = 0;
	d->rested = false;
	if (d->event->tls && !w->realm.context)
		err = hd_tls_realm_make(&w->realm, &d->diag);
	if (!err)
		err = hd_fn_link_open(&w->link, w->clock, addr, d->event, &w->realm, d->until_ns, &d->diag);
	w->link.bytes_s = w->bytes_s;
	return err;
}

/* By the connection that rested, or a new one; where that one had ended unheard, by a new one, too. */
static enum hd_err talk_to(struct doing *d, const char *addr, const char *request, enum hd_fn_reply *reply)
{
	struct hd_fn_worker *w = d->w;
	enum hd_err err = HD_OK;

	w->out_len = 0;
	d->rested = has_rested(w, d->event, addr);
	err = d->rested ? HD_OK : open_link(d, addr);
	if (!err)
		err = talk(d, request, reply);
	if (err == HD_E_PEERLOST && d->rested && !d->heard) {
		err = open_link(d, addr);
		if (!err)
			err = talk(d, request, reply);
	}
	if (err || !d->commits || *reply == HD_FN_REFUSED) {
		hd_fn_link_close(&w->link);
		return err;
	}
	snprintf(w->owner, sizeof w->owner, "%s", addr);
	w->rested_ns = hd_clock_now_ns(w->clock);
	w->rested_wall_ns = hd_clock_wall_ns(w->clock);
	return HD_OK;
}

static enum hd_fn_error error_of(enum hd_err err)
{
	switch ((int)err) {
	case HD_OK:         return HD_FN_ERROR_NONE;
	case HD_E_AGAIN:    return HD_FN_ERROR_DEADLINE;
	case HD_E_PEERLOST: return HD_FN_ERROR_OWNER;
	case HD_E_REFUSED:  return HD_FN_ERROR_OWNER;
	case HD_E_PROTOCOL: return HD_FN_ERROR_EVENT;
	default:            return HD_FN_ERROR_TASK;
	}
}

static void fill_answer(struct hd_fn_answer *answer, enum hd_fn_error error, const struct hd_diag *diag)
{
	*answer = (struct hd_fn_answer){ .error = error };
	snprintf(answer->message, sizeof answer->message, "%.*s", (int)sizeof answer->message - 1,
		diag->text);
}

/* Devices are opened to find that out, once for a name. */
static enum hd_err has_kernels(struct hd_fn_worker *w, const char *kernels, struct hd_diag *diag)
{
	enum hd_err err = !strcmp(w->kernels, kernels) ? HD_OK : hd_dense_has_kernels(kernels, diag);

	if (!err)
		snprintf(w->kernels, sizeof w->kernels, "%s", kernels);
	return err;
}

static void do_event(struct hd_fn_worker *w, const struct hd_fn_event *event, const char *request,
	int64_t deadline_ms, struct hd_fn_answer *answer)
{
	struct doing d = { .w = w, .event = event };
	char addr[HD_ADDR_CAP];
	enum hd_fn_reply reply = HD_FN_REFUSED;
	int64_t first_ms = event->ticket.deadline_ms < deadline_ms ? event->ticket.deadline_ms : deadline_ms;
	int64_t left_ms = first_ms - HD_FN_STOP_MS - hd_clock_wall_ns(w->clock) / HD_NS_PER_MS;

	enum hd_err err = has_kernels(w, event->kernels, &d.diag);
	if (err) {
		fill_answer(answer, HD_FN_ERROR_KERNEL_SET, &d.diag);
		return;
	}
	if (left_ms <= 0) {
		(void)hd_fail(&d.diag, HD_E_AGAIN, "the event came %lld ms too late", (long long)-left_ms);
		fill_answer(answer, HD_FN_ERROR_DEADLINE, &d.diag);
		return;
	}
	d.until_ns = hd_clock_now_ns(w->clock) + (left_ms < MOST_MS ? left_ms : MOST_MS) * HD_NS_PER_MS;
	address_of(event, addr);
	err = talk_to(&d, addr, request, &reply);
	for (uint32_t i = 0; i < HD_FN_TENSORS; i++)
		if (d.owned[i])
			hd_free(d.at[i]);
	fill_answer(answer, d.unfit ? HD_FN_ERROR_KERNEL_SET : error_of(err), &d.diag);
	answer->reply = reply;
	answer->busy_ms = (double)d.busy_ns * 1e-6;
}

void hd_fn_worker_do(struct hd_fn_worker *w, const char *text, size_t len, const char *request,
	int64_t deadline_ms, struct hd_fn_answer *answer)
{
	struct hd_fn_event event;
	struct hd_diag diag = { "" };
	struct hd_arena arena;

	hd_arena_init(&arena, EVENT_ARENA);
	enum hd_err err = hd_fn_event_read(text, len, &arena, &event, &diag);
	hd_arena_finish(&arena);
	if (err)
		fill_answer(answer, HD_FN_ERROR_EVENT, &diag);
	else
		do_event(w, &event, request, deadline_ms, answer);
}
