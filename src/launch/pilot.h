/* pilot.h -- a pilot: a process on a node that a scheduler was lent, which starts the workers of jobs there;
 * and the files by which the two speak.
 *
 * `heddle worker --join DIR/pilots/TYPE` is one. The folder is shared by all nodes, as the runs are; nothing
 * listens. In it, each written whole and renamed into its place:
 *
 *	scheduler       of the scheduler: its beat goes on while it serves; "ended": it has, and no
 *	                next one is to be waited for for long
 *	NAME.state      of the pilot NAME: what it does, its beat
 *	NAME.order      of the scheduler: what it is to do
 *	NAME.notice     of the pilot: tells its worker that this node will be taken away (notice/hand.h)
 *
 * 1. An order is what is to be, not what is to be done: read twice it is carried out once. Its number rises;
 *    the state says which number was taken.
 * 2. A pilot has one worker at a time. Work for another job while one is there is not begun; the state says
 *    which job's worker there is.
 * 3. A stop request (a signal of the batch system) is an end of the node: the pilot says "leaving", gives its
 *    worker notice, and ends when that has left. The batch system may have signalled the worker, too: notice
 *    and signal together are one request, where two signals would be the order to leave at once.
 * 4. A worker ends with its pilot, however that ends.
 * 5. A pilot without work leaves HD_PILOT_ALONE_NS after the scheduler's last beat, HD_PILOT_ENDED_NS after
 *    one that ended. Its worker does not: the lease of its run ends by itself (daemon/daemon.h, rule 8).
 *
 * Values and texts are plain, and pure; the agent: open/close, one thread, nothing blocks but the disk. */
#ifndef HD_LAUNCH_PILOT_H
#define HD_LAUNCH_PILOT_H

#include "sys/clock.h"
#include "sys/file.h"
#include "sys/process.h"

enum { HD_PILOT_NAME = 96, HD_PILOT_WORD = 96, HD_PILOT_RUN = 512, HD_PILOT_TEXT = 2048, HD_PILOT_EXTRA = 8 };
#define HD_PILOT_SCHEDULER "scheduler"
#define HD_PILOT_BEAT_NS   INT64_C(2000000000)
#define HD_PILOT_LOOK_NS   INT64_C(100000000)
#define HD_PILOT_ALONE_NS  INT64_C(600000000000)
#define HD_PILOT_ENDED_NS  INT64_C(60000000000)
/* so long a worker's start waits for the coordinator of its run to listen */
#define HD_PILOT_START_NS  INT64_C(60000000000)

/*        id     word     what is to be */
#define HD_PILOT_WHATS(X) \
	X(REST,  "rest")  /* as it is; no worker is begun */ \
	X(WORK,  "work")  /* a worker of that job and lease */ \
	X(LEAVE, "leave") /* its worker leaves after the step at hand */ \
	X(KILL,  "kill")  /* its worker ends at once */ \
	X(GO,    "go")    /* its worker leaves, then the pilot */

enum hd_pilot_what {
#define X(id, word) HD_PILOT_##id,
	HD_PILOT_WHATS(X)
#undef X
	HD_PILOT_NWHATS
};

/* until: the step that its worker stops at; 0: the job says. run "": none */
struct hd_pilot_order {
	uint64_t n, job, until;
	uint32_t lease;
	enum hd_pilot_what what;
	char run[HD_PILOT_RUN], device[HD_PILOT_WORD];
};
/* job 0: no worker; code: of the last one, -1: none ended. worker: its process, 0: none yet. place: as the
 * batch system names it, "": by hand */
struct hd_pilot_state {
	uint64_t beat, n, job;
	uint32_t lease;
	int32_t code;
	int worker;
	bool leaving;
	char node[HD_HOST_CAP], place[HD_PILOT_WORD];
};
struct hd_pilot_scheduler { uint64_t beat; bool ended; };

/* Of a file; HD_E_NOTFOUND, HD_E_INPUT. */
HD_MUST_USE enum hd_err hd_pilot_order_read(struct hd_pilot_order *order, struct hd_fs *fs, const char *path,
	struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_pilot_state_read(struct hd_pilot_state *state, struct hd_fs *fs, const char *path,
	struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_pilot_scheduler_read(struct hd_pilot_scheduler *scheduler, struct hd_fs *fs,
	const char *path, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_pilot_order_write(const struct hd_pilot_order *order, struct hd_fs *fs,
	const char *path, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_pilot_state_write(const struct hd_pilot_state *state, struct hd_fs *fs,
	const char *path, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_pilot_scheduler_write(const struct hd_pilot_scheduler *scheduler, struct hd_fs *fs,
	const char *path, struct hd_diag *diag);

/* Is that folder one of pilots? */
bool hd_pilot_is_folder(struct hd_fs *fs, const char *dir);

/* ---- the agent ---- */

struct hd_pilot_spec {
	struct hd_host *host;             /* borrowed, as all of these */
	struct hd_fs *fs;
	struct hd_clock *clock;
	const char *dir, *program;        /* program: of the worker; absolute */
	const char *extra[HD_PILOT_EXTRA];        /* of its command line */
	uint32_t nextra;
	char *const *environment;         /* what started it says there where it is */
	/* gives its worker notice; the text that it finds in NAME.notice (notice/hand.h) */
	size_t (*notice)(int64_t ends_wall_ns, char *text, size_t cap);
};

struct hd_pilot {
	struct hd_pilot_spec spec;
	struct hd_pilot_state is;
	struct hd_pilot_order order;
	struct hd_pilot_scheduler heard;
	char name[HD_PILOT_NAME], notice[HD_PATH_CAP + 24], until[24];
	struct hd_proc worker;            /* host NULL: none */
	struct hd_tie tie;
	int64_t heard_ns, wrote_ns, asked_ns;     /* asked: for its worker, while it waits to be started */
	bool starts, dirty, asked_to_go;
};

HD_MUST_USE enum hd_err hd_pilot_open(struct hd_pilot *pilot, const struct hd_pilot_spec *spec,
	struct hd_diag *diag);
/* stop: a signal came. HD_E_AGAIN: it goes on; look again after HD_PILOT_LOOK_NS. HD_OK, HD_E_PREEMPTED: it
 * is over, as it was ordered or for want of a scheduler; for the stop. Other errors: its folder is of no
 * use.
 * */
HD_MUST_USE enum hd_err hd_pilot_turn(struct hd_pilot *pilot, bool stop, struct hd_diag *diag);
/* With its files; a worker that is still there ends. */
void hd_pilot_close(struct hd_pilot *pilot);

#endif
