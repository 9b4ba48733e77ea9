/* coordinator_int.h -- the inside of the coordinator; coordinator.h says what it promises.
 *
 * Between two events of a coordinator that is not broken these hold (check() in coordinator.c asserts
 * them):
 *
 * 1. No serial is beyond that of the record. A phase that waits for the store has a serial to wait for.
 * 2. A view's epoch is at most that of the record. The next view of a planned change has a later epoch than
 *    the view in force, and there is one.
 * 3. IDLE and holding imply a view.
 * 4. Only workers that sync, or are ready, have a source. Only local workers are being replaced. What is
 *    silent has a link. */
#ifndef HD_PROTOCOL_COORDINATOR_INT_H
#define HD_PROTOCOL_COORDINATOR_INT_H

#include "protocol/seal.h"
#include "protocol/coordinator.h"

enum { HD_CO_PAUSES = 9 };                /* doublings of a pause (rule 13) */

struct hd_co_worker_answer {              /* its STATUS in the present epoch */
	bool said, member, begun, halted, prev, table, updated;
	bool stops;                       /* STOPPED follows */
	enum { HD_CO_RUNS, HD_CO_STANDS, HD_CO_CANNOT } stopped;  /* its STOPPED */
	uint64_t at;
	/* in which it has begun the step, or has the sums of the one before */
	struct hd_view_shape shape;
	struct hd_passes passes;
	uint64_t *sum, *parm, *slot;      /* owned by the coordinator: [words] each */
};

/* Its digest report of step next - 1; next 0: none. */
struct hd_co_digests { uint64_t next, sum, state; uint32_t nheld; struct hd_held_run held[HD_SEAL_HELD]; };

struct hd_co_worker {
	enum hd_co_worker_state state;
	/* guest: the number under which it asked; HD_NOBODY: it has come back under its id */
	uint32_t worker, guest;
	bool up, silent, ready_to_sync, draining, mend;    /* mend: a link of it closed and is there again */
	bool being_replaced;                    /* another is to take its place */
	int64_t stays_ns;                 /* it is to leave, and since then cannot; 0: it can */
	int64_t goes_ns;                  /* it leaves, and then its machine is gone; 0: that is not known */
	int64_t rejoins_ns;               /* OUT: since then its process, of this machine, is to join as a new
					   * worker; 0: it is not */
	bool decided;                     /* into a view that it may have entered without our knowing */
	uint64_t id_serial;               /* its id is stored with that record */
	uint64_t nonce, memory, vn_ps;
	uint32_t ndevices, source;
	/* number of its state transfer, or the step on disk, as in SYNC */
	uint64_t transfer;
	uint32_t given_up;                /* transfers of the present members that were aborted as too slow */
	int64_t retry_at_ns;                 /* BACKOFF: until then */
	uint64_t sealed;
	uint64_t counted;                 /* what it did again is in the records of the steps before this */
	uint32_t spoke;                   /* the newest epoch in which it said something */
	int64_t heard_ns;                 /* its last message under its id */
	/* since then it may lack the last messages of a worker that left, without which it cannot enter that
	 * epoch; 0: it lacks none */
	int64_t lacks_ns;
	uint32_t lacks_epoch;
	int64_t lost_ns, suspect_ns, joined_ns;
	uint64_t suspected[HD_MAX_WORKERS / 64];      /* by these workers (bits of table indices), now */
	uint64_t closed[HD_MAX_WORKERS / 64];         /* by these workers, as closed */
	bool asked, prepared;
	uint64_t done, longest_ns;
	bool busy;
	int64_t done_ns;
	int64_t stands_said_ns;           /* it stands still: after how long that was said; 0: not */
	struct hd_co_digests reported[2];        /* of its last digest steps, by parity */
	/* a member received a mismatching digest of step suspect_digest - 1 from it; 0: none */
	uint64_t suspect_digest;
	struct hd_co_worker_answer answer;
	char address[HD_MSG_ADDR + 1], host[HD_MSG_KIND_NAME + 1], zone[HD_MSG_ZONE + 1];
};

