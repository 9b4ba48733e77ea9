/* sigv4.h -- signs a request to AWS, or to what speaks like it: Signature Version 4.
 *
 * The invoker of functions signs with it; the emulator checks a signature by making it again.
 *
 * 1. Signed are the method, the target as it is sent, the header lines that are named, and the SHA-256 of the
 *    body. The path is encoded once more for signing, as all services but S3 want it.
 * 2. Header names are in lower case and ascend by bytes; values have no blanks at their ends.
 * 3. The secret key goes into no message. A session token is a header line like others.
 *
 * Plain values; no clock: the time is an argument. Threads: any. Source: AWS General Reference, "Signature
 * Version 4 signing process". */
#ifndef HD_FUNCTIONS_SIGV4_H
#define HD_FUNCTIONS_SIGV4_H

#include "base/text.h"
#include "sys/crypto.h"

enum { HD_SIGV4_LINES = 8, HD_SIGV4_DATE = 17, HD_SIGV4_TEXT = 8192 };

/* One header line that is signed. */
struct hd_sigv4_line { const char *name, *value; };

/* Whose right it is, and where. Texts are borrowed. */
struct hd_sigv4_rights { const char *key_id, *secret, *region, *service; };

/* What is signed. `date`: "20150830T123600Z", of hd_sigv4_date(). */
struct hd_sigv4_request {
	const char *method, *target, *date;
	struct hd_sigv4_line line[HD_SIGV4_LINES];
	uint32_t nlines;
	struct hd_sha256 body;
};

/* The time of a request, of nanoseconds since 1970 (to 2200). */
void hd_sigv4_date(int64_t wall_ns, char date[HD_SIGV4_DATE]);
/* The text whose hash is signed: method, path, query, lines, their names, hash of the body. */
HD_MUST_USE enum hd_err hd_sigv4_canonical(const struct hd_sigv4_request *request, struct hd_text *text,
	struct hd_diag *diag);
/* 64 hexadecimal digits. */
HD_MUST_USE enum hd_err hd_sigv4_sign(const struct hd_sigv4_rights *rights,
	const struct hd_sigv4_request *request, char signature[HD_SHA256_HEX], struct hd_diag *diag);
/* The value of the line "Authorization". */
HD_MUST_USE enum hd_err hd_sigv4_authorization(const struct hd_sigv4_rights *rights,
	const struct hd_sigv4_request *request, struct hd_text *value, struct hd_diag *diag);

#endif
