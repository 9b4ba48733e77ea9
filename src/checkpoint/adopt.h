/* adopt.h -- weights of others become a model of ours: a folder with the weights under our names and a job
 * that begins from them.
 *
 * 1. A config.json beside published weights, or in their folder, says model and arguments
 *    (graph/published.h); what the user says counts more.
 * 2. Of ONNX the graph is written too. Its own loss is taken where it has one; else cross-entropy is added,
 *    and the job says so.
 * 3. Nothing is written before the weights fit. The job trains at once, on made-up data.
 * 4. What a message has no room for is in `notes` (also after an error): whole lines, for the user.
 *
 * Ownership: texts lie in the arena. Threads: one. */
#ifndef HD_CHECKPOINT_ADOPT_H
#define HD_CHECKPOINT_ADOPT_H

#include "graph/model.h"
#include "graph/onnx.h"
#include "checkpoint/ckpt.h"

struct hd_adopted {
	const char *model;                        /* row of hd_models; NULL: the graph is the file's */
	uint32_t nnodes, ntensors;
	char weights[HD_PATH_CAP];                /* folder/model.safetensors */
	struct hd_text notes;
};

/* `source`: as hd_weights_open() takes it. `model`: "gpt", "builtin:gpt", or NULL: config.json says it. */
HD_MUST_USE enum hd_err hd_adopt_weights(struct hd_adopted *adopted, struct hd_fs *fs, const char *source,
	const char *folder, const char *model, const struct hd_model_arg *arg, uint32_t nargs,
	struct hd_arena *arena, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_adopt_onnx(struct hd_adopted *adopted, struct hd_fs *fs, const char *source,
	const char *folder, struct hd_arena *arena, struct hd_diag *diag);

/* The other way: parameters and buffers of `graph` in a state, as hd_onnx_export() wants them.
 * HD_E_INTEGRITY: the state lacks one. */
HD_MUST_USE enum hd_err hd_onnx_values_of(struct hd_onnx_values *values, const struct hd_graph *graph,
	const struct hd_state *state, struct hd_arena *arena, struct hd_diag *diag);

#endif
