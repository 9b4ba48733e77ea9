#include "functions/message.h"

#include <string.h>

#include "base/checked.h"
#include "base/crc32c.h"
#include "base/le.h"

enum { MAGIC = 0x4648, VERSION = 2 };     /* "HF" */

static const struct { uint32_t no, least, most; const char *name; } frames[] = {
#define X(id, no, least, most) { no, least, most, #id },
	HD_FN_FRAMES(X)
#undef X
};
enum { NFRAMES = sizeof frames / sizeof *frames };

static enum hd_err broken(struct hd_diag *diag, const char *what)
{
	return hd_fail(diag, HD_E_PROTOCOL, "%s: the other end speaks another version, or is no heddle",
		what);
}

void hd_fn_frame_put(enum hd_fn_frame_type type, const void *payload, size_t len, uint8_t b[HD_FN_FRAME])
{
	hd_put16(b, MAGIC);
	b[2] = VERSION;
	b[3] = (uint8_t)type;
	hd_put32(b + 4, (uint32_t)len);
	hd_put32(b + 8, hd_crc32c(0, payload, len));
	hd_put32(b + 12, hd_crc32c(0, b, 12));
}

enum hd_err hd_fn_frame_get(const uint8_t b[HD_FN_FRAME], struct hd_fn_frame *frame, struct hd_diag *diag)
{
	if (hd_get16(b) != MAGIC || b[2] != VERSION || hd_get32(b + 12) != hd_crc32c(0, b, 12))
		return broken(diag, "a frame begins with other bytes");
	for (size_t i = 0; i < NFRAMES; i++) {
		uint32_t len = hd_get32(b + 4);
		if (frames[i].no != b[3])
			continue;
		if (len < frames[i].least || len > frames[i].most)
			return broken(diag, "a frame has a length that its type does not have");
		*frame = (struct hd_fn_frame){ (enum hd_fn_frame_type)b[3], len, hd_get32(b + 8) };
		return HD_OK;
	}
	return broken(diag, "a frame of an unknown type");
}

enum hd_err hd_fn_frame_check(const struct hd_fn_frame *frame, const void *payload, struct hd_diag *diag)
{
	return hd_crc32c(0, payload, frame->len) == frame->crc ? HD_OK :
		hd_fail(diag, HD_E_PROTOCOL, "bytes of a frame changed on their way");
}

/* ---- tensors ---- */

uint64_t hd_fn_tensor_bytes(const struct hd_fn_tensor *t)
{
	uint64_t bytes = hd_dtype_bytes((enum hd_dtype)t->dtype);

	for (uint8_t d = 0; d < t->rank; d++)
		if (t->dim[d] <= 0 || t->dim[d] > HD_MAX_EXTENT ||
			!hd_mul_u64(bytes, (uint64_t)t->dim[d], &bytes) || bytes > UINT64_C(1) << 40)
			return 0;
	return bytes;
}

uint64_t hd_fn_row_bytes(const struct hd_fn_tensor *t)
{
	uint64_t bytes = hd_fn_tensor_bytes(t);

	return t->rank ? bytes / (uint64_t)t->dim[0] : bytes;
}

static uint64_t rows_of(const struct hd_fn_tensor *t) { return t->rank ? (uint64_t)t->dim[0] : 1; }

bool hd_fn_no_digest(struct hd_hash digest)
{
	static const struct hd_hash none;

	return hd_hash_same(digest, none);
}

/* ---- writing ---- */

static void put_bytes(struct hd_text *t, const void *bytes, size_t len) { hd_text_put(t, bytes, len); }

static void put_number(struct hd_text *t, uint64_t v, size_t nbytes)
{
	uint8_t b[8];

	hd_put64(b, v);
	put_bytes(t, b, nbytes);
}

static void put_word(struct hd_text *t, const char *word)
{
	put_number(t, strlen(word), 1);
	put_bytes(t, word, strlen(word));
}

void hd_fn_hello_put(const struct hd_fn_hello *h, struct hd_text *t)
{
	put_bytes(t, h->task.byte, sizeof h->task.byte);
	put_number(t, h->attempt, 4);
	put_bytes(t, h->token.byte, sizeof h->token.byte);
	put_word(t, h->request);
	put_number(t, h->nhave, 2);
	for (uint32_t i = 0; i < h->nhave; i++)
		put_bytes(t, h->have[i].byte, sizeof h->have[i].byte);
}

