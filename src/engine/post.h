/* post.h -- mail between different workers: what the devices' threads hand to the thread of the wire, and
 * what it hands to them. Private to the room; other rooms see hd_dist_mail_*() (dist.h).
 *
 * A step has mail between stages, or between workers that meet at norms over the global batch (meeting.h), or
 * none. Rules 1 to 3 are of stages.
 *
 * A *line*: all tensors of one kind (activations or gradients) that one rank sends to one stage of one rank
 * of another worker, in the order of the sender's list. Both ends know it from the plan. So the receiver
 * offers buffers in the order in which they will be filled.
 *
 * 1. In: of a line at most HD_CREDITS buffers are offered that no instruction has read yet, the first ones
 *    when the step begins, a further one when one was read. They are buffers of the receiving seat (pipe.h,
 *    rule 2), so a line of other workers needs no more memory than one of neighbours.
 * 2. Out: a line has HD_CREDITS buffers of its own. The sender waits for a free one, fills it and hands it to
 *    the wire, which gives it back when the bytes are out or will never be.
 * 3. Together the ends allow at least what the checker assumes: a tensor can be sent as soon as fewer than
 *    HD_CREDITS of its line are unread (schedule_check.h, K8).
 * 4. Each letter is queued once a step. The queue has room for a step's letters, of steps that overlap for
 *    those of two; when a step ends, only letters of the next one stay, and those of rule 9.
 * 5. A buffer that the wire has borrowed stays borrowed over the end of a step, also of one that was fenced.
 *    A plan whose lines have lent any is not given up before they are back.
 * 6. Copies of gradients for a shadow (pipe.h, rule 7) are a line of their own, whose buffers are all offered
 *    when the step begins: a sender waits for the wire at most. In a letter its stage is that of the shadow's
 *    cells: behind all stages. In the rest of a step after a loss (rest.h) all buffers of all lines are.
 * 7. Where steps overlap (overlap.h) the pipe of the step to come is open from the begin of the step before,
 *    also between the two, until it is forgotten. Letters of odd steps have stages behind all others, so both
 *    ends can tell the mail of one step from that of the next. There are no shadows then.
 * 8. While the worker's caller runs ahead with the step to come, after its pass and before that step begins,
 *    a call back (hd_dist_call()) ends all waits for mail; what was waited for is waited for again, later.
 * 9. A step of a meeting may end before the wire has taken its letters: a worker without virtual nodes adds
 *    nothing to the sums, and still needs the rows (meeting.h, rule 5). So letters to be sent stay in the
 *    queue, when the step is committed, until the wire takes them or the epoch ends.
 *
 * Ownership: tables lie in the arena of the part; buffers of lines are of the device that sends. Threads:
 * from begin() to offer() all functions lock. */
#ifndef HD_ENGINE_POST_H
#define HD_ENGINE_POST_H

#include "sys/lock.h"
#include "engine/dist.h"
#include "engine/meeting.h"
#include "engine/pipe.h"

struct hd_mail_line {
	uint32_t from, to, stage;         /* ranks of the plan; of the receiver */
	enum hd_mail kind;
	bool out;                         /* its sender is of this worker */
	bool shadow;                      /* rule 6 */
	uint32_t *vn, n;                  /* in the order of the sender's list */
	/* in: the first that is not offered yet; under the receiver's lock */
	uint32_t next;
	struct hd_mail_pool pool;         /* out: free buffers; under the lock of the post */
	uint8_t **memory; uint32_t ntaken;        /* out: [pool.cap] all of them */
};

