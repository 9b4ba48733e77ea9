/* cache.h -- objects of elsewhere kept as files of a folder, until others need the room.
 *
 *	DIR/KEY.data    the object's bytes
 *	DIR/KEY.ok      "heddle-cache 1 LENGTH HASH NAME\n", written last; its time is that of the last use
 *	DIR/KEY.part    the same while it comes
 *	DIR/KEY.lock    its process, and "LENGTH\n", what it will have; while a process looks at the object
 *	DIR/room.lock   held while room is made, and while a KEY.lock is opened or removed
 *	KEY             hash of name, version and length
 *
 * 1. An entry is used only if its length and its content hash are those of KEY.ok: all of it is read for
 *    that, once for each opening. One that is not what it was is taken away and fetched once more.
 * 2. What is added makes room for itself: all entries, and what copies that come will have, then have at most
 *    the budget; those that were not used for longest go first. Processes make room one after the other.
 *    What is longer than the budget, and an object whose server names no version, are not kept.
 * 3. One process fetches an object (DIR/KEY.lock), others wait for it up to HD_CACHE_WAIT_S, then do
 *    without.
 * 4. Files that others have mapped may be removed: they stay until they are unmapped. One that is removed
 *    before the caller opens it: the caller does without.
 * 5. A disk that is full, fails or refuses under the folder ends nothing: there is no copy then, and
 *    `warning` says why. What fails at the object's store does.
 *
 * Ownership: none. */
#ifndef HD_DATA_CACHE_H
#define HD_DATA_CACHE_H

#include "base/hash.h"
#include "sys/file.h"
#include "data/blob.h"

enum { HD_CACHE_WAIT_S = 600 };

/* The file that holds the object, fetched if it is not there; *there false: it is not kept (2, 3, 5).
 * `warning`: stays as it is where 5 says nothing, and where it has a text already. */
HD_MUST_USE enum hd_err hd_cache_get(const struct hd_blob_rules *rules, struct hd_blob *blob,
	struct hd_fs *fs,
	char path[HD_PATH_CAP], bool *there, struct hd_diag *warning, struct hd_diag *diag);
/* Of an error of the folder: 5. true: it is one of the disk, and is said. */
bool hd_cache_forgives(enum hd_err err, const struct hd_diag *why, const struct hd_blob_rules *rules,
	struct hd_diag *warning);

/* For the fuzz target. */
HD_MUST_USE enum hd_err hd_cache_parse(const char *text, size_t len, uint64_t *length, struct hd_hash *hash);

#endif
