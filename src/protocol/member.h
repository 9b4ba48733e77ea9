/* member.h -- one worker's part in the protocol of a job: when it computes, sends, seals and updates. A pure
 * state machine.
 *
 * Events in, actions out. The runtime carries out the actions (wire, devices, disk) and reports events; the
 * simulation does the same with integers. A job of one worker runs through the same machine.
 *
 * Words: X_s is the state before step s (parameters, optimizer slots, counters). A *root* is a partial sum
 * of a bucket, a *sum* its total over all workers (view.h). The *table* has the metrics of every virtual
 * node (exchange.h). The *boundary* of step s lies between its update and step s + 1.
 *
 *	outside --JOIN, ADMIT--> admitted --WARM_UP, SYNC--> syncing --FENCE/VIEW or DECIDE+switch--> member
 *	member --a switch to a view without it--> out
 *	any state --STALE, or a VIEW without it--> fenced: it joins again under a new id
 *
 * A step s of a member, in actions and events (tables below):
 *
 *	BEGIN, COMPUTE pass 0
 *	a bucket of the pass is FINAL     -> ROOTS to its owner
 *	the pass is COMPUTED              -> LEAVES (its entries of the table) to all
 *	an owner has all roots of a bucket-> FOLD, then PUBLISH the sum to all
 *	all sums and the table are here   -> FINISH (the update)
 *	UPDATED                           -> SEAL to all, BOUNDARY
 *	READY, and the gate is open       -> the next step
 *
 * 1. The gate. BEGIN(s + 1) waits for SEAL(s) of every member that ran s; in the first step of a new view
 *    also for those of its new members. Until then the sums and the table of s stay in memory.
 * 2. The switch. A decided view takes force right after s0, the first step whose SEALs all say that their
 *    senders know of the decision, which they say of a step that the view before it began. Whether a step is
 *    s0 is known at the gate behind it: so a member that said so in its SEAL gets BOUNDARY, which is of the
 *    coming view's writer, only once it has all SEALs of that step. A joiner that announced X_{s0 + 1} keeps
 *    it even if its source leaves. Before that SEAL it hands on the records of earlier steps that it heard: a
 *    member's own may come to the coordinator later. If the joiner does not become a member after all, it
 *    says READY_TO_SYNC.
 * 3. FENCE ends an epoch: the member acts EPOCH and begins no step until the VIEW comes. Computation that
 *    runs goes on, and passes that were begun count in the new epoch, since work is named by (step, worker,
 *    pass) and not by epoch. An event of an earlier epoch (its field `epoch`) changes nothing.
 * 4. Table entries are sent only after READY of the step's boundary. So a checkpoint writer that halts at
 *    the boundary has not contributed to the step.
 * 5. The checkpoint writer is the member with the lowest id. Remote workers have higher ids and are never
 *    the writer. A member that becomes the writer in a VIEW gets BOUNDARY again before it contributes.
 * 6. Without a coordinator (it is gone, or was never met) a member goes on training and acts CALL each
 *    T/4. If it may take over, it acts TAKE_OVER after 2 T, plus T/8 for each member of a lower id, then each
 *    2 T; workers that are no members wait longer than all members. If a member is lost meanwhile, all hold:
 *    they begin no step; so they do in a view that says so. After 30 T the lowest id gets a final BOUNDARY,
 *    and all EXIT. If TAKE_OVER finds that the run is over (ENDED; ADR 167), it says so to all that it is
 *    connected with, and they EXIT, too, unless they have a coordinator.
 * 7. Sharded state (config.copies above 0): the optimizer slots of a bucket lie at the members of its
 *    *chain* only (exchange.h). The step then ends as follows.
 *	an owner has folded a bucket      -> the sum along its line
 *	the last of the line has the sum,
 *	FOLDED or SQUARED                 -> NORM (sums of squares) to all outside the line
 *	all NORMs, the table and the sums
 *	of the own chains are here        -> UPDATE (the own slots, and new parameters of these buckets)
 *	UPDATED_OWN                       -> PARM: the last of each chain sends the new parameters to all
 *	all parameters are here           -> FINISH
 *    In the first step of a view, a member that lacks slots of its chains acts FETCH. None gets UPDATE
 *    before all have said SLOTTED: until then every holder has the slots of X_s. Sums and NORM wait as
 *    table entries do (rule 4), so slots do not change while a checkpoint writer works at a boundary.
 *    With stages (config.buckets) a member holds the parameters and slots of its own stages, and those of
 *    the stages whose shadow it has (view.h, rule 10). FETCH then brings both: first what its own stages
 *    read, for which COMPUTE waits, then the rest while it computes. The passes of a worker, one a stage,
 *    run together by the lists of the view's plan: COMPUTE comes for each, the first starts the lists. Where
 *    no slots lie apart the step ends with FINISH alone: all norms, the own sums and the table are here, and
 *    all have said SLOTTED. FINISH changes the own stages. A state that came from disk holds all stages
 *    until the first FINISH. Of an optimizer that changes whole tensors, where a member lacks a part of one
 *    of its tensors (exchange.h, rule 10), UPDATE comes before, and changes nothing:
 *	UPDATED_OWN                       -> RATIO: the last of each chain, to its kin
 *	all RATIOs are here               -> FINISH
 * 8. A link that closes loses what was in flight. When the coordinator is back, every message that awaits an
 *    answer is sent again. If another coordinator comes, a joiner that has received nothing yet says
 *    READY_TO_SYNC. Lost links between members are repaired by a new epoch. A member connects to the
 *    members of its view, to those of the next view, and to the joiners that it sends state to.
 * 9. AGAIN, ROOTS, LEAVES, FOLD, PUBLISH, TABLE, NORM, PARM and RATIO refer to the step of
 *    hd_member_exchange() at the time when they are carried out: no call asks for work of one step and begins
 *    another.
 * 10. A member that receives a digest other than its own for a step begins no further step, saves nothing
 *     by itself, and reports the sender (SUSPECT, corrupt). The coordinator decides. Of state by stages
 *     digests are of what the sender holds (held.h).
 * 11. Links between the members of a first view may come up after it. A worker that enters its first view
 *     begins no step before they are up, for T/2 at most: nothing was sent on them, so nothing is lost and
 *     no epoch is needed. After that, when something is sent on one that is not up, or where one was up
 *     before, it reports them as closed (rule 8).
 * 12. A step after a loss (config.goes_on; ADR 132). After FENCE a member whose ranks compute a step of
 *     stages acts STOP, and says to the coordinator how far they are (STOPPED), in each epoch until a VIEW
 *     comes. One without a rank says so at once, of none. If that view has doubled ranks
 *     it acts GO_ON and AGAIN: the same passes, and those of the stages that it
 *     inherits, are computed to their end from what there is; COMPUTE comes for each of them again. That is
 *     done once in a step, and no step is begun in that view.
 * 13. Steps that overlap (ADR 152). A step whose BEGIN says `goes_on` may begin the next one inside its
 *    COMPUTE, where the lists of the view do. It does not where there is no next one. BEGIN of that one says
 *    `ahead` where what was begun of it counts: both are of one view, and no view was in force, and no FENCE
 *    came, between. All members say the same of a step. What was begun is part of no message: whatever ends
 *    the epoch, or halts, forgets it. Where config.early says so of the view, a step that was skipped leaves
 *    what was begun of the next one in vain, and its letters are on their way: no member begins a step in
 *    that epoch any more, and the first one of the view says that a new one is due. So it waits for a
 *    coordinator.
 *
 *    Such a step of sharded state may hand out new parameters EARLY, before UPDATE (ADR 214): a bucket of an
 *    own chain whose sum is here, where an update needs no norms, and the table is here or says nothing that
 *    it needs (ADR 245). The step before was
 *    finished in the same view, so none but the chain has its slots, and the last of the chain has the sum
 *    because all of it have: where they are gone the slots are lost, and no gradient is computed again. So
 *    what comes may overwrite own roots, also in part. Slots change with UPDATE alone. A step that turns
 *    out to be skipped does not take up what came.
 * 14. Refusals (ADR 166). PREPARE, and BEGIN with `fewer`, may end with UNFIT: the view takes more memory
 *    than there is, and nothing was changed. The member says so, and stays a member as it was: another view
 *    follows.
 *
 * Ownership: create/destroy. Returned actions, and all they point to, are valid until the next call. One
 * thread; never blocks. Memory is taken only when a view or a redone step needs more. Time is an
 * argument, in ns, and never decreases. T is config.detect_ns. */
