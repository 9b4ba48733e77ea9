#include "data/texts.h"

#include <assert.h>
#include <string.h>

#include "data/named.h"

static enum hd_err check_tokens(const struct hd_texts *texts, const struct hd_data_spec *spec,
	struct hd_diag *diag)
{
	const uint32_t size = hd_tokenizer_size(texts->tokenizer), bound = hd_token_bound(spec);

	if (bound && size > bound)
		return hd_fail(diag, HD_E_INPUT,
			"%s has %u tokens, the model knows %u: set model.args vocab to %u", spec->tokenizer,
				size,
			bound, size);
	if (spec->pad >= 0 && texts->pad != (uint32_t)spec->pad)
		return hd_fail(diag, HD_E_INPUT,
			"%s fills up with token %u, the model takes %d for the end of a text: set pad "
			"to that, or leave it out and name attention_mask in model.args inputs",
				spec->tokenizer,
			texts->pad, spec->pad);
	return HD_OK;
}

/* Where the file names no pad: the model's, or, where it is not seen or has no label, any. */
static enum hd_err find_pad(struct hd_texts *texts, const struct hd_data_spec *spec, struct hd_diag *diag)
{
	const uint32_t id = hd_tokenizer_pad(texts->tokenizer);

	if (id == HD_TOKEN_NONE && spec->pad < 0 && !hd_want_find(spec, HD_MASK_NAME) && spec->one_label)
		return hd_fail(diag, HD_E_INPUT,
			"%s names no token that fills up short texts: name attention_mask in inputs, "
			"or set model.args pad", spec->tokenizer);
	texts->pad = id != HD_TOKEN_NONE ? id : spec->pad >= 0 ? (uint32_t)spec->pad : 0;
	return HD_OK;
}

enum hd_err hd_texts_open(struct hd_texts *texts, struct hd_reader *reader, const struct hd_data_spec *spec,
	struct hd_diag *diag)
{
	*texts = (struct hd_texts){ .context = spec->context };
	if (!spec->tokenizer)
		return HD_OK;
	enum hd_err err = hd_source_add(reader, spec->tokenizer, diag);
	if (err)
		return err;
	const struct hd_source *source = &reader->source[reader->nsources - 1];
	texts->id = hd_arena_take(&reader->arena, spec->context, sizeof *texts->id);
	if (!texts->id)
		return hd_fail(diag, HD_E_NOMEM, "no memory for a row of %u tokens", spec->context);
	if ((err = hd_tokenizer_create(&texts->tokenizer, source->name, (const char *)source->bytes,
		source->len,
		diag)) || (err = hd_token_work_create(&texts->work, texts->tokenizer, diag)) ||
		(err = find_pad(texts, spec, diag)))
		return err;
	return check_tokens(texts, spec, diag);
}

static bool is_field(const struct hd_data_want *want, uint32_t context)
{
	return want && want->dtype == HD_I32 && hd_want_elems(want) == context;
}

enum hd_err hd_texts_fields(struct hd_texts *texts, struct hd_reader *reader, const struct hd_data_spec *spec,
	uint64_t nrows, struct hd_diag *diag)
{
	const struct hd_data_want *mask = hd_want_find(spec, HD_MASK_NAME),
		*kinds = hd_want_find(spec, HD_TYPES_NAME);
	enum hd_err err = HD_OK;

	if (is_field(mask, spec->context)) {
		texts->mask = reader->set.nfields;
		err = hd_field_add(reader, mask->name, HD_I32, mask->rank, mask->dim, diag);
		texts->seen = hd_arena_take(&reader->arena, nrows, sizeof *texts->seen);
	}
	if (!err && texts->tokenizer && is_field(kinds, spec->context)) {
		texts->kinds = reader->set.nfields;
		err = hd_field_add(reader, kinds->name, HD_I32, kinds->rank, kinds->dim, diag);
	}
	if (!err && texts->tokenizer)
		texts->kind = nrows <= SIZE_MAX / spec->context ? hd_arena_take(&reader->arena,
			texts->kinds ? nrows * spec->context : spec->context, 1) : NULL;
	if (!err && ((texts->mask && !texts->seen) || (texts->tokenizer && !texts->kind)))
		err = hd_fail(diag, HD_E_NOMEM, "no memory for the fields of %llu texts",
			(unsigned long long)nrows);
	return err;
}

enum hd_err hd_texts_put(struct hd_texts *texts, uint64_t row, const char *const text[2], const size_t len[2],
	uint32_t ntexts, int32_t *x, int32_t *y, bool *cut, struct hd_diag *diag)
{
	struct hd_token_row r = { .id = texts->id,
		.kind = texts->kind + (texts->kinds ? row * texts->context : 0) };
	enum hd_err err = hd_tokenizer_row(texts->work, "the text", text, len, ntexts, texts->context,
		texts->pad,
		&r, diag);

	if (err)
		return err;
	if (!r.n)
		return hd_fail(diag, HD_E_INPUT, "the text has no token: leave the row out");
	for (uint32_t i = 0; i < texts->context; i++)
		x[i] = (int32_t)r.id[i];
	for (uint32_t i = 0; y && i < texts->context; i++)
		y[i] = i >= r.first && i + 1 < r.first + r.n ? x[i + 1] : HD_LABEL_NONE;
	if (texts->seen)
		texts->seen[row] = (struct hd_texts_span){ r.first, r.n };
	*cut = r.cut;
	return HD_OK;
}

void hd_texts_note(struct hd_texts *texts, uint64_t row, uint32_t n)
{
	if (texts->seen)
		texts->seen[row] = (struct hd_texts_span){ 0, n < texts->context ? n : texts->context };
}

void hd_texts_read(const struct hd_texts *texts, uint64_t row, void *const *out)
{
	for (uint32_t i = 0; texts->mask && i < texts->context; i++)
		((int32_t *)out[texts->mask])[i] = i - texts->seen[row].first < texts->seen[row].n;
	for (uint32_t i = 0; texts->kinds && i < texts->context; i++)
		((int32_t *)out[texts->kinds])[i] = texts->kind[row * texts->context + i];
}

void hd_texts_finish(struct hd_texts *texts)
{
	hd_token_work_destroy(texts->work);
	hd_tokenizer_destroy(texts->tokenizer);
	texts->work = NULL;
	texts->tokenizer = NULL;
}
