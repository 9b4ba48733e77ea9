/* out_file.h -- a file that appears under its name when it is whole, or not at all.
 *
 * 1. Until then it is NAME.tmp, locked: two processes do not write it at once.
 * 2. What a killed one left is taken over by the next that writes the same name. Otherwise nothing is left.
 *
 * Threads: one. */
#ifndef HD_DATA_OUT_FILE_H
#define HD_DATA_OUT_FILE_H

#include "sys/file.h"

struct hd_out_file { struct hd_file file; char path[HD_PATH_CAP], temporary[HD_PATH_CAP]; };

/* Empty. HD_E_REFUSED: another process writes it. */
HD_MUST_USE enum hd_err hd_out_file_begin(struct hd_out_file *out, struct hd_fs *fs, const char *path,
	struct hd_diag *diag);
/* Sync and rename when `keep`, else it is removed. Takes zeroed ones. */
HD_MUST_USE enum hd_err hd_out_file_end(struct hd_out_file *out, bool keep, struct hd_diag *diag);

#endif
