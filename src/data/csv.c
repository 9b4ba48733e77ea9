#include "data/csv.h"

#include <float.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/near.h"
#include "base/num.h"
#include "data/texts.h"

/* A table is parsed once, when it is opened: what a step reads is an array of numbers. For a model of tokens
 * these are the numbers of T columns, or the bytes of one column of text: the first T, then pads. */

enum { SKIP = -1, LABEL = -2 };                      /* roles of a column beside its place in "x" */

struct csv_set {
	struct hd_reader reader;
	const char **name; int32_t *role; uint32_t nnames;       /* of the header */
	uint32_t ncolumns, nelems;                       /* of "x": columns, elements */
	union { float *number; int32_t *token; void *at; } x;    /* [nrows, nelems] */
	bool text;
	struct hd_texts texts;                           /* of a model of tokens */
	uint32_t nfiles;                                 /* tables; a tokenizer comes behind */
	char *cell[2]; size_t len[2];                    /* of a tokenizer: the texts of the record at hand */
	uint64_t ncut;                                   /* texts that are longer than T */
	float *target; int32_t *label;                   /* [nrows] the one that the loss wants */
	uint64_t nrows, row;                             /* row: the one being read */
};

__attribute__((format(printf, 3, 4)))
static enum hd_err at_field(const struct hd_csv *csv, struct hd_diag *diag, const char *fmt, ...)
{
	char what[300];
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(what, sizeof what, fmt, args);
	va_end(args);
	return hd_fail(diag, HD_E_INPUT, "%s:%" PRIu64 ":%" PRIu64 ": %s", csv->name, csv->field_line,
		csv->field_column, what);
}

/* The header of the first file makes the names, those of the others must repeat them. */
static enum hd_err read_header(struct csv_set *set, struct hd_csv *csv, bool is_first, struct hd_diag *diag)
{
	struct hd_arena *arena = &set->reader.arena;
	uint32_t n = 0, cap = 0;

	for (csv->last = false; !csv->last; n++) {
		enum hd_err err = hd_csv_next(csv, diag);
		if (err != HD_OK)
			return err;
		if (!is_first && (n >= set->nnames || strcmp(set->name[n], csv->text) != 0))
			return at_field(csv, diag,
				"column %u is called \"%.60s\" here, \"%.60s\" in %s: files of one table "
				"have one header", n + 1, csv->text,
				n < set->nnames ? set->name[n] : "", set->reader.source[0].name);
		if (!is_first)
			continue;
		if (!csv->len || n == HD_CSV_COLUMNS)
			return at_field(csv, diag, csv->len ? "more than %d columns" :
				"a column has no name: the first line names all, at most %d",
				HD_CSV_COLUMNS);
		if (n == cap) {
			const char **grown = hd_arena_take(arena, cap = cap ? 2 * cap : 64, sizeof *grown);
			if (!grown)
				return hd_fail(diag, HD_E_NOMEM, "%s: no memory for the names of its columns",
					csv->name);
			if (n)
				memcpy(grown, set->name, n * sizeof *grown);
			set->name = grown;
		}
		if (!(set->name[n] = hd_arena_text(arena, csv->text, csv->len)))
			return hd_fail(diag, HD_E_NOMEM, "%s: no memory for the names of its columns",
				csv->name);
	}
	if (!is_first && n < set->nnames)
		return at_field(csv, diag, "the header ends here, that of %s has a column \"%.60s\" more",
			set->reader.source[0].name, set->name[n]);
	set->nnames = n;
	return HD_OK;
}

static enum hd_err find_column(const struct csv_set *set, const char *key, const char *name, uint32_t *column,
	struct hd_diag *diag)
{
	struct hd_near near = hd_near_to(name);
	uint32_t nfound = 0;

	for (uint32_t c = 0; c < set->nnames; c++) {
		hd_near_offer(&near, set->name[c]);
		if (strcmp(set->name[c], name) == 0) {
			*column = c;
			nfound++;
		}
	}
	if (nfound == 1)
		return HD_OK;
	if (nfound)
		return hd_fail(diag, HD_E_INPUT, "%s: %u columns are called \"%.60s\": rename all but one",
			set->reader.source[0].name, nfound, name);
	return hd_fail(diag, HD_E_INPUT, "%s: there is no column \"%.60s\", which %s names%s%s%s",
		set->reader.source[0].name, name, key,
		near.best ? "; did you mean " : "", near.best ? near.best : "", near.best ? "?" : "");
}

