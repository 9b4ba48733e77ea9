/* failpoint.h -- named places where a test makes the next call fail, wait, or kill the process.
 *
 * `HD_FAIL=name:action[@n][/p]`, several joined by ';'. Actions:
 *   kill         SIGKILL to ourselves
 *   err=ERRNO    the place acts as if its call had failed so (ENOSPC, EIO, ... or a number)
 *   delay=MS     wait, then go on
 *   short=BYTES  only the first BYTES bytes of the transfer are made
 *   flip         one bit of the transfer is flipped (the lowest of the middle byte)
 * @n: at the n-th time the place is reached, only (from 1). /p: each time with probability
 * p, 0 < p < 1, drawn from the seed. Neither: each time.
 *
 * 1. The table is the only list: enum, names, tests and documents derive from it.
 * 2. Nothing armed: one load and an unlikely branch. Built without HD_FAILPOINTS: nothing
 *    at all, and arming is an error that says so.
 * 3. A place that carries no bytes takes kill, err and delay; the others are errors when armed.
 *
 * Threads: arm before other threads start; places are reached by any. */
#ifndef HD_SYS_FAILPOINT_H
#define HD_SYS_FAILPOINT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/*        id                   name                   bytes  where it lies                                                        */
#define HD_FAILPOINTS_TABLE(X)                                                                                                     \
	X(CKPT_BEGIN,          "ckpt.begin",          false, "before the temporary folder of a checkpoint is made")                \
	X(CKPT_WRITE_BEFORE,   "ckpt.write.before",   true,  "before each file of a checkpoint is written; holds its bytes")       \
	X(CKPT_WRITE_AFTER,    "ckpt.write.after",    false, "after each file of a checkpoint is written, before its fsync")       \
	X(CKPT_FSYNC,          "ckpt.fsync",          false, "in place of the fsync of each file of a checkpoint")                 \
	X(CKPT_MANIFEST_BEFORE,"ckpt.manifest.before",true,  "before the manifest is written; holds its bytes")                    \
	X(CKPT_MANIFEST_AFTER, "ckpt.manifest.after", false, "after the manifest is written and synced")                           \
	X(CKPT_RENAME_BEFORE,  "ckpt.rename.before",  false, "before the temporary folder gets its final name")                     \
	X(CKPT_RENAME_AFTER,   "ckpt.rename.after",   false, "after the rename, before the folder above is synced")                \
	X(CKPT_DIRSYNC,        "ckpt.dirsync",        false, "in place of the fsync of the folder above")                          \
	X(CKPT_GC,             "ckpt.gc",             false, "before each old checkpoint is removed")                               \
	X(STEP_BEGIN,          "step.begin",          false, "before the first instruction of a step")                             \
	X(STEP_SEAL,           "step.seal",           false, "when all gradients of a step are in, before the commit")             \
	X(STEP_COMMIT,         "step.commit",         false, "when the step is committed, before the update")                      \
	X(STEP_UPDATE_BEFORE,  "step.update.before",  false, "before the optimizer writes parameters")                             \
	X(STEP_UPDATE_AFTER,   "step.update.after",   false, "after the optimizer wrote the last parameter")                       \
	X(METRICS_WRITE,       "metrics.write",       true,  "before a line of metrics is written; holds its bytes")               \
	X(EVENTS_WRITE,        "events.write",        true,  "before a line of events is written; holds its bytes")

enum hd_failpoint {
#define X(id, name, bytes, where) HD_FP_##id,
	HD_FAILPOINTS_TABLE(X)
#undef X
	HD_FP_COUNT
};

/* 0, or the errno the place must act on. The second form may shorten *len or flip a bit of bytes.
 *     int error = HD_FAILPOINT(CKPT_FSYNC);
 *     if (error) { err = hd_fail_errno(diag, error, "sync", path); goto out; }              */
#ifdef HD_FAILPOINTS
extern atomic_bool hd_failpoint_live;             /* anything armed; else nobody leaves the fast path */
#define HD_FAILPOINT(id) \
	(__builtin_expect(atomic_load_explicit(&hd_failpoint_live, memory_order_relaxed), 0) ? hd_failpoint_hit(HD_FP_##id, NULL, NULL) : 0)
#define HD_FAILPOINT_BYTES(id, bytes, len) \
	(__builtin_expect(atomic_load_explicit(&hd_failpoint_live, memory_order_relaxed), 0) ? hd_failpoint_hit(HD_FP_##id, (bytes), (len)) : 0)
#else
#define HD_FAILPOINT(id) (0)
#define HD_FAILPOINT_BYTES(id, bytes, len) ((void)(bytes), (void)(len), 0)
#endif
int hd_failpoint_hit(enum hd_failpoint point, void *bytes, size_t *len);        /* by the macros */

/* Replaces what was armed and sets the counts to 0; NULL or "" disarms. An error arms nothing. */
HD_MUST_USE enum hd_err hd_failpoint_arm(const char *spec, uint64_t seed, struct hd_diag *diag);
const char *hd_failpoint_name(enum hd_failpoint point);
const char *hd_failpoint_where(enum hd_failpoint point);
bool hd_failpoint_has_bytes(enum hd_failpoint point);
uint64_t hd_failpoint_hits(enum hd_failpoint point);       /* counted while anything is armed */
bool hd_failpoint_built(void);

#endif
