/* npy.h -- NumPy's array files, the part of them that training data need.
 *
 *	byte 0           6      7      8                  10 (12)
 *	     \x93 NUMPY  major  minor  header length u16  {'descr': '<f4', 'fortran_order': False, 'shape':
 *	     (3, 4), }
 *	                               (u32 from 2.0 on)
 *
 * 1. Accepted: versions 1.0, 2.0, 3.0; <f4 <f8 |u1 |b1 <i4 <i8; C order; the three keys, once
 *    each, in any order; and exactly the bytes that the shape says.
 * 2. Objects are refused: reading them would run code of the file's maker. */
#ifndef HD_DATA_NPY_H
#define HD_DATA_NPY_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "graph/ir.h"

enum { HD_NPY_RANK = HD_MAX_DIMS + 1 };              /* samples, and the extents of one */

struct hd_npy {
	enum hd_dtype dtype;
	uint32_t rank;
	int64_t dim[HD_NPY_RANK];
	uint64_t nelems;
	/* into the file's bytes, of any alignment, little end first */
	const uint8_t *at;
};

HD_MUST_USE enum hd_err hd_npy_parse(const uint8_t *bytes, size_t len, const char *name, struct hd_npy *npy,
	struct hd_diag *diag);

#endif