#ifndef HD_PROTOCOL_MEMBER_H
#define HD_PROTOCOL_MEMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "protocol/exchange.h"
#include "protocol/message.h"
#include "protocol/view.h"

enum { HD_MEMBER_NEWS = 256 };            /* steps whose record is kept for a coordinator that comes back */
#define HD_COORDINATOR (UINT32_MAX - 1)   /* the coordinator, in place of a worker id */

struct hd_member_config {
	uint32_t nvns, nbuckets;
	uint32_t servers;                 /* with copies: see plan/holding.h */
	const uint64_t *bytes;            /* borrowed: [nbuckets] as in plan/holding.h, or NULL */
	uint32_t copies;                  /* holders of each bucket's slots; 0:
		all that hold its parameters */
	/* borrowed, of a model in stages; NULL: one stage, and all members hold all parameters */
	const struct hd_stage_buckets *buckets;
	/* with buckets: those of the shape of any view; NULL: all shapes have `buckets` */
	hd_shape_buckets *of_shape;
	void *of_shape_self;
	uint64_t nsteps;                  /* step nsteps is not run */
	int64_t detect_ns;                /* T: after so much silence a peer is suspected */
	struct hd_hash job, kernels;      /* as in JOIN */
	uint32_t ndevices;
	uint64_t memory, vn_ps, nonce;
	char address[HD_MSG_ADDR + 1], host[HD_MSG_KIND_NAME + 1], zone[HD_MSG_ZONE + 1];
	bool takes_over;                  /* it can open the run's store, so it may take over */
	/* No worker of the run can take over: without a coordinator for thirty times T it ends, though
	 * all its peers are there. */
	bool none_takes_over;
	bool goes_on;                     /* rule 12; with of_shape */
	bool pairs;                       /* exchange.h, rule 11 */
	bool varies;                      /* as in coordinator.h: the gone are not compared with */
	/* rule 13: may what a step of that view begins read an update of its own? NULL: never. `self` is
	 * of_shape_self */
	bool (*early)(void *self, const struct hd_view *view);
};

