/* value_log.h -- digests of the values of a run's steps (engine/values.h), written down by the workers that
 * made them; and where two runs differ first.
 *
 * With `trace.values` each process of a run appends to a file of its own, DIR/values/WORKER.ndjson:
 *
 *	{"graph":["#0 F embed of wte",...],"tensors":["wte",...],"segments":[[0,0,4096],...]}
 *	{"step":4,"vn":3,"rank":0,"stage":1,"made":[[17,"9120344"],...]}      node, digest
 *	{"step":4,"rank":0,"state":[[2,"77120"],...]}                         segment, digest
 *
 * The first line stands wherever a process has opened the file: names of the nodes; of the parameters; and of
 * each segment its parameter, first element and length. `rank` is the device of the worker.
 *
 * `heddle ckpt diff A B --explain` compares two runs:
 *
 * 1. Keys are (step, virtual node, node of the training graph), then (step, segment of the state), in this
 *    order; no plan is in a key. Keys that one run alone has are counted, and compared with nothing. If no
 *    key is in both, nothing is known: that is not agreement.
 * 2. The first key whose digests differ is the difference. If they differ within one run (virtual nodes that
 *    were computed again after a loss, state that several workers update), it is that run's, and both places
 *    are of it.
 * 3. Values come before the state of their step. So a difference of the state alone is of the sums over
 *    virtual nodes or of the update; and one of state before steps whose values are compared is found there.
 * 4. A line that a death tore is no record: it is the last one of its file, or stands before a first line.
 *    Such are counted; any other line that cannot be read is damage. A worker of another machine cannot reach
 *    the folder and keeps none.
 *
 * Ownership: open/close; what is compared lies in the caller's arena. Threads: one at a time. */
#ifndef HD_RUN_VALUE_LOG_H
#define HD_RUN_VALUE_LOG_H

#include "sys/lines.h"
#include "engine/task.h"
#include "engine/values.h"

#define HD_VALUES_FOLDER "values"         /* in a run's folder */

struct hd_value_log {
	struct hd_lines lines;
	struct hd_arena arena;            /* of a line */
	bool open;
};

HD_MUST_USE enum hd_err hd_value_log_open(struct hd_value_log *log, struct hd_fs *fs, const char *dir,
	uint32_t worker, const struct hd_task *task, struct hd_diag *diag);
/* All marks. */
HD_MUST_USE enum hd_err hd_value_log_put(struct hd_value_log *log, const struct hd_values *values,
	struct hd_diag *diag);
void hd_value_log_close(struct hd_value_log *log);        /* takes zeroed ones */

struct hd_value_place { uint32_t worker, rank, stage; };

struct hd_value_difference {
	bool found;
	uint64_t compared, steps;         /* keys that both have and that agree, up to it; of so many steps */
	uint64_t alone[2];                /* keys that A, B alone has, up to it (1) */
	uint64_t torn[2];                 /* lines of A, B that are no record (4) */
	const char *within;               /* "A", "B": of that run alone (2); NULL: between the two */
	uint64_t step;
	uint32_t vn, nvns;                /* HD_NONE: the state after it; how many differ in the step */
	char what[200];                   /* "#17 F matmul of h0.w"; "h0.w, elements 0 to 4095" */
	struct hd_value_place a, b;
};

/* Of two runs' folders. HD_E_NOTFOUND: one has no record, or is no run. HD_E_INPUT: a record is damaged, of
 * the file and line that it names, or they are of other graphs. */
HD_MUST_USE enum hd_err hd_value_diff(struct hd_fs *fs, const char *a, const char *b, struct hd_arena *arena,
	struct hd_value_difference *found, struct hd_diag *diag);

#endif
