#include "data/parquet.h"

#include <string.h>

#include "base/checked.h"
#include "data/rows_int.h"

struct parquet_set { struct hd_row_set rows; struct hd_parquet *file; };

/* Columns of the schema, as far as they can be wanted by themselves: names are the first parts of paths. */
static enum hd_err take_names(struct hd_row_set *rows, const struct hd_data_spec *spec,
	const struct hd_parquet *file,
	struct hd_diag *diag)
{
	const char **name = hd_arena_take(&rows->reader.arena, file->nleaves, sizeof *name);

	if (!name)
		return hd_fail(diag, HD_E_NOMEM, "%s: no memory for the names of its columns", file->name);
	for (uint32_t i = 0; i < file->nleaves; i++)
		name[i] = file->leaf[i].path;
	return hd_rows_names(rows, spec, name, file->nleaves, file->name, diag);
}

static enum hd_err open_files(struct parquet_set *set, uint64_t *nrows, struct hd_diag *diag)
{
	struct hd_reader *reader = &set->rows.reader;
	enum hd_err err = HD_OK;

	set->file = hd_arena_take(&reader->arena, reader->nsources, sizeof *set->file);
	if (!set->file)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the list of %u data files", reader->nsources);
	for (uint32_t i = 0; i < reader->nsources && !err; i++) {
		const struct hd_source *s = &reader->source[i];
		err = hd_parquet_open(&set->file[i], &reader->arena, s->bytes, s->len, s->name, diag);
		if (!err && !hd_add_u64(*nrows, set->file[i].nrows, nrows))
			err = hd_fail(diag, HD_E_INPUT,
				"%s: more rows than can be counted: its footer is damaged",
				s->name);
	}
	if (!err && !*nrows)
		err = hd_fail(diag, HD_E_INPUT, "%s has no row: there is nothing to train on",
			set->file[0].name);
	return err;
}

static enum hd_err read_file(struct parquet_set *set, const struct hd_data_spec *spec,
	const struct hd_parquet *file,
	uint64_t nrows, struct hd_diag *diag)
{
	struct hd_row_cell cells[HD_ROWS_COLUMNS];
	struct hd_row_set *rows = &set->rows;
	struct hd_parquet_rows from;
	enum hd_err err = hd_parquet_rows_begin(&from, file, rows->name, rows->nnames, diag);

	while (!err && hd_parquet_more(&from)) {
		const struct hd_row_place place = { file->name, from.row + 1, false };
		err = hd_parquet_next(&from, cells, diag);
		if (!err && !rows->nrows)
			err = hd_rows_begin(rows, spec, cells, place, nrows, diag);
		if (!err)
			err = hd_rows_put(rows, spec, cells, place, diag);
	}
	hd_parquet_rows_finish(&from);
	return err;
}

static enum hd_err fill(struct hd_reader *reader, const struct hd_data_spec *spec, struct hd_diag *diag)
{
	struct parquet_set *set = (struct parquet_set *)reader;
	uint64_t nrows = 0;
	enum hd_err err;

	if (!spec->path)
		return hd_fail(diag, HD_E_INVAL, "data.kind parquet needs a file: set data.path");
	if ((err = hd_source_add_glob(reader, spec->path, diag)) || (err = open_files(set, &nrows, diag)) ||
		(err = take_names(&set->rows, spec, &set->file[0], diag)))
		return err;
	const uint32_t nfiles = reader->nsources;        /* a tokenizer comes behind */
	for (uint32_t i = 0; i < nfiles && !err; i++)
		err = read_file(set, spec, &set->file[i], nrows, diag);
	return err ? err : hd_rows_end(&set->rows, spec, diag);
}

static enum hd_err parquet_open(struct hd_dataset **set, const struct hd_data_spec *spec, struct hd_fs *fs,
	struct hd_diag *diag)
{
	return hd_reader_open(set, sizeof(struct parquet_set), &hd_reader_parquet, fs, fill, spec, diag);
}

const struct hd_reader_ops hd_reader_parquet = {
	.name = "parquet",
	.about =
	"Apache Parquet: numbers, lists of numbers, texts by the paths of data.columns, and a label",
	.open = parquet_open, .read = hd_rows_read, .destroy = hd_rows_destroy,
};