/*        id        payload                         what happened */
#define HD_MEMBER_EVENTS(X) \
	X(MESSAGE,     "worker (HD_COORDINATOR), msg",   "a message came") \
	X(UP,          "worker",                         "a link to a peer, or to the coordinator, is up") \
	X(LOST,        "worker, why, text",              "the link closed (HD_CLOSED), is silent for T (HD_SILENT), or is heard again") \
	X(WARMED_UP,   "",                               "WARM_UP is done") \
	X(SYNCED,      "step",                           "X_step is here, and is being followed") \
	X(SYNC_LOST,   "whole, slow",                    "the source's stream ended; whole: X_step of the last SYNCED is untouched; slow: the source gave up") \
	X(FINAL,       "step, pass, bucket",             "all roots of the pass of that bucket are final") \
	X(COMPUTED,    "step, pass",                     "the pass is done: all its buckets are final, its table entries there") \
	X(ROOT,        "epoch, worker, ordinal, bucket", "a root came") \
	X(SUM,         "epoch, worker, bucket",          "a sum came") \
	X(LEAVES,      "epoch, worker, pass",            "the table entries of a pass came") \
	X(TABLE,       "epoch, worker",                  "the whole table came") \
	X(FOLDED,      "step, bucket",                   "FOLD is done: the sum and its sums of squares are here") \
	X(EARLY,       "step, bucket",                   "new parameters of a bucket of an own chain are here, before UPDATE (rule 13)") \
	X(SQUARED,     "step, bucket",                   "the sums of squares of a sum that came are taken; after its SUM") \
	X(NORM,        "epoch, worker, bucket",          "the sums of squares of a bucket came") \
	X(PARM,        "epoch, worker, bucket",          "its new parameters came (and in digest steps the digests of its slots)") \
	X(RATIO,       "epoch, worker, bucket",          "the sums of squares of its parameters and of their moves came") \
	X(FETCHED,     "epoch, step",                    "FETCH is done") \
	X(STOPPED,     "step, stood",                    "STOP is done: what the ranks stand before; no rank: it cannot be gone on with") \
	X(STUCK,       "step",                           "GO_ON cannot be done here: a new epoch is due") \
	X(UNFIT,       "epoch, text",                    "PREPARE or BEGIN of that view takes more memory than there is: rule 14") \
	X(UPDATED_OWN, "step",                           "UPDATE is done: new parameters and slots of the own chains are here, or what RATIO sends of them") \
	X(SPENT,       "step, spent, n",                 "what the own instructions have taken, until the end of that step; before UPDATED; without a coordinator it is dropped") \
	X(UPDATED,     "step, news, digests",            "FINISH is done: X_{step+1} is here; the sums still are") \
	X(READY,       "step, halt",                     "the work of BOUNDARY(step) is done; halt: step must not be run (a function of X_step)") \
	X(PREPARED,    "epoch",                          "PREPARE of that view is done, or of a member will be before a step of it") \
	X(FAILED,      "code, text",                     "the step cannot be finished, anywhere: a number that is not finite") \
	X(ENDED,       "code, text",                     "TAKE_OVER found that no coordinator comes: the run is over") \
	X(DRAIN,       "code, text, left_ns",            "this worker is to leave (a signal, a notice); once more: of the ends the first") \
	X(NOTE,        "kind, text",                     "a line for events.ndjson; without a coordinator it is dropped") \
	X(TICK,        "done, longest_ns, busy",         "time went by; at least each T/4")

