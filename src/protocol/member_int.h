/* member_int.h -- the inside of a member machine; member.h says what it promises.
 *
 * Between two events of a machine that is neither GONE nor broken these hold (check() in member.c asserts
 * them):
 *
 * 1. It has an id if and only if it is not OUTSIDE. It has a view, with itself as a member, if and only if
 *    it is MEMBER or HALTED; the view's epoch is at most its own.
 * 2. A next view that is open has a later epoch than its own. The step of the switch is known only of a
 *    next view that is open and decided.
 * 3. held implies synced; synced implies syncing: only a worker with the state answers FENCE.
 * 4. A step is begun only by a member, and is that of the exchange. Only in a begun step are there folds,
 *    or FINISH.
 * 5. It is ready if no BOUNDARY is open, or due. One is due only while a next view is open, and it is not
 *    held. `cut` is of a joiner. */
#ifndef HD_PROTOCOL_MEMBER_INT_H
#define HD_PROTOCOL_MEMBER_INT_H

#include "protocol/member.h"
#include "protocol/seal.h"

/* STOPPED: exit code of a worker that was asked to leave */
enum { HD_MEMBER_PEERS = HD_MAX_SEALERS, HD_MEMBER_TELLS = 64, HD_MEMBER_STOPPED = 75 };

/* slotted: it has its slots for the step before, in that epoch; reported: digests of step reported - 1
 * (0: none), mismatching if it is corrupt; is_joiner: this worker sends it the state */
struct hd_member_peer {
	uint32_t worker, slotted_epoch;
	uint64_t slotted, reported, reported_sum, reported_state;
	uint32_t nheld;
	struct hd_held_run held[HD_SEAL_HELD];        /* of the same report */
	bool up, met, is_joiner, corrupt;    /* met: it was up before */
	enum hd_suspicion suspicion;
	char address[HD_MSG_ADDR + 1];
};
/* Of the seal all but `held`. */
struct hd_member_news { uint64_t step; struct hd_msg_seal seal; };
/* What it said of step next - 1 of what it holds; next 0: nothing. */
struct hd_member_held { uint64_t next; uint32_t n; struct hd_held_run at[HD_SEAL_HELD]; };

/* A view that is prepared or decided, and not in force. */
struct hd_member_next {
	/* prepared: the runtime is; said: PREPARED went out, all links being up */
	bool open, prepared, said, decided;
	struct hd_view view;
	struct hd_view old;               /* the view before; its epoch is 0 */
};

/* Own passes of step `at`. */
struct hd_member_own {
	struct hd_passes passes;          /* of this worker alone */
	bool computed[HD_MAX_PASSES], sent[HD_MAX_PASSES];     /* sent: its table entries, in this epoch */
	uint64_t *final;                  /* owned: [HD_MAX_PASSES][words] buckets whose roots are final */
	uint32_t words;
};

/* Rule 12: how the ranks are in step `at`. */
struct hd_member_stop {
	enum { HD_RANKS_RUN, HD_RANKS_STOP, HD_RANKS_STAND, HD_RANKS_CANNOT } state;
	bool went_on;                     /* once is all */
	uint32_t epoch;                   /* of the view in which the step was begun */
	uint32_t nranks, rank[HD_VIEW_RANKS], next[HD_VIEW_RANKS];
	struct hd_vrange *arrived;        /* owned: [cap] runs */
	uint32_t narrived, cap;
};

struct hd_member {
	struct hd_member_config config;
	enum hd_member_state state;
	uint32_t worker, term, epoch;

	/* its link; silent: it may be gone, but may still receive */
	bool co_up, co_silent;
	bool awake;                       /* the clock was seen */
	int64_t co_lost_ns, call_ns, take_over_ns, progress_ns;
	struct hd_member_peer peer[HD_MEMBER_PEERS];
	uint32_t npeers;
	bool peer_lost;                   /* a member was lost since the coordinator was */

	/* syncing: a source's stream, or the disk's state, is expected or here */
	bool warmed_up, syncing, synced;
	bool cut;                         /* not any more, but X_at is, and was announced */
	struct hd_msg_sync from;
	uint64_t given_up;                /* the transfer that its source aborted; 0: none */

	bool has_view, held, status_said;
	bool hold;                        /* no step is begun in this view */
	bool fewer;                       /* it has fewer stages than are wanted: rule 14 */
	int64_t links_ns;                 /* until then it waits for links of its first view; 0: not */
	struct hd_view view;
	struct hd_member_next next;
	struct hd_seals seals;
	uint64_t switch_step;             /* of next, which is open then; HD_NO_STEP: not known */
	/* digests of step diverged - 1 differ: it is run, none after it; 0: none differ */
	uint64_t diverged;

