/* coordinator.h -- the machine that decides which workers take part in one job: its views.
 *
 * It is not in the path of a step: members go on without it. It admits workers, picks sources for state
 * transfer, plans changes, judges losses, counts commits, and writes the one record of its decisions.
 *
 * 1. Only what is stored is decided. Every epoch number and every id is in a stored record before it is
 *    sent, and is never used again. One process at a time has the store. Its term is the stored term plus
 *    1; workers ignore earlier terms.
 * 2. One planned change at a time: PREPARE to the old and the new view; all PREPARED; DECIDE; in force with
 *    the first SEAL of its epoch. Requests that come meanwhile are merged into the newest.
 *    A member to which the link of one that left closes may lack its last message: it enters within T/2, or
 *    rule 3 follows.
 * 3. A failure pre-empts it: FENCE under a new epoch to all that may have part in the open step; all
 *    STATUS; VIEW. A worker that is silent for T counts as dead too, and FENCE is repeated with a higher
 *    epoch. The same exchange serves the start (all hold X_step), a takeover, and a link that closed and
 *    came back (messages lost on it are repeated).
 * 4. A planned change that is open when a failure comes is void; its joiners keep syncing.
 * 5. One setting, T. A worker whose link closed is dead at once if a peer lost it too or its process ended,
 *    else after T. The same if it is silent for T. If peers suspect a worker that is heard here: after T
 *    one is expelled, until none is suspected for so long: the one with most broken links, whichever end
 *    reported them (a worker that hears none reports all; those that are not heard here either do not
 *    count), then with most reports on it; ties: the higher id. Reports on a worker that is suspected for
 *    less than T/2 do not count, nor do those of a worker that is not heard for T/2: it may be gone, and
 *    what it reported all that is left. Reports are of members, and are said again to a coordinator that is
 *    called again. Hung: no progress for max(2 T, 8 x its longest instruction). A member of which nothing is
 *    heard, or that makes no progress, is named after 5 s if it is not given up before.
 * 6. Fewer than `min` members: the open step is finished, then all hold. After min_wait: RELEASE with exit
 *    code 10, after a checkpoint.
 * 7. No member is left: RESTORE asks the caller for the newest step on disk, and all workers present start
 *    from it.
 * 8. Remote workers (without access to the run's folder; ids from HD_REMOTE_WORKER on) come on top of the
 *    number that was asked for. The record has that number, of local workers; wanted are those and the
 *    remote ones present, up to max. Of too many local workers the youngest leave, whatever remote ones
 *    there are; one seat is kept from remote ones while no local worker has it. Remote workers sync from
 *    members only. So they never begin a run, and a view of remote workers alone holds until a worker is
 *    there that can save. The open step waits too if the checkpoint writer might have halted before it (no
 *    member holds the table).
 * 9. Sharded state: of the holders of a bucket's slots fewer than `copies` leave in one planned change, the
 *    others in later ones. If no holder is left, the job restarts from disk, as in rule 7: what the members
 *    hold is dead to it, and they join again, each in its process, which is not ended. None is spawned in
 *    the place of one that is about to. A step is begun again by all where new parameters of a bucket may
 *    have come over partial sums of it: none of those that were to update it is left, no sum of it is, and
 *    others than they have its slots.
 * 10. A worker that is being replaced does not count when workers are requested and synced. It stays a
 *     member until as many others as are wanted are ready. Not stored: after a takeover the substitute is a
 *     standby, and the request comes again.
 * 11. A step is committed when all members of the view that ran it have sealed it. COMMIT comes once a
 *     step, in order. Where some have sealed it for 5 s and others not, these are named, and again after
 *     twice as long.
 * 12. Digest mismatch. Digests of a step that differ (in seals, or reported by a member: SUSPECT, corrupt)
 *     mean that its sums, and all that followed, may be wrong. None of it is committed. When all members
 *     have sealed the step, each worker outside the strict majority of the reports is expelled with exit
 *     code 5. The others restart from disk, as in rule 7, after INVALIDATE: from the newest step whose
 *     state was the same at all (*verified*), or an earlier one. Without a majority the job ends with exit
 *     code 5. So it does at the third mismatch without a verified state newer than all mismatched ones,
 *     across coordinators. A resumed run counts from zero: that is the caller's. INVALIDATE is also sent
 *     when no worker is left, or the job ends, before a worker could be expelled. Of state by stages
 *     digests are of what each worker holds (held.h): of two that differ in some buckets the reports on
 *     just these count, so where a stage has two holders, as with a shadow, there is no majority.
 * 13. A joiner whose source gave up (catchup.h) is in BACKOFF for 2 T, twice as long each further time, at
 *     most 1,024 T. A new view (its steps may be slower) or a new number of workers ends all backoffs.
 *     Others are synced meanwhile. Not stored.
 * 14. HALT and DRAIN are in the record. A stop that only the checkpoint writer still knows of counts as
 *     well. A halted job ends with the code that was asked for, across coordinators; with 0 only if
 *     X_nsteps was saved, or the writer reached its target and no stop was asked for. Once the job ends
 *     all are released: whoever closes its links then, or ends, is not lost.
 *
 * 15. Stages (config.shape). Each view has the shape, with as many pipelines as its devices make, at most
 *     config.pipes; a rank is as many devices of one member as the shape says; ranks are where the fewest
 *     bytes of state move (ranks.h: in the order of members where none do), of workers in several zones where
 *     the loss of one takes least (zones.h), and what is left over has no
 *     rank. What moves is a NOTE, with its view. With fewer
 *     devices than one pipeline needs no view of the shape is made: a start waits, a planned change waits,
 *     and after a loss all hold (but for rule 17), in a view without shape, and a NOTE says for what. An open
 *     step is finished if every sum and the table have a holder: by the proof of sum (exchange.h) that is so
 *     once any member has finished it. Else all drop it and begin it again under the new view. State is
 *     covered if every bucket has a holder; if not, rule 9 holds. In a planned change one holder of each
 *     stage stays, without a rank if the others are enough: then its stage is another's, and it leaves with
 *     the next change.
 *
 *     Another shape that is wanted (RESHAPE) comes by a planned change. A step that is finished after a loss
 *     is so in the shape in which it was begun, as members say; one that is begun has the shape that is
 *     wanted, or while that has not the devices, the one in force, which a coordinator that took over hears
 *     from its members. A view that finishes a step is of this
 *     step alone, on hold after it: what its workers send one another is in lists of the view before
 *     (ADR 141). Once the step is committed the next FENCE makes another. In lockstep, too.
 *
 *     A step that would be begun again goes on without the workers that were lost in it (ADR 132) if
 *     config.goes_on is there and says so, all others stand in it (without a rank, too), no sum of it is
 *     anywhere, and the heir of each lost rank holds its stage. That view is of the rest of this step, with
 *     these ranks doubled
 *     (view.h, rule 12), and on hold as above. A STOPPED is waited for no longer than a STATUS.
 *
 * 16. Lockstep (config.lockstep; engine/meeting.h): no pass ends unless all members of the step compute, so
 *     none is computed beside others that are there. An open step is finished if every sum and the table have
 *     a holder. A member that has sealed it holds all of them (of sharded state, its line does: exchange.h,
 *     rule 7); so else no member that is left is beyond the step, and all drop it and begin it again under
 *     the new view.
 *
 * 17. Fewer stages (config.fewer; ADR 158, 189), down to one. Where stages have shadows, and after a loss
 *     there are at least `min` members and too few devices for the shape that is wanted and for that in
 *     force, they do not wait: the step begins in a view whose shape has as many ranks as there are
 *     devices, if config.fewer knows one. While all hold that is tried again whenever more devices have
 *     come. The shape that is wanted comes back by a planned change, once there are devices for it; with
 *     more devices than there are ranks, and too few for that, there are as many stages as they make. A
 *     worker that leaves, and for which none came in 6 T, nor is one that came ready in 30 T, leaves by a
 *     planned change to fewer stages; in half of the time that its machine has left, where that is less. It
 *     may have had a whole pipeline, and the others stood by. Where there is none a NOTE says so once a view.
 *
 * 18. Refusals (UNFIT; ADR 166). A member that has not the memory for its part of a view with fewer stages,
 *     or of a planned change of stages, says so and stays as it was. The change is void; after a loss another
 *     FENCE follows, and another shape, or all hold. The refusal is in the record: a shape is in no view of a
 *     worker that refused it, of whichever coordinator, as long as that worker is here. Where the shape that
 *     is wanted was refused, members come and go in the one in force; and where after a loss nothing else
 *     is left, it is the one all the same, and whoever cannot take it ends.
 *
 * 19. Least pipelines (config.least; ADR 161). A step begins in a view of at least so many, so that each
 *     stage has as many holders. With devices for fewer the stages of rule 17 are as many as so many
 *     pipelines have ranks, with shadows or without, or all hold; an open step is finished by those that are
 *     left (rule 15). A planned change that would leave fewer waits for devices, or has fewer stages; where
 *     it can have neither a NOTE says so once a view.
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
	/* of one job at a time: members, joiners, standbys, those leaving */
	HD_MAX_WORKERS = 128,
	HD_CO_NEWS = 512,                 /* steps whose record waits for their commit */
	HD_CO_UNFIT = 64,                 /* refusals that are remembered */
	/* a joiner syncs, a change is prepared, decided, in force: each at a boundary at the latest */
	HD_CO_STEPS_TO_JOIN = 4,
};