enum hd_member_event_kind {
#define X(id, payload, text) HD_IN_##id,
	HD_MEMBER_EVENTS(X)
#undef X
	HD_IN_NKINDS
};

/* How far the own ranks are: the next instruction of each, and [narrived] what has come to them (engine/
 * dist.h). Borrowed for the call. */
struct hd_member_stood { uint32_t nranks, narrived; const uint32_t *rank, *next; const uint8_t *arrived; };

struct hd_member_event {
	enum hd_member_event_kind kind;
	uint32_t epoch, worker, pass, ordinal, bucket;
	uint64_t step;
	const struct hd_msg *msg;
	enum hd_suspicion why;
	const struct hd_step_news *news;
	const struct hd_member_stood *stood;
	/* 0: not a digest step; sums: nor of sharded state, however many workers there are */
	uint64_t sum_digest, state_digest;
	/* [nbuckets], of state by stages in a digest step: of each bucket that is held here, else 0 */
	const uint64_t *held;
	uint64_t done, longest_ns;
	int64_t left_ns;                          /* until its machine goes; 0: that is not known */
	uint32_t code;                            /* exit code */
	const struct hd_spent_kind *spent;        /* [n] of SPENT */
	uint32_t n;
	const char *name, *text;                  /* of NOTE: kind, JSON */
	bool halt, busy, whole, slow;
};

/*        id        payload                     what the runtime does */
#define HD_MEMBER_ACTIONS(X) \
	X(SEND,       "worker, msg",                "send it; a link that is not up drops it") \
	X(CONNECT,    "worker, text",               "connect to that worker at that address") \
	X(CALL,       "",                           "try to reach the coordinator, once") \
	X(TAKE_OVER,  "",                           "start a coordinator; it may find that there is one") \
	X(ADMITTED,   "worker",                     "close the link to the coordinator, call again under this id") \
	X(WARM_UP,    "",                           "build, allocate, touch; then WARMED_UP") \
	X(SYNC,       "worker, step",               "drop what was received; take the state from that source (HD_NOBODY: X_step from disk)") \
	X(SEND_STATE, "worker, flag",               "at boundaries: send the state to that joiner (again: go on); flag false: stop") \
	X(PREPARE,    "view",                       "prepare for it; then PREPARED") \
	X(DECIDED,    "epoch",                      "accept frames of it beside the present one's") \
	X(EPOCH,      "epoch",                      "end all transfers; only frames of this epoch from now on") \
	X(ADOPT,      "view",                       "it is in force: channels of its members (after EPOCH of the same number)") \
	X(STOP,       "step",                       "fenced, the ranks come to stand between two instructions; then STOPPED") \
	X(GO_ON,      "step, view, next, arrived",  "the step goes on in that view, from how far all ranks are; AGAIN and COMPUTE follow") \
	X(BEGIN,      "step, ahead, goes_on, fewer", "a new step: its exchange is hd_member_exchange(); post for what will come; rules 13, 14") \
	X(AGAIN,      "step",                       "its exchange begins again under the adopted view; own roots and sums stay") \
	X(COMPUTE,    "step, pass, stage, range",          "compute those virtual nodes; then FINAL..., COMPUTED") \
	X(ROOTS,      "step, pass, bucket, worker", "send the roots of that pass of the bucket to its owner") \
	X(LEAVES,     "step, pass",                 "send the table entries of that pass to all other members") \
	X(FOLD,       "step, bucket",               "add the roots in tree order; then FOLDED") \
	X(PUBLISH,    "step, bucket, mask",         "send the sum to those members (bits of indices)") \
	X(TABLE,      "step, mask",                 "send the whole table to those members") \
	X(NORM,       "step, bucket, mask",         "send its sums of squares to those members") \
	X(FETCH,      "step, flag",                 "fetch the missing slots of the own chains from their holders (flag: of those that the own stages read); then FETCHED") \
	X(UPDATE,     "step",                       "scalars; slots and new parameters of the own chains, beside the old ones; by stages their sums of squares alone; then UPDATED_OWN") \
	X(PARM,       "step, bucket, mask",         "send its new parameters to those members") \
	X(RATIO,      "step, bucket, mask",         "send the sums of squares of its parameters and of their moves to those members") \
	X(FINISH,     "step",                       "scalars, update in place (sharded: take up the new parameters); then UPDATED") \
	X(BOUNDARY,   "step, flag, final",          "between steps: send state; flag: as checkpoint writer evaluate and save X_step, if it is here; final: nothing follows; then READY") \
	X(CANCEL,     "step",                       "that step is not run: forget its passes and its exchange; the state is X_step; nothing more of it is reported") \
	X(EXIT,       "code, text",                 "leave, with this exit code; what was sent goes out first") \
	X(FENCED,     "text",                       "drop all, join as a new worker")

