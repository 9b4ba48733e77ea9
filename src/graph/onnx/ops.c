/* Which ops of ONNX are read, and by what. */
#include "graph/onnx/import.h"

#include <string.h>

/* SINCE: unchanged from that opset on. */
#define OP(name, lower)           { name, lower, 0 }
#define SINCE(opset, name, lower) { name, lower, opset }

static const struct hd_onnx_op ops[] = {
	OP("Constant", hd_onnx_constant), OP("Shape", hd_onnx_shape_op), OP("Size", hd_onnx_size),
		SINCE(1, "Identity", hd_onnx_identity),
	OP("Cast", hd_onnx_cast), OP("Dropout", hd_onnx_dropout), OP("Reshape", hd_onnx_reshape_op),
	OP("Flatten", hd_onnx_flatten),
	OP("Squeeze", hd_onnx_squeeze), OP("Unsqueeze", hd_onnx_unsqueeze),
	OP("Transpose", hd_onnx_transpose),
	OP("Gather", hd_onnx_gather), OP("Slice", hd_onnx_slice_op), OP("Split", hd_onnx_split),
	OP("Concat", hd_onnx_concat),
	OP("Expand", hd_onnx_expand), OP("Pad", hd_onnx_pad), OP("Gemm", hd_onnx_gemm),
	OP("MatMul", hd_onnx_matmul),
	OP("Conv", hd_onnx_conv), OP("MaxPool", hd_onnx_maxpool), OP("AveragePool", hd_onnx_avgpool),
	SINCE(1, "GlobalAveragePool", hd_onnx_global_avgpool),
	SINCE(1, "GlobalMaxPool", hd_onnx_global_maxpool),
	OP("Clip", hd_onnx_clip), OP("Pow", hd_onnx_pow),
	OP("Add", hd_onnx_binary),
	OP("Sub", hd_onnx_binary), OP("Mul", hd_onnx_binary), OP("Div", hd_onnx_binary),
	OP("Less", hd_onnx_binary),
	OP("LessOrEqual", hd_onnx_binary), OP("Greater", hd_onnx_binary),
	OP("GreaterOrEqual", hd_onnx_binary),
	OP("Equal", hd_onnx_binary), OP("And", hd_onnx_binary), OP("Or", hd_onnx_binary),
	OP("Sum", hd_onnx_variadic),
	OP("Max", hd_onnx_variadic), OP("Min", hd_onnx_variadic), SINCE(1, "Not", hd_onnx_not),
	OP("Where", hd_onnx_where),
	OP("ReduceSum", hd_onnx_reduce), OP("ReduceMean", hd_onnx_reduce), OP("ReduceMax", hd_onnx_reduce),
	OP("ReduceMin", hd_onnx_reduce), OP("ReduceProd", hd_onnx_reduce), OP("ArgMax", hd_onnx_argmax),
	OP("CumSum", hd_onnx_cumsum), OP("Softmax", hd_onnx_softmax),
	OP("LogSoftmax", hd_onnx_softmax), OP("LayerNormalization", hd_onnx_layernorm),
	OP("BatchNormalization", hd_onnx_batchnorm),
	OP("SoftmaxCrossEntropyLoss", hd_onnx_xent), OP("NegativeLogLikelihoodLoss", hd_onnx_nll),
	SINCE(6, "InstanceNormalization", hd_onnx_instancenorm), SINCE(6, "Selu", hd_onnx_function),
	OP("Celu", hd_onnx_function),
	SINCE(6, "HardSigmoid", hd_onnx_function), OP("HardSwish", hd_onnx_function),
	SINCE(1, "Softsign", hd_onnx_function),
	OP("Shrink", hd_onnx_function), OP("ThresholdedRelu", hd_onnx_function), OP("Sign", hd_onnx_function),
	OP("IsNaN", hd_onnx_function), OP("IsInf", hd_onnx_function), OP("PRelu", hd_onnx_prelu),
	OP("Xor", hd_onnx_xor),
	OP("Mod", hd_onnx_mod), OP("ReduceL1", hd_onnx_reduce_of), OP("ReduceL2", hd_onnx_reduce_of),
	OP("ReduceLogSum", hd_onnx_reduce_of), OP("ReduceLogSumExp", hd_onnx_reduce_of),
	OP("ReduceSumSquare", hd_onnx_reduce_of),
	OP("Hardmax", hd_onnx_hardmax), OP("OneHot", hd_onnx_one_hot),
	OP("GatherElements", hd_onnx_gather_elements),
	OP("ScatterElements", hd_onnx_scatter_elements), OP("Scatter", hd_onnx_scatter_elements),
	OP("ScatterND", hd_onnx_scatter_nd),
	OP("Tile", hd_onnx_tile), OP("DepthToSpace", hd_onnx_depth_space),
	OP("SpaceToDepth", hd_onnx_depth_space),
	OP("Mean", hd_onnx_mean), OP("Einsum", hd_onnx_einsum), OP("EyeLike", hd_onnx_eye),
	OP("ArgMin", hd_onnx_argmax),
	OP("LSTM", hd_onnx_recurrent), OP("GRU", hd_onnx_recurrent), OP("ConstantOfShape", hd_onnx_filled),
	OP("CastLike", hd_onnx_cast), OP("MeanVarianceNormalization", hd_onnx_mvn),
};

/* Those that are one activation of ours; the others have no name here. */
#define ROW(read, since, alpha, write) { read, hd_onnx_act, since }
static const struct hd_onnx_op acts[HD_NACTS] = {
#define ACT(id, text, nf, use, folds, about, value, slope, lanes, lanes_slope, oracle, onnx, tests) ROW onnx,
#include "graph/acts.def"
};

const struct hd_onnx_op *hd_onnx_op_find(const char *name)
{
	for (size_t k = 0; k < sizeof acts / sizeof *acts; k++)
		if (acts[k].name && !strcmp(acts[k].name, name))
			return &acts[k];
	for (size_t k = 0; k < sizeof ops / sizeof *ops; k++)
		if (!strcmp(ops[k].name, name))
			return &ops[k];
	return NULL;
}
