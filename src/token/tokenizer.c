#include "token/tokenizer.h"

#include <string.h>

#include "base/alloc.h"
#include "base/grow.h"
#include "base/utf8.h"
#include "token/added.h"
#include "token/decode.h"
#include "token/model.h"
#include "token/normalize.h"
#include "token/post.h"
#include "token/row_int.h"
#include "token/pretokenize.h"
#include "token/read.h"

struct hd_tokenizer {
	struct hd_arena arena;
	struct hd_unicode unicode;
	struct hd_norms norms;
	struct hd_pres pres;
	struct hd_model model;
	struct hd_added added;
	struct hd_token_post post;
	struct hd_decoders decoders;
	uint32_t size;
	bool truncates, pads;
	struct hd_token_fill fill;        /* row.c */
};

struct hd_token_work {
	const struct hd_tokenizer *tokenizer;
	struct hd_finder finder;
	struct hd_norm_work norm;
	struct hd_pre_work pre;
	struct hd_model_work model;
	struct hd_decode_work decode;
	struct hd_pieces pieces;          /* of the text as it was given */
};

/* ---- the file ---- */

static enum hd_err check_version(const struct hd_json *json, struct hd_diag *diag)
{
	const struct hd_json *version = hd_json_find(json, "version");
	char path[160];
	const char *text;
	enum hd_err err;

	if (!version)
		return HD_OK;
	if ((err = hd_json_as_text(version, &text, diag)))
		return err;
	return !strcmp(text, "1.0") ? HD_OK : hd_fail(diag, HD_E_INPUT, "%s is \"%.20s\"; known is \"1.0\"",
		hd_json_path(version, path, sizeof path), text);
}

static enum hd_err read_parts(struct hd_tokenizer *t, const struct hd_json *json, struct hd_norm_work *work,
	struct hd_diag *diag)
{
	static const char *const keys[] = { "version", "truncation", "padding", "added_tokens", "normalizer",
		"pre_tokenizer", "post_processor", "decoder", "model", NULL };
	const struct hd_json *model;
	enum hd_err err;

	if ((err = hd_json_as(json, HD_JSON_OBJECT, diag)) || (err = hd_json_only(json, keys, diag)) || (err =
		check_version(json, diag)) || (err = hd_json_get(json, "model", HD_JSON_OBJECT, &model,
			diag)) ||
		(err = hd_unicode_make(&t->unicode, &t->arena, diag)) || (err = hd_norms_read(&t->norms,
		hd_json_find(json, "normalizer"), &t->arena, diag)) || (err = hd_pres_read(&t->pres,
		hd_json_find(json, "pre_tokenizer"), &t->arena, diag)) || (err = hd_model_read(&t->model,
			model,
		&t->arena, diag)) || (err = hd_added_read(&t->added, hd_json_find(json, "added_tokens"),
		&t->model, &t->norms, work, &t->arena, diag)) || (err = hd_token_post_read(&t->post,
		hd_json_find(json, "post_processor"), &t->arena, diag)))
		return err;
	t->truncates = !hd_token_is_null(hd_json_find(json, "truncation"));
	t->pads = !hd_token_is_null(hd_json_find(json, "padding"));
	if ((err = hd_token_fill_read(&t->fill, json, diag)))
		return err;
	t->model.maps_bytes = t->pres.maps_bytes;
	return hd_decoders_read(&t->decoders, hd_json_find(json, "decoder"), &t->arena, diag);
}

static uint32_t largest_slot(const struct hd_token_slots *slots, uint32_t size)
{
	for (uint32_t i = 0; i < slots->n; i++)
		if (slots->at[i].id != HD_TOKEN_NONE && slots->at[i].id >= size)
			size = slots->at[i].id + 1;
	return size;
}

