/* elastic_int.h -- what the two threads of an elastic worker share; not for other rooms. */
#ifndef HD_WORKER_ELASTIC_INT_H
#define HD_WORKER_ELASTIC_INT_H

#include "sys/thread.h"
#include "wire/hub.h"
#include "protocol/member.h"
#include "worker/command.h"
#include "worker/elastic.h"
#include "worker/finals.h"
#include "worker/relay.h"
#include "worker/catchup.h"

enum {
	/* a control message of the pupil: u64 number of the piece that it wants */
	HD_ASK_ID = HD_TELL_ASKS,
	/* of one who lacks slots: step, request, bucket (elastic_slots.c) */
	HD_ASK_SLOTS_ID = HD_TELL_ASKS + 1,
	HD_ELASTIC_SLOTS = 8,             /* buckets' slots asked for at a time */
	HD_SLOTS_LATER = 64,              /* questions of others that wait for a step */
	HD_ELASTIC_TRANSFERS = 4,            /* taught at a time */
	HD_ELASTIC_ASKED = 2,             /* pieces asked for at a time */
	HD_ELASTIC_CHUNKS = 8,           /* buffers for them: those of earlier donors may be open */
	HD_ELASTIC_EVENTS = 1024,         /* of the machine, waiting */
	HD_ELASTIC_NOTES = 64, HD_ELASTIC_TOOK = 64, HD_ELASTIC_SLOW_MFLOPS = 500,
	HD_ELASTIC_BUSY_QUEUE = 64,            /* more wait than this: the wire sums no buckets */
	HD_ELASTIC_NEWS = 4,              /* of steps: a member is at most one ahead */
};

struct hd_note { char kind[32], json[1500]; };

/* A piece under way to a pupil: number n lies in slot n mod HD_ELASTIC_ASKED until n + HD_ELASTIC_ASKED is
 * asked for, which says that n came. */
struct hd_chunk_out { struct hd_catchup_chunk *chunk; uint64_t number, request; bool asked, sending; };

struct hd_transfer_out {                        /* a learner of ours */
	uint32_t worker;                  /* HD_NOBODY: free */
	/* the hand has made the teacher; the wire wants no more; the hand has done away with it */
	bool made, ended, let_go;
	/* the hand's to init and finish, as is learner; the wire takes from it between made and ended */
	struct hd_catchup_source source;
	uint32_t joiner;
	uint64_t taken;                   /* number of the next piece to take */
	struct hd_chunk_out out[HD_ELASTIC_ASKED];
};

/* A buffer of the pupil: expected from `worker` (open), filled (here), with the hand (learning), or free. One
 * that is still open when the donor changes stays so until it is filled or that link is lost. */
struct hd_chunk_in { uint8_t *bytes; uint32_t worker, transfer_round; uint64_t number, request,
	len; int64_t asked_ns;
	bool open, here, applying; };

/* Slots of sharded state that are got from others. An ask of an earlier round stays open until its answer
 * comes or its link is lost. */
struct hd_slots_ask { uint8_t *bytes; uint32_t worker, bucket, round; uint64_t request; int64_t asked_ns;
	bool open; };
/* Asked for by one who is in a step that is not begun here: answered when it is. */
struct hd_slots_later { uint64_t step, request; uint32_t worker, bucket; };
struct hd_slots_out { struct hd_slots_out *next; uint32_t worker; uint64_t request; uint8_t bytes[]; };
enum hd_slots_work {
	HD_SLOTS_IDLE,
	HD_SLOTS_FETCH,                   /* those of the own chains come, for the step at hand */
	HD_SLOTS_GATHER,                  /* all come, for `boundary` */
	HD_SLOTS_SAVE,                    /* the hand has `boundary`, with all of them */
};
struct hd_slots {
	enum hd_slots_work now;
	bool fetch_due, gather_due;       /* and wait for their turn */
	uint64_t step, fetch_step;
	uint32_t fetch_epoch, round, left, tries;
	uint8_t *want;                    /* owned: [nbuckets] */
	/* owned: [nbuckets] that were here before; the hand's while it saves */
	uint8_t *keep;
	/* owned: [nbuckets] those that the UPDATE given last brings on; the hand's until its FINISH */
	uint8_t *own;
	struct hd_command boundary;
	struct hd_slots_ask ask[HD_ELASTIC_SLOTS];    /* bytes owned */
	struct hd_slots_out *out;         /* owned: being sent */
	struct hd_slots_later later[HD_SLOTS_LATER];
	uint32_t nlater;
	/* answers that went out whole, the last ones */
	struct hd_slots_answered { uint64_t request; uint32_t worker; } answered[HD_SLOTS_LATER];
	uint32_t nanswered;
};

