/* harness.h -- a run of worker processes under faults, and its undisturbed twin: for `chaos run`, the verbs
 * that inject one fault, and the demos of workers.
 *
 * The run is a process of this program, watched through its control socket; its coordinator may die and be
 * replaced, so the newest answer counts and silence is normal. The twin is the same job on one device,
 * afterwards, with settings of its own; both states are compared.
 *
 * Ownership: init or visit, then finish; it does not move; what the caller gives is borrowed.
 * Threads: one. */
#ifndef HD_CHAOS_HARNESS_H
#define HD_CHAOS_HARNESS_H

#include "base/hash.h"
#include "sys/clock.h"
#include "sys/file.h"
#include "sys/process.h"
#include "chaos/status.h"

#define HD_HARNESS_STILL_NS INT64_C(60000000000)  /* no committed step for so long is a hang */
/* HD_HARNESS_SETS: as many -s as a verb takes, those of the harness among them */
enum { HD_HARNESS_LOOK_NS = 20000000, HD_HARNESS_PATH = 512, HD_HARNESS_SETS = 64 };

struct hd_harness {
	struct hd_fs *fs;
	struct hd_clock *clock;
	const char *job;                  /* path of the job file */
	const char *const *set;           /* [nsets] KEY=VALUE, handed to run and twin by -s */
	const char *const *twin_set;      /* [ntwin_sets] of the twin alone, behind these */
	uint32_t nsets, ntwin_sets;
	const char *said;                 /* file for what the run says (`run --json`); NULL: none is kept */
	char dir[HD_HARNESS_PATH], twin_dir[HD_HARNESS_PATH];
	uint64_t nsteps;
	struct hd_host own, *host;        /* host: starts processes; own,
		unless a test hands in another */
	struct hd_tie tie;                /* opened by a caller whose run ends with it, at once; else none */
	struct hd_proc run;               /* until it is killed, or has ended */
	struct hd_arena arena;            /* of the newest answer */
	struct hd_status live;            /* the newest answer */
	bool known;                       /* live was read at least once */
	bool heard;                       /* at the last look */
	/* it was started here: it ends with the harness, and is started again when all of it died */
	bool ours;
	bool stopping;                    /* it was asked to stop: its exit code says so */
	/* its machines go: exit 10, too few workers, and 75, all had notice, are no errors; it is resumed */
	bool may_starve;
	bool holds;                       /* nothing is resumed now */
	bool samples;                     /* it keeps a record of its samples (run/samples.h) */
	uint64_t pace_ms;                 /* of its workers (workers.pace), unless the user says another */
	uint32_t workers, resumed;
	const char *devices;
	int64_t coordinator;              /* its process; 0: not known */
	uint64_t moved_step;
	/* the last look; for how long no step was committed; some process was alive then */
	int64_t looked_ns, still_ns, alive_ns;
	int64_t silent_ns;                /* for how long no coordinator answered */
};

/* Folders PARENT/chaos and PARENT/undisturbed. HD_E_INVAL: PARENT is there already. */
HD_MUST_USE enum hd_err hd_harness_init(struct hd_harness *harness, struct hd_fs *fs, struct hd_clock *clock,
	const char *job, const char *parent, uint64_t nsteps, struct hd_diag *diag);
/* The first of PARENT/runs/NAME, PARENT/runs/NAME-2, ... that is not there yet. */
void hd_harness_folder(struct hd_fs *fs, const char *parent, const char *name, char dir[HD_HARNESS_PATH]);
/* A run that goes on by itself: looked at, never ended. */
HD_MUST_USE enum hd_err hd_harness_visit(struct hd_harness *harness, struct hd_fs *fs, struct hd_clock *clock,
	const char *dir, struct hd_diag *diag);
void hd_harness_finish(struct hd_harness *harness);       /* ends the run if it goes on; takes zeroed ones */
HD_MUST_USE enum hd_err hd_harness_start(struct hd_harness *harness, uint32_t workers, const char *devices,
	struct hd_diag *diag);
/* Asks the coordinator, if there is one. HD_E_INTEGRITY: a hang, or an end with an error; HD_E_NOTFOUND: a
 * visited run that is gone; a signal to this process is its error. If all processes of the run are gone
 * before its end, it is resumed, as a user would. */
HD_MUST_USE enum hd_err hd_harness_look(struct hd_harness *harness, struct hd_diag *diag);
uint64_t hd_harness_step(const struct hd_harness *harness);       /* committed, as far as is known */
bool hd_harness_ended(struct hd_harness *harness);        /* its last checkpoint is whole */
/* Looks until step `step` is committed, or the run has ended. */
HD_MUST_USE enum hd_err hd_harness_reach(struct hd_harness *harness, uint64_t step, struct hd_diag *diag);
/* Looks until what `of` reads of the newest answer is n at least, or the run has ended. */
HD_MUST_USE enum hd_err hd_harness_until(struct hd_harness *harness,
	int64_t (*of)(const struct hd_status *live), int64_t n, struct hd_diag *diag);
/* Stops the run wherever it is, with a checkpoint, and waits until its processes have ended: as many steps as
 * it has then are the twin's (nsteps). So a script has no end to miss, however slow its scenes are. */
HD_MUST_USE enum hd_err hd_harness_stop(struct hd_harness *harness, struct hd_diag *diag);
/* Of a run that has ended: the steps of its newest checkpoint are the twin's. */
HD_MUST_USE enum hd_err hd_harness_take_end(struct hd_harness *harness, struct hd_diag *diag);
/* The coordinator's answer to a request; HD_E_NOTFOUND: there is none now. */
HD_MUST_USE enum hd_err hd_harness_ask(struct hd_harness *harness, const char *ask);
/* Settings of a twin that has no stages, whatever the job says. */
enum { HD_HARNESS_WHOLE = 8 };
extern const char *const hd_harness_whole_model[HD_HARNESS_WHOLE];
/* Runs the twin and compares. HD_E_INTEGRITY: the states differ. */
struct hd_harness_end { char disturbed[HD_HASH_HEX], twin[HD_HASH_HEX]; bool same; };
HD_MUST_USE enum hd_err hd_harness_compare(struct hd_harness *harness, struct hd_harness_end *end,
	struct hd_diag *diag);

#endif
