/* instances.h -- processes that serve Lambda's Runtime API to one caller: started, given invocations, ended,
 * and made to fail by draws.
 *
 * The local pool is one; the emulator of AWS Lambda puts the Invoke API before another.
 *
 * 1. Each instance is a process with a listener of its own, which it calls by AWS_LAMBDA_RUNTIME_API: below
 *    `dir` a Unix socket, without `dir` a port of the loopback. It has one invocation at a time. A warm one
 *    is preferred, the lowest number first; one that was idle for HD_FN_IDLE_NS is ended.
 * 2. What is drawn is keyed by (seed, number of the call): calls of equal numbers meet equal faults. A killed
 *    call's process gets SIGKILL at a drawn part of the mean time; a straggling one stands still for
 *    factor - 1 times that mean, at least HD_FN_STRAGGLE_NS; of a lost one the answer is not given out; a
 *    doubled one's event is given to its process a second time.
 * 3. With `share` below 1 a process that computes runs that part of each slice of HD_FN_SLICE_NS and stands
 *    still for the rest.
 * 4. Each run of an event ends with one REPORT in the log: wall time and, of a cold start, init time, billed
 *    together and rounded up to 1 ms.
 * 5. A call that is not answered by its deadline ends its process. All processes end with this one, however
 *    that ends, those that stand still, too.
 *
 * Ownership: open/close in the caller's memory, which does not move. Threads: the loop's. */
#ifndef HD_FUNCTIONS_INSTANCES_H
#define HD_FUNCTIONS_INSTANCES_H

#include <stdio.h>

#include "sys/loop.h"
#include "sys/process.h"
#include "sys/socket.h"
#include "sys/tie.h"
#include "functions/event.h"
#include "functions/runtime_api.h"

#define HD_FN_IDLE_NS     INT64_C(300000000000)
#define HD_FN_SLICE_NS    INT64_C(10000000)
#define HD_FN_STRAGGLE_NS INT64_C(20000000)

enum {
	HD_FN_INSTANCES = 64, HD_FN_ANSWER_BYTES = 8192, HD_FN_WHY = 256,
	HD_FN_INSTANCE_IN = HD_HTTP_HEAD_BYTES + HD_FN_ANSWER_BYTES,
	HD_FN_INSTANCE_OUT = HD_FN_EVENT_BYTES + 1024,
};

/* How calls fail: parts of 1. */
struct hd_fn_faults { double kill, straggle, factor, drop, duplicate; uint64_t seed; };

/* What is started, how many at once. Borrowed until close. */
struct hd_fn_instances_spec {
	const char *const *argv;          /* of an instance; ends with NULL */
	const char *dir;                  /* or NULL */
	uint32_t slots;
	int64_t memory_mb, cold_ns;       /* cold_ns: what a start takes at least */
	double share;                     /* of a core; 1 or more: all of it */
	int64_t bytes_s;                  /* of a process and its owner, kept by the process; 0: no bound */
	struct hd_fn_faults faults;
	FILE *log;                        /* REPORT lines; NULL: none */
	uint64_t tag;                     /* of the loop: [tag, tag + 2 x HD_FN_INSTANCES) */
};

/* What became of a call. REFUSED_CALL: a service has no slot for it now (429). */
enum hd_fn_call_end { HD_FN_ANSWERED, HD_FN_ERRED, HD_FN_DIED, HD_FN_TIMED_OUT, HD_FN_LOST,
	HD_FN_REFUSED_CALL };
/* `body`: of an ANSWERED one what the function said. A LOST one has no report. */
struct hd_fn_called {
	uint64_t call;                    /* the caller's name of it */
	enum hd_fn_call_end end;
	bool has_report;
	int64_t took_ns;                  /* by the caller's clock; below 0: it did not run */
	struct hd_lambda_report report;
	char body[HD_FN_ANSWER_BYTES];
	size_t len;
	char why[HD_FN_WHY];              /* of one that a service did not answer, or ""; printable */
};

/* Where an instance is. */
enum hd_fn_phase { HD_FN_OFF, HD_FN_STARTING, HD_FN_IDLE, HD_FN_BUSY };

/* One process. */
struct hd_fn_instance {
	enum hd_fn_phase phase;
	struct hd_proc proc;
	struct hd_sock listener, sock;
	char in[HD_FN_INSTANCE_IN], out[HD_FN_INSTANCE_OUT], body[HD_FN_ANSWER_BYTES],
		event[HD_FN_EVENT_BYTES];
	size_t in_len, out_len, out_at, event_len;
	bool asks;                        /* it waits for its next invocation */
	bool has_event, again;            /* an event waits for it, or runs; it will be given a second time */
	bool second;                      /* this run is the second */
	bool killed, lost, stands;        /* faults of this call; SIGSTOP was sent */
	uint64_t call, number;
	char id[HD_RUNTIME_ID];
	int64_t began_ns, started_ns, init_ns, deadline_ns, idle_ns, kill_ns, stand_ns, slice_ns;
};

/* All of them. */
struct hd_fn_instances {
	struct hd_fn_instances_spec spec;
	struct hd_loop *loop;             /* borrowed */
	struct hd_net net;
	struct hd_host host;
	struct hd_tie tie;                /* what processes end with */
	uint64_t ncalls, nstarts;
	double mean_ns;                   /* of calls that were not disturbed; 0: none yet */
	uint32_t nended;
	struct hd_fn_called *ended;       /* owned: HD_FN_INSTANCES */
	struct hd_fn_instance *at;        /* owned: HD_FN_INSTANCES */
};

/* Starts nothing yet. */
HD_MUST_USE enum hd_err hd_fn_instances_open(struct hd_fn_instances *all,
	const struct hd_fn_instances_spec *spec,
	struct hd_loop *loop, struct hd_diag *diag);
/* Ends all processes. Takes zeroed and closed ones. */
void hd_fn_instances_close(struct hd_fn_instances *all);
/* HD_E_AGAIN: all slots are busy. `deadline_ns`: of the loop's clock. */
HD_MUST_USE enum hd_err hd_fn_instances_call(struct hd_fn_instances *all, uint64_t call, const char *event,
	size_t len, int64_t deadline_ns, struct hd_diag *diag);
/* An event of the loop with one of its tags. */
void hd_fn_instances_event(struct hd_fn_instances *all, const struct hd_loop_event *event);
/* After every turn; when it wants to be called again at the latest. */
int64_t hd_fn_instances_tick(struct hd_fn_instances *all, int64_t now_ns);
/* The next call that ended; false: none. */
bool hd_fn_instances_take(struct hd_fn_instances *all, struct hd_fn_called *called);

#endif
