/* samples.h -- which samples the virtual nodes of each step took, written down by the worker that computed
 * them; and the proof that follows.
 *
 * With `trace.samples` each process of a run appends to a file of its own, DIR/samples/WORKER.ndjson, a line
 * for each virtual node that it computed:
 *
 *	{"step":12,"vn":3,"took":[[0,[17,4,5]]]}       for each data epoch the samples in the order of the
 *	                                               rows
 *
 * A run writes through hd_run_took(); `heddle chaos run` and `heddle data verify RUN` check.
 *
 * 1. What is written are the names that the reader noted when it asked the data set (prefetch.h), not what
 *    the sampler would say now.
 * 2. A line is in the file before it is announced that the virtual node is computed. So every virtual node of
 *    a step that counts has one, however its worker ended; what was computed for nothing may have one too.
 * 3. A virtual node that was computed twice (after a loss, after a resume) has several lines; all must say
 *    the same, and count once.
 * 4. Steps below that of the newest checkpoint count. In them every data epoch has each sample once; one that
 *    has not ended, or leaves out a rest (`batch.last: drop`), each at most once and as many as it has
 *    positions.
 * 5. A line that a death tore is no record. A worker of another machine cannot reach the folder and keeps
 *    none.
 *
 * Ownership: open/close; check's memory is freed before it returns. Threads: one at a time. */
#ifndef HD_RUN_SAMPLES_H
#define HD_RUN_SAMPLES_H

#include "base/text.h"
#include "sys/lines.h"
#include "data/prefetch.h"

#define HD_SAMPLES_FOLDER "samples"       /* in a run's folder */

struct hd_samples {
	struct hd_lines lines;
	struct hd_text text;              /* lines not yet written */
	char *room;                       /* owned: of a whole step */
};

/* `rows`: the most of a step; `nvns` lines at most between two calls of write(). */
HD_MUST_USE enum hd_err hd_samples_open(struct hd_samples *samples, struct hd_fs *fs, const char *dir,
	uint32_t worker, uint32_t nvns, uint64_t rows,
	struct hd_diag *diag);
void hd_samples_put(struct hd_samples *samples, uint64_t step, uint32_t vn, const struct hd_sample *sample,
	uint64_t n);
HD_MUST_USE enum hd_err hd_samples_write(struct hd_samples *samples, struct hd_diag *diag);
void hd_samples_close(struct hd_samples *samples);        /* takes zeroed ones */

struct hd_samples_law {
	uint64_t count, batch, nsteps;    /* D, B; steps that count */
	uint32_t nvns;
	enum hd_last last;
};
struct hd_samples_found {
	uint64_t epochs, epoch, rest;     /* whole data epochs; samples of each; of the one after them */
	uint64_t lines, again, torn;      /* again: of a virtual node and step that had one */
};

/* HD_E_NOTFOUND: there is no record. HD_E_INTEGRITY: it breaks rule 3 or 4; where, and which sample. Or there
 * are more steps than a run can have. For tests. */
HD_MUST_USE enum hd_err hd_samples_check(struct hd_fs *fs, const char *dir, const struct hd_samples_law *law,
	struct hd_samples_found *found,
	struct hd_diag *diag);
/* The same of a task, whose law it is; `nsteps`: those that count. */
struct hd_task;
HD_MUST_USE enum hd_err hd_samples_verify(const struct hd_task *task, struct hd_fs *fs, const char *dir,
	uint64_t nsteps, struct hd_samples_found *found,
	struct hd_diag *diag);

#endif
