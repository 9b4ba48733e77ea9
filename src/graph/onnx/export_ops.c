/* The ops that are one file each in the words of ONNX (graph/ops.def). */
#include "graph/onnx/writer.h"

#define OP_WRITER
#include "graph/ops.def"

hd_ox_writes *const hd_ox_ops[HD_NOPS] = {
#define OP_WRITES(id, writes) [HD_OP_##id] = writes,
#include "graph/ops.def"
};
