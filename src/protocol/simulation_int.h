/* simulation_int.h -- the world of a simulated job; simulation.h says what is checked. */
#ifndef HD_PROTOCOL_SIMULATION_INT_H
#define HD_PROTOCOL_SIMULATION_INT_H

#include "base/arena.h"
#include "protocol/member.h"
#include "protocol/coordinator.h"
#include "protocol/simulation.h"

enum {
	SIM_PROCS = 14,                   /* workers alive at a time */
	SIM_CO = SIM_PROCS,               /* the coordinator's place among the ends of links */
	SIM_ENDS = SIM_PROCS + 1,
	SIM_VNS = 16,                     /* digits of a ledger number */
	SIM_BUCKETS = 8,
	SIM_SHAPES = 3,
	SIM_COPIED_RANKS = 6,             /* of a pipeline with copies, at most */
	SIM_FEWER = 3,                    /* shapes behind those: of two stages, three and one */
	SIM_STAGES = 6,
	SIM_STEPS = 4096,
	SIM_ROOTS = 64,
	SIM_WAITING = 256,
	SIM_STORING = 64,
	SIM_EPOCHS = 256,
	SIM_IDS = 4096,                   /* numbers given to workers */
};
#define SIM_MS INT64_C(1000000)
#define SIM_T  (1000 * SIM_MS)

/* a digit of 4 bits per virtual node; the state it came from */
struct sim_val { uint64_t units, tag; };
struct sim_root { bool here; struct sim_val val; };

/* Digests of the last steps that were heard, by parity, and since when two of one step differ; 0: they do
 * not. */
struct sim_heard { struct { uint64_t next, tag, held[SIM_BUCKETS]; } of[2]; int64_t torn_ns; };

/* Kinds of packets beside control messages. */
enum sim_kind { SIM_SEND, SIM_ROOT, SIM_SUM, SIM_LEAVES, SIM_TABLE, SIM_NORM, SIM_PARM, SIM_RATIO, SIM_SNAP,
	SIM_OVER, SIM_WANT, SIM_ASK_SLOT, SIM_SLOT };
struct sim_packet {
	enum sim_kind kind;
	uint32_t epoch, from, pass, ordinal, bucket;      /* from: worker id */
	uint32_t transfer;                  /* of WANT; of SNAP and OVER: of the WANT that they answer */
	uint64_t step;
	struct sim_val val;
	uint32_t msg_kind, len;                           /* of SEND */
	const uint8_t *bytes;
};

enum sim_event_kind { EV_PACKET, EV_UP, EV_LOST, EV_TASK, EV_TICK, EV_START, EV_FAULT, EV_REPLACE, EV_CORRUPT,
	EV_ASK, EV_RESHAPE, EV_FLAP, EV_UNHEED, EV_GOES,
	EV_STORED, EV_CO_START, EV_CO_TICK, EV_CO_EVENT, EV_CLOSE, EV_MISSED };
struct sim_world_event {
	int64_t at, due;                  /* due: first `at`, of what waited for a process that stood still */
	uint64_t seq;
	enum sim_event_kind kind;
	/* at which end; of which link, in which of its lives; of which process life */
	uint32_t end, other, gen, link;
	enum hd_suspicion why;
	uint32_t what, run;                               /* task: kind; fault; epoch */
	uint32_t pass, bucket;
	uint64_t step, number;
	const struct sim_packet *packet;
};

/* [0] of the lower end, or from it; closing: that end has not heard yet that the life before ended;
 * late_until: calls fail before it; 0: it was not called yet */
struct sim_link {
	uint32_t life;
	bool up, opening;
	int64_t last[2], mute_until[2];
	bool silent[2], closing[2];
	int64_t up_ns;
	uint32_t closing_worker[2], closing_life[2];
	int64_t late_until;
};

