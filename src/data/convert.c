#include "data/convert.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/crc32c.h"
#include "base/le.h"
#include "sys/signal.h"
#include "data/named.h"
#include "data/npy_write.h"
#include "data/out_file.h"
#include "data/record.h"
#include "data/token_write.h"

/* One conversion: rows of `forms` are what kinds there are. */
struct conversion {
	struct hd_convert own;            /* without slashes at the end of its path */
	char out[HD_PATH_CAP];
	const struct hd_convert *how;
	const struct hd_dataset *set;
	struct hd_fs *fs;
	uint64_t n;                       /* samples */
	void *field[HD_MAX_FIELDS];       /* a sample */
	struct hd_out_file record;
	struct hd_file folder; char folder_path[HD_PATH_CAP];
	struct hd_npy_out npy[2];
	struct hd_token_out tokens;
	int32_t last;                     /* tokens: the label that the next sample begins with */
	uint32_t most;                    /* tokens: the largest */
};

static enum hd_err unfit(const struct conversion *c, const char *why, struct hd_diag *diag)
{
	return hd_fail(diag, HD_E_INPUT, "%s cannot be kept as %s: %s", c->set->about, c->how->to, why);
}

static enum hd_err read_one(const struct conversion *c, uint64_t i, struct hd_diag *diag)
{
	enum hd_err err = c->set->ops->read(c->set, c->how->split, i, c->field, diag);

	if (!err)
		hd_shares_make(c->set, c->field);
	return err;
}

static enum hd_err stopped(const struct conversion *c, struct hd_diag *diag)
{
	const enum hd_err stop = hd_stop_err(hd_signal_stop());

	return stop ? hd_fail(diag, stop, "stopped: %s is not written, nor is anything left of it",
		c->how->out) : HD_OK;
}

/* ---- npy ---- */

static enum hd_err npy_begin(struct conversion *c, struct hd_diag *diag)
{
	static const char *const names[] = { "x.npy", "y.npy" };
	char path[HD_PATH_CAP];
	enum hd_err err;

	if (snprintf(c->folder_path, HD_PATH_CAP, "%s.tmp", c->how->out) + 16 > HD_PATH_CAP)
		return hd_fail(diag, HD_E_INVAL, "the path of the output is longer than %d bytes",
			HD_PATH_CAP);
	if ((err = hd_fs_mkdirs(c->fs, c->folder_path, diag)) || (err = hd_file_open(c->fs, c->folder_path,
		HD_OPEN_FOLDER, &c->folder, diag)))
		return err;
	if ((err = hd_file_lock(&c->folder, NULL))) {
		enum hd_err closed = hd_file_close(&c->folder, NULL);      /* it is the other's */
		(void)closed;
		return hd_fail(diag, HD_E_REFUSED, "%s is being written by another process: wait until it "
			"ends, or give "
			"another name", c->how->out);
	}
	for (int f = 0; f < 2 && !err; f++) {
		const struct hd_field *field = &c->set->field[f];
		int64_t dim[HD_NPY_RANK] = { (int64_t)c->n };
		memcpy(dim + 1, field->dim, field->rank * sizeof *dim);
		(void)snprintf(path, sizeof path, "%.*s/%s", HD_PATH_CAP - 16, c->folder_path, names[f]);
		err = hd_npy_begin(&c->npy[f], c->fs, path, field->rank + 1u, dim,
			(enum hd_dtype)field->dtype, diag);
	}
	return err;
}

static enum hd_err npy_put(struct conversion *c, uint64_t i, struct hd_diag *diag)
{
	(void)diag;
	hd_npy_rows(&c->npy[0], i, 1, c->field[0]);
	hd_npy_rows(&c->npy[1], i, 1, c->field[1]);
	return HD_OK;
}

static enum hd_err npy_end(struct conversion *c, bool keep, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	if (!c->folder.fs)
		return HD_OK;
	for (int f = 0; f < 2; f++) {
		enum hd_err ended = hd_npy_end(&c->npy[f], keep && !err, err ? NULL : diag);
		err = err ? err : ended;
	}
	keep = keep && !err;
	if (keep && !(err = hd_fs_sync_folder(c->fs, c->folder_path, diag)))
		err = hd_fs_rename(c->fs, c->folder_path, c->how->out, diag);
	if (!keep || err) {
		enum hd_err gone = hd_fs_remove_tree(c->fs, c->folder_path, NULL);
		err = err ? err : gone;
	}
	enum hd_err closed = hd_file_close(&c->folder, err ? NULL : diag);
	return err ? err : closed;
}

