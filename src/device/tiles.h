/* tiles.h -- into how many tiles a node's calls fall: what the threads of a device can share. For predictions
 * of time (engine/choose.h), before any device is open; own kernels in f32, whose grids are those of all
 * paths.
 *
 * Threads: pure. */
#ifndef HD_DEVICE_TILES_H
#define HD_DEVICE_TILES_H

#include "device/program.h"

/* Tiles that threads share at once, with `nparts` full parts in a wave: of the one call, of the fold, or of
 * the call of one part. 0: nothing is computed (a view). */
uint32_t hd_program_tiles(const struct hd_program *program, uint32_t inode, uint32_t nparts);

#endif