static enum hd_err take_columns(struct csv_set *set, const struct hd_data_spec *spec, struct hd_diag *diag)
{
	for (uint32_t c = 0; c < set->nnames && !spec->ncolumns; c++)
		if (set->role[c] != LABEL)
			set->role[c] = (int32_t)set->ncolumns++;
	for (uint32_t i = 0; i < spec->ncolumns; i++) {
		uint32_t c = 0;
		enum hd_err err = find_column(set, "data.columns", spec->column[i], &c, diag);
		if (err != HD_OK)
			return err;
		if (set->role[c] != SKIP)
			return hd_fail(diag, HD_E_INVAL, "data.columns names \"%.60s\", which %s",
				spec->column[i],
				set->role[c] == LABEL ? "is the label" : "it names already");
		set->role[c] = (int32_t)set->ncolumns++;
	}
	return set->ncolumns ? HD_OK : hd_fail(diag, HD_E_INPUT, "%s has no column but the label",
		set->reader.source[0].name);
}

static enum hd_err add_x(struct csv_set *set, const struct hd_data_spec *spec, struct hd_diag *diag)
{
	const int64_t columns = set->ncolumns, context = spec->context;
	const char *name = set->reader.source[0].name;

	set->nelems = spec->context ? spec->context : set->ncolumns;
	set->text = spec->context && (spec->tokenizer ? set->ncolumns <= 2 :
		set->ncolumns == 1 && spec->context != 1);
	if (!spec->context)
		return hd_field_add_x(&set->reader, spec, HD_F32, 1, &columns, name, diag);
	if (!set->text && set->ncolumns != spec->context)
		return hd_fail(diag, HD_E_INPUT,
			"%s has %u columns for \"x\", the model reads %u tokens: let data.columns name one "
			"column of text (two with data.tokenizer), or %u of "
			"token numbers", name, set->ncolumns, spec->context, spec->context);
	for (uint32_t i = 0; i < 2 && spec->tokenizer; i++)
		if (!(set->cell[i] = hd_arena_take(&set->reader.arena, HD_CSV_FIELD + 1, 1)))
			return hd_fail(diag, HD_E_NOMEM, "no memory for a text");
	enum hd_err err = hd_texts_open(&set->texts, &set->reader, spec, diag);
	return err ? err : hd_field_add(&set->reader, "x", HD_I32, 1, &context, diag);
}

/* What each column is for: the label first, so that the others are what remains. */
static enum hd_err give_roles(struct csv_set *set, const struct hd_data_spec *spec, struct hd_diag *diag)
{
	uint32_t label = set->nnames - 1;
	enum hd_err err = spec->label ? find_column(set, "data.label", spec->label, &label, diag) : HD_OK;

	set->role = hd_arena_take(&set->reader.arena, set->nnames, sizeof *set->role);
	if (!err && !set->role)
		err = hd_fail(diag, HD_E_NOMEM, "no memory for %u columns", set->nnames);
	if (err)
		return err;
	for (uint32_t c = 0; c < set->nnames; c++)
		set->role[c] = c == label ? LABEL : SKIP;
	return take_columns(set, spec, diag);
}

static enum hd_err put_label(struct csv_set *set, const struct hd_data_spec *spec, const struct hd_csv *csv,
	struct hd_diag *diag)
{
	int64_t most = spec->classes ? (int64_t)spec->classes - 1 : INT32_MAX, v = 0;
	struct hd_diag why = { "" };

	for (uint32_t k = 0; k < spec->nclasses; k++)
		if (strcmp(spec->class[k], csv->text) == 0) {
			set->label[set->row] = (int32_t)k;
			return HD_OK;
		}
	if (spec->nclasses)
		return at_field(csv, diag, "\"%.60s\" is none of data.classes", csv->text);
	const bool ignored = spec->ignores && !hd_num_i64(csv->text, spec->ignore, spec->ignore, &v, &why);
	if (!ignored && hd_num_i64(csv->text, 0, most, &v, &why))
		return at_field(csv, diag,
			"%.200s: a label is the number of a class; classes with names stand in data.classes",
			why.text);
	set->label[set->row] = (int32_t)v;
	return HD_OK;
}

/* A byte is a token. */
static enum hd_err put_text(struct csv_set *set, const struct hd_data_spec *spec, const struct hd_csv *csv,
	struct hd_diag *diag)
{
	uint32_t bound = hd_token_bound(spec), context = spec->context;
	size_t n = csv->len < context ? csv->len : context;
	int32_t *out = set->x.token + set->row * context;

	set->ncut += csv->len > context;
	if (n < context && spec->pad < 0 && !set->texts.mask)
		return at_field(csv, diag,
			"a text of %zu bytes, the model reads %u tokens: name a token to fill it up "
			"(model.args pad: 256, vocab: 257)", n,
			context);
	for (size_t i = 0; i < context; i++) {
		out[i] = i < n ? (unsigned char)csv->text[i] : spec->pad < 0 ? 0 : spec->pad;
		if (i < n && bound && (uint32_t)out[i] >= bound)
			return at_field(csv, diag,
				"byte %zu of the text is %d, the model knows tokens from 0 to %u: give it a "
				"vocabulary of 256 or more",
				i + 1, out[i], bound - 1);
		if (i < n && out[i] == spec->pad)
			return at_field(csv, diag,
				"byte %zu of the text is %d, which the model takes for the end of it: use "
				"another model.args pad, as 256",
				i + 1, out[i]);
	}
	hd_texts_note(&set->texts, set->row, (uint32_t)n);
	return HD_OK;
}

