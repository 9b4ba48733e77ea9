#include "token/added.h"

#include <string.h>

#include "token/read.h"

enum { PATH = 160 };

const struct hd_added_token *hd_added_find(const struct hd_added *added, const char *text)
{
	for (uint32_t i = 0; i < added->n; i++)
		if (!strcmp(added->at[i].text, text))
			return &added->at[i];
	return NULL;
}

/* The last of that number, as it replaces others. */
const struct hd_added_token *hd_added_of(const struct hd_added *added, uint32_t id)
{
	for (uint32_t i = added->n; i-- > 0; )
		if (added->at[i].id == id)
			return &added->at[i];
	return NULL;
}

/* ---- reading ---- */

static enum hd_err read_token(struct hd_added_token *t, const struct hd_json *item, int64_t *id,
	struct hd_arena *arena, struct hd_diag *diag)
{
	static const char *const keys[] = { "id", "content", "single_word", "lstrip", "rstrip", "normalized",
		"special", NULL };
	size_t len;
	enum hd_err err;

	if ((err = hd_json_as(item, HD_JSON_OBJECT, diag)) || (err = hd_json_only(item, keys, diag)) || (err =
		hd_json_get_i64(item, "id", 0, HD_TOKEN_VOCAB - 1, id, diag)) || (err =
		hd_token_text(item, "content", arena, &t->text, &len, diag)) || (err = hd_json_get_bool(item,
		"single_word", &t->single_word, diag)) || (err = hd_json_get_bool(item, "lstrip", &t->lstrip,
		diag)) || (err = hd_json_get_bool(item, "rstrip", &t->rstrip, diag)) || (err =
		hd_json_get_bool(item, "normalized", &t->normalized, diag)))
		return err;
	return hd_json_get_bool(item, "special", &t->special, diag);
}

/* What it is looked for as. */
static enum hd_err normalize(struct hd_added_token *t, const struct hd_json *item,
	const struct hd_norms *norms, struct hd_norm_work *work, struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_text_view out, in = { (const uint8_t *)t->text, strlen(t->text), 0 };
	char path[PATH];

	if (t->normalized) {
		enum hd_err err = hd_norms_apply(norms, work, in, &out, diag);
		if (err)
			return err;
		in = out;
	}
	if (!in.len)
		return hd_fail(diag, HD_E_INPUT, "%s: nothing is left of \"%.60s\" to look for",
			hd_json_path(item, path, sizeof path), t->text);
	t->looked_for = hd_arena_text(arena, (const char *)in.at, in.len);
	t->len = in.len;
	return t->looked_for ? HD_OK : hd_fail(diag, HD_E_NOMEM, "no memory for added tokens");
}

static enum hd_err put_in_trie(struct hd_added *added, uint32_t i, uint32_t *nnodes,
	const struct hd_json *item,
	struct hd_diag *diag)
{
	const struct hd_added_token *t = &added->at[i];
	struct hd_pairs *trie = &added->trie[t->normalized];
	uint32_t node = 0;
	char path[PATH];

	added->any[t->normalized] = true;
	added->begins[t->normalized][(uint8_t)t->looked_for[0]] = true;
	for (size_t k = 0; k < t->len; k++) {
		uint64_t key = (uint64_t)node << 8 | (uint8_t)t->looked_for[k];
		const struct hd_pair *pair = hd_pairs_find(trie, key);
		uint32_t to = pair ? pair->to : (*nnodes)++, token = pair ? pair->rank : HD_TOKEN_NONE;
		if (k + 1 == t->len && token != HD_TOKEN_NONE)
			return hd_fail(diag, HD_E_INPUT, "%s: \"%.60s\" is looked for as another token, too",
				hd_json_path(item, path, sizeof path), t->text);
		hd_pairs_put(trie, key, k + 1 == t->len ? i : token, to);
		node = to;
	}
	return HD_OK;
}

static enum hd_err build_tries(struct hd_added *added, const struct hd_json *json, struct hd_arena *arena,
	struct hd_diag *diag)
{
	uint32_t all[2] = { 0 }, nnodes[2] = { 1, 1 };
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; i < added->n; i++)
		all[added->at[i].normalized] += (uint32_t)added->at[i].len;
	for (unsigned k = 0; k < 2 && !err; k++)
		err = hd_pairs_init(&added->trie[k], arena, all[k], diag);
	for (uint32_t i = 0; i < added->n && !err; i++)
		err = put_in_trie(added, i, &nnodes[added->at[i].normalized], hd_json_item(json, i), diag);
	return err;
}

