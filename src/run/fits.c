#include "run/fits.h"

enum hd_err hd_run_fits(const struct hd_job *job, struct hd_fs *fs, struct hd_clock *clock,
	const struct hd_run_options *options, uint32_t n, struct hd_diag *diag)
{
	struct hd_run_options as = *options;
	struct hd_run *run = NULL;

	if (job->value[HD_JOB_MEMORY].is_auto)
		return HD_OK;
	as.watch = (struct hd_run_watch){ 0 };
	as.quiet_disk = as.shared = true;
	enum hd_err err = hd_run_create(&run, job, fs, clock, NULL, &as, diag);
	err = err ? err : hd_run_tell_team(run, n, diag);
	hd_run_destroy(run);
	return err;
}
