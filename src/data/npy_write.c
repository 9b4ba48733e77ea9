#include "data/npy_write.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

enum { HD_NPY_ALIGN = 64, HD_NPY_PREFIX = 10, HD_NPY_HEADER_CAP = 512 };

/* Magic, version, length, then a Python dictionary padded with blanks so that the numbers begin aligned. */
static size_t header(char room[HD_NPY_HEADER_CAP], uint32_t rank, const int64_t *dim, enum hd_dtype dtype)
{
	struct hd_text text;

	memset(room, 0, HD_NPY_HEADER_CAP);
	hd_text_fixed(&text, room + HD_NPY_PREFIX, HD_NPY_HEADER_CAP - HD_NPY_PREFIX);
	hd_text_addf(&text, "{'descr': '<%c4', 'fortran_order': False, 'shape': (", dtype == HD_F32 ? 'f' :
		'i');
	for (uint32_t i = 0; i < rank; i++)
		hd_text_addf(&text, "%lld,%s", (long long)dim[i], i + 1 < rank ? " " : "");
	hd_text_add(&text, "), }");
	while ((HD_NPY_PREFIX + text.len + 1) % HD_NPY_ALIGN)
		hd_text_add(&text, " ");
	hd_text_add(&text, "\n");
	memcpy(room, "\x93NUMPY\x01\x00", 8);
	room[8] = (char)(text.len & 0xff);
	room[9] = (char)(text.len >> 8);
	return HD_NPY_PREFIX + text.len;
}

enum hd_err hd_npy_begin(struct hd_npy_out *out, struct hd_fs *fs, const char *path, uint32_t rank,
	const int64_t *dim, enum hd_dtype dtype, struct hd_diag *diag)
{
	char room[HD_NPY_HEADER_CAP];
	enum hd_err err;

	assert(rank >= 1 && rank <= HD_NPY_RANK && (dtype == HD_F32 || dtype == HD_I32));
	*out = (struct hd_npy_out){ .row_elems = 1 };
	if (snprintf(out->path, sizeof out->path, "%s", path) + (int)sizeof ".tmp" > (int)sizeof out->path)
		return hd_fail(diag, HD_E_INVAL, "the path of the output is longer than %zu bytes",
			sizeof out->path);
	snprintf(out->temporary, sizeof out->temporary, "%.*s.tmp", (int)sizeof out->path - 5, path);
	for (uint32_t i = 1; i < rank; i++)
		out->row_elems *= (uint64_t)dim[i];
	out->header_bytes = header(room, rank, dim, dtype);
	err = hd_file_open(fs, out->temporary, HD_OPEN_WRITE | HD_OPEN_CREATE | HD_OPEN_TRUNCATE, &out->file,
		diag);
	return err ? err : hd_file_pwrite(&out->file, room, out->header_bytes, 0, diag);
}

void hd_npy_rows(struct hd_npy_out *out, uint64_t first, uint64_t nrows, const void *at)
{
	uint64_t row_bytes = out->row_elems * 4;
	int none = HD_OK;
	enum hd_err err = hd_file_pwrite(&out->file, at, nrows * row_bytes,
		(int64_t)(out->header_bytes + first * row_bytes), NULL);

	if (err)
		atomic_compare_exchange_strong(&out->err, &none, (int)err);
}

enum hd_err hd_npy_end(struct hd_npy_out *out, bool keep, struct hd_diag *diag)
{
	struct hd_fs *fs = out->file.fs;
	enum hd_err err = (enum hd_err)atomic_load(&out->err);

	if (!fs)
		return HD_OK;
	if (err)
		err = hd_fail(diag, err, "%s could not be written: %s", out->path, hd_err_text(err));
	if (!err && keep)
		err = hd_file_sync(&out->file, diag);
	enum hd_err closed = hd_file_close(&out->file, err ? NULL : diag);
	err = err ? err : closed;
	if (!err && keep)
		return hd_fs_rename(fs, out->temporary, out->path, diag);
	enum hd_err gone = hd_fs_unlink(fs, out->temporary, NULL);
	return err ? err : gone;
}