static enum hd_err read_list(struct hd_added *added, const struct hd_json *json, const struct hd_model *model,
	const struct hd_norms *norms, struct hd_norm_work *work, struct hd_arena *arena, struct hd_diag *diag)
{
	uint32_t next = model->count;
	char path[PATH];
	int64_t says = 0;
	enum hd_err err = HD_OK;

	for (size_t i = 0, n = hd_json_count(json); i < n && !err; i++) {
		const struct hd_json *item = hd_json_item(json, i);
		struct hd_added_token *t = &added->at[i];
		if ((err = read_token(t, item, &says, arena, diag)))
			return err;
		t->id = hd_vocab_find(&model->vocab, t->text, strlen(t->text));
		if (hd_added_find(added, t->text))
			return hd_fail(diag, HD_E_INPUT, "%s: \"%.60s\" is there twice", hd_json_path(item,
				path,
				sizeof path), t->text);
		if (t->id == HD_TOKEN_NONE)
			t->id = next++;
		if (t->id != says)
			return hd_fail(diag, HD_E_INPUT, "%s: \"%.60s\" is said to be token %lld, and is "
				"%u: added "
				"tokens are in the vocabulary or follow it, one after the other",
				hd_json_path(item, path, sizeof path), t->text, (long long)says, t->id);
		err = normalize(t, item, norms, work, arena, diag);
		added->n++;
	}
	return err;
}

enum { ADDED_CAP = 1 << 16 };                      /* published files have up to some thousand */

enum hd_err hd_added_read(struct hd_added *added, const struct hd_json *json, const struct hd_model *model,
	const struct hd_norms *norms, struct hd_norm_work *work, struct hd_arena *arena, struct hd_diag *diag)
{
	enum hd_err err;

	*added = (struct hd_added){ 0 };
	if (hd_token_is_null(json))
		return HD_OK;
	if ((err = hd_json_as(json, HD_JSON_ARRAY, diag)))
		return err;
	if (hd_json_count(json) > ADDED_CAP)
		return hd_fail(diag, HD_E_INPUT, "%zu added tokens, at most %d are read", hd_json_count(json),
			ADDED_CAP);
	added->at = hd_arena_take(arena, hd_json_count(json) + 1, sizeof *added->at);
	if (!added->at)
		return hd_fail(diag, HD_E_NOMEM, "no memory for added tokens");
	err = read_list(added, json, model, norms, work, arena, diag);
	return err ? err : build_tries(added, json, arena, diag);
}

/* ---- finding ---- */

/* The longest that begins at i; its index. */
static uint32_t at_place(const struct hd_added *added, bool normalized, const uint8_t *at, size_t len,
	size_t i,
	size_t *end)
{
	uint32_t node = 0, found = HD_TOKEN_NONE;

	for (size_t k = i; k < len; k++) {
		const struct hd_pair *pair = hd_pairs_find(&added->trie[normalized],
			(uint64_t)node << 8 | at[k]);
		if (!pair)
			break;
		node = pair->to;
		if (pair->rank != HD_TOKEN_NONE) {
			found = pair->rank;
			*end = k + 1;
		}
	}
	return found;
}

static bool is_word(const struct hd_unicode *u, const uint8_t *at)
{
	uint32_t c;

	hd_char_get(at, &c);
	return hd_char_classes(u, c) & HD_CHAR_WORD;
}

static bool stands_alone(const struct hd_unicode *u, const uint8_t *at, size_t len, size_t first, size_t last)
{
	return (first == 0 || !is_word(u, hd_char_before(at + first))) && (last == len || !is_word(u, at +
		last));
}

static size_t space_before(const uint8_t *at, size_t i)
{
	uint32_t c;

	while (i) {
		const uint8_t *before = hd_char_before(at + i);
		hd_char_get(before, &c);
		if (!hd_char_is_space(c))
			break;
		i = (size_t)(before - at);
	}
	return i;
}

static size_t space_after(const uint8_t *at, size_t len, size_t i)
{
	uint32_t c;

	for (size_t n; i < len && (n = hd_char_get(at + i, &c), hd_char_is_space(c)); i += n)
		;
	return i;
}

enum hd_err hd_added_split(const struct hd_added *added, bool normalized, const struct hd_unicode *unicode,
	const uint8_t *at, const struct hd_token_piece *whole, struct hd_pieces *pieces, struct hd_diag *diag)
{
	const size_t len = whole->len;
	size_t from = 0, end = 0;                 /* what is not out begins at `from` */
	enum hd_err err = HD_OK;

	for (size_t i = 0; i < len && added->any[normalized] && !err; i = end) {
		while (i < len && !added->begins[normalized][at[i]])
			i++;
		uint32_t k = i < len ? at_place(added, normalized, at, len, i, &end) : HD_TOKEN_NONE;
		if (k == HD_TOKEN_NONE) {
			end = i + 1;
			continue;
		}
		const struct hd_added_token *t = &added->at[k];
		if (t->single_word && !stands_alone(unicode, at, len, i, end))
			continue;
		size_t first = t->lstrip ? space_before(at, i) : i, last = t->rstrip ? space_after(at, len,
			end) :
			end;
		if (t->lstrip && first < from)
			first = from;
		if (from < first)
			err = hd_pieces_cut(pieces, whole, from, first, diag);
		if (!err)
			err = hd_pieces_add(pieces, (struct hd_token_piece){ .id = t->id }, diag);
		from = last;
	}
	return err || from >= len ? err : hd_pieces_cut(pieces, whole, from, len, diag);
}