/* Kept until the record ends. */
static void keep_text(struct csv_set *set, const struct hd_csv *csv, int32_t role)
{
	memcpy(set->cell[role], csv->text, csv->len);
	set->len[role] = csv->len;
}

static enum hd_err put_tokens(struct csv_set *set, const struct hd_csv *csv, uint64_t line,
	struct hd_diag *diag)
{
	struct hd_diag why = { "" };
	bool cut = false;
	enum hd_err err = hd_texts_put(&set->texts, set->row, (const char *const *)set->cell, set->len,
		set->ncolumns, set->x.token + set->row * set->nelems, NULL, &cut, &why);

	set->ncut += cut;
	return err ? hd_fail(diag, err, "%s:%" PRIu64 ": %s", csv->name, line, why.text) : HD_OK;
}

static enum hd_err put_token(struct csv_set *set, const struct hd_data_spec *spec, const struct hd_csv *csv,
	uint32_t column, struct hd_diag *diag)
{
	uint32_t bound = hd_token_bound(spec);
	struct hd_diag why = { "" };
	int64_t v = 0;

	if (hd_num_i64(csv->text, 0, bound ? (int64_t)bound - 1 : INT32_MAX, &v, &why))
		return at_field(csv, diag, "column \"%.60s\": %.200s: the model reads numbers of tokens here",
			set->name[column], why.text);
	set->x.token[set->row * set->nelems + (uint32_t)set->role[column]] = (int32_t)v;
	return HD_OK;
}

static enum hd_err put_value(struct csv_set *set, const struct hd_data_spec *spec, const struct hd_csv *csv,
	uint32_t column, struct hd_diag *diag)
{
	int32_t role = set->role[column];
	struct hd_diag why = { "" };
	double v = 0;

	if (role == SKIP)
		return HD_OK;
	if (!csv->len)
		return at_field(csv, diag, "column \"%.60s\" has no value here: fill it in%s",
			set->name[column],
			role == LABEL ? "" : ", or leave the column out of data.columns");
	if (role == LABEL && !spec->float_target)
		return put_label(set, spec, csv, diag);
	if (role != LABEL && set->texts.tokenizer) {
		keep_text(set, csv, role);
		return HD_OK;
	}
	if (role != LABEL && set->text)
		return put_text(set, spec, csv, diag);
	if (role != LABEL && spec->context)
		return put_token(set, spec, csv, column, diag);
	if (hd_num_f64(csv->text, -(double)FLT_MAX, (double)FLT_MAX, &v, &why))
		return at_field(csv, diag, "column \"%.60s\": %.200s", set->name[column], why.text);
	if (role == LABEL)
		set->target[set->row] = (float)v;
	else
		set->x.number[set->row * set->ncolumns + (uint32_t)role] = (float)v;
	return HD_OK;
}

/* One record; without `spec` it is only counted. */
static enum hd_err read_record(struct csv_set *set, const struct hd_data_spec *spec, struct hd_csv *csv,
	struct hd_diag *diag)
{
	const uint64_t line = csv->line;
	uint32_t n = 0;

	for (csv->last = false; !csv->last; n++) {
		enum hd_err err = hd_csv_next(csv, diag);
		if (!err && n == set->nnames)
			err = at_field(csv, diag, "a field beyond the %u columns of the header", set->nnames);
		if (!err && spec)
			err = put_value(set, spec, csv, n, diag);
		if (err)
			return err;
	}
	if (n < set->nnames)
		return at_field(csv, diag, "the record ends after %u of %u fields", n, set->nnames);
	return spec && set->texts.tokenizer ? put_tokens(set, csv, line, diag) : HD_OK;
}

static enum hd_err read_files(struct csv_set *set, const struct hd_data_spec *spec, struct hd_diag *diag)
{
	struct hd_csv csv;
	enum hd_err err = HD_OK;

	set->row = 0;
	for (uint32_t i = 0; i < set->nfiles && !err; i++) {
		const struct hd_source *source = &set->reader.source[i];
		hd_csv_init(&csv, source->bytes, source->len, source->name);
		err = read_header(set, &csv, i == 0 && !set->nnames, diag);
		for (; !err && hd_csv_more(&csv); set->row += !err)
			err = read_record(set, spec, &csv, diag);
	}
	set->nrows = set->row;
	return err;
}

static enum hd_err take_memory(struct csv_set *set, const struct hd_data_spec *spec, struct hd_diag *diag)
{
	struct hd_arena *arena = &set->reader.arena;
	uint64_t n = 0;