	uint64_t at;                      /* first step not sealed */
	bool begun, finishing, ready;
	/* rule 13: of the step that it began last by itself: in which epoch; did that begin the next one? */
	/* ahead: the step before was of the same */
	struct hd_member_window { uint32_t epoch; bool goes_on, ahead; } window;
	bool vain;                        /* what it began was in vain: it holds until the epoch ends */
	uint32_t asked;                   /* BOUNDARY(at) under way */
	bool asked_final;                 /* the last of them was final */
	bool was_writer;                  /* at the last BOUNDARY */
	uint64_t halt_step;               /* HD_NO_STEP: none */
	uint64_t reached;                 /* READY said here that it must not be run; HD_NO_STEP: of none */
	bool stopping, done;              /* STOP was asked; DONE was said */
	uint32_t stop_code, done_code;
	char done_why[HD_MSG_TEXT + 1];
	bool boundary_due;                /* BOUNDARY(at) waits for all SEALs of the step before: rule 2 */
	bool joined_step;                 /* sealed s0 as a joiner */
	uint32_t folding;                 /* folds under way */
	bool updating, updated, fetched;  /* sharded state, and whole tensors by stages, of step `at` */
	/* FETCH is under way of what its stages read; the rest follows */
	bool lacks;
	bool sums_due, norms_due;         /* sums, sums of squares wait for the boundary to be done */
	uint64_t *slots;                  /* owned: [nbuckets] members of the view that hold those of X_at */
	uint64_t *mine;                   /* owned: [words] buckets whose slots are here */
	struct hd_holding before;         /* owned: of a view that a planned change ends */
	struct hd_view_shape x_shape;     /* in which the step of the exchange was begun */
	struct hd_member_own own;
	struct hd_member_stop stop;
	struct hd_exchange x;

	bool draining;
	uint32_t drain_code;
	int64_t goes_ns;                  /* then its machine does; 0: that is not known */
	char drain_why[HD_MSG_TEXT + 1];

	struct hd_member_news news[HD_MEMBER_NEWS];
	struct hd_member_held said_held[2];       /* of its last digest steps, by parity */
	struct hd_member_news heard[HD_MEMBER_NEWS];      /* of a joiner: of the members' seals */

	int64_t now_ns;
	struct hd_arena out;              /* of the actions of one call */
	/* written when memory is out, never carried out: the machine is broken then */
	struct hd_member_action no_action;
	struct hd_msg no_msg;
	struct hd_member_action *act;
	size_t nact, act_cap;
	bool broken;                      /* no memory, or a view that cannot be: only EXIT comes */
	uint32_t broken_code;
	char broken_why[HD_MSG_TEXT + 1];
};

struct hd_member_action *hd_member_act(struct hd_member *m, enum hd_member_action_kind kind);
/* A message of its term and epoch, in the arena of the call. */
struct hd_msg *hd_member_msg(struct hd_member *m, enum hd_msg_kind kind);
void hd_member_send(struct hd_member *m, uint32_t to, const struct hd_msg *msg);
/* to the coordinator, if there is one */
void hd_member_say(struct hd_member *m, const struct hd_msg *msg);
/* to all members, those decided included */
void hd_member_send_all(struct hd_member *m, const struct hd_msg *msg);
/* A SEAL, with what was said of that step of what is held. */
struct hd_msg *hd_member_seal_msg(struct hd_member *m, const struct hd_msg_seal *seal);
void hd_member_break(struct hd_member *m, uint32_t code, const char *why);
void hd_member_exit(struct hd_member *m, uint32_t code, const char *why);
/* the members are in it; for a worker that is or will be none */
void hd_member_entered(struct hd_member *m, uint32_t epoch);
void hd_member_sync_lost(struct hd_member *m);              /* says READY_TO_SYNC */
void hd_member_fenced(struct hd_member *m, const char *why);
bool hd_member_is_in(const struct hd_member *m, uint32_t worker);        /* of the view in force */
/* all that fetch slots in this step have them */
bool hd_member_all_slotted(const struct hd_member *m);
/* Do members hold parts of the state? */
static inline bool hd_member_is_partial(const struct hd_member *m)
{
	return hd_state_is_partial(m->config.buckets, m->config.copies);
}