/* The largest number that a text or a row of texts can have, and one more. */
static uint32_t largest(const struct hd_tokenizer *t)
{
	uint32_t size = t->model.vocab.size;

	for (uint32_t i = 0; i < t->added.n; i++)
		size = t->added.at[i].id >= size ? t->added.at[i].id + 1 : size;
	for (uint32_t i = 0; i < t->post.ids.n; i++)
		if (t->post.ids.at[i] != HD_TOKEN_NONE && t->post.ids.at[i] >= size)
			size = t->post.ids.at[i] + 1;
	size = largest_slot(&t->post.pair, largest_slot(&t->post.single, size));
	return t->fill.pad != HD_TOKEN_NONE && t->fill.pad >= size ? t->fill.pad + 1 : size;
}

enum hd_err hd_tokenizer_create(struct hd_tokenizer **tokenizer, const char *name, const char *json,
	size_t len,
	struct hd_diag *diag)
{
	struct hd_arena arena;
	const struct hd_json *root;
	struct hd_finder finder = { 0 };
	struct hd_tokenizer *t = hd_alloc(sizeof *t);
	enum hd_err err;

	if (!t)
		return hd_fail(diag, HD_E_NOMEM, "no memory for a tokenizer");
	memset(t, 0, sizeof *t);
	hd_arena_init(&t->arena, 0);
	hd_arena_init(&arena, 0);
	struct hd_norm_work work = { .unicode = &t->unicode, .finder = &finder };
	if (!(err = hd_json_parse(&arena, name, json, len, &root, diag)) && !(err = hd_finder_make(&finder,
		diag)))
		err = read_parts(t, root, &work, diag);
	hd_norm_work_finish(&work);
	hd_finder_finish(&finder);
	hd_arena_finish(&arena);
	if (err) {
		hd_tokenizer_destroy(t);
		return err;
	}
	t->size = largest(t);
	*tokenizer = t;
	return HD_OK;
}

void hd_tokenizer_destroy(struct hd_tokenizer *t)
{
	if (!t)
		return;
	hd_norms_finish(&t->norms);
	hd_pres_finish(&t->pres);
	hd_decoders_finish(&t->decoders);
	hd_token_post_finish(&t->post);
	hd_arena_finish(&t->arena);
	hd_free(t);
}

uint32_t hd_tokenizer_size(const struct hd_tokenizer *t) { return t->size; }

uint32_t hd_tokenizer_find(const struct hd_tokenizer *t, const char *token)
{
	const struct hd_added_token *added = hd_added_find(&t->added, token);

	return added ? added->id : hd_vocab_find(&t->model.vocab, token, strlen(token));
}

bool hd_tokenizer_is_special(const struct hd_tokenizer *t, uint32_t id)
{
	const struct hd_added_token *added = hd_added_of(&t->added, id);

	return added && added->special;
}

const char *hd_tokenizer_ignores(const struct hd_tokenizer *t)
{
	return t->truncates && t->pads ? "truncation and padding" : t->truncates ? "truncation" : t->pads ?
		"padding" : NULL;
}

/* ---- a thread's memory ---- */

enum hd_err hd_token_work_create(struct hd_token_work **work, const struct hd_tokenizer *tokenizer,
	struct hd_diag *diag)
{
	struct hd_token_work *w = hd_alloc(sizeof *w);
	enum hd_err err;

	if (!w)
		return hd_fail(diag, HD_E_NOMEM, "no memory for tokens");
	memset(w, 0, sizeof *w);
	w->tokenizer = tokenizer;
	w->norm.unicode = w->pre.unicode = &tokenizer->unicode;
	w->norm.finder = w->pre.finder = w->decode.finder = &w->finder;
	if ((err = hd_finder_make(&w->finder, diag)) || (err = hd_model_work_make(&w->model,
		&tokenizer->model, diag))) {
		hd_token_work_destroy(w);
		return err;
	}
	*work = w;
	return HD_OK;
}

void hd_token_work_destroy(struct hd_token_work *w)
{
	if (!w)
		return;
	hd_norm_work_finish(&w->norm);
	hd_pre_work_finish(&w->pre);
	hd_model_work_finish(&w->model);
	hd_decode_work_finish(&w->decode);
	hd_free(w->pieces.at);
	hd_finder_finish(&w->finder);
	hd_free(w);
}

