#include "data/documents.h"

#include <string.h>

#include "base/alloc.h"
#include "base/grow.h"
#include "data/parquet.h"

void hd_documents_init(struct hd_documents *d, struct hd_fs *fs, const char *const *texts, uint32_t ntexts,
	bool lines, const char *field, size_t batch_bytes, size_t document_cap)
{
	*d = (struct hd_documents){ .fs = fs, .texts = texts, .ntexts = ntexts, .lines = lines || field,
		.field = field, .batch_bytes = batch_bytes, .document_cap = document_cap };
}

struct hd_document_rows { struct hd_map map; struct hd_arena arena; struct hd_parquet file;
	struct hd_parquet_rows rows; };

static void close_rows(struct hd_documents *d)
{
	if (!d->rows)
		return;
	hd_parquet_rows_finish(&d->rows->rows);
	hd_arena_finish(&d->rows->arena);
	hd_file_unmap(d->fs, &d->rows->map);
	hd_free(d->rows);
	d->rows = NULL;
}

static enum hd_err close_text(struct hd_documents *d, struct hd_diag *diag)
{
	bool open = d->open;

	close_rows(d);

	d->open = false;
	return open && !d->stdin_open ? hd_file_close(&d->file, diag) : HD_OK;
}

void hd_documents_finish(struct hd_documents *d)
{
	enum hd_err err = close_text(d, NULL);       /* it was read */

	(void)err;
	hd_free(d->ahead);
	hd_free(d->bytes);
	hd_free(d->at);
	*d = (struct hd_documents){ 0 };
}

/* A file that begins as Parquet does, when a field of its rows is asked for. */
static enum hd_err open_rows(struct hd_documents *d, const char *path, struct hd_diag *diag)
{
	char head[4];
	size_t got;
	enum hd_err err = hd_file_pread(&d->file, head, sizeof head, 0, &got, diag);

	if (err || got < sizeof head || memcmp(head, "PAR1", sizeof head) != 0)
		return err;
	d->rows = hd_alloc(sizeof *d->rows);
	if (!d->rows)
		return hd_fail(diag, HD_E_NOMEM, "no memory to read %s", path);
	memset(d->rows, 0, sizeof *d->rows);
	hd_arena_init(&d->rows->arena, 0);
	if ((err = hd_file_map(&d->file, &d->rows->map, diag)) || (err = hd_parquet_open(&d->rows->file,
		&d->rows->arena, d->rows->map.bytes, d->rows->map.len, path, diag)))
		return err;
	return hd_parquet_rows_begin(&d->rows->rows, &d->rows->file, &d->field, 1, diag);
}

static enum hd_err open_text(struct hd_documents *d, struct hd_diag *diag)
{
	const char *path = d->texts[d->itext];
	enum hd_err err = HD_OK;

	d->stdin_open = !strcmp(path, "-");
	if (d->stdin_open)
		d->file = (struct hd_file){ .fs = d->fs, .id = 0, .name = "stdin" };
	else
		err = hd_file_open(d->fs, path, HD_OPEN_READ, &d->file, diag);
	d->open = !err;
	if (!err && d->field && !d->stdin_open)
		err = open_rows(d, path, diag);
	d->ended = false;
	d->ahead_at = d->ahead_len = 0;
	d->line = 0;
	return err;
}

static enum hd_err too_long(const struct hd_documents *d, struct hd_diag *diag)
{
	return hd_fail(diag, HD_E_INPUT, "%s: a document of more than %zu bytes: split it, or take each "
		"line for "
		"one (--lines)", d->texts[d->itext], d->document_cap);
}

static enum hd_err add(struct hd_documents *d, struct hd_document document, struct hd_diag *diag)
{
	enum hd_err err = hd_grow(&d->at, &d->cap, (uint64_t)d->n + 1, sizeof *d->at, "documents", diag);

	if (!err)
		d->at[d->n++] = document;
	return err;
}

/* The file as one document, after what the batch has. */
static enum hd_err take_whole(struct hd_documents *d, struct hd_diag *diag)
{
	const size_t at = d->len;
	size_t got = 1;
	enum hd_err err = HD_OK;