enum hd_member_action_kind {
#define X(id, payload, text) HD_DO_##id,
	HD_MEMBER_ACTIONS(X)
#undef X
	HD_DO_NKINDS
};

/* Bits: carried out from hd_member_exchange(), rule 9. */
#define HD_MEMBER_OF_EXCHANGE (1u << HD_DO_AGAIN | 1u << HD_DO_ROOTS | 1u << HD_DO_LEAVES | \
	1u << HD_DO_FOLD | 1u << HD_DO_PUBLISH | 1u << HD_DO_TABLE | 1u << HD_DO_NORM | 1u << HD_DO_PARM | \
	1u << HD_DO_RATIO)

struct hd_member_action {
	enum hd_member_action_kind kind;
	uint32_t epoch, worker, pass, stage, bucket, nranges, code;
	uint64_t step, mask;
	const struct hd_msg *msg;
	const struct hd_view *view;
	const struct hd_vrange *range;
	/* of GO_ON: [ranks of the view]; runs (message.h) */
	const uint32_t *next;
	const struct hd_vrange *arrived;
	uint32_t narrived;
	const char *text;
	bool flag, final;
	bool ahead, goes_on, fewer;       /* of BEGIN */
};

struct hd_member_actions { const struct hd_member_action *at; size_t n; };

enum hd_member_state { HD_OUTSIDE, HD_ADMITTED, HD_SYNCING, HD_MEMBER, HD_HALTED, HD_GONE };

struct hd_member;

HD_MUST_USE enum hd_err hd_member_create(struct hd_member **member, const struct hd_member_config *config,
	struct hd_diag *diag);
void hd_member_destroy(struct hd_member *member);                 /* takes NULL */
/* The first event is UP of the coordinator: the machine answers with JOIN. */
struct hd_member_actions hd_member_step(struct hd_member *member, const struct hd_member_event *event,
	int64_t now_ns);

/* For the runtime, status and tests; all borrowed until the next step. */
enum hd_member_state hd_member_state(const struct hd_member *member);
uint32_t hd_member_worker(const struct hd_member *member);        /* own id; HD_NOBODY */
uint32_t hd_member_epoch(const struct hd_member *member);
/* the first step that this worker has not sealed: the state is X_at, unless FINISH is under way */
uint64_t hd_member_at(const struct hd_member *member);
bool hd_member_is_writer(const struct hd_member *member);
/* Was the newest BOUNDARY the checkpoint writer's? After one that was not, what an earlier one still gathers
 * is given up, and is READY, too. */
bool hd_member_saves(const struct hd_member *member);
/* Is it between steps, and begins none in this view? */
bool hd_member_holds(const struct hd_member *member);
/* in force; NULL: not a member */
const struct hd_view *hd_member_view(const struct hd_member *member);
/* Rule 13: would EARLY of the bucket in the step begun last be taken? Its sum is here then. */
bool hd_member_may_early(const struct hd_member *member, uint32_t bucket);
const struct hd_exchange *hd_member_exchange(const struct hd_member *member);     /* of the step begun last */
/* Sharded state: the holders of a bucket's slots, in the view in force or the next one; returns how many. */
uint32_t hd_member_holders(const struct hd_member *member, uint32_t bucket, uint32_t worker[HD_MAX_MEMBERS]);
/* Is this worker one of them, and are its slots those of X_at? */
bool hd_member_has_slots(const struct hd_member *member, uint32_t bucket);

const char *hd_member_event_name(enum hd_member_event_kind kind);
const char *hd_member_action_name(enum hd_member_action_kind kind);
const char *hd_suspicion_name(enum hd_suspicion why);

#endif
