/* terms.h -- on what terms a job runs, besides devices: whether it is held, after which jobs, as which task
 * of an array, for how long.
 *
 * The live scheduler (dispatch.h) keeps them; the store and the log write them as the texts below.
 *
 * 1. A job runs after jobs with smaller ids only, so no two wait for each other.
 *    The first task of an array stands for all its tasks: "ok" once all are done, "fail" once one is not.
 * 2. What a job runs after is decided once, as that job ends: MET or BROKEN, and never changes again. A job
 *    with one BROKEN is cancelled.
 * 3. Tasks of an array have consecutive ids and the same `array`, the id of the first.
 * 4. Times are seconds; 0: none.
 *
 * Plain values, pure. */
#ifndef HD_SCHEDULER_TERMS_H
#define HD_SCHEDULER_TERMS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/text.h"

enum {
	HD_TERMS_AFTER = 8,               /* jobs that one runs after */
	HD_TERMS_TASKS = 1000,            /* of one array */
	HD_TERMS_INDEX = 1000000,         /* the largest index of a task */
	HD_TERMS_TEXT = HD_TERMS_AFTER * 40,
};

/*        id     name    it may run as soon as the other job */
#define HD_AFTERS(X)                                          \
	X(OK,    "ok")   /* is done */                        \
	X(FAIL,  "fail") /* failed, was cancelled, or used up its time */ \
	X(ANY,   "any")  /* is over */

enum hd_after_kind {
#define X(id, name) HD_AFTER_##id,
	HD_AFTERS(X)
#undef X
	HD_AFTER_NKINDS
};

/*        id       name */
#define HD_AFTER_NOWS(X)   \
	X(WAITS,   "waits")   \
	X(MET,     "met")     \
	X(BROKEN,  "broken")

enum hd_after_now {
#define X(id, name) HD_AFTER_##id,
	HD_AFTER_NOWS(X)
#undef X
	HD_AFTER_NNOWS
};

struct hd_after { uint64_t job; enum hd_after_kind kind; enum hd_after_now now; };

struct hd_job_terms {
	bool held;
	double limit_s;                   /* of running time, beyond which it commits and ends */
	double expect_s;                  /* how long it would run on `scale` devices of its fastest type */
	uint64_t array;                   /* 0: no task of an array */
	uint32_t index, at_once;          /* at_once: tasks of the array that may run together; 0: all */
	uint32_t nafter;
	struct hd_after after[HD_TERMS_AFTER];
};

const char *hd_after_name(enum hd_after_kind kind);
/* "ok"; false: no such kind. */
bool hd_after_kind_of(const char *name, enum hd_after_kind *kind);
/* What it becomes as the other job is over; of an array: one more of its tasks, `last` if all are. */
enum hd_after_now hd_after_judge(enum hd_after_kind kind, bool done, bool last);

/* "7:ok:waits 9:any:met"; "" none. `text` of HD_TERMS_TEXT bytes. */
void hd_terms_put_after(const struct hd_job_terms *terms, char *text);
/* The same read: sets after and nafter alone. HD_E_INPUT. */
HD_MUST_USE enum hd_err hd_terms_get_after(struct hd_job_terms *terms, const char *text,
	struct hd_diag *diag);

/* An array as its user writes it, "0-9", "0-3,8,12-20%4": indices of its tasks, ascending, each once, and how
 * many may run at once (0: all). HD_E_INVAL. */
struct hd_tasks { uint32_t n, at_once, index[HD_TERMS_TASKS]; };
HD_MUST_USE enum hd_err hd_tasks_read(struct hd_tasks *tasks, const char *text, struct hd_diag *diag);
/* `text` with the index in place of each "{index}"; others in braces stay. Appended to `to`. */
void hd_tasks_put(const char *text, uint32_t index, struct hd_text *to);

#endif
