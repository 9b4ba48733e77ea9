/* Unigram after Kudo (2018): of all ways to cut a word into tokens the one of the greatest sum of scores,
 * found from left to right; of equal sums the one found first, which begins further left. A character that is
 * no token by itself may be unknown, at the lowest score less 10. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "token/model_int.h"
#include "token/unicode.h"

enum { PATH = 160, PENALTY = 10 };
#define START UINT32_MAX

/* The package reads the digits as an integer and divides by a power of ten, so that its scores are not the
 * nearest to what is written; sums of equal scores in another order would tell. `x` was written with as few
 * digits as name it. */
static double as_read_there(double x)
{
	char text[40], power[16];
	unsigned long long digits = 0;
	int exponent = 0, places = 0;

	for (int p = 0; p < 17; p++) {
		snprintf(text, sizeof text, "%.*e", p, x);
		if (strtod(text, NULL) == x)
			break;
	}
	const char *at = text + (text[0] == '-');
	for (; *at && *at != 'e'; at++)
		if (*at != '.') {
			digits = digits * 10 + (unsigned)(*at - '0');
			places++;
		}
	exponent = (int)strtol(at + 1, NULL, 10) - (places - 1);
	snprintf(power, sizeof power, "1e%d", exponent < 0 ? -exponent : exponent);
	double scale = strtod(power, NULL), value = exponent < 0 ? (double)digits / scale : (double)digits *
		scale;
	return isfinite(scale) ? (x < 0 ? -value : value) : x;
}

static enum hd_err read_entry(const struct hd_json *item, const char **text, double *score,
	struct hd_diag *diag)
{
	char path[PATH];
	enum hd_err err;

	if (hd_json_kind(item) != HD_JSON_ARRAY || hd_json_count(item) != 2)
		return hd_fail(diag, HD_E_INPUT, "%s is not a pair of a token and its score",
			hd_json_path(item, path,
			sizeof path));
	if ((err = hd_json_as_text(hd_json_item(item, 0), text, diag)) || (err =
		hd_json_as_f64(hd_json_item(item, 1), score, diag)))
		return err;
	if (!isfinite(*score))
		return hd_fail(diag, HD_E_INPUT, "%s: its score is not a finite number", hd_json_path(item,
			path,
			sizeof path));
	if (hd_json_kind(hd_json_item(item, 1)) == HD_JSON_REAL)
		*score = as_read_there(*score);
	return HD_OK;
}

static void put_in_trie(struct hd_model *m, uint32_t *nnodes, const uint8_t *at, size_t len, uint32_t id)
{
	uint32_t node = 0;

	for (size_t i = 0; i < len; i++) {
		uint64_t key = (uint64_t)node << 8 | at[i];
		const struct hd_pair *pair = hd_pairs_find(&m->pairs, key);
		uint32_t to = pair ? pair->to : (*nnodes)++, token = pair ? pair->rank : HD_TOKEN_NONE;
		hd_pairs_put(&m->pairs, key, i + 1 == len ? id : token, to);
		node = to;
	}
}

static enum hd_err read_vocab(struct hd_model *m, const struct hd_json *vocab, struct hd_arena *arena,
	struct hd_diag *diag)
{
	const uint32_t n = (uint32_t)hd_json_count(vocab);
	double *score = hd_arena_take(arena, n + 1, sizeof *score), least = DBL_MAX;
	uint64_t all = 0;
	uint32_t nnodes = 1;
	const char *text;
	enum hd_err err = score ? hd_vocab_init(&m->vocab, arena, n, diag) : hd_fail(diag, HD_E_NOMEM,
		"no memory for %u tokens", n);

	for (uint32_t i = 0; i < n && !err; i++) {
		if ((err = read_entry(hd_json_item(vocab, i), &text, &score[i], diag)))
			return err;
		size_t len = strlen(text);
		const char *copy = hd_arena_text(arena, text, len);
		if (!copy)
			return hd_fail(diag, HD_E_NOMEM, "no memory for %u tokens", n);
		hd_vocab_put(&m->vocab, (const uint8_t *)copy, (uint32_t)len, i);
		least = score[i] < least ? score[i] : least;
		all += len;
	}
	if (err || (err = hd_vocab_end(&m->vocab, arena, diag)) || (err = all > UINT32_MAX / 4 ? hd_fail(diag,
		HD_E_INPUT, "tokens of %llu bytes in all are too many", (unsigned long long)all) :
		hd_pairs_init(&m->pairs, arena, (uint32_t)all, diag)))
		return err;
	for (uint32_t i = 0; i <= m->vocab.mask; i++) {
		const struct hd_word *word = &m->vocab.slot[i];
		if (word->at)
			put_in_trie(m, &nnodes, word->at, word->len, word->id);
	}
	m->score = score;
	m->unk_score = least - PENALTY;
	m->count = n;
	return HD_OK;
}

