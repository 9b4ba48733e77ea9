#include "clustersim/slurm_partitions.h"

#include <string.h>

bool hd_slurm_partition_in(const char *list, const char *name)
{
	const size_t n = strlen(name);

	for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',')
		if (strcspn(at, ",") == n && !memcmp(at, name, n))
			return true;
	return !*name && !*list;
}

uint64_t hd_slurm_partitions_named(const struct hd_slurm_partitions *partitions, const char *list)
{
	uint64_t bits = 0;

	for (uint32_t p = 0; p < partitions->n; p++)
		if (hd_slurm_partition_in(list, partitions->at[p].name))
			bits |= UINT64_C(1) << p;
	return bits;
}

uint64_t hd_slurm_partitions_of(const struct hd_slurm_partitions *partitions, const char *list)
{
	const uint64_t bits = hd_slurm_partitions_named(partitions, list);

	return bits ? bits : UINT64_MAX;
}
