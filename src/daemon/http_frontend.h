/* http_frontend.h -- HTTP as a frontend of the daemon (frontend.h): its Unix socket always, a loopback port
 * where it was asked for.
 *
 * In the daemon's folder: `heddle.sock`; `audit.ndjson`, a line for each request that changes something; with
 * a port also `token`, 64 hexadecimal digits for the header "Authorization: Bearer TOKEN". Each start draws
 * a new token: an old one is refused. With a file of users (users.h) the socket is for all accounts of the
 * machine, and `also` names a folder in which there is another one.
 *
 * Ownership: the caller's memory, which does not move while the daemon has it. Threads: the daemon's. */
#ifndef HD_DAEMON_HTTP_FRONTEND_H
#define HD_DAEMON_HTTP_FRONTEND_H

#include "daemon/frontend.h"
#include "daemon/http.h"

struct hd_http_frontend {
	const char *dir;                          /* set by the caller, borrowed */
	const char *also;                         /* set by the caller: a folder for one more socket; NULL */
	const char *where;                        /* set by the caller: "127.0.0.1:PORT", or NULL */
	/* set by the caller, or NULL: the port is served, as "http://127.0.0.1:PORT" */
	void (*opened)(void *user, const char *url);
	void *user;
	struct hd_fs fs;
	struct hd_net net;
	struct hd_key token;
	struct hd_lines audit;
	struct hd_http local, port, other;
};

extern const struct hd_frontend_ops hd_http_frontend_ops;       /* self: struct hd_http_frontend */

#endif
