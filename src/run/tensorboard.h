/* tensorboard.h -- the scalars of a run as TensorBoard reads them: a file of records beside metrics.ndjson.
 *
 * events.out.tfevents.<seconds>.<pid> in the run's folder; each process that holds the run begins one of its
 * own. A record is u64 length, the masked CRC-32C of these bytes, a message, its masked CRC-32C. The first
 * names the version, the second says at which step the run goes on: what older files have from there on does
 * not count.
 *
 * 1. Scalars alone: loss, lr, gnorm, step_ms, samples, workers; eval_<split>/ and
 *    each number of an evaluation but rows: loss, perplexity, what eval.metrics names.
 * 2. A record is whole or was cut off by the end of the process, which readers take for the end. One that
 *    cannot be written (a full disk) is cut off again and counted in `lost`; the next is tried.
 *
 * Source of the formats: TensorFlow's record writer and event.proto. Ownership: open/close; a zeroed struct
 * is closed, and what is added to it goes nowhere. Threads: one at a time. */
#ifndef HD_RUN_TENSORBOARD_H
#define HD_RUN_TENSORBOARD_H

#include "base/json.h"
#include "sys/clock.h"
#include "sys/file.h"
#include "engine/worker.h"

struct hd_step_times;

enum { HD_TENSORBOARD_PATH = 640 };

struct hd_tensorboard {
	struct hd_file file;
	struct hd_clock *clock;           /* borrowed */
	int64_t end_bytes;                /* of the last whole record */
	bool torn;                        /* something may lie behind it */
	bool failing;                     /* the newest record was lost */
	uint64_t lost;                    /* records */
	char path[HD_TENSORBOARD_PATH];
};

HD_MUST_USE enum hd_err hd_tensorboard_open(struct hd_tensorboard *tb, struct hd_fs *fs,
	struct hd_clock *clock, const char *folder, uint64_t step, struct hd_diag *diag);
void hd_tensorboard_step(struct hd_tensorboard *tb, const struct hd_step_record *record,
	const struct hd_step_times *times);
/* `eval`: the object of an event eval: its `split`, and numbers by what they are called. */
void hd_tensorboard_eval(struct hd_tensorboard *tb, uint64_t step, const struct hd_json *eval);
void hd_tensorboard_close(struct hd_tensorboard *tb);

#endif
