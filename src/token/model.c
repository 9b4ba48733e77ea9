#include "token/model_int.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/grow.h"
#include "base/hash.h"
#include "token/byte_chars.h"
#include "token/unicode.h"

enum { CACHED = 1 << 17, CACHED_LEN = 256, CACHED_BYTES = 8 << 20, PATH = 160 };

static const struct hd_model_kind *const kinds[] = { &hd_model_bpe, &hd_model_wordpiece, &hd_model_unigram,
	&hd_model_wordlevel };

/* ---- reading ---- */

enum hd_err hd_model_vocab(struct hd_model *m, const struct hd_json *json, struct hd_arena *arena,
	struct hd_diag *diag)
{
	const struct hd_json *vocab;
	enum hd_err err = hd_json_get(json, "vocab", HD_JSON_OBJECT, &vocab, diag);
	size_t n = err ? 0 : hd_json_count(vocab);
	char path[PATH];

	if (err)
		return err;
	if (n > HD_TOKEN_VOCAB)
		return hd_fail(diag, HD_E_INPUT, "%s has %zu tokens, at most %d are read", hd_json_path(vocab,
			path,
			sizeof path), n, HD_TOKEN_VOCAB);
	if ((err = hd_vocab_init(&m->vocab, arena, (uint32_t)n, diag)))
		return err;
	for (size_t i = 0; i < n; i++) {
		const struct hd_json *item = hd_json_item(vocab, i);
		const char *key = hd_json_key(vocab, i);
		int64_t id;
		if ((err = hd_json_as_i64(item, 0, HD_TOKEN_VOCAB - 1, &id, diag)))
			return err;
		size_t len = strlen(key);
		const char *text = hd_arena_text(arena, key, len);
		if (!text)
			return hd_fail(diag, HD_E_NOMEM, "no memory for %zu tokens", n);
		hd_vocab_put(&m->vocab, (const uint8_t *)text, (uint32_t)len, (uint32_t)id);
	}
	m->count = m->vocab.n;
	return hd_vocab_end(&m->vocab, arena, diag);
}

enum hd_err hd_model_unk(struct hd_model *m, const struct hd_json *json, bool optional,
	struct hd_arena *arena,
	struct hd_diag *diag)
{
	size_t len;

	m->unk = HD_TOKEN_NONE;
	if (optional && hd_token_is_null(hd_json_find(json, "unk_token")))
		return HD_OK;
	enum hd_err err = hd_token_text(json, "unk_token", arena, &m->unk_text, &len, diag);
	if (!err)
		m->unk = hd_vocab_find(&m->vocab, m->unk_text, len);
	return err;
}

void hd_model_bytes(struct hd_model *m)
{
	char text[8];

	for (unsigned b = 0; b < 256; b++) {
		int len = snprintf(text, sizeof text, "<0x%02X>", b);
		m->byte_id[b] = hd_vocab_find(&m->vocab, text, (size_t)len);
	}
}

enum hd_err hd_model_unknown(struct hd_model_work *w, const uint8_t *at, size_t len, struct hd_diag *diag)
{
	if (w->model->unk != HD_TOKEN_NONE)
		return hd_token_ids_add(&w->ids, w->model->unk, diag);
	return hd_fail(diag, HD_E_INPUT, "\"%.*s\" is not in the vocabulary, nor is an unknown token%s%s",
		(int)(len < 60 ? len : 60), (const char *)at, w->model->unk_text ? ", not even " : "",
		w->model->unk_text ? w->model->unk_text : "");
}

/* Files of before 2021 have no "type": what is there tells. */
static const struct hd_model_kind *untyped(const struct hd_json *json)
{
	const struct hd_json *vocab = hd_json_find(json, "vocab");

	if (hd_json_find(json, "merges"))
		return &hd_model_bpe;
	if (vocab && hd_json_kind(vocab) == HD_JSON_ARRAY)
		return &hd_model_unigram;
	if (hd_json_find(json, "max_input_chars_per_word"))
		return &hd_model_wordpiece;
	return vocab && hd_json_find(json, "unk_token") ? &hd_model_wordlevel : NULL;
}

enum hd_err hd_model_read(struct hd_model *m, const struct hd_json *json, struct hd_arena *arena,
	struct hd_diag *diag)
{
	const struct hd_model_kind *kind = NULL;
	char path[PATH];
	size_t row;
	enum hd_err err;

	m->prefix = m->suffix = "";
	if (!hd_json_find(json, "type"))
		kind = untyped(json);
	if (kind && (err = hd_json_only(json, kind->base.keys, diag)))
		return err;
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0] && !kind; i++) {
		const char *type;
		if ((err = hd_json_get_text(json, "type", &type, diag)))
			return err;
		if (strcmp(kinds[i]->base.name, type))
			continue;
		kind = kinds[i];
		if ((err = hd_token_kind(json, &kind->base, sizeof *kind, 1, &row, diag)))
			return err;
	}
	if (!kind)
		return hd_fail(diag, HD_E_INPUT, "%s: this type is not supported (known: BPE, WordPiece, "
			"Unigram, "
			"WordLevel)", hd_json_path(hd_json_find(json, "type"), path, sizeof path));
	m->kind = kind;
	return kind->read(m, json, arena, diag);
}

