/* board.h -- which dense task is where: leased to a function, run here, or done. A pure machine.
 *
 * The owner of tasks tells it what happened and does what it says next; a test plays both by a
 * simulated clock. Times are nanoseconds of one clock that never goes back.
 *
 * 1. A task is done once: by the first COMMIT of any attempt, or by a run here. What comes after is ALREADY.
 *    A lease that ran out, a failed call and a lost answer change nothing of that: results of an attempt that
 *    was begun count as long as the task is not revoked.
 * 2. A token is used once: `greet` takes an attempt once, before its deadline, while its task is open.
 * 3. At most two attempts of a task are live; a second one begins where the first is older than
 *    max(HD_FN_OLD_NS, 3 x the mean of its phase), looked at every HD_FN_LOOK_NS; the oldest first, and at
 *    most one in twenty of the last HD_FN_WINDOW attempts is one. A device that shares and finds nothing
 *    else to do runs such a task itself, looked at every HD_FN_LATE_NS. It is then late after HD_FN_FIRST_NS
 *    where no attempt of its phase came back yet, after HD_FN_OLD_NS where calls failed, too: a service that
 *    hangs costs the wait for the first straggler once, not its deadline.
 * 4. After HD_FN_FAILURES failed attempts a task is for running here. HD_FN_CIRCUIT failed calls in a row
 *    close the pool for HD_FN_CLOSED_NS; tasks are for running here meanwhile. Then it probes: one call at
 *    once, until one ends well, and one that fails closes it again. What fails while it is closed does not
 *    count. A call that says it ended, and brought no result (EMPTY, by the word of the owner of tasks, that
 *    knows which workers came), has failed, wherever its task was done meanwhile.
 * 5. A call refused for lack of slots (429) is no failed attempt: slots are halved for HD_FN_HALVED_NS, and
 *    the next call waits, 0.1 s, twice as long each time, at most 5 s, of which up to half is drawn away.
 *    From HD_FN_REFUSALS in a row on, one that leaves no call under way counts as a failed call of rule
 *    4: a pool that only refuses is closed, one whose slots others fill is not.
 * 6. An attempt is dead at its deadline, whatever is heard of it; that is a failed one.
 *
 * Ownership: init takes arrays from the arena. Pure: equal calls, equal answers. */
#ifndef HD_FUNCTIONS_BOARD_H
#define HD_FUNCTIONS_BOARD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "functions/reply.h"

#define HD_FN_LOOK_NS   INT64_C(500000000)
#define HD_FN_LATE_NS   INT64_C(50000000)
#define HD_FN_OLD_NS    INT64_C(500000000)
#define HD_FN_UNKNOWN_NS INT64_C(6000000000)      /* a straggler of a phase without a mean */
#define HD_FN_FIRST_NS  INT64_C(4000000000)       /* the same, for a device that has nothing else to do */
#define HD_FN_CLOSED_NS INT64_C(30000000000)
#define HD_FN_HALVED_NS INT64_C(5000000000)

enum { HD_FN_LIVE = 2, HD_FN_WINDOW = 200, HD_FN_FAILURES = 3, HD_FN_CIRCUIT = 10, HD_FN_REFUSALS = 6,
	HD_FN_PHASES = 32 };

/* Where a task is. */
enum hd_fn_state { HD_FN_READY, HD_FN_LEASED, HD_FN_FOR_HERE, HD_FN_RUNS_HERE, HD_FN_DONE, HD_FN_REVOKED };

/* One attempt: `number` 0: none. */
struct hd_fn_attempt { uint32_t number; bool greeted; int64_t began_ns, deadline_ns; };

/* One task. `phase`: a group of alike tasks, below HD_FN_PHASES. */
struct hd_fn_task {
	enum hd_fn_state state;
	uint32_t phase, begun, failed;    /* attempts begun; of those that failed */
	struct hd_fn_attempt live[HD_FN_LIVE];
};

/* What a call came to, as the invoker says. EMPTY: it says that it ended, and no worker brought a result.
 * UNFIT: no function can compute it, so it is for running here. */
