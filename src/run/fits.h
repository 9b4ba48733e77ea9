/* fits.h -- whether each of several workers has the memory for its part of a job: the worker is built as it
 * would be, and no file is written.
 *
 * Threads: one. */
#ifndef HD_RUN_FITS_H
#define HD_RUN_FITS_H

#include "run/run.h"

/* What says that a plan takes more than there is: another may do. */
static inline bool hd_run_is_unfit(enum hd_err err)
{
	return err == HD_E_REFUSED || err == HD_E_NOMEM || err == HD_E_NOSPACE;
}
/* The `n` workers of the view that a run starts with; a job without workers.memory is taken to fit. With
 * options->task no file of data is opened: a coordinator asks between two messages. With options->shape they
 * have those stages, whatever the job's keys or its plan file say.
 * What hd_run_is_unfit() takes: it does not fit, with what does not, and of which worker. */
HD_MUST_USE enum hd_err hd_run_fits(const struct hd_job *job, struct hd_fs *fs, struct hd_clock *clock,
	const struct hd_run_options *options, uint32_t n, struct hd_diag *diag);

#endif
