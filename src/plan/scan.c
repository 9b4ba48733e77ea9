#include "plan/scan.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct hd_scan hd_scan_of(const char *text, size_t len, const char *file, struct hd_diag *diag)
{
	return (struct hd_scan){ .file = file, .next = text, .end = text + len, .diag = diag };
}

static bool is_blank(char c) { return c == ' ' || c == '\t'; }

bool hd_scan_line(struct hd_scan *scan, bool headings)
{
	while (scan->next < scan->end) {
		const char *feed = memchr(scan->next, '\n', (size_t)(scan->end - scan->next));
		scan->line = scan->at = scan->next;
		scan->line_end = feed ? feed : scan->end;
		scan->next = feed ? feed + 1 : scan->end;
		scan->nline++;
		while (scan->at < scan->line_end && is_blank(*scan->at))
			scan->at++;
		size_t left = (size_t)(scan->line_end - scan->at);
		if (left && (*scan->at != '#' || (headings && left > 1 && scan->at == scan->line &&
			scan->at[1] == '#')))
			return true;
	}
	return false;
}

bool hd_scan_word(struct hd_scan *scan, const char **word, size_t *len)
{
	while (scan->at < scan->line_end && is_blank(*scan->at))
		scan->at++;
	*word = scan->at;
	while (scan->at < scan->line_end && !is_blank(*scan->at))
		scan->at++;
	*len = (size_t)(scan->at - *word);
	return *len > 0;
}

enum hd_err hd_scan_refuse(const struct hd_scan *scan, const char *at, const char *fmt, ...)
{
	char what[300];
	va_list args;

	va_start(args, fmt);
	vsnprintf(what, sizeof what, fmt, args);
	va_end(args);
	return hd_fail(scan->diag, HD_E_INPUT, "%s:%u:%u: %s", scan->file, scan->nline,
		(uint32_t)(at - scan->line) + 1, what);
}

enum hd_err hd_scan_number(const struct hd_scan *scan, const char *word, size_t len, uint64_t max,
	uint64_t *out)
{
	uint64_t v = 0;
	size_t i = 0;

	for (; i < len && word[i] >= '0' && word[i] <= '9' && v <= max && i < 20; i++)
		v = v * 10 + (uint64_t)(word[i] - '0');
	if (i < len || len == 0 || v > max || (len > 1 && word[0] == '0'))
		return hd_scan_refuse(scan, word, "\"%.*s\" is not a plain number up to %llu",
			(int)(len < 40 ? len : 40), word, (unsigned long long)max);
	*out = v;
	return HD_OK;
}

bool hd_scan_is_list(const struct hd_scan *scan)
{
	return scan->at < scan->line_end && *scan->at >= '0' && *scan->at <= '9';
}

enum hd_err hd_scan_rank(struct hd_scan *scan, uint32_t nranks, uint32_t *rank)
{
	const char *word = scan->at, *colon = memchr(word, ':', (size_t)(scan->line_end - word));
	uint64_t v = 0;

	if (!colon)
		return hd_scan_refuse(scan, word, "a rank is followed by a colon and its instructions");
	enum hd_err err = hd_scan_number(scan, word, (size_t)(colon - word), HD_MAX_RANKS - 1, &v);
	if (err)
		return err;
	if (v >= nranks)
		return hd_scan_refuse(scan, word, "there is no rank %u; they are 0 to %u", (uint32_t)v,
			nranks - 1);
	scan->at = colon + 1;
	*rank = (uint32_t)v;
	return HD_OK;
}

static enum hd_err take_ins(const struct hd_scan *scan, struct hd_ilist *list, const char *word, size_t len,
	uint8_t flags)
{
	struct hd_diag why = { "" };
	struct hd_ins *ins = &list->at[list->len];
	size_t bad = 0;

	if (hd_ins_parse(ins, word, len, &bad, &why))
		return hd_scan_refuse(scan, word + bad, "%s", why.text);
	if (flags & ~hd_ins_flags_of(ins->op))
		return hd_scan_refuse(scan, word, "%s cannot be half of a pair", hd_ins_row(ins->op)->text);
	ins->flags |= flags;
	list->len++;
	return HD_OK;
}

static enum hd_err take_pair(const struct hd_scan *scan, struct hd_ilist *list, const char *word, size_t len)
{
	const char *both = memchr(word, '&', len);

	if (!both || word[len - 1] != ')')
		return hd_scan_refuse(scan, word, "a pair is written (F1.2&B0.1), without blanks");
	enum hd_err err = take_ins(scan, list, word + 1, (size_t)(both - word) - 1, HD_INS_PAIR_BEGIN);
	return err ? err : take_ins(scan, list, both + 1, (size_t)(word + len - 1 - both) - 1,
		HD_INS_PAIR_END);
}

enum hd_err hd_scan_list(struct hd_scan *scan, struct hd_ilist *list, uint32_t *left, struct hd_arena *arena)
{
	struct hd_scan count = *scan;
	struct hd_ilist l = { 0 };
	const char *word;
	size_t len;
	enum hd_err err = HD_OK;

	while (hd_scan_word(&count, &word, &len)) {
		uint32_t n = *word == '(' ? 2 : 1;
		if (*left < n)
			return hd_scan_refuse(scan, word, "more than %d instructions", HD_MAX_INS);
		*left -= n;
		l.cap += n;
	}
	l.at = hd_arena_take(arena, (size_t)l.cap + 1, sizeof *l.at);
	if (!l.at)
		return hd_fail(scan->diag, HD_E_NOMEM, "%s:%u: no memory for %u instructions", scan->file,
			scan->nline, l.cap);
	while (!err && hd_scan_word(scan, &word, &len))
		err = *word == '(' ? take_pair(scan, &l, word, len) : take_ins(scan, &l, word, len, 0);
	if (!err)
		*list = l;
	return err;
}

void hd_list_print(const struct hd_ilist *list, struct hd_text *text)
{
	for (uint32_t i = 0; i < list->len; i++) {
		uint8_t flags = list->at[i].flags;
		hd_text_add(text, flags & HD_INS_PAIR_END ? "&" : flags & HD_INS_PAIR_BEGIN ? " (" : " ");
		hd_ins_print(&list->at[i], text);
		if (flags & HD_INS_PAIR_END)
			hd_text_add(text, ")");
	}
}
