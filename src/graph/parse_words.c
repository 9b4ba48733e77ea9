#include "graph/parse_words.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

enum { MAX_LABELS = HD_MAX_NODES * HD_MAX_OUT };

__attribute__((format(printf, 2, 3)))
enum hd_err hd_parse_fail(struct hd_parser *p, const char *fmt, ...)
{
	char text[sizeof p->diag->text / 2];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	return hd_fail(p->diag, HD_E_INPUT, "%s:%u:%zu: %s", p->file, p->line,
		(size_t)(p->word.at - p->line_at) + 1, text);
}

/* A builder refused: its reason at our place. Only the lack of memory keeps its code. */
enum hd_err hd_parse_refused(struct hd_parser *p, enum hd_err err, const struct hd_diag *why)
{
	if (err == HD_OK || err == HD_E_NOMEM)
		return err == HD_OK ? HD_OK : hd_fail(p->diag, err, "%s", why->text);
	return hd_parse_fail(p, "%s", why->text);
}

/* Words are runs of other bytes than blanks and the marks , [ ] = : which stand alone. */
static bool is_mark(char c) { return c == ',' || c == '[' || c == ']' || c == '=' || c == ':'; }

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

void hd_parse_next(struct hd_parser *p)
{
	const char *at = p->at;

	while (at < p->end && is_blank(*at))
		at++;
	p->word.at = at;
	p->word.len = 0;
	if (at < p->end && *at != '\n' && *at != '#') {
		if (is_mark(*at))
			at++;
		else
			while (at < p->end && *at != '\n' && !is_blank(*at) && !is_mark(*at))
				at++;
	}
	p->word.len = (size_t)(at - p->word.at);
	p->at = at;
}

bool hd_parse_is(const struct hd_parser *p, const char *text)
{
	return p->word.len == strlen(text) && memcmp(p->word.at, text, p->word.len) == 0;
}

bool hd_parse_ended(const struct hd_parser *p) { return p->word.len == 0; }

int hd_parse_shown(const struct hd_parser *p) { return p->word.len < 40 ? (int)p->word.len : 40; }

enum hd_err hd_parse_mark(struct hd_parser *p, const char *mark)
{
	if (!hd_parse_is(p, mark))
		return hd_parse_fail(p, "'%s' is missing here%s%.*s%s", mark,
			hd_parse_ended(p) ? "" : " (before '", hd_parse_shown(p),
			p->word.at, hd_parse_ended(p) ? "" : "')");
	hd_parse_next(p);
	return HD_OK;
}

/* The word at hand, ended by 0, and on to the next. */
enum hd_err hd_parse_word(struct hd_parser *p, char out[HD_PARSE_WORD], const char *what)
{
	if (hd_parse_ended(p) || (p->word.len == 1 && is_mark(p->word.at[0])))
		return hd_parse_fail(p, "%s is missing here", what);
	if (p->word.len >= HD_PARSE_WORD || memchr(p->word.at, 0, p->word.len))
		return hd_parse_fail(p, "%s: at most %d bytes, none of them 0", what, HD_PARSE_WORD - 1);
	memcpy(out, p->word.at, p->word.len);
	out[p->word.len] = '\0';
	hd_parse_next(p);
	return HD_OK;
}

/* Numbers go through a word of their own so that the C library never reads past the text. The
 * message points at the number, so the word is only left when it is good. */
enum hd_err hd_parse_integer(struct hd_parser *p, int64_t min, int64_t max, int64_t *out)
{
	char text[32], *end;

	if (hd_parse_ended(p) || p->word.len >= sizeof text || is_mark(p->word.at[0]))
		return hd_parse_fail(p, "a whole number is missing here");
	memcpy(text, p->word.at, p->word.len);
	text[p->word.len] = '\0';
	errno = 0;
	long long n = strtoll(text, &end, 10);
	bool digits = (text[0] >= '0' && text[0] <= '9') ||
		(text[0] == '-' && text[1] >= '0' && text[1] <= '9');
	if (!digits || *end || errno || n < min || n > max)
		return hd_parse_fail(p, "'%s' is no whole number from %lld to %lld", text, (long long)min,
			(long long)max);
	*out = n;
	hd_parse_next(p);
	return HD_OK;
}

/* strtof and not a narrowed double: what was printed with the fewest digits must read back to the same
 * bits. */
enum hd_err hd_parse_real(struct hd_parser *p, bool single, double *out)
{
	char text[48], *end = text;

	if (hd_parse_ended(p) || p->word.len >= sizeof text || is_mark(p->word.at[0]))
		return hd_parse_fail(p, "a number is missing here");
	memcpy(text, p->word.at, p->word.len);
	text[p->word.len] = '\0';
	bool words = strcmp(text, "nan") == 0 || strcmp(text, "inf") == 0 || strcmp(text, "-inf") == 0;
	if (words || strspn(text, "0123456789+-.eE") == p->word.len)
		*out = single ? (double)strtof(text, &end) : strtod(text, &end);
	if (end == text || *end)
		return hd_parse_fail(p, "'%s' is no number", text);
	hd_parse_next(p);
	return HD_OK;
}

enum hd_err hd_parse_no_memory(struct hd_parser *p)
{
	return hd_fail(p->diag, HD_E_NOMEM, "%s: no memory for a graph of this size", p->file);
}

