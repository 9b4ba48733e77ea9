/* socket.h -- byte streams between processes of one machine, behind a table.
 *
 * Rows: the system's sockets (Unix and TCP on the loopback interface), and pairs of
 * queues in memory whose writes a script delays or cuts (hd_net_sim).
 *
 * 1. Nothing blocks. HD_E_AGAIN: not now; the loop says when (sys/loop.h). Read and write
 *    until HD_E_AGAIN: then edge and level triggers are the same.
 * 2. A read of 0 bytes is the peer's orderly end. HD_E_PEERLOST: the connection is gone.
 * 3. Addresses are text: "unix:PATH" or "tcp:127.0.0.1:PORT" (also "tcp:[::1]:PORT"). Other
 *    hosts are refused: nothing listens to the world. Port 0 lets the system choose.
 * 4. A Unix path left behind by a dead process is replaced; one somebody listens on is HD_E_REFUSED.
 *
 * Ownership: a socket that was opened is closed; closing a listener removes its Unix path.
 * Threads: one per socket; a sim belongs to one thread. */
#ifndef HD_SYS_SOCKET_H
#define HD_SYS_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct hd_net;
struct hd_loop;
struct hd_clock;

struct hd_vec { void *at; size_t len; };   /* a piece of memory, written to or read from */

enum { HD_ADDR_CAP = 128 };               /* the kernel's Unix paths end at 108 */

struct hd_sock {
	struct hd_net *net;               /* borrowed; NULL: not open */
	int id;                           /* what a loop watches: a descriptor, or the sim's number */
	bool listens;
	char addr[HD_ADDR_CAP];           /* of a listener: its own, with the port chosen; else the peer's */
};

/* All slots: run on the socket's thread, never block. */
struct hd_net_ops {
	const char *name;
	enum hd_err (*listen)(struct hd_net *net, struct hd_sock *sock, struct hd_diag *diag);        /* sock->addr in and out */
	enum hd_err (*accept)(struct hd_net *net, struct hd_sock *listener, struct hd_sock *sock, struct hd_diag *diag);
	enum hd_err (*connect)(struct hd_net *net, struct hd_sock *sock, struct hd_diag *diag);       /* begins; `connected` tells the end */
	enum hd_err (*connected)(struct hd_net *net, struct hd_sock *sock, struct hd_diag *diag);     /* HD_E_AGAIN: under way */
	enum hd_err (*read)(struct hd_net *net, struct hd_sock *sock, void *bytes, size_t len, size_t *got, struct hd_diag *diag);
	enum hd_err (*write)(struct hd_net *net, struct hd_sock *sock, const void *bytes, size_t len, size_t *put, struct hd_diag *diag);
	void (*close)(struct hd_net *net, struct hd_sock *sock);
};

struct hd_net { const struct hd_net_ops *ops; };

void hd_net_real(struct hd_net *net);

HD_MUST_USE enum hd_err hd_sock_listen(struct hd_net *net, const char *addr, struct hd_sock *sock, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_sock_accept(struct hd_sock *listener, struct hd_sock *sock, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_sock_connect(struct hd_net *net, const char *addr, struct hd_sock *sock, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_sock_connected(struct hd_sock *sock, struct hd_diag *diag);
/* len >= 1. Some bytes and HD_OK, or none and a code. */
HD_MUST_USE enum hd_err hd_sock_read(struct hd_sock *sock, void *bytes, size_t len, size_t *got, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_sock_write(struct hd_sock *sock, const void *bytes, size_t len, size_t *put, struct hd_diag *diag);
void hd_sock_close(struct hd_sock *sock);                 /* takes zeroed and closed ones */

/* ---- the twin ---- */

enum { HD_NET_SIM_SOCKS = 256,            /* sockets alive at once */
       HD_NET_SIM_QUEUE = 1 << 16 };      /* bytes under way in one direction, then HD_E_AGAIN */

/* What befalls the write-th write of the whole net (from 1). Bytes of one connection never
 * overtake one another. A cut loses the bytes: both ends get HD_E_PEERLOST, the far one after delay_ns. */
struct hd_net_fault {
	uint64_t write;
	int64_t delay_ns;
	bool cut;
};

struct hd_net_end;

struct hd_net_sim {
	struct hd_net net;                /* hand out &sim->net */
	struct hd_clock *clock;           /* borrowed */
	struct hd_loop *loop;             /* borrowed; NULL: nobody is told; else a simulated one */
	const struct hd_net_fault *faults;        /* borrowed, rising by `write` */
	size_t n_faults;
	uint64_t writes;
	int64_t latency_ns;               /* of every write */
	struct hd_net_end *ends;          /* owned: HD_NET_SIM_SOCKS */
};

HD_MUST_USE enum hd_err hd_net_sim_init(struct hd_net_sim *sim, struct hd_clock *clock, struct hd_loop *loop, struct hd_diag *diag);
void hd_net_sim_finish(struct hd_net_sim *sim);

#endif
