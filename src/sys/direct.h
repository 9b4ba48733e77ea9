/* direct.h -- files read at offsets, past the page cache where that is asked for.
 *
 * Stores of data (data/blob.h) read local files through it; everything else does through file.h.
 *
 * 1. A direct read wants offset, length and memory at multiples of `align` (statx, else 4096): the caller's
 *    duty.
 * 2. A read that returns fewer bytes than asked has met the end of the file. EINTR and EAGAIN end here.
 * 3. `must` and the file system has no such reads: HD_E_REFUSED. Without, align is 0: the page cache is
 *    used.
 *
 * Ownership: open/close. Threads: any number may read at once; a read may block on the disk. */
#ifndef HD_SYS_DIRECT_H
#define HD_SYS_DIRECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { HD_DIRECT_ALIGN = 4096 };          /* where the system does not say; a multiple of what it says */

struct hd_direct {
	int id;                           /* -1: not open */
	uint32_t align;                   /* 0: through the page cache */
	int64_t size_bytes, changed_wall_ns;
	uint64_t inode;
};

HD_MUST_USE enum hd_err hd_direct_open(const char *path, bool direct, bool must, struct hd_direct *file,
	struct hd_diag *diag);
/* HD_E_IO and all else as file.h has it. */
HD_MUST_USE enum hd_err hd_direct_read(const struct hd_direct *file, const char *path, void *into, size_t len,
	int64_t offset, size_t *got, struct hd_diag *diag);
/* All of it out of the page cache, without waiting for a disk; false: some of it is not there, or cannot be
 * had so. Of a file with align 0. */
bool hd_direct_read_here(const struct hd_direct *file, void *into, size_t len, int64_t offset);
void hd_direct_close(struct hd_direct *file);

#endif