struct sim_proc {
	bool alive, paused, exited, remote;
	uint32_t zone;
	bool cut_off;                     /* the coordinator called it dead, with reason */
	/* run: counts CANCEL; tasks of an earlier one report nothing */
	uint32_t gen, id, epoch, decided, run, code;
	uint64_t ran;                     /* the first step that it ran, and 1; 0: none */
	int64_t began_ns, paused_until, busy_until;
	uint64_t nonce;
	struct hd_member *m;
	/* the state and the step's numbers */
	uint64_t version, tag;                            /* holds X_version */
	bool has_state;
	struct sim_heard heard;
	uint64_t known_tag;               /* as it was when its digest was taken; 0: it was not */
	struct sim_val own[HD_MAX_PASSES][SIM_BUCKETS];   /* whole pass, per bucket: units of its leaves */
	/* own_roots: not overwritten by the sum yet */
	bool own_here[HD_MAX_PASSES][SIM_BUCKETS], own_roots[SIM_BUCKETS];
	uint64_t pass_units[HD_MAX_PASSES];
	uint32_t pass_stage[HD_MAX_PASSES];
	/* in lockstep: the step, and 1, and the epoch in which all of its part was brought to the others;
	 * those in which it has all of theirs */
	uint64_t brought, met;
	uint32_t brought_epoch, met_epoch;
	struct sim_val sum[SIM_BUCKETS];
	bool sum_here[SIM_BUCKETS];
	struct { uint32_t worker, ordinal, bucket; struct sim_val val; } root[SIM_ROOTS * SIM_BUCKETS];
	uint32_t nroots;
	uint64_t table[SIM_STAGES];       /* entries of others */
	bool table_full;
	/* for an epoch or a step that is not here yet, in order */
	const struct sim_packet *waiting[SIM_WAITING];
	uint32_t nwaiting;
	uint32_t source_for[SIM_PROCS], nsource_for;        /* worker ids */
	uint32_t asked[SIM_PROCS];        /* the transfer that the process of that slot requested last */
	uint32_t over[SIM_PROCS];         /* the transfer of that slot that this source aborted */
	bool unheard;                     /* its source gave up, and it was no member since */
	/* transfer: its last one; earlier boundaries are not its own any more */
	uint32_t synced_from, transfer;
	uint32_t again_epoch;             /* of the last AGAIN */
	bool begun_here;                  /* the step at hand was begun by the view in force */
	uint64_t drained_at;              /* step + 1 in which it was asked to leave; 0: it was not */
	/* of a step that goes on: 1 + the next one, which is begun as well; in which epoch */
	uint64_t ahead; uint32_t ahead_epoch;
	uint32_t vain_epoch;              /* what it began there was in vain: it begins nothing more in it */
	uint32_t posted_epoch;            /* BEGIN or AGAIN of posted_step came in it: buffers are posted */
	uint64_t posted_step;
	bool posted;
	/* sharded state */
	uint64_t slot[SIM_BUCKETS];       /* of X_{slot - 1}; 0: not here */
	int64_t slot_ns[SIM_BUCKETS];     /* got from another at that time */
	/* state by stages: bits of it that flipped; of what was fetched for a checkpoint */
	uint64_t bad[SIM_BUCKETS], bad_saved;
	uint64_t bad_said[SIM_BUCKETS], bad_at;       /* when the digests of X_bad_at were made */
	bool norm_here[SIM_BUCKETS], parm_here[SIM_BUCKETS], squared[SIM_BUCKETS];
	bool measured[SIM_BUCKETS], ratio_here[SIM_BUCKETS];
	/* of the step that it stood in last */
	uint32_t stood, stood_rank[HD_VIEW_RANKS], stood_next[HD_VIEW_RANKS];
	uint64_t stood_step;
	bool stuck;                       /* it could not go on, or begin: it computes nothing */
	uint32_t want, want_epoch;        /* bits of buckets whose slots are being got */
	uint64_t want_step;
	bool saving;                      /* for `save`, at its boundary; else for a step */
	struct sim_world_event save;
};

struct sim_world {
	uint64_t seed, rng;
	int64_t now;
	uint64_t seq;
	struct sim_world_event *heap;
	size_t nheap, heap_cap;
	struct hd_arena arena;            /* packets of the run */
	struct hd_arena scratch;          /* of a message that is read */
	struct sim_proc proc[SIM_PROCS];
	struct sim_link link[SIM_ENDS][SIM_ENDS];         /* [lower][higher] */

