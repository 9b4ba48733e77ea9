/* http_client.h -- asks a cluster's daemon over its Unix socket: what the verbs `submit`, `jobs`,
 * `explain`... speak.
 *
 * It knows the one server that it speaks to (http.h): HTTP/1.1, one request a connection, an answer with its
 * length. Whatever else comes is HD_E_PROTOCOL. Redirects, proxies, encodings, cookies: none.
 *
 * Threads: any; blocks until the answer is there or wait_ns passed. */
#ifndef HD_DAEMON_HTTP_CLIENT_H
#define HD_DAEMON_HTTP_CLIENT_H

#include "base/json.h"
#include "sys/socket.h"

#define HD_HTTP_SOCKET "heddle.sock"          /* in the daemon's folder */

struct hd_http_call {
	const char *dir;                          /* the daemon's folder */
	const char *method, *target;              /* "GET", "/v1/jobs?limit=10" */
	const char *body;                         /* JSON, or NULL */
	int64_t wait_ns;
};

/* The answer's object, in `arena`. An answer that says no is returned as the error that it names.
 * HD_E_NOTFOUND: no scheduler serves that folder, HD_E_PEERLOST: no answer in time. */
HD_MUST_USE enum hd_err hd_http_ask(const struct hd_http_call *call, struct hd_arena *arena,
	const struct hd_json **answer, struct hd_diag *diag);

#endif
