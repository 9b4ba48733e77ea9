#include "data/parquet/page_int.h"

#include <assert.h>
#include <inttypes.h>

#include "base/alloc.h"
#include "base/grow.h"
#include "base/le.h"
#include "base/pack.h"
#include "data/parquet/thrift_int.h"

enum page_type { PAGE_DATA, PAGE_INDEX, PAGE_DICTIONARY, PAGE_DATA2 };
enum { ENC_PLAIN = 0, ENC_PLAIN_DICTIONARY = 2, ENC_RLE = 3, ENC_DELTA = 5, ENC_DELTA_LENGTH = 6,
       ENC_DELTA_TEXT = 7, ENC_DICTIONARY = 8, ENC_SPLIT = 9 };

struct page_head {
	int64_t type, unpacked, packed, crc, n, encoding, def_encoding, rep_encoding, def_bytes, rep_bytes;
	bool has_crc, is_packed;
};

static enum hd_err damaged(const struct hd_parquet_cursor *c, const char *what, struct hd_diag *diag)
{
	return hd_fail(diag, HD_E_INPUT, "%s: column \"%.60s\", row group %" PRIu32 ": %s: fetch or write "
		"the file "
		"again", c->file->name, c->leaf->path, c->group, what);
}

static enum hd_err refused(const struct hd_parquet_cursor *c, const char *what, int64_t v,
	struct hd_diag *diag)
{
	return hd_fail(diag, HD_E_INPUT, "%s: column \"%.60s\": %s %" PRId64 " is not read: write the file "
		"again, as "
		"pyarrow does by itself", c->file->name, c->leaf->path, what, v);
}

void hd_parquet_cursor_finish(struct hd_parquet_cursor *c)
{
	hd_free(c->dict);
	hd_free(c->dict_bytes);
	hd_free(c->page);
	hd_free(c->made);
	hd_free(c->rep);
	hd_free(c->def);
	hd_free(c->index);
	hd_free(c->value);
	hd_free(c->number);
	hd_free(c->text);
}

enum hd_err hd_parquet_chunk_begin(struct hd_parquet_cursor *c, uint32_t group, struct hd_diag *diag)
{
	const struct hd_parquet_chunk *chunk = &c->file->chunk[(size_t)group * c->file->nleaves + c->ileaf];

	c->group = group;
	if (chunk->elsewhere)
		return damaged(c, "its pages lie in another file, which is not read", diag);
	if (chunk->at < 4 || chunk->at > c->file->len || chunk->len > c->file->len - chunk->at)
		return damaged(c, "its pages would lie outside of the file", diag);
	c->chunk = (struct hd_parquet_bytes){ c->file->bytes + chunk->at,
		c->file->bytes + chunk->at + chunk->len };
	c->codec = chunk->codec;
	c->left = chunk->nvalues;
	c->ndict = c->n = c->i = 0;
	return HD_OK;
}

/* ---- the head of a page ---- */

/* Fields of the three kinds of page, by number. */
static void read_kind(struct hd_thrift *t, int32_t kind, struct page_head *h)
{
	struct hd_thrift_field f = { 0 };

	while (hd_thrift_next(t, &f))
		if (f.id == 1)
			h->n = hd_thrift_int(t, f.type);
		else if (f.id == (kind == 8 ? 4 : 2))
			h->encoding = hd_thrift_int(t, f.type);
		else if (kind == 5 && f.id == 3)
			h->def_encoding = hd_thrift_int(t, f.type);
		else if (kind == 5 && f.id == 4)
			h->rep_encoding = hd_thrift_int(t, f.type);
		else if (kind == 8 && f.id == 5)
			h->def_bytes = hd_thrift_int(t, f.type);
		else if (kind == 8 && f.id == 6)
			h->rep_bytes = hd_thrift_int(t, f.type);
		else if (kind == 8 && f.id == 7)
			h->is_packed = hd_thrift_bool(t, f.type);
		else
			hd_thrift_skip(t, f.type);
}

static enum hd_err read_head(struct hd_parquet_cursor *c, struct page_head *h, struct hd_diag *diag)
{
	struct hd_thrift t = { c->chunk.at, c->chunk.end, false };
	struct hd_thrift_field f = { 0 };

