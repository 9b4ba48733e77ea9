/* webhook.h -- what happened, sent to an address that a user names: a frontend of the daemon (frontend.h).
 *
 * Each event that ends a job, or of HD_WEBHOOK_KINDS, is a POST of JSON, one at a time, oldest first: the
 * members of an event of GET /v1/events and `name`, that of its job.
 *
 * 1. Events are the store's, and the last that was delivered is written into DIR/webhook: there is no other
 *    queue, so after an outage of the receiver or of the scheduler no event is missed that the store still
 *    has (jobs.h, rule 6). The first start begins with the events from then on, and so does a start with a
 *    store whose newest event is older than that.
 * 2. At least once: an answer that is lost has the event sent again, with the same `number`.
 * 3. 2xx has it delivered, whatever follows the answer's head. 4xx, but for 408 and 429,
 *    refuses that event: it is dropped, and the log says so. All else is tried again, after
 *    HD_WEBHOOK_FIRST_NS, then twice as long each time up to HD_WEBHOOK_MOST_NS; the log says when that
 *    begins and when it ends.
 * 4. HTTPS (sys/web.h), or HTTP to the loopback. Redirects are not followed.
 * 5. The daemon never waits for it. At its end what is under way is dropped, and comes after the next start.
 *
 * Ownership: the caller's memory, which does not move while the daemon has it. Threads: the daemon's. */
#ifndef HD_DAEMON_WEBHOOK_H
#define HD_DAEMON_WEBHOOK_H

#include "sys/file.h"
#include "sys/web.h"
#include "daemon/frontend.h"

#define HD_WEBHOOK_ANSWER_NS INT64_C(10000000000)
#define HD_WEBHOOK_FIRST_NS INT64_C(250000000)
#define HD_WEBHOOK_MOST_NS INT64_C(300000000000)

/* kinds of events besides the states in which a job is over (scheduler/dispatch): a device is out of service,
 * back, or at fault */
#define HD_WEBHOOK_KINDS(X) X(device) X(failing)

struct hd_webhook {
	const char *dir, *url;                    /* set by the caller, borrowed, with `say` as in daemon.h */
	void (*say)(void *user, const char *kind, uint64_t job, const char *text);
	void *user;
	struct hd_fs fs;
	struct hd_handler handler;
	struct hd_loop *loop;                     /* borrowed */
	struct hd_web *web;                       /* owned */
	struct hd_arena arena;                    /* of one event */
	/* number of the last event that is over; of the one under way, 0: none */
	int64_t after, sending;
	int64_t due_ns, wait_ns;                  /* when to try again; wait_ns 0: nothing failed */
	bool news;                                /* there may be events beyond `after` */
};

extern const struct hd_frontend_ops hd_webhook_ops;       /* self: struct hd_webhook */

/* HD_E_INVAL: it is neither HTTPS nor of the loopback. */
HD_MUST_USE enum hd_err hd_webhook_check(const char *url, struct hd_diag *diag);

#endif
