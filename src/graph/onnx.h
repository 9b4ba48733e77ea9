/* onnx.h -- models of other frameworks: ONNX files in and out.
 *
 * A job names one (`model.use: onnx:FILE`), `heddle model import` makes graph text,
 * weights and a job of it, `heddle model export` writes one. Format: onnx.proto, IR 8;
 * operators: opset 7 to 22 in (older: the ops that have not changed since), 17 out.
 *
 * 1. In training form: a float initializer is a parameter with the file's values, running
 *    statistics of a BatchNormalization are buffers, all other initializers and the
 *    Constant nodes are constants (a float initializer without extents too). Where the file says what
 *    a module's parameters are (PyTorch's newer exporter), that counts; what it left out is refused by name.
 *    Tensors that an exporter made one because they were equal are several again (onnx/owners.h).
 * 2. Extents are known after folding the arithmetic on shapes; the batch is free: the
 *    first extent of the data inputs is the rows, whatever number was traced. What
 *    would depend on the number of rows in another way is refused.
 * 3. Everything that is not supported is reported at once, by node: `report` receives a line
 *    each, the message as many as fit. HD_E_INPUT; a bad file never does more harm.
 * 4. LayerNorm and GELU that the exporter took apart become one op again, when the nodes
 *    are exactly the known subgraph and nothing else reads what lies inside. Attention written
 *    out (softmax(q k' scale + mask) v) becomes one op when its mask hides nothing, or what comes later.
 * 5. Without `as_is` the graph has the ends of a built-in model (model.h): inputs x and y,
 *    outputs loss, weight, correct (cross-entropy), logits. The loss is the caller's; with
 *    none the file's graph must end in a loss of its own.
 * 6. Names are the file's; bytes that a graph's name cannot have become '_', one is put before a
 *    first byte that cannot be first, and a number is added where that makes two equal.
 *
 * Ownership: the graph and what is returned lie in the graph's arena; weights may point
 * into the caller's bytes (misaligned), which must stay. Pure but for `data`. */
#ifndef HD_GRAPH_ONNX_H
#define HD_GRAPH_ONNX_H

#include "base/text.h"
#include "graph/ir.h"
#include "graph/model.h"

struct hd_onnx_bytes { const uint8_t *at; uint64_t len; };
/* Finds external data: the whole file `name` (a bare name) beside the model; the bytes stay. */
typedef enum hd_err hd_onnx_data(void *user, const char *name, struct hd_onnx_bytes *bytes,
	struct hd_diag *diag);

enum { HD_ONNX_DIMS = 8 };
/* A tensor by value, for known inputs and for the files of node cases. Numbers of ints are i64 (also of
 * bool), of floats f64: exact for every type that is read. */
struct hd_onnx_tensor {
	const char *name;
	int32_t type;                     /* TensorProto.DataType */
	bool is_float;
	uint8_t rank;                     /* 0: a scalar */
	int64_t dim[HD_ONNX_DIMS];
	uint64_t n;
	const double *f;
	const int64_t *i;
};

struct hd_onnx_opts {
	const struct hd_model_opts *loss; /* what is added to the logits; NULL: nothing */
	/* normalize by tokens when the labels are rows of them (the job's `auto`) */
	bool token_if_rows;
	/* node cases: no loss; extents, inputs and outputs are the file's; doubles and halves are fed as
	 * f32 */
	bool as_is;
	const struct hd_onnx_tensor *known; uint32_t nknown;      /* inputs that are given: constants */
	hd_onnx_data *data; void *user;   /* NULL: external data is refused */
	struct hd_text *report;           /* may be NULL */
};

/* The file's values: f32, little-endian. */
struct hd_onnx_weight { const void *at; uint64_t len_bytes; };
/* in the order of the graph's */
struct hd_onnx_values { const struct hd_onnx_weight *param, *buffer; };

/* Fills a graph made by hd_graph_init(); `values` may be NULL. */
HD_MUST_USE enum hd_err hd_onnx_import(struct hd_graph *graph, const char *file, const void *bytes,
	uint64_t len,
	const struct hd_onnx_opts *opts, struct hd_onnx_values *values, struct hd_diag *diag);

/* A file that holds one TensorProto. For tests. */
HD_MUST_USE enum hd_err hd_onnx_tensor_read(struct hd_onnx_tensor *tensor, struct hd_arena *arena,
	const char *file, const void *bytes,
	uint64_t len, struct hd_diag *diag);

/* The forward graph from x to logits as a model of opset 17 with weights inside; losses and labels go,
 * dropout becomes nothing. `bytes` lie in the arena. Ops that ONNX has no words for: HD_E_INVAL, all
 * named. */
HD_MUST_USE enum hd_err hd_onnx_export(const struct hd_graph *graph, const struct hd_onnx_values *values,
	struct hd_arena *arena,
	uint8_t **bytes, uint64_t *len, struct hd_diag *diag);

#endif
