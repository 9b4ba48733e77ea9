/* export.h -- parameters and buffers as a safetensors file for others to read.
 *
 * `ckpt export`, `model export` and `model import` (which writes ours) share it.
 *
 * 1. With public names (names.h) and F32, what was imported comes back bit for bit.
 * 2. A tensor with two names is written once, under the first; __metadata__ then says
 *    second name -> first name, as the safetensors library writes shared tensors.
 *    With `both` it is written under each, as load_state_dict(strict=True) of a module
 *    that lists both wants it.
 * 3. Beside running statistics stands their count of updates, I64 without extents.
 * 4. BF16 rounds every tensor of floats to nearest even (half.h); counts stay I64.
 * 5. Written to a temporary name and renamed: the old file or the new one.
 *
 * Threads: one. */
#ifndef HD_CHECKPOINT_EXPORT_H
#define HD_CHECKPOINT_EXPORT_H

#include "graph/names.h"
#include "graph/safetensors.h"
#include "checkpoint/ckpt.h"
#include "checkpoint/weights.h"

struct hd_export {
	const struct hd_family *family;   /* public names; NULL: ours */
	bool bf16, both;
	const char *prefix;               /* before each name but those of ties; NULL: none */
	const struct hd_st_tensor *more; uint32_t nmore;       /* written beside the state's, as they are */
	const struct hd_st_meta *meta; uint32_t nmeta;
};

/* The model's entries of a state. */
HD_MUST_USE enum hd_err hd_export_state(struct hd_fs *fs, const struct hd_state *state,
	const struct hd_ckpt_info *info,
	const struct hd_export *how, const char *path, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_export_tensors(struct hd_fs *fs, const struct hd_st_tensor *tensor, uint32_t n,
	const struct hd_st_meta *meta,
	uint32_t nmeta, const char *path, struct hd_diag *diag);

/* Weights as they fit a graph (weights.h): its tensors that begin from one, by its names, as F32. */
HD_MUST_USE enum hd_err hd_export_fit(struct hd_fs *fs, const struct hd_weights *weights,
	const struct hd_graph *graph, const struct hd_weight_source *fit, struct hd_arena *arena,
	const char *path, struct hd_diag *diag);

/* "builtin:gpt" -> the family of gpt; a model from a file has our names only. */
const struct hd_family *hd_export_family(const char *model);

#endif