	*h = (struct page_head){ .type = -1, .is_packed = true, .def_encoding = ENC_RLE,
		.rep_encoding = ENC_RLE };
	while (hd_thrift_next(&t, &f))
		if (f.id == 1) {
			h->type = hd_thrift_int(&t, f.type);
		} else if (f.id == 2) {
			h->unpacked = hd_thrift_int(&t, f.type);
		} else if (f.id == 3) {
			h->packed = hd_thrift_int(&t, f.type);
		} else if (f.id == 4) {
			h->crc = hd_thrift_int(&t, f.type);
			h->has_crc = true;
		} else if ((f.id == 5 || f.id == 7 || f.id == 8) && f.type == HD_THRIFT_STRUCT) {
			read_kind(&t, f.id, h);
		} else {
			hd_thrift_skip(&t, f.type);
		}
	c->chunk.at = t.at;
	if (t.bad || h->packed < 0 || h->packed > c->chunk.end - c->chunk.at || h->unpacked < 0)
		return damaged(c, "the head of a page is damaged", diag);
	if (h->unpacked > HD_PARQUET_PAGE_BYTES || h->n < 0 || h->n > HD_PARQUET_PAGE)
		return damaged(c, "a page of more than 2^24 values or 2^30 bytes", diag);
	if (h->has_crc && hd_crc32(c->chunk.at, (size_t)h->packed) != (uint32_t)h->crc)
		return damaged(c, "a page does not fit its checksum", diag);
	return HD_OK;
}

/* ---- its bytes ---- */

/* Those of `from`, unpacked into *memory, or where they lie. */
static enum hd_err unpack(struct hd_parquet_cursor *c, struct hd_parquet_bytes from, size_t unpacked,
	uint8_t **memory, uint32_t *cap, struct hd_parquet_bytes *out, struct hd_diag *diag)
{
	static const struct { bool known; enum hd_codec codec; } codecs[] = { [1] = { true, HD_CODEC_SNAPPY },
		[2] = { true, HD_CODEC_GZIP }, [6] = { true, HD_CODEC_ZSTD }, [7] = { true, HD_CODEC_LZ4 } };
	static const char *const names[] = { [3] = "lzo", [4] = "brotli", [5] = "the older lz4" };
	const size_t len = (size_t)(from.end - from.at);

	*out = from;
	if (c->codec == 0)
		return len == unpacked ? HD_OK : damaged(c, "a page is of another length than it says", diag);
	if (c->codec >= sizeof codecs / sizeof *codecs || !codecs[c->codec].known)
		return hd_fail(diag, HD_E_INPUT, "%s: column \"%.60s\" is packed by %s, which is not read: "
			"write it with "
			"snappy, zstd, gzip or lz4_raw", c->file->name, c->leaf->path,
			c->codec >= 3 && c->codec <= 5 ? names[c->codec] : "an unknown codec");
	enum hd_err err = hd_grow(memory, cap, unpacked ? unpacked : 1, 1, "bytes of a page", diag);
	if (!err && unpacked)
		err = hd_block_unpack(codecs[c->codec].codec, c->file->name, from.at, len, *memory, unpacked,
			diag);
	*out = (struct hd_parquet_bytes){ *memory, *memory + unpacked };
	return err;
}

static enum hd_err take_dictionary(struct hd_parquet_cursor *c, const struct page_head *h,
	struct hd_parquet_bytes from, struct hd_diag *diag)
{
	struct hd_parquet_bytes in;
	enum hd_err err = unpack(c, from, (size_t)h->unpacked, &c->dict_bytes, &c->dict_bytes_cap, &in, diag);

	if (err)
		return err;
	if (h->encoding != ENC_PLAIN && h->encoding != ENC_PLAIN_DICTIONARY)
		return refused(c, "a dictionary of encoding", h->encoding, diag);
	if ((err = hd_grow(&c->dict, &c->dict_cap, (uint64_t)h->n + 1, sizeof *c->dict,
		"values of a dictionary", diag)))
		return err;
	c->ndict = (uint32_t)h->n;
	return hd_parquet_plain(&in, c->leaf, c->ndict, c->dict) ? HD_OK :
		damaged(c, "a dictionary is cut off", diag);
}

/* ---- levels ---- */

static uint32_t bits_of(uint32_t most)
{
	uint32_t bits = 0;

	while (most >> bits)
		bits++;
	return bits;
}

/* `in` holds nothing but them; most 0: all are 0. */
static bool take_levels(struct hd_parquet_bytes in, uint32_t most, uint32_t n, uint32_t *out)
{
	if (!most) {
		for (uint32_t i = 0; i < n; i++)
			out[i] = 0;
		return true;
	}
	if (!hd_parquet_hybrid(&in, bits_of(most), n, out))
		return false;
	for (uint32_t i = 0; i < n; i++)
		if (out[i] > most)
			return false;
	return true;
}