static enum hd_err read_unigram(struct hd_model *m, const struct hd_json *json, struct hd_arena *arena,
	struct hd_diag *diag)
{
	const struct hd_json *vocab, *unk = hd_json_find(json, "unk_id");
	int64_t id = 0;
	enum hd_err err;

	if ((err = hd_json_get(json, "vocab", HD_JSON_ARRAY, &vocab, diag)) || (err = hd_token_bool(json,
		"byte_fallback", &m->fallback, diag)))
		return err;
	if (hd_json_count(vocab) > HD_TOKEN_VOCAB)
		return hd_fail(diag, HD_E_INPUT, "%zu tokens, at most %d are read", hd_json_count(vocab),
			HD_TOKEN_VOCAB);
	if (!hd_token_is_null(unk) && (err = hd_json_as_i64(unk, 0, (int64_t)hd_json_count(vocab) - 1, &id,
		diag)))
		return err;
	m->unk = hd_token_is_null(unk) ? HD_TOKEN_NONE : (uint32_t)id;
	if ((err = read_vocab(m, vocab, arena, diag)))
		return err;
	hd_model_bytes(m);
	return HD_OK;
}

/* ---- the best way ---- */

static void offer(struct hd_best *best, double score, uint32_t from, uint32_t id)
{
	if (best->from == START || score > best->score)
		*best = (struct hd_best){ score, from, id };
}

static enum hd_err find_best(struct hd_model_work *w, const uint8_t *at, size_t len, struct hd_diag *diag)
{
	const struct hd_model *m = w->model;
	enum hd_err err = hd_grow(&w->best, &w->best_cap, (uint64_t)len + 1, sizeof *w->best, "ways", diag);

	if (err)
		return err;
	for (size_t i = 0; i <= len; i++)
		w->best[i] = (struct hd_best){ 0, START, 0 };
	for (size_t i = 0, n; i < len; i += n) {
		const double here = w->best[i].score;
		bool single = false;
		uint32_t node = 0;
		n = hd_char_len(at[i]);
		for (size_t k = i; k < len; k++) {
			const struct hd_pair *pair = hd_pairs_find(&m->pairs, (uint64_t)node << 8 | at[k]);
			if (!pair)
				break;
			node = pair->to;
			if (pair->rank == HD_TOKEN_NONE)
				continue;
			offer(&w->best[k + 1], m->score[pair->rank] + here, (uint32_t)i, pair->rank);
			single |= k + 1 - i == n;
		}
		if (!single && m->unk == HD_TOKEN_NONE)
			return hd_model_unknown(w, at + i, n, diag);
		if (!single)
			offer(&w->best[i + n], m->unk_score + here, (uint32_t)i, m->unk);
	}
	return HD_OK;
}

/* A stretch of what is unknown: as a whole, as bytes, or as one unknown token. Ids go back to front. */
static enum hd_err put_part(struct hd_model_work *w, const uint8_t *at, size_t len, struct hd_diag *diag)
{
	const struct hd_model *m = w->model;
	uint32_t id = hd_vocab_find(&m->vocab, at, len);
	bool bytes = m->fallback && id == HD_TOKEN_NONE;
	enum hd_err err = HD_OK;

	for (size_t i = 0; i < len && bytes; i++)
		bytes = m->byte_id[at[i]] != HD_TOKEN_NONE;
	if (!bytes)
		return id != HD_TOKEN_NONE ? hd_token_ids_add(&w->ids, id, diag) : hd_model_unknown(w, at,
			len, diag);
	for (size_t i = len; i > 0 && !err; i--)
		err = hd_token_ids_add(&w->ids, m->byte_id[at[i - 1]], diag);
	return err;
}

static enum hd_err encode(struct hd_model_work *w, const uint8_t *at, size_t len, struct hd_diag *diag)
{
	enum hd_err err = find_best(w, at, len, diag);

	for (size_t end = len; end > 0 && !err; ) {
		size_t from = w->best[end].from;
		if (w->best[end].id == w->model->unk)
			while (from > 0 && w->best[from].id == w->model->unk && w->best[from].from != START)
				from = w->best[from].from;
		err = put_part(w, at + from, end - from, diag);
		end = from;
	}
	for (uint32_t i = 0, n = w->ids.n; i < n / 2; i++) {
		uint32_t id = w->ids.at[i];
		w->ids.at[i] = w->ids.at[n - 1 - i];
		w->ids.at[n - 1 - i] = id;
	}
	return err;
}

const struct hd_model_kind hd_model_unigram = {
	.base = { "Unigram", { "type", "unk_id", "vocab", "byte_fallback" } },
	.read = read_unigram, .encode = encode,
};
