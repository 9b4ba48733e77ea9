/* ckpt.h -- checkpoints: the state table on disk, complete or absent.
 *
 * A checkpoint is a folder step-%09d: model.safetensors (parameters),
 * optim.safetensors (slots, "<param>.m"), state.json (counters as exact strings)
 * and MANIFEST.json, written last, with sizes and SHA-256 of the others, the job
 * hash, the kernel fingerprint, identity of the data, the state digest and the
 * lineage. Tensors have full, layout-free shapes: nothing depends on workers,
 * devices, virtual-node maps.
 *
 * 1. Order of writing: temporary folder, files, fsync each, manifest, fsync, fsync
 *    folder, rename, fsync parent. A folder without a valid manifest does not exist.
 * 2. Readers verify before they use: sizes, SHA-256, then the state digest of what
 *    was loaded. A bad one is reported and the next older one is taken.
 * 3. A failed write (no space, no permission) leaves the older checkpoints alone.
 * 4. Removal (keep N) never touches the newest valid one.
 * 5. A folder of checkpoints belongs to one run: the writer neither replaces nor
 *    removes one of another job, unless its own lineage grew out of that.
 *
 * Ownership: reports lie in the arena given. Threads: one writer per folder. */
#ifndef HD_CHECKPOINT_CKPT_H
#define HD_CHECKPOINT_CKPT_H

#include "base/text.h"
#include "sys/file.h"
#include "graph/state.h"

/* Sums that were once made in another order, and have other bits since: member of a manifest, its one value,
 * which sums. A job that such a change touches does not go on from a state made before it. */
#define HD_CKPT_ORDERS(X) \
	/* of the gradients of a parameter that several places read: a part a use (ADR 97) */ \
	X(TIED,   "tied",  "parts",  "the gradients of a tied parameter") \
	/* squares of a tensor that is stored in slices, for clipping and LAMB: slice by slice (ADR 99) */ \
	X(SLICED, "norms", "slices", "the squares of a tensor in shards")
enum hd_ckpt_order {
#define X(id, key, value, what) HD_CKPT_ORDER_##id,
	HD_CKPT_ORDERS(X)
#undef X
	HD_CKPT_NORDERS
};
/* "the gradients of a tied parameter" */
const char *hd_ckpt_order_what(enum hd_ckpt_order order);

/* What a checkpoint says of itself besides the tensors. */
struct hd_ckpt_info {
	uint64_t step, samples;
	char     folder[512];             /* where it was found */
	struct hd_hash job_hash, data_hash, fingerprint, digest;
	uint64_t data_count, len_bytes;
	uint32_t lineage;                 /* raised by a resume with other result keys */
	/* HD_CKPT_ORDERS: how the sums behind the state were made, where there was another way; the manifest
	 * of a job of which nothing was ever made otherwise says nothing */
	bool     order[HD_CKPT_NORDERS];
	char     kernels[16];             /* "library" | "portable" */
	char     program[32];             /* version that wrote it */
	char     model[64];
	/* of one that was kept for its evaluation (HD_CKPT_BEST): the measure and its value; "": of none */
	char     best_by[32];
	double   best;
};

/* Below the checkpoints of a run: a folder of its own, with the one that was evaluated best (run/best.h). No
 * other call but hd_ckpt_drop_after() looks there unless it is given that folder. */
#define HD_CKPT_BEST "best"

/* Writes `state` as of info->step below `parent`, keeps the newest `keep` (0: all). info->digest is
 * computed from the state and stored. */
HD_MUST_USE enum hd_err hd_ckpt_write(struct hd_fs *fs, const char *parent, const struct hd_state *state,
	struct hd_ckpt_info *info, uint32_t keep, bool read_back, struct hd_diag *diag);

/* All complete-looking checkpoints below `parent`, newest first (manifest readable). */
HD_MUST_USE enum hd_err hd_ckpt_list(struct hd_fs *fs, const char *parent, struct hd_arena *arena,
	struct hd_ckpt_info **list, uint32_t *n, struct hd_diag *diag);

/* Every folder that `path` names as a checkpoint, whole or not, newest first: those of a run directory or of
 * a folder of checkpoints, or the one it is itself. HD_E_NOTFOUND: none. */
