/* fault.h -- faults of a run that goes on: one table of kinds, for `chaos run` and the verbs that inject one.
 *
 * A fault is a plain value, drawn from a seed; its target is drawn among the processes that exist when its
 * time has come. Faults that last end by themselves, and all of them at hd_fault_end(): no process stays
 * stopped.
 *
 * 1. Kill, pause and slow are signals: of any process of this user, in any build. Points, net and disk are
 *    orders to failpoints (sys/failpoint.h): builds without them refuse.
 * 2. At most HD_FAULTS_OPEN last at a time, one for each process.
 * 3. An order for a point is given to one worker, drawn; if it is not reached there in time, to all, and the
 *    first process that reaches it dies. A point that only a loss reaches is triggered by one. Orders stay
 *    until a process died of them, any number beside one another (one a point): of those to single workers
 *    one at a time. Those to all stand in one file, which goes with the first process that dies and comes
 *    back when the run has answered since: so some process is left to go on.
 * 4. A kill waits while it could leave no process that can coordinate (kills since the last reply).
 *
 * Ownership: the harness is borrowed. Threads: one. */
#ifndef HD_CHAOS_FAULT_H
#define HD_CHAOS_FAULT_H

#include "sys/failpoint.h"
#include "chaos/harness.h"

/*        id      name      what                                                                     */
#define HD_FAULTS_TABLE(X)                                                                            \
	X(KILL,   "kill",   "SIGKILL, at any instant")                                                \
	X(POINT,  "point",  "SIGKILL at a named place")                                               \
	X(PAUSE,  "pause",  "SIGSTOP for longer than workers.detect, then SIGCONT")                   \
	X(SLOW,   "slow",   "stopped for a part of every 30 ms, for a while")                         \
	X(NET,    "net",    "a link closed, gone dumb on one side, or delayed, for a while")          \
	X(DISK,   "disk",   "no space, an error, or slowness where checkpoints and decisions are written")         \
	X(SCALE,  "scale",  "another number of workers asked for")

enum hd_fault_kind {
#define X(id, name, what) HD_FAULT_##id,
	HD_FAULTS_TABLE(X)
#undef X
	HD_FAULTS
};
extern const char *const hd_fault_name[HD_FAULTS];
bool hd_fault_orders(enum hd_fault_kind kind);            /* it needs failpoints */

/* Words of --how: net, then disk. */
enum hd_fault_how { HD_HOW_CUT, HD_HOW_DROP, HD_HOW_DELAY, HD_HOW_FULL, HD_HOW_ERROR, HD_HOW_SLOW, HD_HOWS };
extern const char *const hd_fault_how_name[HD_HOWS];

enum hd_fault_target { HD_TARGET_ANY, HD_TARGET_WORKER, HD_TARGET_COORDINATOR };

struct hd_fault {
	bool tried, begun;                /* chaos run: its time has come; it was brought about */
	enum hd_fault_kind kind;
	enum hd_fault_target target;      /* KILL */
	enum hd_failpoint point;          /* POINT */
	enum hd_fault_how how;            /* NET, DISK */
	uint32_t pick, other, part;       /* draws: target, which of its links, when (in 1/2^32 of a step) */
	uint32_t by;                      /* SLOW: times; SCALE: workers */
	int64_t for_ns;                   /* that it lasts */
	uint64_t step;                    /* not before this one is committed */
};

#define HD_FAULT_FOLDER "chaos"         /* of orders, in the run's folder */
enum { HD_FAULTS_OPEN = 8, HD_FAULT_SLOW_MS = 30 };

struct hd_faults {
	struct hd_harness *harness;       /* borrowed */
	char folder[HD_PATH_CAP];         /* of orders */
	uint32_t done[HD_FAULTS], coordinators;
	uint32_t killed[HD_FP_COUNT];     /* at each named place */
	struct hd_fault_open { enum hd_fault_kind kind; int64_t pid, until_ns, turn_ns; uint32_t by;
		bool stopped; } open[HD_FAULTS_OPEN];
	/* wide: to all processes */
	struct hd_fault_order { bool placed, wide; int64_t pid, since_ns; } order[HD_FP_COUNT];
	bool stale;                       /* the orders to all are to be written again */
	int64_t triggered_ns;              /* the last loss that was to trigger one */
	uint32_t triggered;                /* so many of them */
	int64_t detect_ns;                /* T */
	uint32_t kills_since_reply;                 /* killed since the coordinator answered last */
};

/* HD_E_REFUSED: `needs` failpoints, and this build has none. */
HD_MUST_USE enum hd_err hd_fault_init(struct hd_faults *faults, struct hd_harness *harness, int64_t detect_ns,
	bool needs, struct hd_diag *diag);
/* Fills in what `kind` needs from 4 draws: pick, part and the rest; a place is one of the first `npoints`. */
void hd_fault_draw(struct hd_fault *fault, enum hd_fault_kind kind, const uint32_t draw[4],
	uint32_t most_workers, uint32_t npoints,
	int64_t detect_ns);
/* False: it has no target, or no room: try again after the next look at the run. */
bool hd_fault_do(struct hd_faults *faults, const struct hd_fault *fault);
/* Goes on with those that last and ends those that are over; when to come again. */
int64_t hd_fault_turn(struct hd_faults *faults);
/* any of them, or an order that no process has reached yet */
bool hd_fault_lasts(const struct hd_faults *faults);
void hd_fault_end(struct hd_faults *faults);              /* takes zeroed ones */

/* By a process of a run: from now on it looks for orders in the run's folder (builds with failpoints); at
 * most once a process. */
void hd_fault_take_orders(const char *dir);

#endif
