/* functions.h -- the functions that a run gives dense work to (functions/service.h), by the job's table
 * `functions`, and what they cost.
 *
 * Each worker of a run has its own: a pool of its own processes, or calls of its own to one service, which
 * answer at a port of its own (functions.listen's, or the first free one behind it); its ledger is its own,
 * and ends as an event.
 *
 * 1. No bit depends on them, and no key of the table is part of the job's hash. So kernels must be ours
 *    (job.kernels: portable), whose bits are the same on any machine: others are refused.
 * 2. What is run here in their place is said once for each reason: a circuit that closed, calls of which none
 *    ended well for HD_RUN_FN_SILENT_NS (and when one did again), a part of the model that no message
 *    carries.
 * 3. With size: auto a step is an epoch of the tuner (functions/tuner.h), a second of them what it learns
 *    from: seconds by this process's clock, dollars of functions by their ledger, of the worker by
 *    workers.usd_h, or HD_RUN_FN_CORE_USD_H a core where that is not known. A device that stood still for
 *    functions is a queue that is empty. Steps while the service is away teach nothing. What the tuner finds
 *    worth a line is an event.
 * 4. The bill is that of all calls that ended; those under way at the end are awaited for at most
 *    HD_RUN_FN_WAIT_NS.
 *
 * Ownership: open/close by the run. Threads: the run's. */
#ifndef HD_RUN_FUNCTIONS_H
#define HD_RUN_FUNCTIONS_H

#include "functions/service.h"
#include "functions/tuner.h"

#define HD_RUN_FN_WAIT_NS INT64_C(5000000000)
#define HD_RUN_FN_KEEP_NS INT64_C(5000000000)     /* between two writes of the bill (functions_bill.h) */

#define HD_RUN_FN_SILENT_NS INT64_C(3000000000)   /* without a call that ended well: said */
#define HD_RUN_FN_CORE_USD_H 0.0425       /* of a c5, on demand */

struct hd_run;
struct hd_job;

/* Those of a run. */
struct hd_run_functions {
	struct hd_fn_service service;
	uint64_t closed;                  /* circuits that closed so far */
	bool silent, shut;                /* it was said that no call ends well; that a circuit closed */
	bool said, billed;                /* what it gives out was; the bill was */
	bool unkept;                      /* it could not be written */
	uint32_t file;                    /* the number of its file (functions_bill.h) */
	uint64_t drawn;                   /* its name without a folder; 0: not yet */
	int64_t kept_ns;                  /* when it was last written */
	bool tunes;
	struct hd_fn_tuner tuner;
	int64_t at_ns, nano, idle_ns;     /* when the step began; what was spent, and waited, before it */
};

/* What the job's table asks for, both ways; the rest of `service` is the process's. */
void hd_run_functions_ask(const struct hd_job *job, struct hd_fn_service_spec *service,
	struct hd_fn_tuner_spec *tuner);
/* What the job asks for, for the worker that will be created; nothing where it asks for none. */
HD_MUST_USE enum hd_err hd_run_functions_open(struct hd_run *run, struct hd_diag *diag);
/* Of the worker that was created: what is given out, and where functions call; once, as soon as something
 * hears it. */
void hd_run_functions_tell(struct hd_run *run);
/* After each pass: what is worth a line; `ends`: it was the last one, so the bill is said. */
void hd_run_functions_look(struct hd_run *run, bool ends);
/* Takes a run without any. */
void hd_run_functions_close(struct hd_run *run);

#endif
