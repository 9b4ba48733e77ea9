/* elastic_int.h -- what the two threads of an elastic worker share; not for other rooms. */
#ifndef HD_WORKER_ELASTIC_INT_H
#define HD_WORKER_ELASTIC_INT_H

#include "sys/memory.h"
#include "sys/thread.h"
#include "wire/hub.h"
#include "protocol/member.h"
#include "run/pipe_set.h"
#include "worker/command.h"
#include "worker/elastic.h"
#include "worker/finals.h"
#include "worker/later.h"
#include "worker/relay.h"
#include "worker/step_time.h"
#include "worker/catchup.h"

enum {
	/* a joiner's control message: number of the chunk that it wants */
	HD_ASK_ID = HD_TELL_ASKS,
	/* of a member that lacks slots: step, request, bucket (elastic_slots.c) */
	HD_ASK_SLOTS_ID = HD_TELL_ASKS + 1,
	/* of a coordinator: u64 first step, u64 how many; of none: a copy of the flight file */
	HD_RECORD_ID = HD_ELASTIC_RECORD,
	HD_READ_ID = HD_ELASTIC_READ,
	HD_ELASTIC_SLOTS = HD_PIPES_FETCHED,      /* buckets' slots requested at a time */
	/* requests of others that wait for a step, or for an answer to be sent */
	HD_SLOTS_LATER = HD_MAX_MEMBERS * HD_ELASTIC_SLOTS,
	HD_ELASTIC_TRANSFERS = 4,            /* state transfers at a time */
	HD_ELASTIC_ASKED = 2,             /* chunks requested at a time */
	HD_ELASTIC_CHUNKS = 8,           /* buffers for them: those of earlier sources may be open */
	HD_ELASTIC_EVENTS = 1024,         /* of the machine, waiting */
	HD_ELASTIC_NOTES = 64, HD_ELASTIC_TOOK = 64, HD_ELASTIC_SLOW_MFLOPS = 500,
	HD_ELASTIC_BUSY_QUEUE = 64,            /* with more events waiting the I/O thread sums no buckets */
	HD_ELASTIC_NEWS = 4,              /* of steps: a member is at most one ahead */
};

_Static_assert((int)HD_MSG_NKINDS <= (int)HD_READ_ID, "messages of the protocol ask for no bulk");

struct hd_note { char kind[32], json[1500]; };

/* A chunk on its way to a joiner: number n is in entry n mod HD_ELASTIC_ASKED until n + HD_ELASTIC_ASKED
 * is requested, which shows that n arrived. */
struct hd_chunk_out { struct hd_catchup_chunk *chunk; uint64_t number, request; bool asked, sending; };

struct hd_transfer_out {                        /* a state transfer to a joiner */
	uint32_t worker;                  /* HD_NOBODY: free */
	/* the compute thread has made the source; the I/O thread needs no more; the compute thread has
	 * destroyed it */
	bool made, ended, let_go;
	/* made and destroyed, as is `joiner`, by the compute thread; the I/O thread takes chunks between
	 * made and ended */
	struct hd_catchup_source source;
	uint32_t joiner;
	uint64_t taken;                   /* number of the next chunk to take */
	struct hd_chunk_out out[HD_ELASTIC_ASKED];
};

/* A joiner's buffer: expected from `worker` (open), filled (here), with the compute thread (applying),
 * or free. One that is open when the source changes stays open until it is filled or that link is lost. */
struct hd_chunk_in { uint8_t *bytes; uint32_t worker, transfer_round; uint64_t number, request,
	len; int64_t asked_ns;
	bool open, here, applying; };

/* Slots of sharded state requested from others. A request of an earlier round stays open until its
 * answer comes or its link is lost. */
struct hd_slots_ask { uint32_t worker, bucket, round; uint64_t request; int64_t asked_ns; bool open; };
/* Requested for a step that is not begun here yet, or while another answer is on its way: answered after
 * that. */
