#include "graph/safetensors.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/json.h"
#include "base/json_writer.h"

static const char metadata[] = "__metadata__";

static const struct { const char *text; uint8_t bytes, ours; } dtypes[HD_ST_NDTYPES] = {
#define X(text, bytes, ours) { #text, bytes, ours },
	HD_ST_DTYPES(X)
#undef X
};

const char *hd_st_dtype_text(enum hd_st_dtype dtype) { return dtypes[dtype].text; }

enum hd_dtype hd_st_dtype_ours(enum hd_st_dtype dtype) { return (enum hd_dtype)dtypes[dtype].ours; }

bool hd_st_dtype_from(enum hd_dtype ours, enum hd_st_dtype *dtype)
{
	for (int i = 0; i < HD_ST_NDTYPES; i++)
		if (dtypes[i].ours == (uint8_t)ours) {
			*dtype = (enum hd_st_dtype)i;
			return true;
		}
	return false;
}

/* What the reader carries from function to function. */
struct tensors_reader { const char *file; struct hd_arena *arena; uint64_t data_len;
	struct hd_diag *diag; };

/* A tensor, and where its bytes begin, from the header's end. */
struct placed { struct hd_st_tensor tensor; uint64_t begin; };

static enum hd_err no_memory(const struct tensors_reader *r)
{
	return hd_fail(r->diag, HD_E_NOMEM, "%s: no memory for its header", r->file);
}

static enum hd_err read_dtype(const struct tensors_reader *r, const struct hd_json *json,
	struct hd_st_tensor *tensor)
{
	const char *text;
	enum hd_err err = hd_json_get_text(json, "dtype", &text, r->diag);

	if (err != HD_OK)
		return err;
	for (int i = 0; i < HD_ST_NDTYPES; i++)
		if (strcmp(dtypes[i].text, text) == 0) {
			tensor->dtype = (enum hd_st_dtype)i;
			return HD_OK;
		}
	return hd_fail(r->diag, HD_E_INPUT,
		"%s: tensor '%s' has dtype '%s'; F64 F32 F16 BF16 I64 I32 I16 I8 U8 BOOL can be read",
		r->file, tensor->name, text);
}

static enum hd_err read_shape(const struct tensors_reader *r, const struct hd_json *json,
	struct hd_st_tensor *tensor,
	uint64_t *bytes)
{
	const struct hd_json *shape;
	int64_t n = 0;
	bool fits = true, empty = false;
	enum hd_err err = hd_json_get(json, "shape", HD_JSON_ARRAY, &shape, r->diag);

	if (err != HD_OK)
		return err;
	if (hd_json_count(shape) > HD_ST_DIMS)
		return hd_fail(r->diag, HD_E_INPUT, "%s: tensor '%s' has %zu extents, at most %d can be read",
			r->file, tensor->name,
			hd_json_count(shape), HD_ST_DIMS);
	tensor->rank = (uint32_t)hd_json_count(shape);
	*bytes = dtypes[tensor->dtype].bytes;
	for (uint32_t i = 0; i < tensor->rank; i++) {
		err = hd_json_as_i64(hd_json_item(shape, i), 0, INT64_MAX, &n, r->diag);
		if (err != HD_OK)
			return err;
		tensor->dim[i] = (uint64_t)n;
		empty |= n == 0;
		/* a 0 must not hide an overflow beside it */
		fits &= hd_mul_u64(*bytes, n == 0 ? 1 : (uint64_t)n, bytes);
	}
	if (!fits)
		return hd_fail(r->diag, HD_E_INPUT, "%s: tensor '%s' is larger than any file", r->file,
			tensor->name);
	*bytes = empty ? 0 : *bytes;
	return HD_OK;
}

static enum hd_err read_offsets(const struct tensors_reader *r, const struct hd_json *json,
	struct placed *placed, uint64_t bytes)
{
	struct hd_st_tensor *tensor = &placed->tensor;
	const struct hd_json *offsets;
	int64_t begin = 0, end = 0;
	enum hd_err err = hd_json_get(json, "data_offsets", HD_JSON_ARRAY, &offsets, r->diag);