/* What a planner may know of a member. */
struct hd_member_info { uint32_t worker, ndevices; uint64_t vn_ps, memory; const char *host; };
/* Fills view->rank and nranks (member and nmembers are set). false: keep to an even map. Pure. */
typedef bool hd_plan_view(void *self, struct hd_view *view, const struct hd_member_info *info, uint32_t n);

/* Of a shape without copies: share[k] virtual nodes of each of so many pipelines, at least one, which add up
 * to V. False: as even as can be. Pure. */
typedef bool hd_shape_shares(void *self, const struct hd_view_shape *shape, uint32_t npipes, uint32_t *share);

/* May a step of the view, begun in it, go on without its lost ranks? next: [ranks] the next instruction of
 * each; arrived: [stages * virtual nodes]; lost: [ranks]: as of hd_dist_rest() in engine/dist.h. Pure. */
typedef bool hd_goes_on(void *self, const struct hd_view *view, const uint32_t *next, const uint8_t *arrived,
	const bool *lost);

/* What fewer devices ask after a loss. `shape`: that of the view before, or the job's; lost: bits of its
 * stages that no member is left to run; width: ranks that there are, fewer than its own; n: members;
 * refused: keys (hd_view_shape_key()) of shapes that one of them has not the memory for. */
struct hd_fewer_ask {
	const struct hd_view_shape *shape;
	uint64_t lost;
	uint32_t width, n, nrefused;
	const uint64_t *refused;
};
/* With which stages do they go on? False: with none. Equal arguments, equal answers, but for memory. */
typedef bool hd_fewer_stages(void *self, const struct hd_fewer_ask *ask, struct hd_view_shape *fewer);