	uint32_t nvns, nbuckets, copies, servers, min, max, target;
	/* stages: pipelines at most; the shapes that there are, by their schedule, and what each bucket is
	 * of; the one that is wanted (nstages 0: none) */
	uint32_t pipes;
	bool lockstep;
	struct hd_view_shape shape;
	struct sim_shape {
		struct hd_view_shape shape;
		struct hd_stage_buckets buckets;
		struct hd_stage_bucket bucket[SIM_BUCKETS];
		uint32_t first[SIM_BUCKETS + 1], of[2 * SIM_BUCKETS];     /* of tensors */
	} shapes[SIM_SHAPES + SIM_FEWER];
	uint64_t bucket_bytes[SIM_BUCKETS];
	/* by which owners are dealt, of half of the seeds; of the others by number */
	uint64_t moved[SIM_BUCKETS];
	bool by_bytes;
	uint64_t nsteps, halt_at, full;
	int64_t quiet_ns, slow_until, store_bad_until, step_ns;
	uint32_t faults;                  /* enabled */
	const struct hd_sim_death *death; /* NULL: none */
	uint32_t zone_left[2];            /* first workers that are still to come, by zone */
	uint32_t dies_in, dying;          /* HD_SIM_FIRST: actions until that worker is killed; 0: none */
	uint32_t unchains_in;             /* HD_SIM_UNCHAINED: buckets until it is one's turn; 0: none */
	uint32_t gives_up_in;                /* a source gives up at one of so many boundaries; 0: never */
	bool takers, reaper;              /* members may take over; the launcher sees its children end */

	struct hd_coordinator *co;
	/* transfers: of all, so that each has its number */
	uint32_t co_gen, guest, guest_of[SIM_PROCS], transfers;
	/* somebody: when a process of a worker of this machine was there, or about to be, the last time */
	int64_t co_killed_ns, somebody_ns;
	uint32_t nstarting;
	struct hd_co_record store;        /* durable */
	/* when the last record that was handed over is: one after another; its serial */
	int64_t store_ns;
	uint64_t handed;
	/* handed over, not known to be stored, in order */
	struct { const struct hd_co_record *record; bool ok; } storing[SIM_STORING];
	uint32_t nstoring;
	struct hd_view newest;            /* of the views that anybody adopted */
	struct { uint32_t epoch, n, member[HD_MAX_MEMBERS]; } planned;    /* as PREPARE named it last */
	/* of the view decided last: the last of its members' first steps that can say so in their SEALs */
	struct { uint32_t epoch; uint64_t step; } seen;
	/* the term that used an epoch, and for what */
	struct { uint32_t epoch, term; bool planned; } numbered[SIM_EPOCHS];
	uint64_t nonce_of[SIM_IDS];       /* the worker that got an id */
	uint64_t ckpt;                    /* newest step on disk */
	uint32_t co_epoch, held_epoch;

	uint64_t tag[SIM_STEPS + 1];      /* of X_s, once made; 0: not yet */
	uint64_t saved_tag[SIM_STEPS + 1];        /* of the checkpoint of that step; 0: none */
	uint64_t digest_every;            /* steps */
	uint64_t bad_from;                /* the step whose state flipped in part */
	/* a state was corrupted; a coordinator heard of it; no worker could notice, and the run went on */
	bool spoiled, known, escaped;
	struct sim_heard co_heard;
	uint64_t verified;                /* the newest step that was committed with a digest */
	uint64_t committed, commit_mark;
	int64_t commit_ns, small_ns;      /* small: when as many were members as are wanted, the last time */
	struct { uint32_t epoch; struct hd_hash hash; } views[256];
	/* the worker that computed that leaf of `making` last */
	struct { uint32_t gen; uint32_t slot; } maker[SIM_VNS];
	/* what BEGIN said, by step: which step, in which epoch */
	struct sim_said { uint64_t step; uint32_t epoch; bool ahead, goes_on; } said[4];
	uint64_t making;
	bool over, asked_to_halt, gave_up;
	uint32_t over_code;
	bool drained;                     /* a worker was asked to leave: the last one ends the job with 75 */
	bool scaled;                      /* another number was wanted: workers may be asked to leave */
	struct hd_sim_result *result;
	hd_sim_line *line;
	void *self;
	bool no_memory;
};

