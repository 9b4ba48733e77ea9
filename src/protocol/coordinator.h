/* coordinator.h -- who takes part in one job: the machine that decides views.
 *
 * Not in the path of a step: members go on without it. It admits workers, names donors, plans changes,
 * decides what a loss means, counts commits and writes the one record of what was decided.
 *
 * 1. Only what is stored is decided: every epoch number and every id is in a stored record before anybody
 *    hears of it, and is never used again. Only one process at a time has the store; its term is the stored
 *    one plus 1; workers ignore earlier terms.
 * 2. One planned change is open at a time: PREPARE to all of the old and the new view; all PREPARED;
 *    DECIDE; in force when the first SEAL of its epoch comes. Requests meanwhile are coalesced to the
 *    newest.
 * 3. A failure pre-empts it: FENCE under a new epoch to all who may have part in the open step; all STATUS;
 *    VIEW. Silent for T: dead too, and again with a higher epoch. The same way goes for the start (nobody
 *    is dead, all hold X_step), for a coordinator that takes over, and for a link that closed and came back
 *    (what was lost on it is repeated).
 * 4. A planned change that is open when a failure comes is void; its joiners stay learners.
 * 5. One knob, T. A worker whose link is closed is dead at once if a peer lost it too or its process ended,
 *    else after T; silent for T: the same. Suspected by peers but heard here: after T the one whom most
 *    reports name goes, ties: the higher id. Hung: no progress for max(2 T, 8 x its longest instruction).
 * 6. Fewer than `min` members: the open step is finished, then all hold; after min_wait: RELEASE with exit
 *    code 10, the scribe having saved.
 * 7. No member is left: RESTORE asks the caller which step is on disk, and all who are there begin from it.
 * 8. Remote workers (they come from where the run's folder is not, and have ids from HD_REMOTE_WORKER on)
 *    are wanted beyond those that were asked for: the record has what was asked for, of local workers;
 *    wanted are those and the remote ones that are here, up to max. Of too many local ones the youngest go,
 *    whatever remote ones there are; one place is kept from these while no local one has it. They learn
 *    from members alone, so they never begin a run, and a view of them alone holds until somebody is there
 *    who can save; the open step waits too, if the scribe might have halted before it (nobody holds the
 *    table).
 * 9. Sharded state: of those who hold a bucket's slots fewer than `copies` go in one planned change, the
 *    others in the next ones. If nobody is left who holds them, the job begins again from disk, as in 7;
 *    the members are dead to it and come anew.
 * 10. Who is to be relieved counts as if it were not there when workers are asked for and taught, and stays
 *     a member until as many others as are wanted are ready. Not stored: another coordinator finds the
 *     other worker standing by, and is told again.
 * 11. A step is committed when all members of the view that ran it have sealed it; COMMIT comes once a
 *     step, in order.
 * 12. Digests of a step that differ (of seals; or a member heard one: SUSPECT, corrupt) mean that its sums,
 *     and all that came of them, may be wrong: nothing of it is committed. When all members have sealed it,
 *     who told another digest than more than half of those who told one goes, with exit code 5; all others
 *     begin again from disk, as in 7, INVALIDATE being said before: from the newest step whose state was
 *     the same at all (*verified*), or one before. Without such a half the job ends, with exit code 5; so
 *     it does at the third time without a verified state that is newer than all that were disputed,
 *     whichever coordinators counted: so it ends whatever a bad memory does. That who resumes the run
 *     counts anew is the caller's. INVALIDATE is said too when nobody is left, or the job ends, before it
 *     could be told who goes.
 * 13. A learner whose donor gave up (catchup.h) is put aside for 2 T, twice as long each further time, at
 *     most 1,024 T; and is wanted again at once with the next view, whose steps may be slower, and when a
 *     number is asked for. Others are taught meanwhile. Not stored.
 * 14. HALT and DRAIN are in the record; a stop that only the scribe knows of any more counts as well. A job
 *     that is halted ends with the code that was asked for, whichever coordinators saw to it; with 0 only
 *     if the scribe has saved X_nsteps, or stopped by itself (its target) and nobody asked for anything.
 *
 * Pure: events in, actions out; time is an argument. Returned actions are valid until the next call.
 * create/destroy; one thread. */
