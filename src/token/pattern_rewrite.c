#include "token/pattern_int.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "token/unicode.h"
#include "token/unicode_int.h"

/* Oniguruma's own syntax against PCRE2's with UTF, UCP and MULTILINE, as far as published files and what
 * resembles them use it. Taken as they are: characters, `.`, `^`, `$`, `|`, groups, look-around, `*`, `+`,
 * `?` and these with `?` or `+` behind them. Rewritten: classes (newer Unicode there), \s, \S, \v, \h, {,n},
 * and groups that capture, since nothing refers to them. The rest is refused. */

struct rewrite {
	const char *at, *begin;
	const char *regex, *where;
	struct hd_text *out;
	struct hd_diag *diag;
};

static enum hd_err refuse(const struct rewrite *r, const char *what)
{
	return hd_fail(r->diag, HD_E_INPUT, "%s: character %zu of the regular expression \"%.200s\": %s is "
		"not "
		"supported", r->where, (size_t)(r->at - r->begin) + 1, r->regex, what);
}

static const struct { const char *name, *base; const struct hd_chars *more; } classes[] = {
	{ "L", "\\p{L}", hd_chars_re_L }, { "Lu", "\\p{Lu}", hd_chars_re_Lu },
	{ "Ll", "\\p{Ll}", hd_chars_re_Ll }, { "Lt", "\\p{Lt}", hd_chars_re_Lt },
	{ "Lm", "\\p{Lm}", hd_chars_re_Lm }, { "Lo", "\\p{Lo}", hd_chars_re_Lo },
	{ "M", "\\p{M}", hd_chars_re_M }, { "N", "\\p{N}", hd_chars_re_N },
	{ "Nd", "\\p{Nd}", hd_chars_re_Nd }, { "P", "\\p{P}", hd_chars_re_P },
	{ "S", "\\p{S}", hd_chars_re_S }, { "Han", "\\p{sc:Han}", hd_chars_re_Han },
	{ "w", "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}", hd_chars_re_w },
};

/* White_Space, and the rest; \h of Oniguruma is a hexadecimal digit */
static const char space[] = "\\x{9}-\\x{d}\\x{20}-\\x{20}\\x{85}-\\x{85}\\x{a0}-\\x{a0}\\x{1680}-\\x{1680}"
	"\\x{2000}-\\x{200a}\\x{2028}-\\x{2029}\\x{202f}-\\x{202f}\\x{205f}-\\x{205f}\\x{3000}-\\x{3000}",
	no_space[] = "\\x{0}-\\x{8}\\x{e}-\\x{1f}\\x{21}-\\x{84}\\x{86}-\\x{9f}\\x{a1}-\\x{167f}"
	"\\x{1681}-\\x{1fff}\\x{200b}-\\x{2027}\\x{202a}-\\x{202e}\\x{2030}-\\x{205e}\\x{2060}-\\x{2fff}"
	"\\x{3001}-\\x{d7ff}\\x{e000}-\\x{10ffff}", hexadecimal[] = "0-9A-Fa-f";

/* Within [ ] Oniguruma's \w has no superscripts and fractions of Latin-1, by itself it has. */
static bool put_class(struct rewrite *r, const char *name, size_t len, bool inside)
{
	for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++)
		if (strlen(classes[i].name) == len && !memcmp(classes[i].name, name, len)) {
			hd_text_add(r->out, classes[i].base);
			for (const struct hd_chars *c = classes[i].more; c->last; c++)
				if (!inside || c->last > 0xff)
					hd_text_addf(r->out, "\\x{%x}-\\x{%x}", c->first, c->last);
			return true;
		}
	return false;
}

/* \p{L}, \P{L}, \p{^L}: at the `p`. */
static enum hd_err property(struct rewrite *r, bool inside)
{
	bool not = *r->at == 'P';
	const char *end;

	if (r->at[1] != '{' || !(end = strchr(r->at, '}')))
		return refuse(r, "\\p without a name in braces");
	const char *name = r->at + 2;
	if (*name == '^') {
		not = !not;
		name++;
	}
	if (not && inside)
		return refuse(r, "\\P within [ ]");
	if (!inside)
		hd_text_add(r->out, not ? "[^" : "[");
	if (!put_class(r, name, (size_t)(end - name), inside))
		return refuse(r, "a property other than L, Lu, Ll, Lt, Lm, Lo, M, N, Nd, P, S, Han");
	if (!inside)
		hd_text_add(r->out, "]");
	r->at = end + 1;
	return HD_OK;
}

/* \x41, \x{1F600}, A: at the letter. */
static enum hd_err number(struct rewrite *r)
{
	bool wide = *r->at == 'u', braces = !wide && r->at[1] == '{';
	const char *from = r->at + 1 + braces, *at = from;
	unsigned long value = 0;
	size_t most = wide ? 4 : braces ? 8 : 2;

	for (; (size_t)(at - from) < most && strchr("0123456789abcdefABCDEF", *at) && *at; at++)
		value = value * 16 + (unsigned long)((*at | 32) >= 'a' ? (*at | 32) - 'a' + 10 : *at - '0');
	if (at == from || (wide && at - from != 4) || (braces && *at != '}') || value > 0x10ffff ||
		(value >= 0xd800 && value < 0xe000) || (!wide && !braces && value > 0x7f))
		return refuse(r, "this number of a character");
	hd_text_addf(r->out, "\\x{%lx}", value);
	r->at = at + braces;
	return HD_OK;
}

