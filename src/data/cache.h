/* cache.h -- objects of elsewhere kept as files of a folder, until others need the room.
 *
 *	DIR/KEY.data    the object's bytes
 *	DIR/KEY.ok      "heddle-cache 1 LENGTH HASH NAME\n", written last; its time is that of the last use
 *	KEY             hash of name, version and length
 *
 * 1. An entry is used only if its length and its content hash are those of KEY.ok: all of it is read for
 *    that, once for each opening. One that is not what it was is taken away and fetched once more.
 * 2. What is added makes room for itself: all entries then have at most the budget; those that were not used
 *    for longest go first. What is longer than the budget, and an object whose server names no version, are
 *    not kept.
 * 3. One process fetches an object (DIR/KEY.lock), others wait for it up to HD_CACHE_WAIT_S, then do
 *    without.
 * 4. Files that others have mapped may be removed: they stay until they are unmapped. One that is removed
 *    before the caller opens it: the caller does without.
 *
 * Ownership: none. */
#ifndef HD_DATA_CACHE_H
#define HD_DATA_CACHE_H

#include "base/hash.h"
#include "sys/file.h"
#include "data/blob.h"

enum { HD_CACHE_WAIT_S = 600 };

/* The file that holds the object, fetched if it is not there; *there false: it is not kept (2, 3). */
HD_MUST_USE enum hd_err hd_cache_get(const struct hd_blob_rules *rules, struct hd_blob *blob,
	struct hd_fs *fs,
	char path[HD_PATH_CAP], bool *there, struct hd_diag *diag);

/* For the fuzz target. */
HD_MUST_USE enum hd_err hd_cache_parse(const char *text, size_t len, uint64_t *length, struct hd_hash *hash);

#endif
