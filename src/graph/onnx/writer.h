/* writer.h -- the parts of an ONNX model that is being written, for the files that know ops.
 *
 * A row's function reads the node at hand (`at`) and emits nodes of ONNX; the last of them makes the value of
 * its first output, under that value's name. Names are texts of the arena; what is given stays the caller's.
 *
 * 1. After a failed allocation everything is still called and does no harm; `full` tells at the end. What
 *    takes more than `nothing` holds asks for `full` before it writes.
 * 2. Extents of rows are -1 in a Reshape: at most one of a value.
 *
 * Private to graph/onnx. */
#ifndef HD_GRAPH_ONNX_WRITER_H
#define HD_GRAPH_ONNX_WRITER_H

#include "onnx.pb-c.h"

#include "graph/onnx.h"
#include "graph/op.h"

struct hd_ox {
	const struct hd_graph *graph;
	const struct hd_onnx_values *values;
	struct hd_arena *arena;
	Onnx__NodeProto **node; uint32_t nnodes, node_cap;
	Onnx__TensorProto **init; uint32_t ninits, init_cap;
	const char **name;                /* by value; NULL: not yet written */
	const struct hd_node *at;         /* the node being written */
	uint32_t fresh;
	bool full;                        /* no memory */
	struct hd_text bad; uint32_t nbad;
	/* what take() gives when there is none: written, never read */
	_Alignas(64) uint8_t nothing[512];
};

typedef void hd_ox_writes(struct hd_ox *w);

void *hd_ox_take(struct hd_ox *w, size_t n, size_t size);
__attribute__((format(printf, 2, 3))) const char *hd_ox_text(struct hd_ox *w, const char *fmt, ...);
const char *hd_ox_fresh(struct hd_ox *w);

/* Constants: by name, or under a new one: i64 [n], an i64 or a float without extents, floats of some
 * extents. */
void hd_ox_tensor(struct hd_ox *w, const char *name, int32_t type, uint32_t rank, const int64_t *dim,
	const void *at, size_t bytes);
const char *hd_ox_ints(struct hd_ox *w, uint32_t n, const int64_t *values);
const char *hd_ox_whole(struct hd_ox *w, int64_t value);
const char *hd_ox_number(struct hd_ox *w, double value);
const char *hd_ox_floats(struct hd_ox *w, uint32_t rank, const int64_t *dim, const float *at);

/* A node; b and c may be NULL. _to: under that name, _last: under that of the value at hand. */
const char *hd_ox_emit(struct hd_ox *w, const char *op, const char *a, const char *b, const char *c);
Onnx__NodeProto *hd_ox_emit_to(struct hd_ox *w, const char *out, const char *op, const char *a, const char *b,
	const char *c);
Onnx__NodeProto *hd_ox_last(struct hd_ox *w, const char *op, const char *a, const char *b, const char *c);
void hd_ox_more(struct hd_ox *w, Onnx__NodeProto *n, const char *in);      /* one more operand, at most 7 */
void hd_ox_set_int(struct hd_ox *w, Onnx__NodeProto *n, const char *name, int64_t value);
void hd_ox_set_float(struct hd_ox *w, Onnx__NodeProto *n, const char *name, float value);
void hd_ox_set_ints(struct hd_ox *w, Onnx__NodeProto *n, const char *name, uint32_t count,
	const int64_t *values);

/* The node at hand: its operands, attributes and names. */
const struct hd_value *hd_ox_value(const struct hd_ox *w, uint32_t v);
const struct hd_value *hd_ox_in(const struct hd_ox *w, int i);
int32_t hd_ox_attr(const struct hd_ox *w, int i);
const char *hd_ox_name(struct hd_ox *w, int i);
const char *hd_ox_result(struct hd_ox *w);

void hd_ox_shape_to(struct hd_ox *w, const char *out, const char *x, uint32_t rank, const int64_t *dim);
const char *hd_ox_reshaped(struct hd_ox *w, const char *x, uint32_t rank, const int64_t *dim);
/* the last two extents */
const char *hd_ox_turned(struct hd_ox *w, const char *x, uint32_t rank);
const char *hd_ox_permuted(struct hd_ox *w, const char *x, uint32_t rank, const int64_t *perm);
const char *hd_ox_cast(struct hd_ox *w, const char *x, int32_t type);

/* One row per op: core ops (export.c), by family, and ops that are one file each (export_ops.c). NULL: ONNX
 * has no words for it. */
extern hd_ox_writes *const hd_ox_tensors[HD_NOPS], *const hd_ox_sequences[HD_NOPS],
	*const hd_ox_ops[HD_NOPS];

#endif
