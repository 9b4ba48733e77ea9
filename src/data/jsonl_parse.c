#include <assert.h>
#include <float.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/grow.h"
#include "base/num.h"
#include "base/utf8.h"
#include "data/jsonl.h"

/* A line is walked by a list of open containers, without recursion. A cell that is wanted is open from its
 * first bracket to its last: numbers go into it, and each bracket that closes settles an extent. */

enum { NONE = HD_JSONL_WANTED };

void hd_jsonl_init(struct hd_jsonl *j, const uint8_t *bytes, size_t len, const char *name,
	const char *const *wanted, uint32_t nwanted)
{
	static const uint8_t mark[3] = { 0xef, 0xbb, 0xbf };
	const size_t skip = len >= sizeof mark && !memcmp(bytes, mark, sizeof mark) ? sizeof mark : 0;

	assert(nwanted <= HD_JSONL_WANTED);
	*j = (struct hd_jsonl){ .name = name, .at = bytes + skip, .begin = bytes, .end = bytes + len,
		.line = 1, .wanted = wanted, .nwanted = nwanted };
}

void hd_jsonl_finish(struct hd_jsonl *j)
{
	hd_free(j->number);
	hd_free(j->text);
	*j = (struct hd_jsonl){ 0 };
}

__attribute__((format(printf, 4, 5)))
static enum hd_err bad_at(const struct hd_jsonl *j, const uint8_t *at, struct hd_diag *diag, const char *fmt,
	...)
{
	char what[300];
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(what, sizeof what, fmt, args);
	va_end(args);
	return hd_fail(diag, HD_E_INPUT, "%s:%" PRIu64 ":%zu: %s", j->name, j->line,
		(size_t)(at - j->begin) + 1,
		what);
}

static enum hd_err bad(const struct hd_jsonl *j, struct hd_diag *diag, const char *what)
{
	return bad_at(j, j->at, diag, "%s", what);
}

static enum hd_err too_long(const struct hd_jsonl *j, struct hd_diag *diag)
{
	return bad_at(j, j->begin, diag, "a line of more than %d MiB", HD_JSONL_LINE >> 20);
}

/* What ends a line is no blank. */
static void skip_blanks(struct hd_jsonl *j)
{
	while (j->at < j->end && (*j->at == ' ' || *j->at == '\t' || *j->at == '\r'))
		j->at++;
}

bool hd_jsonl_more(struct hd_jsonl *j)
{
	for (;;) {
		skip_blanks(j);
		if (j->at == j->end || *j->at != '\n')
			return j->at < j->end;
		j->begin = ++j->at;
		j->line++;
	}
}

/* ---- texts ---- */

static enum hd_err put_bytes(struct hd_jsonl *j, const void *bytes, size_t len, struct hd_diag *diag)
{
	enum hd_err err = j->text_len + len > HD_JSONL_LINE ? too_long(j, diag) :
		hd_grow(&j->text, &j->text_cap, j->text_len + len + 1, 1, "bytes of text", diag);

	if (err)
		return err;
	memcpy(j->text + j->text_len, bytes, len);
	j->text_len += len;
	return HD_OK;
}

