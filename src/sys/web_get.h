/* web_get.h -- GET requests of ranges of objects, many at once, by a thread that waits for them: libcurl,
 * where it is built in.
 *
 * Stores of data (data/blob.h) go through it. What an answer means, what is tried again and where a redirect
 * may lead is theirs.
 *
 * 1. HTTPS with certificates and names checked; HTTP only where `plain` is set. Redirects are not followed.
 * 2. No connection to an address that is link-local or serves instance metadata (169.254/16, fe80::/10,
 *    fd00:ec2::254), whatever name led there.
 * 3. Bodies of answers 200 and 206 go to `put` as they arrive, up to `cap` bytes; more ends the request with
 *    `too_long`. Other bodies are dropped.
 * 4. A request ends once: connected within 5 s, and never slower than 1 KiB/s for 10 s.
 * 5. The proxy of the environment is used, but not to loopback.
 * 6. `sign` has keys sign the request (AWS, version 4): they are in no message.
 *
 * Ownership: open/close. Threads: one at a time. */
#ifndef HD_SYS_WEB_GET_H
#define HD_SYS_WEB_GET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { HD_WEB_GETS = 256,                 /* under way at once */
       HD_WEB_GET_HEAD = 8 << 10, HD_WEB_GET_WHY = 256 };

struct hd_web_gets;

/* All texts are copied. */
struct hd_web_get {
	uint64_t name;
	const char *url;
	const char *const *line; uint32_t nlines;        /* header lines, without CRLF */
	const char *sign;                 /* "aws:amz:REGION:s3"; NULL: not signed */
	const char *keys, *token;         /* "ID:SECRET"; token NULL: none */
	bool plain;                       /* see 1 */
	bool loopback;                    /* see 5 */
	uint64_t cap;
	void (*put)(void *user, uint64_t name, uint64_t at, const void *bytes, size_t len);
	void *user;                       /* borrowed until the request has ended */
};

/* How one ended. err HD_OK: an answer came, whole if not `too_long`. HD_E_AGAIN: none, or part of one;
 * another
 * try may help. HD_E_REFUSED: none will. */
struct hd_web_gotten {
	uint64_t name;
	enum hd_err err;
	uint32_t status;                  /* 0: no answer */
	uint64_t len;                     /* of the body, as far as it went to `put` */
	bool too_long;
	char why[HD_WEB_GET_WHY], head[HD_WEB_GET_HEAD]; /* from the status line on, ended by 0 */
	size_t head_len;
};

/* `ca`: file of certificates; NULL: the system's. HD_E_REFUSED: libcurl is not built in. */
HD_MUST_USE enum hd_err hd_web_gets_open(struct hd_web_gets **gets, const char *ca, struct hd_diag *diag);
/* Ends what is under way. Takes NULL. */
void hd_web_gets_close(struct hd_web_gets *gets);
/* Begins one. HD_E_AGAIN: HD_WEB_GETS are under way. */
HD_MUST_USE enum hd_err hd_web_gets_begin(struct hd_web_gets *gets, const struct hd_web_get *get,
	struct hd_diag *diag);
/* Moves all on; returns when something happened, after `ms` at the latest. */
void hd_web_gets_wait(struct hd_web_gets *gets, int ms);
/* The next one that ended; false: none. */
bool hd_web_gets_take(struct hd_web_gets *gets, struct hd_web_gotten *gotten);

#endif
