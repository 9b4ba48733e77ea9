#include "protocol/message.h"

#include <assert.h>
#include <string.h>

#include "base/le.h"
#include "base/utf8.h"
#include "plan/ins.h"

/* One writer and one reader walk the fields; the tables of message.h make them a row per kind. Both
 * refuse what the other cannot have made. The writer counts into nothing (`at` NULL) to find a length. */

struct msg_writer { uint8_t *at; size_t len; bool fits; };          /* at NULL: only counts */
struct msg_reader { const uint8_t *at; size_t left; bool bad, full; struct hd_arena *arena; };

static void put(struct msg_writer *w, uint64_t v, size_t n)
{
	for (size_t i = 0; i < n && w->at; i++)
		w->at[w->len + i] = (uint8_t)(v >> 8 * i);
	w->len += n;
}

static uint64_t take(struct msg_reader *r, size_t n)
{
	uint64_t v = 0;

	if (r->left < n) {
		r->bad = true;
		return 0;
	}
	for (size_t i = 0; i < n; i++)
		v |= (uint64_t)r->at[i] << 8 * i;
	r->at += n;
	r->left -= n;
	return v;
}

static uint64_t bits_of(double x) { uint64_t v; memcpy(&v, &x, sizeof v); return v; }
static double f64_of(uint64_t v) { double x; memcpy(&x, &v, sizeof x); return x; }

static void put_u8(struct msg_writer *w, uint8_t v) { put(w, v, 1); }
static void put_flag(struct msg_writer *w, bool v) { put(w, v, 1); }
static void put_u32(struct msg_writer *w, uint32_t v) { put(w, v, 4); }
static void put_u64(struct msg_writer *w, uint64_t v) { put(w, v, 8); }
static void put_text(struct msg_writer *w, char c) { put(w, (uint8_t)c, 1); }
static void put_vrank(struct msg_writer *w, struct hd_vrank v) { put(w, v.worker, 4); put(w, v.nvns, 4); }
static void put_vrange(struct msg_writer *w, struct hd_vrange v) { put(w, v.first, 4); put(w, v.n, 4); }
static void put_pass(struct msg_writer *w, struct hd_pass v) { put(w, v.worker, 4); put(w, v.pass, 4);
	put(w, v.nranges, 4); put(w, v.stage, 4); }
static void put_have(struct msg_writer *w, struct hd_have v) { put(w, v.first, 4); put(w, v.members, 8); }
static void put_held(struct msg_writer *w, struct hd_held_run v) { put(w, v.first, 4); put(w, v.n, 4);
	put(w, v.digest, 8); }
static void put_kind(struct msg_writer *w, struct hd_spent_kind v) { put(w, v.rank, 4); put(w, v.stage, 1);
	put(w, v.op, 1); put(w, v.n, 8); put(w, v.ns, 8); put(w, v.processor_ns, 8); }

static void put_hash(struct msg_writer *w, struct hd_hash v)
{
	for (size_t i = 0; i < sizeof v.byte; i++)
		put(w, v.byte[i], 1);
}

static void put_news(struct msg_writer *w, struct hd_step_news v)
{
	const double sums[] = { v.loss_sum, v.weight, v.correct, v.gnorm, v.lr };
	const uint64_t counts[] = { v.samples, v.data_epoch, v.step_ns, v.wait_ns, v.compute_ns,
		v.redundant_ns, v.stalled_ns, v.read_wait_ns, v.bytes_out, v.preempted, v.inverted };

	for (size_t i = 0; i < sizeof sums / sizeof *sums; i++)
		put(w, bits_of(sums[i]), 8);
	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
		put(w, counts[i], 8);
	put(w, v.nterms, 1);
	for (uint32_t i = 0; i < v.nterms; i++)
		put(w, bits_of(v.term_sum[i]), 8);
	put(w, v.redone, 4);
	put_flag(w, v.empty);
	put_flag(w, v.skipped);
	put_flag(w, v.has_digest);
	put_hash(w, v.digest);
}

static uint8_t take_u8(struct msg_reader *r) { return (uint8_t)take(r, 1); }
static uint32_t take_u32(struct msg_reader *r) { return (uint32_t)take(r, 4); }
static uint64_t take_u64(struct msg_reader *r) { return take(r, 8); }
static char take_text(struct msg_reader *r) { return (char)take(r, 1); }
static struct hd_vrank take_vrank(struct msg_reader *r) { uint32_t a = take_u32(r);
	return (struct hd_vrank){ a, take_u32(r) }; }