	if (err == HD_OK && hd_json_count(offsets) != 2)
		return hd_fail(r->diag, HD_E_INPUT, "%s: tensor '%s': data_offsets are two numbers", r->file,
			tensor->name);
	if (err == HD_OK)
		err = hd_json_as_i64(hd_json_item(offsets, 0), 0, INT64_MAX, &begin, r->diag);
	if (err == HD_OK)
		err = hd_json_as_i64(hd_json_item(offsets, 1), 0, INT64_MAX, &end, r->diag);
	if (err != HD_OK)
		return err;
	if (begin > end || (uint64_t)end > r->data_len)
		return hd_fail(r->diag, HD_E_INPUT,
			"%s: tensor '%s' lies at %lld to %lld of %llu bytes: the file is cut short or "
			"damaged",
			r->file, tensor->name, (long long)begin, (long long)end,
			(unsigned long long)r->data_len);
	if ((uint64_t)(end - begin) != bytes)
		return hd_fail(r->diag, HD_E_INPUT,
			"%s: tensor '%s' has %lld bytes, its shape and dtype need %llu", r->file,
			tensor->name,
			(long long)(end - begin), (unsigned long long)bytes);
	placed->begin = (uint64_t)begin;
	tensor->len_bytes = bytes;
	return HD_OK;
}

static enum hd_err read_tensor(const struct tensors_reader *r, const char *name, const struct hd_json *json,
	struct placed *placed)
{
	struct hd_st_tensor *tensor = &placed->tensor;
	uint64_t bytes = 0;
	enum hd_err err = hd_json_as(json, HD_JSON_OBJECT, r->diag);

	tensor->name = name;
	for (size_t i = 0; err == HD_OK && i < hd_json_count(json); i++) {
		const char *key = hd_json_key(json, i);
		if (strcmp(key, "dtype") != 0 && strcmp(key, "shape") != 0 &&
			strcmp(key, "data_offsets") != 0)
			return hd_fail(r->diag, HD_E_INPUT,
				"%s: tensor '%s' has a member '%s' that no reader knows", r->file, name, key);
	}
	if (err == HD_OK)
		err = read_dtype(r, json, tensor);
	if (err == HD_OK)
		err = read_shape(r, json, tensor, &bytes);
	return err == HD_OK ? read_offsets(r, json, placed, bytes) : err;
}

static enum hd_err read_meta(const struct tensors_reader *r, const struct hd_json *json,
	struct hd_safetensors *out)
{
	enum hd_err err = hd_json_as(json, HD_JSON_OBJECT, r->diag);

	if (err != HD_OK)
		return err;
	out->meta = hd_arena_take(r->arena, hd_json_count(json) + 1, sizeof *out->meta);
	if (!out->meta)
		return no_memory(r);
	for (; out->nmeta < hd_json_count(json) && err == HD_OK; out->nmeta++) {
		struct hd_st_meta *meta = &out->meta[out->nmeta];
		meta->key = hd_json_key(json, out->nmeta);
		err = hd_json_as_text(hd_json_item(json, out->nmeta), &meta->value, r->diag);
	}
	return err;
}

static int by_place(const void *a, const void *b)
{
	const struct placed *x = a, *y = b;

	if (x->begin != y->begin)
		return x->begin < y->begin ? -1 : 1;
	if (x->tensor.len_bytes != y->tensor.len_bytes)
		/* empty ones first, so that one walk sees gaps and overlaps */
		return x->tensor.len_bytes < y->tensor.len_bytes ? -1 : 1;
	return strcmp(x->tensor.name, y->tensor.name);
}

static enum hd_err check_cover(const struct tensors_reader *r, const struct placed *placed, uint32_t n)
{
	uint64_t at = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (placed[i].begin != at)
			return hd_fail(r->diag, HD_E_INPUT,
				"%s: %s tensor '%s': tensors lie one after the other without gap", r->file,
				placed[i].begin < at ? "bytes are shared with" : "unused bytes before",
				placed[i].tensor.name);
		at += placed[i].tensor.len_bytes;
	}
	if (at != r->data_len)
		return hd_fail(r->diag, HD_E_INPUT, "%s: %llu bytes at the end belong to no tensor", r->file,
			(unsigned long long)(r->data_len - at));
	return HD_OK;
}

static enum hd_err read_header(const struct tensors_reader *r, const char *text, uint64_t len,
	struct hd_safetensors *out)
{
	const struct hd_json *json;
	struct placed *placed;
	uint32_t n = 0;
	enum hd_err err;

