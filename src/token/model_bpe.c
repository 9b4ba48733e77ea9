/* Byte pair encoding after Sennrich, Haddow and Birch (2016): of all neighbours that a merge joins the one of
 * lowest rank is next, of equal ones the leftmost; a queue has them, entries that are out of date are passed
 * by. Such an entry still counts where its place has another pair that becomes the same token: then the merge
 * has the rank of the entry, as in the package. */
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "token/model_int.h"
#include "token/unicode.h"

enum { PATH = 160 };
#define END UINT32_MAX

/* ---- reading ---- */

/* "a b" or ["a", "b"]: the two as views of the JSON's texts. *skip: a line of the version. */
static enum hd_err read_merge(const struct hd_json *item, struct hd_text_view part[2], bool *skip,
	struct hd_diag *diag)
{
	char path[PATH];
	const char *text, *blank;
	enum hd_err err;

	*skip = false;
	if (hd_json_kind(item) == HD_JSON_ARRAY && hd_json_count(item) == 2) {
		for (size_t k = 0; k < 2; k++) {
			if ((err = hd_json_as_text(hd_json_item(item, k), &text, diag)))
				return err;
			part[k] = (struct hd_text_view){ (const uint8_t *)text, strlen(text), 0 };
		}
		return HD_OK;
	}
	if ((err = hd_json_as_text(item, &text, diag)))
		return err;
	if (!strncmp(text, "#version", 8)) {
		*skip = true;
		return HD_OK;
	}
	if (!(blank = strchr(text, ' ')) || strchr(blank + 1, ' '))
		return hd_fail(diag, HD_E_INPUT, "%s is \"%.60s\", not two tokens with a blank between",
			hd_json_path(item, path, sizeof path), text);
	part[0] = (struct hd_text_view){ (const uint8_t *)text, (size_t)(blank - text), 0 };
	part[1] = (struct hd_text_view){ (const uint8_t *)blank + 1, strlen(blank + 1), 0 };
	return HD_OK;
}

static enum hd_err no_token(const struct hd_json *item, const void *at, size_t len, struct hd_diag *diag)
{
	char path[PATH];

	return hd_fail(diag, HD_E_INPUT, "%s: \"%.*s\" is not in the vocabulary", hd_json_path(item, path,
		sizeof path), (int)(len < 60 ? len : 60), (const char *)at);
}

static enum hd_err put_merge(struct hd_model *m, const struct hd_json *item,
	const struct hd_text_view part[2],
	uint32_t rank, uint8_t *joined, struct hd_diag *diag)
{
	uint32_t id[2];

	for (size_t k = 0; k < 2; k++)
		if ((id[k] = hd_vocab_find(&m->vocab, part[k].at, part[k].len)) == HD_TOKEN_NONE)
			return no_token(item, part[k].at, part[k].len, diag);
	size_t cut = part[1].len < m->prefix_len ? part[1].len : m->prefix_len, len = part[0].len +
		part[1].len -
		cut;
	memcpy(joined, part[0].at, part[0].len);
	memcpy(joined + part[0].len, part[1].at + cut, part[1].len - cut);
	uint32_t to = hd_vocab_find(&m->vocab, joined, len);
	if (to == HD_TOKEN_NONE)
		return no_token(item, joined, len, diag);
	hd_pairs_put(&m->pairs, (uint64_t)id[0] << 32 | id[1], rank, to);
	return HD_OK;
}

static enum hd_err read_merges(struct hd_model *m, const struct hd_json *json, struct hd_arena *arena,
	struct hd_diag *diag)
{
	const struct hd_json *merges;
	struct hd_text_view part[2];
	uint32_t rank = 0;
	bool skip;
	enum hd_err err = hd_json_get(json, "merges", HD_JSON_ARRAY, &merges, diag);

	if (err)
		return err;
	uint8_t *joined = hd_arena_take(arena, 2 * (size_t)m->vocab.longest_bytes + 1, 1);
	if (!joined)
		return hd_fail(diag, HD_E_NOMEM, "no memory for merges");
	if (hd_json_count(merges) > HD_TOKEN_VOCAB)
		return hd_fail(diag, HD_E_INPUT, "%zu merges, at most %d are read", hd_json_count(merges),
			HD_TOKEN_VOCAB);
	err = hd_pairs_init(&m->pairs, arena, (uint32_t)hd_json_count(merges), diag);
	for (size_t i = 0; i < hd_json_count(merges) && !err; i++) {
		const struct hd_json *item = hd_json_item(merges, i);
		if (!(err = read_merge(item, part, &skip, diag)) && !skip)
			err = put_merge(m, item, part, rank++, joined, diag);
	}
	return err;
}

