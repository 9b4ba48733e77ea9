/* file.h -- an ONNX file, unpacked but for its large tensors.
 *
 * 1. Only files that pass the walk (wire.h) are unpacked; all memory is the file's own
 *    arena with the budget HD_ONNX_MEMORY.
 * 2. An initializer's raw bytes above HD_ONNX_INLINE are not copied: `raw` points into
 *    the caller's bytes, or into external data that the caller found by its bare name.
 * 3. A model has one graph; its functions, training info and sparse tensors are refused.
 *
 * Private to graph/onnx. Ownership: open/close; the caller's bytes outlive the file. */
#ifndef HD_GRAPH_ONNX_FILE_H
#define HD_GRAPH_ONNX_FILE_H

#include "onnx.pb-c.h"

#include "graph/onnx.h"

#define HD_ONNX_MEMORY ((size_t)512 << 20)
/* opsets older than the least: only ops that have not changed since */
enum { HD_ONNX_INLINE = 1 << 20, HD_ONNX_OPSET_MIN = 7, HD_ONNX_OPSET_MAX = 22 };

struct hd_onnx_init {
	Onnx__TensorProto *tensor;
	const uint8_t *raw;               /* NULL: the values are in a field of `tensor` */
	uint64_t raw_len;
};

struct hd_onnx_file {
	struct hd_arena arena;
	const char *name;                 /* for messages; borrowed */
	Onnx__ModelProto *model;
	Onnx__GraphProto *graph;
	const uint8_t *graph_bytes; uint64_t graph_len;       /* its message, as it lies in the file */
	struct hd_onnx_init *init; uint32_t ninit;
	int64_t opset;
};

HD_MUST_USE enum hd_err hd_onnx_file_open(struct hd_onnx_file *file, const char *name, const void *bytes,
	uint64_t len,
	const struct hd_onnx_opts *opts, struct hd_diag *diag);
void hd_onnx_file_close(struct hd_onnx_file *file);      /* takes zeroed and half-opened ones */

/* One tensor message. */
HD_MUST_USE enum hd_err hd_onnx_init_read(struct hd_onnx_file *file, const uint8_t *bytes, uint64_t len,
	const struct hd_onnx_opts *opts,
	struct hd_onnx_init *init, struct hd_diag *diag);

#endif