/* Of version 1: a length of four bytes in front, where there are any. */
static bool cut_levels(struct hd_parquet_bytes *in, uint32_t most, struct hd_parquet_bytes *levels)
{
	*levels = (struct hd_parquet_bytes){ in->at, in->at };
	if (!most)
		return true;
	if (in->end - in->at < 4 || hd_get32(in->at) > (uint64_t)(in->end - in->at - 4))
		return false;
	levels->at = in->at + 4;
	levels->end = levels->at + hd_get32(in->at);
	in->at = levels->end;
	return true;
}

static enum hd_err grow_page(struct hd_parquet_cursor *c, uint32_t n, struct hd_diag *diag)
{
	enum hd_err err = hd_grow(&c->rep, &c->rep_cap, (uint64_t)n + 1, sizeof *c->rep, "levels", diag);

	if (!err)
		err = hd_grow(&c->def, &c->def_cap, (uint64_t)n + 1, sizeof *c->def, "levels", diag);
	if (!err)
		err = hd_grow(&c->index, &c->index_cap, (uint64_t)n + 1, sizeof *c->index, "indices", diag);
	return err ? err : hd_grow(&c->value, &c->value_cap, (uint64_t)n + 1, sizeof *c->value, "values",
		diag);
}

static enum hd_err put_levels(struct hd_parquet_cursor *c, struct hd_parquet_bytes rep,
	struct hd_parquet_bytes def,
	uint32_t n, struct hd_diag *diag)
{
	enum hd_err err = grow_page(c, n, diag);

	if (err)
		return err;
	if (!take_levels(rep, c->leaf->max_rep, n, c->rep) || !take_levels(def, c->leaf->max_def, n, c->def))
		return damaged(c, "the levels of a page are damaged", diag);
	c->nvalues = 0;
	for (uint32_t i = 0; i < n; i++)
		c->nvalues += c->def[i] == c->leaf->max_def;
	return HD_OK;
}

/* ---- values ---- */

static bool from_dictionary(struct hd_parquet_cursor *c, struct hd_parquet_bytes *in)
{
	if (!c->nvalues)
		return true;
	if (in->at == in->end)
		return false;
	const uint32_t width = *in->at++;
	if (!hd_parquet_hybrid(in, width, c->nvalues, c->index))
		return false;
	for (uint32_t i = 0; i < c->nvalues; i++) {
		if (c->index[i] >= c->ndict)
			return false;
		c->value[i] = c->dict[c->index[i]];
	}
	return true;
}

static bool booleans(struct hd_parquet_cursor *c, struct hd_parquet_bytes *in)
{
	struct hd_parquet_bytes runs;

	if (!cut_levels(in, 1, &runs) || !hd_parquet_hybrid(&runs, 1, c->nvalues, c->index))
		return false;
	for (uint32_t i = 0; i < c->nvalues; i++)
		c->value[i] = (struct hd_parquet_value){ .as.whole = c->index[i] };
	return true;
}

static bool is_whole(enum hd_parquet_type type) { return type == HD_PARQUET_INT32 ||
	type == HD_PARQUET_INT64; }

/* 32-bit numbers that are unsigned have their sign taken off. */
static bool differences(struct hd_parquet_cursor *c, struct hd_parquet_bytes *in)
{
	const bool is_32 = c->leaf->type == HD_PARQUET_INT32;

	if (!hd_parquet_delta(in, is_32, c->nvalues, c->value))
		return false;
	for (uint32_t i = 0; i < c->nvalues && is_32 && c->leaf->is_unsigned; i++)
		c->value[i].as.whole = (int64_t)(uint32_t)c->value[i].as.whole;
	return true;
}

static enum hd_err put_values(struct hd_parquet_cursor *c, int64_t encoding, struct hd_parquet_bytes in,
	struct hd_diag *diag)
{
	const enum hd_parquet_type type = c->leaf->type;
	bool good;

