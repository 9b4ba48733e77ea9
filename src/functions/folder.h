/* folder.h -- the folder below /tmp in which the pool of a process has its sockets and its log.
 *
 * 1. It is of this user alone. It is named by the number of the process; where one of that name is there, it
 *    is of an earlier process.
 * 2. make() removes folders of processes that were killed: those that are ours, of numbers that no process
 *    has, and at whose socket none answers (it may live in another space of process numbers).
 *
 * Plain functions. Threads: any. */
#ifndef HD_FUNCTIONS_FOLDER_H
#define HD_FUNCTIONS_FOLDER_H

#include "sys/file.h"

enum { HD_FN_FOLDER = 64 };

/* Of this process: an empty one, `path`; the socket of its owner is `owner` in it. */
HD_MUST_USE enum hd_err hd_fn_folder_make(struct hd_fs *fs, char path[HD_FN_FOLDER], struct hd_diag *diag);
/* With all that is in it; "" is none. */
void hd_fn_folder_remove(struct hd_fs *fs, const char *path);

#endif