static enum hd_err optional_text(const struct hd_json *json, const char *key, struct hd_arena *arena,
	const char **text, size_t *len, struct hd_diag *diag)
{
	return hd_token_is_null(hd_json_find(json, key)) ? HD_OK : hd_token_text(json, key, arena, text, len,
		diag);
}

static enum hd_err read_bpe(struct hd_model *m, const struct hd_json *json, struct hd_arena *arena,
	struct hd_diag *diag)
{
	const struct hd_json *dropout = hd_json_find(json, "dropout");
	char path[PATH];
	double p = 0;
	enum hd_err err;

	if (!hd_token_is_null(dropout) && (err = hd_json_as_f64(dropout, &p, diag)))
		return err;
	if (p != 0)
		return hd_fail(diag, HD_E_INPUT, "%s is %g: dropout draws other tokens each time; set it to "
			"null",
			hd_json_path(dropout, path, sizeof path), p);
	if ((err = optional_text(json, "continuing_subword_prefix", arena, &m->prefix, &m->prefix_len,
		diag)) ||
		(err = optional_text(json, "end_of_word_suffix", arena, &m->suffix, &m->suffix_len, diag)) ||
		(err = hd_token_bool(json, "fuse_unk", &m->fuse, diag)) || (err = hd_token_bool(json,
		"byte_fallback", &m->fallback, diag)) || (err = hd_token_bool(json, "ignore_merges",
			&m->whole,
		diag)) || (err = hd_model_vocab(m, json, arena, diag)) || (err = hd_model_unk(m, json, true,
		arena, diag)))
		return err;
	hd_model_bytes(m);
	return read_merges(m, json, arena, diag);
}

/* ---- symbols of a word ---- */

static void add_symbol(struct hd_model_work *w, uint32_t id, uint32_t len)
{
	uint32_t i = w->nsymbols++;

	w->symbol[i] = (struct hd_symbol){ id, i ? i - 1 : END, END, len };
	if (i)
		w->symbol[i - 1].next = i;
}

/* An unknown character that waits: with fuse_unk for more of them. */
struct unknown_run { bool any; uint32_t len; };

static void flush(struct hd_model_work *w, struct unknown_run *unk)
{
	if (unk->any)
		add_symbol(w, w->model->unk, unk->len);
	*unk = (struct unknown_run){ 0 };
}

/* As many bytes as it has, if each has a token. Those that wait go on to wait. */
static bool fall_back(struct hd_model_work *w, const uint8_t *at, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (w->model->byte_id[at[i]] == HD_TOKEN_NONE)
			return false;
	for (size_t i = 0; i < len; i++)
		add_symbol(w, w->model->byte_id[at[i]], 1);
	return true;
}

/* The character with what stands before or behind it in the vocabulary. */
static enum hd_err dress(struct hd_model_work *w, const uint8_t **at, size_t *len, bool first, bool last,
	struct hd_diag *diag)
{
	const struct hd_model *m = w->model;
	enum hd_err err;

	if ((first || !m->prefix_len) && (!last || !m->suffix_len))
		return HD_OK;
	w->scratch.len = 0;
	if ((err = hd_bytes_room(&w->scratch, m->prefix_len + *len + m->suffix_len, diag)))
		return err;
	if (!first)
		hd_bytes_put(&w->scratch, m->prefix, m->prefix_len);
	hd_bytes_put(&w->scratch, *at, *len);
	if (last)
		hd_bytes_put(&w->scratch, m->suffix, m->suffix_len);
	*at = w->scratch.at;
	*len = w->scratch.len;
	return HD_OK;
}

static enum hd_err one_char(struct hd_model_work *w, const uint8_t *at, size_t n, bool first, bool last,
	struct unknown_run *unk, struct hd_diag *diag)
{
	const struct hd_model *m = w->model;
	const uint8_t *text = at;
	size_t len = n;
	enum hd_err err = dress(w, &text, &len, first, last, diag);
	uint32_t id = err ? 0 : hd_vocab_find(&m->vocab, text, len);