void hd_fn_work_put(const struct hd_fn_work *w, struct hd_text *t)
{
	put_word(t, w->kernels);
	put_bytes(t, w->proof.byte, sizeof w->proof.byte);
	put_number(t, w->rows, 8);
	put_number(t, w->version, 8);
	put_number(t, w->seed, 8);
	put_number(t, w->step, 8);
	put_number(t, w->vn, 4);
	put_number(t, w->ntensors, 2);
	for (uint32_t i = 0; i < w->ntensors; i++) {
		const struct hd_fn_tensor *x = &w->tensor[i];
		put_word(t, x->name);
		put_number(t, x->is_output, 1);
		put_number(t, x->dtype, 1);
		put_number(t, x->rank, 1);
		for (uint8_t d = 0; d < x->rank; d++)
			put_number(t, (uint64_t)x->dim[d], 8);
		put_bytes(t, x->digest.byte, sizeof x->digest.byte);
	}
	put_number(t, w->text_len, 4);
	put_bytes(t, w->text, w->text_len);
}

void hd_fn_rows_put(const struct hd_fn_rows *rows, uint8_t b[12])
{
	hd_put32(b, rows->tensor);
	hd_put32(b + 4, rows->first);
	hd_put32(b + 8, rows->n);
}

void hd_fn_commit_put(const struct hd_fn_commit *commit, uint8_t b[24])
{
	memcpy(b, commit->digest.byte, sizeof commit->digest.byte);
	hd_put64(b + 16, commit->busy_ns);
}

/* ---- reading ---- */

/* What is left of a payload; `short_` once it ended too early. */
struct unread { const uint8_t *at; size_t len; bool ended; };

static const uint8_t *take(struct unread *r, size_t n)
{
	const uint8_t *at = r->at;

	if (n > r->len) {
		r->ended = true;
		return NULL;
	}
	r->at += n;
	r->len -= n;
	return at;
}

static uint64_t number(struct unread *r, size_t nbytes)
{
	const uint8_t *at = take(r, nbytes);
	uint8_t b[8] = { 0 };

	if (at)
		memcpy(b, at, nbytes);
	return hd_get64(b);
}

/* Printed characters alone; "" is one. */
static bool word(struct unread *r, char *out, size_t cap)
{
	size_t len = (size_t)number(r, 1);
	const uint8_t *at = take(r, len);

	if (!at || len >= cap)
		return false;
	for (size_t i = 0; i < len; i++)
		if (at[i] <= ' ' || at[i] > '~')
			return false;
	memcpy(out, at, len);
	out[len] = '\0';
	return true;
}

static void get_hash(struct unread *r, struct hd_hash *hash)
{
	const uint8_t *at = take(r, sizeof hash->byte);

	if (at)
		memcpy(hash->byte, at, sizeof hash->byte);
}

enum hd_err hd_fn_hello_get(const uint8_t *bytes, size_t len, struct hd_fn_hello *hello, struct hd_diag *diag)
{
	struct unread r = { bytes, len, false };
	struct hd_fn_hello h = { .attempt = 0 };

	get_hash(&r, &h.task);
	h.attempt = (uint32_t)number(&r, 4);
	const uint8_t *token = take(&r, sizeof h.token.byte);
	if (token)
		memcpy(h.token.byte, token, sizeof h.token.byte);
	bool good = word(&r, h.request, sizeof h.request);
	h.nhave = (uint32_t)number(&r, 2);
	if (!good || r.ended || h.nhave > HD_FN_HAVE)
		return broken(diag, "a HELLO that is none");
	for (uint32_t i = 0; i < h.nhave; i++)
		get_hash(&r, &h.have[i]);
	if (r.ended || r.len)
		return broken(diag, "a HELLO of another length");
	*hello = h;
	return HD_OK;
}

static bool get_tensor(struct unread *r, struct hd_fn_tensor *t)
{
	bool good = word(r, t->name, sizeof t->name) && t->name[0];
	uint64_t output = number(r, 1);

	t->is_output = output == 1;
	t->dtype = (uint8_t)number(r, 1);
	t->rank = (uint8_t)number(r, 1);
	if (!good || output > 1 || r->ended || t->rank > HD_MAX_DIMS ||
		!hd_dtype_bytes((enum hd_dtype)t->dtype))
		return false;
	for (uint8_t d = 0; d < t->rank; d++)
		t->dim[d] = (int64_t)number(r, 8);
	get_hash(r, &t->digest);
	return !r->ended && hd_fn_tensor_bytes(t) && hd_fn_row_bytes(t) <= HD_FN_DATA_BYTES;
}

