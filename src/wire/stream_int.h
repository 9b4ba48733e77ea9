/* stream_int.h -- what the files of the stream share (private to the room). */
#ifndef HD_WIRE_STREAM_INT_H
#define HD_WIRE_STREAM_INT_H

#include "sys/memory.h"
#include "wire/frame.h"
#include "wire/stream.h"

#define NONE32 UINT32_MAX             /* no job, row, place */
enum {
	ENTRIES = HD_STREAM_VECS / 2,
	HEAD_CAP = 256,                   /* BYE with its text is the longest: 252 */
	STAGE_CAP = 4096,
	/* read beside a payload: enough for the frames between two chunks */
	STAGE_BESIDE = 512,
	DRAIN_CAP = 64 << 10,
	TELL_RING = 2 * HD_TELL_MAX + (64 << 10),
	NOTE_TYPES = 3, NOTES = NOTE_TYPES * HD_STREAMS_OPEN,
};

/* ---- out ---- */

enum job_state {
	JOB_FREE,         /* in the free list */
	JOB_WAITING,      /* planned, without a grant: in its row's queue */
	JOB_READY,        /* in the heap of its class */
	JOB_SPENT,        /* all of it committed, not all written */
	/* ended early, in `ending`: `sent` is due when nothing of it is committed any more */
	JOB_STOPPED,
};

/* A queued send or answer. */
struct out_job {
	enum job_state state;
	enum hd_stream_kind kind;
	int32_t priority;
	uint64_t arrival;
	uint32_t stream;                  /* 0: not opened */
	uint32_t row, transfer;
	uint32_t heap_at, next;           /* place in the heap; next in a queue */
	uint32_t committed;               /* entries not written yet */
	uint64_t request, at, len;        /* at: bytes committed */
	uint64_t nth;                     /* of its row in this epoch, from 1; 0: not opened, or bulk */
	uint64_t step;
	const uint8_t *bytes;             /* borrowed */
	struct hd_sent sent;
};

struct queue { uint32_t first, last; };

/* A control message in the ring, 8-aligned; its bytes follow. space: of both. */
struct ring_msg { uint64_t step; uint32_t id, len, space; };

/* A frame that is committed: header and small payload in `head`, the rest where it lies. */
struct out_frame {
	uint8_t head[HEAD_CAP];
	const uint8_t *bytes;
	size_t head_len, len, gone;       /* gone: of head and bytes, written */
	uint32_t job;                     /* NONE32: none */
	bool ends_msg, bye;
};

struct heap { uint32_t *at, n; };

/* opened: streams in this epoch; wanted: the next to be sent has wanted_priority */
struct out_row { uint32_t id, grants, granted; uint64_t bytes, opened; int32_t wanted_priority; bool wanted;
	struct queue waiting; };

/* ---- in ---- */

struct posted { void *buffer; int64_t at_ns; };

/* granted: grants the sender still has; owed: grants not sent yet; posts [0, n_posts) have no stream yet,
 * under_way have one. opened: streams in this epoch; wanted: of them and the next, the last that advice was
 * given on before it began. */
struct in_row { uint32_t id, granted, owed, n_posts, under_way; uint64_t bytes, opened, wanted;
	struct posted posts[HD_GRANTS_MAX]; int32_t wanted_priority; bool in_owing; };

struct incoming {
	uint32_t stream;
	enum hd_stream_kind kind;
	uint8_t class;
	uint32_t row, chunks, control_id, epoch;
	uint64_t request, total, got, flow, step;
	uint8_t *buffer;
	int64_t posted_ns, first_ns;
	int32_t priority;
};

/* refused: the answer is cancelled when it begins */
struct expected { uint64_t request, cap; void *buffer; int64_t at_ns; bool used, refused; };

/* CANCEL, CANCELLED or PRIO to go. PRIO of stream 0: of the nth of the transfer. */
struct note { enum hd_frame_type type; uint32_t stream, transfer; uint8_t class; int32_t priority;
	enum hd_cancel_reason reason; uint64_t sent, nth; };

enum where { AT_HEADER, AT_SMALL, AT_DATA };

/* Fields stand by subject, not by size. */
struct hd_stream {        /* NOLINT(clang-analyzer-optin.performance.Padding) */
	struct hd_stream_config config;
	struct hd_wire_events events;
	struct hd_memory block;           /* owned: all arrays below but the rows */
	uint32_t epoch, next, peer_epoch;
	uint32_t heard_epoch;             /* the greatest that the peer has named */
	struct hd_hash plan, peer_plan;
	bool has_channel, peer_has_epoch, open;       /* open: both EPOCH frames agree */
	enum hd_close doomed;
	struct hd_hub_stats stats;

