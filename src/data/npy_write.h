/* npy_write.h -- writing NumPy's array files (version 1.0, <f4 or <i4, C order) row by row, in any order.
 *
 * `heddle predict` writes logits with it, `heddle data convert` samples; data/npy.h has the layout and reads
 * such files.
 *
 * 1. The number of rows is known beforehand; a row has one place in the file.
 * 2. The file appears under its name when it is complete (hd_npy_end), or not at all.
 *
 * Threads: begin and end from one; rows from any number at once. */
#ifndef HD_DATA_NPY_WRITE_H
#define HD_DATA_NPY_WRITE_H

#include <stdatomic.h>

#include "sys/file.h"
#include "data/npy.h"

struct hd_npy_out {
	struct hd_file file;
	char path[HD_PATH_CAP], temporary[HD_PATH_CAP];
	uint64_t header_bytes, row_elems;
	_Atomic int err;                  /* enum hd_err of the first row that could not be written */
};

/* `rank` extents `dim`, dim[0] the rows: 1 to HD_NPY_RANK of them; HD_F32 or HD_I32. HD_E_INVAL: a path that
 * is too long. */
HD_MUST_USE enum hd_err hd_npy_begin(struct hd_npy_out *out, struct hd_fs *fs, const char *path,
	uint32_t rank, const int64_t *dim, enum hd_dtype dtype, struct hd_diag *diag);
/* `nrows` rows from `first` on; hd_npy_end() returns the first error. */
void hd_npy_rows(struct hd_npy_out *out, uint64_t first, uint64_t nrows, const void *at);
/* Syncs and renames when `keep`, else removes. */
HD_MUST_USE enum hd_err hd_npy_end(struct hd_npy_out *out, bool keep, struct hd_diag *diag);

#endif
