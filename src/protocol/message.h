/* message.h -- the messages between members and the coordinator: one table of kinds, one of fields each.
 *
 * A message is a control message of wire (hd_hub_tell()). Its id is the kind, its bytes are these, little
 * endian:
 *
 *	 0      4       8
 *	 | term | epoch | fields of the kind in the order below | elements of its arrays, in order |
 *
 * The field of an array is the number of its elements (u32). `term` counts the coordinators of a run:
 * messages of an earlier one are ignored. `epoch` is the membership epoch of the sender (in FENCE and VIEW:
 * the new one).
 *
 * 1. The decoder accepts exactly the bytes that the encoder writes: every count within its cap, flags 0 or
 *    1, text without control characters, no byte left over. All else is HD_E_PROTOCOL and changes nothing.
 * 2. Numbers of kinds are below HD_TELL_ASKS of wire, 128, and never reused. Fields are added by a new
 *    kind. Retired: 30, STATUS, and 31, VIEW, both without sharded state; 24, PREPARE, 43, STATUS, and 44,
 *    VIEW, without stages; 50, PREPARE, 51, STATUS, and 52, VIEW, without the nodes with which stages
 *    begin; 53, PREPARE, 54, STATUS, and 55, VIEW, without the devices of a rank; 57, STATUS, and 58,
 *    VIEW, of steps that are not gone on with after a loss; 60, VIEW, which no worker could refuse; 27,
 *    SEAL, without digests of state by stages; 16, JOIN, without a zone; 33, LEAVE, without an end.
 * 3. Whether a message makes sense in the receiver's state is judged by the machines (member.h,
 *    coordinator.h); an unexpected one is ignored there.
 *
 * Arrays of a decoded message lie in the arena given; those of a message to encode are the caller's.
 * Pure. */
#ifndef HD_PROTOCOL_MESSAGE_H
#define HD_PROTOCOL_MESSAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/hash.h"
#include "protocol/exchange.h"
#include "protocol/held.h"
#include "protocol/passes.h"

enum {
	HD_MSG_ADDR = 250,                /* bytes of addresses: two of wire */
	HD_MSG_TEXT = 600,                /* a reason for a user: fits a diag */
	HD_MSG_JSON = 16384,              /* an event's object */
	HD_MSG_JOB = 1 << 19,             /* a resolved job */
	HD_MSG_PATH = 4000,
	HD_MSG_KIND_NAME = 64,
	HD_MSG_ZONE = 32,                 /* a name of a zone */
	HD_MSG_RUNS = 65536,              /* runs of `have`; = HD_MAX_BUCKETS */
	HD_MSG_BITS = HD_MAX_BUCKETS / 64,
	HD_MSG_SPENTS = 1024,             /* kinds of instructions of stages of ranks */
	HD_MSG_MAX = 1 << 20,             /* bytes of a message; = HD_TELL_MAX of wire */
};

/* C: coordinator, M: member, L: joiner (admitted, not a member yet), W: any worker.
 *        id        no  fields    route    says                                                             */
