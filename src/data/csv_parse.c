#include <inttypes.h>
#include <string.h>

#include "data/csv.h"

void hd_csv_init(struct hd_csv *csv, const uint8_t *bytes, size_t len, const char *name)
{
	static const uint8_t mark[3] = { 0xef, 0xbb, 0xbf };
	size_t skip = len >= sizeof mark && memcmp(bytes, mark, sizeof mark) == 0 ? sizeof mark : 0;

	*csv = (struct hd_csv){ .name = name, .at = bytes + skip, .end = bytes + len, .line = 1,
		.column = 1 };
}

static enum hd_err bad(const struct hd_csv *csv, const char *what, struct hd_diag *diag)
{
	return hd_fail(diag, HD_E_INPUT, "%s:%" PRIu64 ":%" PRIu64 ": %s", csv->name, csv->line, csv->column,
		what);
}

static void step(struct hd_csv *csv)
{
	bool ends = *csv->at++ == '\n';

	csv->line += ends;
	csv->column = ends ? 1 : csv->column + 1;
}

static enum hd_err put(struct hd_csv *csv, struct hd_diag *diag)
{
	if (*csv->at == 0)
		return bad(csv, "a NUL byte: this is no text", diag);
	if (csv->len == HD_CSV_FIELD)
		return bad(csv, "the field is longer than 4096 bytes: is a quote missing?", diag);
	csv->text[csv->len++] = (char)*csv->at;
	step(csv);
	return HD_OK;
}

static enum hd_err quoted(struct hd_csv *csv, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	csv->quoted = true;
	step(csv);
	while (csv->at < csv->end && !err) {
		if (*csv->at == '"') {
			step(csv);
			if (csv->at == csv->end || *csv->at != '"')
				return HD_OK;
		}
		err = put(csv, diag);
	}
	if (err)
		return err;
	return hd_fail(diag, HD_E_INPUT,
		"%s:%" PRIu64 ":%" PRIu64 ": the quote that opens here is never closed", csv->name,
		csv->field_line,
		csv->field_column);
}

static enum hd_err bare(struct hd_csv *csv, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	while (csv->at < csv->end && !strchr(",\r\n", *csv->at) && !err) {
		if (*csv->at == '"')
			return bad(csv,
				"a quote inside a field that does not begin with one: quote the whole field "
				"and double the quote", diag);
		err = put(csv, diag);
	}
	return !err && csv->at < csv->end && *csv->at == 0 ? put(csv, diag) : err;
}

/* What ends a field: a comma, the end of the line, the end of the file. */
static enum hd_err end_field(struct hd_csv *csv, struct hd_diag *diag)
{
	csv->last = true;
	if (csv->at == csv->end)
		return HD_OK;
	if (*csv->at == ',') {
		csv->last = false;
		step(csv);
		return HD_OK;
	}
	if (*csv->at == '\r' && csv->end - csv->at > 1 && csv->at[1] == '\n')
		step(csv);
	if (*csv->at == '\n') {
		step(csv);
		return HD_OK;
	}
	return bad(csv, *csv->at == '\r' ? "a carriage return without a line feed" :
		"text after the closing quote of a field", diag);
}

enum hd_err hd_csv_next(struct hd_csv *csv, struct hd_diag *diag)
{
	csv->field_line = csv->line;
	csv->field_column = csv->column;
	csv->len = 0;
	csv->quoted = false;
	enum hd_err err = csv->at < csv->end && *csv->at == '"' ? quoted(csv, diag) : bare(csv, diag);

	csv->text[csv->len] = 0;
	return err ? err : end_field(csv, diag);
}