#ifndef HD_PROTOCOL_COORDINATOR_H
#define HD_PROTOCOL_COORDINATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "protocol/message.h"
#include "protocol/view.h"

enum {
	/* of one job at a time: members, learners, standbys, those leaving */
	HD_MAX_WORKERS = 128,
	HD_CO_NEWS = 512,                 /* steps whose record waits for their commit */
	/* a joiner learns, a change is prepared, decided and in force: each at a boundary */
	HD_CO_STEPS_TO_JOIN = 4,
};

/* What a planner may know of a member. */
struct hd_member_info { uint32_t worker, ndevices; uint64_t vn_ps, memory; const char *host; };
/* Fills view->rank and nranks (member and nmembers are set). false: keep to even shares. Pure. */
typedef bool hd_plan_view(void *self, struct hd_view *view, const struct hd_member_info *info, uint32_t n);

/* All that outlives a coordinator. One record; the newest stored counts. */
struct hd_co_record {
	uint64_t serial;                  /* rises with every store */
	uint32_t term, epoch, next_worker;        /* greatest used; next_worker: the next id */
	uint32_t target, nmembers;        /* target: local workers */
	/* who may hold the state: of the newest view, and of the one decided but not in force */
	uint32_t member[HD_MAX_WORKERS];
	bool started;                     /* there was a view: `member` hold the state */
	bool halting;
	/* with halting: with which workers leave and the job ends, and why */
	uint32_t halt_code;
	char halt_why[HD_MSG_TEXT + 1];
	uint32_t ngoing, going[HD_MAX_WORKERS];   /* who was asked to leave by DRAIN and is still here */
	/* rule 12: in a row, with no state verified that was newer than all that were disputed */
	uint32_t mismatches;
	uint64_t mismatched;                /* the newest step that ever was; 0: none, or that one */
};

struct hd_co_config {
	struct hd_hash job, kernels;
	/* copies: of sharded state, 0: replicated; min <= target <= max <= HD_MAX_MEMBERS */
	uint32_t nvns, nbuckets, copies, min, max, target;
	int64_t detect_ns, min_wait_ns;
	/* of the job: who has run them all is done, whatever was asked for meanwhile; 0: not known */
	uint64_t nsteps;
	uint64_t step;                    /* first step, if nothing is stored: that of the checkpoint, or 0 */
	/* of a run that is taken over: the newest X_verified that is known to have been the same at all;
	 * or 0 */
	uint64_t verified;
	/* as it was found; all 0: a new run. The caller holds the store's lock */
	struct hd_co_record record;
	hd_plan_view *plan;               /* NULL: even shares */
	void *plan_self;
};

/*        id        payload           what happened */
#define HD_CO_EVENTS(X) \
	X(MESSAGE,   "worker, msg, remote", "a message came; JOIN of a worker without id from its guest number") \
	X(LOST,      "worker, why",         "its link closed (HD_CLOSED), is silent for T (HD_SILENT), is heard again; its process ended (HD_EXITED)") \
	X(SCALE,     "n",                   "that many local workers are wanted") \
	X(DRAIN,     "worker, code",        "that worker shall leave the job") \
	X(REPLACE,   "worker, ok",          "another local worker shall take its place, then it goes; not ok: it stays") \
	X(HALT,      "code, text",          "stop at the next boundary; workers leave with this code") \
	X(REPLAN,    "",                    "ask the planner again") \
	X(UNSPAWNED, "n",                   "so many of the workers that SPAWN asked for ended before they joined") \
	X(STORED,    "serial, ok",          "STORE of that record is done, or failed: it is asked for again") \
	X(RESTORED,  "step",                "the step that RESTORE found; HD_NO_STEP: none") \
	X(TICK,      "",                    "time went by; at least each T/4")