static struct hd_vrange take_vrange(struct msg_reader *r) { uint32_t a = take_u32(r);
	return (struct hd_vrange){ a, take_u32(r) }; }
static struct hd_have take_have(struct msg_reader *r) { uint32_t a = take_u32(r);
	return (struct hd_have){ a, take(r, 8) }; }

static struct hd_held_run take_held(struct msg_reader *r)
{
	struct hd_held_run h = { .first = take_u32(r) };

	h.n = take_u32(r);
	h.digest = take_u64(r);
	return h;
}

static struct hd_spent_kind take_kind(struct msg_reader *r)
{
	struct hd_spent_kind k = { .rank = take_u32(r) };

	k.stage = take_u8(r);
	k.op = take_u8(r);
	k.n = take_u64(r);
	k.ns = take_u64(r);
	k.processor_ns = take_u64(r);
	return k;
}

static struct hd_pass take_pass(struct msg_reader *r)
{
	struct hd_pass p = { .worker = take_u32(r) };

	p.pass = take_u32(r);
	p.nranges = take_u32(r);
	p.stage = take_u32(r);
	r->bad |= p.stage >= HD_STAGE_BITS;
	return p;
}

static bool take_flag(struct msg_reader *r)
{
	uint64_t v = take(r, 1);

	r->bad |= v > 1;
	return v == 1;
}

static struct hd_hash take_hash(struct msg_reader *r)
{
	struct hd_hash v = { { 0 } };

	for (size_t i = 0; i < sizeof v.byte; i++)
		v.byte[i] = take_u8(r);
	return v;
}

static struct hd_step_news take_news(struct msg_reader *r)
{
	struct hd_step_news v = { 0 };
	double *sums[] = { &v.loss_sum, &v.weight, &v.correct, &v.gnorm, &v.lr };
	uint64_t *counts[] = { &v.samples, &v.data_epoch, &v.step_ns, &v.wait_ns, &v.compute_ns,
		&v.redundant_ns, &v.stalled_ns, &v.read_wait_ns, &v.bytes_out, &v.preempted,
		&v.inverted };

	for (size_t i = 0; i < sizeof sums / sizeof *sums; i++)
		*sums[i] = f64_of(take(r, 8));
	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
		*counts[i] = take(r, 8);
	v.nterms = take_u8(r);
	r->bad |= v.nterms > sizeof v.term_sum / sizeof *v.term_sum;
	for (uint32_t i = 0; i < v.nterms && !r->bad; i++)
		v.term_sum[i] = f64_of(take(r, 8));
	v.redone     = take_u32(r);
	v.empty      = take_flag(r);
	v.skipped    = take_flag(r);
	v.has_digest = take_flag(r);
	v.digest     = take_hash(r);
	return v;
}

/* Bytes of an element, so that a count is held against what is left before memory is taken. */
enum { SIZE_text = 1, SIZE_u32 = 4, SIZE_u64 = 8, SIZE_vrank = 8, SIZE_vrange = 8, SIZE_pass = 16,
	SIZE_have = 12, SIZE_held = 16, SIZE_kind = 30 };

#define F(type, name) put_##type(w, m->name);
#define A(type, name, cap) put_u32(w, m->n##name); w->fits &= m->n##name <= (cap);
#define X(fields) static void head_##fields(struct msg_writer *w, const struct hd_msg_##fields *m) { \
	(void)w; (void)m; HD_FIELDS_##fields(F, A) }
#define HD_KINDS_OF_FIELDS(X) X(none) X(ready_to_sync) X(join) X(admit) \
	X(refuse) X(peer) X(sync) X(send_state) X(synced) X(prepare) X(decided) X(seal) X(suspect) \
	X(fence) X(status) X(stopped) X(unfit) X(view) X(leave) X(release) X(stop) X(halt) X(done) X(event) X(progress) \
	X(spent) X(ended) X(offer)
HD_KINDS_OF_FIELDS(X)
#undef X
#undef F
#undef A

#define F(type, name)
#define A(type, name, cap) for (uint32_t i = 0; w->fits && i < m->n##name; i++) put_##type(w, m->name[i]);
#define X(fields) static void arrays_##fields(struct msg_writer *w, const struct hd_msg_##fields *m) { \
	(void)w; (void)m; HD_FIELDS_##fields(F, A) }
HD_KINDS_OF_FIELDS(X)
#undef X
#undef F
#undef A

