#define _GNU_SOURCE        /* memmem */
#include "token/decode.h"

#include <string.h>

#include "base/alloc.h"
#include "base/grow.h"
#include "base/utf8.h"
#include "token/byte_chars.h"
#include "token/read.h"
#include "token/unicode.h"

static const char unreadable[] = "\xef\xbf\xbd";      /* U+FFFD */

static enum hd_err add_part(struct hd_token_parts *parts, struct hd_token_part part, struct hd_diag *diag)
{
	enum hd_err err = hd_grow(&parts->at, &parts->cap, (uint64_t)parts->n + 1, sizeof *parts->at,
		"tokens",
		diag);

	if (!err)
		parts->at[parts->n++] = part;
	return err;
}

enum hd_err hd_decode_part(struct hd_decode_work *w, const void *at, size_t len, struct hd_diag *diag)
{
	struct hd_token_part part = { w->text.len, len };
	enum hd_err err = hd_bytes_add(&w->text, at, len, diag);

	return err ? err : add_part(&w->parts, part, diag);
}

/* A part that a step makes at the end of the text: from `at` on. */
static enum hd_err made(struct hd_decode_work *w, size_t at, struct hd_diag *diag)
{
	return add_part(&w->next, (struct hd_token_part){ at, w->text.len - at }, diag);
}

/* Bytes of our own text, which may move. */
static enum hd_err again(struct hd_decode_work *w, size_t at, size_t len, struct hd_diag *diag)
{
	enum hd_err err = hd_bytes_room(&w->text, len, diag);

	if (!err)
		hd_bytes_put(&w->text, w->text.at + at, len);
	return err;
}

typedef enum hd_err step_fn(const struct hd_decoder *d, struct hd_decode_work *w, struct hd_diag *diag);

/* ---- what becomes one text ---- */

static enum hd_err fuse(const struct hd_decoder *d, struct hd_decode_work *w, struct hd_diag *diag)
{
	size_t at = w->text.len;
	enum hd_err err = HD_OK;

	(void)d;
	for (uint32_t i = 0; i < w->parts.n && !err; i++)
		err = again(w, w->parts.at[i].at, w->parts.at[i].len, diag);
	return err ? err : made(w, at, diag);
}

/* Bytes a token stands for; one with another letter stands for its own. */
static enum hd_err bytes_of(struct hd_decode_work *w, struct hd_token_part part, struct hd_diag *diag)
{
	const uint8_t *at = w->text.at + part.at;
	size_t before = w->spare.len;
	uint32_t c;
	enum hd_err err = hd_bytes_room(&w->spare, part.len, diag);

	for (size_t i = 0; i < part.len && !err; ) {
		i += hd_char_get(at + i, &c);
		unsigned b = hd_char_byte(c);
		if (b > 255) {
			w->spare.len = before;
			return hd_bytes_add(&w->spare, at, part.len, diag);
		}
		w->spare.at[w->spare.len++] = (uint8_t)b;
	}
	return err;
}

/* How much of what is no character one U+FFFD stands for: as much as could begin one. */
static size_t broken_len(const uint8_t *at, size_t len)
{
	uint8_t low, high;
	size_t want = at[0] >= 0xc2 && at[0] <= 0xdf ? 2 : at[0] >= 0xe0 && at[0] <= 0xef ? 3 : at[0] >=
		0xf0 &&
		at[0] <= 0xf4 ? 4 : 1, n = 1;

	low = at[0] == 0xe0 ? 0xa0 : at[0] == 0xf0 ? 0x90 : 0x80;
	high = at[0] == 0xed ? 0x9f : at[0] == 0xf4 ? 0x8f : 0xbf;
	for (; n < want && n < len && at[n] >= low && at[n] <= high; n++) {
		low = 0x80;
		high = 0xbf;
	}
	return n;
}

