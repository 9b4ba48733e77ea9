/* failpoint.h -- fault injection: named places where a call fails, waits, or the process is killed.
 *
 * `HD_FAIL=name:action[#k][@n][/p]`, several joined by ';'. Actions:
 *   kill         SIGKILL to ourselves
 *   err=ERRNO    the place acts as if its call had failed so (ENOSPC, EIO, ... or a number)
 *   delay=MS     wait, then go on
 *   short=BYTES  only the first BYTES bytes of the transfer are made
 *   flip         one bit of the transfer is flipped (the lowest of the middle byte)
 * #k: only where the place's key is k (a number: the link it is about).
 * @n: at the n-th time the place is reached, only (from 1). /p: each time with probability
 * p, 0 < p < 1, drawn from the seed. Neither: each time.
 *
 * 1. The table is the only list: enum, names, tests and documents derive from it.
 * 2. Nothing armed: one load and an unlikely branch. Built without HD_FAILPOINTS: nothing
 *    at all, and arming is an error that says so.
 * 3. A place that carries no bytes takes kill, err and delay; the others are errors when armed.
 * 4. A place that stands for no call of the system takes kill and delay; an error changes nothing there.
 * 5. Orders: a process that watches a folder takes the syntax of HD_FAIL from there while it runs: from the
 *    file named by its process id, and from `any`. Before a process kills itself by such an order, it renames
 *    the file to `hit.NAME.PID`: the orders in `any` kill one process only, the first to reach a place, and
 *    the name of the file says which process and where.
 *
 * Threads: any; look: one. */
#ifndef HD_SYS_FAILPOINT_H
#define HD_SYS_FAILPOINT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* role: the process that reaches the place. ANY: one that trains, alone or not (with workers: the coordinator
 * for lines, else workers); a WORKER among others; the COORDINATOR; any with a LINK; the SCHEDULER.
 * After those of every run come those of sharded state (from HD_FP_OF_WHOLE on); after them (from
 * HD_FP_OF_RUNS on) what no run of a campaign comes by: norms over the global batch, instructions of stages,
 * and the scheduler.
 *        id                    name                    bytes  role         phase        where it lies */