#define HD_MSGS(X) \
	X(JOIN,          65, join,          "W>C",  "I want to take part; or: I am connected again") \
	X(ADMIT,         17, admit,         "C>W",  "you have this id: connect under it") \
	X(REFUSE,        18, refuse,        "C>W",  "you cannot take part, and why") \
	X(PEER,          19, peer,          "C>W",  "that worker listens at that address") \
	X(READY_TO_SYNC, 46, ready_to_sync, "L>C",  "I am warmed up: name me a source") \
	X(SYNC,          21, sync,          "C>L",  "take the state from that source, or from disk") \
	X(SEND_STATE,    22, send_state,    "C>M",  "send your state to that joiner, or stop") \
	X(SYNCED,        23, synced,        "L>C",  "I hold the state of that source, and follow it") \
	X(PREPARE,       56, prepare,       "C>W",  "prepare for this view") \
	X(PREPARED,      25, decided,       "W>C",  "I am prepared for it") \
	X(DECIDE,        26, decided,       "C>W",  "it is decided: adopt it by the rule of the switch") \
	X(SEAL,          64, seal,          "M>MC", "I hold the complete result of this step") \
	X(SUSPECT,       28, suspect,       "M>C",  "I lost that worker, or hear it again") \
	X(FENCE,         29, fence,         "C>W",  "a new epoch: drop the exchange, send your status") \
	X(STATUS,        59, status,        "W>C",  "what I have of the step that I have not sealed") \
	X(STOPPED,       61, stopped,       "M>C",  "my ranks stand: how far they are in it") \
	X(VIEW,          63, view,          "C>W",  "the members, their parts, and how the open step is finished") \
	X(UNFIT,         62, unfit,         "M>C",  "I have not the memory for my part of that view") \
	X(STALE,         32, none,          ">W",   "you are not in this epoch any more") \
	X(LEAVE,         67, leave,         "W>C",  "I want to go; gone: I went") \
	X(RELEASE,       34, release,       "C>W",  "go, with this exit code") \
	X(STOP,          35, stop,          "C>M",  "halt at the next boundary, if you are the checkpoint writer") \
	X(HALT,          36, halt,          "M>MC", "this step must not be run; I have not contributed to it") \
	X(DONE,          37, done,          "M>C",  "I have stopped before this step, or failed in it") \
	X(EVENT,         38, event,         "W>C",  "a line for events.ndjson") \
	X(PROGRESS,      39, progress,      "M>C",  "my progress: a heartbeat does not say that steps are computed") \
	X(ENTERED,       40, none,          "C>L",  "the members are in this epoch now") \
	X(ASK,           41, none,          "W>C",  "which job is this?") \
	X(OFFER,         42, offer,         "C>W",  "this one") \
	X(ENDED,         20, ended,         "M>W",  "there is no coordinator, and none comes: the run is over") \
	X(SLOTTED,       45, halt,          "M>M",  "the slots that I lacked for this step are here") \
	X(SPENT,         66, spent,         "M>C",  "what my instructions have taken under the plan in use")

enum hd_msg_kind {
#define X(id, no, fields, route, text) HD_MSG_##id = (no),
	HD_MSGS(X)
#undef X
	HD_MSG_NKINDS = 68
};

/* Why a worker is suspected. A closed link has lost messages, so only a new epoch repairs it. Silence that
 * ends has lost none, so it needs no new epoch. */
enum hd_suspicion { HD_HEARD, HD_SILENT, HD_CLOSED, HD_EXITED, HD_HUNG, HD_CORRUPT, HD_NSUSPICIONS };

/* The record of a step for metrics.ndjson. Equal in the seals of all members, but for times and `redone`. */
struct hd_step_news {
	double loss_sum, weight, correct, gnorm, lr;
	double term_sum[4];               /* of losses that are added; = HD_MODEL_TERMS of graph */
	uint64_t samples, data_epoch;
	/* of the sender: duration of the step; of that, waiting; computing its part (0: it had none) */
	uint64_t step_ns, wait_ns, compute_ns;
	/* of the sender's computing: for redundancy alone; waiting for tensors of neighbour stages; for */
	/* data */
	uint64_t redundant_ns, stalled_ns, read_wait_ns;
	uint64_t bytes_out;               /* payload that it sent since its step before, of messages too */
	/* since then: transfers that another went before in the midst; chunks that went out of order */
	uint64_t preempted, inverted;
	uint32_t nterms;                  /* that there are, 0 to 4 */
	uint32_t redone;                  /* virtual nodes that the sender computed for lost workers */
	bool empty, skipped, has_digest;
	struct hd_hash digest;            /* of the state after the step */
};

/* What instructions of one kind, of one stage on one rank of the view, took together: engine/times.h. */
struct hd_spent_kind { uint32_t rank; uint8_t stage, op; uint64_t n, ns, processor_ns; };

/* F(type, name): a field. A(type, name, cap): an array `name` of n<name> elements, at most `cap`. Types: flag
 * (u8, 0 or 1), u8, u32, u64, f64, hash, news; of elements also text (bytes), vrank, vrange, pass (a worker,
 * a number, how many ranges, its stage), have, held, kind (of spent). */
#define HD_FIELDS_none(F, A)
/* member: the sender is a member, of the epoch in the head; at: the first step it has not sealed; memory:
 * bytes; vn_ps: predicted time of one virtual node, in ps; nonce: drawn once per process, ADMIT repeats it;
 * zone: what it is lost together with; may be empty */
#define HD_FIELDS_join(F, A) F(u32, worker) F(flag, member) F(u32, ndevices) F(u64, at) F(u64, memory) \
	F(u64, vn_ps) F(u64, nonce) F(hash, job) F(hash, kernels) A(text, address, HD_MSG_ADDR) \
	A(text, host, HD_MSG_KIND_NAME) A(text, zone, HD_MSG_ZONE)