struct hd_slots_later { uint64_t step, request; uint32_t worker, bucket; };
/* whole: an answer with slots, which uses the place for answers */
struct hd_slots_out { struct hd_slots_out *next; uint32_t worker; uint64_t request; bool whole; };
enum hd_slots_work {
	HD_SLOTS_IDLE,
	HD_SLOTS_FETCH,                   /* those of the own chains come, for the step at hand */
	HD_SLOTS_GATHER,                  /* all come, for `boundary` */
	HD_SLOTS_SAVE,                    /* the compute thread has `boundary`, with all of them */
};
struct hd_slots {
	enum hd_slots_work now;
	bool fetch_due, gather_due;       /* and wait for their turn */
	bool fetch_read;                  /* what the own stages read alone */
	uint64_t step, fetch_step;
	uint32_t fetch_epoch, round, left, tries;
	uint64_t fetched;                 /* bytes of this fetch that came */
	uint8_t *want;                    /* owned: [nbuckets] */
	/* owned: [nbuckets] that were here before; the compute thread's while it saves */
	uint8_t *keep;
	/* owned: [nbuckets] updated by the last UPDATE; the compute thread's until its FINISH */
	uint8_t *own, *brings;
	uint64_t *held;                   /* owned: [nbuckets] digests that the last FINISH made */
	struct hd_command boundary;
	/* HD_PIPES_MOVED places, each for the largest bucket: one for each of ask[], then that for answers */
	struct hd_memory memory;
	struct hd_slots_ask ask[HD_ELASTIC_SLOTS];
	struct hd_slots_out *out;         /* owned: being sent */
	bool answering;                   /* one of these uses the place for answers */
	struct hd_slots_later later[HD_SLOTS_LATER];
	uint32_t nlater;
	/* the last answers that were sent whole */
	struct hd_slots_answered { uint64_t request; uint32_t worker; } answered[HD_SLOTS_LATER];
	uint32_t nanswered;
};

/* What the own instructions have taken under the plan in use (HD_MSG_SPENT). The compute thread counts at the
 * end of FINISH; then `said` is the I/O thread's until it gives the next one. */
struct hd_elastic_spent {
	struct hd_spent_kind *base, *said;        /* owned: [HD_MSG_SPENTS] */
	uint32_t nkinds, n;               /* of base: at the end of its first step; of said; 0: nothing is */
	bool begun;                       /* there was a first step of the plan */
	bool rested;                      /* the step at hand was gone on with by other lists */
};

/* next_ns: of the window at hand, its end; 0: none was begun. depth: as the coordinator orders; 0: it does
 * not. */
struct hd_elastic_reading { int64_t next_ns, ordered_ns; uint32_t depth; };

struct hd_elastic {
	const struct hd_elastic_spec *spec;
	struct hd_run *run;
	struct hd_worker *worker;
	const struct hd_task *task;
	uint32_t nbuckets, copies;        /* copies: of sharded state; else 0 */
	bool partial;                     /* members hold parts of the state: sharded, or by stages */
	int64_t detect_ns;                /* T */
	int64_t pace_ns;                  /* workers.pace */

