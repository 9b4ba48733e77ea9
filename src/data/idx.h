/* idx.h -- the format of the MNIST family: unsigned bytes in an array of any rank.
 *
 *	byte 0  1  2     3     4            8
 *	     0  0  type  rank  extent[0]    extent[1] ...    then the bytes     all big end first
 *
 * 1. Accepted: type 0x08 (unsigned byte), rank 1 to 4, and exactly the bytes that the
 *    extents say. */
#ifndef HD_DATA_IDX_H
#define HD_DATA_IDX_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { HD_IDX_RANK = 4, HD_IDX_BYTE = 0x08 };

/* at: into the file's bytes */
struct hd_idx { uint32_t rank; int64_t dim[HD_IDX_RANK]; const uint8_t *at; };

/* For tests. `rank_low` and `rank_high` bound what the caller can use; `name` is for messages. */
HD_MUST_USE enum hd_err hd_idx_parse(const uint8_t *bytes, size_t len, const char *name, uint32_t rank_low,
	uint32_t rank_high,
	struct hd_idx *idx, struct hd_diag *diag);

#endif
