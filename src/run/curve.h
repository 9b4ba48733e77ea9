/* curve.h -- how a run went, in few points: its metrics.ndjson, looked at in evenly spaced places.
 *
 * The scheduler's page draws it, of runs of any length.
 *
 * 1. What it costs depends on the number of points, not on the file: a read of HD_CURVE_READ bytes each.
 *    Few lines of like lengths are all there, and lines of half as much are always seen.
 * 2. The first and the last whole line are among them. A line that is half written, cut or not of a step is
 *    left out.
 * 3. Steps ascend: of a step that was done again, after a restart, the later line counts, and what came
 *    before with a larger number is left out.
 *
 * Ownership: points lie in the arena. Threads: any. Blocks on the disk. */
#ifndef HD_RUN_CURVE_H
#define HD_RUN_CURVE_H

#include "sys/file.h"

enum { HD_CURVE_READ = 4096, HD_CURVE_POINTS = 2000 };

/* As the line has it; what it lacks is 0. */
struct hd_loss_point { int64_t step, workers; double t, loss, lr, step_ms; };

/* `most`: 2 to HD_CURVE_POINTS. HD_E_NOTFOUND: no such file, no step was committed yet. */
HD_MUST_USE enum hd_err hd_curve_read(struct hd_fs *fs, const char *path, uint32_t most,
	struct hd_arena *arena, const struct hd_loss_point **points, uint32_t *n, struct hd_diag *diag);

#endif