static int hex_of(uint8_t c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 :
		c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The four digits behind \u. */
static enum hd_err read_unit(struct hd_jsonl *j, uint32_t *unit, struct hd_diag *diag)
{
	*unit = 0;
	for (int i = 0; i < 4; i++, j->at++) {
		const int digit = j->at < j->end ? hex_of(*j->at) : -1;
		if (digit < 0)
			return bad(j, diag, "\\u wants four hexadecimal digits");
		*unit = *unit << 4 | (uint32_t)digit;
	}
	return HD_OK;
}

static size_t write_utf8(uint8_t out[4], uint32_t c)
{
	if (c < 0x80)
		return out[0] = (uint8_t)c, 1;
	if (c < 0x800)
		return out[0] = (uint8_t)(0xc0 | c >> 6), out[1] = (uint8_t)(0x80 | (c & 0x3f)), 2;
	const size_t n = c < 0x10000 ? 3 : 4;
	out[0] = (uint8_t)(n == 3 ? 0xe0 | c >> 12 : 0xf0 | c >> 18);
	for (size_t i = 1; i < n; i++)
		out[i] = (uint8_t)(0x80 | (c >> 6 * (n - 1 - i) & 0x3f));
	return n;
}

static enum hd_err read_unicode(struct hd_jsonl *j, const uint8_t *from, uint8_t out[4], size_t *n,
	struct hd_diag *diag)
{
	uint32_t c, low;
	enum hd_err err = read_unit(j, &c, diag);

	if (!err && c >= 0xd800 && c < 0xdc00 && j->end - j->at > 2 && j->at[0] == '\\' && j->at[1] == 'u') {
		j->at += 2;
		err = read_unit(j, &low, diag);
		c = !err && low >= 0xdc00 && low < 0xe000 ? 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00) :
			c;
	}
	if (!err && c >= 0xd800 && c < 0xe000)
		return bad_at(j, from, diag, "half of a surrogate pair: it stands for no character");
	if (!err)
		*n = write_utf8(out, c);
	return err;
}

static enum hd_err read_escape(struct hd_jsonl *j, bool keep, struct hd_diag *diag)
{
	static const char names[] = "\"\\/bfnrt", bytes[] = "\"\\/\b\f\n\r\t";
	const uint8_t *from = j->at++;
	const char *found = j->at < j->end && *j->at ? strchr(names, *j->at) : NULL;
	uint8_t out[4];
	size_t n = 1;
	enum hd_err err = HD_OK;

	if (found) {
		out[0] = (uint8_t)bytes[found - names];
		j->at++;
	} else if (j->at < j->end && *j->at == 'u') {
		j->at++;
		err = read_unicode(j, from, out, &n, diag);
	} else {
		return bad_at(j, from, diag, "a backslash before what JSON has no escape for");
	}
	return err || !keep ? err : put_bytes(j, out, n, diag);
}

/* The string at hand, its quote included; its text is put behind what there is. */
static enum hd_err read_string(struct hd_jsonl *j, bool keep, struct hd_diag *diag)
{
	const uint8_t *opens = j->at++, *from;
	enum hd_err err = HD_OK;

	while (!err) {
		for (from = j->at; j->at < j->end && *j->at >= 0x20 && *j->at != '"' && *j->at != '\\'; ) {
			const size_t n = *j->at < 0x80 ? 1 :
				hd_utf8_len((const char *)j->at, (size_t)(j->end - j->at));
			if (!n)
				return bad_at(j, j->at, diag, "0x%02x is no UTF-8", *j->at);
			j->at += n;
		}
		if (keep && j->at > from)
			err = put_bytes(j, from, (size_t)(j->at - from), diag);
		if (err)
			return err;
		if (j->at == j->end || *j->at == '\n')
			return bad_at(j, opens, diag, "the text that opens here is not closed in its line");
		if (*j->at == '"')
			return j->at++, HD_OK;
		err = *j->at == '\\' ? read_escape(j, keep, diag) :
			bad_at(j, j->at, diag, "a control character (0x%02x): write it as \\u%04x", *j->at,
				*j->at);
	}
	return err;
}

/* ---- cells ---- */

static enum hd_err put_number(struct hd_jsonl *j, bool whole, union hd_row_number v, const uint8_t *from,
	struct hd_diag *diag)
{
	struct hd_row_cell *c = &j->cells[j->cell];
	const int32_t lists = (int32_t)(j->depth - j->cell_depth);

	if (j->leaf >= 0 ? lists != j->leaf : c->rank && lists != (int32_t)c->rank)
		return bad_at(j, from, diag, "\"%.60s\" has numbers and lists side by side",
			j->wanted[j->cell]);
	enum hd_err err = hd_grow(&j->number, &j->number_cap, j->nnumbers + 1, sizeof v, "numbers", diag);
	if (err)
		return err;
	if (c->kind == HD_ROW_WHOLE && !whole)
		for (uint64_t i = j->from[j->cell]; i < j->nnumbers; i++)
			j->number[i].real = (double)j->number[i].whole;
	if (c->kind == HD_ROW_REAL && whole)
		v.real = (double)v.whole;
	c->kind = whole && c->kind != HD_ROW_REAL ? HD_ROW_WHOLE : HD_ROW_REAL;
	j->leaf = lists;
	j->number[j->nnumbers++] = v;
	return HD_OK;
}