	if (len == 0 || text[0] != '{')
		return hd_fail(r->diag, HD_E_INPUT,
			"%s: its header does not begin with '{': no safetensors file", r->file);
	err = hd_json_parse(r->arena, r->file, text, (size_t)len, &json, r->diag);
	if (err != HD_OK)
		return err;
	placed = hd_arena_take(r->arena, hd_json_count(json) + 1, sizeof *placed);
	out->tensor = hd_arena_take(r->arena, hd_json_count(json) + 1, sizeof *out->tensor);
	if (!placed || !out->tensor)
		return no_memory(r);
	for (size_t i = 0; i < hd_json_count(json) && err == HD_OK; i++) {
		const char *name = hd_json_key(json, i);
		if (strcmp(name, metadata) == 0)
			err = read_meta(r, hd_json_item(json, i), out);
		else
			err = read_tensor(r, name, hd_json_item(json, i), &placed[n++]);
	}
	if (err != HD_OK)
		return err;
	qsort(placed, n, sizeof *placed, by_place);
	for (; out->ntensors < n; out->ntensors++)
		out->tensor[out->ntensors] = placed[out->ntensors].tensor;
	return check_cover(r, placed, n);
}

enum hd_err hd_safetensors_head_bytes(const char *file, const uint8_t *prefix, uint64_t len,
	uint64_t *head_bytes, struct hd_diag *diag)
{
	uint64_t header = 0;

	if (len < HD_ST_PREFIX_BYTES)
		return hd_fail(diag, HD_E_INPUT, "%s: %llu bytes: too short for a safetensors file", file,
			(unsigned long long)len);
	for (int i = 0; i < HD_ST_PREFIX_BYTES; i++)
		header |= (uint64_t)prefix[i] << 8 * i;
	if (header > HD_ST_HEADER_BYTES || header > len - HD_ST_PREFIX_BYTES)
		return hd_fail(diag, HD_E_INPUT,
			"%s: its header claims %llu bytes of %llu (at most %d): cut short, or no "
			"safetensors file", file,
			(unsigned long long)header, (unsigned long long)len, HD_ST_HEADER_BYTES);
	*head_bytes = HD_ST_PREFIX_BYTES + header;
	return HD_OK;
}

enum hd_err hd_safetensors_head(struct hd_safetensors *out, struct hd_arena *arena, const char *file,
	const void *head, uint64_t head_bytes, uint64_t len, struct hd_diag *diag)
{
	struct tensors_reader r = { .file = file, .arena = arena, .data_len = len - head_bytes,
		.diag = diag };
	struct hd_safetensors made = { 0 };

	assert(head_bytes >= HD_ST_PREFIX_BYTES && head_bytes <= len);
	enum hd_err err = read_header(&r, (const char *)head + HD_ST_PREFIX_BYTES,
		head_bytes - HD_ST_PREFIX_BYTES, &made);
	if (err == HD_OK)
		*out = made;
	return err;
}

enum hd_err hd_safetensors_read(struct hd_safetensors *out, struct hd_arena *arena, const char *file,
	const void *bytes, uint64_t len, struct hd_diag *diag)
{
	uint64_t head_bytes = 0;
	enum hd_err err = hd_safetensors_head_bytes(file, bytes, len, &head_bytes, diag);

	err = err ? err : hd_safetensors_head(out, arena, file, bytes, head_bytes, len, diag);
	const uint8_t *at = (const uint8_t *)bytes + head_bytes;
	for (uint32_t i = 0; !err && i < out->ntensors; at += out->tensor[i++].len_bytes)
		out->tensor[i].at = at;
	return err;
}

const struct hd_st_tensor *hd_safetensors_find(const struct hd_safetensors *file, const char *name)
{
	for (uint32_t i = 0; i < file->ntensors; i++)
		if (strcmp(file->tensor[i].name, name) == 0)
			return &file->tensor[i];
	return NULL;
}

static int by_name(const void *a, const void *b)
{
	const struct hd_st_tensor *const *x = a, *const *y = b;

	return strcmp((*x)->name, (*y)->name);
}

static enum hd_err check_tensors(const struct hd_st_tensor *const *sorted, uint32_t n, struct hd_diag *diag)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct hd_st_tensor *t = sorted[i];
		if (strcmp(t->name, metadata) == 0 || (i && strcmp(sorted[i - 1]->name, t->name) == 0))
			return hd_fail(diag, HD_E_BUG, "safetensors: the name '%s' is reserved or used twice",
				t->name);
		if (t->rank > HD_ST_DIMS || (uint32_t)t->dtype >= HD_ST_NDTYPES)
			return hd_fail(diag, HD_E_BUG, "safetensors: tensor '%s' has %u extents or no dtype",
				t->name, t->rank);
		uint64_t bytes = dtypes[t->dtype].bytes;
		for (uint32_t k = 0; k < t->rank; k++)
			bytes *= t->dim[k];
		if (bytes != t->len_bytes)
			return hd_fail(diag, HD_E_BUG,
				"safetensors: tensor '%s' has %llu bytes, its shape needs %llu", t->name,
				(unsigned long long)t->len_bytes, (unsigned long long)bytes);
	}
	return HD_OK;
}