/* ---- records ---- */

static enum hd_err records_fit(const struct conversion *c, struct hd_diag *diag)
{
	const struct hd_field *x = &c->set->field[0], *y = &c->set->field[1];

	return y->dtype == HD_F32 || y->rank == 0 || (x->dtype == HD_I32 && y->rank == 1 &&
		y->dim[0] == x->dim[0]) ?
		HD_OK : unfit(c, "its labels are lists, which npy holds", diag);
}

static enum hd_err records_begin(struct conversion *c, struct hd_diag *diag)
{
	return hd_out_file_begin(&c->record, c->fs, c->how->out, diag);
}

static enum hd_err records_put(struct conversion *c, uint64_t i, struct hd_diag *diag)
{
	const uint64_t nx = c->set->field[0].sample_bytes, ny = c->set->field[1].sample_bytes;
	uint8_t head[HD_RECORD_HEAD], tail[HD_RECORD_TAIL];
	enum hd_err err;

	(void)i;                                             /* numbers lie little end first, as in files */
	hd_put64(head, nx + ny);
	hd_put32(head + 8, hd_record_check(hd_crc32c(0, head, 8)));
	hd_put32(tail, hd_record_check(hd_crc32c(hd_crc32c(0, c->field[0], nx), c->field[1], ny)));
	if ((err = hd_file_write(&c->record.file, head, sizeof head, diag)) ||
		(err = hd_file_write(&c->record.file,
		c->field[0], nx, diag)) || (err = hd_file_write(&c->record.file, c->field[1], ny, diag)))
		return err;
	return hd_file_write(&c->record.file, tail, sizeof tail, diag);
}

static enum hd_err records_end(struct conversion *c, bool keep, struct hd_diag *diag)
{
	return hd_out_file_end(&c->record, keep, diag);
}

/* ---- tokens ---- */

static enum hd_err look_at_tokens(struct conversion *c, uint64_t i, struct hd_diag *diag)
{
	const uint32_t n = (uint32_t)c->set->field[0].dim[0];
	const int32_t *x = c->field[0], *y = c->field[1];
	bool follows = i == 0 || x[0] == c->last;

	for (uint32_t j = 0; j < n; j++) {
		follows = follows && x[j] >= 0 && y[j] >= 0 && (j + 1 == n || y[j] == x[j + 1]);
		c->most = x[j] >= 0 && (uint32_t)x[j] > c->most ? (uint32_t)x[j] : c->most;
	}
	c->most = y[n - 1] >= 0 && (uint32_t)y[n - 1] > c->most ? (uint32_t)y[n - 1] : c->most;
	c->last = y[n - 1];
	return follows ? HD_OK : unfit(c, "its samples are no row of tokens that was cut up", diag);
}

static enum hd_err tokens_fit(const struct conversion *c, struct hd_diag *diag)
{
	const struct hd_field *x = &c->set->field[0], *y = &c->set->field[1];

	return x->dtype == HD_I32 && y->dtype == HD_I32 && x->rank == 1 && y->rank == 1 &&
		x->dim[0] == y->dim[0] ?
		HD_OK : unfit(c, "a sample is no row of tokens with a label each", diag);
}

/* All of them are looked at before the first is written: whether they are one row, and how wide they are. */
static enum hd_err tokens_begin(struct conversion *c, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	for (uint64_t i = 0; i < c->n && !err; i++)
		if (!(err = stopped(c, diag)) && !(err = read_one(c, i, diag)))
			err = look_at_tokens(c, i, diag);
	return err ? err : hd_token_out_begin(&c->tokens, c->fs, c->how->out, NULL, c->most > UINT16_MAX ? 4 :
		2, diag);
}

static enum hd_err tokens_put(struct conversion *c, uint64_t i, struct hd_diag *diag)
{
	const uint32_t n = (uint32_t)c->set->field[0].dim[0];
	uint32_t last;
	enum hd_err err = hd_token_out_add(&c->tokens, c->field[0], n, diag);

	memcpy(&last, (const int32_t *)c->field[1] + n - 1, sizeof last);
	return err || i + 1 < c->n ? err : hd_token_out_add(&c->tokens, &last, 1, diag);
}

static enum hd_err tokens_end(struct conversion *c, bool keep, struct hd_diag *diag)
{
	return hd_token_out_end(&c->tokens, keep, diag);
}

