#include "data/token_write.h"

#include <assert.h>
#include <string.h>

#include "base/le.h"
#include "data/tokens.h"

enum hd_err hd_token_out_begin(struct hd_token_out *out, struct hd_fs *fs, const char *path,
	const char *boundaries, uint32_t width_bytes, struct hd_diag *diag)
{
	enum hd_err err;

	assert(width_bytes == 2 || width_bytes == 4);
	memset(out, 0, sizeof *out);
	out->width_bytes = width_bytes;
	if ((err = hd_out_file_begin(&out->file, fs, path, diag)) || (boundaries &&
		(err = hd_out_file_begin(&out->boundaries, fs, boundaries, diag))))
		return err;
	/* filled in at the end */
	return hd_file_write(&out->file.file, out->buffer, HD_TOKENS_HEADER_BYTES, diag);
}

static enum hd_err put_boundary(struct hd_token_out *out, struct hd_diag *diag)
{
	uint8_t bytes[8];

	hd_put64(bytes, out->ntokens);
	return out->boundaries.file.fs ? hd_file_write(&out->boundaries.file, bytes, sizeof bytes, diag) :
		HD_OK;
}

enum hd_err hd_token_out_add(struct hd_token_out *out, const uint32_t *ids, uint32_t n, struct hd_diag *diag)
{
	enum hd_err err = put_boundary(out, diag);

	if (!err && out->ntokens + n > INT32_MAX)
		return hd_fail(diag, HD_E_INVAL, "%s would have more than %d tokens, which its header "
			"cannot say: "
			"give fewer texts at a time", out->file.path, INT32_MAX);
	for (uint32_t i = 0; i < n && !err; ) {
		uint32_t k = 0;
		for (; i < n && (k + 1) * out->width_bytes <= sizeof out->buffer; i++, k++) {
			if (out->width_bytes == 2)
				hd_put16(out->buffer + 2 * k, (uint16_t)ids[i]);
			else
				hd_put32(out->buffer + 4 * k, ids[i]);
		}
		err = hd_file_write(&out->file.file, out->buffer, (size_t)k * out->width_bytes, diag);
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
	return hd_file_pwrite(&out->file.file, head, sizeof head, 0, diag);
}

enum hd_err hd_token_out_end(struct hd_token_out *out, bool keep, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	if (keep && out->file.file.fs && !(err = put_boundary(out, diag)))
		err = put_header(out, diag);
	keep = keep && !err;
	enum hd_err second = hd_out_file_end(&out->boundaries, keep, err ? NULL : diag);
	err = err ? err : second;
	enum hd_err first = hd_out_file_end(&out->file, keep && !err, err ? NULL : diag);
	return err ? err : first;
}