static const uint8_t *digits(const uint8_t *at, const uint8_t *end)
{
	while (at < end && *at >= '0' && *at <= '9')
		at++;
	return at;
}

/* The grammar of RFC 8259; NULL: it is none. */
static const uint8_t *end_of_number(const uint8_t *at, const uint8_t *end, bool *whole)
{
	const uint8_t *from = at += at < end && *at == '-';

	*whole = true;
	at = digits(at, end);
	if (at == from || (*from == '0' && at > from + 1))
		return NULL;
	if (at < end && *at == '.') {
		*whole = false;
		from = ++at;
		if ((at = digits(at, end)) == from)
			return NULL;
	}
	if (at < end && (*at == 'e' || *at == 'E')) {
		*whole = false;
		at++;
		from = at += at < end && (*at == '+' || *at == '-');
		if ((at = digits(at, end)) == from)
			return NULL;
	}
	return at;
}

static enum hd_err read_number(struct hd_jsonl *j, struct hd_diag *diag)
{
	char text[HD_JSONL_NUMBER + 1];
	struct hd_diag why = { "" };
	union hd_row_number v = { 0 };
	bool whole;
	const uint8_t *from = j->at, *end = end_of_number(from, j->end, &whole);

	if (!end)
		return bad(j, diag, "this is no value of JSON: a text in quotes, a number, true, false, "
			"null, "
			"a list or an object (NaN and Infinity are none)");
	j->at = end;
	if (j->cell == NONE)
		return HD_OK;
	if (end - from > HD_JSONL_NUMBER)
		return bad_at(j, from, diag, "a number of more than %d characters", HD_JSONL_NUMBER);
	memcpy(text, from, (size_t)(end - from));
	text[end - from] = 0;
	whole = whole && hd_num_i64(text, INT64_MIN, INT64_MAX, &v.whole, &why) == HD_OK;
	if (!whole && hd_num_f64(text, -DBL_MAX, DBL_MAX, &v.real, &why))
		return bad_at(j, from, diag, "%.40s is larger than a number may be", text);
	return put_number(j, whole, v, from, diag);
}

static enum hd_err read_word(struct hd_jsonl *j, const char *word, int value, struct hd_diag *diag)
{
	const uint8_t *from = j->at;
	const size_t len = strlen(word);

	if ((size_t)(j->end - j->at) < len || memcmp(j->at, word, len) != 0)
		return read_number(j, diag);                 /* says what a value is */
	j->at += len;
	if (j->cell == NONE)
		return HD_OK;
	if (value >= 0)
		return put_number(j, true, (union hd_row_number){ .whole = value }, from, diag);
	return j->depth == j->cell_depth ? HD_OK : bad_at(j, from, diag,
		"null in the list \"%.60s\": fill it in",
		j->wanted[j->cell]);
}

/* A text is a cell by itself. */
static enum hd_err read_text(struct hd_jsonl *j, struct hd_diag *diag)
{
	const bool keep = j->cell != NONE;
	const uint8_t *from = j->at;

	if (keep && j->depth > j->cell_depth)
		return bad_at(j, from, diag, "a text in the list \"%.60s\": lists are of numbers",
			j->wanted[j->cell]);
	if (keep)
		j->from[j->cell] = j->text_len;
	enum hd_err err = read_string(j, keep, diag);
	if (err || !keep)
		return err;
	j->cells[j->cell].kind = HD_ROW_TEXT;
	j->cells[j->cell].len = j->text_len - j->from[j->cell];
	return put_bytes(j, "", 1, diag);
}

/* ---- containers ---- */

