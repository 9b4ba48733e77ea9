/* run_page.h -- the page of one run: the scheduler's page and those of its routes that one run can answer,
 * over the run's control socket.
 *
 * `heddle top RUN --http` has it. The run is job 1.
 *
 * 1. Served on the loopback with a token, as a scheduler's port (http.h); the token is drawn at each start,
 *    and lies in no file.
 * 2. It answers while the run goes on, and from the run's folder when it has ended.
 *
 * Blocks while a coordinator of the run is gone and the next is awaited (driver/reach.h). Threads: one. */
#ifndef HD_DAEMON_RUN_PAGE_H
#define HD_DAEMON_RUN_PAGE_H

#include "sys/clock.h"
#include "driver/reach.h"
#include "daemon/http.h"

struct hd_run_page {
	struct hd_reach reach;                    /* set by the caller, with an arena for nothing else */
	const char *run;                          /* borrowed: its folder */
	const char *where;                        /* "127.0.0.1:PORT" */
	/* it is served: the address with the token */
	void (*opened)(void *user, const char *url);
	enum hd_err (*stop)(void *user);          /* not HD_OK: end */
	void *user;
};

/* Serves until a stop request. HD_E_NOTFOUND: no run lies there. */
HD_MUST_USE enum hd_err hd_run_page(struct hd_run_page *page, struct hd_diag *diag);

#endif
