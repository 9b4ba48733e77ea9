#include "device/spmm.h"

#include <string.h>

#include "device/cpu/edges_isa.h"

static const struct hd_edge_kernels *const paths[] = {
#define X(path) &hd_edges_##path,
	HD_CPU_PATHS(X)
#undef X
};

const struct hd_edge_kernels *hd_edge_kernels(const char *path)
{
	const char *name = hd_cpu_path(path);

	for (size_t i = 0; name && i < sizeof paths / sizeof *paths; i++)
		if (strcmp(paths[i]->path, name) == 0)
			return paths[i];
	return NULL;
}

uint64_t hd_spmm_cut(const uint64_t *offset, uint64_t first, uint64_t last, uint32_t i, uint32_t n)
{
	const uint64_t all = offset[last] - offset[first] + (last - first);
	/* i / n of all without a product that overflows */
	const uint64_t want = all / n * i + all % n * i / n;
	uint64_t low = first, high = last;

	while (low < high) {
		uint64_t mid = low + (high - low) / 2;
		if (offset[mid] - offset[first] + (mid - first) < want)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}
