/* transport.h -- one way to move bytes between two processes, behind a table (private to the room).
 *
 * Rows: transports.h. A connection moves bytes and knows no frames; the peer (peer.h) does.
 *
 * 1. Nothing blocks; HD_E_AGAIN: not now, the loop says when. The peer sets the loop's interest as `wants`
 *    says.
 * 2. A read of 0 bytes is the orderly end. HD_E_PEERLOST: the connection is gone; HD_E_REFUSED: it has no
 *    right to be here.
 * 3. No byte is handed up before `ready` said HD_OK: it is connected, and where the row authenticates,
 *    authenticated.
 *
 * Ownership: a connection that was begun or accepted is closed once. Threads: the hub's. */
#ifndef HD_WIRE_TRANSPORT_H
#define HD_WIRE_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/hash.h"
#include "sys/loop.h"
#include "sys/socket.h"
#include "wire/transports.h"

enum hd_wire_power {
	/* others can read and change what goes by: payloads carry checksums, and a key or a flag is asked
	 * for */
	HD_WIRE_OPEN = 1,
	/* the peer has proven the job's key, and its worker id */
	HD_WIRE_PROVES = 2,
	HD_WIRE_WORLD = 4,                /* may name other hosts */
};

struct hd_conn;
struct hd_tls_realm;

/* What a proof needs: fixed before `ready` is called. */
struct hd_conn_ids { struct hd_hash job; uint32_t self, peer; bool outgoing; const void *key; size_t key_len;
	const struct hd_tls_realm *realm; };

struct hd_transport {
	const char *name;
	unsigned powers;
	/* Checks what makes the place safe to listen at. */
	enum hd_err (*listen)(struct hd_net *net, struct hd_sock *sock, const char *addr,
		struct hd_diag *diag);
	/* After the socket is connected or accepted: goes on with whatever comes before bytes. HD_E_AGAIN
	 * until it is done. */
	enum hd_err (*ready)(struct hd_conn *conn, struct hd_diag *diag);
	enum hd_err (*read)(struct hd_conn *conn, const struct hd_vec *vec, size_t n, size_t *got,
		struct hd_diag *diag);
	enum hd_err (*write)(struct hd_conn *conn, const struct hd_vec *vec, size_t n, size_t *put,
		struct hd_diag *diag);
	/* Interest in the socket, given what the peer wants to do (HD_LOOP_READ, HD_LOOP_WRITE). */
	unsigned (*wants)(struct hd_conn *conn, unsigned wanted);
	/* Before reading and writing: after an event of the connection, or at any other look. */
	void (*seen)(struct hd_conn *conn);
	/* The chunk has changed: advice about what may wait unsent. */
	void (*chunk)(struct hd_conn *conn, uint32_t bytes);
	/* Less than two chunks wait here: another may be chosen. What is chosen earlier waits longer, and
	 * cannot be overtaken. After `false` an event of writing comes when it is so. */
	bool (*room)(struct hd_conn *conn);
	void (*close)(struct hd_conn *conn);      /* in any state; frees what the row took */
};

struct hd_conn {
	const struct hd_transport *ops;
	struct hd_sock sock;              /* owned; its id is what the loop watches */
	struct hd_conn_ids ids;
	void *own;                        /* of the row: owned by it */
	uint32_t unsent_most;             /* two chunks; 0: not known yet */
	int second_id;                    /* another id that the loop watches for reading; -1: none */
	bool is_ready;
};

/* Those of transports.h, and the one that joins simulated hubs. */
#define HD_WIRE_TRANSPORTS(X) HD_TRANSPORT_ROWS(X, X) X(sim)
#define X(name) extern const struct hd_transport hd_transport_##name;
HD_WIRE_TRANSPORTS(X)
#undef X

const struct hd_transport *hd_transport_find(const char *name);         /* NULL: no such row */

#endif