#define HD_FAILPOINTS_TABLE(X) \
	X(CKPT_BEGIN,           "ckpt.begin",            false, ANY,         CHECKPOINT,  "before the temporary folder of a checkpoint is made") \
	X(CKPT_WRITE_BEFORE,    "ckpt.write.before",     true,  ANY,         CHECKPOINT,  "before each file of a checkpoint is written; holds its bytes") \
	X(CKPT_WRITE_AFTER,     "ckpt.write.after",      false, ANY,         CHECKPOINT,  "after each file of a checkpoint is written, before its fsync") \
	X(CKPT_FSYNC,           "ckpt.fsync",            false, ANY,         CHECKPOINT,  "in place of the fsync of each file of a checkpoint") \
	X(CKPT_MANIFEST_BEFORE, "ckpt.manifest.before",  true,  ANY,         CHECKPOINT,  "before the manifest is written; holds its bytes") \
	X(CKPT_MANIFEST_AFTER,  "ckpt.manifest.after",   false, ANY,         CHECKPOINT,  "after the manifest is written and synced") \
	X(CKPT_RENAME_BEFORE,   "ckpt.rename.before",    false, ANY,         CHECKPOINT,  "before the temporary folder gets its final name") \
	X(CKPT_RENAME_AFTER,    "ckpt.rename.after",     false, ANY,         CHECKPOINT,  "after the rename, before the folder above is synced") \
	X(CKPT_DIRSYNC,         "ckpt.dirsync",          false, ANY,         CHECKPOINT,  "in place of the fsync of the folder above") \
	X(CKPT_GC,              "ckpt.gc",               false, ANY,         CHECKPOINT,  "before each old checkpoint is removed") \
	X(STEP_BEGIN,           "step.begin",            false, ANY,         COMPUTE,     "before the first instruction of a step") \
	X(STEP_SEAL,            "step.seal",             false, ANY,         SEAL,        "when all gradients of a step are in, before the commit") \
	X(STEP_COMMIT,          "step.commit",           false, ANY,         SEAL,        "when the step is committed, before the update") \
	X(STEP_UPDATE_BEFORE,   "step.update.before",    false, ANY,         UPDATE,      "before the optimizer writes parameters") \
	X(STEP_UPDATE_AFTER,    "step.update.after",     false, ANY,         UPDATE,      "after the optimizer wrote the last parameter") \
	X(METRICS_WRITE,        "metrics.write",         true,  ANY,         COORDINATOR, "before a line of metrics is written; holds its bytes") \
	X(EVENTS_WRITE,         "events.write",          true,  ANY,         COORDINATOR, "before a line of events is written; holds its bytes") \
	X(COMPUTE_BEFORE,       "compute.before",        false, WORKER,      COMPUTE,     "before a worker computes a pass") \
	X(STATE_PARAMS,         "state.params",          true,  WORKER,      COMPUTE,     "before a worker computes a pass; holds its first parameter; key: the worker") \
	X(COMPUTE_AGAIN,        "compute.again",         false, WORKER,      COMPUTE,     "before virtual nodes of a lost worker are computed again") \
	X(COMPUTE_AFTER,        "compute.after",         false, WORKER,      COMPUTE,     "after a pass is computed") \
	X(EXCHANGE_ROOTS,       "exchange.roots",        false, WORKER,      EXCHANGE,    "before the roots of a bucket go to its owner") \
	X(EXCHANGE_ROOT_HERE,   "exchange.root.here",    false, WORKER,      EXCHANGE,    "when a root came from another worker") \
	X(EXCHANGE_LEAVES,      "exchange.leaves",       false, WORKER,      EXCHANGE,    "before what leaves say goes to the others") \
	X(EXCHANGE_LEAVES_HERE, "exchange.leaves.here",  false, WORKER,      EXCHANGE,    "when what leaves of another worker say is here") \
	X(EXCHANGE_SUM,         "exchange.sum",          false, WORKER,      EXCHANGE,    "before the sum of a bucket goes to the others") \
	X(EXCHANGE_SUM_HERE,    "exchange.sum.here",     false, WORKER,      EXCHANGE,    "when the sum of a bucket came") \
	X(FOLD_BEFORE,          "fold.before",           false, WORKER,      FOLD,        "before the roots of buckets are joined") \
	X(FOLD_AFTER,           "fold.after",            false, WORKER,      FOLD,        "after they are joined, before any message of it") \
	X(SEAL_BEFORE,          "seal.before",           false, WORKER,      SEAL,        "before a seal is sent to a member") \
	X(SEAL_HERE,            "seal.here",             false, WORKER,      SEAL,        "when the seal of another member came") \
	X(UPDATE_DONE,          "update.done",           false, WORKER,      UPDATE,      "when the state is that of the next step, before it is sealed") \
	X(GATE_BOUNDARY,        "gate.boundary",         false, WORKER,      GATE,        "between two steps, before anything is saved or sent to a joiner") \
	X(GATE_PASSED,          "gate.passed",           false, WORKER,      GATE,        "when a step begins at a worker: all have sealed the one before") \
	X(CHANGE_PREPARE,       "change.prepare",        false, WORKER,      CHANGE,      "before a worker prepares for a view to come") \
	X(CHANGE_ADOPT,         "change.adopt",          false, WORKER,      CHANGE,      "before a worker takes up its share of another view") \
	X(CHANGE_FENCE,         "change.fence",          false, WORKER,      CHANGE,      "when a new epoch came, before the status is sent") \
	X(CHANGE_VIEW,          "change.view",           false, WORKER,      CHANGE,      "when a view of the coordinator came") \
	X(CHANGE_TAKE_OVER,     "change.takeover",       false, WORKER,      CHANGE,      "before a worker starts a coordinator in place of a lost one") \
	X(TEACH_BEGIN,          "teach.begin",           false, WORKER,      TEACH,       "when a member begins to teach a learner") \
	X(TEACH_PIECE,          "teach.piece",           false, WORKER,      TEACH,       "before a piece of the state goes to a learner") \
	X(LEARN_PIECE,          "learn.piece",           false, WORKER,      TEACH,       "before a learner takes up a piece of the state") \
	X(LEARN_PROBE,          "learn.probe",           true,  WORKER,      TEACH,       "when a learner has computed the virtual node that it is asked for; holds the digest of its bits") \
	X(LEARN_DONE,           "learn.done",            false, WORKER,      TEACH,       "when a learner holds the state, before it says so") \
	X(STORE_BEFORE,         "store.before",          false, COORDINATOR, COORDINATOR, "before the coordinator writes down a decision; an error is that of the write") \
	X(STORE_AFTER,          "store.after",           false, COORDINATOR, COORDINATOR, "when it is written, before any message of it") \
	X(CO_ADMIT,             "co.admit",              false, COORDINATOR, COORDINATOR, "before a worker gets its id") \
	X(CO_LEARN,             "co.learn",              false, COORDINATOR, COORDINATOR, "before a joiner gets its source") \
	X(CO_PREPARE,           "co.prepare",            false, COORDINATOR, COORDINATOR, "before a worker gets a coming view") \
	X(CO_DECIDE,            "co.decide",             false, COORDINATOR, COORDINATOR, "before a worker gets the decision") \
	X(CO_FENCE,             "co.fence",              false, COORDINATOR, COORDINATOR, "before a worker gets a new epoch") \
	X(CO_VIEW,              "co.view",               false, COORDINATOR, COORDINATOR, "before a worker gets the view after a loss") \
	X(CO_COMMIT,            "co.commit",             false, COORDINATOR, COORDINATOR, "when the coordinator counts a step as committed") \
	X(WIRE_CONNECT,         "wire.connect",          false, LINK,        EXCHANGE,    "before a process calls another; key: the worker that is called") \
	X(WIRE_READ,            "wire.read",             false, LINK,        EXCHANGE,    "before bytes of a link are read; EAGAIN: nothing came; key: the worker at the other end") \
	X(WIRE_WRITE,           "wire.write",            false, LINK,        EXCHANGE,    "before bytes go to a link; EAGAIN: it takes none; key: the worker at the other end") \
	X(NORM_BEFORE,          "norm.before",           false, WORKER,      EXCHANGE,    "before the norms of a bucket's segments go to the others; sharded") \
	X(NORM_HERE,            "norm.here",             false, WORKER,      EXCHANGE,    "when those of another worker's bucket came; sharded") \
	X(PARAMS_BEFORE,        "params.before",         false, WORKER,      EXCHANGE,    "before a bucket's new parameters go to the others; sharded") \
	X(PARAMS_EARLY,         "params.early",          false, WORKER,      EXCHANGE,    "when a bucket's new parameters are made beside a pass, before they go to the others; sharded; key: the worker") \
	X(PARAMS_HERE,          "params.here",           false, WORKER,      EXCHANGE,    "when a bucket's new parameters came; sharded") \
	X(SLOTS_ASK,            "slots.ask",             false, WORKER,      CHANGE,      "before a worker asks another for slots of the optimizer") \
	X(SLOTS_ANSWER,         "slots.answer",          false, WORKER,      CHANGE,      "before a worker answers with slots") \
	X(SLOTS_HERE,           "slots.here",            false, WORKER,      CHANGE,      "when slots came, before they count") \
	X(SLOTS_SAVE,           "slots.save",            false, WORKER,      CHECKPOINT,  "when the checkpoint writer has all slots, before the checkpoint") \
	X(SYNC_HERE,            "sync.here",             false, WORKER,      EXCHANGE,    "when what another worker brings to a norm over the global batch came; key: the worker that it came to; model.bn: global") \
	X(PIPE_INSTR,           "pipe.instr",            false, WORKER,      COMPUTE,     "before each instruction of a plan in stages; key: the stage that it is of") \
	X(GRAPH_PART,           "graph.part",            false, ANY,         COMPUTE,     "before a device runs what lies between two meetings of virtual nodes: a graph in intervals, norms over the global batch; key: the device") \
	X(VALUE_MADE,           "value.made",            true,  WORKER,      COMPUTE,     "when an op has made a value, in steps that trace.values looks at; holds the value; key: the virtual node") \
	X(DATA_READ,            "data.read",             false, WORKER,      COMPUTE,     "before the rows of a virtual node are read") \
	X(AHEAD_RUN,            "ahead.run",             false, WORKER,      COMPUTE,     "before a worker runs what it can of the next step while the one at hand ends; key: the worker") \
	X(RATIO_BEFORE,         "ratio.before",          false, WORKER,      EXCHANGE,    "before sums of squares of a bucket's parameters and moves go to the others; lamb by stages") \
	X(RATIO_HERE,           "ratio.here",            false, WORKER,      EXCHANGE,    "when those of another worker's bucket came; lamb by stages") \
	X(CO_RESTORE,           "co.restore",            false, COORDINATOR, COORDINATOR, "before the newest checkpoint is read, where no worker holds the state") \
	X(DAEMON_OPEN,          "daemon.open",           false, SCHEDULER,   COORDINATOR, "when the scheduler has opened its store, before its first decision") \
	X(DAEMON_TAKE,          "daemon.take",           false, SCHEDULER,   COORDINATOR, "when a new job has its run's folder, before it is stored") \
	X(DAEMON_SOLVE,         "daemon.solve",          false, SCHEDULER,   COORDINATOR, "before a policy is asked for shares, where that is done") \
	X(JOBS_COMMIT_BEFORE,   "jobs.commit.before",    false, SCHEDULER,   COORDINATOR, "before what the scheduler decided is committed; an error is that of the commit") \
	X(JOBS_COMMIT_AFTER,    "jobs.commit.after",     false, SCHEDULER,   COORDINATOR, "when it is on the disk, before any message of it") \
	X(DAEMON_ORDER,         "daemon.order",          false, SCHEDULER,   COORDINATOR, "before an order of a decision is carried out") \
	X(DAEMON_SPAWN_BEFORE,  "daemon.spawn.before",   false, SCHEDULER,   COORDINATOR, "before the scheduler starts a coordinator or a worker") \
	X(DAEMON_SPAWN_AFTER,   "daemon.spawn.after",    false, SCHEDULER,   COORDINATOR, "when it was started, before anything else is known of it") \
	X(DAEMON_OVER,          "daemon.over",           false, SCHEDULER,   COORDINATOR, "when the end of a run was read, before it is decided upon") \
	X(DAEMON_ANSWER,        "daemon.answer",         false, SCHEDULER,   COORDINATOR, "when what a user asked for is done, before the answer") \
	X(BLOB_READ,            "blob.read",             false, ANY,         COMPUTE,     "when a read of a shard's file has ended; an error is the read's") \
	X(BACKUP_WHOLE,         "backup.whole",          false, ANY,         COMPUTE,     "when all files of a backup are written, before it has its name") \
	X(RESTORE_PLACE,        "restore.place",         false, ANY,         COMPUTE,     "when a restored store knows what ran since, before it takes its place") \
	X(REPLACE_TRIED,        "replace.tried",         false, ANY,         COMPUTE,     "when a scheduler has tried to serve a copy, before it asks the one that serves to end") \
	X(REPLACE_ENDED,        "replace.ended",         false, ANY,         COMPUTE,     "when that one has ended, before the store is opened") \
	X(URING_OPEN,           "uring.open",            false, ANY,         COMPUTE,     "in place of the set-up of io_uring") \
	X(ACCOUNT_LEND,         "account.lend",          false, ANY,         COMPUTE,     "when a scheduler takes a user's rights on files; an error is that of the call") \
	X(SWEEP_SPAWN,          "sweep.spawn",           false, ANY,         COMPUTE,     "before a sweep starts a scheduler") \
	X(SWEEP_MARK,           "sweep.mark",            false, ANY,         COMPUTE,     "when it has started one, before it is written down which")