/* ---- encoding ---- */

static enum hd_err check_text(const char *name, const void *text, size_t len, struct hd_diag *diag)
{
	const uint8_t *at = text;

	if (len > HD_TOKEN_TEXT)
		return hd_fail(diag, HD_E_INPUT, "%s: a text of %zu bytes, at most %d are taken at once: "
			"split it",
			name, len, HD_TOKEN_TEXT);
	for (size_t i = 0, n; i < len; i += n) {
		for (; i + 8 <= len; i += 8) {                     /* ASCII, eight at a time */
			uint64_t word;
			memcpy(&word, at + i, 8);
			if (word & 0x8080808080808080u)
				break;
		}
		if (i == len)
			break;
		if (!(n = hd_utf8_len((const char *)at + i, len - i)))
			return hd_fail(diag, HD_E_INPUT, "%s: byte %zu (0x%02x) is no UTF-8: convert the "
				"text (iconv), "
				"or take what is broken out", name, i, at[i]);
	}
	return HD_OK;
}

/* One stretch of the given text: normalized, with the tokens that are looked for in what it became. */
static enum hd_err take_stretch(struct hd_token_work *w, const uint8_t *text, const struct hd_token_piece *p,
	struct hd_diag *diag)
{
	const struct hd_tokenizer *t = w->tokenizer;
	struct hd_text_view view = { text + p->at, p->len, p->nzero }, out;
	const size_t at = w->pre.text.len;
	enum hd_err err;

	if ((err = hd_norms_apply(&t->norms, &w->norm, view, &out, diag)) || (err = hd_bytes_add(&w->pre.text,
		out.at, out.len, diag)))
		return err;
	const struct hd_token_piece whole = { at, (uint32_t)out.len, (uint32_t)out.nzero, HD_TOKEN_NONE };
	return hd_added_split(&t->added, true, &t->unicode, w->pre.text.at + at, &whole, &w->pre.pieces,
		diag);
}

static enum hd_err cut(struct hd_token_work *w, const uint8_t *text, size_t len, struct hd_diag *diag)
{
	const struct hd_tokenizer *t = w->tokenizer;
	const struct hd_token_piece whole = { 0, (uint32_t)len, len ? (uint32_t)hd_char_len(text[0]) : 0,
		HD_TOKEN_NONE };
	enum hd_err err;

	w->pieces.n = w->pre.pieces.n = 0;
	w->pre.text.len = 0;
	err = hd_added_split(&t->added, false, &t->unicode, text, &whole, &w->pieces, diag);
	for (uint32_t i = 0; i < w->pieces.n && !err; i++) {
		const struct hd_token_piece *p = &w->pieces.at[i];
		err = p->id != HD_TOKEN_NONE ? hd_pieces_add(&w->pre.pieces, *p, diag) : take_stretch(w, text,
			p,
			diag);
	}
	return err ? err : hd_pres_apply(&t->pres, &w->pre, diag);
}

static enum hd_err put_words(struct hd_token_work *w, struct hd_token_ids *ids, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; i < w->pre.pieces.n && !err; i++) {
		const struct hd_token_piece *p = &w->pre.pieces.at[i];
		err = p->id != HD_TOKEN_NONE ? hd_token_ids_add(ids, p->id, diag) : hd_model_encode(&w->model,
			w->pre.text.at + p->at, p->len, ids, diag);
	}
	return err;
}

enum hd_err hd_tokenizer_encode(struct hd_token_work *w, const char *name, const void *text, size_t len,
	bool special, struct hd_token_ids *ids, struct hd_diag *diag)
{
	const struct hd_token_ids *post = &w->tokenizer->post.ids;
	struct hd_diag why = { "" };
	enum hd_err err;

	if ((err = check_text(name, text, len, diag)))
		return err;
	err = cut(w, text, len, &why);
	for (uint32_t i = 0; i < post->n && !err; i++) {
		if (post->at[i] == HD_TOKEN_NONE)
			err = put_words(w, ids, &why);
		else if (special)
			err = hd_token_ids_add(ids, post->at[i], &why);
	}
	return err ? hd_fail(diag, err, "%s: %s", name, why.text) : HD_OK;
}

