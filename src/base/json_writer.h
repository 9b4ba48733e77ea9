/* json_writer.h -- JSON, written value by value into a text.
 *
 * NDJSON records, manifests, state files and reports are written with it:
 *
 *	hd_json_writer_init(&w, &text);
 *	hd_json_open_object(&w, NULL);
 *	hd_json_put_i64(&w, "step", 200);
 *	hd_json_open_array(&w, "shape");  hd_json_put_i64(&w, NULL, 3);  hd_json_close(&w);
 *	hd_json_close(&w);
 *
 * 1. Every value takes its key first: a string inside an object, NULL elsewhere (assert).
 * 2. No blanks, no line feed; members stand in the order of the calls: equal calls
 *    give equal bytes.
 * 3. Floats: the shortest text that reads back to the same bits (base/num.h); what is
 *    not finite becomes "nan", "inf", "-inf". u64 becomes a decimal string, since a
 *    JSON number holds 53 bits in many readers.
 * 4. Bad UTF-8 becomes U+FFFD; '<' is escaped, so that the text can stand in a page.
 * 5. Whether all fitted, the text knows (`full`); hd_json_done() also says that all is closed.
 *
 * Ownership: `text` is borrowed while writing. Threads: one at a time. */
#ifndef HD_BASE_JSON_WRITER_H
#define HD_BASE_JSON_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

struct hd_json_writer {
	struct hd_text *text;
	uint32_t depth;
	bool follows;                             /* the next value needs a comma */
	char close[64];                           /* of each open level: '}' or ']' */
};

void hd_json_writer_init(struct hd_json_writer *writer, struct hd_text *text);
bool hd_json_done(const struct hd_json_writer *writer);

void hd_json_open_object(struct hd_json_writer *writer, const char *key);
void hd_json_open_array(struct hd_json_writer *writer, const char *key);
void hd_json_close(struct hd_json_writer *writer);

void hd_json_put_text(struct hd_json_writer *writer, const char *key, const char *string);
/* a string of `len` bytes */
void hd_json_put_bytes(struct hd_json_writer *writer, const char *key, const char *bytes, size_t len);
void hd_json_put_i64(struct hd_json_writer *writer, const char *key, int64_t v);
void hd_json_put_u64(struct hd_json_writer *writer, const char *key, uint64_t v);
void hd_json_put_f32(struct hd_json_writer *writer, const char *key, float v);
void hd_json_put_f64(struct hd_json_writer *writer, const char *key, double v);
void hd_json_put_bool(struct hd_json_writer *writer, const char *key, bool v);
void hd_json_put_null(struct hd_json_writer *writer, const char *key);

#endif
