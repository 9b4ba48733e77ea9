#define _GNU_SOURCE        /* memmem */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "token/pattern.h"

#include <pcre2.h>
#include <string.h>

#include "token/pattern_int.h"
#include "token/unicode.h"

enum { MESSAGE = 120, PATH = 120, JIT_FIRST = 32 << 10 };

static enum hd_err compile(struct hd_pattern *p, const struct hd_text *text, const char *regex,
	struct hd_diag *diag)
{
	PCRE2_UCHAR why[MESSAGE];
	PCRE2_SIZE at;
	int code;
	pcre2_compile_context *context = pcre2_compile_context_create(NULL);

	if (!context || pcre2_set_newline(context, PCRE2_NEWLINE_LF))
		return pcre2_compile_context_free(context), hd_fail(diag, HD_E_NOMEM,
			"no memory for a regular expression");
	p->code = pcre2_compile((PCRE2_SPTR)text->at, text->len, PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE |
		PCRE2_NEVER_BACKSLASH_C, &code, &at, context);
	pcre2_compile_context_free(context);
	if (p->code) {
		(void)pcre2_jit_compile(p->code, PCRE2_JIT_COMPLETE);      /* without it: slower */
		return HD_OK;
	}
	if (pcre2_get_error_message(code, why, sizeof why) < 0)
		why[0] = 0;
	return hd_fail(diag, HD_E_INPUT, "%s: the regular expression \"%.200s\" is none: %s", p->where, regex,
		(const char *)why);
}

enum hd_err hd_pattern_make(struct hd_pattern *p, const char *regex, const char *where,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_text text;

	*p = (struct hd_pattern){ .where = hd_arena_text(arena, where, strlen(where)) };
	if (!p->where)
		return hd_fail(diag, HD_E_NOMEM, "no memory for a regular expression");
	hd_text_init(&text, arena);
	enum hd_err err = hd_pattern_rewrite(regex, where, &text, diag);
	if (!err && text.full)
		err = hd_fail(diag, HD_E_NOMEM, "no memory for a regular expression");
	return err ? err : compile(p, &text, regex, diag);
}

enum hd_err hd_pattern_read(struct hd_pattern *p, const struct hd_json *json, struct hd_arena *arena,
	struct hd_diag *diag)
{
	static const char *const keys[] = { "String", "Regex", NULL };
	char path[PATH];
	const char *text;
	enum hd_err err;

	if ((err = hd_json_as(json, HD_JSON_OBJECT, diag)) || (err = hd_json_only(json, keys, diag)))
		return err;
	if (hd_json_find(json, "Regex"))
		return (err = hd_json_get_text(json, "Regex", &text, diag)) ? err : hd_pattern_make(p, text,
			hd_json_path(json, path, sizeof path), arena, diag);
	if ((err = hd_json_get_text(json, "String", &text, diag)))
		return err;
	if (!*text)
		return hd_fail(diag, HD_E_INPUT, "%s: an empty string is found everywhere",
			hd_json_path(json, path, sizeof path));
	*p = (struct hd_pattern){ .len = strlen(text), .string = hd_arena_text(arena, text, strlen(text)),
		.where = "" };
	return p->string ? HD_OK : hd_fail(diag, HD_E_NOMEM, "no memory for a string");
}

void hd_pattern_finish(struct hd_pattern *p)
{
	pcre2_code_free(p->code);
	p->code = NULL;
}

enum hd_err hd_finder_make(struct hd_finder *finder, struct hd_diag *diag)
{
	pcre2_match_context *context = pcre2_match_context_create(NULL);

	*finder = (struct hd_finder){ .context = context, .data = pcre2_match_data_create(1, NULL),
		.stack = pcre2_jit_stack_create(JIT_FIRST, HD_PATTERN_STACK, NULL) };
	if (!finder->data || !context || !finder->stack)
		return hd_fail(diag, HD_E_NOMEM, "no memory for matches");
	pcre2_set_match_limit(context, HD_PATTERN_TRIES);
	pcre2_jit_stack_assign(context, NULL, finder->stack);
	return HD_OK;
}

void hd_finder_finish(struct hd_finder *finder)
{
	pcre2_match_data_free(finder->data);
	pcre2_match_context_free(finder->context);
	if (finder->stack)
		pcre2_jit_stack_free(finder->stack);
	*finder = (struct hd_finder){ 0 };
}

static bool find_string(struct hd_found *f)
{
	const uint8_t *at = f->from < f->text.len ? memmem(f->text.at + f->from, f->text.len - f->from,
		f->pattern->string, f->pattern->len) : NULL;

	if (!at)
		return false;
	f->first = (size_t)(at - f->text.at);
	f->from = f->end = f->last = f->first + f->pattern->len;
	return true;
}

/* Compiled code ends where its stack does; the interpreter goes on, on the heap. */
static int match(struct hd_found *f)
{
	const struct hd_finder *m = f->finder;
	int n = pcre2_match(f->pattern->code, f->text.at, f->text.len, f->from, PCRE2_NO_UTF_CHECK, m->data,
		m->context);

	return n != PCRE2_ERROR_JIT_STACKLIMIT ? n : pcre2_match(f->pattern->code, f->text.at, f->text.len,
		f->from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, m->data, m->context);
}

bool hd_found_next(struct hd_found *f, enum hd_err *err, struct hd_diag *diag)
{
	if (!f->pattern->code)
		return find_string(f);
	while (f->from <= f->text.len) {
		int n = match(f);
		if (n == PCRE2_ERROR_NOMATCH)
			return false;
		if (n < 0) {
			*err = hd_fail(diag, HD_E_INPUT, "%s: the regular expression does not get done with "
				"this text (PCRE2 %d)", f->pattern->where, n);
			return false;
		}
		const PCRE2_SIZE *at = pcre2_get_ovector_pointer(f->finder->data);
		f->first = at[0];
		f->last = at[1];
		if (f->last > f->first || !f->any || f->end != f->last) {
			f->any = true;
			f->from = f->end = f->last;
			return true;
		}
		f->from += f->from < f->text.len ? hd_char_len(f->text.at[f->from]) : 1;
	}
	return false;
}