	/* of the I/O thread, or of the thread that has the turn (elastic_turn.c) */
	struct hd_lock turn;
	_Atomic bool comes_back;          /* the I/O thread waits for the turn */
	_Atomic bool alone;               /* as the compute thread saw when it had the turn last */
	struct hd_loop loop;
	struct hd_net net;
	struct hd_hub hub;
	struct hd_member *member;
	struct hd_relay relay;            /* parts are the compute thread's, see relay.h */
	struct hd_thread wire;
	struct hd_recorder *recorder;     /* of the run, borrowed; NULL: off */
	struct hd_burst burst;            /* of the coordinator's clock */
	uint64_t step;                    /* begun last */
	struct hd_arena messages;         /* of the message being decoded */
	uint8_t *room;                    /* HD_TELL_MAX: a message to be sent */
	struct hd_later later;            /* seals for the coordinator */
	struct hd_member_event queue[HD_ELASTIC_EVENTS];
	uint32_t first, nqueued;
	bool stepping;
	struct hd_step_news news[HD_ELASTIC_NEWS];
	uint32_t nnews;
	struct hd_hub_stats sent;         /* by the hub, as the newest news says */
	/* own worker id; HD_NOBODY before ADMITTED; set by the I/O thread, read by any */
	_Atomic uint32_t self;
	/* the id under which to call again once the link is down; HD_NOBODY */
	uint32_t readmit;
	uint32_t folds_open;
	/* BEGINs that the compute thread has not done: until then its results are of a cancelled step */
	uint32_t begins_open;
	/* counts steps that were cancelled, or gone on with: what was said of them is void */
	uint32_t round;
	struct hd_view opened;            /* of the step begun last; epoch 0: none */
	/* 1 + the step whose metrics are all here, as the compute thread knows; 0: of none */
	uint64_t metrics_said;
	uint32_t direct_epoch;            /* of which it was said that partial sums go direct */
	bool open_pending;                /* the exchange opens when the compute thread has begun the step */
	bool leaving, fenced, drained;
	bool noticed;                     /* drained by a notice (elastic_notice.c) */
	bool stopped;                     /* asked to leave by what runs it, as by a signal */
	bool given_up;                    /* by a notice too short for the step: its links close at once */
	/* begin of the step at hand; what the last whole one took; 0: none */
	int64_t step_from_ns, step_took_ns;
	struct hd_elastic_reading reading;
	char notice_why[HD_NOTICE_TEXT + 32];
	uint32_t exit_code;
	char exit_text[HD_MSG_TEXT + 1], text[HD_MSG_TEXT + 1];
	char address[HD_ELASTIC_ADDR];
	struct hd_transfer_out transfer[HD_ELASTIC_TRANSFERS];
	/* joiners that the coordinator named, the oldest first: served whenever they ask */
	uint32_t named[HD_MAX_MEMBERS], nnamed;
	bool standing_open;                    /* TRANSFER to HD_NOBODY is with the compute thread */
	uint32_t source;                   /* the source of the present transfer; HD_NOBODY */
	uint64_t next_chunk;              /* number of the chunk to apply next */
	struct hd_chunk_in chunk[HD_ELASTIC_CHUNKS];  /* bytes owned */
	uint64_t next_request;
	struct hd_slots slots;
	/* the last chunk made X_step whole, and no chunk that may change it is with the compute thread */
	bool whole;
	/* counts sources; results of an earlier one's chunks are void */
	uint32_t transfer_round;
	enum hd_err io_err;
	struct hd_diag io_diag;
	struct hd_diag refused;           /* why a view's plan was not taken; said before the links close */
	struct hd_diag unfit_why;         /* likewise, of the view that was refused last */

	/* of the compute thread */
	struct hd_commands commands;
	struct hd_finals finals;          /* of the pass it computes; devices note, the I/O thread fetches */
	struct hd_finals early;           /* likewise: new parameters before UPDATE, of the step */
	struct hd_pipe_set pipes;         /* any thread */
	struct hd_arena plan_arena[2];
	struct hd_plan plan[2];
	uint32_t plan_now;                /* of the two, the one in use */
	struct hd_view adopted, prepared; /* epoch 0: none */
	struct hd_catchup_sink sink;
	bool memory_reported;                 /* the memory of the first view was reported */
	bool overlap_said;                /* whether steps overlap, or why they do not */
	bool unkept;                      /* a plan could not be written, and that was reported */
	bool touched;                     /* the state is not the initial one any more */
	bool synced;                      /* the state came from a source: the reader must go there */
	const uint8_t *owns;              /* of the last UPDATE */
	/* of the last STOP: the I/O thread's from its result to the next one */
	struct hd_elastic_stood {
		uint32_t nranks, narrived, rank[HD_VIEW_RANKS], next[HD_VIEW_RANKS];
		uint8_t *arrived; uint64_t cap;   /* owned */
		struct hd_member_stood said;      /* to the machine */
	} stood;
	bool computed;                    /* pass 0 of the part, in this step */
	bool stale;                       /* and its pipeline was fenced */
	bool unfit;                       /* the step could not be begun for want of memory */
	/* a step could not be begun: this worker leaves, what is queued is not done */
	bool broken;
	bool between;                     /* no step is begun: the state is X_at and does not change */
	struct hd_step_time time;
	uint32_t redone;                  /* virtual nodes computed again in this step */
	uint64_t step_ns;                 /* of the last step */
	struct hd_elastic_spent spent;
	uint64_t took[HD_ELASTIC_TOOK];   /* longest instructions of the last steps */
	uint32_t ntook;
	_Atomic uint64_t longest_ns;      /* the longest of them; any thread */
	_Atomic bool moving;              /* it is in a command of many short parts; any thread */
	/* 1 + the bucket for which it stands still; 0: for none. The transfer that it waits for, as the I/O
	 * thread found it; HD_NOBODY: none */
	_Atomic uint32_t lacks, awaits;
	bool keeps_order;                 /* comm.order is strict: nothing is wanted before its turn */
	_Atomic bool ahead;               /* it runs ahead (dist.h), until a command comes; any thread */
	struct hd_lock notes_lock;
	struct hd_note note[HD_ELASTIC_NOTES];
	uint32_t nnotes;
};

