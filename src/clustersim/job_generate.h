/* job_generate.h -- synthetic jobs: the published generator, to its digits, and synthetic years of
 * ours.
 *
 * 1. The published one draws from three Mersenne streams (jobs: seed + 2, arrivals: seed + 3, deadlines:
 *    seed + 6), one job after the other, without end: the whole list depends on the seed and the switches.
 * 2. Ours draws by Philox from (seed, number of the job, what): one job more or fewer shifts no other draw.
 *    Times are whole milliseconds, durations whole seconds, so that no libm is heard in them.
 *
 * Pure. Texts of jobs are static or belong to the rates. */
#ifndef HD_CLUSTERSIM_JOB_GENERATE_H
#define HD_CLUSTERSIM_JOB_GENERATE_H

#include "scheduler/mt19937.h"
#include "clustersim/job_list.h"

struct hd_job_generator_setting {
	double per_hour;                          /* arrivals; 0: all at 0 */
	uint32_t seed;
	bool multi;                               /* jobs of 2, 4 and 8 devices too */
	bool priorities, slos;
};

struct hd_job_generator {
	struct hd_job_generator_setting setting;
	const struct hd_rates *rates;             /* borrowed */
	uint32_t reference;                       /* type v100: durations are on it */
	double arrival_s;                         /* of the next job */
	struct hd_mt jobs, arrivals, deadlines;
};

/* HD_E_INVAL: the rates lack type v100 or a kind that is drawn from. */
HD_MUST_USE enum hd_err hd_job_generator_init(struct hd_job_generator *generator,
	const struct hd_job_generator_setting *setting,
	const struct hd_rates *rates, struct hd_diag *diag);
void hd_job_generator_next(struct hd_job_generator *generator, struct hd_listed_job *job);

struct hd_job_synthesis {
	uint64_t seed;
	size_t n;
	double per_hour;                          /* mean over a week */
	/* of the durations: log-normal; 0: 780 s and 2.1 (a mean of about two hours) */
	double median_s, sigma;
	double longest_s;                         /* cut there; 0: 30 days */
	/* share of jobs with one device; 0: 0.93. The rest: 2, 4, 8 like 4 : 2 : 1 */
	double single;
	/* how much less comes at 4 h than at 16 h, and on Saturday and Sunday than else; 0: 0.6, 0.45 */
	double day, week;
	const struct hd_rates *rates;             /* kinds are drawn among those of the scale; NULL: none */
	const char *reference;                    /* type that durations are on; NULL: each kind's fastest */
};

HD_MUST_USE enum hd_err hd_job_synthesize(struct hd_job_list *list, const struct hd_job_synthesis *how,
	struct hd_arena *arena, struct hd_diag *diag);

/* What sharing by resize is measured on: Poisson arrivals from 0 on, a scale drawn from the powers of two up
 * to `devices`, weight 1, 5 or 10, 5 to 60 minutes alone on that scale (log-uniform; whole seconds). Draws
 * of (seed, number), as rule 2 says. For tests. */
struct hd_job_sharing { uint64_t seed; size_t n; double per_hour; uint32_t devices; };
HD_MUST_USE enum hd_err hd_job_share(struct hd_job_list *list, const struct hd_job_sharing *how,
	struct hd_arena *arena, struct hd_diag *diag);

#endif