static void put_header(struct hd_text *text, const struct hd_st_tensor *const *sorted, uint32_t n,
	const struct hd_st_meta *meta, uint32_t nmeta)
{
	struct hd_json_writer w;
	uint64_t at = 0;

	hd_json_writer_init(&w, text);
	hd_json_open_object(&w, NULL);
	if (nmeta) {
		hd_json_open_object(&w, metadata);
		for (uint32_t i = 0; i < nmeta; i++)
			hd_json_put_text(&w, meta[i].key, meta[i].value);
		hd_json_close(&w);
	}
	for (uint32_t i = 0; i < n; i++) {
		hd_json_open_object(&w, sorted[i]->name);
		hd_json_put_text(&w, "dtype", dtypes[sorted[i]->dtype].text);
		hd_json_open_array(&w, "shape");
		for (uint32_t k = 0; k < sorted[i]->rank; k++)
			hd_json_put_i64(&w, NULL, (int64_t)sorted[i]->dim[k]);
		hd_json_close(&w);
		hd_json_open_array(&w, "data_offsets");
		hd_json_put_i64(&w, NULL, (int64_t)at);
		at += sorted[i]->len_bytes;
		hd_json_put_i64(&w, NULL, (int64_t)at);
		hd_json_close(&w);
		hd_json_close(&w);
	}
	hd_json_close(&w);
	while (!text->full && text->len % HD_ST_PREFIX_BYTES)
		hd_text_put(text, " ", 1);
}

enum { PIECE_BYTES = 1 << 18 };              /* a multiple of every element's bytes */

/* `piece` [PIECE_BYTES]: for what does not lie in one piece. */
static enum hd_err put_tensor(const struct hd_st_tensor *t, uint8_t *piece, hd_st_put *put, void *context,
	struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	if (!t->source)
		return t->len_bytes ? put(context, t->at, t->len_bytes, diag) : HD_OK;
	for (uint64_t first = 0; first < t->len_bytes && !err; first += PIECE_BYTES) {
		const uint64_t left = t->len_bytes - first, len = left < PIECE_BYTES ? left : PIECE_BYTES;
		t->source->get(t->source->user, first, len, piece);
		err = put(context, piece, len, diag);
	}
	return err;
}

enum hd_err hd_safetensors_write(const struct hd_st_tensor *tensor, uint32_t ntensors,
	const struct hd_st_meta *meta,
	uint32_t nmeta, struct hd_arena *scratch, hd_st_put *put, void *context, struct hd_diag *diag)
{
	const struct hd_st_tensor **sorted = hd_arena_take(scratch, ntensors, sizeof *sorted);
	uint8_t *piece = hd_arena_take(scratch, PIECE_BYTES, 1);
	uint8_t prefix[HD_ST_PREFIX_BYTES];
	struct hd_text text;
	enum hd_err err;

	if (!sorted || !piece)
		return hd_fail(diag, HD_E_NOMEM, "no memory to write %u tensors", ntensors);
	for (uint32_t i = 0; i < ntensors; i++)
		sorted[i] = &tensor[i];
	qsort(sorted, ntensors, sizeof *sorted, by_name);
	err = check_tensors(sorted, ntensors, diag);
	if (err != HD_OK)
		return err;
	hd_text_init(&text, scratch);
	put_header(&text, sorted, ntensors, meta, nmeta);
	if (text.full)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the header of %u tensors", ntensors);
	if (text.len > HD_ST_HEADER_BYTES)
		return hd_fail(diag, HD_E_INVAL, "the header of %u tensors is larger than %d bytes", ntensors,
			HD_ST_HEADER_BYTES);
	for (int i = 0; i < HD_ST_PREFIX_BYTES; i++)
		prefix[i] = (uint8_t)((uint64_t)text.len >> 8 * i);
	err = put(context, prefix, sizeof prefix, diag);
	if (err == HD_OK)
		err = put(context, text.at, text.len, diag);
	for (uint32_t i = 0; i < ntensors && err == HD_OK; i++)
		err = put_tensor(sorted[i], piece, put, context, diag);
	return err;
}
