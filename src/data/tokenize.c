#include "data/tokenize.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "sys/signal.h"
#include "sys/thread.h"
#include "data/documents.h"
#include "data/token_write.h"

enum { NAME = 400 };

/* Where a document's tokens are. */
struct tokens_of { uint32_t thread, first, n; };

struct token_batch {
	const struct hd_tokenize *how;
	const struct hd_documents *documents;
	struct tokens_of *tokens; uint32_t cap;
	_Atomic uint32_t next;            /* document */
};

struct encoder {
	struct token_batch *batch;
	struct hd_thread thread;
	struct hd_token_work *work;
	struct hd_token_ids ids;
	struct hd_arena arena;
	uint32_t index;
	enum hd_err err; uint32_t failed; struct hd_diag diag;      /* the document that failed */
};

static void name_of(const struct token_batch *b, const struct hd_document *d, char name[NAME])
{
	const char *text = b->how->texts[d->text];

	if (d->line)
		snprintf(name, NAME, "%.300s %s %llu", text, d->is_text ? "row" : "line",
			(unsigned long long)d->line);
	else
		snprintf(name, NAME, "%.300s", text);
}

/* The text of a document: itself, or the member of a line of JSON. */
static enum hd_err text_of(struct encoder *e, const char *name, const struct hd_document *d,
	const char **text,
	size_t *len, struct hd_diag *diag)
{
	const struct hd_json *json;
	enum hd_err err;

	*text = (const char *)e->batch->documents->bytes + d->at;
	*len = d->len;
	if (!e->batch->how->field || d->is_text)
		return HD_OK;
	hd_arena_reset(&e->arena);
	if ((err = hd_json_parse(&e->arena, name, *text, *len, &json, diag)) || (err = hd_json_get_text(json,
		e->batch->how->field, text, diag)))
		return err;
	*len = strlen(*text);
	return HD_OK;
}

static enum hd_err encode_one(struct encoder *e, uint32_t i)
{
	const struct hd_tokenize *how = e->batch->how;
	const struct hd_document *d = &e->batch->documents->at[i];
	const uint32_t first = e->ids.n;
	char name[NAME];
	const char *text;
	size_t len;
	enum hd_err err;

	name_of(e->batch, d, name);
	if ((err = text_of(e, name, d, &text, &len, &e->diag)) || (how->bos != HD_TOKEN_NONE && (err =
		hd_token_ids_add(&e->ids, how->bos, &e->diag))) || (err = hd_tokenizer_encode(e->work, name,
			text,
		len, how->special, &e->ids, &e->diag)) || (how->eos != HD_TOKEN_NONE && (err =
		hd_token_ids_add(&e->ids, how->eos, &e->diag))))
		return err;
	e->batch->tokens[i] = (struct tokens_of){ e->index, first, e->ids.n - first };
	return HD_OK;
}

/* Documents in turn; one that fails ends it, since all before are taken. */
static void run(void *user)
{
	struct encoder *e = user;

	for (uint32_t i; !e->err && !hd_signal_stop() && (i = atomic_fetch_add(&e->batch->next,
		1)) < e->batch->documents->n; ) {
		e->err = encode_one(e, i);
		e->failed = i;
	}
}

static enum hd_err first_error(const struct encoder *e, uint32_t n, struct hd_diag *diag)
{
	const struct encoder *first = NULL;

	for (uint32_t i = 0; i < n; i++)
		if (e[i].err && (!first || e[i].failed < first->failed))
			first = &e[i];
	return first ? hd_fail(diag, first->err, "%s", first->diag.text) : HD_OK;
}

static enum hd_err encode_batch(struct token_batch *b, struct encoder *e, uint32_t n, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	if (b->documents->n > b->cap) {
		hd_free(b->tokens);
		b->cap = HD_DOCUMENTS_CAP;
		b->tokens = hd_alloc(b->cap * sizeof *b->tokens);
		if (!b->tokens) {
			b->cap = 0;
			return hd_fail(diag, HD_E_NOMEM, "no memory for a batch of documents");
		}
	}
	atomic_store(&b->next, 0);
	for (uint32_t i = 0; i < n; i++)
		e[i].ids.n = 0;
	for (uint32_t i = 1; i < n && i < b->documents->n && !err; i++)
		err = hd_thread_start(&e[i].thread, "tokenize", -1, run, &e[i], diag);
	if (!err)
		run(&e[0]);
	for (uint32_t i = 1; i < n; i++)
		hd_thread_join(&e[i].thread);
	return err ? err : first_error(e, n, diag);
}

