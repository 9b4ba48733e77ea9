/* zip.h -- members of a zip file, as NumPy and SciPy write them (.npz); a zip file of stored members.
 *
 * 1. Read are members that are stored or deflated, below 4 GiB, of one file without encryption; what else
 *    there is in a zip file is refused. A member is found by the directory at the file's end.
 * 2. A deflated member's length and CRC are checked; a stored one is what the file holds.
 * 3. What is written depends on names, modes and bytes alone: members are stored in their order, dated
 *    1980-01-01, with the modes of Unix.
 *
 * Ownership: an unpacked member lies in the arena, a stored one in the file's bytes. Pure. */
#ifndef HD_DATA_ZIP_H
#define HD_DATA_ZIP_H

#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

struct hd_zip_member { const uint8_t *bytes; size_t len; };

/* A member to be written. `mode`: its rights, as 0755. */
struct hd_zip_part { const char *name; uint32_t mode; struct hd_zip_member of; };

/* HD_E_NOTFOUND: no member of that name; nothing is said then. HD_E_INPUT: no zip file, or a bad one. */
HD_MUST_USE enum hd_err hd_zip_find(const uint8_t *bytes, size_t len, const char *name, const char *member,
	size_t max_bytes, struct hd_arena *arena, struct hd_zip_member *found, struct hd_diag *diag);
/* The whole file. HD_E_INVAL: 4 GiB and more, or too many members. */
HD_MUST_USE enum hd_err hd_zip_write(const struct hd_zip_part *part, size_t n, struct hd_arena *arena,
	struct hd_zip_member *file, struct hd_diag *diag);

#endif