enum hd_co_event_kind {
#define X(id, payload, text) HD_CO_IN_##id,
	HD_CO_EVENTS(X)
#undef X
	HD_CO_IN_NKINDS
};

struct hd_co_event {
	enum hd_co_event_kind kind;
	uint32_t worker, n, code;
	uint64_t step, serial;
	enum hd_suspicion why;
	const struct hd_msg *msg;
	const char *text;
	bool ok, remote;
};

/*        id        payload                 what the caller does */
#define HD_CO_ACTIONS(X) \
	X(SEND,       "worker, msg",        "send it; a link that is not up drops it") \
	X(DROP,       "worker, text",       "close its link, after what was sent") \
	X(STORE,      "record",             "store it durably, then STORED") \
	X(SPAWN,      "n",                  "start so many workers more, if this caller starts workers") \
	X(END,        "worker",             "a local process of that worker may be ended: it is dead to the job") \
	X(RESTORE,    "",                   "which step is the newest on disk? then RESTORED") \
	X(INVALIDATE, "step",               "checkpoints of later steps may be wrong: remove them") \
	X(COMMIT,     "step, epoch, news",  "step is committed: a line for metrics.ndjson") \
	X(NOTE,       "name, text, worker", "a line for events.ndjson") \
	X(EXIT,       "code, text",         "the job is over, with this exit code")

enum hd_co_action_kind {
#define X(id, payload, text) HD_CO_DO_##id,
	HD_CO_ACTIONS(X)
#undef X
	HD_CO_DO_NKINDS
};

struct hd_co_action {
	enum hd_co_action_kind kind;
	uint32_t worker, n, epoch, code;
	uint64_t step;
	const struct hd_msg *msg;
	const struct hd_co_record *record;
	const struct hd_step_news *news;  /* NULL: the record of the step was lost with its senders */
	const char *name, *text;
};
struct hd_co_actions { const struct hd_co_action *at; size_t n; };

struct hd_coordinator;

HD_MUST_USE enum hd_err hd_coordinator_create(struct hd_coordinator **co, const struct hd_co_config *config,
	int64_t now_ns, struct hd_diag *diag);
void hd_coordinator_destroy(struct hd_coordinator *co);           /* takes NULL */
struct hd_co_actions hd_coordinator_step(struct hd_coordinator *co, const struct hd_co_event *event,
	int64_t now_ns);

/* For status and top. */
/*        id        text */
#define HD_CO_STATES(X)                                                                                          \
	X(FREE,      "free")                                                                                     \
	X(ADMITTED,  "admitted")          /* has an id, builds */                                                \
	X(STANDBY,   "standby")           /* could learn, is not wanted yet */                                   \
	X(SYNCING,   "learning")                                                                                 \
	X(READY,     "ready")             /* holds the state, follows */                                         \
	X(MEMBER,    "member")                                                                                   \
	X(BACKOFF,   "aside")             /* its transfer was too slow: rule 13 */                               \
	X(LEFT,      "left")              /* said that it goes, or was told to */                                \
	X(OUT,       "out")               /* dead to the job */

enum hd_co_worker_state {
#define X(id, text) HD_W_##id,
	HD_CO_STATES(X)
#undef X
	HD_W_NSTATES
};
struct hd_co_worker_status { uint32_t worker, ndevices, nvns; enum hd_co_worker_state state; uint64_t sealed;
	bool up; const char *host, *address; };
/* asked: local workers; target: all that are wanted. */
struct hd_co_status { uint32_t term, epoch, nmembers, asked, target; uint64_t committed; bool changing,
	holding, halting; };
void hd_coordinator_status(const struct hd_coordinator *co, struct hd_co_status *status);
uint32_t hd_coordinator_workers(const struct hd_coordinator *co, struct hd_co_worker_status *out,
	uint32_t cap);
const struct hd_view *hd_coordinator_view(const struct hd_coordinator *co);       /* NULL before the first */

const char *hd_co_worker_state_name(enum hd_co_worker_state state);

#endif
