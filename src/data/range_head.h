/* range_head.h -- what the head of an answer says of a range: status, extent, version, when to try again.
 *
 *	HTTP/1.1 206 Partial Content
 *	Content-Range: bytes 0-99/1234
 *	ETag: "abc"
 *
 * 1. Accepted: lines ended by LF or CRLF; names in any case; the first line of a name counts.
 * 2. A Content-Range, if there is one, has all three numbers (or none but the total), first <= last < total.
 *    Anything else is HD_E_PROTOCOL: a server that cannot count is not read from.
 * 3. Retry-After in seconds, at most HD_HTTP_WAIT_S; a date counts as that.
 *
 * Pure: no file, no allocation. */
#ifndef HD_DATA_RANGE_HEAD_H
#define HD_DATA_RANGE_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { HD_HTTP_TEXT = 256, HD_HTTP_PLACE = 2048, HD_HTTP_WAIT_S = 60 };

struct hd_range_head {
	uint32_t status;
	bool has_range, has_length, has_wait;
	uint64_t first, end, total;       /* of Content-Range: [first, end) of total */
	uint64_t length;                  /* Content-Length */
	uint32_t wait_s;                  /* Retry-After */
	char etag[HD_HTTP_TEXT];          /* "": none; with its quotes */
	char place[HD_HTTP_PLACE];        /* Location; "": none */
};

HD_MUST_USE enum hd_err hd_range_head_parse(const char *head, size_t len, struct hd_range_head *out,
	struct hd_diag *diag);

/* A place of data. */
enum hd_url_scheme { HD_URL_NONE, HD_URL_HTTP, HD_URL_HTTPS, HD_URL_S3 };
struct hd_url {
	enum hd_url_scheme scheme;
	char host[256];                   /* s3: the bucket; without brackets */
	char origin[300];                 /* "https://host:port" as written */
	bool loopback;
};

/* scheme NONE: a path. HD_E_INVAL: names a scheme that is known, and is no URL: empty host, user in it,
 * control characters or spaces. */
HD_MUST_USE enum hd_err hd_url_parse(const char *text, struct hd_url *url, struct hd_diag *diag);
/* Where `place` leads from `from`: absolute, or from the host's root. false: neither, or too long. */
bool hd_url_follow(const char *from, const char *place, char *to, size_t cap);

#endif
