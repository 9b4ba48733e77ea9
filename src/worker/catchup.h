/* catchup.h -- the state, handed to a learner while steps go on: a fuzzy copy, mended step by step.
 *
 * The *teacher* is a member. At boundaries alone (nobody writes the state then) it copies some buckets of its state into
 * a queue; of buckets that it has handed over it adds, boundary by boundary, the sums of the step that was finished.
 * The *pupil* puts snaps where they belong and lets the ordinary update run over the sums, bucket by bucket, with the
 * scalars of the step. When every bucket was handed over, the pupil holds X_step and follows. Members wait for it no longer than rule 2 says.
 *
 * What goes over the wire is one stream of records, in pieces of at most HD_TEACH_PIECE bytes that the pupil asks for. A piece begins with a
 * byte: more of the stream, or the word that the teacher gives up, which may come in the middle of a record. A record is
 *
 *	u32 kind, u32 index, u64 step, u64 len, then len bytes     little endian
 *	SNAP index = snap, of X_step     SUM index = bucket, of step     STEP scalars and rest after step
 *	REST of X_step                   PROBE index = virtual node: its bits in step, on X_step; no bytes: the teacher had no room to compute it
 *	EVEN all of X_step is handed over
 *
 * 1. Order: at the boundary of X_s: SUM of s-1 of every bucket handed over before, STEP s-1 (or, if there was none
 *    before, REST); then SNAPs of X_s; once all are handed over EVEN, the first time after PROBE.
 * 2. A boundary copies at most `budget` bytes of snaps, at least one group that changes together; nothing while the
 *    queue holds HD_TEACH_QUEUE. What must be added (sums) may grow it to HD_TEACH_MOST; then the teacher gives up.
 *    Before that whoever teaches waits at each boundary, ere more is put in, for as long as its part of a step took to compute and T/8 at least: who is
 *    slower than the steps are comes to an end too, at the members' cost, unless that is more than twice as slow. Of such a learner the teacher gives
 *    up, again and again; the coordinator puts it aside between (rule 13 of coordinator.h).
 * 3. The pupil takes nothing that it does not expect: another order, length or index is HD_E_PROTOCOL.
 * 4. The pupil computes the virtual node of PROBE too: with the same program, on the same samples, from what it was taught. Other bits are
 *    HD_E_INTEGRITY: with them its steps would be others than the members'. Each lesson asks for another virtual node.
 *
 * Ownership: teacher and pupil are the caller's; a piece taken is freed by hd_teacher_free().
 * Threads: boundary(), wait() and the pupil the hand's; take(), leave() and free() the wire's. */
#ifndef HD_WORKER_CATCHUP_H
#define HD_WORKER_CATCHUP_H

#include "sys/lock.h"
#include "engine/share.h"

enum { HD_TEACH_PIECE = 1 << 20, HD_TEACH_QUEUE = 64 << 20, HD_TEACH_MOST = 256 << 20, HD_TEACH_HEAD = 24 };

struct hd_handout { struct hd_handout *next; uint64_t number; size_t len; uint8_t bytes[]; };

struct hd_teacher {
	struct hd_worker *worker;         /* borrowed */
	const struct hd_layout *layout;   /* borrowed */
	uint32_t nsnaps, nbuckets, given; /* snaps 0..given-1 are handed over */
	bool even, begun, unprobed;      /* unprobed: there was no room for it */
	uint64_t at;                      /* the last boundary */
	struct hd_lock lock;              /* of what follows */
	struct hd_cond less;              /* a piece was taken */
	bool over, told;                  /* gave up; the word was taken */
	/* the last one may still be filled; it is handed out when it is full or the boundary is done */
	struct hd_handout *first, *last;
	uint64_t queued, next;            /* bytes; number of the next piece */
};

void hd_teacher_init(struct hd_teacher *teacher, struct hd_worker *worker, const struct hd_layout *layout);
void hd_teacher_finish(struct hd_teacher *teacher);       /* takes zeroed ones */
/* Between steps: the state is X_step, and step - 1 was just finished (or nothing yet). Of the same step
 * again: more snaps, for a learner of those who stand and wait for it. */
void hd_teacher_boundary(struct hd_teacher *teacher, uint64_t step, uint64_t budget);
/* Until less than HD_TEACH_QUEUE is queued, or nobody learns any more; false: the deadline, on the clock
 * of hd_clock_real(), has passed. */
bool hd_teacher_wait(struct hd_teacher *teacher, int64_t until_ns);
/* nobody learns any more: it gives up, and whoever waits for the learner goes on */
void hd_teacher_leave(struct hd_teacher *teacher);
struct hd_handout *hd_teacher_take(struct hd_teacher *teacher);         /* the oldest; NULL: none */
void hd_teacher_free(struct hd_handout *piece);

struct hd_pupil {
	struct hd_worker *worker;         /* borrowed */
	const struct hd_layout *layout;   /* borrowed */
	uint32_t nsnaps, nbuckets, nsums;
	uint8_t *has;                     /* owned: [nsnaps] */
	uint32_t *sum;                    /* owned: [nbuckets] whose sums of the step are here */
	uint8_t *room;                    /* owned: a record that is being received */
	uint64_t room_cap, got;           /* bytes of the record, its head included */
	uint8_t head[HD_TEACH_HEAD];
	uint64_t step;                    /* of the state, once something was learned */
	bool begun, over, asked;          /* asked: PROBE came */
	/* nobody knows whether its bits are those of the members: there was no room here or there */
	bool unprobed;
};

HD_MUST_USE enum hd_err hd_pupil_init(struct hd_pupil *pupil, struct hd_worker *worker,
	const struct hd_layout *layout, struct hd_diag *diag);
void hd_pupil_finish(struct hd_pupil *pupil);             /* takes zeroed ones */
/* The next piece. *even: all of X_step is here (pupil->step); hd_share_learned() before the worker steps.
 * pupil->over: the teacher gave up. */
HD_MUST_USE enum hd_err hd_pupil_take(struct hd_pupil *pupil, const uint8_t *piece, size_t len, bool *even,
	struct hd_diag *diag);
/* The next bytes of the stream, cut anywhere. */
HD_MUST_USE enum hd_err hd_pupil_learn(struct hd_pupil *pupil, const uint8_t *bytes, size_t len, bool *even,
	struct hd_diag *diag);

#endif
