/* front.h -- the HTTP front end of function workers: what Knative and OpenFaaS send requests to.
 *
 *	POST /              an event; 200 with the answer, whatever became of the task
 *	GET /_/health       200, and so /_/ready; 503 once it was asked to stop
 *
 * 1. At most `concurrency` events at once, each on a thread with a warm worker of its own; 429 beyond. Health
 *    is answered while tasks are computed.
 * 2. Once it was asked to stop (SIGTERM) events get 503; the tasks that run are finished, within drain_ns.
 * 3. An event is believed nothing but where its owner is; see functions/worker.h, 3.
 *
 * Threads: blocks the caller's; those of tasks are joined, but for what `abandoned` says. */
#ifndef HD_FUNCTIONS_FRONT_H
#define HD_FUNCTIONS_FRONT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "sys/clock.h"

enum { HD_FN_CONCURRENCY = 64 };
#define HD_FN_DRAIN_NS INT64_C(25000000000)      /* Kubernetes kills after 30 s */

/* What is served. */
struct hd_fn_front_spec {
	struct hd_clock *clock;
	const char *listen;               /* "tcp:HOST:PORT", HOST a number */
	bool world;                       /* HOST may be another one than the loopback's */
	uint32_t concurrency;             /* 1 to HD_FN_CONCURRENCY */
	int64_t drain_ns;
	void (*ready)(void *self, const char *addr);      /* it listens; NULL: nothing is said */
	void *self;
};

/* Until a signal asks to stop [HD_OK]. `abandoned`: a task ran beyond drain_ns; its thread goes on, so the
 * process must end without more ado. */
HD_MUST_USE enum hd_err hd_fn_serve_http(const struct hd_fn_front_spec *spec, bool *abandoned,
	struct hd_diag *diag);

#endif