/* ---- any kind ---- */

static enum hd_err any_fits(const struct conversion *c, struct hd_diag *diag)
{
	(void)c;
	(void)diag;
	return HD_OK;
}

static const struct convert_form {
	const char *kind;
	enum hd_err (*fits)(const struct conversion *c, struct hd_diag *diag);
	enum hd_err (*begin)(struct conversion *c, struct hd_diag *diag);
	enum hd_err (*put)(struct conversion *c, uint64_t i, struct hd_diag *diag);
	enum hd_err (*end)(struct conversion *c, bool keep, struct hd_diag *diag);
} forms[] = {
	{ "npy", any_fits, npy_begin, npy_put, npy_end },
	{ "records", records_fit, records_begin, records_put, records_end },
	{ "tokens", tokens_fit, tokens_begin, tokens_put, tokens_end },
};

static enum hd_err put_all(const struct convert_form *form, struct conversion *c, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	for (uint64_t i = 0; i < c->n && !err; i++)
		if (!(err = stopped(c, diag)) && !(err = read_one(c, i, diag)))
			err = form->put(c, i, diag);
	return err;
}

static enum hd_err check_fields(const struct conversion *c, struct hd_diag *diag)
{
	struct hd_stat stat;

	if (c->set->nfields != 2 || c->set->field[0].rank >= HD_NPY_RANK ||
		c->set->field[1].rank >= HD_NPY_RANK)
		return unfit(c, "its samples are more than an x and a y", diag);
	for (int f = 0; f < 2; f++)
		if (c->set->field[f].dtype != HD_F32 && c->set->field[f].dtype != HD_I32)
			return unfit(c, "its numbers have no place there", diag);
	return hd_fs_stat(c->fs, c->how->out, &stat, NULL) ? HD_OK : hd_fail(diag, HD_E_EXISTS,
		"%s is there already, and is not written over: remove it, or give another name", c->how->out);
}

static enum hd_err run_form(const struct convert_form *form, struct conversion *c, struct hd_diag *diag)
{
	enum hd_err err = check_fields(c, diag);

	for (int f = 0; f < 2 && !err; f++)
		if (!(c->field[f] = hd_alloc(c->set->field[f].sample_bytes)))
			err = hd_fail(diag, HD_E_NOMEM, "no memory for a sample");
	if (!err && !(err = form->fits(c, diag)) && !(err = form->begin(c, diag)))
		err = put_all(form, c, diag);
	enum hd_err ended = form->end(c, !err, err ? NULL : diag);
	hd_free(c->field[0]);
	hd_free(c->field[1]);
	return err ? err : ended;
}

static enum hd_err take_name(struct conversion *c, const struct hd_convert *how, struct hd_diag *diag)
{
	size_t len = strlen(how->out);

	while (len > 1 && how->out[len - 1] == '/')
		len--;
	if (!len)
		return hd_fail(diag, HD_E_INVAL, "the output has no name");
	if (len >= sizeof c->out)
		return hd_fail(diag, HD_E_INVAL, "the path of the output is longer than %d bytes",
			HD_PATH_CAP);
	memcpy(c->out, how->out, len);
	c->own = (struct hd_convert){ how->to, c->out, how->split };
	c->how = &c->own;
	return HD_OK;
}

enum hd_err hd_convert(const struct hd_convert *how, const struct hd_dataset *set, struct hd_fs *fs,
	struct hd_convert_report *report, struct hd_diag *diag)
{
	struct conversion *c = hd_alloc(sizeof *c);
	const struct convert_form *form = forms;

	if (!c)
		return hd_fail(diag, HD_E_NOMEM, "no memory to convert samples");
	memset(c, 0, sizeof *c);
	c->set = set;
	c->fs = fs;
	c->n = set->split[how->split].count;
	while (form < forms + sizeof forms / sizeof *forms && strcmp(form->kind, how->to) != 0)
		form++;
	assert(form < forms + sizeof forms / sizeof *forms);
	enum hd_err err = take_name(c, how, diag);
	err = err ? err : run_form(form, c, diag);
	*report = (struct hd_convert_report){ .samples = c->n, .bytes = c->n * (set->field[0].sample_bytes +
		(set->nfields > 1 ? set->field[1].sample_bytes : 0)) };
	memcpy(report->out, c->out, sizeof c->out);
	hd_free(c);
	return err;
}