static enum hd_err open_container(struct hd_jsonl *j, struct hd_diag *diag)
{
	const bool array = *j->at == '[';

	if (j->depth == HD_JSONL_DEPTH)
		return bad_at(j, j->at, diag, "more than %d brackets inside one another", HD_JSONL_DEPTH);
	if (j->cell != NONE && !array)
		return bad_at(j, j->at, diag, "\"%.60s\" %s an object: name a member of it, as "
			"\"%.60s.name\"",
			j->wanted[j->cell], j->depth > j->cell_depth ? "holds" : "is", j->wanted[j->cell]);
	if (j->cell != NONE && j->leaf >= 0 && (int32_t)(j->depth - j->cell_depth) >= j->leaf)
		return bad_at(j, j->at, diag, "\"%.60s\" has numbers and lists side by side",
			j->wanted[j->cell]);
	if (j->cell != NONE && j->depth - j->cell_depth == HD_ROW_RANK)
		return bad_at(j, j->at, diag, "\"%.60s\" has more than %d lists inside one another",
			j->wanted[j->cell], HD_ROW_RANK);
	if (array)
		j->path_len = HD_JSONL_PATH;                 /* objects in lists have no path */
	j->level[j->depth++] = (struct hd_jsonl_level){ .array = array, .path_len = j->path_len };
	j->at++;
	return HD_OK;
}

/* An extent is that of the first list of its depth; the others must have it. */
static enum hd_err close_list(struct hd_jsonl *j, struct hd_diag *diag)
{
	struct hd_row_cell *c = &j->cells[j->cell];
	const struct hd_jsonl_level *level = &j->level[j->depth - 1];
	const uint32_t d = j->depth - 1 - j->cell_depth;

	if (c->rank <= d)
		c->rank = d + 1;
	if (c->dim[d] < 0)
		c->dim[d] = (int64_t)level->n;
	return c->dim[d] == (int64_t)level->n ? HD_OK : bad(j, diag, "a list of another length than those "
		"before it: extents must be regular");
}

static enum hd_err close_container(struct hd_jsonl *j, struct hd_diag *diag)
{
	enum hd_err err = j->cell != NONE ? close_list(j, diag) : HD_OK;

	j->at++;
	j->depth--;
	return err;
}

/* Which cell a member is, if one. */
static enum hd_err find_wanted(struct hd_jsonl *j, const uint8_t *at, struct hd_diag *diag)
{
	uint32_t i = 0;

	while (i < j->nwanted && (strlen(j->wanted[i]) != j->path_len ||
		memcmp(j->wanted[i], j->path, j->path_len) != 0))
		i++;
	if (i == j->nwanted)
		return HD_OK;
	if (j->cells[i].column)
		return bad_at(j, at, diag, "a second member \"%.60s\" in one line", j->wanted[i]);
	j->cells[i].column = (uint64_t)(at - j->begin) + 1;
	j->cell = i;
	j->cell_depth = j->depth;
	j->leaf = -1;
	j->from[i] = j->nnumbers;
	return HD_OK;
}

/* Name and colon; the path is that of the object and the name. */
static enum hd_err read_name(struct hd_jsonl *j, struct hd_diag *diag)
{
	const struct hd_jsonl_level *level = &j->level[j->depth - 1];
	const uint64_t before = j->text_len;
	enum hd_err err;

	if (j->at == j->end || *j->at != '"')
		return bad(j, diag, "a member begins with its name in quotes");
	const uint8_t *at = j->at;
	if ((err = read_string(j, true, diag)))
		return err;
	const size_t len = j->text_len - before, dot = j->depth > 1;
	const char *name = len ? j->text + before : "";
	j->text_len = before;
	if (j->depth == 1 && j->member && (err = j->member(j->user, name, len, diag)))
		return err;
	skip_blanks(j);
	if (j->at == j->end || *j->at != ':')
		return bad(j, diag, "a colon is missing behind the name of a member");
	j->at++;
	j->path_len = level->path_len;
	if (level->path_len + dot + len >= HD_JSONL_PATH) {
		j->path_len = HD_JSONL_PATH;                 /* what lies in it is not wanted either */
		return HD_OK;
	}
	if (dot)
		j->path[j->path_len++] = '.';
	if (len)
		memcpy(j->path + j->path_len, name, len);
	j->path_len += (uint32_t)len;
	return find_wanted(j, at, diag);
}

