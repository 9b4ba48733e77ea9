/* The jobs that sharing by resize is measured on: they come by chance, want a power of two of devices, and
 * take minutes. */
#include <math.h>

#include "base/philox.h"
#include "clustersim/job_generate.h"

/* (0, 1): never an end of the interval. */
static double unit(uint64_t seed, enum hd_rng_cluster what, uint64_t job)
{
	struct hd_philox x = hd_philox((uint32_t[4]){ what, (uint32_t)job, (uint32_t)(job >> 32), 0 },
		hd_philox_key(seed, HD_RNG_CLUSTER));

	return ((double)x.word[0] + 0.5) * 0x1p-32;
}

enum hd_err hd_job_share(struct hd_job_list *list, const struct hd_job_sharing *how, struct hd_arena *arena,
	struct hd_diag *diag)
{
	static const double weights[] = { 1, 5, 10 };
	struct hd_listed_job *jobs = how->n <= HD_JOB_LIST ? hd_arena_take(arena, how->n + 1, sizeof *jobs) :
		NULL;
	double at_s = 0;
	uint32_t powers = 0;

	if (how->n > HD_JOB_LIST || !(how->per_hour > 0) || how->devices == 0 || how->devices > HD_JOB_SCALE)
		return hd_fail(diag, HD_E_INVAL,
			"%zu jobs at %g per hour on %u devices: 0 to %d jobs, above 0 per hour, 1 to %d "
			"devices", how->n,
			how->per_hour, how->devices, HD_JOB_LIST, HD_JOB_SCALE);
	if (!jobs)
		return hd_fail(diag, HD_E_NOMEM, "no memory for %zu jobs", how->n);
	while (how->devices >> (powers + 1))
		powers++;
	for (size_t i = 0; i < how->n; i++) {
		struct hd_listed_job *job = &jobs[i];
		*job = (struct hd_listed_job){ .kind = "", .command = "", .folder = "", .steps_arg = "",
			.user = "", .name = "", .deadline_s = INFINITY };
		at_s += i ? -log(unit(how->seed, HD_RNG_CLUSTER_ARRIVAL, i)) * 3600 / how->per_hour : 0;
		job->arrival_s = floor(at_s * 1000) / 1000;
		job->scale = 1u << (uint32_t)(unit(how->seed, HD_RNG_CLUSTER_SCALE, i) * (powers + 1));
		job->weight = weights[(uint32_t)(unit(how->seed, HD_RNG_CLUSTER_WEIGHT, i) * 3)];
		job->duration_s = floor(300 * exp(log(12) * unit(how->seed, HD_RNG_CLUSTER_DURATION, i)));
		job->steps = job->duration_s;
	}
	*list = (struct hd_job_list){ .n = how->n, .at = jobs, .nrows = how->n };
	return HD_OK;
}
