#include "token/pretokenize_int.h"

#include <string.h>

#include "base/alloc.h"
#include "base/grow.h"
#include "token/read.h"

enum hd_err hd_pieces_add(struct hd_pieces *pieces, struct hd_token_piece piece, struct hd_diag *diag)
{
	if (pieces->n == pieces->cap) {
		enum hd_err err = hd_grow(&pieces->at, &pieces->cap, (uint64_t)pieces->n + 1,
			sizeof *pieces->at, "pieces of a text", diag);
		if (err)
			return err;
	}
	pieces->at[pieces->n++] = piece;
	return HD_OK;
}

enum hd_err hd_pieces_cut(struct hd_pieces *pieces, const struct hd_token_piece *whole, size_t first,
	size_t last, struct hd_diag *diag)
{
	uint32_t nzero = whole->nzero > last ? (uint32_t)last : whole->nzero;

	if (first == last)
		return HD_OK;
	return hd_pieces_add(pieces, (struct hd_token_piece){ whole->at + first, (uint32_t)(last - first),
		nzero > first ? nzero - (uint32_t)first : 0, HD_TOKEN_NONE }, diag);
}

static const char gpt2[] = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| "
	"?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

static enum hd_err one_of(const struct hd_json *json, const char *key, const char *const names[],
	unsigned *which, struct hd_diag *diag)
{
	const struct hd_json *is = hd_json_find(json, key);
	char path[160];
	const char *text;
	enum hd_err err;

	if (hd_token_is_null(is))
		return HD_OK;
	if ((err = hd_json_as_text(is, &text, diag)))
		return err;
	for (unsigned i = 0; names[i]; i++)
		if (!strcmp(names[i], text)) {
			*which = i;
			return HD_OK;
		}
	return hd_fail(diag, HD_E_INPUT, "%s: \"%.60s\" is not supported", hd_json_path(is, path,
		sizeof path),
		text);
}

static enum hd_err read_behavior(struct hd_pre *pre, const struct hd_json *json, struct hd_diag *diag)
{
	static const char *const names[] = { "Removed", "Isolated", "MergedWithPrevious", "MergedWithNext",
		"Contiguous", NULL };
	unsigned which = HD_ISOLATED;
	enum hd_err err = one_of(json, "behavior", names, &which, diag);

	pre->behavior = (enum hd_behavior)which;
	return err;
}

typedef enum hd_err read_fn(struct hd_pre *pre, const struct hd_json *json, struct hd_arena *arena,
	struct hd_diag *diag);

static enum hd_err read_punctuation(struct hd_pre *pre, const struct hd_json *json, struct hd_arena *arena,
	struct hd_diag *diag)
{
	(void)arena;
	return read_behavior(pre, json, diag);
}

static enum hd_err read_split(struct hd_pre *pre, const struct hd_json *json, struct hd_arena *arena,
	struct hd_diag *diag)
{
	const struct hd_json *is;
	enum hd_err err;

	if ((err = hd_json_get(json, "behavior", HD_JSON_TEXT, &is, diag)) || (err = read_behavior(pre, json,
		diag)) || (err = hd_json_get_bool(json, "invert", &pre->invert, diag)) || (err =
		hd_json_get(json, "pattern", HD_JSON_OBJECT, &is, diag)))
		return err;
	return hd_pattern_read(&pre->pattern, is, arena, diag);
}

static enum hd_err read_byte_level(struct hd_pre *pre, const struct hd_json *json, struct hd_arena *arena,
	struct hd_diag *diag)
{
	enum hd_err err;

	pre->regex = true;
	if ((err = hd_json_get_bool(json, "add_prefix_space", &pre->prefix, diag)) || (err =
		hd_token_bool(json, "use_regex", &pre->regex, diag)))
		return err;
	return pre->regex ? hd_pattern_make(&pre->pattern, gpt2, "ByteLevel", arena, diag) : HD_OK;
}

static enum hd_err read_digits(struct hd_pre *pre, const struct hd_json *json, struct hd_arena *arena,
	struct hd_diag *diag)
{
	(void)arena;
	return hd_json_get_bool(json, "individual_digits", &pre->single, diag);
}

static enum hd_err read_delimiter(struct hd_pre *pre, const struct hd_json *json, struct hd_arena *arena,
	struct hd_diag *diag)
{
	(void)arena;
	return hd_token_char(json, "delimiter", &pre->c, diag);
}

static enum hd_err read_length(struct hd_pre *pre, const struct hd_json *json, struct hd_arena *arena,
	struct hd_diag *diag)
{
	int64_t n = 5;
	enum hd_err err = hd_json_find(json, "length") ? hd_json_get_i64(json, "length", 1, INT32_MAX, &n,
		diag)
		: HD_OK;

