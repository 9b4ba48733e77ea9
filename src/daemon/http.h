/* http.h -- serves the routes of rest.h on one socket: a Unix socket in the daemon's folder, or a loopback
 * port with a token.
 *
 * libmicrohttpd reads and writes; this sets limits on connections and time. The daemon's loop drives it: no
 * thread.
 *
 * 1. "unix:PATH" in a folder that only its user can enter; with `shared` one in which only it can make files,
 *    for all accounts of the machine: the handler says whose a connection is. Or "tcp:127.0.0.1:PORT",
 *    "tcp:[::1]:PORT" with `http->token`. Nothing else (hd_http_where).
 * 2. One request a connection; then it ends. HD_HTTP_CONNECTIONS at once, of one address HD_HTTP_PER_ADDRESS;
 *    others wait. Of one user HD_HTTP_OF_USER, streams among them HD_HTTP_STREAMS_OF_USER: further ones are
 *    answered at once [429], on a shared socket before they say a word, so that no user keeps others out. An
 *    owner has no such limit.
 * 3. A request is whole HD_HTTP_REQUEST_NS after its connection began, and an answer taken HD_HTTP_ANSWER_NS
 *    after that, or the connection is ended, however busily its bytes drip. A stream must take what there is
 *    within HD_HTTP_IDLE_S.
 * 4. The headers of every answer forbid using it as a page (CSP), caching it, and guessing another type; the
 *    files of the page (page.h) have a policy of their own and may be kept, to be asked about again. No CORS
 *    header is ever sent.
 * 5. Each request that changes something leaves a line in `audit`, whatever became of it:
 *    {"t","from","uid","user","what","method","target","account","status","error"}; uid -1: not known;
 *    account, if it is of one: of the job that was handed in, or the one that was asked for. So does one
 *    that is refused for its credential, of these at most one a second, with how many others there were in
 *    `more`. One that cannot be written is counted in `unaudited`.
 * 6. A stream gets the events that the handler answers to "events", as they come: hd_http_changed says that
 *    there are some; a comment goes out when there were none for HD_HTTP_PING_NS. HD_HTTP_STREAMS at once
 *    [503].
 *
 * Ownership: open/close in the caller's memory, which does not move. Threads: the loop's. */
#ifndef HD_DAEMON_HTTP_H
#define HD_DAEMON_HTTP_H

#include "sys/lines.h"
#include "sys/loop.h"
#include "sys/socket.h"
#include "daemon/rest.h"

enum {
	HD_HTTP_CONNECTIONS = 128,
	HD_HTTP_STREAMS = 32,
	HD_HTTP_OF_USER = 16,
	HD_HTTP_STREAMS_OF_USER = 4,
	HD_HTTP_PER_ADDRESS = 2 * HD_HTTP_STREAMS, /* a port has one address: as many questions as streams */
	HD_HTTP_IDLE_S = 10,
	HD_HTTP_MEMORY = 32 << 10,                 /* of a connection, in the library: twice the headers */
	HD_HTTP_TAGS = 1,
};
#define HD_HTTP_REQUEST_NS INT64_C(10000000000)
#define HD_HTTP_ANSWER_NS INT64_C(60000000000)
#define HD_HTTP_PING_NS INT64_C(15000000000)
#define HD_HTTP_DENIED_NS INT64_C(1000000000)

struct MHD_Daemon;
struct hd_http_stream;

struct hd_http_connection {
	bool open;
	int id;                                   /* its descriptor, the library's */
	int64_t until_ns;                         /* INT64_MAX: a stream */
	uint32_t uid;                             /* whose; HD_NO_UID: an owner's, or not known yet */
};

struct hd_http {
	struct hd_handler handler;                      /* these four are set by the caller */
	const struct hd_key *token;               /* borrowed; NULL on a Unix socket */
	struct hd_lines *audit;                   /* borrowed; NULL: none */
	bool shared;                              /* a Unix socket for all accounts */
	/* of the loop: [tag, tag + HD_HTTP_TAGS) are this server's */
	uint64_t tag;
	struct hd_loop *loop;                     /* borrowed */
	struct hd_sock listener;                  /* its addr: with the port that was chosen */
	struct hd_rest_gate gate;                 /* gate.run: set by the caller, false: of a scheduler */
	struct MHD_Daemon *mhd;                   /* owned */
	struct hd_http_connection connection[HD_HTTP_CONNECTIONS];
	struct hd_http_stream *streams;           /* owned: a list */
	uint32_t nstreams;
	int64_t run_ns;                           /* when the library wants to run again; 0: at once */
	uint64_t requests, refused, unaudited;    /* counted since open */
	bool changed, closing;
	int64_t denied_ns;                        /* when the last refused credential was written down */
	uint64_t denied_more;
};

/* "127.0.0.1:PORT", "localhost:PORT", "[::1]:PORT" -> "tcp:...". HD_E_INVAL: another host, with what to do
 * instead. */
HD_MUST_USE enum hd_err hd_http_where(const char *where, char addr[HD_ADDR_CAP], struct hd_diag *diag);

HD_MUST_USE enum hd_err hd_http_open(struct hd_http *http, const char *addr, struct hd_loop *loop,
	struct hd_net *net, struct hd_diag *diag);
void hd_http_close(struct hd_http *http);                  /* takes zeroed and closed ones */
void hd_http_event(struct hd_http *http, const struct hd_loop_event *event);
/* After every turn of the loop; the time at which it wants to be called again at the latest. INT64_MAX:
 * none, as of one that is not open. */
int64_t hd_http_tick(struct hd_http *http, int64_t now_ns);
void hd_http_changed(struct hd_http *http);                /* there are new events */

#endif
