/* onnx_model.h -- an ONNX file on the disk as graph and weights.
 *
 * What the job's `model.use: onnx:FILE` and `heddle model import` share: the file is
 * mapped for the time of one import (graph/onnx.h), and so is what it names beside it.
 *
 * 1. External data is looked for in the file's own folder, by a bare name, and nowhere else.
 * 2. The weights are copies: nothing refers to the maps afterwards. */
#ifndef HD_CHECKPOINT_ONNX_MODEL_H
#define HD_CHECKPOINT_ONNX_MODEL_H

#include "sys/file.h"
#include "graph/onnx.h"
#include "checkpoint/weights.h"

enum { HD_ONNX_MAX_FILES = 64 };          /* external data files of one model */

/* `graph` becomes the file's in `arena`; `opts->data` is set here. `weights` may be NULL: else close them. */
HD_MUST_USE enum hd_err hd_onnx_model(struct hd_fs *fs, const char *path, const struct hd_onnx_opts *opts,
	struct hd_arena *arena,
	struct hd_graph *graph, struct hd_weights **weights, struct hd_diag *diag);

#endif
