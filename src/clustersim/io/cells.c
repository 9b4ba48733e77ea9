#include "clustersim/io/cells.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/num.h"
#include "base/utf8.h"
#include "data/csv.h"

enum hd_err cells_open(struct cells **out, const char *name, const uint8_t *bytes, size_t len, char sep,
	struct hd_arena *arena, struct hd_diag *diag)
{
	static const uint8_t mark[] = { 0xef, 0xbb, 0xbf };
	struct cells *cells = hd_arena_take(arena, 1, sizeof *cells);

	if (cells && sep == ',' && !(cells->csv = hd_arena_take(arena, 1, sizeof *cells->csv)))
		cells = NULL;
	if (!cells)
		return hd_fail(diag, HD_E_NOMEM, "%s: no memory to read it", name);
	cells->name = name;
	cells->at = bytes;
	cells->end = bytes + len;
	cells->sep = sep;
	cells->next_line = 1;
	if (cells->csv)
		hd_csv_init(cells->csv, bytes, len, name);
	else if (len >= sizeof mark && !memcmp(bytes, mark, sizeof mark))
		cells->at += sizeof mark;
	*out = cells;
	return HD_OK;
}

enum hd_err cells_fail(const struct cells *cells, uint32_t i, struct hd_diag *diag, const char *fmt, ...)
{
	char what[400];
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(what, sizeof what, fmt, args);
	va_end(args);
	return hd_fail(diag, HD_E_INPUT, "%s:%" PRIu64 ":%" PRIu64 ": %s", cells->name, cells->line,
		i < cells->n ? cells->cell[i].column : 1, what);
}

int cells_find(const struct cells *cells, const char *word)
{
	for (uint32_t i = 0; i < cells->n; i++)
		if (!strcasecmp(cells->cell[i].text, word))
			return (int)i;
	return -1;
}

/* A cell is complete: it may not hold what would end up in a terminal. */
static enum hd_err check_cell(const struct cells *cells, uint32_t i, struct hd_diag *diag)
{
	const char *text = cells->cell[i].text;

	for (const char *c = text; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			return cells_fail(cells, i, diag, "field %u holds a control character", i + 1);
	for (size_t left = strlen(text), n; left; text += n, left -= n)
		if (!(n = hd_utf8_len(text, left)))
			return cells_fail(cells, i, diag, "field %u is no UTF-8", i + 1);
	return HD_OK;
}

static enum hd_err next_csv(struct cells *cells, struct hd_diag *diag)
{
	size_t used = 0;
	enum hd_err err = HD_OK;

	cells->line = cells->csv->line;
	for (cells->csv->last = false; !cells->csv->last && !err;) {
		if ((err = hd_csv_next(cells->csv, diag)))
			return err;
		if (cells->n == HD_CELLS || used + cells->csv->len + 1 > HD_CELLS_BYTES)
			return hd_fail(diag, HD_E_INPUT,
				"%s:%" PRIu64 ": a record of more than %d fields or %d bytes", cells->name,
				cells->line, HD_CELLS,
				HD_CELLS_BYTES);
		memcpy(cells->bytes + used, cells->csv->text, cells->csv->len + 1);
		cells->cell[cells->n++] = (struct table_cell){ cells->bytes + used,
			cells->csv->field_column };
		used += cells->csv->len + 1;
		err = check_cell(cells, cells->n - 1, diag);
	}
	return err;
}

static enum hd_err next_line(struct cells *cells, struct hd_diag *diag)
{
	const uint8_t *line = cells->at, *stop = memchr(line, '\n', (size_t)(cells->end - line));
	size_t len = (size_t)((stop ? stop : cells->end) - line);
	enum hd_err err = HD_OK;
	char *start = cells->bytes;

