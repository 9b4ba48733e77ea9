/* A job step of Slurm. Preempted, it gets SIGCONT and SIGTERM at once, SIGKILL after the partition's
 * GraceTime, which a job cannot see; without one, and at the end of its time, KillWait (30 s) lies between
 * the two. By `--signal=USR1@60` it gets that signal so long before the end of its time, which
 * SLURM_JOB_END_TIME has in seconds since 1970. */
#include <string.h>

#include "base/num.h"
#include "notice/source.h"

static bool is_here(char *const *environment) { return hd_notice_env(environment, "SLURM_JOB_ID") != NULL; }

static void on_signal(const char *name, char *const *environment, struct hd_notice_seen *seen)
{
	const char *end = hd_notice_env(environment, "SLURM_JOB_END_TIME");
	uint64_t end_s = 0;

	if (!strcmp(name, "SIGTERM") || !end || hd_num_u64(end, INT64_MAX / HD_NOTICE_S, &end_s, NULL))
		return;
	seen->end = HD_END_WALL;
	seen->end_ns = (int64_t)end_s * HD_NOTICE_S;
}

const struct hd_notice_source hd_notice_of_slurm = {
	.name = "slurm", .cloud = "slurm", .about = "signals of Slurm", .way = HD_NOTICE_BY_SIGNAL,
	.lead_ns = 30 * HD_NOTICE_S, .is_here = is_here, .signal = on_signal,
};