#define F(type, name) m->name = take_##type(r);
#define A(type, name, cap) m->n##name = take_u32(r); r->bad |= m->n##name > (cap);
#define X(fields) static void take_head_##fields(struct msg_reader *r, struct hd_msg_##fields *m) { (void)r; \
	(void)m; HD_FIELDS_##fields(F, A) }
HD_KINDS_OF_FIELDS(X)
#undef X
#undef F
#undef A

#define F(type, name)
#define A(type, name, cap) \
	r->bad |= (size_t)m->n##name * SIZE_##type > r->left; \
	if (!r->bad && !r->full) { \
		HD_MSG_C_##type *to = hd_arena_take(r->arena, m->n##name + (size_t)1, sizeof *to); \
		r->full = !to; \
		for (uint32_t i = 0; to && i < m->n##name; i++) \
			to[i] = take_##type(r); \
		m->name = to; \
	}
#define X(fields) static void take_arrays_##fields(struct msg_reader *r, struct hd_msg_##fields *m) { \
	(void)r; (void)m; HD_FIELDS_##fields(F, A) }
HD_KINDS_OF_FIELDS(X)
#undef X
#undef F
#undef A

/* Every array of text is text for people or an address: UTF-8 without control characters. */
static bool is_text(const char *at, size_t len)
{
	for (size_t i = 0; i < len; ) {
		size_t n = hd_utf8_len(at + i, len - i);
		if (!n || (unsigned char)at[i] < ' ' || at[i] == 127)
			return false;
		i += n;
	}
	return true;
}

/* The one rule between arrays: ranges lie one after another, pass by pass, and none is over. */
static bool link_passes(struct hd_pass *pass, uint32_t npasses, uint32_t nranges)
{
	uint32_t next = 0;

	for (uint32_t i = 0; i < npasses; i++) {
		if (pass[i].nranges > nranges - next)
			return false;
		pass[i].first_range = next;
		next += pass[i].nranges;
	}
	return next == nranges;
}

#define F(type, name)
#define TEXT_text(at, n) && is_text(at, n)
#define TEXT_u32(at, n)
#define TEXT_u64(at, n)
#define TEXT_vrank(at, n)
#define TEXT_vrange(at, n)
#define TEXT_pass(at, n)
#define TEXT_have(at, n)
#define TEXT_held(at, n)
#define TEXT_kind(at, n)
#define A(type, name, cap) TEXT_##type(m->name, m->n##name)
#define X(fields) static bool texts_##fields(const struct hd_msg_##fields *m) { (void)m; return true \
	HD_FIELDS_##fields(F, A); }
HD_KINDS_OF_FIELDS(X)
#undef X
#undef F
#undef A

static bool runs(const struct hd_have *run, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (run[i].first >= HD_MAX_BUCKETS || (i ? run[i].first <= run[i - 1].first :
			run[i].first != 0))
			return false;
	return true;
}

/* Runs of buckets one behind another, none empty. */
static bool held(const struct hd_held_run *run, uint32_t n)
{
	uint32_t next = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (run[i].first < next || !run[i].n || run[i].first >= HD_MAX_BUCKETS ||
			run[i].n > HD_MAX_BUCKETS - run[i].first)
			return false;
		next = run[i].first + run[i].n;
	}
	return true;
}

/* Places of stages are bytes of a view. */
static bool places(const uint32_t *place, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (place[i] >= HD_STAGE_BITS)
			return false;
	return true;
}

static uint64_t order_of(const struct hd_spent_kind *k)
{
	return (uint64_t)k->rank << 16 | (uint64_t)k->stage << 8 | k->op;
}

/* By rank, stage and instruction, each once, of instructions that there are. */
static bool kinds(const struct hd_spent_kind *kind, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (kind[i].rank >= HD_VIEW_RANKS || kind[i].stage >= HD_STAGE_BITS ||
			kind[i].op >= HD_INS_END || (i && order_of(&kind[i]) <= order_of(&kind[i - 1])))
			return false;
	return true;
}

