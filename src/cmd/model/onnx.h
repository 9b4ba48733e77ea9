/* onnx.h -- ONNX files for the verbs `model import` and `model export`. */
#ifndef HD_CMD_MODEL_ONNX_H
#define HD_CMD_MODEL_ONNX_H

#include "cmd/verbs.h"

/* FILE.onnx -> folder/model.graph, folder/model.safetensors and folder/job.yaml, which trains it. */
HD_MUST_USE enum hd_err hd_onnx_take_in(struct hd_cmd *cmd, const char *source, const char *folder);
/* The newest checkpoint of a run, from x to logits. */
HD_MUST_USE enum hd_err hd_onnx_give_out(struct hd_cmd *cmd, const char *run, const char *path);

#endif
