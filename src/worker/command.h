/* command.h -- commands from the I/O thread to the compute thread, and their results.
 *
 * A worker process has two threads besides its devices'. The *I/O thread* owns the hub and the member
 * machine, and never computes. The *compute thread* owns the worker (dist.h), and does not talk; while the
 * other one rests it may take its turn (elastic_turn.c). Commands go one way, results the other, in order.
 *
 * 1. Commands are done in the order given. Adjacent FOLDs, and adjacent ARRIVEDs, are taken as one run, so
 *    that the devices share them.
 * 2. Neither thread waits for the other: give() fails with HD_E_AGAIN only when HD_COMMANDS are open, more
 *    than a step can have. Only at a BOUNDARY may the compute thread wait, for a joiner (catchup.h, rule
 *    2).
 * 3. A result is stored before `wake`, which takes it up or wakes the I/O thread. Each command taken has one
 *    result, but QUIT.
 *
 * 4. `call` is called after a command was given, by the thread that gave it: what the compute thread does
 *    while none waits is to end soon. hd_commands_wait() says whether one does.
 *
 * Ownership: plain values are copied; what a command points to is the giver's until its result.
 * Threads: give(), result(): the one that has the I/O thread's turn. take(), done(): compute thread.
 * progress: any. */
#ifndef HD_WORKER_COMMAND_H
#define HD_WORKER_COMMAND_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "sys/clock.h"
#include "sys/lock.h"
#include "protocol/view.h"
#include "engine/worker.h"

/*        id         reads                  the compute thread */
#define HD_COMMANDS_TABLE(X) \
	X(PREPARE,  "view",                           "prepares its part of a coming view") \
	X(BEGIN,    "step, view, ahead, goes_on, flag", "adopts the view if it is another one, and begins the step") \
	X(COMPUTE,  "step, pass, stage, range, round, flag", "computes a pass; flag: no sum of it is here yet") \
	X(STOP,     "step, round",                    "says how far its ranks are, which a fence stopped") \
	X(REST,     "step, view, rest",               "goes on with the step in that view, after a loss") \
	X(FOLD,     "bucket, operand",                "joins the roots of a bucket") \
	X(ARRIVED,  "bucket",                         "takes note of a sum that was received") \
	X(METRICS,  "step, own, round",               "all metrics are here: takes them, for what runs ahead") \
	X(READABLE, "step, bucket",                   "sharded state: new parameters came, which what runs ahead may read") \
	X(UPDATE,   "step, own",                      "sharded state: updates the own buckets") \
	X(FINISH,   "step",                           "updates; sharded state: takes up the new parameters") \
	X(BOUNDARY, "step, flag, final",              "sends state, evaluates, saves") \
	X(CANCEL,   "step",                           "leaves the step as it was before it began") \
	X(RESTORE,  "step",                           "takes the state from disk, or the initial one") \
	X(TRANSFER, "worker, flag",                   "begins or ends a state transfer to a joiner") \
	X(CHUNK,    "number",                         "applies a chunk of a state transfer") \
	X(RECORD,   "view",                           "writes the plan of a view that is in force into the run's folder") \
	X(QUIT,     "",                               "returns")

enum hd_command_kind {
#define X(id, reads, text) HD_COMMAND_##id,
	HD_COMMANDS_TABLE(X)
#undef X
	HD_COMMAND_NKINDS
};

struct hd_command {
	enum hd_command_kind kind;
	uint64_t step;
	uint32_t pass, stage, bucket, worker, number, nranges;
	/* a byte for each bucket. METRICS, UPDATE, FINISH: to update; BOUNDARY, gathered: whose slots stay */
	const uint8_t *own;
	uint32_t round;                   /* COMPUTE, METRICS, STOP: as hd_elastic.round when it was given */
	bool ahead, goes_on;              /* BEGIN: as the machine says (member.h, rule 13) */
	/* flag: of FINISH: another worker holds some of what this one does; gathered: of BOUNDARY: all slots
	 * that it saves are here */
	bool flag, final, gathered;
	const void *bytes;                /* CHUNK */
	uint64_t len;
	const float *const *operand;      /* FOLD: of each root of the step, as the relay named them */
	const struct hd_vrange *range;    /* COMPUTE */
	const struct hd_view *view;       /* PREPARE, BEGIN, REST, RECORD, TRANSFER to HD_NOBODY */
	/* REST: the next instruction of each rank; behind them, a byte each, what has arrived (dist.h) */
	const uint32_t *rest;
};

/* The result of one: the command, and what came of it. */
struct hd_command_done {
	struct hd_command command;
	enum hd_err err;
	bool halt;                        /* BOUNDARY: the target is reached */
	/* BOUNDARY: slots for the checkpoint are at other members; the command is given again */
	bool lacks;
	bool synced;                     /* CHUNK: all of X_step is here */
	bool over;                        /* CHUNK: its source gave up */
	bool rejoin;                      /* RESTORE: the initial state is not here any more, nor on disk */
	bool refused;                     /* PREPARE, BEGIN: memory or disk do not take the view's plan */
	bool unfit;                       /* likewise, and nothing was changed: another view follows */
	bool stuck;                       /* REST: it cannot be done here */
	bool for_all;                     /* FINISH, UPDATE: no worker can finish the step */
	uint64_t step;                    /* CHUNK, RESTORE: of the state */
	uint64_t sum_digest, state_digest, took_ns, waited_ns, computed_ns;     /* FINISH */
	const uint64_t *held;             /* FINISH: NULL, or a digest of each bucket (member.h) */
	struct hd_step_record record;     /* FINISH */
	struct hd_diag diag;
};

enum { HD_COMMANDS = 1 << 17, HD_COMMANDS_RUN = 8 };

struct hd_commands {
	struct hd_lock lock;
	struct hd_cond given;
	struct hd_command *command;             /* owned: a ring of HD_COMMANDS */
	struct hd_command_done *done;        /* owned: a ring of HD_COMMANDS_RESULTS */
	uint64_t first, end, first_done, end_done;
	/* which number lies at the beginning of each ring: the first after it was empty, so that only as much
	 * of a ring takes memory as was ever queued at once */
	uint64_t base, base_done;
	struct hd_clock clock;
	void (*wake)(void *user);
	void *user;
	/* rule 4; NULL: it does nothing between two commands that would have to end */
	void (*call)(void *compute);
	void *compute;
	_Atomic uint64_t progress;        /* commands, and instructions of devices, done */
	_Atomic bool busy;
};
enum { HD_COMMANDS_RESULTS = 1 << 12 };

HD_MUST_USE enum hd_err hd_commands_init(struct hd_commands *commands, void (*wake)(void *user), void *user,
	struct hd_diag *diag);
void hd_commands_finish(struct hd_commands *commands);          /* takes zeroed ones; no thread waits */

HD_MUST_USE enum hd_err hd_commands_give(struct hd_commands *commands, const struct hd_command *command,
	struct hd_diag *diag);
/* The oldest result; false: none. */
bool hd_commands_result(struct hd_commands *commands, struct hd_command_done *done);

bool hd_commands_wait(struct hd_commands *commands);    /* is there one to take? Any thread */
/* Waits for commands: one, or a run of FOLD, or of ARRIVED, of at most `cap`. How many. */
uint32_t hd_commands_take(struct hd_commands *commands, struct hd_command *command, uint32_t cap);
/* Of each that was taken, in order. Waits while HD_COMMANDS_RESULTS are not fetched. */
void hd_commands_done(struct hd_commands *commands, const struct hd_command_done *done);

#endif
