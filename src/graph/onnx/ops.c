/* Which ops of ONNX are read, and by what. */
#include <string.h>

#include "graph/models/rows.h"
#include "graph/onnx/import.h"

/* SINCE: unchanged from that opset on. */
#define OF(name, lower)           { name, lower, 0 }
#define SINCE(opset, name, lower) { name, lower, opset }

static const struct hd_onnx_op ops[] = {
	OF("Constant", hd_onnx_constant), OF("Shape", hd_onnx_shape_op), OF("Size", hd_onnx_size),
		SINCE(1, "Identity", hd_onnx_identity),
	OF("Cast", hd_onnx_cast), OF("Dropout", hd_onnx_dropout), OF("Reshape", hd_onnx_reshape_op),
	OF("Flatten", hd_onnx_flatten),
	OF("Squeeze", hd_onnx_squeeze), OF("Unsqueeze", hd_onnx_unsqueeze),
	OF("Transpose", hd_onnx_transpose),
	OF("Gather", hd_onnx_gather), OF("Slice", hd_onnx_slice_op), OF("Split", hd_onnx_split),
	OF("Concat", hd_onnx_concat),
	OF("Expand", hd_onnx_expand), OF("Pad", hd_onnx_pad), OF("Gemm", hd_onnx_gemm),
	OF("MatMul", hd_onnx_matmul),
	OF("Conv", hd_onnx_conv), OF("MaxPool", hd_onnx_maxpool), OF("AveragePool", hd_onnx_avgpool),
	SINCE(1, "GlobalAveragePool", hd_onnx_global_avgpool),
	SINCE(1, "GlobalMaxPool", hd_onnx_global_maxpool),
	OF("Clip", hd_onnx_clip), OF("Pow", hd_onnx_pow),
	OF("Add", hd_onnx_binary),
	OF("Sub", hd_onnx_binary), OF("Mul", hd_onnx_binary), OF("Div", hd_onnx_binary),
	OF("Less", hd_onnx_binary),
	OF("LessOrEqual", hd_onnx_binary), OF("Greater", hd_onnx_binary),
	OF("GreaterOrEqual", hd_onnx_binary),
	OF("Equal", hd_onnx_binary), OF("And", hd_onnx_binary), OF("Or", hd_onnx_binary),
	OF("Sum", hd_onnx_variadic),
	OF("Max", hd_onnx_variadic), OF("Min", hd_onnx_variadic), SINCE(1, "Not", hd_onnx_not),
	OF("Where", hd_onnx_where),
	OF("ReduceSum", hd_onnx_reduce), OF("ReduceMean", hd_onnx_reduce), OF("ReduceMax", hd_onnx_reduce),
	OF("ReduceMin", hd_onnx_reduce), OF("ReduceProd", hd_onnx_reduce), OF("ArgMax", hd_onnx_argmax),
	OF("Softmax", hd_onnx_softmax),
	OF("LogSoftmax", hd_onnx_softmax), OF("LayerNormalization", hd_onnx_layernorm),
	OF("BatchNormalization", hd_onnx_batchnorm),
	OF("SoftmaxCrossEntropyLoss", hd_onnx_xent), OF("NegativeLogLikelihoodLoss", hd_onnx_nll),
	SINCE(6, "InstanceNormalization", hd_onnx_instancenorm), SINCE(6, "Selu", hd_onnx_function),
	OF("Celu", hd_onnx_function),
	SINCE(6, "HardSigmoid", hd_onnx_function), OF("HardSwish", hd_onnx_function),
	SINCE(1, "Softsign", hd_onnx_function),
	OF("Shrink", hd_onnx_function), OF("ThresholdedRelu", hd_onnx_function), OF("Sign", hd_onnx_function),
	OF("IsNaN", hd_onnx_function), OF("IsInf", hd_onnx_function), OF("PRelu", hd_onnx_prelu),
	OF("Xor", hd_onnx_xor),
	OF("Mod", hd_onnx_mod), OF("ReduceL1", hd_onnx_reduce_of), OF("ReduceL2", hd_onnx_reduce_of),
	OF("ReduceLogSum", hd_onnx_reduce_of), OF("ReduceLogSumExp", hd_onnx_reduce_of),
	OF("ReduceSumSquare", hd_onnx_reduce_of),
	OF("Hardmax", hd_onnx_hardmax), OF("OneHot", hd_onnx_one_hot),
	OF("GatherElements", hd_onnx_gather_elements),
	OF("ScatterElements", hd_onnx_scatter_elements), OF("Scatter", hd_onnx_scatter_elements),
	OF("ScatterND", hd_onnx_scatter_nd),
	OF("Tile", hd_onnx_tile), OF("DepthToSpace", hd_onnx_depth_space),
	OF("SpaceToDepth", hd_onnx_depth_space),
	OF("Mean", hd_onnx_mean), OF("Einsum", hd_onnx_einsum), OF("EyeLike", hd_onnx_eye),
	OF("ArgMin", hd_onnx_argmax),
	OF("LSTM", hd_onnx_recurrent), OF("GRU", hd_onnx_recurrent), OF("ConstantOfShape", hd_onnx_filled),
	OF("GatherND", hd_onnx_gather_nd), OF("If", hd_onnx_if), OF("ConvTranspose",
		hd_onnx_conv_transpose), OF("Resize", hd_onnx_resize), OF("Tan", hd_onnx_angle),
	OF("Asin", hd_onnx_angle), OF("Acos", hd_onnx_angle), OF("Sinh", hd_onnx_angle),
	OF("Cosh", hd_onnx_angle), OF("Asinh", hd_onnx_angle), OF("Acosh", hd_onnx_angle),
	OF("Atanh", hd_onnx_angle), OF("LRN", hd_onnx_lrn), OF("RNN", hd_onnx_recurrent),
	OF("Gelu", hd_onnx_gelu), OF("GroupNormalization", hd_onnx_groupnorm), OF("CastLike",
		hd_onnx_cast), OF("MeanVarianceNormalization", hd_onnx_mvn),
};

/* Those that are one activation of ours; the others have no name here. */
#define ROW(read, since, alpha, write) { read, hd_onnx_act, since }
static const struct hd_onnx_op acts[HD_NACTS] = {
#define ACT(id, text, nf, use, folds, about, value, slope, lanes, lanes_slope, oracle, onnx, tests) ROW onnx,
#include "graph/acts.def"
};

/* Those of ops that are one file each. */
#define OP_READER
#include "graph/ops.def"

static const struct hd_onnx_op files[] = {
#define OP_READS(name, since, lower) { name, lower, since },
#include "graph/ops.def"
};

const struct hd_onnx_op *hd_onnx_op_find(const char *name)
{
	for (size_t k = 0; k < sizeof acts / sizeof *acts; k++)
		if (acts[k].name && !strcmp(acts[k].name, name))
			return &acts[k];
	for (size_t k = 0; k < sizeof ops / sizeof *ops; k++)
		if (!strcmp(ops[k].name, name))
			return &ops[k];
	for (size_t k = 0; k < sizeof files / sizeof *files; k++)
		if (!strcmp(files[k].name, name))
			return &files[k];
	return NULL;
}