static enum hd_err encode_texts(struct hd_token_work *w, const char *name, const char *const text[2],
	const size_t len[2], uint32_t ntexts, struct hd_token_ids own[2], struct hd_diag *diag)
{
	struct hd_diag why = { "" };
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; i < ntexts; i++) {
		if ((err = check_text(name, text[i], len[i], diag)))
			return err;
		if ((err = cut(w, (const uint8_t *)text[i], len[i], &why)) || (err = put_words(w, &own[i],
			&why)))
			return hd_fail(diag, err, "%s: %s", name, why.text);
	}
	return HD_OK;
}

enum hd_err hd_tokenizer_row(struct hd_token_work *w, const char *name, const char *const text[2],
	const size_t len[2], uint32_t ntexts, uint32_t most, uint32_t pad, struct hd_token_row *row,
	struct hd_diag *diag)
{
	const struct hd_tokenizer *t = w->tokenizer;
	const struct hd_token_slots *slots = ntexts > 1 ? &t->post.pair : &t->post.single;
	struct hd_token_ids own[2] = { { 0 }, { 0 } };
	enum hd_err err = encode_texts(w, name, text, len, ntexts, own, diag);

	if (!err)
		err = hd_token_fill_row(&t->fill, slots, own, name, most, pad, row, diag);
	hd_free(own[0].at);
	hd_free(own[1].at);
	return err;
}

uint32_t hd_tokenizer_pad(const struct hd_tokenizer *t)
{
	static const char *const pads[] = { "[PAD]", "<pad>", "<|pad|>" };
	uint32_t id = t->fill.pad;

	for (size_t i = 0; i < sizeof pads / sizeof *pads && id == HD_TOKEN_NONE; i++)
		id = hd_tokenizer_find(t, pads[i]);
	return id;
}

/* ---- decoding ---- */

static enum hd_err add_token(struct hd_token_work *w, uint32_t id, bool skip, struct hd_diag *diag)
{
	const struct hd_tokenizer *t = w->tokenizer;
	const struct hd_added_token *added = hd_added_of(&t->added, id);

	if (added && added->special && skip)
		return HD_OK;
	if (added)
		return hd_decode_part(&w->decode, added->normalized ? added->looked_for : added->text,
			added->normalized ? added->len : strlen(added->text), diag);
	const struct hd_word *word = id < t->model.vocab.size ? t->model.vocab.text[id] : NULL;
	return word ? hd_decode_part(&w->decode, word->at, word->len, diag) : HD_OK;
}

enum hd_err hd_tokenizer_decode(struct hd_token_work *w, const uint32_t *ids, uint32_t n, bool skip,
	struct hd_token_text *text, struct hd_diag *diag)
{
	struct hd_decode_work *d = &w->decode;
	enum hd_err err = HD_OK;

	d->text.len = 0;
	d->parts.n = 0;
	for (uint32_t i = 0; i < n && !err; i++)
		err = add_token(w, ids[i], skip, diag);
	if (!err)
		err = hd_decoders_apply(&w->tokenizer->decoders, d, diag);
	for (uint32_t i = 0; i < d->parts.n && !err; i++) {
		const struct hd_token_part part = d->parts.at[i];
		const bool blank = i && !w->tokenizer->decoders.any;
		if ((err = hd_grow(&text->at, &text->cap, text->len + part.len + 1, 1, "bytes of text",
			diag)))
			break;
		if (blank)
			text->at[text->len++] = ' ';
		if (part.len)
			memcpy(text->at + text->len, d->text.at + part.at, part.len);
		text->len += part.len;
	}
	return err;
}