	(void)arena;
	pre->length = (uint32_t)n;
	return err;
}

static enum hd_err read_metaspace(struct hd_pre *pre, const struct hd_json *json, struct hd_arena *arena,
	struct hd_diag *diag)
{
	static const char *const names[] = { "always", "first", "never", NULL };
	unsigned which = HD_PREPEND_ALWAYS;
	bool prefix = true;
	enum hd_err err;

	(void)arena;
	pre->split = true;
	if ((err = hd_token_char(json, "replacement", &pre->c, diag)) || (err = one_of(json, "prepend_scheme",
		names, &which, diag)) || (err = hd_token_bool(json, "split", &pre->split, diag)) || (err =
		hd_token_bool(json, "add_prefix_space", &prefix, diag)))
		return err;
	pre->prepend = (enum hd_prepend)which;
	if (!prefix && pre->prepend != HD_PREPEND_NEVER)
		return hd_fail(diag, HD_E_INPUT, "Metaspace: add_prefix_space is false, and prepend_scheme "
			"is "
			"not \"never\"");
	return HD_OK;
}

struct hd_pre_kind { struct hd_token_kind base; read_fn *read; hd_pre_step *step; };

static const struct hd_pre_kind kinds[] = {
	{ { "ByteLevel", { "type", "add_prefix_space", "trim_offsets", "use_regex" } }, read_byte_level, hd_pre_byte_level },
	{ { "Split", { "type", "pattern", "behavior", "invert" } }, read_split, hd_pre_split },
	{ { "Metaspace", { "type", "replacement", "add_prefix_space", "prepend_scheme", "split", "str_rep" } }, read_metaspace, hd_pre_metaspace },
	{ { "BertPreTokenizer", { "type" } }, NULL, hd_pre_bert }, { { "Whitespace", { "type" } }, NULL, hd_pre_whitespace },
	{ { "WhitespaceSplit", { "type" } }, NULL, hd_pre_whitespace_split },
	{ { "Punctuation", { "type", "behavior" } }, read_punctuation, hd_pre_punctuation },
	{ { "Digits", { "type", "individual_digits" } }, read_digits, hd_pre_digits },
	{ { "CharDelimiterSplit", { "type", "delimiter" } }, read_delimiter, hd_pre_delimiter },
	{ { "FixedLength", { "type", "length" } }, read_length, hd_pre_fixed_length },
};

static enum hd_err read_one(void *user, const struct hd_json *json, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct hd_pres *pres = user;
	size_t k;
	enum hd_err err = hd_token_kind(json, &kinds[0].base, sizeof kinds[0], sizeof kinds / sizeof kinds[0],
		&k, diag);

	if (err || (err = hd_grow(&pres->at, &pres->cap, pres->n + 1, sizeof *pres->at, "pre-tokenizers",
		diag)))
		return err;
	struct hd_pre *pre = &pres->at[pres->n++];
	*pre = (struct hd_pre){ .kind = &kinds[k] };
	return kinds[k].read ? kinds[k].read(pre, json, arena, diag) : HD_OK;
}

enum hd_err hd_pres_read(struct hd_pres *pres, const struct hd_json *json, struct hd_arena *arena,
	struct hd_diag *diag)
{
	enum hd_err err = hd_token_sequence(json, "pretokenizers", read_one, pres, arena, diag);

	for (uint32_t i = 0; i + 1 < pres->n && !err; i++)
		pres->at[i].maps = pres->at[i].kind->step == hd_pre_byte_level;
	pres->maps_bytes = !err && pres->n && pres->at[pres->n - 1].kind->step == hd_pre_byte_level;
	return err;
}

void hd_pres_finish(struct hd_pres *pres)
{
	for (uint32_t i = 0; i < pres->n; i++)
		hd_pattern_finish(&pres->at[i].pattern);
	hd_free(pres->at);
	*pres = (struct hd_pres){ 0 };
}

enum hd_err hd_pres_apply(const struct hd_pres *pres, struct hd_pre_work *work, struct hd_diag *diag)
{
	for (uint32_t i = 0; i < pres->n; i++) {
		work->next.n = 0;
		for (uint32_t k = 0; k < work->pieces.n; k++) {
			const struct hd_token_piece *piece = &work->pieces.at[k];
			enum hd_err err = piece->id != HD_TOKEN_NONE ? hd_pieces_add(&work->next, *piece,
				diag) :
				pres->at[i].kind->step(&pres->at[i], work, piece, diag);
			if (err)
				return err;
		}
		struct hd_pieces was = work->pieces;
		work->pieces = work->next;
		work->next = was;
	}
	return HD_OK;
}

void hd_pre_work_finish(struct hd_pre_work *work)
{
	hd_free(work->text.at);
	hd_free(work->pieces.at);
	hd_free(work->next.at);
}
