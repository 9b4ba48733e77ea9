/* socket.h -- byte streams between processes of one machine, behind a table.
 *
 * Rows: the system's sockets (Unix and TCP), and pairs of queues in memory whose writes a
 * script delays, cuts or loses (hd_net_sim).
 *
 * 1. Nothing blocks. HD_E_AGAIN: not now; the loop says when (sys/loop.h). Read and write
 *    until HD_E_AGAIN: then edge and level triggers are the same.
 * 2. A read of 0 bytes is the peer's orderly end. HD_E_PEERLOST: the connection is gone.
 * 3. Addresses are text: "unix:PATH" or "tcp:127.0.0.1:PORT" (also "tcp:[::1]:PORT"); port 0 lets the
 *    system choose. Other hosts (as numbers) are refused unless net->world says that
 *    peers must prove a key.
 * 4. A Unix path left behind by a dead process is replaced; one in use is HD_E_REFUSED.
 *
 * Ownership: a socket that was opened is closed; closing a listener removes its Unix path.
 * Threads: one per socket; a sim belongs to one thread, and does not move. */
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

enum { HD_ADDR_CAP = 128,                 /* the kernel's Unix paths end at 108 */
       HD_VEC_MAX = 64,
       HD_SOCK_IDS = 4 };

struct hd_sock {
	struct hd_net *net;               /* borrowed; NULL: not open */
	int id;                           /* what a loop watches: a descriptor, or the sim's number */
	bool listens;
	char addr[HD_ADDR_CAP];           /* of a listener: its own, with the port chosen; else the peer's */
	/* of an accepted one: equal for peers of one address; 0: a Unix socket */
	uint64_t from;
};

/* Advice, which a socket that does not know it ignores. */
enum hd_sock_knob {
	/* of TCP: not writable while more than this waits here: it cannot be called back */
	HD_SOCK_UNSENT_BYTES,
	/* of TCP: lost when what was sent is not acknowledged for so long */
	HD_SOCK_UNACKED_MS,
	/* so much at most waits here to be read; of a listener: at those it accepts. What is more than this
	 * user may ask for is ignored: the system would take less */
	HD_SOCK_KEPT_BYTES,
};

/* All slots: run on the socket's thread, never block. */
struct hd_net_ops {
	const char *name;
	/* sock->addr in and out */
	enum hd_err (*listen)(struct hd_net *net, struct hd_sock *sock, struct hd_diag *diag);
	enum hd_err (*accept)(struct hd_net *net, struct hd_sock *listener, struct hd_sock *sock,
		struct hd_diag *diag);
	/* begins; `connected` tells the end */
	enum hd_err (*connect)(struct hd_net *net, struct hd_sock *sock, struct hd_diag *diag);
	/* HD_E_AGAIN: under way */
	enum hd_err (*connected)(struct hd_net *net, struct hd_sock *sock, struct hd_diag *diag);
	enum hd_err (*read)(struct hd_net *net, struct hd_sock *sock, const struct hd_vec *vec, size_t n,
		size_t *got, struct hd_diag *diag);
	enum hd_err (*write)(struct hd_net *net, struct hd_sock *sock, const struct hd_vec *vec, size_t n,
		size_t *put, struct hd_diag *diag);
	/* only processes of this user can reach a listener there */
	bool (*is_private)(struct hd_net *net, const char *addr);
	/* the other end is a process of this user */
	bool (*is_same_user)(struct hd_net *net, struct hd_sock *sock);
	void (*tune)(struct hd_net *net, struct hd_sock *sock, enum hd_sock_knob knob, uint32_t value);
	uint32_t (*unsent)(struct hd_net *net, struct hd_sock *sock);
	enum hd_err (*give)(struct hd_net *net, struct hd_sock *sock, const int *ids, size_t n,
		struct hd_diag *diag);
	enum hd_err (*take)(struct hd_net *net, struct hd_sock *sock, int *ids, size_t n,
		struct hd_diag *diag);
	void (*close)(struct hd_net *net, struct hd_sock *sock);
};

struct hd_net {
	const struct hd_net_ops *ops;
	bool world;                       /* addresses of other hosts may be named */
};

void hd_net_real(struct hd_net *net);

