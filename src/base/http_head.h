/* http_head.h -- messages of HTTP/1.x as they come: the head, and the body that it announces.
 *
 * The client of the scheduler's daemon, the agent that asks a cloud's metadata service, and the emulator of
 * such services read through it.
 *
 * 1. Bytes come in pieces: what is not whole yet is HD_E_AGAIN; the caller asks again with all that it has.
 * 2. HD_E_PROTOCOL: it is no such message, or is ambiguous: a length that is no number or stands there
 *    twice, a length and chunks, a control character, a line that is continued.
 * 3. Bounded: HD_HTTP_HEAD_BYTES, HD_HTTP_HEAD_LINES, a body of the caller's storage [HD_E_NOSPACE].
 *
 * Nothing is copied but the body; spans point into the caller's bytes. Source: RFC 9112. Pure. */
#ifndef HD_BASE_HTTP_HEAD_H
#define HD_BASE_HTTP_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { HD_HTTP_HEAD_BYTES = 16 << 10, HD_HTTP_HEAD_LINES = 64 };

struct hd_http_span { const char *at; size_t len; };

enum hd_http_what { HD_HTTP_A_REQUEST, HD_HTTP_AN_ANSWER };

struct hd_http_head {
	struct hd_http_span method, target;            /* of a request */
	int status;                               /* of an answer: 100 to 599 */
	struct hd_http_line { struct hd_http_span name, value; } line[HD_HTTP_HEAD_LINES];
	uint32_t nlines;
	size_t len_bytes;                         /* with the empty line */
	bool has_length, chunked;
	uint64_t length_bytes;                    /* of the body, if has_length */
};

HD_MUST_USE enum hd_err hd_http_read_head(enum hd_http_what what, const char *bytes, size_t len,
	struct hd_http_head *head);
/* The body into body[0..cap), ended by 0, which takes one byte of cap. `bytes`: all that follows the head;
 * `ended`: no more comes. An answer without length or chunks ends with the connection. */
HD_MUST_USE enum hd_err hd_http_read_body(const struct hd_http_head *head, const char *bytes, size_t len,
	bool ended, char *body, size_t cap, size_t *body_len);
/* The value of the first line of that name, whatever its case. at NULL: there is none. */
struct hd_http_span hd_http_find(const struct hd_http_head *head, const char *name);
/* Is it these characters, apart from case? */
bool hd_http_is(struct hd_http_span span, const char *text);

#endif
