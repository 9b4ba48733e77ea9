#define _GNU_SOURCE        /* of the C library: memrchr */
#include "sys/lines.h"

#include <assert.h>
#include <string.h>

enum { PIECE = 4096 };

/* Where the last whole record ends, looked for from the end of the file on. */
static enum hd_err find_end(const struct hd_file *file, int64_t size_bytes, int64_t *end_bytes,
	struct hd_diag *diag)
{
	char piece[PIECE];

	for (int64_t end = size_bytes; end > 0; end -= end < PIECE ? end : PIECE) {
		int64_t from = end < PIECE ? 0 : end - PIECE;
		size_t got = 0;
		enum hd_err err = hd_file_pread(file, piece, (size_t)(end - from), from, &got, diag);
		if (err)
			return err;
		const char *last = memrchr(piece, '\n', got);
		if (last) {
			*end_bytes = from + (last - piece) + 1;
			return HD_OK;
		}
	}
	*end_bytes = 0;
	return HD_OK;
}

static enum hd_err cut(struct hd_lines *lines, struct hd_diag *diag)
{
	enum hd_err err = hd_file_truncate(&lines->file, lines->end_bytes, diag);

	lines->torn = err != HD_OK;
	return err;
}

enum hd_err hd_lines_open(struct hd_lines *lines, struct hd_fs *fs, const char *path, struct hd_diag *diag)
{
	struct hd_stat stat;

	*lines = (struct hd_lines){ 0 };
	enum hd_err err = hd_file_open(fs, path, HD_OPEN_WRITE | HD_OPEN_CREATE | HD_OPEN_APPEND,
		&lines->file, diag);
	if (!err)
		err = hd_fs_stat(fs, path, &stat, diag);
	if (!err)
		err = find_end(&lines->file, stat.size_bytes, &lines->end_bytes, diag);
	if (!err && lines->end_bytes < stat.size_bytes)
		err = cut(lines, diag);
	if (err) {
		(void)!hd_lines_close(lines, NULL);
		return err;
	}
	assert(lines->end_bytes <= stat.size_bytes && !lines->torn);
	return HD_OK;
}

enum hd_err hd_lines_add(struct hd_lines *lines, const char *text, size_t len, struct hd_diag *diag)
{
	if (!lines->file.fs)
		return HD_OK;
	assert(len > 0 && text[len - 1] == '\n');
	enum hd_err err = lines->torn ? cut(lines, diag) : HD_OK;
	if (!err) {
		err = hd_file_write(&lines->file, text, len, diag);
		if (err)
			(void)!cut(lines, NULL);
	}
	if (err) {
		for (size_t i = 0; i < len; i++)
			lines->lost += text[i] == '\n';
		return err;
	}
	lines->end_bytes += (int64_t)len;
	return HD_OK;
}

enum hd_err hd_lines_close(struct hd_lines *lines, struct hd_diag *diag)
{
	return hd_file_close(&lines->file, diag);
}