enum hd_err hd_parse_label_set(struct hd_parser *p, struct hd_parse_labels *labels, uint32_t label,
	uint32_t value)
{
	if (label >= labels->cap) {
		uint32_t cap = labels->cap ? labels->cap : 256;
		while (cap <= label)
			cap *= 2;
		uint32_t *at = hd_arena_take(p->graph->arena, cap, sizeof *at);
		if (!at)
			return hd_parse_no_memory(p);
		if (labels->cap)
			memcpy(at, labels->at, labels->cap * sizeof *at);
		memset(at + labels->cap, 0xff, (cap - labels->cap) * sizeof *at);
		*labels = (struct hd_parse_labels){ at, cap };
	}
	if (labels->at[label] != HD_NONE)
		return hd_parse_fail(p, "this label is made twice");
	labels->at[label] = value;
	return HD_OK;
}

static uint32_t *name_slot(const struct hd_parser *p, const char *name)
{
	const struct hd_parse_names *names = &p->names;
	uint32_t at = (uint32_t)hd_hash64(name, strlen(name)) & (names->cap - 1);

	while (names->slot[at] != HD_NONE && strcmp(hd_graph_text_of(p->graph,
		p->graph->value[names->slot[at]].name), name) != 0)
		at = (at + 1) & (names->cap - 1);
	return &names->slot[at];
}

enum hd_err hd_parse_name_add(struct hd_parser *p, uint32_t value)
{
	struct hd_parse_names *names = &p->names;

	if (2 * names->n >= names->cap) {
		uint32_t cap = names->cap ? 2 * names->cap : 256, *old = names->slot, nold = names->cap;
		names->slot = hd_arena_take(p->graph->arena, cap, sizeof *names->slot);
		if (!names->slot)
			return hd_parse_no_memory(p);
		memset(names->slot, 0xff, cap * sizeof *names->slot);
		names->cap = cap;
		for (uint32_t i = 0; i < nold; i++)
			if (old[i] != HD_NONE)
				*name_slot(p, hd_graph_text_of(p->graph, p->graph->value[old[i]].name)) =
					old[i];
	}
	*name_slot(p, hd_graph_text_of(p->graph, p->graph->value[value].name)) = value;
	names->n++;
	return HD_OK;
}

/* The number of a label word like %12; the word stays at hand. */
enum hd_err hd_parse_label(struct hd_parser *p, char sign, uint32_t *label)
{
	uint32_t n = 0;

	if (hd_parse_ended(p) || p->word.at[0] != sign || p->word.len < 2 || p->word.len > 8)
		return hd_parse_fail(p, "a label like %c0 is missing here", sign);
	for (size_t i = 1; i < p->word.len; i++) {
		if (p->word.at[i] < '0' || p->word.at[i] > '9')
			return hd_parse_fail(p, "'%.*s': a label is %c and a number", hd_parse_shown(p),
				p->word.at, sign);
		n = n * 10 + (uint32_t)(p->word.at[i] - '0');
	}
	if (n >= MAX_LABELS)
		return hd_parse_fail(p, "labels go up to %c%d", sign, MAX_LABELS - 1);
	*label = n;
	return HD_OK;
}

enum hd_err hd_parse_value(struct hd_parser *p, uint32_t *value)
{
	char name[HD_PARSE_WORD];
	uint32_t label, found = HD_NONE;
	struct hd_parser here = *p;
	enum hd_err err;

	if (!hd_parse_ended(p) && (p->word.at[0] == '%' || p->word.at[0] == '$')) {
		const struct hd_parse_labels *labels = p->word.at[0] == '%' ? &p->temps : &p->consts;
		err = hd_parse_label(p, p->word.at[0], &label);
		if (err != HD_OK)
			return err;
		if (label < labels->cap)
			found = labels->at[label];
		hd_parse_next(p);
	} else {
		err = hd_parse_word(p, name, "a value");
		if (err != HD_OK)
			return err;
		if (p->names.cap)
			found = *name_slot(p, name);
	}
	if (found == HD_NONE)
		return hd_parse_fail(&here, "'%.*s' is not made before this line", hd_parse_shown(&here),
			here.word.at);
	*value = found;
	return HD_OK;
}

/* "f32 [*,3*,8]" */
enum hd_err hd_parse_type(struct hd_parser *p, enum hd_dtype *dtype, uint8_t *rank, int64_t dim[HD_MAX_DIMS])
{
	char word[HD_PARSE_WORD];
	enum hd_err err = hd_parse_word(p, word, "a dtype");

	if (err == HD_OK && !hd_dtype_parse(word, dtype))
		return hd_parse_fail(p, "'%s' before this is no dtype (f32 f64 i32 i64 u8)", word);
	if (err == HD_OK)
		err = hd_parse_mark(p, "[");
	for (*rank = 0; err == HD_OK; (*rank)++) {
		int64_t n = -1;
		if (*rank == HD_MAX_DIMS)
			return hd_parse_fail(p, "a value has at most %d extents", HD_MAX_DIMS);
		bool rows = !hd_parse_ended(p) && p->word.at[p->word.len - 1] == '*';
		if (rows && p->word.len == 1) {
			hd_parse_next(p);
		} else {
			p->word.len -= rows;
			p->at -= rows;
			err = hd_parse_integer(p, 1, HD_MAX_EXTENT, &n);
			if (err == HD_OK && rows) {
				n = -n;
				hd_parse_next(p);
			}
		}
		dim[*rank] = n;
		if (err == HD_OK && hd_parse_is(p, "]")) {
			(*rank)++;
			break;
		}
		if (err == HD_OK)
			err = hd_parse_mark(p, ",");
	}
	return err == HD_OK ? hd_parse_mark(p, "]") : err;
}