/* member_peers.c; NULL: it is not known, or there is no room for it */
struct hd_member_peer *hd_member_peer_of(struct hd_member *m, uint32_t worker);
struct hd_member_peer *hd_member_peer_add(struct hd_member *m, uint32_t worker);
void hd_member_connect(struct hd_member *m, const struct hd_member_peer *peer);
void hd_member_on_peer(struct hd_member *m, const struct hd_msg_peer *msg);
void hd_member_on_up(struct hd_member *m, uint32_t worker);
void hd_member_on_lost(struct hd_member *m, uint32_t worker, enum hd_suspicion why);
bool hd_member_is_up(const struct hd_member *m, uint32_t worker);
/* to the coordinator */
void hd_member_suspect(struct hd_member *m, uint32_t worker, enum hd_suspicion why);
/* a view came in force: members that are not connected are suspected */
void hd_member_watch(struct hd_member *m);
/* Rule 11: its links are up; one of them was and is not any more; it waits no longer. */
bool hd_member_all_up(const struct hd_member *m);
bool hd_member_lost_any(const struct hd_member *m);
void hd_member_end_wait(struct hd_member *m);
void hd_member_say_synced(struct hd_member *m);
/* its digests, to compare with those here */
void hd_member_on_digests(struct hd_member *m, uint32_t from, const struct hd_msg_seal *seal);
void hd_member_compare(struct hd_member *m);
void hd_member_diverged(struct hd_member *m, uint64_t next);      /* digests of step next - 1 differ */
void hd_member_say_ready_to_sync(struct hd_member *m);
void hd_member_leave(struct hd_member *m, bool gone);                /* says LEAVE */
/* it has no part in the next view, and is done with the present one */
void hd_member_left(struct hd_member *m);
/* When this one would take over, were the coordinator lost now. */
int64_t hd_member_take_over_at(const struct hd_member *m);

/* member_step.c */
/* begin, halt, finish: all that has become possible */
void hd_member_progress(struct hd_member *m);
void hd_member_boundary(struct hd_member *m);             /* BOUNDARY(at) */
void hd_member_cancel(struct hd_member *m);               /* the open step: what there is of it is void */
void hd_member_keep_own(struct hd_member *m);             /* slots of other chains count no more */
/* after AGAIN: sends again all that is here */
void hd_member_offer_all(struct hd_member *m);
void hd_member_compute(struct hd_member *m, uint32_t first_pass);
void hd_member_on_seal(struct hd_member *m, uint32_t from, const struct hd_msg *msg);
void hd_member_seal(struct hd_member *m, const struct hd_member_event *event);
void hd_member_resay_seals(struct hd_member *m);
void hd_member_say_vain(struct hd_member *m);        /* a new epoch is due; nothing, where none is */
void hd_member_stepwork(struct hd_member *m, const struct hd_member_event *event);       /* FINAL .. FOLDED */
void hd_member_done(struct hd_member *m);
/* Parts of the state are changing: a fence waits for it. */
static inline bool hd_member_in_update(const struct hd_member *m)
{
	return (m->updating && !m->updated) || (m->finishing && hd_member_is_partial(m));
}
bool hd_member_whole(const struct hd_member *m);          /* all of X_at is here */

/* member_end.c */
void hd_member_alone(struct hd_member *m);                /* at each tick without a coordinator */
/* says ENDED, and leaves with that exit code */
void hd_member_ended(struct hd_member *m, uint32_t code, const char *why);
void hd_member_on_ended(struct hd_member *m, const struct hd_msg_ended *msg);

/* member_failover.c */
void hd_member_runs(struct hd_member *m);                 /* a step begins, or is dropped */
bool hd_member_may_stop(const struct hd_member *m);
/* after its STATUS: STOP, or STOPPED once more */
void hd_member_stop(struct hd_member *m);
void hd_member_stopped(struct hd_member *m, const struct hd_member_event *event);
/* The step goes on as that VIEW says; false: it cannot be that of this member. */
bool hd_member_go_on(struct hd_member *m, const struct hd_msg_view *v);

/* member_view.c */
/* What the cuts of a shape say of the buckets; NULL: one stage, or no shape of this job. */
const struct hd_stage_buckets *hd_member_buckets(const struct hd_member *m,
	const struct hd_view_shape *shape);
/* The exchange is to be of the view in force: before it begins. */
void hd_member_shape_exchange(struct hd_member *m);
void hd_member_on_prepare(struct hd_member *m, const struct hd_msg *msg);
void hd_member_on_decide(struct hd_member *m, const struct hd_msg *msg);
void hd_member_on_fence(struct hd_member *m, const struct hd_msg *msg);
void hd_member_on_view(struct hd_member *m, const struct hd_msg *msg);
void hd_member_say_prepared(struct hd_member *m);         /* when it is due */
void hd_member_prepared(struct hd_member *m, uint32_t epoch);
void hd_member_unfit(struct hd_member *m, const struct hd_member_event *event);         /* rule 14 */
/* Without its ranks no sum of a step is anywhere, so that all begin it again. */
static inline bool hd_member_may_refuse(const struct hd_member *m)
{
	return m->fewer && hd_view_stages(&m->view, m->worker);
}
void hd_member_synced(struct hd_member *m, uint64_t step);
void hd_member_status(struct hd_member *m);               /* when no fold is under way */
bool hd_member_switch(struct hd_member *m);               /* at its gate: adopt or leave; false: not yet */

#endif
