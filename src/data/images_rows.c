/* A list of images and their labels, as a table with a header (.csv) or an object a line (.jsonl). */
#include "data/images_int.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/num.h"
#include "data/csv.h"

enum { LIST_BYTES = 1 << 30 };

struct image_rows {
	struct hd_image_set *set;
	const char *name, *file, *label;          /* of the list, and of what is asked of a row */
	const char **text; uint64_t cap;          /* labels as they are written, one for each item */
};

static enum hd_err add_row(struct image_rows *rows, const char *file, const char *label, uint64_t line,
	struct hd_diag *diag)
{
	struct hd_image_set *set = rows->set;
	struct hd_arena *arena = &set->reader.arena;

	if (!*file || !*label)
		return hd_fail(diag, HD_E_INPUT, "%s:%" PRIu64 ": %s is empty", rows->name, line, *file ?
			"the label" :
			"the name of the file");
	if (*file == '/' || strstr(file, "://"))
		return hd_fail(diag, HD_E_INPUT, "%s:%" PRIu64
			": %.100s: files of a list lie beneath its own folder: "
			"write their paths from there", rows->name, line, file);
	if (set->nitems == rows->cap) {
		const uint64_t cap = rows->cap ? 2 * rows->cap : 1024;
		const char **grown = hd_arena_take(arena, cap, sizeof *grown);
		if (!grown)
			return hd_fail(diag, HD_E_NOMEM, "no memory for %" PRIu64 " labels", cap);
		if (rows->cap)
			memcpy(grown, rows->text, rows->cap * sizeof *grown);
		rows->text = grown;
		rows->cap = cap;
	}
	const uint64_t at = set->nitems;
	if (!(rows->text[at] = hd_arena_text(arena, label, strlen(label))))
		return hd_fail(diag, HD_E_NOMEM, "no memory for labels");
	return hd_images_add(set, file, 0, diag);
}

static enum hd_err find_columns(struct image_rows *rows, struct hd_csv *csv, uint32_t at[2], struct hd_diag
	*diag)
{
	bool found[2] = { false, false };
	enum hd_err err = HD_OK;

	csv->last = false;
	for (uint32_t c = 0; !csv->last && !err; c++) {
		err = hd_csv_next(csv, diag);
		for (int k = 0; k < 2 && !err; k++)
			if (!strcmp(csv->text, k ? rows->label : rows->file)) {
				at[k] = c;
				found[k] = true;
			}
	}
	if (!err && (!found[0] || !found[1]))
		return hd_fail(diag, HD_E_INPUT,
			"%s has no column %s: name the columns in its first line, or by "
			"data.columns: [FILE] and data.label", rows->name, found[0] ? rows->label :
				rows->file);
	return err;
}

static enum hd_err take_csv(struct image_rows *rows, const uint8_t *bytes, size_t len, struct hd_diag *diag)
{
	struct hd_csv *csv = hd_arena_take(&rows->set->reader.arena, 1, sizeof *csv);
	char file[HD_CSV_FIELD + 1], label[HD_CSV_FIELD + 1];
	uint32_t at[2] = { 0, 0 };

	if (!csv)
		return hd_fail(diag, HD_E_NOMEM, "no memory to read %s", rows->name);
	hd_csv_init(csv, bytes, len, rows->name);
	enum hd_err err = find_columns(rows, csv, at, diag);
	while (!err && hd_csv_more(csv)) {
		const uint64_t line = csv->line;
		*file = *label = '\0';
		csv->last = false;
		for (uint32_t c = 0; !csv->last && !err; c++) {
			err = hd_csv_next(csv, diag);
			if (!err && c == at[0])
				memcpy(file, csv->text, csv->len + 1);
			if (!err && c == at[1])
				memcpy(label, csv->text, csv->len + 1);
		}
		if (!err)
			err = add_row(rows, file, label, line, diag);
	}
	return err;
}

/* A label may be a text or a number. */
static enum hd_err take_object(struct image_rows *rows, const char *name, const char *text, size_t len,
	uint64_t line, struct hd_arena *arena, struct hd_diag *diag)
{
	const struct hd_json *row, *label;
	const char *file, *word = NULL;
	char number[24];
	int64_t n = 0;
	enum hd_err err = hd_json_parse(arena, name, text, len, &row, diag);

	if (!err)
		err = hd_json_get_text(row, rows->file, &file, diag);
	if (err)
		return err;
	if (!(label = hd_json_find(row, rows->label)))
		return hd_fail(diag, HD_E_INPUT, "%s has no member \"%s\"", name, rows->label);
	if (hd_json_kind(label) == HD_JSON_INT && !(err = hd_json_as_i64(label, 0, INT32_MAX, &n, diag))) {
		(void)snprintf(number, sizeof number, "%" PRId64, n);
		word = number;
	} else if (!err) {
		err = hd_json_as_text(label, &word, diag);
	}
	return err ? err : add_row(rows, file, word, line, diag);
}

static enum hd_err take_jsonl(struct image_rows *rows, const uint8_t *bytes, size_t len, struct hd_diag *diag)
{
	const char *at = (const char *)bytes, *end = at + len;
	char name[HD_PATH_CAP + 24];
	struct hd_arena arena;
	enum hd_err err = HD_OK;