	cells->line = cells->next_line++;
	cells->at = stop ? stop + 1 : cells->end;
	len -= len && line[len - 1] == '\r';
	if (len >= HD_CELLS_BYTES || memchr(line, 0, len))
		return hd_fail(diag, HD_E_INPUT, "%s:%" PRIu64 ":1: %s", cells->name, cells->line,
			len >= HD_CELLS_BYTES ? "a line of more than 65535 bytes"
			: "the line holds a zero byte: this is no text");
	if (len)
		memcpy(cells->bytes, line, len);
	cells->bytes[len] = 0;
	for (size_t k = 0; k <= len && len && !err; k++) {
		if (k < len && cells->bytes[k] != cells->sep)
			continue;
		cells->bytes[k] = 0;
		if (cells->n == HD_CELLS)
			return cells_fail(cells, HD_CELLS - 1, diag, "a line of more than %d fields",
				HD_CELLS);
		cells->cell[cells->n++] = (struct table_cell){ start, (uint64_t)(start - cells->bytes) + 1 };
		start = cells->bytes + k + 1;
		err = check_cell(cells, cells->n - 1, diag);
	}
	return err;
}

bool cells_next(struct cells *cells, enum hd_err *err, struct hd_diag *diag)
{
	*err = HD_OK;
	do {
		if (cells->csv ? !hd_csv_more(cells->csv) : cells->at == cells->end)
			return false;
		cells->n = 0;
		*err = cells->csv ? next_csv(cells, diag) : next_line(cells, diag);
	} while (!*err && (cells->n == 0 || (cells->n == 1 && !*cells->cell[0].text)));
	return !*err;
}

bool cells_cut(const struct cells *cells)
{
	const bool last = cells->csv ? !hd_csv_more(cells->csv) : cells->at == cells->end;

	return last && cells->line && cells->end[-1] != '\n';
}

enum hd_err cells_f64(const struct cells *cells, uint32_t i, const char *what, double min, double max,
	double *out, struct hd_diag *diag)
{
	struct hd_diag why = { "" };

	if (hd_num_f64(cells->cell[i].text, min, max, out, &why))
		return cells_fail(cells, i, diag, "%s: %s", what, why.text);
	return HD_OK;
}

enum hd_err cells_u32(const struct cells *cells, uint32_t i, const char *what, uint32_t min, uint32_t max,
	uint32_t *out, struct hd_diag *diag)
{
	struct hd_diag why = { "" };
	int64_t value;

	if (hd_num_i64(cells->cell[i].text, min, max, &value, &why))
		return cells_fail(cells, i, diag, "%s: %s", what, why.text);
	*out = (uint32_t)value;
	return HD_OK;
}

/* Exactly n digits. */
static bool digits(const char **at, int n, int min, int max, int *out)
{
	*out = 0;
	for (int k = 0; k < n; k++, (*at)++) {
		if (**at < '0' || **at > '9')
			return false;
		*out = *out * 10 + (**at - '0');
	}
	return *out >= min && *out <= max;
}

static bool sign(const char **at, char c) { return **at == c && ((*at)++, true); }

/* Days since 1970-01-01 in the proleptic Gregorian calendar; March is the first month, so that the leap
 * day ends a year. */
static int64_t days_of(int year, int month, int day)
{
	int64_t y = year - (month <= 2), era = y / 400, yoe = y - era * 400,
		doy = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;

	return era * 146097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719468;
}

bool when_parse(const char *text, double *seconds)
{
	static const int days[] = { 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	int year, month, day, hour, minute, second = 0, zone_h = 0, zone_min = 0;
	double fraction = 0, east = 0;
	bool leap;

	if (!digits(&text, 4, 1600, 9999, &year) || !sign(&text, '-') || !digits(&text, 2, 1, 12, &month) ||
		!sign(&text, '-') || !digits(&text, 2, 1, 31,
		&day))
		return false;
	leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
	if (day > days[month - 1] - (month == 2 && !leap))
		return false;
	if (!*text) {
		*seconds = (double)days_of(year, month, day) * 86400;
		return true;
	}
	if ((!sign(&text, 'T') && !sign(&text, ' ')) || !digits(&text, 2, 0, 23, &hour) ||
		!sign(&text, ':') || !digits(&text, 2, 0, 59, &minute))
		return false;
	if (sign(&text, ':') && !digits(&text, 2, 0, 60, &second))
		return false;
	if (sign(&text, '.')) {
		double unit = 0.1;
		if (*text < '0' || *text > '9')
			return false;
		for (; *text >= '0' && *text <= '9'; text++, unit /= 10)
			fraction += unit * (*text - '0');
	}
	if (*text == '+' || *text == '-') {
		east = *text++ == '+' ? 1 : -1;
		if (!digits(&text, 2, 0, 23, &zone_h))
			return false;
		(void)sign(&text, ':');
		if (!digits(&text, 2, 0, 59, &zone_min))
			return false;
	} else {
		(void)sign(&text, 'Z');
	}
	if (*text)
		return false;
	*seconds = (double)(days_of(year, month, day) * 86400 + hour * 3600 + minute * 60 + second) +
		fraction - east * (zone_h * 3600 + zone_min * 60);
	return true;
}

enum hd_err cells_when(const struct cells *cells, uint32_t i, const char *what, double *seconds,
	struct hd_diag *diag)
{
	const char *text = cells->cell[i].text;

	if (when_parse(text, seconds) || hd_num_f64(text, -1e15, 1e15, seconds, NULL) == HD_OK)
		return HD_OK;
	return cells_fail(cells, i, diag, "%s \"%.60s\" is no time: write seconds, or YYYY-MM-DD HH:MM:SS",
		what, text);
}