#define HD_FIELDS_admit(F, A) F(u32, worker) F(u64, nonce)
#define HD_FIELDS_refuse(F, A) F(u32, code) A(text, why, HD_MSG_TEXT)
#define HD_FIELDS_peer(F, A) F(u32, worker) A(text, address, HD_MSG_ADDR)
/* source HD_NOBODY: from disk, and `transfer` is the step; else `transfer` is the number of the state
 * transfer: the same number again changes nothing, another one starts over. SYNCED repeats it */
#define HD_FIELDS_sync(F, A) F(u32, source) F(u64, transfer)
/* given_up: the number of the transfer that its source aborted, because this joiner was too slow; 0: none */
#define HD_FIELDS_ready_to_sync(F, A) F(u64, given_up)
#define HD_FIELDS_send_state(F, A) F(u32, joiner) F(flag, on)
#define HD_FIELDS_synced(F, A) F(u32, source) F(u64, transfer)
/* old: the view in force: its members' seals tell when to switch, and its holdings are moved; width,
 * schedule, way, place, first: the shapes (view.h), of places none without stages; rank, old_rank: with
 * followers behind */
#define HD_FIELDS_prepare(F, A) \
	F(u32, next) F(u32, width) F(u32, old_width) F(u32, schedule) F(u32, old_schedule) \
	F(u32, way) F(u32, old_way) \
	A(u32, old, HD_MAX_MEMBERS) A(u32, member, HD_MAX_MEMBERS) \
	A(vrank, rank, HD_VIEW_RANKS) A(vrank, old_rank, HD_VIEW_RANKS) A(u32, place, HD_STAGE_BITS) \
	A(u32, old_place, HD_STAGE_BITS) A(u32, first, HD_STAGE_BITS) A(u32, old_first, HD_STAGE_BITS)
#define HD_FIELDS_decided(F, A) F(u32, next)
/* knows: the epoch of the latest view, in force or decided, that the sender knows; ran: the sender took part
 * in the step, and `news` is valid. A seal of a joiner says only that it has X_{step+1} (member.h) */
/* held: of state by stages, in digest steps (member.h, rule 10)
 * news: of the step. A joiner, which did not run it, hands on a member's; samples 0: it heard none */
#define HD_FIELDS_seal(F, A) F(u64, step) F(u32, knows) F(flag, ran) F(u64, sum_digest) F(u64, state_digest) \
	F(news, news) A(held, held, HD_SEAL_HELD)
#define HD_FIELDS_suspect(F, A) F(u32, worker) F(u8, why)
#define HD_FIELDS_fence(F, A) A(u32, dead, HD_MAX_MEMBERS)
/* What the sender has of step `at`, the first that it has not sealed.
 *	member         it is one; else it is a joiner that has X_at
 *	begun, halted  it has begun the step; the step must not be run
 *	pass, range    its passes, done or running, numbered from 0, and their ranges
 *	sum            a bit for each bucket whose sum it holds
 *	table          it holds the whole table
 *	prev           it still holds all sums and the table of at - 1 (sharded: those that `sum` says, and
 *	               all parameters)
 *	parm, slot     sharded: bits of buckets whose new parameters, whose slots of X_at it holds; with
 *	               stages `slot` says of which buckets it holds parameters and slots
 *	updated        sharded: its slots are those of X_{at+1} already, and it cannot go back
 *	stops          its ranks come to stand between two instructions: STOPPED follows
 *	width, schedule, way, place, first: the shape (view.h) in which it has begun the step, or has what
 *	               `prev` says */
#define HD_FIELDS_status(F, A) F(u64, at) F(flag, member) F(flag, begun) \
	F(flag, halted) F(flag, prev) F(flag, table) F(flag, updated) F(flag, stops) F(u32, width) \
	F(u32, schedule) F(u32, way) \
	A(pass, pass, HD_MAX_PASSES) A(vrange, range, HD_VIEW_RANGES) \
	A(u64, sum, HD_MSG_BITS) A(u64, parm, HD_MSG_BITS) A(u64, slot, HD_MSG_BITS) \
	A(u32, place, HD_STAGE_BITS) A(u32, first, HD_STAGE_BITS)
/* How far the sender's ranks are in step `step`, begun in the view of epoch `of` (engine/dist.h).
 *	rank, next     its ranks, and of each the next instruction of its list; none: the step cannot be
 *	               gone on with here
 *	arrived        of each stage and virtual node what has come to it, in runs: `first` is the value,
 *	               `n` the length */
