#include "data/documents.h"

#include <string.h>

#include "base/alloc.h"
#include "base/grow.h"

void hd_documents_init(struct hd_documents *d, struct hd_fs *fs, const char *const *texts, uint32_t ntexts,
	bool lines, size_t batch_bytes, size_t document_cap)
{
	*d = (struct hd_documents){ .fs = fs, .texts = texts, .ntexts = ntexts, .lines = lines,
		.batch_bytes = batch_bytes, .document_cap = document_cap };
}

static enum hd_err close_text(struct hd_documents *d, struct hd_diag *diag)
{
	bool open = d->open;

	d->open = false;
	return open && d->file.id > 0 ? hd_file_close(&d->file, diag) : HD_OK;
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

static enum hd_err open_text(struct hd_documents *d, struct hd_diag *diag)
{
	const char *path = d->texts[d->itext];
	enum hd_err err = HD_OK;

	if (!strcmp(path, "-"))
		d->file = (struct hd_file){ .fs = d->fs, .id = 0, .name = "stdin" };
	else
		err = hd_file_open(d->fs, path, HD_OPEN_READ, &d->file, diag);
	d->open = !err;
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
	return add(d, (struct hd_document){ at, d->len - at, d->itext, 0 }, diag);
}

/* More of the file behind what is not given yet. */
static enum hd_err read_ahead(struct hd_documents *d, struct hd_diag *diag)
{
	size_t got;

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
		const uint8_t *from = d->ahead + d->ahead_at;
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
		return add(d, (struct hd_document){ d->len - len, len, d->itext, d->line }, diag);
	}
}

static enum hd_err take(struct hd_documents *d, struct hd_diag *diag)
{
	bool found = false;
	enum hd_err err = d->open ? HD_OK : open_text(d, diag);

	if (!err)
		err = d->lines ? take_line(d, &found, diag) : take_whole(d, diag);
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
