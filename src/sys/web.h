/* web.h -- POST requests over HTTPS to hosts by name, on a loop: libcurl, where it is built in.
 *
 * Calls of functions (functions/calls.h) and webhooks of the scheduler (daemon/webhook.h) go through it.
 *
 * 1. HTTPS alone, unless hd_web_plain() was called; certificates and names of hosts are checked, always;
 *    redirects are not followed, so what a request carries goes to the host that was named. `ca`: a file of
 *    certificates in place of the system's.
 * 2. The proxy of the environment (https_proxy, no_proxy) is used: it sees the host's name, TLS goes through.
 * 3. A request ends once: at its deadline at the latest. An answer longer than HD_WEB_HEAD and HD_WEB_BODY is
 *    an error.
 *
 * Ownership: open/close. Threads: the loop's; names are looked up on threads of the library. */
#ifndef HD_SYS_WEB_H
#define HD_SYS_WEB_H

#include "sys/loop.h"

enum { HD_WEB_REQUESTS = 64, HD_WEB_HEAD = 16 << 10, HD_WEB_BODY = 8 << 10, HD_WEB_WHY = 256,
	HD_WEB_TAGS = HD_LOOP_WATCHED };

struct hd_web;

/* How a request ended. err HD_OK: the last answer's head, from its status line on, and its body, ended by 0;
 * else `why` says. */
struct hd_web_reply {
	uint64_t name;
	enum hd_err err;
	bool sent;                        /* something of the request, perhaps all */
	char why[HD_WEB_WHY], head[HD_WEB_HEAD], body[HD_WEB_BODY + 1];
	size_t head_len, body_len;
};

/* Tags of the loop: [tag, tag + HD_WEB_TAGS). `ca` NULL: the system's certificates. HD_E_REFUSED: libcurl
 * is not built in. */
HD_MUST_USE enum hd_err hd_web_open(struct hd_web **web, struct hd_loop *loop, uint64_t tag, const char *ca,
	struct hd_diag *diag);
/* HTTP, too, and no proxy: of a caller that has seen to it that the address is of the loopback. */
void hd_web_plain(struct hd_web *web);
/* Ends what is under way. Takes NULL. */
void hd_web_close(struct hd_web *web);
/* Begins one. `lines`: header lines, each with CRLF. Nothing is borrowed. HD_E_AGAIN: HD_WEB_REQUESTS are
 * under way. */
HD_MUST_USE enum hd_err hd_web_post(struct hd_web *web, uint64_t name, const char *url, const char *lines,
	const char *body, size_t len, int64_t deadline_ns, struct hd_diag *diag);
/* An event of the loop with one of its tags. */
void hd_web_event(struct hd_web *web, const struct hd_loop_event *event);
/* After every turn; when it wants to be called again at the latest. */
int64_t hd_web_tick(struct hd_web *web, int64_t now_ns);
/* The next one that ended; false: none. */
bool hd_web_take(struct hd_web *web, struct hd_web_reply *reply);

#endif