struct hd_elastic {
	const struct hd_elastic_spec *spec;
	struct hd_run *run;
	struct hd_worker *worker;
	const struct hd_task *task;
	uint32_t nbuckets, copies;        /* copies: of sharded state; 0: replicated */
	int64_t detect_ns;                /* T */
	int64_t pace_ns;                  /* workers.pace */

	/* the wire's */
	struct hd_loop loop;
	struct hd_net net;
	struct hd_hub hub;
	struct hd_member *member;
	struct hd_relay relay;            /* parts are the hand's, see relay.h */
	struct hd_thread wire;
	struct hd_arena messages;         /* of the message at hand */
	uint8_t *room;                    /* HD_TELL_MAX: a message to be sent */
	struct hd_member_event queue[HD_ELASTIC_EVENTS];
	uint32_t first, nqueued;
	bool stepping;
	struct hd_step_news news[HD_ELASTIC_NEWS];
	uint32_t nnews;
	/* own worker id; HD_NOBODY before it is admitted; the wire sets it, any thread reads */
	_Atomic uint32_t self;
	/* the id under which to call again once the link is down; HD_NOBODY */
	uint32_t readmit;
	uint32_t folds_open;
	/* the hand has not begun the step at hand: what it computes is of one that was cancelled */
	uint32_t begins_open;
	/* counts steps that were cancelled: what was computed for them is void */
	uint32_t round;
	struct hd_view opened;            /* of the step begun last; epoch 0: none */
	bool open_pending;                /* the exchange opens when the hand has begun the step */
	bool leaving, fenced, drained;
	uint32_t exit_code;
	char exit_text[HD_MSG_TEXT + 1], text[HD_MSG_TEXT + 1];
	char address[HD_ELASTIC_ADDR];
	struct hd_transfer_out transfer[HD_ELASTIC_TRANSFERS];
	/* whom the coordinator named, the oldest first: taught whenever they ask */
	uint32_t named[HD_MAX_MEMBERS], nnamed;
	bool standing_open;                    /* TRANSFER of nobody is with the hand */
	uint32_t source;                   /* from whom we learn; HD_NOBODY */
	uint64_t next_piece, next_chunk; /* to ask for; for the hand to learn */
	struct hd_chunk_in chunk[HD_ELASTIC_CHUNKS];  /* bytes owned */
	uint64_t next_request;
	struct hd_slots slots;
	/* the last piece made X_step whole, and none is with the hand that may change it */
	bool whole;
	/* counts donors; results of an earlier one's pieces are void */
	uint32_t transfer_round;
	enum hd_err io_err;
	struct hd_diag io_diag;

	/* the hand's */
	struct hd_commands commands;
	struct hd_finals finals;          /* of the pass it computes; devices note, the wire fetches */
	struct hd_arena plan_arena[2];
	struct hd_plan plan[2];
	uint32_t plan_now;                /* of the two, the one in use */
	struct hd_view adopted, prepared; /* epoch 0: none */
	struct hd_catchup_sink sink;
	bool memory_reported;                 /* what the first share takes */
	bool unkept;                      /* a plan could not be written, and that was told */
	bool touched;                     /* the state is not that of the run's beginning any more */
	bool synced;                      /* the state came from a donor: the reader must go there */
	const uint8_t *owns;              /* of the last UPDATE */
	bool computed;                    /* pass 0 of the share, in this step */
	bool between;                     /* no step is begun: the state is X_at and nobody writes it */
	int64_t began_ns, idle_ns, computed_ns;       /* computed: of pass 0 of the share */
	uint32_t redone;                  /* virtual nodes computed again in this step */
	uint64_t step_ns;                 /* of the last step */
	uint64_t took[HD_ELASTIC_TOOK];   /* longest instructions of the last steps */
	uint32_t ntook;
	_Atomic uint64_t longest_ns;      /* the longest of them; any thread */
	_Atomic bool moving;              /* it is in a duty of many short parts; any thread */
	struct hd_lock notes_lock;
	struct hd_note note[HD_ELASTIC_NOTES];
	uint32_t nnotes;
};