enum hd_fp_role { HD_FP_ANY, HD_FP_WORKER, HD_FP_COORDINATOR, HD_FP_LINK, HD_FP_SCHEDULER };

/* What a step, or the life of a job, is made of: a death in each must harm nothing. */
#define HD_FP_PHASES(X) \
	X(COMPUTE, "compute") X(EXCHANGE, "exchange") X(FOLD, "fold") X(SEAL, "seal") X(UPDATE, "update") X(GATE, "gate") X(CHANGE, "change") \
	X(TEACH, "teach") X(CHECKPOINT, "checkpoint") X(COORDINATOR, "coordinator")

enum hd_fp_phase {
#define X(id, name) HD_FP_PHASE_##id,
	HD_FP_PHASES(X)
#undef X
	HD_FP_NPHASES
};

enum hd_failpoint {
#define X(id, name, bytes, role, phase, where) HD_FP_##id,
	HD_FAILPOINTS_TABLE(X)
#undef X
	HD_FP_COUNT,
	HD_FP_OF_WHOLE = HD_FP_NORM_BEFORE,       /* how many a run may come by without sharded state */
	HD_FP_OF_RUNS = HD_FP_SYNC_HERE,        /* and with it */
};

/* 0, or the errno the place must act on. The second form may shorten *len or flip a bit of bytes.
 *     int error = HD_FAILPOINT(CKPT_FSYNC);
 *     if (error) { err = hd_fail_errno(diag, error, "sync", path); goto out; }              */
