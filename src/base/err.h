/* err.h -- the one error type of the tree (floor 0).
 *
 * A function that can fail returns enum hd_err and nothing else. Results leave
 * through out-parameters, which are set only on success. The first to know that
 * something failed calls hd_fail() with the facts a user needs (what, where, what
 * to do now); everyone above passes the code on, or handles it.
 *
 * 1. The hundreds digit is the blast radius: the largest thing that is
 *    permanently hurt. Recovery switches on the radius; only tests and messages
 *    look at single codes.
 * 2. The exit code of the program is a column of the same table (see the manual
 *    for what a scheduler should make of each).
 * 3. Codes are written into logs and never reused; retired rows stay, marked.
 *
 * Threads: a diag belongs to one thread at a time; the functions are pure. */
#ifndef HD_BASE_ERR_H
#define HD_BASE_ERR_H

/*        id            code  exit  text                                                              */
#define HD_ERRS(X)                                                                                     \
	X(OK,              0,    0, "ok")                                                              \
	/* op: repeat it, or do it another way */                                                      \
	X(E_NOSPACE,    -101,    1, "the caller's storage is too small")                               \
	X(E_STALE,      -102,    1, "the message belongs to an earlier membership epoch")              \
	X(E_NOTFOUND,   -103,    3, "it does not exist")                                               \
	X(E_EXISTS,     -104,    2, "it exists already")                                               \
	X(E_AGAIN,      -105,    1, "it is not ready yet")                                             \
	X(E_IO,         -106,   11, "an input or output operation failed")                             \
	/* peer: the rest of the job can go on without it */                                           \
	X(E_PEERLOST,   -201,   75, "the peer is gone")                                                \
	X(E_PROTOCOL,   -202,    1, "the peer does not keep to the protocol")                          \
	/* job: this job cannot go on, the process can */                                              \
	X(E_INVAL,      -301,    2, "the request makes no sense")                                      \
	X(E_BADPLAN,    -302,    2, "the plan breaks a rule")                                          \
	X(E_DIVERGED,   -303,    4, "the loss or a gradient is not a finite number")                   \
	X(E_INPUT,      -304,    3, "an input file is bad")                                            \
	X(E_INTEGRITY,  -305,    5, "the data are not what they were")                                 \
	X(E_WORKERS,    -306,   10, "too few workers")                                                 \
	X(E_REFUSED,    -307,   11, "the machine refuses what is needed")                              \
	X(E_PREEMPTED,  -308,   75, "preempted; a checkpoint is committed")                            \
	X(E_INTERRUPT,  -309,  130, "interrupted; a checkpoint is committed")                          \
	/* process: say so and leave */                                                                \
	X(E_NOMEM,      -401,   11, "out of memory")                                                   \
	X(E_BUG,        -402,    1, "an internal rule is broken: this is a bug in heddle")

enum hd_err {
#define X(id, code, exit, text) HD_##id = (code),
	HD_ERRS(X)
#undef X
};

enum hd_radius { HD_UNHURT, HD_HURT_OP, HD_HURT_PEER, HD_HURT_JOB, HD_HURT_PROCESS };

struct hd_diag { char text[600]; };               /* "" until the first failure */

#define HD_MUST_USE __attribute__((warn_unused_result))

static inline enum hd_radius hd_err_radius(enum hd_err err) { return (enum hd_radius)(-(int)err / 100); }
const char *hd_err_text(enum hd_err err);         /* never NULL */
int hd_err_exit(enum hd_err err);
/* how a job ended whose process left with that code; 0: HD_OK; none of ours: HD_E_BUG */
enum hd_err hd_err_of_exit(int exit);

/* Writes `diag` only while it is empty (the first to know, speaks) and returns
 * `err`. `diag` may be NULL. Text that does not fit is cut with "...". What it quotes may be anything:
 * control characters but newline, and bytes that are no UTF-8, become \xNN, so that no file writes to a
 * terminal. */
__attribute__((format(printf, 3, 4)))
enum hd_err hd_fail(struct hd_diag *diag, enum hd_err err, const char *fmt, ...);

#endif