/*        id          what is under way                                                          */
#define HD_CO_PHASES(X)                                                                           \
	X(START,      "no worker has the state: workers load it")                                    \
	X(IDLE,       "a view is in force")                                                       \
	X(NUMBERING,  "the epoch of a planned change is being stored")                            \
	X(PREPARING,  "PREPARE went out")                                                         \
	X(DECIDING,   "all are prepared; the decision is being stored")                           \
	X(DECIDED,    "DECIDE went out; not in force yet")                                        \
	X(FENCING,    "the epoch of a failure is being stored")                                   \
	X(ASKING,     "FENCE went out")                                                           \
	X(VIEWING,    "the new view has new members: they are being stored")                      \
	X(RESTORING,  "no member is left: the caller looks on disk")                              \
	X(ENDING,     "RELEASE went out")                                                         \
	X(OVER,       "EXIT")

enum hd_co_phase {
#define X(id, text) HD_CO_##id,
	HD_CO_PHASES(X)
#undef X
	HD_CO_NPHASES
};

struct hd_co_news { uint64_t step; struct hd_step_news news; };

struct hd_coordinator {
	struct hd_co_config config;
	struct hd_co_record record;
	uint64_t stored, phase_serial;    /* newest record stored; the one the phase waits for */
	bool store_failed;

	enum hd_co_phase phase;
	uint32_t nplaces;                 /* of worker[], taken so far; one that was taken stays so */
	uint32_t transfers;                 /* transfers started in this term */
	uint64_t *sums;                   /* owned: bitmaps of all answers */
	uint32_t words;

	bool has_view, holding;
	uint32_t fewer_tried;             /* with how many ranks fewer stages were asked for last; 0: not */
	/* rule 18: a member refused the view in force; the view before fewer stages came (epoch 0: none) */
	bool refused;
	struct hd_view fewer_of;
	uint32_t stays_epoch;             /* the view of which was said that a worker cannot leave it; or 0 */
	struct hd_view view, next;        /* in force; planned or to come */
	struct hd_seals seals;
	uint64_t committed;
	/* X_verified had equal digests at all its holders; so had one before it */
	uint64_t verified, verified_before;
	/* checkpoints after X_verified may be wrong: INVALIDATE is repeated when all possible writers
	 * are gone */
	bool invalidates;
	/* digests of step mismatched - 1 differ; unknown_sender: the same of a worker not in the table;
	 * 0: none */
	uint64_t mismatched, unknown_sender;
	struct hd_co_news news[HD_CO_NEWS];
	/* some members have sealed step split_step - 1, others not: since when; after how long it was said */
	uint64_t split_step;
	int64_t split_ns, split_said_ns;

	int64_t fence_ns, fence_for_ns;   /* asked when; how long an answer may take */
	int64_t prepare_ns, hold_ns, start_ns, refence_ns, end_ns, plan_ns;
	bool mend;                        /* a new epoch is due without a death */
	bool replan;

	/* the VIEW of the present epoch: repeated to workers that did not receive it */
	struct hd_msg_view open;
	struct hd_passes open_passes;
	uint64_t open_at[HD_MAX_MEMBERS];
	struct hd_have *have, *parm, *chain;      /* owned: [nbuckets] each, one block */
	uint32_t view_epoch;              /* of which it is; 0: none yet */
	/* coordinator_failover.c: the step that is decided on goes on in the view `rest`; how far ranks are,
	 * as their workers said in this epoch */
	bool goes_on;
	struct hd_view rest;
	uint32_t rank_next[HD_VIEW_RANKS], doubled[HD_VIEW_RANKS];
	uint8_t *arrived;                 /* owned: [arrived_cap] */
	struct hd_vrange *arrived_run;    /* owned: [arrived_cap] */
	uint32_t arrived_cap;
	/* stages: owned [nbuckets], members of `next` that hold each bucket before it; then what moves. Of
	 * sharded state: members of `view` that had the slots when it came in force, in held_step */
	uint64_t *held;
	uint64_t held_step;
	struct hd_holding of_view;        /* owned; of sharded state: see roots_may_be_gone() */
	uint64_t view_first;              /* the first step that the view in force begins */
	/* the view that is decided on, the view in force: it only ends a step that an earlier one began, and
	 * begins none, since its workers do so with lists of that earlier one */
	bool open_alone, view_alone;
	uint64_t moves, movers;           /* bytes; the members of `next` that lack them */