#define HD_FIELDS_stopped(F, A) F(u64, step) F(u32, of) A(u32, rank, HD_VIEW_RANKS) \
	A(u32, next, HD_VIEW_RANKS) A(vrange, arrived, HD_MSG_RUNS)
/* view: its epoch, as PREPARE or VIEW named it; why: what is needed, and what there is */
#define HD_FIELDS_unfit(F, A) F(u32, view) A(text, why, HD_MSG_TEXT)
/* The new view, and how the open step `step` is finished under it.
 *	afresh         all passes of the step are dropped: it starts over
 *	hold           begin no step
 *	fewer          with fewer stages than are wanted: a worker may refuse it (UNFIT)
 *	halt           this step must not be run; HD_NO_STEP: none
 *	table          bit mask of the members that hold the step's table
 *	member, at     ids, and of each the first step that it has not sealed
 *	rank           the map, which is valid from the next step on, and its followers (view.h, rule 14)
 *	width, schedule, way, place, first: its shape (view.h)
 *	pass, range    the passes of the step; none: it was not begun, and the map is valid for it, too
 *	have           holders of sums, in runs of buckets (exchange.h)
 *	parm, chain    sharded: holders of new parameters, of slots, likewise
 *	doubled        ranks that were lost within the step, which goes on without them (view.h, rule 12)
 *	next, arrived  with these: the next instruction of every rank, and what has arrived at all, as in
 *	               STOPPED */
#define HD_FIELDS_view(F, A) F(u64, step) F(flag, afresh) F(flag, hold) F(flag, fewer) F(u64, halt) \
	F(u64, table) \
	F(u32, width) F(u32, schedule) F(u32, way) \
	A(u32, member, HD_MAX_MEMBERS) A(u64, at, HD_MAX_MEMBERS) A(vrank, rank, HD_VIEW_RANKS) \
	A(u32, place, HD_STAGE_BITS) A(u32, first, HD_STAGE_BITS) \
	A(pass, pass, HD_VIEW_PASSES) A(vrange, range, HD_VIEW_RANGES) \
	A(have, have, HD_MSG_RUNS) A(have, parm, HD_MSG_RUNS) A(have, chain, HD_MSG_RUNS) \
	A(u32, doubled, HD_VIEW_RANKS) A(u32, next, HD_VIEW_RANKS) A(vrange, arrived, HD_MSG_RUNS)
/* left_ns: until its machine goes; 0: that is not known */
#define HD_FIELDS_leave(F, A) F(u32, code) F(flag, gone) F(u64, left_ns) A(text, why, HD_MSG_TEXT)
#define HD_FIELDS_release(F, A) F(u32, code) A(text, why, HD_MSG_TEXT)
#define HD_FIELDS_stop(F, A) F(u32, code) A(text, why, HD_MSG_TEXT)
#define HD_FIELDS_ended(F, A) A(text, why, HD_MSG_TEXT)
#define HD_FIELDS_halt(F, A) F(u64, step)
#define HD_FIELDS_done(F, A) F(u64, step) F(u32, code) A(text, why, HD_MSG_TEXT)
#define HD_FIELDS_event(F, A) A(text, kind, HD_MSG_KIND_NAME) A(text, json, HD_MSG_JSON)
#define HD_FIELDS_progress(F, A) F(u64, step) F(u64, done) F(u64, longest_ns) F(flag, busy)
/* spent: until the end of `step`, since the end of the first step of the sender under this plan; the plan
 * stays over views of the same map. Each message has all of it: one that is lost is made up for by the next.
 * Before the seal of the step. */
#define HD_FIELDS_spent(F, A) F(u64, step) A(kind, spent, HD_MSG_SPENTS)
/* job: the task's hash; data: of the content; text: the resolved job; folder: where its relative paths
 * begin, there */
#define HD_FIELDS_offer(F, A) F(hash, job) F(hash, data) F(u64, data_count) A(text, text, HD_MSG_JOB) \
	A(text, folder, HD_MSG_PATH)

/* The C types of these types. */
#define HD_MSG_C_u8 uint8_t
#define HD_MSG_C_flag bool
#define HD_MSG_C_u32 uint32_t
#define HD_MSG_C_u64 uint64_t
#define HD_MSG_C_hash struct hd_hash
#define HD_MSG_C_news struct hd_step_news
#define HD_MSG_C_text char
#define HD_MSG_C_vrank struct hd_vrank
#define HD_MSG_C_vrange struct hd_vrange
#define HD_MSG_C_pass struct hd_pass
#define HD_MSG_C_have struct hd_have
#define HD_MSG_C_held struct hd_held_run
#define HD_MSG_C_kind struct hd_spent_kind

