#define _GNU_SOURCE        /* of the C library: what Linux has beyond POSIX */
#include "sys/thread.h"

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sys/cgroup.h"

double hd_quota_v2(const char *cpu_max)
{
	char *rest;

	double quota = strtod(cpu_max, &rest);        /* "max 100000" is no number */
	if (rest == cpu_max || quota <= 0)
		return 0;
	double period = strtod(rest, NULL);
	return period > 0 ? quota / period : 0;
}

double hd_quota_v1(const char *quota_us, const char *period_us)
{
	double quota = strtod(quota_us, NULL), period = strtod(period_us, NULL);        /* -1: none */

	return quota > 0 && period > 0 ? quota / period : 0;
}

unsigned hd_cores_within(unsigned n_affinity, double quota_cores)
{
	return quota_cores > 0 && ceil(quota_cores) < n_affinity ? (unsigned)ceil(quota_cores) : n_affinity;
}

struct cpuset_search { double least; };

static void tighter(struct cpuset_search *search, double cores)
{
	if (cores > 0 && (search->least <= 0 || cores < search->least))
		search->least = cores;
}

static void look(void *user, const char *folder, bool v2)
{
	char quota[HD_CGROUP_TEXT], period[HD_CGROUP_TEXT];

	if (v2 && hd_cgroup_text(folder, "cpu.max", quota))
		tighter(user, hd_quota_v2(quota));
	if (!v2 && hd_cgroup_text(folder, "cpu.cfs_quota_us", quota) &&
		hd_cgroup_text(folder, "cpu.cfs_period_us", period))
		tighter(user, hd_quota_v1(quota, period));
}

void hd_cores_usable(struct hd_cores *cores)
{
	struct cpuset_search search = { 0 };
	cpu_set_t set;

	*cores = (struct hd_cores){ 0 };
	CPU_ZERO(&set);
	/* It fails on machines with more than 1,024 cores: then one core is what we know of. */
	if (sched_getaffinity(0, sizeof set, &set))
		CPU_SET(0, &set);
	for (size_t i = 0; i < HD_CORES_CAP; i++)
		if (CPU_ISSET(i, &set))
			cores->core[cores->n_affinity++] = (uint16_t)i;
	hd_cgroup_walk("cpu", look, &search);
	cores->quota_cores = search.least;
	cores->n = hd_cores_within(cores->n_affinity, search.least);
}