enum hd_fn_outcome { HD_FN_ENDED, HD_FN_FAILED, HD_FN_EMPTY, HD_FN_UNFIT, HD_FN_THROTTLED };

/* Counted since init. Each task that is done is one of `accepted` or one of `here`. */
struct hd_fn_counts { uint64_t attempts, duplicates, failures, throttled, accepted, already, stale, here,
	closed; };

/* The machine. */
struct hd_fn_board {
	struct hd_fn_task *task;          /* owned by the arena */
	uint32_t ntasks, cap, open;       /* open: not done, not revoked */
	uint32_t slots, live;             /* calls at once, and under way */
	bool offers;                      /* false: no functions, all is run here */
	/* of the caller: an idle device takes what finds no slot, or waits after a call that was refused */
	bool shares;
	int64_t lease_ns;                 /* an attempt's deadline, from its begin */
	uint64_t seed;
	double mean_ns[2][HD_FN_PHASES];  /* here, on functions; 0: none yet */
	bool window[HD_FN_WINDOW];        /* was the attempt a duplicate? */
	uint32_t nwindow, window_at, window_dups;
	uint32_t failed_in_row, throttled_in_row;
	int64_t closed_ns, halved_ns, wait_ns, look_ns, late_ns;      /* until then; 0: not */
	bool probes;                      /* it was closed, and no call has ended well since */
	struct hd_fn_counts count;
};

/* Do calls go out and not end well? The circuit is closed, or probes, or HD_FN_FAILURES calls failed in a
 * row, or HD_FN_REFUSALS were refused. Without slots nothing goes out. */
bool hd_fn_board_is_away(const struct hd_fn_board *board);

/* What to do next. */
enum hd_fn_do { HD_FN_WAIT, HD_FN_INVOKE, HD_FN_RUN_HERE };
/* `until_ns` of a WAIT: ask again then, or after something happened; INT64_MAX: nothing is due. */
struct hd_fn_step { enum hd_fn_do what; uint32_t task, attempt; bool duplicate; int64_t deadline_ns,
	until_ns; };

/* For at most `cap` tasks; slots 0: all is run here. */
HD_MUST_USE enum hd_err hd_fn_board_init(struct hd_fn_board *board, uint32_t cap, uint32_t slots,
	int64_t lease_ns, uint64_t seed, struct hd_arena *arena, struct hd_diag *diag);
/* Forgets all tasks; means, window and circuit stay. So many calls of them are under way: each takes a slot
 * until hd_fn_board_ended(). */
void hd_fn_board_clear(struct hd_fn_board *board, uint32_t calls);
/* A call of a task that is forgotten has ended: it is one of rule 4 all the same. */
void hd_fn_board_ended(struct hd_fn_board *board, enum hd_fn_outcome outcome, int64_t now_ns);
/* Its number. HD_E_NOSPACE: there are `cap`. */
HD_MUST_USE enum hd_err hd_fn_board_add(struct hd_fn_board *board, uint32_t phase, uint32_t *task,
	struct hd_diag *diag);
/* Takes effect at once: an INVOKE has begun an attempt. `here`: a device here is idle. Ready tasks go by
 * number. */
struct hd_fn_step hd_fn_board_next(struct hd_fn_board *board, int64_t now_ns, bool here);
/* May this worker have its task? */
bool hd_fn_board_greet(struct hd_fn_board *board, uint32_t task, uint32_t attempt, int64_t now_ns);
/* Rule 1. */
enum hd_fn_reply hd_fn_board_commit(struct hd_fn_board *board, uint32_t task, uint32_t attempt,
	int64_t now_ns);
/* The call ended. ENDED without a COMMIT is a failed attempt, too. */
void hd_fn_board_called(struct hd_fn_board *board, uint32_t task, uint32_t attempt,
	enum hd_fn_outcome outcome, int64_t now_ns);
/* A run here ended, `took_ns` long. */
enum hd_fn_reply hd_fn_board_ran(struct hd_fn_board *board, uint32_t task, int64_t took_ns);
/* Its results are wanted no more: what still comes is STALE. */
void hd_fn_board_revoke(struct hd_fn_board *board, uint32_t task);

#endif