/* Rule 18: a worker, and the key of the shape that it refused. */
struct hd_co_unfit { uint32_t worker; uint64_t shape; };

/* All that outlives a coordinator. One record; the newest stored counts. */
struct hd_co_record {
	uint64_t serial;                  /* rises with every store */
	uint32_t term, epoch, next_worker;        /* greatest used; next_worker: the next id */
	uint32_t target, nmembers;        /* target: local workers */
	/* possible holders of the state: of the newest view, and of one decided but not in force */
	uint32_t member[HD_MAX_WORKERS];
	bool started;                     /* there was a view: the members hold the state */
	bool halting;
	/* with halting: exit code of the workers and the job, and why */
	uint32_t halt_code;
	char halt_why[HD_MSG_TEXT + 1];
	uint32_t ngoing, going[HD_MAX_WORKERS];   /* asked to leave by DRAIN, still here */
	/* rule 12: mismatches in a row without a newer verified state */
	uint32_t mismatches;
	uint64_t mismatched;                /* the newest mismatched step ever; 0: none, or step 0 */
	uint32_t nunfit;
	struct hd_co_unfit unfit[HD_CO_UNFIT];    /* the oldest first; of more than fit the newest */
};

struct hd_co_config {
	struct hd_hash job, kernels;
	/* copies: of sharded state, 0: replicated; min <= target <= max <= HD_MAX_MEMBERS */
	uint32_t nvns, nbuckets, copies, min, max, target;
	uint32_t servers;                 /* with copies: see plan/holding.h */
	const uint64_t *bytes;            /* borrowed: [nbuckets] as in plan/holding.h, or NULL */
	/* of a model in stages: its shape, and pipelines at most; else 0, 0 */
	struct hd_view_shape shape;
	uint32_t pipes;
	uint32_t least;                   /* pipelines, rule 19; 0: 1 */
	/* what the buckets of a shape are; borrowed: [nbuckets] bytes of the state of each. NULL: ranks are
	 * members in order */
	hd_shape_buckets *of_shape;
	void *of_shape_self;
	hd_shape_shares *shares;          /* with of_shape's self; NULL: even */
	const uint64_t *bucket_bytes;
	bool whole;                       /* of stages: every member holds all state (plan/buckets.h) */
	bool lockstep;                    /* rule 16 */
	bool varies;                      /* a step that is run again may have other bits (rule 12) */
	/* of stages with shadows, and with of_shape: rule 15; NULL: no step goes on after a loss */
	hd_goes_on *goes_on;
	void *goes_on_self;
	hd_fewer_stages *fewer;           /* rule 17; NULL: all hold */
	void *fewer_self;
	int64_t detect_ns, min_wait_ns;
	/* of the job: after them it is done, whatever stop was asked for; 0: not known */
	uint64_t nsteps;
	uint64_t step;                    /* first step, if nothing is stored: that of the checkpoint, or 0 */
	/* of a run that is taken over: the newest X_verified known, or 0 */
	uint64_t verified;
	/* likewise: the first step that the coordinator before did not write down, where that is below
	 * `step`, which a checkpoint is of; members say what they keep of these steps; 0: `step` */
	uint64_t recorded;
	/* as it was found; all 0: a new run. The caller holds the store's lock */
	struct hd_co_record record;
	hd_plan_view *plan;               /* NULL: an even map */
	void *plan_self;
};

