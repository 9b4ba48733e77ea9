/* web_int.h -- what requests by libcurl share, whatever they ask: a handle of many transfers, heads as they
 * come, rules of safety. Private to web_curl.c and web_get_curl.c.
 *
 * 1. TLS 1.2 or later, certificates and names of hosts checked; HTTP/1.1; redirects are not followed; no
 *    signals.
 *
 * The library's handles are void * here: its headers may be missing. Threads: as of the caller. */
#ifndef HD_SYS_WEB_INT_H
#define HD_SYS_WEB_INT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

enum { HD_WEB_CA = 1024 };

/* The library's handle, and the certificates ("": the system's). */
struct hd_web_multi { void *multi; char ca[HD_WEB_CA]; };

HD_MUST_USE enum hd_err hd_web_multi_open(struct hd_web_multi *m, const char *ca, struct hd_diag *diag);
/* No transfer is in it. Of one whose opening failed, too. */
void hd_web_multi_close(struct hd_web_multi *m);
/* Sets rule 1 of a transfer; false: the library does not take it. `protocols` as it lists them. */
bool hd_web_rules(const struct hd_web_multi *m, void *easy, const char *protocols);

/* Lines of an answer's head, in memory of the caller. */
struct hd_web_head { char *at; size_t cap, len; };
/* One line, whole; a status line begins a new head: 100, or the one behind it. false: there is no room. */
bool hd_web_head_add(struct hd_web_head *head, const char *bytes, size_t len);
/* A header line, without CRLF. */
struct curl_slist;
bool hd_web_line_add(struct curl_slist **lines, const char *line);

#endif