#ifdef HD_FAILPOINTS
extern atomic_bool hd_failpoint_live;             /* anything armed; else only the fast path runs */
#define HD_FAILPOINT_ARMED \
	__builtin_expect(atomic_load_explicit(&hd_failpoint_live, memory_order_relaxed), 0)
#define HD_FAILPOINT(id) \
	(HD_FAILPOINT_ARMED ? hd_failpoint_hit(HD_FP_##id, NULL, NULL) : 0)
#define HD_FAILPOINT_BYTES(id, bytes, len) \
	(HD_FAILPOINT_ARMED ? hd_failpoint_hit(HD_FP_##id, (bytes), (len)) : 0)
#define HD_FAILPOINT_AT(point) \
	(HD_FAILPOINT_ARMED ? hd_failpoint_hit((point), NULL, NULL) : 0)
#define HD_FAILPOINT_KEY(id, key) \
	(HD_FAILPOINT_ARMED ? hd_failpoint_hit_key(HD_FP_##id, (key)) : 0)
#define HD_FAILPOINT_KEY_BYTES(id, key, bytes, len) \
	(HD_FAILPOINT_ARMED ? hd_failpoint_hit_both(HD_FP_##id, (key), (bytes), (len)) : 0)
#else
#define HD_FAILPOINT(id) (0)
#define HD_FAILPOINT_BYTES(id, bytes, len) ((void)(bytes), (void)(len), 0)
#define HD_FAILPOINT_AT(point) ((void)(point), 0)
#define HD_FAILPOINT_KEY(id, key) ((void)(key), 0)
#define HD_FAILPOINT_KEY_BYTES(id, key, bytes, len) ((void)(key), (void)(bytes), (void)(len), 0)
#endif
/* by the macros, as are the next two */
int hd_failpoint_hit(enum hd_failpoint point, void *bytes, size_t *len);
int hd_failpoint_hit_key(enum hd_failpoint point, uint32_t key);
int hd_failpoint_hit_both(enum hd_failpoint point, uint32_t key, void *bytes, size_t *len);

/* Replaces what was armed and sets the counts to 0; NULL or "" disarms. An error arms nothing. */
HD_MUST_USE enum hd_err hd_failpoint_arm(const char *spec, uint64_t seed, struct hd_diag *diag);
const char *hd_failpoint_name(enum hd_failpoint point);
const char *hd_failpoint_where(enum hd_failpoint point);
bool hd_failpoint_has_bytes(enum hd_failpoint point);
enum hd_fp_role hd_failpoint_role(enum hd_failpoint point);
enum hd_fp_phase hd_failpoint_phase(enum hd_failpoint point);
const char *hd_fp_phase_name(enum hd_fp_phase phase);
uint64_t hd_failpoint_hits(enum hd_failpoint point);       /* counted while anything is armed */
bool hd_failpoint_built(void);

/* Orders are taken from this folder from now on (kept); NULL: from none. It need not be there. */
void hd_failpoint_watch(const char *folder);
/* Takes what has changed there; at the start, and now and then. An order that cannot be parsed arms nothing
 * and is reported on stderr. */
void hd_failpoint_look(void);

#endif