static enum hd_err put_lossy(struct hd_bytes *out, const uint8_t *at, size_t len, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	for (size_t i = 0, n; i < len && !err; i += n) {
		n = hd_utf8_len((const char *)at + i, len - i);
		if (n) {
			err = hd_bytes_add(out, at + i, n, diag);
			continue;
		}
		n = broken_len(at + i, len - i);
		err = hd_bytes_add(out, unreadable, 3, diag);
	}
	return err;
}

static enum hd_err byte_level(const struct hd_decoder *d, struct hd_decode_work *w, struct hd_diag *diag)
{
	size_t at = w->text.len;
	enum hd_err err = HD_OK;

	(void)d;
	w->spare.len = 0;
	for (uint32_t i = 0; i < w->parts.n && !err; i++)
		err = bytes_of(w, w->parts.at[i], diag);
	if (err || (err = put_lossy(&w->text, w->spare.at, w->spare.len, diag)))
		return err;
	return made(w, at, diag);
}

/* "<0x0A>"; 256: none */
static unsigned named_byte(const uint8_t *at, size_t len)
{
	unsigned value = 0;

	if (len != 6 || memcmp(at, "<0x", 3) || at[5] != '>')
		return 256;
	for (size_t i = 3; i < 5; i++) {
		const uint8_t c = at[i] | 32;
		if (!(at[i] >= '0' && at[i] <= '9') && !(c >= 'a' && c <= 'f'))
			return 256;
		value = value * 16 + (at[i] <= '9' ? at[i] - (unsigned)'0' : c - (unsigned)'a' + 10);
	}
	return value;
}

/* The bytes that wait: a text, or as many U+FFFD. */
static enum hd_err flush_bytes(struct hd_decode_work *w, struct hd_diag *diag)
{
	const size_t n = w->spare.len;
	bool whole = true;
	enum hd_err err = HD_OK;

	for (size_t i = 0, k; i < n && whole; i += k)
		whole = (k = hd_utf8_len((const char *)w->spare.at + i, n - i)) > 0;
	for (size_t i = 0; i < (whole ? n > 0 : n) && !err; i++) {
		size_t at = w->text.len;
		err = whole ? hd_bytes_add(&w->text, w->spare.at, n, diag) : hd_bytes_add(&w->text,
			unreadable, 3,
			diag);
		if (!err)
			err = made(w, at, diag);
	}
	w->spare.len = 0;
	return err;
}

static enum hd_err byte_fallback(const struct hd_decoder *d, struct hd_decode_work *w, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	(void)d;
	w->spare.len = 0;
	for (uint32_t i = 0; i < w->parts.n && !err; i++) {
		const struct hd_token_part part = w->parts.at[i];
		unsigned b = named_byte(w->text.at + part.at, part.len);
		if (b < 256) {
			err = hd_bytes_add(&w->spare, &(uint8_t){ (uint8_t)b }, 1, diag);
			continue;
		}
		if (!(err = flush_bytes(w, diag)))
			err = add_part(&w->next, part, diag);
	}
	return err ? err : flush_bytes(w, diag);
}

/* ---- part by part ---- */

static enum hd_err strip(const struct hd_decoder *d, struct hd_decode_work *w, struct hd_diag *diag)
{
	uint8_t letter[HD_CHAR_BYTES];
	const size_t n = hd_char_put(d->c, letter);
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; i < w->parts.n && !err; i++) {
		struct hd_token_part part = w->parts.at[i];
		for (uint32_t k = 0; k < d->start && part.len >= n && !memcmp(w->text.at + part.at, letter,
			n); k++) {
			part.at += n;
			part.len -= n;
		}
		for (uint32_t k = 0; k < d->stop && part.len >= n && !memcmp(w->text.at + part.at + part.len -
			n,
			letter, n); k++)
			part.len -= n;
		err = add_part(&w->next, part, diag);
	}
	return err;
}