#define F(type, name) HD_MSG_C_##type name;
#define A(type, name, cap) uint32_t n##name; const HD_MSG_C_##type *name;
struct hd_msg_none { uint32_t nothing; };
struct hd_msg_ready_to_sync { HD_FIELDS_ready_to_sync(F, A) };
struct hd_msg_join { HD_FIELDS_join(F, A) };
struct hd_msg_admit { HD_FIELDS_admit(F, A) };
struct hd_msg_refuse { HD_FIELDS_refuse(F, A) };
struct hd_msg_peer { HD_FIELDS_peer(F, A) };
struct hd_msg_sync { HD_FIELDS_sync(F, A) };
struct hd_msg_send_state { HD_FIELDS_send_state(F, A) };
struct hd_msg_synced { HD_FIELDS_synced(F, A) };
struct hd_msg_prepare { HD_FIELDS_prepare(F, A) };
struct hd_msg_decided { HD_FIELDS_decided(F, A) };
struct hd_msg_seal { HD_FIELDS_seal(F, A) };
struct hd_msg_suspect { HD_FIELDS_suspect(F, A) };
struct hd_msg_fence { HD_FIELDS_fence(F, A) };
struct hd_msg_status { HD_FIELDS_status(F, A) };
struct hd_msg_stopped { HD_FIELDS_stopped(F, A) };
struct hd_msg_unfit { HD_FIELDS_unfit(F, A) };
struct hd_msg_view { HD_FIELDS_view(F, A) };
struct hd_msg_leave { HD_FIELDS_leave(F, A) };
struct hd_msg_release { HD_FIELDS_release(F, A) };
struct hd_msg_stop { HD_FIELDS_stop(F, A) };
struct hd_msg_ended { HD_FIELDS_ended(F, A) };
struct hd_msg_halt { HD_FIELDS_halt(F, A) };
struct hd_msg_done { HD_FIELDS_done(F, A) };
struct hd_msg_event { HD_FIELDS_event(F, A) };
struct hd_msg_progress { HD_FIELDS_progress(F, A) };
struct hd_msg_spent { HD_FIELDS_spent(F, A) };
struct hd_msg_offer { HD_FIELDS_offer(F, A) };
#undef F
#undef A

struct hd_msg {
	enum hd_msg_kind kind;
	uint32_t term, epoch;
	union {
		struct hd_msg_none none;
		struct hd_msg_ready_to_sync ready_to_sync;
		struct hd_msg_join join;
		struct hd_msg_admit admit;
		struct hd_msg_refuse refuse;
		struct hd_msg_peer peer;
		struct hd_msg_sync sync;
		struct hd_msg_send_state send_state;
		struct hd_msg_synced synced;
		struct hd_msg_prepare prepare;
		struct hd_msg_decided decided;
		struct hd_msg_seal seal;
		struct hd_msg_suspect suspect;
		struct hd_msg_fence fence;
		struct hd_msg_status status;
		struct hd_msg_stopped stopped;
		struct hd_msg_unfit unfit;
		struct hd_msg_view view;
		struct hd_msg_leave leave;
		struct hd_msg_release release;
		struct hd_msg_stop stop;
		struct hd_msg_ended ended;
		struct hd_msg_halt halt;
		struct hd_msg_done done;
		struct hd_msg_event event;
		struct hd_msg_progress progress;
		struct hd_msg_spent spent;
		struct hd_msg_offer offer;
	};
};

const char *hd_msg_name(enum hd_msg_kind kind);           /* "JOIN"; NULL: no such kind */
size_t hd_msg_len(const struct hd_msg *msg);              /* bytes of its encoding */
/* HD_E_NOSPACE: longer than `cap`. HD_E_INVAL: an array beyond its cap. */
HD_MUST_USE enum hd_err hd_msg_encode(const struct hd_msg *msg, uint8_t *bytes, size_t cap, size_t *len,
	struct hd_diag *diag);
/* HD_E_PROTOCOL: rule 1. HD_E_NOMEM: `arena` is exhausted. `kind` is the id of the control message. */
HD_MUST_USE enum hd_err hd_msg_decode(struct hd_msg *msg, uint32_t kind, const uint8_t *bytes, size_t len,
	struct hd_arena *arena,
	struct hd_diag *diag);

#endif