extern const struct hd_wire_events hd_elastic_events;         /* elastic_io.c; `self` is the elastic */
/* elastic_compute.c: duties until QUIT. */
void hd_elastic_compute(struct hd_elastic *e);
/* elastic_io.c: the wire's thread. */
void hd_elastic_io(void *elastic);
/* elastic_act.c: one event into the machine, its actions carried out; others that come of it follow. */
void hd_elastic_feed(struct hd_elastic *e, const struct hd_member_event *event);
void hd_elastic_call(struct hd_elastic *e);           /* tries to reach the coordinator */
/* the wire's: this process must go */
void hd_elastic_fail(struct hd_elastic *e, enum hd_err err, const struct hd_diag *diag);
/* A bucket summed here because the hand computes; false: it is the hand's. */
bool hd_elastic_background_reduce(struct hd_elastic *e, const struct hd_share_fold *fold);
void hd_elastic_results(struct hd_elastic *e);        /* what the hand has done becomes events */
/* elastic_catchup.c: both ends of teaching, the wire's part. */
void hd_elastic_send_state(struct hd_elastic *e, uint32_t joiner, bool on);
void hd_elastic_send_state_standing(struct hd_elastic *e);         /* now and then */
/* TRANSFER is done */
void hd_elastic_transfer_done(struct hd_elastic *e, const struct hd_command_done *done);
void hd_elastic_asked(struct hd_elastic *e, uint32_t joiner, const uint8_t *bytes, uint32_t len);
void hd_elastic_answer(struct hd_elastic *e);         /* pieces that are there go to who asked */
void hd_elastic_chunk_sent(struct hd_elastic *e, const struct hd_sent *sent);
void hd_elastic_sync(struct hd_elastic *e, uint32_t source, uint64_t step);
void hd_elastic_promoted(struct hd_elastic *e);       /* it is a member now */
void hd_elastic_ask(struct hd_elastic *e);            /* for what is missing; also again, now and then */
void hd_elastic_chunk_here(struct hd_elastic *e, const struct hd_arrival *arrival);
/* an event; on the hand */
void hd_elastic_note(struct hd_elastic *e, const char *kind, const char *text);
void hd_elastic_chunk_done(struct hd_elastic *e, const struct hd_command_done *done);      /* CHUNK is done */
void hd_elastic_peer_lost(struct hd_elastic *e, uint32_t worker);
/* elastic_slots.c: slots of sharded state, from who holds to who lacks them; the wire's. */
HD_MUST_USE enum hd_err hd_elastic_slots_init(struct hd_elastic *e, struct hd_diag *diag);
void hd_elastic_slots_finish(struct hd_elastic *e);
/* of the own chains; then FETCHED */
void hd_elastic_slots_fetch(struct hd_elastic *e, uint64_t step);
/* all; then the duty again */
void hd_elastic_slots_gather(struct hd_elastic *e, const struct hd_command *boundary);
void hd_elastic_slots_saved(struct hd_elastic *e);    /* that duty is done */
void hd_elastic_slots_void(struct hd_elastic *e);      /* no fetch any more */
void hd_elastic_slots_forget(struct hd_elastic *e);    /* nothing any more: the state comes from elsewhere */
void hd_elastic_slots_ask(struct hd_elastic *e);      /* now and then */
/* it dropped something: what it is asked for is asked for again */
void hd_elastic_slots_again(struct hd_elastic *e, uint32_t worker);
void hd_elastic_slots_later(struct hd_elastic *e);    /* answers what waited for the step that is reached */
void hd_elastic_slots_asked(struct hd_elastic *e, uint32_t worker, const uint8_t *bytes, uint32_t len);
/* false: it is none of these */
bool hd_elastic_slots_here(struct hd_elastic *e, const struct hd_arrival *arrival);
bool hd_elastic_slots_sent(struct hd_elastic *e, const struct hd_sent *sent);
void hd_elastic_slots_lost(struct hd_elastic *e, uint32_t worker);

#endif