static enum hd_err replace(const struct hd_decoder *d, struct hd_decode_work *w, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; i < w->parts.n && !err; i++) {
		w->spare.len = 0;
		if ((err = hd_bytes_add(&w->spare, w->text.at + w->parts.at[i].at, w->parts.at[i].len, diag)))
			break;
		struct hd_found f = { .pattern = &d->pattern, .finder = w->finder, .text =
			hd_bytes_view(&w->spare) };
		size_t at = w->text.len, from = 0;
		while (w->spare.len && !err && hd_found_next(&f, &err, diag)) {
			if (!(err = hd_bytes_add(&w->text, w->spare.at + from, f.first - from, diag)))
				err = hd_bytes_add(&w->text, d->text, d->len, diag);
			from = f.last;
		}
		if (!err && !(err = hd_bytes_add(&w->text, w->spare.at + from, w->spare.len - from, diag)))
			err = made(w, at, diag);
	}
	return err;
}

static enum hd_err metaspace(const struct hd_decoder *d, struct hd_decode_work *w, struct hd_diag *diag)
{
	uint8_t letter[HD_CHAR_BYTES];
	const size_t n = hd_char_put(d->c, letter);
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; i < w->parts.n && !err; i++) {
		const struct hd_token_part part = w->parts.at[i];
		size_t at = w->text.len;
		if ((err = hd_bytes_room(&w->text, part.len, diag)))
			break;
		for (size_t k = 0; k < part.len; ) {
			const uint8_t *c = w->text.at + part.at + k;
			const size_t len = hd_char_len(*c);
			if (len == n && !memcmp(c, letter, n)) {
				if (i || !d->prefix)
					hd_bytes_put(&w->text, " ", 1);
			} else {
				hd_bytes_put(&w->text, c, len);
			}
			k += len;
		}
		err = made(w, at, diag);
	}
	return err;
}

/* In the spare text every `from` becomes `to`. */
static enum hd_err swap(struct hd_decode_work *w, const char *from, size_t from_len, const char *to,
	size_t to_len, struct hd_diag *diag)
{
	struct hd_bytes out = { 0 };
	const uint8_t *at = w->spare.at, *end = at + w->spare.len, *next;
	enum hd_err err = HD_OK;

	if (!from_len || !w->spare.len || !memmem(at, w->spare.len, from, from_len))
		return HD_OK;
	while (!err && (next = memmem(at, (size_t)(end - at), from, from_len))) {
		if (!(err = hd_bytes_add(&out, at, (size_t)(next - at), diag)))
			err = hd_bytes_add(&out, to, to_len, diag);
		at = next + from_len;
	}
	if (!err)
		err = hd_bytes_add(&out, at, (size_t)(end - at), diag);
	hd_free(w->spare.at);
	w->spare = out;
	return err;
}

static enum hd_err clean_up(struct hd_decode_work *w, struct hd_diag *diag)
{
	static const struct { const char *from, *to; } rows[] = {
		{ " .", "." }, { " ?", "?" }, { " !", "!" }, { " ,", "," }, { " ' ", "'" }, { " n't", "n't" },
		{ " 'm", "'m" }, { " do not", " don't" }, { " 's", "'s" }, { " 've", "'ve" }, { " 're", "'re" },
	};
	enum hd_err err = HD_OK;

	for (size_t i = 0; i < sizeof rows / sizeof rows[0] && !err; i++)
		err = swap(w, rows[i].from, strlen(rows[i].from), rows[i].to, strlen(rows[i].to), diag);
	return err;
}

static enum hd_err take_part(struct hd_decode_work *w, const char *head, size_t at, size_t len,
	struct hd_diag *diag)
{
	w->spare.len = 0;
	enum hd_err err = hd_bytes_add(&w->spare, head, strlen(head), diag);
	return err ? err : hd_bytes_add(&w->spare, w->text.at + at, len, diag);
}

static enum hd_err give_part(struct hd_decode_work *w, struct hd_diag *diag)
{
	size_t at = w->text.len;
	enum hd_err err = hd_bytes_add(&w->text, w->spare.at, w->spare.len, diag);

	return err ? err : made(w, at, diag);
}