enum hd_err hd_fn_work_get(const uint8_t *bytes, size_t len, struct hd_fn_work *w, struct hd_diag *diag)
{
	struct unread r = { bytes, len, false };

	bool good = word(&r, w->kernels, sizeof w->kernels);
	get_hash(&r, &w->proof);
	w->rows = number(&r, 8);
	w->version = number(&r, 8);
	w->seed = number(&r, 8);
	w->step = number(&r, 8);
	w->vn = (uint32_t)number(&r, 4);
	w->ntensors = (uint32_t)number(&r, 2);
	if (!good || r.ended || w->ntensors > HD_FN_TENSORS || !w->rows || w->rows > HD_MAX_EXTENT)
		return broken(diag, "a WORK that is none");
	for (uint32_t i = 0; i < w->ntensors; i++) {
		w->tensor[i] = (struct hd_fn_tensor){ .rank = 0 };
		if (!get_tensor(&r, &w->tensor[i]))
			return broken(diag, "a WORK whose tensors are none");
	}
	w->text_len = (size_t)number(&r, 4);
	w->text = (const char *)take(&r, w->text_len);
	if (r.ended || r.len || w->text_len > HD_FN_TEXT_BYTES)
		return broken(diag, "a WORK of another length");
	return HD_OK;
}

enum hd_err hd_fn_rows_get(const uint8_t *bytes, size_t len, struct hd_fn_rows *rows, struct hd_diag *diag)
{
	if (len <= 12)
		return broken(diag, "rows without bytes");
	*rows = (struct hd_fn_rows){ hd_get32(bytes), hd_get32(bytes + 4), hd_get32(bytes + 8), bytes + 12,
		len - 12 };
	return HD_OK;
}

enum hd_err hd_fn_commit_get(const uint8_t *bytes, size_t len, struct hd_fn_commit *commit,
	struct hd_diag *diag)
{
	if (len != 24)
		return broken(diag, "a COMMIT of another length");
	memcpy(commit->digest.byte, bytes, sizeof commit->digest.byte);
	commit->busy_ns = hd_get64(bytes + 16);
	return HD_OK;
}

enum hd_err hd_fn_reply_get(const uint8_t *bytes, size_t len, enum hd_fn_reply *reply, struct hd_diag *diag)
{
	static const enum hd_fn_reply all[] = {
#define X(id, no, name, about) HD_FN_##id,
		HD_FN_REPLIES(X)
#undef X
	};

	for (size_t i = 0; len == 1 && i < sizeof all / sizeof *all; i++)
		if (bytes[0] == (uint8_t)all[i]) {
			*reply = all[i];
			return HD_OK;
		}
	return broken(diag, "a REPLY of an unknown number");
}

/* ---- rows as they come ---- */

static void pass_over(struct hd_fn_intake *in)
{
	while (in->tensor < in->work->ntensors && !in->to[in->tensor])
		in->tensor++;
}

void hd_fn_intake_begin(struct hd_fn_intake *in, const struct hd_fn_work *work, void *const *to)
{
	*in = (struct hd_fn_intake){ .work = work, .to = to };
	pass_over(in);
}

enum hd_err hd_fn_intake_take(struct hd_fn_intake *in, const struct hd_fn_rows *rows, struct hd_diag *diag)
{
	if (hd_fn_intake_done(in) || rows->tensor != in->tensor || rows->first != in->row)
		return broken(diag, "rows that are not due");
	const struct hd_fn_tensor *t = &in->work->tensor[in->tensor];
	uint64_t row_bytes = hd_fn_row_bytes(t);
	if (!rows->n || rows->n > rows_of(t) - in->row || rows->len != rows->n * row_bytes)
		return broken(diag, "more or fewer rows than there are");
	memcpy((uint8_t *)in->to[in->tensor] + in->row * row_bytes, rows->bytes, rows->len);
	in->row += rows->n;
	if (in->row == rows_of(t)) {
		in->row = 0;
		in->tensor++;
		pass_over(in);
	}
	return HD_OK;
}

bool hd_fn_intake_done(const struct hd_fn_intake *in) { return in->tensor == in->work->ntensors; }