/* ---- words, with their cache ---- */

enum hd_err hd_token_ids_add(struct hd_token_ids *ids, uint32_t id, struct hd_diag *diag)
{
	if (ids->n == ids->cap) {
		enum hd_err err = hd_grow(&ids->at, &ids->cap, (uint64_t)ids->n + 1, sizeof *ids->at,
			"tokens",
			diag);
		if (err)
			return err;
	}
	ids->at[ids->n++] = id;
	return HD_OK;
}

static enum hd_err add_all(struct hd_token_ids *ids, const uint32_t *at, uint32_t n, struct hd_diag *diag)
{
	enum hd_err err = hd_grow(&ids->at, &ids->cap, (uint64_t)ids->n + n, sizeof *ids->at, "tokens", diag);

	if (!err && n) {
		memcpy(ids->at + ids->n, at, n * sizeof *at);
		ids->n += n;
	}
	return err;
}

enum hd_err hd_model_work_make(struct hd_model_work *w, const struct hd_model *model, struct hd_diag *diag)
{
	*w = (struct hd_model_work){ .model = model, .cached = hd_alloc(CACHED * sizeof *w->cached) };
	if (!w->cached)
		return hd_fail(diag, HD_E_NOMEM, "no memory for a cache of words");
	memset(w->cached, 0, CACHED * sizeof *w->cached);
	return HD_OK;
}

void hd_model_work_finish(struct hd_model_work *w)
{
	hd_free(w->text.at);
	hd_free(w->scratch.at);
	hd_free(w->symbol);
	hd_free(w->merge);
	hd_free(w->best);
	hd_free(w->ids.at);
	hd_free(w->cached);
	hd_free(w->cached_text.at);
	hd_free(w->cached_ids.at);
}

static struct hd_cached *find_cached(struct hd_model_work *w, const uint8_t *at, size_t len, uint64_t hash)
{
	uint32_t i = (uint32_t)hash & (CACHED - 1);
	struct hd_cached *c = &w->cached[i];

	for (; c->len; c = &w->cached[i = (i + 1) & (CACHED - 1)])
		if (c->hash == hash && c->len == len && !memcmp(w->cached_text.at + c->at, at, len))
			break;
	return c;
}

static enum hd_err keep(struct hd_model_work *w, const uint8_t *at, size_t len, uint64_t hash,
	struct hd_diag *diag)
{
	enum hd_err err;

	if (w->ncached >= CACHED / 2 || w->cached_text.len > CACHED_BYTES || w->cached_ids.n > CACHED_BYTES) {
		memset(w->cached, 0, CACHED * sizeof *w->cached);
		w->ncached = w->cached_ids.n = 0;
		w->cached_text.len = 0;
	}
	struct hd_cached *c = find_cached(w, at, len, hash);
	const struct hd_cached is = { hash, (uint32_t)w->cached_text.len, (uint32_t)len, w->cached_ids.n,
		w->ids.n };
	if ((err = hd_bytes_add(&w->cached_text, at, len, diag)) || (err = add_all(&w->cached_ids, w->ids.at,
		w->ids.n, diag)))
		return err;
	*c = is;
	w->ncached++;
	return HD_OK;
}

static enum hd_err in_letters(struct hd_model_work *w, const uint8_t *at, size_t len, struct hd_diag *diag)
{
	w->text.len = 0;
	enum hd_err err = hd_bytes_room(&w->text, 2 * len, diag);
	for (size_t i = 0; i < len && !err; i++)
		w->text.len += hd_char_put(hd_byte_char(at[i]), w->text.at + w->text.len);
	return err;
}

enum hd_err hd_model_encode(struct hd_model_work *w, const uint8_t *at, size_t len, struct hd_token_ids *ids,
	struct hd_diag *diag)
{
	const bool cached = len < CACHED_LEN;
	const uint64_t hash = cached ? hd_hash64(at, len) : 0;
	enum hd_err err;

	if (cached) {
		const struct hd_cached *c = find_cached(w, at, len, hash);
		if (c->len)
			return add_all(ids, w->cached_ids.at + c->ids, c->n, diag);
	}
	w->ids.n = 0;
	if (w->model->maps_bytes) {
		if ((err = in_letters(w, at, len, diag)))
			return err;
		err = w->model->kind->encode(w, w->text.at, w->text.len, diag);
	} else {
		err = w->model->kind->encode(w, at, len, diag);
	}
	if (err || (cached && (err = keep(w, at, len, hash, diag))))
		return err;
	return add_all(ids, w->ids.at, w->ids.n, diag);
}