extern const struct hd_wire_events hd_elastic_events;         /* elastic_io.c; `self` is the elastic */
/* elastic_compute.c: the compute thread: commands until QUIT. */
void hd_elastic_compute(struct hd_elastic *e);
/* elastic_io.c: the I/O thread. */
void hd_elastic_io(void *elastic);
/* elastic_act.c: one event into the machine, its actions carried out; others that come of it follow. */
void hd_elastic_feed(struct hd_elastic *e, const struct hd_member_event *event);
void hd_elastic_call(struct hd_elastic *e);           /* tries to reach the coordinator */
/* What waits for the coordinator is said. */
void hd_elastic_say_later(struct hd_elastic *e);
/* elastic_turn.c: which thread runs the machine */
void hd_elastic_yield(void *elastic, bool rests);      /* of the loop */
void hd_elastic_done(void *elastic);      /* of commands: a result lies there */
/* what results, mail and notes make due; with the turn */
void hd_elastic_go_on(struct hd_elastic *e);
/* of the I/O thread */
void hd_elastic_fail(struct hd_elastic *e, enum hd_err err, const struct hd_diag *diag);
/* A bucket summed on the I/O thread while the compute thread computes; false: the compute thread has to. */
bool hd_elastic_background_reduce(struct hd_elastic *e, const struct hd_dist_fold *fold);
void hd_elastic_results(struct hd_elastic *e);        /* results of the compute thread become events */
/* Before this process ends of a plan that it cannot take: the next one would, too, if that plan stayed. Once;
 * not as an event, which waits behind those at hand and is dropped with them. */
