/* zip.h -- members of a zip file, as NumPy and SciPy write them (.npz).
 *
 * 1. Read are members that are stored or deflated, below 4 GiB, of one file without encryption; what else
 *    there is in a zip file is refused. A member is found by the directory at the file's end.
 * 2. A deflated member's length and CRC are checked; a stored one is what the file holds.
 *
 * Ownership: an unpacked member lies in the arena, a stored one in the file's bytes. Pure. */
#ifndef HD_DATA_ZIP_H
#define HD_DATA_ZIP_H

#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

struct hd_zip_member { const uint8_t *bytes; size_t len; };

/* HD_E_NOTFOUND: no member of that name; nothing is said then. HD_E_INPUT: no zip file, or a bad one. */
HD_MUST_USE enum hd_err hd_zip_find(const uint8_t *bytes, size_t len, const char *name, const char *member,
	size_t max_bytes, struct hd_arena *arena, struct hd_zip_member *found, struct hd_diag *diag);

#endif