static enum hd_err wordpiece(const struct hd_decoder *d, struct hd_decode_work *w, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; i < w->parts.n && !err; i++) {
		const struct hd_token_part part = w->parts.at[i];
		bool goes_on = i && part.len >= d->len && !memcmp(w->text.at + part.at, d->text, d->len);
		size_t cut = goes_on ? d->len : 0;
		if ((err = take_part(w, i && !goes_on ? " " : "", part.at + cut, part.len - cut, diag)) ||
			(d->cleanup && (err = clean_up(w, diag))))
			break;
		err = give_part(w, diag);
	}
	return err;
}

static enum hd_err bpe(const struct hd_decoder *d, struct hd_decode_work *w, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; i < w->parts.n && !err; i++) {
		bool last = i + 1 == w->parts.n;
		if ((err = take_part(w, "", w->parts.at[i].at, w->parts.at[i].len, diag)) || (err = swap(w,
			d->text,
			d->len, " ", last ? 0 : 1, diag)))
			break;
		err = give_part(w, diag);
	}
	return err;
}

static bool same_part(const struct hd_decode_work *w, uint32_t i, uint32_t k)
{
	const struct hd_token_part *a = &w->parts.at[i], *b = &w->parts.at[k];

	return a->len == b->len && !memcmp(w->text.at + a->at, w->text.at + b->at, a->len);
}

static enum hd_err ctc(const struct hd_decoder *d, struct hd_decode_work *w, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; i < w->parts.n && !err; i++) {
		if (i && same_part(w, i, i - 1))
			continue;
		if ((err = take_part(w, "", w->parts.at[i].at, w->parts.at[i].len, diag)) || (err = swap(w,
			d->text,
			d->len, "", 0, diag)) || (d->cleanup && ((err = clean_up(w, diag)) || (err = swap(w,
			d->word, d->word_len, " ", 1, diag)))))
			break;
		if (w->spare.len)
			err = give_part(w, diag);
	}
	return err;
}

/* ---- the table ---- */

typedef enum hd_err read_fn(struct hd_decoder *d, const struct hd_json *json, struct hd_arena *arena,
	struct hd_diag *diag);

static enum hd_err read_strip(struct hd_decoder *d, const struct hd_json *json, struct hd_arena *arena,
	struct hd_diag *diag)
{
	int64_t start, stop;
	enum hd_err err;

	(void)arena;
	if ((err = hd_token_char(json, "content", &d->c, diag)) || (err = hd_json_get_i64(json, "start", 0,
		INT32_MAX, &start, diag)) || (err = hd_json_get_i64(json, "stop", 0, INT32_MAX, &stop, diag)))
		return err;
	d->start = (uint32_t)start;
	d->stop = (uint32_t)stop;
	return HD_OK;
}

static enum hd_err read_replace(struct hd_decoder *d, const struct hd_json *json, struct hd_arena *arena,
	struct hd_diag *diag)
{
	const struct hd_json *pattern;
	enum hd_err err;

	if ((err = hd_json_get(json, "pattern", HD_JSON_OBJECT, &pattern, diag)) || (err =
		hd_token_text(json, "content", arena, &d->text, &d->len, diag)))
		return err;
	return hd_pattern_read(&d->pattern, pattern, arena, diag);
}

static enum hd_err read_metaspace(struct hd_decoder *d, const struct hd_json *json, struct hd_arena *arena,
	struct hd_diag *diag)
{
	const struct hd_json *scheme = hd_json_find(json, "prepend_scheme");
	const char *text;
	enum hd_err err;

	(void)arena;
	d->prefix = true;
	if ((err = hd_token_char(json, "replacement", &d->c, diag)) || (err = hd_token_bool(json,
		"add_prefix_space", &d->prefix, diag)) || hd_token_is_null(scheme))
		return err;
	if ((err = hd_json_as_text(scheme, &text, diag)))
		return err;
	d->prefix = strcmp(text, "never") != 0;
	return HD_OK;
}

