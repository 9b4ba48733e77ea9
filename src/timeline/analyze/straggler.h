/* straggler.h -- the process that holds a run back, and by what it does.
 *
 * A process is a straggler if, of the last steps, HD_TL_STRAGGLER_STEPS and as many as take
 * HD_TL_STRAGGLER_MS (each quarter then has several periods of what systems do in periods: a quota, a disk
 * that is throttled),
 *   a  it has more than half of the critical path in more than half of them (time on a channel counts at both
 *      of its ends), and
 *   b  the run would gain more than 5 % if its costs were those of the others (replay.h); more than 10 %
 *      where a holds for less than two thirds of the steps, or it has a quarter more instructions than each
 *      other, so that it leads whatever they cost, or there are but two: of three that are alike one leads in
 *      half of 20 steps once in 25 runs, of two one in two thirds of them once in nine. The gain is
 *      the mean of those in the quarters of these steps, less twice its standard error: where all vary,
 *      chance makes gains that are not there in every quarter; and
 *   c  that is more than twice what it would gain by any other process: of processes that all vary each one
 *      is last sometimes, and none holds the run back, and
 *   d  it is not that its threads waited for a processor which it shares with others of the run: where the
 *      counter "processor wait" is recorded, it grew by less than three quarters of the time that its
 *      instructions took longer, or of half of what it was longer in all, beyond what it grew by at the
 *      process that waited least. Else the machine is too small for all of them, and whichever is behind gets
 *      the least. What a quota of its own made it wait (counter "quota wait", beyond the other that has the
 *      least of it) is no such wait: then another machine would not help. Transfers need a thread of the
 *      process, too: it is no link where that growth, less what its instructions took longer, is three
 *      quarters of what they gain.
 *   e  Or: its heartbeat says that it stood still (OP "stopped" in a lane of its own, where that is recorded)
 *      for more than 5 % of the time of these steps, more than twice as long as any other, and for more than
 *      another would gain by a to d, or half of what it would itself. Then it is paused.
 *   f  Or: none is one by a to d, h and i, and the run would gain more than 10 % if its waits for data were
 *      those of the others, or of three and more its transfers (less the error, as in b), and more than
 *      twice what it would gain by those of any other: whatever else the machine does to it. Then it is io,
 *      or link. Waits for data are looked at in the last HD_TL_READING_STEPS steps, too: a reader has up to
 *      24 steps ready (data/prefetch.h), so that it may wait once for the rows of as many, and of a few such
 *      waits nothing says that they are not chance.
 *   h  Or: none is one by a to d, a holds, its instructions take HD_TL_SLOW_TIMES times what they take the
 *      others and more, in each quarter of the steps, and for what it computed the others waited for more
 *      than 10 % of their time (blame of path.h, as much of it as is too long). Then the gain says little:
 *      what is slow in all moves its bytes slowly, too, and of two processes nothing says what the channel
 *      would take. Chance makes none so slow in each quarter; of unlike devices whose shares fit their speeds
 *      none waits. The cause is that of compute, and d holds.
 *   i  Or: none is one by a to d, a holds, and its heartbeat woke late, not for want of a processor, by more
 *      than 5 % of the time (counter "stops", where it is recorded) and more than twice as much as any other:
 *      it is stopped for short, often. Then that lies in its waits as well as in its work. It is compute, or
 *      preemption.
 *   g  Or: none is one by a to f, it has the greatest part of the critical paths, and quotas held it for more
 *      than 10 % of the time beyond what they held another. Then it is compute, or preemption.
 * It is the one that does not wait; the waits of the others are symptoms.
 *
 * The cause is the kind of cost that gains most: instructions and what else is its own (compute), transfers
 * from and to it (link), waits for data (io). But not link where its instructions take twice what they take
 * the others, and that more than 10 % of the time; where quotas held it for half of what its transfers gain;
 * or where it is stopped for short (i): what lacks a processor moves bytes as slowly, and a slow link slows
 * no instruction. Compute is
 *   preemption   if the process has a notice (MARK "preempt", of the newest that came before the last step
 *                ended, and no "preempt withdrawn" since)
 *   paused       if half of what it took longer lies in stretches of HD_TL_PAUSE_NS and more, inside what
 *                costs others less than that: a quota or a competitor takes a piece of every scheduling
 *                period, which is shorter; a stopped process stands still for long. Not where half of it was
 *                for a quota: that takes all of a period that an instruction does not fit into; and where its
 *                heartbeat is recorded not unless that stood still for half of it
 *
 * 1. Fewer than HD_TL_STRAGGLER_LEAST steps, or one aligned process: there is none. Of two each is the
 *    other's measure; a channel has two ends, so that none of two is named for it.
 * 2. Processes that are not aligned are not judged: name them beside the answer.
 * 3. By c there is one at most.
 *
 * Pure. */
#ifndef HD_TIMELINE_ANALYZE_STRAGGLER_H
#define HD_TIMELINE_ANALYZE_STRAGGLER_H

#include "timeline/analyze/causes.h"

enum { HD_TL_STRAGGLER_STEPS = 20, HD_TL_STRAGGLER_MS = 1000, HD_TL_STRAGGLER_LEAST = 5,
       HD_TL_STRAGGLER_PERCENT = 5, HD_TL_SLOW_TIMES = 3, HD_TL_READING_STEPS = 120 };

/*        id           text */
#define HD_TL_HOLDS(X)                     \
	X(COMPUTE,     "compute")          \
	X(LINK,        "link")             \
	X(IO,          "io")               \
	X(PREEMPTION,  "preemption")       \
	X(PAUSED,      "paused")

enum hd_tl_hold {
#define X(id, text) HD_TL_HOLD_##id,
	HD_TL_HOLDS(X)
#undef X
};
const char *hd_tl_hold_text(enum hd_tl_hold hold);

struct hd_tl_straggler {
	uint32_t process;
	enum hd_tl_hold cause;
	double share;                     /* of the critical path, mean over the steps */
	double gain;                      /* 1 - replayed / recorded */
};

struct hd_tl_stragglers {
	struct hd_tl_straggler *straggler; uint32_t n;
	uint32_t nsteps;                  /* that were judged; 0: too few, or too few processes */
	struct hd_tl_span span;           /* their time; of no meaning without them */
	/* [nprocesses] of what each one is: for eyes that want more than the answer */
	double *share, *gain;
	/* [nprocesses] ns its first device waited for a processor (-1: not known), that quotas held it */
	int64_t *starved, *held;
};

/* scratch: for the call; it is reset. */
HD_MUST_USE enum hd_err hd_tl_stragglers_of(const struct hd_tl_causes *causes, struct hd_arena *arena,
	struct hd_arena *scratch, struct hd_tl_stragglers *stragglers, struct hd_diag *diag);

#endif
