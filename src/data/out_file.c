#include "data/out_file.h"

#include <stdio.h>
#include <string.h>

enum hd_err hd_out_file_begin(struct hd_out_file *out, struct hd_fs *fs, const char *path,
	struct hd_diag *diag)
{
	struct hd_diag busy = { "" };
	struct hd_stat stat;

	*out = (struct hd_out_file){ .file = { .fs = NULL } };
	if (strlen(path) + sizeof ".tmp" > HD_PATH_CAP)
		return hd_fail(diag, HD_E_INVAL, "the path of the output is longer than %d bytes",
			HD_PATH_CAP);
	snprintf(out->path, HD_PATH_CAP, "%s", path);
	snprintf(out->temporary, HD_PATH_CAP, "%.*s.tmp", HD_PATH_CAP - 5, path);
	enum hd_err err = hd_file_open(fs, out->temporary, HD_OPEN_WRITE | HD_OPEN_CREATE, &out->file, diag);
	if (err)
		return err;
	/* between the two the other may have ended: then it is a whole file, under its name */
	if (!(err = hd_file_lock(&out->file, &busy)) && hd_fs_stat(fs, out->temporary, &stat, NULL))
		err = HD_E_AGAIN;
	if (!err)
		return hd_file_truncate(&out->file, 0, diag);
	enum hd_err closed = hd_file_close(&out->file, NULL);      /* it is the other's */
	(void)closed;
	return err != HD_E_AGAIN ? hd_fail(diag, err, "%s", busy.text) : hd_fail(diag, HD_E_REFUSED,
		"%s is being written by another process: wait until it ends, or give another name", path);
}

enum hd_err hd_out_file_end(struct hd_out_file *out, bool keep, struct hd_diag *diag)
{
	struct hd_fs *fs = out->file.fs;
	enum hd_err err = HD_OK;

	if (!fs)
		return HD_OK;
	if (keep)
		err = hd_file_sync(&out->file, diag);
	enum hd_err closed = hd_file_close(&out->file, err ? NULL : diag);
	err = err ? err : closed;
	if (!err && keep && !(err = hd_fs_rename(fs, out->temporary, out->path, diag)))
		return HD_OK;
	enum hd_err gone = hd_fs_unlink(fs, out->temporary, NULL);
	return err ? err : gone;
}