HD_MUST_USE enum hd_err hd_ckpt_folders(struct hd_fs *fs, const char *path, struct hd_arena *arena,
	const char ***folders, uint32_t *n,
	struct hd_diag *diag);

/* Where the checkpoints of run directory `run` lie, `dir` being its job's checkpoint.dir: inside the run, or,
 * of an absolute one, in the folder below it that the run has taken; HD_E_NOTFOUND: it has taken none yet. */
HD_MUST_USE enum hd_err hd_ckpt_place(struct hd_fs *fs, const char *run, const char *dir, char *parent,
	size_t cap, struct hd_diag *diag);
/* The same for the writer: takes one (named like the run, -2, -3 ...) if it has none. */
HD_MUST_USE enum hd_err hd_ckpt_claim(struct hd_fs *fs, const char *run, const char *dir, char *parent,
	size_t cap, struct hd_diag *diag);

/* Where the checkpoints of what a user named lie: for a run, hd_ckpt_place() of its job (ckpt/ by default);
 * else the folder itself. */
HD_MUST_USE enum hd_err hd_ckpt_parent(struct hd_fs *fs, const char *path, char *parent, size_t cap,
	struct hd_diag *diag);

/* A run directory, its ckpt folder or a checkpoint folder -> the newest valid checkpoint (of step `from`
 * unless UINT64_MAX). `bad` is called for each one that was refused, with the reason. HD_E_NOTFOUND: there
 * is none at all; HD_E_INTEGRITY: there are some, none is whole. */
HD_MUST_USE enum hd_err hd_ckpt_find(struct hd_fs *fs, const char *path, uint64_t from,
	struct hd_ckpt_info *info,
	void (*bad)(void *user, const char *folder, const char *why), void *user, struct hd_diag *diag);

/* Sizes, hashes and structure of one checkpoint folder; HD_E_INTEGRITY names file and reason. */
HD_MUST_USE enum hd_err hd_ckpt_verify(struct hd_fs *fs, const char *folder, struct hd_ckpt_info *info,
	struct hd_diag *diag);

/* Fills the memory of every entry of `state`; the checkpoint must hold exactly those names, types and
 * shapes. The digest is verified after reading: on failure the state is garbage. */
HD_MUST_USE enum hd_err hd_ckpt_read(struct hd_fs *fs, const char *folder, struct hd_state *state,
	struct hd_ckpt_info *info, struct hd_diag *diag);
/* Loads it into a table of its own (memory in the arena): for diff, show, export. */
HD_MUST_USE enum hd_err hd_ckpt_load(struct hd_fs *fs, const char *folder, struct hd_arena *arena,
	struct hd_state *state, struct hd_ckpt_info *info, struct hd_diag *diag);

struct hd_tensor_diff { const char *name; bool only_a, only_b, shapes; uint64_t differing, elems, first;
	double max_abs; uint64_t max_ulp; };
/* Per tensor; `n` differing tensors come first in `out` (arena). Identical states: n = 0. */
HD_MUST_USE enum hd_err hd_state_diff(const struct hd_state *a, const struct hd_state *b,
	struct hd_arena *arena,
	struct hd_tensor_diff **out, uint32_t *ndiffering, uint32_t *ntotal, struct hd_diag *diag);

/* Removes all but the newest `keep` (at least 1) folders below `parent`; the newest whole one always stays.
 * `known_whole` (may be NULL): a folder that is known to be whole and stays; without it each is verified
 * until one is found. `nremoved` may be NULL. */
HD_MUST_USE enum hd_err hd_ckpt_gc(struct hd_fs *fs, const char *parent, uint32_t keep,
	const char *known_whole, uint32_t *nremoved,
	struct hd_diag *diag);

/* Removes those of steps beyond `step` below the checkpoints of `path` that are of the newest one's job
 * and lineage, and such in HD_CKPT_BEST: their bits may be wrong. Manifests alone are read. */
HD_MUST_USE enum hd_err hd_ckpt_drop_after(struct hd_fs *fs, const char *path, uint64_t step,
	uint32_t *nremoved, struct hd_diag *diag);

#endif
