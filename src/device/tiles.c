#include "device/tiles.h"

#include "device/grid_int.h"

uint32_t hd_program_tiles(const struct hd_program *program, uint32_t inode, uint32_t nparts)
{
	struct hd_call call = program->calls[0][inode];
	const struct hd_kernel *kernel = &hd_cpu_table(HD_KERNELS_PORTABLE, "portable")[call.op].kernel;
	bool together = program->together[inode] && kernel->rowwise;

	if (!together && hd_grid_folds(program, inode, kernel, &call))
		return kernel->fold->ntiles(&call);
	if (together)
		hd_program_widen(program, inode, nparts, &call);
	return kernel->ntiles(&call);
}