	hd_arena_init(&arena, 0);
	for (uint64_t line = 1; at < end && !err; line++) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));
		const size_t n = (size_t)((stop ? stop : end) - at);
		(void)snprintf(name, sizeof name, "%s:%" PRIu64, rows->name, line);
		if (strspn(at, " \t\r") < n)
			err = take_object(rows, name, at, n, line, &arena, diag);
		hd_arena_reset(&arena);
		at += n + 1;
	}
	hd_arena_finish(&arena);
	return err;
}

static int by_bytes(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char
	*const *)b); }

static bool is_number(const char *text)
{
	const size_t len = strlen(text);

	return len < 10 && strspn(text, "0123456789") == len;
}

/* Without data.classes: numbers, where all labels are; else names, in the order of their bytes. */
static enum hd_err find_classes(struct image_rows *rows, bool *numbers, struct hd_diag *diag)
{
	struct hd_image_set *set = rows->set;
	const char **sorted = hd_arena_take(&set->reader.arena, set->nitems, sizeof *sorted);

	if (!sorted)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the classes of %s", rows->name);
	*numbers = true;
	for (uint64_t i = 0; i < set->nitems; i++)
		*numbers = *numbers && is_number(rows->text[i]);
	if (*numbers)
		return HD_OK;
	memcpy(sorted, rows->text, set->nitems * sizeof *sorted);
	qsort(sorted, set->nitems, sizeof *sorted, by_bytes);
	for (uint64_t i = 0; i < set->nitems; i++)
		if (!i || strcmp(sorted[i], sorted[set->nclasses - 1]) != 0)
			sorted[set->nclasses++] = sorted[i];
	set->class = sorted;
	return HD_OK;
}

static enum hd_err label_items(struct image_rows *rows, const struct hd_data_spec *spec, struct hd_diag *diag)
{
	struct hd_image_set *set = rows->set;
	bool numbers = false;
	enum hd_err err = spec->nclasses ? HD_OK : find_classes(rows, &numbers, diag);

	for (uint64_t i = 0; i < set->nitems && !err; i++) {
		const char *const *found = NULL;
		struct hd_image_item *item = &set->item[i];
		item->label = -1;
		if (numbers)
			item->label = (int32_t)strtol(rows->text[i], NULL, 10);
		else if (!spec->nclasses)
			found = bsearch(&rows->text[i], set->class, set->nclasses, sizeof *set->class,
				by_bytes);
		if (found)
			item->label = (int32_t)(found - set->class);
		for (uint32_t c = 0; c < spec->nclasses; c++)
			if (!strcmp(spec->class[c], rows->text[i]))
				item->label = (int32_t)c;
		if (item->label < 0)
			err = hd_fail(diag, HD_E_INPUT,
				"%s: \"%.60s\", the label of %.100s, is none of data.classes",
				rows->name, rows->text[i], item->path);
		if (numbers && (uint32_t)item->label >= set->nclasses)
			set->nclasses = (uint32_t)item->label + 1;
	}
	set->nclasses = spec->nclasses ? spec->nclasses : set->nclasses;
	return err;
}

static bool ends_in(const char *text, const char *end)
{
	const size_t len = strlen(text), n = strlen(end);

	return len > n && !strcmp(text + len - n, end);
}

enum hd_err hd_images_rows(struct hd_image_set *set, const struct hd_data_spec *spec, struct hd_diag *diag)
{
	struct image_rows rows = { .set = set, .name = spec->path, .file = spec->ncolumns ? spec->column[0] :
		"file",
		.label = spec->label ? spec->label : "label" };
	const char *slash = strrchr(spec->path, '/');
	const bool csv = ends_in(spec->path, ".csv");
	uint8_t *bytes;
	size_t len;

	if (!csv && !ends_in(spec->path, ".jsonl"))
		return hd_fail(diag, HD_E_INPUT,
			"%s is neither a folder nor a list of images (.csv, .jsonl)", spec->path);
	if (spec->ncolumns > 1)
		return hd_fail(diag, HD_E_INVAL,
			"data.columns names %u columns: of a list of images it is the one with the "
			"files", spec->ncolumns);
	set->listed = true;
	set->root = !slash ? "." : hd_arena_text(&set->reader.arena, spec->path, (size_t)(slash - spec->path)
		+
		(slash == spec->path));
	if (!set->root)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the path %s", spec->path);
	enum hd_err err = hd_file_read_all(set->reader.fs, spec->path, &set->reader.arena, LIST_BYTES,
		&bytes, &len,
		diag);
	if (!err)
		err = csv ? take_csv(&rows, bytes, len, diag) : take_jsonl(&rows, bytes, len, diag);
	if (!err && !set->nitems)
		err = hd_fail(diag, HD_E_INPUT, "%s names no image", spec->path);
	if (!err)
		err = label_items(&rows, spec, diag);
	for (int s = 0; s < HD_IMAGES_SPLITS; s++)
		set->end[s] = set->nitems;
	return err;
}