	bool halting, done;
	uint64_t done_step;               /* with `done`: X_done_step is saved */
	uint32_t halt_code;
	char halt_why[HD_MSG_TEXT + 1];
	uint32_t end_code;
	uint32_t spawned;                 /* asked for and not there yet */
	uint32_t noted_target;                    /* number of wanted workers in the last note */
	int64_t spawn_ns;

	int64_t now_ns;
	struct hd_arena out;
	/* written instead when memory is out, never carried out: `broken` is set */
	struct hd_co_action no_action;
	struct hd_co_action *act;
	size_t nact, act_cap;
	bool broken;
	/* [nplaces]; the others are not initialised: most runs have few workers, and a table is megabytes */
	struct hd_co_worker worker[HD_MAX_WORKERS];
};

struct hd_co_action *hd_co_act(struct hd_coordinator *co, enum hd_co_action_kind kind);
struct hd_msg *hd_co_msg(struct hd_coordinator *co, enum hd_msg_kind kind);
/* if its link is up */
void hd_co_send(struct hd_coordinator *co, const struct hd_co_worker *w, const struct hd_msg *msg);
/* to a number, of a worker or of one that asks for an id */
void hd_co_send_to(struct hd_coordinator *co, uint32_t worker, const struct hd_msg *msg);
__attribute__((format(printf, 4, 5)))
void hd_co_note(struct hd_coordinator *co, const char *name, uint32_t worker, const char *fmt, ...);
struct hd_co_worker *hd_co_find(struct hd_coordinator *co, uint32_t worker);
/* Of the table: one that no worker had, else that of the lowest that is gone; NULL: all are here. */
struct hd_co_worker *hd_co_place(struct hd_coordinator *co);
uint64_t hd_co_store(struct hd_coordinator *co);          /* the record as it is now; its serial */
bool hd_co_is_here(const struct hd_co_worker *w);         /* admitted, not out */
uint32_t hd_co_remotes(const struct hd_coordinator *co);  /* here, and to stay */
uint32_t hd_co_wanted(const struct hd_coordinator *co);   /* the requested ones and the remote ones */
/* Is there room for one more wanted worker beside so many? */
bool hd_co_has_room(const struct hd_coordinator *co, uint32_t worker, uint32_t nlocals, uint32_t nremotes);
void hd_co_release(struct hd_coordinator *co, const struct hd_co_worker *w, uint32_t code, const char *why);
/* RELEASE to all, then EXIT */
void hd_co_end(struct hd_coordinator *co, uint32_t code, const char *why);

/* coordinator_view.c */
void hd_co_fence(struct hd_coordinator *co, int64_t patience_ns);
/* FENCE or VIEW again, if it is due */
void hd_co_ask(struct hd_coordinator *co, struct hd_co_worker *w);
void hd_co_on_status(struct hd_coordinator *co, struct hd_co_worker *w, const struct hd_msg *msg);
void hd_co_on_stopped(struct hd_coordinator *co, struct hd_co_worker *w, const struct hd_msg *msg);
void hd_co_unasked(struct hd_coordinator *co, struct hd_co_worker *w);        /* it will not send STATUS */
void hd_co_view_tick(struct hd_coordinator *co);
void hd_co_view_stored(struct hd_coordinator *co);

/* places of a view's stages, for a message, in the arena of the call; NULL and 0 without stages */
const uint32_t *hd_co_places(struct hd_coordinator *co, const struct hd_view *view, uint32_t *n);