void hd_elastic_say_refused(struct hd_elastic *e);
/* elastic_failover.c: of the compute thread */
HD_MUST_USE enum hd_err hd_elastic_stand(struct hd_elastic *e, const struct hd_command *d,
	struct hd_command_done *done, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_elastic_rest(struct hd_elastic *e, const struct hd_command *d,
	struct hd_command_done *done, struct hd_diag *diag);
/* of the I/O thread: what came of STOP */
void hd_elastic_stopped(struct hd_elastic *e, const struct hd_command *d);
/* elastic_catchup.c: both ends of a state transfer; I/O thread. */
void hd_elastic_send_state(struct hd_elastic *e, uint32_t joiner, bool on);
void hd_elastic_send_state_standing(struct hd_elastic *e);         /* now and then */
/* TRANSFER is done */
void hd_elastic_transfer_done(struct hd_elastic *e, const struct hd_command_done *done);
void hd_elastic_asked(struct hd_elastic *e, uint32_t joiner, const uint8_t *bytes, uint32_t len);
/* the source serves this joiner from now on: what it asked before may have been dropped */
void hd_elastic_invited(struct hd_elastic *e, uint32_t source);
void hd_elastic_answer(struct hd_elastic *e);         /* sends chunks that are requested and ready */
void hd_elastic_chunk_sent(struct hd_elastic *e, const struct hd_sent *sent);
void hd_elastic_sync(struct hd_elastic *e, uint32_t source, uint64_t step);
void hd_elastic_promoted(struct hd_elastic *e);       /* it is a member now */
void hd_elastic_ask(struct hd_elastic *e);            /* requests what is missing; repeated now and then */
void hd_elastic_chunk_here(struct hd_elastic *e, const struct hd_arrival *arrival);
/* an event; any thread */
void hd_elastic_note(struct hd_elastic *e, const char *kind, const char *text);
void hd_elastic_note_json(struct hd_elastic *e, const char *kind, const char *json);      /* an object */
void hd_elastic_chunk_done(struct hd_elastic *e, const struct hd_command_done *done);      /* CHUNK is done */
void hd_elastic_peer_lost(struct hd_elastic *e, uint32_t worker);
/* elastic_notice.c: news of the agent of notices; I/O thread, but for the last, which is asked at the end. */
void hd_elastic_look_at_notices(struct hd_elastic *e);
void hd_elastic_look_at_stop(struct hd_elastic *e);   /* was this process asked to leave, as by a signal? */
bool hd_elastic_comes_back(const struct hd_elastic *e);
/* elastic_spent.c: a worker whose plan has more kinds of instructions than a message may say nothing. */
HD_MUST_USE enum hd_err hd_elastic_spent_init(struct hd_elastic *e, struct hd_diag *diag);
void hd_elastic_spent_finish(struct hd_elastic *e);
void hd_elastic_spent_count(struct hd_elastic *e);            /* compute thread */
void hd_elastic_spent_say(struct hd_elastic *e, uint64_t step);         /* I/O thread */
/* elastic_slots.c: slots of sharded state, from holders to members that lack them; I/O thread. */
HD_MUST_USE enum hd_err hd_elastic_slots_init(struct hd_elastic *e, struct hd_diag *diag);
void hd_elastic_slots_finish(struct hd_elastic *e);
/* of the own chains; then FETCHED */
/* `read`: what the own stages read alone */
void hd_elastic_slots_fetch(struct hd_elastic *e, uint64_t step, bool read);
/* all; then the command again */
void hd_elastic_slots_gather(struct hd_elastic *e, const struct hd_command *boundary);
void hd_elastic_slots_saved(struct hd_elastic *e);    /* that command is done */
/* another member saves now: what is gathered is given up, and that boundary ends without it */
void hd_elastic_slots_unsaved(struct hd_elastic *e);
void hd_elastic_slots_void(struct hd_elastic *e);      /* no fetch any more */
void hd_elastic_slots_forget(struct hd_elastic *e);    /* nothing any more: the state comes from elsewhere */
void hd_elastic_slots_ask(struct hd_elastic *e);      /* now and then */
/* it dropped something: the open requests are repeated */
void hd_elastic_slots_again(struct hd_elastic *e, uint32_t worker);
void hd_elastic_slots_later(struct hd_elastic *e);    /* answers what waited for the step that is reached */
void hd_elastic_slots_asked(struct hd_elastic *e, uint32_t worker, const uint8_t *bytes, uint32_t len);
/* false: it is none of these */
bool hd_elastic_slots_here(struct hd_elastic *e, const struct hd_arrival *arrival);
bool hd_elastic_slots_sent(struct hd_elastic *e, const struct hd_sent *sent);
/* Another view comes into force: the answer to a worker that is no member any more is not waited for. */
void hd_elastic_slots_view(struct hd_elastic *e, const struct hd_view *was, const struct hd_view *now);
void hd_elastic_slots_lost(struct hd_elastic *e, uint32_t worker);

/* elastic_reading.c: how this worker is served by its store; I/O thread */
void hd_elastic_look_at_reading(struct hd_elastic *e);        /* at each look */
void hd_elastic_read_ordered(struct hd_elastic *e, const struct hd_message *message);

/* elastic_record.c: into the recording of the run, if there is one */
uint64_t hd_elastic_stamp(void *self);                  /* of the hub's probes */
void hd_elastic_record_sent(struct hd_elastic *e, const struct hd_sent *sent);
void hd_elastic_record_arrived(struct hd_elastic *e, const struct hd_arrival *arrival);
void hd_elastic_record_link(struct hd_elastic *e, uint32_t worker, bool up);
void hd_elastic_probe(struct hd_elastic *e);            /* at each turn: if a burst is due */
void hd_elastic_record_probed(struct hd_elastic *e, const struct hd_probe *probe);
void hd_elastic_record_asked(struct hd_elastic *e, const struct hd_message *message);
void hd_elastic_record_view(struct hd_elastic *e, const struct hd_view *view);
/* the compute thread: it waited from `began` to now, for that */
void hd_elastic_waited(struct hd_elastic *e, uint64_t began, enum hd_command_kind came);
/* Before the compute thread waits for a command: for which bucket; of the I/O thread: it asks for that. */
void hd_elastic_lacks(struct hd_elastic *e);
void hd_elastic_want(struct hd_elastic *e);

#endif