	/* out */
	struct out_job *jobs;
	uint32_t free_job, n_jobs;
	uint32_t fresh_job;               /* from here on no job ever was, and no page of `jobs` is there */
	struct heap heap[HD_CLASSES];     /* [1] planned, [2] bulk */
	struct queue ending;
	uint64_t arrivals;
	uint32_t last_stream, n_open[HD_CLASSES], last_chunk_of;
	struct out_row *out_rows;         /* owned */
	uint32_t n_out_rows;
	uint64_t credit[HD_CLASSES];
	uint64_t debt;                    /* bytes of class 1 that went while class 2 waited */
	uint8_t *ring;                    /* TELL_RING */
	/* oldest, free, to be committed; where the top part ends, 0: not wrapped */
	size_t ring_first, ring_end, ring_next, ring_wrap;
	uint32_t n_ring, n_msgs;          /* messages in the ring; of them not wholly committed */
	uint32_t msg_at, msg_stream, msg_epoch;    /* of the one being committed */
	struct out_frame entries[ENTRIES];
	uint32_t first_entry, n_entries;
	size_t committed_bytes;
	bool ping_due, pong_due, epoch_due, bye_due, bye_committed, bye_written;
	uint64_t pong_t1, pong_t2;
	enum hd_close bye_why;
	char bye_text[HD_BYE_TEXT + 1];
	uint64_t owed_credit[HD_CLASSES];
	uint32_t *owing_rows;             /* ring of in_rows that owe grants: n_in_rows */
	uint32_t first_owing, n_owing;
	struct note *notes;               /* ring: NOTES */
	uint32_t first_note, n_notes;
	uint32_t chunk;
	uint64_t goodput;                 /* bytes per ms; 0: not known */
	bool busy;
	int64_t busy_ns;
	uint64_t busy_bytes;

	/* in */
	struct in_row *in_rows;           /* owned, with owing_rows */
	uint32_t n_in_rows;
	struct incoming *incoming;        /* HD_STREAMS_OPEN, by place */
	/* places of those under way, by rising stream; behind them the free places */
	uint16_t *order;
	uint32_t n_incoming, highest;
	struct expected expected[HD_EXPECT_MAX];
	uint64_t window[HD_CLASSES];      /* what the peer may still send */
	uint8_t stage[STAGE_CAP];
	size_t stage_at, stage_len;       /* bytes [at, len) wait */
	enum where where;
	struct hd_frame frame;            /* being read */
	uint8_t *dest;
	uint32_t left, crc;
	bool drops;                       /* the payload goes nowhere */
	uint32_t into;                    /* place of the incoming stream */
	uint8_t *drain, *message;         /* DRAIN_CAP, HD_TELL_MAX */
	enum hd_held held;
	uint32_t held_epoch;
	bool resumes;                     /* what was held may go on */
	bool stale_told;                  /* in this epoch */
	int32_t least_priority;
	int64_t now;
};

/* stream_send.c */
void out_init(struct hd_stream *s);
void out_epoch(struct hd_stream *s);              /* stops planned jobs, forgets the rows */
void out_open(struct hd_stream *s);               /* both EPOCH frames agree: the rows' grants are given */
void out_report(struct hd_stream *s);             /* callbacks that are due */
enum hd_close out_grant(struct hd_stream *s, const struct hd_grant_payload *grant, struct hd_diag *diag);
enum hd_close out_credit(struct hd_stream *s, uint8_t class, uint64_t bytes, struct hd_diag *diag);
void out_cancelled_by_peer(struct hd_stream *s, uint32_t stream);
void out_prio(struct hd_stream *s, uint32_t stream, int32_t priority);
enum hd_close out_prio_of(struct hd_stream *s, uint64_t transfer, uint64_t nth, int32_t priority,
	struct hd_diag *diag);
/* HD_E_AGAIN: no space */
enum hd_err out_tell(struct hd_stream *s, uint32_t id, uint64_t step, const void *bytes, size_t len);
bool out_note(struct hd_stream *s, struct note note);     /* false: full */
void out_queue_put(struct hd_stream *s, struct queue *q, uint32_t job);
void out_heap_drop(struct hd_stream *s, struct heap *h, uint32_t job);
bool out_before(const struct out_job *a, const struct out_job *b);        /* a is more urgent */
uint8_t out_class_of(const struct out_job *job);
/* The next message of the ring after the one at `at`; the oldest is forgotten. */
size_t out_ring_after(const struct hd_stream *s, size_t at, uint32_t space);
void out_ring_drop(struct hd_stream *s);
/* an epoch ends: what was not written of the nth of a transfer would be of the next one's */
void out_forget_advice(struct hd_stream *s);

/* stream_recv.c */
void in_init(struct hd_stream *s);
void in_epoch(struct hd_stream *s);               /* drops planned streams; posts go with the rows */
void in_owe_slots(struct hd_stream *s, uint32_t row, uint32_t count);
enum hd_close in_process(struct hd_stream *s, struct hd_diag *diag);
/* this end or the other entered an epoch */
enum hd_close in_agree(struct hd_stream *s, struct hd_diag *diag);

/* rows rise by id; NONE32: none */
#define HD_ROW_FIND(name, sort) \
	static inline uint32_t name(const struct sort *rows, uint32_t n, uint32_t id) \
	{ \
		uint32_t low = 0, high = n; \
		while (low < high) { \
			uint32_t mid = low + (high - low) / 2; \
			if (rows[mid].id < id) \
				low = mid + 1; \
			else \
				high = mid; \
		} \
		return low < n && rows[low].id == id ? low : NONE32; \
	}
HD_ROW_FIND(out_row_find, out_row)
HD_ROW_FIND(in_row_find, in_row)
#undef HD_ROW_FIND

#endif
