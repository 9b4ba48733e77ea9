/* host.h -- tensors that the importer computes with itself: constants and shapes.
 *
 * An exporter writes shapes as arithmetic on tensors (Shape, Gather, Concat, ...). All of it
 * is done here, before there is a graph, so that the graph has extents and no arithmetic.
 *
 * 1. An integer is a + rows * (number of rows): what Shape gives of a free batch stays exact
 *    through sums, multiples and comparisons, and becomes an extent again. What is no such
 *    number (rows squared, rows == 3) has no value: HD_E_INPUT.
 * 2. Floats are f64, rounded to f32 after every op when their type is FLOAT.
 * 3. At most HD_HOST_ELEMS elements; every size is a checked product, of the extents that are not 0.
 *
 * Private to graph/onnx. Memory: the arena passed. */
#ifndef HD_GRAPH_ONNX_HOST_H
#define HD_GRAPH_ONNX_HOST_H

#include "graph/onnx/file.h"

enum { HD_HOST_ELEMS = 1 << 22 };

struct hd_sym { int64_t a, rows; };

struct hd_host_tensor {
	int32_t type;                     /* TensorProto.DataType */
	bool is_float;
	uint8_t rank;
	int64_t dim[HD_ONNX_DIMS];        /* 0 is allowed */
	uint64_t n;
	double *f;                        /* is_float */
	struct hd_sym *i;                 /* else; bool: 0 and 1 */
};

HD_MUST_USE enum hd_err hd_host_make(struct hd_host_tensor *host, struct hd_arena *arena, int32_t type,
	uint32_t rank, const int64_t *dim,
	struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_host_read(struct hd_host_tensor *host, struct hd_arena *arena,
	const struct hd_onnx_init *init, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_host_ints(struct hd_host_tensor *host, struct hd_arena *arena, uint32_t n,
	const struct hd_sym *values, struct hd_diag *diag);

/* Extents and element count of a tensor message, checked; the type is one of those read. */
HD_MUST_USE enum hd_err hd_onnx_extents(const Onnx__TensorProto *tensor, int64_t dim[HD_ONNX_DIMS],
	uint64_t *n, struct hd_diag *diag);
uint32_t hd_onnx_type_bytes(int32_t type);         /* 0: a type that is not read */
const char *hd_onnx_type_text(int32_t type);
bool hd_onnx_type_is_float(int32_t type);

/* The value of a number that must not depend on the rows. */
static inline bool hd_host_plain(const struct hd_host_tensor *host)
{
	for (uint64_t i = 0; !host->is_float && i < host->n; i++)
		if (host->i[i].rows)
			return false;
	return true;
}

/* Attributes of a node. Absent or of another type: the default. */
int64_t hd_onnx_attr_int(const Onnx__NodeProto *node, const char *name, int64_t standard);
double hd_onnx_attr_float(const Onnx__NodeProto *node, const char *name, double standard);
bool hd_onnx_attr_is(const Onnx__NodeProto *node, const char *name, const char *text, bool standard);
/* NULL: absent */
const Onnx__AttributeProto *hd_onnx_attr(const Onnx__NodeProto *node, const char *name);

/* One op on known tensors; in[i] NULL: absent. HD_E_NOTFOUND: no such op here. */
struct hd_host_fold {
	const Onnx__NodeProto *node;
	int64_t opset;
	const struct hd_host_tensor *const *in;
	uint32_t nin;
	struct hd_host_tensor *out;              /* [nout] */
	uint32_t nout;
	struct hd_arena *arena;
	struct hd_diag *diag;
};
HD_MUST_USE enum hd_err hd_host_fold(struct hd_host_fold *fold);
bool hd_host_folds(const char *op);

/* axis + rank where it is negative; false: outside. */
static inline bool hd_onnx_axis(int64_t axis, uint32_t rank, uint32_t *at)
{
	if (axis < -(int64_t)rank || axis >= (int64_t)rank)
		return false;
	*at = (uint32_t)(axis < 0 ? axis + (int64_t)rank : axis);
	return true;
}

/* start, step and count of one axis of Slice, by the rules of the operator. */
void hd_onnx_slice(int64_t extent, int64_t start, int64_t end, int64_t step, int64_t *first, int64_t *count);

#endif