	if (!set->nrows)
		return hd_fail(diag, HD_E_INPUT,
			"%s has a header and no record: there is nothing to train on",
			set->reader.source[0].name);
	if (hd_mul_u64(set->nrows, set->nelems, &n)) {
		set->x.at = hd_arena_take(arena, n, sizeof *set->x.number);
		if (spec->float_target)
			set->target = hd_arena_take(arena, set->nrows, sizeof *set->target);
		else
			set->label = hd_arena_take(arena, set->nrows, sizeof *set->label);
	}
	return set->x.at && (set->target || set->label) ? HD_OK
		: hd_fail(diag, HD_E_NOMEM, "no memory for %" PRIu64 " records of %u columns", set->nrows,
			set->ncolumns);
}

static enum hd_err check_wishes(const struct hd_data_spec *spec, struct hd_diag *diag)
{
	if (!spec->path)
		return hd_fail(diag, HD_E_INVAL, "data.kind csv needs a file: set data.path");
	if (spec->float_target && spec->nclasses)
		return hd_fail(diag, HD_E_INVAL,
			"data.classes names classes, the loss wants numbers: leave it out, or use "
			"model.loss cross-entropy");
	if (spec->float_target && spec->classes > 1)
		return hd_fail(diag, HD_E_INPUT,
			"the model gives %u numbers, the label of a csv is one: change model.args",
			spec->classes);
	if (spec->classes && spec->nclasses > spec->classes)
		return hd_fail(diag, HD_E_INVAL, "data.classes has %u names, the model %u classes",
			spec->nclasses, spec->classes);
	return HD_OK;
}

static enum hd_err fill(struct hd_reader *reader, const struct hd_data_spec *spec, struct hd_diag *diag)
{
	static const int64_t one = 1;
	struct csv_set *set = (struct csv_set *)reader;
	enum hd_err err = check_wishes(spec, diag);

	if (!err)
		err = hd_source_add_glob(reader, spec->path, diag);
	set->nfiles = reader->nsources;
	if (!err)
		err = read_files(set, NULL, diag);
	if (!err)
		err = give_roles(set, spec, diag);
	enum hd_dtype y = spec->float_target ? HD_F32 : HD_I32;
	if (err || (err = add_x(set, spec, diag)) != HD_OK
	    || (err = hd_field_add(reader, "y", y, spec->float_target, &one, diag)) != HD_OK
	    || (spec->context && (err = hd_texts_fields(&set->texts, reader, spec, set->nrows,
		diag)) != HD_OK)
	    || (err = take_memory(set, spec, diag)) != HD_OK || (err = read_files(set, spec, diag)) != HD_OK
	    || (err = hd_split_hashed(reader, spec, set->nrows, diag)) != HD_OK)
		return err;
	hd_texts_finish(&set->texts);
	reader->set.count = set->nrows;
	reader->set.hash = hd_sources_hash(reader);
	if (set->text)
		hd_reader_about(reader, "%" PRIu64 " texts, %" PRIu64 " of them cut at %u %s, %s",
			set->nrows, set->ncut, spec->context, spec->tokenizer ? "tokens" : "bytes",
			spec->path);
	else
		hd_reader_about(reader, "%" PRIu64 " records of %u columns, %s", set->nrows, set->ncolumns,
			spec->path);
	return HD_OK;
}

static enum hd_err csv_open(struct hd_dataset **set, const struct hd_data_spec *spec, struct hd_fs *fs,
	struct hd_diag *diag)
{
	return hd_reader_open(set, sizeof(struct csv_set), &hd_reader_csv, fs, fill, spec, diag);
}

static enum hd_err csv_read(const struct hd_dataset *dataset, uint32_t split, uint64_t index,
	void *const *out, struct hd_diag *diag)
{
	const struct csv_set *set = (const struct csv_set *)dataset;
	uint64_t id = hd_split_id(&set->reader, split, index);

	(void)diag;
	memcpy(out[0], set->x.number + id * set->nelems, set->nelems * sizeof *set->x.number);
	if (set->target)
		*(float *)out[1] = set->target[id];
	else
		*(int32_t *)out[1] = set->label[id];
	hd_texts_read(&set->texts, id, out);
	return HD_OK;
}

static void csv_destroy(struct hd_dataset *dataset)
{
	if (dataset)
		hd_texts_finish(&((struct csv_set *)dataset)->texts);
	hd_reader_destroy(dataset);
}

const struct hd_reader_ops hd_reader_csv = {
	.name = "csv",
	.about =
	"table with a header row (RFC 4180): numbers, or a text for a model of tokens, and a label, the "
	"last column unless data.label names it",
	.open = csv_open, .read = csv_read, .destroy = csv_destroy, .of_classes = true,
};
