/* member.h -- one worker's part in a job with others: what it computes, sends, seals and when, as a pure machine.
 *
 * Events in, actions out. The runtime carries out the actions (wire, devices, disk) and reports; the
 * simulation does the same with integers. One worker alone runs through the same machine.
 *
 *	outside --JOIN, ADMIT--> admitted --WARM_UP, SYNC--> syncing --FENCE/VIEW or DECIDE+switch--> member
 *	member --switch without it--> out      any --STALE, VIEW without it--> fenced (join anew under a new id)
 *
 * A member in step s: BEGIN, COMPUTE pass 0; FINAL buckets: ROOTS to their owners; COMPUTED: LEAVES to all; an owner that has
 * all roots: FOLD, PUBLISH; all sums and the table here: FINISH; UPDATED: SEAL to all, BOUNDARY; READY and the gate: the next.
 *
 *  1. The gate: BEGIN(s + 1) comes after SEAL(s) of every member that ran s, and in a new view's first step also of its new members.
 *     Until then gradient buffers keep the sums of s and the table.
 *  2. The switch: s0 is the first step all of whose SEALs know of a decided view; steps >= s0 + 2 run under it. A newcomer that has
 *     announced X_{s0 + 2} keeps it though its donor goes; if it is not to be a member after all, it says WARM.
 *  3. FENCE ends an epoch: EPOCH, no BEGIN until its VIEW; what computes goes on; passes that were begun count.
 *     An event of an earlier epoch (`epoch` of the event) changes nothing. Work is named by (step, worker, pass), not by epoch.
 *  4. Nothing is sent of the table before READY of the step's boundary: so a scribe that halts has not contributed.
 *  5. The scribe is the member of the lowest id; remote workers have higher ids and are never it. One that becomes it in a VIEW gets
 *     BOUNDARY again, before it contributes.
 *  6. Whoever never met a coordinator is as one that lost it: it may have died before anybody joined. A member that lost the coordinator
 *     goes on. It CALLs each T/4, and after 2 T, later by T/8 per place among the members (others after them), TAKE_OVER each 2 T if it may. If a
 *     member is lost meanwhile, all hold by themselves; after 30 T: BOUNDARY (final) at the lowest id, EXIT.
 *  7. Sharded state (config.copies above 0): an owner that has folded sends the sums of squares (NORM) to all and the sum along the chain
 *     (exchange.h); who has all of the former, the table and the sums of its own chains: UPDATE; UPDATED_OWN: the last of a chain sends the new
 *     parameters (PARM); all parameters here: FINISH. In the first step of a view a member that lacks slots of its chains does FETCH;
 *     nobody does UPDATE before all of them said SLOTTED: until then slots are those of X_s, wherever they are. NORM waits as the table does
 *     (rule 4), so slots stand still while a scribe works at a boundary.
 *  8. A link that closed lost what was on it: when the coordinator is there again, all that awaits an answer is said again; to another
 *     coordinator than the one that named its donor, a learner that has nothing yet says WARM. Links
 *     between members are mended by the coordinator's new epoch. A member calls the members, those to come, and whom it teaches.
 *  9. AGAIN, ROOTS, LEAVES, FOLD, PUBLISH, TABLE, NORM and PARM name the step that hd_member_exchange() is of while they are carried out: no
 *     call asks for anything of a step and begins the next.
 * 10. Who hears another digest of a step than its own begins no step more, saves nothing by itself, and says so of its sender (SUSPECT, corrupt):
 *    that is the coordinator's to judge.
 *
 * Ownership: create/destroy. Returned actions, and all they point to, are valid until the next call. One thread; it never blocks; memory
 * is taken when a view or a redone step needs more, never otherwise. Time is an argument, in ns, never going back. */
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
#define HD_COORDINATOR (UINT32_MAX - 1)   /* in place of a worker's id: the coordinator */

struct hd_member_config {
	uint32_t nvns, nbuckets;
	uint32_t copies;                  /* of a bucket's slots; 0: all members hold all of the state */
	uint64_t nsteps;                  /* step nsteps is not run */
	int64_t detect_ns;                /* T */
	struct hd_hash job, kernels;      /* as in JOIN */
	uint32_t ndevices;
	uint64_t memory, vn_ps, nonce;
	char address[HD_MSG_ADDR + 1], host[HD_MSG_KIND_NAME + 1];
	bool takes_over;                  /* it can open the run's store */
};

