/* weights.h -- tensors to begin from: files of others, or of a run of ours.
 *
 * A job begins from them (model.weights), `model import` makes one of ours out of them.
 * A source is a safetensors file; an index (`*.safetensors.index.json`) with the shards
 * it names, beside it; a folder that holds `model.safetensors` or such an index; a run
 * directory or checkpoint, of which the newest whole checkpoint counts.
 *
 * 1. Fitting is all or nothing: every parameter and buffer of the graph has its tensor and every
 *    tensor its parameter, by the names of the family (names.h), with the shape and a
 *    floating dtype; or HD_E_INPUT lists what is missing, unknown and of another shape.
 *    Read over are tensors of heads that the model lacks (names.h, `surplus`); `surplus` counts and names
 *    those of the last fit. Left out are parameters and tensors whose name a pattern of `skip` matches, and
 *    adapters (graph/lora.h) that the source has not: they keep their initial values.
 * 2. F32 is taken as it is; F16 and BF16 are widened, which is exact; F64 is rounded to
 *    nearest even, and one that f32 cannot hold as a finite number is refused by name.
 * 3. The digest is XXH3-128 over (name, 0, dtype u8, rank u8, extents u64 LE, XXH3-128 of
 *    the bytes) in name order: content alone, not how many files hold it nor where.
 *
 * Ownership: open/close; everything lies in the source's own arena, whole in memory.
 * Threads: one. */
#ifndef HD_CHECKPOINT_WEIGHTS_H
#define HD_CHECKPOINT_WEIGHTS_H

#include "base/hash.h"
#include "base/text.h"
#include "sys/file.h"
#include "graph/safetensors.h"

struct hd_weights {
	struct hd_arena arena;
	const char *path;                 /* as given, for messages */
	struct hd_st_tensor *tensor;      /* by name */
	const struct hd_st_meta *meta;    /* of a single file; others have none */
	uint32_t ntensors, nmeta;
	struct hd_hash digest;
	uint32_t nsurplus;
	struct hd_text surplus;           /* "a, b, ..."; the first few */
};

HD_MUST_USE enum hd_err hd_weights_open(struct hd_weights **weights, struct hd_fs *fs, const char *path,
	struct hd_diag *diag);
/* Of tensors that the caller has read elsewhere; names and bytes are copied. `path` is for messages. */
HD_MUST_USE enum hd_err hd_weights_of(struct hd_weights **weights, const char *path,
	const struct hd_st_tensor *tensor, uint32_t ntensors,
	struct hd_diag *diag);
void hd_weights_close(struct hd_weights *weights);          /* takes NULL */

/* What a parameter or buffer of the graph begins from. */
/* from NULL: its initial value. part: the `nparts` tensors that lie one behind the other in it (names.h, 8),
 * of which `from` is one; NULL: it is `from`. */
struct hd_weight_source { const struct hd_st_tensor *from; bool turned; const struct hd_st_tensor **part;
	uint32_t nparts; };

/* Fits count the graph's parameters, then its buffers, in its order. */
uint32_t hd_fit_count(const struct hd_graph *graph);
const struct hd_value *hd_fit_value(const struct hd_graph *graph, uint32_t i);

/* fit[hd_fit_count()], in the weights' arena. `full` (may be NULL) gets the whole list where `diag` may
 * have to cut it. */
HD_MUST_USE enum hd_err hd_weights_fit(struct hd_weights *weights, const struct hd_graph *graph,
	const char *const *skip, uint32_t nskip,
	struct hd_weight_source **fit, struct hd_text *full, struct hd_diag *diag);

/* Can `v` begin from the tensor? NULL: yes; else why not, for messages. */
const char *hd_fit_unfit(const struct hd_st_tensor *tensor, bool turned, const struct hd_value *v);

/* The tensor as f32; `turned`: of a matrix the transpose. `out` has room for its elements. */
void hd_fit_put(const struct hd_weight_source *fit, float *out);
/* Elements [first, first + n) of that. */
void hd_fit_get(const struct hd_weight_source *fit, uint64_t first, uint64_t n, float *out);

#endif