/* hd_shape_buckets; `self` is the world */
static inline const struct hd_stage_buckets *sim_of_shape(void *self, const struct hd_view_shape *shape)
{
	const struct sim_world *s = self;
	const struct sim_shape *of = &s->shapes[shape->schedule % (SIM_SHAPES + SIM_FEWER)];

	return hd_view_same_shape(&of->shape, shape) ? &of->buckets : NULL;
}
static inline bool sim_partial(const struct sim_world *s)
{
	return hd_state_is_partial(s->shape.nstages ? &s->shapes[0].buckets : NULL, s->copies);
}
/* Does no pass end before all members compute? */
static inline bool sim_meets(const struct sim_world *s)
{
	return s->lockstep || s->seed & HD_SIM_GOING_ON;
}
/* Pairs add where others compare: a state that was corrupted would be mixed in another way. */
static inline bool sim_has_pairs(const struct sim_world *s)
{
	return s->seed & HD_SIM_PAIRED && !(s->seed & HD_SIM_CORRUPT);
}
/* Do stages update before the norm, and is that step skipped? */
static inline bool sim_early(const struct sim_world *s) { return s->shape.nstages && s->seed / 2 % 3 == 1; }
/* Of any view; `self` is the world. */
static inline bool sim_is_early(void *self, const struct hd_view *view)
{
	(void)view;
	return sim_early(self);
}
static inline bool sim_skips(const struct sim_world *s, uint64_t step)
{
	return sim_early(s) && (step + s->seed) % 7 == 3;
}
uint64_t sim_rnd(struct sim_world *s, uint64_t n);                      /* 0 .. n - 1 */
static inline int64_t sim_between(struct sim_world *s, int64_t from, int64_t to)
{
	return from + (int64_t)sim_rnd(s, (uint64_t)(to - from) + 1);
}
static inline struct sim_link *sim_link_of(struct sim_world *s, uint32_t a, uint32_t b)
{
	return a < b ? &s->link[a][b] : &s->link[b][a];
}
static inline bool sim_end_alive(const struct sim_world *s, uint32_t end)
{
	return end == SIM_CO ? s->co != NULL : s->proc[end].alive;
}
__attribute__((format(printf, 3, 4))) void sim_bad(struct sim_world *s, const char *invariant,
	const char *fmt,
	...);
__attribute__((format(printf, 2, 3))) void sim_say(struct sim_world *s, const char *fmt, ...);
void sim_end(struct sim_world *s, uint32_t slot, bool kindly);
void sim_kill_worker(struct sim_world *s, uint32_t slot);
void sim_start(struct sim_world *s, int64_t in_ns);

void sim_come(struct sim_world *s, bool unasked);                       /* a process of a worker */
void sim_co_step(struct sim_world *s, const struct hd_co_event *event);
void sim_co_kill(struct sim_world *s);

/* simulation_faults.c */
void sim_fault(struct sim_world *s, enum hd_sim_fault kind);
void sim_replace(struct sim_world *s, bool really);
/* after each action of a worker, or of the coordinator: the one that is to die then does */
void sim_die(struct sim_world *s, uint32_t end);
/* New parameters of a bucket went out: HD_SIM_UNCHAINED. May end any process. */
void sim_unchain(struct sim_world *s, uint32_t slot, uint32_t bucket);
void sim_check_covered(struct sim_world *s);
void sim_reshape(struct sim_world *s, uint32_t schedule, uint32_t pipes);
void sim_corrupt(struct sim_world *s);
void sim_scale_again(struct sim_world *s);
void sim_flap(struct sim_world *s);
void sim_goes(struct sim_world *s, uint32_t slot);                      /* its machine does */
/* the link of that end to the coordinator is gone until then */
void sim_unheed(struct sim_world *s, uint32_t slot, int64_t until_ns);
void sim_check_expelled(struct sim_world *s, const struct hd_co_action *note);

