/* ckpt_int.h -- the pieces of a checkpoint folder, shared by the files that write, read
 * and find them.
 *
 * 1. A manifest ends with the SHA-256 of all its bytes before that member: any change
 *    of a byte, white space included, is seen.
 * 2. The files are those of hd_ckpt_files, in that order, no more and no fewer; their
 *    names come from the table, never from the disk.
 * 3. state.json holds the entries of group HD_STATE_RUN: integers as decimal strings,
 *    floats as shortest decimal text together with their bits, which must agree.
 *
 * Threads: pure, apart from what struct hd_sink writes. */
#ifndef HD_CHECKPOINT_CKPT_INT_H
#define HD_CHECKPOINT_CKPT_INT_H

#include "sys/crypto.h"
#include "checkpoint/ckpt.h"

/*        id      name                  group        */
#define HD_CKPT_FILES(X)                             \
	X(MODEL, "model.safetensors", HD_STATE_MODEL) \
	X(OPTIM, "optim.safetensors", HD_STATE_OPTIM) \
	X(STATE, "state.json",        HD_STATE_RUN)

enum hd_ckpt_file {
#define X(id, name, group) HD_CKPT_##id,
	HD_CKPT_FILES(X)
#undef X
	HD_CKPT_NFILES
};
extern const struct hd_ckpt_file_row { const char *name; uint8_t group; } hd_ckpt_files[HD_CKPT_NFILES];

#define HD_CKPT_MANIFEST "MANIFEST.json"
#define HD_CKPT_FOLDER   "step-"          /* and nine digits or more */
#define HD_CKPT_OLD      ".old"           /* after it: replaced by another of the same step, about to go */
#define HD_CKPT_TMP      ".tmp-step-"     /* being written or removed; no reader looks at it */

enum {
	HD_CKPT_VERSION = 1,
	HD_CKPT_MANIFEST_BYTES = 64 * 1024,       /* ours are 1.5 KiB */
	HD_CKPT_STATE_BYTES = 4 * 1024 * 1024,    /* counters: ours are 1 KiB */
};

struct hd_ckpt_sum { uint64_t len_bytes; struct hd_sha256 sha256; };

struct hd_manifest {
	struct hd_ckpt_info info;                 /* without folder */
	struct hd_ckpt_sum file[HD_CKPT_NFILES];
};

HD_MUST_USE enum hd_err hd_manifest_print(const struct hd_manifest *manifest, struct hd_text *text,
	struct hd_diag *diag);
/* `name` is for messages. HD_E_INTEGRITY: not what was written; HD_E_INPUT: another version's. */
HD_MUST_USE enum hd_err hd_manifest_parse(struct hd_manifest *manifest, struct hd_arena *arena,
	const char *name, const char *bytes,
	size_t len, struct hd_diag *diag);

HD_MUST_USE enum hd_err hd_ckpt_state_print(const struct hd_state *state, const struct hd_ckpt_info *info,
	struct hd_text *text,
	struct hd_diag *diag);
/* Adds the entries to `state`, with memory of its arena. */
HD_MUST_USE enum hd_err hd_ckpt_state_parse(struct hd_state *state, const char *name, const char *bytes,
	size_t len, struct hd_diag *diag);

/* A file being written through a buffer, hashed on its way. `points`: the failpoints of checkpoints apply. */
struct hd_sink {
	struct hd_file file;
	struct hd_sha256_stream hash;             /* owned until end or finish */
	uint8_t *buffer;                          /* owned */
	size_t used;
	uint64_t len_bytes;
	bool points, began;
};
HD_MUST_USE enum hd_err hd_sink_open(struct hd_sink *sink, struct hd_fs *fs, const char *path, bool points,
	struct hd_diag *diag);
/* an hd_st_put */
HD_MUST_USE enum hd_err hd_sink_put(void *sink, const void *bytes, uint64_t len, struct hd_diag *diag);
/* flush, fsync, close */
HD_MUST_USE enum hd_err hd_sink_end(struct hd_sink *sink, struct hd_ckpt_sum *sum, struct hd_diag *diag);
void hd_sink_finish(struct hd_sink *sink);        /* after an error; takes ended ones */

/* Tensors of one group as a safetensors file. */
HD_MUST_USE enum hd_err hd_ckpt_tensors_write(const struct hd_state *state, uint8_t group,
	const struct hd_ckpt_info *info,
	struct hd_sink *sink, struct hd_diag *diag);

HD_MUST_USE enum hd_err hd_ckpt_manifest_read(struct hd_fs *fs, const char *folder, struct hd_arena *arena,
	struct hd_manifest *manifest,
	struct hd_diag *diag);

/* Where the numbers of a tensor go that was found in a checkpoint: sets the entry's `at` or `slices`, which
 * stay NULL where they go nowhere and are hashed alone. An error ends the reading and is passed on. */
struct hd_ckpt_rooms {
	enum hd_err (*of)(void *user, struct hd_state_entry *entry, struct hd_diag *diag);
	void *user;
};
/* Reads a checkpoint from front to back, a segment of a tensor at a time: what it takes of memory is a
 * segment, the headers, state.json and a digest per tensor, whatever the model. Everything is verified:
 * sizes, SHA-256, the digest of the state; what went to its room before that is garbage after an error.
 * Damage is reported before all that would follow from it. `table` gets all entries, in memory of its arena:
 * a tensor's `at` is its room, those of group HD_STATE_RUN have their bytes there. */
HD_MUST_USE enum hd_err hd_ckpt_stream(struct hd_fs *fs, const char *folder,
	const struct hd_ckpt_rooms *rooms, struct hd_state *table, struct hd_ckpt_info *info,
	struct hd_diag *diag);

/* May the writer of `mine` replace and remove `there`? Its own job's, or one of an earlier lineage. */
bool hd_ckpt_owns(const struct hd_ckpt_info *mine, const struct hd_ckpt_info *there);
/* hd_ckpt_gc() among what the writer of `written` owns. */
HD_MUST_USE enum hd_err hd_ckpt_gc_own(struct hd_fs *fs, const char *parent, uint32_t keep,
	const struct hd_ckpt_info *written,
	struct hd_diag *diag);

/* "folder/name", or "name" where folder is NULL; "" when it does not fit: a path that is cut could name
 * another file. */
void hd_ckpt_join(char *out, size_t cap, const char *folder, const char *name);

/* Is `name` that of a checkpoint folder? Then its step, and whether it is about to go. */
bool hd_ckpt_folder_parse(const char *name, uint64_t *step, bool *old);

#endif