	if (encoding == ENC_PLAIN)
		good = hd_parquet_plain(&in, c->leaf, c->nvalues, c->value);
	else if (encoding == ENC_PLAIN_DICTIONARY || encoding == ENC_DICTIONARY)
		good = from_dictionary(c, &in);
	else if (encoding == ENC_RLE && type == HD_PARQUET_BOOLEAN)
		good = booleans(c, &in);
	else if (encoding == ENC_DELTA && is_whole(type))
		good = differences(c, &in);
	else if (encoding == ENC_DELTA_LENGTH && type == HD_PARQUET_BYTES)
		good = hd_parquet_delta_length(&in, c->nvalues, c->value);
	else if (encoding == ENC_DELTA_TEXT && type == HD_PARQUET_BYTES)
		good = hd_parquet_delta_text(&in, c->nvalues, c->value, &c->made);
	else if (encoding == ENC_SPLIT && type != HD_PARQUET_BYTES && type != HD_PARQUET_BOOLEAN)
		good = hd_parquet_split(&in, c->leaf, c->nvalues, c->value);
	else
		return refused(c, "encoding", encoding, diag);
	return good ? HD_OK : damaged(c, "the values of a page are damaged", diag);
}

static enum hd_err take_page(struct hd_parquet_cursor *c, const struct page_head *h,
	struct hd_parquet_bytes from,
	struct hd_diag *diag)
{
	struct hd_parquet_bytes in, rep, def;
	enum hd_err err = unpack(c, from, (size_t)h->unpacked, &c->page, &c->page_cap, &in, diag);

	if (err)
		return err;
	if ((c->leaf->max_def && h->def_encoding != ENC_RLE) || (c->leaf->max_rep &&
		h->rep_encoding != ENC_RLE))
		return refused(c, "levels of encoding", h->def_encoding, diag);
	if (!cut_levels(&in, c->leaf->max_rep, &rep) || !cut_levels(&in, c->leaf->max_def, &def))
		return damaged(c, "the levels of a page are cut off", diag);
	err = put_levels(c, rep, def, (uint32_t)h->n, diag);
	return err ? err : put_values(c, h->encoding, in, diag);
}

/* Version 2: levels stand in front, not packed. */
static enum hd_err take_page2(struct hd_parquet_cursor *c, const struct page_head *h,
	struct hd_parquet_bytes from,
	struct hd_diag *diag)
{
	struct hd_parquet_bytes in = from;

	/* each by itself: their sum might be none */
	if (h->rep_bytes < 0 || h->def_bytes < 0 || h->rep_bytes > h->packed ||
		h->def_bytes > h->packed - h->rep_bytes || h->rep_bytes + h->def_bytes > h->unpacked)
		return damaged(c, "the levels of a page are cut off", diag);
	const int64_t levels = h->rep_bytes + h->def_bytes;
	const struct hd_parquet_bytes rep = { from.at, from.at + h->rep_bytes },
		def = { rep.end, rep.end + h->def_bytes };
	in.at = def.end;
	enum hd_err err = h->is_packed ? unpack(c, in, (size_t)(h->unpacked - levels), &c->page, &c->page_cap,
		&in, diag)
		: HD_OK;
	if (!err)
		err = put_levels(c, rep, def, (uint32_t)h->n, diag);
	return err ? err : put_values(c, h->encoding, in, diag);
}

static enum hd_err one_page(struct hd_parquet_cursor *c, struct hd_diag *diag)
{
	struct page_head h;
	enum hd_err err = read_head(c, &h, diag);

	if (err)
		return err;
	const struct hd_parquet_bytes from = { c->chunk.at, c->chunk.at + h.packed };
	c->chunk.at = from.end;
	if (h.type == PAGE_DICTIONARY)
		return take_dictionary(c, &h, from, diag);
	if (h.type != PAGE_DATA && h.type != PAGE_DATA2)
		return h.type == PAGE_INDEX ? HD_OK : refused(c, "a page of kind", h.type, diag);
	if ((uint64_t)h.n > c->left)
		return damaged(c, "it has more values than the footer says", diag);
	hd_free(c->made);
	c->made = NULL;
	err = h.type == PAGE_DATA ? take_page(c, &h, from, diag) : take_page2(c, &h, from, diag);
	c->left -= (uint64_t)h.n;
	c->n = err ? 0 : (uint32_t)h.n;
	c->i = c->ivalue = 0;
	return err;
}

enum hd_err hd_parquet_page_next(struct hd_parquet_cursor *c, bool *found, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	assert(c->i == c->n);
	c->i = c->n = 0;
	while (!err && !c->n && c->left) {
		if (c->chunk.at == c->chunk.end)
			return damaged(c, "it has fewer values than the footer says", diag);
		err = one_page(c, diag);
	}
	*found = c->n != 0;
	return err;
}
