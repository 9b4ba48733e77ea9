#include "data/jsonl.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/grow.h"
#include "data/rows_int.h"

/* Lines are counted, then read: the arrays that a step reads are taken once, as large as they must be. */

struct jsonl_names { struct hd_row_set *rows; const char **name; uint32_t n, cap; };

static enum hd_err take_name(void *user, const char *name, size_t len, struct hd_diag *diag)
{
	struct jsonl_names *names = user;

	enum hd_err err = hd_grow(&names->name, &names->cap, (uint64_t)names->n + 1, sizeof *names->name,
		"names of members", diag);

	if (err)
		return err;
	names->name[names->n] = hd_arena_text(&names->rows->reader.arena, name, len);
	return names->name[names->n++] ? HD_OK : hd_fail(diag, HD_E_NOMEM,
		"no memory for the names of members");
}

/* The members of the first line. */
static enum hd_err read_names(struct hd_row_set *rows, const struct hd_data_spec *spec, struct hd_diag *diag)
{
	const struct hd_source *source = &rows->reader.source[0];
	struct jsonl_names names = { .rows = rows };
	struct hd_jsonl jsonl;
	enum hd_err err;

	hd_jsonl_init(&jsonl, source->bytes, source->len, source->name, NULL, 0);
	jsonl.member = take_name;
	jsonl.user = &names;
	err = hd_jsonl_more(&jsonl) ? hd_jsonl_next(&jsonl, NULL, diag) : hd_fail(diag, HD_E_INPUT,
		"%s has blank lines alone: there is nothing to train on", source->name);
	hd_jsonl_finish(&jsonl);
	if (!err)
		err = hd_rows_names(rows, spec, names.name, names.n, source->name, diag);
	hd_free(names.name);
	return err;
}

/* Lines that are not blank; no text reaches over the end of one. */
static uint64_t count_lines(const struct hd_source *source)
{
	const uint8_t *at = source->bytes, *end = at + source->len;
	uint64_t n = 0;

	while (at < end) {
		const uint8_t *stop = memchr(at, '\n', (size_t)(end - at));
		stop = stop ? stop : end;
		while (at < stop && (*at == ' ' || *at == '\t' || *at == '\r'))
			at++;
		n += at < stop;
		at = stop + 1;
	}
	return n;
}

static enum hd_err read_file(struct hd_row_set *rows, const struct hd_data_spec *spec,
	const struct hd_source *source, uint64_t nrows, struct hd_diag *diag)
{
	struct hd_row_cell cells[HD_ROWS_COLUMNS];
	struct hd_jsonl jsonl;
	enum hd_err err = HD_OK;

	hd_jsonl_init(&jsonl, source->bytes, source->len, source->name, rows->name, rows->nnames);
	while (!err && hd_jsonl_more(&jsonl)) {
		const struct hd_row_place place = { source->name, jsonl.line, true };
		err = hd_jsonl_next(&jsonl, cells, diag);
		if (!err && !rows->nrows)
			err = hd_rows_begin(rows, spec, cells, place, nrows, diag);
		if (!err && rows->row == rows->nrows)
			err = hd_fail(diag, HD_E_INTEGRITY, "%s was written to while it was read",
				source->name);
		if (!err)
			err = hd_rows_put(rows, spec, cells, place, diag);
	}
	hd_jsonl_finish(&jsonl);
	return err;
}

static enum hd_err fill(struct hd_reader *reader, const struct hd_data_spec *spec, struct hd_diag *diag)
{
	struct hd_row_set *rows = (struct hd_row_set *)reader;
	uint64_t nrows = 0;
	enum hd_err err;

	if (!spec->path)
		return hd_fail(diag, HD_E_INVAL, "data.kind jsonl needs a file: set data.path");
	if ((err = hd_source_add_glob(reader, spec->path, diag)) || (err = read_names(rows, spec, diag)))
		return err;
	const uint32_t nfiles = reader->nsources;        /* a tokenizer comes behind */
	for (uint32_t i = 0; i < nfiles; i++)
		nrows += count_lines(&reader->source[i]);
	for (uint32_t i = 0; i < nfiles && !err; i++)
		err = read_file(rows, spec, &reader->source[i], nrows, diag);
	if (!err && rows->row != rows->nrows)
		err = hd_fail(diag, HD_E_INTEGRITY, "%s was written to while it was read", spec->path);
	return err ? err : hd_rows_end(rows, spec, diag);
}

static enum hd_err jsonl_open(struct hd_dataset **set, const struct hd_data_spec *spec, struct hd_fs *fs,
	struct hd_diag *diag)
{
	return hd_reader_open(set, sizeof(struct hd_row_set), &hd_reader_jsonl, fs, fill, spec, diag);
}

const struct hd_reader_ops hd_reader_jsonl = {
	.name = "jsonl",
	.about =
	"JSON Lines: numbers, lists of numbers, texts by the paths of data.columns, and a label",
	.open = jsonl_open, .read = hd_rows_read, .destroy = hd_rows_destroy,
};
