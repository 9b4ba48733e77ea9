#include "data/token_write.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/le.h"
#include "data/tokens.h"

static enum hd_err open_one(struct hd_file *file, struct hd_fs *fs, const char *path, char final[HD_PATH_CAP],
	char temporary[HD_PATH_CAP], struct hd_diag *diag)
{
	if (strlen(path) + sizeof ".tmp" > HD_PATH_CAP)
		return hd_fail(diag, HD_E_INVAL, "the path of the output is longer than %d bytes",
			HD_PATH_CAP);
	snprintf(final, HD_PATH_CAP, "%s", path);
	snprintf(temporary, HD_PATH_CAP, "%.*s.tmp", HD_PATH_CAP - 5, path);
	struct hd_diag busy = { "" };
	struct hd_stat stat;
	enum hd_err err = hd_file_open(fs, temporary, HD_OPEN_WRITE | HD_OPEN_CREATE, file, diag);
	if (err)
		return err;
	/* between the two the other may have ended: then it is a whole file, under its name */
	if (!(err = hd_file_lock(file, &busy)) && hd_fs_stat(fs, temporary, &stat, NULL))
		err = HD_E_AGAIN;
	if (!err)
		return hd_file_truncate(file, 0, diag);
	enum hd_err closed = hd_file_close(file, NULL);      /* it is the other's */
	(void)closed;
	return err != HD_E_AGAIN ? hd_fail(diag, err, "%s", busy.text) : hd_fail(diag, HD_E_REFUSED,
		"%s is being written by another process: wait until it ends, or give another name", path);
}

enum hd_err hd_token_out_begin(struct hd_token_out *out, struct hd_fs *fs, const char *path,
	const char *boundaries, uint32_t width_bytes, struct hd_diag *diag)
{
	enum hd_err err;

	assert(width_bytes == 2 || width_bytes == 4);
	memset(out, 0, sizeof *out);
	out->width_bytes = width_bytes;
	if ((err = open_one(&out->file, fs, path, out->path, out->temporary, diag)) || (boundaries && (err =
		open_one(&out->boundaries, fs, boundaries, out->boundaries_path, out->boundaries_temporary,
			diag))))
		return err;
	/* filled in at the end */
	return hd_file_write(&out->file, out->buffer, HD_TOKENS_HEADER_BYTES, diag);
}

static enum hd_err put_boundary(struct hd_token_out *out, struct hd_diag *diag)
{
	uint8_t bytes[8];

	hd_put64(bytes, out->ntokens);
	return out->boundaries.fs ? hd_file_write(&out->boundaries, bytes, sizeof bytes, diag) : HD_OK;
}

enum hd_err hd_token_out_add(struct hd_token_out *out, const uint32_t *ids, uint32_t n, struct hd_diag *diag)
{
	enum hd_err err = put_boundary(out, diag);

	if (!err && out->ntokens + n > INT32_MAX)
		return hd_fail(diag, HD_E_INVAL, "%s would have more than %d tokens, which its header "
			"cannot say: "
			"give fewer texts at a time", out->path, INT32_MAX);
	for (uint32_t i = 0; i < n && !err; ) {
		uint32_t k = 0;
		for (; i < n && (k + 1) * out->width_bytes <= sizeof out->buffer; i++, k++) {
			if (out->width_bytes == 2)
				hd_put16(out->buffer + 2 * k, (uint16_t)ids[i]);
			else
				hd_put32(out->buffer + 4 * k, ids[i]);
		}
		err = hd_file_write(&out->file, out->buffer, (size_t)k * out->width_bytes, diag);
	}
	out->ntokens += n;
	out->ndocuments++;
	return err;
}

static enum hd_err put_header(struct hd_token_out *out, struct hd_diag *diag)
{
	uint8_t head[12];

	hd_put32(head, out->width_bytes == 2 ? HD_TOKENS_MAGIC : HD_TOKENS_MAGIC32);
	hd_put32(head + 4, out->width_bytes == 2 ? HD_TOKENS_VERSION : HD_TOKENS_VERSION32);
	hd_put32(head + 8, (uint32_t)out->ntokens);
	return hd_file_pwrite(&out->file, head, sizeof head, 0, diag);
}

static enum hd_err end_one(struct hd_file *file, const char *temporary, const char *final, bool keep,
	struct hd_diag *diag)
{
	struct hd_fs *fs = file->fs;
	enum hd_err err = HD_OK;

	if (!fs)
		return HD_OK;
	if (keep)
		err = hd_file_sync(file, diag);
	enum hd_err closed = hd_file_close(file, err ? NULL : diag);
	err = err ? err : closed;
	if (!err && keep)
		return hd_fs_rename(fs, temporary, final, diag);
	enum hd_err gone = hd_fs_unlink(fs, temporary, NULL);
	return err ? err : gone;
}

enum hd_err hd_token_out_end(struct hd_token_out *out, bool keep, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	if (keep && out->file.fs && !(err = put_boundary(out, diag)))
		err = put_header(out, diag);
	keep = keep && !err;
	enum hd_err second = end_one(&out->boundaries, out->boundaries_temporary, out->boundaries_path, keep,
		err ? NULL : diag);
	err = err ? err : second;
	enum hd_err first = end_one(&out->file, out->temporary, out->path, keep && !err, err ? NULL : diag);
	return err ? err : first;
}