static bool sound(const struct hd_msg *msg)
{
	/* the arrays lie in the reader's arena: first_range is not on the wire, it is filled in here */
	if (msg->kind == HD_MSG_STATUS)
		return places(msg->status.place, msg->status.nplace) &&
			link_passes((struct hd_pass *)(uintptr_t)msg->status.pass, msg->status.npass,
			msg->status.nrange);
	if (msg->kind == HD_MSG_PREPARE)
		return places(msg->prepare.place, msg->prepare.nplace) &&
			places(msg->prepare.old_place, msg->prepare.nold_place);
	if (msg->kind == HD_MSG_SEAL)
		return held(msg->seal.held, msg->seal.nheld);
	if (msg->kind == HD_MSG_SPENT)
		return kinds(msg->spent.spent, msg->spent.nspent);
	if (msg->kind == HD_MSG_SUSPECT)
		return msg->suspect.why < HD_NSUSPICIONS;
	if (msg->kind == HD_MSG_STOPPED)
		return msg->stopped.nnext == msg->stopped.nrank;
	if (msg->kind != HD_MSG_VIEW)
		return true;
	const struct hd_msg_view *v = &msg->view;
	return runs(v->have, v->nhave) && runs(v->parm, v->nparm) && runs(v->chain, v->nchain) &&
		v->nat == v->nmember && places(v->place, v->nplace) &&
		link_passes((struct hd_pass *)(uintptr_t)v->pass, v->npass, v->nrange);
}

struct msg_row {
	const char *name;
	void (*put)(struct msg_writer *w, const struct hd_msg *msg);
	void (*take)(struct msg_reader *r, struct hd_msg *msg);
	bool (*texts)(const struct hd_msg *msg);
};

#define X(fields) \
	static void put_all_##fields(struct msg_writer *w, const struct hd_msg *msg) \
	{ \
		head_##fields(w, &msg->fields); \
		arrays_##fields(w, &msg->fields); \
	} \
	static void take_all_##fields(struct msg_reader *r, struct hd_msg *msg) \
	{ \
		take_head_##fields(r, &msg->fields); \
		take_arrays_##fields(r, &msg->fields); \
	} \
	static bool text_all_##fields(const struct hd_msg *msg) { return texts_##fields(&msg->fields); }
HD_KINDS_OF_FIELDS(X)
#undef X

static const struct msg_row rows[HD_MSG_NKINDS] = {
#define X(id, no, fields, route, text) [no] = { #id, put_all_##fields, take_all_##fields, text_all_##fields },
	HD_MSGS(X)
#undef X
};

static const struct msg_row *row_of(uint32_t kind) { return kind < HD_MSG_NKINDS &&
	rows[kind].name ? &rows[kind] : NULL; }

const char *hd_msg_name(enum hd_msg_kind kind)
{
	const struct msg_row *row = row_of(kind);

	return row ? row->name : NULL;
}

static struct msg_writer write_all(const struct hd_msg *msg, uint8_t *at)
{
	struct msg_writer w = { .at = at, .fits = true };

	assert(row_of(msg->kind));
	put_u32(&w, msg->term);
	put_u32(&w, msg->epoch);
	rows[msg->kind].put(&w, msg);
	return w;
}

size_t hd_msg_len(const struct hd_msg *msg) { return write_all(msg, NULL).len; }

enum hd_err hd_msg_encode(const struct hd_msg *msg, uint8_t *bytes, size_t cap, size_t *len,
	struct hd_diag *diag)
{
	if (!row_of(msg->kind))
		return hd_fail(diag, HD_E_INVAL, "no message has the number %u", (unsigned)msg->kind);
	struct msg_writer w = write_all(msg, NULL);
	if (!w.fits)
		return hd_fail(diag, HD_E_INVAL, "a message %s has an array beyond its limit",
			rows[msg->kind].name);
	if (w.len > cap)
		return hd_fail(diag, HD_E_NOSPACE, "a message %s takes %zu bytes, there is room for %zu",
			rows[msg->kind].name, w.len, cap);
	*len = write_all(msg, bytes).len;
	assert(*len == w.len);            /* both walks of the fields agree */
	return HD_OK;
}

enum hd_err hd_msg_decode(struct hd_msg *msg, uint32_t kind, const uint8_t *bytes, size_t len,
	struct hd_arena *arena, struct hd_diag *diag)
{
	const struct msg_row *row = row_of(kind);
	struct msg_reader r = { .at = bytes, .left = len, .arena = arena };
	struct hd_msg got = { 0 };

	if (!row)
		return hd_fail(diag, HD_E_PROTOCOL, "no message has the number %u", kind);
	got.kind  = (enum hd_msg_kind)kind;
	got.term  = take_u32(&r);
	got.epoch = take_u32(&r);
	row->take(&r, &got);
	if (r.full && !r.bad)
		return hd_fail(diag, HD_E_NOMEM, "no memory for a message %s of %zu bytes", row->name, len);
	if (r.bad || r.left || !row->texts(&got) || !sound(&got))
		return hd_fail(diag, HD_E_PROTOCOL, "a message %s of %zu bytes is malformed", row->name, len);
	*msg = got;
	return HD_OK;
}