/* simulation_zones.c */
static inline bool sim_loses_zone(const struct sim_world *s)
{
	return s->seed & HD_SIM_ZONED && s->seed & HD_SIM_FIRST;
}
/* Of a worker that comes. */
uint32_t sim_draw_zone(struct sim_world *s);
void sim_kill_zone(struct sim_world *s, uint32_t zone);
void sim_check_zones(struct sim_world *s, const struct hd_view *view);

/* simulation_draw.c: `only`: the faults that are enabled, of those that were drawn */
void sim_draw(struct sim_world *s, uint32_t only);

/* simulation_links.c */
void sim_push(struct sim_world *s, struct sim_world_event event);
struct sim_world_event sim_pop(struct sim_world *s);
void sim_send(struct sim_world *s, uint32_t from, uint32_t to, const struct sim_packet *packet);
void sim_send_msg(struct sim_world *s, uint32_t from, uint32_t to, const struct hd_msg *msg);
void sim_connect(struct sim_world *s, uint32_t a, uint32_t b);
void sim_close(struct sim_world *s, uint32_t a, uint32_t b, bool after_sent);
bool sim_up(struct sim_world *s, uint32_t a, uint32_t b);
uint32_t sim_slot(const struct sim_world *s, uint32_t worker);          /* or SIM_ENDS */
void sim_report_lost(struct sim_world *s, uint32_t end, uint32_t other, int64_t at, enum hd_suspicion why,
	uint32_t life);

/* simulation_takeover.c */
/* It is handed over, known to be stored, if it is, in that time. */
void sim_store(struct sim_world *s, const struct hd_co_record *record, bool ok, int64_t in_ns);
/* the coordinator hears of the oldest that was handed over */
void sim_stored(struct sim_world *s);
void sim_store_cut(struct sim_world *s);                                /* it is killed, and hears of none */
/* what the coordinator says is stored */
void sim_check_said(struct sim_world *s, const struct hd_msg *msg);
void sim_check_takeover(struct sim_world *s);                           /* the one that was just made */
void sim_check_taken_over(struct sim_world *s);                         /* whoever may and is there has */
void sim_check_empty(struct sim_world *s);
void sim_check_named(struct sim_world *s);                              /* the record, and the view */

/* simulation_worker.c */
void sim_member(struct sim_world *s, uint32_t slot, const struct hd_member_event *event);
void sim_task(struct sim_world *s, uint32_t slot, const struct sim_world_event *ev);

/* simulation_failover.c */
static inline uint32_t sim_least(const struct sim_world *s) { return s->seed & HD_SIM_LEAST ? 2 : 1; }
/* hd_fewer_stages; `self` is the world */
bool sim_fewer(void *self, const struct hd_fewer_ask *ask, struct hd_view_shape *fewer);
/* Has it not the memory for that view? */
bool sim_is_unfit(const struct sim_world *s, uint32_t slot, const struct hd_view *view);
/* of what the coordinator says: rule 18 of coordinator.h */
void sim_check_refused(struct sim_world *s, const struct hd_msg *msg);
/* hd_goes_on; `self` is the world */
bool sim_goes_on(void *self, const struct hd_view *view, const uint32_t *next, const uint8_t *arrived,
	const bool *lost);

/* simulation_sums.c */
uint64_t sim_tag(struct sim_world *s, uint64_t step);                   /* of X_step, undisturbed */
void sim_hear(struct sim_world *s, struct sim_heard *heard, const struct hd_msg *msg);

/* simulation_state.c */
/* now and then, as the runtime does */
void sim_send_state_standing(struct sim_world *s, uint32_t slot);
void sim_ask_again(struct sim_world *s, uint32_t slot);

/* simulation_packets.c */
void sim_packet_in(struct sim_world *s, uint32_t slot, uint32_t from_slot, const struct sim_packet *packet);
void sim_peer_up(struct sim_world *s, uint32_t slot, uint32_t other);
void sim_peer_lost(struct sim_world *s, uint32_t slot, uint32_t worker);

#endif
