/* link.h -- a link of a given rate and delay between two threads of this process, for measurements.
 *
 * Rows, by name:
 *
 *   netns   each thread in a network of its own, joined by a pair of virtual interfaces whose queues let so
 *           many bits a second through (tc tbf, both ways). Needs root, ip and tc. It has no delay.
 *   relay   a third thread passes the bytes of connections over 127.0.0.1 on: each way by a bucket of
 *           tokens, and not before the delay is over. Its sockets keep 64 KiB, so what has not passed is in
 *           the sender's kernel, as before a slow link. Needs nothing.
 *   none    127.0.0.1 as it is
 *
 *	opener:    open -> (its thread starts the other with the link) -> caller() -> ... -> close
 *	other:     join -> listen at addr -> listens() -> ... (no call when it ends)
 *
 * 1. hd_link_open() and hd_link_join() run in the threads that are joined, at the same time: each waits for
 *    the other, HD_LINK_PATIENCE_NS at most. If one fails, so does the other.
 * 2. What is made is gone with the threads, however they end.
 * 3. The rate is of all bytes, headers too; 1 Mbit is 10^6 bits.
 *
 * Ownership: the opener's struct; it does not move. Threads: as said. HD_E_REFUSED: not on this machine;
 * HD_E_PEERLOST: the other end failed. */
#ifndef HD_WORKER_LINK_H
#define HD_WORKER_LINK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "sys/clock.h"
#include "sys/socket.h"
#include "sys/thread.h"

#define HD_LINK_PATIENCE_NS (20 * HD_NS_PER_S)

enum hd_link_kind { HD_LINK_NONE, HD_LINK_NETNS, HD_LINK_RELAY, HD_LINK_KINDS };

struct hd_link_spec {
	enum hd_link_kind kind;
	uint32_t rate_mbit;               /* 1..100000; NONE: 0 */
	uint32_t delay_ms;                /* each way, 0..1000; RELAY alone */
	struct hd_clock *clock;           /* borrowed */
};

struct hd_link {
	struct hd_link_spec spec;
	_Atomic int stage;                /* private: how far both are */
	_Atomic int other_id;
	char addr[HD_ADDR_CAP];           /* where the other listens */
	struct hd_thread relay;
	_Atomic bool ends;
	struct hd_sock door;              /* of the relay: the opener calls there */
	struct hd_net net;
};

const char *hd_link_name(enum hd_link_kind kind);
/* Which of them there can be here: netns where it is allowed and no delay is asked for, else relay. */
enum hd_link_kind hd_link_best(uint32_t delay_ms);

void hd_link_init(struct hd_link *link, const struct hd_link_spec *spec);
HD_MUST_USE enum hd_err hd_link_open(struct hd_link *link, struct hd_diag *diag);
/* addr: where to listen, the port open. */
HD_MUST_USE enum hd_err hd_link_join(struct hd_link *link, char addr[HD_ADDR_CAP], struct hd_diag *diag);
void hd_link_listens(struct hd_link *link, const char *addr);     /* the other: it listens there now */
void hd_link_fail(struct hd_link *link);                          /* any: the other shall not wait */
/* The opener: where to call. Waits until the other listens. */
HD_MUST_USE enum hd_err hd_link_caller(struct hd_link *link, char addr[HD_ADDR_CAP], struct hd_diag *diag);
void hd_link_close(struct hd_link *link);                         /* takes zeroed and closed ones */

#endif