/* coordinator_failover.c */
/* FENCE went out: no STOPPED of its epoch is here. */
void hd_co_forget_stops(struct hd_coordinator *co);
/* Takes a STOPPED; false: it is none of this epoch. */
bool hd_co_take_stopped(struct hd_coordinator *co, struct hd_co_worker *w, const struct hd_msg *msg);
/* Every STATUS is here: is a STOPPED worth waiting for? */
bool hd_co_awaits_stops(const struct hd_coordinator *co);
/* May step `step` go on without those that are not among its members, `member` [n] in ascending order? Then
 * `rest`, the passes and what VIEW says of it are set. */
bool hd_co_find_rest(struct hd_coordinator *co, struct hd_co_worker *const *member, uint32_t n,
	uint64_t step);

/* coordinator_leave.c */
/* STOP to all, the first time; not stored */
void hd_co_halt(struct hd_coordinator *co, uint32_t code, const char *why);
void hd_co_on_halt(struct hd_coordinator *co, uint32_t code, const char *why);   /* the same, stored */
/* Its workers need one another to compute a step. */
static inline bool hd_co_computes_together(const struct hd_coordinator *co)
{
	return co->config.shape.nstages || co->config.lockstep;
}
/* ends, X_step being on disk, with the code of rule 14 */
void hd_co_end_halted(struct hd_coordinator *co, uint64_t step);
void hd_co_on_drain(struct hd_coordinator *co, uint32_t worker);
/* by this coordinator or an earlier one */
bool hd_co_is_going(const struct hd_coordinator *co, uint32_t worker);
void hd_co_forget_going(struct hd_coordinator *co, uint32_t worker);
void hd_co_stale(struct hd_coordinator *co, uint32_t worker);            /* it is in no epoch any more */
/* Its reports on others: it will not take them back, or says again those that are true. */
void hd_co_forget_reports(struct hd_coordinator *co, const struct hd_co_worker *w);
void hd_co_left(struct hd_coordinator *co, struct hd_co_worker *w);      /* it leaves, and no longer counts */
void hd_co_dead(struct hd_coordinator *co, struct hd_co_worker *w, const char *why);
/* A member, where the state is lost: its process drops what it has and joins as a new worker. Until it has,
 * or has ended, no other is spawned in its place; nor is it waited for longer than one that is spawned. */
void hd_co_rejoin(struct hd_coordinator *co, struct hd_co_worker *w);
/* the process of this local worker may have been another worker before; true: which was still here, or was to
 * join again: it is none of those that were spawned */
bool hd_co_rejoined(struct hd_coordinator *co, const struct hd_co_worker *now);
void hd_co_ended(struct hd_coordinator *co, struct hd_co_worker *w);     /* its process */

/* coordinator_plan.c: puts a word behind others, or " ..." for it and all after it: none is cut in two. */
void hd_co_list(char *out, size_t cap, size_t *len, const char *word);

/* coordinator_suspect.c */
void hd_co_on_suspect(struct hd_coordinator *co, const struct hd_co_worker *by,
	const struct hd_msg_suspect *msg);
/* A worker left, and the link between both closed. */
void hd_co_may_lack(struct hd_coordinator *co, struct hd_co_worker *w);
void hd_co_on_lost(struct hd_coordinator *co, uint32_t worker, enum hd_suspicion why);
void hd_co_watch(struct hd_coordinator *co);             /* at each tick */

/* coordinator_corrupt.c */
void hd_co_on_digests(struct hd_coordinator *co, struct hd_co_worker *w, const struct hd_msg_seal *seal);
void hd_co_suspect_digest(struct hd_coordinator *co, const struct hd_co_worker *by, uint32_t worker);
void hd_co_verify(struct hd_coordinator *co, uint64_t step);             /* it is committed */
/* what was saved after the newest verified state, if any of it may be wrong */
void hd_co_invalidate(struct hd_coordinator *co);
void hd_co_judge(struct hd_coordinator *co);