static enum hd_err read_wordpiece(struct hd_decoder *d, const struct hd_json *json, struct hd_arena *arena,
	struct hd_diag *diag)
{
	enum hd_err err = hd_token_text(json, "prefix", arena, &d->text, &d->len, diag);

	return err ? err : hd_json_get_bool(json, "cleanup", &d->cleanup, diag);
}

static enum hd_err read_bpe(struct hd_decoder *d, const struct hd_json *json, struct hd_arena *arena,
	struct hd_diag *diag)
{
	return hd_token_text(json, "suffix", arena, &d->text, &d->len, diag);
}

static enum hd_err read_ctc(struct hd_decoder *d, const struct hd_json *json, struct hd_arena *arena,
	struct hd_diag *diag)
{
	enum hd_err err;

	if ((err = hd_token_text(json, "pad_token", arena, &d->text, &d->len, diag)) || (err =
		hd_token_text(json, "word_delimiter_token", arena, &d->word, &d->word_len, diag)))
		return err;
	return hd_json_get_bool(json, "cleanup", &d->cleanup, diag);
}

struct hd_decoder_kind { struct hd_token_kind base; read_fn *read; step_fn *step; };

static const struct hd_decoder_kind kinds[] = {
	{ { "ByteLevel", { "type", "add_prefix_space", "trim_offsets", "use_regex" } }, NULL, byte_level },
	{ { "ByteFallback", { "type" } }, NULL, byte_fallback }, { { "Fuse", { "type" } }, NULL, fuse },
	{ { "Strip", { "type", "content", "start", "stop" } }, read_strip, strip },
	{ { "Replace", { "type", "pattern", "content" } }, read_replace, replace },
	{ { "Metaspace", { "type", "replacement", "add_prefix_space", "prepend_scheme", "split", "str_rep" } }, read_metaspace, metaspace },
	{ { "WordPiece", { "type", "prefix", "cleanup" } }, read_wordpiece, wordpiece },
	{ { "BPEDecoder", { "type", "suffix" } }, read_bpe, bpe },
	{ { "CTC", { "type", "pad_token", "word_delimiter_token", "cleanup" } }, read_ctc, ctc },
};

static enum hd_err read_one(void *user, const struct hd_json *json, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct hd_decoders *all = user;
	size_t k;
	enum hd_err err = hd_token_kind(json, &kinds[0].base, sizeof kinds[0], sizeof kinds / sizeof kinds[0],
		&k, diag);

	if (err || (err = hd_grow(&all->at, &all->cap, all->n + 1, sizeof *all->at, "decoders", diag)))
		return err;
	struct hd_decoder *d = &all->at[all->n++];
	*d = (struct hd_decoder){ .kind = &kinds[k] };
	return kinds[k].read ? kinds[k].read(d, json, arena, diag) : HD_OK;
}

enum hd_err hd_decoders_read(struct hd_decoders *all, const struct hd_json *json, struct hd_arena *arena,
	struct hd_diag *diag)
{
	all->any = !hd_token_is_null(json);
	return hd_token_sequence(json, "decoders", read_one, all, arena, diag);
}

void hd_decoders_finish(struct hd_decoders *all)
{
	for (uint32_t i = 0; i < all->n; i++)
		hd_pattern_finish(&all->at[i].pattern);
	hd_free(all->at);
	*all = (struct hd_decoders){ 0 };
}

enum hd_err hd_decoders_apply(const struct hd_decoders *all, struct hd_decode_work *w, struct hd_diag *diag)
{
	for (uint32_t i = 0; i < all->n; i++) {
		w->next.n = 0;
		enum hd_err err = all->at[i].kind->step(&all->at[i], w, diag);
		if (err)
			return err;
		struct hd_token_parts was = w->parts;
		w->parts = w->next;
		w->next = was;
	}
	return HD_OK;
}

void hd_decode_work_finish(struct hd_decode_work *w)
{
	hd_free(w->text.at);
	hd_free(w->parts.at);
	hd_free(w->next.at);
	hd_free(w->spare.at);
}