static enum hd_err write_batch(const struct token_batch *b, const struct encoder *e, struct hd_token_out *out,
	struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; i < b->documents->n && !err; i++) {
		const struct tokens_of *t = &b->tokens[i];
		err = hd_token_out_add(out, e[t->thread].ids.at + t->first, t->n, diag);
	}
	return err;
}

/* A batch that was stopped is not whole. */
static enum hd_err stopped(const struct hd_tokenize *how, struct hd_diag *diag)
{
	const enum hd_err err = hd_stop_err(hd_signal_stop());

	return err ? hd_fail(diag, err, "stopped: %s is not written, nor is anything left of it", how->out) :
		HD_OK;
}

static enum hd_err all_batches(struct token_batch *b, struct hd_documents *documents, struct encoder *e,
	uint32_t n,
	struct hd_token_out *out, uint64_t *bytes, struct hd_diag *diag)
{
	enum hd_err err;

	while (!(err = hd_documents_next(documents, diag)) && documents->n) {
		if ((err = encode_batch(b, e, n, diag)) || (err = stopped(b->how, diag)) ||
			(err = write_batch(b, e,
			out, diag)))
			break;
		*bytes += documents->len;
		if (b->how->progress)
			b->how->progress(b->how->user, *bytes, out->ndocuments);
	}
	return err;
}

static enum hd_err make_encoders(struct encoder *e, uint32_t n, struct token_batch *b, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; i < n && !err; i++) {
		e[i].batch = b;
		e[i].index = i;
		hd_arena_init(&e[i].arena, 0);
		err = hd_token_work_create(&e[i].work, b->how->tokenizer, diag);
	}
	return err;
}

enum hd_err hd_tokenize(const struct hd_tokenize *how, struct hd_fs *fs, struct hd_tokenize_report *report,
	struct hd_diag *diag)
{
	const uint32_t n = how->nthreads, width = hd_tokenizer_size(how->tokenizer) <= 65536 ? 2 : 4;
	struct hd_documents documents;
	struct token_batch batch = { .how = how, .documents = &documents };
	struct encoder *encoders = hd_alloc(n * sizeof *encoders);
	struct hd_token_out *out = hd_alloc(sizeof *out);
	uint64_t bytes = 0;
	enum hd_err err = HD_OK;

	assert(n >= 1 && n <= HD_TOKENIZE_THREADS);
	if (!encoders || !out)
		err = hd_fail(diag, HD_E_NOMEM, "no memory for %u threads", n);
	hd_documents_init(&documents, fs, how->texts, how->ntexts, how->lines, how->field,
		(size_t)HD_TOKENIZE_BATCH * n, HD_TOKEN_TEXT);
	if (encoders)
		memset(encoders, 0, n * sizeof *encoders);
	if (out)
		memset(out, 0, sizeof *out);
	if (!err && !(err = make_encoders(encoders, n, &batch, diag)) && !(err = hd_token_out_begin(out, fs,
		how->out, how->boundaries, width, diag)))
		err = all_batches(&batch, &documents, encoders, n, out, &bytes, diag);
	if (out) {
		enum hd_err ended = hd_token_out_end(out, !err, err ? NULL : diag);
		err = err ? err : ended;
		*report = (struct hd_tokenize_report){ bytes, out->ndocuments, out->ntokens, width };
	}
	for (uint32_t i = 0; i < n && encoders; i++) {
		hd_token_work_destroy(encoders[i].work);
		hd_free(encoders[i].ids.at);
		hd_arena_finish(&encoders[i].arena);
	}
	hd_documents_finish(&documents);
	hd_free(batch.tokens);
	hd_free(encoders);
	hd_free(out);
	return err;
}
