/* WordPiece: of what is left of a word the longest beginning that is a token, until nothing is left; a word
 * that cannot be so taken apart is unknown as a whole. WordLevel: a word is a token or unknown. */
#include <string.h>

#include "token/model_int.h"
#include "token/unicode.h"

static enum hd_err read_wordlevel(struct hd_model *m, const struct hd_json *json, struct hd_arena *arena,
	struct hd_diag *diag)
{
	enum hd_err err = hd_model_vocab(m, json, arena, diag);

	return err ? err : hd_model_unk(m, json, false, arena, diag);
}

static enum hd_err read_wordpiece(struct hd_model *m, const struct hd_json *json, struct hd_arena *arena,
	struct hd_diag *diag)
{
	int64_t most;
	enum hd_err err;

	if ((err = read_wordlevel(m, json, arena, diag)) || (err = hd_token_text(json,
		"continuing_subword_prefix", arena, &m->prefix, &m->prefix_len, diag)) || (err =
		hd_json_get_i64(json, "max_input_chars_per_word", 0, INT32_MAX, &most, diag)))
		return err;
	m->chars_cap = (uint32_t)most;
	return HD_OK;
}

static enum hd_err encode_wordlevel(struct hd_model_work *w, const uint8_t *at, size_t len,
	struct hd_diag *diag)
{
	uint32_t id = hd_vocab_find(&w->model->vocab, at, len);

	return id != HD_TOKEN_NONE ? hd_token_ids_add(&w->ids, id, diag) : hd_model_unknown(w, at, len, diag);
}

static bool is_long(const uint8_t *at, size_t len, uint32_t cap)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++)
		n += (at[i] & 0xc0) != 0x80;
	return n > cap;
}

/* Of word[from..len) the longest token; *end. What is longer than any token is not looked up. */
static enum hd_err longest(struct hd_model_work *w, const uint8_t *at, size_t from, size_t len, size_t *end,
	uint32_t *id, struct hd_diag *diag)
{
	const struct hd_model *m = w->model;
	const uint8_t *text = at + from;
	size_t head = 0;
	enum hd_err err;

	if (from) {
		head = m->prefix_len;
		w->scratch.len = 0;
		if ((err = hd_bytes_room(&w->scratch, head + len - from, diag)))
			return err;
		hd_bytes_put(&w->scratch, m->prefix, head);
		hd_bytes_put(&w->scratch, at + from, len - from);
		text = w->scratch.at;
	}
	*id = HD_TOKEN_NONE;
	for (*end = len; *end > from; *end = (size_t)(hd_char_before(at + *end) - at))
		if ((*id = hd_vocab_find(&m->vocab, text, head + *end - from)) != HD_TOKEN_NONE)
			break;
	return HD_OK;
}

static enum hd_err encode_wordpiece(struct hd_model_work *w, const uint8_t *at, size_t len,
	struct hd_diag *diag)
{
	enum hd_err err = HD_OK;
	uint32_t id;

	if (is_long(at, len, w->model->chars_cap))
		return hd_model_unknown(w, at, len, diag);
	for (size_t from = 0, end; from < len && !err; from = end) {
		if ((err = longest(w, at, from, len, &end, &id, diag)))
			return err;
		if (id == HD_TOKEN_NONE) {
			w->ids.n = 0;
			return hd_model_unknown(w, at, len, diag);
		}
		err = hd_token_ids_add(&w->ids, id, diag);
	}
	return err;
}

const struct hd_model_kind hd_model_wordpiece = {
	.base = { "WordPiece", { "type", "unk_token", "continuing_subword_prefix", "max_input_chars_per_word",
		"vocab" } },
	.read = read_wordpiece, .encode = encode_wordpiece,
};

const struct hd_model_kind hd_model_wordlevel = {
	.base = { "WordLevel", { "type", "unk_token", "vocab" } },
	.read = read_wordlevel, .encode = encode_wordlevel,
};
