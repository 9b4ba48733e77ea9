#include "base/json_writer.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/num.h"
#include "base/utf8.h"

void hd_json_writer_init(struct hd_json_writer *writer, struct hd_text *text)
{
	*writer = (struct hd_json_writer){ .text = text };
}

bool hd_json_done(const struct hd_json_writer *writer) { return writer->depth == 0 && !writer->text->full; }

static void put_escaped(struct hd_text *text, char c)
{
	static const char named[] = "\"\"\\\\\bb\ff\nn\rr\tt";     /* pairs: the byte, its letter */

	for (size_t i = 0; i + 1 < sizeof named; i += 2)
		if (c == named[i]) {
			hd_text_addf(text, "\\%c", named[i + 1]);
			return;
		}
	hd_text_addf(text, "\\u%04x", (unsigned)(unsigned char)c);
}

static bool is_plain(char c) { return (unsigned char)c >= 0x20 && c != '"' && c != '\\' && c != '<' &&
	c != 0x7f; }

static void put_string(struct hd_text *text, const char *at, size_t len)
{
	hd_text_add(text, "\"");
	for (size_t i = 0, n; i < len; i += n ? n : 1) {
		n = hd_utf8_len(at + i, len - i);
		if (n == 0)
			hd_text_add(text, "\\ufffd");
		else if (is_plain(at[i]))
			hd_text_put(text, at + i, n);
		else
			put_escaped(text, at[i]);
	}
	hd_text_add(text, "\"");
}

static void lead(struct hd_json_writer *writer, const char *key)
{
	bool in_object = writer->depth && writer->close[writer->depth - 1] == '}';

	assert(in_object == (key != NULL));
	if (writer->follows)
		hd_text_add(writer->text, ",");
	writer->follows = true;
	if (!key)
		return;
	put_string(writer->text, key, strlen(key));
	hd_text_add(writer->text, ":");
}

static void open(struct hd_json_writer *writer, const char *key, const char *bracket, char close)
{
	lead(writer, key);
	assert(writer->depth < sizeof writer->close);
	writer->close[writer->depth++] = close;
	writer->follows = false;
	hd_text_add(writer->text, bracket);
}

void hd_json_open_object(struct hd_json_writer *writer, const char *key) { open(writer, key, "{", '}'); }
void hd_json_open_array(struct hd_json_writer *writer, const char *key) { open(writer, key, "[", ']'); }

void hd_json_close(struct hd_json_writer *writer)
{
	assert(writer->depth > 0);
	hd_text_put(writer->text, &writer->close[--writer->depth], 1);
	writer->follows = writer->depth > 0;
}

void hd_json_put_bytes(struct hd_json_writer *writer, const char *key, const char *bytes, size_t len)
{
	lead(writer, key);
	put_string(writer->text, bytes, len);
}

void hd_json_put_text(struct hd_json_writer *writer, const char *key, const char *string)
{
	hd_json_put_bytes(writer, key, string, strlen(string));
}

void hd_json_put_i64(struct hd_json_writer *writer, const char *key, int64_t v)
{
	lead(writer, key);
	hd_text_addf(writer->text, "%" PRId64, v);
}

void hd_json_put_u64(struct hd_json_writer *writer, const char *key, uint64_t v)
{
	lead(writer, key);
	hd_text_addf(writer->text, "\"%" PRIu64 "\"", v);
}

static void put_number(struct hd_json_writer *writer, const char *key, bool finite, const char *printed)
{
	lead(writer, key);
	hd_text_addf(writer->text, finite ? "%s" : "\"%s\"", printed);
}

void hd_json_put_f32(struct hd_json_writer *writer, const char *key, float v)
{
	char printed[HD_NUM_CAP];
	put_number(writer, key, isfinite(v), hd_num_print_f32(printed, v));
}

void hd_json_put_f64(struct hd_json_writer *writer, const char *key, double v)
{
	char printed[HD_NUM_CAP];
	put_number(writer, key, isfinite(v), hd_num_print_f64(printed, v));
}

void hd_json_put_bool(struct hd_json_writer *writer, const char *key, bool v)
{
	lead(writer, key);
	hd_text_add(writer->text, v ? "true" : "false");
}

void hd_json_put_null(struct hd_json_writer *writer, const char *key)
{
	lead(writer, key);
	hd_text_add(writer->text, "null");
}
