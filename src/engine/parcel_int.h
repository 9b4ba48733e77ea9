/* parcel_int.h -- how parcels are numbered and laid out, for parcel.c and parcel_make.c alone.
 *
 * The parcels of a stage are numbered through all instructions that run it, in the order F, B, I, W, R; those
 * of R are those of F once more. A parcel's bytes are its values one after another, each of full virtual
 * nodes and beginning at a multiple of 64. */
#ifndef HD_ENGINE_PARCEL_INT_H
#define HD_ENGINE_PARCEL_INT_H

#include "engine/dist.h"
#include "engine/parcel.h"

static inline uint64_t hd_parcel_step(uint64_t bytes) { return (bytes + 63) / 64 * 64; }
uint64_t hd_parcel_len(const struct hd_pipe_stage *stage, const struct hd_parcel *parcel);
/* The first number of an instruction's parcels. */
uint32_t hd_parcel_first(const struct hd_pipe_stage *stage, uint8_t op);
/* A parcel by its number, and the phase whose list it is of. */
const struct hd_parcel *hd_parcel_of(const struct hd_pipe_stage *stage, uint32_t number, int *phase);
struct hd_dist_letter hd_parcel_letter(const struct hd_pipe *pipe, const struct hd_parcel_line *line,
	uint32_t place);

#endif