/* One a worker: it outlives plans. All under the lock. */
struct hd_post {
	struct hd_lock lock;
	struct hd_cond cond;
	/* whose step is open: at most one of them is set */
	struct hd_pipe *pipe; struct hd_meeting_part *meeting;
	struct hd_pipe *next;             /* rule 7: of the step to come */
	uint64_t step;                    /* that is open, or was last; that of `next` comes after it */
	struct hd_dist_letter *at;        /* [cap] the queue */
	uint32_t head, len, cap;
	uint32_t borrowed;                /* buffers to send that are queued for the wire, or with it */
	uint32_t inside;                  /* calls of the wire's thread that look at a pipe */
	/* rule 8; without the lock. How often the caller was called back; how often when it ran ahead */
	_Atomic uint32_t calls, seen;
	_Atomic bool roams;               /* it runs ahead */
	uint32_t epoch, fence;            /* of steps that begin; those of epochs before `fence` are fenced */
	hd_dist_mailer *mailer; void *user;
};

/* Finds the lines of `pipe`, whose seats are known. Takes nothing. */
HD_MUST_USE enum hd_err hd_post_lines(struct hd_pipe *pipe, struct hd_arena *arena, struct hd_diag *diag);
uint64_t hd_post_bytes(const struct hd_pipe *pipe, uint32_t device);     /* of the lines that it sends */
/* Buffers of lines, and room in the queue for the letters of a step. */
HD_MUST_USE enum hd_err hd_post_take(struct hd_pipe *pipe, struct hd_arena *arena, struct hd_diag *diag);
void hd_post_give(struct hd_pipe *pipe);                     /* waits: rule 5 */

/* What goes over the line of a virtual node in that step, without its bytes. */
struct hd_dist_letter hd_post_letter(const struct hd_pipe *pipe, const struct hd_mail_line *line,
	uint32_t vn, uint64_t step);

HD_MUST_USE enum hd_err hd_post_make(struct hd_worker *worker, struct hd_diag *diag);
void hd_post_finish(struct hd_worker *worker);

/* What mail of every kind does. A letter of the open step goes to the queue; the wire is to look at it; the
 * queue is to have room for n letters; a step of a meeting begins. queue(), open() and wait() are called
 * under the lock, which wait() gives back meanwhile. */
void hd_post_queue(struct hd_post *post, const struct hd_dist_letter *letter);
void hd_post_call(struct hd_worker *worker);
HD_MUST_USE enum hd_err hd_post_room(struct hd_worker *worker, uint32_t n, struct hd_diag *diag);
void hd_post_open(struct hd_post *post, struct hd_meeting_part *part, uint64_t step);
void hd_post_wait(struct hd_worker *worker);

/* A step of that pipe begins: its first buffers are offered. Ends: no letter of it is taken or given any
 * more, `done`: but those of rule 9; `ahead`: those of the step to come are. */
void hd_post_begin(struct hd_pipe *pipe);
void hd_post_end(struct hd_worker *worker, bool done, bool ahead);
/* Rule 7. The pipe is of the step after the open one; becomes that of the open one; is forgotten. */
void hd_post_ahead(struct hd_pipe *pipe);
void hd_post_go_on(struct hd_pipe *pipe);
void hd_post_drop(struct hd_worker *worker);
/* Rule 5: until n buffers of a line are back. */
void hd_post_await(struct hd_pipe *pipe, const struct hd_mail_pool *pool, uint32_t n);
void hd_post_wake(struct hd_pipe *pipe);                     /* waits look again: the pipe is fenced */
/* Rule 8. The caller runs ahead, unless it was called back since it saw `seen` calls; does so no more. Was it
 * called? */
void hd_post_roam(struct hd_worker *worker, uint32_t seen);
void hd_post_settle(struct hd_worker *worker);
bool hd_post_called(const struct hd_pipe *pipe);

/* Out: a buffer for a cell of another worker; NULL: fenced. Then it is filled. */
uint8_t *hd_post_place(struct hd_pipe *pipe, const struct hd_cell *cell, enum hd_mail kind);
void hd_post_put(struct hd_pipe *pipe, const struct hd_cell *cell, enum hd_mail kind, uint32_t vn,
	uint8_t *buffer);
/* In: an instruction has read what the line brought; the next buffer is offered. The receiver's lock is
 * held. */
void hd_post_offer(struct hd_pipe *pipe, uint32_t line);

#endif