/* Letters behind a backslash that stand for a set. */
static bool put_set(struct rewrite *r, bool inside)
{
	const char c = *r->at, *set = c == 's' ? space : c == 'S' ? no_space : c == 'h' ? hexadecimal : NULL;

	if (!set && c != 'd' && c != 'w' && (inside || (c != 'D' && c != 'W')))
		return false;
	if (!inside)
		hd_text_add(r->out, c == 'D' || c == 'W' ? "[^" : "[");
	if (set)
		hd_text_add(r->out, set);
	else if (c == 'd' || c == 'D')
		put_class(r, "Nd", 2, inside);
	else
		put_class(r, "w", 1, inside);
	if (!inside)
		hd_text_add(r->out, "]");
	r->at++;
	return true;
}

/* At the backslash. */
static enum hd_err escape(struct rewrite *r, bool inside)
{
	const char c = *++r->at;

	if (c == 'p' || c == 'P')
		return property(r, inside);
	if (c == 'x' || c == 'u')
		return number(r);
	if (put_set(r, inside))
		return HD_OK;
	if (c == 'v' || (inside && c == 'b'))
		hd_text_add(r->out, c == 'v' ? "\\x{b}" : "\\x{8}");
	else if (c && strchr("rntfae", c))
		hd_text_addf(r->out, "\\%c", c);
	else if (!inside && (c == 'A' || c == 'z'))
		hd_text_addf(r->out, "\\%c", c);
	else if (c > ' ' && c < 127 && !((c | 32) >= 'a' && (c | 32) <= 'z') && !(c >= '0' && c <= '9'))
		hd_text_addf(r->out, "\\%c", c);
	else if (c == ' ')
		hd_text_add(r->out, " ");
	else
		return refuse(r, "this letter behind a backslash");
	r->at++;
	return HD_OK;
}

/* At the bracket. */
static enum hd_err bracket(struct rewrite *r)
{
	enum hd_err err;

	hd_text_put(r->out, r->at++, 1);
	if (*r->at == '^')
		hd_text_put(r->out, r->at++, 1);
	if (*r->at == ']')
		return refuse(r, "] at the beginning of [ ]");
	while (*r->at != ']') {
		if (!*r->at)
			return refuse(r, "[ without ]");
		if (*r->at == '[' || (r->at[0] == '&' && r->at[1] == '&'))
			return refuse(r, "a set within [ ]");
		if (*r->at != '\\')
			hd_text_put(r->out, r->at++, 1);
		else if ((err = escape(r, true)))
			return err;
	}
	hd_text_put(r->out, r->at++, 1);
	return HD_OK;
}

static enum hd_err group(struct rewrite *r)
{
	static const char *const taken[] = { "(?:", "(?=", "(?!", "(?>", "(?<=", "(?<!", "(?i:", "(?-i:" };

	if (r->at[1] != '?') {
		hd_text_add(r->out, "(?:");
		r->at++;
		return HD_OK;
	}
	if (r->at == r->begin && !strncmp(r->at, "(?i)", 4)) {
		hd_text_add(r->out, "(?i)");
		r->at += 4;
		return HD_OK;
	}
	for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++)
		if (!strncmp(r->at, taken[i], strlen(taken[i]))) {
			hd_text_add(r->out, taken[i]);
			r->at += strlen(taken[i]);
			return HD_OK;
		}
	return refuse(r, "this kind of group");
}

/* {n}, {n,}, {,m}, {n,m}; other braces are characters. */
static enum hd_err interval(struct rewrite *r)
{
	char *end, *last;
	const char *from = r->at + 1;
	unsigned long low = strtoul(from, &end, 10), high = low;
	bool comma = *end == ',', bare = end == from;

	if (*from < '0' && *from != ',') {
		hd_text_add(r->out, "\\{");
		r->at++;
		return HD_OK;
	}
	if (comma)
		high = strtoul(end + 1, &last, 10);
	else
		last = end;
	if (*last != '}' || (bare && (!comma || last == end + 1)) || *from > '9') {
		hd_text_add(r->out, "\\{");
		r->at++;
		return HD_OK;
	}
	if (last[1] == '+' || (!comma && last[1] == '?'))
		return refuse(r, "+ or ? behind this interval");
	if (low > 1000 || high > 1000 || (comma && last != end + 1 && high < low))
		return refuse(r, "this interval");
	if (comma && last == end + 1)
		hd_text_addf(r->out, "{%lu,}", low);
	else
		hd_text_addf(r->out, "{%lu,%lu}", low, high);
	r->at = last + 1;
	return HD_OK;
}

enum hd_err hd_pattern_rewrite(const char *regex, const char *where, struct hd_text *out,
	struct hd_diag *diag)
{
	struct rewrite r = { .at = regex, .begin = regex, .regex = regex, .where = where, .out = out,
		.diag = diag };
	enum hd_err err = HD_OK;

	while (*r.at && !err) {
		if (*r.at == '\\')
			err = escape(&r, false);
		else if (*r.at == '[')
			err = bracket(&r);
		else if (*r.at == '(')
			err = group(&r);
		else if (*r.at == '{')
			err = interval(&r);
		else if (!strncmp(r.at, "++", 2) && r.at[2] == '+')
			err = refuse(&r, "three quantifiers in a row");
		else
			hd_text_put(out, r.at++, 1);
	}
	return err;
}