	while (got && !err) {
		if (d->len - at > d->document_cap)
			return too_long(d, diag);
		if ((err = hd_grow(&d->bytes, &d->bytes_cap, d->len + HD_DOCUMENTS_READ, 1, "bytes of text",
			diag)))
			return err;
		err = hd_file_read(&d->file, d->bytes + d->len, HD_DOCUMENTS_READ, &got, diag);
		d->len += err ? 0 : got;
	}
	if (err || d->len == at)
		return err;
	return add(d, (struct hd_document){ at, d->len - at, d->itext, 0, false }, diag);
}

/* More of the file behind what is not given yet. */
static enum hd_err read_ahead(struct hd_documents *d, struct hd_diag *diag)
{
	size_t got;

	if (d->ahead)
		memmove(d->ahead, d->ahead + d->ahead_at, d->ahead_len - d->ahead_at);
	d->ahead_len -= d->ahead_at;
	d->ahead_at = 0;
	if (d->ahead_len > d->document_cap)
		return too_long(d, diag);
	enum hd_err err = hd_grow(&d->ahead, &d->ahead_cap, d->ahead_len + HD_DOCUMENTS_READ, 1,
		"bytes of text",
		diag);
	if (err || (err = hd_file_read(&d->file, d->ahead + d->ahead_len, HD_DOCUMENTS_READ, &got, diag)))
		return err;
	d->ahead_len += got;
	d->ended = got == 0;
	return HD_OK;
}

/* *found: a line, which may be empty; else the file is over. */
static enum hd_err take_line(struct hd_documents *d, bool *found, struct hd_diag *diag)
{
	size_t looked = 0;
	enum hd_err err;

	for (*found = false; ; ) {
		const uint8_t *from = d->ahead ? d->ahead + d->ahead_at : NULL;
		const size_t left = d->ahead_len - d->ahead_at;
		const uint8_t *end = left > looked ? memchr(from + looked, '\n', left - looked) : NULL;
		if (!end && !d->ended) {
			looked = left;
			if ((err = read_ahead(d, diag)))
				return err;
			continue;
		}
		const size_t len = end ? (size_t)(end - from) : left;
		if (!end && !left)
			return HD_OK;
		*found = true;
		d->line++;
		d->ahead_at += len + (end != NULL);
		if (!len || (len == 1 && from[0] == '\r'))
			return HD_OK;
		if ((err = hd_grow(&d->bytes, &d->bytes_cap, d->len + len, 1, "bytes of text", diag)))
			return err;
		memcpy(d->bytes + d->len, from, len);
		d->len += len;
		return add(d, (struct hd_document){ d->len - len, len, d->itext, d->line, false }, diag);
	}
}

/* *found: a row; an empty text is no document, as an empty line is none. */
static enum hd_err take_row(struct hd_documents *d, bool *found, struct hd_diag *diag)
{
	struct hd_row_cell cell;
	enum hd_err err;

	*found = hd_parquet_more(&d->rows->rows);
	if (!*found || (err = hd_parquet_next(&d->rows->rows, &cell, diag)))
		return *found ? err : HD_OK;
	d->line++;
	if (cell.kind != HD_ROW_TEXT)
		return hd_fail(diag, HD_E_INPUT, "%.300s row %llu: \"%.60s\" %s", d->texts[d->itext],
			(unsigned long long)d->line, d->field, cell.kind == HD_ROW_NONE ?
			"has no value here: fill it in" :
			"holds numbers, not a text");
	if (!cell.len)
		return HD_OK;
	if ((err = hd_grow(&d->bytes, &d->bytes_cap, d->len + cell.len, 1, "bytes of text", diag)))
		return err;
	memcpy(d->bytes + d->len, cell.text, cell.len);
	d->len += cell.len;
	return add(d, (struct hd_document){ d->len - cell.len, cell.len, d->itext, d->line, true }, diag);
}

static enum hd_err take(struct hd_documents *d, struct hd_diag *diag)
{
	bool found = false;
	enum hd_err err = d->open ? HD_OK : open_text(d, diag);

	if (!err)
		err = d->rows ? take_row(d, &found, diag) : d->lines ? take_line(d, &found, diag) :
			take_whole(d, diag);
	if (err || found)
		return err;
	d->itext++;
	return close_text(d, diag);
}

enum hd_err hd_documents_next(struct hd_documents *d, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	d->n = 0;
	d->len = 0;
	while (!err && d->itext < d->ntexts && (!d->n || d->len < d->batch_bytes) && d->n < HD_DOCUMENTS_CAP)
		err = take(d, diag);
	return err;
}