static enum hd_err read_value(struct hd_jsonl *j, struct hd_diag *diag)
{
	skip_blanks(j);
	if (j->at == j->end || *j->at == '\n')
		return bad(j, diag, "the line ends where a value should stand");
	switch (*j->at) {
	case '{': case '[': return open_container(j, diag);
	case '"': return read_text(j, diag);
	case 't': return read_word(j, "true", 1, diag);
	case 'f': return read_word(j, "false", 0, diag);
	case 'n': return read_word(j, "null", -1, diag);
	default: return read_number(j, diag);
	}
}

/* What comes next in the innermost container: its end, or a comma and a value. */
static enum hd_err step(struct hd_jsonl *j, struct hd_diag *diag)
{
	struct hd_jsonl_level *level = &j->level[j->depth - 1];
	enum hd_err err = HD_OK;

	skip_blanks(j);
	if (j->at == j->end || *j->at == '\n')
		return bad(j, diag, level->array ? "the line ends inside a list" :
			"the line ends inside an object");
	if (*j->at == (level->array ? ']' : '}'))
		return close_container(j, diag);
	if (level->n && *j->at != ',')
		return bad(j, diag, level->array ? "neither a comma nor the end of the list" :
			"neither a comma nor the end of the object");
	j->at += level->n != 0;
	skip_blanks(j);
	level->n++;
	if (!level->array)
		err = read_name(j, diag);
	return err ? err : read_value(j, diag);
}

/* A cell ends where the containers are those of its beginning. */
static void end_cell(struct hd_jsonl *j)
{
	struct hd_row_cell *c = &j->cells[j->cell];

	if (c->kind == HD_ROW_NONE && c->rank)
		c->kind = HD_ROW_WHOLE;                      /* an empty list */
	c->n = c->kind == HD_ROW_WHOLE || c->kind == HD_ROW_REAL ? j->nnumbers - j->from[j->cell] : 0;
	j->cell = NONE;
}

static enum hd_err end_line(struct hd_jsonl *j, struct hd_diag *diag)
{
	skip_blanks(j);
	if (j->at < j->end && *j->at != '\n')
		return bad(j, diag, "more behind the object: one object a line");
	if (j->at < j->end) {
		j->begin = ++j->at;
		j->line++;
	}
	for (uint32_t i = 0; i < j->nwanted; i++) {
		struct hd_row_cell *c = &j->cells[i];
		c->text = c->kind == HD_ROW_TEXT ? j->text + j->from[i] : NULL;
		c->number = c->n ? j->number + j->from[i] : NULL;
	}
	return HD_OK;
}

enum hd_err hd_jsonl_next(struct hd_jsonl *j, struct hd_row_cell *cells, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	assert(j->at < j->end);
	j->cells = cells;
	j->cell = NONE;
	j->depth = j->path_len = 0;
	j->nnumbers = j->text_len = 0;
	for (uint32_t i = 0; i < j->nwanted; i++) {
		cells[i] = (struct hd_row_cell){ .kind = HD_ROW_NONE };
		for (uint32_t d = 0; d < HD_ROW_RANK; d++)
			cells[i].dim[d] = -1;
	}
	skip_blanks(j);
	if (j->at == j->end || *j->at != '{')
		return bad(j, diag, "a line is an object: it begins with {");
	err = open_container(j, diag);
	while (!err && j->depth) {
		err = step(j, diag);
		if (!err && j->cell != NONE && j->depth <= j->cell_depth)
			end_cell(j);
		if (!err && j->at - j->begin > HD_JSONL_LINE)
			err = too_long(j, diag);
	}
	return err ? err : end_line(j, diag);
}
