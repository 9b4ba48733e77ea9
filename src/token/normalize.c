#include "token/normalize_int.h"

#include <string.h>

#include "base/alloc.h"
#include "base/grow.h"
#include "token/read.h"

static enum hd_err read_form(struct hd_norm *norm, const struct hd_json *json, struct hd_arena *arena,
	struct hd_diag *diag)
{
	const char *type;
	enum hd_err err = hd_json_get_text(json, "type", &type, diag);

	(void)arena;
	if (!err)
		norm->form = (type[2] == 'K' ? HD_NFKC : HD_NFC) + (type[strlen(type) - 1] == 'D');
	return err;
}

static enum hd_err read_strip(struct hd_norm *norm, const struct hd_json *json, struct hd_arena *arena,
	struct hd_diag *diag)
{
	enum hd_err err;

	(void)arena;
	return (err = hd_json_get_bool(json, "strip_left", &norm->left, diag)) ? err :
		hd_json_get_bool(json, "strip_right", &norm->right, diag);
}

static enum hd_err read_bert(struct hd_norm *norm, const struct hd_json *json, struct hd_arena *arena,
	struct hd_diag *diag)
{
	const struct hd_json *accents = hd_json_find(json, "strip_accents");
	enum hd_err err;

	(void)arena;
	if ((err = hd_json_get_bool(json, "clean_text", &norm->clean, diag)) || (err = hd_json_get_bool(json,
		"handle_chinese_chars", &norm->chinese, diag)) || (err = hd_json_get_bool(json, "lowercase",
		&norm->lower, diag)))
		return err;
	norm->accents = norm->lower;
	return hd_token_is_null(accents) ? HD_OK : hd_json_as_bool(accents, &norm->accents, diag);
}

static enum hd_err read_prepend(struct hd_norm *norm, const struct hd_json *json, struct hd_arena *arena,
	struct hd_diag *diag)
{
	return hd_token_text(json, "prepend", arena, &norm->text, &norm->len, diag);
}

static enum hd_err read_replace(struct hd_norm *norm, const struct hd_json *json, struct hd_arena *arena,
	struct hd_diag *diag)
{
	const struct hd_json *pattern;
	enum hd_err err;

	if ((err = hd_json_get(json, "pattern", HD_JSON_OBJECT, &pattern, diag)) || (err =
		hd_token_text(json, "content", arena, &norm->text, &norm->len, diag)))
		return err;
	return hd_pattern_read(&norm->pattern, pattern, arena, diag);
}

static enum hd_err read_map(struct hd_norm *norm, const struct hd_json *json, struct hd_arena *arena,
	struct hd_diag *diag)
{
	const struct hd_json *map;
	enum hd_err err = hd_json_get(json, "precompiled_charsmap", HD_JSON_TEXT, &map, diag);

	return err ? err : hd_charsmap_read(&norm->map, map, arena, diag);
}

struct hd_norm_kind {
	struct hd_token_kind base;        /* name, keys beside "type" */
	enum hd_err (*read)(struct hd_norm *norm, const struct hd_json *json, struct hd_arena *arena,
		struct hd_diag *diag);    /* NULL: nothing to read */
	hd_norm_apply *apply;
};

static const struct hd_norm_kind kinds[] = {
	{ { "NFC", { "type" } }, read_form, hd_norm_form }, { { "NFD", { "type" } }, read_form, hd_norm_form },
	{ { "NFKC", { "type" } }, read_form, hd_norm_form }, { { "NFKD", { "type" } }, read_form, hd_norm_form },
	{ { "Lowercase", { "type" } }, NULL, hd_norm_lowercase },
	{ { "StripAccents", { "type" } }, NULL, hd_norm_strip_accents },
	{ { "Strip", { "type", "strip_left", "strip_right" } }, read_strip, hd_norm_strip },
	{ { "Nmt", { "type" } }, NULL, hd_norm_nmt },
	{ { "ByteLevel", { "type" } }, NULL, hd_norm_byte_level },
	{ { "BertNormalizer", { "type", "clean_text", "handle_chinese_chars", "strip_accents", "lowercase" } }, read_bert, hd_norm_bert },
	{ { "Prepend", { "type", "prepend" } }, read_prepend, hd_norm_prepend },
	{ { "Replace", { "type", "pattern", "content" } }, read_replace, hd_norm_replace },
	{ { "Precompiled", { "type", "precompiled_charsmap" } }, read_map, hd_norm_precompiled },
};

static enum hd_err read_one(void *user, const struct hd_json *json, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct hd_norms *norms = user;
	size_t k;
	enum hd_err err = hd_token_kind(json, &kinds[0].base, sizeof kinds[0], sizeof kinds / sizeof kinds[0],
		&k, diag);

	if (err || (err = hd_grow(&norms->at, &norms->cap, norms->n + 1, sizeof *norms->at, "normalizers",
		diag)))
		return err;
	struct hd_norm *norm = &norms->at[norms->n++];
	*norm = (struct hd_norm){ .kind = &kinds[k] };
	return kinds[k].read ? kinds[k].read(norm, json, arena, diag) : HD_OK;
}

enum hd_err hd_norms_read(struct hd_norms *norms, const struct hd_json *json, struct hd_arena *arena,
	struct hd_diag *diag)
{
	return hd_token_sequence(json, "normalizers", read_one, norms, arena, diag);
}

void hd_norms_finish(struct hd_norms *norms)
{
	for (uint32_t i = 0; i < norms->n; i++)
		hd_pattern_finish(&norms->at[i].pattern);
	hd_free(norms->at);
	*norms = (struct hd_norms){ 0 };
}

enum hd_err hd_norms_apply(const struct hd_norms *norms, struct hd_norm_work *work, struct hd_text_view in,
	struct hd_text_view *out, struct hd_diag *diag)
{
	for (uint32_t i = 0; i < norms->n; i++) {
		struct hd_bytes *to = &work->text[i % 2];
		to->len = to->nzero = 0;
		enum hd_err err = norms->at[i].kind->apply(&norms->at[i], work, in, to, diag);
		if (err)
			return err;
		in = hd_bytes_view(to);
	}
	*out = in;
	return HD_OK;
}

void hd_norm_work_finish(struct hd_norm_work *work)
{
	for (size_t i = 0; i < sizeof work->text / sizeof work->text[0]; i++)
		hd_free(work->text[i].at);
	hd_free(work->in);
	hd_free(work->out);
	hd_free(work->spare);
}