/*        id        payload           what happened */
#define HD_CO_EVENTS(X) \
	X(MESSAGE,   "worker, msg, remote", "a message came; JOIN of a worker without id from its guest number") \
	X(LOST,      "worker, why",         "its link closed (HD_CLOSED), is silent for T (HD_SILENT), is heard again; its process ended (HD_EXITED)") \
	X(SCALE,     "n",                   "that many local workers are wanted") \
	X(DRAIN,     "worker, code",        "that worker is to leave the job") \
	X(REPLACE,   "worker, ok",          "another local worker takes its place, then it leaves; not ok: it stays") \
	X(HALT,      "code, text",          "stop at the next boundary; workers leave with this code") \
	X(REPLAN,    "",                    "ask the planner again") \
	X(RESHAPE,   "shape, n",            "another shape is wanted, at most n pipelines; the caller stored it") \
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
	uint32_t worker, n, code, least;
	uint64_t step, serial;
	enum hd_suspicion why;
	const struct hd_msg *msg;
	const struct hd_view_shape *shape;
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
	X(SPENT,      "worker, epoch, msg", "a member says what its instructions have taken: of the plan of that view") \
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
#define HD_CO_STATES(X) \
	X(FREE,      "free")                                                                                     \
	X(ADMITTED,  "admitted")          /* has an id, builds */                                                \
	X(STANDBY,   "standby")           /* could sync, is not wanted yet */                                   \
	X(SYNCING,   "learning")                                                                                 \
	X(READY,     "ready")             /* holds the state, follows */                                         \
	X(MEMBER,    "member")                                                                                   \
	X(BACKOFF,   "aside")             /* its transfer was too slow: rule 13 */                               \
	X(LEFT,      "left")              /* said that it leaves, or was released */                                \
	X(OUT,       "out")               /* dead to the job */

enum hd_co_worker_state {
#define X(id, text) HD_W_##id,
	HD_CO_STATES(X)
#undef X
	HD_W_NSTATES
};
struct hd_co_worker_status { uint32_t worker, ndevices, nvns; enum hd_co_worker_state state; uint64_t sealed;
	bool up; const char *host, *address, *zone; };
/* asked: local workers; target: all that are wanted; single: with shadows or followers, the stages of which
 * one member alone holds some part: in the first step of a view, until what moves is there, where one has a
 * pipeline to itself, and where fewer follow than there are stages; -1: not known, as before the first view
 * and from a loss to the view after it. */
struct hd_co_status { uint32_t term, epoch, nmembers, asked, target; int32_t single; uint64_t committed;
	bool changing, holding, halting; };
void hd_coordinator_status(const struct hd_coordinator *co, struct hd_co_status *status);
uint32_t hd_coordinator_workers(const struct hd_coordinator *co, struct hd_co_worker_status *out,
	uint32_t cap);
const struct hd_view *hd_coordinator_view(const struct hd_coordinator *co);       /* NULL before the first */

const char *hd_co_worker_state_name(enum hd_co_worker_state state);

#endif