HD_MUST_USE enum hd_err hd_sock_listen(struct hd_net *net, const char *addr, struct hd_sock *sock,
	struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_sock_accept(struct hd_sock *listener, struct hd_sock *sock, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_sock_connect(struct hd_net *net, const char *addr, struct hd_sock *sock,
	struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_sock_connected(struct hd_sock *sock, struct hd_diag *diag);
/* len >= 1. Some bytes and HD_OK, or none and a code. */
HD_MUST_USE enum hd_err hd_sock_read(struct hd_sock *sock, void *bytes, size_t len, size_t *got,
	struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_sock_write(struct hd_sock *sock, const void *bytes, size_t len, size_t *put,
	struct hd_diag *diag);
/* n pieces, 1..HD_VEC_MAX, as if they were one. */
HD_MUST_USE enum hd_err hd_sock_read_vec(struct hd_sock *sock, const struct hd_vec *vec, size_t n,
	size_t *got, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_sock_write_vec(struct hd_sock *sock, const struct hd_vec *vec, size_t n,
	size_t *put, struct hd_diag *diag);
bool hd_sock_is_private(struct hd_net *net, const char *addr);
bool hd_sock_is_same_user(struct hd_sock *sock);
/* Over a real Unix socket: n descriptors (1..HD_SOCK_IDS) and one byte that carries them; they stay the
 * giver's too. The taker owns its copies, which do not block. HD_E_PROTOCOL: what came is not n
 * descriptors; none is kept then. */
HD_MUST_USE enum hd_err hd_sock_give(struct hd_sock *sock, const int *ids, size_t n, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_sock_take(struct hd_sock *sock, int *ids, size_t n, struct hd_diag *diag);
void hd_sock_tune(struct hd_sock *sock, enum hd_sock_knob knob, uint32_t value);
/* Bytes that wait here and have not gone once: of TCP, else 0. */
uint32_t hd_sock_unsent(struct hd_sock *sock);
void hd_sock_close(struct hd_sock *sock);                 /* takes zeroed and closed ones */
/* Ends both directions of a real connection that a library owns and closes; it will find it ended. */
void hd_sock_shut(int id);

/* HOST:PORT whose host stands for every address of the machine, however it is spelt. */
bool hd_sock_is_everywhere(const char *where);
/* "tcp:HOST:0": the address of this machine from which it would call `addr`, a tcp one; nothing is sent.
 * HD_E_PEERLOST: no way leads there. */
HD_MUST_USE enum hd_err hd_sock_source(const char *addr, char own[HD_ADDR_CAP], struct hd_diag *diag);
/* A host in numbers, without brackets, IPv4 before IPv6; one in numbers stays as it is. Asks the system's
 * resolver, which may take many seconds: for starts, never for a way back. HD_E_NOTFOUND: no such host. */
HD_MUST_USE enum hd_err hd_sock_lookup(const char *host, char numbers[HD_ADDR_CAP], struct hd_diag *diag);

/* ---- the twin ---- */

enum { HD_NET_SIM_SOCKS = 256,            /* sockets alive at once */
       HD_NET_SIM_QUEUE = 1 << 16 };      /* bytes under way in one direction, then HD_E_AGAIN */

/* Fault of the write-th write of the whole net (from 1). Bytes of one connection never
 * overtake one another. A cut loses the bytes: both ends get HD_E_PEERLOST, the far one after delay_ns. */
struct hd_net_fault {
	uint64_t write;
	int64_t delay_ns;
	bool cut;
};

/* Fault of a write, or a connect (of 0 bytes), between two hosts. `lost`: nothing of this direction
 * arrives any more, without an error: a half-open connection; a connect stays under way. */
struct hd_net_fate { int64_t delay_ns; bool cut, lost; };
struct hd_net_trip { int64_t now_ns; uint64_t write; uint32_t from, to; size_t len; };

struct hd_net_end;
struct hd_net_sim;

/* The net as one host sees it: its sockets are known to the script by its number. */
struct hd_net_host {
	struct hd_net net;                /* hand out &host->net */
	struct hd_net_sim *sim;           /* borrowed */
	/* borrowed: simulated, gets events of this host's sockets; NULL: no events */
	struct hd_loop *loop;
	uint32_t host;
};

struct hd_net_sim {
	union {
		struct hd_net net;        /* hand out &sim->net: host 0 */
		struct hd_net_host own;
	};
	struct hd_clock *clock;           /* borrowed */
	const struct hd_net_fault *faults;        /* borrowed, rising by `write` */
	size_t n_faults;
	/* NULL: none; asked after the faults */
	struct hd_net_fate (*fate)(void *user, const struct hd_net_trip *trip);
	void *user;                       /* borrowed */
	uint64_t writes;
	int64_t latency_ns;               /* of every write */
	struct hd_net_end *ends;          /* owned: HD_NET_SIM_SOCKS */
};

/* `host` does not move while it has sockets. Loops of several hosts share the sim's clock; the caller
 * that moves them polls the one whose next event is earliest (hd_loop_sim_next_ns). */
void hd_net_sim_host(struct hd_net_sim *sim, uint32_t number, struct hd_loop *loop, struct hd_net_host *host);
HD_MUST_USE enum hd_err hd_net_sim_init(struct hd_net_sim *sim, struct hd_clock *clock, struct hd_loop *loop,
	struct hd_diag *diag);
void hd_net_sim_finish(struct hd_net_sim *sim);

#endif