	if (err)
		return err;
	if (id != HD_TOKEN_NONE) {
		flush(w, unk);
		add_symbol(w, id, (uint32_t)n);
		return HD_OK;
	}
	if (m->fallback && fall_back(w, text, len))
		return HD_OK;
	if (!m->unk_text)
		return HD_OK;                     /* without an unknown token it vanishes */
	if (m->unk == HD_TOKEN_NONE)
		return hd_model_unknown(w, at, n, diag);
	if (!m->fuse)
		flush(w, unk);
	unk->any = true;
	unk->len += (uint32_t)n;
	return HD_OK;
}

static enum hd_err symbols(struct hd_model_work *w, const uint8_t *at, size_t len, struct hd_diag *diag)
{
	struct unknown_run unk = { 0 };
	size_t most = len + w->model->suffix_len + 1;
	enum hd_err err;

	w->nsymbols = 0;
	if (w->model->fallback)
		most += len * (w->model->prefix_len + 1);
	if ((err = hd_grow(&w->symbol, &w->symbol_cap, most, sizeof *w->symbol, "symbols", diag)))
		return err;
	for (size_t i = 0, n; i < len && !err; i += n) {
		n = hd_char_len(at[i]);
		err = one_char(w, at + i, n, i == 0, i + n == len, &unk, diag);
	}
	flush(w, &unk);
	return err;
}

/* ---- the queue: a binary heap, the least key first ---- */

static void push(struct hd_model_work *w, uint32_t place)
{
	const struct hd_symbol *s = &w->symbol[place];
	const struct hd_pair *pair = hd_pairs_find(&w->model->pairs, (uint64_t)s->id << 32 |
		w->symbol[s->next].id);
	uint32_t i = w->nmerges;

	if (!pair)
		return;
	const struct hd_merge merge = { (uint64_t)pair->rank << 32 | place, pair->to };
	w->nmerges++;
	for (; i && w->merge[(i - 1) / 2].key > merge.key; i = (i - 1) / 2)
		w->merge[i] = w->merge[(i - 1) / 2];
	w->merge[i] = merge;
}

static struct hd_merge pop(struct hd_model_work *w)
{
	const struct hd_merge top = w->merge[0], last = w->merge[--w->nmerges];
	uint32_t i = 0;

	for (uint32_t child; (child = 2 * i + 1) < w->nmerges; i = child) {
		child += child + 1 < w->nmerges && w->merge[child + 1].key < w->merge[child].key;
		if (w->merge[child].key >= last.key)
			break;
		w->merge[i] = w->merge[child];
	}
	w->merge[i] = last;
	return top;
}

static void join(struct hd_model_work *w, struct hd_merge top)
{
	const uint32_t place = (uint32_t)top.key;
	struct hd_symbol *s = &w->symbol[place];

	if (!s->len || s->next == END)
		return;
	struct hd_symbol *right = &w->symbol[s->next];
	const struct hd_pair *pair = hd_pairs_find(&w->model->pairs, (uint64_t)s->id << 32 | right->id);
	if (!pair || pair->to != top.to)
		return;
	s->id = top.to;
	s->len += right->len;
	s->next = right->next;
	right->len = 0;
	if (s->next != END)
		w->symbol[s->next].prev = place;
	if (s->prev != END)
		push(w, s->prev);
	if (s->next != END)
		push(w, place);
}

static enum hd_err encode(struct hd_model_work *w, const uint8_t *at, size_t len, struct hd_diag *diag)
{
	enum hd_err err;

	if (w->model->whole) {
		uint32_t id = hd_vocab_find(&w->model->vocab, at, len);
		if (id != HD_TOKEN_NONE)
			return hd_token_ids_add(&w->ids, id, diag);
	}
	/* a symbol is joined once, which pushes two at most */
	if ((err = symbols(w, at, len, diag)) || (err = hd_grow(&w->merge, &w->merge_cap,
		3 * (uint64_t)w->nsymbols + 1, sizeof *w->merge, "merges", diag)))
		return err;
	w->nmerges = 0;
	for (uint32_t i = 0; i + 1 < w->nsymbols; i++)
		push(w, i);
	while (w->nmerges)
		join(w, pop(w));
	for (uint32_t i = 0; i < w->nsymbols && !err; i++)
		if (w->symbol[i].len)
			err = hd_token_ids_add(&w->ids, w->symbol[i].id, diag);
	return err;
}

const struct hd_model_kind hd_model_bpe = {
	.base = { "BPE", { "type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix",
		"fuse_unk", "byte_fallback", "ignore_merges", "vocab", "merges" } },
	.read = read_bpe, .encode = encode,
};
