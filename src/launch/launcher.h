/* launcher.h -- what gets workers for a run: one way to start them on machines that are not this one, or on
 * this one; a row of list.h each.
 *
 * A *place* is what a launcher starts and a worker lives in: a process, a batch job of one node. A launcher
 * is
 * asked for a number of places and keeps to it. Which worker computes what is the run's.
 *
 * 1. want() says how many; look() does what is due for it, and never blocks: a command of a batch system runs
 *    beside, one at a time, and is given up after HD_LAUNCHER_PATIENCE_NS.
 * 2. A place that ended is reported once, by ended(); another takes its seat while as many are wanted. After
 *    failures in a row the next start waits, twice as long each time. What the batch system queues again by
 *    itself is the same place.
 * 3. Of too many places those that still wait in a queue are taken back, the newest first. One that runs goes
 *    when its worker is released, so a launcher never ends a worker that computes, but for end().
 * 4. What happens to places is said in words, by `said`: HD_LAUNCHER_NEWS and HD_LAUNCHER_WAITS.
 * 5. types() says what kinds of places there are, each with an option that asks for that kind alone.
 * 6. stop() returns when no place is left, neither waiting nor running, or says which one stays.
 *
 * Ownership: open/close; all that the spec names is borrowed. Threads: one. */
#ifndef HD_LAUNCH_LAUNCHER_H
#define HD_LAUNCH_LAUNCHER_H

#include "base/text.h"
#include "sys/clock.h"
#include "sys/file.h"
#include "sys/process.h"
#include "sys/socket.h"

enum {
	HD_LAUNCHER_ARGS = 20,            /* of a worker's command line */
	HD_LAUNCHER_NAME = 48,            /* bytes of a place's name */
	HD_LAUNCHER_WHY = 200,
	HD_LAUNCHER_ALIKE = 5,            /* so many failures in a row: the next will fail, too */
	HD_LAUNCHER_EXTRA = 16,
	HD_LAUNCHER_TYPES = 16,
};
#define HD_LAUNCHER_PATIENCE_NS INT64_C(60000000000)
#define HD_LAUNCHER_NEWS "place"          /* one began, ended, was queued again */
#define HD_LAUNCHER_WAITS "queue"         /* some wait: how many, and why */

/* What launch.* of a job says. */
struct hd_launcher_settings {
	struct { const char *hosts, *command; } ssh;
	struct {
		const char *partition, *account, *time;    /* "": the cluster's own */
		bool requeue;
		uint32_t signal_s;                /* before the end of its time; 0: none */
		const char *extra[HD_LAUNCHER_EXTRA];      /* options of sbatch */
		uint32_t nextra;
		/* slurmrestd's, a path; NULL or "": Slurm is asked by its commands. With a token as the user
		 * of that name; without one a process of this user must answer. */
		const char *socket, *user, *token;
	} slurm;
};

struct hd_launcher_spec {
	struct hd_host *host;
	struct hd_fs *fs;
	struct hd_clock *clock;
	const char *dir;                  /* absolute; what places print goes to log/ in it */
	const char *name;                 /* as users know it: [A-Za-z0-9._-] */
	const char *mark;                 /* tells this launcher's places from all others, of the same
		letters */
	const char *const *argv;          /* of a worker; ends with NULL; argv[0] is an absolute path */
	/* of each place, which begin and end together, with a worker on each; 0: 1. By slurm alone. */
	uint32_t nodes;
	/* Its places go on when this process ends, and a later one of the same mark finds them: before it
	 * asks
	 * for any it looks which there are. false: they are ended, however it ends. */
	bool stays;
	const struct hd_launcher_settings *settings;
};

/* why: of those that wait, in the words of the batch system; "": none waits, or it says nothing. at: the
 * first place that is there, and where, "Slurm job 77_0 on k1"; "": none, or a process of its own says it.
 * found: what an earlier process left is counted (spec.stays). left: not over, those too that are being taken
 * back. */
struct hd_launcher_count {
	uint32_t waiting, running, left;
	char why[HD_LAUNCHER_WHY], at[128];
	bool found;
};
/* code: 128 + signal. log: in the folder. alike: it failed, and so did so many in a row, this one included,
 * by
 * the same code; 0: it did not */
struct hd_launcher_end { char name[HD_LAUNCHER_NAME], log[64]; int code; uint32_t alike; };

/* Of each kind: its name, sorted by it, how many places there may be at once, and what of
 * settings.slurm.extra asks for it; "": nothing does. */
struct hd_launcher_type { char name[HD_LAUNCHER_NAME], option[96]; uint32_t n; };
struct hd_launcher_types { uint32_t n; struct hd_launcher_type at[HD_LAUNCHER_TYPES]; };

/* said: set by the owner, or NULL. */
struct hd_launcher {
	const struct hd_launcher_ops *ops;
	void (*said)(void *user, const char *kind, const char *text);
	void *user;
};

struct hd_launcher_ops {
	const char *name, *about;
	/* `net`: its workers reach the run over the network (net.listen) and share its folder. */
	bool net;
	/* Nothing is started. HD_E_INVAL: the settings make no sense. */
	enum hd_err (*open)(const struct hd_launcher_spec *spec, struct hd_launcher **launcher,
		struct hd_diag *diag);
	/* What would be run or submitted for `n` places, as text: nothing is done or asked. HD_E_INVAL: as
	 * open(). NULL: they are started by nothing that can be shown. */
	enum hd_err (*show)(const struct hd_launcher_spec *spec, uint32_t n, struct hd_text *text,
		struct hd_diag *diag);
	/* Can it start `most` places from here? Blocks, at most HD_LAUNCHER_PATIENCE_NS. own: the host, in
	 * numbers, by which places call this machine; "" where that is not known. */
	enum hd_err (*check)(struct hd_launcher *launcher, uint32_t most, char own[HD_ADDR_CAP],
		struct hd_diag *diag);
	/* Blocks as check() does. NULL: all its places are alike. */
	enum hd_err (*types)(struct hd_launcher *launcher, struct hd_launcher_types *types,
		struct hd_diag *diag);
	void (*want)(struct hd_launcher *launcher, uint32_t n);
	/* None is wanted any more, and those that run are ended, too, as look() comes. NULL: they are not. */
	void (*end)(struct hd_launcher *launcher);
	/* Its owner saw a place begin or end: the batch system has something to say. NULL: no need of it. */
	void (*changed)(struct hd_launcher *launcher);
	/* What is refused for good (a partition that is not there) is an error; all else is tried again. */
	enum hd_err (*look)(struct hd_launcher *launcher, struct hd_diag *diag);
	bool (*ended)(struct hd_launcher *launcher, struct hd_launcher_end *end);  /* false: no more */
	void (*count)(const struct hd_launcher *launcher, struct hd_launcher_count *count);
	/* Blocks. Places that run have so long to end by themselves, then they are ended. */
	enum hd_err (*stop)(struct hd_launcher *launcher, int64_t grace_ns, struct hd_diag *diag);
	void (*close)(struct hd_launcher *launcher);      /* stop() comes before it */
};

extern const struct hd_launcher_ops *const hd_launchers[];        /* in the order of list.h; ends with NULL */
const struct hd_launcher_ops *hd_launcher_find(const char *name);         /* NULL: there is none */

#endif