/*        id        payload                         what happened */
#define HD_MEMBER_EVENTS(X) \
	X(MESSAGE,     "worker (HD_COORDINATOR), msg",   "a message came") \
	X(UP,          "worker",                         "a link to a peer, or to the coordinator, is up") \
	X(LOST,        "worker, why, text",              "it is lost (HD_CLOSED), or silent for T (HD_SILENT), or heard again") \
	X(WARMED_UP,   "",                               "WARM_UP is done") \
	X(SYNCED,      "step",                           "X_step is here, and is being followed") \
	X(SYNC_LOST,   "whole, slow",                    "the source's stream ended; whole: X_step of the last SYNCED is untouched; slow: the source gave up") \
	X(FINAL,       "step, pass, bucket",             "all roots of the pass of that bucket are final") \
	X(COMPUTED,    "step, pass",                     "the pass is done: all its buckets are final, its table entries there") \
	X(ROOT,        "epoch, worker, ordinal, bucket", "a root came") \
	X(SUM,         "epoch, worker, bucket",          "a sum came") \
	X(LEAVES,      "epoch, worker, pass",            "the table entries of a pass came") \
	X(TABLE,       "epoch, worker",                  "the whole table came") \
	X(FOLDED,      "step, bucket",                   "FOLD is done: the sum is here") \
	X(NORM,        "epoch, worker, bucket",          "the sums of squares of a bucket came") \
	X(PARM,        "epoch, worker, bucket",          "its new parameters came (and in digest steps the digests of its slots)") \
	X(FETCHED,     "epoch, step",                    "FETCH is done") \
	X(UPDATED_OWN, "step",                           "UPDATE is done: new parameters and slots of the own chains are here") \
	X(UPDATED,     "step, news, digests",            "FINISH is done: X_{step+1} is here; the sums still are") \
	X(READY,       "step, halt",                     "the work of BOUNDARY(step) is done; halt: step must not be run (a function of X_step)") \
	X(PREPARED,    "epoch",                          "PREPARE of that view is done") \
	X(FAILED,      "code, text",                     "the step cannot be finished, anywhere: a number that is not finite") \
	X(DRAIN,       "code, text",                     "this worker shall go (a signal, a notice)") \
	X(NOTE,        "kind, text",                     "a line for events.ndjson; without a coordinator it is dropped") \
	X(TICK,        "done, longest_ns, busy",         "time went by; at least each T/4")

enum hd_member_event_kind {
#define X(id, payload, text) HD_IN_##id,
	HD_MEMBER_EVENTS(X)
#undef X
	HD_IN_NKINDS
};

struct hd_member_event {
	enum hd_member_event_kind kind;
	uint32_t epoch, worker, pass, ordinal, bucket;
	uint64_t step;
	const struct hd_msg *msg;
	enum hd_suspicion why;
	const struct hd_step_news *news;
	/* 0: not a digest step; sums: nor of sharded state, however many workers there are */
	uint64_t sum_digest, state_digest;
	uint64_t done, longest_ns;
	uint32_t code;                            /* exit code */
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
	X(BEGIN,      "step",                       "a new step: its exchange is hd_member_exchange(); post for what will come") \
	X(AGAIN,      "step",                       "its exchange begins again under the adopted view; own roots and sums stay") \
	X(COMPUTE,    "step, pass, range",          "compute those virtual nodes; then FINAL..., COMPUTED") \
	X(ROOTS,      "step, pass, bucket, worker", "send the roots of that pass of the bucket to its owner") \
	X(LEAVES,     "step, pass",                 "send the table entries of that pass to all other members") \
	X(FOLD,       "step, bucket",               "add the roots in tree order; then FOLDED") \
	X(PUBLISH,    "step, bucket, mask",         "send the sum to those members (bits of indices)") \
	X(TABLE,      "step, mask",                 "send the whole table to those members") \
	X(NORM,       "step, bucket, mask",         "send its sums of squares to those members") \
	X(FETCH,      "step",                       "get the slots of the own chains that are not here from who has them; then FETCHED") \
	X(UPDATE,     "step",                       "scalars; slots and new parameters of the own chains, beside the old ones; then UPDATED_OWN") \
	X(PARM,       "step, bucket, mask",         "send its new parameters to those members") \
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
#define HD_MEMBER_OF_EXCHANGE (1u << HD_DO_AGAIN | 1u << HD_DO_ROOTS | 1u << HD_DO_LEAVES | 1u << HD_DO_FOLD | 1u << HD_DO_PUBLISH | \
	1u << HD_DO_TABLE | 1u << HD_DO_NORM | 1u << HD_DO_PARM)

struct hd_member_action {
	enum hd_member_action_kind kind;
	uint32_t epoch, worker, pass, bucket, nranges, code;
	uint64_t step, mask;
	const struct hd_msg *msg;
	const struct hd_view *view;
	const struct hd_vrange *range;
	const char *text;
	bool flag, final;
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
/* first step not sealed: the state is X_at, unless FINISH is under way */
uint64_t hd_member_at(const struct hd_member *member);
bool hd_member_is_writer(const struct hd_member *member);
/* between steps, told to begin none until there are more of them */
bool hd_member_holds(const struct hd_member *member);
/* in force; NULL: not a member */
const struct hd_view *hd_member_view(const struct hd_member *member);
const struct hd_exchange *hd_member_exchange(const struct hd_member *member);     /* of the step begun last */
/* Sharded state: who holds a bucket's slots, of the view in force or of the one to come; how many. Is this
 * one of them, and do they stand still, as X_at has them? */
uint32_t hd_member_holders(const struct hd_member *member, uint32_t bucket, uint32_t worker[HD_MAX_MEMBERS]);
bool hd_member_has_slots(const struct hd_member *member, uint32_t bucket);

const char *hd_member_event_name(enum hd_member_event_kind kind);
const char *hd_member_action_name(enum hd_member_action_kind kind);
const char *hd_suspicion_name(enum hd_suspicion why);

#endif