/* coordinator_plan.c */
/* starts what is wanted and possible: a transfer, a change, a start, an end */
void hd_co_plan(struct hd_coordinator *co);
/* PREPARE, DECIDE, SYNC, SEND_STATE repeated to one that came back */
void hd_co_change_again(struct hd_coordinator *co, struct hd_co_worker *w);
void hd_co_on_prepared(struct hd_coordinator *co, struct hd_co_worker *w, uint32_t epoch);
void hd_co_change_stored(struct hd_coordinator *co);
void hd_co_on_seal(struct hd_coordinator *co, struct hd_co_worker *w, const struct hd_msg *msg);
void hd_co_switched(struct hd_coordinator *co);           /* the decided view is in force */
void hd_co_void(struct hd_coordinator *co);               /* the planned change is no more */
void hd_co_commit(struct hd_coordinator *co);             /* every step that all members have sealed */
/* Ranks of the members it has; of stages in that shape, by what `held` says of them, and without those in
 * `going` (a mask), if the others are enough. False: fewer devices than `least` pipelines need; the map is
 * even then, and of one stage. */
bool hd_co_fill_map(struct hd_coordinator *co, struct hd_view *view, const struct hd_view_shape *shape,
	uint64_t going, uint32_t least);
/* rule 19 */
static inline uint32_t hd_co_least(const struct hd_coordinator *co)
{
	return co->config.least && co->config.shape.nstages ? co->config.least : 1;
}
/* coordinator_fewer.c: the same in a shape with fewer stages, by rule 17; a note says so. False: in none.
 * `running`: that of the members where this coordinator has no view yet; or NULL */
bool hd_co_fill_fewer(struct hd_coordinator *co, struct hd_view *next, const struct hd_view_shape *running);
/* A planned change where the shape that is wanted has too few devices: `other` members in the shape in force,
 * more stages where there are more devices than it has ranks, or fewer where a worker that leaves has waited
 * for one in its place. False: in none. */
bool hd_co_plan_fewer(struct hd_coordinator *co, struct hd_view *next, uint64_t going, bool other);
/* Has a worker of these members refused that shape? */
bool hd_co_is_refused(const struct hd_coordinator *co, const struct hd_view_shape *shape,
	const uint32_t *member, uint32_t n);
void hd_co_on_unfit(struct hd_coordinator *co, struct hd_co_worker *w, const struct hd_msg_unfit *msg);
/* While all hold: are `nranks` ranks, more than were there when it was tried last, worth another view? */
bool hd_co_may_have_fewer(const struct hd_coordinator *co, uint32_t nranks);
/* the view in force has new holders: a note, if bytes move */
void hd_co_note_moves(struct hd_coordinator *co);
/* Members that have no rank in the view in force, and why; nothing, where all have one. */
void hd_co_note_standing(struct hd_coordinator *co);
/* Which members without a rank before have one in place of some that are not there any more; "": none. */
struct hd_co_standing { char text[240]; };
struct hd_co_standing hd_co_standing_in(const struct hd_view *before, const struct hd_view *next);
/* hd_co_status.single */
int32_t hd_co_single(const struct hd_coordinator *co);
/* Do members hold parts of the state? As hd_state_is_partial() says of its members. */
static inline bool hd_co_is_partial(const struct hd_coordinator *co)
{
	return co->config.copies || (co->config.shape.nstages && !co->config.whole);
}

/* coordinator_transfer.c */
void hd_co_start_transfers(struct hd_coordinator *co);         /* to as many as are missing */
/* SYNC, SEND_STATE repeated to one that came back */
void hd_co_transfers_again(struct hd_coordinator *co, const struct hd_co_worker *w);
void hd_co_sync_lost(struct hd_coordinator *co, struct hd_co_worker *w);   /* its source is gone */
void hd_co_back_off(struct hd_coordinator *co, struct hd_co_worker *w);     /* its source gave up */
void hd_co_end_backoff(struct hd_coordinator *co);             /* all workers in BACKOFF */
/* its transfer ended; its source, if it has one, may stop */
void hd_co_transfer_ended(struct hd_coordinator *co, struct hd_co_worker *w);

#endif
