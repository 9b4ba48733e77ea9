/* metadata_server.h -- metadata.h on a port of the loopback: a small server of HTTP/1.1, one request a
 * connection.
 *
 * 1. Loopback alone: another address is refused [HD_E_INVAL].
 * 2. HD_METADATA_CONNECTIONS at once, a head and a body of HD_METADATA_BODY each; what is no request ends its
 *    connection, and so does a client that takes longer than HD_METADATA_CLIENT_NS to ask or to listen.
 * 3. Each request leaves a line in `log`: {"t_ms","method","target","status"}; status 0: not answered.
 *
 * Ownership: open/close in the caller's memory, which does not move. Threads: one; poll() blocks until the
 * time given. */
#ifndef HD_CHAOS_METADATA_SERVER_H
#define HD_CHAOS_METADATA_SERVER_H

#include <stdio.h>

#include "sys/loop.h"
#include "sys/socket.h"
#include "chaos/metadata.h"

enum { HD_METADATA_CONNECTIONS = 128, HD_METADATA_IN = HD_HTTP_HEAD_BYTES + HD_METADATA_BODY,
	HD_METADATA_OUT = 2048 };
#define HD_METADATA_CLIENT_NS INT64_C(10000000000)

struct hd_metadata_connection {
	struct hd_sock sock;              /* net NULL: free */
	char in[HD_METADATA_IN], out[HD_METADATA_OUT], body[HD_METADATA_BODY];
	size_t in_len, out_len, out_at;
	struct hd_http_head head;
	bool whole;                       /* the request; it waits for its answer, or is answered */
	int64_t came_ns, until_ns;
};

struct hd_metadata_server {
	struct hd_metadata metadata;
	struct hd_clock *clock;           /* borrowed */
	FILE *log;                        /* borrowed; NULL: none */
	struct hd_loop loop;
	struct hd_net net;
	struct hd_sock listener;          /* its addr: with the port that was chosen */
	uint64_t requests;
	struct hd_metadata_connection connection[HD_METADATA_CONNECTIONS];
};

/* "tcp:127.0.0.1:0" */
HD_MUST_USE enum hd_err hd_metadata_open(struct hd_metadata_server *server, struct hd_clock *clock,
	const char *addr, struct hd_diag *diag);
void hd_metadata_close(struct hd_metadata_server *server);        /* takes zeroed ones */
/* Answers until at_ns, or a wake. */
HD_MUST_USE enum hd_err hd_metadata_poll(struct hd_metadata_server *server, int64_t at_ns,
	struct hd_diag *diag);

#endif
